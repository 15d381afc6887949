"""The command that calls a tool of the daemon by its name."""

from __future__ import annotations

import click

from csmd import wire
from csmd.cli import verb
from csmd.errors import CsmdError

VERBS = verb.Verbs()


@VERBS.action(
    "tool", verb.argument("name"),
    verb.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="A parameter; may be given several times."),
)  # fmt: skip
def tool(name: str, params: tuple[str, ...], as_json: bool) -> None:
    """Call a tool of the daemon by its name, and print the JSON. `csmd tool list` lists the tools."""
    del as_json
    values = {}
    for param in params:
        key, equals, values[key] = param.partition("=")
        if not equals:
            raise click.UsageError(f"--param {param}: expected KEY=VALUE")
    if "by_person" in values:
        hint = "run `csmd remember` or `csmd forget` in a terminal"
        raise CsmdError("by_person cannot be given: the terminal decides it", hint=hint)
    # The directory is not a parameter either: it decides which walls apply.
    values["asking"] = verb.resolve_project(None)
    click.echo(wire.pretty(verb.ask("csm_tools" if name == "list" else name, **values)))
