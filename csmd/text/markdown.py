"""Reads and writes the untrusted YAML head of a Markdown file, and the entries and paths of pages; pure.

A head is a mapping of at most MAX_HEAD_CHARACTERS without aliases, because ten aliases can expand to a billion values.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from csmd.text import display

#: White space as JavaScript, the host's language, defines it; Python's differs in U+001C to U+001F and U+0085.
_JS_SPACE = tuple("\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff")  # fmt: skip
#: Most characters of a head: YAML in Python reads about 100 KB a second.
MAX_HEAD_CHARACTERS = 16_384
#: The width at which YAML folds a value; none is as long.
MAX_LINE_CHARACTERS = 100_000

JS_SPACES = "".join(_JS_SPACE)
_HEAD_START = re.compile(r"---[^\S\n]*\n")
_FIELD = re.compile(r"([A-Za-z_][\w-]*):[ \t]+(\S.*?)[ \t]*")
_DASHES = re.compile(r"-{3,}")
_NEEDS_QUOTES = re.compile(r"[{}\[\]*&#!|>%@`]|: ")


def split_head(text: str) -> tuple[str, str]:
    """Splits a text into head and rest as Claude Code does: the head ends at the first `---`, wherever that is."""
    opening = _HEAD_START.match(text)
    if opening is None:
        return "", text
    end = text.find("---", opening.end())
    if end < 0:
        return "", text
    # Drops the white space after it, with the indentation of the first line.
    return text[opening.end() : end], text[end + 3 :].lstrip(JS_SPACES)


def parse_head(head: str) -> tuple[dict[str, Any], str]:
    """Returns the mapping in a head, with keys as text, and the problem with it, or ""."""
    if not head.strip():
        return {}, ""
    if len(head) > MAX_HEAD_CHARACTERS:
        return {}, f"its head is {len(head)} characters long; {MAX_HEAD_CHARACTERS} are read"
    mapping, problem = _load_yaml(head)
    if problem:
        # Like the host, read a bare value such as *.py or {a,b} as text.
        quoted, quoted_problem = _load_yaml(_quote_values(head))
        if not quoted_problem:
            mapping, problem = quoted, ""
    if problem:
        return {}, problem
    if not isinstance(mapping, dict):
        return {}, "its head is not a mapping"
    return {str(key): value for key, value in mapping.items() if isinstance(key, str | int | float)}, ""


def split_memo(text: str) -> tuple[dict[str, Any], str, str]:
    """Splits a memory file: (the mapping in its head, the text below, the problem with the head or "")."""
    import frontmatter  # 30 ms: it loads YAML
    from frontmatter.default_handlers import YAMLHandler

    problems: list[str] = []

    class BoundedHandler(YAMLHandler):
        """Parses the head by `parse_head` after the library has split the file."""

        def load(self, fm: str, **_: object) -> dict[str, Any]:
            mapping, problem = parse_head(fm)
            problems.append(problem)
            return mapping

    plain = text.removeprefix("\ufeff")
    handler = BoundedHandler()
    if not handler.detect(plain.lstrip()):
        return {}, plain.strip(), ""
    mapping, body = frontmatter.parse(plain, handler=handler)
    return mapping, body, problems[0] if problems else "its head does not end"


def add_head(head: Mapping[str, Any], body: str) -> str:
    """Returns a file with this head; no value can end the head or start another line."""
    import frontmatter

    fields = {str(key): _replace_dashes(value) for key, value in head.items()}
    return frontmatter.dumps(
        frontmatter.Post(body, **fields), sort_keys=False, allow_unicode=True, width=MAX_LINE_CHARACTERS
    ) + "\n"  # fmt: skip


def _replace_dashes(value: Any) -> Any:
    if isinstance(value, str):
        return _DASHES.sub("\u2014", value)
    if isinstance(value, Mapping):
        return {_replace_dashes(key): _replace_dashes(item) for key, item in value.items()}
    return [_replace_dashes(item) for item in value] if isinstance(value, list) else value


def _load_yaml(head: str) -> tuple[Any, str]:
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML's safe loader without aliases."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("it uses aliases")
            return super().compose_node(parent, index)

    try:
        return yaml.load(head, Loader), ""  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        return None, f"its head is not YAML: {error.problem or error.context or 'unreadable'}"
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return None, f"its head is not YAML: {str(error).splitlines()[0][:80] if str(error) else 'unreadable'}"


def _quote_values(head: str) -> str:
    lines = []
    for line in head.splitlines():
        field = _FIELD.fullmatch(line)
        if field and field[2][0] not in "\"'" and _NEEDS_QUOTES.search(field[2]):
            value = field[2].replace("\\", "\\\\").replace('"', '\\"')
            line = f'{field[1]}: "{value}"'
        lines.append(line)
    return "\n".join(lines)


# --- a page's entries

ID_COMMENT = re.compile(r"\s*<!--\s*m:(m[0-9a-f]{10})\s*-->")
BULLET = re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])(?:\s+(.*)|\s*)$")
_COMMENT_START, _COMMENT_END = re.compile(r"<(\\*)!--"), re.compile(r"--(\\*)>")
_ESCAPED_START, _ESCAPED_END = re.compile(r"<\\(\\*)!--"), re.compile(r"--\\(\\*)>")


def to_line(text: str) -> str:
    """Formats a text as one line of a page: without invisible characters, and with escaped comment marks."""
    flat = display.squeeze(display.defuse(text))
    return _COMMENT_END.sub(r"--\\\1>", _COMMENT_START.sub(r"<\\\1!--", flat))


def from_line(line: str) -> str:
    """Returns the text of a line that `to_line` made."""
    return _ESCAPED_END.sub(r"--\1>", _ESCAPED_START.sub(r"<\1!--", display.squeeze(line)))


def line_key(text: str) -> str:
    """Returns the key by which a line's text is compared."""
    return display.squeeze(unicodedata.normalize("NFC", text))


def bullet_key(line: str) -> str:
    """Returns the key of a list item's text without its comment; "" for another line."""
    bullet = BULLET.match(line)
    return line_key(from_line(ID_COMMENT.sub("", bullet[1] or ""))) if bullet else ""


USER = "user.md"
PROJECTS = "projects/"
TOPICS = "topics/"
MAX_SLUG_CHARACTERS = 40
#: Paths below the home or the pages' directory: a page, its archive, or a restored copy.
_RESTORED = r"(?:\.restored-[^/]*)?\.md"
_USER_PAGE = re.compile(rf"(?:memory/)?{re.escape(USER.removesuffix('.md'))}{_RESTORED}")
_PROJECT_PAGE = re.compile(rf"(?:memory/)?(?:archive/)?{PROJECTS}[^/]*-([0-9a-f]{{6}})(?:-[0-9]{{1,4}})?{_RESTORED}")


def slugify(name: str) -> str:
    """Converts a name to the name of a file: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:MAX_SLUG_CHARACTERS].strip("-") or "unnamed"


def short_hash(name: str) -> str:
    """Returns six hex digits of a name's hash."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:6]


def project_page(name: str, key: str) -> str:
    """Returns the path of a project's page; projects with the same name have different pages."""
    return f"{PROJECTS}{slugify(name)}-{short_hash(key)}.md"


def is_user_page(path: str) -> bool:
    """Whether a file is the user's page, or a restored copy of it."""
    return _USER_PAGE.fullmatch(path) is not None


def project_hash(path: str) -> str:
    """Returns the short hash of the project of a page; "" for a page of no project or of several."""
    match = _PROJECT_PAGE.fullmatch(path)
    return match[1] if match else ""
