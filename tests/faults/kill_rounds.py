"""Rounds in which the daemon is killed with SIGKILL while sessions go on, each held against what was really said.

    python tests/faults/kill_rounds.py [--rounds 200] [--seed N] [--model DIR] [--encrypted]

A world of sessions talks: the registered hook is run, transcripts grow, a peer with known event ids counts its
acknowledgements, trees are imported, texts are embedded. In each round the daemon is killed at a random moment of one
phase. First a copy of the files as the kill left them is looked at (nothing acknowledged is missing, no cursor stands
before what is stored); then a new daemon takes in what is there, and what is stored must be what the generator's own
list says: every turn once, in the transcript's order, with its words, and nothing else. The copy is read with the
standard library's sqlite3, so that csmd's own reading is not what is asked; an encrypted home's with its key by apsw.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import apsw
from machine import Machine, event_frames, eventually, own_machine, peer

from csmd.store import keys

WORDS = "queue worker schema index parser token branch deploy cache retry socket cursor ledger packet harbour".split()
#: A peer that got no answer for this long spools, as a hook does.
PEER_PATIENCE_MS = 1500
SPOOLED_AT_ONCE = 120
#: Two reports of one event are within 2 s of each other.
ONE_EVENT_S = 1.8


class World:
    """A machine, what was said on it, and the daemon of the moment; `seed` decides everything but the scheduling."""

    def __init__(self, machine: Machine, seed: int, model: Path | None = None) -> None:
        self.machine = machine
        self.seed = seed
        self.model = model
        self.key = b""
        """That of the home, where it is encrypted."""
        """What is added the first time that texts are to be embedded."""
        self.files: dict[Path, list[tuple[str, str, str]]] = {}
        """(session, uuid, text) of every turn in each transcript, in order."""
        self.reported: dict[str, list[str]] = {}
        """What was reported of sessions that no transcript tells of."""
        self.far_apart: set[tuple[str, str]] = set()
        """What a starved machine reported twice with so long between that it counts as said twice."""
        self.acknowledged: set[str] = set()
        self.kills: Counter[str] = Counter()
        #: Of what only hooks tell nobody knows the order by a clock that is set to and fro.
        self.clock_is_set = False
        self.daemon: Any = None
        #: Kills while texts were embedded or linked.
        self.hits = 0
        self._number = 0
        self._lock = threading.Lock()

    def number(self) -> int:
        with self._lock:
            self._number += 1
            return self._number

    def text(self, chance: random.Random, number: int) -> str:
        if chance.random() < 0.15:
            return "yes"
        said = " ".join(chance.choices(WORDS, k=chance.randint(3, 30)))
        return f"I prefer {said} over n{number}." if chance.random() < 0.2 else f"Now n{number}: {said}."

    # --- those who talk

    def speak(self, chance: random.Random, session: str, *, hooks: bool = True, folder: Path | None = None) -> None:
        """One turn of a session: a prompt, a tool's call and output, an answer; reported by the hook or not."""
        for kind, event, key in (
            ("user", "UserPromptSubmit", "prompt"),
            ("tool", "", ""),
            ("assistant", "Stop", "last_assistant_message"),
        ):
            if kind == "tool":
                if chance.random() < 0.5:
                    self._tool(chance, session, folder)
                continue
            said = self.text(chance, self.number())
            times = chance.choice((0, 1, 1, 1, 2)) if hooks else 0  # a plugin's command beside the settings'
            before = chance.random() < 0.6
            if before:
                self._report(times, event, session, key, said, folder)
            self._write(session, self.machine.line(kind, said, session=session), said, folder)
            if not before:
                self._report(times, event, session, key, said, folder)

    def _report(self, times: int, event: str, session: str, key: str, said: str, folder: Path | None) -> None:
        """Runs the hook, twice at once where two commands are registered."""

        def run() -> None:
            self.machine.hook(event, session, **{key: said}, transcript_path=str(self.path(session, folder)))

        began = time.monotonic()
        others = [threading.Thread(target=run) for _ in range(times - 1)]
        for other in others:
            other.start()
        if times:
            run()
        for other in others:
            other.join()
        if times > 1 and time.monotonic() - began > ONE_EVENT_S:
            self.far_apart.add((session, said))

    def path(self, session: str, folder: Path | None) -> Path:
        return (folder or self.machine.assistant / "projects" / "-project") / f"{session}.jsonl"

    def _tool(self, chance: random.Random, session: str, folder: Path | None) -> None:
        number = self.number()
        call = self.machine.line("assistant", "", session=session)
        call["message"]["content"] = [
            {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}
        ]
        self._write(session, call, '{"command":"ls"}', folder)
        said = " ".join(chance.choices(WORDS, k=chance.randint(1, 100)))
        output = self.machine.line("user", "", session=session)
        output["message"]["content"] = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": said}]
        self._write(session, output, said, folder)

    def _write(self, session: str, line: dict[str, Any], said: str, folder: Path | None) -> None:
        line["uuid"] = f"{self.number()}-{session}"
        path = self.path(session, folder)
        with self._lock:
            self.files.setdefault(path, []).append((session, line["uuid"], said))
        self.machine.transcript(line, session=session, folder=folder)

    def knock(self, session: str, until: threading.Event) -> None:
        """Reports answers of a session that only hooks tell of; what is not acknowledged goes to the spool."""
        said = self.reported.setdefault(session, [])
        while not until.is_set():
            try:
                socket = self.machine.socket
            except (FileNotFoundError, OSError):
                time.sleep(0.005)
                continue
            with peer(socket) as dealer:
                while not until.is_set():
                    ident, payload = self.event(session)
                    said.append(payload["last_assistant_message"])
                    dealer.send_multipart(event_frames("Stop", payload, ident=ident))
                    if dealer.poll(PEER_PATIENCE_MS) and dealer.recv_multipart()[0] == b"ok":
                        self.acknowledged.add(ident)
                    else:
                        self.spool(ident, payload)
                        break

    def event(self, session: str) -> tuple[str, dict[str, Any]]:
        """The id and payload of one more Stop of a session."""
        number = self.number()
        said = f"Only hooks tell of n{number}."
        payload = {"session_id": session, "cwd": str(self.machine.project), "last_assistant_message": said}
        return f"{time.time_ns():016x}{number:016x}", payload

    def spool(self, ident: str, payload: dict[str, Any]) -> None:
        """Leaves an event as a hook does that nobody answered."""
        head = f"csmd-spool 1 {ident} claude Stop {time.time_ns()}\n".encode()
        half = self.machine.paths.spool / f".tmp-{ident}"
        half.write_bytes(head + json.dumps(payload).encode())
        half.rename(self.machine.paths.spool / f"{ident}.event")

    # --- one round

    def round(self, number: int) -> str:
        """One kill and what must hold after it; the phase that was hit."""
        chance = random.Random(f"{self.seed}:{number}")
        phase = list(PHASES)[number % len(PHASES)]
        over = threading.Event()
        if self.daemon is None:
            self.daemon = self.machine.start()

        def talk() -> None:
            with _told(failures):
                session = f"s{number // 4}"  # some sessions live through several daemons
                while not over.is_set():
                    self.speak(chance, session)

        def knock() -> None:
            with _told(failures):
                self.knock(f"h{number}", over)

        failures: list[BaseException] = []
        actors = [threading.Thread(target=talk), threading.Thread(target=knock)]
        for actor in actors:
            actor.start()
        try:
            PHASES[phase](self, random.Random(f"{self.seed}:{number}:{phase}"), number)
            self.kill()
        finally:
            over.set()
            for actor in actors:
                actor.join()
        if failures:
            raise failures[0]
        self.kills[phase] += 1
        self.look_at_what_is_left()
        self.daemon = self.machine.start()
        for folder in {path.parent for path in self.files} - {self.machine.assistant / "projects" / "-project"}:
            self.machine.work("csm_import", path=str(folder), vectors=False)
        self.machine.sync()
        self.check()
        return phase

    def kill(self) -> None:
        self.daemon.kill()
        self.daemon.wait()

    @contextmanager
    def copy(self) -> Iterator[sqlite3.Connection]:
        """The database as it lies on the disk, opened elsewhere."""
        with tempfile.TemporaryDirectory(dir=self.machine.root) as place:
            for suffix in ("", "-wal"):
                source = self.machine.paths.database.with_name(f"csmd.db{suffix}")
                if source.exists():
                    shutil.copyfile(source, Path(place) / source.name)
            with closing(self._open(Path(place) / "csmd.db")) as opened:
                yield opened

    def _open(self, path: Path) -> Any:
        if not self.key:
            return sqlite3.connect(path)
        assert not path.exists() or not path.read_bytes().startswith(b"SQLite format 3")
        opened = apsw.Connection(str(path))
        opened.pragma("key", f"raw:{self.key.hex()}")
        return opened

    def encrypt(self) -> None:
        """Has the home encrypted from its beginning; the key is in a file."""
        self.key = os.urandom(keys.KEY_BYTES)
        self.machine.home.mkdir(mode=0o700)
        record = keys.store_key(self.key, str(self.machine.root / "key"), self.machine.home)
        keys.write_record(self.machine.home, record)

    def look_at_what_is_left(self) -> None:
        """What the kill left: all that was acknowledged, and no cursor before what is stored."""
        with self.copy() as db:
            assert db.execute("pragma quick_check").fetchall() == [("ok",)]
            events = {ident for (ident,) in db.execute("select id from events")}
            assert self.acknowledged <= events, f"acknowledged and lost: {sorted(self.acknowledged - events)}"
            stored = self._stored(db)
            for path, position in db.execute("select path, position from files"):
                lines = Path(path).read_bytes()[:position].splitlines()
                passed = {(line["sessionId"], line["uuid"]) for line in map(json.loads, lines)}
                known = {(session, uuid) for session in stored for uuid, _, _ in stored[session]}
                assert passed <= known, f"the cursor of {path} has passed {sorted(passed - known)}"
            for stage, subject, position in db.execute("select stage, subject, position from cursors"):
                most = (
                    db.execute("select turns from sessions where seq = ?", (int(subject),)).fetchone()
                    if stage == "distill"
                    else db.execute("select seq from sqlite_sequence where name = 'statements'").fetchone()
                    if stage == "believe"
                    else None
                )
                assert most is None or position <= most[0], (stage, subject, position, most)

    def _stored(self, db: sqlite3.Connection) -> dict[str, list[tuple[str, str, str]]]:
        found: dict[str, list[tuple[str, str, str]]] = {}
        for session, uuid, text, source in db.execute(
            "select s.id, t.uuid, t.text, t.source from session_turn st join turns t on t.seq = st.turn_seq "
            "join sessions s on s.seq = st.session_seq order by s.seq, st.ordinal"
        ):
            found.setdefault(session, []).append((uuid, text, source))
        return found

    def check(self) -> None:
        """Stored is what was said: every turn once, in order, with its words, and nothing else."""
        assert self.machine.spooled() == []
        assert self.machine.call("csm_store_check") == {"problems": []}
        said: dict[str, list[tuple[str, str, str]]] = {}
        for turns in self.files.values():
            for session, uuid, text in turns:
                said.setdefault(session, []).append((uuid, text, "transcript"))
        with self.copy() as db:
            stored, allowed = self._stored(db), 0
            for session, turns in said.items():
                found = stored.pop(session, [])
                known = {text for _, text, _ in turns}
                doubles = [row for row in found if row[2] == "hook" and (session, row[1]) in self.far_apart]
                assert {text for _, text, _ in doubles} <= known
                allowed += len(doubles)
                found = [row for row in found if row not in doubles]
                assert found == turns, f"session {session}: {_difference(found, turns)}"
            for session, texts in self.reported.items():
                told = [text for _, text, _ in stored.pop(session, [])]
                assert Counter(told) == Counter(texts), (session, Counter(texts) - Counter(told), Counter(told))
                assert self.clock_is_set or told == texts, (
                    f"session {session}, which only hooks tell of, is in another order"
                )
            assert stored == {}, f"nobody said: {stored}"
            uuids = [uuid for (uuid,) in db.execute("select uuid from turns")]
            assert len(uuids) == len(set(uuids)) == self.turns() + allowed

    def turns(self) -> int:
        return sum(map(len, (*self.files.values(), *self.reported.values())))


def _difference(stored: list[tuple[str, str, str]], said: list[tuple[str, str, str]]) -> str:
    missing, more = [turn for turn in said if turn not in stored], [turn for turn in stored if turn not in said]
    order = "" if missing or more else ", in another order or twice"
    return f"{len(said)} said, {len(stored)} stored{order}; missing: {missing[:3]}; nobody said: {more[:3]}"


@contextmanager
def _told(failures: list[BaseException]) -> Iterator[None]:
    try:
        yield
    except BaseException as error:  # noqa: BLE001 - raised by the round
        failures.append(error)


# --- when it is killed


def _while_it_starts(world: World, chance: random.Random, number: int) -> None:
    world.kill()
    world.daemon = world.machine.spawn()
    time.sleep(chance.uniform(0, 0.4))


def _while_hooks_come(world: World, chance: random.Random, number: int) -> None:
    before, wanted = len(world.acknowledged), chance.randint(1, 60)
    eventually(lambda: len(world.acknowledged) >= before + wanted)
    time.sleep(chance.uniform(0, 0.01))


def _while_transcripts_grow(world: World, chance: random.Random, number: int) -> None:
    for _ in range(chance.randint(10, 50)):
        world.speak(chance, f"t{number}", hooks=False)
    time.sleep(chance.uniform(0, 0.2))


def _while_a_tree_is_imported(world: World, chance: random.Random, number: int) -> None:
    folder = world.machine.root / f"import{number}"
    for session in range(6):
        for _ in range(8):
            world.speak(chance, f"i{number}-{session}", hooks=False, folder=folder)
    world.machine.call("csm_import", path=str(folder), vectors=False)
    time.sleep(chance.uniform(0, 0.3))


def _while_texts_are_embedded(world: World, chance: random.Random, number: int) -> None:
    if world.model is not None and not world.machine.status()["model"]["name"]:
        world.machine.work("csm_model_add", path=str(world.model))
    job = world.machine.call("csm_sync", vectors=True)["job"]

    def embeds() -> bool:
        state = world.machine.call("csm_job", id=job)
        world.hits += (
            is_hit := state["progress"].get("step") in ("embedding", "linking") and state["state"] == "running"
        )
        return is_hit or state["state"] in ("done", "failed")

    eventually(embeds, within_s=600)
    time.sleep(chance.uniform(0, 0.2))


def _while_the_spool_is_drained(world: World, chance: random.Random, number: int) -> None:
    world.kill()
    said = world.reported.setdefault(f"d{number}", [])
    for _ in range(SPOOLED_AT_ONCE):
        ident, payload = world.event(f"d{number}")
        said.append(payload["last_assistant_message"])
        world.spool(ident, payload)
    world.daemon = world.machine.start()
    time.sleep(chance.uniform(0, 0.3))


def _while_it_ends(world: World, chance: random.Random, number: int) -> None:
    time.sleep(chance.uniform(0, 0.2))
    world.daemon.terminate()
    time.sleep(chance.uniform(0, 0.06))


PHASES: dict[str, Callable[[World, random.Random, int], None]] = {
    "it starts": _while_it_starts,
    "hooks come": _while_hooks_come,
    "transcripts grow": _while_transcripts_grow,
    "a tree is imported": _while_a_tree_is_imported,
    "the spool is drained": _while_the_spool_is_drained,
    "it ends": _while_it_ends,
    "texts are embedded": _while_texts_are_embedded,
}


def run(
    machine: Machine, *, rounds: int, seed: int, model: Path | None, say: Callable[[str], None], encrypted: bool = False
) -> World:
    """`rounds` kills; AssertionError says which round of which seed did not hold."""
    world = World(machine, seed, model)
    if encrypted:
        world.encrypt()
    for number in range(rounds):
        try:
            phase = world.round(number)
        except BaseException:
            say(f"round {number} of seed {seed} failed, phase: {list(PHASES)[number % len(PHASES)]}")
            raise
        say(f"round {number}: killed while {phase}; {len(world.acknowledged)} acknowledged, {world.turns()} turns")
    machine.work("csm_sync", vectors=model is not None)
    world.check()
    status = machine.status()
    assert status["model"]["waiting"] == 0, status["model"]
    assert world.turns() <= status["counts"]["turns"] <= world.turns() + len(world.far_apart)
    return world


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--model", type=Path)
    parser.add_argument("--encrypted", action="store_true", help="In an encrypted home; needs apsw-sqlite3mc.")
    chosen = parser.parse_args()
    began = time.monotonic()
    with own_machine() as machine:
        world = run(
            machine,
            rounds=chosen.rounds,
            seed=chosen.seed,
            model=chosen.model,
            encrypted=chosen.encrypted,
            say=lambda line: print(line, flush=True),
        )
        print(
            f"| killed while | rounds |\n|---|---|\n{''.join(f'| {p} | {n} |{chr(10)}' for p, n in world.kills.items())}"
        )
        print(
            f"seed {chosen.seed}: {sum(world.kills.values())} kills in {time.monotonic() - began:.0f} s; "
            f"{len(world.acknowledged)} events acknowledged, 0 of them lost; {world.turns()} turns said, "
            "each stored once, none besides; index and vector rows as they should be; "
            f"{len(world.far_apart)} reports of two commands were too far apart to be one; "
            f"{world.hits} kills hit embedding or linking"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
