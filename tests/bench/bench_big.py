"""What big things do to small ones: how long hooks wait, and how many spool, while something big comes in.

    python tests/bench/bench_big.py [--json FILE] [--only CASE]

Each case is measured against the same machine at rest, in one run: four peers report an event every 20 ms with a hook's patience.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from machine import Machine, event_frames, own_machine, peer

PEERS, EVERY_S = 4, 0.02
#: A hook's patience for an event that injects nothing.
PATIENCE_MS = 500
AT_REST_S, MIN_S, MAX_S = 4.0, 4.0, 120.0
MB = 1 << 20


class Peers:
    """Hooks of several sessions that come all the time: how long each waited; None for one that would have spooled."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.waited: list[float | None] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(PEERS)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        count = 0
        while not self._over.is_set():
            with peer(self.machine.socket) as dealer:
                while not self._over.wait(EVERY_S):
                    count += 1
                    payload = {
                        "session_id": f"small{number}",
                        "cwd": "/",
                        "last_assistant_message": f"small answer {count}",
                    }
                    ident = f"{time.time_ns():016x}{number:08x}{count:08x}"
                    began = time.monotonic()
                    dealer.send_multipart(event_frames("Stop", payload, ident=ident))
                    if dealer.poll(PATIENCE_MS) and dealer.recv_multipart()[0] == b"ok":
                        self.waited.append(time.monotonic() - began)
                    else:
                        self.waited.append(None)
                        break

    def end(self) -> dict[str, float]:
        """Share spooled, p50 and p99 of the others in ms."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        answered = sorted(one * 1000 for one in self.waited if one is not None)
        spooled = len(self.waited) - len(answered)

        def at(share: float) -> float:
            return round(answered[min(len(answered) - 1, int(share * len(answered)))], 2) if answered else 0.0

        return {
            "events": len(self.waited),
            "spooled": spooled,
            "p50_ms": at(0.5),
            "p99_ms": at(0.99),
            "most_ms": at(1.0),
        }


def _prompt(machine: Machine, size: int) -> Callable[[], bool]:
    words = "the queue of jobs lives in postgres and the worker retries with a jitter of some seconds\n"
    payload = {
        "session_id": "big",
        "cwd": str(machine.project),
        "prompt": words * (size // len(words)),
        "transcript_path": "",
    }

    def send() -> None:
        with peer(machine.socket) as dealer:
            dealer.send_multipart(event_frames("UserPromptSubmit", payload, ident=f"{time.time_ns():032x}"))
            dealer.poll(int(MAX_S * 1000))

    sender = threading.Thread(target=send)
    sender.start()
    return lambda: not sender.is_alive() and machine.status()["counts"]["turns"] > 0


def _sparse(machine: Machine) -> Callable[[], bool]:
    path = machine.paths.spool / f"{0:032x}.event"
    with path.open("wb") as file:
        file.write(f"csmd-spool 1 {0:032x} claude Stop {time.time_ns()}\n".encode())
        file.truncate(8 << 30)
    return lambda: not path.exists()


def _many_hooks(machine: Machine) -> Callable[[], bool]:
    machine.hook("Stop", "warm", last_assistant_message="warm")
    line = f"{machine.home}/hook/csmd_hook.py"
    running = []
    for number in range(200):
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", line, str(machine.home), "Stop"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        body = json.dumps(
            {"session_id": f"many{number}", "cwd": "/", "last_assistant_message": f"one of many {number}"}
        )
        assert child.stdin
        child.stdin.write(body.encode())
        child.stdin.close()
        running.append(child)
    return lambda: all(child.poll() is not None for child in running)


def _long_spool(machine: Machine) -> Callable[[], bool]:
    for number in range(5000):
        ident = f"{time.time_ns():016x}{number:016x}"
        body = json.dumps(
            {"session_id": f"long{number % 20}", "cwd": "/", "last_assistant_message": f"waited {number}"}
        )
        half = machine.paths.spool / f".tmp-{ident}"
        half.write_text(f"csmd-spool 1 {ident} claude Stop {time.time_ns()}\n{body}")
        half.rename(machine.paths.spool / f"{ident}.event")
    return lambda: not machine.spooled()


CASES: dict[str, Callable[[Machine], Callable[[], bool]]] = {
    "a prompt of 16 MB": lambda machine: _prompt(machine, 16 * MB),
    "a prompt of 30 MB": lambda machine: _prompt(machine, 30 * MB),
    "a file of 8 GB in the spool": _sparse,
    "200 hooks at once": _many_hooks,
    "5,000 events in the spool": _long_spool,
}


def measure(case: str) -> dict[str, Any]:
    """One case on a machine of its own: at rest, then while it comes in and until it is in."""
    with own_machine() as machine:
        daemon = machine.start()
        rest = Peers(machine)
        time.sleep(AT_REST_S)
        before = rest.end()
        process = psutil.Process(daemon.pid)
        peers, began, most = Peers(machine), time.monotonic(), 0.0
        is_in = CASES[case](machine)
        while time.monotonic() - began < MAX_S and (time.monotonic() - began < MIN_S or not is_in()):
            most = max(most, process.memory_info().rss / 1e6)
            time.sleep(0.05)
        took = time.monotonic() - began
        during = peers.end()
        return {"case": case, "took_s": round(took, 1), "rss_mb": round(most), "rest": before, "during": during}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=CASES)
    chosen = parser.parse_args()
    rows = []
    print("| case | took | RSS | at rest p50, p99 | meanwhile p50, p99, most | spooled |\n|---|---|---|---|---|---|")
    for case in [chosen.only] if chosen.only else CASES:
        row = measure(case)
        rows.append(row)
        rest, during = row["rest"], row["during"]
        print(
            f"| {case} | {row['took_s']} s | {row['rss_mb']} MB | {rest['p50_ms']}, {rest['p99_ms']} ms "
            f"| {during['p50_ms']}, {during['p99_ms']}, {during['most_ms']} ms | {during['spooled']} of {during['events']} |",
            flush=True,
        )
    if chosen.json:
        chosen.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
