"""Scores how many labelled gotchas are found by the words of their symptom: the cause's turn among the best five.

    python tests/bench/gotcha_score.py [--eval DIR]

The daemon (CSMD_HOME) must hold the set: `csmd import DIR/transcripts`. Asked is with the first words of what the
user reported, for gotchas that are labelled with a user's turn and an assistant's; found is a memory that the
assistant's turn states, or that is of the report and cites the turn beside it: both are told. What has no such memory
cannot be found: how many have one is told as well.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from csmd import client
from csmd.config import default_paths
from csmd.text import tokens

HERE = Path(__file__).resolve().parent
#: So many content words are asked with: about as many as somebody types.
ASKED = 8
AMONG = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=Path, default=HERE.parent.parent.parent / "shared" / "eval")
    args = parser.parse_args()
    if not (args.eval / "memories.jsonl").is_file():
        print(f"{args.eval} holds no labelled set: nothing is scored", file=sys.stderr)
        return 1
    turns = spoken(args.eval / "transcripts")
    said = {row["id"]: roles(row["id"]) for row in call("csm_memory_list")["memories"]}
    labels = [json.loads(line) for line in (args.eval / "memories.jsonl").read_text().splitlines() if line.strip()]
    both = 0
    kept, found = Counter[str](), Counter[str]()
    for label in labels:
        of = {
            who: [uuid for uuid in label["uuids"] if turns.get(uuid, ("",))[0] == who] for who in ("user", "assistant")
        }
        if label["category"] != "gotcha" or not of["user"] or not of["assistant"]:
            continue
        both += 1
        query = " ".join(tokens.content_words(turns[of["user"][0]][1])[:ASKED])
        hits = call("csm_memory_search", query=query, limit=AMONG, kind="memory")["hits"]
        causes = set(of["assistant"])
        kept.update({how for one in said.values() for uuid, how in one if uuid in causes})
        found.update({how for hit in hits for uuid, how in said.get(hit["id"], ()) if uuid in causes})
    print(f"gotchas with a symptom and a cause: {both}")
    for how in ("states", "cites"):
        print(f"a memory {how} the cause's turn: {kept[how]}; among the best {AMONG}: {found[how]}")
    return 0


def roles(ident: str) -> list[tuple[str, str]]:
    """The lines that a memory has as sources, each with "states" or, where it only stands beside them, "cites"."""
    sources = call("csm_memory_show", id=ident)["sources"]
    return [
        (source["uuid"].partition("/")[0], "cites" if source["role"] == "beside" else "states") for source in sources
    ]


def spoken(folder: Path) -> dict[str, tuple[str, str]]:
    """Who says what in each line that somebody speaks in, by its uuid."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            content = (row.get("message") or {}).get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            said = "\n".join(
                block["text"] for block in blocks if isinstance(block, dict) and block.get("type") == "text"
            )
            if row.get("uuid") and said and row.get("type") in ("user", "assistant"):
                found.setdefault(row["uuid"], (row["type"], said))
    return found


def call(tool: str, **params: object) -> dict:
    return client.call(default_paths(), tool, params)


if __name__ == "__main__":
    sys.exit(main())
