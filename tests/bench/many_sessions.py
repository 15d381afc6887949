"""Makes transcripts of many sessions by varying real ones: ids, names, dates and directories differ.

    python tests/bench/many_sessions.py TREE INTO [--sessions 20000] [--gigabytes 5] [--projects 40]

TREE holds real transcripts. Long ones are cut at a line's end so that all copies together take --gigabytes. The largest project
has a third of the sessions; the newest session ended an hour ago, and each other one BETWEEN before the next.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

UUID = re.compile(rb"\b([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-)")
DAY = re.compile(rb'("timestamp":")(\d{4}-\d\d-\d\d)')
CWD = re.compile(rb'"cwd":"[^"]*"')
SESSION = re.compile(rb'"sessionId":"([0-9a-f-]{36})"')
#: Words that are neither a field's name nor its value: each copy gets them with its own number.
NAMES = re.compile(
    rb"\b(branch|commit|checkpoint|config|error|server|strategy|metadata|handler|workflow|agent|prompt|shadow|hook|state)\b"
)
BEFORE_NOW = timedelta(hours=1)
#: The time between the ends of two sessions: 20,000 of them span two years.
BETWEEN = timedelta(minutes=50)
#: One session in so many belongs to the largest project.
LARGEST = 3


def cut_at(sizes: Sequence[int], number: int, most: int) -> int:
    """The length in bytes to cut sessions of these sizes at, so that `number` copies take `most` bytes together."""
    low, high = 0, max(sizes)
    while high - low > 1000:
        middle = (low + high) // 2
        total = sum(min(size, middle) for size in sizes) / len(sizes) * number
        low, high = (middle, high) if total < most else (low, middle)
    return low


def varied(session: bytes, number: int, place: str, ends: datetime) -> bytes:
    """A copy of a session with its own ids, names and directory `place`, moved in time to the day of `ends`."""
    days = [date.fromisoformat(match[2].decode()) for match in DAY.finditer(session)]
    shift = ends.date() - max(days, default=ends.date())
    moved = {str(day).encode(): str(day + shift).encode() for day in set(days)}
    name = rb"\g<1>%d" % (number % 997)
    session = UUID.sub(lambda match: b"%08x%s" % (int(match[1], 16) ^ number, match[2]), session)
    session = DAY.sub(lambda match: match[1] + moved[match[2]], session)
    session = CWD.sub(b'"cwd":"%s"' % place.encode(), session)
    return NAMES.sub(name, session)


def make(tree: Path, into: Path, *, sessions: int, most: int, projects: int) -> Iterator[Path]:
    """Writes the sessions, newest first, and yields their paths."""
    real = [path.read_bytes() for path in sorted(tree.rglob("*.jsonl")) if "subagents" not in path.parts]
    cut = cut_at([len(session) for session in real], sessions, most)
    real = [session[: session.rfind(b"\n", 0, cut) + 1] for session in real]
    now = datetime.now(UTC) - BEFORE_NOW
    for number in range(sessions):
        project = 0 if number % LARGEST == 0 else number % projects
        ends = now - number * BETWEEN
        folder = into / f"-home-somebody-project{project}"
        folder.mkdir(parents=True, exist_ok=True)
        text = varied(real[number % len(real)], number + 1, f"/home/somebody/project{project}", ends)
        own_id = SESSION.search(text)
        path = folder / f"{own_id[1].decode() if own_id else number}.jsonl"
        path.write_bytes(text)
        os.utime(path, (ends.timestamp(), ends.timestamp()))
        yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("into", type=Path)
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--gigabytes", type=float, default=5)
    parser.add_argument("--projects", type=int, default=40)
    args = parser.parse_args()
    began = time.monotonic()
    made = list(
        make(args.tree, args.into, sessions=args.sessions, most=int(args.gigabytes * 1e9), projects=args.projects)
    )
    size = sum(path.stat().st_size for path in made)
    print(f"{len(made)} sessions, {size / 1e9:.2f} GB, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
