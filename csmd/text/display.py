"""Prepares text for people and models: cuts, counts and joins it, and makes it safe inside csmd's fence; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

#: Separates a question or proposal from its answer.
ARROW = " -> "
#: A tag of any kind, with any form of bracket and slash.
_TAG = re.compile(r"[<＜﹤]\s{0,9}+[/／∕⁄]?\s{0,9}+\w[\w-]{0,40}+")
_TAG_HEAD = re.compile(r"^<[\s/∕⁄]*+")
#: Beginnings of the tags by which csmd, an assistant or a model marks a speaker.
_SPEAKER_TAGS = ("csmd", "system", "user", "human", "assistant", "function", "tool", "antml", "task-", "command-", "local-",
             "bash-")  # fmt: skip
#: Invisible characters, and those that reorder text: they could hide a tag or reverse a line. The joiner of two emoji
#: is visible, so it is not included.
_INVISIBLE = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"
_UNSEEN = re.compile(f"[{_INVISIBLE}]")
#: csmd's own colours and cursor movements, in group 1; else characters that are escaped for a terminal, such as lone
#: surrogates and a carriage return within a line, which would overwrite the line.
_ESCAPED_CHARACTERS = re.compile(
    rf"(\r?\x1b\[\??[0-9;]*[A-Za-z])|[{_INVISIBLE}\x0b\x0c\x1c-\x1f\x85\u2028\u2029\ud800-\udfff]|\r(?!\n)"
)
#: Beginning of an id that starts with its time ("uuid7", "ses_..."), long enough to distinguish sessions.
_TIMED_ID = re.compile(r"(?:\w+:)?(?:[0-9a-f]{8}-[0-9a-f]{4}(?=-7)|ses_[0-9a-f]{12})")
SHORT_ID_CHARACTERS = 8
#: Most characters by which a cut is moved to fall between two words.
MAX_CUT_SHIFT = 4096
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_FENCE_TAG = re.compile(r"<(/?)csmd-[a-z-]{1,40}+(?:\s[^<>]{0,400}+)?>", re.IGNORECASE)


def estimate_tokens(text: str) -> int:
    """Estimates the tokens of `text` quickly (bytes / 4) while a hook waits; `token_weights` is more accurate."""
    return (count_bytes(text) + 3) // 4


def count_bytes(text: str) -> int:
    """Returns the length of `text` in UTF-8; a lone surrogate, which cannot be encoded, counts as one byte."""
    return len(text.encode("utf-8", "replace"))


def count_utf16_units(text: str) -> int:
    """Returns the length of `text` in UTF-16 units, in which Claude Code counts its limit of 10,000."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def amount(number: int, noun: str) -> str:
    """Formats a number with its noun: `1 memory`, `2 memories`, `3 days`, `0 new turns`."""
    plural = noun[:-1] + "ies" if noun.endswith("y") and noun[-2:-1] not in "aeou" else noun + "s"
    return f"{number} {noun if number == 1 else plural}"


def said_by(authority: str, author: str = "") -> str:
    """Describes the source of a memory: `said by the user`, said by a colleague, or `from another program`."""
    if author:
        return f"said by {author}"
    return "from another program" if authority == "external" else f"said by the {authority}"


def join_names(names: Sequence[str]) -> str:
    """Joins names for a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def squeeze(text: str) -> str:
    """Returns `text` on one line with single spaces."""
    return " ".join(text.split())


def day_of(time: str) -> str:
    """Returns the day of a stored time, as notes show it."""
    return time[:10]


def shorten_session_id(session_id: str) -> str:
    """Shortens a session's id to its host's name, if it has one, and enough characters to find it by."""
    host, colon, rest = session_id.rpartition(":")
    timed = _TIMED_ID.match(session_id)
    return timed[0] if timed else f"{host}{colon}{rest[:SHORT_ID_CHARACTERS]}"


def cut(text: str, limit: int) -> str:
    """Cuts `text` to at most `limit` characters, at a word, with an ellipsis."""
    if len(text) <= limit:
        return text
    if limit <= 0:
        return ""
    head = text[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip() + "…"


def cut_middle(text: str, *, limit: int, of: str = "") -> str:
    """Cuts `text` to about `limit` bytes of UTF-8: its beginning and end, with a note of the bytes left out (`of` a source)."""
    if len(text) <= limit // 4 or len(data := text.encode("utf-8", "replace")) <= limit:
        return text
    head, tail = data[: limit * 3 // 4], data[len(data) - limit // 4 :]
    mark = _describe_cut(len(data) - len(head) - len(tail), "bytes", of)
    return f"{head.decode('utf-8', 'ignore')}\n{mark}\n{tail.decode('utf-8', 'ignore')}"


def _describe_cut(left_out: int, unit: str, source: str) -> str:
    return f"[csmd: {left_out} {unit} left out{f' of {source}' if source else ''}]"


class Cut(NamedTuple):
    """A text without its middle: its head and tail, and the number of bytes left out between."""

    head: str
    left_out: int
    tail: str


def find_cut(text: str, of: str) -> Cut | None:
    """Parses a text that `cut_middle` cut with the source `of`; None for a text that it did not cut."""
    if " bytes left out of " not in text:
        return None
    mark = re.search(rf"\n\[csmd: (\d{{1,15}}) bytes left out of {re.escape(of)}\]\n", text)
    return Cut(text[: mark.start()], int(mark[1]), text[mark.end() :]) if mark else None


def cut_at_words(text: str, *, limit: int, of: str = "") -> str:
    """Cuts `text` in its middle to about `limit` characters, between words unless these have thousands of letters."""
    if len(text) <= limit:
        return text
    end = limit * 3 // 4
    end = max(text.rfind(space, end - MAX_CUT_SHIFT, end) for space in "\n ") + 1 or end
    start = len(text) - limit // 4
    spaces = (text.find(space, start, start + MAX_CUT_SHIFT) for space in "\n ")
    start = min((space for space in spaces if space >= 0), default=start)
    return f"{text[:end]}\n{_describe_cut(start - end, 'characters', of)}\n{text[start:]}"


def remove_unseen(text: str) -> str:
    """Removes invisible characters: those that control a terminal or reverse a line."""
    return _UNSEEN.sub("", text)


def escape_unseen(text: str) -> str:
    """Escapes invisible characters for a terminal as \\uXXXX, which is the same value in JSON; colours stay."""
    return _ESCAPED_CHARACTERS.sub(_escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return match[1] or "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True))


def defuse(text: str) -> str:
    """Makes `text` safe inside csmd's fence: without tags of csmd or its host, and without invisible characters."""
    return _TAG.sub(_defuse_tag, remove_unseen(text))


def _defuse_tag(tag: re.Match[str]) -> str:
    name = _TAG_HEAD.sub("", unicodedata.normalize("NFKC", tag.group())).casefold()
    return "‹" + tag.group()[1:] if name.startswith(_SPEAKER_TAGS) else tag.group()


def strip_fenced(text: str) -> str:
    """Removes csmd's own injections, which must not become memories again."""
    if "csmd-" not in text.lower():
        return text
    outside: list[str] = []
    end = 0
    opening: re.Match[str] | None = None
    for tag in _FENCE_TAG.finditer(text):
        if not tag[1]:
            opening = opening or tag
        elif opening:
            outside.append(text[end : opening.start()])
            end = tag.end()
            opening = None
    return "".join((*outside, text[end:]))


def remove_spans(text: str, opening: str, closing: str) -> str:
    """Removes the spans from each `opening` to the next `closing`, both included; an unclosed one stays."""
    outside: list[str] = []
    previous_end = 0
    while (start := text.find(opening, previous_end)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        outside.append(text[previous_end:start])
        previous_end = end + len(closing)
    return "".join((*outside, text[previous_end:]))


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Returns the numbers of a version `1.2.3` for comparison; None for anything else."""
    match = _VERSION.fullmatch(text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))
