"""Below an assistant's directory only that assistant's transcripts are read, where it keeps them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from machine import DECISION, Machine

from csmd.config import Config, child_environment
from csmd.daemon import reading
from csmd.daemon.context import now_iso
from csmd.daemon.jobs import Background
from csmd.embedding.worker_client import Embedder
from csmd.hosts import adapters
from csmd.store import files
from csmd.store.core import Store

DATA = Path(__file__).resolve().parents[1] / "data" / "hosts"
HOSTS = ("codex", "copilot", "droid", "gemini", "qwen")


class Reader:
    """Owns a daemon's background that knows directories of several assistants."""

    def __init__(self, root: Path) -> None:
        self.machine = Machine(root=root)
        for folder in (self.machine.paths.home, self.machine.paths.run_dir, self.machine.paths.spool):
            files.make_private(folder)
        self.list_folders = {host: root / f".{host}" for host in HOSTS}
        self.config: Config = replace(self.machine.config(), host_dirs=tuple(self.list_folders.items()))
        self.store = Store(self.machine.paths.database, now=now_iso())
        self.embedder = Embedder(None, idle_s=60, environment=child_environment())
        self.background = Background(self.store, self.config, self.embedder)

    def read(self) -> set[str]:
        """The hosts of which sessions are known after a full sweep."""
        context = self.background.context
        reading.sweep_transcripts(context, full=True)
        while reading.read_backlog(context):
            pass
        assert not context.trouble
        return set(self.store.read(lambda rows: rows.column("select distinct host from sessions")))

    def close(self) -> None:
        self.embedder.close()
        self.store.close()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    opened = Reader(tmp_path)
    yield opened
    opened.close()


@pytest.mark.parametrize("host", HOSTS)
def test_each_assistants_transcripts_have_a_place_below_its_own_directory(host: str) -> None:
    adapter = adapters.ADAPTERS[host]
    root = DATA / host / adapter.transcripts
    found = [str(path.relative_to(root)) for path in root.rglob("*.jsonl")]
    assert found and all(adapter.place_of(str(root), inside) for inside in found)
    assert not any(adapter.place_of(str(root), f"a/clone/tests/data/{inside}") for inside in found)


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_transcripts_that_an_assistant_has_fetched_are_not_read(reader: Reader) -> None:
    scratch = reader.list_folders["gemini"] / "tmp" / "ferry" / "clone"
    for host in HOSTS:
        shutil.copytree(DATA / host, scratch / host)
    line = json.dumps(reader.machine.line("user", DECISION)) + "\n"
    chats = scratch.parent / "chats"
    for path in (scratch / "s1.jsonl", chats / "session-2026-03-02T09-00-0a1b2c3d.jsonl"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(line)
    assert reader.read() == set()
    path = scratch / "s1.jsonl"
    assert reading.read_guarded(reader.background.context, path).turns_new == 0, "nor where a hook names it"
    assert reading.read_guarded(reader.background.context, path, is_chosen=True).turns_new == 1, "but by import"


def test_every_assistants_own_transcripts_are_read(reader: Reader) -> None:
    for host, folder in reader.list_folders.items():
        shutil.copytree(DATA / host, folder)
    reader.machine.transcript(reader.machine.line("user", DECISION))
    assert reader.read() == {*HOSTS, "claude"}
