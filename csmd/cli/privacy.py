"""The verbs that leave something out or take it out: pause, forget, purge, scan, projects."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from typing import Any

import click

from csmd import client, exclusions
from csmd.cli import render
from csmd.cli.verb import ask, here, json_option, looking, out, person_is_there
from csmd.config import default_paths
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable
from csmd.exclusions import Pauses
from csmd.installer import foreign_files
from csmd.paths import Paths
from csmd.text.display import amount

#: Places that are shown one by one.
SHOWN = 20
#: Line numbers of one file that are shown.
LINES = 6


def show_forgotten(value: dict[str, Any]) -> None:
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


def show_planned(value: dict[str, Any], *, to_stderr: bool = False) -> None:
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


def show_purged(value: dict[str, Any]) -> None:
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


def show_lifted(value: dict[str, Any]) -> None:
    """Whether something purged is let in again."""
    if value["lifted"]:
        click.echo(f"{value['about']}: is let in again; what was removed does not come back by itself")
        return
    click.echo(f"nothing was lifted: {value['about']} was not purged")
    if value["what"] == "text":
        click.echo("give what the purge was of: the same words, whole and in order; of a memory, whose")
        click.echo("id went with it, the words it said; of a turn or session its whole id, and of a")
        click.echo("project its path")


def show_scanned(value: dict[str, Any]) -> None:
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


KINDS = ("memory", "turn", "session", "project", "text")


@click.command()
@click.argument("what", metavar="ID|WHAT")
@click.option("--purge", is_flag=True, help="Remove it from everything csmd holds.")
@click.option("--as", "kind", type=click.Choice(KINDS), default=None, help="What a purge is of; else it is found out.")
@click.option("--dry-run", is_flag=True, help="Show what a purge would remove.")
@click.option("--yes", is_flag=True, help="Do not ask before a purge.")
@click.option("--lift", is_flag=True, help="Let in again what was purged.")
@json_option
def forget(what: str, purge: bool, kind: str | None, dry_run: bool, yes: bool, lift: bool, as_json: bool) -> None:
    """Forget a memory for good. With --purge: a memory, turn, session, project or text (- asks for it) with all traces."""
    if not purge and not lift:
        if kind or dry_run or yes:
            raise click.UsageError("--as, --dry-run and --yes go with --purge")
        found = ask("csm_memory_delete", id=what, asking=here(None), by_person=person_is_there())
        out(found, as_json, show_forgotten)
        return
    what = click.prompt("what", hide_input=True) if what == "-" else what
    # What was purged is known no more, so that only its path can be lifted.
    named = looking(what)["project"] if kind == "project" and not lift else _absolute(what, kind)
    params = {"what": named, "kind": kind or ""}
    if lift:
        lifted = ask("csm_privacy_lift", **params, by_person=person_is_there())
        out(lifted, as_json, show_lifted)
        if not lifted["lifted"]:
            raise SystemExit(1)  # told why
        return
    by_person = person_is_there()
    if not by_person and not dry_run:
        raise CsmdError("only a person at a terminal can have csmd purge something", hint="type it in a terminal")
    if dry_run or not yes:
        looked = {**params, "dry_run": True, "asking": here(None), "by_person": by_person}
        planned = _work("csm_privacy_purge", looked)
        if dry_run:
            out(planned, as_json, show_planned)
            return
        show_planned(planned, to_stderr=as_json)
        click.confirm("Purge it from everything csmd holds? It cannot be undone.", abort=True, err=as_json)
    done = _work("csm_privacy_purge", {**params, "by_person": by_person})
    out(done, as_json, show_purged)
    if done["left"]:
        raise SystemExit(1)  # told why


def _absolute(what: str, kind: str | None) -> str:
    """A project's path as the daemon knows it; everything else as it was typed."""
    place = Path(what)
    named = kind == "project" or (kind is None and (place.is_absolute() or what.startswith((".", "~"))))
    place = place.expanduser() if named else place
    return str(place.resolve()) if kind == "project" or (named and place.is_dir()) else what


@click.command()
@click.option("--fix", is_flag=True, help="Take out what is found; backups that hold it are removed.")
@click.option("--transcripts", is_flag=True, help="Count what the assistant's own transcripts hold, too.")
@json_option
def scan(fix: bool, transcripts: bool, as_json: bool) -> None:
    """Look for secrets in what csmd holds, by the rules of today."""
    params = {"fix": fix, "transcripts": transcripts, "by_person": fix and person_is_there()}
    out(_work("csm_privacy_scan", params), as_json, show_scanned)


def _work(tool: str, params: dict[str, Any]) -> dict[str, Any]:
    with render.progress() as bar:
        return client.work(default_paths(), tool, params, watch=bar)


@click.command()
@click.option(
    "--for", "length", metavar="TIME", default="", help="How long, e.g. 30m, 2h or 1d; else until `csmd resume`."
)
@json_option
def pause(length: str, as_json: bool) -> None:
    """Capture nothing and tell nobody anything. What is said meanwhile stays left out, also later."""
    now = datetime.now(UTC)
    end = _iso(now + timedelta(seconds=exclusions.pause_seconds(length))) if length else ""
    with _changing(default_paths()) as (known, save):
        made = known.begun(_iso(now), end=end)
        save(made)
    on = made.current(_iso(now))
    value = {"paused": {"since": on[0] if on else "", "until": end}, "daemon": _told()}
    out(value, as_json, lambda shown: _paused(shown, length))


@click.command()
@json_option
def resume(as_json: bool) -> None:
    """End a pause. What is said from now on is captured again."""
    now = _iso(datetime.now(UTC))
    with _changing(default_paths()) as (known, save):
        on = known.current(now)
        if on:
            save(known.ended(now))
    value = {"paused": None, "since": on[0] if on else "", "daemon": _told()}
    out(value, as_json, lambda shown: _resumed(shown, now))


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextlib.contextmanager
def _changing(paths: Paths) -> Iterator[tuple[Pauses, Any]]:
    """The pauses so far and how to save others; two commands at once wait for each other."""
    if not paths.home.is_dir():
        raise CsmdError(f"csmd has no home yet at {paths.home}: there is nothing to pause", hint="csmd install")
    for folder in (paths.home, paths.run_dir):
        foreign_files.make_private(folder)
    lock = os.open(paths.run_dir / "pause.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield _read(paths.pauses), lambda made: _write(paths.pauses, made)
    finally:
        os.close(lock)


def _read(path: Path) -> Pauses:
    try:
        return exclusions.parse_pauses(path.read_bytes(), where=str(path))
    except FileNotFoundError:
        return Pauses()
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}", hint="make it readable for you") from error


def _write(path: Path, made: Pauses) -> None:
    try:
        foreign_files.write_whole(path, exclusions.written_pauses(made))
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}; nothing was changed", hint="make room on that disk") from error


def _told() -> bool:
    """Whether a daemon runs, and has read the pauses by now; one that does not answer reads them by itself."""
    try:
        ask("csm_runtime_pause")
    except (DaemonUnreachable, DaemonBusy):
        return False
    return True


def _paused(value: dict[str, Any], length: str) -> None:
    until = value["paused"]["until"]
    end = f"until {render.when(until)} ({length})" if until else "until `csmd resume`"
    console = render.console()
    render.print_text(console, f"paused {end}", style="bold")
    render.print_text(console, "Nothing that is said from now on is captured, and no session is told anything.")
    if until:
        render.print_text(console, "`csmd resume` ends it earlier.")
    render.print_text(
        console, "It stays left out afterwards, too: also when its transcript is read later.", style="dim"
    )
    if not value["daemon"]:
        render.print_text(console, "No daemon runs now; the next one keeps to it.", style="dim")


def _resumed(value: dict[str, Any], now: str) -> None:
    if not value["since"]:
        click.echo("csmd was not paused")
        return
    length = (datetime.fromisoformat(now) - datetime.fromisoformat(value["since"])).total_seconds()
    after = f"after {render.age(length)}: " if length > 0 else ""
    click.echo(f"resumed {after}what is said from now on is captured again")
    if not value["daemon"]:
        click.echo("no daemon runs now: csmd start")


dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be moved and change nothing.")
_WHY = {"moved": "was", "same place": "was", "named": "also", "worktree": "worktree"}


def _word(word: str) -> str:
    """A path made absolute; an id, a name or a title (`clients/shop`) as it is: of a path it has no mark."""
    path = Path(word).expanduser()
    is_path = word.startswith(("/", "~", "./", "../")) or word in (".", "..") or ("/" in word and path.exists())
    return str(path.resolve()) if is_path else word


@click.group()
def project() -> None:
    """Projects: what counts to which, and walls between them."""


@project.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List projects and workspaces."""
    out(ask("csm_project_list"), as_json, show_projects)


@project.command()
@click.argument("place", metavar="PATH")
@click.argument("other", required=False, default="")
@click.option("--remove", is_flag=True, help="PATH is a project of its own again.")
@json_option
def alias(place: str, other: str, remove: bool, as_json: bool) -> None:
    """Have PATH count to project OTHER from now on. OTHER is a path, an id or a name."""
    if bool(other) == remove:
        raise click.UsageError("name either OTHER or --remove")
    found = ask("csm_project_alias", place=_path(place), other=_word(other), remove=remove, by_person=person_is_there())
    said = "is a project of its own again" if remove else f"counts to {found['project']}"
    out(found, as_json, lambda value: click.echo(f"{value['path']} {said}"))


@project.command()
@click.argument("source", metavar="A")
@click.argument("into", metavar="B")
@dry_run_option
@json_option
def merge(source: str, into: str, dry_run: bool, as_json: bool) -> None:
    """Bring all of project A into B. `split B A` takes it out again."""
    found = ask(
        "csm_project_merge", source=_word(source), into=_word(into), dry_run=dry_run, by_person=person_is_there()
    )
    out(found, as_json, lambda value: _moved(value, f"from {source} to {into}"))


@project.command()
@click.argument("whole", metavar="A")
@click.argument("place", metavar="PATH")
@dry_run_option
@json_option
def split(whole: str, place: str, dry_run: bool, as_json: bool) -> None:
    """Take PATH out of project A. It is a directory in it, or a project that was merged into it."""
    found = ask(
        "csm_project_split", whole=_word(whole), place=_path(place), dry_run=dry_run, by_person=person_is_there()
    )
    out(found, as_json, lambda value: _moved(value, f"from {whole} to {place}"))


@project.command()
@click.argument("name")
@click.argument("places", metavar="PATH...", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Take these projects out of it.")
@json_option
def workspace(name: str, places: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Put a wall around projects. Nothing said there, or below their directories, is seen from elsewhere."""
    words = "\n".join(_word(place) for place in places)
    found = ask("csm_project_workspace", name=name, places=words, remove=remove, by_person=person_is_there())
    out(found, as_json, _walled)


def _path(place: str) -> str:
    return str(Path(place).expanduser().resolve())


def _moved(value: dict[str, Any], way: str) -> None:
    verb = "would be moved" if value["dry_run"] else "moved"
    parts = [amount(value[kind], kind[:-1]) for kind in ("sessions", "turns")]
    parts.append(amount(value["memories"], "memory"))
    click.echo(f"{verb} {way}: {', '.join(parts)}")
    if value["twins"]:
        click.echo(f"{amount(value['twins'], 'memory')} said the same on both sides")


def _walled(value: dict[str, Any]) -> None:
    for root in value["projects"]:
        click.echo(f"{root} {'is out of' if value['removed'] else 'is in'} the workspace {value['workspace']}")
    if value["memories"]:
        moved = amount(value["memories"], "memory")
        click.echo(f"{moved} that held everywhere and came from there only: inside now")


def show_projects(value: dict[str, Any]) -> None:
    """Each project with its numbers in one line; below it where it is, and what else there is to say of it."""
    console = render.console()
    if not value["projects"]:
        console.print("no projects yet; they come with sessions and `csmd import`")
        return
    for row in value["projects"]:
        numbers = f"{amount(row['sessions'], 'session')}, {amount(row['memories'], 'memory')}"
        head = (
            f"{row['name']}  "
            + ("(gone)  " if row["gone"] else "")
            + (f"[{row['workspace']}]" * bool(row["workspace"]))
        )
        room = console.width - len(numbers) - 2
        console.print(f"{render.shorten(head.rstrip(), room):<{room}}  {numbers}", style="bold", soft_wrap=True)
        for name, text in _about(row):
            render.labelled(console, name, text)
    for row in value["workspaces"]:
        console.print(
            f"workspace {row['name']}: {amount(row['projects'], 'project')}, "
            f"{amount(row['memories'], 'memory')} for all of them"
        )


def _about(row: dict[str, Any]) -> list[tuple[str, str]]:
    kind = {"submodule": ", a submodule", "part": f", a part of {row['part_of']}"}.get(row["kind"], "")
    about = [
        ("path", f"{_tilde(row['root'])}{kind}"),
        ("last", f"{render.when(row['last'])}, id {row['id']}"),
        ("left out", ".csmd-off lies there: nothing that is said there is captured" if row["off"] else ""),
        ("remote", row["remote"]),
        *((_WHY[other["why"]], _tilde(other["path"])) for other in row["aliases"]),
        *(("merged", _tilde(path)) for path in row["merged"]),
    ]
    return [(f"  {name}", text) for name, text in about if text]


def _tilde(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + "/") else path


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    forget,
    scan,
    pause,
    resume,
    project,
)
