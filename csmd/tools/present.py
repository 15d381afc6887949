"""Turns values into the JSON of answers, and finds them by the beginning of an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from csmd.briefs import Brief
from csmd.errors import BadInput
from csmd.extraction.chooser import MAX_CHARACTERS
from csmd.knowledge import Candidate, Memory
from csmd.memory import confidence, review_answers
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
AROUND = 2
#: Characters shown of each of these turns.
AROUND_CHARACTERS = 240
#: Characters of a passage.
PASSAGE = 600
MEMORY = (
    "id text gate type category tier decay authority origin confidence attention pinned scope project source_uuids times "
    "session_id sessions created_at confirmed_at superseded_by is_refuted is_edited scene author"
)
CANDIDATE = (
    "id kind source status text reason gate category confidence reinforcement contradicted project created_at updated_at "
    "version memories evidence"
)


def as_json(value: Any, names: str, **more: Any) -> Json:
    """The named attributes of a value, in this order, then `more`; `key=attribute` renames one.

    A value in `more` replaces the attribute of that name. Tuples become lists, dataclasses objects.
    """
    fields: Json = {}
    for name in names.split():
        key, _, attribute = name.partition("=")
        fields[key] = more.pop(key) if key in more else _plain(getattr(value, attribute or key))
    return {**fields, **more}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def check_words(arguments: Mapping[str, str], allowed: Mapping[str, Sequence[str]]) -> None:
    """Raises BadInput for a filter that is not one of its allowed words; "" means no filter."""
    for name, value in arguments.items():
        if value and value not in allowed[name]:
            raise BadInput(f"there is no {name} {value[:60]!r}", hint=f"choose one of {', '.join(allowed[name])}")


def roots(rows: Rows) -> dict[int, str]:
    """The root directory of each project, by its row key."""
    return {seq: root for seq, root, *_ in activity.project_counts(rows)}


def lines_of(uuids: Sequence[str]) -> list[str]:
    """The uuids of the transcript lines of the first turns, at most four; turns of one line share a uuid."""
    return list(dict.fromkeys(uuid.partition("/")[0] for uuid in uuids))[:4]


def refuse_secrets(typed: str) -> str:
    """Puts typed text on one line; BadInput if it holds a secret.

    It is refused rather than redacted, so that the user learns of the secret.
    """
    counts: Counter[str] = Counter()
    redact(typed, counts)
    if counts:
        raise BadInput(
            f"that text holds what csmd never keeps ({', '.join(sorted(counts))}): nothing of it was kept",
            hint="say where the secret is, not what it is",
        )
    return display.squeeze(typed)


def normalise_typed_text(typed: str) -> str:
    """Puts text to be remembered on one line; BadInput if it is empty, too long, or holds a secret."""
    body = refuse_secrets(typed)
    if not content_words(body):
        raise BadInput("there is nothing to remember in that text", hint="say it in a sentence")
    if len(body) > MAX_CHARACTERS:
        raise BadInput(
            f"that has {len(body)} characters, and one memory has {MAX_CHARACTERS} at most",
            hint="say it shorter, or as several memories",
        )
    return body


# --- memories


def find_memory(rows: Rows, ident: str, asking: str) -> Memory:
    """A memory by its id or the beginning of it; BadInput for none, or one behind a wall."""
    memory = memories.by_id(rows, resolve_id(ident, ids_like(rows, "memories", ident)))
    if memory is None or not is_visible(rows, memory.project_seq, asking=asking):
        raise BadInput(f"there is no memory {ident!r}", hint="`csmd memories` lists them with their ids")
    return memory


def memories_json(rows: Rows, shown: Iterable[Memory]) -> list[Json]:
    """Memories as `csmd memories --json` shows them; `project` is "" for one that applies everywhere."""
    root_of, days = roots(rows), dict[int, int]()
    listed = []
    for memory in shown:
        if memory.project_seq not in days:
            days[memory.project_seq] = projects.active_day(rows, memory.project_seq)
        attention = confidence.classify_attention(
            today=days[memory.project_seq], hot_until=memory.hot_until, warm_until=memory.warm_until
        )
        listed.append(as_json(
            memory, MEMORY, attention=attention, project=root_of.get(memory.project_seq, ""),
            source_uuids=lines_of([source.uuid for source in memory.provenance]),
            sessions=list(dict.fromkeys(source.session_id for source in memory.provenance)),
        ))  # fmt: skip
    return listed


def brief_memory(memory: Memory) -> Json:
    """A memory in short: its text, who said it first, when, and where."""
    source = memory.provenance[0]
    names = "id text authority author confidence at=created_at uuid session_id superseded_by"
    return as_json(memory, names, uuid=source.uuid, session_id=source.session_id)


def sources(rows: Rows, memory: Memory, asking: str) -> list[Json]:
    """The turns that state or confirm a memory; the first with the turns around it."""
    turns = _turns(rows, [source.uuid for source in memory.provenance], asking)
    listed: list[Json] = []
    for source in memory.provenance:
        turn = turns.get(source.uuid)
        entry = as_json(source, "uuid session_id at role", **_passage(turn, memory.text))
        if turn and not listed:
            entry["around"] = turns_around(rows, turn, asking)
        listed.append(entry)
    return listed


def _turns(rows: Rows, uuids: list[str], asking: str) -> dict[str, TurnRow]:
    seqs = search.turns_of_uuids(rows, uuids)
    turns = search.turns_by_seq(rows, list(seqs.values()))
    return {uuid: turns[seq] for uuid, seq in seqs.items() if is_visible(rows, turns[seq].project_seq, asking=asking)}


def _passage(turn: TurnRow | None, statement: str) -> Json:
    """The speaker, the passage around a statement, and the sentence in it most similar to the statement."""
    if turn is None:
        return {"speaker": "", "text": "", "sentence": ""}
    passage = prose.excerpt(turn.text, query_terms(statement), limit=PASSAGE)
    return {"speaker": turn.kind, "text": passage, "sentence": _likest(passage, statement)}


def _likest(passage: str, statement: str) -> str:
    """The part of a passage that states something: its exact words, else the most similar sentence; "" for none."""
    if statement in passage:
        return statement
    words = set(content_words(statement))
    best, most = "", 0
    for line in passage.splitlines():
        for sentence in prose.split_sentences(line):
            shared = len(words & set(content_words(sentence)))
            if shared > most:
                best, most = sentence.strip(), shared
    return best if most * 2 >= len(words) and best in passage else ""


def turns_around(rows: Rows, turn: TurnRow, asking: str) -> dict[str, list[Json]]:
    """The turns before and after one, shortened."""
    before, after = search.surrounding_turns(rows, turn.seq, each=AROUND)
    turns = search.turns_by_seq(rows, [*before, *after])

    def shown(seqs: list[int]) -> list[Json]:
        return [
            as_json(turn, "uuid speaker=kind at", text=display.cut(display.squeeze(turn.text), AROUND_CHARACTERS))
            for turn in (turns[seq] for seq in seqs)
            if is_visible(rows, turn.project_seq, asking=asking)
        ]

    return {"before": shown(before), "after": shown(after)}


# --- candidates and sessions


def find_candidate(rows: Rows, ident: str, asking: str) -> Candidate:
    """A candidate by its id or the beginning of it; BadInput for none, or one behind a wall."""
    candidate = candidates.by_id(rows, resolve_id(ident, ids_like(rows, "candidates", ident)))
    if candidate is None or not is_visible(rows, candidate.project_seq, asking=asking):
        raise BadInput(f"there is no candidate {ident!r}", hint="`csmd review` lists what waits for you")
    return candidate


def candidate_json(rows: Rows, candidate: Candidate, asking: str) -> Json:
    """A candidate with its evidence and its memories, first the one that would stay."""
    named = [memories.by_id(rows, ident) for ident in candidate.memory_ids]
    about = [memory for memory in named if memory is not None and is_visible(rows, memory.project_seq, asking=asking)]
    if review_answers.SUBJECT_OF_KIND[candidate.kind] == "pair":
        about.sort(key=review_answers.rank_strength, reverse=True)
    turns = _turns(rows, [piece.uuid for piece in candidate.evidence], asking)
    evidence = [{**asdict(piece), **_passage(turns.get(piece.uuid), candidate.text)} for piece in candidate.evidence]
    return as_json(
        candidate, CANDIDATE, project=roots(rows).get(candidate.project_seq, ""),
        memories=[brief_memory(memory) for memory in about], evidence=evidence,
    )  # fmt: skip


def find_session(rows: Rows, ident: str, asking: str) -> Session:
    """A session by its id or the beginning of it; BadInput for none that the caller may see, or several."""
    session = sessions.by_id(rows, resolve_id(ident, sessions.ids_like(rows, ident) if ident else []))
    if session is None or not is_visible(rows, session.project_seq, asking=asking):
        raise BadInput(f"there is no session {ident!r}", hint="`csmd session list` shows them with their ids")
    return session


def brief_json(ctx: ToolContext, injection: Brief) -> Json:
    """An injection as JSON, with exact tokens if the tokenizer's data is installed; empty while csmd is paused."""
    if ctx.paused():
        degraded = ["paused: no session is told anything"]
        return {"text": "", "tokens": 0, "items": [], "degraded": degraded, "paused": True}
    exact = ctx.embedder.count_tokens([injection.text]) if injection.text and ctx.embedder.ready else None
    return as_json(
        injection, "text tokens items degraded", tokens=exact[0] if exact and exact[0] >= 0 else injection.tokens
    )
