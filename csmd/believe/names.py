"""Names that changed, and what was said under an old one; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from csmd.believe.clauses import renames


def table(statements: Sequence[str]) -> dict[str, str]:
    """Old name -> the one it has now, from statements in the order they were made; chains are followed."""
    now: dict[str, str] = {}
    for statement in statements:
        for old, new in renames(statement):
            now.pop(new, None)  # a name that is taken up again is no old one
            for earlier, current in list(now.items()):
                if current == old:
                    now[earlier] = new
            now[old] = new
    return {old: new for old, new in now.items() if old != new}


def is_named(said: str, name: str) -> bool:
    """Whether a text names something by this name."""
    return name in said.casefold() and bool(_whole(name).search(said))


def followed(said: str, renames: Mapping[str, str]) -> str:
    """A text with each old name replaced by the new one."""
    present = [old for old in renames if old in said.casefold()]
    for old in present:
        said = _whole(old).sub(lambda _, new=renames[old]: new, said)  # type: ignore[misc]
    return said


@lru_cache(maxsize=512)
def _whole(name: str) -> re.Pattern[str]:
    """A name where it stands alone: not as a part of a longer one."""
    return re.compile(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w)", re.IGNORECASE)
