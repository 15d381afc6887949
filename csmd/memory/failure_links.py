"""Links failures to their fixes and to memories."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

from csmd import wire
from csmd.errors import BadInput
from csmd.extraction import failure_reports, shell_commands, statement_context
from csmd.extraction import statements as distill
from csmd.extraction.shell_commands import command_of, file_of
from csmd.extraction.statement_context import Change, Claim, Edit, Scene
from csmd.hosts.tool_calls import SHELL, WRITERS
from csmd.memory import confidence
from csmd.memory.supersession import aged
from csmd.paths import name_of_transcript
from csmd.store import (
    belief_changes,
    core,
    cursors,
    failures,
    fulltext,
    memories,
    memory_links,
    memory_scenes,
    search,
    statement_rows,
    tampered_transcripts,
    tombstones,
)
from csmd.store import failures as stored
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.memories import EDITED
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.values import Link, StatedMemory, TranscriptTurn

STAGE = stored.GOTCHA_STAGE
#: Memories whose sessions are looked at again in one step.
BATCH = 20
#: Turns with a failure or a success noted in one write at most.
SEEN_BATCH = 50
#: What is looked up for a report or a cause across sessions.
LOOKED_UP = 10
MOST_FILES = 12


def waiting(store: Store, pace: cursors.Pace = cursors.Pace()) -> list[Behind]:  # noqa: B008 - frozen
    """The sessions that are due, with distilled turns that this stage has not read, the oldest first."""
    return store.read(lambda rows: cursors.sessions_behind(rows, STAGE, after=distill.STAGE, pace=pace))


def relate_session(store: Store, session: Behind, *, now: str) -> int:
    """Reads one session as far as it was distilled; the number of turns, at least 1."""
    if store.read(lambda rows: _is_tampered(rows, session.path, store.hash_key)):
        store.write(lambda rows: cursors.move_cursor(rows, STAGE, str(session.session_seq), session.turns))
    else:
        seen = store.read(lambda rows: _find_observations(rows, session))
        while seen:
            noted = store.write(lambda rows, seen=seen: _note(rows, session, seen))  # type: ignore[misc]
            seen = seen[noted:]
        _relate(store, session.session_seq, session.session_id, upto=session.turns, now=now)
    return max(1, session.turns - session.position)


def recheck_sessions(store: Store, *, now: str) -> int:
    """Relates the sessions of some new memories again; how many memories, 0 when none wait."""
    fresh = store.read(lambda rows: stored.memories_after(rows, cursors.cursor(rows, STAGE, "memories"), limit=BATCH))
    if not fresh:
        return 0
    for ident, last in {session: memory for memory, session in fresh}.items():
        # A session that was gone through since is known to say nothing else of these memories.
        pending = store.read(partial(_to_relate, ident=ident, last=last, key=store.hash_key))
        if pending is not None:
            _relate(store, pending[0], ident, upto=pending[1], now=now)
    store.write(lambda rows: cursors.move_cursor(rows, STAGE, "memories", fresh[-1][0]))
    return len(fresh)


def _to_relate(rows: Rows, *, ident: str, last: int, key: bytes) -> tuple[int, int] | None:
    """(row key, turns to read) of a session with unrelated memories up to `last`; None for any other."""
    session = stored.session_of(rows, ident)
    if session is None or not session[1] or session[2] >= last:
        return None
    return None if _is_tampered(rows, stored.path_of(rows, session[0]), key) else session[:2]


def _is_tampered(rows: Rows, path: str, key: bytes) -> bool:
    return tampered_transcripts.is_tampered(rows, tokens.keyed_hash(name_of_transcript(path), key))


# --- errors and what mended them


class _Observation(NamedTuple):
    """What one turn shows: a failure, or a success with its call and shell line."""

    turn: TranscriptTurn
    failure: failure_reports.ObservedFailure | None
    call: TranscriptTurn | None = None
    line: str = ""


def _find_observations(rows: Rows, session: Behind) -> list[_Observation]:
    """Finds failures and successes in a session's new turns; on a reader, because outputs are long."""
    around = stored.turns_past(
        rows, session.session_seq, after=max(0, session.position - stored.CALL_BEFORE), upto=session.turns
    )
    calls = {turn.tool_id: turn for turn in around if turn.kind == "tool_call" and turn.tool_id}
    observations: list[_Observation] = []
    for turn in around:
        if turn.ordinal <= session.position:
            continue
        if turn.kind == "user":
            pasted = failure_reports.pasted_error(turn.text, at=turn.at, uuid=turn.uuid)
            observations += [_Observation(turn, pasted)] if pasted else []
        elif turn.kind == "tool_result" and turn.tool_id in calls:
            call = calls[turn.tool_id]
            line = command_of(call.text) if call.tool_name == SHELL else ""
            failure = failure_reports.observed_failure(call.tool_name, line, turn.text, at=turn.at, uuid=turn.uuid)
            if failure or (line and failure_reports.succeeded(turn.text)):
                observations.append(_Observation(turn, failure, call, line))
    return observations


def _note(rows: Rows, session: Behind, seen: Sequence[_Observation]) -> int:
    """Stores the first observations whose turns still exist; how many were handled."""
    noted, batch = 0, seen[:SEEN_BATCH]
    there = search.turns_by_seq(rows, [observation.turn.seq for observation in batch])
    for turn, failure, call, line in core.within_short_write(batch):
        noted += 1
        if turn.seq not in there or there[turn.seq].text != turn.text:
            continue  # purged, or a part of it, since it was read
        if failure is None:
            assert call is not None
            _store_fixes(rows, session, call, turn, line)
        else:
            failures.add_error(
                rows, fingerprint=failure.fingerprint, command=failure.command, exit_code=failure.exit_code,
                message=failure.message, turn=turn.seq, session=session.session_seq, at=turn.at,
            )  # fmt: skip
    return noted


def _store_fixes(rows: Rows, session: Behind, call: TranscriptTurn, turn: TranscriptTurn, line: str) -> None:
    """Stores fixes of earlier failures of the commands that now succeeded, if files were edited in between."""
    went_well = frozenset(shell_commands.commands(line))
    failed = [
        failed_run
        for failed_run in failures.failures_in(rows, session.session_seq, before=turn.ordinal)
        if failed_run.command in went_well
    ]
    for error, failure in {failed_run.error_seq: failed_run for failed_run in failed}.items():
        if failures.fixed_until(rows, session.session_seq, error) > failure.ordinal:
            continue
        start = max(0, failure.ordinal - stored.CALL_BEFORE)
        around = stored.turns_past(rows, session.session_seq, after=start, upto=session.turns)
        was, now = _scope(around, failure), shell_commands.scope(line, failure.command)
        # A run that looked at less than the one that failed shows nothing.
        if not now <= was or not shell_commands.shows_mended(failure.command, same=now == was):
            continue
        later = [
            failed_run.ordinal
            for failed_run in failed
            if failed_run.command == failure.command and failed_run.ordinal > failure.ordinal
        ]
        again = min([*later, call.ordinal])
        between = [nearby for nearby in around if nearby.ordinal > failure.ordinal]
        files = _changed_files(between, upto=again)
        if not files:
            continue
        about = failures.message(rows, error)
        uuid, diagnosis = failure_reports.diagnosis(_passages(between, again=again, well=turn.ordinal), about=about)
        failures.add_fix(
            rows, error=error, turn=turn.seq, session=session.session_seq, uuid=uuid or turn.uuid, at=turn.at,
            files=files, text=diagnosis,
        )  # fmt: skip


def _scope(around: Sequence[TranscriptTurn], failure: failures.Open) -> frozenset[str]:
    """The arguments of the command that failed."""
    tool = next((turn.tool_id for turn in around if turn.seq == failure.turn_seq), "")
    line = next((command_of(turn.text) for turn in around if turn.kind == "tool_call" and turn.tool_id == tool), "")
    return shell_commands.scope(line, failure.command)


def _changed_files(between: Sequence[TranscriptTurn], *, upto: int) -> list[str]:
    """The names of the files that were edited up to an ordinal, in order."""
    calls = [turn for turn in between if turn.kind == "tool_call" and turn.ordinal < upto]
    names = [file_of(call.text).rpartition("/")[2] for call in calls if call.tool_name in WRITERS]
    return list(filter(None, dict.fromkeys(names)))[:MOST_FILES]


def _passages(between: Sequence[TranscriptTurn], *, again: int, well: int) -> list[tuple[str, str, bool]]:
    """(uuid, text, whether before `again`) of the assistant's messages from the failure to the prompt after the success."""
    passages: list[tuple[str, str, bool]] = []
    for turn in between:
        if turn.kind in ("user", "relayed") and turn.ordinal > well:
            break
        if turn.kind == "assistant":
            passages.append((turn.uuid, turn.text, turn.ordinal < again))
    return passages


# --- symptoms and refutations


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFindings:
    """Relations within a session and across sessions, for memories up to the row key `last`; `ids` by row key.

    `edited` maps a memory to (uuid, time) of the last edit of its code; `scenes` maps it to its scene, NONE if it lost it.
    """

    within: failure_reports.Relations
    across: Sequence[failure_reports.Symptom]
    edited: Mapping[int, tuple[str, str]]
    scenes: Mapping[int, Scene]
    ids: Mapping[int, str]
    last: int


def _relate(store: Store, session_seq: int, ident: str, *, upto: int, now: str) -> None:
    """Relates a session's turns, memories and failures; finding takes only a reader's time."""
    findings = store.read(lambda rows: _look(rows, session_seq, ident, upto=upto, key=store.hash_key))

    def write(rows: Rows) -> None:
        for symptom in (*findings.within.symptoms, *findings.across):
            _report(rows, symptom)
        for from_id, to_id in findings.within.links:
            link = Link(from_id=findings.ids[from_id], to_id=findings.ids[to_id], relationship="symptom_of")
            memory_links.add_link(rows, link, now=now)
        for refutation in findings.within.refutations:
            _refute(rows, refutation, findings.ids, now=now)
        for memory, (uuid, at) in findings.edited.items():
            stored.add_refutation(rows, memory, uuid=uuid, at=at, reason=EDITED, lowered=0.0)
        for memory, scene in findings.scenes.items():
            memory_scenes.note_scene(rows, memory, uuid=scene.uuid, text=scene.text)
        cursors.move_cursor(rows, STAGE, str(session_seq), upto)
        cursors.move_cursor(rows, stored.RELATED, str(session_seq), findings.last)

    store.write(write)


def _look(rows: Rows, session_seq: int, ident: str, *, upto: int, key: bytes) -> SessionFindings:
    turns = stored.turns_past(rows, session_seq, after=0, upto=upto, spoken=True)
    stated = [statement for statement in stored.stated_memories(rows, session_seq, ident) if statement.ordinal <= upto]
    return SessionFindings(
        within=failure_reports.relate(turns, stated, failures.of_session(rows, session_seq)),
        across=_across(rows, session_seq, turns, stated, key=key),
        edited=_find_stale(rows, session_seq, turns, stated, upto=upto),
        scenes=_scenes(rows, session_seq, ident, upto=upto, key=key),
        ids={statement.memory_seq: statement.memory_id for statement in stated}, last=stored.last_memory(rows),
    )  # fmt: skip


def _report(rows: Rows, symptom: failure_reports.Symptom) -> None:
    shown = symptom.fingerprint
    if not shown:
        pasted = failure_reports.pasted_error(symptom.text, at=symptom.at, uuid=symptom.uuid)
        shown = failures.same_message(rows, pasted.message, other_than=pasted.fingerprint) if pasted else ""
    stored.add_symptom(rows, symptom.key, uuid=symptom.uuid, at=symptom.at, text=symptom.text, fingerprint=shown)


def _refute(rows: Rows, refutation: failure_reports.Refutation, ids: Mapping[int, str], *, now: str) -> None:
    """Marks a cause as refuted; of several refutations only the strongest counts, in any order."""
    before = stored.confidence_lost(rows, refutation.key)
    new = stored.add_refutation(
        rows,
        refutation.key,
        uuid=refutation.uuid,
        at=refutation.at,
        reason=refutation.reason,
        lowered=refutation.lowered,
    )
    if refutation.by in ids:
        link = Link(from_id=ids[refutation.key], to_id=ids[refutation.by], relationship="refuted_by")
        memory_links.add_link(rows, link, now=now)
    memory = memories.by_seqs(rows, [refutation.key]).get(refutation.key)
    if not new or memory is None or refutation.lowered <= before or memory.pinned:
        return
    lowered = aged(rows, replace(memory, confidence=confidence.lowered(memory.confidence, refutation.lowered - before)))
    memories.update_belief(rows, lowered)
    was, became = belief_changes.state(memory), belief_changes.state(lowered)
    belief_changes.record_change(
        rows, memory.id, "confidence", was, became, f"refuted: {refutation.reason}", "gotchas", now
    )


def _across(
    rows: Rows, session_seq: int, turns: Sequence[TranscriptTurn], stated: Sequence[StatedMemory], *, key: bytes
) -> list[failure_reports.Symptom]:
    """Matches this session's reports with causes found later elsewhere, and its causes with earlier reports."""
    symptoms: list[failure_reports.Symptom] = []
    places = stored.projects_of(rows, session_seq)
    for turn in turns:
        symptom = failure_reports.symptom_in(turn.text) if turn.kind == "user" else ""
        named = sorted(failure_reports.names(symptom))
        if len(named) < failure_reports.NAMES_ACROSS:
            continue
        hits = fulltext.text_hits(rows, "memory", named, projects=places, limit=LOOKED_UP)
        symptoms += [
            failure_reports.Symptom(memory.seq, turn.uuid, turn.at, symptom, "")
            for memory in memories.by_seqs(rows, [int(seq) for seq, _ in hits]).values()
            if failure_reports.is_cause(memory.text, category=memory.category, authority=memory.authority)
            and failure_reports.belongs_across(symptom, turn.at, memory.text, memory.created_at)
            and not stored.is_stated_in(rows, memory.seq, session_seq)
        ]
    at = {turn.uuid: turn.at for turn in turns}
    for cause in stated:
        named = sorted(failure_reports.names(cause.text))
        is_cause = failure_reports.is_cause(cause.text, category=cause.category, authority=cause.authority)
        if len(named) < failure_reports.NAMES_ACROSS or not is_cause:
            continue
        saying = search.turns_matching(rows, named, projects=places, limit=LOOKED_UP)
        for other in search.turns_by_seq(rows, saying).values():
            symptom = failure_reports.symptom_in(other.text) if other.kind == "user" else ""
            if (
                symptom
                and failure_reports.belongs_across(symptom, other.at, cause.text, at.get(cause.uuid, ""))
                and not stored.is_listed(rows, other.seq, session_seq)
                and not _is_tampered(rows, stored.path_of_turn(rows, other.seq), key)
            ):
                symptoms.append(failure_reports.Symptom(cause.memory_seq, other.uuid, other.at, symptom, ""))
    return symptoms


# --- edits and scenes

#: Edits and changes looked at, the last of a session: more than nearly all have; and how much of each change: the file
#: is named at its beginning.
MOST_EDITS, CHARACTERS = 2_000, 1_200
NONE = Scene("", "")


def _find_stale(
    rows: Rows, session_seq: int, turns: Sequence[TranscriptTurn], stated: Sequence[StatedMemory], *, upto: int
) -> dict[int, tuple[str, str]]:
    """Maps each memory that a session states to the edit that changed its code after its last statement.

    A reply cited beside a user's statement reports what was done about it, and does not state it again.
    """
    users = {turn.uuid: turn.text for turn in turns if turn.kind == "user"}
    citations = stored.context_citations(rows, session_seq)
    last: dict[int, StatedMemory] = {}
    for statement in sorted(stated, key=lambda statement: statement.ordinal):
        by_assistant, turn = statement.authority == "assistant", users.get(statement.uuid, "")
        if (statement.memory_seq, statement.uuid) not in citations and statement_context.is_claim(
            statement.text, statement.category, by_assistant=by_assistant, turn=turn
        ):
            last[statement.memory_seq] = statement
    if not last:
        return {}
    first = min(statement.ordinal for statement in last.values())
    edits = list(_edits(memory_scenes.file_changes_of(rows, session_seq, after=first, upto=upto, most=MOST_EDITS)))
    prompts = memory_scenes.prompts_of(rows, session_seq, upto=upto)
    changes, _ = _changes(rows, session_seq, upto=upto)
    claims = [_claim(statement, users, [prompt.ordinal for prompt in prompts]) for statement in last.values()]
    rewritten = {
        key: (statement.uuid, statement.at)
        for key, statement in statement_context.find_rewrites(last.values(), changes, prompts).items()
    }
    return rewritten | {
        key: (statement.uuid, statement.at) for key, statement in statement_context.find_edits(claims, edits).items()
    }


def _claim(statement: StatedMemory, users: Mapping[str, str], prompts: Sequence[int]) -> Claim:
    """A memory's claim with the remark around it; edits before the next prompt answer the remark."""
    around = statement_context.remark(statement.text, statement.category, users.get(statement.uuid, ""))
    after = bisect_right(prompts, statement.ordinal)
    answered = prompts[after] if after < len(prompts) else sys.maxsize
    return Claim(statement.memory_seq, statement.text, statement.ordinal, around, answered if around else 0)


def _edits(calls: Iterable[memory_scenes.FileChange]) -> Iterator[Edit]:
    """The edits that calls made; of a call that was stored truncated only the file is known."""
    for uuid, at, ordinal, _, arguments in calls:
        try:
            value = wire.loads(arguments)
        except BadInput:
            value = {"file_path": file_of(arguments)}
        path = _text(value, "file_path")
        several = value.get("edits") if isinstance(value, dict) else None
        for change in several if isinstance(several, list) else [value]:
            new = _text(change, "new_string") or _text(change, "content")
            yield Edit(uuid, at, ordinal, path, _text(change, "old_string"), new)


def _text(value: Any, name: str) -> str:
    text = value.get(name) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def _scenes(rows: Rows, session_seq: int, ident: str, *, upto: int, key: bytes) -> dict[int, Scene]:
    """The scenes of a session's memories that differ from the stored ones."""
    stated = memory_scenes.stated_by_session(rows, session_seq, ident, upto=upto)
    stored_scenes = memory_scenes.scenes_of_session(rows, ident)
    if not stated and not stored_scenes:
        return {}
    changes, is_whole = _changes(rows, session_seq, upto=upto)
    scenes = statement_context.scenes(stated, changes, memory_scenes.prompts_of(rows, session_seq, upto=upto))
    scenes = _allowed(rows, session_seq, scenes, key=key)
    return {
        seq: scene
        for seq in dict.fromkeys((*(statement.memory_seq for statement in stated), *stored_scenes))
        if (is_whole or seq not in stored_scenes)
        and (scene := scenes.get(seq, NONE)).text != stored_scenes.get(seq, "")
    }


def _allowed(rows: Rows, session_seq: int, scenes: dict[int, Scene], *, key: bytes) -> dict[int, Scene]:
    """Drops scenes that quote forgotten text, or a turn about people."""
    project, _ = memory_scenes.scene_places(rows, session_seq)
    personal = statement_rows.personal_turns(rows, session_seq)
    allowed: dict[int, Scene] = {}
    for seq, scene in scenes.items():
        quoted = scene.text.partition('"')[2].rstrip('"')
        out = scene.uuid in personal or tombstones.is_forgotten(
            rows, quoted, authority="user", project=project, at="", key=key
        )
        if not (quoted and out):
            allowed[seq] = scene
        elif scene.text.startswith(statement_context.REVIEW):
            allowed[seq] = Scene(statement_context.REVIEW, scene.uuid)
    return allowed


def _changes(rows: Rows, session_seq: int, *, upto: int) -> tuple[list[Change], bool]:
    """A session's last file changes, in order, and whether they are complete and readable."""
    file_changes = memory_scenes.file_changes_of(rows, session_seq, upto=upto, most=MOST_EDITS, characters=CHARACTERS)
    _, roots = memory_scenes.scene_places(rows, session_seq)
    read = [(change, file_of(change.input_start)) for change in file_changes]
    is_whole = len(file_changes) < MOST_EDITS and all(path for _, path in read)
    return [
        Change(change.uuid, change.ordinal, _below(path, roots), change.at, change.anew) for change, path in read
    ], is_whole


def _below(path: str, roots: Sequence[str]) -> str:
    """A file's path below its session's directories; a relative path as it is, "" for a file elsewhere."""
    flat = path.replace("\\", "/")
    if ".." in flat.split("/") or flat.startswith("~"):
        return ""
    if path and not PurePath(path).is_absolute() and ":" not in path[:3]:
        return path
    prefixes = [root.replace("\\", "/").rstrip("/") + "/" for root in roots if root.strip("/\\")]
    return next((flat.removeprefix(root) for root in prefixes if flat.startswith(root)), "")
