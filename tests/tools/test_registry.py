"""The registry of tools: their parameters, the errors for wrong ones, and the answers (design section 8)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from machine import DECISION, Machine

from csmd.embedding import installed_models
from csmd.errors import BadInput, CsmdError
from csmd.parameters import REQUIRED, TYPE_NAMES
from csmd.tools.registry import TOOLS

GIVEN = {"url": "postgresql://ann@/team", "query": "pathlib", "id": "m1", "text": "We use tabs.", "project": "/p", "prompt": "pathlib?", "path": "/p",
         "uuid": "u1", "what": "a text to purge", "place": "/p", "source": "a", "into": "b", "whole": "a",
         "name": "acme", "places": "/p", "file": "a.md", "verb": "keep", "old": "m1",
         "topic": "tabs", "type": "concept", "from": "m1", "to": "m2", "model": "small", "sql": "select 1"}  # fmt: skip


def texts(parts: Any) -> list[str]:
    return [row["text"] for row in parts.call("csm_memory_list")["memories"]]


@pytest.fixture
def filled(parts: Any) -> Any:
    parts.machine.conversation()
    while parts.background.step(1000.0):
        pass
    return parts


def test_every_tool_names_the_parameter_that_is_wrong(parts: Any) -> None:
    for name in TOOLS:
        assert_names_what_is_wrong(parts, name)


def assert_names_what_is_wrong(parts: Any, name: str) -> None:
    tool = TOOLS[name]
    needed = {key: GIVEN[key] for key, of in tool.parameters.items() if of.default is REQUIRED}
    with pytest.raises(BadInput, match="has no parameter 'nonsense'") as caught:
        parts.call(name, **needed, nonsense=1)
    assert all(key in caught.value.hint for key in tool.parameters)
    for key, (kind, default, *_) in tool.parameters.items():
        with pytest.raises(BadInput, match=f"{key} must be {TYPE_NAMES[kind]}"):
            parts.call(name, **{**needed, key: [] if kind is not int else True})
        if default is REQUIRED:
            with pytest.raises(BadInput, match=f"needs the parameter '{key}'"):
                parts.call(name, **{other: value for other, value in needed.items() if other != key})
        if key in ("project", "path", "asking"):
            with pytest.raises(BadInput, match="must be an absolute path"):
                parts.call(name, **{**needed, key: "relative"})


def test_the_list_of_tools_is_the_registry(parts: Any) -> None:
    listed = parts.call("csm_tools")["tools"]
    assert [row["name"] for row in listed] == list(TOOLS)
    assert all(
        set(row) == {"name", "summary", "mutates", "parameters"} and row["name"].startswith("csm_") for row in listed
    )
    assert {row["name"] for row in listed if row["mutates"]} == {
        "csm_memory_save", "csm_memory_lesson", "csm_memory_delete", "csm_belief_scan", "csm_belief_promote", "csm_project_alias", "csm_project_merge", "csm_project_split",
        "csm_memory_edit", "csm_memory_pin", "csm_review_answer", "csm_review_import", "csm_review_undo", "csm_memory_supersede", "csm_memory_distill",
        "csm_project_lens", "csm_import", "csm_memory_export", "csm_sync", "csm_model_add",
        "csm_session_write_user", "csm_session_write_assistant", "csm_session_write_system", "csm_session_write_summary",
        "csm_session_tombstone",
        "csm_privacy_purge", "csm_privacy_lift", "csm_privacy_scan",
        "csm_backup_make", "csm_probe_take", "csm_checkpoint_create",
        "csm_checkpoint_restore", "csm_goal_set", "csm_open_done",
        "csm_memory_candidate_generate", "csm_memory_merge", "csm_memory_archive", "csm_memory_backfill_embeddings",
        "csm_memory_tag", "csm_memory_untag", "csm_memory_link", "csm_dream_run", "csm_dream_undo",
        "csm_provider_add", "csm_provider_test", "csm_provider_remove", "csm_provider_embed",
        "csm_team_join", "csm_team_leave", "csm_team_share", "csm_team_unshare", "csm_team_search",
    }  # fmt: skip
    with pytest.raises(BadInput, match="unknown tool 'csm_nothing'"):
        parts.call("csm_nothing")


#: What a dry run needs besides its defaults; `{here}` and `{there}` stand for two projects.
DRY_RUNS: dict[str, dict[str, Any]] = {
    "csm_memory_candidate_generate": {}, "csm_memory_merge": {}, "csm_memory_archive": {}, "csm_memory_backfill_embeddings": {},
    "csm_dream_run": {"dry_run": True}, "csm_dream_undo": {"id": "d1"},
    "csm_project_merge": {"source": "{here}", "into": "{there}", "dry_run": True},
    "csm_project_alias": {"place": "/w/x", "other": "{here}", "dry_run": True}, "csm_team_share": {"project": "{here}", "dry_run": True},
    "csm_project_split": {"whole": "{here}", "place": "{here}/part", "dry_run": True},
    "csm_import": {"path": "{here}", "dry_run": True}, "csm_privacy_purge": {"what": "pathlib", "kind": "text", "dry_run": True},
    "csm_belief_promote": {}, "csm_belief_promote relaxed": {"profile": "relaxed"},
}  # fmt: skip


def content(parts: Any) -> dict[str, Any]:
    """Every row of every table."""
    tables = "select name from sqlite_master where type = 'table' and name not like '%_fts%' and name not like 'vec_%'"

    def read(rows: Any) -> dict[str, Any]:
        return {name: sorted(map(str, rows.all(f"select * from {name}"))) for name in rows.column(tables)}

    found: dict[str, Any] = parts.store.read(read)
    return found


@pytest.mark.invariant("A dry run changes no row")
@pytest.mark.parametrize("call", DRY_RUNS)
def test_a_dry_run_changes_no_row(filled: Any, call: str) -> None:
    here, there = filled.machine.project, filled.machine.root / "there"
    for place in (here / "part", there):
        place.mkdir(exist_ok=True)
    said = [filled.machine.line("user", "We go on.", session="s2", cwd=str(place)) for place in (here, here / "part")]
    filled.machine.transcript(*said, session="s2")
    filled.call("csm_sync", vectors=False)
    filled.call("csm_memory_save", text="Imports stand at the head of a file.", project=str(there), by_person=True)
    while filled.background.step(1000.0):
        pass
    name, before = call.partition(" ")[0], content(filled)
    given = {
        key: value.format(here=here, there=there) if isinstance(value, str) else value
        for key, value in DRY_RUNS[call].items()
    }
    by_person = {"by_person": True} if "by_person" in TOOLS[name].parameters else {}
    refusal = {"csm_dream_undo": "no dream", "csm_team_share": "joined no team"}.get(name)
    with pytest.raises(CsmdError, match=refusal) if refusal else contextlib.nullcontext():
        filled.call(name, **given, **by_person)
    while filled.background.step(1000.0):
        pass
    after = content(filled)
    assert {table for table in before if before[table] != after[table]} <= {"counters"}


def test_every_tool_with_a_dry_run_is_tried(parts: Any) -> None:
    dry = {name for name, tool in TOOLS.items() if {"dry_run", "apply"} & set(tool.parameters)}
    assert dry == {call.partition(" ")[0] for call in DRY_RUNS}


def test_numbers_and_truth_values_may_be_given_as_text(filled: Any) -> None:
    found = filled.call("csm_memory_search", query="pathlib", limit="1", explain="true")["hits"]
    assert len(found) == 1 and found[0]["factors"]
    assert len(filled.call("csm_memory_search", query="the", limit=-5)["hits"]) <= 1
    with pytest.raises(BadInput, match="limit must be a whole number"):
        filled.call("csm_memory_search", query="x", limit="many")
    with pytest.raises(BadInput, match="kind is memory, turn, session or all"):
        filled.call("csm_memory_search", query="x", kind="other")


def test_no_words_are_an_error(filled: Any) -> None:
    for query in ("pathlib AND (", "a" * 10_000, "NEAR/3 *", "x\0\ud800", "the"):
        assert isinstance(filled.call("csm_memory_search", query=query)["hits"], list)
        assert isinstance(filled.call("csm_memory_recall", prompt=query, project="/p")["text"], str)


@pytest.mark.invariant(
    "A search for what nobody spoke of says so before the nearest, and a query without a word is refused"
)
def test_search_refuses_a_query_without_a_word_and_recall_adds_nothing_to_such_a_prompt(filled: Any) -> None:
    for query in ("", " ", '"', "\0\ud800", '"?"'):
        with pytest.raises(BadInput, match="the query has no words"):
            filled.call("csm_memory_search", query=query)
        assert isinstance(filled.call("csm_memory_recall", prompt=query, project="/p")["text"], str)


def test_search_refuses_an_invalid_filter_by_its_name(filled: Any) -> None:
    for given, message in (
        ({"since": "soon"}, "since must be a time, not 'soon'"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, "ends before it begins"),
        ({"gate": "moral"}, "there is no gate 'moral'"),
        ({"category": "moral"}, "there is no category 'moral'"),
        ({"type": "moral"}, "there is no type 'moral'"),
        ({"gate": "correction", "kind": "turn"}, "a turn has no gate"),
        ({"session": "nowhere"}, "there is no session 'nowhere'"),
    ):
        with pytest.raises(BadInput, match=message):
            filled.call("csm_memory_search", query="pathlib", **given)


def test_a_filter_that_only_memories_have_leaves_turns_out(filled: Any) -> None:
    found = filled.call("csm_memory_search", query="pathlib", gate="behavioral")["hits"]
    assert {hit["kind"] for hit in found} == {"memory"}
    assert filled.call("csm_memory_search", query="pathlib", until="1999-01")["hits"] == []


def test_what_a_person_says_counts_as_theirs_and_what_a_model_saves_waits(parts: Any) -> None:
    project = str(parts.machine.project)
    mine = parts.call("csm_memory_save", text="We use tabs in Makefiles.", project=project, by_person=True)
    saved = parts.call("csm_memory_save", text="The staging database is rebuilt on Fridays.", project=project)
    assert (mine["authority"], saved["authority"], mine["new"], saved["new"]) == ("user", "assistant", True, True)
    origins = {row: parts.call("csm_memory_show", id=row)["origin"] for row in (mine["id"], saved["id"])}
    assert origins == {mine["id"]: "stated", saved["id"]: "model_saved"}
    brief = parts.call("csm_memory_context", project=project)
    assert [item["id"] for item in brief["items"]] == [mine["id"]]
    recalled = parts.call("csm_memory_recall", project=project, prompt="When is the staging database rebuilt?")
    assert recalled["text"] == "", "recall is an injection too"
    hits = parts.call("csm_memory_search", query="staging database", project=project)["hits"]
    assert saved["id"] in [hit["id"] for hit in hits], "who searches finds it"


def test_a_person_who_states_what_a_model_saved_makes_it_theirs(parts: Any) -> None:
    project = str(parts.machine.project)
    text = "The staging database is rebuilt on Fridays."
    saved = parts.call("csm_memory_save", text=text, project=project)
    stated = parts.call("csm_memory_save", text=text, project=project, by_person=True)
    assert (stated["id"], stated["new"]) == (saved["id"], False)
    assert [item["id"] for item in parts.call("csm_memory_context", project=project)["items"]] == [saved["id"]]


def test_only_a_person_lifts_what_was_forgotten_and_only_a_person_pins(parts: Any) -> None:
    text = "We use tabs in Makefiles."
    first = parts.call("csm_memory_save", text=text, by_person=True)
    parts.call("csm_memory_delete", id=first["id"], by_person=True)
    with pytest.raises(CsmdError, match="the user forgot"):
        parts.call("csm_memory_save", text=text)
    assert texts(parts) == []
    again = parts.call("csm_memory_save", text=text, by_person=True, pin=True)
    assert parts.call("csm_memory_show", id=again["id"])["pinned"] is True
    other = parts.call("csm_memory_save", text="The linter is ruff.", pin=True)
    assert parts.call("csm_memory_show", id=other["id"])["pinned"] is False


def test_what_is_typed_with_a_secret_in_it_is_refused_and_nothing_of_it_kept(parts: Any) -> None:
    secret = "ghp_" + "a1B2" * 9
    for typed in (f"The token of the build server is {secret} today.", secret, "<private>all of it</private>"):
        for by_person in (True, False):
            with pytest.raises(BadInput, match="contains a secret") as refused:
                parts.call("csm_memory_save", text=typed, by_person=by_person)
            assert secret not in str(refused.value) and "where the secret is" in refused.value.hint
    with pytest.raises(BadInput, match="github-token"):
        parts.call("csm_goal_set", text=f"deploy with {secret}", project=str(parts.machine.project), by_person=True)
    assert texts(parts) == []
    with pytest.raises(BadInput, match="no words to remember"):
        parts.call("csm_memory_save", text="...", by_person=True)


def test_words_are_no_id_and_lead_to_the_memory_that_says_them(parts: Any) -> None:
    said, here, walled = "Standup is at 9:30.", str(parts.machine.project), str(parts.machine.root / "acme")
    parts.call("csm_project_lens", name="acme", places=walled, wall=True, by_person=True)

    def told(typed: str) -> str:
        with pytest.raises(BadInput, match="no memory") as caught:
            parts.call("csm_memory_delete", id=typed, by_person=True, asking=here)
        return caught.value.hint

    parts.call("csm_memory_save", text=said, project=walled, asking=walled, by_person=True)
    assert "csmd search" in told(said), "one behind a wall is none"
    first = parts.call("csm_memory_save", text=said, project=here, by_person=True)["id"]
    for typed in (said, "standup  is at 9:30"):
        assert told(typed) == f"give the id {first}, or use --purge for a text"
    second = parts.call("csm_memory_save", text=said, project=str(parts.machine.root / "b"), by_person=True)["id"]
    assert told(said) == f"give the id {first} or {second}, or use --purge for a text"
    assert "csmd search" in told("Standup is at noon") and said in texts(parts)


def test_a_memory_is_found_by_the_beginning_of_its_id(filled: Any) -> None:
    listed = filled.call("csm_memory_list")["memories"]
    for row in listed:
        shown = filled.call("csm_memory_show", id=row["id"])
        assert {key: shown[key] for key in row} == row
        assert shown["sources"][0]["speaker"] == "user" and shown["sources"][0]["text"]
        assert shown["project"] in (str(filled.machine.project), "")
    with pytest.raises(BadInput, match="begins several ids"):
        filled.call("csm_memory_show", id="m")
    for ident in ("", "nope"):
        with pytest.raises(BadInput, match="no memory"):
            filled.call("csm_memory_delete", id=ident)


def test_one_project_does_not_see_what_was_decided_in_another(filled: Any) -> None:
    machine: Machine = filled.machine
    (decision,) = (row for row in texts(filled) if "LISTEN/NOTIFY" in row)
    assert decision in DECISION
    for place, seen in ((str(machine.project), True), ("/elsewhere", False)):
        listed = filled.call("csm_memory_list", project=place)["memories"]
        brief = filled.call("csm_memory_context", project=place)["text"]
        hits = filled.call("csm_memory_search", query="LISTEN/NOTIFY", project=place)["hits"]
        assert (decision in [row["text"] for row in listed], decision in brief, bool(hits)) == (seen,) * 3, place


def test_a_folder_that_is_no_model_is_told_at_once(parts: Any) -> None:
    with pytest.raises(CsmdError, match=r"no model\.onnx"):
        parts.call("csm_model_add", path=str(parts.machine.root))
    assert (
        installed_models.installed_model(parts.machine.paths.models, parts.machine.config().settings.embed_model)
        is None
    )
    with pytest.raises(BadInput, match="no such file"):
        parts.call("csm_import", path="/nonexistent")


def test_receipts_and_the_stores_soundness_can_be_asked_for(filled: Any) -> None:
    assert filled.call("csm_receipts")["receipts"] == []
    assert filled.call("csm_store_check") == {"problems": []}
