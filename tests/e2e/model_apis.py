"""The APIs of language models that assistants speak: how a request is read, and how a scripted reply is written; pure.

POST .../messages                        Anthropic Messages
POST .../responses                       OpenAI Responses
POST .../chat/completions                OpenAI chat completions
POST .../models/M:streamGenerateContent  Gemini (also :generateContent)
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

#: Where a request says what it asks, in each of the APIs.
CONVERSATION = ("system", "systemInstruction", "instructions", "messages", "input", "contents")
#: Paths of requests that only ask how many tokens a conversation has.
COUNTING = ("/count_tokens", ":countTokens")
#: What a message says that it was made from, and that it has itself.
TOKENS_IN, TOKENS_OUT = 10, 5
Events = Iterator[tuple[str, dict[str, Any] | str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a model says: a text, a call of a tool with its input, or both; `tokens` is what it was made from."""

    number: int
    model: str
    text: str = ""
    tool: str = ""
    input: dict[str, Any]
    tokens: int = TOKENS_IN

    def id(self, kind: str) -> str:
        """An id of a kind that no other message has, in any run."""
        return f"{kind}_{os.getpid()}_{self.number:04d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelApi:
    """One API: where the conversation stands in a request, and what is sent back for a message."""

    messages: str
    """The field that holds the conversation."""
    whole: Callable[[Message], dict[str, Any]]
    """The answer to a request that does not stream."""
    stream: Callable[[dict[str, Any]], Events]
    """The same answer as server-sent events, each with its name ("" for none)."""

    def user_messages(self, body: dict[str, Any]) -> list[Any]:
        """What stands in the user's place in a request."""
        messages = body.get(self.messages) or []
        if isinstance(messages, str):
            return [messages]
        return [message for message in messages if message.get("role") == "user"]


def api_of(path: str) -> ModelApi | None:
    """The API that a request's path belongs to; None for a path of none."""
    return next((api for ending, api in APIS.items() if path.endswith(ending)), None)


# --- Anthropic Messages


def _anthropic(message: Message) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if message.text:
        content.append({"type": "text", "text": message.text})
    if message.tool:
        content.append(
            {"type": "tool_use", "id": f"toolu_{message.number:04d}", "name": message.tool, "input": message.input}
        )
    return {
        "id": message.id("msg"), "type": "message", "role": "assistant", "model": message.model,
        "content": content, "stop_reason": "tool_use" if message.tool else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": message.tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                  "output_tokens": TOKENS_OUT},
    }  # fmt: skip


def _anthropic_events(whole: dict[str, Any]) -> Events:
    def event(kind: str, **more: Any) -> tuple[str, dict[str, Any]]:
        return kind, {"type": kind, **more}

    yield event("message_start", message={**whole, "content": [], "stop_reason": None})
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield event("content_block_start", index=index, content_block=empty)
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=end, usage=whole["usage"])
    yield event("message_stop")


# --- OpenAI Responses


def _responses(message: Message) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if message.text:
        content = [{"type": "output_text", "text": message.text, "annotations": []}]
        output.append(
            {"type": "message", "id": message.id("msg"), "role": "assistant", "status": "completed", "content": content}
        )
    if message.tool:
        namespace, _, name = message.tool.rpartition("/")
        call = {
            "type": "function_call", "id": message.id("fc"), "call_id": message.id("call"), "name": name,
            "arguments": json.dumps(message.input), "status": "completed",
        }  # fmt: skip
        output.append({**call, "namespace": namespace} if namespace else call)
    return {
        "id": message.id("resp"), "object": "response", "created_at": 0, "model": message.model, "status": "completed",
        "output": output,
        "usage": {"input_tokens": message.tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": TOKENS_OUT,
                  "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": message.tokens + TOKENS_OUT},
    }  # fmt: skip


def _responses_events(whole: dict[str, Any]) -> Events:
    begun = {key: value for key, value in whole.items() if key != "usage"}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": {**begun, "status": "in_progress", "output": []}})
    ]
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            (part,) = item["content"]
            empty, inside = {"content": []}, {**place, "content_index": 0}
            deltas = [
                ("response.content_part.added", {**inside, "part": {**part, "text": ""}}),
                ("response.output_text.delta", {**inside, "delta": part["text"]}),
                ("response.output_text.done", {**inside, "text": part["text"]}),
                ("response.content_part.done", {**inside, "part": part}),
            ]
        else:
            empty = {"arguments": ""}  # type: ignore[dict-item]
            deltas = [
                ("response.function_call_arguments.delta", {**place, "delta": item["arguments"]}),
                ("response.function_call_arguments.done", {**place, "arguments": item["arguments"]}),
            ]
        added = {"output_index": index, "item": {**item, "status": "in_progress", **empty}}
        done = {"output_index": index, "item": item}
        events += [("response.output_item.added", added), *deltas, ("response.output_item.done", done)]
    events.append(("response.completed", {"response": whole}))
    for number, (kind, data) in enumerate(events):
        yield kind, {"type": kind, "sequence_number": number, **data}


# --- OpenAI chat completions


def _chat(message: Message) -> dict[str, Any]:
    reply: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.tool:
        function = {"name": message.tool, "arguments": json.dumps(message.input)}
        reply["tool_calls"] = [{"id": message.id("call"), "type": "function", "function": function}]
    return {
        "id": message.id("chatcmpl"), "object": "chat.completion", "created": 0, "model": message.model,
        "choices": [{"index": 0, "message": reply, "finish_reason": "tool_calls" if message.tool else "stop"}],
        "usage": {"prompt_tokens": message.tokens, "completion_tokens": TOKENS_OUT, "total_tokens": message.tokens + TOKENS_OUT},
    }  # fmt: skip


def _chat_events(whole: dict[str, Any]) -> Events:
    (choice,) = whole["choices"]
    base = {**{key: whole[key] for key in ("id", "created", "model")}, "object": "chat.completion.chunk"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, dict[str, Any]]:
        return "", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    if choice["message"]["content"]:
        yield chunk({"content": choice["message"]["content"]})
    for index, call in enumerate(choice["message"].get("tool_calls", [])):
        yield chunk({"tool_calls": [{"index": index, **call}]})
    yield chunk({}, choice["finish_reason"])
    yield "", {**base, "choices": [], "usage": whole["usage"]}
    yield "", "[DONE]"


# --- Gemini


def _gemini(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": message.text}] if message.text else []
    if message.tool:
        parts.append({"functionCall": {"id": message.id("call"), "name": message.tool, "args": message.input}})
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": message.tokens, "candidatesTokenCount": TOKENS_OUT,
                          "totalTokenCount": message.tokens + TOKENS_OUT},
        "modelVersion": message.model, "responseId": message.id("resp"),
    }  # fmt: skip


def _gemini_events(whole: dict[str, Any]) -> Events:
    yield "", whole


_GEMINI = ModelApi(messages="contents", whole=_gemini, stream=_gemini_events)
#: The end of a request's path -> its API.
APIS = {
    "/messages": ModelApi(messages="messages", whole=_anthropic, stream=_anthropic_events),
    "/responses": ModelApi(messages="input", whole=_responses, stream=_responses_events),
    "/chat/completions": ModelApi(messages="messages", whole=_chat, stream=_chat_events),
    ":streamGenerateContent": _GEMINI,
    ":generateContent": _GEMINI,
}
