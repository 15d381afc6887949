"""What holds for the transcripts of every assistant: each turn once, as it was said, under the host's name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import codex_oracle
import copilot_oracle
import droid_oracle
import gemini_oracle
import pytest
from transcript_home import Home, Streams, check

from csmd.exclusions import Excludes
from csmd.hosts import adapters

DATA = Path(__file__).resolve().parents[1] / "data" / "hosts"
SHARED = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[3] / "shared" / "eval").parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One assistant: its transcripts, a reader of its own for them, and the real client's samples."""

    host: str
    data: str
    """The directory of its transcripts, below its own."""
    oracle: Callable[[Path], Streams]
    samples: str
    of_client: tuple[str, ...]
    files: str = "*.jsonl"
    excluded: tuple[str, str, tuple[str, ...]]
    """A transcript, a pattern of files, and words that such a file held."""
    places: tuple[tuple[str, tuple[str, str]], ...]
    """Where transcripts lie, and the project's directory and session that they are of."""
    tokens: tuple[str, tuple[int, int, int]]
    """A stream, and what it used: input, output, read from the cache."""
    nameless: tuple[str, tuple[bytes, ...], bytes]
    """A file's name, first lines that name no session, and a line behind them."""
    notices: tuple[str, ...] = ()
    """How texts begin that the host writes in the user's name."""

    @property
    def root(self) -> Path:
        return DATA / self.host / self.data


CASES = [
    Case(
        host="codex", data="", oracle=codex_oracle.of_tree, samples="codex-0.169.0",
        of_client=("session", "subagent", "trusted_terminal"), files="rollout-*.jsonl",
        excluded=("*000001.jsonl", "docs/**", ("All fares are cents",)),
        places=(("sessions/2026/03/02/rollout-2026-x.jsonl", ("sessions", "rollout-2026-x")),),
        tokens=("019cb000-0000-7000-8000-000000000001", (600, 90, 3000)),
        nameless=(
            "rollout-2026-01-01T00-00-00-x.jsonl",
            (b"{}", b'{"type":"session_meta"}', b'{"timestamp":"x","type":"session_meta","payload":{"id":7}}', b"["),
            b'{"timestamp":"2026-01-01T00:00:00Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}\n',
        ),
        notices=("<environment_context>\n", "# AGENTS.md instructions for /p\n", " <turn_aborted>\nx"),
    ),
    Case(
        host="copilot", data="session-state", oracle=copilot_oracle.of_tree, samples="copilot-1.0.102",
        of_client=("session", "subagent", "claude_hooks"), files="events.jsonl",
        excluded=("*000001/events.jsonl", "docs/**", ("All fares are cents",)),
        places=(("session-state/c0b11070-x/events.jsonl", ("session-state", "c0b11070-x")),),
        tokens=("c0b11070-0000-4000-8000-000000000001/c0b11070-0000-4000-8000-0000000000a9", (350, 21, 300)),
        nameless=(
            "events.jsonl",
            (b'{"type":"session.start","data":{"sessionId":7}}', b'{"type":"session.start","data":{"sessionId":""}}'),
            b'{"type":"user.message","data":{"content":"hi"},"id":"m","timestamp":"2026-01-01T00:00:00Z"}\n',
        ),
        notices=("<system_notification>\n", " <skill-context name='x'>\n"),
    ),
    Case(
        host="droid", data="sessions", oracle=droid_oracle.of_tree, samples="droid-0.215.0", of_client=("session",),
        excluded=("*000001.jsonl", "docs/**", ("All fares are cents",)),
        places=(("sessions/-p/s-1.jsonl", ("sessions/-p", "s-1")),), tokens=("", (0, 0, 0)),
        nameless=(
            "s.jsonl",
            (b'{"type":"session_start","id":7}', b'{"type":"session_start","id":""}'),
            b'{"type":"message","id":"m","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hi"}}\n',
        ),
        notices=("<system-reminder>\nx", " <system-notification>"),
    ),
    Case(
        host="gemini", data="tmp", oracle=gemini_oracle.of_gemini, samples="gemini-0.61.0", of_client=("session", "subagent"),
        excluded=("*T09-00-*.jsonl", "docs/**", ("All fares are cents",)),
        places=(
            ("tmp/ferry/chats/session-2026-03-02T09-00-0a1b2c3d.jsonl", ("tmp/ferry", "0a1b2c3d")),
            ("tmp/ferry/chats/0a1b2c3d-1111/0b1b2c3d.jsonl", ("tmp/ferry", "0a1b2c3d")),
        ),
        tokens=("0a1b2c3d-1111-4222-8333-444455556666", (620, 186, 280)),
        nameless=(
            "session-2026-01-01T00-00-00000000.jsonl",
            (b"{}", b'{"sessionId":"","projectHash":"h"}', b'{"sessionId":7,"projectHash":"h"}', b"["),
            b'{"id":"a","timestamp":"2026-01-01T00:00:00Z","type":"user","content":"hi"}\n',
        ),
        notices=("<session_context>\nThis", " <loaded_context>\n"),
    ),
    Case(
        host="qwen", data="projects", oracle=gemini_oracle.of_qwen, samples="qwen-0.24.4", of_client=("session", "subagent"),
        excluded=("1a1b2c3d-*.jsonl", "gates.go", ("old_string", "Edited gates.go")),
        places=(
            ("projects/-p/chats/1a1b2c3d-1.jsonl", ("projects/-p", "1a1b2c3d-1")),
            ("projects/-p/subagents/1a1b2c3d-1/agent-a.b.jsonl", ("projects/-p", "1a1b2c3d-1")),
        ),
        tokens=("1a1b2c3d-1111-4222-8333-444455556666", (540, 180, 360)),
        nameless=(
            "s.jsonl",
            (b'{"uuid":"","parentUuid":null,"sessionId":"s","timestamp":"x","type":"user"}',),
            b'{"type":"user","message":{"role":"user","parts":[{"text":"no id"}]}}\n',
        ),
    ),
]  # fmt: skip
each_host = pytest.mark.parametrize("case", CASES, ids=[case.host for case in CASES])


def grow(home: Home, whole: Path, to: Path, *, excludes: Excludes | None = None) -> None:
    """Reads on in a copy of a transcript after each line that is written to it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if (settings := whole.with_suffix(".settings.json")).exists():
        shutil.copyfile(settings, to.with_suffix(".settings.json"))
    for line in whole.read_bytes().splitlines(keepends=True):
        with to.open("ab") as file:
            file.write(line)
        home.tail(to, **({"excludes": excludes} if excludes else {}))


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
@each_host
def test_what_is_stored_is_what_an_independent_reader_finds(home: Home, case: Case) -> None:
    for _ in range(2):
        home.read(case.root)
        check(home.streams(), case.oracle(case.root))
    assert {host for (host,) in home.rows("select host from sessions")} == {case.host}


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
@each_host
def test_every_id_begins_with_the_hosts_name(home: Home, case: Case) -> None:
    home.read(case.root)
    ids = [ident for (ident,) in home.rows("select id from sessions union all select uuid from turns")]
    if case.host == "codex":  # its lines are known by the thread, whose id no other host makes
        ids = [ident for (ident,) in home.rows("select id from sessions")]
    assert [ident for ident in ids if not ident.startswith(f"{case.host}:")] == []


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
@each_host
def test_a_transcript_that_grows_line_by_line_is_stored_like_a_whole_one(
    home: Home, case: Case, tmp_path: Path
) -> None:
    for path in sorted(case.root.rglob("*.jsonl")):
        grow(home, path, tmp_path / "grown" / path.relative_to(case.root))
    check(home.streams(), case.oracle(case.root))
    (tmp_path / "other").mkdir()
    other = Home(tmp_path / "other")
    other.read(case.root)
    for query in (
        "select uuid, kind from turns order by uuid",
        "select uuid, parent_uuid from turns where kind in ('user', 'relayed') order by uuid",
        "select id, title from sessions order by id",
    ):
        assert home.rows(query) == other.rows(query)
    other.store.close()


@pytest.mark.parametrize(
    ("case", "of_client"),
    [pytest.param(case, name, id=f"{case.host}-{name}") for case in CASES for name in case.of_client],
)
def test_the_samples_of_the_real_client_are_stored_as_they_were_said(
    home: Home, tmp_path: Path, case: Case, of_client: str
) -> None:
    samples, tree = SHARED / "assistants" / "samples" / case.samples / of_client / "after", tmp_path / "tree"
    if not samples.is_dir():
        pytest.skip(f"no samples of the real client at {samples}; set CSMD_EVAL")
    for step in sorted(samples.iterdir()):  # a file has grown between two steps
        shutil.copytree(step, tree, dirs_exist_ok=True, ignore=shutil.ignore_patterns("history.jsonl"))
        for path in sorted(step.rglob(case.files)):
            home.tail(tree / path.relative_to(step))
    check(home.streams(), case.oracle(tree))


@each_host
@pytest.mark.parametrize("by_line", [False, True])
def test_what_an_excluded_file_held_is_not_kept(home: Home, tmp_path: Path, case: Case, by_line: bool) -> None:
    name, pattern, words = case.excluded
    path, excludes = next(case.root.rglob(name)), Excludes(files=(pattern, f"**/{pattern}"))
    if by_line:
        grow(home, path, tmp_path / path.relative_to(case.root), excludes=excludes)
    else:
        home.tail(path, excludes=excludes)
    texts = [text for (text,) in home.rows("select text from turns where kind in ('tool_call', 'tool_result')")]
    assert texts and not any(word in text for text in texts for word in words)


@each_host
def test_tokens_are_counted_once_and_apart_from_what_was_cached(home: Home, case: Case) -> None:
    stream, amounts = case.tokens
    for _ in range(2):
        home.read(case.root)
    used = home.rows(
        "select coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0) from usage u "
        f"join sessions s on s.seq = u.session_seq where s.id = '{case.host}:{stream}'"
    )
    assert used == [amounts]


@each_host
def test_a_transcript_is_known_by_its_first_line_and_its_place(case: Case) -> None:
    beginnings = [path.read_bytes()[:4096] for path in case.root.rglob("*.jsonl")]
    assert beginnings and {adapters.adapter_of_transcript(beginning).host for beginning in beginnings} == {case.host}
    for inside, (project, session) in case.places:
        root = f"/c/{inside.partition('/')[0]}"
        assert adapters.locate_transcript(root, inside.partition("/")[2]) == (f"/c/{project}", session)
    assert adapters.adapter_of_session(f"{case.host}:1").host == case.host


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b'{"type":"user","sessionId":"s","uuid":"u","message":{"content":"\\"type\\":\\"session_meta\\""}}\n',
        b'{"uuid":"u","sessionId":"s","parentUuid":null,"type":"user","message":{"role":"user","content":"x"}}\n',
    ],
)
def test_what_no_other_host_claims_is_claude_codes(beginning: bytes) -> None:
    assert adapters.adapter_of_transcript(beginning).host == adapters.adapter_of_session("1").host == "claude"
    assert adapters.locate_transcript("/c/projects", "-p/s.jsonl") == ("/c/projects/-p", "s")


@pytest.mark.parametrize(
    ("case", "first"),
    [
        pytest.param(case, first, id=f"{case.host}-{number}")
        for case in CASES
        for number, first in enumerate(case.nameless[1])
    ],
)
def test_a_transcript_that_names_no_session_is_no_conversation(
    home: Home, tmp_path: Path, case: Case, first: bytes
) -> None:
    name, _, line = case.nameless
    path = tmp_path / name
    path.write_bytes(first + b"\n" + line)
    home.tail(path)
    assert home.streams() == {}


@each_host
def test_notices_in_the_users_name_are_known_again_in_the_store(case: Case) -> None:
    assert all(map(adapters.is_written_for_user, case.notices))
    assert not any(adapters.is_written_for_user(f"Use {text.strip()} there") for text in case.notices)
