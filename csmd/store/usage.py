"""What sessions took: the tokens of each message of a transcript once, summed; and what csmd itself put before them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True)
class Spent:
    """The tokens that a message of a conversation (a `Turn.stream`) took, as its transcript says."""

    stream: str
    message_id: str
    input: int
    output: int
    cache_read: int
    cache_write: int


@dataclass(frozen=True, slots=True)
class Sum:
    """The messages of a conversation and their tokens."""

    messages: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


def note(rows: Rows, spent: Iterable[Spent]) -> None:
    """Writes down what messages took, in the transaction of their turns; of a message that comes again the latest."""
    for one in {(one.stream, one.message_id): one for one in spent}.values():
        rows.run(
            "insert into usage (session_seq, message_id, input, output, cache_read, cache_write) "
            "select s.seq, :message, :input, :output, :read, :write from sessions s where s.id = :stream "
            "on conflict (session_seq, message_id) do update set input = excluded.input, output = excluded.output, "
            "cache_read = excluded.cache_read, cache_write = excluded.cache_write",
            message=one.message_id,
            input=one.input,
            output=one.output,
            read=one.cache_read,
            write=one.cache_write,
            stream=one.stream,
        )


def of_session(rows: Rows, session_seq: int) -> Sum:
    """What one conversation took; a sub-agent's is one of its own."""
    row = rows.one(
        "select count(*), coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0), "
        "coalesce(sum(cache_write), 0) from usage where session_seq = :session",
        session=session_seq,
    )
    return Sum(*map(int, row or ()))


def of_agents(rows: Rows, ident: str) -> Sum:
    """What the sub-agents of a session took together."""
    row = rows.one(
        "select count(*), coalesce(sum(u.input), 0), coalesce(sum(u.output), 0), coalesce(sum(u.cache_read), 0), "
        "coalesce(sum(u.cache_write), 0) from sessions s join usage u on u.session_seq = s.seq where s.parent = :id",
        id=ident,
    )
    return Sum(*map(int, row or ()))


def injected(rows: Rows, ident: str) -> tuple[int, int]:
    """(how often, tokens) csmd put something before a session in all."""
    row = rows.one("select count(*), coalesce(sum(tokens), 0) from injections where session_id = :id", id=ident)
    return (0, 0) if row is None else (int(row[0]), int(row[1]))
