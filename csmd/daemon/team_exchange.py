"""Exchanges with the team's server while other work continues: one process at a time, and rests between.

No hook waits for an exchange: unsent changes stay in the store while the server is unreachable.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from csmd import machine
from csmd.daemon.context import Context, Task, Work, now_iso
from csmd.daemon.task_steps import POLL_S, run_in_thread
from csmd.errors import BadInput, EmbeddingUnavailable, StoreError
from csmd.store import projects, team
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.store.team import TeamRow, Waiting
from csmd.team import sharing
from csmd.vocabulary import QUIET_S

log = logging.getLogger(__name__)
#: The rest before an exchange if something waits to be sent.
SEND_REST_S = 3.0
#: The rest while sessions are active and shortly after.
ACTIVE_REST_S = 60.0
#: The rest otherwise, and the longest after failures.
IDLE_REST_S = 600.0
#: The rest after the first failure, which doubles with each further one.
RETRY_S = 20.0
#: How long the server has for a request that a client waits for.
REQUEST_TIMEOUT_S = 30.0


class TeamExchange:
    """Owns the running exchange, and when the next one is due; the background thread steps it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._poll: Callable[[float], dict[str, Any] | None] | None = None
        self._sent: list[Waiting] = []
        self._received: list[dict[str, Any]] = []
        self._last_exchange = float("-inf")
        self._has_more = False
        """Whether the server has further changes, which are fetched after a short rest."""
        self._failures = 0
        self._is_leaving = False
        self._commits = -1
        self._joined: TeamRow | None = None
        self._unsent = 0

    def step(self, now: float) -> bool:
        """Begins an exchange if one is due, or stores received changes; returns whether the store changed."""
        if self._received:
            return self._receive()
        return self._begin(now) if self._poll is None else self._end(now, self._poll)

    def _begin(self, now: float) -> bool:
        store = self._context.store
        if self._is_leaving or now - self._last_exchange < SEND_REST_S:
            return False
        if store.commits != self._commits:  # if nothing was written, the store is not asked
            self._commits = store.commits
            self._joined, self._unsent = store.read(lambda rows: (team.find_team(rows), team.count_waiting(rows)))
        if self._joined is None or now - self._last_exchange < self._rest_s(now):
            return False
        order, self._sent = store.read(partial(sharing.compose_order, membership=self._joined))
        self._last_exchange = now
        self._poll = machine.start_in_thread(partial(sharing.run_exchange, order))
        return False

    def _rest_s(self, now: float) -> float:
        if self._failures:
            return min(RETRY_S * 2.0 ** (self._failures - 1), IDLE_REST_S)
        if self._unsent or self._has_more:
            return SEND_REST_S
        return ACTIVE_REST_S if self._context.calm_s(now) < QUIET_S["team"] else IDLE_REST_S

    def _end(self, now: float, poll: Callable[[float], dict[str, Any] | None]) -> bool:
        store = self._context.store
        try:
            answer = poll(0.0)
        except StoreError as error:
            self._poll, self._failures, self._last_exchange = None, self._failures + 1, now
            store.write(partial(team.record_failure, failure=error.what, at=now_iso()))
            return False
        if answer is None:
            return False
        self._poll, self._failures = None, 0
        self._has_more = bool(answer.get("more"))
        settling = partial(sharing.record_exchange, answer=answer, sent=self._sent, now=now_iso())
        self._received = store.write(settling)
        return bool(self._received)

    def _receive(self) -> bool:
        """Stores some of the received changes; not all at once, because a hook may wait for a write."""
        store = self._context.store
        stored = store.write(partial(sharing.receive, changes=self._received, key=store.hash_key, now=now_iso()))
        self._received = self._received[stored:]
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
            raise BadInput(f"already joined to {current.url}", hint="csmd team leave")
        yield {"step": "joining"}
        answer = yield from _request({"do": "join", "url": url})
        now = now_iso()
        joined = TeamRow(url=url, author=answer["author"], epoch=answer["epoch"], joined_at=now, reached_at=now)
        store.write(lambda rows: team.join_server(rows, joined))
        return {"url": url, "author": joined.author, "is_new": answer["is_new"]}

    def _leave(self, order: Mapping[str, Any]) -> Work:
        """Deletes the shared memories from the server unless `keep` is set, and forgets the server.

        A running exchange ends first, because it would upload the deleted memories again.
        """
        store, removed = self._context.store, 0
        joined = _require_team(store)
        self._is_leaving = True
        try:
            while self._poll is not None:
                self._end(time.monotonic(), self._poll)
                time.sleep(POLL_S)
                yield {"step": "ending an exchange"}
            if not order["keep"]:
                yield {"step": "deleting shared memories from the server"}
                removed = (yield from _request({"do": "leave", "url": joined.url}))["removed"]
            self._received = []
            store.write(team.leave_server)
        except StoreError as error:
            raise StoreError(error.what, hint="`csmd team leave --keep` keeps shared memories on the server") from error
        finally:
            self._is_leaving = False
        return {"url": joined.url, "removed": removed}

    def _search(self, order: Mapping[str, Any]) -> Work:
        context = self._context
        joined, query = _require_team(context.store), str(order["query"])
        yield {"step": "asking the team's server"}
        model, vector = context.model_name() or "", b""
        if model:
            try:
                vector = context.embedder.embed([query], deadline_s=REQUEST_TIMEOUT_S, start=True)[0]
            except EmbeddingUnavailable:
                log.info("searching the team server by words only: no vector is available")
        wall, limit = str(order["wall"]), int(order["limit"])
        search = sharing.search_order(joined, query, wall=wall, model=model, vector=vector, limit=limit)
        return {"query": query, "hits": (yield from _request(search))["hits"]}


def _request(order: Mapping[str, Any]) -> Generator[None, None, dict[str, Any]]:
    return (yield from run_in_thread(partial(sharing.run_exchange, order, limit_s=REQUEST_TIMEOUT_S)))


def _require_team(store: Store) -> TeamRow:
    joined = store.read(team.find_team)
    if joined is None:
        raise BadInput("this home has joined no team", hint="csmd team join postgresql://NAME@HOST/DATABASE")
    return joined


def describe_team(rows: Rows) -> dict[str, Any] | None:
    """Returns the team part of `csmd status`; None if none was joined."""
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
            for author, project, count in team.count_received(rows)
        ],
    }  # fmt: skip
