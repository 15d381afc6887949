"""What tools did, in neutral words, by the names and fields under which every assistant's calls are stored: Claude Code's."""

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
from csmd.hosts.json_fields import json_object, strings
from csmd.paths import is_shared_name

Said = Literal["plan", "commit", "report"]

#: The mark of a text whose middle was cut out, with the two lines that the cut goes through.
_CUT = re.compile(r"[^\n]*\n\[csmd: \d+ bytes left out[^\]\n]*\]\n[^\n]*")
_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user")
_COMMITS = re.compile(r"\bgit\b(?: -\S+(?: [^-\s]\S*)?)* commit\b")
#: A message as an argument: in a here-document, in double quotes, in single ones.
_MESSAGE = re.compile(
    r"<<-?\s*(['\"]?)(?P<mark>\w{1,40}+)\1[^\n]*\n(?P<here>.*?)\n[ \t]*(?P=mark)\b"
    r"|\s(?:-\w*m|--message)[ =]?\s*(?:\"(?P<double>(?:[^\"\\$]|\\.|\$(?!\())*)\"|'(?P<single>[^']*)')",
    re.DOTALL,
)
#: Characters of a command that are read for a message.
MOST_COMMAND = 20_000
_ENDS_COMMAND = re.compile(r"&&|\|\||[;\n]")
#: Trailers of a commit's message: who signed it, and which program made it.
_TRAILER = re.compile(r"^(?:[A-Z][\w-]{1,40}: \S.*|\W*Generated with\b.*|\W*<[^>]+@[^>]+>)$")
#: A subject's kind as some put it before it ("fix(store): ...").
_KIND_OF_COMMIT = re.compile(r"^[a-z]{2,10}(?:\([^)\n]{1,40}\))?!?: (?=\S)")
_NOT_ONE = re.compile(r"(?:Merge|Revert|fixup!|squash!|wip)\b", re.IGNORECASE)
#: What the host appends to an agent's report, and how it reports that there is none yet.
_BEHIND_REPORT = re.compile(r"agentId: |<usage>")
_LAUNCHED = re.compile(r"\s*Async agent launched\b")
_NOTIFIED = re.compile(r"\s*<task-notification>.*?<status>completed</status>.*?<result>(.*)</result>", re.DOTALL)
#: Headings of a compaction's summary, and those of what was learned; the other parts list what was done and asked.
_PART = re.compile(r"^ {0,3}(?:#{1,4} )?\d{1,2}\. {1,3}\**([A-Z][^\n:*]{3,60})\**:?\**[ \t]*$", re.MULTILINE)
_LEARNED = re.compile(r"^(?:errors?\b|problems? solv|key (?:technical )?(?:decisions|learnings|constraints))", re.I)
_SUMMARY = re.compile(r"^(?:Summary:|<summary>)\s*$", re.MULTILINE)


def plan(given: str, result: str) -> str:
    """The plan that was put before the user, by the call's stored input; "" where they did not take it."""
    return "" if _is_off(result) else _without_cut_line(field(given, "plan"), given)


def commit(given: str, result: str) -> str:
    """The message of the commit that a command made, its subject a sentence, without trailers; "" for none."""
    command = field(given, "command")[:MOST_COMMAND].replace("\\\n", " ")
    made = _COMMITS.search(command)
    if made is None or _is_off(result) or (result and how_it_ended(result) != "passed"):
        return ""
    found, at = list[str](), made.end()
    for one in _MESSAGE.finditer(command, at):
        if _ENDS_COMMAND.search(command, at, one.start()):  # what follows is another program's
            break
        found.append(one["here"] or one["double"] or one["single"] or "")
        at = one.end()
    lines = [line.strip() for line in "\n\n".join(found).splitlines()]
    kept = [line for line in lines if not _TRAILER.match(line) or _KIND_OF_COMMIT.match(line)]
    said = "\n".join(kept).strip()
    subject, _, body = _KIND_OF_COMMIT.sub("", said, count=1).partition("\n")
    ended = subject if not body or subject.endswith((".", "!", "?", ":")) else f"{subject}."
    return "" if _NOT_ONE.match(said) else f"{ended}\n{body}".strip()


def report(given: str, result: str) -> str:
    """What an agent gave back; "" where it was stopped, failed, or is still at work."""
    del given
    if _is_off(result) or _LAUNCHED.match(result) or how_it_ended(result) != "passed":
        return ""
    said = _BEHIND_REPORT.split(result, maxsplit=1)[0]
    return (_CUT.sub("\n", said) if "\n[csmd: " in said else said).strip()


def notified(said: str) -> str:
    """What an agent that worked in the background gave back, by the notification of its end; "" for none."""
    found = _NOTIFIED.match(said)
    return found[1].strip() if found else ""


def summary(said: str) -> str:
    """The parts of a compaction's summary on what was learned; all of a summary without the host's headings."""
    parts = _PART.split(_SUMMARY.split(said)[-1])
    told = zip(parts[1::2], parts[2::2], strict=True)
    if len(parts) > 1:
        return "\n\n".join(f"## {title}\n{body.strip()}" for title, body in told if _LEARNED.match(title))
    return said.partition("\n")[2] if is_continued(said) else said


#: The names under which calls of every assistant are stored. Outside of `hosts` a tool is known by what it does.
SHELL, CREATES, TODO_LIST = "Bash", "Write", "TodoWrite"
SHELLS = frozenset({SHELL, "PowerShell"})
TEXT_WRITERS = frozenset({"Edit", "MultiEdit", CREATES})
WRITERS = TEXT_WRITERS | {"NotebookEdit"}
LOOKS = "Read"
READERS = frozenset({LOOKS, "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch"})
AGENTS = ("Task", "Agent")
#: Tools whose calls hold a text: what it is, and how it is read from a call's input and result.
CALLS: dict[str, tuple[Said, Callable[[str, str], str]]] = {
    "ExitPlanMode": ("plan", plan),
    SHELL: ("commit", commit),
    **dict.fromkeys(AGENTS, ("report", report)),
}
#: Of a tool whose calls mostly hold none, a LIKE pattern of those that may.
HOLDING: dict[str, str] = {SHELL: "git%commit"}


def _is_off(result: str) -> bool:
    return bool(_INTERRUPTED.match(result)) or how_it_ended(result) == "rejected"


def _without_cut_line(said: str, given: str) -> str:
    """A field's text, without the line that a cut of the input goes through."""
    return said.rpartition("\n")[0] if "\n[csmd: " in given else said


#: A transcript's file name ends so, and has these signs before it, in a path, a command or a program.
_SUFFIX = re.compile(r"\.(?:jsonl|db)\b", re.ASCII)
_IN_NAMES = f"{ascii_letters}{digits}_.-"
LONGEST_NAME = 120
#: Parts of the names of other makers' tools that write the file they name.
_WRITER = re.compile(r"write|edit|append|create|move|copy|upload|patch", re.IGNORECASE)
#: Ways in which a shell line or a program in it writes. What goes to another descriptor or to nowhere writes nothing.
_NOWHERE = re.compile(r"\d?>{1,2}\s?(?:&\d|/dev/\w{1,10})")
_WRITES = re.compile(
    r">{1,2}\s{0,4}[^\s|;&<>]{0,300}\.(?:jsonl|db)\b"
    r"|\b(?:insert\s+(?:or\s+\w+\s+)?into|replace\s+into|delete\s+from|update\s+(?:or\s+\w+\s+)?\w+\s+set)\b"
    r"|\b(?:tee|cp|mv|dd|ln|install|rsync|truncate|sponge|patch)\b"
    r"|\b(?:sed|perl|ruby)\b[^|;&\n]{0,200}?\s-[a-zA-Z]{0,4}i"
    r"|\bopen\([^)\n]{0,200}?[\"'][rb]?[wax]b?\+?[\"']"
    r"|\bwrite_?(?:text|bytes|file|line)|\.write\(|\.dump\(|appendFile",
    re.IGNORECASE,
)


#: A command line that copies, of plain words and options that change nothing of which file is written.
_COPY = re.compile(
    r"(?m)(?:^|[;&|])[ \t]{0,40}(?:cp|rsync|install)[ \t]([\w./~@%+=:,\"' \t-]{1,2000})(?=[;&|\n]|\Z)", re.ASCII
)
_COPY_OPTIONS = re.compile(r"-[aprRfnuvzm]+")
#: What the directory of a session is called whose file is named after no session.
_SESSION = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
#: Of the sessions named in one call, how many at most.
MOST_SESSIONS = 20


def transcripts_written(tool: str, given: Any) -> tuple[str, ...]:
    """The names (`paths.name_of_transcript`) of the transcripts that a tool call with this decoded input, whole and as
    it was made, writes."""
    if tool in READERS:
        return ()
    # Decoded, for in JSON a line's end and a quote would be part of a name; on one line, as a call may be spread.
    texts = (_COPY.sub(_written_copies, text) if tool == SHELL else text for text in strings(given))
    said = " ".join(texts).replace("\n", " ")
    folders = list(itertools.islice(dict.fromkeys(_SESSION.findall(said)), MOST_SESSIONS))
    names = tuple(sorted({name for end in _SUFFIX.finditer(said) for name in _names_ending(said, end, folders)}))
    if not names or tool in WRITERS or _WRITER.search(tool):
        return names
    return names if _WRITES.search(_NOWHERE.sub(" ", said)) else ()


def _names_ending(said: str, end: re.Match[str], folders: list[str]) -> Iterable[str]:
    """The names of which this is the suffix; a shared one that stands without its directory may be in any of `folders`."""
    stem = _name_before(said, end.start())
    name = stem + end[0]
    if not stem or not is_shared_name(name):
        return [name] if stem else []
    begin = end.start() - len(stem)
    folder = _name_before(said, begin - 1) if said[begin - 1 : begin] == "/" else ""
    is_variable = said.endswith(("$", "*"), 0, max(0, begin - 1 - len(folder)))
    if folder.strip(".") and not is_variable:
        return [f"{folder}/{name}"]
    return [f"{folder}/{name}" for folder in ([stem] if end[0] == ".db" else folders)]


def _written_copies(copy: re.Match[str]) -> str:
    """A copying command line as redirections to the files that it writes; as it is where that is not plain."""
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


def _name_before(said: str, at: int) -> str:
    """The file name whose suffix begins at this place, without it; "" for none."""
    before = said[max(0, at - LONGEST_NAME) : at]
    return before[len(before.rstrip(_IN_NAMES)) :]


DeedKind = Literal["run", "change", "look", "todo", "task", "task_state", "plan", "ask"]
#: How far an entry of a to-do list is; "" where a call does not tell.
Progress = Literal["done", "doing", "open", ""]
Result = Literal["passed", "failed", "rejected"]

#: Tools that do something or look at a file, what kind of thing, and the field that says to what.
DEEDS: dict[str, tuple[DeedKind, str]] = {
    "Bash": ("run", "command"),
    "Edit": ("change", "file_path"),
    "Write": ("change", "file_path"),
    "MultiEdit": ("change", "file_path"),
    "NotebookEdit": ("change", "notebook_path"),
    "Read": ("look", "file_path"),
    "TodoWrite": ("todo", "todos"),
    "TaskCreate": ("task", "subject"),
    "TaskUpdate": ("task_state", "taskId"),
    "ExitPlanMode": ("plan", "plan"),
    "AskUserQuestion": ("ask", "questions"),
}
#: How results begin of calls that a person turned down, and of those that failed.
_REJECTED = re.compile(r"The user doesn't want to (?:proceed with this tool use|take this action)")
_FAILED = re.compile(r"Exit code [1-9]|<tool_use_error>|Error: |Permission to use \w+ with")
#: How the host begins a session that is to carry out a plan, and how it names the session the plan was made in.
_PLAN = re.compile(r"\s*Implement the following plan:\s+")
_TRANSCRIPT = re.compile(r"read the full transcript at: \S*?/([0-9a-f-]{36})\.jsonl")
_PLAN_ENDS = "\nIf you need specific details from before exiting plan mode"
#: How a summary of an earlier conversation begins.
_CONTINUED = re.compile(r"\s*This session is being continued from a previous conversation")
_TASK_NUMBER = re.compile(r"#(\d{1,6})\b")
DONE = ("completed", "deleted", "cancelled")


class Deed(NamedTuple):
    """One call: what it did to what; `items` are the entries of a to-do list, each with how far it is."""

    kind: DeedKind
    subject: str
    items: tuple[tuple[str, Progress], ...] = ()


def deed(tool: str, given: str) -> Deed | None:
    """What a call did, by its tool and its stored input; None for a tool that is not in DEEDS."""
    if tool not in DEEDS:
        return None
    kind, name = DEEDS[tool]
    if kind == "todo":
        return Deed(kind, "", _entries(given))
    if kind == "task_state":
        return Deed(kind, field(given, name), (("", _progress(field(given, "status"))),))
    subject = field(given, name)
    return Deed(kind, subject) if subject else None


def how_it_ended(said: str) -> Result:
    """How a call ended, by the beginning of what came back."""
    if _REJECTED.match(said):
        return "rejected"
    return "failed" if _FAILED.match(said) else "passed"


def task_number(said: str) -> str:
    """The number that a new task was given, by what came back; "" for none."""
    found = _TASK_NUMBER.search(said)
    return found[1] if found else ""


def plan_in_prompt(said: str) -> tuple[str, str]:
    """The plan in a prompt of the host's and the session it was made in; "" for what is not there."""
    opened = _PLAN.match(said)
    if not opened:
        return "", ""
    body, _, rest = said[opened.end() :].partition(_PLAN_ENDS)
    named = _TRANSCRIPT.search(rest)
    return body.strip(), named[1] if named else ""


def is_continued(summary: str) -> bool:
    """Whether a summary is of a conversation before its session."""
    return bool(_CONTINUED.match(summary))


def field(given: str, name: str) -> str:
    """A string field of a stored input, also of one that was cut."""
    found = re.search(rf'"{name}":"((?:[^"\\\n]|\\.)*)', given)
    try:
        return str(wire.loads(f'"{found[1]}"')) if found else ""
    except BadInput:  # cut within an escape
        return found[1] if found else ""


def _progress(status: str) -> Progress:
    """How far an entry is, by the host's word for it."""
    if status in DONE:
        return "done"
    return "doing" if status == "in_progress" else "open" if status else ""


def _entries(given: str) -> tuple[tuple[str, Progress], ...]:
    todos = (json_object(given) or {}).get("todos")
    return tuple(
        (todo["content"], _progress(str(todo.get("status") or "pending")))
        for todo in (todos if isinstance(todos, list) else ())
        if isinstance(todo, dict) and isinstance(todo.get("content"), str)
    )
