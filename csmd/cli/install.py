"""Commands that install csmd and upgrade an installation: install, upgrade, hooks, plugin."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import csmd
from csmd import client, wire
from csmd.cli import render, status, verb
from csmd.cli.import_export import show_remainder
from csmd.cli.model import fetch_model, show_model
from csmd.cli.render import Screen, pairs
from csmd.config import Config, default_paths
from csmd.errors import CsmdError
from csmd.hosts.registrations import CLAUDE, FILES
from csmd.installer import plan, service
from csmd.installer.plan import Change, Choice
from csmd.paths import Paths, is_directory, is_there
from csmd.text import display
from csmd.text.display import amount

VERBS = verb.Verbs()
#: Columns of a sentence.
WIDTH = 78
#: Sessions of each project that `install` waits for; older ones are imported in the background.
RECENT_SESSIONS = 10


def wrap_sentence(text: str) -> str:
    """Wraps a sentence between words, never inside a path."""
    head = len(text) - len(text.lstrip("\n"))
    wrapped = textwrap.fill(text[head:], WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n" * head + wrapped


def screen_printer(as_json: bool) -> Callable[[Screen], None]:
    """Returns a function that prints the screens of a command with several steps; with --json it prints nothing."""
    return (lambda _: None) if as_json else render.show


def _choose_events(clients: dict[str, Any]) -> Choice:
    return plan.choose_events(plan.find_clients(), [row["version"] for row in clients["versions"]])


def _explain_choice(choice: Choice) -> str:
    is_version = display.parse_version(choice.kept_out_by) is not None
    return f"Claude Code {choice.kept_out_by} is in use, which does not know them" if is_version else choice.kept_out_by


def format_path(path: Path) -> str:
    """Formats a path, with its target if it is a link."""
    real = Path(os.path.realpath(path))
    return f"{path}\n    which is {real}" if real != path.absolute() else str(path)


def show_differences(planned: Sequence[Change]) -> Screen:
    """Shows the diff of each file."""
    for change in planned:
        difference = plan.format_diff(change)
        state = ":" if difference else ": not changed" if change.trouble else ": up to date"
        yield f"\n{change.path}{state}"
        if difference:
            yield difference.removesuffix("\n")
        yield from _reasons(change.out)


def _reasons(reasons: Sequence[str]) -> Screen:
    """Shows the reasons why entries are missing in a file; further lines of a reason are for copying and not
    wrapped."""
    for reason in reasons:
        sentence, *lines = reason.splitlines()
        yield wrap_sentence(sentence)
        yield from (f"  {line}" for line in lines)


def _other_directories(folders: Sequence[Path]) -> Screen:
    return (f"sessions write to {folder}, which is also read" for folder in folders)


@render.raw
def show_plan(config: Config, planned: Sequence[Change], elsewhere: Sequence[Path], choice: Choice | None) -> Screen:
    """Shows the files that installing would write; `choice` is None if the clients in use are unknown."""
    yield "csmd's own directories:"
    yield from (f"  {line}" for line in plan.describe_own_files(config.paths))
    yield "files of the assistant's:"
    yield from (f"  {format_path(change.path)}" for change in planned)
    yield from _other_directories(elsewhere)
    if choice is None:
        events = display.join_names(tuple(CLAUDE.newer))
        yield wrap_sentence(f"  (later with {events}, if every Claude Code in use knows them)")
    else:
        yield from show_events(choice, ())
    yield from show_differences(planned)


@render.raw
def show_installed(outcomes: Sequence[Change], elsewhere: Sequence[Path]) -> Screen:
    """Shows the result for each file."""
    yield from _other_directories(elsewhere)
    for change in outcomes:
        state = "not changed:" if change.trouble else f"{change.what} {'added to' if change.changed else 'already in'}"
        if change.trouble or change.what:
            yield f"{state} {format_path(change.path)}"
        yield from _reasons(change.out)


@render.raw
def show_events(choice: Choice, before: Sequence[str]) -> Screen:
    """Shows the newer events that were added, removed or skipped."""
    if added := [event for event in choice.events if event not in before]:
        yield wrap_sentence(f"with {display.join_names(added)}, which every Claude Code in use knows")
    if removed := [event for event in before if event not in choice.events]:
        yield wrap_sentence(f"removed: {', '.join(removed)}; {_explain_choice(choice)}")
    if skipped := [event for event in CLAUDE.newer if event not in choice.events and event not in removed]:
        hooks = f"{amount(len(skipped), 'optional hook')} ({display.join_names(skipped)})"
        yield wrap_sentence(f"skipped {hooks}: {_explain_choice(choice)}")


def planned_json(planned: Sequence[Change]) -> list[dict[str, Any]]:
    return [{"path": str(change.path), "diff": plan.format_diff(change), **_trouble_json(change)} for change in planned]


def _outcomes_json(outcomes: Sequence[Change]) -> list[dict[str, Any]]:
    rows = [{"path": str(change.path), "changed": change.changed, **_trouble_json(change)} for change in outcomes]
    return [row | ({"out": list(change.out)} if change.out else {}) for row, change in zip(rows, outcomes, strict=True)]


def _trouble_json(change: Change) -> dict[str, str]:
    return {"trouble": change.trouble.what} if change.trouble else {}


def raise_trouble(changes: Sequence[Change]) -> None:
    """Raises one error for the files that could not be written, after everything else was done and shown."""
    troubles = [change.trouble for change in changes if change.trouble]
    if troubles:
        raise plan.combine_errors(troubles)


def _unit_json(unit: service.Plan) -> dict[str, str]:
    """Returns the service plan as JSON."""
    return {"kind": unit.kind, "file": unit.file, "diff": unit.diff, "why": unit.why}


@render.raw
def show_unit(unit: service.Plan) -> Screen:
    """Shows the unit's path and diff, or the reason why there is no service."""
    if unit.manager is None:
        yield wrap_sentence(f"\nno service: {unit.why}")
        return
    yield f"\n{unit.file}:{'' if unit.changes else ' up to date'}"
    if unit.diff:
        yield unit.diff.removesuffix("\n")


@render.raw
def show_runs(unit: service.Plan, status: dict[str, Any]) -> Screen:
    """Shows the running daemon, and a note if it ends sooner than expected."""
    if status["replaced"] and status["replaced"] != status["version"]:
        yield wrap_sentence(f"the daemon of csmd {status['replaced']} was stopped")
    if unit.manager is None:
        yield wrap_sentence(f"the daemon runs detached, pid {status['daemon']['pid']}: {unit.why}")
        yield wrap_sentence(f"{service.describe_lifetime(default_paths(), 'detached')}; hooks keep events until then")
        return
    yield wrap_sentence(f"the daemon runs, pid {status['daemon']['pid']}, kept by {unit.kind}: {unit.file}")
    if note := unit.manager.describe_lifetime():
        yield wrap_sentence(note)


def _absolute(_context: click.Context, _parameter: click.Parameter, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(folder.absolute() for folder in folders)


@VERBS.action(
    "install", verb.DRY_RUN,
    verb.option("--config-dir", "config_dirs", multiple=True, metavar="DIR", callback=_absolute,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A further configuration directory of the assistant (CLAUDE_CONFIG_DIR); may be repeated."),
    verb.option("--host", "hosts", multiple=True, type=click.Choice(list(FILES)),
    help="Install for this assistant only; may be repeated. By default a terminal is asked about those found."),
    verb.flag("--all", "everything", help="Install for every assistant that is found here."),
    verb.flag("--no-start", help="Do not start the daemon nor import sessions."),
    verb.flag("--no-service", help="Run the daemon detached: it does not restart by itself."),
    verb.option("--model/--no-model", "model", default=None,
    help="Download the embedding model (90 MB, once), or do not ask for it."),
    verb.yes("Answer every question with yes: all assistants found, and the model."),
)  # fmt: skip
def install(
    dry_run: bool, config_dirs: tuple[Path, ...], hosts: tuple[str, ...], everything: bool, no_start: bool,
    no_service: bool, model: bool | None, yes: bool, as_json: bool,
) -> None:  # fmt: skip
    """Install hooks and service, import past sessions."""
    if model and no_start:
        raise click.UsageError("--model needs the daemon: leave --no-start out")
    if everything and hosts:
        raise click.UsageError("--all is for every assistant: leave --host out")
    everything = everything or (yes and not hosts)
    model = True if yes and model is None and not no_start else model
    paths, show = default_paths(), screen_printer(as_json)
    unit = service.plan_unit(paths, wanted=not no_service)
    clients = ask_if_running(paths, "csm_clients")
    elsewhere = tuple(map(Path, clients.get("elsewhere", ())))
    config = plan.load_configuration((*config_dirs, *elsewhere))
    hosts = tuple(plan.find_all_hosts()) if everything else hosts
    if not hosts:
        further = _ask_for_hosts(config, silent=as_json or dry_run)
        hosts = (CLAUDE.host, *(host for host, _ in config.host_dirs), *further)
    config = plan.add_hosts(config, hosts)
    # Only the daemon knows the versions in use: without it the newer events stay as they are.
    before = plan.read_choice(paths)
    choice = _choose_events(clients) if clients else before
    if dry_run:
        planned = plan.plan_install(config, choice.events, hosts)
        show(show_plan(config, planned, elsewhere, choice if clients else None))
        show(show_unit(unit))
        if as_json:
            value = {"home": str(paths.home), "settings": planned_json(planned), "service": _unit_json(unit)}
            click.echo(wire.pretty(value))
        raise_trouble(planned)
        return
    outcomes = plan.install(config, choice, hosts)
    result: dict[str, Any] = {"home": str(paths.home), "service": _unit_json(unit)}
    result |= {"daemon": None, "import": None, "model": None}
    show(show_installed(outcomes, elsewhere))
    show(show_trust(outcomes))
    if no_start:
        service.install_unit(paths, unit)
    else:
        status = _run_daemon(config, unit)
        result["daemon"] = {"pid": status["daemon"]["pid"], "started": status["started"]}
        result["import"] = verb.run_job("csm_sync", vectors=False, recent=RECENT_SESSIONS)
        # Only now the versions in use are known.
        choice = _choose_events(client.call(paths, "csm_clients", {}))
        if choice != plan.read_choice(paths):
            changed = {change.path for change in outcomes if change.changed}
            repeated = plan.install(config, choice, hosts)
            outcomes = [replace(change, changed=change.changed or change.path in changed) for change in repeated]
        show(show_events(choice, before.events))
        show(show_runs(unit, status))
        state = client.call(paths, "csm_runtime_status", {})["model"]
        result["model"], failed = _offer_model(state, model, as_json=as_json)
        if not as_json:
            now = client.call(paths, "csm_runtime_status", {})
            show(show_past(now["counts"], result["import"], model=None if failed else now["model"]))
    if as_json:
        result |= {"settings": _outcomes_json(outcomes),
        "directories": [str(folder) for folder in config.assistant_dirs],
                   "events": [*CLAUDE.stable_events, *choice.events], "kept_out_by": choice.kept_out_by}  # fmt: skip
        click.echo(wire.pretty(result))
    raise_trouble(outcomes)


def _ask_for_hosts(config: Config, *, silent: bool) -> list[str]:
    """Asks a person for which further assistants found here to install; [] without a terminal."""
    new = [host for host in plan.find_hosts() if host not in dict(config.host_dirs)]
    if silent or not new or not verb.is_interactive():
        return []
    return [host for host in new if verb.ask_yes_no(f"Also install csmd for {FILES[host].title}?", default=True)]


def show_trust(outcomes: Sequence[Change]) -> Screen:
    """Shows what the user has to do before hooks run."""
    changed = {change.kinds[0] for change in outcomes if change.changed}
    for files in FILES.values():
        if files.kinds[0] in changed:
            to_do = files.setup_step and f"for {files.title} to run csmd's hooks, {files.setup_step}"
            yield from (render.RawLine(wrap_sentence(text)) for text in (to_do, files.warning()) if text)


def _offer_model(state: dict[str, Any], answer: bool | None, *, as_json: bool) -> tuple[dict[str, Any] | None, bool]:
    """Fetches the embedding model if none is installed and a person, or a script, wants it.

    Returns the model, and whether a download failed, which is only a warning: csmd works without a model. ^C and ^D at
    the question mean no.
    """
    if state["name"] or answer is False or (answer is None and (as_json or not verb.is_interactive())):
        return None, False
    if answer is None and not _agrees_to_model(render.model_size(state["suggested"])):
        return None, False
    try:
        model = fetch_model(state["suggested"])
    except CsmdError as error:
        render.complain(f"{error.what}; search is by words until a model is installed", hint=error.hint)
        return None, True
    if not as_json:
        render.show(show_model(model))
    return model, False


def _agrees_to_model(size: str) -> bool:
    question = f"Download the model for search by meaning ({size} from huggingface.co)?"
    try:
        return verb.ask_yes_no(question, default=True, err=True)
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        return False


def _run_daemon(config: Config, unit: service.Plan) -> dict[str, Any]:
    """Runs the daemon and returns its status; a daemon that reads too few directories is restarted."""
    status = service.bring_up(config.paths, unit)
    if not status["started"]:
        clients = client.call(config.paths, "csm_clients", {})
        read_folders = (*clients["directories"], *clients.get("of_hosts", ()))
        folders = (*config.assistant_dirs, *(folder for _, folder in config.host_dirs))
        if not set(map(os.path.realpath, folders)) <= set(map(os.path.realpath, read_folders)):
            service.stop(config.paths, by_user=False)
            return {**service.start(config.paths), "started": False, "replaced": ""}
    return status


def ask_if_running(paths: Paths, tool: str) -> dict[str, Any]:
    """Returns the running daemon's answer; {} if none runs, or if it is too old to know the tool."""
    try:
        return dict(client.call(paths, tool, {}, patience_s=5.0))
    except CsmdError:
        return {}


def show_past(counts: dict[str, int], value: dict[str, Any], *, model: dict[str, Any] | None) -> Screen:
    """Shows the numbers of sessions, turns and memories after an install.

    `model` is the embedding model's state, None if its absence was just reported.
    """
    amounts = ", ".join(amount(counts[name], name.removesuffix("s")) for name in ("sessions", "turns"))
    past = f"past sessions: {amounts}, {render.many(counts['memories'], 'memory')}"
    yield past if counts["sessions"] else "no past sessions here yet"
    yield from show_remainder(value)
    if model is not None and not model["name"]:
        hint = f"search is by words; {render.fetch_command(model['suggested'])} adds search by meaning"
        yield render.RawLine(wrap_sentence(hint))
    yield "no language model is asked, and none is needed; `csmd provider add` adds one"


HOOKS = VERBS.add_group("hooks", "csmd's hooks in the assistant's settings.")


@HOOKS.command("print")
def hooks_print() -> None:
    """Print the hooks for settings.json, to be pasted by hand. Installs their scripts."""
    plan.install_hooks(default_paths())
    click.echo(wire.pretty(plan.format_hooks(default_paths().home)))


@HOOKS.action("settle")
def hooks_settle(as_json: bool) -> None:
    """Remove hooks that a client in use does not know. The daemon runs this if such a client appears."""
    paths = default_paths()
    in_use = [row["version"] for row in client.call(paths, "csm_clients", {})["versions"]]
    # A missing or silent client does not count here: the daemon's PATH may lack it.
    choice = plan.choose_supported_events([*plan.find_clients().values(), *in_use])
    withdrawn, outcomes = plan.withdraw_events(paths, choice)
    result = {"withdrawn": withdrawn, "kept_out_by": choice.kept_out_by, "settings": _outcomes_json(outcomes)}
    verb.print_answer(result, as_json, show_settled, reason=_explain_choice(choice))
    raise_trouble(outcomes)


@render.raw
def show_settled(value: dict[str, Any], *, reason: str) -> Screen:
    """Shows the removed hooks, and the result for each file."""
    if not value["withdrawn"]:
        yield "every registered event is known to every client in use"
        return
    yield f"removed: {', '.join(value['withdrawn'])}; {reason}"
    for file in value["settings"]:
        state = "not changed:" if "trouble" in file else "changed" if file["changed"] else "nothing to do in"
        yield f"{state} {file['path']}"


@VERBS.action("upgrade")
def upgrade(as_json: bool) -> None:
    """Finish an upgrade: refresh hooks, service and daemon."""
    config = plan.load_configuration()
    paths = config.paths
    if not is_directory(paths.hook_dir):
        raise CsmdError(f"csmd is not installed in {paths.home}", hint="csmd install")
    record = plan.load_record(paths)
    stale = [name for name in plan.COPIED if not plan.is_shipped_copy(paths.hook_dir / name)]
    unit = _plan_installed_unit(paths)
    # `csmd install` and the daemon decide which of the newer events are registered.
    outcomes = plan.install(config, plan.read_choice(paths), plan.find_installed_hosts(paths) or ["claude"])
    result: dict[str, Any] = {
        "from": str(record["version"]), "to": csmd.__version__, "hooks": stale,
        "settings": [str(change.path) for change in outcomes if change.changed],
        "service": unit.file if unit.changes else "", "daemon": _run_newer_daemon(paths, unit),
    }  # fmt: skip
    verb.print_answer(result, as_json, show_upgraded)
    raise_trouble(outcomes)


def _plan_installed_unit(paths: Paths) -> service.Plan:
    """Returns the plan for the installed unit; without a unit the daemon stays detached."""
    if manager := service.find_recorded_manager(paths):
        return service.plan_for(manager)
    if file := service.read_recorded_unit(paths):
        hint = "run `csmd upgrade` in your own session, or `csmd install`"
        raise CsmdError(f"{file} does not exist, or its service manager does not answer", hint=hint)
    return service.Plan(manager=None, why="no service is installed")


def _run_newer_daemon(paths: Paths, unit: service.Plan) -> dict[str, Any]:
    """Runs the new daemon and returns the version that it replaced; a daemon that a person stopped stays stopped."""
    if is_there(paths.stopped_mark) and service.find_process(paths) is None:
        service.install_unit(paths, unit, enable=False)
        return {"pid": None, "replaced": "", "started": False, "corrected": None}
    status = service.bring_up(paths, unit)
    return {"pid": status["daemon"]["pid"], **{name: status[name] for name in ("replaced", "started", "corrected")}}


def show_upgraded(value: dict[str, Any]) -> Screen:
    """Shows the parts that were upgraded."""
    daemon, is_new = value["daemon"], value["from"] != value["to"]
    if not (is_new or value["hooks"] or value["settings"] or value["service"] or daemon["started"]):
        yield render.RawLine(f"csmd {value['to']} is already running; nothing to do.")
        return
    previous = f"csmd {daemon['replaced']} ended, " if daemon["replaced"] else ""
    state = f"csmd {value['to']} runs, pid {daemon['pid']}" if daemon["pid"] else "stopped; `csmd start` starts it"
    corrected = daemon["corrected"] or {}
    yield from pairs([
        ("csmd", f"{value['from'] or 'an older version'} to {value['to']}" if is_new else value["to"]),
        ("hooks", ", ".join(value["hooks"]) or "not changed"),
        ("settings", ", ".join(value["settings"]) or "not changed"),
        ("service", f"updated: {value['service']}" if value["service"] else "not changed"),
        ("daemon", previous + state),
        ("corrected", status.describe_corrections(corrected) if any(corrected.values()) else ""),
    ])  # fmt: skip


@VERBS.add_group("plugin", "csmd as a plugin of the assistant.").command("path")
def plugin_path() -> None:
    """Print the plugin's directory, for the assistant to add."""
    click.echo(plan.find_shipped_folder().parent)
