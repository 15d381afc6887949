"""Which themes have a page, as tables of cases."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from csmd.dream.themes import Theme, ThemeSources, choose_themes


@dataclass(frozen=True)
class Case:
    """Topics as `name: memories of project 1 / of project 2`, those that have a page as `name (also): memories`, memories that
    stand on a project's page; the themes as `name: how many`."""

    tagged: str
    themes: str
    paged: str = ""
    listed: str = ""


CASES = {
    "none": Case("", ""),
    "too few in two projects": Case("a: 1-2/3", ""),
    "enough in two projects": Case("a: 1-2/3-4", "a: 4"),
    "too few in one": Case("a: 1-9/", ""),
    "enough in one": Case("a: 1-10/", "a: 10"),
    "all of them on the project's own page": Case("a: 1-10/", "", listed="1-10"),
    "most of them on the project's own page": Case("a: 1-20/", "", listed="1-16"),
    "some that stand nowhere else": Case("a: 1-20/", "a: 20", listed="1-15"),
    "in two projects, all of them listed": Case("a: 1-2/3-4", "a: 4", listed="1-4"),
    "one that has a page stays": Case("a: 1-2/", "a: 2", paged="a"),
    "and goes when hardly anything is left": Case("a: 1/", "", paged="a"),
    "and goes when the project's page tells nearly all": Case("a: 1-12/", "", paged="a", listed="1-11"),
    "but not before": Case("a: 1-12/", "a: 12", paged="a", listed="1-10"),
    "one that is not found for a while keeps what stands on its page": Case(
        "b: 1-10/", "a: 6; b: 10", paged="a: 20-25"
    ),
    "one that is found in another project alone keeps what stands on its page": Case(
        "a: /30-32", "a: 9", paged="a: 1-6"
    ),
    "and what is left of it": Case("b: 1-10/", "a: 2; b: 10", paged="a: 20-21,30-31"),
    "two that are mostly one": Case("a: 1-10/; b: 3-12/", "a: 12"),
    "one inside another": Case("a: 1-30/; b: 1-10/", "a: 30"),
    "two that overlap a little": Case("a: 1-10/; b: 9-20/", "a: 10; b: 12"),
    "two that overlap by less than half and were one": Case("a: 1-10/; b: 5-15/", "a: 15", paged="a (b)"),
    "two that overlap by less than half and were two": Case("a: 1-10/; b: 5-15/", "a: 10; b: 11", paged="a; b"),
    "one that has a page gives its name": Case("a: 1-12/; b: 1-10/", "b: 12", paged="b"),
    "too broad": Case("a: 1-60/; b: 40-60,70-85/", "a: 39; a: b: 21; b: 37"),
    "not too broad": Case("a: 1-40/; b: 20-40,70-85/", "a: 40; b: 37"),
    "not too broad any more, but it was": Case("a: 1-40/; b: 20-40,70-85/", "a: 19; a: b: 21; b: 37", paged="a; a: b"),
    "small enough to be one again": Case("a: 1-30/; b: 10-30,70-85/", "a: 30; b: 37", paged="a; a: b"),
    "too broad, with too small a part": Case("a: 1-60/; b: 52-60,70-85/", "a: 60; b: 25"),
    "too small a part, but it was one": Case("a: 1-40/; b: 36-40,70-85/", "a: 35; a: b: 5; b: 21", paged="a; a: b"),
    "and goes back when hardly anything is left": Case("a: 1-40/; b: 37-40,70-85/", "a: 40; b: 20", paged="a; a: b"),
    "too broad, with no part": Case("a: 1-60/", "a: 60"),
    "too broad, with a part that is nearly all": Case("a: 1-60/; b: 10-60/", "a: 60"),
}


def numbers(spans: str) -> list[str]:
    pairs = (span.partition("-") for span in filter(None, spans.split(",")))
    return [f"m{number}" for first, _, last in pairs for number in range(int(first), int(last or first) + 1)]


def check(case: Case) -> None:
    tagged: dict[str, list[str]] = {}
    project_of = dict.fromkeys(numbers("1-29"), 1)
    for row in filter(None, case.tagged.split("; ")):
        name, _, rest = row.partition(": ")
        for project, spans in enumerate(rest.split("/"), start=1):
            tagged.setdefault(name, []).extend(numbers(spans))
            project_of |= dict.fromkeys(numbers(spans), project)
    paged = {}
    for row in filter(None, case.paged.split("; ")):
        name, _, spans = row.rpartition(": ") if row[-1].isdigit() else (row, "", "")
        name, _, also = name.partition(" (")
        paged[name] = Theme(name=name, members=frozenset(numbers(spans)), also=tuple(filter(None, [also.rstrip(")")])))
    known = ThemeSources(tagged=tagged, project_of=project_of, paged=paged, listed=numbers(case.listed))
    found = choose_themes(known)
    assert "; ".join(f"{theme.name}: {len(theme.members)}" for theme in found) == case.themes
    assert choose_themes(replace(known, tagged=dict(reversed(tagged.items())))) == found
    have = {one.name: one for one in found}
    again = choose_themes(replace(known, paged=have))
    assert [theme.name for theme in again] == [theme.name for theme in found], "what has pages keeps them"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_which_themes_have_a_page(case: Case) -> None:
    check(case)
