"""Belief's hands, and the one door through which anything becomes a memory: `remember`."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from csmd import text
from csmd.believe import score
from csmd.model import AUTHORITY_RANK, CATEGORIES, Authority, Decay, Memory, Provenance, Statement
from csmd.store import context, cursors, memories, projects, search, tombstones
from csmd.store.core import Store
from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows

STAGE = "believe"
#: Statements believed in one write: it looks for the same in the store, and a hook may be waiting behind it.
BATCH = 10
#: A memory that the assistant asked to be kept, without anybody having said it (design section 2).
MODEL_SAVED = "model_saved"
EXPLICIT = "remember"
#: With the turn that states it a memory names at most four (design section 2).
MOST_BESIDE = 3


def believe(store: Store) -> tuple[int, int]:
    """Turns the next batch of statements into memories; (statements looked at, memories new)."""
    if not store.read(is_behind):  # a write is a commit: where nothing waits there is none
        return 0, 0

    def write(rows: Rows) -> tuple[int, int]:
        found = memories.statements_after(rows, cursors.cursor(rows, STAGE, "statements"), limit=BATCH)
        new = 0
        for _, statement, uuid, session, at, project, _ in found:
            source = Provenance(uuid=uuid, session_id=session, at=at)
            _, is_new = remember(rows, statement, source, project=project, origin="stated", key=store.hash_key)
            new += is_new
        if found:
            cursors.move_cursor(rows, STAGE, "statements", found[-1][0])
        return len(found), new

    return store.write(write)


def is_behind(rows: Rows) -> bool:
    """Whether a statement waits to become a memory."""
    return bool(memories.statements_after(rows, cursors.cursor(rows, STAGE, "statements"), limit=1))


def remember(
    rows: Rows,
    statement: Statement,
    source: Provenance,
    *,
    project: int,
    origin: str,
    key: bytes,
    pinned: bool = False,
) -> tuple[str, bool]:
    """Makes a memory of a statement, or confirms the one that says the same; (its id, whether it is new).

    Gives ("", False) for what the user made csmd forget. The authority of the path is kept: a
    confirmation raises it only when the confirming turn has the higher one, and what the
    assistant saved by itself confirms nothing.
    """
    if is_forgotten(rows, statement, key=key):
        return "", False
    text_hash = text.keyed_hash(statement.text, key)
    name = projects.name_of(rows, project)
    scope = score.scope(statement.text, gate=statement.gate, project_name=name)
    home = project if scope == "project" else projects.everywhere(rows, project)
    known = memories.by_hash(rows, text_hash, project=home) or _same(rows, statement, project=home)
    if known is not None:
        if origin != MODEL_SAVED:
            _confirm(rows, known, statement, source, pinned=pinned)
            _note_beside(rows, known.seq, statement, source)
        return known.id, False
    explicit = EXPLICIT in statement.reasons or pinned
    decay: Decay = "permanent" if pinned else CATEGORIES[statement.category].decay
    confidence = score.clamp(statement.confidence, statement.category, statement.gate)
    limits = score.thresholds(
        confidence,
        decay=decay,
        gate=statement.gate,
        category=statement.category,
        today=projects.active_day(rows, home, on=source.at[:10]),
        stated=statement.authority == "user",
    )
    memory = Memory(
        id=_free_identity(rows, home, statement.text),
        text=statement.text,
        gate=statement.gate,
        category=statement.category,
        type=CATEGORIES[statement.category].type,
        tier=score.tier(decay=decay, explicit=explicit, confirmations=1, confidence=confidence),
        decay=decay,
        authority=statement.authority,
        origin=origin,
        confidence=confidence,
        scope=scope,
        project_seq=home,
        session_id=source.session_id,
        created_at=source.at,
        confirmed_at=source.at,
        hot_until=limits.hot_until,
        warm_until=limits.warm_until,
        archive_at=limits.archive_at,
        pinned=pinned,
        provenance=(source,),
    )
    seq = memories.insert(rows, memory, text_hash=text_hash)
    _note_beside(rows, seq, statement, source)
    return memory.id, True


def _note_beside(rows: Rows, seq: int, statement: Statement, source: Provenance) -> None:
    """Cites the turns that are the other half of a statement."""
    for uuid in statement.also[:MOST_BESIDE]:
        memories.add_provenance(rows, seq, replace(source, uuid=uuid, role="beside"))


def is_forgotten(rows: Rows, statement: Statement, *, key: bytes) -> bool:
    """Whether the user made csmd forget this statement, said so or nearly so, or purged a part of it."""
    if PURGED in statement.text or tombstones.marks(rows, key).spans(statement.text):
        return True
    correction, authority = statement.gate == "correction", statement.authority
    return tombstones.keeps_out(rows, statement.text, correction=correction, authority=authority, key=key)


def forget(rows: Rows, memory: Memory, *, key: bytes, now: str, by_person: bool) -> None:
    """Removes a memory with the sentences it came from, and sees to it that none like them becomes one again.

    What an assistant has forgotten keeps out, and removes, only what assistants said.
    """
    memories.delete_statements_of(
        rows,
        memory,
        text_hash=text.keyed_hash(memory.text, key),
        is_same=lambda said: text.says_the_same(said, memory.text),
        by_assistants=not by_person,
    )
    memories.delete(rows, memory)
    by: Authority = "user" if by_person else "assistant"
    tombstones.forget(rows, memory.text, correction=memory.gate == "correction", by=by, key=key, now=now)


def unforget(rows: Rows, statement: Statement, *, key: bytes) -> None:
    """Lets a statement be remembered again: a person says it on purpose."""
    tombstones.lift(rows, statement.text, correction=statement.gate == "correction", key=key)


def _same(rows: Rows, statement: Statement, *, project: int) -> Memory | None:
    """A memory of the scope that says the same in nearly the same words, the likest first.

    A correction repeats only corrections: said against something else it must not confirm it.
    """
    terms = text.query_terms(statement.text)
    near = search.text_hits(rows, "memory", terms, projects=[project], limit=5)
    found = memories.by_seqs(rows, [int(seq) for seq, _ in near])
    for seq, _ in near:
        memory = found[int(seq)]
        against = "correction" in (statement.gate, memory.gate) and statement.gate != memory.gate
        if not against and text.says_the_same(statement.text, memory.text):
            return memory
    return None


def _confirm(rows: Rows, known: Memory, statement: Statement, source: Provenance, *, pinned: bool) -> None:
    """Notes that another turn says the same: more confidence, and the age begins again.

    Who said it first is told by the time it was said at, not by which was heard first: a past is heard newest first.
    An assistant that repeats what it was told is using the memory, not confirming it.
    """
    if statement.authority == "assistant" and context.was_told(rows, source.session_id, known.id):
        return
    if not memories.add_provenance(rows, known.seq, replace(source, role="confirms")):
        return
    if source.at < known.created_at and known.origin == "stated":
        memories.stated_earlier(rows, known.seq, source)
    raised = AUTHORITY_RANK[statement.authority] > AUTHORITY_RANK[known.authority]
    confidence = score.confirm(known.confidence, pinned=known.pinned)
    decay: Decay = "permanent" if pinned else known.decay
    authority = statement.authority if raised else known.authority
    confirmed_at = max(known.confirmed_at, source.at)
    limits = score.thresholds(
        confidence,
        decay=decay,
        gate=known.gate,
        category=known.category,
        today=projects.active_day(rows, known.project_seq, on=confirmed_at[:10]),
        stated=authority == "user",
    )
    memories.update_belief(
        rows,
        replace(
            known,
            confidence=confidence,
            authority=authority,
            origin="stated" if raised else known.origin,
            tier="durable" if pinned or (len(known.provenance) >= 1 and confidence > 0.9) else known.tier,
            decay=decay,
            confirmed_at=confirmed_at,
            hot_until=limits.hot_until,
            warm_until=limits.warm_until,
            archive_at=limits.archive_at,
            pinned=known.pinned or pinned,
        ),
    )


def _free_identity(rows: Rows, project: int, body: str) -> str:
    """As `_identity`; another one when a memory has it that was merged into another scope since."""
    ident, number = _identity(project, body), 1
    while memories.by_id(rows, ident) is not None:
        ident, number = _identity(project, f"{body} ({number})"), number + 1
    return ident


def _identity(project: int, body: str) -> str:
    """A memory's id: the same statement of the same scope has the same on every machine that heard it."""
    return "m" + hashlib.sha256(f"{project}:{text.normalise(body)}".encode()).hexdigest()[:10]
