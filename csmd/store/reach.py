"""In which places a forgetting holds, and which are asked for what is said in one: by the merges, parts and walls of now.

Those change, and what was forgotten stays forgotten: it is laid wherever a change may send what was said there, an older
state of the database too, and rather one place too many is asked than one too few. A place is the row of a project, of a
workspace, or 0 for everywhere.
"""

from __future__ import annotations

from csmd.store import merges, projects
from csmd.store.sqlite import Rows


def is_everywhere(rows: Rows, scope: int) -> bool:
    """Whether what holds in a place holds in projects: it is a workspace's, or everything's."""
    return projects.everywhere(rows, scope) == scope


def laid(rows: Rows, scope: int, *, text_hash: str) -> list[int]:
    """Where a forgetting in a place is noted: there, in what was merged into it and in all behind its wall.

    Also in what it was split off from: a state from before knows no other. Not where the same text is a memory still.
    """
    inside = {scope, *_behind(rows, scope)}
    held = {scope}.union(*(merges.with_merged(rows, one) for one in inside if one))
    around = held.union(*(merges.lineage(rows, one) for one in inside)) - held
    known = "select 1 from memories where text_hash = :hash and project_seq = :seq"
    return sorted(held.union(one for one in around if rows.value(known, hash=text_hash, seq=one) is None))


def asked(rows: Rows, project: int, *, home: int | None = None) -> frozenset[int] | None:
    """Whose forgettings keep out what is said in a project and is to hold in `home` (None: there); None for everybody's.

    Its own, those of what it is or was a part of, those of everywhere with and without a wall; of what is to hold
    everywhere also those of the projects that it would be told in.
    """
    scopes = merges.lineage(rows, project) | {projects.everywhere(rows, project), 0}
    if home is None or not is_everywhere(rows, home):
        return scopes
    return scopes.union(*(merges.lineage(rows, one) for one in _behind(rows, home))) if home else None


def let_in(rows: Rows, project: int, *, home: int) -> frozenset[int]:
    """Whose forgettings end where a person says in a project what is to hold in `home`; everywhere's only if that is it."""
    return merges.lineage(rows, project) | {home}


def _behind(rows: Rows, scope: int) -> list[int]:
    found = rows.all("select seq from projects where workspace_seq = :scope and :scope > 0 order by seq", scope=scope)
    return [int(seq) for (seq,) in found]
