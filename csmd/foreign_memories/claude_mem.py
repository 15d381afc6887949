"""claude-mem: a SQLite database (`~/.claude-mem/claude-mem.db`) of observations and session summaries; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from csmd import wire
from csmd.errors import BadInput
from csmd.foreign_memories.foreign_memory import ForeignContent, ForeignMemory, Skipped, shorten, to_utc
from csmd.store.import_files import ForeignFile

LABEL = "claude-mem"
_OBSERVATION = (
    "project", "merged_into_project", "type", "title", "subtitle", "facts", "narrative", "text", "created_at",
)  # fmt: skip
_SUMMARY = ("project", "merged_into_project", "learned", "completed", "created_at")


def recognises(file: ForeignFile) -> bool:
    """Whether it is a claude-mem database."""
    return {"observations", "session_summaries", "sdk_sessions"} <= file.tables.keys()


def read(file: ForeignFile) -> ForeignContent:
    """Yields one memory for each observation and for each summary that says what was learned or done."""
    for row in file.read_table("observations", _OBSERVATION):
        name = f"observation {row['id']}"
        narrative = row["narrative"] or "; ".join(_facts(row["facts"])) or row["text"] or row["subtitle"]
        text = ". ".join(part.strip().rstrip(".") for part in (row["title"], narrative) if part and part.strip())
        yield _make_memory(row, name, str(row["type"]), text) if text else Skipped(name, "empty observations")
    for row in file.read_table("session_summaries", _SUMMARY):
        name = f"summary {row['id']}"
        text = " ".join(part.strip() for part in (row["learned"], row["completed"]) if part and part.strip())
        if not text:
            yield Skipped(name, "summaries that say neither what was learned nor done")
        else:
            yield _make_memory(row, name, "summary", text)
    if "user_prompts" in file.tables:
        for row in file.read_table("user_prompts", ()):
            yield Skipped(f"prompt {row['id']}", "prompts: csmd reads them from the transcripts")


def _make_memory(row: Mapping[str, Any], name: str, kind: str, text: str) -> ForeignMemory:
    project = str(row["merged_into_project"] or row["project"] or "")
    return ForeignMemory(source_id=name, kind=kind, text=shorten(text), at=to_utc(row["created_at"]), project=project)


def _facts(stored: Any) -> list[str]:
    try:
        facts = wire.loads(str(stored or "[]").encode())
    except BadInput:
        return []
    return [fact.strip() for fact in facts if isinstance(fact, str) and fact.strip()] if isinstance(facts, list) else []
