"""Brings the pages on disk up to date, journalled."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from csmd import wire
from csmd.dream import page_content, page_format
from csmd.dream.actions import Fact
from csmd.dream.page_content import Beside, Place, Theme
from csmd.dream.page_format import Page, Read
from csmd.hosts.claude.environment import INDEX
from csmd.model import Memory
from csmd.privacy.fingerprints import Marks, clean
from csmd.privacy.redaction import redact
from csmd.recall import threads
from csmd.store import dreams, failures, files, markdown_pages, tombstones, topics
from csmd.store.core import Store, run_to_end
from csmd.store.markdown_pages import PageRow
from csmd.store.sqlite import Rows
from csmd.text import display, page_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would become of one file below the memory directory; `read`: an edit in it is read first, whatever comes of it."""

    path: str
    do: Literal["begin", "write", "remove", "read"]
    reason: str


def describe_change(path: str, before: str | None, after: str | None, *, why_gone: str = "") -> Change | None:
    """What becomes of a file that says `before` (None: there is none) and should say `after`; None for nothing."""
    if before == after:
        return None
    if after is None:
        return Change(path=path, do="remove", reason=why_gone)
    is_now = _lines(after)
    if before is None:
        return Change(path=path, do="begin", reason=display.amount(len(is_now), "line") if is_now else "no line yet")
    was = _lines(before)
    counts = (
        (len(is_now.keys() - was.keys()), "new"),
        (len(was.keys() - is_now.keys()), "gone"),
        (sum(was[one] != is_now[one] for one in was.keys() & is_now.keys()), "in other words"),
    )
    said = [f"{display.amount(number, 'line')} {what}" for number, what in counts if number]
    return Change(path=path, do="write", reason=", ".join(said) or "its head, its order or its headings")


def _lines(said: str) -> dict[str, str]:
    """The lines of a page: by the memory, or the words, what each says."""
    return {
        item.id or page_lines.key(item.text): page_lines.key(item.text)
        for _, item in page_format.parse_page(said).lines()
    }


#: Where no memory is to become another.
AS_IT_IS: Mapping[str, Memory] = {}


def read_last(row: PageRow | None) -> Read:
    """What a page said when csmd knew it last."""
    return page_format.parse_page(row.text) if row else page_content.NOBODYS


def find_places(rows: Rows) -> dict[int, Place]:
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


def build_pages(
    rows: Rows, known: Mapping[str, PageRow], *, facts: Sequence[Fact], key: bytes,
    after: Mapping[str, Memory] = AS_IT_IS,
) -> Generator[None, None, list[Page]]:  # fmt: skip
    """The pages, user.md and the projects first (those with the latest word before others), then themes and the index; a page a step."""
    where = find_places(rows)
    asked = {ident for ident, _ in markdown_pages.questioned_lines(rows)}
    of: dict[int, list[Memory]] = {seq: [] for seq in where}
    for one in markdown_pages.active_memories(rows):
        memory = after.get(one.id, one)
        if memory.id not in asked and memory.project_seq in where and page_content.may_stand(memory):
            of[memory.project_seq].append(memory)
    told = [memory for memories in of.values() for memory in memories]
    tags = topics.of_memories(rows, [one.seq for one in told])
    beside, new = _beside(rows, told)
    made: list[Page] = []
    for seq, place in where.items():
        row = known.get(place.path)
        before = _before(rows, of[seq], read_last(row))
        beside = replace(beside, before={**beside.before, **before})
        over = {one.id for olds in before.values() for one in olds}
        of[seq] = [one for one in of[seq] if one.id not in over]
        out = frozenset(row.left_out) if row else frozenset[str]()
        common = Counter(tags[one.seq][0].name for one in of[seq] if tags.get(one.seq))
        page = page_content.build_page(
            place, of[seq], facts=[one for one in facts if one.project_seq == seq],
            themes=sorted(common, key=lambda name: (-common[name], name)),
            left_out=lambda said, out=out: page_content.counted_hash(said, key) in out,  # type: ignore[misc]
            beside=replace(beside, new=new.get(seq, ())), was=read_last(row),
        )  # fmt: skip
        made += [page] if page else []
        yield
    open_ones = {seq: place for seq, place in where.items() if not place.walled}
    listed = frozenset(item.id for page in made for section in page.sections for item in section.items)
    themed = yield from _themes(
        known,
        [one for seq in open_ones for one in page_content.drop_old_plans(of[seq])],
        tags,
        open_ones,
        beside,
        listed,
    )
    latest = {place.path: max((one.confirmed_at for one in of[seq]), default="") for seq, place in open_ones.items()}
    common_pages = [page for page in made if page.path in latest]
    common_pages.sort(key=lambda page: (page.path == page_lines.USER, latest[page.path], page.path), reverse=True)
    return [*made, *themed, page_content.build_index([*common_pages, *themed], read_last(known.get(INDEX)))]


def _before(rows: Rows, told: Sequence[Memory], was: Read) -> dict[str, tuple[Memory, ...]]:
    """Memory (id) -> those of a place whose place it took, among as many as are looked at for a page."""
    surest = heapq.nlargest(round(page_content.CONSIDERED * page_content.PAGE_LINES), told, key=page_content.sureness)
    return page_content.find_replaced(surest, threads.find_replaced(rows, surest), was)


def _beside(rows: Rows, told: Sequence[Memory]) -> tuple[Beside, dict[int, list[tuple[str, str]]]]:
    """What stands beside memories, and the lines that wait to be some, by their places."""
    ids = {one.seq: one.id for one in told}
    known = frozenset(ids.values())
    symptoms = failures.symptoms_of(rows, [one.seq for one in told if one.category == "gotcha"])
    waits: dict[str, list[str]] = {}
    new: dict[int, list[tuple[str, str]]] = {}
    for one in markdown_pages.waiting_calls(rows):
        of = next((ident for ident in one.memory_ids if ident in known), "")
        if of:
            waits.setdefault(of, []).append(one.text)
        else:
            new.setdefault(one.project_seq, []).append((page_content.heading_of(one.gate, one.category), one.text))
    shows = {ids[seq]: tuple(said for _, _, said in found) for seq, found in symptoms.items()}
    return Beside(shows=shows, waits=waits), new


def _themes(
    known: Mapping[str, PageRow], told: Sequence[Memory], tags: Mapping[int, Sequence[topics.Tagged]],
    where: Mapping[int, Place], beside: Beside, listed: frozenset[str],
) -> Generator[None, None, list[Page]]:  # fmt: skip
    tagged: dict[str, set[str]] = {}
    by_id = {memory.id: memory for memory in told}
    for memory in told:
        for tag in tags.get(memory.seq, ()):
            tagged.setdefault(tag.name, set()).add(memory.id)
    paths: dict[str, str] = {}
    paged: dict[str, Theme] = {}
    for path, row in sorted(known.items()):
        if path.startswith(page_lines.TOPICS):
            read = read_last(row)
            name, also = str(read.head.get("name", "")), read.head.get("topics")
            paths[name] = path
            members = frozenset(item.id for _, item in read.lines() if item.id)
            paged[name] = Theme(
                name=name, members=members, also=tuple(map(str, also)) if isinstance(also, list) else ()
            )
    project_of = {one.id: one.project_seq for one in told}
    found = page_content.Known(tagged=tagged, paged=paged, listed=listed, project_of=project_of)
    taken = set(paths.values())
    made = []
    for theme in page_content.choose_themes(found):
        path = paths.get(theme.name) or _topic_path(theme.name, taken)
        taken.add(path)
        theirs = [by_id[ident] for ident in sorted(theme.members)]
        there = {seq: where[seq] for seq in {one.project_seq for one in theirs}}
        made.append(
            page_content.build_theme_page(
                theme, path, theirs, there, listed, beside=beside, was=read_last(known.get(path))
            )
        )
        yield
    return made


def _topic_path(name: str, taken: Collection[str]) -> str:
    """Where a new theme's page goes; one of the same name in a file keeps it."""
    path = f"{page_lines.TOPICS}{page_lines.slug(name)}.md"
    return path if path not in taken else f"{path.removesuffix('.md')}-{page_lines.short(name)}.md"


class _Known(NamedTuple):
    """(place of a page, words of a line there) that csmd knows, place None for any: under ids of memories that are no more,
    and under those of living ones; and all words that may have been forgotten.
    """

    gone: Collection[tuple[int | None, str]]
    living: Collection[tuple[int | None, str]]
    asked: Collection[str]


def withdraw(store: Store, directory: Path) -> int:
    """Takes the lines of memories that are no more out of all pages, files and rows alike; how many had some.

    OSError where the disk does not take a page.
    """
    done = 0
    pages = store.read(markdown_pages.pages)
    known = store.read(lambda rows: _known(rows, pages.values()))
    for row in pages.values():
        # The file first: while the row knows the line, it is no new one.
        had = _from_file(store, directory, row.path, known)
        without = partial(_without, path=row.path, known=known, key=store.hash_key)
        text, also = (store.read(partial(without, said=one))[0] for one in (row.text, row.also))
        left = replace(row, text=text, also=also)
        if left != row:
            store.write(partial(markdown_pages.put_page, page=left))
        done += had or left != row
    # Whole pages beside pages that lost too much, and what is put aside.
    for pattern in ("*.restored-*.md", "[pt]*/*.restored-*.md", f"{ARCHIVE}[pt]*/*.md"):
        for path in sorted(directory.glob(pattern)):
            done += _from_file(store, directory, path.relative_to(directory).as_posix(), known)
    return done


def _from_file(store: Store, directory: Path, named: str, known: _Known) -> bool:
    path = directory / named
    raw = None if path.is_symlink() else read_bytes(path)
    said = "" if raw is None else page_format.decode_page(raw)[0]
    left, gone = store.read(partial(_without, said=said, path=named, known=known, key=store.hash_key))
    if gone:
        write_page(path, left)
    return gone > 0


def _without(rows: Rows, *, said: str, path: str, known: _Known, key: bytes) -> tuple[str, int]:
    place = markdown_pages.place_of(rows, path)

    def is_unsaid(words: str) -> bool:
        if (place, words) in known.living:
            return False
        is_gone = (place, words) in known.gone
        return is_gone or (words in known.asked and markdown_pages.is_forgotten(rows, words, place=place, key=key))

    return markdown_pages.without_lines(said, lambda ids: markdown_pages.missing_lines(rows, ids), is_unsaid)


def _known(rows: Rows, pages: Iterable[PageRow]) -> _Known:
    said: dict[str, set[tuple[int | None, str]]] = defaultdict(set)
    for row in pages:
        place = markdown_pages.place_of(rows, row.path)
        for body in (row.text, row.also):
            for _, item in page_format.parse_page(body).lines():
                words = page_lines.key(item.text)
                said[item.id] |= {(place, words), (None, words)}
    bare = said.pop("", set())
    missing = markdown_pages.missing_lines(rows, list(said))
    gone = {one for ident in missing for one in said[ident]}
    living = {one for ident, found in said.items() if ident not in missing for one in found}
    return _Known(gone=gone, living=living, asked={words for _, words in bare | gone})


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
    store: Store, directory: Path, *, dream_seq: int, now: str, facts: Sequence[Fact],
    only: Collection[str] | None = None,
) -> Iterator[str]:  # fmt: skip
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
            # What is written goes by what is believed together.
            plan = partial(plan_pages, known=known, facts=facts, key=store.hash_key)
            every = store.read(lambda rows, plan=plan: run_to_end(plan(rows)))  # type: ignore[misc]
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
    raw = None if path.is_symlink() else read_bytes(path)  # a link leads to somebody's own file
    if path.is_symlink() or not _may_write(raw, row, purged):
        return False
    before = None if raw is None else raw.decode("utf-8", "replace")
    if before != one.text:
        _carry_out(store, directory, one, row, before, dream_seq=dream_seq, now=now)
    elif row is not None and one.text is not None and row.text != one.text:
        # It stands as it was to be written: the daemon was killed before it could say so.
        store.write(partial(markdown_pages.put_page, page=replace(row, text=one.text, also="", at=now)))
    return before != one.text


def preview_changes(
    rows: Rows, directory: Path, *, facts: Sequence[Fact], key: bytes, after: Mapping[str, Memory]
) -> Generator[None, None, list[tuple[Change, frozenset[int]]]]:
    """(which file would be written or removed now and why, the projects that it is of), a page a step; nothing is done.

    `after` are memories as they will be, by id. A file is of no project where that is not known any more.
    """
    known, purged = markdown_pages.pages(rows), tombstones.marks(rows, key)
    own = {place.path: frozenset({place.seq}) for place in find_places(rows).values()}
    found: list[tuple[Change, frozenset[int]]] = []
    for one in (yield from plan_pages(rows, known, facts=facts, key=key, after=after)):
        yield
        path, row = directory / one.path, known.get(one.path)
        raw = None if path.is_symlink() else read_bytes(path)
        if path.is_symlink() or (row is not None and (row.held or row.problem)):
            continue  # it is left alone
        before = None if raw is None else raw.decode("utf-8", "replace")
        if _may_write(raw, row, purged):
            would = describe_change(one.path, before, one.text, why_gone=one.reason)
        else:
            would = Change(path=one.path, do="read", reason="somebody has edited it")
        if would is not None:
            found.append((would, own.get(one.path) or _theirs(rows, one, row)))
    return found


def _theirs(rows: Rows, one: Wanted, row: PageRow | None) -> frozenset[int]:
    """The projects on a theme's page, as it will be, or was where it goes."""
    if not one.path.startswith(page_lines.TOPICS):
        return frozenset()
    said = one.text if one.text is not None else row.text if row else ""
    return markdown_pages.projects_of(rows, [item.id for _, item in page_format.parse_page(said).lines() if item.id])


def plan_pages(
    rows: Rows, known: Mapping[str, PageRow], *, facts: Sequence[Fact], key: bytes,
    after: Mapping[str, Memory] = AS_IT_IS,
) -> Generator[None, None, list[Wanted]]:  # fmt: skip
    """Every page as it should be by what is believed (of `after`, by what will be), and what becomes of those that are no more; a page a step."""
    made = yield from build_pages(rows, known, facts=facts, key=key, after=after)
    wanted = [
        Wanted(
            path=page.path,
            text=page_format.render_page(_with_head(page, known.get(page.path))),
            reason="what is believed has changed",
        )
        for page in made
    ]
    there = {page.path for page in made}
    for path in sorted(known.keys() - there):
        left = page_format.has_theirs(page_format.parse_page(known[path].text), page_content.is_ours)
        is_topic = path.startswith(page_lines.TOPICS)
        why = "the theme is hardly spoken of" if is_topic else "nothing is known of it any more"
        into = f"{ARCHIVE}{path}" if is_topic or left else ""
        wanted.append(Wanted(path=path, text=None, reason=why, into=into))
    return wanted


def read_bytes(path: Path) -> bytes | None:
    """The bytes of a file, one more than a page may have; None where there is none."""
    try:
        with files.open_regular(path) as file:
            return file.read(page_format.MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError:
        return b"\x00"  # a directory, a pipe, something that is not ours to read: no text


def read_clean(raw: bytes, purged: Marks) -> tuple[str, str]:
    """(what a file says without secrets and what was purged, why it cannot be read: "" for nothing)."""
    said, problem = page_format.decode_page(raw)
    return clean(redact(wire.clean(said), Counter()), purged)[0], problem


def is_read(raw: bytes | None, row: PageRow | None, purged: Marks) -> bool:
    """Whether a file says what csmd knows of it: then there is no edit in it."""
    if raw is None or row is None:
        return raw is None and row is None
    said, problem = read_clean(raw, purged)
    return not problem and row.is_unedited(said)


def _may_write(raw: bytes | None, row: PageRow | None, purged: Marks) -> bool:
    if row is None:
        return raw is None
    return not (row.held or row.problem) and (is_read(raw, row, purged) or (raw is None and bool(row.also)))


def _carry_out(
    store: Store, directory: Path, one: Wanted, row: PageRow | None, before: str | None, *, dream_seq: int, now: str
) -> None:
    path, text = directory / one.path, one.text
    # What somebody typed into the file may hold a secret: undo gives the page back without it.
    before = None if before is None else redact(before, Counter())

    def note(rows: Rows, page: PageRow | None) -> None:
        if page is None:
            markdown_pages.remove_page(rows, one.path)
        else:
            markdown_pages.put_page(rows, page)
        if dream_seq:
            named = f"{directory.name}/{one.path}"
            dreams.record_file(rows, dream_seq, reason=one.reason, path=named, before=before, after=text, now=now)

    if text is None:
        if one.into and row is not None:
            _keep(store, directory, one.into, row, dream_seq=dream_seq, now=now)
        path.unlink(missing_ok=True)
        store.write(partial(note, page=None))
        return
    was = row or PageRow(path=one.path, text="", at=now)
    store.write(partial(note, page=replace(was, also=text)))
    write_page(path, text)
    written = replace(was, text=text, also="", at=now, problem="")
    store.write(partial(markdown_pages.put_page, page=written))


def _keep(store: Store, directory: Path, into: str, row: PageRow, *, dream_seq: int, now: str) -> None:
    """Puts what is left of a retired page aside: its lines that are still believed, and what a person wrote there.

    Of a theme's page no line that has gone behind a wall since: that is of no project alone.
    """
    walled: set[int] = set()
    if row.path.startswith(page_lines.TOPICS):
        walled = {seq for seq, *_, is_walled in store.read(markdown_pages.page_places) if is_walled}
    alive = {memory.id for memory in store.read(markdown_pages.active_memories) if memory.project_seq not in walled}
    read = page_format.parse_page(row.text)
    kept = [
        page_format.map_items(one, lambda item: item if item.id in alive else None)
        for one in read.sections
        if one.heading != page_format.OWN
    ]
    page = Page(
        path=into, head=read.head, title=str(read.head.get("name", "")), top=read.top, own=read.own,
        sections=tuple(one for one in kept if one.items or one.notes or not page_content.is_ours(one.heading)),
    )  # fmt: skip
    text, path = page_format.render_page(page), directory / into
    number = 1
    while (raw := read_bytes(path)) is not None and raw != text.encode("utf-8", "replace"):
        number += 1
        path = directory / f"{into.removesuffix('.md')}-{number}.md"
    if raw is None:
        write_page(path, text)
    if raw is None and dream_seq:
        named = f"{directory.name}/{path.relative_to(directory)}"
        reason = "a page was retired"
        store.write(
            lambda rows: dreams.record_file(
                rows, dream_seq, reason=reason, path=named, before=None, after=text, now=now
            )
        )


def write_page(path: Path, text: str) -> None:
    """Writes a page; its directory is private."""
    files.make_private(path.parent)
    files.write_atomic(path, text.encode("utf-8", "replace"))


def _with_head(page: Page, row: PageRow | None) -> Page:
    """The page with what a person put into its head."""
    more = {name: value for name, value in read_last(row).head.items() if name not in OURS}
    return replace(page, head={**page.head, **more} if page.head else page.head)
