"""Providers of language models that a person added."""

from __future__ import annotations

from dataclasses import dataclass

from csmd.store.row_values import column_values, columns
from csmd.store.sqlite import Rows


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
    """Returns the providers, the last added first."""
    return rows.read(ProviderRow, f"select {_COLUMNS} from providers p order by p.seq desc")  # noqa: S608


def choose_provider(rows: Rows) -> ProviderRow | None:
    """Returns the provider to ask: the last added one with a model, or None."""
    return next((provider for provider in list_providers(rows) if provider.model), None)


def find_provider(rows: Rows, name: str) -> ProviderRow | None:
    """Returns the provider with this name, or None."""
    return next((provider for provider in list_providers(rows) if provider.name == name), None)


def record_answer(rows: Rows, name: str, *, at: str) -> None:
    """Records that a provider answered."""
    sql = "update providers set answered_at = :at, failed_at = '', failing_since = '', failure = '' where name = :name"
    rows.run(sql, name=name, at=at)


def record_failure(rows: Rows, name: str, *, at: str, failure: str) -> None:
    """Records that a provider failed, and since when."""
    sql = """update providers set failed_at = :at, failure = :failure,
        failing_since = case when failing_since = '' then :at else failing_since end where name = :name"""
    rows.run(sql, name=name, at=at, failure=failure)
