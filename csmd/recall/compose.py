"""Selects the lasting sentences of statements, and renders notes as a fenced text within a token budget."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from csmd.text.trimming import trim_courtesy

Bracket = Literal["FRESH", "MODERATE", "DEPLETED", "CRITICAL"]


class Policy(NamedTuple):
    """A bracket: the share of the window below which it applies, and the share of the user's limits that it allows.

    `recall` is for a prompt, `restored` for the start after a compaction of a context in this bracket.
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
    """Returns the bracket of a context with `used` of `window` tokens; FRESH if the window is unknown."""
    share = used / window if window > 0 else 0.0
    return next(bracket for bracket, policy in POLICY.items() if share < policy.below)


def policy_after_compaction(used: int, window: int) -> Policy:
    """Returns the policy after a compaction of a context with `used` tokens; if that is 0, unknown, it counts as full."""
    return POLICY[bracket_of(used, window) if used else "CRITICAL"]


#: Fewest content words of a shortened statement.
MIN_WORDS = 4
#: Fewest content words of a sentence in a passage: "Good." and "Now I see." say nothing.
MIN_SENTENCE_WORDS = 2
#: Two options: nothing was decided.
_UNDECIDED = re.compile(r"\boption (?:\d|[a-c])\b.{0,400}\boption (?:\d|[a-c])\b", re.IGNORECASE)


#: Origins of texts that were written to be clear by themselves.
SELF_CONTAINED_ORIGINS = frozenset({"inferred", "curated"})


def durable_text(memory: Memory) -> str:
    """Returns the lasting sentences of a memory on one line; "" if there are none.

    Pinned memories, and those that csmd or a model composed, stay whole. An assistant's advice stays after the sentence that
    it refers to.
    """
    text = display.squeeze(memory.text)
    if memory.pinned or memory.origin in SELF_CONTAINED_ORIGINS:
        return text
    return _durable_text(text, memory.authority == "assistant" and memory.origin == "stated")


def standalone_text(memory: Memory) -> str:
    """Returns the lasting text of a memory from the first sentence that is clear by itself; "" if there is none."""
    text = durable_text(memory)
    if memory.pinned or memory.scene or memory.origin in SELF_CONTAINED_ORIGINS:
        return text
    speaker: Speaker = "user" if memory.is_personal else "assistant"
    text = _drop_references(text) if memory.is_personal else text
    return "" if refers_back(parse(trim_courtesy(text))) or is_passing(text, speaker) else text


def _drop_references(text: str) -> str:
    """Drops the first sentences of a text that refer back to its conversation, if the next goes on about something else."""
    sentences = prose.split_sentences(text)
    own = list(itertools.dropwhile(lambda sentence: refers_back(parse(trim_courtesy(sentence))), sentences))
    goes_on = bool(own) and (parse(own[0]).is_continuation or opens("hangs_on", "en", own[0]))
    return text if len(own) == len(sentences) or not own or goes_on else " ".join(own)


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
    """Whether a sentence gives advice on the subject of the sentence before it."""
    if is_passing(sentence, "assistant"):
        return False
    return not set(map(stem, content_words(before))).isdisjoint(map(stem, content_words(sentence)))


def _without_errand(sentence: str) -> str:
    """Drops a leading errand: "Push it first: only the default branch counts"."""
    errand, _, rest = sentence.partition(": ")
    is_lead = errand[-1:].isalnum() and " " in errand and ";" not in errand
    if not is_lead or parse(errand).kind != "orders" or states_something(errand):
        return sentence
    return rest if len(content_words(rest)) >= MIN_WORDS and states_something(rest) else sentence


def has_statement(passage: str) -> bool:
    """Whether a passage states anything besides questions and orders."""
    return any(
        (len(content_words(sentence)) >= MIN_SENTENCE_WORDS or language_of(sentence) in UNSPACED)
        and not is_passing(sentence, "assistant")
        for sentence in prose.split_sentences(passage)
    )


def drop_refused(passage: str) -> str:
    """Drops the passing sentences of an assistant's passage, unless all are passing."""
    sentences = prose.split_sentences(passage)
    return " ".join(sentence for sentence in sentences if not is_passing(sentence, "assistant")) or passage


def shorten(text: str, limit: int) -> str:
    """Shortens a text to `limit` characters: to whole sentences if these fill at least half of it."""
    if len(text) <= limit:
        return text
    joined = itertools.accumulate(prose.split_sentences(text), lambda before, sentence: f"{before} {sentence}".strip())
    fitting = list(itertools.takewhile(lambda start: len(start) <= limit, joined))
    return fitting[-1] if fitting and len(fitting[-1]) >= limit // 2 else display.cut(text, limit)


#: Most characters of a note.
MAX_NOTE_CHARACTERS = 400


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
    """Makes a note of a memory, in the words of `text` if given; its tail has author, scene, date, edits and id."""
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
    """Renders a note on one line; its text can neither close a fence nor begin a line."""
    body = display.cut(display.squeeze(display.defuse(note.text)), MAX_NOTE_CHARACTERS)
    tail = display.squeeze(display.defuse(note.tail))
    return f"- {body} ({tail})" if tail else f"- {body}"


def fence(tag: str, about: str, blocks: Sequence[Block], *, max_tokens: int) -> Brief:
    """Renders the blocks inside `<tag note="about">`, trimmed to `max_tokens` and the host's limit."""
    kept = [list(block.notes) for block in blocks]
    total = sum(map(len, kept))
    trim_order = sorted(range(len(blocks)), key=lambda index: (blocks[index].weight, -index))
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
        next(kept[index] for index in trim_order if kept[index]).pop()
    return Brief(text="", tokens=0, items=(), cut=total)


def join_briefs(*briefs: Brief) -> Brief:
    """Joins briefs, one below the other."""
    text = "\n".join(brief.text for brief in briefs if brief.text)
    return Brief(
        text=text,
        tokens=display.estimate_tokens(text),
        items=tuple(item for brief in briefs for item in brief.items),
        degraded=tuple(sorted({reason for brief in briefs for reason in brief.degraded})),
        cut=sum(brief.cut for brief in briefs),
    )


def append_brief(brief: Brief, addition: Brief) -> Brief:
    """Joins an addition to a brief; if it is empty or too long for the host, counts its notes as cut."""
    joined = join_briefs(brief, addition)
    if addition.text and display.count_utf16_units(joined.text) <= ANSWER_LIMIT_UNITS:
        return joined
    return replace(brief, cut=brief.cut + addition.cut + len(addition.items))
