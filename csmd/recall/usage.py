"""Decides whether a session used what it was shown.

An item counts as used if the assistant repeats one of its marks (a command, path, name or words) that appeared nowhere
else first. So turns are compared in order, and a mark that a prompt or a tool result mentions first is dropped. Receipts
are judged once their turn or session has ended. Use restarts an item's aging; it does not raise its confidence, because
using is not confirming.
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

#: The kind of mark that showed use, the surest first; "" if none did.
MarkKind = Literal["command", "path", "name", "words", ""]
MARK_KINDS: tuple[MarkKind, ...] = ("command", "path", "name")
#: Speaker of a turn: the assistant in words, the assistant in a tool call, anyone else.
Voice = Literal["said", "called", "other"]
VOICES: dict[str, Voice] = {"assistant": "said", "tool_call": "called"}
PROMPT_KINDS = ("user", "relayed", "command")

#: Least share of an item's distinctive words in one passage, and least number of them.
MIN_WORD_SHARE = 0.4
MIN_SHARED_WORDS = 2
#: A single shared word may recognise an item of at most this many words.
MAX_WORDS_FOR_ONE = 3
#: Characters of a turn that are compared: the rest of a longer one is a file or a log.
TURN_CHARACTERS = 20_000
#: Receipts in one step, all of one session.
MAX_RECEIPTS = 20
#: Turns that are read before and after the first receipt.
TURNS_BEFORE = 300
TURNS_AFTER = 600
#: Seconds until a turn is surely stored.
STORE_DELAY_S = 30
#: Seconds without a turn after which a prompt counts as answered, and a session as ended.
PROMPT_IDLE_S = 20 * 60
SESSION_IDLE_S = 6 * 3600
#: A word in more than this share of the memories, and in at least this many, is common: it identifies none.
COMMON_SHARE = 0.05
MIN_COMMON_MEMORIES = 5

_CODE = re.compile(r"`([^`\n]{2,120})`")
_PATH = re.compile(
    r"(?<![\w:/.-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w|\b[\w-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{0,5}\b"
)
_NAME = re.compile(
    r"(?<![\w-])(?:--[a-z][\w-]+|[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}\d+|[a-z]+-[a-z]+-[\w-]+)(?![\w-])"
)
#: A string of JSON that may be cut off, and whether it is a key.
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"(\s{0,3}:)?|$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ABBREVIATED = re.compile(r"(?:[a-z]\.)+[a-z]", re.IGNORECASE)


class ComparedTurn(NamedTuple):
    """A turn for comparison: its speaker, its text folded, and the stems of each of its passages."""

    voice: Voice
    folded: str
    passages: tuple[frozenset[str], ...]


@dataclass(slots=True)
class TrackedItem:
    """An item and the marks that no one else has mentioned yet.

    `words` maps stem to word; `size` is their original number. If the item was used, `used_mark` is the kind of mark that
    showed it and `matched_marks` the marks themselves, which are never stored.
    """

    marks: dict[str, MarkKind]
    words: dict[str, str]
    size: int
    used_mark: MarkKind = ""
    matched_marks: tuple[str, ...] = ()


def make_item(text: str) -> TrackedItem:
    """Makes an item with the marks by which its text can be recognised."""
    marks: dict[str, MarkKind] = {_fold(span): "command" for span in _CODE.findall(text) if " " in span.strip()}
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
    """Parses a turn for comparison; of a tool call its arguments without their keys, as one passage."""
    text = (_read_arguments(text) if voice == "called" else text)[:TURN_CHARACTERS]
    parts = text.splitlines() if voice == "said" else [text]
    passages = (frozenset(map(tokens.stem, tokens.content_words(part))) for part in parts)
    return ComparedTurn(voice, _fold(text), tuple(stems for stems in passages if stems))


def compare_turn(items: Iterable[TrackedItem], turn: ComparedTurn, is_common: Callable[[str], bool]) -> None:
    """Updates items by the next turn: the assistant's may show use, any other removes the marks that it mentions."""
    stems = frozenset[str]().union(*turn.passages)
    for item in items:
        if item.used_mark:
            continue
        if turn.voice != "other":
            item.used_mark, item.matched_marks = _find_use(item, turn, stems, is_common)
            continue
        item.marks = {mark: kind for mark, kind in item.marks.items() if not _mentions(turn.folded, mark, kind)}
        item.words = {stem: word for stem, word in item.words.items() if stem not in stems}


def _find_use(
    item: TrackedItem, turn: ComparedTurn, stems: frozenset[str], is_common: Callable[[str], bool]
) -> tuple[MarkKind, tuple[str, ...]]:
    """Returns (kind, marks) of the use that an assistant's turn shows; ("", ()) if none."""
    matched = [mark for mark in item.marks if _contains_mark(turn.folded, mark)]
    for kind in MARK_KINDS:
        if marks := tuple(mark for mark in matched if item.marks[mark] == kind):
            return kind, marks
    if item.words.keys().isdisjoint(stems):
        return "", ()
    distinctive = {stem for stem, word in item.words.items() if not is_common(word)}
    for passage in turn.passages:
        shared = distinctive & passage
        # In a tool call one word may suffice, since the call is short and acts on it; but one word left of a long item
        # proves nothing.
        is_short = len(shared) * MAX_WORDS_FOR_ONE >= item.size
        may_be_single = is_short and (turn.voice == "called" or shared == distinctive)
        is_enough = len(shared) >= MIN_SHARED_WORDS or may_be_single
        if shared and len(shared) >= MIN_WORD_SHARE * len(distinctive) and is_enough:
            return "words", tuple(sorted(item.words[stem] for stem in shared))
    return "", ()


def _contains_mark(folded: str, mark: str) -> bool:
    """Whether a text contains a mark as a whole; a path matches by its end, as it may be relative to another directory."""
    return mark in folded and re.search(rf"(?<![\w-]){re.escape(mark)}(?![\w-]|\.\w)", folded) is not None


def _mentions(folded: str, mark: str, kind: MarkKind) -> bool:
    """Whether a text mentions a mark, a path also by its file name alone."""
    return _contains_mark(folded, mark) or (kind == "path" and _contains_mark(folded, mark.rpartition("/")[2]))


def _fold(text: str) -> str:
    return display.squeeze(text).casefold()


def _read_arguments(call: str) -> str:
    """Returns the string values of a tool call's JSON, one per line; it may be cut off, so it is not parsed."""
    plain = {"n": "\n", "t": "\t", "r": "\n"}
    values = (text for text, key in _STRING.findall(call) if not key)
    return "\n".join(_ESCAPED.sub(lambda escape: plain.get(escape[1], escape[1]), text) for text in values)


class JudgedReceipt(NamedTuple):
    """A receipt, its items by id ({} if the assistant did not answer), and the time of first use by id."""

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
    """Tracks the items of a receipt through the turns of its session until the next prompt or summary."""
    items = {item_id: make_item(text) for item_id, text in texts.items()}
    has_begun = is_answered = False
    used_at: dict[str, str] = {}
    for turn in stream:
        has_begun = has_begun or (turn.at > receipt.at and turn.seq != receipt.prompt_seq)
        if turn.kind == "summary" and not has_begun:  # earlier turns are not in the context
            items = {item_id: make_item(text) for item_id, text in texts.items()}
        if has_begun and (turn.kind == "summary" or (receipt.event != "session_start" and turn.kind in PROMPT_KINDS)):
            break
        # Text from before the injection was already in the context, whoever wrote it.
        voice = VOICES.get(turn.kind, "other") if has_begun else "other"
        compare_turn(items.values(), parse(turn.text, voice), is_common)
        if voice != "other":
            is_answered = True
            used_at = {item_id: turn.at for item_id, item in items.items() if item.used_mark} | used_at
    return JudgedReceipt(receipt, items if is_answered else {}, used_at)


def judge_due_receipts(store: Store, *, answered: str, idle: str, start_idle: str) -> int:
    """Judges the next session's receipts that are due by these times (see `receipts.list_waiting`); returns their number."""
    waiting = store.read(
        lambda rows: receipts.list_waiting(
            rows, answered_before=answered, idle_before=idle, start_idle_before=start_idle, limit=MAX_RECEIPTS
        )
    )
    waiting = [receipt for receipt in waiting if receipt.session_id == waiting[0].session_id]
    if not waiting:
        return 0
    judged = store.read(lambda rows: judge_receipts(rows, waiting))

    def write(rows: Rows) -> None:
        for receipt, items, used_at in judged:
            uses = {item_id: (item.used_mark != "", item.used_mark) for item_id, item in items.items()}
            receipts.record_use(rows, receipt.seq, uses)
            for item_id, at in used_at.items():
                if (memory := memories.by_id(rows, item_id)) is not None:
                    remember.use(rows, memory, at=at)

    store.write(write)
    return len(waiting)


def find_use_marks(rows: Rows, receipt: WaitingReceipt) -> dict[str, tuple[str, ...]]:
    """Maps each item to the marks that show its use in the turns stored today; {} if the assistant did not answer."""
    (judged,) = judge_receipts(rows, [receipt])
    return {item_id: item.matched_marks for item_id, item in judged.items.items()}


def judge_receipts(rows: Rows, waiting: Sequence[WaitingReceipt]) -> list[JudgedReceipt]:
    """Judges receipts of one session."""
    session = waiting[0].session_seq
    memory_count = search.count_memories(rows)

    @cache
    def is_common(word: str) -> bool:
        count = search.count_memories_with(rows, word)
        return count >= MIN_COMMON_MEMORIES and count > COMMON_SHARE * memory_count

    stream: Sequence[StoredTurn] = []
    if session:
        start = max(0, receipts.find_ordinal_at(rows, session, waiting[0].at) - TURNS_BEFORE)
        stream = turns.read_stream_turns(rows, session, after=start, limit=TURNS_BEFORE + TURNS_AFTER)
    parse = cache(parse_turn)
    judged: list[JudgedReceipt] = []
    for receipt in waiting:
        texts = {
            item_id: text for item_id, text in receipts.read_item_texts(rows, receipt.seq) if text not in ("", PURGED)
        }
        judged.append(_judge(receipt, texts, stream, parse, is_common))
    return judged
