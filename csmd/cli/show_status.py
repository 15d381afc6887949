"""What `csmd status` prints: alive, what it knows, what is amiss; values in, text on a console."""

from __future__ import annotations

from typing import Any

from csmd import text as texts
from csmd.cli import settings, show

#: Columns that the numbers of a project take beside its path.
PROJECT_NUMBERS = 42


def status(value: dict[str, Any]) -> None:
    """The daemon's state on one screen: alive, what it knows, what is amiss."""
    out = show.console()
    daemon, counts, worker, model = value["daemon"], value["counts"], value["worker"], value["model"]
    storage, spool = value["storage"], value["spool"]
    rows: list[tuple[str, str]] = [
        ("daemon", f"running, pid {daemon['pid']}, up {show.age(daemon['uptime_s'])}, {daemon.get('rss_mb', '?')} MB, csmd {value['version']}"),
        ("service", value.get("service", "detached") + (f": {note}" if (note := value.get("service_note", "")) else "")),
        ("knows", f"{counts['memories']} memories from {counts['turns']} turns, {counts['sessions']} sessions, {counts['projects']} projects"),
        ("hooks", _last_events(value["last_event"])),
        ("spool", "empty" if not spool["files"] else f"{spool['files']} events wait to be taken in"),
    ]  # fmt: skip
    if model["name"]:
        asleep = "asleep" if not worker["pid"] else f"pid {worker['pid']}, {worker.get('rss_mb', '?')} MB"
        waiting = f", {model['waiting']} texts wait" if model["waiting"] else ""
        rows.append(
            (
                "vectors",
                f"{counts['vectors']} by {model['name'].split('@')[0].split('/')[-1]}, worker {asleep}{waiting}",
            )
        )
    not_kept = value["counters"].get("turns not kept", 0)
    rows.append(
        (
            "storage",
            f"{show.size(storage['database_bytes'] + storage['wal_bytes'])} in {value['home']}"
            + (f"; {not_kept} turns not kept" if not_kept else ""),
        )
    )
    if value["transcripts"]:
        rows.append(("keeps", _kept(value["transcripts"])))
    if storage["backups"]:
        rows.append(
            (
                "backups",
                f"{storage['backups']}, {show.size(storage['backups_bytes'])}, the last of {show.when(storage['last_backup'])}",
            )
        )
    redacted = sum(amount for name, amount in value["counters"].items() if name.startswith("redacted "))
    amiss = [f"{amount} {name}" for name, amount in value["counters"].items() if name.startswith("bad ") and amount]
    rows.append(
        (
            "privacy",
            f"{redacted} secrets kept out"
            + _kinds(value["counters"])
            + (f"; quarantined: {', '.join(amiss)}" if amiss else ""),
        )
    )
    left_out = [f"{amount} {name}" for name, amount in value["excluded"].items() if amount]
    if left_out:
        rows.append(("excluded", f"{', '.join(left_out)} of projects that you left out"))
    old = (value.get("clients") or {}).get("kept_out_by", "")
    if texts.version_of(old):
        rows.append(("clients", f"Claude Code {old} is in use, which does not know {' and '.join(settings.NEWER)}"))
    for job in value["jobs"]:
        done = f" {job['done']}/{job['total']}" if job.get("total") else ""
        rows.append(("working", f"{job['kind']}: {job.get('step', job['state'])}{done}"))
    for alarm in value.get("alarms", []):
        show.labelled(out, "ALARM", f"{alarm['what']} ({alarm['do']})", style="bold red")
    if value.get("backfill"):
        done = value["backfill"]["sessions_done"]
        rows.append(("past", f"{show.backfill(value['backfill'])} to be taken in, {done} done, newest first"))
    for name, text in rows:
        show.labelled(out, name, text)
    for text in value["degraded"]:
        show.labelled(out, "amiss", text, style="yellow")
    if value["projects"]:
        out.print()
        show.table(
            out,
            [("project", "left"), ("sessions", "right"), ("memories", "right"), ("last turn", "left")],
            [
                [
                    show.shorten(row["root"], out.width - PROJECT_NUMBERS),
                    str(row["sessions"]),
                    str(row["memories"]),
                    show.when(row["last"]),
                ]
                for row in value["projects"][:10]
            ],
        )
        if len(value["projects"]) > 10:
            out.print(f"and {len(value['projects']) - 10} more (csmd status --json)")


def _kinds(counters: dict[str, int]) -> str:
    """The commonest kinds of what was redacted."""
    found = [
        (amount, name.removeprefix("redacted ")) for name, amount in counters.items() if name.startswith("redacted ")
    ]
    top = sorted(found, key=lambda row: (-row[0], row[1]))
    shown = ", ".join(f"{name} {amount}" for amount, name in top[:3])
    return f" ({shown}{', ...' if len(top) > 3 else ''})" if shown else ""


def _kept(value: dict[str, Any]) -> str:
    """How long the assistant keeps transcripts, and what csmd has beyond that."""
    days, others = value["days"], value["by_project"]
    usual = f"the assistant deletes transcripts after {days} days" if days else "the assistant keeps no transcripts"
    some = f" ({', '.join(f'{number} in {show.shorten(root, 30)}' for root, number in list(others.items())[:2])})"
    sessions = "1 session" if value["gone"] == 1 else f"{value['gone']} sessions"
    gone = f"csmd keeps {sessions} whose transcript is gone" if value["gone"] else "none that csmd knows is gone yet"
    return f"{usual}{some if others else ''}; {gone}"


def _last_events(last: dict[str, str]) -> str:
    if not last:
        return "no event yet; the first session after `csmd install` brings some"
    name, at = max(last.items(), key=lambda row: row[1])
    return f"last event {show.when(at)} ({name.replace('_', ' ')})"
