"""Pauses are spans that hold for good; what the user excludes is left out, whoever names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd import exclusions
from csmd.config import Settings
from csmd.errors import BadInput, ConfigError
from csmd.exclusions import NOT_KEPT, Excludes, Pauses, Withheld
from csmd.hosts.claude import transcript


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
    assert exclusions.parse_pauses(exclusions.written_pauses(made), where="x") == made


def test_a_pause_is_on_until_its_end_and_one_without_an_end_until_it_is_resumed() -> None:
    short, long = Pauses().begun(at(1), end=at(3)), Pauses().begun(at(1))
    assert [bool(short.current(at(minute))) for minute in (0, 1, 2, 3)] == [False, True, True, False]
    assert long.current(at(9999 // 60)) == (at(1), "")
    assert long.covers("9999-12-31T00:00:00.000Z") and not long.covers(at(0))
    assert long.ended(at(5)).spans == ((at(1), at(5)),) and short.ended(at(5)) == short


def test_pausing_again_goes_on_with_the_pause_that_is_on() -> None:
    assert Pauses().begun(at(1)).begun(at(2), end=at(9)).spans == ((at(1), at(9)),)
    assert Pauses().begun(at(1), end=at(2)).begun(at(5)).spans == ((at(1), at(2)), (at(5), ""))


def test_a_clock_that_was_set_back_loses_no_span() -> None:
    made = Pauses().begun(at(30), end=at(40)).begun(at(10), end=at(20)).begun(at(35))
    assert [made.covers(at(minute)) for minute in (5, 15, 25, 33, 50)] == [False, True, False, True, True]
    assert made.ended(at(7)).spans[-1] == (at(35), at(35))


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"pauses": 5}', b'{"pauses": [{"from": "x", "to": ""}]}', b'{"pauses": [{"from": 1}]}', b"\xff"],
)
def test_a_file_that_cannot_be_read_is_told_and_not_taken_for_no_pause(data: bytes) -> None:
    with pytest.raises(ConfigError, match="nothing was to be captured"):
        exclusions.parse_pauses(data, where="/home/pauses.json")


@pytest.mark.parametrize(
    ("typed", "seconds"), [("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1d", 86_400), ("90s", 90), (" 5MIN ", 300)]
)
def test_a_length_of_time_is_typed_as_people_write_it(typed: str, seconds: int) -> None:
    assert exclusions.pause_seconds(typed) == seconds


@pytest.mark.parametrize("typed", ["", "2", "h", "two hours", "-1h", "0m", "400d", "1m2h", "9" * 400 + "d", "1.5h"])
def test_what_is_no_length_of_time_is_refused(typed: str) -> None:
    with pytest.raises(BadInput, match="no length of time"):
        exclusions.pause_seconds(typed)


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
    assert [path for path in inside if not excludes.place(path)] == []
    assert [path for path in outside if excludes.place(path)] == []
    assert excludes.place("", "/nowhere", *inside) == bool(inside)


@pytest.mark.parametrize(
    "path", ["/w/.env", ".env", "./.env", "/w/.env.local", "a/b.pem", "/home/me/.ssh/id_rsa", "id_ed25519.bak", "~/.netrc", "/x/credentials", "config/secrets.yml"]
)  # fmt: skip
def test_a_file_that_usually_holds_secrets_is_excluded_from_the_start(path: str) -> None:
    assert FILES.file(path)
    assert FILES.command(f"cat {path} | head") and FILES.command(f"x='{path}'; cp <{path} /tmp")


@pytest.mark.parametrize(
    "path", ["/w/env", "/w/.environment", "/w/a.pem.md", "/w/credentials.md", "/w/my_secrets.py", ""]
)
def test_another_file_is_not(path: str) -> None:
    assert not FILES.file(path)
    assert not FILES.command(f"cat {path} | head")


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


@pytest.mark.parametrize("name", CASES)
def test_a_tool_that_names_an_excluded_file_is_kept_without_its_content(name: str) -> None:
    lines, kept = CASES[name]
    reading = transcript.Reading(withheld=Withheld(excludes=FILES))
    for one in lines:
        transcript.read_line(one, reading, tool_limit=8192)
    assert [turn.text for turn in reading.turns] == kept


def test_without_excluded_files_everything_is_kept() -> None:
    reading = transcript.Reading()
    for one in CASES["read"][0]:
        transcript.read_line(one, reading, tool_limit=8192)
    assert [turn.text for turn in reading.turns] == ['{"file_path":"/w/.env","limit":5}', "WORD", "other"]


def test_the_default_globs_name_no_place_of_one_machine() -> None:
    assert all(pattern.startswith("**/") for pattern in FILES.files) and Path.home() != Path("/")
