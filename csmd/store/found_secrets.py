"""Secrets that newer redaction rules found in stored texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from csmd import wire
from csmd.store.sqlite import Rows
from csmd.text import tokens

#: The key in `meta` of the hash of the rules by which everything was searched.
RULES_KEY = "secret_rules"
FINDINGS_KEY = "secrets_found"


#: A kind found in less than one turn of so many is rare: hardly any of it can be a false positive.
RARE_ONE_IN = 1000


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
    noted = wire.loads(value)
    if isinstance(noted["since"], str):  # the format before each kind had its own time
        noted["since"] = dict.fromkeys(noted["kinds"], noted["since"])
    return FoundSecrets(**noted)


def rules_of_latest_scan(rows: Rows) -> str:
    """Returns the keyed hash of the rules of the latest search; "" if there is none."""
    return str(rows.find("meta", "value", key=RULES_KEY) or "")


def holds_text(rows: Rows) -> bool:
    """Whether anything is stored that could be searched."""
    return rows.exists("select 1 from turns") or rows.exists("select 1 from memories")


def record_scan(
    rows: Rows, rules: str, kinds: Mapping[str, int], in_turns: Mapping[str, int], *, key: bytes, now: str
) -> None:
    """Records what a search found, in all and in turns, and left in place."""
    before = found_secrets(rows)
    rows.upsert("meta", "key", key=RULES_KEY, value=tokens.keyed_hash(rules, key))
    rows.delete("meta", key=FINDINGS_KEY)
    if kinds:
        turns = rows.number("select count(*) from turns")
        rare = sorted(kind for kind in kinds if in_turns.get(kind, 0) * RARE_ONE_IN < turns)
        since = before.since if before else {}
        secrets = FoundSecrets(dict(kinds), rare, {kind: since.get(kind, now) for kind in kinds})
        rows.upsert("meta", "key", key=FINDINGS_KEY, value=wire.dumps(asdict(secrets)))
