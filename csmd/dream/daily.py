"""Writes the files of days and of live sessions."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from csmd.dream import narrator
from csmd.extraction.digest import OUTCOME_WORDS
from csmd.privacy.redaction import redact
from csmd.recall import brief
from csmd.recall.brief import without_courtesy
from csmd.store import cursors, digests, dreams, files, markdown_pages, tombstones
from csmd.store.core import Store
from csmd.store.digests import ItemRow
from csmd.store.markdown_pages import DayPart, Ending
from csmd.store.sqlite import Rows
from csmd.text.display import amount, cut, squeeze
from csmd.text.similarity import alike, gist

HEADING = 100
#: Two that begin with so many characters the same say the same, or that have this share of their words in common.
SAME, MOSTLY = 60, 0.6
#: A heading has so many characters before a clause's end that it is cut at.
LEAST_HEADING = 40
#: So many words stand before what a terminal printed where they are a heading by themselves.
LEAST_SAID = 4
#: How long an entry may be, and how much of one that is longer has to stand before the end of a clause that it is cut at.
ENTRY, LEAST_ENTRY = 240, 80
#: A word that is no name of anything.
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?[,;:.?!]?(?: |$)")
#: What an assistant offers at its end: nobody left anything open by it.
_OFFERS = re.compile(r"\b(?:would you like|(?:do you |\A)want(?: me)? to|shall i|should i|let me know)\b", re.I)
#: An assistant's question whether it may go on.
_MAY_I = re.compile(
    r"\A\W*(?:(?:ok(?:ay)?|all good|good|ready|done)\b[^.!?]{0,40}|(?:does|do|is) (?:this|that|it|these) (?:look|sound|work|make|ok(?:ay)?|fine|good)\b[^.!?]{0,60})\?\W*\Z",
    re.I,
)
#: What a terminal shows before what was typed into it, or what it printed.
_PRINTED = re.compile(r"[\s:,]*[❯⎿⏺│├└✓✗]")
_END = re.compile(r"[.;!?](?= )")
_CLAUSE = re.compile(r"[,;:.?!](?= )| (?=[-(–—] ?)| (?=(?:and|but|because|so that|when|which|where|since) )")


def drop_repeats(entries: Iterable[str], *, but: Iterable[str] = ()) -> tuple[str, ...]:
    """What says something of its own: no more than begins as what is in `but` or told already, or says mostly the same."""
    told = list(but)
    seen = {squeeze(entry)[:SAME].casefold() for entry in told}
    found = []
    for entry in entries:
        begins = squeeze(entry)[:SAME].casefold()
        if begins not in seen and not any(alike(gist(entry), gist(other), share=MOSTLY) for other in told):
            seen.add(begins)
            told.append(entry)
            found.append(entry)
    return tuple(found)


def day_title(goal: str) -> str:
    """A prompt as a heading: what it asks for, without the phrase that asks, cut where a clause ends."""
    whole = squeeze(goal)
    said = without_courtesy(whole)
    said = said if said == whole else said.rstrip(" ?")
    if (shown := _PRINTED.search(said)) and len(said[: shown.start()].split()) >= LEAST_SAID:
        said = said[: shown.start()]
    said = said.rstrip(" :;,")
    if _WORD.match(said):
        said = said[0].upper() + said[1:]
    if len(said) <= HEADING:
        return said
    ends = [found.start() for found in _CLAUSE.finditer(said, LEAST_HEADING, HEADING)]
    head = said[: ends[-1]] if ends else cut(said, HEADING).removesuffix("…")
    for opens, is_open in (("`", head.count("`") % 2), ("(", head.count("(") > head.count(")"))):
        if is_open and head.rfind(opens) >= LEAST_HEADING:
            head = head[: head.rfind(opens)]
    return f"{head.rstrip(' ,;:.?!')}…"


def shorten_entry(said: str) -> str:
    """What was said as an entry: whole, else up to where its last sentence or clause ends that has room, with an ellipsis."""
    whole = squeeze(said)
    whole = squeeze(whole.replace("**", "")) if whole.count("**") % 2 else whole
    if len(whole) <= ENTRY:
        return whole
    ends = [found.end() for found in _END.finditer(whole, LEAST_ENTRY, ENTRY - 1)]
    at = next((end for end in reversed(ends) if not _is_open(whole[:end])), 0)
    return f"{whole[:at].rstrip(';')} …" if at else cut(whole, ENTRY)


def _is_open(head: str) -> bool:
    """Whether a text ends within code or parentheses."""
    return head.count("`") % 2 > 0 or head.count("(") > head.count(")")


def subjects(commits: Sequence[str]) -> tuple[str, ...]:
    """Commits by their subjects: one that was amended is told once, as it is now."""
    last = {commit.partition(" ")[2] or commit: commit for commit in commits}
    return tuple(last.values())


def is_offer(entry: str) -> bool:
    """Whether an entry is what an assistant offers, or asks its user to choose, at its end."""
    return bool(_OFFERS.search(entry) or _MAY_I.match(entry))


#: A line of a part that tells somebody's words.
_LISTED = re.compile(r"- (?:Decided|Corrected|Gotcha|Open): (.*)$")
#: Whether a sentence was forgotten.
IsOut = Callable[[str], bool]


def markdown_without(body: str, is_out: IsOut, said: Collection[str]) -> str:
    """A session's part without the lines, and the words of its heading, that are forgotten: known by `is_forgotten`, or of `said`."""
    whole = {defuse_comments(cut_off) for one in said for cut_off in (shorten_entry(one), cut(squeeze(one), ENTRY))}
    titles = {defuse_comments(day_title(one)) for one in said}
    kept = []
    for row in body.splitlines(keepends=True):
        line, end = row.rstrip("\n"), row[len(row.rstrip("\n")) :]
        listed = _LISTED.match(line)
        if listed and (listed[1] in whole or is_out(listed[1])):
            continue
        title = line.rpartition(" · ")[2] if line.startswith("## ") else ""
        kept.append(f"{line.removesuffix(f' · {title}')}{end}" if title and (title in titles or is_out(title)) else row)
    return "".join(kept)


def data_without(body: str, is_out: IsOut) -> str:
    """A session's part as data without what is forgotten; what there is none of any more is left out."""
    found = _sessions_in(body)
    kept = [
        {name: _left(value, is_out) for name, value in one.items() if not value or _left(value, is_out)}
        for one in found
    ]
    return body if kept == found else files.as_yaml(kept)


def _left(value: Any, is_out: IsOut) -> Any:
    """What is left of a value of a session's data."""
    if isinstance(value, list):
        return [one for one in value if not (isinstance(one, str) and is_out(one))]
    return None if isinstance(value, str) and is_out(value) else value


def _sessions_in(body: str) -> list[dict[str, Any]]:
    """The sessions of a part as data; none where somebody has made something else of it."""
    found = files.from_yaml(body)
    return found if isinstance(found, list) and all(isinstance(one, dict) for one in found) else []


#: A session in which nothing was said for so long has ended, unless its host says so sooner.
QUIET_H = 2.0
#: What happens within this time of what was before it was one stretch of work.
PAUSE_MIN = 15.0
#: A day's file moves to the archive after so many days; of what ended before that none is written.
KEEP_DAYS = 30
#: How many of each are told.
TOLD = {"decision": 5, "correction": 5, "gotcha": 3, "file": 12, "commit": 5, "open": 5}

_NAME = re.compile(r"\d{4}-\d\d-\d\d\.(?:md|yaml)")
#: What stands for a byte that is no UTF-8: the journal of a dream holds nothing else.
_NO_TEXT = re.compile("[\ud800-\udfff]")
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


def find_due(names: Iterable[str], *, today: str) -> list[str]:
    """The names of the daily files whose days are over for the archive, the oldest first; other files are not named."""

    def is_over(name: str) -> bool:
        try:
            return not is_kept(name[:10], today=today)
        except ValueError:  # no day
            return False

    return sorted(name for name in names if _NAME.fullmatch(name) and is_over(name))


def count_work_minutes(times: Sequence[datetime]) -> int:
    """Minutes of work in the times of what was said and done: pauses do not count."""
    gaps = ((later - sooner).total_seconds() / 60 for sooner, later in pairwise(times))
    return round(sum(gap for gap in gaps if 0 < gap <= PAUSE_MIN))


# --- a session as text and as data


def render_markdown(one: Session) -> str:
    """A session's part of a day's file: a heading, and what there is of each thing."""
    span = f"{one.began:%H:%M} to {one.ended:%H:%M}"
    if one.began.date() != one.ended.date():
        span = f"{one.began:%Y-%m-%d %H:%M} to {one.ended:%H:%M}"
    rows = [f"## {' · '.join(part for part in (one.project, span, day_title(one.goal)) if part)}", ""]
    counted = [amount(one.prompts, "prompt")] if one.prompts else []
    counted += [amount(one.calls, "tool call"), f"{_lasted(one.work_min)} at work"]
    rows.append(f"- Outcome: {one.outcome_said} ({', '.join(counted)}; session `{one.id[:8]}`)")
    corrected = drop_repeats(one.corrections)
    rows += _listed("Decided", drop_repeats(one.decisions, but=corrected), "decision")
    rows += _listed("Corrected", corrected, "correction")
    rows += _listed("Gotcha", one.gotchas, "gotcha")
    changed = [f"`{squeeze(path)}`" + (f" x{times}" if times > 1 else "") for path, times in one.files]
    if changed:
        room = _room(len(changed), "file")
        more = f" and {len(changed) - room} more" if len(changed) > room else ""
        rows.append(f"- Changed {amount(len(changed), 'file')}: {', '.join(changed[:room])}{more}")
    rows += _listed("Commit", subjects(one.commits), "commit")
    rows += _listed("Open", [entry for entry in one.open if not is_offer(entry)], "open")
    if one.agents:
        answered = sum(ended for *_, ended in one.agents)
        rows.append(f"- {amount(len(one.agents), 'sub-agent')}" + (f", {answered} with an answer" if answered else ""))
    return defuse_comments("\n".join(rows)) + "\n"


def defuse_comments(text: str) -> str:
    """A text that holds no comment: what was said in a session cannot end its part, nor begin another."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")


def _listed(name: str, said: Sequence[str], kind: str) -> list[str]:
    room = _room(len(said), kind)
    more = [f"- {name}: {len(said) - room} more"] if len(said) > room else []
    return [*(f"- {name}: {shorten_entry(one)}" for one in said[:room]), *more]


def _room(number: int, kind: str) -> int:
    """How many of so many are told: that there is one more takes as much room as that one."""
    return number if number == TOLD[kind] + 1 else TOLD[kind]


def _lasted(minutes: int) -> str:
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def render_data(one: Session) -> dict[str, Any]:
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


def render_live(one: Session) -> dict[str, Any]:
    """The same of a session that goes on: nothing of it is the end."""
    names = {"ended": "last_at", "outcome": "outcome_so_far"}
    return {names.get(name, name): value for name, value in render_data(one).items()}


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


def put_part(text: str, style: Style, ident: str, body: str, *, known: bool) -> str:
    """A file's text with a session's part as it is now.

    A part that was edited stays. One that is not there is put behind the others, unless it was there before (`known`):
    then somebody took it out.
    """
    part = f"{_begin(style, ident, _check(body))}\n{body}{_end(style, ident)}\n"
    found = _find(text, style, ident)
    if found is None:
        return text if known else insert_part(text, style, ident, part)
    return f"{text[: found.start()]}{part}{text[found.end() :]}" if _check(found["body"]) == found["check"] else text


def take_out_part(text: str, style: Style, ident: str) -> tuple[str, str]:
    """(A file's text without a session's part, that part as it stands there: "" for none)."""
    found = _find(text, style, ident)
    if found is None:
        return text, ""
    before = text[: found.start()]
    return f"{before[:-1] if before.endswith(chr(10) * 2) else before}{text[found.end() :]}", found[0]


def edit_part(text: str, style: Style, ident: str, cut_out: Callable[[str], str]) -> str:
    """A file's text with a session's part as it is when something was cut out of it; one that was edited stays edited."""
    found = _find(text, style, ident)
    if found is None or (body := cut_out(found["body"])) == found["body"]:
        return text
    check = _check(body) if _check(found["body"]) == found["check"] else found["check"]
    return f"{text[: found.start()]}{_begin(style, ident, check)}\n{body}{_end(style, ident)}\n{text[found.end() :]}"


def insert_part(text: str, style: Style, ident: str, part: str) -> str:
    """A file's text with a part as it was taken out of another."""
    at = _behind(text, style)
    if not part or at is None or _find(text, style, ident) is not None:
        return text
    gap = "" if not at or text[at - 1] == "\n" else "\n"
    return f"{text[:at]}{gap}{'' if style.member else chr(10)}{part}{text[at:]}"


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


STAGE = "daily"
#: Sessions told in one step, and looked at for it; live sessions that have a file; gotchas that are told.
BATCH, LOOKED_AT, MOST_LIVE, GOTCHAS = 20, 400, 50, 20
DAILY, LIVE, ARCHIVE, WALLED = "daily", "sessions", "archive", "workspaces"
LIVE_HEAD = "# csmd: where this session stands; made anew while it goes on, gone when it has ended.\n"

#: What an outcome is called, as a digest tells it.
OUTCOMES: Mapping[str, str] = {str(name): said for name, said in OUTCOME_WORDS.items()}

#: A time of the store in the zone whose days people mean.
Here = Callable[[str], datetime]


def step(store: Store, directory: Path, *, now: str, here: Here) -> int:
    """Brings the daily files and the live sessions' up to date; how much was done, 0 for nothing left."""
    done = _leave(store, directory) + _settle(store, directory) + _again(store, directory)
    done += _tell(store, directory, now=here(now), here=here)
    return done + _live(store, directory, now=now, here=here)


def withdraw(store: Store, directory: Path, *, now: str, here: Here) -> int:
    """Takes out of the files what was taken back in the store, edited or not; how many parts and files there were.

    No file is begun by it: it is for a purge and for forgetting, wherever the files come from.
    """
    return _leave(store, directory) + _again(store, directory) + _live(store, directory, now=now, here=here, new=False)


def _leave(store: Store, directory: Path) -> int:
    found = store.read(lambda rows: markdown_pages.days_due(rows, "leave", limit=LOOKED_AT))
    for part in found:
        for style in (MARKDOWN, DATA):
            path = _file(directory, part.wall, part.day, style)
            if text := files.read_memory_file(path):
                _put_back(directory, path, text, take_out_part(text, style, part.id)[0], part.day, style)
    if found:
        store.write(lambda rows: markdown_pages.drop_days(rows, found))
    return len(found)


def _again(store: Store, directory: Path) -> int:
    """Takes what was forgotten out of the parts of some days."""
    as_of, found = store.read(
        lambda rows: (tombstones.forgetting_state(rows), markdown_pages.days_due(rows, "again", limit=BATCH))
    )
    changed: set[str] = set()
    for part in found:
        paths = {style: _file(directory, part.wall, part.day, style) for style in (MARKDOWN, DATA)}
        texts = {style: text for style, path in paths.items() if (text := files.read_memory_file(path))}
        kept = store.read(partial(_kept, part=part, texts=texts, key=store.hash_key))
        for style, text in kept.items():
            if text != texts[style]:
                files.write_memory_file(directory, paths[style], text)
                changed.add(part.day)
    if found:
        store.write(lambda rows: markdown_pages.note_days_read(rows, found, changed, as_of=as_of))
    return len(found)


def _kept(rows: Rows, *, part: DayPart, texts: Mapping[Style, str], key: bytes) -> dict[Style, str]:
    """The files of a day without what of a session's part is forgotten."""
    is_out = markdown_pages.session_is_out(rows, part.id, key=key)
    # The data say in whole sentences what the text beside them may have cut.
    values = [
        value for one in _sessions_in(take_out_part(texts.get(DATA, ""), DATA, part.id)[1]) for value in one.values()
    ]
    whole = [one for value in values for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
    said = [one for one in (*markdown_pages.digest_texts(rows, part.id), *whole) if is_out(one)]
    cutting = {
        MARKDOWN: partial(markdown_without, is_out=is_out, said=said),
        DATA: partial(data_without, is_out=is_out),
    }
    return {style: edit_part(text, style, part.id, cutting[style]) for style, text in texts.items()}


def archive_days(store: Store, home: Path, directory: Path, dream: int, *, now: str, here: Here) -> Iterator[str]:
    """Moves the daily files that are due into the archive, noted in a dream's journal; after each the path that it had.

    Another file that is there already is not written over, and what is no text stays where it is. Killed between two
    steps, the next dream finds the same text in both places and goes on. No disk is waited for in a write.
    """
    today = _day(here(now))
    for root in [directory, *(directory / WALLED / name for name in _walled(directory))]:
        for name in find_due(files.names_in(root / DAILY), today=today):
            old, new = root / DAILY / name, root / ARCHIVE / DAILY / name
            text = files.read_memory_file(old)
            if text is None or _NO_TEXT.search(text):
                continue
            text = redact(text, Counter())  # people write there, too
            if new.exists() and files.read_memory_file(new) != text:
                continue
            files.write_memory_file(directory, new, text)
            store.write(partial(_note_moved, dream=dream, home=home, old=old, new=new, text=text, now=now))
            old.unlink(missing_ok=True)
            yield str(old.relative_to(home))


def _note_moved(rows: Rows, *, dream: int, home: Path, old: Path, new: Path, text: str, now: str) -> None:
    there, gone = str(new.relative_to(home)), str(old.relative_to(home))
    dreams.record_file(rows, dream, reason="its day is over 30 days ago", path=there, before=None, after=text, now=now)
    dreams.record_file(rows, dream, reason="moved to the archive", path=gone, before=text, after=None, now=now)


# --- what has ended


def _tell(store: Store, directory: Path, *, now: datetime, here: Here) -> int:
    as_of, after = store.read(lambda rows: (tombstones.forgetting_state(rows), cursors.cursor(rows, STAGE, "digests")))
    found = store.read(lambda rows: markdown_pages.days_waiting(rows, after=after, limit=LOOKED_AT))
    written: list[tuple[Ending, str]] = []
    held = False
    upto = after
    for one in found:
        last = here(one.last_at)
        if not has_ended(last, closed=one.closed, now=now):
            held = True
        elif one.told != one.digest_seq and is_kept(_day(last), today=_day(now)):
            if len(written) == BATCH:
                break
            # One that says no more than before keeps its date, whatever zone holds now.
            written.append((one, one.day if one.told_at == one.last_at else _day(last)))
        if not held:
            upto = one.digest_seq
    for one, day in sorted(written, key=lambda pair: (pair[0].last_at, pair[0].session_seq)):
        _write(store, directory, one, day, here)

    def write(rows: Rows) -> None:
        for one, day in written:
            markdown_pages.note_day(rows, one, day=day, as_of=as_of)
        cursors.move_cursor(rows, STAGE, "digests", upto)

    if written or upto > after:
        store.write(write)
    return len(written) + (upto > after)


def _write(store: Store, directory: Path, one: Ending, day: str, here: Here) -> None:
    session = store.read(lambda rows: _session(rows, one, here, key=store.hash_key))
    for style, body in ((MARKDOWN, render_markdown(session)), (DATA, files.as_yaml([render_data(session)]))):
        path = _file(directory, one.wall, day, style)
        text = files.read_memory_file(path)
        if text is not None:
            new = put_part(text or empty(day, style), style, one.id, body, known=bool(text) and one.day == day)
            if new != text:
                files.write_memory_file(directory, path, new)


def _settle(store: Store, directory: Path) -> int:
    """Moves what stands on the wrong side of a wall, as it stands."""
    found = store.read(lambda rows: markdown_pages.days_due(rows, "move", limit=LOOKED_AT))
    for part in found:
        for style in (MARKDOWN, DATA):
            _move(directory, part, style)
    if found:
        store.write(lambda rows: markdown_pages.move_days(rows, found))
    return len(found)


def _move(directory: Path, part: DayPart, style: Style) -> None:
    old, new = (_file(directory, wall, part.day, style) for wall in (part.wall, part.wall_now))
    if old == new:
        return
    text, there = files.read_memory_file(old), files.read_memory_file(new)
    if not text or there is None:
        return
    left, taken = take_out_part(text, style, part.id)
    with_it = insert_part(there or empty(part.day, style), style, part.id, taken)
    if taken and with_it != there:
        files.write_memory_file(directory, new, with_it)
    _put_back(directory, old, text, left, part.day, style)


def _put_back(directory: Path, path: Path, text: str, left: str, day: str, style: Style) -> None:
    """Writes what is left of a file; one in which nothing is left but what csmd began it with is gone."""
    if is_nothing(left, day, style):
        path.unlink(missing_ok=True)
    elif left != text:
        files.write_memory_file(directory, path, left)


# --- what goes on


def _live(store: Store, directory: Path, *, now: str, here: Here, new: bool = True) -> int:
    """Writes a file for each session that goes on (with `new` also where there is none yet), and takes away those of sessions that have ended."""
    since = (datetime.fromisoformat(now) - timedelta(hours=QUIET_H)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:23] + "Z"
    found = store.read(lambda rows: markdown_pages.live_endings(rows, since=since, limit=MOST_LIVE))
    gone, _ = store.read(tombstones.forgetting_state)
    changed = 0
    wanted: set[Path] = set()
    for one in found:
        path = _root(directory, one.wall) / LIVE / f"{part_name(one.id)}.yaml"
        wanted.add(path)
        # What it was made of stands in it: a long session is not read again where nothing came.
        head = f"{LIVE_HEAD}# digest {one.digest_seq}, {one.last_at}{f', without {gone}' if gone else ''}\n"
        there = files.read_memory_file(path)
        if there is not None and (there or new) and not there.startswith(head):
            session = store.read(lambda rows, one=one: _session(rows, one, here, key=store.hash_key))  # type: ignore[misc]
            files.write_memory_file(directory, path, head + files.as_yaml(render_live(session)))
            changed += 1
    for folder in [directory / LIVE, *(directory / WALLED / name / LIVE for name in _walled(directory))]:
        for name in files.names_in(folder, ".yaml"):
            if folder / name not in wanted and (files.read_memory_file(folder / name) or "").startswith(LIVE_HEAD):
                (folder / name).unlink(missing_ok=True)
                changed += 1
    return changed


# --- places and values


def _root(directory: Path, wall: str) -> Path:
    if not wall:
        return directory
    slug = re.sub(r"[^a-z0-9]+", "-", wall.lower()).strip("-")[:40]
    return directory / WALLED / f"{slug}-{hashlib.sha256(wall.encode('utf-8', 'replace')).hexdigest()[:6]}".lstrip("-")


def _walled(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / WALLED).glob("*/") if not path.is_symlink())


def _file(directory: Path, wall: str, day: str, style: Style) -> Path:
    """A day's file: where it is, or where it will be; an archived one stays in the archive."""
    root = _root(directory, wall)
    archived = root / ARCHIVE / DAILY / f"{day}{style.suffix}"
    return archived if archived.exists() else root / DAILY / f"{day}{style.suffix}"


def _day(moment: datetime) -> str:
    return moment.date().isoformat()


def _session(rows: Rows, one: Ending, here: Here, *, key: bytes) -> Session:
    versions = digests.of_session(rows, one.session_seq)
    digest = versions[-1] if versions else None
    items: dict[str, list[ItemRow]] = {}
    for item in digests.items(rows, digest.seq) if digest else ():
        items.setdefault(item.kind, []).append(item)

    is_out = markdown_pages.session_is_out(rows, one.id, key=key)

    def said(kind: str) -> tuple[str, ...]:
        return tuple(item.text for item in items.get(kind, ()) if not is_out(item.text))

    gotchas = drop_repeats(
        [trap for trap in markdown_pages.gotchas_of(rows, one.session_seq, limit=GOTCHAS) if not is_out(trap)],
        but=(*said("decision"), *said("correction")),
    )
    files = (
        (narrator.path_in_project(item.text, cwd=one.cwd, root=one.root), item.amount) for item in items.get("file", ())
    )
    times = [here(at) for at in markdown_pages.turn_times(rows, one.session_seq)]
    return Session(
        id=one.id, project=one.project, began=here(one.started_at), ended=here(one.last_at), work_min=count_work_minutes(times),
        goal=next(iter(said("goal")), ""), outcome=digest.outcome if digest else "",
        outcome_said=OUTCOMES.get(digest.outcome, "") if digest else "", prompts=digest.prompts if digest else 0,
        calls=digest.calls if digest else 0, tokens=digest.tokens if digest else 0,
        decisions=tuple(filter(brief.is_lasting_decision, said("decision"))),
        corrections=said("correction"), gotchas=gotchas,
        files=tuple((path, amount) for path, amount in files if path), commits=said("commit"), open=said("open"),
        agents=tuple((agent.id, agent.turns, agent.answered) for agent in markdown_pages.agents_of(rows, one.id)),
    )  # fmt: skip
