"""What people see of purges and scans, at 80 columns: where something stands, never a secret itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import click

from csmd.text import amount

#: Places that are shown one by one.
SHOWN = 20
#: Line numbers of one file that are shown.
LINES = 6


def forgotten(value: dict[str, Any]) -> None:
    """What is forgotten, where, and where the same sentence is still remembered."""
    say = _to(False)
    say(f"forgotten: {value['text']}")
    say(f"kept out {_where(value['project'])}, until you say it anew")
    if value["elsewhere"]:
        say("the same sentence is still remembered, and stays so:")
    for one in value["elsewhere"][:SHOWN]:
        say(f"  {one['id']}  {_where(one['project'])}")
    if len(value["elsewhere"]) > SHOWN:
        say(f"  and {len(value['elsewhere']) - SHOWN} more (--json)")


def planned(value: dict[str, Any], *, to_stderr: bool = False) -> None:
    """What a purge would remove, in which projects, and what becomes of the backups."""
    say = _to(to_stderr)
    say(f"to be purged: {value['about']}")
    if not value["counts"]:
        say("  csmd holds nothing of it")
    for name, number in value["counts"].items():
        say(f"  {number:>6}  {name}")
    if value["places"]:
        say("wherever it stands, in every project:")
    for one in value["places"][:SHOWN]:
        found = [amount(one[name], what) for name, what in (("memories", "memory"), ("turns", "turn")) if one[name]]
        say(f"  {' and '.join(found)} {_where(one['project'])}")
    if len(value["places"]) > SHOWN:
        say(f"  and {len(value['places']) - SHOWN} more projects (--json)")
    if value["backups"]:
        copies = amount(value["backups"], "copy")
        which = (
            f"of {copies} of the database those that hold it"
            if value["what"] == "text"
            else f"{copies} of the database"
        )
        say(f"backups go with it: {which}")
    _kept_out(value, say)
    _hosts(value, say)


def _where(project: str) -> str:
    return f"in {PurePath(project).name or project}" if project else "everywhere"


def purged(value: dict[str, Any]) -> None:
    """What a purge has done, and what is left."""
    say = _to(False)
    say(f"purged: {value['about']}")
    for name, number in value["counts"].items():
        say(f"  {number:>6}  {name}")
    for verb, paths in (("removed", value["files_removed"]), ("rewritten", value["files_rewritten"])):
        for path in paths:
            say(f"{verb}: {path}")
    for found in value["left"]:
        needed = " (csmd needs it to take its hooks out again)" if found["path"] in value["files_kept"] else ""
        say(f"still in: {found['path']}, {amount(found['count'], 'time')}{needed}")
    if not value["left"]:
        say("nothing of it is left in csmd's files")
    _kept_out(value, say)
    _hosts(value, say)


def _kept_out(value: dict[str, Any], say: Callable[[str], None]) -> None:
    """What a purge of a text does to what is said later, which nobody expects of something that removes."""
    if value["what"] == "text":
        say("it is kept out from then on: what you say with these words later stands")
        say("as [purged] and makes no memory, until `csmd forget --lift` with the same words")


def lifted(value: dict[str, Any]) -> None:
    """Whether something purged is let in again."""
    if value["lifted"]:
        click.echo(f"{value['about']}: is let in again; what was removed does not come back by itself")
        return
    click.echo(f"nothing was lifted: {value['about']} was not purged")
    if value["what"] == "text":
        click.echo("give what the purge was of: the same words, whole and in order; of a memory, whose")
        click.echo("id went with it, the words it said; of a turn or session its whole id, and of a")
        click.echo("project its path")


def scanned(value: dict[str, Any]) -> None:
    """The secrets that a scan has found, by kind and by place."""
    say = _to(False)
    if not value["secrets"]:
        say(f"no secret found in what csmd holds, {value['took_s']:.1f} s")
    else:
        kinds = ", ".join(f"{number} {kind}" for kind, number in value["kinds"].items())
        say(f"{amount(value['secrets'], 'secret')}: {kinds}")
    for found in value["found"][:SHOWN]:
        where = found.get("file") or f"{found['table']}.{found['column']} {found['id'][:36]}"
        what = (
            f"{found['preview']} {amount(found['length'], 'character')}"
            if found["length"]
            else amount(found["count"], "time")
        )
        say(f"  {found['kind']}: {what}, in {where}")
    rest = max(0, len(value["found"]) - SHOWN) + value["more"]
    if rest:
        say(f"  and {rest} more (csmd scan --json)")
    if value["secrets"]:
        say(f"{amount(value['fixed'], 'place')} cleaned" if value["fixed"] else "`csmd scan --fix` takes them out")
    for found in value["transcripts"]:
        say(f"{found['secrets']} in the assistant's {found['path']}")
    for reason in value["degraded"]:
        say(f"degraded: {reason}")


def _hosts(value: dict[str, Any], say: Callable[[str], None]) -> None:
    if value["hosts"]:
        say("the assistant's own files hold it, too; csmd does not change them:")
    for found in value["hosts"][:SHOWN]:
        numbers = ", ".join(str(number) for number in found["lines"][:LINES])
        say(f"  {found['path']}, line {numbers}{', …' if found['count'] > LINES else ''}")
    if len(value["hosts"]) > SHOWN:
        say(f"  and {len(value['hosts']) - SHOWN} more (--json)")


def _to(stderr: bool) -> Callable[[str], None]:
    return lambda line: click.echo(line, err=stderr)
