"""What a hook costs: the registered command against a bare interpreter, run in alternation, medians as a table.

    python tests/bench/bench_hook.py [--home HOME] [--runs 100] [--event Stop] [--most 1.6]

Without --home it installs csmd into a home of its own and measures the real daemon up (every event another one, so
each ack waits for its commit), stopped, and stopped with a socket left behind. With --home the daemon of that home is
measured as it is. The exit code is 1 when a ratio is above --most.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from csmd.config import base_interpreter

#: An event's payload but for its number: two that are alike would be one event to the daemon.
PAYLOAD = (
    '{{"session_id":"385a375e-0000","transcript_path":"/nowhere/385a375e-0000.jsonl","cwd":"/nowhere",'
    '"prompt_id":"{number}","hook_event_name":"{event}","prompt":"{text}","last_assistant_message":"{text}"}}\n'
)


@contextmanager
def installed() -> Iterator[tuple[Path, Callable[..., None]]]:
    """A home with hooks and a daemon of its own, and how to run `csmd` for it."""
    home = Path(tempfile.mkdtemp(prefix="csmd-bench-", dir="/tmp"))
    environment = {**os.environ, "CSMD_HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "assistant")}

    def csmd(*words: str) -> None:
        subprocess.run([sys.executable, "-m", "csmd", *words], env=environment, check=True, stdout=subprocess.DEVNULL)

    try:
        csmd("install")
        yield home, csmd
    finally:
        csmd("stop")
        shutil.rmtree(home)


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


def alternate(first: str, second: str, event: str, runs: int) -> tuple[list[float], list[float]]:
    """`runs` times each, one after the other, so that the machine's moods meet both."""

    def payload(number: int) -> bytes:
        return PAYLOAD.format(number=number, event=event, text=f"All done, number {number}. " * 30).encode()

    for command in (first, second):
        run_once(command, payload(-1))
    rows = [(run_once(first, payload(number)), run_once(second, payload(number))) for number in range(runs)]
    return [row[0] for row in rows], [row[1] for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--event", default="Stop")
    parser.add_argument("--most", type=float, default=1.6)
    parser.add_argument("--interpreter", default=base_interpreter())
    parser.add_argument("--json", action="store_true", help="the ratios alone")
    chosen = parser.parse_args()
    bare = f"{shlex.quote(chosen.interpreter)} -I -S -c pass || true"
    rows: list[tuple[str, float, float]] = []
    verbs: dict[str, float] = {}

    def measure(name: str, home: Path) -> None:
        script = home / "hook" / "csmd_hook.py"
        words = [chosen.interpreter, "-I", "-S", str(script), str(home), chosen.event]
        base, hook = alternate(bare, f"{shlex.join(words)} || true", chosen.event, chosen.runs)
        rows.append((name, statistics.median(base), statistics.median(hook)))

    if chosen.home:
        measure("the daemon of this home", chosen.home.absolute())
    else:
        with installed() as (home, csmd):
            measure("up", home)
            csmd_itself = shlex.join([sys.executable, "-m", "csmd"])
            for name, line in (
                ("status", f"CSMD_HOME={shlex.quote(str(home))} {csmd_itself} status"),
                ("completion", f"_CSMD_COMPLETE=bash_complete COMP_WORDS='csmd ' COMP_CWORD=1 {csmd_itself}"),
            ):
                base, shown = alternate(bare, line, chosen.event, chosen.runs)
                verbs[name] = statistics.median(shown) / statistics.median(base)
            csmd("stop")
            measure("down", home)
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(home / "dead.sock"))
            (home / "endpoint").write_text(f"{home}/dead.sock\n")
            measure("down, a socket left behind", home)
    if chosen.json:
        print(json.dumps({**{name: hook / base for name, base, hook in rows}, **verbs}))
        return 0
    print(f"| daemon | bare interpreter, ms | {chosen.event} hook, ms | ratio |\n|---|---|---|---|")
    for name, base, hook in rows:
        print(f"| {name} | {base:.1f} | {hook:.1f} | {hook / base:.2f} |")
    for name, ratio in verbs.items():
        print(f"\n`csmd` takes {ratio:.1f} times as long as the bare interpreter for {name}.")
    python = sys.version.split()[0]
    print(f"\nMedians of {chosen.runs} runs each in alternation; Python {python}, {os.cpu_count()} cores.")
    return int(any(hook / base > chosen.most for _, base, hook in rows))


if __name__ == "__main__":
    raise SystemExit(main())
