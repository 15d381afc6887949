"""The journal: what a person's answer or a dream's action changed, as change sets that can be undone.

A change set holds a snapshot of each memory, candidate and goal before and after the act, and the text of each file that it
wrote. `csmd.memory.undo` restores the rows of one, `csmd.dream.dream_undo` the files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from csmd import wire
from csmd.privacy.fingerprints import PURGED
from csmd.store import memory_snapshots, tombstones
from csmd.store.belief_changes import DREAM
from csmd.store.memory_snapshots import Snapshot
from csmd.store.row_values import columns
from csmd.store.sqlite import Rows, in_keys, make_id
from csmd.store.tombstones import ROWS_PER_PASS

#: The giver of an answer.
PERSON = "person"
#: The kind of a change set that wrote a file.
FILE_KIND = "page"
#: The answer that closes an open matter.
DONE = "done"
#: The declaration of a goal.
GOAL = "goal"
#: The act of a person that cannot be undone.
FORGET = "forget"
_UNDONE = "and c.undone_at <> '' and f.kept = ''"
#: A string of JSON.
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


class ChangeSet(NamedTuple):
    """One act of a person, an assistant, a rule or a dream; `id`, `item` and `made` are "" for a dream's.

    `kind` is the answer or the action, `item` the memory, candidate, goal or matter that the answer is about, `made` the
    resulting memory. `evidence` are ids and uuids that the reason rests on. A purge leaves a set without rows and files.
    """

    seq: int
    id: str
    by: str
    kind: str
    item: str
    made: str
    project_seq: int
    reason: str
    evidence: str
    at: str
    undone_at: str
    dream_seq: int | None


class ChangedRow(NamedTuple):
    """A memory, candidate or goal before and after an act.

    `kept`: why it was not restored, or "".
    """

    seq: int
    was: Snapshot
    then: Snapshot
    kept: str = ""


class ChangedFile(NamedTuple):
    """A file before and after it was written, None if there was none; `path` is relative to the home."""

    seq: int
    path: str
    before: str | None
    after: str | None
    kept: str = ""


#: The tables whose changed rows a change set records.
_JOURNALED = ("memories", "candidates", "goals")
_COLUMNS = columns(ChangeSet, "c", id="coalesce(c.id, '')", by="c.by_whom")


# --- recording


def record_answer(
    rows: Rows, act: Callable[[], str], *, kind: str, item: str, project: int, now: str, by: str = PERSON
) -> ChangeSet:
    """Carries out an answer and records all that it changed; `act` returns the id of the resulting memory, or "".

    `item` is what the answer is about, "" for the resulting memory.
    """
    result_id, changed = _carry_out(rows, act, ())
    number = rows.number("select coalesce(max(seq), 0) from change_sets") + 1
    answer_id = make_id("a", number, item or result_id, kind, now)
    seq = rows.insert_keyed(
        "change_sets",
        id=answer_id,
        by_whom=by,
        kind=kind,
        item=item or result_id,
        made=result_id,
        project_seq=project,
        at=now,
    )
    _record_rows(rows, seq, changed)
    return _where(rows, "c.seq = :seq", seq=seq)[0]


def record_action(
    rows: Rows,
    act: Callable[[], object],
    *,
    dream: int,
    kind: str,
    project: int,
    reason: str,
    evidence: Iterable[str],
    items: Iterable[str],
    now: str,
) -> bool:
    """Carries out an action of a dream and records all that it changed; returns False if that is nothing.

    `items` are the memories whose annotations it may change: changed rows of memories, candidates and goals
    are noticed anyway.
    """
    _, changed = _carry_out(rows, act, items)
    if changed:
        seq = _insert_action(rows, dream, kind=kind, project=project, reason=reason, evidence=evidence, now=now)
        _record_rows(rows, seq, changed)
    return bool(changed)


def record_file(
    rows: Rows, dream: int, *, reason: str, path: str, before: str | None, after: str | None, now: str
) -> None:
    """Records that a dream writes a file; `path` is relative to the home, None means that there is no file."""
    if before == after:
        return
    seq = _insert_action(rows, dream, kind=FILE_KIND, project=0, reason=reason, evidence=(), now=now)
    presence = {"was_there": before is not None, "is_there": after is not None}
    rows.insert("changed_files", set_seq=seq, path=path, before=before or "", after=after or "", **presence)


def _insert_action(
    rows: Rows, dream: int, *, kind: str, project: int, reason: str, evidence: Iterable[str], now: str
) -> int:
    why = {"reason": reason, "evidence": " ".join(evidence)}
    return rows.insert_keyed(
        "change_sets", dream_seq=dream, by_whom=DREAM, kind=kind, project_seq=project, **why, at=now
    )


def _carry_out(rows: Rows, act: Callable[[], Any], items: Iterable[str]) -> tuple[Any, list[tuple[Snapshot, Snapshot]]]:
    """Carries out an act; returns its result and each row that it changed, before and after it.

    If it changes other rows than `items`, it is rolled back, their snapshots are taken, and it is carried out again.
    """
    was = {image.item: image for image in memory_snapshots.take_snapshots(rows, items)}
    rows.connection.execute("savepoint act")
    with _watch(rows) as touched:
        result = act()
    idents, has_deleted = _find_touched(rows, touched)
    if has_deleted or not idents <= was.keys():
        rows.connection.execute("rollback to act")
        idents |= _find_touched(rows, touched)[0]
        was |= {image.item: image for image in memory_snapshots.take_snapshots(rows, sorted(idents - was.keys()))}
        result = act()
    rows.connection.execute("release act")
    now = memory_snapshots.take_snapshots(rows, was)
    return result, [(was[image.item], image) for image in now if memory_snapshots.differs(was[image.item], image)]


@contextmanager
def _watch(rows: Rows) -> Iterator[Mapping[str, set[int]]]:
    """Collects the row keys that the block inserts, updates or deletes, by table."""
    touched: dict[str, set[int]] = defaultdict(set)
    rows.connection.set_update_hook(lambda _, __, table, key: touched[table].add(key))
    try:
        yield touched
    finally:
        rows.connection.set_update_hook(None)


def _find_touched(rows: Rows, touched: Mapping[str, set[int]]) -> tuple[set[str], bool]:
    """Returns the ids of existing memories, candidates and goals whose rows, or whose audit, were touched.

    The second value says whether a touched one does not exist.
    """
    items = [
        item
        for table in _JOURNALED
        for item in rows.column(f"select id from {table} where {in_keys('seq', touched.get(table, ()))}")  # noqa: S608
    ]
    has_deleted = len(items) < sum(len(touched.get(table, ())) for table in _JOURNALED)
    audited = f"select memory_id from belief_changes where {in_keys('seq', touched.get('belief_changes', ()))}"  # noqa: S608
    return {*items, *rows.column(audited)}, has_deleted


def _record_rows(rows: Rows, set_seq: int, changed: Iterable[tuple[Snapshot, Snapshot]]) -> None:
    for was, then in changed:
        before, after = (
            (was, then) if not (was.state and then.state) else (was.without_receipts(), then.without_receipts())
        )
        images = {"text": before.text, "state": _dump(before.state), "more": _dump(before.details)}
        images |= {"text_after": after.text, "state_after": _dump(after.state), "more_after": _dump(after.details)}
        rows.insert("changed_rows", set_seq=set_seq, item=was.item, **images)


def _dump(value: Mapping[str, Any]) -> str:
    return wire.dumps(value) if value else ""


# --- reading


def _where(rows: Rows, condition: str, **values: Any) -> list[ChangeSet]:
    return rows.read(ChangeSet, f"select {_COLUMNS} from change_sets c where {condition}", **values)  # noqa: S608


def read_change_set(rows: Rows, seq: int) -> ChangeSet:
    """Returns a change set by its row key."""
    return _where(rows, "c.seq = :seq", seq=seq)[0]


def find_last_answer(rows: Rows, *, projects: Sequence[int] | None, item_id: str = "") -> ChangeSet | None:
    """Returns the latest answer of a person in these projects (None: in all) that is not undone; None if there is none.

    With `item_id` the answer with that id, or else the latest about that item, a rule's or an assistant's included.
    """
    answers = _where(
        rows,
        f"""c.dream_seq is null and (c.id = :id or (c.undone_at = '' and (c.item = :id or (:id = ''
            and c.by_whom = 'person')))) and {in_keys("c.project_seq", projects)} order by c.seq desc limit 1""",
        id=item_id,
    )
    return answers[0] if answers else None


def list_answers_given_with(rows: Rows, answer: ChangeSet) -> list[ChangeSet]:
    """Returns the answers about an answer's item that were given at its time and not undone, the latest first."""
    condition = "c.item = :item and c.at = :at and c.undone_at = '' order by c.seq desc"
    return _where(rows, condition, item=answer.item, at=answer.at)


def list_closed(rows: Rows) -> frozenset[str]:
    """Returns the ids of the open matters that were closed."""
    sql = "select item from change_sets where kind = :done and dream_seq is null and undone_at = ''"
    return rows.distinct(sql, done=DONE)


def list_actions(rows: Rows, dream: int) -> list[int]:
    """Returns the row keys of a dream's change sets, in order."""
    return rows.column("select seq from change_sets where dream_seq = :dream order by seq", dream=dream)


def count_actions(rows: Rows, dream: int) -> dict[str, int]:
    """Returns the number of a dream's change sets by kind."""
    counted = "select kind, count(*) from change_sets where dream_seq = :dream group by kind order by kind"
    return dict(rows.all(counted, dream=dream))


def changed_rows(rows: Rows, set_seq: int) -> list[ChangedRow]:
    """Returns the memories, candidates and goals that a change set changed."""
    sql = """select seq, item, kept, text, state, more, text_after, state_after, more_after
        from changed_rows where set_seq = :seq order by seq"""
    changed = []
    for key, item, kept, text, state, more, text_after, state_after, more_after in rows.all(sql, seq=set_seq):
        was, then = _parse_snapshot(item, text, state, more), _parse_snapshot(item, text_after, state_after, more_after)
        if "version" in then.state and not then.details:
            then = memory_snapshots.rebuild_snapshot(rows, was, then.state["version"])
        changed.append(ChangedRow(key, was, then, kept))
    return changed


def _parse_snapshot(item: str, text: str, state: str, more: str) -> Snapshot:
    return Snapshot(item, text, wire.loads(state) if state else {}, wire.loads(more) if more else {})


def list_files_of_set(rows: Rows, set_seq: int) -> list[ChangedFile]:
    """Returns the files that a change set wrote."""
    return _read_files(rows, "f.set_seq = :seq", seq=set_seq)


def _read_files(rows: Rows, condition: str, **values: Any) -> list[ChangedFile]:
    """Returns the files `f` of change sets `c` that fulfil a condition, in the order of writing."""
    sql = f"""select f.seq,
        f.path, case when f.was_there = 1 then f.before end, case when f.is_there = 1 then f.after end, f.kept
        from changed_files f join change_sets c on c.seq = f.set_seq where {condition} order by f.seq"""  # noqa: S608
    return rows.read(ChangedFile, sql, **values)


def list_paths_written(rows: Rows, dreams: Sequence[int], *, undone_only: bool = False) -> list[str]:
    """Returns the files that some dreams wrote; with `undone_only` those that are to be restored."""
    undone = _UNDONE if undone_only else ""
    sql = f"""select distinct f.path from change_sets c
        join changed_files f on f.set_seq = c.seq where {in_keys("c.dream_seq", dreams)} {undone} order by f.path"""  # noqa: S608
    return rows.column(sql)


def list_file_history(rows: Rows, dreams: Sequence[int], path: str, *, undone_only: bool = False) -> list[ChangedFile]:
    """Returns the writes of a file by some dreams, in order; with `undone_only` those that are to be restored."""
    undone = _UNDONE if undone_only else ""
    return _read_files(rows, f"f.path = :path and {in_keys('c.dream_seq', dreams)} {undone}", path=path)


def list_undone_candidates(rows: Rows) -> frozenset[str]:
    """Returns the candidates that dreams put into the queue and that were taken out of it by an undo."""
    sql = """select distinct r.item
        from change_sets c join changed_rows r on r.set_seq = c.seq where c.kind = 'raise' and c.undone_at <> ''"""
    return rows.distinct(sql)


# --- undoing


def mark_rows(
    rows: Rows, change: ChangeSet, changed: Iterable[ChangedRow], kept: Mapping[int, str], *, now: str
) -> None:
    """Records which rows of a change set were not restored and why, and that it is undone if any was."""
    is_undone = False
    for row in changed:
        if why := kept.get(row.seq):
            rows.update("changed_rows", row.seq, kept=why)
        else:
            is_undone = True
    if is_undone:
        mark_undone(rows, change, now=now)


def mark_undone(rows: Rows, change: ChangeSet, *, now: str) -> None:
    """Records that a change set was undone."""
    rows.update("change_sets", change.seq, undone_at=now)


def mark_file(rows: Rows, file: ChangedFile, *, kept: str, now: str) -> None:
    """Records that a file is to be restored, or why it is kept."""
    rows.update("changed_files", file.seq, kept=kept)
    sql = "update change_sets set undone_at = :at where seq = (select set_seq from changed_files where seq = :seq)"
    rows.run(sql, at="" if kept else now, seq=file.seq)


def undo_results(rows: Rows, dreams: Sequence[int]) -> list[tuple[str, str, bool, str]]:
    """Returns (dream, item or path, whether it is a path, why it was not restored or ""), the newest action first.

    The item of an action that a purge erased is "".
    """
    sql = f"""select d.id, coalesce(r.item, f.path, ''), f.seq is not null, coalesce(r.kept, f.kept, '')
        from dreams d join change_sets c on c.dream_seq = d.seq
        left join changed_rows r on r.set_seq = c.seq left join changed_files f on f.set_seq = c.seq
        where {in_keys("d.seq", dreams)} order by d.seq desc, c.seq desc, r.seq, f.seq"""  # noqa: S608
    return rows.all(sql)


# --- purging


def erase_images(rows: Rows, set_seq: int) -> int:
    """Erases the snapshots and words of a change set, since half an undo is useless; returns the number of snapshots."""
    rows.update("change_sets", set_seq, reason=PURGED, evidence="")
    return rows.delete("changed_rows", set_seq=set_seq)


def erase_project(rows: Rows, project: int) -> None:
    """Deletes the answers of a purged project."""
    rows.run("delete from change_sets where project_seq = :seq and dream_seq is null", seq=project)


def purge_answers(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Deletes the snapshots of every answer from before the latest purge, which cannot be undone; a pass of a purge."""
    del key, after
    sql = """delete from changed_rows where set_seq in (select seq
        from change_sets where dream_seq is null and at <= (select max(created_at)
        from tombstones where kind in ('text', 'turn', 'session', 'project', 'file')))"""
    deleted = rows.run(sql)
    return None, deleted


def purge_actions(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Erases dreams' actions on what a purged turn, session or project said, and their files; a pass of a purge.

    It is unknown which files told of these actions, so no file from before the purge is kept to be restored.
    """
    if after == 0:
        rows.run("delete from dreamt_scopes")  # it is made of what memories say
    since = rows.value("select max(created_at) from tombstones where kind in ('turn', 'session', 'project', 'file')")
    if since is None:
        return None, 0
    deleted = 0
    if after == 0:
        written = "delete from changed_files where set_seq in (select seq from change_sets where at <= :since)"
        deleted = rows.run(written, since=since)
    sql = """select r.seq, r.set_seq, c.project_seq, c.at, c.evidence, r.state, r.more, r.state_after, r.more_after
        from changed_rows r join change_sets c on c.seq = r.set_seq where r.seq > :after order by r.seq limit :limit"""
    snapshot_rows = rows.all(sql, after=after, limit=ROWS_PER_PASS)
    projects = tombstones.find_purged_projects(rows, key)
    sources = [(row[1], row[3] <= projects.get(row[2], ""), _find_names(row[4], row[5:])) for row in snapshot_rows]
    names = [*{name for *_, some in sources for name in some}]
    purged = tombstones.purged_names(rows, "turn", names, key=key)
    purged |= tombstones.purged_names(rows, "session", names, key=key)
    for seq in {change for change, as_whole, some in sources if as_whole or some & purged.keys()}:
        deleted += erase_images(rows, seq)
    return (snapshot_rows[-1][0] if snapshot_rows else None), deleted


def _find_names(evidence: str, images: Iterable[str]) -> set[str]:
    """Returns every string in an action's evidence and snapshots (JSON) that may name a turn or a session."""
    strings = [*evidence.split(), *(text for image in images for text in _STRING.findall(image))]
    return {name for text in strings for name in (text, text.partition("/")[0])}
