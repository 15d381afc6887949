"""What a start is told over a real store: the same bytes while nothing is new, ages in active days, each thing once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.capture import project_identity
from csmd.extraction.digest import Digest
from csmd.extraction.work import Item
from csmd.memory import remember as believe
from csmd.model import Brief, Category, Event, Gate, Project, Provenance, Statement, Turn, TurnKind
from csmd.recall import brief, compose, living_state, visibility
from csmd.store import digests, events, passages, projects, receipts, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

HERE = "/p/alpha"
SAID: list[tuple[str, Gate, Category]] = [
    ("the config key is database_url, not db_url", "correction", "fact"),
    ("I prefer pathlib over os.path in scripts", "behavioral", "preference"),
    ("the job queue lives in Postgres because of LISTEN/NOTIFY", "epistemic", "decision"),
    ("the worker hung since its socket had no timeout", "epistemic", "gotcha"),
]
PROMISED = "the mail templates get translated in spring"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now="2026-01-01T00:00:00.000Z")
    yield opened
    opened.close()


def day(number: int, time: str = "10:00:00.000") -> str:
    """A time on a day so many days after the first."""
    month, of = divmod(number, 28)
    return f"2026-{month + 1:02}-{of + 1:02}T{time}Z"


def session(
    store: Store, ident: str, number: int, said: str = "hello", *, kind: TurnKind = "user", used: int = 0
) -> str:
    """A session of the project on a day, with one turn; its uuid."""
    turn = Turn(
        uuid=f"t-{ident}-{kind}", session_id=ident, kind=kind, text=said, at=day(number), cwd=HERE, context=used
    )

    def write(rows: Rows) -> None:
        place = project_identity.identified(HERE)
        home = projects.ensure(rows, Project(key=place.key, root=HERE, name="alpha", kind="path"), now=day(0))
        turns.add_turn(
            rows, turn, text_hash=tokens.keyed_hash(said, store.hash_key), host="claude", project=home, path=""
        )

    store.write(write)
    return turn.uuid


def remember(store: Store, said: str, gate: Gate, category: Category, uuid: str, ident: str, number: int) -> None:
    asked = () if gate == "promissory" else ("remember",)
    statement = Statement(text=said, gate=gate, category=category, confidence=0.85, authority="user", reasons=asked)
    source = Provenance(uuid=uuid, session_id=ident, at=day(number))
    store.write(
        lambda rows: believe.remember(
            rows, statement, source, project=visibility.scopes(rows, HERE)[0], origin="stated", key=store.hash_key
        )
    )


def told_on(store: Store, number: int, ident: str = "s0") -> None:
    """A session on a day in which everything is said, and which changed something."""
    uuid = session(store, ident, number)
    for said, gate, category in SAID:
        remember(store, said, gate, category, uuid, ident, number)
    digest(store, ident, uuid, number)


def digest(store: Store, ident: str, uuid: str, number: int, *more: Item) -> None:
    items = (Item("goal", "can you move the settings to YAML", uuid), Item("file", "settings.py", uuid), *more)
    made = Digest("settled", 1, day(number), "Goal", "checked", 1, 1, 1, items)

    def write(rows: Rows) -> None:
        seq = int(rows.value("select seq from sessions where id = :id", id=ident))
        digests.replace(rows, seq, [made], turns=1)

    store.write(write)


def brief_of(store: Store, ident: str = "", **more: object) -> Brief:
    return store.read(
        lambda rows: brief.session_brief(
            rows, places=visibility.scopes(rows, HERE), session_id=ident, max_tokens=900, **more  # type: ignore[arg-type]
        )
    )  # fmt: skip


def event(store: Store, ident: str, at: str, number: int, source: str = "startup") -> None:
    made = Event(id=f"e{number}", host="claude", name="session_start", session_id=ident, source=source, at=at, cwd=HERE)
    store.write(lambda rows: events.record(rows, made, text_hash="", payload_hash=str(number)))


def receipt(store: Store, ident: str, made: Brief, at: str) -> None:
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id=f"r{ident}{at}", session_id=ident, event="session_start", project=1, at=at,
            tokens=made.tokens, text_hash="", items=made.items,
        )
    )  # fmt: skip


def test_a_session_is_not_called_by_what_was_overturned_since_nor_by_what_was_told_before(store: Store) -> None:
    uuid = session(store, "s0", 0, "can you use npm in the web client for packages")
    goal = Item("goal", "can you use npm in the web client for packages", uuid)
    made = Digest("settled", 1, day(0), "Goal", "checked", 1, 1, 1, (goal, Item("file", "settings.py", uuid)))
    store.write(lambda rows: digests.replace(rows, 1, [made], turns=1))
    line = "use npm in the web client for packages: changed settings.py"
    assert line in brief_of(store).text
    assert "use npm" not in brief_of(store, before="Can you use npm in the web client for packages? And more.").text
    remember(store, "Use npm in the web client for packages", "epistemic", "decision", uuid, "s0", 0)
    later = session(store, "s1", 1, "Use pnpm in the web client for packages, not npm")
    new = "Use pnpm in the web client for packages, not npm"
    remember(store, new, "epistemic", "decision", later, "s1", 1)
    told = brief_of(store).text
    assert "use npm" not in told.lower() and "- changed settings.py" in told


@pytest.mark.invariant("Two briefs with nothing new between them are the same bytes; ages count active days")
def test_two_briefs_with_nothing_new_between_them_are_the_same_bytes(store: Store) -> None:
    told_on(store, 0)
    first, count = brief_of(store), iter(range(10_000))
    assert "The last sessions:" in first.text and all(said in first.text for said, *_ in SAID)

    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.integers(0, 86_399), max_size=3))
    def check(times: list[int]) -> None:
        for second in times:  # sessions that begin later that day and say nothing
            at = day(0, f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000")
            event(store, f"new{second}", at, next(count))
        assert brief_of(store, f"x{next(count)}") == first

    check()


@pytest.mark.invariant("Two briefs with nothing new between them are the same bytes; ages count active days")
def test_a_project_left_for_sixty_days_is_told_of_as_before(store: Store) -> None:
    told_on(store, 0)
    left = brief_of(store)
    session(store, "s1", 60)
    assert brief_of(store, "s1") == left, "one active day has passed"
    assert {line[:-1] for line in left.text.splitlines() if line.endswith(":")} == {
        "Corrections the user made", "How the user works", "Decisions and conventions", "The last sessions", "Known gotchas",
    }  # fmt: skip
    for number in range(61, 161):
        session(store, f"w{number}", number)
    worked = brief_of(store)
    assert SAID[0][0] in worked.text, "what the user corrected does not fade"
    assert SAID[3][0] not in worked.text, "a hundred days of work later the rest has"


@pytest.mark.invariant("A promise is asked about once before it fades")
def test_a_promise_is_asked_about_once_before_it_fades_and_again_when_it_was_confirmed(store: Store) -> None:
    uuid = session(store, "s0", 0)
    remember(store, PROMISED, "promissory", "plan", uuid, "s0", 0)
    asked = [brief.FADING[0] in brief_of(store, "x").text]
    for number in range(1, 12):
        session(store, f"s{number}", number)
        made = brief_of(store, "x")
        asked.append(brief.FADING[0] in made.text)
        if asked[-1]:
            receipt(store, f"s{number}", made, day(number, "11:00:00.000"))
            assert brief_of(store, f"s{number + 100}").text.count(PROMISED) == 0, "asked once is asked"
            event(store, f"s{number}", day(number, "12:00:00.000"), number, "compact")
            assert PROMISED in brief_of(store, f"s{number}").text, "its own session is told it after a compaction again"
    assert sum(asked) == 1 and not any(asked[:4])
    remember(store, PROMISED, "promissory", "plan", session(store, "s20", 20), "s20", 20)
    later = []
    for number in range(21, 32):
        session(store, f"s{number}", number)
        later.append(brief.FADING[0] in brief_of(store, "x").text)
    assert any(later), "said again, it is asked about again"


def test_what_the_last_session_came_to_is_not_told_twice_nor_to_itself(store: Store) -> None:
    told_on(store, 0)
    session(store, "s1", 1)
    event(store, "s1", day(1), 1)
    made = brief_of(store, "s1")
    assert (
        "- move the settings to YAML: changed settings.py; checks passed after the last change (2026-01-01, session s0)"
        in made.text
    )
    receipt(store, "s1", made, day(1, "11:00:00.000"))
    event(store, "s1", day(1, "12:00:00.000"), 2, "resume")
    assert brief_of(store, "s1").text == ""
    event(store, "s1", day(1, "13:00:00.000"), 3, "compact")
    assert brief_of(store, "s1") == made
    assert "move the settings" not in brief_of(store, "s0").text
    assert store.read(lambda rows: receipts.injected(rows, "s1"))[0] == 0, "the compaction left nothing of it"


def test_a_session_is_not_called_by_words_that_nobody_knows_to_be_the_users(store: Store) -> None:
    uuid = session(store, "s0", 0, "disable all of the checks", kind="relayed")
    digest(store, "s0", uuid, 0)
    told = brief_of(store, "x").text
    assert "changed settings.py" in told and "YAML" not in told


def test_goals_stand_first_and_the_living_state_last_as_a_preview(store: Store) -> None:
    told_on(store, 0)
    goal = brief.Note(id="g1", text="ship the export")
    blocks = store.read(
        lambda rows: living_state.advisory_blocks(living_state.read_lines(rows, places=visibility.scopes(rows, HERE)))
    )
    assert blocks == (), "nothing was observed yet"
    lines = brief_of(store, "x", goals=(goal,)).text.splitlines()
    assert lines[1:3] == ["Goals:", "- ship the export"]


def test_how_full_a_context_is_is_not_known_until_somebody_answers_in_it(store: Store) -> None:
    session(store, "s1", 0, "It is so.", kind="assistant", used=160_000)
    event(store, "s1", day(0, "09:00:00.000"), 1)

    def filled() -> tuple[str, int]:
        return store.read(lambda rows: receipts.filled(rows, "s1"))

    assert compose.bracket_of(filled()[1], 200_000) == "CRITICAL"
    event(store, "s1", day(0, "11:00:00.000"), 2, "compact")
    assert filled() == ("", 0)
    assert store.read(lambda rows: receipts.before(rows, "s1")) == ("", 160_000)
    assert store.read(lambda rows: receipts.filled(rows, "nobody")) == ("", 0)


@pytest.mark.invariant(
    "What is promised for a date is told until that has passed, and neither asked about nor archived before"
)
@pytest.mark.parametrize(
    "said", ["We freeze the API on March 10", "the importer is due by 10 Mar 2026", "the demo is on 2026-03-10"]
)
def test_what_is_promised_for_a_date_is_told_until_that_has_passed(store: Store, said: str) -> None:
    uuid = session(store, "s0", 0)
    remember(store, said, "promissory", "plan", uuid, "s0", 0)
    remember(store, "we want to tidy the fixtures of the parser", "promissory", "plan", uuid, "s0", 0)
    for number in range(1, 60):
        session(store, f"s{number}", number)
        if number in (2, 40):
            assert said in brief_of(store, "new", today=day(number)[:10]).text, number
            assert "fixtures" not in brief_of(store, "new", today=day(number)[:10]).text
    assert said in brief_of(store, "new", today="2026-03-10").text
    assert said not in brief_of(store, "new", today="2026-03-11").text
    assert (
        said in brief_of(store, "new", today="2026-03-01").text and brief.FADING[0] not in brief_of(store, "new").text
    )


@pytest.mark.invariant(
    "What is promised for a date is told until that has passed, and neither asked about nor archived before"
)
def test_a_promise_that_names_a_past_day_fades_as_any_other(store: Store) -> None:
    uuid = session(store, "s0", 0)
    remember(store, "we said on December 3 that the fixtures get tidied", "promissory", "plan", uuid, "s0", 0)
    for number in range(1, 4):
        session(store, f"s{number}", number)
    assert "fixtures" not in brief_of(store, "new", today=day(3)[:10]).text


def follows(store: Store, older: str, newer: str, sure: float) -> None:
    """A thread from the one passage of a turn to that of another."""
    of = "select p.seq from passages p join turns t on t.seq = p.turn_seq where t.uuid = :uuid"
    store.write(
        lambda rows: passages.link_passages(
            rows, int(rows.value(of, uuid=older)), int(rows.value(of, uuid=newer)), sure, most=3
        )
    )


OLD, NEW = "The kangaroo gateway listens on port 8080", "From today the kangaroo gateway takes 8443"


@pytest.mark.invariant(
    "From what was said first a thread leads to what was said later on the same matter, which is told first; nothing is superseded by that"
)
def test_what_a_later_memory_replaces_is_told_with_it_as_before(store: Store) -> None:
    first, second = session(store, "s1", 1, OLD), session(store, "s2", 2, NEW)
    remember(store, OLD, "epistemic", "fact", first, "s1", 1)
    remember(store, NEW, "epistemic", "decision", second, "s2", 2)
    follows(store, first, second, 0.9)
    lines = [line for line in brief_of(store).text.splitlines() if "kangaroo" in line]
    assert len(lines) == 1 and f"{NEW} (before, {day(1)[:10]}: {OLD})" in lines[0]


def test_what_may_be_over_is_told_whole_behind_what_was_said_later(store: Store) -> None:
    first, second = session(store, "s1", 1, OLD), session(store, "s2", 2, NEW)
    remember(store, OLD, "correction", "fact", first, "s1", 1)
    remember(store, NEW, "epistemic", "fact", second, "s2", 2)
    lines = [line for line in brief_of(store).text.splitlines() if "kangaroo" in line]
    assert [OLD in line for line in lines] == [True, False], "corrections come first"
    follows(store, first, second, brief.REPLACES - 0.1)
    lines = [line for line in brief_of(store).text.splitlines() if "kangaroo" in line]
    assert [OLD in line for line in lines] == [False, True] and not any("(before" in line for line in lines)


def test_what_lasts_is_told_behind_what_changed_it_in_passing(store: Store) -> None:
    first, second = session(store, "s1", 1, OLD), session(store, "s2", 2, NEW)
    reply = session(store, "s2", 2, "The kangaroo client and its tests are moved", kind="assistant")
    remember(store, NEW, "promissory", "plan", second, "s2", 2)
    for number in range(3, 6):
        session(store, f"s{number}", number)
    assert NEW not in brief_of(store).text
    remember(store, OLD, "correction", "fact", first, "s1", 1)
    follows(store, first, reply, 0.9)
    lines = [line for line in brief_of(store).text.splitlines() if "kangaroo" in line]
    assert [NEW in line for line in lines] == [True, False] and OLD in lines[1]


@pytest.mark.invariant(
    "From what was said first a thread leads to what was said later on the same matter, which is told first; nothing is superseded by that"
)
def test_no_memory_gives_way_to_talk_that_none_states(store: Store) -> None:
    first, second = session(store, "s1", 1, OLD), session(store, "s2", 2, NEW)
    remember(store, OLD, "epistemic", "fact", first, "s1", 1)
    before = brief_of(store).text
    follows(store, first, second, 0.9)
    assert brief_of(store).text == before and OLD in before
