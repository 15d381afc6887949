"""Statements that are kept as they stand: picks with their questions, and notes behind a `#`; pure.

An answer to the assistant's questions says nothing without its question, and names what the user chose in a word or
two: nothing has to be chosen from it. The same holds for what somebody puts behind a `#`, which Claude Code took as a
note to remember.
"""

from __future__ import annotations

import re

from csmd.extraction import classifier
from csmd.text import display
from csmd.values import Statement, StoredTurn
from csmd.vocabulary import CATEGORIES, PROMPTS, Authority

#: Stands between a question and its answer.
ARROW = " -> "
#: Most characters of a question, and of its answer.
QUESTION_CHARACTERS, ANSWER_CHARACTERS = 400, 400
_QUOTE = "> "
_NOTE = re.compile(r"# +(\S.*)")


def of_prompt(turn: StoredTurn) -> list[Statement]:
    """The statements that a prompt makes by its form; [] for a prompt of another form."""
    if turn.kind not in PROMPTS:
        return []
    authority: Authority = "user" if turn.kind == "user" else "assistant"
    if (note := _NOTE.fullmatch(turn.text)) and len(turn.text.splitlines()) == 1:
        what = classifier.classify(note[1], speaker="user")
        return [
            Statement(
                text=note[1], gate=what.gate, category=what.category, confidence=what.confidence, authority=authority,
                reasons=(classifier.ASKED,),
            )
        ]  # fmt: skip
    # What stands in place of a tool's result has a number behind its line's uuid (hosts/claude/transcript.py).
    return [
        Statement(
            text=text, gate="epistemic", category="decision", confidence=CATEGORIES["decision"].high,
            authority=authority, reasons=("pick",),
        )
        for text in (picks(turn.text) if "/" in turn.uuid else [])
    ]  # fmt: skip


def picks(said: str) -> list[str]:
    """The answers in a text, each behind the quoted question that it answers, as "question -> answer"."""
    texts: list[str] = []
    question: list[str] = []
    answer: list[str] = []
    for line in [*said.splitlines(), _QUOTE]:
        if not line.startswith(_QUOTE.rstrip()):
            answer.append(line)
            continue
        if "".join(answer).strip():
            if "".join(question).strip():
                asked = display.cut(display.squeeze(" ".join(question)), QUESTION_CHARACTERS)
                texts.append(f"{asked}{ARROW}{display.cut(display.squeeze(' '.join(answer)), ANSWER_CHARACTERS)}")
            question, answer = [], []
        question.append(line.removeprefix(_QUOTE.rstrip()))
    return texts
