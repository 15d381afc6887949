"""The background thread stepped by hand: what is due is done, once, and one broken thing never stops the others."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from in_process import settle
from machine import CORRECTION, DECISION, PREFERENCE, Machine, eventually

from csmd.capture import ingest, transcript_source
from csmd.daemon import jobs, reading, stages, tasks
from csmd.daemon.context import Task, now_iso, to_iso
from csmd.daemon.jobs import FULL_SWEEP_S, LIVE_SWEEP_S, PASS_EVERY_S
from csmd.daemon.stages import PROVISIONAL_TIMEOUT_S
from csmd.embedding import installed_models
from csmd.errors import StoreError
from csmd.memory import failure_links
from csmd.recall import threads
from csmd.store import activity, provisional_turns

#: A monotonic time of the test's own: nothing here waits for a clock.
START = 1000.0


def known(parts: Any) -> dict[str, int]:
    return dict(parts.store.read(activity.counts))


def ago(seconds: float) -> str:
    return to_iso(datetime.now(UTC) - timedelta(seconds=seconds))


def spool(machine: Machine, name: str, ident: str, seconds_ago: float, **payload: Any) -> None:
    """What a hook left `seconds_ago`."""
    at = time.time_ns() - int(seconds_ago * 1e9)
    body = json.dumps({"session_id": "s1", "cwd": str(machine.project), **payload})
    (machine.paths.spool / f"{ident}.event").write_text(f"csmd-spool 1 {ident} claude {name} {at}\n{body}")


# --- what is due


def test_a_step_takes_what_was_written_to_memories(parts: Any) -> None:
    parts.machine.conversation()
    settle(parts)
    assert (known(parts)["turns"], known(parts)["sessions"]) == (6, 1)
    texts = " ".join(row["text"] for row in parts.call("csm_memory_list")["memories"])
    assert "pathlib over os.path" in texts and "database_url" in texts and "LISTEN/NOTIFY" in texts
    assert not parts.background.step(START), "nothing is left to do"
    assert parts.background.context.trouble == {}


@pytest.mark.invariant(
    "A slow daemon is not a hung one: who is about to leave is answered, and the mark goes when the daemon goes on"
)
def test_a_responsive_daemon_removes_the_hung_mark(parts: Any) -> None:
    mark = parts.background.context.config.paths.hung_mark
    mark.parent.mkdir(parents=True, exist_ok=True)
    asked: list[Any] = []
    parts.background.ping_server = lambda answered: asked.append(answered) or answered()
    parts.background.step(1000.0)
    assert not asked, "nobody is asked where there is no mark"
    mark.touch()
    parts.background.step(1001.0)
    assert asked and not mark.exists()


def test_a_hinted_transcript_is_read_at_once_and_others_at_the_next_sweep(parts: Any) -> None:
    machine = parts.machine
    first = machine.transcript(machine.line("user", "One."))
    settle(parts)
    assert known(parts)["turns"] == 1
    second = machine.transcript(machine.line("user", "Two.", session="s2"), session="s2")
    machine.transcript(machine.line("user", "Three."))
    settle(parts, START + 1)
    assert known(parts)["turns"] == 1, "no hint, no sweep yet"
    parts.background.hint(str(second))
    parts.background.hint("/etc/passwd")
    settle(parts, START + 2)
    assert known(parts)["turns"] == 2
    settle(parts, START + LIVE_SWEEP_S + 1)
    assert known(parts)["turns"] == 3, "a transcript that is alive is looked at"
    machine.transcript(machine.line("user", "Four.", session="s3"), session="s3")
    settle(parts, START + 2 * LIVE_SWEEP_S + 2)
    assert known(parts)["turns"] == 3, "a new one without a hint waits for the full sweep"
    settle(parts, START + FULL_SWEEP_S + 3)
    assert known(parts)["turns"] == 4
    assert first.exists()


def test_a_transcript_imported_from_elsewhere_is_swept_like_the_others(parts: Any) -> None:
    machine = parts.machine
    away = machine.root / "elsewhere"
    machine.transcript(machine.line("user", "One."), folder=away)
    job = parts.background.context.submit(Task(id="j", kind="import", path=str(away)))
    settle(parts)
    assert (job.state, job.result["turns_new"]) == ("done", 1)
    machine.transcript(machine.line("user", "Two."), folder=away)
    settle(parts, START + FULL_SWEEP_S + 1)
    assert known(parts)["turns"] == 2


def test_an_incomplete_line_is_read_when_it_is_complete(parts: Any) -> None:
    machine = parts.machine
    whole = json.dumps(machine.line("user", "I prefer tabs over spaces."))
    path = machine.transcript(whole[:40])
    settle(parts)
    parts.background.hint(str(path))
    settle(parts)
    assert known(parts)["turns"] == 0
    machine.transcript(whole[40:] + "\n")
    parts.background.hint(str(path))
    settle(parts)
    assert (known(parts)["turns"], parts.store.read(activity.read_counters).get("bad lines", 0)) == (1, 0)


def half_a_line(machine: Machine) -> Path:
    return machine.transcript('{"type": "user", "mess')


def a_transcript_that_is_gone(machine: Machine) -> Path:
    path = machine.transcript(machine.line("user", "One."))
    path.unlink()
    return path


def a_directory_in_the_spool(machine: Machine) -> Path:
    (path := machine.paths.spool / "a1.event").mkdir()
    return path


def an_event_of_a_newer_csmd(machine: Machine) -> Path:
    path = machine.paths.spool / "a1.event"
    path.write_text(f"csmd-spool 99 a1 claude Stop {time.time_ns()}\n{{}}")
    return path


@pytest.mark.parametrize(
    "left", [half_a_line, a_transcript_that_is_gone, a_directory_in_the_spool, an_event_of_a_newer_csmd]
)
def test_what_brings_nothing_asks_for_no_further_step(parts: Any, left: Callable[[Machine], Path]) -> None:
    path = left(parts.machine)
    for _ in range(2):
        parts.background.hint(str(path))
        settle(parts)
        parts.background.context.wake.clear()
        assert not parts.background.step(START)
        assert not parts.background.context.wake.is_set()


# --- provisional turns


def test_a_provisional_turn_is_replaced_by_the_transcripts_turn(parts: Any) -> None:
    machine = parts.machine
    spool(machine, "UserPromptSubmit", "a1", 600, prompt=PREFERENCE)
    settle(parts)
    assert (known(parts)["turns"], known(parts)["provisional"]) == (1, 1)
    machine.transcript({**machine.line("user", PREFERENCE, uuid="real"), "timestamp": ago(599)})
    settle(parts, START + FULL_SWEEP_S + 1)
    assert (known(parts)["turns"], known(parts)["provisional"]) == (1, 0)
    hit = parts.call("csm_memory_search", query="pathlib", kind="turn")["hits"][0]
    assert hit["source_uuids"] == ["real"]


def test_a_turn_that_only_the_hook_saw_is_kept_once_the_transcript_has_gone_on(parts: Any) -> None:
    machine = parts.machine
    spool(machine, "UserPromptSubmit", "a1", PROVISIONAL_TIMEOUT_S + 60, prompt="Only the hook saw this.")
    spool(machine, "UserPromptSubmit", "a2", 1, prompt="This one is young.")
    machine.transcript({**machine.line("user", "Something else."), "timestamp": ago(0)})
    settle(parts)
    settle(parts, START + LIVE_SWEEP_S + 1)
    assert (known(parts)["turns"], known(parts)["provisional"]) == (3, 1), "the young one still waits"


def test_a_turn_that_waits_for_a_transcript_that_has_not_gone_on_stays_provisional(parts: Any) -> None:
    machine = parts.machine
    machine.transcript({**machine.line("user", "Before."), "timestamp": ago(3000)})
    spool(machine, "UserPromptSubmit", "a1", PROVISIONAL_TIMEOUT_S + 60, prompt="Not written down yet.")
    settle(parts)
    settle(parts, START + LIVE_SWEEP_S + 1)
    assert (known(parts)["turns"], known(parts)["provisional"]) == (2, 1)


@pytest.mark.invariant(
    "No step of a dream, its preview or its undo is long; its own writes wake the stages once, and no client keeps an awaited one from going on"
)
def test_a_sweep_checks_a_few_of_many_provisional_turns_and_reaches_all_over_time(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "PROVISIONAL_BATCH", 2)
    monkeypatch.setattr(stages, "MAX_PROVISIONAL_BATCHES", 2)
    machine = parts.machine
    machine.transcript({**machine.line("user", "Before."), "timestamp": ago(3000)})
    for number in range(7):
        spool(machine, "UserPromptSubmit", f"a{number}", 900 - number, prompt=f"Not written down yet {number}.")
    settle(parts)
    assert known(parts)["provisional"] == 7
    asked: list[int] = []
    over = provisional_turns.list_expired_provisional
    monkeypatch.setattr(
        provisional_turns,
        "list_expired_provisional",
        lambda rows, **given: asked.append(given["limit"]) or over(rows, **given),
    )
    machine.transcript({**machine.line("user", "Later."), "timestamp": ago(0)})
    settle(parts, START + FULL_SWEEP_S + 1)  # it looks at those that wait, and then reads how the transcript goes on
    left = []
    for sweep in (2, 3, 4):
        settle(parts, START + sweep * (FULL_SWEEP_S + 1))
        left.append(known(parts)["provisional"])
    assert left == [3, 0, 0] and set(asked) == {2}
    assert known(parts)["turns"] == 9


def test_a_turn_reported_twice_and_found_once_in_the_transcript_is_kept_twice(parts: Any) -> None:
    machine = parts.machine
    machine.transcript({**machine.line("user", "yes please"), "timestamp": ago(900)})
    settle(parts)
    for ident, seconds in (("a1", 900), ("a2", 800)):
        spool(machine, "UserPromptSubmit", ident, seconds, prompt="yes please")
    settle(parts, START + 1)
    assert (known(parts)["turns"], known(parts)["provisional"]) == (2, 1), "one of two reports is in the transcript"
    machine.transcript({**machine.line("user", "Go on."), "timestamp": ago(500)})
    settle(parts, START + FULL_SWEEP_S + 1)
    settle(parts, START + 2 * FULL_SWEEP_S)
    assert (known(parts)["turns"], known(parts)["provisional"], known(parts)["hook_only"]) == (3, 0, 1)


# --- what is broken


@pytest.fixture
def unreadable(parts: Any) -> Path:
    """A transcript whose reading is an error even for root."""
    memory = Path("/proc/self/mem")
    if not memory.exists():
        pytest.skip("no /proc here")
    path = parts.machine.assistant / "projects" / "-broken" / "broken.jsonl"
    path.parent.mkdir(parents=True)
    path.symlink_to(memory)
    return path


def test_an_unreadable_transcript_is_reported_and_stops_no_other(parts: Any, unreadable: Path) -> None:
    machine = parts.machine
    os.mkfifo(unreadable.with_name("pipe.jsonl"))
    machine.transcript("{no json\n", '{"type":"user"}\n', machine.line("user", PREFERENCE))
    settle(parts)
    parts.background.hint(str(unreadable))
    parts.background.hint(str(unreadable.with_name("pipe.jsonl")))
    settle(parts, START + 1)
    assert list(parts.background.context.trouble) == [f"transcript {unreadable}"]
    assert (known(parts)["turns"], known(parts)["memories"]) == (1, 1)
    unreadable.unlink()
    settle(parts, START + FULL_SWEEP_S + 1)
    assert parts.background.context.trouble == {}, "what is gone troubles nobody"


def test_a_session_whose_failures_cannot_be_processed_is_reported_and_stops_no_other(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    through = failure_links.relate_session

    def fails_on_the_first(store: Any, session: Any, *, now: str) -> int:
        if session.session_id == "s1":
            raise ValueError("a fault of ours")
        return through(store, session, now=now)

    monkeypatch.setattr(failure_links, "relate_session", fails_on_the_first)
    machine = parts.machine
    machine.transcript(machine.line("user", PREFERENCE), session="s1")
    machine.transcript(machine.line("user", DECISION, session="s2"), session="s2")
    settle(parts)
    assert [row.session_id for row in failure_links.find_pending(parts.store)] == ["s1"]
    assert list(parts.background.context.trouble) == ["gotchas of session s1"]


def test_a_scan_that_is_asked_for_is_left_to_the_background(parts: Any) -> None:
    machine = parts.machine
    path = machine.transcript(*(machine.line("user", said) for said in (PREFERENCE, DECISION)))
    parts.background.context.guard("reading", lambda: reading.read_guarded(parts.background.context, path))
    assert parts.call("csm_belief_scan")["sessions_left"] == 1
    settle(parts)
    assert parts.call("csm_belief_scan")["sessions_left"] == 0


def test_a_job_reports_unreadable_files_and_reads_the_rest(parts: Any, unreadable: Path) -> None:
    parts.machine.conversation()
    job = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False))
    settle(parts)
    assert (job.state, job.result["files"], job.result["turns_new"]) == ("done", 2, 6)
    assert [row.partition(": ")[0] for row in job.result["degraded"]] == [f"transcript {unreadable}"]


def test_trouble_is_shown_while_it_lasts_and_logged_once(parts: Any, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> bool:
        raise StoreError("the disk is full")

    for _ in range(3):
        assert parts.background.context.guard("writing", fail) is None
    assert parts.background.context.trouble == {"writing": "the disk is full"}
    assert len(caplog.records) == 1
    assert parts.background.context.guard("writing", lambda: True) is True
    assert parts.background.context.trouble == {}
    with pytest.raises(StoreError):
        parts.background.context.guard("writing", fail, strict=True)


def test_a_model_that_does_not_load_ends_its_job_and_nothing_else(parts: Any, tiny_model: Path, tmp_path: Path) -> None:
    broken = installed_models.add_model(tiny_model, tmp_path / "copied", name="broken")
    (broken / "model.onnx").write_bytes(b"no model")
    parts.machine.conversation()
    job = parts.background.context.submit(Task(id="j", kind="model", path=str(broken)))
    settle(parts)
    assert (job.state, "does not load" in job.error) == ("failed", True), job
    sync = parts.background.context.submit(Task(id="k", kind="sync"))
    settle(parts)
    assert (sync.state, sync.result["turns_known"] + sync.result["turns_new"] <= 6) == ("done", True)
    assert any(row.startswith("vectors: ") for row in sync.result["degraded"])
    assert known(parts)["memories"] == 3
    good = parts.background.context.submit(Task(id="l", kind="model", path=str(tiny_model)))
    settle(parts)
    assert (good.state, good.result["dim"]) == ("done", 64), good
    assert known(parts)["vectors"] == 9 and not any("embed" in what for what in parts.background.context.trouble)


def test_a_job_that_ends_while_it_is_asked_about_is_never_done_without_its_result(parts: Any) -> None:
    class Ending:
        def __init__(self) -> None:
            self.state, self.error, self.hint, self.progress = "running", "", "", {"step": "writing"}

        @property
        def result(self) -> dict[str, Any]:
            self.state = "done"  # just after its result, still empty, was read
            return {}

    parts.background.context.tasks["e"] = Ending()
    assert parts.call("csm_job", id="e")["state"] == "running"
    assert parts.call("csm_job", id="e")["state"] == "done"


def test_vectors_take_a_second_core_while_no_session_is_at_work_and_the_machine_is_neither_busy_nor_on_battery(
    parts: Any, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, embedder, seen = parts.machine, parts.background.context.embedder, []
    embed = embedder.embed

    def spy(texts: list[str], *, on_two_cores: bool = False, **limits: Any) -> list[bytes]:
        seen.append(on_two_cores)
        return list(embed(texts, on_two_cores=on_two_cores, **limits))

    def embedded(session: str, **moved: str) -> set[bool]:
        seen.clear()
        machine.transcript({**machine.line("user", f"{DECISION} {session}", session=session), **moved}, session=session)
        parts.background.context.submit(Task(id=session, kind="sync"))
        settle(parts)
        return {*seen}

    power: list[bool | None] = [None]
    load = [0.0]
    monkeypatch.setattr("csmd.machine.on_mains", lambda: power[0])
    monkeypatch.setattr("csmd.machine.load_per_core", lambda: load[0])
    machine.conversation()
    parts.background.context.submit(Task(id="m", kind="model", path=str(tiny_model)))
    settle(parts)
    monkeypatch.setattr(embedder, "embed", spy)
    assert embedded("a") == {True}
    power[0] = False
    assert embedded("b") == {False}
    power[0], load[0] = True, 2.0
    assert embedded("c") == {False}
    load[0] = 0.5
    assert embedded("d") == {True}
    assert embedded("e", timestamp=now_iso()) == {False}


def test_between_pieces_of_embedding_it_rests_as_long_as_it_worked_and_not_for_a_burst_of_events(
    parts: Any, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, background = parts.machine, parts.background
    for number in range(8):
        lines = [machine.line("user", f"{PREFERENCE} {number} {part}", session=f"s{number}") for part in range(6)]
        machine.transcript(*lines, session=f"s{number}")
    settle(parts)
    monkeypatch.setattr("csmd.daemon.stages.SLICE_S", 0.0)
    waited, pieces = [], []
    wait, embed = background.context.client_waits.wait, background.stages.embed_some
    background.context.client_waits.wait = lambda timeout: (
        (pieces and pieces[-1] and waited.append(timeout)) or wait(timeout)
    )
    background.stages.embed_some = lambda: pieces.append(embed()) or pieces[-1]
    background.context.submit(Task(id="m", kind="model", path=str(tiny_model), with_vectors=False))
    background.start()
    eventually(lambda: len(pieces) > 1 and pieces[-1] == 0)
    background.context.stop()
    background.join(30)
    assert sum(map(bool, pieces)) > 4 and sorted(waited)[len(waited) // 2] < PASS_EVERY_S / 4


# --- jobs


def test_an_import_tells_what_it_brought_and_a_second_brings_nothing(parts: Any, tiny_model: Path) -> None:
    machine = parts.machine
    tree = machine.root / "tree"
    machine.conversation("a", folder=tree / "-p")
    machine.transcript(
        "{bad\n",
        machine.line("user", "It printed ghp_" + "a1B2" * 9 + " and ended.", session="b"),
        session="b",
        folder=tree / "-q",
    )
    parts.background.context.submit(Task(id="m", kind="model", path=str(tiny_model)))
    first = parts.background.context.submit(Task(id="i", kind="import", path=str(tree)))
    again = parts.background.context.submit(Task(id="k", kind="import", path=str(tree)))
    settle(parts)
    assert first.result.pop("took_s") > 0 and first.result.pop("vectors") == known(parts)["vectors"] > 0
    assert first.result == {
        "files": 2, "turns_new": 7, "turns_known": 0, "bad_lines": 1, "redactions": 1, "memories_new": 3, "degraded": [],
    }  # fmt: skip
    again.result.pop("took_s")
    assert again.result == {
        "files": 2, "turns_new": 0, "turns_known": 0, "bad_lines": 0, "redactions": 0, "memories_new": 0, "vectors": 0,
        "degraded": [],
    }  # fmt: skip
    assert first.progress["step"] == "linking"
    assert parts.store.read(lambda rows: threads.count_waiting(rows, model=parts.background.context.model_name())) == 0


def test_the_same_turns_under_another_path_are_known(parts: Any) -> None:
    machine = parts.machine
    path = machine.conversation()
    settle(parts)
    copy = machine.root / "copy"
    copy.mkdir()
    (copy / path.name).write_bytes(path.read_bytes())
    job = parts.background.context.submit(Task(id="i", kind="import", path=str(copy), with_vectors=False))
    before = parts.call("csm_memory_list")
    settle(parts)
    assert (job.result["turns_new"], job.result["turns_known"], job.result["memories_new"]) == (0, 6, 0)
    assert parts.call("csm_memory_list") == before


def test_a_forgotten_memory_does_not_come_back_by_any_import(parts: Any) -> None:
    machine = parts.machine
    path = machine.conversation()
    settle(parts)
    listed = parts.call("csm_memory_list")["memories"]
    gone = next(row for row in listed if "database_url" in row["text"])
    assert parts.call("csm_memory_delete", id=gone["id"][:6], by_person=True)["forgotten"]
    copy = machine.root / "copy"
    copy.mkdir()
    (copy / path.name).write_bytes(path.read_bytes())
    machine.transcript(machine.line("user", CORRECTION, session="s9"), session="s9")
    machine.transcript(machine.line("user", CORRECTION, session="s8"), session="s8", folder=copy)
    parts.background.context.submit(Task(id="i", kind="import", path=str(copy), with_vectors=False))
    parts.background.context.submit(Task(id="k", kind="sync", with_vectors=False))
    settle(parts)
    assert {row["id"] for row in parts.call("csm_memory_list")["memories"]} == {row["id"] for row in listed} - {
        gone["id"]
    }


def test_sync_is_idempotent_and_settles_what_is_still_under_way(parts: Any) -> None:
    machine = parts.machine
    machine.transcript({**machine.line("user", DECISION), "timestamp": ago(1)})
    machine.transcript(
        {**machine.line("assistant", "We decided to use Redis for the cache because it has TTLs."), "timestamp": ago(0)}
    )
    settle(parts)
    for number in range(3):
        job = parts.background.context.submit(Task(id=f"k{number}", kind="sync", with_vectors=False))
        before = known(parts) if number else {}
        settle(parts)
        assert job.state == "done"
        assert not number or known(parts) == before


def test_a_job_does_not_end_as_done_when_the_daemon_stops(parts: Any) -> None:
    parts.machine.conversation()
    job = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False))
    parts.background.context.stop()
    settle(parts)
    assert (job.state, job.error) == ("failed", "the daemon is stopping")


def test_while_a_long_job_runs_what_happens_now_becomes_memory(
    parts: Any, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each of its three parts: reading, distilling, embedding."""
    machine = parts.machine
    parts.background.context.submit(Task(id="m", kind="model", path=str(tiny_model)))
    settle(parts)
    tree = machine.root / "tree"
    for number in range(40):
        said = f"I prefer tool {number} over tool {number + 50}."
        lines = [machine.line(kind, said, session=f"t{number}") for kind in ("user", "assistant")]
        # A second old: somebody may still be at work on it, so that only the job itself distils it.
        recent = [{**line, "timestamp": ago(1)} for line in lines]
        machine.transcript(*recent, session=f"t{number}", folder=tree)
    job = parts.background.context.submit(Task(id="j", kind="import", path=str(tree)))
    for module, limit in ((tasks, "SLICE_S"), (jobs, "MAX_TASK_S")):
        monkeypatch.setattr(module, limit, 0.0)  # a batch at a time, however slow the machine
    for number, (part, word) in enumerate((("reading", "heron"), ("distilling", "bittern"), ("embedding", "egret"))):
        while job.progress.get("step") != part:
            assert parts.background.tasks.step()
        spool(machine, "UserPromptSubmit", f"a{number}", 600, prompt=f"I prefer the {word} over the duck.")
        hinted = machine.transcript(
            machine.line("user", f"For birds, let's go with the {word} list because it is short.", session=word),
            session=word,
        )
        parts.background.hint(str(hinted))
        parts.background.step(START)
        assert job.state == "running"
        assert (known(parts)["events"], machine.spooled()) == (number + 1, [])
        texts = [row["text"] for row in parts.call("csm_memory_list")["memories"]]
        assert any(f"the {word} list" in text for text in texts), (part, texts)
    settle(parts)
    assert (job.state, job.result["files"], job.result["turns_new"], job.result["degraded"]) == ("done", 40, 80, [])


def test_a_job_that_is_stopped_half_way_is_not_done(parts: Any) -> None:
    machine = parts.machine
    for session in "abc":
        machine.conversation(session)
    job = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False))
    parts.background.step(START)
    assert job.state == "running"
    parts.background.context.stop()
    settle(parts)
    assert (job.state, job.error) == ("failed", "the daemon is stopping")


def test_an_event_that_meets_a_fault_of_ours_is_left_in_the_spool(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(*_: object, **__: object) -> Any:
        raise MemoryError

    machine = parts.machine
    with monkeypatch.context() as broken:
        broken.setattr(ingest, "decode_event", out_of_memory)
        spool(machine, "UserPromptSubmit", "a1", 600, prompt=PREFERENCE)
        settle(parts)
    assert [path.name for path in machine.spooled()] == ["a1.event"]
    assert parts.background.context.trouble == {"spooled event a1.event": "MemoryError"}
    assert not machine.paths.quarantine.exists() and parts.store.read(activity.read_counters) == {}
    parts.background.context.unremovable.clear()  # as in the next daemon
    settle(parts)
    assert (machine.spooled(), known(parts)["events"], parts.background.context.trouble) == ([], 1, {})


def test_a_spooled_event_of_a_host_nobody_understands_is_dropped_and_counted(parts: Any) -> None:
    path = parts.machine.paths.spool / "a1.event"
    path.write_bytes(b'csmd-spool 1 a1 heron Stop 1760000000000000000\n{"session_id":"s"}')
    settle(parts)
    assert (path.exists(), known(parts)["events"]) == (False, 0)
    assert parts.store.read(activity.read_counters) == {"unknown hosts": 1}


def test_only_the_latest_jobs_are_remembered_and_a_waiting_one_always(parts: Any) -> None:
    waiting = parts.background.context.submit(Task(id="waiting", kind="sync", with_vectors=False))
    for number in range(40):
        parts.background.context.submit(Task(id=f"j{number}", kind="sync", state="done"))
    assert len(parts.background.context.tasks) <= 23
    assert parts.background.context.tasks["waiting"] is waiting


def test_the_thread_ends_when_it_is_told_to(parts: Any) -> None:
    machine = parts.machine
    machine.conversation()
    parts.background.start()
    eventually(lambda: known(parts)["memories"] == 3)
    machine.transcript(machine.line("user", "I prefer tabs over spaces in Makefiles."))
    parts.background.hint(str(machine.assistant / "projects" / "-project" / "s1.jsonl"))
    eventually(lambda: known(parts)["turns"] == 7)
    parts.background.context.stop()
    parts.background.join(30)
    assert not parts.background.is_alive()
    assert parts.background not in threading.enumerate()


def test_a_sweep_that_was_asked_for_does_not_wait_for_its_time(parts: Any) -> None:
    """A directory of transcripts that appears later holds what no file event told of."""
    settle(parts)
    parts.machine.conversation()
    parts.background.sweep_soon()
    settle(parts, START + 1)
    assert known(parts)["turns"] == 6


@pytest.mark.invariant("A slow disk or a dead mount holds up neither the socket nor the writer")
def test_a_huge_transcript_is_read_in_pieces_and_what_happens_now_is_served_between_them(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_source, "READ_BYTES", 1000)
    monkeypatch.setattr(jobs, "MAX_TASK_S", 0.0)
    machine, background = parts.machine, parts.background
    huge = machine.transcript(*(machine.line("user", f"number {n}", session="huge") for n in range(60)), session="huge")
    background.context.submit(Task(id="j", kind="import", path=str(huge)))
    background.step(0.0)
    small = machine.conversation("small")
    background.hint(str(small))
    while not turns_of(parts, "small"):
        assert background.step(0.0)
    assert 0 < turns_of(parts, "huge") < 60
    while background.step(0.0):
        pass
    assert turns_of(parts, "huge") == 60
    machine.transcript(*(machine.line("user", f"later {n}", session="huge") for n in range(30)), session="huge")
    background.hint(str(huge))
    while turns_of(parts, "huge") == 60:
        assert background.step(0.0)
    assert turns_of(parts, "huge") < 90, "a hint is followed piece by piece too"
    while background.step(0.0):
        pass
    assert turns_of(parts, "huge") == 90


def turns_of(parts: Any, session: str) -> int:
    return int(
        parts.store.read(
            lambda rows: rows.value(
                "select count(*) from session_turn st join sessions s on s.seq = st.session_seq where s.id = :id",
                id=session,
            )
        )
    )


@pytest.mark.parametrize(
    ("name", "over"), [("Stop", True), ("StopFailure", True), ("PostCompact", True), ("SubagentStop", False)]
)
def test_after_an_error_or_a_compaction_nobody_waits_for_more_of_the_turn(parts: Any, name: str, over: bool) -> None:
    parts.machine.conversation()
    settle(parts)
    before = known(parts)
    body = json.dumps({"session_id": "s1", "agent_id": "a1", "cwd": str(parts.machine.project), "error": "unknown",
                       "last_assistant_message": "", "compact_summary": "<summary>Not from here.</summary>"})  # fmt: skip
    at = ago(0)
    event, redacted = ingest.decode_event("claude", body.encode(), name=name, event_id="e1", at=at)
    key = parts.store.hash_key
    assert parts.store.write(lambda rows: ingest.record_event(rows, event, redacted=redacted, key=key, now=at))
    settled = parts.store.read(lambda rows: rows.value("select settled_at from sessions where id = 's1'"))
    assert (settled == at) == over
    assert known(parts) == {**before, "events": before["events"] + 1}
