"""Recognises failures by fingerprints, and relates symptoms, causes and refutations in a session."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from csmd.cache import cached
from csmd.conversation import CommandFailure, StatedMemory, TranscriptTurn
from csmd.extraction import shell_commands
from csmd.text import display, quotations, similarity
from csmd.text.prose import read_prose_lines, split_sentences
from csmd.text.sentence import has, opens, parse

#: Characters of an output's beginning that are read.
HEAD_CHARACTERS = 24_000
#: Characters of its end, where tools say what went wrong.
TAIL_CHARACTERS = 24_000
#: Characters of a line that are read.
MAX_LINE_CHARACTERS = 600
#: Most characters of a message.
MAX_MESSAGE_CHARACTERS = 200
#: The exit code that is taken where a pipe hid it: most tools say 1.
HIDDEN_EXIT_CODE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedFailure:
    """A failure: the command, its exit code, the line that reports the error.

    `exit_code` is -1 if a pipe hid it. `command` is "" for an error that a person pasted.
    """

    fingerprint: str
    command: str
    exit_code: int
    message: str
    at: str
    uuid: str


class Rule(NamedTuple):
    """One row of RULES: the group `said` is the message; `programs` are those that print it ("": any)."""

    name: str
    pattern: re.Pattern[str]
    programs: str = ""


def _rule(name: str, pattern: str, programs: str = "") -> Rule:
    return Rule(name, re.compile(pattern), programs)


_FILE = r"(?:[A-Za-z]:)?[^\s:()\"']{1,200}\.\w{1,12}"
_SAYS = r"(?!ok\b|note: |warning: |info\b|INFO\b|=== |:? ?#)(?P<said>\S.+)"
#: Who names a place in a file before what is wrong there, and whoever runs them.
AT_LINE = "go gcc g++ clang make cmake ninja golangci-lint ruff gofmt shellcheck mise swift cc c++ just"
#: The surest first. Each is matched at a line's beginning, after marks that tools put before their lines were taken
#: off.
# fmt: off
RULES: tuple[Rule, ...] = (
    # Compilers and linters: file, line, what is wrong.
    _rule("at_error", rf"(?:\[ERROR\] |e: )?(?:file://)?{_FILE}(?:\(\d+[,:]\d+\)|:?\[?\d+(?:[:,] ?\d+)?\]?)(?: -|:)? (?P<said>(?:error(?: [A-Z]{{2,4}}\d+)?: |cannot |incompatible ).+?)(?: \[/\S+\])?$"),
    _rule("at_place", rf"(?:vet: )?{_FILE}:\d+:\d+:? {_SAYS}", AT_LINE),
    _rule("listed", r"\s*\d+:\d+\s+(?P<said>error\s+.+)"),
    # Programs that ended: the last line of a traceback, a panic, an uncaught exception.
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
WEAK_RULES = frozenset({"traceback", "error", "refused", "mark", "make", "uncaught"})

_EXIT = re.compile(r"\s{0,9}(?:Error: )?Exit code (\d{1,5})\b[^\n]*\n?")
#: The beginning of a tool's answer if the tool was not run, or the host refused it.
_NOT_RUN = re.compile(
    r"\s{0,9}(?:<tool_use_error>|The user doesn't want|Permission to use|\[Request interrupted|Command (?:running|was)"
    r"|\[(?:csmd|tool output|not kept|purged)|Error: The user)"
)
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\r")
#: Marks before a line: the task of a runner, npm's, a log's time and level.
_LINE_MARKS = re.compile(
    r"\A(?:\[[\w:.-]{1,40}\] (?=\S)|npm (?:ERR!|error) |\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S* |> |\| ){1,3}"
)
_TASK = re.compile(r"\[([\w:.-]{1,40})\] (ERROR|\$)")
#: Lines that say that something failed and not what.
_EMPTY_LINE = re.compile(
    r"(?:FAIL|ok  |PASS|Usage:|usage:|=== |#|\?|at |or: |npm (?:ERR!|error) A complete log|To |hint:|\[\w[\w:.-]*\] (?:\$|Finished)|ERROR task failed)"
)
_PASTED = re.compile(
    r"(?P<said>(?:fatal|panic|[Ee]rror(?:\[\w+\])?|ERROR|\w{2,60}(?:Error|Exception)): .{4,}|--- FAIL: \S+|.{0,160}(?:No such file or directory"
    r"|[Pp]ermission denied|command not found|exit(?:ed with)? (?:status|code) \d+).{0,160}|[Ff]ailed to \w.{6,})"
)

# What changes from one time to the next, in this order.
_MASKS = [
    (re.compile(pattern), mark)
    for pattern, mark in (
        (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)?(?![\d])", "<time>"),
        (r"\b\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?\b", "<time>"),
        (r"https?://[^\s\"'<>)\]]{1,300}", "<url>"),
        (r"(?:[A-Za-z]:\\[^\s\"':]{0,200}\\|(?<![\w/])(?:/private)?/(?:tmp|var/folders|var/tmp|dev/shm)/)[^\s\"':,;)\]]{0,200}", "<tmp>"),
        # A path keeps its last name: it says which file, whatever the directory is.
        (r"(?<![\w<])(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+-]{1,100}){1,20}[/\\]?(?=$|[\s\"'`:,;()\[\]])", "/"),
        (r"(?<![\w/<])[\w.@+-]{1,100}(?:/[\w.@+-]{1,100}){1,20}/?(?=$|[\s\"'`:,;()\[\]])", "/"),
        (r"0x[0-9a-fA-F]{2,16}", "<addr>"),
        (r"\b(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,64}\b", "<hash>"),
        (r":\d{1,7}(?::\d{1,7})?(?=$|[\s:,)\]])", ""),
        (r"\(\d{1,7}, ?\d{1,7}\)|\bline \d{1,7}(?:, col(?:umn)? \d{1,7})?", "<line>"),
        (r"\(?\b\d+(?:\.\d+)?(?:ns|µs|us|ms|s|m|h)\b\)?", "<took>"),
        (r"(?<=[-_.])(?:\d{4,}|[0-9a-f]{0,40}?\d[0-9a-f]{0,40}?[a-f][0-9a-f]{4,40})\b", "<n>"),
    )
]  # fmt: skip
_NUMBER = re.compile(
    r"(?P<kept>\b(?:code|status|HTTP(?:/[\d.]+)?|errno|signal|Errno|curl:)\s?[:=]?\s?\(?\d{1,5}\b)|(?<![\w.<])\d+(?:[.,]\d+)*(?![\w>])"
)


def find_failure(tool: str, command: str, result: str, *, at: str, uuid: str) -> ObservedFailure | None:
    """Finds the failure that a tool's output reports; None if there is none worth recognising.

    `command` is the shell line of a shell tool; of other tools only a server's own (`mcp__...`) are looked at.
    """
    body = visible_output(result)
    if not body.strip() or _NOT_RUN.match(body):
        return None
    if tool.startswith("mcp__"):
        return _find_server_failure(tool, body, at, uuid)
    if not command:
        return None
    exit_line = _EXIT.match(body)
    exit_code = int(exit_line.group(1)) if exit_line else 0
    is_hidden = not exit_code and shell_commands.is_hidden(command)
    if not exit_code and not is_hidden:
        return None
    commands = shell_commands.list_commands(command)
    program_of = {part: shell_commands.program_of(part) for part in commands}
    run = [part for part in commands if program_of[part] not in shell_commands.READERS]
    programs = {program_of[part] for part in run}
    if is_hidden:
        run = [part for part in run if program_of[part] in shell_commands.RUNNERS]
    if not run or (is_hidden and programs == {"git"}):
        return None
    lines = _split_lines(body[exit_line.end() :] if exit_line else body)
    rule, line = _find_decisive_line(lines, programs, sure_only=is_hidden) or ("", "")
    if not line and exit_code:
        rule, line = _find_first_line(lines) or ("", "")
    message = normalise_message(line)
    if not message:
        return None
    return _make_failure(_find_failed_command(run, rule, lines), exit_code or -1, message, at, uuid)


def find_pasted_error(text: str, *, at: str, uuid: str) -> ObservedFailure | None:
    """Finds an error pasted into a prompt: the first line that looks like one."""
    for line in _split_lines(visible_output(text)):
        match = _PASTED.match(line.lstrip("`*> "))
        if match and not line.rstrip().endswith("?"):
            return _make_failure("", 0, normalise_message(match["said"]), at, uuid)
    return None


def _make_failure(command: str, exit_code: int, message: str, at: str, uuid: str) -> ObservedFailure:
    shown_code = HIDDEN_EXIT_CODE if exit_code < 0 else exit_code
    return ObservedFailure(
        fingerprint=fingerprint(command, shown_code, message), command=command, exit_code=exit_code, message=message,
        at=at, uuid=uuid,
    )  # fmt: skip


def succeeded(result: str) -> bool:
    """Whether a tool's output is that of a command that ran and succeeded."""
    body = visible_output(result)
    return not _NOT_RUN.match(body) and not _EXIT.match(body)


def visible_output(result: str) -> str:
    """The beginning and end of an output, without terminal escapes."""
    if len(result) > HEAD_CHARACTERS + TAIL_CHARACTERS:
        result = f"{result[:HEAD_CHARACTERS]}\n{result[-TAIL_CHARACTERS:]}"
    return _ANSI.sub("", result) if "\x1b" in result or "\r" in result else result


def normalise_message(message: str) -> str:
    """A message on one line, with times, ids, paths and numbers masked."""
    text = message[:MAX_LINE_CHARACTERS]
    for pattern, mark in _MASKS:
        text = pattern.sub(_last_name if mark == "/" else mark, text)
    text = _NUMBER.sub(lambda match: match.group("kept") or "<n>", text)
    return display.squeeze(text).strip(" \t.,;:│|")[:MAX_MESSAGE_CHARACTERS].strip()


def fingerprint(command: str, exit_code: int, message: str) -> str:
    """The identity of a failure: sixteen hex digits."""
    return hashlib.sha256(f"{command}\0{exit_code}\0{message}".encode("utf-8", "replace")).hexdigest()[:16]


def _last_name(path: re.Match[str]) -> str:
    return path.group().replace("\\", "/").rstrip("/").rpartition("/")[2] or "/"


def _split_lines(body: str) -> list[str]:
    return [line[:MAX_LINE_CHARACTERS] for line in body.split("\n")]


def _find_decisive_line(lines: list[str], programs: set[str], *, sure_only: bool) -> tuple[str, str] | None:
    """(rule, message) of the line that the surest rule matches, or None."""
    rows = [(bare, line) for line in lines if (bare := _LINE_MARKS.sub("", line, count=1)).strip()]
    telling = [row for row in rows if not _EMPTY_LINE.match(row[0])]
    in_traceback = any(line.startswith("Traceback (most recent call last)") for line in lines)
    for rule in RULES:
        if rule.programs and programs.isdisjoint(rule.programs.split()):
            continue
        if sure_only and rule.name in WEAK_RULES and not (rule.name == "traceback" and in_traceback):
            continue
        for bare, line in rows if rule.name in ("test", "mark") else telling:
            match = rule.pattern.match(bare) or (rule.pattern.match(line) if line is not bare else None)
            if match and match.group("said").strip():
                return rule.name, match.group("said")
    return None


def _find_first_line(lines: list[str]) -> tuple[str, str] | None:
    """The first meaningful line, for a failure that no rule matches."""
    for line in lines:
        bare = _LINE_MARKS.sub("", line, count=1).strip()
        if bare[:6].lower() == "usage:":
            return "usage", "usage"
        if len(bare) > 3 and not _EMPTY_LINE.match(bare) and any(char.isalpha() for char in bare):
            return "first", bare
    return None


def _find_failed_command(run: list[str], rule: str, lines: list[str]) -> str:
    """The command of a shell line that failed: the task that a runner names, the program of the rule, else the last."""
    programs = next((row.programs for row in RULES if row.name == rule), "").split()
    named = [match.groups() for line in lines if (match := _TASK.match(line))]
    failed = {task for task, mark in named if mark == "ERROR"} or {task for task, _ in named}
    for part in reversed(run):
        if part.split(" ")[-1] in failed:
            return part
    for part in reversed(run):
        if shell_commands.program_of(part) in programs:
            return part
    return run[-1]


def _find_server_failure(tool: str, body: str, at: str, uuid: str) -> ObservedFailure | None:
    """A failure reported by an MCP server: its first line is an error."""
    line = body.lstrip().split("\n", 1)[0][:MAX_LINE_CHARACTERS]
    if not line.removeprefix("MCP ").startswith(("error", "Error", "ERROR")):
        return None
    return _make_failure(" ".join(tool.split("__")[1:])[:80], 1, normalise_message(line), at, uuid)


#: Shared names of two texts on the same subject.
MIN_SHARED_NAMES = 1
#: Shared content words of two texts on the same subject.
MIN_SHARED_WORDS = 3
#: Most characters of a symptom or a diagnosis: a few sentences.
MAX_SENTENCE_CHARACTERS = 400
#: Fewest characters of a report.
MIN_SENTENCE_CHARACTERS = 12
#: Characters of a turn that are read.
MAX_TURN_CHARACTERS = 6_000


_NAME = re.compile(
    r"`([^`\n]{2,80})`|\b(\w{1,60}_\w[\w]{0,60})\b|\b([a-z]{1,40}[A-Z]\w{1,60})\b|\b([A-Z][a-z]+[A-Z]\w{1,60})\b"
    r"|(?<![\w-])(--[a-z][\w-]{2,40})\b|\b([\w-]{1,60}\.(?:go|py|ts|tsx|js|jsx|rs|rb|java|md|ya?ml|json|jsonl|toml|sh|sql|c|h|cpp|kt|php))\b"
)


def names_cause(text: str) -> bool:
    """Whether a text names a cause or a fix."""
    return has("cause", "en", text) or has("sure_cause", "en", text)


def is_cause(text: str, *, category: str, authority: str) -> bool:
    """Whether a statement names a cause or a fix; a user's must say so outright, or it is a report."""
    if authority == "user":
        return has("sure_cause", "en", text)
    return category == "gotcha" or names_cause(text)


def answers(text: str, symptom: str) -> bool:
    """Whether an assistant's statement after a report explains it; any fix does after a definite report."""
    return names_cause(text) or (has("failure", "en", symptom) and has("fix", "en", text))


def is_symptom(sentence: str) -> bool:
    """Whether a user's sentence reports a problem; one that orders something must say outright that it fails."""
    if parse(sentence).kind == "orders":
        return has("failure", "en", sentence)
    return has("symptom", "en", sentence)


def find_names(text: str) -> frozenset[str]:
    """The names in a text, in small letters: code, identifiers, files (without directories), flags."""
    return _find_names(text[:8_000])


@cached(256)
def _find_names(text: str) -> frozenset[str]:
    names_found = {next(filter(None, name.groups())).strip(" ().:'\"") for name in _NAME.finditer(text)}
    return frozenset(short for name in names_found if len(short := name.rpartition("/")[2].casefold()) > 2)


def count_shared(text: str, other_text: str) -> tuple[int, int]:
    """Counts the (names, content words) that two texts share."""
    left, right = similarity.gist(text).stems, similarity.gist(other_text).stems
    lower = other_text.casefold()
    named = find_names(text) & find_names(other_text) | {
        name for name in find_names(text) if len(name) > 5 and name in lower
    }
    return len(named), len(left & right)


def is_same_subject(text: str, other_text: str) -> bool:
    """Whether two texts of one session share a name, or enough words."""
    named, words = count_shared(text, other_text)
    return named >= MIN_SHARED_NAMES or words >= MIN_SHARED_WORDS


def find_symptom(text: str) -> str:
    """Returns the problem that a user's turn reports, in its own words; "" if there is none."""
    return _find_symptom(text[:MAX_TURN_CHARACTERS])


@cached(128)
def _find_symptom(text: str) -> str:
    prose = [sentence for line in read_prose_lines(text) for sentence in split_sentences(line)]
    symptoms = [sentence for sentence in prose if len(sentence) > MIN_SENTENCE_CHARACTERS and is_symptom(sentence)][:3]
    lines = [line.strip() for line in text.splitlines()]
    shown = [
        line
        for line in lines
        if MIN_SENTENCE_CHARACTERS < len(line) < MAX_SENTENCE_CHARACTERS and has("failure", "en", line)
    ][:2]
    if symptoms and symptoms[0].endswith(":"):  # the paste that follows names it
        at = next(
            (place for place, line in enumerate(lines) if line.endswith(symptoms[0][-MIN_SENTENCE_CHARACTERS:])),
            len(lines),
        )
        shown = [line for line in lines[at + 1 :] if len(line) > MIN_SENTENCE_CHARACTERS][:2]
    parts = [
        *symptoms,
        *(line for line in shown if not any(line in sentence or sentence in line for sentence in symptoms)),
    ]
    return display.cut(display.squeeze(" ".join(parts)), MAX_SENTENCE_CHARACTERS)


def find_diagnosis(passages: Iterable[tuple[str, str, bool]], *, about: str) -> tuple[str, str]:
    """(uuid, sentence) that best explains why `about` failed, among (uuid, text, whether before the next try).

    What was said afterwards sums up everything: there a sentence has to name what failed. ("", "") for none: no
    reason is better than another failure's.
    """
    best, chosen = 0, ("", "")
    for uuid, text, before in passages:
        for line in read_prose_lines(text[:MAX_TURN_CHARACTERS]):
            for sentence in split_sentences(line):
                if not 20 < len(sentence) <= MAX_SENTENCE_CHARACTERS or sentence.rstrip("*` ").endswith(("?", ":")):
                    continue
                if parse(sentence, "assistant").kind in ("narrates", "reports", "assents"):
                    continue
                named, words = count_shared(sentence, about)
                cause = names_cause(sentence)
                if not (cause and before) and not ((cause or has("fix", "en", sentence)) and (named or words > 2)):
                    continue
                value = 3 * cause + 2 * min(named, 2) + min(words, 3) + 2 * before
                if value > best:
                    best, chosen = value, (uuid, display.squeeze(sentence.replace("**", "")))
    return chosen


#: How many prompts before a cause may report it.
MAX_PROMPTS_BEFORE = 4
#: How many prompts after a cause may refute it.
MAX_PROMPTS_AFTER = 2
#: Tool failures up to this many turns before a cause belong to it.
MAX_TURNS_BEFORE = 60
#: Names that a report and a cause of different sessions need in common.
MIN_NAMES_ACROSS = 2
#: Days within which a later session's cause explains a report.
MAX_DAYS_ACROSS = 14
#: Characters of a turn that are searched for a refutation.
MAX_REFUTATION_CHARACTERS = 240
#: Characters of a turn that are searched for what it is about.
MAX_SUBJECT_CHARACTERS = 500


#: (who speaks: u a person, a the assistant; how far it lowers a cause; why; the class of words that says it)
REFUTES: tuple[tuple[str, float, str, str], ...] = (
    ("u", 0.50, "the user says that this was not it", "disputes"),
    ("u", 0.35, "the user says that it still fails", "persists"),
    ("a", 0.40, "the assistant took it back", "retracts"),
    ("a", 0.20, "the assistant agreed that it was otherwise", "concedes"),
)
#: A proposal of the assistant's that the user refuses in the next prompt.
TURNED_DOWN = (0.50, "the user turned it down")
#: A failure that comes again after its cause was named.
REPEATED = (0.20, "the same error came again")


class Symptom(NamedTuple):
    """The words of a report, by which a memory will be found."""

    key: int
    uuid: str
    at: str
    text: str
    fingerprint: str


class Refutation(NamedTuple):
    """The turn that refutes a memory, the reason, and the loss of confidence; `by` is the contradicting memory or 0."""

    key: int
    uuid: str
    at: str
    reason: str
    lowered: float
    by: int


class Relations(NamedTuple):
    """Symptoms, refutations and links of a session; `links` are (symptom's memory, cause's memory)."""

    symptoms: list[Symptom]
    refutations: list[Refutation]
    links: list[tuple[int, int]]


def relate(
    turns: Sequence[TranscriptTurn], stated: Sequence[StatedMemory], failed: Sequence[CommandFailure]
) -> Relations:
    """Relates a session's turns, memories and failures to each other; a pure function."""
    prompts = [turn for turn in turns if turn.kind in ("user", "relayed")]
    causes = [each for each in stated if is_cause(each.text, category=each.category, authority=each.authority)]
    symptoms: list[Symptom] = []
    refutations: list[Refutation] = []
    links: list[tuple[int, int]] = []
    sure = {cause.memory_seq for cause in causes}
    for cause in stated:
        for symptom in _find_reports(cause, prompts, is_cause=cause.memory_seq in sure):
            symptoms.append(symptom)
            links += [
                (report.memory_seq, cause.memory_seq)
                for report in stated
                if report.uuid == symptom.uuid and report.memory_seq != cause.memory_seq
                if has("symptom", "en", report.text) and not names_cause(report.text)
            ]
        refutations += _find_rejection(cause, turns)
        if cause.memory_seq not in sure:
            continue
        symptoms += _find_failures(cause, failed)
        if cause.authority != "user":
            refutations += _find_refutations(cause, turns, prompts, causes, failed)
    return Relations(symptoms, refutations, list(dict.fromkeys(links)))


def is_report_of_cause(symptom: str, said_at: str, cause: str, found_at: str) -> bool:
    """Whether a report belongs to a cause that a later session found."""
    try:
        days = (datetime.fromisoformat(found_at) - datetime.fromisoformat(said_at)).total_seconds() / 86_400
    except ValueError:
        return False
    return 0 < days <= MAX_DAYS_ACROSS and count_shared(symptom, cause)[0] >= MIN_NAMES_ACROSS


def _find_reports(cause: StatedMemory, prompts: Sequence[TranscriptTurn], *, is_cause: bool) -> list[Symptom]:
    before = [turn for turn in prompts if turn.ordinal <= cause.ordinal][-MAX_PROMPTS_BEFORE:]
    symptoms = []
    for turn in before:
        symptom = find_symptom(turn.text)
        if not symptom or similarity.repeats(symptom, cause.text):
            continue
        # The assistant answers the last prompt: there nearness is enough.
        is_answer = turn is before[-1] and turn.uuid != cause.uuid and cause.authority == "assistant"
        explains = is_cause or (cause.authority == "assistant" and answers(cause.text, symptom))
        about = is_same_subject(symptom, cause.text)
        if (is_answer and (explains or about)) or (explains and about):
            symptoms.append(Symptom(cause.memory_seq, turn.uuid, turn.at, symptom, ""))
    return symptoms


def _find_failures(cause: StatedMemory, failed: Sequence[CommandFailure]) -> list[Symptom]:
    near = [failure for failure in failed if 0 <= cause.ordinal - failure.ordinal <= MAX_TURNS_BEFORE]
    latest = {failure.fingerprint: failure for failure in near if is_same_subject(failure.message, cause.text)}
    symptoms = []
    for failure in latest.values():
        text = ": ".join(filter(None, (failure.command, failure.message)))
        symptoms.append(Symptom(cause.memory_seq, failure.uuid, failure.at, text, failure.fingerprint))
    return symptoms


def _find_refutations(
    cause: StatedMemory,
    turns: Sequence[TranscriptTurn],
    prompts: Sequence[TranscriptTurn],
    causes: Sequence[StatedMemory],
    failed: Sequence[CommandFailure],
) -> list[Refutation]:
    after = [turn for turn in prompts if turn.ordinal > cause.ordinal][:MAX_PROMPTS_AFTER]
    end = after[-1].ordinal if len(after) == MAX_PROMPTS_AFTER else 2**62
    refutations: list[Refutation] = []
    for turn in turns:
        if not cause.ordinal < turn.ordinal <= end:
            continue
        who = "u" if turn.kind == "user" else "a" if turn.kind == "assistant" else ""
        text = turn.text[:MAX_REFUTATION_CHARACTERS]
        for speaker, lowered, reason, words_of_it in REFUTES:
            if speaker != who or not has(words_of_it, "en", text):
                continue
            named, words = count_shared(turn.text[:MAX_SUBJECT_CHARACTERS], cause.text)
            if named >= 2 or (named and words >= 2) or words >= 4:
                by = _find_real_cause(cause, turn, causes)
                refutations.append(Refutation(cause.memory_seq, turn.uuid, turn.at, reason, lowered, by))
            break
    # The failure that a cause was named for, seen once more after it.
    explained = {symptom.fingerprint for symptom in _find_failures(cause, failed)}
    later = (each for each in failed if each.fingerprint in explained and cause.ordinal < each.ordinal <= end)
    if (repeated := next(later, None)) is not None:
        lowered, reason = REPEATED
        refutations.append(Refutation(cause.memory_seq, repeated.uuid, repeated.at, reason, lowered, 0))
    return refutations


def _find_rejection(proposal: StatedMemory, turns: Sequence[TranscriptTurn]) -> list[Refutation]:
    """The refutation of what an assistant proposed by the prompt right after its message; [] for none."""
    later = [turn for turn in turns if turn.ordinal > proposal.ordinal and turn.kind in ("user", "assistant")]
    if proposal.authority != "assistant" or has("failure", "en", proposal.text) or not later:
        return []  # a report of a failure is not a proposal
    answer = later[0]
    if answer.kind != "user" or not turns_down(answer.text):
        return []
    lowered, reason = TURNED_DOWN
    return [Refutation(proposal.memory_seq, answer.uuid, answer.at, reason, lowered, 0)]


def turns_down(answer: str) -> bool:
    """Whether a prompt begins with a refusal of what was just proposed: "No, keep it in Postgres"."""
    first = next(iter(split_sentences(quotations.blank_quotations(answer[:MAX_REFUTATION_CHARACTERS]))), "")
    read = parse(first)
    refuses = (
        read.refutes or (read.words[:1] == ("no",) and read.lasting == "ban") or read.words[:2] == ("i'd", "rather")
    )
    agrees = opens("agrees", "en", first) or opens("praise", "en", first)
    return refuses and not read.is_of_moment and read.kind != "asks" and not agrees


def _find_real_cause(cause: StatedMemory, turn: TranscriptTurn, causes: Sequence[StatedMemory]) -> int:
    """Returns the memory with the real cause: of the refuting turn, else the next on the same subject; 0 if none."""
    later = [each for each in causes if each.ordinal >= turn.ordinal and each.memory_seq != cause.memory_seq]
    own = (each for each in later if each.uuid == turn.uuid)
    near = (each for each in later if is_same_subject(each.text, cause.text))
    real = next(own, None) or next(near, None)
    return real.memory_seq if real else 0
