"""What a rewind or an edited prompt left behind states nothing, and what branches for another reason stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from csmd.conversation import Project, Turn
from csmd.extraction import statements
from csmd.hosts.claude import transcript
from csmd.knowledge import Memory
from csmd.memory import remember
from csmd.store import digests, memories, projects, search, session_contents, sessions, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-03-01T10:00:00.000Z"
REDIS = "We decided to use Redis for the job queue because it is simple."
RABBIT = "We decided to use RabbitMQ for the job queue because it acknowledges."


@dataclass(frozen=True)
class Line:
    """A turn's line: what it goes on from, who speaks, what is said."""

    uuid: str
    parent: str
    text: str
    kind: str = "user"
    session: str = "s1"
    is_prompt: bool = True


class World:
    """A store, and lines that are read into it as a transcript brings them."""

    def __init__(self, path: Path) -> None:
        self.store = Store(path, now=NOW)
        self.minutes = count(1)

    def read(self, *lines: Line) -> None:
        for line in lines:
            turn = Turn(
                uuid=line.uuid, session_id=line.session, kind=line.kind, text=line.text, cwd="/p",  # type: ignore[arg-type]
                at=f"2026-03-01T10:{next(self.minutes):02}:00.000Z", parent_uuid=line.parent,
                is_prompt_line=line.kind in ("user", "command") and line.is_prompt,
            )  # fmt: skip
            self.store.write(lambda rows, turn=turn: self._add(rows, turn))

    def _add(self, rows: Rows, turn: Turn) -> None:
        project = projects.ensure(rows, Project(key="p", root="/p", name="p", kind="path"), now=NOW)
        text_hash, path = tokens.keyed_hash(turn.text, self.store.hash_key), f"/{turn.session_id}.jsonl"
        turns.add_turn(rows, turn, text_hash=text_hash, host="claude", project=project, path=path, file=path)

    def believe(self) -> None:
        for session in statements.list_behind(self.store):
            statements.distill(self.store, session, settled=True)
        while any(remember.believe(self.store)):
            pass

    def memories(self) -> list[Memory]:
        return self.store.read(lambda rows: memories.where(rows, "1 = 1 order by m.seq"))

    def told(self) -> set[str]:
        """What is believed now: memories that nothing has replaced."""
        return {memory.text for memory in self.memories() if memory.is_alive}

    def rewound(self, session: str = "s1") -> list[str]:
        found = self.store.read(lambda rows: sessions.by_id(rows, session))
        assert found is not None
        conversation = self.store.read(lambda rows: session_contents.read_conversation(rows, found.seq, projects=None))
        return [turn.uuid for turn in conversation if turn.rewound]

    def searchable(self) -> set[str]:
        sql = "select t.uuid from turns t join passages p on p.turn_seq = t.seq where t.searchable = 1"
        return self.store.read(lambda rows: rows.distinct(sql))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    opened = World(tmp_path / "csmd.db")
    yield opened
    opened.store.close()


BEGIN = (Line("p0", "", "Look at the worker."), Line("a0", "p0", "I read it.", "assistant"))
LEFT = (Line("p1", "a0", REDIS), Line("a1", "p1", "Understood, Redis it is for the job queue.", "assistant"))
STANDS = (Line("p2", "a0", RABBIT), Line("a2", "p2", "Understood.", "assistant"))


@pytest.mark.parametrize("when", ["before the rewind", "after it"])
def test_of_two_prompts_behind_one_line_only_the_later_is_a_memory_whenever_it_was_looked_at(
    world: World, when: str
) -> None:
    world.read(*BEGIN, *LEFT)
    if when == "before the rewind":
        world.believe()
        assert world.told() == {REDIS}
    world.read(*STANDS)
    world.believe()
    assert (world.told(), world.rewound()) == ({RABBIT}, ["p1", "a1"])
    assert world.searchable() & {"p1", "a1", "p2"} == {"p2"}


def test_a_prompt_that_goes_back_further_leaves_all_prompts_since_behind(world: World) -> None:
    world.read(*BEGIN, *LEFT, Line("p3", "a1", "Write the client."), Line("a3", "p3", "Done.", "assistant"))
    world.read(replace(STANDS[0], parent="p0"))
    assert world.rewound() == ["p1", "a1", "p3", "a3"]


def test_a_prompt_that_goes_back_further_is_known_behind_lines_that_are_no_turns(world: World) -> None:
    thought = (Line("p1", "system line", REDIS), Line("a1", "thinking", "Redis it is.", "assistant"))
    world.read(*BEGIN, *thought, Line("p3", "a1", "Write the client."), replace(STANDS[0], parent="p0"))
    assert world.rewound() == ["p1", "a1", "p3"]


def test_an_edited_first_prompt_leaves_the_first_one_behind(world: World) -> None:
    first = (Line("p1", transcript.ROOT_PARENT, REDIS), Line("a1", "p1", "Understood.", "assistant"))
    world.read(*first, Line("p2", transcript.ROOT_PARENT, RABBIT))
    world.believe()
    assert (world.told(), world.rewound()) == ({RABBIT}, ["p1", "a1"])


def test_a_prompt_may_be_rewound_more_than_once(world: World) -> None:
    world.read(*BEGIN, *LEFT, *STANDS, Line("p3", "a0", "Show me the queue first."))
    world.believe()
    assert (world.told(), world.rewound()) == (set(), ["p1", "a1", "p2", "a2"])


def test_what_a_rewound_statement_replaced_holds_again(world: World) -> None:
    sidekiq = "We decided to use Sidekiq for the job queue because we know it."
    instead = "We decided to use Redis instead of Sidekiq for the job queue because it is simple."
    world.read(Line("p9", "", sidekiq, session="s0"))
    world.believe()
    world.read(*BEGIN, replace(LEFT[0], text=instead))
    world.believe()
    assert world.told() == {instead}
    world.read(Line("p2", "a0", "Show me the queue first."))
    world.believe()
    assert world.told() == {sidekiq}


def test_what_was_said_in_another_session_too_stays(world: World) -> None:
    world.read(Line("p9", "", REDIS, session="s0"), *BEGIN, *LEFT)
    world.believe()
    world.read(*STANDS)
    (memory,) = [memory for memory in world.memories() if "Redis" in memory.text]
    assert (memory.times, memory.sessions) == (1, {"s0"})


def test_a_memory_that_a_person_has_kept_stays(world: World) -> None:
    world.read(*BEGIN, *LEFT)
    world.believe()
    world.store.write(lambda rows: rows.run("update memories set pinned = 1"))
    world.read(*STANDS)
    assert REDIS in world.told()


@pytest.mark.parametrize("fork_is_read", ["before the rewind", "after it"])
def test_a_fork_from_before_the_rewind_holds_what_was_said(world: World, fork_is_read: str) -> None:
    fork = [replace(line, session="s2") for line in (*BEGIN, *LEFT, Line("f1", "a1", "Write the client."))]
    world.read(*BEGIN, *LEFT, *(fork if fork_is_read == "before the rewind" else ()))
    world.believe()
    world.read(*STANDS, *(fork if fork_is_read == "after it" else ()))
    world.believe()
    assert REDIS in {memory.text for memory in world.memories()}
    assert (world.rewound("s2"), "p1" in world.searchable()) == ([], True)


def test_a_copy_of_a_session_with_a_rewind_has_it_too(world: World) -> None:
    lines = (*BEGIN, *LEFT, *STANDS)
    world.read(*lines, *(replace(line, session="s2") for line in lines), *lines)
    world.believe()
    assert (world.rewound("s2"), world.told(), "p1" in world.searchable()) == (["p1", "a1"], {RABBIT}, False)


def test_what_was_run_before_a_rewind_was_run(world: World) -> None:
    call = Line(
        "c1", "p1", '{"command":"git commit -m \\"Use Redis for the job queue, since it is simple\\""}', "tool_call"
    )
    world.read(*BEGIN, LEFT[0], call, Line("r1", "c1", "[main 1a2b3c4] Use Redis", "tool_result"), *STANDS)
    world.believe()
    entries = world.store.read(lambda rows: digests.read_entries(rows, 1))
    assert [entry[1] for entry in entries] == ["p0", "a0", "c1", "r1", "p2", "a2"]
    assert world.told() == {RABBIT}


BRANCHES = {
    "the next prompt": [Line("p2", "a1", RABBIT)],
    "the next prompt behind a line that is no turn": [Line("p2", "x9", RABBIT)],
    "a prompt without a line before it": [Line("p2", "", RABBIT)],
    "a compaction's summary": [Line("m1", "x1", "This session ...", "summary"), Line("p2", "m1", RABBIT)],
    "parallel calls with words beside their results": [
        Line("c1", "a1", "{}", "tool_call"), Line("c2", "c1", "{}", "tool_call"),
        Line("w1", "c2", "go on", is_prompt=False), Line("w2", "c2", RABBIT, is_prompt=False),
    ],
    "an answer behind the line before a prompt": [Line("a9", "a0", "I read it all.", "assistant")],
    "a session that goes on in another file": [Line("p2", "a0", RABBIT, session="s2")],
    "two terminals in one session": [
        Line("p3", "a1", "Write the client."), Line("a3", "p3", "Done.", "assistant"), Line("p4", "a3", "Go on."),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", BRANCHES)
def test_what_branches_for_another_reason_is_no_rewind(world: World, name: str) -> None:
    world.read(*BEGIN, *LEFT, *BRANCHES[name])
    world.believe()
    assert world.rewound() == []
    assert REDIS in {memory.text for memory in world.memories()}


def test_a_session_is_named_by_the_first_prompt_that_stands(world: World) -> None:
    world.read(Line("p1", "x0", REDIS), Line("p2", "x0", RABBIT))
    found = world.store.read(lambda rows: sessions.by_id(rows, "s1"))
    assert found is not None
    seq = found.seq
    assert world.store.read(lambda rows: session_contents.read_first_prompts(rows, seq, limit=1, characters=300)) == [
        RABBIT
    ]


def test_a_statement_that_was_chosen_while_its_prompt_was_rewound_is_not_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = statements.chooser.choose

    def rewound_meanwhile(*args: object, **more: object) -> list[statements.chooser.Chosen]:
        chosen = choose(*args, **more)  # type: ignore[arg-type]
        monkeypatch.undo()
        world.read(*STANDS)
        return chosen

    world.read(*BEGIN, *LEFT)
    monkeypatch.setattr(statements.chooser, "choose", rewound_meanwhile)
    world.believe()
    world.believe()
    assert world.told() == {RABBIT}
    assert world.store.read(lambda rows: search.list_memories_of_turn(rows, "p1")) == []


@pytest.mark.parametrize("times", [1, 2])
def test_where_somebody_goes_on_from_a_branch_that_was_left_it_stands_beside_the_other(
    world: World, times: int
) -> None:
    lines = (*BEGIN, *LEFT, *STANDS)
    world.read(*lines)
    world.believe()
    assert world.told() == {RABBIT}
    for _ in range(times):  # a transcript that is read again brings all of it once more
        world.read(*lines, Line("p4", "a1", "Write the client for it."))
    world.believe()
    # Which of the two holds is the question of any two statements, said one after the other.
    assert ({memory.text for memory in world.memories()}, world.rewound()) == ({REDIS, RABBIT}, [])
    assert {"p1", "p2"} <= world.searchable()
