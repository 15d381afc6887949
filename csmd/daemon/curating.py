"""The language model that is asked, whether it may be asked now, and asking it while other work goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from itertools import count
from typing import Any, TypeVar

from csmd import machine
from csmd.config import Settings, started_by
from csmd.curator import spending
from csmd.curator.contract import Question
from csmd.curator.process import ProcessProvider
from csmd.daemon.context import Context, Task, Work, now_iso
from csmd.errors import BadInput
from csmd.store import ledger
from csmd.store.ledger import ProviderRow
from csmd.store.sqlite import Rows

T = TypeVar("T")
#: How long the background thread waits for an answer before it looks at other work.
LOOK_S = 0.05
#: How long no session may have reported anything.
QUIET_S = 60.0
TEST = Question(
    purpose="test", project="", system="You answer with one word.", text="Say yes if you can read this.", most_tokens=20
)


def asked_provider(rows: Rows) -> ProviderRow | None:
    """The provider that is asked: of those with a model the one that was added last; None where there is none."""
    return next((provider for provider in ledger.providers(rows) if provider.model), None)


def find_provider(context: Context, name: str = "") -> ProcessProvider | None:
    """The provider of this name, or the one that is asked, which is asked in a process of its own; None for none."""
    row = context.store.read(lambda rows: ledger.find_provider(rows, name) if name else asked_provider(rows))
    return None if row is None else ProcessProvider(row, is_managed=started_by() == "systemd")


def why_not_now(context: Context) -> str:
    """Why nobody is asked by itself now: the user works, or the machine runs on battery; "" where nothing speaks against it."""
    if machine.on_mains() is False:
        return "on battery"
    return "a session is at work" if time.monotonic() - context.heard_at < QUIET_S else ""


def in_thread(work: Callable[[], T]) -> Generator[None, None, T]:
    """Does work that waits for others on a thread of its own, in steps; its result, or its error."""
    wait = machine.start_in_thread(lambda: (work(),))
    for number in count(1):
        if (done := wait(number * LOOK_S)) is not None:
            return done[0]
        yield
    raise AssertionError("unreachable")


def try_provider(context: Context, task: Task) -> Work:
    """Asks a provider for one word, whatever it did before; how long it took and what it cost."""
    name, began = str(task.order["name"]), time.monotonic()
    provider = find_provider(context, name)
    if provider is None:
        raise BadInput(
            f"no provider {name!r} was added" if name else "no provider was added", hint="csmd provider add --help"
        )
    yield {"step": f"asking {provider.name}"}
    settings = context.config.settings
    reply = yield from in_thread(
        lambda: spending.ask_within_cap(context.store, provider, TEST, now=now_iso(), settings=settings)
    )
    return {
        "provider": provider.name, "model": provider.model, "tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out,
        "is_estimated": reply.is_estimated, "took_s": round(time.monotonic() - began, 1),
    }  # fmt: skip


def describe(rows: Rows, settings: Settings, *, now: str) -> dict[str, Any] | None:
    """The provider part of `csmd status`; None where no provider was added."""
    provider = asked_provider(rows)
    if provider is None:
        return None
    return {
        "name": provider.name, "model": provider.model, "answered_at": provider.answered_at, "failure": provider.failure,
        "failing_since": provider.failing_since, "paused_until": spending.paused_until(provider, now=now),
        "tokens": ledger.spent_on(rows, now[:10]), "cap": settings.curator_daily_tokens,
    }  # fmt: skip
