"""Each provider's answers, errors and refusals come to a reply or to one of five reasons."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest
from curator_fixtures import NOW, Direct, question, row
from scripted_models import Answer, ScriptedModels, count

from csmd.curator import calls
from csmd.curator.contract import ProviderFailed
from csmd.curator.process import Order, ProcessProvider, Vectors
from csmd.store.provider_rows import ProviderRow

NAMES = ("ollama", "openai")


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_comes_with_the_tokens_that_the_server_counted(name: str) -> None:
    asked = question()
    with ScriptedModels([Answer(text="The second.")]) as server:
        reply = Direct(row(server, name)).ask(asked, timeout_s=10)
        (body,) = server.asked
    assert (reply.text, reply.is_estimated) == ("The second.", False)
    assert (reply.tokens_in, reply.tokens_out) == server.counted
    assert [message["content"] for message in body["messages"]] == [asked.system, asked.text]
    assert body["stream"] is False and server.keys == [""]
    assert asked.most_tokens in (body.get("max_tokens"), body.get("options", {}).get("num_predict"))


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_without_usage_is_estimated_and_says_so(name: str) -> None:
    with ScriptedModels([Answer(text="The second.", usage=False)]) as server:
        reply = Direct(row(server, name)).ask(question(), timeout_s=10)
    assert reply.is_estimated and reply.tokens_in > 5 and reply.tokens_out == count("The second.")


FAILURES = [
    (Answer(status=401), "refused", (0, 0)),
    (Answer(status=404), "refused", (0, 0)),
    (Answer(status=302), "refused", (0, 0)),
    (Answer(status=429), "limited", (0, 0)),
    (Answer(status=529), "limited", (0, 0)),
    (Answer(status=500), "dead", (0, 0)),
    (Answer(breaks_off=True), "babble", None),
    (Answer(waits=True), "slow", None),
    (Answer(raw=b"{not json"), "babble", None),
    (Answer(raw=b'data: {"choices": []}\n\ndata: [DONE]\n\n'), "babble", None),
    (Answer(raw=b"[]"), "babble", "estimated"),
    (Answer(text="  "), "babble", "counted"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("answer", "reason", "spent"), FAILURES)
def test_what_is_no_answer_has_one_of_five_reasons(name: str, answer: Answer, reason: str, spent: object) -> None:
    with ScriptedModels([answer]) as server, pytest.raises(ProviderFailed) as failed:
        Direct(row(server, name)).ask(question(), timeout_s=0.3 if answer.waits else 10)
    assert failed.value.reason == reason
    if spent == "counted":
        assert failed.value.spent == server.counted
    elif spent != "estimated":
        assert failed.value.spent == spent
    assert "as scripted" not in failed.value.what, "nothing of the server's text is quoted"


def test_nobody_there_is_dead_and_costs_nothing() -> None:
    with ScriptedModels() as server:
        gone = row(server)
    with pytest.raises(ProviderFailed, match="Connection refused") as failed:
        Direct(gone).ask(question(), timeout_s=10)
    assert (failed.value.reason, failed.value.spent) == ("dead", (0, 0))


def test_a_refusal_in_words_of_the_api_is_one_and_its_tokens_count() -> None:
    with ScriptedModels([Answer(refuses=True)]) as server, pytest.raises(ProviderFailed) as failed:
        Direct(row(server)).ask(question(), timeout_s=10)
    assert failed.value.reason == "refused" and failed.value.spent == server.counted


def test_the_newer_name_of_the_limit_is_used_where_the_older_is_refused() -> None:
    with ScriptedModels([Answer(newer=True)]) as server:
        Direct(row(server)).ask(question(), timeout_s=10)
    assert [body.get("max_completion_tokens") for body in server.asked] == [None, 50]


def test_a_key_is_read_from_its_variable_and_sent_as_a_bearer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "k-1")
    with ScriptedModels() as server:
        Direct(row(server, key_from="MODEL_KEY")).ask(question(), timeout_s=10)
        assert server.keys == ["Bearer k-1"]
        monkeypatch.delenv("MODEL_KEY")
        with pytest.raises(ProviderFailed, match="MODEL_KEY is not set") as failed:
            Direct(row(server, key_from="MODEL_KEY")).ask(question(), timeout_s=10)
        assert failed.value.reason == "refused" and len(server.asked) == 1


def test_a_keyring_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with ScriptedModels() as server, pytest.raises(ProviderFailed, match="keyring is not installed") as failed:
        Direct(row(server, key_from="keyring")).ask(question(), timeout_s=10)
    assert "pip install keyring" in failed.value.hint


@pytest.mark.parametrize("name", NAMES)
def test_vectors_come_in_the_order_of_their_texts(name: str) -> None:
    with ScriptedModels([Answer(dim=4)]) as server:
        order = Order(
            provider=name,
            place=row(server, name).place,
            model="vectors",
            key_from="",
            timeout_s=10,
            texts=["a", "four"],
        )
        found = calls.carry_out(order)
        assert isinstance(found, Vectors) and [vector[0] for vector in found.vectors] == [1.0, 4.0]
        assert found.tokens_in == server.counted[0]
    with ScriptedModels([Answer(raw=b'{"data": []}')]) as server, pytest.raises(ProviderFailed, match="no vector"):
        calls.carry_out(dataclasses.replace(order, place=row(server, name).place))


def test_the_process_of_its_own_asks_and_says_why_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "k-1")
    with ScriptedModels([Answer(text="Ja, die zweite."), Answer(status=429)]) as server:
        provider = ProcessProvider(row(server, key_from="MODEL_KEY"), is_managed=False)
        assert provider.ask(question("Welche?"), timeout_s=20).text == "Ja, die zweite."
        assert server.keys == ["Bearer k-1"]
        with pytest.raises(ProviderFailed) as failed:
            provider.ask(question(), timeout_s=20)
    assert (failed.value.reason, failed.value.spent) == ("limited", (0, 0))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            'cat >/dev/null; echo \'{"is_error": true, "api_error_status": 401, "usage": {"input_tokens": 3}}\'',
            "refused",
        ),
        ('cat >/dev/null; echo \'{"is_error": true, "api_error_status": 529}\'', "limited"),
        ("echo error: unknown option >&2; exit 1", "babble"),
        ("sleep 60", "slow"),
    ],
)
def test_an_assistant_that_gives_no_answer_has_a_reason(tmp_path: Path, script: str, reason: str) -> None:
    program = tmp_path / "claude"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    found = ProviderRow(name="assistant", place=str(program), model="haiku", key_from="", added_at=NOW)
    with pytest.raises(ProviderFailed) as failed:
        Direct(found).ask(question(), timeout_s=0.3 if "sleep" in script else 10)
    assert failed.value.reason == reason
