"""Plans of a purge: the meaning of a typed argument, and the texts and rows to remove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from csmd.errors import BadInput
from csmd.privacy.fingerprints import Needle, check_text, split_words
from csmd.store import memories, projects, purge, text_columns, tombstones, workspaces
from csmd.store.sqlite import Rows, in_keys
from csmd.text import similarity
from csmd.text.display import ARROW, amount

PurgeKind = Literal["memory", "turn", "session", "project", "text"]
PURGE_KINDS: tuple[PurgeKind, ...] = ("memory", "turn", "session", "project", "text")
#: The fewest characters of a session's id that select it.
MIN_SESSION_PREFIX = 6
#: Texts of purged turns that are searched for afterwards.
MAX_PROBES = 20
#: Words of each that are searched for.
PROBE_WORDS = 12


@dataclass(slots=True)
class Plan:
    """A purge: texts to remove everywhere; turns, sessions (ids) and projects (keys) to remove as a whole."""

    what: PurgeKind
    about: str
    texts: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    #: Statements to keep out in nearly the same words, and whether each is a correction.
    forgotten: list[tuple[str, bool]] = field(default_factory=list)
    #: Texts that must be nowhere at the end; for a purge of a text the text itself.
    probes: list[str] = field(default_factory=list)

    @property
    def needles(self) -> list[Needle]:
        """The texts to search for."""
        return [Needle(text) for text in self.texts]

    def names_by_kind(self) -> dict[tombstones.Kind, list[str]]:
        """Returns the names of turns, sessions, projects and files that are purged as a whole."""
        return {"turn": self.turns, "session": self.sessions, "project": self.projects, "file": self.files}


def resolve_plan(rows: Rows, typed: str, *, key: bytes, kind: str = "", project_key: str = "") -> Plan:
    """Returns the plan for a typed argument; raises BadInput if nothing matches.

    Tried in order: a memory's id, a turn's uuid, a session's id or its beginning, a project's path (its key is given),
    a text. `kind` selects one.
    """
    if kind and kind not in PURGE_KINDS:
        raise BadInput(f"unknown kind {kind!r}: choose {', '.join(PURGE_KINDS[:-1])} or {PURGE_KINDS[-1]}")
    resolvers: dict[PurgeKind, Callable[[], Plan | None]] = {
        "memory": lambda: _plan_memory(rows, typed),
        "turn": lambda: _plan_turn(rows, typed),
        "session": lambda: _plan_session(rows, typed),
        "project": lambda: _plan_project(rows, project_key, key),
        "text": lambda: Plan("text", "this text wherever it occurs", texts=[check_text(typed)], probes=[typed]),
    }
    for name, resolve in resolvers.items():
        if kind in ("", name) and (plan := resolve()) is not None:
            return plan
    raise BadInput(f"no such {kind}", hint="`csmd search` and `csmd memories` show ids")


def _plan_memory(rows: Rows, typed: str) -> Plan | None:
    memory = memories.by_id(rows, typed)
    if memory is None:
        return None
    texts = [memory.text.rstrip("…")]
    sql = "select x.text from statements x join turns t on t.seq = x.turn_seq where t.uuid = :uuid"
    for source in memory.provenance:
        stated = rows.column(sql, uuid=source.uuid)
        texts += [text.rstrip("…") for text in stated if similarity.repeats(text, memory.text)]
    # The part before the arrow is the assistant's question; it is purged there, too.
    texts += [question for text in texts for question, arrow, _ in [text.partition(ARROW)] if arrow]
    plan = Plan("memory", f"the memory {memory.id} and the sentences it came from")
    plan.texts = [check_text(text) for text in dict.fromkeys(texts)]
    plan.forgotten = [(text, memory.gate == "correction") for text in plan.texts]
    needles = plan.needles
    for source in memory.provenance:
        for seq, text in rows.all("select seq, text from turns where uuid = :uuid", uuid=source.uuid):
            if not _holds(text, needles):  # the turn states the memory in other words
                plan.turns += _list_tombstone_names(rows, seq)
                plan.probes += _choose_probes(rows, [seq])
    plan.probes += plan.texts
    return plan


def _plan_turn(rows: Rows, typed: str) -> Plan | None:
    seqs = rows.column("select seq from turns where uuid = :uuid", uuid=typed)
    if not seqs:
        return None
    sql = "select seq from turns where substr(uuid, 1, :size) = :line"
    seqs += rows.column(sql, size=len(typed) + 1, line=f"{typed}/")
    names = [name for seq in seqs for name in _list_tombstone_names(rows, seq)]
    texts = [text for seq in seqs for text in _find_accepted(rows, seq)]
    return Plan(
        "turn", f"the turn {typed} and what was made of it", texts=texts, turns=names, probes=_choose_probes(rows, seqs)
    )


def _find_accepted(rows: Rows, seq: int) -> list[str]:
    """Returns the parts of later statements in a turn's session that repeat what the turn proposed."""
    sql = """select distinct x.text, t.text from session_turn here
        join session_turn there on there.session_seq = here.session_seq and there.ordinal > here.ordinal
        join statements x on x.turn_seq = there.turn_seq
        join turns t on t.seq = here.turn_seq where here.turn_seq = :seq and x.text like :picked"""
    accepted = rows.all(sql, seq=seq, picked=f"%{ARROW}%")
    return [text for text, statement in accepted if Needle(text.partition(ARROW)[0].rstrip("…")).spans(statement)]


def _list_tombstone_names(rows: Rows, seq: int) -> list[str]:
    """Returns the names by which a turn is kept out: its uuid, and the hash by which a hook reports it."""
    sql = "select t.uuid, s.id, t.text_hash from turns t join sessions s on s.seq = t.session_seq where t.seq = :seq"
    names = tombstones.list_turn_names(*(rows.first(sql, seq=seq) or ("", "", "")))
    return [names[0], names[-1]]


def _plan_session(rows: Rows, typed: str) -> Plan | None:
    if len(typed) < MIN_SESSION_PREFIX:
        return None
    sql = "select id from sessions where substr(id, 1, :size) = :typed and (parent = '' or id = :typed) order by id"
    session_ids = rows.column(sql, size=len(typed), typed=typed)
    if typed in session_ids:
        session_ids = [typed]
    if len(session_ids) > 1:
        raise BadInput(f"{typed!r} begins {len(session_ids)} sessions", hint="type some more of the id")
    if not session_ids:
        return None
    turns = _map_turns_of_sessions(rows, session_ids)
    return Plan("session", f"the session {session_ids[0]} and everything that was said in it", sessions=session_ids,
                turns=list(turns.values()), probes=_choose_probes(rows, list(turns)))  # fmt: skip


def _map_turns_of_sessions(rows: Rows, sessions: Sequence[str]) -> dict[int, str]:
    """Returns the uuid of every turn in these sessions or their sub-agents by row key, forks included."""
    sql = """select t.seq, t.uuid from sessions s join session_turn st on st.session_seq = s.seq
        join turns t on t.seq = st.turn_seq where s.id = :id or s.parent = :id"""
    return dict(row for session_id in sessions for row in rows.all(sql, id=session_id))


def _plan_project(rows: Rows, project_key: str, key: bytes) -> Plan | None:
    """Returns the plan for a project, also for one that was purged: its row is found by a keyed hash."""
    if not project_key:
        return None
    hidden = f"{tombstones.make_hidden_name('project', project_key, key)}:"
    sql = """select seq, root, merged_into, key
        from projects where key = :key or substr(key, 1, :size) = :hidden order by seq desc"""
    row = rows.first(sql, key=project_key, hidden=hidden, size=len(hidden))
    if row is None:
        return None
    seq, root, merged_into, stored_key = row
    if merged_into and stored_key == project_key:
        other = workspaces.root_of(rows, merged_into)
        raise BadInput(
            f"{root} was merged into {other}; its conversations now belong to that project",
            hint=f"csmd project split '{other}' '{root}' takes it out again",
        )
    tree = sorted(projects.find_merged_projects(rows, seq))
    keys = [projects.read_key(rows, project) for project in tree if project != seq]
    keys += [key for project in tree for key in projects.list_worktrees(rows, project) if key not in keys]
    paths: dict[str, str] = dict(rows.all("select id, path from sessions where project_seq = :seq", seq=seq))
    # Some turns may be of sessions that began elsewhere.
    own_turns = rows.all("select seq, uuid from turns where project_seq = :seq", seq=seq)
    turns = {**_map_turns_of_sessions(rows, list(paths)), **dict(own_turns)}
    return Plan("project", f"the project {root} and its {amount(len(paths), 'session')}", projects=[project_key, *keys],
                sessions=list(paths), files=[path for path in paths.values() if path],
                turns=list(turns.values()), probes=_choose_probes(rows, list(turns)))  # fmt: skip


def _choose_probes(rows: Rows, seqs: Sequence[int]) -> list[str]:
    """Returns the longest beginnings of what people and assistants said in these turns and nowhere else."""
    texts: list[str] = []
    for start in range(0, len(seqs), 500):
        sql = f"""select t.text from turns t
            where {in_keys("t.seq", seqs[start : start + 500])} and t.kind in ('user', 'relayed', 'assistant')
            and not exists (select 1 from turns o where o.text_hash = t.text_hash and o.seq <> t.seq)"""  # noqa: S608
        texts += rows.column(sql)
    beginnings = [
        " ".join(split_words(text)[:PROBE_WORDS]) for text in sorted(texts, key=len, reverse=True)[:MAX_PROBES]
    ]
    return [text for text in dict.fromkeys(beginnings) if len(text.split(" ")) >= PROBE_WORDS // 2]


def _holds(text: str, needles: Sequence[Needle]) -> bool:
    return any(needle.spans(text) for needle in needles)


def count_matches(rows: Rows, plan: Plan) -> dict[str, int]:
    """Counts the rows with a text to remove by column, and the turns and sessions to remove as a whole."""
    counts = {"turns as a whole": len(plan.turns), "sessions as a whole": len(plan.sessions)}
    needles = plan.needles
    for table, column in text_columns.PURGE_ACTIONS if needles else ():
        counts[f"{table}.{column}"] = sum(
            _holds(text, needles) for _, text in text_columns.read_column_texts(rows, table, column)
        )
    return {name: count for name, count in counts.items() if count}


def list_affected_projects(rows: Rows, plan: Plan, *, seen: Collection[int] | None = None) -> list[dict[str, Any]]:
    """Returns the projects (of `seen`; None: all) with a text to purge: their memories and turns, the most first."""
    needles = plan.needles
    counts_by_project: dict[int, Counter[str]] = {}
    for table in ("memories", "turns") if needles else ():
        for seq, text in text_columns.read_column_texts(rows, table, "text"):
            if _holds(text, needles):
                project = rows.value(f"select project_seq from {table} where seq = :seq", seq=seq)  # noqa: S608
                counts_by_project.setdefault(project, Counter())[table] += 1
    return [
        {"project": workspaces.root_of(rows, project), "memories": counts["memories"], "turns": counts["turns"]}
        for project, counts in sorted(counts_by_project.items(), key=lambda item: (-item[1].total(), item[0]))
        if seen is None or project in seen
    ]


def find_variants(
    rows: Rows, needles: Sequence[Needle], table: str, column: str, after: int
) -> tuple[int | None, set[str]]:
    """Returns (next position, the texts of a part of a column as they appear there, in whole words)."""
    if text_columns.PURGE_ACTIONS[table, column] in text_columns.PATH_ACTIONS:
        part = list(text_columns.read_column_texts(rows, table, column))
        follows = None
    else:
        part = text_columns.read_texts_after(rows, table, column, after)
        follows = part[-1][0] if part else None
    return follows, {text[a:b] for _, text in part for needle in needles for a, b in needle.spans(text)}


def add_tombstones(rows: Rows, plan: Plan, variants: Sequence[str], *, key: bytes, now: str) -> None:
    """Writes a plan's tombstones and the mark of an unfinished purge: nothing of it is stored from now on."""
    purge.record_begin(rows, now=now)
    for text in plan.texts:
        tombstones.purge_text(rows, text, key=key, now=now)
    needles = list(zip(plan.texts, plan.needles, strict=True))
    for variant in variants:
        for finder in [text for text, needle in needles if needle.spans(variant)] or [""]:
            tombstones.purge_text(rows, variant, key=key, now=now, found_by=finder)
    for text, correction in plan.forgotten:
        tombstones.forget(rows, text, correction=correction, by="user", key=key, now=now)
    for kind, names in plan.names_by_kind().items():
        tombstones.purge_names(rows, kind, names, key=key, now=now)


def remove_tombstones(rows: Rows, plan: Plan, *, key: bytes) -> int:
    """Deletes a plan's tombstones and returns how many there were."""
    deleted = sum(tombstones.remove_text(rows, text, key=key) for text in plan.texts)
    return deleted + sum(
        tombstones.remove_name(rows, kind, name, key=key)
        for kind, names in plan.names_by_kind().items()
        for name in names
    )
