"""The verbs that take something out: forget, purge, scan; what cannot be undone is said and asked first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from csmd import client
from csmd.cli import show, show_privacy
from csmd.cli.ask import ask, here, json_option, looking, out, person_is_there
from csmd.config import default_paths
from csmd.errors import CsmdError

KINDS = ("memory", "turn", "session", "project", "text")


@click.command()
@click.argument("what", metavar="ID|WHAT")
@click.option("--purge", is_flag=True, help="Remove it from everything csmd holds.")
@click.option("--as", "kind", type=click.Choice(KINDS), default=None, help="What a purge is of; else it is found out.")
@click.option("--dry-run", is_flag=True, help="Show what a purge would remove.")
@click.option("--yes", is_flag=True, help="Do not ask before a purge.")
@click.option("--lift", is_flag=True, help="Let in again what was purged.")
@json_option
def forget(what: str, purge: bool, kind: str | None, dry_run: bool, yes: bool, lift: bool, as_json: bool) -> None:
    """Forget a memory for good. With --purge: a memory, turn, session, project or text (- asks for it) with all traces."""
    if not purge and not lift:
        if kind or dry_run or yes:
            raise click.UsageError("--as, --dry-run and --yes go with --purge")
        found = ask("csm_memory_delete", id=what, asking=here(None), by_person=person_is_there())
        out(found, as_json, show_privacy.forgotten)
        return
    what = click.prompt("what", hide_input=True) if what == "-" else what
    # What was purged is known no more, so that only its path can be lifted.
    named = looking(what)["project"] if kind == "project" and not lift else _absolute(what, kind)
    params = {"what": named, "kind": kind or ""}
    if lift:
        lifted = ask("csm_privacy_lift", **params, by_person=person_is_there())
        out(lifted, as_json, show_privacy.lifted)
        if not lifted["lifted"]:
            raise SystemExit(1)  # told why
        return
    by_person = person_is_there()
    if not by_person and not dry_run:
        raise CsmdError("only a person at a terminal can have csmd purge something", hint="type it in a terminal")
    if dry_run or not yes:
        looked = {**params, "dry_run": True, "asking": here(None), "by_person": by_person}
        planned = _work("csm_privacy_purge", looked)
        if dry_run:
            out(planned, as_json, show_privacy.planned)
            return
        show_privacy.planned(planned, to_stderr=as_json)
        click.confirm("Purge it from everything csmd holds? It cannot be undone.", abort=True, err=as_json)
    done = _work("csm_privacy_purge", {**params, "by_person": by_person})
    out(done, as_json, show_privacy.purged)
    if done["left"]:
        raise SystemExit(1)  # told why


def _absolute(what: str, kind: str | None) -> str:
    """A project's path as the daemon knows it; everything else as it was typed."""
    place = Path(what)
    named = kind == "project" or (kind is None and (place.is_absolute() or what.startswith((".", "~"))))
    place = place.expanduser() if named else place
    return str(place.resolve()) if kind == "project" or (named and place.is_dir()) else what


@click.command()
@click.option("--fix", is_flag=True, help="Take out what is found; backups that hold it are removed.")
@click.option("--transcripts", is_flag=True, help="Count what the assistant's own transcripts hold, too.")
@json_option
def scan(fix: bool, transcripts: bool, as_json: bool) -> None:
    """Look for secrets in what csmd holds, by the rules of today."""
    params = {"fix": fix, "transcripts": transcripts, "by_person": fix and person_is_there()}
    out(_work("csm_privacy_scan", params), as_json, show_privacy.scanned)


def _work(tool: str, params: dict[str, Any]) -> dict[str, Any]:
    with show.progress() as bar:
        return client.work(default_paths(), tool, params, watch=bar)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (forget, scan)
