"""Commands that install, start, stop, examine and remove csmd."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import click

import csmd
from csmd import client, wire
from csmd.cli import render, status, verb
from csmd.cli.intake import fetch_model, show_left, show_model
from csmd.cli.render import Line, Screen, dim, pairs, size
from csmd.config import Config, assistant_session, default_paths
from csmd.doctor import examine, report
from csmd.doctor.checks import LEVELS
from csmd.errors import CsmdError
from csmd.hosts.registrations import CLAUDE, FILES
from csmd.installer import plan, service
from csmd.installer.plan import Change, Choice
from csmd.mcp import tool_groups
from csmd.mcp.assistant_tools import Asker
from csmd.paths import Paths, is_directory, is_there
from csmd.text import display
from csmd.text.display import amount

#: The verbs of this module.
VERBS = verb.Verbs()
#: Names shown of what a purge leaves in one directory.
MOST_NAMES = 5
#: A screen has 80 columns.
WIDTH = 78
#: Sessions of each project that `install` waits for; older ones are imported in the background.
RECENT = 10


def _sentence(text: str) -> str:
    """A sentence, wrapped between words; a path is never broken."""
    head = len(text) - len(text.lstrip("\n"))
    wrapped = textwrap.fill(text[head:], WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n" * head + wrapped


def _printer(as_json: bool) -> Callable[[Screen], None]:
    """Prints the screens of a command with several steps; with --json prints nothing."""
    return (lambda _: None) if as_json else render.show


def _choice(clients: dict[str, Any]) -> Choice:
    return plan.choose_events(plan.installed_clients(), [row["version"] for row in clients["versions"]])


def _why(choice: Choice) -> str:
    is_version = display.version_of(choice.kept_out_by) is not None
    return f"Claude Code {choice.kept_out_by} is in use, which does not know them" if is_version else choice.kept_out_by


# --- the assistant's files


def _with_target(path: Path) -> str:
    """A path, and what it is a link to."""
    real = Path(os.path.realpath(path))
    return f"{path}\n    which is {real}" if real != path.absolute() else str(path)


def _differences(planned: Sequence[Change]) -> Screen:
    """The diff of each file."""
    for change in planned:
        difference = plan.diff_of(change)
        state = ":" if difference else ": left alone" if change.trouble else ": as it should be"
        yield f"\n{change.path}{state}"
        if difference:
            yield difference.removesuffix("\n")
        yield from _reasons(change.out)


def _reasons(reasons: Sequence[str]) -> Screen:
    """Why entries are missing in a file; further lines of a reason are to be copied, and not wrapped."""
    for why in reasons:
        sentence, *copied = why.splitlines()
        yield _sentence(sentence)
        yield from (f"  {line}" for line in copied)


def _other_directories(folders: Sequence[Path]) -> Screen:
    return (f"sessions write to {folder}: it is taken in, too" for folder in folders)


@render.raw
def show_plan(config: Config, planned: Sequence[Change], elsewhere: Sequence[Path], choice: Choice | None) -> Screen:
    """What installing would write, and where; `choice` is None while the clients in use are unknown."""
    yield "csmd's own directories:"
    yield from (f"  {line}" for line in plan.describe_own_files(config.paths))
    yield "files of the assistant's:"
    yield from (f"  {_with_target(change.path)}" for change in planned)
    yield from _other_directories(elsewhere)
    if choice is None:
        events = display.join_names(tuple(CLAUDE.newer))
        yield _sentence(f"  (later with {events}, if every Claude Code in use knows them)")
    else:
        yield from show_events(choice, ())
    yield from _differences(planned)


@render.raw
def show_installed(outcomes: Sequence[Change], elsewhere: Sequence[Path]) -> Screen:
    """The result for each file."""
    yield from _other_directories(elsewhere)
    for change in outcomes:
        state = "left alone:" if change.trouble else f"{change.what} {'added to' if change.changed else 'already in'}"
        if change.trouble or change.what:
            yield f"{state} {_with_target(change.path)}"
        yield from _reasons(change.out)


@render.raw
def show_events(choice: Choice, before: Sequence[str]) -> Screen:
    """Which newer events were added, removed or left out."""
    if new := [event for event in choice.events if event not in before]:
        yield _sentence(f"with {display.join_names(new)}, which every Claude Code in use knows")
    if gone := [event for event in before if event not in choice.events]:
        yield _sentence(f"taken out again: {', '.join(gone)}; {_why(choice)}")
    left_out = [event for event in CLAUDE.newer if event not in choice.events and event not in gone]
    if left_out:
        hooks = f"{amount(len(left_out), 'optional hook')} ({display.join_names(left_out)})"
        yield _sentence(f"skipped {hooks}: {_why(choice)}")


def _planned_json(planned: Sequence[Change]) -> list[dict[str, Any]]:
    return [{"path": str(change.path), "diff": plan.diff_of(change), **_trouble_json(change)} for change in planned]


def _outcomes_json(outcomes: Sequence[Change]) -> list[dict[str, Any]]:
    return [
        {"path": str(change.path), "changed": change.changed, **_trouble_json(change)}
        | ({"out": list(change.out)} if change.out else {})
        for change in outcomes
    ]


def _trouble_json(change: Change) -> dict[str, str]:
    return {"trouble": change.trouble.what} if change.trouble else {}


def _raise_trouble(changes: Sequence[Change]) -> None:
    """Raises one error for the files that could not be written, after everything else was done and shown."""
    troubles = [change.trouble for change in changes if change.trouble]
    if troubles:
        raise plan.combined_error(troubles)


# --- the service


def _unit_json(unit: service.Plan) -> dict[str, str]:
    """The service plan as JSON."""
    return {"kind": unit.kind, "file": unit.file, "diff": unit.diff, "why": unit.why}


@render.raw
def show_unit(unit: service.Plan) -> Screen:
    """The unit's path and diff, or why there is no service."""
    if unit.manager is None:
        yield _sentence(f"\nno service: {unit.why}")
        return
    yield f"\n{unit.file}:{'' if unit.changes else ' as it should be'}"
    if unit.diff:
        yield unit.diff.removesuffix("\n")


@render.raw
def show_runs(unit: service.Plan, status: dict[str, Any]) -> Screen:
    """The running daemon, and how long it will run."""
    if status["replaced"] and status["replaced"] != status["version"]:
        yield _sentence(f"the daemon of csmd {status['replaced']} was stopped")
    if unit.manager is None:
        yield _sentence(f"the daemon runs detached, pid {status['daemon']['pid']}: {unit.why}")
        yield _sentence(f"{service.lifetime_note(default_paths(), 'detached')}; hooks keep events until then")
        return
    yield _sentence(f"the daemon runs, pid {status['daemon']['pid']}, kept by {unit.kind}: {unit.file}")
    if note := unit.manager.lifetime_note():
        yield _sentence(note)


# --- install


def _absolute(_context: click.Context, _parameter: click.Parameter, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(folder.absolute() for folder in folders)


@VERBS.action(
    "install", verb.flag("--dry-run", help="Show what would be written and change nothing."),
    verb.option(
        "--config-dir", "config_dirs", multiple=True, metavar="DIR", callback=_absolute,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="A further configuration directory of the assistant (CLAUDE_CONFIG_DIR); may be repeated.",
    ),
    verb.option(
        "--host", "hosts", multiple=True, type=click.Choice(list(FILES)),
        help="Install for this assistant only; may be repeated. Without it a terminal is asked about those found.",
    ),
    verb.flag("--all", "everything", help="Install for every assistant that is found here."),
    verb.flag("--no-start", help="Do not start the daemon nor import anything."),
    verb.flag("--no-service", help="Run the daemon detached: it does not come back by itself."),
    verb.option(
        "--model/--no-model", "model", default=None,
        help="Download the embedding model (90 MB, once), or do not ask for it. In a terminal it is asked for.",
    ),
    verb.yes("Answer every question with yes: all assistants found, and the model."),
)  # fmt: skip
def install(
    dry_run: bool,
    config_dirs: tuple[Path, ...],
    hosts: tuple[str, ...],
    everything: bool,
    no_start: bool,
    no_service: bool,
    model: bool | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Put hooks and service in place, import past sessions."""
    if model and no_start:
        raise click.UsageError("--model needs the daemon: leave --no-start out")
    if everything and hosts:
        raise click.UsageError("--all is for every assistant: leave --host out")
    everything = everything or (yes and not hosts)
    model = True if yes and model is None and not no_start else model
    paths, show = default_paths(), _printer(as_json)
    unit = service.plan_unit(paths, wanted=not no_service)
    clients = _ask_if_running(paths, "csm_clients")
    elsewhere = tuple(map(Path, clients.get("elsewhere", ())))
    config = plan.configuration((*config_dirs, *elsewhere))
    hosts = (tuple(plan.all_hosts()) if everything else hosts) or (
        CLAUDE.host,
        *(host for host, _ in config.host_dirs),
        *_ask_for_hosts(config, silent=as_json or dry_run),
    )
    config = plan.with_hosts(config, hosts)
    # Only the daemon knows the versions in use: without one the newer events stay as they are.
    before = plan.recorded_choice(paths)
    choice = _choice(clients) if clients else before
    if dry_run:
        planned = plan.plan_install(config, choice.events, hosts)
        show(show_plan(config, planned, elsewhere, choice if clients else None))
        show(show_unit(unit))
        if as_json:
            value = {"home": str(paths.home), "settings": _planned_json(planned), "service": _unit_json(unit)}
            click.echo(wire.pretty(value))
        _raise_trouble(planned)
        return
    outcomes = plan.install(config, choice, hosts)
    result: dict[str, Any] = {
        "home": str(paths.home),
        "service": _unit_json(unit),
        "daemon": None,
        "import": None,
        "model": None,
    }
    show(show_installed(outcomes, elsewhere))
    show(show_trust(outcomes))
    if no_start:
        service.place(paths, unit)
    else:
        status = _daemon(config, unit)
        result["daemon"] = {"pid": status["daemon"]["pid"], "started": status["started"]}
        result["import"] = verb.work("csm_sync", vectors=False, recent=RECENT)
        # Only now the versions in use are known.
        choice = _choice(client.call(paths, "csm_clients", {}))
        if choice != plan.recorded_choice(paths):
            changed = {change.path for change in outcomes if change.changed}
            again = plan.install(config, choice, hosts)
            outcomes = [replace(change, changed=change.changed or change.path in changed) for change in again]
        show(show_events(choice, before.events))
        show(show_runs(unit, status))
        state = client.call(paths, "csm_runtime_status", {})["model"]
        result["model"], failed = _offer_model(state, model, as_json=as_json)
        if not as_json:
            now = client.call(paths, "csm_runtime_status", {})
            show(show_past(now["counts"], result["import"], model=None if failed else now["model"]))
    if as_json:
        result |= {"settings": _outcomes_json(outcomes), "directories": [str(folder) for folder in config.assistant_dirs],
                   "events": [*CLAUDE.always, *choice.events], "kept_out_by": choice.kept_out_by}  # fmt: skip
        click.echo(wire.pretty(result))
    _raise_trouble(outcomes)


def _ask_for_hosts(config: Config, *, silent: bool) -> list[str]:
    """The assistants found here, beside those csmd is installed for, that a person wants it for; [] without a terminal."""
    new = [host for host in plan.hosts_found() if host not in dict(config.host_dirs)]
    if silent or not new or not verb.is_interactive():
        return []
    return [
        host for host in new if verb.agrees(f"{FILES[host].title} is here, too. Install csmd for it?", default=True)
    ]


def show_trust(outcomes: Sequence[Change]) -> Screen:
    """What the user has to do before hooks run."""
    changed = {change.kinds[0] for change in outcomes if change.changed}
    for files in FILES.values():
        if files.kinds[0] in changed:
            to_do = files.to_do and f"for {files.title} to run csmd's hooks, {files.to_do}"
            yield from (render.RawLine(_sentence(said)) for said in (to_do, files.warning()) if said)


def _offer_model(state: dict[str, Any], wanted: bool | None, *, as_json: bool) -> tuple[dict[str, Any] | None, bool]:
    """Brings the embedding model where none is installed and a person, or a script, wants it; csmd is useful without one.

    Gives the model, and whether a download failed: that is a warning, for everything else is installed. ^C and ^D at the
    question mean no, for the same reason.
    """
    if state["name"] or wanted is False or (wanted is None and (as_json or not verb.is_interactive())):
        return None, False
    if wanted is None and not _agrees_to_model(render.model_size(state["suggested"])):
        return None, False
    try:
        model = fetch_model(state["suggested"])
    except CsmdError as error:
        render.complain(f"{error.what}; search is by words until a model is there", hint=error.hint)
        return None, True
    if not as_json:
        render.show(show_model(model))
    return model, False


def _agrees_to_model(size: str) -> bool:
    question = f"Download the model for search by meaning ({size} from huggingface.co)?"
    try:
        return verb.agrees(question, default=True, err=True)
    except click.Abort:
        click.echo(err=True)  # what follows begins a line of its own
        return False


def _daemon(config: Config, unit: service.Plan) -> dict[str, Any]:
    """Runs the daemon and returns its status; one that reads too few directories is restarted."""
    status = service.bring_up(config.paths, unit)
    if not status["started"]:
        clients = client.call(config.paths, "csm_clients", {})
        served = (*clients["directories"], *clients.get("of_hosts", ()))
        wanted = (*config.assistant_dirs, *(folder for _, folder in config.host_dirs))
        if not set(map(os.path.realpath, wanted)) <= set(map(os.path.realpath, served)):
            service.stop(config.paths, by_user=False)
            return {**service.start(config.paths), "started": False, "replaced": ""}
    return status


def _ask_if_running(paths: Paths, tool: str) -> dict[str, Any]:
    """What the running daemon answers; {} where none runs, or one of before an upgrade."""
    try:
        return dict(client.call(paths, tool, {}, patience_s=5.0))
    except CsmdError:
        return {}


def show_past(counts: dict[str, int], value: dict[str, Any], *, model: dict[str, Any] | None) -> Screen:
    """How much is known after an install; the daemon may have read some of it before the import.

    `model` is the embedding model's state, None where it was just said that there is none.
    """
    amounts = ", ".join(amount(counts[name], name.removesuffix("s")) for name in ("sessions", "turns"))
    past = f"of your past sessions: {amounts}, {render.many(counts['memories'], 'memory')}"
    yield past if counts["sessions"] else "there are no past sessions here yet"
    yield from show_left(value)
    if model is not None and not model["name"]:
        hint = f"search is by words alone until {render.model_fetch(model['suggested'])} brings the embedding model"
        yield render.RawLine(_sentence(hint))
    yield "no language model is asked, and none is needed; `csmd provider add` adds one"


# --- uninstall


@VERBS.action(
    "uninstall", verb.flag("--dry-run", help="Show what would be changed and removed, and change nothing."),
    verb.flag("--purge", help="Remove everything that csmd holds, too."),
    verb.yes("Do not ask, which only --purge does."),
)  # fmt: skip
def uninstall(dry_run: bool, purge: bool, yes: bool, as_json: bool) -> None:
    """Take hooks and service out; memories stay on disk."""
    paths, show = default_paths(), _printer(as_json)  # no configuration: a damaged one must keep nobody from leaving
    if purge:
        plan.check_home_is_own(paths)
    parts = _parts(plan.plan_purge(paths)) if purge else []
    if dry_run:
        planned, unit = plan.plan_removal(paths), service.recorded_unit(paths)
        show(show_leaving(paths, planned, unit, parts, purge=purge))
        if as_json:
            click.echo(wire.pretty({"settings": _planned_json(planned), "removes": parts, "service": unit}))
        _raise_trouble(planned)
        return
    if purge and not yes:
        _confirm(paths, parts)
    stopped, unit = service.stop(paths, by_user=True), service.recorded_unit(paths)
    outcomes = plan.uninstall(paths)
    service.remove(paths)
    restored = [str(change.path) for change in outcomes if change.changed]
    result: dict[str, Any] = {
        "restored": restored, "stopped": stopped, "service": unit, "home": str(paths.home), "log_dir": str(paths.log_dir),
        "config_file": str(paths.config_file),
    }  # fmt: skip
    show(show_uninstalled(outcomes, unit, stopped=stopped))
    refused: list[str] = []
    if purge and not any(change.trouble for change in outcomes):
        foreign, refused = plan.purge(paths, plan.plan_purge(paths))
        result["purged"] = {"removed": parts, "foreign": list(map(str, foreign)), "refused": refused}
        show(show_purged(paths, parts, foreign, refused))
    else:
        show(show_remains(paths))
    if as_json:
        click.echo(wire.pretty(result))
    _raise_trouble(outcomes)
    if refused:
        raise CsmdError(refused[0], hint="remove what is left by hand")


def _parts(going: plan.Purge) -> list[dict[str, Any]]:
    """What a purge removes, as JSON: kinds of files, how many, how many bytes."""
    return [{"what": what, "files": len(files), "bytes": sum(files.values())} for what, files in going.items()]


def _total(parts: Sequence[dict[str, Any]]) -> tuple[int, str]:
    """How many files these are, and their size for people."""
    return sum(part["files"] for part in parts), size(sum(part["bytes"] for part in parts))


def _confirm(paths: Paths, parts: Sequence[dict[str, Any]]) -> None:
    """Asks a person to confirm the purge; CsmdError without a terminal, or for a no."""
    render.show(show_going(paths, parts))
    if not verb.is_interactive():
        raise CsmdError("not a terminal; cannot ask for confirmation", hint="csmd uninstall --purge --yes")
    number, bytes_ = _total(parts)
    everything = f"Remove all that csmd remembers, {amount(number, 'file')}, {bytes_}, for good?"
    if not verb.agrees(everything if parts else "Take csmd out of the assistant's files?", default=False):
        raise CsmdError("nothing was changed")


@render.raw
def show_leaving(
    paths: Paths, planned: Sequence[Change], unit: str, parts: Sequence[dict[str, Any]], *, purge: bool
) -> Screen:
    """What uninstalling would change and remove."""
    if unit:
        yield f"the service would be removed: {unit}"
    yield f"the daemon would be stopped, and {paths.hook_dir} removed"
    yield from _differences(planned)
    if not planned:
        yield "no file of the assistant's holds entries of csmd's"
    yield ""
    yield from show_going(paths, parts) if purge else show_remains(paths)


@render.raw
def show_uninstalled(outcomes: Sequence[Change], unit: str, *, stopped: bool) -> Screen:
    """What uninstalling did."""
    yield "the daemon is stopped" if stopped else "no daemon was running"
    yield from show_restored(outcomes)
    if unit:
        yield f"removed {unit}"


@render.raw
def show_restored(outcomes: Sequence[Change]) -> Screen:
    """What became of each file that csmd's entries were taken out of."""
    for change in outcomes:
        done = "removed" if change.after is None else "restored"
        state = "left alone:" if change.trouble else done if change.changed else "nothing of csmd's was in"
        yield f"{state} {_with_target(change.path)}"


@render.raw
def show_remains(paths: Paths) -> Screen:
    """Where memories stay after uninstalling."""
    if not is_directory(paths.home) or not any(plan.plan_purge(paths).values()):
        yield f"nothing that csmd keeps is in {paths.home}"
        return
    yield "what csmd keeps is still there:"
    yield from _places(paths)
    yield "`csmd uninstall --purge` removes it"


def _places(paths: Paths) -> Screen:
    """The home, and csmd's directories outside it."""
    yield f"  {paths.home}"
    for folder in (paths.log_dir, paths.config_file.parent):
        if is_there(folder) and not folder.is_relative_to(paths.home):
            yield f"  {folder}"


@render.raw
def show_going(paths: Paths, parts: Sequence[dict[str, Any]]) -> Screen:
    """What a purge removes: kinds, numbers, sizes, and where; with how much is remembered, if a daemon answers."""
    if not parts:
        yield "there is nothing of csmd's to remove"
        return
    yield "This will be permanently deleted:"
    width = max(len(part["what"]) for part in parts)
    for part in parts:
        yield f"  {part['what']:<{width}}  {amount(part['files'], 'file'):>10}  {size(part['bytes']):>9}"
    nouns = {"memories": "memory", "turns": "turn", "sessions": "session"}
    counts = _ask_if_running(paths, "csm_runtime_status").get("counts")
    yield f"with {', '.join(amount(counts[name], noun) for name, noun in nouns.items())}, from" if counts else "from"
    yield from _places(paths)
    if is_there(paths.pauses):
        yield "so does the record of pauses: what was said in them is in transcripts, and"
        yield "would be taken in if csmd is installed again"
    yield "the assistant's own transcripts stay"


@render.raw
def show_purged(
    paths: Paths, parts: Sequence[dict[str, Any]], foreign: Sequence[Path], refused: Sequence[str]
) -> Screen:
    """What a purge has removed and left."""
    number, bytes_ = _total(parts)
    yield f"removed {amount(number, 'file')}, {bytes_}"
    environments = plan.virtual_environments(paths)
    for folder in environments:
        yield f"the program itself is in {folder}; to remove it:\n  rm -r {shlex.quote(str(folder))}"
    others = [path for path in foreign if path not in environments]
    for folder in dict.fromkeys(path.parent for path in others):
        names = [path.name for path in others if path.parent == folder]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        yield f"left in {folder}, as csmd did not make it: {', '.join(names[:MOST_NAMES])}{more}"
    if not foreign and not refused:
        yield "nothing of csmd is left"


# --- hooks, upgrade

HOOKS = VERBS.add_group("hooks", "csmd's hooks in the assistant's settings.")


@HOOKS.command("print")
def hooks_print() -> None:
    """Print the JSON that `install` puts into settings.json. It can be pasted by hand: the scripts are put in place."""
    plan.put_hooks_in_place(default_paths())
    click.echo(wire.pretty(plan.hooks_to_paste(default_paths().home)))


@HOOKS.action("settle")
def hooks_settle(as_json: bool) -> None:
    """Take out hooks of newer events that a client in use does not know. The daemon runs this when one appears."""
    paths = default_paths()
    in_use = [row["version"] for row in client.call(paths, "csm_clients", {})["versions"]]
    # A missing or silent client is no reason here: the daemon's PATH may lack it.
    choice = plan.supported_events([*plan.installed_clients().values(), *in_use])
    gone, outcomes = plan.withdraw_events(paths, choice)
    result = {"withdrawn": gone, "kept_out_by": choice.kept_out_by, "settings": _outcomes_json(outcomes)}
    verb.print_answer(result, as_json, show_settled, why=_why(choice))
    _raise_trouble(outcomes)


@render.raw
def show_settled(value: dict[str, Any], *, why: str) -> Screen:
    """What `csmd hooks settle` did."""
    if not value["withdrawn"]:
        yield "every registered event is known to every client in use"
        return
    yield f"taken out: {', '.join(value['withdrawn'])}; {why}"
    for file in value["settings"]:
        state = "left alone:" if "trouble" in file else "changed" if file["changed"] else "nothing to do in"
        yield f"{state} {file['path']}"


@VERBS.action("upgrade")
def upgrade(as_json: bool) -> None:
    """Finish an upgrade: refresh hooks, service and daemon."""
    config = plan.configuration()
    paths = config.paths
    if not is_directory(paths.hook_dir):
        raise CsmdError(f"csmd is not installed in {paths.home}", hint="csmd install")
    record = plan.load_record(paths)
    stale = [name for name in plan.COPIED if not plan.is_shipped_copy(paths.hook_dir / name)]
    unit = _installed_unit(paths)
    # Which of the newer events are registered is what `csmd install` and the daemon decide.
    outcomes = plan.install(config, plan.recorded_choice(paths), plan.installed_hosts(paths) or ["claude"])
    result: dict[str, Any] = {
        "from": str(record["version"]),
        "to": csmd.__version__,
        "hooks": stale,
        "settings": [str(change.path) for change in outcomes if change.changed],
        "service": unit.file if unit.changes else "",
        "daemon": _newer_daemon(paths, unit),
    }
    verb.print_answer(result, as_json, show_upgraded)
    _raise_trouble(outcomes)


def _installed_unit(paths: Paths) -> service.Plan:
    """The plan for the installed unit; without one the daemon stays detached."""
    if manager := service.recorded_manager(paths):
        return service.plan_for(manager)
    if file := service.recorded_unit(paths):
        raise CsmdError(
            f"{file} is gone, or its service manager does not answer",
            hint="run `csmd upgrade` in a session of yours; `csmd install` puts it into place, or does without",
        )
    return service.Plan(manager=None, why="no service is installed")


def _newer_daemon(paths: Paths, unit: service.Plan) -> dict[str, Any]:
    """The daemon that runs now and the version that it replaced; one that a person stopped stays stopped."""
    if is_there(paths.stopped_mark) and service.running_service(paths) is None:
        service.place(paths, unit, enable=False)
        return {"pid": None, "replaced": "", "started": False, "corrected": None}
    status = service.bring_up(paths, unit)
    return {"pid": status["daemon"]["pid"], **{name: status[name] for name in ("replaced", "started", "corrected")}}


def show_upgraded(value: dict[str, Any]) -> Screen:
    """What was brought up to the new version."""
    daemon, is_new = value["daemon"], value["from"] != value["to"]
    if not (is_new or value["hooks"] or value["settings"] or value["service"] or daemon["started"]):
        yield render.RawLine(f"csmd {value['to']} is already running; nothing to do.")
        return
    ended = f"csmd {daemon['replaced']} ended, " if daemon["replaced"] else ""
    now = f"csmd {value['to']} runs, pid {daemon['pid']}" if daemon["pid"] else "stopped by you; `csmd start` starts it"
    changed = daemon["corrected"] or {}
    yield from pairs([
        ("csmd", f"{value['from'] or 'an older version'} to {value['to']}" if is_new else value["to"]),
        ("hooks", ", ".join(value["hooks"]) or "as they were"),
        ("settings", ", ".join(value["settings"]) or "as they were"),
        ("service", f"written anew: {value['service']}" if value["service"] else "as it was"),
        ("daemon", ended + now),
        ("corrected", status.corrected(changed) if any(changed.values()) else ""),
    ])  # fmt: skip


# --- the daemon


@VERBS.command("daemon")
def daemon() -> None:
    """Run the daemon in the foreground until it is told to stop."""
    # Another program in this process: the command line itself knows nothing of the store.
    # -P here and wherever csmd starts a module: the directory one stands in is no place to import from.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "csmd.daemon"])  # noqa: S606


@VERBS.action("start")
def start(as_json: bool) -> None:
    """Start the daemon in the background."""
    verb.print_answer(service.start(default_paths()), as_json, show_started)


@VERBS.action("stop")
def stop(as_json: bool) -> None:
    """Stop the daemon until `csmd start`; hooks keep what happens."""
    paths = default_paths()
    stopped = service.stop(paths, by_user=True, by=verb.who())
    verb.print_answer(
        {"stopped": stopped}, as_json, show_stopped, has_manager=service.recorded_manager(paths) is not None
    )


@render.raw
def show_stopped(value: dict[str, Any], *, has_manager: bool) -> Screen:
    """Whether a daemon was stopped, and for how long."""
    stays = "; it stays stopped, also at the next login, until `csmd start`" if has_manager else ""
    yield f"{'stopped' if value['stopped'] else 'no daemon was running'}{stays}"


@VERBS.action("restart")
def restart(as_json: bool) -> None:
    """Stop the daemon and start it again."""
    paths = default_paths()
    service.stop(paths, by_user=False)
    verb.print_answer(service.start(paths), as_json, show_started)


@render.raw
def show_started(value: dict[str, Any]) -> Screen:
    """The running daemon and its service manager, and why a recorded unit is not used."""
    paths = default_paths()
    is_detached = value.get("service", "detached") == "detached"
    keeper = "" if is_detached else f", kept by {value['service']}"
    yield f"the daemon {'runs' if value['started'] else 'was running already'}, pid {value['daemon']['pid']}{keeper}"
    unit = service.recorded_unit(paths)
    if unit and is_detached:
        yield _sentence(f"it is detached: the service manager that has {unit} does not answer")
    if not is_there(paths.install_record):
        yield _sentence(
            "no hooks are installed here: it reads what sessions write to disk, and tells them nothing unless a "
            "plugin brings the hooks; `csmd install` puts them in"
        )


HOST = click.Choice(sorted(plan.SERVER_KINDS))


@VERBS.command("mcp")
@click.option("--tools", default="", metavar="NAME,...", help=f"Tools to serve besides the four: {tool_groups.WORDS}.")
@click.option(
    "--print-config", "shown", type=HOST, metavar="HOST", help=f"Print what to paste for {', '.join(HOST.choices)}."
)
@click.option("--install", "installed", type=HOST, metavar="HOST", help="Write it into the settings of HOST.")
@click.option("--remove", "removed", type=HOST, metavar="HOST", help="Take out what --install wrote.")
def mcp_server(tools: str, shown: str | None, installed: str | None, removed: str | None) -> None:
    """Serve the memory to a model (MCP): the assistant starts this. Its options add csmd to an assistant."""
    chosen = tool_groups.choose(tools)
    if host := shown or installed or removed:
        _set_up_server(
            host, ["--tools", tools] if tools else [], "show" if shown else "install" if installed else "remove"
        )
        return
    if os.isatty(0):
        hint = "`csmd mcp --install HOST` adds it to one; `claude mcp list` shows whether it works"
        raise CsmdError("`csmd mcp` talks to an assistant, not to people", hint=hint)
    from csmd.mcp import stdio_server

    # Clients end their servers by SIGINT. asyncio would wait for the thread that reads standard input.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    named, started, session = assistant_session()
    stdio_server.serve(
        Asker(paths=default_paths(), directory=named or started, session=session, named=bool(named)), chosen
    )
    os._exit(0)  # the client has gone: a thread that still waits for the daemon must not outlive it


def _set_up_server(host: str, arguments: Sequence[str], what: Literal["show", "install", "remove"]) -> None:
    """Shows, writes or takes back the memory server's entry in an assistant's settings."""
    config = plan.configuration()
    if what == "show":
        plan.put_hooks_in_place(config.paths)
        path, entry = plan.describe_server(config, host, arguments)
        click.echo(f"into {path}:\n", err=True)
        click.echo(entry, nl=False)
    elif what == "install":
        change = plan.install_server(config, host, arguments)
        render.show(show_installed([change], ()))
        _raise_trouble([change])
    else:
        change = plan.remove_server(config, host)
        render.show(show_restored([change]))
        _raise_trouble([change])


@VERBS.add_group("plugin", "csmd as a plugin of the assistant.").command("path")
def plugin_path() -> None:
    """Print where the plugin lies, for the assistant to add."""
    click.echo(plan.shipped_folder().parent)


# --- doctor, report

#: Level -> the word before a finding, and its colour.
WORDS = {"fail": ("broken", "red"), "warn": ("warning", "yellow"), "note": ("note", "dim"), "ok": ("ok", "dim")}
LABEL = max(len(word) for word, _ in WORDS.values()) + 2


@VERBS.action("doctor", verb.ALL)
def doctor(everything: bool, as_json: bool) -> None:
    """Prove that capture works, and name what stops it."""
    value = examine.diagnose(
        examine.read_scene(default_paths(), cwd=Path(verb.resolve_project(None)), now_s=time.time())
    )
    verb.print_answer(value, as_json, show_examined, everything=everything)
    if not value["works"]:
        raise SystemExit(1)


def show_examined(value: dict[str, Any], *, everything: bool) -> Screen:
    """The verdict, the findings with what to do about each, and how many checks passed; `everything` lists those."""
    yield Line(value["verdict"], style="bold" if value["works"] else "bold red")
    findings = [(finding, check["id"]) for check in value["checks"] for finding in check["findings"]]
    for finding, ident in sorted(findings, key=lambda row: LEVELS.index(row[0]["level"])):
        word, style = WORDS[finding["level"]]
        yield Line(f"{finding['what']} ({ident})", head=f"{word:<{LABEL}}", style=style, gap=True)
        yield Line(finding["try"], head=f"{'':<{LABEL}}try: ")
    passed = [check for check in value["checks"] if check["level"] == "ok"]
    unasked = [check for check in value["checks"] if check["level"] == "unasked"]
    hint = "" if everything or not passed else "; `csmd doctor --all` lists them"
    none = f", {len(unasked)} not asked: no daemon answers" if unasked else ""
    yield dim(f"{amount(len(passed), 'check')} passed{none}{hint}", gap=True)
    if everything:
        yield from (dim(check["question"], head=f"  {check['id']:<20}") for check in passed)
        yield from (dim(f"not asked: {check['question']}", head=f"  {check['id']:<20}") for check in unasked)


@VERBS.action(
    "report",
    verb.option(
        "--to", "target", type=click.Path(path_type=Path, dir_okay=False),
        help="Where to write it; beside the log by default.",
    ),
)  # fmt: skip
def report_verb(target: Path | None, as_json: bool) -> None:
    """Write a bug report into a file; nothing is sent."""
    paths, now_s = default_paths(), time.time()
    scene = examine.read_scene(paths, cwd=Path(verb.resolve_project(None)), now_s=now_s)
    parts = report.compose(scene, examine.diagnose(scene))
    text = report.bundle(parts, datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%d %H:%M UTC"))
    path = report.write(paths, target, text)
    rows = [{"name": name, "what": about, "bytes": len(part.encode())} for name, about, part in parts]
    verb.print_answer({"path": str(path.absolute()), "bytes": len(text.encode()), "parts": rows}, as_json, show_report)


def show_report(value: dict[str, Any]) -> Screen:
    """What is in the report, and where it is."""
    yield f"written to {value['path']} ({size(value['bytes'])}):"
    for part in value["parts"]:
        yield Line(f"{part['what']}, {size(part['bytes'])}", head=f"  {part['name']:<14} ")
    yield (
        "It holds nothing that was said, no memory and no project's name, and nothing was sent. "
        "Read it, then attach it to a bug report."
    )
