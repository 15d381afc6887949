"""Which sentences of a turn are statements worth keeping: clean, split, refuse, classify, choose; pure.

Sources are what users said and what the assistant said last before they spoke again. At most three statements a turn,
each of one or two neighbouring sentences that stand on their own. What is looked at is bounded before any other work,
so that a megabyte costs what a page costs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from csmd.distill import kind, resolve
from csmd.distill.classify import Classification, Speaker, classify
from csmd.model import PROMPTS, Statement, StoredTurn
from csmd.text import content_words, lines_of_prose, sentences, squeeze, without_code

MAX_STATEMENTS = 3
MAX_CONTENT_WORDS = 45
MAX_CHARACTERS = 600
#: How much of a turn is looked at: its beginning and its end, in characters; then rows of prose.
HEAD, TAIL, MAX_LINE, MAX_ROWS = 14_000, 6_000, 2_000, 200
#: From this many rows of prose a user's text is something pasted, and few of its sentences are the user's point.
DOCUMENT_ROWS = 14
#: The first statement of a turn must only be worth keeping; a further one must be worth this much.
FURTHER = {"user": 0.90, "document": 0.95, "assistant": 1.25}
#: Two sentences are taken together when the second adds to the first; what that adds to their value.
PAIR_BONUS = 0.12
#: Two neighbours that are each worth this much are two statements, not one.
APART = 0.90

#: Text that a program wrote in the user's name: the turn says nothing.
NOT_SAID = re.compile(
    r"\s*(?:<(?:command-|local-command|bash-|task-notification|user-memory-input|teammate-message)"
    r"|\[Request interrupted"
    r"|Caveat: |Stop hook feedback|Operation stopped by hook|Base directory for this skill"
    r"|This session is being continued|/[\w:.-]+(?:\s|$))"
)
#: What programs put around or into a user's words, and csmd's own injections.
_FENCE = re.compile(
    r"<(/?)(system-reminder|system_instruction|ide_[a-z_]{1,40}|csmd-[a-z-]{1,40})\b[^<>]{0,300}>", re.I
)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.{1,200})$", re.MULTILINE)
#: Sections that carry a document's point, and sections that carry none.
GOOD_SECTION = re.compile(
    r"\b(?:context|root cause|cause|problem|decisions?|why|background|summary|finding|goal|rationale"
    r"|key|constraint|fix)",
    re.I,
)
POOR_SECTION = re.compile(
    r"\b(?:verification|test(?:s|ing)?( plan)?|files|steps|checklist|todo|next|usage|example|implementation)", re.I
)
SECTION_WEIGHT = 0.10
#: Cues that mean the author in speech and nobody in particular in a document.
LOUD = frozenset({"always", "do_not", "before_after", "should", "from_now_on"})

_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{2,3}|~~)(?=\S)|(?<=\S)(\*{1,3}|_{2,3}|~~)(?!\w)")
_MARKS = re.compile(r"^(?:[✅✓✔❌⚠🔴🟡🔵🟢🎉⏺►→•]️?\s*){1,3}(?=\S)")

#: (what it is, first letters of whom it holds for, pattern): a sentence that matches any is not a statement.
# fmt: off
REFUSED: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("narration", "a", re.compile(
        r"^\W{0,3}(?:(?:good|great|perfect|excellent|ok(?:ay)?|now|first|next|alright|done)[,.!: -]{1,3}){0,2}"
        r"(?:let me|let's (?:see|check|look)|i['’]ll|i will|i['’]m going to|i am going to|now i|now let"
        r"|here['’]s|here is|here are|i can see|i see)\b", re.I)),
    ("greeting", "ua", re.compile(
        r"^\W{0,3}(?:hi|hello|hey|thanks?|thank you|great|perfect|nice|cool|good morning|yes|no|ok|okay|sure"
        r"|done|you['’]re right)\b[\w ,']{0,20}[.!]*$", re.I)),
    ("to-do", "ua", re.compile(r"^\W{0,3}\[[ xX]\]|^(?:☐|☑|☒|TODO:)")),
    ("counts", "ua", re.compile(
        r"\b\d+ (?:tests? )?(?:pass(?:ed|ing)|failed|skipped)\b|^\W{0,3}(?:all )?(?:tests?|build"
        r"|lint)\b.{0,30}\b(?:pass(?:es|ed)?|clean|succeed\w*)\b.{0,20}$", re.I)),
    ("diff", "ua", re.compile(r"^(?:[+-]{1,3}\s?[\w/{}()#*]|@@|diff --git|index [0-9a-f]{6})")),
    ("trace", "ua", re.compile(
        r"^\s{0,8}(?:at [\w$.<>]{2,80} ?\(|File \"[^\"]{1,200}\", line|Traceback|panic:|goroutine \d)|\.(?:go|py"
        r"|js|ts|rs|java):\d+:\d+")),
    ("offer", "a", re.compile(
        r"^\W{0,3}(?:(?:would|do) you (?:like|want)|want me|should i|shall i|let me know|ready to|feel free)\b", re.I)),
    ("look", "ua", re.compile(
        r"^\W{0,3}(?:(?:and|so|yes|ok),? )?(?:can|could) you (?:please |also |again )?(?:take a look|check|look"
        r"|have a look)[\w ]{0,24}[?.:]?$", re.I)),
    ("log", "ua", re.compile(
        r"^(?:\W{0,3}(?:error|fatal|warning|usage|exit code|failed to [\w ]{2,40}):|❯|\$ |> |⎿|│|├|└|•\s{2,}"
        r"|\d{4}-\d\d-\d\d[T ]\d\d:)", re.I)),
)
# fmt: on
_CODE_LINE = re.compile(
    r"[{};]\s*$|^[\w.,\[\] ]{1,60} :?= \S{1,80}\(|^from [\w.]{1,80} import |^import [\w.]{1,80}$"
    r"|^[\w.]{1,80}\([^)]{0,200}\)$"
)
_WORDY = re.compile(r"[^\W\d_]{2,}")


class Unit(NamedTuple):
    """One or two neighbouring sentences: where they stand, what they say, what their section adds."""

    first: int
    last: int
    text: str
    bonus: float


class Choice(NamedTuple):
    """A unit that is worth keeping, with its classification and its value in this turn."""

    unit: Unit
    kind: Classification
    value: float


def final_turns(turns: Sequence[StoredTurn], *, settled: bool) -> list[StoredTurn]:
    """The sources among one stream's `turns`, in order: every user turn and the last assistant text before the next.

    A trailing assistant text counts when `settled`; otherwise more of the same message may still come. Notifications,
    commands, summaries and tool traffic are no sources and end nothing.
    """
    found: list[StoredTurn] = []
    last: StoredTurn | None = None
    for turn in turns:
        if turn.kind in PROMPTS:
            if last is not None:
                found.append(last)
            found.append(turn)
            last = None
        elif turn.kind == "assistant" and turn.text.strip():
            last = turn
    if settled and last is not None:
        found.append(last)
    return found


def statements(turn: StoredTurn, *, before: str = "") -> list[Statement]:
    """At most three statements of `turn`, best first; `before` is the text said before it."""
    if turn.kind not in PROMPTS | {"assistant"} or NOT_SAID.match(turn.text):
        return []
    speaker: Speaker = "user" if turn.kind == "user" else "assistant"
    rows = _rows(_bounded(_own_words(turn.text) if speaker == "user" else turn.text))
    document = speaker == "user" and len(rows) > DOCUMENT_ROWS
    manner = "document" if document else speaker
    choices: list[Choice] = []
    alone: dict[int, float] = {}
    for unit in _units(rows, speaker, together=not document and speaker == "user"):
        found = classify(unit.text, kind=speaker)
        if found is None or (document and LOUD.issuperset(found.reasons)):
            continue
        pair = unit.last > unit.first
        if not pair:
            alone[unit.first] = found.value
        elif min(alone.get(unit.first, 0.0), alone.get(unit.last, 0.0)) >= APART:
            continue
        choices.append(Choice(unit, found, found.value + unit.bonus + PAIR_BONUS * pair))
    choices.sort(key=lambda choice: (-choice.value, choice.unit.first))
    return _take(choices, manner, speaker, said=turn.text, before=before)


def _take(choices: list[Choice], manner: str, speaker: Speaker, *, said: str, before: str) -> list[Statement]:
    found: list[Statement] = []
    taken: set[int] = set()
    for unit, chosen, value in choices:
        if len(found) == MAX_STATEMENTS or (found and value < FURTHER[manner]):
            break
        where = set(range(unit.first, unit.last + 1))
        told = resolve.told(unit.text)
        if where & taken or not told:
            continue
        taken |= where
        what = kind.kind(unit.text, speaker=speaker, before=before)
        found.append(
            Statement(
                text=resolve.standalone(told, before=resolve.before_in(said, unit.text)),
                gate=what.gate,
                category=what.category,
                confidence=what.confidence,
                authority=speaker,
                reasons=tuple(dict.fromkeys(chosen.reasons + what.reasons)),
            )
        )
    return found


def _own_words(text: str) -> str:
    """What a user says, without what they quote: a question of the assistant's, a page, a mail."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">"))


def _bounded(text: str) -> str:
    """The head and tail of `text`, lines cut, without fenced insertions."""
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]}\n\n{text[-TAIL:]}"
    text = "\n".join(line[:MAX_LINE] for line in text.splitlines())
    kept: list[str] = []
    at = depth = 0
    for fence in _FENCE.finditer(text):
        if depth == 0:
            kept.append(text[at : fence.start()])
        depth = max(0, depth - 1) if fence[1] else depth + 1
        at = fence.end()
    if depth == 0:
        kept.append(text[at:])
    return "\n".join(kept)


def _rows(text: str) -> list[tuple[str, float]]:
    """The rows of prose of `text` without headings, each with what its section adds to it."""
    parts = _HEADING.split(without_code(text))
    rows: list[tuple[str, float]] = []
    for heading, body in [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]:
        bonus = SECTION_WEIGHT * (bool(GOOD_SECTION.search(heading)) - bool(POOR_SECTION.search(heading)))
        rows.extend((row, bonus) for row in lines_of_prose(body))
    return rows if len(rows) <= MAX_ROWS else rows[: MAX_ROWS * 3 // 4] + rows[-(MAX_ROWS // 4) :]


def _units(rows: list[tuple[str, float]], speaker: Speaker, *, together: bool) -> list[Unit]:
    """Every acceptable sentence and every acceptable pair of neighbours; `together` lets a pair span two rows."""
    found: list[Unit] = []
    previous: Unit | None = None
    place = 0
    for row, bonus in rows:
        if not together:
            previous = None
        for sentence in sentences(row):
            place += 1
            said = _plain(sentence)
            if not _acceptable(said, speaker):
                previous = None
                continue
            unit = Unit(place, place, said, bonus)
            found.append(unit)
            if previous is not None:
                both = f"{previous.text} {said}"
                if _fits(both):
                    found.append(Unit(previous.first, place, both, bonus))
            previous = unit
    return [unit for unit in found if _fits(unit.text)]


def _plain(sentence: str) -> str:
    return squeeze(_EMPHASIS.sub("", _MARKS.sub("", sentence)))


def _fits(said: str) -> bool:
    return len(said) <= MAX_CHARACTERS and len(content_words(said)) <= MAX_CONTENT_WORDS


def _acceptable(said: str, speaker: Speaker) -> bool:
    """Whether a sentence could stand alone: prose, and none of what REFUSED names."""
    if len(said) > MAX_LINE or said.endswith(":") or len(_WORDY.findall(said)) < 3 or _CODE_LINE.search(said):
        return False
    return not any(speaker[0] in speakers and pattern.search(said) for _, speakers, pattern in REFUSED)
