"""The checkpoints' hands: made before a compaction, when one is seen, and when somebody asks; told once after it.

A compaction has one checkpoint. A hook announces it, and what the store has by then is in it at once; what the
transcript brings later that was said before is added, and its summary's place decides in the end. What is told comes
from stored rows alone; where they lag behind a short session they are read anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import Literal, NamedTuple

from csmd import text
from csmd.capture.hosts.claude import ANSWER_LIMIT_UNITS
from csmd.distill.harvest import Stated
from csmd.distill.work import Entry
from csmd.model import Brief, Event
from csmd.recall import checkpoint, known, superseded
from csmd.recall.checkpoint import MOST_TOKENS, Captured, Checkpoint, Piece
from csmd.recall.compose import Block, Note
from csmd.store import checkpoints, cursors, digests, receipts, sessions, tombstones
from csmd.store import checkpoints as due
from csmd.store.checkpoints import AGAIN, Row
from csmd.store.core import Store
from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows

Why = Literal["compaction", "asked"]
#: Compactions in one step, and events looked at for those that were announced since.
BATCH, EVENTS = 5, 500
#: A session of so many turns is read while a hook waits; of a longer one what is stored is told as it is.
READ_AT_ONCE = 600
#: Of a session that has gone on so far since, a checkpoint no longer says where it stands.
MOST_BEHIND = 100
GOALS_HEADING, GOALS_WEIGHT = "Goals", 1.6
AFTER = "Where this session stood before its context was compacted."
#: Names of each kind that a summariser is told.
NAMES = 8
#: What makes the brief from the tokens that are left, the goals that nobody else tells, and what is told before it.
Briefing = Callable[[int, Sequence[Note], str], Brief]


class Made(NamedTuple):
    """What was made of a session; without `captures` those that are stored stay."""

    value: Checkpoint
    captures: list[Captured] | None
    awaits: str


Ready = tuple[Row, Made]


# --- making them


def step(store: Store, *, since: str, distilling: bool) -> int:
    """Makes the checkpoints that wait, and finishes others; how many were looked at. What is older than `since` is not made.

    `distilling`: whether statements are still to come of what was said before them.
    """
    return _hear(store, since, distilling) + _see(store, since, distilling) + _finish(store, distilling)


def _hear(store: Store, since: str, distilling: bool) -> int:
    """Checkpoints of the compactions that a hook has announced, with what is stored so far."""
    after = store.read(lambda rows: cursors.cursor(rows, due.CHECKPOINT_STAGE, "events"))
    last, looked, told = store.read(lambda rows: due.heard(rows, after=after, limit=EVENTS))
    if not told and looked < EVENTS:
        return 0
    for session, at in told:

        def read(rows: Rows, session: int = session, at: str = at) -> Ready | None:
            if at < since or due.is_summarised(rows, session, since=at):
                return None  # over already: its summary's place decides
            about = due.about_sessions(rows, session)
            row = checkpoints.pending(rows, session) or new(about, "compaction", anchor=at)
            return _ready(
                row._replace(asked_at=at), make(rows, about, until=at, key=store.hash_key, distilling=distilling)
            )

        _store(store, store.read(read))
    store.write(lambda rows: cursors.move_cursor(rows, due.CHECKPOINT_STAGE, "events", last))
    return len(told) or looked


def _see(store: Store, since: str, distilling: bool) -> int:
    """Checkpoints of the compactions whose summary was read."""
    after = store.read(lambda rows: cursors.cursor(rows, due.CHECKPOINT_STAGE, "summaries"))
    found = store.read(lambda rows: due.summaries(rows, after=after, limit=BATCH))
    for one in found:

        def read(rows: Rows, one: due.Summary = one) -> Ready | None:
            if one.at < since or checkpoints.of_summary(rows, one.session_seq, one.uuid) is not None:
                return None  # what it captured may be dropped elsewhere by now
            about, old = due.about_sessions(rows, one.session_seq), checkpoints.pending(rows, one.session_seq)
            announced = old is not None and old.asked_at <= one.at
            row = old if old is not None and announced else new(about, "compaction", anchor=one.uuid)
            made = make(rows, about, before=one.ordinal, key=store.hash_key, distilling=distilling)
            return _ready(row._replace(summary_uuid=one.uuid), made)

        _store(store, store.read(read))
    if found:
        store.write(lambda rows: cursors.move_cursor(rows, due.CHECKPOINT_STAGE, "summaries", found[-1].turn_seq))
    return len(found)


def _finish(store: Store, distilling: bool) -> int:
    """Adds what belongs to stored checkpoints and came since; makes the pieces again of those whose turns have changed."""
    found = store.read(due.awaiting)[:BATCH]
    for row in found:

        def read(rows: Rows, row: Row = row) -> Ready:
            about = due.about_sessions(rows, row.session_seq)
            until, before = (row.asked_at, 0) if not row.summary_uuid else ("", row.upto + 1)
            made = make(rows, about, before=before, until=until, key=store.hash_key, distilling=distilling)
            if made is None:  # nothing is left of it
                return row, Made(Checkpoint(row.upto, row.at, ()), None, "")
            return row, made._replace(captures=None) if row.awaits == AGAIN else made

        _store(store, store.read(read))
    return len(found)


def ask(store: Store, rows: Rows, session_seq: int, *, now: str, note: str) -> str | None:
    """Makes a checkpoint of a session as it is, read from `rows`; its id, None where nobody has said anything.

    The stage finishes it: what its transcript brings of before `now` is added.
    """
    about = due.about_sessions(rows, session_seq)
    made = make(rows, about, until=now, key=store.hash_key, distilling=True)
    if made is None:
        return None
    row = new(about, "asked", anchor=now)._replace(asked_at=now, note=note)
    _store(store, (row, made._replace(awaits="now")))
    return row.id


def new(about: due.About, why: Why, *, anchor: str) -> Row:
    """A checkpoint's row before anything is in it; the same session and anchor give the same id."""
    ident = "k" + hashlib.sha256(f"{about.id}:{why}:{anchor}".encode()).hexdigest()[:10]
    return Row(0, ident, about.session_seq, about.id, 0, why, "", "", 0, "", "", "", "", "")


def make(
    rows: Rows, about: due.About, *, before: int = 0, until: str = "", key: bytes, distilling: bool = False
) -> Made | None:
    """What a session stood at before an ordinal, or at a time; None where nothing was said, or a tool wrote its transcript."""
    if sessions.is_tampered(rows, text.keyed_hash(PurePath(about.path).name, key)):
        return None
    entries = [
        entry
        for entry in (Entry(*row) for row in digests.entries(rows, about.session_seq))
        if entry.text != PURGED and (not before or entry.ordinal < before) and (not until or entry.at <= until)
    ]
    stated = [Stated(*row) for row in digests.stated(rows, about.session_seq)]
    value = checkpoint.made(entries, stated, cwd=about.cwd)
    if value is None:
        return None
    turns = [Captured(*row) for row in due.last_turns(rows, about.session_seq, upto=value.upto) if row[-1] != PURGED]
    goes_on = bool(before) or due.later(rows, about.session_seq, upto=value.upto) > 0
    is_whole = goes_on and (about.distilled >= value.upto or not distilling)
    return Made(value, checkpoint.captured(turns), "" if is_whole else about.state)


def _ready(row: Row, made: Made | None) -> Ready | None:
    return None if made is None else (row, made)


def _store(store: Store, ready: Ready | None) -> None:
    if ready is not None:
        row, made = ready
        row = row._replace(upto=made.value.upto, at=made.value.at, awaits=made.awaits)
        store.write(lambda rows: checkpoints.put(rows, row, made.value.pieces, made.captures))


# --- telling them


def opening(rows: Rows, event: Event, places: Sequence[int], *, key: bytes, max_tokens: int, brief: Briefing) -> Brief:
    """What a session's start is told: goals, after a compaction its essentials, or what was restored; then the brief.

    All of it within `max_tokens`; `brief` composes the brief within what is left. Of the essentials what the brief
    says as well is not told twice, and of the brief what they say that was asked for.
    """
    goals_told = goals_block(rows, places, event.session_id)
    found = _standing(rows, event, places[0], key)
    if found is None:
        return brief(max_tokens, goals_told.notes if goals_told else (), "")

    head = partial(
        checkpoint.essentials, found.pieces, ident=found.id, about=found.about, note=found.note, goals=goals_told
    )

    first = head(max_tokens=min(max_tokens, MOST_TOKENS), known=lambda _: False)
    if not first.text:
        return brief(max_tokens, goals_told.notes if goals_told else (), "")
    asked_for = "\n".join(one.text for one in found.pieces if one.kind == "goal")
    left = max_tokens - first.tokens - 1
    while True:
        made = brief(left, (), asked_for)
        told = known.known([made.text])
        first = head(max_tokens=first.tokens, known=told.says) if made.text else first
        body = "\n".join(one.text for one in (first, made) if one.text)
        if text.utf16_units(body) <= ANSWER_LIMIT_UNITS or not made.text:
            break
        left = left * 3 // 4
    degraded = tuple(sorted({*first.degraded, *made.degraded}))
    return Brief(
        text=body, tokens=text.estimate_tokens(body), items=(*first.items, *made.items), degraded=degraded, cut=first.cut + made.cut
    )  # fmt: skip


def goals_block(rows: Rows, places: Sequence[int], session_id: str) -> Block | None:
    """The open goals of a place, and of a session, that its context does not hold yet; None for none.

    What an assistant declared is told in its own session only, and as the assistant's.
    """
    told = receipts.told(rows, session_id) if session_id else frozenset[str]()
    found = [one for one in checkpoints.open_goals(rows, projects=places, session_id=session_id) if one.id not in told]
    notes = tuple(
        Note(id=one.id, text=one.text, reason=GOALS_HEADING, tail=f"{one.created_at[:10]}, {one.id}"
             + ("" if one.authority == "user" else ", the assistant's"))
        for one in found
    )  # fmt: skip
    return Block(heading=GOALS_HEADING, notes=notes, weight=GOALS_WEIGHT) if notes else None


class Standing(NamedTuple):
    """A checkpoint that is to be told."""

    id: str
    about: str
    pieces: list[Piece]
    note: str = ""


def _standing(rows: Rows, event: Event, project: int, key: bytes) -> Standing | None:
    if event.source == "compact":
        return _compacted(rows, event, project, key)
    row = checkpoints.to_tell(rows, project=project, session_id=event.session_id)
    return None if row is None else restored(rows, row, key)


def _compacted(rows: Rows, event: Event, project: int, key: bytes) -> Standing | None:
    about = due.about_session(rows, event.session_id)
    if about is None:
        return None
    row = checkpoints.latest(rows, event.session_id)
    behind = due.later(rows, about.session_seq, upto=row.upto if row else 0, until=event.at)
    if behind and about.turns <= READ_AT_ONCE:
        made = make(rows, about, until=event.at, key=key)
        ident = row.id if row and not row.summary_uuid else ""
        found = None if made is None else _allowed(rows, made.value.pieces, project, about.id, made.value.at, key)
        return None if found is None else Standing(ident, AFTER, found)
    if row is None or behind > MOST_BEHIND:
        return None
    return Standing(row.id, AFTER, pieces(rows, row, key))


def restored(rows: Rows, row: Row, key: bytes) -> Standing:
    """A checkpoint as it is told elsewhere than in its own session."""
    return Standing(row.id, f"Where an earlier session stood on {row.at[:10]}.", pieces(rows, row, key), row.note)


def pieces(rows: Rows, row: Row, key: bytes) -> list[Piece]:
    """What a checkpoint was made of, without what the user made csmd forget since, or what was superseded."""
    found = [Piece(*one) for one in checkpoints.pieces(rows, row.seq)]
    return _allowed(rows, found, row.project_seq, row.session_id, row.at, key)


def _allowed(rows: Rows, pieces: Sequence[Piece], project: int, session_id: str, at: str, key: bytes) -> list[Piece]:
    found = superseded.pieces_that_hold(rows, project, session_id, pieces)

    def is_forgotten(piece: Piece) -> bool:
        return tombstones.is_out(rows, piece.text, authority="assistant", project=project, at=at, key=key)

    if not tombstones.has(rows, "memory"):
        return found
    return [one for one in found if one.kind not in ("correction", "decision", "open") or not is_forgotten(one)]


def instructions(rows: Rows, event: Event, places: Sequence[int]) -> Brief:
    """What the host's summariser is asked to keep: constant words, then names from goals and the session's digest."""
    about = due.about_session(rows, event.session_id)
    latest = digests.of_session(rows, about.session_seq)[-1:] if about else []
    items = [item for row in latest for item in digests.items(rows, row.seq)]
    declared = [one.text for one in checkpoints.open_goals(rows, projects=places, session_id=event.session_id)]
    prompts = [Entry(*row) for row in due.prompts(rows, about.session_seq)] if about else []
    named = [
        ("goals", declared[:NAMES] or checkpoint.current([one for one in prompts if one.text != PURGED])),
        ("files changed", [item.text for item in items if item.kind == "file"][:NAMES]),
        ("failing", [item.text for item in items if item.kind == "command" and item.state == "failed"][:NAMES]),
    ]
    body = checkpoint.instructions(named)
    return Brief(text=body, tokens=text.estimate_tokens(body), items=())
