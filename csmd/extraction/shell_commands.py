"""A shell line as programs, purposes and milestones."""

from __future__ import annotations

import re

from csmd import data

#: Longer shell lines are programs of their own; only their beginning is read.
MAX_CHARACTERS = 8_000
MAX_COMMANDS = 40
#: Words of one command that are looked at: a chain of wrappers is taken off one after the other.
MAX_WORDS = 100

_PROGRAMS = data.word_table("program_words.txt")
#: Programs that only look: finding nothing is not an error worth keeping.
READERS = _PROGRAMS["reader"]
#: Programs whose failure counts even where a pipe hides their exit code, and what they print has to be read for it.
RUNNERS = _PROGRAMS["runner"]
#: Of these a run that goes well says something of the files it was run on: it can show that a failure was mended.
CHECKS = RUNNERS - _PROGRAMS["no_check"]
#: Arguments that mean everything.
_ALL = frozenset({".", "./...", "...", "./", "*", "Q"})

#: A text that is handed to a program, to its end or to that of what was kept of the line.
HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?.*?(?:^\s*\1\b|\Z)", re.DOTALL | re.MULTILINE)
#: Text in quotes.
QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_SPLIT = re.compile(r"\|\||&&|;|\n|(?<![>&\d])&(?![>&\d])")
_PIPE = re.compile(r"\|&?")
_REDIRECT = re.compile(r"\d?(?:>>?|<)\s{0,4}(?:&\d|[^\s;&|]{1,300})|&>>?\s{0,4}\S{1,300}")
_ASSIGNMENT = re.compile(r"\w{1,80}\+?=\S*")
_PLAIN = re.compile(r"[a-z][a-z0-9]*(?:[-:_][a-z0-9]+)*")
_VERSIONED = re.compile(r"(python|pip|node|ruby|php|clang|gcc|g\+\+)[\d.-]+")
_UNSTEADY = re.compile(r"[0-9a-f]{7,}|\d+")


def list_commands(line: str) -> list[str]:
    """The commands of a shell line in their order, each as program and subcommand; [] for none.

    Of a pipe only its first program counts: what follows shapes what it prints.
    """
    return [name for words in _split_line(line) if (name := _name_command(words))]


def _split_line(line: str) -> list[list[str]]:
    """The words of each command of a shell line, of a pipe only of the first; text in quotes becomes "Q"."""
    plain = QUOTED.sub(" Q ", HEREDOC.sub(" ", line[:MAX_CHARACTERS])).replace("\\\n", " ")
    return split_parts(plain)


def split_parts(plain: str) -> list[list[str]]:
    """The words of each command of a shell line without quotes and here-documents, without redirections."""
    parts = _SPLIT.split(_REDIRECT.sub(" ", plain))[:MAX_COMMANDS]
    return [_PIPE.split(part)[0].strip(" \t(){}!").split()[:MAX_WORDS] for part in parts]


def find_arguments(line: str, command: str) -> frozenset[str]:
    """The arguments of a command in a shell line, without options but with their values: `./till -run TestX`."""
    for words in split_parts(HEREDOC.sub(" ", line[:MAX_CHARACTERS])):
        if _name_command(words) == command:
            skipped = set(command.split(" "))
            return frozenset(word for word in words if not word.startswith("-") and word not in skipped | _ALL
                             and word.rpartition("/")[2] not in skipped and not _ASSIGNMENT.fullmatch(word))  # fmt: skip
    return frozenset()


def shows_mended(command: str, *, same: bool) -> bool:
    """Whether a command's success shows that its failure was fixed.

    Of a check or a script it does; of another program (`python app.py`, `alembic upgrade head`) when it is run just as
    it was when it failed (`same`), unless what it says hangs on others: a network's, a repository's.
    """
    name = program_of(command)
    if command not in ("go run", "cargo run") and (name in CHECKS or "." in name):
        return True
    return same and name not in READERS and name not in _PROGRAMS["elsewhere"]


def program_of(command: str) -> str:
    """The program of a command from `list_commands`."""
    return command.split(" ", 1)[0]


def is_hidden(line: str) -> bool:
    """Whether a shell line's exit code may be another program's: it has a pipe, or more commands."""
    plain = QUOTED.sub(" Q ", line[:MAX_CHARACTERS])
    return any(mark in plain for mark in ("|", ";", "\n"))


def _name_command(words: list[str]) -> str:
    while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in ("then", "do", "else", "if", "while", "!")):
        words = words[1:]
    if not words:
        return ""
    name = _VERSIONED.sub(r"\1", words[0].rstrip("/").rpartition("/")[2])
    if not name or (name[0] in "-#$`Q" and not name[1:2].isalnum()):
        return ""
    rest = words[1:]
    if name in _PROGRAMS["wrapper"]:
        return _name_command(_skip_options(rest))
    if rest and f"{name}/{rest[0]}" in _PROGRAMS["wraps"]:
        return _name_command(_skip_options(rest[1:]))
    if name == "python":
        return _name_python_command(rest)
    if name in ("bash", "sh", "zsh", "node", "ruby", "php", "source", "."):
        script = next((word for word in rest if not word.startswith("-") and word != "Q"), "")
        own = script.rpartition("/")[2]
        return _mask_numbers(f"{name} {own}" if name not in ("bash", "sh", "zsh", ".") and own else own or name)
    count = 0 if name in _PROGRAMS["alone"] or name in READERS else 2 if name in _PROGRAMS["two"] else 1
    parts = [name]
    of_option = False  # an option's value: `git -C /a status`
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
    return _mask_numbers(" ".join(parts))


def _name_python_command(rest: list[str]) -> str:
    for place, word in enumerate(rest):
        if word == "-m" and place + 1 < len(rest):
            module = rest[place + 1]
            return _name_command([module, *rest[place + 2 :]]) if _PLAIN.fullmatch(module) else "python"
        if word == "-c" or word == "-":
            return "python -c"
        if not word.startswith("-"):
            return "python" if word == "Q" else _mask_numbers(f"python {word.rpartition('/')[2]}")
    return "python"


def _skip_options(words: list[str]) -> list[str]:
    """Drops a wrapper's options, numbers and assignments."""
    while words and (words[0].startswith("-") or words[0][:1].isdigit() or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
    return words


def _mask_numbers(command: str) -> str:
    """Masks numbers and hashes in a command's arguments."""
    head, *rest = command.split(" ")
    return " ".join([head, *(_UNSTEADY.sub("#", word) for word in rest)])[:80]


#: Most commands that are taken from one line.
MAX_KEPT = 6
#: Most characters of each.
COMMAND_CHARACTERS = 48

#: What a check is for -> the classes of its tools and of the tasks that a runner knows by name, in the order in which
#: they are looked for.
PURPOSES = {
    purpose: (_PROGRAMS[f"{kind}_tool"], tuple(sorted(_PROGRAMS[f"{kind}_task"])))
    for purpose, kind in (
        ("format", "format"), ("test", "test"), ("check types", "types"), ("lint", "lint"), ("build", "build"),
    )
}  # fmt: skip
#: Milestone -> the commands that reach it, with "/" between their words.
MILESTONES = {name: _PROGRAMS[name.replace(" ", "_")] for name in ("release", "pull request", "commit", "push")}
#: Files whose change is a step of its own, by their names.
_NOTABLE_FILE = re.compile(
    r"(?:^|/)((?:CHANGELOG|CHANGES|HISTORY|RELEASES|NEWS)(?:\.\w+)?|package\.json|pyproject\.toml|Cargo\.toml|pom\.xml|build\.gradle"
    r"|VERSION|version\.(?:py|go|ts|js|rb)|__version__\.py|README(?:\.\w+)?|CLAUDE\.md|AGENTS\.md)$",
    re.IGNORECASE,
)
_TAGS_RELEASE = re.compile(r"git tag (?!-l|-d|--).*\bv?\d+\.\d")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def significant_commands(line: str) -> list[str]:
    """The commands of a shell line with a purpose or a milestone, without arguments, each once in order."""
    names: dict[str, None] = {}
    for words in _split_line(line):
        name = _name_command(words)
        if find_milestone(name) and (name != "git tag" or _TAGS_RELEASE.search(line)):
            names[name] = None
        elif find_purpose(name):
            names[_with_runner(words, name)[:COMMAND_CHARACTERS]] = None
    return list(names)[:MAX_KEPT]


def _with_runner(words: list[str], name: str) -> str:
    """A command with what runs it, up to the last word of its name: "uv run pytest"."""
    words = without_assignments(words).split(" ")
    last = name.rpartition(" ")[2]
    return " ".join(words[: next((at for at, word in enumerate(words) if word.endswith(last)), 0) + 1])


def without_assignments(words: list[str]) -> str:
    """A command without leading assignments and programs that only run it (`sudo`, `timeout 60`)."""
    while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in _PROGRAMS["silent"] or words[0][0].isdigit()):
        words = words[1:]
    return " ".join(words)


def find_purpose(command: str) -> str:
    """What a command checks or makes (a key of PURPOSES); "" for another command."""
    name = _name_command(command.split())
    if name == "make":
        return "build"
    words = name.split(" ")
    for of, (tools, tasks) in PURPOSES.items():
        runs_task = len(words) > 1 and words[0] in _PROGRAMS["task_runner"] and words[-1].startswith(tasks)
        if words[0] in tools or "/".join(words[:2]) in tools or runs_task:
            return of
    return ""


def find_milestone(command: str) -> str:
    """The milestone of a command from `significant_commands`, "" for none."""
    return next((name for name, reaching in MILESTONES.items() if command.replace(" ", "/") in reaching), "")


def looks_only(words: list[str]) -> bool:
    """Whether a command only looks, moves files or prints, so that its failure does not matter."""
    name = _name_command(words)
    return (
        not name
        or program_of(name) in READERS | _PROGRAMS["housekeeping"]
        or name.replace(" ", "/") in _PROGRAMS["looks"]
    )


def is_of_work(command: str) -> bool:
    """Whether the program of a command shows what kind of work was done."""
    return program_of(command) in _PROGRAMS["work"]


def read_text_parameter(call: str, *names: str) -> str:
    """The first of some text parameters in a stored tool call (JSON, perhaps truncated), "" for none."""
    match = re.search(rf'"(?:{"|".join(names)})":"((?:[^"\\]|\\.)*)', call)
    return _ESCAPED.sub(_unescape, match[1]) if match else ""


def _unescape(escape: re.Match[str]) -> str:
    mark = escape[1]
    return chr(int(mark[1:], 16)) if len(mark) == 5 else _ESCAPES.get(mark, mark)


def read_command(call: str) -> str:
    """The shell line of a tool call."""
    return read_text_parameter(call, "command")


def read_file_path(call: str) -> str:
    """The file that a tool call names."""
    return read_text_parameter(call, "file_path", "notebook_path")


def find_notable_name(path: str) -> str:
    """The name of a file whose change counts as a step (a changelog, a version file), "" for any other."""
    match = _NOTABLE_FILE.search(path)
    return match.group(1) if match else ""
