"""Carries out a person's answers in a review.

The effect of an answer depends on the question: about a memory, an inferred belief, a pair of memories, a possible
replacement, or a warning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from csmd.errors import BadInput, CsmdError
from csmd.knowledge import Candidate, Memory, Provenance, Statement
from csmd.memory import confidence, remember, supersession
from csmd.memory.supersession import PERSON
from csmd.store import (
    belief_changes,
    candidates,
    exports,
    journal,
    memories,
    memory_deletion,
    tombstones,
)
from csmd.store.journal import ChangeSet
from csmd.store.sqlite import Rows
from csmd.vocabulary import AUTHORITY_RANK, CandidateKind, CandidateStatus

#: Sources of a memory made of a candidate, in addition to the person's answer.
MAX_EVIDENCE = 3
#: The verbs of answers; a memory is pinned only by its id, not as an answer to a question.
Verb = Literal["keep", "edit", "drop", "supersede", "pin", "unpin"]
Subject = Literal["memory", "belief", "pair", "change", "warning"]

#: A memory without the user's authority waits for review if its confidence is lower.
MIN_UNREVIEWED_CONFIDENCE = 0.7
#: Most days for which such a memory waits.
MAX_WAITING_DAYS = 30
#: Least confidence of a memory that a person kept.
KEPT_CONFIDENCE = 0.9
#: Confidence of a person's new wording of a memory.
TYPED_CONFIDENCE = 0.95
#: Verb -> the reason of a supersession in the audit.
SUPERSEDE_REASONS: Mapping[Verb, str] = {"edit": "worded anew", "supersede": "told"}
SUBJECT_OF_KIND: Mapping[CandidateKind, Subject] = {
    "belief": "belief", "preference": "belief", "worldview": "belief", "opinion": "belief", "drift_warning": "warning",
    "duplicate": "pair", "near_duplicate": "pair", "stale": "memory", "missing_embedding": "memory", "orphan": "memory",
}  # fmt: skip
#: Subject -> verb -> the verb's effect, for people.
EFFECTS: Mapping[Subject, Mapping[Verb, str]] = {
    "memory": {
        "keep": "confirms it as your own statement", "edit": "replaces it by your wording",
        "drop": "deletes it; it will not be relearned", "supersede": "replaces it by another memory",
    },
    "belief": {
        "keep": "remembers it as your statement", "edit": "remembers your wording",
        "drop": "rejects it; it will not be proposed again",
        "supersede": "remembers it and replaces another memory by it",
    },
    "pair": {
        "keep": "keeps both; you will not be asked again", "edit": "replaces both by your wording",
        "drop": "deletes the second; it will not be relearned", "supersede": "replaces the second by the first",
    },
    "change": {
        "keep": "keeps both; you will not be asked again", "edit": "replaces both by your wording",
        "drop": "keeps the older and deletes the newer, which will not be relearned",
        "supersede": "replaces the older, or the part that the newer is about",
    },
    "warning": {
        "keep": "marks it as seen", "edit": "remembers your wording",
        "drop": "rejects it; it will not be shown again",
    },
}  # fmt: skip
#: Kind -> the heading of its text.
TITLES: Mapping[CandidateKind, str] = {
    "belief": "inferred", "preference": "inferred preference", "worldview": "inferred view", "opinion": "inferred opinion",
    "drift_warning": "drift", "duplicate": "duplicate", "near_duplicate": "near duplicate", "stale": "faded",
    "missing_embedding": "without a vector", "orphan": "without a source",
}  # fmt: skip
#: Headings of candidates from edited pages and of possible replacements, by source and kind.
TITLES_OF: Mapping[tuple[str, CandidateKind], str] = {
    ("page", "stale"): "removed from a page", ("page", "belief"): "written on a page by a tool",
    (supersession.SOURCE, "stale"): "replaced?",
}  # fmt: skip


def title_of(candidate: Candidate) -> str:
    """Returns the heading of a candidate in the review."""
    return TITLES_OF.get((candidate.source, candidate.kind), TITLES[candidate.kind])


def subject_of(candidate: Candidate, alive: int) -> Subject:
    """Returns the subject of a candidate of which `alive` memories still exist."""
    if candidate.source == supersession.SOURCE:
        return "change" if alive > 1 else "warning"
    subject = SUBJECT_OF_KIND[candidate.kind]
    if subject == "pair" and alive < 2:
        return "memory" if alive else "warning"
    return "warning" if subject == "memory" and not alive else subject


def rank_strength(memory: Memory) -> tuple[int, bool, float, str, str]:
    """Returns a sort key that puts the memory to keep last of two that say the same.

    It compares authority, pin, confidence and recency.
    """
    return AUTHORITY_RANK[memory.authority], memory.pinned, memory.confidence, memory.confirmed_at, memory.id


def explain_review(memory: Memory) -> str:
    """Returns the reason why a memory waits for a person's review."""
    if memory.origin == "model_saved":
        is_external = memory.authority == "external"
        source = "it was imported from another program" if is_external else "an assistant saved it by itself"
        return f"{source}: it is not shown to sessions until you keep it"
    speaker = "an assistant" if memory.authority == "assistant" else "another program"
    return f"{speaker} stated it, with a confidence of only {memory.confidence * 100:.0f} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewAnswer:
    """A person's answer: `uuid` and `at` identify it as a source, `key` is the store's hash key.

    `text` is a new wording, `other` the second memory of a supersession.
    """

    verb: Verb
    uuid: str
    at: str
    key: bytes
    text: str = ""
    other: Memory | None = None

    @property
    def source(self) -> Provenance:
        """The answer as the source of its statement."""
        return Provenance(uuid=self.uuid, session_id="", at=self.at)


def record_memory_answer(rows: Rows, memory: Memory, answer: ReviewAnswer) -> ChangeSet:
    """Carries out an answer about a memory, and records it in the journal."""
    if memory.superseded_by and answer.verb in ("keep", "edit", "pin"):
        newer = memory.superseded_by
        raise CsmdError(f"{memory.id} was superseded by {newer}", hint=f"csmd show {newer}")
    return journal.record_answer(
        rows, lambda: answer_memory(rows, memory, answer), kind=answer.verb, item=memory.id, project=memory.project_seq,
        now=answer.at,
    )  # fmt: skip


def record_candidate_answer(rows: Rows, candidate: Candidate, answer: ReviewAnswer) -> ChangeSet:
    """Carries out an answer about a candidate, settles it, and records both in the journal."""
    quoted = filter(None, (memories.by_id(rows, memory_id) for memory_id in candidate.memory_ids))
    alive = [memory for memory in quoted if not memory.superseded_by]
    subject = subject_of(candidate, len(alive))
    if answer.verb not in EFFECTS[subject]:
        hint = "csmd review lists the possible answers"
        raise BadInput(f"{candidate.id} cannot be answered with {answer.verb}", hint=hint)

    def act() -> str:
        created_id, status = _ANSWERERS[subject](rows, candidate, alive, answer)
        stored = candidates.by_id(rows, candidate.id)  # it is deleted with a memory that it quotes
        settled = replace(stored, version=candidate.version) if stored else None
        if settled and not candidates.set_status(rows, settled, status, now=answer.at):
            raise CsmdError(f"{candidate.id} has changed since it was shown", hint="csmd review")
        return created_id

    project = candidate.project_seq
    return journal.record_answer(rows, act, kind=answer.verb, item=candidate.id, project=project, now=answer.at)


Outcome = tuple[str, CandidateStatus]


def answer_memory(rows: Rows, memory: Memory, answer: ReviewAnswer) -> str:
    """Carries out an answer about a memory without recording it; returns the id of the resulting memory, or ""."""
    match answer.verb:
        case "keep":
            return _keep_memory(rows, memory, answer)
        case "edit":
            return _reword(rows, [memory], answer)
        case "drop":
            return _drop_memory(rows, memory, answer, staying=None)
        case "pin" | "unpin":
            return _set_pin(rows, memory, answer)
    if answer.other is None:
        raise BadInput(f"no memory given to replace {memory.id}", hint=f"csmd review {memory.id} --supersede ID")
    return _supersede(rows, memory, answer.other, answer)


def _answer_pair(rows: Rows, candidate: Candidate, alive: Sequence[Memory], answer: ReviewAnswer) -> Outcome:
    """Carries out an answer about two memories that say the same, or about a possible replacement."""
    is_replacement = candidate.source == supersession.SOURCE
    if is_replacement:
        by_id = {memory.id: memory for memory in alive}
        first, second = (by_id[memory_id] for memory_id in candidate.memory_ids[:2])
    else:
        first, second = sorted(alive[:2], key=rank_strength, reverse=True)
    if answer.verb == "edit":
        return _reword(rows, [first, second], answer), "done"
    if answer.verb == "drop":
        return _drop_memory(rows, second, answer, staying=first), "done"
    if answer.verb != "keep":
        old, new = (first, second) if is_replacement else (second, first)
        return _supersede(rows, old, new, answer), "done"
    for memory, other in ((first, second), (second, first)) if is_replacement else ():
        kind = belief_changes.REFUSED
        belief_changes.record_change(rows, memory.id, kind, other.id, "", "both hold", PERSON, answer.at)
    return "", "dropped"  # it is not proposed again


def _answer_belief(rows: Rows, candidate: Candidate, alive: Sequence[Memory], answer: ReviewAnswer) -> Outcome:
    if answer.verb == "drop":
        return "", "dropped"
    text = answer.text if answer.verb == "edit" else candidate.text
    statement, project = _to_statement(candidate, text), candidate.project_seq
    created_id = _remember(rows, statement, project, answer, reworded_id=candidate.id)
    if answer.verb != "edit":
        for item in candidate.evidence:
            if not item.against and _read_memory(rows, created_id).times <= MAX_EVIDENCE:
                source = Provenance(uuid=item.uuid, session_id=item.session_id, at=item.at, role="confirms")
                memories.add_provenance(rows, _read_memory(rows, created_id).seq, source)
    if answer.verb == "supersede":
        old = answer.other or next(iter(alive), None)
        if old is None:
            raise BadInput(f"{candidate.id} contradicts no memory", hint="name one: --supersede ID")
        _supersede(rows, old, _read_memory(rows, created_id), answer)
    return created_id, "promoted"


def _answer_warning(rows: Rows, candidate: Candidate, _: Sequence[Memory], answer: ReviewAnswer) -> Outcome:
    if answer.verb == "edit":
        statement = _to_statement(candidate, answer.text)
        return _remember(rows, statement, candidate.project_seq, answer, reworded_id=candidate.id), "done"
    return "", "dropped" if answer.verb == "drop" else "done"


_ANSWERERS: dict[Subject, Callable[[Rows, Candidate, Sequence[Memory], ReviewAnswer], Outcome]] = {
    "memory": lambda rows, _, alive, answer: (answer_memory(rows, alive[0], answer), "done"),
    "pair": _answer_pair,
    "change": _answer_pair,
    "belief": _answer_belief,
    "warning": _answer_warning,
}


# --- effects; each returns the id of the resulting memory, or ""


def _keep_memory(rows: Rows, memory: Memory, answer: ReviewAnswer) -> str:
    """Makes a memory the person's own statement, with at least KEPT_CONFIDENCE."""
    statement = _to_statement(memory, memory.text)
    remember.confirm(rows, memory, statement, answer.source, pinned=memory.pinned)
    current = _read_memory(rows, memory.id)
    certainty = max(current.confidence, confidence.clamp(KEPT_CONFIDENCE, current.category, current.gate))
    return _save(rows, memory, replace(current, confidence=certainty), answer, reason="a person kept it")


def _reword(rows: Rows, olds: Sequence[Memory], answer: ReviewAnswer) -> str:
    """Creates a memory in the person's wording, which supersedes the older ones."""
    old = olds[0]
    statement = _to_statement(old, answer.text)
    created_id = _remember(rows, statement, old.project_seq, answer, pinned=old.pinned, reworded_id=old.id)
    for memory in olds:
        if memory.id != created_id:
            _supersede(rows, memory, _read_memory(rows, created_id), answer)
    return created_id


def _set_pin(rows: Rows, memory: Memory, answer: ReviewAnswer) -> str:
    """Pins a memory, so that it never fades, or unpins it, so that it fades from now on."""
    if answer.verb == "pin":
        changed = replace(memory, pinned=True, decay="permanent", tier="durable")
    else:
        changed = remember.unpin(replace(memory, used_at=max(memory.used_at, answer.at)))  # its age starts again
    return _save(rows, memory, changed, answer, reason=f"a person {answer.verb}ned it")


def _save(rows: Rows, memory: Memory, changed: Memory, answer: ReviewAnswer, *, reason: str) -> str:
    supersession.save_belief(rows, memory, changed, kind=answer.verb, reason=reason, by=PERSON, at=answer.at)
    return memory.id


def _drop_memory(rows: Rows, memory: Memory, answer: ReviewAnswer, *, staying: Memory | None) -> str:
    """Deletes a memory and prevents its relearning; a statement of it then confirms the similar memory `staying`."""
    memory_deletion.delete_memory(rows, memory)
    correction = memory.gate == "correction"
    home = memory.project_seq
    tombstones.forget(rows, memory.text, correction=correction, by="user", key=answer.key, now=answer.at, scope=home)
    if staying is not None and supersession.is_forgotten(rows, staying, staying.text, key=answer.key):
        tombstones.remove_forgetting(rows, memory.text, scope=home, at=answer.at, key=answer.key)
    before = belief_changes.belief_state(memory)
    belief_changes.record_change(rows, memory.id, "drop", before, "", "a person dropped it", PERSON, answer.at)
    return ""


def _supersede(rows: Rows, old: Memory, new: Memory, answer: ReviewAnswer) -> str:
    """Supersedes one memory by another; the older stays searchable."""
    reason, key = SUPERSEDE_REASONS.get(answer.verb, "told"), answer.key if answer.verb == "supersede" else b""
    supersession.supersede(rows, _read_memory(rows, old.id), new, by=PERSON, now=answer.at, reason=reason, key=key)
    return new.id


def _remember(
    rows: Rows, statement: Statement, project: int, answer: ReviewAnswer, *, reworded_id: str, pinned: bool = False
) -> str:
    """Creates a memory of a person's statement; CsmdError if it was forgotten or purged."""
    created_id, _ = remember.remember(
        rows, statement, answer.source, project=project, origin="stated", key=answer.key, pinned=pinned,
        reworded_id=reworded_id,
    )  # fmt: skip
    if not created_id:
        hint = "`csmd remember` in a terminal allows forgotten text again, `csmd forget --lift` purged text"
        raise CsmdError("this text, or a part of it, was forgotten or purged", hint=hint)
    belief_changes.record_change(rows, created_id, answer.verb, "", "", "a person stated it", PERSON, answer.at)
    return created_id


# --- imported memories

ImportVerb = Literal["keep", "drop"]
IMPORT_VERBS: tuple[ImportVerb, ...] = ("keep", "drop")
#: Memories in one write of an answer; other writes wait for it.
ANSWER_BATCH = 20
MAX_IMPORTED = 100_000
#: Precedes the program's name in the audit of an imported memory, unless it came from csmd's own export.
_IMPORT_REASON = "imported from "
OWN_EXPORT = "csmd export"
#: Prefix of the id of an import.
IMPORT_PREFIX = "i"


@dataclass(frozen=True, slots=True)
class Import:
    """An import: its program (or `csmd export`), its file or "", its time, and the ids of its waiting memories."""

    id: str
    source: str
    path: str
    at: str
    waiting: tuple[str, ...]


def read_imports(rows: Rows, project_seqs: Sequence[int] | None, *, since: str) -> list[Import]:
    """Returns the imports with waiting memories in some projects (None: all), the latest first.

    `since` is the oldest time of a memory that waits.
    """
    seqs = memories.list_review_seqs(
        rows, projects=project_seqs, below=MIN_UNREVIEWED_CONFIDENCE, since=since, limit=MAX_IMPORTED
    )
    imports: dict[str, Import] = {}
    for memory_id, reason, at in exports.list_imported(rows, seqs):
        source, _, rest = reason.removeprefix(_IMPORT_REASON).partition(": ")
        if not reason.startswith(_IMPORT_REASON):
            source = OWN_EXPORT
        _, slash, path = rest.rpartition(", /")
        key = IMPORT_PREFIX + hashlib.sha256(f"{source}:{at}".encode()).hexdigest()[:10]
        earlier = imports.setdefault(key, Import(key, source, slash[2:] + path if slash else "", at, ()))
        imports[key] = replace(earlier, waiting=(*earlier.waiting, memory_id))
    return sorted(imports.values(), key=lambda item: (item.at, item.id), reverse=True)


def find_import(imports: Sequence[Import], typed: str) -> Import | None:
    """Returns the import with an id (or its beginning), a program's name or a path, or None; BadInput if ambiguous."""
    prefix = typed if len(typed) > 1 else None
    matches = [row for row in imports if typed in (row.source, row.path) or (prefix and row.id.startswith(prefix))]
    if len(matches) > 1:
        ids = ", ".join(row.id for row in matches)
        raise BadInput(f"{typed!r} names several imports: {ids}", hint="give the id of one; `csmd review` lists them")
    return matches[0] if matches else None


def record_import_answer(rows: Rows, memory_ids: Sequence[str], answer: ReviewAnswer, *, item: str) -> ChangeSet:
    """Keeps or drops some memories of the import `item`, and records it as one answer."""

    def act() -> str:
        for memory_id in memory_ids:
            memory = memories.by_id(rows, memory_id)
            if memory is not None and not memory.superseded_by:
                answer_memory(rows, memory, answer)
        return ""

    existing = filter(None, (memories.by_id(rows, memory_id) for memory_id in memory_ids))
    project = next((memory.project_seq for memory in existing), 0)
    return journal.record_answer(rows, act, kind=answer.verb, item=item, project=project, now=answer.at)


def answers_given_with(rows: Rows, answer: ChangeSet) -> list[ChangeSet]:
    """Returns an answer with those given together with it (all about the same import), the latest first."""
    return journal.list_answers_given_with(rows, answer) if answer.item.startswith(IMPORT_PREFIX) else [answer]


# --- statements


def _to_statement(item: Candidate | Memory, text: str) -> Statement:
    """Returns a person's statement of the kind of a candidate or memory; instead of a memory it counts as typed."""
    is_memory = isinstance(item, Memory)
    certainty = TYPED_CONFIDENCE if is_memory else max(item.confidence, KEPT_CONFIDENCE)
    draft = Statement(text=text, gate=item.gate, category=item.category, confidence=certainty, authority="user")
    return replace(draft, reasons=("review",))


def _read_memory(rows: Rows, memory_id: str) -> Memory:
    memory = memories.by_id(rows, memory_id)
    if memory is None:
        raise CsmdError(f"memory {memory_id!r} no longer exists")
    return memory
