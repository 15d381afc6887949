"""The verbs that put csmd into place, start and end it, look whether it is well, and take it away."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

import csmd
from csmd import client, wire
from csmd.cli import render, status
from csmd.cli import verb as asking
from csmd.cli.verb import json_option
from csmd.config import Config, assistant_session, base_interpreter, default_paths
from csmd.doctor import examine, report
from csmd.doctor.checks import LEVELS
from csmd.errors import CsmdError
from csmd.hosts.claude import registration
from csmd.installer import foreign_files, plan, service
from csmd.installer import plan as changes
from csmd.installer import plan as install
from csmd.installer import plan as installing
from csmd.installer.plan import Change, Choice, Left, Part, programs
from csmd.installer.service import Plan
from csmd.paths import Paths
from csmd.text import display

#: So many names of what is left are told.
MOST_NAMES = 5


def show_setup_plan(config: Config, planned: Sequence[Change], seen: Sequence[Path], choice: Choice | None) -> None:
    """What installing would write, and where; `choice` is None as long as nobody knows which clients are in use."""
    click.echo("csmd's own directories:")
    for line in install.own_files(config.paths):
        click.echo(f"  {line}")
    click.echo("files of the assistant's:")
    for change in planned:
        click.echo(f"  {change.path}{_link(change.path)}")
    _seen(seen)
    if choice is None:
        click.echo(
            f"  (later with {display.listed(tuple(registration.NEWER))}, if every Claude Code in use knows them)"
        )
    else:
        show_setup_events(choice, ())
    show_setup_differences(planned)


def show_setup_differences(planned: Sequence[Change]) -> None:
    """The difference that each file would see."""
    for change in planned:
        difference = changes.shown(change)
        state = ":" if difference else ": left alone" if change.trouble else ": as it should be"
        click.echo(f"\n{change.path}{state}")
        click.echo(difference, nl=False)
        _out(change.out)


def show_setup_installed(outcomes: Sequence[Change], seen: Sequence[Path]) -> None:
    """What became of each file."""
    _seen(seen)
    for one in outcomes:
        done = "left alone:" if one.trouble else f"{one.what} {'added to' if one.changed else 'already in'}"
        if one.trouble or one.what:
            click.echo(f"{done} {one.path}{_link(one.path)}")
        _out(one.out)


def _out(reasons: Sequence[str]) -> None:
    """Why something is not in a file; what stands on a line of its own is to be copied."""
    for why in reasons:
        said, *copied = why.splitlines()
        show_service_say(said)
        for line in copied:
            click.echo(f"  {line}")


def show_setup_events(choice: Choice, before: Sequence[str]) -> None:
    """Which of the newer events came, went or stayed out, as far as that is news."""
    if new := [event for event in choice.events if event not in before]:
        click.echo(f"with {display.listed(new)}, which every Claude Code in use knows")
    if gone := [event for event in before if event not in choice.events]:
        click.echo(f"taken out again: {', '.join(gone)}; {_why(choice)}")
    out = [event for event in registration.NEWER if event not in choice.events and event not in gone]
    if out:
        click.echo(f"{display.listed(out)} stay out: {_why(choice)}")


def show_setup_settled(choice: Choice, gone: Sequence[str], outcomes: Sequence[Change]) -> None:
    """What `csmd hooks settle` did."""
    if not gone:
        click.echo("every registered event is known to every client in use")
        return
    click.echo(f"taken out: {', '.join(gone)}; {_why(choice)}")
    for one in outcomes:
        click.echo(f"{'left alone:' if one.trouble else 'changed' if one.changed else 'nothing to do in'} {one.path}")


def _why(choice: Choice) -> str:
    old = display.version_of(choice.kept_out_by) is not None
    return f"Claude Code {choice.kept_out_by} is in use, which does not know them" if old else choice.kept_out_by


def _seen(folders: Sequence[Path]) -> None:
    for folder in folders:
        click.echo(f"sessions write to {folder}: it is taken in, too")


def _link(path: Path) -> str:
    real = path.resolve()
    return f"\n    which is {real}" if real != path.absolute() else ""


# --- leaving


def show_setup_leaving(
    paths: Paths, planned: Sequence[Change], parts: Sequence[Part], counts: Mapping[str, int], *, purge: bool
) -> None:
    """What uninstalling would change and remove."""
    click.echo(f"the daemon would be stopped, and {paths.hook_dir} removed")
    show_setup_differences(planned)
    if not planned:
        click.echo("no file of the assistant's holds entries of csmd's")
    click.echo()
    if purge:
        show_setup_going(paths, parts, counts)
    else:
        show_setup_remains(paths)


def show_setup_left(outcomes: Sequence[Change], *, stopped: bool) -> None:
    """What uninstalling did."""
    click.echo("the daemon is stopped" if stopped else "no daemon was running")
    for one in outcomes:
        state = "left alone:" if one.trouble else "restored" if one.changed else "nothing of csmd's was in"
        click.echo(f"{state} {one.path}{_link(one.path)}")


def show_setup_remains(paths: Paths) -> None:
    """Where what csmd holds stays."""
    if not paths.home.is_dir():
        click.echo(f"nothing of csmd is in {paths.home}")
        return
    click.echo("what csmd remembers is still there:")
    for folder in _places(paths):
        click.echo(f"  {folder}")
    click.echo("`csmd uninstall --purge` removes it")


def _places(paths: Paths) -> list[Path]:
    """The home, and what there is of csmd's outside it."""
    apart = (paths.log_dir, paths.config_file.parent)
    return [paths.home, *(one for one in apart if one.exists() and not one.is_relative_to(paths.home))]


def _told_counts(counts: Mapping[str, int]) -> str:
    memories = "1 memory" if counts["memories"] == 1 else f"{counts['memories']} memories"
    return f"{memories}, {display.amount(counts['turns'], 'turn')}, {display.amount(counts['sessions'], 'session')}"


def show_setup_going(paths: Paths, parts: Sequence[Part], counts: Mapping[str, int]) -> None:
    """What a purge removes: kinds, numbers, sizes, and where; `counts` are of what is remembered, {} for unknown."""
    if not parts:
        click.echo("there is nothing of csmd's to remove")
        return
    click.echo("this goes for good:")
    width = max(len(part.what) for part in parts)
    for part in parts:
        files = "1 file" if len(part.files) == 1 else f"{len(part.files)} files"
        click.echo(f"  {part.what:<{width}}  {files:>10}  {render.size(part.bytes):>9}")
    if counts:
        click.echo(f"with {_told_counts(counts)}, from")
    else:
        click.echo("from")
    for folder in _places(paths):
        click.echo(f"  {folder}")
    if paths.pauses.exists():
        click.echo("so does the record of pauses: what was said in them is in transcripts, and")
        click.echo("would be taken in if csmd is installed again")
    click.echo("the assistant's own transcripts stay")


def show_setup_question(parts: Sequence[Part]) -> str:
    """What is asked before a purge."""
    if not parts:
        return "Take csmd out of the assistant's files?"
    files = display.amount(sum(len(part.files) for part in parts), "file")
    return f"Remove all that csmd remembers, {files}, {render.size(sum(part.bytes for part in parts))}, for good?"


def show_setup_purged(paths: Paths, parts: Sequence[Part], remaining: Left) -> None:
    """What a purge has left."""
    files, size = sum(len(part.files) for part in parts), sum(part.bytes for part in parts)
    click.echo(f"removed {files} files, {render.size(size)}")
    environments = programs(paths)
    for folder in environments:
        click.echo(f"the program itself is in {folder}; to remove it:\n  rm -r {shlex.quote(str(folder))}")
    foreign = [path for path in remaining.foreign if path not in environments]
    for folder in dict.fromkeys(path.parent for path in foreign):
        names = [path.name for path in foreign if path.parent == folder]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        click.echo(f"left in {folder}, as csmd did not make it: {', '.join(names[:MOST_NAMES])}{more}")
    if not foreign and not environments and not remaining.refused:
        click.echo("nothing of csmd is left")


def show_setup_past(counts: dict[str, int], value: dict[str, Any]) -> None:
    """What is known after an install, whoever read it: the daemon may have looked before it was asked to."""
    out = render.console()
    kinds = [(counts[name], name.removesuffix("s")) for name in ("sessions", "turns")]
    memories = "1 memory" if counts["memories"] == 1 else f"{counts['memories']:,} memories"
    told = f"of your past sessions: {', '.join(display.amount(number, one) for number, one in kinds)}, {memories}"
    render.print_text(out, told if counts["sessions"] else "there are no past sessions here yet")
    render.told_beside(out, value)


#: A screen has 80 columns.
WIDTH = 78


def show_service_planned(plan: Plan) -> dict[str, str]:
    """The plan as JSON: who is to keep the daemon, the unit's file and how it changes, or why there is none."""
    if plan.manager is None:
        return {"kind": plan.kind, "file": "", "diff": "", "why": plan.why}
    return {"kind": plan.kind, "file": str(plan.manager.file), "diff": _diff(plan), "why": ""}


def show_service_plan(plan: Plan) -> None:
    """The plan for people: where the unit goes and its text, or why there is none."""
    if plan.manager is None:
        show_service_say(f"\nno service: {plan.why}")
        return
    click.echo(f"\n{plan.manager.file}:{'' if plan.changes else ' as it should be'}")
    click.echo(_diff(plan), nl=False)


def _diff(plan: Plan) -> str:
    assert plan.manager is not None
    before = None if plan.before is None else plan.before.encode()
    return foreign_files.diff(before, plan.after.encode(), plan.manager.file)


def show_service_runs(plan: Plan, status: dict[str, Any]) -> None:
    """That the daemon runs, and for how long it will."""
    if status["replaced"] and status["replaced"] != status["version"]:
        show_service_say(f"the daemon of csmd {status['replaced']} was stopped")
    if plan.manager is None:
        show_service_say(f"the daemon runs detached, pid {status['daemon']['pid']}: {plan.why}")
        show_service_say("it does not survive a reboot; `csmd start` brings it back, and hooks keep events until then")
        return
    show_service_say(f"the daemon runs, pid {status['daemon']['pid']}, kept by {plan.kind}: {plan.manager.file}")
    if note := plan.manager.note():
        show_service_say(note)


def show_service_leaving(file: str) -> None:
    """That uninstalling would take the unit away, where there is one."""
    if file:
        click.echo(f"the service would be removed: {file}")


def show_service_left(file: str) -> None:
    """That the unit is gone, where there was one."""
    if file:
        click.echo(f"removed {file}")


def show_service_say(text: str) -> None:
    """A sentence, wrapped between words; a path is never broken."""
    head = len(text) - len(text.lstrip("\n"))
    wrapped = textwrap.fill(text[head:], WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    click.echo("\n" * head + wrapped)


#: Level -> the word before what was found, and its colour.
WORDS = {"fail": ("broken", "red"), "warn": ("amiss", "yellow"), "note": ("note", "dim"), "ok": ("ok", "dim")}
LABEL = max(len(word) for word, _ in WORDS.values()) + 2


def show_doctor_examined(value: dict[str, Any], *, everything: bool) -> None:
    """The verdict, the findings with what to do about each, and how many checks passed; `everything` lists those."""
    out = render.console()
    render.print_text(out, value["verdict"], style="bold" if value["works"] else "bold red")
    found = [(one, check["id"]) for check in value["checks"] for one in check["findings"]]
    for one, ident in sorted(found, key=lambda pair: LEVELS.index(pair[0]["level"])):
        word, style = WORDS[one["level"]]
        out.print()
        render.print_text(out, f"{one['what']} ({ident})", head=f"{word:<{LABEL}}", style=style)
        render.print_text(out, one["try"], head=f"{'':<{LABEL}}try: ")
    passed = [check for check in value["checks"] if check["level"] == "ok"]
    out.print()
    hint = "" if everything or not passed else "; `csmd doctor --all` lists them"
    unasked = [check for check in value["checks"] if check["level"] == "unasked"]
    none = f", {len(unasked)} not asked: no daemon answers" if unasked else ""
    out.print(f"{len(passed)} checks passed{none}{hint}", style="dim")
    for check in passed if everything else ():
        render.print_text(out, check["question"], head=f"  {check['id']:<20}", style="dim")
    for check in unasked if everything else ():
        render.print_text(out, f"not asked: {check['question']}", head=f"  {check['id']:<20}", style="dim")


def _absolute(_context: click.Context, _parameter: click.Parameter, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(folder.absolute() for folder in folders)


#: Sessions of each project that are there when `install` returns; older ones are taken in behind its back.
RECENT = 10


@click.command("install")
@click.option("--dry-run", is_flag=True, help="Show what would be written and change nothing.")
@click.option(
    "--config-dir",
    "config_dirs",
    multiple=True,
    metavar="DIR",
    callback=_absolute,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A further configuration directory of the assistant (CLAUDE_CONFIG_DIR); may be repeated.",
)
@click.option("--no-start", is_flag=True, help="Do not start the daemon nor import anything.")
@click.option("--no-service", is_flag=True, help="Run the daemon detached: it does not come back by itself.")
@json_option
def install_verb(dry_run: bool, config_dirs: tuple[Path, ...], no_start: bool, no_service: bool, as_json: bool) -> None:
    """Put hooks and service in place, import past sessions."""
    paths = default_paths()
    unit = service.plan_unit(paths, wanted=not no_service)
    known = _clients(paths)
    seen = tuple(Path(folder) for folder in known["elsewhere"]) if known else ()
    config = installing.configuration((*config_dirs, *seen))
    # What clients wrote only the daemon knows: without one the newer events stay as they are.
    before = installing.noted_choice(paths)
    choice = before if known is None else _choice(known)
    wanted = installing.ours(config, choice.events)
    planned = installing.plan(config, wanted)
    if dry_run:
        shown = {"home": str(paths.home), "settings": [_planned(change) for change in planned],
                 "service": show_service_planned(unit)}  # fmt: skip
        asking.out(shown, as_json, lambda _: show_setup_plan(config, planned, seen, choice if known else None))
        if not as_json:
            show_service_plan(unit)
        _raise_trouble(planned)
        return
    outcomes = installing.install(config, planned, wanted, choice.kept_out_by)
    placed = show_service_planned(unit)
    result: dict[str, Any] = {"home": str(paths.home), "service": placed, "daemon": None, "import": None}
    if not as_json:
        show_setup_installed(outcomes, seen)
    if no_start:
        service.place(paths, unit)
    else:
        status = _daemon(config, unit)
        result["daemon"] = {"pid": status["daemon"]["pid"], "started": status["started"]}
        with render.progress() as bar:
            order = {"vectors": False, "recent": RECENT}
            result["import"] = client.work(config.paths, "csm_sync", order, watch=bar)
        # Only now it is known which clients wrote.
        choice = _choice(client.call(paths, "csm_clients", {}))
        if choice != installing.noted_choice(paths):
            outcomes = _once_more(config, choice, outcomes)
        if not as_json:
            show_setup_events(choice, before.events)
            show_service_runs(unit, status)
            show_setup_past(client.call(paths, "csm_runtime_status", {})["counts"], result["import"])
            if not status["model"]["name"]:
                show_service_say(
                    "search is by words alone until `csmd model fetch` (90 MB, once) brings the embedding model"
                )
    if as_json:
        result |= {"settings": [_outcome(one) for one in outcomes], "directories": [str(one) for one in config.assistant_dirs],
                   "events": [*registration.EVENTS, *choice.events], "kept_out_by": choice.kept_out_by}  # fmt: skip
        click.echo(wire.pretty(result))
    _raise_trouble(outcomes)


def _once_more(config: Config, choice: plan.Choice, before: Sequence[Change]) -> list[Change]:
    """Puts the entries in with other events than the first time; what became of each file in all."""
    wanted = installing.ours(config, choice.events)
    again = installing.install(config, installing.plan(config, wanted), wanted, choice.kept_out_by)
    changed = {one.path for one in before if one.changed}
    return [replace(one, changed=one.changed or one.path in changed) for one in again]


def _daemon(config: Config, unit: service.Plan) -> dict[str, Any]:
    """The daemon's status; one of before an upgrade, or that reads fewer directories, gives way to a new one."""
    status = service.bring_up(config.paths, unit)
    if not status["started"]:
        known = client.call(config.paths, "csm_clients", {})
        served = {os.path.realpath(one) for one in known["directories"]}
        if not {os.path.realpath(one) for one in config.assistant_dirs} <= served:
            service.stop(config.paths, by_user=False)
            return {**service.start(config.paths), "started": False, "replaced": ""}
    return status


def _clients(paths: Paths) -> dict[str, Any] | None:
    """What the running daemon knows of the assistant's clients; None where none runs, or one of before an upgrade."""
    try:
        return dict(client.call(paths, "csm_clients", {}, patience_s=5.0))
    except CsmdError:
        return None


def _choice(known: dict[str, Any]) -> plan.Choice:
    return plan.choose(plan.installed(), [row["version"] for row in known["versions"]])


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be changed and removed, and change nothing.")
@click.option("--purge", is_flag=True, help="Remove everything that csmd holds, too.")
@click.option("--yes", is_flag=True, help="With --purge: do not ask.")
@json_option
def uninstall(dry_run: bool, purge: bool, yes: bool, as_json: bool) -> None:
    """Take hooks and service out; memories stay on disk."""
    paths = default_paths()  # and no configuration: one that is damaged must not keep anybody from leaving
    if purge:
        plan.must_be_own(paths)
    going = plan.parts(paths) if purge else []
    if dry_run:
        planned = installing.plan_removal(paths)
        unit = service.recorded_file(paths)
        removed = [_part(part) for part in going]
        shown = {"settings": [_planned(change) for change in planned], "removes": removed, "service": unit}
        counts = _counts(paths) if purge else {}
        if not as_json:
            show_service_leaving(unit)
        asking.out(shown, as_json, lambda _: show_setup_leaving(paths, planned, going, counts, purge=purge))
        _raise_trouble(planned)
        return
    if purge and not yes:
        _confirm(paths, going)
    stopped, unit = service.stop(paths, by_user=True), service.recorded_file(paths)
    outcomes = installing.uninstall(paths)
    service.remove(paths)
    restored = [str(one.path) for one in outcomes if one.changed]
    result: dict[str, Any] = {
        "restored": restored, "stopped": stopped, "service": unit, "home": str(paths.home), "log_dir": str(paths.log_dir),
        "config_file": str(paths.config_file),
    }  # fmt: skip
    if not as_json:
        show_setup_left(outcomes, stopped=stopped)
        show_service_left(unit)
    if purge and not any(one.trouble for one in outcomes):
        left = plan.purge(paths, plan.parts(paths))
        result["purged"] = {"removed": [_part(part) for part in going], "foreign": [str(one) for one in left.foreign],
                            "refused": left.refused}  # fmt: skip
        if not as_json:
            show_setup_purged(paths, going, left)
    elif not as_json:
        show_setup_remains(paths)
    if as_json:
        click.echo(wire.pretty(result))
    _raise_trouble(outcomes)
    if result.get("purged", {}).get("refused"):
        raise CsmdError(result["purged"]["refused"][0], hint="remove what is left by hand")


def _confirm(paths: Paths, going: Sequence[plan.Part]) -> None:
    """A person says yes to what is listed; nobody else is asked."""
    show_setup_going(paths, going, _counts(paths))
    if not asking.person_is_there():
        raise CsmdError("nobody is there to be asked", hint="csmd uninstall --purge --yes")
    if not click.confirm(show_setup_question(going), default=False):
        raise CsmdError("nothing was changed")


def _counts(paths: Paths) -> dict[str, int]:
    """How much is remembered, as far as a running daemon can tell."""
    try:
        return dict(client.call(paths, "csm_runtime_status", {}, patience_s=5.0)["counts"])
    except CsmdError:
        return {}


def _part(part: plan.Part) -> dict[str, Any]:
    return {"what": part.what, "files": len(part.files), "bytes": part.bytes}


def _planned(change: Change) -> dict[str, Any]:
    difference = plan.shown(change)
    return {"path": str(change.path), "diff": difference, **_trouble(change)}


def _outcome(outcome: Change) -> dict[str, Any]:
    return {
        "path": str(outcome.path),
        "changed": outcome.changed,
        **_trouble(outcome),
        **({"out": list(outcome.out)} if outcome.out else {}),
    }


def _trouble(one: Change) -> dict[str, Any]:
    return {"trouble": one.trouble.what} if one.trouble else {}


def _raise_trouble(all_of: Sequence[Change]) -> None:
    """What could not be done decides the exit code, after all that could was done and told."""
    troubles = [one.trouble for one in all_of if one.trouble]
    if troubles:
        raise plan.together(troubles)


@click.group()
def hooks() -> None:
    """csmd's hooks in the assistant's settings."""


@hooks.command("print")
def hooks_print() -> None:
    """Print the JSON that `install` puts into settings.json. It can be pasted by hand."""
    click.echo(wire.pretty(registration.hooks_json(base_interpreter(), default_paths().home)))


@hooks.command("settle")
@json_option
def hooks_settle(as_json: bool) -> None:
    """Take out hooks of newer events that a client in use does not know. The daemon runs this when one appears."""
    paths = default_paths()
    known = client.call(paths, "csm_clients", {})
    # Here a client that is not found, or does not tell, is no reason: what PATH says in the daemon may be little.
    choice = plan.known_to([*plan.installed().values(), *(row["version"] for row in known["versions"])])
    gone, outcomes = installing.settle(paths, choice)
    result = {"withdrawn": gone, "kept_out_by": choice.kept_out_by, "settings": [_outcome(one) for one in outcomes]}
    asking.out(result, as_json, lambda _: show_setup_settled(choice, gone, outcomes))
    _raise_trouble(outcomes)


@click.command()
@json_option
def upgrade(as_json: bool) -> None:
    """Have hooks, service and daemon follow an upgraded csmd."""
    config = installing.configuration()
    paths = config.paths
    if not paths.hook_dir.is_dir():
        raise CsmdError(f"csmd is not installed in {paths.home}", hint="csmd install")
    known = plan.load_record(paths)
    hooks = stale_hooks(paths)
    unit = _unit(paths)
    # Which of the newer events are registered is what `csmd install` and the daemon decide.
    wanted = installing.ours(config, known["events"])
    outcomes = installing.install(config, installing.plan(config, wanted), wanted, known["kept_out_by"])
    result: dict[str, Any] = {
        "from": str(known["version"]),
        "to": csmd.__version__,
        "hooks": hooks,
        "settings": [str(one.path) for one in outcomes if one.changed],
        "service": str(unit.manager.file) if unit.manager and unit.changes else "",
        "daemon": _newer_daemon(paths, unit),
    }
    asking.out(result, as_json, _shown)
    if troubles := [one.trouble for one in outcomes if one.trouble]:
        raise plan.together(troubles)


def stale_hooks(paths: Paths) -> list[str]:
    """The installed hook files that are not this version's."""
    return [name for name in plan.COPIED if not _is_ours(paths, name)]


def _is_ours(paths: Paths, name: str) -> bool:
    installed = paths.hook_dir / name
    return installed.is_file() and installed.read_bytes() == (installing.share() / name).read_bytes()


def _unit(paths: Paths) -> service.Plan:
    """The plan for the unit that was installed; the daemon stays detached where none was."""
    keeper = service.manager(paths)
    if keeper is not None:
        return service.of_manager(keeper)
    if file := service.recorded_file(paths):
        raise CsmdError(
            f"{file} is gone, or its service manager does not answer",
            hint="run `csmd upgrade` in a session of yours; `csmd install` puts it into place, or does without",
        )
    return service.Plan(manager=None, why="no service is installed")


def _newer_daemon(paths: Paths, unit: service.Plan) -> dict[str, Any]:
    """Which daemon runs now and which one ended for it; one that was stopped on purpose stays stopped."""
    if paths.stopped_mark.exists() and service.running_service(paths) is None:
        service.place(paths, unit, enable=False)
        return {"pid": None, "replaced": "", "started": False, "corrected": None}
    status = service.bring_up(paths, unit)
    return {
        "pid": status["daemon"]["pid"], "replaced": status["replaced"], "started": status["started"],
        "corrected": status["corrected"],
    }  # fmt: skip


def _shown(value: dict[str, Any]) -> None:
    daemon = value["daemon"]
    if value["from"] == value["to"] and not (
        value["hooks"] or value["settings"] or value["service"] or daemon["started"]
    ):
        click.echo(f"csmd {value['to']} is what runs; nothing was to be done")
        return
    ended = f"csmd {daemon['replaced']} ended, " if daemon["replaced"] else ""
    now = f"csmd {value['to']} runs, pid {daemon['pid']}" if daemon["pid"] else "stopped by you; `csmd start` starts it"
    render.described([
        ("csmd", f"{value['from'] or 'an older version'} to {value['to']}" if value["from"] != value["to"] else value["to"]),
        ("hooks", ", ".join(value["hooks"]) or "as they were"),
        ("settings", ", ".join(value["settings"]) or "as they were"),
        ("service", f"written anew: {value['service']}" if value["service"] else "as it was"),
        ("daemon", ended + now),
        *([("corrected", status.show_corrected(daemon["corrected"]))] if any((daemon["corrected"] or {}).values()) else []),
    ])  # fmt: skip


@click.command()
def daemon() -> None:
    """Run the daemon in the foreground until it is told to stop."""
    # Another program in this process: the command line itself knows nothing of the store.
    # -P here and wherever csmd starts a module: the directory one stands in is no place to import from.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "csmd.daemon"])  # noqa: S606


@click.command()
@json_option
def start(as_json: bool) -> None:
    """Start the daemon in the background."""
    asking.out(service.start(default_paths()), as_json, _runs)


@click.command()
@json_option
def stop(as_json: bool) -> None:
    """Stop the daemon until `csmd start`; hooks keep what happens."""
    paths = default_paths()
    stopped = service.stop(paths, by_user=True)
    stays = "; it stays stopped, also at the next login, until `csmd start`" if service.manager(paths) else ""
    asking.out(
        {"stopped": stopped},
        as_json,
        lambda value: click.echo(("stopped" if value["stopped"] else "no daemon was running") + stays),
    )


@click.command()
@json_option
def restart(as_json: bool) -> None:
    """Stop the daemon and start it again."""
    paths = default_paths()
    service.stop(paths, by_user=False)
    asking.out(service.start(paths), as_json, _runs)


def _runs(value: dict[str, Any]) -> None:
    """That it runs, and who keeps it; a unit that could not be used is no secret."""
    word = "runs" if value["started"] else "was running already"
    kept = f", kept by {value['service']}" if value.get("service", "detached") != "detached" else ""
    click.echo(f"the daemon {word}, pid {value['daemon']['pid']}{kept}")
    unit = service.recorded_file(default_paths())
    if unit and not kept:
        show_service_say(f"it is detached: the service manager that has {unit} does not answer")
    if not default_paths().install_record.exists():
        show_service_say(
            "no hooks are installed here: it reads what sessions write to disk, and tells them nothing unless a "
            "plugin brings the hooks; `csmd install` puts them in"
        )


@click.command("mcp")
def mcp_server() -> None:
    """Serve the memory to a model (MCP); the assistant starts this."""
    if os.isatty(0):
        raise CsmdError(
            "`csmd mcp` talks to an assistant, not to people", hint="`claude mcp list` shows whether it works"
        )
    from csmd.mcp import model_tools, stdio_server

    # A client ends its servers so. asyncio would wait for the thread that reads standard input.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    directory, session = assistant_session()
    stdio_server.serve(model_tools.Asker(paths=default_paths(), directory=directory, session=session))
    os._exit(0)  # the client has gone: a thread that still waits for the daemon must not outlive it


@click.group()
def plugin() -> None:
    """csmd as a plugin of the assistant."""


@plugin.command("path")
def plugin_path() -> None:
    """Print where the plugin lies, for the assistant to add."""
    click.echo(plan.share().parent)


@click.command("doctor")
@click.option("--all", "everything", is_flag=True, help="List the checks that passed, too.")
@json_option
def doctor_verb(everything: bool, as_json: bool) -> None:
    """Prove that capture works, and name what stops or distorts it."""
    value = examine.examine(default_paths(), cwd=Path(asking.here(None)), now_s=time.time())
    asking.out(value, as_json, lambda shown: show_doctor_examined(shown, everything=everything))
    if not value["works"]:
        raise SystemExit(1)  # told why


@click.command("report")
@click.option(
    "--to",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write it; beside the log by default.",
)
@json_option
def report_verb(target: Path | None, as_json: bool) -> None:
    """Gather what a bug report needs into one file; nothing is sent."""
    paths, now_s = default_paths(), time.time()
    scene = examine.look(paths, cwd=Path(asking.here(None)), now_s=now_s)
    examined = examine.judge(scene)
    made = report.compose(scene, examined)
    said = report.bundle(made, datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%d %H:%M UTC"))
    path = report.write(paths, target, said)
    value = {"path": str(path.absolute()), "bytes": len(said.encode()),
             "parts": [{"name": name, "what": about, "bytes": len(part.encode())} for name, about, part in made]}  # fmt: skip
    asking.out(value, as_json, _show_report)


def _show_report(value: dict[str, Any]) -> None:
    out = render.console()
    render.print_text(out, f"written to {value['path']} ({render.size(value['bytes'])}):")
    for part in value["parts"]:
        render.print_text(out, f"{part['what']}, {render.size(part['bytes'])}", head=f"  {part['name']:<14} ")
    render.print_text(out, "It holds nothing that was said, no memory and no project's name, and nothing was sent. "
                         "Read it, then attach it to a bug report.")  # fmt: skip


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    install_verb,
    uninstall,
    hooks,
    upgrade,
    daemon,
    start,
    stop,
    restart,
    mcp_server,
    plugin,
    doctor_verb,
    report_verb,
)
