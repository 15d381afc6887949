"""An answer that was paid for is kept until a dream has carried it out, and no longer than what it tells of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from curator_home import NOW, Model, add_session, all_memories, answer, dream, records
from scripted_models import Answer, ScriptedModels

from csmd.config import Settings
from csmd.curator import curate
from csmd.curator.contract import Question
from csmd.memory import remember
from csmd.store import ledger, purge
from csmd.store.core import Store, run_to_end

RULE, NOTE = (
    "from now on put migrations under db/migrate, never under db/",
    "Put migrations under db/migrate, never under db/.",
)
ORM = "we never use an ORM in the reports"
KEPT = "select text from kept_answers"
#: Asks about all that waits as a dream does, says so, and waits to be killed.
ASKED = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from curator_fixtures import Direct
from curator_home import NOW
from csmd.config import Settings
from csmd.curator import curate, spending
from csmd.store.core import Store, run_to_end
from csmd.store.provider_rows import ProviderRow
store, settings = Store(Path({database!r}), now=NOW), Settings()
provider = Direct(ProviderRow(name="openai", place={place!r}, model="small", key_from="", added_at=NOW))
def ask_one(question):
    yield
    return spending.ask_within_cap(store, provider, question, now=NOW, settings=settings, timeout_s=10)
run_to_end(curate.ask(store, ask_one, may_ask=lambda: True, now=NOW, settings=settings))
print("answered", flush=True)
sys.stdin.read()
"""


def says(words: str, note: str) -> Model:
    """A model that writes one note of what says these words, of a session where something does."""

    def reply(sent: list[dict[str, str]]) -> str:
        offered = [one for one in sent if "candidate" in one and words in one["says"]]
        return answer([{"cites": [one["candidate"]], "note": note} for one in offered])

    return reply


def kept(store: Store) -> list[str]:
    return store.read(lambda rows: rows.column(KEPT))


def break_off(store: Store, model: Model, *, now: str = NOW) -> None:
    """Asks as a dream does that comes no further."""

    def ask_one(question: Question):  # type: ignore[no-untyped-def]
        yield
        return curate.Reply(text=model(records(question)), tokens_in=1, tokens_out=1)

    run_to_end(curate.ask(store, ask_one, may_ask=lambda: True, now=now, settings=Settings()))


@pytest.mark.invariant("An answer of a language model that was paid for is not paid for again")
def test_what_was_answered_before_a_kill_is_believed_by_the_next_dream_which_asks_nothing(tmp_path: Path) -> None:
    database = tmp_path / "csmd.db"
    store = Store(database, now=NOW)
    add_session(store, "s1", [("user", RULE), ("assistant", "Done.")], day=1)
    add_session(store, "s2", [("user", ORM), ("assistant", "Done.")], day=2)
    store.close()
    notes = [answer([{"cites": ["c1"], "note": "Never use an ORM in the reports."}]), answer([{"cites": ["c1"], "note": NOTE}])]  # fmt: skip
    with ScriptedModels([Answer(text=text) for text in notes]) as server:
        code = ASKED.format(path=sys.path, place=f"{server.url}/v1", database=str(database))
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"answered\n"
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        assert len(server.asked) == 2
    store = Store(database, now=NOW)
    spent = store.read(lambda rows: ledger.list_spending_by_day(rows, since=NOW[:10]))
    asked: list[Question] = []
    dream(store, lambda sent: "", asked=asked)
    assert not asked and store.read(lambda rows: ledger.list_spending_by_day(rows, since=NOW[:10])) == spent
    assert {NOTE, "Never use an ORM in the reports."} <= all_memories(store).keys()
    assert not kept(store), "it is carried out"
    store.close()


def test_another_question_about_the_session_is_asked(store: Store) -> None:
    add_session(store, "s1", [("user", RULE), ("assistant", "Done.")], day=1)
    break_off(store, says(RULE, NOTE))
    add_session(store, "s1", [("user", RULE), ("assistant", "Done."), ("user", ORM), ("assistant", "Done.")], day=1)
    asked: list[Question] = []
    dream(store, says(ORM, "Never use an ORM in the reports."), asked=asked)
    assert len(asked) == 1 and not kept(store)


def test_an_answer_goes_with_anything_that_is_forgotten_or_purged(store: Store) -> None:
    add_session(store, "s1", [("user", RULE), ("assistant", "Done.")], day=1)
    break_off(store, says(RULE, NOTE))
    assert kept(store)
    memory = all_memories(store)[RULE]
    store.write(lambda rows: remember.forget(rows, memory, key=store.hash_key, now=NOW, by_person=True))
    assert not kept(store)
    add_session(store, "s2", [("user", ORM), ("assistant", "Done.")], day=2)
    break_off(store, says(ORM, "Never use an ORM in the reports."))
    assert kept(store)
    turn = store.read(lambda rows: rows.number("select seq from turns where uuid = 's2-0'"))
    store.write(lambda rows: purge.purge_turn(rows, turn, store.hash_key))
    assert not kept(store)


def test_an_answer_that_arrives_after_something_was_forgotten_is_not_kept(store: Store) -> None:
    add_session(store, "s1", [("user", RULE), ("assistant", "Done.")], day=1)

    def forgets(sent: list[dict[str, str]]) -> str:
        memory = all_memories(store)[RULE]
        store.write(lambda rows: remember.forget(rows, memory, key=store.hash_key, now=NOW, by_person=True))
        return says(RULE, NOTE)(sent)

    break_off(store, forgets)
    assert not kept(store)


def test_an_answer_goes_when_its_session_is_too_old_to_be_asked_about(store: Store) -> None:
    add_session(store, "s1", [("user", RULE), ("assistant", "Done.")], day=1)
    break_off(store, says(RULE, NOTE))
    dream(store, None)
    assert len(kept(store)) == 1
    store.write(lambda rows: rows.run("update kept_answers set at = '2026-01-01T10:00:00.000Z'"))
    dream(store, None)
    assert not kept(store)
