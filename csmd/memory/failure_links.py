"""Links failures to their fixes, and memories of causes to symptoms and refutations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from csmd.conversation import StatedMemory, TranscriptTurn
from csmd.extraction import failure_reports, shell_commands
from csmd.extraction import statements as distill
from csmd.extraction.failure_reports import Refutation, Symptom
from csmd.extraction.shell_commands import read_command, read_file_path
from csmd.extraction.statement_context import Scene
from csmd.hosts.tool_calls import SHELL, WRITERS
from csmd.knowledge import Link, Memory
from csmd.memory import confidence, statement_scenes
from csmd.memory.supersession import save_belief
from csmd.paths import name_of_transcript
from csmd.store import (
    core,
    cursors,
    failure_link_rows,
    failures,
    memories,
    memory_links,
    memory_scenes,
    search,
    tampered_transcripts,
)
from csmd.store.core import Store
from csmd.store.cursors import SessionBehind
from csmd.store.memories import EDITED_CODE
from csmd.store.sqlite import Rows
from csmd.text import tokens

STAGE = failure_link_rows.GOTCHA_STAGE
#: New memories of one step; it relates their sessions again.
BATCH = 20
#: The most failures and successes that one write stores.
WRITE_BATCH = 50
#: Most memories or turns compared with a report or cause of another session.
MAX_NEAR = 10
#: Most files listed for a fix.
MAX_FILES = 12


def find_pending(store: Store, pace: cursors.Pace = cursors.Pace()) -> list[SessionBehind]:  # noqa: B008 - frozen
    """Finds the sessions with distilled turns that this stage has not read yet, the oldest first."""
    return store.read(lambda rows: cursors.sessions_behind(rows, STAGE, after=distill.STAGE, pace=pace))


def relate_session(store: Store, session: SessionBehind, *, now: str) -> int:
    """Relates one session as far as it was distilled; returns the number of turns, at least 1."""
    if store.read(lambda rows: _is_tampered(rows, session.path, store.hash_key)):
        store.write(lambda rows: cursors.move_cursor(rows, STAGE, str(session.session_seq), session.turns))
    else:
        waiting = store.read(lambda rows: _find_observations(rows, session))
        while waiting:
            handled = store.write(partial(_store_observations, session=session, waiting=waiting))
            waiting = waiting[handled:]
        _relate(store, session.session_seq, session.session_id, until_ordinal=session.turns, now=now)
    return max(1, session.turns - session.position)


def recheck_sessions(store: Store, *, now: str) -> int:
    """Relates the sessions of the next new memories again; returns the number of memories, 0 if none wait."""
    position = store.read(lambda rows: cursors.read_cursor(rows, STAGE, "memories"))
    new = store.read(lambda rows: failure_link_rows.list_memories_after(rows, position, limit=BATCH))
    if not new:
        return 0
    for session_id, last in {session: memory for memory, session in new}.items():
        # None if the session was related since it stated these memories.
        pending = store.read(partial(_find_unrelated, session_id=session_id, last=last, key=store.hash_key))
        if pending is not None:
            _relate(store, pending[0], session_id, until_ordinal=pending[1], now=now)
    store.write(lambda rows: cursors.move_cursor(rows, STAGE, "memories", new[-1][0]))
    return len(new)


def _find_unrelated(rows: Rows, *, session_id: str, last: int, key: bytes) -> tuple[int, int] | None:
    """Returns (row key, turns to read) of a session with unrelated memories up to `last`; None without any."""
    session = failure_link_rows.find_progress(rows, session_id)
    if session is None or not session.turns or session.related_memory >= last:
        return None
    path = failure_link_rows.find_transcript(rows, session.session_seq)
    return None if _is_tampered(rows, path, key) else (session.session_seq, session.turns)


def _is_tampered(rows: Rows, path: str, key: bytes) -> bool:
    return tampered_transcripts.is_tampered(rows, tokens.keyed_hash(name_of_transcript(path), key))


# --- errors and their fixes


class _Observation(NamedTuple):
    """A failure in a turn, or a success with its call and shell line."""

    turn: TranscriptTurn
    failure: failure_reports.ObservedFailure | None
    call: TranscriptTurn | None = None
    line: str = ""


def _find_observations(rows: Rows, session: SessionBehind) -> list[_Observation]:
    """Finds failures and successes in a session's new turns; on a reader, because outputs are long."""
    start = max(0, session.position - failure_link_rows.MAX_CALL_DISTANCE)
    around = failure_link_rows.read_turns(rows, session.session_seq, after=start, until=session.turns)
    calls = {turn.tool_id: turn for turn in around if turn.kind == "tool_call" and turn.tool_id}
    observations: list[_Observation] = []
    for turn in around:
        if turn.ordinal <= session.position:
            continue
        if turn.kind == "user":
            pasted = failure_reports.find_pasted_error(turn.text, at=turn.at, uuid=turn.uuid)
            observations += [_Observation(turn, pasted)] if pasted else []
        elif turn.kind == "tool_result" and turn.tool_id in calls:
            call = calls[turn.tool_id]
            line = read_command(call.text) if call.tool_name == SHELL else ""
            failure = failure_reports.find_failure(call.tool_name, line, turn.text, at=turn.at, uuid=turn.uuid)
            if failure or (line and failure_reports.succeeded(turn.text)):
                observations.append(_Observation(turn, failure, call, line))
    return observations


def _store_observations(rows: Rows, session: SessionBehind, waiting: Sequence[_Observation]) -> int:
    """Stores the first observations whose turns still exist; returns the number of observations handled."""
    handled, batch = 0, waiting[:WRITE_BATCH]
    existing = search.turns_by_seq(rows, [observation.turn.seq for observation in batch])
    for turn, failure, call, line in core.within_short_write(batch):
        handled += 1
        if turn.seq not in existing or existing[turn.seq].text != turn.text:
            continue  # purged, at least in part, since it was read
        if failure is None:
            assert call is not None
            _store_fixes(rows, session, call, turn, line)
        else:
            failures.add_error(
                rows, fingerprint=failure.fingerprint, command=failure.command, exit_code=failure.exit_code,
                message=failure.message, turn=turn.seq, session=session.session_seq, at=turn.at,
            )  # fmt: skip
    return handled


def _store_fixes(rows: Rows, session: SessionBehind, call: TranscriptTurn, turn: TranscriptTurn, line: str) -> None:
    """Stores fixes of earlier failures of the commands that now succeeded, if files were edited in between."""
    succeeded = frozenset(shell_commands.list_commands(line))
    earlier = failures.list_failures(rows, session.session_seq, before=turn.ordinal)
    failed = [failure for failure in earlier if failure.command in succeeded]
    for error, failure in {failure.error_seq: failure for failure in failed}.items():
        if failures.find_last_fix_ordinal(rows, session.session_seq, error) > failure.ordinal:
            continue
        start = max(0, failure.ordinal - failure_link_rows.MAX_CALL_DISTANCE)
        around = failure_link_rows.read_turns(rows, session.session_seq, after=start, until=session.turns)
        before, now = _find_scope(around, failure), shell_commands.find_arguments(line, failure.command)
        # A run on a part of the failed files proves no fix.
        if not now <= before or not shell_commands.shows_mended(failure.command, same=now == before):
            continue
        later = [run.ordinal for run in failed if run.command == failure.command and run.ordinal > failure.ordinal]
        next_run = min([*later, call.ordinal])
        between = [nearby for nearby in around if nearby.ordinal > failure.ordinal]
        files = _find_changed_files(between, until_ordinal=next_run)
        if not files:
            continue
        passages = _find_passages(between, next_run=next_run, success=turn.ordinal)
        uuid, diagnosis = failure_reports.find_diagnosis(passages, about=failures.read_message(rows, error))
        failures.add_fix(
            rows, error=error, turn=turn.seq, session=session.session_seq, uuid=uuid or turn.uuid, at=turn.at,
            files=files, text=diagnosis,
        )  # fmt: skip


def _find_scope(around: Sequence[TranscriptTurn], failure: failures.OpenFailure) -> frozenset[str]:
    """Returns the arguments of the command that failed."""
    tool = next((turn.tool_id for turn in around if turn.seq == failure.turn_seq), "")
    line = next((read_command(turn.text) for turn in around if turn.kind == "tool_call" and turn.tool_id == tool), "")
    return shell_commands.find_arguments(line, failure.command)


def _find_changed_files(between: Sequence[TranscriptTurn], *, until_ordinal: int) -> list[str]:
    """Returns the names of the files that were edited up to an ordinal, in order."""
    calls = [turn for turn in between if turn.kind == "tool_call" and turn.ordinal < until_ordinal]
    names = [read_file_path(call.text).rpartition("/")[2] for call in calls if call.tool_name in WRITERS]
    return list(filter(None, dict.fromkeys(names)))[:MAX_FILES]


def _find_passages(between: Sequence[TranscriptTurn], *, next_run: int, success: int) -> list[tuple[str, str, bool]]:
    """Returns (uuid, text, is before `next_run`) of the assistant's messages up to the prompt after `success`."""
    passages: list[tuple[str, str, bool]] = []
    for turn in between:
        if turn.kind in ("user", "relayed") and turn.ordinal > success:
            break
        if turn.kind == "assistant":
            passages.append((turn.uuid, turn.text, turn.ordinal < next_run))
    return passages


# --- symptoms and refutations


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFindings:
    """Relations within a session and across sessions, for memories up to the row key `last`, with their `ids`.

    `edited` maps a memory to (uuid, time) of the last edit of its code, `scenes` to its changed scene.
    """

    within: failure_reports.Relations
    across: Sequence[Symptom]
    edited: Mapping[int, tuple[str, str]]
    scenes: Mapping[int, Scene]
    ids: Mapping[int, str]
    last: int


def _relate(store: Store, session_seq: int, session_id: str, *, until_ordinal: int, now: str) -> None:
    """Relates a session's turns, memories and failures; the search runs on a reader."""
    findings = store.read(
        lambda rows: _find_relations(rows, session_seq, session_id, until_ordinal=until_ordinal, key=store.hash_key)
    )

    def write(rows: Rows) -> None:
        for symptom in (*findings.within.symptoms, *findings.across):
            _store_symptom(rows, symptom)
        for from_id, to_id in findings.within.links:
            link = Link(from_id=findings.ids[from_id], to_id=findings.ids[to_id], relationship="symptom_of")
            memory_links.add_link(rows, link, now=now)
        for refutation in findings.within.refutations:
            _store_refutation(rows, refutation, findings.ids, now=now)
        for memory, (uuid, at) in findings.edited.items():
            failures.add_refutation(rows, memory, uuid=uuid, at=at, reason=EDITED_CODE, lowered=0.0)
        for memory, scene in findings.scenes.items():
            memory_scenes.set_scene(rows, memory, uuid=scene.uuid, text=scene.text)
        cursors.move_cursor(rows, STAGE, str(session_seq), until_ordinal)
        cursors.move_cursor(rows, failure_link_rows.RELATED_STAGE, str(session_seq), findings.last)

    store.write(write)


def _find_relations(
    rows: Rows, session_seq: int, session_id: str, *, until_ordinal: int, key: bytes
) -> SessionFindings:
    turns = failure_link_rows.read_turns(rows, session_seq, after=0, until=until_ordinal, spoken=True)
    stated = failure_link_rows.list_stated_memories(rows, session_seq, session_id)
    stated = [memory for memory in stated if memory.ordinal <= until_ordinal]
    return SessionFindings(
        within=failure_reports.relate(turns, stated, failures.list_failed_commands(rows, session_seq)),
        across=_find_symptoms_elsewhere(rows, session_seq, turns, stated, key=key),
        edited=statement_scenes.find_outdating_edits(rows, session_seq, turns, stated, until_ordinal=until_ordinal),
        scenes=statement_scenes.find_changed_scenes(rows, session_seq, session_id, until_ordinal=until_ordinal, key=key),
        ids={memory.memory_seq: memory.memory_id for memory in stated}, last=failure_link_rows.find_last_memory(rows),
    )  # fmt: skip


def _store_symptom(rows: Rows, symptom: Symptom) -> None:
    fingerprint = symptom.fingerprint
    if not fingerprint:
        pasted = failure_reports.find_pasted_error(symptom.text, at=symptom.at, uuid=symptom.uuid)
        fingerprint = failures.find_same_message(rows, pasted.message, other_than=pasted.fingerprint) if pasted else ""
    key, uuid, at, text = symptom.key, symptom.uuid, symptom.at, symptom.text
    failures.add_symptom(rows, key, uuid=uuid, at=at, text=text, fingerprint=fingerprint)


def _store_refutation(rows: Rows, refutation: Refutation, ids: Mapping[int, str], *, now: str) -> None:
    """Marks a cause as refuted; only the strongest of several refutations lowers its confidence."""
    lost = failures.read_confidence_loss(rows, refutation.key)
    new = failures.add_refutation(
        rows, refutation.key, uuid=refutation.uuid, at=refutation.at, reason=refutation.reason,
        lowered=refutation.lowered,
    )  # fmt: skip
    if refutation.by in ids:
        link = Link(from_id=ids[refutation.key], to_id=ids[refutation.by], relationship="refuted_by")
        memory_links.add_link(rows, link, now=now)
    memory = memories.by_seqs(rows, [refutation.key]).get(refutation.key)
    if not new or memory is None or refutation.lowered <= lost or memory.pinned:
        return
    lowered = replace(memory, confidence=confidence.lower(memory.confidence, refutation.lowered - lost))
    reason = f"refuted: {refutation.reason}"
    save_belief(rows, memory, lowered, kind="confidence", reason=reason, by="gotchas", at=now)


def _find_symptoms_elsewhere(
    rows: Rows, session_seq: int, turns: Sequence[TranscriptTurn], stated: Sequence[StatedMemory], *, key: bytes
) -> list[Symptom]:
    """Matches this session's reports with causes found later elsewhere, and its causes with earlier reports."""
    symptoms: list[Symptom] = []
    projects = [failure_link_rows.read_project(rows, session_seq)]
    for turn in turns:
        report = _find_report(turn)
        names = _find_distinctive_names(report)
        near = search.memories_matching(rows, names, projects=projects, limit=MAX_NEAR) if names else []
        for memory in filter(_is_cause, near):
            is_report = failure_reports.is_report_of_cause(report, turn.at, memory.text, memory.created_at)
            if is_report and not failure_link_rows.is_stated_in(rows, memory.seq, session_seq):
                symptoms.append(Symptom(memory.seq, turn.uuid, turn.at, report, ""))
    times = {turn.uuid: turn.at for turn in turns}
    for cause in filter(_is_cause, stated):
        names = _find_distinctive_names(cause.text)
        matching = search.find_turns_matching(rows, names, projects=projects, limit=MAX_NEAR) if names else []
        for matched in search.turns_by_seq(rows, matching).values():
            report = _find_report(matched)
            is_report = failure_reports.is_report_of_cause(report, matched.at, cause.text, times.get(cause.uuid, ""))
            if not report or not is_report or failure_link_rows.is_listed(rows, matched.seq, session_seq):
                continue
            if not _is_tampered(rows, failure_link_rows.find_transcript_of_turn(rows, matched.seq), key):
                symptoms.append(Symptom(cause.memory_seq, matched.uuid, matched.at, report, ""))
    return symptoms


def _find_report(turn: TranscriptTurn | search.TurnRow) -> str:
    return failure_reports.find_symptom(turn.text) if turn.kind == "user" else ""


def _find_distinctive_names(text: str) -> list[str]:
    """Returns the names in a text, [] if they are too few to recognise a failure in another session."""
    names = sorted(failure_reports.find_names(text))
    return names if len(names) >= failure_reports.MIN_NAMES_ACROSS else []


def _is_cause(memory: Memory | StatedMemory) -> bool:
    return failure_reports.is_cause(memory.text, category=memory.category, authority=memory.authority)
