"""What a session came to, as a line that somebody who was there would say, and who is told it."""

from __future__ import annotations

import pytest
from recall.test_brief import HERE, store, told_on
from recall.test_prompt import note

from csmd.recall import brief, compose, prompt, visibility
from csmd.recall.brief import SessionSummary
from csmd.store.core import Store
from csmd.values import Brief

__all__ = ["store"]


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
    assert "The last sessions:" in said
    assert "settings.py" in said


def test_a_session_is_not_told_of_itself_and_other_prompts_are_told_of_none(store: Store) -> None:
    told_on(store, 0)
    assert "The last sessions:" not in told(store, "where did we stop?", session="s0")
    assert "The last sessions:" not in told(store, "stop the settings service")


def test_what_the_context_has_of_the_last_sessions_is_not_told_again(store: Store) -> None:
    told_on(store, 0)
    asked = "where did we stop?"
    made = recalled(store, asked, session="s9")
    assert "The last sessions:" in made.text
    note(store, made, "s9")
    assert "The last sessions:" not in told(store, asked, session="s9")
    assert "The last sessions:" in told(store, asked, session="s8")


def test_who_asks_for_the_last_sessions_is_told_also_of_one_that_changed_nothing() -> None:
    talk = SessionSummary(
        session_id="0123456789", at="2026-03-01T10:00:00.000Z", outcome="answered",
        items=(("goal", "please compare the two queues"),),
    )  # fmt: skip
    assert brief.session_notes([talk]) == ()
    (note,) = brief.session_notes([talk], every=True)
    assert note.text == "compare the two queues"


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
    notes = brief.session_notes(
        [SessionSummary(session_id=SESSION, at="2026-01-28T21:52:53.514Z", outcome=ended, items=items)]
    )
    assert [compose.render_note(one) for one in notes] == ([f"- {told} (2026-01-28, session 0b1c2d3e)"] if told else [])


@pytest.mark.parametrize("name", CASES)
def test_a_session_is_told_of_in_a_line(name: str) -> None:
    check(name)


def test_only_the_last_two_that_changed_something_are_told_of_and_what_they_left() -> None:
    def ended(number: int, *items: tuple[str, str]) -> SessionSummary:
        return SessionSummary(
            session_id=f"s{number}", at=f"2026-01-0{number}T10:00:00.000Z", outcome="committed", items=items
        )

    found = [
        ended(5, ("goal", "look around")),
        ended(4, ("goal", "second"), ("file", "b.py"), ("open", "The Windows build is still missing."), ("open", "Shall I?")),
        ended(3, ("goal", "first"), ("file", "a.py"), ("open", "asked and not answered: what now")),
        ended(2, ("goal", "before"), ("file", "c.py"), ("open", "Old ends.")),
    ]  # fmt: skip
    assert [note.id for note in brief.session_notes(found)] == ["s4", "s3"]
    assert [note.text for note in brief.open_end_notes(found)] == ["The Windows build is still missing."]
