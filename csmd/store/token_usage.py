"""The tokens that models took, by message, and the tokens that csmd injected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True)
class MessageTokens:
    """The tokens of one message of a conversation (a `Turn.stream`), as its transcript reports them."""

    stream: str
    message_id: str
    input: int
    output: int
    cache_read: int
    cache_write: int


@dataclass(frozen=True, slots=True)
class TokenSum:
    """The messages of a conversation and their tokens."""

    messages: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


def record_usage(rows: Rows, spent: Iterable[MessageTokens]) -> None:
    """Records the tokens of messages, in the transaction of their turns; the last report of a message counts."""
    for message in {(message.stream, message.message_id): message for message in spent}.values():
        values = asdict(message)
        session = rows.find("sessions", "seq", id=values.pop("stream"))
        if session is not None:
            rows.upsert("usage", "session_seq, message_id", session_seq=session, **values)


def sum_usage(rows: Rows, session_seq: int) -> TokenSum:
    """Returns the token usage of one conversation, without its sub-agents."""
    return _sum(rows, "usage u where u.session_seq = :session", session=session_seq)


def sum_usage_of_agents(rows: Rows, session_id: str) -> TokenSum:
    """Returns the token usage of a session's sub-agents together."""
    return _sum(rows, "sessions s join usage u on u.session_seq = s.seq where s.parent = :id", id=session_id)


def _sum(rows: Rows, source: str, **values: Any) -> TokenSum:
    sums = ", ".join(f"coalesce(sum(u.{name}), 0)" for name in ("input", "output", "cache_read", "cache_write"))
    return rows.read(TokenSum, f"select count(*), {sums} from {source}", **values)[0]  # noqa: S608


def sum_tokens_injected(rows: Rows, session_id: str) -> tuple[int, int]:
    """Returns (injections, tokens) that csmd put into a session."""
    sql = "select count(*), coalesce(sum(tokens), 0) from injections where session_id = :id"
    return rows.first(sql, id=session_id) or (0, 0)
