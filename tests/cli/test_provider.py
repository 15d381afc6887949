"""Language models: off until a person adds one, tried out, listed, in status and in the ledger, and removed."""

from __future__ import annotations

from machine import Machine
from scripted_models import Answer, ScriptedModels


def test_no_model_is_asked_until_a_person_adds_one(machine: Machine) -> None:
    machine.start()
    assert "no language model is asked" in machine.csmd("provider", "list")
    assert "csmd provider add" in machine.run("provider", "test").stderr
    assert machine.csmd("status", "--json")["provider"] is None
    adding = ("provider", "add", "ollama", "--model", "qwen3:4b")
    assert "not a terminal" in machine.run(*adding).stderr
    assert "cannot use --yes" in machine.run(*adding, "--yes", CLAUDECODE="1").stderr
    parameters = ("--param", "name=ollama", "--param", "place=http://127.0.0.1:1")
    assert "only a person" in machine.run("tool", "csm_provider_add", *parameters).stderr
    assert machine.csmd("provider", "list", "--json")["providers"] == []


def test_a_model_is_added_tried_shown_and_removed(machine: Machine) -> None:
    machine.start()
    with ScriptedModels([Answer(text="Yes."), Answer(text="Yes.", usage=False), Answer(status=429)]) as server:
        machine.csmd("provider", "add", "openai", "--url", f"{server.url}/v1/", "--model", "small", "--yes")
        machine.csmd("provider", "add", "ollama", "--url", server.url, "--yes")
        tested = machine.csmd("provider", "test", "--json")
        assert (tested["provider"], tested["tokens_in"], tested["tokens_out"]) == ("openai", *server.counted)
        assert "(estimated)" in machine.csmd("provider", "test", "openai")
        assert "HTTP 429" in machine.run("provider", "test").stderr
    listed = machine.csmd("provider", "list")
    assert "fails  since" in listed and "rate limit; asked again after" in listed
    assert "ollama (not asked)\n  model  none: for embeddings only" in listed
    status = machine.csmd("status")
    assert "curator    openai small, answered" in status and "of 40,000 tokens today" in status
    shown = machine.csmd("ledger")
    assert max(map(len, shown.splitlines())) <= 80 and "1 call failed" in shown and "the tokens of 1 call" in shown
    (row,) = machine.csmd("ledger", "--json")["rows"]
    assert (row["project"], row["purpose"], row["calls"], row["failed"]) == ("", "test", 3, 1)
    assert machine.csmd("provider", "remove", "openai") == "removed openai\n"
    assert machine.csmd("status", "--json")["provider"] is None
    assert machine.csmd("ledger", "--json")["today"] == status_tokens(shown)


def status_tokens(shown: str) -> int:
    """The tokens of today that the ledger's last line says."""
    return int(shown.partition("today ")[2].partition(" of")[0].replace(",", ""))


def test_what_is_no_place_or_would_show_a_key_is_refused(machine: Machine) -> None:
    machine.start()
    for url, why in (
        ("file:///etc/passwd", "is not a base URL"), ("http://user:word@127.0.0.1/v1", "is not a base URL"),
        ("http://models.example.org/v1", "unencrypted"),
    ):  # fmt: skip
        done = machine.run("provider", "add", "openai", "--url", url, "--model", "m", "--key-env", "KEY", "--yes")
        assert done.returncode == 1 and why in done.stderr, done.stderr
    typed = ("provider", "add", "openai", "--model", "m", "--key-env", "sk-a-key-itself", "--yes")
    assert "not typed" in machine.run(*typed).stderr
    assert "no such program" in machine.run("provider", "add", "assistant", "--program", "/nowhere", "--yes").stderr
    assert machine.csmd("provider", "list", "--json")["providers"] == []


def test_the_price_is_shown_where_one_is_set_and_the_cap_asks_a_person(machine: Machine) -> None:
    assert "not a terminal" in machine.run("config", "set", "curator.daily_tokens", "90000").stderr
    for key, value in (("price_in", "1000"), ("price_out", "10000"), ("daily_tokens", "130")):
        machine.csmd("config", "set", f"curator.{key}", value, "--yes")
    machine.start()
    with ScriptedModels([Answer(text="Yes.")]) as server:
        machine.csmd("provider", "add", "ollama", "--url", server.url, "--model", "small", "--yes")
        assert "no language model was asked" in machine.csmd("ledger")
        machine.csmd("provider", "test"), machine.csmd("provider", "test")
        refused = machine.run("provider", "test")
        sent, answered = server.counted
    assert f"{sent + answered} of 130 tokens are spent today" in refused.stderr and refused.returncode == 1
    price = sent / 1e6 * 1000 + answered / 1e6 * 10_000
    assert f"{sent:,}" in (shown := machine.csmd("ledger")) and f"{price:.2f}" in shown and "price" in shown


def test_an_embedding_model_of_a_provider_is_used_and_one_that_nobody_serves_refused(machine: Machine) -> None:
    machine.start()
    setting = ("config", "set", "embed.model", "ollama/nomic:v1.5", "--yes")
    assert "no provider 'ollama' was added\n  try: csmd provider add ollama" in machine.run(*setting).stderr
    with ScriptedModels([Answer(status=404), Answer()]) as server:
        machine.csmd("provider", "add", "ollama", "--url", server.url, "--yes")
        assert "HTTP 404" in machine.run(*setting).stderr and machine.csmd("config", "get", "embed.model") != setting[3]
        machine.csmd(*setting)
        machine.csmd("restart")
        machine.csmd("remember", "I prefer tabs over spaces in Makefiles.")
        machine.csmd("sync")
        assert machine.status()["model"]["name"] == "ollama/nomic:v1.5@endpoint-8"
        assert machine.csmd("search", "indentation", "--json")["hits"]
        assert "by nomic:v1.5" in machine.csmd("status")
        machine.csmd("stop"), machine.csmd("start")
        embedded = [row for row in machine.csmd("ledger", "--json")["rows"] if row["purpose"] == "embed"]
        assert sum(row["tokens_in"] for row in embedded) > 10 and machine.csmd("ledger", "--json")["today"] == 0
        asked = len(server.asked)
        machine.csmd("provider", "remove", "ollama")
        machine.csmd("search", "indentation")
        assert len(server.asked) == asked and machine.status()["model"]["name"] is None
