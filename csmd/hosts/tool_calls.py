"""The stored form of tool calls, which has Claude Code's names and fields for every assistant: making and reading it."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import PurePath
from string import ascii_letters, digits
from typing import Any, Literal, NamedTuple

from csmd import wire
from csmd.errors import BadInput
from csmd.json_fields import iter_strings, mappings, parse_object
from csmd.paths import is_shared_name

CallText = Literal["plan", "commit", "report"]
#: A stored call: the tool's name and its input.
Call = tuple[str, dict[str, Any]]

#: The beginning of the stored result of a call that the user rejected.
REJECTED_RESULT = "The user doesn't want to proceed with this tool use"
#: The files of a patch, each with what is done to it.
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)

#: The mark of a text whose middle was cut out, with the two lines that were cut.
_CUT = re.compile(r"[^\n]*\n\[csmd: \d+ bytes left out[^\]\n]*\]\n[^\n]*")
_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user")
_COMMITS = re.compile(r"\bgit\b(?: -\S+(?: [^-\s]\S*)?)* commit\b")
#: A message as an argument: in a here-document, in double quotes or in single quotes.
_MESSAGE = re.compile(
    r"<<-?\s*(['\"]?)(?P<mark>\w{1,40}+)\1[^\n]*\n(?P<here>.*?)\n[ \t]*(?P=mark)\b"
    r"|\s(?:-\w*m|--message)[ =]?\s*(?:\"(?P<double>(?:[^\"\\$]|\\.|\$(?!\())*)\"|'(?P<single>[^']*)')",
    re.DOTALL,
)
#: Most characters of a command that are searched for a message.
MAX_COMMAND_CHARACTERS = 20_000
_ENDS_COMMAND = re.compile(r"&&|\|\||[;\n]")
#: Trailers of a commit's message: who signed it, and which program wrote it.
_TRAILER = re.compile(r"^(?:[A-Z][\w-]{1,40}: \S.*|\W*Generated with\b.*|\W*<[^>]+@[^>]+>)$")
#: The kind of a commit before its subject ("fix(store): ...").
_KIND_OF_COMMIT = re.compile(r"^[a-z]{2,10}(?:\([^)\n]{1,40}\))?!?: (?=\S)")
#: Commits whose message describes no work.
_NO_WORK = re.compile(r"(?:Merge|Revert|fixup!|squash!|wip)\b", re.IGNORECASE)
#: The host's appendix to an agent's report, and its notices of an agent's start and end.
_AFTER_REPORT = re.compile(r"agentId: |<usage>")
_LAUNCHED = re.compile(r"\s*Async agent launched\b")
_NOTIFIED = re.compile(r"\s*<task-notification>.*?<status>completed</status>.*?<result>(.*)</result>", re.DOTALL)
#: Headings in a compaction's summary, and those of its parts about lessons; other parts list work and requests.
_HEADING = re.compile(r"^ {0,3}(?:#{1,4} )?\d{1,2}\. {1,3}\**([A-Z][^\n:*]{3,60})\**:?\**[ \t]*$", re.MULTILINE)
_LEARNED = re.compile(r"^(?:errors?\b|problems? solv|key (?:technical )?(?:decisions|learnings|constraints))", re.I)
_SUMMARY = re.compile(r"^(?:Summary:|<summary>)\s*$", re.MULTILINE)


def read_plan(arguments: str, result: str) -> str:
    """Returns the plan that was presented to the user, by the call's stored input; "" if the user rejected it."""
    return "" if _is_stopped(result) else _without_cut_line(read_field(arguments, "plan"), arguments)


def read_commit(arguments: str, result: str) -> str:
    """Returns the message of the commit that a command made, with its subject as a sentence and without trailers; "" if
    it made none."""
    command = read_field(arguments, "command")[:MAX_COMMAND_CHARACTERS].replace("\\\n", " ")
    program = _COMMITS.search(command)
    if program is None or _is_stopped(result) or (result and classify_result(result) != "passed"):
        return ""
    paragraphs, index = list[str](), program.end()
    for argument in _MESSAGE.finditer(command, index):
        if _ENDS_COMMAND.search(command, index, argument.start()):  # the argument is another program's
            break
        paragraphs.append(argument["here"] or argument["double"] or argument["single"] or "")
        index = argument.end()
    lines = [line.strip() for line in "\n\n".join(paragraphs).splitlines()]
    message_lines = [line for line in lines if not _TRAILER.match(line) or _KIND_OF_COMMIT.match(line)]
    message = "\n".join(message_lines).strip()
    subject, _, body = _KIND_OF_COMMIT.sub("", message, count=1).partition("\n")
    sentence = subject if not body or subject.endswith((".", "!", "?", ":")) else f"{subject}."
    return "" if _NO_WORK.match(message) else f"{sentence}\n{body}".strip()


def read_report(_arguments: str, result: str) -> str:
    """Returns an agent's report; "" if the agent was stopped, failed, or is still at work."""
    if _is_stopped(result) or _LAUNCHED.match(result) or classify_result(result) != "passed":
        return ""
    text = _AFTER_REPORT.split(result, maxsplit=1)[0]
    return (_CUT.sub("\n", text) if "\n[csmd: " in text else text).strip()


def read_notified_report(text: str) -> str:
    """Returns the report of an agent that worked in the background, by the notification of its end; "" if it holds
    none."""
    match = _NOTIFIED.match(text)
    return match[1].strip() if match else ""


def extract_learned(summary: str) -> str:
    """Returns the parts of a compaction's summary about what was learned; the whole summary if it has none of the
    host's headings."""
    parts = _HEADING.split(_SUMMARY.split(summary)[-1])
    if len(parts) > 1:
        titled = zip(parts[1::2], parts[2::2], strict=True)
        return "\n\n".join(f"## {title}\n{body.strip()}" for title, body in titled if _LEARNED.match(title))
    return summary.partition("\n")[2] if is_continued(summary) else summary


#: The stored names of tools. Code outside of `hosts` uses these names.
SHELL = "Bash"
WRITE = "Write"
TODO_LIST = "TodoWrite"
SHELLS = frozenset({SHELL, "PowerShell"})
TEXT_WRITERS = frozenset({"Edit", "MultiEdit", WRITE})
WRITERS = TEXT_WRITERS | {"NotebookEdit"}
READ = "Read"
READERS = frozenset({READ, "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch"})
AGENTS = ("Task", "Agent")
#: Tool whose calls contain a text -> the kind of text, and the function that reads it from a call's input and result.
CALLS: dict[str, tuple[CallText, Callable[[str, str], str]]] = {
    "ExitPlanMode": ("plan", read_plan),
    SHELL: ("commit", read_commit),
    **dict.fromkeys(AGENTS, ("report", read_report)),
}
#: Tool whose calls rarely contain a text -> a LIKE pattern for calls that may.
CALL_PATTERNS: dict[str, str] = {SHELL: "git%commit"}


def _is_stopped(result: str) -> bool:
    return bool(_INTERRUPTED.match(result)) or classify_result(result) == "rejected"


def _without_cut_line(text: str, arguments: str) -> str:
    """Returns a field's text, without its last line if the input was cut."""
    return text.rpartition("\n")[0] if "\n[csmd: " in arguments else text


#: The suffix of a transcript's file name in a path, a command or a program, and the characters before it.
_SUFFIX = re.compile(r"\.(?:jsonl|db)\b", re.ASCII)
_IN_NAMES = f"{ascii_letters}{digits}_.-"
MAX_NAME_CHARACTERS = 120
#: Parts of the names of MCP servers' tools that write the file they name.
_WRITER = re.compile(r"write|edit|append|create|move|copy|upload|patch", re.IGNORECASE)
#: Redirections to another descriptor or a device, which write no file.
_NO_FILE = re.compile(r"\d?>{1,2}\s?(?:&\d|/dev/\w{1,10})")
#: The forms of writing a file in a shell line or a program in it.
_WRITES = re.compile(
    r">{1,2}\s{0,4}[^\s|;&<>]{0,300}\.(?:jsonl|db)\b"
    r"|\b(?:insert\s+(?:or\s+\w+\s+)?into|replace\s+into|delete\s+from|update\s+(?:or\s+\w+\s+)?\w+\s+set)\b"
    r"|\b(?:tee|cp|mv|dd|ln|install|rsync|truncate|sponge|patch)\b"
    r"|\b(?:sed|perl|ruby)\b[^|;&\n]{0,200}?\s-[a-zA-Z]{0,4}i"
    r"|\bopen\([^)\n]{0,200}?[\"'][rb]?[wax]b?\+?[\"']"
    r"|\bwrite_?(?:text|bytes|file|line)|\.write\(|\.dump\(|appendFile",
    re.IGNORECASE,
)


#: A command line that copies, with plain words and options that do not change which file is written.
_COPY = re.compile(
    r"(?m)(?:^|[;&|])[ \t]{0,40}(?:cp|rsync|install)[ \t]([\w./~@%+=:,\"' \t-]{1,2000})(?=[;&|\n]|\Z)", re.ASCII
)
_COPY_OPTIONS = re.compile(r"-[aprRfnuvzm]+")
#: The name of a session's directory, for transcripts whose file name does not name the session.
_SESSION = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
#: The largest number of sessions in one call that are considered.
MAX_SESSIONS = 20


def find_written_transcripts(tool: str, arguments: Any) -> tuple[str, ...]:
    """Returns the names (`paths.name_of_transcript`) of the transcripts that a tool call writes, by its complete
    decoded input."""
    if tool in READERS:
        return ()
    # Decoded, because in JSON a line break and a quote would be part of a name; on one line, because a call may span
    # lines.
    texts = (_COPY.sub(_rewrite_copy, text) if tool == SHELL else text for text in iter_strings(arguments))
    line = " ".join(texts).replace("\n", " ")
    folders = list(itertools.islice(dict.fromkeys(_SESSION.findall(line)), MAX_SESSIONS))
    names = tuple(sorted({name for end in _SUFFIX.finditer(line) for name in _find_names(line, end, folders)}))
    if not names or tool in WRITERS or _WRITER.search(tool):
        return names
    return names if _WRITES.search(_NO_FILE.sub(" ", line)) else ()


def _find_names(line: str, end: re.Match[str], folders: list[str]) -> Iterable[str]:
    """Returns the names with this suffix; a shared name without its directory may be in any of `folders`."""
    stem = _name_before(line, end.start())
    name = stem + end[0]
    if not stem or not is_shared_name(name):
        return [name] if stem else []
    begin = end.start() - len(stem)
    folder = _name_before(line, begin - 1) if line[begin - 1 : begin] == "/" else ""
    is_variable = line.endswith(("$", "*"), 0, max(0, begin - 1 - len(folder)))
    if folder.strip(".") and not is_variable:
        return [f"{folder}/{name}"]
    return [f"{folder}/{name}" for folder in ([stem] if end[0] == ".db" else folders)]


def _rewrite_copy(copy: re.Match[str]) -> str:
    """Returns a copying command line as redirections to the files that it writes; unchanged if these are not
    obvious."""
    try:
        words = shlex.split(copy[1])
    except ValueError:
        return copy[0]
    options = [word for word in words if word.startswith("-")]
    *sources, target = [word for word in words if not word.startswith("-")] or [""]
    if not sources or not all(map(_COPY_OPTIONS.fullmatch, options)) or any(" " in word for word in words):
        return copy[0]
    suffix = "" if target.endswith("/") else PurePath(target).suffix
    # A target without a suffix may be a directory, and the files in it keep their names.
    files = [target] if suffix else [f"{target.rstrip('/')}/{PurePath(source).name}" for source in sources]
    return "\n" + " ".join(f"> {file}" for file in files if not suffix or suffix in (".jsonl", ".db"))


def _name_before(line: str, end: int) -> str:
    """Returns the file name whose suffix begins at this offset, without the suffix; "" if there is none."""
    before = line[max(0, end - MAX_NAME_CHARACTERS) : end]
    return before[len(before.rstrip(_IN_NAMES)) :]


DeedKind = Literal["run", "change", "look", "todo", "task", "task_state", "plan", "ask"]
#: The progress of an entry of a to-do list; "" if a call does not state it.
Progress = Literal["done", "doing", "open", ""]
Result = Literal["passed", "failed", "rejected"]

#: Tool -> the kind of its deeds, and the field with their object.
DEEDS: dict[str, tuple[DeedKind, str]] = {
    "Bash": ("run", "command"), "Edit": ("change", "file_path"), "Write": ("change", "file_path"),
    "MultiEdit": ("change", "file_path"), "NotebookEdit": ("change", "notebook_path"), "Read": ("look", "file_path"),
    "TodoWrite": ("todo", "todos"), "TaskCreate": ("task", "subject"), "TaskUpdate": ("task_state", "taskId"),
    "ExitPlanMode": ("plan", "plan"), "AskUserQuestion": ("ask", "questions"),
}  # fmt: skip
#: The beginnings of results of calls that a person rejected, and of those that failed.
_REJECTED = re.compile(r"The user doesn't want to (?:proceed with this tool use|take this action)")
_FAILED = re.compile(r"Exit code [1-9]|<tool_use_error>|Error: |Permission to use \w+ with")
#: The beginning of a session that is to carry out a plan, and the reference to the session that made the plan.
_PLAN = re.compile(r"\s*Implement the following plan:\s+")
_TRANSCRIPT = re.compile(r"read the full transcript at: \S*?/([0-9a-f-]{36})\.jsonl")
_PLAN_ENDS = "\nIf you need specific details from before exiting plan mode"
#: The beginning of a summary of an earlier conversation.
_CONTINUED = re.compile(r"\s*This session is being continued from a previous conversation")
_TASK_NUMBER = re.compile(r"#(\d{1,6})\b")
DONE_STATUSES = ("completed", "deleted", "cancelled")


class Deed(NamedTuple):
    """The deed of a call and its object; `items` are the entries of a to-do list, each with its progress."""

    kind: DeedKind
    subject: str
    items: tuple[tuple[str, Progress], ...] = ()


def read_deed(tool: str, arguments: str) -> Deed | None:
    """Returns the deed of a call, by its tool and its stored input; None if the tool is not in DEEDS."""
    if tool not in DEEDS:
        return None
    kind, name = DEEDS[tool]
    if kind == "todo":
        return Deed(kind, "", _read_entries(arguments))
    if kind == "task_state":
        return Deed(kind, read_field(arguments, name), (("", _read_progress(read_field(arguments, "status"))),))
    subject = read_field(arguments, name)
    return Deed(kind, subject) if subject else None


def classify_result(result: str) -> Result:
    """Classifies a call by the beginning of its result."""
    if _REJECTED.match(result):
        return "rejected"
    return "failed" if _FAILED.match(result) else "passed"


def read_task_number(result: str) -> str:
    """Returns the number of the task that a call created, by its result; "" if it created none."""
    match = _TASK_NUMBER.search(result)
    return match[1] if match else ""


def parse_plan_prompt(prompt: str) -> tuple[str, str]:
    """Returns the plan in a prompt that the host wrote, and the session that made it; "" for either that is missing."""
    opening = _PLAN.match(prompt)
    if not opening:
        return "", ""
    body, _, rest = prompt[opening.end() :].partition(_PLAN_ENDS)
    session = _TRANSCRIPT.search(rest)
    return body.strip(), session[1] if session else ""


def is_continued(summary: str) -> bool:
    """Whether a summary is about a conversation before its session."""
    return bool(_CONTINUED.match(summary))


def read_field(arguments: str, name: str) -> str:
    """Returns a string field of a stored input, which may have been cut."""
    match = re.search(rf'"{name}":"((?:[^"\\\n]|\\.)*)', arguments)
    if match is None:
        return ""
    try:
        return str(wire.loads(f'"{match[1]}"'))
    except BadInput:  # cut within an escape
        return match[1]


def _read_progress(status: str) -> Progress:
    """Returns the progress of an entry, by the host's word for it."""
    if status in DONE_STATUSES:
        return "done"
    return "doing" if status == "in_progress" else "open" if status else ""


def _read_entries(arguments: str) -> tuple[tuple[str, Progress], ...]:
    todos = mappings((parse_object(arguments) or {}).get("todos"))
    entries = [(todo.get("content"), _read_progress(str(todo.get("status") or "pending"))) for todo in todos]
    return tuple((content, progress) for content, progress in entries if isinstance(content, str))


def parse_patch(patch: str) -> list[Call]:
    """Returns the stored calls of a patch (`*** Update File: ...`), one for each file; [] if a text is not a patch."""
    files = list(_PATCHED.finditer(patch))
    ends = [*(file.start() for file in files[1:]), len(patch)]
    calls: list[Call] = []
    for file, end in zip(files, ends, strict=True):
        arguments = {"file_path": file[2].strip(), "patch": patch[file.end() : end].strip()}
        calls.append(("Write" if file[1] == "Add" else "Edit", arguments))
    return calls


def add_exit_code(output: str, code: str) -> str:
    """Returns the output of a command below its exit code, unless that is 0."""
    return output if code == "0" else f"Exit code {code}\n{output}"
