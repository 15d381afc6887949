"""Scores a running daemon's search on LoCoMo's long chats: two people, many sessions, questions with evidence turns.

    python tests/bench/bench_locomo.py [--set DIR] [--every N]

The chats (CC BY-NC 4.0: for measuring only) are written as transcripts, one project a chat, and imported into the
running CSMD_HOME, which should hold nothing else; what is imported once is known the next time. A turn counts as found
when its uuid is among a hit's `source_uuids` (at most four): R@k is the share of a question's evidence found in k hits,
session hit@1 whether the first hit is of a session with evidence. The first three chats were tuned on.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from csmd import client
from csmd.config import default_paths

HERE = Path(__file__).resolve().parent
DEFAULT = HERE.parent.parent.parent / "shared" / "eval" / "locomo"
TUNED_ON = ("conv-26", "conv-30", "conv-41")
#: What the set's numbers of categories stand for.
KINDS = {1: "several hops", 2: "time", 3: "inference", 4: "one fact", 5: "adversarial"}
Question = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", type=Path, default=DEFAULT, dest="folder")
    parser.add_argument("--every", type=int, default=1, help="Ask every Nth question only.")
    args = parser.parse_args()
    if not list(args.folder.glob("locomo_*.json")):
        print(f"{args.folder} holds no LoCoMo conversations: nothing is scored", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="csmd-locomo-") as place:
        questions = transcripts(args.folder, Path(place))
        done = client.run_job(default_paths(), "csm_import", {"path": place, "vectors": True}, watch=lambda _: None)
        print(f"{done['turns_new']} turns new, {done['turns_known']} known")
    report(questions[:: args.every], lambda question: ask(question))
    return 0


def ask(question: Question) -> list[Any]:
    found = client.call(
        default_paths(), "csm_memory_search", {"query": question["question"], "project": question["cwd"], "limit": 10}
    )
    return list(found["hits"])


def transcripts(folder: Path, out: Path) -> list[Question]:
    """Writes every chat as a project's transcripts below `out`; its questions, evidence as (uuid, session)."""
    questions: list[Question] = []
    for file in sorted(folder.glob("locomo_*.json")):
        for chat in json.loads(file.read_text()):
            said = _chat(chat, out / f"-locomo-{chat['sample_id']}")
            for asked in chat["qa"]:
                evidence = [said[one] for one in asked["evidence"] if one in said]
                if evidence:
                    questions.append({
                        "cwd": _directory(chat), "question": asked["question"], "evidence": evidence,
                        "kind": KINDS.get(asked["category"], "?"),
                        "split": "tuned on" if chat["sample_id"] in TUNED_ON else "checked on",
                    })  # fmt: skip
    return questions


def _directory(chat: dict[str, Any]) -> str:
    return f"/locomo/{chat['sample_id']}"


def _chat(chat: dict[str, Any], folder: Path) -> dict[str, tuple[str, str]]:
    """Writes one chat's sessions; the set's name of a turn -> (uuid, session)."""
    folder.mkdir(parents=True)
    talk, sample, known = chat["conversation"], chat["sample_id"], {}
    number = 1
    while turns := talk.get(f"session_{number}"):
        began = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        session = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{sample}/{number}"))
        lines, parent = [], None
        for place, turn in enumerate(turns):
            ident = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{sample}/{turn['dia_id']}"))
            known[turn["dia_id"]] = (ident, session)
            said = f"{turn['speaker']}: {turn['text']}"
            said += f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            kind = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            message: dict[str, Any] = {"role": kind, "content": said}
            if kind == "assistant":
                message = {"role": kind, "content": [{"type": "text", "text": said}], "id": f"msg_{ident[:12]}",
                           "type": "message", "model": "x"}  # fmt: skip
            at = (began + timedelta(seconds=20 * place)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            lines.append({
                "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": _directory(chat),
                "sessionId": session, "version": "2.1.0", "type": kind, "message": message, "uuid": ident, "timestamp": at,
            })  # fmt: skip
            parent = ident
        (folder / f"{session}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        number += 1
    return known


def report(questions: list[Question], ask: Any) -> None:
    """Prints R@1, 5 and 10, session hit@1 and how long a search took, for all, by split and by kind of question."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    took = []
    for question in questions:
        begun = time.perf_counter()
        hits = ask(question)
        took.append(time.perf_counter() - begun)
        for group in ("all", question["split"], question["kind"]):
            rows[group] += score(question, hits)
    for group, row in rows.items():
        n = row["questions"]
        found = "  ".join(f"R@{k} {row[f'r{k}'] / n:.3f}" for k in (1, 5, 10))
        print(f"{group:13} {n:4}  {found}  session hit@1 {row['first'] / n:.3f}")
    took.sort()
    print(f"over the socket: p50 {took[len(took) // 2] * 1000:.0f} ms, p95 {took[int(len(took) * 0.95)] * 1000:.0f} ms")


def score(question: Question, hits: list[Any]) -> Counter[str]:
    """One question's figures, to be added up."""
    turns, sessions = {one for one, _ in question["evidence"]}, {one for _, one in question["evidence"]}
    row: Counter[str] = Counter(questions=1)
    for k in (1, 5, 10):
        found = {uuid for hit in hits[:k] for uuid in hit["source_uuids"][:4]}
        row[f"r{k}"] += len(turns & found) / len(turns)  # type: ignore[assignment]
    row["first"] += bool(hits) and hits[0]["session_id"] in sessions
    return row


if __name__ == "__main__":
    sys.exit(main())
