"""Dreams and their journal; the facts that gates ask for."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from csmd.privacy.fingerprints import PURGED
from csmd.store import belief_changes, cursors, memories, tombstones, vectors
from csmd.store.belief_changes import Before
from csmd.store.sqlite import IS_LISTED, Rows, as_value, columns, in_keys, listed
from csmd.store.tombstones import LOOKED_AT
from csmd.values import Evidence, Memory

#: undoing: its rows are what they were, its files are about to be.
State = Literal["running", "done", "failed", "cancelled", "undoing", "undone"]
#: What became of a dream whose daemon was killed.
KILLED = "the daemon ended while it ran"
#: More dreams than are kept.
ALL = 100_000
#: The kind of a change that wrote a file; the other kinds are those of actions.
PAGE = "page"


class Dream(NamedTuple):
    """One consolidation: why it began, its state, and how many new sessions it found."""

    seq: int
    id: str
    why: str
    state: State
    begun_at: str
    ended_at: str = ""
    undone_at: str = ""
    sessions: int = 0
    error: str = ""


_COLUMNS = columns(Dream, "k")


# --- dreams


def begin(rows: Rows, *, why: str, sessions: int, now: str) -> Dream:
    """Notes that a dream begins."""
    number = rows.number("select coalesce(max(seq), 0) from dreams") + 1
    ident = "d" + hashlib.sha256(f"{number}:{why}:{now}".encode()).hexdigest()[:10]
    seq = rows.insert_keyed("dreams", id=ident, why=why, state="running", begun_at=now, sessions=sessions)
    return Dream(seq=seq, id=ident, why=why, state="running", begun_at=now, sessions=sessions)


def end(rows: Rows, seq: int, *, state: State, error: str = "", now: str) -> None:
    """Records how a dream ended: done, failed or cancelled."""
    sql = "update dreams set state = :state, error = :error, ended_at = :now where seq = :seq and state = 'running'"
    rows.run(sql, state=state, error=error, now=now, seq=seq)


def fail_interrupted(rows: Rows, *, now: str) -> int:
    """Makes the dreams that a killed daemon left running failed ones; how many. What they did can be undone."""
    failed = "update dreams set state = 'failed', error = :error, ended_at = :now where state = 'running'"
    return rows.run(failed, error=KILLED, now=now)


def _where(rows: Rows, condition: str, **values: Any) -> list[Dream]:
    """The dreams `k` that fulfil a condition, in the order that it may end with."""
    return rows.read(Dream, f"select {_COLUMNS} from dreams k where {condition}", **values)  # noqa: S608


def last(rows: Rows, *, state: State = "done") -> Dream | None:
    """The latest dream in a state: the gates go by the one that is done. By its row: a clock may be set back."""
    return next(iter(_where(rows, "k.state = :state order by k.seq desc limit 1", state=state)), None)


def history(rows: Rows, *, limit: int, offset: int = 0) -> list[Dream]:
    """The latest dreams, the newest first, without the first `offset`."""
    return _where(rows, "true order by k.seq desc limit :limit offset :offset", limit=limit, offset=offset)


def by_id(rows: Rows, ident: str) -> Dream | None:
    """One dream, or None."""
    return next(iter(_where(rows, "k.id = :id", id=ident)), None)


def sessions_since(rows: Rows, at: str) -> int:
    """How many sessions of people have had a turn since a time; "" for all."""
    since = "select count(*) from sessions where parent = '' and last_at > :at and host <> 'probe' and turns > 0"
    return rows.number(since, at=at)


#: Stage and subject of the cursor that holds when something began to wait for a dream, in seconds since 1970.
_WAITING = "dream", "waiting"


def note_waiting(rows: Rows, *, at: datetime) -> None:
    """Notes when it was noticed that there is something no dream has seen."""
    cursors.move_cursor(rows, *_WAITING, int(at.timestamp()))


def waiting_since(rows: Rows, *, after: str, now: str) -> str:
    """When that was, "" where a dream has begun since (`after`), or the clock was set back."""
    at = datetime.fromtimestamp(cursors.cursor(rows, *_WAITING), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return at if max(after, "1971") < at <= now else ""


def forget(rows: Rows, seqs: Sequence[int], *, most: int) -> int:
    """Deletes the journal of some dreams, at most `most` actions, and then the dreams; returns how many of both.

    Call it until it returns 0. The last finished dream is kept, and so is one that is being undone, with all its actions.
    """
    gone = rows.run(
        "delete from dream_changes where seq in (select k.seq from dream_changes k join dreams d on d.seq = k.dream_seq "  # noqa: S608
        f"where {in_keys('d.seq', seqs)} and d.state not in ('running', 'undoing') order by k.seq limit :most)",
        most=most,
    )
    last_done = last(rows)
    return gone or rows.run(
        f"delete from dreams where {in_keys('seq', seqs)} and seq <> :kept and state not in ('running', 'undoing')",  # noqa: S608
        kept=last_done.seq if last_done else 0,
    )


# --- what one does


def apply_action(
    rows: Rows,
    seq: int,
    *,
    kind: str,
    project: int,
    reason: str,
    evidence: Iterable[str],
    items: Iterable[str],
    act: Callable[[], Iterable[str] | None],
    now: str,
) -> tuple[str, ...]:
    """Carries an action out and notes all that it changed, before and after; the ids of that, () for nothing.

    `items` are the memories and candidates that it changes; what waits in the queue about them is looked at besides.
    `act` gives the ids of what else it made or changed. Where it does, it is taken back and done again: how that was
    before is not known until then.
    """
    was = {image.memory_id: image for image in belief_changes.before_of(rows, _with_queue(rows, items))}
    rows.connection.execute("savepoint action")
    more = [ident for ident in act() or () if ident not in was]
    if more:
        rows.connection.execute("rollback to action")
        was |= {image.memory_id: image for image in belief_changes.before_of(rows, more)}
        act()
    rows.connection.execute("release action")
    changed = [
        (was[image.memory_id], image)
        for image in belief_changes.before_of(rows, was)
        if belief_changes.differs(was[image.memory_id], image)
    ]
    if changed:
        change = _noted(rows, seq, kind=kind, project=project, reason=reason, evidence=evidence, now=now)
        for before, after in changed:
            _keep(rows, change, before, after)
    return tuple(before.memory_id for before, _ in changed)


def _with_queue(rows: Rows, items: Iterable[str]) -> list[str]:
    """Items and the waiting candidates of upkeep that are about them: these are settled with them."""
    found = list(items)
    return found + [
        candidate.id
        for ident in found
        if ident.startswith("m")
        for candidate in belief_changes.about_memory(rows, ident)
    ]


def record_file(
    rows: Rows, seq: int, *, reason: str, path: str, before: str | None, after: str | None, now: str
) -> None:
    """Records that a file was written; `path` is relative to the home, None means that there is no file."""
    if before == after:
        return
    change = _noted(rows, seq, kind=PAGE, project=0, reason=reason, evidence=(), now=now)
    presence = {"was_there": before is not None, "is_there": after is not None}
    rows.insert("dream_files", change_seq=change, path=path, before=before or "", after=after or "", **presence)


def _noted(rows: Rows, seq: int, *, kind: str, project: int, reason: str, evidence: Iterable[str], now: str) -> int:
    why = {"reason": reason, "evidence": " ".join(evidence)}
    return rows.insert_keyed("dream_changes", dream_seq=seq, kind=kind, project_seq=project, **why, at=now)


def _keep(rows: Rows, change: int, before: Before, after: Before) -> None:
    if before.state and after.state:
        before, after = belief_changes.without_receipts(before), belief_changes.without_receipts(after)
    images = {"text": before.text, "state": before.state, "more": before.more}
    images |= {"text_after": after.text, "state_after": after.state, "more_after": after.more}
    rows.insert("dream_rows", change_seq=change, item=before.memory_id, **images)


#: Folders of files that nobody's edits are read back from.
NO_PAGES = frozenset({"daily", "sessions"})
_UNDONE = "and c.undone_at <> '' and f.kept = ''"


class ChangedRow(NamedTuple):
    """A memory or candidate before and after an action; `kept`: why it is not what it was, though that was undone."""

    seq: int
    was: Before
    then: Before
    kept: str = ""


class ChangedFile(NamedTuple):
    """A file before and after it was written, None where there was none; `path` is below the home."""

    seq: int
    path: str
    before: str | None
    after: str | None
    kept: str = ""


class Change(NamedTuple):
    """An action that was carried out; of one that a purge took away nothing is left but its reason."""

    seq: int
    dream_seq: int
    kind: str
    project_seq: int
    reason: str
    evidence: tuple[str, ...]
    at: str
    undone_at: str
    rows: tuple[ChangedRow, ...] = ()
    files: tuple[ChangedFile, ...] = ()


def changes(rows: Rows, dream: int) -> Iterator[Change]:
    """What a dream did, one action at a time: a long journal is never in memory as a whole."""
    return (change(rows, seq) for seq in change_seqs(rows, dream))


def change_seqs(rows: Rows, dream: int) -> list[int]:
    """The row keys of what a dream did, in order."""
    return rows.column("select seq from dream_changes where dream_seq = :dream order by seq", dream=dream)


def change(rows: Rows, seq: int) -> Change:
    """One action of a dream."""
    (action,) = rows.all(
        "select seq, dream_seq, kind, project_seq, reason, evidence, at, undone_at from dream_changes where seq = :seq",
        seq=seq,
    )
    sql = (
        "select seq, item, kept, text, state, more, text_after, state_after, more_after from dream_rows "
        "where change_seq = :seq order by seq"
    )
    touched = tuple(
        ChangedRow(
            seq=key,
            was=as_value(Before, (item, *images[:3])),
            then=as_value(Before, (item, *images[3:])),
            kept=last_done,
        )
        for key, item, last_done, *images in rows.all(sql, seq=seq)
    )
    return as_value(Change, (*action, touched, tuple(_files(rows, "f.change_seq = :change", change=seq))))


def _files(rows: Rows, condition: str, **values: Any) -> list[ChangedFile]:
    """The files `f` of actions `c` that fulfil a condition, in the order of writing."""
    sql = (
        "select f.seq, f.path, case when f.was_there = 1 then f.before end, case when f.is_there = 1 then f.after end, "  # noqa: S608
        f"f.kept from dream_files f join dream_changes c on c.seq = f.change_seq where {condition} order by f.seq"
    )
    return rows.read(ChangedFile, sql, **values)


def paths_of(rows: Rows, dreams: Sequence[int], *, undone_only: bool = False) -> list[str]:
    """The files that some dreams wrote; `undone_only`: those that are to go back."""
    undone = _UNDONE if undone_only else ""
    return rows.column(
        "select distinct f.path from dream_changes c join dream_files f on f.change_seq = c.seq "  # noqa: S608
        f"where {in_keys('c.dream_seq', dreams)} {undone} order by f.path"
    )


def chain_of(rows: Rows, dreams: Sequence[int], path: str, *, undone_only: bool = False) -> list[ChangedFile]:
    """How some dreams wrote a file, in the order of writing; `undone_only`: as far as that is to go back."""
    undone = _UNDONE if undone_only else ""
    return _files(rows, f"f.path = :path and {in_keys('c.dream_seq', dreams)} {undone}", path=path)


def change_counts(rows: Rows, dream: int) -> dict[str, int]:
    """How many actions of each kind a dream carried out."""
    counted = "select kind, count(*) from dream_changes where dream_seq = :dream group by kind order by kind"
    return dict(rows.all(counted, dream=dream))


# --- undoing


def mark_rows(rows: Rows, change: Change, last_done: Mapping[int, str], *, now: str) -> None:
    """Notes which rows of an action are not what they were and why, and that it is undone if any other one is."""
    left = [row.seq for row in change.rows if last_done.get(row.seq)]
    for seq in left:
        rows.update("dream_rows", seq, kept=last_done[seq])
    if len(left) < len(change.rows):
        rows.update("dream_changes", change.seq, undone_at=now)


def mark_file(rows: Rows, file: ChangedFile, *, kept: str, now: str) -> None:
    """Notes that the writing of a file is to be undone, or why it stays as it is."""
    rows.update("dream_files", file.seq, kept=kept)
    sql = "update dream_changes set undone_at = :at where seq = (select change_seq from dream_files where seq = :seq)"
    rows.run(sql, at="" if kept else now, seq=file.seq)


def set_states(rows: Rows, dreams: Sequence[int], state: State, *, now: str) -> None:
    """Notes that some dreams are being undone, or are."""
    sql = (
        "update dreams set state = :state, undone_at = case when undone_at = '' then :now else undone_at end "  # noqa: S608
        f"where {in_keys('seq', dreams)}"
    )
    rows.run(sql, state=state, now=now)


def undo_results(rows: Rows, dreams: Sequence[int]) -> list[tuple[str, str, bool, str]]:
    """(dream, memory, candidate or path, whether it is a path, why it was not undone or ""), the newest action first.

    Of an action that a purge took away the item is "".
    """
    return rows.all(
        "select d.id, coalesce(r.item, f.path, ''), f.seq is not null, coalesce(r.kept, f.kept, '') "  # noqa: S608
        "from dreams d join dream_changes c on c.dream_seq = d.seq left join dream_rows r on r.change_seq = c.seq "
        f"left join dream_files f on f.change_seq = c.seq where {in_keys('d.seq', dreams)} "
        "order by d.seq desc, c.seq desc, r.seq, f.seq"
    )


def represented_memories(rows: Rows, memory_id: str) -> list[str]:
    """The memories that one represents: those that it superseded or took in, or is the twin of."""
    return rows.column(
        "select m.id from memories m where m.superseded_by = :id and m.superseded_by <> '' union "
        "select t.id from memories n join memories t on t.twin_of = n.seq and t.twin_of > 0 where n.id = :id order by 1",
        id=memory_id,
    )


def update_page_row(rows: Rows, path: str, text: str | None, *, now: str) -> None:
    """Notes what a page that people edit reads again, None for one that is no more; other files have no such row."""
    folder, _, page = path.partition("/")
    if NO_PAGES & set(page.split("/")[:-1]) or not folder:
        return
    if text is None:
        rows.delete("pages", path=page)
    else:
        rows.upsert("pages", "path", path=page, text=text, at=now, also="", held="", problem="")


# --- purging


def purge_dreams(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Deletes, in a pass of a purge, the actions that touched what a purged turn, session or project said, and their files.

    It is unknown which files told of these actions, so no file from before the purge is kept to be written back.
    """
    if after == 0:
        rows.run("delete from dreamt_scopes")  # it is made of what memories say
    since = rows.value("select max(created_at) from tombstones where kind in ('turn', 'session', 'project', 'file')")
    if since is None:
        return None, 0
    gone = 0
    if after == 0:
        gone = rows.run(
            "delete from dream_files where change_seq in (select seq from dream_changes where at <= :since)",
            since=since,
        )
    sql = (
        "select r.seq, r.change_seq, k.project_seq, k.at, k.evidence, r.state, r.more, r.state_after, r.more_after "
        "from dream_rows r join dream_changes k on k.seq = r.change_seq where r.seq > :after order by r.seq limit :limit"
    )
    found = rows.all(sql, after=after, limit=LOOKED_AT)
    projects = tombstones.purged_projects(rows, key)
    sources = [(row[1], row[3] <= projects.get(row[2], ""), _names(row[4], row[5:])) for row in found]
    names = [*{name for *_, some in sources for name in some}]
    purged = tombstones.purged_names(rows, "turn", names, key=key)
    purged |= tombstones.purged_names(rows, "session", names, key=key)
    for seq in {change for change, as_whole, some in sources if as_whole or some & purged.keys()}:
        gone += erase_change(rows, seq)
    return (found[-1][0] if found else None), gone


def erase_change(rows: Rows, change: int) -> int:
    """Takes an action's images and its words away: half an undo is none."""
    rows.update("dream_changes", change, reason=PURGED, evidence="")
    return rows.delete("dream_rows", change_seq=change)


#: A string of JSON.
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def _names(evidence: str, images: Iterable[str]) -> set[str]:
    """Every string in an action's evidence and images (JSON) that may name a turn or a session."""
    strings = [*evidence.split(), *(text for image in images for text in _STRING.findall(image))]
    return {name for text in strings for name in (text, text.partition("/")[0])}


#: What lies there is where a dream puts things: however much there is, it is not crowded.
ASIDE = "archive"


def first_session(rows: Rows) -> str:
    """When the first session of a person began; "" when there is none."""
    return rows.text("select min(started_at) from sessions where parent = '' and host <> 'probe'")


def last_turn(rows: Rows) -> str:
    """The time of the latest turn of any session of a person; "" when there is none."""
    return rows.text("select max(last_at) from sessions where parent = '' and host <> 'probe'")


def crowded_tiers(rows: Rows, *, most: int) -> list[tuple[str, str, int]]:
    """(project's name, tier, memories) of each tier of a project that has more than `most`, the fullest first."""
    sql = (
        "select p.name, g.tier, g.number from (select m.project_seq, m.tier, count(*) as number from memories m "
        "where m.tier <> :aside group by m.project_seq, m.tier having count(*) > :most) g "
        "join projects p on p.seq = g.project_seq order by 3 desc, 1, 2"
    )
    return rows.all(sql, aside=ASIDE, most=most)


#: Memories of one read.
READ = 200
#: What the audit says of a memory that was told in further sessions, and of one that got a longer tier.
STRENGTHENED, PROMOTED = "strengthened", "kept for good"
#: And of one that was made of what was said in several projects.
GENERALIZED = "lifted"
#: Of one that is not to be lifted again with the others, or not to be asked about with another (`older:newer`): a person
#: undid the dream that did. The dream's own journal is kept for some time only, the audit as long as the memory.
NOT_GENERALIZED, NOT_ASKED = "not lifted", "not asked"
#: Of a project's memories so many are looked at, those told last.
MOST = 5000
#: Two vectors are near from this likeness on, and of each so many that are nearest are looked at.
LIKE, NEAREST = 0.74, 5
#: Vectors as near as that differ in .235 of their signs, with a spread of .02 for 384: of 30 million pairs of real passages
#: none of the 22,871 that were near differed in more than .297. One pair in a hundred is let through.
FAR_SIGNS = 0.325
#: A likeness of 1 - d / 2 of vectors of this length, as they are stored (csmd/embedding/worker.py).
_LENGTH = (127 / 0.25) ** 2


class Place(NamedTuple):
    """A project, or a row of what holds everywhere, and the row of what holds all around it."""

    seq: int
    everywhere: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDecisions:
    """What was decided about memories before, by id; `undone` holds (kind of action, memory).

    `let_stand` is when a person undid a supersession by a dream, `questioned` the pairs (`older:newer`) of questions that
    a person undid.
    """

    superseded_at: dict[str, str] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    refused: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    let_stand: dict[str, str] = field(default_factory=dict)
    unmerged: set[tuple[str, str]] = field(default_factory=set)
    brought_back: dict[str, str] = field(default_factory=dict)
    undone: set[tuple[str, str]] = field(default_factory=set)
    questioned: set[str] = field(default_factory=set)


def dream_places(rows: Rows) -> list[Place]:
    """Where there may be something to do: what holds everywhere first, then projects in the order of their identities."""
    return rows.read(
        Place,
        "select p.seq, case when p.kind = 'workspace' then p.seq else p.workspace_seq end from projects p "
        "where p.merged_into = 0 order by case when p.seq = 0 then 0 when p.kind = 'workspace' then 1 else 2 end, p.key",
    )


def held_memories(rows: Rows, place: Place) -> list[int]:
    """The row keys of one's own memories of a scope that are not archived, and those that are alive of what holds all around it."""
    held = (
        f"select m.seq from memories m where m.project_seq = :place and m.tier <> 'archive' and m.twin_of = 0 and {memories.OWN} "  # noqa: S608
        "and (:alive = 0 or m.superseded_by = '') order by m.confirmed_at desc, m.id limit :most"
    )
    found = rows.column(held, place=place.seq, alive=0, most=MOST)
    around = rows.column(held, place=place.everywhere, alive=1, most=MOST) if place.everywhere != place.seq else []
    return found + around


def still_held(rows: Rows, seqs: Sequence[int]) -> list[Memory]:
    """Those of them that are neither archived nor another's twin by now."""
    return memories.where(rows, f"{in_keys('m.seq', seqs)} and m.tier <> 'archive' and m.twin_of = 0")


#: How users work as they said in the projects of which a place is what holds all around them.
_STATED = (
    "from memories m join projects p on p.seq = m.project_seq where p.workspace_seq = :place "
    "and p.seq <> :place and p.kind <> 'workspace' and p.merged_into = 0 and m.scope = 'project' "
    "and m.authority = 'user' and m.tier <> 'archive' and m.superseded_by = '' and m.twin_of = 0 "
    "and (m.gate = 'behavioral' or m.category = 'preference')"
)


def stated_around(rows: Rows, place: Place) -> list[int]:
    """The row keys of working habits that users stated in the projects of a workspace (or of everywhere); [] for a project."""
    if place.everywhere != place.seq:
        return []
    latest = f"select m.seq {_STATED} order by m.confirmed_at desc, m.id limit :most"
    return rows.column(latest, place=place.seq, most=MOST)


def still_stated(rows: Rows, around: int, idents: Sequence[str]) -> dict[str, int]:
    """Memory -> project of those of some memories that are still habits stated in a project of a workspace."""
    found = {
        ident: rows.value(f"select m.project_seq {_STATED} and m.id = :id", place=around, id=ident) for ident in idents
    }
    return {ident: project for ident, project in found.items() if project is not None}


def questioned_pairs(rows: Rows, place: Place, source: str) -> frozenset[str]:
    """`older:newer` of what of a place was put before a person by a rule, whatever came of it."""
    sql = (
        "select distinct fingerprint from candidates where project_seq = :place and source = :source and kind = 'stale'"
    )
    return frozenset(rows.column(sql, place=place.seq, source=source))


def not_generalized(rows: Rows, seqs: Sequence[int]) -> frozenset[str]:
    """Those of some memories that a dream lifted to the general scope and a person took back from there."""
    return rows.distinct(
        "select distinct m.id from memories m join belief_changes b on b.memory_id = m.id "  # noqa: S608
        f"where {in_keys('m.seq', seqs)} and b.change = :change",
        change=NOT_GENERALIZED,
    )


def dream_topics(rows: Rows, place: Place, seqs: Sequence[int]) -> dict[str, frozenset[str]]:
    """Memory of the scope itself -> the names of its topics, without those that a person removed."""
    found: dict[str, set[str]] = defaultdict(set)
    for ident, name in rows.all(
        "select m.id, t.name from memories m join memory_topics x on x.memory_seq = m.seq "  # noqa: S608
        f"join topics t on t.seq = x.topic_seq where {in_keys('m.seq', seqs)} and m.project_seq = :place and x.weight > 0",
        place=place.seq,
    ):
        found[ident].add(name)
    return {ident: frozenset(names) for ident, names in found.items()}


def injected_sessions(rows: Rows, seqs: Sequence[int]) -> frozenset[tuple[str, str]]:
    """(session, memory) for each session into which one of these memories was injected."""
    found = rows.all(
        "select distinct n.session_id, i.memory_id from memories m join injection_items i on i.memory_id = m.id "  # noqa: S608
        f"join injections n on n.seq = i.injection_seq where {in_keys('m.seq', seqs)}"
    )
    return frozenset(found)


def by_assistants(rows: Rows, seqs: Sequence[int]) -> frozenset[str]:
    """The turns of assistants among those that tell the memories."""
    return rows.distinct(
        "select distinct p.uuid from provenance p join turns t on t.uuid = p.uuid "  # noqa: S608
        f"where {in_keys('p.memory_seq', seqs)} and t.kind = 'assistant'"
    )


def past_decisions(rows: Rows, place: Place, seqs: Sequence[int]) -> PastDecisions:
    """What the audit says of those that are of the scope itself."""
    found = PastDecisions()
    for ident, change, before, after, by, at, undone_at in rows.all(
        "select b.memory_id, b.change, b.before, b.after, b.by_whom, b.at, b.undone_at from memories m "  # noqa: S608
        f"join belief_changes b on b.memory_id = m.id where {in_keys('m.seq', seqs)} and m.project_seq = :place order by b.seq",
        place=place.seq,
    ):
        if change == belief_changes.REFUSED:
            found.refused[ident].add(before)
        elif change == NOT_ASKED:
            found.questioned.add(after)
        elif change == belief_changes.SUPERSEDED and undone_at and by == belief_changes.DREAM:
            other = belief_changes.read_state(after).get("superseded_by", "")
            found.refused[ident].add(other)
            found.refused[other].add(ident)  # nor the other way round
            found.let_stand[ident] = max(undone_at, found.let_stand.get(ident, ""))
        elif change == belief_changes.SUPERSEDED and not undone_at:
            found.superseded_at[ident] = at
            if by in ("person", "assistant"):
                found.settled.add(ident)
        elif change == belief_changes.MERGE and undone_at:
            found.unmerged.add((ident, after))
        elif change == belief_changes.ARCHIVE and undone_at:
            found.brought_back[ident] = max(undone_at, found.brought_back.get(ident, ""))
        elif change in (STRENGTHENED, PROMOTED) and undone_at:
            found.undone.add(("strengthen" if change == STRENGTHENED else "promote", ident))
    return found


class Signs(NamedTuple):
    """The signs of vectors of a model, each as a number: `codes[n]` is of the memory `seqs[n]`."""

    model: int
    seqs: list[int]
    codes: list[int]


#: (memory, another one, squared distance) of two whose vectors are near.
NearPair = tuple[int, int, float]


def model_of_memories(rows: Rows) -> int:
    """The newest model that has vectors of memories; 0 for none."""
    return rows.number(
        "select m.seq from vector_models m where exists (select 1 from vectors v where v.kind = 'memory' "
        "and v.model_seq = m.seq) order by m.seq desc limit 1"
    )


def signs_of(rows: Rows, model: int, seqs: Sequence[int]) -> Signs:
    """The signs of the vectors of some memories by a model."""
    coded = rows.all(
        "select v.row_seq, c.code from vectors v join memories m on m.seq = v.row_seq join vector_codes c "  # noqa: S608
        "on c.model_seq = v.model_seq and c.kind = v.kind and c.project_seq = m.project_seq and c.seq = v.seq "
        f"where v.kind = 'memory' and v.row_seq {IS_LISTED} and v.model_seq = :model order by v.row_seq, v.seq",
        model=model,
        listed=listed(seqs),
    )
    return Signs(model, [seq for seq, _ in coded], [int.from_bytes(code, "little") for _, code in coded])


def near_behind(rows: Rows, signs: Signs, part: Sequence[int]) -> list[NearPair]:
    """The vectors at some places of a list that are near to others behind them there.

    Signs are compared first, at 0.1 us each, and whole vectors only where these let them be near.
    """
    most = int(FAR_SIGNS * rows.number("select dim from vector_models where seq = :model", model=signs.model))
    pairs: list[NearPair] = []
    for at in part:
        seq, code = signs.seqs[at], signs.codes[at]
        behind = (n for n, other in enumerate(signs.codes[at + 1 :], at + 1) if (code ^ other).bit_count() <= most)
        close = sorted({signs.seqs[n] for n in behind} - {seq})
        for vector in vectors.of_row(rows, "memory", seq, model=signs.model) if close else ():
            distances = vectors.distances(rows, "memory", signs.model, vector, close)
            pairs += [(seq, other, far) for other, far in distances.items() if 1 - far / (2 * _LENGTH) >= LIKE]
    return pairs


def nearest(pairs: Iterable[NearPair]) -> set[tuple[int, int]]:
    """Pairs of row keys, the smaller first: of each memory those with its NEAREST."""
    near: dict[int, dict[int, float]] = defaultdict(dict)
    for pair in pairs:
        for seq, other in (pair[:2], pair[1::-1]):
            near[seq][other] = min(pair[2], near[seq].get(other, pair[2]))
    return {
        (min(seq, other), max(seq, other))
        for seq, distances in near.items()
        for _, other in heapq.nsmallest(NEAREST, ((far, other) for other, far in distances.items()))
    }


def near_pairs(rows: Rows, place: Place, seqs: Sequence[int]) -> set[tuple[int, int]]:
    """Pairs of row keys of memories of a scope whose vectors are near, of some of them; nothing where there are no vectors."""
    model = model_of_memories(rows)
    pairs: set[tuple[int, int]] = set()
    for seq in seqs if model else ():
        for vector in vectors.of_row(rows, "memory", seq, model=model):
            hits = vectors.vector_hits(rows, "memory", model, vector, projects=[place.seq], limit=NEAREST + 1)
            pairs |= {
                (min(seq, other), max(seq, other))
                for other, _, _, far in hits
                if other != seq and 1 - far / (2 * _LENGTH) >= LIKE
            }
    return pairs


def vector_state(rows: Rows, place: Place) -> tuple[int, int]:
    """How many vectors the memories of a scope have, and the row key of the last: other figures where one came or went."""
    sql = (
        "select count(*), coalesce(max(c.seq), 0) from vector_models cross join vector_codes c "
        "where c.model_seq = vector_models.seq and c.kind = 'memory' and c.project_seq = :place"
    )
    number, last = rows.all(sql, place=place.seq)[0]
    return number, last


def dreamt_digest(rows: Rows, place: Place) -> str:
    """The digest of what a scope held when comparing its memories brought nothing; "" where none is noted."""
    return rows.text("select digest from dreamt_scopes where project_seq = :place", place=place.seq)


def mark_dreamt(rows: Rows, place: Place, digest: str) -> None:
    """Notes what a scope holds where comparing its memories brings nothing."""
    rows.upsert("dreamt_scopes", "project_seq", project_seq=place.seq, digest=digest)


def undone_raises(rows: Rows) -> frozenset[str]:
    """The candidates that dreams put into the queue and that were taken out of it with them."""
    return rows.distinct(
        "select distinct r.item from dream_changes c join dream_rows r on r.change_seq = c.seq "
        "where c.kind = 'raise' and c.undone_at <> ''"
    )


def evidence(rows: Rows, uuids: Iterable[str]) -> tuple[Evidence, ...]:
    """Those of some turns that are there, in the order of time."""
    text = "select t.uuid, s.id, t.at from turns t join sessions s on s.seq = t.session_seq where t.uuid = :uuid"
    found = [turn for uuid in dict.fromkeys(uuids) for turn in rows.read(Evidence, text, uuid=uuid)]
    return tuple(sorted(found, key=lambda turn: (turn.at, turn.uuid)))
