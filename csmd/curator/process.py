"""Starts the process that asks a provider, one for each question, because the daemon must not use the network."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import csmd
from csmd import wire
from csmd.config import PLACES, child_environment, full_environment, manager_environment
from csmd.curator.contract import ProviderFailed, Question, Reason, Reply
from csmd.errors import BadInput

if TYPE_CHECKING:
    from csmd.store.provider_rows import ProviderRow

#: The variables that name proxies; the assistant gets the whole environment.
PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
#: Seconds that the process may take beyond the provider's time; it starts in a third of a second.
START_TIMEOUT_S = 10.0
#: Under systemd the daemon's unit has no network, so the process gets a transient unit of its own.
TRANSIENT_UNIT = (
    "systemd-run", "--user", "--pipe", "--wait", "--collect", "--quiet", "--property=NoNewPrivileges=yes",
    "--property=UMask=0077", "--property=LimitCORE=0", "--property=MemoryMax=1G", "--property=OOMScoreAdjust=500",
)  # fmt: skip
#: As the source of a key: the keyring instead of a variable.
KEYRING = "keyring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to ask of which provider: a question, or the vectors of `texts`."""

    provider: str
    place: str
    model: str
    key_from: str
    timeout_s: float
    question: Question | None = None
    texts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of texts, in their order, and the tokens that the server counted."""

    vectors: Sequence[Sequence[float]]
    tokens_in: int
    is_estimated: bool


def read_answer(data: bytes) -> Reply | Vectors:
    """Parses what the process printed; ProviderFailed if it says so, BadInput if it says nothing."""
    value = wire.loads(data)
    if not isinstance(value, dict):
        raise BadInput("the asking process printed no answer")
    if value.get("reason") in get_args(Reason):
        spent = value["spent"] and (int(value["spent"][0]), int(value["spent"][1]))
        raise ProviderFailed(cast("Reason", value["reason"]), str(value["what"]), hint=str(value["hint"]), spent=spent)
    try:
        return Reply(**value) if "text" in value else Vectors(**value)
    except TypeError as error:
        raise BadInput("the asking process printed nothing that is an answer") from error


def build_command(
    module: str, *arguments: str, is_managed: bool, key_from: str, limit_s: float = 0.0, is_own: bool = False
) -> tuple[list[str], dict[str, str]]:
    """Returns the command of a process that may use the network, and its environment.

    `is_own`: it runs the user's own assistant. It is killed after `limit_s` seconds (0: never).
    """
    package = {"PYTHONPATH": str(Path(csmd.__file__).parent.parent)}
    command = [sys.executable, "-P", "-m", module, *arguments]
    if not is_managed:
        return command, (full_environment() if is_own else child_environment(key_from, *PROXY_VARIABLES)) | package
    # The rest is the manager's environment, which `systemctl --user import-environment` sets.
    places = child_environment("PATH", *PLACES)
    variables = {name: places[name] for name in ("PATH", *PLACES) if name in places} | package
    options = [f"--property=RuntimeMaxSec={limit_s:.0f}"] if limit_s else []
    options += [f"--setenv={name}={value}" for name, value in variables.items()]
    return [*TRANSIENT_UNIT, *options, *command], manager_environment()


@dataclass(frozen=True, slots=True)
class ProcessProvider:
    """A provider that is asked by a process of its own; `is_managed` says that the daemon runs under systemd."""

    row: ProviderRow
    is_managed: bool

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.row.name

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.row.model

    def ask(self, question: Question, *, timeout_s: float) -> Reply:
        """Returns the answer; ProviderFailed if there is none."""
        reply = self._carry_out(self.row.model, timeout_s, question=question)
        if not isinstance(reply, Reply):
            raise ProviderFailed("babble", "the asking process gave vectors")
        return reply

    def embed(self, model: str, texts: Sequence[str], *, timeout_s: float) -> Vectors:
        """Returns a vector for each text; ProviderFailed if there is none."""
        vectors = self._carry_out(model, timeout_s, texts=tuple(texts))
        if not isinstance(vectors, Vectors):
            raise ProviderFailed("babble", "the asking process gave no vectors")
        return vectors

    def _carry_out(self, model: str, timeout_s: float, **content: Any) -> Reply | Vectors:
        row = self.row
        order = Order(
            provider=row.name, place=row.place, key_from=row.key_from, model=model, timeout_s=timeout_s, **content
        )  # fmt: skip
        limit_s = timeout_s + START_TIMEOUT_S
        command, environment = build_command(
            "csmd.curator.calls", is_managed=self.is_managed, key_from=self.row.key_from, limit_s=limit_s,
            is_own=self.row.name == "assistant",
        )  # fmt: skip
        try:
            completed = subprocess.run(
                command, env=environment, input=wire.dumps(asdict(order)).encode(), stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, timeout=limit_s, check=False,
            )  # fmt: skip
            return read_answer(completed.stdout)
        except subprocess.TimeoutExpired as error:
            raise ProviderFailed("slow", f"no answer within {order.timeout_s:g} s") from error
        except (OSError, BadInput) as error:
            raise ProviderFailed("dead", f"`{command[0]}` did not start the asking process", spent=None) from error
