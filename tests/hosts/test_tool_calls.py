"""Which recorded tool calls write a transcript: golden cases, one a line."""

from __future__ import annotations

import json

import pytest

from csmd.hosts import transcript_reading
from csmd.hosts.claude import transcript
from csmd.hosts.tool_calls import find_written_transcripts

SESSION = "5f2a9c1e-0b7d-4e43-9a66-3c1d2e4f5a6b"
CASES = [
    ("Write", {"file_path": "/h/.claude/projects/-p/a1.jsonl", "content": "x"}, ["a1.jsonl"]),
    ("Edit", {"file_path": "/h/.claude/projects/-p/a1.jsonl", "old_string": "x", "new_string": "y"}, ["a1.jsonl"]),
    ("mcp__files__write_file", {"path": "/p/a1.jsonl", "content": "x"}, ["a1.jsonl"]),
    ("Bash", {"command": "echo '{}' >> ~/.claude/projects/-p/a1.jsonl"}, ["a1.jsonl"]),
    ("Bash", {"command": "cat x | tee -a a1.jsonl"}, ["a1.jsonl"]),
    ("Bash", {"command": "cp /tmp/b2.jsonl ~/.claude/projects/-p/a1.jsonl"}, ["a1.jsonl"]),
    ("Bash", {"command": "cp -p a1.jsonl /tmp/a1.jsonl.bak && wc -l a1.jsonl"}, []),
    ("Bash", {"command": "cd /tmp; install -m 644 'a1.jsonl' b2.jsonl\nls"}, ["b2.jsonl"]),
    ("Bash", {"command": "rsync -a /tmp/a1.jsonl ~/.claude/projects/-p/"}, ["a1.jsonl"]),
    ("Bash", {"command": "cp a1.jsonl b2.jsonl # notes"}, ["a1.jsonl", "b2.jsonl"]),
    ("Bash", {"command": "cp -t ~/.claude/projects/-p a1.jsonl b2.txt"}, ["a1.jsonl"]),
    ("Bash", {"command": "mv a1.jsonl b2.jsonl"}, ["a1.jsonl", "b2.jsonl"]),
    ("Write", {"file_path": "tests/fixtures/events.jsonl", "content": "x"}, ["fixtures/events.jsonl"]),
    ("Bash", {"command": f"echo x >> ~/.copilot/session-state/{SESSION}/events.jsonl"}, [f"{SESSION}/events.jsonl"]),
    (
        "Bash",
        {"command": f"cd ~/.copilot/session-state/{SESSION} && echo >> events.jsonl"},
        [f"{SESSION}/events.jsonl"],
    ),
    (
        "Bash",
        {"command": f"D=~/.copilot/session-state/{SESSION}; echo >> $D/events.jsonl"},
        [f"{SESSION}/events.jsonl"],
    ),
    ("Bash", {"command": f"cp /tmp/events.jsonl {SESSION}/"}, [f"{SESSION}/events.jsonl"]),
    ("Bash", {"command": "echo x > events.jsonl"}, []),
    ("Bash", {"command": "sqlite3 \"$DATA/opencode.db\" 'delete from part'"}, ["opencode/opencode.db"]),
    ("Bash", {"command": "sqlite3 /tmp/copy/opencode.db 'delete from part'"}, ["copy/opencode.db"]),
    ("Bash", {"command": "sed -i 's/a/b/' a1.jsonl"}, ["a1.jsonl"]),
    ("Bash", {"command": "python3 - <<'E'\nopen('a1.jsonl', 'a').write('x')\nE"}, ["a1.jsonl"]),
    ("Bash", {"command": "python3 -c \"from pathlib import Path; Path('a1.jsonl').write_text('x')\""}, ["a1.jsonl"]),
    ("Bash", {"command": "node -e \"fs.appendFileSync('a1.jsonl', 'x')\""}, ["a1.jsonl"]),
    ("Bash", {"command": 'python3 -c "x"\nopen("a1.jsonl", "a").write("x")'}, ["a1.jsonl"]),
    ("Bash", {"command": "xargs tee -a <<E\na1.jsonl\nE"}, ["a1.jsonl"]),
    ("mcp__files__write_files", {"files": [{"path": "a1.jsonl"}]}, ["a1.jsonl"]),
    ("Bash", {"command": "x" * 100_000 + " >> a1.jsonl"}, ["a1.jsonl"]),
    ("Bash", {"command": "cp" + " " * 200_000 + "> a1.jsonl"}, ["a1.jsonl"]),
    (
        "Bash",
        {"command": f"echo {SESSION} " + "/events.jsonl " * 20_000 + "> events.jsonl"},
        [f"{SESSION}/events.jsonl"],
    ),
    ("Read", {"file_path": "/h/.claude/projects/-p/a1.jsonl"}, []),
    ("Grep", {"pattern": "x", "path": "/h/a1.jsonl", "glob": "write*"}, []),
    ("Bash", {"command": "wc -l a1.jsonl | sort"}, []),
    ("Bash", {"command": "grep -c x a1.jsonl 2>/dev/null; tail -1 a1.jsonl 2>&1"}, []),
    ("Bash", {"command": "jq .type a1.jsonl > /tmp/types.txt"}, []),
    ("Bash", {"command": "python3 -c \"print(open('a1.jsonl').read())\""}, []),
    ("Bash", {"command": "ls -la ~/.claude/projects"}, []),
]


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
@pytest.mark.parametrize(("tool", "value", "names"), CASES, ids=[f"{tool} {value}"[:60] for tool, value, _ in CASES])
def test_a_call_that_writes_a_transcript_is_told_from_one_that_reads_it(
    tool: str, value: object, names: list[str]
) -> None:
    assert find_written_transcripts(tool, value) == tuple(names)


@pytest.mark.parametrize("kind", ["user", "assistant"])
def test_talk_about_writing_writes_nothing(kind: str) -> None:
    block = {"type": "text", "text": json.dumps(CASES[3][1])}
    value = {"type": kind, "uuid": "u", "sessionId": "s", "message": {"role": kind, "content": [block]}}
    reading = transcript_reading.Reading(tool_limit=8192)
    transcript.read_line(json.dumps(value).encode(), reading)
    assert [turn.writes for turn in reading.turns] == [()]
