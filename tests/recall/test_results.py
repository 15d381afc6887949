"""What search finds in a small real store, and in which order: exchanges, times, kinds, limits, links."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from csmd import text
from csmd.believe import stage as believe
from csmd.model import MULTIPLIES, Category, Hit, Link, Project, Provenance, Statement, Turn
from csmd.recall import results, stage
from csmd.store import gotchas, journal, memories, projects
from csmd.store.core import Store
from csmd.store.narrow import Narrow
from csmd.store.sqlite import Rows

NOW = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)
HERE, THERE = "/p/alpha", "/p/beta"


class Shelf:
    """A store in which things are said, and asked for."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.said = 0

    def home(self, rows: Rows, root: str) -> int:
        place = stage.stage_place.identify(root)
        return projects.ensure(rows, Project(key=place.key, root=root, name=place.name, kind="path"), now="")

    def say(
        self, body: str, *, session: str = "s1", on: str = "2026-03-01", kind: Any = "user", root: str = HERE
    ) -> str:
        self.said += 1
        turn = Turn(uuid=f"u{self.said}", session_id=session, kind=kind, text=body, cwd=root,
                    at=f"{on}T10:{self.said:02d}:00.000Z")  # fmt: skip
        self.store.write(
            lambda rows: journal.add_turn(
                rows, turn, text_hash=text.keyed_hash(body, self.store.hash_key), host="claude",
                project=self.home(rows, root), path="",
            )
        )  # fmt: skip
        return turn.uuid

    def state(
        self, body: str, *, category: Category = "fact", root: str = HERE, session: str = "s1", on: str = "2026-03-01"
    ) -> str:
        uuid = self.say(body, root=root, session=session, on=on)
        said = Statement(text=body, gate="epistemic", category=category, confidence=0.9, authority="user")
        source = Provenance(uuid=uuid, session_id=session, at=f"{on}T10:00:00.000Z")
        return self.store.write(
            lambda rows: believe.remember(
                rows, said, source, project=self.home(rows, root), origin="stated", key=self.store.hash_key
            )[0]
        )

    def link(self, one: str, other: str, relationship: str) -> None:
        link = Link(from_id=one, to_id=other, relationship=relationship)
        self.store.write(lambda rows: memories.add_link(rows, link, now=""))

    def find(
        self, query: str, *, kind: str = "all", root: str | None = HERE, limit: int = 10, **narrow: str
    ) -> list[Hit]:
        return self.store.read(
            lambda rows: results.find(
                rows, query, projects=stage.scopes(rows, root) if root else None, kind=kind, limit=limit, embed=None,
                now=NOW, within=Narrow(**narrow),
            )
        )[0]  # fmt: skip


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    opened = Store(tmp_path / "csmd.db", now="2026-03-01T10:00:00.000Z")
    yield Shelf(opened)
    opened.close()


def test_an_answer_is_found_with_its_question_and_shown_once(shelf: Shelf) -> None:
    shelf.say("shall we go?", session="s0")
    asked = shelf.say("which port does the kangaroo gateway use?")
    shelf.say("ls", kind="tool_call")
    answer = shelf.say("The kangaroo gateway listens on 8443.", kind="assistant")
    (hit,) = shelf.find("kangaroo gateway port", kind="turn")
    assert hit.source_uuids == (asked, answer)
    assert hit.text.splitlines() == [
        "user: which port does the kangaroo gateway use?", "[after] assistant: The kangaroo gateway listens on 8443."
    ]  # fmt: skip


def test_no_two_hits_show_one_exchange_and_none_shows_more_than_a_hit_may(shelf: Shelf) -> None:
    for number in range(12):
        shelf.say(
            f"the kangaroo gateway, take {number}: " + "much is said of it. " * 60,
            kind=("user", "assistant")[number % 2],
        )
    hits = shelf.find("kangaroo gateway", kind="turn")
    shown = [uuid for hit in hits for uuid in hit.source_uuids]
    assert len(shown) == len(set(shown)) == 12
    assert all(len(hit.text) <= 1200 and 1 <= len(hit.source_uuids) <= 4 for hit in hits)
    assert all("take" in hit.text.split("[")[0] for hit in hits)


def test_factors_add_up_to_the_score(shelf: Shelf) -> None:
    shelf.state("the kangaroo gateway listens on 8443")
    shelf.say("the gateway of yesterday", on="2026-03-17", session="s2")
    hits = [*shelf.find("kangaroo gateway yesterday", kind="turn"), *shelf.find("kangaroo gateway", kind="memory")]
    assert {hit.kind for hit in hits} == {"memory", "turn"}
    for hit in hits:
        whole = sum(value for name, value in hit.factors.items() if name not in MULTIPLIES)
        for name in MULTIPLIES & set(hit.factors):
            whole *= hit.factors[name]
        assert hit.score == pytest.approx(whole, abs=2e-3)


def test_a_named_time_prefers_and_does_not_leave_out(shelf: Shelf) -> None:
    then = shelf.say("the gateway was moved", session="s1", on="2026-01-05")
    later = shelf.say("the gateway was moved to Oslo", session="s2", on="2026-03-10")
    shelf.say("somebody said gateway in passing, between a great many other words", session="s3", on="2025-05-05")
    assert shelf.find("gateway moved in january", kind="turn")[0].source_uuids[0] == then
    assert shelf.find("gateway moved last week", kind="turn")[0].source_uuids[0] == later
    assert len(shelf.find("gateway moved in january", kind="turn")) == 3


def test_what_was_done_at_a_time_is_found_without_a_word_of_it(shelf: Shelf) -> None:
    shelf.say("paint the shed", session="s1", on="2026-02-10")
    done = shelf.say("mow the lawn", session="s2", on="2026-03-17")
    assert [hit.source_uuids[0] for hit in shelf.find("what did we do yesterday?", kind="turn")] == [done]


def test_a_question_that_asks_why_prefers_decisions_and_one_that_asks_how_procedures(shelf: Shelf) -> None:
    decision = shelf.state("the queue is Postgres since LISTEN is enough", category="decision", session="s1")
    procedure = shelf.state("the queue is drained with make drain first", category="procedure", session="s2")
    assert shelf.find("why is the queue so?", kind="memory")[0].id == decision
    assert shelf.find("how do we go about the queue?", kind="memory")[0].id == procedure


def test_limits_leave_out_whatever_they_do_not_name(shelf: Shelf) -> None:
    old = shelf.state("the gateway has two pods", session="s1", on="2026-01-05")
    new = shelf.state("the gateway has a budget of 5 ms", category="constraint", session="s2", on="2026-03-10")
    assert {hit.id for hit in shelf.find("gateway", kind="memory")} == {old, new}
    for narrow, found in (
        ({"since": "2026-02-01"}, {new}),
        ({"until": "2026-02-01"}, {old}),
        ({"session": "s1"}, {old}),
        ({"category": "constraint"}, {new}),
        ({"gate": "correction"}, set()),
    ):
        assert {hit.id for hit in shelf.find("gateway", kind="memory", **narrow)} == found, narrow
    assert {hit.session_id for hit in shelf.find("gateway", kind="turn", session="s2")} == {"s2"}
    assert {hit.at[:7] for hit in shelf.find("gateway in january", kind="turn", since="2026-02-01")} == {"2026-03"}


def test_what_is_linked_comes_in_and_stays_behind_walls_of_scope(shelf: Shelf) -> None:
    symptom = shelf.state("the dashboard shows zero users at noon")
    cause = shelf.state("cron truncates the sessions table", session="s2")
    elsewhere = shelf.state("a memory of another project", root=THERE, session="s3")
    assert [hit.id for hit in shelf.find("dashboard zero users", kind="memory")] == [symptom]
    shelf.link(symptom, cause, "symptom_of")
    shelf.link(symptom, elsewhere, "symptom_of")
    hits = shelf.find("dashboard zero users", kind="memory")
    assert [hit.id for hit in hits] == [symptom, cause]
    assert "linked" in hits[1].factors


def test_what_explains_a_report_is_found_by_the_report(shelf: Shelf) -> None:
    reported = shelf.say("my dashboard is empty at noon", session="s1")
    cause = shelf.state("cron truncates the sessions table", session="s2")

    def report(rows: Rows) -> None:
        memory = memories.by_id(rows, cause)
        assert memory is not None
        gotchas.add_symptom(rows, memory.seq, uuid=reported, at="", text="something else", fingerprint="")

    shelf.store.write(report)
    (hit,) = [hit for hit in shelf.find("dashboard empty") if hit.kind == "memory"]
    assert hit.id == cause and "reported" in hit.factors


def test_what_replaced_something_is_found_by_what_it_replaced(shelf: Shelf) -> None:
    old = shelf.state("Use npm in the web client for packages", session="s1")
    new = shelf.state("Use pnpm in the web client for packages, not npm", session="s2", on="2026-03-05")
    hits = shelf.find("npm", kind="memory")
    assert [(hit.id, hit.superseded_by) for hit in hits] == [(new, ""), (old, new)]


def test_a_session_that_speaks_of_all_of_it_comes_before_one_that_names_a_word(shelf: Shelf) -> None:
    shelf.say("kangaroo", session="s1")
    shelf.say("the marsupial budget", session="s2")
    for other in ("lunch", "weather", "trains"):
        shelf.say(other, session=f"s-{other}")
    shelf.say("unrelated talk", session="s2", kind="assistant")
    meant = shelf.say("kangaroo", session="s2")
    assert shelf.find("kangaroo marsupial budget", kind="turn")[0].session_id == "s2"
    assert meant in [uuid for hit in shelf.find("kangaroo marsupial budget") for uuid in hit.source_uuids]


@pytest.mark.parametrize(
    ("query", "is_close"),
    [
        ("which port does the gateway listen on?", True),
        ("gateway", True),
        ("where is the Kafka cluster described?", False),
        ("how do we roast coffee beans?", False),
    ],
)
def test_a_search_for_what_nobody_spoke_of_says_that_nothing_is_close(shelf: Shelf, query: str, is_close: bool) -> None:
    shelf.say("The gateway listens on port 8443.")
    shelf.say("We deploy on Tuesdays, after the standup.", session="s2")
    hits = shelf.find(query)
    places = shelf.store.read(lambda rows: stage.scopes(rows, HERE))
    found = shelf.store.read(lambda rows: stage_ground.is_close(rows, query, hits, projects=places))
    assert found is is_close


def test_of_one_exchange_one_hit_is_shown_with_what_was_asked_and_answered(shelf: Shelf) -> None:
    asked = shelf.say("why does the exporter crash?")
    looked = shelf.say("Let me look at the exporter and its crash first.", kind="assistant")
    shelf.say("The exporter crash is in the encoder, I think.", kind="assistant")
    answered = shelf.say("It divided by the number of rows, which was 0.", kind="assistant")
    (hit,) = shelf.find("exporter crash")
    assert {asked, answered} < set(hit.source_uuids) or hit.source_uuids == (asked, answered)
    assert looked not in hit.source_uuids[1:]
