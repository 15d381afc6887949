"""The command line: parses, asks the daemon, shows the answer; each verb is a few lines.

Exit codes: 0 done, 1 told the user why, 2 usage, 3 no daemon, 70 a bug, 130 interrupted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import csmd
from csmd import client, wire
from csmd.cli import ask as asking
from csmd.cli import context as instructing
from csmd.cli import install as installing
from csmd.cli import privacy, service, session, settings, show, show_status, upkeep
from csmd.cli import project as projects
from csmd.cli.ask import json_option
from csmd.config import Config, base_interpreter, child_environment, default_paths, load
from csmd.errors import CsmdError, DaemonUnreachable

vectors_option = click.option("--no-vectors", is_flag=True, help="Do not wait for the vectors.")


def entry() -> None:
    """The `csmd` command; every error leaves through here."""
    try:
        main.main(standalone_mode=False, prog_name="csmd")
    except click.exceptions.Abort:
        sys.exit(130)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except CsmdError as error:
        click.echo(f"csmd: {error.what}", err=True)
        if error.hint:
            click.echo(f"  try: {error.hint}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001 - the last line: told as a bug, with a report
        path = _crash_report(error)
        click.echo(f"csmd: a bug: {type(error).__name__}. What happened is written to {path}", err=True)
        sys.exit(70)


def _crash_report(error: BaseException) -> Path | str:
    """Where the report stands; a place that cannot be written must not hide the bug."""
    import traceback

    path = default_paths().log_dir / "crash.txt"
    frames = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)))
    # Where, not what: an error's message can quote somebody's text.
    report = f"csmd {csmd.__version__}, Python {sys.version}\n{frames}{type(error).__name__}\n"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(report)
    except OSError:
        return f"no file, as {path.parent} is not writable:\n{report}"
    return path


def _config() -> Config:
    paths = default_paths()
    return load(paths=paths, extra_dirs=installing.recorded_dirs(paths))


class _Verbs(click.Group):
    """The verbs; that whoever read our output has gone is no error of ours (click itself would say 1)."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes nowhere
            return None


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(csmd.__version__, prog_name="csmd")
def main() -> None:
    """A memory across sessions for AI coding assistants: local, without an LLM, without a network."""


@main.command()
@click.option("--dry-run", is_flag=True, help="Show what would be written and change nothing.")
@click.option("--no-start", is_flag=True, help="Do not start the daemon nor import anything.")
@json_option
def install(dry_run: bool, no_start: bool, as_json: bool) -> None:
    """Put the hooks in place, start the daemon, import past sessions."""
    config = _config()
    changes = installing.plan(config)
    if dry_run and as_json:
        planned = [{"path": str(c.path), "diff": settings.diff(c.before, c.after, c.path)} for c in changes]
        click.echo(wire.pretty({"home": str(config.paths.home), "settings": planned}))
        return
    if dry_run:
        click.echo("csmd's own directories:")
        for line in installing.own_files(config.paths):
            click.echo(f"  {line}")
        for change in changes:
            difference = settings.diff(change.before, change.after, change.path)
            click.echo(f"\n{change.path}:" if difference else f"\n{change.path}: as it should be")
            click.echo(difference, nl=False)
        return
    changed = installing.install(config, changes)
    result: dict[str, Any] = {
        "home": str(config.paths.home),
        "settings": [{"path": str(c.path), "changed": str(c.path) in changed} for c in changes],
        "daemon": None,
        "import": None,
    }
    if not as_json:
        for change in changes:
            done = "hooks added to" if str(change.path) in changed else "hooks are already in"
            click.echo(f"{done} {change.path}")
    if not no_start:
        status = service.start(config.paths)
        if status["version"] != csmd.__version__:
            service.stop(config.paths, by_user=False)  # the daemon of before an upgrade
            status = service.start(config.paths)
        result["daemon"] = {"pid": status["daemon"]["pid"], "started": status["started"]}
        with show.progress() as bar:
            result["import"] = client.work(config.paths, "csm_sync", {"vectors": False}, watch=bar)
        if not as_json:
            click.echo(f"the daemon runs, pid {status['daemon']['pid']}")
            show.imported(result["import"])
            if not status["model"]["name"]:
                click.echo("search is by words alone until `csmd model fetch` (90 MB, once) brings the embedding model")
    if as_json:
        click.echo(wire.pretty(result))


@main.command()
@json_option
def uninstall(as_json: bool) -> None:
    """Take the hooks out and stop the daemon; memories stay on disk."""
    paths = default_paths()  # and no configuration: one that is damaged must not keep anybody from leaving
    restored = installing.uninstall(paths)
    stopped = service.stop(paths, by_user=True)
    if as_json:
        click.echo(wire.pretty({"restored": restored, "stopped": stopped, "home": str(paths.home)}))
        return
    for path in restored:
        click.echo(f"restored {path}")
    click.echo(f"what csmd remembers is still in {paths.home}; delete that directory to remove it too")


@main.command()
def daemon() -> None:
    """Run the daemon in the foreground until it is told to stop."""
    # Another program in this process: the command line itself knows nothing of the store.
    # -P here and wherever csmd starts a module: the directory one stands in is no place to import from.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "csmd.daemon"])  # noqa: S606


@main.command()
@json_option
def start(as_json: bool) -> None:
    """Start the daemon in the background."""
    asking.out(service.start(default_paths()), as_json, lambda value: click.echo(
        f"the daemon {'runs' if value['started'] else 'was running already'}, pid {value['daemon']['pid']}"))  # fmt: skip


@main.command()
@json_option
def stop(as_json: bool) -> None:
    """Stop the daemon; hooks keep what happens meanwhile."""
    stopped = service.stop(default_paths(), by_user=True)
    asking.out(
        {"stopped": stopped},
        as_json,
        lambda value: click.echo("stopped" if value["stopped"] else "no daemon was running"),
    )


@main.command()
@json_option
def restart(as_json: bool) -> None:
    """Stop the daemon and start it again."""
    paths = default_paths()
    service.stop(paths, by_user=False)
    asking.out(
        service.start(paths), as_json, lambda value: click.echo(f"the daemon runs, pid {value['daemon']['pid']}")
    )


@main.command()
@json_option
def status(as_json: bool) -> None:
    """Show whether everything works, and what is known."""
    try:
        value = asking.ask("csm_runtime_status")
    except DaemonUnreachable as error:
        raise service.why_not(default_paths(), error) from None
    value["degraded"] += installing.trouble(default_paths())
    asking.out(value, as_json, show_status.status)


@main.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@vectors_option
@json_option
def import_(path: Path, no_vectors: bool, as_json: bool) -> None:
    """Take in transcripts: a file, or a tree like ~/.claude/projects."""
    _work("csm_import", {"path": str(path.resolve()), "vectors": not no_vectors}, as_json, show.imported)


@main.command()
@vectors_option
@json_option
def sync(no_vectors: bool, as_json: bool) -> None:
    """Take in everything that is on disk now, and wait for it."""
    _work("csm_sync", {"vectors": not no_vectors}, as_json, show.imported)


def _work(tool: str, params: dict[str, Any], as_json: bool, human: Callable[[Any], None]) -> None:
    with show.progress() as bar:
        result = client.work(default_paths(), tool, params, watch=bar)
    asking.out(result, as_json, human)


@main.group()
def model() -> None:
    """The embedding model: search by meaning needs one."""


@model.command("fetch")
@json_option
def model_fetch(as_json: bool) -> None:
    """Download the embedding model (90 MB, once) and use it. No other command touches the network."""
    config = _config()
    asking.ask("csm_tools")  # before 90 MB are fetched: is there a daemon to give them to
    folder = config.paths.models / ".fetched"
    try:
        command = _fetch_command(folder, config.settings.embed_model)
        code = subprocess.run(command, env=child_environment(), check=False).returncode
        if code:
            raise CsmdError("the model was not fetched", hint="without a network: csmd model add DIR")
        _work("csm_model_add", {"path": str(folder)}, as_json, _model_shown)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # the daemon has its own copy, or nobody wants this one


def _fetch_command(folder: Path, name: str) -> list[str]:
    return [sys.executable, "-P", "-m", "csmd.store.embed_worker", "--fetch", str(folder), "--model", name]


@model.command("add")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def model_add(folder: Path, as_json: bool) -> None:
    """Use the embedding model in DIR. It holds model.onnx and its tokenizer's files."""
    _work("csm_model_add", {"path": str(folder.resolve())}, as_json, _model_shown)


def _model_shown(value: dict[str, Any]) -> None:
    click.echo(f"using {value['model']}, {value['dim']} dimensions; what is stored gets its vectors in the background")


@main.group()
def hooks() -> None:
    """csmd's hooks in the assistant's settings."""


@hooks.command("print")
def hooks_print() -> None:
    """Print the JSON that `install` puts into settings.json. It can be pasted by hand."""
    click.echo(wire.pretty(settings.hooks_json(base_interpreter(), default_paths().home)))


for verb in (*asking.VERBS, *privacy.VERBS, *session.VERBS, *projects.VERBS, *instructing.VERBS, *upkeep.VERBS):
    main.add_command(verb)
