"""Tools that answer questions in SQL on read-only views."""

from __future__ import annotations

from collections import Counter
from typing import Any

from csmd.errors import BadInput, CsmdError
from csmd.privacy.redaction import redact
from csmd.recall import visibility
from csmd.store import purge, sql_views
from csmd.store.sql_views import Answer
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools.declaration import Json, Places, ToolContext, Tools, clamp_limit

TOOLS = Tools()
#: Sample rows of each view.
SAMPLE_ROWS = 2
#: Characters of a value in a sample row.
SAMPLE_CHARACTERS = 60


@TOOLS.add("csm_store_schema")
def _describe_views(ctx: ToolContext, rows: Rows, view: str = "", asking: str = "") -> Json:
    """Describe the views that csm_store_query sees: what a row and each column mean, how they join, a sample."""
    views = [view_row for view_row in sql_views.VIEWS if view in ("", view_row.name)]
    if not views:
        hint = f"choose one of {', '.join(sorted(sql_views.VIEW_NAMES))}"
        raise BadInput(f"there is no view {view[:60]!r}", hint=hint)
    path, project_seqs = ctx.store.path, _find_visible_places(rows, asking)
    return {
        "views": [
            {
                "name": view_row.name,
                "a row is": view_row.about,
                "columns": dict(view_row.columns),
                "joins": list(view_row.joins),
                "sample": _rows_json(
                    sql_views.read_sample(path, view_row, projects=project_seqs, limit=SAMPLE_ROWS), SAMPLE_CHARACTERS
                ),
            }
            for view_row in views
        ],
        "limits": {
            "rows": sql_views.MAX_ROWS,
            "seconds": sql_views.MAX_SECONDS,
            "characters of a value": sql_views.MAX_VALUE_CHARACTERS,
            "functions": sorted(sql_views.FUNCTIONS),
        },
    }  # fmt: skip


@TOOLS.add("csm_store_query")
def _run_query(ctx: ToolContext, rows: Rows, sql: str, limit: int = 50, asking: str = "") -> Json:
    """Answer one SELECT (SQLite) on the views of csm_store_schema: at most 100 rows, 2 seconds, 2,000 characters a value."""
    project_seqs, max_rows = _find_visible_places(rows, asking), clamp_limit(limit, sql_views.MAX_ROWS)
    answer = sql_views.answer(ctx.store.path, sql, projects=project_seqs, limit=max_rows)
    return {"columns": list(answer.columns), "rows": _rows_json(answer), "more": answer.is_cut}


def _find_visible_places(rows: Rows, asking: str) -> Places:
    """Returns row keys of the projects that the caller may see; CsmdError while a purge is under way."""
    if purge.is_unfinished(rows):
        raise CsmdError("a purge is under way", hint="ask again when `csmd status` shows that it has ended")
    return visibility.find_visible_places(rows, asking=asking)


def _rows_json(answer: Answer, characters: int = sql_views.MAX_VALUE_CHARACTERS) -> list[list[Any]]:
    """Returns the rows, with secrets redacted by the current rules."""
    return [
        [display.cut(redact(value, Counter()), characters) if isinstance(value, str) else value for value in row]
        for row in answer.rows
    ]
