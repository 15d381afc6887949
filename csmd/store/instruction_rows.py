"""The instruction files of projects, as last read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.store.row_values import column_values
from csmd.store.sqlite import Rows


class Instruction(NamedTuple):
    """A file that assistants load, found for the directory `root`; `text_hash` is keyed, `hosts` are names."""

    path: str
    kind: str
    root: str
    text: str
    text_hash: str
    hosts: str = "claude"


def replace_instructions(rows: Rows, project: int, instructions: Sequence[Instruction], *, now: str) -> int:
    """Replaces a project's instructions, in order; returns how many files are new, changed or gone."""
    stored = {path: rest for path, *rest in list_instruction_hashes(rows, project)}
    changed = sum(stored.get(file.path) != [file.text_hash, file.hosts] for file in instructions)
    missing = stored.keys() - {file.path for file in instructions}
    for ordinal, file in enumerate(instructions):
        values = {"project_seq": project, "ordinal": ordinal, "read_at": now, "gone": 0, **column_values(file)}
        rows.upsert("instructions", "project_seq, path", **values)
    for path in missing:
        # The text of a missing file is deleted; its path and kind stay.
        sql = (
            "update instructions set gone = 1, text = '', read_at = :now where project_seq = :project and path = :path"
        )
        rows.run(sql, now=now, project=project, path=path)
    return changed + len(missing)


def list_instruction_hashes(rows: Rows, project: int) -> list[tuple[str, str, str]]:
    """Returns (path, hash, hosts) of a project's instructions in order, which change whenever a file does."""
    sql = "select path, text_hash, hosts from instructions where project_seq = :project and gone = 0 order by ordinal"
    return rows.all(sql, project=project)


def list_instruction_texts(rows: Rows, projects: Sequence[int], host: str) -> list[str]:
    """Returns the texts of the instruction files of these projects."""
    sql = "select text, hosts from instructions where project_seq = :project and gone = 0 order by ordinal"
    texts = (row for project in projects for row in rows.all(sql, project=project))
    return [text for text, hosts in texts if host in hosts.split()]
