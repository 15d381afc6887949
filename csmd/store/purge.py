"""Takes out of the database what tombstones forbid: planned from what was typed, counted, laid down, carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from csmd.errors import BadInput
from csmd.model import Memory
from csmd.privacy.fingerprints import Needle, checked, clean, words
from csmd.store import (
    before_images,
    dreams,
    markdown_pages,
    memories,
    projects,
    purge_rows,
    tombstones,
    vectors,
    workspaces,
)
from csmd.store.purge_rows import LOOKED_AT, rewrite_turn
from csmd.store.sqlite import Rows, secure_delete
from csmd.text import similarity, tokens

#: In `meta` while a purge is under way: when it began.
UNFINISHED = "purge_begun"

#: What becomes of a text that holds something purged. turn: rewritten, with what was made of it;
#: drop: its row goes; memory: it is removed whole; rewrite: in place; of paths that tell rows apart or are looked up
#: hide: a keyed hash takes its place, of those that do not empty: nothing does.
Way = Literal["turn", "drop", "memory", "rewrite", "hide", "empty"]
#: The ways of columns that are gone through by their values, not by rows.
OF_PATHS: frozenset[Way] = frozenset({"hide", "empty"})
#: Every column of holds.TEXT_COLUMNS and the key of its rows: a test fails on one that is missing.
WAYS: dict[tuple[str, str], tuple[Way, str]] = {
    ("turns", "text"): ("turn", "seq"),
    ("passages", "text"): ("drop", "seq"),
    ("statements", "text"): ("drop", "seq"),
    ("memories", "text"): ("memory", "seq"),
    ("scenes", "text"): ("drop", "seq"),
    ("candidates", "text"): ("rewrite", "seq"),
    ("candidates", "reason"): ("rewrite", "seq"),
    # What was said short enough is its own name: without it the row would be put there again.
    ("candidates", "fingerprint"): ("drop", "seq"),
    ("digests", "text"): ("rewrite", "seq"),
    ("digest_items", "text"): ("rewrite", "seq"),
    ("session_links", "about"): ("rewrite", "seq"),
    ("checkpoints", "note"): ("rewrite", "seq"),
    ("checkpoint_items", "text"): ("rewrite", "seq"),
    ("checkpoint_raw_captures", "text"): ("drop", "seq"),
    ("goals", "text"): ("rewrite", "seq"),
    ("self_capabilities", "why"): ("rewrite", "seq"),
    ("topics", "name"): ("drop", "seq"),
    ("packets", "subject"): ("drop", "seq"),
    ("belief_changes", "before"): ("rewrite", "seq"),
    ("belief_changes", "after"): ("rewrite", "seq"),
    ("belief_changes", "reason"): ("rewrite", "seq"),
    ("answer_befores", "text"): ("drop", "seq"),
    ("answer_befores", "more"): ("drop", "seq"),
    ("dreams", "error"): ("rewrite", "seq"),
    ("dream_changes", "reason"): ("rewrite", "seq"),
    # What is gone cannot be undone: nothing purged comes back.
    ("dream_rows", "text"): ("drop", "seq"),
    ("dream_rows", "more"): ("drop", "seq"),
    ("dream_rows", "text_after"): ("drop", "seq"),
    ("dream_rows", "more_after"): ("drop", "seq"),
    ("dream_files", "path"): ("drop", "seq"),
    ("dream_files", "before"): ("drop", "seq"),
    ("dream_files", "after"): ("drop", "seq"),
    ("pages", "path"): ("drop", "seq"),
    ("pages", "text"): ("rewrite", "seq"),
    ("pages", "also"): ("rewrite", "seq"),
    ("pages", "held"): ("rewrite", "seq"),
    ("errors", "command"): ("drop", "seq"),
    ("errors", "message"): ("drop", "seq"),
    ("error_fixes", "files"): ("drop", "seq"),
    ("error_fixes", "text"): ("drop", "seq"),
    ("symptoms", "text"): ("drop", "seq"),
    ("projects", "root"): ("rewrite", "seq"),
    ("projects", "name"): ("rewrite", "seq"),
    ("sessions", "cwd"): ("rewrite", "seq"),
    ("sessions", "title"): ("rewrite", "seq"),
    ("sessions", "path"): ("empty", "seq"),
    ("files", "path"): ("hide", "path"),
    ("elsewhere", "path"): ("hide", "path"),
    ("projects", "remote"): ("rewrite", "seq"),
    ("aliases", "path"): ("rewrite", "seq"),
    ("directories", "path"): ("hide", "seq"),
    ("instructions", "text"): ("rewrite", "seq"),
    ("instructions", "path"): ("hide", "seq"),
    ("instructions", "root"): ("rewrite", "seq"),
}

#: (rows, key of the hashes, where to begin: 0 at first) -> (where to go on, None at the end; rows that changed).
Pass = Callable[[Rows, bytes, int], tuple[int | None, int]]


def honour(rows: Rows, key: bytes) -> int:
    """Removes everything that the tombstones forbid, in a transaction for each part; how many rows changed.

    For a database that was restored or rebuilt, once the tombstones are in it. Inside a transaction it uses that one.
    """
    total = 0
    for part in (*PASSES, _forgotten):
        at: int | None = 0
        while at is not None:
            if rows.connection.in_transaction:
                at, changed = part(rows, key, at)
            else:
                with rows.transaction(write=True):
                    at, changed = part(rows, key, at)
            total += changed
    return total


def begin(rows: Rows, *, now: str) -> None:
    """Notes that a purge is under way, in the transaction that writes its tombstones."""
    secure_delete(rows)
    rows.run(
        "insert into meta (key, value) values (:name, :now) on conflict (key) do update set value = excluded.value",
        name=UNFINISHED,
        now=now,
    )


def is_unfinished(rows: Rows) -> bool:
    """Whether a purge was begun and not ended."""
    return rows.value("select 1 from meta where key = :name", name=UNFINISHED) is not None


def end(rows: Rows) -> None:
    """Notes that nothing of the purge is left to be done."""
    rows.run("delete from meta where key = :name", name=UNFINISHED)


# --- texts, wherever they stand


def _column(table: str, column: str, rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A part of one column: what holds purged text is changed in the way of its column."""
    way, ident = WAYS[table, column]
    if way in OF_PATHS:
        return None, _hide(rows, table, column, way, ident, key)
    marks = tombstones.marks(rows, key)
    if not marks:
        return None, 0
    found = texts_after(rows, table, column, after)
    total = 0
    for seq, said in found:
        new, hits = clean(said, marks)
        if hits:
            change(rows, table, column, seq, new, key)
            total += 1
    return (found[-1][0] if found else None), total


def texts_after(rows: Rows, table: str, column: str, after: int) -> list[tuple[int, str]]:
    """(row key, text) of the next rows of a column that is keyed by number."""
    return rows.all(
        f"select seq, {column} from {table} where seq > :after order by seq limit :limit",  # noqa: S608
        after=after,
        limit=LOOKED_AT,
    )


def change(rows: Rows, table: str, column: str, seq: int, new: str, key: bytes, *, in_place: bool = False) -> None:
    """Does to one row what its column's way says; with `in_place` statements and memories are rewritten, too."""
    way, _ = WAYS[table, column]
    if way == "turn":
        rewrite_turn(rows, seq, new, key)
    elif way == "memory" and not in_place:
        for memory in memories.by_seqs(rows, [seq]).values():
            memories.delete(rows, memory)
    elif table == "answer_befores":  # what could bring the text back goes, and half an undo is none
        rows.run(
            "delete from answer_befores where answer_seq in (select answer_seq from answer_befores where seq = :seq)",
            seq=seq,
        )
    elif table == "dream_rows":  # likewise, of one action
        for (one,) in rows.all("select change_seq from dream_rows where seq = :seq", seq=seq):
            dreams.take_away(rows, int(one))
    elif way == "drop" and (not in_place or (table == "statements" and _stated_already(rows, seq, new, key))):
        rows.run(f"delete from {table} where seq = :seq", seq=seq)  # noqa: S608
    elif table in ("memories", "statements"):
        if way == "memory":
            vectors.again(rows, "memory", seq)
        rows.run(
            f"update {table} set {column} = :text, text_hash = :hash where seq = :seq",  # noqa: S608
            text=new,
            hash=tokens.keyed_hash(new, key),
            seq=seq,
        )
    else:
        rows.run(f"update {table} set {column} = :text where seq = :seq", text=new, seq=seq)  # noqa: S608


def _stated_already(rows: Rows, seq: int, new: str, key: bytes) -> bool:
    """Whether another statement of the same turn reads as this one will."""
    other = rows.value(
        "select o.seq from statements x join statements o on o.turn_seq = x.turn_seq "
        "where x.seq = :seq and o.text_hash = :hash and o.seq <> x.seq",
        seq=seq,
        hash=tokens.keyed_hash(new, key),
    )
    return other is not None


def _hide(rows: Rows, table: str, column: str, way: Way, ident: str, key: bytes) -> int:
    """Takes purged paths out of a column; a hidden one stays known, and another than its neighbours, by a keyed hash."""
    total = 0
    if not tombstones.marks(rows, key) and not tombstones.has(rows, "file"):
        return total
    found = rows.column(f"select distinct {column} from {table} where {column} <> ''")  # noqa: S608
    for path in found:
        name = tombstones.listed_path(rows, path, key=key)
        if name == path:
            continue
        known = column == ident and rows.value(
            f"select 1 from {table} where {column} = :name",  # noqa: S608
            name=name,
        )
        if known:
            rows.run(f"delete from {table} where {column} = :path", path=path)  # noqa: S608
        else:
            new = name if way == "hide" else ""
            rows.run(f"update {table} set {column} = :new where {column} = :path", new=new, path=path)  # noqa: S608
        total += 1
    return total


def _forgotten(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """Memories and statements that were forgotten one by one."""
    if not tombstones.has(rows, "memory"):
        return None, 0
    total = 0
    found = rows.all(
        "select seq from memories where seq > :after order by seq limit :limit", after=after, limit=LOOKED_AT
    )
    for memory in memories.by_seqs(rows, [int(seq) for (seq,) in found]).values():
        if memories.by_id(rows, memory.id) is not None and _is_forgotten(rows, memory, key):
            memories.delete(rows, memory)
            total += 1
    if after == 0:
        for seq, said, gate, authority, project, at in rows.all(
            "select seq, text, gate, authority, project_seq, at from statements"
        ):
            if tombstones.keeps_out(
                rows, str(said), correction=gate == "correction", authority=authority, project=project, at=at, key=key
            ):
                total += rows.run("delete from statements where seq = :seq", seq=seq)
    return (int(found[-1][0]) if found else None), total


def _is_forgotten(rows: Rows, memory: Memory, key: bytes) -> bool:
    """Whether a memory was forgotten where it holds; one of everywhere also where it was forgotten wherever it was said:
    it may be from before the wall behind which it was.
    """

    def is_out(project: int) -> bool:
        return tombstones.keeps_out(
            rows, memory.text, correction=memory.gate == "correction", authority=memory.authority, project=project,
            at=memory.created_at, key=key,
        )  # fmt: skip

    if is_out(memory.project_seq):
        return True
    said_in = memories.said_in(rows, memory) if tombstones.is_everywhere(rows, memory.project_seq) else ()
    return bool(said_in) and all(map(is_out, said_in))


#: In this order: what goes as a whole before what is looked through, and pages when it is known which memories are left.
PASSES: tuple[Pass, ...] = (
    before_images.without_undo, dreams.without_purged, purge_rows.sessions, purge_rows.turns, purge_rows.projects,
    *(partial(_column, table, column) for table, column in sorted(WAYS)), markdown_pages.without_gone,
)  # fmt: skip


What = Literal["memory", "turn", "session", "project", "text"]
WHATS: tuple[What, ...] = ("memory", "turn", "session", "project", "text")
#: Fewer characters of a session's id begin too many words.
LEAST_OF_SESSION = 6
#: Texts of purged turns that are searched for afterwards, and how many words of each: enough to know it by.
PROBES, PROBE_WORDS = 20, 12


@dataclass(slots=True)
class Plan:
    """A purge: texts that go wherever they stand; turns, sessions (ids) and projects (keys) that go as a whole."""

    what: What
    about: str
    texts: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    forgotten: list[tuple[str, bool]] = field(default_factory=list)
    """Statements to be kept out in nearly the same words, and whether each is a correction."""
    probes: list[str] = field(default_factory=list)
    """Texts that nothing may hold any more, searched for in the end; for a text the text itself."""


def resolve_plan(rows: Rows, typed: str, *, key: bytes, kind: str = "", project_key: str = "") -> Plan:
    """What somebody means who types this, tried as: a memory's id, a turn's uuid, a session's id or the beginning
    of one, a project's path (its key is given), else a text. `kind` tries one only. BadInput for nothing.
    """
    if kind and kind not in WHATS:
        raise BadInput(f"a purge is of a {', '.join(WHATS[:-1])} or {WHATS[-1]}, not of {kind!r}")
    ways: dict[What, Callable[[], Plan | None]] = {
        "memory": lambda: _memory(rows, typed),
        "turn": lambda: _turn(rows, typed),
        "session": lambda: _session(rows, typed),
        "project": lambda: _project(rows, project_key, key),
        "text": lambda: Plan("text", "this text wherever it stands", texts=[checked(typed)], probes=[typed]),
    }
    for name, way in ways.items():
        if kind in ("", name) and (plan := way()) is not None:
            return plan
    raise BadInput(f"there is no such {kind}", hint="`csmd search` and `csmd memories` show ids")


def _memory(rows: Rows, typed: str) -> Plan | None:
    memory = memories.by_id(rows, typed)
    if memory is None:
        return None
    said = [memory.text.rstrip("…")]
    for source in memory.provenance:
        for (statement,) in rows.all(
            "select x.text from statements x join turns t on t.seq = x.turn_seq where t.uuid = :uuid", uuid=source.uuid
        ):
            if similarity.says_the_same(statement, memory.text):
                said.append(str(statement).rstrip("…"))
    plan = Plan("memory", f"the memory {memory.id} and the sentences it came from", texts=list(dict.fromkeys(said)))
    plan.forgotten = [(one, memory.gate == "correction") for one in plan.texts]
    for one in plan.texts:
        checked(one)
    needles = [Needle(one) for one in plan.texts]
    for source in memory.provenance:
        for seq, told in rows.all("select seq, text from turns where uuid = :uuid", uuid=source.uuid):
            if not any(needle.spans(str(told)) for needle in needles):  # said in other words
                plan.turns += _names_of_turn(rows, int(seq))
                plan.probes += _probes(rows, [int(seq)])
    plan.probes += plan.texts
    return plan


def _turn(rows: Rows, typed: str) -> Plan | None:
    found = rows.all("select seq from turns where uuid = :uuid", uuid=typed)
    found += [] if not found else rows.all(
        "select seq from turns where substr(uuid, 1, :size) = :line", size=len(typed) + 1, line=f"{typed}/"
    )  # fmt: skip
    if not found:
        return None
    seqs = [int(seq) for (seq,) in found]
    plan = Plan("turn", f"the turn {typed} and what was made of it", probes=_probes(rows, seqs))
    for seq in seqs:
        plan.turns += _names_of_turn(rows, seq)
    return plan


def _names_of_turn(rows: Rows, seq: int) -> list[str]:
    """Under which names a turn is kept out: what a hook reported comes back with another uuid, known by its words."""
    uuid, stream, text_hash, source = rows.one(
        "select t.uuid, s.id, t.text_hash, t.source from turns t join sessions s on s.seq = t.session_seq "
        "where t.seq = :seq",
        seq=seq,
    ) or ("", "", "", "")
    names = purge_rows.turn_names(str(uuid), str(stream), str(text_hash))
    return [names[0], names[-1]] if source == "hook" else [names[0]]


def _session(rows: Rows, typed: str) -> Plan | None:
    if len(typed) < LEAST_OF_SESSION:
        return None
    found = rows.column(
        "select id from sessions where substr(id, 1, :size) = :typed and (parent = '' or id = :typed) order by id",
        size=len(typed),
        typed=typed,
    )
    if typed in found:
        found = [typed]
    if len(found) > 1:
        raise BadInput(f"{typed!r} begins {len(found)} sessions", hint="type some more of the id")
    if not found:
        return None
    turns = _of_sessions(rows, found)
    return Plan("session", f"the session {found[0]} and everything that was said in it", sessions=found,
                turns=[uuid for _, uuid in turns], probes=_probes(rows, [seq for seq, _ in turns]))  # fmt: skip


def _of_sessions(rows: Rows, sessions: Sequence[str]) -> list[tuple[int, str]]:
    """(row key, uuid) of every turn that is listed in these sessions or their sub-agents': a fork has them, too."""
    found: dict[int, str] = {}
    for ident in sessions:
        for seq, uuid in rows.all(
            "select t.seq, t.uuid from sessions s join session_turn st on st.session_seq = s.seq "
            "join turns t on t.seq = st.turn_seq where s.id = :id or s.parent = :id",
            id=ident,
        ):
            found[int(seq)] = str(uuid)
    return list(found.items())


def _project(rows: Rows, project_key: str, key: bytes) -> Plan | None:
    """Also one that was purged: its row is known by a keyed hash."""
    known = project_key and rows.one(
        "select seq, root, merged_into, key from projects where key = :key or substr(key, 1, :size) = :hidden "
        "order by seq desc",
        key=project_key,
        hidden=(hidden := f"{tombstones.hidden_name('project', project_key, key)}:"),
        size=len(hidden),
    )
    if not known:
        return None
    seq, root, into, now_key = known
    if into and now_key == project_key:
        other = workspaces.root_of(rows, into)
        raise BadInput(
            f"{root} was merged into {other}, and what was said in it is that project's now",
            hint=f"csmd project split '{other}' '{root}' takes it out again",
        )
    tree = sorted(projects.with_merged(rows, seq))
    keys = [projects.key_of(rows, one) for one in tree if one != seq]
    keys += [key for one in tree for key in projects.worktrees_of(rows, one) if key not in keys]
    sessions = rows.all("select id, path from sessions where project_seq = :seq", seq=seq)
    names = [str(ident) for ident, _ in sessions]
    here = rows.all("select seq, uuid from turns where project_seq = :seq", seq=seq)  # a session may have come by
    turns = {int(turn): str(uuid) for turn, uuid in [*_of_sessions(rows, names), *here]}
    return Plan("project", f"the project {root} and its {len(sessions)} sessions", projects=[project_key, *keys],
                sessions=names, files=[str(path) for _, path in sessions if path],
                turns=list(turns.values()), probes=_probes(rows, list(turns)))  # fmt: skip


def _probes(rows: Rows, seqs: Sequence[int]) -> list[str]:
    """Beginnings of what people and assistants said in these turns and nowhere else, the longest."""
    found: list[str] = []
    for start in range(0, len(seqs), 500):
        keys = ", ".join(str(seq) for seq in seqs[start : start + 500])
        found += rows.column(
            f"select t.text from turns t where t.seq in ({keys}) and t.kind in ('user', 'relayed', 'assistant') "  # noqa: S608
            "and not exists (select 1 from turns o where o.text_hash = t.text_hash and o.seq <> t.seq)"
        )
    beginnings = [" ".join(words(said)[:PROBE_WORDS]) for said in sorted(found, key=len, reverse=True)[:PROBES]]
    return [said for said in dict.fromkeys(beginnings) if len(said.split(" ")) >= PROBE_WORDS // 2]


def plan_counts(rows: Rows, plan: Plan) -> dict[str, int]:
    """How many rows of each column hold what is to go, and how many turns and sessions go as a whole."""
    found = {"turns as a whole": len(plan.turns), "sessions as a whole": len(plan.sessions)}
    needles = [Needle(said) for said in plan.texts]
    for (table, column), (way, _) in WAYS.items() if needles else ():
        name = f"{table}.{column}"
        if way in OF_PATHS:
            paths = rows.all(f"select {column} from {table}")  # noqa: S608
            found[name] = sum(any(needle.spans(str(path)) for needle in needles) for (path,) in paths)
            continue
        after: int | None = 0
        while after is not None:
            part = texts_after(rows, table, column, after)
            hits = sum(any(needle.spans(said) for needle in needles) for _, said in part)
            found[name] = found.get(name, 0) + hits
            after = part[-1][0] if part else None
    return {name: amount for name, amount in found.items() if amount}


def plan_places(rows: Rows, plan: Plan, *, seen: Collection[int] | None = None) -> list[dict[str, Any]]:
    """In which projects a text stands that is to go, of those `seen` (None: all): how many memories and turns of each, the most first."""
    needles = [Needle(said) for said in plan.texts]
    found: dict[int, Counter[str]] = {}
    for table in ("memories", "turns") if needles else ():
        after: int | None = 0
        while after is not None:
            part = texts_after(rows, table, "text", after)
            for seq, said in part:
                if any(needle.spans(said) for needle in needles):
                    project = rows.value(f"select project_seq from {table} where seq = :seq", seq=seq)  # noqa: S608
                    found.setdefault(int(project), Counter())[table] += 1
            after = part[-1][0] if part else None
    return [
        {"project": workspaces.root_of(rows, project), "memories": one["memories"], "turns": one["turns"]}
        for project, one in sorted(found.items(), key=lambda item: (-item[1].total(), item[0]))
        if seen is None or project in seen
    ]


def variants(rows: Rows, needles: Sequence[Needle], table: str, column: str, after: int) -> tuple[int | None, set[str]]:
    """A part of a column: the texts as they stand there, in whole words; where to go on, None at the end."""
    if WAYS[table, column][0] in OF_PATHS:
        part = [(0, str(path)) for (path,) in rows.all(f"select {column} from {table}")]  # noqa: S608
        follows = None
    else:
        part = texts_after(rows, table, column, after)
        follows = part[-1][0] if part else None
    return follows, {said[a:b] for _, said in part for needle in needles for a, b in needle.spans(said)}


def lay_down(rows: Rows, plan: Plan, texts_found: Sequence[str], *, key: bytes, now: str) -> None:
    """Writes a plan's tombstones and that the purge has begun: from here on nothing of it is stored any more."""
    begin(rows, now=now)
    for said in plan.texts:
        tombstones.purge_text(rows, said, key=key, now=now)
    needles = [(said, Needle(said)) for said in plan.texts]
    for said in texts_found:
        for finder in [one for one, needle in needles if needle.spans(said)] or [""]:
            tombstones.purge_text(rows, said, key=key, now=now, found_by=finder)
    for said, correction in plan.forgotten:
        tombstones.forget(rows, said, correction=correction, by="user", key=key, now=now)
    tombstones.purge_names(rows, "turn", plan.turns, key=key, now=now)
    tombstones.purge_names(rows, "session", plan.sessions, key=key, now=now)
    tombstones.purge_names(rows, "project", plan.projects, key=key, now=now)
    tombstones.purge_names(rows, "file", plan.files, key=key, now=now)


def lift_purge(rows: Rows, plan: Plan, *, key: bytes) -> int:
    """Takes a plan's tombstones away; how many there were."""
    gone = 0
    for said in plan.texts:
        gone += tombstones.lift_text(rows, said, key=key)
    named: tuple[tuple[tombstones.Kind, list[str]], ...] = (
        ("turn", plan.turns), ("session", plan.sessions), ("project", plan.projects), ("file", plan.files),
    )  # fmt: skip
    for kind, names in named:
        for name in names:
            gone += tombstones.lift_name(rows, kind, name, key=key)
    return gone
