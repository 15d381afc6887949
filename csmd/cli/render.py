"""Screens for a terminal: lines, tables, amounts and widths.

A screen is a sequence of lines and strings; "" is an empty line. `show` prints it. A style is one or more words:
`bold`, `dim`, a colour. Styles are applied here, since rich takes as long to import as the rest of `csmd status`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial, wraps
from itertools import accumulate, takewhile
from typing import Any, ParamSpec

import click

from csmd import config
from csmd.text import display
from csmd.text.display import amount

#: A space at which no line is broken.
GLUE = "\u00a0"
#: Columns of an unknown terminal.
DEFAULT_WIDTH = 80
#: Columns of a label.
LABEL_WIDTH = 9
#: Fewest columns to which a text is wrapped.
MIN_WIDTH = 20
#: Characters shown of a turn next to the one in question.
NEIGHBOUR_CHARS = 150
#: Columns for the name of a project next to a progress bar.
PROGRESS_PROJECT_WIDTH = 30


# --- words for amounts


def many(number: int, noun: str) -> str:
    """Formats a number with its noun: `1 secret`, `2 memories`, `1,204 turns`."""
    return f"{number:,} {amount(number, noun).partition(' ')[2]}"


def percent(share: float) -> str:
    """Formats a share: `87 %`."""
    return f"{share * 100:.0f} %"


def describe_week(week: dict[str, int]) -> str:
    """Describes the injections of a week in one line."""
    share = f" ({percent(week['used'] / week['judged'])} of {week['judged']} judged)" if week["judged"] else ""
    tokens = amount(week["tokens"], "token") if week["tokens"] < 10_000 else f"{week['tokens'] / 1000:.0f}k tokens"
    injections, facts = amount(week["injections"], "time"), amount(week["items"], "fact")
    return f"told {injections} this week: {facts}, {week['used']} used{share}, {tokens}"


def today() -> str:
    """Returns the local date, as YYYY-MM-DD."""
    return datetime.now().astimezone().date().isoformat()


def size(number: float) -> str:
    """Formats a number of bytes: `1.2 MB`."""
    power = next((power for power in range(3) if number < 1000 ** (power + 1)), 3)
    return f"{number:.0f} B" if not power else f"{number / 1000**power:.1f} {('KB', 'MB', 'GB')[power - 1]}"


# --- texts in a width


def tilde(path: str, home: str) -> str:
    """Returns a path with `~` for the user's home."""
    is_inside = bool(home) and (path == home or path.startswith(f"{home.rstrip('/')}/"))
    return f"~{path[len(home.rstrip('/')) :]}" if is_inside else path


def glue(text: str) -> str:
    """Joins the words of a text so that `wrap` keeps them on one line if they fit."""
    return text.replace(" ", GLUE)


def plain(text: str, *, keep_glue: bool = False) -> str:
    """Puts a text on one line, without control characters."""
    line = re.sub(rf"[^\S{GLUE}]+", " ", text if keep_glue else text.replace(GLUE, " ")).strip()
    return "".join(letter if letter.isprintable() or letter == GLUE else " " for letter in line)


def cells(text: str) -> int:
    """Returns the number of terminal columns that a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def describe_recording(value: Mapping[str, Any]) -> str:
    """Describes the recorded sessions and the number of memories, from the daemon's state."""
    live, counts = len(value.get("live") or ()), value["counts"]
    totals = f"{many(counts['memories'], 'memory')} from {many(counts['sessions'], 'session')}"
    recording = f"recording {many(live, 'session')}" if live else "ready to record"
    return f"{recording}, {totals if counts['sessions'] else 'no memories yet'}"


def describe_dream(value: dict[str, Any]) -> str:
    """Describes the step of the running dream, or the reason why none runs."""
    running = value["running"]
    return f"under way: {running.get('step', 'about to begin')}" if running else str(value["verdict"])


def shorten(text: str, width: int, *, end: bool = False) -> str:
    """Shortens a text to `width` columns with an ellipsis; keeps its beginning, or its `end`."""
    if cells(text) <= width:
        return text
    letters = text[::-1] if end else text
    part = letters[: _count_fitting(letters, width - 1)]
    return f"…{part[::-1]}" if end else f"{part}…"


def last_part(path: str) -> str:
    """Returns the last part of a path, also of a Windows path; "" for an empty one."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _count_fitting(text: str, width: int) -> int:
    """Counts a text's first characters that fit in `width` columns."""
    return len(list(takewhile(lambda columns: columns <= width, accumulate(map(cells, text)))))


def wrap(text: str, width: int) -> list[str]:
    """Wraps a text at `width` columns, between words; breaks a word only if it is longer than a line."""
    lines, line = [], ""
    words = text.lstrip(" ").split(" ")
    words[0] = " " * (len(text) - len(text.lstrip(" "))) + words[0]
    for word in words:
        extended = f"{line} {word}" if line else word
        if cells(extended) <= width:
            line = extended
            continue
        if line:
            lines.append(line)
        line = word
        while cells(line) > width:
            head = _split_head(line, width)
            lines.append(head)
            line = line[len(head) :]
    return [line.replace(GLUE, " ").rstrip() for line in (*lines, line)]


def _split_head(text: str, width: int) -> str:
    """Returns the first characters that fit, at least one; up to the last glued space if there is one."""
    length = max(1, _count_fitting(text, width))
    gap = text.rfind(GLUE, 1, length)
    return text[: gap + 1] if gap > 0 else text[:length]


#: Kind of event in `csmd tail` -> its name; other kinds have names of their own.
KIND_NAMES = {"statement": "chosen", "memory": "memory", "injection": "told", "act": "done", "search": "searched"}


def describe_item(item: dict[str, Any]) -> str:
    """Describes an event of `csmd tail`: its text, or its numbers."""
    kind = item["kind"]
    if kind == "injection":
        event = plain(item["what"].replace("_", " "))
        return f"{many(item['memories'], 'memory')}, {many(item['tokens'], 'token')} ({event})"
    if kind == "search":
        return f"{many(item['results'], 'hit')} ({plain(item['what'])})"
    if kind == "event":
        detail = f" ({plain(item['text'])})" if item["text"] else ""
        return f"session {plain(display.shorten_session_id(item['session']))}{detail}"
    return plain(f"{item['what']}: {item['text']}" if kind in KIND_NAMES else item["text"])


# --- screens


@dataclass(frozen=True, slots=True)
class Line:
    """A text after its head, wrapped at the terminal's width.

    At most `max_lines` lines of it are shown, 0 for all; `gap` puts an empty line before it.
    """

    text: str
    head: str = ""
    indent: int = 0
    max_lines: int = 0
    style: str = ""
    head_style: str | None = None
    gap: bool = False


class RawLine(str):
    """A line that is printed unwrapped."""

    __slots__ = ()


Screen = Iterable[Line | str]
#: One line of a terminal as (text, style) pairs.
Parts = tuple[tuple[str, str], ...]
_P = ParamSpec("_P")
bold = partial(Line, style="bold")
dim = partial(Line, style="dim")
warning = partial(Line, style="yellow")


def pair(name: str, text: str) -> Line:
    """Returns a line with a label and a text."""
    return Line(text, head=f"{name:<{LABEL_WIDTH}}")


def pairs(rows: Iterable[tuple[str, str]]) -> Screen:
    """Shows lines with labels, without those whose text is empty."""
    return (pair(name, text) for name, text in rows if text)


def block(title: str, lines: Iterable[Line | str], *, style: str = "dim") -> Screen:
    """Shows an empty line, a title and lines; nothing if there are no lines."""
    rows = list(lines)
    return [Line(title, style=style, gap=True), *rows] if rows else []


def done(text: str, *notes: str) -> Screen:
    """Shows the effect of a command, then notes; empty notes are left out."""
    return [text, *map(dim, filter(None, notes))]


def join(*parts: object, by: str = ", ") -> str:
    """Joins the parts that are not empty or false."""
    return by.join(str(part) for part in parts if part)


def if_empty(key: str, sentence: str) -> Callable[[Callable[_P, Screen]], Callable[_P, Screen]]:
    """Decorates a screen: if the list `key` of the answer is empty, the screen is this sentence."""

    def decorate(screen: Callable[_P, Screen]) -> Callable[_P, Screen]:
        @wraps(screen)
        def show_or_say(*args: _P.args, **kwargs: _P.kwargs) -> Screen:
            answer: Any = args[0]
            return screen(*args, **kwargs) if answer[key] else [sentence]

        return show_or_say

    return decorate


def take_first(rows: Sequence[Any], limit: int) -> tuple[Sequence[Any], list[Line]]:
    """Returns the first `most` rows, and a line with the number of the others."""
    rest = len(rows) - limit
    return rows[:limit], [dim(f"... and {rest} more (--json)", indent=2)] if rest > 0 else []


def degraded(reasons: Iterable[str]) -> Screen:
    """Shows the parts that do not work, and why."""
    return (warning(reason, head="degraded: ") for reason in reasons)


def raw(screen: Callable[_P, Screen]) -> Callable[_P, Screen]:
    """Decorates a screen whose strings are printed unwrapped."""

    @wraps(screen)
    def unwrapped(*args: _P.args, **kwargs: _P.kwargs) -> Screen:
        return (RawLine(line) if isinstance(line, str) else line for line in screen(*args, **kwargs))

    return unwrapped


def template(text: str) -> Callable[[dict[str, Any]], Screen]:
    """Returns a screen of one unwrapped line: a format string filled with the answer's fields."""
    return lambda answer: [RawLine(text.format_map(answer))]


def table(heads: str, sides: str, rows: Sequence[Sequence[str]], *, least: int = 0) -> Screen:
    """Shows a table with two spaces between columns; cells of the first column are shortened at their beginning.

    `heads` are separated by |. `sides` aligns each column left (<) or right (>); `least` is the minimum width of the
    first one.
    """
    if not rows:
        return
    cleaned = [[plain(cell) for cell in row] for row in (heads.split("|"), *rows)]
    first_width, *widths = (max(map(cells, column)) for column in zip(*cleaned, strict=True))
    available = width() - sum(widths) - 2 * len(widths)
    first_width = max(least, min(max(8, available), first_width))
    for number, row in enumerate(cleaned):
        parts = []
        for cell, length, side in zip(row, [first_width, *widths], sides, strict=True):
            text = shorten(cell, length, end=True)
            padding = " " * (length - cells(text))
            parts.append(text + padding if side == "<" else padding + text)
        yield Line(shorten("  ".join(parts).rstrip(), width()), style="" if number else "dim")


def lay_out(screen: Iterable[Line | str], columns: int) -> Iterator[Parts]:
    """Lays a screen out as lines of a terminal."""
    for line in screen:
        row = line if isinstance(line, Line) else Line(line, gap=not line)
        if row.gap:
            yield ()
        head = " " * row.indent + display.remove_unseen(row.head)
        room = max(columns - cells(head), MIN_WIDTH)
        lines = display.remove_unseen(row.text).splitlines()
        texts = [part for text in lines for part in wrap(text.expandtabs(), room)]
        parts = [part for part in texts if part]
        if row.max_lines and len(parts) > row.max_lines:
            parts = [*parts[: row.max_lines - 1], "…"]
        for part in parts:
            if row.head_style is None:
                yield ((head + part, row.style),)
            else:
                yield (head, row.head_style), (part, row.style)
            head = " " * cells(head)


def plain_text(parts: Parts) -> str:
    """Returns a line without its styles."""
    return "".join(text for text, _ in parts)


def paint(parts: Parts) -> str:
    """Returns a line with its styles as escape sequences."""
    return "".join(click.style(text, **_style_options(style)) if style else text for text, style in parts)


def _style_options(style: str) -> dict[str, Any]:
    return dict((word, True) if word in ("bold", "dim") else ("fg", word) for word in style.split())


def show(screen: Iterable[Line | str], *, err: bool = False) -> None:
    """Prints a screen."""
    columns, colours = width(), config.wants_colours()
    for line in screen:
        if isinstance(line, RawLine):
            click.echo(display.remove_unseen(line), err=err)
        else:
            for parts in lay_out([line], columns):
                click.echo(paint(parts), color=colours)


#: Prefixes of an error and of its hint.
ERROR_HEADS = ("csmd: ", "  try: ")


def complain(what: str, *, hint: str = "") -> None:
    """Prints an error and its hint on stderr."""
    for head, text in zip(ERROR_HEADS, (what, hint), strict=True):
        if text:
            show_error(head, text)


def show_error(head: str, text: str) -> None:
    """Prints a line on stderr, wrapped if stderr is a terminal."""
    lines = [text := display.remove_unseen(text)]
    if os.isatty(2):
        lines = wrap(text, max(width() - len(head), MIN_WIDTH))
    for line in lines:
        click.echo(head + line, err=True)
        head = " " * len(head)


def escape_output(stream: Any) -> None:
    """Makes a text stream escape invisible and control characters, since texts come from outside.

    Bytes that are written to its buffer are not changed.
    """
    write = stream.write
    stream.write = lambda text: write(display.escape_unseen(text))


def width() -> int:
    """Returns the columns of the terminal, by $COLUMNS or as it reports them; DEFAULT_WIDTH if unknown."""
    if columns := config.chosen_columns():
        return columns
    for stream in range(3):  # the output may go through a pager
        with suppress(OSError):
            if columns := os.get_terminal_size(stream).columns:
                return columns
    return DEFAULT_WIDTH


@contextmanager
def progress() -> Iterator[Callable[[dict[str, Any]], None]]:
    """A progress bar on stderr with the time left, or a counter if the total is unknown; silent without a terminal.

    It appears with the first state: work that is refused at once shows none.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    out = Console(stderr=True)
    if not out.is_terminal:
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description:<10}"), BarColumn(20), TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(compact=True), TextColumn("[dim]{task.fields[about]}"),
    )  # fmt: skip
    bar = Progress(*columns, console=out, transient=True)
    task = bar.add_task("waiting", total=None, about="", count="")

    def advance(state: dict[str, Any]) -> None:
        bar.start()
        if state:
            project = state.get("project", "") if state.get("step") == "reading" else ""
            done, total = state.get("done", 0), state.get("total")
            bar.update(
                task, description=state.get("step", ""), completed=done, total=total,
                count=f"{done:,}/{total:,}" if total else f"{done:,}" if done else "",
                about=escape(shorten(project, PROGRESS_PROJECT_WIDTH, end=True)),
            )  # fmt: skip

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


def fetch_command(suggested: str) -> str:
    """Returns the command that fetches an embedding model, with its size; `suggested` is "" for the usual one."""
    return f"`csmd model fetch{suggested and f' {suggested}'}` ({model_size(suggested)}, once)"


def model_size(suggested: str) -> str:
    """Returns the size of a model's download."""
    return "240 MB" if suggested else "90 MB"
