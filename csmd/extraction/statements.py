"""Turns past the cursor to statements."""

from __future__ import annotations

from typing import NamedTuple

from csmd.conversation import StoredTurn
from csmd.extraction import chooser, exchange_sources
from csmd.extraction.chooser import EarlierStatement
from csmd.extraction.exchange_sources import Source
from csmd.hosts import tool_calls
from csmd.paths import name_of_transcript
from csmd.store import cursors, packet_rows, passages, rewinds, statement_rows, tampered_transcripts, turns
from csmd.store.core import Store
from csmd.store.cursors import SessionBehind
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.vocabulary import TurnKind

TOOL_WORDS_STAGE = "tool words"
#: What an agent reported is said in a conversation of its own.
CALL_ROLES = ("plan", "commit")
TOOLS = tuple(tool for tool, (role, _) in tool_calls.CALLS.items() if role in CALL_ROLES)
#: Sessions that one step looks at.
SESSION_BATCH = 8


def tool_words_step(store: Store, *, quiet_before: str) -> int:
    """Reads tool calls of some sessions with new turns; how many turns were passed, 0 for nothing left.

    A call without a result stops its session until the result is there, or nothing came since `quiet_before`.
    """
    passed = looked_at = 0
    for session in store.read(lambda rows: cursors.sessions_behind(rows, TOOL_WORDS_STAGE)):
        went = _store_call_words(store, session, settled=is_settled(session, quiet_before=quiet_before))
        passed, looked_at = passed + went, looked_at + (went > 0)
        if looked_at == SESSION_BATCH:
            break
    return passed


def _store_call_words(store: Store, session: SessionBehind, *, settled: bool) -> int:
    def read_calls(rows: Rows) -> tuple[list[turns.Call], int]:
        calls = turns.list_tool_calls(
            rows, session.session_seq, after=session.position, tools=TOOLS, holding=tool_calls.CALL_PATTERNS
        )
        # Hooks report without end during work; only transcripts hold calls.
        provisional = packet_rows.find_first_provisional(rows, session.session_seq, after=session.position)
        return calls, session.turns if provisional is None else min(session.turns, provisional - 1)

    calls, upto = store.read(read_calls)
    waiting = [] if settled else [call.turn.ordinal for call in calls if call.result is None]
    upto = min([upto, *(ordinal - 1 for ordinal in waiting)])
    if upto <= session.position:
        return 0

    def write(rows: Rows) -> int:
        for call in calls:
            source = exchange_sources.read_call_source(call.turn, call.tool, call.result)
            if source is not None and call.turn.ordinal <= upto:
                passages.store_call_words(rows, call.turn.seq, source.turn.text, source=call.turn.text)
        cursors.move_cursor(rows, TOOL_WORDS_STAGE, str(session.session_seq), upto)
        return upto - session.position

    return store.write(write)


STAGE = "distill"
#: Kinds of turns with somebody's words; tools work between them.
SPOKEN_KINDS: tuple[TurnKind, ...] = ("user", "relayed", "assistant", "summary")
#: Kinds of turns that notify.
NOTIFYING_KINDS: tuple[TurnKind, ...] = ("notification",)
#: How many exchanges are searched backwards for the assistant's last words.
MAX_EXCHANGES_BACK = 8


def list_behind(store: Store) -> list[SessionBehind]:
    """The conversations with turns not distilled yet, oldest first."""
    return store.read(lambda rows: cursors.sessions_behind(rows, STAGE))


def is_settled(session: SessionBehind, *, quiet_before: str) -> bool:
    """Whether no turn is in progress: the host said so, or nothing came since `quiet_before`."""
    return session.settled_at >= session.last_at or session.last_at < quiet_before


def distill(store: Store, session: SessionBehind, *, settled: bool) -> int:
    """Chooses the statements of one conversation as far as its sources are complete; the number of new ones.

    While the assistant is at work its latest message may not be its last: then the cursor
    stops at the last source that is decided and what follows is looked at again, from the prompt of
    its exchange on, so that what is chosen does not depend on when that was. What came after `session`
    was looked up waits: whether it is settled is not known. What only a hook reported gives no
    statement: the transcript says who spoke, an event anybody can forge. Nor does a transcript that
    a tool has written.
    """

    view = store.read(lambda rows: _read_view(rows, session, settled=settled, key=store.hash_key))
    chosen = chooser.choose(
        store.hook_priority.giving_way(view.sources), earlier=view.earlier, last_reply=view.last_reply
    )
    fresh = [choice for choice in chosen if choice.turn.ordinal > session.position]
    new_turns = {source.turn.uuid: source.turn for source in view.sources if source.turn.ordinal > session.position}
    late = [
        choice
        for choice in chosen
        if choice.turn.ordinal <= session.position and new_turns.keys() & set(choice.statement.also)
    ]
    decided = [source.turn.ordinal for source in view.sources if source.role != "reply"]
    reached = session.turns if settled else max(decided, default=session.position)
    if not fresh and not late and reached <= session.position:
        return 0

    def write(rows: Rows) -> int:
        if cursors.read_cursor(rows, STAGE, str(session.session_seq)) != session.position:
            return 0  # a rewind has moved the cursor back: the next step reads again
        new = 0
        for choice in [*late, *fresh]:
            if rewinds.is_rewound(rows, session.session_seq, choice.turn.seq):  # since it was read
                continue
            text_hash = tokens.keyed_hash(choice.statement.text, store.hash_key)
            if choice.turn.ordinal > session.position:
                new += statement_rows.add_statement(
                    rows, choice.statement, choice.turn, session_seq=session.session_seq, text_hash=text_hash
                )
                continue
            for uuid in choice.statement.also:
                statement_rows.cite_context_turn(rows, choice.turn, new_turns[uuid], text_hash=text_hash)
        cursors.move_cursor(rows, STAGE, str(session.session_seq), max(reached, session.position))
        return new

    return store.write(write)


class View(NamedTuple):
    """What to choose from: sources past the cursor, the words of earlier statements, the last reply before."""

    sources: list[Source]
    earlier: list[EarlierStatement]
    last_reply: str


def _read_view(rows: Rows, session: SessionBehind, *, settled: bool, key: bytes) -> View:
    """Reads what to choose from, starting with the exchange at the conversation's cursor."""
    if tampered_transcripts.is_tampered(rows, tokens.keyed_hash(name_of_transcript(session.path), key)):
        return View([], [], "")
    begun = cursors.find_exchange_start(rows, session.session_seq, at=session.position)
    after, spoken_turns = max(0, begun - 1), list[StoredTurn]()
    for _ in range(MAX_EXCHANGES_BACK):  # to what the assistant said last before that
        after = max(0, cursors.find_exchange_start(rows, session.session_seq, at=after) - 1)
        spoken_turns = turns.read_stream_turns(
            rows, session.session_seq, after=after, kinds=(*SPOKEN_KINDS, *NOTIFYING_KINDS), written=True
        )
        if after == 0 or any(turn.ordinal < begun and turn.kind == "assistant" for turn in spoken_turns):
            break
    in_reach = [turn for turn in spoken_turns if turn.ordinal <= session.turns]
    worked = exchange_sources.find_notified_sources(in_reach)
    calls = turns.list_tool_calls(
        rows, session.session_seq, after=after, tools=tool_calls.CALLS, holding=tool_calls.CALL_PATTERNS
    )
    worked += [
        source
        for call in calls
        if (source := exchange_sources.read_call_source(call.turn, call.tool, call.result)) is not None
    ]
    worked = [source for source in worked if begun <= source.turn.ordinal <= session.turns]
    spoken = [turn for turn in in_reach if turn.kind in SPOKEN_KINDS]
    replies = [turn.text for turn in spoken if turn.ordinal < begun and turn.kind == "assistant"]
    stated = statement_rows.list_statements_before(rows, session.session_seq, begun)
    return View(
        sources=exchange_sources.find_sources(
            [turn for turn in spoken if turn.ordinal >= begun], settled=settled, worked=worked
        ),
        earlier=[chooser.to_earlier(text, by_user=authority == "user") for text, authority in stated],
        last_reply=replies[-1] if replies else "",
    )
