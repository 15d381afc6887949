"""Gemini CLI's transcripts to turns, titles and token usage.

A transcript is `tmp/<project>/chats/session-<minute>-<beginning of the session's id>.jsonl`, a sub-agent's
`tmp/<project>/chats/<session>/<agent>.jsonl`: a log of updates, not of messages. Each start of the client writes a
header. A message is written again when it has more fields, for example tool calls; its turns keep their ids. `$set`
changes the conversation as a whole; `$set.messages` repeats the history in another form, in which only a compaction's
summary is new. `$rewindTo` names the prompt that is taken back with everything after it. The host deletes or empties
the file of a resumed session; what was read from it stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from csmd.conversation import Turn
from csmd.hosts import gemini_parts
from csmd.hosts.gemini_parts import join_text, list_parts
from csmd.hosts.labels import decode_path, make_session_id, read_label, read_tokens
from csmd.hosts.transcript_reading import Conversation, Line, ReadLine, Transcript, read_objects, refuse_line
from csmd.json_fields import mapping, mappings, parse_object, string
from csmd.privacy.redaction import RedactionCounts
from csmd.vocabulary import TurnKind

HOST = "gemini"
#: The context window of current models.
WINDOW_TOKENS = 1_048_576
FIRST_LINE = re.compile(rb'\s*\{"sessionId":\s?"[^"]*",\s?"projectHash":')
#: A session is located by the first eight characters of its id.
PATH_PATTERN = re.compile(
    r"(?P<project>[^/]+)/chats/(?:session-[\w-]+-([0-9a-f]{8})|([\w-]{1,8})[\w-]*/[\w-]+)\.jsonl", re.ASCII
)
#: The longest header.
FIRST_LINE_BYTES = 64 * 1024

#: The directory in a sub-agent's header or in the host's first message; in JSON, a line break is two characters.
_DIRECTORY = re.compile(
    rb'(?:"directories":\s?\["|"<session_context>(?:[^"\\]|\\.)*?'
    rb"(?:Workspace Directories:\*\*|working in the (?:following )?director(?:y|ies):)(?:\\n| |-)*)"
    rb'(/(?:[^"\\]|\\[^n])*+)'
)
_PROMPT = re.compile(rb'"type":\s?"user",\s?"content":\s?(?:\[\{"text":\s?)?"(?!<session_context>)')
#: Text that Gemini CLI writes in the user's name.
WRITTEN_FOR_USER = re.compile(r"\s*<(?:session_context|loaded_context)[\s>]")
#: The fields of a response's tokens: input, output, cache reads and writes.
_TOKEN_FIELDS = ("input", "output thoughts", "cached", "")
_NO_ANSWER = "[no response text]"


def find_start_directory(beginning: bytes) -> str:
    """Returns the directory in which a session was started, redacted; "" if its first bytes name none."""
    match = _DIRECTORY.search(beginning)
    return decode_path(b'"%b"' % match[1]) if match else ""


def read_final_message(value: dict[str, Any]) -> str:
    """Everything that the assistant said in a turn, by the hook's payload at its end."""
    text = string(value, "prompt_response")
    return "" if text == _NO_ANSWER else text


@dataclass(slots=True, kw_only=True)
class Chat(Conversation):
    """The conversation whose lines are read, with the state that earlier lines set."""

    chat_id: str
    prompt: str = ""
    """The uuid of the last prompt, which the following messages answer."""
    taken_back: str = ""
    """The parent of the prompt that was taken back, which becomes the parent of the next prompt."""
    parents: dict[str, str] = field(default_factory=dict)
    """Message -> the parent that its prompt has from one that was taken back."""

    def make_turn(self, value: dict[str, Any], kind: TurnKind, text: str, **fields: Any) -> Turn:
        """Returns a turn of a message."""
        uuid = make_session_id(HOST, f"{self.chat_id}:{read_label(value, 'id')}")
        return self.new_turn(uuid, value, kind, text, **fields)


def parse_chat(header: bytes, folder: str, cwd: str) -> Chat | None:
    """Returns the conversation that a header names, in a file of this directory; None if it is not a header."""
    head = parse_object(header) or {}
    chat_id, is_agent = read_label(head, "sessionId"), string(head, "kind") == "subagent"
    if not chat_id:
        return None
    session = make_session_id(HOST, folder if is_agent else chat_id)
    return Chat(chat_id=chat_id, session=session, agent=chat_id if is_agent else "", cwd=cwd)


def make_reader(transcript: Transcript) -> ReadLine:
    """Returns a function that reads the lines of a transcript; reads the last prompts again first."""
    folder, start_directory = transcript.path.parent.name, find_start_directory(transcript.beginning)
    chat = parse_chat(transcript.read_first_line(FIRST_LINE_BYTES), folder, start_directory)
    if chat is None:
        return refuse_line
    read_line = read_objects(partial(_read_turns, chat))
    transcript.reread(transcript.find_before(_find_prompts), read_line)
    return read_line


def _find_prompts(before: bytes) -> list[bytes]:
    """Returns the lines that hold prompts, or take one back."""
    return [line for line in before.splitlines() if _PROMPT.search(line) or line.startswith(b'{"$rewindTo"')]


def _read_turns(chat: Chat, line: Line) -> list[Turn]:
    """Returns the turns in a line of a transcript."""
    value, changes = line.value, mapping(line.value, "$set")
    match value.get("type") if read_label(value, "id") else None:
        case "user":
            return _read_prompt_turns(line, chat)
        case "gemini":
            turns = _read_answer_turns(line, chat)
            line.record_tokens(chat.stream, read_label(value, "id"), value.get("tokens"), _TOKEN_FIELDS, len(turns))
            return turns
        case _ if target := string(value, "$rewindTo"):
            chat.taken_back = chat.parents.get(target, _make_parent(f"{HOST}:{chat.chat_id}:{target}"))
        case _ if changes:
            if not chat.agent:
                line.reading.record_title(chat.session, string(changes, "summary"), line.redactions)
            return _read_summary_turns(line, mappings(changes.get("messages")), chat)
        case _:
            return line.skip()
    return []


def _read_prompt_turns(line: Line, chat: Chat) -> list[Turn]:
    """Returns the prompt in a message in the user's name; [] for results of tools and the host's own context."""
    value, parts = line.value, list_parts(line.value.get("content"))
    content, display_text = join_text(parts), join_text(list_parts(line.value.get("displayContent")))
    if gemini_parts.is_summary(content):
        return _read_summary_turns(line, [value], chat)
    text = gemini_parts.clean_parts_text(content, line.redactions)
    typed = gemini_parts.clean_parts_text(display_text, RedactionCounts()) if display_text else text
    kind = gemini_parts.classify_prompt(typed)
    if kind == "user" and not text.startswith(typed) and gemini_parts.REFERENCED not in content:
        kind, typed = "notification", text  # the host makes the model continue, and displays the prompt before
    if not typed:
        return []
    if kind == "notification":  # what the assistant says next belongs to its earlier answer
        return [chat.make_turn(value, kind, typed)]
    kind = "relayed" if kind == "user" and gemini_parts.is_from_program(parts) else kind
    turn = chat.make_turn(value, kind, typed, is_prompt_line=True)
    parent = chat.taken_back or _make_parent(turn.uuid)
    if chat.taken_back:
        chat.parents[read_label(value, "id")], chat.taken_back = chat.taken_back, ""
    chat.prompt = turn.uuid
    return [replace(turn, parent_uuid=parent)]


def _make_parent(uuid: str) -> str:
    """Returns the parent of a prompt: of two prompts with the same parent the later replaces the earlier."""
    return f"{uuid}^"


def _read_answer_turns(line: Line, chat: Chat) -> list[Turn]:
    """Returns the assistant's words in a message, and its tools' calls and results so far."""
    value, used = line.value, mapping(line.value, "tokens")
    text = gemini_parts.clean_parts_text(join_text(list_parts(value.get("content"))), line.redactions)
    model, context = read_label(value, "model", 100), read_tokens(used, "input")
    bare = chat.make_turn(value, "assistant", text, message_id=chat.prompt, model=model, context=context)
    turns = [bare] if text else []
    for call in mappings(value.get("toolCalls")):
        turns += gemini_parts.make_call_turns(line, bare, call)
        rejected = string(call, "status") == "cancelled"
        for part in list_parts(call.get("result")):
            response = {"id": read_label(call, "id", 120), **mapping(part, "functionResponse")}
            turns += gemini_parts.make_response_turns(line, bare, response, rejected=rejected)
            if string(call, "name") == "ask_user":
                pairs = _read_answers(call, response)
                turns += gemini_parts.make_answer_turns(line, bare, f"/{read_label(call, 'id', 120)}?", pairs)
    return turns


def _read_answers(call: dict[str, Any], response: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns (question, answer) of each of the assistant's questions that the user answered."""
    answers = mapping(parse_object(string(mapping(response, "response"), "output")) or {}, "answers")
    questions = mappings(mapping(call, "args").get("questions"))
    return [(string(question, "question"), string(answers, str(number))) for number, question in enumerate(questions)]


def _read_summary_turns(line: Line, messages: list[dict[str, Any]], chat: Chat) -> list[Turn]:
    """Returns the summaries of compactions among messages; the other messages have lines of their own."""
    by_user = (message for message in messages if message.get("type") == "user")
    texts = [(message, join_text(list_parts(message.get("content")))) for message in by_user]
    summaries = [(message, text) for message, text in texts if gemini_parts.is_summary(text)]
    read = partial(gemini_parts.read_summary, counts=line.redactions)
    turns = [chat.make_turn(message, "summary", read(text)) for message, text in summaries]
    return [turn for turn in turns if turn.text]
