"""`csmd completion SHELL`: the script with which a shell completes csmd's verbs and options; imports nothing heavy."""

from __future__ import annotations

import click

#: Where a shell looks for such scripts by itself, and what else it needs.
PLACES = {
    "bash": "~/.local/share/bash-completion/completions/csmd",
    "zsh": "~/.zfunc/_csmd  (with `fpath+=~/.zfunc; autoload -Uz compinit && compinit` in ~/.zshrc)",
    "fish": "~/.config/fish/completions/csmd.fish",
}
#: The variable by which the script asks this very program; click reads it.
VARIABLE = "_CSMD_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(sorted(PLACES)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes csmd in your shell."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # PLACES names click's own
    complete = made(context.find_root().command, {}, "csmd", VARIABLE)
    click.echo(complete.source_template % complete.source_vars())
    click.echo(f"to use it, write this to {PLACES[shell]}", err=True)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (completion,)
