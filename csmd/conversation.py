"""Records of conversations: hook events, turns, and the project that they belong to; no I/O.

Times are UTC ISO-8601 text with milliseconds and a Z.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from csmd.hook_events import EventName
from csmd.vocabulary import Form, TurnKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed tool call: the tool's name, its shell line ("" for none) and its output, both redacted."""

    tool: str
    command: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One hook event, reduced from an assistant's payload; `text` is the prompt or the final message, redacted.

    `payload` is the digest of the payload's bytes, the same if two commands report one event. `failure` is used for a
    lookup and not stored, since the transcript has it.
    """

    id: str
    host: str
    name: EventName
    session_id: str
    at: str
    cwd: str = ""
    transcript_path: str = ""
    text: str = ""
    source: str = ""
    agent_id: str = ""
    by_user: bool = True
    payload: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One entry of a conversation; `uuid` is the transcript line's, or `hook:<event id>` while provisional.

    `form` is how the transcript has it: a line of its own, a prompt put into the queue (identified by its session, time
    and words), or a queued prompt that was taken up during a turn. `answers` is the uuid of the tool call that the user
    answered instead of its result, "" for none; `is_pick` marks answers to questions that the assistant asked through
    its tool; `is_prompt_line` a line with a prompt and nothing else. `writes` are names of transcripts that a tool call
    writes. `context` counts the tokens given to the model, `mode` is the assistant's permission mode in its own word;
    0 and "" if unknown.
    """

    uuid: str
    session_id: str
    kind: TurnKind
    text: str
    at: str
    agent_id: str = ""
    cwd: str = ""
    parent_uuid: str = ""
    message_id: str = ""
    tool_name: str = ""
    tool_id: str = ""
    model: str = ""
    version: str = ""
    tokens: int = 0
    context: int = 0
    form: Form = "line"
    answers: str = ""
    is_pick: bool = False
    is_prompt_line: bool = False
    writes: tuple[str, ...] = ()
    mode: str = ""

    @property
    def stream(self) -> str:
        """The conversation of this turn; a sub-agent's is separate from its session's."""
        return f"{self.session_id}/{self.agent_id}" if self.agent_id else self.session_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """A turn as read from the store, with its row key and its ordinal in the stream."""

    seq: int
    uuid: str
    session_id: str
    project_seq: int
    kind: TurnKind
    text: str
    at: str
    ordinal: int
    agent_id: str = ""
    tool_name: str = ""
    tool_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTurn:
    """A stored turn with everything that is needed to write its transcript line again.

    `dropped` counts the bytes left out; `rewound` is 1 for a turn that a rewind left behind. `tokens` are the
    assistant's count, `counted` is csmd's.
    """

    uuid: str
    kind: TurnKind
    text: str
    at: str
    parent_uuid: str = ""
    message_id: str = ""
    tool_name: str = ""
    tool_id: str = ""
    tokens: int = 0
    dropped: int = 0
    rewound: int = 0
    counted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project, to which memories belong; `key` is the same in all of its worktrees, `root` is for people.

    `place` is the directory that was looked up, `data` git's common directory; `remote` and `fingerprint` are "" until
    they are looked up. `gone` means that its root does not exist; `worktree_of` is then its main project, if its path
    shows one.
    """

    key: str
    root: str
    name: str
    kind: Literal["git", "submodule", "path"]
    place: str = field(default="", compare=False)
    data: str = field(default="", compare=False)
    remote: str = field(default="", compare=False)
    fingerprint: str = field(default="", compare=False)
    gone: bool = field(default=False, compare=False)
    worktree_of: Project | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTurn:
    """A turn as input of packets, its text shortened; `agent` marks a sub-agent's turn."""

    uuid: str
    session_id: str
    project_seq: int
    kind: TurnKind
    text: str
    at: str
    ordinal: int
    tool_name: str = ""
    tool_id: str = ""
    agent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A turn, or a part of one, as it is quoted to another session."""

    uuid: str
    kind: TurnKind
    text: str
    at: str
    session_id: str
    project_seq: int


class CommandFailure(NamedTuple):
    """A command's failure, as the turn with this uuid shows it."""

    fingerprint: str
    command: str
    message: str
    uuid: str
    at: str
    ordinal: int


class TranscriptTurn(NamedTuple):
    """A turn of a session's transcript; `ordinal` is its position in the session."""

    seq: int
    uuid: str
    kind: str
    text: str
    at: str
    ordinal: int
    tool_name: str
    tool_id: str


class StatedMemory(NamedTuple):
    """A memory and the turn of a session that states it."""

    memory_seq: int
    memory_id: str
    text: str
    category: str
    authority: str
    uuid: str
    ordinal: int


class StatedInTurn(NamedTuple):
    """A memory of a project and the first turn that states it; `turn` is the text of that turn."""

    memory_seq: int
    text: str
    authority: str
    uuid: str
    ordinal: int
    turn: str
    gate: str


class SessionPrompt(NamedTuple):
    """The prompt that an assistant answers at an ordinal of a session; `text` is "" if no user typed it."""

    uuid: str
    ordinal: int
    text: str
