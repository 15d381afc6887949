"""Hands an event to the daemon and prints its answer; never fails (docs/hooks.md, docs/protocol.md)."""
# Compiled at every run on a bare interpreter (-I -S), so it is short and has no slow import. Rare cases: csmd_spool.

import _socket
import posix
import sys
import time

STARTED, INPUT_LIMIT, PATIENCE_S, INJECTING_PATIENCE_S, FAIR_CHANCE_S = time.monotonic(), 32 << 20, 0.5, 0.18, 0.1
INJECTING = ("SessionStart", "UserPromptSubmit", "PreCompact", "PostToolUseFailure")  # by docs/generate.py
# ZMTP 3.0 with NULL and DEALER is written out here because importing pyzmq takes 35 ms.
GREETING, READY = b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL" + bytes(48), b"\4\x1c\5READY\x0bSocket-Type\0\0\0\6DEALER"


def rare():
    sys.path.insert(0, sys.argv[0].rpartition("/")[0])
    return __import__("csmd_spool")


def read_input():
    body = bytearray()
    try:
        posix.set_blocking(0, False)
        while len(body) <= INPUT_LIMIT and (part := posix.read(0, 65536)):
            body += part
    except BlockingIOError:  # the assistant is still writing
        rare().read_on(body, INPUT_LIMIT, STARTED)
    return body if len(body) <= INPUT_LIMIT else b""


def ask(path, ident, host, event, body, patience, deadline):
    def within(call, argument):  # one deadline for the whole exchange, not for each call
        # After the deadline, data that arrived while the machine was busy is still read: without waiting, a few times.
        sock.settimeout(left if (left := deadline - time.monotonic()) > 0 else 0.0 * next(late))
        return call(argument)

    def take(count, data=b""):
        while len(data) < count:
            part = within(sock.recv, min(count - len(data), 65536))
            if not part: raise EOFError  # fmt: skip
            data += part
        return data

    head = b"1", ident.encode(), b"event", b"%d" % (patience * 1000), host.encode(), event.encode()
    frames = b"".join(b"\1%c%b" % (len(part), part) for part in head)
    sock, answer, more, late = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM), [], 1, iter(range(32))
    within(sock.connect, path)
    within(sock.sendall, GREETING)
    take(64)  # before READY is sent: libzmq drops a connection that does not wait for its greeting
    within(sock.sendall, b"%b%b\2%b%b" % (READY, frames, len(body).to_bytes(8, "big"), body))
    while more:
        flags = take(1)[0]
        part = take(int.from_bytes(take(8 if flags & 2 else 1), "big"))
        if not flags & 4:  # a command (READY, PING) is not part of the answer
            answer, more = [*answer, part], flags & 1
    return answer  # returning closes the socket, which has stdout's number if stdout is closed


def main(_, home, event, host="claude"):
    waited, body, status, ident = False, read_input(), b"", f"{time.time_ns():016x}{posix.urandom(8).hex()}"
    patience = (deadline := STARTED + (INJECTING_PATIENCE_S if event in INJECTING else PATIENCE_S)) - time.monotonic()
    try:
        if body and not (posix.access(home + "/run/hung", posix.F_OK) and rare().is_hung(home)):
            path = posix.read(posix.open(home + "/endpoint", posix.O_RDONLY), 4096).partition(b"\n")[0]
            status, answer = ask(path, ident, host, event, body, patience, deadline)
    except Exception as error:
        waited = isinstance(error, (TimeoutError, BlockingIOError))
    if status != b"ok":
        rare().keep(home, ident, event, body, waited, patience > FAIR_CHANCE_S, status, host)
    while status == b"ok" and event in INJECTING and answer:
        answer = answer[posix.write(1, answer) :]


try:
    ({b"CSMD_DISABLE", b"COPILOT_CLI"} & posix.environ.keys() and rare().passes_by(*sys.argv)) or main(*sys.argv)
finally:
    posix._exit(0)
