"""What the daemon costs while nothing happens: memory and CPU over half an hour, after an import of a large past.

    python tests/bench/bench_idle.py [--directories 10000] [--transcripts 20000] [--minutes 30] [--model DIR]
                                     [--out FOLDER] [--threads]

A user's directory is made: PROJECTS projects that exist, each with instructions of its own, and below the assistant's
directory their sessions as it lays them out (a transcript, a folder of the session with its sub-agents'), with
composed lines, written over the last 30 days. A real daemon watches it and takes everything in. When it is at
rest, memory and CPU of the daemon and of its embedding worker are sampled every 10 s. FOLDER gets `idle.csv` and
`idle.svg`; the last line printed is the summary. With --threads also the CPU of each of the daemon's threads.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import charts
import psutil

PROJECTS = 200
DAYS = 30
EVERY_S = 10.0
#: At rest: no job, nothing left to embed, and the CPU has not moved more than this in EVERY_S.
QUIET_CPU_S = 0.1
LIMIT_S = 3600.0
MB = 1e6


@dataclass(frozen=True, slots=True)
class Sample:
    """The daemon and its worker at a moment; the worker's figures are 0 when it does not run."""

    at_s: float
    daemon_rss: int
    daemon_cpu: float
    worker_rss: int
    worker_cpu: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directories", type=int, default=10_000)
    parser.add_argument("--transcripts", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--threads", action="store_true")
    chosen = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="csmd-idle-", dir="/tmp"))
    home, assistant = root / "csmd", root / ".claude"
    environment = {
        **os.environ, "HOME": str(root), "CSMD_HOME": str(home), "CLAUDE_CONFIG_DIR": str(assistant), "COLUMNS": "80",
    }  # fmt: skip

    def csmd(*words: str) -> Any:
        command = [sys.executable, "-m", "csmd", *words, "--json"]
        return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)

    try:
        made = compose(root, assistant / "projects", chosen.directories, chosen.transcripts)
        say(f"{made['directories']} directories, {made['transcripts']} transcripts, {made['bytes'] / MB:.0f} MB")
        process = psutil.Process(csmd("start")["daemon"]["pid"])
        try:
            if chosen.model:
                csmd("model", "add", str(chosen.model))
            say(f"a daemon without anything: {process.memory_info().rss / MB:.0f} MB")
            taken = csmd("sync")
            say(f"taken in: {taken['turns_new']} turns, {taken['memories_new']} memories in {taken['took_s']:.0f} s")
            say(f"watches: {watches(process.pid)}, {process.memory_info().rss / MB:.0f} MB")
            rest(process, csmd)
            before = threads(process)
            samples = list(watch(process, chosen.minutes * 60))
            if chosen.threads:
                for name, used in sorted((threads(process) - before).items(), key=lambda one: -one[1]):
                    say(f"  {used:6.2f} s  {name}")
            degraded = csmd("status")["degraded"]
        finally:
            csmd("stop")
        chosen.out.mkdir(parents=True, exist_ok=True)
        write_csv(samples, chosen.out / "idle.csv")
        (chosen.out / "idle.svg").write_text(plot(samples))
        print(summary(samples), *(f"degraded: {trouble}" for trouble in degraded), sep="\n")
    finally:
        shutil.rmtree(root)
    return 0


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


# --- the past


def compose(root: Path, projects: Path, directories: int, transcripts: int) -> dict[str, int]:
    """Makes that many directories below `projects` with that many transcripts in them; what was made."""
    sessions = max(1, (directories - PROJECTS) // 2)  # each has a folder and one for its sub-agents
    agents = max(0, transcripts - sessions)
    size = 0
    for number in range(sessions):
        project = number % PROJECTS
        cwd = root / "work" / f"project{project}"
        if number < PROJECTS:
            cwd.mkdir(parents=True)
            (cwd / "CLAUDE.md").write_text(f"# Project {project}\n\nRun `make check{project}` before each commit.\n")
        folder = projects / str(cwd).replace("/", "-")
        begun = datetime.now(UTC) - timedelta(days=DAYS * (sessions - number) / sessions, hours=2)
        session = f"{number:08x}-0000-4000-8000-000000000000"
        size += write(folder / f"{session}.jsonl", conversation(session, cwd, begun, number), begun)
        for agent in range(agents * number // sessions, agents * (number + 1) // sessions):
            name = f"{agent:08x}"
            place = folder / session / "subagents" / f"agent-{name}.jsonl"
            size += write(place, conversation(session, cwd, begun, number, agent=name), begun)
    made = sum(len(folders) for _, folders, _ in os.walk(projects))
    return {"directories": made, "transcripts": sessions + agents, "bytes": size}


def write(path: Path, lines: list[dict[str, Any]], at: datetime) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(f"{json.dumps(line)}\n" for line in lines)
    path.write_text(data)
    os.utime(path, (at.timestamp(), at.timestamp()))
    return len(data)


def conversation(session: str, cwd: Path, begun: datetime, number: int, *, agent: str = "") -> list[dict[str, Any]]:
    """A short session: every tenth person states something that is kept."""
    asked = f"Look at step {number} of the plan and tell what is left of it."
    if number % 10 == 0:
        asked = f"In step {number}, I prefer the flag --level-{number} over the variable LEVEL_{number} in this code."
    said = [("user", asked), ("assistant", f"Step {number} is done; what is left is its test and a line of docs.")]
    lines = []
    for place, (kind, text) in enumerate(said):
        message: dict[str, Any] = {"role": kind, "content": text}
        if kind == "assistant":
            message = {"id": f"msg{number}{agent}", "role": kind, "content": [{"type": "text", "text": text}]}
        line = {
            "type": kind, "uuid": f"{session[:8]}-{agent or 'main'}-{place}", "sessionId": session, "cwd": str(cwd),
            "version": "2.1.0", "message": message, "isSidechain": bool(agent),
            "timestamp": (begun + timedelta(seconds=place)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }  # fmt: skip
        lines.append({**line, "agentId": agent} if agent else line)
    return lines


# --- the daemon


def rest(process: psutil.Process, csmd: Any) -> None:
    """Waits until the daemon has nothing to do any more."""
    began = time.monotonic()
    while time.monotonic() - began < LIMIT_S:
        before = cpu(process)
        time.sleep(EVERY_S)
        used = cpu(process) - before
        state = csmd("status") if used < QUIET_CPU_S else None
        if state and not (state["jobs"] or state["model"]["waiting"] or state.get("backfill")):
            say(f"at rest {time.monotonic() - began:.0f} s later, {process.memory_info().rss / MB:.0f} MB")
            return
    raise SystemExit("the daemon does not come to rest")


def watch(process: psutil.Process, seconds: float) -> Iterator[Sample]:
    began = time.monotonic()
    while True:
        children = process.children()
        yield Sample(
            at_s=time.monotonic() - began,
            daemon_rss=process.memory_info().rss,
            daemon_cpu=cpu(process),
            worker_rss=sum(child.memory_info().rss for child in children),
            worker_cpu=sum(cpu(child) for child in children),
        )
        left = began + seconds - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(EVERY_S, left))


def cpu(process: psutil.Process) -> float:
    """Seconds of CPU, to the microsecond where the machine tells: two ticks an hour are the figure that is wanted."""
    try:
        # all threads that live: nanoseconds, where cpu_times() counts in hundredths of a second
        schedstat = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
        return sum(int(path.read_text().split()[0]) for path in schedstat) / 1e9
    except OSError:
        times = process.cpu_times()
        return float(times.user + times.system)


def threads(process: psutil.Process) -> Counter[str]:
    """Seconds of CPU by thread."""
    found: Counter[str] = Counter()
    for task in Path(f"/proc/{process.pid}/task").glob("*"):
        found[f"{(task / 'comm').read_text().strip()} {task.name}"] += (
            int((task / "schedstat").read_text().split()[0]) / 1e9  # type: ignore[assignment]
        )
    return found


def watches(pid: int) -> int:
    """How many directories the kernel watches for it."""
    infos = Path(f"/proc/{pid}/fdinfo").glob("*")
    return sum(path.read_text().count("inotify wd:") for path in infos)


# --- what is told


def summary(samples: list[Sample]) -> str:
    first, last = samples[0], samples[-1]
    wall = last.at_s - first.at_s
    worker_last = max((one.at_s for one in samples if one.worker_rss), default=0.0)
    worker = f"the worker was there for {worker_last / 60:.1f} min" if worker_last else "no worker"
    return (
        f"{wall / 60:.1f} min at rest: {(last.daemon_cpu - first.daemon_cpu) / wall * 100:.4f} % of a core, "
        f"RSS peak {max(one.daemon_rss for one in samples) / MB:.1f} MB, last {last.daemon_rss / MB:.1f} MB; {worker}"
    )


def write_csv(samples: list[Sample], path: Path) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["at_s", "daemon_rss_mb", "daemon_cpu_s", "worker_rss_mb", "worker_cpu_s"])
        for one in samples:
            table.writerow([
                f"{one.at_s:.1f}", f"{one.daemon_rss / MB:.1f}", f"{one.daemon_cpu - samples[0].daemon_cpu:.4f}",
                f"{one.worker_rss / MB:.1f}", f"{one.worker_cpu:.2f}",
            ])  # fmt: skip


def plot(samples: list[Sample]) -> str:
    """Two panels over time: resident memory, and CPU seconds used since the beginning with 0.1 % of a core beside it."""
    minutes = [one.at_s / 60 for one in samples]
    memory = {
        "daemon": [one.daemon_rss / MB for one in samples], "worker": [one.worker_rss / MB for one in samples],
        "limit 80": [80.0 for _ in samples],
    }  # fmt: skip
    used = {
        "daemon": [one.daemon_cpu - samples[0].daemon_cpu for one in samples],
        "limit 0.1 %": [one.at_s / 1000 for one in samples],
    }
    return charts.draw([
        charts.Chart("resident memory, MB", minutes, memory, "min"),
        charts.Chart("CPU since the beginning, s", minutes, used, "min"),
    ])  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
