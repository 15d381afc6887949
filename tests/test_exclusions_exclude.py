"""What the user wants left out is left out: projects by directory, files by name, whoever names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from csmd.config import Settings
from csmd.exclusions import NOT_KEPT, Excludes, Withheld
from csmd.hosts.claude import transcript

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
        [call("Read", file_path=["/w/.env"], path=5, command={"a": 1}), result("text", toolUseResult={"file": "/w/.env", "filePath": 5})],
        ['{"file_path":["/w/.env"],"path":5,"command":{"a":1}}', "text"],
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
