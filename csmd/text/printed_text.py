"""Recognises program output, code, data, and reports of checks and edits by their form; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile

from csmd.text.sentence_words import WORDS, phrase_size

#: Fewest bars between the cells of a row.
MIN_BARS = 2
#: Most words of a sentence that only says how checks ended.
MAX_STATUS_WORDS = 12
#: Most words from a number to the word that makes the number a count of tests.
MAX_COUNTED_DISTANCE = 3


def _compile(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


#: Lines of output, code and mail headers.
_PRINTED = _compile(
    r"^(?:\W{0,3}(?:error|fatal|warning|usage|exit code|failed to [\w ]{2,40}|author|date|merge|remote|origin): )",
    r"^(?:\$ |> |@@|diff --git|[+-]{2,3}\s?[\w/{}()#*]|[+-][\w/{}()#*]|\+\s[\w/{}()#*]|\d{4}-\d\d-\d\d[t ]\d\d:)",
    r"^(?:\s{0,8}at [\w$.<>]{2,80} ?\(|File \"[^\"]{1,200}\", line|Traceback|panic:|goroutine \d)",
    r"^[\w.-]{1,60}@[\w.-]{1,80}[ :][~/]",
    r"<[^<>@\s]{1,80}@[^<>@\s]{1,80}>",
    r"\.(?:go|py|js|ts|rs|java):\d+:\d+",
    r"\b(?:fatal|stderr|stdout): ",
    r"[❯⎿⏺│├└]",
    r"\[redacted\b[^\]]{0,60}\]\W{0,3}$",
    r"\bat [\w$]{1,80}(?:\.[\w$<>`]{1,80}){2,12}\(",
    r"(?:/var/folders|/private/var|\\Temp)[/\\]",
    r"\b[0-9a-f]{40}\b",
)
_EDITED = (
    r"(?:added|updated|created|wrote|extended|removed|deleted|fixed|adjusted|changed|modified|renamed|moved|implemented"
    r"|committed|set up)"
)
#: An assistant's inventory of its edits.
_INVENTORY = _compile(
    r"^\W{0,3}[\w./-]{1,160}\.[a-z]{1,6}`?(?::[\d, –-]{1,20})?`?(?::| [-–—]) ?(?:" + _EDITED + r"|new|tests?|covers)\b",
    r"^\W{0,3}(?:i(?:['’]ve)? )?" + _EDITED + r" (?:[\w-]+ ){0,4}(?:tests?|test cases?)\b",
    r"^\W{0,3}(?:i(?:['’]ve)? )?" + _EDITED + r" (?:[\w-]+ ){0,4}(?:imports?|comments?|docstrings?|documentation)\b",
    r"^\W{0,3}" + _EDITED + r"\b.{0,160}\b(?:on )?lines? \d",
    r"^\W{0,3}lines? \d[\d, –-]{0,30}:",
    r"^\W{0,3}" + _EDITED + r" `[^`\s]{0,160}[/.][^`\s]{0,80}`(?: \(|\W*$)",
    r"^\W{0,3}(?:the )?(?:fixes|changes|edits|updates) (?:i |that i )?(?:['’]ve )?made\b",
    r"^\W{0,3}(?:summary of|files (?:changed|modified|updated|created))",
)
#: Values of data; without a mark of data they are words.
_VALUE = _compile(r"\"[^\"]*(?:\"|$)", r"'[^']*(?:'|$)", r"\b(?:true|false|null|none|undefined)\b", r"[\d.]+")
_DATA_MARK = re.compile(r"^\W{0,3}[\[{]|[\"']\s{0,3}:")
_CODE = re.compile(r"`[^`]*`")
_CELL_END = re.compile(r"^\s*\||\|\s*$")
_MARKUP = _compile(r"<[a-z][^<>]{0,200}>.*</[a-z][\w-]{0,40}>\W*$")
#: Words that follow the number in a count of tests.
_COUNTED = frozenset("pass passed passes passing failed failures skipped".split())


def is_printed(text: str) -> bool:
    """Whether a text is the output of a program, code, or a piece of JSON, of a table or of markup."""
    if _PRINTED.search(text) or (_DATA_MARK.search(text) and not any(map(str.isalpha, _VALUE.sub("", text)))):
        return True
    bare = _CODE.sub("x", text) if "|" in text else ""
    is_row = bool(bare) and (_CELL_END.search(bare) is not None or bare.count(" | ") >= MIN_BARS)
    return is_row or (text[:1] == "<" and _MARKUP.match(text) is not None)


def counts_tests(words: Sequence[str]) -> bool:
    """Whether a sentence of these words counts tests: "14 unit tests passed"."""
    numbers = (index for index, word in enumerate(words) if word.isdigit())
    return any(not _COUNTED.isdisjoint(words[index + 1 : index + 1 + MAX_COUNTED_DISTANCE]) for index in numbers)


def is_check_status(words: Sequence[str]) -> bool:
    """Whether a sentence of these words only says that checks passed."""
    checks, passes = WORDS["checks.en"], WORDS["passes.en"]
    meaningful = {word for word in words if not word.isdigit()} - WORDS["beside_checks.en"]
    return (
        len(words) <= MAX_STATUS_WORDS
        and WORDS["inquire.en"].isdisjoint(words[:1])  # "check tests are green" asks for it
        and not passes.isdisjoint(meaningful)
        and meaningful <= checks | passes
    )


def reports_edit(text: str, words: Sequence[str]) -> bool:
    """Whether an assistant lists its edits or reports its own action: "I've now added ..."; `words` are its core."""
    if _INVENTORY.search(text):
        return True
    rest = tuple(dropwhile(lambda word: word in ("have", "also", "now", "just", "then"), words[1:]))
    return words[:1] in (("i",), ("we",), ("i've",), ("we've",)) and phrase_size(WORDS["did.en"], rest[:3]) > 0
