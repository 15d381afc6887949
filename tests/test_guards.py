"""The guards of tests/conftest.py fail the tests that break their rules."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from csmd.config import assistant_dir, default_paths

TESTS = Path(__file__).resolve().parent
PLANTED = """
import os, pathlib, socket, threading
import pytest
from csmd.config import assistant_dir, default_paths

@pytest.fixture(scope="session")
def too_early():
    default_paths().home.mkdir(parents=True)

def test_nobody_chose_a_home(too_early):
    pass

def test_a_thread_is_left():
    go_on.clear()
    threading.Thread(target=go_on.wait, name="the left one").start()

def test_the_network_is_asked():
    with socket.socket() as one:
        one.settimeout(1)
        one.connect(("192.0.2.1", 80))

def test_a_name_is_looked_up():
    socket.getaddrinfo("example.org", 80)

def test_all_is_well():
    go_on.set()
    assert default_paths().home.parent == assistant_dir().parent == pathlib.Path.home()
    with socket.socket() as server, socket.socket() as one:
        server.bind(("127.0.0.1", 0))
        server.listen()
        one.connect(server.getsockname())

go_on = threading.Event()
"""


def test_the_guards_catch_what_is_planted(tmp_path: Path) -> None:
    for name in ("conftest.py", "machine.py", "forked_process.py"):
        shutil.copy(TESTS / name, tmp_path)
    text = (tmp_path / "conftest.py").read_text().replace("THREAD_LIMIT_S = 10.0", "THREAD_LIMIT_S = 0.1")
    (tmp_path / "conftest.py").write_text(text)
    (tmp_path / "test_planted.py").write_text(PLANTED)
    # Without the options and the workers of the run that this test is in.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-p", "no:xdist",
         "--import-mode=importlib", str(tmp_path)],
        cwd=tmp_path, env={**environment, "PYTHONPATH": str(TESTS.parent)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    outcome = {
        line.split()[1].rpartition("::")[2]: line.split()[0]
        for line in done.stdout.splitlines()
        if "::test_" in line and line.split()[0].isupper()
    }
    assert outcome == {
        "test_nobody_chose_a_home": "ERROR",
        "test_a_thread_is_left": "ERROR",
        "test_the_network_is_asked": "FAILED",
        "test_a_name_is_looked_up": "FAILED",
        "test_all_is_well": "PASSED",
    }, done.stdout
    assert "the left one" in done.stdout and "the network is off" in done.stdout


def test_every_test_has_a_home_of_its_own(a_home_of_its_own: Path) -> None:
    assert default_paths().home == a_home_of_its_own / "csmd"
    assert (assistant_dir(), Path.home()) == (a_home_of_its_own / ".claude", a_home_of_its_own)
    assert len(str(a_home_of_its_own)) < 30


def test_the_network_is_off_here() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram,
        pytest.raises(RuntimeError, match="network is off"),
    ):
        datagram.sendto(b"x", ("192.0.2.1", 9))
