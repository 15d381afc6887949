"""Pauses are spans that hold for good; what the user excludes is left out, whoever names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proportion import assert_in_proportion

from csmd import pauses
from csmd.config import Settings
from csmd.errors import BadInput, ConfigError
from csmd.exclusions import Excludes
from csmd.file_lines import NOT_KEPT
from csmd.hosts import transcript_reading
from csmd.hosts.claude import transcript
from csmd.pauses import Pauses
from csmd.withheld_calls import WithheldCalls


def at(minute: int) -> str:
    return f"2026-05-04T{minute // 60:02d}:{minute % 60:02d}:00.000Z"


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6)


@given(SPANS, st.integers(0, 60), st.integers(0, 60))
def test_a_moment_is_in_a_pause_when_it_is_in_one_of_the_spans(
    rows: list[tuple[int, int]], one: int, other: int
) -> None:
    made = Pauses(tuple((at(begin), at(end)) for begin, end in rows))
    first, last = min(one, other), max(one, other)
    inside = {minute for begin, end in rows for minute in range(begin, end)}
    assert made.covers(at(one)) == (one in inside)
    assert made.touches(at(first), at(last)) == bool(inside & set(range(first, last + 1)))


@given(SPANS)
def test_what_is_written_is_read_back(rows: list[tuple[int, int]]) -> None:
    made = Pauses((*((at(begin), at(end)) for begin, end in rows), (at(70), "")))
    assert pauses.parse_pauses(pauses.format_pauses(made), where="x") == made


def test_a_pause_is_on_until_its_end_and_one_without_an_end_until_it_is_resumed() -> None:
    short, long = Pauses().begin(at(1), end=at(3)), Pauses().begin(at(1))
    assert [bool(short.find_current(at(minute))) for minute in (0, 1, 2, 3)] == [False, True, True, False]
    assert long.find_current(at(9999 // 60)) == (at(1), "")
    assert long.covers("9999-12-31T00:00:00.000Z") and not long.covers(at(0))
    assert long.end(at(5)).spans == ((at(1), at(5)),) and short.end(at(5)) == short


def test_pausing_again_goes_on_with_the_pause_that_is_on() -> None:
    assert Pauses().begin(at(1)).begin(at(2), end=at(9)).spans == ((at(1), at(9)),)
    assert Pauses().begin(at(1), end=at(2)).begin(at(5)).spans == ((at(1), at(2)), (at(5), ""))


def test_a_clock_that_was_set_back_loses_no_span() -> None:
    made = Pauses().begin(at(30), end=at(40)).begin(at(10), end=at(20)).begin(at(35))
    assert [made.covers(at(minute)) for minute in (5, 15, 25, 33, 50)] == [False, True, False, True, True]
    assert made.end(at(7)).spans[-1] == (at(35), at(35))


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"pauses": 5}', b'{"pauses": [{"from": "x", "to": ""}]}', b'{"pauses": [{"from": 1}]}', b"\xff"],
)
def test_a_file_that_cannot_be_read_is_told_and_not_taken_for_no_pause(data: bytes) -> None:
    with pytest.raises(ConfigError, match="not a list of pauses"):
        pauses.parse_pauses(data, where="/home/pauses.json")


@pytest.mark.parametrize(
    ("typed", "seconds"), [("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1d", 86_400), ("90s", 90), (" 5MIN ", 300)]
)
def test_a_length_of_time_is_typed_as_people_write_it(typed: str, seconds: int) -> None:
    assert pauses.parse_duration(typed) == seconds


@pytest.mark.parametrize("typed", ["", "2", "h", "two hours", "-1h", "0m", "400d", "1m2h", "9" * 400 + "d", "1.5h"])
def test_what_is_no_length_of_time_is_refused(typed: str) -> None:
    with pytest.raises(BadInput, match="not a duration"):
        pauses.parse_duration(typed)


# --- What the user wants left out is left out: projects by directory, files by name, whoever names them.


FILES = Excludes(files=Settings().files_left_out)


@pytest.mark.parametrize(
    ("globs", "inside", "outside"),
    [
        (["/w/secret"], ["/w/secret", "/w/secret/", "/w/secret/a/b"], ["/w", "/w/secret2", "/x/w/secret", ""]),
        (["/w/clients/*"], ["/w/clients/a", "/w/clients/a/b"], ["/w/clients", "/w"]),
        (["**/private"], ["/private", "/a/private", "/a/private/b"], ["/a/privately", "/a"]),
        (["/w/a?c", "/v"], ["/w/abc/x", "/v"], ["/w/a/c"]),
        (["/w/[a].b"], ["/w/[a].b"], ["/w/a.b", "/w/[a]xb"]),
        ([], [], ["/", "/w"]),
    ],
)
def test_a_directory_is_excluded_with_what_is_below_it(globs: list[str], inside: list[str], outside: list[str]) -> None:
    excludes = Excludes(projects=tuple(globs))
    assert [path for path in inside if not excludes.covers_directory(path)] == []
    assert [path for path in outside if excludes.covers_directory(path)] == []
    assert excludes.covers_directory("", "/nowhere", *inside) == bool(inside)


@pytest.mark.parametrize(
    "path", ["/w/.env", ".env", "./.env", "/w/.env.local", "a/b.pem", "/home/me/.ssh/id_rsa", "id_ed25519.bak", "~/.netrc", "/x/credentials", "config/secrets.yml"]
)  # fmt: skip
def test_a_file_that_usually_holds_secrets_is_excluded_from_the_start(path: str) -> None:
    assert FILES.covers_file(path)
    assert FILES.names_excluded_file(f"cat {path} | head") and FILES.names_excluded_file(f"x='{path}'; cp <{path} /tmp")


@pytest.mark.parametrize(
    "path", ["/w/env", "/w/.environment", "/w/a.pem.md", "/w/credentials.md", "/w/my_secrets.py", ""]
)
def test_another_file_is_not(path: str) -> None:
    assert not FILES.covers_file(path)
    assert not FILES.names_excluded_file(f"cat {path} | head")


def line(kind: str, blocks: list[dict[str, Any]], **more: Any) -> bytes:
    value = {"type": kind, "uuid": f"u-{kind}", "sessionId": "s", "message": {"role": kind, "content": blocks}, **more}
    return json.dumps(value).encode()


def call(name: str, ident: str = "t1", **given: Any) -> bytes:
    return line("assistant", [{"type": "tool_use", "id": ident, "name": name, "input": given}])


def result(content: Any, ident: str = "t1", **more: Any) -> bytes:
    return line("user", [{"type": "tool_result", "tool_use_id": ident, "content": content}], **more)


CASES: dict[str, tuple[list[bytes], list[str]]] = {
    "read": (
        [call("Read", file_path="/w/.env", limit=5), result("WORD"), result("other", "t2")],
        [f'{{"file_path":"/w/.env","limit":5,"content":"{NOT_KEPT}"}}', NOT_KEPT, "other"],
    ),
    "write": (
        [call("Write", file_path="/w/.env", content="WORD"), result("WORD")],
        [f'{{"file_path":"/w/.env","content":"{NOT_KEPT}"}}', NOT_KEPT],
    ),
    "edit": (
        [call("Edit", file_path="/w/a.pem", old_string="WORD", new_string="WORD")],
        [f'{{"file_path":"/w/a.pem","content":"{NOT_KEPT}"}}'],
    ),
    "command": (
        [call("Bash", command="cat .env", description="look"), result([{"type": "text", "text": "WORD"}])],
        [f'{{"description":"look","command":"cat .env","content":"{NOT_KEPT}"}}', NOT_KEPT],
    ),
    "a command that writes it": (
        [call("Bash", command="cat > .env <<E\nWORD\nE"), result("WORD")],
        [f'{{"content":"{NOT_KEPT}"}}', NOT_KEPT],
    ),
    "the host's own account, without the call": (
        [result("WORD", toolUseResult={"type": "text", "file": {"filePath": "/w/.env", "content": "WORD"}})],
        [NOT_KEPT],
    ),
    "an edit's own account": ([result("WORD", toolUseResult={"filePath": "/w/.env"})], [NOT_KEPT]),
    "another file": (
        [call("Read", file_path="/w/a.py"), result("text", toolUseResult={"file": {"filePath": "/w/a.py"}})],
        ['{"file_path":"/w/a.py"}', "text"],
    ),
    "shapes that nobody expects": (
        [call("Read", file_path=[["/w/.env"]], path=5, command={"a": 1}), result("text", toolUseResult={"files": {"x": "/w/.env"}, "filePath": 5})],
        ['{"file_path":[["/w/.env"]],"path":5,"command":{"a":1}}', "text"],
    ),
}  # fmt: skip


MARK = NOT_KEPT

#: What programs print of files, and what stays of it.
OUTPUTS: dict[str, tuple[str, str]] = {
    "a search": ("/w/.env:3:WORD\n/w/a.py:9:text", f"/w/.env:{MARK}\n/w/a.py:9:text"),
    "a search with lines around": ("a.py-8-text\nsub/.env-2-WORD\nsub/.env:3:WORD", f"a.py-8-text\nsub/.env-2-{MARK}\nsub/.env:{MARK}"),
    "a search without numbers": ("./.netrc:machine x WORD\n./README:text", f"./.netrc:{MARK}\n./README:text"),
    "a search in a commit": ("HEAD:keys/a.pem:3:WORD\nHEAD:a.py:1:text", f"HEAD:keys/a.pem:{MARK}\nHEAD:a.py:1:text"),
    "a search with headings": (".env\n3:WORD\n9-WORD\n\na.py\n9:text", f".env\n{MARK}\n\na.py\n9:text"),
    "git diff": (
        "diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -3 +3 @@\n-WORD\n+WORD\ndiff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n+text",
        f"diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n{MARK}\ndiff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n+text",
    ),
    "git show with what was said of it": (
        "commit 1f\n\n    Rotate\n\ndiff --git a/id_rsa b/id_rsa\nnew file mode 100644\n--- /dev/null\n+++ b/id_rsa\n+WORD\n\ncommit 2f",
        f"commit 1f\n\n    Rotate\n\ndiff --git a/id_rsa b/id_rsa\n{MARK}\n--- /dev/null\n+++ b/id_rsa\n{MARK}\ncommit 2f",
    ),
    "a removed line that looks like a heading": (
        "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n--- WORD\n+WORD", f"--- a/.env\n+++ b/.env\n{MARK}\n"
    ),
    "diff -r": ("diff -r a/.env b/.env\n3c3\n< WORD\n---\n> WORD\nOnly in b: x", f"diff -r a/.env b/.env\n{MARK}\nOnly in b: x"),
    "a diff in a field": (
        '{"diff":"diff --git a/.env b/.env\\n+WORD\\ndiff --git a/x b/x\\n+text"}',
        f'{{"diff":"diff --git a/.env b/.env\\n{MARK}\\ndiff --git a/x b/x\\n+text"}}',
    ),
    "head of several": ("==> .env <==\nWORD\n\n==> a.py <==\ntext", f"==> .env <==\n{MARK}\n==> a.py <==\ntext"),
    "a loop with a heading": ("== .env\nWORD\nA=WORD\n== a.py\ntext", f"== .env\n{MARK}\n== a.py\ntext"),
    "a loop with the name alone": ("credentials\n[default]\nWORD\na.py\ntext", f"credentials\n{MARK}\na.py\ntext"),
    "a pager": (":::::\n.env\n:::::\nA=WORD\n:::::\na.py\n:::::\ntext", f":::::\n.env\n{MARK}\na.py\n:::::\ntext"),
    "a viewer": ("   │ File: .env\n───┼──\n 1 │ WORD", f"   │ File: .env\n{MARK}\n"),
    "a line of a Windows path": ("C:\\w\\.env:3: WORD\nC:\\w\\a.py:4: text", f"C:\\w\\.env:{MARK}\nC:\\w\\a.py:4: text"),
    "a list of files": ("total 3\n.env\n.gitignore\na.py", "total 3\n.env\n.gitignore\na.py"),
    "git status": ("Untracked files:\n\t.env\n\ta.py\n\nnothing added", "Untracked files:\n\t.env\n\ta.py\n\nnothing added"),
    "a tree": ("├── .env\n└── a.py\nrest", "├── .env\n└── a.py\nrest"),
    "prose about one": ("- `.env` holds the keys\n- `a.py` reads them", "- `.env` holds the keys\n- `a.py` reads them"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_of_an_output_that_names_an_excluded_file_only_that_files_lines_go(name: str) -> None:
    printed, kept = OUTPUTS[name]
    assert FILES.without_files(printed) == kept
    reading = transcript_reading.Reading(withheld=WithheldCalls(excludes=FILES), tool_limit=8192)
    for turn in (call("Bash", command="make look"), result(printed)):
        transcript.read_line(turn, reading)
    assert "WORD" not in reading.turns[1].text


@pytest.mark.parametrize(
    ("command", "is_unsure"),
    [("cat *", True), ("head -3 .*", True), ("tail conf/*", True), ("for f in .env* ; do cat $f; done", True), ("ls -A | xargs cat", True),
     ("find . -type f -exec cat {} +", True), ("find . -type f \\\n  -exec cat {} +", True), ("git ls-files |\n  xargs cat", True), ("cat $(ls -a | head -3)", True), ("cat *.md", False), ("find . -name '*.py' | xargs cat", False),
     ("grep '.*' a | head", False), ("ls | head", False), ("rm *", False)],
)  # fmt: skip
def test_the_whole_result_goes_of_a_command_that_may_print_such_a_file_and_does_not_say_which(
    command: str, is_unsure: bool
) -> None:
    kept = []
    for printed in ("WORD one\nWORD two", "==> a.py <==\ntext"):
        reading = transcript_reading.Reading(withheld=WithheldCalls(excludes=FILES), tool_limit=8192)
        for turn in (call("Bash", command=command), result(printed)):
            transcript.read_line(turn, reading)
        kept.append(reading.turns[1].text)
    assert kept == [NOT_KEPT if is_unsure else "WORD one\nWORD two", "==> a.py <==\ntext"]


@pytest.mark.parametrize(
    "given",
    [
        {"file_path": "/w/a.patch", "old_string": "x", "new_string": "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-WORD\n+WORD"},
        {"file_path": "/w/a.md", "edits": [{"old_string": "x", "new_string": "diff --git a/.env b/.env\n+WORD"}]},
        {"input": "*** Begin Patch\n*** Update File: conf/.env\n@@\n-WORD\n+WORD\n*** End Patch"},
        {"file_path": "/w/n.md", "content": "text\n```diff\ndiff --git a/id_rsa b/id_rsa\n+WORD\n```\n"},
        {"command": "git apply <<'E'\n--- a/x.pem\n+++ b/x.pem\n+WORD\nE"},
        {"paths": ["/w/a.py", "/w/.env"], "content": "WORD"},
        {"uri": "file:///w/.env", "text": "WORD"},
        {"source": "/w/.netrc", "body": "WORD"},
        {"command": "git show HEAD:.env # WORD\nWORD"},
    ],
)  # fmt: skip
def test_what_a_call_is_given_of_such_a_file_is_left_out_in_whatever_field_it_stands(given: dict[str, Any]) -> None:
    reading = transcript_reading.Reading(withheld=WithheldCalls(excludes=FILES), tool_limit=8192)
    transcript.read_line(call("Edit", **given), reading)
    assert "WORD" not in reading.turns[0].text and NOT_KEPT in reading.turns[0].text


SELECTED = "<ide_selection>The user selected lines 1 to 2 from {path}:\nWORD\n\nThis may be related.</ide_selection>"


@pytest.mark.parametrize(
    "path", ["/w/.env", "/home/me/.aws/credentials", "/home/me/.ssh/id_ed25519", "c:\\w\\.env", "/w/secrets.yml"]
)
@pytest.mark.parametrize(
    "form",
    [
        "{tag}\n{said}",
        "{said}\n{tag}",
        "{said}\n  {tag}\n{tag}\n",
        "<ide_opened_file>{path}</ide_opened_file>\n{said}\n{tag}",
    ],
)
def test_what_an_editor_hands_in_is_no_part_of_a_prompt_wherever_it_stands(path: str, form: str) -> None:
    prompt = form.format(tag=SELECTED.format(path=path), said="Why does it fail?", path=path)
    reading = transcript_reading.Reading(withheld=WithheldCalls(excludes=FILES), tool_limit=8192)
    transcript.read_line(line("user", [{"type": "text", "text": prompt}]), reading)
    assert [turn.text for turn in reading.turns] == ["Why does it fail?"]


def test_tags_that_are_never_closed_stay_and_cost_no_more_than_they_are_long() -> None:
    prompt = "<ide_selection>\nwhat is this tag?"
    assert transcript.remove_editor_context(prompt) == prompt
    many = "".join(f"<ide_{number}>\n" for number in range(20_000))
    assert transcript.remove_editor_context(many) == many


@pytest.mark.parametrize(
    "fragment", ["-", "- ", "-_", "=", "=-", "@ ", "`-", "\t", ".", "./", "a-1-", "cat ", "sub/.env\n", ".env\n\n"]
)
def test_looking_for_the_lines_of_excluded_files_takes_time_in_proportion(fragment: str) -> None:
    assert_in_proportion(
        lambda text: FILES.without_files(f"{text}x y\n.env\n{text}x y"),
        lambda size: fragment * (size // len(fragment)),
    )


@pytest.mark.parametrize(
    "fragment", ["find ", "ls -a ", "find\t;", "`", "$( ", "for a in ", "| while ", "cat a ", "cat a* "]
)
def test_telling_whether_a_command_may_print_such_a_file_takes_time_in_proportion(fragment: str) -> None:
    assert_in_proportion(
        lambda text: FILES.may_print_excluded(f"cat a; {text}"), lambda size: fragment * (size // len(fragment))
    )


def test_what_a_persons_own_shell_line_printed_of_such_a_file_is_left_out() -> None:
    reading = transcript_reading.Reading(withheld=WithheldCalls(excludes=FILES), tool_limit=8192)
    for prompt in ("<bash-input>cat .env</bash-input>", "<bash-stdout>WORD</bash-stdout><bash-stderr></bash-stderr>",
                 "<bash-input>ls</bash-input>", "<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>"):  # fmt: skip
        transcript.read_line(line("user", [{"type": "text", "text": prompt}]), reading)
    printed = [turn.text for turn in reading.turns]
    assert printed[1] == f"<bash-stdout>{NOT_KEPT}</bash-stdout>" and "a.py" in printed[3]


@pytest.mark.parametrize("name", CASES)
def test_a_tool_that_names_an_excluded_file_is_kept_without_its_content(name: str) -> None:
    lines, kept = CASES[name]
    reading = transcript_reading.Reading(withheld=WithheldCalls(excludes=FILES), tool_limit=8192)
    for line in lines:
        transcript.read_line(line, reading)
    assert [turn.text for turn in reading.turns] == kept


def test_without_excluded_files_everything_is_kept() -> None:
    reading = transcript_reading.Reading(tool_limit=8192)
    for line in CASES["read"][0]:
        transcript.read_line(line, reading)
    assert [turn.text for turn in reading.turns] == ['{"file_path":"/w/.env","limit":5}', "WORD", "other"]


def test_the_default_globs_name_no_place_of_one_machine() -> None:
    assert all(pattern.startswith("**/") for pattern in FILES.files) and Path.home() != Path("/")
