"""Judges receipts whose time is over: what the assistant did with what it was told, by the turns that are stored.

What was used begins its age again; it is no confirmation, for nobody said it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from csmd.believe import stage as believe
from csmd.model import StoredTurn
from csmd.recall import used
from csmd.recall.used import Followed, Verdict
from csmd.store import journal, memories, search, uses
from csmd.store.core import Store
from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows
from csmd.store.uses import Waiting

#: Receipts in one step, all of one session; and how many turns before and after are looked at.
BATCH, BEFORE, AFTER = 20, 300, 600
#: What was said reaches the store a moment after it is said. With nothing more said for so long a prompt has been
#: answered, and a session has ended.
LAG_S, STILL_S, OVER_S = 30, 20 * 60, 6 * 3600
#: A word that more memories have than this share of them, and so many at least, says nothing of one.
COMMON_SHARE, COMMON_LEAST = 0.05, 5

PROMPTS = ("user", "relayed", "command")
VOICES: dict[str, used.Voice] = {"assistant": "said", "tool_call": "called"}


@dataclass(slots=True)
class _Followed:
    """A receipt with what it told, followed from where it was told to where its time is over."""

    receipt: Waiting
    texts: dict[str, str]
    items: dict[str, Followed] = field(default_factory=dict)
    at: dict[str, str] = field(default_factory=dict)
    """When each was used."""
    begun: bool = False
    over: bool = False
    heard: bool = False
    """Whether the assistant said anything meanwhile."""


def step(store: Store, *, answered: str, still: str, over: str) -> int:
    """Judges the next receipts of one session whose time is over (as `uses.waiting` has it); how many, 0 for none."""
    found = store.read(lambda rows: waiting(rows, answered=answered, still=still, over=over))
    if not found:
        return 0
    verdicts = store.read(lambda rows: judged(rows, found))

    def write(rows: Rows) -> None:
        for one in verdicts:
            uses.note(rows, one.receipt.seq, {ident: (v.used, v.by) for ident, v in said_of(one).items()})
            for ident, at in one.at.items():
                if (memory := memories.by_id(rows, ident)) is not None:
                    believe.use(rows, memory, at=at)

    store.write(write)
    return len(verdicts)


def waiting(rows: Rows, *, answered: str, still: str, over: str) -> list[Waiting]:
    """The receipts of one session whose time is over."""
    found = uses.waiting(rows, answered=answered, still=still, over=over, limit=BATCH)
    return [one for one in found if one.session_id == found[0].session_id]


def said_of(one: _Followed) -> dict[str, Verdict]:
    """The verdicts on a receipt's items; none where the assistant said nothing, or on what is gone."""
    return {ident: item.verdict for ident, item in one.items.items()} if one.heard else {}


def judged(rows: Rows, receipts: Sequence[Waiting]) -> list[_Followed]:
    """Follows what receipts of one session told through its turns."""
    told = [
        _Followed(one, {ident: said for ident, said in uses.items(rows, one.seq) if said not in ("", PURGED)})
        for one in receipts
    ]
    for one in told:
        _begin(one)
    session = receipts[0].session_seq
    if not session:
        return told
    first = uses.around(rows, session, receipts[0].at)
    start = max(0, first - BEFORE)
    is_common = _rarity(rows)
    for turn in journal.stream_turns(rows, session, after=start, limit=BEFORE + AFTER):
        _hear(told, turn, is_common)
        if all(one.over for one in told):
            break
    return told


def _begin(one: _Followed) -> None:
    """Follows what was told from here on: after a compaction nothing that was said before is in the context."""
    one.items = {ident: used.followed(said) for ident, said in one.texts.items()}


def _hear(told: Sequence[_Followed], turn: StoredTurn, is_common: Callable[[str], bool]) -> None:
    voice = VOICES.get(turn.kind, "other")
    piece = used.piece(turn.text, voice)
    for one in told:
        _place(one, turn)
        if one.over:
            continue
        if one.begun and voice != "other":
            one.heard = True
            was = {ident for ident, item in one.items.items() if item.verdict.used}
            used.follow(one.items.values(), piece, is_common)
            now = {ident for ident, item in one.items.items() if item.verdict.used}
            one.at.update((ident, turn.at) for ident in now - was)
        else:  # before it was told, whoever said it, the assistant had it already
            used.follow(one.items.values(), piece if voice == "other" else used.piece(turn.text, "other"), is_common)


def _place(one: _Followed, turn: StoredTurn) -> None:
    """Where a turn stands to a receipt: before what was told, after it, or when its time is over."""
    receipt = one.receipt
    if not one.begun:
        one.begun = turn.at > receipt.at and turn.seq != receipt.prompt_seq
        if turn.kind == "summary" and not one.begun:
            _begin(one)
    if one.begun:
        ends = turn.kind == "summary" or (receipt.event != "session_start" and turn.kind in PROMPTS)
        one.over = one.over or ends


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
