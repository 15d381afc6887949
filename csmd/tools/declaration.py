"""Declares tools: a name, a summary, and a function whose signature gives the parameters; and who may call one.

A tool runs on a reader's thread: it may wait for the writer or the worker, never for the background thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol, TypeVar

from csmd import parameters, wire
from csmd.capture import project_identity
from csmd.config import Config
from csmd.dream.gates import Verdict
from csmd.embedding.worker_client import Embedder
from csmd.errors import BadInput, CsmdError
from csmd.exclusions import Excludes
from csmd.knowledge import Memory
from csmd.parameters import REQUIRED, Parameter
from csmd.pauses import Pauses
from csmd.recall import visibility
from csmd.recall.hybrid_search import Embed
from csmd.store import candidates
from csmd.store.core import Lane, Store
from csmd.store.sqlite import Rows
from csmd.store.telemetry_rows import Composition, Lookup

Json = dict[str, Any]
ToolFunction = TypeVar("ToolFunction", bound=Callable[..., Any])
Params = Mapping[str, Any]
PARAMETER_TYPES: Mapping[str, type] = {"str": str, "int": int, "bool": bool, "float": float}
#: Parameter of every tool: the directory of the caller. It decides which walls apply.
CALLER_DIRECTORY = "asking"
#: Parameter names of Cross-Session Memory's tools -> csmd's; both are accepted.
PARAMETER_ALIASES: Mapping[str, str] = {
    "content": "text", "importance": "confidence", "sessionId": "session", "startDate": "since", "endDate": "until",
    "dryRun": "dry_run",
}  # fmt: skip
#: Parameters that are paths.
PATH_PARAMETERS = ("project", "path", CALLER_DIRECTORY)
VECTOR_TIMEOUT_S = 8.0
#: Row keys of the projects that the caller may see, None for all. A tool parameter with this annotation is filled from
#: `project` and `asking`.
Places = list[int] | None


class Task(Protocol):
    """Work that a client waits for."""

    @property
    def id(self) -> str:
        """The id by which it is looked up."""


class StatedItem(Protocol):
    """A memory or an open matter."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def authority(self) -> str:
        """Who stated it."""


class Dreams(Protocol):
    """The daemon's dreaming as tools use it."""

    def state(self, rows: Rows) -> Json:
        """Describes the gates, the running dream and the last ones."""

    def verdict(self, rows: Rows) -> Verdict:
        """Returns the present verdict of the gates."""

    def order(self, why: str, *, awaited: bool) -> Task:
        """Starts a dream as soon as possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The parts of the running daemon that tools use.

    `now` and `before` (seconds ago) return stored times; `here` converts one to this machine's zone. `submit` takes the
    kind and the fields of a task and returns its id; `job` finds a task by its id. `hint` and `hint_from_hook` ask for
    a transcript to be read; the latter takes an unverified path. `unwritten` returns the compositions and lookups that
    are not stored yet. `forget_lines` removes forgotten text from the pages.
    """

    store: Store
    config: Config
    embedder: Embedder
    excludes: Excludes
    dreams: Dreams
    now: Callable[[], str]
    before: Callable[[float], str]
    here: Callable[[str], datetime]
    monotonic: Callable[[], float]
    pauses: Callable[[], Pauses]
    read_pauses: Callable[[], bool]
    query_vector: Callable[..., Embed | None]
    submit: Callable[..., str]
    job: Callable[[str], Any]
    poke: Callable[[], None]
    hint: Callable[[str], None]
    hint_from_hook: Callable[[str], None]
    unwritten: Callable[[], tuple[list[Composition], list[Lookup]]]
    forget_lines: Callable[[], None]
    alarms: Callable[[], list[dict[str, str]]]
    clients: Callable[[Rows], Json]
    status: Callable[[Rows], Json]

    def paused(self) -> dict[str, str] | None:
        """Returns the current pause: since when, until when ("" until resumed), by whom; None if not paused."""
        pauses = self.pauses()
        pause = pauses.find_current(self.now())
        return {"since": pause[0], "until": pause[1], "by": pauses.by} if pause else None


@dataclass(frozen=True)
class Tool:
    """A request that the daemon answers.

    `run` takes the context, a reader and the tool's parameters by name. It returns the answer, or a generator of steps
    between which other calls are answered. `person` is an action ("undo an answer") that needs a person at a terminal,
    "" for a tool that anyone may call. `lane` is the reader it runs on; None for a tool that does not read the store.
    """

    name: str
    summary: str
    run: Callable[..., Any]
    mutates: bool = field(default=False, kw_only=True)
    person: str = field(default="", kw_only=True)
    lane: Lane | None = field(default="main", kw_only=True)

    @cached_property
    def _arguments(self) -> list[inspect.Parameter]:
        """The arguments of `run` after the context and the reader."""
        return list(inspect.signature(self.run).parameters.values())[2:]

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of the request by name, as `run` declares them."""
        declared: dict[str, Parameter] = {}
        for parameter in self._arguments:
            if parameter.annotation == "Places":
                declared |= {"project": Parameter(str, ""), CALLER_DIRECTORY: Parameter(str, "")}
            else:  # a name that Python reserves ends in an underscore in the code
                default = REQUIRED if parameter.default is inspect.Parameter.empty else parameter.default
                declared[parameter.name.rstrip("_")] = Parameter(PARAMETER_TYPES[parameter.annotation], default)
        return declared | ({"by_person": Parameter(bool, False)} if self.person else {})

    def answer(self, ctx: ToolContext, rows: Rows | None, params: Params) -> Generator[None, None, Any]:
        """Answers in steps; `params` come from `check`, `rows` is None for a tool without a lane."""
        if self.person:
            require_person(params["by_person"], self.person)
        arguments: Json = {}
        for parameter in self._arguments:
            if parameter.annotation == "Places" and rows is not None:
                arguments[parameter.name] = find_places(rows, params["project"], params[CALLER_DIRECTORY])
            else:
                arguments[parameter.name] = params[parameter.name.rstrip("_")]
        result = self.run(ctx, rows, **arguments)
        if isinstance(result, Generator):
            result = yield from result
        return result

    def schema(self) -> Json:
        """Returns the JSON schema of its parameters, without those that name the caller."""
        callers = (CALLER_DIRECTORY, "by_person")
        return parameters.make_schema({key: row for key, row in self.parameters.items() if key not in callers})

    def check(self, params: Params) -> Json:
        """Checks parameters and adds defaults; "5" and "true" become a number and a boolean."""
        names = {key: PARAMETER_ALIASES.get(key, key) for key in params}
        named = {names[key] if names[key] in self.parameters else key: value for key, value in params.items()}
        if CALLER_DIRECTORY not in self.parameters:
            named.pop(CALLER_DIRECTORY, None)
        checked = parameters.validate(self.name, self.parameters, named)
        for key, value in checked.items():
            if isinstance(value, str):
                checked[key] = value = wire.clean(value)
                if key in PATH_PARAMETERS and value and not _is_absolute(value):
                    what = f"{self.name}: {key} must be an absolute path, not {value!r}"
                    raise BadInput(what, hint="begin it with /")
        return checked


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or project_identity.is_windows_path(path)


class Tools(list[Tool]):
    """Tools declared by a decorator on their functions."""

    def add(self, name: str, **options: Any) -> Callable[[ToolFunction], ToolFunction]:
        """Makes a function a tool; the docstring's first line is its summary, `options` are other fields of Tool."""

        def declare(run: ToolFunction) -> ToolFunction:
            summary = (inspect.getdoc(run) or "").partition("\n")[0].removesuffix(".")
            self.append(Tool(name, summary, run, **options))
            return run

        return declare


def require_person(by_person: bool, what: str) -> None:
    """Raises CsmdError unless a person asks; `what` is the action."""
    if not by_person:
        raise CsmdError(f"only a person at a terminal can {what}", hint="run it in a terminal")


def refuse_in_review(rows: Rows, memory: Memory, *, by_person: bool) -> None:
    """Raises CsmdError if a question about the memory waits for a person and no person asks."""
    if not by_person and memory.id in candidates.list_questioned_ids(rows):
        raise CsmdError(f"{memory.id} is waiting for a person's review", hint="run `csmd review` to answer it")


def refuse_users_statement(statement: StatedItem, command: str, *, by_person: bool) -> None:
    """Raises CsmdError if the user made a statement and no person asks to change it with `command`."""
    if statement.authority == "user" and not by_person:
        raise CsmdError(f"{statement.id} is the user's statement", hint=f"ask the user to run `{command}`")


def resolve_id(typed: str, ids: Sequence[str]) -> str:
    """Returns the id that begins with `typed`, "" if none does; BadInput if several do."""
    if typed in ids or not typed:
        return typed
    if len(ids) > 1:
        raise BadInput(f"{typed!r} begins several ids: {', '.join(ids)}", hint="type more of the id")
    return ids[0] if ids else ""


def find_places(rows: Rows, project: str, asking: str) -> Places:
    """Returns row keys of the projects that the caller may see; None for all."""
    return visibility.find_searchable_places(rows, project, asking=asking)


def clamp_limit(limit: int, most: int) -> int:
    """Clamps a requested number of rows to 1..most."""
    return min(max(limit, 1), most)
