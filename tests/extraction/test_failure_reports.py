"""What failed is known by command, exit code and message, whatever paths, lines, hashes and times stand in it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.conversation import CommandFailure, StatedMemory, TranscriptTurn
from csmd.extraction import failure_reports, shell_commands
from csmd.extraction.failure_reports import ObservedFailure

GO_LINT = """Exit code 1
[fmt] $ gofmt -w .
[lint] $ golangci-lint run ./...
[lint] ERROR task failed

cmd/shop/state_test.go:186:2: Error return value is not checked (errcheck)
\t_ = clean(sessionID)
\t^
1 issues:"""
TRACEBACK = """Exit code 1
Traceback (most recent call last):
  File "/home/me/shop/run.py", line 12, in <module>
    import yaml
ModuleNotFoundError: No module named 'yaml'"""
PYTEST = """Exit code 1
=================================== FAILURES ===================================
    def test_total():
>       assert total([1]) == 2
E       assert 1 == 2
tests/test_total.py:4: AssertionError
=========================== short test summary info ============================
FAILED tests/test_total.py::test_total - assert 1 == 2
1 failed, 3 passed in 0.12s"""
RUST = """Exit code 101
   Compiling shop v0.1.0 (/home/me/shop)
error[E0308]: mismatched types
 --> src/main.rs:4:18
error: could not compile `shop` due to 1 previous error"""
NPM = """Exit code 1
npm ERR! code ERESOLVE
npm ERR! ERESOLVE unable to resolve dependency tree
npm ERR! A complete log of this run can be found in: /home/me/.npm/_logs/2026-01-02T03_04_05_678Z-debug-0.log"""
NODE = """Exit code 1
node:internal/modules/cjs/loader:1080
  throw err;
Error: Cannot find module '/home/me/shop/lib/till.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1077:15)"""

# (what is run, what it said, the command, exit code and message it is known by)
CASES = [
    ("mise run fmt && mise run lint", GO_LINT, "mise run lint", 1, "Error return value is not checked (errcheck)"),
    ("cd /home/me && python3 run.py", TRACEBACK, "python run.py", 1, "ModuleNotFoundError: No module named 'yaml'"),
    ("python -m pytest -q tests/", PYTEST, "pytest", 1, "assert <n> == <n>"),
    ("cargo build --release", RUST, "cargo build", 101, "error[E0308]: mismatched types"),
    ("npm install left-pad", NPM, "npm install", 1, "code ERESOLVE"),
    ("node server.js", NODE, "node server.js", 1, "Error: Cannot find module 'till.js'"),
    ("go build ./...", "Exit code 1\n# shop/till\ntill/tree.go:42:24: undefined: regexp", "go build", 1, "undefined: regexp"),
    ("go test ./till -run TestX -v 2>&1 | tail -5", "    till_test.go:12: got 3\n--- FAIL: TestX (0.02s)\nFAIL",
     "go test", -1, "--- FAIL: TestX"),
    ("go test ./...", "Exit code 2\npanic: runtime error: index out of range [3] with length 3\n\ngoroutine 7 [running]:",
     "go test", 2, "panic: runtime error: index out of range [<n>] with length <n>"),
    ("go run .", "Exit code 1\ngo: cannot find main module, but found .git/config in /home/me/shop", "go run", 1,
     "cannot find main module, but found config in shop"),
    ("npx tsc --noEmit", "Exit code 2\nsrc/till.ts(12,3): error TS2345: Argument of type 'string' is not assignable to 'number'.",
     "tsc", 2, "error TS2345: Argument of type 'string' is not assignable to 'number'"),
    ("npx eslint src", "Exit code 1\n\n/home/me/shop/src/a.js\n  12:3  error  'x' is not defined  no-undef\n", "eslint", 1,
     "error 'x' is not defined no-undef"),
    ("javac Till.java", "Exit code 1\nTill.java:12: error: cannot find symbol\n    int x = y;", "javac", 1, "error: cannot find symbol"),
    ("java -jar till.jar", 'Exit code 1\nException in thread "main" java.lang.NullPointerException: price\n\tat shop.Till.main(Till.java:7)',
     "java", 1, "java.lang.NullPointerException: price"),
    ("./gradlew test", "Exit code 1\n* What went wrong:\nExecution failed for task ':test'.\n> There were failing tests.", "gradlew test", 1,
     "Execution failed for task ':test'"),
    ("mvn -q verify", "Exit code 1\n[ERROR] Failed to execute goal org.apache:surefire:3.0.0:test (default-test) on project till", "mvn verify", 1,
     "Failed to execute goal org.apache:surefire:<n>:test (default-test) on project till"),
    ("git fetch origin main && git merge origin/main", "Exit code 1\nAuto-merging a.go\nCONFLICT (content): Merge conflict in a.go",
     "git merge", 1, "CONFLICT (content)"),
    ("git push", "Exit code 1\nTo github.com:me/shop.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs",
     "git push", 1, "[rejected] main -> main (fetch first)"),
    ("git -C /srv/shop show abc", "Exit code 128\nfatal: bad revision 'abc'", "git show", 128, "fatal: bad revision 'abc'"),
    ("docker compose -f dev.yml up -d", "Exit code 1\nError response from daemon: driver failed: Bind for 0.0.0.0:8080 failed: port is already allocated",
     "docker compose up", 1, "Error response from daemon: driver failed: Bind for <n> failed: port is already allocated"),
    ("docker build -t till .", "Exit code 1\n#7 ERROR\nERROR: failed to solve: process \"/bin/sh -c make\" did not complete successfully: exit code: 2",
     "docker build", 1, 'ERROR: failed to solve: process "sh -c make" did not complete successfully: exit code: 2'),
    ("kubectl get pod till-7d9f8b6c5-x2x4z -n shop", 'Exit code 1\nError from server (NotFound): pods "till-7d9f8b6c5-x2x4z" not found',
     "kubectl get", 1, 'Error from server (NotFound): pods "till-<hash>-x2x4z" not found'),
    ("terraform apply", "Exit code 1\n╷\n│ Error: Invalid provider configuration\n│ ", "terraform apply", 1, "Error: Invalid provider configuration"),
    ("make -j4 test", "Exit code 2\ncc -c till.c\ntill.c:9:5: error: use of undeclared identifier 'x'\nmake: *** [Makefile:3: till.o] Error 1",
     "make test", 2, "error: use of undeclared identifier 'x'"),
    ("make deploy", "Exit code 2\nmake: *** No rule to make target 'deploy'.  Stop.", "make deploy", 2, "No rule to make target 'deploy'. Stop"),
    ("mypy csmd", "Exit code 1\ncsmd/a.py:3: error: Incompatible return value type  [return-value]\nFound 1 error", "mypy", 1,
     "error: Incompatible return value type [return-value]"),
    ("ruff check .", "Exit code 1\na.py:1:8: F401 `os` imported but unused", "ruff check", 1, "F401 `os` imported but unused"),
    ("ruby till.rb", "Exit code 1\ntill.rb:3:in `<main>': undefined method `sum' for nil (NoMethodError)", "ruby till.rb", 1,
     "till.rb:in `<main>': undefined method `sum' for nil (NoMethodError)"),
    ("php till.php", "Exit code 255\nPHP Fatal error:  Uncaught Error: Call to undefined function sum() in /srv/till.php:3", "php till.php", 255,
     "Fatal error: Uncaught Error: Call to undefined function sum() in till.php"),
    ("mix test", "Exit code 1\n** (Mix) The task \"tset\" could not be found", "mix test", 1, '(Mix) The task "tset" could not be found'),
    ("dotnet build", "Exit code 1\n/srv/Till.cs(3,5): error CS1002: ; expected [/srv/Till.csproj]", "dotnet build", 1, "error CS1002: ; expected"),
    ("npx jest", "Exit code 1\nFAIL src/till.test.js\n  ● till › adds\n\n    expect(received).toBe(expected)", "jest", 1, "till › adds"),
    ("cargo test", "Exit code 101\nrunning 1 test\ntest till::adds ... FAILED\n", "cargo test", 101, "test till::adds ... FAILED"),
    ("curl -sS http://localhost:8080/x", "Exit code 7\ncurl: (7) Failed to connect to localhost port 8080: Connection refused", "curl", 7,
     "curl: (7) Failed to connect to localhost port <n>: Connection refused"),
    ("psql -c 'select 1'", "Exit code 1\nERROR:  relation \"till\" does not exist\nLINE 1: select", "psql", 1, 'ERROR: relation "till" does not exist'),
    ("foo --now", "Exit code 127\nbash: line 1: foo: command not found", "foo", 127, "bash: <line>: foo: command not found"),
    ("./till.sh open", "Exit code 1\nsomething nobody has a rule for", "till.sh open", 1, "something nobody has a rule for"),
]  # fmt: skip


def check(line: str, said: str) -> ObservedFailure | None:
    return failure_reports.find_failure("Bash", line, said, at="2026-01-01T00:00:00.000Z", uuid="u")


@pytest.mark.parametrize("line, said, command, code, message", CASES, ids=[case[2] for case in CASES])
def test_a_failure_is_told_by_what_was_run_and_the_line_that_says_what_went_wrong(
    line: str, said: str, command: str, code: int, message: str
) -> None:
    found = check(line, said)
    assert found is not None
    assert (found.command, found.exit_code, found.message) == (command, code, message)


@pytest.mark.invariant("The same failure has one fingerprint, different failures have different ones")
def test_different_failures_have_different_fingerprints() -> None:
    found = [check(line, said) for line, said, *_ in CASES]
    assert len({one.fingerprint for one in found if one}) == len(CASES)


SAME = [
    ("Error: open /home/me/shop/a.txt: no such file", "Error: open /srv/other/a.txt: no such file"),
    ("Error: /tmp/pytest-of-me/17/x is locked", "Error: /tmp/tmpab12cd is locked"),
    ("till.go:12:3: undefined: x", "till.go:148:22: undefined: x"),
    ("fatal: bad object 3f2a9c1d", "fatal: bad object 91be0c77a1"),
    ("Error: took 0.46s at 2026-01-01T10:00:00Z", "Error: took 12ms at 2026-02-03T11:22:33Z"),
    ("Error: job 1b4e28ba-2fa1-11d2-883f-0016d3cca427 gone", "Error: job 6fa459ea-ee8a-3ca4-894e-db77e160355e gone"),
    ("Error: got 3 rows at 0x7ffe12", "Error: got 41 rows at 0x55aa01ff"),
    ("\x1b[31mError: no\x1b[0m", "Error: no"),
]


@pytest.mark.invariant("The same failure has one fingerprint, different failures have different ones")
@pytest.mark.parametrize("one, other", SAME)
def test_what_changes_from_time_to_time_does_not_make_another_failure(one: str, other: str) -> None:
    left, right = check("go vet ./...", f"Exit code 1\n{one}"), check("cd /x; go vet ./a", f"Exit code 1\n{other}")
    assert left and right and left.fingerprint == right.fingerprint


DIFFERENT = [
    ("Error: HTTP 404", "Error: HTTP 500"),
    ("Error: open a.txt: no such file", "Error: open b.txt: no such file"),
    ("--- FAIL: TestA (0.01s)", "--- FAIL: TestB (0.01s)"),
    ("error TS2345: x", "error TS2322: x"),
]


@pytest.mark.parametrize("one, other", DIFFERENT)
def test_what_tells_failures_apart_stays(one: str, other: str) -> None:
    left, right = check("go vet", f"Exit code 1\n{one}"), check("go vet", f"Exit code 1\n{other}")
    assert left and right and left.fingerprint != right.fingerprint


def test_a_pipe_hides_the_exit_code_but_not_the_failure() -> None:
    hidden = check("go test ./... 2>&1 | tail -20", "--- FAIL: TestA (0.01s)\nFAIL")
    told = check("go test ./...", "Exit code 1\n--- FAIL: TestA (0.03s)\nFAIL")
    assert hidden and told and hidden.fingerprint == told.fingerprint and hidden.exit_code == -1


NONE = [
    ("go test ./...", "ok  \tshop/till\t0.1s"),
    ("grep -rn nothing .", "Exit code 1\n"),
    ("ls /nowhere", "Exit code 2\nls: /nowhere: No such file or directory"),
    ("cat log.txt", "Error: this is what the file says\n--- FAIL: TestA"),
    ("cat log.txt | grep FAIL", "--- FAIL: TestA"),
    ("go test ./...", "The user doesn't want to proceed with this tool use. Error: no"),
    ("go test ./...", "<tool_use_error>Sibling tool call errored</tool_use_error>"),
    ("go test ./... | tail", "ok\nError: a log line of a test that passes"),
    ("git log -p | head -50", "+error: a line of a diff\nfatal: another"),
    ("go test ./...", ""),
    ("", "Exit code 1\nError: x"),
]


@pytest.mark.parametrize("line, said", NONE)
def test_what_is_no_failure_of_a_command_is_none(line: str, said: str) -> None:
    assert check(line, said) is None


def test_a_failing_server_is_known_by_its_tool_and_other_tools_are_the_hosts() -> None:
    found = failure_reports.find_failure("mcp__tracker__get", "", "Error: issue 12 not found", at="", uuid="u")
    assert found and (found.command, found.message) == ("tracker get", "Error: issue <n> not found")
    assert failure_reports.find_failure("Edit", "", "String to replace not found in file.", at="", uuid="u") is None


def test_a_pasted_error_is_found_by_its_message() -> None:
    said = "I now get this when I start it:\n```\nfatal: bad object 3f2a9c1d\n```\nany idea?"
    found = failure_reports.find_pasted_error(said, at="", uuid="u")
    told = check("git gc", "Exit code 128\nfatal: bad object 91be0c77a1")
    assert found and told and found.message == told.message and found.command == ""
    assert failure_reports.find_pasted_error("should we print an error: or not?", at="", uuid="u") is None


@given(st.text(max_size=400), st.text(max_size=600))
@settings(max_examples=150, deadline=None)
def test_whatever_comes_in_there_is_an_answer_and_its_message_is_short(line: str, said: str) -> None:
    for found in (check(line, f"Exit code 1\n{said}"), failure_reports.find_pasted_error(said, at="", uuid="u")):
        assert found is None or (
            0 < len(found.message) <= failure_reports.MAX_MESSAGE_CHARACTERS and "\n" not in found.message
        )
    assert all(0 < len(one) <= 80 for one in shell_commands.list_commands(line))


NASTY = ["a" * 1_000_000, "/a" * 500_000, "a.b:1:2: " * 110_000, "[x] " * 250_000, "0f" * 500_000, "'" * 1_000_000,
         "Error: " * 140_000, "- " * 500_000, "\n".join(["a/b:1"] * 160_000), "(((" * 330_000]  # fmt: skip


def test_a_million_characters_take_about_as_long_as_any_other_million() -> None:
    """The slowest of the nasty ones against the median of all: no form of text makes it a different order."""
    took = []
    for text in NASTY:
        begun = time.perf_counter()
        check(text, f"Exit code 1\n{text}")
        failure_reports.find_pasted_error(text, at="", uuid="u")
        took.append(time.perf_counter() - begun)
    assert max(took) < 2.0 + 20 * sorted(took)[len(took) // 2], took


@pytest.mark.parametrize("chain", ["env ", "sudo ", "python -m ", "uv run "])
def test_a_chain_of_wrappers_ends_however_long_it_is(chain: str) -> None:
    assert isinstance(shell_commands.list_commands(f"{chain * 1500}x"), list)
    assert shell_commands.list_commands(f"{chain * 20}pytest") == ["pytest"]


# --- The two halves of a gotcha find each other, and what speaks against a cause is told from what does not.


AT = "2026-03-01T10:00:00.000Z"
CAUSE = "The cause was that `load_settings` returned a fresh object instead of reading the file first."


def turns(*said: tuple[str, str]) -> list[TranscriptTurn]:
    return [
        TranscriptTurn(place, f"u{place}", kind, text, AT, place, "", "") for place, (kind, text) in enumerate(said, 1)
    ]


def told(
    text: str, place: int, *, key: int = 0, category: str = "gotcha", authority: str = "assistant"
) -> StatedMemory:
    return StatedMemory(key or place, f"m{key or place}", text, category, authority, f"u{place}", place)


def symptoms(found: failure_reports.Relations) -> list[tuple[int, str]]:
    return [(one.key, one.uuid) for one in found.symptoms]


def test_what_was_reported_belongs_to_the_cause_that_answers_it() -> None:
    said = turns(("user", "I just lost my theme setting after running setup."), ("assistant", CAUSE))
    found = failure_reports.relate(said, [told(CAUSE, 2)], [])
    assert symptoms(found) == [(2, "u1")]
    assert found.symptoms[0].text == "I just lost my theme setting after running setup."


REPORTS = [
    ("I get an empty list when I start it", True),
    ("the checkpoints are missing on the other branch", True),
    ("can you fix the bug with the empty list?", True),
    ("why does it fail now?", True),
    ("can you add a test so we don't forget?", False),
    ("let's summarize this now", False),
    ("commit and push", False),
    ("please rename it to till", False),
]


@pytest.mark.parametrize("said, reports", REPORTS)
def test_a_report_is_told_from_an_order(said: str, reports: bool) -> None:
    assert bool(failure_reports.find_symptom(said)) is reports


def test_an_older_report_belongs_to_a_cause_only_when_both_name_the_same() -> None:
    said = turns(
        ("user", "settings are broken: load_settings gives me nothing"),
        ("assistant", "Looking."),
        ("user", "the colours of the chart are wrong"),
        ("assistant", "Looking."),
        ("user", "thanks, go on with load_settings"),
        ("assistant", CAUSE),
    )
    assert symptoms(failure_reports.relate(said, [told(CAUSE, 6)], [])) == [(6, "u1")]


def test_a_failure_belongs_to_the_cause_that_names_it() -> None:
    failed = [
        CommandFailure("f1", "go test", "undefined: load_settings", "r1", AT, 1),
        CommandFailure("f2", "go vet", "unrelated words here", "r2", AT, 1),
        CommandFailure("f1", "go test", "undefined: load_settings", "r3", AT, 5),
    ]
    found = failure_reports.relate(
        turns(("user", "go on"), ("assistant", "."), ("assistant", CAUSE)), [told(CAUSE, 3)], failed
    )
    assert [(one.uuid, one.fingerprint) for one in found.symptoms] == [("r1", "f1")]


def test_where_both_halves_are_memories_they_are_linked() -> None:
    report = "Running enable with load_settings fails and my push setting is lost."
    said = turns(("user", report), ("assistant", CAUSE))
    found = failure_reports.relate(said, [told(report, 1, authority="user"), told(CAUSE, 2)], [])
    assert found.links == [(1, 2)]
    assert symptoms(found) == [(2, "u1")]  # what a user reports is no cause, and explains nothing


AGAINST = [
    ("user", "that's not it, load_settings and the file are fine", 0.50),
    ("user", "it still fails: load_settings returned a fresh object, not the file", 0.35),
    ("assistant", "I was wrong: `load_settings` reads the file first; the writer drops it.", 0.40),
    ("assistant", "You're right. `load_settings` reads the file first.", 0.20),
    ("user", "great, load_settings reads the file now. commit", 0.0),
    ("user", "that's not it, the colours of the chart are another matter", 0.0),
    ("assistant", "All tests pass: `load_settings` reads the file first.", 0.0),
]


@pytest.mark.parametrize("who, said, lowered", AGAINST)
def test_what_speaks_against_a_cause_says_so_and_is_about_it(who: str, said: str, lowered: float) -> None:
    talk = turns(("user", "load_settings is broken"), ("assistant", CAUSE), (who, said))
    found = failure_reports.relate(talk, [told(CAUSE, 2)], [])
    assert [one.lowered for one in found.refutations] == ([lowered] if lowered else [])


TURNED_DOWN = [
    ("No, no extra service. Keep it in Postgres.", True),
    ("nope, plain rows", True),
    ("I'd rather keep them in one table", True),
    ("No problem. Go on.", False),
    ("perfect, no further questions", False),
    ("Why not in a table?", False),
    ("No, not now, later.", False),
]


@pytest.mark.parametrize("answer, is_turned_down", TURNED_DOWN)
def test_a_proposal_that_the_next_prompt_refuses_is_refuted(answer: str, is_turned_down: bool) -> None:
    proposal = "The sessions go into Redis, which expires keys by itself."
    talk = turns(("user", "where do we keep sessions?"), ("assistant", proposal), ("user", answer))
    found = failure_reports.relate(talk, [told(proposal, 2)], [])
    assert [one.reason for one in found.refutations] == ["the user turned it down"] * is_turned_down


def test_a_refusal_later_in_a_session_refutes_no_proposal() -> None:
    proposal = "The sessions go into Redis, which expires keys by itself."
    talk = turns(("user", "x"), ("assistant", proposal), ("assistant", "Done."), ("user", "No, undo that."))
    assert not failure_reports.relate(talk, [told(proposal, 2)], []).refutations


def test_what_a_user_states_is_not_refuted_and_what_comes_much_later_refutes_nothing() -> None:
    against = ("user", "that's not it, load_settings and the file are fine")
    talk = turns(("user", "x"), ("assistant", CAUSE), against)
    assert not failure_reports.relate(talk, [told(CAUSE, 2, authority="user")], []).refutations
    late = turns(("user", "x"), ("assistant", CAUSE), ("user", "go on"), ("user", "and on"), against)
    assert not failure_reports.relate(late, [told(CAUSE, 2)], []).refutations


def test_the_same_error_after_its_cause_was_named_speaks_against_the_cause() -> None:
    failed = [CommandFailure("f1", "go test", "undefined: load_settings", f"r{place}", AT, place) for place in (1, 4)]
    found = failure_reports.relate(
        turns(("user", "x"), ("assistant", "."), ("assistant", CAUSE)), [told(CAUSE, 3)], failed
    )
    assert [(one.uuid, one.lowered, one.reason) for one in found.refutations] == [
        ("r4", 0.20, failure_reports.REPEATED[1])
    ]


def test_a_refuted_cause_names_the_one_that_stands_against_it() -> None:
    other = "I was wrong: the real cause is that the writer drops what `load_settings` returned."
    talk = turns(("user", "load_settings is broken"), ("assistant", CAUSE), ("assistant", other))
    found = failure_reports.relate(talk, [told(CAUSE, 2), told(other, 3)], [])
    assert [(one.key, one.by) for one in found.refutations] == [(2, 3)]


def test_over_a_sessions_end_only_names_count_and_only_for_some_days() -> None:
    symptom, cause = "load_settings loses push_setting", "push_setting was dropped because load_settings is fresh"
    day = "2026-03-02T10:00:00.000Z"
    assert failure_reports.is_report_of_cause(symptom, AT, cause, day)
    assert not failure_reports.is_report_of_cause(symptom, day, cause, AT)
    assert not failure_reports.is_report_of_cause(symptom, AT, cause, "2026-04-02T10:00:00.000Z")
    assert not failure_reports.is_report_of_cause("load_settings is slow", AT, cause, day)
    assert not failure_reports.is_report_of_cause(symptom, "", cause, day)


def test_a_diagnosis_is_a_sentence_that_was_said_and_none_is_better_than_another_failures() -> None:
    before = ("a1", "Let me look. The test fails because `load_settings` returns a fresh object.", True)
    after = ("a2", "Fixed the colours of the chart. All tests pass now.", False)
    assert failure_reports.find_diagnosis([before, after], about="--- FAIL: TestSettings") == (
        "a1",
        "The test fails because `load_settings` returns a fresh object.",
    )
    assert failure_reports.find_diagnosis([after], about="--- FAIL: TestSettings") == ("", "")


WORDS = st.lists(st.sampled_from(["I get", "because", "`a_b`", "still fails", "that's not it", "the cause was", "."]))


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "summary"]), WORDS.map(" ".join)), max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_whatever_is_said_what_belongs_together_does_not_depend_on_how_memories_are_listed(
    said: list[tuple[str, str]],
) -> None:
    talk = turns(*said)
    memories = [told(turn.text, turn.ordinal) for turn in talk if turn.text]
    one = failure_reports.relate(talk, memories, [])
    other = failure_reports.relate(talk, [*reversed(memories)], [])
    assert set(one.symptoms) == set(other.symptoms) and set(one.links) == set(other.links)
    assert {(x.key, x.uuid, x.lowered) for x in one.refutations} == {
        (x.key, x.uuid, x.lowered) for x in other.refutations
    }
