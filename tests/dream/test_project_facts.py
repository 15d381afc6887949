"""The facts about a project are told in templates, rest on two sessions, and are as sure as their counts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_writer import NOW, Talk, go_through

from csmd.dream import naming_conventions, project_facts
from csmd.dream.actions import FACT_CATEGORY, Fact
from csmd.dream.project_facts import FailedCommand
from csmd.extraction import digest, packets
from csmd.knowledge import Packet, State
from csmd.memory import promotion
from csmd.store import purge, tombstones
from csmd.store.core import Store
from csmd.store.turns import FailureTurn, WorkItem

CALM = State(frustration=0.0, energy=0.5, stance="orders", urgency=0.0)
LINT = "string `user` has <n> occurrences (goconst)"


def ran(subject: str, sessions: Sequence[int], *, kind: str = "tool", outcome: str = "ok", at: int = 0) -> list[Packet]:
    return [
        Packet(
            kind=kind, subject=subject, outcome=outcome, uuid=f"u-{subject}-{number}-{place + at}", session_id=f"s{number}",  # type: ignore[arg-type]
            project_seq=1, ordinal=place + at, at=f"2026-03-{number % 28 + 1:02}T10:00:00.000Z", words=3, state=CALM,
        )
        for place, number in enumerate(sessions)
    ]  # fmt: skip


def changed(*sessions: str) -> list[WorkItem]:
    """What each session changed: `a b` is the files a and b."""
    return [
        WorkItem(f"s{number}", "file", path, f"u-{number}-{path}", "", "")
        for number, paths in enumerate(sessions)
        for path in paths.split()
    ]


def failed(
    shown: Sequence[int],
    *,
    message: str = "no such table: users",
    command: str = "go test",
    mended: Sequence[int] = (),
    said: str = "",
    files: str = "",
) -> FailedCommand:
    turns = [FailureTurn(f"s{number}", f"x{number}-{at}-{message}", False, "", "") for at, number in enumerate(shown)]
    changed = "\n".join(files.split())
    turns += [FailureTurn(f"s{number}", f"y{number}-{at}", True, changed, said) for at, number in enumerate(mended)]
    return FailedCommand(fingerprint=f"{command}: {message}", command=command, message=message, turns=turns)


def named(*names: str, sessions: int = 9) -> list[WorkItem]:
    return [WorkItem(f"s{number % sessions}", "file", name, f"u{number}", "", "") for number, name in enumerate(names)]


def form(fact: Fact | None) -> list[Fact]:
    return [fact] if fact else []


class Case(NamedTuple):
    """What was counted, and what is told of it."""

    what: str
    found: list[Fact]
    told: list[str]


RENAMED = [f"m{number}" for number in range(project_facts.MAX_CHANGED_FILES + 1)]
COMMITS = ("feat: a table", "fix(cli): a typo", "chore: bump", "docs: say how", "Merge branch 'x'")
CASES = [
    Case(
        "the command that serves a purpose, with what else does",
        project_facts.derive_command_facts(ran("mise run test", [1, 1, 2, 3]) + ran("go test", [1, 2]) + ran("mise run test:ci", [1, 2]), 1),
        ["Tests run with `mise run test`, 4 of 6 times; otherwise with `go test`; variants: `mise run test:ci`."],
    ),
    Case("one session is a session, however often", project_facts.derive_command_facts(ran("make lint", [1] * 40), 1), []),
    Case(
        "of several commands none is the one",
        project_facts.derive_command_facts(ran("pytest", [1, 2]) + ran("tox -e test", [1, 2]) + ran("nox -s tests", [3, 4]), 1),
        [],
    ),
    Case(
        "what stands before a milestone that was reached three times",
        project_facts.derive_command_facts(
            ran("make lint", [1, 2, 3]) + ran("git commit", [1, 2, 3], kind="milestone", at=7), 1
        ),
        ["Linting is done with `make lint`, 3 of 3 times.", "Before a commit comes `make lint`: 3 of 3 times."],
    ),
    Case(
        "an error of two sessions with what was said to have mended it",
        project_facts.derive_failure_facts([failed([1, 2, 2], mended=[2], said="The migration has to run first.")], 1),
        ['`go test` failed with `no such table: users` (3 times in 2 sessions); fixed by: "The migration has to run first."'],
    ),
    Case(
        "without words the file that mended it each time",
        project_facts.derive_failure_facts([failed([1, 2], mended=[1, 2], files="db/schema.sql x.go")], 1),
        ["`go test` failed with `no such table: users` (2 times in 2 sessions); fixed 2 times by changing `db/schema.sql` and `x.go`."],
    ),
    Case(
        "a message that quotes stays in its own marks, without its places",
        project_facts.derive_failure_facts([failed([1, 2], message="`x` is unused (<line>)", mended=[1], said="Remove it.")], 1),
        ["`go test` failed with `'x' is unused` (2 times in 2 sessions); fixed by: \"Remove it.\""],
    ),
    Case("an error of one session", project_facts.derive_failure_facts([failed([1, 1], mended=[1], said="Run it twice.")], 1), []),
    Case("an error that nobody mended", project_facts.derive_failure_facts([failed([1, 2])], 1), []),
    Case(
        "where something was purged nothing is quoted",
        project_facts.derive_failure_facts([failed([1, 2], mended=[2], said="Ask [purged] first.", message="no [redacted:token] here")], 1),
        [],
    ),
    Case(
        "what a check turns down in session after session",
        project_facts.derive_failure_facts(
            [failed([1, 2, 3], message=LINT, command="make lint"), failed([4, 5], message="error is nil (nilerr)", command="make lint"),
             failed([6], message="x is unused (unused)", command="make lint")], 1,
        ),
        ["`make lint` fails most often for `goconst` (3 of 6 sessions) and `nilerr` (2)."],
    ),
    Case(
        "files that change together, the rarer one first",
        project_facts.derive_file_facts(changed("a.py b.py", "a.py b.py", "a.py b.py c.py", "b.py", "c.py"), 1),
        ["When `a.py` changes, so does `b.py`: in 3 of 3 sessions."],
    ),
    Case(
        "three of them in one sentence",
        project_facts.derive_file_facts(changed("a b c", "a b c", "a b c x"), 1),
        ["When `a` changes, so do `b` and `c`: in 3 of 3 sessions."],
    ),
    Case(
        "a file that everything changes, a test with its source, and a great renaming say nothing",
        project_facts.derive_file_facts(
            changed(*["CHANGELOG.md a b"] * 3, *["CHANGELOG.md"] * 9, *["p/x.py tests/test_x.py"] * 3, *[" ".join(RENAMED)] * 3), 1,
        ),
        ["When `a` changes, so does `b`: in 3 of 3 sessions."],
    ),
    Case("nearly all commits have a form", form(naming_conventions.find_commit_convention(named(*COMMITS), 1)),
         ["Commit subjects begin with a type (`feat:`, `fix(scope):`, ...): 4 of 4."]),
    Case("commits without one", form(naming_conventions.find_commit_convention(named("Add x", "Fix y", "Mend z", "fix: w", "Say v"), 1)), []),
    Case("types in some and parts in others", form(naming_conventions.find_commit_convention(named("feat: a", "fix: b", "store: c", "cli: d"), 1)), []),
    Case("commits that name the part", form(naming_conventions.find_commit_convention(named("store: a", "cli: b", "store/x: c", "web-site: d"), 1)),
         ["Commit subjects begin with the part that they change (`part: what`): 4 of 4."]),
    Case("commits of one session", form(naming_conventions.find_commit_convention(named(*COMMITS, sessions=1), 1)), []),
    Case("branches with a ticket", form(naming_conventions.find_branch_convention(named("ann/ent-1-a", "ann/ent-22-b", "ann/ent-3-c", "main"), 1)),
         ["Branches are named `ann/ent-<number>-<what>`: 3 of 3."]),
    Case("branches below a kind", form(naming_conventions.find_branch_convention(named("feat/a", "feat/b", "feat/c", "wip"), 1)), []),
    Case("branches of no form", form(naming_conventions.find_branch_convention(named("a", "b", "c", "d"), 1)), []),
    Case("test files where the language leaves a choice",
         form(naming_conventions.find_test_file_convention(named("src/a.spec.ts", "src/b.spec.ts", "src/c.spec.tsx", "d.spec.js"), 1)),
         ["Test files are named `*.spec.*`, next to the code that they test: 4 of 4."]),
    Case("test files and where they lie", form(naming_conventions.find_test_file_convention(named(*(f"tests/x/test_{name}.py" for name in "abcd")), 1)),
         ["Test files are named `test_*.py`, below `tests/`: 4 of 4."]),
    Case("test files that the language names", form(naming_conventions.find_test_file_convention(named(*(f"x/{name}_test.go" for name in "abcde")), 1)), []),
]  # fmt: skip


def check(case: Case) -> None:
    assert [one.text for one in project_facts.sort_facts(case.found)] == case.told, case.what
    for one in case.found:
        assert len(one.evidence) == len(set(one.evidence)) >= 2, "nothing without two pieces of evidence"
        assert one.sessions >= 2 and 0 < one.seen <= one.total and 0.0 < one.confidence <= 1.0


@pytest.mark.invariant("A counted fact rests on two sessions and fades with what was purged")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_what_is_counted_is_told_in_a_template(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("path", "cwd", "root", "told"),
    [
        ("src/a.py", "/w/app", "/w/app", "src/a.py"),
        ("a.py", "/w/app/src", "/w/app", "src/a.py"),
        ("a.py", "/w/app/.worktrees/2", "/w/app", "a.py"),
        ("a.py", "/w/app/.claude/worktrees/fix/src", "/w/app", "src/a.py"),
        ("a.py", "/elsewhere/checkout", "/w/app", "a.py"),
        ("/etc/hosts", "/w/app", "/w/app", ""),
        ("~/.ssh/config", "/w/app", "/w/app", ""),
        ("../other/a.py", "/w/app", "/w/app", ""),
        ("C:\\x\\a.py", "/w/app", "/w/app", ""),
        ("keys/[redacted:token].txt", "/w/app", "/w/app", ""),
    ],
)
def test_a_path_is_told_below_its_project_and_none_outside_of_it(path: str, cwd: str, root: str, told: str) -> None:
    assert project_facts.make_project_path(path, cwd=cwd, root=root) == told


EVERYTHING = ran("make test", [1, 2, 3, 3]) + ran("pytest", [2, 3]) + ran("make lint", [1, 2, 5])
FAILURES = [
    failed([1, 2], mended=[2], said="Run the migration first."),
    failed([2, 3, 4], message=LINT, command="make lint"),
]
FILES = changed("a b c", "a b", "a b d", "d c", "c d a")


@settings(max_examples=50, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_in_which_it_is_read_makes_no_difference(dice: random.Random) -> None:
    def told(shuffle: bool) -> list[Fact]:
        parts: list[list[Any]] = [list(EVERYTHING), list(FAILURES), list(FILES)]
        if shuffle:
            for part in parts:
                dice.shuffle(part)
        return project_facts.sort_facts(
            project_facts.derive_command_facts(parts[0], 1)
            + project_facts.derive_failure_facts(parts[1], 1)
            + project_facts.derive_file_facts(parts[2], 1)
        )

    first, again = told(False), told(True)
    assert [(one.fingerprint, one.text, one.confidence) for one in first] == [
        (one.fingerprint, one.text, one.confidence) for one in again
    ]
    assert len(first) >= 4


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 40), st.integers(0, 40), st.integers(0, 40))
def test_more_sessions_make_surer_and_exceptions_less(sessions: int, more: int, other: int) -> None:
    def sure(number: int, against: int) -> float:
        found = project_facts.derive_command_facts(ran("make test", range(number)) + ran("pytest", [0, 1] * against), 1)
        return next((one.confidence for one in found if "make test" in one.text[:30]), 0.0)

    assert sure(sessions, 0) <= sure(sessions + more, 0) < 1.0
    assert sure(sessions, other) <= sure(sessions, 0)


def test_a_fact_keeps_its_name_while_its_counts_grow() -> None:
    few = project_facts.derive_command_facts(ran("make test", [1, 2]), 1)
    many = project_facts.derive_command_facts(ran("make test", range(30)), 1)
    assert [one.fingerprint for one in few] == [one.fingerprint for one in many] == ["command:test"]
    assert few[0].text != many[0].text


# --- Facts over a real store: two sessions make one, paths stay inside of the project, and reading them changes nothing.


FAILED = "Exit code 1\nE   price.py:9: NameError: name 'to_cents' is not defined"


def work(store: Store, number: int, *, project: str = "till") -> None:
    """A session: a check fails, two files and one outside are edited, it passes, and that is committed."""
    one = Talk(store, f"s{number}", project=project, day=number)
    one.say("user", "please keep the prices of the till in cents")
    one.run("pytest -q", FAILED)
    for path in (
        f"/p/{project}/till/price.py",
        f"/p/{project}/locale/en.yaml",
        "/etc/till.conf",
        f"/p/{project}/x{number}.py",
    ):
        one.mend(path)
    one.run("pytest -q", "5 passed")
    one.run(
        f"git checkout -b ann/till-{number}-cents && git commit -am x",
        f"[ann/till-{number}-cents 1a2b3c{number}] fix(till): keep cents {number}",
    )
    one.say(
        "assistant",
        "The name was missing because `to_cents` moved to till/money.py; importing it from there mended it.",
    )


def told(store: Store) -> list[Fact]:
    go_through(store)
    while packets.step(store) or digest.step(store):
        pass
    (project,) = store.read(lambda rows: rows.first("select seq from projects where key = 'till'"))
    return store.read(lambda rows: project_facts.derive_facts(rows, project))


def test_what_several_sessions_show_is_told_of_their_project(store: Store) -> None:
    work(store, 1)
    assert told(store) == [], "nothing without two sessions"
    for number in (2, 3, 4):
        work(store, number)
    work(store, 5, project="other")
    found = told(store)
    assert [(one.kind, one.text) for one in found if one.kind != "fix"] == [
        ("command", "Tests run with `pytest`, 8 of 8 times."),
        ("procedure", "Before a commit comes `pytest`: 4 of 4 times."),
        ("files", "When `locale/en.yaml` changes, so does `till/price.py`: in 4 of 4 sessions."),
        ("convention", "Branches are named `ann/till-<number>-<what>`: 4 of 4."),
        ("convention", "Commit subjects begin with a type (`feat:`, `fix(scope):`, ...): 4 of 4."),
    ]
    (fix,) = [one for one in found if one.kind == "fix"]
    assert fix.text.startswith(
        "`pytest` failed with `E price.py: NameError: name 'to_cents' is not defined` (4 times in 4 sessions); "
    )
    assert "/etc" not in " ".join(one.text for one in found)
    sessions = store.read(
        lambda rows: dict(rows.all("select t.uuid, s.id from turns t join sessions s on s.seq = t.session_seq"))
    )
    for one in found:
        assert len({sessions[uuid] for uuid in one.evidence[:2]}) == 2, "the first two are of two sessions"
        assert "s5" not in {sessions[uuid] for uuid in one.evidence}
    assert told(store) == found, "and again the same"
    (other,) = store.read(lambda rows: rows.first("select seq from projects where key = 'other'"))
    assert store.read(lambda rows: project_facts.derive_facts(rows, other)) == []


@pytest.mark.invariant("A counted fact rests on two sessions and fades with what was purged")
def test_a_fact_fades_with_the_sessions_that_were_purged(store: Store) -> None:
    for number in (1, 2):
        work(store, number)
    assert {one.kind for one in told(store)} >= {"command", "fix"}

    def forget(rows):  # type: ignore[no-untyped-def]
        purge.record_begin(rows, now=NOW)
        tombstones.purge_names(rows, "session", ["s1"], key=store.hash_key, now=NOW)
        purge.apply_tombstones(rows, store.hash_key)

    store.write(forget)
    assert told(store) == []


def test_a_habit_tells_what_becomes_a_memory_and_a_fact_what_was_counted(store: Store) -> None:
    """The same packets: of commands and procedures the habit is raised, of all others the fact."""
    for number in range(1, 5):
        work(store, number)
    found = told(store)
    promotion.step(store, now=NOW)
    habits = {str(name) for (name,) in store.read(lambda rows: rows.all("select fingerprint from candidates"))}
    assert {one for one in habits if not one.startswith("order:")} == {"commands", "procedure:commit"}
    raised = [one for one in found if one.kind in FACT_CATEGORY]
    assert raised and not habits & {one.fingerprint for one in raised}
