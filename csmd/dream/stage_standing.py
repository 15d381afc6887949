"""What should stand on the pages: reads what is believed, counted and asked about, and gives every page there should be."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from csmd.capture.memdir import INDEX
from csmd.dream import edits, index, lines, pages, themes, topic_page
from csmd.dream.actions import Fact
from csmd.dream.lines import Page, Read
from csmd.dream.pages import Beside, Place
from csmd.model import Memory
from csmd.recall import threads
from csmd.store import failures, markdown_pages, topics
from csmd.store.markdown_pages import PageRow
from csmd.store.sqlite import Rows

#: Where no memory is to become another.
AS_IT_IS: Mapping[str, Memory] = {}


def was(row: PageRow | None) -> Read:
    """What a page said when csmd knew it last."""
    return lines.read(row.text) if row else pages.NOBODYS


def places(rows: Rows) -> dict[int, Place]:
    """Everywhere, the projects and the workspaces, by their rows."""
    found = markdown_pages.page_places(rows)
    named = Counter((name, walled) for _, _, name, _, walled in found)
    return {
        seq: Place(
            seq=seq, key=key, name=name, root=root, walled=walled,
            title="/".join(PurePath(root).parts[-2:]) if named[name, walled] > 1 and root else "",
        )
        for seq, key, name, root, walled in found
    }  # fmt: skip


def standing(
    rows: Rows,
    known: Mapping[str, PageRow],
    *,
    facts: Sequence[Fact],
    key: bytes,
    after: Mapping[str, Memory] = AS_IT_IS,
) -> Generator[None, None, list[Page]]:
    """The pages, user.md and the projects first (those with the latest word before others), then themes and the index; a page a step."""
    where = places(rows)
    asked = {ident for ident, _ in markdown_pages.asked_about(rows)}
    told = [
        one
        for one in (after.get(one.id, one) for one in markdown_pages.alive(rows))
        if one.id not in asked and one.project_seq in where and pages.may_stand(one)
    ]
    tags = topics.of_memories(rows, [one.seq for one in told])
    beside, new = _beside(rows, told)
    of: dict[int, list[Memory]] = {}
    for memory in told:
        of.setdefault(memory.project_seq, []).append(memory)
    made: list[Page] = []
    for seq, place in where.items():
        before = _before(rows, of.get(seq, ()), was(known.get(place.path)))
        beside = replace(beside, before={**beside.before, **before})
        over = {one.id for olds in before.values() for one in olds}
        of[seq] = [one for one in of.get(seq, ()) if one.id not in over]
        if not seq:
            around = replace(beside, new=new.get(0, ()))
            made.append(pages.user(of[0], around, was(known.get(place.path))))
            continue
        row = known.get(place.path)
        out = frozenset(row.left_out) if row else frozenset[str]()
        page = pages.project(
            place, of[seq], facts=[one for one in facts if one.project_seq == seq],
            themes=_most_common(tags[one.seq][0].name for one in of[seq] if tags.get(one.seq)),
            left_out=lambda said, out=out: edits.counted_hash(said, key) in out,  # type: ignore[misc]
            beside=replace(beside, new=new.get(seq, ())), was=was(row),
        )  # fmt: skip
        made += [page] if page else []
        yield
    open_ones = {seq: place for seq, place in where.items() if not place.walled}
    listed = frozenset(item.id for page in made for section in page.sections for item in section.items)
    themed = yield from _themes(
        known, [one for seq in open_ones for one in pages.still(of.get(seq, ()))], tags, open_ones, beside, listed
    )
    latest = {
        place.path: max((one.confirmed_at for one in of.get(seq, ())), default="") for seq, place in open_ones.items()
    }
    common = [page for page in made if page.path in latest]
    common.sort(key=lambda page: (page.path == pages.USER, latest[page.path], page.path), reverse=True)
    return [*made, *themed, index.index([*common, *themed], was(known.get(INDEX)))]


def _before(rows: Rows, told: Sequence[Memory], was: Read) -> dict[str, tuple[Memory, ...]]:
    """Memory (id) -> those of a place whose place it took, among as many as are looked at for a page."""
    surest = heapq.nlargest(round(pages.CONSIDERED * pages.PAGE_LINES), told, key=pages.sureness)
    return pages.before(surest, threads.replaced(rows, surest), was)


def _beside(rows: Rows, told: Sequence[Memory]) -> tuple[Beside, dict[int, list[tuple[str, str]]]]:
    """What stands beside memories, and the lines that wait to be some, by their places."""
    ids = {one.seq: one.id for one in told}
    symptoms = failures.symptoms_of(rows, [one.seq for one in told if one.category == "gotcha"])
    waits: dict[str, list[str]] = {}
    new: dict[int, list[tuple[str, str]]] = {}
    for one in markdown_pages.waiting_calls(rows):
        of = next((ident for ident in one.memory_ids if ident in ids.values()), "")
        if of:
            waits.setdefault(of, []).append(one.text)
        else:
            new.setdefault(one.project_seq, []).append((pages.heading_of(one.gate, one.category), one.text))
    shows = {ids[seq]: tuple(said for _, _, said in found) for seq, found in symptoms.items()}
    return Beside(shows=shows, waits=waits), new


def _most_common(names: Iterable[str]) -> list[str]:
    found = Counter(names)
    return sorted(found, key=lambda name: (-found[name], name))


def _themes(
    known: Mapping[str, PageRow],
    told: Sequence[Memory],
    tags: Mapping[int, Sequence[topics.Tagged]],
    where: Mapping[int, Place],
    beside: Beside,
    listed: frozenset[str],
) -> Generator[None, None, list[Page]]:
    tagged: dict[str, set[str]] = {}
    by_id = {memory.id: memory for memory in told}
    for memory in told:
        for tag in tags.get(memory.seq, ()):
            tagged.setdefault(tag.name, set()).add(memory.id)
    paths, paged = _paged(known)
    found = themes.Known(
        tagged=tagged, paged=paged, listed=listed, project_of={one.id: one.project_seq for one in told}
    )  # fmt: skip
    taken = set(paths.values())
    made = []
    for theme in themes.themes(found):
        path = paths.get(theme.name) or _topic_path(theme.name, taken)
        taken.add(path)
        members = [by_id[ident] for ident in sorted(theme.members)]
        there = {seq: where[seq] for seq in {one.project_seq for one in members}}
        made.append(topic_page.topic(theme, path, members, there, listed, beside=beside, was=was(known.get(path))))
        yield
    return made


def _paged(known: Mapping[str, PageRow]) -> tuple[dict[str, str], dict[str, themes.Paged]]:
    """The themes that have a page, by name: where it is, and what stands on it."""
    paths: dict[str, str] = {}
    paged: dict[str, themes.Paged] = {}
    for path, row in sorted(known.items()):
        if path.startswith(pages.TOPICS):
            read = was(row)
            name, of = str(read.head.get("name", "")), read.head.get("topics")
            paths[name] = path
            paged[name] = themes.Paged(
                members=frozenset(item.id for _, item in read.lines() if item.id),
                also=frozenset(map(str, of)) - {name} if isinstance(of, list) else frozenset(),
            )
    return paths, paged


def _topic_path(name: str, taken: Collection[str]) -> str:
    """Where a new theme's page goes; one of the same name in a file keeps it."""
    path = f"{pages.TOPICS}{pages.slug(name)}.md"
    return path if path not in taken else f"{path.removesuffix('.md')}-{pages.short(name)}.md"
