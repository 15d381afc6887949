"""Turns values into the JSON of answers, and finds them by the beginning of an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from csmd.briefs import Brief
from csmd.errors import BadInput, CsmdError, NotFound
from csmd.extraction.candidate_passages import MAX_CHARACTERS
from csmd.knowledge import Candidate, Memory
from csmd.memory import confidence, review_answers
from csmd.privacy.fingerprints import Marks
from csmd.privacy.redaction import redact
from csmd.recall.visibility import is_visible
from csmd.store import activity, candidates, memories, projects, search, sessions
from csmd.store.search import TurnRow
from csmd.store.sessions import Session
from csmd.store.sqlite import Rows, ids_like
from csmd.text import display, prose
from csmd.text.search_terms import query_terms
from csmd.text.tokens import content_words
from csmd.tools.declaration import Json, ToolContext, resolve_id

#: Turns shown before and after the one that states a memory.
TURNS_AROUND = 2
#: Characters shown of each of these turns.
MAX_TURN_CHARACTERS = 240
#: Characters of a passage.
MAX_PASSAGE_CHARACTERS = 600
MEMORY_FIELDS = (
    "id text gate type category tier decay authority origin confidence attention pinned scope project source_uuids times "
    "session_id sessions created_at confirmed_at superseded_by is_refuted is_edited scene author"
)
CANDIDATE_FIELDS = (
    "id kind source status text reason gate category confidence reinforcement contradicted project created_at updated_at "
    "version memories evidence"
)


def as_json(value: Any, field_names: str, **more: Any) -> Json:
    """Returns the named attributes of a value, in this order, then `more`; `key=attribute` renames one.

    A value in `more` replaces the attribute of that name. Tuples become lists, dataclasses objects.
    """
    fields: Json = {}
    for name in field_names.split():
        key, _, attribute = name.partition("=")
        fields[key] = more.pop(key) if key in more else _to_plain(getattr(value, attribute or key))
    return {**fields, **more}


def _to_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def check_words(arguments: Mapping[str, str], allowed: Mapping[str, Sequence[str]]) -> None:
    """Raises BadInput for a filter that is not one of its allowed words; "" means no filter."""
    for name, value in arguments.items():
        if value and value not in allowed[name]:
            raise BadInput(f"there is no {name} {value[:60]!r}", hint=f"choose one of {', '.join(allowed[name])}")


def read_roots(rows: Rows) -> dict[int, str]:
    """Returns the root directory of each project, by its row key."""
    return {seq: root for seq, root, *_ in activity.project_counts(rows)}


def line_uuids(uuids: Sequence[str]) -> list[str]:
    """Returns the uuids of the transcript lines of the first turns, at most four; turns of one line share a uuid."""
    return list(dict.fromkeys(uuid.partition("/")[0] for uuid in uuids))[:4]


def refuse_purged(marks: Marks, text: str, what: str) -> None:
    """Raises CsmdError if a part of a text was purged."""
    if marks.spans(text):
        raise CsmdError(f"a part of that {what} was purged", hint="`csmd forget --lift` lets purged text in again")


def refuse_ambiguous(word: str, ids: Collection[str]) -> None:
    """Raises BadInput if a typed text begins several ids."""
    if len(ids) > 1:
        raise BadInput(f"{word!r} begins several ids: {', '.join(ids)}", hint="type more of the id")


def refuse_secrets(text: str) -> str:
    """Puts typed text on one line; BadInput if it holds a secret.

    It is refused rather than redacted, so that the user learns of the secret.
    """
    counts: Counter[str] = Counter()
    redact(text, counts)
    if counts:
        what = f"the text contains a secret ({', '.join(sorted(counts))}); nothing was stored"
        raise BadInput(what, hint="write where the secret is, not the secret")
    return display.squeeze(text)


def normalise_typed_text(words: str) -> str:
    """Puts text to be remembered on one line; BadInput if it is empty, too long, or holds a secret."""
    text = refuse_secrets(words)
    if not content_words(text):
        raise BadInput("the text has no words to remember", hint="write a sentence")
    if len(text) > MAX_CHARACTERS:
        what = f"the text has {len(text)} characters, and one memory has {MAX_CHARACTERS} at most"
        raise BadInput(what, hint="write it shorter, or as several memories")
    return text


# --- memories


def find_memory(rows: Rows, word: str, asking: str) -> Memory:
    """Returns a memory by its id or the beginning of it; NotFound if the caller may see none."""
    memory = memories.by_id(rows, resolve_id(word, ids_like(rows, "memories", word)))
    if memory is None or not is_visible(rows, memory.project_seq, asking=asking):
        raise NotFound(f"there is no memory {word!r}", hint="`csmd memories` lists them with their ids")
    return memory


def memories_json(rows: Rows, listed_memories: Iterable[Memory]) -> list[Json]:
    """Returns memories as `csmd memories --json` shows them; `project` is "" for one that applies everywhere."""
    root_of, day_of = read_roots(rows), dict[int, int]()
    values = []
    for memory in listed_memories:
        if memory.project_seq not in day_of:
            day_of[memory.project_seq] = projects.active_day(rows, memory.project_seq)
        today = day_of[memory.project_seq]
        until = {"hot_until": memory.hot_until, "warm_until": memory.warm_until}
        attention = confidence.classify_attention(today=today, **until)
        values.append(as_json(
            memory, MEMORY_FIELDS, attention=attention, project=root_of.get(memory.project_seq, ""),
            source_uuids=line_uuids([source.uuid for source in memory.provenance]),
            sessions=list(dict.fromkeys(source.session_id for source in memory.provenance)),
        ))  # fmt: skip
    return values


def brief_memory_json(memory: Memory) -> Json:
    """Returns a memory in short: its text, who said it first, when, and where."""
    source = memory.provenance[0]
    names = "id text authority author confidence at=created_at uuid session_id superseded_by"
    return as_json(memory, names, uuid=source.uuid, session_id=source.session_id)


def sources_json(rows: Rows, memory: Memory, asking: str) -> list[Json]:
    """Returns the turns that state or confirm a memory; the first with the turns around it."""
    turns = _read_turns(rows, [source.uuid for source in memory.provenance], asking)
    values: list[Json] = []
    for source in memory.provenance:
        turn = turns.get(source.uuid)
        entry = as_json(source, "uuid session_id at role", **_passage_json(turn, memory.text))
        if turn and not values:
            entry["around"] = surrounding_turns_json(rows, turn, asking)
        values.append(entry)
    return values


def _read_turns(rows: Rows, uuids: list[str], asking: str) -> dict[str, TurnRow]:
    seqs = search.turns_of_uuids(rows, uuids)
    turns = search.turns_by_seq(rows, list(seqs.values()))
    return {uuid: turns[seq] for uuid, seq in seqs.items() if is_visible(rows, turns[seq].project_seq, asking=asking)}


def _passage_json(turn: TurnRow | None, statement: str) -> Json:
    """Returns the speaker, the passage around a statement, and the sentence in it most similar to the statement."""
    if turn is None:
        return {"speaker": "", "text": "", "sentence": ""}
    passage = prose.excerpt(turn.text, query_terms(statement), limit=MAX_PASSAGE_CHARACTERS)
    return {"speaker": turn.kind, "text": passage, "sentence": _find_stating_sentence(passage, statement)}


def _find_stating_sentence(passage: str, statement: str) -> str:
    """Returns the part of a passage that states something: its exact words, else the most similar sentence; "" for
    none."""
    if statement in passage:
        return statement
    words = set(content_words(statement))
    best_sentence, most_shared = "", 0
    for line in passage.splitlines():
        for sentence in prose.split_sentences(line):
            shared = len(words & set(content_words(sentence)))
            if shared > most_shared:
                best_sentence, most_shared = sentence.strip(), shared
    return best_sentence if most_shared * 2 >= len(words) and best_sentence in passage else ""


def surrounding_turns_json(rows: Rows, turn: TurnRow, asking: str) -> dict[str, list[Json]]:
    """Returns the turns before and after one, shortened."""
    before, after = search.find_surrounding_turns(rows, turn.seq, each=TURNS_AROUND)
    turns = search.turns_by_seq(rows, [*before, *after])

    def visible_json(seqs: list[int]) -> list[Json]:
        visible = [turns[seq] for seq in seqs if is_visible(rows, turns[seq].project_seq, asking=asking)]
        texts = [display.cut(display.squeeze(turn.text), MAX_TURN_CHARACTERS) for turn in visible]
        return [as_json(turn, "uuid speaker=kind at", text=text) for turn, text in zip(visible, texts, strict=True)]

    return {"before": visible_json(before), "after": visible_json(after)}


# --- candidates and sessions


def find_candidate(rows: Rows, word: str, asking: str) -> Candidate:
    """Returns a candidate by its id or the beginning of it; NotFound if the caller may see none."""
    candidate = candidates.by_id(rows, resolve_id(word, ids_like(rows, "candidates", word)))
    if candidate is None or not is_visible(rows, candidate.project_seq, asking=asking):
        raise NotFound(f"there is no candidate {word!r}", hint="`csmd review` lists what waits for you")
    return candidate


def candidate_json(rows: Rows, candidate: Candidate, asking: str) -> Json:
    """Returns a candidate with its evidence and its memories, first the one that would stay."""
    stored = [memories.by_id(rows, memory_id) for memory_id in candidate.memory_ids]
    visible = [memory for memory in stored if memory and is_visible(rows, memory.project_seq, asking=asking)]
    if review_answers.SUBJECT_OF_KIND[candidate.kind] == "pair":
        visible.sort(key=review_answers.rank_strength, reverse=True)
    turns = _read_turns(rows, [piece.uuid for piece in candidate.evidence], asking)
    passages = {piece.uuid: _passage_json(turns.get(piece.uuid), candidate.text) for piece in candidate.evidence}
    return as_json(
        candidate, CANDIDATE_FIELDS, project=read_roots(rows).get(candidate.project_seq, ""),
        memories=list(map(brief_memory_json, visible)),
        evidence=[{**asdict(piece), **passages[piece.uuid]} for piece in candidate.evidence],
    )  # fmt: skip


def find_session(rows: Rows, word: str, asking: str) -> Session:
    """Returns a session by its id or the beginning of it; NotFound if the caller may see none."""
    session = sessions.by_id(rows, resolve_id(word, sessions.find_ids_by_prefix(rows, word) if word else []))
    if session is None or not is_visible(rows, session.project_seq, asking=asking):
        raise NotFound(f"there is no session {word!r}", hint="`csmd session list` shows them with their ids")
    return session


def brief_json(ctx: ToolContext, injection: Brief) -> Json:
    """Returns an injection as JSON, with exact tokens if the tokenizer's data is installed; empty while csmd is
    paused."""
    if ctx.paused():
        degraded = ["paused: no session is told anything"]
        return {"text": "", "tokens": 0, "items": [], "degraded": degraded, "paused": True}
    counted = ctx.embedder.count_tokens([injection.text]) if injection.text and ctx.embedder.ready else None
    tokens = counted[0] if counted and counted[0] >= 0 else injection.tokens
    return as_json(injection, "text tokens items degraded", tokens=tokens)
