"""Lenses as a person sets them and as whoever asks is answered through them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from in_process import say

from csmd.errors import BadInput, CsmdError


@pytest.fixture
def work(parts: Any) -> Path:
    return Path(parts.machine.root) / "work"


def put(parts: Any, name: str, *places: Path | str, **more: Any) -> Any:
    return parts.call("csm_project_lens", name=name, places="\n".join(map(str, places)), by_person=True, **more)


@pytest.mark.invariant("A workspace is a wall, and only a person changes what is seen where")
@pytest.mark.parametrize("more", [{}, {"wall": True}, {"remove": True}, {"topics": "billing"}])
def test_a_lens_is_set_by_a_person_only(parts: Any, more: dict[str, Any]) -> None:
    with pytest.raises(CsmdError, match="only a person at a terminal can change"):
        parts.call("csm_project_lens", name="work", places="/w", **more)


def test_a_lens_ranks_its_projects_first_in_searches_and_is_named_in_briefs(parts: Any, work: Path) -> None:
    for session, place in (("a", work / "api"), ("b", work.parent / "oss" / "tool")):
        say(parts, place, f"Always drain the job queue by a worker of {place.name}.", session=session)
    asked = {"query": "drain the job queue", "asking": str(work / "new")}
    before = parts.call("csm_memory_search", **asked)["hits"]
    made = put(parts, "work", work, topics="Billing\ninvoices")
    assert made == {
        "name": "work",
        "walled": [],
        "ranked": [str(work)],
        "topics": ["billing", "invoices"],
        "projects": 2,
        "moved": 0,
    }
    after = parts.call("csm_memory_search", **asked, explain=True)["hits"]
    assert after[0]["project"] == str(work / "api") and after[0]["factors"]["lens"] > 1
    assert {hit["id"] for hit in after} == {hit["id"] for hit in before}, "it hides nothing"
    text = parts.call("csm_memory_context", project=str(work / "api"))["text"]
    assert 'Lens: work, topics billing, invoices.">' in text
    assert "Lens" not in parts.call("csm_memory_context", project=str(work.parent / "oss" / "tool"))["text"]
    listed = parts.call("csm_project_list", asking=str(work / "api"))
    assert listed["lens"] == "work" and [row["name"] for row in listed["lenses"]] == ["work"]
    assert parts.call("csm_project_list", asking="/elsewhere")["lens"] == ""
    assert parts.call("csm_project_list")["workspaces"] == [], "it is no wall"


@pytest.mark.invariant("A workspace is a wall, and only a person changes what is seen where")
def test_a_lens_with_a_wall_hides_what_is_inside_from_everywhere_else(parts: Any, work: Path) -> None:
    say(parts, work / "acme", "The staging cluster of acme lives behind the VPN.", session="a")
    say(parts, work / "own", "hello there", session="b")
    asked = {"query": "the staging cluster", "asking": str(work / "own")}
    assert parts.call("csm_memory_search", **asked)["hits"]
    put(parts, "acme", work / "acme")
    assert parts.call("csm_memory_search", **asked)["hits"], "a lens without a wall hides nothing"
    assert put(parts, "acme", work / "acme", wall=True)["walled"] == [str(work / "acme")]
    assert parts.call("csm_memory_search", **asked)["hits"] == []
    with pytest.raises(BadInput, match="in the workspace acme"):
        parts.call("csm_memory_context", project=str(work / "acme"), asking=str(work / "own"))
    assert parts.call("csm_project_list")["workspaces"] == [{"name": "acme", "projects": 1, "memories": 0}]
    for more in ({}, {"topics": "vpn"}):
        put(parts, "acme", work / "acme", **more)
    assert parts.call("csm_memory_search", **asked)["hits"] == [], "only --wall --remove lowers it"
    with pytest.raises(BadInput, match="has a wall, which is not removed as a whole"):
        put(parts, "acme", remove=True)
    with pytest.raises(BadInput, match="behind the wall of acme"):
        put(parts, "other", work / "acme")
    put(parts, "acme", work / "acme", wall=True, remove=True)
    assert parts.call("csm_memory_search", **asked)["hits"]


def test_a_lens_ends_when_it_is_removed(parts: Any, work: Path) -> None:
    put(parts, "work", work, work.parent / "notes", topics="billing")
    assert put(parts, "work", work, remove=True)["ranked"] == [str(work.parent / "notes")]
    assert put(parts, "work", remove=True, topics="Billing")["topics"] == []
    put(parts, "work", remove=True)
    listed = parts.call("csm_project_list", asking=str(work))
    assert (listed["lens"], listed["lenses"]) == ("", [])


@pytest.mark.parametrize(
    ("name", "places", "more", "said"),
    [
        ("work", "", {}, "no project or topic was given"),
        ("work", "", {"wall": True, "remove": True}, "no project or topic was given"),
        ("a\nb", "/w/x", {}, "not a name for a lens"),
        ("work", "", {"topics": "..."}, "contains no topic"),
        ("work", "", {"topics": "\n".join(f"topic {n}" for n in range(21))}, "at most 20 topics"),
        ("work", "/w/x", {"remove": True}, "there is no lens 'work'"),
        ("work", "nothing", {}, "is not a project"),
    ],
)  # fmt: skip
def test_what_cannot_be_put_under_a_lens_is_told(
    parts: Any, name: str, places: str, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        put(parts, name, places, **more)
    assert parts.call("csm_project_list")["lenses"] == []


def test_what_was_never_under_a_lens_cannot_be_taken_out(parts: Any, work: Path) -> None:
    put(parts, "work", work)
    put(parts, "oss", work.parent / "oss")
    with pytest.raises(BadInput, match="is not under the lens oss"):
        put(parts, "oss", work, remove=True)
    with pytest.raises(BadInput, match="not a topic of the lens work"):
        put(parts, "work", remove=True, topics="billing")


def test_a_purged_word_leaves_the_topics_of_a_lens_and_comes_back_into_none(parts: Any, work: Path) -> None:
    say(parts, work, "The falconry project is a secret.", session="a")
    put(parts, "work", work, topics="falconry\nbilling")
    ident = parts.call("csm_privacy_purge", what="falconry", kind="text", by_person=True)["job"]
    for _ in range(500):
        parts.background.step(1000.0)
        if parts.background.context.tasks[ident].state in ("done", "failed"):
            break
    assert parts.call("csm_project_list")["lenses"][0]["topics"] == ["billing"]
    with pytest.raises(CsmdError, match="a part of that topic was purged"):
        put(parts, "work", topics="falconry")
