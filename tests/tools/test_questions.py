"""Questions in SQL as a session's model puts them: what it is told of the store, and from where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from in_process import say

from csmd.errors import BadInput, CsmdError
from csmd.mcp import served_tools
from csmd.store import purge, sql_views
from csmd.tools.registry import find_tool

NOW = "2026-03-01T10:00:00.000Z"
DECISION = "For the worker, let's go with Postgres for the job queue because we need LISTEN/NOTIFY."


@pytest.fixture
def work(parts: Any) -> Path:
    return Path(parts.machine.root) / "work"


def test_a_model_reads_the_schema_and_puts_its_question(parts: Any, work: Path) -> None:
    say(parts, work / "shop", DECISION)
    schema = parts.call("csm_store_schema")
    assert [view["name"] for view in schema["views"]] == [view.name for view in sql_views.VIEWS]
    [memories] = parts.call("csm_store_schema", view="memories")["views"]
    assert "Postgres for the job queue" in memories["sample"][0][list(memories["columns"]).index("text")]
    assert "memories.project = projects.path" in memories["joins"]
    asked = (
        "select m.text, p.name, t.kind, s.assistant from memories m join projects p on p.path = m.project "
        "join sources o on o.memory = m.id join turns t on t.id = o.turn join sessions s on s.id = t.session"
    )
    answer = parts.call("csm_store_query", sql=asked, asking=str(work))
    assert answer["columns"] == ["text", "name", "kind", "assistant"] and not answer["more"]
    assert [row[1:] for row in answer["rows"]] == [["shop", "user", "claude"]]
    assert "Postgres for the job queue" in answer["rows"][0][0]


def test_the_tools_say_their_limits_and_a_model_is_given_them_as_a_group(parts: Any) -> None:
    summary = find_tool("csm_store_query").summary
    for limit in (
        f"{sql_views.MAX_ROWS} rows",
        f"{sql_views.MAX_SECONDS:g} seconds",
        f"{sql_views.MAX_VALUE_CHARACTERS:,} characters",
    ):
        assert limit in summary
    assert not find_tool("csm_store_query").mutates
    assert served_tools.choose_tools("questions")[-2:] == ("csm_store_schema", "csm_store_query")
    with pytest.raises(BadInput, match="no view 'tables'"):
        parts.call("csm_store_schema", view="tables")
    with pytest.raises(BadInput, match="only a SELECT is answered"):
        parts.call("csm_store_query", sql="drop view memories")


@pytest.mark.invariant("A question in SQL reads ten views and nothing else, within its walls and limits")
def test_a_question_is_answered_as_far_as_its_directory_sees(parts: Any, work: Path) -> None:
    say(parts, work / "acme", DECISION, "I prefer short answers, always.", session="a")
    say(parts, work / "own", "hello there", session="b")
    everything = [f"select * from {view.name}" for view in sql_views.VIEWS]
    parts.call("csm_project_lens", name="acme", places=str(work / "acme"), wall=True, by_person=True)
    for asking in ("", str(work / "own"), str(work / "nowhere")):
        told = repr([parts.call("csm_store_query", sql=sql, asking=asking)["rows"] for sql in everything])
        assert "acme" not in told and "Postgres" not in told and "short answers" not in told and "'a'" not in told
        assert "acme" not in repr(parts.call("csm_store_schema", asking=asking)["views"])
        assert "hello there" in told
    inside = repr([parts.call("csm_store_query", sql=sql, asking=str(work / "acme"))["rows"] for sql in everything])
    assert "Postgres" in inside and "short answers" in inside and "hello there" in inside


def test_what_was_forgotten_or_purged_is_no_memory_in_any_view(parts: Any, work: Path) -> None:
    say(parts, work / "shop", DECISION)
    [memory] = parts.call("csm_memory_list", project=str(work / "shop"))["memories"]
    parts.call("csm_memory_delete", id=memory["id"], by_person=True)
    for view in ("memories", "sources", "topics", "links"):
        assert parts.call("csm_store_query", sql=f"select * from {view}")["rows"] == []
    parts.store.write(lambda rows: purge.record_begin(rows, now=NOW))
    with pytest.raises(CsmdError, match="a purge is under way"):
        parts.call("csm_store_query", sql="select text from turns")
    parts.store.write(purge.record_end)
    assert parts.call("csm_store_query", sql="select text from turns")["rows"]


def test_a_secret_that_an_older_csmd_stored_is_not_told(parts: Any, work: Path) -> None:
    say(parts, work / "shop", "hello there")
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    parts.store.write(
        lambda rows: rows.run("update turns set text = :text where kind = 'user'", text=f"push with {token}")
    )
    [[told]] = parts.call("csm_store_query", sql="select text from turns where kind = 'user'")["rows"]
    assert token not in told and told.startswith("push with [redacted:")
