"""Calls of tools that stand before the place where reading goes on: their results may come only now."""

from __future__ import annotations

import contextlib

from csmd.capture.exclude import Withheld
from csmd.capture.hosts import claude
from csmd.errors import BadInput

#: How far back a call is looked for.
BEFORE_BYTES = 64 * 1024


def remember(before: bytes, withheld: Withheld) -> None:
    """Adds to `withheld` the calls in a transcript's bytes that named an excluded file; a cut line holds none."""
    for line in before.split(b"\n") if withheld.excludes.files else ():
        if b'"tool_use"' in line:
            with contextlib.suppress(BadInput):
                claude.read_line(line, claude.Reading(withheld=withheld), tool_limit=0)
