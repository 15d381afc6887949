"""What a shell line runs: its commands without their arguments, the purpose of each, and the milestones among them.

`cd x && mise run test 2>&1 | tail -20` runs `mise run test`, whose purpose is `test`. What only looks (ls, git status,
grep) has none: everybody runs it everywhere. Policy is in the tables.
"""

from __future__ import annotations

import re

from csmd.distill import shell
from csmd.patterns import at_first_use

#: Most commands that are taken from one line, and characters of the line that are looked at.
MOST_COMMANDS, LINE_CHARACTERS = 6, 2_000
COMMAND_CHARACTERS = 48

#: What runs tasks by name.
_RUNNER = (
    r"(?:mise run|mise r|npm run|npm|pnpm run|pnpm|yarn run|yarn|bun run|bun|make|just|task|nox -s|tox -e|hatch run|rake|cargo|go"
    r"|deno task|deno|gradle|\./gradlew|mvn|\./mvnw|dotnet|mix|bazel|swift|composer|composer run|invoke|poe|pdm run|sbt)"
)
_WITHIN = r"(?:uv run |poetry run |pipenv run |npx |bunx |pnpm exec |python3? -m |bundle exec |pdm run |hatch run )?"

#: Purpose -> the commands that serve it, as they begin; the first that matches.
PURPOSES: dict[str, re.Pattern[str]] = {
    purpose: at_first_use(rf"(?:{_RUNNER} (?:{names})[\w:-]*|{_WITHIN}(?:{tools}))(?![\w-])")
    for purpose, names, tools in (
        ("test", r"tests?|check-tests|verify", r"pytest|unittest|jest|vitest|mocha|rspec|phpunit|ctest|playwright test|nextest"),
        ("lint", r"lint|clippy|vet", r"ruff check|ruff|eslint|golangci-lint(?: run)?|flake8|pylint|rubocop|shellcheck|biome"),
        ("format", r"fmt|format", r"ruff format|black|prettier|gofmt|rustfmt|isort|goimports"),
        ("check types", r"typecheck|type-check|types|tsc", r"mypy|pyright|tsc"),
        ("build", r"(?<!go )(?<!cargo )(?<!dotnet )(?<!swift )(?:build|compile)", r"vite build|webpack|cmake --build|docker build"),
    )
}  # fmt: skip
#: `ruff format` begins like `ruff`: the longer one is asked first.
_ASKED_FIRST = ("format", "test", "check types", "lint", "build")

#: Milestone -> the commands that reach it.
MILESTONES: dict[str, re.Pattern[str]] = {
    "release": at_first_use(
        r"git tag (?:-[asm] )?.*\bv?\d+\.\d|gh release create|npm publish|pnpm publish|yarn publish|cargo publish"
        r"|twine upload|uv publish|poetry publish|goreleaser release"
    ),
    "pull request": at_first_use(r"gh pr create|glab mr create"),
    "commit": at_first_use(r"git (?:-C \S+ )?commit\b"),
    "push": at_first_use(r"git (?:-C \S+ )?push\b"),
}
#: Files whose change is a step of its own, by their names.
NOTABLE = at_first_use(
    r"(?:^|/)((?:CHANGELOG|CHANGES|HISTORY|RELEASES|NEWS)(?:\.\w+)?|package\.json|pyproject\.toml|Cargo\.toml|pom\.xml|build\.gradle"
    r"|VERSION|version\.(?:py|go|ts|js|rb)|__version__\.py|README(?:\.\w+)?|CLAUDE\.md|AGENTS\.md)$",
    re.IGNORECASE,
)
_BETWEEN = at_first_use(r"&&|\|\||;|\n|(?<!\\)\|")
_BEFORE = at_first_use(
    r"^(?:\s*(?:[A-Za-z_]\w*=\S*|timeout\s+\S+|time|sudo|env|nice|command|then|do|else|if|\(|\{)\s+)*"
)
_HEREDOC = at_first_use(r"<<-?\s*['\"]?(\w+)['\"]?.*?(?:^\s*\1\b|\Z)", re.DOTALL | re.MULTILINE)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


def commands(line: str) -> list[str]:
    """The commands of a shell line that have a purpose or reach a milestone, without arguments, each once in order."""
    plain = shell.QUOTED.sub(" ", _HEREDOC.sub(" ", line[:LINE_CHARACTERS]))
    found: dict[str, None] = {}
    for piece in _BETWEEN.split(plain):
        words = _BEFORE.sub("", piece).split()
        bare = " ".join(words)
        for purpose in _ASKED_FIRST:
            if match := PURPOSES[purpose].match(bare):
                found[match.group()[:COMMAND_CHARACTERS]] = None
                break
        else:
            if (name := _milestone(bare, line)) is not None:
                found[name] = None
    return list(found)[:MOST_COMMANDS]


def _milestone(bare: str, line: str) -> str | None:
    if bare.startswith("git tag"):  # its name may be quoted; a list or a deletion is no release
        return "git tag" if MILESTONES["release"].search(line) and not re.match(r"git tag (?:-l|-d|--)", bare) else None
    for pattern in MILESTONES.values():
        if match := pattern.match(bare):
            return " ".join(re.sub(r"-C \S+ ", "", match.group()).split()[:3])
    return None


def purpose(command: str) -> str:
    """The purpose of a command as `commands` gives it, "" for none."""
    return next((name for name in _ASKED_FIRST if PURPOSES[name].fullmatch(command)), "")


def milestone(command: str) -> str:
    """The milestone that a command as `commands` gives it reaches, "" for none."""
    if command == "git tag":
        return "release"
    return next((name for name, pattern in MILESTONES.items() if pattern.fullmatch(command)), "")


def given(call: str, name: str) -> str:
    """The value of one text parameter of a tool call as it is stored (JSON, perhaps trimmed), "" for none."""
    match = re.search(rf'"{re.escape(name)}":"((?:[^"\\]|\\.)*)', call)
    return re.sub(r"\\(.)", lambda one: _ESCAPES.get(one.group(1), " "), match.group(1)) if match else ""


def notable(path: str) -> str:
    """The name of a file whose change is a step of its own (a changelog, a version file), "" for any other."""
    match = NOTABLE.search(path)
    return match.group(1) if match else ""
