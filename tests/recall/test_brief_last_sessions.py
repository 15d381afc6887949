"""What a session is told that asks where the last one stopped."""

from __future__ import annotations

from recall.test_prompt import note
from recall.test_session_brief import HERE, store, told_on

from csmd.model import Brief
from csmd.recall import brief, prompt, visibility
from csmd.store.core import Store

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
    talk = brief.Ended(
        session_id="0123456789", at="2026-03-01T10:00:00.000Z", outcome="answered",
        items=(("goal", "please compare the two queues"),),
    )  # fmt: skip
    assert brief.notes([talk]) == ()
    (note,) = brief.notes([talk], every=True)
    assert note.text == "compare the two queues"
