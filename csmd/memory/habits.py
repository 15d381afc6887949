"""Finds habits, which recur in a project's packets over sessions, counts them and makes candidates of them; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations
from operator import attrgetter, itemgetter

from csmd.extraction import shell_commands
from csmd.knowledge import Candidate, Evidence, Packet
from csmd.text import display, sentence, tokens
from csmd.vocabulary import Authority, CandidateKind, Category, Gate

#: The rule that made a candidate, as `Candidate.source`.
SOURCE = "habits"
#: Prefix of the fingerprint of an order.
ORDER_PREFIX = "order:"
#: Most turns cited for a habit, and most against it.
MAX_CITED = 4
#: A habit rests on at least this many sessions.
MIN_SESSIONS = 2
#: Number of sessions that makes a habit half certain.
HALF_CERTAIN_SESSIONS = 1.25
#: An order given in one of this many sessions is regular.
REGULAR_ORDER_SESSIONS = 25
#: Least share of a purpose's sessions that run its usual command.
MIN_COMMAND_SHARE = 0.6
#: Least share of the milestones that a regular step precedes.
MIN_STEP_SHARE = 0.7
MAX_STEPS = 5
#: Commands with less confidence are named only if none has more.
MIN_NAMED_CONFIDENCE = 0.7
#: Most content words from an order's beginning that identify it; orders that share two of them are the same.
MAX_KEY_WORDS = 4
#: A command's latest runs that are compared with the earlier ones.
LATEST_RUNS = 6
#: Fewest of the latest runs that failed, for a warning.
MIN_FAILED_RUNS = 4

#: Purpose of a command -> what the command does, in the order in which they are listed.
PURPOSES = {
    "format": "formats the code", "lint": "lints", "check types": "checks types", "build": "builds",
    "test": "runs the tests",
}  # fmt: skip
#: Milestone -> (how its steps are introduced, the fewest steps that make a procedure).
MILESTONES = {
    "release": ("A release is", 2), "pull request": ("Before a pull request come", 2), "commit": ("Before a commit come", 1),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KindRule:
    """The source and authority of a kind of candidate; `promoted`: it may become a memory."""

    made_of: str
    gate: Gate
    authority: Authority
    promoted: bool = True


#: A command that an assistant ran has the assistant's authority, however often the user allowed it.
KINDS: dict[CandidateKind, KindRule] = {
    "preference": KindRule("orders that a user gives again and again", "behavioral", "user"),
    "belief": KindRule("the command that serves a purpose here", "behavioral", "assistant"),
    "worldview": KindRule("the steps before a milestone", "behavioral", "assistant"),
    "drift_warning": KindRule("a command that has begun to fail", "epistemic", "assistant", promoted=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """A pattern that recurs in the packets `seen`: `core` states it, `count` its frequency, `text` both.

    `total` is the number of milestones that a procedure could have preceded.
    """

    fingerprint: str
    kind: CandidateKind
    category: Category
    core: str
    count: str
    confidence: float
    seen: tuple[Packet, ...]
    against: tuple[Packet, ...] = ()
    total: int = 0

    @property
    def text(self) -> str:
        """The pattern with its frequency, as a sentence."""
        return f"{self.core}: {self.count}."

    @property
    def sessions(self) -> int:
        """The number of sessions that show it."""
        return count_sessions(self.seen)


def derive_candidates(packets: Iterable[Packet], *, project: int) -> list[Candidate]:
    """Returns candidates, still without ids, for the habits and the failing commands in one project's packets."""
    ordered = list(packets)
    return [_to_candidate(habit, project) for habit in find_habits(ordered)] + _find_failing_commands(ordered, project)


def _to_candidate(habit: Habit, project: int) -> Candidate:
    against = count_sessions(habit.against)
    frequency = f"seen {display.amount(len(habit.seen), 'time')} in {display.amount(habit.sessions, 'session')}"
    return Candidate(
        id="", kind=habit.kind, source=SOURCE, project_seq=project, fingerprint=habit.fingerprint, text=habit.text,
        reason=f"{frequency}, against it {against}" if against else frequency, confidence=habit.confidence,
        created_at=min(packet.at for packet in habit.seen), updated_at=max(packet.at for packet in habit.seen),
        gate=KINDS[habit.kind].gate, category=habit.category, reinforcement=len(habit.seen), contradicted=against,
        status="needs_review" if against else "open",
        evidence=_cite(habit.seen, against=False) + _cite(habit.against, against=True),
    )  # fmt: skip


def _cite(packets: Sequence[Packet], *, against: bool) -> tuple[Evidence, ...]:
    """Cites the most typical turns, each once, in order of time."""
    by_turn: dict[str, Packet] = {}
    for packet in sort_by_typicality(packets):
        by_turn.setdefault(packet.uuid, packet)
    cited = sorted(list(by_turn.values())[:MAX_CITED], key=lambda packet: (packet.at, packet.uuid))
    return tuple(Evidence(uuid=turn.uuid, session_id=turn.session_id, at=turn.at, against=against) for turn in cited)


def _find_failing_commands(packets: Iterable[Packet], project: int) -> list[Candidate]:
    """Returns warnings of commands whose latest runs mostly failed, over several sessions, unlike the earlier ones."""
    runs: dict[str, list[Packet]] = defaultdict(list)
    for packet in sorted(packets, key=attrgetter("at", "ordinal", "uuid")):
        if packet.kind == "tool" and packet.outcome:
            runs[packet.subject].append(packet)
    warnings = []
    for command, command_runs in sorted(runs.items()):
        latest, earlier = command_runs[-LATEST_RUNS:], command_runs[:-LATEST_RUNS]
        failed = [packet for packet in latest if packet.outcome == "failed"]
        before = sum(packet.outcome == "failed" for packet in earlier)
        is_new = len(earlier) >= LATEST_RUNS and 2 * before < len(earlier)
        if not is_new or len(failed) < MIN_FAILED_RUNS or count_sessions(failed) < MIN_SESSIONS:
            continue
        warnings.append(
            Candidate(
                id="", kind="drift_warning", source=SOURCE, project_seq=project, fingerprint=f"drift:{command}",
                text=f"`{command}` fails lately: {len(failed)} of the latest {len(latest)} runs.",
                reason=f"it failed in {before} of {len(earlier)} earlier runs",
                confidence=round(len(failed) / len(latest), 4), created_at=failed[0].at, updated_at=failed[-1].at,
                gate=KINDS["drift_warning"].gate, category="gotcha", reinforcement=len(failed),
                evidence=_cite(failed, against=False),
            )
        )  # fmt: skip
    return warnings


def estimate_confidence(sessions: int, *, fit: float, against: int) -> float:
    """Estimates the confidence (0-1) of a habit by its sessions, their share (`fit`), and the sessions against it."""
    if sessions <= 0:
        return 0.0
    certainty = sessions / (sessions + HALF_CERTAIN_SESSIONS)
    return round(certainty * min(1.0, max(0.0, fit)) * sessions / (sessions + 2 * against), 4)


def find_habits(packets: Iterable[Packet]) -> list[Habit]:
    """Finds the habits in one project's packets, by fingerprint; each rests on at least MIN_SESSIONS sessions."""
    ordered = sorted(packets, key=attrgetter("at", "session_id", "ordinal", "kind", "subject"))
    habits = [*_find_orders(ordered), *_find_usual_commands(ordered), *_find_procedures(ordered)]
    return sorted((habit for habit in habits if habit.sessions >= MIN_SESSIONS), key=lambda habit: habit.fingerprint)


def sort_by_typicality(packets: Iterable[Packet]) -> list[Packet]:
    """Sorts packets, the most typical first: one of each session, then a second one, the shortest turns first."""
    counts = Counter[str]()
    ranked = []
    for packet in sorted(packets, key=lambda packet: (packet.words, packet.at, packet.uuid)):
        counts[packet.session_id] += 1
        ranked.append((counts[packet.session_id], packet))
    return [packet for _, packet in sorted(ranked, key=itemgetter(0))]


def count_sessions(packets: Iterable[Packet]) -> int:
    """Returns the number of sessions of some packets."""
    return len({packet.session_id for packet in packets})


# --- orders


def _find_orders(packets: Sequence[Packet]) -> list[Habit]:
    """Finds orders given in several sessions, however worded; quotes the shortest wording, the earliest of those.

    Assent, greetings and prompts to go on are not orders.
    """
    total = count_sessions(packets)
    orders = [packet for packet in packets if packet.kind in ("order", "scope")]
    habits = []
    for key, group in _group_orders([order for order in orders if sentence.parse(order.subject).kind != "assents"]):
        seen = tuple(packet for packet in group if packet.outcome != "against")
        against = tuple(packet for packet in group if packet.outcome == "against")
        if not seen:
            continue
        count = count_sessions(seen)
        wording = min(seen, key=lambda packet: (len(packet.subject.split()), packet.at, packet.uuid)).subject
        fit = count / total * REGULAR_ORDER_SESSIONS
        certainty = estimate_confidence(count, fit=fit, against=count_sessions(against))
        habits.append(
            Habit(
                fingerprint=f"{ORDER_PREFIX}{' '.join(sorted(key))}", kind="preference", category="procedure",
                core=f'Asks again and again: "{wording}"', count=f"in {count} of {total} sessions", confidence=certainty,
                seen=seen, against=against,
            )
        )  # fmt: skip
    return habits


def _group_orders(orders: Sequence[Packet]) -> list[tuple[frozenset[str], list[Packet]]]:
    """Groups orders that share two content words, or are one word, each order once; most sessions first."""
    with_key: dict[frozenset[str], list[int]] = defaultdict(list)
    for index, order in enumerate(orders):
        words = list(dict.fromkeys(map(tokens.stem, tokens.content_words(order.subject))))[:MAX_KEY_WORDS]
        for key in map(frozenset, combinations(words, min(2, len(words)))):
            with_key[key].append(index)
    sizes = ((count_sessions(orders[index] for index in indexes), sorted(key)) for key, indexes in with_key.items())
    heap = [(-size, words) for size, words in sizes if size >= MIN_SESSIONS]
    heapify(heap)
    groups: list[tuple[frozenset[str], list[Packet]]] = []
    grouped: set[int] = set()
    while heap:
        negative_size, words = heappop(heap)
        key = frozenset(words)
        remaining = [index for index in with_key[key] if index not in grouped]
        size = count_sessions(orders[index] for index in remaining)
        if size == -negative_size:
            grouped.update(remaining)
            groups.append((key, [orders[index] for index in remaining]))
        elif size >= MIN_SESSIONS:  # some of these orders joined a larger group
            heappush(heap, (-size, words))
    return groups


# --- commands and procedures


def group_runs(packets: Iterable[Packet]) -> Mapping[str, Mapping[str, list[Packet]]]:
    """Groups the runs of commands by purpose and command."""
    runs: dict[str, dict[str, list[Packet]]] = defaultdict(lambda: defaultdict(list))
    for packet in packets:
        if packet.kind == "tool" and (purpose := shell_commands.find_purpose(packet.subject)):
            runs[purpose][packet.subject].append(packet)
    return runs


def _find_usual_commands(packets: Sequence[Packet]) -> list[Habit]:
    """Finds the habit that names, for each purpose, the command that serves it in most sessions."""
    runs = group_runs(packets)
    usual: list[tuple[float, str, int, list[Packet]]] = []
    for purpose in (purpose for purpose in PURPOSES if purpose in runs):
        total = count_sessions(packet for of_command in runs[purpose].values() for packet in of_command)
        command, seen = min(runs[purpose].items(), key=lambda item: (-count_sessions(item[1]), item[0]))
        count = count_sessions(seen)
        if count >= max(MIN_SESSIONS, MIN_COMMAND_SHARE * total):
            certainty = estimate_confidence(count, fit=count / total, against=0)
            usual.append((certainty, f"`{command}` {PURPOSES[purpose]}", count, seen))
    usual = [command for command in usual if command[0] >= MIN_NAMED_CONFIDENCE] or usual
    if not usual:
        return []
    counts = [str(count) for _, _, count, _ in usual]
    counts = counts if len(set(counts)) > 1 else counts[:1]
    return [
        Habit(
            fingerprint="commands", kind="belief", category="convention",
            core=display.join_names([text for _, text, _, _ in usual]),
            count=f"in {display.join_names(counts)} sessions", confidence=min(certainty for certainty, *_ in usual),
            seen=tuple(packet for *_, seen in usual for packet in seen),
        )
    ]  # fmt: skip


def _find_procedures(packets: Sequence[Packet]) -> list[Habit]:
    """Finds the steps that regularly precede a milestone, since the previous one of its kind in the session."""
    milestones: dict[str, list[tuple[Packet, dict[str, Packet]]]] = defaultdict(list)
    by_session: dict[str, list[Packet]] = defaultdict(list)
    for packet in packets:
        by_session[packet.session_id].append(packet)
    for _, run in sorted(by_session.items()):
        steps: dict[str, dict[str, Packet]] = defaultdict(dict)
        for packet in sorted(run, key=lambda packet: packet.ordinal):
            name = shell_commands.find_milestone(packet.subject) if packet.kind == "milestone" else ""
            if name and packet.outcome != "failed":
                if name != "commit" or steps[name]:
                    milestones[name].append((packet, steps[name]))
                steps[name] = {}
            step = _step_name(packet)
            for other in MILESTONES:
                if step and other != name:
                    steps[other].setdefault(step, packet)
    procedures = (_to_procedure(name, times) for name, times in sorted(milestones.items()) if name in MILESTONES)
    return [procedure for procedure in procedures if procedure is not None]


def _step_name(packet: Packet) -> str:
    """Returns the name of a packet that is a step of a procedure, a command or release that did not fail; else ""."""
    is_release = packet.kind == "milestone" and shell_commands.find_milestone(packet.subject) == "release"
    return packet.subject if packet.outcome != "failed" and (packet.kind == "tool" or is_release) else ""


def _to_procedure(name: str, times: Sequence[tuple[Packet, dict[str, Packet]]]) -> Habit | None:
    """Returns the procedure of a milestone from the (milestone, steps before it) of each time; None if there is none."""
    counts = Counter(step for _, steps in times for step in steps)
    positions: dict[str, float] = defaultdict(float)
    for _, steps in times:
        for position, step in enumerate(steps):
            positions[step] += position / len(steps)
    regular = [step for step, count in counts.items() if count >= max(2, MIN_STEP_SHARE * len(times))]
    regular.sort(key=lambda step: (positions[step] / counts[step], step))
    occasion, fewest = MILESTONES[name]
    if len(regular) < fewest:
        return None
    regular = regular[:MAX_STEPS]
    complete = tuple(milestone for milestone, steps in times if all(step in steps for step in regular))
    if not complete:
        return None
    names = [f"`{step}`" for step in regular] + ([f"`{times[-1][0].subject}`"] if name == "release" else [])
    if len(names) == 1:
        occasion = occasion.removesuffix("come") + "comes"
    listing = ", then ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    fit = min(counts[step] for step in regular) / len(times)
    return Habit(
        fingerprint=f"procedure:{name}", kind="worldview", category="procedure", core=f"{occasion} {listing}",
        count=f"{len(complete)} of {len(times)} times", seen=complete, total=len(times),
        confidence=estimate_confidence(count_sessions(complete), fit=fit, against=0),
    )  # fmt: skip
