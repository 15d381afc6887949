"""What people see, at 80 columns: tables, labels, amounts with the right plural, ages, widths, memories and what waits; values in, text on a console."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from csmd.model import AUTHORITY_RANK, GATE_PRIORITY
from csmd.text import display, prose, tokens
from csmd.text.display import amount

if TYPE_CHECKING:
    from rich.console import Console


#: From here on a date says more than an age.
MOST_AGO_S = 60 * 86_400
#: A space at which no line is broken.
GLUE = "\u00a0"
_GAP = re.compile(rf"[^\S{GLUE}]+")
_AGES = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def many(amount: int, one: str, more: str = "") -> str:
    """`1 secret`, `2 secrets`, `1,204 turns`."""
    return f"{amount:,} {one if amount == 1 else more or one + 's'}"


def ago(stamp: str, now: str) -> str:
    """How long before `now` a stored time was, in its greatest unit; its date when that is long ago or nobody can tell."""
    if not stamp or stamp.startswith("1970"):
        return "never"
    try:
        past = (datetime.fromisoformat(now) - datetime.fromisoformat(stamp)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return when(stamp)
    if past < -60 or past > MOST_AGO_S:  # the clock of who wrote it was ahead, or it is long past
        return when(stamp)[:10]
    unit, size = next(((unit, size) for unit, size in _AGES if past >= size), ("s", 1))
    return f"{max(0, int(past / size))} {unit} ago"


def tilde(path: str, home: str) -> str:
    """A path with `~` for the user's home."""
    inside = bool(home) and (path == home or path.startswith(f"{home.rstrip('/')}/"))
    return f"~{path[len(home.rstrip('/')) :]}" if inside else path


def glued(text: str) -> str:
    """A text that `wrapped` keeps on one line as far as it fits on one."""
    return text.replace(" ", GLUE)


def plain(text: str, *, keep_glue: bool = False) -> str:
    """A text on one line and without what would move the cursor."""
    single = _GAP.sub(" ", text if keep_glue else text.replace(GLUE, " ")).strip()
    return "".join(letter if letter.isprintable() or letter == GLUE else " " for letter in single)


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text in at most `width` columns: between words, within one only where it is too long itself."""
    lines, line = [], ""
    for word in text.split(" "):
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
    return [one.replace(GLUE, " ").rstrip() for one in (*lines, line)]


def _head(text: str, width: int) -> str:
    """As many letters as fit, at least one; up to the last glued space where there is one."""
    size = used = 0
    for letter in text:
        used += cells(letter)
        if used > width and size:
            break
        size += 1
    gap = text.rfind(GLUE, 1, size)
    return text[: gap + 1] if gap > 0 else text[:size]


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def fitted(text: str, width: int, *, end: bool = False) -> str:
    """A text in at most `width` columns, its beginning kept, or its `end`; an ellipsis where something is gone."""
    if cells(text) <= width:
        return text
    letters = text[::-1] if end else text
    kept, used = [], 1
    for letter in letters:
        used += cells(letter)
        if used > width:
            break
        kept.append(letter)
    part = "".join(kept)
    return f"…{part[::-1]}" if end else f"{part}…"


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
    # which are made of what is here

    out = console()
    news = [
        (value["turns_new"], "new turn"), (value["memories_new"], "new memory"), (value["vectors"], "vector"),
    ]  # fmt: skip
    said = ", ".join(amount(number, one) for number, one in news if number)
    said = said or "nothing new, everything was in already"  # what grows is read at once, so a sync often finds nothing
    known = f", {amount(value['turns_known'], 'turn')} known" if value["turns_known"] else ""
    took = glued(f"{value['took_s']:.1f} s")
    known = f", {amount(value['memories_known'], 'memory')} known" if value.get("memories_known") else known
    read = amount(value["files"], "file" if "memories_known" in value else "transcript")
    for line in wrapped(f"{read} read: {said}{known}, {took}", out.width):
        out.print(line)
    for name, told in BROUGHT.items():
        if value.get(name):
            print_text(out, told.format(amount(value[name], "memory")), style="yellow")
    for place in value.get("placed", ()):
        for line in wrapped(_placed(place), out.width):
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
    found = [part.plain.rstrip() for line in display.visible(text).splitlines() for part in Text(line).wrap(out, width)]
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
    for name, word in rows:
        labelled(out, name, word)


#: Relationship -> what it is from the memory it begins at, and from the one it leads to.
RELATIONS: dict[str, tuple[str, str]] = {
    "superseded_by": ("superseded by", "takes the place of"),
    "goes_on_as": ("still active from it:", "the rest of"),
    "contradicts": ("contradicts", "contradicted by"),
    "elaborates": ("adds to", "more on it"),
    "symptom_of": ("a symptom of", "shows itself as"),
    "refuted_by": ("refuted by", "refutes"),
    "renamed_to": ("now called", "was called"),
    "confirmed_by": ("confirmed by", "confirms"),
    "caused": ("caused", "caused by"),
    "depends_on": ("depends on", "needed by"),
    "relates_to": ("related to", "related to"),
    "merged_into": ("merged into", "took in"),
}
#: What stands against a memory, by relationship and end: (relationship, whether the memory is its beginning).
AGAINST = {("superseded_by", True), ("contradicts", False), ("contradicts", True), ("refuted_by", True)}
EVENTS = {"session_start": "at its start", "prompt": "with a prompt", "tool_failure": "when a tool failed"}
#: Confirmations and links that are shown; --json has all.
MOST_SHOWN = 6
#: Memories of a gate that are listed of one topic.
MOST_OF_TOPIC = 12
#: Characters of a turn that stands beside the one that matters.
BESIDE_MEMORY = 150


def show_listed(value: dict[str, Any], *, most: int = 2**31) -> None:
    """Memories by project and gate, in each what a person said and what is surest first, at most so many of a gate."""
    out = console()
    rows = value["memories"]
    if not rows:
        known = value.get("known", 0)
        nothing = "no memories yet; they come from sessions, `csmd import` and `csmd remember`"
        print_text(out, f"none of {many(known, 'memory', 'memories')} is such" if known else nothing)
        return
    places = sorted({row["project"] for row in rows})
    shown = 0
    for number, place in enumerate(places):
        if len(places) > 1:
            if number:
                out.print()
            print_text(out, shorten(place, out.width) or "everywhere", style="bold")
        shown += _gates(out, [row for row in rows if row["project"] == place], most)
    left, gone = len(rows) - shown, value.get("superseded", 0)
    told = [many(len(rows), "memory", "memories")]
    told += [f"{left:,} not shown (--all)"] if left else []
    told += [f"{gone:,} superseded (--superseded)"] if gone else []
    out.print()
    print_text(out, "; ".join(told), style="dim")


def _gates(out: Console, rows: list[dict[str, Any]], most: int) -> int:
    """Prints the memories of one project; how many."""
    shown = 0
    for gate in sorted(GATE_PRIORITY, key=lambda name: -GATE_PRIORITY[name]):
        found = sorted((row for row in rows if row["gate"] == gate), key=_wanted, reverse=True)
        if not found:
            continue
        some = found if len(found) <= most + 1 else found[:most]  # nobody wants to be told that one is left out
        many_of = f"{len(some)} of {len(found):,}" if len(some) < len(found) else f"{len(found):,}"
        out.print(f"{gate}, {many_of}", style="dim")
        for row in some:
            print_text(out, " ".join(row["text"].split()), indent=2, most=4)
            print_text(out, "  ".join(_about(row)), indent=6, style="dim")
        shown += len(some)
    return shown


def _wanted(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a person wants first: what is pinned, what they said, what is sure, what is new."""
    rank = AUTHORITY_RANK[row["authority"]]
    return row["pinned"], row["origin"] != "model_saved", rank, round(row["confidence"], 1), row["confirmed_at"]


def _about(row: dict[str, Any]) -> list[str]:
    marks = ["pinned"] * row["pinned"] + [f"said {row['times']} times"] * (row["times"] > 1)
    marks += [f"by the {row['authority']}"] * (row["authority"] != "user")
    marks += ["unsaid"] * (row["origin"] == "model_saved") + ["cold"] * (row["attention"] == "COLD")
    marks += [f"superseded by {row['superseded_by']}"] * bool(row["superseded_by"])
    marks += ["refuted"] * row["is_refuted"] + ["its code edited since"] * row["is_edited"]
    sure = f"{row['confidence'] * 100:.0f} %"
    return [row["id"], row["confirmed_at"][:10], f"{sure:>5}", row["category"], *([", ".join(marks)] if marks else [])]


# --- one memory


def show_memory(value: dict[str, Any]) -> None:
    """One memory: what it says, how sure it is and why, where it was said, what stands for and against it."""
    out = console()
    print_text(out, value["text"], most=20, style="bold")
    out.print()
    pinned = ", pinned" if value["pinned"] else ""
    labelled(out, "id", f"{value['id']}: {value['category']} ({value['gate']}), {value['tier']}{pinned}")
    labelled(out, "holds", value["project"] or "everywhere")
    first = when(value["created_at"])
    again = "" if value["confirmed_at"] == value["created_at"] else f", last said {when(value['confirmed_at'])}"
    origin = "" if value["origin"] == "stated" else f" ({value['origin'].replace('_', ' ')})"
    labelled(out, "said", f"by the {value['authority']}{origin}, {first}{again}")
    if value["scene"]:
        labelled(out, "scene", value["scene"])
    _sure(out, value["sure"])
    for one in value["refuted"]:
        labelled(out, "against", f"{one['reason']} ({when(one['at'])})")
    for one in value["symptoms"][:3]:
        labelled(out, "reported", one["text"])
    if value["topics"]:
        labelled(out, "topics", ", ".join(one["name"] for one in value["topics"]))
    labelled(out, "fades", _fades(value))
    labelled(out, "told", _told(value["told"]))
    _sources(out, value["sources"])
    _links(out, value)
    _beside_it(out, value["beside"])
    if value["changes"]:
        _memory_head(out, "What was done to it")
    for change in value["changes"]:
        taken = ", taken back" if change["undone_at"] else ""
        before, after = change["sure_before"], change["sure_after"]
        sure = "" if before is None or after is None else f": {before * 100:.0f} to {after * 100:.0f} %"
        new = f" by {change['superseded_by']}" if change["change"] == "superseded" else ""
        by = f" (by {change['by']})" if change["reason"] == "told" or change["by"] == "rule" else ""
        about = f"{change['change']}{new}{sure}, {change['reason']}{by}{taken}"
        print_text(out, about, head=f"  {when(change['at'])}  ")


def _sure(out: Console, sure: dict[str, Any]) -> None:
    labelled(out, "sure", f"{sure['today'] * 100:.0f} % today")
    for factor in sure["factors"]:
        effect = f"{factor['effect'] * 100:+.0f} %" if factor["effect"] and factor["name"] != "base" else ""
        effect = f"{factor['effect'] * 100:.0f} %" if factor["name"] == "base" else effect
        print_text(out, factor["why"], head=f"{'':<9}{effect:>6}  ", style="dim")


def _fades(value: dict[str, Any]) -> str:
    """When it cools, in words: days are active ones, on which its project had a session."""
    cools = value["cools"]
    if value["superseded_by"]:
        return f"superseded by {value['superseded_by']}: no session is told it"
    if value["is_refuted"]:
        return "refuted: no session is told it until it is said anew or kept in `csmd review`"
    today, hot, warm = cools["today"], cools["hot_until"], cools["warm_until"]
    if hot is None:
        return "never: told at a session's start for good"
    found = []
    if hot >= today:
        found.append(f"told at a session's start for {_days(hot - today)}")
    if warm is None:
        return ", ".join(
            [*found, "then when a prompt matches, for good" if found else "told when a prompt matches, for good"]
        )
    if warm >= today:
        found.append(f"{'then ' if found else 'told '}when a prompt matches, for {_days(warm - max(today, hot))}")
    return ", ".join([*found, "then found by search only" if found else "it has: found by search only"])


def _days(number: int) -> str:
    return f"{number} more active day{'s' if number != 1 else ''}" if number else "today"


def _told(told: dict[str, Any]) -> str:
    if not told["times"]:
        return "no session was told it yet"
    said = f"{told['times']} time{'s' if told['times'] != 1 else ''}"
    for one in told["last"][:1]:
        event = EVENTS.get(one["event"], one["event"])
        said += f", last {when(one['at'])} to session {one['session_id'][:8]} {event} (csmd why --receipt {one['receipt'][:9]})"
    return said


def _sources(out: Console, sources: list[dict[str, Any]]) -> None:
    _memory_head(out, "Where it was said")
    for source in sources[:1]:
        near = source.get("around", {"before": [], "after": []})
        for turn in near["before"]:
            _beside(out, turn)
        _spoken(out, source, "states")
        for turn in near["after"]:
            _beside(out, turn)
    again = sources[1:]
    if again:
        _memory_head(out, f"Said again in {many(len(again), 'turn')}")
    for source in again[:MOST_SHOWN]:
        _spoken(out, source, source["role"], most=4)
    if len(again) > MOST_SHOWN:
        print_text(out, f"... and {len(again) - MOST_SHOWN} more (--json)", indent=2, style="dim")


def _spoken(out: Console, source: dict[str, Any], role: str, *, most: int = 12) -> None:
    where = f", session {source['session_id'][:8]}" if source["session_id"] else ""
    typed = "an edited page" if source["uuid"].startswith("cli:page-") else "command line"
    speaker = source["speaker"] or (typed if source["uuid"].startswith("cli:") else "a turn that is gone")
    turn = f", {source['uuid'][:13]}" if source["speaker"] else ""
    print_text(out, f"{role}: {speaker}, {when(source['at'])}{where}{turn}", head="  ")
    short = role != "states" and source["sentence"]  # of a repetition the sentence is enough
    show_marked(out, source["sentence"] if short else source["text"], source["sentence"], indent=4, most=most)


def show_marked(out: Console, passage: str, sentence: str, *, indent: int, most: int) -> None:
    """A passage with one sentence of it marked."""
    before, found, after = passage.partition(sentence) if sentence else (passage, "", "")
    room = max(2, most // 3)
    if before.strip():
        print_text(out, before.strip()[-400:], indent=indent, most=room if found else most, style="dim")
    if found:
        print_text(out, " ".join(found.split()), head=" " * (indent - 2) + "> ", most=most)
    if after.strip():
        print_text(out, after.strip(), indent=indent, most=room, style="dim")


def _beside(out: Console, turn: dict[str, Any]) -> None:
    print_text(out, display.cut(turn["text"], BESIDE_MEMORY), head=f"  {turn['speaker']}: ", style="dim")


def _links(out: Console, value: dict[str, Any]) -> None:
    """What stands against it, then what it is otherwise linked with."""
    against = [link for link in value["links"] if (link["relationship"], link["from_id"] == value["id"]) in AGAINST]
    others = [link for link in value["links"] if link not in against]
    for title, links in (("Against it", against), ("Linked", others)):
        if links:
            _memory_head(out, title)
        for link in links[:MOST_SHOWN]:
            other = link["other"]
            words = RELATIONS.get(link["relationship"], (link["relationship"].replace("_", " "),) * 2)
            relation = words[0] if link["from_id"] == value["id"] else words[1]
            print_text(out, f"{relation} {other['id']}, said by the {other['authority']} {when(other['at'])}", indent=2)
            print_text(out, other["text"], indent=4, most=3, style="dim")
        if len(links) > MOST_SHOWN:
            print_text(out, f"... and {len(links) - MOST_SHOWN} more (--json)", indent=2, style="dim")


def _beside_it(out: Console, beside: list[dict[str, Any]]) -> None:
    """What shares its topics, a line each."""
    if beside:
        _memory_head(out, "About the same")
    for one in beside:
        head = f"  {one['id']}  "
        print_text(
            out,
            display.cut(display.squeeze(one["text"]), max(out.width - len(head), MIN_WIDTH)),
            head=head,
            style="dim",
        )


def _memory_head(out: Console, title: str) -> None:
    out.print()
    print_text(out, title, style="bold")


# --- the others


def show_turn(value: dict[str, Any]) -> None:
    """One turn with where it stands, the turns around it and the memories that rest on it."""
    out = console()
    print_text(out, value["text"] or "(nothing is kept of its text)", most=40)
    out.print()
    for name, word in (
        ("turn", f"{value['id']}, {value['kind'].replace('_', ' ')}"),
        ("said", f"{when(value['at'])} in {value['project'] or 'no project'}"),
        ("session", f"csmd session transcript {value['session_id']}"),
    ):
        labelled(out, name, word)
    near = value.get("around", {"before": [], "after": []})
    for title, turns in (("Before it", near["before"]), ("After it", near["after"])):
        if turns:
            _memory_head(out, title)
        for one in turns:
            _beside(out, one)
    if value.get("memories"):
        _memory_head(out, "Memories that rest on it")
    for one in value.get("memories", []):
        print_text(out, one["text"], head=f"  {one['id']}  ", most=3)


def show_candidate(value: dict[str, Any]) -> None:
    """What may become a memory, or be done to memories, with what speaks for and against it."""
    out = console()
    print_text(out, value["text"], most=20, style="bold")
    out.print()
    for name, word in (
        ("id", f"{value['id']}: {value['kind'].replace('_', ' ')}, {value['status'].replace('_', ' ')}"),
        ("why", value["reason"]),
        ("holds", value["project"] or "everywhere"),
        ("sure", f"{value['confidence'] * 100:.0f} %, seen {many(value['reinforcement'], 'time')}"),
    ):
        labelled(out, name, word)
    show_about(out, value["memories"])
    show_evidence(out, value["evidence"], most=MOST_SHOWN)
    if value["status"] in ("open", "needs_review"):
        out.print()
        verbs = "--keep | --edit TEXT | --drop | --supersede ID"
        print_text(out, f"csmd review {value['id']} {verbs}", style="dim")


def show_about(out: Console, memories: list[dict[str, Any]], *, besides: str = "") -> None:
    """The memories that a candidate is about; the text `besides` is not said once more."""
    for number, one in enumerate(memories, 1):
        sure = f"{one['confidence'] * 100:.0f} %"
        gone = f", superseded by {one['superseded_by']}" if one["superseded_by"] else ""
        place = f"{number}. " if len(memories) > 1 else ""
        out.print()
        if one["text"] != besides:
            print_text(out, one["text"], head=f"  {place}", most=4)
        said = f"{one['id']}, said by the {one['authority']} {when(one['at'])}, {sure}{gone}"
        print_text(out, said, indent=2 + len(place), style="dim")


def show_evidence(out: Console, found: list[dict[str, Any]], *, most: int) -> None:
    """The turns that speak for or against something, each with its sentence."""
    if found:
        out.print()
    for one in found[:most]:
        role = "against" if one["against"] else one.get("role") or "for"
        _spoken(out, one, role, most=4)
    if len(found) > most:
        print_text(out, f"... and {len(found) - most} more (--json)", indent=2, style="dim")


#: Characters and lines that are shown of the passage that matched, and of each one beside it.
MATCHED, BESIDE_HIT = (300, 5), (150, 2)
#: Where in a hit's text the turns beside the one that matched begin (csmd.recall.results).
_BESIDE = re.compile(r"\n\[(before|after)\] ")


def show_hits(value: dict[str, Any], *, explain: bool) -> None:
    """Search results: what was said, by whom, when and where."""
    out = console()
    if not value["hits"]:
        print_text(out, f"nothing found for {value['query']!r}")
    elif not value["close"]:
        print_text(out, "nothing close was found; the nearest:")
    asked = tokens.asked_terms(value["query"])
    places = {hit["id"]: f"number {number}" for number, hit in enumerate(value["hits"], 1)}
    for number, hit in enumerate(value["hits"], 1):
        session = f"session {hit['session_id'][:8]}" if hit["kind"] == "turn" else ""
        about = [
            hit["kind"],
            hit["gate"],
            hit["authority"],
            hit["at"][:10],
            _shown(hit),
            session,
            f"{hit['score']:.2f}",
            _overtaken(hit, places),
        ]
        print_text(out, "  ".join(part for part in about if part), head=f"{number:>2}  ", style="bold")
        matched, *beside = _BESIDE.split(hit["text"])
        print_text(out, prose.passage(matched, asked, limit=MATCHED[0]), indent=2, head="> ", most=MATCHED[1])
        for place, said in zip(beside[::2], beside[1::2], strict=True):
            passage = display.squeeze(prose.passage(said, asked, limit=BESIDE_HIT[0]))
            print_text(out, f"{place}, {passage}", indent=4, most=BESIDE_HIT[1], style="dim")
        if explain:
            print_text(out, show_explained(hit["factors"], hit["score"]), indent=4, style="dim")
    degraded(out, value["degraded"])
    out.print(f"{value['took_ms']:.0f} ms", style="dim")


def _overtaken(hit: dict[str, Any], places: Mapping[str, str]) -> str:
    """Why a hit may no longer hold; "" for one of which nothing is known."""
    if hit["superseded_by"]:
        return f"superseded by {hit['superseded_by']}"
    if hit["refuted"]:
        return "refuted"
    if hit["newer"]:
        return f"replaced by {places.get(hit['newer'], hit['newer'])}"
    return "its code edited since" if hit["edited"] else ""


def _shown(hit: dict[str, Any]) -> str:
    """An id as far as it tells a hit from others: what only a hook reported has one that begins with the time."""
    ident = str(hit["id"])
    return ident if ident.startswith("hook:") else ident[: 8 if hit["kind"] == "session" else 11]


def show_explained(factors: Mapping[str, float], score: float) -> str:
    """What a score was made from: the features of the hit that are not 0."""
    features = ", ".join(f"{name} {value:.2f}" for name, value in factors.items() if value)
    return f"{score:.2f} from {features}" if features else f"{score:.2f}"


REVIEW_KEYS = {"keep": "k", "edit": "e", "drop": "d", "supersede": "s"}
REVIEW_DONE = {
    "keep": "kept",
    "edit": "worded anew",
    "drop": "dropped",
    "supersede": "superseded",
    "pin": "pinned",
    "unpin": "unpinned",
}
#: Sources of an item that are shown before somebody decides.
MOST = 3


def show_review_item(value: dict[str, Any], *, number: int, total: int, undo: bool) -> None:
    """One item as it is asked about."""
    out = console()
    out.print()
    out.rule(f"{number} of {total}", style="dim", characters="-", align="left")
    _what(value)
    out.print()
    for verb, does in value["does"].items():
        out.print(f"  {REVIEW_KEYS[verb]}  {verb:<10} {does}"[: out.width])
    rest = ["n later", *(["u undo the last"] if undo else []), "q quit"]
    print_text(out, "   ".join(rest), indent=2, style="dim")


def _what(value: dict[str, Any]) -> None:
    out = console()
    sure = f"{value['confidence'] * 100:.0f} % sure"
    print_text(out, f"{value['title']}: {value['gate']} {value['category']}, {sure}, {value['id']}", style="dim")
    print_text(out, value["text"], most=12, style="bold")
    labelled(out, "why", value["reason"])
    labelled(out, "holds", value["project"] or "everywhere")
    show_about(out, value["memories"], besides=value["text"])
    show_evidence(out, value["evidence"], most=MOST)


def show_review_waiting(value: dict[str, Any]) -> None:
    """The list, where nobody can press a key, with what answers it."""
    out = console()
    if not value["items"]:
        print_text(out, "nothing waits for you here")
        return
    for one in value["items"]:
        sure = f"{one['confidence'] * 100:.0f} %"
        print_text(out, one["text"], head=f"{one['id']}  ", most=4)
        print_text(out, f"{one['title']}, {sure}: {one['reason']}", indent=13, style="dim")
    left = value["total"] - len(value["items"])
    out.print()
    told = [f"{many(value['total'], 'thing')} wait{'s' if value['total'] == 1 else ''} for you"]
    told += [f"... and {left:,} more (--limit {value['total']})"] if left > 0 else []
    print_text(out, "; ".join(told))
    print_text(
        out,
        "In a terminal `csmd review` asks about each with one key, or: "
        "csmd review ID --keep | --edit TEXT | --drop | --supersede ID",
        style="dim",
    )


def show_review_near(found: list[dict[str, Any]]) -> None:
    """Memories that may take another's place, with numbers to choose one by."""
    out = console()
    for number, one in enumerate(found, 1):
        said = f"{one['text']} ({one['id']}, {when(one['at'])[:10]})"
        print_text(out, said, head=f"  {number}. ", most=3)


def show_review_answered(value: dict[str, Any], *, brief: bool = False) -> None:
    """What an answer did."""
    out = console()
    made = f" as {value['made']}" if value["made"] and value["made"] != value["id"] else ""
    made = f" by {value['made']}" if value["verb"] == "supersede" and made else made
    said = f"{REVIEW_DONE[value['verb']]}: {value['id']}{made}"
    print_text(out, said if brief else f"{said}: {value['text']}", style="green" if brief else "")
    if not brief:
        print_text(out, "`csmd review --undo` takes it back", style="dim")


def show_review_undone(value: dict[str, Any]) -> None:
    """What was taken back."""
    print_text(console(), f"taken back: {value['id']} is no longer {REVIEW_DONE[value['verb']]}")


def show_review_refused(what: str, hint: str) -> None:
    """Why an answer was not carried out."""
    out = console()
    print_text(out, what, style="yellow")
    print_text(out, hint, head="  try: ")


def show_review_said(what: str) -> bool:
    """Says something and that the question stands."""
    print_text(console(), what, style="dim")
    return False


def show_review_ended(counted: dict[str, int], *, left: int) -> None:
    """What a sitting came to."""
    told = ", ".join(f"{number} {verb}" for verb, number in counted.items()) or "nothing was changed"
    rest = f"; {left:,} left" if left > 0 else "; nothing is left"
    click.echo()
    print_text(console(), told + rest)
    if counted:
        print_text(console(), "`csmd review --undo` takes the last one back", style="dim")


def show_review_edited(value: dict[str, Any]) -> None:
    """What became of another wording."""
    out = console()
    if not value["changed"]:
        print_text(out, f"nothing was changed: {value['id']} stays as it is")
        return
    print_text(out, f"{value['made']}: {value['text']}")
    said = f"it takes the place of {value['id']}; `csmd review --undo` takes that back"
    print_text(out, said, style="dim")
