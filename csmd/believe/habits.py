"""What packets say of how somebody works: orders given again, commands that serve a purpose, steps before a milestone.

Each is counted over sessions and told in a template over the counts; there is none without evidence from two sessions.
The order in which sessions became known does not matter: everything here is a function of the set of packets.

    confidence = sessions / (sessions + 1.25) * fit * sessions / (sessions + 2 * contradictions)

`fit` is how regular it is: of an order 1, less below one session in twenty-five; of a command its share of the sessions
in which its purpose was served, of a procedure the share of its least regular step. Three sessions and a fit of 1 just
pass 0.7, the threshold of promotion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations

from csmd import text
from csmd.distill import commands
from csmd.model import CandidateKind, Category, Packet

#: Sessions at which one is as sure as not, before anything else is looked at.
HALF = 1.25
#: One session in so many makes an order regular.
RARE = 25
#: A habit rests on so many sessions at least.
LEAST_SESSIONS = 2
#: The share of a purpose's sessions that a command has to have, and of the milestones that a step has to stand before.
REGULAR_COMMAND, REGULAR_STEP = 0.6, 0.7
MOST_STEPS = 5
#: Commands that are as sure as a promotion asks are told without those that are not.
SURE = 0.7

#: Content words at an order's beginning that it is known by; two that share two of them are the same order.
KNOWN_BY = 4

#: Purpose of a command -> what the command does, in the order they are told.
SERVES = {
    "format": "formats the code", "lint": "lints", "check types": "checks types", "build": "builds", "test": "runs the tests",
}  # fmt: skip
#: Milestone -> (how what stands before it is told, fewest steps that make a procedure of it).
BEFORE = {
    "release": ("A release is", 2),
    "pull request": ("Before a pull request come", 2),
    "commit": ("Before a commit come", 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """Something that was counted: `text` says it with its counts, `core` without; `seen` are its packets."""

    fingerprint: str
    kind: CandidateKind
    category: Category
    core: str
    count: str
    confidence: float
    seen: tuple[Packet, ...]
    against: tuple[Packet, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.core}: {self.count}."

    @property
    def sessions(self) -> int:
        return len(_sessions(self.seen))


def confidence(sessions: int, *, fit: float, against: int) -> float:
    """How sure a habit is, 0 to 1 (the formula of this module)."""
    if sessions <= 0:
        return 0.0
    return round(sessions / (sessions + HALF) * min(1.0, max(0.0, fit)) * sessions / (sessions + 2 * against), 4)


def habits(packets: Iterable[Packet]) -> list[Habit]:
    """The habits of one project's packets, by fingerprint; each rests on two sessions at least."""
    ordered = sorted(packets, key=lambda one: (one.at, one.session_id, one.ordinal, one.kind, one.subject))
    found = [*_orders(ordered), *_commands(ordered), *_procedures(ordered)]
    return sorted((one for one in found if one.sessions >= LEAST_SESSIONS), key=lambda one: one.fingerprint)


def typical(seen: Sequence[Packet]) -> list[Packet]:
    """The packets of a habit, the most typical first: one of each session before any second, the shortest turns first."""
    ranks: dict[str, int] = defaultdict(int)
    ranked = []
    for one in sorted(seen, key=lambda one: (one.words, one.at, one.uuid)):
        ranked.append((ranks[one.session_id], one))
        ranks[one.session_id] += 1
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])]


def _sessions(packets: Iterable[Packet]) -> set[str]:
    return {one.session_id for one in packets}


def _orders(packets: Sequence[Packet]) -> list[Habit]:
    """What was asked for in session after session, however it was worded; told in the shortest wording, the earliest of those."""
    total = len(_sessions(packets))
    found = []
    for key, all_of in _alike([one for one in packets if one.kind in ("order", "scope")]):
        seen = tuple(one for one in all_of if one.outcome != "against")
        against = tuple(one for one in all_of if one.outcome == "against")
        if not seen:
            continue
        count = len(_sessions(seen))
        wording = min(seen, key=lambda one: (len(one.subject.split()), one.at, one.uuid)).subject
        found.append(
            Habit(
                fingerprint=f"order:{' '.join(sorted(key))}", kind="preference", category="preference",
                core=f'Asks again and again: "{wording}"', count=f"in {count} of {total} sessions",
                confidence=confidence(count, fit=count / total * RARE, against=len(_sessions(against))),
                seen=seen, against=against,
            )
        )  # fmt: skip
    return found


def _alike(asked: Sequence[Packet]) -> list[tuple[frozenset[str], list[Packet]]]:
    """Orders that share two content words, or are one and the same word, the words shared in most sessions first; each order once."""
    having: dict[frozenset[str], list[int]] = defaultdict(list)
    for at, one in enumerate(asked):
        words = list(dict.fromkeys(map(text.stem, text.content_words(one.subject))))[:KNOWN_BY]
        for key in map(frozenset, combinations(words, min(2, len(words)))):
            having[key].append(at)
    counted = ((len(_sessions(asked[at] for at in of)), sorted(key)) for key, of in having.items())
    waiting = [(-count, words) for count, words in counted if count >= LEAST_SESSIONS]
    heapify(waiting)
    found: list[tuple[frozenset[str], list[Packet]]] = []
    taken: set[int] = set()
    while waiting:
        count, words = heappop(waiting)
        left = [at for at in having[frozenset(words)] if at not in taken]
        still = len(_sessions(asked[at] for at in left))
        if still == -count:
            taken.update(left)
            found.append((frozenset(words), [asked[at] for at in left]))
        elif still >= LEAST_SESSIONS:  # some of these were others, which more sessions share
            heappush(waiting, (-still, words))
    return found


def _commands(packets: Sequence[Packet]) -> list[Habit]:
    """For each purpose the one command that serves it in most of the sessions that serve it; those that are sure together."""
    ran: dict[str, dict[str, list[Packet]]] = defaultdict(lambda: defaultdict(list))
    for one in packets:
        if one.kind == "tool" and (purpose := commands.purpose(one.subject)):
            ran[purpose][one.subject].append(one)
    usual: list[tuple[float, str, str, list[Packet]]] = []
    for purpose in (purpose for purpose in SERVES if purpose in ran):
        total = len(_sessions(one for seen in ran[purpose].values() for one in seen))
        command, seen = min(ran[purpose].items(), key=lambda pair: (-len(_sessions(pair[1])), pair[0]))
        count = len(_sessions(seen))
        if count >= max(LEAST_SESSIONS, REGULAR_COMMAND * total):
            usual.append((confidence(count, fit=count / total, against=0), purpose, command, seen))
    told = [one for one in usual if one[0] >= SURE] or usual
    if not told:
        return []
    counts = [str(len(_sessions(seen))) for *_, seen in told]
    return [
        Habit(
            fingerprint="commands", kind="belief", category="convention",
            core=_listed([f"`{command}` {SERVES[purpose]}" for _, purpose, command, _ in told]),
            count=f"in {_listed(counts if len(set(counts)) > 1 else counts[:1])} sessions", confidence=min(sure for sure, *_ in told),
            seen=tuple(one for *_, seen in told for one in seen),
        )
    ]  # fmt: skip


def _procedures(packets: Sequence[Packet]) -> list[Habit]:
    """What regularly stands before a milestone in its session, since the one of its kind before it."""
    reached: dict[str, list[tuple[Packet, dict[str, Packet]]]] = defaultdict(list)
    for run in _by_session(packets):
        since: dict[str, dict[str, Packet]] = defaultdict(dict)
        for one in run:
            name = commands.milestone(one.subject) if one.kind == "milestone" else ""
            if name and one.outcome != "failed":
                if not (name == "commit" and not since[name]):
                    reached[name].append((one, since[name]))
                since[name] = {}
            step = _step(one)
            for other in BEFORE:
                if step and other != name:
                    since[other].setdefault(step, one)
    return [habit for name, times in sorted(reached.items()) if name in BEFORE for habit in _procedure(name, times)]


def _procedure(name: str, times: Sequence[tuple[Packet, dict[str, Packet]]]) -> list[Habit]:
    counts: dict[str, int] = defaultdict(int)
    places: dict[str, float] = defaultdict(float)
    for _, steps in times:
        for place, step in enumerate(steps):
            counts[step] += 1
            places[step] += place / len(steps)
    regular = [step for step, count in counts.items() if count >= max(2, REGULAR_STEP * len(times))]
    regular.sort(key=lambda step: (places[step] / counts[step], step))
    told, fewest = BEFORE[name]
    if not fewest <= len(regular):
        return []
    regular = regular[:MOST_STEPS]
    least = min(counts[step] for step in regular)
    whole = [(end, steps) for end, steps in times if all(step in steps for step in regular)]
    if not whole:
        return []
    words = [f"`{step}`" for step in regular] + ([f"`{times[-1][0].subject}`"] if name == "release" else [])
    listed = _listed(words, last=", then ")
    if len(words) == 1:
        told = told.removesuffix("come") + "comes"
    count = len(_sessions(end for end, _ in whole))
    return [
        Habit(
            fingerprint=f"procedure:{name}", kind="worldview", category="procedure", core=f"{told} {listed}",
            count=f"{len(whole)} of {len(times)} times",
            confidence=confidence(count, fit=least / len(times), against=0), seen=tuple(end for end, _ in whole),
        )
    ]  # fmt: skip


def _listed(words: Sequence[str], *, last: str = " and ") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}{last}{words[-1]}"


def _step(one: Packet) -> str:
    """What a packet is as a step of a procedure, "" for none."""
    if one.outcome == "failed":
        return ""
    if one.kind == "tool":
        return one.subject
    return one.subject if one.kind == "milestone" and commands.milestone(one.subject) == "release" else ""


def _by_session(packets: Sequence[Packet]) -> list[list[Packet]]:
    runs: dict[str, list[Packet]] = defaultdict(list)
    for one in packets:
        runs[one.session_id].append(one)
    return [sorted(run, key=lambda one: one.ordinal) for _, run in sorted(runs.items())]
