"""A statement made of items of a list is told with the rest of that list, as far as there is room; pure.

The point of a list may stand in its last item, and the first of them may be what the others hang on: two items out of
four are a fragment to whoever was not there. What stands below an item is left out, so is an item that could not stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from csmd.distill import resolve, standing
from csmd.distill.refused import Speaker
from csmd.distill.units import CONCLUDES, Piece, Unit

#: Marks at the end of an item that others follow.
_ENDING = ".; "


class Rest(NamedTuple):
    """The places of the items of a list that stand before and behind a unit, of each the first sentence."""

    before: list[int]
    behind: list[int]


def completed(
    found: Sequence[Piece], unit: Unit, speaker: Speaker, *, lead: str, told: str, apart: Sequence[bool] = ()
) -> tuple[Unit, str]:
    """A unit and what is `told` of it behind its `lead`, both with the rest of the list that it begins or ends in.

    Items that stand `apart` are statements of their own: a list of them says several things.
    """
    rest = rest_of(found, unit, speaker, apart=apart)
    text, before = _begun(found, rest.before, lead=lead, told=told)
    text, behind = _ended(found, rest.behind, text)
    added = [*before, *behind]
    if not added:
        return unit, text
    content = unit.content.union(*(found[at].content for at in added))
    return unit._replace(first=min(unit.first, *added), last=max(unit.last, *added), content=content), text


def rest_of(found: Sequence[Piece], unit: Unit, speaker: Speaker, *, apart: Sequence[bool] = ()) -> Rest:
    """What the lists that a unit begins and ends in hold beside it, without what leans and what stands apart."""
    before, behind = (
        [at for at in places if not (apart and apart[at]) and not standing.leaning(found[at].text, speaker)]
        for places in (_before(found, unit), _behind(found, unit))
    )
    return Rest(before, behind)


def _before(found: Sequence[Piece], unit: Unit) -> list[int]:
    """The items before a unit that begins with one, or of the list that it concludes with what leads into that."""
    if not _opens_row(found, unit.first):
        return []
    places = range(unit.first - 1, -1, -1)
    if found[unit.first].item >= 0:
        return _items(found, found[unit.first], places)[0][::-1]
    if not places or found[places[0]].item < 0 or not CONCLUDES.match(found[unit.first].text):
        return []
    items, end = _items(found, found[places[0]], places)
    return [*([end] if end is not None and found[end].leads else []), *items[::-1]]


def _behind(found: Sequence[Piece], unit: Unit) -> list[int]:
    """The items behind a unit that ends in one, then what concludes the list: a sentence, or what leads into another list."""
    if found[unit.last].item < 0:
        return []
    items, end = _items(found, found[unit.last], range(unit.last + 1, len(found)))
    if end is None or found[end].item >= 0 or not CONCLUDES.match(found[end].text) or not _opens_row(found, end):
        return items
    if found[end].stands:
        return [*items, end]
    if not found[end].leads or end + 1 == len(found) or found[end + 1].item < 0:
        return items
    led, _ = _items(found, found[end + 1], range(end + 1, len(found)))
    return [*items, end, *led] if led else items


def _items(found: Sequence[Piece], like: Piece, places: Iterable[int]) -> tuple[list[int], int | None]:
    """The items of one list with `like` that stand, and where the list ends, None where its part of the text does."""
    items: list[int] = []
    for at in places:
        piece = found[at]
        if piece.part != like.part:
            return items, None
        if piece.item < like.item:
            return items, at
        if piece.item == like.item and piece.stands and _opens_row(found, at):
            items.append(at)
    return items, None


def _opens_row(found: Sequence[Piece], at: int) -> bool:
    """Whether a piece is the first sentence of its row."""
    return at == 0 or found[at - 1].row != found[at].row


def _begun(found: Sequence[Piece], before: list[int], *, lead: str, told: str) -> tuple[str, list[int]]:
    """What is told with all items before it, or with none: a list is not cut in its middle."""
    text = lead + told
    longer = lead + reduce(_onto, [*(found[at].text for at in before), told])
    return (longer, before) if before and resolve.bounded(longer, text) != text else (text, [])


def _ended(found: Sequence[Piece], behind: list[int], text: str) -> tuple[str, list[int]]:
    """What is told with the items behind it, as many as fit; what leads into something is told with that or not at all."""
    longer, taken = text, 0
    for number, at in enumerate(behind, 1):
        longer = _onto(longer, found[at].text)
        if resolve.bounded(longer, text) == text:
            break
        if not found[at].leads:
            text, taken = longer, number
    return text, behind[:taken]


def _onto(text: str, row: str) -> str:
    """A text with one more row of a list behind it."""
    return f"{text} {row}" if text.endswith(":") else f"{text.rstrip(_ENDING)}{resolve.ROWS}{row}"
