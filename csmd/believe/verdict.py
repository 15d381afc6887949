"""What the readers of one kind of statement each (plans, owners, bans, languages) give back; pure."""

from __future__ import annotations

import re

#: The signal by which an older statement is over (`supersede.SIGNALS`); "" where both are of the kind and neither ends;
#: None where they are not, so that other ways to tell are asked.
Verdict = str | None

#: Before a verb these say that nothing was changed, or not yet.
UNDONE = re.compile(
    r"n['\u2019]t\b|\b(?:not|never|if|when|once|until|before|unless|should|could|would|might|may|will|want|plan|almost|nearly|why|did)\b",
    re.IGNORECASE,
)
