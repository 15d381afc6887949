"""What stands on a theme's page, project by project; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from csmd import text
from csmd.dream import keeping
from csmd.dream.lines import Page, Read
from csmd.dream.pages import (
    EVERYWHERE,
    GO_ON,
    NAMED,
    NOBODYS,
    NOTHING,
    Beside,
    Place,
    amount,
    head_of,
    is_ours,
    link,
    placed,
    sections,
)
from csmd.dream.themes import Theme
from csmd.model import Memory

#: So many lines has a theme's page.
LINES = 40


def topic(
    theme: Theme, path: str, memories: Sequence[Memory], places: Mapping[int, Place], listed: Collection[str] = (),
    *, beside: Beside = NOTHING, was: Read = NOBODYS,
) -> Page:  # fmt: skip
    """What is known of a theme, project by project; of a single project what its own page does not list (`listed`)."""
    named = {seq: link(place) for seq, place in places.items()}
    order = [named[seq] for seq in sorted(places, key=lambda seq: (places[seq].name, places[seq].key))]
    waits = Beside(waits=beside.waits, before=beside.before, edits=True)
    theirs = placed(memories, waits, was)
    told_there = [one for one in memories if len(places) == 1 and one.id in listed and one.id not in theirs]
    mine = [one for one in memories if one.id not in theirs and one not in told_there]
    found = sections(mine, lambda one: named[one.project_seq], order, waits, LINES)
    also = f" (also {text.listed(theme.also)})" if theme.also else ""
    names = [(places[seq].title or places[seq].name) if seq else EVERYWHERE.lower() for seq in sorted(places)]
    of = text.listed(names) if 0 < len(set(names)) == len(names) <= NAMED else text.amount(len(names), "project")
    beside_it = f", beside {len(told_there)} on its own page" if told_there else ""
    about = f"{theme.name}{also}: {amount(found, theirs)} of {of}{beside_it}"
    head = {**head_of(theme.name, about, "reference"), "topics": list(theme.topics)}
    page = Page(path=path, head=head, title=theme.name, about=(*_pointer(told_there, places), *GO_ON), sections=found)
    return keeping.kept(page, was, theirs, is_ours)


def _pointer(told_there: Sequence[Memory], places: Mapping[int, Place]) -> tuple[str, ...]:
    if not told_there:
        return ()
    more = f"{len(told_there)} more on it {'stands' if len(told_there) == 1 else 'stand'}"
    return (f"{more} on {link(places[told_there[0].project_seq])}.",)
