"""A daemon that is killed while hooks report and transcripts are imported: every turn once, and what was acked is there.

CSMD_KILLS=50 python -m pytest tests/integration/test_killed_daemon.py is the long form.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from typing import Any

import oracle
import pytest
from machine import Machine, ask, event_frames, eventually
from session_script import STEPS, WORDS, Client, Hook, Line, written

SESSIONS = 4


def sessions(machine: Machine, seed: int) -> list[Client]:
    """Sessions in the assistant's own directory, not written yet."""
    chance = random.Random(seed)
    made = []
    for number in range(SESSIONS):
        client = Client(machine.assistant / "projects", session=f"k{number}", count=number * 1000)
        for _ in range(12):
            getattr(client, chance.choice(STEPS))(chance.choice(WORDS))
        client.prompt("the last one")
        made.append(client)
    return made


def stored(machine: Machine) -> dict[str, list[tuple[str, str, str]]]:
    """(uuid, kind, text) of every stream's turns, from the file."""
    turns: dict[str, list[tuple[str, str, str]]] = {}
    with sqlite3.connect(f"file:{machine.paths.database}?mode=ro", uri=True) as rows:
        for stream, *turn in rows.execute(
            "select s.id, t.uuid, t.kind, t.text from session_turn st join turns t on t.seq = st.turn_seq "
            "join sessions s on s.seq = st.session_seq"
        ):
            turns.setdefault(stream, []).append(tuple(turn))
    rows.close()
    return turns


def comparable(uuid: str, kind: str, text: str) -> tuple[str, str, str]:
    key = uuid.rpartition(":")[0] if uuid.startswith("queue:") else uuid
    return key, kind, oracle.squeezed(text)


@pytest.mark.invariant("Stored is what the transcripts hold, told by a reader that shares no code with csmd")
@pytest.mark.parametrize("seed", range(int(os.environ.get("CSMD_KILLS", "1"))))
def test_a_daemon_killed_at_any_point_of_hooks_and_import_stores_what_the_oracle_finds(
    machine: Machine, seed: int
) -> None:
    chance = random.Random(seed)
    clients = sessions(machine, seed)
    entries: list[Line | Hook] = [entry for client in clients for entry in client.log]
    kills = sorted(chance.sample(range(len(entries)), 3))
    daemon = machine.start()
    waiting: list[dict[str, Any]] = []
    for number, entry in enumerate(entries):
        if isinstance(entry, Line):
            written([entry])
        elif chance.random() < 0.3:
            waiting.append(entry.payload)  # reported by a hook that comes late
        else:
            ask(machine.socket, event_frames(entry.payload["hook_event_name"], entry.payload, ident=f"e{number}"))
        if number in kills:
            machine.call("csm_import", path=str(machine.assistant / "projects"), vectors=False)
            if chance.random() < 0.5:
                eventually(lambda: machine.status()["counts"]["turns"] > 0)
            daemon.send_signal(signal.SIGKILL)
            daemon.wait(30)
            daemon = machine.start()
    for number, payload in enumerate(waiting):
        ask(machine.socket, event_frames(payload["hook_event_name"], payload, ident=f"late{number}"))
    machine.sync()
    held = oracle.of_tree(machine.assistant / "projects")
    streams = stored(machine)
    for stream, listed in held.streams.items():
        expected = sorted(comparable(entry.key, entry.kind, entry.text) for entry in listed)
        turns = streams.pop(stream, [])
        doubles = [
            turn for turn in turns if turn[0].startswith("hook:")
        ]  # they wait two minutes before they are judged
        assert sorted(comparable(*turn) for turn in turns if turn not in doubles) == expected, stream
        assert all(
            any(original == oracle.squeezed(text) or original in text for *_, original in expected)
            for *_, text in doubles
        )
    assert not {stream for stream, turns in streams.items() if turns}
    assert machine.stop(daemon) == 0
