"""The command that opens the viewer in a browser."""

from __future__ import annotations

import click

from csmd import config
from csmd.cli import render, verb
from csmd.config import default_paths
from csmd.errors import CsmdError

VERBS = verb.Verbs()


PORT = verb.option(
    "--port", default=0, type=click.IntRange(0, 65535), metavar="PORT", help="The port; a free one by default."
)


@VERBS.command("web", params=[PORT, verb.flag("--no-open", help="Print the link only; open no browser.")])
def web(port: int, no_open: bool) -> None:
    """Show everything in a browser, on this machine only. ^C ends it.

    Sessions, memories, injections, dreams and the review. The link works once.
    """
    if not verb.is_interactive() or verb.find_assistant():
        hint = "run `csmd web` in a terminal"
        raise CsmdError("the viewer shows and changes everything, so only a person can open it", hint=hint)
    from csmd.web import viewer

    def announce(link: str) -> None:
        note = "The link works once, in a browser on this machine. The viewer ends after 30 idle minutes, or with ^C."
        render.show([render.RawLine(link), note])
        if not no_open and config.can_open_browser():
            import webbrowser  # slow to import

            webbrowser.open(link)

    viewer.serve(default_paths(), port=port, announce=announce)
