"""One thing the daemon can be asked: its name is its key in a registry, its parameters are checked before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from csmd import wire
from csmd.config import Config
from csmd.daemon.context import Context
from csmd.daemon.dreaming import Dreaming, Edited
from csmd.daemon.health import Alarms
from csmd.embedding.supervisor import Embedder
from csmd.errors import BadInput
from csmd.recall import visibility as recall
from csmd.store.core import Lane, Store
from csmd.store.sqlite import Rows

Params = Mapping[str, Any]
REQUIRED = object()
#: The directory in which a question is put: behind its wall one sees what is behind it. Every tool takes it.
ASKING = "asking"
#: The parameters of what can be asked of one project or, with "", of all.
PLACE: Mapping[str, tuple[type, Any]] = {"project": (str, ""), ASKING: (str, "")}
QUERY_VECTOR_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may use of the running daemon; `status` tells what `csmd status` shows."""

    context: Context
    dreaming: Dreaming
    edited: Edited
    alarms: Alarms
    status: Callable[[Rows], Any]

    @property
    def store(self) -> Store:
        """The daemon's store."""
        return self.context.store

    @property
    def config(self) -> Config:
        """The daemon's settings."""
        return self.context.config

    @property
    def embedder(self) -> Embedder:
        """The worker that makes vectors."""
        return self.context.embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One thing the daemon does when asked; `parameters` name -> (type, default).

    `run` gives the answer, or steps that come to it: then others are answered in between.
    """

    summary: str
    mutates: bool
    parameters: Mapping[str, tuple[type, Any]]
    run: Callable[[ToolContext, Any, Params], Any]
    lane: Lane | None = "main"
    """The reader it runs on; None: it asks the store nothing and is answered at once."""


def checked(name: str, tool: Tool, params: Params) -> dict[str, Any]:
    """The parameters with defaults; text that looks like a number or truth value is taken as one."""
    unknown = sorted(set(params) - set(tool.parameters) - {ASKING})
    if unknown:
        raise BadInput(
            f"{name} has no parameter {unknown[0]!r}", hint=f"it has: {', '.join(tool.parameters) or 'none'}"
        )
    result: dict[str, Any] = {}
    for key, (kind, default) in tool.parameters.items():
        value = params.get(key, default)
        if value is REQUIRED:
            raise BadInput(f"{name} needs the parameter {key!r}")
        if kind is int and isinstance(value, str) and value.lstrip("-").isdigit():
            value = int(value)
        if kind is bool and value in ("true", "false"):
            value = value == "true"
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise BadInput(f"{name}: {key} must be {kind.__name__}, not {value!r}")
        if isinstance(value, str):
            value = wire.clean(value)
            if key in ("project", "path", ASKING) and value and not value.startswith("/"):
                raise BadInput(f"{name}: {key} must be an absolute path, not {value!r}", hint="begin it with /")
        result[key] = value
    return result


def meant(typed: str, found: Sequence[str]) -> str:
    """The id that is meant by its beginning, of those that begin so; "" for none, BadInput for several."""
    if typed in found or not typed:
        return typed
    if len(found) > 1:
        raise BadInput(f"{typed!r} begins several ids: {', '.join(found)}", hint="type some more of it")
    return found[0] if found else ""


def places(rows: Rows, params: Params) -> list[int] | None:
    """The rows that a question may see; None for all."""
    return recall.asked(rows, params["project"], asking=params[ASKING])
