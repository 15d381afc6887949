"""Passages of any text: ordered, disjoint, nothing said left out, none too long, in time that grows with the text."""

from __future__ import annotations

import itertools
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.text import prose
from csmd.text.tokens import content_words

WORDS = st.sampled_from([*"cache Use pnpm. the 1 2. store.write() 好。好 why? **Note:** `a` (x)".split(), "x" * 1000])
LINES = st.sampled_from(
    "\n# Head\n**Head**\n---\n| a | b |\n|---|---|\n```\n```python\n~~~\n``` a ``` b\n- item\n___".split("\n")
)
SENTENCES = st.lists(WORDS, max_size=120).map(" ".join)
TEXTS = st.lists(LINES | SENTENCES | st.text(max_size=40), max_size=30).map("\n".join)
#: Lines that are not said: a fence, or nothing but marks.
UNSAID = re.compile(r"\s{0,12}(?:```|~~~)|[\s\-=_*+|:]*$")


@given(TEXTS)
def test_passages_are_in_order_and_apart_and_begin_and_end_with_what_is_said(text: str) -> None:
    spans = prose.find_passages(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before.end <= after.start for before, after in itertools.pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)


@given(TEXTS)
def test_every_word_outside_fences_and_rules_is_in_a_passage(text: str) -> None:
    inside = {at for start, end in prose.find_passages(text) for at in range(start, end)}
    at = 0
    for line in text.split("\n"):
        if not UNSAID.match(line):
            lost = [place for place in range(at, at + len(line)) if text[place].isalnum() and place not in inside]
            assert not lost, line
        at += len(line) + 1


@given(TEXTS)
def test_a_passage_is_no_longer_than_the_design_allows_unless_it_is_one_token(text: str) -> None:
    for start, end in prose.find_passages(text):
        passage = text[start:end]
        assert len(passage) <= prose.MAX_PASSAGE_CHARACTERS
        assert len(content_words(passage)) <= prose.MAX_PASSAGE_WORDS or len(passage.split()) == 1


@given(TEXTS, st.integers(1, 5))
def test_no_more_passages_are_made_than_are_asked_for(text: str, most: int) -> None:
    assert prose.find_passages(text, limit=most) == prose.find_passages(text)[:most]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Write a check that fetches 10\nold releases and opens each. Run it nightly.", 1),
        ("Write a check that fetches\nold releases and opens each.", 1),
        ("Fetch 10 releases.\nthen open each of them.", 2),
        ("fetch 10 releases\nopen each of them", 2),
        ("Fetch 10 releases\nopen each of them", 2),
        ("Fetch 10 releases\nOpen each of them.", 2),
        ("Fetch 10 releases\n- open each of them.", 2),
        ("Fetch 10 releases\n\nopen each of them.", 2),
    ],
)
def test_a_sentence_that_goes_on_in_the_next_line_is_one_row_whatever_word_or_number_ends_the_first(
    text: str, rows: int
) -> None:
    assert len(prose.read_prose_lines(text)) == rows


def test_sentences_of_one_section_stand_together_and_a_section_ends_a_passage() -> None:
    text = "Use pnpm. Not npm.\n\nIt is faster.\n\n## Tests\nRun them with pytest.\n```sh\npytest -q\n```\nThat is all."
    assert [text[start:end] for start, end in prose.find_passages(text)] == [
        "Use pnpm. Not npm.\n\nIt is faster.",
        "## Tests\nRun them with pytest.",
        "pytest -q",
        "That is all.",
    ]


def test_code_within_a_sentence_opens_no_block() -> None:
    text = "```make all``` builds it.\n\nThen it runs."
    assert [text[start:end] for start, end in prose.find_passages(text)] == [text]


@pytest.mark.parametrize(
    "piece", [*'a.b ` ~ ." # ** 好。 _|'.split(), "word ", "1 ", "x" * 50 + "\n", ". ", "- ", "\n", " ", "```\n"]
)
def test_the_time_grows_with_the_text(piece: str) -> None:
    def took(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        began = time.process_time()
        prose.find_passages(text, limit=1_000_000)
        return time.process_time() - began

    assert min(took(200_000) for _ in range(2)) < max(8 * 4 * min(took(50_000) for _ in range(2)), 0.5)


@given(TEXTS, st.sampled_from("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"))
def test_whatever_breaks_a_line_parts_a_text_as_a_newline_does(text: str, mark: str) -> None:
    text = text.replace("\r", " ")
    broken = text.replace("\n", mark)
    assert prose.find_passages(broken) == prose.find_passages(text)
    assert prose.outline(broken) == prose.outline(text)
