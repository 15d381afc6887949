"""A past is taken in newest first, in turn across projects, behind everything that happens now; in any order it is the same."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import forked_process
import pytest
from bench import bench_changed
from hypothesis import given
from hypothesis import strategies as st
from in_process import settle
from machine import CORRECTION, DECISION, PREFERENCE, Daemon, Machine, eventually
from transcript_home import latest_transcripts

from csmd.capture import transcript_listing, transcript_source
from csmd.capture.transcript_listing import ListedTranscript
from csmd.config import child_environment
from csmd.daemon import import_task, reading
from csmd.daemon.alarms import RECHECK_S
from csmd.daemon.context import Backlog, Task, now_iso
from csmd.daemon.jobs import FULL_SWEEP_S, TICK_S, Background
from csmd.embedding.worker_client import Embedder
from csmd.exclusions import Excludes
from csmd.store import activity, files
from csmd.store.core import Store

START = 1000.0
EVALUATION = (
    Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[3] / "shared" / "eval") / "transcripts"
)
#: Enough of the real ones for a test that is run all the time; `CSMD_EVAL_BYTES=1000000000` takes all of them.
EVALUATION_BYTES = int(os.environ.get("CSMD_EVAL_BYTES", "400_000"))

PAIRS = Path(__file__).resolve().parents[1] / "data" / "supersession" / "pairs.json"

# --- the order

names = st.sampled_from(["a", "b", "c", "d"])
paths = st.one_of(
    st.builds(lambda project, session: f"/r/projects/{project}/{session}.jsonl", names, names),
    st.builds(
        lambda project, session, agent: f"/r/projects/{project}/{session}/subagents/agent-{agent}.jsonl",
        names, names, names,
    ),
    st.builds(lambda folder, session: f"/elsewhere/{folder}/{session}.jsonl", names, names),
    st.builds(lambda session: f"/r/projects/{session}.jsonl", names),
)  # fmt: skip


@pytest.mark.invariant(
    "Of the past every project's newest come first, each transcript once; in whatever order it is read, the same is remembered"
)
@given(st.dictionaries(paths, st.integers(0, 5), max_size=40))
def test_every_projects_newest_come_before_any_projects_next(written: dict[str, int]) -> None:
    found = [ListedTranscript(path, 10, mtime) for path, mtime in written.items()]
    ordered = reading.order_newest_first(found, ["/r/projects"])
    assert sorted(one.path for past in ordered for one in past.files) == sorted(written), "each once"
    assert [past.rank for past in ordered] == sorted(past.rank for past in ordered)
    sessions = [(past.project, past.session) for past in ordered]
    assert len(set(sessions)) == len(sessions), "what belongs to a session is read together"
    for project in {past.project for past in ordered}:
        mine = [past for past in ordered if past.project == project]
        assert [past.rank for past in mine] == list(range(len(mine)))
        assert [past.mtime_ns for past in mine] == sorted((past.mtime_ns for past in mine), reverse=True)
    for past in ordered:
        assert past.mtime_ns == max(one.mtime_ns for one in past.files)
        assert [len(one.path) for one in past.files] == sorted(len(one.path) for one in past.files), "its own first"


def test_where_a_transcript_lies_tells_its_project_and_session() -> None:
    place = {
        path: reading.locate_transcript(path, ["/r/projects"])
        for path in (
            "/r/projects/-shop/s1.jsonl",
            "/r/projects/-shop/s1/subagents/agent-1.jsonl",
            "/r/projects/-shop/s1/subagents/workflows/w/agent-2.jsonl",
            "/r/projects/s2.jsonl",
            "/away/s3.jsonl",
            "/r/projects-of-old/s4.jsonl",
        )
    }
    assert list(place.values()) == [
        ("/r/projects/-shop", "s1"),
        ("/r/projects/-shop", "s1"),
        ("/r/projects/-shop", "s1"),
        ("/r/projects", "s2"),
        ("/away", "s3"),
        ("/r/projects-of-old", "s4"),
    ]


# --- the background thread, stepped by hand


def past(machine: Machine, *, projects: int, sessions: int) -> int:
    """Sessions of two turns in several projects, the first written last; how many turns."""
    for project in range(projects):
        folder = machine.assistant / "projects" / f"-p{project}"
        for number in range(sessions):
            name = f"p{project}s{number}"
            said = f"I prefer the flag --{name} over the variable {name.upper()} in this code."
            lines = [machine.line("user", said, session=name), machine.line("assistant", "Noted.", session=name)]
            path = machine.transcript(*lines, session=name, folder=folder)
            at = time.time() - 86_400 * (1 + number) - project
            os.utime(path, (at, at))
    return projects * sessions * 2


def known(parts: Any) -> dict[str, int]:
    return dict(parts.store.read(activity.counts))


def sessions(parts: Any) -> set[str]:
    return {ident for (ident,) in parts.store.read(lambda rows: rows.all("select id from sessions"))}


def until_done(parts: Any, job: Task) -> None:
    for _ in range(200):
        if job.state == "done":
            return
        parts.background.step(START)
    raise AssertionError(job)


def test_install_waits_for_each_projects_last_sessions_and_the_rest_follows(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = past(parts.machine, projects=3, sessions=4)
    job = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False, recent=2))
    with monkeypatch.context() as held:  # the rest may begin in the pass in which the job ends
        held.setattr(reading, "read_backlog", lambda _: False)
        until_done(parts, job)
    assert sessions(parts) == {f"p{project}s{number}" for project in range(3) for number in range(2)}
    assert known(parts)["memories"] == 6, "what is in is distilled"
    assert (job.result["files"], job.result["left"]["sessions_left"]) == (6, 6)
    shown = parts.background.context.backlog.describe()
    assert shown == job.result["left"] and shown["bytes_left"] > 0 and shown["eta_s"] is not None
    settle(parts)
    assert (known(parts)["turns"], known(parts)["memories"]) == (turns, 12)
    assert parts.background.context.backlog.describe() is None


def test_an_install_waits_for_recent_sessions_no_longer_than_its_time(parts: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(import_task, "FOREGROUND_S", 0.0)
    turns = past(parts.machine, projects=3, sessions=4)
    job = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False, recent=2))
    until_done(parts, job)
    assert (job.result["files"], job.result["left"]["sessions_left"]) == (1, 11)
    settle(parts)
    assert (known(parts)["turns"], known(parts)["memories"]) == (turns, 12)


def test_the_backlog_can_be_described_while_it_is_read() -> None:
    backlog, described = Backlog(), 0
    backlog.fill((f"s{number}", ListedTranscript(f"/{number}", 10, number)) for number in range(20_000))
    with ThreadPoolExecutor() as reader:
        dropping = reader.submit(lambda: [backlog.drop(f"/{number}") for number in range(19_990)])
        while not described or not dropping.done():
            assert (state := backlog.describe()) and state["bytes_left"] >= 100
            described += 1
        dropping.result()
    state = {"sessions_left": 10, "bytes_left": 100, "sessions_done": 19_990, "eta_s": None}
    assert backlog.describe() == state and backlog.next_transcript() == ListedTranscript("/19990", 10, 19_990)


def test_the_background_goes_newest_first_across_projects_and_is_counted(parts: Any) -> None:
    past(parts.machine, projects=2, sessions=4)
    met = []
    for _ in range(100):
        if not parts.background.step(START):
            break
        shown = parts.background.context.backlog.describe()
        met.append((sorted(sessions(parts)), shown and (shown["sessions_left"], shown["sessions_done"])))
    assert met[0] == (["p0s0"], (7, 1))
    assert met[1] == (["p0s0", "p1s0"], (6, 2))
    assert met[2][0] == ["p0s0", "p0s1", "p1s0"]
    assert parts.background.context.backlog.describe() is None and known(parts)["sessions"] == 8


@pytest.mark.invariant("What happens now goes before the past; the background rests; half a session is not distilled")
def test_what_happens_now_goes_before_the_past(parts: Any) -> None:
    machine = parts.machine
    past(machine, projects=2, sessions=10)
    parts.background.step(START)
    live = machine.transcript(machine.line("user", PREFERENCE, session="live"), session="live")
    parts.background.hint(str(live))
    parts.background.step(START)
    assert "live" in sessions(parts) and len(sessions(parts)) <= 3
    assert parts.background.context.backlog.describe()["sessions_left"] >= 17


def test_sync_takes_in_all_of_it_and_leaves_no_past_behind(parts: Any) -> None:
    turns = past(parts.machine, projects=2, sessions=6)
    parts.background.step(START)
    job = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False))
    until_done(parts, job)
    assert (known(parts)["turns"], known(parts)["memories"], job.result["files"]) == (turns, 12, 12)
    assert not parts.background.context.backlog and "left" not in job.result


def test_a_sub_agents_transcript_is_read_with_its_session(parts: Any) -> None:
    machine = parts.machine
    past(machine, projects=1, sessions=5)
    agent = {**machine.line("user", "Look at it.", session="p0s4"), "isSidechain": True, "agentId": "a1"}
    machine.transcript(agent, session="agent-a1", folder=machine.assistant / "projects/-p0/p0s4/subagents")
    job = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False, recent=1))
    while job.state != "done":  # the task alone: with its end the background would read on
        parts.background.tasks.step()
    assert job.result["files"] == 2, "the session counts as the newest by its sub-agent"
    assert sessions(parts) >= {"p0s4"} and "p0s0" not in sessions(parts)


@pytest.mark.invariant("What happens now goes before the past; the background rests; half a session is not distilled")
def test_the_background_rests_and_whoever_comes_ends_its_rest(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "REST_FACTOR", 1e9)  # for years
    turns = past(parts.machine, projects=2, sessions=6)
    parts.background.start()
    try:
        eventually(lambda: known(parts)["sessions"] == 1)
        machine = parts.machine
        parts.background.hint(str(machine.transcript(machine.line("user", PREFERENCE, session="live"), session="live")))
        eventually(lambda: "live" in sessions(parts))
        assert known(parts)["sessions"] <= 4
        job = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False))
        eventually(lambda: job.state == "done")
        assert known(parts)["turns"] == turns + 1
    finally:
        parts.background.context.stop()
        parts.background.join(30)


def test_what_the_user_leaves_out_is_no_past(parts: Any) -> None:
    machine = parts.machine
    past(machine, projects=1, sessions=6)
    parts.background.context.excludes = Excludes(projects=(str(machine.project),))
    settle(parts)
    assert len(parts.background.context.excluded_paths) == 6
    assert reading.sweep_transcripts(parts.background.context, full=True) == 0


@pytest.mark.invariant("What happens now goes before the past; the background rests; half a session is not distilled")
def test_half_a_session_is_not_distilled(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last message so far is not its last: what follows is known, only not read yet."""
    monkeypatch.setattr(transcript_source, "READ_BYTES", 1000)
    machine = parts.machine
    for said in (PREFERENCE, CORRECTION, DECISION) * 2:
        machine.transcript(machine.line("user", said), machine.line("assistant", "It is done."))
    path = next(iter(latest_transcripts(machine.assistant / "projects")))
    os.utime(path, (1, 1))
    seen = []
    while parts.background.step(START):
        seen.append((known(parts)["turns"], known(parts)["memories"]))
    read = [memories for turns, memories in seen if turns < 12]
    assert read and set(read) == {0}
    assert known(parts)["memories"] == 3


def test_a_background_that_comes_after_another_finds_what_that_one_left(parts: Any) -> None:
    turns = past(parts.machine, projects=2, sessions=6)
    for _ in range(4):
        parts.background.step(START)
    assert 0 < known(parts)["turns"] < turns
    parts.background = Background(parts.store, parts.machine.config(), parts.embedder)
    settle(parts)
    assert (known(parts)["turns"], known(parts)["memories"]) == (turns, 12)


@pytest.mark.parametrize(("called", "kept"), [("2026-05-04T08:00:00.000Z", False), ("2999-05-04T08:00:00.000Z", True)])
def test_what_a_tool_wrote_into_a_transcript_states_nothing_even_where_that_comes_to_light_later(
    parts: Any, called: str, kept: bool
) -> None:
    """What was read before the call was made stays: the host's word alone was in it."""
    machine = parts.machine
    forged = machine.transcript(machine.line("user", PREFERENCE, session="forged"), session="forged")
    also = machine.transcript(machine.line("user", CORRECTION, session="honest"), session="honest")
    while parts.background.step(START):
        pass
    assert known(parts)["memories"] == 2
    write = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": str(forged), "content": "x"}}
    call = {**machine.line("assistant", "", session="old"), "timestamp": called}
    call["message"]["content"] = [write]
    parts.background.hint(str(machine.transcript(call, session="old")))
    settle(parts)
    left = [row["text"] for row in parts.call("csm_memory_list")["memories"]]
    assert any("database_url" in text for text in left) and also.exists()
    assert any("pathlib" in text for text in left) == kept
    machine.transcript(machine.line("user", DECISION, session="forged"), session="forged")
    parts.background.hint(str(forged))
    settle(parts)
    assert not any("LISTEN" in row["text"] for row in parts.call("csm_memory_list")["memories"])


# --- while nothing happens


@pytest.mark.invariant("An idle step asks the store nothing")
def test_an_idle_step_asks_the_store_nothing(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    past(parts.machine, projects=2, sessions=2)
    settle(parts)
    settle(parts, START + RECHECK_S)
    settled = START + 2 * RECHECK_S + TICK_S  # until then sessions are looked at for an alarm
    settle(parts, settled)
    settle(parts, settled + TICK_S)
    asked: list[Any] = []
    ask = parts.store.submit_read
    monkeypatch.setattr(parts.store, "submit_read", lambda *args, **more: asked.append(args) or ask(*args, **more))
    commits = parts.store.commits
    settle(parts, settled + 2 * TICK_S)
    assert (asked, parts.store.commits) == ([], commits)
    settle(parts, START + FULL_SWEEP_S + TICK_S)
    assert asked and parts.store.commits <= commits + 4, (
        "what a sweep looks at is no news; retention, growth, easing and since when a dream is waited for write"
    )


def test_memory_of_a_burst_is_given_back_and_everything_goes_on(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csmd.daemon.stages.BURST_COMMITS", 1)
    past(parts.machine, projects=1, sessions=2)
    settle(parts)
    parts.store.shrink()
    machine = parts.machine
    parts.background.hint(str(machine.transcript(machine.line("user", "And on.", session="s9"), session="s9")))
    settle(parts)
    assert known(parts)["turns"] == 5


# --- the real daemon

DAEMON = """
import os, sys
from csmd.daemon import import_task, reading, tasks
tasks.SLICE_S = reading.SLICE_S = 0
read = reading.read_backlog
seen = []
def some(context):
    seen.append(1)
    return len(seen) < 8 and read(context)
reading.read_backlog = some
from csmd.daemon.__main__ import main
sys.argv[1:] = []
sys.exit(main())
"""


def slow_daemon(machine: Machine) -> Daemon:
    """A daemon whose background comes to a stop after a few sessions, listening."""
    child = forked_process.spawn("-c", DAEMON, cwd=machine.root, env=machine.environment())
    machine.daemons.append(child)
    eventually(
        lambda: child.poll() is not None or (machine.paths.endpoint.exists() and machine.instance() == child.pid)
    )
    assert child.poll() is None, machine.log()
    return child


@pytest.mark.invariant(
    "Of the past every project's newest come first, each transcript once; in whatever order it is read, the same is remembered"
)
def test_a_daemon_killed_in_the_middle_goes_on_where_it_stood(machine: Machine) -> None:
    turns = past(machine, projects=2, sessions=15)
    child = slow_daemon(machine)
    eventually(lambda: machine.status()["backfill"])
    result = machine.work("csm_sync", vectors=False, recent=3)
    assert 0 < machine.status()["backfill"]["sessions_left"] <= result["left"]["sessions_left"]
    shown = machine.run("status").stdout
    assert re.search(r"^back-fill +\d+ of \d+ past sessions in, ", shown, re.MULTILINE), shown
    assert 0 < machine.status()["counts"]["turns"] < turns
    child.send_signal(signal.SIGKILL)
    child.wait(30)
    machine.start()
    eventually(lambda: machine.status()["counts"]["turns"] == turns)
    eventually(lambda: machine.status()["counts"]["memories"] == 30)
    assert machine.status()["backfill"] is None
    assert machine.sync()["turns_new"] == 0
    assert (machine.status()["counts"]["turns"], machine.status()["counts"]["memories"]) == (turns, 30)


def test_install_says_what_goes_on_behind_it(machine: Machine) -> None:
    past(machine, projects=1, sessions=17)
    slow_daemon(machine)
    shown = machine.csmd("install")
    said = r"the rest, 7 sessions \(\d.* [kK]?B, less than a minute\), continues in the background"
    assert re.search(said, " ".join(shown.split())), shown
    # The background may have taken in a few more by now.
    assert machine.status()["counts"]["sessions"] >= 10


# --- the order does not matter


def taken_in(root: Path, home: Path, order: Any, *, distilled_after_each: bool) -> dict[str, Any]:
    """What is known when real sessions were read in an order of theirs."""
    machine = Machine(root=home)
    for folder in (machine.paths.home, machine.paths.run_dir, machine.paths.spool, machine.paths.models):
        files.make_private(folder)
    store = Store(machine.paths.database, now=now_iso())
    embedder = Embedder(None, idle_s=60, environment=child_environment())
    background = Background(store, machine.config(), embedder)
    try:
        left = EVALUATION_BYTES
        chosen = []
        for one in reading.order_newest_first(transcript_listing.list_transcripts(root), [str(root)]):
            size = sum(file.size for file in one.files)
            if size <= left:
                chosen.append(one)
                left -= size
        for one in order(chosen):
            for file in one.files:
                while reading.read_guarded(background.context, Path(file.path), most_pieces=1).more:
                    pass
            if distilled_after_each:
                list(background.stages.distill_sessions(force=True))
                background.stages.run_stage("believe")
                background.stages.run_stage("gotchas")
        list(background.stages.distill_sessions(force=True))
        background.stages.run_stage("believe")
        background.stages.run_stage("gotchas")

        def read(sql: str) -> list[str]:
            # a queue's turn is named by a hash with the store's own key
            rows = store.read(lambda rows: rows.all(sql))
            return sorted(re.sub(r"(queue:.*?Z):\w+", r"\1", json.dumps(row)) for row in rows)

        return {
            "turns": read("select t.uuid, t.kind, t.text, t.at, t.source, s.id from turns t join sessions s on s.seq = t.session_seq"),
            "listed": read("select s.id, st.ordinal, t.uuid from session_turn st join sessions s on s.seq = st.session_seq join turns t on t.seq = st.turn_seq"),
            "sessions": read("select id, parent, turns, started_at, last_at, title, cwd from sessions"),
            "statements": read("select s.text, s.gate, t.uuid from statements s join turns t on t.seq = s.turn_seq"),
            "memories": read("select m.text, m.gate, m.category, m.tier, m.authority, m.confidence, m.scope, m.session_id, m.created_at, m.confirmed_at, m.hot_until, m.warm_until, m.archive_at, p.root from memories m join projects p on p.seq = m.project_seq"),
            "errors": read("select e.fingerprint, e.message, t.uuid from error_seen x join errors e on e.seq = x.error_seq join turns t on t.seq = x.turn_seq"),
            "fixes": read("select e.fingerprint, t.uuid, f.uuid, f.files, f.text from error_fixes f join errors e on e.seq = f.error_seq join turns t on t.seq = f.turn_seq"),
            "symptoms": read("select m.text, y.uuid, y.text from symptoms y join memories m on m.seq = y.memory_seq"),
            "refutations": read("select m.text, r.uuid, r.reason, r.lowered from refutations r join memories m on m.seq = r.memory_seq"),
            "scenes": read("select m.text, s.uuid, s.text from scenes s join memories m on m.seq = s.memory_seq"),
            "links": read("select a.text, b.text, l.relationship from links l join memories a on a.seq = l.from_seq join memories b on b.seq = l.to_seq"),
            "provenance": read("select m.text, p.uuid, p.session_id, p.at, p.role from provenance p join memories m on m.seq = p.memory_seq"),
        }  # fmt: skip
    finally:
        embedder.close()
        store.close()


def test_sessions_that_change_what_was_said_give_the_same_memories_in_whatever_order_they_are_read(
    tmp_path: Path,
) -> None:
    root = tmp_path / "transcripts"
    said = [[pair["older"], pair["newer"]] for pair in json.loads(PAIRS.read_text()) if pair["kind"] == "amends"]
    rows = [
        {"id": str(number), "cwd": "/home/dev/shop", "sessions": [
            {"days_ago": days, "turns": [{"role": "user", "text": text}, {"role": "assistant", "text": "Noted."}]}
            for days, text in zip((number + 40, number + 1), pair, strict=True)
        ]}
        for number, pair in enumerate(said)
    ]  # fmt: skip
    rows += bench_changed.read("changed_facts.jsonl")[::3]
    bench_changed.write(rows, root, now=datetime(2026, 3, 1, tzinfo=UTC))
    newest_first = taken_in(root, tmp_path / "a", list, distilled_after_each=True)
    oldest_first = taken_in(root, tmp_path / "b", lambda found: found[::-1], distilled_after_each=True)
    shuffled = taken_in(
        root, tmp_path / "c", lambda one: random.Random(7).sample(one, len(one)), distilled_after_each=True
    )
    assert sum("superseded_by" in link for link in newest_first["links"]) > len(said) / 2, "most are replaced"
    for what, found in newest_first.items():
        assert found == oldest_first[what] == shuffled[what], what


@pytest.mark.invariant("Errors, fixes, symptoms and refutations are the same in whatever order real sessions are read")
@pytest.mark.invariant(
    "Of the past every project's newest come first, each transcript once; in whatever order it is read, the same is remembered"
)
@pytest.mark.skipif(not EVALUATION.is_dir(), reason=f"no real transcripts at {EVALUATION}; set CSMD_EVAL")
def test_real_sessions_give_the_same_in_whatever_order_they_are_read(tmp_path: Path) -> None:
    newest_first = taken_in(EVALUATION, tmp_path / "a", list, distilled_after_each=True)
    oldest_first = taken_in(EVALUATION, tmp_path / "b", lambda found: found[::-1], distilled_after_each=True)
    at_once = taken_in(EVALUATION, tmp_path / "c", list, distilled_after_each=False)
    assert newest_first["turns"] and newest_first["memories"]
    for what, found in newest_first.items():
        assert found == oldest_first[what] == at_once[what], what


def test_a_full_disk_is_told_once_and_the_backlog_waits_for_it(parts: Any) -> None:
    machine, background = parts.machine, parts.background
    for number in range(30):
        said = machine.line("user", f"the past {number} " * 300, session=f"s{number}")
        machine.transcript(said, session=f"s{number}")
    assert parts.store.cleanse(), "no page is free in the file"
    parts.store.write(lambda rows: rows.all(f"pragma max_page_count = {rows.value('pragma page_count')}"))
    steps = [background.step(START + TICK_S * number) for number in range(9)]
    assert not any(steps[1:]), "it does not go on at once"
    assert len([what for what in background.context.trouble if what.startswith("transcript ")]) == 1
    parts.store.write(lambda rows: rows.all("pragma max_page_count = 100000"))
    settle(parts, START + TICK_S * 9)
    assert not background.context.trouble and parts.store.read(activity.counts)["sessions"] == 30
