"""Writes OpenCode's database as OpenCode does: rows that are made, and changed until they are finished.

Not a test: found through tests/conftest.py. Only the tables and columns that hold sessions; times are milliseconds.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

SCHEMA = """
create table session (id text primary key, project_id text not null, parent_id text, directory text not null,
  title text not null, version text not null, permission text, time_created integer not null, time_updated integer not null);
create table message (id text primary key, session_id text not null, time_created integer not null,
  time_updated integer not null, data text not null);
create table part (id text primary key, message_id text not null, session_id text not null, time_created integer not null,
  time_updated integer not null, data text not null);
create table credential (id text primary key, value text not null);
create index message_session_time_created_id_idx on message (session_id, time_created, id);
create index part_message_id_id_idx on part (message_id, id);
"""
FROM_RUN = json.dumps([{"permission": "question", "pattern": "*", "action": "deny"}])


class Database:
    """Owns the connection of a client that writes; `clock` is its time, which goes on by a second with each row."""

    def __init__(self, path: Path, clock: int = 1_770_000_000_000) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.clock = path, clock
        self._made = 0
        self.rows = sqlite3.connect(path, isolation_level=None)
        self.rows.execute("pragma journal_mode = wal")
        if not self.rows.execute("select 1 from sqlite_master").fetchone():
            self.rows.executescript(SCHEMA)
            self.rows.execute("insert into credential values ('c', 'the key of a provider')")

    def tick(self) -> int:
        self.clock += 1000
        return self.clock

    def ident(self, kind: str) -> str:
        self._made += 1
        return f"{kind}_{self.clock:012x}{self._made:08d}"

    def session(self, directory: str, *, parent: str | None = None, title: str = "Fares", permission: str = "") -> str:
        """A session; its id."""
        now, ident = self.tick(), self.ident("ses")
        self.rows.execute(
            "insert into session values (?, 'p', ?, ?, ?, '1.18.33', ?, ?, ?)",
            (ident, parent, directory, title, permission or None, now, now),
        )
        return ident

    def message(self, session: str, data: dict[str, Any], at: int = 0) -> str:
        """A message without parts; its id."""
        now, ident = self.tick(), self.ident("msg")
        at = at or now
        value = {"time": {"created": at}, **data}
        self.rows.execute("insert into message values (?, ?, ?, ?, ?)", (ident, session, at, now, json.dumps(value)))
        return ident

    def part(self, message: str, data: dict[str, Any]) -> str:
        """A part of a message; its id."""
        now, ident = self.tick(), self.ident("prt")
        (session,) = self.rows.execute("select session_id from message where id = ?", (message,)).fetchone()
        self.rows.execute(
            "insert into part values (?, ?, ?, ?, ?, ?)", (ident, message, session, now, now, json.dumps(data))
        )
        return ident

    def change(self, table: str, ident: str, data: dict[str, Any]) -> None:
        """Puts fields into the data of a row."""
        (then,) = self.rows.execute(f"select data from {table} where id = ?", (ident,)).fetchone()
        value = json.dumps(json.loads(then) | data)
        self.rows.execute(f"update {table} set data = ?, time_updated = ? where id = ?", (value, self.tick(), ident))

    def prompt(self, session: str, *texts: str, more: tuple[dict[str, Any], ...] = ()) -> str:
        """A prompt and the parts that the client adds to it; the message's id."""
        message = self.message(session, {"role": "user", "agent": "build"})
        for part in (*({"type": "text", "text": text} for text in texts), *more):
            self.part(message, part)
        return message

    def begin(self, session: str, cwd: str = "", **data: Any) -> str:
        """An answer that is being written; the message's id."""
        more = {"path": {"cwd": cwd, "root": cwd}} if cwd else {}
        return self.message(session, {"role": "assistant", "modelID": "m", **more, **data})

    def say(self, message: str, text: str) -> None:
        """Text of an answer."""
        self.part(message, {"type": "text", "text": text, "time": {"start": self.clock, "end": self.clock}})

    def call(self, message: str, tool: str, given: dict[str, Any], **state: Any) -> None:
        """A tool call and what came of it."""
        state = {"status": "completed", "output": "", **state, "input": given}
        self.part(message, {"type": "tool", "tool": tool, "callID": self.ident("call"), "state": state})

    def finish(self, message: str, **data: Any) -> None:
        """Marks an answer as finished."""
        tokens = {"input": 100, "output": 20, "reasoning": 5, "cache": {"read": 40, "write": 3}}
        self.part(message, {"type": "step-finish", "reason": "stop"})
        (value,) = self.rows.execute("select data from message where id = ?", (message,)).fetchone()
        time = {**json.loads(value)["time"], "completed": self.tick()}
        self.change("message", message, {"time": time, "tokens": tokens, **data})

    def answer(self, session: str, text: str, **data: Any) -> str:
        """A finished answer; the message's id."""
        message = self.begin(session, **data)
        self.say(message, text)
        self.finish(message)
        return message

    def fork(self, session: str) -> str:
        """Copies a session as OpenCode forks it: new ids, the old times and texts."""
        directory, title = self.rows.execute("select directory, title from session where id = ?", (session,)).fetchone()
        copy = self.session(directory, title=f"{title} (fork #1)")
        for ident, at, data in self.messages(session):
            message = self.message(copy, json.loads(data), at)
            for (part,) in self.rows.execute(
                "select data from part where message_id = ? order by id", (ident,)
            ).fetchall():
                self.part(message, json.loads(part))
        return copy

    def revert(self, message: str) -> None:
        """Deletes a message and those behind it, as the prompt does that follows a revert."""
        session, at = self.rows.execute(
            "select session_id, time_created from message where id = ?", (message,)
        ).fetchone()
        gone = [ident for ident, time, _ in self.messages(session) if time >= at]
        for ident in gone:
            self.rows.execute("delete from part where message_id = ?", (ident,))
            self.rows.execute("delete from message where id = ?", (ident,))

    def messages(self, session: str) -> list[tuple[str, int, str]]:
        """(id, time, data) of the messages of a session."""
        sql = "select id, time_created, data from message where session_id = ? order by time_created, id"
        return self.rows.execute(sql, (session,)).fetchall()

    def close(self) -> None:
        self.rows.close()
