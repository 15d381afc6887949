"""What every provider of a language model takes and gives, and how it fails; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from csmd.errors import CsmdError

#: What a question is for; the ledger counts by it.
Purpose = Literal["sessions", "test", "embed"]
#: Why a provider gave no answer: nobody there, no answer in time, turned down, asked too often, or an answer that
#: cannot be read.
Reason = Literal["dead", "slow", "refused", "limited", "babble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question for a language model; whoever sends it redacts it once more."""

    purpose: Purpose
    project: str
    """The root directory of the project that it is about, "" for none."""
    system: str
    """What the model is told to do."""
    text: str
    most_tokens: int
    """Most tokens that the answer may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered, and the tokens that its server counted."""

    text: str
    tokens_in: int
    tokens_out: int
    is_estimated: bool = False
    """The server did not say what it counted; the numbers are estimates."""


class Provider(Protocol):
    """A provider of answers to questions."""

    @property
    def name(self) -> str:
        """`assistant`, `ollama` or `openai`."""
        ...

    @property
    def model(self) -> str:
        """The model that is asked."""
        ...

    def ask(self, question: Question, *, timeout_s: float) -> Reply:
        """The answer; ProviderFailed where there is none."""
        ...


class ProviderFailed(CsmdError):
    """A provider gave no answer that can be used; csmd goes on without it. The message quotes nothing of the answer."""

    def __init__(self, reason: Reason, message: str, *, hint: str = "", spent: tuple[int, int] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.spent = spent
        """The tokens in and out that it cost all the same; None if unknown: then the estimate counts."""


class CapReached(CsmdError):
    """A question would pass the day's cap; nothing was sent."""


class NotAllowed(CsmdError):
    """A question is about a project of which nothing may be sent."""
