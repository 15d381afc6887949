"""Requests whose answer is not ready yet, each answered once; a hook is sent off before it leaves by itself.

A hook without an answer takes the daemon for hung, and hooks are then silent for a while. So one that is about to leave
is told how it stands: what is stored is acknowledged, what is not it is to spool; a replay is known by its id.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from csmd.store.core import Precedence
from csmd.wire import Reply, Request

#: A hook is sent off so long before its deadline.
LAST_S = 0.008


@dataclass(slots=True)
class Waiting:
    """A request whose answer is not ready yet; `until` is monotonic, `stored` says that its event is on the disk."""

    identity: bytes
    request: Request
    until: float
    stored: bool = False
    answered: bool = False


class WaitingRoom:
    """Owns who waits; for the socket's thread alone. The background gives way while a hook is inside."""

    def __init__(self, send: Callable[[bytes, Reply], None], precedence: Precedence) -> None:
        self._send = send
        self._precedence = precedence
        self._inside: dict[int, Waiting] = {}
        self._next_leaves = math.inf

    def __len__(self) -> int:
        return len(self._inside)

    def take_in(self, waiting: Waiting) -> None:
        """Has a request wait, unless it was answered already."""
        if not waiting.answered:
            self._inside[id(waiting)] = waiting
            if waiting.request.verb == "event":
                self._precedence.say(answering=True)

    def answer(self, waiting: Waiting, reply: Reply) -> None:
        """Sends a request its one answer; one that is made after a hook was sent off goes nowhere."""
        self._inside.pop(id(waiting), None)
        if not waiting.answered:
            waiting.answered = True
            self._send(waiting.identity, reply)
            if waiting.request.verb == "event":
                self._precedence.say(answering=any(one.request.verb == "event" for one in self._inside.values()))

    def patience_ms(self) -> int | None:
        """Until the first hook has to be sent off; None while none waits."""
        hooks = [one.until for one in self._inside.values() if one.request.verb == "event"]
        self._next_leaves = min(hooks, default=math.inf) - LAST_S
        return max(0, math.ceil((self._next_leaves - time.monotonic()) * 1000)) if hooks else None

    def send_off(self, now: float) -> None:
        """Answers the hooks that are about to leave at the monotonic time `now`."""
        if now < self._next_leaves:
            return
        for waiting in list(self._inside.values()):
            if waiting.request.verb == "event" and now >= waiting.until - LAST_S:
                self.answer(waiting, Reply(status="ok" if waiting.stored else "retry"))

    def turn_away(self) -> None:
        """Answers everybody with `retry`."""
        for waiting in list(self._inside.values()):
            self.answer(waiting, Reply(status="retry"))
