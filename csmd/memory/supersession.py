"""Where no rule may tell whether one memory replaces another, a person is asked; an answer is final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from csmd.errors import BadInput
from csmd.memory import confidence, contradiction, kinds, review, upkeep_plan
from csmd.memory import confidence as score
from csmd.model import AUTHORITY_RANK, Candidate, Evidence, Link, Memory
from csmd.store import belief_changes, candidates, memories, projects, search, tombstones
from csmd.store.sqlite import Rows
from csmd.text import similarity, tokens

DOUBT_SOURCE = review.CHANGE


def say_what_stands(rows: Rows, old: Memory, new: Memory, found: contradiction.Replacement, *, at: str) -> None:
    """Asks a person about a memory that certainly is spoken against, by who may not replace it."""
    reason = (
        f"speaks against {old.id} ({', '.join(found.reasons)}), which stands: {contradiction.stands(pinned=old.pinned)}"
    )
    ask_about(rows, old, new, reason=reason, sure=found.confidence, at=at)


def ask_about(rows: Rows, old: Memory, new: Memory, *, reason: str, sure: float, at: str) -> str:
    """Asks a person which of two memories holds; the candidate's id, that of one that waits already, "" where it was answered."""
    fingerprint = f"{old.id}:{new.id}"
    for waiting in candidates.waiting_of(rows, [(old.project_seq, "stale", fingerprint)]):
        return waiting.id
    source = new.provenance[0]
    return candidates.put(
        rows,
        Candidate(
            id=candidates.identity("stale", old.project_seq, fingerprint, at),
            kind="stale",
            source=DOUBT_SOURCE,
            project_seq=old.project_seq,
            fingerprint=fingerprint,
            text=f"{upkeep_plan.quote(old)} or {upkeep_plan.quote(new)}",
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


LEFT = "left"


def free_identity(rows: Rows, project: int, body: str) -> str:
    """As `identity.of`; another one when a memory has it that was merged into another scope since."""
    ident, number = kinds.of(project, body), 1
    while memories.by_id(rows, ident) is not None:
        ident, number = kinds.of(project, f"{body} ({number})"), number + 1
    return ident


def of(rows: Rows, memory_id: str) -> Memory | None:
    """The memory of a memory's rest, or None."""
    seq = memories.rest_of(rows, memory_id)
    return memories.by_seqs(rows, [seq])[seq] if seq else None


def wanted(rows: Rows, whole: Memory, said: str, *, key: bytes) -> str:
    """The text to keep of a memory's rest: "" where it is remembered already, or the user made csmd forget it."""
    known = memories.by_hash(rows, tokens.keyed_hash(said, key), project=whole.project_seq) if said else None
    current = of(rows, whole.id)
    if known is not None and (current is None or known.id != current.id):
        return ""
    is_forgotten = bool(said) and tombstones.keeps_out(
        rows, said, correction=whole.gate == "correction", authority=whole.authority, project=whole.project_seq,
        at=whole.created_at, key=key,
    )  # fmt: skip
    return "" if is_forgotten else said


def keep(rows: Rows, whole: Memory, said: str, *, key: bytes, by: str, at: str) -> str:
    """Makes a memory of a memory's rest, as sure and as old as the whole was; its id, "" for no rest."""
    if not said:
        return ""
    limits = confidence.thresholds(
        whole.confidence, decay=whole.decay, gate=whole.gate, category=whole.category, tier=whole.tier,
        today=projects.active_day(rows, whole.project_seq, on=whole.fresh_at[:10]), stated=whole.authority == "user",
    )  # fmt: skip
    rest = replace(
        whole, id=free_identity(rows, whole.project_seq, said), text=said, superseded_by="", version=1,
        hot_until=limits.hot_until, warm_until=limits.warm_until, archive_at=limits.archive_at,
    )  # fmt: skip
    memories.insert(rows, rest, text_hash=tokens.keyed_hash(said, key))
    memories.add_link(rows, Link(from_id=whole.id, to_id=rest.id, relationship=memories.GOES_ON_AS, weight=1.0), now=at)
    belief_changes.note(rows, rest.id, LEFT, "", "", f"the rest of {whole.id}, of which a part was replaced", by, at)
    return rest.id


def lift(rows: Rows, change: belief_changes.Change, *, at: str) -> None:
    """Undoes a supersession: the whole holds again, and its rest goes with it."""
    belief_changes.lift(rows, change, at=at)
    for seq in memories.release_rest(rows, change.memory_id):
        memories.delete(rows, memories.by_seqs(rows, [seq])[seq])


RULE, PERSON, ASSISTANT = "rule", "person", "assistant"
#: Whose supersession is looked at again when something is said anew.
UNASKED = (RULE, belief_changes.DREAM)
#: How many memories that share words one is compared with.
NEAR = 20
#: Statements of new names that are looked at in one scope.
RENAMES = 50
#: How often a name that a question names is looked for by the names that it had or has since.
RENAMED_AGAIN = 4


def lifted(rows: Rows, memory: Memory) -> Memory:
    """A memory as it is without what superseded it, so that a confirmation finds it unlowered."""
    change = belief_changes.standing(rows, memory.id)
    if change is None or change.by not in UNASKED:
        return memory
    lift(rows, change, at=memory.confirmed_at)
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


@dataclass(frozen=True, slots=True)
class Beside:
    """What a new memory found of the same matter; `doubtful` are those of which a person can tell whether it replaces them."""

    replaced: Sequence[Memory]
    doubtful: Sequence[Memory]
    related: Sequence[Memory]


def beside(rows: Rows, memory: Memory) -> Beside:
    """What a memory has superseded, and what holds in its reach and speaks of the same: the likest first."""
    own, found = similarity.gist(memory.text), Near.of(rows, memory.text, memory.project_seq)
    near = [one for one in found.memories if one.id != memory.id]
    holding = [one for one in near if not one.superseded_by]
    doubtful = [one for one in holding if _ending(one, memory, found.renames)]
    related = [one for one in holding if one not in doubtful and _one_subject(own, similarity.gist(one.text))]
    return Beside([one for one in near if one.superseded_by == memory.id], doubtful, related)


def _one_subject(one: similarity.Gist, other: similarity.Gist) -> bool:
    """Whether two texts share half of the shorter; one word in common is enough only where it is half of both."""
    shared = len(one.stems & other.stems)
    sizes = sorted((len(one.stems), len(other.stems)))
    return shared > 0 and shared >= contradiction.SAME_SUBJECT * sizes[shared < 2]


def settle(rows: Rows, memory_id: str, *, key: bytes) -> None:
    """Looks at what a newly confirmed memory amends, and at what amends it."""
    memory = memories.by_id(rows, memory_id)
    if memory is not None:
        _settle_among(rows, memory, Near.of(rows, memory.text, memory.project_seq), key=key)


def settle_new(rows: Rows, memory: Memory, found: Near, *, key: bytes) -> None:
    """As `settle`, of a memory that was not there when those near it were looked up; a new name is looked up again."""
    if contradiction.renames(memory.text):
        found = Near.of(rows, memory.text, memory.project_seq)
    _settle_among(rows, memory, found, key=key)


def _settle_among(rows: Rows, memory: Memory, found: Near, *, key: bytes) -> None:
    renames, near = found.renames, _others(memory, found.memories)
    changed = contradiction.renames(memory.text)
    touched = {name for pair in (*changed, *renames.items()) for name in pair} if changed else set()
    for other in near:
        said = other.text.casefold()
        if any(name in said for name in touched) or other.superseded_by == memory.id or _ending(other, memory, renames):
            beside = _sharing(rows, other.text, _reach(rows, other.project_seq), renames)
            _settle_one(rows, other, _others(other, beside), renames, key=key)
    _settle_one(rows, memory, near, renames, key=key)


def renamed(rows: Rows, scopes: list[int] | None, *, of: Sequence[str] = ()) -> dict[str, str]:
    """Old name -> the name it has now, as the memories of some scopes say; only `of` some names and what these lead to."""
    names, renames = list(of), dict[str, str]()
    for _ in range(RENAMED_AGAIN):
        found = search.text_hits(
            rows, "memory", ["renamed", "called", "named"], beside=names, projects=scopes, limit=RENAMES
        )
        renames = contradiction.table(search.memories_told(rows, [int(seq) for seq, _ in found]))
        further = [name for pair in renames.items() for name in pair if name not in names] if of else []
        if not further:
            break
        names += further
    return renames


def by_hand(
    rows: Rows, old: Memory, new: Memory, *, by: str, now: str, reason: str = "told", key: bytes = b""
) -> Memory:
    """Has one memory supersede another because somebody says so; the older one as it is then.

    With the store's `key` those parts of the older one go on of which the newer says nothing.
    """
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
    change = belief_changes.standing(rows, old.id)
    if change is not None:
        if old.superseded_by != new.id:
            reason = f"{reason}; until then {old.superseded_by} did"
        lift(rows, change, at=now)
        old = memories.by_seqs(rows, [old.seq])[old.seq]
    spoken_of = contradiction.spoken_of(old.text, new.text)
    if key and spoken_of:
        left = contradiction.without(old.text, spoken_of)
        keep(rows, old, wanted(rows, old, left, key=key), key=key, by=by, at=now)
    lower(rows, old, new, lowers=contradiction.MOST, sure=1.0, reason=reason, by=by, at=now)
    return memories.by_seqs(rows, [old.seq])[old.seq]


def undo(rows: Rows, old: Memory, *, by: str, now: str) -> Memory:
    """Undoes that a memory was superseded; a rule does not do it again with the same two. BadInput when it is not."""
    change = belief_changes.standing(rows, old.id)
    if change is None:
        raise BadInput(f"nothing supersedes {old.id}", hint=f"`csmd show {old.id}`")
    lift(rows, change, at=now)
    belief_changes.note(rows, old.id, belief_changes.REFUSED, old.superseded_by, "", "told", by, now)
    return memories.by_seqs(rows, [old.seq])[old.seq]


def _settle_one(rows: Rows, memory: Memory, near: Sequence[Memory], renames: Mapping[str, str], *, key: bytes) -> None:
    """Makes the newest memory of those `near` that replaces this one, or parts of it, its successor, or nothing.

    What says several things goes on as what nobody replaced of it.
    """
    change = belief_changes.standing(rows, memory.id)
    if (change is not None and change.by not in UNASKED) or (memory.superseded_by and change is None):
        return
    refused = belief_changes.refused(rows, memory.id)
    own = (belief_changes.stated_at(rows, memory), memory.id)
    best: tuple[tuple[str, str], Memory, Ending] | None = None
    replaced: set[str] = set()
    for other in near:
        then = (belief_changes.stated_at(rows, other), other.id)
        # Said in one breath neither overturns the other.
        if other.id in refused or since(memory, other, then[0]) <= own[0]:
            continue
        found = _ending(memory, other, renames)
        if found is None:
            continue
        if not found.is_certain:
            if _may(memory, other) and other.authority == "user":
                ask_about(rows, memory, other, reason=contradiction.UNSURE, sure=found.how.confidence, at=then[0])
        elif not _may(memory, other):
            say_what_stands(rows, memory, other, found.how, at=then[0])
        else:
            replaced |= {*found.parts}
            if best is None or then > best[0]:
                best = then, other, found
    left = contradiction.without(memory.text, tuple(replaced)) if best else ""
    left = wanted(rows, memory, left, key=key)
    rest = of(rows, memory.id)
    if (best[1].id if best else "", left) == (memory.superseded_by, rest.text if rest else ""):
        return
    memory = lifted(rows, memory)
    if best is not None:
        (at, _), other, found = best
        reason = " ".join(found.how.reasons)
        keep(rows, memory, left, key=key, by=RULE, at=at)
        lower(
            rows, memory, other, lowers=found.how.lowers, sure=found.how.confidence, reason=reason, by=RULE,
            at=at,
        )  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class Ending:
    """How one memory replaces another, and which of its parts: all of them, or some; none where a person must tell."""

    how: contradiction.Replacement
    parts: tuple[str, ...]

    @property
    def is_certain(self) -> bool:
        """Whether no person needs to be asked."""
        return bool(self.parts)


def _ending(old: Memory, new: Memory, renames: Mapping[str, str]) -> Ending | None:
    """What a memory that is said later does to an older one; external words do nothing."""
    if new.authority == "external":
        return None
    found = contradiction.replacement(old.text, new.text, renames)
    if found is not None and found.confidence >= contradiction.SURE:
        return Ending(found, contradiction.parts(old.text) or (old.text,))
    if some := contradiction.ended_parts(old.text, new.text, renames):
        return Ending(*some)
    return Ending(found, ()) if found else None


def lower(rows: Rows, old: Memory, new: Memory, *, lowers: float, sure: float, reason: str, by: str, at: str) -> None:
    """Has one memory supersede another, which is so much less sure for it."""
    confidence = round(max(contradiction.LEAST_LEFT, old.confidence - lowers), 4)
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
    belief_changes.note(
        rows,
        old.id,
        belief_changes.SUPERSEDED,
        belief_changes.state(old),
        belief_changes.state(lowered),
        reason,
        by,
        at,
    )
    memories.update_belief(rows, lowered)
    memories.add_link(rows, Link(from_id=old.id, to_id=new.id, relationship="superseded_by", weight=sure), now=at)


def _reach(rows: Rows, home: int) -> list[int] | None:
    """The scopes whose memories one is compared with: a project's own and those around it; None is all."""
    if not home:
        return projects.visible(rows, inside=0)
    return sorted({home, projects.everywhere(rows, home), 0})


def _sharing(rows: Rows, said: str, reach: list[int] | None, renames: Mapping[str, str]) -> list[Memory]:
    """The memories that share words with what is said, by its names of then and of now; the likest first."""
    lower = said.casefold()
    names = [name for pair in renames.items() for name in pair if any(one in lower for one in pair)]
    terms = tokens.query_terms(" ".join([said, *names]))
    found = search.text_hits(rows, "memory", terms, projects=reach, limit=NEAR + 1)
    others = memories.by_seqs(rows, [int(seq) for seq, _ in found])
    return [others[int(seq)] for seq, _ in found]


def _others(memory: Memory, near: Sequence[Memory]) -> list[Memory]:
    """Those near a memory without itself, at most NEAR."""
    return [other for other in near if other.seq != memory.seq][:NEAR]
