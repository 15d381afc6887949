"""Reads ids, names, paths and token counts of an assistant's JSON as they are stored; a label with a secret is rejected."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from csmd import wire
from csmd.cache import cached
from csmd.errors import BadInput
from csmd.json_fields import string
from csmd.privacy.redaction import redact

#: The longest id of a session or turn.
MAX_ID_CHARACTERS = 200
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: The characters of ids, versions and names of tools and models; `?` replaces what UTF-8 cannot encode.
_LABEL = re.compile(r"[\w.:@/<>+()\[\]? -]*+", re.ASCII)


def read_label(value: dict[str, Any], key: str, limit: int = MAX_ID_CHARACTERS) -> str:
    """Returns a short structural string of at most `limit` characters; "" for anything that is not an id or a name.

    These columns are stored unchanged, so a value with other characters or with a secret is rejected.
    """
    text = wire.clean(string(value, key))
    return text[:limit] if _UUID.fullmatch(text) or (_LABEL.fullmatch(text) and _is_harmless(text)) else ""


@cached(1024)
def _is_harmless(text: str) -> bool:
    return redact(text, Counter()) == text


def make_session_id(host: str, host_id: str) -> str:
    """Returns the id under which a session or turn of any assistant but Claude Code is stored; "" for ""."""
    return f"{host}:{host_id}" if host_id else ""


def read_uuid(host: str, value: dict[str, Any], key: str) -> str:
    """Returns the id under which a turn is stored, by its line's id under `key`; "" if there is none."""
    return make_session_id(host, read_label(value, key))


def read_path(value: dict[str, Any], key: str, counts: Counter[str] | None = None) -> str:
    """Returns the path under `key`, redacted; "" if there is none."""
    return redact(wire.clean(string(value, key)), Counter() if counts is None else counts)


def decode_path(literal: bytes) -> str:
    """Returns a path written as a JSON string, redacted; "" if it cannot be decoded."""
    try:
        return redact(wire.clean(wire.loads(literal.decode("utf-8", "replace"))), Counter())
    except BadInput:
        return ""


def read_tokens(usage: object, name: str) -> int:
    """Returns a number of tokens; 0 for anything else."""
    amount = usage.get(name) if isinstance(usage, dict) else 0
    return amount if type(amount) is int and 0 <= amount < 2**40 else 0
