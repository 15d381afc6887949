"""Turns to experience packets with internal state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from operator import not_
from typing import NamedTuple

from csmd.conversation import ObservedTurn
from csmd.extraction import failure_reports, shell_commands
from csmd.hosts.tool_calls import SHELLS, WRITERS
from csmd.knowledge import Packet, State
from csmd.paths import name_of_transcript
from csmd.store import cursors, packet_rows, tampered_transcripts
from csmd.store.core import Store
from csmd.store.cursors import SessionBehind
from csmd.store.sqlite import Rows
from csmd.text import prose, quotations, sentence, tokens, trimming
from csmd.text.sentence import parse
from csmd.vocabulary import PROMPTS, PacketKind, Stance

#: How many outcomes are looked back at.
MAX_OUTCOMES = 6
#: Failures in a row that are as bad as it gets.
MAX_FAILURES_IN_A_ROW = 3
#: A prompt within so many seconds of the one before is brisk.
BRISK_S = 60.0
#: After this many seconds it is not brisk at all.
SLOW_S = 600.0
#: Words of a prompt that says as much as any.
MANY_WORDS = 60
#: Turns of a session that is as long as any.
MANY_TURNS = 2_000
MEAN_ENERGY = 0.5

#: A longer prompt holds pasted text, whose words say nothing about the user's mood.
MAX_TYPED_CHARACTERS = 300
#: Most characters of a sentence that agrees.
MAX_ASSENT_CHARACTERS = 40
#: Praise is looked for in this many first words.
MAX_PRAISE_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The state of a session at one turn: the user's latest prompt and earlier ones, and the outcomes of tool calls.

    `gap_s` is the time since the prompt before the latest, negative if there is none; `ordinal` the turn's place.
    """

    prompt: str = ""
    earlier: tuple[str, ...] = ()
    outcomes: tuple[bool, ...] = ()
    gap_s: float = -1.0
    ordinal: int = 0


def measure_signs(moment: Moment) -> dict[str, float]:
    """Measures each sign of a mood, 0-1.

    The share of the latest tool calls that failed, and how many in a row have; whether the user says again what was
    said before, objects, is content, is in a hurry; how soon they spoke again (1 within a minute, 0 after ten), how
    much they said, and how long the session has become.
    """
    latest = moment.outcomes[-MAX_OUTCOMES:]
    in_a_row = sum(1 for _ in takewhile(not_, reversed(moment.outcomes)))
    same = tokens.normalise(moment.prompt)
    typed = _read_typed(moment)
    objecting = sentence.is_objection(typed)
    return {
        "failing": latest.count(False) / len(latest) if latest else 0.0,
        "stuck": min(1.0, in_a_row / MAX_FAILURES_IN_A_ROW),
        "repeating": float(bool(same) and any(tokens.normalise(before) == same for before in moment.earlier)),
        "objecting": float(objecting),
        "pleased": float(_is_pleased(typed) and not objecting),
        "pressing": float(sentence.has("presses", "en", typed)),
        "brisk": max(0.0, min(1.0, (SLOW_S - moment.gap_s) / (SLOW_S - BRISK_S))) if moment.gap_s >= 0 else 0.0,
        "expansive": min(1.0, len(moment.prompt.split()) / MANY_WORDS),
        "wearing": min(1.0, moment.ordinal / MANY_TURNS),
    }


def find_stance(moment: Moment) -> Stance:
    """The attitude of the user's latest prompt: objecting, else what it does."""
    typed = _read_typed(moment)
    if not typed:
        return "unknown" if moment.prompt else "silent"
    kind = parse(typed).kind
    if sentence.is_objection(typed):
        return "objects"
    if kind == "orders" or sentence.find_request(typed):
        return "orders"
    if kind == "assents" or (len(typed) <= MAX_ASSENT_CHARACTERS and sentence.opens("agrees", "en", typed)):
        return "approves"
    return "asks" if kind == "asks" else "unknown"


#: What speaks for a mood by itself.
PLAIN_SIGNS = frozenset({"stuck", "objecting", "pleased", "pressing"})
#: Sign -> what a full measure of it adds to frustration, energy and urgency.
WEIGHTS: dict[str, tuple[float, float, float]] = {
    "failing": (0.3, -0.1, 0.1), "stuck": (0.3, -0.1, 0.0), "repeating": (0.3, 0.0, 0.2), "objecting": (0.3, 0.0, 0.0),
    "pleased": (-0.4, 0.2, 0.0), "pressing": (0.0, 0.1, 0.6), "brisk": (0.0, 0.3, 0.1), "expansive": (0.0, 0.2, 0.0),
    "wearing": (0.0, -0.3, 0.0),
}  # fmt: skip


def estimate_state(moment: Moment) -> State:
    """Combines the signs to figures, 0-1; None if no plain sign supports one."""
    measured = measure_signs(moment)

    def figure(at: int, before: float) -> float | None:
        if not any(measured[name] == 1.0 and WEIGHTS[name][at] for name in PLAIN_SIGNS):
            return None
        return round(min(1.0, max(0.0, before + sum(WEIGHTS[name][at] * value for name, value in measured.items()))), 3)

    return State(
        frustration=figure(0, 0.0), energy=figure(1, MEAN_ENERGY), stance=find_stance(moment), urgency=figure(2, 0.0)
    )


def _read_typed(moment: Moment) -> str:
    """A prompt that was typed; "" for a long, pasted one."""
    return moment.prompt if len(moment.prompt) <= MAX_TYPED_CHARACTERS else ""


def _is_pleased(typed: str) -> bool:
    """Whether one of the first words praises."""
    opening = typed.split(maxsplit=MAX_PRAISE_WORDS)[:MAX_PRAISE_WORDS]
    return sentence.has("praise", "en", " ".join(opening))


#: A turn of at most this many words is read whole; in a longer one only sentences that ask for something are.
SHORT_WORDS = 40
#: Most words of a sentence that is read for orders.
MAX_SENTENCE_WORDS = 30
#: Most orders of a turn.
MAX_ORDERS = 4
#: Most words of an order.
MAX_ORDER_WORDS = 8
#: Most characters of an order.
MAX_ORDER_CHARACTERS = 60
#: A phrase without a request is an order only if it has at most this many words and nothing else.
MAX_BARE_WORDS = 7
#: The number of words of a reviewer's remark; a longer text is a document or a plan.
REVIEW_WORDS = range(20, 181)
MAX_REVIEW_CHARACTERS = 4_000


class Order(NamedTuple):
    """What a user asks for, or asks not to do (`against`), in small letters without punctuation."""

    words: str
    against: bool


_BETWEEN = re.compile(r"[,;]\s+|\s+(?:and )?then\s+")
_LINE_OF_FILE = re.compile(r"\w\.\w{1,4}:\d")
#: A quotation long enough to be a remark, and most words of the line that introduces a pasted one.
_QUOTED_AT_LENGTH = re.compile(r'(?<!\w)["“]([^"“”]{100,2000})["”](?!\w)')
MAX_LEAD_WORDS = 15


def find_orders(text: str) -> list[Order]:
    """The first orders in a user's turn, each once; none in a reviewer's remark that the turn passes on."""
    if find_remarks(text) == [text]:
        return []
    is_short = len(text.split()) <= SHORT_WORDS
    orders_given: dict[Order, None] = {}
    for line in prose.read_prose_lines(text):
        for phrase in prose.split_sentences(line):
            request = sentence.find_request(phrase)
            if len(phrase.split()) > MAX_SENTENCE_WORDS or not (request or (is_short and parse(phrase).kind != "asks")):
                continue
            for piece in _BETWEEN.split(request or phrase):
                if (order := _read_order(piece, is_asked=bool(request))) is not None:
                    orders_given[order] = None
    return list(orders_given)[:MAX_ORDERS]


def _read_order(piece: str, *, is_asked: bool) -> Order | None:
    bare = trimming.strip_order(piece).rstrip(" ?")
    against = sentence.without_opening("leave", "en", bare)
    if against and any(sentence.has(name, "en", against) for name in ("moment", "now", "condition")):
        return None
    bare = against or bare
    if not (against or trimming.may_be_order(bare, is_asked=is_asked)):
        return None
    words = tokens.words_of(bare)
    if not is_asked and (len(words) > MAX_BARE_WORDS or not all(map(str.isalpha, words))):
        return None
    ordered = " ".join(words[:MAX_ORDER_WORDS])
    if len(ordered) > MAX_ORDER_CHARACTERS or not tokens.content_words(ordered) or not words[0].isalpha():
        return None
    return Order(ordered, bool(against))


def find_remarks(text: str) -> list[str]:
    """The reviewer's remarks that a turn passes on: the whole turn, or quotations that give impersonal advice."""
    if len(text) > MAX_REVIEW_CHARACTERS:
        return []
    lead, colon, rest = text.partition(":\n")
    body = rest if colon and len(lead.split()) <= MAX_LEAD_WORDS else text
    is_of_reviewer = parse(body).kind == "states" or sentence.opens("advice", "en", body)
    if is_of_reviewer and is_finding(body) and sentence.has("advice", "en", body):
        return [text]
    quoted = [match[1] for match in _QUOTED_AT_LENGTH.finditer(text)] if failure_reports.find_names(text) else []
    return [
        passage
        for passage in quoted
        if sentence.has("advice", "en", passage) and not sentence.has("first_person", "en", passage)
    ]


def reports_fault(text: str) -> bool:
    """Whether a remark reports a fault, and not only a wish."""
    return sentence.has("fault", "en", text) or _LINE_OF_FILE.search(text) is not None


def is_finding(text: str) -> bool:
    """Whether a turn describes named code at some length, without a first person."""
    if len(text) > MAX_REVIEW_CHARACTERS or len(text.split()) not in REVIEW_WORDS:
        return False
    return bool(failure_reports.find_names(text)) and not sentence.has("first_person", "en", text)


#: So many turns before the first new one are to be given: what the state and a result's call are looked for in.
WINDOW_TURNS = 40
_FAILED = re.compile(r"\s*(?:Exit code [1-9]|<tool_use_error>|Error:|error: )")


def make_packets(turns: Sequence[ObservedTurn], *, after: int) -> list[Packet]:
    """The packets of the turns after the ordinal `after`, in order; `turns` starts WINDOW_TURNS turns earlier."""
    new_packets: list[Packet] = []
    for at, turn in enumerate(turns):
        if turn.ordinal > after:
            new_packets += _observe_turn(turns[max(0, at - WINDOW_TURNS) : at], turn)
    return new_packets


def _observe_turn(before: Sequence[ObservedTurn], turn: ObservedTurn) -> list[Packet]:
    if turn.kind == "user" and not turn.agent:
        first = not any(earlier.kind in PROMPTS for earlier in before) and turn.ordinal <= WINDOW_TURNS
        seen: list[tuple[PacketKind, str, str]] = [("session", "begin", "")] if first else []
        text = quotations.blank_quotations(turn.text)
        seen += [("order", order.words, "against" if order.against else "asked") for order in find_orders(text)]
        return [_make_packet(turn, before, turn, *labels) for labels in seen]
    if turn.kind == "tool_result" and turn.tool_id:
        calls = [earlier for earlier in before if earlier.kind == "tool_call" and earlier.tool_id == turn.tool_id]
        if calls:
            return [_make_packet(calls[-1], before, turn, *labels) for labels in _describe_call(calls[-1], turn)]
    return []


def _describe_call(call: ObservedTurn, result: ObservedTurn) -> list[tuple[PacketKind, str, str]]:
    """What a finished tool call was: commands, milestones, a notable file, an error."""
    failed = bool(_FAILED.match(result.text))
    outcome = "failed" if failed else "ok"
    if call.tool_name in SHELLS:
        ran = shell_commands.significant_commands(shell_commands.read_command(call.text))
        seen: list[tuple[PacketKind, str, str]] = [
            ("milestone" if shell_commands.find_milestone(name) else "tool", name, outcome) for name in ran
        ]
        return seen + ([("error", ran[0] if ran else call.tool_name, outcome)] if failed else [])
    if call.tool_name in WRITERS and not failed:
        name = shell_commands.find_notable_name(shell_commands.read_file_path(call.text))
        return [("tool", name, outcome)] if name else []
    return [("error", call.tool_name, outcome)] if failed else []


def _make_packet(
    about: ObservedTurn, before: Sequence[ObservedTurn], now: ObservedTurn, kind: PacketKind, subject: str, outcome: str
) -> Packet:
    return Packet(
        kind=kind, subject=subject, outcome=outcome, uuid=about.uuid, session_id=about.session_id,
        project_seq=about.project_seq, ordinal=about.ordinal, at=about.at, words=len(about.text.split()),
        state=estimate_state(_read_moment(before, now)),
    )  # fmt: skip


def _read_moment(before: Sequence[ObservedTurn], now: ObservedTurn) -> Moment:
    prompts = [turn for turn in (*before, now) if turn.kind in PROMPTS]
    gap = -1.0
    if len(prompts) > 1:
        begun, spoken = (datetime.fromisoformat(turn.at) for turn in prompts[-2:])
        gap = max(0.0, (spoken - begun).total_seconds())
    return Moment(
        prompt=quotations.blank_quotations(prompts[-1].text).strip() if prompts else "",
        earlier=tuple(turn.text for turn in prompts[:-1]), gap_s=gap, ordinal=now.ordinal,
        outcomes=tuple(not _FAILED.match(turn.text) for turn in (*before, now) if turn.kind == "tool_result"),
    )  # fmt: skip


STAGE = "packets"
#: Sessions that one step looks at.
SESSION_BATCH = 8
#: Turns of each.
TURN_BATCH = 400


def step(store: Store) -> int:
    """Observes new turns of some sessions; how many turns, 0 for nothing left. No turn waits for its session to end."""
    looked = with_new = 0
    for session in store.read(lambda rows: cursors.sessions_behind(rows, STAGE)):
        turns = _observe(store, session)
        looked, with_new = looked + turns, with_new + (turns > 0)
        if with_new == SESSION_BATCH:
            break
    return looked


def _observe(store: Store, session: SessionBehind) -> int:
    """Observes the next turns of one session; how many. A transcript that a tool wrote gives no packets."""

    def read_heard(rows: Rows) -> tuple[list[ObservedTurn], int, bool]:
        upto = min(session.turns, session.position + TURN_BATCH)
        provisional = packet_rows.find_first_provisional(rows, session.session_seq, after=session.position)
        upto = upto if provisional is None else min(upto, provisional - 1)
        noted = tampered_transcripts.is_tampered(
            rows, tokens.keyed_hash(name_of_transcript(session.path), store.hash_key)
        )
        after = max(0, session.position - WINDOW_TURNS)
        return packet_rows.read_turns_for_packets(rows, session.session_seq, after=after, until=upto), upto, noted

    turns, upto, noted = store.read(read_heard)
    if upto <= session.position:
        return 0
    new_packets = [] if noted else make_packets(turns, after=session.position)

    def write(rows: Rows) -> int:
        packet_rows.put_packets(rows, new_packets)
        cursors.move_cursor(rows, STAGE, str(session.session_seq), upto)
        return upto - session.position

    return store.write(write)
