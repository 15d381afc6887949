"""Chooses the memories of an older csmd anew, journalled like a dream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from csmd.dream.steps import Read, Steps
from csmd.extraction import statements
from csmd.memory import remember, supersession
from csmd.model import Memory, Provenance, Statement
from csmd.privacy.fingerprints import PURGED
from csmd.store import belief_changes, cursors, dreams, memories, search, turns
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows
from csmd.text import similarity, tokens
from csmd.text.tokens import content_words, stem

#: Why a dream chooses old memories anew.
WHY = "choosing old memories anew"
#: A statement of the same line that holds such a share of a memory's words says what the memory says.
SAME_WORDS = 0.6
#: Beyond this share of archived ones a person is asked, where there are enough to speak of a share.
MOST_ARCHIVED, ENOUGH = 0.6, 10


class Said(NamedTuple):
    """A statement as it is chosen now, and where it was said."""

    statement: Statement
    uuid: str
    session_id: str
    at: str
    project_seq: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What choosing anew does: memories with the words they get, statements that become memories, memories that are archived.

    `before` counts those that were archived by this plan's beginning.
    """

    kept: tuple[tuple[Memory, Said], ...]
    made: tuple[Said, ...]
    archived: tuple[Memory, ...]
    before: int = 0

    @property
    def share(self) -> float:
        """How many of the memories that are looked at are archived."""
        looked_at = len(self.kept) + len(self.archived) + self.before
        return (len(self.archived) + self.before) / looked_at if looked_at else 0.0

    @property
    def needs_person(self) -> bool:
        """Whether so much would be archived that a person is asked first."""
        return self.share > MOST_ARCHIVED and len(self.kept) + len(self.archived) + self.before >= ENOUGH


def match_statements(held: Sequence[Memory], said: Sequence[Said], *, before: int = 0) -> Plan:
    """What becomes of the memories `held` where `said` is all that is chosen now."""
    words = [_words(one.statement.text) for one in said]
    by_line: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(said):
        by_line[one.uuid].append(place)
    pairs: list[tuple[float, bool, str, int, int]] = []
    for number, memory in enumerate(held):
        wanted = _words(memory.text)
        lines = {source.uuid for source in memory.provenance if source.role != "beside"}
        for place in {place for line in lines for place in by_line.get(line, ())}:
            share = len(wanted & words[place]) / len(wanted) if wanted else 0.0
            if share >= SAME_WORDS:
                pairs.append((-share, said[place].statement.authority != memory.authority, memory.id, number, place))
    kept: dict[int, int] = {}
    taken: set[int] = set()
    for *_, number, place in sorted(pairs):
        if number not in kept and place not in taken:
            kept[number] = place
            taken.add(place)
    # What says what a kept memory says was said more than once: it is no memory of its own.
    taken |= {place for *_, number, place in pairs if number in kept}
    return Plan(
        kept=tuple((held[number], said[place]) for number, place in sorted(kept.items())),
        made=tuple(one for place, one in enumerate(said) if place not in taken),
        archived=tuple(memory for number, memory in enumerate(held) if number not in kept),
        before=before,
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text))


def plan_reselection(read: Read, *, key: bytes) -> Steps[Plan]:
    """What choosing anew would do now; a session or some memories to a step."""
    said: list[Said] = []
    for session in read(lambda rows: cursors.sessions_behind(rows, dreams.STAGE)):
        said += read(partial(_said, session=session, key=key))
        yield
    held: list[Memory] = []
    keys = read(dreams.reselectable_seqs)
    for start in range(0, len(keys), dreams.READ):
        held += read(partial(dreams.reselectable_memories, keys=keys[start : start + dreams.READ]))
        yield
    found = match_statements(held, said, before=read(dreams.count_not_chosen))
    made: list[Said] = []
    for start in range(0, len(found.made), dreams.READ):
        made += read(partial(_unknown, found=found.made[start : start + dreams.READ], key=key))
        yield
    return replace(found, made=tuple(made))


def _said(rows: Rows, *, session: Behind, key: bytes) -> list[Said]:
    reached = cursors.cursor(rows, statements.STAGE, str(session.session_seq))
    return [
        Said(one.statement, one.turn.uuid, one.turn.session_id, one.turn.at, one.turn.project_seq)
        for one in statements.choose_from_session(rows, session, key=key)
        if one.turn.ordinal <= reached
    ]


def _unknown(rows: Rows, found: Sequence[Said], key: bytes) -> list[Said]:
    """Those of some statements that were not forgotten and that no memory of their line says, be it a person's or archived."""
    known = memories.memories_by_turn(rows, [one.uuid for one in found])
    return [
        one
        for one in found
        if not any(similarity.says_the_same(one.statement.text, other.text) for other in known.get(one.uuid, ()))
        and not _is_forgotten(rows, one, home=one.project_seq, key=key)
    ]


def _is_forgotten(rows: Rows, said: Said, *, home: int, key: bytes) -> bool:
    """Whether a statement, or the turn that it was read from, is no more."""
    if turns.text_of(rows, said.uuid) in ("", PURGED):
        return True
    return remember.is_forgotten(rows, said.statement, project=said.project_seq, home=home, at=said.at, key=key)


def carry_out(store: Store, dream: Dream, found: Plan, *, now: str, key: bytes) -> Steps[None]:
    """Carries a plan out, each memory an action of its own: to forget one takes no other's image away.

    Words first, then what is new, so that what is said elsewhere too is known by then; then the archive.
    """
    acts = [
        *(partial(_reword, memory=memory, said=said, key=key) for memory, said in found.kept),
        *(partial(_make, said=said, key=key) for said in found.made),
        *(partial(_archive, memory=memory) for memory in found.archived),
    ]
    for act in acts:
        store.write(partial(act, note=partial(dreams.apply_action, seq=dream.seq, now=now), now=now))
        yield


#: Carries an action out through the dream's journal, as `dreams.apply_action`.
Note = Callable[..., object]


def _reword(rows: Rows, *, memory: Memory, said: Said, note: Note, now: str, key: bytes) -> None:
    told, home = _told(rows, memory, said), memory.project_seq
    text_hash = tokens.keyed_hash(told.text, key)
    other = memories.by_hash(rows, text_hash, project=home)  # what another memory says already is not said twice
    if told == memory or memories.by_id(rows, memory.id) != memory or (other and other.id != memory.id):
        return
    if not _is_forgotten(rows, said, home=home, key=key):
        note(
            rows, kind="reword", project=home, reason="it is told as csmd tells it now", evidence=(said.uuid,),
            items=[memory.id], act=partial(dreams.reword, rows, supersession.aged(rows, told), text_hash=text_hash, now=now),
        )  # fmt: skip


def _told(rows: Rows, memory: Memory, said: Said) -> Memory:
    """A memory in the words and of the kind that its statement has now; what the user has confirmed stays the user's."""
    one = said.statement
    kind = remember.type_of(one, kind=search.kind_of(rows, said.uuid))
    authority = "user" if memory.authority == "user" else one.authority
    return replace(memory, text=one.text, gate=one.gate, category=one.category, authority=authority, type=kind)


def _make(rows: Rows, *, said: Said, note: Note, now: str, key: bytes) -> None:
    del now
    source = Provenance(uuid=said.uuid, session_id=said.session_id, at=said.at)

    def act() -> None:
        remember.remember(rows, said.statement, source, project=said.project_seq, origin="stated", key=key)

    if _is_forgotten(rows, said, home=said.project_seq, key=key):
        return
    touched = [one.memory_id for one in belief_changes.changed_by(rows, act)]
    if touched:
        note(
            rows, kind="choose", project=said.project_seq, reason="it is chosen by how csmd chooses now",
            evidence=(said.uuid,), items=touched, act=act,
        )  # fmt: skip


def _archive(rows: Rows, *, memory: Memory, note: Note, now: str) -> None:
    is_now = memories.by_id(rows, memory.id)
    # What was only looked at or linked since is still what the plan saw; what was said again is not.
    if is_now is None or is_now.tier == "archive" or dreams.reselectable_memories(rows, [memory.seq]) != [is_now]:
        return
    if (is_now.text, is_now.provenance) == (memory.text, memory.provenance):
        act = partial(
            belief_changes.archive_memory, rows, is_now, reason=dreams.NOT_CHOSEN, by=belief_changes.DREAM, now=now
        )
        note(
            rows, kind="archive", project=memory.project_seq, reason=dreams.NOT_CHOSEN, evidence=(),
            items=[memory.id], act=act,
        )  # fmt: skip
