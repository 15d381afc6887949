"""What people see: status, memories and progress, at 80 columns; values in, text on a console."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from csmd import text as texts
from csmd.text import amount

if TYPE_CHECKING:
    from rich.console import Console

Progress = dict[str, Any]
#: Columns that a label takes.
LABEL = 9
#: What is left beside a progress bar for the project that is read.
PROGRESS_PROJECT = 30
#: A terminal narrower than that is scrolled sideways.
MIN_WIDTH = 20


def console() -> Console:
    """The terminal; 80 columns where there is none and COLUMNS says nothing else."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # whoever read our output has gone: cli.main knows that this is no error

    return Plain(highlight=False, emoji=False, markup=False)


def age(seconds: float) -> str:
    """A length of time in its two greatest units: `3 d 4 h`."""
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts = []
    for name, size in units:
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{int(amount)} {name}")
        if len(parts) == 2:
            break
    return " ".join(parts) or "0 s"


def size(amount: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return ""


def when(stamp: str) -> str:
    """A stored time as the local date and minute; as it is stored where the calendar ends (a clock can say anything)."""
    if not stamp or stamp.startswith("1970"):
        return "never"
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):
        return stamp[:16].replace("T", " ")


def shorten(path: str, width: int) -> str:
    """A path in at most `width` characters, its end kept."""
    return path if len(path) <= width else "…" + path[-(width - 1) :]


#: What is told of a memory beside a new one: the words before its id, before the command, and what ends the command.
BESIDE = {
    "replaced": ("Replaced", "Undo", "--undo"),
    "doubtful": ("May be replaced:", "Replace it", ""),
    "related": ("Related memory still active:", "Replace it", ""),
}


def remembered(value: dict[str, Any], *, by_person: bool) -> None:
    """What was remembered, and where it holds."""
    known = "confirmed" if by_person else "known already"
    place = f"in {value['project']}" if value["project"] else "everywhere"
    place += f" in the workspace {value['workspace']}" if value["workspace"] and not value["project"] else ""
    out = console()
    print_text(out, f"{'remembered' if value['new'] else known} as {value['id']}: {value['text']}")
    print_text(out, f"it holds {place}", style="dim")
    if value["waits"]:
        said = "typed by no person: search finds it, and no session is told of it before the user accepts it (`csmd review`)"
        print_text(out, said, style="yellow")
    if value["redacted"]:
        print_text(
            out, f"a secret was taken out of it ({', '.join(value['redacted'])}): csmd keeps none", style="yellow"
        )
    if value["paused"] and by_person:
        print_text(out, "kept, though csmd is paused: you said it yourself", style="yellow")
    for one in value["beside"]:
        told, does, answer = BESIDE[one["is"]]
        print_text(out, f"{told} {one['id']}: {one['text']}", most=4)
        if one["rest"]:
            print_text(out, f"Still active from it: {one['rest']['id']}: {one['rest']['text']}", indent=2, most=4)
        command = f"csmd supersede {one['id']} " + (answer or value["id"])
        print_text(out, f"{does}: {command}", indent=2, style="dim")


def injection(value: dict[str, Any], *, nothing: str) -> None:
    """A brief or recall as the assistant would read it."""
    out = console()
    if value.get("paused"):
        print_text(out, "csmd is paused: no session is told anything until `csmd resume`")
        return
    for line in (value["text"] or nothing).splitlines():
        # Wrapped for people; `--json` holds the very text.
        item = line.startswith("- ")
        print_text(out, line[2:] if item else line, head="- " if item else "")
    if value["text"]:
        out.print()
        told = f"{amount(value['tokens'], 'token')}, {amount(len(value['items']), 'note')}"
        print_text(out, told, style="dim")
    degraded(out, value["degraded"])


def imported(value: dict[str, Any]) -> None:
    """What an import or sync brought."""
    from csmd.cli import lines  # which are made of what is here

    out = console()
    news = [
        (value["turns_new"], "new turn"), (value["memories_new"], "new memory"), (value["vectors"], "vector"),
    ]  # fmt: skip
    said = ", ".join(amount(number, one) for number, one in news if number)
    said = said or "nothing new, everything was in already"  # what grows is read at once, so a sync often finds nothing
    known = f", {amount(value['turns_known'], 'turn')} known" if value["turns_known"] else ""
    took = lines.glued(f"{value['took_s']:.1f} s")
    known = f", {amount(value['memories_known'], 'memory')} known" if value.get("memories_known") else known
    read = amount(value["files"], "file" if "memories_known" in value else "transcript")
    for line in lines.wrapped(f"{read} read: {said}{known}, {took}", out.width):
        out.print(line)
    for name, told in BROUGHT.items():
        if value.get(name):
            print_text(out, told.format(amount(value[name], "memory")), style="yellow")
    for place in value.get("placed", ()):
        for line in lines.wrapped(_placed(place), out.width):
            print_text(out, line, style="" if place["is"] else "yellow")
    for problem in value.get("problems", ()):
        print_text(out, problem, style="yellow")
    told_beside(out, value)


def _placed(place: dict[str, Any]) -> str:
    """Where the memories of a directory went that is not here, or not the clone in which it was asked."""
    what = amount(place["memories"], "memory")
    if place["is"] == place["was"]:
        are = "is" if place["memories"] == 1 else "are"
        return f"{what} {are} in {place['was']}, which is here: a clone of {place['remote']} of its own"
    if place["is"]:
        return f"{what} of {place['was']} came to {place['is']}: the same repository, {place['remote']}"
    until = f", until a clone of {place['remote']} is worked in" if place["remote"] else ": it has no git remote"
    return f"{what} stay{'s' if place['memories'] == 1 else ''} under {place['was']}, which is not here{until}"


#: What an import of memories leaves out or changes, as people are told.
BROUGHT = {
    "forgotten": "{} left out: you made csmd forget them",
    "lowered": "{} taken in as an assistant's: import the file again in a terminal and say that they are yours, or answer `csmd review`",
    "vouched": "{} now as sure as where they come from: you vouch for them",
}


def exported(value: dict[str, Any]) -> None:
    """What was written, and how it comes in again."""
    out = console()
    of = f"of {value['project']} and of what holds everywhere" if value["project"] else "of all projects"
    print_text(out, f"{amount(value['memories'], 'memory')} {of} written to {value['path']}")
    if value["elsewhere"]:
        others = f"{amount(value['elsewhere'], 'memory')} of other projects are not among them"
        print_text(out, f"{others}{': --all-projects writes those, too' if value['project'] else ''}", style="yellow")
    print_text(out, "csmd import takes them in, here or on another machine", style="dim")
    if value["forgotten"]:
        print_text(
            out, "what you made csmd forget here, another machine that has it keeps: forget it there, too", style="dim"
        )


def told_beside(out: Console, value: dict[str, Any]) -> None:
    """What could not be read, was kept out, or goes on."""
    if value["bad_lines"]:
        verb = "is" if value["bad_lines"] == 1 else "are"
        noted = f"could not be read; {'it' if value['bad_lines'] == 1 else 'they'} {verb} noted in the quarantine"
        print_text(out, f"{amount(value['bad_lines'], 'line')} {noted}", style="yellow")
    if value["redactions"]:
        print_text(out, f"{amount(value['redactions'], 'secret')} kept out", style="dim")
    degraded(out, value["degraded"])
    if value.get("left"):
        print_text(out, f"the rest, {backfill(value['left'])}, goes on in the background")


def backfill(value: dict[str, Any]) -> str:
    """What of a past is still to be taken in, in words: `350 sessions (120.3 MB, about 3 min)`."""
    eta = value["eta_s"]
    soon = "" if eta is None else ", less than a minute" if eta < 60 else f", about {age(eta // 60 * 60)}"
    number = value["sessions_left"]
    return f"{number} session{'s' if number != 1 else ''} ({size(value['bytes_left'])}{soon})"


@contextmanager
def progress() -> Iterator[Callable[[Progress], None]]:
    """A bar on stderr while a job runs; silent where nobody looks."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    out = Console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description:<10}"), BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn(compact=True),
        TextColumn("[dim]{task.fields[about]}"),
    )  # fmt: skip
    with Bar(*columns, console=out, transient=True) as bar:
        task = bar.add_task("waiting", total=None, about="")

        def show(state: Progress) -> None:
            if state:
                reading = state.get("step") == "reading"
                bar.update(
                    task, description=state.get("step", ""), completed=state.get("done", 0), total=state.get("total"),
                    about=escape(shorten(state.get("project", ""), PROGRESS_PROJECT)) if reading else "",
                )  # fmt: skip

        yield show


def table(out: Console, columns: list[tuple[str, str]], rows: list[list[str]]) -> None:
    """Rows under columns of (name, left or right)."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    out.print(table)


def print_text(out: Console, text: str, *, head: str = "", indent: int = 0, most: int = 0, style: str = "") -> None:
    """Text in the terminal's width beside `head`, empty lines left out; `most` is how many lines of it."""
    from rich.cells import cell_len
    from rich.text import Text

    beside = " " * indent + head
    width = max(out.width - cell_len(beside), MIN_WIDTH)
    found = [part.plain.rstrip() for line in texts.visible(text).splitlines() for part in Text(line).wrap(out, width)]
    lines = [line for line in found if line]
    if most and len(lines) > most:
        lines = [*lines[: most - 1], "…"]
    for line in lines:
        out.print(Text(beside + line), style=style)
        beside = " " * cell_len(beside)


def labelled(out: Console, name: str, text: str, *, style: str = "") -> None:
    """A line of a value's description: what it is about, then the text beside it."""
    print_text(out, text, head=f"{name:<{LABEL}}", style=style)


def degraded(out: Console, reasons: list[str]) -> None:
    for reason in reasons:
        print_text(out, reason, head="degraded: ", style="yellow")


def described(rows: list[tuple[str, str]]) -> None:
    """Lines with a label each, in the terminal's width."""
    out = console()
    for name, text in rows:
        labelled(out, name, text)
