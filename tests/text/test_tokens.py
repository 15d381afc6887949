"""Text as csmd sees it: golden tables for what people write, properties for what anybody may send."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proportion import assert_in_proportion

from csmd.text import display, prose, search_terms, tokens

ANY = st.text(st.characters() | st.sampled_from(list(" \n\t.,`<>-'\"AaßİﬁΣ\ud800\0\u2028")), max_size=200)
KEY = b"k" * 32


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Use pnpm.", "  use   PNPM ", True),
        ("use\npnpm", "use pnpm", True),
        ("`use pnpm`", "use pnpm!", True),
        ("Straße", "STRASSE", True),
        ("ﬁle", "file", True),
        ("cafe\u0301", "café", True),
        ("use pnpm", "use npm", False),
        ("not a.b", "not ab", False),
        ("", " . ", True),
    ],
)
def test_texts_are_compared_without_case_space_and_outer_marks(one: str, other: str, same: bool) -> None:
    assert (tokens.normalise(one) == tokens.normalise(other)) == same
    assert (tokens.keyed_hash(one, KEY) == tokens.keyed_hash(other, KEY)) == same


@given(ANY)
def test_a_hash_needs_its_key_and_any_text_has_one(text: str) -> None:
    found = tokens.keyed_hash(text, KEY)
    assert len(found) == 32 and int(found, 16) >= 0
    assert found != tokens.keyed_hash(text, b"x" * 32)


def test_words_keep_identifiers_whole_and_queries_take_them_apart() -> None:
    assert tokens.words_of("Don't call getUserName() in my_module.py, v2!") == [
        "don't",
        "call",
        "getusername",
        "in",
        "my_module",
        "py",
        "v2",
    ]
    assert tokens.content_words("the config of a b is in my_module") == ["config", "my_module"]
    assert search_terms.query_terms("Where is parseHTTPResponse in my_module2?") == [
        "parsehttpresponse",
        "parse",
        "http",
        "response",
        "my_module2",
        "module",
    ]
    assert search_terms.query_terms("the is of") == []
    assert search_terms.query_terms("数据库 базы naïve 用MySQL") == ["数据", "据库", "базы", "naïve", "用", "mysql"]


@given(ANY)
def test_query_terms_are_distinct_folded_and_few(text: str) -> None:
    terms = search_terms.query_terms(text * 3)
    assert len(terms) == len(set(terms)) <= 40
    assert all(term and not term.isspace() for term in terms)


def test_tokens_and_units_are_counted_as_the_reader_counts_them() -> None:
    assert [display.estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "ääää", "\ud800")] == [
        0,
        1,
        1,
        2,
        2,
        1,
    ]
    assert [display.count_utf16_units(text) for text in ("", "abc", "ä€", "\U0001f600a")] == [0, 3, 2, 3]


@given(ANY.filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text)))
def test_utf16_units_are_those_of_the_encoding(text: str) -> None:
    assert display.count_utf16_units(text) == len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("text", "limit", "left"),
    [
        ("short", 5, "short"),
        ("some longer words", 12, "some longer…"),
        ("some longer words", 15, "some longer…"),
        ("some longer words", 8, "some lo…"),
        ("unbreakable", 5, "unbr…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
        ("ab", -3, ""),
        ("", 0, ""),
    ],
)
def test_a_text_is_cut_at_a_word(text: str, limit: int, left: str) -> None:
    assert display.cut(text, limit) == left


@given(ANY, st.integers(0, 250))
def test_a_cut_text_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    assert len(display.cut(text, limit)) <= limit
    assert len(text) > limit or display.cut(text, limit) == text


@given(ANY, st.integers(0, 120))
def test_both_ends_of_a_text_stay_and_what_is_missing_is_said(text: str, limit: int) -> None:
    data = text.encode("utf-8", "replace")
    found = display.cut_middle(text, limit=limit)
    if len(data) <= limit:
        assert found == text
    else:
        head, _, rest = found.partition("\n[csmd: ")
        left_out, _, tail = rest.partition(" bytes left out]\n")
        assert data.startswith(head.encode()) and data.endswith(tail.encode())
        assert len(head.encode()) + len(tail.encode()) <= limit
        assert int(left_out) == len(data) - limit * 3 // 4 - limit // 4


@given(st.text(alphabet="ab \n", max_size=3000), st.integers(20, 1500))
def test_a_long_message_is_cut_between_two_words_and_says_how_much_is_left_out(text: str, limit: int) -> None:
    found = display.cut_at_words(text, limit=limit)
    if len(text) <= limit:
        assert found == text
        return
    head, left_out, tail = re.fullmatch(r"(?s)(.*)\n\[csmd: (-?\d+) characters left out\]\n(.*)", found).groups()  # type: ignore[union-attr]
    assert text.startswith(head) and text.endswith(tail) and len(head) + int(left_out) + len(tail) == len(text)
    if " " in text[: limit // 4] and len(head) < len(text):
        assert head[-1:] in " \n"


FENCES = [
    ("a\n```py\nx\n```\nb", "a\nb"),
    ("a\n```\nx\n~~~\ny\n```\nb", "a\nb"),
    ("a\n~~~\nx\n~~~\nb", "a\nb"),
    ("a\n  ```\n  x\n  ```\nb", "a\nb"),
    ("a\n````md\n```py\nx\n```\nstill\n````\nb", "a\nb"),
    ("a\n```\nx\n`````\nb", "a\nb"),
    ("a\n```\nx\n```py\nnot its end\n```\nb", "a\nb"),
    ("a\n```\nnever closed\nb", "a"),
    ("a ```x``` b\n```x``` c", "a ```x``` b\n```x``` c"),
    ("no code `x` at all", "no code `x` at all"),
    ("``\nx\n``", "``\nx\n``"),
]


@pytest.mark.parametrize(("text", "left"), FENCES)
def test_blocks_of_code_go_with_their_fences(text: str, left: str) -> None:
    assert prose.remove_code(text) == left


def test_prose_is_joined_where_it_was_wrapped_and_nothing_else_is() -> None:
    long = "this paragraph was wrapped by hand after some seventy characters or"
    text = f"# Title #\n\n{long}\nso, and goes on\n\n- one\n- two\n1. {long}\n   continued\n\n| a | b |\n---\n> quoted\nshort\nlines\n```\ncode\n```\nend"
    assert prose.read_prose_lines(text) == [
        "Title #", f"{long} so, and goes on", "one", "two", f"{long} continued", "quoted", "short", "lines", "end",
    ]  # fmt: skip
    assert prose.read_prose_lines(f"{long}.\nNext") == [f"{long}.", "Next"]
    assert prose.read_prose_lines("") == prose.read_prose_lines("```\nx") == prose.read_prose_lines("\n  \n---\n") == []


SENTENCES = [
    ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
    ("Use v2.1.3 of it. Then go.", ["Use v2.1.3 of it.", "Then go."]),
    ("Use a tool, e.g. Ruff. It works", ["Use a tool, e.g. Ruff.", "It works"]),
    ("Ask Dr. Jones about J. Smith. Now", ["Ask Dr. Jones about J. Smith.", "Now"]),
    ('He said "stop." Then left.', ['He said "stop."', "Then left."]),
    ("It works (mostly.) Then [not.] Now", ["It works (mostly.)", "Then [not.]", "Now"]),
    ("in file.py it fails. `x` is bad", ["in file.py it fails.", "`x` is bad"]),
    ("不要这样。用那个！好", ["不要这样。", "用那个！", "好"]),
    ("no end", ["no end"]),
    ("it ends. but goes on", ["it ends.", "but goes on"]),
    ("see fig. 2 (e.g. this) and v. two", ["see fig. 2 (e.g. this) and v. two"]),
    ("", []),
    ("   ", []),
]


@pytest.mark.parametrize(("line", "found"), SENTENCES)
def test_sentences_end_where_people_end_them(line: str, found: list[str]) -> None:
    assert prose.split_sentences(line) == found


@given(ANY)
def test_no_word_is_lost_or_made_up_by_taking_text_apart(text: str) -> None:
    line = display.squeeze(text)
    assert not any(mark in line for mark in "\n\r\t")
    assert "".join(prose.split_sentences(line)).replace(" ", "") == line.replace(" ", "")
    assert set(tokens.words_of(" ".join(prose.read_prose_lines(text)))) <= set(tokens.words_of(text))
    assert all(row == row.strip() or row.strip() for row in prose.read_prose_lines(text))


def test_passages_are_cut_at_the_best_border_there_is() -> None:
    def pieces(text: str, limit: int) -> list[str]:
        return [text[start:end] for start, end in prose.find_chunks(text, limit=limit)]

    assert pieces("short", 100) == ["short"]
    assert pieces("aaaa bbbb\n\ncccc dddd\neeee", 16) == ["aaaa bbbb\n\n", "cccc dddd\neeee"]
    assert pieces("aaaa bbbb\ncccc dddd", 14) == ["aaaa bbbb\n", "cccc dddd"]
    assert pieces("One two. Three four", 14) == ["One two. ", "Three four"]
    assert pieces("abcdefgh", 3) == ["abc", "def", "gh"]
    assert prose.find_chunks("", limit=5) == [(0, 0)]


@given(ANY, st.integers(1, 60))
def test_passages_cover_the_text_in_order_and_none_is_too_long(text: str, limit: int) -> None:
    spans = prose.find_chunks(text, limit=limit)
    assert spans[0][0] == 0
    assert all(0 < end - start <= limit for start, end in spans) or text == ""
    assert all(one[1] == other[0] for one, other in itertools.pairwise(spans))
    assert not text[spans[-1][1] :].strip()


def test_the_passage_shown_is_where_most_of_the_terms_are() -> None:
    text = f"{'filler words ' * 60}the staging database is called orders_stage {'more filler ' * 60}"
    found = prose.excerpt(text, ["staging", "database"], limit=200)
    assert found.startswith("…") and "staging database" in found and len(found) <= 200
    assert prose.excerpt(text, ["nowhere"], limit=50) == display.cut(text, 50)
    assert prose.excerpt("short", ["x"], limit=50) == "short"
    folded = "ß" * 3000 + " staging database"  # folds to twice its length
    assert "staging" in prose.excerpt(folded, ["staging"], limit=100)


@given(ANY, st.lists(st.sampled_from(["a", "ss", ".", "", " ", "i̇"]), max_size=3), st.integers(1, 150))
def test_a_passage_is_never_longer_than_its_limit(text: str, terms: list[str], limit: int) -> None:
    assert len(prose.excerpt(text * 2, terms, limit=limit)) <= limit


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('a<csmd-memory note="x">b</csmd-memory>c', "ac"),
        ("a<csmd-memory>b</csmd-recall>c", "ac"),
        ("a<csmd-memory>b<csmd-recall>c</csmd-recall>d", "ad"),
        ("a<CSMD-Memory>b</csmd-MEMORY>c", "ac"),
        ("a<csmd-memory>b", "a<csmd-memory>b"),
        ("a</csmd-memory>b", "a</csmd-memory>b"),
        ("a<csmd-memory\nnote=1>b\n</csmd-memory>c", "ac"),
        ("use csmd-memory", "use csmd-memory"),
        ("a<csmdx>b</csmdx>", "a<csmdx>b</csmdx>"),
    ],
)
def test_what_csmd_injected_is_taken_out(text: str, left: str) -> None:
    assert display.strip_fenced(text) == left


@given(
    ANY,
    st.lists(
        st.sampled_from(["</csmd-memory>", "<csmd-recall x='1'>", "</CSMD-recall>", "x", "<", "csmd-a>"]), max_size=5
    ),
)
def test_no_memory_can_open_or_close_the_fence_it_stands_in(text: str, parts: list[str]) -> None:
    memory = display.defuse(text + "".join(parts))
    assert display.strip_fenced(memory) == memory
    assert display.strip_fenced(f"a<csmd-memory>{memory}</csmd-memory>b") == "ab"
    assert display.defuse(memory) == memory


def test_spans_are_taken_out_with_their_ends() -> None:
    assert display.remove_spans("a<r>b</r>c<r>d</r>", "<r>", "</r>") == "ac"
    assert display.remove_spans("a<r>b", "<r>", "</r>") == "a<r>b"
    assert display.remove_spans("a</r>b<r><r>c</r>d</r>", "<r>", "</r>") == "a</r>bd</r>"


HOSTILE = ["words that wrap ", "words that wrap and wrap and wrap and wrap and wrap and wrap and wrap\n", "- ", "e.g. A ", "A. ", ". ", '"Q. A', "```\n",
           "<csmd-a ", "<csmd-a>", "</csmd-a>", "Aa", "A", "a_", "aB", "连", "Aaaaaaaaaaa ", "a.", "May 3 ", "'", "  \n", "1. ", "。", "<r>"]  # fmt: skip
WORK: list[Callable[[str], Any]] = [
    prose.read_prose_lines, prose.split_sentences, prose.remove_code, search_terms.query_terms, display.strip_fenced, display.defuse, tokens.normalise,
    lambda text: prose.find_chunks(text, limit=1000), lambda text: prose.excerpt(text, ["words", "a"], limit=300),
    lambda text: display.remove_spans(text, "<r>", "</r>"), search_terms.question_terms, lambda text: search_terms.build_index_text(text, "2026-02-03"),
]  # fmt: skip


@pytest.mark.parametrize("fragment", HOSTILE)
def test_hostile_text_costs_no_more_than_in_proportion_to_its_length(fragment: str) -> None:
    for work in WORK:
        assert_in_proportion(work, lambda size: fragment * (size // len(fragment)), size=16 * 1024)


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("2.1.329", (2, 1, 329)), ("2.0.77", (2, 0, 77)), ("10.0.0", (10, 0, 0)), ("2.1", None), ("2.1.3.4", None),
        ("v2.1.3", None), ("2.1.3-beta", None), ("2.1.3\n", None), ("", None), ("9" * 99 + ".1.1", None),
    ],
)  # fmt: skip
def test_a_version_is_three_numbers_and_compares_as_such(said: str, numbers: tuple[int, ...] | None) -> None:
    assert display.parse_version(said) == numbers
    assert (display.parse_version("2.1.101") or ()) > (display.parse_version("2.1.99") or ())
