"""Statements told alone: what leads into them goes, what they speak of is put in where it is clear, nothing else."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from csmd.distill import resolve
from csmd.distill.resolve import MAX_CONTENT_WORDS, before_in, standalone, subject_of
from csmd.distill.telling import told
from csmd.text import content_words

TOLD = [
    ("ok so the importer needs two passes", "the importer needs two passes"),
    ("No, the limit is per user and not per team", "the limit is per user and not per team"),
    ("also, the docs live beside the code", "the docs live beside the code"),
    ("yeah let's make both a fixture", "let's make both a fixture"),
    ("What about the retries? We should keep them in the client, not in the callers.",
     "the retries: We should keep them in the client, not in the callers."),
    ("How about sqlite? We need a file that several processes can read.", "We need a file that several processes can read."),
    ("add a retry, and by the way I prefer pathlib over os.path", "I prefer pathlib over os.path"),
    ("please remember that prices are in cents", "prices are in cents"),
    ("can you use a switch instead of the linked ifs?", "use a switch instead of the linked ifs"),
    ("could you please also add the agent's name to every log line", "add the agent's name to every log line"),
    ("can you check the build? I broke the linker flags", "I broke the linker flags"),
    # What only looks like it stays.
    ("No tests may touch the network", "No tests may touch the network"),
    ("So many retries are a sign of a wrong timeout", "So many retries are a sign of a wrong timeout"),
    ("can you explain why the queue is durable?", "can you explain why the queue is durable?"),
    ("Why is the cache cold? Because each deploy clears it.", "Why is the cache cold? Because each deploy clears it."),
    ("Does the whole team really want to keep the warning that fires at each prompt? The check is separate from it.",
     "Does the whole team really want to keep the warning that fires at each prompt? The check is separate from it."),
    ("can you check the build that ran last night on the new machine? I broke the linker flags",
     "can you check the build that ran last night on the new machine? I broke the linker flags"),
    # What joins a sentence to the one before it; before a pronoun it stays.
    ("Similarly, `drain()` takes no lock", "`drain()` takes no lock"),
    ("In addition, the outbox is read twice", "the outbox is read twice"),
    ("Likewise, it takes no lock of its own", "Likewise, it takes no lock of its own"),
]  # fmt: skip
ALONE = [
    # "It" takes the one name that is the subject of the sentence before.
    ("It returns nil for an empty queue.", "`drain()` reads the queue.", "`drain()` returns nil for an empty queue."),
    ("It is written once per session.", "The `state.json` is small.", "`state.json` is written once per session."),
    # Two names, or one that is no subject: nothing is replaced.
    ("It returns nil for an empty queue.", "`drain()` calls `fill()`.", "It returns nil for an empty queue."),
    ("It is slow on cold starts.", "We looked at `cache.py` yesterday.", "It is slow on cold starts."),
    ("It is not possible to undo a merge here.", "`merge()` is final.", "It is not possible to undo a merge here."),
    # A list under its label, a file on a line of its own, a section under its heading.
    ("Returns false when the lock is held", "**`Lock.take`**:\n- Waits for a second\n- ",
     "`Lock.take`: Returns false when the lock is held"),
    ("Falls back to the home directory", "## Changes\n\n### Path lookup\n\n- ", "Path lookup: Falls back to the home directory"),
    ("This means old clients break.", "# Wire format 3\n\n## Summary\n\nThe header grew by four bytes.",
     "Wire format 3: This means old clients break."),
    ("The regex here should be anchored.", "src/parse/lines.py\n\n", "src/parse/lines.py: The regex here should be anchored."),
    # A label of a deeper list, a comment in code and a title that names nothing are no subject.
    ("Shows a warning to the user", "- Makes a partial `State`:\n  - with an id\n- ", "Shows a warning to the user"),
    ("Uses the wrapper otherwise", "```sh\n# Add to the profile\nexport A=1\n```\n", "Uses the wrapper otherwise"),
    ("This was the last caller.", "## Root cause\n\nSomething.", "This was the last caller."),
    ("These are kept apart.", "**`a.py`**:\n- ", "These are kept apart."),
    # What speaks for itself stays.
    ("The queue is durable.", "## Storage\n\n", "The queue is durable."),
    ("This function must stay pure.", "", "This function must stay pure."),
]  # fmt: skip
texts = st.one_of(
    st.text(max_size=400),
    st.lists(
        st.sampled_from(
            [
                "It",
                "is",
                "This means",
                "`a.b`",
                "## Head",
                "\n",
                "- ",
                "no,",
                "What about it?",
                "keep",
                "x/y.py",
                "word:",
            ]
        ),
        max_size=40,
    ).map(" ".join),
)


@pytest.mark.parametrize(("said", "expected"), TOLD)
def test_what_only_leads_into_a_statement_is_cut(said: str, expected: str) -> None:
    assert told(said) == expected


@pytest.mark.parametrize(("said", "before", "expected"), ALONE)
def test_a_statement_gets_its_subject_where_it_is_clear(said: str, before: str, expected: str) -> None:
    assert standalone(said, before=before) == expected


def test_a_subject_that_the_caller_knows_is_taken_and_one_already_named_is_not_repeated() -> None:
    assert standalone("This means two writes.", subject="`sync`") == "`sync`: This means two writes."
    assert (
        standalone("This means two writes of the journal.", subject="journal")
        == "This means two writes of the journal."
    )
    assert standalone("Two writes are needed.", subject="`sync`") == "Two writes are needed."


@pytest.mark.parametrize(
    ("text", "sentence", "before"),
    [
        ("# Head\n\n- **It** waits for `a`.", "It waits for `a`.", "# Head\n\n"),
        ("First this.\n  - _Then_ that is done", "Then that is done", "First this.\n  "),
        ("Nothing of the kind", "It waits", ""),
        ("", "", ""),
    ],
)
def test_what_stands_before_a_sentence_is_found_whatever_marks_it_had(text: str, sentence: str, before: str) -> None:
    assert before_in(text, sentence) == before


@given(texts, texts, st.one_of(st.just(""), texts))
def test_a_statement_never_grows_beyond_its_limit_and_keeps_its_words(said: str, before: str, subject: str) -> None:
    found = standalone(said, before=before, subject=subject)
    assert len(content_words(found)) <= max(MAX_CONTENT_WORDS, len(content_words(said)))
    assert found.endswith(said) or (said.startswith("It ") and found.endswith(said[3:]))
    assert found == said or resolve.is_open(said)


LISTED = """Done. The importer now writes:
- One row per order
- Valid entries with `id` and `total`

Nothing else changed:
- It still reads UTF-8
- The log stays short

## Rates of the bank
- Fetched at noon
- Kept for a day
"""


@pytest.mark.parametrize(
    ("items", "told_as"),
    [
        (
            "One row per order; Valid entries with `id` and `total`",
            "The importer now writes: One row per order; Valid entries with `id` and `total`",
        ),
        ("Fetched at noon; Kept for a day", "Rates of the bank: Fetched at noon; Kept for a day"),
        ("Not in the list; at all", "Not in the list; at all"),
    ],
)
def test_items_of_a_list_are_told_with_what_leads_into_it(items: str, told_as: str) -> None:
    assert resolve.placed(items, turn=LISTED, said=items) == told_as


@pytest.mark.parametrize("lead", ["Here are the following changes:", "This ensures that:", "Why so?"])
def test_a_lead_that_names_nothing_is_left_out(lead: str) -> None:
    said = "orders are sorted; totals are rounded"
    turn = f"{lead}\n- orders are sorted\n- totals are rounded\n"
    assert resolve.placed(said, turn=turn, said=said) == said


@example("0? A:A:A:A")
@example("WHAT ABOUT : ? 0:0:IT:0")
@example("WHAT ABOUT 0: ? 0:0:IT:0")
@given(texts)
def test_telling_cuts_only_from_the_front_and_the_marks_at_the_end_and_never_everything(said: str) -> None:
    found = told(said)
    parts = [(found[:at], found[at + 2 :]) for at in range(len(found)) if found[at : at + 2] == ": "]
    assert found in said or any(topic in said and rest in said for topic, rest in parts)
    assert bool(content_words(found)) == bool(content_words(said))


@pytest.mark.parametrize("piece", ["a/", "`a` ", "1. ", "## ", "x: \n", "\n", "so ", "by the way, ", "**a** ", "a-b "])
def test_a_long_text_costs_in_proportion(piece: str) -> None:
    def took(size: int) -> float:
        text = piece * (size // len(piece))
        begun = time.perf_counter()
        told(text[:2000])
        standalone("It is so", before=text)
        subject_of(text)
        before_in(text, text[:600])
        resolve.placed(text[:300] + "; x", turn=text, said=text[-600:])
        return time.perf_counter() - begun

    took(2_000)
    assert min(took(200_000) for _ in range(2)) < 40 * min(took(10_000) for _ in range(3)) + 0.02
