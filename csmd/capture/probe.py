"""What `csmd doctor` sends through the hook: a turn that says nothing but the one word that names its session.

Such a turn is stored and found like any other, but it is nobody's: it is never distilled nor counted, and goes again.
Because the name and the word must be the same, nothing that somebody said can be kept out of capture this way.
"""

from __future__ import annotations

from dataclasses import replace

from csmd.model import PROBE_SESSION, PROBE_TEXT, Event


def is_probe(event: Event) -> bool:
    """Whether an event is one of `csmd doctor`, by what it says alone: also one that waited in the spool."""
    word = event.session_id.removeprefix(PROBE_SESSION)
    if word == event.session_id or not (word.isascii() and word.isalpha() and word.islower()):
        return False
    said = PROBE_TEXT.format(event=event.name, word=word)
    return event.text == said and not (event.agent_id or event.transcript_path)


def unanswered(event: Event) -> Event:
    """The event; one of `csmd doctor` as nobody's, so that no memory is looked up for it."""
    return replace(event, by_user=False) if is_probe(event) else event
