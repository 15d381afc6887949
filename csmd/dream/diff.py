"""What a dream did, as values for people: each action with its reason, each memory before and after, files as unified diffs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A memory or candidate on one side of an action; `links` read `relationship id`, `tier` is a candidate's status."""

    text: str
    confidence: float
    tier: str
    superseded_by: str
    sources: int
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A memory or candidate before and after, None where it was not there; `kept`: why undoing has left it as it is."""

    item: str
    before: Side | None
    after: Side | None
    kept: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file that was written, as a unified diff; `kept` as of what was touched."""

    path: str
    diff: str
    kept: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Did:
    """One action of a dream; of one that a purge took away nothing is left but its reason (`purged`)."""

    kind: str
    project: str
    reason: str
    evidence: tuple[str, ...]
    at: str
    undone_at: str
    touched: tuple[Touched, ...]
    files: tuple[Written, ...]

    @property
    def purged(self) -> bool:
        """Whether a purge took away what it had done."""
        return not self.touched and not self.files


def side(seen: Mapping[str, Any], links: tuple[str, ...] = ()) -> Side | None:
    """One side of what was touched, from its fields by name; None for one that was not there."""
    if not seen:
        return None
    return Side(
        text=str(seen["text"]),
        confidence=float(seen["confidence"]),
        tier=str(seen.get("tier") or seen.get("status", "")),
        superseded_by=str(seen.get("superseded_by", "")),
        sources=len(seen.get("sources") or seen.get("evidence") or ()),
        links=links,
    )


def unified(path: str, before: str | None, after: str | None) -> str:
    """A file's change as people read it, with the lines around it; a file that is not there is /dev/null."""
    lines = difflib.unified_diff(
        (before or "").splitlines(),
        (after or "").splitlines(),
        fromfile=path if before is not None else "/dev/null",
        tofile=path if after is not None else "/dev/null",
        lineterm="",
    )
    return "\n".join(lines)
