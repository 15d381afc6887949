"""Files of the assistant's own memory directory as statements: its words, whoever brings them; pure.

Each item of a list and each paragraph is one; headings, code, tables and the index of files say nothing by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from csmd import text
from csmd.capture import memdir
from csmd.capture.memdir import Memo
from csmd.model import CATEGORIES, Category, Statement

#: What a file is for, as its head says -> what its statements are.
CATEGORY: dict[str, Category] = {
    "user": "preference", "feedback": "convention", "project": "fact", "reference": "fact", "": "fact",
}  # fmt: skip
#: Sureness of what an assistant wrote down on purpose, the same as of what it saves through a tool.
CONFIDENCE = 0.8
#: Characters of one statement, the fewest words of one, and statements of one file.
MOST_CHARACTERS, LEAST_WORDS, MOST_STATEMENTS = 400, 3, 200

_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+(?=\S)")
_NO_PROSE = re.compile(r"^\s*(?:#{1,6}\s|\||<!--|>|[-=*_]{3,}\s*$)")
#: A line of an index: a link to a file, with or without what it is about.
_LINK = re.compile(r"^\W{0,4}\[[^\]\n]{1,200}\]\([^)\n]{1,300}\.md\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def statements(found: Memo, body: str) -> Iterator[Statement]:
    """What a file says, in its order."""
    category = CATEGORY[found.type]
    for number, said in enumerate(_pieces(_COMMENT.sub("", body))):
        if number == MOST_STATEMENTS:
            return
        yield Statement(
            text=said, gate=CATEGORIES[category].gate, category=category, confidence=CONFIDENCE, authority="assistant",
            reasons=("memo",),
        )  # fmt: skip


def _pieces(body: str) -> Iterator[str]:
    for block in _blocks(body):
        said = text.squeeze(block)
        if len(said) > MOST_CHARACTERS:
            whole = ""
            for sentence in text.sentences(said):
                if len(whole) + len(sentence) >= MOST_CHARACTERS:
                    break
                whole = f"{whole} {sentence}".strip()
            said = whole or text.cut(said, MOST_CHARACTERS)
        if len(text.content_words(said)) >= LEAST_WORDS:
            yield said


def _blocks(body: str) -> Iterator[str]:
    """Paragraphs and items; an item goes on in the lines that are indented below it."""
    gathered: list[str] = []
    fenced = False
    for line in [*body.splitlines(), ""]:
        if _FENCE.match(line):
            fenced = not fenced
            line = ""
        elif fenced:
            continue
        ends = not line.strip() or _NO_PROSE.match(line) or _ITEM.match(line)
        if ends and gathered:
            yield " ".join(gathered)
            gathered = []
        if line.strip() and not _NO_PROSE.match(line) and not _LINK.match(_ITEM.sub("", line)):
            gathered.append(_ITEM.sub("", line).strip())


def is_note(name: str) -> bool:
    """Whether a file of a memory directory is one of its notes, and not its index."""
    return name.endswith(".md") and name != memdir.INDEX and not name.startswith(".")
