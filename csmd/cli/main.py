"""Parses the command line; exit codes, crash reports, completion."""

from __future__ import annotations

import importlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

import csmd
from csmd import config
from csmd.cli import render
from csmd.cli.verb_table import GROUPS, HIDDEN, SUBJECTS, in_view
from csmd.config import default_paths
from csmd.errors import DISK_ERRORS, CsmdError, DaemonUnreachable, explain_disk_error

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def entry() -> None:
    """The `csmd` command; every error leaves through here."""
    for stream in (sys.stdout, sys.stderr):
        render.keep_clean(stream)
    try:
        main.main(standalone_mode=False, prog_name="csmd")
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(130)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.ClickException as error:
        error.show(shown := io.StringIO())  # the message quotes what was typed
        for line in shown.getvalue().splitlines():
            render.show_error("", line)
        sys.exit(2)
    except DaemonUnreachable as error:
        from csmd.installer import service

        _fail(service.explain_unreachable(default_paths(), error))
    except CsmdError as error:
        _fail(error)
    except Exception as error:  # noqa: BLE001 - the last resort: reported as a bug
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            _drop_output()
            _fail(explain_disk_error(error, "the output"))
        path = _crash_report(error)
        render.complain(
            f"a bug: {type(error).__name__}. What happened is written to {path}",
            hint="run `csmd report` and attach its file",
        )
        sys.exit(70)


def _drop_output() -> None:
    """Discards what is still buffered for stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _fail(error: CsmdError) -> NoReturn:
    """Prints what went wrong and what to do, and exits with the error's code."""
    render.complain(error.what, hint=error.hint)
    sys.exit(error.exit_code)


def _crash_report(error: BaseException) -> Path | str:
    """Writes a crash report; returns its path, or the report itself if it cannot be written."""
    import traceback

    frames = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)))
    # Frames without the message, which can quote the user's text.
    report = f"csmd {csmd.__version__}, Python {sys.version}\n{frames}{type(error).__name__}\n"
    try:
        path = default_paths().log_dir / "crash.txt"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(report)
    except (OSError, CsmdError) as failure:
        return f"no file ({failure}):\n{report}"
    return path


#: What click raises for a group without a command; before version 8.2 it prints the help itself.
NO_COMMAND: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


class _Verbs(click.Group):
    """The verbs of csmd, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in view, in the order of GROUPS (click would sort them), then the others."""
        del ctx
        return [*in_view(), *HIDDEN.split()]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs under the headings of GROUPS, in one column."""
        widest = max(map(len, in_view()))
        room = formatter.width - 6 - widest
        for heading, verbs in GROUPS.items():
            commands = [(verb, self.get_command(ctx, verb)) for verb in verbs.split()]
            rows = [(f"{verb:<{widest}}", command.get_short_help_str(room)) for verb, command in commands if command]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, but suggests the nearest verb for a mistyped one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib  # only for a mistyped verb

            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean {close[0]!r}?", ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The verbs in view; for bash, which shows no descriptions, no module is imported."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem  # only for completion

        names = [name for name in in_view() if name.startswith(incomplete)]
        if config.completing_shell() == "bash":
            return [CompletionItem(name) for name in names]
        commands = [(name, self.get_command(ctx, name)) for name in names]
        return [CompletionItem(name, help=command.get_short_help_str()) for name, command in commands if command]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A verb, imported from its module; None for an unknown one."""
        subject = next((name for name, verbs in SUBJECTS.items() if cmd_name in verbs.split()), None)
        if subject is None:
            return None
        verbs: click.Group = importlib.import_module(f"csmd.cli.{subject}").VERBS
        return verbs.get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Like click's, with three exceptions: a group alone prints its help, an option without its value lists the
        values, and a closed pipe on stdout is not an error (click would exit with 2, 2 and 1)."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _drop_output()
            return None
        except click.BadOptionUsage as error:
            if words := self._words_of(ctx, error.option_name):
                raise click.UsageError(f"{error.message} It is one of: {', '.join(words)}.", ctx) from None
            raise
        except NO_COMMAND as error:
            click.echo(error.message)
            return None

    def _words_of(self, ctx: click.Context, option: str) -> tuple[str, ...]:
        """The choices of an option of the verb, or of one below it; () if it takes any value."""
        verb = self.get_command(ctx, ctx.invoked_subcommand or "")
        below = verb.commands.values() if isinstance(verb, click.Group) else ()
        params = [param for command in (verb, *below) if command for param in command.params if option in param.opts]
        return next((tuple(param.type.choices) for param in params if isinstance(param.type, click.Choice)), ())


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(csmd.__version__, prog_name="csmd")
@click.pass_context
def main(context: click.Context) -> None:
    """A memory across sessions for AI coding assistants: local, without an LLM, without a network."""
    if context.invoked_subcommand is None:
        from csmd.cli.overview import show_overview

        show_overview()


#: Shell -> where it looks for completion scripts, and what else it needs.
PLACES = {
    "bash": "~/.local/share/bash-completion/completions/csmd",
    "zsh": "~/.zfunc/_csmd  (with `fpath+=~/.zfunc; autoload -Uz compinit && compinit` in ~/.zshrc)",
    "fish": "~/.config/fish/completions/csmd.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(PLACES)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes csmd in your shell."""
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    assert shell_class is not None  # PLACES names click's own
    complete = shell_class(context.find_root().command, {}, "csmd", config.COMPLETION_VARIABLE)
    click.echo(complete.source_template % complete.source_vars())
    click.echo(f"to use it, write this to {PLACES[shell]}", err=True)


#: The verbs of this module.
VERBS = click.Group(commands=[completion])
