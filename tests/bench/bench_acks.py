"""What an acknowledgement takes: p50 and p99 with one and with eight clients, beside an fsync on the same disk.

    python tests/bench/bench_acks.py [--blocks 20] [--events 50] [--idle 60] [--home DIR] [--import TREE]

The real daemon in a home of its own. A client is a DEALER that stays connected (so: without what a hook's process and
its connecting cost, which is tests/bench/bench_hook.py's) and sends a Stop event with made-up text (big_store.py), waits for its `ok`, sends the next.
Fsyncs, one client and eight clients take turns in blocks, so that the disk's moods meet all three. An fsync is that of
a file in the home to which 8 KiB were appended, as a commit does. Afterwards the daemon is left alone for --idle
seconds: what it then takes of memory and of a core. With --import one client reports every 20 ms before, while and after
a tree of transcripts is imported: what an ack takes while they are read, and while they are distilled.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import psutil
import zmq
from big_store import SUBJECTS, Words

from csmd import client, wire
from csmd.config import default_paths
from csmd.paths import Paths

CLIENTS = 8
#: Words of what an assistant says last: the median, and how widely the logarithm strays; and how many such texts there are.
SAID_WORDS, SAID = (60, 0.2), 4000
PATIENCE_MS = 30_000
#: After a burst the daemon does what it had put off.
SETTLE_S = 20.0
#: Beside an import: seconds between two events, events before and after it, and after how many one looks how far it is.
PACE_S, ALONE, ASKED = 0.02, 200, 5


class Clients:
    """Owns the sockets of `count` clients; each waits for its answer before it asks again."""

    def __init__(self, path: str, count: int) -> None:
        self._context = zmq.Context()
        self._sockets: list[Any] = []
        self._poller = zmq.Poller()
        for _ in range(count):
            dealer = self._context.socket(zmq.DEALER)
            dealer.setsockopt(zmq.LINGER, 0)
            dealer.connect(f"ipc://{path}")
            self._poller.register(dealer, zmq.POLLIN)
            self._sockets.append(dealer)
        self._sent = 0
        words = Words(count)
        self.refused = 0  # answered with `retry`: a hook puts such an event into the spool
        self._said = words.texts(words.random.integers(0, SUBJECTS, SAID), SAID_WORDS)

    def close(self) -> None:
        for dealer in self._sockets:
            dealer.close()
        self._context.term()

    def report(self, events: int) -> list[float]:
        """Milliseconds from sending to the answer, of `events` events of each client."""
        took: list[float] = []
        began: dict[Any, float] = {}
        left = dict.fromkeys(self._sockets, events)
        for number, dealer in enumerate(self._sockets):
            began[dealer] = self._send(dealer, number)
        while began:
            ready = self._poller.poll(PATIENCE_MS)
            if not ready:
                raise SystemExit("the daemon does not answer")
            for dealer, _ in ready:
                status = dealer.recv_multipart()[0]
                took.append((time.perf_counter() - began.pop(dealer)) * 1000)
                if status not in (b"ok", b"retry"):
                    raise SystemExit(f"not acknowledged: {status!r}")
                self.refused += status == b"retry"
                left[dealer] -= 1
                if left[dealer]:
                    began[dealer] = self._send(dealer, self._sockets.index(dealer))
        return took

    def _send(self, dealer: Any, client: int) -> float:
        self._sent += 1
        payload = {
            "session_id": f"bench-{len(self._sockets)}-{client}",
            "cwd": "/nowhere",
            "last_assistant_message": f"{self._sent}: {self._said[self._sent % SAID]}",
        }
        request = wire.Request(
            id=os.urandom(16).hex(), verb="event", deadline_ms=20_000, host="claude", name="Stop",
            body=json.dumps(payload).encode(),
        )  # fmt: skip
        began = time.perf_counter()
        dealer.send_multipart(wire.encode_request(request))
        return began


def fsyncs(path: Path, count: int) -> list[float]:
    """Milliseconds of appending 8 KiB and flushing them to the disk."""
    took = []
    with path.open("ab", buffering=0) as file:
        for _ in range(count):
            began = time.perf_counter()
            file.write(bytes(8192))
            os.fsync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    return took


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def processor_s(pid: int) -> float:
    """Processor seconds that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def idle(pid: int, seconds: float) -> tuple[float, float]:
    """(resident MB, percent of a core) of a process that is left alone; its children, the worker, too."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]

    def used() -> float:
        return sum(times.user + times.system for times in (process.cpu_times() for process in processes))

    before, began = used(), time.monotonic()
    time.sleep(seconds)
    share = (used() - before) / (time.monotonic() - began) * 100
    return sum(process.memory_info().rss for process in processes) / 1e6, share


def meanwhile(one: Clients, paths: Paths, tree: Path) -> dict[str, list[float]]:
    """Milliseconds of acks of a client that reports every 20 ms, by what an import is at; `alone` before and after it."""
    found: dict[str, list[float]] = {"alone": []}

    def alone() -> None:
        for _ in range(ALONE):
            found["alone"] += one.report(1)
            time.sleep(PACE_S)

    alone()
    job, step, sent = client.call(paths, "csm_import", {"path": str(tree), "vectors": False})["job"], "reading", 0
    while True:
        if sent % ASKED == 0:
            state = client.call(paths, "csm_job", {"id": job})
            step = state["progress"].get("step", step)
            if state["state"] in ("done", "failed"):
                break
        found.setdefault(step, []).extend(one.report(1))
        sent += 1
        time.sleep(PACE_S)
    if state["state"] == "failed":
        raise SystemExit(f"the import failed: {state['error']}")
    time.sleep(SETTLE_S)
    alone()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--events", type=int, default=50, help="of each client in a block")
    parser.add_argument("--idle", type=float, default=60.0)
    parser.add_argument("--home", type=Path, help="where the home is made; its file system is the one measured")
    parser.add_argument("--import", dest="tree", type=Path, help="a tree of transcripts")
    parser.add_argument(
        "--json", action="store_true", help="the figures alone, in ms; event_cpu is the daemon's processor time for one"
    )
    chosen = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="csmd-bench-", dir=chosen.home or "/tmp"))
    environment = {**os.environ, "CSMD_HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "assistant")}

    def csmd(*words: str) -> Any:
        command = [sys.executable, "-m", "csmd", *words, "--json"]
        return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)

    one = many = None
    try:
        pid = csmd("start")["daemon"]["pid"]
        path = (home / "endpoint").read_text().strip()
        one, many = Clients(path, 1), Clients(path, CLIENTS)
        one.report(20), many.report(20)
        alone: list[float] = []
        together: list[float] = []
        synced: list[float] = []
        commits, used = 0, 0.0
        for _ in range(chosen.blocks):
            synced += fsyncs(home / "fsync", chosen.events)
            alone += one.report(chosen.events)
            before, busy = csmd("status")["storage"]["commits"], processor_s(pid)
            together += many.report(chosen.events)
            used += processor_s(pid) - busy
            commits += csmd("status")["storage"]["commits"] - before
        if chosen.json:
            figures = {"fsync": synced, "one": alone, "eight": together}
            shown = {f"{name}_{at}": percentile(took, at / 100) for name, took in figures.items() for at in (50, 99)}
            print(json.dumps({**shown, "event_cpu": used * 1000 / len(together)}))
            return 0
        print("| what | n | p50, ms | p99, ms | p99 / fsync p50 | p99 / fsync p99 |\n|---|---|---|---|---|---|")
        rows = (("fsync", synced), ("ack, 1 client", alone), (f"ack, {CLIENTS} clients", together))
        for name, took in rows:
            middle, most = percentile(took, 0.5), percentile(took, 0.99)
            ratios = f"{most / percentile(synced, 0.5):.1f} | {most / percentile(synced, 0.99):.1f}"
            print(f"| {name} | {len(took)} | {middle:.2f} | {most:.2f} | {ratios} |")
        print(f"\n{used * 1000 / len(together):.2f} ms of processor for an event of {CLIENTS} clients")
        print(f"{len(together) / max(1, commits):.1f} events of {CLIENTS} clients share a commit")
        if chosen.tree:
            print("\n| acks | n | p50, ms | p99, ms | most, ms |\n|---|---|---|---|---|")
            for step, took in meanwhile(one, default_paths(environment), chosen.tree).items():
                values = " | ".join(
                    f"{value:.2f}" for value in (percentile(took, 0.5), percentile(took, 0.99), max(took))
                )
                print(f"| {step} | {len(took)} | {values} |", flush=True)
            print(f"{one.refused} of them were answered with retry, upon which a hook spools")
        if chosen.idle:
            time.sleep(SETTLE_S)
            rss, share = idle(pid, chosen.idle)
            print(f"left alone for {chosen.idle:g} s after it: {rss:.0f} MB resident, {share:.3f} % of a core")
    finally:
        for clients in (one, many):
            if clients is not None:
                clients.close()
        csmd("stop")
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
