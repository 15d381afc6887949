"""What the service manager hears: ready, alive, ending. Without one every word goes nowhere.

Alive means that what hooks wait for makes progress: the socket's thread answers at once, the
writer within minutes (a purge or a migration of indexes is one long write). The steward, the
watcher and the worker may be busy for hours, or wait for a far-away disk: nobody waits for them.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from csmd.errors import Damaged, Refused
from csmd.store.core import Store

#: A write that takes longer than this is no write any more.
WRITER_PATIENCE_S = 600.0
#: Of the manager's patience: how often it is told, and how long the socket's thread may take to answer.
TELL, ANSWER = 1 / 4, 1 / 2


@dataclass(frozen=True, slots=True)
class Notify:
    """The manager's socket (a path, or @ and an abstract name); "" for none."""

    address: str

    def tell(self, *state: str) -> None:
        """Sends assignments as sd_notify(3) has them; a manager that is gone hears nothing, and that harms nobody."""
        if not self.address:
            return
        place = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.settimeout(1.0)
            out.connect(place)
            out.send("\n".join(state).encode("utf-8", "replace"))


@dataclass(slots=True)
class Part:
    """Something that must not stand still: `ask` has it call back, `patience_s` is how long that may take."""

    ask: Callable[[Callable[[], None]], None]
    patience_s: float
    asked_at: float | None = None
    """When the question that is still open was put; monotonic."""

    def _answered(self) -> None:
        self.asked_at = None

    def stands_still(self, now: float) -> bool:
        """Whether the open question is older than it may be; where none is open, one is put."""
        if self.asked_at is None:
            self.asked_at = now
            self.ask(self._answered)
        # It may have answered at once, on this thread or its own.
        since = self.asked_at
        return since is not None and now - since > self.patience_s


def ask_writer(store: Store, answered: Callable[[], None]) -> None:
    """Has the store's writer call back when it comes by; one that refuses for damage is as it should be."""
    try:
        store.submit(lambda _: None).add_done_callback(lambda _: answered())
    except Damaged:
        answered()
    except Refused:
        return  # its queue is full: asked already, and not answered


class Watchdog(threading.Thread):
    """Owns the thread that tells the manager every few seconds that csmd is alive, as long as every part is."""

    def __init__(self, notify: Notify, patience_s: float, parts: Mapping[str, Part]) -> None:
        super().__init__(name="csmd-watchdog")
        self._notify = notify
        self._every_s = patience_s * TELL
        self._parts = parts
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            self.step(time.monotonic())
            self._stopping.wait(self._every_s)

    def step(self, now: float) -> str:
        """Tells the manager what is so at the monotonic time `now`; the parts that stand still, by name."""
        stuck = ", ".join([name for name, part in self._parts.items() if part.stands_still(now)])
        self._notify.tell(f"STATUS={stuck} stands still" if stuck else "WATCHDOG=1")
        return stuck

    def stop(self) -> None:
        """Ends the thread and waits for it."""
        self._stopping.set()
        self.join()


def watching(
    notify: Notify, patience_s: float, *, server: Callable[[Callable[[], None]], None], store: Store
) -> Watchdog:
    """The watchdog of a daemon, for a manager of that patience; not yet started."""
    return Watchdog(
        notify,
        patience_s,
        {
            "the socket's thread": Part(server, patience_s * ANSWER),
            "the writer": Part(lambda answered: ask_writer(store, answered), WRITER_PATIENCE_S),
        },
    )
