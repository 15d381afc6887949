"""Recurring packets to candidates, and to memories when they have proved themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import combinations
from operator import itemgetter
from typing import Literal

from csmd.extraction import shell_commands
from csmd.memory import confidence, remember, supersession
from csmd.store import belief_changes, candidates, cursors, memories, packet_rows, project_merges, projects, tombstones
from csmd.store.core import Store
from csmd.store.memories import INFERRED
from csmd.store.sqlite import Rows
from csmd.text import display, sentence, tokens
from csmd.values import Candidate, Evidence, Memory, Packet, Provenance, Statement
from csmd.vocabulary import Authority, CandidateKind, Category, Gate, Scope

#: The rule that put a candidate there, as `Candidate.source`.
SOURCE = "habits"
#: Turns that are cited for a habit, and those that are cited against it.
CITED, CITED_AGAINST = 4, 4
#: A command's latest runs that are looked at, and how many of them have to fail where most earlier ones did not.
LATEST_RUNS, FAILING_RUNS = 6, 4


@dataclass(frozen=True, slots=True)
class KindRule:
    """What a kind of candidate is made of, and whose word it is; `promoted`: it may become a memory."""

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


def derive_candidates(packets: Iterable[Packet], *, project: int) -> list[Candidate]:
    """Makes candidates, still without ids, of what recurs in one project's packets."""
    ordered = list(packets)
    return [_habit_candidate(habit, project) for habit in habits(ordered)] + _find_drift(ordered, project)


def _habit_candidate(habit: Habit, project: int) -> Candidate:
    against = len(_sessions(habit.against))
    return Candidate(
        id="", kind=habit.kind, source=SOURCE, project_seq=project, fingerprint=habit.fingerprint, text=habit.text,
        reason=f"seen {display.amount(len(habit.seen), 'time')} in {display.amount(habit.sessions, 'session')}"
        + (f", against it {against}" * bool(against)),
        confidence=habit.confidence, created_at=min(packet.at for packet in habit.seen),
        updated_at=max(packet.at for packet in habit.seen), gate=KINDS[habit.kind].gate, category=habit.category,
        reinforcement=len(habit.seen), contradicted=against, status="needs_review" if against else "open",
        evidence=_evidence(habit.seen, CITED, against=False) + _evidence(habit.against, CITED_AGAINST, against=True),
    )  # fmt: skip


def _evidence(seen: Iterable[Packet], most: int, *, against: bool) -> tuple[Evidence, ...]:
    """The most typical turns, each once, in order of time."""
    by_turn: dict[str, Packet] = {}
    for packet in typical(list(seen)):
        by_turn.setdefault(packet.uuid, packet)
    cited = sorted(list(by_turn.values())[:most], key=lambda packet: (packet.at, packet.uuid))
    return tuple(
        Evidence(uuid=source.uuid, session_id=source.session_id, at=source.at, against=against) for source in cited
    )


def _find_drift(packets: Iterable[Packet], project: int) -> list[Candidate]:
    """Commands most of whose latest runs failed, in two sessions or more, where most of the earlier ones did not."""
    runs: dict[str, list[Packet]] = defaultdict(list)
    for packet in sorted(packets, key=lambda packet: (packet.at, packet.ordinal, packet.uuid)):
        if packet.kind == "tool" and packet.outcome:
            runs[packet.subject].append(packet)
    warnings = []
    for command, all_of in sorted(runs.items()):
        latest, earlier = all_of[-LATEST_RUNS:], all_of[:-LATEST_RUNS]
        failed = [packet for packet in latest if packet.outcome == "failed"]
        before = sum(packet.outcome == "failed" for packet in earlier)
        is_new = len(earlier) >= LATEST_RUNS and 2 * before < len(earlier)
        if not is_new or len(failed) < FAILING_RUNS or len(_sessions(failed)) < 2:
            continue
        warnings.append(
            Candidate(
                id="", kind="drift_warning", source=SOURCE, project_seq=project, fingerprint=f"drift:{command}",
                text=f"`{command}` fails lately: {len(failed)} of the latest {len(latest)} runs.",
                reason=f"it failed in {before} of {len(earlier)} earlier runs",
                confidence=round(len(failed) / len(latest), 4), created_at=failed[0].at, updated_at=failed[-1].at,
                gate=KINDS["drift_warning"].gate, category="gotcha", reinforcement=len(failed),
                evidence=_evidence(failed, CITED, against=False),
            )
        )  # fmt: skip
    return warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a candidate has to reach: confidence (0-1), times seen, pieces of evidence."""

    confidence: float
    reinforcement: int
    evidence: int


Step = Literal["promote", "review", "known", "wait"]
DEFAULT = Profile(confidence=0.7, reinforcement=3, evidence=2)
RELAXED = Profile(confidence=0.3, reinforcement=1, evidence=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What to do with a candidate, and why; `memory_id` is the memory that says the same already."""

    candidate: Candidate
    step: Step
    reasons: tuple[str, ...]
    memory_id: str = ""


def promotions(proposed: Iterable[Candidate], *, profile: Profile, memory_of: Mapping[str, str]) -> list[Action]:
    """Decides about waiting candidates, the surest first; `memory_of` maps a candidate to the memory that says the same."""
    ordered = sorted(
        proposed, key=lambda waiting: (-waiting.confidence, waiting.kind, waiting.fingerprint, waiting.project_seq)
    )
    actions = []
    for candidate in ordered:
        memory_id = memory_of.get(candidate.id, "")
        step, reasons = _decide(candidate, profile, memory_id)
        memory_id = memory_id if step == "known" else ""
        actions.append(Action(candidate=candidate, step=step, reasons=reasons, memory_id=memory_id))
    return actions


def _decide(candidate: Candidate, profile: Profile, memory_id: str) -> tuple[Step, tuple[str, ...]]:
    if candidate.kind not in KINDS or not KINDS[candidate.kind].promoted:
        return "wait", ("is told, and is nothing to remember",)
    if candidate.contradicted or candidate.status == "needs_review":
        against = display.amount(candidate.contradicted, "session")
        return "review", (f"{against} against it: a person has to say",)
    if memory_id:
        return "known", (f"{memory_id} says the same",)
    evidence = sum(not cited.against for cited in candidate.evidence)
    measured = (
        ("confidence", round(candidate.confidence * 100), round(profile.confidence * 100), candidate.confidence >= profile.confidence),
        ("times seen", candidate.reinforcement, profile.reinforcement, candidate.reinforcement >= profile.reinforcement),
        ("evidence", evidence, profile.evidence, evidence >= profile.evidence),
    )  # fmt: skip
    lacking = tuple(f"{name} {has}, {needed} are needed" for name, has, needed, is_enough in measured if not is_enough)
    enough = tuple(f"{name} {has} (at least {needed})" for name, has, needed, _ in measured)
    return ("wait", lacking) if lacking else ("promote", enough)


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
    """Something that recurs: `text` says it with its counts, `core` without; `seen` are its packets."""

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


def habit_confidence(sessions: int, *, fit: float, against: int) -> float:
    """How sure a habit is, 0-1, by sessions with it, the share that they make (`fit`), and sessions against it."""
    if sessions <= 0:
        return 0.0
    return round(sessions / (sessions + HALF) * min(1.0, max(0.0, fit)) * sessions / (sessions + 2 * against), 4)


def habits(packets: Iterable[Packet]) -> list[Habit]:
    """The habits of one project's packets, by fingerprint; each rests on two sessions at least."""
    ordered = sorted(
        packets, key=lambda packet: (packet.at, packet.session_id, packet.ordinal, packet.kind, packet.subject)
    )
    derived = [*_orders(ordered), *_commands(ordered), *_procedures(ordered)]
    return sorted((habit for habit in derived if habit.sessions >= LEAST_SESSIONS), key=lambda habit: habit.fingerprint)


def typical(seen: Sequence[Packet]) -> list[Packet]:
    """Sorts packets, the most typical first: one of each session before any second, the shortest turns first."""
    counts = Counter[str]()
    ranked = []
    for packet in sorted(seen, key=lambda packet: (packet.words, packet.at, packet.uuid)):
        counts[packet.session_id] += 1
        ranked.append((counts[packet.session_id], packet))
    return [packet for _, packet in sorted(ranked, key=itemgetter(0))]


def _sessions(packets: Iterable[Packet]) -> set[str]:
    return {packet.session_id for packet in packets}


def _orders(packets: Sequence[Packet]) -> list[Habit]:
    """Orders given in session after session, however worded; quoted in the shortest wording, the earliest of those.

    Who assents, greets or says to go on orders nothing.
    """
    total = len(_sessions(packets))
    habits_found = []
    orders = (packet for packet in packets if packet.kind in ("order", "scope"))
    for key, all_of in _alike([order for order in orders if sentence.parse(order.subject).kind != "assents"]):
        seen, against = (
            tuple(packet for packet in all_of if (packet.outcome == "against") is is_against)
            for is_against in (False, True)
        )
        if not seen:
            continue
        count = len(_sessions(seen))
        wording = min(seen, key=lambda packet: (len(packet.subject.split()), packet.at, packet.uuid)).subject
        habits_found.append(
            Habit(
                fingerprint=f"order:{' '.join(sorted(key))}", kind="preference", category="procedure",
                core=f'Asks again and again: "{wording}"', count=f"in {count} of {total} sessions",
                confidence=habit_confidence(count, fit=count / total * RARE, against=len(_sessions(against))),
                seen=seen, against=against,
            )
        )  # fmt: skip
    return habits_found


def _alike(orders: Sequence[Packet]) -> list[tuple[frozenset[str], list[Packet]]]:
    """Groups orders that share two content words, or are one word, largest group (in sessions) first; each order once."""
    having: dict[frozenset[str], list[int]] = defaultdict(list)
    for at, order in enumerate(orders):
        words = list(dict.fromkeys(map(tokens.stem, tokens.content_words(order.subject))))[:KNOWN_BY]
        for key in map(frozenset, combinations(words, min(2, len(words)))):
            having[key].append(at)
    counted = ((len(_sessions(orders[at] for at in of)), sorted(key)) for key, of in having.items())
    waiting = [(-count, words) for count, words in counted if count >= LEAST_SESSIONS]
    heapify(waiting)
    groups: list[tuple[frozenset[str], list[Packet]]] = []
    taken: set[int] = set()
    while waiting:
        count, words = heappop(waiting)
        left = [at for at in having[frozenset(words)] if at not in taken]
        still = len(_sessions(orders[at] for at in left))
        if still == -count:
            taken.update(left)
            groups.append((frozenset(words), [orders[at] for at in left]))
        elif still >= LEAST_SESSIONS:  # some of these were others, which more sessions share
            heappush(waiting, (-still, words))
    return groups


def _commands(packets: Sequence[Packet]) -> list[Habit]:
    """One habit that names, for each purpose, the command that serves it in most sessions."""
    ran: dict[str, dict[str, list[Packet]]] = defaultdict(lambda: defaultdict(list))
    for packet in packets:
        if packet.kind == "tool" and (purpose := shell_commands.purpose(packet.subject)):
            ran[purpose][packet.subject].append(packet)
    usual: list[tuple[float, str, str, list[Packet]]] = []
    for purpose in (purpose for purpose in SERVES if purpose in ran):
        total = len(_sessions(packet for seen in ran[purpose].values() for packet in seen))
        command, seen = min(ran[purpose].items(), key=lambda pair: (-len(_sessions(pair[1])), pair[0]))
        count = len(_sessions(seen))
        if count >= max(LEAST_SESSIONS, REGULAR_COMMAND * total):
            usual.append((habit_confidence(count, fit=count / total, against=0), purpose, command, seen))
    regular = [packet for packet in usual if packet[0] >= SURE] or usual
    if not regular:
        return []
    counts = [str(len(_sessions(seen))) for *_, seen in regular]
    return [
        Habit(
            fingerprint="commands", kind="belief", category="convention",
            core=display.join_names([f"`{command}` {SERVES[purpose]}" for _, purpose, command, _ in regular]),
            count=f"in {display.join_names(counts if len(set(counts)) > 1 else counts[:1])} sessions", confidence=min(sure for sure, *_ in regular),
            seen=tuple(packet for *_, seen in regular for packet in seen),
        )
    ]  # fmt: skip


def _procedures(packets: Sequence[Packet]) -> list[Habit]:
    """Steps that regularly precede a milestone, counted from the one of its kind before it in the session."""
    reached: dict[str, list[tuple[Packet, dict[str, Packet]]]] = defaultdict(list)
    by_session: dict[str, list[Packet]] = defaultdict(list)
    for packet in packets:
        by_session[packet.session_id].append(packet)
    for _, run in sorted(by_session.items()):
        since: dict[str, dict[str, Packet]] = defaultdict(dict)
        for packet in sorted(run, key=lambda packet: packet.ordinal):
            name = shell_commands.milestone(packet.subject) if packet.kind == "milestone" else ""
            if name and packet.outcome != "failed":
                if not (name == "commit" and not since[name]):
                    reached[name].append((packet, since[name]))
                since[name] = {}
            step = _step(packet)
            for other in BEFORE:
                if step and other != name:
                    since[other].setdefault(step, packet)
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
    occasion, fewest = BEFORE[name]
    if not fewest <= len(regular):
        return []
    regular = regular[:MOST_STEPS]
    least = min(counts[step] for step in regular)
    whole = [(end, steps) for end, steps in times if all(step in steps for step in regular)]
    if not whole:
        return []
    words = [f"`{step}`" for step in regular] + ([f"`{times[-1][0].subject}`"] if name == "release" else [])
    listed = ", then ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
    if len(words) == 1:
        occasion = occasion.removesuffix("come") + "comes"
    count = len(_sessions(end for end, _ in whole))
    return [
        Habit(
            fingerprint=f"procedure:{name}", kind="worldview", category="procedure", core=f"{occasion} {listed}",
            count=f"{len(whole)} of {len(times)} times",
            confidence=habit_confidence(count, fit=least / len(times), against=0), seen=tuple(end for end, _ in whole),
        )
    ]  # fmt: skip


def _step(packet: Packet) -> str:
    """A packet's name as a step of a procedure, "" if it is none: a command or a release that did not fail."""
    is_release = packet.kind == "milestone" and shell_commands.milestone(packet.subject) == "release"
    return packet.subject if packet.outcome != "failed" and (packet.kind == "tool" or is_release) else ""


#: The latest packets of a project that are counted.
MOST_PACKETS = 20_000
#: Most candidates that one plan looks at.
MOST_CANDIDATES = 2_000
BY = "csmd"
#: What the fingerprint of an order begins with.
ORDER = "order:"


def step(store: Store, *, now: str, promoting: bool = True, quiet_before: str = "") -> int:
    """Derives candidates for projects whose packets changed; how many, 0 for nothing left.

    `promoting`: what passes becomes a memory. With `quiet_before`, projects observed since then wait: someone is at work.
    """
    changed = store.read(lambda rows: packet_rows.projects_to_scan(rows, quiet_before=quiet_before, now=now))
    for project, top in changed:
        _count(store, project, top, now=now, promoting=promoting)
    return len(changed)


def _count(store: Store, project: int, top: int, *, now: str, promoting: bool) -> None:
    observed = store.read(lambda rows: packet_rows.latest_packets(rows, projects=[project], limit=MOST_PACKETS))
    derived = derive_candidates(observed, project=project)

    def write(rows: Rows) -> None:
        if dict(packet_rows.projects_to_scan(rows)).get(project) != top:
            return  # changed meanwhile: counted in the next step
        replace_candidates(rows, derived, project=project, key=store.hash_key, now=now)
        if promoting:
            carry_out(rows, plan_promotions(rows, projects=[project], profile=DEFAULT), key=store.hash_key, now=now)
        cursors.move_cursor(rows, packet_rows.SCAN, str(project), top)

    store.write(write)


# --- candidates


def replace_candidates(rows: Rows, derived: Sequence[Candidate], *, project: int, key: bytes, now: str) -> None:
    """Makes a project's queue hold exactly the candidates that were found, as far as this source is concerned."""
    marks = tombstones.marks(rows, key)
    allowed = {
        (candidate.kind, candidate.fingerprint): candidate
        for candidate in derived
        if not marks.spans(f"{candidate.text} {candidate.fingerprint}")
    }
    for stored in candidates.of_source(rows, SOURCE, project=project):
        candidate = allowed.pop((stored.kind, stored.fingerprint), None)
        if candidate is None:
            _withdraw(rows, stored, key=key)
        elif stored.status != "dropped":
            _renew(rows, stored, candidate, key=key, now=now)
    for candidate in allowed.values():
        candidates.put_candidate(
            rows, replace(candidate, id=candidates.identity(candidate.kind, project, candidate.fingerprint, ""))
        )


def _withdraw(rows: Rows, stored: Candidate, *, key: bytes) -> None:
    """Removes a candidate that nothing supports any more, and takes it out of the memory that was inferred from it."""
    inferred = _inferred(rows, stored)
    if stored.status != "dropped":
        candidates.remove(rows, stored)
    for memory in inferred:
        _retell(rows, memory, before=stored, key=key)


def _renew(rows: Rows, stored: Candidate, derived: Candidate, *, key: bytes, now: str) -> None:
    """Updates a candidate, and the memory that it became."""
    is_over = stored.status in ("promoted", "done")
    believed = any(memories.by_id(rows, ident) for ident in stored.memory_ids)
    if is_over and not believed:
        behind = _behind(rows, stored.memory_ids) or [stored]
        if tombstones.is_statement_forgotten(
            rows, _joined(behind).text, correction=False, authority=KINDS[stored.kind].authority,
            project=stored.project_seq, at="", key=key,
        ):  # fmt: skip
            for each in behind:
                candidates.set_status(rows, each, "dropped", now=now)
            return
    inferred = _inferred(rows, stored) if is_over else []
    action = promotions([derived], profile=DEFAULT, memory_of={})[0]
    stays = action.step == "promote" and _core(stored) == _core(derived)
    # What would not become this memory now is none, whenever it was counted; one without a memory lost its sources.
    if is_over and believed and (stays or not inferred):
        derived = replace(derived, status=stored.status, memory_ids=stored.memory_ids)
    if candidates.renew(rows, stored, derived):
        for memory in inferred:
            _retell(rows, memory, before=stored, key=key)


def _inferred(rows: Rows, stored: Candidate) -> list[Memory]:
    """The memories that a candidate became, except those that a person has adopted or changed."""
    became = filter(None, (memories.by_id(rows, ident) for ident in stored.memory_ids))
    joined = f"{_core(_joined(_behind(rows, stored.memory_ids) or [stored]))}: "
    return [
        memory
        for memory in became
        if memories.is_inferred(memory, stored.text)
        or (memory.scope == "user" and memories.is_inferred(memory, memory.text) and memory.text.startswith(joined))
    ]


def _behind(rows: Rows, memory_ids: Sequence[str]) -> list[Candidate]:
    """The candidates that became a memory, the oldest first: several where an order is a habit in several projects."""
    same = "m.status in ('promoted', 'done') and m.memory_ids = :ids order by m.created_at, m.seq"
    return candidates.where(rows, same, ids=" ".join(memory_ids))


def _joined(behind: Sequence[Candidate]) -> Candidate:
    """One candidate that tells what several of the same order do, their sessions added up."""
    first = behind[0]
    if len(behind) == 1:
        return first
    counted = [[int(word) for word in each.text.split() if word.isdigit()][-2:] for each in behind]
    count, total = map(sum, zip(*counted, strict=True))
    return replace(
        first, text=f"{_core(first)}: in {count} of {total} sessions.",
        confidence=max(each.confidence for each in behind), updated_at=max(each.updated_at for each in behind),
        evidence=tuple(source for each in behind for source in each.evidence),
    )  # fmt: skip


# --- promotion


def plan_promotions(rows: Rows, *, projects: Sequence[int] | None, profile: Profile) -> list[Action]:
    """Decides about the candidates that wait in some projects (None: all)."""
    waiting = [
        candidate
        for candidate in candidates.waiting(rows, projects=projects, limit=MOST_CANDIDATES)
        if candidate.kind in KINDS
    ]
    memory_of = {
        candidate.id: memory.id for candidate in waiting if (memory := _find_repeated(rows, candidate)) is not None
    }
    return promotions(waiting, profile=profile, memory_of=memory_of)


def carry_out(rows: Rows, actions: Iterable[Action], *, key: bytes, now: str, origin: str = INFERRED) -> dict[str, str]:
    """Carries out a plan, except for candidates changed since; maps candidates to the memories they became.

    With another `origin` than inferred the memory is a person's: csmd neither changes nor withdraws it.
    """
    made: dict[str, str] = {}
    for action in actions:
        current = candidates.by_id(rows, action.candidate.id)
        if current is None or current.version != action.candidate.version:
            continue
        if action.step == "promote":
            ident = _promote(rows, action, key=key, now=now, origin=origin)
            if ident:
                made[current.id] = ident
        elif action.step == "known":
            candidates.renew(rows, current, replace(current, status="done", memory_ids=(action.memory_id,)))
        elif action.step == "review" and current.status != "needs_review":
            candidates.set_status(rows, current, "needs_review", now=now)
    return made


def _promote(rows: Rows, action: Action, *, key: bytes, now: str, origin: str) -> str:
    """Makes a memory of a candidate; its id, or "" if it is none: known already, or forgotten by the user."""
    candidate = action.candidate
    source = _sources(candidate)[0]
    statement = _statement(candidate, _core(candidate), KINDS[candidate.kind].authority)
    whole, place = replace(statement, text=candidate.text), candidate.project_seq
    ident, new, elsewhere = "", False, _find_elsewhere(rows, candidate) if origin == INFERRED else None
    if not remember.is_forgotten(rows, whole, project=place, at="", key=key):
        ident, new = (elsewhere, False) if elsewhere else remember.remember(
            rows, statement, source, project=place, origin=origin, key=key, scope="project"
        )  # fmt: skip
    if not ident:
        candidates.set_status(rows, candidate, "dropped", now=now)
        return ""
    became = replace(candidate, status="promoted" if new or elsewhere else "done", memory_ids=(ident,))
    candidates.renew(rows, candidate, became)
    memory = memories.by_id(rows, ident)
    if memory is not None and (new or elsewhere):
        _retell(rows, memory, before=candidate, key=key)
        belief_changes.record_change(rows, ident, "promoted", "", candidate.id, "; ".join(action.reasons), BY, now)
    return ident if new else ""


def _find_elsewhere(rows: Rows, candidate: Candidate) -> str:
    """The inferred memory of the same order in another project on this side of the walls, "" for none."""
    same = "m.kind = :kind and m.fingerprint = :fingerprint and m.status = 'promoted' and m.project_seq <> :here"
    others = candidates.where(
        rows, same, kind=candidate.kind, fingerprint=candidate.fingerprint, here=candidate.project_seq
    )
    everywhere = projects.everywhere(rows, candidate.project_seq)
    for other in others if candidate.fingerprint.startswith(ORDER) else ():
        if projects.everywhere(rows, other.project_seq) == everywhere and (inferred := _inferred(rows, other)):
            return inferred[0].id
    return ""


def _retell(rows: Rows, memory: Memory, *, before: Candidate, key: bytes) -> None:
    """Gives an inferred memory the place, text, confidence and sources of the candidates behind it; without any it goes.

    `before` is the candidate that has changed, as it was.
    """
    behind = _behind(rows, [memory.id])
    if not behind:
        belief_changes.delete_memory(rows, memory)
        return
    candidate = _joined(behind)
    scope: Scope = "user" if len(behind) > 1 else "project"
    place = candidate.project_seq if scope == "project" else projects.everywhere(rows, candidate.project_seq)
    if memory.project_seq != place:
        project_merges.give_project(rows, memory, place)
        if memories.by_id(rows, memory.id) is None:  # one there says it in the same words
            return
    sources = _sources(candidate)
    sure = min(candidate.confidence, confidence.clamp(1.0, candidate.category, candidate.gate))
    reworded = replace(
        memory, text=candidate.text, confidence=sure, created_at=candidate.created_at, category=candidate.category,
        confirmed_at=candidate.updated_at, session_id=sources[0].session_id, project_seq=place, scope=scope,
    )  # fmt: skip
    reworded = supersession.aged(rows, reworded)
    digest = tokens.keyed_hash(candidate.text, key)
    earlier = [source.uuid for source in before.evidence]
    memories.update_inferred(rows, reworded, text_hash=digest, sources=sources, before=earlier)


def _sources(candidate: Candidate) -> list[Provenance]:
    """The turns that support a candidate, the earliest first: that one counts as stating it."""
    support = sorted(
        (source for source in candidate.evidence if not source.against), key=lambda source: (source.at, source.uuid)
    )
    return [Provenance(uuid=source.uuid, session_id=source.session_id, at=source.at) for source in support]


def _core(candidate: Candidate) -> str:
    """A candidate's text without its counts, by which its memory is recognised."""
    return candidate.text.rpartition(": ")[0] or candidate.text if candidate.source == SOURCE else candidate.text


def queue_candidate(rows: Rows, candidate: Candidate, *, promoting: bool, key: bytes, now: str) -> list[str]:
    """Queues or updates a candidate of another source, and remembers it if it passes.

    Returns the ids of the candidate and of its memories; [] if a person dropped it or it was purged.
    """
    if tombstones.marks(rows, key).spans(f"{candidate.text} {candidate.fingerprint}"):
        return []
    key_of = (candidate.kind, candidate.fingerprint)
    of_source = candidates.of_source(rows, candidate.source, project=candidate.project_seq)
    stored = next((queued for queued in of_source if (queued.kind, queued.fingerprint) == key_of), None)
    ident = candidates.put_candidate(rows, candidate) if stored is None else stored.id
    if stored is not None and stored.status != "dropped":
        _renew(rows, stored, replace(candidate, id=ident), key=key, now=now)
    current = candidates.by_id(rows, ident) if ident else None
    if current is not None and promoting and current.status in candidates.WAITING:
        memory = _find_repeated(rows, current)
        plan = promotions([current], profile=DEFAULT, memory_of={ident: memory.id} if memory else {})
        carry_out(rows, plan, key=key, now=now)
        current = candidates.by_id(rows, ident)
    return [] if current is None or current.status == "dropped" else [ident, *current.memory_ids]


def _find_repeated(rows: Rows, candidate: Candidate) -> Memory | None:
    """The memory of the same project that says the same, if there is one."""
    statements = (_statement(candidate, text, "user") for text in (_core(candidate), candidate.text))
    repeated = (remember.find_repeated(rows, statement, project=candidate.project_seq) for statement in statements)
    return next((memory for memory in repeated if memory is not None), None)


def _statement(candidate: Candidate, text: str, authority: Authority) -> Statement:
    return Statement(
        text=text, gate=candidate.gate, category=candidate.category, confidence=candidate.confidence,
        authority=authority, reasons=(INFERRED, candidate.kind),
    )  # fmt: skip
