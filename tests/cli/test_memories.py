"""Topics, tags and links at the command line and as tools: in 80 columns, and nothing of what is behind a wall."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from machine import Machine, ask, call_frames

from csmd.cli import render, search, show
from csmd.vocabulary import MemoryType

CART = "The order cache of the cart lives in Redis"
SPEED = "Checkout was slow because every request asked Redis twice"
SECRET = "Bolt pays by the hour for Redis and the order cache"


@pytest.fixture(scope="module")
def held(shared_machine: Machine) -> Machine:
    """A machine on which a person has stated two things here and one behind a wall."""
    shared_machine.start()
    walled = shared_machine.project.parent / "bolt"
    walled.mkdir()
    shared_machine.call("csm_project_lens", name="bolt", places=str(walled), wall=True, by_person=True)
    for said, place in ((CART, shared_machine.project), (SPEED, shared_machine.project), (SECRET, walled)):
        shared_machine.call("csm_memory_save", text=said, project=str(place), asking=str(place), by_person=True)
    return shared_machine


def ids(machine: Machine, place: Path) -> dict[str, str]:
    found = machine.call("csm_memory_list", project=str(place), asking=str(place))["memories"]
    return {row["text"]: row["id"] for row in found}


def asked(machine: Machine, tool: str, **params: Any) -> Any:
    """What a tool answers to somebody who stands in the project."""
    return machine.call(tool, asking=str(machine.project), **params)


def refused(machine: Machine, tool: str, **params: Any) -> str:
    status, body = ask(machine.socket, call_frames(tool, {"asking": str(machine.project), **params}))
    assert status != b"ok", body
    return str(json.loads(body))


def fits(shown: str) -> str:
    assert all(len(line) <= 80 for line in shown.splitlines()), shown
    return shown


def test_a_topic_is_tagged_listed_shown_and_taken_off(held: Machine) -> None:
    ident = ids(held, held.project)[CART]
    found = asked(held, "csm_memory_tag", id=ident, topic=" Order Cache. ", by_person=True)
    assert found["topic"] == "order cache"
    assert "order cache         1" in fits(held.csmd("topics"))
    (row,) = held.csmd("topics", "order cache", "--json")["memories"]
    assert (row["id"], row["tagged_by"], row["text"]) == (ident, "person", CART)
    assert ident in fits(held.csmd("memories", "--topic", "order cache"))
    assert "topics   order cache" in fits(held.csmd("show", ident))
    asked(held, "csm_memory_untag", id=ident, topic="order cache", by_person=True)
    assert "no memory here has the topic" in fits(held.csmd("topics", "order cache"))


def test_a_tag_on_what_holds_no_longer_says_so(held: Machine) -> None:
    place = held.root / "tagged"
    place.mkdir()
    old, new = (
        held.call("csm_memory_save", text=said, project=str(place), by_person=True)["id"]
        for said in ("The nightly build runs at two.", "Reports are printed on Fridays.")
    )
    assert "superseded by" not in held.csmd("tag", old, "builds")
    held.call("csm_memory_supersede", old=old, new=new, by_person=True)
    shown = " ".join(fits(held.csmd("tag", old, "nightly builds")).split())
    assert f"superseded by {new}, so `csmd topics` does not list it. Tag the new one: csmd tag {new} TOPIC" in shown
    assert "superseded by" not in held.csmd("tag", old, "nightly builds", "--undo")
    assert "superseded by" not in held.csmd("tag", new, "reports")


def test_what_no_person_types_is_an_assistants_tag_and_overrules_nobody(held: Machine) -> None:
    ident = ids(held, held.project)[SPEED]
    assert "topics: redis" in fits(held.csmd("tag", ident, "redis"))
    (row,) = asked(held, "csm_memory_by_topic", topic="redis")["memories"]
    assert row["tagged_by"] == "assistant"
    asked(held, "csm_memory_untag", id=ident, topic="redis", by_person=True)
    assert "ask a person" in refused(held, "csm_memory_tag", id=ident, topic="redis")


def test_a_link_is_drawn_with_a_known_word_and_is_seen_from_both_ends(held: Machine) -> None:
    known = ids(held, held.project)
    one, other = known[CART], known[SPEED]
    ends = {"from": one, "to": other}
    assert "is not a relationship" in refused(held, "csm_memory_link", **ends, relationship="x7")
    assert "csmd supersede" in refused(held, "csm_memory_link", **ends, relationship="superseded_by")
    assert "cannot be linked to itself" in refused(held, "csm_memory_link", **{"from": one, "to": one})
    assert "above 0" in refused(held, "csm_memory_link", **ends, weight="2")
    assert asked(held, "csm_memory_link", **ends, relationship="caused", weight="0.8", by_person=True)["weight"] == 0.8
    assert "only a person" in refused(held, "csm_memory_link", **ends, relationship="caused"), "it is there"
    for ident, beside, direction in ((one, other, "to"), (other, one, "from")):
        (near,) = asked(held, "csm_memory_related", id=ident)["related"]
        assert (near["id"], near["relation"]) == (beside, "caused")
        assert near["links"] == [{"relationship": "caused", "weight": 0.8, "direction": direction}]
    assert f"caused {other}" in fits(held.csmd("show", one))
    asked(held, "csm_memory_link", **ends, relationship="caused", undo=True, by_person=True)
    assert asked(held, "csm_memory_related", id=one)["related"] == []


def test_a_link_of_an_assistant_weighs_half_at_most(held: Machine) -> None:
    known = ids(held, held.project)
    assert "linked: " in fits(held.csmd("link", known[SPEED], known[CART], "--as", "depends on"))
    (near,) = asked(held, "csm_memory_related", id=known[CART])["related"]
    assert near["links"] == [{"relationship": "depends_on", "weight": 0.5, "direction": "from"}]


def test_the_graph_is_counted_and_memories_are_listed_by_type(held: Machine) -> None:
    here = str(held.project)
    found = asked(held, "csm_graph_stats", project=here)
    assert found["memories"] == 2
    assert found["relationships"] == sum(found["edges"].values()) >= found["edges"]["tagged"]
    every = [
        row["id"]
        for name in get_args(MemoryType)
        for row in asked(held, "csm_memory_by_type", type=name, project=here)["memories"]
    ]
    assert sorted(every) == sorted(ids(held, held.project).values())
    assert "is not a type" in refused(held, "csm_memory_by_type", type="opinion")


def test_nothing_behind_a_wall_is_in_any_answer(held: Machine) -> None:
    walled = held.project.parent / "bolt"
    ident = ids(held, walled)[SECRET]
    held.call("csm_memory_tag", id=ident, topic="wages", asking=str(walled), by_person=True)
    inside = held.call("csm_memory_by_topic", topic="wages", project="", asking=str(walled))
    assert [row["id"] for row in inside["memories"]] == [ident]
    assert asked(held, "csm_memory_by_topic", topic="wages", project="")["memories"] == []
    assert "wages" not in str(asked(held, "csm_memory_topics", project=""))
    outside = [row["text"] for row in asked(held, "csm_memory_list", project="")["memories"]]
    assert SECRET not in outside and asked(held, "csm_graph_stats", project="")["memories"] == len(outside)
    for tool, params in (
        ("csm_memory_tag", {"id": ident, "topic": "seen"}),
        ("csm_memory_related", {"id": ident}),
        ("csm_memory_link", {"from": ident, "to": ids(held, held.project)[CART]}),
    ):
        assert "there is no memory" in refused(held, tool, **params)


# --- A search as people see it: what matched is marked, what stands beside it is told apart, a score with its features.


HIT: dict[str, Any] = {
    "id": "79a0968a-1234-5678", "kind": "turn", "score": 1.47, "project": "/p", "session_id": "2cfdacb8-99", "gate": "",
    "text": "assistant: The gateway listens on 8443.\n[before] user: which port does the gateway use, and why is it that one of all "
    "the ports that there are?\n[after] user: thanks", "source_uuids": ["a", "b"], "at": "2026-02-11T10:00:00.000Z", "confidence": 0.0,
    "authority": "", "superseded_by": "m1234", "superseded_at": "2026-03-01T09:00:00.000Z", "factors": {"words": 0.6, "meaning": 0.47, "asks": 0.0},
}  # fmt: skip


def test_what_matched_is_marked_and_what_stands_beside_it_says_where(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    render.show(
        search.show_hits(
            {"query": "gateway port", "close": True, "hits": [HIT], "degraded": [], "took_ms": 3.0},
            explain=True,
            everywhere=True,
        )
    )
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith(" 1  turn  2026-02-11  79a0968a-12  session 2cfdacb8")
    assert " ".join(" ".join(lines[:2]).split()).endswith("superseded by m1234 on 2026-03-01")
    del lines[1]
    assert lines[1] == "  > assistant: The gateway listens on 8443."
    assert lines[2].startswith("    before, user: which port does the gateway use")
    assert "    after, user: thanks" in lines
    assert "    1.47 from words 0.60, meaning 0.47" in lines


def test_what_was_replaced_says_by_what_and_when_and_where_that_stands(capsys: pytest.CaptureFixture[str]) -> None:
    now = {
        **HIT,
        "id": "m1234",
        "kind": "memory",
        "superseded_by": "",
        "superseded_at": "",
        "refuted": False,
        "edited": False,
    }
    value = {"query": "x", "close": True, "hits": [now, HIT], "degraded": [], "took_ms": 3.0}
    render.show(search.show_hits(value, explain=False, everywhere=True))
    assert "superseded by m1234 on 2026-03-01 (hit 1)" in " ".join(capsys.readouterr().out.split())


def test_a_score_without_features_stands_alone() -> None:
    assert search.explain_score({}, 0.6) == search.explain_score({"asks": 0.0}, 0.6) == "0.60"


@pytest.mark.parametrize(
    ("everywhere", "said"),
    [
        (True, "nothing found for 'x'"),
        (False, "nothing found for 'x' in this project; --all-projects searches all projects"),
    ],
)
def test_nothing_found_is_said_with_where_else_to_look(
    capsys: pytest.CaptureFixture[str], everywhere: bool, said: str
) -> None:
    found = {"query": "x", "close": False, "hits": [], "degraded": ["vectors: none"], "took_ms": 3.0}
    render.show(search.show_hits(found, explain=False, everywhere=everywhere))
    assert capsys.readouterr().out.splitlines() == [said, "degraded: vectors: none", "3 ms"]


def test_a_search_that_found_nothing_close_says_so_before_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    render.show(
        search.show_hits(
            {"query": "x", "close": False, "hits": [HIT], "degraded": [], "took_ms": 3.0},
            explain=False,
            everywhere=True,
        )
    )
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "no close match; the nearest:" and second.startswith(" 1  turn")


@pytest.mark.parametrize(
    ("before", "begins"),
    [
        (" ".join(f"word{number}" for number in range(200)), r"word\d+"),
        ("網關在端口上監聽" * 80, r"[網關在端口上監聽]{20,}"),
    ],
    ids=["words", "no spaces"],
)
def test_what_stood_before_a_sentence_begins_at_a_word_and_says_that_more_did(
    capsys: pytest.CaptureFixture[str], before: str, begins: str
) -> None:
    turn = {
        "speaker": "user", "at": "2026-05-04T08:00:00.000Z", "session_id": "s1", "uuid": "u1", "role": "states",
        "against": False, "sentence": "Use tabs.", "text": f"{before} Use tabs.",
    }  # fmt: skip
    render.show(show.show_evidence([turn], limit=3))
    shown = capsys.readouterr().out
    first = re.search(r"… ?([^\s…]+)", shown)
    assert first is not None and re.match(begins, first[1]), shown
    assert "> Use tabs." in shown


def test_what_applies_everywhere_is_no_second_project_of_a_list(machine: Machine) -> None:
    machine.start()
    crops = "barley rye oats maize rice wheat millet sorghum quinoa teff".split()
    for crop in crops:
        machine.call(
            "csm_memory_save", text=f"I prefer {crop} porridge here.", project=str(machine.project), by_person=True
        )
    assert "8 of 10" in machine.csmd("memories")
    machine.call("csm_memory_save", text="I always answer in English.", project="", by_person=True)
    shown = machine.csmd("memories")
    assert "everywhere" in shown and "8 of 10" in shown


@pytest.mark.parametrize("day", ["today", "yesterday", "2d", "2026-05-04", "last week"])
def test_memories_since_a_day_take_every_form_that_a_search_takes(held: Machine, day: str) -> None:
    assert CART in held.csmd("memories", "--since", day)
    assert not held.run("search", "--since", day, "cart").returncode


def test_memories_since_a_later_day_are_none_and_no_day_is_refused(held: Machine) -> None:
    assert "No memory matches" in held.csmd("memories", "--since", "2200-01-01")
    refused_day = held.run("memories", "--since", "soon")
    assert refused_day.returncode == 1 and "since must be a time, not 'soon'" in refused_day.stderr
