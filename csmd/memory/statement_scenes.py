"""Finds the scenes of a session's memories, and the edits that changed the code that they describe."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

from csmd import wire
from csmd.conversation import StatedMemory, TranscriptTurn
from csmd.errors import BadInput
from csmd.extraction import statement_context
from csmd.extraction.shell_commands import read_file_path
from csmd.extraction.statement_context import Change, Claim, Edit, Scene
from csmd.store import failure_link_rows, memory_scenes, statement_rows, tombstones
from csmd.store.sqlite import Rows

#: Most edits of a session that are read, its last ones; nearly all sessions have fewer.
MAX_EDITS = 2_000
#: Characters of each call that are read: its input begins with the file's name.
MAX_CALL_CHARACTERS = 1_200
#: Stands for a scene that was lost.
NO_SCENE = Scene("", "")


def find_outdated(
    rows: Rows, session_seq: int, turns: Sequence[TranscriptTurn], stated: Sequence[StatedMemory], *, upto: int
) -> dict[int, tuple[str, str]]:
    """Maps each memory of a session to (uuid, time) of the edit that changed its code after it was last stated.

    An assistant's reply that is cited with a user's statement reports the work on it, and does not restate it.
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
    edits = list(
        _parse_edits(memory_scenes.list_file_changes(rows, session_seq, after=first, until=upto, limit=MAX_EDITS))
    )
    prompts = memory_scenes.list_prompts(rows, session_seq, until=upto)
    changes, _ = _read_changes(rows, session_seq, upto=upto)
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
        path = _text_field(value, "file_path")
        changes = value.get("edits") if isinstance(value, dict) else None
        for change in changes if isinstance(changes, list) else [value]:
            new = _text_field(change, "new_string") or _text_field(change, "content")
            yield Edit(uuid, at, ordinal, path, _text_field(change, "old_string"), new)


def _text_field(value: Any, name: str) -> str:
    text = value.get(name) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def find_changed_scenes(rows: Rows, session_seq: int, ident: str, *, upto: int, key: bytes) -> dict[int, Scene]:
    """Returns the scenes of a session's memories that differ from the stored ones, NO_SCENE for a lost one."""
    stated = memory_scenes.list_stated_by_session(rows, session_seq, ident, until=upto)
    stored_scenes = memory_scenes.map_scenes_of_session(rows, ident)
    if not stated and not stored_scenes:
        return {}
    changes, is_whole = _read_changes(rows, session_seq, upto=upto)
    scenes = statement_context.find_scenes(stated, changes, memory_scenes.list_prompts(rows, session_seq, until=upto))
    scenes = _drop_forgotten(rows, session_seq, scenes, key=key)
    return {
        seq: scene
        for seq in dict.fromkeys((*(statement.memory_seq for statement in stated), *stored_scenes))
        if (is_whole or seq not in stored_scenes)
        and (scene := scenes.get(seq, NO_SCENE)).text != stored_scenes.get(seq, "")
    }


def _drop_forgotten(rows: Rows, session_seq: int, scenes: dict[int, Scene], *, key: bytes) -> dict[int, Scene]:
    """Drops scenes that quote forgotten text, or a turn about people."""
    project, _ = memory_scenes.find_scene_directories(rows, session_seq)
    personal = statement_rows.list_personal_turns(rows, session_seq)
    allowed: dict[int, Scene] = {}
    for seq, scene in scenes.items():
        quoted = scene.text.partition('"')[2].rstrip('"')
        is_forgotten = partial(tombstones.is_forgotten, rows, quoted, authority="user", project=project, at="", key=key)
        if not quoted or not (scene.uuid in personal or is_forgotten()):
            allowed[seq] = scene
        elif scene.text.startswith(statement_context.REVIEW):
            allowed[seq] = Scene(statement_context.REVIEW, scene.uuid)
    return allowed


def _read_changes(rows: Rows, session_seq: int, *, upto: int) -> tuple[list[Change], bool]:
    """Reads a session's last file changes, in order; returns them and whether they are complete and readable."""
    calls = memory_scenes.list_file_changes(
        rows, session_seq, until=upto, limit=MAX_EDITS, characters=MAX_CALL_CHARACTERS
    )
    _, roots = memory_scenes.find_scene_directories(rows, session_seq)
    paths = [(call, read_file_path(call.input_start)) for call in calls]
    is_whole = len(calls) < MAX_EDITS and all(path for _, path in paths)
    changes = [Change(call.uuid, call.ordinal, _relative_path(path, roots), call.at, call.anew) for call, path in paths]
    return changes, is_whole


def _relative_path(path: str, roots: Sequence[str]) -> str:
    """Returns a file's path below its session's directories; a relative path as it is, "" for a file elsewhere."""
    posix = path.replace("\\", "/")
    if ".." in posix.split("/") or posix.startswith("~"):
        return ""
    if path and not PurePath(path).is_absolute() and ":" not in path[:3]:
        return path
    prefixes = [root.replace("\\", "/").rstrip("/") + "/" for root in roots if root.strip("/\\")]
    return next((posix.removeprefix(root) for root in prefixes if posix.startswith(root)), "")
