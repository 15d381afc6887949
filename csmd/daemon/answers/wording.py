"""What somebody types to be kept, as it is kept: without its secrets, on one line, and not longer than a memory."""

from __future__ import annotations

import re
from collections import Counter

from csmd import text
from csmd.capture.redact import redact
from csmd.errors import BadInput
from csmd.extraction.chooser import MOST_CHARACTERS

_REDACTED = re.compile(r"\[redacted:[a-z-]+\]")


def worded(said: str, taken: Counter[str] | None = None) -> str:
    """What somebody types to be remembered as it is kept: redacted, on one line; BadInput for nothing or too much.

    `taken` counts the secrets that were taken out, by kind.
    """
    taken = Counter() if taken is None else taken
    body = text.squeeze(redact(said, taken))
    if not text.content_words(_REDACTED.sub("", body)):
        if taken:
            raise BadInput(
                f"that text holds nothing now: all it says is taken out before it is kept ({', '.join(sorted(taken))})",
                hint="csmd keeps no secrets; say where it is kept, not what it is",
            )
        raise BadInput("there is nothing to remember in that text", hint="say it in a sentence")
    if len(body) > MOST_CHARACTERS:
        raise BadInput(
            f"that has {len(body)} characters, and one memory has {MOST_CHARACTERS} at most",
            hint="say it shorter, or as several memories",
        )
    return body
