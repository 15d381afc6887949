"""The layers of docs/architecture.md as code: who may import whom, and what may stand where.

Each rule is one test that names whatever breaks it; a module is read and parsed once for all of them.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

import pytest

import csmd
from csmd.hosts import tool_calls

PACKAGE = Path(csmd.__file__).parent
SOURCE = Path(__file__).resolve().parent.parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_share" not in path.parts)

#: Left to right; a folder may import those to its left and itself.
LAYERS = [
    "vocabulary",
    "text",
    "privacy",
    "embedding",
    "hosts",
    "store",
    "capture",
    "extraction",
    "memory",
    "foreign_memories",
    "recall",
    "memory_export",
    "curator",
    "dream",
    "team",
    "tools",
    "daemon",
]
VOCABULARY = {
    "__init__",
    "cache",
    "config",
    "data",
    "errors",
    "file_lines",
    "exclusions",
    "pauses",
    "withheld_calls",
    "hook_events",
    "json_fields",
    "machine",
    "parameters",
    "briefs",
    "conversation",
    "knowledge",
    "vocabulary",
    "paths",
    "wire",
}
RIM = {"cli", "client", "doctor", "installer", "mcp", "web", "__main__"}
#: What is known of assistants without the daemon: what is written into their files.
HOSTS_FOR_THE_RIM = {"hosts.host_files", "hosts.registrations"}
STAGES = {"capture", "extraction", "memory", "foreign_memories", "recall", "memory_export", "curator", "dream", "team"}
#: Modules of a stage folder that know nothing of the store: they return values and reasons.
PURE = {
    "capture.markdown_imports",
    "curator.answer",
    "curator.question",
    "dream.actions",
    "dream.consolidation",
    "dream.pair_finding",
    "dream.day_report",
    "dream.gates",
    "dream.page_content",
    "dream.page_format",
    "extraction.acceptance",
    "extraction.candidate_passages",
    "extraction.chooser",
    "extraction.classifier",
    "extraction.exchange_sources",
    "extraction.failure_reports",
    "extraction.passage_scores",
    "extraction.prompt_assertions",
    "extraction.shell_commands",
    "extraction.statement_context",
    "extraction.work",
    "memory.confidence",
    "memory.scope",
    "recall.compose",
    "recall.query",
    "recall.ranking",
}
OWNERS = {"rows", "store", "context"}
#: Functions of before that do not say so yet; the table only shrinks.
UNSIGNED: dict[str, set[str]] = {
    "capture.claude_instructions": {"_read_object", "read_start", "_find_work_trees"},
    "capture.project_identity": {"identify_directory", "add_marks"},
    "capture.ingest": {"read_start_directory"},
    "dream.day_files": {"_parse_sessions", "_rewrite", "remove_from_data"},
    "dream.page_files": {"write_page"},
    "dream.steps": {"_candidate_id", "compare_vectors", "plan_everywhere", "read_snapshot"},
    "memory_export.export_file": {"open_file"},
    "dream.dream_undo": {"_write_text", "read_text"},
}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "base"}

#: A package -> the only modules, or folders, that may import it.
ONLY_IN = {
    "zmq": {"daemon.server"},
    "watchdog": {"daemon.transcript_watch"},
    "fastembed": {"embedding.worker"},
    "onnxruntime": {"embedding.worker"},
    "onnx": {"embedding.bert_graph"},
    "numpy": {"embedding.worker", "embedding.package_models", "embedding.bert_graph"},
    "tiktoken": {"embedding.token_counter"},
    "huggingface_hub": {"embedding.worker"},
    "apsw": {
        "store.sqlite",
        "store.cipher",
        "store.core",
        "store.schema_migrations",
        "store.backup",
        "store.recovery",
        "store.sql_views",
    },
    "sqlite_vec": {"store.sqlite"},
    "psycopg": {"team.postgres"},
    "json": {"wire", "client", "daemon.server", "mcp", "hosts.claude.transcript"},
    "yaml": {"config", "store.files", "text.entry_edits", "text.markdown", "cli.settings", "cli.yaml_edits"},
    "snowballstemmer": {"text.search_terms"},
    "markdown_it": {"capture.markdown_imports"},
    "wcmatch": {"capture.markdown_imports"},
    "frontmatter": {"text.markdown"},
    "filelock": {"daemon.instance"},
    "psutil": {"machine", "installer.service"},
    "urllib": {"curator.calls", "embedding.worker", "mcp.stdio_server", "team.sharing", "tools.providers", "web"},
    "http": {"curator.calls", "embedding.worker"},
    "keyring": {"curator.calls", "store.keys", "team.exchange"},
    "click": {"cli"},
    "rich": {"cli"},
    "platformdirs": {"config"},
    "mcp": {"mcp"},
    "mcp_types": {"mcp"},
    "anyio": {"mcp"},
    "starlette": {"web"},
    "uvicorn": {"web"},
    "jinja2": {"web"},
}
#: Only these may be imported inside functions alone: they cost tens to hundreds of milliseconds.
LAZY_ONLY = {
    "snowballstemmer",
    "fastembed",
    "mcp",
    "mcp_types",
    "anyio",
    "rich",
    "watchdog",
    "tiktoken",
    "onnxruntime",
    "numpy",
    "huggingface_hub",
    "keyring",
    "markdown_it",
    "wcmatch",
}
#: Modules that are imported inside a function themselves.
LATE = {"embedding.bert_graph"}
CLOCK = {"time", "threading", "subprocess", "multiprocessing", "sched", "signal"}
CLOCK_ALLOWED = {
    "daemon", "machine", "store.core", "embedding", "store.sqlite", "store.sql_views",
    "cli", "client", "doctor", "installer", "web", "curator.calls", "curator.process", "curator.endpoint", "team.sharing",
}  # fmt: skip


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def layer_of(module: str) -> str:
    head = module.split(".")[0]
    return "vocabulary" if head in VOCABULARY else head


@functools.cache
def parsed(path: Path) -> tuple[str, ast.Module]:
    """A module's text and its tree."""
    text = path.read_text()
    return text, ast.parse(text)


@functools.cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """(imported module, whether at the top of the file), TYPE_CHECKING blocks left out."""
    imported: list[tuple[str, bool]] = []

    def walk(node: ast.AST, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                continue
            if isinstance(child, ast.Import):
                imported.extend((alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                module = child.module or ""
                if module == "csmd" or module.startswith("csmd."):
                    imported.extend((f"{module}.{alias.name}", top) for alias in child.names)
                else:
                    imported.append((module, top))
            walk(child, top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    walk(parsed(path)[1], True)
    return imported


@functools.cache
def own(imported: str) -> str | None:
    """The csmd module that `imported` names, or None for a foreign one."""
    if imported != "csmd" and not imported.startswith("csmd."):
        return None
    parts = imported.split(".")[1:]
    while parts:
        path = PACKAGE.joinpath(*parts)
        if path.with_suffix(".py").exists() or path.is_dir():
            return ".".join(parts)
        parts.pop()
    return "__init__"


@pytest.mark.invariant("Layers, and who may touch clock, environment, SQL and the store")
def test_a_module_imports_only_what_stands_to_its_left() -> None:
    wrong = []
    for path in MODULES:
        module = name_of(path)
        layer = layer_of(module)
        for target in filter(None, (own(imported) for imported, _ in imports(path))):
            other = layer_of(target)
            if layer in RIM:
                if other not in RIM | {"vocabulary", "text"} and target not in HOSTS_FOR_THE_RIM:
                    wrong.append(f"{module} is the rim and knows the socket only, not {target}")
            elif other in RIM:
                wrong.append(f"{module} must not know the rim ({target})")
            elif LAYERS.index(other) > LAYERS.index(layer):
                wrong.append(f"{module} imports {target}, which stands to its right")
    assert not wrong


def of_one_host(target: str) -> bool:
    """Whether a module, or folder, is one assistant's."""
    return re.match(r"hosts\.\w+(\.|$)", target) is not None and PACKAGE.joinpath(*target.split(".")[:2]).is_dir()


@pytest.mark.invariant("Layers, and who may touch clock, environment, SQL and the store")
def test_an_assistant_is_known_outside_of_hosts_by_its_row_in_a_table_alone() -> None:
    wrong = [
        f"{name_of(path)} imports {target}"
        for path in MODULES
        if layer_of(name_of(path)) != "hosts"
        for target in filter(None, (own(imported) for imported, _ in imports(path)))
        if of_one_host(target)
    ]
    assert not wrong
    assert of_one_host("hosts.codex.hooks") and of_one_host("hosts.codex") and not of_one_host("hosts.adapter")


@pytest.mark.invariant("Layers, and who may touch clock, environment, SQL and the store")
def test_what_is_pure_knows_nothing_of_the_store() -> None:
    by_name = {name_of(path): path for path in MODULES}
    impure = {
        module: wrong
        for module in PURE
        if (wrong := [target for target, _ in imports(by_name[module]) if layer_of(own(target) or "errors") == "store"])
    }
    assert not impure


def unsigned(path: Path) -> list[str]:
    """Functions that name a module of the store and do not say so by their first parameter.

    It is `rows`, `store` or a context; methods of a class that is made with one, and functions within a function that
    has one, are fine. Annotations name types and reach for nothing.
    """
    tree = parsed(path)[1]
    reaching: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("csmd"):
            for alias in node.names:
                target = own(f"{node.module}.{alias.name}") or ""
                is_function = not target.endswith(alias.name) and alias.name.islower()
                if layer_of(target or "errors") == "store" and (target.endswith(f".{alias.name}") or is_function):
                    reaching.add(alias.asname or alias.name)

    def names(function: ast.FunctionDef) -> bool:
        return any(isinstance(n, ast.Name) and n.id in reaching for part in function.body for n in ast.walk(part))

    def first(function: ast.FunctionDef) -> str:
        given = [
            argument.arg
            for argument in [*function.args.posonlyargs, *function.args.args]
            if argument.arg not in ("self", "cls")
        ]
        return given[0] if given else ""

    hidden: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and names(node) and first(node) not in OWNERS:
            hidden.append(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
            owns = any(method.name == "__init__" and first(method) in OWNERS for method in methods)
            hidden += [
                f"{node.name}.{method.name}"
                for method in methods
                if names(method) and not owns and first(method) not in OWNERS
            ]
    return hidden


def test_who_reads_or_writes_the_store_says_so_by_the_first_parameter() -> None:
    hidden = {
        name_of(path): set(wrong) for path in MODULES if layer_of(name_of(path)) in STAGES and (wrong := unsigned(path))
    }
    assert hidden == UNSIGNED


def test_a_function_that_hides_what_it_reads_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "from csmd.store import passages\nfrom csmd.store.passages import Passage, by_seqs\n"
        "def read(rows, seq): return passages.by_seqs(rows, [seq])\n"
        "def hides(asked, rows): return passages.by_seqs(rows, asked)\n"
        "def hides_too(asked): return by_seqs(asked)\n"
        "def types(one: passages.Passage) -> Passage: return Passage\n"
        "class Owner:\n    def __init__(self, rows): ...\n    def look(self, seq): return passages.by_seqs\n"
        "class Other:\n    def look(self, seq): return passages.by_seqs\n"
    )
    assert unsigned(planted) == ["hides", "hides_too", "Other.look"]


@pytest.mark.invariant(
    "Models live in one worker process, which ends with its owner and is given up after three crashes"
)
def test_a_package_is_imported_only_where_it_belongs() -> None:
    wrong = []
    for path in MODULES:
        module = name_of(path)
        for imported, top in imports(path):
            head = imported.split(".")[0]
            if head in ONLY_IN and not {module, module.split(".")[0]} & ONLY_IN[head]:
                wrong.append(f"{module} imports {head}; only {sorted(ONLY_IN[head])} may")
            if head in LAZY_ONLY and top and module not in LATE:
                wrong.append(f"{module} imports {head} at its top; import it inside the function that needs it")
    assert not wrong


def test_what_a_function_keeps_of_texts_is_kept_where_a_purge_empties_it() -> None:
    wrong = []
    for path in MODULES:
        if name_of(path) != "cache":
            wrong += [
                f"{name_of(path)} imports {name}"
                for name, _ in imports(path)
                if name == "functools" and "lru_cache" in parsed(path)[0]
            ]
            wrong += [
                f"{name_of(path)}.{node.name} is never emptied"
                for node in parsed(path)[1].body
                if isinstance(node, ast.FunctionDef) and node.args.args
                if any(isinstance(decorator, ast.Name) and decorator.id == "cache" for decorator in node.decorator_list)
            ]
    assert not wrong


@pytest.mark.invariant("Layers, and who may touch clock, environment, SQL and the store")
def test_clock_threads_and_processes_stay_in_the_daemon() -> None:
    wrong = []
    for path in MODULES:
        module = name_of(path)
        if any(module == name or module.startswith(name + ".") for name in CLOCK_ALLOWED):
            continue
        wrong += [f"{module} imports {name}" for name, _ in imports(path) if name.split(".")[0] in CLOCK]
        if re.search(r"\b(?:datetime\.now|date\.today|datetime\.utcnow)\(", parsed(path)[0]):
            wrong.append(f"{module} asks the clock")
    assert not wrong


@pytest.mark.invariant("Layers, and who may touch clock, environment, SQL and the store")
def test_only_config_reads_the_environment() -> None:
    readers = [name_of(path) for path in MODULES if re.search(r"\bos\.(?:environ|getenv|putenv)\b", parsed(path)[0])]
    assert readers == ["config"]


#: What begins as a statement does; matched against every text that stands outside the store.
SQL = re.compile(
    r"\s*(?:select|insert into|update|delete from|create table|with \w+ as)\s+\w+.*\b(?:from|set|values)\b",
    re.IGNORECASE | re.DOTALL,
)


#: The SQL of a team's server, which is another database.
OF_THE_SERVER = {"team.postgres", "team.shared_rows"}


@pytest.mark.invariant("Layers, and who may touch clock, environment, SQL and the store")
def test_sql_stands_only_in_the_store() -> None:
    wrong = []
    for path in MODULES:
        if layer_of(name_of(path)) == "store" or name_of(path) in OF_THE_SERVER:
            continue
        texts = [node.value for node in ast.walk(parsed(path)[1]) if isinstance(node, ast.Constant)]
        wrong += [f"{name_of(path)}: {text[:60]!r}" for text in texts if isinstance(text, str) and SQL.match(text)]
    assert not wrong


#: These ask for csmd's own files, where what the disk refuses is an error and no answer.
OWN_FILES = {"daemon.repair", "daemon.dream_lock"}
FOREIGN_PATHS = {"capture", "recall", "tools", "daemon", "cli", "doctor", "mcp", "web"}


@pytest.mark.invariant("Whatever a path does that somebody else chose, status, doctor and brief answer")
def test_what_lies_at_a_foreign_path_is_asked_by_what_never_raises() -> None:
    wrong = []
    for path in MODULES:
        module = name_of(path)
        if layer_of(module) not in FOREIGN_PATHS or module in OWN_FILES:
            continue
        for node in ast.walk(parsed(path)[1]):
            if isinstance(node, ast.Attribute) and node.attr in ("exists", "is_dir", "is_file", "resolve"):
                is_other = isinstance(node.value, ast.Name) and node.value.id in ("entry", "files", "disk", "source")
                wrong += [] if is_other else [f"{module}:{node.lineno}: {ast.unparse(node)} raises"]
    assert not wrong, "ask csmd.paths.is_there, is_directory, is_file, or os.path.realpath"


def test_a_question_is_asked_in_the_width_of_the_terminal() -> None:
    asking = [
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(parsed(path)[1])
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "click.confirm" and name_of(path) != "cli.verb"
    ]
    assert not asking, "ask csmd.cli.verb.ask_yes_no"


def test_a_module_opens_with_its_rule_and_has_a_name_that_says_something() -> None:
    wrong = []
    for path in MODULES:
        module, (text, tree) = name_of(path), parsed(path)
        if text.strip() and not ast.get_docstring(tree):
            wrong.append(f"{module} has no docstring")
        if set(module.split(".")) & FORBIDDEN_NAMES:
            wrong.append(f"{module} has a name that says nothing")
    assert not wrong


def test_the_rules_catch_a_violation(tmp_path: Path) -> None:
    """A check that cannot fail is none: the same functions see planted imports."""
    planted = tmp_path / "planted.py"
    planted.write_text("import zmq\ndef f():\n    import time\n    from csmd.store import core\n")
    assert imports(planted) == [("zmq", True), ("time", False), ("csmd.store.core", False)]
    assert own("csmd.store.nothing") == "store"
    assert own("csmd.text.display.cut") == "text.display"
    assert own("zmq") is None


def test_status_loads_none_of_the_rules_of_secrets() -> None:
    """They take longer than everything else that it does."""
    loaded = "import sys, csmd.cli.status; sys.exit('csmd.privacy.secret_rules' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0


@pytest.mark.invariant("The hook's hot path is at most 60 lines and knows only the standard library")
@pytest.mark.parametrize("name", ["csmd_hook.py", "csmd_spool.py", "csmd_line.py"])
def test_hooks_know_nothing_but_the_standard_library(name: str) -> None:
    script = PACKAGE / "_share" / "hooks" / name
    script = script if script.exists() else SOURCE / "hooks" / name
    heads = {imported.split(".")[0] for imported, _ in imports(script)}
    assert heads <= {"sys", "posix", "_socket", "time", "csmd_spool", "marshal", "os"}, heads


@pytest.mark.invariant("The hook's hot path is at most 60 lines and knows only the standard library")
def test_the_hot_path_of_the_hook_is_at_most_60_lines() -> None:
    script = SOURCE / "hooks" / "csmd_hook.py"
    lines = [line for line in script.read_text().splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= 60


# --- the house: circles, names, sizes

#: Nouns that may be rows (store), questions (tools) and commands (cli) alike, and mean the same in each.
#: What each assistant's folder below `hosts` holds by the same names.
PARTS_OF_HOSTS = {"hooks", "transcript", "registration"}
#: Nouns that `store` (rows), `tools` (questions), `daemon` (work) and `cli` (commands) share.
SHARED_NOUNS = {
    "beliefs", "checkpoints", "dreams", "forget", "goals", "injections", "instructions", "memories", "pipeline", "review",
    "projects", "receipts", "search", "sessions", "status", "team", "topics",
}  # fmt: skip
#: Words that allude instead of naming; none is a module's name or part of a public function's or class's.
RIDDLES = {
    "standing", "saying", "telling", "told", "apart", "frames", "lift", "taking", "unsaid", "owed", "easing", "moments",
    "kept", "otherwise", "heed", "echo", "reach", "beside", "said",
}  # fmt: skip
SMALL = 60


@functools.cache
def edges() -> dict[str, set[str]]:
    """Which csmd module imports which, TYPE_CHECKING blocks included."""
    imported: dict[str, set[str]] = {name_of(path): set() for path in MODULES}
    for path in MODULES:
        for node in ast.walk(parsed(path)[1]):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "csmd":
                targets = {own(f"{node.module}.{alias.name}") or "" for alias in node.names}
                imported[name_of(path)] |= {target for target in targets if target in imported} - {name_of(path)}
    return imported


def code_lines(path: Path) -> int:
    """Lines of a module that are neither blank, comment nor docstring."""
    text, tree = parsed(path)
    documented: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            documented |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        1 for number, line in lines if line.strip() and not line.strip().startswith("#") and number not in documented
    )


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Every module that can be reached from itself, with the way back."""

    def way(start: str) -> list[str]:
        trail, seen = [(start, [start])], {start}
        while trail:
            at, path = trail.pop()
            for target in sorted(graph.get(at, ())):
                if target == start:
                    return path
                if target not in seen:
                    seen.add(target)
                    trail.append((target, [*path, target]))
        return []

    return [trail for module in sorted(graph) if (trail := way(module))]


@pytest.mark.invariant("No import circle, TYPE_CHECKING included")
def test_no_module_imports_itself_by_any_way() -> None:
    assert circles(edges()) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
    ]


@pytest.mark.invariant("One basename, one meaning")
def test_a_basename_stands_once() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        is_hosts = path.stem in PARTS_OF_HOSTS and path.parent.parent.name == "hosts"
        if path.stem not in SHARED_NOUNS | {"__init__", "__main__"}:
            places.setdefault(path.stem, []).append(f"hosts.*.{path.stem}" if is_hosts else name_of(path))
    assert not {stem: names for stem, names in places.items() if len(set(names)) > 1}


def test_a_small_module_that_one_other_imports_is_a_part_of_it() -> None:
    importers: dict[str, set[str]] = {}
    for module, targets in edges().items():
        for target in targets:
            importers.setdefault(target, set()).add(module)
    files = {name_of(path): path for path in MODULES}
    small = {
        module
        for module, by in importers.items()
        if len(by) == 1
        and code_lines(files[module]) < SMALL
        and module.rpartition(".")[2] not in ("__init__", "__main__")
    }
    assert small <= set(SEAMS)


def misplaced(tests: Iterable[PurePath], modules: set[PurePath]) -> list[str]:
    """The test files, by their path below tests/, whose folder and name tell no module that they test.

    `cli/test_top.py` and `cli/test_top_keys.py` test `cli/top.py`.
    """

    def is_in_place(test: PurePath) -> bool:
        if test.parts[0] in OF_THE_WHOLE or (test.parent == PurePath() and test.stem in OF_THE_TREE):
            return True
        topic = test.stem.removeprefix("test_")
        named = [module.stem for module in modules if module.parent == test.parent]
        return any(topic == name or topic.startswith(f"{name}_") for name in named)

    return [str(test) for test in sorted(tests) if not is_in_place(test)]


@pytest.mark.invariant("Tests mirror the tree")
def test_tests_mirror_the_tree() -> None:
    modules = {path.relative_to(PACKAGE) for path in MODULES}
    here = SOURCE / "tests"
    assert misplaced((path.relative_to(here) for path in here.rglob("test_*.py")), modules) == []
    planted = ["cli/test_top.py", "cli/test_top_keys.py", "cli/test_topical.py", "recall/test_top.py", "test_top.py",
               "newer/test_top.py", "faults/test_top.py", "test_wire.py", "test_guards.py", "cli/test_guards.py"]  # fmt: skip
    two_modules = {PurePath("cli/top.py"), PurePath("wire.py")}
    wrong = ["cli/test_guards.py", "cli/test_topical.py", "newer/test_top.py", "recall/test_top.py", "test_top.py"]
    assert misplaced(map(PurePath, planted), two_modules) == wrong


def test_no_module_bears_a_name_that_alludes() -> None:
    assert [name_of(path) for path in MODULES if set(path.stem.split("_")) & RIDDLES] == []


#: Folders of tests that are about no single module: stages together, the whole program, its hooks, what it withstands.
OF_THE_WHOLE = {"contract", "e2e", "encryption", "faults", "fuzz", "hooks", "integration", "service"}
#: Tests of the tree itself, its documents, and the guards around the tests.
OF_THE_TREE = {"test_architecture", "test_architecture_portable_sql", "test_docs", "test_english", "test_guards"}
#: A small module with one importer -> why it is a file of its own.
SEAMS = {
    **{f"memory.{job}": "a job of its own, which the daemon runs" for job in ("restatements", "speakers")},
    **{
        f"hosts.{host}.hooks": "what each assistant's folder has; the table of adapters imports it"
        for host in ("claude", "codex", "copilot", "droid", "gemini", "opencode", "qwen")
    },
    **{
        f"foreign_memories.{name}": "a program of its own, a row of the table of sources"
        for name in ("basic_memory", "claude_mem", "mcp_memory", "mem0")
    },
    **{
        f"tools.{name}": "a subject of its own, a row of the registry"
        for name in ("telemetry", "instructions", "questions", "search", "status", "team")
    },
    "tools.registry": "the table of tools, which the server imports",
}


# --- what an assistant calls its tools

#: The names under which every assistant's tool calls are stored.
STORED_TOOLS = frozenset(
    {*tool_calls.DEEDS, *tool_calls.WRITERS, *tool_calls.READERS, *tool_calls.SHELLS, *tool_calls.AGENTS}
)
#: Of those the ones that are no word of any other kind: they stand in no longer text either, as in SQL.
TELLING = re.compile(
    r"\b(?:MultiEdit|NotebookEdit|NotebookRead|TodoWrite|ExitPlanMode|AskUserQuestion|TaskCreate|TaskUpdate)\b"
)


def tool_names_in(source: str) -> set[str]:
    """The tools that a module names in its texts; docstrings do not count."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]
    return {text for text in texts if text in STORED_TOOLS} | {name for text in texts for name in TELLING.findall(text)}


@pytest.mark.invariant("What one assistant calls things stands below hosts only")
def test_a_tool_is_known_by_its_name_below_hosts_only() -> None:
    named = {name_of(path): tool_names_in(path.read_text()) for path in MODULES}
    assert {module: names for module, names in named.items() if names and not module.startswith("hosts.")} == {}
    planted = "'Read with Bash.'\nif tool == 'Bash': run(\"select 1 where tool_name in ('TodoWrite')\")"
    assert tool_names_in(planted) == {"Bash", "TodoWrite"}


# --- hints

#: With what a hint begins, which is printed after `try:`: a verb, a command in backticks, or csmd.
IMPERATIVES = frozenset(
    "add ask begin bring call cd check choose close correct export free give import install leave make merge move name "
    "remove restore run say see set take try type unset upgrade use write".split()
)


def _beginnings(node: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    """The literal texts with which the value of a hint can begin; "" stands for no hint."""
    if isinstance(node, ast.IfExp):
        yield from _beginnings(node.body, constants)
        yield from _beginnings(node.orelse, constants)
    elif isinstance(node, ast.Name) and node.id in constants:
        yield from _beginnings(constants[node.id], constants)
    elif isinstance(node, ast.JoinedStr):
        yield from _beginnings(node.values[0], constants)
    elif isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.FormattedValue):
        yield "{...}"  # nobody can say with what it begins


def test_every_hint_says_what_to_do() -> None:
    wrong = []
    for module in MODULES:
        _, tree = parsed(module)
        constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        wrong += [
            f"{module.relative_to(PACKAGE)}:{node.value.lineno}: {text}"
            for node in ast.walk(tree)
            if isinstance(node, ast.keyword) and node.arg == "hint"
            for text in _beginnings(node.value, constants)
            if text and not (text.startswith(("`", "csmd")) or text.split()[0] in IMPERATIVES)
        ]
    assert not wrong, "\n".join(wrong)
