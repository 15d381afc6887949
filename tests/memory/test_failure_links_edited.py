"""What was edited behind what a session says of it, over a real store: remarks, documents, and what is mended already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from talked import NOW, Talk, go_through

from csmd.store import memories
from csmd.store.core import Store

#: A reviewer's, handed on; kept of it is what somebody else can use.
HANDED_ON = (
    "git fetch is run in `refreshRefs` with context.TODO() and no timeout. Since this is a network operation, it "
    "can hang indefinitely in CI. Consider using context.WithTimeout so that the call surely ends."
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield opened
    opened.close()


def marked(store: Store, like: str) -> set[bool]:
    """Whether the memories with these words are told as edited since."""
    idents = store.read(lambda rows: rows.all("select id from memories where text like :like", like=f"%{like}%"))
    found = [store.read(lambda rows, ident=ident: memories.by_id(rows, ident)) for (ident,) in idents]
    return {one.is_edited for one in found if one is not None}


@pytest.mark.invariant(
    "What is said of code that was edited later in its session is told with that, after what stands, and is no less believed"
)
@pytest.mark.parametrize(("answers", "wanted"), [(True, {True}), (False, {False})])
def test_a_remark_that_was_handed_on_is_edited_by_what_answers_it_and_its_answer_does_not_say_it_again(
    store: Store, answers: bool, wanted: set[bool]
) -> None:
    talk = Talk(store)
    talk.say("user", HANDED_ON)
    if not answers:
        talk.say("user", "leave that, and give `mirror` a limit, please")
    talk.call(
        "Edit",
        "done",
        file_path="/p/alpha/mirror.go",
        old_string="run(ctx)",
        new_string="run(context.WithTimeout(ctx))",
    )
    talk.say("assistant", "Done. The fetch can no longer hang indefinitely, since the network operation has a limit.")
    go_through(store)
    assert marked(store, "hang indefinitely in CI") == wanted


@pytest.mark.invariant(
    "What is said of code that was edited later in its session is told with that, after what stands, and is no less believed"
)
def test_what_is_said_of_a_document_is_told_once_the_document_was_written_anew(store: Store) -> None:
    talk = Talk(store)
    talk.say("user", "why does docs/dates.md not fit the code?")
    talk.say(
        "assistant",
        "The root cause: the document `docs/dates.md` was written from an old draft, and describes modules that were never "
        "built because the plan was dropped.",
    )
    go_through(store)
    before = marked(store, "old draft")
    # As it is stored of a long document: its middle is left out.
    talk.say(
        "tool_call",
        '{"file_path":"/p/alpha/docs/dates.md","content":"# Dates\\nIn [...',
        tool_name="Write",
        tool_id="w1",
    )
    talk.say("assistant", "Done.")
    go_through(store)
    assert (before, marked(store, "old draft")) == ({False}, {True})


def test_what_was_said_of_a_file_that_was_then_written_anew_is_told_with_that(store: Store) -> None:
    talk = Talk(store)
    talk.say("user", "build the action, please")
    talk.call("Write", "done", file_path="/p/alpha/action.yml", content="a: 1")
    talk.say(
        "assistant",
        "The root cause: several flags keep every line indented, because the block ends at the first column.",
    )
    go_through(store)
    before = marked(store, "several flags")
    talk.say("user", "limit it to that branch")
    talk.call("Write", "done", file_path="/p/alpha/action.yml", content="b: 2")
    talk.say("assistant", "Done.")
    go_through(store)
    assert (before, marked(store, "several flags")) == ({False}, {True})
