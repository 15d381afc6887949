"""Which versions of the client wrote what was read: a version is three numbers, anything else says nothing."""

from __future__ import annotations

from collections.abc import Iterable

from csmd import text
from csmd.capture.hosts.claude_export import VERSION as OUR_OWN
from csmd.model import Turn


def latest(turns: Iterable[Turn]) -> dict[str, str]:
    """Of each version in these turns the time of its last; not the one that csmd gives to what it exports."""
    found: dict[str, str] = {}
    for turn in turns:
        if turn.version != OUR_OWN and text.version_of(turn.version) is not None:
            found[turn.version] = max(turn.at, found.get(turn.version, ""))
    return found
