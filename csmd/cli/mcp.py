"""The command that serves MCP, or adds the server to an assistant."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Literal

import click

from csmd.cli import render, verb
from csmd.cli.install import raise_trouble, show_installed
from csmd.cli.uninstall import show_restored
from csmd.config import assistant_session, default_paths
from csmd.errors import CsmdError
from csmd.installer import plan
from csmd.mcp import served_tools
from csmd.mcp.model_tools import Asker

#: The verbs of this module.
VERBS = verb.Verbs()


HOST = click.Choice(sorted(plan.SERVER_KINDS))


@VERBS.command("mcp")
@click.option(
    "--tools", default="", metavar="NAME,...", help=f"Tools to serve besides the four: {served_tools.CHOICES}."
)
@click.option(
    "--print-config", "shown", type=HOST, metavar="HOST", help=f"Print what to paste for {', '.join(HOST.choices)}."
)
@click.option("--install", "installed", type=HOST, metavar="HOST", help="Write it into the settings of HOST.")
@click.option("--remove", "removed", type=HOST, metavar="HOST", help="Take out what --install wrote.")
def mcp_server(tools: str, shown: str | None, installed: str | None, removed: str | None) -> None:
    """Serve the memory to a model (MCP): the assistant starts this. Its options add csmd to an assistant."""
    chosen = served_tools.choose_tools(tools)
    if host := shown or installed or removed:
        _set_up_server(
            host, ["--tools", tools] if tools else [], "show" if shown else "install" if installed else "remove"
        )
        return
    if os.isatty(0):
        hint = "`csmd mcp --install HOST` adds it to one; `claude mcp list` shows whether it works"
        raise CsmdError("`csmd mcp` talks to an assistant, not to people", hint=hint)
    from csmd.mcp import stdio_server

    # Clients end their servers by SIGINT, on which asyncio would wait for the thread that reads standard input.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    named, started, session = assistant_session()
    stdio_server.serve(
        Asker(paths=default_paths(), directory=named or started, session=session, is_directory_named=bool(named)),
        chosen,
    )
    os._exit(0)  # the client has gone, and a thread that waits for the daemon must not outlive it


def _set_up_server(host: str, arguments: Sequence[str], what: Literal["show", "install", "remove"]) -> None:
    """Shows, writes or takes back the memory server's entry in an assistant's settings."""
    config = plan.configuration()
    if what == "show":
        plan.put_hooks_in_place(config.paths)
        path, entry = plan.describe_server(config, host, arguments)
        click.echo(f"into {path}:\n", err=True)
        click.echo(entry, nl=False)
    elif what == "install":
        change = plan.install_server(config, host, arguments)
        render.show(show_installed([change], ()))
        raise_trouble([change])
    else:
        change = plan.remove_server(config, host)
        render.show(show_restored([change]))
        raise_trouble([change])
