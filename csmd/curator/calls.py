"""Asks a language model: the user's assistant, Ollama, or an OpenAI-compatible endpoint.

    python -m csmd.curator.calls

is the process that may use the network: it reads one Order from standard input, asks, prints the reply and ends.
csmd.curator.process starts it.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import csmd
from csmd import config, wire
from csmd.curator.contract import ProviderFailed, Question, Reason, Reply
from csmd.curator.process import KEYRING, Order, Vectors
from csmd.errors import BadInput
from csmd.text.token_weights import weigh_tokens

#: Most bytes of an answer that are read.
MAX_BYTES = 4_000_000


# --- providers that are asked over HTTP


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key and the question are for the configured address only."""

    def redirect_request(self, *_: Any) -> None:
        """Returns None, which makes a redirect an error."""


def post(url: str, body: Mapping[str, Any], *, key: str, timeout_s: float) -> Any:
    """Posts JSON and returns the JSON of the answer; ProviderFailed if there is none."""
    headers = {"content-type": "application/json", "user-agent": f"csmd/{csmd.__version__}"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, wire.dumps(body).encode(), headers)  # noqa: S310 - check_place takes http(s) only
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=timeout_s) as response:
            data = response.read(MAX_BYTES)
    except urllib.error.HTTPError as error:
        error.close()
        raise _http_failure(error) from error
    except (OSError, ValueError) as error:  # URLError is an OSError
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            raise ProviderFailed("slow", f"no answer within {timeout_s:g} s", hint="try a smaller model") from error
        spent = (0, 0) if isinstance(error, urllib.error.URLError) else None  # with a URLError nothing was sent
        what = reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
        hint = "check that it runs, and its URL"
        raise ProviderFailed("dead", f"{url}: {what}", hint=hint, spent=spent) from error
    except http.client.HTTPException as error:
        raise ProviderFailed("dead", f"{url}: the answer broke off") from error
    try:
        return wire.loads(data)
    except BadInput as error:
        raise ProviderFailed("babble", f"{url}: the answer is not JSON") from error


def _http_failure(error: urllib.error.HTTPError) -> ProviderFailed:
    hints = {401: "check the key", 403: "check the key's permissions", 404: "check the model's name and the URL"}
    hint = hints.get(error.code, "")
    return ProviderFailed(_classify(error.code), f"it answered with HTTP {error.code}", hint=hint, spent=(0, 0))


def _classify(code: int) -> Reason:
    """Returns the reason of a failure by its HTTP status."""
    return "limited" if code in (429, 529) else "dead" if code >= 500 else "refused"


def _number(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _reply(question: Question, text: Any, tokens_in: Any, tokens_out: Any) -> Reply:
    """Returns a reply with the tokens that the server counted, or estimates; ProviderFailed if it has no text."""
    counted, is_estimated = [_number(tokens_in), _number(tokens_out)], False
    for number, written in enumerate((f"{question.system}{question.text}", text if isinstance(text, str) else "")):
        if not counted[number] and written:
            counted[number], is_estimated = weigh_tokens(written), True
    if not isinstance(text, str) or not text.strip():
        raise ProviderFailed("babble", "the answer holds no text", spent=(counted[0], counted[1]))
    return Reply(text=text, tokens_in=counted[0], tokens_out=counted[1], is_estimated=is_estimated)


def _at(value: Any, *path: str | int) -> Any:
    """Returns the value at a path in JSON; None if there is none."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _messages(question: Question) -> list[dict[str, str]]:
    return [{"role": "system", "content": question.system}, {"role": "user", "content": question.text}]


#: Ollama silently cuts the beginning of what is longer than its context; the context is a multiple of this.
CONTEXT_STEP = 2_048


def ask_ollama(order: Order, question: Question, key: str) -> Reply:
    """Asks Ollama's own API: `POST /api/chat`."""
    room = 2 * weigh_tokens(f"{question.system}{question.text}") + question.most_tokens
    options = {"num_predict": question.most_tokens, "num_ctx": -(-room // CONTEXT_STEP) * CONTEXT_STEP}
    body = {"model": order.model, "messages": _messages(question), "stream": False, "think": False, "options": options}
    answer = post(f"{order.place}/api/chat", body, key=key, timeout_s=order.timeout_s)
    counts = _at(answer, "prompt_eval_count"), _at(answer, "eval_count")
    return _reply(question, _at(answer, "message", "content"), *counts)


def ask_openai(order: Order, question: Question, key: str) -> Reply:
    """Asks an OpenAI-compatible endpoint: `POST /chat/completions`.

    If it refuses the older name of the limit, asks again with the newer one.
    """
    body = {"model": order.model, "messages": _messages(question), "stream": False}
    url, limit = f"{order.place}/chat/completions", question.most_tokens
    try:
        answer = post(url, {**body, "max_tokens": limit}, key=key, timeout_s=order.timeout_s)
    except ProviderFailed as error:
        if getattr(error.__cause__, "code", 0) != 400:
            raise
        answer = post(url, {**body, "max_completion_tokens": limit}, key=key, timeout_s=order.timeout_s)
    usage = _at(answer, "usage")
    tokens_in, tokens_out = _at(usage, "prompt_tokens"), _at(usage, "completion_tokens")
    choice = _at(answer, "choices", 0)
    if _at(choice, "finish_reason") == "content_filter" or _at(choice, "message", "refusal"):
        raise ProviderFailed("refused", "the model refuses", spent=(_number(tokens_in), _number(tokens_out)))
    return _reply(question, _at(choice, "message", "content"), tokens_in, tokens_out)


def embed_ollama(order: Order, key: str) -> Vectors:
    """Has Ollama make vectors: `POST /api/embed`."""
    body = {"model": order.model, "input": list(order.texts), "truncate": True}
    answer = post(f"{order.place}/api/embed", body, key=key, timeout_s=order.timeout_s)
    return _vectors(order, _at(answer, "embeddings"), _at(answer, "prompt_eval_count"))


def embed_openai(order: Order, key: str) -> Vectors:
    """Has an OpenAI-compatible endpoint make vectors: `POST /embeddings`."""
    body = {"model": order.model, "input": list(order.texts), "encoding_format": "float"}
    answer = post(f"{order.place}/embeddings", body, key=key, timeout_s=order.timeout_s)
    rows = [row for row in _at(answer, "data") or () if isinstance(_at(row, "index"), int)]
    ordered = [_at(row, "embedding") for row in sorted(rows, key=lambda row: int(row["index"]))]
    return _vectors(order, ordered, _at(answer, "usage", "prompt_tokens"))


def _vectors(order: Order, vectors: Any, counted: Any) -> Vectors:
    lengths = {len(row) if isinstance(row, list) else 0 for row in vectors or ()}
    if len(vectors or ()) != len(order.texts) or len(lengths) != 1 or 0 in lengths:
        hint = "name a model for embeddings"
        raise ProviderFailed("babble", f"{order.model} gave no vector for each text", hint=hint)
    tokens = _number(counted)
    return Vectors(vectors, tokens or sum(map(weigh_tokens, order.texts)), not tokens)


# --- the user's assistant

#: The assistant reads nothing of the user's except the login, runs no hooks and writes no session or history. The
#: built-in plugin would record each run in a file.
ASSISTANT_SETTINGS = '{"disableAllHooks":true,"enabledPlugins":{"cc-plugin-agents-md@builtin":false}}'
ASSISTANT_OPTIONS = (
    "-p", "--safe-mode", "--no-session-persistence", "--strict-mcp-config", "--tools", "", "--setting-sources", "user",
    "--output-format", "json", "--settings", ASSISTANT_SETTINGS,
)  # fmt: skip
ASSISTANT_ENVIRONMENT = {
    "CSMD_DISABLE": "1", "CLAUDE_CODE_SKIP_PROMPT_HISTORY": "1", "CLAUDE_CODE_DISABLE_THINKING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
}  # fmt: skip


def ask_assistant(order: Order, question: Question, key: str) -> Reply:
    """Asks the user's own assistant, headless, in an empty directory that is removed afterwards."""
    command = [order.place, *ASSISTANT_OPTIONS, "--model", order.model, "--system-prompt", question.system]
    environment = config.full_environment() | ASSISTANT_ENVIRONMENT
    environment |= {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(question.most_tokens)}
    environment["PATH"] = f"{Path(order.place).parent}:{environment.get('PATH', os.defpath)}"  # a script's interpreter
    if key:
        environment["ANTHROPIC_API_KEY"] = key
    with tempfile.TemporaryDirectory(prefix="csmd-") as folder:
        printed = _run(command, question.text, folder, environment, order.timeout_s)
    try:
        answer = wire.loads(printed)
    except BadInput as error:
        hint = f"`claude update`: csmd needs one that knows {ASSISTANT_OPTIONS[1]}"
        raise ProviderFailed("babble", f"{order.place} printed no JSON", hint=hint) from error
    usage = _at(answer, "usage")
    sent = sum(_number(_at(usage, name)) for name in INPUTS)
    if _at(answer, "is_error"):
        code = _at(answer, "api_error_status")
        reason: Reason = "dead" if code is None else _classify(_number(code))
        hint = "run `claude` in a terminal: you may have to log in"
        what = f"the assistant answered with an error{f' (HTTP {code})' if code else ''}"
        raise ProviderFailed(reason, what, hint=hint, spent=(sent, _number(_at(usage, "output_tokens"))))
    return _reply(question, _at(answer, "result"), sent, _at(usage, "output_tokens"))


INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _run(command: Sequence[str], text: str, folder: str, environment: Mapping[str, str], timeout_s: float) -> bytes:
    """Returns what a command prints; it and its children are killed at the time-out."""
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=null, start_new_session=True
        )
    except OSError as error:
        what = f"{command[0]}: {error.strerror}"
        raise ProviderFailed("dead", what, hint="csmd provider add assistant", spent=(0, 0)) from error
    with process:
        try:
            return process.communicate(text.encode(), timeout=timeout_s)[0]
        except subprocess.TimeoutExpired as error:
            raise ProviderFailed("slow", f"no answer within {timeout_s:g} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


# --- all of them

ASK: Mapping[str, Callable[[Order, Question, str], Reply]] = {
    "assistant": ask_assistant, "ollama": ask_ollama, "openai": ask_openai,
}  # fmt: skip
EMBED: Mapping[str, Callable[[Order, str], Vectors]] = {"ollama": embed_ollama, "openai": embed_openai}


def read_key(order: Order) -> str:
    """Reads the key from the keyring or the environment; "" if none is needed. ProviderFailed if it is missing."""
    if order.key_from == KEYRING:
        try:
            import keyring
        except ImportError as error:
            hint = "install it beside csmd (`pip install keyring`), or name a variable: --key-env NAME"
            raise ProviderFailed("refused", "the package keyring is not installed", hint=hint, spent=(0, 0)) from error
        try:
            key = keyring.get_password("csmd", order.provider)
        except Exception as error:
            # A catch-all: each backend has errors of its own, and a locked keyring is one of them.
            what = f"the keyring gives no key: {type(error).__name__}"
            raise ProviderFailed("refused", what, spent=(0, 0)) from error
        what, hint = f"the keyring holds no key for csmd, {order.provider}", f"keyring set csmd {order.provider}"
    else:
        key = config.full_environment().get(order.key_from) if order.key_from else ""
        what = f"the variable {order.key_from} is not set where csmd runs"
        hint = "use the keyring (--keyring), or set it where docs/curator.md says"
    if order.key_from and not key:
        raise ProviderFailed("refused", what, hint=hint, spent=(0, 0))
    return key or ""


def carry_out(order: Order) -> Reply | Vectors:
    """Asks the provider of an order; ProviderFailed if there is no answer."""
    key = read_key(order)
    if order.question is not None:
        return ASK[order.provider](order, order.question, key)
    return EMBED[order.provider](order, key)


# --- the process


def main() -> None:
    """Carries out the order on standard input."""
    value = wire.loads(sys.stdin.buffer.read())
    question = value.pop("question")
    try:
        answer: Any = asdict(carry_out(Order(**value, question=Question(**question) if question else None)))
    except ProviderFailed as error:
        answer = {"reason": error.reason, "what": error.what, "hint": error.hint, "spent": error.spent}
    sys.stdout.buffer.write(wire.dumps(answer).encode())


if __name__ == "__main__":
    main()
