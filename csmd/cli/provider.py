"""Commands about language models: add, try, list and remove one, and what they cost."""

from __future__ import annotations

import shutil
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, bold, dim, many, pairs
from csmd.errors import CsmdError
from csmd.text.ages import ago, when

VERBS = verb.Verbs()
PROVIDER = VERBS.add_group("provider", "Language models that csmd may ask; none unless you add one.")
#: Provider -> its default address and model.
DEFAULTS = {
    "assistant": ("", "haiku"), "ollama": ("http://127.0.0.1:11434", ""), "openai": ("https://api.openai.com/v1", ""),
}  # fmt: skip
FAILURES = {
    "dead": "no answer", "slow": "timeout", "refused": "refused", "limited": "rate limit",
    "babble": "unreadable answer",
}  # fmt: skip
NAME = verb.argument("name", "NAME", type=click.Choice([*DEFAULTS]))


@PROVIDER.action(
    "add", NAME, verb.text("--model", "NAME", "The model to ask; a small one is enough. Without one: for embeddings only."),
    verb.text("--url", "URL", "The base URL of ollama or openai, or of another OpenAI-compatible endpoint."),
    verb.text("--program", "PATH", "The assistant's program; `claude` on PATH by default."),
    verb.text("--key-env", "NAME", "The environment variable with the key, where csmd runs."),
    verb.flag("--keyring", help="The key is in the keyring: keyring set csmd NAME."), verb.YES,
)  # fmt: skip
def add(name: str, model: str, url: str, program: str, key_env: str, keyring: bool, yes: bool, as_json: bool) -> None:
    """Let csmd ask a language model. NAME is assistant, ollama or openai."""
    address, default_model = DEFAULTS[name]
    address = url or address
    recipient = address
    if name == "assistant":
        program = program or "claude"
        address, recipient = shutil.which(program) or "", "your assistant's service"
        if not address:
            raise CsmdError(f"{program}: no such program", hint="name it: --program PATH")
    verb.confirm(f"Let csmd send text of your sessions, redacted, to {recipient}?", yes=yes)
    value = verb.ask(
        "csm_provider_add", name=name, place=address, model=model or default_model, by_person=True,
        key_from="keyring" if keyring else key_env,
    )  # fmt: skip
    verb.print_answer(value, as_json, show_added)


def show_added(value: dict[str, Any]) -> Screen:
    """Shows the provider that was added, and the next commands."""
    model = value["model"] or "no model to ask: for embeddings only"
    test = "`csmd provider test` asks it for one word" if value["model"] else ""
    undo = "Undo: csmd provider remove (docs/curator.md)"
    return render.done(f"added {value['name']}: {model}, {value['place']}", test, undo)


@PROVIDER.tool("list", "csm_provider_list", scope="none")
@render.if_empty("providers", "no language model is asked; `csmd provider add` adds one")
def show_providers(value: dict[str, Any]) -> Screen:
    """List the language models, and the last answer or failure of each."""
    for row in value["providers"]:
        yield bold(f"{row['name']}{'' if row['is_asked'] else ' (not asked)'}")
        yield from pairs([
            ("  model", row["model"] or "none: for embeddings only"), ("  at", row["place"]),
            ("  key", {"": "", "keyring": "in the keyring"}.get(row["key_from"], f"${row['key_from']}")),
            ("  last", f"answered {when(row['answered_at'])}" if row["answered_at"] else "not asked yet"),
            ("  fails", describe_failure(row)),
        ])  # fmt: skip
    yield dim(f"{value['tokens']:,} of {value['cap']:,} tokens today")


def describe_failure(row: dict[str, Any]) -> str:
    """Describes since when a provider fails, why, and when it is asked again; "" if it works."""
    if not row["failure"]:
        return ""
    retry = f"; asked again after {when(row['paused_until'])[11:]}" if row["paused_until"] else ""
    return f"since {when(row['failing_since'])}: {FAILURES.get(row['failure'], row['failure'])}{retry}"


def status_rows(value: dict[str, Any], now: str) -> list[tuple[str, str, str]]:
    """Returns the lines of `csmd status`: (label, text, style)."""
    last = f"answered {ago(value['answered_at'], now)}" if value["answered_at"] else "not asked yet"
    spent = f"{value['tokens']:,} of {value['cap']:,} tokens today"
    rows = [("curator", f"{value['name']} {value['model']}, {last}; {spent}", "")]
    return [*rows, ("", f"fails {failure}", "yellow")] if (failure := describe_failure(value)) else rows


@PROVIDER.action(
    "test", verb.argument("name", "[NAME]", required=False, default="", type=click.Choice(["", *DEFAULTS]))
)
def test(name: str, as_json: bool) -> None:
    """Ask a language model for one word. It counts towards the day's cap."""
    verb.print_answer(verb.run_job("csm_provider_test", name=name), as_json, show_tested)


def show_tested(value: dict[str, Any]) -> Screen:
    """Shows the time and the tokens of the answer."""
    note = " (estimated)" if value["is_estimated"] else ""
    cost = f"{many(value['tokens_in'], 'token')} in, {value['tokens_out']:,} out{note}"
    return [f"{value['provider']} {value['model']} answered in {value['took_s']} s: {cost}"]


PROVIDER.add_tool(
    "remove", "csm_provider_remove", "removed {removed}", "Remove a language model.", NAME, scope="none"
)  # fmt: skip


@VERBS.tool(
    "ledger", "csm_ledger",
    verb.option("--days", default=7, show_default=True, type=click.IntRange(1, 3650), help="Days to report."),
    scope="none",
)  # fmt: skip
def show_ledger(value: dict[str, Any]) -> Screen:
    """Show the cost of language models, by day, project and purpose."""
    if not value["rows"]:
        yield f"no language model was asked since {value['since']}"
        return
    heads, sides = "project|day|for|model|calls|tokens in|out", "<<<<>>>"
    if value["has_price"]:
        heads, sides = f"{heads}|price", f"{sides}>"
    rows = [_format_cells(row, with_price=value["has_price"]) for row in value["rows"]]
    yield from render.table(heads, sides, rows, least=8)
    total = sum(row["tokens_in"] + row["tokens_out"] for row in value["rows"])
    price = f", {sum(row['price'] for row in value['rows']):.2f}" if value["has_price"] else ""
    today = f"today {value['today']:,} of {value['cap']:,}"
    yield Line(f"{many(total, 'token')} since {value['since']}{price}; {today}", gap=True)
    failed, estimated = (sum(row[name] for row in value["rows"]) for name in ("failed", "estimated"))
    if failed:
        yield dim(f"{many(failed, 'call')} failed; if their tokens are unknown, the estimate counts")
    if estimated:
        yield dim(f"the tokens of {many(estimated, 'call')} are estimates")


def _format_cells(row: dict[str, Any], *, with_price: bool) -> list[str]:
    cells = [
        row["project"] or "-", row["day"], row["purpose"], render.shorten(row["model"] or row["provider"], 18),
        f"{row['calls']:,}", f"{row['tokens_in']:,}", f"{row['tokens_out']:,}",
    ]  # fmt: skip
    return [*cells, f"{row['price']:.2f}"] if with_price else cells
