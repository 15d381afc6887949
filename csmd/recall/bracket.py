"""How full a session's context is, in four brackets, and how much csmd adds to it in each: a table; pure.

A context that fills up has lost nothing yet: what was told is still in it, so nothing is told twice, and what is nearly
full is filled no further. What is lost is lost at a compaction, the more the fuller the context was: what follows one
makes up for it. Nothing here ever passes what the user allows (`recall.max_tokens`, `brief.max_tokens`).

The assistant is told no bracket: it could not act on it, and the words would come when there is least room. The person
sees it: status, `csmd context status`, the status line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bracket = Literal["FRESH", "MODERATE", "DEPLETED", "CRITICAL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A bracket: below which share of the window it holds, and which shares of the user's limits are used in it.

    `recall` is for a prompt, `restored` for what follows a compaction that found the context in this bracket.
    """

    below: float
    recall: float
    restored: float

    def recall_tokens(self, most: int) -> int:
        """Most tokens that a prompt is told where the user allows `most`."""
        return int(most * self.recall)

    def restored_tokens(self, most: int) -> int:
        """Most tokens that a session is told after its compaction where the user allows `most`."""
        return int(most * self.restored)


#: In the order in which a context fills. The host compacts by itself soon after CRITICAL begins.
POLICY: dict[Bracket, Policy] = {
    "FRESH": Policy(below=0.30, recall=1.0, restored=0.5),
    "MODERATE": Policy(below=0.55, recall=1.0, restored=0.75),
    "DEPLETED": Policy(below=0.75, recall=0.7, restored=1.0),
    "CRITICAL": Policy(below=float("inf"), recall=0.35, restored=1.0),
}


def of(used: int, window: int) -> Bracket:
    """The bracket of a context in which `used` of `window` tokens are taken; FRESH where nobody knows."""
    share = used / window if window > 0 else 0.0
    return next(bracket for bracket, policy in POLICY.items() if share < policy.below)


def at_compaction(used: int, window: int) -> Policy:
    """What holds after a compaction that found the context so full; where nobody knows, it was full."""
    return POLICY[of(used, window) if used else "CRITICAL"]
