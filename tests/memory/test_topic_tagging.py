"""What memories are about: names and phrases that several share, the same in whichever order they came."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.memory import topic_tagging

SAID = [
    ("s1", "The shadow branch keeps what was changed before a commit."),
    ("s2", "Delete the shadow branch once its session is condensed."),
    ("s2", "`GetAgentType` returns the agent type from settings.json."),
    ("s3", "The AgentType was empty when settings.json had none."),
    ("s3", "An empty agent_type breaks the trailer in `pkg/meta.go:12`."),
    ("s4", "We deploy with `make ship` on Fridays, never from a laptop."),
    ("s5", "Please look at the shadow branch and at settings.json again."),
    ("s6", "Coverage is measured by the nightly job."),
    ("s6", "Coverage of the parser has to stay above ninety."),
    ("s1", "Grafana shows how long each request takes."),
    ("s2", "Use two spaces in every template."),
    ("s3", "The German translation is done by hand."),
    ("s4", "Releases are signed on the build machine."),
    ("s5", "Customers from Norway pay in crowns."),
    ("s7", "Invoices are rounded once, at the end."),
]


def told(said: list[tuple[str, str]]) -> list[topic_tagging.Told]:
    return [
        topic_tagging.Told(seq=number, text=text, session_id=session) for number, (session, text) in enumerate(said, 1)
    ]


def tagged(said: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Text -> its topics."""
    found: dict[str, set[str]] = {}
    for tag in topic_tagging.tags_of(told(said)):
        found.setdefault(said[tag.seq - 1][1], set()).add(tag.topic)
    return found


@pytest.mark.parametrize(
    ("number", "topic"),
    [
        (0, "shadow branch"),
        (1, "shadow branch"),
        (2, "agent type"),
        (3, "agent type"),
        (4, "agent type"),
        (3, "settings.json"),
    ],
)
def test_a_name_and_a_phrase_that_several_memories_share_is_their_topic(number: int, topic: str) -> None:
    assert topic in tagged(SAID)[SAID[number][1]]


def test_what_only_one_memory_or_one_session_speaks_of_is_no_topic() -> None:
    named = {name for names in tagged(SAID).values() for name in names}
    assert not named & {"meta.go", "grafana", "coverage"}  # coverage: twice, in one session
    assert "coverage" in {name for names in tagged([*SAID, ("s9", "Raise the coverage.")]).values() for name in names}


def test_what_most_memories_share_separates_nothing() -> None:
    all_of_it = [(f"s{number}", f"The checkout {word} of the shop.") for number, word in enumerate("abcdefghijkl")]
    assert "checkout" not in {name for names in tagged(all_of_it).values() for name in names}


def test_a_verb_and_an_adjective_are_no_topics() -> None:
    named = {name for names in tagged(SAID).values() for name in names}
    assert not named & {"empty", "look", "keeps", "delete", "changed"}


def test_a_word_that_no_article_ever_led_is_no_topic() -> None:
    said = [("s8", "Old chips stay in the field."), ("s9", "Card payments stay as they were."), ("s8", "Uploads finish tonight twice."),
            ("s9", "Nightly jobs ran twice."), ("s8", "Old tariff lookups wait."), ("s9", "New customers see the tariff.")]  # fmt: skip
    named = {name for names in tagged([*SAID, *said]).values() for name in names}
    assert not named & {"stay", "twice"}


def test_a_memory_has_three_topics_at_most_and_none_within_another() -> None:
    for names in tagged(SAID).values():
        assert len(names) <= topic_tagging.MOST_TAGS
        words = [set(name.split()) for name in names]
        assert not any(one < other for one in words for other in words)


@pytest.mark.invariant(
    "Topics do not depend on the order in which memories came; what somebody tags or takes off stays"
)
@settings(max_examples=30, deadline=None)
@given(st.permutations(SAID))
def test_topics_do_not_depend_on_the_order_in_which_memories_came(said: list[tuple[str, str]]) -> None:
    assert tagged(said) == tagged(SAID)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=8))
def test_any_text_can_be_looked_at(said: list[str]) -> None:
    found = topic_tagging.tags_of(told([(f"s{number}", text) for number, text in enumerate(said)]))
    assert all(tag.topic and 0 < tag.weight <= 1 for tag in found)


def test_a_name_that_somebody_types_is_kept_small_and_on_one_line() -> None:
    assert topic_tagging.name_of('  "Shadow\n Branch". ') == "shadow branch"
    assert topic_tagging.name_of(" .. ") == ""
