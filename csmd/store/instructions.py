"""What instruction files say, as the assistant is told it: one row for each file of a project, the latest only.

The files are the user's and are never written. History is not kept: what counts is what the assistant reads now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One file that the assistant loads; `root` is the directory it was found for, `text_hash` keyed."""

    path: str
    kind: str
    root: str
    text: str
    text_hash: str


def replace(rows: Rows, project: int, found: Sequence[Instruction], *, now: str) -> int:
    """Makes `found` a project's instructions, in their order; how many files are new, changed or gone."""
    known: dict[str, str] = dict(
        rows.all("select path, text_hash from instructions where project_seq = :p and gone = 0", p=project)
    )
    changed = sum(known.get(one.path) != one.text_hash for one in found)
    gone = known.keys() - {one.path for one in found}
    for ordinal, one in enumerate(found):
        rows.run(
            "insert into instructions (project_seq, path, kind, root, ordinal, text, text_hash, read_at, gone) "
            "values (:project, :path, :kind, :root, :ordinal, :text, :hash, :now, 0) "
            "on conflict (project_seq, path) do update set kind = excluded.kind, root = excluded.root, "
            "ordinal = excluded.ordinal, text = excluded.text, text_hash = excluded.text_hash, "
            "read_at = excluded.read_at, gone = 0",
            project=project,
            path=one.path,
            kind=one.kind,
            root=one.root,
            ordinal=ordinal,
            text=one.text,
            hash=one.text_hash,
            now=now,
        )
    for path in gone:
        # Its text goes with it; that it was there, and as what, stays.
        rows.run(
            "update instructions set gone = 1, text = '', read_at = :now where project_seq = :project and path = :path",
            now=now,
            project=project,
            path=path,
        )
    return changed + len(gone)


def hashes(rows: Rows, project: int) -> list[tuple[str, str]]:
    """(path, hash) of a project's instructions in their order: what tells whether anything changed."""
    found = rows.all(
        "select path, text_hash from instructions where project_seq = :project and gone = 0 order by ordinal",
        project=project,
    )
    return [(str(path), str(text_hash)) for path, text_hash in found]


def texts(rows: Rows, projects: Sequence[int]) -> list[str]:
    """What the assistant is told in these projects anyway."""
    return [
        str(text)
        for project in projects
        for (text,) in rows.all(
            "select text from instructions where project_seq = :project and gone = 0 order by ordinal", project=project
        )
    ]


def projects_since(rows: Rows, since: str) -> list[tuple[int, str]]:
    """(row key, root) of the projects that had a session since a time, the latest first."""
    found = rows.all(
        "select p.seq, p.root from projects p join sessions s on s.project_seq = p.seq where p.seq > 0 "
        "group by p.seq, p.root having max(s.last_at) >= :since order by max(s.last_at) desc",
        since=since,
    )
    return [(int(seq), str(root)) for seq, root in found]
