"""The layers of docs/architecture.md as code: who may import whom, and what may stand where."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import csmd

PACKAGE = Path(csmd.__file__).parent
SOURCE = Path(__file__).resolve().parent.parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_share" not in path.parts)

#: Left to right; a folder may import those to its left and itself.
LAYERS = ["vocabulary", "store", "capture", "distill", "believe", "recall", "dream", "daemon"]
VOCABULARY = {"errors", "model", "config", "text", "terms", "languages", "wire", "pauses", "paths", "__init__"}
RIM = {"cli", "client", "mcp", "__main__"}
STAGES = {"capture", "distill", "believe", "recall", "dream"}
SOFT_CAP, HARD_CAP = 300, 450
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "base"}

#: A package -> the only modules, or folders, that may import it.
ONLY_IN = {
    "zmq": {"daemon.server", "client"},
    "watchdog": {"daemon.watch"},
    "fastembed": {"store.embed_worker"},
    "onnxruntime": {"store.embed_worker"},
    "numpy": {"store.embed_worker"},
    "tiktoken": {"store.embed_worker"},
    "huggingface_hub": {"store.embed_worker"},
    "apsw": {
        "store.pages",
        "store.sqlite",
        "store.core",
        "store.migrate",
        "store.backup",
        "store.salvage",
        "store.rebuild",
    },
    "sqlite_vec": {"store.sqlite"},
    "psycopg": {"store.postgres"},
    "json": {"wire", "client", "daemon.server", "mcp", "capture.hosts.claude"},
    "yaml": {"config", "store.files", "store.memory_files", "capture.matter", "cli.config_text"},
    "frontmatter": {"capture.matter"},
    "filelock": {"daemon.run"},
    "psutil": {"daemon.machine", "daemon.usage", "cli.service"},
    "click": {"cli"},
    "rich": {"cli"},
    "textual": {"cli.top_screen"},
    "platformdirs": {"config"},
    "mcp": {"mcp"},
    "mcp_types": {"mcp"},
    "anyio": {"mcp"},
}
#: Only these may be imported inside functions alone: they cost tens to hundreds of milliseconds.
LAZY_ONLY = {
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
}
CLOCK = {"time", "threading", "subprocess", "multiprocessing", "sched", "signal"}
CLOCK_ALLOWED = {
    "daemon", "store.core", "store.embed", "store.embed_worker", "store.sqlite",
    "cli", "client",
}  # fmt: skip


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def layer_of(module: str) -> str:
    head = module.split(".")[0]
    return "vocabulary" if head in VOCABULARY else head


def imports(path: Path) -> list[tuple[str, bool]]:
    """(imported module, whether at the top of the file), TYPE_CHECKING blocks left out."""
    tree = ast.parse(path.read_text())
    found: list[tuple[str, bool]] = []

    def walk(node: ast.AST, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                continue
            if isinstance(child, ast.Import):
                found.extend((alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                module = child.module or ""
                if module == "csmd" or module.startswith("csmd."):
                    found.extend((f"{module}.{alias.name}", top) for alias in child.names)
                else:
                    found.append((module, top))
            walk(child, top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    walk(tree, True)
    return found


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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_stands_to_its_left(path: Path) -> None:
    module = name_of(path)
    layer = layer_of(module)
    for imported, _ in imports(path):
        target = own(imported)
        if target is None:
            continue
        other = layer_of(target)
        if layer in RIM:
            assert other in RIM | {"vocabulary"}, f"{module} is the rim and knows the socket only, not {target}"
        else:
            assert other not in RIM, f"{module} must not know the rim ({target})"
            assert LAYERS.index(other) <= LAYERS.index(layer), f"{module} imports {target}, which stands to its right"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_in_a_stage_folder_only_the_stage_knows_the_store(path: Path) -> None:
    parts = name_of(path).split(".")
    if parts[0] not in STAGES or parts[-1].startswith("stage"):
        return
    for imported, _ in imports(path):
        target = own(imported) or ""
        assert layer_of(target or "errors") != "store", f"{'.'.join(parts)} is pure but imports {imported}"
        assert ".stage" not in f".{target}", f"{'.'.join(parts)} is pure but imports a stage"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_package_is_imported_only_where_it_belongs(path: Path) -> None:
    module = name_of(path)
    for imported, top in imports(path):
        head = imported.split(".")[0]
        if head in ONLY_IN:
            assert {module, module.split(".")[0]} & ONLY_IN[head], (
                f"{module} imports {head}; only {sorted(ONLY_IN[head])} may"
            )
        if head in LAZY_ONLY:
            assert not top, f"{module} imports {head} at its top; import it inside the function that needs it"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_clock_threads_and_processes_stay_in_the_daemon(path: Path) -> None:
    module = name_of(path)
    allowed = any(module == name or module.startswith(name + ".") for name in CLOCK_ALLOWED)
    for imported, _ in imports(path):
        assert allowed or imported.split(".")[0] not in CLOCK, f"{module} imports {imported}"
    if not allowed:
        assert not re.search(r"\b(?:datetime\.now|date\.today|datetime\.utcnow)\(", path.read_text()), module


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_config_reads_the_environment(path: Path) -> None:
    if name_of(path) != "config":
        assert not re.search(r"\bos\.(?:environ|getenv|putenv)\b", path.read_text())


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_sql_stands_only_in_the_store(path: Path) -> None:
    if layer_of(name_of(path)) == "store":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not re.match(r"\s*(?:select|insert into|update|delete from|create table|with \w+ as)\s+\w+.*\b(?:from|set|values)\b",
                                node.value, re.IGNORECASE | re.DOTALL), f"{name_of(path)}: {node.value[:60]!r}"  # fmt: skip


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_opens_with_its_rule_and_keeps_its_size(path: Path) -> None:
    text = path.read_text()
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{name_of(path)} has no docstring"
    assert text.count("\n") <= HARD_CAP, f"{name_of(path)} has {text.count(chr(10))} lines"
    assert not set(name_of(path).split(".")) & FORBIDDEN_NAMES


def test_few_modules_pass_the_soft_cap() -> None:
    long = [name_of(path) for path in MODULES if path.read_text().count("\n") > SOFT_CAP]
    assert len(long) <= len(MODULES) // 25, long


def test_the_rules_catch_a_violation(tmp_path: Path) -> None:
    """A check that cannot fail is none: the same functions see planted imports."""
    planted = tmp_path / "planted.py"
    planted.write_text("import zmq\ndef f():\n    import time\n    from csmd.store import core\n")
    assert imports(planted) == [("zmq", True), ("time", False), ("csmd.store.core", False)]
    assert own("csmd.store.nothing") == "store"
    assert own("csmd.text.cut") == "text"
    assert own("zmq") is None


@pytest.mark.parametrize("name", ["csmd_hook.py", "csmd_spool.py", "csmd_line.py"])
def test_hooks_know_nothing_but_the_standard_library(name: str) -> None:
    script = PACKAGE / "_share" / "hooks" / name
    script = script if script.exists() else SOURCE / "hooks" / name
    heads = {imported.split(".")[0] for imported, _ in imports(script)}
    assert heads <= {"sys", "posix", "_socket", "time", "csmd_spool", "marshal", "os"}, heads


def test_the_hot_path_of_the_hook_is_at_most_60_lines() -> None:
    script = SOURCE / "hooks" / "csmd_hook.py"
    lines = [line for line in script.read_text().splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= 60
