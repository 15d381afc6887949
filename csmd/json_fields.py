"""Reads untrusted JSON: objects, strings and times, each with a default if it is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from csmd import wire
from csmd.errors import BadInput

EPOCH = "1970-01-01T00:00:00.000Z"


def parse_object(text: str | bytes | None) -> dict[str, Any] | None:
    """Returns the JSON object in a text; None if it holds none."""
    try:
        value = wire.loads(text or "")
    except BadInput:
        return None
    return value if isinstance(value, dict) else None


def parse_line_object(line: bytes) -> dict[str, Any]:
    """Returns the JSON object of a transcript's line; BadInput if it is anything else."""
    value = wire.loads(line)
    if not isinstance(value, dict):
        raise BadInput("a transcript line is not a JSON object")
    return value


def mapping(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Returns the object under `key`; {} if there is none."""
    item = value.get(key)
    return item if isinstance(item, dict) else {}


def mappings(value: object) -> list[dict[str, Any]]:
    """Returns the objects in a list; [] for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def iter_strings(value: Any) -> Iterator[str]:
    """Yields every text in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from iter_strings(item)


def string(value: dict[str, Any], key: str) -> str:
    """Returns the string under `key`; "" if there is none."""
    item = value.get(key)
    return item if isinstance(item, str) else ""


def format_time(seconds: float) -> str:
    """Returns a time in seconds since 1970 in csmd's form."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(value: dict[str, Any]) -> str:
    """Returns the time under `timestamp` in csmd's form; the epoch if it is missing or cannot be read."""
    try:
        at = datetime.fromisoformat(string(value, "timestamp"))
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return EPOCH
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
