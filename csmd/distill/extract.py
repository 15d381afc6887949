"""Which units of an exchange are statements: weigh, choose, tell; pure.

An exchange is a prompt and the reply to it. The prompt is distilled at once; what its reply may add is weighed with
what was chosen from the prompt in view, so that an exchange gives one statement where one says it all. The choice
depends on nothing but the two texts: whenever they come, and however often, it is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from csmd.distill import (
    answering,
    classifier,
    features,
    listed,
    pointing,
    refused,
    resolve,
    ruled,
    saying,
    standing,
    telling,
    units,
    worth,
)
from csmd.distill.classify import Classification, weigh
from csmd.distill.features import Around, Features
from csmd.distill.refused import Speaker
from csmd.distill.saying import Saying
from csmd.distill.sources import Role, Source
from csmd.distill.units import Piece, Unit
from csmd.distill.worth import Worth
from csmd.model import PROMPTS, Authority, Statement, StoredTurn
from csmd.text import content_words, words

MAX_STATEMENTS = 3
#: From this many rows of prose a user's text is something pasted, and few of its sentences are the user's point.
DOCUMENT_ROWS = 14
#: What a user says with a cue this clear ("remember", "I prefer", "we use"), and this worth keeping by the tables, is a
#: statement however short it is; where it is short, less will do: the model was trained where people say much.
PLAIN_CLARITY, PLAIN_VALUE = 0.80, 0.70
SHORT_CLARITY, SHORT_VALUE, SHORT_WORDS = 0.72, 0.60, 8
#: Two units of which one has this share of its content words in common with the other say the same.
SAME = 0.3
#: A statement cites the other half of its exchange, too, when it has this share of its words from there.
CITES = {"prompt": 0.15, "reply": 0.05}
#: So many words of the assistant's, in their order, nobody says by chance or in answer to a question; and what is a quote.
QUOTED_WORDS, QUOTED_SHARE = 8, 0.6
#: What leans so is about what is before the eyes, which a prompt may name beside it.
POINTS = frozenset({"unseen", "unseen text"})
#: How much of the other half of an exchange is compared with, and of a prompt to tell how long it is.
COMPARED, PROMPT_CHARACTERS = 20_000, 3_000
#: What the work says in words: how many of its statements are told at most, and by which bar the first of them is. A commit is
#: a reply that was thought over, a plan is told at length; reports and summaries repeat what was said elsewhere.
WORKED: dict[Role, tuple[int, str]] = {
    "plan": (3, "midway"),
    "commit": (1, "reply"),
    "report": (2, "reply_too"),
    "summary": (2, "reply_too"),
}


class Chosen(NamedTuple):
    """A statement with the unit it was made of and its turn."""

    turn: StoredTurn
    unit: Unit
    statement: Statement


class Option(NamedTuple):
    """A unit that could be chosen: its features, and whether it is plainly a statement, whatever it is worth.

    One that `holds` says by itself what it is about: it may say "it" and "this" as people do. `pieces` are those of its
    turn, `apart` which of them are plainly statements of their own.
    """

    unit: Unit
    features: Features
    plain: bool
    holds: bool
    pieces: Sequence[Piece]
    apart: Sequence[bool]


def from_prompt(
    turn: StoredTurn, model: Worth | None = None, options: Sequence[Option] | None = None, *, before: str = ""
) -> list[Chosen]:
    """At most three statements of what somebody asked or told the assistant, best first; `options` spare the weighing.

    `before` is what the assistant said before it.
    """
    if turn.kind not in PROMPTS:
        return []
    model = model or worth.shipped()
    authority: Authority = "user" if turn.kind == "user" else "assistant"
    options = of_prompt(turn) if options is None else options
    rules = _rules(turn, before, authority)
    return _choose(
        turn, options, model, first=model.bars.prompt, speaker="user", authority=authority, before=before, rules=rules
    )


def _rules(turn: StoredTurn, before: str, authority: Authority) -> list[Chosen]:
    """What a user's text lists to be kept, said by nobody before."""
    if refused.NOT_SAID.match(turn.text):
        return []
    found = [unit for unit in ruled.rules(turn.text) if not before or not _quotes(unit.text, _bare(before))]
    return [Chosen(turn, unit, _statement(unit, unit.text, "user", authority, None)) for unit in found]


def from_reply(
    source: Source,
    prompt: StoredTurn | None,
    *,
    given: Sequence[Chosen] = (),
    model: Worth | None = None,
    options: Sequence[Option] | None = None,
) -> list[Chosen]:
    """At most three statements of a reply, or of a part of one, to `prompt`; `given` was chosen from it before."""
    if source.turn.kind != "assistant":
        return []
    model = model or worth.shipped()
    options = of_reply(source, prompt) if options is None else options
    bars = model.bars
    most, bar = WORKED.get(source.role, (MAX_STATEMENTS, "reply_too" if given else "reply"))
    first = bars.midway if source.role == "midway" else float(getattr(bars, bar))
    before = prompt.text if prompt is not None else ""
    return _choose(
        source.turn,
        options,
        model,
        first=first,
        speaker="assistant",
        authority="assistant",
        given=given,
        prompt=prompt,
        before=before,
        most=most,
    )


def chosen(found: Iterable[Source], *, model: Worth | None = None, before: str = "") -> list[Chosen]:
    """The statements of a conversation's sources, in order; a prompt's cites the reply that speaks of the same.

    `before` is what the assistant said before the first of them.
    """
    told: list[Chosen] = []
    prompt: StoredTurn | None = None
    given: list[Chosen] = []
    for source in found:
        if source.role == "prompt":
            prompt = source.turn
            told += (given := from_prompt(prompt, model, before=before))
            continue
        if source.role not in WORKED:
            before = source.turn.text
        more = from_reply(source, prompt, given=given, model=model)
        if source.role == "reply":
            told = [_with(one, source.turn) if one.turn is prompt else one for one in told]
        told += more
        given = [*given, *more]
    return told


def statements(turn: StoredTurn, *, before: str = "") -> list[Statement]:
    """The statements of one turn by itself; `before` is what was said before it."""
    role: Role = "prompt" if turn.kind in PROMPTS else "reply"
    return [one.statement for one in chosen([Source(turn, role)], before=before)]


def of_prompt(turn: StoredTurn) -> list[Option]:
    """What could be chosen from a prompt."""
    if refused.NOT_SAID.match(turn.text):
        return []
    speaker: Speaker = "user"  # a program's prompt is worded like one
    found = units.pieces(turn.text, speaker)
    document = bool(found) and found[-1].row >= DOCUMENT_ROWS
    return _options(found, speaker, "prompt", document=document, prompt_words=_length(turn))


def of_reply(source: Source, prompt: StoredTurn | None) -> list[Option]:
    """What could be chosen from a reply."""
    return _options(
        units.pieces(source.turn.text, "assistant"),
        "assistant",
        "reply",
        prompt=_content(prompt),
        prompt_words=_length(prompt),
        document=source.role == "plan",
        tools=source.tools,
    )


def _options(
    found: list[Piece],
    speaker: Speaker,
    role: str,
    *,
    prompt_words: int,
    document: bool = False,
    prompt: frozenset[str] = frozenset(),
    tools: int = 0,
) -> list[Option]:
    judged = [weigh(piece.text, kind=speaker) if piece.stands else None for piece in found]
    around = Around(
        speaker=role,
        pieces=found,
        tables=[one.value if one else 0.0 for one in judged],
        counts=Counter(word for piece in found for word in piece.content),
        prompt=prompt,
        prompt_words=prompt_words,
        document=document,
        tools=tools,
    )
    speech = role == "prompt" and speaker == "user" and not document
    clear = [one is not None and one.clarity >= PLAIN_CLARITY for one in judged]
    what: list[Saying] = saying.sayings(found, clear) if speech else ["open"] * len(found)
    plain = [
        role == "prompt" and not document and said != "passes" and _is_plain(piece, one)
        for piece, one, said in zip(found, judged, what, strict=True)
    ]
    return [
        _option(unit, around, plain, what)
        for unit in units.units(found)
        if (unit.first < unit.last or what[unit.first] != "passes")
        and (not any(plain[unit.first : unit.last + 1]) or _adds(unit, plain, around.tables))
    ]


def _option(unit: Unit, around: Around, plain: Sequence[bool], what: Sequence[Saying]) -> Option:
    """A unit as what could be chosen; of several sentences none is plainly one statement."""
    alone, said = unit.first == unit.last, what[unit.first]
    return Option(
        unit=unit,
        features=features.features(unit, around),
        plain=alone and (plain[unit.first] or said in ("holds", "here")),
        holds=alone and said == "holds",
        pieces=around.pieces,
        apart=plain,
    )


def _is_plain(piece: Piece, judged: Classification | None) -> bool:
    """Whether the tables alone make a sentence of a user's a statement."""
    if judged is None or not piece.begins:
        return False
    short = len(piece.content) <= SHORT_WORDS
    clarity, value = (SHORT_CLARITY, SHORT_VALUE) if short else (PLAIN_CLARITY, PLAIN_VALUE)
    return judged.clarity >= clarity and judged.value >= value


def _adds(unit: Unit, plain: Sequence[bool], tables: Sequence[float]) -> bool:
    """Whether what stands with something plain adds to it: neither plain itself, nor nothing by the tables."""
    places = range(unit.first, unit.last + 1)
    return sum(plain[place] for place in places) == 1 and all(tables[place] > 0 for place in places)


def _choose(
    turn: StoredTurn,
    options: Sequence[Option],
    model: Worth,
    *,
    first: float,
    speaker: Speaker,
    authority: Authority,
    given: Sequence[Chosen] = (),
    prompt: StoredTurn | None = None,
    before: str = "",
    most: int = MAX_STATEMENTS,
    rules: Sequence[Chosen] = (),
) -> list[Chosen]:
    """The `rules`, then the best units that stand, reach their bar and say something that none before them says.

    What stands in for a better one that leans is worth as much as a further one.
    """
    found = list(rules)
    bar, further = first, max(first, model.bars.further)
    quoted = _bare(before) if speaker == "user" else ""
    weighed = [(model.of(one.features), one) for one in options]
    for value, option in sorted(weighed, key=lambda one: (-one[0], one[1].unit)):
        unit, holds = option.unit, option.holds
        if len(found) == most:
            break
        if value < bar and not option.plain:
            continue
        if quoted and _quotes(unit.text, quoted):
            continue  # the assistant's sentence, set down once more to speak of it
        if any(unit.meets(one.unit) for one in found) or any(_same(unit, one.unit) for one in (*given, *found)):
            continue
        told = telling.told(unit.text)
        placed, leans = _placed(turn, unit, told, speaker)
        leans = "" if holds and leans == "moment" else leans
        if not leans and pointing.unnamed(placed, speaker, holds=holds):
            placed = resolve.behind(placed, before=resolve.before_in(turn.text, unit.text))
            leans = pointing.unnamed(placed, speaker, holds=holds)
        if leans in POINTS and (shown := resolve.attached(turn.text)) and speaker == "user":
            placed, leans = resolve.about(shown, placed), ""
        if told and not leans:
            alone = placed
            if speaker == "user" and placed == told:
                placed = answering.understood(told, said=unit.text, prompt=turn.text, before=before)
            if placed == alone and placed.endswith(told) and not option.plain:
                lead = placed.removesuffix(told)
                unit, placed = listed.completed(option.pieces, unit, speaker, lead=lead, told=told, apart=option.apart)
            found.append(Chosen(turn, unit, _statement(unit, placed, speaker, authority, prompt)))
        bar = further
    return found


def _placed(turn: StoredTurn, unit: Unit, told: str, speaker: Speaker) -> tuple[str, str]:
    """What is told with what it speaks of put in front, and what it leans on; a lead that names only edits is left out."""
    placed = resolve.placed(told, turn=turn.text, said=unit.text)
    leans = standing.leaning(told, speaker)
    if leans or placed == told:
        return placed, leans or ("unseen" if speaker == "assistant" and resolve.points_out(told) else "")
    lead = placed.removesuffix(told)
    of_lead = standing.leaning(lead, speaker) or refused.refusal(lead, speaker, leads=True)
    if of_lead in refused.WITHOUT_WORTH:
        return placed, of_lead
    return (told, "") if of_lead and "`" not in lead else (placed, "")


def _quotes(said: str, other: str) -> bool:
    """Whether most of a text stands in another, word for word; `other` is bare."""
    own = words(said)
    runs = range(len(own) - QUOTED_WORDS + 1)
    taken = {
        at + step
        for at in runs
        if _bare(" ".join(own[at : at + QUOTED_WORDS])) in other
        for step in range(QUOTED_WORDS)
    }
    return len(taken) > QUOTED_SHARE * len(own)


@lru_cache(maxsize=8)
def _bare(said: str) -> str:
    """A text as its words and nothing else, for finding one in another."""
    return " ".join(["", *words(said), ""])


@lru_cache(maxsize=64)
def _content(turn: StoredTurn | None) -> frozenset[str]:
    return frozenset(content_words(turn.text[:COMPARED])) if turn is not None else frozenset()


def _length(turn: StoredTurn | None) -> int:
    return len(words(turn.text[:PROMPT_CHARACTERS])) if turn is not None else 0


def _same(one: Unit, other: Unit) -> bool:
    return len(one.content & other.content) > SAME * min(len(one.content), len(other.content))


def cites(unit: Unit, other: StoredTurn | None, role: str) -> tuple[str, ...]:
    """The uuid of the other half of an exchange when it speaks of the same as a unit of the prompt or the reply."""
    if other is None or features.shared(unit, _content(other)) < CITES[role]:
        return ()
    return (other.uuid,)


def _with(one: Chosen, reply: StoredTurn) -> Chosen:
    """A prompt's statement that cites the reply, too, where that speaks of the same."""
    also = cites(one.unit, reply, "prompt")
    return one._replace(statement=replace(one.statement, also=also)) if also else one


def _statement(unit: Unit, placed: str, speaker: Speaker, authority: Authority, prompt: StoredTurn | None) -> Statement:
    what = classifier.classify(unit.text, speaker=speaker)
    if what.gate == "correction" and authority != "user":  # nobody but the user corrects
        what = classifier.classify(unit.text, speaker="assistant")
    return Statement(
        text=placed,
        gate=what.gate,
        category=what.category,
        confidence=what.confidence,
        authority=authority,
        reasons=what.reasons,
        also=cites(unit, prompt, "reply"),
    )
