"""Tools on language models: add, list, remove and try a provider, and the ledger of what calls cost."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date, timedelta
from urllib.parse import urlsplit

from csmd.curator import spending
from csmd.embedding import installed_models
from csmd.errors import BadInput, ConfigError
from csmd.recall import visibility
from csmd.store import ledger, projects, provider_rows
from csmd.store.provider_rows import ProviderRow
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, ToolContext, Tools, clamp_limit
from csmd.tools.present import as_json

TOOLS = Tools()
PROVIDER_NAMES = ("assistant", "ollama", "openai")
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LOOPBACK = re.compile(r"localhost|127(?:\.\d+){3}|::1")
MAX_LEDGER_DAYS = 3_650


@TOOLS.add("csm_provider_add", mutates=True, person="add a language model")
def _add_provider(ctx: ToolContext, rows: Rows, name: str, place: str, model: str = "", key_from: str = "") -> Json:
    """Add a language model that may be asked: the user's assistant, Ollama, or an OpenAI-compatible endpoint."""
    if name not in PROVIDER_NAMES:
        raise BadInput(f"there is no provider {name!r}", hint=f"name one of {', '.join(PROVIDER_NAMES)}")
    if key_from and not _VARIABLE.fullmatch(key_from):
        raise BadInput("a key is given by the name of its variable, not typed", hint="use --key-env NAME, or --keyring")
    if name != "assistant":
        place = _check_base_url(place, has_key=bool(key_from))
    provider = ProviderRow(name=name, place=place, model=model, key_from=key_from, added_at=ctx.now())
    ctx.store.write(lambda writing: provider_rows.add_provider(writing, provider))
    installed_models.update_endpoints(ctx.config.paths.models, name, place=place, key_from=key_from)
    return as_json(provider, "name place model key_from")


def _check_base_url(url: str, *, has_key: bool) -> str:
    """Returns a base URL without its last slash; ConfigError if it is not a URL, or would take a key unencrypted."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or "@" in parts.netloc:
        raise ConfigError(f"{url!r} is not a base URL", hint="write e.g. --url http://127.0.0.1:8080/v1")
    if has_key and parts.scheme == "http" and not _LOOPBACK.fullmatch(parts.hostname):
        raise ConfigError(f"the key would be sent to {parts.hostname} unencrypted", hint="use an https:// URL")
    return url.rstrip("/")


@TOOLS.add("csm_provider_list")
def _list_providers(ctx: ToolContext, rows: Rows) -> Json:
    """List the language models that were added, with the last answer or failure of each."""
    names = "name place model key_from added_at answered_at failing_since failure"
    providers = provider_rows.list_providers(rows)
    active = next((provider.name for provider in providers if provider.model), "")
    now = ctx.now()
    return {
        "providers": [
            as_json(
                provider, names, is_asked=provider.name == active, paused_until=spending.paused_until(provider, now=now)
            )
            for provider in providers
        ],
        "tokens": ledger.tokens_spent_on(rows, now[:10]), "cap": ctx.config.settings.curator_daily_tokens,
    }  # fmt: skip


@TOOLS.add("csm_provider_test", mutates=True)
def _test_provider(ctx: ToolContext, rows: Rows, name: str = "") -> Json:
    """Ask a language model for one word; returns a job."""
    return {"job": ctx.submit("provider", order={"name": name})}


@TOOLS.add("csm_provider_remove", mutates=True)
def _remove_provider(ctx: ToolContext, rows: Rows, name: str) -> Json:
    """Remove a language model; it is no longer asked, not even for vectors."""
    if not ctx.store.write(lambda writing: provider_rows.remove_provider(writing, name)):
        raise BadInput(f"no provider {name!r} was added", hint="`csmd provider list` shows them")
    installed_models.remove_endpoints(ctx.config.paths.models, name)
    return {"removed": name}


@TOOLS.add("csm_provider_embed", mutates=True, person="send texts for vectors")
def _use_for_vectors(ctx: ToolContext, rows: Rows, name: str, model: str) -> Json:
    """Try a provider's embedding model and record it; returns a job."""
    return {"job": ctx.submit("endpoint", order={"name": name, "model": model})}


@TOOLS.add("csm_ledger")
def _show_ledger(ctx: ToolContext, rows: Rows, days: int = 7, asking: str = "") -> Json:
    """Show what calls of language models cost, by day, project and purpose."""
    settings, today = ctx.config.settings, ctx.now()[:10]
    since = (date.fromisoformat(today) - timedelta(days=clamp_limit(days, MAX_LEDGER_DAYS) - 1)).isoformat()
    seen = visibility.find_visible_places(rows, asking=asking)
    lines = [
        as_json(
            spent, "day purpose provider model calls failed estimated tokens_in tokens_out",
            project=_name_project(rows, spent.project_seq, seen),
            price=spent.tokens_in / 1e6 * settings.curator_price_in + spent.tokens_out / 1e6 * settings.curator_price_out,
        )
        for spent in ledger.list_spending_by_day(rows, since=since)
    ]  # fmt: skip
    has_price = settings.curator_price_in > 0 or settings.curator_price_out > 0
    return {
        "since": since, "rows": lines, "today": ledger.tokens_spent_on(rows, today), "cap": settings.curator_daily_tokens,
        "has_price": has_price,
    }  # fmt: skip


def _name_project(rows: Rows, project: int, seen: Collection[int] | None) -> str:
    """Returns the name of a project; "(walled)" if it is behind a wall."""
    return projects.name_of(rows, project) if seen is None or project in seen or not project else "(walled)"
