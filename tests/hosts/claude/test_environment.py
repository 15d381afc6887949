"""The assistant's own memory: where it lies, what its files say, and that nothing outside it is read."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.capture import claude_instructions
from csmd.errors import BadInput
from csmd.hosts.claude import environment
from csmd.paths import folder_name


def memo(text: str | bytes) -> environment.Memo:
    data = text if isinstance(text, bytes) else text.encode()
    return environment.memo("a.md", data, modified="2026-01-01T00:00:00.000Z", size=len(data))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/b.c_d e", "-a-b-c-d-e"),
        ("/p/.hidden", "-p--hidden"),
        ("/p/é😀", "-p----"),
        # A session of the client in four directories of 60 letters each.
        (
            "/tmp/csmd-names" + "".join(f"/{letter * 60}" for letter in "defg"),
            f"-tmp-csmd-names-{'d' * 60}-{'e' * 60}-{'f' * 60}-g-rf9gt3",
        ),
    ],
)
def test_a_folder_is_named_as_the_host_names_it(path: str, name: str) -> None:
    assert folder_name(path) == name


def test_both_forms_of_a_head_are_read() -> None:
    early = memo("---\nname: n\ndescription: d\ntype: user\n---\nbody")
    late = memo("---\nname: n\ndescription: d\nmetadata:\n  type: user\n---\nbody")
    assert replace(late, size=early.size) == early
    assert early.problems == ()
    assert (early.name, early.description, early.type, early.modified) == ("n", "d", "user", "2026-01-01T00:00:00.000Z")
    assert memo("---\ntype: user\nmodified: 2026-03-04T05:06:07Z\n---\n").modified.startswith("2026-03-04T05:06:07")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no head", "it has no head"),
        ("---\nname: n\n---\n", "it has no type"),
        ("---\nname: n\ntype: secret\n---\n", "its type is 'secret', not user, feedback, project, reference"),
        ("---\n- a\n---\nx", "its head is not a mapping"),
        ("---\nname: x\n\tb: [\n---\nx", "its head is not YAML"),
        ("---\na: [&a x]\n&b c: d\n? *b\n: *b\n---\nx", "it uses aliases"),
        ("---\nname: n\ntype: user\n", "its head does not end"),
        (b"---\nname: \xff\ntype: user\n---\n", "it is not UTF-8"),
    ],
)
def test_what_is_odd_in_a_file_is_a_note(text: str | bytes, problem: str) -> None:
    assert any(problem in one for one in memo(text).problems), memo(text).problems


@given(
    st.binary(max_size=300) | st.text(max_size=300).map(lambda text: f"---\n{text}\n---\nx".encode("utf-8", "replace"))
)
def test_whatever_a_file_holds_it_is_read(data: bytes) -> None:
    environment.body(data)
    assert environment.memo("a.md", data, modified="", size=len(data)).filename == "a.md"


def test_the_newest_files_come_first_and_the_index_is_none_of_them(tmp_path: Path) -> None:
    for number in range(environment.MAX_FILES + 5):
        path = tmp_path / f"m{number:03d}.md"
        path.write_text(f"---\nname: n{number}\ntype: user\n---\nfact {number}")
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    (tmp_path / "MEMORY.md").write_text("- [a](a.md)")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "sub.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    found = claude_instructions.scan_notes(tmp_path)
    assert len(found) == environment.MAX_FILES - 1, "the pipe counts, and is not waited for"
    assert [one.name for one in found[:3]] == ["n204", "n203", "n202"]
    assert found[0].modified == "1970-01-12T13:50:04.000Z"
    assert claude_instructions.scan_notes(tmp_path / "missing") == []


@pytest.mark.invariant(
    "Nothing outside the assistant's memory directory is shown, and no instruction file can hang the reader"
)
def test_only_what_is_inside_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("---\ntype: user\n---\n\nThe fact.\n")
    (folder / "deep/b.md").write_text("plain")
    (tmp_path / "secret.md").write_text("secret")
    (folder / "out.md").symlink_to("../secret.md")
    (folder / "way").symlink_to("..")
    (folder / "in.md").symlink_to("a.md")
    (folder / "loop.md").symlink_to("loop.md")
    os.mkfifo(folder / "pipe.md")
    assert claude_instructions.read_note(folder, "a.md") == "The fact."
    assert claude_instructions.read_note(folder, "in.md") == "The fact."
    assert claude_instructions.read_note(folder, "deep/b.md") == "plain"
    for name in ("../secret.md", "out.md", "way/secret.md", str(tmp_path / "secret.md"), "missing.md", "", ".", "a\0b",
                 "loop.md", "pipe.md", "deep", "x" * 300, "/etc/passwd"):  # fmt: skip
        with pytest.raises(BadInput) as refused:
            claude_instructions.read_note(folder, name)
        assert "secret\n" not in refused.value.what
    assert "out.md" not in {one.filename for one in claude_instructions.scan_notes(folder)}


# --- the index, as the client cut it (2.1.329)

LINES_201 = "\n".join(f"l{number}" for number in range(201))


@pytest.mark.parametrize(
    ("content", "kept", "warning"),
    [
        ("\n".join(f"l{number}" for number in range(200)), None, ""),
        ("y" * 25_000, None, ""),
        ("\n".join("é" * 100 for _ in range(180)), None, ""),
        (
            LINES_201,
            LINES_201.removesuffix("\nl200"),
            'is 201 lines (limit: 200). Only part of it was loaded: 1 of 201 lines were cut off, starting at line 201 ("l200").',
        ),
        (
            "\n".join(f"{number:03d} " + "y" * 196 for number in range(150)),
            "\n".join(f"{number:03d} " + "y" * 196 for number in range(124)),
            "is 29.4KB (limit: 24.4KB) — index entries are too long. Only part of it was loaded: 26 of 150 lines were cut "
            'off, starting at line 125 ("124 ' + "y" * 75 + '…").',
        ),
        (
            "\n".join(f"{number:03d} " + "y" * 196 for number in range(250)),
            "\n".join(f"{number:03d} " + "y" * 196 for number in range(124)),
            "is 250 lines and 49.1KB. Only part of it was loaded: 126 of 250 lines were cut off, starting at line 125 "
            '("124 ' + "y" * 75 + '…").',
        ),
        (
            "z" * 26_000 + "\nb",
            "z" * 25_000,
            "is 25.4KB (limit: 24.4KB) — index entries are too long. Only part of it was loaded: "  # noqa: ISC004
            "everything after the first 25000 characters of line 1 was cut off.",
        ),
    ],
)  # fmt: skip
def test_a_long_index_is_cut_and_warned_of_as_the_host_does(content: str, kept: str | None, warning: str) -> None:
    advice = "Keep index entries to one line under ~200 chars; move detail into topic files."
    expected = content if kept is None else f"{kept}\n\n> WARNING: MEMORY.md {warning} {advice}"
    assert environment.cut_index(content) == expected


@pytest.mark.parametrize(
    ("model", "used", "window"),
    [("claude-sonnet-4-5-20250929", 62_100, 200_000), ("claude-sonnet-4-5[1m]", 10, 1_000_000), ("", 0, 200_000),
     ("claude-opus-9", 200_001, 1_000_000), ("claude-2.0", 5, 100_000)],
)  # fmt: skip
def test_a_models_window_is_the_usual_one_unless_more_is_known(model: str, used: int, window: int) -> None:
    assert environment.window(model, used) == window
