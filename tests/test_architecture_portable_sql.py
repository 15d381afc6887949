"""Every statement outside SQLite's own modules is one that PostgreSQL understands as well.

The statements are read out of the source: every string that begins as one does, and every
text that is passed to rows.all, one, value, run or many.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

import csmd

STORE = Path(csmd.__file__).parent / "store"
#: These have a twin for another backend, or none of their own SQL to share.
BACKENDS_OWN = {
    "sqlite.py",
    "cipher.py",
    "fulltext.py",
    "core.py",
    "schema_migrations.py",
    "backup.py",
    "recovery.py",
    "integrity.py",
    "import_files.py",
    "opencode_database.py",
    "sql_views.py",
}
#: Functions of other modules whose statements are SQLite's own: they speak to its full-text index and vector tables, or
#: name the index that its planner is to take. A twin for another backend has its own of these.
OWN_FUNCTIONS: dict[str, set[str]] = {
    "passages.py": {"_index_turn", "rebuild_index", "find_index_problems"},
    "vectors.py": {
        "create_vector_tables", "insert_vector", "delete_vector", "_read_vector", "reset_vectors", "find_vector_hits", "compute_distances",
        "_find_problems",
    },
}  # fmt: skip
MODULES = sorted(path for path in STORE.glob("*.py") if path.name not in BACKENDS_OWN)
DIALECTS = ("sqlite", "postgres")
METHODS = {
    "all",
    "first",
    "value",
    "key",
    "text",
    "number",
    "exists",
    "distinct",
    "grouped",
    "run",
    "many",
    "column",
    "read",
    "read_one",
}
#: These take what the rows are made into before the statement.
READING = {"read", "read_one"}
#: These make the statement themselves, of a table, named values and, where rows are inserted, what is to be done on conflict.
INSERTING = {"insert", "insert_keyed", "delete"}
BEGINNING = re.compile(
    r"\s*(?:select|insert|update|delete|with|create|drop|alter|pragma|replace|vacuum|attach)\s", re.IGNORECASE
)

#: What stands for the placeholders of f-strings; one that is missing here fails the test.
PLACEHOLDERS = {
    "turn": "t.uuid, t.text",
    "changes": "at = excluded.at",
    "columns_sql": "t.uuid, t.text",
    "_JOIN_DISTILLED": "left join cursors c on c.stage = 'distill' and c.subject = cast(s.seq as text)",
    "_SESSION_STATE_SQL": "select s.seq from sessions s",
    "MIN_CORRECTION_CONFIDENCE": "0.6",
    "MIN_INFERRED_CONFIDENCE": "0.7",
    "MIN_REINFORCEMENT": "3",
    "MIN_EVIDENCE": "2",
    "search": "select m.id from memories m",
    "MAX_IDS_SHOWN": "20",
    "_TURNS": "from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session",
    "_STATEMENTS": "from session_turn st join statements m on m.turn_seq = st.turn_seq where st.session_seq = :session",
    "_WRITERS": "'Edit', 'Write'",
    "sources": "('clear', 'compact')",
    "memories.NOT_COLLEAGUES": "m.seq not in (select memory_seq from team_memories)",
    "NOT_COLLEAGUES": "m.seq not in (select memory_seq from team_memories)",
    "_TEAM": "t.url, t.author",
    "_PLACE": "p.seq, p.author",
    "_USER_PROMPTS": "select t.seq, t.at from turns t where t.kind = 'user'",
    "_SHARE": "select s.name from team_shares s",
    "_AROUND": "root = :place or substr(:place, 1, length(root) + 1) = root || '/'",
    "_STATED": "from memories m join projects p on p.seq = m.project_seq where p.workspace_seq = :place",
    "_ABOUT": "select s.seq from sessions s",
    "_ENDINGS": "select s.seq from sessions s join projects p on p.seq = s.project_seq where s.parent = '' ",
    "_BELOW": "project_seq = :scope",
    "_SAME": "project_seq = :project_seq and kind = :kind and fingerprint = :fingerprint",
    "_outside_context_sql('f')": "f.at < :since and f.seq <> :session",
    "_outside_context_sql('x')": "x.at < :since and x.seq <> :session",
    "CONTEXT_STARTS": "('startup', 'clear')",
    "kinds": "('memory', 'near')",
    "IS_LISTED": "in (:listed)",  # which csmd.team.postgres says otherwise
    "between": "from_project in (1, 2) and to_project in (1, 2)",
    "of_turns": "true",
    "of_session": "n.session_id = :session",
    "project": "t.project_seq",
    "visible": "and t.project_seq in (1, 2)",
    "oldest": "select seq from checkpoints where at < :before limit :limit",
    "_TABLES[kind]": "context_log",
    "_COLUMNS_SQL": "m.text_hash, m.gate",
    "_IN_RANGE": "m.seq > :after and m.seq <= :to",
    "_UPKEEP_KINDS_SQL": "'stale', 'orphan'",
    "', '.join(names)": "uuid, text",
    "dropped": "status = 'dropped'",
    "alive": "m.twin_of = 0",
    "condition": "m.seq > :seq",
    "_CLOSED": "exists (select 1 from events e where e.session_id = s.id)",
    "_COUNTED": "e.seq, count(*)",
    "_COLUMNS": "m.id, m.text",
    "_WAITING_COLUMNS": "m.id, m.text",
    "ON_THIS_SIDE": "t.project_seq = 1",
    "_PROMPTS": "t.parent_uuid <> '' and t.kind = 'user'",
    "spoken": "from session_turn n join turns t on t.seq = n.turn_seq where n.session_seq = me.session_seq",
    "of_them": "and t.project_seq in (1, 2)",
    "_SEARCHABLE_TURNS": "from session_turn n join turns t on t.seq = n.turn_seq where n.session_seq = me.session_seq",
    "_SESSION": "s.seq, s.id",
    "has_evidence": "exists (select 1 from candidate_evidence)",
    "quoting": "''",
    "selected": "select p.seq, p.text from memories p",
    "_WORDS[kind]": "p.text from memories p",
    "waiting": "select 1 from memories where seq > :after",
    "due": "(s.last_at not between :quiet_before and :now or coalesce(c.position, 0) < case s.seq when 1 then 2 else 0 end)",
    "people": "s.parent = ''",
    "of_memory": "n.seq > 0",
    "in_period": "n.at >= :since",
    "_is_in(rows, projects)": "n.project_seq in (1, 2)",
    "own": "g.session_id = ''",
    "of_directories": "project_seq = :source",
    "_LISTED": "select t.seq, t.text from turns t where t.session_seq = :session and t.seq > :after",
    "called('t')": "t.kind = 'tool_call'",
    "called('c')": "c.kind = 'tool_call'",
    "_quote_names(tools)": "'Bash', 'Edit'",
    "_quote_names(kinds)": "'user'",
    "names": ":id0, :id1",
    "uuid_names": ":uuid0, :uuid1",
    "ident_names": ":ident0, :ident1",
    "_keys(seqs)": "1, 2",
    "select": "select st.ordinal from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session and st.ordinal < :ordinal",
    "_OF_SESSION": "(cast(:session as text) = '' or s.id = :session)",
    "_CONVERSATION_KINDS": "('user', 'assistant')",
    "COLUMNS": "k.seq, k.id",
    "by": "k.at",
    "_bound_by_category('high')": "case m.category when 'fact' then 1.0 else 0 end",
    "_bound_by_category('low')": "case m.category when 'fact' then 0.8 else 0 end",
    "chosen": "and project_seq in (1, 2)",
    "_MARKS": ":gate, :tier",
    "_COLUMN_NAMES": "gate, tier",
    "PASSAGE_TEXT": "substr(t.text, p.start_at + 1, p.end_at - p.start_at)",
    "JOIN_SEARCHABLE": "turns t on t.seq = n.turn_seq and t.searchable = 1",
    "apart": "and (cast(:session as text) = '' or t.at < :since)",
    "among": "and t.project_seq in (1, 2)",
    "_among(projects)": "and t.project_seq in (1, 2)",
    "_seen_in(projects)": "and exists (select 1 from error_seen x where x.error_seq = e.seq)",
    "about": "lens_topics l join memories m on m.seq = l.seq",
    "column": "text",
    "source": "turns t join sessions s on s.seq = t.session_seq",
    "key": "t.seq",
    "columns": "t.at, t.text",
    "source.key": "t.seq",
    "source.at": "t.at",
    "source.session": "s.id",
    "source.content": "t.text",
    "source.tables": "turns t join sessions s on s.seq = t.session_seq",
    "kinds_named": "'user', 'assistant'",
    "keys": "1, 2",
    "_among('project_seq', projects)": "and project_seq in (1, 2)",
    "marked": "fingerprint = :mark",
    "marks": "'startup', 'clear'",
    "operator": "<",
    "order": "asc",
    "_JOINED": "from compactions c join turns t on t.seq = c.turn_seq join sessions s on s.seq = t.session_seq",
    "_UNDROPPED": "from turns where kind in ('tool_call', 'tool_result') and gone = 0",
    "sums": "count(*)",
    "scope": "where m.project_seq in (1, 2)",
    "table": "turns",
    "where": "k.id = :id",
    "undone": "and c.undone_at <> '' and f.kept = ''",
    "wanted": "where t.seq > 0",
    "filters": "and t.kind in ('user', 'assistant')",
    "_NEAREST_LENS": "coalesce((select r.lens_seq from projects r where r.lens_seq > 0 order by length(r.root) desc limit 1), 0)",
    "_FEW": "1 = 1 and :sure <= :most",
}

#: Functions that both have, with the same meaning.
FUNCTIONS = {
    "AVG",
    "CASE",
    "CAST",
    "COALESCE",
    "COUNT",
    "EXISTS",
    "LENGTH",
    "LOWER",
    "MAX",
    "MIN",
    "SUBSTRING",
    "SUM",
    "AND",
    "OR",
}
#: Words of one of the two alone; the parser lets some of them pass in either dialect.
FOREIGN_WORDS = re.compile(
    r"\b(?:insert\s+or|rowid|pragma|glob|match|ilike|autoincrement|without\s+rowid|current_(?:date|time|timestamp)|interval"
    r"|distinct\s+on|for\s+update|ifnull|strict)\b|::|\?|==|\|\|'?\s*null|(?<![:\w])[@$]\w",
    re.IGNORECASE,
)


def joined(node: ast.expr) -> str | None:
    """The text of a literal, an f-string (placeholders filled in) or a sum of them; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(joined(part) or "" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        name = ast.unparse(node.value)
        if name.startswith("in_keys("):
            return "t.project_seq in (1, 2)"
        if name.startswith("columns("):
            return "m.id, m.text"
        if name.startswith("starts_with("):
            return "t.uuid >= :prefix and t.uuid < :prefix || '~'"
        assert name in PLACEHOLDERS, f"say in PLACEHOLDERS what {{{name}}} stands for"
        return PLACEHOLDERS[name]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = joined(node.left), joined(node.right)
        return None if left is None or right is None else left + right
    return None


def inserting(call: ast.Call) -> str:
    """The statement that `rows.insert` or `rows.delete` makes of its arguments."""
    table, conflict = [*(joined(argument) or "" for argument in call.args), ""][:2]
    names = [keyword.arg or "further" for keyword in call.keywords]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "delete":
        return f"delete from {table} where {' and '.join(f'{name} = :{name}' for name in names)}"
    return f"insert into {table} ({', '.join(names)}) values ({', '.join(f':{name}' for name in names)}) {conflict}"


def parsed(path: Path) -> ast.Module:
    """A module without the functions whose statements are SQLite's own."""
    tree = ast.parse(path.read_text())
    own = OWN_FUNCTIONS.get(path.name, set())
    assert own <= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    tree.body = [node for node in tree.body if not (isinstance(node, ast.FunctionDef) and node.name in own)]
    return tree


def statements(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, SQL) of every statement in a module."""
    seen: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            seen.add(id(node.value))  # a docstring
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("where") and len(node.args) == 2:
            condition = joined(node.args[1])
            if condition is not None:
                yield node.lineno, f"select m.seq from memories m where {condition}"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in METHODS | INSERTING
            and node.args
            and ast.unparse(node.func.value) == "rows"
        ):
            sql = inserting(node) if node.func.attr in INSERTING else joined(node.args[node.func.attr in READING])
            if sql is not None:
                seen |= {id(part) for part in ast.walk(node)}
                yield node.lineno, sql
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Constant | ast.BinOp) and id(node) not in seen:
            head = next((part for part in ast.walk(node) if isinstance(part, ast.Constant)), None)
            if head is None or not isinstance(head.value, str) or not BEGINNING.match(head.value):
                continue
            sql = joined(node)
            seen |= {id(part) for part in ast.walk(node)}
            if sql is not None:
                yield node.lineno, sql


def complaint(sql: str) -> str:
    """Why a statement is not portable; "" when it is."""
    foreign = FOREIGN_WORDS.search(re.sub(r"'[^']*'", "''", sql))
    if foreign:
        return f"{foreign.group(0)!r} is of one dialect alone"
    for dialect in DIALECTS:
        try:
            trees = sqlglot.parse(sql, dialect=dialect)
        except (ParseError, sqlglot.errors.TokenError) as error:
            return f"{dialect}: {error}"
        if len(trees) != 1 or not isinstance(trees[0], exp.Select | exp.Union | exp.Insert | exp.Update | exp.Delete):
            return f"{dialect}: not one select, insert, update or delete"
        for function in trees[0].find_all(exp.Func):
            if isinstance(function, exp.If) and isinstance(function.parent, exp.Case):
                continue  # a branch of `case`
            name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
            if name.upper() not in FUNCTIONS:
                return f"{dialect}: the function {name}"
            if isinstance(function, exp.Max | exp.Min) and function.expressions:
                return f"{dialect}: {name} of several values is greatest or least elsewhere"
    return ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_statement_is_one_of_both_dialects(path: Path) -> None:
    wrong = {
        f"{path.name}:{line}: {complaint(sql)}\n  {sql}" for line, sql in statements(parsed(path)) if complaint(sql)
    }
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_values_are_named_parameters_and_each_is_given(path: Path) -> None:
    for function in ast.walk(parsed(path)):
        if not isinstance(function, ast.FunctionDef):
            continue
        named = {
            node.lineno: node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "sql"
        }
        for node in ast.walk(function):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS):
                continue
            if not node.args or ast.unparse(node.func.value) != "rows":
                continue
            given = node.args[int(node.func.attr in READING)]
            if ast.unparse(given) == "sql" and named:  # set on the latest line before
                given = named[max(line for line in named if line < node.lineno)]
            sql = joined(given)
            if sql is None or any(keyword.arg is None for keyword in node.keywords):
                continue
            wanted = set(re.findall(r"(?<![:\w]):([a-z_]+)", re.sub(r"'[^']*'", "''", sql)))
            assert wanted == {keyword.arg for keyword in node.keywords}, f"{path.name}:{node.lineno}"


def test_the_statements_are_found_however_they_are_written() -> None:
    source = '''
"""Select what you like: a docstring is none."""
QUERIES = {"a": "select 1 from t", "b": "update t " "set a = 1"}
def f(rows, keys):
    """Delete from here: neither is this."""
    rows.value("select a " "from t")
    rows.all(f"select a from t where b in ({keys})")
    rows.run("delete " + "from t", a=1)
    rows.read(Value, "select b from t")
    rows.insert("t", "on conflict (a) do nothing", a=1, b=2)
    rows.delete("t", a=1)
    other.all("not of the store")
    note = f"insert into t (a) values ({keys})"
'''
    assert sorted(sql for _, sql in statements(ast.parse(source))) == sorted([
        "select a from t", "select a from t where b in (1, 2)", "delete from t", "select 1 from t", "update t set a = 1",
        "insert into t (a) values (1, 2)", "select b from t", "delete from t where a = :a",
        "insert into t (a, b) values (:a, :b) on conflict (a) do nothing",
    ])  # fmt: skip


def test_statements_of_most_modules_are_found() -> None:
    counts = {path.stem: sum(1 for _ in statements(parsed(path))) for path in MODULES}
    assert sum(counts.values()) > 80, counts
    assert all(counts[name] > 3 for name in ("turns", "memories", "search", "cursors", "activity", "receipts")), counts


def test_a_placeholder_that_nobody_explained_fails() -> None:
    with pytest.raises(AssertionError, match="PLACEHOLDERS"):
        list(statements(ast.parse('rows.all(f"select {surprise} from t")')))


@pytest.mark.parametrize(
    "sql",
    [
        "select a from t where",
        "selec a from t",
        "select date('now') from t",
        "select strftime('%Y', at) from t",
        "select a from t where at > now()",
        "select julianday(at) from t",
        "select pow(a, 2) from t",
        "select power(a, 2) from t",
        "select exp(a) from t",
        "select a from t where at > current_timestamp",
        "select ifnull(a, 1) from t",
        "select max(a, b) from t",
        "select if(a, 1, 2) from t",
        "select iif(a, 1, 2) from t",
        "select group_concat(a) from t",
        "insert or ignore into t (a) values (:a)",
        "replace into t (a) values (:a)",
        "select a from t where a = ?",
        "select a from t where a = $1",
        "select rowid from t",
        "select a::text from t",
        "select a from t where t match :a",
        "select distinct on (a) a from t",
        "pragma user_version",
        "create table t (a text)",
        "select 1; select 2",
        "select json_extract(a, '$.b') from t",
    ],
)
def test_a_statement_of_one_dialect_alone_is_caught(sql: str) -> None:
    assert complaint(sql)
