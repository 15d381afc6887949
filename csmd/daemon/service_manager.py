"""Notifies the service manager, and watches that no part of the daemon is stuck."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from csmd.errors import Damaged, Refused
from csmd.store.core import Store

#: A write that takes longer than this is stuck.
WRITER_TIMEOUT_S = 600.0
#: How often the service manager is notified, as a share of its patience.
NOTIFY_SHARE = 1 / 4
#: How long the socket's thread may take to answer, as a share of it.
ANSWER_SHARE = 1 / 2


def notify_manager(address: str, *state: str) -> None:
    """Sends assignments to the service manager as sd_notify(3) does; does nothing if it is gone.

    `address` is its socket: a path, @ and an abstract name, or "" for none.
    """
    if address:
        target = "\0" + address[1:] if address.startswith("@") else address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.settimeout(1.0)
            out.connect(target)
            out.send("\n".join(state).encode("utf-8", "replace"))


@dataclass(slots=True)
class Part:
    """A thread that must not get stuck: `ping` makes it call back, within `patience_s`."""

    ping: Callable[[Callable[[], None]], None]
    patience_s: float
    asked_at: float | None = None
    """When the question that it has not answered was asked; monotonic."""

    def _note_answer(self) -> None:
        self.asked_at = None

    def is_stuck(self, now: float) -> bool:
        """Whether an answer is overdue; asks if no answer is due."""
        if self.asked_at is None:
            self.asked_at = now
            self.ping(self._note_answer)
        asked_at = self.asked_at  # it may have answered at once, on this thread or its own
        return asked_at is not None and now - asked_at > self.patience_s


def ping_writer(store: Store, answered: Callable[[], None]) -> None:
    """Makes the store's writer call back; a writer that refuses because of damage is not stuck."""
    try:
        store.submit(lambda _: None).add_done_callback(lambda _: answered())
    except Damaged:
        answered()
    except Refused:
        return  # its queue is full: it has not answered


class Watchdog(threading.Thread):
    """Owns the thread that notifies the service manager that csmd is alive, unless a part is stuck."""

    def __init__(self, address: str, patience_s: float, parts: Mapping[str, Part]) -> None:
        super().__init__(name="csmd-watchdog")
        self._address = address
        self._every_s = patience_s * NOTIFY_SHARE
        self._parts = parts
        self._stopping = threading.Event()

    def run(self) -> None:
        """Notifies the manager until `stop`."""
        self.step(time.monotonic())
        while not self._stopping.wait(self._every_s):
            self.step(time.monotonic())

    def step(self, now: float) -> str:
        """Notifies the manager at the monotonic time `now`; returns the names of the parts that are stuck."""
        stuck = ", ".join([name for name, part in self._parts.items() if part.is_stuck(now)])
        notify_manager(self._address, f"STATUS={stuck} is stuck" if stuck else "WATCHDOG=1")
        return stuck

    def stop(self) -> None:
        """Ends the thread and waits for it."""
        self._stopping.set()
        self.join()


def list_watched_parts(
    server: Callable[[Callable[[], None]], None], store: Store, patience_s: float
) -> dict[str, Part]:
    """Returns the parts of a daemon that must not get stuck, for a manager with this patience."""
    socket_thread = Part(server, patience_s * ANSWER_SHARE)
    return {"the socket's thread": socket_thread, "the writer": Part(partial(ping_writer, store), WRITER_TIMEOUT_S)}
