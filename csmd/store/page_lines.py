"""Removes lines of forgotten memories from the text of a page; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from csmd.text.markdown import BULLET, ID_COMMENT, bullet_key

#: Returns those of some memory ids that no memory has any more.
Missing = Callable[[Sequence[str]], Collection[str]]
#: Whether the words of a line without a memory id were forgotten.
IsForgotten = Callable[[str], bool]
_ENDS_WITH_ID = re.compile(ID_COMMENT.pattern + r"\s*$")
#: A line that cannot continue a list item: blank, a heading, a fence, or csmd's own comment.
_ENDS_ITEM = re.compile(r"\s*$|\s*#{1,6}\s|\s*(?:`{3}|~{3})|.*<!-- csmd -->\s*$")
#: A line of a page's head with `[purged]` in an unquoted value, which YAML would read as a list.
_UNQUOTED = re.compile(r"^(\s*[\w-]+:[ ]+)([^'\"\s|>].*\[purged\].*|\[purged\].*)$")


def remove_lines(page: str, missing: Missing, is_forgotten: IsForgotten = frozenset().__contains__) -> tuple[str, int]:
    """Returns (the page without the lines of missing memories and forgotten words, how many were removed).

    The text is the same object if none was removed.
    """
    lines = page.split("\n")
    items = [*_find_items(lines)]
    missing_ids = missing([*dict.fromkeys(memory_id for _, _, memory_id in items if memory_id)])
    removed: set[int] = set()
    count = 0
    for start, end, memory_id in items:
        stop = (
            end
            if memory_id in missing_ids
            else 0
            if memory_id
            else _find_forgotten_end(lines, start, end, is_forgotten)
        )
        if stop:
            count += 1
            while stop < len(lines) and lines[stop][:1] in (" ", "\t") and not ID_COMMENT.search(lines[stop]):
                stop += 1
            removed.update(range(start, stop))
    return ("\n".join(line for index, line in enumerate(lines) if index not in removed) if removed else page), count


def quote_purged(page: str) -> str:
    """Quotes the values of a page's head that begin with `[purged]`, so that the head stays valid YAML."""
    lines = page.split("\n")
    if lines[0] != "---" or "---" not in lines[1:]:
        return page
    for index in range(1, lines.index("---", 1)):
        if line := _UNQUOTED.match(lines[index]):
            value = line[2].replace("'", "''")
            lines[index] = f"{line[1]}'{value}'"
    return "\n".join(lines)


def _find_items(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yields (first line, line after the last, memory id or "") of list items and of lines that end with an id."""
    index = 0
    while index < len(lines):
        end = index + 1
        if BULLET.match(lines[index]):
            while not ID_COMMENT.search(lines[end - 1]) and end < len(lines) and _continues_item(lines[end]):
                end += 1
            ids = ID_COMMENT.findall(lines[end - 1])
            yield index, end, ids[-1] if ids else ""
        elif ids := _ENDS_WITH_ID.findall(lines[index]):  # it has lost its bullet
            yield index, end, ids[-1]
        index = end


def _continues_item(line: str) -> bool:
    return not BULLET.match(line) and not _ENDS_ITEM.match(line)


def _find_forgotten_end(lines: Sequence[str], start: int, end: int, is_forgotten: IsForgotten) -> int:
    """Returns the line after the shortest beginning of an item that says what was forgotten; 0 for none."""
    return next(
        (stop for stop in range(start + 1, end + 1) if is_forgotten(bullet_key(" ".join(lines[start:stop])))), 0
    )
