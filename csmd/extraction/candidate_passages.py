"""Finds the passages of a turn that may be chosen as statements; pure.

A passage is a sentence and the sentences after it in its section, up to MAX_CONTENT_WORDS, without sentences that state
nothing (REFUSED_KINDS).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from csmd.extraction.passage_scores import Passage, certainty, load_weights
from csmd.text import prose
from csmd.text.sentence import (
    Kind,
    Sentence,
    Speaker,
    ends_with_question,
    has,
    holds_only_redacted,
    is_of_several,
    parse,
)
from csmd.text.sentence_words import UNSPACED
from csmd.text.tokens import content_words, words_of

#: Most distinct content words of a passage.
MAX_CONTENT_WORDS = 45
#: Most characters of a passage.
MAX_CHARACTERS = 600
#: Most content words of a title that is put before a passage.
MAX_TITLE_WORDS = 8
#: Kinds of sentences that state nothing that lasts, by speaker.
REFUSED_KINDS: Mapping[Speaker, frozenset[Kind]] = {
    "user": frozenset({"printed", "reports"}),
    "assistant": frozenset({"printed", "reports", "narrates"}),
}
#: An order of at most this many content words is short.
SHORT_ORDER_WORDS = 5
#: A short order that lasts less surely than this is of the moment.
MIN_SHORT_ORDER_CERTAINTY = 0.35
#: Characters of a sentence in a script without spaces that say as much as MIN_WORDS.
MIN_UNSPACED_CHARACTERS = 6
#: Fewest words of a sentence.
MIN_WORDS = 3
_WORD = re.compile(r"[^\W\d_]{2,}|\bI\b|(?<=\bI['’])m\b")
_CODE_LINE = re.compile(
    r"[{};]\s*$|^[\w.,\[\] ]{1,60} :?= \S{1,80}\(|^from [\w.]{1,80} import |^import [\w.]{1,80}$"
    r"|^[\w.]{1,80}\([^)]{0,200}\)$"
)
#: The marks that end a sentence.
_SENTENCE_ENDS = tuple(".!?:…。！？")
#: The marks that may follow them.
_CLOSERS = "\"')`*]"
#: Words in titles of sections that hold steps, checks and lists of files.
POOR_TITLE = frozenset(
    "verification test tests testing files steps checklist todo next usage example examples implementation".split()
)
#: Words in titles of sections that hold the point of a document.
GOOD_TITLE = frozenset(
    "context cause causes problem problems decision decisions why background summary finding findings goal goals"
    " rationale key constraint constraints fix fixes fixed".split()
)
#: A title of these words alone, or of a question, names a part of a text and no subject.
_EMPTY_TITLE = (
    POOR_TITLE
    | GOOD_TITLE
    | frozenset(
        "the main other all new current proposed your my our technical design code file required made and of root"
        " overview issue issues solution solutions approach plan change changes result results conclusion conclusions"
        " note notes detail details step benefit benefits option options recommendation recommendations question"
        " questions before after behavior behaviour analysis review feature features requirement requirements status"
        " architecture scope error errors solving".split()
    )
)


def find_passages(outline: Sequence[prose.Sentence], speaker: Speaker) -> list[Passage]:
    """Finds the candidate passages of a turn, in order: the longest from each sentence that may begin one."""
    content = [
        frozenset(content_words(sentence.text)) if is_usable(sentence, speaker) else None for sentence in outline
    ]
    passages = (_build_passage(outline, content, start) for start in range(len(outline)))
    return [passage for passage in passages if passage is not None]


def is_usable(sentence: prose.Sentence, speaker: Speaker) -> bool:
    """Whether a sentence may be part of a passage: prose that states something, outside sections of steps."""
    text = sentence.text
    read = parse(text, speaker)
    is_unspaced = read.language in UNSPACED and len(text) >= MIN_UNSPACED_CHARACTERS
    if (
        len(text) >= prose.MAX_LINE_CHARACTERS
        or not (is_unspaced or len(_WORD.findall(text)) >= MIN_WORDS)
        or _CODE_LINE.search(text)
        or read.kind in REFUSED_KINDS[speaker]
        or read.leaves_open
        or holds_only_redacted(text)
        or not POOR_TITLE.isdisjoint(words_of(sentence.title))
    ):
        return False
    if speaker == "assistant":  # the user decides on a proposal: acceptance.py
        only_asks = read.kind == "asks" and read.opens_with_question and not _states_before_question(read)
        return not (only_asks or has("proposes", read.language, text))
    if read.language != "en" and (not read.lasting or read.kind != "states" or read.is_of_moment):
        return False
    if read.kind == "asks":
        return _states_before_question(read)
    if read.kind != "orders":
        return True
    if read.is_of_moment and not is_of_several(read):
        return False
    is_short = len(content_words(text)) <= SHORT_ORDER_WORDS
    return not is_short or certainty(text, load_weights()) >= MIN_SHORT_ORDER_CERTAINTY


def _states_before_question(read: Sentence) -> bool:
    """Whether an English sentence states something, and only its end asks."""
    may_state = read.language == "en" and (not read.opens_with_question or "." in read.text)
    return may_state and ends_with_question(read.text)


def _build_passage(
    outline: Sequence[prose.Sentence], content: Sequence[frozenset[str] | None], start: int
) -> Passage | None:
    """Builds the longest passage from `start`; `content` is None for sentences that are not usable."""
    first, words = outline[start], content[start]
    if words is None or (start and parse(first.text).is_continuation) or len(words) > MAX_CONTENT_WORDS:
        return None
    text, last = first.text, start
    for at in range(start + 1, len(outline)):
        sentence, added = outline[at], content[at]
        if sentence.section != first.section:
            break
        if added is None:
            continue
        if len(words | added) > MAX_CONTENT_WORDS or len(text) + len(sentence.text) > MAX_CHARACTERS:
            break
        mark = " " if sentence.row == outline[last].row or ends_sentence(text) else "; "
        text, words, last = f"{text}{mark}{sentence.text}", words | added, at
    if not words:
        return None
    title_words = frozenset(content_words(first.title))
    adds_title = title_words - words and len(title_words) <= MAX_TITLE_WORDS
    if adds_title and len(words | title_words) <= MAX_CONTENT_WORDS and not _is_empty_title(first.title):
        text, words = f"{first.title}: {text}", words | title_words
    return Passage(start, last, text, words, not GOOD_TITLE.isdisjoint(words_of(first.title)))


def ends_sentence(text: str) -> bool:
    """Whether a text ends with the mark of a sentence."""
    return text.rstrip(_CLOSERS).endswith(_SENTENCE_ENDS)


def _is_empty_title(title: str) -> bool:
    """Whether a title names a part of a text and no subject: "The main changes", "How it works"."""
    words = words_of(title)
    return words[:1] in (["what"], ["why"], ["how"]) or _EMPTY_TITLE.issuperset(words)
