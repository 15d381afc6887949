"""Which newer events may be registered: those that every client in use knows, the installed and the ones that wrote.

An unknown client counts as an old one: before 2.1.101 one unknown event in the settings disabled the whole file.
A client is only asked for its version, in an empty directory and environment, so that it starts nothing and writes
nothing of the user's.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from csmd import text
from csmd.cli.settings import NEWER
from csmd.config import child_environment, user_home

PROGRAM = "claude"
#: Below the user's home, or absolute: where the client's installers put it, whatever PATH says here.
USUAL = (".local/bin", ".claude/local", ".claude/local/node_modules/.bin", ".npm-global/bin", ".bun/bin", ".volta/bin",
         "/usr/local/bin", "/opt/homebrew/bin", "/usr/bin")  # fmt: skip
PATIENCE_S = 5.0
#: The first version that an unknown event in the settings does not hurt.
FORGIVING = "2.1.101"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The newer events to register, or why there are none: `kept_out_by` is a version, or what a client is like."""

    events: tuple[str, ...]
    kept_out_by: str = ""

    @property
    def needs(self) -> str:
        """The oldest version that may be in use with these events; "" for any."""
        return oldest_for(self.events)


def choose(installed: Mapping[str, str], seen: Iterable[str]) -> Choice:
    """What may be registered for these clients: path -> version ("" for one that does not say), and versions seen."""
    choice = known_to([*installed.values(), *seen])
    if choice.kept_out_by:
        return choice
    if not installed:
        return Choice(events=(), kept_out_by="no `claude` was found")
    silent = [path for path, version in installed.items() if text.version_of(version) is None]
    return Choice(events=(), kept_out_by=f"{silent[0]} does not tell its version") if silent else choice


def known_to(versions: Iterable[str]) -> Choice:
    """The newer events that the oldest of these versions knows; what is no version says nothing."""
    told = [version for version in versions if text.version_of(version)]
    if not told:
        return Choice(events=tuple(NEWER))
    oldest = min(told, key=_number)
    events = tuple(event for event in NEWER if _number(oldest) >= _number(oldest_for([event])))
    return Choice(events=events, kept_out_by="" if len(events) == len(NEWER) else oldest)


def oldest_for(events: Sequence[str]) -> str:
    """The oldest version that may be in use with these events registered; "" for any."""
    return max([FORGIVING, *(NEWER[event] for event in events)], key=_number) if events else ""


def _number(version: str) -> tuple[int, int, int]:
    return text.version_of(version) or (0, 0, 0)


def installed() -> dict[str, str]:
    """The clients on this machine, each once by its real path, and the version that each tells; "" where it does not."""
    search, home = child_environment().get("PATH", os.defpath), user_home()
    places = [Path(place) for place in search.split(os.pathsep) if Path(place).is_absolute()]
    found: dict[str, Path] = {}
    for path in (place / PROGRAM for place in [*places, *(home / usual for usual in USUAL)]):
        if path.is_file() and os.access(path, os.X_OK):
            found.setdefault(os.path.realpath(path), path)
    with ThreadPoolExecutor(max_workers=4) as asking:
        told = asking.map(lambda path: _version(path, search), found.values())
        return {str(path): version for path, version in zip(found.values(), told, strict=True)}


def _version(path: Path, search: str) -> str:
    """What `claude --version` says: a number, or "" for anything else."""
    with tempfile.TemporaryDirectory(prefix="csmd-ask-", ignore_cleanup_errors=True) as empty:
        environment = {
            "PATH": search,  # a script of the client's finds its node there
            "HOME": empty,
            "CLAUDE_CONFIG_DIR": empty,
            "TMPDIR": empty,
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        try:
            done = subprocess.run(
                [str(path), "--version"], cwd=empty, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=PATIENCE_S, check=False, start_new_session=True,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
    word = done.stdout.decode("utf-8", "replace").split()[:1]
    return word[0] if done.returncode == 0 and word and text.version_of(word[0]) else ""
