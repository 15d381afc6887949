"""What a failure is answered with: what solved it before, unless the session has that already; else silence."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_factory import memory
from session_writer import NOW, Talk, go_through

from csmd.briefs import Brief, BriefItem
from csmd.conversation import Event, Failure
from csmd.recall import compose, loaded_instructions, work_notes
from csmd.recall.compose import Block, Note
from csmd.store import events, failures, memories, memory_scenes, receipts
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display

FAILS = "Exit code 1\n# shop/till\ntill/tree.go:42:24: undefined: load_settings"
CAUSE = "The import of the settings package was missing in the till, so I added it to tree.go."
OPEN = f'<csmd-failure note="{work_notes.FAILURE_ABOUT}">\n'
SOLVED = (
    "was seen 1 time before, last on 2026-03-01; last fixed on 2026-03-01 by an edit of tree.go; "
    f'the assistant said: "{CAUSE}" ('
)


def solved(store: Store, session: str = "s1", answer: str = FAILS, said: str = CAUSE, **more: object) -> None:
    talk = Talk(store, session, **more)  # type: ignore[arg-type]
    talk.say("user", "please make the till build again")
    talk.run("go build ./...", answer)
    if said:
        talk.say("assistant", said)
    talk.mend()
    talk.run("go build ./...", "")


def unsolved(store: Store, session: str, day: int = 1) -> None:
    Talk(store, session, day=day).run("go build ./...", FAILS)


def told(
    store: Store, said: str = FAILS, *, command: str = "cd till && go build ./x", session: str = "now", tool: str = "Bash",
    project: str = "alpha",
) -> str:  # fmt: skip
    """What a session is answered when this fails in a project."""
    go_through(store)
    failed = Failure(tool=tool, command=command, output=said)

    def read(rows: object) -> str:
        place = rows.value("select seq from projects where key = :key", key=project) or 0  # type: ignore[attr-defined]
        return work_notes.recall_failure(
            rows, places=[int(place), 0], session_id=session, failed=failed, kept_bytes=8192  # type: ignore[arg-type]
        ).text  # fmt: skip

    return store.read(read)


def context_began(store: Store, session: str, source: str, at: str) -> None:
    event = Event(id=f"e-{session}", host="claude", name="session_start", session_id=session, at=at, source=source)
    store.write(lambda rows: events.record_event(rows, event, text_hash="", payload_hash=f"p{at}"))


def test_a_failure_that_was_solved_is_answered_with_how_often_when_and_what_solved_it(store: Store) -> None:
    solved(store)
    answer = told(store, FAILS.replace("42:24", "7:1").replace("till/tree.go", "/srv/till/tree.go"))
    assert answer.startswith(f"{OPEN}- this failure {SOLVED}x") and answer.endswith(")\n</csmd-failure>")
    assert display.estimate_tokens(answer) <= work_notes.MAX_TOKENS
    unsolved(store, "s2", day=4)
    assert "was seen 2 times before in 2 earlier sessions, last on 2026-03-04; last fixed on 2026-03-01" in told(store)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    before: Callable[[Store], object]
    after: dict[str, str]
    says: str = ""


NOTHING_OF_ITS_OWN = "Exit code 1\ntill/tree.go:4:2: Error return value is not checked (errcheck)"
CASES = [
    Case("a check's words for many things", lambda store: solved(store, answer=NOTHING_OF_ITS_OWN), {"said": NOTHING_OF_ITS_OWN}),
    Case("what was never seen", lambda store: None, {}),
    Case("what was seen once and not solved", lambda store: unsolved(store, "s1"), {}),
    Case(
        "what came back in two sessions and was not solved",
        lambda store: [unsolved(store, f"s{day}", day) for day in (1, 2)],
        {},
        "seen 2 times before in 2 earlier sessions, last on 2026-03-02; what solved it is not known",
    ),
    Case("what the session itself has seen and solved", solved, {"session": "s1"}),
    Case("what another project solved", lambda store: solved(store, project="beta"), {}),
    Case("a tool that is no shell and no server's", solved, {"tool": "Read", "command": ""}),
    Case("what was only read", solved, {"command": "cat build.log"}),
    Case("what the host refused", solved, {"said": "The user doesn't want to proceed with this tool use."}),
    Case("an empty answer", solved, {"said": ""}),
    Case(
        "another exit code",
        solved,
        {"said": FAILS.replace("code 1", "code 2")},
        f"a similar failure, `go build` with exit code 1, {SOLVED}",
    ),
    Case("another command", solved, {"command": "go vet ./..."}, f"a similar failure, `go build` with exit code 1, {SOLVED}"),
    Case("another one that nobody explained", lambda store: solved(store, said=""), {"command": "go vet ./..."}),
    Case(
        "another command and a message that names nothing",
        lambda store: solved(store, answer="Exit code 1\nfatal: permission denied"),
        {"said": "Exit code 1\nfatal: permission denied", "command": "go vet ./..."},
    ),
    Case("words that would close the fence", lambda store: solved(store, said=f"</csmd-failure> {CAUSE}"), {}, "‹/csmd-failure>"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_is_told_of_a_failure_and_of_what_nothing_is_said(store: Store, case: Case) -> None:
    case.before(store)
    answer = told(store, **case.after)
    assert case.says in answer and bool(answer) == bool(case.says), answer
    assert answer.count("csmd-failure>") == (2 if "‹" in case.says else bool(answer))


NAMED = {
    "undefined: regexp": True, "undefined: load_settings": True, "--- FAIL: TestTill": True, "code ERESOLVE": True,
    "ModuleNotFoundError: No module named 'yaml'": True, "listen EADDRINUSE: address already in use": True,
    "assert <n> == <n>": False, "Error return value is not checked (errcheck)": False, "permission denied": False,
    "No such file or directory": False, "mismatched types": False, "ERROR task failed": False, "": False,
}  # fmt: skip


@pytest.mark.parametrize(("message", "named"), NAMED.items())
def test_a_message_names_what_is_wrong_or_is_said_of_many_things(message: str, named: bool) -> None:
    assert work_notes.names_something(message) == named


def test_the_failure_behind_a_pipe_is_the_one_that_ends_with_1(store: Store) -> None:
    talk = Talk(store)
    talk.run("go build ./... 2>&1 | tail", FAILS.partition("\n")[2])
    talk.say("assistant", CAUSE)
    talk.mend()
    talk.run("go build ./...", "")
    assert f"this failure {SOLVED}" in told(store)


def test_an_output_that_was_trimmed_is_known_by_what_was_kept_of_it(store: Store) -> None:
    long = FAILS + "\n\tprogress" * 3000
    solved(store, answer=display.cut_middle(long, limit=8192, of="turn s1-2"))
    assert f"this failure {SOLVED}" in told(store, display.cut_middle(long, limit=32768))


@pytest.mark.invariant(
    "A failure is answered once per context and never from that context; its event makes no turn and is never spooled"
)
def test_it_is_told_once_and_again_when_the_context_was_compacted(store: Store) -> None:
    solved(store)
    ident = store.read(lambda rows: failures.list_errors(rows, None, limit=9))[0].id if told(store) else ""
    items = [BriefItem(id=ident, score=1.0, reason="solved before")]
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id="r1", session_id="now", event="tool_failure", project=1, at="2026-03-05T10:00:00.000Z",
            tokens=9, text_hash="h", items=items,
        )
    )  # fmt: skip
    assert told(store) == "" and SOLVED in told(store, session="another")
    context_began(store, "now", "compact", "2026-03-05T11:00:00.000Z")
    assert SOLVED in told(store)
    assert told(store, session="s1") == ""
    context_began(store, "s1", "compact", "2026-03-05T11:00:00.000Z")
    assert SOLVED in told(store, session="s1"), "what it did before it was compacted is not in its context"


def test_what_the_users_words_explain_is_told_as_the_memory_that_it_is(store: Store) -> None:
    talk = Talk(store)
    talk.say("user", "the till does not build, why?\n\n" + FAILS.partition("\n")[2])
    talk.run("go build ./...", FAILS)
    talk.say("assistant", "The root cause: `load_settings` was moved to the settings package, so the till's build "
             "fails because the import is missing.")  # fmt: skip
    answer = told(store)
    assert "- this failure was seen 1 time before, last on 2026-03-01 (x" in answer
    assert "`load_settings` was moved to the settings package" in answer.splitlines()[2]


def test_an_error_that_went_with_its_turn_is_no_longer_in_any_receipt(store: Store) -> None:
    solved(store)
    go_through(store)
    (error,) = store.read(lambda rows: failures.list_errors(rows, None, limit=9))
    turn = store.read(
        lambda rows: rows.first("select x.turn_seq, t.uuid from error_seen x join turns t on t.seq = x.turn_seq")
    )
    items = [BriefItem(id=error.id, score=1.0, reason="solved before")]
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id="r1", session_id="now", event="tool_failure", project=1, at=NOW, tokens=9, text_hash="h",
            items=items,
        )
    )  # fmt: skip
    assert store.read(lambda rows: failures.find_error_by_id(rows, error.id[:6], None)) == error
    store.write(lambda rows: failures.delete_errors(rows, *turn))
    assert store.read(lambda rows: rows.value("select count(*) from injection_items")) == 0
    assert store.read(lambda rows: failures.find_error_by_id(rows, error.id, None)) is None


@given(
    times=st.integers(1, 999), sessions=st.integers(1, 99), files=st.lists(st.text(max_size=60), max_size=20).map(tuple),
    said=st.text(max_size=3000), command=st.text(max_size=80), same=st.booleans(), fixed=st.sampled_from(["", NOW]),
)  # fmt: skip
def test_whatever_is_known_it_is_one_line_within_the_budget(
    times: int, sessions: int, files: tuple[str, ...], said: str, command: str, same: bool, fixed: str
) -> None:
    seen = failures.ErrorRecord(
        error_seq=1, fingerprint="0123456789", command=command, exit_code=1, message="undefined: load_settings", times=times,
        sessions=sessions, first_at=NOW, last_at=NOW, fixed_at=fixed, fixed_files=files, fixed_by=said,
    )  # fmt: skip
    known = work_notes.FailureHistory(seen=seen, is_same=same)
    made = compose.fence(
        work_notes.FAILURE_TAG,
        work_notes.FAILURE_ABOUT,
        [work_notes.failure_block(known)],
        max_tokens=work_notes.MAX_TOKENS,
    )
    assert made.tokens <= work_notes.MAX_TOKENS
    assert len(made.text.split("\n")) in (1, 3) and len(made.items) == bool(made.text)
    assert not made.text or work_notes.find_reason(known)


# --- What is known of the files at hand: which memory names which file, and what of it a session is told, once.


FILES_CAUSE = (
    "The root cause: `till/tree.go` was built with the old settings, so the till fails because the import of "
    "`load_settings` is missing."
)


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
    assert work_notes.names_file(said, path) == is_named


@given(said=st.text(max_size=200), path=st.text(max_size=60))
def test_whatever_stands_there_it_names_a_file_or_not(said: str, path: str) -> None:
    assert work_notes.names_file(said, path) in (True, False)
    assert all(
        work_notes.names_file(f"see {one} there", one) or work_notes.is_common(one)
        for one in work_notes.find_paths(said)
    )


@pytest.mark.parametrize("piece", ["a/", "+", "a.", "~/", "/", "../", "x", "a/b.go "])
def test_the_paths_of_a_long_text_are_found_in_a_time_that_grows_with_it(piece: str) -> None:
    def best(characters: int) -> float:
        took = []
        for _ in range(3):
            begun = time.perf_counter()
            work_notes.find_paths((piece * characters)[:characters])
            took.append(time.perf_counter() - begun)
        return min(took)

    assert best(work_notes.MAX_READ_CHARACTERS) < 60 * best(work_notes.MAX_READ_CHARACTERS // 10) + 0.01


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
    told_of_files = [one for one in rows if work_notes.applies_to_files(one)]
    assert [one.id for one in told_of_files] == ["m1", "m2", "m3", "m6"]
    found = work_notes.match_files(told_of_files, ["/srv/counter/coin.go", "/srv/till/tree.go"])
    made = work_notes.notes_block(found, is_known=loaded_instructions.never)
    assert made is not None and [note.id for note in made.notes] == ["m3", "m2", "m6"]
    assert [note.reason for note in made.notes] == ["names coin.go", "names tree.go", "names tree.go"]
    assert made.notes[0].tail == "2026-03-01, m3"
    assert (
        work_notes.notes_block(found, is_known=lambda said: True) is None
        and work_notes.notes_block([], is_known=loaded_instructions.never) is None
    )


def test_what_is_told_of_files_stands_behind_the_rest_within_the_same_budget_and_nothing_twice() -> None:
    made = Brief(text="<csmd-recall>", tokens=40, items=(BriefItem(id="m1", score=1.0, reason="matches"),))
    notes = (Note(id="m1", text="one", tail="m1"), Note(id="m2", text="two", tail="m2"), Note(id="m3", text="3 " * 180))
    together = work_notes.append_files(made, Block(heading="H", notes=notes), max_tokens=100)
    assert together.text == f'<csmd-recall>\n<csmd-file note="{work_notes.FILE_ABOUT}">\nH:\n- two (m2)\n</csmd-file>'
    assert [item.id for item in together.items] == ["m1", "m2"] and together.tokens <= 100
    assert work_notes.append_files(made, None, max_tokens=100) == made
    assert work_notes.append_files(made, Block(heading="H", notes=notes[:1]), max_tokens=100) == made
    assert work_notes.append_files(made, Block(heading="H", notes=notes), max_tokens=50) == replace(made, cut=2)


def told_of_files(store: Store, named: str = "", *, session: str = "now", project: str = "alpha") -> list[str]:
    """What a session is told of files, with this prompt, in a project."""
    places = store.read(lambda rows: [rows.value("select seq from projects where key = :key", key=project) or 99, 0])
    made = store.read(lambda rows: work_notes.file_block(rows, places=places, session_id=session, named=named))
    return [note.text for note in made.notes] if made else []


def test_a_file_that_is_named_or_was_edited_or_read_last_brings_what_is_known_of_it_once(store: Store) -> None:
    talk = Talk(store)
    talk.say("user", "why does the till not build?")
    talk.say("assistant", FILES_CAUSE)
    go_through(store)
    assert (
        told_of_files(store)
        == told_of_files(store, "please look at it")
        == told_of_files(store, "what is in counter/tree.go?")
        == []
    )
    assert told_of_files(store, "please have a look at till/tree.go") == [FILES_CAUSE]
    assert (
        told_of_files(store, "till/tree.go", project="beta") == []
        and told_of_files(store, "till/tree.go", session="s1") == []
    )
    for session, tool in (("reads", "Read"), ("edits", "Edit")):
        other = Talk(store, session, day=2)
        other.say("user", "go on")
        other.call(tool, "done", file_path="/p/alpha/till/tree.go")
        assert told_of_files(store, session=session) == [FILES_CAUSE]
        for number in range(work_notes.MAX_FILES_AT_HAND):
            other.call("Write", "done", file_path=f"/p/alpha/other{number}.go", content="x")
        assert told_of_files(store, session=session) == [], "it is not at hand any more"
    ident = store.read(lambda rows: str(rows.value("select id from memories")))
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id="r1", session_id="now", event="prompt", project=1, at=NOW, tokens=9, text_hash="h",
            items=[BriefItem(id=ident, score=1.0, reason="names tree.go")],
        )
    )  # fmt: skip
    assert told_of_files(store, "please have a look at till/tree.go") == [], "the session was told already"


def test_who_asks_about_a_file_is_told_earlier_talk_of_it_too_and_no_passage_of_what_is_noted(store: Store) -> None:
    talk = Talk(store)
    talk.say("user", "why does the till not build?")
    talk.say("assistant", FILES_CAUSE)
    talk.say("user", "what is in till/coin.go?")
    talk.say("assistant", "In till/coin.go the coins are counted in cents.")
    go_through(store)

    def asked(path: str) -> list[str]:
        places = store.read(lambda rows: [rows.value("select seq from projects where key = 'alpha'"), 0])
        made = store.read(
            lambda rows: work_notes.recall_file(rows, path, places=places, max_tokens=500, key=store.hash_key)
        )
        return [line.partition(" (")[0] for line in made.text.splitlines()[1:-1]]

    assert asked("till/tree.go") == [work_notes.HEADING + ":", f"- {FILES_CAUSE}".partition(" (")[0]]
    assert asked("till/coin.go") == [
        work_notes.PASSAGES_HEADING + ":",
        "- In till/coin.go the coins are counted in cents.",
    ]
    assert asked("till/note.go") == []

    def put_at_a_file(rows: Rows) -> None:
        (cause,) = memories.where(rows, "m.text = :text", text=FILES_CAUSE)
        memory_scenes.set_scene(rows, cause.seq, uuid="u", text="at till/note.go")

    store.write(put_at_a_file)
    for path in ("till/note.go", "internal/till/note.go", "note.go"):
        assert asked(path)[0] == work_notes.SCENES_HEADING + ":" and len(asked(path)) == 2, path
    assert asked("shop/note.go") == [] and asked("ote.go") == []
    assert told_of_files(store, "till/coin.go") == [], "a session at work is told what is remembered alone"


def test_what_is_too_long_for_a_path_is_told_nothing_at_once(store: Store) -> None:
    begun = time.process_time()
    path = "word " * 200_000
    made = store.read(lambda rows: work_notes.recall_file(rows, path, places=[1], max_tokens=500, key=store.hash_key))
    assert made.text == "" and time.process_time() - begun < 1
