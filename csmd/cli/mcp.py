"""The command that serves MCP, or adds the server to an assistant."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import click

from csmd.cli import render, verb
from csmd.cli.install import raise_trouble, show_installed
from csmd.cli.uninstall import show_restored
from csmd.config import assistant_session, default_paths
from csmd.errors import CsmdError
from csmd.installer import plan
from csmd.mcp import served_tools
from csmd.mcp.model_tools import Caller

VERBS = verb.Verbs()
HOST = click.Choice(sorted(plan.SERVER_KINDS))


@VERBS.command("mcp")
@click.option(
    "--tools", default="", metavar="NAME,...", help=f"Tools to serve besides the four: {served_tools.CHOICES}."
)
@click.option(
    "--print-config", "print_host", type=HOST, metavar="HOST", help=f"Print the entry for {', '.join(HOST.choices)}."
)
@click.option("--install", "install_host", type=HOST, metavar="HOST", help="Write it into the settings of HOST.")
@click.option("--remove", "remove_host", type=HOST, metavar="HOST", help="Remove the entry that --install wrote.")
def mcp_server(tools: str, print_host: str | None, install_host: str | None, remove_host: str | None) -> None:
    """Serve the memory to a model (MCP): the assistant starts this. Its options add csmd to an assistant."""
    tool_names = served_tools.choose_tools(tools)
    arguments = ["--tools", tools] if tools else []
    if print_host:
        _print_entry(print_host, arguments)
        return
    if install_host:
        change = plan.install_server(plan.load_configuration(), install_host, arguments)
        render.show(show_installed([change], ()))
        raise_trouble([change])
        return
    if remove_host:
        change = plan.remove_server(plan.load_configuration(), remove_host)
        render.show(show_restored([change]))
        raise_trouble([change])
        return
    if os.isatty(0):
        hint = "`csmd mcp --install HOST` adds it to an assistant; `claude mcp list` shows whether it works"
        raise CsmdError("`csmd mcp` is started by an assistant, not at a terminal", hint=hint)
    from csmd.mcp import stdio_server

    # Clients end their servers by SIGINT, on which asyncio would wait for the thread that reads standard input.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    project, started_in, session = assistant_session()
    directory = project or started_in
    caller = Caller(paths=default_paths(), directory=directory, session=session, is_directory_named=bool(project))
    stdio_server.serve(caller, tool_names)
    os._exit(0)  # the client has gone, and a thread that waits for the daemon must not outlive it


def _print_entry(host: str, arguments: Sequence[str]) -> None:
    """Prints the memory server's entry for an assistant's settings."""
    config = plan.load_configuration()
    plan.install_hooks(config.paths)
    path, entry = plan.describe_server(config, host, arguments)
    click.echo(f"into {path}:\n", err=True)
    click.echo(entry, nl=False)
