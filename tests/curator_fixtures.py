"""Questions, and providers of a scripted server that are asked in the test's process; not a test."""

from __future__ import annotations

from dataclasses import dataclass

from scripted_models import ScriptedModels

from csmd.curator import calls
from csmd.curator.contract import Question, Reply
from csmd.curator.process import Order
from csmd.store.provider_rows import ProviderRow

NOW = "2026-01-01T10:00:00.000Z"


def question(text: str = "Which of these is worth telling?", **more: object) -> Question:
    values = {"purpose": "sessions", "project": "", "system": "You judge.", "text": text, "most_tokens": 50, **more}
    return Question(**values)  # type: ignore[arg-type]


def row(server: ScriptedModels, name: str = "openai", key_from: str = "") -> ProviderRow:
    place = f"{server.url}/v1" if name == "openai" else server.url
    return ProviderRow(name=name, place=place, model="small", key_from=key_from, added_at=NOW)


@dataclass(frozen=True)
class Direct:
    """A provider that is asked in this process: what the other process would do, without its start."""

    row: ProviderRow

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def model(self) -> str:
        return self.row.model

    def ask(self, question: Question, *, timeout_s: float) -> Reply:
        order = Order(
            provider=self.row.name, place=self.row.place, model=self.row.model, key_from=self.row.key_from,
            timeout_s=timeout_s, question=question,
        )  # fmt: skip
        reply = calls.carry_out(order)
        assert isinstance(reply, Reply)
        return reply
