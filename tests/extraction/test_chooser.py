"""What is chosen of a turn and of a session, how it is told, and that whatever comes in the limits hold."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from csmd.conversation import StoredTurn
from csmd.extraction import candidate_passages, chooser, passage_scores
from csmd.extraction.candidate_passages import MAX_CHARACTERS
from csmd.extraction.exchange_sources import Role, Source, find_sources
from csmd.extraction.passage_scores import FEATURES, MAX_WORDS, load_weights
from csmd.knowledge import Statement
from csmd.text import prose, sentence
from csmd.text.tokens import content_words
from csmd.vocabulary import CATEGORIES, TurnKind

CAUSE = (
    "The root cause: `close` is called before `flush`, so the last rows of a delivery are lost when the reader is slow."
)


def turn(text: str, kind: TurnKind = "user", seq: int = 1) -> StoredTurn:
    return StoredTurn(
        seq=seq, uuid=f"uuid-{seq}", session_id="s", project_seq=1, kind=kind, text=text, at="", ordinal=seq
    )


def said(text: str, kind: TurnKind = "user") -> list[str]:
    return [statement.text for statement in chooser.choose_from_turn(turn(text, kind))]


def session(*told: tuple[Role, str]) -> list[Source]:
    return [
        Source(turn(text, "user" if role == "prompt" else "assistant", seq), role)
        for seq, (role, text) in enumerate(told, 1)
    ]


# --- what is stated in a few words


@pytest.mark.invariant("What a user states is remembered however few words it has")
@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("add a retry, and by the way I prefer pathlib over os.path", "I prefer pathlib over os.path"),
        ("no, that's wrong: the key is `database_url`, not `db_url`", "the key is `database_url`, not `db_url`"),
        ("actually the tests live in spec/, not tests/", "the tests live in spec/, not tests/"),
        (
            "remember that the staging server is only reachable over VPN",
            "the staging server is only reachable over VPN",
        ),
        ("**We use** `uv` here, *not* pip", "We use `uv` here, not pip"),
        ("we should keep\nthe retries in `client.py`, not in the callers", None),
        ("don't touch the vendor folder", "don't touch the vendor folder"),
        ("call me Ana", "call me Ana"),
        ("Make small parcels, I carry them home.", None),
        (
            "The limit of eight parcels is too low for the shop. Make that 40.",
            "The limit of eight parcels is too low for the shop. Make that 40.",
        ),
        ("No, don't post by rail, post by sea as in the other shops.", None),
    ],
)
def test_what_is_stated_in_a_few_words_stands_alone_without_what_leads_into_it(
    text: str, statement: str | None
) -> None:
    found = said(text)
    assert len(found) == 1
    assert "\n" not in found[0]
    if statement:
        assert found == [statement]


@pytest.mark.invariant("An order or a question of the day is no statement")
@pytest.mark.parametrize(
    "text",
    [
        "fix it pls",
        "make the modal bigger",
        "what does the loader do?",
        "commit this and push",
        "Work on the next ticket and continue",
        "can you check whether the tests still pass?",
        "Pack that, don't post it.",
        "Never met such a parcel.",
        "Stop, wait with the parcels until I've weighed them.",
        "No, don't open the blue one, open the other one.",
        "Never mind the parcel, it is at the door.",
        "leave the parcels, I'll post them myself",
    ],
)
def test_an_order_or_a_question_of_the_day_is_no_statement(text: str) -> None:
    assert said(text) == []


@pytest.mark.invariant("Two facts in one prompt are two memories of their own kinds")
def test_two_facts_in_one_prompt_are_two_memories_of_their_own_kinds() -> None:
    found = chooser.choose_from_turn(
        turn(
            "Write fizz.py that prints fizzbuzz. I prefer double quotes in Python. "
            "Also we decided to use SQLite for the cache because it needs no server."
        )
    )
    assert {(statement.gate, statement.category) for statement in found} == {
        ("behavioral", "preference"),
        ("epistemic", "decision"),
    }
    assert not any("fizz" in statement.text for statement in found)


@pytest.mark.invariant("A list of more statements than a turn may give is told together")
@pytest.mark.invariant(
    "A turn gives at most three statements, and none that nobody said. Distilling again changes nothing"
)
def test_a_turn_never_gives_more_than_three_and_a_list_of_more_is_told_together() -> None:
    listed = [
        "I prefer tabs over spaces in Makefiles", "we use Postgres for the job queue", "we decided to drop Python 3.9",
        "from now on run the linter before committing", "please remember that prices are in cents",
    ]  # fmt: skip
    found = said("\n".join(f"- {one}" for one in listed))
    assert 1 < len(found) <= 3
    assert "Makefiles" in found[0] and "Postgres" in found[0]


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
def test_who_says_it_is_its_authority() -> None:
    assert [one.authority for one in chooser.choose_from_turn(turn(CAUSE))] == ["user"]
    assert [one.authority for one in chooser.choose_from_turn(turn(CAUSE, "assistant"))] == ["assistant"]


@given(
    st.sampled_from(["user", "relayed", "assistant", "summary", "command", "notification", "tool_call", "tool_result"]),
    st.sampled_from(
        [
            "no, that's wrong: we always use uv here, not pip",
            "I prefer tabs. From now on never push to main, because the mirror breaks",
            CAUSE,
            "remember that the staging host is only reachable over VPN",
        ]
    ),
    st.text(max_size=80),
)
def test_only_the_user_speaks_for_the_user_and_what_outsiders_say_is_no_statement(
    kind: TurnKind, text: str, before: str
) -> None:
    found = chooser.choose_from_turn(turn(text, kind), last_reply=before)
    assert {statement.authority for statement in found} <= {"user" if kind == "user" else "assistant"}
    assert not found or kind in ("user", "relayed", "assistant")
    assert kind == "user" or all(statement.gate != "correction" for statement in found)


@pytest.mark.invariant("The assistant's sentence that a user sets down again is not the user's")
def test_the_assistants_sentence_that_a_user_sets_down_again_is_not_the_users() -> None:
    quoted = "Invoices of the last three years are stored in Postgres, behind the old gateway."
    for denial in ("this is not fully true", "hm, is it?"):
        found = chooser.choose_from_turn(turn(f"{quoted}\n\n{denial}"), last_reply=f"{quoted} Shall I use pnpm?")
        assert not any("three years" in statement.text for statement in found)
    assert said(quoted)


# --- passages


@pytest.mark.invariant(
    "A passage stays in its section, begins with what can stand alone, and is led into by the section's title"
)
def test_a_passage_stays_in_its_section_and_begins_with_what_can_stand_alone() -> None:
    text = "# Readers\nRows are read in pairs. It saves memory.\n\n# Writers\nRows are written one by one."
    found = [one.text for one in candidate_passages.find_passages(prose.outline(text), "assistant")]
    assert found == ["Readers: Rows are read in pairs. It saves memory.", "Writers: Rows are written one by one."]


@pytest.mark.invariant("What narrates, counts or was printed is left out of what is told, and each refusal is needed")
def test_what_narrates_counts_or_was_printed_is_left_out_of_a_passage() -> None:
    text = f"Let me look at the reader now. {CAUSE} All 42 tests passed.\nTraceback (most recent call last)"
    assert said(text, "assistant") == [CAUSE]


@pytest.mark.invariant("Sections of steps, checks and files state nothing")
@pytest.mark.parametrize("title", ["Verification", "Files to change", "Next steps"])
def test_sections_of_steps_and_checks_state_nothing(title: str) -> None:
    assert candidate_passages.find_passages(prose.outline(f"## {title}\n{CAUSE}"), "assistant") == []
    assert candidate_passages.find_passages(prose.outline(f"## Context\n{CAUSE}"), "assistant") != []


@pytest.mark.parametrize(
    "text",
    [
        "Now let me check whether the config always wins because of the issue with `a`.",
        "- [ ] The issue was caused by `a` instead of `b`",
        "```python\n# the issue was caused by x because it now uses y\nx = 1\n```",
        "| the issue was | caused by `x` because |",
        "+the root cause was fixed because `x` now uses `y` instead",
        "cmd/main.go:12:4: the issue was caused by `x` because it is missing",
    ],
)
def test_noise_of_an_assistant_is_no_statement(text: str) -> None:
    assert said(text, "assistant") == []


@pytest.mark.invariant(
    "A turn gives at most three statements, and none that nobody said. Distilling again changes nothing"
)
@pytest.mark.parametrize(
    "text",
    [
        "<command-message>we use uv here, not pip</command-message>",
        "<system-reminder>We always use uv here, not pip.</system-reminder>",
        "<csmd-memory>we use uv here, not pip</csmd-memory>",
        "[Request interrupted by user] we use uv here, not pip",
        "Caveat: The messages below were generated; we use uv here, not pip",
        "> we always use uv here, not pip",
    ],
)
def test_what_nobody_said_is_refused(text: str) -> None:
    assert said(text) == []


# --- a session


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Our export drops the last row of every file without a newline, fix it please", "Our export drops the last row of every file without a newline"),
        ("by the way, the staging database is reset every night, danke", "the staging database is reset every night"),
    ],
)  # fmt: skip
def test_no_residue_of_talk_stands_in_what_is_told(text: str, told: str) -> None:
    assert said(text) == [told]


def test_who_thinks_aloud_corrects_nobody() -> None:
    aloud = (
        "Perhaps that is wrong and we should not keep the invoices in one bucket but in one bucket for each customer."
    )
    assert [one.gate for one in chooser.choose_from_turn(turn(aloud)) if one.gate == "correction"] == []
    plain = chooser.choose_from_turn(
        turn("No, that is wrong: the invoices are not in one bucket but in one bucket for each customer.")
    )
    assert [one.gate for one in plain] == ["correction"]


@pytest.mark.parametrize(
    "text", ["I fixed the greenhouse door by oiling both of its hinges", "We've now moved `valve()` into `tap()`"]
)
def test_what_was_done_is_no_trap_and_a_short_order_no_fact(text: str) -> None:
    assert sentence.parse(text, "assistant").kind == "reports"
    assert said("add a gauge for the boiler") == said("fix the login page") == []


LINES = st.sampled_from(
    [
        "From now on always run the smoke suite before staging goes live, never skip it.", "Notes of the review:", "- old keys may stay (2024)",
        "- our printers speak a protocol of 1998", "> quoted: never touch the vault", "# Heading", "", "    moved in: we hash with md5",
        "I prefer short names in loops.", "```", "please have a look at the log",
    ]
)  # fmt: skip


@given(st.lists(LINES, max_size=8), st.sampled_from("\r\x0b\x0c\x1c\x85\u2028\u2029"))
def test_the_same_is_chosen_whatever_breaks_the_lines(lines: list[str], mark: str) -> None:
    assert said(mark.join(lines)) == said("\n".join(lines))


@pytest.mark.invariant("What the session said already is not said again, and no reply repeats what its prompt stated")
def test_what_the_session_said_already_is_not_said_again() -> None:
    once = session(("prompt", "why are rows lost?"), ("reply", CAUSE))
    again = session(
        ("prompt", "why are rows lost?"), ("reply", CAUSE), ("prompt", "tell me once more"), ("reply", CAUSE)
    )
    assert len(chooser.choose(once)) == len(chooser.choose(again)) == 1
    known = [chooser.EarlierStatement(one.content, by_user=False) for one in chooser.choose(once)]
    assert chooser.choose(once, earlier=known) == []


@pytest.mark.invariant("What the session said already is not said again, and no reply repeats what its prompt stated")
def test_short_statements_that_share_a_word_are_two() -> None:
    found = chooser.choose(
        session(("prompt", "I prefer herons in tests."), ("prompt", "I prefer quokkas for the client."))
    )
    assert [one.statement.text for one in found] == ["I prefer herons in tests.", "I prefer quokkas for the client."]


@pytest.mark.invariant("What the session said already is not said again, and no reply repeats what its prompt stated")
def test_a_reply_that_repeats_its_prompt_gives_nothing_and_the_prompt_cites_it() -> None:
    found = chooser.choose(session(("prompt", CAUSE), ("reply", f"You are right. {CAUSE}")))
    assert [(one.turn.uuid, one.statement.also) for one in found] == [("uuid-1", ("uuid-2",))]


@pytest.mark.invariant(
    "An agent's report gives no statement; a compaction's summary, which tells of hours, up to three"
)
def test_an_agents_report_gives_nothing_and_a_summary_up_to_three() -> None:
    parts = [
        (
            "The exporter must close each file before it is renamed, because the watcher reads it at once and locks it. "
            "Where it cannot, it should wait for `unlock` instead of trying again."
        ),
        (
            "Never start two importers on one queue: both take the same orders, and customers get every delivery twice. "
            "The `lease` of a message must only be given back when its order was written."
        ),
        (
            "Prices are kept in cents and never as floats, since rounding lost money whenever a discount was applied. "
            "A `Money` must be built by `from_text` only, which keeps what the customer typed."
        ),
        (
            "The search index needs `rebuild --all` after each migration, otherwise old columns are returned to clients. "
            "It must not run while the nightly `vacuum` does."
        ),
    ]
    text = "\n\n".join(f"## Lesson {number}\n{part}" for number, part in zip("abcd", parts, strict=True))
    assert chooser.choose(session(("prompt", "go"), ("report", text))) == []
    assert len(chooser.choose(session(("prompt", "go"), ("reply", text)))) == 1
    assert len(chooser.choose(session(("prompt", "go"), ("summary", text)))) == 3


# --- the model


@pytest.mark.invariant("The models that choose are readable and small; no feature is a place or the kind of a source")
def test_no_feature_tells_the_kind_of_source_or_the_place_and_every_one_has_a_weight() -> None:
    assert set(load_weights().passage) == set(FEATURES)
    assert not {name for name in FEATURES if any(word in name for word in ("role", "place", "first", "last", "reply"))}
    assert len(FEATURES) <= 24


def test_features_lie_between_0_and_1() -> None:
    text = f"# Decisions\n{CAUSE}\n" + "\n".join(
        f'- `item_{n}` must be kept, and "never" be dropped' for n in range(40)
    )
    found = candidate_passages.find_passages(prose.outline(text), "user")
    for one in found:
        values = passage_scores.measure_features(one, user=True, prompt_content=frozenset({"rows"}), among=len(found))
        assert all(0 <= value <= 1 for value in values)


@pytest.mark.invariant("What narrates, counts or was printed is left out of what is told, and each refusal is needed")
@pytest.mark.parametrize(
    ("text", "speaker", "kind"),
    [
        ("Now let me read the loader", "assistant", "narrates"),
        ("All 12 tests passed", "user", "reports"),
        ("what does it do?", "user", "asks"),
        ("commit this", "user", "orders"),
        ("Traceback (most recent call last):", "user", "printed"),
        ("the token is [redacted:key]", "user", "printed"),
        ("loader.py: added a check", "assistant", "reports"),
    ],
)
def test_each_kind_that_passes_is_left_out_and_a_plain_fact_is_not(
    text: str, speaker: sentence.Speaker, kind: sentence.Kind
) -> None:
    assert sentence.parse(text, speaker).kind == kind
    assert sentence.is_passing(text, speaker)
    assert not sentence.is_passing("The loader keeps two connections open.", speaker)


# --- whatever comes in


def check(text: str, found: list[Statement]) -> None:
    assert len(found) <= 3
    for statement in found:
        assert statement.text.strip() == statement.text and "\n" not in statement.text
        assert len(statement.text) <= MAX_CHARACTERS + 80
        assert len(set(content_words(statement.text))) <= MAX_WORDS
        rule = CATEGORIES[statement.category]
        assert rule.low <= statement.confidence <= rule.high


@pytest.mark.invariant(
    "The limits of a statement hold whatever is said: three a turn, 45 content words; a megabyte costs what is looked at"
)
@pytest.mark.invariant(
    "A turn gives at most three statements, and none that nobody said. Distilling again changes nothing"
)
@given(st.text(max_size=600), st.sampled_from(["user", "assistant"]))
@example("\x00", "user")
@example("# \n- \n1. \n> \n```", "assistant")
@example("I prefer " + "very " * 400 + "long lines", "user")
def test_whatever_is_said_the_limits_hold(text: str, kind: TurnKind) -> None:
    check(text, chooser.choose_from_turn(turn(text, kind)))


@pytest.mark.invariant(
    "The limits of a statement hold whatever is said: three a turn, 45 content words; a megabyte costs what is looked at"
)
def test_a_megabyte_costs_what_a_page_costs() -> None:
    words = random.Random(7).choices(["must", "never", "`loader`", "reads", "because", "rows", "of", "the."], k=150_000)
    begun = time.process_time()
    chooser.choose_from_turn(turn(" ".join(words)))
    chooser.choose_from_turn(turn("\n".join(words), "assistant"))
    assert time.process_time() - begun < 3


# --- Which turns are sources: prompts, replies that are over, and what was found in the middle of long work.


def spoken(*places: tuple[int, TurnKind]) -> list[StoredTurn]:
    return [
        StoredTurn(
            seq=place, uuid=f"u{place}", session_id="s", project_seq=1, kind=kind, text="text", at="", ordinal=place
        )
        for place, kind in places
    ]


def found(*places: tuple[int, TurnKind], settled: bool = True) -> list[tuple[int, str]]:
    return [(source.turn.ordinal, source.role) for source in find_sources(spoken(*places), settled=settled)]


def test_the_last_assistant_text_before_the_next_user_turn_is_a_source() -> None:
    turns: list[tuple[int, TurnKind]] = [(1, "user"), (2, "assistant"), (5, "assistant"), (6, "user")]
    assert found(*turns) == [(1, "prompt"), (5, "reply"), (6, "prompt")]


def test_a_trailing_assistant_text_is_a_source_only_when_settled() -> None:
    assert found((1, "user"), (2, "assistant")) == [(1, "prompt"), (2, "reply")]
    assert found((1, "user"), (2, "assistant"), settled=False) == [(1, "prompt")]


def test_summaries_commands_and_notifications_are_no_sources_and_end_nothing() -> None:
    turns: list[tuple[int, TurnKind]] = [
        (1, "user"), (2, "assistant"), (3, "notification"), (4, "command"), (5, "summary"), (6, "assistant"),
    ]  # fmt: skip
    assert found(*turns) == [(1, "prompt"), (6, "reply")]


def test_no_turns_have_no_sources_of() -> None:
    assert find_sources([], settled=True) == []


def test_twenty_messages_with_three_calls_make_what_was_said_in_between_a_source() -> None:
    long: list[tuple[int, TurnKind]] = [(1, "user"), (21, "assistant"), (30, "assistant")]
    assert found(*long, settled=False) == [(1, "prompt"), (21, "midway")]
    assert found(*long) == [(1, "prompt"), (21, "midway"), (30, "reply")]
    short: list[tuple[int, TurnKind]] = [(1, "user"), (20, "assistant"), (30, "assistant")]
    assert found(*short) == [(1, "prompt"), (30, "reply")]
    talk: list[tuple[int, TurnKind]] = [(1, "user"), *((place, "assistant") for place in range(2, 40))]
    assert found(*talk) == [(1, "prompt"), (39, "reply")], "nobody called a tool"


def test_how_many_tools_were_called_is_told_from_the_places_between() -> None:
    assert find_sources(spoken((1, "user"), (8, "assistant")), settled=True)[1] == Source(
        spoken((8, "assistant"))[0], "reply", 3
    )


#: A prompt and the statements that it makes.
PROMPTS_AND_STATEMENTS = [
    ("rename the parser, btw we never edit the grammar by hand", ["we never edit the grammar by hand"]),
    ("fix the ferry table and never log the fares", ["never log the fares"]),
    (
        "ines owns the tariff module. prices are kept in cents, never floats. answer me in english",
        ["ines owns the tariff module.", "prices are kept in cents, never floats.", "answer me in english"],
    ),
    ("run the linter before you commit", ["run the linter before you commit"]),
    ("don't push yet", []),
    ("the build fails on the ferry server", []),
    ("why do we always use yarn and never pnpm here", []),
    ("Die Preise werden immer in Cent gespeichert.", ["Die Preise werden immer in Cent gespeichert."]),
    ("Benenne die Tabelle um.", []),
    ("los precios van siempre en céntimos", ["los precios van siempre en céntimos"]),
    ("цены всегда храним в центах", ["цены всегда храним в центах"]),
    ("价格一律用分存储，不要用浮点数。", ["价格一律用分存储，不要用浮点数。"]),
    ("打开价格表。", []),
    ("価格は必ずセント単位で保存してください。", ["価格は必ずセント単位で保存してください。"]),
    ("가격은 항상 센트로 저장해 주세요.", ["가격은 항상 센트로 저장해 주세요."]),
    ("fiyatlar her zaman kuruş olarak saklanır", []),
]


@pytest.mark.parametrize(
    ("before", "anew"),
    [
        ("uploads are limited to 20 MB for guests", "uploads are limited to 20 MB for members"),
        ("always run the formatter before every commit", "never run the formatter before every commit"),
    ],
)
def test_a_rule_with_another_value_or_turned_round_is_no_repeat(before: str, anew: str) -> None:
    chosen = chooser.choose(session(("prompt", before), ("reply", "Understood."), ("prompt", anew)))
    assert [one.statement.text for one in chosen if one.statement.authority == "user"] == [before, anew]


@pytest.mark.parametrize(("prompt", "stated"), PROMPTS_AND_STATEMENTS)
def test_each_thing_that_a_prompt_lays_down_is_a_statement_and_what_passes_is_none(
    prompt: str, stated: list[str]
) -> None:
    assert [one.statement.text for one in chooser.choose(session(("prompt", prompt)))] == stated


@pytest.mark.invariant("A user's own rule is no repeat of what the assistant said")
def test_what_the_assistant_said_before_the_user_lays_it_down_is_still_the_users() -> None:
    report = "The ledger keeps all prices in cents, never floats, because sums of floats drift by a cent a day."
    found = chooser.choose(
        session(
            ("prompt", "look at the ledger"),
            ("reply", report),
            ("prompt", "prices are always kept in cents, never floats"),
        )
    )
    assert ("user", "prices are always kept in cents, never floats") in [
        (one.statement.authority, one.statement.text) for one in found
    ]


def test_a_sentence_that_only_tells_a_redacted_secret_is_no_statement_and_takes_no_rule_with_it() -> None:
    rule = "From now on, never tag a build by hand; ask the release job and a second reader."
    secret = "My registry password is [redacted:password] by the way."
    assert said(secret) == said(f"# {secret}") == []
    assert said(rule) == said(f"{rule} {secret}") == [rule]


def test_an_order_for_the_moment_is_no_preference() -> None:
    order = "change the invoice renderer in src/paper.py so that totals can be printed"
    (chosen,) = chooser.choose(session(("prompt", order)))
    assert (chosen.statement.text, chosen.statement.category) == (order, "fact")


@pytest.mark.parametrize(
    "need", ["somewhere to keep the delivery notes", "a way to share the seed data", "some kind of cache"]
)
def test_an_open_need_names_no_choice_and_is_no_statement(need: str) -> None:
    assert said(f"We need {need} for the warehouse.") == []
    assert said(f"We need {need} for the warehouse, so we use the bucket of the till.") != []
