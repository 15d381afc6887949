"""Secrets in stored texts: found by newer rules, or known only after a text with them was stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass

from csmd import wire
from csmd.privacy.fingerprints import hash_name, remove_purged
from csmd.privacy.redaction import KNOWN_AGAIN
from csmd.store import cursors, tombstones
from csmd.store.purge import LATE_SECRETS_STAGE, rewrite_turn
from csmd.store.sqlite import Rows, enable_secure_delete
from csmd.text import tokens

#: The key in `meta` of the hash of the rules by which everything was searched.
RULES_KEY = "secret_rules"
FINDINGS_KEY = "secrets_found"
#: A kind found in less than one turn of so many is rare: hardly any of it can be a false positive.
RARE_ONE_IN = 1000
_MARK = re.compile(r"\[redacted:([a-z-]+)\]")
#: More secrets in one text are only counted, since telling them apart takes too long.
MAX_SEPARATED = 12
#: Characters from which a secret is shown by its first ones.
MIN_PREVIEWED_CHARACTERS = 16
#: How many of its first characters are shown.
PREVIEW_CHARACTERS = 4
#: Table -> (id, session) by which people know a row.
SECRET_PLACE_QUERIES: dict[str, str] = {
    "turns": "select t.uuid, s.id from turns t join sessions s on s.seq = t.session_seq where t.seq = :seq",
    "statements": """select t.uuid, s.id from statements x
        join turns t on t.seq = x.turn_seq join sessions s on s.seq = x.session_seq where x.seq = :seq""",
    "memories": "select id, session_id from memories where seq = :seq",
    "sessions": "select id, id from sessions where seq = :seq",
    "projects": "select key, '' from projects where seq = :seq",
}
#: Returns (a text without its secrets, how many there were by kind).
Redact = Callable[[str], tuple[str, dict[str, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """The secrets of one kind in a text: how many; for a single one its first characters, length and keyed hash."""

    kind: str
    count: int
    preview: str = ""
    length: int = 0
    hash: str = ""


def find_secret_row(rows: Rows, table: str, seq: int) -> tuple[str, str]:
    """Returns (id, session) by which people know a row; its key in other tables."""
    place = rows.first(SECRET_PLACE_QUERIES[table], seq=seq) if table in SECRET_PLACE_QUERIES else None
    return (str(place[0]), str(place[1])) if place else (str(seq), "")


def find_secrets(text: str, redact: Redact, key: bytes) -> list[Secret]:
    """Returns the secrets that the present rules would redact in a text."""
    redacted, kinds = redact(text)
    apart = _list_secrets_by_mark(text, redacted) if 0 < sum(kinds.values()) <= MAX_SEPARATED else []
    if len(apart) != sum(kinds.values()):
        return [Secret(kind=kind, count=count) for kind, count in kinds.items()]
    return [
        Secret(
            kind=kind,
            count=1,
            preview=f"{secret[:PREVIEW_CHARACTERS]}…" if len(secret) >= MIN_PREVIEWED_CHARACTERS else "…",
            length=len(secret),
            hash=hash_name("secret", secret, key),
        )
        for kind, secret in apart
    ]


def _list_secrets_by_mark(text: str, redacted: str) -> list[tuple[str, str]]:
    """Returns (kind, secret) of what was replaced, by the positions of the marks in the redacted text."""
    literals = _MARK.split(redacted)
    pattern = re.escape(literals[0])
    for kind, after in zip(literals[1::2], literals[2::2], strict=True):
        pattern += rf"(\[redacted:{kind}\]|.+?)" + re.escape(after)
    match = re.fullmatch(pattern, text, re.DOTALL)
    secrets = zip(literals[1::2], match.groups(), strict=True) if match else ()
    return [(kind, secret) for kind, secret in secrets if not _MARK.fullmatch(secret)]


# --- findings of the latest search


@dataclass(frozen=True, slots=True)
class FoundSecrets:
    """The secrets found by newer rules: how many by kind, since when, and the kinds found in hardly any turn."""

    kinds: dict[str, int]
    rare: list[str]
    since: dict[str, str]

    def rare_before(self, at: str) -> list[str]:
        """Returns the rare kinds that were found before a time."""
        return [kind for kind in self.rare if self.since[kind] < at]


def found_secrets(rows: Rows) -> FoundSecrets | None:
    """Returns the findings of the latest search that are not removed yet; None if there are none."""
    value = rows.find("meta", "value", key=FINDINGS_KEY)
    if not value:
        return None
    stored = wire.loads(value)
    if isinstance(stored["since"], str):  # the format before each kind had its own time
        stored["since"] = dict.fromkeys(stored["kinds"], stored["since"])
    return FoundSecrets(**stored)


def read_rules_of_latest_scan(rows: Rows) -> str:
    """Returns the keyed hash of the rules of the latest search; "" if there is none."""
    return str(rows.find("meta", "value", key=RULES_KEY) or "")


def holds_text(rows: Rows) -> bool:
    """Whether anything is stored that could be searched."""
    return rows.exists("select 1 from turns") or rows.exists("select 1 from memories")


def record_scan(
    rows: Rows, rules: str, kinds: Mapping[str, int], in_turns: Mapping[str, int], *, key: bytes, now: str
) -> None:
    """Records what a search found, in all and in turns, and left in place."""
    previous = found_secrets(rows)
    rows.upsert("meta", "key", key=RULES_KEY, value=tokens.keyed_hash(rules, key))
    rows.delete("meta", key=FINDINGS_KEY)
    if kinds:
        turns = rows.number("select count(*) from turns")
        rare = sorted(kind for kind in kinds if in_turns.get(kind, 0) * RARE_ONE_IN < turns)
        since = previous.since if previous else {}
        secrets = FoundSecrets(dict(kinds), rare, {kind: since.get(kind, now) for kind in kinds})
        rows.upsert("meta", "key", key=FINDINGS_KEY, value=wire.dumps(asdict(secrets)))


# --- secrets that became known after a text with them was stored


def keep_secrets_out(rows: Rows, session: str, secrets: Collection[str], *, key: bytes, now: str) -> None:
    """Keeps secrets out of a session from now on, also where they appear alone.

    Its hook events are changed at once, because a transcript's line is matched by the same words. The rest is left to
    the pass over LATE_SECRETS_STAGE.
    """
    if not tombstones.record_secrets(rows, session, secrets, key=key, now=now):
        return
    enable_secure_delete(rows)
    marks = tombstones.secrets_of(rows, [session], key)
    sql = """select t.seq, t.text from sessions s join session_turn st on st.session_seq = s.seq
        join turns t on t.seq = st.turn_seq where (s.id = :id or s.parent = :id) and t.provisional = 1"""
    for seq, text in rows.all(sql, id=session):
        cleaned, hits = remove_purged(text, marks, placeholder=KNOWN_AGAIN)
        if hits:
            rewrite_turn(rows, seq, cleaned, key)
    if rows.has("sessions", id=session):
        position = cursors.read_cursor(rows, LATE_SECRETS_STAGE, session)
        cursors.move_cursor(rows, LATE_SECRETS_STAGE, session, position + 1)


def sessions_with_late_secrets(rows: Rows) -> dict[str, int]:
    """Returns the sessions (ids) with secrets that became known later, and the position of each cursor."""
    return dict(rows.all("select subject, position from cursors where stage = :stage", stage=LATE_SECRETS_STAGE))


def end_late_secrets(rows: Rows, seen: Mapping[str, int]) -> None:
    """Records that sessions were searched up to the positions that `sessions_with_late_secrets` returned."""
    for session, position in seen.items():
        rows.delete("cursors", stage=LATE_SECRETS_STAGE, subject=session, position=position)


def list_session_seqs(rows: Rows, ids: Iterable[str]) -> list[int]:
    """Returns the row keys of sessions and of their sub-agents."""
    sql = "select seq from sessions where id = :id or parent = :id"
    return [seq for session_id in ids for seq in rows.column(sql, id=session_id)]
