"""The @imports and comments of an instruction file, read as Markdown."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from csmd.text.display import remove_spans
from csmd.text.markdown import _JS_SPACE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_SPACES = "".join(_JS_SPACE)
_IMPORT = re.compile(rf"(?:^|[{_SPACES}])@((?:[^{_SPACES}\\]|\\ )+)")
_PATH = re.compile(r"\.?/|~/|[A-Za-z0-9._-]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def parse_imports(text: str) -> tuple[str, list[str]]:
    """Returns the text without comments, and the imported paths in order, each once, without `#fragment`.

    If a text has comments, link definitions are removed with them, as the assistant does.
    """
    if "@" not in text and "<!--" not in text:
        return text, []
    source = text.replace("\r\n", "\n").replace("\r", "\n")
    definitions: dict[str, Any] = {}
    tokens = _parser().parse(source, definitions)
    paths: dict[str, None] = {}
    for plain in _iterate_texts(tokens):
        for match in _IMPORT.finditer(plain):
            path = match.group(1).partition("#")[0].replace("\\ ", " ")
            if path not in ("", "/") and _PATH.match(path):
                paths[path] = None
    return (_remove_comments(source, tokens, definitions) if "<!--" in text else text), list(paths)


def is_excluded(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the glob patterns of `claudeMdExcludes` matches the whole path."""
    return any(_matches(path, pattern) for pattern in patterns)


#: A pattern with more alternatives in braces matches nothing.
MAX_ALTERNATIVES = 200


def _matches(path: str, pattern: str) -> bool:
    from wcmatch import glob

    flags = glob.GLOBSTAR | glob.DOTGLOB | glob.BRACE | glob.FORCEUNIX | glob.CASE
    try:
        return glob.globmatch(path, pattern, flags=flags, limit=MAX_ALTERNATIVES)
    except Exception:  # noqa: BLE001 - the error for too many alternatives has no public name
        return False


def is_conditional(paths: Any) -> bool:
    """Whether a rule with these `paths` applies to some files only: it names a pattern other than `**`."""
    globs = paths.split(",") if isinstance(paths, str) else paths if isinstance(paths, list) else []
    patterns = [pattern.strip().removesuffix("/**") for pattern in globs if isinstance(pattern, str)]
    return any(pattern not in ("", "**") for pattern in patterns)


def preload() -> None:
    """Imports the Markdown and glob parsers (1.3 MB) early, because it takes a tenth of a second and a hook may wait."""
    _parser()
    _matches("", "")


@functools.cache
def _parser() -> MarkdownIt:
    """Returns a CommonMark parser that works like the assistant's.

    It keeps entities and NUL, and an escape ends a text.
    """
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["normalize", "entity", "text_join"])


def _iterate_texts(tokens: Iterable[Token]) -> Iterator[str]:
    """Yields the texts that are searched for imports; whatever is not plain text is a line break in them."""
    open_blocks: list[str] = []
    for token in tokens:
        if token.type == "html_block" and _is_comment(token.content):
            yield remove_spans(token.content, "<!--", "-->")
        elif token.type == "inline":
            if open_blocks[-2:] == ["list_item_open", "paragraph_open"]:
                yield token.content  # the assistant also searches the source of a list item
            yield "".join(_plain_text(child) for child in token.children or ())
        elif token.nesting > 0:
            open_blocks.append(token.type)
        elif token.nesting < 0:
            open_blocks.pop()


def _plain_text(token: Token) -> str:
    """Returns the text of an inline token; a backslash that escapes nothing is part of it."""
    is_plain = token.type == "text" or (token.type == "text_special" and token.content == token.markup)
    return token.content if is_plain else "\n"


def _remove_comments(source: str, tokens: Iterable[Token], definitions: dict[str, Any]) -> str:
    """Returns the source without comment blocks, link definitions and the empty lines after them."""
    lines = _LINE.findall(source)
    remaining = [*lines]
    inside: set[int] = set()
    removed: list[tuple[int, int]] = []
    for token in tokens:
        if token.level or not token.map:
            continue
        begin, end = token.map
        inside.update(range(begin, end))
        if token.type == "html_block" and _is_comment(token.content):
            rest = remove_spans("".join(lines[begin:end]), "<!--", "-->")
            remaining[begin:end] = [rest] + [""] * (end - begin - 1)
            if not rest.strip():
                removed.append((begin, end))
    defined = [*definitions.get("references", {}).values(), *definitions.get("duplicate_refs", [])]
    removed += [definition["map"] for definition in defined if definition["map"][0] not in inside]
    for begin, end in removed:
        while end < len(remaining) and remaining[end] == "\n":
            end += 1
        remaining[begin:end] = [""] * (end - begin)
    return "".join(remaining)


def _is_comment(raw: str) -> bool:
    return raw.lstrip().startswith("<!--") and "-->" in raw
