"""What was forgotten leaves what a day tells: lines of a part, words of its heading, entries of its data; pure.

Only csmd's own lines are looked at: what somebody else wrote into a part stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from csmd.dream import entries
from csmd.dream.daily import plain
from csmd.text import cut, squeeze

#: A line of a part that tells somebody's words.
_LISTED = re.compile(r"- (?:Decided|Corrected|Gotcha|Open): (.*)$")
#: Whether a sentence was forgotten.
IsOut = Callable[[str], bool]


def markdown_without(body: str, is_out: IsOut, said: Collection[str]) -> str:
    """A session's part without the lines, and the words of its heading, that are forgotten: known by `is_out`, or of `said`."""
    whole = {plain(cut_off) for one in said for cut_off in (entries.entry(one), cut(squeeze(one), entries.ENTRY))}
    titles = {plain(entries.title(one)) for one in said}
    kept = []
    for row in body.splitlines(keepends=True):
        line, end = row.rstrip("\n"), row[len(row.rstrip("\n")) :]
        listed = _LISTED.match(line)
        if listed and (listed[1] in whole or is_out(listed[1])):
            continue
        title = line.rpartition(" · ")[2] if line.startswith("## ") else ""
        kept.append(f"{line.removesuffix(f' · {title}')}{end}" if title and (title in titles or is_out(title)) else row)
    return "".join(kept)


def entered(found: Any) -> list[str]:
    """What data say of sessions in whole sentences, where the text beside may have cut them; nothing of what is no such data."""
    values = [value for one in found if isinstance(one, dict) for value in one.values()] if isinstance(found, list) else []  # fmt: skip
    return [one for value in values for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def data_without(found: Sequence[Mapping[str, Any]], is_out: IsOut, said: Collection[str]) -> list[dict[str, Any]]:
    """Sessions as data without what is forgotten; what there is none of any more is left out."""
    known = {squeeze(one) for one in said}

    def out(value: Any) -> bool:
        return isinstance(value, str) and (squeeze(value) in known or is_out(value))

    def left(value: Any) -> Any:
        return [one for one in value if not out(one)] if isinstance(value, list) else value

    return [
        {name: left(value) for name, value in one.items() if not out(value) and (left(value) or not value)}
        for one in found
    ]
