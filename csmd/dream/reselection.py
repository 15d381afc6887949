"""Chooses the memories of an older csmd anew, journalled like a dream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from csmd.dream.steps import Read, Steps, parts_of
from csmd.extraction import statements
from csmd.memory import remember, supersession
from csmd.privacy.fingerprints import PURGED
from csmd.store import belief_changes, cursors, dreams, memories, search, turns
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows
from csmd.text import similarity, tokens
from csmd.values import Memory, Provenance, Statement

#: `Dream.why` of a dream that chooses old memories anew.
WHY = "choosing old memories anew"
#: A statement of the same turn restates a memory where it holds this share of its words.
SAME_WORDS = 0.6
#: Beyond this share of archived memories a person is asked, where there are enough to speak of a share.
MOST_ARCHIVED, ENOUGH = 0.6, 10


class LocatedStatement(NamedTuple):
    """A statement as it is chosen now, and its turn."""

    statement: Statement
    uuid: str
    session_id: str
    at: str
    project_seq: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Memories with the wordings they get, statements that become memories, memories that are archived.

    `before` counts those that were archived before this plan began.
    """

    kept: tuple[tuple[Memory, LocatedStatement], ...]
    made: tuple[LocatedStatement, ...]
    archived: tuple[Memory, ...]
    before: int = 0

    @property
    def number(self) -> int:
        """How many memories it is about."""
        return len(self.kept) + len(self.archived) + self.before

    @property
    def share(self) -> float:
        """The share of them that is archived."""
        return (len(self.archived) + self.before) / self.number if self.number else 0.0

    @property
    def needs_person(self) -> bool:
        """Whether so much would be archived that a person is asked first."""
        return self.share > MOST_ARCHIVED and self.number >= ENOUGH


def match_statements(held: Sequence[Memory], located: Sequence[LocatedStatement], *, before: int = 0) -> Plan:
    """What becomes of the memories `held` where `located` is all that is chosen now."""
    words = [tokens.content_stems(entry.statement.text) for entry in located]
    by_turn: dict[str, list[int]] = defaultdict(list)
    for place, entry in enumerate(located):
        by_turn[entry.uuid].append(place)
    pairs: list[tuple[float, bool, str, int, int]] = []
    for number, memory in enumerate(held):
        wanted = tokens.content_stems(memory.text)
        uuids = {source.uuid for source in memory.provenance if source.role != "beside"}
        for place in {place for uuid in uuids for place in by_turn.get(uuid, ())}:
            share = similarity.share(wanted, words[place])
            if share >= SAME_WORDS:
                pairs.append((-share, located[place].statement.authority != memory.authority, memory.id, number, place))
    kept: dict[int, int] = {}
    taken: set[int] = set()
    for *_, number, place in sorted(pairs):
        if number not in kept and place not in taken:
            kept[number] = place
            taken.add(place)
    # Another statement that restates a kept memory is no memory of its own.
    restating = {place for *_, number, place in pairs if number in kept}
    return Plan(
        kept=tuple((held[number], located[place]) for number, place in sorted(kept.items())),
        made=tuple(entry for place, entry in enumerate(located) if place not in restating),
        archived=tuple(memory for number, memory in enumerate(held) if number not in kept),
        before=before,
    )


def plan_reselection(read: Read, *, key: bytes) -> Steps[Plan]:
    """Plans what choosing anew would do now; a step is a session or some memories."""
    located: list[LocatedStatement] = []
    for session in read(lambda rows: cursors.sessions_behind(rows, dreams.STAGE)):
        located += read(partial(_choose, session=session, key=key))
        yield
    held: list[Memory] = []
    for seqs in parts_of(read(dreams.reselectable_seqs), dreams.READ):
        held += read(partial(dreams.reselectable_memories, keys=list(seqs)))
        yield
    plan = match_statements(held, located, before=read(dreams.count_not_chosen))
    made: list[LocatedStatement] = []
    for part in parts_of(plan.made, dreams.READ):
        made += read(partial(_unknown, located=part, key=key))
        yield
    return replace(plan, made=tuple(made))


def _choose(rows: Rows, *, session: Behind, key: bytes) -> list[LocatedStatement]:
    reached = cursors.cursor(rows, statements.STAGE, str(session.session_seq))
    return [
        LocatedStatement(
            choice.statement, choice.turn.uuid, choice.turn.session_id, choice.turn.at, choice.turn.project_seq
        )
        for choice in statements.choose_from_session(rows, session, key=key)
        if choice.turn.ordinal <= reached
    ]


def _unknown(rows: Rows, located: Sequence[LocatedStatement], key: bytes) -> list[LocatedStatement]:
    """The statements that were not forgotten and that no memory of their turn says, be it a person's or archived."""
    stored = memories.memories_by_turn(rows, [entry.uuid for entry in located])
    return [
        entry
        for entry in located
        if not any(similarity.repeats(entry.statement.text, other.text) for other in stored.get(entry.uuid, ()))
        and not _is_forgotten(rows, entry, home=entry.project_seq, key=key)
    ]


def _is_forgotten(rows: Rows, located: LocatedStatement, *, home: int, key: bytes) -> bool:
    """Whether a statement was forgotten, or its turn purged."""
    if turns.text_of(rows, located.uuid) in ("", PURGED):
        return True
    project, at = located.project_seq, located.at
    return remember.is_forgotten(rows, located.statement, project=project, home=home, at=at, key=key)


def carry_out(store: Store, dream: Dream, plan: Plan, *, now: str, key: bytes) -> Steps[None]:
    """Carries a plan out, each memory an action of its own, so that forgetting one takes no other's image away.

    Wordings come first, then new memories, so that what is said elsewhere too is known by then; then the archive.
    """
    acts = [
        *(partial(_reword, memory=memory, located=located, key=key) for memory, located in plan.kept),
        *(partial(_make, located=located, key=key) for located in plan.made),
        *(partial(_archive, memory=memory) for memory in plan.archived),
    ]
    for act in acts:
        store.write(partial(act, journal=partial(dreams.apply_action, seq=dream.seq, now=now), now=now))
        yield


#: Carries an action out through the dream's journal, as `dreams.apply_action`.
Journal = Callable[..., object]


def _reword(rows: Rows, *, memory: Memory, located: LocatedStatement, journal: Journal, now: str, key: bytes) -> None:
    """Gives a memory the words and kind of its statement; what the user has confirmed stays the user's."""
    statement, home = located.statement, memory.project_seq
    reworded = replace(
        memory, text=statement.text, gate=statement.gate, category=statement.category,
        authority="user" if memory.authority == "user" else statement.authority,
        type=remember.type_of(statement, kind=search.kind_of(rows, located.uuid)),
    )  # fmt: skip
    text_hash = tokens.keyed_hash(reworded.text, key)
    other = memories.by_hash(rows, text_hash, project=home)  # what another memory says already is not said twice
    if reworded == memory or memories.by_id(rows, memory.id) != memory or (other and other.id != memory.id):
        return
    if not _is_forgotten(rows, located, home=home, key=key):
        aged = supersession.aged(rows, reworded)
        journal(
            rows, kind="reword", project=home, reason="it is told as csmd tells it now", evidence=(located.uuid,),
            items=[memory.id], act=partial(dreams.reword, rows, aged, text_hash=text_hash, now=now),
        )  # fmt: skip


def _make(rows: Rows, *, located: LocatedStatement, journal: Journal, now: str, key: bytes) -> None:
    del now
    project = located.project_seq
    source = Provenance(uuid=located.uuid, session_id=located.session_id, at=located.at)

    def act() -> None:
        remember.remember(rows, located.statement, source, project=project, origin="stated", key=key)

    if _is_forgotten(rows, located, home=project, key=key):
        return
    touched = [change.memory_id for change in belief_changes.changed_by(rows, act)]
    if touched:
        journal(
            rows, kind="choose", project=project, reason="it is chosen by how csmd chooses now",
            evidence=(located.uuid,), items=touched, act=act,
        )  # fmt: skip


def _archive(rows: Rows, *, memory: Memory, journal: Journal, now: str) -> None:
    is_now = memories.by_id(rows, memory.id)
    # A memory that was only used or linked since is still what the plan saw; one that was stated again is not.
    if is_now is None or is_now.tier == "archive" or dreams.reselectable_memories(rows, [memory.seq]) != [is_now]:
        return
    if (is_now.text, is_now.provenance) == (memory.text, memory.provenance):
        reason = dreams.NOT_CHOSEN
        act = partial(belief_changes.archive_memory, rows, is_now, reason=reason, by=belief_changes.DREAM, now=now)
        journal(
            rows, kind="archive", project=memory.project_seq, reason=reason, evidence=(), items=[memory.id], act=act
        )
