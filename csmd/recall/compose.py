"""What of a statement is worth showing, and notes fenced within a token budget, by how full the context is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from csmd.cache import cached
from csmd.extraction import refusals
from csmd.hosts.claude.hooks import ANSWER_LIMIT_UNITS
from csmd.text import display, prose
from csmd.text.tokens import content_words, stem
from csmd.values import Brief, BriefItem, Memory

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
    """The policy after a compaction that found the context so full; where nobody knows, it was full."""
    return POLICY[bracket_of(used, window) if used else "CRITICAL"]


#: Least number of content words that tell something.
LEAST_WORDS = 4
#: Least number of content words of a sentence in a passage: "Good." and "Now I see." say nothing.
LEAST_SENTENCE = 2
#: Longest remark in brackets behind a question.
REMARK = 400
#: What may come before the word that counts.
_LEAD = r"^\W*(?:(?:ok|okay|so|and|also|now|then|but|yes|yeah|no|well|please|hmm|right|alright|just|maybe)\b\W*){0,4}"
_ASKS = re.compile(
    rf"{_LEAD}(?:(?:can|could|would|will|should|shall|may|might)(?:n['’]t)? (?:you|we|i)|why|how come|do you|are you|did you)\b"
    r"|\b(?:can|could|would|will) you (?!not\b)\w+|\bi(?:['’]d| would) like (?:you |us )?to (?:update|add|change|have you)\b",
    re.IGNORECASE,
)
#: Verbs of what things of a kind do by themselves, or are done with, whenever.
_STATIVE = (
    r"apply|belong|come|contain|cost|depend|end|expire|fail|follow|get|go|happen|keep|land|live|need|pass|point|require|return"
    r"|run|sit|start|stay|take|use|wait|work"
)
#: Work for the moment: the verb that a sentence begins with, unless it says when it always holds.
_ERRAND = re.compile(
    rf"{_LEAD}(?:consider|let['’]?s (?:also |now |first )?(?:add|adjust|check|continue|create|discuss|do|fix|look|make|see|start|try|update|write)"
    r"|add|adjust|change|check|clean up|commit|continue|create|delete|do|document|ensure|explain|extend|find|fix|give|go|handle|implement"
    r"|integrate|look|mention|merge|move|push|put|read|remote|remove|rename|replace|revert|review|run|see|set|show|take"
    r"|tell|try|update|write)\b(?!\w*[:=/]|-\w)",
    re.IGNORECASE,
)
#: The same word as a noun: a finite verb that agrees with it says something of it. Pronouns, articles and conjunctions come
#: between a verb and its object instead; and what is checked, seen or told may be a clause.
_NAMES = re.compile(
    rf"{_LEAD}(?!(?:check|consider|document|ensure|explain|find|look|make|mention|see|show|tell|try)\b)[a-z]+ "
    r"(?:(?!(?:the|an?|this|that|these|those|it|its|my|your|our|their|all|any|every|each|both|some|no|me|us|them|him|her|you|we"
    r"|they|i|and|or|but|so|if|when|where|which|who|what|how|why|because|in|on|at|to|of|for|from|with|by|as|into|until|unless)\b)"
    r"[\w.-]{1,30} ){0,3}?(?:(?:to|for|of) [\w.-]{1,30} (?=\w+s\b|must\b|should\b|are\b))?"
    r"(?:(?:is|are|was|were|has|have|had|must|should|shall|can|cannot|may|will|do|does|did)(?:n['’]t)?\b"
    rf"|(?<=[a-rt-z0-9] )(?:{_STATIVE})(?:e?s)\b|(?<=s )(?:{_STATIVE})\b)",
    re.IGNORECASE,
)
#: A rule in the imperative: how things of a kind are done. What has an article or a demonstrative is one thing at hand, and
#: "for" it is a piece of work.
_RULE = re.compile(
    rf"{_LEAD}(?!.{{0,300}}\b(?:the|this|that|these|those|it|now|again|once)\b|.{{0,300}}\.\w{{1,4}}:\d)(?:commit|give|handle|push|put|run|set|show|take|write) (?:[\w.`-]{{1,30}} ){{0,2}}?[a-z][\w.-]{{0,30}}(?<!s)s "
    r"(?!for\b|which\b|and\b|to see\b)[`\w]",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\b(?:always|never|every|each|whenever|any|before|after|prefer|unless|only (?:when|if|after))\b", re.IGNORECASE
)
#: A question about how something is; a request for work says what was wanted.
_QUESTION = re.compile(
    rf"{_LEAD}(?:what|which|who|whose|where|when|why|how|is|are|was|were|do|does|did|has|have|had)\b.*\?[\"'”’)*_\]`]*\W*$",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE_BREAK = re.compile(r"(?<=[.!?:])\s+")
#: A sentence that needs the one before it.
_DEPENDS = re.compile(
    r"^\W*(?:like|so|but|and|also|then|or|this|that|it|these|those|they|there|because|which|if so|otherwise|maybe|e\.g)\b",
    re.IGNORECASE,
)
#: A sentence about something that was named before it: it is unclear to anyone who was not there.
_UNCLEAR = re.compile(
    r"\W*(?:(?:and|but|so|also|ok|yes|no|similarly|maybe)\b,? )*(?:this|that|it|these|those|they|(?:the|your) (?:first|second|last|other|same) \w+"
    r"|the (?:bug|change|check|class|code|command|comment|condition|error|file|fix|function|issue|method|parameter|problem|regex|script|test|value|variable)s?(?: here)?)"
    r" (?:is|was|are|were|has|have|had|does|do|did|can|could|should|would|will|must|may|might|needs?|now|only|also|looks?|seems?|means?|happens?|occurs?)(?:n't)?\b",
    re.IGNORECASE,
)
#: Two options: nothing was decided.
_UNDECIDED = re.compile(r"\boption (?:\d|[a-c])\b.{0,400}\boption (?:\d|[a-c])\b", re.IGNORECASE)
#: A character of a program's output.
_PRINTED = re.compile(r"[⎿│├└❯⏺]")


def durable_text(memory: Memory) -> str:
    """The sentences of a memory that tell something, on one line; "" where none does.

    What a person pinned, and what csmd counted over sessions, stays as it is; what an assistant says is to be done about
    something stays behind that.
    """
    text = display.squeeze(memory.text)
    if memory.pinned or memory.origin == "inferred":
        return text
    return _durable_text(text, memory.authority == "assistant" and memory.origin == "stated")


def standalone_text(memory: Memory) -> str:
    """The lasting text of a memory that is clear to somebody who was not there; "" of one that refers to what is left out."""
    text = durable_text(memory)
    if memory.pinned or memory.scene or memory.origin == "inferred":
        return text
    speaker: refusals.Speaker = "user" if memory.authority == "user" else "assistant"
    return "" if _UNCLEAR.match(text) or refusals.refusal(text, speaker) else text


@cached(4096)
def _durable_text(text: str, by_assistant: bool) -> str:
    if _PRINTED.search(text) or _UNDECIDED.search(text):
        return ""
    kept: list[str] = []
    is_cut = False
    for sentence in prose.sentences(text):
        advises = by_assistant and bool(kept) and _advises(sentence, kept[-1])
        lasting = sentence if advises else _without_errand(sentence)
        if not (advises or states_something(lasting)):
            is_cut = True
        elif kept or not is_cut or not _DEPENDS.match(lasting):
            kept.append(lasting)
    rest = " ".join(kept)
    return rest if not is_cut or len(content_words(rest)) >= LEAST_WORDS else ""


def _advises(sentence: str, before: str) -> bool:
    """Whether a sentence says what is to be done about that which the one before it names."""
    if _is_question(sentence) or refusals.refusal(sentence, "assistant"):
        return False
    return not set(map(stem, content_words(before))).isdisjoint(map(stem, content_words(sentence)))


def _is_question(sentence: str) -> bool:
    """Whether a sentence asks, also where a remark in brackets follows the question."""
    sentence = sentence.rstrip()
    start = sentence.rfind("(") if sentence.endswith(")") else -1
    if start > 0 and len(sentence) - start <= REMARK and sentence[:start].rstrip().endswith("?"):
        return True
    last = next((at for at in range(len(sentence) - 1, -1, -1) if sentence[at].isalnum()), -1)
    return "?" in sentence[last + 1 :] or _ASKS.search(sentence) is not None


def _without_errand(sentence: str) -> str:
    """A sentence without the errand that leads into what it tells: "Push it first: only the default branch counts"."""
    errand, _, rest = sentence.partition(": ")
    if states_something(sentence) or _is_question(sentence) or len(content_words(rest)) < LEAST_WORDS:
        return sentence
    is_lead = errand[-1:].isalnum() and ";" not in errand
    return rest if is_lead and states_something(rest) else sentence


def states_something(sentence: str) -> bool:
    """Whether a sentence is neither a question nor an errand."""
    if _is_question(sentence):
        return False
    return not _ERRAND.match(sentence) or any(form.search(sentence) for form in (_GENERAL, _NAMES, _RULE))


def has_statement(passage: str) -> bool:
    """Whether a passage of earlier talk says anything besides questions, orders and what is never shown."""
    return any(
        len(content_words(sentence)) >= LEAST_SENTENCE
        and not _QUESTION.match(sentence)
        and refusals.refusal(sentence, "assistant") in ("", "question")
        for sentence in _SENTENCE_BREAK.split(passage)
    )


def drop_refused(passage: str) -> str:
    """An assistant's passage without the sentences that state nothing that lasts; whole where nothing else is left."""
    sentences = prose.sentences(passage)
    return " ".join(sentence for sentence in sentences if not refusals.refusal(sentence, "assistant")) or passage


def shorten(text: str, limit: int) -> str:
    """A text within `limit` characters: as many whole sentences as fit, where they are at least half of that."""
    if len(text) <= limit:
        return text
    joined = itertools.accumulate(prose.sentences(text), lambda before, sentence: f"{before} {sentence}".strip())
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
    """A memory as a note, as it is or in the words of `text`: its scene, its date, whether its code was edited since, its id."""
    source = (memory.scene, memory.confirmed_at[:10], "its code edited since" * memory.is_edited, memory.id)
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
        if tokens <= max_tokens and display.utf16_units(text) <= ANSWER_LIMIT_UNITS:
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
