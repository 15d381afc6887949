"""Finds the user's language model, decides whether it may be asked now, and carries out tasks that ask it."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from csmd import machine
from csmd.config import Settings, started_by
from csmd.curator import spending
from csmd.curator.contract import Question
from csmd.curator.process import ProcessProvider, build_command
from csmd.daemon.context import Context, Task, Work, now_iso
from csmd.daemon.task_steps import run_in_thread
from csmd.embedding import installed_models
from csmd.errors import BadInput
from csmd.store import ledger, provider_rows
from csmd.store.sqlite import Rows
from csmd.vocabulary import QUIET_S

#: How often the tokens sent for vectors are written to the ledger.
BOOK_EVERY_S = 3_600.0
TEST_QUESTION = Question(
    purpose="test", project="", system="You answer with one word.", text="Say yes if you can read this.", most_tokens=20
)


def find_provider(context: Context, name: str = "") -> ProcessProvider | None:
    """Returns the provider with this name, or the one in use; None if there is none.

    The provider runs in a process of its own.
    """
    find = partial(provider_rows.find_provider, name=name) if name else provider_rows.choose_provider
    row = context.store.read(find)
    return None if row is None else ProcessProvider(row, is_managed=started_by() == "systemd")


def explain_not_now(context: Context) -> str:
    """Returns why no provider may be asked unprompted now, or "": active sessions, or battery power."""
    if machine.on_mains() is False:
        return "on battery"
    return "a session is at work" if context.calm_s() < QUIET_S["model"] else ""


def try_provider(context: Context, task: Task) -> Work:
    """Asks a provider for one word, even if it failed before; returns the time and the tokens that it took."""
    name, began = str(task.order["name"]), time.monotonic()
    provider = find_provider(context, name)
    if provider is None:
        what = f"no provider {name!r} was added" if name else "no provider was added"
        raise BadInput(what, hint="csmd provider add --help")
    yield {"step": f"asking {provider.name}"}
    settings = context.config.settings
    reply = yield from run_in_thread(
        lambda: spending.ask_within_cap(context.store, provider, TEST_QUESTION, now=now_iso(), settings=settings)
    )
    return {
        "provider": provider.name, "model": provider.model, "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "is_estimated": reply.is_estimated, "took_s": round(time.monotonic() - began, 1),
    }  # fmt: skip


def use_for_vectors(context: Context, task: Task) -> Work:
    """Asks a provider for a first vector and, if it makes one, creates the model's folder; returns the dimension."""
    name, model = str(task.order["name"]), str(task.order["model"])
    provider = find_provider(context, name)
    if provider is None:
        raise BadInput(f"no provider {name!r} was added", hint=f"csmd provider add {name}")
    yield {"step": f"asking {name}"}
    vectors = yield from run_in_thread(lambda: provider.embed(model, ["a first text"], timeout_s=spending.TIMEOUT_S))
    row, dim, folder = provider.row, len(vectors.vectors[0]), context.config.paths.models
    endpoint = {"provider": name, "place": row.place, "model": model, "key_from": row.key_from, "dim": dim}
    installed_models.write_endpoint(folder, f"{name}/{model}", endpoint)
    installed_models.choose_model(folder, "")
    _write_ledger(context, f"{name}/{model}", vectors.tokens_in, is_estimated=vectors.is_estimated)
    return {"model": f"{name}/{model}", "dim": dim}


def build_endpoint_command(folder: Path, *, idle_s: float) -> tuple[list[str], dict[str, str]]:
    """Returns the command and the environment of a worker that gets its vectors from an endpoint."""
    return build_command(
        "csmd.curator.endpoint", str(folder), "--idle-s", str(idle_s), is_managed=started_by() == "systemd",
        key_from=str(installed_models.read_endpoint(folder)["key_from"]),
    )  # fmt: skip


def book_pending_vectors(context: Context) -> bool:
    """Books the tokens sent for vectors since the last call; False if none."""
    if tokens := context.embedder.take_sent_tokens():
        _write_ledger(context, (context.model_name() or "").partition("@")[0], tokens, is_estimated=True)
    return tokens > 0


def _write_ledger(context: Context, model: str, tokens: int, *, is_estimated: bool) -> None:
    provider, _, name = model.partition("/")
    call = ledger.Call(
        at=now_iso(), project_seq=0, purpose="embed", provider=provider, model=name, estimate_in=tokens,
        tokens_in=tokens, tokens_out=0,
    )  # fmt: skip

    def write(rows: Rows) -> None:
        seq = ledger.reserve_call(rows, call)
        ledger.settle_call(rows, seq, state="answered", tokens=(tokens, 0), is_estimated=is_estimated)

    context.store.write(write)


def describe_provider(rows: Rows, settings: Settings, *, now: str) -> dict[str, Any] | None:
    """Returns the provider part of `csmd status`; None if no provider was added."""
    provider = provider_rows.choose_provider(rows)
    if provider is None:
        return None
    return {
        "name": provider.name, "model": provider.model, "answered_at": provider.answered_at,
        "failure": provider.failure,
        "failing_since": provider.failing_since, "paused_until": spending.paused_until(provider, now=now),
        "tokens": ledger.tokens_spent_on(rows, now[:10]), "cap": settings.curator_daily_tokens,
    }  # fmt: skip
