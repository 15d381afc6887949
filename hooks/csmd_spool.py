"""The rare cases of a hook: late input, the spool for events without an answer, the mark of a hung daemon, and notices.

It follows the hook's rule (never fail, never wait) and two more: an event is in the spool whole or not at all, and only
sentences of NOTICES are printed, for the user, at a session's start and at most once a day. A spool file is one ASCII
line, `csmd-spool 1 <event id> <host> <event> <unix time in ns>`, then the payload's bytes. There is no fsync: a file
survives the end of any process without it, a power cut loses at most what the transcript still holds, and on a busy
disk fsync can take longer than a hook may. (So the daemon expects empty files.)
"""

import os
import posix
import time

INPUT_PATIENCE_S = 2.0
HUNG_FOR_S = 30
DAY_S = 86_400
#: Shortest time between two attempts to start a missing daemon.
RESTART_PAUSE_S = 60
#: Words of the interpreter and its arguments.
COMMAND_WORDS = 4
#: Notes up to this many days in the future count: the clock may have been set back.
MAX_FUTURE_DAYS = 7
#: Most events that wait for a first daemon.
MAX_WAITING_EVENTS = 2000
#: Events that are not spooled: they are in the transcript, and a later answer is of no use.
ONLY_ASKS = ("PostToolUseFailure",)  # by docs/generate.py
#: The daemon's answer -> the notice for the user: b"" for no answer, b"waits" for a daemon without its key, b"hung" for
#: no answer twice in a row. The sentences are constant, because they are stored in transcripts. A daemon that says
#: `retry` is restarting, which needs no notice.
NOTICES = {
    b"": "its daemon is not running (csmd start; csmd doctor says why)",
    b"waits": "its daemon waits for the key of its database (csmd encrypt status)",
    b"hung": "its daemon does not answer (csmd restart; csmd doctor says why)",
    b"refused": "nothing can be stored (csmd doctor says why)",
    b"error": "its daemon cannot take it in (csmd doctor says why)",
    b"upgrade": "its daemon is older than its hooks (csmd restart)",
}
MESSAGE = '{"systemMessage": "csmd: memory is not being recorded: %s"}\n'

#: Whether this hook found a recent mark of a hung daemon, and whether hooks have waited in vain more than once.
_has_recent_mark = _is_hung_again = False


def read_on(body, limit, started):
    """Add the rest of stdin to `body`; empty it if the input does not end in time or is a terminal.

    Input beyond `limit` is read and dropped, so that the writer sees no broken pipe.
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
    """Whether a hook waited for this daemon in vain within the last 30 s; an older mark is removed.

    A mark that is still there when the daemon is asked again means that no hook was answered in between.
    """
    global _has_recent_mark, _is_hung_again
    mark = home + "/run/hung"
    try:
        info = posix.stat(mark)
        age = time.time() - info.st_mtime
        if abs(age) < HUNG_FOR_S:
            _has_recent_mark, _is_hung_again = True, info.st_size > 0
            return True
        _is_hung_again = age > 0  # a mark from the future means nothing
        posix.unlink(mark)
    except OSError:
        pass
    return False


def _is_known(home, host):
    """Whether an assistant's launcher is installed; Claude Code needs none."""
    return host == "claude" or (host.isalnum() and posix.access(f"{home}/hook/{host}", posix.X_OK))


def keep(home, ident, event, body, waited=False, had_chance=True, status=b"", host="claude"):
    """Put the event into the spool, mark a daemon that hangs, and notify the user at a session's start.

    A daemon hangs if the hook `waited` for it, it had enough time (`had_chance`), and it did not answer.
    """
    posix.umask(0o077)
    hung = waited and had_chance and not status
    if waited and not had_chance:
        status = status or b"retry"
    if hung:
        _mark_hung(home)
    if not body or event in ONLY_ASKS or not _is_known(home, host) or not posix.access(home, posix.F_OK):
        return  # no event, or no csmd here that would ever remove it from the spool
    if not posix.access(home + "/csmd.db", posix.F_OK) and _is_full(home + "/spool"):
        return  # no daemon has ever run here
    head = f"csmd-spool 1 {ident} {host} {event} {time.time_ns()}\n"
    if len(head.split()) != 6:
        return
    data = head.encode("ascii") + body
    try:
        for place in (
            _in_home("/spool", 0o077),
            _in_home("/spool-2", 0o077),
            _make_tmp_spool,
        ):
            try:
                _write(place(home), ident, data)
                break
            except OSError as error:
                failed = error
        else:
            raise failed
    finally:  # also if the event could not be spooled
        is_away = not (hung or status or _has_recent_mark)
        if event == "SessionStart" and not (is_away and _restart_daemon(home)):
            if is_away and posix.access(home + "/run/waits-for-key", posix.F_OK):
                status = b"waits"
            _notify_user(home, body, (b"hung" if _is_hung_again else b"none") if hung or _has_recent_mark else status)


def _restart_daemon(home):
    """Start a daemon without a service manager; whether it was started and did not fail at once the last time.

    `run/command`, which `csmd start` writes, holds the file for the daemon's stderr, its command and its environment,
    each ended by a zero byte. Its modification time is the last attempt. It must belong to the user.
    """
    path = home + "/run/command"
    try:
        if posix.access(home + "/run/stopped-by-user", posix.F_OK):
            return False
        for place, kind, others in ((home, 0o040000, 0o022), (home + "/run", 0o040000, 0o077), (path, 0o100000, 0o077)):
            info = posix.lstat(place)
            if info.st_uid != posix.getuid() or info.st_mode & 0o170000 != kind or info.st_mode & others:
                return False
        if 0 <= time.time() - info.st_mtime < RESTART_PAUSE_S:
            return False
        handle = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC)
        complaint, *words = posix.read(handle, 65536).split(b"\0")[:-1]
        command = words[:COMMAND_WORDS]
        has_ended = posix.stat(complaint).st_size > 0
        posix.utime(path)
        if not posix.fork():
            _run_daemon(home, complaint, command, dict(word.split(b"=", 1) for word in words[COMMAND_WORDS:]))
        return not has_ended
    except (OSError, ValueError):
        return False


def _run_daemon(home, complaint, command, environment):
    """Turn this child into the daemon: with its own session, and without the assistant's streams and directory."""
    try:
        posix.setsid()
        posix.chdir(home)
        for number, place, flags in (
            (0, b"/dev/null", posix.O_RDONLY),
            (1, b"/dev/null", posix.O_WRONLY),
            (2, complaint, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW),
        ):
            posix.dup2(posix.open(place, flags | posix.O_CLOEXEC, 0o600), number)
        try:
            posix.execve(command[0], command, environment)
        except OSError:
            posix.write(2, b"csmd: cannot run " + command[0] + b"\n")  # the next session finds it there
    finally:
        posix._exit(1)


def _is_full(spool):
    """Whether MAX_WAITING_EVENTS events wait for a first daemon, which may never come."""
    try:
        return len(posix.listdir(spool)) >= MAX_WAITING_EVENTS
    except OSError:
        return False


def passes_by(_, home, _event, host="claude"):
    """Whether to ignore an event.

    If the user excludes this session (CSMD_DISABLE), a mark shows that hooks run. Copilot CLI also runs the hooks in a
    project's Claude Code settings, with Claude Code's names of events, although it has hooks of its own.
    """
    if posix.environ.get(b"CSMD_DISABLE") == b"1":
        posix.umask(0o077)
        if posix.access(home + "/run", posix.F_OK):
            _touch(_in_home("/run", 0o022)(home) + "/passed-by", b"")
        return True
    return host == "claude" and b"COPILOT_CLI" in posix.environ and b"CLAUDECODE" not in posix.environ


def _mark_hung(home):
    try:
        _touch(_in_home("/run", 0o022)(home) + "/hung", b"again" if _is_hung_again else b"")
    except OSError:
        pass


def _touch(path, data):
    handle = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_CLOEXEC, 0o600)
    try:
        posix.write(handle, data)
        posix.utime(path)
    finally:
        posix.close(handle)


def _notify_user(home, body, answer):
    """Print the notice for the user, once a day, unless the user stopped the daemon.

    Not if csmd was never installed, because a plugin's hooks may come first; and not when a session is compacted, in
    the middle of work.
    """
    if (
        answer in NOTICES
        and (posix.access(home + "/hook", posix.F_OK) or posix.access(home + "/csmd.db", posix.F_OK))
        and b'"source":"compact"' not in body.replace(b'": "', b'":"')
        and not posix.access(home + "/run/stopped-by-user", posix.F_OK)
        and _claim_notice(home)
    ):
        posix.write(1, (MESSAGE % NOTICES[answer]).encode("ascii"))


def _claim_notice(home):
    """Whether this is today's first notice, which is noted; of concurrent hooks only one is the first.

    False if no note can be made, because a notice at each start of a session would soon be ignored. Scripts' sessions
    (`claude -p`) have a note of their own, so that they do not suppress a person's notice. A note of a later day counts
    too (the clock was set back); one more than a week away is from a wrong clock.
    """
    now = time.time()
    by_script = posix.environ.get(b"CLAUDE_CODE_ENTRYPOINT", b"").startswith(b"sdk")
    kind = "told-script-" if by_script else "told-"

    def note(days):
        return kind + time.strftime("%Y-%m-%d", time.localtime(now + days * DAY_S))

    first, today, last = note(-MAX_FUTURE_DAYS), note(0), note(MAX_FUTURE_DAYS)
    old = []
    for path in (home + "/run", _name_tmp_directories(home)[1]):
        try:
            notes = [name for name in posix.listdir(path) if name.startswith(kind) and len(name) == len(today)]
        except OSError:
            continue
        if any(today <= name <= last for name in notes):
            return False
        old += [f"{path}/{name}" for name in notes if not first <= name <= last]
    for place in (_in_home("/run", 0o022), _make_tmp_spool):
        try:
            path = place(home)
            posix.close(posix.open(f"{path}/{today}", posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600))
        except FileExistsError:
            return False
        except OSError:
            continue
        for name in old:
            try:
                posix.unlink(name)
            except OSError:
                pass
        return True
    return False


def _make_directory(path):
    try:
        posix.mkdir(path, 0o700)
    except FileExistsError:
        pass


def _in_home(name, others):
    """A function that returns a directory of a home, and creates it if it is missing.

    OSError if it belongs to another user, is a link, or grants others any of these rights.
    """

    def place(home):
        path = home + name
        _make_directory(path)
        info = posix.lstat(path)
        if info.st_uid != posix.getuid() or info.st_mode & (0o170000 | others) != 0o040000:
            raise PermissionError(path)
        return path

    return place


def _name_tmp_directories(home):
    top = f"/tmp/csmd-{posix.getuid()}"
    return top, f"{top}/spool-{os.path.realpath(home).replace('%', '%25').replace('/', '%2F')}"


def _make_tmp_spool(home):
    """The user's directory in /tmp for the spool of this home; OSError if another user could have created it.

    Not in TMPDIR, which may differ for the daemon. Its name is the home's real path with `%` as `%25` and `/` as `%2F`,
    so that two homes of a user (for example a test's) have different ones.
    """
    top, place = _name_tmp_directories(home)
    for path in (top, place):
        _make_directory(path)
        info = posix.lstat(path)
        if info.st_uid != posix.getuid() or info.st_mode & 0o170777 != 0o040700:
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
