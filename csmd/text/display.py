"""Text for people and models: cut, counted, plural, safe inside csmd's fence; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

#: Separates a question or proposal from its answer.
ARROW = " -> "
#: A tag of any kind, however its bracket and slash are written.
_TAG = re.compile(r"[<＜﹤]\s{0,9}+[/／∕⁄]?\s{0,9}+\w[\w-]{0,40}+")
_TAG_HEAD = re.compile(r"^<[\s/∕⁄]*+")
#: Beginnings of the tags by which csmd, an assistant or a model marks a speaker.
_SPEAKER_TAGS = ("csmd", "system", "user", "human", "assistant", "function", "tool", "antml", "task-", "command-", "local-",
             "bash-")  # fmt: skip
#: Invisible characters, and those that reorder text: they could hide a tag or reverse a line. The joiner of two emoji
#: is not among them, because its effect is visible.
_INVISIBLE = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"
_UNSEEN = re.compile(f"[{_INVISIBLE}]")
#: csmd's own colours and cursor movements, in group 1; else characters that no terminal gets, such as lone surrogates
#: and a carriage return within a line, after which text would overwrite the text before it.
_ESCAPED_CHARACTERS = re.compile(
    rf"(\r?\x1b\[\??[0-9;]*[A-Za-z])|[{_INVISIBLE}\x0b\x0c\x1c-\x1f\x85\u2028\u2029\ud800-\udfff]|\r(?!\n)"
)
_FENCE_TAG = re.compile(r"<(/?)csmd-[a-z-]{1,40}+(?:\s[^<>]{0,400}+)?>", re.IGNORECASE)


def estimate_tokens(text: str) -> int:
    """Estimates the tokens of `text` quickly (bytes / 4) while a hook waits; `token_weights` is more accurate."""
    return (count_bytes(text) + 3) // 4


def count_bytes(text: str) -> int:
    """The length of `text` in UTF-8; a lone surrogate, which cannot be encoded, counts as one byte."""
    return len(text.encode("utf-8", "replace"))


def count_utf16_units(text: str) -> int:
    """The length of `text` as the assistant counts its limit of 10,000 (facts: claude-code section 1.7)."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def amount(number: int, noun: str) -> str:
    """A number with its noun: `1 memory`, `2 memories`, `3 days`, `0 new turns`."""
    many = noun[:-1] + "ies" if noun.endswith("y") and noun[-2:-1] not in "aeou" else noun + "s"
    return f"{number} {noun if number == 1 else many}"


def said_by(authority: str, author: str = "") -> str:
    """Describes the source of a memory: `said by the user`, said by a colleague, or `from another program`."""
    if author:
        return f"said by {author}"
    return "from another program" if authority == "external" else f"said by the {authority}"


def join_names(names: Sequence[str]) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def squeeze(text: str) -> str:
    """`text` on one line with single spaces."""
    return " ".join(text.split())


#: Beginning of an id that starts with its time ("uuid7", "ses_..."), long enough to distinguish sessions.
_TIMED_ID = re.compile(r"(?:\w+:)?(?:[0-9a-f]{8}-[0-9a-f]{4}(?=-7)|ses_[0-9a-f]{12})")


def day_of(at: str) -> str:
    """Returns the day of a time, as notes show it."""
    return at[:10]


def shorten_session_id(ident: str) -> str:
    """A session's id as it is shown: its host's name if it has one, and enough characters to find it by."""
    host, colon, rest = ident.rpartition(":")
    timed = _TIMED_ID.match(ident)
    return timed[0] if timed else f"{host}{colon}{rest[:8]}"


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, cut at a word, with an ellipsis when something is gone."""
    if len(text) <= limit:
        return text
    if limit <= 0:
        return ""
    head = text[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip() + "…"


def cut_middle(text: str, *, limit: int, of: str = "") -> str:
    """`text` in about `limit` bytes of UTF-8: its beginning and end, with a note of the bytes left out (`of` a source)."""
    if len(text) <= limit // 4 or len(data := text.encode("utf-8", "replace")) <= limit:
        return text
    head, tail = data[: limit * 3 // 4], data[len(data) - limit // 4 :]
    left_out = len(data) - len(head) - len(tail)
    about = f" of {of}" if of else ""
    mark = f"[csmd: {left_out} bytes left out{about}]"
    return f"{head.decode('utf-8', 'ignore')}\n{mark}\n{tail.decode('utf-8', 'ignore')}"


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


#: Most characters by which a cut is moved to fall between two words.
_MAX_CUT_SHIFT = 4096


def cut_at_words(text: str, *, limit: int, of: str = "") -> str:
    """`text` in about `limit` characters, cut in its middle between words, unless these have thousands of letters."""
    if len(text) <= limit:
        return text
    end, start = limit * 3 // 4, len(text) - limit // 4
    end = max((text.rfind(space, end - _MAX_CUT_SHIFT, end) for space in "\n "), default=-1) + 1 or end
    start = min((at for space in "\n " if (at := text.find(space, start, start + _MAX_CUT_SHIFT)) >= 0), default=start)
    about = f" of {of}" if of else ""
    return f"{text[:end]}\n[csmd: {start - end} characters left out{about}]\n{text[start:]}"


def remove_unseen(text: str) -> str:
    """`text` without invisible characters: those that control a terminal or reverse a line."""
    return _UNSEEN.sub("", text)


def escape_unseen(text: str) -> str:
    """`text` for a terminal, with invisible characters as \\uXXXX, which is the same value in JSON; colours stay."""
    return _ESCAPED_CHARACTERS.sub(_escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return match[1] or "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True))


def defuse(text: str) -> str:
    """`text` made safe inside csmd's fence: no tag of csmd's or its host's, no invisible characters."""
    return _TAG.sub(_defuse_tag, remove_unseen(text))


def _defuse_tag(tag: re.Match[str]) -> str:
    name = _TAG_HEAD.sub("", unicodedata.normalize("NFKC", tag.group())).casefold()
    return "‹" + tag.group()[1:] if name.startswith(_SPEAKER_TAGS) else tag.group()


def strip_fenced(text: str) -> str:
    """`text` without csmd's own injections, which must not become memories again."""
    if "csmd-" not in text.lower():
        return text
    kept: list[str] = []
    at, opened = 0, -1
    for tag in _FENCE_TAG.finditer(text):
        if not tag.group(1):
            opened = tag.start() if opened < 0 else opened
        elif opened >= 0:
            kept.append(text[at:opened])
            at, opened = tag.end(), -1
    return "".join(kept) + text[at:]


def remove_spans(text: str, opening: str, closing: str) -> str:
    """`text` without the spans from each `opening` to the next `closing`, both included; an unclosed one stays."""
    kept: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(closing)
    return "".join(kept) + text[at:]


_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")


def parse_version(text: str) -> tuple[int, int, int] | None:
    """The numbers of a version `1.2.3`, to be compared; None for anything else."""
    numbers = _VERSION.fullmatch(text)
    return None if numbers is None else (int(numbers[1]), int(numbers[2]), int(numbers[3]))
