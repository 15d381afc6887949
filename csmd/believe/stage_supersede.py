"""Supersession's hands: what a memory is superseded by is a function of what is stored, not of what was heard first.

Each look at a memory compares it with those that share words with it, finds the newest that amends it with at least
its authority, and makes that so. What a person settled, either way, no rule changes. Pinned memories, and what is
spoken against by somebody with less authority or only elsewhere, are put before a person instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from csmd import text
from csmd.believe import clauses, score, signals, supersede, upkeep
from csmd.errors import BadInput
from csmd.model import AUTHORITY_RANK, Candidate, Evidence, Link, Memory
from csmd.store import beliefs, candidates, memories, projects, search
from csmd.store.sqlite import Rows

RULE, PERSON, ASSISTANT = "rule", "person", "assistant"
#: Whose supersession is looked at again when something is said anew.
UNASKED = (RULE, beliefs.DREAM)
SOURCE = "supersede"
#: How many memories that share words one is compared with.
NEAR = 20
#: Statements of new names that are looked at in one scope.
RENAMES = 50


def lifted(rows: Rows, memory: Memory) -> Memory:
    """A memory as it is without what superseded it, so that a confirmation finds it unlowered."""
    change = beliefs.standing(rows, memory.id)
    if change is None or change.by not in UNASKED:
        return memory
    beliefs.lift(rows, change, at=memory.confirmed_at)
    return memories.by_seqs(rows, [memory.seq])[memory.seq]


@dataclass(frozen=True, slots=True)
class Near:
    """What shares words with something said in a scope, the likest first, and the names that changed around there."""

    home: int
    memories: Sequence[Memory]
    renames: Mapping[str, str]

    @classmethod
    def of(cls, rows: Rows, said: str, home: int) -> Near:
        """Looked up once for each statement: this costs more than all that is done with it."""
        reach = _reach(rows, home)
        renames = renamed(rows, reach)
        return cls(home, _sharing(rows, said, reach, renames), renames)

    def in_home(self) -> list[Memory]:
        """Those that stand in the very scope."""
        return [memory for memory in self.memories if memory.project_seq == self.home]


def beside(rows: Rows, memory: Memory) -> list[Memory]:
    """What a memory has superseded, then what holds in its reach and speaks of the same, the likest first."""
    own = text.gist(memory.text)
    near = [one for one in Near.of(rows, memory.text, memory.project_seq).memories if one.id != memory.id]
    found = [one for one in near if not one.superseded_by and _one_subject(own, text.gist(one.text))]
    return [one for one in near if one.superseded_by == memory.id] + found


def _one_subject(one: text.Gist, other: text.Gist) -> bool:
    """Whether two texts share half of the shorter; one word in common is enough only where it is half of both."""
    shared = len(one.stems & other.stems)
    sizes = sorted((len(one.stems), len(other.stems)))
    return shared > 0 and shared >= signals.SAME_SUBJECT * sizes[shared < 2]


def settle(rows: Rows, memory_id: str) -> None:
    """Looks at what a newly confirmed memory amends, and at what amends it."""
    memory = memories.by_id(rows, memory_id)
    if memory is not None:
        _settle_among(rows, memory, Near.of(rows, memory.text, memory.project_seq))


def settle_new(rows: Rows, memory: Memory, found: Near) -> None:
    """As `settle`, of a memory that was not there when those near it were looked up; a new name is looked up again."""
    if clauses.renames(memory.text):
        found = Near.of(rows, memory.text, memory.project_seq)
    _settle_among(rows, memory, found)


def _settle_among(rows: Rows, memory: Memory, found: Near) -> None:
    renames, near = found.renames, _others(memory, found.memories)
    changed = clauses.renames(memory.text)
    touched = {name for pair in (*changed, *renames.items()) for name in pair} if changed else set()
    for other in near:
        said = other.text.casefold()
        if (
            any(name in said for name in touched)
            or other.superseded_by == memory.id
            or _amendment(other, memory, renames)
        ):
            beside = _sharing(rows, other.text, _reach(rows, other.project_seq), renames)
            _settle_one(rows, other, _others(other, beside), renames)
    _settle_one(rows, memory, near, renames)


def renamed(rows: Rows, scopes: list[int] | None) -> dict[str, str]:
    """Old name -> the name it has now, as the memories of some scopes say."""
    found = search.text_hits(rows, "memory", ["renamed", "called", "named"], projects=scopes, limit=RENAMES)
    return supersede.table(search.memories_told(rows, [int(seq) for seq, _ in found]))


def by_hand(rows: Rows, old: Memory, new: Memory, *, by: str, now: str, reason: str = "told") -> Memory:
    """Has one memory supersede another because somebody says so; the older one as it is then."""
    after: Memory | None = new
    passed: set[str] = set()
    while after is not None and after.id not in passed:
        passed.add(after.id)
        if after.id == old.id:
            raise BadInput(
                f"{new.id} cannot supersede {old.id}: it is that one, or superseded by it",
                hint="name two memories, the one that holds last",
            )
        after = memories.by_id(rows, after.superseded_by) if after.superseded_by else None
    change = beliefs.standing(rows, old.id)
    if change is not None:
        if old.superseded_by != new.id:
            reason = f"{reason}; until then {old.superseded_by} did"
        beliefs.lift(rows, change, at=now)
        old = memories.by_seqs(rows, [old.seq])[old.seq]
    lower(rows, old, new, lowers=supersede.MOST, sure=1.0, reason=reason, by=by, at=now)
    return memories.by_seqs(rows, [old.seq])[old.seq]


def undo(rows: Rows, old: Memory, *, by: str, now: str) -> Memory:
    """Undoes that a memory was superseded; a rule does not do it again with the same two. BadInput when it is not."""
    change = beliefs.standing(rows, old.id)
    if change is None:
        raise BadInput(f"nothing supersedes {old.id}", hint=f"`csmd show {old.id}`")
    beliefs.lift(rows, change, at=now)
    beliefs.note(rows, old.id, beliefs.REFUSED, old.superseded_by, "", "told", by, now)
    return memories.by_seqs(rows, [old.seq])[old.seq]


def _settle_one(rows: Rows, memory: Memory, near: Sequence[Memory], renames: Mapping[str, str]) -> None:
    """Makes the newest memory of those `near` that amends this one its successor, or nothing."""
    change = beliefs.standing(rows, memory.id)
    if (change is not None and change.by not in UNASKED) or (memory.superseded_by and change is None):
        return
    refused = beliefs.refused(rows, memory.id)
    own = (beliefs.stated_at(rows, memory), memory.id)
    best: tuple[tuple[str, str], Memory, supersede.Relation] | None = None
    for other in near:
        found = None if other.id in refused else _amendment(memory, other, renames)
        if found is None:
            continue
        then = (beliefs.stated_at(rows, other), other.id)
        if since(memory, other, then[0]) <= own[0]:  # said in one breath neither overturns the other
            continue
        if not _may(memory, other):
            _put_before_a_person(rows, memory, other, found, at=then[0])
        elif best is None or then > best[0]:
            best = then, other, found
    if (best[1].id if best else "") == memory.superseded_by:
        return
    memory = lifted(rows, memory)
    if best is not None:
        (at, _), other, found = best
        reason = " ".join(found.reasons)
        lower(rows, memory, other, lowers=found.lowers, sure=found.confidence, reason=reason, by=RULE, at=at)


def since(old: Memory, new: Memory, stated_at: str) -> str:
    """From when one memory may speak against another.

    What a project has otherwise than everywhere is no less so because the other is said once more elsewhere.
    """
    return new.created_at if old.scope == "project" and new.scope != "project" else stated_at


def _may(old: Memory, new: Memory) -> bool:
    """Whether one memory may supersede another unasked.

    What holds in one project is an exception to what holds everywhere, not its end.
    """
    if old.pinned or new.origin == "model_saved":
        return False
    if old.scope != "project" and new.project_seq != old.project_seq:
        return False
    return AUTHORITY_RANK[new.authority] >= AUTHORITY_RANK[old.authority]


def _amendment(old: Memory, new: Memory, renames: Mapping[str, str]) -> supersede.Relation | None:
    return None if new.authority == "external" else supersede.amendment(old.text, new.text, renames)


def lower(rows: Rows, old: Memory, new: Memory, *, lowers: float, sure: float, reason: str, by: str, at: str) -> None:
    """Has one memory supersede another, which is so much less sure for it."""
    confidence = round(max(supersede.LEAST_LEFT, old.confidence - lowers), 4)
    limits = score.thresholds(
        confidence,
        decay=old.decay,
        gate=old.gate,
        category=old.category,
        today=projects.active_day(rows, old.project_seq, on=old.fresh_at[:10]),
        stated=old.authority == "user",
        tier=old.tier,
        superseded=True,
    )
    lowered = replace(
        old, confidence=confidence, superseded_by=new.id,
        hot_until=limits.hot_until, warm_until=limits.warm_until, archive_at=limits.archive_at,
    )  # fmt: skip
    beliefs.note(rows, old.id, beliefs.SUPERSEDED, beliefs.state(old), beliefs.state(lowered), reason, by, at)
    memories.update_belief(rows, lowered)
    memories.add_link(rows, Link(from_id=old.id, to_id=new.id, relationship="superseded_by", weight=sure), now=at)


def _put_before_a_person(rows: Rows, old: Memory, new: Memory, found: supersede.Relation, *, at: str) -> None:
    reason = (
        f"speaks against {old.id} ({', '.join(found.reasons)}), which stands: {supersede.stands(pinned=old.pinned)}"
    )
    ask(rows, old, new, reason=reason, sure=found.confidence, at=at)


def ask(rows: Rows, old: Memory, new: Memory, *, reason: str, sure: float, at: str) -> str:
    """Asks a person which of two memories holds; the candidate's id, "" where that was answered."""
    fingerprint = f"{old.id}:{new.id}"
    source = new.provenance[0]
    return candidates.put(
        rows,
        Candidate(
            id=candidates.identity("stale", old.project_seq, fingerprint, at),
            kind="stale",
            source=SOURCE,
            project_seq=old.project_seq,
            fingerprint=fingerprint,
            text=f"{upkeep.quote(old)} or {upkeep.quote(new)}",
            reason=reason,
            confidence=sure,
            gate=old.gate,
            category=old.category,
            created_at=at,
            updated_at=at,
            status="needs_review",
            memory_ids=(old.id, new.id),
            evidence=(Evidence(uuid=source.uuid, session_id=source.session_id, at=source.at, against=True),),
        ),
    )


def _reach(rows: Rows, home: int) -> list[int] | None:
    """The scopes whose memories one is compared with: a project's own and those around it; None is all."""
    if not home:
        return projects.visible(rows, inside=0)
    return sorted({home, projects.everywhere(rows, home), 0})


def _sharing(rows: Rows, said: str, reach: list[int] | None, renames: Mapping[str, str]) -> list[Memory]:
    """The memories that share words with what is said, by its names of then and of now; the likest first."""
    lower = said.casefold()
    names = [name for pair in renames.items() for name in pair if any(one in lower for one in pair)]
    terms = text.query_terms(" ".join([said, *names]))
    found = search.text_hits(rows, "memory", terms, projects=reach, limit=NEAR + 1)
    others = memories.by_seqs(rows, [int(seq) for seq, _ in found])
    return [others[int(seq)] for seq, _ in found]


def _others(memory: Memory, near: Sequence[Memory]) -> list[Memory]:
    """Those near a memory without itself, at most NEAR."""
    return [other for other in near if other.seq != memory.seq][:NEAR]
