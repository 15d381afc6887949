"""Finds the scenes of a session's memories, and the edits that changed the code that they describe."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from csmd import json_fields, wire
from csmd.conversation import StatedMemory, TranscriptTurn
from csmd.errors import BadInput
from csmd.extraction import statement_context
from csmd.extraction.shell_commands import read_file_path
from csmd.extraction.statement_context import Change, Claim, Edit, Scene
from csmd.store import failure_link_rows, memory_scenes, statement_rows, tombstones
from csmd.store.sqlite import Rows

#: Nearly all sessions have fewer edits; of others the last ones are read.
MAX_EDITS = 2_000
#: The input of a call begins with the file's name.
MAX_CALL_CHARACTERS = 1_200
#: Marks a memory whose scene can no longer be found.
NO_SCENE = Scene("", "")


def find_outdating_edits(
    rows: Rows, session_seq: int, turns: Sequence[TranscriptTurn], stated: Sequence[StatedMemory], *, until_ordinal: int
) -> dict[int, tuple[str, str]]:
    """Maps each memory of a session to (uuid, time) of the edit that changed its code after it was last stated.

    A reply that is cited as context of a user's statement is not a restatement.
    """
    prompt_texts = {turn.uuid: turn.text for turn in turns if turn.kind == "user"}
    citations = failure_link_rows.list_context_citations(rows, session_seq)
    last_statements: dict[int, StatedMemory] = {}
    for statement in sorted(stated, key=lambda statement: statement.ordinal):
        if (statement.memory_seq, statement.uuid) in citations:
            continue
        is_claim = statement_context.is_claim(
            statement.text, statement.category, by_assistant=statement.authority == "assistant",
            turn=prompt_texts.get(statement.uuid, ""),
        )  # fmt: skip
        if is_claim:
            last_statements[statement.memory_seq] = statement
    if not last_statements:
        return {}
    first = min(statement.ordinal for statement in last_statements.values())
    calls = memory_scenes.list_file_changes(rows, session_seq, after=first, until=until_ordinal, limit=MAX_EDITS)
    edits = list(_parse_edits(calls))
    prompts = memory_scenes.list_prompts(rows, session_seq, until=until_ordinal)
    changes, _ = _read_changes(rows, session_seq, until_ordinal=until_ordinal)
    ordinals = [prompt.ordinal for prompt in prompts]
    claims = [_to_claim(statement, prompt_texts, ordinals) for statement in last_statements.values()]
    rewrites = statement_context.find_rewrites(last_statements.values(), changes, prompts)
    outdating: dict[int, Change | Edit] = {**rewrites, **statement_context.find_edits(claims, edits)}
    return {key: (change.uuid, change.at) for key, change in outdating.items()}


def _to_claim(statement: StatedMemory, prompt_texts: Mapping[str, str], prompt_ordinals: Sequence[int]) -> Claim:
    """Returns a memory's claim with its remark; edits before the next prompt answer the remark."""
    remark = statement_context.find_remark(statement.text, statement.category, prompt_texts.get(statement.uuid, ""))
    following = bisect_right(prompt_ordinals, statement.ordinal)
    next_prompt = prompt_ordinals[following] if following < len(prompt_ordinals) else sys.maxsize
    return Claim(statement.memory_seq, statement.text, statement.ordinal, remark, next_prompt if remark else 0)


def _parse_edits(calls: Iterable[memory_scenes.FileChange]) -> Iterator[Edit]:
    """Yields the edits that calls made; only the file is known of a call that was stored truncated."""
    for uuid, at, ordinal, _, arguments in calls:
        try:
            value = wire.loads(arguments)
        except BadInput:
            value = {"file_path": read_file_path(arguments)}
        value = value if isinstance(value, dict) else {}
        path = json_fields.string(value, "file_path")
        for change in json_fields.mappings(value.get("edits")) or [value]:
            new = json_fields.string(change, "new_string") or json_fields.string(change, "content")
            yield Edit(uuid, at, ordinal, path, json_fields.string(change, "old_string"), new)


def find_changed_scenes(
    rows: Rows, session_seq: int, session_id: str, *, until_ordinal: int, key: bytes
) -> dict[int, Scene]:
    """Returns the scenes of a session's memories that differ from the stored ones, NO_SCENE for a lost one."""
    stated = memory_scenes.list_stated_by_session(rows, session_seq, session_id, until=until_ordinal)
    stored = memory_scenes.map_scenes_of_session(rows, session_id)
    if not stated and not stored:
        return {}
    changes, is_complete = _read_changes(rows, session_seq, until_ordinal=until_ordinal)
    prompts = memory_scenes.list_prompts(rows, session_seq, until=until_ordinal)
    scenes = statement_context.find_scenes(stated, changes, prompts)
    scenes = _drop_forgotten(rows, session_seq, scenes, key=key)
    seqs = dict.fromkeys([statement.memory_seq for statement in stated])
    if is_complete:
        seqs |= dict.fromkeys(stored)
    current = {seq: scenes.get(seq, NO_SCENE) for seq in seqs if is_complete or seq not in stored}
    return {seq: scene for seq, scene in current.items() if scene.text != stored.get(seq, "")}


def _drop_forgotten(rows: Rows, session_seq: int, scenes: dict[int, Scene], *, key: bytes) -> dict[int, Scene]:
    """Drops scenes that quote forgotten text, or a turn classified as personal."""
    project, _ = memory_scenes.find_scene_directories(rows, session_seq)
    personal = statement_rows.list_personal_turns(rows, session_seq)
    allowed: dict[int, Scene] = {}
    for seq, scene in scenes.items():
        quoted = scene.text.partition('"')[2].rstrip('"')
        is_private = bool(quoted) and scene.uuid in personal
        if quoted and not is_private:
            is_private = tombstones.is_forgotten(rows, quoted, authority="user", project=project, at="", key=key)
        if not is_private:
            allowed[seq] = scene
        elif scene.text.startswith(statement_context.REVIEW):
            allowed[seq] = Scene(statement_context.REVIEW, scene.uuid)
    return allowed


def _read_changes(rows: Rows, session_seq: int, *, until_ordinal: int) -> tuple[list[Change], bool]:
    """Reads a session's last file changes, in order; returns them and whether they are complete and readable."""
    until, characters = until_ordinal, MAX_CALL_CHARACTERS
    calls = memory_scenes.list_file_changes(rows, session_seq, until=until, limit=MAX_EDITS, characters=characters)
    _, roots = memory_scenes.find_scene_directories(rows, session_seq)
    paths = [(call, read_file_path(call.input_start)) for call in calls]
    is_complete = len(calls) < MAX_EDITS and all(path for _, path in paths)
    changes = [Change(call.uuid, call.ordinal, _make_relative(path, roots), call.at, call.anew) for call, path in paths]
    return changes, is_complete


def _make_relative(path: str, roots: Sequence[str]) -> str:
    """Returns a file's path below its session's directories; a relative path is unchanged, a file elsewhere gives ""."""
    posix = path.replace("\\", "/")
    if ".." in posix.split("/") or posix.startswith("~"):
        return ""
    if path and not PurePath(path).is_absolute() and ":" not in path[:3]:
        return path
    prefixes = [root.replace("\\", "/").rstrip("/") + "/" for root in roots if root.strip("/\\")]
    return next((posix.removeprefix(root) for root in prefixes if posix.startswith(root)), "")
