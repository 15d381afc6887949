"""The hands of the daily files: `daily/DAY.md` and `.yaml` when a session has ended, `sessions/ID.yaml` while it goes on.

A session is told on the local date of its last turn, by the zone that holds when it is written; what is written keeps
its date. One that goes on is told anew: on the same day in its own part, on another in that day's file. Behind a wall
everything stands apart, in `workspaces/NAME/`. Files are written before the rows that say so: killed between the two,
the next step finds its own part and goes on. What was purged or forgotten leaves the files at once (`withdraw`), edited
or not: of what was purged the whole part does, of what was forgotten its line.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from csmd.capture.redact import redact
from csmd.distill.digest import SAID
from csmd.dream import daily, entries, narrator, unsaid
from csmd.dream.daily import DATA, MARKDOWN, Session
from csmd.recall import lasting
from csmd.store import cursors, days, digests, dreams, files, tombstones
from csmd.store.core import Store
from csmd.store.days import Ending, Told
from csmd.store.digests import ItemRow
from csmd.store.sqlite import Rows

STAGE = "daily"
#: Sessions told in one step, and looked at for it; live sessions that have a file; gotchas that are told.
BATCH, LOOKED_AT, MOST_LIVE, GOTCHAS = 20, 400, 50, 20
DAILY, LIVE, ARCHIVE, WALLED = "daily", "sessions", "archive", "workspaces"
LIVE_HEAD = "# csmd: where this session stands; made anew while it goes on, gone when it has ended.\n"

#: What an outcome is called, as a digest tells it.
OUTCOMES: Mapping[str, str] = {str(name): said for name, said in SAID.items()}

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
    found = store.read(lambda rows: days.taken_back(rows, limit=LOOKED_AT))
    for part in found:
        for style in (MARKDOWN, DATA):
            path = _file(directory, part.wall, part.day, style)
            if text := files.read_memory_file(path):
                _put_back(directory, path, text, daily.take_out(text, style, part.id)[0], part.day, style)
    if found:
        store.write(lambda rows: days.gone(rows, found))
    return len(found)


def _again(store: Store, directory: Path) -> int:
    """Takes what was forgotten out of the parts of some days."""
    as_of, found = store.read(lambda rows: (tombstones.forgettings(rows), days.again(rows, limit=BATCH)))
    changed: set[str] = set()
    for part in found:
        data = files.read_memory_file(_file(directory, part.wall, part.day, DATA)) or ""
        entered = unsaid.entered(files.from_yaml(daily.take_out(data, DATA, part.id)[1]))
        for style in (MARKDOWN, DATA):
            path = _file(directory, part.wall, part.day, style)
            if text := files.read_memory_file(path):
                kept = store.read(partial(_kept, text=text, part=part, style=style, entered=entered, key=store.hash_key))  # fmt: skip
                if kept != text:
                    files.write_memory_file(directory, path, kept)
                    changed.add(part.day)
    if found:
        store.write(lambda rows: days.looked_through(rows, found, changed, as_of=as_of))
    return len(found)


def _kept(rows: Rows, *, text: str, part: Told, style: daily.Style, entered: Sequence[str], key: bytes) -> str:
    """A day's file without what of a session's part is forgotten; `entered` is what its data says."""
    is_out = days.is_out(rows, part.id, key=key)
    said = [one for one in (*days.said(rows, part.id), *entered) if is_out(one)]
    of = _data_without if style.member else unsaid.markdown_without
    return daily.without(text, style, part.id, lambda body: of(body, is_out, said))


def _data_without(body: str, is_out: unsaid.IsOut, said: Sequence[str]) -> str:
    found = files.from_yaml(body)
    if not (isinstance(found, list) and all(isinstance(one, dict) for one in found)):
        return body  # somebody has made something else of it
    kept = unsaid.data_without(found, is_out, said)
    return body if kept == found else files.as_yaml(kept)


def archive(store: Store, home: Path, directory: Path, dream: int, *, now: str, here: Here) -> Iterator[str]:
    """Moves the daily files that are due into the archive, noted in a dream's journal; after each the path that it had.

    Another file that is there already is not written over, and what is no text stays where it is. Killed between two
    steps, the next dream finds the same text in both places and goes on. No disk is waited for in a write.
    """
    today = _day(here(now))
    for root in [directory, *(directory / WALLED / name for name in _walled(directory))]:
        for name in daily.due(files.names_in(root / DAILY), today=today):
            old, new = root / DAILY / name, root / ARCHIVE / DAILY / name
            text = files.read_memory_file(old)
            if text is None or not _is_text(text):
                continue
            text = redact(text, Counter())  # people write there, too
            if new.exists() and files.read_memory_file(new) != text:
                continue
            files.write_memory_file(directory, new, text)
            store.write(partial(_note_moved, dream=dream, home=home, old=old, new=new, text=text, now=now))
            files.remove_memory_file(old)
            yield str(old.relative_to(home))


def _note_moved(rows: Rows, *, dream: int, home: Path, old: Path, new: Path, text: str, now: str) -> None:
    there, gone = str(new.relative_to(home)), str(old.relative_to(home))
    dreams.wrote(rows, dream, reason="its day is over 30 days ago", path=there, before=None, after=text, now=now)
    dreams.wrote(rows, dream, reason="moved to the archive", path=gone, before=text, after=None, now=now)


def _is_text(said: str) -> bool:
    """Whether a file is UTF-8: the journal holds nothing else."""
    try:
        said.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- what has ended


def _tell(store: Store, directory: Path, *, now: datetime, here: Here) -> int:
    as_of, after = store.read(lambda rows: (tombstones.forgettings(rows), cursors.cursor(rows, STAGE, "digests")))
    found = store.read(lambda rows: days.waiting(rows, after=after, limit=LOOKED_AT))
    written: list[tuple[Ending, str]] = []
    held = False
    upto = after
    for one in found:
        last = here(one.last_at)
        if not daily.has_ended(last, closed=one.closed, now=now):
            held = True
        elif one.told != one.digest_seq and daily.is_kept(_day(last), today=_day(now)):
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
            days.note(rows, one, day=day, as_of=as_of)
        cursors.move_cursor(rows, STAGE, "digests", upto)

    if written or upto > after:
        store.write(write)
    return len(written) + (upto > after)


def _write(store: Store, directory: Path, one: Ending, day: str, here: Here) -> None:
    session = store.read(lambda rows: _session(rows, one, here, key=store.hash_key))
    for style, body in ((MARKDOWN, daily.markdown(session)), (DATA, files.as_yaml([daily.data(session)]))):
        path = _file(directory, one.wall, day, style)
        text = files.read_memory_file(path)
        if text is not None:
            new = daily.put(text or daily.empty(day, style), style, one.id, body, known=bool(text) and one.day == day)
            if new != text:
                files.write_memory_file(directory, path, new)


def _settle(store: Store, directory: Path) -> int:
    """Moves what stands on the wrong side of a wall, as it stands."""
    found = store.read(lambda rows: days.moved(rows, limit=LOOKED_AT))
    for part in found:
        for style in (MARKDOWN, DATA):
            _move(directory, part, style)
    if found:
        store.write(lambda rows: days.stand(rows, found))
    return len(found)


def _move(directory: Path, part: Told, style: daily.Style) -> None:
    old, new = (_file(directory, wall, part.day, style) for wall in (part.wall, part.wall_now))
    if old == new:
        return
    text, there = files.read_memory_file(old), files.read_memory_file(new)
    if not text or there is None:
        return
    left, taken = daily.take_out(text, style, part.id)
    with_it = daily.put_whole(there or daily.empty(part.day, style), style, part.id, taken)
    if taken and with_it != there:
        files.write_memory_file(directory, new, with_it)
    _put_back(directory, old, text, left, part.day, style)


def _put_back(directory: Path, path: Path, text: str, left: str, day: str, style: daily.Style) -> None:
    """Writes what is left of a file; one in which nothing is left but what csmd began it with is gone."""
    if daily.is_nothing(left, day, style):
        files.remove_memory_file(path)
    elif left != text:
        files.write_memory_file(directory, path, left)


# --- what goes on


def _live(store: Store, directory: Path, *, now: str, here: Here, new: bool = True) -> int:
    """Writes a file for each session that goes on (with `new` also where there is none yet), and takes away those of sessions that have ended."""
    since = (datetime.fromisoformat(now) - timedelta(hours=daily.QUIET_H)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:23] + "Z"
    found = store.read(lambda rows: days.live(rows, since=since, limit=MOST_LIVE))
    gone, _ = store.read(tombstones.forgettings)
    changed = 0
    wanted: set[Path] = set()
    for one in found:
        path = _root(directory, one.wall) / LIVE / f"{daily.part_name(one.id)}.yaml"
        wanted.add(path)
        # What it was made of stands in it: a long session is not read again where nothing came.
        head = f"{LIVE_HEAD}# digest {one.digest_seq}, {one.last_at}{f', without {gone}' if gone else ''}\n"
        there = files.read_memory_file(path)
        if there is not None and (there or new) and not there.startswith(head):
            session = store.read(lambda rows, one=one: _session(rows, one, here, key=store.hash_key))  # type: ignore[misc]
            files.write_memory_file(directory, path, head + files.as_yaml(daily.so_far(session)))
            changed += 1
    for folder in [directory / LIVE, *(directory / WALLED / name / LIVE for name in _walled(directory))]:
        for name in files.names_in(folder, ".yaml"):
            if folder / name not in wanted and (files.read_memory_file(folder / name) or "").startswith(LIVE_HEAD):
                files.remove_memory_file(folder / name)
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


def _file(directory: Path, wall: str, day: str, style: daily.Style) -> Path:
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

    is_out = days.is_out(rows, one.id, key=key)

    def said(kind: str) -> tuple[str, ...]:
        return tuple(item.text for item in items.get(kind, ()) if not is_out(item.text))

    gotchas = entries.distinct(
        [trap for trap in days.gotchas(rows, one.session_seq, limit=GOTCHAS) if not is_out(trap)],
        but=(*said("decision"), *said("correction")),
    )
    files = ((narrator.inside(item.text, cwd=one.cwd, root=one.root), item.amount) for item in items.get("file", ()))
    times = [here(at) for at in days.times(rows, one.session_seq)]
    return Session(
        id=one.id, project=one.project, began=here(one.started_at), ended=here(one.last_at), work_min=daily.at_work(times),
        goal=next(iter(said("goal")), ""), outcome=digest.outcome if digest else "",
        outcome_said=OUTCOMES.get(digest.outcome, "") if digest else "", prompts=digest.prompts if digest else 0,
        calls=digest.calls if digest else 0, tokens=digest.tokens if digest else 0,
        decisions=tuple(filter(lasting.is_decision, said("decision"))),
        corrections=said("correction"), gotchas=gotchas,
        files=tuple((path, amount) for path, amount in files if path), commits=said("commit"), open=said("open"),
        agents=tuple((agent.id, agent.turns, agent.answered) for agent in days.agents(rows, one.id)),
    )  # fmt: skip
