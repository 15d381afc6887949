"""Commands that leave out or remove: pause, forget, purge, scan, projects."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from csmd import exclusions
from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, bold, dim, pair, tilde
from csmd.config import default_paths
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable
from csmd.exclusions import Pauses
from csmd.installer import foreign_files, plan
from csmd.paths import is_directory, is_there
from csmd.text import ages
from csmd.text.ages import when
from csmd.text.display import amount, squeeze

#: The verbs of this module.
VERBS = verb.Verbs()
#: Places shown of a list.
SHOWN = 20
#: Line numbers shown of one file.
LINES = 6


def _where(project: str) -> str:
    return f"in {Path(project).name or project}" if project else "everywhere"


def _ask(tool: str, **params: Any) -> Any:
    """Asks the daemon for something that only a person may have it do."""
    return verb.ask(tool, by_person=verb.is_interactive(), **params)


def _counted(value: dict[str, Any], **nouns: str) -> list[str]:
    """Numbers of a value with their nouns: `2 memories`."""
    return [amount(value[name], noun) for name, noun in nouns.items()]


def _listed(rows: Sequence[Any], line: Callable[[Any], str], more: str = "more") -> Screen:
    """The first rows, then how many more there are."""
    yield from (f"  {line(row)}" for row in rows[:SHOWN])
    if len(rows) > SHOWN:
        yield f"  and {len(rows) - SHOWN} {more} (--json)"


# --- forget, purge, scan


def show_forgotten(value: dict[str, Any]) -> Screen:
    """The forgotten memory, its scope, and where the same sentence is still remembered."""
    yield Line(squeeze(value["text"]), head="forgotten: ")
    yield f"kept out {_where(value['project'])}, until you say it anew"
    if value.get("team"):
        yield OFF_THE_SERVER
    if value["elsewhere"]:
        yield "the same sentence is still remembered, and stays so:"
    yield from _listed(value["elsewhere"], lambda row: f"{row['id']}  {_where(row['project'])}")


@render.raw
def show_planned(value: dict[str, Any]) -> Screen:
    """What a purge would remove, in which projects, and from which backups."""
    yield f"to be purged: {value['about']}"
    if not value["counts"]:
        yield "  csmd holds nothing of it"
    yield from (f"  {number:>6}  {name}" for name, number in value["counts"].items())
    if value["places"]:
        yield "wherever it stands, in every project:"
    yield from _listed(value["places"], _place, "more projects")
    if value["backups"]:
        copies = f"{amount(value['backups'], 'copy')} of the database"
        yield f"backups go with it: {f'of {copies} those that hold it' if value['what'] == 'text' else copies}"
    yield from _afterwards(value)


def _place(place: dict[str, Any]) -> str:
    nouns = {name: noun for name, noun in (("memories", "memory"), ("turns", "turn")) if place[name]}
    return f"{' and '.join(_counted(place, **nouns))} {_where(place['project'])}"


@render.raw
def show_purged(value: dict[str, Any]) -> Screen:
    """The result of a purge, and what is left."""
    yield f"purged: {value['about']}"
    yield from (f"  {number:>6}  {name}" for name, number in value["counts"].items())
    for action in ("removed", "rewritten"):
        yield from (f"{action}: {path}" for path in value[f"files_{action}"])
    for file in value["left"]:
        needed = " (csmd needs it to take its hooks out again)" if file["path"] in value["files_kept"] else ""
        yield f"still in: {file['path']}, {amount(file['count'], 'time')}{needed}"
    if not value["left"]:
        yield "nothing of it is left in csmd's files"
    if value.get("team"):
        yield OFF_THE_SERVER
    yield from _afterwards(value)


#: What becomes of something forgotten that was shared.
OFF_THE_SERVER = (
    "what was shared of it is taken off the team's server at the next exchange, and colleagues' homes remove theirs; "
    "out of reach: that server's write-ahead log, replicas and backups, and backups of colleagues' homes"
)


def _afterwards(value: dict[str, Any]) -> Screen:
    """What a purge does to later text, which is easily overlooked, and files that still hold it."""
    if value["what"] == "text":
        yield "it is kept out from then on: what you say with these words later stands"
        yield "as [purged] and makes no memory, until `csmd forget --lift` with the same words"
    if value["hosts"]:
        yield "the assistant's own files hold it, too; csmd does not change them:"
    yield from _listed(value["hosts"], _numbered)


def _numbered(file: dict[str, Any]) -> str:
    numbers = ", ".join(map(str, file["lines"][:LINES]))
    return f"{file['path']}, line {numbers}{', …' if file['count'] > LINES else ''}"


@render.raw
def show_readmitted(value: dict[str, Any]) -> Screen:
    """Whether something purged is let in again."""
    if value["lifted"]:
        yield f"{value['about']}: is let in again; what was removed does not come back by itself"
        return
    yield f"nothing was lifted: {value['about']} was not purged"
    if value["what"] == "text":
        yield "give what the purge was of: the same words, whole and in order; of a memory, whose"
        yield "id went with it, the words it said; of a turn or session its whole id, and of a"
        yield "project its path"


@VERBS.tool(
    "scan", "csm_privacy_scan", verb.flag("--fix", help="Take out what is found; backups that hold it are removed."),
    verb.flag("--transcripts", help="Count what the assistant's own transcripts hold, too."),
    sends_by_person=True, scope="none", is_job=True,
)  # fmt: skip
@render.raw
def show_scanned(value: dict[str, Any]) -> Screen:
    """Look for secrets in what csmd holds, by the rules of today."""
    kinds = ", ".join(f"{number} {kind}" for kind, number in value["kinds"].items())
    none = f"no secret found in what csmd holds, {value['took_s']:.1f} s"
    yield f"{amount(value['secrets'], 'secret')}: {kinds}" if value["secrets"] else none
    for secret in value["found"][:SHOWN]:
        place = secret.get("file") or f"{secret['table']}.{secret['column']} {secret['id'][:36]}"
        length = f"{secret['preview']} {amount(secret['length'], 'character')}" if secret["length"] else ""
        yield f"  {secret['kind']}: {length or amount(secret['count'], 'time')}, in {place}"
    rest = max(0, len(value["found"]) - SHOWN) + value["more"]
    if rest:
        yield f"  and {rest} more (csmd scan --json)"
    if value["secrets"]:
        yield f"{amount(value['fixed'], 'place')} cleaned" if value["fixed"] else "`csmd scan --fix` takes them out"
    yield from (f"{file['secrets']} in the assistant's {file['path']}" for file in value["transcripts"])
    yield from (f"degraded: {reason}" for reason in value["degraded"])


@VERBS.action(
    "forget", verb.argument("what", "ID|WHAT"), verb.flag("--purge", help="Remove it from everything csmd holds."),
    verb.option(
        "--as", "kind", type=click.Choice(("memory", "turn", "session", "project", "text")), default=None,
        help="What a purge is of; else it is found out.",
    ),
    verb.flag("--dry-run", help="Show what a purge would remove."),
    verb.yes("Do not ask, which --purge and --lift do."), verb.flag("--lift", help="Let in again what was purged."),
)  # fmt: skip
def forget(what: str, purge: bool, kind: str | None, dry_run: bool, yes: bool, lift: bool, as_json: bool) -> None:
    """Forget a memory for good. With --purge: a memory, turn, session, project or text (- asks for it) with all traces."""
    by_person = verb.is_interactive()
    if not purge and not lift:
        if kind or dry_run:
            raise click.UsageError("--as and --dry-run go with --purge")
        verb.print_answer(
            _ask("csm_memory_delete", id=what, asking=verb.resolve_project(None)), as_json, show_forgotten
        )
        return
    what = click.prompt("what", hide_input=True) if what == "-" else what
    # A purged project is not known any more: only its path can be given.
    named = verb.project_params(what)["project"] if kind == "project" and not lift else _absolute(what, kind)
    params = {"what": named, "kind": kind or "", "by_person": by_person}
    if lift:
        verb.confirm("Let it in again?", yes=yes)
        lifted = verb.ask("csm_privacy_lift", **params)
        verb.print_answer(lifted, as_json, show_readmitted)
        if not lifted["lifted"]:
            raise SystemExit(1)
        return
    if not by_person and not dry_run:
        raise CsmdError("only a person at a terminal can have csmd purge something", hint="type it in a terminal")
    if yes and not dry_run:
        verb.confirm("", yes=True)
    if dry_run or not yes:
        planned = verb.work("csm_privacy_purge", **params, dry_run=True, asking=verb.resolve_project(None))
        if dry_run:
            verb.print_answer(planned, as_json, show_planned)
            return
        render.show(show_planned(planned), err=as_json)
        verb.ask_first("Purge it from everything csmd holds? It cannot be undone.", err=as_json)
    done = verb.work("csm_privacy_purge", **params)
    verb.print_answer(done, as_json, show_purged)
    if done["left"]:
        raise SystemExit(1)


def _absolute(what: str, kind: str | None) -> str:
    """A project's path as the daemon knows it; everything else as it was typed."""
    place = Path(what)
    named = kind == "project" or (kind is None and (place.is_absolute() or what.startswith((".", "~"))))
    place = place.expanduser() if named else place
    return os.path.realpath(place) if kind == "project" or (named and is_directory(place)) else what


# --- pause and resume


@VERBS.action(
    "pause",
    verb.option(
        "--for", "length", metavar="TIME", default="",
        help="How long, e.g. 30m, 2h or 1d; else until `csmd resume`.",
    ),
)  # fmt: skip
def pause(length: str, as_json: bool) -> None:
    """Stop capture and injection. What is said meanwhile stays left out, also later."""
    now = datetime.now(UTC)
    end = _iso(now + timedelta(seconds=exclusions.pause_seconds(length))) if length else ""
    with _locked_pauses() as pauses:
        pauses = pauses.begun(_iso(now), end=end, by=verb.who())
        _write(pauses)
    current = pauses.current(_iso(now))
    value = {
        "paused": {"since": current[0] if current else "", "until": end, "by": pauses.by},
        "daemon": _daemon_knows(),
    }
    verb.print_answer(value, as_json, show_paused, length=length)


@VERBS.action("resume", verb.YES)
def resume(yes: bool, as_json: bool) -> None:
    """End a pause. What is said from now on is captured again."""
    now = _iso(datetime.now(UTC))
    with _locked_pauses() as pauses:
        is_paused = pauses.current(now) is not None
    if is_paused:
        verb.confirm("Capture what is said, and tell sessions of it, from now on?", yes=yes)
    with _locked_pauses() as pauses:
        current = pauses.current(now)
        if current:
            _write(pauses.ended(now))
    value = {"paused": None, "since": current[0] if current else "", "daemon": _daemon_knows()}
    verb.print_answer(value, as_json, show_resumed, now=now)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextlib.contextmanager
def _locked_pauses() -> Iterator[Pauses]:
    """The pauses so far; two commands at once wait for each other."""
    paths = default_paths()
    if not is_directory(paths.home):
        raise CsmdError(f"csmd has no home yet at {paths.home}: there is nothing to pause", hint="csmd install")
    for folder in (paths.home, paths.run_dir):
        foreign_files.make_private(folder)
    with plan.file_lock(paths.run_dir / "pause.lock"):
        try:
            data = paths.pauses.read_bytes() if is_there(paths.pauses) else None
        except OSError as error:
            raise CsmdError(f"{paths.pauses}: {error.strerror}", hint="make it readable for you") from error
        yield Pauses() if data is None else exclusions.parse_pauses(data, where=str(paths.pauses))


def _write(pauses: Pauses) -> None:
    verb.write(default_paths().pauses, exclusions.written_pauses(pauses), hint="make room on that disk")


def _daemon_knows() -> bool:
    """Whether a daemon runs and has read the pauses; one that is busy reads them later."""
    try:
        verb.ask("csm_runtime_pause")
    except (DaemonUnreachable, DaemonBusy):
        return False
    return True


def show_paused(value: dict[str, Any], *, length: str) -> Screen:
    """The end of the pause, and what it means."""
    until = value["paused"]["until"]
    yield bold(f"paused until {f'{when(until)} ({length})' if until else '`csmd resume`'}")
    yield "Nothing that is said from now on is captured, and no session is told anything."
    if until:
        yield "`csmd resume` ends it earlier."
    yield dim("It stays left out afterwards, too: also when its transcript is read later.")
    if not value["daemon"]:
        yield dim("No daemon runs now; the next one keeps to it.")


@render.raw
def show_resumed(value: dict[str, Any], *, now: str) -> Screen:
    """How long the pause was."""
    if not value["since"]:
        yield "csmd was not paused"
        return
    length = (datetime.fromisoformat(now) - datetime.fromisoformat(value["since"])).total_seconds()
    after = f"after {ages.age(length)}: " if length > 0 else ""
    yield f"resumed {after}what is said from now on is captured again"
    if not value["daemon"]:
        yield "no daemon runs now: csmd start"


# --- projects

PROJECT = VERBS.add_group("project", "Manage projects: merge, move, isolate.")
DRY_RUN = verb.flag("--dry-run", help="Show what would be moved and change nothing.")
_WHY = {"moved": "was", "same place": "was", "named": "also", "worktree": "worktree"}


def _resolved(word: str) -> str:
    """A path made absolute; an id, a name or a title (`clients/shop`), which does not look like a path, unchanged."""
    path = Path(word).expanduser()
    is_path = word.startswith(("/", "~", "./", "../")) or word in (".", "..") or ("/" in word and is_there(path))
    return os.path.realpath(path) if is_path else word


@PROJECT.action(
    "alias", verb.argument("place", "PATH"), verb.argument("other", required=False, default=""),
    verb.flag("--remove", help="PATH is a project of its own again."), verb.YES,
)  # fmt: skip
def alias(place: str, other: str, remove: bool, yes: bool, as_json: bool) -> None:
    """Have PATH count to project OTHER from now on. OTHER is a path, an id or a name."""
    if bool(other) == remove:
        raise click.UsageError("name either OTHER or --remove")
    if other:
        verb.confirm(f"Let {other} see what was said in {place}, and the other way round?", yes=yes)
    value = _ask("csm_project_alias", place=verb.resolve_project(place), other=_resolved(other), remove=remove)
    verb.print_answer(value, as_json, show_alias, remove=remove)


@render.raw
def show_alias(value: dict[str, Any], *, remove: bool) -> Screen:
    """To which project a directory counts now."""
    state = "is a project of its own again" if remove else f"counts to {value['project']}"
    yield f"{value['path']} {state}"


@PROJECT.action("merge", verb.argument("source", "A"), verb.argument("into", "B"), DRY_RUN, verb.YES)
def merge(source: str, into: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Bring all of project A into B. `split B A` takes it out again."""
    if not dry_run:
        verb.confirm(f"Let {into} see what was said in {source}, and the other way round?", yes=yes)
    value = _ask("csm_project_merge", source=_resolved(source), into=_resolved(into), dry_run=dry_run)
    verb.print_answer(value, as_json, show_moved, way=f"from {source} to {into}")


@PROJECT.action("split", verb.argument("whole", "A"), verb.argument("place", "PATH"), DRY_RUN)
def split(whole: str, place: str, dry_run: bool, as_json: bool) -> None:
    """Take PATH out of project A. It is a directory in it, or a project that was merged into it."""
    value = _ask("csm_project_split", whole=_resolved(whole), place=verb.resolve_project(place), dry_run=dry_run)
    verb.print_answer(value, as_json, show_moved, way=f"from {whole} to {place}")


@render.raw
def show_moved(value: dict[str, Any], *, way: str) -> Screen:
    """The numbers of what was moved, or would be."""
    moved = ", ".join(_counted(value, sessions="session", turns="turn", memories="memory"))
    yield f"{'would be moved' if value['dry_run'] else 'moved'} {way}: {moved}"
    if value["twins"]:
        yield f"{amount(value['twins'], 'memory')} said the same on both sides"


def _typed_lines(_context: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> str:
    return "\n".join(words)


def _lines(_context: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> str:
    return "\n".join(map(_resolved, words))


@PROJECT.tool(
    "workspace", "csm_project_workspace", verb.argument("name"),
    verb.argument("places", "PATH...", nargs=-1, required=True, callback=_lines),
    verb.flag("--remove", help="Take these projects out of it."), verb.YES, sends_by_person=True, scope="none",
    opens=lambda options: "Let every project see what was said there?" if options["remove"] else "",
)  # fmt: skip
@render.raw
def show_workspace(value: dict[str, Any]) -> Screen:
    """Put a wall around projects. Nothing said there, or below their directories, is seen from elsewhere."""
    for root in value["projects"]:
        yield f"{root} {'is out of' if value['removed'] else 'is in'} the workspace {value['workspace']}"
    if value["memories"]:
        yield f"{amount(value['memories'], 'memory')} that held everywhere and came from there only: inside now"


#: What `csmd project lens NAME PATH --wall` does.
PROJECT.commands["workspace"].hidden = True


@PROJECT.tool(
    "lens", "csm_project_lens", verb.argument("name"), verb.argument("places", "[PATH]...", nargs=-1, callback=_lines),
    verb.option("--topic", "topics", metavar="TOPIC", multiple=True, callback=_typed_lines, help="Rank this topic first, too."),
    verb.flag("--wall", help="Nothing said there is seen from elsewhere."),
    verb.flag("--remove", help="Take these out of it; without any, end the lens."), verb.YES, sends_by_person=True, scope="none",
    opens=lambda options: "Let every project see what was said there?" if options["remove"] and options["wall"] else "",
)  # fmt: skip
@render.raw
def show_lens(value: dict[str, Any]) -> Screen:
    """Rank what is of these projects and topics first there. It holds below their directories, too."""
    yield from _describe_lens(value)
    if value["moved"]:
        yield f"{amount(value['moved'], 'memory')} that held everywhere and came from there only: inside now"


def _describe_lens(row: dict[str, Any], *, here: bool = False) -> Screen:
    home = str(Path.home())
    yield bold(f"lens {row['name']}: {amount(row['projects'], 'project')}{' (here)' * here}")
    yield from (pair("  wall", tilde(root, home)) for root in row["walled"])
    yield from (pair("  ranked", tilde(root, home)) for root in row["ranked"])
    if row["topics"]:
        yield pair("  topics", ", ".join(row["topics"]))


@PROJECT.tool("list", "csm_project_list")
@render.if_empty("projects", "no projects yet; they come with sessions and `csmd import`")
def show_projects(value: dict[str, Any]) -> Screen:
    """List projects, lenses and workspaces."""
    home, columns = str(Path.home()), render.width()
    for row in value["projects"]:
        numbers = ", ".join(_counted(row, sessions="session", memories="memory"))
        marks = ["(gone)"] * row["gone"] + [f"[{row['workspace']}]"] * bool(row["workspace"])
        room = columns - len(numbers) - 2
        yield bold(f"{render.fitted('  '.join([row['name'], *marks]), room, end=True):<{room}}  {numbers}")
        kind = {"submodule": ", a submodule", "part": f", a part of {row['part_of']}"}.get(row["kind"], "")
        about = [
            ("path", f"{tilde(row['root'], home)}{kind}"),
            ("last", f"{when(row['last'])}, id {row['id']}"),
            ("left out", ".csmd-off lies there: nothing that is said there is captured" if row["off"] else ""),
            ("remote", row["remote"]),
            *((_WHY[other["why"]], tilde(other["path"], home)) for other in row["aliases"]),
            *(("merged", tilde(path, home)) for path in row["merged"]),
        ]
        yield from (pair(f"  {name}", text) for name, text in about if text)
    for row in value["workspaces"]:
        numbers = ", ".join(_counted(row, projects="project", memories="memory"))
        yield f"workspace {row['name']}: {numbers} for all of them"
    for row in value["lenses"]:
        yield from _describe_lens(row, here=row["name"] == value["lens"])
