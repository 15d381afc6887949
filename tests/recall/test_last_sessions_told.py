"""What a session came to, as a line that somebody who was there would say."""

from __future__ import annotations

import pytest

from csmd.recall import brief, compose
from csmd.recall.brief import Ended

Items = tuple[tuple[str, str], ...]
SESSION = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
#: (parts of a digest, its outcome, the line; "" for none)
CASES: dict[str, tuple[Items, str, str]] = {
    "a request": (
        (("goal", "can you please update go in each of the files to 1.24.3"), ("file", "mise.toml"), ("file", "go.mod")),
        "unchecked",
        "update go in each of the files to 1.24.3: changed mise.toml, go.mod; changed, not checked",
    ),
    "commits before files": (
        (("goal", "Let's move the settings to YAML."), ("file", "a.py"), ("commit", "1a2b3c4 Settings are YAML"),
         ("commit", "2b3c4d5 The old file is read once more")),
        "committed",
        'move the settings to YAML: committed "The old file is read once more", "Settings are YAML"',
    ),
    "a question is quoted": (
        (("goal", "Are there hooks that tell of a restore?"), ("file", "docs/notes.md")), "corrected",
        'asked "Are there hooks that tell of a restore?": changed notes.md; corrected again and again',
    ),
    "a plan": ((("goal", "Plan: Keep telemetry off"), ("file", "a.go")), "committed", "Keep telemetry off: changed a.go"),
    "many files": (
        (("goal", "review the agent package for me"), *(("file", f"pkg/{n}.go") for n in "abcdef")), "checked",
        "review the agent package for me: changed a.go, b.go, c.go and 3 more; checks passed after the last change",
    ),
    "nobody's words": ((("file", "a.go"),), "failing", "changed a.go; ended with a failing check"),
    "nothing changed": ((("goal", "Explain the build to me"),), "answered", ""),
}  # fmt: skip


def check(name: str) -> None:
    items, ended, told = CASES[name]
    notes = brief.notes([Ended(session_id=SESSION, at="2026-01-28T21:52:53.514Z", outcome=ended, items=items)])
    assert [compose.line(one) for one in notes] == ([f"- {told} (2026-01-28, session 0b1c2d3e)"] if told else [])


@pytest.mark.parametrize("name", CASES)
def test_a_session_is_told_of_in_a_line(name: str) -> None:
    check(name)


def test_only_the_last_two_that_changed_something_are_told_of_and_what_they_left() -> None:
    def ended(number: int, *items: tuple[str, str]) -> Ended:
        return Ended(session_id=f"s{number}", at=f"2026-01-0{number}T10:00:00.000Z", outcome="committed", items=items)

    found = [
        ended(5, ("goal", "look around")),
        ended(4, ("goal", "second"), ("file", "b.py"), ("open", "The Windows build is still missing."), ("open", "Shall I?")),
        ended(3, ("goal", "first"), ("file", "a.py"), ("open", "asked and not answered: what now")),
        ended(2, ("goal", "before"), ("file", "c.py"), ("open", "Old ends.")),
    ]  # fmt: skip
    assert [note.id for note in brief.notes(found)] == ["s4", "s3"]
    assert [note.text for note in brief.open_ends(found)] == ["The Windows build is still missing."]
