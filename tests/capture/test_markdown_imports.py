"""What counts as an import and what is left of a file's text: measured on Claude Code 2.1.329, line by line.

tests/data/instructions/lines.json holds for each markdown text which of @f.md, @g.md and @h.md the client
loaded, and the text as it told it (null: a rule that is told later, or nothing was left).
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.capture import markdown_imports
from csmd.text import markdown

DATA = Path(__file__).resolve().parent.parent / "data" / "instructions"
LINES = json.loads((DATA / "lines.json").read_text())
#: What markdown is made of.
PIECES = (
    "@f.md", "@./a\\ b.md#x", "`", "``", "```", "~~~", "*", "**", "_", "[", "]", "(", ")", "](x)", "![", "<!--", "-->",
    "<b>", "</b>", "<div>", "<", ">", "> ", "- ", "1. ", "# ", "---", "===", "\n", "\n\n", " ", "    ", "\t", "\\", "x",
    "[a]: b", "<?", "<![CDATA[", "\r\n", "\u2028", "\x00", "<a href='", "paths:", "a: *b",
)  # fmt: skip


#: Read otherwise by CommonMark than by the client's own parser: odd HTML, a link in a link, a tab behind a bullet.
KNOWN_DIFFERENCES = {
    "a **b @f.md** c\n<!--\n@g.md\n-->\n@h.md\n-\n",
    "-\n  @f.md\n[r]: @g.md\na <!-- x -->",
    "a\n</div> @f.md\n===",
    "a\n<!-- x --> @f.md\n---\n@g.md",
    "- \t@f.md",
    "<?php @f.md ?> @g.md",
    "<!DOCTYPE @f.md> @g.md",
    "<![CDATA[ @f.md ]]> @g.md",
    "[a [b](c) @f.md](d) @g.md",
    "- a\n  <span>\n  @f.md",
    "a\n  </div>\n@f.md",
    "<?php\n@f.md\n\n?> @g.md",
    "<!X\n@f.md\n\n> @g.md",
    "<![CDATA[\n@f.md\n\n]]> @g.md",
}


def is_as_measured(body: str, loaded: str, told: str | None) -> bool:
    """Whether one measured line is read as the client reads it."""
    head, rest = markdown.split_head(body.removeprefix("\ufeff"))
    content, targets = markdown_imports.parse_imports(rest)
    content = content.strip(markdown.JS_SPACES)
    conditional = markdown_imports.is_conditional(markdown.parse_head(head)[0].get("paths"))
    imports = "".join(letter for letter in "FGH" if f"{letter.lower()}.md" in targets)
    return (imports, None if conditional or not content else content) == (loaded, told)


@pytest.mark.parametrize(("body", "loaded", "told"), LINES, ids=range(len(LINES)))
def test_a_text_has_the_imports_and_content_that_the_client_reads(body: str, loaded: str, told: str | None) -> None:
    assert is_as_measured(body, loaded, told) != (body in KNOWN_DIFFERENCES)


def test_the_measured_lines_are_many_and_of_every_kind() -> None:
    assert len(LINES) > 400
    assert {len(loaded) for _, loaded, _ in LINES} == {0, 1, 2, 3}
    assert not is_as_measured("`@f.md`", "F", "`@f.md`")
    assert {body for body, *_ in LINES} > KNOWN_DIFFERENCES


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**/*.py", "a/b.py", True),
        ("src/{a,b}/*.ts", "src/b/x.ts", True),
        ("*.[ch]", "x.c", True),
        ("*.[!ch]", "x.c", False),
        ("[[]x", "[x", True),
        ("[a||b]", "|", True),
        ("[&&~~]", "~", True),
        ("[a--b]", "a", False),
        ("x.md", "/p/x.md", False),
        ("**/rules/b/**", "/p/.claude/rules/b/x.md", True),
        ("**/*.MD", "/p/x.md", False),
        ("{a,b}" * 30, "a", False),
    ],
)
def test_an_exclude_pattern_matches_the_whole_path(pattern: str, path: str, fits: bool) -> None:
    assert markdown_imports.is_excluded(path, ("[", pattern)) == fits


@pytest.mark.parametrize(
    ("paths", "conditional"),
    [(None, False), ("**", False), ("**/**, **", False), (["**", 5], False), ("src/**", True), (["*.py"], True)],
)
def test_a_rule_is_conditional_when_its_paths_name_some_files_only(paths: object, conditional: bool) -> None:
    assert markdown_imports.is_conditional(paths) == conditional


def test_a_path_is_given_without_its_fragment_and_with_its_spaces() -> None:
    text = "@a.md#part @b\\ c.md @~/d.md @/e.md @../f.md @#x @/ @+g.md @a.md"
    assert markdown_imports.parse_imports(text)[1] == ["a.md", "b c.md", "~/d.md", "/e.md", "../f.md"]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
@settings(max_examples=300, deadline=None)
def test_any_markdown_is_read_and_its_imports_stand_in_it(text: str) -> None:
    content, targets = markdown_imports.parse_imports(text)
    assert all(target in text.replace("\\ ", " ") for target in targets)
    assert len(content) <= len(text) + 1
    if "<!--" not in text:
        assert content == text


@given(st.text(max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(text: str) -> None:
    head, body = markdown.split_head(text)
    assert text.endswith(body) and head in text
    markdown_imports.parse_imports(text)
    markdown.parse_head(head)
    markdown.split_memo(text)


HOSTILE = (
    "- " * 20_000, "> " * 20_000, "[" * 50_000, "![" * 20_000, "*a " * 20_000, "**a_ " * 20_000, "`" * 50_000,
    "".join("`" * (n % 300) + "x" for n in range(700)), "<a " * 30_000, "<!--" * 30_000, "<!" * 40_000, "<?" * 40_000,
    "](" * 40_000, "[a](" * 20_000, '[a](b "' * 15_000, "\\" * 50_000, "@" * 50_000, "@a\\ " * 20_000, "@f.md " * 10_000,
    "```\n" * 20_000, "~~~\n```\n" * 10_000, "- a\n" * 20_000, "- a\n\n" * 20_000, "[a]: b\n" * 10_000,
    "[a]: <" * 20_000, "    x\n" * 20_000, "<div>\n" * 20_000, "a\n" * 40_000, " " * 100_000, "\n" * 100_000,
    "---\n" * 30_000, "---\n" + "- " * 50_000, "_*" * 30_000, "a_" * 40_000, "<b x='" * 20_000, "&lt;" * 20_000,
    "\t" * 50_000, "1. " * 20_000, "".join(f"{' ' * (n % 40)}- x\n" for n in range(8_000)), "* _" * 20_000,
)  # fmt: skip


@pytest.mark.invariant(
    "Nothing outside the assistant's memory directory is shown, and no instruction file can hang the reader"
)
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_the_cost_of_a_hostile_text_grows_no_faster_than_its_length(number: int) -> None:
    text = HOSTILE[number]

    def cost(body: str) -> float:
        begun = time.process_time()
        head, rest = markdown.split_head(body)
        markdown_imports.parse_imports("@" + rest)
        markdown.parse_head(head)
        return time.process_time() - begun

    # Four times the length: a square would be sixteen times the cost. Less than 0.1 s says nothing, and what another
    # process delayed is measured again.
    for _ in range(3):
        whole = cost(text)
        if whole < 0.1 or whole < 10 * (quarter := cost(text[: len(text) // 4])):
            return
    pytest.fail(f"{text[:8]!r}: {quarter:.3f} s, then {whole:.3f} s")


@pytest.mark.invariant(
    "Nothing outside the assistant's memory directory is shown, and no instruction file can hang the reader"
)
def test_hostile_heads_are_refused_with_a_reason() -> None:
    bomb = "a0: &a0 x\n" + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))
    merge = "a: &a {x: 1}\n" + "\n".join(f"b{n}: &b{n} {{<<: [{', '.join(['*a'] * 9)}]}}" for n in range(30))
    odd = {
        "- &a0 x\n" + "\n".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)): "aliases",
        "k" * 1_000_000 + ": 1": "long",
        "- a\n- b": "mapping",
        "just words": "mapping",
        "when: 2026-99-99": "not YAML",
        "[" * 10_000: "not YAML",
        "? [a, b]\n: c": "not YAML",
        "a: " + "9" * 9_000: "not YAML",
        "\x00": "not YAML",
    }
    for head, reason in odd.items():
        found, problem = markdown.parse_head(head)
        assert (found, reason in problem) == ({}, True), (head[:40], problem)
    assert markdown.parse_head("a: 2026-01-02\n1: b\nc: yes")[1] == ""
    # What is no YAML by one bare value is read as the host reads it, that value as text: nothing refers to anything.
    for head in (bomb, merge, "a: !!python/object/apply:os.system [id]", "a: ["):
        found, problem = markdown.parse_head(head)
        assert problem == "" and all(isinstance(value, str) and len(value) < 200 for value in found.values()), head[:40]
