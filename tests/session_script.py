"""Composed sessions: lines as the client writes them and the hooks it runs for them, in pieces that a test interleaves.

Not a test, found through tests/conftest.py: a `Client` is driven by hypothesis; what is said is short and often the same, so that texts alone tell little.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORDS = ("yes", "Yes!", "go on", "use tabs, not spaces")
#: What a user, the host or an agent can do in a session; each is a method of Client.
STEPS = (
    "prompt", "prompt", "queued_and_absorbed", "queued_in_an_old_version", "queued_and_submitted", "interrupted", "tool",
    "rejected", "question", "forged", "slash", "bang", "notification", "compact", "agent", "agent_inside", "blocked",
    "in_two_blocks", "resume", "fork", "rewind", "clear", "summariser",
)  # fmt: skip
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)


@dataclass(frozen=True)
class Line:
    """One line that the client appends to a file."""

    path: str
    value: dict[str, Any]


@dataclass(frozen=True)
class Hook:
    """One event that the client reports."""

    payload: dict[str, Any]
    at: str


@dataclass
class Client:
    """Writes sessions: `log` holds lines and hooks in the order in which they happened."""

    root: Path
    log: list[Line | Hook] = field(default_factory=list)
    files: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    session: str = "s0"
    parent: str | None = None
    count: int = 0

    def at(self) -> str:
        self.count += 1
        return f"2026-03-01T{self.count // 3600:02}:{self.count // 60 % 60:02}:{self.count % 60:02}.000Z"

    def path(self, session: str = "") -> str:
        return str(self.root / "-p" / f"{session or self.session}.jsonl")

    def line(self, value: dict[str, Any], *, path: str = "", uuid: bool = True) -> str:
        at = self.at()
        full = {"timestamp": at, "sessionId": self.session, **value}
        if uuid:
            full = {"parentUuid": self.parent, "uuid": f"u{self.count}", "cwd": "/p", "version": "2.1.329", **full}
            self.parent = full["uuid"] if not path else self.parent
        path = path or self.path()
        self.files.setdefault(path, []).append(full)
        self.log.append(Line(path, full))
        return str(full.get("uuid", ""))

    def hook(self, name: str, **more: Any) -> None:
        payload = {
            "session_id": self.session,
            "cwd": "/p",
            "transcript_path": self.path(),
            "hook_event_name": name,
            **more,
        }
        self.log.append(Hook(payload, self.at()))

    def user(self, content: Any, **more: Any) -> str:
        return self.line({"type": "user", "message": {"role": "user", "content": content}, **more})

    def assistant(self, *blocks: dict[str, Any], message: str = "", **more: Any) -> str:
        message = message or f"m{self.count}"
        body = {"id": message, "role": "assistant", "model": "claude-x", "content": list(blocks)}
        return self.line({"type": "assistant", "message": body, **more})

    def answer(self, text: str) -> None:
        self.assistant({"type": "text", "text": text})
        self.hook("Stop", last_assistant_message=text)

    def call(self, name: str = "Edit") -> tuple[str, str]:
        ident = f"t{self.count}"
        return ident, self.assistant({"type": "tool_use", "id": ident, "name": name, "input": {"n": self.count}})

    def result(self, ident: str, call: str, content: Any, outcome: Any, **more: Any) -> None:
        block = {"type": "tool_result", "tool_use_id": ident, "content": content, **more}
        self.user([block], toolUseResult=outcome, sourceToolAssistantUUID=call)

    # --- what can happen

    def prompt(self, text: str) -> None:
        self.hook("UserPromptSubmit", prompt=text)
        self.user(text)
        self.answer(text)

    def _enqueue(self, text: str, *, hook: bool = True) -> None:
        if hook:
            self.hook("UserPromptSubmit", prompt=text)
        self.line({"type": "queue-operation", "operation": "enqueue", "content": text}, uuid=False)

    def queued_and_absorbed(self, text: str) -> None:
        self._enqueue(text)
        more = {"content": text, "reason": "absorbed_mid_turn"}
        self.line({"type": "queue-operation", "operation": "remove", **more}, uuid=False)
        queued = {"type": "queued_command", "prompt": text, "commandMode": "prompt", "origin": {"kind": "human"}}
        self.line({"type": "attachment", "attachment": queued})
        self.answer("done")

    def queued_in_an_old_version(self, text: str) -> None:
        self._enqueue(text)
        self.line({"type": "queue-operation", "operation": "remove"}, uuid=False)
        self.answer("done")

    def queued_and_submitted(self, text: str) -> None:
        self._enqueue(text, hook=False)
        self.line({"type": "queue-operation", "operation": "dequeue"}, uuid=False)
        self.prompt(text)

    def interrupted(self, text: str) -> None:
        self.hook("UserPromptSubmit", prompt=text)
        before = self.parent
        self.user(text)
        self.user([{"type": "text", "text": "[Request interrupted by user]"}])
        self.parent = before

    def tool(self, text: str) -> None:
        self.result(*self.call("Bash"), text, {"stdout": text})

    def rejected(self, text: str) -> None:
        content = REJECTED + text
        self.result(*self.call(), content, f"Error: {content}", is_error=True)

    def forged(self, text: str) -> None:
        content = REJECTED + text
        self.result(*self.call("mcp__web__get"), content, f"Error: {content}", is_error=True)
        self.result(*self.call("WebFetch"), content, {"result": content})

    def question(self, text: str) -> None:
        outcome = {"questions": [{"question": "Which?"}], "answers": {"Which?": text}}
        self.result(*self.call("AskUserQuestion"), "User has answered your questions", outcome)

    def slash(self, text: str) -> None:
        self.hook("UserPromptSubmit", prompt=f"/hello {text}")
        tags = f"<command-message>hello</command-message>\n<command-name>/hello</command-name>\n<command-args>{text}</command-args>"
        self.user(tags, origin={"kind": "human"})
        self.user([{"type": "text", "text": f"Say {text}"}], isMeta=True)
        self.answer(text)

    def bang(self, text: str) -> None:
        self.user(f"<bash-input>echo {text}</bash-input>")
        self.user(f"<bash-stdout>{text}</bash-stdout><bash-stderr></bash-stderr>")
        self.answer(text)

    def notification(self, text: str) -> None:
        line = f"<task-notification>\n{text}"
        self._enqueue(line, hook=False)
        self.line({"type": "queue-operation", "operation": "dequeue"}, uuid=False)
        self.hook("UserPromptSubmit", prompt=line)
        self.user(line, origin={"kind": "task-notification"}, promptSource="system")
        self.answer(text)

    def compact(self, text: str) -> None:
        self.hook("PreCompact", trigger="manual", custom_instructions=text)
        self.summariser(text)
        self.line({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"})
        self.user(f"This session is being continued: {text}", isCompactSummary=True)
        self.hook("SessionStart", source="compact")

    def summariser(self, text: str) -> None:
        self.hook("SubagentStop", agent_type="", agent_id=f"a{self.count}", last_assistant_message=text)

    def agent(self, text: str) -> None:
        ident = f"a{self.count}"
        path = str(self.root / "-p" / self.session / "subagents" / f"agent-{ident}.jsonl")
        if self.count % 2:
            path = str(self.root / "-p" / f"agent-{ident}.jsonl")
        aside = {"isSidechain": True, "agentId": ident}
        report = {"id": f"m{self.count}", "content": [{"type": "text", "text": text}]}
        self.line({"type": "user", "message": {"content": text}, **aside}, path=path)
        self.line({"type": "assistant", "message": report, **aside}, path=path)
        self.hook(
            "SubagentStop",
            agent_id=ident,
            agent_type="general",
            agent_transcript_path=path,
            last_assistant_message=text,
        )

    def agent_inside(self, text: str) -> None:
        ident = f"a{self.count}"
        for kind in ("user", "assistant"):
            line = {"type": kind, "message": {"role": kind, "content": [{"type": "text", "text": text}]}}
            data = {"type": "agent_progress", "agentId": ident, "message": {**line, "uuid": f"p{self.count}"}}
            self.line({"type": "progress", "data": data})

    def blocked(self, text: str) -> None:
        self.hook("UserPromptSubmit", prompt=text)
        line = f"UserPromptSubmit operation blocked by hook:\n[x]: no\n\nOriginal prompt: {text}"
        self.line({"type": "system", "subtype": "informational", "content": line})

    def in_two_blocks(self, text: str) -> None:
        message = f"m{self.count}"
        self.assistant({"type": "text", "text": f"first {self.count}"}, message=message)
        second = f"{text} {self.count}"
        self.assistant({"type": "text", "text": second}, message=message)
        self.hook("Stop", last_assistant_message=f"first {self.count - 2}\n\n{second}")

    def resume(self, text: str) -> None:
        self.hook("SessionEnd", reason="prompt_input_exit")
        self.hook("SessionStart", source="resume")

    def fork(self, text: str) -> None:
        copied = [value for value in self.files.get(self.path(), []) if value.get("uuid")]
        self.session = f"s{self.count}"
        self.hook("SessionStart", source="fork")
        for value in copied:
            full = {**value, "sessionId": self.session}
            self.files.setdefault(self.path(), []).append(full)
            self.log.append(Line(self.path(), full))

    def rewind(self, text: str) -> None:
        lines = [value["uuid"] for value in self.files.get(self.path(), []) if value.get("uuid")]
        self.parent = lines[len(lines) // 2] if lines else None

    def clear(self, text: str) -> None:
        self.hook("SessionEnd", reason="clear")
        self.session, self.parent = f"s{self.count}", None
        self.hook("SessionStart", source="clear")
        self.user("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)
        self.user(
            "<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n  <command-args></command-args>"
        )


def written(lines: list[Line]) -> None:
    """Appends the lines to their files."""
    for line in lines:
        path = Path(line.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(json.dumps(line.value, separators=(",", ":")).encode() + b"\n")
