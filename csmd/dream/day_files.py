"""Writes the files of days and of live sessions."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

from csmd.dream import day_report
from csmd.dream.day_report import Session
from csmd.dream.day_sessions import ToLocal, read_session
from csmd.privacy.redaction import redact, redact_tree
from csmd.recall.last_sessions import session_topic
from csmd.store import cursors, files, journal, stored_days, tombstones
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.store.stored_days import DayPart, Ending
from csmd.text import markdown
from csmd.text.display import squeeze
from csmd.vocabulary import QUIET_S

# --- forgetting

#: A line of a part that quotes a statement.
_LISTED = re.compile(r"- (?:Decided|Open): (.*)$")
#: Whether a sentence was forgotten.
IsForgotten = Callable[[str], bool]


def remove_from_markdown(body: str, is_forgotten: IsForgotten, forgotten: Collection[str]) -> str:
    """Returns a session's part without forgotten lines and title; `forgotten` are sentences that it may show cut."""
    entries = {defuse_comments(day_report.shorten_entry(text)) for text in forgotten}
    titles = {defuse_comments(session_topic([text])) for text in forgotten}
    remaining = []
    for row in body.splitlines(keepends=True):
        line = row.rstrip("\n")
        entry = _LISTED.match(line)
        if entry and (entry[1] in entries or is_forgotten(entry[1])):
            continue
        title = line.rpartition(" · ")[2] if line.startswith("## ") else ""
        if title and (title in titles or is_forgotten(title)):
            row = line.removesuffix(f" · {title}") + row[len(line) :]
        remaining.append(row)
    return "".join(remaining)


def remove_from_data(body: str, is_forgotten: IsForgotten) -> str:
    """Returns a session's part as data without forgotten sentences and fields that become empty."""

    def filter_value(value: Any) -> Any:
        if isinstance(value, list):
            return [item for item in value if not (isinstance(item, str) and is_forgotten(item))]
        return None if isinstance(value, str) and is_forgotten(value) else value

    sessions = _parse_sessions(body)
    filtered = [{name: (value, filter_value(value)) for name, value in session.items()} for session in sessions]
    remaining = [{name: new for name, (old, new) in fields.items() if new or not old} for fields in filtered]
    return body if remaining == sessions else files.to_yaml(remaining)


def _parse_sessions(body: str) -> list[dict[str, Any]]:
    """Parses the sessions of a part as data; [] if a person has changed it into something else."""
    sessions = files.parse_yaml(body)
    return sessions if isinstance(sessions, list) and all(isinstance(item, dict) for item in sessions) else []


# --- sessions and days

#: Days until a day's file moves to the archive; a session that ended earlier gets no file.
KEEP_DAYS = 30
_NAME = re.compile(r"\d{4}-\d\d-\d\d\.(?:md|yaml)")
#: A byte that is not UTF-8: the journal stores text only.
_NO_TEXT = re.compile("[\ud800-\udfff]")
_PART_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def has_ended(last_at: datetime, *, closed: bool, now: datetime) -> bool:
    """Whether a session is over: its host reported it, or it was quiet for long enough."""
    return closed or now - last_at >= timedelta(seconds=QUIET_S["day"])


def is_recent(day: str, *, today: str) -> bool:
    """Whether a day's file is not due for the archive yet; days are ISO dates."""
    return day >= (date.fromisoformat(today) - timedelta(days=KEEP_DAYS)).isoformat()


def find_due(names: Iterable[str], *, today: str) -> list[str]:
    """Returns which of some files are daily files that are due for the archive, oldest first."""
    return sorted(name for name in names if _NAME.fullmatch(name) and not is_recent(name[:10], today=today))


def render_markdown(session: Session) -> str:
    """Renders a session's part of a day's file: a heading, and a list of its results."""
    began, ended = session.began, session.ended
    span = f"{began:%H:%M} to {ended:%H:%M}"
    if began.date() != ended.date():
        span = f"{began:%Y-%m-%d} {span}"
    heading = " · ".join(filter(None, (session.project, span, session_topic([session.goal]))))
    # The topic is in the heading, and is removed from there when it is forgotten.
    entries = day_report.report_project(session.project, "", [replace(session, goal="")]).entries
    return defuse_comments("\n".join((f"## {heading}", "", *day_report.render_entries(entries)))) + "\n"


def defuse_comments(text: str) -> str:
    """Returns a text without comment marks, so that no statement can end its part or begin another."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")


def render_data(session: Session) -> dict[str, Any]:
    """Returns a session as the data of a day's YAML file, without empty fields."""
    values = {field.name: getattr(session, field.name) for field in fields(session)}
    values |= {name: values[name].isoformat(timespec="seconds") for name in ("began", "ended")}
    values["goal"] = squeeze(session.goal)
    values["files"] = [{"path": path, "changes": times} for path, times in session.files]
    agents = [(agent_id, turns, "answered" if answered else "unknown") for agent_id, turns, answered in session.agents]
    values["agents"] = [{"id": agent_id, "turns": turns, "outcome": outcome} for agent_id, turns, outcome in agents]
    finished, entries = session.progress
    values["progress"] = f"{finished} of {entries} done" if entries else ""
    lists = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
    return {name: value for name, value in (values | lists).items() if value not in ("", [])}


def render_live(session: Session) -> dict[str, Any]:
    """Returns the data of a live session; fields that are not final have other names."""
    names = {"ended": "last_at", "outcome": "outcome_so_far"}
    return {names.get(name, name): value for name, value in render_data(session).items()}


# --- the parts of a day's file


class Style(NamedTuple):
    """How a kind of file marks its parts: suffix, a comment's beginning and end, whether parts are list members."""

    suffix: str
    opens: str
    closes: str
    member: bool


MARKDOWN = Style(".md", "<!-- csmd: ", " -->", False)
DATA = Style(".yaml", "# csmd: ", "", True)
STYLES = (MARKDOWN, DATA)


DAY_HEAD = "# What was done on this day, by session; csmd writes the parts between its marks.\n"


def render_empty(day: str, style: Style) -> str:
    """Returns a day's file without parts."""
    return f"{DAY_HEAD}date: '{day}'\nsessions:\n" if style.member else f"# {day}\n"


def is_day_file(text: str) -> bool:
    """Whether a file below the memory directory is that of a day or a live session."""
    return MARKDOWN.opens in text or text.startswith((LIVE_HEAD, DAY_HEAD))


def part_name(session_id: str) -> str:
    """Returns the name of a session's part or file: its id, or a hash of an id that cannot be a file name."""
    if _PART_ID.fullmatch(session_id):
        return session_id
    return hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()[:32]


def put_part(text: str, style: Style, session_id: str, body: str, *, had_part: bool) -> str:
    """Returns a file's text with a session's part as it is now.

    A part that a person edited stays. A missing part is appended, unless the file had it before (`had_part`): then a
    person removed it.
    """
    part = _wrap_part(style, session_id, body)
    match = _find_part(text, style, session_id)
    if match is None:
        return text if had_part else insert_part(text, style, session_id, part)
    is_unedited = _hash_body(match["body"]) == match["check"]
    return f"{text[: match.start()]}{part}{text[match.end() :]}" if is_unedited else text


def extract_part(text: str, style: Style, session_id: str) -> tuple[str, str]:
    """Returns a file's text without a session's part, and the part or ""."""
    match = _find_part(text, style, session_id)
    if match is None:
        return text, ""
    before = text[: match.start()]
    if before.endswith("\n\n"):
        before = before[:-1]
    return f"{before}{text[match.end() :]}", match[0]


def edit_part(text: str, style: Style, session_id: str, edit: Callable[[str], str]) -> str:
    """Returns a file's text with a session's part edited; a part that a person has edited stays marked as edited."""
    match = _find_part(text, style, session_id)
    if match is None or (body := edit(match["body"])) == match["body"]:
        return text
    check = None if _hash_body(match["body"]) == match["check"] else match["check"]
    return f"{text[: match.start()]}{_wrap_part(style, session_id, body, check)}{text[match.end() :]}"


def insert_part(text: str, style: Style, session_id: str, part: str) -> str:
    """Returns a file's text with a part after the others, or after `sessions:`.

    The text is unchanged if the data have no such list.
    """
    end: int | None = len(text)
    if style.member:
        marks = (r"^# csmd: end \S+\n?", r"^sessions:[ \t]*\n?")
        end = next((matches[-1].end() for mark in marks if (matches := [*re.finditer(mark, text, re.MULTILINE)])), None)
    if not part or end is None or _find_part(text, style, session_id) is not None:
        return text
    gap = "" if not end or text[end - 1] == "\n" else "\n"
    gap += "" if style.member else "\n"
    return f"{text[:end]}{gap}{part}{text[end:]}"


def _wrap_part(style: Style, session_id: str, body: str, check: str | None = None) -> str:
    """Returns a part between its marks; `check` is the hash in them if it is not that of the body."""
    name, (_, opens, closes, _) = part_name(session_id), style
    check = _hash_body(body) if check is None else check
    return f"{opens}session {name} {check}{closes}\n{body}{opens}end {name}{closes}\n"


def _hash_body(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()[:10]


def _find_part(text: str, style: Style, session_id: str) -> re.Match[str] | None:
    name, opens, closes = map(re.escape, (part_name(session_id), style.opens, style.closes))
    begin, end = rf"{opens}session {name} (?P<check>\S*){closes}", rf"{opens}end {name}{closes}"
    return re.search(rf"^{begin}[ \t]*\n(?P<body>.*?)^{end}[ \t]*(?:\n|\Z)", text, re.MULTILINE | re.DOTALL)


# --- updating the files

STAGE = "daily"
#: Most sessions that one step writes.
WRITE_BATCH = 20
#: Most sessions that one step checks.
LOOK_BATCH = 400
#: Most live sessions that have a file.
MAX_LIVE = 50
DAILY_FOLDER = "daily"
LIVE_FOLDER = "sessions"
ARCHIVE_FOLDER = "archive"
WORKSPACE_FOLDER = "workspaces"
LIVE_HEAD = "# csmd: where this session stands; made anew while it goes on, gone when it has ended.\n"


def update_files(store: Store, directory: Path, *, now: str, to_local: ToLocal, rest_s: float = 0.0) -> int:
    """Updates the files of days and live sessions; returns the number of changes, 0 if nothing is left.

    The file of a live session that was written less than `rest_s` ago waits, because each write renders the whole
    session.
    """
    changes = _remove_purged(store, directory) + _move_across_walls(store, directory)
    changes += _remove_forgotten(store, directory)
    changes += _write_ended(store, directory, now=to_local(now), to_local=to_local)
    return changes + _write_live(store, directory, now=now, to_local=to_local, rest_s=rest_s)


def remove_withdrawn(store: Store, directory: Path, *, now: str, to_local: ToLocal) -> int:
    """Removes purged and forgotten sentences from the files, edited or not; creates no file.

    Returns the number of parts and files looked at.
    """
    parts = _remove_purged(store, directory) + _remove_forgotten(store, directory)
    return parts + _write_live(store, directory, now=now, to_local=to_local, new=False)


def _remove_purged(store: Store, directory: Path) -> int:
    parts = store.read(lambda rows: stored_days.days_due(rows, "leave", limit=LOOK_BATCH))
    for part, style in product(parts, STYLES):
        path = _find_day_file(directory, part.wall, part.day, style)
        if text := files.read_memory_file(path):
            _rewrite(directory, path, text, extract_part(text, style, part.id)[0], part.day, style)
    if parts:
        store.write(lambda rows: stored_days.drop_days(rows, parts))
    return len(parts)


def _remove_forgotten(store: Store, directory: Path) -> int:
    """Removes forgotten sentences from some parts that may have them; returns the number of these parts."""
    as_of, parts = store.read(
        lambda rows: (tombstones.forgetting_state(rows), stored_days.days_due(rows, "again", limit=WRITE_BATCH))
    )
    changed: set[str] = set()
    for part in parts:
        paths = {style: _find_day_file(directory, part.wall, part.day, style) for style in STYLES}
        texts = {style: files.read_memory_file(path) or "" for style, path in paths.items()}
        cleaned = store.read(partial(_remove_session_forgotten, part=part, contents=texts, key=store.hash_key))
        for style, text in cleaned.items():
            if text != texts[style]:
                files.write_memory_file(directory, paths[style], text)
                changed.add(part.day)
    if parts:
        store.write(lambda rows: stored_days.note_days_read(rows, parts, changed, as_of=as_of))
    return len(parts)


def _remove_session_forgotten(
    rows: Rows, *, part: DayPart, contents: Mapping[Style, str], key: bytes
) -> dict[Style, str]:
    """Returns the files of a day without the forgotten sentences of one session."""
    is_forgotten = stored_days.make_forgotten_test(rows, part.id, key=key)
    # The data have whole sentences that the text may have shortened.
    sessions = _parse_sessions(extract_part(contents[DATA], DATA, part.id)[1])
    values = [value for session in sessions for value in session.values()]
    sentences = chain.from_iterable(value if isinstance(value, list) else [value] for value in values)
    texts = [*stored_days.list_digest_texts(rows, part.id), *(text for text in sentences if isinstance(text, str))]
    forgotten = list(filter(is_forgotten, texts))
    edits: dict[Style, Callable[[str], str]] = {
        MARKDOWN: partial(remove_from_markdown, is_forgotten=is_forgotten, forgotten=forgotten),
        DATA: partial(remove_from_data, is_forgotten=is_forgotten),
    }
    return {style: edit_part(text, style, part.id, edits[style]) for style, text in contents.items()}


def _move_across_walls(store: Store, directory: Path) -> int:
    """Moves the parts whose projects are behind another wall now; returns their number."""
    parts = store.read(lambda rows: stored_days.days_due(rows, "move", limit=LOOK_BATCH))
    for part, style in product(parts, STYLES):
        old, new = (_find_day_file(directory, wall, part.day, style) for wall in (part.wall, part.wall_now))
        source, target = files.read_memory_file(old), files.read_memory_file(new)
        if old == new or not source or target is None:
            continue
        rest, moved = extract_part(source, style, part.id)
        inserted = insert_part(target or render_empty(part.day, style), style, part.id, moved)
        _rewrite(directory, new, target, inserted, part.day, style)
        _rewrite(directory, old, source, rest, part.day, style)
    if parts:
        store.write(lambda rows: stored_days.move_days(rows, parts))
    return len(parts)


def _rewrite(directory: Path, path: Path, old: str, new: str, day: str, style: Style) -> None:
    """Writes a day's file if it has changed, or removes it if it has no part left."""
    if new.strip() == render_empty(day, style).strip():
        path.unlink(missing_ok=True)
    elif new != old:
        files.write_memory_file(directory, path, new)


def archive_days(
    store: Store, home: Path, directory: Path, dream: int, *, now: str, to_local: ToLocal
) -> Iterator[str]:
    """Moves the daily files that are due to the archive, recorded in a dream's journal; yields the former path of each.

    A file that is not text stays, and a different file in the archive is not overwritten. After a crash between two
    steps the next dream finds the same text in both places and finishes. No write transaction waits for the disk.
    """

    def record(rows: Rows, old: str, new: str, text: str) -> None:
        record_file = partial(journal.record_file, rows, dream, now=now)
        record_file(reason="its day is over 30 days ago", path=new, before=None, after=text)
        record_file(reason="moved to the archive", path=old, before=text, after=None)

    for root in _list_roots(directory):
        for name in find_due(files.list_files(root / DAILY_FOLDER), today=_format_day(to_local(now))):
            old, new = root / DAILY_FOLDER / name, root / ARCHIVE_FOLDER / DAILY_FOLDER / name
            text = files.read_memory_file(old)
            if text is None or _NO_TEXT.search(text):
                continue
            text = redact(text, Counter())  # a person may have written there
            if new.exists() and files.read_memory_file(new) != text:
                continue
            files.write_memory_file(directory, new, text)
            before, after = (str(path.relative_to(home)) for path in (old, new))
            store.write(partial(record, old=before, new=after, text=text))
            old.unlink(missing_ok=True)
            yield before


# --- sessions that have ended


def _write_ended(store: Store, directory: Path, *, now: datetime, to_local: ToLocal) -> int:
    as_of = store.read(tombstones.forgetting_state)
    after = store.read(partial(cursors.read_cursor, stage=STAGE, subject="digests"))
    endings = store.read(lambda rows: stored_days.list_endings_after(rows, after=after, limit=LOOK_BATCH))
    written: list[tuple[Ending, str]] = []
    is_waiting = False
    position = after
    for ending in endings:
        last = to_local(ending.last_at)
        if not has_ended(last, closed=ending.closed, now=now):
            is_waiting = True
        elif ending.written != ending.digest_seq and is_recent(_format_day(last), today=_format_day(now)):
            if len(written) == WRITE_BATCH:
                break
            # A session without new turns keeps its day, whatever the time zone is now.
            written.append((ending, ending.day if ending.written_at == ending.last_at else _format_day(last)))
        if not is_waiting:
            position = ending.digest_seq
    in_order = sorted(written, key=lambda pair: (pair[0].last_at, pair[0].session_seq))
    days = [(end, day if _write_session(store, directory, end, day, to_local) else "") for end, day in in_order]

    def write(rows: Rows) -> None:
        for ending, day in days:
            stored_days.note_day(rows, ending, day=day, as_of=as_of)
        cursors.move_cursor(rows, STAGE, "digests", position)

    if written or position > after:
        store.write(write)
    return len(written) + (position > after)


def _write_session(store: Store, directory: Path, ending: Ending, day: str, to_local: ToLocal) -> bool:
    """Writes a session's part of a day's files; returns False, without writing, if it is new and has no results."""
    session = store.read(lambda rows: read_session(rows, ending, to_local, key=store.hash_key))
    if not (session.has_news or ending.day):
        return False
    # Older rules may have let secrets through.
    data = redact_tree(render_data(session), Counter())
    for style, body in ((MARKDOWN, redact(render_markdown(session), Counter())), (DATA, files.to_yaml([data]))):
        path = _find_day_file(directory, ending.wall, day, style)
        text = files.read_memory_file(path)
        if text is not None:
            is_known = bool(text) and ending.day == day
            new = put_part(text or render_empty(day, style), style, ending.id, body, had_part=is_known)
            if new != text:
                files.write_memory_file(directory, path, new)
    return True


# --- live sessions


def _write_live(
    store: Store, directory: Path, *, now: str, to_local: ToLocal, new: bool = True, rest_s: float = 0.0
) -> int:
    """Writes the files of live sessions (with `new` also new ones) and removes those of ended sessions."""
    quiet_since = datetime.fromisoformat(now) - timedelta(seconds=QUIET_S["day"])
    since = quiet_since.strftime("%Y-%m-%dT%H:%M:%S.%f")[:23] + "Z"
    endings = store.read(lambda rows: stored_days.list_live_endings(rows, since=since, limit=MAX_LIVE))
    forgettings, _ = store.read(tombstones.forgetting_state)
    changed = 0
    live: set[Path] = set()
    for ending in endings:
        path = _find_root(directory, ending.wall) / LIVE_FOLDER / f"{part_name(ending.id)}.yaml"
        live.add(path)
        if rest_s and _find_age_s(path, now) < rest_s:
            continue
        # The head identifies what the file was made from, so that a session is read again only if it has changed.
        suffix = f", without {forgettings}" if forgettings else ""
        head = f"{LIVE_HEAD}# digest {ending.digest_seq}, {ending.last_at}{suffix}\n"
        text = files.read_memory_file(path)
        if text is not None and (text or new) and not text.startswith(head):
            read = partial(read_session, ending=ending, to_local=to_local, key=store.hash_key, with_plan=True)
            session = store.read(read)
            files.write_memory_file(directory, path, head + files.to_yaml(redact_tree(render_live(session), Counter())))
            changed += 1
    folders = [root / LIVE_FOLDER for root in _list_roots(directory)]
    for path in [folder / name for folder in folders for name in files.list_files(folder, ".yaml")]:
        if path not in live and (files.read_memory_file(path) or "").startswith(LIVE_HEAD):
            path.unlink(missing_ok=True)
            changed += 1
    return changed


def _find_age_s(path: Path, now: str) -> float:
    """Returns the age of a file in seconds; infinity if there is none, or if its time is in the future."""
    try:
        age = datetime.fromisoformat(now).timestamp() - path.lstat().st_mtime
    except OSError:
        return math.inf
    return age if age >= 0 else math.inf


# --- paths


def _find_root(directory: Path, wall: str) -> Path:
    """Returns the directory of a workspace's files; `wall` is its name, "" for none."""
    if not wall:
        return directory
    slug = re.sub(r"[^a-z0-9]+", "-", wall.lower()).strip("-")[:40]
    return directory / WORKSPACE_FOLDER / f"{slug}-{markdown.short_hash(wall)}".lstrip("-")


def _list_roots(directory: Path) -> list[Path]:
    return [directory, *sorted(path for path in (directory / WORKSPACE_FOLDER).glob("*/") if not path.is_symlink())]


def _find_day_file(directory: Path, wall: str, day: str, style: Style) -> Path:
    """Returns the path of a day's file: in the archive if it is there, else in the daily directory."""
    root = _find_root(directory, wall)
    archived = root / ARCHIVE_FOLDER / DAILY_FOLDER / f"{day}{style.suffix}"
    return archived if archived.exists() else root / DAILY_FOLDER / f"{day}{style.suffix}"


def _format_day(moment: datetime) -> str:
    return moment.date().isoformat()
