"""What was done on a day, session by session, as people read it and as data; and what stands in a day's file; pure.

A file is people's. csmd writes one part of it for each session, between two marks that are comments; what stands outside
of its marks it never touches. The first mark holds a check of the part as csmd wrote it: a part that somebody has edited
is known by it and stays as it is, and one that somebody took out does not come back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from csmd.dream import entries
from csmd.text import amount, squeeze

#: A session in which nothing was said for so long has ended, unless its host says so sooner.
QUIET_H = 2.0
#: What happens within this time of what was before it was one stretch of work.
PAUSE_MIN = 15.0
#: A day's file moves to the archive after so many days; of what ended before that none is written.
KEEP_DAYS = 30
#: How many of each are told.
TOLD = {"decision": 5, "correction": 5, "gotcha": 3, "file": 12, "commit": 5, "open": 5}

_NAME = re.compile(r"\d{4}-\d\d-\d\d\.(?:md|yaml)")
_PART_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Style(NamedTuple):
    """How a kind of file is marked: a comment's beginning and end, and whether parts are members of its list."""

    suffix: str
    opens: str
    closes: str
    member: bool


MARKDOWN = Style(".md", "<!-- csmd: ", " -->", False)
DATA = Style(".yaml", "# csmd: ", "", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as a day's file tells it; times are local, `outcome` a word and what it says, lists the first first."""

    id: str
    project: str
    began: datetime
    ended: datetime
    work_min: int
    goal: str
    outcome: str
    outcome_said: str
    prompts: int
    calls: int
    tokens: int
    decisions: tuple[str, ...] = ()
    corrections: tuple[str, ...] = ()
    gotchas: tuple[str, ...] = ()
    files: tuple[tuple[str, int], ...] = ()
    commits: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    #: Sub-agents as (id, turns, whether its transcript ends with an answer).
    agents: tuple[tuple[str, int, bool], ...] = ()


def has_ended(last_at: datetime, *, closed: bool, now: datetime) -> bool:
    """Whether a session is over: its host said so, or nothing was said for long."""
    return closed or now - last_at >= timedelta(hours=QUIET_H)


def is_kept(day: str, *, today: str) -> bool:
    """Whether a day's file is still a daily one."""
    return date.fromisoformat(day) >= date.fromisoformat(today) - timedelta(days=KEEP_DAYS)


def due(names: Iterable[str], *, today: str) -> list[str]:
    """The names of the daily files whose days are over for the archive, the oldest first; other files are not named."""
    return sorted(
        name for name in names if _NAME.fullmatch(name) and _is_day(name[:10]) and not is_kept(name[:10], today=today)
    )


def _is_day(said: str) -> bool:
    try:
        date.fromisoformat(said)
    except ValueError:
        return False
    return True


def at_work(times: Sequence[datetime]) -> int:
    """Minutes of work in the times of what was said and done: pauses do not count."""
    gaps = ((later - sooner).total_seconds() / 60 for sooner, later in pairwise(times))
    return round(sum(gap for gap in gaps if 0 < gap <= PAUSE_MIN))


# --- a session as text and as data


def markdown(one: Session) -> str:
    """A session's part of a day's file: a heading, and what there is of each thing."""
    span = f"{one.began:%H:%M} to {one.ended:%H:%M}"
    if one.began.date() != one.ended.date():
        span = f"{one.began:%Y-%m-%d %H:%M} to {one.ended:%H:%M}"
    rows = [f"## {' · '.join(part for part in (one.project, span, entries.title(one.goal)) if part)}", ""]
    counted = [amount(one.prompts, "prompt")] if one.prompts else []
    counted += [amount(one.calls, "tool call"), f"{_lasted(one.work_min)} at work"]
    rows.append(f"- Outcome: {one.outcome_said} ({', '.join(counted)}; session `{one.id[:8]}`)")
    corrected = entries.distinct(one.corrections)
    rows += _listed("Decided", entries.distinct(one.decisions, but=corrected), "decision")
    rows += _listed("Corrected", corrected, "correction")
    rows += _listed("Gotcha", one.gotchas, "gotcha")
    files = [f"`{squeeze(path)}`" + (f" x{times}" if times > 1 else "") for path, times in one.files]
    rows += _row(f"Changed {amount(len(files), 'file')}", files, "file")
    rows += _listed("Commit", entries.subjects(one.commits), "commit")
    rows += _listed("Open", [entry for entry in one.open if not entries.is_offer(entry)], "open")
    if one.agents:
        answered = sum(ended for *_, ended in one.agents)
        rows.append(f"- {amount(len(one.agents), 'sub-agent')}" + (f", {answered} with an answer" if answered else ""))
    return plain("\n".join(rows)) + "\n"


def plain(text: str) -> str:
    """A text that holds no comment: what was said in a session cannot end its part, nor begin another."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")


def _listed(name: str, said: Sequence[str], kind: str) -> list[str]:
    rows = [f"- {name}: {entries.entry(one)}" for one in said[: _room(len(said), kind)]]
    more = len(said) - len(rows)
    return [*rows, f"- {name}: {more} more"] if more > 0 else rows


def _row(name: str, said: Sequence[str], kind: str) -> list[str]:
    if not said:
        return []
    room = _room(len(said), kind)
    more = len(said) - room
    return [f"- {name}: {', '.join(said[:room])}" + (f" and {more} more" if more > 0 else "")]


def _room(number: int, kind: str) -> int:
    """How many of so many are told: that there is one more takes as much room as that one."""
    return number if number == TOLD[kind] + 1 else TOLD[kind]


def _lasted(minutes: int) -> str:
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def data(one: Session) -> dict[str, Any]:
    """A session as the data beside a day's text; what there is none of is left out."""
    found: dict[str, Any] = {
        "id": one.id, "project": one.project, "began": one.began.isoformat(timespec="seconds"),
        "ended": one.ended.isoformat(timespec="seconds"), "minutes_at_work": one.work_min, "goal": squeeze(one.goal),
        "outcome": one.outcome, "prompts": one.prompts, "tool_calls": one.calls, "tokens_written": one.tokens,
        "decisions": list(one.decisions), "corrections": list(one.corrections), "gotchas": list(one.gotchas),
        "files": [{"path": path, "changes": times} for path, times in one.files],
        "commits": list(one.commits), "open": list(one.open),
        "agents": [{"id": ident, "turns": turns, "outcome": "answered" if ended else "unknown"}
                   for ident, turns, ended in one.agents],
    }  # fmt: skip
    return {name: value for name, value in found.items() if value not in ("", [])}


def so_far(one: Session) -> dict[str, Any]:
    """The same of a session that goes on: nothing of it is the end."""
    names = {"ended": "last_at", "outcome": "outcome_so_far"}
    return {names.get(name, name): value for name, value in data(one).items()}


# --- a day's file


def empty(day: str, style: Style) -> str:
    """A day's file before anything stands in it."""
    if style.member:
        return f"# What was done on this day, by session; csmd writes the parts between its marks.\ndate: '{day}'\nsessions:\n"
    return f"# {day}\n"


def is_nothing(text: str, day: str, style: Style) -> bool:
    """Whether nobody has anything in a file."""
    return text.strip() == empty(day, style).strip()


def part_name(ident: str) -> str:
    """What a session's part, or its file, is called: its id, where that can be a name."""
    return ident if _PART_ID.fullmatch(ident) else hashlib.sha256(ident.encode("utf-8", "replace")).hexdigest()[:32]


def put(text: str, style: Style, ident: str, body: str, *, known: bool) -> str:
    """A file's text with a session's part as it is now.

    A part that was edited stays. One that is not there is put behind the others, unless it was there before (`known`):
    then somebody took it out.
    """
    part = f"{_begin(style, ident, _check(body))}\n{body}{_end(style, ident)}\n"
    found = _find(text, style, ident)
    if found is not None:
        return (
            f"{text[: found.start()]}{part}{text[found.end() :]}" if _check(found["body"]) == found["check"] else text
        )
    if known:
        return text
    at = _behind(text, style)
    if at is None:
        return text
    before = text[:at]
    gap = "" if before.endswith("\n") or not before else "\n"
    return f"{before}{gap}{'' if style.member else chr(10)}{part}{text[at:]}"


def take_out(text: str, style: Style, ident: str) -> tuple[str, str]:
    """(A file's text without a session's part, that part as it stands there: "" for none)."""
    found = _find(text, style, ident)
    if found is None:
        return text, ""
    before = text[: found.start()]
    return f"{before[:-1] if before.endswith(chr(10) * 2) else before}{text[found.end() :]}", found[0]


def without(text: str, style: Style, ident: str, cut_out: Callable[[str], str]) -> str:
    """A file's text with a session's part as it is when something was cut out of it; one that was edited stays edited."""
    found = _find(text, style, ident)
    if found is None or (body := cut_out(found["body"])) == found["body"]:
        return text
    check = _check(body) if _check(found["body"]) == found["check"] else found["check"]
    return f"{text[: found.start()]}{_begin(style, ident, check)}\n{body}{_end(style, ident)}\n{text[found.end() :]}"


def put_whole(text: str, style: Style, ident: str, part: str) -> str:
    """A file's text with a part as it was taken out of another."""
    at = _behind(text, style)
    if not part or at is None or _find(text, style, ident) is not None:
        return text
    return f"{text[:at]}{'' if style.member else chr(10)}{part}{text[at:]}"


def _behind(text: str, style: Style) -> int | None:
    """Where another part goes: at the end, or behind the last member of the list; None where there is no list."""
    if not style.member:
        return len(text)
    ends = list(re.finditer(r"^# csmd: end \S+\n?", text, re.MULTILINE)) or list(
        re.finditer(r"^sessions:[ \t]*\n?", text, re.MULTILINE)
    )
    return ends[-1].end() if ends else None


def _begin(style: Style, ident: str, check: str) -> str:
    return f"{style.opens}session {part_name(ident)} {check}{style.closes}"


def _end(style: Style, ident: str) -> str:
    return f"{style.opens}end {part_name(ident)}{style.closes}"


def _check(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()[:10]


def _find(text: str, style: Style, ident: str) -> re.Match[str] | None:
    begin = rf"{re.escape(style.opens)}session {re.escape(part_name(ident))} (?P<check>\S*){re.escape(style.closes)}"
    end = re.escape(_end(style, ident))
    return re.search(rf"^{begin}[ \t]*\n(?P<body>.*?)^{end}[ \t]*(?:\n|\Z)", text, re.MULTILINE | re.DOTALL)
