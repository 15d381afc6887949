"""What `csmd install` and `csmd uninstall` print: what would change, what was done, what is left; values in, text out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from csmd import text
from csmd.cli import changes, install, settings, show, show_service
from csmd.cli.changes import Change, Outcome
from csmd.cli.clients import Choice
from csmd.cli.leaving import Left, Part, programs
from csmd.config import Config
from csmd.paths import Paths

#: So many names of what is left are told.
MOST_NAMES = 5


def plan(config: Config, planned: Sequence[Change], seen: Sequence[Path], choice: Choice | None) -> None:
    """What installing would write, and where; `choice` is None as long as nobody knows which clients are in use."""
    click.echo("csmd's own directories:")
    for line in install.own_files(config.paths):
        click.echo(f"  {line}")
    click.echo("files of the assistant's:")
    for change in planned:
        click.echo(f"  {change.path}{_link(change.path)}")
    _seen(seen)
    if choice is None:
        click.echo(f"  (later with {text.listed(tuple(settings.NEWER))}, if every Claude Code in use knows them)")
    else:
        events(choice, ())
    differences(planned)


def differences(planned: Sequence[Change]) -> None:
    """The difference that each file would see."""
    for change in planned:
        difference = changes.shown(change)
        state = ":" if difference else ": left alone" if change.trouble else ": as it should be"
        click.echo(f"\n{change.path}{state}")
        click.echo(difference, nl=False)
        _out(change.out)


def installed(outcomes: Sequence[Outcome], seen: Sequence[Path]) -> None:
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
        show_service.say(said)
        for line in copied:
            click.echo(f"  {line}")


def events(choice: Choice, before: Sequence[str]) -> None:
    """Which of the newer events came, went or stayed out, as far as that is news."""
    if new := [event for event in choice.events if event not in before]:
        click.echo(f"with {text.listed(new)}, which every Claude Code in use knows")
    if gone := [event for event in before if event not in choice.events]:
        click.echo(f"taken out again: {', '.join(gone)}; {_why(choice)}")
    out = [event for event in settings.NEWER if event not in choice.events and event not in gone]
    if out:
        click.echo(f"{text.listed(out)} stay out: {_why(choice)}")


def settled(choice: Choice, gone: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    """What `csmd hooks settle` did."""
    if not gone:
        click.echo("every registered event is known to every client in use")
        return
    click.echo(f"taken out: {', '.join(gone)}; {_why(choice)}")
    for one in outcomes:
        click.echo(f"{'left alone:' if one.trouble else 'changed' if one.changed else 'nothing to do in'} {one.path}")


def _why(choice: Choice) -> str:
    old = text.version_of(choice.kept_out_by) is not None
    return f"Claude Code {choice.kept_out_by} is in use, which does not know them" if old else choice.kept_out_by


def _seen(folders: Sequence[Path]) -> None:
    for folder in folders:
        click.echo(f"sessions write to {folder}: it is taken in, too")


def _link(path: Path) -> str:
    real = path.resolve()
    return f"\n    which is {real}" if real != path.absolute() else ""


# --- leaving


def leaving(
    paths: Paths, planned: Sequence[Change], parts: Sequence[Part], counts: Mapping[str, int], *, purge: bool
) -> None:
    """What uninstalling would change and remove."""
    click.echo(f"the daemon would be stopped, and {paths.hook_dir} removed")
    differences(planned)
    if not planned:
        click.echo("no file of the assistant's holds entries of csmd's")
    click.echo()
    if purge:
        going(paths, parts, counts)
    else:
        remains(paths)


def left(outcomes: Sequence[Outcome], *, stopped: bool) -> None:
    """What uninstalling did."""
    click.echo("the daemon is stopped" if stopped else "no daemon was running")
    for one in outcomes:
        state = "left alone:" if one.trouble else "restored" if one.changed else "nothing of csmd's was in"
        click.echo(f"{state} {one.path}{_link(one.path)}")


def remains(paths: Paths) -> None:
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
    return f"{memories}, {text.amount(counts['turns'], 'turn')}, {text.amount(counts['sessions'], 'session')}"


def going(paths: Paths, parts: Sequence[Part], counts: Mapping[str, int]) -> None:
    """What a purge removes: kinds, numbers, sizes, and where; `counts` are of what is remembered, {} for unknown."""
    if not parts:
        click.echo("there is nothing of csmd's to remove")
        return
    click.echo("this goes for good:")
    width = max(len(part.what) for part in parts)
    for part in parts:
        files = "1 file" if len(part.files) == 1 else f"{len(part.files)} files"
        click.echo(f"  {part.what:<{width}}  {files:>10}  {show.size(part.bytes):>9}")
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


def question(parts: Sequence[Part]) -> str:
    """What is asked before a purge."""
    if not parts:
        return "Take csmd out of the assistant's files?"
    files = text.amount(sum(len(part.files) for part in parts), "file")
    return f"Remove all that csmd remembers, {files}, {show.size(sum(part.bytes for part in parts))}, for good?"


def purged(paths: Paths, parts: Sequence[Part], remaining: Left) -> None:
    """What a purge has left."""
    files, size = sum(len(part.files) for part in parts), sum(part.bytes for part in parts)
    click.echo(f"removed {files} files, {show.size(size)}")
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


def past(counts: dict[str, int], value: dict[str, Any]) -> None:
    """What is known after an install, whoever read it: the daemon may have looked before it was asked to."""
    out = show.console()
    kinds = [(counts[name], name.removesuffix("s")) for name in ("sessions", "turns")]
    memories = "1 memory" if counts["memories"] == 1 else f"{counts['memories']:,} memories"
    told = f"of your past sessions: {', '.join(text.amount(number, one) for number, one in kinds)}, {memories}"
    show.print_text(out, told if counts["sessions"] else "there are no past sessions here yet")
    show.told_beside(out, value)
