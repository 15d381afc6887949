"""A memory's name: the same statement of the same scope has the same on every machine that heard it; pure."""

from __future__ import annotations

import hashlib

from csmd import text


def of(project: int, body: str) -> str:
    """The id of what is said in a scope: `m` and ten hex digits."""
    return "m" + hashlib.sha256(f"{project}:{text.normalise(body)}".encode()).hexdigest()[:10]
