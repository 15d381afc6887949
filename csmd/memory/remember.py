"""Turns statements into memories or confirmations, and forgets memories.

No other module creates a memory of a statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from csmd import data
from csmd.extraction import classifier
from csmd.extraction.classifier import Classification
from csmd.knowledge import Memory, Provenance, Statement
from csmd.memory import confidence, supersession
from csmd.memory.scope import describes_user, scope_of
from csmd.memory.supersession import refresh_thresholds
from csmd.privacy.fingerprints import PURGED
from csmd.store import (
    belief_changes,
    core,
    cursors,
    memories,
    memory_deletion,
    memory_links,
    memory_scenes,
    projects,
    search,
    session_context,
    statement_rows,
    tombstones,
)
from csmd.store import forget as forgotten
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import restatement, search_terms, sentence, similarity, tokens
from csmd.text.sentence import has, tells_what_was_done
from csmd.vocabulary import AUTHORITY_RANK, CATEGORIES, Authority, Decay, MemdirType, MemoryType, Scope

STAGE = "believe"
#: Most statements of one write: each is compared with the store, and a hook may be waiting.
BATCH = 5
#: The origin of a memory that an assistant saved by itself.
MODEL_SAVED = "model_saved"
#: The origin of a memory that was stated in a conversation.
STATED = "stated"
#: The reason of a statement that the user asked to remember.
ASKED_TO_REMEMBER = "remember"
#: Most memories compared with a statement, those that share most words with it.
MAX_NEAR = 5
#: Most turns of the same exchange that a memory cites besides the one that states it.
MAX_CONTEXT_TURNS = 3
#: Words of an error message or a failure.
_FAILURE_WORDS = re.compile(
    r"\b(?:errors?|exception|traceback|panics?|segfaults?|core dump|stack trace|exit(?:s|ed)? (?:code|status|with)|"
    r"crash(?:es|ed)?|fail(?:s|ed|ure|ing)?|times? out|timed out|refused|denied)\b|\b\w+(?:Error|Exception)\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\bhttps?://[^\s/]")
#: A correction with one of these words is about the moment.
_STATUS_WORDS = data.word_table("sentence_words.txt")["trouble.en"] | frozenset("already still again yet".split())


def believe(store: Store) -> tuple[int, int]:
    """Turns the next batch of statements into memories; returns (statements read, new memories)."""
    if not store.read(is_behind):  # a write is a commit even if it changes nothing
        return 0, 0

    def write(rows: Rows) -> tuple[int, int]:
        batch = statement_rows.list_statements_after(rows, cursors.read_cursor(rows, STAGE, "statements"), limit=BATCH)
        read_count = new_count = 0
        for seq, statement, uuid, session, at, project in core.within_short_write(batch):
            source = Provenance(uuid=uuid, session_id=session, at=at)
            _, is_new = remember(rows, statement, source, project=project, origin=STATED, key=store.hash_key)
            read_count += 1
            new_count += is_new
            cursors.move_cursor(rows, STAGE, "statements", seq)
        return read_count, new_count

    return store.write(write)


def is_behind(rows: Rows) -> bool:
    """Whether a statement waits to become a memory."""
    return bool(statement_rows.list_statements_after(rows, cursors.read_cursor(rows, STAGE, "statements"), limit=1))


def remember(
    rows: Rows, statement: Statement, source: Provenance, *, project: int, origin: str, key: bytes,
    pinned: bool = False, reworded_id: str = "", scope: Scope | None = None, type_: MemoryType | None = None,
) -> tuple[str, bool]:  # fmt: skip
    """Makes a memory of a statement, or confirms the memory that says the same; returns (its id, whether it is new).

    Returns ("", False) for a statement that the user made csmd forget, and for one of external authority: that is
    evidence, and becomes a memory only if another program's memories are imported (MODEL_SAVED). A confirmation raises
    the memory's authority only if the confirming turn has a higher one; what an assistant saved by itself confirms
    nothing. If the statement is a person's new wording of `reworded_id` (a memory or candidate), neither that nor
    a superseded memory counts as the same. `scope` and `type_` override those that its words imply.
    """
    at = source.at if origin in (STATED, MODEL_SAVED) else ""  # a counted fact has no time
    classified = _classify(statement)
    scope, home = find_scope(rows, statement, project, scope)
    is_evidence = statement.authority == "external" and origin != MODEL_SAVED
    if is_evidence or is_forgotten(rows, statement, project=project, home=home, at=at, key=key):
        return "", False
    if at and statement.authority == "user":
        is_correction = statement.gate == "correction"
        tombstones.record_restated(rows, statement.text, correction=is_correction, project=project, at=at, key=key)
    text_hash = tokens.keyed_hash(statement.text, key)
    existing = memories.by_hash(rows, text_hash, project=home)
    if existing is None or _is_reworded(existing, reworded_id):
        near = supersession.find_near(rows, statement.text, home)
        in_scope = [memory for memory in near.memories if memory.project_seq == home]
        existing = _find_first_repeated(statement, in_scope, reworded_id=reworded_id)
    if existing is not None:
        existing = belief_changes.find_surviving_memory(rows, existing)
        if origin != MODEL_SAVED:
            confirm(rows, existing, statement, source, pinned=pinned)
            _cite_context(rows, existing.seq, statement, source)
            supersession.apply_supersessions(rows, existing.id, key=key)
        return existing.id, False
    # A counted fact is in csmd's words, which do not say how long it holds.
    decay: Decay = "permanent" if pinned else classified.decay if at else CATEGORIES[statement.category].decay
    for_good = bool(at) and _is_for_good(statement, decay)
    memory = replace(
        draft_memory(rows, statement, source, home=home, scope=scope, origin=origin, decay=decay, for_good=for_good),
        type=type_ or choose_type(statement, kind=search.find_kind(rows, source.uuid)), pinned=pinned,
    )  # fmt: skip
    memory = refresh_thresholds(rows, memory)
    seq = memories.insert(rows, memory, text_hash=text_hash)
    _cite_context(rows, seq, statement, source)
    supersession.apply_supersessions_of_new(rows, replace(memory, seq=seq), near, key=key)
    return memory.id, True


def draft_memory(
    rows: Rows, statement: Statement, source: Provenance, *, home: int, scope: Scope, origin: str, decay: Decay,
    for_good: bool,
) -> Memory:  # fmt: skip
    """Returns the memory that a statement becomes in the project `home`, with a new id, without storing it."""
    certainty = confidence.clamp(statement.confidence, statement.category, statement.gate)
    memory = Memory(
        id=supersession.free_identity(rows, home, statement.text), text=statement.text, gate=statement.gate,
        category=statement.category, type=CATEGORIES[statement.category].type,
        tier=confidence.choose_tier(decay=decay, for_good=for_good, sessions=1, confidence=certainty), decay=decay,
        authority=statement.authority, origin=origin, confidence=certainty, scope=scope, project_seq=home,
        session_id=source.session_id, created_at=source.at, confirmed_at=source.at, hot_until=0, warm_until=0,
        archive_at=0, provenance=(source,),
    )  # fmt: skip
    return refresh_thresholds(rows, memory)


def choose_type(statement: Statement, *, kind: str) -> MemoryType:
    """Returns the type of the memory that a statement becomes; `kind` is that of its turn ("" without a turn)."""
    by_assistant = statement.authority == "assistant"
    if by_assistant and has("own", "en", statement.text):
        return "self_continuity"
    if kind == "summary":
        return "conversation"
    if statement.category == "gotcha" and _FAILURE_WORDS.search(statement.text):
        return "error"
    if by_assistant and tells_what_was_done(statement.text):
        return "episodic"
    return CATEGORIES[statement.category].type


def choose_host_type(memory: Memory) -> MemdirType:
    """Returns the type of a memory among Claude Code's four; one about a project with an address is a reference."""
    host_type = CATEGORIES[memory.category].memdir
    return "reference" if host_type == "project" and names_address(memory.text) else host_type


def names_address(text: str) -> bool:
    """Whether a text contains a web address."""
    return _ADDRESS.search(text) is not None


def _is_reworded(memory: Memory, reworded_id: str) -> bool:
    """Whether a memory is the reworded one or superseded, so that the new wording does not repeat it."""
    return bool(reworded_id) and (memory.id == reworded_id or bool(memory.superseded_by))


def _classify(statement: Statement) -> Classification:
    """Classifies a statement by its words alone."""
    return classifier.classify(statement.text, speaker="assistant" if statement.authority == "assistant" else "user")


def _is_for_good(statement: Statement, decay: Decay) -> bool:
    """Whether a user states something for good, and not only for the moment.

    They ask to remember it, or state a rule, a ban, a taste, a choice or a correction; a question or an order never is.
    """
    parsed = sentence.parse(statement.text)
    if statement.authority != "user" or ASKED_TO_REMEMBER in statement.reasons or parsed.remembers:
        return statement.authority == "user"
    is_lasting_correction = statement.gate == "correction" and _STATUS_WORDS.isdisjoint(parsed.words)
    is_rule = parsed.lasting in sentence.RULES or is_lasting_correction
    return decay == "durable" and is_rule and parsed.kind == "states" and not (parsed.is_of_moment or parsed.is_musing)


def unpin(memory: Memory) -> Memory:
    """Returns a memory without its pin, with the decay that its words imply and the tier that it has earned."""
    gate, category, authority, certainty = memory.gate, memory.category, memory.authority, memory.confidence
    statement = Statement(text=memory.text, gate=gate, category=category, confidence=certainty, authority=authority)
    decay = _classify(statement).decay
    for_good = _is_for_good(statement, decay)
    sessions = len(memory.sessions)
    tier = confidence.choose_tier(decay=decay, for_good=for_good, sessions=sessions, confidence=certainty)
    return replace(memory, pinned=False, decay=decay, tier=tier)


def find_scope(rows: Rows, statement: Statement, project: int, scope: Scope | None = None) -> tuple[Scope, int]:
    """Returns the scope of a statement made in a project, and the row of the project or of its general memories."""
    if scope is None:
        name = projects.name_of(rows, project)
        by_user = statement.authority == "user"
        if by_user and describes_user(statement.text, project_name=name):
            scope = "user"
        else:
            of_speaker = by_user and _classify(statement).about_speaker
            scope = scope_of(statement.text, gate=statement.gate, about_speaker=of_speaker, project_name=name)
    return scope, project if scope == "project" else projects.everywhere_of(rows, project)


def _cite_context(rows: Rows, seq: int, statement: Statement, source: Provenance) -> None:
    """Cites the other turns of the same exchange that support a statement."""
    for uuid in statement.also[:MAX_CONTEXT_TURNS]:
        memories.add_provenance(rows, seq, replace(source, uuid=uuid, role="beside"))


def is_forgotten(
    rows: Rows, statement: Statement, *, project: int, at: str, key: bytes, home: int | None = None
) -> bool:
    """Whether the user made csmd forget this statement or a similar one, or purged a part of it.

    The statement was made in a project at the time `at` ("" for a counted fact) and applies in `home`. A statement made
    after the forgetting is allowed.
    """
    if PURGED in statement.text or tombstones.purged_marks(rows, key).spans(statement.text):
        return True
    return tombstones.is_statement_forgotten(
        rows, statement.text, correction=statement.gate == "correction", authority=statement.authority,
        project=project, home=project if home is None else home, at=at, key=key,
    )  # fmt: skip


def forget(
    rows: Rows, memory: Memory, *, key: bytes, now: str, by_person: bool,
    quoted_in: forgotten.Traces = forgotten.NO_TRACES,
) -> None:  # fmt: skip
    """Deletes a memory and the sentences it came from, and keeps similar ones from becoming memories in its scope.

    A general memory is deleted together with those of projects in the same words, and the remaining part of a memory
    with the whole. An assistant forgets, and keeps out, only what assistants said. `quoted_in` lists the notes that
    already quote it (`store.forget`).
    """
    for whole in memory_links.list_whole_memories(rows, memory):
        if by_person or whole.authority != "user":
            forget(rows, whole, key=key, now=now, by_person=by_person)
    text_hash = tokens.keyed_hash(memory.text, key)
    home = memory.project_seq
    same = forgotten.list_memories_below_scope(rows, text_hash, scope=home)
    same = [other for other in same if by_person or other.authority != "user"]
    traces = [(memory, forgotten.erase_traces(rows, memory, quoted_in))]
    traces += [(other, forgotten.erase_traces(rows, other, forgotten.NO_TRACES)) for other in same]
    for deleted, _ in traces:
        if memories.by_id(rows, deleted.id) is None:  # deleted with another that it was merged into
            continue
        forgotten.delete_sentences(
            rows, deleted, text_hash=text_hash, scope=home, by_assistants=not by_person,
            is_same=lambda text: similarity.repeats(text, memory.text),
        )  # fmt: skip
        for source in deleted.provenance:  # another memory's scene may quote it
            memory_scenes.forget_scenes(rows, source.uuid)
        by_whom = "person" if by_person else "assistant"
        belief_changes.record_event(rows, deleted.id, belief_changes.FORGOTTEN, by=by_whom, at=now)
        memory_deletion.delete_memory(rows, deleted)
    by: Authority = "user" if by_person else "assistant"
    tombstones.forget(rows, memory.text, correction=memory.gate == "correction", by=by, key=key, now=now, scope=home)
    for deleted, files in traces:
        forgotten.erase_from_files(rows, deleted, files, key=key)


def unforget(rows: Rows, statement: Statement, *, project: int, key: bytes) -> None:
    """Lets a forgotten statement be remembered again in a project, because a person makes it on purpose."""
    is_correction = statement.gate == "correction"
    _, home = find_scope(rows, statement, project)
    tombstones.remove_statement(rows, statement.text, correction=is_correction, project=project, home=home, key=key)


def find_repeated(rows: Rows, statement: Statement, *, project: int) -> Memory | None:
    """Returns the most similar memory of a scope that says the same in nearly the same words, or None."""
    terms = search_terms.query_terms(statement.text)
    return _find_first_repeated(statement, search.memories_matching(rows, terms, projects=[project], limit=MAX_NEAR))


def _find_first_repeated(statement: Statement, near: Sequence[Memory], *, reworded_id: str = "") -> Memory | None:
    """Returns the first of the memories `near` that a statement repeats; a correction repeats corrections only."""
    for memory in near[:MAX_NEAR]:
        is_other_kind = (statement.gate == "correction") != (memory.gate == "correction")
        if is_other_kind or _is_reworded(memory, reworded_id):
            continue
        texts = statement.text, memory.text
        forward, backward = similarity.compare(*texts), similarity.compare(*reversed(texts))
        # One may amend the other with nearly the same words: "drop support for 3.8".
        is_amended = forward.replaces or backward.replaces
        is_repeated = similarity.repeats(*texts) and not restatement.has_swapped_roles(*texts)
        if not is_amended and (forward.says_all or is_repeated):
            return memory
    return None


def confirm(rows: Rows, memory: Memory, statement: Statement, source: Provenance, *, pinned: bool) -> None:
    """Records that another turn says the same: confidence rises, and the memory's age starts again.

    The earliest turn counts as stating the memory, because the past is imported newest first. An assistant that
    repeats an injected memory uses it, and does not confirm it.
    """
    if statement.authority == "assistant" and session_context.is_injected(rows, source.session_id, memory.id):
        use(rows, memory, at=source.at)
        return
    if not memories.add_provenance(rows, memory.seq, replace(source, role="confirms")):
        return
    if source.at < memory.created_at and memory.origin == STATED:
        memories.set_stating_turn(rows, memory.seq, source)
    memory = supersession.undo_automatic_supersession(rows, memories.by_seqs(rows, [memory.seq])[memory.seq])
    is_raised = AUTHORITY_RANK[statement.authority] > AUTHORITY_RANK[memory.authority]
    certainty = confidence.confirm(memory.confidence, pinned=memory.pinned)
    decay: Decay = "permanent" if pinned else memory.decay
    sessions = len(memory.sessions | {source.session_id})
    for_good = pinned or _is_for_good(statement, decay)
    tier = confidence.choose_tier(decay=decay, for_good=for_good, sessions=sessions, confidence=certainty)
    confirmed = replace(
        memory, confidence=certainty, authority=statement.authority if is_raised else memory.authority,
        origin=STATED if is_raised else memory.origin,
        tier=tier if tier == "durable" or memory.tier == "archive" else memory.tier, decay=decay,
        confirmed_at=max(memory.confirmed_at, source.at), pinned=memory.pinned or pinned,
    )  # fmt: skip
    memories.update_belief(rows, refresh_thresholds(rows, confirmed))


def use(rows: Rows, memory: Memory, *, at: str) -> None:
    """Records that a session used a memory: its age starts again; confidence and tier stay as they are."""
    if at > memory.fresh_at and not memory.superseded_by:
        memories.update_belief(rows, refresh_thresholds(rows, replace(memory, used_at=at)))
