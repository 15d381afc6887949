"""`csm_today`: over all projects, but nothing of what is excluded, nor from behind a wall that nobody asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from csmd.errors import BadInput, CsmdError
from csmd.exclusions import Excludes

if TYPE_CHECKING:
    from in_process import Parts

DAY = "2026-05-04"


def work(parts: Parts, session: str, name: str) -> Path:
    """A session that changes a file in a project of this name; its directory."""
    folder = parts.machine.project.parent / name
    (folder / ".git").mkdir(parents=True)
    line, cwd = parts.machine.line, str(folder)
    call = line("assistant", "I change it.", session=session, cwd=cwd)
    change = {"file_path": f"{cwd}/price.py", "old_string": "a", "new_string": "b"}
    call["message"]["content"].append({"type": "tool_use", "id": f"t-{session}", "name": "Edit", "input": change})
    answer = line("user", "", session=session, cwd=cwd)
    answer["message"]["content"] = [{"type": "tool_result", "tool_use_id": f"t-{session}", "content": "done"}]
    asked = line("user", f"Keep the prices of {name} in cents.", session=session, cwd=cwd)
    parts.machine.transcript(
        asked, call, answer, line("assistant", "It is done.", session=session, cwd=cwd), session=session
    )
    return folder


def sync(parts: Parts) -> None:
    job = parts.call("csm_sync", vectors=False)["job"]
    now = 0.0
    while parts.call("csm_job", id=job)["state"] in ("waiting", "running"):
        parts.background.step(now)
        now += 1.0
    assert parts.call("csm_job", id=job)["state"] == "done"


def names(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["project"], one["wall"]) for one in told["projects"]]


@pytest.mark.invariant("A workspace is a wall, and only a person changes what is seen where")
def test_a_day_is_told_over_all_projects_and_from_behind_a_wall_only_where_a_person_asks(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, vault = work(parts, "s1", "shop"), work(parts, "s2", "vault")
    sync(parts)
    told = parts.call("csm_today", date=DAY)
    assert names(told) == [("shop", ""), ("vault", "")] and told["text"].startswith(
        f"# Monday, {DAY}\n\n## shop · 1 file\n"
    )
    assert told["projects"][0]["entries"] == [{"kind": "Uncommitted", "text": "`price.py`", "id": ""}]
    assert names(parts.call("csm_today", date=DAY, project=str(vault))) == [("vault", "")]
    parts.call("csm_project_lens", name="acme", places=str(vault), wall=True, by_person=True)
    assert names(parts.call("csm_today", date=DAY)) == [("shop", "")]
    assert names(parts.call("csm_today", date=DAY, walls=True, by_person=True)) == [("shop", ""), ("vault", "acme")]
    with pytest.raises(CsmdError, match="only a person"):
        parts.call("csm_today", date=DAY, walls=True)
    monkeypatch.setattr(parts, "tools", replace(parts.tools, excludes=Excludes(projects=(str(shop),))))
    assert names(parts.call("csm_today", date=DAY)) == []


def test_a_day_is_named_as_people_name_it(parts: Parts) -> None:
    today, yesterday = (parts.call("csm_today", date=typed)["date"] for typed in ("", "yesterday"))
    assert yesterday < today and parts.call("csm_today", date="today")["date"] == today
    assert parts.call("csm_today", date=DAY)["projects"] == []
    assert parts.call("csm_today", date="monday")["date"] < today
    assert parts.call("csm_today", date="1d")["date"] == yesterday
    assert parts.call("csm_today", date="5 May 2026")["date"] == "2026-05-05"
    for typed, reason in (
        ("last week", "is more than a day"),
        ("soon", "date must be a time"),
        ("x" * 9999, "date must be"),
    ):
        with pytest.raises(BadInput, match=reason):
            parts.call("csm_today", date=typed)
