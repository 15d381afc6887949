"""Session summaries as search results: what was done in a session, by the digest that was made of it.

A digest says in a few lines what its turns say at length, so it may be a better answer to what a session was about, and
stands below the very turn that answers: it has a share of what a turn of the same rank has, and keeps out of the order
of its own session's turns.
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd import text
from csmd.errors import DeadlineExceeded
from csmd.model import Hit
from csmd.recall import rank
from csmd.recall.stage_hits import LEXICAL_S
from csmd.recall.stage_matches import WIDE_POOL
from csmd.store import search
from csmd.store.narrow import Narrow
from csmd.store.sqlite import Rows

#: What a summary's score counts beside a turn's. Chosen on the labelled questions (docs/benchmarks.md).
SHARE = 0.3
#: As many turns are named as what says it.
SOURCES = 4


def find(
    rows: Rows, terms: Sequence[str], projects: Sequence[int] | None, degraded: list[str], narrow: Narrow
) -> list[Hit]:
    """The sessions whose summary holds any of `terms`, best first, each once; none where only memories are let in."""
    if narrow.gate or narrow.category or narrow.type:
        return []
    pool = rank.POOL if narrow.is_all else WIDE_POOL
    try:
        with rows.within(rows.share(LEXICAL_S)):
            found = search.text_hits(rows, "session", terms, projects=projects, limit=pool)
    except DeadlineExceeded:
        degraded.append("words: session search stopped at its deadline")
        return []
    scores = rank.normalised({int(seq): float(score) for seq, score in found})
    digests = search.digests_by_seq(rows, list(scores))
    hits: dict[str, Hit] = {}
    for seq, score in sorted(scores.items(), key=lambda one: (-one[1], one[0])):
        if len(hits) >= rank.POOL:
            break
        digest = digests[seq]
        if digest.session_id not in hits and _lets_in(narrow, digest):
            hits[digest.session_id] = Hit(
                id=digest.session_id,
                kind="session",
                text=text.passage(digest.text, list(terms), limit=rank.PASSAGE_CHARACTERS),
                score=SHARE * score,
                project=digest.project,
                session_id=digest.session_id,
                source_uuids=_sources(digest, terms),
                at=digest.at,
                factors={"words": round(score, 4), "summary": SHARE},
            )
    return list(hits.values())


def _lets_in(narrow: Narrow, digest: search.DigestRow) -> bool:
    """Whether a session ended in the time that a search is limited to, and is the one that it names."""
    in_time = (not narrow.since or digest.at >= narrow.since) and (not narrow.until or digest.at < narrow.until)
    return in_time and narrow.session in ("", digest.session_id)


def among(hits: Sequence[Hit], sessions: Sequence[Hit]) -> list[Hit]:
    """Both as one list: each session before the first of `hits`, which keep their order, that scores less."""
    merged = list(hits)
    for session in sessions:
        before = (at for at, hit in enumerate(merged) if hit.kind != "session" and hit.score < session.score)
        merged.insert(next(before, len(merged)), session)
    return merged


def _sources(digest: search.DigestRow, terms: Sequence[str]) -> tuple[str, ...]:
    """The turns of a summary's parts, those that hold most of what was asked first."""
    asked = {text.stem(term) for term in terms}
    held = {
        uuid: max(
            len(asked & {text.stem(word) for word in text.content_words(said)})
            for said, of in digest.items
            if of == uuid
        )
        for uuid in dict.fromkeys(uuid for _, uuid in digest.items)
    }
    return tuple(sorted(held, key=lambda uuid: -held[uuid])[:SOURCES])
