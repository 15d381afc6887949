"""What people did to pages is carried out."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from csmd.dream import page_content, page_differences, page_files, page_format
from csmd.dream.page_content import Place
from csmd.dream.page_differences import Edits, Line
from csmd.dream.page_format import Item, Page, Read, Section
from csmd.errors import CsmdError
from csmd.exclusions import Pauses
from csmd.extraction.chooser import MOST_CHARACTERS
from csmd.hosts.claude.environment import INDEX
from csmd.memory import remember as believe
from csmd.memory import review_answers
from csmd.model import Candidate, Category, Evidence, Gate, Memory, Provenance, Scope, Statement
from csmd.privacy.fingerprints import PURGED, Marks
from csmd.store import candidates, files, markdown_pages, memories, tombstones, topics
from csmd.store.core import Store
from csmd.store.markdown_pages import Call, PageRow
from csmd.store.sqlite import Rows
from csmd.text import page_lines, tokens

#: How sure a line is that a person wrote, and how sure is what an assistant wrote in a person's place.
WRITTEN_SURE, PROPOSED_SURE = 0.95, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A page as it was found: its row, the file's text, what it says and what csmd wrote or read last."""

    row: PageRow
    text: str
    is_there: bool
    new: Read
    base: Read


class Taking:
    """Owns the taking in of one page's edits, in one transaction."""

    def __init__(
        self, rows: Rows, page: Seen, *, directory: str, where: Mapping[str, Place], others: Mapping[str, Read],
        now: str, key: bytes, unheard: bool,
    ) -> None:  # fmt: skip
        self._rows, self._page, self._where, self._others, self._now, self._key = rows, page, where, others, now, key
        self._path = page.row.path
        self._call = _writer(rows, directory, page.row)
        self._is_theirs = self._call is None and not unheard
        self._is_topic = self._path.startswith(page_lines.TOPICS)

    def take(self, done: Edits) -> int:
        """Does what a person did to the page; how many edits."""
        if self._path == INDEX:
            return self._note({}, done, own=[f"- {one.text}" for one in done.new])
        made: dict[tuple[str, str], str] = {}
        own: list[str] = []
        for line in (*done.changed, *done.new):
            stands_for = self._said(line) if _says_something(line.text) else None
            if stands_for is None:
                own.append(f"- {page_lines.plain(line.text)}")
            else:
                made[line.id, page_lines.key(line.text)] = stands_for
        for ident in done.gone:
            self._gone(ident)
        for ident in done.back if self._is_theirs else ():
            self._settle(ident)
        return self._note(made, done, own=own)

    def _note(self, made: Mapping[tuple[str, str], str], done: Edits, *, own: list[str]) -> int:
        """Has csmd know the page as it is now, every line with the memory that it stands for."""
        row, new = self._page.row, self._page.new
        if not self._page.is_there:
            markdown_pages.remove_page(self._rows, self._path)
            return done.number
        before = {page_lines.key(item.text): item.id for _, item in self._page.base.lines() if item.id}

        def known(item: Item) -> Item:
            named = made.get((item.id, page_lines.key(item.text))) or made.get(("", page_lines.key(item.text)))
            return replace(item, id=named or item.id or before.get(page_lines.key(item.text), ""))

        moved = set(own)

        def stays(item: Item, heading: str) -> Item | None:
            is_moved = page_content.is_ours(heading) and f"- {page_lines.plain(item.text)}" in moved
            return None if is_moved else known(item)

        sections = [
            page_format.mapped(one, partial(stays, heading=one.heading))
            for one in new.sections
            if one.heading != page_format.OWN
        ]
        there = {f"- {page_lines.plain(item.text)}" for one in sections for item in one.items}
        page = Page(
            path=self._path, head=new.head, title=new.title, top=self._theirs(new.top),
            sections=tuple(self._with_theirs(one) for one in sections),
            own=(*self._theirs(new.own), *(one for one in own if one not in there)),
        )  # fmt: skip
        hashes = (page_differences.counted_hash(said, self._key) for said in done.uncounted)
        markdown_pages.put_page(
            self._rows,
            PageRow(
                path=self._path, text=page_format.written(page), also=self._page.text, at=self._now,
                left_out=tuple(dict.fromkeys((*row.left_out, *hashes))),
                problem="",
            ),
        )  # fmt: skip
        return done.number

    def _theirs(self, blocks: Sequence[str]) -> tuple[str, ...]:
        """What is a person's: an editor may have taken csmd's mark off what csmd says."""
        return tuple(one for one in blocks if page_lines.key(one) not in self._page.base.said)

    def _with_theirs(self, section: Section) -> Section:
        kept = self._theirs([note.text for note in section.notes])
        return replace(section, notes=tuple(note for note in section.notes if note.text in kept))

    # --- single edits

    def _said(self, line: Line) -> str | None:
        """The memory that a changed or new line stands for from now on, "" for none yet; None where it is refused."""
        memory = memories.by_id(self._rows, line.id) if line.id else None
        if memory is not None and memory.superseded_by:
            memory = None
        if not self._is_theirs:
            self._propose(line, memory)
            return line.id
        said = self._statement(line)
        # As what is typed in a terminal: a person says it on purpose, to hold where the page does. What was purged stays out.
        home = memory.project_seq if memory else self._place(line).seq
        correction = said.gate == "correction"
        tombstones.lift(self._rows, said.text, correction=correction, project=home, home=home, key=self._key)
        try:
            if memory is not None:
                asked = review_answers.Asked(
                    verb="edit", uuid=self._uuid(line), at=self._now, key=self._key, text=line.text
                )
                return review_answers.of_memory(self._rows, memory, asked).made
        except CsmdError:
            return None
        return self._remember(line, said) or None

    def _statement(self, line: Line) -> Statement:
        gate, category = self._kind(line)
        return Statement(
            text=line.text, gate=gate, category=category, confidence=WRITTEN_SURE, authority="user", reasons=("page",)
        )

    def _remember(self, line: Line, statement: Statement) -> str:
        place, gate = self._place(line), statement.gate
        source = Provenance(uuid=self._uuid(line), session_id="", at=self._now)
        made, _ = believe.remember(
            self._rows, statement, source, project=place.seq, origin="stated", key=self._key, scope=_scope(place, gate)
        )
        memory = memories.by_id(self._rows, made) if made else None
        if memory is not None and self._is_topic:
            for name in self._topics()[:1]:
                topics.tag(self._rows, memory.seq, name, by=topics.PERSON)
        return made

    def _propose(self, line: Line, memory: Memory | None) -> None:
        """Puts a wording that may be an assistant's before a person."""
        call = self._call
        why = "a tool wrote there" if call else "csmd looked away meanwhile"
        place, (gate, category) = self._place(line), self._kind(line)
        if memory is not None:
            gate, category = memory.gate, memory.category
        project = memory.project_seq if memory is not None else place.seq
        did = "changed" if memory is not None else "added"
        print_ = f"page:{tokens.keyed_hash(line.text, self._key)}"
        candidates.put(
            self._rows,
            Candidate(
                id=candidates.identity("belief", project, print_, self._now), kind="belief", source=candidates.PAGE,
                project_seq=project, fingerprint=print_, text=line.text, gate=gate, category=category,
                reason=f"an assistant may have {did} this line in {self._path}: {why}",
                confidence=PROPOSED_SURE, created_at=self._now, updated_at=self._now, status="needs_review",
                memory_ids=(memory.id,) if memory is not None else (),
                evidence=(Evidence(uuid=call.uuid, session_id=call.session_id, at=call.at),) if call else (),
            ),
        )  # fmt: skip

    def _gone(self, ident: str) -> None:
        """Asks about a line that was removed; taken off a theme's page only, it is no longer of that theme."""
        memory = memories.by_id(self._rows, ident)
        if memory is None or memory.superseded_by:
            return
        elsewhere = any(item.id == ident for read in self._others.values() for _, item in read.lines())
        if self._is_topic and elsewhere:
            by = topics.PERSON if self._is_theirs else topics.ASSISTANT
            mine = set(self._topics())
            for tag in topics.of_memories(self._rows, [memory.seq]).get(memory.seq, ()):
                if tag.name in mine:
                    topics.tag(self._rows, memory.seq, tag.name, by=by, weight=0.0)
            return
        print_ = f"{ident} {self._path}"
        candidates.put(
            self._rows,
            Candidate(
                id=candidates.identity("stale", memory.project_seq, print_, self._now), kind="stale",
                source=candidates.PAGE, project_seq=memory.project_seq, fingerprint=print_, text=memory.text,
                reason=f"its line was removed from {self._path}: kept, it comes back; dropped, it is forgotten",
                gate=memory.gate, category=memory.category, confidence=memory.confidence, created_at=self._now,
                updated_at=self._now, status="needs_review", memory_ids=(ident,),
            ),
        )  # fmt: skip

    def _settle(self, ident: str) -> None:
        """A line that was put back is asked about no more."""
        for one in candidates.waiting(self._rows, projects=None, statuses=("needs_review",)):
            if one.source == candidates.PAGE and one.kind == "stale" and ident in one.memory_ids:
                candidates.settle(self._rows, one, "done", now=self._now)

    # --- what a line is

    def _kind(self, line: Line) -> tuple[Gate, Category]:
        return page_content.said_under(line.heading)

    def _place(self, line: Line) -> Place:
        """Whose line it is: the page's, or of a theme's page the project's under whose heading it stands."""
        everywhere = self._where[page_lines.USER]
        if not self._is_topic:
            return self._where.get(self._path) or self._merged_into() or everywhere
        return self._where.get(page_content.linked(line.heading), everywhere)

    def _merged_into(self) -> Place | None:
        """Whose page it is now that its project is another's: where its memories are."""
        of = {place.seq: place for place in self._where.values()}
        known = (memories.by_id(self._rows, item.id) for _, item in self._page.base.lines() if item.id)
        return next((of[memory.project_seq] for memory in known if memory and memory.project_seq in of), None)

    def _topics(self) -> list[str]:
        found = self._page.base.head.get("topics")
        return [str(name) for name in found] if isinstance(found, list) else []

    def _uuid(self, line: Line) -> str:
        """The name of a person's word on a page, as of what is typed in a terminal: no transcript has it."""
        word = f"{self._path}\0{self._now}\0{line.id}\0{line.text}"
        return "cli:page-" + hashlib.sha256(word.encode("utf-8", "replace")).hexdigest()[:16]


def _scope(place: Place, gate: Gate) -> Scope:
    if not place.is_everywhere:
        return "project"
    return "user" if gate in ("behavioral", "relational") else "global"


def _says_something(said: str) -> bool:
    return bool(tokens.content_words(said)) and len(said) <= MOST_CHARACTERS and PURGED not in said


def _writer(rows: Rows, directory: str, row: PageRow) -> Call | None:
    """The latest call of a tool that may have written a page since csmd did; None for none that was recorded."""
    for call in markdown_pages.calls_naming(
        rows, page_differences.names_of(directory, row.path), inside=directory, since=row.at
    ):
        if page_differences.may_write(call.tool, call.text, call.cwd, directory=directory, path=row.path):
            return call
    return None


#: Where pages lie, and more files than anybody has there.
PLACES = ("", "projects", "topics")
MOST_NAMES = 2000
NEVER_AWAY = Pauses()


@dataclass(slots=True)
class _Page:
    """One page as it stands on the disk: its base, what it says now, and what is in the way."""

    row: PageRow
    text: str = ""
    is_there: bool = False
    problem: str = ""
    new: Read = field(default_factory=Read)
    base: Read = field(default_factory=Read)


def step(store: Store, directory: Path, *, now: str, key: bytes, pauses: Pauses = NEVER_AWAY) -> int:
    """Reads what is other in the pages than csmd knows; how many edits were taken in, 0 for none.

    Where csmd looked away since it knew a page (`pauses`), or the clock was set back, nobody can say who edited it. Each page is one transaction. OSError where the disk does not take a page that is to be kept beside.
    """
    known = store.read(markdown_pages.pages)
    where = {place.path: place for place in store.read(page_files.places).values()}
    purged = store.read(lambda rows: tombstones.marks(rows, key))
    found = {path: _look(directory, path, row, purged) for path, row in _watched(directory, known, where).items()}
    if known and not any(page.is_there for page in found.values()):
        store.write(lambda rows: _begin_anew(rows, known.values()))
        return 0
    other = [path for path, page in found.items() if _is_other(page, directory)]
    if not other:
        return 0
    done = page_differences.edits(
        {path: page.base for path, page in found.items() if page.row.text or page.row.also},
        {path: page.base if page.problem else page.new for path, page in found.items()},
    )
    total = 0
    for path in other:
        known_at = found[path].row.at
        unheard = bool(known_at) and (known_at > now or pauses.touches(known_at, now))
        total += _take_in(store, directory, found, path, done[path], where, now=now, key=key, unheard=unheard)
    return total


def told(rows: Rows, directory: Path, *, key: bytes) -> dict[str, Any]:
    """What there is to say of the pages: lines asked about, pages restored or not read, copies, edits not read yet."""
    known, purged = markdown_pages.pages(rows), tombstones.marks(rows, key)
    asked = Counter(path for _, path in markdown_pages.asked_about(rows))
    # What is told is text: a name need not be.
    paths = (path.relative_to(directory).as_posix() for place in PLACES for path in _names(directory / place))
    names = [path.encode("utf-8", "replace").decode() for path in paths]
    edited = [
        path for path, row in known.items()
        if not (row.held or row.problem) and _is_edited(page_files.content(directory / path), row, purged)
    ]  # fmt: skip
    return {
        "asked": [{"page": path, "lines": number} for path, number in sorted(asked.items())],
        "restored": [{"page": row.path, "whole": row.held} for row in known.values() if row.held],
        "unread": [{"page": row.path, "why": row.problem} for row in known.values() if row.problem],
        "copies": page_differences.copies(names, known),
        "edited": edited,
    }


def _names(place: Path) -> list[Path]:
    try:
        return sorted(islice(place.iterdir(), MOST_NAMES))
    except OSError:
        return []


def _is_edited(raw: bytes | None, row: PageRow, purged: Marks) -> bool:
    if raw is None or row.is_known(raw.decode("utf-8", "replace")):  # as most are, which need not be looked into
        return False
    return not page_files.is_read(raw, row, purged)


def _begin_anew(rows: Rows, known: Iterable[PageRow]) -> None:
    """The whole directory is gone: somebody wants it made anew, and no line of it was meant."""
    for row in known:
        if row.text and not row.also:
            markdown_pages.put_page(rows, replace(row, also=row.text, held="", problem=""))


def _watched(directory: Path, known: Mapping[str, PageRow], where: Mapping[str, Place]) -> dict[str, PageRow]:
    """The pages that csmd wrote, and those that somebody wrote where it would have written one."""
    new = [path for path in where if path not in known and (directory / path).is_file()]
    return {**known, **{path: PageRow(path=path, text="", at="") for path in new}}


def _look(directory: Path, path: str, row: PageRow, purged: Marks) -> _Page:
    page = _Page(row=row, base=page_format.read(row.text))
    raw = page_files.content(directory / path)
    page.is_there = raw is not None
    if (directory / path).is_symlink():
        page.is_there, page.problem = True, "it is a link to another file"
        return page
    if raw is not None:
        page.text, page.problem = page_files.said_in(raw, purged)
        if row.is_known(page.text) and not page.problem:
            said = page_format.read(page.text)
            # What a person wrote is known with the memories that their lines stand for.
            page.new = page.base = said if _words(said) != _words(page.base) else page.base
            return page
        page.new = Read() if page.problem else page_format.read(page.text)
        page.problem = page.problem or page.new.problem
    if (
        row.also
        and row.text
        and _distance(page.new, also := page_format.read(row.also)) < _distance(page.new, page.base)
    ):
        page.base = also  # it was written, and the daemon ended before it could say so
    return page


def _words(read: Read) -> list[str]:
    return [page_lines.key(item.text) for _, item in read.lines()]


def _distance(new: Read, base: Read) -> int:
    left, right = ({(one.id, page_lines.key(one.text)) for _, one in read.lines()} for read in (new, base))
    return len(left ^ right)


def _is_other(page: _Page, directory: Path) -> bool:
    row = page.row
    if page.problem or row.problem:
        return page.problem != row.problem
    if not page.is_there:
        return bool(row.text) and not (row.held and (directory / row.held).exists())
    return not row.is_known(page.text) or bool(row.held)


def _take_in(
    store: Store, directory: Path, found: Mapping[str, _Page], path: str, done: Edits, where: Mapping[str, Place],
    *, now: str, key: bytes, unheard: bool,
) -> int:  # fmt: skip
    page = found[path]
    row = page.row
    problem = page.problem or done.problem
    if problem:
        if problem != row.problem:
            store.write(lambda rows: markdown_pages.put_page(rows, replace(row, problem=problem)))
        return 0
    if done.truncated and path != INDEX:
        if not row.held:
            held = _restore(directory, path, row.also or row.text, today=now[:10])
            store.write(lambda rows: markdown_pages.put_page(rows, replace(row, held=held)))
            return 0
        if (directory / row.held).exists():
            return 0  # whether it was meant is not said yet

    def write(rows: Rows) -> int:
        others = {one: other.new for one, other in found.items() if one != path}
        seen = Seen(row=row, text=page.text, is_there=page.is_there, new=page.new, base=page.base)
        taking = Taking(
            rows, seen, directory=str(directory), where=where, others=others, now=now, key=key, unheard=unheard
        )
        return taking.take(done)

    return store.write(write)


def _restore(directory: Path, path: str, whole: str, *, today: str) -> str:
    """Puts a page down whole beside itself; its path."""
    folder = (directory / path).parent
    files.make_private(folder)
    taken = {str((Path(path).parent / one.name).as_posix()) for one in folder.iterdir()}
    name = page_differences.restored_name(path, today, taken)
    files.write_atomic(directory / name, whole.encode("utf-8", "replace"))
    return name
