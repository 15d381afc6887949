"""Declares commands: the tool that each calls, its options, and the screen that prints the answer."""

from __future__ import annotations

import inspect
import os
import re
import select
import termios
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack

import click

from csmd import client, wire
from csmd.cli import render
from csmd.config import ASSISTANT_PROGRAMS, assistant_variable, default_paths
from csmd.errors import CsmdError
from csmd.installer import foreign_files
from csmd.paths import is_there

F = TypeVar("F", bound=Callable[..., Any])
#: The default of --project: this directory's, or all; `none` if the answer does not depend on a project.
Scope = Literal["directory", "all", "none"]

# --- options


def option(*names: str, **settings: Any) -> click.Option:
    """Returns an option that takes a value."""
    return click.Option(names, **settings)


def flag(*names: str, **settings: Any) -> click.Option:
    """Returns an option without a value."""
    return click.Option(names, is_flag=True, **settings)


def yes(description: str) -> click.Option:
    """Returns the flag that answers a command's question with yes."""
    return flag("-y", "--yes", help=description)


def text(name: str, metavar: str, description: str, **settings: Any) -> click.Option:
    """Returns an option with a text, "" by default."""
    return option(name, metavar=metavar, default="", help=description, **settings)


def argument(name: str, metavar: str | None = None, **settings: Any) -> click.Argument:
    """Returns an argument."""
    return click.Argument([name], metavar=metavar, **settings)


def optional(name: str, metavar: str) -> click.Argument:
    """Returns an optional argument, "" by default."""
    return argument(name, metavar, required=False, default="")


def limit(default: int, maximum: int = 1000, description: str | None = None) -> click.Option:
    """Returns the option --limit: the number of rows shown."""
    return option("--limit", default=default, show_default=True, type=click.IntRange(1, maximum), help=description)


def project_option(description: str) -> click.Option:
    """Returns the option --project."""
    return option("--project", metavar="PATH", help=description)


JSON = flag("--json", "as_json", help="Print JSON.")
ID = argument("id", "ID")
DRY_RUN = flag("--dry-run", help="Show what would be done and change nothing.")
YES = yes("Do not ask. Refused if an assistant runs csmd.")
ALL = flag("--all", "everything", help="List everything.")
PROJECT = project_option("This directory's by default.")
PROJECT_IN = project_option("The project to look in; this directory's by default.")
#: Options of verbs that look in projects: by default in this directory's (PROJECTS), or in all (ALL_UNLESS_NAMED).
PROJECTS = (flag("--all-projects", help="Look in every project."), PROJECT_IN)
ALL_PROJECTS = flag("--all-projects", help="Look in every project (the default).")
ALL_UNLESS_NAMED = (ALL_PROJECTS, project_option("The project to look in; all by default."))


def one_of(field: str, words: Sequence[str], metavar: str) -> click.Option:
    """Returns an option that limits memories to those with one value of a field."""
    description = f"Memories of one {field}: {', '.join(sorted(words))}."
    return option(f"--{field}", metavar=metavar, type=click.Choice(words), help=description)


# --- verbs


class ReplySettings(TypedDict, total=False):
    """The settings that a declared command passes to `reply`."""

    scope: Scope
    sends_by_person: bool
    is_job: bool
    make_question: Callable[[dict[str, Any]], str]


class Verbs(click.Group):
    """A group of commands declared by decorators: the verbs of a module, or the subcommands of a verb."""

    def add_group(self, name: str, description: str) -> Verbs:
        """Adds a verb with subcommands."""
        group = Verbs(name, help=description)
        self.add_command(group)
        return group

    def action(self, name: str, *params: click.Parameter) -> Callable[[F], F]:
        """Declares a command with --json; the docstring of the function is the help."""

        def declare(function: F) -> F:
            self.add_command(click.command(name, params=[*params, JSON])(function))
            return function

        return declare

    def tool(
        self, name: str, tool: str, *params: click.Parameter, **settings: Unpack[ReplySettings]
    ) -> Callable[[F], F]:
        """Declares a command that calls a tool and prints the answer with this screen; its docstring is the help."""

        def declare(screen: F) -> F:
            self.add_tool(name, tool, screen, inspect.getdoc(screen) or "", *params, **settings)
            return screen

        return declare

    def add_tool(
        self, name: str, tool: str, show: Callable[..., render.Screen] | str, description: str, *params: click.Parameter,
        constants: Mapping[str, Any] | None = None, **settings: Unpack[ReplySettings],
    ) -> None:  # fmt: skip
        """Adds a command for one tool: its options are the tool's parameters, `constants` are further parameters.

        `show` is a screen, or a format string filled with the answer's fields. Options that the screen declares go to
        the screen, the others and --all-projects to the tool; `settings` go to `reply`.
        """
        screen = render.template(show) if isinstance(show, str) else show
        declared = inspect.signature(screen).parameters

        def run(**options: Any) -> None:
            bound = partial(screen, **{name: value for name, value in options.items() if name in declared})
            params = {name: options[name] for name in options if name not in declared or name == "all_projects"}
            reply(tool, bound, {**(constants or {}), **params}, **settings)

        self.add_command(click.Command(name, callback=run, params=[*params, JSON], help=description))


def reply(
    tool: str, show: Callable[..., render.Screen], options: dict[str, Any], *, scope: Scope = "directory",
    sends_by_person: bool = False, is_job: bool = False, make_question: Callable[[dict[str, Any]], str] = lambda _: "",
) -> None:  # fmt: skip
    """Calls a tool with a command's options as parameters, and prints the answer.

    `make_question` returns a question to confirm first, "" for none. With `sends_by_person` the tool gets whether a
    person asks; with `is_job` its progress is shown.
    """
    values = {name: "" if value is None else value for name, value in options.items() if name not in ("as_json", "yes")}
    if question := make_question(values):
        confirm(question, yes=bool(options.get("yes")))
    if "project" in values:
        everywhere = bool(values.pop("all_projects", False)) or (scope == "all" and options["project"] is None)
        values |= project_params(options["project"], everywhere)
    elif scope != "none":
        values["asking"] = resolve_project(None)
    if sends_by_person:
        values["by_person"] = is_interactive()
    print_answer((run_job if is_job else ask)(tool, **values), options["as_json"], show)


def ask(tool: str, **params: Any) -> Any:
    """Calls a tool of the running daemon and returns its answer."""
    return client.call(default_paths(), tool, params)


def ask_here(tool: str, **params: Any) -> Any:
    """Calls a tool that gets the caller's directory, and whether a person asks."""
    return ask(tool, **params, asking=resolve_project(None), by_person=is_interactive())


def run_job(tool: str, **params: Any) -> dict[str, Any]:
    """Starts a job, shows its progress on stderr, and returns its result. After ^C the daemon finishes it."""
    is_started = False
    try:
        with render.progress() as bar:

            def watch(state: dict[str, Any]) -> None:
                nonlocal is_started
                is_started = True
                bar(state)

            return client.run_job(default_paths(), tool, params, watch=watch)
    except KeyboardInterrupt:
        if is_started:
            render.complain("it continues in the background; `csmd status` shows it")
        raise


def print_answer(value: Any, as_json: bool, screen: Callable[..., render.Screen], **options: Any) -> None:
    """Prints an answer as JSON or for people; `options` go to the screen."""
    if as_json:
        click.echo(wire.pretty(value))
    else:
        render.show(screen(value, **options))


def write_file(path: Path, data: bytes, *, hint: str) -> None:
    """Writes a file atomically; CsmdError with the hint if that fails."""
    try:
        foreign_files.write_atomic(path, data)
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}; nothing was changed", hint=hint) from error


# --- the caller and the project

#: Fewest characters of a project's id that are accepted for it.
MIN_ID_CHARS = 4


def is_interactive() -> bool:
    """Whether stdin is a terminal and this process has a controlling one; a pseudo terminal counts."""
    try:
        if not os.isatty(0):
            return False
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def find_assistant() -> str:
    """Returns the variable or the program name that shows that an assistant runs this command; "" if none does."""
    from csmd.machine import list_ancestors

    return assistant_variable() or next((name for name in list_ancestors() if name in ASSISTANT_PROGRAMS), "")


def describe_caller() -> str:
    """Returns the caller in words, to be shown as the one who paused or stopped csmd."""
    if assistant := find_assistant():
        return f"an assistant ({assistant})"
    return "a person at a terminal" if is_interactive() else "a program"


def require_terminal() -> None:
    """Raises CsmdError without a terminal."""
    if not is_interactive():
        raise CsmdError("this needs a person at a terminal", hint="run it in a terminal")


def confirm(question: str, *, yes: bool, check: Callable[[], object] = lambda: None) -> None:
    """Asks a person before data becomes visible or gains authority; CsmdError without a terminal.

    `yes` answers the question, but not for an assistant. That is an obstacle, not a lock: an assistant can hide itself.
    `check` raises CsmdError if what the question is about cannot be done.
    """
    if yes:
        if assistant := find_assistant():
            raise CsmdError(f"an assistant ({assistant}) cannot use --yes", hint="run it in a terminal")
        return
    if not is_interactive():
        hint = "run it in a terminal, or give --yes in a script"
        raise CsmdError("not a terminal; cannot ask for confirmation", hint=hint)
    check()
    require_yes(question)


def ask_yes_no(question: str, *, default: bool, err: bool = False) -> bool:
    """Asks a question, wrapped at the terminal's width, and returns the answer; click.Abort for ^C and end of input."""
    wrapped = "\n".join(render.wrap(question, render.width() - len(" [y/N]: ")))
    return click.confirm(wrapped, default=default, err=err)


def require_yes(question: str, *, err: bool = True) -> None:
    """Asks a person before anything is done; a no exits with code 1, ^C and end of input with 130."""
    try:
        agrees = ask_yes_no(question, default=False, err=err)
    except click.Abort:
        click.echo("No change.", err=True)
        raise
    if not agrees:
        click.echo("No change.", err=True)
        raise SystemExit(1)


def resolve_project(project: str | None, everywhere: bool = False) -> str:
    """Returns the absolute path of the named project or this directory; "" for all projects."""
    try:
        return "" if everywhere else os.path.realpath(Path(project or ".").expanduser())
    except FileNotFoundError:
        raise CsmdError("this directory no longer exists", hint="cd to another, or give --project PATH") from None


def project_params(project: str | None, everywhere: bool = False) -> dict[str, str]:
    """Returns the parameters `project` (where to look, "" for all) and `asking` (the caller's directory).

    For a person who names another project, `asking` is that project, so that its walls do not hide it.
    """
    if project is not None and everywhere:
        raise click.UsageError("--project and --all-projects do not go together")
    path = resolve_project(project, everywhere) if project is None or everywhere else _find_project(project)
    return {"project": path, "asking": path if path and is_interactive() else resolve_project(None)}


def _find_project(project: str) -> str:
    """Returns the project that --project names: a directory, also one that is gone, or a known project's name, title or
    id."""
    directory = resolve_project(project)
    if is_there(directory):
        return directory
    projects = ask("csm_project_list")["projects"]
    paths: list[str] = []
    for row in projects:
        paths += filter(None, (row["root"], *(other["path"] for other in row["aliases"]), *row["merged"]))
    # A path that is missing below an existing directory is not part of that project.
    parents = [root for root in paths if root in (directory, project) or ("/" in project and _is_gone(directory, root))]
    if parents:
        return max(parents, key=len)
    by_name = [row for row in projects if row["name"] == project or _has_title(row["root"], project)]
    by_id = [row for row in projects if len(project) >= MIN_ID_CHARS and row["id"].startswith(project)]
    roots: list[str] = [row["root"] for row in by_name or by_id]
    if len(roots) == 1:
        return roots[0]
    if roots:
        hint = "name one by its path or its id"
        raise CsmdError(f"{len(roots)} projects are called {project}: {', '.join(roots)}", hint=hint)
    similar = _find_similar(project, paths if "/" in project else [row["name"] for row in projects])
    hint = f"did you mean {similar}?" if similar else "`csmd project list` shows the known projects"
    raise CsmdError(f"{project}: neither a directory nor a known project", hint=hint)


def _find_similar(word: str, names: Sequence[str]) -> str:
    """Returns the name most similar to the typed one, by its last part, then by its parent directory; "" if none is
    similar."""
    import difflib  # only for a mistyped name

    last = difflib.get_close_matches(Path(word).name, [Path(name).name for name in names], n=1)
    parts = Path(word).parts[-2:]

    def similarity(name: str) -> float:
        return difflib.SequenceMatcher(None, Path(name).parts[-len(parts) :], parts).ratio()

    return max((name for name in names if Path(name).name in last), key=similarity, default="")


def _is_gone(path: str, root: str) -> bool:
    """Whether a path lies below a root that is gone."""
    return Path(path).is_relative_to(root) and not is_there(root)


def _has_title(root: str, word: str) -> bool:
    """Whether a directory ends with the typed text (`clients/shop`), as pages name projects that share a name."""
    return "/" in word and root.endswith(f"/{word}")


# --- a person's keys and editor

#: The key for the end of input.
END_OF_INPUT = "\x04"
#: Characters that a terminal sends for an arrow, a function key or escape.
_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)?")
#: Replaces an escape sequence in the keys that were read.
NO_CHARACTER = "\x00"


class Keys:
    """The terminal on standard input, read key by key; ^C still interrupts."""

    def __init__(self) -> None:
        self._saved_mode = termios.tcgetattr(0)
        self._pending = ""

    def __enter__(self) -> Keys:
        tty.setcbreak(0, termios.TCSADRAIN)  # keeps keys typed ahead
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(0, termios.TCSADRAIN, self._saved_mode)

    @contextmanager
    def line_mode(self) -> Iterator[None]:
        """Restores the terminal within the block, for an editor or a typed line."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def read(self) -> str:
        """Returns the next key; "" for one that is not a character (an arrow), END_OF_INPUT at the end of input."""
        if not self._pending:
            # A ^C between Python's check for signals and the system call would not end a blocking read; with a
            # timeout it counts within a second.
            while not select.select([0], [], [], 1.0)[0]:
                pass
            # Keys typed after an arrow are read together with it.
            self._pending = _ESCAPE_SEQUENCE.sub(NO_CHARACTER, os.read(0, 64).decode("utf-8", "replace"))
        key, self._pending = self._pending[:1], self._pending[1:]
        return "" if key == NO_CHARACTER else key or END_OF_INPUT


def edit_text(text: str) -> str:
    """Opens a text in the user's editor ($VISUAL, $EDITOR); returns the new text, "" if it was not changed."""
    note = "# Lines that begin with # are ignored. An empty text changes nothing."
    try:
        edited = click.edit(f"{text}\n\n{note}\n", extension=".txt", require_save=True)
    except click.ClickException as error:
        raise CsmdError(f"the editor: {error.message}", hint="csmd edit ID TEXT, or set EDITOR") from None
    lines = (edited or "").splitlines()
    return " ".join(line.strip() for line in lines if not line.startswith("#")).strip()
