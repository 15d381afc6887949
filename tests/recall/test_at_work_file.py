"""What is known of the files at hand: which memory names which file, and what of it a session is told, once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from believed import memory
from hypothesis import given
from hypothesis import strategies as st
from talked import NOW, Talk, go_through

from csmd.model import Brief, BriefItem
from csmd.recall import at_work, visibility
from csmd.recall.compose import Block, Note
from csmd.store import receipts
from csmd.store.core import Store

CAUSE = (
    "The root cause: `till/tree.go` was built with the old settings, so the till fails because the import of "
    "`load_settings` is missing."
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield opened
    opened.close()


# (what a memory says, a file, whether it names it)
NAMES = [
    ("`till/tree.go` wants the settings first", "/srv/shop/till/tree.go", True),
    ("in common.go:145-156 the lock is taken twice", "cmd/cli/common.go", False),
    ("in push_common.go:145-156 the lock is taken twice", "cmd/cli/push_common.go", True),
    ("/srv/shop/till/tree.go is generated", "tree.go", True),
    ("till/tree.go is generated", "counter/tree.go", False),
    ("README.md is written by hand", "/srv/shop/README.md", False),
    ("docs/README.md is written by hand", "/srv/shop/docs/README.md", True),
    ("docs/README.md is written by hand", "/srv/shop/README.md", False),
    ("src/index.ts only exports", "/srv/shop/src/index.ts", True),
    ("index.ts only exports", "/srv/shop/src/index.ts", False),
    ("we use node.js 22", "/srv/shop/node.js", False),
    ("see https://example.com/till/tree.go", "/srv/shop/till/tree.go", False),
    ("the tree is generated", "/srv/shop/till/tree.go", False),
    ("Tree.go and tree.go differ in their case", "/srv/shop/TREE.go", False),
    ("`.claude/settings.local.json` overrides the other one", "/srv/shop/.claude/settings.local.json", True),
    ("version 2.1.329 knows it, e.g. in os.path", "/srv/shop/os.path", False),
]


@pytest.mark.invariant("A common file name alone names no file")
@pytest.mark.parametrize(("said", "path", "is_named"), NAMES)
def test_a_file_is_named_by_its_path_or_a_distinctive_last_name(said: str, path: str, is_named: bool) -> None:
    assert at_work.names_file(said, path) == is_named


@given(said=st.text(max_size=200), path=st.text(max_size=60))
def test_whatever_stands_there_it_names_a_file_or_not(said: str, path: str) -> None:
    assert at_work.names_file(said, path) in (True, False)
    assert all(
        at_work.names_file(f"see {one} there", one) or at_work.is_common(one) for one in at_work.find_paths(said)
    )


@pytest.mark.parametrize("piece", ["a/", "+", "a.", "~/", "/", "../", "x", "a/b.go "])
def test_the_paths_of_a_long_text_are_found_in_a_time_that_grows_with_it(piece: str) -> None:
    def best(characters: int) -> float:
        took = []
        for _ in range(3):
            begun = time.perf_counter()
            at_work.find_paths((piece * characters)[:characters])
            took.append(time.perf_counter() - begun)
        return min(took)

    assert best(at_work.MOST_CHARACTERS) < 60 * best(at_work.MOST_CHARACTERS // 10) + 0.01


def test_what_is_told_of_files_is_what_to_heed_there_the_first_files_newest_first_and_each_once() -> None:
    rows = [
        memory("m1", "till/tree.go is built twice", category="gotcha"),
        memory("m2", "till/tree.go is formatted by hand", category="convention", confirmed_at="2026-04-01T00:00:00.000Z"),
        memory("m3", "counter/coin.go must not import the till", category="constraint"),
        memory("m4", "no, till/tree.go stays where it is", gate="correction", superseded_by="m9"),
        memory("m5", "till/tree.go has 40 lines", category="fact"),
        memory("m6", "till/tree.go is built twice!", category="gotcha"),
        memory("m7", "till/tree.go is the assistant's own note", category="gotcha", origin="model_saved"),
    ]  # fmt: skip
    told = [one for one in rows if at_work.is_told(one)]
    assert [one.id for one in told] == ["m1", "m2", "m3", "m6"]
    found = at_work.match_files(told, ["/srv/counter/coin.go", "/srv/till/tree.go"])
    made = at_work.notes_block(found, known=visibility.never)
    assert made is not None and [note.id for note in made.notes] == ["m3", "m2", "m6"]
    assert [note.reason for note in made.notes] == ["names coin.go", "names tree.go", "names tree.go"]
    assert made.notes[0].tail == "2026-03-01, m3"
    assert (
        at_work.notes_block(found, known=lambda said: True) is None
        and at_work.notes_block([], known=visibility.never) is None
    )


def test_what_is_told_of_files_stands_behind_the_rest_within_the_same_budget_and_nothing_twice() -> None:
    made = Brief(text="<csmd-recall>", tokens=40, items=(BriefItem(id="m1", score=1.0, reason="matches"),))
    notes = (Note(id="m1", text="one", tail="m1"), Note(id="m2", text="two", tail="m2"), Note(id="m3", text="3 " * 180))
    together = at_work.append_files(made, Block(heading="H", notes=notes), max_tokens=100)
    assert together.text == f'<csmd-recall>\n<csmd-file note="{at_work.FILE_ABOUT}">\nH:\n- two (m2)\n</csmd-file>'
    assert [item.id for item in together.items] == ["m1", "m2"] and together.tokens <= 100
    assert at_work.append_files(made, None, max_tokens=100) == made
    assert at_work.append_files(made, Block(heading="H", notes=notes[:1]), max_tokens=100) == made
    assert at_work.append_files(made, Block(heading="H", notes=notes), max_tokens=50) == replace(made, cut=2)


def told(store: Store, named: str = "", *, session: str = "now", project: str = "alpha") -> list[str]:
    """What a session is told of files, with this prompt, in a project."""
    places = store.read(lambda rows: [rows.value("select seq from projects where key = :key", key=project) or 99, 0])
    made = store.read(lambda rows: at_work.file_block(rows, places=places, session_id=session, named=named))
    return [note.text for note in made.notes] if made else []


def test_a_file_that_is_named_or_was_edited_or_read_last_brings_what_is_known_of_it_once(store: Store) -> None:
    talk = Talk(store)
    talk.say("user", "why does the till not build?")
    talk.say("assistant", CAUSE)
    go_through(store)
    assert told(store) == told(store, "please look at it") == told(store, "what is in counter/tree.go?") == []
    assert told(store, "please have a look at till/tree.go") == [CAUSE]
    assert told(store, "till/tree.go", project="beta") == [] and told(store, "till/tree.go", session="s1") == []
    for session, tool in (("reads", "Read"), ("edits", "Edit")):
        other = Talk(store, session, day=2)
        other.say("user", "go on")
        other.call(tool, "done", file_path="/p/alpha/till/tree.go")
        assert told(store, session=session) == [CAUSE]
        for number in range(at_work.AT_HAND):
            other.call("Write", "done", file_path=f"/p/alpha/other{number}.go", content="x")
        assert told(store, session=session) == [], "it is not at hand any more"
    ident = store.read(lambda rows: str(rows.value("select id from memories")))
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id="r1", session_id="now", event="prompt", project=1, at=NOW, tokens=9, text_hash="h",
            items=[BriefItem(id=ident, score=1.0, reason="names tree.go")],
        )
    )  # fmt: skip
    assert told(store, "please have a look at till/tree.go") == [], "the session was told already"


def test_who_asks_about_a_file_is_told_earlier_talk_of_it_too_and_no_passage_of_what_is_noted(store: Store) -> None:
    talk = Talk(store)
    talk.say("user", "why does the till not build?")
    talk.say("assistant", CAUSE)
    talk.say("user", "what is in till/coin.go?")
    talk.say("assistant", "In till/coin.go the coins are counted in cents.")
    go_through(store)

    def asked(path: str) -> list[str]:
        places = store.read(lambda rows: [rows.value("select seq from projects where key = 'alpha'"), 0])
        made = store.read(
            lambda rows: at_work.recall_file(rows, path, places=places, max_tokens=500, key=store.hash_key)
        )
        return [line.partition(" (")[0] for line in made.text.splitlines()[1:-1]]

    assert asked("till/tree.go") == [at_work.HEADING + ":", f"- {CAUSE}".partition(" (")[0]]
    assert asked("till/coin.go") == [at_work.SAID + ":", "- In till/coin.go the coins are counted in cents."]
    assert asked("till/note.go") == []
    assert told(store, "till/coin.go") == [], "a session at work is told what is remembered alone"


def test_what_is_too_long_for_a_path_is_told_nothing_at_once(store: Store) -> None:
    begun = time.process_time()
    path = "word " * 200_000
    made = store.read(lambda rows: at_work.recall_file(rows, path, places=[1], max_tokens=500, key=store.hash_key))
    assert made.text == "" and time.process_time() - begun < 1
