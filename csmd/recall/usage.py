"""Whether a session used what it was told.

What somebody else said first proves nothing: a word of the prompt, of what was in the context before, of a tool's
result. So a told thing is followed turn by turn, and loses every mark that another's turn brings before the assistant's.
Receipts whose time is over are judged by the turns that are stored; what was used begins its age again, and is no
surer, for nobody said it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from csmd.memory import remember
from csmd.model import StoredTurn
from csmd.privacy.fingerprints import PURGED
from csmd.store import memories, receipts, search, turns
from csmd.store.core import Store
from csmd.store.receipts import Waiting
from csmd.store.sqlite import Rows
from csmd.text import display, similarity, tokens

#: By which kind of mark use is told, the surest first; "" where it is not.
By = Literal["command", "path", "name", "words", ""]
KINDS: tuple[By, ...] = ("command", "path", "name")
#: Who says a piece: the assistant in words, the assistant in a call of a tool, anybody else.
Voice = Literal["said", "called", "other"]

#: So much of what a told thing has of its own must stand in one passage: two words of it, or one of a text of three.
SHARE, FEW, SHORT = 0.4, 2, 3
#: Of one turn so many characters are looked at: the rest of a longer one is a file or a log.
LOOKED_AT = 20_000

_CODE = re.compile(r"`([^`\n]{2,120})`")
_PATH = re.compile(
    r"(?<![\w:/.-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w|\b[\w-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{0,5}\b"
)
_NAME = re.compile(
    r"(?<![\w-])(?:--[a-z][\w-]+|[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}\d+|[a-z]+-[a-z]+-[\w-]+)(?![\w-])"
)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"(\s{0,3}:)?|$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ABBREVIATED = re.compile(r"(?:[a-z]\.)+[a-z]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Piece:
    """A turn as it is compared: who says it, its text folded, and the stems of each of its passages."""

    voice: Voice
    folded: str
    passages: tuple[frozenset[str], ...]

    @property
    def stems(self) -> frozenset[str]:
        """The stems of all of it."""
        return frozenset().union(*self.passages)


@dataclass(slots=True)
class Followed:
    """A told thing with the marks that nobody else has brought yet; `words` are stems and a word of each, once `size`.

    Once it was used, `by` is the kind of mark that told it and `brought` the marks themselves (which are never stored).
    """

    marks: dict[str, By]
    words: dict[str, str]
    size: int
    by: By = ""
    brought: tuple[str, ...] = ()


def follow_text(said: str) -> Followed:
    """A text that was told, with what it can be known by."""
    marks: dict[str, By] = {}
    for span in _CODE.findall(said):
        if " " in span.strip():
            marks[_folded(span)] = "command"
    for path in _PATH.findall(said):
        if not _ABBREVIATED.fullmatch(path):
            whole = path.casefold().removeprefix("./")
            marks.setdefault(whole, "path")
            marks.setdefault("/".join(whole.split("/")[-2:]), "path")
    for name in _NAME.findall(said):
        marks.setdefault(name.casefold(), "name")
    rest = _NAME.sub(" ", _PATH.sub(" ", _CODE.sub(_unless_a_word, said)))
    words: dict[str, str] = {}
    for word in tokens.content_words(rest):
        if not similarity.turns_round(word):
            words.setdefault(tokens.stem(word), word)
    return Followed(marks=marks, words=words, size=len(words))


def _unless_a_word(span: re.Match[str]) -> str:
    return " " if " " in span[1].strip() else span[1]


def make_piece(said: str, voice: Voice) -> Piece:
    """A turn for comparing; of a call what its arguments say, in one passage, for its keys are the tool's."""
    said = _arguments(said) if voice == "called" else said
    said = said[:LOOKED_AT]
    parts = said.splitlines() if voice == "said" else [said]
    passages = (frozenset(map(tokens.stem, tokens.content_words(part))) for part in parts)
    return Piece(voice, _folded(said), tuple(one for one in passages if one))


def compare_turn(told: Iterable[Followed], piece: Piece, is_common: Callable[[str], bool]) -> None:
    """Holds the told things against the next turn: the assistant's may show use, another's takes marks away."""
    stems = piece.stems
    for item in told:
        if item.by:
            continue
        if piece.voice == "other":
            item.marks = {mark: by for mark, by in item.marks.items() if not _brings(piece.folded, mark, by)}
            item.words = {stem: word for stem, word in item.words.items() if stem not in stems}
        else:
            item.by, item.brought = _use(item, piece, stems, is_common)


def _use(
    item: Followed, piece: Piece, stems: frozenset[str], is_common: Callable[[str], bool]
) -> tuple[By, tuple[str, ...]]:
    """(by which kind of mark a turn of the assistant's shows use, these marks); "" for none."""
    found = [mark for mark in item.marks if _holds(piece.folded, mark)]
    for by in KINDS:
        if some := tuple(mark for mark in found if item.marks[mark] == by):
            return by, some
    if not item.words.keys() & stems:
        return "", ()
    own = {stem for stem, word in item.words.items() if not is_common(word)}
    for passage in piece.passages:
        there = own & passage
        # A call says little, and what it says is done; but the last word that is left of a long text is nobody's.
        alone = (piece.voice == "called" or there == own) and len(there) * SHORT >= item.size
        if there and len(there) >= SHARE * len(own) and (len(there) >= FEW or alone):
            return "words", tuple(sorted(item.words[stem] for stem in there))
    return "", ()


def _holds(folded: str, mark: str) -> bool:
    """Whether a text holds a mark as a whole; of a path its end suffices, as others begin it elsewhere."""
    if mark not in folded:
        return False
    return re.search(rf"(?<![\w-]){re.escape(mark)}(?![\w-]|\.\w)", folded) is not None


def _brings(folded: str, mark: str, by: By) -> bool:
    """Whether a text says a mark, of a path at least the file's name: who asks about a file needs not say where it is."""
    return _holds(folded, mark) or (by == "path" and _holds(folded, mark.rpartition("/")[2]))


def _folded(said: str) -> str:
    return display.squeeze(said).casefold()


def _arguments(call: str) -> str:
    """The strings of a call's input but its keys, a line each; it may be cut in its middle and is no JSON then."""
    return "\n".join(_ESCAPED.sub(_plain, said) for said, key in _STRING.findall(call) if not key)


def _plain(escape: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\n"}.get(escape[1], escape[1])


# --- over the store


#: Receipts in one step, all of one session; and how many turns before and after are looked at.
BATCH, BEFORE, AFTER = 20, 300, 600
#: What was said reaches the store a moment after it is said. With nothing more said for so long a prompt has been
#: answered, and a session has ended.
LAG_S, STILL_S, OVER_S = 30, 20 * 60, 6 * 3600
#: A word that more memories have than this share of them, and so many at least, says nothing of one.
COMMON_SHARE, COMMON_LEAST = 0.05, 5

PROMPTS = ("user", "relayed", "command")
VOICES: dict[str, Voice] = {"assistant": "said", "tool_call": "called"}


class _Told:
    """A receipt with what it told, followed from where it was told to where its time is over."""

    def __init__(self, receipt: Waiting, texts: dict[str, str]) -> None:
        self.receipt = receipt
        self.items: dict[str, Followed] = {}
        self.used_at: dict[str, str] = {}
        self.is_over = False
        self.is_heard = False
        """Whether the assistant said anything meanwhile."""
        self._has_begun = False
        self._texts = texts
        self._begin()

    def _begin(self) -> None:
        """Follows what was told from here on: after a compaction nothing that was said before is in the context."""
        self.items = {ident: follow_text(said) for ident, said in self._texts.items()}

    def hear(self, turn: StoredTurn, heard: Piece, is_common: Callable[[str], bool]) -> None:
        """Takes in the next turn of the session."""
        self._place(turn)
        if self.is_over:
            return
        if not self._has_begun or heard.voice == "other":
            # Before it was told, whoever said it, the assistant had it already.
            compare_turn(
                self.items.values(), heard if heard.voice == "other" else make_piece(turn.text, "other"), is_common
            )
            return
        self.is_heard = True
        compare_turn(self.items.values(), heard, is_common)
        for ident, item in self.items.items():
            if item.by:
                self.used_at.setdefault(ident, turn.at)

    def _place(self, turn: StoredTurn) -> None:
        """Where a turn stands to the receipt: before what was told, after it, or when its time is over."""
        if not self._has_begun:
            self._has_begun = turn.at > self.receipt.at and turn.seq != self.receipt.prompt_seq
            if turn.kind == "summary" and not self._has_begun:
                self._begin()
        if self._has_begun:
            ends = turn.kind == "summary" or (self.receipt.event != "session_start" and turn.kind in PROMPTS)
            self.is_over = self.is_over or ends


def step(store: Store, *, answered: str, still: str, over: str) -> int:
    """Judges the next receipts of one session whose time is over (as `receipts.waiting` has it); how many, 0 for none."""
    found = store.read(lambda rows: receipts.waiting(rows, answered=answered, still=still, over=over, limit=BATCH))
    found = [one for one in found if one.session_id == found[0].session_id]
    if not found:
        return 0
    judged_now = store.read(lambda rows: judge_receipts(rows, found))

    def write(rows: Rows) -> None:
        for told in judged_now:
            items = told.items if told.is_heard else {}
            receipts.note_use(rows, told.receipt.seq, {ident: (bool(one.by), one.by) for ident, one in items.items()})
            for ident, at in told.used_at.items():
                if (memory := memories.by_id(rows, ident)) is not None:
                    remember.use(rows, memory, at=at)

    store.write(write)
    return len(found)


def marks_of(rows: Rows, receipt: Waiting) -> dict[str, tuple[str, ...]]:
    """Item -> by which marks its use shows, of a receipt as the turns stored today tell; none where the assistant said nothing."""
    return {
        ident: item.brought
        for told in judge_receipts(rows, [receipt])
        if told.is_heard
        for ident, item in told.items.items()
    }


def judge_receipts(rows: Rows, waiting: Sequence[Waiting]) -> list[_Told]:
    """Follows what receipts of one session told through its turns."""
    told = [
        _Told(one, {ident: said for ident, said in receipts.item_texts(rows, one.seq) if said not in ("", PURGED)})
        for one in waiting
    ]
    session = waiting[0].session_seq
    if not session:
        return told
    start = max(0, receipts.ordinal_at(rows, session, waiting[0].at) - BEFORE)
    is_common = _rarity(rows)
    for turn in turns.stream_turns(rows, session, after=start, limit=BEFORE + AFTER):
        heard = make_piece(turn.text, VOICES.get(turn.kind, "other"))
        for one in told:
            one.hear(turn, heard, is_common)
        if all(one.is_over for one in told):
            break
    return told


def _rarity(rows: Rows) -> Callable[[str], bool]:
    """Whether a word is common among the memories; each asked once."""
    total = search.memory_count(rows)
    known: dict[str, bool] = {}

    def is_common(word: str) -> bool:
        if word not in known:
            holding = search.memories_with(rows, word)
            known[word] = holding >= COMMON_LEAST and holding > COMMON_SHARE * total
        return known[word]

    return is_common
