"""Sessions in the SQLite database of an assistant that keeps no files of them: OpenCode's tables, which its forks share.

The database is another program's and is being written: it is opened for reading and for moments only, and nothing of it,
or beside it, is changed. Only the tables `session`, `message` and `part` are read; others hold credentials.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from csmd.errors import StoreError, TooLarge
from csmd.store.files import open_regular
from csmd.store.import_files import SQLITE
from csmd.store.sqlite import Rows, close_quietly, connect

#: How far back the messages are looked at whose sessions may have changed just now.
LATEST_MESSAGES = 200
#: What a time can be, in milliseconds since 1970: anything else is a damaged row.
_TIMED = "typeof(time_created) = 'integer' and time_created between 1 and 253402300799000"
#: How much of a part tells its message from another one of the same millisecond.
TELLING_CHARACTERS = 1000
LONGEST_TELLING = 32 * 1024 * 1024
#: Hexadecimal digits of a hash of it: messages that share a time are few, and a longer one could prove a guessed secret.
TELLING_DIGITS = 4
#: Sessions above one another that are looked at for the one that a person began.
DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Listed:
    """A session: its id, the time of its newest message in milliseconds, and how many messages were counted."""

    id: str
    end: int
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session; `root` is the one that a person began, itself for no sub-agent's; `permission` is JSON or ""."""

    id: str
    root: str
    directory: str
    title: str
    version: str
    permission: str
    created: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message and the parts of it that are used as JSON texts, without attachments; `at` is its time in milliseconds.

    `bad` are parts that are left out: the beginning of one that is no JSON, None for one that is too long.
    `name` is what a copy of it shares and no other message has; `before` that of the one before it, "" for none.
    """

    at: int
    name: str
    before: str
    data: str
    parts: tuple[str, ...]
    bad: tuple[str | None, ...] = ()


#: A part by its id: whether it is used, damaged or long ("" for none of them), and what of it is read.
_PART = """
with p as (
  select data, case when length(data) > :most then 'long' when not json_valid(data) then 'damaged'
    when json_extract(data, '$.type') in ('text', 'tool') then 'used' else '' end as state
  from part where id = :id)
select state, case state when 'used' then json_remove(data, '$.state.attachments')
  when 'damaged' then substr(data, 1, 1000) else '' end from p
"""


class SessionDatabase:
    """Owns a connection to an assistant's database; OSError where it cannot be read now."""

    def __init__(self, rows: Rows, path: Path) -> None:
        self._rows = rows
        self._path = path

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[SessionDatabase]:
        """Opens a database for a moment."""
        log = _size(f"{path}-wal")
        if log and _size(f"{path}-shm") is None:
            # To read it SQLite would have to make that file beside the assistant's.
            raise OSError(errno.EBUSY, "changes wait in its -wal and the -shm to read them is missing", str(path))
        try:
            # Without a log nobody writes: it is read without a lock, and no log is made for it.
            connection = connect(path, readonly=True, immutable=not log)
            try:
                yield cls(Rows(connection), path)
            finally:
                close_quietly(connection)
        except StoreError as error:
            raise OSError(errno.EIO, f"cannot be read now ({error.what})", str(path)) from error

    @classmethod
    def is_one(cls, path: Path) -> bool:
        """Whether a file is a database with sessions; False for what cannot be read."""
        return bool(cls.list_sessions(path))

    @classmethod
    def list_sessions(cls, path: Path) -> list[Listed] | None:
        """Every session that has a message, none for a database that cannot be read; None for what is no database."""
        tables = "select count(*) from sqlite_schema where type = 'table' and name in ('session', 'message', 'part')"
        sql = f"select session_id, max(time_created), count(*) from message where {_TIMED} group by session_id"  # noqa: S608
        with suppress(OSError):
            with open_regular(path) as file:
                if file.read(len(SQLITE)) != SQLITE:
                    return None
            with cls.open(path) as database:
                return database._rows.read(Listed, sql) if database._rows.number(tables) == 3 else []
        return []

    def latest_sessions(self) -> list[Listed]:
        """The sessions of the messages that were added last."""
        sql = (
            f"select session_id, max(time_created), count(*) from message where {_TIMED} and session_id in "  # noqa: S608
            "(select session_id from message order by rowid desc limit :most) group by session_id"
        )
        return self._rows.read(Listed, sql, most=LATEST_MESSAGES)

    def session(self, ident: str) -> SessionRow | None:
        """A session; None for none."""
        sql = (
            "select parent_id, directory, title, version, coalesce(permission, ''), "  # noqa: S608
            f"case when {_TIMED} then time_created else 0 end from session where id = :id"
        )
        row = self._rows.one(sql, id=ident)
        if row is None:
            return None
        parent, directory, title, version, permission, created = row
        return SessionRow(
            id=ident, root=self._root(ident, parent), directory=str(directory), title=str(title), version=str(version),
            permission=str(permission), created=int(created),
        )  # fmt: skip

    def _root(self, ident: str, parent: str | None) -> str:
        for _ in range(DEEPEST):
            if not parent:
                break
            ident, parent = parent, self._rows.value("select parent_id from session where id = :id", id=parent)
        return ident

    def listed(self, ident: str) -> Listed | None:
        """A session as a listing shows it; None for one without messages."""
        sql = (
            "select session_id, max(time_created), count(*) from message "  # noqa: S608
            f"where session_id = :id and {_TIMED} group by session_id"
        )
        listed = self._rows.read(Listed, sql, id=ident)
        return listed[0] if listed else None

    def count(self, ident: str, *, upto: int) -> int:
        """How many messages a session has up to a time."""
        sql = f"select count(*) from message where session_id = :id and time_created <= :upto and {_TIMED}"  # noqa: S608
        return self._rows.number(sql, id=ident, upto=upto)

    def finished(self, ident: str, *, after: int, abandoned: int) -> list[tuple[str, int]]:
        """(id, time) of the messages of a session after a time, up to the first one that is still being written.

        A prompt is whole once an answer has begun, an answer once it is marked as completed or failed, or another one
        has begun. A message not written to since the time `abandoned` was left unfinished by a client that was killed.
        """
        sql = (
            "select id, time_created, time_updated, case when json_valid(data) then json_extract(data, '$.role') end, "  # noqa: S608
            "case when json_valid(data) then coalesce(json_extract(data, '$.time.completed'), json_extract(data, '$.error')) "
            f"is not null else 1 end from message where session_id = :id and time_created > :after and {_TIMED} "
            "order by time_created, id"
        )
        messages = self._rows.all(sql, id=ident, after=after)
        answered = max((place for place, row in enumerate(messages) if row[3] == "assistant"), default=-1)
        for place, (message, at, updated, _, is_done) in enumerate(messages):
            is_open = place >= answered and not is_done and max(updated, self._written(message)) >= abandoned
            if is_open:
                return [(ident, time) for ident, time, *_ in messages[:place] if time < at]
        return [(ident, time) for ident, time, *_ in messages]

    def _written(self, message: str) -> int:
        return self._rows.number("select max(time_updated) from part where message_id = :id", id=message)

    def messages_before(self, ident: str) -> dict[str, tuple[str, int]]:
        """Each message of a session but the first -> (id, time) of the one that was written before it.

        Their times do not tell that: a clock may have been set back.
        """
        sql = f"select id, time_created from message where session_id = :id and {_TIMED} order by rowid"  # noqa: S608
        written = self._rows.all(sql, id=ident)
        return {message: (before, at) for (before, at), (message, _) in itertools.pairwise(written)}

    def message(self, ident: str, *, at: int, before: tuple[str, int] | None, most: int) -> Message | None:
        """A message of a time, behind the one `before`, with its parts in their order; None for one that is there no more.

        Of the parts at most `most` characters, of each and of all. TooLarge where the message itself is longer. What a client attaches is not read: it may be of any length.
        """
        sql = (
            "select length(data) > :most, case when length(data) > :most then '' "
            "when json_valid(data) then json_remove(data, '$.summary.diffs') else data end from message where id = :id"
        )
        if (message := self._rows.one(sql, id=ident, most=most)) is None:
            return None
        if message[0]:
            raise TooLarge(f"a message beyond {most} characters")
        parts, bad = list[str](), list[str | None]()
        for part in self._rows.column("select id from part where message_id = :id order by id", id=ident):
            state, data = self._rows.one(_PART, id=part, most=most) or ("", "")
            if state == "used" and len(data) <= most:
                parts.append(str(data))
                most -= len(data)
            elif state:
                bad.append(str(data) if state == "damaged" else None)
        earlier = self._name(*before) if before else ""
        return Message(at, self._name(ident, at), earlier, str(message[1]), tuple(parts), tuple(bad))

    def _name(self, ident: str, at: int) -> str:
        """What a message is known by: its time, its role and a hash of what is said and called in it."""
        role = "select case when json_valid(data) then json_extract(data, '$.role') end from message where id = :id"
        sql = (
            "select substr(coalesce(json_extract(data, '$.callID'), json_extract(data, '$.text'), ''), 1, :most) "
            "from (select id, case when length(data) <= :longest and json_valid(data) then data else '{}' end as data "
            "from part where message_id = :id) "
            "where json_extract(data, '$.type') in ('text', 'tool') "
            "and not coalesce(json_extract(data, '$.synthetic'), 0) and not coalesce(json_extract(data, '$.ignored'), 0) "
            "order by id"
        )
        parts = "\0".join(map(str, self._rows.column(sql, id=ident, most=TELLING_CHARACTERS, longest=LONGEST_TELLING)))
        digest = hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()
        return f"{at}{str(self._rows.value(role, id=ident) or '-')[0]}{digest[:TELLING_DIGITS]}"


def _size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None
