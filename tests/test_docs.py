"""The documents say what is so: commands, links, tools, tables and figures in them are held against the code.

What a document lists is compared both ways: nothing undocumented, nothing documented that is not there.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import csmd
from csmd import client, wire
from csmd.cli.main import main as command_line
from csmd.daemon import alarms, injection, run, server
from csmd.hosts import adapter
from csmd.hosts.claude import registration
from csmd.installer import plan, service
from csmd.store import schema_migrations, text_columns

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [README, ROOT / "AGENTS.md", ROOT / "CONTRIBUTING.md", *DOCS]
#: The index of the example names pages that are left out there.
LINKED = [path for path in DOCUMENTS if path != ROOT / "docs/example/MEMORY.md"]
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
#: In two halves, so that this file does not hold what it forbids.
FORBIDDEN = re.compile(
    "|".join(
        re.escape(head + rest)
        for head, rest in (
            ("/wo", "rk/"), ("/ro", "ot/"), ("pypi", ".org"), ("python", "hosted"), ("registry", ".npm"), ("npm", "js.com"),
            ("npm", "mirror"), ("deb.", "debian"), ("cdn-", "lfs"), ("goproxy", "."), ("proxy.", "golang"),
        )
    )
)  # fmt: skip


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> list[str]:
    """The content of every fenced `sh` block."""
    return [block.strip() for block in re.findall(r"^```sh\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)]


def table(path: Path, heading: str, *, columns: int) -> list[list[str]]:
    """The rows of the first table with that first column heading, cells stripped."""
    lines = path.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        assert len(cells) == columns, line
        rows.append(cells)
    assert rows
    return rows


def anchors(path: Path) -> set[str]:
    """What a link into a document may point at."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- README


def test_the_readme_has_the_two_commands_in_their_shape() -> None:
    install_block, develop_block = blocks(README)
    for command in (install_block, develop_block):
        assert "\n" not in command
        assert command.startswith("python3 -m venv ")
    assert "bin/pip install . && " in install_block and install_block.endswith("/csmd install")
    assert "pip install '.[test]' && " in develop_block and develop_block.endswith("/pytest")
    text = README.read_text()
    assert text.index("## Install") < text.index(install_block) < text.index("## Develop") < text.index(develop_block)


def test_the_ci_takes_both_commands_from_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    done = subprocess.run([str(script), "commands"], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.splitlines() == blocks(README)
    assert not any(block in script.read_text() for block in blocks(README))


# --- links and commands


@pytest.mark.parametrize("path", LINKED, ids=name_of)
def test_a_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if "://" in target:
            continue
        place, _, anchor = target.partition("#")
        other = (path.parent / place).resolve() if place else path
        assert other.exists(), target
        assert not anchor or anchor in anchors(other), target


def commands() -> dict[str, click.Command]:
    """Every command that does something, by its words: `model fetch`."""
    by_name: dict[str, click.Command] = {}

    def walk(group: click.Group, words: tuple[str, ...]) -> None:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None, name
            if isinstance(command, click.Group):
                walk(command, (*words, name))
            else:
                by_name[" ".join((*words, name))] = command

    walk(command_line, ())
    return by_name


def mentions(path: Path) -> Iterator[list[str]]:
    """The words of every `csmd ...` in a document, in code and in blocks, after `csmd`."""
    text = path.read_text()
    pieces = re.findall(r"`([^`\n]+)`", text) + [line for block in blocks(path) for line in block.splitlines()]
    for piece in pieces:
        for part in re.split(r"&&|\|\|", piece):
            words = shlex.split(part.replace("'", "").replace('"', ""))
            at = next((number for number, word in enumerate(words) if word.rpartition("/")[2] == "csmd"), None)
            if at is not None and words[at + 1 :] and re.fullmatch(r"[a-z]+", words[at + 1]) and at + 1 < len(words):
                yield words[at + 1 :]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_command_in_a_document_exists_with_its_options(path: Path) -> None:
    by_name = commands()
    for words in mentions(path):
        name = " ".join(words[:2]) if " ".join(words[:2]) in by_name else words[0]
        assert name in by_name, f"csmd {' '.join(words)}"
        options = {option for parameter in by_name[name].params for option in parameter.opts}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, f"csmd {' '.join(words)}"


def test_every_command_says_what_it_does() -> None:
    assert [name for name, command in commands().items() if not command.help] == []


# --- tools, configuration, events, tables


@pytest.mark.invariant("The documents list what the code has")
def test_what_is_generated_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_row_is_found_in_what_is_generated(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "csmd", tmp_path / "csmd", symlinks=True)
    tools = tmp_path / "docs" / "tools.md"
    tools.write_text(tools.read_text().replace("| `csmd status` |", "| `csmd state` |"))
    command = [sys.executable, str(tmp_path / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "tools.md" in done.stdout


def test_every_event_and_script_is_documented() -> None:
    hooks = ROOT / "docs" / "hooks.md"
    assert [row[0].strip("`") for row in table(hooks, "event", columns=3)] == list(registration.TIMEOUTS)
    versions = {row[0].strip("`"): row[1] for row in table(hooks, "newer event", columns=3)}
    assert versions == registration.FIRST_VERSIONS and registration.FILES.tolerant_since in hooks.read_text()
    scripts = {row[0].strip("`"): row[1].strip("`") for row in table(hooks, "script", columns=2)}
    assert set(scripts) == set(plan.HOOK_SCRIPTS)
    for name, event in scripts.items():
        assert f"\nevent={event}\n" in (ROOT / "hooks" / name).read_text()


def test_every_alarm_is_documented_with_what_to_do() -> None:
    rows = table(ROOT / "docs" / "operations.md", "alarm", columns=3)
    assert [row[:2] for row in rows] == [[what, do] for what, do in alarms.ALARMS.values()]


def test_everything_that_a_hook_tells_the_user_is_documented() -> None:
    rows = table(ROOT / "docs" / "hooks.md", "answer", columns=2)
    (news,) = [
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "hooks" / "csmd_spool.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NOTICES"
    ]
    assert [row[1] for row in rows] == list(news.values())
    assert [row[0].strip("`") for row in rows[3:]] == [answer.decode() for answer in news][3:]


def test_every_status_of_a_reply_is_documented() -> None:
    rows = table(ROOT / "docs" / "protocol.md", "status", columns=5)
    assert [row[0].strip("`") for row in rows] == list(wire.STATUSES)


def hook_constants() -> dict[str, float]:
    """The numbers that the hook's scripts set at their top, by name."""
    named = {}
    for name in ("csmd_hook.py", "csmd_spool.py"):
        for node in ast.parse((ROOT / "hooks" / name).read_text()).body:
            if isinstance(node, ast.Assign):
                target, value = node.targets[0], node.value
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                values = value.elts if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [value]
                pairs = zip(map(ast.unparse, names), values, strict=True)
                named.update({key: item.value for key, item in pairs if isinstance(item, ast.Constant)})
    return named


def test_the_deadlines_in_the_documents_are_those_of_the_code() -> None:
    hook = hook_constants()
    documented = {
        "protocol.md": [
            f"| {hook['INJECTING_PATIENCE_S']:g} s from the hook's start |",
            f"| {hook['PATIENCE_S']:g} s from the hook's start |",
            f"| hook, for its own input | {hook['INPUT_PATIENCE_S']:g} s |",
            f"younger than {hook['HUNG_FOR_S']:g} s",
            f"| command line, one call | {client.PATIENCE_S:g} s |",
            f"| `csmd start` | {service.START_PATIENCE_S:g} s for the first answer |",
            f"| `csmd stop` | {service.STOP_PATIENCE_S:g} s for the process to be gone |",
            f"keeps {server.SEND_MARGIN_S * 1000:g} ms",
            f"more than {injection.VECTOR_TIMEOUT_S * 1000:g} ms on a prompt's vector",
            f"longer than {run.MAX_SOCKET_PATH_BYTES} bytes",
            f"at most {wire.MAX_NAME_BYTES} bytes each",
            f"at most {wire.MAX_BODY_BYTES >> 20} MiB",
        ],
        "hooks.md": [
            f"is {hook['INJECTING_PATIENCE_S']:g} s for SessionStart and UserPromptSubmit",
            f"{hook['PATIENCE_S']:g} s for the others",
            f"not ended after {hook['INPUT_PATIENCE_S']:g} s",
            f"within the last {hook['HUNG_FOR_S']:g} s",
            f"at most {adapter.ANSWER_LIMIT_UNITS:,} UTF-16 units",
            f"{registration.BASE_TIMEOUTS['SessionStart']} s for SessionStart and {registration.BASE_TIMEOUTS['Stop']} s for the others",
        ],
    }
    for name, phrases in documented.items():
        text = " ".join((ROOT / "docs" / name).read_text().split())
        assert [phrase for phrase in phrases if phrase not in text] == [], name


@pytest.mark.invariant("The documents list what the code has")
def test_every_table_of_the_store_is_documented_with_what_holds_text() -> None:
    made = {"migrations"}
    for _, sql in schema_migrations.list_migrations():
        made |= set(re.findall(r"^create table (\w+)", sql, re.MULTILINE))
        made -= set(re.findall(r"^drop table (\w+)", sql, re.MULTILINE))
    rows = table(ROOT / "docs" / "storage.md", "table", columns=3)
    listed = {name: text for names, _, text in rows for name in re.findall(r"`(\w+)`", names)}
    assert set(listed) == made
    text = {(name, column) for name, columns in listed.items() for column in re.findall(r"`(\w+)`", columns)}
    assert text == text_columns.TEXT_COLUMNS


def test_the_changelog_has_this_version() -> None:
    assert f"## [{csmd.__version__}]" in (ROOT / "docs" / "changelog.md").read_text()


# --- invariants

INVARIANT = re.compile(r"@pytest\.mark\.invariant\(\s*(['\"])(.+?)\1\s*\)")


@pytest.mark.invariant("The documents list what the code has")
def test_every_known_invariant_is_held_by_a_test() -> None:
    held = {rule for path in (ROOT / "tests").rglob("test_*.py") for _, rule in INVARIANT.findall(path.read_text())}
    listed = (ROOT / "tests" / "invariants.md").read_text()
    listed_names = set(re.findall(r"^- (.+?)\.$", listed, re.MULTILINE))
    assert listed_names == held, "write the list anew: pytest --invariants > tests/invariants.md"


@functools.cache
def defined(path: Path) -> set[str]:
    """The functions of a module of tests; read, as to parse them all takes ten seconds."""
    return set(re.findall(r"^\s*def (\w+)\(", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_test_that_a_document_names_exists(path: Path) -> None:
    for file, name in NAMED_TEST.findall(path.read_text()):
        assert (ROOT / file).is_file(), file
        assert name in defined(ROOT / file), f"{file}::{name}"


# --- the features of the seeds

FEATURE = re.compile(r"^\| (?!feature |---)(.+) \| (.+) \| (.+) \|$", re.MULTILINE)


def wrong_features(text: str) -> list[str]:
    """The rows of a page of features whose module or test is not there, or that give neither a test nor a reason."""
    wrong = []
    for feature, module, held_by in FEATURE.findall(text):
        file, _, name = held_by.strip("`").partition("::")
        path = ROOT / "tests" / file
        is_held = bool(name) and path.is_file() and name in defined(path)
        has_reason = re.fullmatch(r"none: \w.{20,}", held_by) is not None
        if not (ROOT / "csmd" / module.strip("`")).exists() or not (is_held or has_reason):
            wrong.append(feature)
    return wrong


@pytest.mark.invariant("Every feature of the seeds has a module and a test, or a reason why not")
def test_every_feature_of_the_seeds_has_its_module_and_its_test_or_a_reason() -> None:
    text = (ROOT / "docs" / "seeds.md").read_text()
    assert wrong_features(text) == []
    assert len(FEATURE.findall(text)) > 200
    rows = [line for line in text.splitlines() if line.startswith("|")]
    headings = sum(line.startswith(("| feature |", "| --- |")) for line in rows)
    assert len(rows) - headings == len(FEATURE.findall(text)), "a row that is none is read as no feature"


def test_a_row_without_its_test_its_module_or_its_reason_is_found() -> None:
    here = "`test_docs.py::test_a_row_without_its_test_its_module_or_its_reason_is_found`"
    assert wrong_features(f"| good | `paths.py` | {here} |") == []
    assert wrong_features(f"| bad | `nowhere.py` | {here} |") == ["bad"]
    for held_by in (
        "`test_docs.py::test_nothing`",
        "`test_nowhere.py::test_nothing`",
        "`test_docs.py`",
        "none:",
        "none: later",
        "",
    ):
        assert wrong_features(f"| bad | `paths.py` | {held_by or '-'} |") == ["bad"], held_by


# --- what must not stand anywhere


def tracked() -> list[Path]:
    """Every file of the repository that is, or could be, committed; without git everything but what git would ignore."""
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 0:
        return sorted(ROOT / name for name in done.stdout.decode().split("\0") if name and (ROOT / name).is_file())
    skipped = (".git", ".venv", "build", "dist", "__pycache__")
    return sorted(path for path in ROOT.rglob("*") if path.is_file() and not set(skipped) & set(path.parts))


def test_no_file_names_a_registry_host_or_a_path_of_one_machine() -> None:
    files = tracked()
    assert README in files
    for path in files:
        forbidden = FORBIDDEN.search(path.read_bytes().decode("utf-8", "replace"))
        assert forbidden is None, f"{name_of(path)}: {forbidden and forbidden.group()}"


def test_the_forbidden_words_are_found_where_they_stand() -> None:
    """A check that cannot fail is none."""
    for text in ("https://" + "pypi" + ".org/simple", "/ro" + "ot/.cache", "cd /wo" + "rk/main"):
        assert FORBIDDEN.search(text), text
