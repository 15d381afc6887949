"""What a hook rarely needs: late input, the spool for events nobody took, the mark of a hung daemon, what a user is told.

It keeps the hook's rule (never fail, never wait) and two more: an event is in the spool whole or not at all, and what
is printed is a sentence of NEWS, for the user's eyes, at a session's start and never twice a day.
A spool file is one ASCII line, `csmd-spool 1 <event id> <host> <event> <unix time in ns>`, then the payload's bytes.
There is no fsync: a file survives the death of any process without it, a power cut costs at most what the
transcript still holds, and on a busy disk it can take longer than a hook may. (So the daemon expects empty files.)
"""

import os
import posix
import time

INPUT_PATIENCE_S = 2.0
HUNG_FOR_S = 30
DAY_S = 86_400
#: How often a daemon that is away is started.
BROUGHT_BACK_S = 60
#: The interpreter and its arguments.
COMMAND_WORDS = 4
#: Days for which it is known that somebody was told: the clock may be set back meanwhile.
DAYS_KNOWN = 7
#: Events that wait for a first daemon, at most.
MOST_BEFORE_FIRST = 2000
#: Events that only ask: what they report stands in the transcript, and nobody waits for an answer later.
ONLY_ASKS = ("PostToolUseFailure",)  # by docs/generate.py
#: What a user is told, by the daemon's answer: b"" for none, b"waits" where it says so, b"hung" for none twice in a row. Constant: it goes where
#: transcripts go. A daemon that says `retry` is being restarted, which is no news.
NEWS = {
    b"": "its daemon is not running (csmd start; csmd doctor says why)",
    b"waits": "its daemon waits for the key of its database (csmd encrypt status)",
    b"hung": "its daemon does not answer (csmd restart; csmd doctor says why)",
    b"refused": "nothing can be stored (csmd doctor says why)",
    b"error": "its daemon cannot take it in (csmd doctor says why)",
    b"upgrade": "its daemon is older than its hooks (csmd restart)",
}
MESSAGE = '{"systemMessage": "csmd: memory is not being recorded: %s"}\n'

#: About the mark of a hung daemon as this hook found it: there was one, and hooks have waited in vain more than once.
_was_young = _again = False


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
    """Whether a hook waited for this daemon in vain within the last 30 s; an older mark is taken away.

    A mark that is still there when the daemon is asked again says that no hook was answered in between.
    """
    global _was_young, _again
    mark = home + "/run/hung"
    try:
        found = posix.stat(mark)
        age = time.time() - found.st_mtime
        if abs(age) < HUNG_FOR_S:
            _was_young, _again = True, found.st_size > 0
            return True
        _again = age > 0  # one from the future says nothing
        posix.unlink(mark)
    except OSError:
        pass
    return False


def _is_known(home, host):
    """Whether an assistant's launcher is installed; Claude Code needs none."""
    return host == "claude" or (host.isalnum() and posix.access(f"{home}/hook/{host}", posix.X_OK))


def keep(home, ident, event, body, waited=False, had_chance=True, status=b"", host="claude"):
    """Put the event into the spool, mark a daemon that hangs, and tell the user at a session's start.

    One that listens hangs where it was `waited` for, had a fair chance and gave no answer, however late.
    """
    posix.umask(0o077)
    hung = waited and had_chance and not status
    if waited and not had_chance:
        status = status or b"retry"
    if hung:
        _mark(home)
    if not body or event in ONLY_ASKS or not _is_known(home, host) or not posix.access(home, posix.F_OK):
        return  # nothing to say, or no csmd here that would ever take a spooled payload away again
    if not posix.access(home + "/csmd.db", posix.F_OK) and _is_full(home + "/spool"):
        return  # no daemon was ever here
    head = f"csmd-spool 1 {ident} {host} {event} {time.time_ns()}\n"
    if len(head.split()) != 6:
        return
    data = head.encode("ascii") + body
    try:
        for place in (_in_home("/spool", 0o077), _in_home("/spool-2", 0o077), _second_place):
            try:
                _write(place(home), ident, data)
                break
            except OSError as error:
                failed = error
        else:
            raise failed
    finally:  # most of all when it could not be kept
        is_away = not (hung or status or _was_young)
        if event == "SessionStart" and not (is_away and _bring_back(home)):
            if is_away and posix.access(home + "/run/waits-for-key", posix.F_OK):
                status = b"waits"
            _tell(home, body, (b"hung" if _again else b"none") if hung or _was_young else status)


def _bring_back(home):
    """Start the daemon that no service manager keeps; whether it was, and nothing says that it ended at once before.

    How is in `run/command`, which `csmd start` writes: the file for what the daemon says, its command and environment,
    each ended by a zero byte. Its time is when this was done last. Nobody else may have written it.
    """
    path = home + "/run/command"
    try:
        if posix.access(home + "/run/stopped-by-user", posix.F_OK):
            return False
        for place, kind, others in ((home, 0o040000, 0o022), (home + "/run", 0o040000, 0o077), (path, 0o100000, 0o077)):
            found = posix.lstat(place)
            if found.st_uid != posix.getuid() or found.st_mode & 0o170000 != kind or found.st_mode & others:
                return False
        if 0 <= time.time() - found.st_mtime < BROUGHT_BACK_S:
            return False
        handle = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC)
        complaint, *words = posix.read(handle, 65536).split(b"\0")[:-1]
        command = words[:COMMAND_WORDS]
        has_ended = posix.stat(complaint).st_size > 0
        posix.utime(path)
        if not posix.fork():
            _become(home, complaint, command, dict(word.split(b"=", 1) for word in words[COMMAND_WORDS:]))
        return not has_ended
    except (OSError, ValueError):
        return False


def _become(home, complaint, command, environment):
    """Turn this child into the daemon: its own session, no stream of the assistant's, no directory of a project's."""
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
            posix.write(2, b"csmd: cannot run " + command[0] + b"\n")  # where the next session finds it
    finally:
        posix._exit(1)


def _is_full(spool):
    """Whether as many events wait for a first daemon as are kept: it may never come."""
    try:
        return len(posix.listdir(spool)) >= MOST_BEFORE_FIRST
    except OSError:
        return False


def passes_by(_, home, _event, host="claude"):
    """Whether nothing is to be done with an event.

    Where the user wants nothing of this session kept (CSMD_DISABLE), word is left that hooks run. Copilot CLI runs the hooks
    in a project's settings of Claude Code, too, under Claude Code's names for events: it has hooks of its own.
    """
    if posix.environ.get(b"CSMD_DISABLE") == b"1":
        posix.umask(0o077)
        if posix.access(home + "/run", posix.F_OK):
            _touch(_in_home("/run", 0o022)(home) + "/passed-by", b"")
        return True
    return host == "claude" and b"COPILOT_CLI" in posix.environ and b"CLAUDECODE" not in posix.environ


def _mark(home):
    try:
        _touch(_in_home("/run", 0o022)(home) + "/hung", b"again" if _again else b"")
    except OSError:
        pass


def _touch(path, data):
    handle = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_CLOEXEC, 0o600)
    try:
        posix.write(handle, data)
        posix.utime(path)
    finally:
        posix.close(handle)


def _tell(home, body, answer):
    """Print what a user should know, once a day, and nothing where the user stopped the daemon on purpose.

    Not where csmd has never been, as a plugin's hooks may be before it is installed; not in the middle of work, where a session is compacted.
    """
    if (
        answer in NEWS
        and (posix.access(home + "/hook", posix.F_OK) or posix.access(home + "/csmd.db", posix.F_OK))
        and b'"source":"compact"' not in body.replace(b'": "', b'":"')
        and not posix.access(home + "/run/stopped-by-user", posix.F_OK)
        and _is_first_today(home)
    ):
        posix.write(1, (MESSAGE % NEWS[answer]).encode("ascii"))


def _is_first_today(home):
    """Whether nobody was told today, which is noted; of hooks that ask at once one is the first.

    Where no note can be made it is not: what is said at each start of a session is soon read by nobody. A script's
    session (`claude -p`) has a note of its own, so that none uses up what a person should see. A note of a later
    day is one too (the clock was set back); those from more than a week away are taken for a wrong clock's.
    """
    now = time.time()
    by_script = posix.environ.get(b"CLAUDE_CODE_ENTRYPOINT", b"").startswith(b"sdk")
    kind = "told-script-" if by_script else "told-"

    def note(days):
        return kind + time.strftime("%Y-%m-%d", time.localtime(now + days * DAY_S))

    first, today, last = note(-DAYS_KNOWN), note(0), note(DAYS_KNOWN)
    old = []
    for path in (home + "/run", _second_places(home)[1]):
        try:
            notes = [name for name in posix.listdir(path) if name.startswith(kind) and len(name) == len(today)]
        except OSError:
            continue
        if any(today <= name <= last for name in notes):
            return False
        old += [f"{path}/{name}" for name in notes if not first <= name <= last]
    for place in (_in_home("/run", 0o022), _second_place):
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
    """A function that gives a directory of a home, made where it is not there.

    OSError where it is not ours, or a link, or others have any of these rights.
    """

    def place(home):
        path = home + name
        _make_directory(path)
        found = posix.lstat(path)
        if found.st_uid != posix.getuid() or found.st_mode & (0o170000 | others) != 0o040000:
            raise PermissionError(path)
        return path

    return place


def _second_places(home):
    top = f"/tmp/csmd-{posix.getuid()}"
    return top, f"{top}/spool-{os.path.realpath(home).replace('%', '%25').replace('/', '%2F')}"


def _second_place(home):
    """A directory of ours in /tmp for the spool of this home; OSError where somebody else could have made it.

    Not in TMPDIR, which the daemon may not share. It is named after the home, so that two homes of a user (a test's,
    say) do not take each other's events: its real path with `%` as `%25` and `/` as `%2F`.
    """
    top, place = _second_places(home)
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
