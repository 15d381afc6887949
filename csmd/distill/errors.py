"""What failed, as a fingerprint that is the same whenever the same thing fails: command, exit code, message; pure.

RULES is walked line by line; the rule that stands first decides the message, of one rule its first line. A message
is told without what changes from one time to the next: paths, line numbers, hashes, times, temporary names.
Whatever comes in, it gives an answer or None, in a time that grows with the length of what is looked at only.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import NamedTuple

from csmd.distill import shell
from csmd.patterns import at_first_use

#: What is looked at of an output: its beginning and its end, where tools say what went wrong.
HEAD, TAIL = 24_000, 24_000
#: Characters of a line that is looked at, and of a message, which is one.
MOST_LINE, MESSAGE = 600, 200
#: The exit code that is taken where a pipe hid it: most tools say 1.
HIDDEN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSeen:
    """A failure: what was run, how it ended, the line that says what went wrong; `rule` is the one that found it.

    `exit_code` is -1 where a pipe hid it. `command` is "" for an error that somebody pasted.
    """

    fingerprint: str
    command: str
    exit_code: int
    message: str
    at: str
    uuid: str
    rule: str


class Rule(NamedTuple):
    """One row of RULES: the group `said` is the message; `programs` are those whose words these are ("" any)."""

    name: str
    pattern: re.Pattern[str]
    programs: str = ""


def _rule(name: str, pattern: str, programs: str = "") -> Rule:
    return Rule(name, at_first_use(pattern), programs)


_FILE = r"(?:[A-Za-z]:)?[^\s:()\"']{1,200}\.\w{1,12}"
_SAYS = r"(?!ok\b|note: |warning: |info\b|INFO\b|=== |:? ?#)(?P<said>\S.+)"
#: Who names a place in a file before what is wrong there, and whoever runs them.
AT_LINE = "go gcc g++ clang make cmake ninja golangci-lint ruff gofmt shellcheck mise swift cc c++ just"
#: The surest first. Each is matched at a line's beginning, after marks that tools put before their lines were taken off.
# fmt: off
RULES: tuple[Rule, ...] = (
    # Compilers and linters: file, line, what is wrong.
    _rule("at_error", rf"(?:\[ERROR\] |e: )?(?:file://)?{_FILE}(?:\(\d+[,:]\d+\)|:?\[?\d+(?:[:,] ?\d+)?\]?)(?: -|:)? (?P<said>(?:error(?: [A-Z]{{2,4}}\d+)?: |cannot |incompatible ).+?)(?: \[/\S+\])?$"),
    _rule("at_place", rf"(?:vet: )?{_FILE}:\d+:\d+:? {_SAYS}", AT_LINE),
    _rule("listed", r"\s*\d+:\d+\s+(?P<said>error\s+.+)"),
    # Programs that ended: the last line of a traceback, a panic, an exception nobody caught.
    _rule("traceback", r"(?P<said>(?:[A-Za-z_][\w.]{0,100}\.)?(?:[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|NotFound|Refused)|KeyError|StopIteration|Timeout\w{0,20})(?:: .*)?)$"),
    _rule("asserted", r"E {2,12}(?P<said>(?:[\w.]{1,100}(?:Error|Exception)\b|assert |Failed: |fixture ).*)"),
    _rule("panic", r"(?P<said>panic: .+|fatal error: .+|runtime error: .+|thread '[^']{1,80}'.{0,20} panicked at .+)"),
    _rule("uncaught", r"(?:Exception in thread \"[^\"]{1,80}\" |Caused by: |Unhandled exception\. |\*\* (?=\())(?P<said>[\w.$(]{3,200}.*)"),
    # Tests that failed.
    _rule("test", r"\s*(?:●\s(?=\S+ › )|(?:FAIL|×)\s{1,2}(?=\S+ > ))?(?P<said>--- FAIL: \S+|(?:FAILED|ERROR) \S+::\S+.*|test \S+ \.\.\. FAILED|(?:FAIL|ERROR): test\w+ \(.+\)"
          r"|(?<=[●L×] )\S+ [›>] .{3,}|FAIL\s+\S+ \[(?:build|setup) failed\])"),
    _rule("at_line", rf"{_FILE}:\d+:? {_SAYS}", AT_LINE),
    # Tools that say what they could not do.
    _rule("merge", r"\s*(?:! )?(?P<said>CONFLICT \([^)]{1,40}\)|\[(?:remote )?rejected\].*)"),
    _rule("error", r"(?:[│|╷] |\[ERROR\] |PHP )?(?:[\w.()-]{1,40}: ){0,2}?(?P<said>(?:[Ee]rror|ERROR|[Ff]atal|FATAL)(?:\[\w+\])?(?: [\w ()]{1,40})?: .+"
          r"|(?:\w+ )?[Ff]ailed (?:to|for) .+|Unable to .+|[Cc]annot .+)"),
    _rule("refused", r"(?P<said>.{0,160}(?:No such file or directory|Permission denied|no such file or directory|Operation not permitted|command not found|"
          r"[Cc]onnection refused|[Tt]imed out|unknown (?:flag|command|option|shorthand flag)\b|[Aa]ddress already in use|No space left on device|Read-only file system).{0,160})"),
    _rule("mark", r"(?P<said>(?:✗|✖|❌|FAIL:|FAILED:?) .{3,})"),
    _rule("make", r"make(?:\[\d+\])?: \*\*\* (?P<said>.+)"),
)
# fmt: on
#: Rules that say nothing about whether it is the command's own failure: they count only where the exit code tells one.
WEAK = frozenset({"traceback", "error", "refused", "mark", "make", "uncaught"})

_EXIT = at_first_use(r"\s{0,9}(?:Error: )?Exit code (\d{1,5})\b[^\n]*\n?")
#: What stands in a tool's answer where the tool was not run, or the host itself refused.
_NOT_RUN = at_first_use(
    r"\s{0,9}(?:<tool_use_error>|The user doesn't want|Permission to use|\[Request interrupted|Command (?:running|was)"
    r"|\[(?:csmd|tool output|not kept|purged)|Error: The user)"
)
_ANSI = at_first_use(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\r")
#: Marks before a line: the task of a runner, npm's, a log's time and level.
_BEFORE = at_first_use(
    r"\A(?:\[[\w:.-]{1,40}\] (?=\S)|npm (?:ERR!|error) |\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S* |> |\| ){1,3}"
)
_TASK = at_first_use(r"\[([\w:.-]{1,40})\] (ERROR|\$)")
#: Lines that say that something failed and not what.
_EMPTY_WORDS = at_first_use(
    r"(?:FAIL|ok  |PASS|Usage:|usage:|=== |#|\?|at |or: |npm (?:ERR!|error) A complete log|To |hint:|\[\w[\w:.-]*\] (?:\$|Finished)|ERROR task failed)"
)
_PASTED = at_first_use(
    r"(?P<said>(?:fatal|panic|[Ee]rror(?:\[\w+\])?|ERROR|\w{2,60}(?:Error|Exception)): .{4,}|--- FAIL: \S+|.{0,160}(?:No such file or directory"
    r"|[Pp]ermission denied|command not found|exit(?:ed with)? (?:status|code) \d+).{0,160}|[Ff]ailed to \w.{6,})"
)

# What changes from one time to the next, in this order.
_NORMAL: tuple[tuple[re.Pattern[str], str], ...] = (
    (at_first_use(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (at_first_use(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)?(?![\d])"), "<time>"),
    (at_first_use(r"\b\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?\b"), "<time>"),
    (at_first_use(r"https?://[^\s\"'<>)\]]{1,300}"), "<url>"),
    (at_first_use(r"(?:[A-Za-z]:\\[^\s\"':]{0,200}\\|(?<![\w/])(?:/private)?/(?:tmp|var/folders|var/tmp|dev/shm)/)[^\s\"':,;)\]]{0,200}"), "<tmp>"),
    # A path keeps its last name: it says which file, whatever the directory is.
    (at_first_use(r"(?<![\w<])(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+-]{1,100}){1,20}[/\\]?(?=$|[\s\"'`:,;()\[\]])"), "/"),
    (at_first_use(r"(?<![\w/<])[\w.@+-]{1,100}(?:/[\w.@+-]{1,100}){1,20}/?(?=$|[\s\"'`:,;()\[\]])"), "/"),
    (at_first_use(r"0x[0-9a-fA-F]{2,16}"), "<addr>"),
    (at_first_use(r"\b(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,64}\b"), "<hash>"),
    (at_first_use(r":\d{1,7}(?::\d{1,7})?(?=$|[\s:,)\]])"), ""),
    (at_first_use(r"\(\d{1,7}, ?\d{1,7}\)|\bline \d{1,7}(?:, col(?:umn)? \d{1,7})?"), "<line>"),
    (at_first_use(r"\(?\b\d+(?:\.\d+)?(?:ns|µs|us|ms|s|m|h)\b\)?"), "<took>"),
    (at_first_use(r"(?<=[-_.])(?:\d{4,}|[0-9a-f]{0,40}?\d[0-9a-f]{0,40}?[a-f][0-9a-f]{4,40})\b"), "<n>"),
)  # fmt: skip
_NUMBER = at_first_use(
    r"(?P<kept>\b(?:code|status|HTTP(?:/[\d.]+)?|errno|signal|Errno|curl:)\s?[:=]?\s?\(?\d{1,5}\b)|(?<![\w.<])\d+(?:[.,]\d+)*(?![\w>])"
)
_SPACES = at_first_use(r"\s+")


def seen(tool: str, command: str, result: str, *, at: str, uuid: str) -> ErrorSeen | None:
    """The failure that a tool's answer tells of, None for one that tells of none or of nothing worth knowing again.

    `command` is the shell line of a shell tool; of other tools only a server's own (`mcp__...`) are looked at.
    """
    body = shown(result)
    if not body.strip() or _NOT_RUN.match(body):
        return None
    if tool.startswith("mcp__"):
        return _of_server(tool, body, at, uuid)
    if not command:
        return None
    told = _EXIT.match(body)
    exit_code = int(told.group(1)) if told else 0
    hidden = not exit_code and shell.is_hidden(command)
    if not exit_code and not hidden:  # most outputs: nothing more is asked of them
        return None
    run = [one for one in shell.commands(command) if shell.program(one) not in shell.READERS]
    if not run:
        return None
    lines = _lines(body[told.end() :] if told else body)
    programs = {shell.program(one) for one in run}
    if hidden:
        run = [one for one in run if shell.program(one) in shell.RUNNERS]
        if not run or ("git" in programs and len(programs) == 1):
            return None
    found = _decisive(lines, programs, sure_only=hidden)
    if found is None and exit_code:
        found = _first(lines)
    if found is None:
        return None
    rule, said = found
    if not (message := normalised(said)):
        return None
    which = _which(run, rule, lines)
    return ErrorSeen(
        fingerprint=fingerprint(which, exit_code or HIDDEN, message),
        command=which, exit_code=exit_code or -1, message=message, at=at, uuid=uuid, rule=rule,
    )  # fmt: skip


def pasted(said: str, *, at: str, uuid: str) -> ErrorSeen | None:
    """The error that somebody pasted into what they say, by its first line that reads like one."""
    for line in _lines(shown(said)):
        found = _PASTED.match(line.lstrip("`*> "))
        if found and not line.rstrip().endswith("?"):
            message = normalised(found.group("said"))
            return ErrorSeen(
                fingerprint=fingerprint("", 0, message), command="", exit_code=0, message=message, at=at, uuid=uuid,
                rule="pasted",
            )  # fmt: skip
    return None


def succeeded(result: str) -> bool:
    """Whether a tool's answer is one of a command that was run and ended well, as far as an answer tells."""
    body = shown(result)
    return not _NOT_RUN.match(body) and not _EXIT.match(body)


def shown(result: str) -> str:
    """What is looked at of an output, without the marks of a terminal."""
    if len(result) > HEAD + TAIL:
        result = f"{result[:HEAD]}\n{result[-TAIL:]}"
    return _ANSI.sub("", result) if "\x1b" in result or "\r" in result else result


def normalised(message: str) -> str:
    """A message without what changes from one time to the next, on one line."""
    said = message[:MOST_LINE]
    for pattern, mark in _NORMAL:
        said = pattern.sub(_last_name if mark == "/" else mark, said)
    said = _NUMBER.sub(lambda found: found.group("kept") or "<n>", said)
    return _SPACES.sub(" ", said).strip(" \t.,;:│|")[:MESSAGE].strip()


def fingerprint(command: str, exit_code: int, message: str) -> str:
    """Sixteen hex digits that two failures share when they are the same."""
    return hashlib.sha256(f"{command}\0{exit_code}\0{message}".encode("utf-8", "replace")).hexdigest()[:16]


def _last_name(path: re.Match[str]) -> str:
    return re.split(r"[/\\]", path.group().rstrip("/\\"))[-1] or "/"


def _lines(body: str) -> list[str]:
    return [line[:MOST_LINE] for line in body.split("\n")]


def _decisive(lines: list[str], programs: set[str], *, sure_only: bool) -> tuple[str, str] | None:
    """(rule, message) of the line that says most surely what went wrong."""
    rows = [(bare, line) for line in lines if (bare := _BEFORE.sub("", line, count=1)).strip()]
    telling = [row for row in rows if not _EMPTY_WORDS.match(row[0])]
    in_traceback = any(line.startswith("Traceback (most recent call last)") for line in lines)
    for rule in RULES:
        if rule.programs and programs.isdisjoint(rule.programs.split()):
            continue
        if sure_only and rule.name in WEAK and not (rule.name == "traceback" and in_traceback):
            continue
        for bare, line in rows if rule.name in ("test", "mark") else telling:
            found = rule.pattern.match(bare) or (rule.pattern.match(line) if line is not bare else None)
            if found and found.group("said").strip():
                return rule.name, found.group("said")
    return None


def _first(lines: list[str]) -> tuple[str, str] | None:
    """The first line that says anything: of a failure that no rule knows."""
    for line in lines:
        bare = _BEFORE.sub("", line, count=1).strip()
        if bare[:6].lower() == "usage:":
            return "usage", "usage"
        if len(bare) > 3 and not _EMPTY_WORDS.match(bare) and any(char.isalpha() for char in bare):
            return "first", bare
    return None


def _which(run: list[str], rule: str, lines: list[str]) -> str:
    """Which command of a shell line failed: the one whose words these are, the task a runner names, else the last."""
    programs = next((one.programs for one in RULES if one.name == rule), "").split()
    named = [found.groups() for line in lines if (found := _TASK.match(line))]
    failed = {task for task, mark in named if mark == "ERROR"} or {task for task, _ in named}
    for one in reversed(run):
        if one.split(" ")[-1] in failed:
            return one
    for one in reversed(run):
        if shell.program(one) in programs:
            return one
    return run[-1]


def _of_server(tool: str, body: str, at: str, uuid: str) -> ErrorSeen | None:
    """A failure that a memory or tool server tells of: its first line is an error."""
    line = body.lstrip().split("\n", 1)[0][:MOST_LINE]
    if not re.match(r"(?:MCP )?(?:[Ee]rror\b|ERROR\b)", line):
        return None
    command = " ".join(tool.split("__")[1:])[:80]
    message = normalised(line)
    return ErrorSeen(
        fingerprint=fingerprint(command, 1, message), command=command, exit_code=1, message=message, at=at, uuid=uuid,
        rule="server",
    )  # fmt: skip
