"""The command that asks the daemon one thing by its tool's name."""

from __future__ import annotations

import click

from csmd import wire
from csmd.cli import verb
from csmd.errors import CsmdError

#: The verbs of this module.
VERBS = verb.Verbs()


@VERBS.command(
    "tool",
    params=[
        verb.argument("name"),
        verb.option("--param", "params", multiple=True, metavar="KEY=VALUE",
        help="A parameter; may be given several times."),
        verb.flag("--json", "as_json", hidden=True, help="The answer is always JSON."),
    ],
)  # fmt: skip
def tool(name: str, params: tuple[str, ...], as_json: bool) -> None:
    """Ask the daemon one thing by its tool's name. `csmd tool list` names them."""
    del as_json
    values = {}
    for param in params:
        key, equals, values[key] = param.partition("=")
        if not equals:
            raise click.UsageError(f"--param {param}: expected KEY=VALUE")
    if "by_person" in values:
        hint = "type `csmd remember` or `csmd forget` in a terminal"
        raise CsmdError("who speaks is told by the terminal, not by a parameter", hint=hint)
    # The directory is not a parameter either: it decides which walls apply.
    values["asking"] = verb.resolve_project(None)
    click.echo(wire.pretty(verb.ask("csm_tools" if name == "list" else name, **values)))
