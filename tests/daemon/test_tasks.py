"""Tasks that a client waits for: what they give, and what a purge leaves of a text in the daemon's memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from csmd import wire
from csmd.daemon import reading, secret_scan, task_steps, tasks
from csmd.daemon.context import Task, iso_before
from csmd.privacy import redaction
from csmd.recall import ranking
from csmd.store import activity, stored_pages, stored_secrets


def result_of(parts: Any, tool: str, **params: Any) -> dict[str, Any]:
    """The result of the task that a tool submits."""
    task = parts.background.context.tasks[parts.call(tool, **params)["job"]]
    for _ in range(300):
        parts.background.step(1000.0)
        if task.state in ("done", "failed"):
            break
    assert task.state == "done", task
    result = dict(task.result)
    assert result.pop("took_s") >= 0
    return result


def done(parts: Any, job: str) -> Any:
    """A task when it has ended."""
    for _ in range(400):
        parts.background.step(1000.0)
        if (task := parts.background.context.tasks[job]).state in ("done", "failed"):
            assert task.state == "done", task
            return task
    raise AssertionError("there is no end of work")


def test_exported_memories_and_notes_come_in_once_and_say_what_they_brought(parts: Any, tmp_path: Path) -> None:
    parts.machine.conversation()
    while parts.background.step(1000.0):
        pass
    target = tmp_path / "out"
    assert result_of(parts, "csm_memory_export", path=str(target)) == {
        "path": str(target / "memories.jsonl"), "memories": 3, "project": "", "elsewhere": 0, "forgotten": 0, "degraded": [],
    }  # fmt: skip
    brought = {
        "turns_new": 0,
        "turns_known": 0,
        "bad_lines": 0,
        "redactions": 0,
        "forgotten": 0,
        "vectors": 0,
        "degraded": [],
    }
    assert result_of(parts, "csm_import", path=str(target), vectors=False) == {
        **brought, "files": 1, "memories_known": 3, "lowered": 0, "vouched": 0, "placed": [], "memories_new": 0,
    }  # fmt: skip


def test_memories_of_another_program_come_in_once_they_are_confirmed(parts: Any, tmp_path: Path) -> None:
    notes = tmp_path / "memory"
    notes.mkdir()
    (notes / "tests.md").write_text("The test suite takes eleven minutes on the old laptop.\n")
    order = {"path": str(notes), "project": str(parts.machine.project), "vectors": False}
    shared = {"kinds": {"note": 1}, "projects": {"": 1}, "skipped": {}, "unplaced": [], "redactions": 0}
    shown = {
        **shared, "preview": True, "here": "", "source": "Claude Code's memory",
        "samples": [{"kind": "note", "text": "The test suite takes eleven minutes on the old laptop."}],
    }  # fmt: skip
    brought = {
        **shared, "files": 1, "turns_new": 0, "turns_known": 0, "bad_lines": 0, "forgotten": 0, "vectors": 0,
        "degraded": [], "source": "Claude Code's memory",
    }  # fmt: skip
    for new in (1, 0):
        assert result_of(parts, "csm_import", **order) == {**shown, "new": new, "known": 1 - new}
        assert result_of(parts, "csm_import", **order, confirmed=True, dry_run=True)["preview"]
        done = result_of(parts, "csm_import", **order, confirmed=True)
        assert done == {**brought, "memories_known": 1 - new, "memories_new": new}


def test_a_dry_run_counts_transcripts_and_exported_memories_and_stores_nothing(parts: Any, tmp_path: Path) -> None:
    source = parts.machine.conversation(folder=tmp_path / "elsewhere")
    assert result_of(parts, "csm_import", path=str(source), dry_run=True) == {
        "preview": True, "source": "transcripts", "files": 1, "problems": [],
    }  # fmt: skip
    assert not parts.store.read(activity.counts)["turns"]
    result_of(parts, "csm_import", path=str(source), vectors=False)
    made = parts.store.read(activity.counts)["memories"]
    result_of(parts, "csm_memory_export", path=str(tmp_path / "out"))
    exported = (tmp_path / "out" / "memories.jsonl").rename(tmp_path / "renamed")
    assert result_of(parts, "csm_import", path=str(exported), dry_run=True) == {
        "preview": True, "source": "csmd export", "memories": made,
    }  # fmt: skip


def test_a_purge_empties_what_functions_keep_of_texts(parts: Any) -> None:
    said = "the vault opens on Mondays"
    first = ranking.stems(said)
    assert ranking.stems(said) is first, "kept"
    done(parts, parts.call("csm_privacy_purge", what="vault opens", kind="text", by_person=True)["job"])
    assert ranking.stems(said) == first and ranking.stems(said) is not first


def test_what_newer_rules_found_goes_by_itself_after_seven_days_where_a_kind_is_rare(parts: Any) -> None:
    context, machine, store = parts.background.context, parts.machine, parts.store
    machine.transcript(
        machine.line("user", "Nightjar is what we call it"), *(machine.line("user", f"go on {n}") for n in range(1100))
    )
    context.guard(
        "reading",
        lambda: (
            reading.read_backlog(context) or reading.read_guarded(context, next(machine.assistant.rglob("*.jsonl")))
        ),
    )
    redaction.choose_words(["Nightjar"])
    try:
        context.rules = redaction.read_rule_state()  # as a daemon finds it that starts after the change

        def settle() -> stored_secrets.FoundSecrets | None:
            for _ in range(400):
                parts.background._due["secrets"] = 0.0
                if not parts.background.step(1000.0):
                    return store.read(stored_secrets.found_secrets)
            raise AssertionError("there is no end of work")

        found = settle()
        assert found is not None and found.rare == ["chosen-word"] and context.withholds
        (warning,) = secret_scan.list_secret_warnings(found)
        due = datetime.fromisoformat(found.since["chosen-word"]).date() + timedelta(days=7)
        assert f"are removed automatically from {due} on" in warning
        aged = wire.dumps({**asdict(found), "since": {"chosen-word": iso_before(8 * 86_400)}})
        store.write(lambda rows: rows.upsert("meta", "key", key=stored_secrets.FINDINGS_KEY, value=aged))
        assert settle() is None and not context.withholds
        first = store.read(lambda rows: rows.value("select text from turns order by seq"))
        assert first == "[redacted:chosen-word] is what we call it", "the value goes, the sentence stays"
    finally:
        redaction.choose_words([])


def test_a_kind_that_hits_many_turns_stays_where_it_is_until_it_is_asked_for(parts: Any) -> None:
    context, machine, store = parts.background.context, parts.machine, parts.store
    path = machine.transcript(*(machine.line("user", f"Nightjar {n}") for n in range(4)))
    context.guard("reading", lambda: reading.read_guarded(context, path))
    kinds = {"chosen-word": 4}
    store.write(
        lambda rows: stored_secrets.record_scan(
            rows, context.rules, kinds, kinds, key=store.hash_key, now=iso_before(30 * 86_400)
        )
    )
    assert not parts.background.tasks.order_secret_task() and context.withholds
    (warning,) = secret_scan.list_secret_warnings(store.read(stored_secrets.found_secrets))
    assert "4 chosen-word" in warning and "by themselves" not in warning


def test_each_kind_has_its_seven_days_however_long_another_has_been_known(parts: Any) -> None:
    store = parts.store
    long_ago, now = iso_before(30 * 86_400), iso_before(0)

    def look(kinds: dict[str, int], at: str) -> stored_secrets.FoundSecrets | None:
        store.write(lambda rows: stored_secrets.record_scan(rows, "rules", kinds, {}, key=store.hash_key, now=at))
        return store.read(stored_secrets.found_secrets)

    look({"first-kind": 1}, long_ago)
    found = look({"first-kind": 1, "second-kind": 1}, now)
    assert found is not None and found.since == {"first-kind": long_ago, "second-kind": now}


def test_what_was_found_before_each_kind_had_its_own_time_is_understood(parts: Any) -> None:
    at = iso_before(86_400)
    old = wire.dumps({"kinds": {"one": 2, "other": 1}, "rare": ["one"], "since": at})
    parts.store.write(lambda rows: rows.upsert("meta", "key", key=stored_secrets.FINDINGS_KEY, value=old))
    found = parts.store.read(stored_secrets.found_secrets)
    assert found is not None and found.since == {"one": at, "other": at}


def test_a_task_of_csmds_own_that_fails_is_not_begun_again_at_once(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context, machine, looks = parts.background.context, parts.machine, []
    context.guard(
        "reading", lambda: reading.read_guarded(context, machine.transcript(machine.line("user", "Nightjar")))
    )

    def fails(*_: Any, **__: Any) -> None:
        looks.append(1)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(secret_scan, "_scan_database", fails)
    redaction.choose_words(["Nightjar"])
    try:
        context.rules = redaction.read_rule_state()
        for number in range(20):
            parts.background._due["secrets"] = 0.0
            parts.background.step(1000.0 + number)
    finally:
        redaction.choose_words([])
    assert len(looks) == 1
    assert [task.state for task in context.tasks.values()] == ["failed"]
    assert list(context.trouble) == ["secrets"], "and status says so"


def test_a_page_and_its_row_say_the_same_whenever_somebody_may_read_them(parts: Any) -> None:
    store, path = parts.store, parts.machine.paths.memory / "projects" / "p.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# Nightjar\n")
    row = stored_pages.PageRow(path="projects/p.md", text="# Nightjar\n", at=iso_before(0))
    store.write(lambda rows: stored_pages.put_page(rows, row))
    redaction.choose_words(["Nightjar"])
    try:
        task = parts.background.context.submit(Task(kind="scan", is_own=True))
        while task.state not in ("done", "failed"):
            parts.background.tasks.step()
            assert store.read(stored_pages.read_pages)["projects/p.md"].text == path.read_text()
    finally:
        redaction.choose_words([])
    assert (task.state, path.read_text()) == ("done", "# [redacted:chosen-word]\n")


def test_what_somebody_orders_is_done_before_what_csmd_has_begun_itself(parts: Any) -> None:
    context, ended = parts.background.context, []

    def work(task: Task) -> Iterator[None]:
        for _ in range(1 + 2 * task.is_own):
            time.sleep(tasks.SLICE_S)
            yield None
        ended.append(task.is_own)
        return {}

    parts.background.tasks._kinds = dict.fromkeys(("scan", "backup"), work)
    context.submit(Task(kind="scan", is_own=True))
    parts.background.step(1000.0)
    assert not parts.background._is_urgent(), "what nobody waits for takes half of the time"
    context.submit(Task(kind="backup"))
    for number in range(8):
        parts.background.step(1001.0 + number)
    assert ended == [False, True]


def test_a_look_that_nobody_asked_for_changes_only_what_csmd_has_written(parts: Any) -> None:
    memory = parts.machine.paths.memory
    day = "# 2026-01-02\n<!-- csmd: session s1 -->\nNightjar\n<!-- csmd: end s1 -->\n"
    theirs = {"notes.md": b"Nightjar\n", "drawing.bin": b"\xff\xfe Nightjar \x80"}
    memory.mkdir(parents=True, exist_ok=True)
    for name, data in {**theirs, "2026-01-02.md": day.encode()}.items():
        (memory / name).write_bytes(data)
    redaction.choose_words(["Nightjar"])
    try:
        done(parts, parts.call("csm_privacy_scan")["job"])
        assert {name: (memory / name).read_bytes() for name in theirs} == theirs
        assert "Nightjar" not in (memory / "2026-01-02.md").read_text()
        done(parts, parts.call("csm_privacy_scan", fix=True, by_person=True)["job"])
    finally:
        redaction.choose_words([])
    assert (memory / "notes.md").read_text() == "[redacted:chosen-word]\n"
    assert (memory / "drawing.bin").read_bytes() == b"\xff\xfe [redacted:chosen-word] \x80", "no other byte changes"


@pytest.mark.parametrize(
    ("batches", "total", "wanted"),
    [
        ([10, 20, 0], 30, [(0, 30), (10, 30), (30, 30)]),
        ([0], 30, [(0, 30)]),
        ([40, 0], 30, [(0, 30), (30, 30)]),
        ([10, 20, 0], 0, [(10, None), (30, None)]),
        ([0], 0, []),
        ([1] * 9, 2, [(0, 2), (1, 2), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2)]),
    ],
)
def test_a_bar_begins_at_zero_and_where_nobody_knows_the_end_there_is_none(
    batches: list[int], total: int, wanted: list[tuple[int, int | None]]
) -> None:
    steps = task_steps.repeat_batches("indexing", iter(batches).__next__, total)
    assert [(step["done"], step.get("total")) for step in steps if step is not None] == wanted
