"""A shell line as programs, purposes and milestones."""

from __future__ import annotations

import re

from csmd import data

#: Longer shell lines are programs of their own; what stands further back is not looked at.
MOST_CHARACTERS = 8_000
MOST_COMMANDS = 40
#: Words of one command that are looked at: a chain of wrappers is taken off one after the other.
MOST_WORDS = 100

_PROGRAMS = data.word_table("program_words.txt")
#: What looks and does nothing: that it found nothing is no error worth keeping.
READERS = _PROGRAMS["reader"]
#: Programs whose failure counts even where a pipe hides their exit code, and what they print has to be read for it.
RUNNERS = _PROGRAMS["runner"]
#: Of these a run that goes well says something of the files it was run on: it can show that a failure was mended.
CHECKS = RUNNERS - _PROGRAMS["no_check"]
#: Arguments that mean everything.
_ALL = frozenset({".", "./...", "...", "./", "*", "Q"})

#: A text that is handed to a program, to its end or to that of what was kept of the line.
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?.*?(?:^\s*\1\b|\Z)", re.DOTALL | re.MULTILINE)
#: What stands in quotes.
QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_SPLIT = re.compile(r"\|\||&&|;|\n|(?<![>&\d])&(?![>&\d])")
_PIPE = re.compile(r"\|&?")
_REDIRECT = re.compile(r"\d?(?:>>?|<)\s{0,4}(?:&\d|[^\s;&|]{1,300})|&>>?\s{0,4}\S{1,300}")
_ASSIGNMENT = re.compile(r"\w{1,80}\+?=\S*")
_PLAIN = re.compile(r"[a-z][a-z0-9]*(?:[-:_][a-z0-9]+)*")
_VERSIONED = re.compile(r"(python|pip|node|ruby|php|clang|gcc|g\+\+)[\d.-]+")
_UNSTEADY = re.compile(r"[0-9a-f]{7,}|\d+")


def commands(line: str) -> list[str]:
    """The commands of a shell line in their order, each as program and subcommand; [] for none.

    Of a pipe only its first program counts: what follows shapes what it prints.
    """
    plain = QUOTED.sub(" Q ", HEREDOC.sub(" ", line[:MOST_CHARACTERS])).replace("\\\n", " ")
    plain = _REDIRECT.sub(" ", plain)
    commands_found: list[str] = []
    for part in _SPLIT.split(plain)[:MOST_COMMANDS]:
        command = _command(_PIPE.split(part)[0].strip(" \t(){}!").split()[:MOST_WORDS])
        if command:
            commands_found.append(command)
    return commands_found


def scope(line: str, command: str) -> frozenset[str]:
    """The arguments of a command in a shell line, without options but with their values: `./till -run TestX`."""
    plain = _REDIRECT.sub(" ", HEREDOC.sub(" ", line[:MOST_CHARACTERS]))
    for part in _SPLIT.split(plain)[:MOST_COMMANDS]:
        words = _PIPE.split(part)[0].strip(" \t(){}!").split()[:MOST_WORDS]
        if _command(words) == command:
            skipped = set(command.split(" "))
            return frozenset(word for word in words if not word.startswith("-") and word not in skipped | _ALL
                             and word.rpartition("/")[2] not in skipped and not _ASSIGNMENT.fullmatch(word))  # fmt: skip
    return frozenset()


def shows_mended(command: str, *, same: bool) -> bool:
    """Whether a command's success shows that its failure was fixed.

    Of a check or a script it does; of another program (`python app.py`, `alembic upgrade head`) when it is run just as it
    was when it failed (`same`), unless what it says hangs on others: a network's, a repository's.
    """
    name = program(command)
    if command not in ("go run", "cargo run") and (name in CHECKS or "." in name):
        return True
    return same and name not in READERS and name not in _PROGRAMS["elsewhere"]


def program(command: str) -> str:
    """The program of a command from `commands`."""
    return command.split(" ", 1)[0]


def is_hidden(line: str) -> bool:
    """Whether a shell line's exit code may be another program's: it has a pipe, or more commands."""
    plain = QUOTED.sub(" Q ", line[:MOST_CHARACTERS])
    return any(mark in plain for mark in ("|", ";", "\n"))


def _command(words: list[str]) -> str:
    while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in ("then", "do", "else", "if", "while", "!")):
        words = words[1:]
    if not words:
        return ""
    name = _VERSIONED.sub(r"\1", words[0].rstrip("/").rpartition("/")[2])
    if not name or (name[0] in "-#$`Q" and not name[1:2].isalnum()):
        return ""
    rest = words[1:]
    if name in _PROGRAMS["wrapper"]:
        return _command(_behind_options(rest))
    if rest and f"{name}/{rest[0]}" in _PROGRAMS["wraps"]:
        return _command(_behind_options(rest[1:]))
    if name == "python":
        return _python(rest)
    if name in ("bash", "sh", "zsh", "node", "ruby", "php", "source", "."):
        script = next((word for word in rest if not word.startswith("-") and word != "Q"), "")
        own = script.rpartition("/")[2]
        return _steady(f"{name} {own}" if name not in ("bash", "sh", "zsh", ".") and own else own or name)
    count = 0 if name in _PROGRAMS["alone"] or name in READERS else 2 if name in _PROGRAMS["two"] else 1
    parts = [name]
    of_option = False  # what is no plain word behind an option is its value: `git -C /a status`
    for word in rest:
        if len(parts) > count:
            break
        plain = _PLAIN.fullmatch(word) is not None
        if word.startswith("-") or (of_option and not plain):
            of_option = word.startswith("-")
            continue
        if not plain:
            break
        of_option = False
        parts.append(word)
        count += f"{name}/{word}" in _PROGRAMS["runs"]
    return _steady(" ".join(parts))


def _python(rest: list[str]) -> str:
    for place, word in enumerate(rest):
        if word == "-m" and place + 1 < len(rest):
            module = rest[place + 1]
            return _command([module, *rest[place + 2 :]]) if _PLAIN.fullmatch(module) else "python"
        if word == "-c" or word == "-":
            return "python -c"
        if not word.startswith("-"):
            return "python" if word == "Q" else _steady(f"python {word.rpartition('/')[2]}")
    return "python"


def _behind_options(words: list[str]) -> list[str]:
    """Drops a wrapper's options, numbers and assignments."""
    while words and (words[0].startswith("-") or words[0][:1].isdigit() or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
    return words


def _steady(command: str) -> str:
    """Masks numbers and hashes in a command's arguments."""
    head, *rest = command.split(" ")
    return " ".join([head, *(_UNSTEADY.sub("#", word) for word in rest)])[:80]


#: Most commands that are taken from one line, and characters of the line that are looked at.
MOST_KEPT, LINE_CHARACTERS = 6, 2_000
COMMAND_CHARACTERS = 48

#: What runs tasks by name.
_RUNNER = (
    r"(?:mise run|mise r|npm run|npm|pnpm run|pnpm|yarn run|yarn|bun run|bun|make|just|task|nox -s|tox -e|hatch run|rake|cargo|go"
    r"|deno task|deno|gradle|\./gradlew|mvn|\./mvnw|dotnet|mix|bazel|swift|composer|composer run|invoke|poe|pdm run|sbt)"
)
_WITHIN = r"(?:uv run |poetry run |pipenv run |npx |bunx |pnpm exec |python3? -m |bundle exec |pdm run |hatch run )?"

#: Purpose -> the commands that serve it, as they begin; the first that matches.
PURPOSES: dict[str, re.Pattern[str]] = {
    purpose: re.compile(rf"(?:{_RUNNER} (?:{names})[\w:-]*|{_WITHIN}(?:{tools}))(?![\w-])")
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
    "release": re.compile(
        r"git tag (?:-[asm] )?.*\bv?\d+\.\d|gh release create|npm publish|pnpm publish|yarn publish|cargo publish"
        r"|twine upload|uv publish|poetry publish|goreleaser release"
    ),
    "pull request": re.compile(r"gh pr create|glab mr create"),
    "commit": re.compile(r"git (?:-C \S+ )?commit\b"),
    "push": re.compile(r"git (?:-C \S+ )?push\b"),
}
#: Files whose change is a step of its own, by their names.
NOTABLE = re.compile(
    r"(?:^|/)((?:CHANGELOG|CHANGES|HISTORY|RELEASES|NEWS)(?:\.\w+)?|package\.json|pyproject\.toml|Cargo\.toml|pom\.xml|build\.gradle"
    r"|VERSION|version\.(?:py|go|ts|js|rb)|__version__\.py|README(?:\.\w+)?|CLAUDE\.md|AGENTS\.md)$",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"&&|\|\||;|\n|(?<!\\)\|")
_BEFORE = re.compile(r"^(?:\s*(?:[A-Za-z_]\w*=\S*|timeout\s+\S+|time|sudo|env|nice|command|then|do|else|if|\(|\{)\s+)*")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def significant_commands(line: str) -> list[str]:
    """The commands of a shell line with a purpose or a milestone, without arguments, each once in order."""
    plain = QUOTED.sub(" ", HEREDOC.sub(" ", line[:LINE_CHARACTERS]))
    names: dict[str, None] = {}
    for piece in _BETWEEN.split(plain):
        words = _BEFORE.sub("", piece).split()
        bare = " ".join(words)
        for purpose in _ASKED_FIRST:
            if match := PURPOSES[purpose].match(bare):
                names[match.group()[:COMMAND_CHARACTERS]] = None
                break
        else:
            if (name := _milestone(bare, line)) is not None:
                names[name] = None
    return list(names)[:MOST_KEPT]


def _milestone(bare: str, line: str) -> str | None:
    if bare.startswith("git tag"):  # its name may be quoted; a list or a deletion is no release
        return "git tag" if MILESTONES["release"].search(line) and not re.match(r"git tag (?:-l|-d|--)", bare) else None
    for pattern in MILESTONES.values():
        if match := pattern.match(bare):
            return " ".join(re.sub(r"-C \S+ ", "", match.group()).split()[:3])
    return None


def purpose(command: str) -> str:
    """The purpose of a command from `significant_commands`, "" for none."""
    return next((name for name in _ASKED_FIRST if PURPOSES[name].fullmatch(command)), "")


def milestone(command: str) -> str:
    """The milestone of a command from `significant_commands`, "" for none."""
    if command == "git tag":
        return "release"
    return next((name for name, pattern in MILESTONES.items() if pattern.fullmatch(command)), "")


def text_parameter(call: str, *names: str) -> str:
    """The first of some text parameters in a stored tool call (JSON, perhaps truncated), "" for none."""
    match = re.search(rf'"(?:{"|".join(names)})":"((?:[^"\\]|\\.)*)', call)
    return _ESCAPED.sub(_unescaped, match[1]) if match else ""


def _unescaped(escape: re.Match[str]) -> str:
    mark = escape[1]
    return chr(int(mark[1:], 16)) if len(mark) == 5 else _ESCAPES.get(mark, mark)


def command_of(call: str) -> str:
    """The shell line of a tool call."""
    return text_parameter(call, "command")


def file_of(call: str) -> str:
    """The file that a tool call names."""
    return text_parameter(call, "file_path", "notebook_path")


def notable(path: str) -> str:
    """The name of a file whose change counts as a step (a changelog, a version file), "" for any other."""
    match = NOTABLE.search(path)
    return match.group(1) if match else ""
