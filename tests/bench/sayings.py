"""The written sentences of tests/data/sayings.txt: what users say in many trades, each with its gate or "none"."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).resolve().parent.parent / "data" / "sayings.txt"


class Said(NamedTuple):
    """A sentence and its gate, "none" for one that does not hold."""

    text: str
    gate: str


def sayings() -> list[Said]:
    """Every sentence of the file, in order."""
    rows = [line.partition("\t") for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [Said(text, gate) for gate, _, text in rows if text]
