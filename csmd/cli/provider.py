"""Commands about language models: add, try, list and remove one, and what they cost."""

from __future__ import annotations

import shutil
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, bold, dim, many, pairs
from csmd.errors import CsmdError
from csmd.text.ages import ago, when

#: The verbs of this module.
VERBS = verb.Verbs()
PROVIDER = VERBS.add_group("provider", "Language models that csmd may ask; none unless you add one.")
#: Provider -> its usual place and model.
USUAL = {
    "assistant": ("", "haiku"),
    "ollama": ("http://127.0.0.1:11434", ""),
    "openai": ("https://api.openai.com/v1", ""),
}
FAILURES = {
    "dead": "nobody answers", "slow": "it takes too long", "refused": "it refuses", "limited": "it was asked too often",
    "babble": "its answer cannot be read",
}  # fmt: skip
NAME = verb.argument("name", "NAME", type=click.Choice([*USUAL]))


@PROVIDER.action(
    "add", NAME, verb.text("--model", "NAME", "The model to ask; small ones do. Without one: for embeddings only."),
    verb.text("--url", "URL", "The base URL of ollama or openai; any endpoint that speaks as OpenAI's does."),
    verb.text("--program", "PATH", "The assistant's program; else `claude` on PATH."),
    verb.text("--key-env", "NAME", "The environment variable that holds the key, where csmd runs."),
    verb.flag("--keyring", help="The key is in the keyring: keyring set csmd NAME."), verb.YES,
)  # fmt: skip
def add(name: str, model: str, url: str, program: str, key_env: str, keyring: bool, yes: bool, as_json: bool) -> None:
    """Let csmd ask a language model. NAME is assistant, ollama or openai."""
    place, usual = USUAL[name]
    if name == "assistant":
        executable = shutil.which(program or "claude")
        if executable is None:
            raise CsmdError(f"{program or 'claude'}: no such program", hint="name it: --program PATH")
        place = executable
    else:
        place = url or place
    whom = "your assistant's service" if name == "assistant" else place
    verb.confirm(f"Let csmd send what was said in your sessions, redacted, to {whom}?", yes=yes)
    value = verb.ask(
        "csm_provider_add", name=name, place=place, model=model or usual, by_person=True,
        key_from="keyring" if keyring else key_env,
    )  # fmt: skip
    verb.print_answer(value, as_json, show_added)


def show_added(value: dict[str, Any]) -> Screen:
    """The provider that was added, and the next commands."""
    model = value["model"] or "no model to ask: for embeddings only"
    test = "`csmd provider test` asks it for one word" if value["model"] else ""
    return render.done(
        f"added {value['name']}: {model}, {value['place']}",
        test,
        "`csmd provider remove` takes it back; docs/curator.md",
    )


@PROVIDER.tool("list", "csm_provider_list", scope="none")
@render.if_empty("providers", "no language model is asked; `csmd provider add` adds one")
def show_providers(value: dict[str, Any]) -> Screen:
    """List the language models, and how each fared last."""
    for row in value["providers"]:
        yield bold(f"{row['name']}{'' if row['is_asked'] else ' (not asked)'}")
        yield from pairs([
            ("  model", row["model"] or "none: for embeddings only"), ("  at", row["place"]),
            ("  key",
            row["key_from"] and ("in the keyring" if row["key_from"] == "keyring" else f"${row['key_from']}")),
            ("  last", f"answered {when(row['answered_at'])}" if row["answered_at"] else "not asked yet"),
            ("  fails", describe_failure(row)),
        ])  # fmt: skip
    yield dim(f"{value['tokens']:,} of {value['cap']:,} tokens today")


def describe_failure(row: dict[str, Any]) -> str:
    """Since when a provider fails, why, and when it is asked again; "" if it works."""
    if not row["failure"]:
        return ""
    again = f"; asked again after {when(row['paused_until'])[11:]}" if row["paused_until"] else ""
    return f"since {when(row['failing_since'])}: {FAILURES.get(row['failure'], row['failure'])}{again}"


def rows_of_status(value: dict[str, Any], now: str) -> list[tuple[str, str, str]]:
    """The lines of `csmd status`: (label, text, style)."""
    last = f"answered {ago(value['answered_at'], now)}" if value["answered_at"] else "not asked yet"
    spent = f"{value['tokens']:,} of {value['cap']:,} tokens today"
    rows = [("curator", f"{value['name']} {value['model']}, {last}; {spent}", "")]
    return [*rows, ("", f"fails {failure}", "yellow")] if (failure := describe_failure(value)) else rows


@PROVIDER.action("test", verb.argument("name", "[NAME]", required=False, default="", type=click.Choice(["", *USUAL])))
def test(name: str, as_json: bool) -> None:
    """Ask a language model for one word. It counts towards the day's cap."""
    verb.print_answer(verb.work("csm_provider_test", name=name), as_json, show_tested)


def show_tested(value: dict[str, Any]) -> Screen:
    """How long it took and what it cost."""
    about = " (estimated: it does not say)" if value["is_estimated"] else ""
    cost = f"{many(value['tokens_in'], 'token')} in, {value['tokens_out']:,} out{about}"
    return [f"{value['provider']} {value['model']} answered in {value['took_s']} s: {cost}"]


PROVIDER.row(
    "remove",
    "csm_provider_remove",
    "removed {removed}",
    "Remove a language model. It is not asked any more.",
    NAME,
    scope="none",
)


@VERBS.tool(
    "ledger", "csm_ledger",
    verb.option("--days", default=7, show_default=True, type=click.IntRange(1, 3650), help="Days to report."),
    scope="none",
)  # fmt: skip
def show_ledger(value: dict[str, Any]) -> Screen:
    """Show what language models cost, by day, project and purpose."""
    if not value["rows"]:
        yield f"no language model was asked since {value['since']}"
        return
    heads, sides = "project|day|for|model|calls|tokens in|out", "<<<<>>>"
    if value["has_price"]:
        heads, sides = f"{heads}|price", f"{sides}>"
    yield from render.table(heads, sides, [_row(row, with_price=value["has_price"]) for row in value["rows"]], least=8)
    total = sum(row["tokens_in"] + row["tokens_out"] for row in value["rows"])
    price = f", {sum(row['price'] for row in value['rows']):.2f}" if value["has_price"] else ""
    yield Line(
        f"{many(total, 'token')} since {value['since']}{price}; today {value['today']:,} of {value['cap']:,}", gap=True
    )
    failed, estimated = (sum(row[name] for row in value["rows"]) for name in ("failed", "estimated"))
    if failed:
        yield dim(f"{many(failed, 'call')} failed; what nobody knows of them counts as estimated")
    if estimated:
        yield dim(f"of {many(estimated, 'call')} the tokens are estimates")


def _row(row: dict[str, Any], *, with_price: bool) -> list[str]:
    cells = [
        row["project"] or "-", row["day"], row["purpose"], render.shorten(row["model"] or row["provider"], 18),
        f"{row['calls']:,}",
        f"{row['tokens_in']:,}", f"{row['tokens_out']:,}",
    ]  # fmt: skip
    return [*cells, f"{row['price']:.2f}"] if with_price else cells
