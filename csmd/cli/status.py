"""The verbs that show what the daemon does: status, tail, logs."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import csmd
from csmd.cli import dreams, render, sessions
from csmd.cli import top as top_watching
from csmd.cli import verb as asking
from csmd.cli.render import ago, cells, fitted, glued, many, plain, tilde, wrapped
from csmd.cli.verb import json_option, out
from csmd.config import default_paths, user_home
from csmd.errors import CsmdError, DaemonUnreachable
from csmd.hosts.claude import registration
from csmd.installer import plan as installing
from csmd.installer import service
from csmd.model import GATE_PRIORITY
from csmd.paths import Paths
from csmd.text import display

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


#: The other screen of a terminal, and back; the cursor home; the rest of a line, of the screen.
ENTER, LEAVE, HOME, LINE_END, REST = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l", "\x1b[H", "\x1b[K", "\x1b[J"


def _within(lines: list[Text], height: int) -> list[Text]:
    """As many lines as there is room for; the last one says how many are left out."""
    from rich.text import Text

    if len(lines) <= height:
        return lines
    left = f"... and {len(lines) - height + 1} more lines: a higher window shows them, or csmd status"
    return [*lines[: height - 1], Text(left, style="dim", no_wrap=True, overflow="ellipsis")]


def redraw(look: Callable[[], list[Text]], out: Console, *, every_s: float) -> None:
    """Draws what `look` gives, cut to the terminal's height; while it fails, why. Ends with ^C."""
    from rich.text import Text

    lines: list[Text] = []
    out.file.write(ENTER)
    try:
        while True:
            try:
                lines = look()
                shown = lines
            except CsmdError as error:
                shown = [
                    Text(f"csmd: {error.what}", style="yellow"),
                    Text(f"  try: {error.hint}" if error.hint else ""),
                ]
            with out.capture() as drawn:
                for line in _within(shown, out.height - 1):
                    out.print(line)
            out.file.write(HOME + drawn.get().replace("\n", f"{LINE_END}\n") + REST)
            out.file.flush()
            time.sleep(every_s)
    except KeyboardInterrupt:
        return
    finally:
        out.file.write(LEAVE)
        out.file.flush()
        for line in lines:
            out.print(line)


#: (label, text, style); a row without a label goes on under the one before.
Row = tuple[str, str, str]

LABEL = 11
MOST_PROJECTS = 5
BAR, ROOM_FOR_BARS = 10, 72
OLD_DAYS = 2
#: What an older daemon, or one that cannot read its database, does not say.
UNSAID: Mapping[str, Any] = {
    "at": "", "service": "", "socket": "", "service_note": "", "clients": None, "alarms": [], "paused": None, "backfill": None, "live": [], "last_read": "", "pages": None, "dream": None,
    "memories": {"by_gate": {}, "by_tier": {}},
}  # fmt: skip
TIERS = ("session", "daily", "durable", "archive")
ALARM, AMISS, QUIET, HEAD = "bold red", "yellow", "dim", "bold"


def show_status(value: dict[str, Any], *, home: str = "") -> None:
    """Prints the screen; `home` is the user's, shown as `~`."""
    out = render.console()
    for line in show_screen(value, out, home=home):
        out.print(line)


def show_screen(value: dict[str, Any], out: Console, *, home: str = "") -> list[Text]:
    """The lines of the screen in the console's width."""
    value = {**UNSAID, **value}
    lines = _rows(out, [("", _verdict(value), HEAD)], label=0)
    for block in (_wrong(value), _running(value, home), _coming_in(value), _knowing(value, home)):
        rows = list(block)
        if rows:
            lines += [_blank(), *_rows(out, rows, label=LABEL)]
    for table in (_live(value, out.width), _projects(value, out.width, home)):
        if table:
            lines += [_blank(), *table]
    return lines


def _verdict(value: dict[str, Any]) -> str:
    alarms, degraded, paused = value["alarms"], value["degraded"], value["paused"]
    found = []
    if alarms:
        found.append(many(len(alarms), "alarm"))
    if degraded:
        found.append(f"{many(len(degraded), 'part')} degraded")
    amiss = [*pages["restored"], *pages["unread"]] if (pages := value["pages"]) else []
    if amiss:
        found.append(f"{many(len(amiss), 'page')} to look at")
    if paused:
        until = paused.get("until", "")
        found.append(f"paused until {render.when(until)}" if until else "paused until you resume it")
    return f"csmd {value['version']}: {', '.join(found) or 'all is well'}"


def _wrong(value: dict[str, Any]) -> Iterator[Row]:
    for alarm in value["alarms"]:
        since = f" (since {ago(alarm['since'], value['at'])})" if alarm.get("since") else ""
        yield "alarm", f"{alarm['what']}{since}", ALARM
        if alarm.get("do"):
            yield "", f"try: {alarm['do']}", ""
    if value["paused"]:
        yield "paused", "nothing is captured, and no session is told anything", AMISS
        yield "", "try: csmd resume", ""
    for what in value["degraded"]:
        yield "degraded", what, AMISS
    yield from _pages(value["pages"]) if value["pages"] else ()


def _pages(pages: Mapping[str, Any]) -> Iterator[Row]:
    """What people did to the pages that csmd could not take in as it stands, and what it asks about."""
    for one in pages["restored"]:
        yield (
            "pages",
            f"{one['page']} lost too much at once: nothing is forgotten, it stands whole in {one['whole']}",
            AMISS,
        )
        yield "", "try: put that back in its place; or delete it, if you meant it", ""
    for one in pages["unread"]:
        yield "pages", f"{one['page']} is neither read nor written: {one['why']}", AMISS
    if pages["copies"]:
        number = many(len(pages["copies"]), "copy", "copies")
        yield "pages", f"{number} that a sync service or an editor made, not read: {_some(pages['copies'])}", AMISS
    if pages["edited"]:
        yield "pages", f"edited and to be read in a minute: {_some(pages['edited'])}", ""
    asked = sum(one["lines"] for one in pages["asked"])
    if asked:
        pages_named = _some([one["page"] for one in pages["asked"]])
        was = "was" if asked == 1 else "were"
        yield "pages", f"csmd review asks about {many(asked, 'line')} that {was} removed from {pages_named}", ""


def _some(names: list[str]) -> str:
    return display.listed([*names[:2], *([f"{len(names) - 2} more"] if len(names) > 2 else [])])


def _running(value: dict[str, Any], home: str) -> Iterator[Row]:
    daemon, worker = value["daemon"], value["worker"]
    by = {"": "", "detached": ", detached"}.get(value["service"], f", under {value['service']}")
    yield "daemon", f"running for {render.age(daemon['uptime_s'])}, pid {daemon['pid']}{by}", ""
    if value["service_note"]:
        yield "", value["service_note"], QUIET
    if "rss_mb" in daemon:
        asleep = f"; {glued('worker asleep')}" if value["model"]["name"] else ""
        yield "uses", _cost(daemon) + (f"; worker {_cost(worker)}" if worker.get("rss_mb") else asleep), ""
    if value["socket"]:
        yield "socket", tilde(value["socket"], home), ""


def _cost(process: dict[str, Any]) -> str:
    """Memory, and the share of a core, lately and since the process began."""
    lately, whole = (_percent(process.get(key)) for key in ("cpu_recent_percent", "cpu_percent"))
    if not lately:
        return f"{process['rss_mb']} MB"
    return f"{process['rss_mb']} MB, {lately} of a core" + (f" ({whole} overall)" if whole != lately else "")


def _percent(amount: float | None) -> str:
    if amount is None:
        return ""
    return "0 %" if amount < 0.01 else f"{amount:.2f} %" if amount < 1 else f"{amount:.0f} %"


def _coming_in(value: dict[str, Any]) -> Iterator[Row]:
    now, last, spool = value["at"], value["last_event"], value["spool"]
    sources = {**last, **({"transcript": value["last_read"]} if value["last_read"] else {})}
    latest = sorted(sources.items(), key=lambda row: (row[1], row[0]), reverse=True)
    told = ", ".join(glued(f"{name.replace('_', ' ')} {ago(at, now)}") for name, at in latest)
    if told or value["transcripts"] is not None:  # else nobody knows
        yield "heard", told or "nothing yet; the first session after `csmd install` brings some", ""
    if spool["files"]:
        since = f", the oldest from {ago(spool['oldest'], now)}" if spool.get("oldest") else ""
        waiting = "waits" if spool["files"] == 1 else "wait"
        yield "spool", f"{many(spool['files'], 'event')} {waiting} to be taken in{since}", AMISS
    old = (value["clients"] or {}).get("kept_out_by", "")
    if display.version_of(old):
        yield (
            "clients",
            f"Claude Code {old} is in use, which does not know {display.listed(tuple(registration.NEWER))}",
            "",
        )
    if value["backfill"]:
        yield "back-fill", _backfill(value["backfill"]), ""
    for job in value["jobs"]:
        done = f" {job['done']:,} of {job['total']:,}" if job.get("total") else ""
        yield "working", f"{job['kind']}: {job.get('step', job['state'])}{done}", ""


def _backfill(left: dict[str, Any]) -> str:
    done, total = left.get("sessions_done", 0), left.get("sessions_done", 0) + left["sessions_left"]
    bytes_left = f", {render.size(left['bytes_left'])} left" if left.get("bytes_left") else ""
    eta = f", about {render.age(left['eta_s'])}" if left.get("eta_s") else ""
    return f"{done:,} of {many(total, 'past session')} in{bytes_left}{eta}"


def _knowing(value: dict[str, Any], home: str) -> Iterator[Row]:
    counts, model, storage = value["counts"], value["model"], value["storage"]
    if counts["sessions"]:
        found = [many(counts["agents"], "sub-agent")] if counts.get("agents") else []
        told = [
            f"{counts['sessions']:,} in {many(counts['projects'], 'project')}",
            *found,
            many(counts["turns"], "turn"),
        ]
        yield "sessions", ", ".join(map(glued, told)), ""
    yield from _memories(counts["memories"], **value["memories"])
    if value.get("told", {}).get("judged"):
        yield "told", sessions.total(value["told"]).removeprefix("told "), ""
    if model["name"]:
        waiting = f", {many(model['waiting'], 'text')} to go" if model["waiting"] else ""
        yield "vectors", f"{counts['vectors']:,} by {model['name'].split('@')[0].split('/')[-1]}{waiting}", ""
    if value["dream"]:
        yield from dreams.show_of_status(value["dream"], value["at"])
    yield "storage", _storage(storage, value, home), ""
    if value["transcripts"]:
        yield "keeps", _kept(value["transcripts"], home), ""
    kinds = {name.removeprefix("redacted "): n for name, n in value["counters"].items() if name.startswith("redacted ")}
    if sum(kinds.values()):
        yield "privacy", f"{many(sum(kinds.values()), 'secret')} kept out ({_commonest(kinds)})", ""
    looked_again = value.get("corrected") or {}
    if any(looked_again.values()):
        yield "corrected", show_corrected(looked_again), ""
    bad = [
        many(n, name[4:].removesuffix("s")) for name, n in value["counters"].items() if name.startswith("bad ") and n
    ]
    if bad:
        yield "unreadable", f"{', '.join(bad)}; noted in the quarantine", ""
    left_out = [many(n, name.removesuffix("s")) for name, n in value["excluded"].items() if n]
    if left_out:
        yield "excluded", f"{', '.join(left_out)} of projects that you left out", ""


def show_corrected(found: dict[str, int]) -> str:
    """What looking again at who spoke in older sessions has changed."""
    said = f"{many(found['prompts'], 'prompt')} of older sessions were not the user's"
    if found["lowered"] or found["archived"]:
        said += f"; {found['lowered']} memories are the assistant's since, {found['archived']} archived"
    return said + (f"; {many(found['left'], 'prompt')} still to be looked at" if found["left"] else "")


def _memories(total: int, by_gate: dict[str, int], by_tier: dict[str, int]) -> Iterator[Row]:
    gates = sorted(by_gate, key=lambda gate: (-GATE_PRIORITY.get(gate, 0), gate))  # type: ignore[call-overload]
    kinds = ", ".join(glued(f"{by_gate[gate]:,} {gate}") for gate in gates if by_gate[gate])
    if total:
        yield "memories", f"{total:,}{f': {kinds}' if kinds else ''}", ""
    tiers = [tier for tier in (*TIERS, *sorted(set(by_tier) - set(TIERS))) if by_tier.get(tier)]
    if tiers:
        yield "", f"by tier: {', '.join(glued(f'{by_tier[tier]:,} {tier}') for tier in tiers)}", ""


def _storage(storage: dict[str, Any], value: dict[str, Any], home: str) -> str:
    said = f"{render.size(storage['database_bytes'] + storage['wal_bytes'])} in {tilde(value['home'], home)}"
    growth = storage.get("growth") or {}
    daily = growth.get("bytes_per_day")
    if daily:
        said += ", " + glued(f"{'+' if daily > 0 else '-'}{render.size(abs(daily))}/day, {many(growth['days'], 'day')}")
    if storage.get("backups"):
        said += f"; {glued(many(storage['backups'], 'backup'))}"
        last = ago(storage["last_backup"], value["at"])
        said += f", the last {glued(last)}" if _is_old(last) else ""
    not_kept = value["counters"].get("turns not kept", 0)
    return said + (f"; {many(not_kept, 'turn')} not kept" if not_kept else "")


def _is_old(age: str) -> bool:
    """Whether an age is of more than two days: a backup a day is nothing to tell."""
    number, _, unit = age.partition(" ")
    return not (unit in ("s ago", "min ago", "h ago") or (unit == "d ago" and int(number) <= OLD_DAYS))


def _kept(value: dict[str, Any], home: str) -> str:
    """How long the assistant keeps transcripts, and what csmd has beyond that."""
    days, others = value["days"], value["by_project"]
    usual = f"the assistant {many(days, 'day')} of transcripts" if days else "the assistant no transcripts"
    some = ", ".join(
        f"{number:,} in {fitted(tilde(root, home), 30, end=True)}" for root, number in list(others.items())[:2]
    )
    gone = f", csmd {glued(many(value['gone'], 'session'))} beyond" if value["gone"] else ""
    return f"{usual}{f' ({some})' if some else ''}{gone}"


def _commonest(found: dict[str, int]) -> str:
    top = sorted(((n, name) for name, n in found.items() if n), key=lambda row: (-row[0], row[1]))
    return f"{', '.join(f'{name} {n:,}' for n, name in top[:3])}{', ...' if len(top) > 3 else ''}"


def _live(value: dict[str, Any], width: int) -> list[Text]:
    """Who works now, and how full the context of each is."""
    rows = []
    for one in value["live"]:
        used, window = one["tokens"], max(one["window"], 1)
        part = min(used / window, 1.0)
        bar = f"[{'=' * round(part * BAR):.<{BAR}}] {one['bracket']}" if used else ""
        share = f"{part * 100:.0f} %" if used else ""
        told = f"{used:,} of {window:,}" if used else "not known yet"
        name = one["project"].rstrip("/").rpartition("/")[2]
        rows.append([plain(name) or one["session"][:8], bar, share, told, ago(one["last"], value["at"])])
    if width < ROOM_FOR_BARS:
        return _table(["live", "", "tokens", "last turn"], "<>><", [[row[0], *row[2:]] for row in rows], width)
    return _table(["live", "context", "", "tokens", "last turn"], "<<>><", rows, width)


def _projects(value: dict[str, Any], width: int, home: str) -> list[Text]:
    found = value["projects"]
    rows = [
        [tilde(one["root"], home), f"{one['sessions']:,}", f"{one['memories']:,}", ago(one["last"], value["at"])]
        for one in found[:MOST_PROJECTS]
    ]
    lines = _table(["project", "sessions", "memories", "last turn"], "<>><", rows, width)
    left = len(found) - MOST_PROJECTS
    return lines + ([_text(fitted(f"and {left:,} more: csmd project list", width), QUIET)] if left > 0 else [])


# --- lines


def _table(heads: list[str], sides: str, rows: list[list[str]], width: int) -> list[Text]:
    """Aligned columns two apart; the first gives way to the others, its end kept. No rows, no table."""
    if not rows:
        return []
    rest = [max(map(cells, column)) for column in list(zip(heads, *rows, strict=True))[1:]]
    first = max(8, min(width - sum(rest) - 2 * len(rest), max(cells(row[0]) for row in [heads, *rows])))
    lines = []
    for number, row in enumerate([heads, *rows]):
        parts = []
        for cell, size, side in zip(row, [first, *rest], sides, strict=True):
            cut = fitted(plain(cell), size, end=True)
            gap = " " * (size - cells(cut))
            parts.append(cut + gap if side == "<" else gap + cut)
        lines.append(_text(fitted("  ".join(parts).rstrip(), width), QUIET if number == 0 else ""))
    return lines


def _rows(out: Console, rows: list[Row], *, label: int) -> list[Text]:
    """Labelled lines, wrapped beside their labels."""
    from rich.text import Text

    lines = []
    for name, said, style in rows:
        beside = f"{name:<{label}}" if label else ""
        for part in wrapped(plain(said, keep_glue=True), max(out.width - label, 10)):
            lines.append(Text.assemble((beside, QUIET), (part, style)))
            beside = " " * label
    return lines


def _text(said: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(said, style=style)


def _blank() -> Text:
    return _text("")


LOOK_S = 0.3
#: As csmd/daemon/logs.py writes a line; what does not look so belongs to the one before it.
_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ ([A-Z]+) +csmd\.(?:daemon\.)?([\w.]+): (.*)")
STYLES = {"warning": "yellow", "error": "red", "critical": "red"}


@click.command()
@click.option("-n", "number", default=50, show_default=True, type=click.IntRange(1, 100_000), help="How many lines.")
@click.option("--follow", is_flag=True, help="Go on with what is written from now on.")
@json_option
def logs(number: int, follow: bool, as_json: bool) -> None:
    """Show what the daemon did, and what went wrong."""
    path = default_paths().log_file
    older = [path.with_name(f"{path.name}.{place}") for place in (3, 2, 1)]
    begun = _size(path)  # what is written while we show the end is not passed over
    lines = [line for file in older for line in _lines(file)] + _lines(path, most=begun)
    lines = lines[-number:]
    if not lines and not follow:
        raise CsmdError(f"there is no log yet at {path}", hint="csmd start")
    if as_json and follow:
        raise click.UsageError("--json goes without --follow")
    out({"path": str(path), "lines": [_parsed(line) for line in lines]}, as_json, lambda value: _shown(value["lines"]))
    for line in _growing(path, begun) if follow else ():
        _shown([_parsed(line)])


def _size(path: Path) -> int:
    """How long the log is, up to its last whole line."""
    try:
        return path.read_bytes().rfind(b"\n") + 1
    except OSError:
        return 0


def _lines(path: Path, *, most: int | None = None) -> list[str]:
    try:
        return path.read_bytes()[:most].decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}") from error


def _growing(path: Path, begun: int) -> Iterator[str]:
    """Every line behind the first `begun` bytes; a log that is rotated is followed into the new file."""
    file, rest = (path.open(encoding="utf-8", errors="replace") if path.exists() else None), ""
    if file:
        file.seek(begun)
    try:
        while True:
            read = file.read() if file else ""
            *whole, rest = (rest + read).split("\n")
            yield from whole
            if read:
                continue
            if path.exists() and (file is None or not path.samefile(f"/dev/fd/{file.fileno()}")):
                if file:
                    file.close()
                file, rest = path.open(encoding="utf-8", errors="replace"), ""
            time.sleep(LOOK_S)
    finally:
        if file:
            file.close()


def _parsed(line: str) -> dict[str, Any]:
    found = _LINE.fullmatch(line)
    if found is None:
        return {"at": "", "level": "", "where": "", "text": line}
    at, level, where, said = found.groups()
    return {"at": at, "level": level.lower(), "where": where, "text": said}


def _shown(lines: list[dict[str, Any]]) -> None:
    """Lines in the terminal's width: the time, what is no mere information, where it comes from, what it says."""
    console = render.console()
    for line in lines:
        if not line["at"]:
            render.print_text(console, line["text"].strip(), indent=16, style="dim")
            continue
        place = f"{line['level']} in {line['where']}: " if line["level"] != "info" else ""
        style = STYLES.get(line["level"], "")
        render.print_text(console, f"{place}{line['text']}", head=f"{line['at'][5:]}  ", style=style)


EVERY_S = 2.0


@click.command()
@click.option("--watch", is_flag=True, help="Draw it anew every 2 s, until ^C.")
@json_option
def status(watch: bool, as_json: bool) -> None:
    """Show whether everything works, and what is known."""
    paths, home = default_paths(), str(user_home())
    if watch and (as_json or not sys.stdout.isatty()):
        raise click.UsageError("--watch draws on a terminal; for a program: `csmd status --json`, again and again")
    if not watch:
        asking.out(look(paths), as_json, lambda value: show_status(value, home=home))
        return
    out = render.console()
    redraw(lambda: show_screen(look(paths), out, home=home), out, every_s=EVERY_S)


def look(paths: Paths) -> dict[str, Any]:
    """The daemon's state, with what only the command line can see of it; DaemonUnreachable says why there is none."""
    try:
        value: dict[str, Any] = asking.ask("csm_runtime_status")
    except DaemonUnreachable as error:
        if service.why_not(paths, error) is not error or paths.install_record.exists():
            raise  # the command line says why
        if paths.database.exists():  # it was uninstalled, or a plugin brings the hooks
            raise DaemonUnreachable(
                f"{error.what}, and it is not installed",
                hint="csmd install, or `csmd start` where a plugin brings the hooks",
            ) from None
        raise DaemonUnreachable(f"csmd is not installed here ({paths.home})", hint="csmd install") from None
    value["degraded"] += installing.trouble(paths)
    value["service_note"] = service.note(paths, value.get("service", ""))
    if value["version"] != csmd.__version__:
        is_newer = (display.version_of(value["version"]) or ()) > (display.version_of(csmd.__version__) or ())
        helps = "start the command anew" if is_newer else "csmd upgrade"
        value["degraded"].append(f"daemon: it is csmd {value['version']}, this command {csmd.__version__}: {helps}")
    return value


@click.command()
@click.option("--project", metavar="PATH", help="Only what belongs to this project.")
def top(project: str | None) -> None:
    """Look at sessions and memories as they change."""
    where = asking.looking(project, everywhere=project is None)
    asking.ask("csm_tools")  # without a daemon: the error, and no screen
    if not sys.stdout.isatty():
        raise click.UsageError("csmd top needs a terminal; for a program: csmd status --json")
    from csmd.cli import top_screen

    top_screen.show_screen(asking.ask, where)


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    logs,
    status,
    top_watching.tail,
    top,
)
