"""Ten views of the store, and one SELECT at a time on them.

A statement is compiled twice. First where nothing exists except the names and columns of the views, so that it can name
nothing else. Then on a read-only connection of its own, whose views show only what the caller may see; its authorizer
allows reads of the tables behind the views and calls of plain functions.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from csmd import wire
from csmd.errors import BadInput, TooLarge
from csmd.store.sqlite import Row, as_store_error, close_quietly, connect, in_keys
from csmd.text import display

#: Most rows of an answer.
MAX_ROWS = 100
#: Most characters of a value.
MAX_VALUE_CHARACTERS = 2_000
#: Most characters of all values together.
MAX_ANSWER_CHARACTERS = 100_000
#: How long a question may take.
MAX_SECONDS = 2.0
#: Memory that SQLite may use for it.
MAX_MEMORY_BYTES = 64 << 20
#: SQLite's steps between two checks of these limits.
STEPS_PER_CHECK = 200
#: Most characters of a statement.
MAX_STATEMENT_CHARACTERS = 8_000
#: Most bytes of a turn's text that a view shows.
MAX_TURN_BYTES = 200_000
#: Most bytes of any value while the answer is computed.
MAX_VALUE_BYTES = 1_000_000
#: A memory hidden by a merge of projects is represented by its twin.
_HELD = "m.twin_of = 0 and {m.project_seq}"
_ROOT = "(select p.root from main.projects p where p.seq = {})"
#: The tables behind the views: all that a statement can read.
VIEW_TABLES = frozenset({
    "projects", "sessions", "session_turn", "turns", "usage", "memories", "provenance", "links", "topics", "memory_topics",
    "digests", "errors", "error_seen", "error_fixes", "injections", "injection_items",
})  # fmt: skip
#: Functions that may be called: none that reads files, loads extensions, makes large values or is random.
FUNCTIONS = frozenset({
    "abs", "avg", "ceil", "ceiling", "char", "coalesce", "concat", "concat_ws", "count", "cume_dist", "date", "datetime",
    "dense_rank", "first_value", "floor", "format", "glob", "group_concat", "ifnull", "iif", "instr", "julianday", "lag",
    "last_value", "lead", "length", "like", "lower", "ltrim", "max", "min", "nth_value", "ntile", "nullif", "octet_length",
    "percent_rank", "printf", "rank", "replace", "round", "row_number", "rtrim", "sign", "strftime", "string_agg", "substr",
    "substring", "sum", "time", "timediff", "total", "trim", "typeof", "unicode", "unixepoch", "upper",
})  # fmt: skip
_LIMITS = {
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_COLUMN: 100,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_FUNCTION_ARG: 20,
    apsw.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 2 * MAX_STATEMENT_CHARACTERS,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
    apsw.SQLITE_LIMIT_VDBE_OP: 25_000,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_HINT = "call csm_store_schema, which lists the views and their columns"


class View(NamedTuple):
    """A view: what a row is, what its columns mean, how it is joined with others, and its SELECT.

    In the SELECT, {column} of a project's row becomes the condition that the caller may see it, {session column} the id
    of a session, '' if the caller may not see it.
    """

    name: str
    about: str
    columns: Mapping[str, str]
    joins: tuple[str, ...]
    sql: str


VIEWS: tuple[View, ...] = (
    View(
        "projects",
        "A git repository with its worktrees, or a directory",
        {
            "path": "its directory",
            "name": "the directory's last part",
            "kind": "git, submodule, path, or part of another project",
            "remote": "where it is cloned from, '' for nowhere",
            "lens": "the lens or wall that it is under, '' for none",
            "created_at": "when csmd first heard of it",
        },
        (),
        """select p.root, p.name, p.kind, p.remote, coalesce((select w.name from main.projects w where w.seq > 0
            and w.seq = case when p.workspace_seq > 0 then p.workspace_seq else (select r.lens_seq from main.projects r
            where r.lens_seq > 0 and r.root <> '' and {r.seq} and (p.root = r.root or substr(p.root,
            1, length(r.root) + 1) = r.root || '/') order by length(r.root) desc limit 1) end), ''), p.created_at
            from main.projects p where p.seq > 0 and p.kind <> 'workspace' and p.merged_into = 0 and {p.seq}""",
    ),
    View(
        "sessions",
        "A conversation with an assistant",
        {
            "id": "its id",
            "project": "path of the project it began in",
            "parent": "the session whose sub-agent it is, '' for a person's own",
            "assistant": "which assistant: claude, codex, ...",
            "model": "the model, as its transcript names it last",
            "title": "its title, '' for none",
            "directory": "the directory it began in",
            "started_at": "when it began",
            "last_at": "when its last turn was",
            "turns": "how many turns it has",
            "input_tokens": "tokens that its model read, from caches too",
            "output_tokens": "tokens that its model wrote",
        },
        ("sessions.project = projects.path", "sessions.parent = sessions.id"),
        f"""select s.id, {_ROOT.format("s.project_seq")},
            {{session s.parent}}, s.host, s.model, s.title, s.cwd, s.started_at, s.last_at, (select count(*)
            from main.session_turn n join main.turns t on t.seq = n.turn_seq where n.session_seq = s.seq
            and {{t.project_seq}}), (select coalesce(sum(u.input + u.cache_read + u.cache_write), 0)
            from main.usage u where u.session_seq = s.seq), (select coalesce(sum(u.output), 0) from main.usage u
            where u.session_seq = s.seq) from main.sessions s where s.host <> 'probe' and {{s.project_seq}}""",  # noqa: S608
    ),
    View(
        "turns",
        "One entry of a conversation, once, whichever sessions list it",
        {
            "id": "its id",
            "session": "the session it was said in first",
            "project": "path of the project it was said in",
            "kind": "user, assistant, relayed (a prompt that a program wrote), summary, command, notification, tool_call or tool_result",
            "tool": "the tool, of a call",
            "text": f"what was said; of tool output what was kept; '' beyond {MAX_TURN_BYTES:,} bytes",
            "at": "when",
            "tokens": "tokens that the assistant's message took, 0 for unknown",
        },
        ("turns.session = sessions.id", "turns.project = projects.path"),
        f"""select t.uuid, coalesce((select s.id from main.sessions s
            where s.seq = t.session_seq and {{s.project_seq}}), ''), {_ROOT.format("t.project_seq")}, t.kind,
            t.tool_name, case when octet_length(t.text) <= {MAX_TURN_BYTES} then t.text else '' end, t.at, t.tokens
            from main.turns t where t.source <> 'probe' and {{t.project_seq}}""",  # noqa: S608
    ),
    View(
        "memories",
        "A statement that csmd keeps",
        {
            "id": "its id",
            "text": "what it says",
            "project": "path of the project it holds in, '' for everywhere",
            "gate": "behavioral, relational, epistemic, promissory or correction",
            "category": "preference, decision, fact, gotcha, convention, plan, person, ...",
            "type": "one of twelve types: preference, lesson, procedural, ...",
            "tier": "session, daily, durable or archive",
            "authority": "who said it: user, assistant or external",
            "origin": "stated, model_saved by an assistant, inferred from habits, or the program that it was imported from",
            "confidence": "how sure it is, 0-1",
            "pinned": "1 where a person pinned it, else 0",
            "session": "the session that said it first",
            "created_at": "when it was said first",
            "confirmed_at": "when it was said last",
            "superseded_by": "the memory that replaced it, '' where it holds",
        },
        ("memories.project = projects.path", "memories.session = sessions.id", "memories.superseded_by = memories.id"),
        f"""select m.id, m.text, {_ROOT.format("m.project_seq")}, m.gate, m.category, m.type, m.tier,
            m.authority, m.origin, m.confidence, m.pinned, {{session m.session_id}}, m.created_at, m.confirmed_at,
            case when m.superseded_by <> '' and not exists (select 1 from main.memories n where n.id = m.superseded_by
            and {{n.project_seq}}) then '' else m.superseded_by end from main.memories m where {_HELD}""",  # noqa: S608
    ),
    View(
        "sources",
        "That a turn states or confirms a memory",
        {
            "memory": "the memory",
            "turn": "the turn",
            "session": "the session it was said in",
            "at": "when it was said there",
            "role": "states or confirms; beside, midway for other parts of the exchange",
        },
        ("sources.memory = memories.id", "sources.turn = turns.id", "sources.session = sessions.id"),
        f"""select m.id, v.uuid, {{session v.session_id}}, v.at, v.role
            from main.provenance v join main.memories m on m.seq = v.memory_seq
            where {_HELD} and not exists (select 1 from main.turns t where t.uuid = v.uuid and not {{t.project_seq}})""",  # noqa: S608
    ),
    View(
        "links",
        "An edge between two memories",
        {
            "from_memory": "where it begins",
            "to_memory": "where it leads",
            "relationship": "superseded_by, caused, elaborates, contradicts, relates_to, ...",
            "weight": "how strong it is, 0-1",
            "created_at": "since when",
        },
        ("links.from_memory = memories.id", "links.to_memory = memories.id"),
        f"""select m.id, n.id, l.relationship, l.weight, l.created_at
            from main.links l join main.memories m on m.seq = l.from_seq
            join main.memories n on n.seq = l.to_seq where {_HELD} and n.twin_of = 0 and {{n.project_seq}}""",  # noqa: S608
    ),
    View(
        "topics",
        "That a memory is about a topic",
        {
            "topic": "the topic's name",
            "memory": "the memory",
            "weight": "how much it is about it, 0-1",
            "by_whom": "who says so: rule (csmd itself), person or assistant",
        },
        ("topics.memory = memories.id",),
        f"""select o.name, m.id, x.weight, x.by_whom
            from main.memory_topics x join main.topics o on o.seq = x.topic_seq
            join main.memories m on m.seq = x.memory_seq where x.weight > 0 and {_HELD} and {{o.project_seq}}""",  # noqa: S608
    ),
    View(
        "digests",
        "What a session came to, up to a compaction or to its end; the highest version is the latest",
        {
            "session": "the session",
            "project": "path of the project it began in",
            "version": "counted from 1",
            "at": "up to when it reaches",
            "outcome": "how the work stood: failing, rejected, corrected, committed, checked, unchecked, answered or unanswered",
            "text": "goal, decisions, changes, failures, what is open",
            "prompts": "how many prompts",
            "calls": "how many tool calls",
            "tokens": "tokens of its turns",
        },
        ("digests.session = sessions.id", "digests.project = projects.path"),
        f"""select s.id, {_ROOT.format("s.project_seq")},
            d.version, d.at, d.outcome, d.text, d.prompts, d.calls, d.tokens from main.digests d
            join main.sessions s on s.seq = d.session_seq where s.host <> 'probe' and {{s.project_seq}}""",  # noqa: S608
    ),
    View(
        "errors",
        "One time that a failure was seen",
        {
            "fingerprint": "the same for the same failure",
            "command": "what failed",
            "exit_code": "its exit code",
            "message": "the line that says why",
            "session": "the session it was seen in",
            "project": "path of the project",
            "turn": "the turn that shows it",
            "at": "when",
            "mended_at": "when the command went well again after that, '' for not yet",
        },
        ("errors.turn = turns.id", "errors.session = sessions.id", "errors.project = projects.path"),
        f"""select e.fingerprint, e.command, e.exit_code, e.message, coalesce((select s.id from main.sessions s
            where s.seq = x.session_seq and {{s.project_seq}}), ''), {_ROOT.format("t.project_seq")},
            t.uuid, x.at, coalesce((select min(f.at) from main.error_fixes f join main.turns r on r.seq = f.turn_seq
            where f.error_seq = x.error_seq and f.at >= x.at and {{r.project_seq}}), '') from main.error_seen x
            join main.errors e on e.seq = x.error_seq join main.turns t on t.seq = x.turn_seq where {{t.project_seq}}""",  # noqa: S608
    ),
    View(
        "receipts",
        "One thing that csmd put before a session",
        {
            "id": "of all that was put there at once",
            "session": "the session that was told",
            "project": "path of its project",
            "event": "session_start, prompt, pre_compact or tool_failure",
            "at": "when",
            "tokens": "tokens of all of it",
            "memory": "the memory that was told, null for something else",
            "reason": "why it was told",
            "used": "1 where the session made use of it, 0 where not, null while unknown",
        },
        ("receipts.session = sessions.id", "receipts.memory = memories.id", "receipts.project = projects.path"),
        f"""select i.id, {{session i.session_id}}, {_ROOT.format("i.project_seq")}, i.event, i.at, i.tokens,
            m.id, x.reason, x.used from main.injections i join main.injection_items x on x.injection_seq = i.seq
            left join main.memories m on m.id = x.memory_id and {_HELD} where {{i.project_seq}}""",  # noqa: S608
    ),
)
VIEW_NAMES = frozenset(view.name for view in VIEWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The first rows of an answer by column, long values cut; `is_cut` if there are more rows."""

    columns: tuple[str, ...]
    rows: list[Row]
    is_cut: bool


def answer(
    path: Path, statement: str, *, projects: Sequence[int] | None, limit: int, seconds: float = MAX_SECONDS
) -> Answer:
    """Answers one SELECT on the views of a database for these projects (None: all), with at most `limit` rows.

    Raises BadInput for any other statement, TooLarge for one that takes too long or too much memory.
    """
    if len(statement) > MAX_STATEMENT_CHARACTERS:
        raise TooLarge(f"a statement has at most {MAX_STATEMENT_CHARACTERS:,} characters", hint="ask for less at once")
    guard = _Guard(seconds)
    with guard.explaining():
        only = _compile_one(statement, guard)
        with _open(path, projects) as connection:
            guard.watch(connection, reads=VIEW_TABLES | VIEW_NAMES)
            return _fetch(connection, only, limit)


def read_sample(path: Path, view: View, *, projects: Sequence[int] | None, limit: int) -> Answer:
    """Returns the first rows of a view for these projects."""
    return answer(path, f"select * from {view.name}", projects=projects, limit=limit)  # noqa: S608


class _Guard:
    """Limits the connections that a statement runs on, and remembers why one was stopped."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._most_bytes = apsw.memory_used() + MAX_MEMORY_BYTES
        self._reason = ""
        """The reason of a denial or of a stop; "" if there was none."""

    def watch(self, connection: apsw.Connection, *, reads: Collection[str]) -> None:
        """Restricts a connection to reading these tables and views and calling FUNCTIONS, within the limits."""
        connection.execute("pragma query_only = on").fetchall()
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        others = {name.lower() for (name,) in connection.execute("select name from sqlite_schema")}
        others |= {name.lower() for (name,) in connection.execute("pragma module_list")}
        for limit, most in _LIMITS.items():
            connection.limit(limit, most)
        connection.authorizer = partial(self._authorize, reads, frozenset(others - set(reads)))
        connection.set_progress_handler(self._is_over, STEPS_PER_CHECK)

    def _authorize(
        self, reads: Collection[str], others: Collection[str], operation: int, name: str | None, more: str | None, *_: Any
    ) -> int:  # fmt: skip
        word = (name or "").lower()
        second = (more or "").lower()
        if operation in (apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE):
            return apsw.SQLITE_OK
        if operation == apsw.SQLITE_FUNCTION:
            if second in FUNCTIONS:
                return apsw.SQLITE_OK
            self._reason = f"the function {display.cut(second, 60)} cannot be called"
        elif operation == apsw.SQLITE_READ:
            # Without a column it may be a name that the statement itself defines.
            is_own = not more and word not in others and not word.startswith(("sqlite_", "pragma_"))
            if word in reads or is_own:
                return apsw.SQLITE_OK
            self._reason = f"there is no view {display.cut(word, 60)}"
        else:
            self._reason = "only a SELECT is answered"
        return apsw.SQLITE_DENY

    def _is_over(self) -> bool:
        if time.monotonic() >= self._until:
            self._reason = f"the question took longer than {self._seconds:g} s"
        elif apsw.memory_used() > self._most_bytes:
            self._reason = f"the question took more than {MAX_MEMORY_BYTES >> 20} MB of memory"
        else:
            return False
        return True

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Translates SQLite's errors into BadInput or TooLarge, and errors of the file into StoreError."""
        try:
            yield
        except (apsw.InterruptError, apsw.TooBigError, apsw.NoMemError) as error:
            what = self._reason or f"a value has more than {MAX_VALUE_BYTES:,} bytes"
            raise TooLarge(what, hint="ask for less: fewer joins, a where clause, a limit inside") from error
        except (apsw.AuthError, apsw.SQLError, apsw.BindingsError, ValueError) as error:
            what = self._reason or f"SQLite rejects the statement: {display.cut(str(error), 300)}"
            raise BadInput(what, hint=_HINT) from error
        except apsw.Error as error:
            raise as_store_error(error) from error


def _compile_one(statement: str, guard: _Guard) -> str:
    """Returns the only statement of a text, compiled with the views' names alone; raises BadInput unless it is one."""
    connection = apsw.Connection(":memory:")
    try:
        for view in VIEWS:
            nothing = ", ".join(["null"] * len(view.columns))
            connection.execute(f"create temp view {view.name} ({', '.join(view.columns)}) as select {nothing}")
        guard.watch(connection, reads=VIEW_NAMES)
        first, is_explained = _compile(connection, statement)
        rest = statement[len(first) :]
        if is_explained is None or not statement.startswith(first):
            raise BadInput("the text has no statement", hint="give one SELECT")
        if is_explained:
            raise BadInput("only a SELECT is answered", hint="leave EXPLAIN out")
        while rest:
            part, is_more = _compile(connection, rest)
            if is_more is not None or not part:
                raise BadInput("the text has several statements", hint="give one SELECT")
            rest = rest[len(part) :]
        return first
    finally:
        close_quietly(connection)


def _compile(connection: apsw.Connection, statements: str) -> tuple[str, bool | None]:
    """Returns (the first statement, whether it is an EXPLAIN; None if it does nothing)."""
    compiled: list[tuple[str, bool | None]] = []

    def trace(cursor: apsw.Cursor, sql: str, _: object) -> bool:
        compiled.append((sql, bool(cursor.is_explain) if cursor.has_vdbe else None))
        return False  # do not run it

    connection.exec_trace = trace
    with suppress(apsw.ExecTraceAbort):
        connection.execute(statements)
    return compiled[0] if compiled else ("", None)


@contextmanager
def _open(path: Path, projects: Sequence[int] | None) -> Iterator[apsw.Connection]:
    """Returns a read-only connection of its own with the views for these projects."""
    connection = connect(path, readonly=True)
    try:
        for view in VIEWS:
            sql = _limit_view(projects, view.sql)
            connection.execute(f"create temp view {view.name} ({', '.join(view.columns)}) as {sql}")
        yield connection
    finally:
        close_quietly(connection)


def _limit_view(projects: Sequence[int] | None, sql: str) -> str:
    """Returns the SELECT of a view for these projects, with plain columns if nothing is hidden, to use indexes."""

    def session(column: re.Match[str]) -> str:
        if projects is None:
            return column[1]
        return f"""case when exists (select 1 from main.sessions hidden
            where hidden.id = {column[1]} and not {{hidden.project_seq}}) then '' else {column[1]} end"""  # noqa: S608

    sql = re.sub(r"\{session (\w+\.\w+)\}", session, sql)
    return re.sub(r"\{(\w+\.\w+)\}", lambda column: f"({in_keys(column[1], projects)})", sql)


def _fetch(connection: apsw.Connection, statement: str, limit: int) -> Answer:
    """Returns the first rows of a statement, long values cut."""
    columns: list[str] = []

    def trace(cursor: apsw.Cursor, *_: object) -> bool:
        columns.extend(name for name, *_ in cursor.get_description())  # a cursor without rows does not know it later
        return True

    connection.exec_trace = trace
    rows: list[Row] = []
    room = MAX_ANSWER_CHARACTERS
    is_cut = False
    for row in connection.execute(statement):
        if len(rows) == limit or room <= 0:
            is_cut = True
            break
        rows.append(tuple(map(_shorten_value, row)))
        room -= sum(len(value) for value in rows[-1] if isinstance(value, str))
    return Answer(columns=tuple(columns), rows=rows, is_cut=is_cut)


def _shorten_value(value: Any) -> Any:
    """Returns a value that JSON can hold."""
    if isinstance(value, bytes):
        return display.cut(f"x'{value[:MAX_VALUE_CHARACTERS].hex()}'", MAX_VALUE_CHARACTERS)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return display.cut(wire.clean(value), MAX_VALUE_CHARACTERS) if isinstance(value, str) else value
