"""Asks a provider within the day's cap, and keeps the ledger of it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import cast

from csmd.capture import project_identity
from csmd.config import Settings
from csmd.curator.contract import CapReached, NotAllowed, Provider, ProviderFailed, Question, Reason, Reply
from csmd.exclusions import Excludes
from csmd.privacy.redaction import redact
from csmd.store import files, ledger, provider_rows, workspaces
from csmd.store.core import Store
from csmd.store.ledger import Call
from csmd.store.provider_rows import ProviderRow
from csmd.store.sqlite import Rows

#: How long a provider that failed is left alone.
PAUSE = timedelta(hours=1)
#: Fewest bytes per token, on average; English has four and a half, Chinese four.
TOKEN_BYTES = 3
#: Tokens added to a question by provider: roles and, for the assistant, its description of the machine.
FRAME_TOKENS = {"assistant": 600}
USUAL_FRAME_TOKENS = 60
TIMEOUT_S = 120.0


def ask_within_cap(
    store: Store, provider: Provider, question: Question, *, now: str, settings: Settings, timeout_s: float = TIMEOUT_S
) -> Reply:
    """Asks a provider, and records in the ledger what its server counted.

    The question is redacted once more before it is sent. Its estimate is reserved in the transaction that reads the
    day's sum, so that concurrent calls cannot exceed the cap together; if this process dies, the reservation counts.
    Raises CapReached, NotAllowed or ProviderFailed if no provider was asked or none answered.
    """
    question = redact_question(question)
    seq = store.write(lambda rows: _reserve(rows, provider, question, now=now, settings=settings))
    try:
        reply = provider.ask(question, timeout_s=timeout_s)
    except ProviderFailed as error:
        store.write(partial(_note_failure, seq=seq, name=provider.name, error=error, now=now))
        raise
    store.write(lambda rows: _note_answer(rows, seq, provider.name, reply, now=now))
    return reply


def redact_question(question: Question) -> Question:
    """Returns a question without anything that the present rules call a secret: exactly what is sent."""
    return replace(question, system=redact(question.system, Counter()), text=redact(question.text, Counter()))


def estimate(provider: str, question: Question) -> int:
    """Estimates the tokens of a question, rather too high."""
    written = len(f"{question.system}{question.text}".encode("utf-8", "replace"))
    return written // TOKEN_BYTES + FRAME_TOKENS.get(provider, USUAL_FRAME_TOKENS)


def paused_until(provider: ProviderRow, *, now: str) -> str:
    """Returns until when a failed provider is left alone, "" if it may be asked, also if the clock was set back."""
    if not provider.failed_at:
        return ""
    failed, at = datetime.fromisoformat(provider.failed_at), datetime.fromisoformat(now)
    until = failed + PAUSE
    return until.strftime("%Y-%m-%dT%H:%M:%S.000Z") if failed <= at < until else ""


def _reserve(rows: Rows, provider: Provider, question: Question, *, now: str, settings: Settings) -> int:
    """Reserves the estimate in the ledger; raises why the question is not asked."""
    _check_project(rows, question.project, settings)
    last = provider_rows.find_provider(rows, provider.name)
    if last is not None and question.purpose != "test" and (until := paused_until(last, now=now)):
        what = f"{provider.name} failed ({last.failure}) and is left alone until {until[11:16]} UTC"
        raise ProviderFailed(cast("Reason", last.failure), what, hint="csmd provider test")
    estimated, spent = estimate(provider.name, question), ledger.tokens_spent_on(rows, now[:10])
    # The counts of this model's server say how far off the estimate may be.
    tokens = math.ceil(estimated * ledger.compute_underestimate_factor(rows, provider.name, provider.model))
    cap = settings.curator_daily_tokens
    if spent + tokens + question.most_tokens > cap:
        what = f"{spent:,} of {cap:,} tokens are spent today, and this takes {tokens + question.most_tokens:,} at most"
        raise CapReached(what, hint="try again tomorrow (UTC), or raise curator.daily_tokens")
    call = Call(
        at=now, project_seq=workspaces.project_at_path(rows, question.project) or 0, purpose=question.purpose,
        provider=provider.name, model=provider.model, estimate_in=estimated, tokens_in=tokens, tokens_out=question.most_tokens,
    )  # fmt: skip
    return ledger.reserve_call(rows, call)


def may_send(rows: Rows, project: str, settings: Settings) -> bool:
    """Whether text of a project may be sent."""
    try:
        _check_project(rows, project, settings)
    except NotAllowed:
        return False
    return True


def _check_project(rows: Rows, project: str, settings: Settings) -> None:
    """Raises NotAllowed for a project that the user excluded or walled, unless `curator.projects` names it."""
    if not project or project in settings.curator_projects:
        return
    excludes = Excludes(projects=settings.privacy_exclude, is_marked=files.has_off_mark)
    if excludes.covers_directory(project) or excludes.has_off_mark(project):
        raise NotAllowed(f"{project} is left out", hint="`csmd config set curator.projects` names what may be sent")
    if project_identity.find_wall(rows, project):
        raise NotAllowed(f"{project} is walled", hint="`csmd config set curator.projects` names what may be sent")


def _note_failure(rows: Rows, *, seq: int, name: str, error: ProviderFailed, now: str) -> None:
    ledger.settle_call(rows, seq, state=error.reason, tokens=error.spent)
    provider_rows.record_failure(rows, name, at=now, failure=error.reason)


def _note_answer(rows: Rows, seq: int, name: str, reply: Reply, *, now: str) -> None:
    tokens = reply.tokens_in, reply.tokens_out
    ledger.settle_call(rows, seq, state="answered", tokens=tokens, is_estimated=reply.is_estimated)
    provider_rows.record_answer(rows, name, at=now)
