"""csmd's list of instructions is the real client's own, for trees that are made by chance.

The client writes what it loaded into its transcript (`attachment: instructions`, since 2.1.329). Each tree has
files in every place, links between them, and text in which imports stand where markdown makes it hard to tell.
CSMD_TEST_TREES=N tries N trees, from seed CSMD_TEST_SEED on.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from csmd.capture import claude_instructions

if TYPE_CHECKING:
    from e2e.client import Client
    from e2e.conftest import Sandbox

pytestmark = pytest.mark.e2e

TREES = int(os.environ.get("CSMD_TEST_TREES", "3"))
SEED = int(os.environ.get("CSMD_TEST_SEED", "1"))
FOLDERS = ("", "project", "project/sub", "project/sub/deep", "project/docs", "home", "home/.claude")
NAMES = (
    "CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md", ".claude/rules/a.md", ".claude/rules/b.md",
    ".claude/rules/x/c.md", "rules/d.md", "rules/x/e.md", "one.md", "two.md", "three.txt", "docs/four.md", "a b.md",
    "five.png", "six",
)  # fmt: skip
HEADS = (
    "",
    "",
    "",
    "---\nname: x\n---\n",
    "---\npaths: src/*.py\n---\n",
    "---\npaths: '**'\n---\n",
    "---\na: [\n---\n",
)
#: What stands around an import; ? is the import.
SHAPES = (
    "?", "see ? for more", "- ?", "- a\n  ?", "1. ?\n2. ?", "> ?", "> a\n?", "# ?", "**?**", "_?_", "`?`", "`` ? ``",
    "```\n?\n```", "~~~\n?\n~~~\n?", "    ?", "a\n    ?", "\t?", "<!-- ? -->", "a <!-- ? --> ?", "<!-- a -->?", "<!-- a --> ?",
    "<!--\n?\n-->\n?", "<div>\n?\n</div>\n\n?", "<b>?</b>", "<br> ?", "[?](x)", "[x](?)", "![?](x)", "[r]: ?", "[a]: b\n?",
    "\\?", "x?", '"?"', "(?)", "?.", "?,", "?#part", "| ? | ? |", "- a\n\n      ?\n\n  ?", "- `?` ?", "* - ?\n  - `?`", "~~?~~",
    "a `b ?\n\nc`", "*a ?*", "a*?*", "?\r\n?\r\n", "-\n  ?", "a\n---\n?", "***\n?", "<?x ? ?> ?", "</div> ?", "<x>\n?", "\u00a0?",
    "- a <!-- b\n  c --> ?", "> ```\n> ?\n?", "1) ?\n   - ?\n\n     ?", "[x ?][a]\n\n[a]: b", "a **b ?** c", "``a ? `b`", "&amp; ?",
)  # fmt: skip


def text(chance: random.Random, links: list[str]) -> str:
    """A file's text: a head, paragraphs, imports in odd places."""
    parts = [chance.choice(HEADS)]
    for _ in range(chance.randint(0, 6)):
        pieces = chance.choice(SHAPES).split("?")
        shaped = pieces[0] + "".join("@" + chance.choice(links).replace(" ", "\\ ") + piece for piece in pieces[1:])
        parts.append(shaped + chance.choice(("\n", "\n\n", "\n\n", "\n\n\n")))
    parts.append(chance.choice(("", "The end.\n", "word " * 20)))
    return "".join(parts)


def make(root: Path, chance: random.Random) -> str:
    """A tree by chance; the directory that the session starts in."""
    targets = ["one.md", "./two.md", "../one.md", "docs/four.md", "a b.md", "three.txt", "five.png", "six", "~/one.md",
               "missing.md", "../../two.md", "sub/CLAUDE.md", "CLAUDE.md", "../CLAUDE.md", "docs", f"{root}/one.md",
               ".claude/rules/a.md", "../CLAUDE.local.md", "x/../one.md", "AGENTS.md", "../../../six"]  # fmt: skip
    for folder in FOLDERS:
        for name in NAMES:
            path = root / folder / name
            if chance.random() < 0.45 and not os.path.lexists(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                if chance.random() < 0.08:
                    path.symlink_to(
                        chance.choice(("one.md", "../one.md", "../../two.md", "nowhere.md", str(root / "one.md")))
                    )
                else:
                    path.write_bytes(text(chance, targets).encode())
    start = chance.choice(("project", "project", "project/sub", "project/sub/deep"))
    (root / start).mkdir(parents=True, exist_ok=True)
    return start


def recorded(home: Path) -> Iterator[tuple[str, str, str]]:
    """What the client says it loaded."""
    for path in sorted((home / ".claude" / "projects").rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            attachment: dict[str, Any] = (json.loads(line).get("attachment") or {}) if line else {}
            if attachment.get("type") == "instructions":
                yield from ((file["path"], file["type"], file["content"]) for file in attachment["files"])


@pytest.mark.invariant(
    "The list of instructions is the host's own; what the assistant is told anyway is not told again, and what contradicts it is"
)
@pytest.mark.parametrize("number", range(TREES))
@pytest.mark.parametrize("claude_build", ["2.1.329"], indirect=True)
def test_for_a_tree_made_by_chance_the_list_is_the_clients_own(claude: Client, sandbox: Sandbox, number: int) -> None:
    chance = random.Random(SEED + number)
    start = make(sandbox.path, chance)
    sandbox.write_settings({"claudeMdExcludes": chance.choice(([], [], ["**/sub/CLAUDE.md", "**/rules/x/**"]))})
    claude.start_directory = sandbox.path / start
    assert claude.run("go", "Done.").exit_code == 0
    user = claude_instructions.User(
        home=str(sandbox.home),
        configs=(str(sandbox.home / ".claude"),),
        managed=claude_instructions.DEFAULT_MANAGED_FOLDER,
    )
    loaded = [
        (file.path, file.kind, file.content)
        for file in claude_instructions.load_instructions(
            claude_instructions.find_place(str(sandbox.path / start), user)
        )
    ]
    assert loaded == list(recorded(sandbox.home)), f"seed {SEED + number}"
