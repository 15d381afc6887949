"""Asks a language model about ended sessions, and carries out what is believed of its answers as a dream's actions.

Asking takes seconds and happens before the dream takes its lock, outside of transactions; answers are carried out after
the dream's other phases. A memory that has changed since the question is left alone. A session is asked about once,
whatever the result; if the provider failed, it waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from csmd import wire
from csmd.config import Settings
from csmd.curator import answer, spending
from csmd.curator.answer import Believed, Note, Reason
from csmd.curator.contract import CapReached, NotAllowed, ProviderFailed, Question, Reply
from csmd.curator.question import Candidate, Sheet, Standing, ask_about
from csmd.errors import NoThread
from csmd.knowledge import Link, Memory, Provenance, Statement
from csmd.memory import confidence, remember, supersession
from csmd.privacy.redaction import redact
from csmd.recall import brief, evidence
from csmd.store import belief_changes, curations, digests, journal, memories, memory_links, projects, turns
from csmd.store.core import Store
from csmd.store.curations import CURATED_AS, CURATED_ORIGIN, EndedSession
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows
from csmd.text import display, prose, quotations, sentence, tokens
from csmd.text.language import language_of
from csmd.text.sentence_words import UNSPACED
from csmd.text.similarity import MIN_SURE
from csmd.vocabulary import AUTHORITY_RANK, Authority, Decay

#: Asks one question: yields while waiting for the answer, and returns it.
Ask = Callable[[Question], Generator[None, None, Reply]]
#: Sessions that ended longer ago are not asked about.
MAX_AGE = timedelta(days=60)
#: A session that is quiet for this long has ended.
QUIET = timedelta(hours=1)
#: Most sessions that one dream asks about.
MAX_SESSIONS = 40
#: The confidence of a note.
NOTE_CONFIDENCE = 0.9
#: Fewest content words of a user's sentence that is asked about.
MIN_WORDS = 3
#: Fewest content words of a statement that is clear without the words before it.
CLEAR_WORDS = 8
#: Fewest characters of a user's sentence in a script without spaces.
MIN_UNSPACED = 6
#: A sentence repeats a memory that has at least this share of its characters.
SAME = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A session with the questions about it and the reply to each."""

    ended: EndedSession
    sheets: Sequence[Sheet]
    replies: Sequence[str]


# --- asking


def find_waiting(rows: Rows, *, now: str, settings: Settings) -> list[EndedSession]:
    """Returns the sessions to ask about, the newest first, except those of projects that may not be sent."""
    since, quiet = _times(now)
    waiting = curations.list_waiting(rows, since=since, quiet_before=quiet, now=now)
    may = {root: spending.may_send(rows, root, settings) for root in {ended.root for ended in waiting}}
    return [ended for ended in waiting if may[ended.root]][:MAX_SESSIONS]


def _times(now: str) -> tuple[str, str]:
    """Returns since when sessions are asked about, and the last turn before which a session has ended."""
    at = datetime.fromisoformat(now)
    since, quiet = ((at - span).strftime("%Y-%m-%dT%H:%M:%S.000Z") for span in (MAX_AGE, QUIET))
    return since, quiet


def ask(
    store: Store, ask_one: Ask, *, may_ask: Callable[[], bool], now: str, settings: Settings
) -> Generator[None, None, list[Answered]]:
    """Asks about waiting sessions while it `may_ask`, until the day's cap is reached or the provider fails.

    Returns the answers.

    If only some questions about a session were answered, the rest waits. Each answer is stored as it arrives, so that
    the next dream need not ask again if this one fails.
    """
    answered: list[Answered] = []
    standing: dict[int, list[brief.Candidate]] = {}
    for ended in store.read(partial(find_waiting, now=now, settings=settings)):
        drops = store.read(curations.count_answer_drops)
        sheets = store.read(partial(read_sheets, ended=ended, standing=standing))
        yield
        replies: list[str] = []
        is_over = False
        try:
            for sheet in sheets:
                hashed = tokens.keyed_hash(f"{sheet.question.system}\n{sheet.question.text}", store.hash_key)
                text = store.read(partial(curations.find_kept_answer, session_seq=ended.seq, question_hash=hashed))
                if text is None:
                    if not may_ask():
                        is_over = True
                        break
                    reply = yield from ask_one(sheet.question)
                    text = redact(wire.clean(reply.text[: answer.MAX_ANSWER_CHARS]), Counter())
                    keep = partial(curations.keep_answer, session_seq=ended.seq, question_hash=hashed, text=text)
                    store.write(partial(keep, drops=drops, now=now))
                replies.append(text)
        except NotAllowed:
            continue
        except (CapReached, ProviderFailed, NoThread):
            is_over = True  # `csmd status`, the ledger or the log say why
        if replies or not sheets:
            last = sheets[len(replies) - 1].candidates.values() if is_over else ()
            turns_read = max((candidate.ordinal for candidate in last), default=ended.turns)
            session = ended._replace(turns=turns_read)
            answered.append(Answered(ended=session, sheets=sheets[: len(replies)], replies=replies))
        if is_over:
            break
    return answered


def preview(
    rows: Rows, *, provider: str, most_tokens: int, now: str, settings: Settings
) -> Iterator[tuple[EndedSession, Question]]:
    """Yields the questions that a dream would ask now, exactly as sent, with their sessions, within `most_tokens`."""
    standing: dict[int, list[brief.Candidate]] = {}
    for ended in find_waiting(rows, now=now, settings=settings):
        for sheet in read_sheets(rows, ended, standing):
            most_tokens -= spending.estimate(provider, sheet.question) + sheet.question.most_tokens
            if most_tokens < 0:
                return
            yield ended, spending.redact_question(sheet.question)


def read_sheets(rows: Rows, ended: EndedSession, standing: dict[int, list[brief.Candidate]]) -> list[Sheet]:
    """Returns the questions about a session; [] if it has no candidate.

    `standing` caches, by project, the memories that may be shown at starts.
    """
    candidates = read_candidates(rows, ended)
    if not candidates:
        return []
    versions = digests.of_session(rows, ended.seq)
    if ended.project_seq not in standing:
        places = sorted({ended.project_seq, projects.everywhere_of(rows, ended.project_seq)})
        standing[ended.project_seq] = brief.read_candidates(rows, places=places, session_id="")
    own = {candidate.memory_id for candidate in candidates}
    is_own_project = curations.is_of_one_project(rows, ended)
    shown = brief.choose([item for item in standing[ended.project_seq] if item.memory.id not in own])
    return ask_about(
        root=ended.root, project=projects.name_of(rows, ended.project_seq), ended=ended.last_at[:10],
        digest=versions[-1].text if versions and is_own_project else "", candidates=candidates,
        standing=[Standing(memory_id=item.memory.id, text=brief.make_note(item).text, by=item.memory.authority) for item in shown],
    )  # fmt: skip


def read_candidates(rows: Rows, ended: EndedSession) -> list[Candidate]:
    """Returns what is asked about a session: the memories first stated in it, and other sentences of the user.

    An assistant's sentence that asks to remember something is left out, because it could instruct the model.
    """
    prompts = curations.list_prompts(rows, ended)
    before_of = {prompt.uuid: _last_sentence(prompt.before) for prompt in prompts}
    stated = curations.list_stated_memories(rows, ended)
    memory_of = memories.by_seqs(rows, [seq for _, seq, _ in stated])
    candidates: list[Candidate] = []
    for ordinal, seq, uuid in stated:
        memory = memory_of[seq]
        sentences = prose.split_sentences(memory.text) if memory.authority != "user" else []
        is_request = any(sentence.parse(part, "assistant").remembers for part in sentences)
        if memory.tell or memory.pinned or memory.is_refuted or is_request or memory.authority == "external":
            continue
        candidates.append(
            Candidate(
                uuid=uuid, by=memory.authority, at=memory.created_at, text=display.squeeze(memory.text),
                memory_id=memory.id, sure=memory.confidence, ordinal=ordinal, scene=memory.scene,
                before=_needed_before(memory.text, before_of.get(uuid, "")),
            )
        )  # fmt: skip
    asked_texts = [candidate.text for candidate in candidates if candidate.by == "user"]
    for prompt in prompts:
        for words in _own_sentences(prompt.text):
            if any(words in text or (text in words and len(text) >= SAME * len(words)) for text in asked_texts):
                continue
            asked_texts.append(words)
            candidates.append(
                Candidate(
                    uuid=prompt.uuid, by="user", at=prompt.at, text=words, ordinal=prompt.ordinal,
                    before=_needed_before(words, before_of[prompt.uuid]),
                )
            )  # fmt: skip
    return sorted(candidates, key=lambda candidate: candidate.ordinal)


def _own_sentences(prompt: str) -> Iterator[str]:
    """Yields the user's own sentences of a prompt that say how something is or is to be done."""
    for row in prose.read_prose_lines(prose.remove_code(quotations.blank_quotations(prompt))):
        for part in prose.split_sentences(display.squeeze(row)):
            has_words = len(set(tokens.content_words(part))) >= MIN_WORDS
            enough = has_words or (language_of(part) in UNSPACED and len(part) >= MIN_UNSPACED)
            if enough and sentence.states_something(part):
                yield part


def _needed_before(text: str, before: str) -> str:
    """Returns the words that a short statement answers; "" if it is clear without them."""
    is_clear = len(set(tokens.content_words(text))) >= CLEAR_WORDS and not sentence.refers_back(sentence.parse(text))
    return "" if is_clear else before


def _last_sentence(message: str) -> str:
    rows = prose.read_prose_lines(message)
    return next((part for row in reversed(rows) for part in reversed(prose.split_sentences(row))), "")


# --- believing


def believe(store: Store, dream: Dream, answered: Sequence[Answered], *, now: str) -> Generator[None, None, int]:
    """Carries out what is believed of some answers, one action per write, recorded in the dream's journal.

    Returns how many.
    """
    action_count = 0
    oldest, _ = _times(now)
    store.write(partial(curations.drop_old_answers, before=oldest))
    for reading in answered:
        dropped, notes, stands = Counter[Reason](), 0, None
        act = partial(_carry_out, dream=dream.seq, ended=reading.ended, now=now, key=store.hash_key)
        for sheet, text in zip(reading.sheets, reading.replies, strict=True):
            believed = answer.believe(text, sheet)
            dropped += believed.dropped
            for change in _changes(believed):
                made = store.write(partial(act, change=change))
                action_count, notes = action_count + made, notes + (made > 0 and isinstance(change, Note))
                yield
            stands = believed.stands
        if stands is not None:  # that of the last question, which has the latest words
            action_count += store.write(partial(act, change=stands))
            yield
        counted = " ".join(f"{reason}={number}" for reason, number in sorted(dropped.items()))
        note = partial(
            curations.record_curation, ended=reading.ended, questions=len(reading.sheets), notes=notes, dropped=counted, now=now,
            candidates=sum(len(sheet.candidates) for sheet in reading.sheets),
        )  # fmt: skip
        store.write(note)
        yield
    return action_count


#: `journal.record_action`, bound to a dream and a project.
Record = Callable[..., bool]
Change = Note | tuple[Standing, Candidate] | list[Candidate | Standing]


def _changes(believed: Believed) -> Iterator[Change]:
    yield from believed.notes
    yield from believed.done
    if believed.never:
        yield list(believed.never)


def _carry_out(rows: Rows, *, dream: int, ended: EndedSession, change: Change, now: str, key: bytes) -> int:
    """Carries out one part of an answer in the caller's transaction; returns the number of actions."""
    record = partial(journal.record_action, rows, dream=dream, project=ended.project_seq, now=now)
    if isinstance(change, Note) and change.tell == "never":
        return _record_state(rows, change, record, ended=ended, now=now, key=key)
    if isinstance(change, Note):
        return _make_note(rows, change, record, ended=ended, now=now, key=key)
    if isinstance(change, tuple):
        old, candidate = change
        return _finish(rows, old, candidate, record, now=now)
    return _silence(rows, change, record, now=now)


def _silence(rows: Rows, worthless: Sequence[Candidate | Standing], record: Record, *, now: str) -> int:
    """Marks memories as not worth showing; returns the number of actions."""
    judged: dict[str, tuple[Memory, str]] = {}
    for item in worthless:
        memory = _as_asked(rows, item)
        if memory is not None and _may_silence(memory, is_standing=isinstance(item, Standing)):
            judged[memory.id] = memory, item.uuid if isinstance(item, Candidate) else memory.provenance[0].uuid
    if not judged:
        return 0
    reason = f"judged not worth telling: {display.amount(len(judged), 'memory')}"

    def judge() -> None:
        for memory, uuid in judged.values():
            curations.record_judgement(rows, memory.seq, uuid=uuid, tell="never", at=now)

    evidence_of = [uuid for _, uuid in judged.values()][:4]
    return int(record(judge, kind="judge", reason=reason, evidence=evidence_of, items=list(judged)))


def _as_asked(rows: Rows, item: Candidate | Standing) -> Memory | None:
    """Returns the memory that was asked about, if it is unchanged, living and not pinned."""
    memory = memories.by_id(rows, item.memory_id) if item.memory_id else None
    if memory is None or not memory.is_alive or memory.pinned:
        return None
    # A standing note is asked about in the words in which it is shown, which may differ from its text.
    return memory if isinstance(item, Standing) or display.squeeze(memory.text) == item.text else None


def _is_asked_for(memory: Memory) -> bool:
    """Whether the user asked to keep a memory in mind; no model takes that back."""
    return memory.authority == "user" and evidence.was_asked_to_remember(memory)


def _may_silence(memory: Memory, *, is_standing: bool) -> bool:
    """Whether a model's "never" counts.

    It counts for a user's standing note only if that is shown on weak evidence or a model's word.
    """
    if _is_asked_for(memory):
        return False
    is_firm = memory.authority == "user" and not memory.tell
    return not (is_standing and is_firm and evidence.rate(memory, sessions_since=0).why not in evidence.WEAK)


def _may_end(by: Authority, old: Memory) -> bool:
    """Whether `by` may end a standing note without asking a person; a promise may be ended when it is kept."""
    stays = old.pinned or (old.gate != "promissory" and _is_asked_for(old))
    return AUTHORITY_RANK[by] >= AUTHORITY_RANK[old.authority] and not stays


def _still_exists(rows: Rows, candidate: Candidate) -> bool:
    """Whether a candidate's turn, with its words, or its memory still exists."""
    text = turns.read_text(rows, candidate.uuid)
    if candidate.memory_id:
        return _as_asked(rows, candidate) is not None and bool(text)
    return candidate.text in display.squeeze(text)


def _make_note(rows: Rows, note: Note, record: Record, *, ended: EndedSession, now: str, key: bytes) -> int:
    """Creates the memory of a note, or uses the one that says it already, and replaces what it replaces.

    Returns the number of actions.
    """

    def may_be(memory: Memory, is_same: bool) -> bool:
        return (is_same or memory.origin == CURATED_ORIGIN) and memory.authority == note.by and memory.tell != "noted"

    if (pair := _memory_of(rows, note, may_be, ended=ended, key=key)) is None:
        return 0
    made, last = pair
    cited = [memory for candidate in note.cites if (memory := _as_asked(rows, candidate)) is not None]
    stands = [
        memory
        for memory in cited
        # An assistant's note does not replace what the user said.
        if memory.id != made.id
        and not _is_asked_for(memory)
        and AUTHORITY_RANK[memory.authority] <= AUTHORITY_RANK[note.by]
    ]
    uuid_of = {candidate.memory_id: candidate.uuid for candidate in note.cites}

    def make() -> None:
        seq = made.seq or memories.insert(rows, made, text_hash=tokens.keyed_hash(made.text, key))
        curations.record_judgement(rows, seq, uuid=last.uuid, tell=note.tell, at=now)
        for memory in stands:
            curations.record_judgement(rows, memory.seq, uuid=uuid_of[memory.id], tell="noted", at=now)
            memory_links.add_link(rows, Link(from_id=memory.id, to_id=made.id, relationship=CURATED_AS), now=now)

    reason = f"{note.does} of {display.amount(len(note.cites), 'statement')}, worth telling at {_WHEN[note.tell]}"
    evidence_of = [memory.id for memory in stands] + [candidate.uuid for candidate in note.cites]
    items = [memory.id for memory in stands] + ([made.id] if made.seq else [])
    count = int(record(make, kind="note", reason=reason, evidence=evidence_of, items=items))
    new = memories.by_id(rows, made.id)
    return count + sum(_replace(rows, old, new, record) for old in note.replaces if new is not None)


_WHEN = {"starts": "starts", "tasks": "tasks that need it"}


def _record_state(rows: Rows, note: Note, record: Record, *, ended: EndedSession, now: str, key: bytes) -> int:
    """Records the state in which a session left the work, by an existing or a new memory.

    Returns the number of actions.
    """
    if (pair := _memory_of(rows, note, lambda *_: True, ended=ended, key=key)) is None:
        return 0
    made, last = pair

    def make() -> None:
        seq = made.seq
        if not seq:  # it is shown only with its session
            seq = memories.insert(rows, made, text_hash=tokens.keyed_hash(made.text, key))
            curations.record_judgement(rows, seq, uuid=last.uuid, tell="never", at=now)
        curations.record_work_state(rows, seq, uuid=last.uuid, ended=ended, at=now)

    evidence_of = [candidate.uuid for candidate in note.cites]
    items = [made.id] if made.seq else []
    reason = "says in what state the session left the work"
    return int(record(make, kind="stand", reason=reason, evidence=evidence_of, items=items))


def _memory_of(
    rows: Rows, note: Note, may_be: Callable[[Memory, bool], bool], *, ended: EndedSession, key: bytes
) -> tuple[Memory, Candidate] | None:
    """Returns the memory of a note, and the last candidate that it cites.

    The memory is one that says it already and `may_be` it, or a new one, not stored. None if a cited turn is gone or
    was forgotten.
    """
    if not all(_still_exists(rows, candidate) for candidate in note.cites):
        return None
    project = ended.project_seq
    gate, category = answer.KINDS[note.does]
    statement = Statement(text=note.text, gate=gate, category=category, confidence=NOTE_CONFIDENCE, authority=note.by)
    scope, home = remember.find_scope(rows, statement, project, None if note.is_everywhere else "project")
    last = max(note.cites, key=lambda candidate: (candidate.by == note.by, candidate.at, candidate.ordinal))
    source = Provenance(uuid=last.uuid, session_id=ended.id, at=last.at)
    if remember.is_forgotten(rows, statement, project=project, home=home, at=last.at, key=key):
        return None
    same = memories.by_hash(rows, tokens.keyed_hash(note.text, key), project=home)
    repeated = same or remember.find_repeated(rows, statement, project=home)
    if repeated is not None and repeated.is_alive and not repeated.is_refuted and may_be(repeated, repeated is same):
        return repeated, last
    decay: Decay = "session" if note.is_for_days else "durable"
    made = remember.draft_memory(
        rows, statement, source, home=home, scope=scope, origin=CURATED_ORIGIN, decay=decay,
        for_good=not note.is_for_days,
    )  # fmt: skip
    others = [candidate for candidate in note.cites if candidate.uuid != last.uuid]
    times = {candidate.uuid: candidate.at for candidate in others}
    confirming = (replace(source, uuid=uuid, at=at, role="confirms") for uuid, at in times.items())
    return replace(made, provenance=(source, *confirming)), last


def _replace(rows: Rows, standing: Standing, new: Memory, record: Record) -> int:
    """Replaces an earlier standing note by a new one, or asks a person; returns the number of actions."""
    old = memories.by_id(rows, standing.memory_id)
    if old is None or not old.is_alive or old.id == new.id or new.superseded_by:
        return 0
    at = belief_changes.last_stated_at(rows, new)
    if belief_changes.last_stated_at(rows, old) >= at or new.id in belief_changes.list_refused_successors(rows, old.id):
        return 0
    may = _may_end(new.authority, old)
    asks = confidence.explain_refusal(pinned=old.pinned)
    lowers = confidence.compute_loss(MIN_SURE)
    reason = f"{new.id} says otherwise since {at[:10]}"

    def overturn() -> None:
        if may:
            by, sure = belief_changes.DREAM, MIN_SURE
            supersession.mark_superseded(rows, old, new, lowers=lowers, sure=sure, reason=reason, by=by, at=at)
        else:
            supersession.ask_which_holds(rows, old, new, reason=asks, sure=MIN_SURE, at=at)

    why = {"kind": "supersede", "reason": reason} if may else {"kind": "ask", "reason": asks}
    ids = [old.id, new.id]
    return int(record(overturn, **why, evidence=ids[::-1], items=ids))


def _finish(rows: Rows, standing: Standing, candidate: Candidate, record: Record, *, now: str) -> int:
    """Archives a standing note that a later statement with enough authority says is finished, or asks a person."""
    old, other = memories.by_id(rows, standing.memory_id), memories.by_id(rows, candidate.memory_id)
    is_later = old is not None and old.is_alive and belief_changes.last_stated_at(rows, old) < candidate.at
    if old is None or not is_later or not _still_exists(rows, candidate):
        return 0
    if _may_end(candidate.by, old):
        reason = f"{old.id} was finished on {candidate.at[:10]}"
        archive = partial(belief_changes.archive_memory, rows, old, reason=reason, by=belief_changes.DREAM, now=now)
        evidence_of = [candidate.memory_id or candidate.uuid]
        return int(record(archive, kind="archive", reason=reason, evidence=evidence_of, items=[old.id]))
    return _replace(rows, standing, other, record) if other is not None else 0
