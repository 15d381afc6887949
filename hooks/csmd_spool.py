"""What a hook rarely needs: input that comes late, the spool for events nobody took, the mark of a hung daemon.

It keeps the hook's rule (never fail, never print) and one more: an event is in the spool whole or not at all.
A spool file is one ASCII line, `csmd-spool 1 <event id> <host> <event> <unix time in ns>`, then the payload's bytes.
There is no fsync: a file survives the death of any process without it, a power cut costs at most what the
transcript still holds, and on a busy disk it can take longer than a hook may. (So the daemon expects empty files.)
"""

import os
import posix
import time

INPUT_PATIENCE_S = 2.0
HUNG_FOR_S = 30


def read_on(body, limit, started):
    """Add to `body` what is still to come on stdin; empty it when the input does not end in time or is a terminal's.

    What is beyond `limit` is read and dropped, so that the writer sees no broken pipe.
    """
    if posix.isatty(0):  # its flags are shared with the shell
        posix.set_blocking(0, True)
        body.clear()
        return
    while time.monotonic() < started + INPUT_PATIENCE_S:
        try:
            part = posix.read(0, 65536)
        except BlockingIOError:
            time.sleep(0.001)
            continue
        if not part:
            return
        if len(body) <= limit:
            body += part
    body.clear()


def is_hung(home):
    """Whether a hook waited for this daemon in vain within the last 30 s; an older mark is taken away."""
    mark = home + "/run/hung"
    try:
        if abs(time.time() - posix.stat(mark).st_mtime) < HUNG_FOR_S:
            return True
        posix.unlink(mark)
    except OSError:
        pass
    return False


def keep(home, ident, event, body, hung):
    """Put the event into the spool, and mark the daemon when it is `hung`."""
    posix.umask(0o077)
    if hung:
        _mark(home)
    if not body or not posix.access(home, posix.F_OK):
        return  # nothing to say, or no csmd here that would ever take a spooled payload away again
    head = f"csmd-spool 1 {ident} claude {event} {time.time_ns()}\n"
    if len(head.split()) != 6:
        return
    data = head.encode("ascii") + body
    try:
        _make_directory(home + "/spool")
        _write(home + "/spool", ident, data)
    except OSError:
        _write(_second_place(home), ident, data)


def _mark(home):
    try:
        _make_directory(home + "/run")
        mark = home + "/run/hung"
        posix.close(posix.open(mark, posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC, 0o600))
        posix.utime(mark)
    except OSError:
        pass


def _make_directory(path):
    try:
        posix.mkdir(path, 0o700)
    except FileExistsError:
        pass


def _second_place(home):
    """A directory of ours in /tmp for the spool of this home; OSError where somebody else could have made it.

    Not in TMPDIR, which the daemon may not share. It is named after the home, so that two homes of a user (a test's,
    say) do not take each other's events: its real path with `%` as `%25` and `/` as `%2F`.
    """
    top = f"/tmp/csmd-{posix.getuid()}"
    place = f"{top}/spool-{os.path.realpath(home).replace('%', '%25').replace('/', '%2F')}"
    for path in (top, place):
        _make_directory(path)
        found = posix.lstat(path)
        if found.st_uid != posix.getuid() or found.st_mode & 0o170777 != 0o040700:
            raise PermissionError(path)
    return place


def _write(place, ident, data):
    temp = f"{place}/.tmp-{ident}"
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC
    handle = posix.open(temp, flags, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[posix.write(handle, rest) :]
        posix.close(handle)
        posix.rename(temp, f"{place}/{ident}.event")
    except BaseException:
        posix.unlink(temp)
        raise
