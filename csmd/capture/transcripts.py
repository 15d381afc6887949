"""What `csmd doctor` sends through the hook: a turn that says nothing but the one word that names its session.

Such a turn is stored and found like any other, but it is nobody's: it is never distilled nor counted, and goes again.
Because the name and the word must be the same, nothing that somebody said can be kept out of capture this way.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal

from csmd import wire
from csmd.capture import project_identity
from csmd.capture import purged_words as purging
from csmd.capture.project_identity import Places
from csmd.errors import BadInput, TooLarge
from csmd.exclusions import Excludes, Pauses, Withheld
from csmd.hosts.adapter import EPOCH, moment_of
from csmd.hosts.claude import environment, transcript
from csmd.hosts.claude.transcript import Reading
from csmd.hosts.own import ReadLine
from csmd.model import PROBE_SESSION, PROBE_TEXT, Event, Project, Turn
from csmd.privacy.fingerprints import Marks
from csmd.privacy.redaction import redact, storable_path
from csmd.store import activity, cursors, events, files, projects, sessions, tombstones, turns
from csmd.store import events as client_versions
from csmd.store.core import Store
from csmd.store.cursors import FileState
from csmd.store.files import Notes
from csmd.store.sqlite import Rows
from csmd.text import tokens


def is_probe(event: Event) -> bool:
    """Whether an event is one of `csmd doctor`, by what it says alone: also one that waited in the spool."""
    word = event.session_id.removeprefix(PROBE_SESSION)
    if word == event.session_id or not (word.isascii() and word.isalpha() and word.islower()):
        return False
    said = PROBE_TEXT.format(event=event.name, word=word)
    return event.text == said and not (event.agent_id or event.transcript_path)


def unanswered(event: Event) -> Event:
    """The event; one of `csmd doctor` as nobody's, so that no memory is looked up for it."""
    return replace(event, by_user=False) if is_probe(event) else event


READ_BYTES = 4 * 1024 * 1024

#: Lines of a transcript with their offsets; None stands for one beyond the limit.
Lines = list[tuple[int, bytes | None]]


def pieces(file: BinaryIO, position: int, stop: Callable[[], bool]) -> Iterator[tuple[Lines, int]]:
    """Complete lines of a file in pieces, each with the offset after it.

    A line beyond the limit is passed by without being held, as None; until its end is there, the
    offset stays before it. A last line without a newline counts when it is whole in itself.
    """
    file.seek(position)
    rest = b""
    passed_by = 0
    while not stop():
        data = file.read(READ_BYTES)
        if not data:
            if is_whole(rest):
                yield [(position, rest)], position + len(rest)
            return
        lines: Lines = []
        before = position
        if passed_by:
            newline = data.find(b"\n")
            if newline < 0:
                passed_by += len(data)
                continue
            lines.append((position, None))
            position += passed_by + newline + 1
            data, passed_by = data[newline + 1 :], 0
        rest += data
        complete, after = split_lines(rest, at=position)
        lines += [(at, line if len(line) <= MAX_LINE_BYTES else None) for at, line in complete]
        rest = rest[after - position :]
        position = after
        if position > before:
            yield lines, position
        if len(rest) > MAX_LINE_BYTES:
            passed_by, rest = len(rest), b""


#: The counter of turns that were said during a pause.
PAUSED = "paused turns"


@dataclass(slots=True, kw_only=True)
class Leaving:
    """How one reading of a transcript leaves out; each directory is asked about once."""

    excludes: Excludes
    place_of: Callable[[str], Project]
    off: bool = False
    """Whether the session began in a directory that is marked: then nothing of it stays."""
    began: str = EPOCH
    """The first time that the transcript tells."""
    latest: str = EPOCH
    """The time of what was read last."""
    written_at: str
    """When the file was: the time of what nothing else tells one of."""
    _paused: int = 0
    _out: bool | None = None
    _places: dict[str, bool] = field(default_factory=dict)

    def early(self, titles: dict[str, str]) -> dict[str, str]:
        """The titles among a transcript's first bytes, where no line says what was before them."""
        first = self.began if self.began != EPOCH else self.written_at
        return {} if self.off or self.excludes.pauses().touches(first, max(first, self.written_at)) else titles

    def apart(self, reading: Reading) -> tuple[Reading, list[Turn]]:
        """What stays of the next piece, each turn with a time, and the turns that were left out."""
        pauses = self.excludes.pauses()
        self.latest = self.latest if self.latest != EPOCH else self.written_at
        spans = spans_of(reading.turns, self.latest) if pauses.spans else []
        in_pause = [pauses.touches(*span) for span in spans] or [False] * len(reading.turns)
        out = [
            self.off or still or self._is_left_out(turn.cwd)
            for turn, still in zip(reading.turns, in_pause, strict=True)
        ]  # fmt: skip
        self._paused += sum(in_pause)
        titles = {} if self._hushed(pauses) else reading.titles
        titles = {session: title for session, title in titles.items() if not self._goes(session, reading, out, pauses)}
        told = [] if any(out) or self._hushed(pauses) else reading.worktrees
        turns = with_times(reading.turns, self.latest)
        reading = replace(reading, turns=turns, titles=titles, worktrees=told)
        if out:
            self._out, self.latest = out[-1], reading.turns[-1].at
        if not any(out):
            return reading, []
        gone = iter(out)
        left = [turn for turn, leaves in zip(reading.turns, out, strict=True) if leaves]
        return reading.only(lambda _: not next(gone)), left

    def news(self, *, first_time: bool) -> list[tuple[str, int]]:
        """What the counters do not know yet of the pauses: nothing where the lines are read again."""
        amount, self._paused = self._paused, 0
        return [(PAUSED, amount)] if amount and first_time else []

    def _hushed(self, pauses: Pauses) -> bool:
        return self.off or (self.began != EPOCH and pauses.covers(self.began))

    def _goes(self, session: str, reading: Reading, out: list[bool], pauses: Pauses) -> bool:
        place = reading.title_at.get(session, 0)
        if place:
            return out[place - 1]
        if self._out is not None:
            return self._out
        return (bool(out) and out[0]) or pauses.covers(self.latest)

    def _is_left_out(self, cwd: str) -> bool:
        if not self.excludes.ask_the_disk or not cwd:
            return False
        if cwd not in self._places:
            place = self.place_of(cwd)
            roots = project_identity.roots(place)
            self._places[cwd] = self.excludes.place(cwd, *roots) or self.excludes.off(cwd, place.place, *roots)
        return self._places[cwd]


def spans_of(turns: list[Turn], latest: str) -> list[tuple[str, str]]:
    """From when to when each turn may have been said: its own time twice, or those of its neighbours.

    `latest` stands for a neighbour that is missing on both sides.
    """
    after: list[str] = []
    following = EPOCH
    for turn in reversed(turns):
        following = turn.at if turn.at != EPOCH else following
        after.append(following)
    found: list[tuple[str, str]] = []
    before = EPOCH
    for turn, then in zip(turns, reversed(after), strict=True):
        before = turn.at if turn.at != EPOCH else before
        ends = [at for at in (before, then) if at != EPOCH] or [latest]
        found.append((min(ends), max(ends)))
    return found


#: Enough of a file's beginning to tell it from another one.
HEAD_BYTES = 1024
#: Enough of what was read last to tell that it was written anew.
FOOT_BYTES = 256
#: A longer line is not a conversation's: it is skipped and noted, never held in memory as a whole.
MAX_LINE_BYTES = 32 * 1024 * 1024


Reason = Literal["new", "unchanged", "grown", "shrunk", "replaced", "rewritten"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to begin reading, and why."""

    position: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is remembered of a file: how far it was read, hashes of its first and of the last bytes read, when written."""

    position: int
    head: str
    foot: str = ""
    inode: int = 0
    mtime_ns: int = 0


def head_of(data: bytes) -> str:
    """A hash of a file's first bytes and how many they are, for telling whether it is still the same file."""
    first = data[:HEAD_BYTES]
    return f"{hashlib.sha256(first).hexdigest()[:16]}:{len(first)}" if first else ""


def is_head_of(head: str, data: bytes) -> bool:
    """Whether a file that begins with `data` can be the one of which `head` was taken; "" cannot contradict."""
    digits = head.partition(":")[2]
    return not head or head_of(data[: int(digits)] if digits.isdecimal() else data) == head


def where_to_start(
    known: Known | None, *, size: int, beginning: bytes, foot: str = "", inode: int = 0, mtime_ns: int = 0
) -> Start:
    """Where to read on in a file of `size` bytes; `foot` is of the bytes that stand before the known position now.

    The beginning of a file says whether it is the same; another inode, or a file that was written to and has not
    grown, may differ anywhere. An edit far before the end of a file that grew meanwhile goes unnoticed.
    """
    if known is None:
        return Start(position=0, reason="new")
    if size < known.position:
        return Start(position=0, reason="shrunk")
    if not is_head_of(known.head, beginning) or (known.inode and inode and known.inode != inode):
        return Start(position=0, reason="replaced")
    if known.foot and foot != known.foot:
        return Start(position=0, reason="rewritten")
    if size > known.position:
        return Start(position=known.position, reason="grown")
    if known.mtime_ns and mtime_ns != known.mtime_ns:
        return Start(position=0, reason="rewritten")
    return Start(position=known.position, reason="unchanged")


def with_times(turns: list[Turn], otherwise: str) -> list[Turn]:
    """The turns with a time for those whose line has none that can be read: the one's before, else the next one's."""
    if all(turn.at != EPOCH for turn in turns):
        return turns
    before = next((turn.at for turn in turns if turn.at != EPOCH), otherwise)
    timed: list[Turn] = []
    for turn in turns:
        timed.append(turn if turn.at != EPOCH else replace(turn, at=before))
        before = timed[-1].at
    return timed


def split_lines(data: bytes, *, at: int) -> tuple[list[tuple[int, bytes]], int]:
    """The complete lines in `data`, each with its offset in the file, and the offset after the last one.

    `at` is the offset of `data` in the file. What stands after the last newline stays for later (or is_whole).
    """
    end = data.rfind(b"\n")
    if end < 0:
        return [], at
    lines: list[tuple[int, bytes]] = []
    offset = at
    for line in data[:end].split(b"\n"):
        if line.strip():
            lines.append((offset, line))
        offset += len(line) + 1
    return lines, offset


def is_whole(line: bytes) -> bool:
    """Whether a line that has no end yet is an object already: no beginning of an object is one itself."""
    if not line.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(wire.loads(line), dict)
    except BadInput:
        return False


#: A write holds the writer for about 5 ms of the processor: a hook's event may be waiting behind it.
BATCH_TURNS = 25


@dataclass(slots=True)
class Tail:
    """What reading one transcript brought."""

    turns_new: int = 0
    turns_known: int = 0
    bad_lines: int = 0
    redactions: int = 0
    bytes_read: int = 0
    excluded: bool = False
    more: bool = False
    """Whether it was left before its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What holds for all of a transcript's turns: its path, their projects, the room that a session has.

    A `silent` one holds nobody's conversation; one of the host's own is not csmd's.
    """

    path: str
    places: Places
    room: int
    silent: bool
    hosts_own: bool


def store_piece(
    store: Store,
    reading: transcript.Reading,
    early: dict[str, str],
    news: list[tuple[str, int]],
    state: FileState,
    source: Source,
    now: str,
    report: Tail,
) -> None:
    """Writes what was read in batches; only the last batch moves the cursor, so a crash reads the piece again.

    `early` are the titles of the file's beginning: they came when its session was not known yet.
    What was taken out of a line is counted with its turns, once: `news` is what else was not counted yet.
    """
    for turn in reading.turns:
        source.places.of(turn.cwd)  # what is looked up on the disk now does not hold up the writer
    entered = project_identity.lost_worktrees_of(reading.worktrees)
    borders = list(range(0, len(reading.turns), BATCH_TURNS)) or [0]
    for begin in borders:
        batch = reading.turns[begin : begin + BATCH_TURNS]
        end = None if begin == borders[-1] else begin + BATCH_TURNS
        left = [one for one in reading.left if begin <= one.place and (end is None or one.place < end)]
        spent = [
            sessions.Spent(one.stream, one.message_id, *one.amounts)
            for one in reading.spent
            if begin <= max(one.place, 0) and (end is None or one.place < end)
        ]

        def write(
            rows: Rows,
            batch: list[Turn] = batch,
            left: list[transcript.Left] = left,
            spent: list[sessions.Spent] = spent,
            begin: int = begin,
            last: bool = end is None,
        ) -> tuple[int, Counter[str]]:
            new = 0
            found: Counter[str] = Counter()
            marks = tombstones.marks(rows, store.hash_key)
            leaving = iter([*left, None])
            next_left = next(leaving)
            for place, turn in enumerate(batch, begin):
                while next_left is not None and next_left.place <= place:
                    _leave(rows, next_left, store.hash_key)
                    next_left = next(leaving)
                if _store_turn(rows, turn, source, marks, store.hash_key, now):
                    new += 1
                    found.update(reading.redactions.get(_line_of(turn), {}))
            while next_left is not None:
                _leave(rows, next_left, store.hash_key)
                next_left = next(leaving)
            sessions.note_usage(rows, spent)
            if source.hosts_own:
                client_versions.note_versions(rows, environment.latest(batch))
            if last:
                for session, title in reading.titles.items():
                    if turns.set_title(rows, session, title):
                        found.update(reading.redactions.get("", {}))
                for session, title in early.items():
                    turns.set_title(rows, session, title, first=True)
                for uuid in reading.withdrawn:
                    sessions.withdraw(rows, state.path, uuid)
                permitted = [purging.permitted_place(rows, one, key=store.hash_key) for pair in entered for one in pair]
                project_identity.note(rows, zip(permitted[::2], permitted[1::2], strict=True), now=now)
                activity.count(rows, news)
                cursors.save_file(rows, state, now=now)
            activity.count(rows, redaction_counts(found))
            return new, found

        new, found = store.write(write)
        report.turns_new += new
        report.turns_known += len(batch) - new
        report.redactions += found.total()


def note_writes(store: Store, left_out: list[Turn]) -> None:
    """Notes which transcripts calls wrote that are left out: a pause must not be where lines can be forged."""
    wrote = [turn for turn in left_out if turn.writes]
    if wrote:

        def note(rows: Rows) -> None:
            for turn in wrote:
                _note_tampered(rows, turn, store.hash_key)

        store.write(note)


def _note_tampered(rows: Rows, turn: Turn, key: bytes) -> None:
    sessions.note_tampered(rows, turn.writes, at=turn.at, hashed=lambda name: tokens.keyed_hash(name, key))


def _leave(rows: Rows, left: transcript.Left, key: bytes) -> None:
    turns.unqueue(
        rows,
        left.session_id,
        at=left.at,
        text_hash=tokens.keyed_hash(left.text, key) if left.text else "",
        absorbed=left.absorbed,
        nth=left.nth,
    )


def _store_turn(rows: Rows, turn: Turn, source: Source, marks: Marks, key: bytes, now: str) -> bool:
    if turn.answers and not transcript.may_answer(sessions.tools_called(rows, turn.answers)):
        return False
    _note_tampered(rows, turn, key)
    turn, place, listed = purging.permitted_turn(turn, source.places.of(turn.cwd), source.path, marks)
    home = projects.settle(rows, place, now=now)
    return turns.add_turn(
        rows,
        turn,
        text_hash=tokens.keyed_hash(turn.text, key),
        host=transcript.HOST,
        project=home.seq,
        directory=home.directory,
        path=listed,
        room=source.room,
        file=source.path,
    )


def _line_of(turn: Turn) -> str:
    """The name under which a reading knows a turn's line."""
    return turn.uuid.rpartition(":")[0] if turn.form == "queued" else turn.uuid


#: Enough of a transcript's beginning for the first line that names a directory.
BEGINNING_BYTES = 64 * 1024

#: What says that nothing of the session is still to come for now. A turn that ended in an error is over, too; what the
#: client says of the error is no words of the assistant's, and a summary is taken from its own line, not from the hook.
SETTLING = ("stop", "stop_failure", "session_end", "pre_compact", "post_compact")

#: Bytes of text of one session that are kept where nobody says otherwise.
SESSION_BYTES = 50_000_000
#: Directories of the assistant's in which no transcripts are.
LEFT_OUT = ("memory", "tool-results")


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A transcript as a listing finds it."""

    path: str
    size: int
    mtime_ns: int


def decode_event(body: bytes, *, name: str, event_id: str, at: str) -> tuple[Event | None, Counter[str]]:
    """The event in a hook's payload and what was redacted in it; BadInput when it is malformed."""
    counts: Counter[str] = Counter()
    event = transcript.event(body, name=name, event_id=event_id, at=at, counts=counts)
    return None if event is None else unanswered(event), counts


def place_of(rows: Rows, event: Event) -> Project | None:
    """The project of the turn that an event reports, a new one with its marks; None when it reports none.

    For `record`: what the disk is asked before the write is submitted does not hold up the writer.
    """
    if transcript.event_turn(event) is None or is_probe(event):
        return None
    start = started_in(Path(event.transcript_path)) if event.transcript_path else ""
    return project_identity.entering(rows, project_identity.identified(event.cwd, start=start))


def record(
    rows: Rows,
    event: Event,
    *,
    redacted: Counter[str],
    key: bytes,
    now: str,
    place: Project | None = None,
    room: int = SESSION_BYTES,
) -> bool:
    """Stores an event and its provisional turn in one transaction; False when it was known or nothing of it may be kept.

    `place` is what `place_of` says of the event: the writer never looks at the disk. `room` is how much of a
    session is kept.
    """
    permitted = purging.permitted_event(rows, event, place, key=key)
    if permitted is None:
        return False
    event = permitted
    text_hash = tokens.keyed_hash(event.text, key) if event.text else ""
    turn = transcript.event_turn(event)
    if turn is not None and is_probe(event):
        return events.add_probe(rows, turn, text_hash=text_hash)
    payload_hash = tokens.keyed_hash(event.payload, key)
    if not events.record(rows, event, text_hash=text_hash, payload_hash=payload_hash):
        return False
    activity.count(rows, redaction_counts(redacted))
    if turn is not None and place is not None:
        listed = tombstones.listed_path(rows, storable_path(event.transcript_path), key=key)
        turn, place, path = purging.permitted_turn(turn, place, listed, tombstones.marks(rows, key))
        home = projects.settle(rows, place, now=now)
        events.add_provisional(
            rows,
            turn,
            event=event.name,
            text_hash=text_hash,
            host=event.host,
            project=home.seq,
            directory=home.directory,
            path=path,
            room=room,
        )
    if event.name in SETTLING:
        events.settle_provisional(rows, event.session_id, at=event.at)
    return True


def redaction_counts(counts: Counter[str]) -> list[tuple[str, int]]:
    """Redactions by kind as counters."""
    return [(f"redacted {kind}", amount) for kind, amount in counts.items()]


def transcripts(root: Path) -> list[Path]:
    """Every transcript below a projects directory or in it, the latest written first; a file is itself."""
    found = sorted(listed(root), key=lambda one: (-one.mtime_ns, one.path))
    return [Path(one.path) for one in found]


def listed(root: Path) -> Iterator[OnDisk]:
    """Every transcript below a projects directory or in it, in no order; a file is itself.

    There may be twenty thousand, and this looks at them four times an hour: names as the system gives them, and
    one question for each.
    """
    if root.is_file():
        info = root.stat()
        yield OnDisk(str(root), info.st_size, info.st_mtime_ns)
        return
    folders = [str(root)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir():
                        if entry.name not in LEFT_OUT and not entry.is_symlink():
                            folders.append(entry.path)
                    elif entry.name.endswith(".jsonl"):
                        with suppress(OSError):  # gone between listing and looking: there is nothing to read
                            info = entry.stat()
                            yield OnDisk(entry.path, info.st_size, info.st_mtime_ns)
        except OSError:
            continue  # a directory that is gone, or that we may not read


def look(path: str) -> OnDisk | None:
    """A file as it is now; None when there is none."""
    try:
        info = os.stat(path)  # noqa: PTH116 - thousands of names, of which few become a Path
    except OSError:
        return None
    return OnDisk(path, info.st_size, info.st_mtime_ns)


def started_in(path: Path) -> str:
    """The directory in which a transcript's session began; "" when there is no such file yet, or it is a pipe."""
    try:
        with files.open_regular(path) as file:
            return transcript.started_in(file.read(BEGINNING_BYTES))
    except (OSError, ValueError):
        return ""


def has_grown(one: OnDisk, known: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a transcript may hold something that was not read yet, by its size and when it was written."""
    state = (one.size, one.mtime_ns)
    # Nearly every name is stored as it is: what is stored under another is asked for only where that fails.
    return state != known.get(one.path) and state != known.get(storable_path(one.path))


def tail(
    store: Store,
    path: Path,
    *,
    now: Callable[[], str],
    tool_limit: int,
    quarantine: Path,
    session_limit: int = SESSION_BYTES,
    most_pieces: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    excludes: Excludes = Excludes(),  # noqa: B008 - frozen
    read_line: ReadLine = transcript.read_line,
) -> Tail:
    """Reads a transcript from its cursor to its last whole line; turns and cursor move together.

    With `most_pieces` at most that many, so that others are served between two calls. Raises OSError when the
    file cannot be read, StoreError when the store refuses: the cursor then stands where it was and the next call
    reads on.
    """
    report = Tail()
    source = redact(wire.clean(str(path)), Counter())

    def look(rows: Rows) -> tuple[str, FileState | None, str]:
        name = tombstones.listed_path(rows, storable_path(str(path)), key=store.hash_key)
        return name, cursors.file_state(rows, name), purging.permitted_words(rows, source, key=store.hash_key)

    name, known, source = store.read(look)
    with files.open_regular(path) as file, contextlib.closing(Notes(quarantine, source=source)) as notes:
        info = os.fstat(file.fileno())
        beginning = file.read(BEGINNING_BYTES)
        begun = b"\n" in beginning or len(beginning) == BEGINNING_BYTES or is_whole(beginning)
        if not begun:
            return report  # what it is stands in its first line: the reading below may find one that came since
        start = where_to_start(
            _as_known(known),
            size=info.st_size,
            beginning=beginning,
            foot=_foot(file, known.position) if known else "",
            inode=info.st_ino,
            mtime_ns=info.st_mtime_ns,
        )
        if start.reason == "unchanged":
            return report
        places = Places(transcript.started_in(beginning))
        started, home = transcript.started_in(beginning), places.of("")
        roots = project_identity.roots(home)
        report.excluded = excludes.place(started, *roots)
        if report.excluded:
            return report
        # What is marked is read and left out, so that it stays out when the mark is taken away.
        report.excluded = excludes.off(started, home.place, *roots)
        warmup, hosts_own = transcript.is_warmup(beginning), read_line is transcript.read_line
        source_of = Source(path=name, places=places, room=session_limit, silent=warmup, hosts_own=hosts_own)
        withheld = Withheld(excludes=excludes)
        file.seek(max(0, start.position - transcript.BEFORE_BYTES))
        before = file.read(min(start.position, transcript.BEFORE_BYTES))
        transcript.remember(before, withheld)
        leaving = Leaving(
            excludes=excludes, place_of=places.of, off=report.excluded, began=transcript.times_in(beginning)[0],
            latest=transcript.times_in(before)[1], written_at=moment_of(info.st_mtime),
        )  # fmt: skip
        early = transcript.Reading(titles=leaving.early(transcript.titles_in(beginning)))
        bad_before = known.bad_lines if known and start.position else 0
        counted = known.bad_lines if known and not start.position else 0
        for number, (lines, position) in enumerate(pieces(file, start.position, stop)):
            heard = store.precedence.giving_way([] if source_of.silent else lines)
            read, bad = _parse(heard, tool_limit, notes, now(), withheld, read_line)
            read, left_out = leaving.apart(read)
            note_writes(store, left_out)
            read.turns = [_named(turn, store.hash_key) for turn in read.turns]
            reading, first = purging.permitted_lines(store, places.of, read, early)
            state = FileState(
                path=name,
                device=info.st_dev,
                inode=info.st_ino,
                position=position,
                head=head_of(beginning),
                foot=_foot(file, position),
                mtime_ns=info.st_mtime_ns,
                bad_lines=bad_before + report.bad_lines + bad,
            )
            bad_news = max(0, report.bad_lines + bad - counted) - max(0, report.bad_lines - counted)
            news = [("bad lines", bad_news), *leaving.news(first_time=start.reason in ("new", "grown"))]
            store_piece(store, reading, first.titles, news, state, source_of, now(), report)
            report.bad_lines += bad
            report.bytes_read = position - start.position
            if most_pieces is not None and number + 1 >= most_pieces:
                report.more = position < info.st_size
                break
    return report


def _named(turn: Turn, key: bytes) -> Turn:
    """A turn under its own name: a queue's line is told from another of its moment by what it says before any purge."""
    if turn.form != "queued":
        return turn
    return replace(turn, uuid=f"{turn.uuid}:{tokens.keyed_hash(turn.text, key)[:12]}")


def _as_known(state: FileState | None) -> Known | None:
    if state is None:
        return None
    return Known(position=state.position, head=state.head, foot=state.foot, inode=state.inode, mtime_ns=state.mtime_ns)


def _foot(file: BinaryIO, position: int) -> str:
    """A hash of what stands before a position of a file."""
    begin = max(0, position - FOOT_BYTES)
    return head_of(os.pread(file.fileno(), position - begin, begin))


def _parse(
    lines: Iterable[tuple[int, bytes | None]],
    tool_limit: int,
    notes: Notes,
    now: str,
    withheld: Withheld,
    read_line: ReadLine,
) -> tuple[transcript.Reading, int]:
    reading = transcript.Reading(withheld=withheld)
    bad = 0
    for offset, line in lines:
        try:
            if line is None:
                raise TooLarge(f"a line beyond {MAX_LINE_BYTES} bytes")
            read_line(line, reading, tool_limit=tool_limit)
        except BadInput as error:
            bad += 1
            notes.add(line, offset, reason=error.what[:120], now=now)
    return reading, bad
