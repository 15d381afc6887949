"""What names no place itself is told with the file at hand, or the question asked; all else is told as it is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.conversation import SessionPrompt, StatedInTurn, StatedMemory
from csmd.extraction import statement_context
from csmd.extraction.statement_context import Change, Claim, Edit, Scene

ANSWER = "the catch: only what stands on the default branch is shown"
ASKED = "How can I try the order form before it is merged?"
PASTED = "we could resume anyway or cancel"


def change(ordinal: int, path: str = "/home/me/shop/cli/resume.go") -> Change:
    return Change(uuid=f"e{ordinal}", ordinal=ordinal, path=path)


def stated(
    said: str, at: int, *, key: int = 1, by_user: bool = False, turn: str = "", corrects: bool = False
) -> StatedInTurn:
    """A statement at an ordinal, by default the whole turn of an assistant."""
    gate = "correction" if corrects else "epistemic"
    return StatedInTurn(key, said, "user" if by_user else "assistant", "said", at, turn or said, gate)


def check(
    said: str,
    *changes: Change,
    wanted: str,
    by_user: bool = True,
    turn: str = "",
    corrects: bool = False,
    prompts: tuple[tuple[int, str], ...] = ((3, "please go on"),),
    at: int = 5,
) -> None:
    """The scene of what was said at an ordinal as "phrase, turn", "" for none."""
    found = statement_context.find_scenes(
        [stated(said, at, by_user=by_user, turn=turn, corrects=corrects)],
        changes,
        [SessionPrompt(f"p{ordinal}", ordinal, text) for ordinal, text in prompts],
    )
    assert ", ".join(found.get(1, ())) == wanted


@pytest.mark.parametrize(
    ("said", "changes", "wanted"),
    [
        (PASTED, [change(6)], "at cli/resume.go, e6"),
        (PASTED, [change(6), change(8)], "at cli/resume.go, e8"),
        (PASTED, [change(6), change(7, "/p/a.go"), change(8, "/p/b.go")], ""),
        (PASTED, [change(6), change(7, "/p/cli/resume_test.go"), change(8, "/p/cli/resume_test.go")], "at cli/resume.go, e6"),
        (PASTED, [change(6, r"C:\work\shop\cli\resume.go")], "at cli/resume.go, e6"),
        (PASTED, [change(4)], ""),
        (PASTED, [change(6, "/home/me/.claude/plans/resume.md")], ""),
        (PASTED, [change(6, "/tmp/notes/resume.md")], ""),
        ("`resume_session` could cancel", [change(6)], ""),
        ("settings.local.json could hold it", [change(6)], ""),
        ("always ask before you cancel", [change(6)], ""),
        (PASTED, [], ""),
    ],
)  # fmt: skip
def test_what_a_user_says_of_no_place_is_told_with_the_file_that_the_work_behind_it_changed(
    said: str, changes: list[Change], wanted: str
) -> None:
    check(said, *changes, wanted=wanted)


def test_a_reviewers_remark_is_told_as_one() -> None:
    remark = (
        "FetchBranch runs git fetch without a timeout. If the network hangs, the command hangs, too, which blocks the hooks "
        "of every session. Consider passing a context with a deadline instead."
    )
    said = "If the network hangs, the command hangs, too"
    lead = remark.partition(". ")[0]
    check(said, change(6), turn=remark, wanted=f'in a review, after "{lead}.", said')
    check(said, change(6), turn=remark, corrects=True, wanted="at cli/resume.go, e6")
    check(said, change(6), turn=f"I think that {remark}", wanted="at cli/resume.go, e6")


def test_what_a_user_wants_of_the_project_is_no_reviewers_remark_nor_is_what_stands_beside_a_quoted_one() -> None:
    wanted = (
        "The `billing_export` job should write one file per customer and keep existing files, because the accountants diff "
        "them. The names should be lower case with dashes. The dates should be ISO without a time."
    )
    check(
        "The names should be lower case with dashes.", turn=wanted, wanted=f'after "{wanted.partition(". ")[0]}.", said'
    )
    advice = (
        "`fetchBranch` runs without a timeout. Consider passing a context with a deadline, since the network may hang for a "
        "long time on the build machines."
    )
    turn = f'Run ruff before you commit. And I got this from the linter: "{advice}"'
    check("Run ruff before you commit.", turn=turn, wanted="")
    check("the network may hang for a long time on the build machines", turn=turn, wanted='in a review, after "Run ruff before you commit.", said')  # fmt: skip


def test_a_sentence_is_not_told_as_after_itself() -> None:
    behind = "a warm cache must not be skipped? Like a cold run, then a warm one, then both together"
    check(behind, turn=f"oh can we add why {behind}", wanted="")
    check(
        "the config key is database_url, not db_url",
        turn="no, that's wrong: the config key is database_url, not db_url",
        wanted="",
    )


TRACKED = "We track the changed files of a checkpoint, can we use that to decide if the shadow branch is reset?"
KEPT = "we must keep in mind that people rename"


@pytest.mark.parametrize(
    ("turn", "wanted"),
    [
        (f"{TRACKED} But {KEPT}", f'after "{TRACKED}", said'),
        (f"Hello!\n\n## Medium\n\n{TRACKED} But {KEPT}", f'after "{TRACKED}", said'),
        (f"when running:\n\nshop export\n\nnothing is told. But {KEPT}", 'after "when running: shop export", said'),
        (f"Can you look at this idea in this context: {KEPT}", ""),
        (f"{KEPT}. {TRACKED}", ""),
        (f"{TRACKED[:-1]}, {'and so on, ' * 20}please? But {KEPT}", ""),
    ],
)
def test_what_stands_behind_the_beginning_of_a_turn_is_told_with_that(turn: str, wanted: str) -> None:
    check(KEPT, turn=turn, wanted=wanted)
    check(KEPT, change(6), turn=turn, wanted="at cli/resume.go, e6")
    check(KEPT, turn=turn, by_user=False, wanted="")


def test_the_work_ends_with_the_next_prompt() -> None:
    check(PASTED, change(8), prompts=((5, PASTED), (7, "something else")), wanted="")


def test_the_only_file_that_the_turn_names_comes_first_and_several_leave_it_open() -> None:
    check(PASTED, change(6), turn=f"look at cli/start.go\n{PASTED}", wanted="at cli/start.go, said")
    check(
        PASTED,
        change(6),
        turn=f"look at cli/start.go and cli/stop.go\n{PASTED}",
        wanted='after "look at cli/start.go and cli/stop.go", said',
    )


def test_an_assistant_speaks_of_what_it_just_changed_or_changed_shortly_before() -> None:
    check(ANSWER, change(4), by_user=False, wanted="at cli/resume.go, e4")
    check(ANSWER, change(2), by_user=False, prompts=((1, "mend it"), (3, "and now?")), wanted="at cli/resume.go, e2")
    both = ((1, "mend it"), (3, "it says that"), (4, "and this, too"))
    check(ANSWER, change(2), by_user=False, prompts=both, wanted="at cli/resume.go, e2")
    long_ago = ((1, "mend it"), (3, "go on"), (5, "and on"), (7, "further"))
    check(ANSWER, change(2), by_user=False, prompts=long_ago, at=8, wanted="")


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        (ASKED, f'in answer to "{ASKED}", p3'),
        (f"Thanks. {ASKED}", f'in answer to "{ASKED}", p3'),
        ('Why does "order" show the old form?', "in answer to \"Why does 'order' show the old form?\", p3"),
        ("Can you rewrite the order form for me, in two columns?", ""),
        ("can you check what the order form does without a branch?", 'in answer to "can you check what the order form does without a branch?", p3'),
        ("and what of that?", ""),
        ("Is only shown what stands on the default branch?", ""),
        ("Is there a way " + "to show the order form " * 9 + "?", ""),
        (f"```\n{ASKED}\n```", ""),
        ("show the order form before it is merged", ""),
    ],
)  # fmt: skip
def test_an_answer_on_which_nothing_was_done_is_told_with_its_question(prompt: str, wanted: str) -> None:
    check(ANSWER, by_user=False, prompts=((3, prompt),), wanted=wanted)


def test_where_something_was_done_the_file_is_told_and_a_question_only_for_an_answer() -> None:
    check(ANSWER, change(4), by_user=False, prompts=((3, ASKED),), wanted="at cli/resume.go, e4")
    check(ANSWER, by_user=True, prompts=((3, ASKED),), wanted="")


@pytest.mark.parametrize(
    ("behind", "wanted"),
    [
        (Change("w9", 9, "/home/me/shop/cli/resume.go", anew=True), "w9"),
        (change(9), ""),
        (Change("w9", 9, "/p/b.go", anew=True), ""),
        (Change("w5", 5, "/home/me/shop/cli/resume.go", anew=True), ""),
    ],
)
def test_what_an_assistant_says_of_its_work_ends_where_the_file_is_written_anew(behind: Change, wanted: str) -> None:
    typed = [SessionPrompt("p3", 3, "do it"), SessionPrompt("p7", 7, "and now otherwise")]
    work = sorted([change(4), behind], key=lambda one: one.ordinal)
    for by_user in (False, True):
        found = statement_context.find_rewrites(
            [StatedMemory(1, "m1", ANSWER, "fact", "user" if by_user else "assistant", "said", 6)], work, typed
        )
        assert [one.uuid for one in found.values()] == ([wanted] if wanted and not by_user else [])


CHANGES = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(("/p/a.go", "/p/b.go", "/p/a_test.go", "", "/tmp/x.go"))), max_size=12
)


@pytest.mark.invariant(
    "What a memory of a project leaves out of where it was said is told with its scene: the project's file that was at hand, the question that it answers, the sentence with which its turn began, or that a reviewer remarked it. The scene is a turn's of its own session, goes when that is purged or what it quotes is forgotten, makes nothing surer, and is told nowhere where the memory holds everywhere"
)
@given(CHANGES, st.lists(st.tuples(st.integers(0, 30), st.sampled_from((ASKED, "go on", ""))), max_size=6), st.integers(0, 30), st.booleans())  # fmt: skip
def test_a_scene_is_always_shown_by_a_turn_of_the_session(
    changes: list[tuple[int, str]], prompts: list[tuple[int, str]], at: int, by_user: bool
) -> None:
    work = [Change(f"e{ordinal}.{number}", ordinal, path) for number, (ordinal, path) in enumerate(sorted(changes))]
    taken = {one.ordinal for one in work} | (set() if by_user else {at})  # an ordinal is of one turn
    typed = [SessionPrompt(f"p{at_}", at_, said) for at_, said in sorted(dict(prompts).items()) if at_ not in taken]
    found = statement_context.find_scenes([stated(ANSWER, at, by_user=by_user)], work, typed)
    if not found:
        return
    there = found[1]
    if there.text.startswith("at "):
        (change,) = [one for one in work if one.uuid == there.uuid]
        assert there.text == f"at {change.path.removeprefix('/')}" and "tmp" not in change.path
        said_at = {one.ordinal for one in typed}  # what is typed one after the other is answered as one
        end = min((one for one in said_at if one > at and one - 1 not in said_at), default=99)
        assert change.ordinal < end and (change.ordinal >= at or not by_user)
    else:
        before = [one for one in typed if one.ordinal <= at]
        assert not by_user and there == Scene(f'in answer to "{ASKED}"', before[-1].uuid) and before[-1].text == ASKED


def test_of_many_statements_each_exchange_is_counted_once() -> None:
    work = [Change(f"e{number}", number, f"src/{number % 7}.go") for number in range(2_000)]
    said = [stated(ANSWER, number, key=number) for number in range(2_000)]
    begun = time.process_time()
    statement_context.find_scenes(said[:20], work, [SessionPrompt("p", 0, "go on")])
    few = time.process_time() - begun
    begun = time.process_time()
    statement_context.find_scenes(said, work, [SessionPrompt("p", 0, "go on")])
    assert time.process_time() - begun < 40 * max(few, 0.002)


# --- What a session says of code is told as edited once an edit behind it took out what it names, or changed the place.


SAID = "`parse_date` drops the zone, since `naive()` is called before the offset is read"


def edit(old: str, new: str = "return aware(text)", *, path: str = "/p/src/dates.py", ordinal: int = 9) -> Edit:
    return Edit(uuid=f"e{ordinal}", at="", ordinal=ordinal, path=path, old=old, new=new)


def check_edited(
    said: str,
    *edits: Edit,
    category: str = "gotcha",
    by_assistant: bool = False,
    turn: str = "",
    answered: int = 0,
    wanted: str,
) -> None:
    """The uuid of the edit that changed what is spoken of, "" for none; said at ordinal 5, in answer up to `answered`."""
    found = (
        statement_context.find_edits(
            [Claim(1, said, 5, statement_context.find_remark(said, category, turn), answered)], edits
        ).get(1)
        if statement_context.is_claim(said, category, by_assistant=by_assistant, turn=turn)
        else None
    )
    assert (found.uuid if found else "") == wanted


@pytest.mark.invariant(
    "What is said of code that was edited later in its session is told with that, after what stands, and is no less believed"
)
@pytest.mark.parametrize(
    ("edits", "wanted"),
    [
        pytest.param([edit("x = naive(text)")], "e9", id="a name is taken out"),
        pytest.param([edit("def parse_date(text):\n    naive(text)", "def parse_date(text):\n    naive(text, zone)")], "e9",
                     id="a place with several of the names is changed"),
        pytest.param([edit("x = naive(text)"), edit("y = naive(text)", ordinal=12)], "e12", id="the last one"),
        pytest.param([edit("def parse_date(text):", "def parse_date(text: str):")], "", id="one name stays where it was"),
        pytest.param([edit("x = naive(text)", ordinal=4)], "", id="before it was said"),
        pytest.param([edit("x = naive(text)", path="/p/tests/test_dates.py")], "", id="in a test"),
        pytest.param([edit("x = naive(text)", path="/p/DatesTest.java")], "", id="in another language's test"),
        pytest.param([edit("x = naive(text)", path="/p/latest.go")], "e9", id="in a file that only sounds like one"),
        pytest.param([edit("x = other(text)")], "", id="something else"),
        pytest.param([], "", id="nothing was edited"),
    ],
)  # fmt: skip
def test_an_edit_of_what_is_named_is_told_and_no_other(edits: list[Edit], wanted: str) -> None:
    check_edited(SAID, *edits, wanted=wanted)


@pytest.mark.invariant(
    "What is said of code that was edited later in its session is told with that, after what stands, and is no less believed"
)
@pytest.mark.parametrize(
    ("said", "category"),
    [
        (SAID, "decision"),
        ("Fixed `parse_date`: `naive()` is called behind it", "gotcha"),
        ("`parse_date` now reads the offset before `naive()`", "fact"),
        ("we should call `naive()` behind `parse_date`", "fact"),
        ("never call `naive()` in `parse_date`", "gotcha"),
        ("dates come without a zone from the gateway", "fact"),
    ],
)
def test_what_tells_of_a_change_wants_one_or_names_nothing_claims_nothing_of_code(said: str, category: str) -> None:
    check_edited(said, edit("x = naive(parse_date)"), category=category, wanted="")


def test_an_assistants_decision_says_how_it_is_and_a_users_how_it_is_to_be() -> None:
    said = "`parse_date` calls `naive()` before the offset is read, which is not what we want"
    check_edited(said, edit("x = naive(text)"), category="decision", by_assistant=True, wanted="e9")
    check_edited(said, edit("x = naive(text)"), category="decision", wanted="")


def test_what_is_said_of_a_whole_file_is_told_when_anything_in_it_was_edited() -> None:
    said = "the document docs/dates.md describes an early design that was never built"
    check_edited(said, edit("# Dates", "# Time", path="/p/docs/dates.md"), category="fact", wanted="e9")
    check_edited(f"{said}: `Zone` is missing", edit("# Dates", path="/p/docs/dates.md"), category="fact", wanted="")


def test_a_reviewers_remark_that_is_handed_on_claims_something_whatever_it_advises() -> None:
    remark = (
        "`parse_date` drops the zone. Consider calling `naive()` behind the offset, since a date without a zone may be "
        "off by a day in the reports of other regions."
    )
    check_edited(
        "Consider calling `naive()` behind the offset", edit("x = naive(text)"), category="decision", wanted=""
    )
    check_edited(
        "Consider calling `naive()` behind the offset",
        edit("x = naive(text)"),
        category="decision",
        turn=remark,
        wanted="e9",
    )


REMARK = (
    "Date handling: `parse_date` in dates.py reads the text without its zone. Two readers in different regions may see "
    "different days. Consider passing the offset through `with_zone()` instead, as the other reports do."
)
PART = "Two readers in different regions may see different days."


@pytest.mark.invariant(
    "What is said of code that was edited later in its session is told with that, after what stands, and is no less believed"
)
@pytest.mark.parametrize(
    ("edits", "answered", "wanted"),
    [
        pytest.param([edit("def parse_date(text):", "def parse_date(text, zone):")], 0, "e9",
                     id="the remark's name in the remark's file"),
        pytest.param([edit("x = parse_date(text)", "x = with_zone(parse_date(text))", path="/p/src/report.py")], 0, "e9",
                     id="two of its names, one of them new"),
        pytest.param([edit("x = parse_date(text)", "x = parse_date(line)", path="/p/src/report.py")], 0, "",
                     id="one of its names, any time later"),
        pytest.param([edit("x = read(text)", "x = with_zone(text)", path="/p/src/report.py")], 20, "e9",
                     id="what it advises, in answer to it"),
        pytest.param([edit("", "def with_zone(text): ...", path="/p/src/zone.py")], 20, "e9",
                     id="a new file, in answer to it"),
        pytest.param([edit("x = read(text)", "x = with_zone(text)", path="/p/src/report.py")], 9, "",
                     id="what it advises, asked for by another prompt"),
        pytest.param([edit("x = other(text)")], 20, "", id="nothing of it, in its file, in answer to it"),
        pytest.param([edit("with_zone(parse_date(text))", path="/p/tests/test_dates.py")], 20, "", id="a test"),
        pytest.param([edit("with_zone(parse_date(text))", path="/p/docs/time.md")], 20, "", id="a document"),
        pytest.param([edit("with_zone(parse_date(text))", ordinal=4)], 20, "", id="before it was handed on"),
    ],
)  # fmt: skip
def test_a_sentence_of_a_remark_is_about_what_the_remark_names(edits: list[Edit], answered: int, wanted: str) -> None:
    for category in ("fact", "preference"):
        check_edited(PART, *edits, category=category, turn=REMARK, answered=answered, wanted=wanted)
    check_edited(PART, *edits, category="fact", answered=answered, wanted="")


def test_of_several_remarks_in_a_list_each_is_about_its_own_code() -> None:
    listed = (
        "- `parse_date` reads the text without its zone, which may be off by a day for readers in other regions\n"
        "- the greeting that `render_mail` builds lacks an escape, so a name with a bracket breaks the page"
    )
    said = "the text is read without its zone, which may be off by a day for readers in other regions"
    check_edited(said, edit("x = parse_date(text)"), turn=listed, answered=20, wanted="e9")
    check_edited(said, edit("x = render_mail(text)"), turn=listed, answered=20, wanted="")


def test_a_remark_that_tells_of_a_change_claims_nothing_and_neither_does_what_is_only_made_of_remarks() -> None:
    said = "Two readers in different regions now see different days."
    check_edited(said, edit("with_zone(parse_date(text))"), turn=REMARK.replace(PART, said), answered=20, wanted="")
    check_edited(
        f"{PART} {said}", edit("with_zone(parse_date(text))"), turn=REMARK.replace(PART, f"{PART} {said}"), wanted="e9"
    )
    habit = "Review feedback that is pasted word for word is to be addressed: in 9 of 73 sessions."
    check_edited(habit, edit("with_zone(parse_date(text))"), category="preference", turn=REMARK, answered=20, wanted="")


def test_a_line_that_is_named_with_its_file_is_in_that_file() -> None:
    typed = edit("def parse_date(text):", "def parse_date(text: str):")
    check_edited("`parse_date` in `dates.py:12-20` drops the zone", typed, wanted="e9")
    check_edited("`parse_date` in `times.py:12-20` drops the zone", typed, wanted="")


def test_a_finding_is_told_with_its_edit_whoever_made_it_and_a_quoted_remark_is_one() -> None:
    found = (
        "When a date has no zone, parse_date reads it as local time, but to_utc() does not. Reports of two "
        "regions differ by a day. This causes totals to be counted twice in the monthly overview."
    )
    said = "Reports of two regions differ by a day."
    late = edit("x = parse_date(text)", "x = to_utc(parse_date(text), zone)", path="/p/src/report.py")
    check_edited(said, late, category="fact", turn=found, wanted="e9")
    check_edited(said, late, category="preference", turn=found, wanted="")
    check_edited(said, late, category="fact", turn=f"I think so: {found}", wanted="")
    check_edited(said, late, category="preference", turn=f'I got this for dates.py: "Consider this. {found}" Can you address it?', wanted="e9")  # fmt: skip
