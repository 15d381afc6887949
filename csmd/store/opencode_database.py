"""The SQLite database of OpenCode and its forks, which keep sessions in its tables and not in files.

OpenCode may be writing it, so it is opened for reading and for moments only, and neither it nor the files next to it
are changed. Only the tables `session`, `message` and `part` are read; others hold credentials.
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
from csmd.store.import_files import SQLITE_MAGIC
from csmd.store.sqlite import Rows, close_quietly, connect

#: Latest messages that show which sessions changed just now.
LATEST_MESSAGES = 200
#: A valid time, in milliseconds since 1970; another value is a damaged row.
_HAS_VALID_TIME = "typeof(time_created) = 'integer' and time_created between 1 and 253402300799000"
#: Characters of a part that distinguish its message from others of the same millisecond.
IDENTIFYING_CHARACTERS = 1000
MAX_IDENTIFYING_BYTES = 32 * 1024 * 1024
#: Hexadecimal digits of their hash: few messages share a time, and a longer hash could prove a guessed secret.
IDENTIFYING_DIGITS = 4
#: Parents that are followed to the session that a person began.
MAX_PARENTS = 20
#: Returns (whether a part is used, damaged or long, "" for none of them; what of it is read).
_PART = """
with p as (
  select data, case when length(data) > :limit then 'long' when not json_valid(data) then 'damaged'
    when json_extract(data, '$.type') in ('text', 'tool') then 'used' else '' end as state
  from part where id = :id)
select state, case state when 'used' then json_remove(data, '$.state.attachments')
  when 'damaged' then substr(data, 1, 1000) else '' end from p
"""


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session: its id, the time of its newest message in milliseconds, and its number of messages."""

    id: str
    end: int
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session; `root` is the one that a person began, itself unless a sub-agent's; `permission` is JSON or ""."""

    id: str
    root: str
    directory: str
    title: str
    version: str
    permission: str
    created: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message and its used parts as JSON texts, without attachments; `at` is its time in milliseconds.

    `bad` are the other parts: the beginning of invalid JSON, None for a part that is too long. `name` is the same for a
    copy of the message and differs for every other one; `before` is that of the message before it, "" for none.
    """

    at: int
    name: str
    before: str
    data: str
    parts: tuple[str, ...]
    bad: tuple[str | None, ...] = ()


class SessionDatabase:
    """Owns a connection to OpenCode's database; raises OSError if it cannot be read now."""

    def __init__(self, rows: Rows, path: Path) -> None:
        self._rows = rows
        self._path = path

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[SessionDatabase]:
        """Opens a database for the duration of the block."""
        log = _read_file_size(f"{path}-wal")
        if log and _read_file_size(f"{path}-shm") is None:
            # To read it SQLite would have to create that file next to the assistant's.
            raise OSError(errno.EBUSY, "changes wait in its -wal and the -shm to read them is missing", str(path))
        try:
            # Without a log nobody writes, so it is read without a lock and without creating a log.
            connection = connect(path, readonly=True, immutable=not log)
            try:
                yield cls(Rows(connection), path)
            finally:
                close_quietly(connection)
        except StoreError as error:
            raise OSError(errno.EIO, f"cannot be read now ({error.what})", str(path)) from error

    @classmethod
    def is_one(cls, path: Path) -> bool:
        """Whether a file is a database with sessions; False for an unreadable one."""
        return bool(cls.list_sessions(path))

    @classmethod
    def list_sessions(cls, path: Path) -> list[ListedSession] | None:
        """Returns every session with a message, [] for an unreadable database; None for another kind of file."""
        tables = "select count(*) from sqlite_schema where type = 'table' and name in ('session', 'message', 'part')"
        sql = f"select session_id, max(time_created), count(*) from message where {_HAS_VALID_TIME} group by session_id"  # noqa: S608
        with suppress(OSError):
            with open_regular(path) as file:
                if file.read(len(SQLITE_MAGIC)) != SQLITE_MAGIC:
                    return None
            with cls.open(path) as database:
                return database._rows.read(ListedSession, sql) if database._rows.number(tables) == 3 else []
        return []

    def latest_sessions(self) -> list[ListedSession]:
        """Returns the sessions of the messages that were added last."""
        sql = f"""select session_id, max(time_created), count(*) from message where {_HAS_VALID_TIME}
            and session_id in (select session_id from message order by rowid desc limit :most) group by session_id"""  # noqa: S608
        return self._rows.read(ListedSession, sql, most=LATEST_MESSAGES)

    def session(self, session_id: str) -> SessionRow | None:
        """Returns a session, or None."""
        sql = f"""select parent_id, directory, title, version, coalesce(permission, ''),
            case when {_HAS_VALID_TIME} then time_created else 0 end from session where id = :id"""  # noqa: S608
        row = self._rows.first(sql, id=session_id)
        if row is None:
            return None
        parent, directory, title, version, permission, created = row
        return SessionRow(
            id=session_id, root=self._root(session_id, parent), directory=str(directory), title=str(title), version=str(version),
            permission=str(permission), created=int(created),
        )  # fmt: skip

    def _root(self, session_id: str, parent: str | None) -> str:
        for _ in range(MAX_PARENTS):
            if not parent:
                break
            session_id, parent = parent, self._rows.value("select parent_id from session where id = :id", id=parent)
        return session_id

    def listed(self, ident: str) -> ListedSession | None:
        """Returns a session as in a listing; None for one without messages."""
        sql = f"""select session_id, max(time_created), count(*)
            from message where session_id = :id and {_HAS_VALID_TIME} group by session_id"""  # noqa: S608
        listed = self._rows.read(ListedSession, sql, id=ident)
        return listed[0] if listed else None

    def count(self, session_id: str, *, until: int) -> int:
        """Counts the messages of a session up to a time."""
        sql = f"select count(*) from message where session_id = :id and time_created <= :until and {_HAS_VALID_TIME}"  # noqa: S608
        return self._rows.number(sql, id=session_id, until=until)

    def finished(self, session_id: str, *, after: int, abandoned: int) -> list[tuple[str, int]]:
        """Returns (id, time) of a session's messages after a time, up to the first one that is still being written.

        A prompt is complete once an answer has begun, an answer once it is marked as completed or failed, or another
        one has begun. A message not changed since the time `abandoned` was left unfinished by a killed client.
        """
        sql = f"""select id, time_created, time_updated, case when json_valid(data) then json_extract(data,
            '$.role') end, case when json_valid(data) then coalesce(json_extract(data, '$.time.completed'),
            json_extract(data, '$.error')) is not null else 1 end from message where session_id = :id
            and time_created > :after and {_HAS_VALID_TIME} order by time_created, id"""  # noqa: S608
        messages = self._rows.all(sql, id=session_id, after=after)
        last_answer = max((index for index, row in enumerate(messages) if row[3] == "assistant"), default=-1)
        for index, (message, created_at, updated, _, is_done) in enumerate(messages):
            is_open = index >= last_answer and not is_done and max(updated, self._written(message)) >= abandoned
            if is_open:
                return [(session_id, time) for session_id, time, *_ in messages[:index] if time < created_at]
        return [(session_id, time) for session_id, time, *_ in messages]

    def _written(self, message: str) -> int:
        return self._rows.number("select max(time_updated) from part where message_id = :id", id=message)

    def messages_before(self, session_id: str) -> dict[str, tuple[str, int]]:
        """Returns each message of a session but the first -> (id, time) of the one written before it.

        Their times do not tell, because a clock may be set back.
        """
        sql = f"select id, time_created from message where session_id = :id and {_HAS_VALID_TIME} order by rowid"  # noqa: S608
        written = self._rows.all(sql, id=session_id)
        return {message: (before, at) for (before, at), (message, _) in itertools.pairwise(written)}

    def message(self, message_id: str, *, at: int, before: tuple[str, int] | None, limit: int) -> Message | None:
        """Returns the message of a time, after the one `before`, with its parts in order; None if it is gone.

        Reads at most `limit` characters of each part and of all. Raises TooLarge if the message itself is longer.
        Attachments are not read: they may be of any length.
        """
        sql = """select length(data) > :limit, case when length(data) > :limit then ''
            when json_valid(data) then json_remove(data, '$.summary.diffs') else data end from message where id = :id"""
        if (message := self._rows.first(sql, id=message_id, limit=limit)) is None:
            return None
        if message[0]:
            raise TooLarge(f"a message beyond {limit} characters")
        parts = list[str]()
        bad = list[str | None]()
        for part in self._rows.column("select id from part where message_id = :id order by id", id=message_id):
            state, data = self._rows.first(_PART, id=part, limit=limit) or ("", "")
            if state == "used" and len(data) <= limit:
                parts.append(str(data))
                limit -= len(data)
            elif state:
                bad.append(str(data) if state == "damaged" else None)
        earlier = self._name(*before) if before else ""
        return Message(at, self._name(message_id, at), earlier, str(message[1]), tuple(parts), tuple(bad))

    def _name(self, message_id: str, at: int) -> str:
        """Names a message by its time, its role and a hash of its texts and calls."""
        role = "select case when json_valid(data) then json_extract(data, '$.role') end from message where id = :id"
        sql = """select substr(coalesce(json_extract(data, '$.callID'), json_extract(data, '$.text'), ''), 1, :most)
            from (select id, case when length(data) <= :longest
            and json_valid(data) then data else '{}' end as data from part where message_id = :id)
            where json_extract(data, '$.type') in ('text', 'tool') and not coalesce(json_extract(data, '$.synthetic'),
            0) and not coalesce(json_extract(data, '$.ignored'), 0) order by id"""
        parts = "\0".join(
            map(str, self._rows.column(sql, id=message_id, most=IDENTIFYING_CHARACTERS, longest=MAX_IDENTIFYING_BYTES))
        )
        digest = hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()
        return f"{at}{str(self._rows.value(role, id=message_id) or '-')[0]}{digest[:IDENTIFYING_DIGITS]}"


def _read_file_size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None
