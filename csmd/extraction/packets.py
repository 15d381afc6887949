"""Turns to experience packets with internal state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from operator import not_
from pathlib import PurePath
from typing import NamedTuple

from csmd.extraction import failure_reports, refusals, shell_commands
from csmd.store import candidates as stored
from csmd.store import cursors, sessions
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.sqlite import Rows
from csmd.text import prose, quotations, tokens
from csmd.values import Heard, Packet, State
from csmd.vocabulary import PROMPTS, PacketKind, Stance

#: Outcomes that are looked back at; failures in a row that are as bad as it gets.
LOOKED_BACK, IN_A_ROW = 6, 3
BRISK_S, SLOW_S = 60.0, 600.0
MANY_WORDS, MANY_TURNS = 60, 2_000
ENERGY = 0.5

#: A prompt of more characters holds what somebody else wrote: its words are nobody's mood.
TYPED = 300
_LEAD = r"^\W*(?:(?:ok(?:ay)?|yes|yeah|and|but|so|now|again|also|then|cool)\b\W*){0,3}"
_OBJECTS = re.compile(
    rf"{_LEAD}(?:(?:no|nope)\b(?! (?:problem|worries|need|idea)\b)|stop\b|why (?:did|didn['’]?t|would) you\b|i (?:said|meant|told you)\b"
    r"|(?:this|that|it|the [\w -]{1,30}?)(?: is|['’]s| are| was) (?:still )?(?:not (?:correct|right|true|working|what i)|wrong|incorrect|broken|the same)\b"
    r"|(?:this|that|it) (?:still )?(?:doesn['’]?t work|fails)\b)",
    re.IGNORECASE,
)
_PLEASED = re.compile(
    rf"{_LEAD}(?:(?:it|that|this) )?(?:great|thanks?|thank you|perfect|awesome|nice|excellent|works|good job|well done|lgtm)\b",
    re.I,
)
_PRESSES = re.compile(
    r"\b(?:asap|urgent(?:ly)?|as soon as possible|hurry(?: up)?|(?:prod|production) is (?:down|broken|failing)|outage)\b",
    re.IGNORECASE,
)
_APPROVES = re.compile(
    r"^\W*(?:yes|yeah|yep|ok|okay|sure|do it|go ahead|sounds good|agreed|lgtm)\b.{0,30}$", re.IGNORECASE
)
_ASKS = re.compile(r"\?\W*$")
_ORDERS = re.compile(
    rf"{_LEAD}(?:(?:can|could|would|will) (?:you|we)\b|please\b|let['’]?s\b|(?:add|fix|remove|make|run|update|change|commit|push|create|write|use|check"
    r"|review|move|rename|implement|merge|rebase|try|show|give|do)\b)|\bplease\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The state of a session at one turn: the user's latest prompt and earlier ones, and the outcomes of tool calls.

    `gap_s` is the time since the prompt before the latest, below 0 where there is none; `ordinal` the turn's place.
    """

    said: str = ""
    earlier: tuple[str, ...] = ()
    outcomes: tuple[bool, ...] = ()
    gap_s: float = -1.0
    ordinal: int = 0


def measures(moment: Moment) -> dict[str, float]:
    """Measures each sign of a mood, 0-1.

    The share of the latest tool calls that failed, and how many in a row have; whether the user says again what was
    said before, objects, is content, is in a hurry; how soon they spoke again (1 within a minute, 0 after ten), how much
    they said, and how long the session has become.
    """
    latest = moment.outcomes[-LOOKED_BACK:]
    in_a_row = sum(1 for _ in takewhile(not_, reversed(moment.outcomes)))
    same = tokens.normalise(moment.said)
    objecting = _says(_OBJECTS, moment)
    return {
        "failing": latest.count(False) / len(latest) if latest else 0.0,
        "stuck": min(1.0, in_a_row / IN_A_ROW),
        "repeating": float(bool(same) and any(tokens.normalise(before) == same for before in moment.earlier)),
        "objecting": float(objecting),
        "pleased": float(_says(_PLEASED, moment) and not objecting),
        "pressing": float(_says(_PRESSES, moment)),
        "brisk": max(0.0, min(1.0, (SLOW_S - moment.gap_s) / (SLOW_S - BRISK_S))) if moment.gap_s >= 0 else 0.0,
        "expansive": min(1.0, len(moment.said.split()) / MANY_WORDS),
        "wearing": min(1.0, moment.ordinal / MANY_TURNS),
    }


def stance(moment: Moment) -> Stance:
    """The attitude of the user's latest prompt: the first of the table that matches."""
    fitting = (name for name, fits in _STANCES if _says(fits, moment))
    return next(fitting, "unknown" if moment.said else "silent")


_STANCES: tuple[tuple[Stance, re.Pattern[str]], ...] = (
    ("objects", _OBJECTS), ("orders", _ORDERS), ("approves", _APPROVES), ("asks", _ASKS),
)  # fmt: skip
#: What speaks for a mood by itself.
PLAIN = frozenset({"stuck", "objecting", "pleased", "pressing"})
#: Sign -> what a full measure of it adds to frustration, energy and urgency.
WEIGHTS: dict[str, tuple[float, float, float]] = {
    "failing": (0.3, -0.1, 0.1), "stuck": (0.3, -0.1, 0.0), "repeating": (0.3, 0.0, 0.2), "objecting": (0.3, 0.0, 0.0),
    "pleased": (-0.4, 0.2, 0.0), "pressing": (0.0, 0.1, 0.6), "brisk": (0.0, 0.3, 0.1), "expansive": (0.0, 0.2, 0.0),
    "wearing": (0.0, -0.3, 0.0),
}  # fmt: skip


def state(moment: Moment) -> State:
    """Combines the signs to figures, 0-1; None where no plain sign supports one."""
    measured = measures(moment)

    def figure(at: int, before: float) -> float | None:
        if not any(measured[name] == 1.0 and WEIGHTS[name][at] for name in PLAIN):
            return None
        return round(min(1.0, max(0.0, before + sum(WEIGHTS[name][at] * value for name, value in measured.items()))), 3)

    return State(frustration=figure(0, 0.0), energy=figure(1, ENERGY), stance=stance(moment), urgency=figure(2, 0.0))


def _says(words: re.Pattern[str], moment: Moment) -> bool:
    """Whether a typed prompt matches a pattern; long, pasted ones never do."""
    return len(moment.said) <= TYPED and words.search(moment.said) is not None


#: A turn of at most so many words is looked at whole, of a longer one only sentences that ask for something.
SHORT_WORDS, SENTENCE_WORDS = 40, 30
#: Orders of a turn that are kept, and words of an order.
MOST_ORDERS, ORDER_WORDS, ORDER_CHARACTERS = 4, 8, 60
#: What nothing asks for in so many words is an order when it is short: so many words, and nothing but words.
BARE_WORDS = 7
#: A remark of a reviewer has so many words: a longer text is a document or a plan.
REVIEW_WORDS = range(20, 181)
REVIEW_CHARACTERS = 4_000


class Order(NamedTuple):
    """What a user asks for, or asks not to do (`against`), in small letters without punctuation."""

    words: str
    against: bool


#: Words before an order that say nothing of it, and words with which somebody asks for something.
_ORDERS_LEAD = re.compile(
    r"\W*(?:(?:yes|yeah|ok|okay|sure|great|fine|perfect|now|then|and|also|but|so|please|pls|just|maybe|first|next|again|let['’]?s|let us"
    r"|(?:can|could|would|should|shall) (?:you|we|i)|i(?:['’]d| would) like (?:you )?to|i want (?:you )?to|(?:we|you) (?:should|need to|want to)"
    r"|make sure(?: that| to)?|go ahead and)\b[\s,.:!]{0,8}){1,8}",
    re.IGNORECASE,
)
_ORDERS_ASKS = re.compile(
    r"\b(?:(?:can|could|would|should|shall) (?:you|we|i)|let['’]?s|please|pls|make sure|i(?:['’]d| would) like|i want|we (?:should|need|want))\b",
    re.IGNORECASE,
)
#: How a question begins, or what somebody tells: no order.
_NO_ORDER = re.compile(
    r"(?:why|what|how|where|when|which|who|is|are|does|do (?:we|you|i|it|this|that|so)|did|was|were|has|have|i|we|you|he|she|they|it|this|that|there|the|an?|my"
    r"|our|no|not|if|in|on|at|for|to|with|but|or|as|because|same|more|all|both|never ?mind|continue|go on|looks?|sounds?|works?|thanks?|good|nice|hi|hello|hey)\b",
    re.IGNORECASE,
)
#: Asks to leave what follows; what only waits is left for now and no more.
_AGAINST = re.compile(r"(?:don['’]?t|do not|never|no need (?:to|for)|without|stop|skip|no more)\b\s*", re.IGNORECASE)
_WAITS = re.compile(r"\b(?:yet|for now|until|unless|before|right now|already)\b", re.IGNORECASE)
_BETWEEN = re.compile(r"[,;]\s+|\s+(?:and )?then\s+")
#: What says in a remark what is wrong.
_FAULT = re.compile(
    r"\b(?:(?:does|do|is|are|was|were|has|have|can|could|will|would)n['’]t|(?:does|do|is|are|was|were|will|would|can) (?:not|also|never)|cannot|lacks?|missing|incorrect(?:ly)?"
    r"|inaccurate|silently|unconditionally|duplicat\w+|fails?|breaks?|hangs?|(?:may|might|could|can|will) (?:\w+ )?(?:break|fail|hang|cause|lead|split|leak|expose|crash|drop)"
    r"|consider \w+ing|(?:high|medium|low|critical) severity|nit)\b|\w\.\w{1,4}:\d",
    re.IGNORECASE,
)
#: A reviewer's words: advice in nobody's first person.
_ADVICE = re.compile(
    r"\b(?:consider|should|instead|lacks?|missing|never|incorrect(?:ly)?|inaccurate|duplicat\w+|without|could|may|can (?:cause|lead|break|hang)|unconditionally|silently)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|I'd|I've|we|we're|my|our|us|let's|me)\b", re.IGNORECASE)
#: What somebody quotes, so long that it can be a remark; and what leads in to a pasted one.
_QUOTED_AT_LENGTH = re.compile(r'(?<!\w)["“]([^"“”]{100,2000})["”](?!\w)')
LEAD_WORDS = 15


def orders(said: str) -> list[Order]:
    """The first orders in a user's turn, each once; none in a reviewer's remark that the turn passes on."""
    if remarks(said) == [said]:
        return []
    is_short = len(said.split()) <= SHORT_WORDS
    found: dict[Order, None] = {}
    for sentence in (one for line in prose.lines_of_prose(said) for one in prose.sentences(line)):
        asks = _ORDERS_ASKS.search(sentence)
        if len(sentence.split()) > SENTENCE_WORDS or not (asks or (is_short and not sentence.endswith("?"))):
            continue
        for piece in _BETWEEN.split(sentence[asks.start() :] if asks else sentence):
            if (order := _order(piece, asked=asks is not None)) is not None:
                found[order] = None
    return list(found)[:MOST_ORDERS]


def _order(piece: str, *, asked: bool) -> Order | None:
    lead = _ORDERS_LEAD.match(piece)
    bare = piece[lead.end() if lead else 0 :].strip()
    against = _AGAINST.match(bare)
    bare = bare[against.end() if against else 0 :]
    if _NO_ORDER.match(bare) or (against and _WAITS.search(bare)):
        return None
    words = tokens.words_of(bare)
    if not asked and (len(words) > BARE_WORDS or not all(map(str.isalpha, words))):
        return None
    told = " ".join(words[:ORDER_WORDS])
    if len(told) > ORDER_CHARACTERS or not tokens.content_words(told) or not words[0].isalpha():
        return None
    return Order(told, against is not None)


def remarks(said: str) -> list[str]:
    """The reviewer's remarks that a turn passes on: the whole turn, or quotations that give impersonal advice."""
    if len(said) > REVIEW_CHARACTERS:
        return []
    lead, colon, rest = said.partition(":\n")
    body = rest if colon and len(lead.split()) <= LEAD_WORDS else said
    if is_finding(body) and _ADVICE.search(body) and not (refusals.ORDER.match(body) or refusals.refusal(body, "user")):
        return [said]
    quoted = [found[1] for found in _QUOTED_AT_LENGTH.finditer(said)] if failure_reports.names(said) else []
    return [one for one in quoted if _ADVICE.search(one) and not _FIRST_PERSON.search(one)]


def reports_fault(said: str) -> bool:
    """Whether a remark reports a fault, and not only a wish."""
    return _FAULT.search(said) is not None


def is_finding(said: str) -> bool:
    """Whether a turn describes named code at some length, without a first person."""
    if len(said) > REVIEW_CHARACTERS or len(said.split()) not in REVIEW_WORDS:
        return False
    return bool(failure_reports.names(said)) and not _FIRST_PERSON.search(said)


#: So many turns before the first new one are to be given: what the state and a result's call are looked for in.
WINDOW = 40
SHELL = frozenset({"Bash", "PowerShell"})
_FAILED = re.compile(r"\s*(?:Exit code [1-9]|<tool_use_error>|Error:|error: )")


def packets(turns: Sequence[Heard], *, after: int) -> list[Packet]:
    """The packets of the turns after the ordinal `after`, in order; `turns` starts WINDOW turns earlier."""
    found: list[Packet] = []
    for at, turn in enumerate(turns):
        if turn.ordinal > after:
            found += _observed(turns[max(0, at - WINDOW) : at], turn)
    return found


def _observed(before: Sequence[Heard], turn: Heard) -> list[Packet]:
    if turn.kind == "user" and not turn.agent:
        first = not any(earlier.kind in PROMPTS for earlier in before) and turn.ordinal <= WINDOW
        seen: list[tuple[PacketKind, str, str]] = [("session", "begin", "")] if first else []
        said = quotations.own_words(turn.text)
        seen += [("order", order.words, "against" if order.against else "asked") for order in orders(said)]
        return [_packet(turn, before, turn, *one) for one in seen]
    if turn.kind == "tool_result" and turn.tool_id:
        calls = [one for one in before if one.kind == "tool_call" and one.tool_id == turn.tool_id]
        if calls:
            return [_packet(calls[-1], before, turn, *one) for one in _done(calls[-1], turn)]
    return []


def _done(call: Heard, result: Heard) -> list[tuple[PacketKind, str, str]]:
    """What a finished tool call was: commands, milestones, a notable file, an error."""
    failed = bool(_FAILED.match(result.text))
    outcome = "failed" if failed else "ok"
    if call.tool_name in SHELL:
        ran = shell_commands.significant_commands(shell_commands.command_of(call.text))
        seen: list[tuple[PacketKind, str, str]] = [
            ("milestone" if shell_commands.milestone(name) else "tool", name, outcome) for name in ran
        ]
        return seen + ([("error", ran[0] if ran else call.tool_name, outcome)] if failed else [])
    if call.tool_name in shell_commands.WRITERS and not failed:
        name = shell_commands.notable(shell_commands.file_of(call.text))
        return [("tool", name, outcome)] if name else []
    return [("error", call.tool_name, outcome)] if failed else []


def _packet(about: Heard, before: Sequence[Heard], now: Heard, kind: PacketKind, subject: str, outcome: str) -> Packet:
    return Packet(
        kind=kind, subject=subject, outcome=outcome, uuid=about.uuid, session_id=about.session_id,
        project_seq=about.project_seq, ordinal=about.ordinal, at=about.at, words=len(about.text.split()),
        state=state(_moment(before, now)),
    )  # fmt: skip


def _moment(before: Sequence[Heard], now: Heard) -> Moment:
    prompts = [turn for turn in (*before, now) if turn.kind in PROMPTS]
    gap = -1.0
    if len(prompts) > 1:
        begun, spoken = (datetime.fromisoformat(turn.at) for turn in prompts[-2:])
        gap = max(0.0, (spoken - begun).total_seconds())
    return Moment(
        said=quotations.own_words(prompts[-1].text).strip() if prompts else "",
        earlier=tuple(turn.text for turn in prompts[:-1]), gap_s=gap, ordinal=now.ordinal,
        outcomes=tuple(not _FAILED.match(turn.text) for turn in (*before, now) if turn.kind == "tool_result"),
    )  # fmt: skip


STAGE = "packets"
#: Sessions that one step looks at, and turns of each.
SESSIONS, BATCH = 8, 400


def step(store: Store) -> int:
    """Observes new turns of some sessions; how many turns, 0 for nothing left. No turn waits for its session to end."""
    looked = with_new = 0
    for session in store.read(lambda rows: cursors.sessions_behind(rows, STAGE)):
        turns = _observe(store, session)
        looked, with_new = looked + turns, with_new + (turns > 0)
        if with_new == SESSIONS:
            break
    return looked


def _observe(store: Store, session: Behind) -> int:
    """Observes the next turns of one session; how many. A transcript that a tool wrote gives no packets."""

    def read_heard(rows: Rows) -> tuple[list[Heard], int, bool]:
        upto = min(session.turns, session.position + BATCH)
        provisional = stored.first_provisional(rows, session.session_seq, after=session.position)
        upto = upto if provisional is None else min(upto, provisional - 1)
        noted = sessions.is_tampered(rows, tokens.keyed_hash(PurePath(session.path).name, store.hash_key))
        after = max(0, session.position - WINDOW)
        return stored.turns_for_packets(rows, session.session_seq, after=after, upto=upto), upto, noted

    turns, upto, noted = store.read(read_heard)
    if upto <= session.position:
        return 0
    found = [] if noted else packets(turns, after=session.position)

    def write(rows: Rows) -> int:
        stored.put_packets(rows, found)
        cursors.move_cursor(rows, STAGE, str(session.session_seq), upto)
        return upto - session.position

    return store.write(write)
