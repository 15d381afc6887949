"""The `csmd` command: dispatches to the verbs, sets exit codes, writes crash reports."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

import csmd
from csmd import config
from csmd.cli import render
from csmd.cli.verb_table import ADVANCED_VERBS, MODULE_VERBS, VERB_GROUPS, find_similar, visible_verbs
from csmd.config import default_paths
from csmd.errors import DISK_ERRORS, CsmdError, DaemonUnreachable, explain_disk_error

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def entry() -> None:
    """Runs the `csmd` command and turns every error into a message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        render.escape_output(stream)
    try:
        main.main(standalone_mode=False, prog_name="csmd")
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(130)
    except click.exceptions.Exit as exit_request:
        sys.exit(exit_request.exit_code)
    except click.ClickException as error:
        error.show(message := io.StringIO())  # quotes the arguments, so it is escaped below
        for line in message.getvalue().splitlines():
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
        what = f"internal error ({type(error).__name__}); {_crash_report(error)}"
        render.complain(what, hint="run `csmd report` and attach its file")
        sys.exit(70)


def _drop_output() -> None:
    """Discards the buffered output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _fail(error: CsmdError) -> NoReturn:
    """Prints an error with its hint, and exits with its code."""
    render.complain(error.what, hint=error.hint)
    sys.exit(error.exit_code)


def _crash_report(error: BaseException) -> str:
    """Writes a crash report; returns where it is, or the report itself if it cannot be written."""
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
        return f"its report cannot be written ({failure}):\n{report}"
    return f"report: {path}"


#: Click's error for a group without a command; before version 8.2 click printed the help itself.
NO_COMMAND: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


class _Verbs(click.Group):
    """The verbs of csmd; the module of a verb is imported when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the visible verbs, in the order of VERB_GROUPS (click would sort them), then the others."""
        del ctx
        return [*visible_verbs(), *ADVANCED_VERBS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the verbs under the headings of VERB_GROUPS, in one column."""
        widest = max(map(len, visible_verbs()))
        help_width = formatter.width - 6 - widest
        for heading, verbs in VERB_GROUPS.items():
            commands = {verb: command for verb in verbs if (command := self.get_command(ctx, verb))}
            rows = [(f"{verb:<{widest}}", command.get_short_help_str(help_width)) for verb, command in commands.items()]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolves a verb; for a mistyped one the error suggests the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if not (near := find_similar(args[0], self.list_commands(ctx))):
                raise
            raise click.UsageError(f"{error.message} Did you mean {near!r}?", ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the visible verbs; for bash, which shows no descriptions, no module is imported."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem  # only for completion

        names = [name for name in visible_verbs() if name.startswith(incomplete)]
        if config.completing_shell() == "bash":
            return [CompletionItem(name) for name in names]
        commands = [(name, self.get_command(ctx, name)) for name in names]
        return [CompletionItem(name, help=command.get_short_help_str()) for name, command in commands if command]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a verb, imported from its module; None for an unknown one."""
        module = next((name for name, verbs in MODULE_VERBS.items() if cmd_name in verbs), None)
        if module is None:
            return None
        group: click.Group = importlib.import_module(f"csmd.cli.{module}").VERBS
        return group.get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; handles three of click's errors."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of stdout has closed the pipe, which is not an error; click would exit with 1.
            _drop_output()
        except click.BadOptionUsage as error:
            # An option without its value: the error lists the values.
            if choices := self._choices_of(ctx, error.option_name):
                raise click.UsageError(f"{error.message} It is one of: {', '.join(choices)}.", ctx) from None
            raise
        except NO_COMMAND as error:
            # A group alone prints its help; click would exit with 2.
            click.echo(error.message)
        return None

    def _choices_of(self, ctx: click.Context, option: str) -> tuple[str, ...]:
        """Returns the choices of an option of the verb or of one of its subcommands; () if it takes any value."""
        verb = self.get_command(ctx, ctx.invoked_subcommand or "")
        subcommands = verb.commands.values() if isinstance(verb, click.Group) else ()
        commands = [command for command in (verb, *subcommands) if command]
        params = [param for command in commands for param in command.params if option in param.opts]
        return next((tuple(param.type.choices) for param in params if isinstance(param.type, click.Choice)), ())


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(csmd.__version__, prog_name="csmd")
@click.pass_context
def main(context: click.Context) -> None:
    """A memory across sessions for AI coding assistants: local, without an LLM, without a network."""
    if context.invoked_subcommand is None:
        from csmd.cli.overview import show_overview

        show_overview()


#: Shell -> the file in which it looks for a completion script, with any further setup.
COMPLETION_FILES = {
    "bash": "~/.local/share/bash-completion/completions/csmd",
    "zsh": "~/.zfunc/_csmd  (with `fpath+=~/.zfunc; autoload -Uz compinit && compinit` in ~/.zshrc)",
    "fish": "~/.config/fish/completions/csmd.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(sorted(COMPLETION_FILES)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    assert shell_class is not None  # COMPLETION_FILES has shells of click's only
    script = shell_class(context.find_root().command, {}, "csmd", config.COMPLETION_VARIABLE)
    click.echo(script.source_template % script.source_vars())
    click.echo(f"to use it, write this to {COMPLETION_FILES[shell]}", err=True)


VERBS = click.Group(commands=[completion])
