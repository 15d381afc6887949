"""Codex' rollouts: each turn once, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import codex_oracle
import pytest
from transcript_home import Home, check

from csmd.exclusions import Excludes
from csmd.extraction import verbatim_statements
from csmd.hosts import adapters
from csmd.hosts.codex import transcript

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "codex"
SHARED = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[4] / "shared" / "eval").parent
SAMPLES = SHARED / "assistants" / "samples" / "codex-0.169.0"
#: A session of the real client that went back behind its second turn and was asked a question; in words of our own.
REVERTED = "019db000-0000-7000-8000-000000000005"
MAIN, FORK, CHILD, OLD = (
    f"019{n}b000-0000-7000-8000-00000000000{i}" for n, i in (("c", 1), ("c", 2), ("c", 3), ("a", 4))
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.store.close()


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
def test_what_is_stored_of_rollouts_is_what_an_independent_reader_finds(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
        check(home.streams(), codex_oracle.of_tree(DATA))
    assert {host for (host,) in home.rows("select host from sessions")} == {"codex"}


def test_a_rollout_that_grows_line_by_line_is_stored_like_a_whole_one(home: Home, tmp_path: Path) -> None:
    for whole in sorted(DATA.rglob("*.jsonl")):
        path = tmp_path / whole.name
        lines = whole.read_bytes().splitlines(keepends=True)
        for line in lines:
            with path.open("ab") as file:
                file.write(line)
            home.tail(path)
        again = tmp_path / "moved" / whole.name
        again.parent.mkdir(exist_ok=True)
        shutil.move(path, again)  # as Codex archives a session
        assert home.tail(again).turns_new == 0
    check(home.streams(), codex_oracle.of_tree(DATA))
    assert len(home.rows("select seq from turns")) == sum(map(len, home.streams().values()))


@pytest.mark.parametrize("case", ["session", "subagent", "trusted_terminal"])
def test_the_samples_of_the_real_client_are_stored_as_they_were_said(home: Home, tmp_path: Path, case: str) -> None:
    if not (SAMPLES / case).is_dir():
        pytest.skip(f"no samples of the real client at {SAMPLES}; set CSMD_EVAL")
    tree = tmp_path / "tree"
    tree.mkdir()
    for path in sorted((SAMPLES / case).rglob("rollout-*.jsonl")):  # in the order of the steps: a file has grown
        home.tail(Path(shutil.copyfile(path, tree / path.name)))
    check(home.streams(), codex_oracle.of_tree(tree))


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_only_what_a_person_typed_is_the_users(home: Home) -> None:
    home.read(DATA)
    streams = home.streams()
    said = {(kind, text) for turns in streams.values() for kind, text in turns if not kind.startswith("tool_")}
    assert not any("British" in text or "hook" in text or "timetable" in text for _, text in said)
    assert ("relayed", "Summarise the fares for the changelog.") in said
    assert ("user", "Ship tables are sorted by departure.") in said
    parents = home.rows(f"select parent from sessions where id = 'codex:{MAIN}/{CHILD}'")
    assert parents == [(f"codex:{MAIN}",)]


def test_what_a_session_has_gone_back_behind_counts_no_more(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
        rows = home.rows(
            "select t.text, st.rewound, t.searchable from session_turn st join turns t on t.seq = st.turn_seq "
            f"join sessions s on s.seq = st.session_seq where s.id = 'codex:{REVERTED}' and t.kind in ('user', 'assistant') "
            "order by st.ordinal"
        )
        assert [text for text, rewound, _ in rows if rewound] == [
            "Then round fares to ten cents in the ticket printer.", "Fares are rounded to ten cents.",
        ]  # fmt: skip
        assert not any(searchable for _, rewound, searchable in rows if rewound)
    kept = [text for text, rewound, _ in rows if not rewound]
    first, part = (f"d/rollout-T-{REVERTED}{end}.jsonl" for end in ("", "_01a22611-f5af"))
    assert transcript.place_of("/r", part) == transcript.place_of("/r", first), (
        "the backlog reads it behind the first file"
    )
    assert kept[0] == "Please list the coins that the ticket printer takes." and kept[-1] == "So it is."


def test_an_answer_to_the_assistants_question_is_the_users_and_a_decision(home: Home) -> None:
    home.read(DATA)
    ((uuid, kind),) = home.rows("select uuid, kind from turns where text like '> How are fares rounded%'")
    assert kind == "user" and "/" in uuid
    answer = next(text for kind, text in home.streams()[f"codex:{REVERTED}"] if text.startswith("> "))
    assert verbatim_statements.picks(answer) == [
        "How are fares rounded in the ticket printer? -> Five cents only in the north"
    ]


def test_tool_calls_are_stored_in_the_form_of_every_assistant(home: Home) -> None:
    home.read(DATA)
    calls = home.rows("select tool_name, text from turns where kind = 'tool_call' order by at, uuid")
    named = [(name, json.loads(text)) for name, text in calls]
    assert ("Bash", {"command": "make test"}) in named and ("Bash", {"command": "ls tables"}) in named
    assert {(name, given["file_path"]) for name, given in named if "file_path" in given} == {
        ("Edit", "fare.go"), ("Write", "docs/fares.md"),
    }  # fmt: skip
    assert ("mcp__csmd__recall", {"query": "fares"}) in named
    assert [given["todos"][0]["status"] for name, given in named if name == "TodoWrite"] == ["completed"]
    failed = [text for (text,) in home.rows("select text from turns where kind = 'tool_result'") if "Exit code" in text]
    assert sorted(failed) == [
        "Exit code 1\nls: tables: no such directory\n", "Exit code 2\nfare_test.go:12: got 4.1, want 410\n",
    ]  # fmt: skip


def test_each_turn_belongs_to_the_directory_that_its_session_was_in_then(home: Home) -> None:
    home.read(DATA)
    found = home.rows("select distinct p.root from turns t join projects p on p.seq = t.project_seq order by p.root")
    assert [root for (root,) in found] == ["/home/mira/ferry", "/home/mira/ferry/lib"]


def test_tokens_are_counted_once_and_apart_from_what_was_cached(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
    (used,) = home.rows(
        f"select sum(input), sum(output), sum(cache_read) from usage u join sessions s on s.seq = u.session_seq where s.id = 'codex:{MAIN}'"
    )
    assert used == (600, 90, 3000)


def test_what_an_excluded_file_held_is_not_kept(home: Home) -> None:
    path = next(DATA.rglob("*000001.jsonl"))
    home.tail(path, excludes=Excludes(files=("docs/**", "**/docs/**")))
    texts = [text for (text,) in home.rows("select text from turns")]
    assert not any("All fares are cents" in text for text in texts)


def test_a_rollout_is_known_by_its_first_line_and_by_its_name() -> None:
    beginnings = [path.read_bytes()[:4096] for path in DATA.rglob("*.jsonl")]
    assert all(adapters.of_transcript(beginning).host == "codex" for beginning in beginnings)
    other = b'{"type":"user","sessionId":"s","uuid":"u","message":{"content":"\\"type\\":\\"session_meta\\""}}\n'
    assert adapters.of_transcript(other).host == adapters.of_transcript(b"").host == "claude"
    assert adapters.place_of("/c/sessions", "2026/03/02/rollout-2026-x.jsonl") == ("/c/sessions", "rollout-2026-x")
    assert adapters.place_of("/c/projects", "-p/s.jsonl") == ("/c/projects/-p", "s")
    assert (adapters.of_session("codex:1").host, adapters.of_session("1").host) == ("codex", "claude")


@pytest.mark.parametrize(
    "first", [b"{}", b'{"type":"session_meta"}', b'{"timestamp":"x","type":"session_meta","payload":{"id":7}}', b"["]
)
def test_a_rollout_without_a_thread_is_no_conversation(home: Home, tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "rollout-2026-01-01T00-00-00-x.jsonl"
    path.write_bytes(
        first
        + b'\n{"timestamp":"2026-01-01T00:00:00Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}\n'
    )
    home.tail(path)
    assert home.streams() == {}


def test_notices_in_the_users_name_are_known_again_in_the_store() -> None:
    for said in ("<environment_context>\n", "# AGENTS.md instructions for /p\n", " <turn_aborted>\nx"):
        assert transcript.prompt_kind(said, by_person=True) == "notification"
        assert adapters.is_written_for_user(said)
    assert transcript.prompt_kind("Use <environment_context> there", by_person=True) == "user"
