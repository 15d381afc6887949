"""Exchanges with the team's server while other work continues: one process at a time, and rests between.

Nothing waits for an exchange, least of all hooks: what has to be sent stays in the store, however long the server is
away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from csmd import machine
from csmd.daemon import curating
from csmd.daemon.context import Context, Task, Work, now_iso
from csmd.errors import BadInput, EmbeddingUnavailable, StoreError
from csmd.store import projects, team
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.store.team import TeamRow, Waiting
from csmd.team import sharing
from csmd.vocabulary import QUIET_S

log = logging.getLogger(__name__)
#: The rest before an exchange if something waits to be sent.
SOON_S = 3.0
#: The rest while sessions are active and shortly after.
AT_WORK_S = 60.0
#: The rest otherwise, and the longest after failures.
IDLE_S = 600.0
#: The rest after the first failure, which doubles with each further one.
FAILED_S = 20.0
#: How long the server has for a request that a client waits for.
ASKED_S = 30.0


class TeamExchange:
    """Owns the running exchange, and when the next one is due; the background thread steps it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._wait: Callable[[float], dict[str, Any] | None] | None = None
        self._sent: list[Waiting] = []
        self._received: list[dict[str, Any]] = []
        self._at, self._rest = float("-inf"), AT_WORK_S
        self._failures = 0
        self._is_leaving = False
        self._commits = -1
        self._joined: TeamRow | None = None
        self._waiting = 0

    def step(self, now: float) -> bool:
        """Begins an exchange if one is due, or stores what it received; returns whether anything changed here."""
        if self._received:
            return self._receive()
        return self._begin(now) if self._wait is None else self._end(now, self._wait)

    def _begin(self, now: float) -> bool:
        store = self._context.store
        if self._is_leaving or now - self._at < SOON_S:
            return False
        if store.commits != self._commits:  # if nothing was written, the store is not asked
            self._commits = store.commits
            self._joined, self._waiting = store.read(lambda rows: (team.find_team(rows), team.count_waiting(rows)))
        if self._joined is None or now - self._at < self._rest_s(now):
            return False
        order, self._sent = store.read(partial(sharing.compose_order, joined=self._joined))
        self._at = now
        self._wait = machine.start_in_thread(partial(sharing.speak, order))
        return False

    def _rest_s(self, now: float) -> float:
        if self._failures:
            return min(FAILED_S * 2.0 ** (self._failures - 1), IDLE_S)
        if self._waiting or self._rest < SOON_S:
            return SOON_S
        return AT_WORK_S if self._context.calm_s(now) < QUIET_S["team"] else IDLE_S

    def _end(self, now: float, wait: Callable[[float], dict[str, Any] | None]) -> bool:
        store = self._context.store
        try:
            answer = wait(0.0)
        except StoreError as error:
            self._wait, self._failures, self._at = None, self._failures + 1, now
            store.write(partial(team.record_failure, failure=error.what, at=now_iso()))
            return False
        if answer is None:
            return False
        self._wait, self._failures = None, 0
        self._rest = 0.0 if answer.get("more") else AT_WORK_S
        settling = partial(sharing.settle, answer=answer, sent=self._sent, now=now_iso())
        self._received = store.write(settling)
        return bool(self._received)

    def _receive(self) -> bool:
        """Stores some of what was received; not all at once, because a hook may wait for a write."""
        store = self._context.store
        done = store.write(partial(sharing.receive, changes=self._received, key=store.hash_key, now=now_iso()))
        self._received = self._received[done:]
        return True

    # --- requests that a client waits for

    def work(self, task: Task) -> Work:
        """Joins a server, leaves it, or searches it."""
        step = {"join": self._join, "leave": self._leave, "search": self._search}[str(task.order["do"])]
        return (yield from step(task.order))

    def _join(self, order: Mapping[str, Any]) -> Work:
        url, store = sharing.check_url(str(order["url"])), self._context.store
        current = store.read(team.find_team)
        if current is not None and current.url != url:
            raise BadInput(f"this home shares on {current.url}", hint="csmd team leave")
        yield {"step": "joining"}
        answer = yield from _ask({"do": "join", "url": url})
        joined = TeamRow(
            url=url, author=answer["author"], epoch=answer["epoch"], joined_at=now_iso(), reached_at=now_iso()
        )
        store.write(lambda rows: team.join_server(rows, joined))
        return {"url": url, "author": joined.author, "is_new": answer["is_new"]}

    def _leave(self, order: Mapping[str, Any]) -> Work:
        """Removes the shared memories from the server, unless they are to stay, and forgets the server.

        A running exchange ends first: it would upload again what was removed.
        """
        store, removed = self._context.store, 0
        joined = _joined_team(store)
        self._is_leaving = True
        try:
            while self._wait is not None:
                self._end(time.monotonic(), self._wait)
                time.sleep(curating.LOOK_S)
                yield {"step": "ending an exchange"}
            if not order["keep"]:
                yield {"step": "taking what is shared off the server"}
                removed = (yield from _ask({"do": "leave", "url": joined.url}))["removed"]
            self._received = []
            store.write(team.leave_server)
        except StoreError as error:
            raise StoreError(error.what, hint="`csmd team leave --keep` leaves what is shared where it is") from error
        finally:
            self._is_leaving = False
        return {"url": joined.url, "removed": removed}

    def _search(self, order: Mapping[str, Any]) -> Work:
        context = self._context
        joined, query = _joined_team(context.store), str(order["query"])
        yield {"step": "asking the team's server"}
        model, vector = context.model_name() or "", b""
        if model:
            try:
                vector = context.embedder.embed([query], deadline_s=ASKED_S, start=True)[0]
            except EmbeddingUnavailable:
                log.info("the team's server is searched by words alone: no vector was made")
        search = sharing.search_order(
            joined, query, wall=str(order["wall"]), model=model, vector=vector, limit=int(order["limit"])
        )
        return {"query": query, "hits": (yield from _ask(search))["hits"]}


def _ask(order: Mapping[str, Any]) -> Generator[None, None, dict[str, Any]]:
    return (yield from curating.in_thread(partial(sharing.speak, order, limit_s=ASKED_S)))


def _joined_team(store: Store) -> TeamRow:
    joined = store.read(team.find_team)
    if joined is None:
        raise BadInput("this home has joined no team", hint="csmd team join postgresql://NAME@HOST/DATABASE")
    return joined


def describe(rows: Rows) -> dict[str, Any] | None:
    """The team part of `csmd status`; None if none was joined."""
    joined = team.find_team(rows)
    if joined is None:
        return None
    return {
        "url": joined.url, "author": joined.author, "joined_at": joined.joined_at, "reached_at": joined.reached_at,
        "failing_since": joined.failing_since, "failure": joined.failure, "waiting": team.count_waiting(rows),
        "shares": [
            {"project": projects.name_of(rows, share.project_seq), "name": share.name, "readers": share.readers}
            for share in team.list_shares(rows)
        ],
        "received": [
            {"author": author, "project": projects.name_of(rows, project), "memories": count}
            for author, project, count in team.received_counts(rows)
        ],
    }  # fmt: skip
