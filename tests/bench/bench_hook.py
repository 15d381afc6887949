"""What a hook costs: the registered command against a bare interpreter, run in alternation, medians as a table.

    python tests/bench/bench_hook.py [--home HOME] [--runs 100] [--event Stop] [--most 1.6]

Without --home it makes a home with a small ROUTER that answers at once (so: the hook's own cost, not the store's).
With --home the daemon of that home is measured as it is, and "down" is left out. The exit code is 1 when a ratio
is above --most.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import zmq

from csmd.config import base_interpreter

PAYLOAD = b'{"session_id":"385a375e-0000","hook_event_name":"%s","last_assistant_message":"%s"}\n'


def hook_sources() -> Path:
    """The directory with the hook's scripts: the installed package's, else the repository's."""
    import csmd

    shared = Path(csmd.__file__).parent / "_share" / "hooks"
    return shared if shared.is_dir() else Path(__file__).resolve().parents[2] / "hooks"


@contextmanager
def responder(socket_path: Path) -> Iterator[None]:
    """A ROUTER that answers every request with `ok` and nothing to print."""
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.LINGER, 0)
    router.bind(f"ipc://{socket_path}")
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            if router.poll(50):
                router.send_multipart([router.recv_multipart()[0], b"ok", b""])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        router.close()
        context.term()


def run_once(command: str, payload: bytes) -> float:
    """Milliseconds from the start of `sh -c command` to its end, the payload already in its stdin's pipe."""
    end, start = os.pipe()
    os.write(start, payload)
    os.close(start)
    began = time.perf_counter()
    actions = [(os.POSIX_SPAWN_DUP2, end, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    child = os.posix_spawn("/bin/sh", ["sh", "-c", command], os.environ, file_actions=actions)
    _, status = os.waitpid(child, 0)
    took = (time.perf_counter() - began) * 1000
    os.close(end)
    if status != 0:
        raise SystemExit(f"{command}: exit status {status}")
    return took


def alternate(first: str, second: str, payload: bytes, runs: int) -> tuple[list[float], list[float]]:
    """`runs` times each, one after the other, so that the machine's moods meet both."""
    for command in (first, second):
        run_once(command, payload)
    rows = [(run_once(first, payload), run_once(second, payload)) for _ in range(runs)]
    return [row[0] for row in rows], [row[1] for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--event", default="Stop")
    parser.add_argument("--most", type=float, default=1.6)
    parser.add_argument("--interpreter", default=base_interpreter())
    chosen = parser.parse_args()
    bare = f"{shlex.quote(chosen.interpreter)} -I -S -c pass || true"
    payload = PAYLOAD % (chosen.event.encode(), b"All done. " * 60)
    rows: list[tuple[str, float, float]] = []

    def measure(name: str, home: Path) -> None:
        script = home / "hook" / "csmd_hook.py"
        words = [chosen.interpreter, "-I", "-S", str(script), str(home), chosen.event]
        base, hook = alternate(bare, f"{shlex.join(words)} || true", payload, chosen.runs)
        rows.append((name, statistics.median(base), statistics.median(hook)))

    if chosen.home:
        measure("the daemon of this home", chosen.home.absolute())
    else:
        home = Path(tempfile.mkdtemp(prefix="csmd-bench-"))
        try:
            shutil.copytree(hook_sources(), home / "hook")
            (home / "endpoint").write_text(f"{home}/socket\n")
            measure("down, no socket", home)
            with responder(home / "socket"):
                measure("up", home)
            (home / "socket").unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(home / "socket"))
            measure("down, dead socket", home)
        finally:
            shutil.rmtree(home)
    print(f"| daemon | bare interpreter, ms | {chosen.event} hook, ms | ratio |\n|---|---|---|---|")
    for name, base, hook in rows:
        print(f"| {name} | {base:.1f} | {hook:.1f} | {hook / base:.2f} |")
    python = sys.version.split()[0]
    print(f"\nMedians of {chosen.runs} runs each in alternation; Python {python}, {os.cpu_count()} cores.")
    return int(any(hook / base > chosen.most for _, base, hook in rows))


if __name__ == "__main__":
    raise SystemExit(main())
