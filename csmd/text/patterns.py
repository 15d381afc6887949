"""Regular expressions that are compiled when they are first used; pure.

The tables that tell sentences apart have some hundred and fifty of them: a tenth of a second of the processor, which every
start of the daemon would pay and only what distils needs.
"""

from __future__ import annotations

import re
from typing import Any, cast

_ASKED = (
    "findall",
    "finditer",
    "fullmatch",
    "groupindex",
    "groups",
    "match",
    "scanner",
    "search",
    "split",
    "sub",
    "subn",
)
_made: list[_AtFirstUse] = []


class _AtFirstUse:
    """Stands for a compiled pattern: whatever is asked of that one is its own attribute from the first time on."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._given = flags
        _made.append(self)

    def __getattr__(self, name: str) -> Any:  # only for what is not there yet
        compiled = re.compile(self.pattern, self._given)
        vars(self).update({each: getattr(compiled, each) for each in ("flags", *_ASKED)})
        return getattr(compiled, name)

    def __repr__(self) -> str:
        return f"at_first_use({self.pattern!r}, {self._given!r})"


def at_first_use(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, but a pattern that is wrong says so when it is used; tests compile all there are."""
    return cast("re.Pattern[str]", _AtFirstUse(pattern, flags))


def compile_all() -> int:
    """Compiles all that were made so far, for a process that others are forked from; how many they are."""
    for one in _made:
        _ = one.flags
    return len(_made)
