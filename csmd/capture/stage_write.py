"""Writes what was read of a transcript: turns, titles and the cursor together, a batch at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from csmd import text
from csmd.capture import stage_purge as purging
from csmd.capture import stage_worktrees
from csmd.capture.hosts import claude, claude_versions
from csmd.capture.stage import redaction_counts
from csmd.capture.stage_place import Places
from csmd.model import Turn
from csmd.store import activity, cursors, projects, sessions, tombstones, turns
from csmd.store import events as client_versions
from csmd.store.core import Store
from csmd.store.cursors import FileState
from csmd.store.purged import Marks
from csmd.store.sqlite import Rows

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
    reading: claude.Reading,
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
    entered = stage_worktrees.identified(reading.worktrees)
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
            left: list[claude.Left] = left,
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
                client_versions.note_versions(rows, claude_versions.latest(batch))
            if last:
                for session, title in reading.titles.items():
                    if turns.set_title(rows, session, title):
                        found.update(reading.redactions.get("", {}))
                for session, title in early.items():
                    turns.set_title(rows, session, title, first=True)
                for uuid in reading.withdrawn:
                    sessions.withdraw(rows, state.path, uuid)
                permitted = [purging.permitted_place(rows, one, key=store.hash_key) for pair in entered for one in pair]
                stage_worktrees.note(rows, zip(permitted[::2], permitted[1::2], strict=True), now=now)
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
    sessions.note_tampered(rows, turn.writes, at=turn.at, hashed=lambda name: text.keyed_hash(name, key))


def _leave(rows: Rows, left: claude.Left, key: bytes) -> None:
    turns.unqueue(
        rows,
        left.session_id,
        at=left.at,
        text_hash=text.keyed_hash(left.text, key) if left.text else "",
        absorbed=left.absorbed,
        nth=left.nth,
    )


def _store_turn(rows: Rows, turn: Turn, source: Source, marks: Marks, key: bytes, now: str) -> bool:
    if turn.answers and not claude.may_answer(sessions.tools_called(rows, turn.answers)):
        return False
    _note_tampered(rows, turn, key)
    turn, place, listed = purging.permitted_turn(turn, source.places.of(turn.cwd), source.path, marks)
    home = projects.settle(rows, place, now=now)
    return turns.add_turn(
        rows,
        turn,
        text_hash=text.keyed_hash(turn.text, key),
        host=claude.HOST,
        project=home.seq,
        directory=home.directory,
        path=listed,
        room=source.room,
        file=source.path,
    )


def _line_of(turn: Turn) -> str:
    """The name under which a reading knows a turn's line."""
    return turn.uuid.rpartition(":")[0] if turn.form == "queued" else turn.uuid
