"""The instruction files of projects, as last read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.store.sqlite import Rows, column_values


class Instruction(NamedTuple):
    """One file that assistants load; `root` is the directory it was found for, `text_hash` keyed, `hosts` separated by spaces."""

    path: str
    kind: str
    root: str
    text: str
    text_hash: str
    hosts: str = "claude"


def replace_instructions(rows: Rows, project: int, found: Sequence[Instruction], *, now: str) -> int:
    """Makes `found` a project's instructions, in their order; how many files are new, changed or gone."""
    known = {path: rest for path, *rest in instruction_hashes(rows, project)}
    changed = sum(known.get(file.path) != [file.text_hash, file.hosts] for file in found)
    gone = known.keys() - {file.path for file in found}
    for ordinal, file in enumerate(found):
        values = {"project_seq": project, "ordinal": ordinal, "read_at": now, "gone": 0, **column_values(file)}
        rows.upsert("instructions", "project_seq, path", **values)
    for path in gone:
        # Its text goes with it; that it was there, and as what, stays.
        sql = (
            "update instructions set gone = 1, text = '', read_at = :now where project_seq = :project and path = :path"
        )
        rows.run(sql, now=now, project=project, path=path)
    return changed + len(gone)


def instruction_hashes(rows: Rows, project: int) -> list[tuple[str, str, str]]:
    """(path, hash, hosts) of a project's instructions in their order: what tells whether anything changed."""
    return rows.all(
        "select path, text_hash, hosts from instructions where project_seq = :project and gone = 0 order by ordinal",
        project=project,
    )


def instruction_texts(rows: Rows, projects: Sequence[int], host: str) -> list[str]:
    """The texts of the instruction files that assistants load in these projects."""
    sql = "select text, hosts from instructions where project_seq = :project and gone = 0 order by ordinal"
    found = (row for project in projects for row in rows.all(sql, project=project))
    return [text for text, hosts in found if host in hosts.split()]
