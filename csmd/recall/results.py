"""Search results: memories and exchanges, each once, best first; and the neighbours of a memory."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from csmd import wire
from csmd.errors import DeadlineExceeded
from csmd.extraction import failure_reports
from csmd.recall import hybrid_search, query, ranking, threads
from csmd.recall.hybrid_search import ALL, LEXICAL_S, Embed, Query, ScoredStatement
from csmd.store import failures, memories, passages, search, topics
from csmd.store.search import DigestRow, TurnNeighbours, TurnRow
from csmd.store.sqlite import Rows
from csmd.text import display, prose, similarity, tokens
from csmd.values import Hit

#: Most characters of a hit, and the share of them that the turn that matched gets next to others, if it needs so much.
CHARACTERS, MATCHED_SHARE = 1200, 0.5
#: What a hit gains by the better turn next to it, by the time that is asked for, and by having fixed a pasted failure.
ADJACENT_WEIGHT, TIME_WEIGHT, MENDED_WEIGHT = 0.15, 0.3, 0.5
#: Weights of a statement's words and meaning next to its score.
WORDS_WEIGHT, MEANING_WEIGHT = 0.8, 0.5
#: What its words count in the place of meaning where none is measured.
WORDS_ALONE = 4.0
#: What the score of a session's summary counts.
SUMMARY_SHARE = 0.3
#: Hits at the front of a list; there each further hit of a session counts so much less.
FRONT, REPEATED_SHARE = 5, 0.85
#: What a memory counts against its turn, which says it at length, and what a superseded statement's score still counts.
MEMORY_SHARE, SUPERSEDED_SHARE = 0.9, 0.5
#: Two hits that share so much of their words are one.
TWIN_OVERLAP = 0.9
#: Most prompts of a time that is asked for which come in by that alone.
PROMPTS_OF_TIME = 40
#: Where the turns around the one that matched begin in a hit's text (`render_exchange`).
_NEIGHBOUR = re.compile(r"\n\[(?:before|after)\] ")
#: Least score of the best hit at which a search counts as answered.
CLOSE = 0.3
#: Turns cited as sources of a session summary.
SOURCES = 4
#: How many earlier hits a later one may move over, and from which certainty on a thread moves it over any number.
WITHIN, LEADS = 4, 0.5
#: A later hit comes before an earlier one from these shares on: of its score, of its words of the question, and of common
#: words. A session stays with its subject, so that fewer common words suffice there.
SCORE_SHARE, TERMS_SHARE, SAME_SESSION_SHARE, OTHER_SESSION_SHARE = 0.85, 0.6, 0.2, 0.3


class RankedHit(NamedTuple):
    """A hit with the row key of the passage that it was found by; 0 for a memory whose turn is gone."""

    hit: Hit
    passage: int


def find(
    rows: Rows,
    question: str,
    *,
    projects: Sequence[int] | None,
    kind: str,
    limit: int,
    embed: Embed | None,
    now: datetime | None = None,
    within: search.SearchFilter = ALL,
) -> tuple[list[Hit], list[str]]:
    """The best hits among memories, turns and session summaries, and what was degraded. Without `now` times mean nothing."""
    question, degraded = wire.clean(question), list[str]()
    terms = hybrid_search.expand_terms(rows, question, places=projects)
    terms = list(dict.fromkeys([*terms, *query.find_literals(question)]))
    asked = Query(terms=terms[: hybrid_search.MOST_TERMS], places=projects, narrow=within)
    summaries = _find_summaries(rows, asked, degraded) if kind in ("all", "session") else []
    if kind == "session":
        return summaries[:limit], sorted(set(degraded))
    asked = replace(asked, vector=hybrid_search.embed_query(rows, question, embed, degraded))
    statements = hybrid_search.find(rows, asked, degraded)
    relevance = _rate_relevance(statements)
    window = query.find_window(question, now) if now else None
    turn_boosts, memory_boosts = _find_boosts(rows, question, window, asked, statements)
    hits = _find_turns(rows, asked, statements, relevance, turn_boosts, limit * 3) if kind != "memory" else []
    hits += _find_memories(rows, asked, statements, relevance, memory_boosts) if kind != "turn" else []
    hits.sort(key=lambda ranked: (-ranked.hit.score, ranked.hit.at, ranked.hit.id))
    merged = _among(_newest_first(rows, asked, _varied(_distinct(hits, limit * 3))), summaries)
    # A hit has at least the score of the hits behind it.
    scores = [*itertools.accumulate((hit.score for hit in reversed(merged)), max)][::-1]
    scored = [replace(hit, score=score) for hit, score in zip(merged, scores, strict=True)]
    return scored[:limit], sorted(set(degraded))


def is_close(hits: Sequence[Hit], question: str) -> bool:
    """Whether one of some hits answers the question or contains all its content words, two at least.

    If not, the nearest are shown all the same.
    """
    asked, is_question = set(tokens.content_words(question)), question.rstrip().endswith("?")

    def says_all(hit: Hit) -> bool:
        matched = _NEIGHBOUR.split(hit.text, maxsplit=1)[0]
        # A question is not answered by a question.
        return asked <= set(tokens.content_words(matched)) and not (is_question and matched.rstrip().endswith("?"))

    return any(hit.answers >= CLOSE or (len(asked) > 1 and says_all(hit)) for hit in hits)


def _rate_relevance(statements: Sequence[ScoredStatement]) -> dict[tuple[int, str], float]:
    """Each statement's relevance to a question, 0-1 among these: its score, and its words and meaning by themselves.

    The score is fitted on tasks, whose words are seldom in the answer; who asks for the past uses its words.
    """
    odds = [math.log(max(1e-9, statement.score) / max(1e-9, 1 - statement.score)) for statement in statements]
    low, high = min(odds, default=0.0), max(odds, default=0.0)
    words = ranking.normalised({at: statement.words for at, statement in enumerate(statements)})
    meaning = ranking.normalised(
        {
            at: statement.features["meaning"]
            for at, statement in enumerate(statements)
            if "meaning" in statement.features
        }
    )
    relevance = {
        statement.key: ((odds[at] - low) / (high - low) if high > low else 1.0)
        + WORDS_WEIGHT * words[at]
        + MEANING_WEIGHT * meaning.get(at, WORDS_ALONE * words[at])
        for at, statement in enumerate(statements)
    }
    most = max(relevance.values(), default=0.0) or 1.0
    return {key: value / most for key, value in relevance.items()}


def _find_boosts(
    rows: Rows, question: str, window: query.Window | None, asked: Query, statements: Sequence[ScoredStatement]
) -> tuple[dict[int, float], dict[int, float]]:
    """What turns and memories (by row keys) gain by the time that is asked for, or by having fixed a pasted failure."""
    of_turns: dict[int, float] = {}
    of_memories: dict[int, float] = {}
    if window is not None:
        prompts = search.user_turns_between(
            rows, window.since, window.until, projects=asked.places, limit=PROMPTS_OF_TIME
        )
        in_time = [
            statement.passage.turn_seq
            for statement in statements
            if statement.passage and window.holds(statement.passage.at)
        ]
        of_turns = dict.fromkeys([*(seq for seq, _ in prompts), *in_time], TIME_WEIGHT)
        of_memories = {
            statement.memory.seq: TIME_WEIGHT
            for statement in statements
            if statement.memory and window.holds(statement.at)
        }
    pasted = failure_reports.pasted_error(question, at="", uuid="")
    if pasted is not None:
        same = failures.same_message(rows, pasted.message, other_than=pasted.fingerprint, projects=asked.places)
        errors = [failures.find_error(rows, mark, asked.places) for mark in (same, pasted.fingerprint) if mark]
        known = [error for error in errors if error]
        fixes = search.turns_of_uuids(rows, [error.fixed_uuid for error in known if error.fixed_uuid])
        of_turns |= dict.fromkeys(fixes.values(), MENDED_WEIGHT)
        causes = [memories.by_id(rows, error.memory_id) for error in known if error.memory_id]
        of_memories |= {
            memory.seq: MENDED_WEIGHT
            for memory in causes
            if memory and (asked.places is None or memory.project_seq in asked.places)
        }
    passing = asked.filtered(rows, "turn", sorted(of_turns))
    return {seq: boost for seq, boost in of_turns.items() if seq in passing}, of_memories


# --- exchanges


class Part(NamedTuple):
    """A turn of an exchange: `place` is "" for the one that matched, else before or after; `cut` gives a passage of it."""

    speaker: str
    place: str
    text: str
    cut: Callable[[int], str]


def render_exchange(parts: Sequence[Part], *, limit: int) -> str:
    """The text of a hit in at most `limit` characters, the turn that matched first; a turn alone has no heading."""
    if len(parts) == 1:
        return parts[0].cut(limit)
    headings = [f"[{part.place}] {part.speaker}: " if part.place else f"{part.speaker}: " for part in parts]
    sizes = [len(part.text) for part in parts]
    room = limit - sum(len(heading) + 1 for heading in headings)
    shares = {0: min(sizes[0], max(int(room * MATCHED_SHARE), room - sum(sizes[1:])))}
    shortest_first = sorted(range(1, len(parts)), key=lambda index: sizes[index])
    for place, index in enumerate(shortest_first):  # what a short one leaves is the others'
        shares[index] = min(sizes[index], (room - sum(shares.values())) // (len(shortest_first) - place))
    return "\n".join(headings[index] + part.cut(shares[index]) for index, part in enumerate(parts))


def group_exchanges(
    ranked: Sequence[int],
    near: Mapping[int, Sequence[int]],
    scores: Mapping[int, float],
    *,
    most: int,
    midway: Collection[int] = frozenset(),
) -> list[list[int]]:
    """The best `most` of `ranked` (best first), each with the turns next to it (0: none), the better first; none twice.

    A turn `midway` in an exchange that is shown already is no hit of its own.
    """
    used: set[int] = set()
    groups: list[list[int]] = []
    for seq in ranked:
        adjacent = near.get(seq, ())
        if len(groups) >= most:
            break
        if seq in used or (seq in midway and not used.isdisjoint(adjacent)):
            continue
        others = [turn for turn in dict.fromkeys(adjacent) if turn and turn not in used and turn != seq]
        groups.append([seq, *sorted(others, key=lambda turn: -scores.get(turn, 0.0))])
        used.update(groups[-1])
    return groups


def _find_turns(
    rows: Rows,
    asked: Query,
    statements: Sequence[ScoredStatement],
    relevance: Mapping[tuple[int, str], float],
    boosts: Mapping[int, float],
    limit: int,
) -> list[RankedHit]:
    """The best exchanges, each by the turn that bears most on the question."""
    best: dict[int, ScoredStatement] = {}
    for statement in sorted(statements, key=lambda statement: -relevance[statement.key]):
        if statement.passage is not None:
            best.setdefault(statement.passage.turn_seq, statement)
    own = {turn: relevance[statement.key] for turn, statement in best.items()}
    own |= {turn: own.get(turn, 0.0) + boost for turn, boost in boosts.items()}
    where = search.turn_neighbours(rows, sorted(own), projects=asked.places)
    scores = {
        turn: own[turn] + ADJACENT_WEIGHT * max(own.get(place.before, 0.0), own.get(place.after, 0.0))
        for turn, place in where.items()
    }
    groups = group_exchanges(
        sorted(scores, key=lambda turn: (-scores[turn], turn)),
        {turn: (place.after, place.before) for turn, place in where.items()},
        scores,
        most=limit,
        midway={turn for turn, place in where.items() if place.midway},
    )
    read = search.turns_by_seq(rows, [turn for group in groups for turn in group])
    return [
        _exchange(asked, [read[turn] for turn in group if turn in read], where[group[0]], best, scores[group[0]])
        for group in groups
        if group[0] in read
    ]


def _exchange(
    asked: Query, turns: Sequence[TurnRow], where: TurnNeighbours, best: Mapping[int, ScoredStatement], score: float
) -> RankedHit:
    own, *others = turns
    statement = best.get(own.seq)
    passage = statement.passage if statement else None
    start = passage.start if passage else 0

    def cut_matched(limit: int) -> str:
        """The turn from its best passage on."""
        if not start or len(own.text) <= limit:
            return display.cut(own.text, limit)
        return "…" + display.cut(own.text[min(start, len(own.text) - limit + 1) :], limit - 1)

    def adjacent(turn: TurnRow) -> Part:
        place = "before" if turn.seq == where.before else "after"
        return Part(turn.kind, place, turn.text, lambda limit: prose.passage(turn.text, list(asked.terms), limit=limit))

    parts = [Part(own.kind, "", own.text, cut_matched), *map(adjacent, others)]
    heir = statement.memory.superseded_by if statement and statement.memory else ""
    hit = Hit(
        id=own.uuid,
        kind="turn",
        text=render_exchange(parts, limit=CHARACTERS),
        score=score * (SUPERSEDED_SHARE if heir else 1.0),
        project=own.project,
        session_id=own.session_id,
        source_uuids=tuple(dict.fromkeys(turn.uuid.partition("/")[0] for turn in turns)),
        at=own.at,
        superseded_by=heir,
        answers=max((best[turn.seq].score for turn in turns if turn.seq in best), default=0.0),
        factors=_factors(statement),
    )
    return RankedHit(hit, passage.seq if passage else 0)


def _factors(statement: ScoredStatement | None) -> dict[str, float]:
    return {name: round(value, 4) for name, value in statement.features.items()} if statement else {}


# --- memories


def _find_memories(
    rows: Rows,
    asked: Query,
    statements: Sequence[ScoredStatement],
    relevance: Mapping[tuple[int, str], float],
    boosts: Mapping[int, float],
) -> list[RankedHit]:
    roots = search.roots(rows)
    boosted = memories.by_seqs(
        rows, sorted(set(boosts) - {statement.memory.seq for statement in statements if statement.memory})
    )
    heirs = _find_heirs(rows, asked, statements)
    relevance = {**relevance, **{heir.key: relevance[older] for older, heir in heirs.items()}}
    ranked: dict[str, RankedHit] = {}
    others = [ScoredStatement(score=0.0, features={}, memory=memory) for memory in boosted.values()]
    for statement in [*statements, *heirs.values(), *others]:
        memory = statement.memory
        if memory is None or memory.id in ranked:
            continue
        score = (relevance.get(statement.key, 0.0) + boosts.get(memory.seq, 0.0)) * MEMORY_SHARE
        hit = Hit(
            id=memory.id,
            kind="memory",
            text=memory.text[:CHARACTERS],
            score=score * (SUPERSEDED_SHARE if memory.superseded_by or memory.is_refuted else 1.0),
            project=roots.get(memory.project_seq, ""),
            session_id=memory.session_id,
            source_uuids=tuple(dict.fromkeys(source.uuid for source in memory.provenance))[:SOURCES],
            at=memory.confirmed_at,
            confidence=memory.confidence,
            gate=memory.gate,
            authority=memory.authority,
            superseded_by=memory.superseded_by,
            refuted=memory.is_refuted,
            edited=memory.is_edited,
            scene=memory.scene,
            answers=statement.score,
            factors=_factors(statement),
        )
        ranked[memory.id] = RankedHit(hit, statement.passage.seq if statement.passage else 0)
    return list(ranked.values())


def _find_heirs(
    rows: Rows, asked: Query, statements: Sequence[ScoredStatement]
) -> dict[tuple[int, str], ScoredStatement]:
    """What replaced a superseded memory and was not found by itself, by the key of what it replaced."""
    known = {statement.memory.id for statement in statements if statement.memory}
    heirs = {
        statement.key: (statement, heir)
        for statement in statements
        if statement.memory and statement.memory.superseded_by and (heir := threads.find_heir(rows, statement.memory))
        if heir.id not in known and (asked.places is None or heir.project_seq in asked.places)
    }
    passing = asked.filtered(rows, "memory", [heir.seq for _, heir in heirs.values()])
    return {
        older: replace(statement, passage=None, memory=heir)
        for older, (statement, heir) in heirs.items()
        if heir.seq in passing
    }


# --- order


def _distinct(ranked: Sequence[RankedHit], limit: int) -> list[RankedHit]:
    """The best hits, each from a source of its own: a memory and the turn that states it are one answer."""
    kept: list[RankedHit] = []
    gists: list[similarity.Gist] = []
    sources: set[str] = set()
    for entry in ranked:
        gist, first = similarity.gist(entry.hit.text), set(entry.hit.source_uuids[:1])
        if sources & first or any(similarity.overlap(gist, other) >= TWIN_OVERLAP for other in gists):
            continue
        kept.append(entry)
        gists.append(gist)
        sources |= first
        if len(kept) >= limit:
            break
    return kept


def _varied(ranked: Sequence[RankedHit]) -> list[RankedHit]:
    """The same with no session filling the front alone; behind it their order is kept."""
    rest, front = list(ranked), list[RankedHit]()
    times: Counter[str] = Counter()
    while rest and len(front) < FRONT:
        best = max(rest, key=lambda entry: entry.hit.score * REPEATED_SHARE ** times[entry.hit.session_id])
        rest.remove(best)
        front.append(best)
        times[best.hit.session_id] += 1
    return [*front, *rest]


def _newest_first(rows: Rows, asked: Query, ranked: Sequence[RankedHit]) -> list[Hit]:
    """The hits with what is newer on the same matter right before what is older; nothing else moves."""
    follows = _find_followers(rows, ranked)
    wanted = frozenset(tokens.stem(term) for term in asked.terms)
    words = {entry.hit.id: ranking.stems(entry.hit.text) for entry in ranked}
    ordered: list[Hit] = []
    newer: dict[str, str] = {}
    for hit, _ in ranked:
        place = next(
            (
                at
                for at, other in enumerate(ordered)
                if hit.id in follows[other.id]
                or (at >= len(ordered) - WITHIN and _gives_way(other, hit, words, wanted))
            ),
            len(ordered),
        )
        if place < len(ordered) and hit.id in follows[ordered[place].id]:
            newer[ordered[place].id] = hit.id
        ordered.insert(place, hit)
    for at, hit in enumerate(ordered):
        heirs = [other.id for other in ordered[:at] if other.id in follows[hit.id]]
        newer.update((hit.id, heir) for heir in heirs[:1])
    return [replace(hit, newer=newer.get(hit.id, "")) for hit in ordered]


def _find_followers(rows: Rows, ranked: Sequence[RankedHit]) -> dict[str, set[str]]:
    """Hit -> the hits that its thread leads to, or that replaced it."""
    ends = threads.follow_threads(rows, [entry.passage for entry in ranked if entry.passage], least=LEADS, rivals=True)
    newest = passages.by_seqs(rows, sorted({seq for links in ends.values() for seq, _ in links}))
    followers: dict[str, set[str]] = {}
    for hit, passage in ranked:
        lines = {newest[seq].uuid.partition("/")[0] for seq, _ in ends.get(passage, ()) if seq in newest}
        lines -= set(hit.source_uuids)
        followers[hit.id] = {
            other.id
            for other, _ in ranked
            if other is not hit and (lines.intersection(other.source_uuids[:1]) or other.id == hit.superseded_by)
        }
    return followers


def _gives_way(earlier: Hit, later: Hit, words: Mapping[str, frozenset[str]], wanted: frozenset[str]) -> bool:
    """Whether a later hit comes before an earlier one: on the same subject, and bearing on the question about as well."""
    if not (earlier.at < later.at and earlier.project and earlier.project == later.project):
        return False
    common = SAME_SESSION_SHARE if earlier.session_id == later.session_id else OTHER_SESSION_SHARE
    old, new = words[earlier.id], words[later.id]
    return (
        later.score >= SCORE_SHARE * earlier.score
        and len(old & new & wanted) >= TERMS_SHARE * len(old & wanted)
        and len(old & new) >= common * min(len(old), len(new))
    )


# --- session summaries


def _find_summaries(rows: Rows, asked: Query, degraded: list[str]) -> list[Hit]:
    """The sessions whose summary holds any of the terms, best first, each once; none where only memories are let in."""
    within = asked.narrow
    if within.gate or within.category or within.type:
        return []
    try:
        with rows.within(rows.share(LEXICAL_S)):
            scores = ranking.normalised(asked.by_words(rows, "session"))
    except DeadlineExceeded:
        degraded.append("words: session search stopped at its deadline")
        return []
    digests = search.digests_by_seq(rows, list(scores))
    hits: dict[str, Hit] = {}
    for seq, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])):
        digest = digests[seq]
        in_time = digest.at >= within.since and (not within.until or digest.at < within.until)
        if digest.session_id not in hits and in_time and within.session in ("", digest.session_id):
            hits[digest.session_id] = Hit(
                id=digest.session_id,
                kind="session",
                text=prose.passage(digest.text, list(asked.terms), limit=CHARACTERS),
                score=SUMMARY_SHARE * score,
                project=digest.project,
                session_id=digest.session_id,
                source_uuids=_find_sources(digest, asked.terms),
                at=digest.at,
                factors={"words": round(score, 4), "summary": SUMMARY_SHARE},
            )
    return list(hits.values())


def _among(hits: Sequence[Hit], sessions: Sequence[Hit]) -> list[Hit]:
    """Both as one list: each session before the first of `hits`, which keep their order, that scores less."""
    merged = list(hits)
    for session in sessions:
        places = (at for at, hit in enumerate(merged) if hit.kind != "session" and hit.score < session.score)
        merged.insert(next(places, len(merged)), session)
    return merged


def _find_sources(digest: DigestRow, terms: Sequence[str]) -> tuple[str, ...]:
    """The turns of a summary's items, those that hold most of the terms first."""
    stems = {tokens.stem(term) for term in terms}
    shared: dict[str, int] = {}
    for text, uuid in digest.items:
        shared[uuid] = max(shared.get(uuid, 0), len(stems & ranking.stems(text)))
    return tuple(sorted(shared, key=lambda uuid: -shared[uuid])[:SOURCES])


# --- neighbours of a memory

#: Relationship -> its worth from the memory it begins at, and from the one it leads to. What replaced a memory is nearly
#: always wanted, what it replaced seldom; a merged memory says nothing that the other does not say.
LINK_WORTH: dict[str, tuple[float, float]] = {
    "superseded_by": (1.0, 0.3),
    "symptom_of": (0.9, 0.9),
    "caused": (0.8, 0.8),
    "renamed_to": (0.7, 0.7),
    "elaborates": (0.7, 0.7),
    "refuted_by": (0.6, 0.6),
    "confirmed_by": (0.5, 0.5),
    "contradicts": (0.5, 0.5),
    "depends_on": (0.5, 0.5),
    "relates_to": (0.5, 0.5),
    "merged_into": (0.0, 0.0),
}
#: Relationships that may be drawn by hand; the others have commands of their own, which see to the consequences.
DRAWN_BY_HAND = tuple(sorted(set(LINK_WORTH) - {"superseded_by", "merged_into"}))
#: Worth of a topic that two memories share (less the more memories share it), and of a session. Both are weak ties: an
#: answer is five times as often as by chance in the session of a hit, twice in its topics.
TOPIC_WORTH, SESSION_WORTH = 0.1, 0.1
SAME_TOPIC, SAME_SESSION = "same_topic", "same_session"
#: Most neighbours of one memory; topics and sessions of more memories than these tie nothing together.
NEIGHBOURS, WIDEST_TOPIC, WIDEST_SESSION = 12, 20, 60

#: A neighbour: its row key, how it is related, the worth of that, 0-1.
Neighbour = tuple[int, str, float]


def rate_topic(members: int) -> float:
    """The worth of a topic that so many memories share."""
    return TOPIC_WORTH / math.log2(max(members, 2))


def rank_neighbours(edges: Iterable[Neighbour]) -> list[Neighbour]:
    """The neighbours of one memory, each once by its strongest edge and a little for every other, the nearest first."""
    best: dict[int, tuple[str, float]] = {}
    for seq, relation, worth in sorted(edges, key=lambda edge: (-edge[2], edge[1], edge[0])):
        if worth > 0:
            first, total = best.get(seq, (relation, 0.0))
            best[seq] = first, total + (1 - total) * worth
    nearest = sorted(best.items(), key=lambda pair: (-pair[1][1], pair[0]))[:NEIGHBOURS]
    return [(seq, relation, round(worth, 4)) for seq, (relation, worth) in nearest]


def find_neighbours(
    rows: Rows, memory_seqs: Sequence[int], *, projects: Sequence[int] | None = None
) -> dict[int, list[Neighbour]]:
    """Memory -> its neighbours, the nearest first; only of `projects`, None for all: a link may lead to another scope."""
    edges: dict[int, list[Neighbour]] = {seq: [] for seq in memory_seqs}
    for memory, other, relationship, weight, outwards in topics.edges(rows, memory_seqs, projects=projects):
        ahead, back = LINK_WORTH.get(relationship, LINK_WORTH["relates_to"])
        edges[memory].append((other, relationship, weight * (ahead if outwards else back)))
    for memory, other, kind, members in _find_ties(rows, memory_seqs, projects):
        tie = (SAME_TOPIC, rate_topic(members)) if kind == "topic" else (SAME_SESSION, SESSION_WORTH)
        edges[memory].append((other, *tie))
    return {seq: neighbours for seq, some in edges.items() if (neighbours := rank_neighbours(some))}


def find_same_topic(rows: Rows, memory_seq: int, *, projects: Sequence[int] | None) -> list[int]:
    """The memories that share topics with one, those that share most and rarest first."""
    ties = [tie for tie in _find_ties(rows, [memory_seq], projects) if tie[2] == "topic"]
    return [seq for seq, *_ in rank_neighbours((other, SAME_TOPIC, rate_topic(n)) for _, other, _, n in ties)]


def _find_ties(rows: Rows, seqs: Sequence[int], projects: Sequence[int] | None) -> list[tuple[int, int, str, int]]:
    return topics.shared_topics(rows, seqs, projects=projects, widest_topic=WIDEST_TOPIC, widest_session=WIDEST_SESSION)
