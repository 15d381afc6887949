"""Commands that move data in and out: import, export, sync."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import click

from csmd import wire
from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, dim, glue, pair, pairs, size, warning
from csmd.config import default_paths
from csmd.paths import is_file
from csmd.text.ages import age
from csmd.text.display import amount

VERBS = verb.Verbs()
NO_VECTORS = verb.flag("--no-vectors", "vectors", flag_value=False, default=True, help="Do not wait for the vectors.")
#: The file that an export writes.
EXPORT_FILE = "memories.jsonl"
#: Field of an import's result -> sentence about the memories that it left out or changed.
IMPORT_NOTES = {
    "forgotten": "{} left out: you made csmd forget them",
    "lowered": "{} imported as an assistant's: import the file again in a terminal and confirm that they are yours, "
    "or answer `csmd review`",
    "vouched": "{} imported with the confidence of the file: you vouch for them",
}


@VERBS.action(
    "import", verb.argument("path", type=click.Path(exists=True, path_type=Path)),
    verb.project_option("The project of notes and exported memories that name none."),
    verb.flag("--mine", help="Exported memories are yours: do not ask. Only in a terminal."),
    verb.DRY_RUN, verb.YES, NO_VECTORS,
)  # fmt: skip
def import_(
    path: Path, project: str | None, mine: bool, dry_run: bool, yes: bool, vectors: bool, as_json: bool
) -> None:
    """Import transcripts, exported memories, or memories of other programs.

    PATH is a transcript or a tree of them such as ~/.claude/projects, an export of `csmd export`, a claude-mem
    database, a basic-memory folder, a mem0 JSON export, a file of the MCP memory server, or Claude Code's memory
    directory. It is recognised by its content. Memories of other programs are previewed, and wait in `csmd review`
    once imported. Nothing is imported twice.
    """
    params = {
        "path": os.path.realpath(path), "vectors": vectors, "dry_run": dry_run, "asking": verb.resolve_project(None),
        "project": verb.project_params(project)["project"] if project else "",
        "by_person": not dry_run and _ask_to_vouch(path, mine=mine, as_json=as_json),
    }  # fmt: skip
    value = verb.run_job("csm_import", **params)
    if not value.get("preview"):
        verb.print_answer(value, as_json, show_imported)
        return
    if dry_run or not value["new"]:
        verb.print_answer(value, as_json, show_preview)
        return
    if not as_json:
        render.show(show_preview(value))
    verb.confirm(f"Import {amount(value['new'], 'memory')}?", yes=yes)
    verb.print_answer(verb.run_job("csm_import", **params, confirmed=True), as_json, show_imported)


def show_preview(value: dict[str, Any]) -> Screen:
    """Shows the memories or transcripts that an import would read."""
    if "samples" not in value:
        count = amount(value["memories"], "memory") if "memories" in value else amount(value["files"], "transcript")
        yield pair("found", f"{count} ({value['source']})")
        yield from map(warning, value.get("problems", ()))
        return
    yield pair("source", value["source"])
    yield pair("found", _names_with_counts(value["kinds"]) or "no memories")
    yield pair("new", f"{value['new']}, {value['known']} known")
    own = {name: number for name, number in value["projects"].items() if name}
    current = value["here"] and f"{value['here']}, this directory's (--project PATH names another)"
    yield from pairs([("projects", _names_with_counts(own)), ("project", current)])
    yield from (pair("sample", f"[{sample['kind']}] {sample['text']}") for sample in value["samples"])
    yield from _show_skipped(value)


def _names_with_counts(numbers: dict[str, int]) -> str:
    """Returns names with counts, `note (3)`: the words of other programs have no plural here."""
    return ", ".join(f"{name} ({number:,})" for name, number in numbers.items())


def _show_skipped(value: dict[str, Any]) -> Screen:
    """Shows the entries that an import leaves out, and why."""
    yield from (pair("skipped", f"{reason} ({number:,})") for reason, number in value["skipped"].items())
    if value["unplaced"]:
        yield pair("", f"{', '.join(value['unplaced'])}: choose their project with --project PATH")
    if value["redactions"]:
        yield pair("redacted", amount(value["redactions"], "secret"))


def _ask_to_vouch(path: Path, *, mine: bool, as_json: bool) -> bool:
    """Whether a person vouches for exported memories, so that their recorded authors count."""
    if mine:
        verb.require_terminal()
        return True
    is_export = path.name == EXPORT_FILE or is_file(path / EXPORT_FILE)
    if as_json or not is_export or not verb.is_interactive():
        return False
    question = "Did you export these memories yourself? If not, they wait for you in `csmd review`."
    return verb.ask_yes_no(question, default=False)


def show_imported(value: dict[str, Any]) -> Screen:
    """Shows the result of an import or a sync."""
    nouns = {"turns_new": "new turn", "memories_new": "new memory", "vectors": "vector"}
    # Growing transcripts are read at once, so a sync often finds nothing.
    new = ", ".join(nonzero_amounts(value, nouns)) or "nothing new"
    repeats = nonzero_amounts(value, {"memories_known": "memory", "turns_known": "turn"})
    files = amount(value["files"], "file" if "memories_known" in value else "transcript")
    took = glue(f"{value['took_s']:.1f} s")
    yield f"{files} read: {new}{f', {repeats[0]} known' if repeats else ''}, {took}"
    for name, text in IMPORT_NOTES.items():
        if value.get(name):
            yield warning(text.format(amount(value[name], "memory")))
    for placement in value.get("placed", ()):
        yield Line(_describe_placement(placement), style="" if placement["is"] else "yellow")
    yield from map(warning, value.get("problems", ()))
    if "unplaced" in value:
        yield from _show_skipped({**value, "redactions": 0})
        if value["memories_new"]:
            yield "searchable, but not shown to sessions until you keep them in `csmd review`"
    yield from show_remainder(value)


def _describe_placement(placement: dict[str, Any]) -> str:
    """Describes where the memories of a directory on another machine, or of another clone, were placed."""
    memories, is_single = amount(placement["memories"], "memory"), placement["memories"] == 1
    remote = placement["remote"]
    if placement["is"] == placement["was"]:
        verb_form = "is" if is_single else "are"
        return f"{memories} {verb_form} in {placement['was']}, a separate clone of {remote} on this machine"
    if placement["is"]:
        return f"{memories} of {placement['was']} moved to {placement['is']}: the same repository, {remote}"
    condition = f", until you work in a clone of {remote}" if remote else ": it has no git remote"
    verb_form = "stays" if is_single else "stay"
    return f"{memories} {verb_form} under {placement['was']}, which is not on this machine{condition}"


def show_remainder(value: dict[str, Any]) -> Screen:
    """Shows the unreadable lines, the redacted secrets, and the sessions that are read in the background."""
    if lines := value["bad_lines"]:
        yield warning(f"{amount(lines, 'line')} could not be read; see the quarantine")
    if value["redactions"]:
        yield dim(f"{amount(value['redactions'], 'secret')} redacted")
    yield from render.degraded(value["degraded"])
    if backlog := value.get("left"):
        eta_s = backlog["eta_s"]
        eta = "" if eta_s is None else ", less than a minute" if eta_s < 60 else f", about {age(eta_s // 60 * 60)}"
        rest = f"{amount(backlog['sessions_left'], 'session')} ({size(backlog['bytes_left'])}{eta})"
        yield f"the rest, {rest}, continues in the background"


@VERBS.action(
    "export", verb.option("--to", metavar="DIR", help="The directory; created if new. --markdown alone prints."),
    verb.flag("--markdown", help="Write memories.md, to read, instead of memories.jsonl, to import."),
    *verb.PROJECTS,
)  # fmt: skip
def export(to: str | None, markdown: bool, as_json: bool, **options: Any) -> None:
    """Write memories to a directory, one a line.

    `csmd import DIR` imports them, here or elsewhere. `csmd export --markdown` prints them.
    """
    if not to and not markdown:
        raise click.UsageError("give --to DIR, or --markdown to print them")
    if to:
        path = str(Path(to).expanduser().absolute())
        params = {"path": path, "markdown": markdown, "as_json": as_json, **options}
        verb.reply("csm_memory_export", show_exported, params, is_job=True)
        return
    scope = verb.project_params(options["project"], options["all_projects"])
    verb.ask("csm_tools")  # fails before anything is written if no daemon runs
    # In csmd's home, since a service may have a /tmp of its own.
    with tempfile.TemporaryDirectory(prefix=".export-", dir=default_paths().home) as folder:
        value = verb.run_job("csm_memory_export", path=folder, markdown=True, **scope)
        text = Path(value["path"]).read_text()
    click.echo(wire.pretty({**value, "path": "", "text": text}) if as_json else text, nl=as_json)


def show_exported(value: dict[str, Any]) -> Screen:
    """Shows the path of an export, and the number of memories that are not in it."""
    source = f"of {value['project']} and of all projects" if value["project"] else "of every project"
    yield f"{amount(value['memories'], 'memory')} {source} written to {value['path']}"
    if value["elsewhere"]:
        hint = ": --all-projects exports them, too" if value["project"] else ""
        yield warning(f"{amount(value['elsewhere'], 'memory')} of other projects are not included{hint}")
    if value["path"].endswith(EXPORT_FILE):
        yield dim("csmd import reads them, here or on another machine")
    if value["forgotten"]:
        yield dim("Memories that you forgot here stay on other machines: forget them there, too")


VERBS.add_tool(
    "sync", "csm_sync", show_imported, "Read all transcripts on disk now, and wait for the end.", NO_VECTORS,
    scope="none", is_job=True,
)  # fmt: skip


def nonzero_amounts(counts: dict[str, int], nouns: dict[str, str]) -> list[str]:
    """Returns the amounts that are not 0, as `2 memories`."""
    return [amount(counts[name], noun) for name, noun in nouns.items() if counts.get(name)]
