"""Providers of language models, and the ledger of every call: its purpose and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from csmd.store.sqlite import Rows, column_values, columns


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """A provider that a person added, with its latest state; times are "" for never.

    `place` is its base URL, or the path of the assistant's program. `key_from` names an environment variable, or is
    `keyring`, or "" for no key. While calls fail `failing_since` is when the first of them did, and `failure` the
    latest reason.
    """

    name: str
    place: str
    model: str
    key_from: str
    added_at: str
    answered_at: str = ""
    failed_at: str = ""
    failing_since: str = ""
    failure: str = ""


_COLUMNS = columns(ProviderRow, "p")


def add_provider(rows: Rows, provider: ProviderRow) -> None:
    """Adds a provider, or replaces the one with the same name."""
    remove_provider(rows, provider.name)
    rows.insert("providers", **column_values(provider))


def remove_provider(rows: Rows, name: str) -> bool:
    """Removes a provider; False if there is none. Its calls stay in the ledger."""
    return bool(rows.delete("providers", name=name))


def list_providers(rows: Rows) -> list[ProviderRow]:
    """The providers, the last added first."""
    return rows.read(ProviderRow, f"select {_COLUMNS} from providers p order by p.seq desc")  # noqa: S608


def provider_to_ask(rows: Rows) -> ProviderRow | None:
    """The provider to ask: the last added one with a model, or None."""
    return next((provider for provider in list_providers(rows) if provider.model), None)


def find_provider(rows: Rows, name: str) -> ProviderRow | None:
    """The provider with this name."""
    return next((provider for provider in list_providers(rows) if provider.name == name), None)


def record_answer(rows: Rows, name: str, *, at: str) -> None:
    """Records that a provider answered."""
    sql = "update providers set answered_at = :at, failed_at = '', failing_since = '', failure = '' where name = :name"
    rows.run(sql, name=name, at=at)


def record_failure(rows: Rows, name: str, *, at: str, failure: str) -> None:
    """Records that a provider failed, and since when."""
    sql = (
        "update providers set failed_at = :at, failure = :failure, "
        "failing_since = case when failing_since = '' then :at else failing_since end where name = :name"
    )
    rows.run(sql, name=name, at=at, failure=failure)


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
    """The tokens of a day that count towards its cap: all except those of texts for vectors."""
    sql = "select coalesce(sum(tokens_in + tokens_out), 0) from calls where day = :day and purpose <> 'embed'"
    return rows.number(sql, day=day)


def reserve_call(rows: Rows, call: Call) -> int:
    """Records a call before it is made and returns its row; what is reserved counts until `settle_call`."""
    return rows.insert_keyed("calls", day=call.at[:10], **column_values(call))


def underestimate_factor(rows: Rows, provider: str, model: str) -> float:
    """The greatest ratio of counted to estimated tokens of a model's recent questions; at least 1."""
    sql = (
        "select tokens_in, estimate_in from calls where provider = :provider and model = :model and state = 'answered' "
        "and is_estimated = 0 order by seq desc limit 20"
    )
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


def spending_by_day(rows: Rows, *, since: str) -> list[DailySpending]:
    """The calls and tokens since a day by day, project, purpose and model, the latest day first."""
    sql = (
        "select day, project_seq, purpose, provider, model, count(*), "
        "sum(case when state = 'answered' then 0 else 1 end), sum(is_estimated), sum(tokens_in), sum(tokens_out) "
        "from calls where day >= :since group by day, project_seq, purpose, provider, model "
        "order by day desc, sum(tokens_in + tokens_out) desc"
    )
    return [DailySpending(*row) for row in rows.all(sql, since=since)]
