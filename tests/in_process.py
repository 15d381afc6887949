"""The parts of a daemon in the test's own process, for what a process of its own would not let a test hold still."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from machine import Machine

from csmd.config import child_environment
from csmd.daemon.context import now_iso
from csmd.daemon.jobs import Background
from csmd.daemon.server import Server, call_tool
from csmd.embedding import installed_models
from csmd.embedding.worker_client import Embedder
from csmd.store import files
from csmd.store.core import Store, run_to_end
from csmd.tools.declaration import ToolContext
from csmd.tools.registry import find_tool

#: A monotonic time at which a test steps.
START = 1000.0


@dataclass(kw_only=True)
class Parts:
    """A store, background parts that are stepped by hand, and on demand a server."""

    machine: Machine
    store: Store
    embedder: Embedder
    background: Background
    tools: ToolContext
    path: Path
    ended: threading.Event = field(default_factory=threading.Event)
    servers: list[Server] = field(default_factory=list)

    def serve(self, *, status: Callable[[Any], Any] = lambda rows: {}, expect_failure: bool = False) -> Server:
        """A server that listens."""
        self.tools = replace(self.tools, status=status)
        made = Server(self.path, self.background, self.tools, ended=self.ended.set)
        self.servers.append(made)
        made.start()
        assert made.ready.wait(30)
        assert bool(made.failure) == expect_failure, made.failure
        return made

    def call(self, tool: str, **params: Any) -> Any:
        """A tool's answer, as the server makes it."""
        lane = find_tool(tool).lane

        def call(rows: Any) -> Any:
            return run_to_end(call_tool(self.tools, self.background.context.lookups, rows, tool, params))

        return call(None) if lane is None else self.store.read(call, lane=lane)


@pytest.fixture
def parts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    """The parts in a new home; a step of the background is one batch, however fast the machine is."""
    monkeypatch.setattr("csmd.daemon.tasks.SLICE_S", 0.0)
    monkeypatch.setattr("csmd.daemon.reading.SLICE_S", 0.0)
    monkeypatch.setattr("csmd.daemon.stages.SLICE_S", 0.0)
    monkeypatch.setattr("csmd.daemon.jobs.MAX_DREAM_S", 0.0)
    monkeypatch.setattr("csmd.store.core.BRIEF_RUN_S", 0.0)
    paths, config = machine.paths, machine.config()
    for folder in (paths.home, paths.run_dir, paths.spool, paths.models):
        files.make_private(folder)
    store = Store(paths.database, now=now_iso())
    installed = installed_models.installed_model(paths.models, config.settings.embed_model)
    embedder = Embedder(installed, idle_s=60, environment=child_environment())
    background = Background(store, config, embedder)
    tools = background.tool_context(lambda rows, own: {})
    made = Parts(
        machine=machine,
        store=store,
        embedder=embedder,
        background=background,
        tools=tools,
        path=paths.run_dir / "t.sock",
    )
    yield made
    for server in made.servers:
        server.stop()
        server.join(30)
    made.background.tasks.close()
    made.background.dreaming.close()
    embedder.close()
    store.close()


def settle(parts: Any, now: float = START) -> None:
    """Steps at a monotonic time until nothing is due."""
    for _ in range(2000):
        if not parts.background.step(now):
            return
    raise AssertionError("there is no end of work")


def say(parts: Any, place: Path, *words: str, session: str = "s1") -> None:
    """A transcript in which the user says these things in a directory, taken in and believed."""
    place.mkdir(parents=True, exist_ok=True)
    lines = [parts.machine.line("user", text, session=session, cwd=str(place)) for text in words]
    lines.append(parts.machine.line("assistant", "It is done.", session=session, cwd=str(place)))
    parts.machine.transcript(*lines, session=session)
    ident = parts.call("csm_sync", vectors=False)["job"]
    for _ in range(500):
        parts.background.step(START)
        if parts.background.context.tasks[ident].state in ("done", "failed"):
            break
    assert parts.background.context.tasks[ident].state == "done"
