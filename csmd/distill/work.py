"""What was done in a conversation, folded from its entries: files, commands with their ends, commits, what is open; pure.

A command is known by what it runs, without the directory it ran in and what its output was piped through, so that one
that failed and one that passed later are the same one. A pipe hides how a check ended: then its output tells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from csmd.capture.hosts import claude_tool_calls
from csmd.distill import shell
from csmd.patterns import at_first_use
from csmd.text import cut, squeeze

LONGEST_COMMAND = 100
#: Characters at the beginning of an output in which a check that failed behind a pipe says so; thrice as many at its end.
HALF = 500


class Entry(NamedTuple):
    """One entry of a conversation as it is stored; `ordinal` is its place."""

    ordinal: int
    uuid: str
    kind: str
    text: str
    at: str
    tool: str
    tool_id: str
    tokens: int


@dataclass(slots=True)
class Ran:
    """A command: how often it ran and failed, how it ended, where it was seen last, the error it ended with."""

    command: str
    uuid: str = ""
    at: int = 0
    runs: int = 0
    failures: int = 0
    passed: bool = True
    error: str = ""
    error_uuid: str = ""

    @property
    def state(self) -> str:
        """passed, mended (it failed before) or failed, by its last run."""
        return "failed" if not self.passed else "mended" if self.failures else "passed"


class Commit(NamedTuple):
    """A commit that was made: its branch, the short hash, its subject."""

    branch: str
    hash: str
    subject: str
    uuid: str
    ordinal: int


@dataclass(slots=True)
class Work:
    """What was done: in the order of first touch; ordinals of 0 stand for never."""

    files: dict[str, list[str]] = field(default_factory=dict)
    """Path -> the uuids of the calls that changed it."""
    read: dict[str, list[str]] = field(default_factory=dict)
    """Path -> the uuids of the calls that read it."""
    ran: dict[str, Ran] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    plans: list[tuple[str, str]] = field(default_factory=list)
    """(plan, uuid) of what was put before the user and not turned down."""
    branches: dict[str, str] = field(default_factory=dict)
    """Branches that were begun here -> uuid."""
    open: list[tuple[str, str]] = field(default_factory=list)
    """(entry, uuid) of the last to-do list that were not done."""
    todo: list[tuple[str, claude_tool_calls.Progress, str]] = field(default_factory=list)
    """(entry, how far it is, uuid) of the whole of it, and of the tasks."""
    todos: int = 0
    calls: int = 0
    rejections: list[str] = field(default_factory=list)
    changed_at: int = 0
    turned_down: list[int] = field(default_factory=list)
    """Where a person turned a change down, as ordinals."""


_HEREDOC = at_first_use(r"<<-?\s*['\"]?(\w+)['\"]?.*?^\1$", re.S | re.M)
_REDIRECTION = at_first_use(r"\s*(?:\d?>{1,2}\s?&?\d?|&>)\s?(?:/dev/\w+|[\w./$~-]+)?|\s\d?>&\d")
#: What stands around what is run, or says nothing about it.
_AROUND = at_first_use(
    r"(?:cd|export|echo|sleep|true|set|source|pushd|popd|printf|mkdir)\b|[A-Z_][A-Z0-9_]*=\S*$|\(?cd\b|#"
)
#: What only looks: that it found nothing is no failure.
_LOOKS = at_first_use(
    r"(?:ls|find|cat|grep|rg|ag|head|tail|wc|test|\[|which|type|sed -n|awk|diff|file|stat|du|pwd|tree|jq|ps|kill|pkill|rm|cp"
    r"|git (?:-\S+ \S+ )?(?:status|log|show|diff|branch|remote|rev-parse|ls-files|blame|grep|config|describe|check-ignore))\b"
)
#: Programs whose runs are kept, beside checks and what failed: what kind of work was done shows by them.
_PROGRAM = at_first_use(
    r"(?:git|gh|glab|docker|podman|kubectl|helm|terraform|ansible\S*|npm|npx|yarn|pnpm|bun|pip3?|uv|poetry|cargo|go|brew|apt(?:-get)?"
    r"|psql|mysql|sqlite3|alembic|prisma|flyway|goose|make|just|mise|mvn|gradlew?|bazel|composer|bundle|rake|mix|dotnet"
    r"|aws|gcloud|az|ssh|systemctl|ffmpeg)\b"
)
_ASSIGNED = at_first_use(r"^(?:(?:sudo|time|env|timeout \d+\w?)\s+|[A-Z_][A-Z0-9_]*=\S*\s+)+")
_COMMIT = at_first_use(r"^\[([^\s\]]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.M)
#: A repository of its own, or another directory than the session's.
_ELSEWHERE = at_first_use(r"\bgit init\b|\bcd ['\"]?(/[^\s;&'\"]*)")
_BRANCH = at_first_use(r"\bgit (?:checkout -[bB]|switch (?:-c|-C|--create)) +['\"]?([\w./-]+)")
#: Commands whose end says whether the work is sound, by what is run; order of the table, first match.
CHECKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("tests", at_first_use(
        r"\b(?:pytest|unittest|tox|nox|go test|cargo (?:test|nextest)|jest|vitest|mocha|rspec|phpunit|ctest|playwright test"
        r"|dotnet test|swift test|gotestsum)\b|\b(?:npm|yarn|pnpm|bun|make|just|mise|task|rake|mvn|gradlew?|bazel|deno|mix)"
        r"\b(?: run| r)?(?: -\S+)* (?:test|check|verify|e2e)[\w:.-]*")),
    ("format", at_first_use(
        r"\b(?:gofmt|goimports|cargo fmt|black|prettier|isort|ruff format|rustfmt|clang-format)\b"
        r"|\b(?:npm|yarn|pnpm|bun|make|just|mise|task)\b(?: run| r)? (?:fmt|format)[\w:.-]*")),
    ("lint", at_first_use(
        r"\b(?:ruff|flake8|pylint|mypy|pyright|eslint|tsc|golangci-lint|go vet|clippy|biome|shellcheck|rubocop|stylelint)\b"
        r"|\b(?:npm|yarn|pnpm|bun|make|just|mise|task)\b(?: run| r)? (?:lint|typecheck|type-check)[\w:.-]*")),
    ("build", at_first_use(
        r"\b(?:go build|go install|cargo build|cargo check|cmake|ninja|gcc|g\+\+|javac|dotnet build|swift build|webpack"
        r"|vite build|next build|docker build|hatch build|python -m build)\b|^make$"
        r"|\b(?:npm|yarn|pnpm|bun|make|just|mise|task|mvn|gradlew?|bazel)\b(?: run| r)? (?:build|compile|package|assemble)[\w:.-]*")),
)  # fmt: skip
#: What a check prints that failed behind a pipe.
_SAYS_FAILED = at_first_use(
    r"^(?:--- FAIL|FAIL\b|FAILED\b|ERROR\b|Error: |E\s{3}|error(?:\[\w+\])?: |make: \*\*\*|npm ERR!|panic: )"
    r"|\bexit (?:status|code) [1-9]|\b[1-9]\d* (?:failed|errors?)\b(?! handling)|\bfailed with exit|task failed", re.M
)  # fmt: skip
_ERROR_LINE = at_first_use(
    r"^.{0,200}?(?:\w*error\b|\bfail(?:ed|ure)?\b|\bpanic\b|\w*exception|undefined|cannot|not found|no such|fatal|denied).{0,200}$",
    re.I | re.M,
)
_VARIES = at_first_use(
    r"0x[0-9a-f]+|\b[0-9a-f]{7,40}\b|\d+(?:\.\d+)*(?:ms|s)?|(?<![\w.])(?:/[\w.@-]+){2,}/|['\"`][^'\"`]{60,}['\"`]", re.I
)


def check_of(command: str) -> str:
    """Which check a command is (tests, format, lint, build); "" for another command."""
    return next((name for name, pattern in CHECKS if pattern.search(command)), "")


def commands(line: str) -> list[str]:
    """The commands that a shell line runs, each as it is known; what only stands around them is left out."""
    kept: list[str] = []
    quotes: list[str] = []

    def hide(found: re.Match[str]) -> str:
        quotes.append(found[0])
        return f"\0{len(quotes) - 1}\0"

    bare = shell.QUOTED.sub(hide, _HEREDOC.sub("<<", line.replace("\\\n", " ")))
    for part in re.split(r"&&|\|\||;|\n", bare):
        piece = _REDIRECTION.sub("", part.partition("|")[0]).strip(" ()&{}")
        piece = _ASSIGNED.sub("", piece)
        if not piece or _AROUND.match(piece) or _LOOKS.match(piece):
            continue
        shown = re.sub(r"\0(\d+)\0", lambda m: quotes[int(m[1])], piece)
        known = cut(squeeze(shown), LONGEST_COMMAND)
        if known not in kept:
            kept.append(known)
    return kept


def is_told(ran: Ran) -> bool:
    """Whether a command says what kind of work was done, or failed."""
    return bool(_PROGRAM.match(ran.command) or check_of(ran.command)) or bool(ran.error and not ran.passed)


def error_of(said: str) -> str:
    """What a failure is recognised by: its first line that tells, without what varies; "" for none."""
    body = said.partition("\n")[2] if said.startswith("Exit code") else said
    found = _ERROR_LINE.search(body[:4000])
    return cut(squeeze(_VARIES.sub("N", found[0])).strip(), 160) if found else ""


def _ends(said: str) -> str:
    """The beginning and the end of an output: a check says there how it went."""
    return said if len(said) <= 4 * HALF else f"{said[:HALF]}\n{said[-3 * HALF :]}"


def fold(entries: Sequence[Entry], *, cwd: str = "") -> Work:
    """What was done in these entries of one conversation, in their order; a commit elsewhere than below `cwd` is none."""
    work = Work()
    results = {entry.tool_id: entry for entry in entries if entry.kind == "tool_result" and entry.tool_id}
    tasks: dict[str, tuple[str, claude_tool_calls.Progress, str]] = {}
    todo: list[tuple[str, claude_tool_calls.Progress, str]] = []
    for entry in entries:
        if entry.kind != "tool_call":
            continue
        work.calls += 1
        done = claude_tool_calls.deed(entry.tool, entry.text)
        answer = results.get(entry.tool_id)
        if answer is None or done is None:
            continue
        how = claude_tool_calls.how_it_ended(answer.text)
        if done.kind == "look":
            if how == "passed":
                work.read.setdefault(done.subject, []).append(entry.uuid)
        elif how == "rejected":
            work.rejections.append(entry.uuid)
            if done.kind == "change":
                work.turned_down.append(answer.ordinal)
        elif done.kind == "run":
            _ran(work, entry, answer, done.subject, failed=how == "failed", cwd=cwd)
        elif how == "passed" and done.kind == "change":
            work.files.setdefault(done.subject, []).append(entry.uuid)
            work.changed_at = answer.ordinal
        elif how == "passed" and done.kind == "todo":
            todo = [(body, progress, entry.uuid) for body, progress in done.items]
        elif how == "passed" and done.kind == "task":
            tasks[claude_tool_calls.task_number(answer.text) or str(len(tasks) + 1)] = (
                done.subject,
                "open",
                entry.uuid,
            )
        elif how == "passed" and done.kind == "task_state" and done.subject in tasks:
            body, was, uuid = tasks[done.subject]
            tasks[done.subject] = (body, done.items[0][1] or was, uuid)
        elif how == "passed" and done.kind == "plan":
            work.plans.append((done.subject, entry.uuid))
    work.todo = [*todo, *tasks.values()]
    work.todos = len(work.todo)
    work.open = [(body, uuid) for body, progress, uuid in work.todo if progress != "done"]
    return work


def _ran(work: Work, entry: Entry, answer: Entry, line: str, *, failed: bool, cwd: str) -> None:
    known = commands(line)
    piped = "|" in line or "; " in line
    for command in known:
        ran = work.ran.setdefault(command, Ran(command))
        # Of a row joined by && nobody says which one failed: the last is the likeliest.
        blamed = failed and command == known[-1]
        bad = blamed or (piped and bool(check_of(command)) and bool(_SAYS_FAILED.search(_ends(answer.text))))
        ran.runs += 1
        ran.failures += bad
        ran.passed, ran.uuid, ran.at = not bad, entry.uuid, answer.ordinal
        if bad:
            ran.error, ran.error_uuid = error_of(answer.text), answer.uuid
    gone = _ELSEWHERE.search(line)
    if not failed and "git " in line and not (gone and not (gone[1] or "init").startswith(cwd or "/")):
        for made in _COMMIT.finditer(answer.text):
            work.commits.append(Commit(made[1], made[2], squeeze(made[3]), entry.uuid, answer.ordinal))
        for begun in _BRANCH.finditer(line):
            work.branches.setdefault(begun[1], entry.uuid)
