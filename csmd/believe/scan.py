"""Packets to candidates: what was counted becomes something that may be believed, with its evidence and a reason.

The policy is KINDS: what each kind of candidate is made of, as what it would be remembered, and on whose authority.
A candidate that something counts against needs a person. What people see of it is its sentence, its reason and the
turns that show it best. A function of the packets alone: in whatever order sessions come, the same candidates result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from csmd.believe.habits import Habit, habits, typical
from csmd.model import Authority, Candidate, CandidateKind, Evidence, Gate, Packet

#: The rule that put a candidate there, as `Candidate.source`.
SOURCE = "habits"
#: Turns that are cited for a habit, and those that are cited against it.
CITED, CITED_AGAINST = 4, 4
#: A command's latest runs that are looked at, and how many of them have to fail where most earlier ones did not.
LATEST_RUNS, FAILING_RUNS = 6, 4


@dataclass(frozen=True, slots=True)
class KindRule:
    """What a kind of candidate is made of and whose word it is; `promoted` whether it may become a memory."""

    made_of: str
    gate: Gate
    authority: Authority
    promoted: bool = True


#: What an assistant ran is its word and not the user's, however often the user let it.
KINDS: dict[CandidateKind, KindRule] = {
    "preference": KindRule("orders that a user gives again and again", "behavioral", "user"),
    "belief": KindRule("the command that serves a purpose here", "behavioral", "assistant"),
    "worldview": KindRule("the steps before a milestone", "behavioral", "assistant"),
    "drift_warning": KindRule("a command that has begun to fail", "epistemic", "assistant", promoted=False),
}


def candidates(packets: Iterable[Packet], *, project: int) -> list[Candidate]:
    """What the packets of one project suggest; each with the time of its first and its latest packet and no id yet."""
    ordered = list(packets)
    return [_of_habit(habit, project) for habit in habits(ordered)] + _drifting(ordered, project)


def _of_habit(habit: Habit, project: int) -> Candidate:
    against = len({one.session_id for one in habit.against})
    return Candidate(
        id="",
        kind=habit.kind,
        source=SOURCE,
        project_seq=project,
        fingerprint=habit.fingerprint,
        text=habit.text,
        reason=f"seen {len(habit.seen)} times in {habit.sessions} sessions"
        + (f", against it {against}" * bool(against)),
        confidence=habit.confidence,
        created_at=min(one.at for one in habit.seen),
        updated_at=max(one.at for one in habit.seen),
        gate=KINDS[habit.kind].gate,
        category=habit.category,
        reinforcement=len(habit.seen),
        contradicted=against,
        status="needs_review" if against else "open",
        evidence=_evidence(habit.seen, CITED, against=False) + _evidence(habit.against, CITED_AGAINST, against=True),
    )


def _evidence(seen: Iterable[Packet], most: int, *, against: bool) -> tuple[Evidence, ...]:
    """The most typical turns, each once, in the order of time."""
    turns: dict[str, Packet] = {}
    for one in typical(list(seen)):
        turns.setdefault(one.uuid, one)
    cited = sorted(list(turns.values())[:most], key=lambda one: (one.at, one.uuid))
    return tuple(Evidence(uuid=one.uuid, session_id=one.session_id, at=one.at, against=against) for one in cited)


def _drifting(packets: Iterable[Packet], project: int) -> list[Candidate]:
    """Commands most of whose latest runs failed, in two sessions or more, where most of the earlier ones did not."""
    runs: dict[str, list[Packet]] = defaultdict(list)
    for one in sorted(packets, key=lambda one: (one.at, one.ordinal, one.uuid)):
        if one.kind == "tool" and one.outcome:
            runs[one.subject].append(one)
    found = []
    for command, all_of in sorted(runs.items()):
        latest, earlier = all_of[-LATEST_RUNS:], all_of[:-LATEST_RUNS]
        failed = [one for one in latest if one.outcome == "failed"]
        before = sum(one.outcome == "failed" for one in earlier)
        if len(failed) < FAILING_RUNS or len(earlier) < LATEST_RUNS or 2 * before >= len(earlier):
            continue
        if len({one.session_id for one in failed}) < 2:
            continue
        found.append(
            Candidate(
                id="", kind="drift_warning", source=SOURCE, project_seq=project, fingerprint=f"drift:{command}",
                text=f"`{command}` fails lately: {len(failed)} of the latest {len(latest)} runs.",
                reason=f"it failed in {before} of {len(earlier)} earlier runs",
                confidence=round(len(failed) / len(latest), 4), created_at=failed[0].at, updated_at=failed[-1].at,
                gate=KINDS["drift_warning"].gate, category="gotcha", reinforcement=len(failed),
                evidence=_evidence(failed, CITED, against=False),
            )
        )  # fmt: skip
    return found
