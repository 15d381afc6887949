"""The ledger of every call of a language model: its purpose and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from csmd.store.row_values import column_values
from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call about to be made: the estimate for its question, and the tokens reserved for it."""

    at: str
    project_seq: int
    purpose: str
    provider: str
    model: str
    estimate_in: int
    tokens_in: int
    tokens_out: int


def tokens_spent_on(rows: Rows, day: str) -> int:
    """Returns the tokens of a day that count towards its cap: all except those of texts for vectors."""
    sql = "select coalesce(sum(tokens_in + tokens_out), 0) from calls where day = :day and purpose <> 'embed'"
    return rows.number(sql, day=day)


def reserve_call(rows: Rows, call: Call) -> int:
    """Records a call before it is made and returns its row; what is reserved counts until `settle_call`."""
    return rows.insert_keyed("calls", day=call.at[:10], **column_values(call))


def compute_underestimate_factor(rows: Rows, provider: str, model: str) -> float:
    """Returns the greatest ratio of counted to estimated tokens of a model's recent questions; at least 1."""
    sql = """select tokens_in, estimate_in from calls where provider = :provider
        and model = :model and state = 'answered' and is_estimated = 0 order by seq desc limit 20"""
    counted = rows.all(sql, provider=provider, model=model)
    return max([1.0, *(float(tokens / estimate) for tokens, estimate in counted if estimate)])


def settle_call(
    rows: Rows, seq: int, *, state: str, tokens: tuple[int, int] | None, is_estimated: bool = False
) -> None:
    """Records how a call ended and the tokens that the server counted; None keeps the estimate."""
    rows.update("calls", seq, state=state)
    if tokens is not None:
        rows.update("calls", seq, tokens_in=tokens[0], tokens_out=tokens[1], is_estimated=int(is_estimated))


class DailySpending(NamedTuple):
    """The calls of one day for one project, purpose and model, and their tokens."""

    day: str
    project_seq: int
    purpose: str
    provider: str
    model: str
    calls: int
    failed: int
    estimated: int
    tokens_in: int
    tokens_out: int


def list_spending_by_day(rows: Rows, *, since: str) -> list[DailySpending]:
    """Returns the calls and tokens since a day by day, project, purpose and model, the latest day first."""
    sql = """select day, project_seq, purpose, provider, model, count(*), sum(case when state = 'answered' then 0
        else 1 end), sum(is_estimated), sum(tokens_in), sum(tokens_out) from calls where day >= :since
        group by day, project_seq, purpose, provider, model order by day desc, sum(tokens_in + tokens_out) desc"""
    return rows.read(DailySpending, sql, since=since)
