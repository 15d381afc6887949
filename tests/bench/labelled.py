"""A labelled set of real transcripts as csmd reads them, its split by time and user, and its own scorer."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from csmd.conversation import StoredTurn, Turn  # noqa: E402
from csmd.errors import BadInput  # noqa: E402
from csmd.extraction import exchange_sources  # noqa: E402
from csmd.extraction.exchange_sources import Source  # noqa: E402
from csmd.extraction.statements import SPOKEN_KINDS  # noqa: E402
from csmd.hosts import transcript_reading  # noqa: E402
from csmd.hosts.claude import transcript  # noqa: E402
from csmd.text import tokens  # noqa: E402

#: Whose sessions, cut in half by time, rules and weights may be tuned on: a part of the working directory.
TUNED_ON = "/soph/"
TOOL_LIMIT = 4_096


@dataclass
class Session:
    """One transcript's main chain, as the store would hold it."""

    id: str
    turns: list[StoredTurn]
    started: str
    cwd: str
    worked: list[Source]
    """What its work says in words: plans, commits, reports, summaries."""


def folder_of(asked: str) -> Path:
    """Where the labelled set is; ends the program, saying so, when it is not there."""
    folder = (ROOT / asked).resolve()
    if not (folder / "score.py").exists() or not (folder / "transcripts").is_dir():
        sys.exit(f"no labelled set at {folder} (it is not part of the repository): nothing measured; see --eval")
    return folder


def sessions_of(folder: Path, *, inside: str = "transcripts") -> list[Session]:
    """Every session with turns below a folder of transcripts, oldest first."""
    found = [_session(path) for path in sorted((folder / inside).rglob("*.jsonl"))]
    return sorted((one for one in found if one.turns), key=lambda one: one.started)


def _session(path: Path) -> Session:
    reading = transcript_reading.Reading(tool_limit=TOOL_LIMIT)
    with path.open("rb") as lines:
        for line in lines:
            try:
                transcript.read_line(line, reading)
            except BadInput:
                continue
    turns = {turn.uuid: turn for turn in reading.turns if not turn.agent_id}
    typed = {tokens.normalise(turn.text) for turn in turns.values() if turn.kind == "user" and turn.form != "queued"}
    main = [turn for turn in turns.values() if turn.form != "queued" or tokens.normalise(turn.text) not in typed]
    ids = Counter(turn.session_id for turn in main)
    stored = [_stored(turn, place) for place, turn in enumerate(main, 1)]
    results = {turn.tool_id: one for turn, one in zip(main, stored, strict=True) if turn.kind == "tool_result"}
    calls = [(turn, one) for turn, one in zip(main, stored, strict=True) if turn.kind == "tool_call"]
    said = [exchange_sources.read_call_source(one, turn.tool_name, results.get(turn.tool_id)) for turn, one in calls]
    return Session(
        id=ids.most_common(1)[0][0] if ids else path.stem,
        turns=stored,
        worked=[*exchange_sources.find_notified_sources(stored), *(one for one in said if one is not None)],
        started=next((turn.at for turn in reading.turns), ""),
        cwd=next((turn.cwd for turn in reading.turns if turn.cwd), ""),
    )


def _stored(turn: Turn, place: int) -> StoredTurn:
    return StoredTurn(
        seq=place, uuid=turn.uuid, session_id=turn.session_id, project_seq=1, kind=turn.kind, text=turn.text,
        at=turn.at, ordinal=place,
    )  # fmt: skip


def sources_of(session: Session) -> list[Source]:
    """The sources of a session that is over, as distillation sees them."""
    return exchange_sources.find_sources(spoken(session), settled=True, worked=session.worked)


def spoken(session: Session) -> list[StoredTurn]:
    """What distillation reads of a session."""
    return [turn for turn in session.turns if turn.kind in SPOKEN_KINDS]


def line_of(uuid: str) -> str:
    """The uuid of the transcript's line that a turn stands in: further turns of one line are numbered."""
    return uuid.partition("/")[0]


def split(sessions: list[Session]) -> dict[str, set[str]]:
    """The ids of the sessions to tune on, to check on, and of each of the other users."""
    tuned_on = [one.id for one in sessions if TUNED_ON in one.cwd]
    tune, later = set(tuned_on[: len(tuned_on) // 2]), set(tuned_on[len(tuned_on) // 2 :])
    others = {one.id for one in sessions} - tune - later
    users: dict[str, set[str]] = {}
    for one in sessions:
        if one.id in others:
            users.setdefault(one.cwd.split("/")[2] if one.cwd.count("/") > 1 else "?", set()).add(one.id)
    return {"tune": tune, "later": later, "others": others, "check": later | others, "all": tune | later | others} | {
        f"user {name}": ids for name, ids in sorted(users.items())
    }


def scorer_of(folder: Path) -> ModuleType:
    """The set's own score.py, imported by path."""
    spec = importlib.util.spec_from_file_location("labelled_score", folder / "score.py")
    if spec is None or spec.loader is None:
        sys.exit(f"cannot import {folder / 'score.py'}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def score(scorer: ModuleType, memories: list[dict[str, Any]], sessions: set[str]) -> dict[str, Any]:
    """The set's figures for some sessions only: labels, negatives and memories of the others are left out."""
    labels = scorer.Labels()
    labels.mem = [label for label in labels.mem if label["session"] in sessions]
    labels.sessions &= sessions
    labels.negu = {row["uuid"] for row in scorer.rd("negatives.jsonl") if row["session"] in sessions} or {""}
    labels.by.clear()
    for index, label in enumerate(labels.mem):
        labels.by[label["session"]].append(
            (index, set(label["uuids"]), scorer.words(label["quote"]), scorer.words(label["memory"]))
        )
    result: dict[str, Any] = scorer.extract(memories, labels, "", quiet=True)
    return result
