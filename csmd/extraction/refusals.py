"""Sentences that state nothing lasting: narration, counts, questions, orders."""

from __future__ import annotations

import re
from typing import Literal

from csmd.cache import cached

Speaker = Literal["user", "assistant"]

#: Text that a program wrote in the user's name: the turn says nothing.
NOT_SAID = re.compile(
    r"\s*(?:<(?:command-|local-command|bash-|task-notification|user-memory-input|teammate-message)|\[Request interrupted"
    r"|Caveat: |Stop hook feedback|Operation stopped by hook|Base directory for this skill|This session is being continued"
    r"|/[\w:.-]+(?:\s|$))"
)

#: How an order for the moment begins.
ORDER = re.compile(
    r"^\W*(?:please |ok(?:ay)?,? |now |and |also |can you |could you |let['’]s |then )*(?:add|adjust|apply|build|change|check|clean|commit|continue|create|debug|do|edit|ensure"
    r"|find|fix|generate|give|go|implement|improve|install|look|make|move|put|read|refactor|remove|rename|replace|review|run|set|show|start|test|try|update|use|verify|work|write)\b",
    re.IGNORECASE,
)

_OPENS = r"^\W{0,3}(?:(?:ok(?:ay)?|yes|and|so|but|now|also|then|please|good|great|perfect|alright|done|first|next)\b[,.!: -]{0,3} ?){0,3}"
_EDITED = r"(?:added|updated|created|wrote|extended|removed|deleted|fixed|adjusted|changed|modified|renamed|moved)"

#: (what it is, first letters of whom it holds for, pattern): a sentence that matches any states nothing that lasts.
# fmt: off
REFUSED: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("narration", "a", re.compile(
        _OPENS + r"(?:let me|let['’]s (?:see|check|look)|i['’]ll|i will|i['’]m going to|i am going to|now i\b|i (?:can )?see\b"
        r"|i (?:noticed|need to)|here['’]s|here (?:is|are)|looking at|now let)", re.IGNORECASE)),
    ("counts", "ua", re.compile(
        r"\b(?:all )?\d+ (?:\w+ )?(?:tests? )?(?:pass(?:ed|es|ing)?|failed|failures|skipped)\b"
        r"|^\W{0,3}(?:all )?(?:tests?|build|lint\w*|format\w*|type[- ]?check\w*)\b.{0,30}\b(?:pass(?:es|ed)?|clean|succeed\w*|no (?:new )?"
        r"(?:issues|errors|warnings|problems))\b.{0,20}$", re.IGNORECASE)),
    ("question", "ua", re.compile(
        _OPENS + r"(?:should|shall|would|want me|what|how|when|where|who|which|can|could|do|does|did|is|are|was|were|has|have|any) [^.]{0,300}\?$", re.IGNORECASE)),
    ("order", "u", re.compile(
        _OPENS + r"(?:(?:can|could|would|will) you (?:\w+ )?)?(?:(?:write|generate|give|make|create|draft|find|show|send|tell) me"
        r"|(?:write|put|save|copy|paste|move|fix|commit|push|run|try) (?:it|this|that|these|those|everything|all)\b|do (?:some )?research|summari[sz]e"
        r"|work on\b|continue\b|commit\b|push\b|proceed\b|go ahead|look at [^,?.]{1,80} and)\b", re.IGNORECASE)),
    ("printed", "ua", re.compile(
        r"^(?:\W{0,3}(?:error|fatal|warning|usage|exit code|failed to [\w ]{2,40}|author|date|merge|remote|origin): |[❯⎿│├└]|\$ |> |@@|diff --git"
        r"|[+-]{1,3}\s?[\w/{}()#*]|\d{4}-\d\d-\d\d[t ]\d\d:|\s{0,8}at [\w$.<>]{2,80} ?\(|File \"[^\"]{1,200}\", line|Traceback|panic:|goroutine \d"
        r"|[\w.-]{1,60}@[\w.-]{1,80}[ :][~/])|<[^<>@\s]{1,80}@[^<>@\s]{1,80}>|\.(?:go|py|js|ts|rs|java):\d+:\d+|\b(?:fatal|stderr|stdout): "
        r"|\bat [\w$]{1,80}(?:\.[\w$<>`]{1,80}){2,12}\(|(?:/var/folders|/private/var|\\Temp)[/\\]|\b[0-9a-f]{40}\b", re.IGNORECASE)),
    ("redacted", "ua", re.compile(r"\[redacted\b[^\]]{0,60}\]\W{0,3}$|\bREDACTED\b\W{0,4}(?:\w+\W{0,2})?$", re.IGNORECASE)),
    ("inventory", "a", re.compile(
        r"^\W{0,3}[\w./-]{1,160}\.[a-z]{1,6}`?(?::[\d, –-]{1,20})?`?(?::| [-–—]) ?(?:" + _EDITED + r"|new|tests?|covers)\b"
        r"|^\W{0,3}(?:i(?:['’]ve)? )?" + _EDITED + r" (?:[\w-]+ ){0,4}(?:tests?|test cases?|imports?|comments?|docstrings?|documentation)\b"
        r"|^\W{0,3}" + _EDITED + r"\b.{0,160}\b(?:on )?lines? \d|^\W{0,3}lines? \d[\d, –-]{0,30}:|^\W{0,3}" + _EDITED + r" `[^`\s]{0,160}[/.][^`\s]{0,80}`(?: \(|\W*$)"
        r"|" + _OPENS + r"(?:i|we)(?:['’]ve| have)? (?:also |now |just |then )?" + _EDITED + r"\b"
        r"|^\W{0,3}(?:the )?(?:fixes|changes|edits|updates) (?:i |that i )?(?:['’]ve )?made\b|^\W{0,3}(?:summary of|files (?:changed|modified|updated|created))",
        re.IGNORECASE)),
)
# fmt: on


def refusal(said: str, speaker: Speaker) -> str:
    """What a sentence is that states nothing that lasts, "" for one that may."""
    return next((name for name, pattern in _rows(speaker) if pattern.search(said)), "")


@cached(16)
def _rows(speaker: Speaker) -> list[tuple[str, re.Pattern[str]]]:
    """The rows that hold for a speaker."""
    return [(name, pattern) for name, speakers, pattern in REFUSED if speaker[0] in speakers]
