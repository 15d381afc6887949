"""Writes the pages on disk, previews their changes, and removes the lines of forgotten memories."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from csmd import wire
from csmd.dream import page_content, page_format
from csmd.dream.actions import Fact
from csmd.dream.page_content import EMPTY_PAGE, Annotations, Place
from csmd.dream.page_format import Page, Section
from csmd.dream.themes import Theme, ThemeSources, choose_themes
from csmd.knowledge import Memory
from csmd.privacy.fingerprints import Marks, remove_purged
from csmd.privacy.redaction import redact
from csmd.store import candidates, failures, files, journal, page_lines, stored_pages, tombstones, topics
from csmd.store.core import Store, run_to_end
from csmd.store.memories import active_memories
from csmd.store.sqlite import Rows
from csmd.store.stored_pages import PageRow
from csmd.text import display, markdown
from csmd.vocabulary import INDEX

#: Directory of retired pages, below the memory directory.
ARCHIVE = "archive/"
#: Keys of a page's head that csmd writes; any other one is a person's and stays.
CSMD_HEAD_KEYS = frozenset({"name", "description", "type", "topics"})


# --- building pages


def parse_stored(row: PageRow | None) -> Page:
    """Parses a page as csmd last stored it."""
    return page_format.parse_page(row.text) if row else EMPTY_PAGE


def find_places(rows: Rows) -> dict[int, Place]:
    """Returns the projects, the workspaces and what holds everywhere, by row key."""
    stored = stored_pages.list_page_scopes(rows)
    numbers = Counter((name, walled) for _, _, name, _, walled in stored)
    return {
        seq: Place(
            seq=seq, key=key, name=name, root=root, walled=walled,
            title="/".join(PurePath(root).parts[-2:]) if numbers[name, walled] > 1 and root else "",
        )
        for seq, key, name, root, walled in stored
    }  # fmt: skip


def build_pages(
    rows: Rows, page_rows: Mapping[str, PageRow], *, facts: Sequence[Fact], key: bytes, after: Mapping[str, Memory] = {}
) -> Generator[None, None, list[Page]]:
    """Builds the pages of projects and themes and the index, one page a step.

    `after` are memories as they will be, by id.
    """
    places = find_places(rows)
    questioned = {memory_id for memory_id, _ in stored_pages.questioned_lines(rows)}
    memories: dict[int, list[Memory]] = {seq: [] for seq in places}
    for stored in active_memories(rows):
        memory = after.get(stored.id, stored)
        if memory.id not in questioned and memory.project_seq in places and page_content.may_be_listed(memory):
            memories[memory.project_seq].append(memory)
    every = [memory for of_place in memories.values() for memory in of_place]
    tags = topics.topics_of_memories(rows, [memory.seq for memory in every])
    annotations, waiting = _read_annotations(rows, every)
    may_show = cache(page_content.has_text)  # a memory may be on several pages
    pages: list[Page] = []
    for seq, place in places.items():
        row = page_rows.get(place.path)
        previous = parse_stored(row)
        left_out = frozenset(row.left_out if row else ())
        numbers = Counter(tags[memory.seq][0].name for memory in memories[seq] if tags.get(memory.seq))
        page = page_content.build_page(
            place, memories[seq], themes=sorted(numbers, key=lambda name: (-numbers[name], name)),
            facts=[fact for fact in facts
                   if fact.project_seq == seq and page_content.hash_counted(fact.text, key) not in left_out],
            annotations=replace(annotations, new=waiting.get(seq, ())), previous=previous, may_show=may_show,
        )  # fmt: skip
        pages += [page] if page else []
        yield
    listed = frozenset(item.id for page in pages for section in page.sections for item in section.items)
    common = {seq: place for seq, place in places.items() if not place.walled}
    current = [memory for seq in common for memory in page_content.drop_old_plans(memories[seq])]
    themed = yield from _build_theme_pages(page_rows, current, tags, common, annotations, listed, may_show)
    times = {place.path: [memory.confirmed_at for memory in memories[seq]] for seq, place in common.items()}
    latest = {path: max(stated, default="") for path, stated in times.items()}
    indexed = [page for page in pages if page.path in latest]
    indexed.sort(key=lambda page: (page.path == markdown.USER, latest[page.path], page.path), reverse=True)
    return [*pages, *themed, page_content.build_index([*indexed, *themed], parse_stored(page_rows.get(INDEX)))]


def _read_annotations(rows: Rows, memories: Sequence[Memory]) -> tuple[Annotations, dict[int, list[tuple[str, str]]]]:
    """Returns the notes shown with memories, and by project the lines (heading, text) that wait to become memories."""
    ids = {memory.seq: memory.id for memory in memories}
    symptoms = failures.list_symptoms(rows, [memory.seq for memory in memories if memory.category == "gotcha"])
    waits: dict[str, list[str]] = defaultdict(list)
    new: dict[int, list[tuple[str, str]]] = defaultdict(list)
    memory_ids = frozenset(ids.values())
    for call in candidates.list_waiting_wordings(rows):
        if memory_id := next(filter(memory_ids.__contains__, call.memory_ids), ""):
            waits[memory_id].append(call.text)
        else:
            new[call.project_seq].append((page_content.find_waiting_heading(call.gate, call.category), call.text))
    shows = {ids[seq]: tuple(text for _, _, text in reports) for seq, reports in symptoms.items()}
    return Annotations(symptoms=shows, waits=waits), new


def _build_theme_pages(
    page_rows: Mapping[str, PageRow], memories: Sequence[Memory], tags: Mapping[int, Sequence[topics.TopicTag]],
    places: Mapping[int, Place], annotations: Annotations, listed: frozenset[str], may_show: Callable[[Memory], bool],
) -> Generator[None, None, list[Page]]:  # fmt: skip
    tagged: dict[str, set[str]] = defaultdict(set)
    for memory in memories:
        for tag in tags.get(memory.seq, ()):
            tagged[tag.name].add(memory.id)
    last = {path: parse_stored(row) for path, row in sorted(page_rows.items()) if path.startswith(markdown.TOPICS)}
    paths = {str(page.head.get("name", "")): path for path, page in last.items()}
    paged: dict[str, Theme] = {}
    for name, path in paths.items():
        also = last[path].head.get("topics")
        members = frozenset(item.id for _, item in last[path].lines() if item.id)
        paged[name] = Theme(name=name, members=members, also=tuple(map(str, also)) if isinstance(also, list) else ())
    by_id = {memory.id: memory for memory in memories}
    project_of = {memory.id: memory.project_seq for memory in memories}
    used_paths = set(last)
    pages = []
    for theme in choose_themes(ThemeSources(tagged=tagged, paged=paged, listed=listed, project_of=project_of)):
        path = paths.get(theme.name, f"{markdown.TOPICS}{markdown.slugify(theme.name)}.md")
        if theme.name not in paths and path in used_paths:
            path = f"{path.removesuffix('.md')}-{markdown.short_hash(theme.name)}.md"
        used_paths.add(path)
        of_theme = [by_id[memory_id] for memory_id in sorted(theme.members)]
        theme_places = {seq: places[seq] for seq in {memory.project_seq for memory in of_theme}}
        previous = last.get(path, EMPTY_PAGE)
        page = page_content.build_theme_page(
            theme, path, of_theme, theme_places, listed, annotations=annotations, previous=previous, may_show=may_show
        )
        pages.append(page)
        yield
    return pages


# --- planning and writing


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """A page as it should be.

    `text` is None if its file is to be removed, `into` the file for what remains of it or "".
    """

    path: str
    text: str | None
    reason: str
    into: str = ""


def plan_pages(
    rows: Rows, page_rows: Mapping[str, PageRow], *, facts: Sequence[Fact], key: bytes, after: Mapping[str, Memory] = {}
) -> Generator[None, None, list[PlannedFile]]:
    """Plans every page, and the removal of retired ones, from the stored memories or those `after` a dream."""
    pages = yield from build_pages(rows, page_rows, facts=facts, key=key, after=after)
    planned = []
    for page in pages:
        if page.head:
            stored_head = parse_stored(page_rows.get(page.path)).head
            own_keys = {name: stored_head[name] for name in stored_head if name not in CSMD_HEAD_KEYS}
            page = replace(page, head={**page.head, **own_keys})
        text = redact(page_format.render_page(page), Counter())  # older rules may have let secrets through
        planned.append(PlannedFile(path=page.path, text=text, reason="its memories have changed"))
    for path in sorted(page_rows.keys() - {page.path for page in pages}):
        is_topic = path.startswith(markdown.TOPICS)
        is_kept = is_topic or page_format.has_own_words(parse_stored(page_rows[path]), page_content.is_csmd_heading)
        reason = "the theme has too few memories" if is_topic else "no memory is left"
        planned.append(PlannedFile(path=path, text=None, reason=reason, into=f"{ARCHIVE}{path}" if is_kept else ""))
    return planned


def write_pages(
    store: Store, directory: Path, *, dream_seq: int, now: str, facts: Sequence[Fact],
    only: Collection[str] | None = None,
) -> Iterator[str]:  # fmt: skip
    """Writes the pages that have changed (with `only`, of some paths); yields each path below the memory directory.

    Each is recorded in the dream's journal, unless `dream_seq` is 0. OSError if the disk refuses them.
    """
    writer = _Writer(directory, dream_seq, now)
    tried: dict[str, PlannedFile] = {}
    todo: list[PlannedFile] = []
    commits, planned_stamp = -1, tuple[object, ...]()
    while True:
        # The plan is made again after each commit that changes pages, so that none shows memories that were forgotten,
        # walled or purged meanwhile.
        if store.commits != commits and (stamp := store.read(stored_pages.read_content_stamp)) != planned_stamp:
            planned_stamp, page_rows = stamp, store.read(stored_pages.read_pages)
            # One read plans all pages, so that they agree.
            plan = partial(plan_pages, page_rows=page_rows, facts=facts, key=store.hash_key)
            planned = store.read(lambda rows, plan=plan: run_to_end(plan(rows)))  # type: ignore[misc]
            purged = store.read(lambda rows: tombstones.purged_marks(rows, store.hash_key))
            todo = [file for file in planned if tried.get(file.path) != file and (only is None or file.path in only)]
        if not todo:
            return
        file = todo.pop(0)
        tried[file.path] = file
        is_written = writer.bring_up_to_date(store, file, page_rows.get(file.path), purged)
        commits = store.commits
        if is_written:
            yield file.path


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes and removes the files of pages, recorded in the journal of a dream (0: in none)."""

    directory: Path
    dream_seq: int
    now: str

    def bring_up_to_date(self, store: Store, file: PlannedFile, row: PageRow | None, purged: Marks) -> bool:
        """Writes or removes a file if it has changed and csmd may write it; returns whether it was."""
        raw = files.read_plain(self.directory / file.path, page_format.READ_BYTES)
        if not _may_write(raw, row, purged):
            return False
        before, text = None if raw is None else raw.decode("utf-8", "replace"), file.text
        previous = row or PageRow(path=file.path, text="", at=self.now)
        if before == text:
            if text is not None and row is not None and row.text != text:
                # It was written before the daemon was killed, but not stored.
                _put_page(store, replace(row, text=text, also="", at=self.now))
            return False
        if text is None and file.into and row is not None:
            self._set_aside(store, file.into, row)

        def begin(rows: Rows) -> None:
            if text is None:
                stored_pages.remove_page(rows, file.path)
            else:
                stored_pages.put_page(rows, replace(previous, also=text))
            # A person may have typed a secret there: an undo restores the page without it.
            redacted = None if before is None else redact(before, Counter())
            self._record(rows, file.path, before=redacted, after=text, reason=file.reason)

        if text is None:
            (self.directory / file.path).unlink(missing_ok=True)
            store.write(begin)
        else:
            store.write(begin)
            write_page(self.directory / file.path, text)
            _put_page(store, replace(previous, text=text, also="", at=self.now, problem=""))
        return True

    def _record(self, rows: Rows, path: str, *, before: str | None, after: str | None, reason: str) -> None:
        if self.dream_seq:
            path = f"{self.directory.name}/{path}"
            dream, now = self.dream_seq, self.now
            journal.record_file(rows, dream, reason=reason, path=path, before=before, after=after, now=now)

    def _set_aside(self, store: Store, into: str, row: PageRow) -> None:
        """Moves the lines of existing memories and a person's words from a retired page to another file.

        A theme's page is common to all projects, so memories behind a wall are left out.
        """
        walled: set[int] = set()
        if row.path.startswith(markdown.TOPICS):
            walled = {seq for seq, *_, is_walled in store.read(stored_pages.list_page_scopes) if is_walled}
        active = store.read(active_memories)
        alive = {memory.id for memory in active if memory.project_seq not in walled}
        page = parse_stored(row)
        remaining: list[Section] = []
        for section in page.sections:
            section = page_format.map_items(section, lambda item: item if item.id in alive else None)
            is_theirs = section.notes or not page_content.is_csmd_heading(section.heading)
            if section.heading != page_format.OWN_NOTES and (section.items or is_theirs):
                remaining.append(section)
        remains = replace(page, title=str(page.head.get("name", "")), sections=tuple(remaining))
        text, path, number = page_format.render_page(remains), into, 1
        while (raw := files.read_plain(self.directory / path)) not in (None, text.encode("utf-8", "replace")):
            number += 1
            path = f"{into.removesuffix('.md')}-{number}.md"
        if raw is None:
            write_page(self.directory / path, text)
            store.write(partial(self._record, path=path, before=None, after=text, reason="a page was retired"))


def _put_page(store: Store, page: PageRow) -> None:
    store.write(partial(stored_pages.put_page, page=page))


def write_page(path: Path, text: str) -> None:
    """Writes a page and makes its directory private."""
    files.make_private(path.parent)
    files.write_atomic(path, text.encode("utf-8", "replace"))


def read_clean(raw: bytes, purged: Marks) -> tuple[str, str]:
    """Returns a file's text without secrets and purged words, and why it cannot be read or ""."""
    text, problem = page_format.decode_page(raw)
    return remove_purged(redact(wire.clean(text), Counter()), purged)[0], problem


def is_unedited(raw: bytes | None, row: PageRow | None, purged: Marks) -> bool:
    """Whether a file is as csmd stored it."""
    if raw is None or row is None:
        return raw is None and row is None
    text, problem = read_clean(raw, purged)
    return not problem and row.is_unedited(text)


def _may_write(raw: bytes | None, row: PageRow | None, purged: Marks) -> bool:
    if row is None:
        return raw is None
    return not (row.held or row.problem) and (is_unedited(raw, row, purged) or (raw is None and bool(row.also)))


# --- previewing


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A planned change of a file below the memory directory; `read`: a person's edit is read first."""

    path: str
    do: Literal["begin", "write", "remove", "read"]
    reason: str


def preview_changes(
    rows: Rows, directory: Path, *, facts: Sequence[Fact], key: bytes, after: Mapping[str, Memory]
) -> Generator[None, None, list[tuple[Change, frozenset[int]]]]:
    """Returns the planned changes of files, each with the projects of the file; changes nothing.

    `after` are memories as they will be, by id.
    """
    page_rows, purged = stored_pages.read_pages(rows), tombstones.purged_marks(rows, key)
    own = {place.path: frozenset({place.seq}) for place in find_places(rows).values()}
    changes: list[tuple[Change, frozenset[int]]] = []
    for file in (yield from plan_pages(rows, page_rows, facts=facts, key=key, after=after)):
        yield
        path, row = directory / file.path, page_rows.get(file.path)
        if path.is_symlink() or (row is not None and (row.held or row.problem)):
            continue  # csmd does not touch it
        raw = files.read_plain(path, page_format.READ_BYTES)
        change: Change | None = Change(path=file.path, do="read", reason="it was edited")
        if _may_write(raw, row, purged):
            before = None if raw is None else raw.decode("utf-8", "replace")
            change = describe_change(file.path, before, file.text, removal_reason=file.reason)
        if change is not None:
            changes.append((change, own.get(file.path) or _find_page_projects(rows, file, row)))
    return changes


def _find_page_projects(rows: Rows, file: PlannedFile, row: PageRow | None) -> frozenset[int]:
    """Returns the projects on a theme's planned page, or on the present one if it is to be removed."""
    if not file.path.startswith(markdown.TOPICS):
        return frozenset()
    text = file.text if file.text is not None else row.text if row else ""
    memory_ids = [item.id for _, item in page_format.parse_page(text).lines() if item.id]
    return stored_pages.list_projects_of_memories(rows, memory_ids)


def describe_change(path: str, before: str | None, after: str | None, *, removal_reason: str = "") -> Change | None:
    """Describes the change of a file from `before` to `after` (None: no file); None if nothing changes."""
    if before == after:
        return None
    if after is None:
        return Change(path=path, do="remove", reason=removal_reason)
    old_lines, new_lines = _map_lines(before or ""), _map_lines(after)
    if before is None:
        lines = display.amount(len(new_lines), "line") if new_lines else "no line yet"
        return Change(path=path, do="begin", reason=lines)
    old_ids, new_ids = old_lines.keys(), new_lines.keys()
    changed = sum(old_lines[line] != new_lines[line] for line in old_ids & new_ids)
    counts = ((len(new_ids - old_ids), "new"), (len(old_ids - new_ids), "gone"), (changed, "in other words"))
    reasons = [f"{display.amount(number, 'line')} {change}" for number, change in counts if number]
    return Change(path=path, do="write", reason=", ".join(reasons) or "head, order or headings")


def _map_lines(text: str) -> dict[str, str]:
    """Maps the id of a line's memory, or the words of a line without one, to its words."""
    items = (item for _, item in page_format.parse_page(text).lines())
    return {item.id or words: words for item in items for words in [markdown.line_key(item.text)]}


# --- forgetting


class _KnownLines(NamedTuple):
    """Lines of pages as (row key of the project or None for any, words): those of deleted and of living memories.

    `suspects` are all words that may have been forgotten.
    """

    gone: Collection[tuple[int | None, str]]
    living: Collection[tuple[int | None, str]]
    suspects: Collection[str]


def remove_forgotten_lines(store: Store, directory: Path) -> int:
    """Removes the lines of deleted memories from all pages, files and rows; returns how many pages had some.

    OSError if the disk refuses a page.
    """
    pages = store.read(stored_pages.read_pages)
    lines = store.read(lambda rows: _classify_lines(rows, pages.values()))

    def clean_text(path: str, text: str) -> tuple[str, int]:
        return store.read(partial(_remove_gone_lines, path=path, text=text, lines=lines, key=store.hash_key))

    def clean_file(path: str) -> bool:
        raw = files.read_plain(directory / path, page_format.READ_BYTES)
        cleaned, number = clean_text(path, page_format.decode_page(raw)[0] if raw else "")
        if number:
            write_page(directory / path, cleaned)
        return number > 0

    changed = 0
    for row in pages.values():
        # The file first: a line that the row no longer has would be read as new.
        was_cleaned = clean_file(row.path)
        cleaned = replace(row, text=clean_text(row.path, row.text)[0], also=clean_text(row.path, row.also)[0])
        if cleaned != row:
            _put_page(store, cleaned)
        changed += was_cleaned or cleaned != row
    # Restored copies of truncated pages, and retired pages.
    for pattern in ("*.restored-*.md", "[pt]*/*.restored-*.md", f"{ARCHIVE}[pt]*/*.md"):
        changed += sum(clean_file(path.relative_to(directory).as_posix()) for path in sorted(directory.glob(pattern)))
    return changed


def _remove_gone_lines(rows: Rows, *, path: str, text: str, lines: _KnownLines, key: bytes) -> tuple[str, int]:
    project = stored_pages.find_page_project(rows, path)

    def is_gone(words: str) -> bool:
        if (project, words) in lines.living:
            return False
        is_forgotten = partial(stored_pages.is_forgotten, rows, words, project=project, key=key)
        return (project, words) in lines.gone or (words in lines.suspects and is_forgotten())

    return page_lines.remove_lines(text, lambda ids: stored_pages.missing_memories(rows, ids), is_gone)


def _classify_lines(rows: Rows, pages: Iterable[PageRow]) -> _KnownLines:
    words_of: dict[str, set[tuple[int | None, str]]] = defaultdict(set)
    for row in pages:
        project = stored_pages.find_page_project(rows, row.path)
        for text in (row.text, row.also):
            for _, item in page_format.parse_page(text).lines():
                words = markdown.line_key(item.text)
                words_of[item.id] |= {(project, words), (None, words)}
    bare = words_of.pop("", set())
    missing = stored_pages.missing_memories(rows, list(words_of))
    gone = {line for memory_id in missing for line in words_of[memory_id]}
    living = {line for memory_id, lines in words_of.items() if memory_id not in missing for line in lines}
    return _KnownLines(gone=gone, living=living, suspects={words for _, words in bare | gone})
