"""Prints the status line of a session: what csmd gave it, or why csmd does not work; asks the daemon, and never fails.

The assistant runs it often, with a JSON object that names the session on stdin. It follows the hook's rules: a bare
interpreter (-I -S), one short deadline, exit 0. It prints nothing if there is nothing to show, or if the daemon was
only too slow: a line that comes and goes is more disturbing than useful.
"""

import _socket
import posix
import sys
import time

STARTED, INPUT_LIMIT, PATIENCE_S, LONGEST_ID = time.monotonic(), 1 << 20, 0.15, 200
GREETING, READY = b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL" + bytes(48), b"\4\x1c\5READY\x0bSocket-Type\0\0\0\6DEALER"
DEAD = b"csmd: not recording"


def read_input():
    """The assistant's input, as far as it arrives in time."""
    body = b""
    posix.set_blocking(0, False)
    while len(body) < INPUT_LIMIT and time.monotonic() < STARTED + PATIENCE_S:
        try:
            part = posix.read(0, 65536)
        except BlockingIOError:
            time.sleep(0.001)
            continue
        if not part:
            break
        body += part
    return body


def session_of(body):
    """The session that a payload names, b"" if none; text that quotes the key is not mistaken for it, because its
    quotes are escaped."""
    ident = body.partition(b'"session_id"')[2].lstrip(b" \t\r\n:").removeprefix(b'"').partition(b'"')[0]
    return ident if len(ident) <= LONGEST_ID and ident.replace(b"-", b"").replace(b"_", b"").isalnum() else b""


def ask(path, session):
    """[status, body] of the daemon's answer, before the deadline (docs/protocol.md)."""

    def within(call, argument):
        sock.settimeout(STARTED + PATIENCE_S - time.monotonic())  # ValueError after the deadline
        return call(argument)

    def take(count):
        data = b""
        while len(data) < count:
            part = within(sock.recv, count - len(data))
            if not part: raise EOFError  # fmt: skip
            data += part
        return data

    body = b'{"id":"%b"}' % session
    head = b"1", b"line", b"call", b"%d" % (PATIENCE_S * 1000), b"line", b"csm_session_line"
    frames = b"".join(b"\1%c%b" % (len(part), part) for part in head)
    sock, answer, more = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM), [], 1
    within(sock.connect, path)
    within(sock.sendall, GREETING)
    take(64)
    within(sock.sendall, b"%b%b\2%b%b" % (READY, frames, len(body).to_bytes(8, "big"), body))
    while more:
        flags = take(1)[0]
        part = take(int.from_bytes(take(8 if flags & 2 else 1), "big"))
        if not flags & 4:
            answer, more = [*answer, part], flags & 1
    return answer


def line(home):
    """The line to print, b"" for nothing."""
    session = session_of(read_input())
    if not session or not posix.access(home, posix.F_OK):
        return b""
    try:
        path = posix.read(posix.open(home + "/endpoint", posix.O_RDONLY), 4096).partition(b"\n")[0]
        status, answer = ask(path, session)
    except (FileNotFoundError, ConnectionRefusedError):
        return DEAD  # no daemon
    except (OSError, EOFError, ValueError):
        return DEAD if posix.access(home + "/run/hung", posix.F_OK) else b""
    return answer.partition(b'"line": "')[2].partition(b'"')[0] if status == b"ok" else b""


try:
    if posix.environ.get(b"CSMD_DISABLE") != b"1" and (text := line(sys.argv[1])):
        posix.write(1, text + b"\n")
except BaseException:
    pass
finally:
    posix._exit(0)
