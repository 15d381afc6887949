"""Ids, versions and names in an assistant's JSON, which are stored as they are unless they hold a secret."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from csmd import wire
from csmd.cache import cached
from csmd.hosts.json_fields import string
from csmd.privacy.redaction import redact

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: What ids, versions and names of tools and models are written with; `?` stands for what UTF-8 cannot carry.
_LABEL = re.compile(r"[\w.:@/<>+()\[\]? -]*+", re.ASCII)


def label(value: dict[str, Any], key: str, limit: int) -> str:
    """A short structural string in at most `limit` characters; "" for one that is no id or name.

    These columns are stored as they are, so what has other characters or holds a secret is not taken.
    """
    found = wire.clean(string(value, key))
    return found[:limit] if _UUID.fullmatch(found) or (_LABEL.fullmatch(found) and _is_harmless(found)) else ""


@cached(1024)
def _is_harmless(label: str) -> bool:
    return redact(label, Counter()) == label
