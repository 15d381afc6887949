"""The hands of a result's order: what was superseded stands behind what replaced it and says so; old names are followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from csmd import terms as derived
from csmd import text
from csmd.believe import phrases, stage_supersede, supersede
from csmd.model import Hit
from csmd.recall import exchange, otherwise, rank
from csmd.store import beliefs
from csmd.store.sqlite import Rows

#: A passage holds a statement when so many of its words are in it.
HOLDS = 0.8


def by_all_names(rows: Rows, query: str, *, projects: Sequence[int] | None) -> list[str]:
    """The terms to search for: the query's own, then the other names, old and new, of what it names."""
    terms = derived.asked(query)
    renames = stage_supersede.renamed(rows, None if projects is None else list(projects))
    for old, new in renames.items():
        for one, other in ((new, old), (old, new)):
            if supersede.names(query, one):
                terms += [term for term in text.query_terms(other) if term not in terms]
    return terms


def newest_first(rows: Rows, hits: Sequence[Hit], terms: Sequence[str]) -> list[Hit]:
    """Hits, best first, with the newer of those that speak of the same in front, and marked where they are overturned."""
    asked = {text.stem(term) for term in terms}
    said = {hit.id: {text.stem(word) for word in text.content_words(hit.text)} for hit in hits}
    marked = _marked(rows, hits, asked, said)
    about = {hit.id: _about(hit) for hit in hits}
    heirs = beliefs.states(rows, sorted({hit.superseded_by for hit in marked if hit.superseded_by}))
    places = [
        rank.Place(
            key=hit.id,
            thread=hit.session_id,
            at=hit.at,
            score=hit.answers,
            asked=about[hit.id] & asked,
            stems=about[hit.id],
            project=hit.project,
            in_all=hit.score,
            replaces=hit.kind == "turn" and bool(phrases.INSTEAD.search(exchange.matched(hit.text))),
            overtakes=_overtaken(hit, marked),
            retracts=hit.kind == "turn" and exchange.retracts(hit.text),
            overturned_by=frozenset(
                other.id
                for other in marked
                if hit.superseded_by and (other.id == hit.superseded_by or other.id in heirs[hit.superseded_by])
            ),
        )
        for hit in marked
    ]
    by_id = {hit.id: hit for hit in marked}
    keys, before = rank.ordered(places)
    return [replace(by_id[key], newer_than=before.get(key, "")) for key in keys]


def _overtaken(hit: Hit, hits: Sequence[Hit]) -> frozenset[str]:
    """The earlier hits of the same project of which the user says in this one that it is otherwise by now."""
    said = "\n".join(exchange.asked_in(hit.text)) if hit.kind == "turn" else hit.text * (hit.authority == "user")
    if not otherwise.CHANGED.search(said):
        return frozenset()
    earlier = [one for one in hits if one.project == hit.project and one.at < hit.at]
    return frozenset(one.id for one in earlier if otherwise.by_now(one.text, said))


def _about(hit: Hit) -> frozenset[str]:
    """The stems of the terms that a hit begins with, which is where its passage stands; names count by their parts too.

    `push_sessions` and "pushing of sessions" are one subject; what was said beside a passage at length is none.
    """
    return frozenset(text.stem(term) for term in text.query_terms(hit.text))


def _marked(rows: Rows, hits: Sequence[Hit], asked: set[str], said: dict[str, set[str]]) -> list[Hit]:
    """Hits with the turns lowered that were found by what they state and no longer holds, behind all that score more."""
    turns = {hit.id: hit for hit in hits if hit.kind == "turn"}
    marked: dict[str, Hit] = {}
    by_source = {hit.source_uuids[0]: hit for hit in turns.values() if hit.source_uuids}
    for uuid, statement, heir in beliefs.overturned(rows, list(by_source)):
        hit = by_source[uuid]
        stems = {text.stem(word) for word in text.content_words(statement)}
        held = len(stems & said[hit.id]) >= HOLDS * len(stems)
        if held and 2 * len(asked & stems) >= len(asked & said[hit.id]) > 0 and hit.id not in marked:
            factors = {**hit.factors, "superseded": rank.SUPERSEDED_SHARE}
            lowered = hit.score * rank.SUPERSEDED_SHARE
            marked[hit.id] = replace(hit, superseded_by=heir, score=lowered, factors=factors)
    ordered = [hit for hit in hits if hit.id not in marked]
    for hit in marked.values():
        behind = [at for at, other in enumerate(ordered, 1) if other.score >= hit.score]
        ordered.insert(max(behind, default=0), hit)
    return ordered
