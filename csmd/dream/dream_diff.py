"""Shows what a dream changed: memories and candidates before and after it, and files as unified diffs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from csmd.errors import CsmdError
from csmd.store import dreams, journal, projects, workspaces
from csmd.store.journal import ChangedFile, ChangedRow, ChangeSet
from csmd.store.row_images import Image
from csmd.store.sqlite import Rows


def diff(rows: Rows, ident: str, *, among: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
    """What a dream did in these projects (None: in all) and in files, as JSON, in order.

    Of an action that a purge erased only the reason is left. CsmdError if there is no such dream.
    """
    dream = dreams.by_id(rows, ident)
    if dream is None:
        raise CsmdError(f"there is no dream {ident!r}", hint="csmd dream history")
    for seq in journal.actions(rows, dream.seq):
        action, written = journal.change_set(rows, seq), journal.files_of_set(rows, seq)
        if among is None or written or action.project_seq in among:
            yield _action_json(rows, action, journal.changed_rows(rows, seq), written)


def _action_json(
    rows: Rows, change: ChangeSet, changed: Sequence[ChangedRow], written: Sequence[ChangedFile]
) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "project": projects.name_of(rows, workspaces.merged_into(rows, change.project_seq) or change.project_seq),
        "reason": change.reason, "evidence": change.evidence.split(), "at": change.at, "undone_at": change.undone_at,
        "touched": [
            {"item": row.was.item, "before": _side_json(row.was), "after": _side_json(row.then), "kept": row.kept}
            for row in changed
        ],
        "files": [
            {"path": file.path, "diff": unified_diff(file.path, file.before, file.after), "kept": file.kept}
            for file in written
        ],
        "purged": not changed and not written,
    }  # fmt: skip


def _side_json(image: Image) -> dict[str, Any] | None:
    """A memory or candidate before or after an action, None if it did not exist; a candidate's tier is its status."""
    content = image.content
    if not content:
        return None
    return {
        "text": str(content["text"]), "confidence": float(content["confidence"]),
        "tier": str(content.get("tier") or content.get("status", "")),
        "superseded_by": str(content.get("superseded_by", "")),
        "sources": len(content.get("sources") or content.get("evidence") or ()),
        "links": [f"{kind} {other}" for _, other, kind, *_ in image.outgoing_links],
    }  # fmt: skip


def unified_diff(path: str, before: str | None, after: str | None) -> str:
    """A file's change as a unified diff; a file that is not there is /dev/null."""
    old, new = ("/dev/null" if text is None else path for text in (before, after))
    lines = difflib.unified_diff((before or "").splitlines(), (after or "").splitlines(), old, new, lineterm="")
    return "\n".join(lines)
