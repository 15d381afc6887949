"""A session's digest says what was done, broken and left open; it is harvested, bounded, and the same for the same input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.extraction import digest, work
from csmd.extraction.work import Entry, Stated
from csmd.hosts import tool_calls

CWD = "/p/alpha"


def call(tool: str, given_: dict[str, Any], answer: str) -> list[tuple[str, str, str]]:
    return [("tool_call", json.dumps(given_, separators=(",", ":")), tool), ("tool_result", answer, "")]


def entries(*said: tuple[str, str] | list[tuple[str, str, str]]) -> list[Entry]:
    """Entries in order; a call and its result belong together."""
    found: list[Entry] = []
    for one in said:
        for kind, body, tool in [(*one, "")] if isinstance(one, tuple) else one:
            at = len(found) + 1
            ident = f"call{at - (kind == 'tool_result')}" if kind.startswith("tool") else ""
            when = f"2026-03-01T10:{at % 60:02d}:00.000Z"
            found.append(Entry(at, f"u{at}", kind, body, when, tool, ident, 10))
    return found


def run(command: str, answer: str) -> list[tuple[str, str, str]]:
    return call("Bash", {"command": command}, answer)


def edit(path: str, answer: str = "The file has been updated") -> list[tuple[str, str, str]]:
    return call("Edit", {"file_path": f"{CWD}/{path}", "old_string": "a"}, answer)


REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected"
ASKED = ("user", "please fix the date parser, it loses the time zone")
DONE = ("assistant", "The parser now keeps the zone. Should I also change the exporter?")
TEST_RUN = "cd /p/alpha && uv run pytest -q 2>&1 | tail -5"


def only(*said: Any, stated: tuple[Stated, ...] = (), title: str = "") -> digest.Digest:
    made = digest.make_versions(entries(*said), stated, title=title, cwd=CWD)
    assert len(made) == 1
    return made[0]


def kept(made: digest.Digest, kind: str) -> list[str]:
    return [item.text for item in made.items if item.kind == kind]


LOG = "Traceback (most recent call last):\n\n2026-03-01 10:00:00 boiler went out\n\nfatal: no gas"


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        (f"{LOG}\n\nwhy does the boiler go out at night?", "why does the boiler go out at night?"),
        ("> the boiler went out\n\nplease find out why this happens", "please find out why this happens"),
        (LOG, "The boiler goes out because its valve is closed."),
    ],
)
def test_a_session_that_begins_with_a_paste_is_named_by_own_words_or_by_the_first_answer(
    prompt: str, wanted: str
) -> None:
    made = only(("user", prompt), ("assistant", "Let me look. The boiler goes out because its valve is closed."))
    assert kept(made, "goal") == [wanted]


FIX = "please fix the date parser"


@pytest.mark.parametrize(
    ("prompts", "wanted"),
    [
        (["8", FIX], FIX),
        (["2.", "yes", FIX], FIX),
        (["1 2 3"], ""),
        (["y"], ""),
        (["continúa", FIX], FIX),
        ([LOG], ""),
        (["```\nnpm ERR! code E404\n```", FIX], FIX),
        (["npm ERR! code E404\nnpm ERR! 404 Not Found - GET https://registry.example.org/x\n"], ""),
        (["commit"], "commit"),
        (["8", "commit"], "commit"),
        (["Use it.", FIX], FIX),
        ([], ""),
    ],
)
def test_a_session_is_about_the_first_prompt_that_says_something_of_the_users_own(
    prompts: list[str], wanted: str
) -> None:
    assert work.find_goal(prompts) == wanted


def test_a_digest_tells_goal_files_failures_commits_and_what_is_open() -> None:
    made = only(
        ASKED, edit("dates.py"), edit("dates.py"), edit("zone.py", REJECTED), run(TEST_RUN, "FAILED tests/test_dates.py - assert\n1 failed"),
        edit("dates.py"), run(TEST_RUN, "12 passed"),
        call("TodoWrite", {"todos": [{"content": "Fix the parser", "status": "completed"}, {"content": "Write the changelog", "status": "pending"}]}, "ok"),
        run("git commit -m 'Keep the zone'", "[fix/zone 1a2b3c4] Keep the zone\n 1 file changed"), DONE,
    )  # fmt: skip
    assert made.text == (
        "Goal: please fix the date parser, it loses the time zone\n"
        "Outcome: committed; 1 call turned down\n"
        "Changed 1 file: dates.py x3\n"
        "Failed: `uv run pytest -q` 1x, passed in the end\n"
        "Commits: 1a2b3c4 Keep the zone\n"
        "Open: Write the changelog | Should I also change the exporter?\n"
        "Last: The parser now keeps the zone.\n"
        "1 prompt, 8 tool calls, 180 tokens written, 2026-03-01 10:01 to 2026-03-01 10:18"
    )
    assert kept(made, "branch") == ["fix/zone"]


@pytest.mark.parametrize(
    ("after_the_change", "outcome"),
    [
        ([run("pytest", "Exit code 1\nFAILED")], "failing"),
        ([run("pytest | tail -2", "2 failed, 3 passed")], "failing"),
        ([run("pytest", "Exit code 1\nFAILED"), run("pytest", "5 passed")], "checked"),
        ([run("pytest", "5 passed"), run("ls build", "Exit code 2\nno such file")], "checked"),
        ([run("pytest", "5 passed"), edit("zone.py", REJECTED)], "rejected"),
        ([run("git commit -am x", "[main 1a2b3c4] x")], "committed"),
        ([run("cd /tmp/other && git commit -am x", "[main 1a2b3c4] x")], "unchecked"),
        ([], "unchecked"),
    ],
)
def test_how_a_session_ended_is_told_by_its_last_checks_commits_and_refusals(
    after_the_change: list[Any], outcome: str
) -> None:
    assert only(ASKED, edit("dates.py"), *after_the_change, DONE).outcome == outcome


def test_without_a_change_it_was_answered_or_not() -> None:
    assert only(ASKED, DONE).outcome == "answered"
    made = only(ASKED, DONE, ("user", "and what does the exporter do with it?"))
    assert made.outcome == "unanswered"
    assert "Open: asked and not answered: and what does the exporter do with it?" in made.text


def test_what_was_changed_behind_the_last_prompt_has_answered_it_and_a_case_is_nothing_left_open() -> None:
    made = only(ASKED, DONE, ("user", "return the profile instead"), edit("a.py"))
    assert not [said for said in kept(made, "open") if said.startswith("asked and not answered")]
    cases = only(
        ASKED,
        edit("a.py"),
        ("assistant", "It works in three cases:\n- Not yet configured: asks\n- Configured: says so\n"),
    )
    assert kept(cases, "open") == []
    left = only(ASKED, edit("a.py"), ("assistant", "It works. The exporter is not yet converted.\n"))
    assert kept(left, "open") == ["The exporter is not yet converted."]


def test_a_correction_after_a_change_counts_against_it_only_as_the_answer_to_it() -> None:
    said = [
        ASKED,
        edit("a.py"),
        DONE,
        ("user", "thanks. what is left to do?"),
        DONE,
        ("user", "no, I never drink tea"),
        DONE,
    ]
    late = Stated(7, "no, I never drink tea", "correction", "fact", "user", 0.9, "u7")
    assert only(*said, stated=(late,)).outcome == "unchecked"  # type: ignore[arg-type]
    assert only(*said, stated=(late._replace(ordinal=5),)).outcome == "rejected"  # type: ignore[arg-type]


def test_what_the_user_said_last_of_all_counts_against_the_change() -> None:
    wrong = Stated(9, "no, the zone is UTC", "correction", "fact", "user", 0.9, "u9")
    assert (
        only(
            ASKED, edit("a.py"), DONE, ("user", "no, the zone is UTC"), DONE, stated=(wrong._replace(ordinal=5),)
        ).outcome
        == "rejected"
    )


def test_there_is_a_version_of_everything_before_each_compaction() -> None:
    said = entries(ASKED, edit("a.py"), DONE, ("summary", "This session is being continued"), edit("b.py"), DONE)
    first, last = digest.make_versions(said, (), title="", cwd=CWD, why="end")
    assert (first.why, first.upto, kept(first, "file")) == ("compaction", 4, ["a.py"])
    assert (last.why, last.upto, kept(last, "file")) == ("end", 8, ["a.py", "b.py"])


def test_commands_are_known_without_where_they_ran_and_what_their_output_went_through() -> None:
    for line in (
        "cd /p && make test 2>&1 | tail -3",
        "make test",
        "CI=1 make test > /dev/null",
        "export A=b; make test",
    ):
        assert work.split_commands(line) == ["make test"]
    assert work.split_commands("mise run fmt && mise run lint") == ["mise run fmt", "mise run lint"]
    assert work.split_commands("git commit -m 'a && b | c'") == ["git commit -m 'a && b | c'"]
    assert work.split_commands("ls -la && cat x && git status") == []


#: What ran and what it printed -> the commits, reasons and pull requests that a digest has of it.
COMMITTED: dict[str, tuple[str, str, list[str], list[str], list[str]]] = {
    "printed by git": ("git commit -m 'Keep the zone'", "[main 1a2b3c4] Keep the zone", ["1a2b3c4 Keep the zone"], [], []),
    "through a pipe": ("git add -A && git commit -m 'Keep the zone' | tail -1", " 1 file changed", [" Keep the zone"], [], []),
    "nothing to commit": ("git commit -m 'Keep the zone' | tail -1", "nothing to commit, working tree clean", [], [], []),
    "with a reason": (
        "git commit -F - <<'EOF'\nKeep the zone\n\nTwo lists were\nmerged. The zone is kept, because the export\ndepends on it.\n\nRefs: 12\nEOF",
        "[main 1a2b3c4] Keep the zone", ["1a2b3c4 Keep the zone"],
        ["Keep the zone: The zone is kept, because the export depends on it."], [],
    ),
    "a pull request": (
        'gh pr create --title "Keep the zone" --body x', "https://github.com/o/r/pull/12", [], [], ["#12 Keep the zone"],
    ),
    "a pull request that failed": ('gh pr create --title "Keep the zone"', "Exit code 1\nhttps://github.com/o/r/pull/12", [], [], []),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMITTED)
def test_commits_their_reasons_and_pull_requests_are_known_however_they_are_printed(name: str) -> None:
    line, answer, *wanted = COMMITTED[name]
    made = only(ASKED, run(line, answer), DONE)
    assert [kept(made, kind) for kind in ("commit", "reason", "pull")] == wanted


def test_an_error_is_the_same_error_in_another_place_and_at_another_time() -> None:
    one = work.find_error("Exit code 1\n/home/a/x/parse.py:12: NameError: tz_name is not defined (0.31s)")
    assert one == work.find_error("/srv/b/c/parse.py:99: NameError: tz_name is not defined (1.2s)") != ""


def test_a_call_that_was_cut_still_tells_its_file() -> None:
    whole = json.dumps({"file_path": '/p/a "b".py', "content": "x" * 99}, separators=(",", ":"))
    assert tool_calls.read_deed("Write", whole[:60] + "\n[csmd: 50 bytes left out]\n") == tool_calls.Deed(
        "change", '/p/a "b".py'
    )


def test_a_session_without_words_has_no_digest() -> None:
    assert digest.make_versions(entries(run("ls", "x")), (), title="", cwd=CWD) == []
    assert digest.make_versions([], (), title="", cwd=CWD) == []


_said = st.one_of(
    st.tuples(st.sampled_from(["user", "assistant", "summary", "command"]), st.text(max_size=900)),
    st.builds(run, st.text(max_size=300), st.text(max_size=300)),
    st.builds(edit, st.text(max_size=60), st.sampled_from(["ok", REJECTED, "<tool_use_error>no"])),
)


@pytest.mark.invariant("A digest is bounded, and the same bytes for the same session")
@settings(max_examples=60, deadline=None)
@given(st.lists(_said, max_size=30))
def test_whatever_was_said_a_digest_is_bounded_and_the_same_again(said: list[Any]) -> None:
    made = digest.make_versions(entries(*said), (), title="", cwd=CWD)
    assert made == digest.make_versions(entries(*said), (), title="", cwd=CWD)
    for one in made:
        assert len(one.text) <= digest.MAX_DIGEST_CHARACTERS
        assert all(item.text for item in one.items)
