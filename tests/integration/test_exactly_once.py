"""Every turn exactly once: what is stored is what an oracle that shares no code with csmd finds in the transcripts."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from session_script import STEPS, WORDS, Client, Hook, Line, written
from transcript_home import latest_transcripts

from csmd import wire
from csmd.capture import ingest, transcripts
from csmd.exclusions import Excludes
from csmd.store import provisional_turns, purge, tombstones
from csmd.store.core import Store

NOW = "2027-06-01T00:00:00.000Z"
LATER = "2099-01-01T00:00:00.000Z"
DATA = Path(__file__).resolve().parent.parent / "data" / "claude"
SHARED = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[3] / "shared" / "eval").parent
SAMPLES = SHARED / "realclient" / "samples"
EVALUATION = SHARED / "eval" / "transcripts"
VERSIONS = ("2.0.77", "2.1.100", "2.1.197", "2.1.329")
CUT = ("[redacted:", "[csmd:")


class Home:
    """A store on a real file, and what tests ask of it."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.store = Store(root / "csmd.db", now=NOW)
        self._events = itertools.count()

    def tail(self, path: Path, **more: Any) -> transcripts.ReadReport:
        more = {"now": lambda: NOW, "tool_limit": 8192, "quarantine": self.root / "quarantine", **more}
        return transcripts.read_transcript(self.store, path, transcripts.ReadOptions(**more))

    def read(self, tree: Path) -> None:
        for path in latest_transcripts(tree):
            self.tail(path)

    def hook(self, payload: dict[str, Any], *, at: str, ident: str = "") -> str:
        """Reports a hook's payload as the daemon records it; the event's id."""
        ident = ident or f"e{next(self._events)}"
        event, redacted = ingest.decode_event(
            "claude", wire.dumps(payload).encode(), name=payload["hook_event_name"], event_id=ident, at=at
        )
        if event is not None:
            place = self.store.read(lambda rows: ingest.find_event_project(rows, event))
            key = self.store.hash_key
            self.store.write(
                lambda rows: ingest.record_event(rows, event, redacted=redacted, key=key, now=NOW, place=place)
            )
        return ident

    def settle(self) -> None:
        def write(rows: Any) -> None:
            over, _ = provisional_turns.list_expired_provisional(
                rows, before=LATER, after=provisional_turns.START, limit=10_000
            )
            provisional_turns.close_provisional(rows, over)

        self.store.write(write)

    def wipe(self) -> None:
        """As if nothing had happened."""

        def write(rows: Any) -> None:
            for table in ("queued", "session_turn", "turns", "events", "sessions", "files", "counters"):
                rows.run(f"delete from {table}")

        self.store.write(write)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.store.read(lambda rows: list(rows.all(query)))

    def streams(self) -> dict[str, list[tuple[str, str, str]]]:
        """(uuid, kind, text) of every stream's turns in order."""
        turns: dict[str, list[tuple[str, str, str]]] = {}
        for stream, uuid, kind, text in self.rows(
            "select s.id, t.uuid, t.kind, t.text from session_turn st join turns t on t.seq = st.turn_seq "
            "join sessions s on s.seq = st.session_seq order by s.id, st.ordinal"
        ):
            turns.setdefault(stream, []).append((uuid, kind, text))
        return turns

    def hook_only(self) -> list[tuple[Any, ...]]:
        return self.rows("select kind, text from turns where source = 'hook'")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    made = Home(tmp_path_factory.mktemp("home"))
    yield made
    made.store.close()


def key_of(uuid: str) -> str:
    """A queue's key without what tells two of one moment apart: csmd and the oracle do that in their own ways."""
    return uuid.rpartition(":")[0] if uuid.startswith("queue:") else uuid


def assert_same(entry: oracle.Entry, stored: tuple[str, str, str]) -> None:
    uuid, kind, text = stored
    assert (key_of(entry.key), entry.kind) == (key_of(uuid), kind), (entry, stored)
    original, kept = oracle.squeezed(entry.text), oracle.squeezed(text)
    for mark in CUT:  # csmd cuts long output and takes secrets out: what stands before is compared
        if mark in kept:
            kept = kept.partition(mark)[0].rstrip()
            original = original[: len(kept)]
    assert original == kept, (entry, stored)


def check(home: Home, tree: Path, *, ordered: bool = False) -> oracle.Holdings:
    """The one door: what is stored is what the oracle finds, stream by stream, and no more."""
    held = oracle.of_tree(tree)
    stored = home.streams()
    expected = {stream: entries for stream, entries in held.streams.items() if entries}
    assert stored.keys() == expected.keys()
    for stream, entries in expected.items():
        if not ordered:
            entries = sorted(entries, key=lambda entry: (key_of(entry.key), oracle.squeezed(entry.text)))
            stored[stream].sort(key=lambda turn: (key_of(turn[0]), oracle.squeezed(turn[2])))
        assert [key_of(entry.key) for entry in entries] == [key_of(uuid) for uuid, *_ in stored[stream]], stream
        for entry, turn in zip(entries, stored[stream], strict=True):
            assert_same(entry, turn)
    total = home.rows("select count(*) from turns")[0][0]
    assert total == len(held.entries())
    assert home.hook_only() == []
    return held


# Real sessions.


@pytest.mark.parametrize("version", VERSIONS)
def test_the_samples_of_every_version_are_what_the_oracle_finds(home: Home, version: str, tmp_path: Path) -> None:
    for path in DATA.glob(f"{version}/*.jsonl"):
        if path.name != "hooks.jsonl":
            (tmp_path / "tree").mkdir(exist_ok=True)
            (tmp_path / "tree" / path.name).write_bytes(path.read_bytes())
    home.read(tmp_path / "tree")
    assert check(home, tmp_path / "tree", ordered=True).entries()


@pytest.mark.invariant("Stored is what the transcripts hold, told by a reader that shares no code with csmd")
@pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"no captured sessions at {SAMPLES}; set CSMD_EVAL")
@pytest.mark.parametrize("order", ["transcripts only", "hooks first", "hooks last", "hooks twice", "read again"])
def test_every_captured_session_with_its_hooks_is_stored_once(home: Home, order: str) -> None:
    def report() -> None:
        for case, folder in enumerate(sorted(SAMPLES.glob("*/*"))):
            for second, path in enumerate(sorted(folder.glob("hooks/*.json"))):
                at = f"2026-11-21T00:{second // 60:02}:{second % 60:02}.000Z"
                home.hook(json.loads(path.read_bytes()), at=at, ident=f"e{case}-{second}")

    if order in ("hooks first", "hooks twice"):
        report()
    home.read(SAMPLES)
    if order in ("hooks last", "hooks twice"):
        report()
    if order == "read again":
        home.store.write(lambda rows: rows.run("delete from files"))
        home.read(SAMPLES)
    home.settle()
    check(home, SAMPLES, ordered=order == "transcripts only")


@pytest.mark.invariant("A session's tokens equal its transcript's, each message once")
@pytest.mark.invariant("Stored is what the transcripts hold, told by a reader that shares no code with csmd")
@pytest.mark.skipif(not EVALUATION.is_dir(), reason=f"no real transcripts at {EVALUATION}; set CSMD_EVAL")
def test_92_real_sessions_are_what_the_oracle_finds(home: Home) -> None:
    home.read(EVALUATION)
    held = check(home, EVALUATION, ordered=True)
    kinds = Counter(entry.kind for entry in held.entries().values())
    assert min(kinds[kind] for kind in ("user", "assistant", "summary", "tool_call", "command", "notification")) > 0
    assert any("//agent" not in stream and "/" in stream for stream in held.streams), "agents inside a session's file"
    took = home.store.read(
        lambda rows: rows.all(
            "select s.id, sum(u.input), sum(u.output), sum(u.cache_read), sum(u.cache_write) "
            "from usage u join sessions s on s.seq = u.session_seq group by s.id"
        )
    )
    expected = tokens_of(EVALUATION)
    assert {stream: tuple(sums) for stream, *sums in took} == expected and len(expected) > 50


def tokens_of(folder: Path) -> dict[str, tuple[int, ...]]:
    """What every conversation took by its lines alone: each message once, as its last line has it."""
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    last: dict[tuple[str, str], tuple[int, ...]] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text("utf-8", "replace").splitlines():
            value = json.loads(line) if '"usage"' in line else {}
            usage = value.get("message", {}).get("usage") if value.get("type") == "assistant" else None
            if usage:
                agent = f"/{value['agentId']}" if value.get("isSidechain") and value.get("agentId") else ""
                amounts = tuple(usage.get(name) or 0 for name in names)
                if any(amounts):
                    last[value["sessionId"] + agent, value["message"]["id"]] = amounts
    sums: dict[str, tuple[int, ...]] = {}
    for (stream, _), amounts in last.items():
        before = sums.get(stream, (0,) * len(names))
        sums[stream] = tuple(a + b for a, b in zip(before, amounts, strict=True))
    return sums


# Composed sessions: the two sources in any interleaving.


@st.composite
def lives(draw: Any) -> list[tuple[str, str]]:
    """What happens, one after another: (what, words)."""
    step = st.tuples(st.sampled_from(STEPS), st.sampled_from(WORDS))
    return [("prompt", draw(st.sampled_from(WORDS))), *draw(st.lists(step, min_size=1, max_size=9))]


def live(home: Home, tree: Path, steps: list[tuple[str, str]], draw: Any) -> None:
    """Lets a session happen: hooks arrive late or twice, files are read now and then, again, or from the start."""
    client = Client(tree)
    for what, words in steps:
        getattr(client, what)(words)
    late: list[tuple[int, Hook]] = []
    recent: list[Path] = []
    for number, entry in enumerate(client.log):
        if isinstance(entry, Line):
            written([entry])
            path = Path(entry.path)
            recent = [*(other for other in recent if other != path), path]
        else:
            delay = draw(st.sampled_from([0, 0, 0, 1, 2, 50]))
            late.append((number + delay, entry))
        due = [pair for pair in late if pair[0] <= number]
        late = [pair for pair in late if pair[0] > number]
        deliver(home, client, due, draw)
        act = draw(st.sampled_from(["", "", "", "", "read", "read", "again"]))
        if act == "again":
            home.store.write(lambda rows: rows.run("delete from files"))
        if act:
            for path in recent:
                home.tail(path)
    deliver(home, client, late, draw)
    home.read(tree)
    home.settle()


def deliver(home: Home, client: Client, due: list[tuple[int, Hook]], draw: Any) -> None:
    for _, hook in due:
        place = client.log.index(hook)
        home.hook(hook.payload, at=hook.at, ident=f"e{place}")
        if draw(st.booleans()):  # a plugin's hook beside the settings', or the same event from the spool
            home.hook(hook.payload, at=hook.at, ident=draw(st.sampled_from([f"e{place}", f"p{place}"])))


@pytest.mark.invariant("Stored is what the transcripts hold, told by a reader that shares no code with csmd")
@settings(
    max_examples=int(os.environ.get("CSMD_EXAMPLES", "15")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=lives(), data=st.data())
def test_whatever_happens_in_a_session_and_in_whatever_order_it_is_told_each_turn_is_stored_once(
    steps: list[tuple[str, str]], data: Any, shared_home: Home
) -> None:
    home = shared_home
    home.wipe()
    with tempfile.TemporaryDirectory(dir=home.root) as folder:
        live(home, Path(folder), steps, data.draw)
        check(home, Path(folder))


def said(session: str, uuid: str, words: str, second: int, **more: Any) -> dict[str, Any]:
    """A prompt's line."""
    message = {"role": "user", "content": words}
    at = f"2027-01-01T00:00:{second:02d}.000Z"
    return {
        "type": "user",
        "uuid": uuid,
        "sessionId": session,
        "timestamp": at,
        "cwd": "/p",
        "message": message,
        **more,
    }


def moved(session: str, operation: str, second: int, words: str = "") -> dict[str, Any]:
    """A line of the queue."""
    at = f"2027-01-01T00:00:{second:02d}.000Z"
    return {
        "type": "queue-operation", "operation": operation, "sessionId": session, "timestamp": at, "content": words,
    }  # fmt: skip


def put_in(path: Path, *values: dict[str, Any]) -> None:
    written([Line(str(path), value) for value in values])


def test_a_queues_line_whose_words_a_fork_brought_first_stays_known(home: Home, tmp_path: Path) -> None:
    fork, own = tmp_path / "f.jsonl", tmp_path / "s.jsonl"
    put_in(fork, said("f", "u1", "queued words", 5))
    lines = (moved("s", "enqueue", 2, "queued words"), moved("s", "dequeue", 4), said("s", "u1", "queued words", 5))
    put_in(own, *lines)
    home.read(fork)
    for _ in range(2):
        home.read(own)
        assert [uuid for uuid, *_ in home.streams()["s"]] == ["u1"]
        own.unlink()
        put_in(own, *lines)


@pytest.mark.parametrize("whole", [True, False])
def test_a_queues_line_stays_known_when_what_it_says_was_purged(home: Home, tmp_path: Path, whole: bool) -> None:
    path = tmp_path / "s.jsonl"
    lines = (said("s", "u0", "hello", 0), moved("s", "enqueue", 2, "about nightingale now"), moved("s", "remove", 4))
    put_in(path, *lines)
    home.read(path)
    key = home.store.hash_key

    def write(rows: Any) -> None:
        if whole:
            names = [uuid for (uuid,) in rows.all("select uuid from turns where uuid like 'queue:%'")]
            tombstones.purge_names(rows, "turn", names, key=key, now=NOW)
        else:
            tombstones.purge_text(rows, "nightingale", key=key, now=NOW)
        purge.apply_tombstones(rows, key)

    home.store.write(write)
    path.unlink()
    put_in(path, *lines)
    home.read(path)
    assert [text for *_, text in home.streams()["s"]] == ["hello", "[purged]" if whole else "about [purged] now"]


def test_what_left_the_queue_keeps_its_place_beside_turns_that_are_left_out(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    put_in(
        path, said("s", "u0", "hello", 0), said("s", "x1", "no", 1, cwd="/x"), said("s", "x2", "no", 1, cwd="/x"),
        moved("s", "enqueue", 2, "same"), moved("s", "remove", 3), said("s", "u2", "same", 4), said("s", "u3", "end", 5),
    )  # fmt: skip
    home.tail(path, excludes=Excludes(projects=("/x",)))
    assert [text for *_, text in home.streams()["s"]] == ["hello", "same", "same", "end"]


def test_what_is_said_in_a_worktree_of_an_excluded_project_is_left_out(home: Home, tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    (main / ".git" / "worktrees" / "tree").mkdir(parents=True)
    (main / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (main / ".git" / "worktrees" / "tree" / "commondir").write_text("../..\n")
    (main / ".git" / "worktrees" / "tree" / "HEAD").write_text("ref: refs/heads/tree\n")
    (main / ".git" / "worktrees" / "tree" / "gitdir").write_text(f"{tree}/.git\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {main}/.git/worktrees/tree\n")
    path = tmp_path / "s.jsonl"
    put_in(path, said("s", "u0", "hello", 0), said("s", "u1", "no", 1, cwd=str(tree)))
    home.tail(path, excludes=Excludes(projects=(str(main),)))
    assert [text for *_, text in home.streams()["s"]] == ["hello"]
