"""Dreams as the daemon has them: when one begins by itself, who comes first, and how each of them ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from in_process import settle
from machine import call_frames, eventually, peer

from csmd.daemon import dreaming, jobs, tasks
from csmd.daemon.context import Task, now_iso, to_iso
from csmd.daemon.dream_lock import DreamLock
from csmd.daemon.dreaming import GATE_CHECK_S
from csmd.daemon.jobs import PASS_EVERY_S
from csmd.errors import CsmdError, StoreError
from csmd.store import dreams, journal
from csmd.vocabulary import QUIET_S

HOUR = 3600.0
NOTES = "Release notes are kept in docs/notes.md by whoever tags"


@pytest.fixture(autouse=True)
def a_machine_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csmd.machine.load_per_core", lambda: 0.1)
    monkeypatch.setattr("csmd.machine.on_mains", lambda: None)


def at(hours: float) -> float:
    """A monotonic time so many hours from now."""
    return time.monotonic() + hours * HOUR


def dreamt(parts: Any) -> list[tuple[str, str]]:
    """(why, state) of every dream, the latest first."""
    return [(one.why, one.state) for one in parts.store.read(lambda rows: dreams.list_dreams(rows, limit=50))]


def with_sessions(parts: Any, count: int = 5) -> Any:
    for number in range(count):
        parts.machine.conversation(f"s{number}")
    settle(parts, at(0))
    assert dreamt(parts) == [], "a daemon that has just begun has heard of no quiet"
    return parts.background.dreaming


def failing(what: Exception) -> Any:
    def step(*_: Any) -> Iterator[None]:
        yield
        raise what

    return step


# --- when


def test_one_begins_by_itself_when_it_is_due_and_then_not_before_the_gates_open_again(parts: Any) -> None:
    with_sessions(parts)
    settle(parts, at(1))
    assert dreamt(parts) == [("by itself", "done")]
    (dream,) = parts.store.read(lambda rows: dreams.list_dreams(rows, limit=5))
    assert dream.sessions == 5 and not parts.machine.paths.dream_lock.exists()
    assert parts.call("csm_dream_status")["verdict"].startswith("next dream after 5 more sessions, 24 h")
    settle(parts, at(2))
    assert len(dreamt(parts)) == 1


def test_where_nothing_was_stored_the_rows_are_not_asked_and_never_more_than_once_a_minute(parts: Any) -> None:
    own = with_sessions(parts, 2)
    asked: list[int] = []
    read = parts.store.read
    parts.store.read = lambda *given, **more: asked.append(1) or read(*given, **more)
    for number in range(40):
        assert not own.step(at(1) + number * GATE_CHECK_S / 4, idle=True)
    assert len(asked) <= 1
    parts.store.write(lambda rows: None)
    for number in range(40):
        own.step(at(2) + number, idle=True)
    assert len(asked) <= 2
    parts.store.read = read


def test_a_busy_background_begins_none(parts: Any) -> None:
    own = with_sessions(parts)
    assert not own.step(at(1), idle=False)
    assert own.step(at(1), idle=True)


@pytest.mark.invariant("After a day with something new a dream runs, or a reason that a person can act on says why not")
def test_after_a_day_a_dream_begins_though_sessions_few_in_number_are_always_at_work(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csmd.machine.load_per_core", lambda: 9.0)
    own = with_sessions(parts, 1)

    def pass_hours(hours: float) -> None:
        """Lets the background look once, so many hours from now, while a session reports something."""
        own.now = lambda: to_iso(datetime.now(UTC) + timedelta(hours=hours))
        now = parts.background.context.heard_at = at(hours)
        for _ in range(200):
            own.step(now, idle=False)

    pass_hours(1)
    pass_hours(23)
    assert dreamt(parts) == [], "the day begins when the session is noticed"
    other = DreamLock(parts.machine.paths.dream_lock)
    other.acquire(datetime.now(UTC))
    pass_hours(26)
    state = parts.call("csm_dream_status")
    assert state["overdue"] == "26 h" and "is already dreaming; if that process hangs, end it" in state["verdict"]
    assert dreamt(parts) == []
    other.release()
    pass_hours(27)
    assert dreamt(parts) == [("by itself", "done")]
    assert parts.call("csm_dream_status")["overdue"] == ""


# --- who comes first


@pytest.mark.invariant("Every other job and every hint comes before a dream")
def test_one_that_began_by_itself_stands_still_while_a_session_is_at_work_and_one_that_is_awaited_goes_on(
    parts: Any,
) -> None:
    own = with_sessions(parts)
    assert own.step(at(1), idle=True)
    parts.background.context.heard_at = time.monotonic()
    now = time.monotonic()
    assert not own.step(now + QUIET_S["dream"] - 1, idle=True)
    assert own.step(now + QUIET_S["dream"] + 1, idle=True)
    parts.background.context.heard_at = time.monotonic()
    job = own.order("asked for", awaited=True)
    assert job.order["why"] == "by itself", "there is one at a time: whoever asks waits for it"
    assert own.step(time.monotonic(), idle=False) and not own.is_urgent, "it goes on, and makes room"
    settle(parts, at(0))
    assert job.state == "done"


@pytest.mark.invariant("Every other job and every hint comes before a dream")
def test_every_other_job_and_every_hint_comes_before_a_dream(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "SLICE_S", 0.0)  # one batch in a pass, so that the sync takes several
    monkeypatch.setattr(jobs, "MAX_TASK_S", 0.0)
    own = with_sessions(parts)
    ordered = own.order("asked for", awaited=True)
    sync = parts.background.context.submit(Task(id="j", kind="sync", with_vectors=False))
    passes = 0
    while sync.state != "done":
        assert ordered.state == "waiting"
        parts.background.step(at(0))  # the one that ends the sync may begin the dream
        passes += 1
    assert passes > 1
    while ordered.state == "waiting":
        parts.background.step(at(0))
    assert ordered.state == "running"
    path = parts.machine.transcript(
        parts.machine.line("user", "I prefer tabs over spaces.", session="new"), session="new"
    )
    parts.background.hint(str(path))
    settle(parts, at(0))
    assert ordered.state == "done"
    assert "tabs over spaces" in str(parts.call("csm_memory_list"))


def test_between_its_steps_a_dream_rests_as_long_as_it_worked_and_not_for_a_burst_of_events(parts: Any) -> None:
    own, context = with_sessions(parts), parts.background.context
    with_a_double(parts)
    settle(parts, at(0))
    context.heard_at, waited, stepped = time.monotonic(), [], []
    wait, step = context.client_waits.wait, own.step
    context.client_waits.wait = lambda timeout: (job.state == "running" and waited.append(timeout)) or wait(timeout)
    own.step = lambda *given, **more: context.poke() or stepped.append(job.state) or step(*given, **more)
    job = own.order("asked for", awaited=True)
    parts.background.start()
    eventually(lambda: job.state == "done")
    context.stop()
    parts.background.join(30)
    assert stepped.count("running") > 10
    assert sum(rest > 0 for rest in waited) > 5, "no poke cuts a rest short"
    assert sorted(waited)[len(waited) // 2] < PASS_EVERY_S / 4


@pytest.mark.invariant(
    "No step of a dream, its preview or its undo is long; its own writes wake the stages once, and no client keeps an awaited one from going on"
)
def test_beside_hints_that_never_end_one_that_is_awaited_goes_on_and_one_that_is_not_waits(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = with_sessions(parts)
    path = str(parts.machine.transcript(parts.machine.line("user", "Go on.", session="new"), session="new"))
    own.order("by itself", awaited=False)
    monkeypatch.setattr(dreaming, "MAX_PAUSE_S", 0.0)
    for _ in range(20):
        parts.background.hint(path)
        assert parts.background.context.client_is_waiting() and not own.is_overdue
        parts.background.step(at(0))
    assert dreamt(parts) == []
    job = own.order("asked for", awaited=True)
    read, steps = parts.background.context.take_hints, 0
    monkeypatch.setattr(parts.background.context, "take_hints", lambda: [*read(), *(parts.background.hint(path) or ())])
    while job.state != "done" and steps < 500:
        assert parts.background.step(at(0)) and parts.background.context.client_is_waiting(), (
            "the next hint is there already"
        )
        steps += 1
    assert job.state == "done"


@pytest.mark.invariant(
    "No step of a dream, its preview or its undo is long; its own writes wake the stages once, and no client keeps an awaited one from going on"
)
def test_what_a_dream_stores_wakes_the_stages_once_when_it_has_ended(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = with_sessions(parts)
    with_a_double(parts)
    settle(parts, at(0))
    job, batches = own.order("asked for", awaited=True), 0
    distilled: list[bool] = []  # at each time that all stages were gone through: whether the dream was over
    distil = parts.background.stages.distill
    monkeypatch.setattr(parts.background.stages, "distill", lambda: distilled.append(job.state == "done") or distil())
    monkeypatch.setattr("csmd.daemon.stages.DREAM_REST_S", 3600.0)
    while job.state != "done":
        parts.background.step(at(0))
        batches += 1
    assert batches > 10 and not any(distilled), "they were last gone through before it began"
    settled = len(distilled)
    assert settled <= 1
    settle(parts, at(0))
    assert distilled[settled:] and all(distilled[settled:])
    own.order("asked for", awaited=True)
    parts.background.step(at(0)), parts.background.step(at(0))
    parts.background.context.heard_at = time.monotonic()
    looked = len(distilled)
    parts.store.write(lambda rows: None)
    parts.background.step(at(0))
    assert own.is_under_way and len(distilled) > looked, "a session at work waits for no dream"


@pytest.mark.invariant(
    "No step of a dream, its preview or its undo is long; its own writes wake the stages once, and no client keeps an awaited one from going on"
)
def test_a_preview_lets_other_questions_pass_and_no_step_of_a_dream_reads_or_writes_much(parts: Any) -> None:
    project = with_a_double(parts)
    for number in range(30):
        parts.call("csm_memory_save", text=f"Runner {number} lives in rack {number}", project=project, by_person=True)
    server = parts.serve()
    with peer(server.path) as plan, peer(server.path) as other:
        plan.send_multipart(call_frames("csm_dream_plan", {}))
        eventually(lambda: server._waiting)
        other.send_multipart(call_frames("csm_memory_list", {}))
        assert other.poll(60_000) and not plan.poll(0), "the list is short, the plan has a step for each memory"
        assert plan.poll(60_000) and plan.recv_multipart()[0] == b"ok"
    asked: list[str] = []
    read, write = parts.store.read, parts.store.write
    parts.store.read = lambda *given, **more: asked.append("read") or read(*given, **more)
    parts.store.write = lambda *given, **more: asked.append("write") or write(*given, **more)
    own = parts.background.dreaming
    job, steps = own.order("asked for", awaited=True), []
    while job.state != "done":
        own.step(at(0), idle=True)
        steps.append((asked.count("read"), asked.count("write")))
        asked.clear()
    assert job.result["done"]["merge"] == 1 and len(steps) > 3 * 30
    assert max(reads for reads, _ in steps) <= 5 and max(writes for _, writes in steps) <= 3, steps


# --- how it ends


@pytest.mark.invariant("A dream that failed, was cancelled, killed or only planned advances nothing")
@pytest.mark.parametrize(
    ("raised", "kept"),
    [(StoreError("the disk is full", hint="free some"), "the disk is full"), (RuntimeError("secret"), "RuntimeError")],
)
def test_a_failure_ends_it_is_shown_and_advances_nothing(
    parts: Any, monkeypatch: pytest.MonkeyPatch, raised: Exception, kept: str
) -> None:
    with_sessions(parts)
    monkeypatch.setitem(dreaming.STEPS, "failing", failing(raised))
    settle(parts, at(1))
    assert dreamt(parts) == [("by itself", "failed")]
    shown = parts.call("csm_dream_status")
    assert (shown["latest"]["state"], shown["latest"]["error"], shown["last"]) == ("failed", kept, None)
    assert shown["verdict"] == "next dream after 15 min of quiet; the last dream failed; retry in 60 min"
    assert not parts.machine.paths.dream_lock.exists()
    monkeypatch.delitem(dreaming.STEPS, "failing")
    settle(parts, at(2))
    assert len(dreamt(parts)) == 1, "by the wall clock no hour has passed"
    parts.store.write(
        lambda rows: rows.run("update dreams set ended_at = :at", at=to_iso(datetime.now(UTC) - timedelta(hours=2)))
    )
    settle(parts, at(3))
    assert dreamt(parts) == [("by itself", "done"), ("by itself", "failed")]


@pytest.mark.invariant("A dream that failed, was cancelled, killed or only planned advances nothing")
def test_a_daemon_that_stops_cancels_it_and_a_killed_one_left_it_failed(parts: Any) -> None:
    own = with_sessions(parts)
    while not parts.machine.paths.dream_lock.exists():
        assert own.step(at(1), idle=True)
    assert dreamt(parts) == [("by itself", "running")]
    assert own.close() and not own.close()
    assert dreamt(parts) == [("by itself", "cancelled")] and not parts.machine.paths.dream_lock.exists()
    assert parts.call("csm_dream_status")["last"] is None
    parts.store.write(lambda rows: dreams.begin(rows, why="by itself", sessions=1, now=now_iso()))
    dreaming.resume_dreams(parts.background.context)
    assert dreamt(parts)[0] == ("by itself", "failed")
    assert parts.call("csm_dream_status")["latest"]["error"] == dreams.KILLED_ERROR


def test_an_undo_that_was_killed_is_finished_at_the_next_start(parts: Any) -> None:
    page = parts.machine.paths.memory / "topics/gull.md"
    page.parent.mkdir(parents=True)
    page.write_text("of a dream\n")

    def killed(rows: Any) -> None:
        seq = dreams.begin(rows, why="by itself", sessions=1, now=now_iso()).seq
        journal.record_file(
            rows, seq, reason="x", path="memory/topics/gull.md", before=None, after="of a dream\n", now=now_iso()
        )
        dreams.set_states(rows, [seq], "undoing", now=now_iso())
        (file,) = journal.list_file_history(rows, [seq], "memory/topics/gull.md")
        journal.mark_file(rows, file, kept="", now=now_iso())

    parts.store.write(killed)
    dreaming.resume_dreams(parts.background.context)
    assert not page.exists() and dreamt(parts) == [("by itself", "undone")]


def test_while_another_host_dreams_none_begins_and_one_whose_lock_is_taken_ends(parts: Any) -> None:
    own = with_sessions(parts)
    other = DreamLock(parts.machine.paths.dream_lock, host="other", boot="b")
    assert other.acquire(datetime.now(UTC)) is None
    settle(parts, at(1))
    assert dreamt(parts) == [] and "other (process" in parts.call("csm_dream_status")["verdict"]
    with pytest.raises(CsmdError, match="is already dreaming"):
        parts.call("csm_dream_run", force=True)
    job = own.order("asked for", awaited=True)
    settle(parts, at(1))
    assert job.state == "failed" and "is already dreaming" in job.error and dreamt(parts) == []
    other.release()
    path = parts.machine.paths.dream_lock
    while not path.exists():
        assert own.step(at(1) + GATE_CHECK_S, idle=True)
    path.unlink()
    assert other.acquire(datetime.now(UTC)) is None
    settle(parts, at(2))
    assert dreamt(parts) == [("by itself", "failed")] and other.is_mine(), "what is another's stays"
    other.release()


@pytest.mark.invariant(
    "Who lost the dream lock writes no further page, and between two pages nothing forgotten is written"
)
def test_whoever_lost_the_lock_writes_no_further_page(parts: Any) -> None:
    own = with_sessions(parts)
    own.order("asked for", awaited=True)
    pages = parts.machine.paths.memory
    while not list(pages.rglob("*.md")):
        assert own.step(at(1), idle=True)
    assert dreamt(parts) == [("asked for", "running")] and len(list(pages.rglob("*.md"))) == 1
    parts.machine.paths.dream_lock.unlink()
    settle(parts, at(1))
    assert dreamt(parts) == [("asked for", "failed")]
    assert len(list(pages.rglob("*.md"))) == 2, "the one at hand"


def test_what_is_wrong_with_the_lock_is_told_where_it_keeps_dreams_from_beginning(parts: Any) -> None:
    with_sessions(parts)
    parts.machine.paths.memory.write_text("a file")
    settle(parts, at(1))
    assert dreamt(parts) == [("by itself", "failed")]
    assert "not a directory of yours" in parts.call("csm_dream_status")["latest"]["error"]


# --- what is asked


def test_a_dream_that_is_not_due_is_refused_with_its_reasons_and_a_preview_advances_nothing(parts: Any) -> None:
    with_sessions(parts, 2)
    with pytest.raises(
        CsmdError, match="no dream now; next dream after 3 more sessions and 15 min of quiet"
    ) as refused:
        parts.call("csm_dream_run")
    assert "--force" in refused.value.hint
    before = parts.call("csm_dream_status")
    plan = parts.call("csm_dream_run", dry_run=True)
    assert plan["dry_run"] and not plan["due"] and isinstance(plan["actions"], list)
    assert parts.call("csm_dream_status") == before and dreamt(parts) == []


def with_a_double(parts: Any) -> str:
    """The project in which two memories say the same: as one hears them, the second would have confirmed the first."""
    with_sessions(parts, 1)
    project = str(parts.machine.project)
    for said in (NOTES, "The worker pool has four threads on every host"):
        saved = parts.call("csm_memory_save", text=said, project=project, by_person=True)
    text = f"the {NOTES.lower()}"
    parts.store.write(
        lambda rows: rows.run("update memories set text = :text where id = :id", text=text, id=saved["id"])
    )
    return project


@pytest.mark.invariant("The files that a plan lists are the files that the dream writes")
def test_what_a_dream_did_is_told_and_taken_back(parts: Any) -> None:
    with_a_double(parts)
    listed = parts.call("csm_memory_list")
    plan = parts.call("csm_dream_plan")
    assert plan["did"] == {"merge": 1} and plan["actions"][0]["phase"] == "consolidate", plan
    would = {f"memory/{one['path']}" for one in plan["files"]}
    job = parts.call("csm_dream_run", force=True)["job"]
    settle(parts, at(0))
    result = parts.call("csm_job", id=job)["result"]
    assert (
        result["state"] == "done" and result["done"]["merge"] == 1 and result["changes"] == sum(result["done"].values())
    )
    (entry,) = parts.call("csm_dream_history")["dreams"]
    assert entry["id"] == result["id"] and entry["did"] == result["done"] and entry["why"] == "asked for"
    diff = parts.call("csm_dream_diff", id="last")
    assert {one["item"] for one in diff["did"][0]["touched"]} >= {plan["actions"][0]["id"], plan["actions"][0]["other"]}
    wrote = {file["path"]: file["diff"] for one in diff["did"] for file in one["files"]}
    assert wrote.keys() == would and len(would) >= 2, "what is listed is what is written"
    assert parts.call("csm_dream_plan")["files"] == []
    page = next(path for path in wrote if "projects/" in path)
    file = parts.machine.paths.home / page
    as_it_was = file.read_text()
    file.write_text("edited")
    assert [(one["path"], one["do"]) for one in parts.call("csm_dream_plan")["files"]] == [
        (page.removeprefix("memory/"), "read")
    ]
    file.write_text(as_it_was)
    assert [one["id"] for one in parts.call("csm_dream_undo", id=result["id"][:5])["dreams"]] == [result["id"]]
    undo = parts.call("csm_dream_undo", id="last", dry_run=False)["job"]
    settle(parts, at(0))
    assert parts.call("csm_job", id=undo)["result"]["kept"] == []
    assert parts.call("csm_memory_list") == listed
    assert "the last dream was undone; retry in 24 h" in parts.call("csm_dream_status")["verdict"]
    with pytest.raises(CsmdError, match="there is no dream 'dnone'"):
        parts.call("csm_dream_diff", id="dnone")


@pytest.mark.invariant(
    "A page that was edited since an undone dream follows what the undo brings back, and keeps the edit"
)
def test_a_page_that_was_edited_since_follows_what_an_undo_brings_back_and_keeps_the_edit(parts: Any) -> None:
    with_a_double(parts)
    parts.call("csm_dream_run", force=True)
    settle(parts, at(0))
    page = next((parts.machine.paths.memory / "projects").glob("*.md"))
    mine = "The lighthouse of the harbour is painted by its keeper every spring"
    page.write_text(f"{page.read_text()}\n## Facts\n\n- {mine}\n")
    undo = parts.call("csm_dream_undo", id="last", dry_run=False)["job"]
    settle(parts, at(0))
    kept = parts.call("csm_job", id=undo)["result"]["kept"]
    assert [one["item"] for one in kept] == [f"memory/projects/{page.name}"]
    (line,) = [row for row in page.read_text().splitlines() if mine in row]
    assert line.endswith(" -->"), "it was read at once"
    named = {file["path"] for file in parts.call("csm_dream_plan")["files"]}
    assert f"projects/{page.name}" not in named, "and nothing is left to write"


def test_what_a_dream_does_behind_a_wall_is_told_there_only(parts: Any) -> None:
    project = with_a_double(parts)
    parts.call("csm_project_lens", name="acme", places=project, wall=True, by_person=True)
    inside, outside = (parts.call("csm_dream_plan", asking=place) for place in (project, "/elsewhere"))
    assert (len(inside["actions"]), inside["hidden"]) == (1, 0)
    assert (outside["actions"], outside["hidden"]) == ([], 1)
    assert project not in {row["project"] for row in outside["projects"]}
    parts.call("csm_dream_run", force=True)
    settle(parts, at(0))
    found = {
        (place, person): parts.call("csm_dream_diff", id="last", asking=place, by_person=person)
        for place in (project, "/elsewhere")
        for person in (False, True)
    }
    kinds = {key: {one["kind"] for one in value["did"]} for key, value in found.items()}
    assert "merge" in kinds[project, False] and "merge" not in kinds["/elsewhere", True]
    assert NOTES not in str(found["/elsewhere", False]["did"]) and found["/elsewhere", False]["hidden"] > 0
    assert all("page" not in kinds[place, False] for place in (project, "/elsewhere"))
    assert found[project, True]["hidden"] == 0, "a person sees the files, which tell of all projects"
    # A page that goes because its project has another name now bears the name that it had.
    parts.store.write(lambda rows: rows.run("update projects set name = 'renamed' where root = :root", root=project))
    inside, outside = (
        {(one["path"].partition("-")[0], one["do"]) for one in parts.call("csm_dream_plan", asking=place)["files"]}
        for place in (project, "/elsewhere")
    )
    assert ("projects/renamed", "begin") in inside
    assert not [path for path, _ in outside if path.startswith(("projects/", "topics/"))]
