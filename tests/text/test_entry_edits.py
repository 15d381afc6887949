"""One entry in settings of three forms: comments, order and spacing stay, and it goes without a trace."""

from __future__ import annotations

import pytest

from csmd.errors import ConfigError
from csmd.text import entry_edits
from csmd.text.entry_edits import JSON, TOML, YAML, YAML_LIST, Format

ENTRY = {"command": "/h/hook/mcp", "args": []}
PATH = ("servers", "csmd")

CASES = [
    (JSON, "{}\n"),
    (JSON, '{"servers": {"other": {"url": "x"}}}'),
    (JSON, '{\n  "servers": {\n    "other": {} // theirs\n  },\n  /* last */ "theme": "dark"\n}\n'),
    (JSON, '// all mine\n{\n  "theme": "dark", // why\n  // no servers yet\n}\n'),
    (JSON, '{\n\t"servers": {\n\t\t// none\n\t},\n\t"theme": "dark",\n}'),
    (JSON, '{\r\n  "theme": "// no comment",\r\n  "servers": {\r\n    "a": 1,\r\n  }\r\n}\r\n'),
    (JSON, '{"theme":"dark"}'),
    (TOML, "# mine\ntheme = 'dark'  # why\n\n[servers.other]\nurl = 'x'\n# the end"),
    (TOML, "theme = 'dark'\r\n[servers]\r\nother = {url = 'x'}\r\n"),
    (YAML, "# mine\ntheme: dark # why\nservers:\n    # theirs\n    other: {url: x}\n    # more\nlast: [1, 2]\n"),
    (YAML, "theme: dark\nservers: {}\n# the end\n"),
    (YAML, "theme: dark\nservers:\n# the end\n"),
    (YAML, "theme: dark"),
    (YAML_LIST, "theme: dark\nservers:\n- name: other # theirs\n  url: x\n# more\nlast: 1\n"),
    (YAML_LIST, "theme: dark\nservers:\n  - name: other\n    env:\n      A: b\n\n  # more\n"),
    (YAML_LIST, "theme: dark\n"),
]


def entry_for(form: Format) -> dict[str, object]:
    return {"name": "csmd", **ENTRY} if form is YAML_LIST else {**ENTRY}


@pytest.mark.parametrize(("form", "before"), CASES)
def test_every_line_of_others_stays_and_a_second_time_changes_nothing(form: Format, before: str) -> None:
    entry = entry_for(form)
    after = entry_edits.put_entry(form, before, PATH, entry, "f")
    assert entry_edits.find_entry(form, after, PATH) == entry
    assert entry_edits.put_entry(form, after, PATH, entry, "f") == after
    lines = [line.replace(",", "").strip(" \t{}\r") for line in before.split("\n")]
    lost = [line for line in lines if line not in after.replace(",", "")]
    assert not lost, after
    assert "\r\n" not in before or "\n" not in after.replace("\r\n", "")


@pytest.mark.parametrize(("form", "before"), CASES)
def test_it_goes_also_where_others_edited_the_file_since(form: Format, before: str) -> None:
    put = entry_edits.put_entry(form, before, PATH, entry_for(form), "f").replace("dark", "light")
    left = entry_edits.remove_entry(form, put, PATH, "f")
    assert entry_edits.find_entry(form, left, PATH) is None and "hook/mcp" not in left
    comments = [
        comment for comment in ("mine", "why", "theirs", "more", "the end", "last", "none") if comment in before
    ]
    assert all(comment in left for comment in comments), left
    assert entry_edits.remove_entry(form, left, PATH, "f") == left


@pytest.mark.parametrize(("form", "before"), CASES)
def test_an_entry_that_changed_is_replaced(form: Format, before: str) -> None:
    put = entry_edits.put_entry(form, before, PATH, entry_for(form), "f")
    other = {**entry_for(form), "args": ["--tools", "all"]}
    assert entry_edits.find_entry(form, entry_edits.put_entry(form, put, PATH, other, "f"), PATH) == other


@pytest.mark.parametrize("form", [JSON, TOML, YAML, YAML_LIST])
def test_what_is_printed_is_the_file_that_holds_the_entry_alone(form: Format) -> None:
    printed = form.dump(PATH, entry_for(form))
    assert entry_edits.find_entry(form, printed, PATH) == entry_for(form)
    assert entry_edits.put_entry(form, "", PATH, entry_for(form), "f") == printed


@pytest.mark.parametrize(
    ("form", "text", "why"),
    [
        (TOML, "servers = {other = {url = 'x'}}\n", "cannot add"),
        (YAML, "servers: {other: {url: x}}\n", "cannot add"),
        (YAML, "servers: [1]\n", "cannot add"),
        (YAML_LIST, "servers:\n  other: 1\n", "cannot add"),
        (JSON, '{"servers": 5}', "cannot add"),
    ],
)  # fmt: skip
def test_a_form_that_cannot_be_edited_is_left_alone(form: Format, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        entry_edits.put_entry(form, text, PATH, entry_for(form), "f")


@pytest.mark.parametrize(
    ("form", "data"),
    [(JSON, b'{"a": '), (JSON, b"[]"), (TOML, b"a ="), (YAML, b"a: [1"), (YAML, b"- 1"), (YAML, b"a: 1\n---\nb: 2\n"), (JSON, b"\xff")],
)  # fmt: skip
def test_what_cannot_be_read_is_an_error_that_names_the_file(form: Format, data: bytes) -> None:
    with pytest.raises(ConfigError, match="the file"):
        entry_edits.decode(form, data, "the file")
