"""What a person writes between csmd's lines stays where it stood, once, whatever the page says next."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.dream import page_content, page_format
from csmd.dream.page_format import Item, Page, Read, Section

THEIRS = (
    "A paragraph of theirs\non two lines", "> a quotation", "| a | b |\n| - | - |", "```\n- no line\n## no heading\n```",
    "## Their heading", "### A part", "## Theirs, too\n\nwith a text", "<!-- todo -->", "    indented code",
)  # fmt: skip


def page(known: list[int]) -> Page:
    items = [Item(text=f"statement {number} holds", id=f"m{number:010x}") for number in known]
    named = zip(page_content.ORDER[:3], (items[::3], items[1::3], items[2::3]), strict=True)
    sections = tuple(Section(heading=name, items=tuple(of)) for name, of in named if of)
    return Page(path="projects/a.md", title="a", about=("words",), sections=sections)


def again(was: str, known: list[int]) -> str:
    """The page as it is made anew over what stands there."""
    made, read = page(known), page_format.parse_page(was)
    standing = {item.id: item for section in made.sections for item in section.items}
    there = page_format.find_placed(read, standing, page_content.is_ours)
    left = [page_format.map_items(one, lambda item: None if item.id in there else item) for one in made.sections]
    own = {ident: standing[ident] for ident in there}
    return page_format.render_page(
        page_format.keep_own_words(replace(made, sections=tuple(left)), read, own, page_content.is_ours)
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
    rows = page_format.render_page(page(known)).split("\n")
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
            page_format.render_page(page_format.keep_own_words(made, was, {}, page_content.is_ours))
            .replace("-->", "")
            .split()[2:]
        )

    def marked(said: str) -> str:
        return " ".join(f"- {one} <!-- m:m000000000{one}" if len(one) == 1 else one for one in said.split())

    assert now("a", "b", "c") == marked("a b") + " of b " + marked("c") + " the end"
    assert now("d", "b", "a") == marked("d b") + " of b " + marked("a") + " the end"
    assert now("a", "c") == marked("a") + " of b " + marked("c") + " the end"
    assert now("c") == "of b " + marked("c") + " the end"
    empty = page_format.keep_own_words(Page(path=""), was, {}, page_content.is_ours)
    assert page_format.render_page(empty) == "## Facts\n\nof b\n\nthe end\n", (
        "a heading stays for what they wrote under it"
    )
    assert page_format.has_theirs(was, page_content.is_ours) and not page_format.has_theirs(
        Read(), page_content.is_ours
    )
