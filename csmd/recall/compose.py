"""What of a statement is worth showing, and notes fenced within a token budget, by how full the context is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from csmd.briefs import Brief, BriefItem
from csmd.cache import cached
from csmd.hosts.adapter import ANSWER_LIMIT_UNITS
from csmd.knowledge import Memory
from csmd.text import display, prose
from csmd.text.language import language_of
from csmd.text.sentence import Speaker, is_passing, opens, parse, refers_back, states_something
from csmd.text.sentence_words import UNSPACED
from csmd.text.tokens import content_words, stem

Bracket = Literal["FRESH", "MODERATE", "DEPLETED", "CRITICAL"]


class Policy(NamedTuple):
    """A bracket: below which share of the window it holds, and which share of the user's limits it allows.

    `recall` is for a prompt, `restored` for what follows a compaction that found the context in this bracket.
    """

    below: float
    recall: float
    restored: float


#: In the order in which a context fills. The host compacts by itself soon after CRITICAL begins.
POLICY: dict[Bracket, Policy] = {
    "FRESH": Policy(below=0.30, recall=1.0, restored=0.5),
    "MODERATE": Policy(below=0.55, recall=1.0, restored=0.75),
    "DEPLETED": Policy(below=0.75, recall=0.7, restored=1.0),
    "CRITICAL": Policy(below=float("inf"), recall=0.35, restored=1.0),
}


def bracket_of(used: int, window: int) -> Bracket:
    """The bracket of a context in which `used` of `window` tokens are taken; FRESH where the window is unknown."""
    share = used / window if window > 0 else 0.0
    return next(bracket for bracket, policy in POLICY.items() if share < policy.below)


def policy_after_compaction(used: int, window: int) -> Policy:
    """The policy after a compaction of a context that was this full; if that is unknown, it counts as full."""
    return POLICY[bracket_of(used, window) if used else "CRITICAL"]


#: Least number of content words that tell something.
MIN_WORDS = 4
#: Least number of content words of a sentence in a passage: "Good." and "Now I see." say nothing.
MIN_SENTENCE = 2
#: Two options: nothing was decided.
_UNDECIDED = re.compile(r"\boption (?:\d|[a-c])\b.{0,400}\boption (?:\d|[a-c])\b", re.IGNORECASE)


#: Origins of what was written to stand alone.
WHOLE = frozenset({"inferred", "curated"})


def durable_text(memory: Memory) -> str:
    """The sentences of a memory that tell something, on one line; "" where none does.

    What a person pinned, what csmd counted over sessions and what a model wrote stays as it is; what an assistant says is to be done about
    something stays behind that.
    """
    text = display.squeeze(memory.text)
    if memory.pinned or memory.origin in WHOLE:
        return text
    return _durable_text(text, memory.authority == "assistant" and memory.origin == "stated")


def standalone_text(memory: Memory) -> str:
    """The lasting text of a memory that is clear without its conversation; "" for one that refers to what is left out."""
    text = durable_text(memory)
    if memory.pinned or memory.scene or memory.origin in WHOLE:
        return text
    speaker: Speaker = "user" if memory.is_personal else "assistant"
    return "" if refers_back(parse(text)) or is_passing(text, speaker) else text


@cached(16_384)  # a memory stands on up to four pages, which are built one after the other
def _durable_text(text: str, by_assistant: bool) -> str:
    if _UNDECIDED.search(text):
        return ""
    kept: list[str] = []
    is_cut = False
    for sentence in prose.split_sentences(text):
        advises = by_assistant and bool(kept) and _advises(sentence, kept[-1])
        lasting = sentence if advises else _without_errand(sentence)
        if not (advises or states_something(lasting)):
            is_cut = True
        elif kept or not is_cut or not (parse(lasting).is_continuation or opens("hangs_on", "en", lasting)):
            kept.append(lasting)
    rest = " ".join(kept)
    return rest if not is_cut or len(content_words(rest)) >= MIN_WORDS else ""


def _advises(sentence: str, before: str) -> bool:
    """Whether a sentence says what is to be done about that which the one before it names."""
    if is_passing(sentence, "assistant"):
        return False
    return not set(map(stem, content_words(before))).isdisjoint(map(stem, content_words(sentence)))


def _without_errand(sentence: str) -> str:
    """A sentence without the errand that leads into what it tells: "Push it first: only the default branch counts"."""
    errand, _, rest = sentence.partition(": ")
    is_lead = errand[-1:].isalnum() and " " in errand and ";" not in errand
    if not is_lead or parse(errand).kind != "orders" or states_something(errand):
        return sentence
    return rest if len(content_words(rest)) >= MIN_WORDS and states_something(rest) else sentence


def has_statement(passage: str) -> bool:
    """Whether a passage of earlier talk says anything besides questions, orders and what is never shown."""
    return any(
        (len(content_words(sentence)) >= MIN_SENTENCE or language_of(sentence) in UNSPACED)
        and not is_passing(sentence, "assistant")
        for sentence in prose.split_sentences(passage)
    )


def drop_refused(passage: str) -> str:
    """An assistant's passage without the sentences that state nothing that lasts; whole where nothing else is left."""
    sentences = prose.split_sentences(passage)
    return " ".join(sentence for sentence in sentences if not is_passing(sentence, "assistant")) or passage


def shorten(text: str, limit: int) -> str:
    """A text within `limit` characters: as many whole sentences as fit, where they are at least half of that."""
    if len(text) <= limit:
        return text
    joined = itertools.accumulate(prose.split_sentences(text), lambda before, sentence: f"{before} {sentence}".strip())
    fitting = list(itertools.takewhile(lambda start: len(start) <= limit, joined))
    return fitting[-1] if fitting and len(fitting[-1]) >= limit // 2 else display.cut(text, limit)


#: Most characters of a note.
NOTE_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing to show, on one line; `tail` (its date, its id) is never cut.

    `id`, `score` and `reason` go into the receipt.
    """

    id: str
    text: str
    tail: str = ""
    score: float = 1.0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Notes under a heading ("" for none), in the order in which they are shown; the least `weight` is trimmed first."""

    heading: str
    notes: tuple[Note, ...]
    weight: float = 1.0


def memory_note(memory: Memory, *, score: float = 1.0, reason: str, text: str = "") -> Note:
    """A memory as a note, as it is or in the words of `text`: the colleague who said it, its scene, its date, whether its code was edited since, its id."""
    source = (
        memory.author and f"said by {memory.author}",
        memory.scene,
        display.day_of(memory.confirmed_at),
        "its code edited since" * memory.is_edited,
        memory.id,
    )
    tail = ", ".join(filter(None, source))
    return Note(id=memory.id, text=text or memory.text, tail=tail, score=score, reason=reason)


def render_note(note: Note) -> str:
    """A note as one line; nothing in it can close a fence or begin a line."""
    body = display.cut(display.squeeze(display.defuse(note.text)), NOTE_CHARACTERS)
    tail = display.squeeze(display.defuse(note.tail))
    return f"- {body} ({tail})" if tail else f"- {body}"


def fence(tag: str, about: str, blocks: Sequence[Block], *, max_tokens: int) -> Brief:
    """The blocks inside `<tag note="about">`, as much of them as `max_tokens` and the host's limit allow."""
    kept = [list(block.notes) for block in blocks]
    total = sum(map(len, kept))
    trimmed_first = sorted(range(len(blocks)), key=lambda place: (blocks[place].weight, -place))
    while any(kept):
        lines = [f'<{tag} note="{about}">']
        for block, notes in zip(blocks, kept, strict=True):
            lines += [f"{block.heading}:"] if block.heading and notes else []
            lines += map(render_note, notes)
        text = "\n".join([*lines, f"</{tag}>"])
        tokens = display.estimate_tokens(text)
        if tokens <= max_tokens and display.count_utf16_units(text) <= ANSWER_LIMIT_UNITS:
            shown = itertools.chain.from_iterable(kept)
            items = tuple(BriefItem(id=note.id, score=round(note.score, 4), reason=note.reason) for note in shown)
            return Brief(text=text, tokens=tokens, items=items, cut=total - len(items))
        next(kept[place] for place in trimmed_first if kept[place]).pop()
    return Brief(text="", tokens=0, items=(), cut=total)


def join_briefs(*briefs: Brief) -> Brief:
    """Briefs below each other as one."""
    text = "\n".join(brief.text for brief in briefs if brief.text)
    return Brief(
        text=text,
        tokens=display.estimate_tokens(text),
        items=tuple(item for brief in briefs for item in brief.items),
        degraded=tuple(sorted({reason for brief in briefs for reason in brief.degraded})),
        cut=sum(brief.cut for brief in briefs),
    )
