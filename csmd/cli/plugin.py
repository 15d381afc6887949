"""The verbs by which the assistant's client meets csmd: the server that it starts, and where the plugin lies."""

from __future__ import annotations

import os
import signal

import click

from csmd.cli import install
from csmd.config import assistant_session, default_paths
from csmd.errors import CsmdError


@click.command("mcp")
def mcp_server() -> None:
    """Serve the memory to a model (MCP); the assistant starts this."""
    if os.isatty(0):
        raise CsmdError(
            "`csmd mcp` talks to an assistant, not to people", hint="`claude mcp list` shows whether it works"
        )
    from csmd.mcp import server, tools

    # A client ends its servers so. asyncio would wait for the thread that reads standard input.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    directory, session = assistant_session()
    server.serve(tools.Asker(paths=default_paths(), directory=directory, session=session))
    os._exit(0)  # the client has gone: a thread that still waits for the daemon must not outlive it


@click.group()
def plugin() -> None:
    """csmd as a plugin of the assistant."""


@plugin.command("path")
def plugin_path() -> None:
    """Print where the plugin lies, for the assistant to add."""
    click.echo(install.share().parent)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (mcp_server, plugin)
