"""Declares commands: which tool each calls, its options, how its answer is printed."""

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
from typing import Any, Literal, TypeVar

import click

from csmd import client, wire
from csmd.cli import render
from csmd.config import ASSISTANT_PROGRAMS, assistant_variable, default_paths
from csmd.errors import CsmdError
from csmd.installer import foreign_files
from csmd.paths import is_there

F = TypeVar("F", bound=Callable[..., Any])
#: The projects that a command without --project is about; `none` if its answer does not depend on one.
Scope = Literal["directory", "all", "none"]

# --- options


def option(*names: str, **about: Any) -> click.Option:
    """An option that takes a value."""
    return click.Option(names, **about)


def flag(*names: str, **about: Any) -> click.Option:
    """An option without a value."""
    return click.Option(names, is_flag=True, **about)


def yes(about: str) -> click.Option:
    """The flag that answers a command's question with yes."""
    return flag("-y", "--yes", help=about)


def text(name: str, metavar: str, about: str, **more: Any) -> click.Option:
    """An option with a text, "" by default."""
    return option(name, metavar=metavar, default="", help=about, **more)


def argument(name: str, metavar: str | None = None, **about: Any) -> click.Argument:
    """An argument."""
    return click.Argument([name], metavar=metavar, **about)


def optional(name: str, metavar: str) -> click.Argument:
    """An optional argument, "" by default."""
    return click.Argument([name], metavar=metavar, required=False, default="")


def limit(default: int, most: int = 1000, about: str | None = None) -> click.Option:
    """How many are shown."""
    return option("--limit", default=default, show_default=True, type=click.IntRange(1, most), help=about)


def project_of(about: str) -> click.Option:
    """The option --project."""
    return option("--project", metavar="PATH", help=about)


JSON = flag("--json", "as_json", help="Print JSON.")
ID = argument("id", "ID")
DRY_RUN = flag("--dry-run", help="Show what would be done and change nothing.")
YES = yes("Do not ask. Not where an assistant runs csmd.")
ALL = flag("--all", "everything", help="List every one.")
PROJECT = project_of("This directory's by default.")
PROJECT_IN = project_of("The project to look in; this directory's by default.")
#: Options of verbs that look in projects, by default in this directory's (PROJECTS) or in all.
PROJECTS = (flag("--all-projects", help="Look in every project."), PROJECT_IN)
ALL_UNLESS_NAMED = (
    flag("--all-projects", help="Look in every project, as by default."),
    project_of("The project to look in; all by default."),
)


def one_of(what: str, words: Sequence[str], metavar: str) -> click.Option:
    """An option that limits memories to one of these words."""
    about = f"Memories of one {what}: {', '.join(sorted(words))}."
    return option(f"--{what}", metavar=metavar, type=click.Choice(words), help=about)


# --- verbs


class Verbs(click.Group):
    """A group of commands declared by decorators: the verbs of a module, or those below a verb."""

    def add_group(self, name: str, about: str, **more: Any) -> Verbs:
        """Adds a verb that has verbs of its own."""
        group = Verbs(name, help=about, **more)
        self.add_command(group)
        return group

    def action(self, name: str, *params: click.Parameter) -> Callable[[F], F]:
        """Makes a function a command with --json; its docstring is the help."""

        def declare(function: F) -> F:
            self.add_command(click.command(name, params=[*params, JSON])(function))
            return function

        return declare

    def tool(self, name: str, tool: str, *params: click.Parameter, **how: Any) -> Callable[[F], F]:
        """Declares a command that calls a tool and prints the answer with this screen; its docstring is the help."""

        def declare(screen: F) -> F:
            self.row(name, tool, screen, inspect.getdoc(screen) or "", *params, **how)
            return screen

        return declare

    def row(
        self, name: str, tool: str, show: Callable[..., render.Screen] | str, about: str, *params: click.Parameter,
        fixed: Mapping[str, Any] | None = None, **how: Any,
    ) -> None:  # fmt: skip
        """Adds a verb for one tool: its options are the tool's parameters, `fixed` are further ones.

        `show` is a screen, or a format string filled with the answer's fields. Options that the screen declares go to
        the screen, the others and --all-projects to the tool; `how` goes to `reply`.
        """
        screen = render.template(show) if isinstance(show, str) else show
        declared = inspect.signature(screen).parameters

        def run(**options: Any) -> None:
            shown = partial(screen, **{name: value for name, value in options.items() if name in declared})
            params = {name: options[name] for name in options if name not in declared or name == "all_projects"}
            reply(tool, shown, {**(fixed or {}), **params}, **how)

        self.add_command(click.Command(name, callback=run, params=[*params, JSON], help=about))


def reply(
    tool: str, show: Callable[..., render.Screen], options: dict[str, Any], *, scope: Scope = "directory",
    sends_by_person: bool = False, is_job: bool = False, opens: Callable[[dict[str, Any]], str] = lambda _: "",
) -> None:  # fmt: skip
    """Calls a tool with a command's options as parameters, and prints the answer.

    `opens` returns the question that a person is asked first, "" for none. With `sends_by_person` the tool learns
    whether a person asks; with `is_job` its progress is shown.
    """
    values = {name: "" if value is None else value for name, value in options.items() if name not in ("as_json", "yes")}
    if question := opens(values):
        confirm(question, yes=bool(options.get("yes")))
    if "project" in values:
        everywhere = bool(values.pop("all_projects", False)) or (scope == "all" and options["project"] is None)
        values |= project_params(options["project"], everywhere)
    elif scope != "none":
        values["asking"] = resolve_project(None)
    if sends_by_person:
        values["by_person"] = is_interactive()
    print_answer((work if is_job else ask)(tool, **values), options["as_json"], show)


def ask(tool: str, **params: Any) -> Any:
    """Calls a tool of the running daemon and returns its answer."""
    return client.call(default_paths(), tool, params)


def work(tool: str, **params: Any) -> dict[str, Any]:
    """Starts a job, shows its progress on stderr, and returns its result. After ^C the daemon finishes it."""
    is_ordered = False
    try:
        with render.progress() as bar:

            def watch(state: dict[str, Any]) -> None:
                nonlocal is_ordered
                is_ordered = True
                bar(state)

            return client.work(default_paths(), tool, params, watch=watch)
    except KeyboardInterrupt:
        if is_ordered:
            render.complain("it goes on in the background; `csmd status` shows it")
        raise


def print_answer(value: Any, as_json: bool, screen: Callable[..., render.Screen], **options: Any) -> None:
    """Prints an answer as JSON or for people; `options` go to the screen."""
    if as_json:
        click.echo(wire.pretty(value))
    else:
        render.show(screen(value, **options))


def write(path: Path, data: bytes, *, hint: str) -> None:
    """Writes a file atomically; CsmdError with the hint if that fails."""
    try:
        foreign_files.write_atomic(path, data)
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}; nothing was changed", hint=hint) from error


# --- who asks, and about which project

#: Shortest accepted beginning of a project's id.
SHORTEST_ID = 4


def is_interactive() -> bool:
    """Whether stdin is a terminal and this process has a controlling one; a pseudo terminal counts."""
    try:
        if not os.isatty(0):
            return False
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def assistant_mark() -> str:
    """The sign that an assistant runs this: a variable that it sets, or a parent process; "" for none."""
    from csmd.machine import ancestors

    return assistant_variable() or next((name for name in ancestors() if name in ASSISTANT_PROGRAMS), "")


def who() -> str:
    """Who runs this, in words, to be shown as the one who paused or stopped csmd."""
    if mark := assistant_mark():
        return f"an assistant ({mark})"
    return "a person at a terminal" if is_interactive() else "a program"


def confirm(question: str, *, yes: bool) -> None:
    """Asks a person before data becomes visible or gains authority; CsmdError if nobody can be asked.

    `yes` answers the question, but not for an assistant. That is an obstacle, not a lock: an assistant can hide itself.
    """
    if yes:
        if mark := assistant_mark():
            raise CsmdError(f"--yes does not count where an assistant runs csmd ({mark})", hint="type it in a terminal")
        return
    if not is_interactive():
        hint = "type it in a terminal; a script says --yes"
        raise CsmdError("not a terminal; cannot ask for confirmation", hint=hint)
    ask_first(question)


def agrees(question: str, *, default: bool, err: bool = False) -> bool:
    """Asks a question, wrapped at the terminal's width, and returns the answer; click.Abort for ^C and end of input."""
    shown = "\n".join(render.wrap(question, render.width() - len(" [y/N]: ")))
    return click.confirm(shown, default=default, err=err)


def ask_first(question: str, *, err: bool = True) -> None:
    """Asks a person before anything is done; a no, ^C or end of input exits with code 130."""
    try:
        agreed = agrees(question, default=False, err=err)
    except click.Abort:
        agreed = False
    if not agreed:
        click.echo("nothing was changed", err=True)
        raise click.Abort


def resolve_project(project: str | None, everywhere: bool = False) -> str:
    """The absolute path of the named project or this directory; "" for all projects."""
    try:
        return "" if everywhere else os.path.realpath(Path(project or ".").expanduser())
    except FileNotFoundError:
        raise CsmdError("this directory is gone", hint="cd to one that is there, or name one: --project PATH") from None


def project_params(project: str | None, everywhere: bool = False) -> dict[str, str]:
    """The parameters `project` (where to look, "" for all) and `asking` (the directory of the caller).

    For a person who names another project, that is the caller's directory, so that its walls do not hide it.
    """
    if project is not None and everywhere:
        raise click.UsageError("--project and --all-projects do not go together")
    about = resolve_project(project, everywhere) if project is None or everywhere else _find_project(project)
    return {"project": about, "asking": about if about and is_interactive() else resolve_project(None)}


def _find_project(project: str) -> str:
    """The project that --project names: a directory (it may be gone), or a known project's name, title or id."""
    about = resolve_project(project)
    if is_there(about):
        return about
    projects = ask("csm_project_list")["projects"]
    paths: list[str] = [
        root
        for row in projects
        for root in (row["root"], *(other["path"] for other in row["aliases"]), *row["merged"])
        if root
    ]
    # A path that is missing below an existing directory is not part of that project.
    around = [root for root in paths if root in (about, project) or ("/" in project and _is_in_gone(about, root))]
    if around:
        return max(around, key=len)
    by_name = [row for row in projects if row["name"] == project or _has_title(row["root"], project)]
    by_id = [row for row in projects if len(project) >= SHORTEST_ID and row["id"].startswith(project)]
    roots: list[str] = [row["root"] for row in by_name or by_id]
    if len(roots) == 1:
        return roots[0]
    if roots:
        hint = "name one by its path or its id"
        raise CsmdError(f"{len(roots)} projects are called {project}: {', '.join(roots)}", hint=hint)
    near = _nearest(project, paths if "/" in project else [row["name"] for row in projects])
    hint = f"did you mean {near}?" if near else "`csmd project list` shows those that it knows"
    raise CsmdError(f"{project}: no such directory, and no project that csmd knows", hint=hint)


def _nearest(typed: str, among: Sequence[str]) -> str:
    """The name most similar to the typed one, by its last part, then by its parent directory; "" for none."""
    import difflib  # only for a mistyped name

    last = difflib.get_close_matches(Path(typed).name, [Path(name).name for name in among], n=1)
    parts = Path(typed).parts[-2:]
    return max(
        (name for name in among if Path(name).name in last),
        key=lambda name: difflib.SequenceMatcher(None, Path(name).parts[-len(parts) :], parts).ratio(),
        default="",
    )


def _is_in_gone(path: str, root: str) -> bool:
    """Whether a path lies below a directory that is gone."""
    return Path(path).is_relative_to(root) and not is_there(root)


def _has_title(root: str, typed: str) -> bool:
    """Whether a directory ends with the typed text (`clients/shop`), as pages name projects that share a name."""
    return "/" in typed and root.endswith(f"/{typed}")


# --- a person's keys and editor

#: The key that means end of input.
END = "\x04"
#: Bytes of a key that is not a character: an arrow, a function key, escape.
_NO_LETTER = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)?")
NOTHING = "\x00"


class Keys:
    """The terminal on standard input, read key by key; ^C still interrupts."""

    def __init__(self) -> None:
        self._usual = termios.tcgetattr(0)
        self._typed = ""

    def __enter__(self) -> Keys:
        tty.setcbreak(0, termios.TCSADRAIN)  # keeps what was typed ahead
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(0, termios.TCSADRAIN, self._usual)

    @contextmanager
    def lines(self) -> Iterator[None]:
        """Restores the terminal within the block, for an editor or a typed line."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def press(self) -> str:
        """The next key; "" for one that is not a character (an arrow), END at end of input."""
        if not self._typed:
            # A ^C between Python's check for signals and the system call would not end a blocking read; with a
            # timeout it counts within a second.
            while not select.select([0], [], [], 1.0)[0]:
                pass
            # Keys typed after an arrow are read together with it.
            self._typed = _NO_LETTER.sub(NOTHING, os.read(0, 64).decode("utf-8", "replace"))
        key, self._typed = self._typed[:1], self._typed[1:]
        return "" if key == NOTHING else key or END


def edit_text(text: str) -> str:
    """Opens a text in the user's editor ($VISUAL, $EDITOR); returns the new text, "" if it was not changed."""
    note = "# Lines that begin with # are left out. An empty text changes nothing."
    try:
        typed = click.edit(f"{text}\n\n{note}\n", extension=".txt", require_save=True)
    except click.ClickException as error:
        raise CsmdError(f"the editor: {error.message}", hint="csmd edit ID TEXT, or set EDITOR") from None
    lines = (typed or "").splitlines()
    return " ".join(line.strip() for line in lines if not line.startswith("#")).strip()
