"""The interface to language-model providers: questions, replies, failures; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from csmd.errors import CsmdError

#: The purpose of a question; the ledger counts by it.
Purpose = Literal["sessions", "test", "embed"]
#: Why a provider gave no answer: unreachable, too slow, refused, rate limited, or an unreadable answer.
Reason = Literal["dead", "slow", "refused", "limited", "babble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question for a language model; the sender redacts it once more."""

    purpose: Purpose
    project: str
    """The root directory of the project that it is about, or ""."""
    system: str
    """The instructions for the model."""
    text: str
    most_tokens: int
    """The most tokens that the answer may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer, and the tokens that its server counted."""

    text: str
    tokens_in: int
    tokens_out: int
    is_estimated: bool = False
    """Whether the numbers are estimates, because the server gave none."""


class Provider(Protocol):
    """A provider of answers to questions."""

    @property
    def name(self) -> str:
        """The provider: assistant, ollama or openai."""

    @property
    def model(self) -> str:
        """The model that is asked."""

    def ask(self, question: Question, *, timeout_s: float) -> Reply:
        """Returns the answer; ProviderFailed if there is none."""


class ProviderFailed(CsmdError):
    """A provider gave no usable answer; csmd goes on without it. The message quotes nothing of the answer."""

    def __init__(self, reason: Reason, message: str, *, hint: str = "", spent: tuple[int, int] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.spent = spent
        """The tokens in and out that the call cost nevertheless; None if unknown, so that the estimate counts."""


class CapReached(CsmdError):
    """A question would exceed the day's cap; nothing was sent."""


class NotAllowed(CsmdError):
    """A question is about a project whose text may not be sent."""
