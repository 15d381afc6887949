"""The pages' hands: looks at what is believed, and writes the files that are other than they should be.

A file with an edit that nobody has read yet is left alone, and so is one that csmd did not write. What is about to be
written is noted first: a daemon that is killed in between has made no edit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from csmd import wire
from csmd.capture.redact import redact
from csmd.dream import edits, keeping, lines, pages, stage_standing
from csmd.dream.actions import Fact
from csmd.dream.changes import Change, change
from csmd.dream.lines import Page
from csmd.model import Memory
from csmd.store import dreams, files, markdown_pages, tombstones
from csmd.store.core import Store
from csmd.store.markdown_pages import PageRow
from csmd.store.purged import Marks, clean
from csmd.store.sqlite import Rows

ARCHIVE = "archive/"
#: Keys of a head that are csmd's; what else a person puts there stays.
OURS = frozenset({"name", "description", "type", "topics"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A page as it should be, or why a file goes: `into` is where what is left of it is kept, "" for nowhere."""

    path: str
    text: str | None
    reason: str
    into: str = ""


def write(
    store: Store,
    directory: Path,
    *,
    dream_seq: int,
    now: str,
    facts: Sequence[Fact],
    only: Collection[str] | None = None,
) -> Iterator[str]:
    """Writes the pages that are other than they should be, of `only` some paths; after each its path below the memory directory.

    Each is noted in the dream's journal, unless `dream_seq` is 0. OSError where the disk does not take them.
    """
    tried: dict[str, Wanted] = {}
    todo: list[Wanted] = []
    commits, seen = -1, tuple[object, ...]()
    while True:
        # What was forgotten, walled, purged or read back since the last page is told by none, nor by those that are
        # written already; a hook's turn changes no page.
        if store.commits != commits and (stamp := store.read(markdown_pages.stamp)) != seen:
            seen, known = stamp, store.read(markdown_pages.pages)
            every = store.read(partial(_planned_at_once, known=known, facts=facts, key=store.hash_key))
            purged = store.read(lambda rows: tombstones.marks(rows, store.hash_key))
            todo = [one for one in every if tried.get(one.path) != one and (only is None or one.path in only)]
        if not todo:
            return
        one = todo.pop(0)
        tried[one.path] = one
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
    store.write(lambda rows: markdown_pages.put_page(rows, replace(row, text=text, also="", at=now)))


def changes(
    rows: Rows, directory: Path, *, facts: Sequence[Fact], key: bytes, after: Mapping[str, Memory]
) -> Generator[None, None, list[tuple[Change, frozenset[int]]]]:
    """(which file would be written or removed now and why, the projects that it is of), a page a step; nothing is done.

    `after` are memories as they will be, by id. A file is of no project where that is not known any more.
    """
    known, purged = markdown_pages.pages(rows), tombstones.marks(rows, key)
    own = {place.path: frozenset({place.seq}) for place in stage_standing.places(rows).values()}
    found: list[tuple[Change, frozenset[int]]] = []
    for one in (yield from planned(rows, known, facts=facts, key=key, after=after)):
        yield
        path, row = directory / one.path, known.get(one.path)
        raw = None if path.is_symlink() else content(path)
        if path.is_symlink() or (row is not None and (row.held or row.problem)):
            continue  # it is left alone
        before = None if raw is None else raw.decode("utf-8", "replace")
        if _may_write(raw, row, purged):
            would = change(one.path, before, one.text, why_gone=one.reason)
        else:
            would = Change(path=one.path, do="read", reason="somebody has edited it")
        if would is not None:
            found.append((would, own.get(one.path) or _theirs(rows, one, row)))
    return found


def _theirs(rows: Rows, one: Wanted, row: PageRow | None) -> frozenset[int]:
    """The projects on a theme's page, as it will be, or was where it goes."""
    if not one.path.startswith(pages.TOPICS):
        return frozenset()
    said = one.text if one.text is not None else row.text if row else ""
    return markdown_pages.projects_of(rows, [item.id for _, item in lines.read(said).lines() if item.id])


def planned(
    rows: Rows,
    known: Mapping[str, PageRow],
    *,
    facts: Sequence[Fact],
    key: bytes,
    after: Mapping[str, Memory] = stage_standing.AS_IT_IS,
) -> Generator[None, None, list[Wanted]]:
    """Every page as it should be by what is believed (of `after`, by what will be), and what becomes of those that are no more; a page a step."""
    made = yield from stage_standing.standing(rows, known, facts=facts, key=key, after=after)
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


def _planned_at_once(
    rows: Rows, *, known: Mapping[str, PageRow], facts: Sequence[Fact], key: bytes
) -> Sequence[Wanted]:
    """The same of one moment: what is written goes by what is believed together."""
    steps = planned(rows, known, facts=facts, key=key)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Sequence[Wanted] = end.value
            return found


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
            markdown_pages.remove_page(rows, one.path)
            _note(rows, directory, one, before, dream_seq, now)

        store.write(gone)
        return
    text = one.text
    was = row or PageRow(path=one.path, text="", at=now)

    def noted(rows: Rows) -> None:
        markdown_pages.put_page(rows, replace(was, also=text))
        _note(rows, directory, one, before, dream_seq, now)

    store.write(noted)
    put(path, text)
    store.write(lambda rows: markdown_pages.put_page(rows, replace(was, text=text, also="", at=now, problem="")))


def _keep(store: Store, directory: Path, into: str, row: PageRow, *, dream_seq: int, now: str) -> None:
    """Puts what is left of a retired page aside: its lines that are still believed, and what a person wrote there.

    Of a theme's page no line that has gone behind a wall since: that is of no project alone.
    """
    walled = {seq for seq, *_, is_walled in store.read(markdown_pages.page_places) if is_walled}
    if not row.path.startswith(pages.TOPICS):
        walled = set()
    alive = {memory.id for memory in store.read(markdown_pages.alive) if memory.project_seq not in walled}
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
    more = {name: value for name, value in stage_standing.was(row).head.items() if name not in OURS}
    return replace(page, head={**page.head, **more} if page.head else page.head)
