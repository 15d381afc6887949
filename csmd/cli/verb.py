"""A verb that asks the daemon something and shows its answer; single keys from a terminal."""

from __future__ import annotations

import difflib
import os
import re
import termios
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import click

from csmd import client, wire
from csmd.cli import render
from csmd.config import default_paths
from csmd.errors import CsmdError
from csmd.installer import foreign_files
from csmd.model import CATEGORIES, GATE_PRIORITY, MemoryType
from csmd.text.display import squeeze
from csmd.text.prose import sentences

#: What the end of the input is told as.
END = "\x04"
#: What a terminal sends for a key that is no letter: an arrow, a function key, escape itself.
_NO_LETTER = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)?")
NOTHING = "\x00"


class Keys:
    """The terminal on standard input while keys count one by one; ^C still interrupts."""

    def __init__(self) -> None:
        self._usual = termios.tcgetattr(0)
        self._typed = ""

    def __enter__(self) -> Keys:
        single = termios.tcgetattr(0)
        single[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(0, termios.TCSADRAIN, single)  # what was typed ahead stays
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(0, termios.TCSADRAIN, self._usual)

    @contextmanager
    def lines(self) -> Iterator[None]:
        """The terminal as it is usually, for an editor or a line that is typed."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def press(self) -> str:
        """The next key; "" for one that is no letter (an arrow), END at the end of the input."""
        if not self._typed:
            # What was typed behind an arrow comes with it, and counts.
            self._typed = _NO_LETTER.sub(NOTHING, os.read(0, 64).decode("utf-8", "replace"))
        key, self._typed = self._typed[:1], self._typed[1:]
        return "" if key == NOTHING else key or END


#: The shortest beginning of a project's id that is taken for one.
SHORTEST_ID = 4

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def ask(tool: str, **params: Any) -> Any:
    """Asks the running daemon one thing."""
    return client.call(default_paths(), tool, params)


def out(value: Any, as_json: bool, human: Callable[[Any], None]) -> None:
    """Prints an answer as JSON or for people."""
    if as_json:
        click.echo(wire.pretty(value))
    else:
        human(value)


def one_of(what: str, words: Iterable[str]) -> str:
    """The help of an option that limits memories to one of these words."""
    return f"Memories of one {what}: {', '.join(sorted(words))}."


def work(tool: str, params: dict[str, Any], as_json: bool, human: Callable[[Any], None]) -> None:
    """Has the daemon do a job, shows how far it is, and prints its result."""
    with render.progress() as bar:
        result = client.work(default_paths(), tool, params, watch=bar)
    out(result, as_json, human)


def person_is_there() -> bool:
    """Whether somebody types: stdin is a terminal and this process has one; a pseudo terminal passes for one."""
    try:
        if not os.isatty(0):
            return False
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def here(project: str | None, everywhere: bool = False) -> str:
    """The project a verb is about: the one named, this directory, or "" for all."""
    try:
        return "" if everywhere else str(Path(project or ".").expanduser().resolve())
    except FileNotFoundError:
        raise CsmdError("this directory is gone", hint="cd to one that is there, or name one: --project PATH") from None


def _named(project: str) -> str:
    """The project that --project names: a directory, one that is gone and known, or a known one's name, title or id."""
    about = here(project)
    if Path(about).exists():
        return about
    projects = ask("csm_project_list")["projects"]
    paths: list[str] = [
        root
        for row in projects
        for root in (row["root"], *(other["path"] for other in row["aliases"]), *row["merged"])
        if root
    ]
    # Below a directory that is there it would be there, too: what is not is nothing of that project's.
    around = [root for root in paths if root == about or ("/" in project and _was_in(about, root))]
    if around:
        return max(around, key=len)
    named: list[str] = [row["root"] for row in projects if row["name"] == project or _titled(row["root"], project)]
    named = named or [row["root"] for row in projects if len(project) >= SHORTEST_ID and row["id"].startswith(project)]
    if len(named) > 1:
        raise CsmdError(
            f"{len(named)} projects are called {project}: {', '.join(named)}", hint="name one by its path or its id"
        )
    if named:
        return named[0]
    near = _nearest(project, paths if "/" in project else [row["name"] for row in projects])
    raise CsmdError(
        f"{project}: no such directory, and no project that csmd knows",
        hint=f"did you mean {near}?" if near else "`csmd project list` shows those that it knows",
    )


def _nearest(typed: str, among: Sequence[str]) -> str:
    """What somebody may have meant: its last part is alike, of several that with the likest directory around it; "" for none."""
    last = difflib.get_close_matches(Path(typed).name, [Path(one).name for one in among], n=1)
    parts = Path(typed).parts[-2:]
    return max(
        (one for one in among if Path(one).name in last),
        key=lambda one: difflib.SequenceMatcher(None, Path(one).parts[-len(parts) :], parts).ratio(),
        default="",
    )


def _was_in(path: str, root: str) -> bool:
    return Path(path).is_relative_to(root) and not Path(root).exists()


def _titled(root: str, typed: str) -> bool:
    """Whether a directory ends as it is typed, with the directory around it: pages tell projects of one name so."""
    return "/" in typed and root.endswith(f"/{typed}")


def looking(project: str | None, everywhere: bool = False) -> dict[str, str]:
    """What a question is about and from where it is put: a person who names another project goes there, others do not."""
    about = here(project, everywhere) if project is None or everywhere else _named(project)
    return {"project": about, "asking": about if about and person_is_there() else here(None)}


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --project and --all-projects to a verb."""
    command = click.option("--project", metavar="PATH", help="The project to look in; this directory's by default.")(
        command
    )
    return click.option("--all-projects", is_flag=True, help="Look in every project.")(command)


@click.command()
@click.argument("words", metavar="QUERY...", nargs=-1, required=True)
@project_options
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 200))
@click.option("--kind", type=click.Choice(["memory", "turn", "session", "all"]), default="all", show_default=True)
@click.option("--since", default="", metavar="TIME", help="Said since: 2026-01-31, 7d, `last week`.")
@click.option("--until", default="", metavar="TIME", help="Said until.")
@click.option("--session", default="", metavar="ID", help="Said in one session.")
@click.option("--gate", metavar="GATE", type=click.Choice(sorted(GATE_PRIORITY)), help=one_of("gate", GATE_PRIORITY))
@click.option(
    "--category", metavar="CATEGORY", type=click.Choice(sorted(CATEGORIES)), help=one_of("category", CATEGORIES)
)
@click.option(
    "--type",
    "type_",
    metavar="TYPE",
    type=click.Choice(sorted(get_args(MemoryType))),
    help=one_of("type", get_args(MemoryType)),
)
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@json_option
def search(
    words: tuple[str, ...],
    project: str | None,
    all_projects: bool,
    limit: int,
    kind: str,
    since: str,
    until: str,
    session: str,
    gate: str | None,
    category: str | None,
    type_: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Search memories and past conversations. Several words need no quotes."""
    query = " ".join(words)
    begun = time.monotonic()
    found = ask(
        "csm_memory_search", query=query, **looking(project, all_projects), limit=limit, kind=kind, explain=explain,
        since=since, until=until, session=session, gate=gate or "", category=category or "", type=type_ or "",
    )  # fmt: skip
    value = {"query": query, "took_ms": round((time.monotonic() - begun) * 1000, 1), **found}
    out(value, as_json, lambda shown: render.show_hits(shown, explain=explain))


@click.command()
@click.argument("text")
@click.option("--project", metavar="PATH", help="The project it holds in; this directory's by default.")
@click.option("--everywhere", is_flag=True, help="It holds in every project.")
@click.option("--pin", is_flag=True, help="Never let it fade.")
@click.option("--yes", is_flag=True, help="Keep a question, too, and do not ask.")
@json_option
def remember(text: str, project: str | None, everywhere: bool, pin: bool, yes: bool, as_json: bool) -> None:
    """Remember a statement; typed in a terminal it counts as yours. Else it is your assistant's and confirms nothing."""
    by_person, place = person_is_there(), looking(project, everywhere)
    asks = not yes and _only_asks(text)
    if asks and by_person:
        click.confirm("This asks something: keep it all the same?", abort=True, err=as_json)
    found = ask("csm_memory_save", text=text, **place, pin=pin, by_person=by_person)
    out(found, as_json, lambda value: render.remembered(value, by_person=by_person))
    if asks and not by_person and not as_json:
        render.print_text(
            render.console(), f"it asks something and is kept as a fact: csmd forget {found['id']}", style="dim"
        )
    _switched_off(place["project"], as_json)


def _only_asks(said: str) -> bool:
    """Whether every sentence is a question; one that answers itself states something."""
    parts = sentences(squeeze(said))
    return bool(parts) and all(part.rstrip(" )\"'”’»").endswith("?") for part in parts)


@click.command()
@click.option("--project", metavar="PATH", help="This directory's by default.")
@json_option
def brief(project: str | None, as_json: bool) -> None:
    """Show what a session that starts here would be told."""
    nothing = "nothing yet: `csmd memories` lists what there is, also what waits in review"
    place = looking(project)
    out(ask("csm_memory_context", **place), as_json, lambda value: render.injection(value, nothing=nothing))
    _switched_off(place["project"], as_json)


def _switched_off(place: str, as_json: bool) -> None:
    """Says that a directory is left out: sessions there are told nothing, whatever is shown."""
    mark = "" if as_json else foreign_files.left_out(place or here(None))
    if mark:
        said = f"csmd is switched off there by {mark}: no session is captured or told anything"
        render.print_text(render.console(), said, style="yellow")


@click.command()
@click.option("--project", metavar="PATH", help="This directory's by default.")
@click.option("--prompt", help="What the user would type.")
@click.option("--file", "path", metavar="PATH", help="A file that a prompt names, or that the session is at.")
@json_option
def recall(project: str | None, prompt: str | None, path: str | None, as_json: bool) -> None:
    """Show what would be added to a prompt, or is known of a file."""
    if (prompt is None) == (path is None):
        raise click.UsageError("give either --prompt TEXT or --file PATH")
    if path is not None:
        found, nothing = ask("csm_memory_file_recall", **looking(project), file=path), f"nothing is known of {path}"
    else:
        found = ask("csm_memory_recall", **looking(project), prompt=prompt)
        nothing = "Nothing would be added: nothing said before bears on it."
    out(found, as_json, lambda value: render.injection(value, nothing=nothing))


@click.command()
@click.argument("name")
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="A parameter; may be given several times.")
@click.option("--json", "as_json", is_flag=True, hidden=True, help="The answer is always JSON.")
def tool(name: str, params: tuple[str, ...], as_json: bool) -> None:
    """Ask the daemon one thing by its tool's name. `csmd tool list` names them."""
    del as_json
    for param in params:
        if "=" not in param:
            raise click.UsageError(f"--param {param}: expected KEY=VALUE")
    pairs = dict(param.split("=", 1) for param in params)
    if "by_person" in pairs:
        raise CsmdError(
            "who speaks is told by the terminal, not by a parameter",
            hint="type `csmd remember` or `csmd forget` in a terminal",
        )
    # Where one stands is no parameter either: it decides what is seen of walled projects.
    pairs["asking"] = here(None)
    click.echo(wire.pretty(ask("csm_tools" if name == "list" else name, **pairs)))


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    search,
    remember,
    brief,
    recall,
    tool,
)
