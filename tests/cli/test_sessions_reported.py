"""Inputs that people reported, through real processes: titles, directories of other systems, ids, symbols."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli.test_forget import typed
from machine import Machine

from csmd.text import display

FIX = "Please round the totals in the exporter."
LOG = 'Traceback (most recent call last):\n  File "/srv/a.py", line 3, in <module>\nValueError: bad\n'
#: The first prompts of a session -> what it is listed as.
TITLES: dict[str, tuple[list[str], str]] = {
    "a number": (["8", FIX], FIX),
    "a choice": (["2.", FIX], FIX),
    "assent": (["y", FIX], FIX),
    "assent in Chinese": (["好的", FIX], FIX),
    "a log": ([LOG, FIX], FIX),
    "a block of code": (["```\nnpm ERR! code E404\n```", FIX], FIX),
    "only a log": ([LOG], ""),
    "a file that an editor opened": (["<ide_opened_file>The user opened /srv/a.py.</ide_opened_file>\nFix it now."], "Fix it now."),
    "a selection": (["<ide_selection>lines 1 to 2 of /srv/a.py:\nx = 1</ide_selection>\nRename x."], "Rename x."),
}  # fmt: skip
#: Directories of Windows that a transcript names -> the project they are listed as.
WINDOWS = {
    r"C:\Users\dev\my shop": r"C:\Users\dev\my shop",
    "D:/shops/shop": r"D:\shops\shop",
    r"\\wsl.localhost\Debian\srv\till": r"\\wsl.localhost\Debian\srv\till",
    r"\\nas\share\shop": r"\\nas\share\shop",
    "E:\\": "E:\\",
    r"C:\repo\.claude\worktrees\fix": r"C:\repo",
}
SAID = [
    "Announcements of a launch begin with 🚀 and are never edited.",
    "The release notes carry a ★ for each breaking change.",
    "A ❤️ in the chat means that the review is done.",
    "报表导出的页数上限是三十，格式说明放在文档里。",
    "알림 기능은 이번 달에 배포한다",
]
#: A query that no index holds -> the statement that it finds, "" for none.
SYMBOLS = {
    "🚀": SAID[0],
    "★": SAID[1],
    "❤": SAID[2],
    "❤️": SAID[2],
    "数": SAID[3],
    "里": SAID[3],
    "의": "",
    "🔥": "",
    "다": SAID[4],
}


def slug(name: str) -> str:
    return "s-" + "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name)


@pytest.fixture(scope="module")
def reported(shared_machine: Machine) -> Machine:
    machine = shared_machine
    for name, (prompts, _) in TITLES.items():
        lines = [machine.line("user", prompt, session=slug(name)) for prompt in prompts]
        machine.transcript(*lines, session=slug(name))
    for cwd in WINDOWS:
        machine.transcript(machine.line("user", FIX, session=slug(cwd), cwd=cwd), session=slug(cwd))
    for number, said in enumerate(SAID):
        machine.transcript(machine.line("user", said, session=f"said{number}"), session=f"said{number}")
    machine.conversation("talk")
    machine.start()
    machine.sync()
    assert machine.event("SessionStart", "new", source="startup")[1]
    return machine


def sessions(machine: Machine) -> dict[str, dict[str, Any]]:
    listed = machine.csmd("session", "list", "--all-projects", "--limit", "100", "--json")["sessions"]
    return {row["id"]: row for row in listed}


@pytest.mark.parametrize("name", TITLES)
def test_a_session_is_listed_by_the_first_words_of_the_users_own(reported: Machine, name: str) -> None:
    assert sessions(reported)[slug(name)]["about"] == TITLES[name][1]


@pytest.mark.parametrize("cwd", WINDOWS)
def test_a_directory_of_windows_keeps_its_name_and_is_found_by_it(reported: Machine, cwd: str) -> None:
    project = sessions(reported)[slug(cwd)]["project"]
    assert project == WINDOWS[cwd]
    here = reported.csmd("session", "list", "--project", project, "--json")["sessions"]
    assert slug(cwd) in {row["id"] for row in here} and all(row["project"] == project for row in here)


@pytest.mark.parametrize("query", SYMBOLS)
def test_a_symbol_and_a_single_letter_are_searched_for(reported: Machine, query: str) -> None:
    found = reported.csmd("search", "--all-projects", "--json", "--", query)
    texts = [hit["text"].partition("\n")[0].removeprefix("user: ") for hit in found["hits"]]
    assert texts == ([SYMBOLS[query]] if SYMBOLS[query] else [])
    assert found["close"] is bool(SYMBOLS[query])


@pytest.mark.parametrize("query", ["?", "%", "--", "…"])
def test_what_is_only_punctuation_says_that_there_is_nothing_to_search_for(reported: Machine, query: str) -> None:
    done = reported.run("search", "--all-projects", "--", query)
    assert done.returncode == 1 and "the query has no words" in done.stderr


def test_show_takes_the_id_of_a_session_and_of_a_receipt_and_their_beginnings(reported: Machine) -> None:
    receipt = reported.call("csm_receipts")["receipts"][0]["id"]
    memory = reported.csmd("memories", "--json")["memories"][0]
    turn = memory["source_uuids"][0]
    for ident, key, value in (
        ("talk", "id", "talk"),
        (receipt, "session_id", "new"),
        (receipt[:12], "session_id", "new"),
        (memory["id"], "text", memory["text"]),
        (turn, "session_id", "talk"),
        (slug("a number"), "about", FIX),
    ):
        shown = json.loads(reported.run("show", ident, "--json").stdout)
        assert shown[key] == value, ident
    assert "no memory, turn, session or receipt" in reported.run("show", "nothing-like-it").stderr
    assert "typed in a terminal" in reported.run("show", "cli:1").stderr


def test_a_session_that_was_purged_is_shown_as_such(reported: Machine) -> None:
    reported.transcript(reported.line("user", "The heron is blue.", session="gone"), session="gone")
    reported.sync()
    assert "purged" not in reported.csmd("show", "gone")
    typed(reported, "forget", "gone", "--purge", answer="y\n", code=1)
    for verb in (("show",), ("session", "show")):
        assert "session gone was purged" in reported.run(*verb, "gone").stderr


#: A text with a carriage return -> what a terminal is given.
RETURNS = {
    "over": ("shop\rEVIL", r"shop\u000dEVIL"),
    "at the end": ("shop\r", r"shop\u000d"),
    "twice": ("a\r\r\nb", "a\\u000d\r\nb"),
    "a line end": ("a\r\nb", "a\r\nb"),
    "before colours of csmd's own": ("\r\x1b[2Kdone", "\r\x1b[2Kdone"),
    "before another letter": ("a\r\x1bb", r"a\u000d\u001bb"),
}


@pytest.mark.parametrize("name", RETURNS)
def test_a_carriage_return_overwrites_no_line(name: str) -> None:
    text, shown = RETURNS[name]
    assert display.escape_unseen(text) == shown
