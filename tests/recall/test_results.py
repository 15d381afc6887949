"""What search finds in a small real store, and in which order: exchanges, times, kinds, limits, links."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_fixtures import ordinary
from session_writer import Talk, go_through

from csmd.briefs import Hit
from csmd.capture import project_identity
from csmd.conversation import Project, Turn
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember
from csmd.recall import exchange_hits, results, visibility
from csmd.recall.exchange_hits import Part
from csmd.store import digests, failures, memories, projects, turns
from csmd.store.core import Store
from csmd.store.search import SearchFilter
from csmd.store.sqlite import Rows
from csmd.text import display, tokens
from csmd.vocabulary import Category

NOW = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)
HERE, THERE = "/p/alpha", "/p/beta"


class Shelf:
    """A store in which things are said, and asked for."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.said = 0

    def home(self, rows: Rows, root: str) -> int:
        place = project_identity.identify_directory(root)
        return projects.ensure(rows, Project(key=place.key, root=root, name=place.name, kind="path"), now="")

    def say(
        self, body: str, *, session: str = "s1", on: str = "2026-03-01", kind: Any = "user", root: str = HERE
    ) -> str:
        self.said += 1
        turn = Turn(uuid=f"u{self.said}", session_id=session, kind=kind, text=body, cwd=root,
                    at=f"{on}T10:{self.said:02d}:00.000Z")  # fmt: skip
        self.store.write(
            lambda rows: turns.add_turn(
                rows, turn, text_hash=tokens.keyed_hash(body, self.store.hash_key), host="claude",
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
            lambda rows: remember.remember(
                rows, said, source, project=self.home(rows, root), origin="stated", key=self.store.hash_key
            )[0]
        )

    def find(
        self, query: str, *, kind: str = "all", root: str | None = HERE, limit: int = 10, **narrow: str
    ) -> list[Hit]:
        return self.store.read(
            lambda rows: results.find(
                rows, query, projects=visibility.scopes(rows, root) if root else None, kind=kind, limit=limit, embed=None,
                now=NOW, within=SearchFilter(**narrow),
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


@pytest.mark.invariant(
    "No turn is shown in two hits of a search, and a hit is explained by the parts that its score is the sum of"
)
def test_a_hit_is_told_with_the_parts_that_its_score_is_the_sum_of(shelf: Shelf) -> None:
    shelf.state("the kangaroo gateway listens on 8443")
    shelf.say("the gateway of yesterday", on="2026-03-17", session="s2")
    (first, *_), (memory, *_) = (
        shelf.find("kangaroo gateway yesterday", kind="turn"), shelf.find("kangaroo gateway", kind="memory")
    )  # fmt: skip
    assert first.score == pytest.approx(sum(first.factors.values()), abs=1e-3)
    assert memory.score == pytest.approx(results.MEMORY_FACTOR * sum(memory.factors.values()), abs=1e-3)
    assert {"words", "session"} <= memory.factors.keys() and "meaning" not in memory.factors
    assert first.factors["time"] == results.TIME_WEIGHT


@pytest.mark.invariant("A time that a question names prefers and never filters")
def test_a_named_time_prefers_and_does_not_leave_out(shelf: Shelf) -> None:
    then = shelf.say("the gateway was moved to Lisbon", session="s1", on="2026-01-05")
    later = shelf.say("the gateway was moved to Oslo", session="s2", on="2026-03-10")
    shelf.say("the gateway was moved to Bergen", session="s3", on="2025-05-05")
    assert shelf.find("gateway moved in january", kind="turn")[0].source_uuids[0] == then
    assert shelf.find("gateway moved last week", kind="turn")[0].source_uuids[0] == later
    assert len(shelf.find("gateway moved in january", kind="turn")) == 3


def test_what_was_done_at_a_time_is_found_without_a_word_of_it(shelf: Shelf) -> None:
    shelf.say("paint the shed", session="s1", on="2026-02-10")
    done = shelf.say("mow the lawn", session="s2", on="2026-03-17")
    assert [hit.source_uuids[0] for hit in shelf.find("what did we do yesterday?", kind="turn")] == [done]


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


def test_what_explains_a_report_is_found_by_the_reports_words(shelf: Shelf) -> None:
    reported = shelf.say("my dashboard is empty at noon", session="s1")
    cause = shelf.state("cron truncates the sessions table", session="s2")

    def report(rows: Rows) -> None:
        memory = memories.by_id(rows, cause)
        assert memory is not None
        failures.add_symptom(rows, memory.seq, uuid=reported, at="", text="the dashboard is empty", fingerprint="")

    shelf.store.write(report)
    assert cause in [hit.id for hit in shelf.find("dashboard empty", kind="memory")]
    assert any("cron truncates" in hit.text for hit in shelf.find("dashboard empty"))


def test_a_pasted_failure_brings_what_mended_it(shelf: Shelf) -> None:
    ordinary(shelf.store, HERE, sessions=6)
    talk = Talk(shelf.store, "s7")
    talk.say("user", "run the worker tests")
    talk.run("pytest tests/test_worker.py", f"Exit code 1\n{FAILURE}")
    talk.mend()
    talk.run("pytest tests/test_worker.py", "3 passed")
    fixed = talk.say("assistant", "It passes now: the broker has to come up first, so the fixture waits for its port.")
    assert go_through(shelf.store) >= 0
    hits = shelf.find(f"I get this again:\n{FAILURE}", root=None)
    assert fixed in [uuid for hit in hits[:2] for uuid in hit.source_uuids]


FAILURE = "ConnectionRefusedError: [Errno 111] Connection refused: amqp://broker:5672"


def test_what_replaced_something_is_found_by_what_it_replaced_and_stands_above_it(shelf: Shelf) -> None:
    old = shelf.state("Use npm in the web client for packages", session="s1")
    new = shelf.state("Use pnpm in the web client for packages, not npm", session="s2", on="2026-03-05")
    hits = shelf.find("npm", kind="memory")
    assert [(hit.id, hit.superseded_by, hit.superseded_at[:10]) for hit in hits] == [
        (new, "", ""),
        (old, new, "2026-03-05"),
    ]


@pytest.mark.invariant("A hit that was overtaken says by what and when, a memory and the turn that states it alike")
def test_a_turn_that_states_what_was_replaced_names_what_holds_now_at_the_end_of_the_line(shelf: Shelf) -> None:
    shelf.state("Use npm in the web client for packages", session="s1")
    shelf.state("Use pnpm in the web client for packages, not npm", session="s2", on="2026-03-05")
    last = shelf.state("Use bun in the web client for packages, not pnpm", session="s3", on="2026-03-09")
    for kind in ("turn", "memory"):
        hits = shelf.find("packages in the web client", kind=kind)
        overtaken = {hit.session_id: (hit.superseded_by, hit.superseded_at[:10]) for hit in hits}
        assert overtaken == {"s1": (last, "2026-03-09"), "s2": (last, "2026-03-09"), "s3": ("", "")}, kind


def test_what_replaced_something_in_other_words_comes_with_it(shelf: Shelf) -> None:
    old = shelf.state("Use npm in the web client for packages", session="s1")
    new = shelf.state("From now on everything there goes through pnpm", session="s2", on="2026-03-05")
    there = shelf.state("Elsewhere it is yarn", root=THERE, session="s3")
    for heir, found in ((new, [new, old]), (there, [old])):
        shelf.store.write(
            lambda rows, heir=heir: rows.run("update memories set superseded_by = :n where id = :o", n=heir, o=old)
        )
        assert [hit.id for hit in shelf.find("what is in the web client?", kind="memory")] == found


def test_a_search_for_a_kind_of_thing_finds_what_names_one_before_orders_that_hold_the_word(shelf: Shelf) -> None:
    asked = shelf.say("Fix the database timeout in the worker.", session="s1")
    decided = shelf.state("The ledger is kept in mariadb, for the accountants know it.", session="s2")
    for query in ("database", "which database do we use?"):
        hits = shelf.find(query)
        assert [hit.id for hit in hits if hit.kind != "session"] == [decided, asked], query
        assert results.is_close(hits, query)


def test_a_turn_that_states_a_memory_names_it(shelf: Shelf) -> None:
    decided = shelf.state("Use npm in the web client for packages", session="s1")
    shelf.say("The web client is green.", session="s1", kind="assistant")
    (hit, *_) = [hit for hit in shelf.find("npm web client") if hit.kind != "session"]
    assert (hit.kind, hit.states, hit.authority) == ("turn", decided, "user")


def test_a_session_that_speaks_of_all_of_it_comes_before_one_that_names_a_word(shelf: Shelf) -> None:
    shelf.say("kangaroo", session="s1")
    shelf.say("the marsupial budget", session="s2")
    for other in ("lunch", "weather", "trains"):
        shelf.say(other, session=f"s-{other}")
    shelf.say("unrelated talk", session="s2", kind="assistant")
    meant = shelf.say("kangaroo", session="s2")
    assert shelf.find("kangaroo marsupial budget", kind="turn")[0].session_id == "s2"
    assert meant in [uuid for hit in shelf.find("kangaroo marsupial budget") for uuid in hit.source_uuids]


@pytest.mark.invariant(
    "A search for what nobody spoke of says so before the nearest, and a query without a word is refused"
)
@pytest.mark.parametrize(
    ("query", "is_close"),
    [
        ("which port does the gateway listen on?", True),
        ("where is the Kafka cluster described?", False),
        ("how do we roast coffee beans?", False),
    ],
)
def test_a_search_for_what_nobody_spoke_of_says_that_nothing_is_close(shelf: Shelf, query: str, is_close: bool) -> None:
    ordinary(shelf.store, HERE, sessions=12)
    shelf.say("The gateway listens on port 8443.")
    shelf.say("We deploy on Tuesdays, after the standup.", session="s2")
    assert results.is_close(shelf.find(query), query) is is_close


@pytest.mark.parametrize(
    ("query", "said", "is_close"),
    [
        ("standup Tuesdays", "We deploy on Tuesdays, after the standup.", True),
        ("do we deploy after the standup?", "We deploy on Tuesdays, after the standup.", True),
        ("standup Mondays", "We deploy on Tuesdays, after the standup.", False),
        ("standup", "We deploy on Tuesdays, after the standup.", True),
        ("Deploys", "We deploy on Tuesdays, after the standup.", True),
        ("kafka", "We deploy on Tuesdays, after the standup.", False),
        ("when do we deploy", "We never deploy from a laptop.", False),
        ("when do we deploy?", "We never deploy from a laptop.", False),
        ("who owns the gateway?", "user: who owns the gateway?", False),
        ("why standup", "We deploy on Tuesdays, after the standup.", True),
        ("why kafka", "We deploy on Tuesdays, after the standup.", False),
        ("what about the standup?", "We deploy on Tuesdays, after the standup.", True),
        ("when did we decide on Tuesdays?", "We deploy on Tuesdays, after the standup.", True),
        ("reason for the standup", "We deploy on Tuesdays, after the standup.", True),
        ("the reason we chose kafka", "We deploy on Tuesdays, after the standup.", False),
        ("remind me why we have the standup", "We deploy on Tuesdays, after the standup.", True),
        ("standup history", "We deploy on Tuesdays, after the standup.", False),
        ("why mongo", "The receipts are kept in MongoDB.", True),
        ("why stand", "The standup is at nine.", False),
        ("where do we keep the standup?", "user: Where do we keep it?", False),
        ("where do we keep orders and invoices?", "The orders are in mariadb.", True),
        ("kafka retention", "user: Set the retention to a week.\n[after] assistant: Kafka is not used here.", False),
    ],
)
def test_a_hit_that_holds_most_content_words_of_the_question_is_close_whatever_its_score(
    query: str, said: str, is_close: bool
) -> None:
    hit = Hit(id="u1", kind="turn", text=said, score=0.1, project=HERE, session_id="s1", source_uuids=("u1",), at="")
    assert results.is_close([hit], query) is is_close


def test_of_one_exchange_one_hit_is_shown_with_what_was_asked_and_answered(shelf: Shelf) -> None:
    asked = shelf.say("why does the exporter crash?")
    looked = shelf.say("Let me look at the exporter and its crash first.", kind="assistant")
    shelf.say("The exporter crash is in the encoder, I think.", kind="assistant")
    answered = shelf.say("It divided by the number of rows, which was 0.", kind="assistant")
    (hit,) = shelf.find("exporter crash")
    assert {asked, answered} < set(hit.source_uuids) or hit.source_uuids == (asked, answered)
    assert looked not in hit.source_uuids[1:]


@pytest.mark.invariant(
    "No session fills the front of a list where another answers nearly as well; no hit is lost by that"
)
def test_no_session_fills_the_front_where_another_answers_nearly_as_well() -> None:
    def shown(session: str, number: int, score: float) -> Hit:
        return Hit(
            id=f"{session}{number}", kind="turn", text="", score=score, project="", session_id=session, source_uuids=(), at=""
        )  # fmt: skip

    hits = [
        *(shown("long", number, 1.0 - number / 100) for number in range(6)),
        shown("short", 7, 0.8),
        shown("far", 8, 0.2),
    ]
    order = results._vary_sessions(hits)
    front = [one.session_id for one in order[: results.FRONT_HITS]]
    assert front.count("short") == 1 and "far" not in front
    assert sorted(one.id for one in order) == sorted(one.id for one in hits)
    assert [one.id for one in order if one.session_id == "long"] == [f"long{number}" for number in range(6)]


def test_a_question_that_utf_8_cannot_carry_is_answered_as_without_what_it_cannot(shelf: Shelf) -> None:
    shelf.say("the kangaroo gateway listens on 8443")
    (hit,) = shelf.find("kangaroo `gate\ud800way` gateway \udcff\0")
    assert "8443" in hit.text


# --- An exchange is shown once: what matched first, what stands beside it after, within the room that a hit has.


def part(said: str, place: str = "", speaker: str = "user") -> Part:
    return Part(speaker=speaker, position=place, text=said, cut=lambda limit: display.cut(said, limit))


def test_a_turn_alone_is_told_as_it_is() -> None:
    assert exchange_hits.render_exchange([part("use uv here")], limit=1200) == "use uv here"


def test_of_several_each_says_who_speaks_and_the_one_that_matched_stands_first() -> None:
    parts = [part("uv", speaker="assistant"), part("pip or uv?", "before"), part("thanks", "after")]
    told = exchange_hits.render_exchange(parts, limit=1200)
    assert told == "assistant: uv\n[before] user: pip or uv?\n[after] user: thanks"


words = st.text(alphabet="abc ", max_size=3000)


@given(words, words, words, st.integers(200, 1200))
def test_an_exchange_keeps_to_its_room_and_its_match_has_half_of_it(one: str, two: str, three: str, limit: int) -> None:
    told = exchange_hits.render_exchange([part(one), part(two, "before"), part(three, "after")], limit=limit)
    assert len(told) <= limit
    first = told.split("\n[before]")[0].removeprefix("user: ")
    assert len(first) >= min(len(one), limit // 4)
    assert len(one) + len(two) + len(three) > limit - 60 or told.count("…") == 0


rows = st.integers(1, 30)


@pytest.mark.invariant(
    "No turn is shown in two hits of a search, and a hit is explained by the parts that its score is the sum of"
)
@given(
    st.lists(rows, unique=True, max_size=20),
    st.dictionaries(rows, st.lists(st.integers(0, 30), max_size=2)),
    st.integers(1, 9),
)
def test_no_turn_is_shown_in_two_hits(ranked: list[int], near: dict[int, list[int]], most: int) -> None:
    groups = exchange_hits.group_exchanges(ranked, near, {}, limit=most)
    shown = [seq for group in groups for seq in group]
    assert len(shown) == len(set(shown)) and 0 not in shown
    assert len(groups) <= most
    assert [group[0] for group in groups] == [seq for seq in ranked if seq in {group[0] for group in groups}]
    if len(groups) < most:
        assert set(ranked) <= set(shown)


def test_of_the_turns_beside_a_hit_the_better_comes_first() -> None:
    assert exchange_hits.group_exchanges([5], {5: (6, 4)}, {4: 0.9, 6: 0.1}, limit=3) == [[5, 4, 6]]


@pytest.mark.invariant(
    "A search shows an exchange: a prompt with its answer, what was said at work between them only once"
)
def test_what_was_said_at_work_is_no_hit_beside_the_exchange_that_it_is_of() -> None:
    near = {2: (4, 1), 3: (4, 1), 4: (0, 1), 6: (7, 5)}
    assert exchange_hits.group_exchanges([2, 3, 6], near, {}, limit=9, continuing={2, 3}) == [[2, 4, 1], [6, 7, 5]]
    assert exchange_hits.group_exchanges([4, 3], near, {}, limit=9, continuing={3}) == [[4, 1]]
    assert exchange_hits.group_exchanges([2, 3], near, {}, limit=9) == [[2, 4, 1], [3]]


# --- A session's summary is found by what was done in it, once for each session, and does not stand before what was said.


WRITTEN = "2026-03-01T10:00:00.000Z"


def digested(store: Store, session: str, said: str, *told: tuple[str, tuple[tuple[str, str], ...]]) -> None:
    """A session of one turn with a digest for each of `told`: its text and (text, uuid) of what it was made of."""

    def write(rows: Rows) -> None:
        project = projects.ensure(rows, project_identity.identify_directory("/p/shop"), now=WRITTEN)
        turn = Turn(uuid=f"{session}-1", session_id=session, kind="user", text=said, at=WRITTEN)
        turns.add_turn(rows, turn, text_hash=turn.uuid, host="claude", project=project, path="")
        seq = rows.value("select seq from sessions where id = :id", id=session)
        made = [
            SimpleNamespace(
                why="end", upto=1, at=WRITTEN, text=text, outcome="", prompts=1, calls=0, tokens=0,
                items=[digests.ItemRow("goal", part, uuid, "", 1) for part, uuid in items],
            )
            for text, items in told
        ]  # fmt: skip
        digests.replace(rows, int(seq), made, turns=1)

    store.write(write)


def find(store: Store, query: str, kind: str, **narrow: str) -> list[Hit]:
    return store.read(
        lambda rows: results.find(
            rows, query, projects=[1, 0], kind=kind, limit=10, embed=None, within=SearchFilter(**narrow)
        )[0]
    )


def test_a_session_is_found_once_by_its_summary_with_the_turns_that_say_it(store: Store) -> None:
    first = ("Goal: mend the exporter\nChanged exporter.py", (("mend the exporter", "u1"),))
    last = ("Goal: mend the exporter\nAsked about kangaroos", (("mend it", "u1"), ("asked about kangaroos", "u2")))
    digested(store, "one", "hello", first, last)
    digested(store, "two", "hello again", ("Goal: paint the fence", (("paint the fence", "u3"),)))
    (hit,) = find(store, "exporter kangaroos", "session")
    assert (hit.id, hit.kind, hit.session_id, hit.project) == ("one", "session", "one", "/p/shop")
    assert "kangaroos" in hit.text and hit.source_uuids == ("u2", "u1")
    assert find(store, "giraffe", "session") == []
    for limits, found in (
        ({"since": WRITTEN}, 1), ({"until": WRITTEN}, 0), ({"session": "one"}, 1), ({"session": "two"}, 0), ({"gate": "epistemic"}, 0),
    ):  # fmt: skip
        assert len(find(store, "exporter kangaroos", "session", **limits)) == found, limits
    assert store.read(
        lambda rows: results.find(rows, "exporter", projects=[0], kind="session", limit=10, embed=None)[0]
    ) == []  # fmt: skip


def test_what_was_said_stands_before_the_summary_that_says_it_too(store: Store) -> None:
    digested(store, "one", "mend the exporter today", ("Goal: mend the exporter", (("mend the exporter", "one-1"),)))
    assert [hit.kind for hit in find(store, "mend exporter", "all")] == ["turn", "session"]
    assert [hit.kind for hit in find(store, "mend exporter", "turn")] == ["turn"]


def test_sessions_are_put_among_hits_whose_order_stays() -> None:
    def hit(ident: str, score: float, kind: str = "turn") -> Hit:
        return Hit(
            id=ident, kind=kind, text="", score=score, project="", session_id="", source_uuids=(), at=""  # type: ignore[arg-type]
        )  # fmt: skip

    hits = [hit("a", 0.5), hit("b", 0.9), hit("c", 0.1)]
    sessions = [hit("s", 0.7, "session"), hit("t", 0.3, "session"), hit("u", 0.05, "session")]
    assert [one.id for one in results._insert_sessions(hits, sessions)] == ["s", "a", "b", "t", "c", "u"]
