"""Reads untrusted JSON of an assistant: objects, strings, labels and times, each with a default for what is not there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from csmd import wire
from csmd.cache import cached
from csmd.errors import BadInput

EPOCH = "1970-01-01T00:00:00.000Z"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: What ids, versions and names of tools and models are written with; `?` stands for what UTF-8 cannot carry.
_LABEL = re.compile(r"[\w.:@/<>+()\[\]? -]*+", re.ASCII)


def json_object(text: str | bytes | None) -> dict[str, Any] | None:
    """The JSON object in a text; None where there is none."""
    try:
        value = wire.loads(text or "")
    except BadInput:
        return None
    return value if isinstance(value, dict) else None


def mapping(value: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under `key`; {} for none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def strings(value: Any) -> Iterator[str]:
    """Every text in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def string(value: dict[str, Any], key: str) -> str:
    """The string under `key`; "" for none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def label(value: dict[str, Any], key: str, limit: int) -> str:
    """A short structural string in at most `limit` characters; "" for one that is no id or name.

    These columns are stored as they are, so what has other characters or holds a secret is not taken.
    """
    found = wire.clean(string(value, key))
    return found[:limit] if _UUID.fullmatch(found) or (_LABEL.fullmatch(found) and _is_harmless(found)) else ""


@cached(1024)
def _is_harmless(label: str) -> bool:
    # Its rules take longer to load than all of `csmd status` does, which needs none of them.
    from csmd.privacy.redaction import redact

    return redact(label, Counter()) == label


def moment_of(seconds: float) -> str:
    """A time in seconds since 1970 in csmd's form."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(value: dict[str, Any]) -> str:
    """The time under `timestamp` in csmd's form; the epoch when there is none that can be read."""
    try:
        at = datetime.fromisoformat(string(value, "timestamp"))
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return EPOCH
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
