"""Scores csmd.distill.extract on labelled real transcripts, read directly: no daemon, no store.

A split by time keeps the judgement honest: rules are tuned on the first half of one developer's sessions only and
checked on that developer's second half and on everybody else's. Prints one row per split; writes what was chosen.

    python tests/bench/extract_score.py [--eval DIR] [--out system.json] [--show N]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from csmd import text  # noqa: E402
from csmd.distill import extract  # noqa: E402
from csmd.model import Statement, StoredTurn  # noqa: E402

#: Whose sessions, cut in half by time, the rules may be tuned on: a part of the working directory.
TUNED_ON = "/soph/"
#: What the client writes into a user line that nobody typed.
NOT_TYPED = re.compile(
    r"\s*(?:<(?:command-|local-command|bash-|task-notification|user-memory-input|teammate-message)"
    r"|Caveat: |\[Request interrupted|Base directory for this skill|This session is being continued)"
)
COLUMNS = (
    "system_memories",
    "precision",
    "recall",
    "f1",
    "strict_precision",
    "strict_recall",
    "strict_f1",
    "strict_recall_imp3",
    "gate_accuracy_on_hits",
    "negative_turns_cited_share",
)


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of one transcript; a torn line is left out, as the client itself does."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                yield row


def text_of(row: dict[str, Any]) -> str:
    """What was said in one line: its text blocks, or "" for a tool's result."""
    content = (row.get("message") or {}).get("content")
    if isinstance(content, str):
        return content
    blocks = [block for block in content or () if isinstance(block, dict)]
    if any(block.get("type") == "tool_result" for block in blocks):
        return ""
    return "\n".join(block.get("text", "") for block in blocks if block.get("type") == "text")


def read_session(path: Path) -> tuple[list[StoredTurn], str, str]:
    """One transcript's main chain as (turns, time of its first line, working directory)."""
    turns: list[StoredTurn] = []
    seen: set[str] = set()
    started = cwd = ""
    for row in rows_of(path):
        started = started or row.get("timestamp") or ""
        cwd = cwd or row.get("cwd") or ""
        uuid, kind = row.get("uuid") or "", row.get("type")
        if kind not in ("user", "assistant") or not uuid or uuid in seen or row.get("isSidechain"):
            continue
        seen.add(uuid)
        said = text_of(row).strip()
        if row.get("isMeta") or row.get("isCompactSummary") or not said or (kind == "user" and NOT_TYPED.match(said)):
            continue
        turns.append(
            StoredTurn(
                seq=len(turns),
                uuid=uuid,
                session_id=row.get("sessionId") or path.stem,
                project_seq=1,
                kind="user" if kind == "user" else "assistant",
                text=said,
                at=row.get("timestamp") or "",
                ordinal=len(turns),
            )
        )
    return turns, started, cwd


def sessions_of(folder: Path) -> list[tuple[list[StoredTurn], str]]:
    """Every session with its working directory, oldest first."""
    found = [read_session(path) for path in sorted((folder / "transcripts").glob("*/*.jsonl"))]
    return [(turns, cwd) for turns, _, cwd in sorted(found, key=lambda item: item[1]) if turns]


def chosen(sessions: list[tuple[list[StoredTurn], str]]) -> list[tuple[StoredTurn, Statement]]:
    """The statements of all sessions; a text said again, in whichever session, confirms and adds nothing."""
    known: set[str] = set()
    found: list[tuple[StoredTurn, Statement]] = []
    for turns, _ in sessions:
        before = ""
        for turn in extract.final_turns(turns, settled=True):
            for statement in extract.statements(turn, before=before):
                key = text.normalise(statement.text)
                if key not in known:
                    known.add(key)
                    found.append((turn, statement))
            before = turn.text
    return found


def as_memories(found: list[tuple[StoredTurn, Statement]]) -> list[dict[str, Any]]:
    """What the eval's scorer reads."""
    return [
        {
            "text": statement.text,
            "source_uuids": [turn.uuid],
            "session": turn.session_id,
            "gate": statement.gate,
            "category": statement.category,
            "confidence": statement.confidence,
            "authority": statement.authority,
            "reasons": list(statement.reasons),
        }
        for turn, statement in found
    ]


def load_scorer(folder: Path) -> ModuleType:
    """The eval's own score.py, imported by path."""
    spec = importlib.util.spec_from_file_location("eval_score", folder / "score.py")
    if spec is None or spec.loader is None:
        sys.exit(f"cannot import {folder / 'score.py'}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def score(scorer: ModuleType, memories: list[dict[str, Any]], sessions: set[str], name: str) -> dict[str, Any]:
    """The eval's figures for some sessions only: labels, negatives and memories of the others are left out."""
    labels = scorer.Labels()
    labels.mem = [label for label in labels.mem if label["session"] in sessions]
    labels.sessions &= sessions
    labels.negu = {row["uuid"] for row in scorer.rd("negatives.jsonl") if row["session"] in sessions} or {""}
    labels.by.clear()
    for index, label in enumerate(labels.mem):
        labels.by[label["session"]].append(
            (index, set(label["uuids"]), scorer.words(label["quote"]), scorer.words(label["memory"]))
        )
    result: dict[str, Any] = scorer.extract(memories, labels, name, quiet=True)
    return result


def main() -> None:
    """Read, choose, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", default="../shared/eval", help="the labelled set; relative to the repository's root")
    parser.add_argument("--out", default="", help="where to write system.json; nowhere by default")
    parser.add_argument("--show", type=int, default=0, help="print that many of the chosen statements, evenly spread")
    options = parser.parse_args()
    folder = (ROOT / options.eval).resolve()
    if not (folder / "score.py").exists() or not (folder / "transcripts").is_dir():
        sys.exit(f"no labelled set at {folder} (it is not part of the repository): nothing measured; see --eval")

    sessions = sessions_of(folder)
    started = time.perf_counter()
    found = chosen(sessions)
    took = time.perf_counter() - started
    memories = as_memories(found)
    if options.out:
        Path(options.out).write_text(json.dumps(memories, indent=1))

    tuned_on = [turns[0].session_id for turns, cwd in sessions if TUNED_ON in cwd]
    everything = {turns[0].session_id for turns, _ in sessions}
    tune = set(tuned_on[: len(tuned_on) // 2])
    scorer = load_scorer(folder)
    print(f"{len(sessions)} sessions, {len(found)} statements, {took:.2f} s")
    for name, part in (("tune", tune), ("check", everything - tune), ("all", everything)):
        result = score(scorer, memories, part, name)
        print(f"{name:6}", "  ".join(f"{column} {result.get(column, '-')}" for column in COLUMNS))
    result = score(scorer, memories, everything, "all")
    print("recall by gate", result["recall_by_gate"], "by speaker", result["recall_by_speaker"])
    for turn, statement in found[:: max(1, len(found) // options.show)] if options.show else ():
        print(f"{turn.kind[0]} {statement.gate[:5]}/{statement.category} {statement.confidence:.2f}", end=" ")
        print(f"{','.join(statement.reasons)} | {statement.text}")


if __name__ == "__main__":
    main()
