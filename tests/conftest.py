"""Guards around every test, and a machine of its own for those that want one.

No test touches the real home: without a chosen one csmd finds a place where nothing can be written.
No test leaves a thread behind, and none reaches a network: only unix sockets and 127.0.0.1 can be connected to.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# the test suite is not a package: its helpers are found by their folder, csmd itself as it is installed
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import Machine, temporary_directory

#: What csmd finds where no test has chosen a home: below a device nothing can be made.
NO_HOME = "/dev/null/no-home-was-chosen"
OWN_VARIABLES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CSMD_DISABLE")
LOCAL = ("127.0.0.1", "localhost")
THREAD_LIMIT_S = 10.0

# A machine that has much else to do is slow: no property fails by that.
hypothesis.settings.register_profile("csmd", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("csmd")
# What a shell starts in the background is deaf to ^C, and so would be what the tests start.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["CSMD_HOME"] = os.environ["CLAUDE_CONFIG_DIR"] = NO_HOME


def _refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: what Python code of this process asks of the network fails unless it stays on this machine."""
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        outside = isinstance(address, tuple) and address[0] != "127.0.0.1"
    elif event == "socket.getaddrinfo":
        address = arguments[0]
        outside = address not in (None, "", *LOCAL, *(name.encode() for name in LOCAL))
    else:
        return
    if outside:
        raise RuntimeError(f"the network is off in tests: {event} {address!r}")


sys.addaudithook(_refuse_network)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives each parallel worker its share of the long tests first: in one block they would keep one busy to the end."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    longest = [item for item in items if "tests/e2e/" in item.nodeid]
    others = [item for item in items if "tests/e2e/" not in item.nodeid]
    if workers > 1 and others:
        share = -(-len(others) // workers)
        items[:] = [
            item
            for worker in range(workers)
            for item in (*longest[worker::workers], *others[worker * share : (worker + 1) * share])
        ]


def pytest_collection_finish() -> None:
    """Spares the search for garbage the thousands of tests that stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def a_home_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """HOME, CSMD_HOME and CLAUDE_CONFIG_DIR in a directory of the test's own, short enough for sockets."""
    place = temporary_directory()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("CSMD_HOME", str(place / "csmd"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place / ".claude"))
    for name in OWN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield place
    shutil.rmtree(place)


@pytest.fixture(autouse=True)
def no_thread_is_left(a_home_of_its_own: Path) -> Iterator[None]:
    """Fails a test that leaves a thread running."""
    before = set(threading.enumerate())
    yield
    limit = time.monotonic() + THREAD_LIMIT_S
    while left := [thread for thread in threading.enumerate() if thread not in before]:
        assert time.monotonic() < limit, f"threads are left running: {[thread.name for thread in left]}"
        time.sleep(0.01)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A user's machine in a directory: csmd installed nowhere yet, no daemon; everything ends with the test."""
    made = Machine(root=temporary_directory())
    yield made
    made.end()


@pytest.fixture(scope="module")
def shared_machine() -> Iterator[Machine]:
    """One machine for all tests of a module that only look."""
    made = Machine(root=temporary_directory())
    yield made
    made.end()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the embedding model that the tests build."""
    import onnx_models

    return onnx_models.build_tiny(tmp_path_factory.mktemp("models") / "tiny")
