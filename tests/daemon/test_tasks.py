"""Tasks that a client waits for: what they give, and what a purge leaves of a text in the daemon's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from csmd.recall import ranking


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
    notes = tmp_path / "memory"
    notes.mkdir()
    (notes / "tests.md").write_text("The test suite takes eleven minutes on the old laptop.\n")
    project = str(parts.machine.project)
    for new in (1, 0):
        assert result_of(parts, "csm_import", path=str(notes), project=project, vectors=False) == {
            **brought, "files": 1, "memories_known": 1 - new, "problems": ["tests.md: it has no head"], "memories_new": new,
        }  # fmt: skip


def test_a_purge_empties_what_functions_keep_of_texts(parts: Any) -> None:
    said = "the vault opens on Mondays"
    first = ranking.stems(said)
    assert ranking.stems(said) is first, "kept"
    job = parts.call("csm_privacy_purge", what="vault opens", kind="text", by_person=True)["job"]
    for _ in range(200):
        parts.background.step(1000.0)
        if parts.background.context.tasks[job].state in ("done", "failed"):
            break
    assert parts.background.context.tasks[job].state == "done", parts.background.context.tasks[job]
    assert ranking.stems(said) == first and ranking.stems(said) is not first
