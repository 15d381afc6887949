"""The record of an exported memory: its fields, their check, and what is removed from it; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, get_args

from csmd import vocabulary
from csmd.errors import BadInput

#: The file of an export, in the directory that was exported to.
FILE_NAME = "memories.jsonl"
#: Most characters of a memory.
MAX_CHARACTERS = 20_000
#: Most entries in each of its lists.
MAX_ENTRIES = 10_000
_ID = r"m[0-9a-f]{6,40}"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
_TEXT = rf".{{0,{MAX_CHARACTERS}}}"
_WORD = r"[\w:./@+-]{0,200}"
_PATH = ".{0,4999}"
#: The scene of a statement in csmd's words, on one line.
_SCENE = r"(?:at |after \"|in answer to \"|in a review)[^\x00-\x1f\x7f]{0,250}"
_PROJECT = {
    "key": ".{1,4999}", "root": _PATH, "name": _PATH, "kind": frozenset({"git", "submodule", "path", "workspace"}),
    "remote": _PATH, "workspace": _PATH,
}  # fmt: skip


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_day_count(value: Any) -> bool:
    return value is None or (type(value) is int and abs(value) < 10**7)


def _fits(value: Any, rule: Any) -> bool:
    """Whether a JSON value fits a rule.

    A rule is a pattern, a set of words, a tuple of rules (a list with a value for each), a list of one rule (a list of
    such values), a dictionary of rules (an object with these keys), or a predicate.
    """
    match rule:
        case str():
            return isinstance(value, str) and re.fullmatch(rule, value, re.DOTALL) is not None
        case frozenset():
            return isinstance(value, str) and value in rule
        case tuple():
            return isinstance(value, list) and len(value) == len(rule) and all(map(_fits, value, rule))
        case [item_rule]:
            is_short = isinstance(value, list) and len(value) <= MAX_ENTRIES
            return is_short and all(_fits(item, item_rule) for item in value)
        case dict():
            has_names = isinstance(value, dict) and value.keys() == rule.keys()
            return has_names and all(_fits(value[name], rule[name]) for name in rule)
    return bool(rule(value))


#: Field of a record -> the rule that its value fits.
FIELDS: dict[str, Any] = {
    "id": _ID, "text": rf"(?=.*\S).{{1,{MAX_CHARACTERS}}}",
    "project": lambda value: value == {} or _fits(value, _PROJECT), "gate": frozenset(vocabulary.GATE_PRIORITY),
    "category": frozenset(vocabulary.CATEGORIES), "type": frozenset(get_args(vocabulary.MemoryType)),
    "tier": frozenset(get_args(vocabulary.Tier)), "decay": frozenset(get_args(vocabulary.Decay)),
    "authority": frozenset(vocabulary.AUTHORITY_RANK), "origin": _WORD, "confidence": _is_share,
    "scope": frozenset(get_args(vocabulary.Scope)), "session_id": _WORD, "created_at": _TIME, "confirmed_at": _TIME,
    "used_at": f"(?:{_TIME})?", "pinned": lambda value: type(value) is int and value in (0, 1),
    "days_left": dict.fromkeys(("hot_until", "warm_until", "archive_at"), _is_day_count),
    "superseded_by": f"(?:{_ID})?",
    "sources": lambda value: bool(value) and _fits(value, [(_WORD, _WORD, _TIME, "states|confirms|beside")]),
    "links": [(_ID, _WORD, _is_share, _TIME)], "tags": [(_TEXT, "person|assistant", _is_share)],
    "symptoms": [(_WORD, _TIME, _TEXT, _TEXT)], "refutations": [(_WORD, _TIME, _TEXT, _is_share)],
    "scene": lambda value: value == [] or _fits(value, ((_WORD, _SCENE),)),
    "changes": [dict.fromkeys(("change", "before", "after", "reason", "by", "at", "undone_at"), _TEXT)],
}  # fmt: skip
#: The fields of a record that make up its statement.
STATEMENT_FIELDS = ("text", "gate", "category", "confidence", "authority")
#: Field with rows -> the index of its text.
TEXT_COLUMNS = {"tags": 0, "symptoms": 2, "refutations": 2, "scene": 1}


def reject_line(number: int, problem: str) -> BadInput:
    """Returns the error for a line of an export."""
    return BadInput(f"line {number} of {FILE_NAME}: {problem}", hint="export them again")


def check_record(value: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Returns a record with exactly the required fields; BadInput names a wrong field and its line."""
    value = {"scene": [], **value}  # older exports have no scenes
    for name, rule in FIELDS.items():
        if name not in value:
            raise reject_line(number, f"no {name}")
        if not _fits(value[name], rule):
            raise reject_line(number, f"invalid {name}")
    return {name: value[name] for name in FIELDS}


def lower_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record of unknown origin as an assistant's statement, not shown until a person keeps it.

    Its audit is dropped, because an undo would restore states that this store never had.
    """
    authority = min(record["authority"], "assistant", key=vocabulary.AUTHORITY_RANK.__getitem__)
    tags = [[name, "assistant", weight] for name, _, weight in record["tags"]]
    lowered = {"authority": authority, "origin": "model_saved", "pinned": 0, "changes": [], "scene": [], "tags": tags}
    return {**record, **lowered}


def drop_purged(record: Mapping[str, Any], is_purged: Callable[[str], bool]) -> dict[str, Any]:
    """Returns a record without the annotations whose text was purged here."""
    lists = {}
    for name, index in TEXT_COLUMNS.items():
        lists[name] = [row for row in record[name] if not is_purged(row[index])]
    changes = [change for change in record["changes"] if not any(map(is_purged, change.values()))]
    return {**record, **lists, "changes": changes}


def redact_record(
    record: Mapping[str, Any], clean: Callable[[str, Counter[str]], str], counts: Counter[str]
) -> dict[str, Any]:
    """Returns a record with its text redacted by `clean`, which counts redactions."""
    project = {name: text if name == "kind" else clean(text, counts) for name, text in record["project"].items()}
    lists = {
        name: [[*row[:index], clean(row[index], counts), *row[index + 1 :]] for row in record[name]]
        for name, index in TEXT_COLUMNS.items()
    }
    changes = [
        {name: clean(text, counts) if name in ("before", "after", "reason") else text for name, text in change.items()}
        for change in record["changes"]
    ]
    return {**record, "text": clean(record["text"], counts), "project": project, **lists, "changes": changes}
