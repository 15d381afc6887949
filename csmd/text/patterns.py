"""Regular expressions compiled at first use; pure.

The tables that tell sentences apart have more than a hundred of them: 60 ms of the processor, which every start of the
daemon would pay and only extraction needs.
"""

from __future__ import annotations

import re
from typing import Any, cast

_ASKED = [name for name in dir(re.Pattern) if not name.startswith("_")]


class AtFirstUse:
    """Stands for a compiled pattern: whatever is asked of that one is its own attribute from the first time on."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:  # only for what is not there yet
        compiled = re.compile(*self._given)
        vars(self).update({each: getattr(compiled, each) for each in _ASKED})
        return getattr(compiled, name)


def at_first_use(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, but a pattern that is wrong says so when it is used; tests use all there are."""
    return cast("re.Pattern[str]", AtFirstUse(pattern, flags))
