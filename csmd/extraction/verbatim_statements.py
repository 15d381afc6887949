"""Statements that are kept word for word: picks with their questions, and notes behind a `#`; pure.

An answer to the assistant's questions says nothing without its question, and names what the user chose in a word or
two: nothing has to be chosen from it. The same holds for what a user writes after a `#`, which Claude Code took as a
note to remember.
"""

from __future__ import annotations

import re

from csmd.conversation import StoredTurn
from csmd.extraction import classifier
from csmd.knowledge import Statement
from csmd.text import display, prose, sentence
from csmd.text.tokens import content_words
from csmd.vocabulary import CATEGORIES, PROMPTS, Authority

#: Most characters of a question.
MAX_QUESTION_CHARACTERS = 400
#: Most characters of its answer.
MAX_ANSWER_CHARACTERS = 400
#: Content words of a question that "yes" or "no" says something about.
MIN_QUESTION_WORDS = 2
#: Most words of a title.
MAX_HEADING_WORDS = 3
_QUOTE = "> "
_NOTE = re.compile(r"# +(\S.*)")


def find_verbatim(turn: StoredTurn) -> list[Statement]:
    """The statements that a prompt makes by its form; [] for a prompt of another form."""
    if turn.kind not in PROMPTS:
        return []
    authority: Authority = "user" if turn.kind == "user" else "assistant"
    note = _NOTE.fullmatch(turn.text)
    if note and sentence.holds_only_redacted(note[1]):
        return []
    if note and len(turn.text.splitlines()) == 1 and not _is_heading(note[1]):
        what = classifier.classify(note[1], speaker="user")
        return [
            Statement(
                text=note[1], gate=what.gate, category=what.category, confidence=what.confidence, authority=authority,
                reasons=(classifier.ASKED,),
            )
        ]  # fmt: skip
    # The uuid of a prompt that replaces a tool's result ends with a number (hosts/claude/transcript.py).
    return [
        Statement(
            text=text, gate="epistemic", category="decision", confidence=CATEGORIES["decision"].high,
            authority=authority, reasons=("pick",),
        )
        for text in (find_picks(turn.text) if "/" in turn.uuid else [])
    ]  # fmt: skip


def _is_heading(text: str) -> bool:
    """Whether a line is a title: a capital, a few words, and none that says or lays down something."""
    read = sentence.parse(text)
    says_something = read.kind != "states" or read.lasting or read.refutes or sentence.has("finite", "en", text)
    return text[0].isupper() and len(text.split()) <= MAX_HEADING_WORDS and not says_something


def find_picks(text: str) -> list[str]:
    """The answers in a text that follow a quoted question, as "question -> answer"."""
    texts: list[str] = []
    question: list[str] = []
    answer: list[str] = []
    for line in [*text.splitlines(), _QUOTE]:
        if not line.startswith(_QUOTE.rstrip()):
            answer.append(line)
            continue
        if "".join(answer).strip():
            question_text = display.cut(_find_asking(display.squeeze(" ".join(question))), MAX_QUESTION_CHARACTERS)
            answered = display.squeeze(" ".join(answer))
            if question_text and (content_words(answered) or len(content_words(question_text)) >= MIN_QUESTION_WORDS):
                texts.append(f"{question_text}{display.ARROW}{display.cut(answered, MAX_ANSWER_CHARACTERS)}")
            question, answer = [], []
        question.append(line.removeprefix(_QUOTE.rstrip()))
    return texts


def _find_asking(question: str) -> str:
    """The sentences of a question that ask, else its last one; assertions next to them were not answered."""
    text = prose.split_sentences(question)
    asking = [each for each in text if each.rstrip("\"')*_ ").endswith(("?", "？", "؟"))]
    return " ".join(asking or text[-1:])
