"""What Claude Code's tools were given or gave back in words: plans, commits' messages, agents' reports, summaries.

Read from what is stored, which may be cut in its middle: a sentence beside the cut is left out. A call that was turned
down or failed said nothing, for what it says did not come to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from csmd.capture.hosts import claude_work

Said = Literal["plan", "commit", "report"]

#: Where both ends of a long text are kept: the lines that the cut goes through, and what stands between them.
_CUT = re.compile(r"[^\n]*\n\[csmd: \d+ bytes left out[^\]\n]*\]\n[^\n]*")
_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user")
_COMMITS = re.compile(r"\bgit\b(?: -\S+(?: [^-\s]\S*)?)* commit\b")
#: A message as an argument: in a here-document, in double quotes, in single ones.
_MESSAGE = re.compile(
    r"<<-?\s*(['\"]?)(?P<mark>\w+)\1[^\n]*\n(?P<here>.*?)\n\s*(?P=mark)\b"
    r"|\s(?:-\w*m|--message)[ =]?\s*(?:\"(?P<double>(?:[^\"\\$]|\\.|\$(?!\())*)\"|'(?P<single>[^']*)')",
    re.DOTALL,
)
#: What stands in a message for programs: who signed, and what made it.
_TRAILER = re.compile(r"^(?:[A-Z][\w-]{1,40}: \S.*|\W*Generated with\b.*|\W*<[^>]+@[^>]+>)$")
#: A subject's kind as some put it before it ("fix(store): ...").
_KIND_OF_COMMIT = re.compile(r"^[a-z]{2,10}(?:\([^)\n]{1,40}\))?!?: (?=\S)")
_NOT_ONE = re.compile(r"(?:Merge|Revert|fixup!|squash!|wip)\b", re.IGNORECASE)
#: What the host puts behind an agent's report, and how it says that there is none yet.
_BEHIND_REPORT = re.compile(r"agentId: |<usage>")
_LAUNCHED = re.compile(r"\s*Async agent launched\b")
_NOTIFIED = re.compile(r"\s*<task-notification>.*?<status>completed</status>.*?<result>(.*)</result>", re.DOTALL)
#: The parts of a compaction's summary, and those that tell what was learned; the rest lists what was done and asked.
_PART = re.compile(r"^ {0,3}(?:#{1,4} )?\d{1,2}\. {1,3}\**([A-Z][^\n:*]{3,60})\**:?\**[ \t]*$", re.MULTILINE)
_LEARNED = re.compile(r"^(?:errors?\b|problems? solv|key (?:technical )?(?:decisions|learnings|constraints))", re.I)
_SUMMARY = re.compile(r"^(?:Summary:|<summary>)\s*$", re.MULTILINE)


def plan(given: str, result: str) -> str:
    """The plan that was put before the user, by the call's stored input; "" where they did not take it."""
    return "" if _is_off(result) else _whole(claude_work.field(given, "plan"), given)


def commit(given: str, result: str) -> str:
    """The message of the commit that a command made, its subject a sentence, without trailers; "" for none."""
    command = claude_work.field(given, "command")
    made = _COMMITS.search(command)
    if made is None or _is_off(result) or (result and claude_work.result(result) != "passed"):
        return ""
    found = [one["here"] or one["double"] or one["single"] or "" for one in _MESSAGE.finditer(command, made.end())]
    lines = [line.strip() for line in "\n\n".join(found).splitlines()]
    kept = [line for line in lines if not _TRAILER.match(line) or _KIND_OF_COMMIT.match(line)]
    said = "\n".join(kept).strip()
    subject, _, body = _KIND_OF_COMMIT.sub("", said, count=1).partition("\n")
    ended = subject if not body or subject.endswith((".", "!", "?", ":")) else f"{subject}."
    return "" if _NOT_ONE.match(said) else f"{ended}\n{body}".strip()


def report(given: str, result: str) -> str:
    """What an agent gave back; "" where it was stopped, failed, or is still at work."""
    del given
    if _is_off(result) or _LAUNCHED.match(result) or claude_work.result(result) != "passed":
        return ""
    said = _BEHIND_REPORT.split(result, maxsplit=1)[0]
    return (_CUT.sub("\n", said) if "\n[csmd: " in said else said).strip()


def notified(said: str) -> str:
    """What an agent that worked in the background gave back, by the notification of its end; "" for none."""
    found = _NOTIFIED.match(said)
    return found[1].strip() if found else ""


def summary(said: str) -> str:
    """What a compaction's summary tells of what was learned; the whole of one without the host's parts."""
    parts = _PART.split(_SUMMARY.split(said)[-1])
    told = zip(parts[1::2], parts[2::2], strict=True)
    if len(parts) > 1:
        return "\n\n".join(f"## {title}\n{body.strip()}" for title, body in told if _LEARNED.match(title))
    return said.partition("\n")[2] if claude_work.is_continued(said) else said


#: Tools that say something, what it is, where it stands, and how it is read from a call's input and result.
AGENTS = ("Task", "Agent")
CALLS: dict[str, tuple[Said, Callable[[str, str], str]]] = {
    "ExitPlanMode": ("plan", plan),
    "Bash": ("commit", commit),
    **dict.fromkeys(AGENTS, ("report", report)),
}
#: Of a tool whose calls mostly say nothing, what those hold that may.
HOLDING: dict[str, str] = {"Bash": "git%commit"}


def _is_off(result: str) -> bool:
    return bool(_INTERRUPTED.match(result)) or claude_work.result(result) == "rejected"


def _whole(said: str, given: str) -> str:
    """A field's text, without the line that a cut of the input goes through."""
    return said.rpartition("\n")[0] if "\n[csmd: " in given else said
