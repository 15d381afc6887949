"""Reads people's edits of pages and carries them out.

A line is identified by the id of its memory, or by its words if an editor removed the comment. Moving a line under
another heading or to another page is not an edit. A page that lost too many lines at once was truncated, by a sync
service or a full disk, and is not read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from csmd.dream import page_content, page_files, page_format
from csmd.dream.page_content import Place
from csmd.dream.page_differences import (
    Edits,
    PageLine,
    find_copies,
    find_edits,
    list_page_words,
    may_write,
)
from csmd.dream.page_format import Item, Page
from csmd.errors import CsmdError
from csmd.extraction.candidate_passages import MAX_CHARACTERS
from csmd.knowledge import Candidate, Evidence, Provenance, Statement
from csmd.memory import remember, review_answers
from csmd.pauses import Pauses
from csmd.privacy.fingerprints import PURGED, Marks
from csmd.store import candidates, files, memories, stored_pages, tombstones, topics
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.store.stored_pages import PageRow
from csmd.text import markdown, tokens
from csmd.vocabulary import INDEX, CandidateKind, Scope

#: Confidence of a line that a person wrote.
WRITTEN_CONFIDENCE = 0.95
#: Confidence of a line that an assistant may have written.
PROPOSED_CONFIDENCE = 0.5
#: The folders of pages.
PAGE_FOLDERS = ("", "projects", "topics")
#: Most files of a folder that are looked at.
MAX_FOLDER_FILES = 2000
NO_PAUSES = Pauses()


# --- carrying edits out


@dataclass(slots=True)
class _Page:
    """One page on disk: its present text, what csmd stored (`base`), and why it cannot be read or ""."""

    row: PageRow
    text: str = ""
    is_there: bool = False
    problem: str = ""
    new: Page = field(default_factory=Page)
    base: Page = field(default_factory=Page)


class EditTransaction:
    """Carries out the edits of one page, in the caller's transaction.

    They are a person's unless a tool may have written the page, or csmd was paused meanwhile (`is_unwatched`). `others`
    are the other pages as they are now.
    """

    def __init__(
        self, rows: Rows, page: _Page, *, directory: str, places: Mapping[str, Place], others: Mapping[str, Page],
        now: str, key: bytes, is_unwatched: bool,
    ) -> None:  # fmt: skip
        self._rows, self._page, self._places, self._others, self._now, self._key = rows, page, places, others, now, key
        self._path = path = page.row.path
        names = list_page_words(directory, path)
        calls = stored_pages.find_calls_naming(rows, names, inside=directory, since=page.row.at)
        # The latest tool call that may have written the page since csmd did.
        is_candidate = partial(may_write, directory=directory, path=path)
        self._call = next((call for call in calls if is_candidate(call.tool, call.text, call.cwd)), None)
        self._is_theirs = self._call is None and not is_unwatched
        self._is_topic = path.startswith(markdown.TOPICS)
        topic_names = page.base.head.get("topics")
        self._topics = [str(name) for name in topic_names] if isinstance(topic_names, list) else []

    def carry_out(self, edits: Edits) -> int:
        """Carries out the edits; returns their number."""
        if self._path == INDEX:
            return self._store_page({}, edits, own=[f"- {line.text}" for line in edits.new])
        memory_ids: dict[tuple[str, str], str] = {}
        own: list[str] = []
        for line in (*edits.changed, *edits.new):
            has_content = bool(tokens.content_words(line.text)) and PURGED not in line.text
            memory_id = self._remember(line) if has_content and len(line.text) <= MAX_CHARACTERS else None
            if memory_id is None:
                own.append(f"- {markdown.to_line(line.text)}")
            else:
                memory_ids[line.id, markdown.line_key(line.text)] = memory_id
        for memory_id in edits.removed_ids:
            self._remove(memory_id)
        if self._is_theirs and edits.restored_ids:
            # A person who put a line back has answered the question about it.
            for candidate in candidates.waiting(self._rows, projects=None, statuses=("needs_review",)):
                is_removal = candidate.source == candidates.PAGE and candidate.kind == "stale"
                if is_removal and not set(edits.restored_ids).isdisjoint(candidate.memory_ids):
                    candidates.set_status(self._rows, candidate, "done", now=self._now)
        return self._store_page(memory_ids, edits, own=own)

    def _store_page(self, memory_ids: Mapping[tuple[str, str], str], edits: Edits, *, own: list[str]) -> int:
        """Stores the present page, each line with its memory; lines that became no memory (`own`) stay the person's."""
        row, new, base = self._page.row, self._page.new, self._page.base
        if not self._page.is_there:
            stored_pages.remove_page(self._rows, self._path)
            return edits.count
        before = {markdown.line_key(item.text): item.id for _, item in base.lines() if item.id}

        def is_theirs(text: str) -> bool:
            """Whether a paragraph is a person's; an editor may have removed csmd's mark from csmd's own paragraphs."""
            return markdown.line_key(text) not in base.generated

        def identify(item: Item, heading: str) -> Item | None:
            if page_content.is_csmd_heading(heading) and f"- {markdown.to_line(item.text)}" in own:
                return None  # it is moved under the person's own heading
            key = markdown.line_key(item.text)
            memory_id = memory_ids.get((item.id, key)) or memory_ids.get(("", key)) or item.id or before.get(key, "")
            return replace(item, id=memory_id)

        sections = []
        for section in new.sections:
            if section.heading != page_format.OWN_NOTES:
                section = replace(section, notes=tuple(note for note in section.notes if is_theirs(note.text)))
                sections.append(page_format.map_items(section, partial(identify, heading=section.heading)))
        lines_of_memories = {f"- {markdown.to_line(item.text)}" for section in sections for item in section.items}
        own_notes = (*filter(is_theirs, new.own), *(text for text in own if text not in lines_of_memories))
        page = replace(new, top=tuple(filter(is_theirs, new.top)), sections=tuple(sections), own=own_notes)
        hashes = (page_content.hash_counted(text, self._key) for text in edits.removed_facts)
        left_out = tuple(dict.fromkeys((*row.left_out, *hashes)))
        text = page_format.render_page(page)
        stored = PageRow(path=self._path, text=text, also=self._page.text, at=self._now, left_out=left_out)
        stored_pages.put_page(self._rows, stored)
        return edits.count

    def _remember(self, line: PageLine) -> str | None:
        """Returns the id of a changed or new line's memory, "" if a person is asked first, None if it is refused."""
        memory = memories.by_id(self._rows, line.id) if line.id else None
        if memory is not None and memory.superseded_by:
            memory = None
        place, (gate, category) = self._place(line), page_content.classify_heading(line.heading)
        project = memory.project_seq if memory else place.seq
        if not self._is_theirs:
            call = self._call
            cause = "a tool wrote there" if call else "csmd was paused"
            self._ask(
                "belief", project, f"page:{tokens.keyed_hash(line.text, self._key)}", text=line.text,
                gate=memory.gate if memory else gate, category=memory.category if memory else category,
                confidence=PROPOSED_CONFIDENCE, memory_ids=(memory.id,) if memory else (),
                reason=f"an assistant may have {'changed' if memory else 'added'} this line in {self._path}: {cause}",
                evidence=(Evidence(uuid=call.uuid, session_id=call.session_id, at=call.at),) if call else (),
            )  # fmt: skip
            return line.id
        # As if typed in a terminal, it lifts a forgetting in the page's project. What was purged stays out.

        text, is_correction, key = line.text, gate == "correction", self._key
        tombstones.remove_statement(self._rows, text, correction=is_correction, project=project, home=project, key=key)
        source = f"{self._path}\0{self._now}\0{line.id}\0{line.text}"  # it has no transcript
        uuid = "cli:page-" + hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:16]
        if memory is not None:
            answer = review_answers.ReviewAnswer(verb="edit", uuid=uuid, at=self._now, key=self._key, text=line.text)
            try:
                return review_answers.record_memory_answer(self._rows, memory, answer).made
            except CsmdError:
                return None
        statement = Statement(
            text=line.text, gate=gate, category=category, confidence=WRITTEN_CONFIDENCE, authority="user",
            reasons=("page",),
        )  # fmt: skip
        scope: Scope = "user" if gate in ("behavioral", "relational") else "global"
        memory_id, _ = remember.remember(
            self._rows, statement, Provenance(uuid=uuid, session_id="", at=self._now), project=place.seq,
            origin="stated", key=self._key, scope=scope if place.is_everywhere else "project",
        )  # fmt: skip
        new = memories.by_id(self._rows, memory_id) if memory_id and self._is_topic else None
        if new is not None and self._topics:
            topics.tag_memory(self._rows, new.seq, self._topics[0], by=topics.PERSON)
        return memory_id or None

    def _remove(self, memory_id: str) -> None:
        """Asks a person about a removed line; if another page still has it, only untags its memory from the theme."""
        memory = memories.by_id(self._rows, memory_id)
        if memory is None or memory.superseded_by:
            return
        if self._is_topic and any(item.id == memory_id for other in self._others.values() for _, item in other.lines()):
            by = topics.PERSON if self._is_theirs else topics.ASSISTANT
            for tag in topics.topics_of_memories(self._rows, [memory.seq]).get(memory.seq, ()):
                if tag.name in self._topics:
                    topics.tag_memory(self._rows, memory.seq, tag.name, by=by, weight=0.0)
            return
        self._ask(
            "stale", memory.project_seq, f"{memory_id} {self._path}", text=memory.text, gate=memory.gate,
            category=memory.category, confidence=memory.confidence, memory_ids=(memory_id,),
            reason=f"its line was removed from {self._path}: kept, it comes back; dropped, it is forgotten",
        )  # fmt: skip

    def _ask(self, kind: CandidateKind, project: int, fingerprint: str, **values: Any) -> None:
        """Asks a person about a line."""
        candidate_id = candidates.make_candidate_id(kind, project, fingerprint, self._now)
        question = Candidate(
            id=candidate_id, kind=kind, source=candidates.PAGE, project_seq=project, fingerprint=fingerprint,
            created_at=self._now, updated_at=self._now, status="needs_review", **values,
        )  # fmt: skip
        candidates.put_candidate(self._rows, question)

    def _place(self, line: PageLine) -> Place:
        """Returns the project of a line: the page's, or on a theme's page the one in its heading."""
        everywhere = self._places[markdown.USER]
        if self._is_topic:
            return self._places.get(page_content.find_linked_page(line.heading), everywhere)
        if self._path in self._places:
            return self._places[self._path]
        # The page's project was merged into another one: the one of its memories.
        by_seq = {place.seq: place for place in self._places.values()}
        on_page = (memories.by_id(self._rows, item.id) for _, item in self._page.base.lines() if item.id)
        places = (by_seq.get(memory.project_seq) for memory in on_page if memory)
        return next(filter(None, places), everywhere)


# --- reading pages


def read_edits(store: Store, directory: Path, *, now: str, key: bytes, pauses: Pauses = NO_PAUSES) -> int:
    """Reads the pages that differ from the stored ones, each in one transaction; returns the number of edits.

    If csmd was paused since it last read a page, or the clock was set back, it is unknown who edited it. OSError if the
    disk refuses the restored copy of a truncated page.
    """
    stored = store.read(stored_pages.read_pages)
    places = {place.path: place for place in store.read(page_files.find_places).values()}
    purged = store.read(lambda rows: tombstones.purged_marks(rows, key))
    # A person may have written a page before csmd did.
    new = [PageRow(path=path, text="", at="") for path in places if path not in stored and (directory / path).is_file()]
    pages: dict[str, _Page] = {}
    for row in (*stored.values(), *new):
        file = directory / row.path
        raw = files.read_plain(file, page_format.READ_BYTES)
        pages[row.path] = _parse_file(row, raw, purged, is_link=file.is_symlink())
    if stored and not any(page.is_there for page in pages.values()):
        store.write(partial(_restart_pages, page_rows=stored.values()))
        return 0
    differing = [path for path, page in pages.items() if _is_edited(page, directory)]
    if not differing:
        return 0
    stored_versions = {path: page.base for path, page in pages.items() if page.row.text or page.row.also}
    present = {path: page.base if page.problem else page.new for path, page in pages.items()}
    edits = find_edits(stored_versions, present)
    total = 0
    for path in differing:
        if not _is_intended(store, directory, pages[path], edits[path], today=now[:10]):
            continue

        def write(rows: Rows, path: str = path) -> int:
            others = {other: page.new for other, page in pages.items() if other != path}
            at = pages[path].row.at
            is_unwatched = bool(at) and (at > now or pauses.touches(at, now))
            transaction = EditTransaction(
                rows, pages[path], directory=str(directory), places=places, others=others, now=now, key=key,
                is_unwatched=is_unwatched,
            )  # fmt: skip
            return transaction.carry_out(edits[path])

        total += store.write(write)
    return total


def _restart_pages(rows: Rows, page_rows: Iterable[PageRow]) -> None:
    """Records that the whole directory was deleted: it is written again, and none of its lines counts as removed."""
    for row in page_rows:
        if row.text and not row.also:
            stored_pages.put_page(rows, replace(row, also=row.text, held="", problem=""))


def _parse_file(row: PageRow, raw: bytes | None, purged: Marks, *, is_link: bool) -> _Page:
    page = _Page(row=row, base=page_files.parse_stored(row))
    if is_link:
        page.is_there, page.problem = True, "it is a link to another file"
        return page
    page.is_there = raw is not None
    if raw is not None:
        page.text, page.problem = page_files.read_clean(raw, purged)
        page.new = Page() if page.problem else page_format.parse_page(page.text)
        if row.is_unedited(page.text) and not page.problem:
            # The stored page has the ids of the memories of a person's lines.
            now, before = ([markdown.line_key(item.text) for _, item in read.lines()] for read in (page.new, page.base))
            page.new = page.base = page.base if now == before else page.new
            return page
        page.problem = page.problem or page.new.problem

    def distance(base: Page) -> int:
        pages = (page.new, base)
        new, old = ({(item.id, markdown.line_key(item.text)) for _, item in read.lines()} for read in pages)
        return len(new ^ old)

    if row.also and row.text:
        # The daemon may have ended between writing the page and storing it.
        page.base = min(page.base, page_format.parse_page(row.also), key=distance)
    return page


def _is_edited(page: _Page, directory: Path) -> bool:
    row = page.row
    if page.problem or row.problem:
        return page.problem != row.problem
    if not page.is_there:
        return bool(row.text) and not (row.held and (directory / row.held).exists())
    return not row.is_unedited(page.text) or bool(row.held)


def _is_intended(store: Store, directory: Path, page: _Page, edits: Edits, *, today: str) -> bool:
    """Whether a person meant the edits of a page.

    Stores its problem, or writes the whole page next to a truncated one.
    """
    row = page.row
    if problem := page.problem or edits.problem:
        updated = replace(row, problem=problem)
    elif not edits.is_truncated or row.path == INDEX:
        return True
    elif row.held:
        return not (directory / row.held).exists()  # deleting the restored copy confirms the truncation
    else:
        stem = row.path.removesuffix(".md")
        numbers = ("", *(f"-{number}" for number in range(2, MAX_FOLDER_FILES)))
        names = (f"{stem}.restored-{today}{number}.md" for number in numbers)
        updated = replace(row, held=next(name for name in names if not os.path.lexists(directory / name)))
        page_files.write_page(directory / updated.held, row.also or row.text)
    if updated != row:
        store.write(partial(stored_pages.put_page, page=updated))
    return False


def report_pages(rows: Rows, directory: Path, *, key: bytes) -> dict[str, Any]:
    """Returns the state of the pages: questioned lines, restored and unread pages, copies, edits not read yet."""
    stored, purged = stored_pages.read_pages(rows), tombstones.purged_marks(rows, key)
    questions = Counter(path for _, path in stored_pages.questioned_lines(rows))

    def is_edited(row: PageRow) -> bool:
        path = directory / row.path
        raw = None if row.held or row.problem else files.read_plain(path, page_format.READ_BYTES)
        # Most are unedited and need not be parsed.
        is_known = raw is None or row.is_unedited(raw.decode("utf-8", "replace"))
        return not is_known and not page_files.is_unedited(raw, row, purged)

    names: list[str] = []
    for folder in PAGE_FOLDERS:
        with contextlib.suppress(OSError):
            paths = sorted(islice((directory / folder).iterdir(), MAX_FOLDER_FILES))
            # A file name need not be valid text.
            names += [str(path.relative_to(directory)).encode("utf-8", "replace").decode() for path in paths]
    restored = [{"page": row.path, "whole": row.held} for row in stored.values() if row.held]
    unread = [{"page": row.path, "why": row.problem} for row in stored.values() if row.problem]
    page_questions = [{"page": path, "lines": number} for path, number in sorted(questions.items())]
    edited = [path for path, row in stored.items() if is_edited(row)]
    copies = find_copies(names, stored)
    return {"asked": page_questions, "restored": restored, "unread": unread, "copies": copies, "edited": edited}
