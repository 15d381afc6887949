"""A machine whose keyring is a file (fake_keyring.py), and a home that can be encrypted.

The tests need apsw-sqlite3mc in place of apsw, and keyring: .ci/run has an environment for them.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import forked_process
import pytest
from machine import LIMIT_S, Machine

from csmd.store.cipher import use_key

HERE = Path(__file__).parent
#: What is said in every home of these tests, and must not be read in a file of it.
PLANTED = "vermilion-lighthouse"


@pytest.fixture(autouse=True)
def cipher() -> Iterator[None]:
    """Skips where apsw has no cipher; no test leaves this process a key."""
    if not hasattr(apsw, "mc_version") or importlib.util.find_spec("keyring") is None:
        pytest.skip("apsw-sqlite3mc and keyring are not installed")
    yield
    use_key(None)


@dataclass(kw_only=True)
class Home:
    """A machine with a keyring, whose home is encrypted or not."""

    machine: Machine
    recovery_key: str = ""

    def program(self, *words: str, code: int = 0) -> Any:
        """The offline process of `csmd encrypt`: its report, its stderr where it is to fail."""
        done = forked_process.run(
            "csmd.daemon.encrypt", *words, cwd=self.machine.root, env=self.machine.environment(), stdin=subprocess.DEVNULL,
            timeout=LIMIT_S * 3,
        )  # fmt: skip
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stderr if code else json.loads(done.stdout)["report"]

    def encrypt(self) -> Any:
        """`csmd encrypt on`, but for the person."""
        prepared = self.program("prepare", "keyring")
        self.recovery_key = prepared["recovery_key"] or self.recovery_key
        return self.program("on", prepared["place"], prepared["digest"])

    def talk(self, session: str) -> None:
        """A conversation with PLANTED in it, taken in."""
        line = self.machine.line
        self.machine.transcript(
            line("user", f"I prefer {PLANTED} over os.path for everything in {session}.", session=session),
            line("assistant", f"From now on {PLANTED}.", session=session),
            session=session,
        )
        self.machine.conversation(session)
        self.machine.sync()

    def lock_keyring(self, is_locked: bool) -> None:
        """Locks the keyring, or unlocks it."""
        place = self.machine.root / "keyring.locked"
        place.touch() if is_locked else place.unlink()

    def files_with(self, word: str) -> list[Path]:
        """The files of the home that hold a word, but for what stays plain: pages and session files."""
        home = self.machine.home
        return [
            path for path in home.rglob("*")
            if path.is_file() and path.relative_to(home).parts[0] not in ("memory", "sessions")
            and word.encode() in path.read_bytes()
        ]  # fmt: skip


@pytest.fixture
def home(machine: Machine) -> Home:
    """A home that is plain so far, on a machine with a keyring."""
    folder = machine.root / ".config" / "python_keyring"
    folder.mkdir(parents=True)
    (folder / "keyringrc.cfg").write_text(f"[backend]\ndefault-keyring=fake_keyring.FileKeyring\nkeyring-path={HERE}\n")
    return Home(machine=machine)
