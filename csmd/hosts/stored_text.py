"""Cleans the words of people and assistants for the store: without csmd's injections and without secrets; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from csmd import wire
from csmd.privacy.redaction import redact, remove_private
from csmd.text import display
from csmd.vocabulary import TurnKind

#: The longest message that is stored whole; a longer one contains a pasted file, which remains in the transcript.
MAX_CHARACTERS = 500_000


def clean_text(text: str, counts: Counter[str], *, removed_tags: tuple[str, str] | None = None) -> str:
    """Returns a text without csmd's injections and any text between the tags `removed_tags`, redacted."""
    plain = wire.clean(text)
    plain = display.remove_spans(plain, *removed_tags) if removed_tags else plain
    return remove_injections(cut_long(plain, counts), counts)


def remove_injections(plain: str, counts: Counter[str]) -> str:
    """Returns a clean text without csmd's injections and without private parts, redacted."""
    return redact(display.strip_fenced(plain), counts).strip()


def cut_long(plain: str, counts: Counter[str]) -> str:
    """Shortens a very long text to its beginning and end."""
    if len(plain) <= MAX_CHARACTERS:
        return plain
    # The cut may remove one tag of a pair and keep the other.
    plain = remove_private(display.strip_fenced(plain), counts)
    return display.cut_at_words(plain, limit=MAX_CHARACTERS)


_SLASH = re.compile(r"/[a-zA-Z][\w:.-]*(?:\s|$)")


def is_slash_command(prompt: str) -> bool:
    """Whether a prompt is a command to the assistant's program."""
    return _SLASH.match(prompt) is not None


def classify_prompt(
    written_for_user: re.Pattern[str], prompt: str, *, by_person: bool, has_commands: bool = True
) -> TurnKind:  # fmt: skip
    """Returns the kind of a prompt by its beginning: notification, command, user or relayed."""
    if written_for_user.match(prompt):
        return "notification"
    if has_commands and is_slash_command(prompt):
        return "command"
    return "user" if by_person else "relayed"


def quote(text: str) -> str:
    """Returns a text quoted as someone else's words: each line behind a `>`."""
    return "\n".join(f"> {line}" for line in text.splitlines())


def quote_answers(pairs: Iterable[tuple[str, str]]) -> str:
    """Returns the user's answers, each below its question, which is quoted because the assistant asked it."""
    return "\n\n".join(f"{quote(question)}\n{answer.strip()}".strip() for question, answer in pairs if answer.strip())
