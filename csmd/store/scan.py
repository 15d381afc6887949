"""Where in the database secrets stand: each by its kind and place, never by itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from csmd.store.purged import name_hash
from csmd.store.sqlite import Rows

#: How a text becomes one without secrets: the redacted text, and how many by kind.
Redact = Callable[[str], tuple[str, dict[str, int]]]
_MARK = re.compile(r"\[redacted:([a-z-]+)\]")
#: Beyond as many in one text they are counted only: telling them apart takes too long.
MOST_APART = 12
#: A secret of at least as many characters is shown by its first ones.
PREVIEWED, PREVIEW = 16, 4

#: Table -> what people know a row by: (id, session).
PLACES: dict[str, str] = {
    "turns": "select t.uuid, s.id from turns t join sessions s on s.seq = t.session_seq where t.seq = :seq",
    "statements": "select t.uuid, s.id from statements x join turns t on t.seq = x.turn_seq "
    "join sessions s on s.seq = x.session_seq where x.seq = :seq",
    "memories": "select id, session_id from memories where seq = :seq",
    "sessions": "select id, id from sessions where seq = :seq",
    "projects": "select key, '' from projects where seq = :seq",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """One kind of secret in one text: how often; of a single one its first letters, length and keyed hash."""

    kind: str
    count: int
    preview: str = ""
    length: int = 0
    hash: str = ""


def place(rows: Rows, table: str, seq: int) -> tuple[str, str]:
    """(id, session) of a row as people know it; its key in a table that has no other."""
    found = rows.one(PLACES[table], seq=seq) if table in PLACES else None
    return (str(found[0]), str(found[1])) if found else (str(seq), "")


def secrets_in(said: str, redact: Redact, key: bytes) -> list[Secret]:
    """What a text holds that would be redacted today."""
    redacted, kinds = redact(said)
    apart = _apart(said, redacted) if 0 < sum(kinds.values()) <= MOST_APART else []
    if len(apart) != sum(kinds.values()):
        return [Secret(kind=kind, count=count) for kind, count in kinds.items()]
    return [
        Secret(
            kind=kind,
            count=1,
            preview=f"{secret[:PREVIEW]}…" if len(secret) >= PREVIEWED else "…",
            length=len(secret),
            hash=name_hash("secret", secret, key),
        )
        for kind, secret in apart
    ]


def _apart(said: str, redacted: str) -> list[tuple[str, str]]:
    """(kind, secret) of what was replaced: the marks in the redacted text stand where the secrets did."""
    literals = _MARK.split(redacted)
    pattern = re.escape(literals[0])
    for kind, after in zip(literals[1::2], literals[2::2], strict=True):
        pattern += rf"(\[redacted:{kind}\]|.+?)" + re.escape(after)
    found = re.fullmatch(pattern, said, re.DOTALL)
    secrets = zip(literals[1::2], found.groups(), strict=True) if found else ()
    return [(kind, secret) for kind, secret in secrets if not _MARK.fullmatch(secret)]
