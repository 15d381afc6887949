"""The command that shows whether everything works, and what is known."""

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

#: The verbs of this module.
VERBS = verb.Verbs()


#: (label, text, style); a row without a label continues the row before.
Row = tuple[str, str, str]
LABEL = 11
MAX_PROJECTS = 5
#: Columns of the bar of a live session's context.
BAR = 10
#: Fewest columns of a terminal that shows such bars.
ROOM_FOR_BARS = 72
OLD_DAYS = 3
#: Defaults of fields that an older daemon, or one that cannot read its database, leaves out.
DEFAULTS: Mapping[str, Any] = {
    "at": "", "service": "", "socket": "", "service_note": "", "clients": None, "hosts": [], "alarms": [],
    "encrypted": False, "paused": None, "backfill": None, "off_mark": "", "live": [], "last_read": "", "pages": None,
    "dream": None, "provider": None, "team": None,
    "memories": {"by_gate": {}, "by_tier": {}},
}  # fmt: skip
TIERS = ("session", "daily", "durable", "archive")
ALARM = "bold red"
WARNING = "yellow"
QUIET = "dim"
EVERY_S = 2.0


@VERBS.action("status", verb.flag("--watch", help="Draw it anew every 2 s, until ^C."))
def status(watch: bool, as_json: bool) -> None:
    """Show whether everything works, and what is known."""
    paths, home = default_paths(), str(user_home())
    if not watch:
        verb.print_answer(fetch_status(paths), as_json, show_status, home=home)
        return
    if as_json or not sys.stdout.isatty():
        raise click.UsageError("--watch draws on a terminal; for a program: `csmd status --json`, again and again")
    redraw(lambda: show_status(fetch_status(paths), home=home))


def fetch_status(paths: Paths) -> dict[str, Any]:
    """The daemon's state, with problems that only the command line sees."""
    value: dict[str, Any] = verb.ask("csm_runtime_status")
    value["degraded"] += plan.find_problems(paths)
    value["off_mark"] = _off_mark()
    value["service_note"] = service.lifetime_note(paths, value.get("service", ""))
    if value["version"] != csmd.__version__:
        is_newer = (display.parse_version(value["version"]) or ()) > (display.parse_version(csmd.__version__) or ())
        helps = "start the command anew" if is_newer else "csmd upgrade"
        value["degraded"].append(f"daemon: it is csmd {value['version']}, this command {csmd.__version__}: {helps}")
    return value


def _off_mark() -> str:
    """The path of the `.csmd-off` that leaves this directory out; "" for none, or if the directory is gone."""
    try:
        return foreign_files.off_mark(verb.resolve_project(None))
    except CsmdError:
        return ""


def show_status(value: dict[str, Any], *, home: str = "") -> Screen:
    """The screen; `home` is the user's, shown as `~`."""
    value = {**DEFAULTS, **value}
    yield bold(plain(headline(value)))
    for block in (_problems(value), _processes(value, home), _intake(value), _knowledge(value, home)):
        yield from render.block("", (_line(*row) for row in block))
    for table in (_live(value), _projects(value, home)):
        yield from render.block("", table)


def _line(label: str, text: str, style: str) -> Line:
    return Line(plain(text, keep_glue=True), head=f"{label:<{LABEL}}", head_style=QUIET, style=style)


def headline(value: dict[str, Any]) -> str:
    """One sentence: csmd works, and what it records and knows; or what needs attention."""
    value = {**DEFAULTS, **value}
    pages, paused = value["pages"] or {"restored": [], "unread": []}, value["paused"]
    pages_amiss = len(pages["restored"]) + len(pages["unread"])
    until = ages.when(paused["until"]) if paused and paused.get("until") else "you resume it"
    trouble = render.join(
        value["alarms"] and many(len(value["alarms"]), "alarm"),
        value["degraded"] and f"{many(len(value['degraded']), 'part')} degraded",
        pages_amiss and f"{many(pages_amiss, 'page')} to look at",
        paused and f"paused until {until}",
    )
    if trouble:
        return f"Paused until {until}" if trouble == f"paused until {until}" else f"Needs a look: {trouble}"
    last = (value["dream"] or {}).get("last")
    return "Healthy: " + render.join(
        render.recording_state(value),
        last and f"last dream {ago(last['begun_at'], value['at'])}",
    )


def _problems(value: dict[str, Any]) -> Iterator[Row]:
    for alarm in value["alarms"]:
        since = f" (since {ago(alarm['since'], value['at'])})" if alarm.get("since") else ""
        yield "alarm", f"{alarm['what']}{since}", ALARM
        if alarm.get("do"):
            yield "", f"try: {alarm['do']}", ""
    if value["paused"]:
        yield "paused", "nothing is captured, and no session is told anything", WARNING
        by = f" by {value['paused']['by']}" if value["paused"].get("by") else ""
        yield "", f"since {ages.when(value['paused']['since'])}{by}", ""
        yield "", "try: csmd resume", ""
    if value["off_mark"]:
        yield "left out", f"{value['off_mark']}: nothing that is said in this directory is captured", WARNING
    yield from (("degraded", what, WARNING) for what in value["degraded"])
    yield from _pages(value["pages"]) if value["pages"] else ()


def _pages(pages: Mapping[str, Any]) -> Iterator[Row]:
    """Edits of pages that csmd could not read, waits to read, or asks about."""
    for page in pages["restored"]:
        loss = f"{page['page']} lost too much at once: nothing is forgotten, it stands whole in {page['whole']}"
        yield "pages", loss, WARNING
        yield "", "try: put that back in its place; or delete it, if you meant it", ""
    for page in pages["unread"]:
        yield "pages", f"{page['page']} is neither read nor written: {page['why']}", WARNING
    if copies := pages["copies"]:
        number = many(len(copies), "copy")
        yield "pages", f"{number} that a sync service or an editor made, not read: {_first_two(copies)}", WARNING
    if pages["edited"]:
        yield "pages", f"edited and to be read in a minute: {_first_two(pages['edited'])}", ""
    if removed := sum(page["lines"] for page in pages["asked"]):
        names = _first_two([page["page"] for page in pages["asked"]])
        lines = f"{many(removed, 'line')} that {'was' if removed == 1 else 'were'}"
        yield "pages", f"csmd review asks about {lines} removed from {names}", ""


def _first_two(names: list[str]) -> str:
    return display.join_names([*names[:2], *([f"{len(names) - 2} more"] if len(names) > 2 else [])])


def _processes(value: dict[str, Any], home: str) -> Iterator[Row]:
    daemon, worker = value["daemon"], value["worker"]
    by = {"": "", "detached": ", detached"}.get(value["service"], f", under {value['service']}")
    yield (
        "daemon",
        f"csmd {value['version']}, running for {ages.age(daemon['uptime_s'])}, pid {daemon['pid']}{by}",
        "",
    )
    if value["service_note"]:
        yield "", value["service_note"], QUIET
    if "rss_mb" in daemon:
        asleep = f"; {glue('worker asleep')}" if value["model"]["name"] else ""
        yield "uses", _cost(daemon) + (f"; worker {_cost(worker)}" if worker.get("rss_mb") else asleep), ""
    if value["socket"]:
        yield "socket", tilde(value["socket"], home), ""


#: State of an assistant's hooks -> its words.
HOOKS = {
    "there": "hooks on", "gone": "hooks not registered (csmd install)", "off": "hooks off in its settings",
    "untrusted": "hooks not trusted yet (start codex, choose Trust all)", "unknown": "hooks unknown",
}  # fmt: skip


def _host(host: Mapping[str, Any], now: str) -> str:
    """How much an assistant brought, when it was heard last, and whether its hooks run."""
    heard = f"last event {ago(host['last_event'], now)}" if host["last_event"] else "no event yet"
    amounts = (many(host["sessions"], "session"), many(host["turns"], "turn"))
    return f"{host['title']}: {render.join(*amounts, heard, HOOKS[host['hooks']])}"


def _cost(process: dict[str, Any]) -> str:
    """Memory, and the share of a core, lately and since the process began."""
    lately, overall = (_percent(process.get(key)) for key in ("cpu_recent_percent", "cpu_percent"))
    cpu = f", {lately} of a core" if lately else ""
    return f"{process['rss_mb']} MB{cpu}" + (f" ({overall} overall)" if lately and overall != lately else "")


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return "0 %" if share < 0.01 else f"{share:.2f} %" if share < 1 else f"{share:.0f} %"


def _intake(value: dict[str, Any]) -> Iterator[Row]:
    now, spool = value["at"], value["spool"]
    sources = value["last_event"] | ({"transcript": value["last_read"]} if value["last_read"] else {})
    latest = sorted(sources.items(), key=lambda row: (row[1], row[0]), reverse=True)
    heard = ", ".join(glue(f"{name.replace('_', ' ')} {ago(at, now)}") for name, at in latest)
    if heard or value["transcripts"] is not None:  # else it is unknown
        yield "heard", heard or "nothing yet; the first session after `csmd install` brings some", ""
    # For one assistant the other lines say as much.
    for host in value["hosts"] if len(value["hosts"]) > 1 else ():
        yield "hosts", _host(host, now), "" if host["hooks"] == "there" else WARNING
    if spool["files"]:
        since = f", the oldest from {ago(spool['oldest'], now)}" if spool.get("oldest") else ""
        waiting = f"{many(spool['files'], 'event')} {'waits' if spool['files'] == 1 else 'wait'}"
        plain_text = "; unencrypted until then" if value["encrypted"] else ""
        yield "spool", f"{waiting} to be taken in{since}{plain_text}", WARNING
    old = (value["clients"] or {}).get("kept_out_by", "")
    if display.parse_version(old):
        unknown = display.join_names(tuple(CLAUDE.newer))
        yield "clients", f"Claude Code {old} is in use, which does not know {unknown}", ""
    if backfill := value["backfill"]:
        done = backfill.get("sessions_done", 0)
        to_read = f", {render.size(backfill['bytes_left'])} left" if backfill.get("bytes_left") else ""
        eta = f", about {ages.age(backfill['eta_s'])}" if backfill.get("eta_s") else ""
        yield "back-fill", f"{done:,} of {many(done + backfill['sessions_left'], 'past session')} in{to_read}{eta}", ""
    for job in value["jobs"]:
        done = f" {job['done']:,} of {job['total']:,}" if job.get("total") else ""
        yield "working", f"{job['kind']}: {job.get('step', job['state'])}{done}", ""


def _knowledge(value: dict[str, Any], home: str) -> Iterator[Row]:
    counts, model, counters = value["counts"], value["model"], value["counters"]
    if counts["sessions"]:
        where = glue(f"{counts['sessions']:,} in {many(counts['projects'], 'project')}")
        agents = counts.get("agents") and glue(many(counts["agents"], "sub-agent"))
        yield "sessions", render.join(where, agents, glue(many(counts["turns"], "turn"))), ""
    yield from _memories(counts["memories"], **value["memories"])
    if value.get("told", {}).get("judged"):
        yield "told", render.week_in_words(value["told"]).removeprefix("told "), ""
    if model["name"]:
        waiting = f", {many(model['waiting'], 'text')} to go" if model["waiting"] else ""
        yield "vectors", f"{counts['vectors']:,} by {model['name'].split('@')[0].split('/')[-1]}{waiting}", ""
    else:
        fetch = render.model_fetch(model["suggested"]).replace("`", "")
        yield "search", f"by words; {fetch} adds search by meaning", ""
    if value["dream"]:
        yield from _dream(value["dream"], value["at"])
    if value["provider"]:
        from csmd.cli import provider  # imported late, as most installations have no provider

        yield from provider.rows_of_status(value["provider"], value["at"])
    if value["team"]:
        from csmd.cli import team

        yield from team.rows_of_status(value["team"], value["at"])
    yield "storage", _storage(value["storage"], value, home), ""
    if value["transcripts"]:
        yield "kept", _retention(value["transcripts"], home), ""
    if kinds := {
        name.removeprefix("redacted "): n for name, n in counters.items() if name.startswith("redacted ") and n
    }:
        yield "privacy", f"{many(sum(kinds.values()), 'secret')} kept out ({_commonest(kinds)})", ""
    if any((value.get("corrected") or {}).values()):
        yield "corrected", corrected(value["corrected"]), ""
    if bad := [many(n, name[4:].removesuffix("s")) for name, n in counters.items() if name.startswith("bad ") and n]:
        yield "unreadable", f"{', '.join(bad)}; noted in the quarantine", ""
    if excluded := [many(n, name.removesuffix("s")) for name, n in value["excluded"].items() if n]:
        yield "excluded", f"{', '.join(excluded)} of projects that you left out", ""


def corrected(counts: dict[str, int]) -> str:
    """What the second look at who spoke in older sessions has changed."""
    changed = f"{many(counts['prompts'], 'prompt')} of older sessions were not the user's"
    if counts["lowered"] or counts["archived"]:
        changed += f"; {many(counts['lowered'], 'memory')} no longer counted as yours, {counts['archived']:,} archived"
    return changed + (f"; {many(counts['left'], 'prompt')} still to be looked at" if counts["left"] else "")


def _memories(total: int, by_gate: dict[str, int], by_tier: dict[str, int]) -> Iterator[Row]:
    gates = sorted(by_gate, key=lambda gate: (-GATE_PRIORITY.get(gate, 0), gate))  # type: ignore[call-overload]
    kinds = ", ".join(glue(f"{by_gate[gate]:,} {gate}") for gate in gates if by_gate[gate])
    if total:
        yield "memories", f"{total:,}{f': {kinds}' if kinds else ''}", ""
    if tiers := [tier for tier in (*TIERS, *sorted(set(by_tier) - set(TIERS))) if by_tier.get(tier)]:
        yield "", f"by tier: {', '.join(glue(f'{by_tier[tier]:,} {tier}') for tier in tiers)}", ""


def _dream(value: dict[str, Any], now: str) -> Iterator[tuple[str, str, str]]:
    since = f"; the last {glue(ago(value['last']['begun_at'], now))}" if value["last"] else ""
    yield "dream", render.dream_state(value) + since, ""
    if value["latest"] and value["latest"]["state"] == "failed":
        yield "", f"the latest failed: {value['latest']['error']}", "yellow"


def _storage(storage: dict[str, Any], value: dict[str, Any], home: str) -> str:
    text = f"{render.size(storage['database_bytes'] + storage['wal_bytes'])} in {tilde(value['home'], home)}"
    growth = storage.get("growth") or {}
    if daily := growth.get("bytes_per_day"):
        text += ", " + glue(f"{'+' if daily > 0 else '-'}{render.size(abs(daily))}/day, {many(growth['days'], 'day')}")
    if storage.get("backups"):
        last = ago(storage["last_backup"], value["at"])
        text += f"; {glue(many(storage['backups'], 'backup'))}{f', the last {glue(last)}' if _is_old(storage['last_backup'], value['at']) else ''}"
    not_kept = value["counters"].get("turns not kept", 0)
    return text + (f"; {many(not_kept, 'turn')} not kept" if not_kept else "")


def _is_old(stamp: str, now: str) -> bool:
    """Whether a stored time is OLD_DAYS or more before `now`; a daily backup is not worth showing."""
    return ages.seconds_between(stamp, now) >= OLD_DAYS * ages.DAY_S


def _retention(value: dict[str, Any], home: str) -> str:
    """How long the assistant keeps transcripts, and how many more sessions csmd has."""
    usual = f"{many(value['days'], 'day')} of transcripts" if value["days"] else "no transcripts"
    others = list(value["by_project"].items())[:2]
    elsewhere = ", ".join(f"{number:,} in {shorten(tilde(root, home), 30, end=True)}" for root, number in others)
    beyond = f"; by csmd {glue(many(value['gone'], 'session'))} more" if value["gone"] else ""
    return f"by the assistant {usual}{f' ({elsewhere})' if elsewhere else ''}{beyond}"


def _commonest(kinds: dict[str, int]) -> str:
    rows = sorted(kinds.items(), key=lambda row: (-row[1], row[0]))
    return f"{', '.join(f'{name} {n:,}' for name, n in rows[:3])}{', ...' if len(rows) > 3 else ''}"


def _live(value: dict[str, Any]) -> Screen:
    """Live sessions, and how full the context of each is."""
    rows = []
    for live in value["live"]:
        used, window = live["tokens"], max(live["window"], 1)
        full = min(used / window, 1.0)
        bar = f"[{'=' * round(full * BAR):.<{BAR}}] {live['bracket']}"
        context = [bar, render.percent(full), f"{used:,} of {window:,}"] if used else ["", "", "not known yet"]
        name = last_part(live["project"])
        rows.append(
            [plain(name) or display.shorten_session_id(live["session"]), *context, ago(live["last"], value["at"])]
        )
    if render.width() < ROOM_FOR_BARS:
        return render.table("live||tokens|last turn", "<>><", [[row[0], *row[2:]] for row in rows], least=8)
    return render.table("live|context||tokens|last turn", "<<>><", rows, least=8)


def _projects(value: dict[str, Any], home: str) -> Screen:
    rows = [
        [tilde(row["root"], home), f"{row['sessions']:,}", f"{row['memories']:,}", ago(row["last"], value["at"])]
        for row in value["projects"]
    ]
    yield from render.table("project|sessions|memories|last turn", "<>><", rows[:MAX_PROJECTS], least=8)
    if len(rows) > MAX_PROJECTS:
        yield dim(shorten(f"and {len(rows) - MAX_PROJECTS:,} more: csmd project list", render.width()))


def redraw(draw: Callable[[], Screen]) -> None:
    """Draws a screen every 2 s, cut to the terminal's height; while it fails, why. Ends with ^C."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, emoji=False, markup=False)
    screen: list[Line | str] = []
    with contextlib.suppress(KeyboardInterrupt), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                shown = screen = list(draw())
            except CsmdError as error:
                shown = [warning(f"csmd: {error.what}"), Line(error.hint, head="  try: ")]
            lines = _within(list(render.lay_out(shown, console.width)), console.size)
            live.update(Group(*(Text.assemble(*parts) for parts in lines)), refresh=True)
            time.sleep(EVERY_S)
    render.show(screen)


def _within(lines: list[render.Parts], terminal: tuple[int, int]) -> list[render.Parts]:
    """The lines that fit in a terminal's columns and lines; where some do not, the last line says how many."""
    columns, height = terminal
    if len(lines) <= height:
        return lines
    left = f"... and {len(lines) - height + 1} more lines: enlarge the window to see them, or csmd status"
    return [*lines[: height - 1], ((shorten(left, columns), QUIET),)]
