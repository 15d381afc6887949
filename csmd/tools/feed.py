"""The tool that lists events since a cursor."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import Any

from csmd.errors import BadInput
from csmd.recall import query
from csmd.store import activity_feed
from csmd.store.activity_feed import FeedRow
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools import present
from csmd.tools.declaration import Json, Places, ToolContext, Tools
from csmd.tools.present import as_json

TOOLS = Tools()
#: Rows of one kind in one answer; with so many the client asks again at once.
MAX_ROWS = 200
#: Characters of a text; `csmd session transcript` shows the whole.
MAX_TEXT_CHARACTERS = 1000
#: Rows of all projects that the first call looks through for those of one project.
LOOKBACK_ROWS = 20_000


@TOOLS.add("csm_tail", lane="status")
def _list_feed(
    ctx: ToolContext, rows: Rows, cursor: str = "", last: int = 10, seen: Places = None, asking: str = "",
    session: str = "", kind: str = "", since: str = "",
) -> Json:  # fmt: skip
    """List events since a cursor; of one session, of some kinds (comma-separated), since a time."""
    ends, chosen_kinds = activity_feed.read_feed_positions(rows), kind.split(",") if kind else activity_feed.KINDS
    for word in chosen_kinds:
        present.check_words({"kind": word}, {"kind": activity_feed.KINDS})
    session_id = present.find_session(rows, session, asking).id if session else ""
    start = query.parse_limits(since, "", now=ctx.here(ctx.now())).since
    read_rows = partial(activity_feed.read_feed, rows, projects=seen, session=session_id, since=start)
    feed_rows: list[FeedRow] = []
    has_more = False
    if not cursor:
        limit = min(max(last, 0), MAX_ROWS)
        for word in chosen_kinds:
            after = max(0, ends[word] - LOOKBACK_ROWS)
            feed_rows += read_rows(word, after=after, limit=limit, is_latest=True)
        feed_rows = sorted(feed_rows, key=_sort_key)[-limit:] if limit else []
    else:
        positions = _read_cursor(cursor)
        for word in chosen_kinds:
            new_rows = read_rows(word, after=min(positions[word], ends[word]), limit=MAX_ROWS)
            if len(new_rows) == MAX_ROWS:
                ends[word], has_more = new_rows[-1].seq, True
            feed_rows += new_rows
    next_cursor = ",".join(str(ends[word]) for word in activity_feed.KINDS)
    return {"cursor": next_cursor, "more": has_more, "items": list(map(_row_json, sorted(feed_rows, key=_sort_key)))}


def _sort_key(row: FeedRow) -> tuple[str, int, int]:
    return row.at, activity_feed.KINDS.index(row.kind), row.seq


def _read_cursor(cursor: str) -> dict[str, int]:
    numbers = cursor.split(",")
    are_numbers = all(number.isdecimal() and len(number) < 19 for number in numbers)
    if len(numbers) != len(activity_feed.KINDS) or not are_numbers:
        raise BadInput(f"csm_tail: {cursor!r} is not a cursor", hint="give the last answer's cursor, or none")
    return dict(zip(activity_feed.KINDS, map(int, numbers), strict=True))


def _row_json(row: FeedRow) -> Json:
    tokens, memories = row.amounts
    counts: dict[str, Any] = {}
    if row.kind == "injection":
        counts = {"tokens": tokens, "memories": memories}
    elif row.kind == "search":
        counts = {"results": memories}
    name, text = PurePath(row.project).name, display.cut(row.text, MAX_TEXT_CHARACTERS)
    return as_json(row, "kind at project name session what=word text", name=name, text=text, **counts)
