"""What stands on which page: themes by the numbers, the index within the host's limits, and no memory lost on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.dream import page_content, page_differences, page_format
from csmd.dream.actions import Fact
from csmd.dream.page_content import Place
from csmd.dream.page_format import Page
from csmd.dream.themes import Theme
from csmd.extraction.statement_context import REVIEW
from csmd.hosts.claude import environment
from csmd.knowledge import Memory, Provenance
from csmd.recall import compose
from csmd.text import markdown
from csmd.vocabulary import CATEGORIES, Category

PLACE = Place(seq=1, key="k", name="gull", root="/p/gull")
WORDS = "amber birch cedar delta ember fjord grove haven inlet jetty knoll larch maple nadir oasis prism quartz ridge slate talon".split()


def memory(number: int, said: str, category: Category) -> Memory:
    rule = CATEGORIES[category]
    return Memory(
        id=f"m{number:010x}", text=said, gate=rule.gate, category=category, type=rule.type, tier="durable", decay="durable",
        authority="user", origin="stated", confidence=0.9, scope="project", project_seq=1, session_id="s", seq=number,
        created_at=f"2026-01-{number % 28 + 1:02}", confirmed_at=f"2026-01-{number % 28 + 1:02}", hot_until=1, warm_until=2, archive_at=3,
        provenance=(Provenance(uuid="u", session_id="s", at=""),),
    )  # fmt: skip


def page(known: list[Memory]) -> Page | None:
    shows = {one.id: ("the build fails with exit code 2",) for one in known if one.category == "gotcha"}
    beside = page_content.Annotations(symptoms=shows)
    return page_content.build_page(PLACE, known, facts=(), themes=("builds",), annotations=beside)


def stands(one: Memory) -> bool:
    return page_content.may_be_listed(one) and bool(compose.durable_text(one))


TAILS = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=30)


@pytest.mark.invariant("No memory forges a line, an id or a head of a page; what is written is read back")
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(CATEGORIES)), TAILS), max_size=12))
def test_every_memory_of_a_page_is_read_back_and_nothing_is_an_edit(said: list[tuple[Category, str]]) -> None:
    known = [
        memory(number, f"{WORDS[number]} {WORDS[number]}s serve {tail} {WORDS[-number]}", category)
        for number, (category, tail) in enumerate(said)
    ]
    made = page([one for one in known if stands(one)])
    if made is None:
        return
    more = sum(section.more for section in made.sections)
    written = page_format.render_page(made)
    read = page_format.parse_page(written)
    assert len(read.lines()) + more == sum(map(stands, known))
    assert {item.id: item.text for _, item in read.lines()} == {
        item.id: markdown.from_line(markdown.to_line(item.text)) for section in made.sections for item in section.items
    }
    assert page_differences.find_edits({PLACE.path: read}, {PLACE.path: read})[PLACE.path].count == 0
    assert page(list(reversed([one for one in known if stands(one)]))) == made, (
        "the order in which they come is no matter"
    )


def test_a_gotcha_shows_how_it_looks_and_that_is_no_line_of_its_own() -> None:
    made = page([memory(1, "The exporter fails when its directory below var is missing", "gotcha")])
    assert made is not None
    assert (
        "missing <!-- m:m0000000001 -->\n  - shows as: the build fails with exit code 2\n"
        in page_format.render_page(made)
    )
    assert len(page_format.parse_page(page_format.render_page(made)).lines()) == 1


@pytest.mark.parametrize(
    ("name", "slug"),
    [("My App", "my-app"), ("../../etc", "etc"), ("---", "unnamed"), ("Ünï", "n"), ("a" * 99, "a" * 40)],
)
def test_a_name_is_a_files_whatever_it_is(name: str, slug: str) -> None:
    path = Place(seq=1, key="k", name=name, root="").path
    assert path == f"projects/{slug}-{markdown.short_hash('k')}.md"


@pytest.mark.parametrize("name", ["a --- b", "x\n---\n\n# y", "[a](b)", "<!-- m:m0000000001 -->", 'quo"te: #'])
def test_a_projects_name_forges_neither_head_nor_line(name: str) -> None:
    place = Place(seq=1, key="k", name=name, root=f"/p/{name}")
    made = page_content.build_page(place, [memory(1, "The exporter needs its directory", "fact")], facts=(), themes=())
    assert made is not None
    read = page_format.parse_page(page_format.render_page(made))
    assert [item.id for _, item in read.lines()] == ["m0000000001"] and not read.own and read.head["type"] == "project"
    assert len(page_format.parse_page(page_format.render_page(page_content.build_index([made]))).lines()) == 1


@pytest.mark.parametrize(
    ("number", "own"), [(0, ()), (3, ()), (600, ()), (600, ("x" * 9000,) * 2), (600, tuple("abcdefgh" * 30))]
)
def test_the_index_keeps_the_hosts_limits(number: int, own: tuple[str, ...]) -> None:
    head = {"name": "n", "description": "d" * 150, "type": "project"}
    known = [Page(path=f"projects/p{one}.md", head=head, title=f"p{one} 𝄞") for one in range(number)]
    whole = page_format.render_page(page_content.build_index(known, Page(own=own)))
    if not own or len(own) < 100:
        assert environment.cut_index(whole) == whole
        assert len(whole.encode()) <= 25_000 and whole.count("\n") <= 200
    assert all(one in whole for one in own)
    if number == 600:
        assert "more pages below" in whole


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 260), st.text(max_size=250), st.lists(st.text(max_size=300), max_size=6))
def test_whatever_pages_there_are_and_whatever_a_person_wrote_the_index_is_within_the_limits(
    number: int, about: str, theirs: list[str]
) -> None:
    place = Place(seq=1, key="k", name="n", root=about)
    made = page_content.build_page(place, [memory(1, "The gull listens on port 8400", "fact")], facts=(), themes=())
    assert made is not None
    known = [replace(made, path=f"projects/p{one}.md", title=f"p{one} {about}") for one in range(number)]
    was = page_format.parse_page("# What csmd remembers\n\n" + "\n\n".join(theirs))
    whole = page_format.render_page(page_content.build_index(known, was))
    assert environment.cut_index(whole) == whole and len(whole.encode()) <= 25_000 and whole.count("\n") <= 200
    assert page_format.render_page(page_content.build_index(known, page_format.parse_page(whole))) == whole, (
        "made over itself it is the same"
    )


def test_a_count_that_names_no_command_but_those_of_a_line_above_is_not_told_again() -> None:
    line = memory(1, "`make fmt` formats the code and `make lint` lints: in 5 sessions", "convention")

    def counted(said: str, kind: Literal["command", "files"] = "command") -> Fact:
        return Fact(kind=kind, fingerprint=said, text=said, project_seq=1, seen=4, total=4, sessions=4, confidence=0.8, evidence=("u", "v"))  # fmt: skip

    facts = [
        counted("Linting is done with `make lint`, 4 of 4 times."),
        counted("Linting is done with `make lint`, 4 of 5 times; otherwise with `ruff`."),
        counted("When `make lint` changes, so does `make fmt`.", "files"),
    ]
    made = page_content.build_page(PLACE, [line], facts=facts, themes=())
    assert made is not None
    assert [item.text for item in made.sections[-1].items] == [one.text for one in facts[1:]]
    raised = memory(2, "When `make lint` changes, so does `make fmt`.", "fact")
    made = page_content.build_page(PLACE, [line, raised], facts=facts, themes=())
    assert made is not None and [item.text for item in made.sections[-1].items] == [facts[1].text]


@pytest.mark.parametrize(
    ("said", "heading", "stands"),
    [
        ("i want the tests before the fix", "How the user works", "i want the tests before the fix"),
        ("if a check fails say so first", "How the user works", "if a check fails say so first"),
        ("let's never keep notes in JavaScript files", "How the user works", "let's never keep notes in JavaScript files"),
        ("make fmt should run before make lint", "How the user works", "make fmt should run before make lint"),
        ("** never call `os.Exit` twice, see exit.go:12", "Decisions and conventions", "never call `os.Exit` twice, see exit.go:12"),
        ("the hasNewContent check stays in saveChanges()", "Decisions and conventions", "the hasNewContent check stays in saveChanges()"),
    ],
)  # fmt: skip
def test_a_wish_for_a_name_in_the_code_is_no_way_to_work_and_a_line_has_no_mark_without_its_other(
    said: str, heading: str, stands: str
) -> None:
    known = replace(memory(1, said, "preference"), gate="behavioral")
    made = page([known])
    assert made is not None
    assert [(one.heading, item.text) for one in made.sections for item in one.items] == [(heading, stands)]


@pytest.mark.invariant("A page and a day tell a thing once, opposites both")
def test_what_two_sections_of_a_page_would_say_stands_once_and_counts_twice() -> None:
    said = "The exporter runs `fetch` with no timeout against the mirror"
    made = page([memory(1, said, "fact"), memory(2, f"{said} host", "decision")])
    assert made is not None
    assert sum(len(section.items) for section in made.sections) == 1 and sum(one.more for one in made.sections) == 1


def test_what_was_to_be_done_stands_as_long_as_anybody_may_still_mean_it() -> None:
    plan = replace(
        memory(1, "we still have to move the gull exporter to the new host", "plan"), confirmed_at="2026-01-01"
    )
    later = [
        replace(memory(2, "The heron ledger keeps whole cents", "fact"), confirmed_at=at)
        for at in ("2026-01-15", "2026-01-16")
    ]
    for one, other, stands in (
        (plan, later[0], True), (plan, later[1], False), (replace(plan, pinned=True), later[1], True),
        (replace(plan, session_id=""), later[1], True),
    ):  # fmt: skip
        made = page([one, other])
        assert made is not None and ("Still open" in [section.heading for section in made.sections]) is stands
    own = page_format.parse_page(f"## Mine\n\n- {plan.text} <!-- m:{plan.id} -->\n")
    made = page_content.build_page(PLACE, [plan, later[1]], facts=(), themes=(), previous=own)
    assert made is not None and plan.id in [item.id for section in made.sections for item in section.items], (
        "a person put it there"
    )


@pytest.mark.parametrize(
    ("said", "beside", "stands"),
    [
        ("FetchGulls runs git fetch with context.TODO() and no timeout",
         "git fetch is run with context.TODO() and no timeout, so a dead network makes the gull exporter hang", 1),
        ("FetchGulls runs git fetch with context.TODO() and 30 seconds",
         "git fetch is run with context.TODO() and 60 seconds, so a dead network makes the gull exporter hang", 2),
        ("FetchGulls runs git fetch with context.TODO() and a timeout",
         "git fetch is not run with context.TODO() and a timeout, so a dead network makes the gull exporter hang", 2),
    ],
)  # fmt: skip
def test_what_a_surer_line_says_with_more_does_not_stand_beside_it(said: str, beside: str, stands: int) -> None:
    made = page([memory(1, beside, "fact"), replace(memory(2, said, "decision"), confidence=0.8)])
    assert made is not None and sum(len(section.items) for section in made.sections) == stands
    made = page([memory(1, beside, "fact"), replace(memory(2, said, "decision"), pinned=True)])
    assert made is not None and sum(len(section.items) for section in made.sections) == 2, "what says more stands"


BIRDS = "heron stork crane gull tern swan teal wren robin finch eagle kite falcon raven rook jay".split()


def test_what_points_at_something_that_is_not_told_has_no_line() -> None:
    points = [memory(1, "the pattern here should be narrower about herons", "decision"), memory(2, "This is done by the stork exporter at night", "decision")]  # fmt: skip
    others = [memory(10 + at, f"{bird} {word} needs {bird}{at} beside {word}house", "decision") for at, (bird, word) in enumerate(zip(BIRDS, WORDS, strict=False))]  # fmt: skip
    made = page([*points, *others])
    assert made is not None
    shown = [item.id for section in made.sections for item in section.items]
    assert len(shown) == page_content.MAX_SECTION_LINES and not {one.id for one in points} & set(shown)
    seen = [points[0], replace(points[1], scene="at export/stork.py"), replace(points[1], id="m9", pinned=True)]
    made = page(seen)
    assert made is not None
    shown = [item.id for section in made.sections for item in section.items]
    assert points[1].id in shown or "m9" in shown, "with its scene, or pinned, it can be followed"


@pytest.mark.parametrize(("session", "stand"), [("s", 1), ("another", 2)])
def test_what_one_session_tells_twice_at_length_stands_once(session: str, stand: int) -> None:
    words = " ".join(WORDS)
    known = [
        memory(0, f"{words} stand in the first account", "fact"),
        memory(1, f"{' '.join(WORDS[4:])}, heron, robin, wren, finch and stork", "fact"),
    ]
    made = page([known[0], replace(known[1], session_id=session)])
    assert made is not None and sum(len(section.items) for section in made.sections) == stand


@pytest.mark.invariant(
    "A session's start and a page leave out what was about to change, was doubted or done at once, what one session told twice, and neither a rule, nor a correction that nobody doubts, nor what a person pinned or wrote there"
)
def test_two_things_of_one_session_that_differ_in_a_number_or_a_denial_both_stand() -> None:
    first = "The staging exporter writes 500 rows into each file and keeps every file for seven days before the cleaner deletes it"
    for other in (
        "The production exporter writes 9000 rows into each file and keeps every file for ninety days before the archiver moves it",
        "The production exporter does not write rows into each file, and never keeps a file for days before the cleaner deletes it",
    ):
        made = page([memory(0, first, "fact"), memory(1, other, "fact")])
        assert made is not None and sum(len(section.items) for section in made.sections) == 2


def test_what_stands_quoted_beside_another_line_is_no_line_of_its_own() -> None:
    lead = memory(0, 'The amber gate keeps its "key" across a restart', "fact")
    more = replace(
        memory(1, "However, the birch folder still uses the old name", "fact"),
        scene="after \"The amber gate keeps its 'key' across a restart\"",
    )
    made = page([lead, more])
    assert made is not None
    assert [(len(section.items), section.more, section.items[0].id) for section in made.sections] == [(1, 1, more.id)]
    kept = page([replace(lead, pinned=True), more])
    assert kept is not None and sum(len(section.items) for section in kept.sections) == 2


def test_what_a_person_writes_on_a_page_is_no_session_that_leaves_a_plan_behind() -> None:
    plan = memory(1, "the amber gate gets a key of its own next", "plan")
    assert plan.gate == "promissory"
    late = replace(memory(2, "birch folders are read only", "fact"), confirmed_at="2027-01-01", session_id="")
    assert page_content.drop_old_plans([plan, late]) == [plan, late]
    assert page_content.drop_old_plans([plan, replace(late, session_id="s9")]) == [replace(late, session_id="s9")]


def test_where_no_heading_tells_what_was_edited_since_the_line_does() -> None:
    one = replace(memory(0, "the amber gate returns early", "gotcha"), is_edited=True, scene="at src/gate.py")
    assert page_content.build_item(one).scene == "said at src/gate.py"
    assert (
        page_content.build_item(one, page_content.Annotations(edits=True)).scene
        == "said at src/gate.py, its code edited since"
    )
    assert (
        page_content.build_item(replace(one, scene=""), page_content.Annotations(edits=True)).scene
        == "its code edited since"
    )


def test_a_reviewers_remark_stands_under_a_heading_of_its_own() -> None:
    known = [
        memory(number, f"the {word} gate returns early without its {WORDS[-number - 1]}, {WORDS[number + 5]}", "gotcha")
        for number, word in enumerate(WORDS[:3])
    ]
    known = [
        known[0],
        replace(known[1], scene=f'{REVIEW}, after "It returns."'),
        replace(known[2], scene=REVIEW, is_edited=True),
    ]
    made = page(known)
    assert made is not None
    told = {section.heading: [item.id for item in section.items] for section in made.sections}
    assert told == {
        "Known gotchas": [known[0].id],
        page_content.REVIEWS_HEADING: [known[1].id],
        page_content.EDITED_HEADING: [known[2].id],
    }


def test_what_was_said_of_code_that_was_edited_since_stands_apart_and_last_but_what_is_pinned() -> None:
    known = [
        memory(number, f"{word} and {WORDS[number + 5]} drop every {WORDS[number + 10]}", "gotcha")
        for number, word in enumerate(WORDS[:3])
    ]
    known = [known[0], replace(known[1], is_edited=True), replace(known[2], is_edited=True, pinned=True)]
    made = page(known)
    assert made is not None
    told = {section.heading: [item.id for item in section.items] for section in made.sections}
    assert told == {"Known gotchas": [known[2].id, known[0].id], page_content.EDITED_HEADING: [known[1].id]}
    assert [section.heading for section in made.sections][-1] == page_content.EDITED_HEADING
    assert (
        page_content.find_waiting_heading("epistemic", "fact") == "Facts"
        and page_content.classify_heading(page_content.EDITED_HEADING)[0] == "epistemic"
    )


def test_the_index_says_a_name_once_and_a_theme_whose_notes_it_has() -> None:
    notes = {one.id: one for one in (memory(1, "The exporter needs its directory", "fact"),)}
    theme = Theme(name="exports", members=frozenset(notes))
    made = page_content.build_theme_page(theme, "topics/exports.md", list(notes.values()), {1: PLACE})
    assert "- [exports](topics/exports.md): 1 note of gull\n" in page_format.render_page(
        page_content.build_index([made])
    )


@pytest.mark.parametrize(
    ("theme", "topics"),
    [
        (Theme(name="exports", also=("dumps",)), ["exports", "dumps"]),
        (Theme(name="exports: disks", part="disks"), ["exports", "disks"]),
    ],
)
def test_the_page_of_a_theme_or_of_its_part_names_the_topics_of_its_lines(theme: Theme, topics: list[str]) -> None:
    note = memory(1, "The exporter needs its directory", "fact")
    made = page_content.build_theme_page(theme, "topics/exports.md", [note], {1: PLACE})
    assert page_format.parse_page(page_format.render_page(made)).head["topics"] == topics


def test_the_users_page_says_that_there_is_nothing_yet() -> None:
    empty, some = (
        page_format.render_page(page_content.build_page(Place(seq=0, key="", name="", root=""), known))
        for known in ([], [memory(1, "The user is called Ada", "fact")])
    )
    assert "Nothing is known yet" in empty and "Nothing is known yet" not in some
    assert not page_format.parse_page(empty).lines() and not page_format.parse_page(empty).own


@pytest.mark.parametrize("said", ["b" * 1_000_000, "aBa" + "a" * 1_000_000, "aBa" + "A" * 1_000_000, "b-" * 500_000])
def test_how_long_a_name_is_looked_at_grows_with_its_length_alone(said: str) -> None:
    assert next(kind for kind in page_content.HEADING_RULES if kind.fits(memory(1, said, "preference")))
