"""Measures whether a changed fact is told as it is now, and whether look-alikes are left alone.

    python tests/bench/bench_changed.py [--csmd COMMAND] [--model DIR] [--show]

40 facts that a later session changes and 20 pairs of statements that look alike and both hold
(tests/data/changed_facts.jsonl) lie in five projects, each among the same 25 ordinary sessions
(tests/data/ordinary_sessions.jsonl). Every project is imported as transcripts into a daemon in a home of its own:
in one home the ordinary sessions would be said five times over. Nothing of csmd is imported here, so `--csmd` may be
that of any commit. Fields of a fact:

    old    words of the value that no longer holds, any of them
    new    words of the value that holds now, groups of alternatives
    still  words of the first statement that hold unchanged (partial changes and exceptions), any of them
    task   a prompt that depends on the fact and shares few words with it

Figures for the facts; a text is that of `csmd brief`, or of `csmd recall --prompt TASK`:

    stale    the old value stands in a text as current: without the new one, or in a note above it. A part that begins
             with "(before" is no claim about the present. The rule that an exception was made to may stand anywhere
             in a text that tells the exception, too
    unmarked the old value stands below the new one and no "(before" says that it is old
    told     the new value stands in either text (a brief is limited to some hundred tokens)
    above    in `csmd search TASK` a hit that states the old value stands above the first that states the new one

A pair counts as ended when, for one of its statements, every memory that held it is superseded by something that does
not say it; when no memory holds it although one does if the statement is alone in a project (an import into a second
home finds that out); or when `csmd search` for the statement's own sentence has no hit that holds it, or only superseded
ones. *Linked*: a hit of one names something of the other as newer. The last line of the output is the figures as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data"
#: Beyond the last hit.
NOWHERE = 99
HITS = 10
START_S = 30.0
#: What the measured csmd answers, as JSON.
Ask = Callable[..., Any]
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csmd", default=str(Path(sys.executable).with_name("csmd")), help="the command to measure")
    parser.add_argument("--model", help="a directory for `csmd model add`; without one search is by words only")
    parser.add_argument("--show", action="store_true", help="print what failed, with what was told")
    args = parser.parse_args()
    rows, ordinary = read("changed_facts.jsonl"), read("ordinary_sessions.jsonl")
    facts, pairs = [], []
    with running(args.csmd, args.model) as (home, ask):
        alone = held_alone([row for row in rows if "both" in row], home, ask)
    for cwd in sorted({row["cwd"] for row in rows}):
        here = [row for row in rows if row["cwd"] == cwd]
        with running(args.csmd, args.model) as (home, ask):
            uuids = load([*here, {"id": "ordinary", "cwd": cwd, "sessions": ordinary}], home, ask)
            memories = ask("memories", "--all-projects")["memories"]
            brief = ask("brief", "--project", cwd)["text"] or ""
            facts += [measure_fact(row, brief, uuids, ask) for row in here if "task" in row]
            pairs += [measure_pair(row, memories, alone[row["id"]], ask) for row in here if "both" in row]
        print(f"\r{len(facts) + len(pairs)} of {len(rows)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if args.show:
        show(facts, pairs)
    report(facts, pairs)
    return 0


def measure_fact(fact: Row, brief: str, uuids: dict[tuple[str, int, int], str], ask: Ask) -> Row:
    """What the brief, the recall at the task and the search with the task say of one changed fact."""
    recalled = ask("recall", "--project", fact["cwd"], "--prompt", fact["task"])["text"] or ""
    hits = ask("search", fact["task"], "--project", fact["cwd"], "--limit", str(HITS))["hits"]
    old, new = stating(fact, uuids)
    either = f"{brief}\n{recalled}"
    return {
        "id": fact["id"],
        "kind": fact["kind"],
        "stale in brief": tells_old(fact, brief),
        "stale at task": tells_old(fact, recalled),
        "stale": tells_old(fact, brief) or tells_old(fact, recalled),
        "unmarked": leaves_unmarked(fact, brief) or leaves_unmarked(fact, recalled),
        "told in brief": says(brief, fact["new"]),
        "told at task": says(recalled, fact["new"]),
        "told": says(brief, fact["new"]) or says(recalled, fact["new"]),
        "still": holds(either, fact["still"]) if fact["still"] else None,
        "above": place_of(hits, old) < place_of(hits, new),
        "place": place_of(hits, new),
        "recalled": recalled,
        "notes": [note for note in notes_of(brief) if holds(note, [*fact["old"], *flat(fact["new"])])],
        "hits": [hit["text"][:160] for hit in hits[:3]],
        "wanted": fact["new"],
    }


def tells_old(fact: Row, text: str) -> bool:
    """Whether a text tells the old value of `fact` as what holds now."""
    notes = [without_before(note) for note in notes_of(text)]
    at = next((place for place, note in enumerate(notes) if holds(note, fact["old"])), None)
    if at is None:
        return False
    if fact["kind"] == "exception":  # the rule goes on beside its exception
        return not says(text, fact["new"])
    return not says("\n".join(notes[: at + 1]), fact["new"])


def leaves_unmarked(fact: Row, text: str) -> bool:
    """Whether a text tells the new value of `fact` first, and the old one later as if it held, too."""
    notes = [without_before(note) for note in notes_of(text)]
    late = any(holds(note, fact["old"]) and not says(note, fact["new"]) for note in notes)
    return late and fact["kind"] != "exception" and says(text, fact["new"]) and not tells_old(fact, text)


def measure_pair(pair: Row, memories: list[Row], alone: list[bool], ask: Ask) -> Row:
    """What became of the two statements of one look-alike pair."""
    ended, linked, ids = [], False, []
    for number, words in enumerate(pair["both"]):
        holding = [memory for memory in memories if holds(memory["text"], words)]
        ids.append({memory["id"] for memory in holding})
        if holding and all(replaced(memory, words, memories) for memory in holding):
            ended.append((number, "superseded", holding[0]["text"]))
        if alone[number] and not holding:
            ended.append((number, "not a memory beside the other", ""))
        hits = ask("search", stated(pair, number), "--project", pair["cwd"], "--limit", str(HITS))["hits"]
        hits = [hit for hit in hits if holds(hit["text"], words)]
        if not hits:
            ended.append((number, "not found by its own words", ""))
        elif all(hit.get("superseded_by") for hit in hits):
            ended.append((number, "found as superseded only", hits[0]["text"]))
        linked = linked or any(hit.get("newer") in held_by_other(pair, number, memories) for hit in hits)
    kept = [bool(found) for found in ids]
    return {"id": pair["id"], "kind": pair["kind"], "ended": ended, "linked": linked, "kept": kept}


def replaced(memory: Row, words: list[str], memories: list[Row]) -> bool:
    """Whether a memory is superseded, in the end by one that does not say the same."""
    known = {other["id"]: other for other in memories}
    while memory["superseded_by"]:
        if memory["superseded_by"] not in known:
            return True
        memory = known[memory["superseded_by"]]
    return not holds(memory["text"], words)


def held_by_other(pair: Row, number: int, memories: list[Row]) -> set[str]:
    return {memory["id"] for memory in memories if holds(memory["text"], pair["both"][1 - number])}


def stated(pair: Row, number: int) -> str:
    """The sentence that states one half of a pair: the user's first turn with its words."""
    turns = pair["sessions"][number]["turns"]
    return next(turn["text"] for turn in turns if holds(turn["text"], pair["both"][number]))


def held_alone(pairs: list[Row], home: Path, ask: Ask) -> dict[str, list[bool]]:
    """For each pair, which of its statements become a memory where nothing else was ever said."""
    apart = [
        {"id": f"{pair['id']}-{number}", "cwd": f"/home/dev/{pair['id']}-{number}", "sessions": [session]}
        for pair in pairs
        for number, session in enumerate(pair["sessions"][:2])
    ]
    load(apart, home, ask)
    texts = defaultdict(list)
    for row in apart:
        texts[row["id"]] = [memory["text"] for memory in ask("memories", "--project", row["cwd"])["memories"]]
    return {
        pair["id"]: [
            any(holds(text, words) for text in texts[f"{pair['id']}-{number}"])
            for number, words in enumerate(pair["both"])
        ]
        for pair in pairs
    }


def notes_of(text: str) -> list[str]:
    """The notes of an injected text: each bullet with the lines that belong to it, and every other line."""
    notes: list[str] = []
    for line in text.splitlines():
        if line[:1] in (" ", "\t") and notes and not line.lstrip().startswith(("- ", "* ")):
            notes[-1] += "\n" + line
        else:
            notes.append(line)
    return notes


def without_before(note: str) -> str:
    """A note without its parts in parentheses that begin with "before"; one that is left open ends with the note."""
    kept, at = [], 0
    while begin := re.compile(r"\(before\b", re.IGNORECASE).search(note, at):
        kept.append(note[at : begin.start()])
        depth, at = 0, len(note)
        for place in range(begin.start(), len(note)):
            depth += {"(": 1, ")": -1}.get(note[place], 0)
            if not depth:
                at = place + 1
                break
    return "".join([*kept, note[at:]])


def holds(text: str, alternatives: list[str]) -> bool:
    """Whether one of the alternatives stands in a text, as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) for words in alternatives)


def says(text: str, groups: list[list[str]]) -> bool:
    return all(holds(text, group) for group in groups)


def flat(groups: list[list[str]]) -> list[str]:
    return [words for group in groups for words in group]


def stating(fact: Row, uuids: dict[tuple[str, int, int], str]) -> tuple[set[str], set[str]]:
    """The turns that state the old value and nothing newer, and those that state the new one."""
    old, new = set(), set()
    for number, session in enumerate(fact["sessions"]):
        for place, turn in enumerate(session["turns"]):
            if says(turn["text"], fact["new"]):
                new.add(uuids[fact["id"], number, place])
            elif holds(turn["text"], fact["old"]):
                old.add(uuids[fact["id"], number, place])
    return old, new


def place_of(hits: list[Row], turns: set[str]) -> int:
    """The place of the first hit that cites one of these turns, from 1."""
    cited = ({source.partition("/")[0] for source in hit.get("source_uuids") or []} for hit in hits)
    return next((place for place, sources in enumerate(cited, 1) if sources & turns), NOWHERE)


def show(facts: list[Row], pairs: list[Row]) -> None:
    """Prints every fact that is stale or not told, and every pair that was ended."""
    for row in facts:
        if row["stale"] or not row["told"] or row["above"]:
            flaws = [name for name in ("stale in brief", "stale at task", "unmarked", "above") if row[name]]
            print(f"--- {row['id']} ({row['kind']}): {', '.join([*flaws, *['not told'] * (not row['told'])])}")
            print(f"    wanted {row['wanted']}, in search at {row['place']}")
            print("".join(f"    brief:  {note[:300]!r}\n" for note in row["notes"]), end="")
            print(f"    recall: {row['recalled'][:500]!r}")
            print("".join(f"    search: {hit!r}\n" for hit in row["hits"]), end="")
    for row in pairs:
        for number, reason, text in row["ended"]:
            print(f"--- {row['id']} ({row['kind']}): statement {number + 1}: {reason} {text[:200]!r}")


def report(facts: list[Row], pairs: list[Row]) -> None:
    """Prints the figures for people, then as one line of JSON."""

    def count(name: str) -> int:
        return sum(bool(row[name]) for row in facts)

    def by_kind(rows: list[Row], name: str) -> dict[str, str]:
        of, those = Counter(row["kind"] for row in rows), Counter(row["kind"] for row in rows if row[name])
        return {kind: f"{those[kind]}/{of[kind]}" for kind in sorted(of)}

    lasting = [row["still"] for row in facts if row["still"] is not None]
    figures = {
        "facts": len(facts),
        "stale": count("stale"),
        "stale_in_brief": count("stale in brief"),
        "stale_at_task": count("stale at task"),
        "unmarked": count("unmarked"),
        "told": count("told"),
        "told_in_brief": count("told in brief"),
        "told_at_task": count("told at task"),
        "still_of": len(lasting),
        "still": sum(lasting),
        "recall_silent": sum(not row["recalled"] for row in facts),
        "old_above_new": count("above"),
        "new_among_hits": sum(row["place"] <= HITS for row in facts),
        "pairs": len(pairs),
        "ended": sum(bool(row["ended"]) for row in pairs),
        "linked": sum(row["linked"] for row in pairs),
        "statements_kept": sum(sum(row["kept"]) for row in pairs),
        "told_by_kind": by_kind(facts, "told"),
        "stale_by_kind": by_kind(facts, "stale"),
        "ended_by_kind": by_kind(pairs, "ended"),
    }
    print(
        "{facts} changed facts: told as it was {stale} (brief {stale_in_brief}, task {stale_at_task}), "
        "beside the new without a mark {unmarked}\n"
        "  the new told {told} (brief {told_in_brief}, task {told_at_task}; recall silent at {recall_silent}); "
        "what still holds told {still} of {still_of}\n"
        "  search: old above new {old_above_new}, new among ten hits {new_among_hits}\n"
        "{pairs} look-alike pairs: ended {ended}, linked {linked}; memories hold {statements_kept} statements".format(
            **figures
        )
    )
    print(json.dumps(figures))


def read(name: str) -> list[Row]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines() if line.strip()]


def load(rows: list[Row], home: Path, ask: Ask) -> dict[tuple[str, int, int], str]:
    """Writes every session of `rows` as a transcript and imports them; {(row, session, turn): uuid}."""
    root = home / "import" / "projects"
    uuids = write(rows, root, now=datetime.now(UTC))
    ask("import", str(root))
    ask("sync")
    return uuids


def write(rows: list[Row], root: Path, *, now: datetime) -> dict[tuple[str, int, int], str]:
    """Writes every session of `rows` as a transcript below `root`; {(row, session, turn): uuid}."""
    uuids = {}
    for row in rows:
        folder = root / "".join(ch if ch.isalnum() else "-" for ch in row["cwd"])
        folder.mkdir(parents=True, exist_ok=True)
        for number, session in enumerate(row["sessions"]):
            name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{row['cwd']}/{row['id']}/{number}"))
            parent, at, lines = None, now - timedelta(days=session["days_ago"]), []
            for place, turn in enumerate(session["turns"]):
                ident = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}/{place}"))
                uuids[row["id"], number, place] = ident
                lines.append(json.dumps(transcript_line(turn, ident, parent, row["cwd"], name, at)))
                parent, at = ident, at + timedelta(seconds=45)
            (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return uuids


def transcript_line(turn: Row, ident: str, parent: str | None, cwd: str, session: str, at: datetime) -> Row:
    """One line of a transcript as Claude Code 2.1.197 writes it."""
    message: Row = {"role": "user", "content": turn["text"]}
    if turn["role"] == "assistant":
        message = {
            "role": "assistant", "content": [{"type": "text", "text": turn["text"]}], "id": "msg_" + ident[:8],
            "model": "claude-opus-4-5", "type": "message", "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }  # fmt: skip
    return {
        "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": session,
        "version": "2.1.197", "gitBranch": "main", "type": turn["role"], "message": message, "uuid": ident,
        "timestamp": at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }  # fmt: skip


@contextlib.contextmanager
def running(command: str, model: str | None) -> Iterator[tuple[Path, Ask]]:
    """A daemon in a home of its own: that directory, and what asks it on the command line."""
    home = Path(tempfile.mkdtemp(prefix="cs", dir="/tmp"))  # short: a socket's path has about a hundred bytes
    (home / "claude").mkdir()
    env = {**os.environ, "HOME": str(home), "CSMD_HOME": str(home / "csmd"), "CLAUDE_CONFIG_DIR": str(home / "claude")}

    def ask(*words: str) -> Any:
        done = subprocess.run([command, *words, "--json"], env=env, text=True, capture_output=True, timeout=1800)
        if done.returncode:
            raise SystemExit(f"csmd {' '.join(words)[:80]}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return json.loads(done.stdout or "null")

    daemon = subprocess.Popen([command, "daemon"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + START_S
        while subprocess.run([command, "status", "--json"], env=env, capture_output=True).returncode:
            if time.monotonic() > limit or daemon.poll() is not None:
                raise SystemExit(f"{command} daemon: does not answer `status` (exit code {daemon.poll()})")
            time.sleep(0.2)
        if model:
            subprocess.run([command, "model", "add", model], env=env, check=True, capture_output=True)
        yield home, ask
    finally:
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
