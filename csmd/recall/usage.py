"""Whether a session used what it was shown.

A word that came from elsewhere first proves nothing: from the prompt, from the context before, from a tool's result.
So an item is tracked turn by turn, and loses every mark that another's turn brings before the assistant's. Receipts whose
time is over are judged by the stored turns; the age of what was used begins again, and its confidence stays, because
use is no statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from csmd.conversation import StoredTurn
from csmd.memory import remember
from csmd.privacy.fingerprints import PURGED
from csmd.store import memories, receipts, search, turns
from csmd.store.core import Store
from csmd.store.receipts import WaitingReceipt
from csmd.store.sqlite import Rows
from csmd.text import display, tokens

#: By which kind of mark use was recognised, the surest first; "" where it was not.
By = Literal["command", "path", "name", "words", ""]
KINDS: tuple[By, ...] = ("command", "path", "name")
#: Who says a turn: the assistant in words, the assistant in a tool call, anybody else.
Voice = Literal["said", "called", "other"]
VOICES: dict[str, Voice] = {"assistant": "said", "tool_call": "called"}
PROMPTS = ("user", "relayed", "command")

#: Least share of an item's own words in one passage, least number of them, and up to how many words of an item one suffices.
SHARE, FEW, SHORT = 0.4, 2, 3
#: Characters of a turn that are compared: the rest of a longer one is a file or a log.
TURN_CHARACTERS = 20_000
#: Receipts in one step, all of one session; and how many turns before and after are read.
BATCH, BEFORE, AFTER = 20, 300, 600
#: Seconds until a turn is stored; without any turn until a prompt counts as answered; and until a session counts as over.
LAG_S, STILL_S, OVER_S = 30, 20 * 60, 6 * 3600
#: A word that a larger share of the memories has, and at least so many, says nothing of one.
COMMON_SHARE, COMMON_LEAST = 0.05, 5

_CODE = re.compile(r"`([^`\n]{2,120})`")
_PATH = re.compile(
    r"(?<![\w:/.-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w|\b[\w-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{0,5}\b"
)
_NAME = re.compile(
    r"(?<![\w-])(?:--[a-z][\w-]+|[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}\d+|[a-z]+-[a-z]+-[\w-]+)(?![\w-])"
)
#: A string of JSON, which may be cut, and whether it is a key.
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"(\s{0,3}:)?|$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ABBREVIATED = re.compile(r"(?:[a-z]\.)+[a-z]", re.IGNORECASE)


class ComparedTurn(NamedTuple):
    """A turn as it is compared: who says it, its text folded, and the stems of each of its passages."""

    voice: Voice
    folded: str
    passages: tuple[frozenset[str], ...]


@dataclass(slots=True)
class TrackedItem:
    """An item with the marks that no other turn has brought yet; `words` are stems and a word of each, at first `size`.

    Once it was used, `by` is the kind of mark that showed it and `brought` the marks themselves (which are never stored).
    """

    marks: dict[str, By]
    words: dict[str, str]
    size: int
    by: By = ""
    brought: tuple[str, ...] = ()


def track_text(text: str) -> TrackedItem:
    """An item of this text, with the marks that it can be recognised by."""
    marks: dict[str, By] = {_fold(span): "command" for span in _CODE.findall(text) if " " in span.strip()}
    for path in _PATH.findall(text):
        if not _ABBREVIATED.fullmatch(path):
            whole = path.casefold().removeprefix("./")
            marks.setdefault(whole, "path")
            marks.setdefault("/".join(whole.split("/")[-2:]), "path")
    for name in _NAME.findall(text):
        marks.setdefault(name.casefold(), "name")
    without_commands = _CODE.sub(lambda span: " " if " " in span[1].strip() else span[1], text)
    words: dict[str, str] = {}
    for word in tokens.content_words(_NAME.sub(" ", _PATH.sub(" ", without_commands))):
        if not tokens.turns_round(word):
            words.setdefault(tokens.stem(word), word)
    return TrackedItem(marks=marks, words=words, size=len(words))


def parse_turn(text: str, voice: Voice) -> ComparedTurn:
    """A turn for comparing; of a tool call its arguments without their keys, as one passage."""
    text = (_arguments(text) if voice == "called" else text)[:TURN_CHARACTERS]
    parts = text.splitlines() if voice == "said" else [text]
    passages = (frozenset(map(tokens.stem, tokens.content_words(part))) for part in parts)
    return ComparedTurn(voice, _fold(text), tuple(stems for stems in passages if stems))


def compare_turn(items: Iterable[TrackedItem], turn: ComparedTurn, is_common: Callable[[str], bool]) -> None:
    """Compares items with the next turn: the assistant's may show use, another's takes marks away."""
    stems = frozenset[str]().union(*turn.passages)
    for item in items:
        if item.by:
            continue
        if turn.voice == "other":
            item.marks = {mark: by for mark, by in item.marks.items() if not _brings(turn.folded, mark, by)}
            item.words = {stem: word for stem, word in item.words.items() if stem not in stems}
        else:
            item.by, item.brought = _find_use(item, turn, stems, is_common)


def _find_use(
    item: TrackedItem, turn: ComparedTurn, stems: frozenset[str], is_common: Callable[[str], bool]
) -> tuple[By, tuple[str, ...]]:
    """(by which kind of mark a turn of the assistant's shows use, these marks); "" for none."""
    held = [mark for mark in item.marks if _holds(turn.folded, mark)]
    for by in KINDS:
        if marks := tuple(mark for mark in held if item.marks[mark] == by):
            return by, marks
    if item.words.keys().isdisjoint(stems):
        return "", ()
    own = {stem for stem, word in item.words.items() if not is_common(word)}
    for passage in turn.passages:
        shared = own & passage
        # A call is short, and what it says is done; but the last word that is left of a long text is nobody's.
        one_suffices = (turn.voice == "called" or shared == own) and len(shared) * SHORT >= item.size
        if shared and len(shared) >= SHARE * len(own) and (len(shared) >= FEW or one_suffices):
            return "words", tuple(sorted(item.words[stem] for stem in shared))
    return "", ()


def _holds(folded: str, mark: str) -> bool:
    """Whether a text holds a mark as a whole; of a path its end suffices, as others begin it elsewhere."""
    return mark in folded and re.search(rf"(?<![\w-]){re.escape(mark)}(?![\w-]|\.\w)", folded) is not None


def _brings(folded: str, mark: str, by: By) -> bool:
    """Whether a text says a mark, of a path at least the file's name: who asks about a file need not say where it is."""
    return _holds(folded, mark) or (by == "path" and _holds(folded, mark.rpartition("/")[2]))


def _fold(text: str) -> str:
    return display.squeeze(text).casefold()


def _arguments(call: str) -> str:
    """The strings of a call's input without the keys, a line each; it may be cut in its middle and is no JSON then."""
    plain = {"n": "\n", "t": "\t", "r": "\n"}
    strings = (text for text, key in _STRING.findall(call) if not key)
    return "\n".join(_ESCAPED.sub(lambda escape: plain.get(escape[1], escape[1]), text) for text in strings)


class JudgedReceipt(NamedTuple):
    """A receipt with its items by id (none where the assistant said nothing meanwhile), and when those used were used."""

    receipt: WaitingReceipt
    items: dict[str, TrackedItem]
    used_at: dict[str, str]


def _judge(
    receipt: WaitingReceipt,
    texts: dict[str, str],
    stream: Sequence[StoredTurn],
    parse: Callable[[str, Voice], ComparedTurn],
    is_common: Callable[[str], bool],
) -> JudgedReceipt:
    """Tracks the items of a receipt through the turns of its session, to where its time is over."""
    items = {ident: track_text(text) for ident, text in texts.items()}
    has_begun = is_answered = False
    used_at: dict[str, str] = {}
    for turn in stream:
        if not has_begun:
            has_begun = turn.at > receipt.at and turn.seq != receipt.prompt_seq
            if turn.kind == "summary" and not has_begun:  # nothing that was said before it is in the context
                items = {ident: track_text(text) for ident, text in texts.items()}
        if has_begun and (turn.kind == "summary" or (receipt.event != "session_start" and turn.kind in PROMPTS)):
            break
        # Whoever said it before it was shown, the assistant had it already.
        voice = VOICES.get(turn.kind, "other") if has_begun else "other"
        compare_turn(items.values(), parse(turn.text, voice), is_common)
        if voice != "other":
            is_answered = True
            used_at = {ident: turn.at for ident, item in items.items() if item.by} | used_at
    return JudgedReceipt(receipt, items if is_answered else {}, used_at)


def step(store: Store, *, answered: str, still: str, over: str) -> int:
    """Judges the next receipts of one session whose time is over (see `receipts.list_waiting`); how many."""
    waiting = store.read(
        lambda rows: receipts.list_waiting(
            rows, answered_before=answered, idle_before=still, start_idle_before=over, limit=BATCH
        )
    )
    waiting = [receipt for receipt in waiting if receipt.session_id == waiting[0].session_id]
    if not waiting:
        return 0
    judged = store.read(lambda rows: judge_receipts(rows, waiting))

    def write(rows: Rows) -> None:
        for judgement in judged:
            receipts.record_use(
                rows,
                judgement.receipt.seq,
                {ident: (bool(item.by), item.by) for ident, item in judgement.items.items()},
            )
            for ident, at in judgement.used_at.items():
                if (memory := memories.by_id(rows, ident)) is not None:
                    remember.use(rows, memory, at=at)

    store.write(write)
    return len(waiting)


def find_use_marks(rows: Rows, receipt: WaitingReceipt) -> dict[str, tuple[str, ...]]:
    """Item -> the marks that show its use, by the turns stored today; none where the assistant said nothing."""
    (judged,) = judge_receipts(rows, [receipt])
    return {ident: item.brought for ident, item in judged.items.items()}


def judge_receipts(rows: Rows, waiting: Sequence[WaitingReceipt]) -> list[JudgedReceipt]:
    """Judges receipts of one session."""
    session, memory_count = waiting[0].session_seq, search.count_memories(rows)

    @cache
    def is_common(word: str) -> bool:
        holding = search.count_memories_with(rows, word)
        return holding >= COMMON_LEAST and holding > COMMON_SHARE * memory_count

    start = max(0, receipts.ordinal_at(rows, session, waiting[0].at) - BEFORE) if session else 0
    stream = turns.stream_turns(rows, session, after=start, limit=BEFORE + AFTER) if session else []
    parse = cache(parse_turn)
    judged: list[JudgedReceipt] = []
    for receipt in waiting:
        texts = {ident: text for ident, text in receipts.item_texts(rows, receipt.seq) if text not in ("", PURGED)}
        judged.append(_judge(receipt, texts, stream, parse, is_common))
    return judged
