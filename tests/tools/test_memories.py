"""Tools on memories: what is saved as what and how surely, filters of lists, conversations, links of any name, the feed of acts."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from csmd.errors import BadInput, CsmdError
from csmd.parameters import Parameter
from csmd.tools.registry import TOOLS
from csmd.vocabulary import CATEGORIES, MemdirType, MemoryType

SEED = (
    "csm_memory_save csm_memory_search csm_memory_list csm_memory_delete csm_memory_context csm_memory_lesson "
    "csm_memory_transcript csm_memory_distill csm_memory_distilled_view csm_memory_candidate_generate "
    "csm_memory_candidate_report csm_memory_backfill_embeddings csm_memory_dedup_detect csm_memory_merge "
    "csm_memory_archive_candidate_report csm_memory_packets csm_belief_scan csm_belief_scan_report csm_belief_promote "
    "csm_belief_knowledge csm_memory_governance_report csm_self_model csm_living_state_preview csm_living_state_debug "
    "csm_runtime_status csm_memory_compact csm_compaction_audit"
).split()


def save(parts: Any, text: str, *, by_person: bool = True, **more: Any) -> Any:
    return parts.call("csm_memory_save", text=text, project=str(parts.machine.project), by_person=by_person, **more)


def listed(parts: Any, **filters: Any) -> list[str]:
    return [row["text"] for row in parts.call("csm_memory_list", **filters)["memories"]]


@pytest.fixture
def filled(parts: Any) -> Any:
    """Two sessions, taken in and believed."""
    parts.machine.conversation()
    parts.machine.transcript(parts.machine.line("user", "I prefer tabs over spaces.", session="s2"), session="s2")
    while parts.background.step(1000.0):
        pass
    return parts


def test_every_tool_of_the_seed_is_there_by_its_name() -> None:
    assert [name for name in SEED if name not in TOOLS] == []


def test_parameters_are_taken_by_the_names_of_the_seed_too(filled: Any) -> None:
    place = str(filled.machine.project)
    made = filled.call(
        "csm_memory_save",
        content="The exporter writes one file a day.",
        importance=0.9,
        type="repo",
        project=place,
        by_person=True,
    )
    assert (made["text"], made["confidence"]) == ("The exporter writes one file a day.", 0.9)
    assert listed(filled, sessionId="s2", startDate="2000-01-01") == ["I prefer tabs over spaces."]
    assert filled.call("csm_memory_merge", dryRun=True)["dry_run"]
    with pytest.raises(BadInput, match="has no parameter 'sessionId'"):
        filled.call("csm_graph_stats", sessionId="s2")


def test_what_changes_something_at_a_stroke_is_tried_first() -> None:
    upkeep = ("candidate_generate", "merge", "archive", "backfill_embeddings")
    assert all(TOOLS[f"csm_memory_{name}"].parameters["dry_run"] == Parameter(bool, True) for name in upkeep)
    assert TOOLS["csm_belief_promote"].parameters["apply"] == Parameter(bool, False)
    assert TOOLS["csm_dream_undo"].parameters["dry_run"] == Parameter(bool, True)


@pytest.mark.parametrize("type_", get_args(MemoryType))
def test_each_of_the_twelve_types_is_saved_by_name_and_listed(parts: Any, type_: str) -> None:
    made = save(parts, "The exporter writes one file a day.", type=type_)
    assert made["type"] == type_
    rule = CATEGORIES[parts.call("csm_memory_show", id=made["id"])["category"]]
    assert rule.low <= made["confidence"] <= rule.high
    assert [row["id"] for row in parts.call("csm_memory_by_type", type=type_)["memories"]] == [made["id"]]
    assert listed(parts, type=type_) == ["The exporter writes one file a day."]
    assert parts.call("csm_memory_governance_report")["holds"]


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("I prefer functional components.", "user"),
        ("Always run the linter before a commit.", "feedback"),
        ("Our API uses JWT with RS256 signing.", "project"),
        ("The dashboards of the exporter are at https://grafana.example.com/d/7.", "reference"),
    ],
)
def test_each_of_the_hosts_four_types_follows_from_the_words_and_is_listed(parts: Any, text: str, type_: str) -> None:
    made = save(parts, text)
    assert made["host_type"] == type_
    assert save(parts, "The seventh exporter is slow: https://example.com/7.", type=type_)["host_type"] in (
        type_,
        "reference",
    )
    for other in get_args(MemdirType):
        ids = [row["id"] for row in parts.call("csm_memory_by_type", type=other)["memories"]]
        assert (made["id"] in ids) == (other == type_)
    with pytest.raises(BadInput, match="a reference needs an address"):
        save(parts, "The dashboards are somewhere.", type="reference")


@pytest.mark.invariant("A caller makes nothing surer than its authority allows")
def test_a_person_says_how_sure_something_is_and_an_assistant_only_how_unsure(parts: Any) -> None:
    def sure(text: str, **more: Any) -> float:
        return float(save(parts, text, type="repo", **more)["confidence"])

    assert sure("Our API uses JWT with RS256 signing.", confidence=1.0) == 1.0
    assert sure("The cache lives in Redis.", confidence="0.85") == 0.85
    usual = sure("Invoices are rendered by a worker in Go.", by_person=False)
    assert sure("Backups leave the building at night.", confidence=1.0, by_person=False) <= max(usual, 0.95)
    assert sure("The search index is rebuilt on Sundays.", confidence=0.1, by_person=False) == 0.8, (
        "a fact has 0.8 at least"
    )
    for wrong in (1.5, -0.1, "sure"):
        with pytest.raises(BadInput, match="confidence"):
            save(parts, "Nothing of this is kept.", confidence=wrong)
    with pytest.raises(BadInput, match="not a type of memory"):
        save(parts, "Nothing of this is kept.", type="belief")


def test_a_lesson_is_saved_as_one_and_waits_where_no_person_says_it(parts: Any) -> None:
    place = str(parts.machine.project)
    made = parts.call("csm_memory_lesson", text="The pool must be closed before the fork.", project=place)
    assert (made["type"], made["authority"], made["waits"]) == ("lesson", "assistant", True)
    assert parts.call("csm_memory_show", id=made["id"])["category"] == "gotcha"
    mine = parts.call("csm_memory_lesson", text="Fixtures are shared by all workers.", project=place, by_person=True)
    assert (mine["authority"], mine["waits"]) == ("user", False)


def test_a_list_is_narrowed_by_what_a_memory_is_and_by_session_and_time(filled: Any) -> None:
    everything = listed(filled)
    assert listed(filled, session="s2") == ["I prefer tabs over spaces."]
    assert set(listed(filled, session="s1")) == set(everything) - {"I prefer tabs over spaces."} != set()
    of_gate = listed(filled, gate="behavioral")
    assert "I prefer tabs over spaces." in of_gate and set(of_gate) < set(everything)
    assert listed(filled, category="preference", session="s2") == ["I prefer tabs over spaces."]
    assert set(listed(filled, since="2000-01-01")) == set(everything)
    assert listed(filled, until="2000-01-01") == []
    page = filled.call("csm_memory_list", limit=1, gate="behavioral")
    assert (len(page["memories"]), page["total"]) == (1, len(of_gate))
    for name in ("gate", "category", "type", "state"):
        with pytest.raises(BadInput, match=f"there is no {name} 'x'"):
            filled.call("csm_memory_list", **{name: "x"})


def test_packets_are_narrowed_by_session_kind_and_time(filled: Any) -> None:
    everything = filled.call("csm_memory_packets")["packets"]
    assert {packet["session_id"] for packet in everything} == {"s1", "s2"}
    kinds = {packet["kind"] for packet in everything}
    for kind in kinds:
        found = filled.call("csm_memory_packets", kind=kind)["packets"]
        assert found == [packet for packet in everything if packet["kind"] == kind]
    assert {packet["session_id"] for packet in filled.call("csm_memory_packets", session="s2")["packets"]} == {"s2"}
    assert filled.call("csm_memory_packets", until="2000-01-01")["packets"] == []
    with pytest.raises(BadInput, match="there is no kind 'x'"):
        filled.call("csm_memory_packets", kind="x")


def test_a_conversation_is_given_by_its_last_turns_and_by_who_speaks(filled: Any) -> None:
    def said(**params: Any) -> list[str]:
        found = filled.call("csm_memory_transcript", project=str(filled.machine.project), **params)
        return [turn["text"] for turn in found["conversation"]]

    whole = filled.call("csm_session_transcript", id="s1")["conversation"]
    assert said(session="s1") == [turn["text"] for turn in whole]
    assert said(session="s1", limit=2) == [turn["text"] for turn in whole[-2:]]
    assert said(session="s1", role="user") == [turn["text"] for turn in whole if turn["kind"] == "user"]
    assert said(session="s1", role="tool") == [
        turn["text"] for turn in whole if turn["kind"] in ("tool_call", "tool_result")
    ]
    assert said() == said(session=filled.call("csm_session_list", limit=1)["sessions"][0]["id"])
    with pytest.raises(BadInput, match="there is no role 'cat'"):
        said(role="cat")
    with pytest.raises(BadInput, match="no session here yet"):
        filled.call("csm_memory_transcript", project="/nowhere")


def test_a_link_has_any_name_of_a_few_words_but_those_that_csmd_draws(parts: Any) -> None:
    said = ("The exporter writes one file a day.", "Backups leave the building at night.")
    one, other = (save(parts, text)["id"] for text in said)

    def link(relationship: str, **more: Any) -> Any:
        ends = {"from": one, "to": other}
        return parts.call("csm_memory_link", **ends, relationship=relationship, by_person=True, **more)

    for name in ("extends", "is part of", "gehört_zu"):
        drawn = link(name)["relationship"]
        (related,) = parts.call("csm_memory_related", id=one)["related"]
        assert drawn in {row["relationship"] for row in related["links"]}
    for name, said in (
        ("supersedes", "csmd supersede"),
        ("merged_into", "pipeline merge"),
        ("curated_as", "csmd adds it"),
    ):
        with pytest.raises(BadInput) as refused:
            link(name)
        assert said in refused.value.hint
    for name in ("", "a very long name indeed", "x'; drop table", "ghp_" + "a1B2" * 9):
        with pytest.raises(BadInput):
            link(name)
    parts.call("csm_privacy_purge", what="extends", kind="text", by_person=True)
    while parts.background.step(1000.0):
        pass
    (related,) = parts.call("csm_memory_related", id=one)["related"]
    assert {row["relationship"] for row in related["links"]} == {"is_part_of", "gehört_zu"}
    with pytest.raises(CsmdError, match="was purged"):
        link("extends")


@pytest.mark.invariant("The tail tells each thing once, through restarts, and nothing from behind a wall")
def test_merges_edits_deletions_undos_and_searches_are_told_as_they_happen(parts: Any) -> None:
    place = str(parts.machine.project)
    one, other = save(parts, "The exporter writes one file a day."), save(parts, "Backups leave the building at night.")
    cursor = parts.call("csm_tail", last=0)["cursor"]
    parts.call("csm_memory_merge", id=other["id"], into=one["id"], dry_run=False, by_person=True)
    parts.call("csm_memory_merge", undo=other["id"], dry_run=False, by_person=True)
    edited = parts.call("csm_memory_edit", id=one["id"], text="The exporter writes one file an hour.", by_person=True)
    parts.call("csm_review_undo", by_person=True)
    parts.call("csm_memory_delete", id=other["id"], by_person=True)
    parts.call("csm_memory_search", query="exporter files")
    parts.background.context.lookups.write()
    told = parts.call("csm_tail", cursor=cursor)["items"]
    acts = [(item["what"], item["text"].partition(":")[0]) for item in told if item["kind"] == "act"]
    assert ("merge", other["id"]) in acts and ("undone", f"{other['id']}, merge") in acts
    assert ("edit", edited["made"]) in acts or any(what == "edit" for what, _ in acts)
    assert acts[-1] == ("forgotten", other["id"])
    assert any(what == "undone" for what, _ in acts[3:])
    assert [item["what"] for item in told if item["kind"] == "search"] == ["search"]
    narrowed = parts.call("csm_tail", cursor=cursor, kind="act,search")["items"]
    assert narrowed == [item for item in told if item["kind"] in ("act", "search")]
    parts.call("csm_project_lens", name="acme", places=place, wall=True, by_person=True)
    assert parts.call("csm_tail", cursor=cursor, kind="act,search")["items"] == []
    assert parts.call("csm_tail", cursor=cursor, kind="act", asking=place)["items"]


def test_the_tail_is_narrowed_by_session_kind_and_time(filled: Any) -> None:
    turns = filled.call("csm_tail", last=200, kind="turn")["items"]
    assert {item["kind"] for item in turns} == {"turn"} and {item["session"] for item in turns} == {"s1", "s2"}
    only = filled.call("csm_tail", last=200, session="s2")["items"]
    assert only and {item["session"] for item in only} == {"s2"}
    assert filled.call("csm_tail", last=200, kind="turn", since="2099-01-01")["items"] == []
    with pytest.raises(BadInput, match="there is no kind 'x'"):
        filled.call("csm_tail", kind="turn,x")
