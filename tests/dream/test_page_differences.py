"""What people did to the pages, told from the files: each edit is that edit and no other."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.dream import page_differences, page_format
from csmd.dream.page_differences import Edits, PageLine
from csmd.dream.page_format import Item, Page, Section
from csmd.text import markdown

USER, PROJECT, TOPIC = "user.md", "projects/gull-aaaaaa.md", "topics/tests.md"


def ident(number: int) -> str:
    return f"m{number:010x}"


def body(path: str, numbers: range, *, counted: tuple[str, ...] = ()) -> str:
    items = [Item(text=f"the statement {number} holds", id=ident(number)) for number in numbers]
    half = len(items) // 2
    sections = [
        Section(heading="Facts", items=tuple(items[:half])),
        Section(heading="Known gotchas", items=tuple(items[half:])),
    ]
    if counted:
        sections.append(Section(heading="Counted over sessions", items=tuple(Item(text=one) for one in counted)))
    return page_format.render_page(
        Page(
            path=path,
            head={"name": "x", "type": "project"},
            title="x",
            about=("how to edit this",),
            sections=tuple(sections),
        )
    )


COUNTED = "`mise run test` runs the tests: 41 of 43 times"
WHOLE = {
    USER: body(USER, range(1, 5)), PROJECT: body(PROJECT, range(5, 15), counted=(COUNTED,)), TOPIC: body(TOPIC, range(9, 13)),
}  # fmt: skip


def line(number: int) -> str:
    return f"- the statement {number} holds <!-- m:{ident(number)} -->\n"


@dataclass(frozen=True)
class Case:
    """Replacements in files (path, old, new); the edits of each page, in words: `changed 5: text`, `new Facts: text`, `gone 5`."""

    done: tuple[tuple[str, str, str], ...]
    edits: tuple[str, ...] = ()
    truncated: tuple[str, ...] = ()


CASES = {
    "nothing": Case(()),
    "a line worded anew": Case(((PROJECT, "statement 5 holds", "statement 5 is wrong"),), (f"{PROJECT} changed 5: the statement 5 is wrong",)),
    "a line added": Case(((PROJECT, line(5), f"{line(5)}- it is new\n"),), (f"{PROJECT} new Facts: it is new",)),
    "a paragraph added is a note": Case(((PROJECT, line(5), f"{line(5)}\nit is new,\nand long\n\n"),)),
    "a line removed": Case(((PROJECT, line(5), ""),), (f"{PROJECT} gone 5",)),
    "a line moved below another heading": Case(((PROJECT, line(5), ""), (PROJECT, line(14), line(14) + line(5)))),
    "a line moved to another page": Case(((PROJECT, line(5), ""), (USER, line(1), line(5) + line(1)))),
    "a line moved and worded anew": Case(
        ((PROJECT, line(5), ""), (USER, line(1), line(5).replace("holds", "held") + line(1))), (f"{USER} changed 5: the statement 5 held",),
    ),
    "a line taken off a theme's page": Case(((TOPIC, line(9), ""),), (f"{TOPIC} gone 9",)),
    "a line that two pages have, worded anew on one": Case(((TOPIC, "statement 9 holds", "statement 9 fails"),), (f"{TOPIC} changed 9: the statement 9 fails",)),
    "worded anew on both, the project's counts": Case(
        ((TOPIC, "statement 9 holds", "statement 9 fails"), (PROJECT, "statement 9 holds", "statement 9 flies")),
        (f"{PROJECT} changed 9: the statement 9 flies", f"{TOPIC} new Facts: the statement 9 fails"),
    ),
    "a copy of a line that was worded anew": Case(
        ((PROJECT, line(5), line(5) + line(5).replace("holds", "fails")),), (f"{PROJECT} new Facts: the statement 5 fails",)
    ),
    "a line that lost its comment": Case(((PROJECT, line(5), "- the statement 5 holds\n"),)),
    "an editor that takes every comment off": Case((*((PROJECT, f" <!-- m:{ident(number)} -->", "") for number in range(5, 15)), (PROJECT, " <!-- csmd -->", ""))),
    "other bullets and spaces": Case(tuple((PROJECT, line(number), f"*   the statement  {number} holds <!-- m:{ident(number)} -->\n") for number in range(5, 15))),
    "lines in another order": Case(((PROJECT, line(5), ""), (PROJECT, line(7), line(7) + line(5)))),
    "windows": Case(((PROJECT, "\n", "\r\n"),)),
    "a counted sentence taken off": Case(((PROJECT, f"- {COUNTED}\n", ""),), (f"{PROJECT} uncounted",)),
    "a counted sentence with other figures": Case(((PROJECT, "41 of 43", "44 of 47"),)),
    "a line of csmd's from another time": Case(((PROJECT, line(5), line(5) + line(99)),), (f"{PROJECT} back 99",)),
    "three lines of ten": Case(tuple((PROJECT, line(number), "") for number in (5, 6, 7)), tuple(f"{PROJECT} gone {number}" for number in (5, 6, 7))),
    "half of a page": Case(tuple((PROJECT, line(number), "") for number in range(5, 10)), truncated=(PROJECT,)),
    "most of a small page": Case(tuple((USER, line(number), "") for number in (1, 2, 3)), tuple(f"{USER} gone {number}" for number in (1, 2, 3))),
    "an emptied page": Case(((USER, WHOLE[USER], ""),), truncated=(USER,)),
    "a cut page": Case(((PROJECT, WHOLE[PROJECT][WHOLE[PROJECT].index(line(6)):], ""),), truncated=(PROJECT,)),
    "words of one's own": Case(((PROJECT, "# x\n", "# x\n\nmy words\n"), (PROJECT, line(14), f"{line(14)}\n```\n- code\n```\n"))),
}  # fmt: skip


def words(found: Edits) -> list[str]:
    at = found.path
    return [
        *(f"{at} changed {int(one.id[1:], 16)}: {one.text}" for one in found.changed),
        *(f"{at} new {one.heading}: {one.text}" for one in found.new),
        *(f"{at} gone {int(one[1:], 16)}" for one in found.removed_ids),
        *(f"{at} back {int(one[1:], 16)}" for one in found.restored_ids),
        *(f"{at} uncounted" for _ in found.removed_facts),
    ]


def done(files: dict[str, str]) -> dict[str, Edits]:
    olds = {path: page_format.parse_page(whole) for path, whole in WHOLE.items()}
    return page_differences.find_edits(olds, {path: page_format.parse_page(whole) for path, whole in files.items()})


def check(case: Case) -> None:
    files = dict(WHOLE)
    for path, old, new in case.done:
        assert old in files[path], old
        files[path] = files[path].replace(old, new)
    found = done(files)
    assert tuple(path for path in sorted(found) if found[path].is_truncated) == case.truncated
    if not case.truncated:
        assert tuple(word for path in found for word in words(found[path])) == case.edits


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_was_done_is_told_from_the_files(case: Case) -> None:
    check(case)


@pytest.mark.invariant("Any edit of one line is exactly that edit; a removed line is neither dropped nor put back")
@settings(max_examples=25, deadline=None)
@given(st.integers(5, 14), st.sampled_from(("gone", "changed", "new")), st.text(min_size=1, max_size=30))
def test_any_edit_of_one_line_is_exactly_that_edit(number: int, what: str, said: str) -> None:
    worded = markdown.from_line(markdown.to_line(f"somebody said {said} here"))
    after = {
        "gone": "",
        "changed": f"- {markdown.to_line(worded)} <!-- m:{ident(number)} -->\n",
        "new": f"{line(number)}- {markdown.to_line(worded)}\n",
    }[what]
    found = done({**WHOLE, PROJECT: WHOLE[PROJECT].replace(line(number), after)})
    heading = "Facts" if number < 10 else "Known gotchas"
    only = Edits(
        path=PROJECT, lost_lines=int(what == "gone"), old_lines=11,
        changed=(PageLine(heading=heading, text=worded, id=ident(number)),) if what == "changed" else (),
        new=(PageLine(heading=heading, text=worded),) if what == "new" else (), removed_ids=(ident(number),) if what == "gone" else (),
    )  # fmt: skip
    assert found[PROJECT] == only
    assert [found[path].count for path in (USER, TOPIC)] == [0, 0]


def test_more_new_lines_than_anybody_types_are_a_problem() -> None:
    many = "".join(f"- the new line {number}\n" for number in range(page_differences.MAX_NEW_LINES + 1))
    found = done({**WHOLE, PROJECT: WHOLE[PROJECT].replace(line(5), line(5) + many)})
    assert (
        found[PROJECT].problem
        == f"{page_differences.MAX_NEW_LINES + 1} new lines at once: csmd takes at most {page_differences.MAX_NEW_LINES}"
    )


def test_a_page_that_somebody_wrote_is_read_but_for_what_csmd_once_wrote_there() -> None:
    news = {PROJECT: page_format.parse_page(WHOLE[PROJECT] + "\n## Facts\n\n- mine\n")}
    assert words(page_differences.find_edits({}, news)[PROJECT])[0] == f"{PROJECT} new Facts: mine"
    assert [line.text for line in page_differences.find_edits({}, news)[PROJECT].new] == ["mine"]
    assert page_differences.find_edits({}, {PROJECT: Page()})[PROJECT] == Edits(path=PROJECT, is_blank=True)


READABLE = {
    b"a\r\nb": ("a\nb\n", ""), b"\xef\xbb\xbfa": ("a\n", ""), b"": ("", ""), b"\xff\xfe": ("", "it is not UTF-8"),
    b"a\x00b": ("", "it contains NUL bytes"), b"x" * (page_format.MAX_BYTES + 1): ("", "it is larger than 1 MB"),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "said"), READABLE.items(), ids=range(len(READABLE)))
def test_what_is_no_text_is_said_to_be_none(raw: bytes, said: tuple[str, str]) -> None:
    assert page_format.decode_page(raw) == said


COPIES = (
    "user (Ann's conflicted copy 2026-01-02).md", "user.sync-conflict-20260102-030405-ABCDEFG.md", "user (1).md", "user 2.md", "user.md~",
    "user.md.bak", "user.md.orig", ".user.md.swp", "#user.md#", ".#user.md", "user copy.md", "user - Kopie.md", "user-LAPTOP-7Q.md",
    "user.conflict.md", "user (conflicted copy 2026-01-02 030405).md", "projects/gull-aaaaaa.sync-conflict-20260102-030405-ABCDEFG.md",
)  # fmt: skip
NO_COPIES = (
    "notes.md",
    "user.restored-2026-01-02.md",
    "user.md",
    "other (1).md",
    "projects/user (1).md",
    "users.md",
    "daily/2026-01-02.md",
)


def test_copies_that_sync_services_and_editors_make_are_known_by_their_names() -> None:
    assert page_differences.find_copies([*COPIES, *NO_COPIES], WHOLE) == sorted(COPIES)


HOME = "/h/csmd/memory"
#: tool, input, cwd -> whether it may have written user.md, and the project's page.
CALLS = {
    ("Write", '{"file_path":"/h/csmd/memory/user.md","content":"x"}', "/p"): (True, False),
    ("Edit", '{"file_path":"/h/csmd/memory/projects/gull-aaaaaa.md"}', "/p"): (False, True),
    ("Read", '{"file_path":"/h/csmd/memory/user.md"}', "/p"): (False, False),
    ("Bash", '{"command":"cat /h/csmd/memory/user.md"}', "/p"): (False, False),
    ("Bash", '{"command":"cat x > /h/csmd/memory/user.md"}', "/p"): (True, False),
    ("Bash", '{"command":"cd ~/csmd/memory && echo hi >> user.md"}', "/p"): (True, False),
    ("Bash", '{"command":"echo hi >> user.md"}', "/h/csmd/memory"): (True, False),
    ("Bash", '{"command":"sed -i s/a/b/ *"}', "/h/csmd/memory/projects"): (True, True),
    ("Write", '{"file_path":"/p/docs/user.md","content":"x"}', "/p"): (False, False),
    ("mcp__fs__write_file", '{"path":"/h/csmd/memory/user.md"}', "/p"): (True, False),
    ("Bash", '{"command":"tee gull-aaaaaa.md"}', "/elsewhere"): (False, True),
    ("Bash", '{"command":"sed -i s/a/b/ ~/csmd/memory/*.md"}', "/p"): (True, True),
    ("Bash", '{"command":"cd $HOME/csmd/memory && for f in *.md; do echo x >> $f; done"}', "/p"): (True, True),
    ("Bash", '{"command":"find ~/csmd -name \'*.md\' -exec sed -i s/a/b/ {} +"}', "/p"): (True, True),
    ("Bash", '{"command":"~/bin/csmd status"}', "/p"): (False, False),
    ("Bash", '{"content":"[not kept: excluded file]"}', "/p"): (True, True),
    ("Bash", '{"command":"grep A .env","content":"[not kept: excluded file]"}', "/p"): (False, False),
    ("Bash", '{"command":"echo\n[csmd: 9 bytes left out of turn u]\n"}', "/p"): (True, True),
}  # fmt: skip


@pytest.mark.parametrize(("call", "wrote"), CALLS.items(), ids=range(len(CALLS)))
def test_a_tool_that_names_a_page_may_have_written_it(call: tuple[str, str, str], wrote: tuple[bool, bool]) -> None:
    tool, given_, cwd = call
    assert (
        tuple(page_differences.may_write(tool, given_, cwd, directory=HOME, path=path) for path in (USER, PROJECT))
        == wrote
    )
    for path, did in zip((USER, PROJECT), wrote, strict=True):
        found = cwd.startswith(HOME) or any(name in given_ for name in page_differences.list_page_words(HOME, path))
        assert found or not did, "what is judged is looked up by its words"
