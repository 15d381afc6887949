"""Search results: memories and exchanges, each once, best first."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from csmd import wire
from csmd.errors import DeadlineExceeded
from csmd.extraction import failure_reports
from csmd.model import Hit
from csmd.recall import hybrid_search, query, ranking, threads
from csmd.recall.hybrid_search import ALL, LEXICAL_S, POOL, WIDE_POOL, Embed, Found, Query
from csmd.store import failures, fulltext, memories, passages, search
from csmd.store.search import DigestRow, TurnNeighbours, TurnRow
from csmd.store.sqlite import Rows
from csmd.text import display, prose, similarity, tokens

#: What the passage that matched gets of the room when others stand beside it and it needs so much.
MATCHED_SHARE = 0.5
#: How many turns stand beside the one that matched: the one before and the one after.
MOST_BESIDE = 2
_BESIDE = re.compile(r"\n\[(?:before|after)\] ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A turn of an exchange: `place` is "" for the one that matched, else before or after; `cut` gives a passage of it."""

    speaker: str
    place: str
    text: str
    cut: Callable[[int], str]


def render_exchange(parts: Sequence[Part], *, limit: int) -> str:
    """The text of a hit in at most `limit` characters, the turn that matched first; alone it is told as it is."""
    if len(parts) == 1:
        return parts[0].cut(limit)
    heads = [f"[{part.place}] {part.speaker}: " if part.place else f"{part.speaker}: " for part in parts]
    room = limit - sum(len(head) + 1 for head in heads)
    shares = _shares([len(part.text) for part in parts], room)
    return "\n".join(head + part.cut(share) for head, part, share in zip(heads, parts, shares, strict=True))


def matched_part(told: str) -> str:
    """Of a text that `told` gave what stands in it of the turn that matched."""
    return _BESIDE.split(told, maxsplit=1)[0]


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much room each gets: the first its half, the others equal parts; what one leaves the others take."""
    first, *others = sizes
    wanted = min(first, max(int(room * MATCHED_SHARE), room - sum(others)))
    left = room - wanted
    shares = [0] * len(others)
    waiting = sorted(range(len(others)), key=lambda index: others[index])
    while waiting:
        index, *waiting = waiting
        shares[index] = min(others[index], left // (len(waiting) + 1))
        left -= shares[index]
    return [wanted, *shares]


def group_exchanges(
    ranked: Sequence[int],
    near: Mapping[int, Sequence[int]],
    scores: Mapping[int, float],
    *,
    most: int,
    midway: Collection[int] = frozenset(),
) -> list[list[int]]:
    """The best `most` of `ranked` (best first), each with those beside it (0: none), the better first; none twice.

    What was said `midway` in an exchange that is shown already is no hit of its own.
    """
    used: set[int] = set()
    found: list[list[int]] = []
    for seq in ranked:
        if seq in used or (seq in midway and not used.isdisjoint(near.get(seq, ()))):
            continue
        used.add(seq)
        beside = [one for one in dict.fromkeys(near.get(seq, ())) if one and one not in used]
        group = [seq, *sorted(beside, key=lambda one: -scores.get(one, 0.0))[:MOST_BESIDE]]
        used.update(group)
        found.append(group)
        if len(found) >= most:
            break
    return found


CHARACTERS = 1200
#: What a hit gains by the better of what stands beside it, by the time that is asked for, and by having mended what is asked.
BESIDE_WEIGHT, TIME_WEIGHT, MENDED_WEIGHT = 0.15, 0.3, 0.5
#: What a question's words and its meaning count beside how surely a statement bears on it.
WORDS_WEIGHT, MEANING_WEIGHT = 0.8, 0.5
#: What its words count in the place of meaning where none is measured.
WORDS_ALONE = 4.0
#: What a session's summary counts beside what was said in it.
SUMMARY_SHARE = 0.3
#: In front what comes from a session that stands there already counts so much less each time.
FRONT, AGAIN_SHARE = 5, 0.85
#: What a memory counts beside its turn, which says it at length, and what is left of the score of what was superseded.
MEMORY_SHARE, SUPERSEDED_SHARE = 0.9, 0.5
#: Two hits that share so much of their words are one.
TWIN_OVERLAP = 0.9
#: Of a time that is asked for so many prompts come in by that alone.
OF_A_TIME = 40
#: From this score of the best hit on what was found is said to be close to what was asked.
CLOSE = 0.3
#: As many turns are named as what says a summary.
SOURCES = 4


def find(
    rows: Rows,
    said: str,
    *,
    projects: Sequence[int] | None,
    kind: str,
    limit: int,
    embed: Embed | None,
    now: datetime | None = None,
    within: search.SearchFilter = ALL,
) -> tuple[list[Hit], list[str]]:
    """The best hits for a question among memories, turns and session summaries, and what was degraded.

    Without `now` times mean nothing.
    """
    said, degraded = wire.clean(said), list[str]()
    understood = query.read(said, now=now)
    terms = list(dict.fromkeys([*hybrid_search.terms_of(rows, said, places=projects), *understood.literals]))
    asked = Query(terms=terms[: hybrid_search.MOST_TERMS], places=projects, narrow=within)
    summaries = _summaries(rows, asked, degraded) if kind in ("all", "session") else []
    if kind == "session":
        return summaries[:limit], sorted(set(degraded))
    asked = replace(asked, vector=hybrid_search.vector_of(rows, said, embed, degraded))
    found = hybrid_search.find(rows, asked, degraded)
    levels = _levels(found)
    raised = _raised(rows, said, understood.window, asked, found)
    shown = _turns(rows, asked, found, levels, raised, limit * 3) if kind != "memory" else []
    shown += _memories(rows, asked, found, levels, raised) if kind != "turn" else []
    best = _varied(_distinct(sorted(shown, key=lambda one: (-one.hit.score, one.hit.at, one.hit.id)), limit * 3))
    ordered = _newest_first(rows, asked, best)
    merged = _among([one.hit for one in ordered], summaries)
    # A hit has at least the score of what it stands before.
    scores = [*itertools.accumulate((hit.score for hit in reversed(merged)), max)][::-1]
    hits = [replace(hit, score=score) for hit, score in zip(merged, scores, strict=True)]
    return hits[:limit], sorted(set(degraded))


#: A later hit moves over so many earlier ones at most, unless a thread leads to it that is as sure as LEADS among its rivals.
WITHIN, LEADS = 4, 0.5


#: A later hit comes before an earlier one from such shares on: of its score, of its asked words, and of common words. A
#: session stays with its subject, so that fewer common words tell there that both speak of the same.
AS_GOOD, AS_MUCH_ASKED, IN_A_SESSION, ELSEWHERE = 0.85, 0.6, 0.2, 0.3


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit with the passage that it was found by; 0 for a memory whose turn is gone."""

    hit: Hit
    passage: int


def is_close(hits: Sequence[Hit]) -> bool:
    """Whether the best of some hits bears on what was asked; the nearest are shown all the same."""
    return max((hit.answers for hit in hits), default=0.0) >= CLOSE


def _levels(found: Sequence[Found]) -> dict[tuple[int, str], float]:
    """Each statement's worth to a question, 0-1 among those that were found: how it bears, and its words and meaning alone.

    The score is fitted on tasks, whose words are seldom in the answer; who asks for the past uses its words.
    """
    odds = {at: math.log(max(1e-9, one.score) / max(1e-9, 1 - one.score)) for at, one in enumerate(found)}
    low, high = min(odds.values(), default=0.0), max(odds.values(), default=0.0)
    words = ranking.normalised({at: one.words for at, one in enumerate(found)})
    meaning = ranking.normalised(
        {at: one.features["meaning"] for at, one in enumerate(found) if "meaning" in one.features}
    )
    worth = {
        one.key: ((odds[at] - low) / (high - low) if high > low else 1.0)
        + WORDS_WEIGHT * words[at]
        + MEANING_WEIGHT * meaning.get(at, WORDS_ALONE * words[at])
        for at, one in enumerate(found)
    }
    most = max(worth.values(), default=0.0) or 1.0
    return {key: value / most for key, value in worth.items()}


def _raised(
    rows: Rows, said: str, window: query.Window | None, asked: Query, found: Sequence[Found]
) -> Mapping[str, Mapping[int, float]]:
    """What speaks for turns and memories beside their words: the time that is asked for, and what mended a pasted failure."""
    turns: dict[int, float] = {}
    told: dict[int, float] = {}
    if window is not None:
        of_time = search.user_turns_between(rows, window.since, window.until, projects=asked.places, limit=OF_A_TIME)
        turns = dict.fromkeys((seq for seq, _ in of_time), TIME_WEIGHT)
        turns |= {one.passage.turn_seq: TIME_WEIGHT for one in found if one.passage and window.holds(one.passage.at)}
        told = {one.memory.seq: TIME_WEIGHT for one in found if one.memory and window.holds(one.at)}
    pasted = failure_reports.pasted_error(said, at="", uuid="")
    if pasted is not None:
        same = failures.same_message(rows, pasted.message, other_than=pasted.fingerprint, projects=asked.places)
        known = [
            seen for one in (same, pasted.fingerprint) if one and (seen := failures.find_error(rows, one, asked.places))
        ]
        fixed = search.turns_of_uuids(rows, [one.fixed_uuid for one in known if one.fixed_uuid])
        turns |= dict.fromkeys(fixed.values(), MENDED_WEIGHT)
        tells = [memory for one in known if one.memory_id and (memory := memories.by_id(rows, one.memory_id))]
        told |= {one.seq: MENDED_WEIGHT for one in tells if asked.places is None or one.project_seq in asked.places}
    if not asked.narrow.is_all:
        let_in = search.filter_rows(rows, "turn", sorted(turns), asked.narrow) if turns else set()
        turns = {seq: value for seq, value in turns.items() if seq in let_in}
    return {"turn": turns, "memory": told}


# --- turns


def _turns(
    rows: Rows,
    asked: Query,
    found: Sequence[Found],
    levels: Mapping[tuple[int, str], float],
    raised: Mapping[str, Mapping[int, float]],
    limit: int,
) -> list[Shown]:
    """The best exchanges, each by the turn that bears most on the question."""
    best: dict[int, Found] = {}
    for one in found:
        if one.passage is not None:
            known = best.setdefault(one.passage.turn_seq, one)
            if levels[one.key] > levels[known.key]:
                best[one.passage.turn_seq] = one
    scores = {turn: levels[one.key] for turn, one in best.items()}
    for turn, value in raised["turn"].items():
        scores[turn] = scores.get(turn, 0.0) + value
    where = search.turn_neighbours(rows, sorted(scores), projects=asked.places)
    scores = {
        turn: score
        + BESIDE_WEIGHT * max((scores.get(one, 0.0) for one in (where[turn].before, where[turn].after)), default=0.0)
        for turn, score in scores.items()
        if turn in where
    }
    ranked = sorted(scores, key=lambda turn: (-scores[turn], turn))
    near = {turn: (where[turn].after, where[turn].before) for turn in ranked}
    midway = {turn for turn in ranked if where[turn].midway}
    groups = group_exchanges(ranked, near, scores, most=limit, midway=midway)
    read = search.turns_by_seq(rows, [turn for group in groups for turn in group])
    return [
        _exchange(asked, [read[turn] for turn in group if turn in read], where, best, scores[group[0]])
        for group in groups
        if group[0] in read
    ]


def _exchange(
    asked: Query, turns: Sequence[TurnRow], where: Mapping[int, TurnNeighbours], best: Mapping[int, Found], score: float
) -> Shown:
    own, *others = turns
    found = best.get(own.seq)
    parts = [_part(asked, own, "", best)]
    parts += [_part(asked, one, "before" if one.seq == where[own.seq].before else "after", best) for one in others]
    memory = found.memory if found else None
    overturned = memory.superseded_by if memory else ""
    hit = Hit(
        id=own.uuid,
        kind="turn",
        text=render_exchange(parts, limit=CHARACTERS),
        score=score * (SUPERSEDED_SHARE if overturned else 1.0),
        project=own.project,
        session_id=own.session_id,
        source_uuids=tuple(dict.fromkeys(one.uuid.partition("/")[0] for one in turns)),
        at=own.at,
        superseded_by=overturned,
        answers=max((best[one.seq].score for one in turns if one.seq in best), default=0.0),
        factors={name: round(value, 4) for name, value in (found.features.items() if found else ())},
    )
    return Shown(hit, found.passage.seq if found and found.passage else 0)


def _part(asked: Query, turn: TurnRow, place: str, best: Mapping[int, Found]) -> Part:
    """A turn of an exchange, cut to where its best passage stands, or else where its words are."""
    found = best.get(turn.seq)
    start = found.passage.start if found and found.passage and not place else 0

    def cut(limit: int) -> str:
        if not start or len(turn.text) <= limit:
            return prose.passage(turn.text, list(asked.terms), limit=limit) if place else display.cut(turn.text, limit)
        begin = max(0, min(start, len(turn.text) - limit + 1))
        return "…" + display.cut(turn.text[begin:], limit - 1)

    return Part(speaker=turn.kind, place=place, text=turn.text, cut=cut)


# --- memories


def _memories(
    rows: Rows,
    asked: Query,
    found: Sequence[Found],
    levels: Mapping[tuple[int, str], float],
    raised: Mapping[str, Mapping[int, float]],
) -> list[Shown]:
    roots = search.roots(rows)
    shown: dict[str, Shown] = {}
    further = set(raised["memory"]) - {one.memory.seq for one in found if one.memory}
    extra = [Found(score=0.0, features={}, memory=one) for one in memories.by_seqs(rows, sorted(further)).values()]
    heirs = _heirs(rows, asked, found)
    levels = {**levels, **{heir.key: levels[older] for older, heir in heirs.items()}}
    for one in [*found, *heirs.values(), *extra]:
        memory = one.memory
        if memory is None or memory.id in shown:
            continue
        score = (levels.get(one.key, 0.0) + raised["memory"].get(memory.seq, 0.0)) * MEMORY_SHARE
        score *= SUPERSEDED_SHARE if memory.superseded_by or memory.is_refuted else 1.0
        hit = Hit(
            id=memory.id,
            kind="memory",
            text=memory.text[:CHARACTERS],
            score=score,
            project=roots.get(memory.project_seq, ""),
            session_id=memory.session_id,
            source_uuids=tuple(dict.fromkeys(source.uuid for source in memory.provenance))[:4],
            at=memory.confirmed_at,
            confidence=memory.confidence,
            gate=memory.gate,
            authority=memory.authority,
            superseded_by=memory.superseded_by,
            refuted=memory.is_refuted,
            edited=memory.is_edited,
            scene=memory.scene,
            answers=one.score,
            factors={name: round(value, 4) for name, value in one.features.items()},
        )
        shown[memory.id] = Shown(hit, one.passage.seq if one.passage else 0)
    return list(shown.values())


def _heirs(rows: Rows, asked: Query, found: Sequence[Found]) -> dict[tuple[int, str], Found]:
    """What replaced a superseded memory and was not found by itself, by the key of what it replaced."""
    known = {one.memory.id for one in found if one.memory}
    heirs = {
        one.key: replace(one, passage=None, memory=heir)
        for one in found
        if one.memory and one.memory.superseded_by and (heir := threads.find_heir(rows, one.memory))
        if heir.id not in known and (asked.places is None or heir.project_seq in asked.places)
    }
    seqs = [heir.memory.seq for heir in heirs.values() if heir.memory]
    let_in = search.filter_rows(rows, "memory", seqs, asked.narrow) if seqs and not asked.narrow.is_all else set(seqs)
    return {older: heir for older, heir in heirs.items() if heir.memory and heir.memory.seq in let_in}


# --- order


def _distinct(shown: Sequence[Shown], limit: int) -> list[Shown]:
    """The best hits, each from a source of its own: a memory and the turn that states it are one answer."""
    kept: list[Shown] = []
    said: list[similarity.Gist] = []
    sources: set[str] = set()
    for one in shown:
        gist = similarity.gist(one.hit.text)
        if sources.intersection(one.hit.source_uuids[:1]) or any(
            similarity.alike(gist, other, share=TWIN_OVERLAP) for other in said
        ):
            continue
        kept.append(one)
        said.append(gist)
        sources.update(one.hit.source_uuids[:1])
        if len(kept) >= limit:
            break
    return kept


def _varied(shown: Sequence[Shown]) -> list[Shown]:
    """The same with no session filling the front alone; behind it their order is kept."""
    left, front = list(shown), list[Shown]()
    times: Counter[str] = Counter()
    while left and len(front) < FRONT:
        best = max(left, key=lambda one: one.hit.score * AGAIN_SHARE ** times[one.hit.session_id])
        left.remove(best)
        front.append(best)
        times[best.hit.session_id] += 1
    return [*front, *left]


def _newest_first(rows: Rows, asked: Query, shown: Sequence[Shown]) -> list[Shown]:
    """The hits with what is newer on the same matter right before what is older; nothing else moves."""
    follows = _follows(rows, shown)
    wanted = frozenset(tokens.stem(term) for term in asked.terms)
    about = {one.hit.id: ranking.stems(one.hit.text) for one in shown}
    ordered: list[Shown] = []
    newer: dict[str, str] = {}
    for one in shown:
        first = next(
            (
                at
                for at, other in enumerate(ordered)
                if one.hit.id in follows.get(other.hit.id, ())
                or (at >= len(ordered) - WITHIN and _gives_way(other.hit, one.hit, about, wanted))
            ),
            len(ordered),
        )
        if first < len(ordered) and one.hit.id in follows.get(ordered[first].hit.id, ()):
            newer[ordered[first].hit.id] = one.hit.id
        ordered.insert(first, one)
    for at, one in enumerate(ordered):
        heirs = [other.hit.id for other in ordered[:at] if other.hit.id in follows.get(one.hit.id, ())]
        newer.update((one.hit.id, heir) for heir in heirs[:1])
    return [replace(one, hit=replace(one.hit, newer=newer.get(one.hit.id, ""))) for one in ordered]


def _follows(rows: Rows, shown: Sequence[Shown]) -> dict[str, set[str]]:
    """Hit -> the hits that its thread leads to, or that replaced it."""
    ends = threads.follow_threads(rows, [one.passage for one in shown if one.passage], least=LEADS, rivals=True)
    newest = passages.by_seqs(rows, sorted({seq for of in ends.values() for seq, _ in of}))
    found: dict[str, set[str]] = {}
    for one in shown:
        lines = {newest[seq].uuid.partition("/")[0] for seq, _ in ends.get(one.passage, ()) if seq in newest}
        lines -= set(one.hit.source_uuids)
        found[one.hit.id] = {
            other.hit.id
            for other in shown
            if other is not one
            and (lines.intersection(other.hit.source_uuids[:1]) or other.hit.id == one.hit.superseded_by)
        }
    return found


def _gives_way(earlier: Hit, later: Hit, about: Mapping[str, frozenset[str]], wanted: frozenset[str]) -> bool:
    """Whether a later hit comes before an earlier one: on the same subject, and bearing on the question about as well."""
    if not (earlier.at < later.at and earlier.project and earlier.project == later.project):
        return False
    one_subject = IN_A_SESSION if earlier.session_id == later.session_id else ELSEWHERE
    old, new = about[earlier.id], about[later.id]
    return (
        later.score >= AS_GOOD * earlier.score
        and len(old & new & wanted) >= AS_MUCH_ASKED * len(old & wanted)
        and len(old & new) >= one_subject * min(len(old), len(new))
    )


# --- session summaries


def _summaries(rows: Rows, asked: Query, degraded: list[str]) -> list[Hit]:
    """The sessions whose summary holds any of the terms, best first, each once; none where only memories are let in."""
    within = asked.narrow
    if within.gate or within.category or within.type:
        return []
    pool = POOL if within.is_all else WIDE_POOL
    try:
        with rows.within(rows.share(LEXICAL_S)):
            found = fulltext.text_hits(rows, "session", asked.terms, projects=asked.places, limit=pool)
    except DeadlineExceeded:
        degraded.append("words: session search stopped at its deadline")
        return []
    scores = ranking.normalised({int(seq): float(score) for seq, score in found})
    digests = search.digests_by_seq(rows, list(scores))
    hits: dict[str, Hit] = {}
    for seq, score in sorted(scores.items(), key=lambda one: (-one[1], one[0])):
        digest = digests[seq]
        if digest.session_id not in hits and _lets_in(within, digest):
            hits[digest.session_id] = Hit(
                id=digest.session_id,
                kind="session",
                text=prose.passage(digest.text, list(asked.terms), limit=CHARACTERS),
                score=SUMMARY_SHARE * score,
                project=digest.project,
                session_id=digest.session_id,
                source_uuids=_sources(digest, asked.terms),
                at=digest.at,
                factors={"words": round(score, 4), "summary": SUMMARY_SHARE},
            )
    return list(hits.values())


def _lets_in(within: search.SearchFilter, digest: DigestRow) -> bool:
    """Whether a session ended in the time that a search is limited to, and is the one that it names."""
    in_time = (not within.since or digest.at >= within.since) and (not within.until or digest.at < within.until)
    return in_time and within.session in ("", digest.session_id)


def _among(hits: Sequence[Hit], sessions: Sequence[Hit]) -> list[Hit]:
    """Both as one list: each session before the first of `hits`, which keep their order, that scores less."""
    merged = list(hits)
    for session in sessions:
        before = (at for at, hit in enumerate(merged) if hit.kind != "session" and hit.score < session.score)
        merged.insert(next(before, len(merged)), session)
    return merged


def _sources(digest: DigestRow, terms: Sequence[str]) -> tuple[str, ...]:
    """The turns of a summary's parts, those that hold most of what was asked first."""
    asked = {tokens.stem(term) for term in terms}
    held = {
        uuid: max(len(asked & ranking.stems(said)) for said, of in digest.items if of == uuid)
        for uuid in dict.fromkeys(uuid for _, uuid in digest.items)
    }
    return tuple(sorted(held, key=lambda uuid: -held[uuid])[:SOURCES])
