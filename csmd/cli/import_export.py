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
from csmd.errors import CsmdError
from csmd.paths import is_file
from csmd.text.ages import age
from csmd.text.display import amount

#: The verbs of this module.
VERBS = verb.Verbs()


NO_VECTORS = verb.flag("--no-vectors", "vectors", flag_value=False, default=True, help="Do not wait for the vectors.")
#: The file that an export writes.
EXPORTED = "memories.jsonl"
#: Field of an import's result -> sentence about the memories that it left out or changed.
IMPORT_NOTES = {
    "forgotten": "{} left out: you made csmd forget them",
    "lowered": "{} taken in as an assistant's: import the file again in a terminal and say that they are yours, "
    "or answer `csmd review`",
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
    vouched = not dry_run and _ask_to_vouch(path, mine=mine, as_json=as_json)
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
    yield pair("found", _names_with_counts(value["kinds"]) or "no memories")
    yield pair("new", f"{value['new']}, {value['known']} known")
    own = {name: number for name, number in value["projects"].items() if name}
    here = value["here"] and f"{value['here']}, this directory's (--project PATH names another)"
    yield from pairs([("projects", _names_with_counts(own)), ("project", here)])
    yield from (pair("sample", f"[{sample['kind']}] {sample['text']}") for sample in value["samples"])
    yield from _show_skipped(value)


def _names_with_counts(numbers: dict[str, int]) -> str:
    """Names with counts, `note (3)`: the words of other programs have no plural here."""
    return ", ".join(f"{name} ({number:,})" for name, number in numbers.items())


def _show_skipped(value: dict[str, Any]) -> Screen:
    """What an import leaves out, and why."""
    yield from (pair("skipped", f"{reason} ({number:,})") for reason, number in value["skipped"].items())
    if value["unplaced"]:
        yield pair("", f"{', '.join(value['unplaced'])}: --project PATH says where these go")
    if value["redactions"]:
        yield pair("redacted", amount(value["redactions"], "secret"))


def _ask_to_vouch(path: Path, *, mine: bool, as_json: bool) -> bool:
    """Whether a person vouches for exported memories, so that the file's authors are believed."""
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
    # Growing transcripts are read at once, so a sync often finds nothing.
    new = ", ".join(nonzero_amounts(value, nouns)) or "nothing new, everything was in already"
    old = [f", {text} known" for text in nonzero_amounts(value, {"memories_known": "memory", "turns_known": "turn"})][
        :1
    ]
    read = amount(value["files"], "file" if "memories_known" in value else "transcript")
    took = glue(f"{value['took_s']:.1f} s")
    yield f"{read} read: {new}{''.join(old)}, {took}"
    yield from (
        warning(text.format(amount(value[name], "memory"))) for name, text in IMPORT_NOTES.items() if value.get(name)
    )
    for place in value.get("placed", ()):
        yield Line(_describe_placement(place), style="" if place["is"] else "yellow")
    yield from map(warning, value.get("problems", ()))
    if "unplaced" in value:
        yield from _show_skipped({**value, "redactions": 0})
        if value["memories_new"]:
            yield "they are found by search; no session is told one until you keep it in `csmd review`"
    yield from show_left(value)


def _describe_placement(place: dict[str, Any]) -> str:
    """Where the memories of a directory that is not on this machine, or is another clone, were placed."""
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
    verb.ask("csm_tools")  # fails before anything is written if no daemon runs
    # In csmd's home, since a service may have a /tmp of its own.
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


def nonzero_amounts(counts: dict[str, int], nouns: dict[str, str]) -> list[str]:
    """The amounts that are not 0, as in `2 memories`."""
    return [amount(counts[name], noun) for name, noun in nouns.items() if counts.get(name)]
