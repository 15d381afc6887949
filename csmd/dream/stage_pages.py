"""The pages' hands: looks at what is believed, and writes the files that are other than they should be.

A file with an edit that nobody has read yet is left alone, and so is one that csmd did not write. What is about to be
written is noted first: a daemon that is killed in between has made no edit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from csmd import wire
from csmd.capture.memdir import INDEX
from csmd.capture.redact import redact
from csmd.dream import edits, index, keeping, lines, pages, themes
from csmd.dream.actions import Fact
from csmd.dream.changes import Change, change
from csmd.dream.lines import Page, Read
from csmd.dream.pages import Beside, Place
from csmd.model import Memory
from csmd.store import dreams, files, gotchas, page_rows, tombstones, topics
from csmd.store.core import Store
from csmd.store.page_rows import PageRow
from csmd.store.purged import Marks, clean
from csmd.store.sqlite import Rows

ARCHIVE = "archive/"
#: Keys of a head that are csmd's; what else a person puts there stays.
NOT_YET: Mapping[str, Memory] = {}
OURS = frozenset({"name", "description", "type", "topics"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A page as it should be, or why a file goes: `into` is where what is left of it is kept, "" for nowhere."""

    path: str
    text: str | None
    reason: str
    into: str = ""


def write(store: Store, directory: Path, *, dream_seq: int, now: str, facts: Sequence[Fact]) -> Iterator[str]:
    """Writes the pages that are other than they should be; after each its path below the memory directory.

    Each is noted in the dream's journal, unless `dream_seq` is 0. OSError where the disk does not take them.
    """
    tried: set[str] = set()
    todo: list[Wanted] = []
    commits = -1
    while True:
        if store.commits != commits:  # what was forgotten, purged or read back since the last page is told by none
            known = store.read(page_rows.pages)
            every = store.read(lambda rows, known=known: planned(rows, known, facts=facts, key=store.hash_key))  # type: ignore[misc]
            purged = store.read(lambda rows: tombstones.marks(rows, store.hash_key))
            todo = [one for one in every if one.path not in tried]
        if not todo:
            return
        one = todo.pop(0)
        tried.add(one.path)
        wrote = _bring_up(store, directory, one, known.get(one.path), purged, dream_seq=dream_seq, now=now)
        commits = store.commits
        if wrote:
            yield one.path


def _bring_up(
    store: Store, directory: Path, one: Wanted, row: PageRow | None, purged: Marks, *, dream_seq: int, now: str
) -> bool:
    """Makes a page what it should be, where it is csmd's to write; whether it was another."""
    path = directory / one.path
    raw = None if path.is_symlink() else content(path)  # a link leads to somebody's own file
    if path.is_symlink() or not _may_write(raw, row, purged):
        return False
    before = None if raw is None else raw.decode("utf-8", "replace")
    if before != one.text:
        _carry_out(store, directory, one, row, before, dream_seq=dream_seq, now=now)
        return True
    if row is not None and one.text is not None and row.text != one.text:
        _settle(store, row, one.text, now=now)
    return False


def _settle(store: Store, row: PageRow, text: str, *, now: str) -> None:
    """Notes that a file stands as it was to be written: the daemon was killed before it could."""
    store.write(lambda rows: page_rows.put(rows, replace(row, text=text, also="", at=now)))


def changes(
    rows: Rows, directory: Path, *, facts: Sequence[Fact], key: bytes, after: Mapping[str, Memory]
) -> list[Change]:
    """Which files would be written or removed now, and why; `after` are memories as they will be, by id. Nothing is done."""
    known, purged = page_rows.pages(rows), tombstones.marks(rows, key)
    found: list[Change | None] = []
    for one in planned(rows, known, facts=facts, key=key, after=after):
        path, row = directory / one.path, known.get(one.path)
        raw = None if path.is_symlink() else content(path)
        if path.is_symlink() or (row is not None and (row.held or row.problem)):
            continue  # it is left alone
        before = None if raw is None else raw.decode("utf-8", "replace")
        if _may_write(raw, row, purged):
            found.append(change(one.path, before, one.text, why_gone=one.reason))
        else:
            found.append(Change(path=one.path, do="read", reason="somebody has edited it"))
    return [one for one in found if one is not None]


def planned(
    rows: Rows,
    known: Mapping[str, PageRow],
    *,
    facts: Sequence[Fact],
    key: bytes,
    after: Mapping[str, Memory] = NOT_YET,
) -> list[Wanted]:
    """Every page as it should be by what is believed (of `after`, by what will be), and what becomes of those that are no more."""
    made = _pages(rows, known, facts, key, after)
    wanted = [
        Wanted(
            path=page.path,
            text=lines.written(_with_head(page, known.get(page.path))),
            reason="what is believed has changed",
        )
        for page in made
    ]
    there = {page.path for page in made}
    for path in sorted(known.keys() - there):
        left = keeping.has_theirs(lines.read(known[path].text), pages.is_ours)
        is_topic = path.startswith(pages.TOPICS)
        why = "the theme is hardly spoken of" if is_topic else "nothing is known of it any more"
        into = f"{ARCHIVE}{path}" if is_topic or left else ""
        wanted.append(Wanted(path=path, text=None, reason=why, into=into))
    return wanted


def content(path: Path) -> bytes | None:
    """The bytes of a file, one more than a page may have; None where there is none."""
    try:
        with files.open_regular(path) as file:
            return file.read(edits.MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError:
        return b"\x00"  # a directory, a pipe, something that is not ours to read: no text


def said_in(raw: bytes, purged: Marks) -> tuple[str, str]:
    """(what a file says without secrets and what was purged, why it cannot be read: "" for nothing)."""
    said, problem = edits.text_of(raw)
    return clean(redact(wire.clean(said), Counter()), purged)[0], problem


def is_read(raw: bytes | None, row: PageRow | None, purged: Marks) -> bool:
    """Whether a file says what csmd knows of it: then there is no edit in it."""
    if raw is None or row is None:
        return raw is None and row is None
    said, problem = said_in(raw, purged)
    return not problem and row.is_known(said)


def _may_write(raw: bytes | None, row: PageRow | None, purged: Marks) -> bool:
    if row is None:
        return raw is None
    return not (row.held or row.problem) and (is_read(raw, row, purged) or (raw is None and bool(row.also)))


def _carry_out(
    store: Store, directory: Path, one: Wanted, row: PageRow | None, before: str | None, *, dream_seq: int, now: str
) -> None:
    path = directory / one.path
    if one.text is None:
        if one.into and row is not None:
            _keep(store, directory, one.into, row, dream_seq=dream_seq, now=now)
        path.unlink(missing_ok=True)

        def gone(rows: Rows) -> None:
            page_rows.remove(rows, one.path)
            _note(rows, directory, one, before, dream_seq, now)

        store.write(gone)
        return
    text = one.text
    was = row or PageRow(path=one.path, text="", at=now)

    def noted(rows: Rows) -> None:
        page_rows.put(rows, replace(was, also=text))
        _note(rows, directory, one, before, dream_seq, now)

    store.write(noted)
    put(path, text)
    store.write(lambda rows: page_rows.put(rows, replace(was, text=text, also="", at=now, problem="")))


def _keep(store: Store, directory: Path, into: str, row: PageRow, *, dream_seq: int, now: str) -> None:
    """Puts what is left of a retired page aside: its lines that are still believed, and what a person wrote there."""
    alive = {memory.id: memory for memory in store.read(page_rows.alive)}
    read = lines.read(row.text)
    kept = [
        keeping.mapped(one, lambda item: item if item.id in alive else None)
        for one in read.sections
        if one.heading != lines.OWN
    ]
    page = Page(
        path=into, head=read.head, title=str(read.head.get("name", "")), top=read.top, own=read.own,
        sections=tuple(one for one in kept if one.items or one.notes or not pages.is_ours(one.heading)),
    )  # fmt: skip
    text, path = lines.written(page), directory / into
    number = 1
    while (raw := content(path)) is not None and raw != text.encode("utf-8", "replace"):
        number += 1
        path = directory / f"{into.removesuffix('.md')}-{number}.md"
    if raw is None:
        put(path, text)
        if dream_seq:
            reason = "a page was retired"
            named = _below_home(directory, str(path.relative_to(directory)))
            store.write(
                lambda rows: dreams.wrote(rows, dream_seq, reason=reason, path=named, before=None, after=text, now=now)
            )


def put(path: Path, text: str) -> None:
    """Writes a page; its directory is private."""
    files.make_private(path.parent)
    files.write_atomic(path, text.encode("utf-8", "replace"))


def _note(rows: Rows, directory: Path, one: Wanted, before: str | None, dream_seq: int, now: str) -> None:
    if dream_seq:
        path = _below_home(directory, one.path)
        # What somebody typed into the file may hold a secret: undo gives the page back without it.
        before = None if before is None else redact(before, Counter())
        dreams.wrote(rows, dream_seq, reason=one.reason, path=path, before=before, after=one.text, now=now)


def _below_home(directory: Path, path: str) -> str:
    return f"{directory.name}/{path}"


def _with_head(page: Page, row: PageRow | None) -> Page:
    """The page with what a person put into its head."""
    more = {name: value for name, value in _was(row).head.items() if name not in OURS}
    return replace(page, head={**page.head, **more} if page.head else page.head)


def _was(row: PageRow | None) -> Read:
    return lines.read(row.text) if row else pages.NOBODYS


# --- what should stand there


def places(rows: Rows) -> dict[int, Place]:
    """Everywhere, the projects and the workspaces, by their rows."""
    return {
        seq: Place(seq=seq, key=key, name=name, root=root, walled=walled)
        for seq, key, name, root, walled in page_rows.places(rows)
    }


def _pages(
    rows: Rows, known: Mapping[str, PageRow], facts: Sequence[Fact], key: bytes, after: Mapping[str, Memory]
) -> list[Page]:
    """The pages, user.md and the projects first (those with the latest word before others), then themes and the index."""
    where = places(rows)
    asked = {ident for ident, _ in page_rows.asked_about(rows)}
    told = [
        one
        for one in (after.get(one.id, one) for one in page_rows.alive(rows))
        if one.id not in asked and one.project_seq in where and pages.may_stand(one)
    ]
    tags = topics.of_memories(rows, [one.seq for one in told])
    beside, new = _beside(rows, told)
    of: dict[int, list[Memory]] = {}
    for memory in told:
        of.setdefault(memory.project_seq, []).append(memory)
    made: list[Page] = []
    for seq, place in where.items():
        if not seq:
            around = replace(beside, new=new.get(0, ()))
            made.append(pages.user(of.get(0, ()), around, _was(known.get(place.path))))
            continue
        row = known.get(place.path)
        out = frozenset(row.left_out) if row else frozenset[str]()
        page = pages.project(
            place, of.get(seq, ()), facts=[one for one in facts if one.project_seq == seq],
            themes=_most_common(tags[one.seq][0].name for one in of.get(seq, ()) if tags.get(one.seq)),
            left_out=lambda said, out=out: edits.counted_hash(said, key) in out,  # type: ignore[misc]
            beside=replace(beside, new=new.get(seq, ())), was=_was(row),
        )  # fmt: skip
        made += [page] if page else []
    open_ones = {seq: place for seq, place in where.items() if not place.walled}
    themed = _themes(known, [one for one in told if one.project_seq in open_ones], tags, open_ones, beside)
    latest = {
        place.path: max((one.confirmed_at for one in of.get(seq, ())), default="") for seq, place in open_ones.items()
    }
    common = [page for page in made if page.path in latest]
    common.sort(key=lambda page: (page.path == pages.USER, latest[page.path], page.path), reverse=True)
    return [*made, *themed, index.index([*common, *themed], _was(known.get(INDEX)))]


def _beside(rows: Rows, told: Sequence[Memory]) -> tuple[Beside, dict[int, list[tuple[str, str]]]]:
    """What stands beside memories, and the lines that wait to be some, by their places."""
    ids = {one.seq: one.id for one in told}
    symptoms = gotchas.symptoms_of(rows, [one.seq for one in told if one.category == "gotcha"])
    waits: dict[str, list[str]] = {}
    new: dict[int, list[tuple[str, str]]] = {}
    for one in page_rows.waiting(rows):
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
) -> list[Page]:
    tagged: dict[str, dict[str, int]] = {}
    by_id = {memory.id: memory for memory in told}
    for memory in told:
        for tag in tags.get(memory.seq, ()):
            tagged.setdefault(tag.name, {})[memory.id] = memory.project_seq
    slugs: dict[str, list[str]] = {}
    for name in tagged:
        slugs.setdefault(pages.slug(name), []).append(name)
    named = {name: _topic_path(name, alone=len(slugs[pages.slug(name)]) == 1) for name in tagged}
    paged = {name for name, path in named.items() if path in known}
    made = []
    for theme in themes.themes(tagged, paged=paged):
        members = [by_id[ident] for ident in sorted(theme.members)]
        there = {seq: where[seq] for seq in {one.project_seq for one in members}}
        path = named.get(theme.name) or _topic_path(theme.name, alone=False)
        made.append(pages.topic(theme, path, members, there, beside, _was(known.get(path))))
    return made


def _topic_path(name: str, *, alone: bool) -> str:
    return f"{pages.TOPICS}{pages.slug(name)}{'' if alone else '-' + pages.short(name)}.md"
