"""Which recorded tool calls write a transcript: golden cases, one a line."""

from __future__ import annotations

import json

import pytest

from csmd.hosts import adapter
from csmd.hosts.claude import transcript
from csmd.hosts.tool_calls import transcripts_written

CASES = [
    ("Write", {"file_path": "/h/.claude/projects/-p/a1.jsonl", "content": "x"}, ["a1.jsonl"]),
    ("Edit", {"file_path": "/h/.claude/projects/-p/a1.jsonl", "old_string": "x", "new_string": "y"}, ["a1.jsonl"]),
    ("mcp__files__write_file", {"path": "/p/a1.jsonl", "content": "x"}, ["a1.jsonl"]),
    ("Bash", {"command": "echo '{}' >> ~/.claude/projects/-p/a1.jsonl"}, ["a1.jsonl"]),
    ("Bash", {"command": "cat x | tee -a a1.jsonl"}, ["a1.jsonl"]),
    ("Bash", {"command": "cp /tmp/b2.jsonl ~/.claude/projects/-p/a1.jsonl"}, ["a1.jsonl", "b2.jsonl"]),
    ("Bash", {"command": "sed -i 's/a/b/' a1.jsonl"}, ["a1.jsonl"]),
    ("Bash", {"command": "python3 - <<'E'\nopen('a1.jsonl', 'a').write('x')\nE"}, ["a1.jsonl"]),
    ("Bash", {"command": "python3 -c \"from pathlib import Path; Path('a1.jsonl').write_text('x')\""}, ["a1.jsonl"]),
    ("Bash", {"command": "node -e \"fs.appendFileSync('a1.jsonl', 'x')\""}, ["a1.jsonl"]),
    ("Bash", {"command": 'python3 -c "x"\nopen("a1.jsonl", "a").write("x")'}, ["a1.jsonl"]),
    ("Bash", {"command": "xargs tee -a <<E\na1.jsonl\nE"}, ["a1.jsonl"]),
    ("mcp__files__write_files", {"files": [{"path": "a1.jsonl"}]}, ["a1.jsonl"]),
    ("Bash", {"command": "x" * 100_000 + " >> a1.jsonl"}, ["a1.jsonl"]),
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
    assert transcripts_written(tool, value) == tuple(names)


@pytest.mark.parametrize("kind", ["user", "assistant"])
def test_talk_about_writing_writes_nothing(kind: str) -> None:
    block = {"type": "text", "text": json.dumps(CASES[3][1])}
    value = {"type": kind, "uuid": "u", "sessionId": "s", "message": {"role": kind, "content": [block]}}
    reading = adapter.Reading()
    transcript.read_line(json.dumps(value).encode(), reading, tool_limit=8192)
    assert [turn.writes for turn in reading.turns] == [()]
