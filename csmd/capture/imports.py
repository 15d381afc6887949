"""What one instruction file says to the host: its text without comments, and the files it imports; pure.

An import is `@path` where the host's markdown reader sees plain text: not in code, not in an HTML tag, not
glued to other characters. The reader is markdown without tables and strike-through, and has turns of its own
that are kept here because the host's list is the measure (tests/capture/test_imports.py holds what was
measured, line by line). It never raises, and its time grows with the length of the text, not faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from csmd.capture.blocks import Block, blocks
from csmd.capture.inline import JS_SPACE, segments
from csmd.text import without_spans

_SPACES = "".join(JS_SPACE)
_TARGET = re.compile(rf"(?:^|[{_SPACES}])@((?:[^{_SPACES}\\]|\\ )+)")
_NAMED = re.compile(r"\.?/|~/|[A-Za-z0-9._-]")


def without_comments(text: str) -> str:
    """Markdown without its HTML comments, as the host tells it: in one that has any, definitions go too."""
    return _without_comments(blocks(plain(text))) if "<!--" in text else text


def read(text: str) -> tuple[str, list[str]]:
    """(The text without comments, the imported paths), these in order, each once, without `#fragment`."""
    if "@" not in text and "<!--" not in text:
        return text, []
    found = blocks(plain(text))
    return (_without_comments(found) if "<!--" in text else text), _targets(found)


def _targets(found: list[Block]) -> list[str]:
    seen: dict[str, None] = {}
    labels = frozenset(_labels(found))
    for plain_text in _texts(found, labels):
        for match in _TARGET.finditer(plain_text):
            path = match.group(1).partition("#")[0].replace("\\ ", " ")
            if path not in ("", "/") and _NAMED.match(path):
                seen[path] = None
    return list(seen)


def _without_comments(found: list[Block]) -> str:
    kept: list[str] = []
    for block in found:
        if block.kind == "html" and _is_comment(block.raw):
            rest = without_spans(block.raw, "<!--", "-->")
            kept.append(rest if rest.strip() else "")
        elif block.kind != "definition":
            kept.append(block.raw)
    return "".join(kept)


def plain(text: str) -> str:
    """`text` with every kind of line end as one."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_comment(raw: str) -> bool:
    return raw.lstrip().startswith("<!--") and "-->" in raw


def _labels(found: list[Block]) -> Iterator[str]:
    for block in found:
        if block.kind == "definition":
            yield block.inside
        yield from _labels(list(block.blocks))


def _texts(found: list[Block], labels: frozenset[str]) -> Iterator[str]:
    """The pieces of plain text in which the host looks for imports."""
    for block in found:
        if block.kind == "html" and _is_comment(block.raw):
            yield without_spans(block.raw, "<!--", "-->")
        elif block.kind == "loose":
            yield block.inside
        if block.kind in ("text", "loose"):
            yield from segments(block.inside, labels)
        yield from _texts(list(block.blocks), labels)
