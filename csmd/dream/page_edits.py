"""Reads people's edits of pages and carries them out.

A line is known by the memory it names, or by its words where an editor has lost the comment. One that stands under
another heading or on another page is moved, which is no edit. A page that lost too much at once was truncated, by a
sync service or a full disk: nothing of it is read.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from csmd.dream import page_content, page_files, page_format
from csmd.dream.page_content import COUNTED, Place, counted_kind
from csmd.dream.page_format import Item, Page, Read, Section
from csmd.errors import CsmdError
from csmd.exclusions import NOT_KEPT, Pauses
from csmd.extraction.chooser import MOST_CHARACTERS
from csmd.hosts.claude.environment import INDEX
from csmd.memory import remember, review_answers
from csmd.model import Candidate, CandidateKind, Category, Evidence, Gate, Memory, Provenance, Scope, Statement
from csmd.privacy.fingerprints import PURGED, Marks
from csmd.store import candidates, markdown_pages, memories, tombstones, topics
from csmd.store.core import Store
from csmd.store.markdown_pages import Call, PageRow
from csmd.store.sqlite import Rows
from csmd.text import page_lines, tokens

#: A truncation: a larger share of a page's lines gone at once, and at least so many; or the file itself.
SHARE_GONE, LEAST_GONE = 0.3, 4
#: More lines than anybody types into a page at once.
MOST_NEW = 100
#: How sure a line is that a person wrote, and how sure is what an assistant wrote in a person's place.
WRITTEN_SURE, PROPOSED_SURE = 0.95, 0.5
#: Where pages lie, and more files than anybody has there.
PLACES = ("", "projects", "topics")
MOST_NAMES = 2000
NEVER_AWAY = Pauses()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line that a person wrote: under a heading, in the place of a memory's (`id`) or a new one ("")."""

    heading: str
    text: str
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What was done to one page; `gone` and `back` are memories, `uncounted` sentences that csmd counted."""

    path: str
    changed: tuple[Line, ...] = ()
    new: tuple[Line, ...] = ()
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    lost: int = 0
    had: int = 0
    blank: bool = False
    problem: str = ""

    @property
    def truncated(self) -> bool:
        """Whether the page lost too much at once for anybody to have meant it."""
        return self.had > 0 and (self.blank or (self.lost >= LEAST_GONE and self.lost > SHARE_GONE * self.had))

    @property
    def number(self) -> int:
        """How many edits there are."""
        return len(self.changed) + len(self.new) + len(self.gone) + len(self.back) + len(self.uncounted)


def find_edits(olds: Mapping[str, Read], news: Mapping[str, Read]) -> dict[str, Edits]:
    """What was done to each page of `news`, as they are now; a page that is not among `olds` was not there."""
    said: dict[str, dict[str, str]] = {}
    """Memory (id) -> the words of its line, by page."""
    named: dict[str, str] = {}
    for path, read in sorted(olds.items()):
        for _, item in read.lines():
            if item.id:
                said.setdefault(item.id, {})[path] = page_lines.key(item.text)
                named.setdefault(page_lines.key(item.text), item.id)
    # What lost its comment is known by its words, on every page.
    known = {
        path: [
            Line(heading=heading, text=item.text, id=item.id or named[page_lines.key(item.text)])
            for heading, item in read.lines()
            if item.id or page_lines.key(item.text) in named
        ]
        for path, read in news.items()
    }
    now = {path: {line.id for line in lines} for path, lines in known.items()}
    # Moved to a page on which it did not stand, a memory's line is not gone.
    moved = {ident for path, ids in now.items() for ident in ids if path not in said.get(ident, {path: ""})}
    changed: set[str] = set()
    return {
        path: _edits(path, olds.get(path), news[path], known[path], said, named, changed, stays=now[path] | moved)
        for path in sorted(news, key=lambda path: (path.startswith(page_lines.TOPICS), path))
    }


def _edits(
    path: str, was: Read | None, new: Read, known: Sequence[Line], said: Mapping[str, Mapping[str, str]],
    named: Collection[str], changed_once: set[str], *, stays: Collection[str],
) -> Edits:  # fmt: skip
    old = was or Read()
    unchanged = {line.id for line in known if page_lines.key(line.text) in said.get(line.id, {}).values()}
    changed: list[Line] = []
    added: list[Line] = []
    for line in known:
        if line.id not in said or page_lines.key(line.text) in said[line.id].values():
            continue
        is_twin = line.id in changed_once or line.id in unchanged
        (added if is_twin else changed).append(replace(line, id="" if is_twin else line.id))
        changed_once.add(line.id)
    counted = {counted_kind(item.text): item.text for _, item in old.lines() if not item.id}
    there: set[str] = set()
    for heading, item in new.lines():
        if item.id or page_lines.key(item.text) in named or page_lines.key(item.text) in old.said:
            continue
        if counted_kind(item.text) in counted:
            there.add(counted_kind(item.text))
        elif heading != COUNTED or was is not None:
            added.append(Line(heading=heading, text=item.text))
    uncounted = tuple(text for kind, text in counted.items() if kind not in there)
    own = dict.fromkeys(item.id for _, item in old.lines() if item.id)
    gone = tuple(ident for ident in own if ident not in stays)
    return Edits(
        path=path, changed=tuple(changed), gone=gone, uncounted=uncounted,
        new=tuple({(line.heading, page_lines.key(line.text)): line for line in added}.values()),
        # What csmd wrote once: put back by hand, or by a copy of the store.
        back=tuple(dict.fromkeys(line.id for line in known if line.id not in said)),
        lost=len(gone) + len(uncounted), had=len(own) + len(counted), blank=new == Read(),
        problem=f"{len(added)} new lines at once: csmd takes at most {MOST_NEW}" if len(added) > MOST_NEW else "",
    )  # fmt: skip


# --- files beside the pages


#: How the name goes on behind a page's of what sync services and editors put beside it: Dropbox, Nextcloud, Syncthing,
#: Resilio, git-annex, Unison; Google Drive and browsers; iCloud; editors and version control; OneDrive with the machine's
#: name, which is told from a page's by the case alone.
_COPY = re.compile(
    r"(?i:[ ._(-].*(?:conflict|konflikt|conflit).*\.md|[ -]+(?:copy|kopie|copie)(?: ?\(?\d{1,3}\)?)?\.md| ?\(\d{1,3}\)\.md"
    r"| \d{1,2}\.md|\.md(?:~|#|\.\w+)?)|-[A-Z0-9][A-Z0-9-]{5,20}\.md"
)


def find_copies(names: Collection[str], pages: Collection[str]) -> list[str]:
    """Which of some files (below the memory directory) are copies of pages that a sync service or an editor made."""
    return sorted(name for name in names if name not in pages and _is_copy(name, pages))


def _is_copy(name: str, pages: Collection[str]) -> bool:
    folder, slash, last = name.rpartition("/")
    bare = f"{folder}{slash}{last.lstrip('.#')}"
    stems = (page.removesuffix(".md") for page in pages)
    return any(bare.startswith(stem) and _COPY.fullmatch(bare.removeprefix(stem)) for stem in stems)


# --- who wrote a page

_READERS = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch"})
#: A shell line that only looks: no writing sign and no program that may write stands in it.
_ONLY_LOOKS = re.compile(
    r"^\W*(?:cat|head|tail|less|ls|grep|rg|wc|stat|diff|bat|find|file)\b(?!.*\s-(?:exec|ok|delete|fprint|fls))[^>|;&`$\n]*$"
)
_COMMAND = re.compile(r'"command":"((?:[^"\\]|\\.)*)')


#: What stands where the middle of a long call was left out.
CUT = " bytes left out"
#: How a line reaches every file below a folder that it names.
_SWEEPS = re.compile(r"\*|\bfind\b|\bg?rep\b.*-|\s-\w*[rR]|glob|walk|listdir")


def words_naming(directory: str, path: str) -> tuple[str, ...]:
    """Words of which a call that may write a page has one: its file's name, its directories, and what says that a part is missing."""
    return (path.rpartition("/")[2], _tail(directory), "/" + _tail(directory).partition("/")[0], NOT_KEPT, CUT)


def _tail(directory: str) -> str:
    """The directory's last two names: what stands before them is written as `~`, `$HOME`, or not at all."""
    return "/".join(directory.rstrip("/").split("/")[-2:])


def may_write(tool: str, given: str, cwd: str, *, directory: str, path: str) -> bool:
    """Whether a tool call may have written a page: it names it or its directory, and does not only look.

    A file name alone counts where it is the page's only: with "memory", or in csmd's directory, or one that no other
    file has. The directory counts by its last two names, the home where all below it is swept over. Of a shell line that
    is not kept whole nobody knows. What is only computed is not seen.
    """
    if tool in _READERS:
        return False
    command = _COMMAND.search(given)
    if tool == "Bash" and command and _ONLY_LOOKS.match(command[1]):
        return False
    if tool == "Bash" and (CUT in given or (NOT_KEPT in given and not command)):
        return True  # nobody knows what else stood there
    name = path.rpartition("/")[2]
    home = re.search(rf"/{re.escape(_tail(directory).partition('/')[0])}(?=[\s\"'\\;|&)]|/?$|/\*)", given)
    inside = cwd == directory or cwd.startswith(f"{directory}/") or _tail(directory) in given
    inside = inside or (home is not None and bool(_SWEEPS.search(given)))
    if inside and (name in given or "*" in given or ".md" not in given):
        return True
    unlike_others = bool(re.search(r"-[0-9a-f]{6}\.md$", name))
    return name in given and (unlike_others or "memory" in given)


# --- carrying edits out


@dataclass(slots=True)
class _Page:
    """One page as it stands on the disk: its base, what it says now, and what is in the way."""

    row: PageRow
    text: str = ""
    is_there: bool = False
    problem: str = ""
    new: Read = field(default_factory=Read)
    base: Read = field(default_factory=Read)


class Taking:
    """Owns the taking in of one page's edits, in one transaction."""

    def __init__(
        self, rows: Rows, page: _Page, *, directory: str, where: Mapping[str, Place], others: Mapping[str, Read],
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

        def known(item: Item, heading: str) -> Item | None:
            if page_content.is_ours(heading) and f"- {page_lines.plain(item.text)}" in own:
                return None  # it moves under the person's own heading
            key = page_lines.key(item.text)
            return replace(item, id=made.get((item.id, key)) or made.get(("", key)) or item.id or before.get(key, ""))

        sections = [
            page_format.map_items(self._with_theirs(one), partial(known, heading=one.heading))
            for one in new.sections
            if one.heading != page_format.OWN
        ]
        there = {f"- {page_lines.plain(item.text)}" for one in sections for item in one.items}
        page = Page(
            path=self._path, head=new.head, title=new.title, top=self._theirs(new.top), sections=tuple(sections),
            own=(*self._theirs(new.own), *(one for one in own if one not in there)),
        )  # fmt: skip
        hashes = (page_content.counted_hash(said, self._key) for said in done.uncounted)
        left_out = tuple(dict.fromkeys((*row.left_out, *hashes)))
        text = page_format.render_page(page)
        known_now = PageRow(path=self._path, text=text, also=self._page.text, at=self._now, left_out=left_out)
        markdown_pages.put_page(self._rows, known_now)
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
        place, (gate, category) = self._place(line), page_content.said_under(line.heading)
        home = memory.project_seq if memory else place.seq
        if not self._is_theirs:
            self._propose(line, memory, home, (memory.gate, memory.category) if memory else (gate, category))
            return line.id
        # As what is typed in a terminal: a person says it on purpose, to hold where the page does. What was purged stays out.
        is_correction = gate == "correction"
        tombstones.remove(self._rows, line.text, correction=is_correction, project=home, home=home, key=self._key)
        # No transcript has it.
        word = f"{self._path}\0{self._now}\0{line.id}\0{line.text}"
        uuid = "cli:page-" + hashlib.sha256(word.encode("utf-8", "replace")).hexdigest()[:16]
        if memory is not None:
            asked = review_answers.ReviewAnswer(verb="edit", uuid=uuid, at=self._now, key=self._key, text=line.text)
            try:
                return review_answers.of_memory(self._rows, memory, asked).made
            except CsmdError:
                return None
        statement = Statement(
            text=line.text, gate=gate, category=category, confidence=WRITTEN_SURE, authority="user", reasons=("page",)
        )
        made, _ = remember.remember(
            self._rows, statement, Provenance(uuid=uuid, session_id="", at=self._now), project=place.seq,
            origin="stated", key=self._key, scope=_scope(place, gate),
        )  # fmt: skip
        new = memories.by_id(self._rows, made) if made and self._is_topic else None
        if new is not None:
            for name in self._topics()[:1]:
                topics.tag(self._rows, new.seq, name, by=topics.PERSON)
        return made or None

    def _propose(self, line: Line, memory: Memory | None, project: int, kind: tuple[Gate, Category]) -> None:
        """Puts a wording that may be an assistant's before a person."""
        call = self._call
        why = "a tool wrote there" if call else "csmd looked away meanwhile"
        self._ask(
            "belief", project, f"page:{tokens.keyed_hash(line.text, self._key)}", text=line.text, gate=kind[0],
            category=kind[1], confidence=PROPOSED_SURE, memory_ids=(memory.id,) if memory else (),
            reason=f"an assistant may have {'changed' if memory else 'added'} this line in {self._path}: {why}",
            evidence=(Evidence(uuid=call.uuid, session_id=call.session_id, at=call.at),) if call else (),
        )  # fmt: skip

    def _gone(self, ident: str) -> None:
        """Asks about a line that was removed; taken off a theme's page only, it is no longer of that theme."""
        memory = memories.by_id(self._rows, ident)
        if memory is None or memory.superseded_by:
            return
        elsewhere = any(item.id == ident for read in self._others.values() for _, item in read.lines())
        if self._is_topic and elsewhere:
            by = topics.PERSON if self._is_theirs else topics.ASSISTANT
            for tag in topics.of_memories(self._rows, [memory.seq]).get(memory.seq, ()):
                if tag.name in self._topics():
                    topics.tag(self._rows, memory.seq, tag.name, by=by, weight=0.0)
            return
        self._ask(
            "stale", memory.project_seq, f"{ident} {self._path}", text=memory.text, gate=memory.gate,
            category=memory.category, confidence=memory.confidence, memory_ids=(ident,),
            reason=f"its line was removed from {self._path}: kept, it comes back; dropped, it is forgotten",
        )  # fmt: skip

    def _ask(self, kind: CandidateKind, project: int, fingerprint: str, **values: Any) -> None:
        """Has a person asked about a line."""
        candidates.put(
            self._rows,
            Candidate(
                id=candidates.identity(kind, project, fingerprint, self._now), kind=kind, source=candidates.PAGE,
                project_seq=project, fingerprint=fingerprint, created_at=self._now, updated_at=self._now,
                status="needs_review", **values,
            ),
        )  # fmt: skip

    def _settle(self, ident: str) -> None:
        """A line that was put back is asked about no more."""
        for one in candidates.waiting(self._rows, projects=None, statuses=("needs_review",)):
            if one.source == candidates.PAGE and one.kind == "stale" and ident in one.memory_ids:
                candidates.settle(self._rows, one, "done", now=self._now)

    # --- what a line is

    def _place(self, line: Line) -> Place:
        """Whose line it is: the page's, or of a theme's page the project's under whose heading it stands."""
        everywhere = self._where[page_lines.USER]
        if self._is_topic:
            return self._where.get(page_content.find_linked_page(line.heading), everywhere)
        return self._where.get(self._path) or self._merged_into() or everywhere

    def _merged_into(self) -> Place | None:
        """Whose page it is now that its project is another's: where its memories are."""
        of = {place.seq: place for place in self._where.values()}
        known = (memories.by_id(self._rows, item.id) for _, item in self._page.base.lines() if item.id)
        return next((of[memory.project_seq] for memory in known if memory and memory.project_seq in of), None)

    def _topics(self) -> list[str]:
        found = self._page.base.head.get("topics")
        return [str(name) for name in found] if isinstance(found, list) else []


def _scope(place: Place, gate: Gate) -> Scope:
    if not place.is_everywhere:
        return "project"
    return "user" if gate in ("behavioral", "relational") else "global"


def _says_something(said: str) -> bool:
    return bool(tokens.content_words(said)) and len(said) <= MOST_CHARACTERS and PURGED not in said


def _writer(rows: Rows, directory: str, row: PageRow) -> Call | None:
    """The latest call of a tool that may have written a page since csmd did; None for none that was recorded."""
    for call in markdown_pages.calls_naming(rows, words_naming(directory, row.path), inside=directory, since=row.at):
        if may_write(call.tool, call.text, call.cwd, directory=directory, path=row.path):
            return call
    return None


def step(store: Store, directory: Path, *, now: str, key: bytes, pauses: Pauses = NEVER_AWAY) -> int:
    """Reads what is other in the pages than csmd knows; how many edits were taken in, 0 for none.

    Where csmd looked away since it knew a page (`pauses`), or the clock was set back, nobody can say who edited it. Each page is one transaction. OSError where the disk does not take a page that is to be kept beside.
    """
    known = store.read(markdown_pages.pages)
    where = {place.path: place for place in store.read(page_files.find_places).values()}
    purged = store.read(lambda rows: tombstones.marks(rows, key))
    # Also what somebody wrote where csmd would have written a page.
    new = [PageRow(path=path, text="", at="") for path in where if path not in known and (directory / path).is_file()]
    found = {row.path: _look(directory, row, purged) for row in (*known.values(), *new)}
    if known and not any(page.is_there for page in found.values()):
        store.write(partial(_begin_anew, known=known.values()))
        return 0
    other = [path for path, page in found.items() if _is_other(page, directory)]
    if not other:
        return 0
    done = find_edits(
        {path: page.base for path, page in found.items() if page.row.text or page.row.also},
        {path: page.base if page.problem else page.new for path, page in found.items()},
    )
    total = 0
    for path in other:
        known_at = found[path].row.at
        unheard = bool(known_at) and (known_at > now or pauses.touches(known_at, now))
        total += _take_in(store, directory, found, path, done[path], where, now=now, key=key, unheard=unheard)
    return total


def _begin_anew(rows: Rows, known: Iterable[PageRow]) -> None:
    """The whole directory is gone: somebody wants it made anew, and no line of it was meant."""
    for row in known:
        if row.text and not row.also:
            markdown_pages.put_page(rows, replace(row, also=row.text, held="", problem=""))


def report(rows: Rows, directory: Path, *, key: bytes) -> dict[str, Any]:
    """What there is to say of the pages: lines asked about, pages restored or not read, copies, edits not read yet."""
    known, purged = markdown_pages.pages(rows), tombstones.marks(rows, key)
    asked = Counter(path for _, path in markdown_pages.questioned_lines(rows))

    def is_edited(row: PageRow) -> bool:
        raw = None if row.held or row.problem else page_files.read_bytes(directory / row.path)
        # As most are, which need not be looked into.
        is_known = raw is None or row.is_unedited(raw.decode("utf-8", "replace"))
        return not is_known and not page_files.is_read(raw, row, purged)

    # What is told is text: a name need not be.
    paths = (path.relative_to(directory).as_posix() for place in PLACES for path in _names(directory / place))
    names = [path.encode("utf-8", "replace").decode() for path in paths]
    return {
        "asked": [{"page": path, "lines": number} for path, number in sorted(asked.items())],
        "restored": [{"page": row.path, "whole": row.held} for row in known.values() if row.held],
        "unread": [{"page": row.path, "why": row.problem} for row in known.values() if row.problem],
        "copies": find_copies(names, known),
        "edited": [path for path, row in known.items() if is_edited(row)],
    }


def _names(place: Path) -> list[Path]:
    try:
        return sorted(islice(place.iterdir(), MOST_NAMES))
    except OSError:
        return []


def _look(directory: Path, row: PageRow, purged: Marks) -> _Page:
    path = directory / row.path
    page = _Page(row=row, base=page_format.parse_page(row.text))
    if path.is_symlink():
        page.is_there, page.problem = True, "it is a link to another file"
        return page
    raw = page_files.read_bytes(path)
    page.is_there = raw is not None
    if raw is not None:
        page.text, page.problem = page_files.read_clean(raw, purged)
        page.new = Read() if page.problem else page_format.parse_page(page.text)
        if row.is_unedited(page.text) and not page.problem:
            # What a person wrote is known with the memories that their lines stand for.
            now, was = ([page_lines.key(item.text) for _, item in read.lines()] for read in (page.new, page.base))
            page.new = page.base = page.base if now == was else page.new
            return page
        page.problem = page.problem or page.new.problem
    if row.also and row.text:
        also = page_format.parse_page(row.also)  # it was written, and the daemon ended before it could say so
        page.base = min(page.base, also, key=lambda base: _distance(page.new, base))
    return page


def _distance(new: Read, base: Read) -> int:
    left, right = ({(one.id, page_lines.key(one.text)) for _, one in read.lines()} for read in (new, base))
    return len(left ^ right)


def _is_other(page: _Page, directory: Path) -> bool:
    row = page.row
    if page.problem or row.problem:
        return page.problem != row.problem
    if not page.is_there:
        return bool(row.text) and not (row.held and (directory / row.held).exists())
    return not row.is_unedited(page.text) or bool(row.held)


def _take_in(
    store: Store, directory: Path, found: Mapping[str, _Page], path: str, done: Edits, where: Mapping[str, Place],
    *, now: str, key: bytes, unheard: bool,
) -> int:  # fmt: skip
    page, row = found[path], found[path].row
    if problem := page.problem or done.problem:
        if problem != row.problem:
            store.write(partial(markdown_pages.put_page, page=replace(row, problem=problem)))
        return 0
    if done.truncated and path != INDEX:
        if not row.held:
            held = _restore(directory, path, row.also or row.text, today=now[:10])
            store.write(partial(markdown_pages.put_page, page=replace(row, held=held)))
            return 0
        if (directory / row.held).exists():
            return 0  # whether it was meant is not said yet

    def write(rows: Rows) -> int:
        others = {one: other.new for one, other in found.items() if one != path}
        taking = Taking(
            rows, page, directory=str(directory), where=where, others=others, now=now, key=key, unheard=unheard
        )
        return taking.take(done)

    return store.write(write)


def _restore(directory: Path, path: str, whole: str, *, today: str) -> str:
    """Puts a page down whole beside itself, where no other file is; its path."""
    stem = path.removesuffix(".md")
    numbers = ("", *(f"-{number}" for number in range(2, MOST_NAMES)))
    names = (f"{stem}.restored-{today}{number}.md" for number in numbers)
    name = next(name for name in names if not os.path.lexists(directory / name))
    page_files.write_page(directory / name, whole)
    return name
