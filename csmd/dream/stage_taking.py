"""What a person did to one page, carried out in one transaction: through the door of belief and a person's answers.

What an assistant may have written is proposed to a person. What says nothing, or cannot be taken in, stays on the page
under the person's own notes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from csmd import text
from csmd.believe import stage as believe
from csmd.believe import stage_review
from csmd.capture.memdir import INDEX
from csmd.distill.chooser import MOST_CHARACTERS
from csmd.dream import edits, keeping, lines, pages
from csmd.dream.edits import Edits, Line
from csmd.dream.lines import Item, Page, Read, Section
from csmd.dream.pages import Place
from csmd.errors import CsmdError
from csmd.model import Candidate, Category, Evidence, Gate, Memory, Provenance, Scope, Statement
from csmd.store import candidates, markdown_pages, memories, tombstones, topics
from csmd.store.markdown_pages import Call, PageRow
from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows

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
        self._is_topic = self._path.startswith(pages.TOPICS)

    def take(self, done: Edits) -> int:
        """Does what a person did to the page; how many edits."""
        if self._path == INDEX:
            return self._note({}, done, own=[f"- {one.text}" for one in done.new])
        made: dict[tuple[str, str], str] = {}
        own: list[str] = []
        for line in (*done.changed, *done.new):
            stands_for = self._said(line) if _says_something(line.text) else None
            if stands_for is None:
                own.append(f"- {lines.plain(line.text)}")
            else:
                made[line.id, lines.key(line.text)] = stands_for
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
        before = {lines.key(item.text): item.id for _, item in self._page.base.lines() if item.id}

        def known(item: Item) -> Item:
            named = made.get((item.id, lines.key(item.text))) or made.get(("", lines.key(item.text)))
            return replace(item, id=named or item.id or before.get(lines.key(item.text), ""))

        moved = set(own)

        def stays(item: Item, heading: str) -> Item | None:
            is_moved = pages.is_ours(heading) and f"- {lines.plain(item.text)}" in moved
            return None if is_moved else known(item)

        sections = [
            keeping.mapped(one, partial(stays, heading=one.heading)) for one in new.sections if one.heading != lines.OWN
        ]
        there = {f"- {lines.plain(item.text)}" for one in sections for item in one.items}
        page = Page(
            path=self._path, head=new.head, title=new.title, top=self._theirs(new.top),
            sections=tuple(self._with_theirs(one) for one in sections),
            own=(*self._theirs(new.own), *(one for one in own if one not in there)),
        )  # fmt: skip
        hashes = (edits.counted_hash(said, self._key) for said in done.uncounted)
        markdown_pages.put_page(
            self._rows,
            PageRow(
                path=self._path, text=lines.written(page), also=self._page.text, at=self._now,
                left_out=tuple(dict.fromkeys((*row.left_out, *hashes))),
                problem="",
            ),
        )  # fmt: skip
        return done.number

    def _theirs(self, blocks: Sequence[str]) -> tuple[str, ...]:
        """What is a person's: an editor may have taken csmd's mark off what csmd says."""
        return tuple(one for one in blocks if lines.key(one) not in self._page.base.said)

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
                asked = stage_review.Asked(
                    verb="edit", uuid=self._uuid(line), at=self._now, key=self._key, text=line.text
                )
                return stage_review.of_memory(self._rows, memory, asked).made
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
        print_ = f"page:{text.keyed_hash(line.text, self._key)}"
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
        return pages.said_under(line.heading)

    def _place(self, line: Line) -> Place:
        """Whose line it is: the page's, or of a theme's page the project's under whose heading it stands."""
        everywhere = self._where[pages.USER]
        if not self._is_topic:
            return self._where.get(self._path) or self._merged_into() or everywhere
        return self._where.get(pages.linked(line.heading), everywhere)

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
    return bool(text.content_words(said)) and len(said) <= MOST_CHARACTERS and PURGED not in said


def _writer(rows: Rows, directory: str, row: PageRow) -> Call | None:
    """The latest call of a tool that may have written a page since csmd did; None for none that was recorded."""
    for call in markdown_pages.calls_naming(rows, edits.names_of(directory, row.path), inside=directory, since=row.at):
        if edits.may_write(call.tool, call.text, call.cwd, directory=directory, path=row.path):
            return call
    return None
