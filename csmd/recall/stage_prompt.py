"""What is added to a prompt: the memories and passages of earlier talk that bear on it, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from csmd import text
from csmd.errors import DeadlineExceeded
from csmd.model import Authority, Brief, Memory, Quote
from csmd.recall import brief as briefs
from csmd.recall import (
    indicative,
    occasion,
    question,
    rank,
    relevance,
    stage,
    stage_heed,
    stage_hits,
    stage_holds,
    stage_turns,
    tiers,
)
from csmd.recall import prompt as prompts
from csmd.recall.asking import asks as asks_for_past
from csmd.recall.stage_hits import Embed
from csmd.recall.stage_matches import Asked, matching
from csmd.store import context, fulltext, memories, quotes, tombstones
from csmd.store.narrow import Narrow
from csmd.store.sqlite import Rows

#: How many of the best turns are read, and how many of each kind are fused.
TURNS = 14
FUSED = 40
#: Words that are searched for, the rarest first; a prompt that pastes a page has thousands.
TERMS = 12
PASSAGE_CHARACTERS = 290
#: How many of the best matches are looked at more closely.
LOOKED_AT = 40
#: What has less of the best match's score is not told beside it.
AS_GOOD = 0.4
#: What is neither so near in meaning nor holds so much of a prompt's words by their rarity is the best of a small store and no
#: more. By words alone there is no nearness to tell an answer that repeats nothing of its question.
NEAR, SHARES = 0.25, 0.15
#: How long counting may take, and of what is left until the deadline which part; it comes first, and more is to follow.
COUNTING_S, COUNTING_PART = 0.5, 0.3
#: How long what stands beside the turns may be looked at: without it they are told as their own words rank them.
STANDING_S = 0.5


@dataclass(frozen=True, slots=True)
class Found:
    """Matches, best first, and how well the best of them match."""

    matches: list[tuple[Memory | Quote, float]]
    ground: relevance.Ground


def prompt_recall(
    rows: Rows,
    *,
    places: Sequence[int],
    session_id: str,
    prompt: str,
    floor: float,
    max_tokens: int,
    max_items: int,
    embed: Embed | None,
    key: bytes,
) -> Brief:
    """What bears on a prompt, above the relevance floor; nothing that the session has before it.

    Of what was said, where it asks for that; else the rules that an order has to heed.
    """
    degraded: list[str] = []
    ranked: list[tuple[Memory | Quote, float]] = []
    asks = asks_for_past(prompt) >= floor
    subject, on = ([], []) if asks else (relevance.subject(prompt), occasion.occasions(prompt))
    if asks or subject or on:
        told = context.told(rows, session_id) if session_id else frozenset[str]()
        attention, near = stage.attention(rows, places), context.near(rows, places, session_id)

        def may(memory: Memory) -> bool:
            if memory.project_seq not in places or memory.id in told or not briefs.injectable(memory):
                return False
            return tiers.reaches(memory, attention(memory), at="match", near=near)

        if not asks:
            ranked += _heeded(rows, places, prompt, subject, on, embed, degraded, floor)
            ranked = [(one, score) for one, score in ranked if isinstance(one, Memory) and may(one)]
        else:
            matching = found(rows, places, session_id, prompt, embed, degraded, key)
            if relevance.grounded(matching.ground) >= floor:
                holding = stage_holds.that_hold(rows, matching.matches[:LOOKED_AT], may, key)
                new = [(one, score) for one, score in holding if _key(one) not in told]
                best = max((score for _, score in new), default=0.0)
                ranked = [(one, score) for one, score in new if score >= AS_GOOD * best]
    if not ranked:
        return Brief(text="", tokens=0, items=(), degraded=tuple(sorted(set(degraded))))
    made = prompts.compose_recall(
        ranked, prompt=prompt, max_tokens=max_tokens, max_items=max_items, known=stage.told_anyway(rows, places)
    )
    return replace(made, degraded=tuple(sorted(set(degraded))))


def _heeded(
    rows: Rows,
    places: Sequence[int],
    prompt: str,
    subject: Sequence[str],
    on: Sequence[str],
    embed: Embed | None,
    degraded: list[str],
    floor: float,
) -> list[tuple[Memory, float]]:
    counts = _counts(rows, subject, places, degraded)
    rare = sorted(counts, key=lambda term: (counts[term], term))[:TERMS]
    weights = {term: relevance.rarity(counts[term]) for term in rare}
    return stage_heed.heeded(rows, places, prompt, embed, degraded, weights=weights, on=on, floor=floor)


def found(
    rows: Rows,
    places: Sequence[int],
    session_id: str,
    prompt: str,
    embed: Embed | None,
    degraded: list[str],
    key: bytes,
) -> Found:
    """What of the past matches a prompt, best first, and how well; nothing is weighed yet."""
    asked = relevance.terms(prompt)
    counts = _counts(rows, asked, places, degraded)
    weights = {term: relevance.rarity(count) for term, count in counts.items()}
    rare = sorted(
        (term for term in asked if counts.get(term, 0) < relevance.COMMON), key=lambda t: (counts.get(t, 0), t)
    )
    terms = rare[:TERMS]
    asking = Asked(
        rows=rows, question=question.read(prompt), terms=terms, projects=places, narrow=Narrow(),
        vector=stage_hits.vector_of(rows, prompt, embed, degraded), degraded=degraded,
    )  # fmt: skip
    believed, close = matching(asking, "memory")
    turns, sense = matching(asking, "turn")
    turns = _standing(asking, turns, close)
    passages = _passages(asking, turns, sense, session_id, prompt, key)
    nearest = sorted(believed.values(), key=lambda row: (-row.score, row.seq))[:FUSED]
    remembered = memories.by_seqs(rows, [row.seq for row in nearest])
    known = {seq: memory for seq, memory in remembered.items() if memory.authority != "external"}
    bodies = [quote.text for quote, _, _ in passages] + [memory.text for memory in known.values()]
    cosines = [cosine for _, _, cosine in passages]
    unknown = any(
        not count for count in _counts(rows, relevance.names(prompt)[:TERMS], places, degraded, most=1).values()
    )
    ground = relevance.Ground(
        turn=max(cosines, default=0.0) if asking.vector else None,
        memory=max((close[seq] for seq in known if seq in close), default=0.0) if asking.vector else None,
        covered=max((relevance.covered(weights, body) for body in bodies), default=0.0),
        unknown=unknown,
    )

    def bears(body: str, cosine: float | None) -> bool:
        return not asking.vector or (cosine or 0.0) >= NEAR or relevance.covered(weights, body) >= SHARES

    matches: list[tuple[Memory | Quote, float]] = [
        (quote, score) for quote, score, cosine in passages if bears(quote.text, cosine)
    ]
    stating = {quote.uuid.partition("/")[0]: score for quote, score, _ in reversed(passages)}
    for seq, memory in known.items():
        if not bears(memory.text, close.get(seq)):
            continue
        beside = max((stating.get(source.uuid, 0.0) for source in memory.provenance), default=0.0)
        score = believed[seq].score + rank.NEIGHBOUR_WEIGHT * beside
        matches.append((memory, score * rank.memory_weight(memory)))
    return Found(sorted(matches, key=lambda row: (-row[1], _key(row[0]))), ground)


def _standing(asking: Asked, turns: dict[int, rank.Scored], close: Mapping[int, float]) -> dict[int, rank.Scored]:
    """The turns with all that speaks for them; as they are where that cannot be read in time: each is another page."""
    try:
        with asking.rows.within(asking.rows.share(STANDING_S)):
            return stage_turns.standing(asking, turns, close, ())[0]
    except DeadlineExceeded:
        asking.degraded.append("words: what stands beside the turns was not looked at in time")
        return turns


def _key(one: Memory | Quote) -> str:
    return one.id if isinstance(one, Memory) else one.uuid


def _counts(
    rows: Rows, terms: Sequence[str], places: Sequence[int], degraded: list[str], *, most: int = relevance.COMMON
) -> dict[str, int]:
    """How many turns and memories here hold each term, counted up to `most`; a term whose count took too long is common."""
    counts: dict[str, int] = {}
    if not terms:
        return counts
    try:
        with rows.within(rows.share(COUNTING_S, part=COUNTING_PART)):
            for term in terms:
                counts[term] = fulltext.held(rows, "turn", term, projects=places, most=most)
                counts[term] = counts[term] or fulltext.held(rows, "memory", term, projects=places, most=most)
    except DeadlineExceeded:
        degraded.append("words: counting stopped at its deadline")
        return {term: counts.get(term, most) for term in terms}
    return counts


def _passages(
    asking: Asked,
    scored: Mapping[int, rank.Scored],
    sense: Mapping[int, float],
    session_id: str,
    prompt: str,
    key: bytes,
) -> list[tuple[Quote, float, float]]:
    """(what is quoted, score, cosine) of the best turns that may be quoted to a session."""
    best = sorted(scored.values(), key=lambda row: (-row.score, row.seq))[:FUSED]
    since = context.fresh_since(asking.rows, session_id) if session_id else ""
    readable = quotes.quotable(
        asking.rows,
        [row.seq for row in best],
        session_id=session_id,
        since=since,
        hashed=lambda name: text.keyed_hash(name, key),
    )
    asked = text.normalise(prompt)
    found: list[tuple[Quote, float, float]] = []
    for row in best:
        quote = readable.get(row.seq)
        if quote is None or text.normalise(quote.text[: 2 * len(prompt) + 20]) == asked:
            continue
        start, end = asking.spans.get(row.seq, (0, 0))
        own = relevance.unquoted(quote.text) if quote.kind == "user" else quote.text
        body = own if "words" in row.factors or not end or own != quote.text else quote.text[start:end]
        if not body.strip():
            continue
        part = text.passage(text.squeeze(body), list(asking.terms), limit=PASSAGE_CHARACTERS)
        if not indicative.answers(part) or _is_forgotten(asking.rows, replace(quote, text=part), key):
            continue
        found.append((replace(quote, text=part), row.score, sense.get(row.seq, 0.0)))
        if len(found) >= TURNS:
            break
    return found


def _is_forgotten(rows: Rows, part: Quote, key: bytes) -> bool:
    """Whether a sentence of a passage was forgotten: it is quoted as little as it is told as a memory."""
    if not tombstones.has(rows, "memory"):
        return False
    authority: Authority = "user" if part.kind == "user" else "assistant"
    return any(
        tombstones.is_out(rows, sentence, authority=authority, project=part.project_seq, at=part.at, key=key)
        for sentence in text.sentences(part.text)
    )
