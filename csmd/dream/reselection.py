"""Which old memories are still chosen by how csmd chooses now: those keep their names, others are archived; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from csmd.model import Memory, Statement
from csmd.text import content_words, stem

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


def plan(held: Sequence[Memory], said: Sequence[Said], *, before: int = 0) -> Plan:
    """What becomes of the memories `held` where `said` is all that is chosen now."""
    words = [_words(one.statement.text) for one in said]
    by_line: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(said):
        by_line[one.uuid].append(place)
    pairs: list[tuple[float, str, int, int]] = []
    for number, memory in enumerate(held):
        wanted = _words(memory.text)
        lines = {source.uuid for source in memory.provenance if source.role != "beside"}
        for place in {place for line in lines for place in by_line.get(line, ())}:
            share = len(wanted & words[place]) / len(wanted) if wanted else 0.0
            if share >= SAME_WORDS:
                pairs.append((-share, memory.id, number, place))
    kept: dict[int, int] = {}
    taken: set[int] = set()
    for _, _, number, place in sorted(pairs):
        if number not in kept and place not in taken:
            kept[number] = place
            taken.add(place)
    # What says what a kept memory says was said more than once: it is no memory of its own.
    taken |= {place for _, _, number, place in pairs if number in kept}
    return Plan(
        kept=tuple((held[number], said[place]) for number, place in sorted(kept.items())),
        made=tuple(one for place, one in enumerate(said) if place not in taken),
        archived=tuple(memory for number, memory in enumerate(held) if number not in kept),
        before=before,
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text))
