"""What the readers of one kind of statement each (plans, owners, bans, languages) give back; pure."""

from __future__ import annotations

#: The signal by which an older statement is over (`supersede.SIGNALS`); "" where both are of the kind and neither ends;
#: None where they are not, so that other ways to tell are asked.
Verdict = str | None
