"""What a session came to, as a line that somebody who was there would say, and who is told it."""

from __future__ import annotations

import pytest
from recall.test_brief import HERE, told_on
from recall.test_prompt import note

from csmd.briefs import Brief
from csmd.recall import compose, last_sessions, prompt, visibility
from csmd.recall.last_sessions import SessionSummary
from csmd.store.core import Store


def told(store: Store, asked: str, session: str = "") -> str:
    return recalled(store, asked, session).text


def recalled(store: Store, asked: str, session: str = "") -> Brief:
    return store.read(
        lambda rows: prompt.recall(
            rows, places=visibility.scopes(rows, HERE), session_id=session, prompt=asked, floor=0.5, max_tokens=500,
            max_items=12, embed=None, key=store.hash_key,
        )
    )  # fmt: skip


def test_who_asks_for_the_last_session_is_told_what_it_came_to(store: Store) -> None:
    told_on(store, 0)
    said = told(store, "where did we stop?")
    assert "Where it stands:" in said
    assert "settings.py" in said


def test_a_session_is_not_told_of_itself_and_other_prompts_are_told_of_none(store: Store) -> None:
    told_on(store, 0)
    assert "Where it stands:" not in told(store, "where did we stop?", session="s0")
    assert "Where it stands:" not in told(store, "stop the settings service")


def test_what_the_context_has_of_the_last_sessions_is_not_told_again(store: Store) -> None:
    told_on(store, 0)
    asked = "where did we stop?"
    made = recalled(store, asked, session="s9")
    assert "Where it stands:" in made.text
    note(store, made, "s9")
    assert "Where it stands:" not in told(store, asked, session="s9")
    assert "Where it stands:" in told(store, asked, session="s8")


def test_who_asks_for_the_last_sessions_is_told_also_of_one_that_changed_nothing() -> None:
    talk = SessionSummary(
        session_id="0123456789", at="2026-03-01T10:00:00.000Z", outcome="answered",
        items=(("goal", "please compare the two queues"),),
    )  # fmt: skip
    assert last_sessions.session_notes([talk]) == ()
    (note,) = last_sessions.session_notes([talk], every=True)
    assert note.text == "compare the two queues"


Items = tuple[tuple[str, str], ...]
SESSION = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
#: (parts of a digest, its outcome, the line; "" for none)
CASES: dict[str, tuple[Items, str, str]] = {
    "a request": (
        (("goal", "can you please update go in each of the files to 1.24.3"), ("file", "mise.toml"), ("file", "go.mod")),
        "unchecked",
        "update go in each of the files to 1.24.3: changed mise.toml, go.mod",
    ),
    "commits before files, the latest first": (
        (("goal", "Let's move the settings to YAML."), ("file", "a.py"), ("commit", "1a2b3c4 Settings are YAML"),
         ("commit", "2b3c4d5 The old file is read once more")),
        "committed",
        'committed "The old file is read once more", "Settings are YAML"',
    ),
    "a commit that was made anew is told once": (
        (("commit", "1a2b3c4 Read the settings from YAML"), ("commit", " Read the settings from YAML files")), "committed",
        'committed "Read the settings from YAML files"',
    ),
    "a pull request": (
        (("goal", "Settings"), ("commit", "1a2b3c4 Read the settings from YAML"), ("branch", "yaml"), ("pull", "#12 Settings are YAML")), "committed",
        'committed "Read the settings from YAML" on yaml; opened #12 Settings are YAML',
    ),
    "a question names nothing": (
        (("goal", "Are there hooks that tell of a restore?"), ("file", "docs/notes.md")), "corrected",
        "changed notes.md",
    ),
    "a greeting": (
        (("goal", "Good morning! I hope you slept well. Port the Windows build, please. It is late."), ("file", "a.go")), "committed",
        "Port the Windows build, please: changed a.go",
    ),
    "a plan": ((("goal", "Plan: Keep telemetry off"), ("file", "a.go")), "committed", "Keep telemetry off: changed a.go"),
    "many files": (
        (("goal", "review the agent package for me"), *(("file", f"pkg/{n}.go") for n in "abcdef")), "checked",
        "review the agent package for me: changed a.go, b.go, c.go and 3 more",
    ),
    "what fails": (
        (("file", "a.go"), ("failing", "tests: FAIL TestParse"), ("failing", "python3: no such file")), "failing",
        "changed a.go; ended with a failing check (tests: FAIL TestParse)",
    ),
    "what is left open": (
        (("goal", "Port the build"), ("file", "a.go"), ("open", "The Windows build is still missing."), ("open", "Shall I go on?"),
         ("open", "asked and not answered: what now")), "committed",
        "Port the build: changed a.go; left open: The Windows build is still missing",
    ),
    "how it ended, where nothing was committed": (
        (("goal", "Review this: the parser loses its zone"), ("file", "a.go"), ("last", "The parser keeps the zone now.")), "checked",
        "Review this: the parser loses its zone: changed a.go; at its end: The parser keeps the zone now.",
    ),
    "how it ended, where the commits leave something": (
        (("goal", "Port the build"), ("commit", "1a2b3c4 Port the build"), ("last", "The Windows runner waits for its licence.")), "committed",
        'committed "Port the build"; at its end: The Windows runner waits for its licence.',
    ),
    "last words that say nothing": (
        (("goal", "Port the build"), ("commit", "1a2b3c4 Port the build"), ("last", "The build is ported and tidy.")), "committed",
        'committed "Port the build"',
    ),
    "where it ended first, and what it was asked for at first last": (
        (("goal", "please rename the columns of the ledger"), ("file", "till.py"), ("open", "The receipts are still to do."),
         ("last", "The till rounds half a cent up, as the bank does.")), "checked",
        "at its end: The till rounds half a cent up, as the bank does; changed till.py; left open: The receipts are still to do; begun with: rename the columns of the ledger",
    ),
    "what came after the commits": (
        (("goal", "Port the build"), ("commit", "1a2b3c4 Port the build"), ("last", "The installer asks for a folder and keeps it.")), "unchecked",
        'committed "Port the build"; at its end: The installer asks for a folder and keeps it.',
    ),
    "last words that say what is left open": (
        (("goal", "Port the build"), ("file", "a.go"), ("open", "Still to do: the Windows runner needs a licence."),
         ("last", "Still to do: the Windows runner needs a licence.")), "checked",
        "Port the build: changed a.go; left open: the Windows runner needs a licence",
    ),
    "last words that are no sentence": (
        (("goal", "Port the build"), ("file", "a.go"), ("last", "the folder of the Windows installer")), "checked",
        "Port the build: changed a.go; at its end: the folder of the Windows installer",
    ),
    "in what state it was left, as a model said, in place of what it was on and said last": (
        (("goal", "Review this: the parser loses its zone"), ("commit", "1a2b3c4 Keep the zone"), ("last", "The parser keeps the zone now."),
         ("stands", "The parser's fix is committed and not pushed; it waits for marta.")), "committed",
        "The parser's fix is committed and not pushed; it waits for marta; committed \"Keep the zone\"",
    ),
    "where nothing changed": ((("goal", "Plan the move"), ("stands", "The move is approved and not begun.")), "answered", "The move is approved and not begun"),
    "nothing changed": ((("goal", "Explain the build to me"),), "answered", ""),
    "work of which nothing shows what it changed": (
        (("goal", "start on the month view"), ("last", "The month view draws its grid from the ledger.")), "answered",
        "at its end: The month view draws its grid from the ledger",
    ),
    "work that ended with nothing said": ((("goal", "start on the month view"), ("last", "OK, done.")), "answered", ""),
    "what is said to be left": (
        (("goal", "get going on the month view"), ("file", "a.go"), ("open", "What is left: the week numbers.")), "unchecked",
        "the month view: changed a.go; left open: the week numbers",
    ),
}  # fmt: skip


def ended(number: int, *items: tuple[str, str], outcome: str = "committed") -> SessionSummary:
    return SessionSummary(
        session_id=f"{number}b1c2d3e-4f", at=f"2026-01-{number:02}T10:00:00.000Z", outcome=outcome, items=items
    )


def check(name: str) -> None:
    items, outcome, told = CASES[name]
    notes = last_sessions.session_notes([ended(1, *items, outcome=outcome)])
    assert [compose.render_note(one) for one in notes] == ([f"- {told} (2026-01-01, session 1b1c2d3e)"] if told else [])


@pytest.mark.parametrize("name", CASES)
def test_a_session_is_told_of_in_a_line(name: str) -> None:
    check(name)


def test_only_the_last_three_that_changed_something_are_told_of() -> None:
    found = [ended(6, ("goal", "look around")), *(ended(n, ("goal", "g"), ("file", f"{n}.py")) for n in (5, 4, 3, 2))]
    assert [note.id[0] for note in last_sessions.session_notes(found)] == ["5", "4", "3"]


def test_what_a_later_commit_did_is_neither_told_again_nor_left_open() -> None:
    later = ended(3, ("commit", "1a2b3c4 Build the Windows installer in the release job"))
    first = ended(2, ("commit", "2b3c4d5 Build the Windows installer in a release job"))
    other = ended(
        1,
        ("commit", "3c4d5e6 Sign the archives"),
        ("open", "The Windows installer build is missing in the release job."),
    )
    told = [note.text for note in last_sessions.session_notes([later, first, other])]
    assert told == ['committed "Build the Windows installer in the release job"', 'committed "Sign the archives"']


def test_a_state_that_a_later_commit_changed_is_not_told() -> None:
    later = ended(3, ("commit", "1a2b3c4 Build the Windows installer in the release job"))
    first = ended(2, ("file", "a.go"), ("stands", "The Windows installer build in the release job is not begun."))
    told = [note.text for note in last_sessions.session_notes([later, first])]
    assert told == ['committed "Build the Windows installer in the release job"', "changed a.go"]


def test_the_latest_commits_that_say_why_are_told_one_of_each_matter() -> None:
    why = "Pin the parser: the next release drops the old grammar, so it must never be raised"
    found = [ended(n, ("reason", f"{why} {n}"), ("reason", f"Copy file {n}: {n * 'x'} must stay")) for n in (5, 4, 3)]
    step = ended(6, ("reason", "Sort the keys: the diff is easier to read, because they stood in any order"))
    told = [note.text for note in last_sessions.reason_notes([step, *found])]
    assert told == [found[0].texts("reason")[1], f"{why} 5", found[1].texts("reason")[1]]
