"""Memories on their way between homes, as lines of JSON: what stands in a file, and what is taken from one; pure.

A file says of itself what it is and ends with a seal, by which the home that made it knows it again. It is somebody's
text: every value is checked before anything is done with it, and one that is odd names its line. No more than a line of
it is ever held.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from csmd import wire
from csmd.errors import BadInput
from csmd.model import AUTHORITY_RANK, CATEGORIES, GATE_PRIORITY, Decay, MemoryType, Scope, Tier

#: The file in a directory that was exported to, and what its first line says.
NAME = "memories.jsonl"
FORMAT, VERSION = "csmd memories", 1
#: Characters of a memory, and entries of each of its lists, beyond which a line is no memory.
MOST_CHARACTERS, MOST_ENTRIES = 20_000, 10_000

_ID = re.compile(r"m[0-9a-f]{6,40}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_WORD = re.compile(r"[\w:./@+-]{0,200}")
_SCENE = re.compile(r"(?:at |after \"|in answer to \"|in a review)[^\x00-\x1f\x7f]{0,250}")
_KINDS = ("git", "submodule", "path", "workspace")
_ROLES = ("states", "confirms", "beside")


def lines(records: Iterable[Mapping[str, Any]], *, key: bytes) -> Iterator[str]:
    """The lines of a file, each ending in a newline: what it is, a memory each, the seal."""
    digest = hmac.new(key, b"parcel\n", hashlib.sha256)
    for value in ({"format": FORMAT, "version": VERSION}, *records):
        line = wire.dumps(dict(value)) + "\n"
        digest.update(line.encode())
        yield line
    yield wire.dumps({"seal": digest.hexdigest()}) + "\n"


def read(found: Iterable[bytes], *, key: bytes) -> Generator[tuple[int, dict[str, Any]], None, bool]:
    """(line, record) of the lines of a file, each checked; gives whether this home made the file as it is.

    BadInput names the line that is no memory, or says that the file is of another kind, or was cut.
    """
    digest = hmac.new(key, b"parcel\n", hashlib.sha256)
    last: tuple[int, dict[str, Any]] = (0, {})
    held, head_at = b"", 0
    for number, line in enumerate(found, start=1):
        if not line.strip():
            continue
        value = _json(line, number)
        if not head_at:
            _head(value)
            head_at = number
        elif last[0] != head_at:
            yield last[0], checked(last[1], last[0])
        digest.update(held)
        last, held = (number, value), line.rstrip(b"\n") + b"\n"
    if not last[0]:
        _head({})
    if "seal" not in last[1]:
        raise BadInput("they do not end with a seal: the file was cut", hint="export them again")
    return hmac.compare_digest(digest.hexdigest(), str(last[1]["seal"]))


def _head(value: Mapping[str, Any]) -> None:
    if value.get("format") != FORMAT:
        raise BadInput(
            "these are no memories that `csmd export` wrote", hint="name the directory it was told with --to"
        )
    if value.get("version") != VERSION:
        raise BadInput("a newer csmd has written them", hint="csmd upgrade")


def of_line(line: bytes, number: int) -> dict[str, Any]:
    """The record of one line that was read before."""
    return checked(_json(line, number), number)


def _json(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = wire.loads(line)
    except BadInput as error:
        raise BadInput(f"line {number} of {NAME} is no JSON", hint="export them again") from error
    if not isinstance(value, dict):
        raise BadInput(f"line {number} of {NAME} is no JSON object", hint="export them again")
    return value


# --- what a record may hold


def _one_of(names: Iterable[str]) -> Callable[[Any], bool]:
    known = frozenset(names)
    return lambda value: isinstance(value, str) and value in known


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_CHARACTERS


def _word(value: Any) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def _time(value: Any) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def _time_or_never(value: Any) -> bool:
    return value == "" or _time(value)


def _id(value: Any) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _id_or_none(value: Any) -> bool:
    return value == "" or _id(value)


def _share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _days(value: Any) -> bool:
    names = ("hot_until", "warm_until", "archive_at")
    return (
        isinstance(value, dict)
        and set(value) == set(names)
        and all(one is None or (isinstance(one, int) and abs(one) < 10**7) for one in value.values())
    )


def _place(value: Any) -> bool:
    names = {"key", "root", "name", "kind", "remote", "workspace"}
    return value == {} or (
        isinstance(value, dict)
        and set(value) == names
        and all(isinstance(one, str) and len(one) < 5000 for one in value.values())
        and value["kind"] in _KINDS
        and bool(value["key"])
    )


def _list_of(*checks: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, list)
        and len(value) <= MOST_ENTRIES
        and all(
            isinstance(row, list)
            and len(row) == len(checks)
            and all(check(one) for check, one in zip(checks, row, strict=True))
            for row in value
        )
    )


def _changes(value: Any) -> bool:
    names = {"change", "before", "after", "reason", "by", "at", "undone_at"}
    return (
        isinstance(value, list)
        and len(value) <= MOST_ENTRIES
        and all(isinstance(one, dict) and set(one) == names and all(map(_text, one.values())) for one in value)
    )


def _scene(value: Any) -> bool:
    """One phrase at most, on one line, of those that csmd makes."""
    return _list_of(_word, lambda said: isinstance(said, str) and _SCENE.fullmatch(said) is not None)(value) and (
        len(value) <= 1
    )


CHECKS: dict[str, Callable[[Any], bool]] = {
    "id": _id,
    "text": lambda value: _text(value) and bool(value.strip()),
    "project": _place,
    "gate": _one_of(GATE_PRIORITY),
    "category": _one_of(CATEGORIES),
    "type": _one_of(get_args(MemoryType)),
    "tier": _one_of(get_args(Tier)),
    "decay": _one_of(get_args(Decay)),
    "authority": _one_of(AUTHORITY_RANK),
    "origin": _word,
    "confidence": _share,
    "scope": _one_of(get_args(Scope)),
    "session_id": _word,
    "created_at": _time,
    "confirmed_at": _time,
    "used_at": _time_or_never,
    "pinned": lambda value: value in (0, 1),
    "days_left": _days,
    "superseded_by": _id_or_none,
    "sources": lambda value: bool(value) and _list_of(_word, _word, _time, _one_of(_ROLES))(value),
    "links": _list_of(_id, _word, _share, _time),
    "tags": _list_of(_text, _one_of(("person", "assistant")), _share),
    "symptoms": _list_of(_word, _time, _text, _text),
    "refutations": _list_of(_word, _time, _text, _share),
    "scene": _scene,
    "changes": _changes,
}
#: What files that were written before there was such a field stand for.
BEFORE: dict[str, Any] = {"scene": []}


def checked(value: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A record with every field it must have and no other; BadInput names the field and its line."""
    value = {**BEFORE, **value}
    for name, check in CHECKS.items():
        if name not in value:
            raise BadInput(f"line {number} of {NAME} has no {name}", hint="export them again")
        if not check(value[name]):
            raise BadInput(f"line {number} of {NAME}: that is no {name}", hint="export them again")
    return {name: value[name] for name in CHECKS}


def lowered(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record for which nobody vouches: it is evidence of an assistant's, told to nobody until a person keeps it.

    Its audit stays behind: an undo would rest on what nobody has seen.
    """
    return {**record, "authority": "assistant", "origin": "model_saved", "pinned": 0, "changes": [], "scene": [],
            "tags": [[name, "assistant", weight] for name, _, weight in record["tags"]]}  # fmt: skip


def without(record: Mapping[str, Any], is_purged: Callable[[str], bool]) -> dict[str, Any]:
    """A record without what was said of it that the user has purged here."""
    return {
        **record,
        "tags": [row for row in record["tags"] if not is_purged(row[0])],
        "symptoms": [row for row in record["symptoms"] if not is_purged(row[2])],
        "refutations": [row for row in record["refutations"] if not is_purged(row[2])],
        "scene": [row for row in record["scene"] if not is_purged(row[1])],
        "changes": [one for one in record["changes"] if not any(map(is_purged, one.values()))],
    }


def redacted(
    record: Mapping[str, Any], clean: Callable[[str, Counter[str]], str], counts: Counter[str]
) -> dict[str, Any]:
    """A record whose words have gone through redaction; what was found is counted."""

    def words(rows: Sequence[Sequence[Any]], column: int) -> list[list[Any]]:
        return [[clean(one, counts) if at == column else one for at, one in enumerate(row)] for row in rows]

    place = {name: clean(said, counts) for name, said in record["project"].items()}
    return {
        **record,
        "text": clean(record["text"], counts),
        "project": {**place, **{name: record["project"][name] for name in ("kind",) if place}},
        "tags": words(record["tags"], 0),
        "symptoms": words(record["symptoms"], 2),
        "refutations": words(record["refutations"], 2),
        "scene": words(record["scene"], 1),
        "changes": [
            {name: clean(said, counts) if name in ("before", "after", "reason") else said for name, said in one.items()}
            for one in record["changes"]
        ],
    }
