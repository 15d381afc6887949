"""Finds the lines of a program's output that belong to certain files, if the output names the files.

Searches name the file on each line or in a heading, diffs before each file, `head` and loops of a shell in a heading
of their own. A heading applies until the next one of its kind; a diff ends at a line that is not part of a diff.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

NOT_KEPT = "[not kept: excluded file]"
IsExcluded = Callable[[str], bool]

#: A line's end, raw or escaped in a JSON string.
_LINE_END = re.compile(r"(\r?\n|\\r?\\n|\\n)")
_DIFF_OF = re.compile(
    r"(?:(?:[{\[\"'\w:, ]{0,200}[\"'])?diff (?:--git|--cc|--combined|-\S+)|Index:|---|\+\+\+|(?:rename|copy) (?:from|to)|\*\*\* (?:Update|Add|Delete) File:)[ \t](.*)"
)
_DIFF_BODY = re.compile(
    r"[ +\-@\\<>]|$|(?:index|new file|deleted file|old mode|new mode|similarity|dissimilarity|rename|copy|Binary|GIT) |={5,}"
    r"|\d+(?:,\d+)?[acd]\d|[A-Za-z0-9+/=]{20,}$"
)
#: A line with only a path and marks around it; possessive, so that a line of dashes is read once.
_HEADING = re.compile(
    r"(?P<sign>[^\w./~\\]*+(?:(?i:file|cat|content of|contents of)\b:?[ \t]++)?)(?P<path>[\w./~\\@+-]{1,300}+):?(?P<end>[^\w]*+)"
)
_NUMBERED = re.compile(r"[ \t]*\d+[ \t]*[:\-|\u2502\u2192\t]")
#: Bullets before an item of a list.
_BULLETS = ("-", "*", "+", "\u2022", "1.")
#: Branches before a name in a tree of files.
_TREE = re.compile("[\u251c\u2514]")
_NAME = re.compile(r"[\w.@~/\\+-]+")
#: Separators of the path and the match in a line of a search.
_FOUND = re.compile(r":|-\d+-")
MAX_PIECES = 4


def without_files(text: str, is_excluded: IsExcluded, *, hints: Sequence[str], only_diffs: bool = False) -> str:
    """Replaces each block of lines of files that `is_excluded` by a mark.

    The path of such a file contains one of `hints`.
    """
    if not any(hint in text for hint in hints):
        return text
    pieces = _LINE_END.split(text)
    lines, ends = pieces[::2], [*pieces[1::2], ""]
    hinting = (line for line in lines if any(hint in line for hint in hints))
    if not any(is_excluded(word) for line in hinting for word in _words(line)):
        return text
    kept: list[str] = []
    for number, line in enumerate(_filter_lines(lines, is_excluded, only_diffs)):
        if line is None and kept and kept[-1].startswith(NOT_KEPT):
            continue
        kept.append((NOT_KEPT if line is None else line) + ends[number])
    return "".join(kept)


def names_its_files(text: str) -> bool:
    """Whether an output begins with a line that names its file."""
    first = text.lstrip("\r\n:=-").partition("\n")[0].rstrip()
    heading = _HEADING.fullmatch(first)
    is_path = heading is not None and ("." in heading["path"] or "/" in heading["path"])
    return is_path or bool(_DIFF_OF.match(first) or re.match(r"[\w./~-]+\.\w{1,8}:", first))


def _filter_lines(lines: list[str], is_excluded: IsExcluded, only_diffs: bool) -> Iterator[str | None]:
    """Yields each line as it may be stored, None for one of an excluded file."""
    listed = _only_names_follow(lines)
    block = ""  # "diff", "numbered", or the sign before a heading of the excluded file
    for number, line in enumerate(lines):
        diff = _DIFF_OF.match(line)
        if diff and not (block == "diff" and line.startswith("--- ") and not _next(lines, number).startswith("+++ ")):
            named = any(is_excluded(word) for word in _words(diff[1]))
            block = "diff" if named else "" if block == "diff" else block
            yield line
        elif block == "diff" and _DIFF_BODY.match(line):
            yield None
        elif only_diffs:
            block = ""
            yield line
        else:
            block = "" if block == "diff" else block
            block, kept = _outside_diff(line, _next(lines, number), block, is_excluded, listed[number + 1])
            yield kept


def _outside_diff(
    line: str, below: str, block: str, is_excluded: IsExcluded, names_below: bool
) -> tuple[str, str | None]:
    """Returns the block that a line opens, and the line as it may be stored."""
    heading = _HEADING.fullmatch(line.rstrip())
    if heading is not None and is_excluded(heading["path"]):
        if _NUMBERED.match(below):
            return "numbered", line
        sign = heading["sign"].strip()
        in_list = names_below if not sign else sign.strip("`'\" ") in _BULLETS or _TREE.search(sign)
        return ("" if in_list else f"heading {sign}"), line
    if block == "numbered" and _NUMBERED.match(line):
        return block, None
    if block.startswith("heading ") and not _ends(block.removeprefix("heading "), heading):
        return block, None
    line_behind = _behind_path(line, is_excluded)
    return "", line if line_behind < 0 else f"{line[:line_behind]}{NOT_KEPT}"


def _ends(sign: str, heading: re.Match[str] | None) -> bool:
    """Whether a line is the heading of the next file."""
    if heading is None or heading["sign"].strip() != sign:
        return False
    # Without a sign a plain value looks like a heading, so a short suffix is required.
    return bool(sign) or re.fullmatch(r".{1,100}\.\w{1,8}", heading["path"]) is not None


def _only_names_follow(lines: list[str]) -> list[bool]:
    """Returns for each line, and the end, whether only file names follow up to the next blank line."""
    listed = [True] * (len(lines) + 1)
    for number in reversed(range(len(lines))):
        line = lines[number].strip()
        is_name = _NAME.fullmatch(line) is not None and (len(line) < 20 or "." in line)
        listed[number] = not line or (is_name and listed[number + 1])
    return listed


def _behind_path(line: str, is_excluded: IsExcluded) -> int:
    """Returns the index of a search's match in an excluded file; -1 if there is none."""
    start = 0
    for _, end in zip(range(MAX_PIECES), _FOUND.finditer(line), strict=False):
        if is_excluded(line[start : end.start()].strip(" \t\"'")):
            return end.end()
        start = end.end() if end[0] == ":" else start
    return -1


def _next(lines: list[str], number: int) -> str:
    return lines[number + 1] if number + 1 < len(lines) else ""


def _words(line: str) -> list[str]:
    """Returns the possible paths in a line."""
    return [part for word in re.split(r"[\s\"'`(),=<>|]+", line[:2000]) for part in word.split(":") if part]
