"""One call to the daemon over the socket, with a deadline.

Knows the socket and the frames; never the store. Errors say whether nobody is there
(DaemonUnreachable) or somebody refused (the daemon's own words).
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable
from csmd.paths import Paths, is_there

PATIENCE_S = 20.0
CONNECT_S = 2.0
#: What an assistant's start may be held up by the question whether all is well.
STATE_PATIENCE_S = 1.0


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
                raise CsmdError(state["error"], hint=state["hint"])
            if state["state"] == "done":
                return dict(state["result"])
            # Short work is looked at often, long work seldom.
            time.sleep(min(0.5, max(0.01, (time.monotonic() - started) / 20)))


def capture_state(paths: Paths) -> str:
    """One sentence when nothing is being remembered, for an assistant to read; "" when all is well.

    "" too where the user stopped the daemon on purpose, or it is just being restarted. Takes a second at most.
    """
    said = "csmd: memory is not being recorded: its daemon {} (csmd doctor says why)."
    try:
        endpoint(paths, within_s=STATE_PATIENCE_S / 4)
    except DaemonUnreachable:
        return "" if paths.stopped_mark.exists() else said.format("is not running; csmd start starts it")
    try:
        with _socket(paths, within_s=STATE_PATIENCE_S / 4) as ask:
            alarms = ask("csm_runtime_alarms", {}, STATE_PATIENCE_S / 2)["alarms"]
    except DaemonBusy:
        return ""
    except DaemonUnreachable:  # a busy machine is no alarm, unless a hook has waited in vain, too
        return said.format("does not answer; csmd restart helps") if paths.hung_mark.exists() else ""
    except CsmdError:
        return said.format("is of another version; csmd restart helps")
    return f"csmd: {alarms[0]['what']} ({alarms[0]['do']})." if alarms else ""


@contextmanager
def _socket(paths: Paths, *, within_s: float = CONNECT_S) -> Iterator[Callable[[str, dict[str, Any], float], Any]]:
    import zmq

    path = endpoint(paths, within_s=within_s)
    context = zmq.Context()
    dealer: zmq.Socket[bytes] = context.socket(zmq.DEALER)
    # Not IMMEDIATE: with it libzmq drops an answer that was received when its peer goes (as a stopping daemon does).
    dealer.setsockopt(zmq.LINGER, 0)
    lost = dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_CONNECT_RETRIED)
    poller = zmq.Poller()
    poller.register(dealer, zmq.POLLIN)
    poller.register(lost, zmq.POLLIN)
    try:
        dealer.connect(f"ipc://{path}")

        def ask(tool: str, params: dict[str, Any], patience_s: float) -> Any:
            request = wire.Request(
                id=os.urandom(16).hex(),
                verb="call",
                deadline_ms=int(patience_s * 1000),
                host="cli",
                name=tool,
                body=json.dumps(params, ensure_ascii=False).encode("utf-8", "replace"),
            )
            dealer.send_multipart(wire.encode_request(request))
            ready = poller.poll(int(patience_s * 1000))
            if ready and not dealer.poll(0):
                raise DaemonUnreachable("the daemon went away before it answered", hint="csmd start")
            if not ready:
                raise DaemonUnreachable(
                    f"the daemon does not answer within {patience_s:g} s", hint="`csmd restart`; its log may say why"
                )
            return _result(wire.decode_reply(dealer.recv_multipart()))

        yield ask
    finally:
        dealer.disable_monitor()
        lost.close(0)
        dealer.close()
        context.term()


def _result(reply: wire.Reply) -> Any:
    if reply.status == "ok":
        return wire.loads(reply.body or b"null")
    if reply.status == "retry":
        raise DaemonBusy("the daemon is stopping", hint="try again in a moment")
    if reply.status == "upgrade":
        raise CsmdError("the daemon is older than this command", hint="csmd upgrade")
    problem = wire.loads(reply.body or b"{}")
    raise CsmdError(str(problem.get("error", reply.status)), hint=str(problem.get("hint", "")))


def endpoint(paths: Paths, *, within_s: float = CONNECT_S) -> Path:
    """The running daemon's socket; DaemonUnreachable when there is none."""
    try:
        path = Path(paths.endpoint.read_text(encoding="utf-8").strip())
        # A daemon that was killed leaves its socket behind: this tells at once what zmq would try again and again.
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(within_s)
            probe.connect(str(path))
    except (OSError, ValueError):
        raise _nobody(paths) from None
    return path


def _stopped(paths: Paths) -> str:
    """That the daemon was stopped on purpose, by whom and when; "" where it was not."""
    try:
        by = paths.stopped_mark.read_text(encoding="utf-8", errors="replace").strip()[:80]
        at = datetime.fromtimestamp(paths.stopped_mark.stat().st_mtime).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OSError, ValueError, OverflowError):
        return ""
    return f": it was stopped on purpose{f' by {by}' if by else ''}, {at}"


def _nobody(paths: Paths) -> DaemonUnreachable:
    what = f"no csmd daemon is running for {paths.home}{_stopped(paths)}"
    if is_there(paths.install_record):
        return DaemonUnreachable(what, hint="csmd start")
    if is_there(paths.database) or is_there(paths.complaint):  # uninstalled, or a plugin has the hooks
        hint = "csmd install, or `csmd start` where a plugin brings the hooks"
        return DaemonUnreachable(f"{what}, and it is not installed", hint=hint)
    return DaemonUnreachable(f"csmd is not installed here ({paths.home})", hint="csmd install")
