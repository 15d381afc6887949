"""File patterns as the host reads them, as regular expressions: exclusions, and the `paths` of rules; pure."""

from __future__ import annotations

import re
from typing import Any

from csmd.cache import cached

#: More alternatives than anybody writes by hand.
MOST_PATTERNS = 200


@cached(512)
def whole_path(pattern: str) -> re.Pattern[str] | None:
    """A pattern for a whole path (`claudeMdExcludes`), None for one that is none."""
    alternatives = [_translate(one) for one in braces(pattern)]
    try:
        return re.compile("|".join(alternatives)) if alternatives else None
    except re.error:
        return None


def excluded(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path is named by one of the patterns; a pattern without `/` or `**` names no absolute path."""
    return any((found := whole_path(one)) is not None and found.fullmatch(path) for one in patterns)


def of_rule(paths: Any) -> tuple[str, ...]:
    """The patterns of a rule's `paths`, () for a rule that always holds: none, or nothing but `**`."""
    if isinstance(paths, str):
        given = _split(paths)
    elif isinstance(paths, list):
        given = [one for one in paths if isinstance(one, str)]
    else:
        return ()
    found = [one.strip() for whole in given for one in braces(whole)]
    found = [one.removesuffix("/**") for one in found if one][:MOST_PATTERNS]
    return () if all(one == "**" for one in found) else tuple(found)


def applies(patterns: tuple[str, ...], path: str) -> bool:
    """Whether the patterns take in a path relative to where they hold, as in .gitignore: the last word counts."""
    if not path or path.startswith("../"):
        return False
    taken = False
    for pattern in patterns:
        found = _ignoring(pattern.removeprefix("!"))
        if found is not None and found.match(path):
            taken = not pattern.startswith("!")
    return taken


@cached(512)
def _ignoring(pattern: str) -> re.Pattern[str] | None:
    bare = pattern.rstrip("/")
    anchored = "/" in bare
    body = _translate(bare.removeprefix("/"))
    tail = "/" if pattern.endswith("/") else "(?:/|$)"
    try:
        return re.compile(("" if anchored else "(?:.*/)?") + body + tail, re.IGNORECASE)
    except re.error:
        return None


def _split(written: str) -> list[str]:
    """The patterns between commas that stand in no braces."""
    found, depth, start = [], 0, 0
    for at, char in enumerate(written):
        depth += (char == "{") - (char == "}" and depth > 0)
        if char == "," and depth == 0:
            found.append(written[start:at])
            start = at + 1
    return [*found, written[start:]]


def braces(pattern: str) -> list[str]:
    """`a.{b,c}` as `a.b` and `a.c`; at most MOST_PATTERNS."""
    done: list[str] = []
    waiting = [pattern[:2000]]
    while waiting and len(done) + len(waiting) <= MOST_PATTERNS:
        one = waiting.pop(0)
        found = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if found is None:
            done.append(one)
        else:
            waiting = [one[: found.start()] + part + one[found.end() :] for part in found.group(1).split(",")] + waiting
    return done + waiting


def _translate(pattern: str) -> str:
    """A pattern as a regular expression; `**` crosses directories, `*` and `?` do not."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            while pattern.startswith("**/", at):
                at += 3
            parts.append("(?:.*/)?")
            continue
        if pattern.startswith("**", at):
            while at < len(pattern) and pattern[at] == "*":
                at += 1
            parts.append(".*" if not parts or parts[-1] != ".*" else "")
            continue
        closing = pattern.find("]", at + 2) if char == "[" else -1
        if char == "*":
            parts.append("[^/]*")
        elif char == "?":
            parts.append("[^/]")
        elif closing > 0:
            # Doubled, these mean something in a set of Python's to come.
            inside = re.sub(r"[\\\[&~|]|(?<=-)-", r"\\\g<0>", pattern[at + 1 : closing])
            parts.append(f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]")
            at = closing
        else:
            parts.append(re.escape(char))
        at += 1
    return "".join(parts)
