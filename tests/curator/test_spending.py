"""The ledger is what the server counted, and the day's cap holds whatever happens at the same time or to csmd."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from curator_fixtures import NOW, Direct, question, row
from machine import eventually
from scripted_models import Answer, ScriptedModels

from csmd.config import Settings
from csmd.conversation import Project
from csmd.curator import spending
from csmd.curator.contract import CapReached, NotAllowed, ProviderFailed, Reply
from csmd.store import ledger, projects, provider_rows, workspaces
from csmd.store.core import Store

TODAY = NOW[:10]


def ask(store: Store, server: ScriptedModels, *, now: str = NOW, cap: int = 40_000, **asked: Any) -> Reply:
    """Asks the server within a cap."""
    settings = Settings(curator_daily_tokens=cap)
    return spending.ask_within_cap(
        store, Direct(row(server)), question(**asked), now=now, settings=settings, timeout_s=10
    )


def spent(store: Store) -> int:
    return store.read(lambda rows: ledger.tokens_spent_on(rows, TODAY))


@pytest.mark.invariant("The ledger is what the server counted, and no call passes the day's cap")
def test_the_ledger_is_what_the_server_counted(store: Store) -> None:
    answers = [Answer(text="One."), Answer(text="The second, since it names the file."), Answer(status=500)]
    with ScriptedModels(answers) as server:
        ask(store, server)
        ask(store, server, text="And which of these? " * 40, purpose="test")
        with pytest.raises(ProviderFailed):
            ask(store, server)
        assert spent(store) == sum(server.counted)
    sums = store.read(lambda rows: ledger.list_spending_by_day(rows, since=TODAY))
    assert {(one.purpose, one.calls, one.failed, one.estimated) for one in sums} == {
        ("sessions", 2, 1, 0),
        ("test", 1, 0, 0),
    }
    assert sum(one.tokens_in for one in sums) == server.counted[0]


@pytest.mark.invariant("The ledger is what the server counted, and no call passes the day's cap")
def test_eight_calls_at_once_do_not_pass_the_cap_together(store: Store) -> None:
    everybody = threading.Barrier(8)

    def one_of_eight(_: int) -> str:
        everybody.wait(30)
        try:
            ask(store, server, cap=500)
        except CapReached as error:
            return error.what
        return ""

    # Nobody is answered before all that may ask have asked: what is reserved must hold the others off.
    may_ask = 500 // (spending.estimate("openai", question()) + question().most_tokens)
    with ScriptedModels(lambda *_: eventually(lambda: len(server.asked) >= may_ask) and Answer()) as server:
        with ThreadPoolExecutor(8) as pool:
            refused = [what for what in pool.map(one_of_eight, range(8)) if what]
        assert 0 < may_ask < 8 and len(server.asked) == 8 - len(refused) == may_ask
        assert spent(store) == sum(server.counted) <= 500
    assert "of 500 tokens are spent today" in refused[0]


KILLED = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from curator_fixtures import NOW, Direct, question
from csmd.config import Settings
from csmd.curator import spending
from csmd.store.core import Store
from csmd.store.provider_rows import ProviderRow
row = ProviderRow(name="openai", place={place!r}, model="small", key_from="", added_at=NOW)
spending.ask_within_cap(Store(Path({database!r}), now=NOW), Direct(row), question(), now=NOW, settings=Settings())
"""


@pytest.mark.invariant("The ledger is what the server counted, and no call passes the day's cap")
def test_what_a_kill_leaves_counts_in_full(tmp_path: Path) -> None:
    database = tmp_path / "csmd.db"
    with ScriptedModels([Answer(waits=True), Answer()]) as server:
        code = KILLED.format(path=sys.path, place=f"{server.url}/v1", database=str(database))
        child = subprocess.Popen([sys.executable, "-c", code])
        eventually(lambda: server.asked or child.poll() is not None)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert len(server.asked) == 1
        store = Store(database, now=NOW)
        estimate = spending.estimate("openai", question()) + question().most_tokens
        assert spent(store) == estimate
        with pytest.raises(CapReached):
            ask(store, server, cap=2 * estimate - 1)
        ask(store, server, cap=2 * estimate)
        store.close()


def test_a_model_that_counts_more_than_was_estimated_is_estimated_higher(store: Store) -> None:
    estimate = spending.estimate("openai", question())
    with ScriptedModels([Answer(counts=3 * estimate), Answer()]) as server:
        ask(store, server)
        left = spent(store) + 3 * estimate + question().most_tokens
        with pytest.raises(CapReached):
            ask(store, server, cap=left - 1)
        ask(store, server, cap=left)


def test_a_new_day_has_its_own_cap(store: Store) -> None:
    with ScriptedModels() as server:
        ask(store, server, cap=130)
        with pytest.raises(CapReached):
            ask(store, server, cap=130)
        ask(store, server, cap=130, now="2026-01-02T00:00:00.000Z")


@pytest.mark.invariant("What a language model is asked is redacted once more")
def test_nothing_is_sent_that_redaction_would_take(store: Store) -> None:
    token = "ghp_" + "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
    with ScriptedModels() as server:
        ask(store, server, text=f"the deploy failed with {token}", system=f"You judge. {token}")
        sent = [message["content"] for message in server.asked[0]["messages"]]
    assert sent == ["You judge. [redacted:github-token]", "the deploy failed with [redacted:github-token]"]


def test_a_provider_that_fails_is_left_alone_for_an_hour_and_a_test_asks_it_at_once(store: Store) -> None:
    with ScriptedModels([Answer(raw=b"no"), Answer()]) as server:
        store.write(lambda rows: provider_rows.add_provider(rows, row(server)))
        with pytest.raises(ProviderFailed):
            ask(store, server)
        before = spent(store)
        with pytest.raises(ProviderFailed, match=r"left alone until 11:00 UTC"):
            ask(store, server, now="2026-01-01T10:59:00.000Z")
        assert len(server.asked) == 1 and spent(store) == before
        known = store.read(lambda rows: provider_rows.find_provider(rows, "openai"))
        assert known is not None and (known.failure, known.failing_since) == ("babble", NOW)
        ask(store, server, now="2026-01-01T10:30:00.000Z", purpose="test")
        ask(store, server, now="2026-01-01T10:31:00.000Z")
        known = store.read(lambda rows: provider_rows.find_provider(rows, "openai"))
        assert known is not None and (known.failure, known.answered_at[11:16]) == ("", "10:31")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder: (folder / ".csmd-off").touch(), "is left out"),
        (lambda folder: Settings(privacy_exclude=(f"{folder.parent}/sho*",)), "is left out"),
        (lambda folder: "wall", "is walled"),
    ],
)
def test_a_project_that_is_walled_or_left_out_is_asked_about_only_by_its_name(
    store: Store, tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    made = make(folder)
    settings = made if isinstance(made, Settings) else Settings()

    def wall(rows: Any) -> None:
        place = Project(key="key-shop", root=str(folder), name="shop", kind="path")
        project = projects.ensure(rows, place, now=NOW)
        if made == "wall":
            workspaces.join(rows, workspaces.ensure(rows, "clients", now=NOW), project)

    store.write(wall)
    asked = question(project=str(folder))
    with ScriptedModels() as server:
        with pytest.raises(NotAllowed, match=why):
            spending.ask_within_cap(store, Direct(row(server)), asked, now=NOW, settings=settings)
        assert not server.asked and not spent(store)
        named = Settings(privacy_exclude=settings.privacy_exclude, curator_projects=(str(folder),))
        spending.ask_within_cap(store, Direct(row(server)), asked, now=NOW, settings=named)
    (one,) = store.read(lambda rows: ledger.list_spending_by_day(rows, since=TODAY))
    assert store.read(lambda rows: projects.name_of(rows, one.project_seq)) == "shop"
