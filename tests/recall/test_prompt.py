"""What a prompt is told: what bears on it, the newest first, within a budget, each once, never what no longer holds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall.test_brief import words
from recall.test_visibility import HERE, NOW, THERE, project, save_memory, say, state
from recall_fixtures import memory, ordinary, passage

from csmd.briefs import Brief
from csmd.errors import DeadlineExceeded, EmbeddingUnavailable
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember
from csmd.recall import prompt, ranking, threads, visibility
from csmd.recall.hybrid_search import Embed, ScoredStatement
from csmd.recall.prompt import Line
from csmd.store import instruction_rows, memories, passages, purge, receipts, tampered_transcripts, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display, tokens

ASKED = "where does the queue live?"
#: Below every score: what may be told at all is told, whatever the weights say.
EVERYTHING = 0.0


line_of = st.tuples(words, st.integers(1, 4), st.floats(0, 1))


def a_line(body: str, number: int = 1, *, score: float = 1.0, session: str = "s", **changes: object) -> Line:
    """What a user said in a turn, with a score as if it were all that is known of it."""
    said = ScoredStatement(score=0.0, features={}, passage=passage(body, number, session_id=session))
    odds = math.log(score / (1 - score)) if 0 < score < 1 else (9.0 if score else -9.0)
    values = {
        "shared": 0.0,
        "warm": (odds - ranking.weights()["line words"][""]) / ranking.weights()["line words"]["warm"],
    }
    return Line(**{"text": body, "statement": said, "values": values, "turn": number, **changes})  # type: ignore[arg-type]


@pytest.mark.invariant(
    "A recall never passes its budget, its fence is not closed from inside, and the same matches give the same bytes"
)
@settings(max_examples=60)
@given(st.lists(line_of, max_size=30), st.integers(0, 900), st.integers(0, 12))
def test_what_is_chosen_never_passes_its_budget_and_is_of_few_conversations(
    said: list[tuple[str, int, float]], budget: int, most: int
) -> None:
    lines = [a_line(body, n, score=score, session=f"s{session}") for n, (body, session, score) in enumerate(said, 1)]
    lines.sort(key=lambda line: -line.score)
    chosen = prompt.choose_lines(lines, most=most, tokens=budget)
    assert len(chosen) <= most and len({line.statement.session_id for line in chosen}) <= prompt.MAX_BLOCKS
    assert sum(display.estimate_tokens(line.text[: prompt.MAX_LINE_CHARACTERS]) for line in chosen) <= budget
    assert prompt.choose_lines(lines, most=most, tokens=budget) == chosen


def chosen(*lines: Line, most: int = 9, tokens: int = 300) -> list[str]:
    return [line.text for line in prompt.choose_lines(lines, most=most, tokens=tokens)]


def test_of_two_lines_that_say_the_same_one_is_told() -> None:
    one = a_line("deploys go through the release branch on Tuesdays", 1)
    twin = a_line("deploys always go through the release branch on Tuesdays", 2)
    assert chosen(one, twin) == [one.text]


def test_the_best_are_told_where_not_all_have_room() -> None:
    assert chosen(*(a_line(body, n) for n, body in enumerate(APART, 1)), most=2) == list(APART[:2])


def test_of_many_conversations_the_best_are_told() -> None:
    bodies = [*APART, "reviews go to Sarah on Mondays"]
    assert (
        chosen(*(a_line(body, n, session=f"s{n}") for n, body in enumerate(bodies, 1))) == bodies[: prompt.MAX_BLOCKS]
    )


def test_what_is_far_less_likely_needed_than_the_best_is_not_told() -> None:
    assert chosen(a_line(APART[0], 1, score=0.9), a_line(APART[1], 2, score=0.02)) == [APART[0]]


def test_in_the_place_of_what_was_said_first_what_its_thread_leads_to_is_told() -> None:
    old = a_line("the queue lives in Redis", 1, score=0.9, ends=((5, 0.8),))
    new = a_line("everything asynchronous goes through Kafka", 5, score=0.3, session="s2")
    other = a_line("its worker polls once a second", 2, score=0.8)
    assert chosen(old, other, new, most=2) == [new.text, other.text]
    assert chosen(old, other) == [old.text, other.text], "where that decides nothing, the old one is told"
    unsure = replace(old, ends=((5, 0.25),))
    assert chosen(unsure, new) == [new.text, old.text], "where it is not likely, both are told"


@given(st.floats(0, 1), st.integers(0, 500))
def test_late_in_a_session_a_prompt_needs_surer_evidence(sure: float, prompts: int) -> None:
    late = prompt._discount_late(sure, prompts)
    assert 0 <= late <= sure
    assert late >= prompt._discount_late(sure, prompts + 1)
    assert math.isclose(prompt._discount_late(sure, 0), sure)


def test_before_what_the_assistant_did_stands_what_the_user_asked_for() -> None:
    done = a_line("Moved the limits into a table, the rest is untouched", 2, score=0.9, prompt_turn=1)
    said = a_line("adults may borrow fifty items from now on", 1, score=0.2)
    assert chosen(done, said, most=2) == [said.text, done.text]
    assert chosen(done, said, most=1) == [done.text], "without room for both what was found best is told"
    cold = a_line("the limits live in a table", 3, score=0.95, is_cold=True)
    assert chosen(done, cold) == [done.text], "what is cold is not told by itself"


APART = (
    "the queue lives in Redis",
    "its worker polls once a second",
    "jobs that fail twice go to a table of their own",
)


@pytest.fixture
def busy(store: Store) -> Store:
    """A store with ordinary talk of the project, in which a word can be rare."""
    ordinary(store, HERE, sessions=12)
    return store


def told(
    store: Store,
    asked: str = ASKED,
    *,
    session: str = "s9",
    root: str = HERE,
    floor: float = EVERYTHING,
    most: int = 6,
    embed: Embed | None = None,
) -> Brief:
    return store.read(
        lambda rows: prompt.recall(
            rows, places=visibility.scopes(rows, root), session_id=session, prompt=asked, floor=floor, max_tokens=350,
            max_items=most, embed=embed, key=store.hash_key,
        )
    )  # fmt: skip


def ids(made: Brief) -> list[str]:
    return [item.id for item in made.items]


def note(store: Store, made: Brief, session: str = "s9") -> None:
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id=f"r{len(made.text)}", session_id=session, event="prompt", project=project(rows, HERE), at=NOW,
            tokens=made.tokens, text_hash="", items=made.items,
        )
    )  # fmt: skip


def rule(store: Store, body: str, number: int) -> str:
    """A rule that a user stated."""
    said = Statement(text=body, gate="behavioral", category="convention", confidence=0.9, authority="user")
    source = Provenance(uuid=say(store, body, number), session_id="s1", at=NOW)
    return store.write(
        lambda rows: remember.remember(
            rows, said, source, project=project(rows, HERE), origin="stated", key=store.hash_key
        )[0]
    )


# --- when anything is told


@pytest.mark.parametrize("said", ["We use Postgres for the job queue", "The job queue lives in Redis since March"])
def test_a_question_is_answered_without_a_model(busy: Store, said: str) -> None:
    save_memory(busy, said, say(busy, said, 1))
    made = told(busy, "where does the job queue live?", floor=0.5)
    assert said in made.text
    assert made.degraded == ()


@pytest.mark.invariant("A task is told the rule that bears on it, once; assent and thanks are told nothing")
@pytest.mark.parametrize(
    "said",
    """yes;Yes!;ok;ok go on;thanks;Thank you very much!;go ahead;continue;danke;Danke, mach weiter.;merci;merci beaucoup !;
    sí, gracias;はい;looks good to me;yes please do it;perfect, thanks;👍;;...;42;> the job queue lives in Redis""".split(
        ";"
    ),
)
def test_assent_thanks_and_going_on_ask_for_nothing(busy: Store, said: str) -> None:
    for number, body in enumerate(
        ("The job queue lives in Redis", "yes, thanks, that looks good, go on", "ok danke"), 1
    ):
        save_memory(busy, body, say(busy, body, number))
    made = told(busy, said.strip())
    assert (made.text, made.tokens, made.items) == ("", 0, ())


@pytest.mark.parametrize("asked", ["what is the capital of France?", "how do I roast coffee beans?", "tell me a joke"])
def test_what_nobody_spoke_of_is_told_nothing(busy: Store, asked: str) -> None:
    save_memory(busy, "The job queue lives in Redis since March", say(busy, "hello there", 1))
    assert told(busy, asked, floor=0.5).text == ""


@pytest.mark.invariant("A task is told the rule that bears on it, once; assent and thanks are told nothing")
@pytest.mark.parametrize(
    ("order", "is_told"),
    [
        ("Add a tenacity retry to the uploader", True),
        ("please move the uploader off its retry loop", True),
        ("Add a test", False),
        ("commit", False),
        ("Rename the settings page", False),
    ],
)
def test_an_order_is_told_the_rule_on_its_subject(busy: Store, order: str, is_told: bool) -> None:
    ident = rule(busy, "Always retry in the uploader with tenacity, never with a loop", 1)
    assert (ident in ids(told(busy, order, floor=0.5))) is is_told
    assert told(busy, order, floor=1.0).text == ""


def test_a_question_for_a_kind_of_statement_is_answered_by_what_was_stated_of_its_subject(busy: Store) -> None:
    ident = rule(busy, "I promised Ilse the tide report by Friday", 1)
    rule(busy, "The buoys are always drawn in red", 3)
    assert ids(told(busy, "what did I promise Ilse?", floor=0.5)) == [ident]
    assert ident not in ids(told(busy, "what did I promise Marten?", floor=0.5))


def test_a_long_task_is_told_the_rule_on_what_it_names(busy: Store) -> None:
    ident = rule(busy, "buoy numbers are strings with leading zeros, never parse them as integers", 1)
    say(busy, "The legend is drawn last.", 2)
    asked = "write the exporter for the buoys, one row for each buoy with its number and its colour"
    assert ident in ids(told(busy, asked, floor=0.5))
    assert ids(told(busy, f"yes, {asked}", floor=0.5)) == [ident], "talk that continues is told nothing else"
    assert ident not in ids(told(busy, "write the exporter for the lighthouses, one row for each tower", floor=0.5))


def test_the_best_of_a_small_store_is_not_told_where_it_bears_on_nothing_that_was_asked(store: Store) -> None:
    """Four texts in a space of four directions: the question lies on the first."""
    said = [
        "The queue lives in the jobs table",
        "Reviews go to Sarah on Mondays",
        "The logo is drawn by Kim",
        "Invoices are sent on the first",
    ]
    for number, body in enumerate(said):
        save_memory(store, body, say(store, body + ", as agreed", 2 * number + 1, session=f"s{number}"))
    # As long as a vector is that a model made: a quarter is 127.
    towards = [bytes(127 if place // 16 == number else 0 for place in range(64)) for number in range(4)]

    def write(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "four", 64, now=NOW)
        for kind in ("passage", "memory"):
            waiting = vectors.read_backlog(rows, kind, model, limit=9)
            made = [
                (seq, place, 0, len(body), towards[said.index(body.removesuffix(", as agreed"))])
                for seq, place, body in waiting
            ]
            vectors.add_vectors(rows, kind, model, made, reached=waiting[-1][0])

    store.write(write)
    made = told(store, ASKED, embed=lambda _: (towards[0], "four"), floor=0.5)
    assert "jobs table" in made.text and made.degraded == ()
    assert not any(word in made.text for word in ("Sarah", "Kim", "Invoices"))


def test_earlier_talk_is_quoted_with_its_speaker_and_the_same_bytes_each_time(store: Store) -> None:
    uuid = say(store, "the queue lives in the jobs table, polled every second", 2)
    made = told(store)
    assert ids(made) == [f"{uuid}#0"] and "(the assistant)" in made.text and "2026-03-01, session s1:" in made.text
    assert told(store) == made


@pytest.mark.invariant(
    "Of a memory and the passage it came from one is told; neither a question nor a look is an answer"
)
def test_of_a_memory_and_the_passage_that_states_it_one_is_told(store: Store) -> None:
    ident = state(store, "The queue lives in Redis on the second host", 1)
    made = told(store)
    assert ids(made) == [ident] and made.text.count("Redis") == 1


# --- what may be told


@pytest.mark.invariant("Neither a session's own talk nor another project's is quoted to it, and nothing twice")
def test_neither_the_sessions_own_talk_nor_another_projects_is_quoted(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 2)
    say(store, "the queue lives in a file", 4, root=THERE, session="s2")
    assert ids(told(store, session="s1")) == []
    assert ids(told(store)) == ["s1-2#0"]
    assert ids(told(store, root=THERE)) == ["s2-4#0"]


@pytest.mark.invariant(
    "In the place of what was overturned, what replaced it is told; what was forgotten or purged is not quoted either"
)
def test_a_decision_that_was_overturned_is_told_as_what_replaced_it(store: Store) -> None:
    state(store, "Use npm in the web client for packages", 1)
    new = state(store, "Use pnpm in the web client for packages, not npm", 3, session="s2")
    made = told(store, "what do we use in the web client for packages?")
    assert ids(made) == [new] and "Use npm" not in made.text


def test_what_replaced_a_memory_is_told_though_its_own_words_are_others(store: Store) -> None:
    old = state(store, "Use npm in the web client for packages", 1)
    new = state(store, "From now on everything there goes through pnpm", 3, session="s2")
    store.write(lambda rows: rows.run("update memories set superseded_by = :new where id = :old", new=new, old=old))
    made = told(store, "what do we use in the web client for packages?")
    assert new in ids(made) and old not in ids(made) and "Use npm" not in made.text


@pytest.mark.invariant("An echo says what only the old said, before the new was said, and is told nowhere as current")
def test_what_an_assistant_said_to_a_decision_is_not_quoted_as_current_when_that_was_overturned(store: Store) -> None:
    state(store, "Use npm in the web client for packages", 1)
    say(store, "Okay, I will use npm for packages.", 2)
    state(store, "Use pnpm in the web client for packages, not npm", 3, session="s2")
    while threads.step(store, model=None):
        pass
    made = told(store, "what do we use for packages?")
    assert "pnpm" in made.text
    assert not any("Okay" in line.partition("(before,")[0] for line in made.text.splitlines())


@pytest.mark.invariant(
    "Of a memory and the passage it came from one is told; neither a question nor a look is an answer"
)
@pytest.mark.parametrize(
    "said", ["Where does the queue live?", "Let me look where the queue lives.", "Good. I'll check the queue first."]
)
def test_neither_an_earlier_question_nor_a_look_is_quoted_as_an_answer(store: Store, said: str) -> None:
    say(store, said, 2)
    say(store, "The queue lives in the jobs table.", 4)
    assert ids(told(store)) == ["s1-4#0"]


@pytest.mark.invariant(
    "In the place of what was overturned, what replaced it is told; what was forgotten or purged is not quoted either"
)
def test_what_was_forgotten_is_not_quoted_either(store: Store) -> None:
    body = "The queue lives in the jobs table"
    ident = state(store, body, 1)
    assert body in told(store).text

    def forget(rows: Rows) -> None:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        remember.forget(rows, memory, key=store.hash_key, now="2026-12-01T00:00:00.000Z", by_person=True)

    store.write(forget)
    assert told(store).text == ""


@pytest.mark.parametrize("said", ["no, that's wrong: {}", "Good, and as I said, {}", "as agreed - {}", "{}"])
def test_what_was_forgotten_is_not_quoted_from_within_a_longer_sentence(store: Store, said: str) -> None:
    body = "the config key is database_url, not db_url"
    ident = save_memory(store, body, say(store, said.format(body), 1))
    asked = "which config key is the database url?"
    assert "database_url" in told(store, asked).text

    def forget(rows: Rows) -> None:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        remember.forget(rows, memory, key=store.hash_key, now="2026-12-01T00:00:00.000Z", by_person=True)

    store.write(forget)
    say(store, said.format(body), 3, session="s2")
    assert told(store, asked).text == ""


def forget(store: Store, ident: str) -> None:
    def write(rows: Rows) -> None:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        remember.forget(rows, memory, key=store.hash_key, now="2026-12-01T00:00:00.000Z", by_person=True)

    store.write(write)


@pytest.mark.parametrize(
    "said",
    [
        "Two things:\n- {}\n- the pager rotates weekly",
        "1. lunch is at noon\n2. {}\n3. the pager rotates weekly",
        "ok, btw {}, thanks",
    ],
)
def test_what_was_forgotten_is_not_quoted_from_within_a_list_or_asides(store: Store, said: str) -> None:
    body = "the config key is database_url, not db_url"
    ident = save_memory(store, body, say(store, said.format(body), 1))
    asked = "which config key is the database url?"
    assert "database_url" in told(store, asked).text
    forget(store, ident)
    say(store, said.format(body), 3, session="s2")
    assert "database_url" not in told(store, asked).text


def test_of_what_was_replaced_in_part_nothing_is_told_once_its_rest_was_forgotten(store: Store) -> None:
    state(
        store,
        "the api always listens on port 8443; the nightly backup of the ledger always goes to the glacier bucket kodiak",
        1,
    )
    newer = state(store, "the api always listens on port 9443 instead of 8443", 3)
    every = store.read(lambda rows: memories.list_memories(rows, projects=None))
    (rest,) = [one.id for one in every if "kodiak" in one.text and "port" not in one.text]
    forget(store, rest)
    forget(store, newer)
    assert store.read(lambda rows: memories.list_memories(rows, projects=None)) == []
    assert "kodiak" not in told(store, "where does the nightly backup of the ledger go? to the glacier bucket?").text


@pytest.mark.parametrize("said", ["{}", "Understood. {} Now the tests of the web client."])
def test_a_forgotten_memory_of_several_sentences_is_not_quoted_either(store: Store, said: str) -> None:
    body = "The queue lives in the jobs table.{}Its worker polls every second."
    ident = save_memory(store, body.format(" "), say(store, said.format(body.format("\n")), 1))
    assert "jobs table" in told(store).text

    def forget(rows: Rows) -> None:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        remember.forget(rows, memory, key=store.hash_key, now="2026-12-01T00:00:00.000Z", by_person=True)

    store.write(forget)
    assert told(store).text == ""


#: As long as a passage but for a short sentence, which makes the next one open a passage of its own.
TALK = "Meanwhile " + " ".join(f"word{number}" for number in range(38))


@pytest.mark.parametrize(
    "said, body",
    [
        (f"{TALK}. {{}} {TALK}.", "The queue lives in the jobs table. Its worker polls every second."),
        ("{}.", f"The queue lives in the jobs table {TALK} so that its worker polls every second"),
    ],
    ids=["sentences", "one long sentence"],
)
def test_a_forgotten_memory_is_told_from_none_of_the_passages_that_hold_a_part_of_it(
    store: Store, said: str, body: str
) -> None:
    ident = save_memory(store, body, say(store, said.format(body), 1))
    asked = "where does the queue live, and how often does its worker poll?"
    assert (
        "queue" in told(store, asked).text
        and len(store.read(lambda rows: passages.passages_of_turns(rows, [1]))[1]) > 1
    )

    def forget(rows: Rows) -> None:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        remember.forget(rows, memory, key=store.hash_key, now="2026-12-01T00:00:00.000Z", by_person=True)

    store.write(forget)
    again = told(store, asked).text
    assert "queue" not in again and "polls" not in again


def test_what_was_forgotten_is_looked_up_at_once_for_all_that_is_found(store: Store) -> None:
    ident = save_memory(store, "The kettle is on the third floor", say(store, "The kettle is on the third floor", 1))
    for number in range(20):
        say(
            store,
            f"The queue, number {number}: it lives in table {number}, and its worker sleeps.",
            3,
            session=f"q{number}",
        )

    def asked() -> int:
        def read(rows: Rows) -> int:
            count = 0

            def noted(*_: object) -> bool:
                nonlocal count
                count += 1
                return True

            rows.connection.set_exec_trace(noted)
            try:
                prompt.recall(
                    rows, places=visibility.scopes(rows, HERE), session_id="s9", prompt=ASKED, floor=EVERYTHING, max_tokens=350,
                    max_items=6, embed=None, key=store.hash_key,
                )  # fmt: skip
            finally:
                rows.connection.set_exec_trace(None)
            return count

        return store.read(read)

    before = asked()

    def forget(rows: Rows) -> None:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        remember.forget(rows, memory, key=store.hash_key, now="2026-12-01T00:00:00.000Z", by_person=True)

    store.write(forget)
    assert asked() <= before + 10


@pytest.mark.invariant(
    "In the place of what was overturned, what replaced it is told; what was forgotten or purged is not quoted either"
)
def test_of_what_was_purged_neither_the_words_nor_a_receipt_is_left(store: Store) -> None:
    uuid = say(store, "since spring the billing queue lives behind its own volume on the second host", 4)
    made = told(store)
    assert ids(made) == [f"{uuid}#0"]
    note(store, made)
    seq = store.read(lambda rows: rows.value("select seq from turns where uuid = :uuid", uuid=uuid))
    store.write(lambda rows: purge.purge_turn(rows, seq, store.hash_key))
    assert told(store, session="s8").text == ""
    left = "select count(*) from injection_items where memory_id like :id"
    assert store.read(lambda rows: rows.value(left, id=f"{uuid}%")) == 0


@pytest.mark.invariant("Neither a session's own talk nor another project's is quoted to it, and nothing twice")
def test_a_session_is_told_a_passage_once_and_a_memory_once(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 1)
    state(store, "The queue has a dead letter table for jobs that failed twice", 3)
    made = told(store)
    assert len(made.items) == 2
    note(store, made)
    assert told(store).text == ""
    assert told(store, session="s8").text == made.text


@pytest.mark.invariant("A task is told the rule that bears on it, once; assent and thanks are told nothing")
def test_rules_are_told_once(busy: Store) -> None:
    ident = rule(busy, "Always retry in the uploader with tenacity, never with a loop", 1)
    made = told(busy, "Add a tenacity retry to the uploader")
    assert ident in ids(made)
    note(busy, made)
    assert ident not in ids(told(busy, "now retry in the uploader with tenacity"))


def test_sub_agents_are_not_quoted(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 2)
    store.write(lambda rows: rows.run("update sessions set parent = 's0' where id = 's1'"))
    assert told(store).text == ""


def test_what_only_a_hook_reported_is_not_quoted(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 2)
    assert told(store).text != ""
    store.write(lambda rows: rows.run("update turns set source = 'hook'"))
    assert told(store).text == ""


def test_what_stands_in_a_transcript_that_a_tool_wrote_is_not_quoted(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 2)

    def write(rows: Rows) -> None:
        rows.run("update sessions set path = '/t/s1.jsonl'")
        tampered_transcripts.record_tampered(
            rows, ["s1.jsonl"], at=NOW, hashed=lambda name: tokens.keyed_hash(name, store.hash_key)
        )

    store.write(write)
    assert told(store).text == ""


def test_what_the_instruction_files_say_is_not_repeated(store: Store) -> None:
    say(store, "The queue lives in the jobs table of Postgres.", 2)
    say(store, "The queue has a dead letter table for jobs that failed twice.", 4)
    assert len(told(store).items) == 2
    said = "# Notes\n\n- The queue lives in the jobs table of Postgres.\n"
    one = instruction_rows.Instruction(path=f"{HERE}/CLAUDE.md", kind="project", root=HERE, text=said, text_hash="h")
    store.write(lambda rows: instruction_rows.replace_instructions(rows, project(rows, HERE), [one], now=NOW))
    made = told(store)
    assert "dead letter" in made.text and "of Postgres" not in made.text


# --- threads


def link(store: Store, older: str, newer: str, sure: float) -> None:
    def write(rows: Rows) -> None:
        seqs = [
            int(
                rows.value(
                    "select p.seq from passages p join turns t on t.seq = p.turn_seq where t.uuid = :uuid", uuid=one
                )
            )
            for one in (older, newer)
        ]
        passages.link_passages(rows, seqs[0], seqs[1], sure, limit=3)

    store.write(write)


@pytest.mark.invariant(
    "From what was said first a thread leads to what was said later on the same matter, which is told in its place; nothing is superseded by that"
)
def test_what_was_said_later_is_told_and_not_what_it_may_have_changed(store: Store) -> None:
    old = say(store, "the queue lives in the jobs table", 1)
    new = say(store, "from today everything asynchronous goes through Kafka", 3, session="s2")
    link(store, old, new, 0.9)
    made = told(store)
    assert ids(made) == [f"{new}#0"]


def test_what_is_cold_as_a_memory_is_not_told_and_leads_to_what_followed_it(store: Store) -> None:
    rule(store, "the queue lives in the jobs table", 1)
    new = say(store, "from today everything asynchronous goes through Kafka", 3, session="s2")
    link(store, "s1-1", new, 0.9)
    store.write(lambda rows: rows.run("update memories set hot_until = -1, warm_until = -1"))
    assert ids(told(store)) == [f"{new}#0"]


def test_a_thread_is_followed_to_its_end(store: Store) -> None:
    said = [
        say(store, f"{one} holds what is asynchronous", 2 * n + 1, session=f"s{n + 1}")
        for n, one in enumerate(("the queue", "Redis", "Kafka"))
    ]
    for older, newer in itertools.pairwise(said):
        link(store, older, newer, 0.9)
    assert ids(told(store))[0] == f"{said[2]}#0"


def test_what_replaced_a_memory_names_it_as_before_only_where_that_is_certain(store: Store) -> None:
    state(store, "The api listens on port 8443", 1)
    new = state(store, "The api listens on port 9443", 3, session="s2")
    made = told(store, "on which port does the api listen?")
    assert ids(made) == [new] and "9443 (before, 2026-03-01: The api listens on port 8443)" in made.text
    old = state(store, "Use npm in the web client for packages", 5)
    other = state(store, "From now on everything there goes through pnpm", 7, session="s2")
    store.write(lambda rows: rows.run("update memories set superseded_by = :new where id = :old", new=other, old=old))
    made = told(store, "what do we use in the web client for packages?")
    assert other in ids(made) and "before" not in made.text


def test_a_thread_leads_to_nothing_that_may_not_be_told(store: Store) -> None:
    old = say(store, "the queue lives in the jobs table", 1)
    new = say(store, "from today everything asynchronous goes through Kafka", 3, session="s2")
    link(store, old, new, 0.9)
    assert "Kafka" not in told(store, session="s2").text, "it stands in its context"
    store.write(lambda rows: rows.run("update turns set source = 'hook' where uuid = :uuid", uuid=new))
    assert ids(told(store)) == [f"{old}#0"]


def test_a_thread_leads_to_nothing_that_was_moved_to_another_project_since(store: Store) -> None:
    old = say(store, "the queue lives in the jobs table", 1)
    new = say(store, "from today everything asynchronous goes through Kafka", 3, session="s2")
    link(store, old, new, 0.9)
    assert f"{new}#0" in ids(told(store))

    def move(rows: Rows) -> None:  # as a split does
        there = project(rows, THERE)
        rows.run("update turns set project_seq = :there where uuid = :uuid", there=there, uuid=new)

    store.write(move)
    assert ids(told(store)) == [f"{old}#0"]


def test_threads_that_lead_back_end(store: Store) -> None:
    one = say(store, "the queue lives in the jobs table", 1)
    other = say(store, "the queue lives in Kafka by now", 3, session="s2")
    link(store, one, other, 0.9)
    link(store, other, one, 0.9)
    assert len(told(store).items) <= 2


# --- the whole, and where to read on


def test_an_assistants_question_leads_to_what_was_ruled(store: Store) -> None:
    say(store, "Shall the queue retry a job that failed?", 2)
    ruling = say(store, "three times, then it goes to the dead letter table", 3)
    made = told(store, "the queue retries a failed job for ever")
    assert f"{ruling}#0" in ids(made)
    assert "asked: Shall the queue retry a job that failed? ruled: three times" in made.text


def test_what_was_decided_is_told_though_only_the_trouble_resembles_the_prompt(busy: Store) -> None:
    say(busy, "after a sync the same contact shows up twice in the address book", 1)
    say(busy, "Both importers write it, and neither looks at the external id.", 2)
    ruling = say(busy, "match by the external id everywhere, never by the name", 3)
    assert f"{ruling}#0" in ids(told(busy, "a contact shows up twice in the address book after the sync"))


def test_a_conversation_that_may_bear_on_the_prompt_is_pointed_at_once(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 1)
    sure = next(floor / 100 for floor in range(99, 0, -1) if told(store, floor=floor / 100).text)
    assert ids(told(store, floor=prompt.MIN_POINTER_SHARE * sure)) == ["s1-1#0"], "where it is sure enough it is told"
    made = told(store, floor=sure)
    assert ids(made) == ["s1"] and "`csmd show s1-1`" in made.text and made.tokens <= 70
    note(store, made)
    assert told(store, floor=sure).text == ""
    assert told(store, session="s8", floor=sure).text == made.text


@pytest.mark.parametrize("tells", ["a passage", "a memory"])
def test_a_conversation_that_was_told_in_lines_is_not_pointed_at(store: Store, tells: str) -> None:
    if tells == "a memory":
        state(store, "the queue lives in the jobs table", 1)
    else:
        say(store, "the queue lives in the jobs table", 1)
    sure = next(floor / 100 for floor in range(99, 0, -1) if told(store, floor=floor / 100).text)
    lines = told(store, floor=prompt.MIN_POINTER_SHARE * sure)
    assert ids(told(store, floor=sure)) == ["s1"] != ids(lines)
    note(store, lines)
    assert told(store, floor=sure).text == ""


DATA = {
    "a piece of JSON": '"queue": "the jobs table", "retries": 3,',
    "a cut JSON": '"queue": "the jobs table that the work',
    "a row of a table": "| queue | the jobs table | 3 |",
    "a cut row": "queue | the jobs table | 3",
    "markup": "<li>the queue lives in the jobs table</li>",
}


@pytest.mark.parametrize("fragment", DATA.values(), ids=DATA)
@pytest.mark.parametrize("speaker", ["user", "assistant"])
def test_a_fragment_of_data_is_neither_told_nor_pointed_at(store: Store, fragment: str, speaker: str) -> None:
    say(store, fragment, {"user": 1, "assistant": 2}[speaker])
    for floor in (0.0, 0.2, 0.5):
        assert told(store, floor=floor).text == ""


# --- limits


def test_a_prompt_that_pastes_a_page_is_read_at_both_ends(busy: Store) -> None:
    uuid = say(busy, "The kangaroo gateway listens on port 8443.", 1)
    pasted = "which port does the kangaroo gateway use?\n" + "2026-01-01 INFO worker polled nothing\n" * 20_000
    assert f"{uuid}#0" in ids(told(busy, pasted))


@pytest.mark.invariant(
    "What cannot be read in time costs its part of an answer; a large store's next prompt is rehearsed, a prompt a step"
)
@pytest.mark.parametrize("late", ["fulltext.text_hits", "vectors.find_vector_hits", "fulltext.count_rows_with"])
def test_what_cannot_be_read_in_time_costs_its_own_part_of_the_answer_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    say(store, "the queue lives in the jobs table", 2)
    towards = bytes([127] * 16 + [0] * 48)

    def write(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "four", 64, now=NOW)
        ((seq, place, body),) = vectors.read_backlog(rows, "passage", model, limit=9)
        vectors.add_vectors(rows, "passage", model, [(seq, place, 0, len(body), towards)], reached=seq)

    store.write(write)

    def stopped(*_: object, **__: object) -> None:
        raise DeadlineExceeded("a read was stopped at its deadline")

    monkeypatch.setattr(f"csmd.recall.hybrid_search.{late}", stopped)
    made = told(store, embed=lambda _: (towards, "four"))
    assert ids(made) == ["s1-2#0"]
    assert [why.partition(":")[0] for why in made.degraded] == ["vectors" if "vector" in late else "words"]


def test_a_prompt_that_utf_8_cannot_carry_is_answered_as_without_what_it_cannot(store: Store) -> None:
    state(store, "The queue lives in Redis, so that a restart loses nothing.", 1)
    embedded: list[str] = []

    def embed(said: str) -> tuple[bytes, str]:
        embedded.append(said)
        raise EmbeddingUnavailable("none")

    made = told(store, f"{ASKED} in `the \ud800 worker` \udcff\0", embed=embed)
    assert "The queue lives in Redis" in made.text
    assert embedded == [f"{ASKED} in `the ? worker` ?"]


@pytest.mark.parametrize("seen", [1, 2, 3])
def test_of_what_the_context_holds_something_newer_than_nothing_older_is_told(store: Store, seen: int) -> None:
    said = [
        say(store, f"{one} holds what is asynchronous", 2 * n + 1, session=f"s{n + 1}")
        for n, one in enumerate(("the queue", "Redis", "Kafka", "NATS"))
    ]
    for older, newer in itertools.pairwise(said):
        link(store, older, newer, 0.9)
    made = told(store)
    assert ids(made)[0] == f"{said[3]}#0"
    note(store, replace(made, items=(replace(made.items[0], id=f"{said[seen]}#0"),)))
    assert not {f"{one}#0" for one in said[: seen + 1]} & set(ids(told(store)))


# --- what a prompt's own words lead to


def test_what_follows_a_statement_in_the_context_is_not_told_in_its_place(busy: Store) -> None:
    rule(busy, "never edit the generated client in api/gen", 1)
    say(busy, "Noted, api/gen stays untouched and the generated client too.", 2)
    asked = "patch the timeout in the generated client in api/gen"
    brief = told(busy, asked, floor=0.5)
    assert brief.items, "in a session that knows nothing of it, it is told"
    note(busy, brief)
    assert not told(busy, asked, floor=0.5).items


def test_a_turn_of_which_the_context_has_another_matter_still_leads_to_its_answer(busy: Store) -> None:
    ban = "never edit the generated client in api/gen"
    ident = save_memory(busy, ban, say(busy, f"{ban}. And which timezone shall the harbour sensors report in?", 1))
    answer = say(busy, "I decided on UTC for the harbour sensors, because the tide tables use UTC as well.", 2)
    asked = "which timezone do the harbour sensors report in?"
    assert f"{answer}#0" in ids(told(busy, asked))
    brief = told(busy, "patch the timeout in the generated client in api/gen")
    note(busy, replace(brief, items=tuple(replace(item, id=ident) for item in brief.items[:1])))
    assert f"{answer}#0" in ids(told(busy, asked))


#: What a line shares with a prompt -> its share of the rare words, its cosine, the conversations, whether it may be needed.
LIKENESSES = {
    "a question's few words": (0.3, 0.3, 40, True),
    "less than a question's few words": (0.2, 0.3, 40, False),
    "words and meaning": (0.6, 0.6, 40, True),
    "meaning alone": (0.05, 0.9, 40, False),
    "words alone": (0.9, 0.1, 40, False),
    "a little of both, among many conversations": (0.35, 0.35, 40, False),
    "a little of both, among few conversations": (0.35, 0.35, 6, True),
    "too few words, among few conversations": (0.2, 0.9, 6, False),
}


def check(name: str) -> None:
    shared, meaning, sessions, may_need = LIKENESSES[name]
    line = a_line("the queue lives in Redis", values={"shared": shared, "meaning": meaning})
    hits = [replace(line.statement, features={"shared": shared}) for _ in range(prompt.FIRST_HITS)]
    rarity = {"queue": 1.0, "redis": 1.0, "live": 1.0}
    terms = ranking.SearchTerms(rarity=rarity, sessions=sessions, asks="question" in name)
    assert (prompt.rate_need(hits, [line], terms) > 0) is may_need


@pytest.mark.parametrize("name", LIKENESSES)
def test_the_more_conversations_there_are_the_more_like_the_prompt_a_line_must_be(name: str) -> None:
    check(name)


#: A user's statement that is like a prompt -> whether it is needed surely: a rule is, an order that says "must" is not.
STATEMENTS = {
    "we always export the tide tables with semicolons, never with commas": True,
    "tide tables stay in local time everywhere, because the harbour office prints them": True,
    "today I'd like us to begin with the tide tables, which have to be exported without gaps": False,
    "I was told that the harbour office always wants its tide tables printed": False,
}


@pytest.mark.parametrize("stated", STATEMENTS)
def test_a_users_rule_is_needed_surely_and_an_order_of_the_day_is_not(stated: str) -> None:
    terms = ranking.SearchTerms(rarity=dict.fromkeys(("tide", "tabl", "export", "harbour", "pontoon"), 0.9), sessions=9)
    line = a_line(stated)
    values = ranking.line_features(stated, terms, {"meaning": 0.5}, by_user=True) | {"shared": 0.5}
    statement = replace(line.statement, memory=memory(stated, tier="daily"))
    sure = prompt.rate_line(replace(line, statement=statement, values=values), terms)
    assert (sure == prompt.RULE_CERTAINTY) is STATEMENTS[stated]


@given(st.integers(1, 200))
def test_the_fewer_conversations_there_are_the_less_says_that_the_first_hits_are_of_one(sessions: int) -> None:
    hits = [a_line("the queue lives in Redis", number).statement for number in range(1, 8)]
    few, more = (ranking.SearchTerms(rarity={"queue": 1.0}, sessions=count) for count in (sessions, sessions + 1))
    assert prompt.rate_conversation(hits, few) < prompt.rate_conversation(hits, more) <= 0.7
