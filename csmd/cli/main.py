"""The command line: parses, asks the daemon, shows the answer; each verb is a few lines.

Exit codes: 0 done, 1 told the user why, 2 usage, 3 no daemon, 70 a bug, 130 interrupted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import csmd
from csmd import client, wire
from csmd.cli import install as installing
from csmd.cli import service, settings, show
from csmd.config import Config, base_interpreter, child_environment, default_paths, load
from csmd.errors import CsmdError

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever read our output has gone: not an error of ours
        sys.exit(0)
    except CsmdError as error:
        click.echo(f"csmd: {error.what}", err=True)
        if error.hint:
            click.echo(f"  try: {error.hint}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001 - the last line: told as a bug, with a report
        path = _crash_report(error)
        click.echo(f"csmd: a bug: {type(error).__name__}. What happened is written to {path}", err=True)
        sys.exit(70)


def _crash_report(error: BaseException) -> Path:
    import traceback

    folder = default_paths().log_dir
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "crash.txt"
    frames = "".join(traceback.format_list(traceback.extract_tb(error.__traceback__)))
    # Where, not what: an error's message can quote somebody's text.
    path.write_text(f"csmd {csmd.__version__}, Python {sys.version}\n{frames}{type(error).__name__}\n")
    path.chmod(0o600)
    return path


def _config() -> Config:
    paths = default_paths()
    return load(paths=paths, extra_dirs=installing.recorded_dirs(paths))


def _ask(tool: str, **params: Any) -> Any:
    return client.call(default_paths(), tool, params)


def _out(value: Any, as_json: bool, human: Callable[[Any], None]) -> None:
    if as_json:
        click.echo(wire.pretty(value))
    else:
        human(value)


def _here(project: str | None, everywhere: bool = False) -> str:
    return "" if everywhere else str(Path(project or ".").expanduser().resolve())


def _project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--project", metavar="PATH", help="The project to look in; this directory's by default.")(
        command
    )
    return click.option("--all-projects", is_flag=True, help="Look in every project.")(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(csmd.__version__, prog_name="csmd")
def main() -> None:
    """A memory across sessions for AI coding assistants: local, without an LLM, without a network."""


@main.command()
@click.option("--dry-run", is_flag=True, help="Show what would be written and change nothing.")
@click.option("--no-start", is_flag=True, help="Do not start the daemon nor import anything.")
@json_option
def install(dry_run: bool, no_start: bool, as_json: bool) -> None:
    """Put the hooks into your assistant's settings, start the daemon, import past sessions."""
    config = _config()
    changes = installing.plan(config)
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
        status = service.start(config)
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
    """Take the hooks out of your assistant's settings and stop the daemon; memories stay on disk."""
    config = _config()
    restored = installing.uninstall(config)
    stopped = service.stop(config, by_user=True)
    if as_json:
        click.echo(wire.pretty({"restored": restored, "stopped": stopped, "home": str(config.paths.home)}))
        return
    for path in restored:
        click.echo(f"restored {path}")
    click.echo(f"what csmd remembers is still in {config.paths.home}; delete that directory to remove it too")


@main.command()
def daemon() -> None:
    """Run the daemon in the foreground until it is told to stop."""
    # Another program in this process: the command line itself knows nothing of the store.
    os.execv(sys.executable, [sys.executable, "-m", "csmd.daemon"])  # noqa: S606


@main.command()
@json_option
def start(as_json: bool) -> None:
    """Start the daemon in the background."""
    _out(service.start(_config()), as_json, lambda value: click.echo(
        f"the daemon {'runs' if value['started'] else 'was running already'}, pid {value['daemon']['pid']}"))  # fmt: skip


@main.command()
@json_option
def stop(as_json: bool) -> None:
    """Stop the daemon; hooks keep what happens meanwhile."""
    stopped = service.stop(_config(), by_user=True)
    _out(
        {"stopped": stopped},
        as_json,
        lambda value: click.echo("stopped" if value["stopped"] else "no daemon was running"),
    )


@main.command()
@json_option
def restart(as_json: bool) -> None:
    """Stop the daemon and start it again."""
    config = _config()
    service.stop(config, by_user=False)
    _out(service.start(config), as_json, lambda value: click.echo(f"the daemon runs, pid {value['daemon']['pid']}"))


@main.command()
@json_option
def status(as_json: bool) -> None:
    """Show whether everything works, and what is known."""
    _out(_ask("csm_runtime_status"), as_json, show.status)


@main.command()
@click.argument("query")
@_project_options
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 200))
@click.option("--kind", type=click.Choice(["memory", "turn", "all"]), default="all", show_default=True)
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@json_option
def search(
    query: str, project: str | None, all_projects: bool, limit: int, kind: str, explain: bool, as_json: bool
) -> None:
    """Search memories and past conversations."""
    begun = time.monotonic()
    found = _ask(
        "csm_memory_search", query=query, project=_here(project, all_projects), limit=limit, kind=kind, explain=explain
    )
    value = {"query": query, "took_ms": round((time.monotonic() - begun) * 1000, 1), **found}
    _out(value, as_json, lambda shown: show.hits(shown, explain=explain))


@main.command()
@_project_options
@json_option
def memories(project: str | None, all_projects: bool, as_json: bool) -> None:
    """List what is remembered here."""
    _out(_ask("csm_memory_list", project=_here(project, all_projects)), as_json, show.memories)


@main.command("show")
@click.argument("memory_id", metavar="ID")
@json_option
def show_memory(memory_id: str, as_json: bool) -> None:
    """Show one memory and where it was said."""
    _out(_ask("csm_memory_show", id=memory_id), as_json, show.memory)


@main.command()
@click.argument("text")
@click.option("--project", metavar="PATH", help="The project it holds in; this directory's by default.")
@click.option("--everywhere", is_flag=True, help="It holds in every project.")
@click.option("--pin", is_flag=True, help="Never let it fade.")
@json_option
def remember(text: str, project: str | None, everywhere: bool, pin: bool, as_json: bool) -> None:
    """Remember a statement; typed in a terminal it counts as yours, else as your assistant's."""
    found = _ask(
        "csm_memory_save", text=text, project=_here(project, everywhere), pin=pin, by_person=sys.stdin.isatty()
    )
    _out(
        found,
        as_json,
        lambda value: click.echo(f"{'remembered' if value['new'] else 'confirmed'} as {value['id']}: {value['text']}"),
    )


@main.command()
@click.argument("memory_id", metavar="ID")
@json_option
def forget(memory_id: str, as_json: bool) -> None:
    """Forget a memory for good; the conversation it came from stays."""
    _out(_ask("csm_memory_delete", id=memory_id), as_json, lambda value: click.echo(f"forgotten: {value['text']}"))


@main.command()
@click.option("--project", metavar="PATH", help="This directory's by default.")
@json_option
def brief(project: str | None, as_json: bool) -> None:
    """Show what a session that starts here would be told."""
    nothing = "nothing: there is no memory for this project yet"
    _out(
        _ask("csm_memory_context", project=_here(project)),
        as_json,
        lambda value: show.injection(value, nothing=nothing),
    )


@main.command()
@click.option("--project", metavar="PATH", help="This directory's by default.")
@click.option("--prompt", required=True, help="What the user would type.")
@json_option
def recall(project: str | None, prompt: str, as_json: bool) -> None:
    """Show what would be added to a prompt."""
    found = _ask("csm_memory_recall", project=_here(project), prompt=prompt)
    _out(found, as_json, lambda value: show.injection(value, nothing="nothing: no memory is relevant enough"))


@main.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@vectors_option
@json_option
def import_(path: Path, no_vectors: bool, as_json: bool) -> None:
    """Take in transcripts: a tree laid out like ~/.claude/projects, or a file."""
    _work("csm_import", {"path": str(path.resolve()), "vectors": not no_vectors}, as_json)


@main.command()
@vectors_option
@json_option
def sync(no_vectors: bool, as_json: bool) -> None:
    """Take in everything that is on disk now, and wait for it."""
    _work("csm_sync", {"vectors": not no_vectors}, as_json)


def _work(tool: str, params: dict[str, Any], as_json: bool) -> None:
    with show.progress() as bar:
        result = client.work(default_paths(), tool, params, watch=bar)
    _out(result, as_json, show.imported)


@main.group()
def model() -> None:
    """The embedding model: search by meaning needs one."""


@model.command("fetch")
@json_option
def model_fetch(as_json: bool) -> None:
    """Download the embedding model (90 MB, once) and use it: the only command that touches the network."""
    config = _config()
    _ask("csm_tools")  # before 90 MB are fetched: is there a daemon to give them to
    folder = config.paths.models / ".fetched"
    name = config.settings.embed_model
    command = [sys.executable, "-m", "csmd.store.embed_worker", "--fetch", str(folder), "--model", name]
    code = subprocess.run(command, env=child_environment(), check=False).returncode
    if code:
        raise CsmdError("the model was not fetched", hint="without a network: csmd model add DIR")
    _out(client.call(config.paths, "csm_model_add", {"path": str(folder)}, patience_s=120), as_json, _model_shown)


@model.command("add")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def model_add(folder: Path, as_json: bool) -> None:
    """Use the embedding model in DIR: model.onnx and its tokenizer's files."""
    found = client.call(default_paths(), "csm_model_add", {"path": str(folder.resolve())}, patience_s=120)
    _out(found, as_json, _model_shown)


def _model_shown(value: dict[str, Any]) -> None:
    click.echo(f"using {value['model']}, {value['dim']} dimensions; what is stored gets its vectors in the background")


@main.group()
def hooks() -> None:
    """csmd's hooks in the assistant's settings."""


@hooks.command("print")
def hooks_print() -> None:
    """Print the JSON that `install` puts into settings.json, to paste by hand."""
    click.echo(wire.pretty(settings.hooks_json(base_interpreter(), default_paths().home)))


@main.command()
@click.argument("name")
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="A parameter; may be given several times.")
@click.option("--json", "as_json", is_flag=True, hidden=True, help="The answer is always JSON.")
def tool(name: str, params: tuple[str, ...], as_json: bool) -> None:
    """Ask the daemon one thing by its tool name; `csmd tool list` names them."""
    del as_json
    pairs = dict(param.partition("=")[::2] for param in params)
    click.echo(wire.pretty(_ask("csm_tools" if name == "list" else name, **pairs)))
