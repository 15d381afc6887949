"""Decides which memories replace older ones, marks these as superseded, and undoes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

from csmd.errors import BadInput
from csmd.knowledge import Candidate, Evidence, Link, Memory
from csmd.memory import confidence
from csmd.memory.scope import identity
from csmd.store import (
    belief_changes,
    candidates,
    curations,
    fulltext,
    memories,
    memory_deletion,
    memory_links,
    projects,
    search,
    tombstones,
)
from csmd.store.sqlite import Rows
from csmd.text import claims, clauses, display, prose, search_terms, similarity, tokens
from csmd.text.claims import find_renames, follow_renames
from csmd.text.sentence import RULES, parse
from csmd.text.similarity import Comparison, compare
from csmd.text.switches import find_switch, is_left
from csmd.vocabulary import AUTHORITY_RANK

#: The source of candidates that ask whether a newer memory replaces an older one.
SOURCE = "supersede"
#: Most characters of a memory that a candidate quotes.
MAX_QUOTED_CHARACTERS = 160
#: Audit entry of a memory that holds the remaining parts of a replaced one.
REST_KEPT = "left"
#: The authors of a supersession.
RULE = "rule"
PERSON = "person"
ASSISTANT = "assistant"
#: Authors whose supersessions are decided again after a new statement.
AUTOMATIC = (RULE, belief_changes.DREAM)
#: The reason of a comparison: the subject of the older memory was given up.
_SUBJECT_LEFT = "left"
#: Most memories with common words that are compared with a memory.
MAX_NEAR = 20
#: Words with which statements of renames are found.
RENAME_WORDS = ("renamed", "called", "named")
#: Most statements of renames that are read for one scope.
MAX_RENAMES = 50
#: Most renames of a name that are followed.
MAX_RENAME_STEPS = 4
#: Least share of a superseded statement's own words in a text that restates it.
MIN_OWN_SHARE = 0.5
#: Least share of all its words, in another session.
MIN_WHOLE_SHARE = 0.5
#: Most replacements in a chain that is followed.
MAX_CHAIN = 8
#: Most superseded memories that are read.
MAX_REPLACED = 200


def quote(memory: Memory) -> str:
    """Quotes a memory's text, cut to MAX_QUOTED_CHARACTERS."""
    return f'"{display.cut(display.squeeze(memory.text), MAX_QUOTED_CHARACTERS)}"'


def refresh_thresholds(rows: Rows, memory: Memory) -> Memory:
    """Recomputes a memory's attention thresholds from its values and the day it was last confirmed or used."""
    today = projects.active_day(rows, memory.project_seq, on=memory.fresh_at[:10])
    return confidence.set_thresholds(memory, today=today)


def save_belief(rows: Rows, old: Memory, new: Memory, *, kind: str, reason: str, by: str, at: str) -> Memory:
    """Stores a changed memory with fresh thresholds, records the change, and returns the memory."""
    new = refresh_thresholds(rows, new)
    memories.update_belief(rows, new)
    before, after = belief_changes.belief_state(old), belief_changes.belief_state(new)
    belief_changes.record_change(rows, old.id, kind, before, after, reason, by, at)
    return new


def is_forgotten(rows: Rows, memory: Memory, text: str, *, key: bytes) -> bool:
    """Whether the user made csmd forget `text`, as a memory of this kind and project."""
    return tombstones.is_statement_forgotten(
        rows, text, correction=memory.gate == "correction", authority=memory.authority, project=memory.project_seq,
        at=memory.created_at, key=key,
    )  # fmt: skip


def ask_which_holds(rows: Rows, old: Memory, new: Memory, *, reason: str, sure: float, at: str) -> str:
    """Queues the question which of two memories holds; returns its candidate's id, "" if it was answered before."""
    fingerprint = f"{old.id}:{new.id}"
    for waiting in candidates.find_waiting(rows, [(old.project_seq, "stale", fingerprint)]):
        return waiting.id
    source = new.provenance[0]
    evidence = Evidence(uuid=source.uuid, session_id=source.session_id, at=source.at, against=True)
    question = Candidate(
        id=candidates.make_candidate_id("stale", old.project_seq, fingerprint, at), kind="stale", source=SOURCE,
        project_seq=old.project_seq, fingerprint=fingerprint, text=f"{quote(old)} or {quote(new)}", reason=reason,
        confidence=sure, gate=old.gate, category=old.category, created_at=at, updated_at=at, status="needs_review",
        memory_ids=(old.id, new.id), evidence=(evidence,),
    )  # fmt: skip
    return candidates.put_candidate(rows, question)


# --- the parts that remain of a replaced memory


def free_identity(rows: Rows, project: int, body: str) -> str:
    """Returns a new memory's id; numbered if a memory that moved to another scope still has the usual one."""
    memory_id = identity(project, body)
    for number in count(1):
        if memories.by_id(rows, memory_id) is None:
            break
        memory_id = identity(project, f"{body} ({number})")
    return memory_id


def find_rest(rows: Rows, memory_id: str) -> Memory | None:
    """Returns the memory of the remaining parts of a replaced memory, or None."""
    seq = memory_links.find_second_half(rows, memory_id)
    return memories.by_seqs(rows, [seq])[seq] if seq else None


def find_remaining_text(rows: Rows, whole: Memory, ended: Sequence[str], *, key: bytes) -> str:
    """Returns the text of a memory without its `ended` parts; "" if it is remembered already, or was forgotten."""
    text = clauses.text_without(whole.text, ended) if ended else ""
    if not text or is_forgotten(rows, whole, text, key=key):
        return ""
    repeated = memories.by_hash(rows, tokens.keyed_hash(text, key), project=whole.project_seq)
    current = find_rest(rows, whole.id)
    return text if repeated is None or (current is not None and repeated.id == current.id) else ""


def keep_rest(rows: Rows, whole: Memory, text: str, *, key: bytes, by: str, at: str) -> None:
    """Creates the memory of the remaining parts, with the confidence and age of the whole; none for ""."""
    if not text:
        return
    memory_id = free_identity(rows, whole.project_seq, text)
    # The whole is durable because it is a rule or a choice; a rest that is neither is not.
    tier = "daily" if whole.tier == "durable" and _is_rule(whole.text) and not _is_rule(text) else whole.tier
    rest = refresh_thresholds(rows, replace(whole, id=memory_id, text=text, tier=tier, superseded_by="", version=1))
    memories.insert(rows, rest, text_hash=tokens.keyed_hash(text, key))
    link = Link(from_id=whole.id, to_id=rest.id, relationship=memory_links.GOES_ON_AS, weight=1.0)
    memory_links.add_link(rows, link, now=at)
    reason = f"the rest of {whole.id}, of which a part was replaced"
    belief_changes.record_change(rows, rest.id, REST_KEPT, "", "", reason, by, at)


def _is_rule(text: str) -> bool:
    """Whether a sentence of a text states a rule."""
    return any(parse(sentence).lasting in RULES for sentence in prose.split_sentences(text))


# --- superseding


def undo_supersession(rows: Rows, change: belief_changes.Change, *, at: str) -> None:
    """Undoes a supersession: the memory holds again, and the memory of its remaining parts is deleted."""
    belief_changes.undo_supersession(rows, change, at=at)
    for seq in memory_links.release_second_half(rows, change.memory_id):
        memory_deletion.delete_memory(rows, memories.by_seqs(rows, [seq])[seq])


def undo_automatic_supersession(rows: Rows, memory: Memory) -> Memory:
    """Undoes a supersession that csmd decided, so that a confirmation starts from the former confidence."""
    change = belief_changes.latest_change(rows, memory.id)
    if change is None or change.by not in AUTOMATIC:
        return memory
    undo_supersession(rows, change, at=memory.confirmed_at)
    return memories.by_seqs(rows, [memory.seq])[memory.seq]


class NearMemories(NamedTuple):
    """Memories with words in common with a text, most similar first, and the renames in their scopes."""

    memories: Sequence[Memory]
    renames: Mapping[str, str]


def find_near(rows: Rows, text: str, home: int) -> NearMemories:
    """Looks up memories near a text; the most expensive step, so it is done once for each statement."""
    reach = _visible_scopes(rows, home)
    renames = read_renames(rows, reach)
    return NearMemories(_find_sharing_words(rows, text, reach, renames), renames)


@dataclass(frozen=True, slots=True)
class RelatedMemories:
    """Memories on the same subject as a new one; `doubtful` are those that it may replace."""

    replaced: Sequence[Memory]
    doubtful: Sequence[Memory]
    related: Sequence[Memory]


def find_related(rows: Rows, memory: Memory) -> RelatedMemories:
    """Finds what a memory has superseded, and visible memories on the same subject, most similar first."""
    nearby = find_near(rows, memory.text, memory.project_seq)
    others = [other for other in nearby.memories if other.id != memory.id]
    current = [other for other in others if not other.superseded_by]
    compared = [(other, _compare(other, memory, nearby.renames)) for other in current]
    related = [other for other, comparison in compared if comparison.relation != "unrelated"]
    doubtful = [other for other, comparison in compared if comparison.contradicts]
    return RelatedMemories(
        replaced=[other for other in others if other.superseded_by == memory.id], doubtful=doubtful,
        related=[other for other in related if other not in doubtful],
    )  # fmt: skip


def apply_supersessions(rows: Rows, memory_id: str, *, key: bytes) -> None:
    """Decides what a newly confirmed memory replaces, and what replaces it."""
    memory = memories.by_id(rows, memory_id)
    if memory is not None:
        _apply_among(rows, memory, find_near(rows, memory.text, memory.project_seq), key=key)


def apply_supersessions_of_new(rows: Rows, memory: Memory, nearby: NearMemories, *, key: bytes) -> None:
    """Decides what a new memory replaces, given its neighbours, which are looked up again if it renames something."""
    if find_renames(memory.text):
        nearby = find_near(rows, memory.text, memory.project_seq)
    _apply_among(rows, memory, nearby, key=key)


def _apply_among(rows: Rows, memory: Memory, nearby: NearMemories, *, key: bytes) -> None:
    renames, others = nearby.renames, _drop_itself(memory, nearby.memories)
    changed = find_renames(memory.text)
    changed_names = {name for pair in (*changed, *renames.items()) for name in pair} if changed else set()
    for other in others:
        folded = other.text.casefold()
        is_renamed = any(name in folded for name in changed_names)
        if is_renamed or other.superseded_by == memory.id or _compare(other, memory, renames).contradicts:
            around = _find_sharing_words(rows, other.text, _visible_scopes(rows, other.project_seq), renames)
            _update_superseding(rows, other, _drop_itself(other, around), renames, key=key)
    _update_superseding(rows, memory, others, renames, key=key)


def read_renames(rows: Rows, scopes: list[int] | None, *, of: Sequence[str] = ()) -> dict[str, str]:
    """Returns old names -> present ones, from the memories of some scopes; with `of`, only for these names."""
    names, renames = list(of), dict[str, str]()
    for _ in range(MAX_RENAME_STEPS):
        hits = fulltext.text_hits(rows, "memory", RENAME_WORDS, any_of=names, projects=scopes, limit=MAX_RENAMES)
        renames = follow_renames(search.list_memory_texts(rows, [int(seq) for seq, _ in hits]))
        further = [name for pair in renames.items() for name in pair if name not in names] if of else []
        if not further:
            break
        names += further
    return renames


def supersede(
    rows: Rows, old: Memory, new: Memory, *, by: str, now: str, reason: str = "told", key: bytes = b""
) -> Memory:
    """Supersedes one memory by another at someone's request; returns the older one as it is then.

    With the store's `key`, parts of the older one that the newer does not mention still hold.
    """
    after: Memory | None = new
    visited: set[str] = set()
    while after is not None and after.id not in visited:
        visited.add(after.id)
        if after.id == old.id:
            what = f"{new.id} cannot supersede {old.id}: they are the same, or {old.id} already supersedes it"
            raise BadInput(what, hint="name the older memory first, then the newer one")
        after = memories.by_id(rows, after.superseded_by) if after.superseded_by else None
    change = belief_changes.latest_change(rows, old.id)
    if change is not None:
        if old.superseded_by != new.id:
            reason = f"{reason}; until then {old.superseded_by} did"
        undo_supersession(rows, change, at=now)
        old = memories.by_seqs(rows, [old.seq])[old.seq]
    if key:
        remaining = find_remaining_text(rows, old, clauses.mentioned_parts(old.text, new.text), key=key)
        keep_rest(rows, old, remaining, key=key, by=by, at=now)
    mark_superseded(rows, old, new, lowers=confidence.MAX_LOSS, sure=1.0, reason=reason, by=by, at=now)
    return memories.by_seqs(rows, [old.seq])[old.seq]


def undo(rows: Rows, old: Memory, *, by: str, now: str) -> Memory:
    """Undoes a supersession for good: no rule repeats it. BadInput if nothing supersedes the memory."""
    change = belief_changes.latest_change(rows, old.id)
    if change is None:
        raise BadInput(f"nothing supersedes {old.id}", hint=f"`csmd show {old.id}`")
    undo_supersession(rows, change, at=now)
    belief_changes.record_change(rows, old.id, belief_changes.REFUSED, old.superseded_by, "", "told", by, now)
    return memories.by_seqs(rows, [old.seq])[old.seq]


def _update_superseding(
    rows: Rows, memory: Memory, near: Sequence[Memory], renames: Mapping[str, str], *, key: bytes
) -> None:
    """Makes the newest of the memories `near` that replaces this one, or a part of it, its successor, if any does.

    The remaining parts become a memory of their own.
    """
    change = belief_changes.latest_change(rows, memory.id)
    if (change is not None and change.by not in AUTOMATIC) or (memory.superseded_by and change is None):
        return
    refused = belief_changes.list_refused_successors(rows, memory.id)
    stated_at = belief_changes.last_stated_at(rows, memory)
    endings: list[_Ending] = []
    for other in near:
        at = belief_changes.last_stated_at(rows, other)
        # Repeating a general statement elsewhere does not end a project's exception to it.
        contradicts_at = other.created_at if memory.scope == "project" != other.scope else at
        # Of two statements made at the same time neither replaces the other.
        if other.id in refused or contradicts_at <= stated_at:
            continue
        comparison = _compare(memory, other, renames)
        if not comparison.contradicts:
            continue
        if reason := _find_question(memory, other, comparison):
            ask_which_holds(rows, memory, other, reason=reason, sure=comparison.confidence, at=at)
        elif comparison.parts:
            endings.append(_Ending(at, other, comparison))
    ended = {part for ending in endings for part in ending.comparison.parts}
    remaining = find_remaining_text(rows, memory, tuple(ended), key=key)
    best = max(endings, key=lambda ending: (ending.at, ending.successor.id), default=None)
    rest = find_rest(rows, memory.id)
    if (best.successor.id if best else "", remaining) == (memory.superseded_by, rest.text if rest else ""):
        return
    memory = undo_automatic_supersession(rows, memory)
    if best is not None:
        at, successor, comparison = best
        keep_rest(rows, memory, remaining, key=key, by=RULE, at=at)
        loss, reason = confidence.compute_loss(comparison.confidence), " ".join(comparison.reasons)
        mark_superseded(rows, memory, successor, lowers=loss, sure=comparison.confidence, reason=reason, by=RULE, at=at)


class _Ending(NamedTuple):
    """The end of a memory: when and by which successor, with their comparison."""

    at: str
    successor: Memory
    comparison: Comparison


def _find_question(old: Memory, new: Memory, comparison: Comparison) -> str:
    """Returns the reason to ask a person whether one memory replaces another; "" if no question is needed."""
    may_supersede = _may_supersede(old, new)
    if comparison.parts:
        return "" if may_supersede else confidence.explain_refusal(pinned=old.pinned)
    if not may_supersede or not (new.authority == "user" or are_single_sentences(old, new)):
        return ""
    is_given_up = _SUBJECT_LEFT in comparison.reasons
    return confidence.SUBJECT_GIVEN_UP if is_given_up else confidence.DOUBTFUL_REPLACEMENT


def are_single_sentences(*stated: Memory) -> bool:
    """Whether each memory is a single sentence; longer statements make unclear questions."""
    return all(len(prose.split_sentences(memory.text)) <= 1 for memory in stated)


def _may_supersede(old: Memory, new: Memory) -> bool:
    """Whether one memory may supersede another without asking.

    A project's is an exception to a general one, not its end.
    """
    if old.pinned or new.origin == "model_saved":
        return False
    if old.scope != "project" and new.project_seq != old.project_seq:
        return False
    return AUTHORITY_RANK[new.authority] >= AUTHORITY_RANK[old.authority]


def _compare(old: Memory, new: Memory, renames: Mapping[str, str]) -> Comparison:
    """Compares a later memory with an earlier one; external content contradicts nothing."""
    if new.authority == "external":
        return Comparison(relation="unrelated")
    comparison = compare(old.text, new.text, renames=renames)
    switch = None if comparison.parts or new.authority != "user" else find_switch(new.text)
    if switch is None or not is_left(old.text, switch):
        return comparison
    return Comparison(relation="may replace", confidence=similarity.DOUBTFUL_CONFIDENCE, reasons=(_SUBJECT_LEFT,))


def mark_superseded(
    rows: Rows, old: Memory, new: Memory, *, lowers: float, sure: float, reason: str, by: str, at: str
) -> None:
    """Supersedes one memory by another, and lowers its confidence by `lowers`."""
    remaining = round(max(confidence.MIN_REMAINING, old.confidence - lowers), 4)
    superseded = replace(old, confidence=remaining, superseded_by=new.id)
    save_belief(rows, old, superseded, kind=belief_changes.SUPERSEDED, reason=reason, by=by, at=at)
    memory_links.add_link(rows, Link(from_id=old.id, to_id=new.id, relationship="superseded_by", weight=sure), now=at)


def _visible_scopes(rows: Rows, home: int) -> list[int] | None:
    """Returns the scopes whose memories are compared: the project's own and the general ones; None for all."""
    if not home:
        return projects.list_visible_projects(rows, inside=0)
    return sorted({home, projects.everywhere_of(rows, home), 0})


def _find_sharing_words(rows: Rows, text: str, reach: list[int] | None, renames: Mapping[str, str]) -> list[Memory]:
    """Returns the user's memories with words in common with a text, under old and new names, most similar first."""
    lower = text.casefold()
    names = [name for pair in renames.items() for name in pair if any(term in lower for term in pair)]
    terms = search_terms.query_terms(" ".join([text, *names]))
    others = search.memories_matching(rows, terms, projects=reach, limit=MAX_NEAR + 1)
    return [other for other in others if not other.author]


def _drop_itself(memory: Memory, near: Sequence[Memory]) -> list[Memory]:
    """Returns at most MAX_NEAR of the memories near a memory, without that memory."""
    return [other for other in near if other.seq != memory.seq][:MAX_NEAR]


# --- texts that restate a superseded statement
#
# A superseded memory is marked as such; other texts that say the same are not: the assistant's "okay, I will use
# Redis", the first order of a session, items of a checkpoint. They are recognised by their words: they contain words
# of the superseded statement, none that only its replacement has, and are older than the replacement.


class Replacement(NamedTuple):
    """A superseded memory and the one that replaces it now."""

    old: Memory
    new: Memory


def find_restated(text: str, *, at: str, session: str, replaced: Sequence[Replacement]) -> Replacement | None:
    """Returns the first replacement whose superseded statement is restated by a text of a session and time, or None."""
    words = tokens.content_stems(text) if replaced else frozenset()
    return next((pair for pair in replaced if _is_restated_by(words, at, session, pair)), None)


def _is_restated_by(words: frozenset[str], at: str, session: str, replaced: Replacement) -> bool:
    old_stems, new = tokens.content_stems(replaced.old.text), replaced.new
    new_stems = tokens.content_stems(new.text) - claims.find_denied_stems(new.text)
    own_stems = old_stems - new_stems
    if at >= new.confirmed_at or words & (new_stems - old_stems) or similarity.share(own_stems, words) < MIN_OWN_SHARE:
        return False
    stated_here = session != "" and any(source.session_id == session for source in replaced.old.provenance)
    return stated_here or similarity.share(old_stems, words) >= MIN_WHOLE_SHARE


def read_replaced(rows: Rows, project_seqs: Sequence[int]) -> list[Replacement]:
    """Returns the superseded memories of some projects with their replacements, the latest first."""
    seqs = belief_changes.list_superseded_seqs(rows, project_seqs, limit=MAX_REPLACED)
    return read_replacements(rows, memories.by_seqs(rows, seqs).values())


def read_replacements(rows: Rows, superseded: Iterable[Memory]) -> list[Replacement]:
    """Pairs superseded memories with the ones that replace them now."""
    pairs = ((memory, find_replacement(rows, memory)) for memory in superseded)
    return [Replacement(memory, current) for memory, current in pairs if current is not None]


def read_given_up(rows: Rows, project_seqs: Sequence[int]) -> dict[str, Memory]:
    """Maps the ids of memories whose subject was given up in some projects to the memories that give it up.

    A pair is left out once a person has answered the question about it in `csmd review`.
    """
    questions = candidates.list_questions(rows, confidence.SUBJECT_GIVEN_UP, projects=project_seqs)
    pairs = dict(question.memory_ids for question in questions if len(question.memory_ids) == 2)
    newer = {memory_id: memories.by_id(rows, memory_id) for memory_id in set(pairs.values())}
    return {old: memory for old, new in pairs.items() if (memory := newer[new]) is not None}


def find_replacement(rows: Rows, memory: Memory) -> Memory | None:
    """Returns the memory at the end of a chain of replacements; None if it is gone, or the chain does not end."""
    current: Memory | None = memory
    for _ in range(MAX_CHAIN):
        if current is None or not current.gives_way:
            return current
        current = memories.by_id(rows, current.superseded_by or curations.find_note(rows, current.seq))
    return None
