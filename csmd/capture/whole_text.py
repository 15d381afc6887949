"""Reads the whole text of a turn that was stored cut: again from its transcript, redacted as when it was stored."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from csmd.capture import project_identity, transcript_source
from csmd.capture.ingest import BEGINNING_BYTES
from csmd.capture.project_identity import Places
from csmd.conversation import Turn
from csmd.errors import BadInput
from csmd.exclusions import Excludes
from csmd.hosts import adapters
from csmd.hosts.transcript_reading import Reading, Transcript
from csmd.paths import is_file
from csmd.privacy.fingerprints import Marks, remove_purged
from csmd.privacy.redaction import KNOWN_AGAIN
from csmd.store import sessions, tombstones
from csmd.store.sqlite import Rows
from csmd.store.turns import UNLIMITED_BYTES, CutTurn
from csmd.text import display
from csmd.withheld_calls import WithheldCalls

#: At this time every message in a database counts as finished: it was, when it was stored.
FAR_FUTURE = "9999-12-31T00:00:00.000Z"


class Sources(NamedTuple):
    """The transcripts that may hold the whole text of a turn, and the purged text and secrets to be removed."""

    paths: list[str]
    purged: Marks
    secrets: Marks


def find_sources(rows: Rows, turn: CutTurn, *, key: bytes) -> Sources:
    """Returns the sources of a turn's whole text; `key` is the store's."""
    return Sources(
        sessions.list_transcripts_with(rows, turn.seq), tombstones.purged_marks(rows, key),
        tombstones.secrets_of(rows, [turn.session_id], key),
    )  # fmt: skip


def read_whole(
    turn: CutTurn, sources: Sources, *, excludes: Excludes, is_thorough: bool = True
) -> Generator[None, None, str | None]:
    """Reads the whole text of a turn in steps, from the first transcript that still has it; None if none has.

    Text that was excluded or purged since is left out. Lines that name neither the turn nor its call are read only if
    `is_thorough`: the uuid of a line of Codex may depend on earlier lines.
    """
    for path in sources.paths:
        with contextlib.suppress(OSError):
            original = yield from _find_turn(Path(path), turn, excludes, is_thorough)
            if original is not None:
                text, _ = remove_purged(original.text, sources.purged)
                text, _ = remove_purged(text, sources.secrets, placeholder=KNOWN_AGAIN)
                if matches_stored(text, turn):
                    return text
    return None


def matches_stored(whole: str, turn: CutTurn) -> bool:
    """Whether a text can be the one of which a turn stores the beginning and the end; True if it stores nothing."""
    cut = display.find_cut(turn.text, f"turn {turn.uuid}")
    if cut is None:
        return turn.is_gone or whole == turn.text
    stored_bytes = display.count_bytes(f"{cut.head}{cut.tail}")
    # A character that was cut through is on neither side.
    missing = display.count_bytes(whole) - stored_bytes - cut.left_out
    return whole.startswith(cut.head) and whole.endswith(cut.tail) and 0 <= missing <= 6


def _find_turn(path: Path, turn: CutTurn, excludes: Excludes, is_thorough: bool) -> Generator[None, None, Turn | None]:
    """Returns the turn in its transcript: first only the lines that name it or its tool's call are read, then all."""
    in_database = is_file(path.parent)
    if not in_database and not is_file(path):
        return None
    uuid = turn.uuid.partition("/")[0]
    message = uuid.rpartition(":")[2].partition("+")[0] if in_database else uuid
    names = [name.encode() for name in (message, turn.tool_id) if name]
    for searched in (names, []) if is_thorough else (names,):
        with _open_transcript(path, in_database) as (file, beginning, pieces):
            started = adapters.find_start_directory(beginning)
            places = Places(started)
            if project_identity.is_excluded(excludes, places.of(started), started):
                return None
            withheld = WithheldCalls(excludes=excludes)
            opened = Transcript(path=path, file=file, beginning=beginning, position=0, withheld=withheld)
            read_line = adapters.adapter_of_transcript(beginning).make_reader(opened)
            for lines, _ in pieces:
                reading = Reading(withheld=withheld, tool_limit=UNLIMITED_BYTES)
                for _, line in lines:
                    if line is not None and (not searched or any(name in line for name in searched)):
                        with contextlib.suppress(BadInput):
                            read_line(line, reading)
                for candidate in reading.turns:
                    if (candidate.uuid, candidate.kind, candidate.tool_id) == (turn.uuid, turn.kind, turn.tool_id):
                        project = places.of(candidate.cwd)
                        return None if project_identity.is_excluded(excludes, project, candidate.cwd) else candidate
                yield
    return None


@contextlib.contextmanager
def _open_transcript(
    path: Path, in_database: bool
) -> Iterator[tuple[BinaryIO, bytes, Iterator[tuple[transcript_source.Lines, int]]]]:
    """A transcript, its first bytes, and its lines in pieces."""
    if in_database:
        with transcript_source.DatabaseSession.open(path, now=FAR_FUTURE) as session:
            yield session.file, session.beginning, session.read_pieces(0, lambda: False)
    else:
        with path.open("rb") as file:
            yield file, file.read(BEGINNING_BYTES), transcript_source.read_pieces(file, 0, lambda: False)
