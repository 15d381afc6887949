"""What a question asks for is read off its words: golden tables, each row one wording."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.errors import BadInput
from csmd.recall import query

#: A Wednesday.
NOW = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)

#: (what is asked on 2026-03-18, first day, the day after the last one; "" for open)
TIMES = [
    ("what did we do today?", "2026-03-18", "2026-03-19"),
    ("what did we do yesterday about the cache?", "2026-03-17", "2026-03-18"),
    ("the day before yesterday you said", "2026-03-16", "2026-03-17"),
    ("what broke last night", "2026-03-17", "2026-03-18"),
    ("3 days ago we talked about it", "2026-03-15", "2026-03-16"),
    ("two weeks ago", "2026-03-01", "2026-03-08"),
    ("a month ago", "2026-02-01", "2026-03-04"),
    ("in the last 3 days", "2026-03-15", "2026-03-19"),
    ("over the past two weeks", "2026-03-04", "2026-03-19"),
    ("this week", "2026-03-16", "2026-03-23"),
    ("last week", "2026-03-09", "2026-03-16"),
    ("last month", "2026-02-01", "2026-03-01"),
    ("this year", "2026-01-01", "2027-01-01"),
    ("what did I say on monday?", "2026-03-16", "2026-03-17"),
    ("on wednesday", "2026-03-11", "2026-03-12"),
    ("since monday", "2026-03-16", ""),
    ("in january", "2026-01-01", "2026-02-01"),
    ("in december we decided", "2025-12-01", "2026-01-01"),
    ("in may", "2025-05-01", "2025-06-01"),
    ("in may 2023", "2023-05-01", "2023-06-01"),
    ("during Sept. 2025", "2025-09-01", "2025-10-01"),
    ("on 7 May 2023", "2023-05-07", "2023-05-08"),
    ("on May 7th, 2023", "2023-05-07", "2023-05-08"),
    ("on the 3rd of march", "2026-03-03", "2026-03-04"),
    ("on march 25", "2025-03-25", "2025-03-26"),
    ("around 2026-01-12", "2026-01-12", "2026-01-13"),
    ("in 2026-01", "2026-01-01", "2026-02-01"),
    ("in 2024", "2024-01-01", "2025-01-01"),
    ("since february", "2026-02-01", ""),
    ("before 2026-02-01", "", "2026-02-01"),
    ("after last week", "2026-03-16", ""),
    ("until yesterday", "", "2026-03-18"),
    ("what changed recently?", "2026-03-04", "2026-03-19"),
    # What only looks like a time.
    ("may I use tabs?", None, None),
    ("the march of progress", None, None),
    ("on the 31st of june 2025", "2025-06-01", "2025-07-01"),
    ("version 2024", None, None),
    ("the second step", None, None),
    ("how do deploys work?", None, None),
]


@pytest.mark.parametrize(("asked", "since", "until"), TIMES)
def test_a_time_word_is_a_window(asked: str, since: str | None, until: str | None) -> None:
    window = query.find_window(asked, NOW)
    if since is None:
        assert window is None
    else:
        assert window is not None and (window.since[:10], window.until[:10]) == (since, until)


LITERALS = [
    ("where is `entire/sessions` made?", ("entire/sessions",)),
    ('what does "no such ref" mean?', ("no such ref",)),
    ("what's in csmd/store/search.py?", ("csmd/store/search.py",)),
    ("why is app.toml read twice, and `make ship`", ("make ship", "app.toml")),
    ("it's what we don't do", ()),
    ("`x` and '--'", ()),
]


@pytest.mark.parametrize(("asked", "literals"), LITERALS)
def test_what_is_code_quoted_or_a_path_is_taken_as_it_is_written(asked: str, literals: tuple[str, ...]) -> None:
    assert query.find_literals(asked) == list(literals)


def test_days_are_those_of_the_place_where_it_is_asked() -> None:
    east = datetime(2026, 3, 18, 1, 0, tzinfo=timezone(timedelta(hours=9)))
    window = query.find_window("today", east)
    assert window is not None and window.since == "2026-03-17T15:00:00.000Z"


LIMITS = [
    ("2026-01-31", "", "2026-01-31", ""),
    ("2026-01", "2026-02", "2026-01-01", "2026-03-01"),
    ("7d", "", "2026-03-11", ""),
    ("1000d", "", "2023-06-22", ""),
    ("20260504", "", "2026-05-04", ""),
    ("2026-05-04T10:00", "", "2026-05-04", ""),
    ("yesterday", "yesterday", "2026-03-17", "2026-03-18"),
    ("monday", "", "2026-03-16", ""),
    ("last week", "last week", "2026-03-09", "2026-03-16"),
    ("", "3 May 2024", "", "2024-05-04"),
]


@pytest.mark.parametrize(("since", "until", "first", "end"), LIMITS)
def test_limits_of_time_are_written_as_people_write_times(since: str, until: str, first: str, end: str) -> None:
    window = query.parse_limits(since, until, now=NOW)
    assert (window.since[:10], window.until[:10]) == (first, end)


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("soon", ""),
        ("", "2026-13-01"),
        ("31 june 2026", ""),
        ("2026-02-01", "2026-01-01"),
        ("0001-01-01", ""),
        ("", "9999-12-31T23:59-14:00"),
        ("00010101", ""),
    ],
)
def test_a_limit_that_is_no_time_or_lets_nothing_in_is_refused(since: str, until: str) -> None:
    with pytest.raises(BadInput):
        query.parse_limits(since, until, now=NOW)


@given(
    st.text(max_size=80),
    st.integers(40_000_000, 7_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
)
def test_reading_a_question_never_fails_and_a_window_ends_after_it_begins(asked: str, now: datetime) -> None:
    window = query.find_window(asked, now)
    assert window is None or not (window.since and window.until) or window.since < window.until


@pytest.mark.parametrize(
    ("asked", "does"),
    [
        ("what did we do last session?", True), ("Where did we stop", True), ("wo waren wir stehen geblieben", True),
        ("où en étions-nous ?", True), ("the last test fails", False), ("stop the session worker", False), ("", False),
        ("Last session?", True), ("summarize the previous session", True), ("so, where were we?", True),
        ("pick up where we left off last time", True), ("invalidate the previous session on logout", False),
        ("the last time I ran this it failed, fix it", False), ("store the last session id in a cookie", False),
        ("how far had we got yesterday?", True), ("was haben wir zuletzt gemacht?", True), ("¿qué hicimos ayer?", True),
        ("fais-moi un résumé de la dernière séance", True), ("what did the last migration change?", False), ("done", False),
        ("¿por qué falló la última prueba?", False), ("so what is left to do in the parser?", False),
    ],
)  # fmt: skip
def test_who_asks_where_they_stopped_asks_for_the_last_session(asked: str, does: bool) -> None:
    assert query.is_about_last_session(asked) is does


@pytest.mark.parametrize("term", "を書 こと 写一 的提 什么 怎么 주세 인가 がと thanks 好的".split())
def test_grammar_assent_and_questions_name_nothing(term: str) -> None:
    assert query.names_nothing(term)


@pytest.mark.parametrize("term", "注文 合計 カー 购物 发票 장바 토큰 order src/cart.ts".split())
def test_words_of_a_subject_and_their_pairs_of_letters_name_something(term: str) -> None:
    assert not query.names_nothing(term)


@pytest.mark.parametrize(
    ("asked", "does"),
    [
        ("what did we do about the flaky upload?", True),
        ("have we ever tried brotli?", True),
        ("why does the header flicker?", False),
        ("do for the header what we did for the footer", False),
    ],
)
def test_who_asks_what_was_done_about_something_asks_for_earlier_work(asked: str, does: bool) -> None:
    assert query.is_about_work(asked) is does


@pytest.mark.parametrize(
    ("prompt", "does"),
    [
        ("Yes, and put the tides below the map", True),
        ("ok now draw the tides below the map", False),
        ("no, the other harbour", True),
        ("It still draws the buoys twice", True),
        ("hmm, maybe the depth belongs in the legend", True),
        ("Implement the following plan:\n\n# Draw the depth lines\n\nEach line is a path.", True),
        ("Good morning! Please draw the depth lines", False),
        ("why does the chart draw the buoys twice?", False),
        ("the chart of the north harbour has no scale", False),
        ("$ make chart\nerror: no tiles for zoom 12\nmake: *** [chart] Error 1", False),
    ],
)
def test_what_answers_corrects_or_refers_to_the_talk_at_hand_continues_it(prompt: str, does: bool) -> None:
    assert query.continues_talk(prompt) is does


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("review https://forge.example.org/harbour/charts/issues/41 please", "review 41 please"),
        ("see https://forge.example.org/ for more", "see https://forge.example.org/ for more"),
    ],
)
def test_of_an_address_the_last_part_is_searched_for(text: str, rest: str) -> None:
    assert query.shorten_addresses(text) == rest
