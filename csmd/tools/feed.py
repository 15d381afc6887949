"""The tool that lists what has happened since a cursor."""

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
MOST = 200
#: Characters of a text; `csmd session transcript` shows the whole.
TEXT_CHARACTERS = 1000
#: Rows of all projects that the first call looks through for those of one project.
BACK = 20_000


@TOOLS.add("csm_tail", lane="status")
def _tail(
    ctx: ToolContext, rows: Rows, cursor: str = "", last: int = 10, seen: Places = None, asking: str = "",
    session: str = "",
    kind: str = "", since: str = "",
) -> Json:  # fmt: skip
    """List what has happened since a cursor; of one session, of some kinds (comma-separated), since a time."""
    ends, kinds = activity_feed.feed_positions(rows), kind.split(",") if kind else activity_feed.KINDS
    for word in kinds:
        present.check_words({"kind": word}, {"kind": activity_feed.KINDS})
    ident = present.find_session(rows, session, asking).id if session else ""
    start = query.parse_limits(since, "", now=ctx.here(ctx.now())).since
    read = partial(activity_feed.read_feed, rows, projects=seen, session=ident, since=start)
    happenings: list[FeedRow] = []
    more = False
    if not cursor:
        limit = min(max(last, 0), MOST)
        for word in kinds:
            after = max(0, ends[word] - BACK)
            happenings += read(word, after=after, limit=limit, is_latest=True)
        happenings = sorted(happenings, key=_order)[-limit:] if limit else []
    else:
        positions = _read_cursor(cursor)
        for word in kinds:
            news = read(word, after=min(positions[word], ends[word]), limit=MOST)
            if len(news) == MOST:
                ends[word], more = news[-1].seq, True
            happenings += news
    written = ",".join(str(ends[word]) for word in activity_feed.KINDS)
    return {"cursor": written, "more": more, "items": list(map(_happening, sorted(happenings, key=_order)))}


def _order(happening: FeedRow) -> tuple[str, int, int]:
    return happening.at, activity_feed.KINDS.index(happening.kind), happening.seq


def _read_cursor(cursor: str) -> dict[str, int]:
    numbers = cursor.split(",")
    if len(numbers) != len(activity_feed.KINDS) or not all(
        number.isdecimal() and len(number) < 19 for number in numbers
    ):
        raise BadInput(f"csm_tail: {cursor!r} is no cursor", hint="give back what the last answer gave, or nothing")
    return dict(zip(activity_feed.KINDS, map(int, numbers), strict=True))


def _happening(happening: FeedRow) -> Json:
    tokens, memories = happening.amounts
    more: dict[str, Any] = {}
    if happening.kind == "injection":
        more = {"tokens": tokens, "memories": memories}
    elif happening.kind == "search":
        more = {"results": memories}
    name, text = PurePath(happening.project).name, display.cut(happening.text, TEXT_CHARACTERS)
    return as_json(happening, "kind at project name session what=word text", name=name, text=text, **more)
