"""The text of a service unit: the shipped template, filled in and escaped; values in, text out.

A path may hold anything: what a unit cannot say is refused, never written another way.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from csmd.errors import ConfigError

#: From this systemd on the wait between restarts can grow; an older one warns about the words.
GROWING_WAIT_SINCE = 254
GROWING_WAIT = "# The wait grows from 2 s to 30 s.\nRestartSteps=4\nRestartMaxDelaySec=30"
_PLACE = re.compile(r"@([A-Z]+)@")
_MARK = re.compile(r"csmd: home ([0-9a-f]{12})\b")
#: A program with these in its path is none to systemd, however they are escaped; among arguments they may stand.
_NO_PROGRAM = re.compile(r"[\x00-\x1f\x7f\\\"']")
THROUGH_SHELL = ("/bin/sh", "-c", 'exec "$@"', "csmd")
_PLAIN = re.compile(r"[\w./=:,+-]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a service manager is told: whose home, which program, in which environment."""

    home: Path
    is_default: bool
    """Whether this is the home without CSMD_HOME: it has the plain name."""
    command: Sequence[str]
    environment: Mapping[str, str]

    @property
    def mark(self) -> str:
        """What tells this home's unit from another's: 12 hex digits."""
        return hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]

    def name(self, plain: str, between: str) -> str:
        """The unit's name: `plain`, with the mark after `between` where the home is not the default one."""
        return plain if self.is_default else f"{plain}{between}{self.mark}"


def mark_of(text: str) -> str:
    """The mark of the home that a unit was written for; "" when csmd did not write it."""
    found = _MARK.search(text)
    return found.group(1) if found else ""


def systemd_unit(template: str, unit: Unit, *, version: int) -> str:
    """The unit file for a systemd of that version; ConfigError when a path cannot stand in one."""
    command = tuple(unit.command)
    if _NO_PROGRAM.search(command[0]):
        command = (*THROUGH_SHELL, *command)
    # Without the colon systemd would look for variables in what is quoted, too.
    verbatim = ":" if any("$" in word for word in command) else ""
    return _filled(
        template,
        {
            "NAME": unit.name("csmd", "-"),
            "MARK": unit.mark,
            "WHICH": "" if unit.is_default else f" ({_said(unit.home)})",
            "EXEC": verbatim + " ".join(_quoted(word) for word in command),
            "ENVIRONMENT": "\n".join(
                f"Environment={_quoted(f'{name}={value}')}" for name, value in unit.environment.items()
            ),
            "BACKOFF": GROWING_WAIT if version >= GROWING_WAIT_SINCE else "",
        },
    )


def launchd_plist(template: str, unit: Unit, *, stderr: Path) -> str:
    """The launch agent; ConfigError when a path cannot stand in XML."""
    pairs = (
        f"\t\t<key>{_xml(name)}</key>\n\t\t<string>{_xml(value)}</string>" for name, value in unit.environment.items()
    )
    return _filled(
        template,
        {
            "NAME": unit.name("io.csmd.daemon", "."),
            "MARK": unit.mark,
            "EXEC": "\n".join(f"\t\t<string>{_xml(word)}</string>" for word in unit.command),
            "ENVIRONMENT": "\n".join(pairs),
            "STDERR": _xml(str(stderr)),
        },
    )


def _filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its places filled; a line that was only a place of nothing is left out."""
    lines = []
    for line in template.splitlines():
        place = _PLACE.fullmatch(line)
        if not (place and not values[place.group(1)]):
            lines.append(_PLACE.sub(lambda found: values[found.group(1)], line))
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    """A word as systemd reads it back: quoted where it must be, its specifiers and control characters escaped."""
    _refuse_bytes(word)
    if _PLAIN.fullmatch(word):
        return word
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", plain) + '"'


def _xml(word: str) -> str:
    _refuse_bytes(word)
    if _CONTROL.search(word):
        raise ConfigError(f"{word!r} holds a control character, which no plist can", hint="move it to a plainer place")
    return escape(word, quote=False)


def _refuse_bytes(word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{os.fsencode(word)!r} is not UTF-8, which a service unit must be",
            hint="move it to a place with a plainer name, or `csmd install --no-service`",
        ) from error


def _said(path: Path) -> str:
    """A path for a line that people read."""
    _refuse_bytes(str(path))
    return _CONTROL.sub("?", str(path)).replace("%", "%%")
