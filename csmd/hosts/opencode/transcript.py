"""The sessions of OpenCode and its fork Kilo, rows of a database, to turns and token usage.

`csmd.capture.transcripts` makes lines of them: an object for the session, and one for each message with its parts. A fork
copies messages under new ids with their old times and texts, so a turn is known by its message's time, role and a hash of
its texts, which a fork shares, and by its place in it. A sub-agent has a session of its own.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from csmd import wire
from csmd.errors import BadInput
from csmd.exclusions import Withheld
from csmd.hosts.adapter import Opened, Reading, ReadLine, Took, quoted_answers, refuse, spoken, tokens
from csmd.hosts.json_fields import json_object, mapping, moment, string
from csmd.hosts.labels import label
from csmd.hosts.stored_calls import Call, call_turns, result_turn, with_exit_code
from csmd.hosts.stored_ids import LONGEST_ID, session_id, stream
from csmd.privacy.redaction import Removed, redact
from csmd.values import Turn
from csmd.vocabulary import TurnKind

OPENCODE, KILO = "opencode", "kilo"
#: Host -> its database, in its directory of data.
DATABASES: Mapping[str, str] = {OPENCODE: "opencode.db", KILO: "kilo.db"}
#: The context window where nobody says another one.
WINDOW = 200_000

_FIRST = re.compile(rb'\{"database":"(\w*)')
_SESSION = re.compile(r"ses_\w+", re.ASCII)
#: How a session begins that was not given a title yet.
_UNTITLED = re.compile(r"(?:New|Child) session - \d{4}-")
#: How csmd's plugin marks the text that a slash command stands for.
_COMMAND = "csmd_command"
#: The tool that asks the user.
_ASKS = "question"
#: Tools by the names under which they are stored.
_TOOLS = {
    "bash": "Bash", "read": "Read", "write": "Write", "edit": "Edit", "multiedit": "MultiEdit", "glob": "Glob",
    "grep": "Grep", "list": "LS", "todowrite": "TodoWrite", "task": "Task", "webfetch": "WebFetch", "websearch": "WebSearch",
    _ASKS: "AskUserQuestion",
}  # fmt: skip
#: Fields of their input by the names under which they are stored.
_FIELDS = {"filePath": "file_path", "oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}
#: What a tool's error says that a person turned down.
_TURNED_DOWN = re.compile(r"The user rejected permission to use this specific tool call")
_REJECTED = "The user doesn't want to proceed with this tool use"


def is_transcript(host: str, beginning: bytes) -> bool:
    """Whether a transcript's first bytes are those of a session of this host; a database by another name is OpenCode's."""
    first = _FIRST.match(beginning)
    return first is not None and (first[1].decode() == KILO) == (host == KILO)


def place_of(root: str, inside: str) -> tuple[str, str] | None:
    """(project directory, session) of a session: all lie in one database, whatever their project is."""
    return (root, inside) if _SESSION.fullmatch(inside) else None


def titles_in(host: str, beginning: bytes) -> dict[str, str]:
    """The title of the session of which these are the first bytes; {} for a sub-agent's."""
    head = json_object(beginning)
    ident, title = (label(head, "id", LONGEST_ID), string(head, "title")) if head else ("", "")
    if not head or not ident or string(head, "root") != ident or not title or _UNTITLED.match(title):
        return {}
    return {session_id(host, ident): redact(wire.clean(title), Counter())}


def typed(text: str) -> tuple[str, bool]:
    """What was asked, and whether a person typed it: `opencode run` puts a prompt with spaces into quotes."""
    inner = text.strip()
    if len(inner) > 1 and inner[0] == inner[-1] == '"':
        return inner[1:-1].replace('\\"', '"'), False
    return text, True


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Whose messages are read; `by_run` is whether `opencode run` began it, in which nobody can be asked."""

    host: str
    session: str
    agent: str
    version: str
    cwd: str
    by_run: bool

    def key(self, name: str) -> str:
        """What a message of this name is known by. Sub-agents are asked the same at one moment, and no fork copies theirs."""
        return f"{self.host}:{self.agent}:{name}" if self.agent else f"{self.host}:{name}"


def session_of(host: str, beginning: bytes) -> Session | None:
    """The session by its first line; None where that names none."""
    head = json_object(beginning)
    ident = label(head, "id", LONGEST_ID) if head else ""
    if not head or not ident:
        return None
    root = label(head, "root", LONGEST_ID) or ident
    rules: object = None
    with contextlib.suppress(BadInput):
        rules = wire.loads(string(head, "permission"))
    return Session(
        host=host,
        session=session_id(host, root),
        agent="" if root == ident else ident,
        version=label(head, "version", 40),
        cwd=redact(wire.clean(string(head, "cwd")), Counter()),
        by_run=isinstance(rules, list) and any(_denies_questions(rule) for rule in rules),
    )


def _denies_questions(rule: object) -> bool:
    return isinstance(rule, dict) and rule.get("permission") == "question" and rule.get("action") == "deny"


def read_from(host: str, opened: Opened) -> ReadLine:
    """How the messages of a session are read; each stands for itself."""
    session, titles = session_of(host, opened.beginning), titles_in(host, opened.beginning)
    if session is None:
        return refuse

    def read_next(line: bytes, into: Reading, *, tool_limit: int) -> None:
        read_message(line, into, session, tool_limit=tool_limit)
        into.titles |= titles
        into.title_at |= dict.fromkeys(titles, len(into.turns))

    return read_next


def read_message(line: bytes, into: Reading, session: Session, *, tool_limit: int) -> None:
    """Adds what one message of a session holds; BadInput when it is malformed."""
    value = wire.loads(line)
    message = mapping(value, "message") if isinstance(value, dict) else {}
    if message.get("role") not in ("user", "assistant") or not isinstance(value.get("parts"), list):
        raise BadInput("a message has no role or no parts")
    counts = Removed()
    reader = _Message(session, value, message, counts, into.withheld, tool_limit)
    turns = [turn for part in value["parts"] if isinstance(part, dict) for turn in reader.turns_of(part)]
    if counts:
        into.note_removed(turns, counts)
    into.turns += turns
    into.skipped += not turns
    into.spent += reader.spent(len(into.turns) - 1)


class _Message:
    """The value that the parts of one message are read with."""

    def __init__(
        self, session: Session, value: dict[str, Any], message: dict[str, Any], counts: Removed, withheld: Withheld,
        tool_limit: int,
    ) -> None:  # fmt: skip
        self.key = session.key(string(value, "name"))
        self.session, self.value, self.message, self.counts = session, value, message, counts
        self.withheld, self.tool_limit = withheld, tool_limit
        self.is_prompt = message["role"] == "user"
        self.cwd = redact(wire.clean(string(mapping(message, "path"), "cwd")), counts) or session.cwd
        self.usage = mapping(message, "tokens")
        self.cache = mapping(self.usage, "cache")
        self.made = 0

    def turns_of(self, part: dict[str, Any]) -> list[Turn]:
        """The turns of a part: what somebody says, or a tool call and what came of it."""
        match part.get("type"):
            case "text" if not (part.get("synthetic") or part.get("ignored")):
                return self._said(string(part, "text"), is_typed=not mapping(part, "metadata").get(_COMMAND))
            case "tool":
                return self._tool(part)
        return []

    def _turn(self, kind: TurnKind, text: str, at: str = "", **more: Any) -> Turn:
        uuid, session = self._uuid(), self.session
        self.made += 1
        if kind in ("user", "relayed") and self.made == 1:  # what goes on from the same message takes the place of it
            before = string(self.value, "before")
            more |= {"parent_uuid": session.key(before) if before else session.session, "is_prompt_line": True}
        return Turn(
            uuid=uuid, session_id=session.session, agent_id=session.agent, kind=kind, text=text, cwd=self.cwd,
            at=at or moment(self.value), version=session.version,
            model=label(self.message, "modelID", 100) if kind == "assistant" else "",
            context=sum(self._amounts()[place] for place in (0, 2, 3)) if kind == "assistant" else 0, **more,
        )  # fmt: skip

    def _uuid(self) -> str:
        """The uuid of the next turn of the message."""
        return f"{self.key}+{self.made}" if self.made else self.key

    def _said(self, text: str, *, is_typed: bool) -> list[Turn]:
        kind: TurnKind = "summary" if self.message.get("summary") is True else "assistant"
        if self.is_prompt:
            text, by_person = typed(text)
            # A sub-agent's prompt is told from the user's by its conversation, as everywhere.
            is_typed = is_typed and by_person and not self.session.by_run
            kind = "user" if self.session.agent or is_typed else "relayed"
        said = spoken(text, self.counts)
        return [self._turn(kind, said)] if said else []

    def _tool(self, part: dict[str, Any]) -> list[Turn]:
        state, ident = mapping(part, "state"), label(part, "callID", 120)
        if not ident:
            return []
        calls = [stored_call(label(part, "tool", 100), mapping(state, "input"))]
        turns = call_turns(self._turn("tool_call", ""), ident, calls, self.counts, self.withheld, self.tool_limit)
        if state.get("status") not in ("completed", "error"):
            return turns
        bare, result = self._turn("tool_result", ""), stored_result(state)
        turns.append(result_turn(bare, ident, result, self.counts, self.withheld, self.tool_limit))
        return [*turns, *self._answers(part)]

    def _answers(self, part: dict[str, Any]) -> list[Turn]:
        """The turn in which the user answers the assistant's questions, each of which is quoted."""
        state = mapping(part, "state")
        asked, picked = mapping(state, "input").get("questions"), mapping(state, "metadata").get("answers")
        if (
            part.get("tool") != _ASKS
            or self.session.agent
            or not (isinstance(asked, list) and isinstance(picked, list))
        ):
            return []
        pairs = [
            (string(question, "question"), ", ".join(map(str, answers)) if isinstance(answers, list) else "")
            for question, answers in zip(asked, picked, strict=False)
            if isinstance(question, dict)
        ]
        text = spoken(quoted_answers(pairs), self.counts)
        # Known as an answer by the number behind the line's, as everywhere.
        uuid = f"{self.key}/{self.made}"
        return [replace(self._turn("user", text, is_pick=True), uuid=uuid)] if text else []

    def _amounts(self) -> tuple[int, int, int, int]:
        made = tokens(self.usage, "output") + tokens(self.usage, "reasoning")
        return tokens(self.usage, "input"), made, tokens(self.cache, "read"), tokens(self.cache, "write")

    def spent(self, place: int) -> list[Took]:
        """The tokens of the message."""
        amounts, session = self._amounts(), self.session
        if self.is_prompt or not any(amounts):
            return []
        return [Took(stream(session.session, session.agent), self.key, amounts, place)]


def stored_call(name: str, given: dict[str, Any]) -> Call:
    """A tool call by the names of `csmd/hosts/tool_calls.py`; tools of others keep theirs."""
    known = _TOOLS.get(name)
    return (known, {_FIELDS.get(key, key): value for key, value in given.items()}) if known else (name, given)


def stored_result(state: dict[str, Any]) -> str:
    """What a call gave back: what it printed, below its exit code where that is not 0; how it failed."""
    if state.get("status") == "error":
        error = string(state, "error")
        return _TURNED_DOWN.sub(_REJECTED, error) if _TURNED_DOWN.match(error) else f"Error: {error}"
    printed, code = string(state, "output"), mapping(state, "metadata").get("exit")
    return with_exit_code(printed, str(code)) if type(code) is int else printed
