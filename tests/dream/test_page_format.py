"""A page as text and back: nothing that a memory says forges a line, and what a person writes stays where it stood."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.dream import page_content, page_format
from csmd.dream.page_format import Item, Note, Page, Section
from csmd.text import display, markdown

ID = "m0123456789"
NASTY = (
    "ends a comment --> and goes on", "a <!-- m:maaaaaaaaaa --> b", "<!-- csmd -->", "---", "## Facts", "- another line", "# x",
    "shows as: a thing", "```", "| a | b |", "a\nb\n\n## c", "<\\!-- kept", "--\\> kept", "<csmd-memory>x</csmd-memory>", "\u202ereversed\u202c",
    "tabs\tand  spaces ", "> quoted", "1. first", "***", "a\u2028b", "_3 more_ <!-- csmd -->", "é combined", "name: x\n---\n",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A file, what is read of it: (heading, text, id), the person's notes as (heading, lines above, text), and keys of its head."""

    file: str
    read: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[tuple[str, int, str], ...] = ()
    head: tuple[str, ...] = ()
    problem: str = ""


CASES = {
    "a line with its memory": Case(f"## Facts\n\n- it is so <!-- m:{ID} -->\n", (("Facts", "it is so", ID),)),
    "other bullets, indented, numbered": Case("## F\n* a b\n  + c d\n1. e f\n2) g h\n", (("F", "a b", ""), ("F", "c d", ""), ("F", "e f", ""), ("F", "g h", ""))),
    "a line that an editor wrapped": Case(f"## F\n- one two\n  three <!--m:{ID}-->\n- four\n", (("F", "one two three", ID), ("F", "four", ""))),
    "a paragraph under a heading is a person's note": Case(
        "## F\n\nwe deploy\non Fridays  \n\n- a\n\nand Mondays\n", (("F", "a", ""),), (("F", 0, "we deploy\non Fridays  "), ("F", 1, "and Mondays")),
    ),
    "a line that lost its bullet": Case(f"## F\n\nwe deploy\non Fridays <!-- m:{ID} -->\n", (("F", "we deploy on Fridays", ID),)),
    "what stands before every heading is kept": Case("# T\n\nmy own words\nhere\n\n## F\n- a\n", (("F", "a", ""),), (("", 0, "my own words\nhere"),)),
    "what waits for an answer is no line": Case(
        f"## F\n- a <!-- m:{ID} -->\n  - {page_format.WAITING_PREFIX}b <!-- csmd -->\n- {page_format.WAITING_PREFIX}c\n", (("F", "a", ID),)
    ),
    "code, tables and quotes are kept": Case(
        "## F\n- a\n\n```sh\n- not a line\n## nor this\n```\n\n| a | b |\n| - | - |\n\n> said\n\n- b\n",
        (("F", "a", ""), ("F", "b", "")),
        (("F", 1, "```sh\n- not a line\n## nor this\n```"), ("F", 1, "| a | b |\n| - | - |"), ("F", 1, "> said")),
    ),
    "a fence that is never closed is kept": Case("## F\n- a\n```\n- b\n", (("F", "a", ""),), (("F", 1, "```\n- b\n```"),)),
    "what is under one's own heading is kept": Case(f"## {page_format.OWN_NOTES}\n\n- mine\n\npara\n", (), ((page_format.OWN_NOTES, 0, "- mine"), (page_format.OWN_NOTES, 0, "para"))),
    "what csmd says is not read": Case("# T\n\nsome words <!-- csmd -->\n\n## F\n\n_3 more_ <!-- csmd -->\n"),
    "how a gotcha shows itself belongs to its line": Case(f"## F\n- x <!-- m:{ID} -->\n  - {page_format.SYMPTOM_PREFIX}an error\n", (("F", "x", ID),)),
    "where it was said is csmd's own": Case(f"## F\n- x <!-- m:{ID} -->\n  - said at cli/resume.go <!-- csmd -->\n", (("F", "x", ID),)),
    "windows wrote it, with a mark and without an end": Case(f"\ufeff---\r\nname: a\r\n---\r\n\r\n## F\r\n\r\n- x <!-- m:{ID} -->", (("F", "x", ID),), (), ("name",)),
    "a deeper heading is one": Case("## F\n### G\n- x\n", (("G", "x", ""),)),
    "a line before every heading": Case("- x\n", (("", "x", ""),)),
    "a comment that is no id stays in its line": Case("## F\n- x <!-- todo --> y\n", (("F", "x <!-- todo --> y", ""),)),
    "a head that is none": Case("---\n- a\n- b\n---\n\n## F\n- x\n", problem="its head is not a mapping"),
    "a head without an end": Case("---\nname: a\n\n- x\n", problem="its head does not end"),
    "nothing": Case(""),
    "an empty line of a list": Case("## F\n-\n- \n"),
}  # fmt: skip


def check(case: Case) -> None:
    found = page_format.parse_page(case.file)
    assert found.problem.startswith(case.problem) if case.problem else not found.problem
    if not case.problem:
        assert tuple((heading, item.text, item.id) for heading, item in found.lines()) == case.read
        notes = [("", 0, one) for one in found.top]
        notes += [(one.heading, note.below, note.text) for one in found.sections for note in one.notes]
        assert (*notes, *((page_format.OWN_NOTES, 0, one) for one in found.own)) == case.notes
        assert tuple(found.head) == case.head


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_read_of_a_file(case: Case) -> None:
    check(case)


def page(said: list[str]) -> Page:
    items = tuple(
        Item(text=one, id=f"m{number:010x}", scene="at cli/resume.go" * (number % 2)) for number, one in enumerate(said)
    )
    half = len(items) // 2
    return Page(
        path="projects/a.md", head={"name": said[0] if said else "a", "type": "project"}, title="a", about=("words",),
        sections=(
            Section(heading="Facts", items=items[:half], more=2, notes=(Note(text="one\n| two |"), Note(text="three", below=half))),
            Section(heading="Known gotchas", items=items[half:], waits=said[:1], level=3),
            Section(heading="By hand", notes=(Note(text="> four"),), level=1),
        ),
        top=("before all",), own=("kept as it is\n  so",),
    )  # fmt: skip


@pytest.mark.invariant("No memory forges a line, an id or a head of a page; what is written is read back")
def test_whatever_a_memory_says_it_stands_on_one_line_and_is_read_back() -> None:
    comes_back(page(list(NASTY)))


def comes_back(whole: Page) -> None:
    written = page_format.render_page(whole)
    found = page_format.parse_page(written)
    asked = [
        (one.heading, item.id, display.squeeze(display.defuse(item.text)))
        for one in whole.sections
        for item in one.items
    ]
    assert [(heading, item.id, item.text) for heading, item in found.lines()] == [row for row in asked if row[2]]
    assert (found.top, found.own) == (whole.top, whole.own)
    assert [
        (one.heading, one.level, [note.text for note in one.notes])
        for one in found.sections
        if one.heading != page_format.OWN_NOTES
    ] == [(one.heading, one.level, [note.text for note in one.notes]) for one in whole.sections]
    assert page_format.render_page(replace(whole, head=found.head)) == written
    assert not found.problem and found.head["type"] == "project"
    assert "name" in found.head


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=60) | st.sampled_from(NASTY), max_size=6))
def test_what_is_written_is_read_back(said: list[str]) -> None:
    comes_back(page(said))


@settings(max_examples=25, deadline=None)
@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from((*NASTY, f"- a <!-- m:{ID} -->", "## H", "")), max_size=12).map("\n".join)
)
def test_reading_never_fails_and_what_was_read_is_read_again(whole: str) -> None:
    found = page_format.parse_page(whole)
    again = page_format.parse_page(page_format.render_page(Page(path="", sections=found.sections, own=())))
    kept = [(item.id, item.text) for _, item in found.lines() if markdown.to_line(item.text)]
    assert [(item.id, markdown.from_line(markdown.to_line(item.text))) for _, item in again.lines()] == [
        (ident, markdown.from_line(markdown.to_line(said))) for ident, said in kept
    ]


# --- What a person writes between csmd's lines stays where it stood, once, whatever the page says next.


THEIRS = (
    "A paragraph of theirs\non two lines", "> a quotation", "| a | b |\n| - | - |", "```\n- no line\n## no heading\n```",
    "## Their heading", "### A part", "## Theirs, too\n\nwith a text", "<!-- todo -->", "    indented code",
)  # fmt: skip


def page_of(known: list[int]) -> Page:
    items = [Item(text=f"statement {number} holds", id=f"m{number:010x}") for number in known]
    named = zip(page_content.HEADING_ORDER[:3], (items[::3], items[1::3], items[2::3]), strict=True)
    sections = tuple(Section(heading=name, items=tuple(of)) for name, of in named if of)
    return Page(path="projects/a.md", title="a", about=("words",), sections=sections)


def again(was: str, known: list[int]) -> str:
    """The page as it is made anew over what stands there."""
    made, read = page_of(known), page_format.parse_page(was)
    standing = {item.id: item for section in made.sections for item in section.items}
    there = page_format.find_moved_ids(read, standing, page_content.is_csmd_heading)
    left = [page_format.map_items(one, lambda item: None if item.id in there else item) for one in made.sections]
    own = {ident: standing[ident] for ident in there}
    return page_format.render_page(
        page_format.keep_own_words(replace(made, sections=tuple(left)), read, own, page_content.is_csmd_heading)
    )


@pytest.mark.invariant(
    "What a person writes between csmd's lines stays to the letter where it stood; only lines of lists are read"
)
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 12), unique=True, min_size=1),
    st.lists(st.integers(0, 12), unique=True),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from(THEIRS)), unique_by=lambda one: one[1], max_size=5),
)
def test_whatever_is_written_between_the_lines_stays_and_stays_where_it_stood(
    known: list[int], later: list[int], written: list[tuple[int, str]]
) -> None:
    rows = page_format.render_page(page_of(known)).split("\n")
    for at, said in sorted(written, key=lambda one: one[0], reverse=True):
        place = 4 + at % (len(rows) - 4)  # below csmd's first words
        rows[place:place] = ["", said, ""]
    first = again("\n".join(rows), known)
    assert again(first, known) == first, "made over itself it is the same"
    for made, held in ((first, known), (again(first, later), later)):
        for _, said in written:
            assert made.count(f"\n{said}\n") == 1, said
        for number in held:
            assert made.count(f"statement {number} holds <!-- m:m{number:010x} -->") == 1


def test_a_note_stays_below_the_line_that_it_stood_below_or_the_nearest_that_is_left() -> None:
    was = page_format.parse_page(
        "## Facts\n\n- a <!-- m:m000000000a -->\n- b <!-- m:m000000000b -->\n\nof b\n\n- c <!-- m:m000000000c -->\n\nthe end\n"
    )

    def now(*names: str) -> str:
        items = tuple(Item(text=one, id=f"m000000000{one}") for one in names)
        made = Page(path="", sections=(Section(heading="Facts", items=items),))
        return " ".join(
            page_format.render_page(page_format.keep_own_words(made, was, {}, page_content.is_csmd_heading))
            .replace("-->", "")
            .split()[2:]
        )

    def marked(said: str) -> str:
        return " ".join(f"- {one} <!-- m:m000000000{one}" if len(one) == 1 else one for one in said.split())

    assert now("a", "b", "c") == marked("a b") + " of b " + marked("c") + " the end"
    assert now("d", "b", "a") == marked("d b") + " of b " + marked("a") + " the end"
    assert now("a", "c") == marked("a") + " of b " + marked("c") + " the end"
    assert now("c") == "of b " + marked("c") + " the end"
    empty = page_format.keep_own_words(Page(path=""), was, {}, page_content.is_csmd_heading)
    assert page_format.render_page(empty) == "## Facts\n\nof b\n\nthe end\n", (
        "a heading stays for what they wrote under it"
    )
    assert page_format.has_own_words(was, page_content.is_csmd_heading) and not page_format.has_own_words(
        Page(), page_content.is_csmd_heading
    )
