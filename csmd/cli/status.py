"""The command that shows whether everything works, and the numbers of sessions and memories."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

import csmd
from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, bold, dim, glue, last_part, many, plain, shorten, tilde, warning
from csmd.config import default_paths, user_home
from csmd.errors import CsmdError
from csmd.hosts.registrations import CLAUDE
from csmd.installer import foreign_files, plan, service
from csmd.paths import Paths
from csmd.text import ages, display
from csmd.text.ages import ago
from csmd.vocabulary import GATE_PRIORITY

VERBS = verb.Verbs()
#: (label, text, style); a row without a label continues the row before.
Row = tuple[str, str, str]
LABEL_COLUMNS = 11
MAX_PROJECTS = 5
#: Columns of the bar of a live session's context.
BAR_COLUMNS = 10
#: Fewest columns of a terminal that shows such bars.
MIN_WIDTH_FOR_BARS = 72
#: Days after which a backup is shown as old.
OLD_BACKUP_DAYS = 3
#: Defaults of fields that an older daemon, or one that cannot read its database, leaves out.
DEFAULTS: Mapping[str, Any] = {
    "at": "", "service": "", "socket": "", "service_note": "", "clients": None, "hosts": [], "alarms": [],
    "encrypted": False, "paused": None, "backfill": None, "off_mark": "", "live": [], "last_read": "", "pages": None,
    "dream": None, "provider": None, "team": None, "memories": {"by_gate": {}, "by_tier": {}},
}  # fmt: skip
TIERS = ("session", "daily", "durable", "archive")
ALARM = "bold red"
WARNING = "yellow"
QUIET = "dim"
REDRAW_S = 2.0


@VERBS.action("status", verb.flag("--watch", help="Redraw it every 2 s, until ^C."))
def status(watch: bool, as_json: bool) -> None:
    """Show whether everything works, and the numbers of sessions and memories."""
    paths, home = default_paths(), str(user_home())
    if not watch:
        verb.print_answer(fetch_status(paths), as_json, show_status, home=home)
        return
    if as_json or not sys.stdout.isatty():
        raise click.UsageError("--watch draws on a terminal; for a program, repeat `csmd status --json`")
    redraw(lambda: show_status(fetch_status(paths), home=home))


def fetch_status(paths: Paths) -> dict[str, Any]:
    """Returns the daemon's state, with problems that only the command line sees."""
    value: dict[str, Any] = verb.ask("csm_runtime_status")
    value["degraded"] += plan.find_problems(paths)
    value["service_note"] = service.describe_lifetime(paths, value.get("service", ""))
    value["off_mark"] = ""
    with contextlib.suppress(CsmdError):  # the directory is gone
        value["off_mark"] = foreign_files.find_off_mark(verb.resolve_project(None))
    if value["version"] != csmd.__version__:
        is_newer = (display.parse_version(value["version"]) or ()) > (display.parse_version(csmd.__version__) or ())
        remedy = "start this command again" if is_newer else "csmd upgrade"
        value["degraded"].append(f"daemon: it is csmd {value['version']}, this command {csmd.__version__}: {remedy}")
    return value


def show_status(value: dict[str, Any], *, home: str = "") -> Screen:
    """Shows the screen; `home` is the user's, shown as `~`."""
    value = {**DEFAULTS, **value}
    yield bold(plain(headline(value)))
    blocks = (_list_problems(value), _list_processes(value, home), _list_intake(value), _list_knowledge(value, home))
    for block in blocks:
        yield from render.block("", (_line(*row) for row in block))
    for table in (_show_live_sessions(value), _show_projects(value, home)):
        yield from render.block("", table)


def _line(label: str, text: str, style: str) -> Line:
    return Line(plain(text, keep_glue=True), head=f"{label:<{LABEL_COLUMNS}}", head_style=QUIET, style=style)


def headline(value: dict[str, Any]) -> str:
    """Returns the state in one sentence: healthy, with the recorded sessions and memories; or the problems."""
    value = {**DEFAULTS, **value}
    pages, paused = value["pages"] or {"restored": [], "unread": []}, value["paused"]
    bad_pages = len(pages["restored"]) + len(pages["unread"])
    until = ages.when(paused["until"]) if paused and paused.get("until") else "you resume it"
    problems = render.join(
        value["alarms"] and many(len(value["alarms"]), "alarm"),
        value["degraded"] and f"{many(len(value['degraded']), 'part')} degraded",
        bad_pages and f"{many(bad_pages, 'page')} to look at",
        paused and f"paused until {until}",
    )
    if problems:
        return f"Paused until {until}" if problems == f"paused until {until}" else f"Needs a look: {problems}"
    last = (value["dream"] or {}).get("last")
    last_dream = last and f"last dream {ago(last['begun_at'], value['at'])}"
    return "Healthy: " + render.join(render.describe_recording(value), last_dream)


def _list_problems(value: dict[str, Any]) -> Iterator[Row]:
    for alarm in value["alarms"]:
        since = f" (since {ago(alarm['since'], value['at'])})" if alarm.get("since") else ""
        yield "alarm", f"{alarm['what']}{since}", ALARM
        if alarm.get("do"):
            yield "", f"try: {alarm['do']}", ""
    if value["paused"]:
        yield "paused", "no session is captured, and none gets notes", WARNING
        by = f" by {value['paused']['by']}" if value["paused"].get("by") else ""
        yield "", f"since {ages.when(value['paused']['since'])}{by}", ""
        yield "", "try: csmd resume", ""
    if value["off_mark"]:
        yield "left out", f"{value['off_mark']}: sessions in this directory are not captured", WARNING
    yield from (("degraded", problem, WARNING) for problem in value["degraded"])
    yield from _list_page_problems(value["pages"]) if value["pages"] else ()


def _list_page_problems(pages: Mapping[str, Any]) -> Iterator[Row]:
    """Lists edits of pages that csmd could not read, will read, or asks about."""
    for page in pages["restored"]:
        problem = f"{page['page']} lost too much at once; nothing was forgotten, the full page is in {page['whole']}"
        yield "pages", problem, WARNING
        yield "", "try: move that file back; or delete it, if you meant the edit", ""
    for page in pages["unread"]:
        yield "pages", f"{page['page']} is neither read nor written: {page['why']}", WARNING
    if copies := pages["copies"]:
        number = many(len(copies), "copy")
        yield "pages", f"{number} of a sync service or an editor, not read: {_first_two(copies)}", WARNING
    if pages["edited"]:
        yield "pages", f"edited and to be read in a minute: {_first_two(pages['edited'])}", ""
    if removed := sum(page["lines"] for page in pages["asked"]):
        names = _first_two([page["page"] for page in pages["asked"]])
        yield "pages", f"csmd review asks about {many(removed, 'line')} removed from {names}", ""


def _first_two(names: list[str]) -> str:
    return display.join_names([*names[:2], *([f"{len(names) - 2} more"] if len(names) > 2 else [])])


def _list_processes(value: dict[str, Any], home: str) -> Iterator[Row]:
    daemon, worker = value["daemon"], value["worker"]
    manager = {"": "", "detached": ", detached"}.get(value["service"], f", under {value['service']}")
    running = f"running for {ages.age(daemon['uptime_s'])}, pid {daemon['pid']}"
    yield "daemon", f"csmd {value['version']}, {running}{manager}", ""
    if value["service_note"]:
        yield "", value["service_note"], QUIET
    if "rss_mb" in daemon:
        asleep = f"; {glue('worker asleep')}" if value["model"]["name"] else ""
        worker_usage = f"; worker {_describe_usage(worker)}" if worker.get("rss_mb") else asleep
        yield "uses", _describe_usage(daemon) + worker_usage, ""
    if value["socket"]:
        yield "socket", tilde(value["socket"], home), ""


#: State of an assistant's hooks -> its words.
HOOK_STATES = {
    "there": "hooks on", "gone": "hooks not registered (csmd install)", "off": "hooks off in its settings",
    "untrusted": "hooks not trusted yet (start codex, choose Trust all)", "unknown": "hooks unknown",
}  # fmt: skip


def _describe_host(host: Mapping[str, Any], now: str) -> str:
    """Describes an assistant: its sessions and turns, its last event, and the state of its hooks."""
    last = f"last event {ago(host['last_event'], now)}" if host["last_event"] else "no event yet"
    amounts = (many(host["sessions"], "session"), many(host["turns"], "turn"))
    return f"{host['title']}: {render.join(*amounts, last, HOOK_STATES[host['hooks']])}"


def _describe_usage(process: dict[str, Any]) -> str:
    """Describes a process: its memory, and its share of a core, recently and since it began."""
    recent, overall = (_format_share(process.get(key)) for key in ("cpu_recent_percent", "cpu_percent"))
    cpu = f", {recent} of a core" if recent else ""
    return f"{process['rss_mb']} MB{cpu}" + (f" ({overall} overall)" if recent and overall != recent else "")


def _format_share(percent: float | None) -> str:
    if percent is None:
        return ""
    return "0 %" if percent < 0.01 else f"{percent:.2f} %" if percent < 1 else f"{percent:.0f} %"


def _list_intake(value: dict[str, Any]) -> Iterator[Row]:
    now, spool = value["at"], value["spool"]
    sources = value["last_event"] | ({"transcript": value["last_read"]} if value["last_read"] else {})
    latest = sorted(((event_at, name) for name, event_at in sources.items()), reverse=True)
    events = ", ".join(glue(f"{name.replace('_', ' ')} {ago(event_at, now)}") for event_at, name in latest)
    if events or value["transcripts"] is not None:  # else it is unknown
        yield "heard", events or "no events yet; the first session after `csmd install` brings some", ""
    # For one assistant the other lines say as much.
    for host in value["hosts"] if len(value["hosts"]) > 1 else ():
        yield "hosts", _describe_host(host, now), "" if host["hooks"] == "there" else WARNING
    if spool["files"]:
        since = f", the oldest from {ago(spool['oldest'], now)}" if spool.get("oldest") else ""
        waiting = f"{many(spool['files'], 'event')} {'waits' if spool['files'] == 1 else 'wait'}"
        encryption = "; unencrypted until then" if value["encrypted"] else ""
        yield "spool", f"{waiting} to be read{since}{encryption}", WARNING
    oldest = (value["clients"] or {}).get("kept_out_by", "")
    if display.parse_version(oldest):
        unsupported = display.join_names(tuple(CLAUDE.newer))
        yield "clients", f"Claude Code {oldest} is in use, which does not know {unsupported}", ""
    if backfill := value["backfill"]:
        progress = backfill.get("sessions_done", 0)
        to_read = f", {render.size(backfill['bytes_left'])} left" if backfill.get("bytes_left") else ""
        eta = f", about {ages.age(backfill['eta_s'])}" if backfill.get("eta_s") else ""
        total = many(progress + backfill["sessions_left"], "past session")
        yield "back-fill", f"{progress:,} of {total} in{to_read}{eta}", ""
    for job in value["jobs"]:
        progress = f" {job['done']:,} of {job['total']:,}" if job.get("total") else ""
        yield "working", f"{job['kind']}: {job.get('step', job['state'])}{progress}", ""


def _list_knowledge(value: dict[str, Any], home: str) -> Iterator[Row]:
    counts, model, counters = value["counts"], value["model"], value["counters"]
    if counts["sessions"]:
        sessions = glue(f"{counts['sessions']:,} in {many(counts['projects'], 'project')}")
        agents = counts.get("agents") and glue(many(counts["agents"], "sub-agent"))
        yield "sessions", render.join(sessions, agents, glue(many(counts["turns"], "turn"))), ""
    yield from _list_memory_counts(counts["memories"], counts.get("superseded", 0), **value["memories"])
    if value.get("told", {}).get("judged"):
        yield "told", render.describe_week(value["told"]).removeprefix("told "), ""
    if model["name"]:
        waiting = f", {many(model['waiting'], 'text')} to go" if model["waiting"] else ""
        yield "vectors", f"{counts['vectors']:,} by {model['name'].split('@')[0].split('/')[-1]}{waiting}", ""
    else:
        fetch = render.fetch_command(model["suggested"]).replace("`", "")
        yield "search", f"by words; {fetch} adds search by meaning", ""
    if value["dream"]:
        yield from _list_dreams(value["dream"], value["at"])
    if value["provider"]:
        from csmd.cli import provider  # imported late, as most installations have no provider

        yield from provider.status_rows(value["provider"], value["at"])
    if value["team"]:
        from csmd.cli import team

        yield from team.status_rows(value["team"], value["at"])
    yield "storage", _describe_storage(value["storage"], value, home), ""
    if value["transcripts"]:
        yield "kept", _describe_retention(value["transcripts"], home), ""
    if redactions := _select_nonzero(counters, "redacted "):
        yield "privacy", f"{many(sum(redactions.values()), 'secret')} redacted ({_list_commonest(redactions)})", ""
    if any((value.get("corrected") or {}).values()):
        yield "corrected", describe_corrections(value["corrected"]), ""
    if unreadable := [many(n, name.removesuffix("s")) for name, n in _select_nonzero(counters, "bad ").items()]:
        yield "unreadable", f"{', '.join(unreadable)}; noted in the quarantine", ""
    if excluded := [many(n, name.removesuffix("s")) for name, n in _select_nonzero(value["excluded"]).items()]:
        yield "excluded", f"{', '.join(excluded)} of projects that you left out", ""


def _select_nonzero(counters: Mapping[str, int], prefix: str = "") -> dict[str, int]:
    """Returns the counters that are not 0, of those with a prefix, by the rest of their name."""
    return {name.removeprefix(prefix): n for name, n in counters.items() if name.startswith(prefix) and n}


def describe_corrections(counts: dict[str, int]) -> str:
    """Describes the corrections of who spoke in older sessions."""
    corrections = f"{many(counts['prompts'], 'prompt')} of older sessions were not the user's"
    if counts["lowered"] or counts["archived"]:
        lowered = many(counts["lowered"], "memory")
        corrections += f"; {lowered} no longer counted as yours, {counts['archived']:,} archived"
    return corrections + (f"; {many(counts['left'], 'prompt')} still to be examined" if counts["left"] else "")


def _list_memory_counts(total: int, superseded: int, by_gate: dict[str, int], by_tier: dict[str, int]) -> Iterator[Row]:
    gates = sorted(by_gate, key=lambda gate: (-GATE_PRIORITY.get(gate, 0), gate))  # type: ignore[call-overload]
    gate_counts = ", ".join(glue(f"{by_gate[gate]:,} {gate}") for gate in gates if by_gate[gate])
    if total:
        replaced = f"; {glue(f'{superseded:,} superseded')}" if superseded else ""
        yield "memories", f"{total:,}{f': {gate_counts}' if gate_counts else ''}{replaced}", ""
    if tiers := [tier for tier in (*TIERS, *sorted(set(by_tier) - set(TIERS))) if by_tier.get(tier)]:
        yield "", f"by tier: {', '.join(glue(f'{by_tier[tier]:,} {tier}') for tier in tiers)}", ""


def _list_dreams(value: dict[str, Any], now: str) -> Iterator[tuple[str, str, str]]:
    since = f"; the last {glue(ago(value['last']['begun_at'], now))}" if value["last"] else ""
    yield "dream", render.describe_dream(value) + since, ""
    if value["latest"] and value["latest"]["state"] == "failed":
        yield "", f"the latest failed: {value['latest']['error']}", "yellow"


def _describe_storage(storage: dict[str, Any], value: dict[str, Any], home: str) -> str:
    text = f"{render.size(storage['database_bytes'] + storage['wal_bytes'])} in {tilde(value['home'], home)}"
    growth = storage.get("growth") or {}
    if daily := growth.get("bytes_per_day"):
        text += ", " + glue(f"{'+' if daily > 0 else '-'}{render.size(abs(daily))}/day, {many(growth['days'], 'day')}")
    if storage.get("backups"):
        last = storage["last_backup"]
        text += f"; {glue(many(storage['backups'], 'backup'))}"
        # A daily backup is not worth showing.
        if ages.seconds_between(last, value["at"]) >= OLD_BACKUP_DAYS * ages.DAY_S:
            text += f", the last {glue(ago(last, value['at']))}"
    not_kept = value["counters"].get("turns not kept", 0)
    return text + (f"; {many(not_kept, 'turn')} not kept" if not_kept else "")


def _describe_retention(value: dict[str, Any], home: str) -> str:
    """Describes how long the assistant keeps transcripts, and the number of further sessions in csmd."""
    usual = f"{many(value['days'], 'day')} of transcripts" if value["days"] else "no transcripts"
    others = list(value["by_project"].items())[:2]
    exceptions = ", ".join(f"{number:,} in {shorten(tilde(root, home), 30, end=True)}" for root, number in others)
    further = f"; by csmd {glue(many(value['gone'], 'session'))} more" if value["gone"] else ""
    return f"by the assistant {usual}{f' ({exceptions})' if exceptions else ''}{further}"


def _list_commonest(counts: dict[str, int]) -> str:
    names = sorted(counts, key=lambda name: (-counts[name], name))
    return f"{', '.join(f'{name} {counts[name]:,}' for name in names[:3])}{', ...' if len(names) > 3 else ''}"


def _show_live_sessions(value: dict[str, Any]) -> Screen:
    """Shows live sessions, with the used part of their contexts."""
    rows = []
    for live in value["live"]:
        used, window = live["tokens"], max(live["window"], 1)
        share = min(used / window, 1.0)
        bar = f"[{'=' * round(share * BAR_COLUMNS):.<{BAR_COLUMNS}}] {live['bracket']}"
        context = [bar, render.percent(share), f"{used:,} of {window:,}"] if used else ["", "", "not known yet"]
        name = plain(last_part(live["project"])) or display.shorten_session_id(live["session"])
        rows.append([name, *context, ago(live["last"], value["at"])])
    if render.width() < MIN_WIDTH_FOR_BARS:
        without_bars = [[name, *numbers] for name, _bar, *numbers in rows]
        return render.table("live||tokens|last turn", "<>><", without_bars, least=8)
    return render.table("live|context||tokens|last turn", "<<>><", rows, least=8)


def _show_projects(value: dict[str, Any], home: str) -> Screen:
    rows = [
        [tilde(row["root"], home), f"{row['sessions']:,}", f"{row['memories']:,}", ago(row["last"], value["at"])]
        for row in value["projects"]
    ]
    yield from render.table("project|sessions|memories|last turn", "<>><", rows[:MAX_PROJECTS], least=8)
    if len(rows) > MAX_PROJECTS:
        yield dim(shorten(f"and {len(rows) - MAX_PROJECTS:,} more: csmd project list", render.width()))


def redraw(draw: Callable[[], Screen]) -> None:
    """Draws a screen, or the error, every REDRAW_S seconds, cut to the terminal's height. Ends with ^C."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, emoji=False, markup=False)
    screen: list[Line | str] = []
    with contextlib.suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                frame = screen = list(draw())
            except CsmdError as error:
                frame = [warning(f"csmd: {error.what}"), Line(error.hint, head="  try: ")]
            lines = _fit_lines(list(render.lay_out(frame, console.width)), console.size)
            live.update(Group(*(Text.assemble(*parts) for parts in lines)), refresh=True)
            time.sleep(REDRAW_S)
    render.show(screen)


def _fit_lines(lines: list[render.Parts], terminal: tuple[int, int]) -> list[render.Parts]:
    """Returns the lines that fit in a terminal's columns and lines; if some do not, the last line has their number."""
    columns, height = terminal
    if len(lines) <= height:
        return lines
    rest = f"... and {len(lines) - height + 1} more lines: enlarge the window to see them, or csmd status"
    return [*lines[: height - 1], ((shorten(rest, columns), QUIET),)]
