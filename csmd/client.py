"""Calls the daemon over its socket, with a deadline.

DaemonUnreachable if no daemon answers, CsmdError with the daemon's words if it refuses.
"""

from __future__ import annotations

import _socket
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable
from csmd.paths import Paths, is_there

PATIENCE_S = 20.0
CONNECT_S = 2.0
#: Seconds that an assistant's start may wait for the state of csmd.
STATE_PATIENCE_S = 1.0
Json = dict[str, Any]


def call(paths: Paths, tool: str, params: Json | None = None, *, patience_s: float = PATIENCE_S) -> Any:
    """Calls a tool of the daemon and returns its decoded answer."""
    with _connected(paths) as ask:
        return ask(tool, params or {}, patience_s)


def run_job(paths: Paths, tool: str, params: Json, *, watch: Callable[[Json], None]) -> Json:
    """Starts a job and waits for its end; CsmdError if it fails.

    `watch` is called with {} before the job is requested, and then with the job's progress.
    """
    started = time.monotonic()
    with _connected(paths) as ask:
        watch({})
        job = ask(tool, params, PATIENCE_S)["job"]
        while True:
            state = ask("csm_job", {"id": job}, PATIENCE_S)
            watch(state["progress"])
            if state["state"] == "failed":
                raise CsmdError(state["error"], hint=state["hint"])
            if state["state"] == "done":
                return dict(state["result"])
            # Polls short work often, long work seldom.
            time.sleep(min(0.5, max(0.01, (time.monotonic() - started) / 20)))


def capture_state(paths: Paths) -> str:
    """Returns a sentence for an assistant if nothing is being recorded; "" if all is well.

    Also "" if the user stopped the daemon, or it is being restarted. Takes a second at most.
    """
    notice = "csmd: memory is not being recorded: its daemon {} (csmd doctor says why)."
    try:
        endpoint(paths, within_s=STATE_PATIENCE_S / 4)
    except DaemonUnreachable:
        waits = is_there(paths.waits_mark)
        state = "waits for the key of its database" if waits else "is not running; csmd start starts it"
        return "" if paths.stopped_mark.exists() else notice.format(state)
    try:
        with _connected(paths, within_s=STATE_PATIENCE_S / 4) as ask:
            alarms = ask("csm_runtime_alarms", {}, STATE_PATIENCE_S / 2)["alarms"]
    except DaemonBusy:
        return ""
    except DaemonUnreachable:  # a busy machine is not an alarm, unless a hook has waited in vain as well
        return notice.format("does not answer; csmd restart helps") if paths.hung_mark.exists() else ""
    except CsmdError:
        return notice.format("is of another version; csmd restart helps")
    return f"csmd: {alarms[0]['what']} ({alarms[0]['do']})." if alarms else ""


#: ZMTP 3.0 with mechanism NULL, as a DEALER (docs/protocol.md): importing pyzmq takes as long as the rest of a command.
GREETING = b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL" + bytes(48)
READY = b"\4\x1c\5READY\x0bSocket-Type\0\0\0\6DEALER"
#: Flag of a frame: more frames of the message follow.
MORE = 1
#: Flag of a frame: its length takes eight bytes.
LONG = 2
#: Flag of a frame: it is a command, not part of a message.
COMMAND = 4


@contextmanager
def _connected(paths: Paths, *, within_s: float = CONNECT_S) -> Iterator[Callable[[str, Json, float], Any]]:
    with closing(_connect(paths, within_s)) as connection:
        peer = _Peer(connection)

        def ask(tool: str, params: Json, patience_s: float) -> Any:
            body = json.dumps(params, ensure_ascii=False).encode("utf-8", "replace")
            request = wire.Request(
                id=os.urandom(16).hex(), verb="call", deadline_ms=int(patience_s * 1000), host="cli", name=tool, body=body,
            )  # fmt: skip
            try:
                frames = peer.ask(wire.encode_request(request), time.monotonic() + patience_s)
            except TimeoutError:
                hint = "`csmd restart`; its log may say why"
                raise DaemonUnreachable(f"the daemon does not answer within {patience_s:g} s", hint=hint) from None
            except OSError:
                raise DaemonUnreachable("the daemon went away before it answered", hint="csmd start") from None
            return _result(wire.decode_reply(frames))

        yield ask


class _Peer:
    """Owns the state of a connection: whether the handshake is done, and bytes read ahead."""

    def __init__(self, connection: _socket.socket) -> None:
        self._connection = connection
        self._has_greeted = False
        self._ahead = bytearray()

    def ask(self, frames: Sequence[bytes], until: float) -> list[bytes]:
        """Sends a request and returns the frames of its answer.

        TimeoutError after the monotonic time `until`, OSError if the connection ends.
        """
        head = b""
        if not self._has_greeted:
            self._send(GREETING, until)
            # Waits before it sends more, since libzmq drops a peer that runs ahead of its greeting.
            self._take(len(GREETING), until)
            self._has_greeted, head = True, READY
        *others, last = (len(frame).to_bytes(8, "big") + frame for frame in frames)
        message = [bytes([LONG | MORE]) + frame for frame in others]
        self._send(b"".join([head, *message, bytes([LONG]), last]), until)
        answer, more = list[bytes](), True
        while more:
            flags = self._take(1, until)[0]
            size = int.from_bytes(self._take(8 if flags & LONG else 1, until), "big")
            part = self._take(size, until)
            if not flags & COMMAND:  # READY or PING, not part of the answer
                answer.append(part)
                more = bool(flags & MORE)
        return answer

    def _send(self, data: bytes, until: float) -> None:
        self._connection.settimeout(_seconds_left(until))
        self._connection.sendall(data)

    def _take(self, count: int, until: float) -> bytes:
        while len(self._ahead) < count:
            self._connection.settimeout(_seconds_left(until))
            part = self._connection.recv(1 << 20)
            if not part:
                raise ConnectionResetError
            self._ahead += part
        data = bytes(self._ahead[:count])
        del self._ahead[:count]
        return data


def _seconds_left(until: float) -> float:
    if (remaining_s := until - time.monotonic()) <= 0:
        raise TimeoutError
    return remaining_s


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
    """Returns the path of the running daemon's socket; DaemonUnreachable for none."""
    with closing(_connect(paths, within_s)) as connection:
        return Path(str(connection.getpeername()))


def _connect(paths: Paths, within_s: float) -> _socket.socket:
    """Connects to the daemon's socket; DaemonUnreachable if no process listens there."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(within_s)
        connection.connect(paths.endpoint.read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        connection.close()
        raise _explain_absence(paths) from None
    return connection


def _explain_stop(paths: Paths) -> str:
    """Explains that the daemon was stopped on purpose, by whom and when; "" if it was not."""
    try:
        by = paths.stopped_mark.read_text(encoding="utf-8", errors="replace").strip()[:80]
        stopped_at = datetime.fromtimestamp(paths.stopped_mark.stat().st_mtime).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OSError, ValueError, OverflowError):
        return ""
    return f": it was stopped on purpose{f' by {by}' if by else ''}, {stopped_at}"


def _explain_absence(paths: Paths) -> DaemonUnreachable:
    what = f"no csmd daemon is running for {paths.home}{_explain_stop(paths)}"
    if is_there(paths.install_record):
        return DaemonUnreachable(what, hint="csmd start")
    if is_there(paths.database) or is_there(paths.complaint):  # after an uninstall, or with the hooks in a plugin
        hint = "csmd install, or `csmd start` if a plugin brings the hooks"
        return DaemonUnreachable(f"{what}, and it is not installed", hint=hint)
    return DaemonUnreachable(f"csmd is not installed here ({paths.home})", hint="csmd install")
