"""`csmd report`: what a bug report needs, in one text file that its user can read before anybody else does.

One file of plain text, not an archive: it is looked at, cut and pasted with what is at hand. What is in it stands in
report_parts.py. Nothing is sent.
"""

from __future__ import annotations

import contextlib
import getpass
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

import csmd
from csmd import wire
from csmd.cli import ask as asking
from csmd.cli import doctor, show
from csmd.cli.ask import json_option
from csmd.cli.checks.scene import Scene
from csmd.cli.disk import make_private, write_whole
from csmd.cli.report_parts import PARTS, Material
from csmd.cli.telling import LEFT_OUT, Teller, placeholders
from csmd.config import default_paths
from csmd.errors import ConfigError, CsmdError
from csmd.paths import Paths

HEAD = (
    "csmd report of {when}. Nothing was sent: read it, then attach it or paste it into a bug report.\n"
    "It holds no conversation, no memory and no name of a project: a word that is not csmd's own is told as {mark}.\n"
)


def compose(scene: Scene, examined: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(name, what it is, text) of every part; one that cannot be made says which error it was."""
    material = Material(scene=scene, examined=examined, tell=Teller(known=_known(scene)))
    made = []
    for name, about, part in PARTS:
        try:
            value = part(material)
        except (CsmdError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            value = f"could not be made: {type(error).__name__}"
        made.append((name, about, value if isinstance(value, str) else wire.pretty(value)))
    return made


def _known(scene: Scene) -> tuple[tuple[str, str], ...]:
    places = {
        "home": str(scene.paths.home),
        "log": str(scene.paths.log_dir),
        "here": str(scene.cwd),
        "user home": str(scene.user_home),
        "csmd": str(Path(csmd.__file__).parent),
        **{f"assistant {number}": str(folder) for number, folder in enumerate(scene.dirs, 1)},
    }
    projects = [row["root"] for row in (scene.status or {}).get("projects", ()) if row["root"]]
    names = {"host": socket.gethostname()}
    with contextlib.suppress(OSError, KeyError):  # a user that nobody named
        names["user"] = getpass.getuser()
    return placeholders(places, projects, names)


def bundle(made: list[tuple[str, str, str]], when: str) -> str:
    """The whole report as text."""
    parts = [f"== {name}: {about}\n{text}\n" for name, about, text in made]
    return "\n".join([HEAD.format(when=when, mark=LEFT_OUT), *parts])


def write(paths: Paths, to: Path | None, text: str) -> Path:
    """Writes a report for its owner alone; ConfigError where it cannot."""
    if to is None:
        make_private(paths.log_dir)
    target = to or paths.log_dir / "report.txt"
    try:
        if to is not None and to.exists() and not to.read_bytes().startswith(HEAD[:15].encode()):
            raise ConfigError(f"{to} is there already and is no report of csmd's", hint="name another: --to FILE")
        write_whole(target, text.encode("utf-8", "replace"))
    except OSError as error:
        raise ConfigError(
            f"{target} cannot be written: {error.strerror or error}", hint="name another: --to FILE"
        ) from error
    return target


@click.command()
@click.option(
    "--to",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write it; beside the log by default.",
)
@json_option
def report(target: Path | None, as_json: bool) -> None:
    """Gather what a bug report needs into one file; nothing is sent."""
    paths, now_s = default_paths(), time.time()
    scene = doctor.look(paths, cwd=Path(asking.here(None)), now_s=now_s)
    examined = doctor.judged(scene, doctor.walk(doctor.CHECKS, scene))
    made = compose(scene, examined)
    text = bundle(made, datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%d %H:%M UTC"))
    path = write(paths, target, text)
    value = {"path": str(path.absolute()), "bytes": len(text.encode()),
             "parts": [{"name": name, "what": about, "bytes": len(part.encode())} for name, about, part in made]}  # fmt: skip
    asking.out(value, as_json, _shown)


def _shown(value: dict[str, Any]) -> None:
    out = show.console()
    show.print_text(out, f"written to {value['path']} ({show.size(value['bytes'])}):")
    for part in value["parts"]:
        show.print_text(out, f"{part['what']}, {show.size(part['bytes'])}", head=f"  {part['name']:<14} ")
    show.print_text(out, "It holds nothing that was said, no memory and no project's name, and nothing was sent. "
                         "Read it, then attach it to a bug report.")  # fmt: skip


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (report,)
