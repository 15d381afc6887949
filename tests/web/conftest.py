"""Viewers that end with a test or a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from machine import Machine
from viewer_process import Opens, Viewer, end_viewer, open_viewer


@pytest.fixture
def opened() -> Iterator[Opens]:
    """Opens viewers that end with the test."""
    viewers: list[Viewer] = []

    def start(machine: Machine, *, enters: bool = True, **constants: float) -> Viewer:
        viewers.append(open_viewer(machine, **constants))
        if enters:
            assert viewers[-1].enter().status == 303
        return viewers[-1]

    yield start
    for viewer in viewers:
        end_viewer(viewer)


@pytest.fixture(scope="module")
def closed_viewer(shared_machine: Machine) -> Iterator[Viewer]:
    """A viewer of a machine without a daemon, for what is answered before a daemon is asked."""
    viewer = open_viewer(shared_machine)
    yield viewer
    end_viewer(viewer)
