"""How screens look at 80 columns: lines, tables, amounts, widths.

A screen is a sequence of lines and strings; "" is an empty line. `show` prints it. A style is a word or several:
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
_GAP = re.compile(rf"[^\S{GLUE}]+")
#: Columns of an unknown terminal.
COLUMNS = 80
#: Columns of a label.
LABEL = 9
#: Columns to which no text is wrapped further.
MIN_WIDTH = 20
#: Columns next to a progress bar for the name of a project.
PROGRESS_PROJECT = 30


# --- words for amounts


def many(number: int, noun: str) -> str:
    """`1 secret`, `2 memories`, `1,204 turns`."""
    return f"{number:,} {amount(number, noun).partition(' ')[2]}"


def percent(share: float) -> str:
    """`87 %`."""
    return f"{share * 100:.0f} %"


def week_in_words(week: dict[str, int]) -> str:
    """The sum of a week in one line."""
    share = f" ({percent(week['used'] / week['judged'])} of {week['judged']} judged)" if week["judged"] else ""
    tokens = amount(week["tokens"], "token") if week["tokens"] < 10_000 else f"{week['tokens'] / 1000:.0f}k tokens"
    injections, facts = amount(week["injections"], "time"), amount(week["items"], "fact")
    return f"told {injections} this week: {facts}, {week['used']} used{share}, {tokens}"


def today() -> str:
    """The date here."""
    return datetime.now().astimezone().date().isoformat()


def size(number: float) -> str:
    """Bytes for people."""
    power = next((power for power in range(3) if number < 1000 ** (power + 1)), 3)
    return f"{number:.0f} B" if not power else f"{number / 1000**power:.1f} {('KB', 'MB', 'GB')[power - 1]}"


# --- texts in a width


def tilde(path: str, home: str) -> str:
    """A path with `~` for the user's home."""
    inside = bool(home) and (path == home or path.startswith(f"{home.rstrip('/')}/"))
    return f"~{path[len(home.rstrip('/')) :]}" if inside else path


def glue(text: str) -> str:
    """A text that `wrap` keeps on one line if it fits."""
    return text.replace(" ", GLUE)


def plain(text: str, *, keep_glue: bool = False) -> str:
    """A text on one line, without control characters."""
    single = _GAP.sub(" ", text if keep_glue else text.replace(GLUE, " ")).strip()
    return "".join(letter if letter.isprintable() or letter == GLUE else " " for letter in single)


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def recording_state(value: Mapping[str, Any]) -> str:
    """What is recorded now and what is known, in words, from the daemon's state."""
    live, counts = len(value.get("live") or ()), value["counts"]
    totals = f"{many(counts['memories'], 'memory')} from {many(counts['sessions'], 'session')}"
    return join(
        f"recording {many(live, 'session')}" if live else "ready to record",
        totals if counts["sessions"] else "nothing is known yet",
    )


def dream_state(value: dict[str, Any]) -> str:
    """Whether a dream is under way and at which step, or why none is."""
    running = value["running"]
    return f"under way: {running.get('step', 'about to begin')}" if running else str(value["verdict"])


def shorten(text: str, width: int, *, end: bool = False) -> str:
    """Shortens a text to `width` columns with an ellipsis; keeps its beginning, or its `end`."""
    if cells(text) <= width:
        return text
    letters = text[::-1] if end else text
    part = letters[: _fitting(letters, width - 1)]
    return f"…{part[::-1]}" if end else f"{part}…"


def last_part(path: str) -> str:
    """The last part of a path, also of a Windows path; "" for none."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _fitting(text: str, width: int) -> int:
    """How many of a text's first characters fit in `width` columns."""
    return len(list(takewhile(lambda columns: columns <= width, accumulate(map(cells, text)))))


def wrap(text: str, width: int) -> list[str]:
    """Wraps a text at `width` columns, between words; breaks a word only if it is longer than a line."""
    lines, line = [], ""
    words = text.lstrip(" ").split(" ")
    words[0] = " " * (len(text) - len(text.lstrip(" "))) + words[0]
    for word in words:
        joined = f"{line} {word}" if line else word
        if cells(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        line = word
        while cells(line) > width:
            head = _head(line, width)
            lines.append(head)
            line = line[len(head) :]
    return [done.replace(GLUE, " ").rstrip() for done in (*lines, line)]


def _head(text: str, width: int) -> str:
    """As many characters as fit, at least one; up to the last glued space if there is one."""
    length = max(1, _fitting(text, width))
    gap = text.rfind(GLUE, 1, length)
    return text[: gap + 1] if gap > 0 else text[:length]


#: Kind of event in `csmd tail` -> its name; other kinds have names of their own.
NAMES = {"statement": "chosen", "memory": "memory", "injection": "told", "act": "done", "search": "searched"}


def describe_item(item: dict[str, Any]) -> str:
    """The words of an event: what was said, or what it was about."""
    if item["kind"] == "injection":
        event = plain(item["what"].replace("_", " "))
        return f"{many(item['memories'], 'memory')}, {many(item['tokens'], 'token')} ({event})"
    if item["kind"] == "search":
        return f"{many(item['results'], 'hit')} ({plain(item['what'])})"
    if item["kind"] == "event":
        about = f" ({plain(item['text'])})" if item["text"] else ""
        return f"session {plain(display.shorten_session_id(item['session']))}{about}"
    return plain(f"{item['what']}: {item['text']}" if item["kind"] in NAMES else item["text"])


# --- screens


@dataclass(frozen=True, slots=True)
class Line:
    """A text after its head, wrapped at the terminal's width.

    `most` is how many lines of it are shown, 0 for all; `gap` puts an empty line before it.
    """

    text: str
    head: str = ""
    indent: int = 0
    most: int = 0
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
    """A line with a label and a text."""
    return Line(text, head=f"{name:<{LABEL}}")


def pairs(rows: Iterable[tuple[str, str]]) -> Screen:
    """Lines with labels, without those whose text is empty."""
    return (pair(name, text) for name, text in rows if text)


def block(title: str, lines: Iterable[Line | str], *, style: str = "dim") -> Screen:
    """An empty line, a title and lines; nothing if there are no lines."""
    rows = list(lines)
    return [Line(title, style=style, gap=True), *rows] if rows else []


def done(text: str, *notes: str) -> Screen:
    """What a command did, then notes; empty notes are left out."""
    return [text, *map(dim, filter(None, notes))]


def join(*parts: object, by: str = ", ") -> str:
    """Joins the parts that are not empty or false."""
    return by.join(str(part) for part in parts if part)


def if_empty(key: str, sentence: str) -> Callable[[Callable[_P, Screen]], Callable[_P, Screen]]:
    """Decorates a screen: if the list `key` of the answer is empty, it is this sentence."""

    def decorate(screen: Callable[_P, Screen]) -> Callable[_P, Screen]:
        @wraps(screen)
        def shown(*args: _P.args, **named: _P.kwargs) -> Screen:
            answer: Any = args[0]
            return screen(*args, **named) if answer[key] else [sentence]

        return shown

    return decorate


def first(rows: Sequence[Any], most: int) -> tuple[Sequence[Any], list[Line]]:
    """The first `most` rows, and a line that counts the rest."""
    left = len(rows) - most
    return rows[:most], [dim(f"... and {left} more (--json)", indent=2)] if left > 0 else []


def degraded(reasons: Iterable[str]) -> Screen:
    """What could not be used, and why."""
    return (warning(reason, head="degraded: ") for reason in reasons)


def raw(screen: Callable[_P, Screen]) -> Callable[_P, Screen]:
    """Decorates a screen whose strings are printed unwrapped."""

    @wraps(screen)
    def unwrapped(*args: _P.args, **named: _P.kwargs) -> Screen:
        return (RawLine(line) if isinstance(line, str) else line for line in screen(*args, **named))

    return unwrapped


def template(text: str) -> Callable[[dict[str, Any]], Screen]:
    """A screen of one unwrapped line: a format string filled with the answer's fields."""
    return lambda answer: [RawLine(text.format_map(answer))]


def table(heads: str, sides: str, rows: Sequence[Sequence[str]], *, least: int = 0) -> Screen:
    """A table with two spaces between columns; the first one is shortened at its beginning. `heads` has | between them.

    `sides` aligns each column left (<) or right (>); `least` is the minimum width of the first one.
    """
    cleaned = [[plain(cell) for cell in row] for row in (heads.split("|"), *rows)]
    if not rows:
        return
    room = width()
    rest = [max(map(cells, column)) for column in list(zip(*cleaned, strict=True))[1:]]
    room_left = room - sum(rest) - 2 * len(rest)
    widest = max(least, min(max(8, room_left), max(cells(row[0]) for row in cleaned)))
    for number, row in enumerate(cleaned):
        parts = []
        for cell, length, side in zip(row, [widest, *rest], sides, strict=True):
            cut = shorten(cell, length, end=True)
            gap = " " * (length - cells(cut))
            parts.append(cut + gap if side == "<" else gap + cut)
        yield Line(shorten("  ".join(parts).rstrip(), room), style="" if number else "dim")


def lay_out(screen: Iterable[Line | str], room: int) -> Iterator[Parts]:
    """Lays a screen out as lines of a terminal."""
    for line in screen:
        row = line if isinstance(line, Line) else Line(line, gap=not line)
        if row.gap:
            yield ()
        head = " " * row.indent + display.remove_unseen(row.head)
        space = max(room - cells(head), MIN_WIDTH)
        texts = [
            part for text in display.remove_unseen(row.text).splitlines() for part in wrap(text.expandtabs(), space)
        ]
        parts = [part for part in texts if part]
        if row.most and len(parts) > row.most:
            parts = [*parts[: row.most - 1], "…"]
        for part in parts:
            if row.head_style is None:
                yield ((head + part, row.style),)
            else:
                yield (head, row.head_style), (part, row.style)
            head = " " * cells(head)


def plain_text(parts: Parts) -> str:
    """A line without its styles."""
    return "".join(text for text, _ in parts)


def paint(parts: Parts) -> str:
    """A line with its styles as escape sequences."""
    return "".join(click.style(text, **_style(style)) if style else text for text, style in parts)


def _style(words: str) -> dict[str, Any]:
    return dict((word, True) if word in ("bold", "dim") else ("fg", word) for word in words.split())


def show(screen: Iterable[Line | str], *, err: bool = False) -> None:
    """Prints a screen."""
    room, colours = width(), config.wants_colours()
    for line in screen:
        if isinstance(line, RawLine):
            click.echo(display.remove_unseen(line), err=err)
        else:
            for parts in lay_out([line], room):
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


def keep_clean(stream: Any) -> None:
    """Makes a text stream escape invisible and control characters, since texts come from outside.

    Bytes that are written to its buffer stay as they are.
    """
    write = stream.write
    stream.write = lambda text: write(display.escape_unseen(text))


def width() -> int:
    """The columns of the terminal, by $COLUMNS or as it reports them; 80 if unknown."""
    if columns := config.chosen_columns():
        return columns
    for stream in range(3):  # the output may go through a pager
        with suppress(OSError):
            if columns := os.get_terminal_size(stream).columns:
                return columns
    return COLUMNS


@contextmanager
def progress() -> Iterator[Callable[[dict[str, Any]], None]]:
    """A progress bar on stderr with the time left, or a counter if the total is unknown; silent without a terminal."""
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
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("waiting", total=None, about="", count="")

        def advance(state: dict[str, Any]) -> None:
            if state:
                place = state.get("project", "") if state.get("step") == "reading" else ""
                done, total = state.get("done", 0), state.get("total")
                bar.update(
                    task, description=state.get("step", ""), completed=done, total=total,
                    count=f"{done:,}/{total:,}" if total else f"{done:,}" if done else "",
                    about=escape(shorten(place, PROGRESS_PROJECT, end=True)),
                )  # fmt: skip

        yield advance


def model_fetch(suggested: str) -> str:
    """The command that fetches an embedding model, with its size; `suggested` is "" for the usual one."""
    return f"`csmd model fetch{suggested and f' {suggested}'}` ({model_size(suggested)}, once)"


def model_size(suggested: str) -> str:
    """The size of a model's download."""
    return "240 MB" if suggested else "90 MB"
