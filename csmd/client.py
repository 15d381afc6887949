"""The command line's side of the socket: one call, one answer, with a deadline.

Knows the socket and the frames; never the store. Errors say whether nobody is there
(DaemonUnreachable) or somebody refused (the daemon's own words).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.config import Paths
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable

PATIENCE_S = 20.0
POLL_S = 0.1


def call(paths: Paths, tool: str, params: dict[str, Any] | None = None, *, patience_s: float = PATIENCE_S) -> Any:
    """Asks the daemon one thing and gives its decoded answer."""
    with _socket(paths) as ask:
        return ask(tool, params or {}, patience_s)


def work(paths: Paths, tool: str, params: dict[str, Any], *, watch: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Starts a job and waits for its end, showing its progress; CsmdError when it failed."""
    started = time.monotonic()
    with _socket(paths) as ask:
        job = ask(tool, params, PATIENCE_S)["job"]
        while True:
            state = ask("csm_job", {"id": job}, PATIENCE_S)
            watch(state["progress"])
            if state["state"] == "failed":
                raise CsmdError(state["error"])
            if state["state"] == "done":
                return dict(state["result"])
            # Short work is looked at often, long work seldom.
            time.sleep(min(0.5, max(0.01, (time.monotonic() - started) / 20)))


@contextmanager
def _socket(paths: Paths) -> Iterator[Callable[[str, dict[str, Any], float], Any]]:
    import zmq

    path = endpoint(paths)
    context = zmq.Context()
    dealer: zmq.Socket[bytes] = context.socket(zmq.DEALER)
    dealer.setsockopt(zmq.LINGER, 0)
    dealer.setsockopt(zmq.IMMEDIATE, 1)
    try:
        dealer.connect(f"ipc://{path}")

        def ask(tool: str, params: dict[str, Any], patience_s: float) -> Any:
            request = wire.Request(
                id=secrets.token_hex(16),
                verb="call",
                deadline_ms=int(patience_s * 1000),
                host="cli",
                name=tool,
                body=json.dumps(params, ensure_ascii=False).encode("utf-8", "replace"),
            )
            if not dealer.poll(2000, zmq.POLLOUT):
                raise _nobody(paths)
            dealer.send_multipart(wire.encode_request(request))
            if not dealer.poll(int(patience_s * 1000)):
                raise DaemonUnreachable(
                    f"the daemon does not answer within {patience_s:g} s", hint="`csmd restart`; its log may say why"
                )
            return _result(wire.decode_reply(dealer.recv_multipart()))

        yield ask
    finally:
        dealer.close()
        context.term()


def _result(reply: wire.Reply) -> Any:
    if reply.status == "ok":
        return wire.loads(reply.body or b"null")
    if reply.status == "retry":
        raise DaemonBusy("the daemon is stopping", hint="try again in a moment")
    if reply.status == "upgrade":
        raise CsmdError("the daemon is older than this command", hint="csmd restart")
    problem = wire.loads(reply.body or b"{}")
    raise CsmdError(str(problem.get("error", reply.status)), hint=str(problem.get("hint", "")))


def endpoint(paths: Paths) -> Path:
    """The running daemon's socket; DaemonUnreachable when there is none."""
    try:
        path = Path(paths.endpoint.read_text(encoding="utf-8").strip())
    except OSError:
        raise _nobody(paths) from None
    if not path.is_socket():
        raise _nobody(paths)
    return path


def _nobody(paths: Paths) -> DaemonUnreachable:
    return DaemonUnreachable(f"no csmd daemon is running for {paths.home}", hint="csmd start")
