"""The pages that only read: what each asks the daemon, and the template that shows the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from html import escape
from typing import Any, TypeVar, get_args

from csmd.cli import dreams, injections, show
from csmd.cli.render import describe_dream, describe_recording, many
from csmd.errors import BadInput
from csmd.json_fields import iter_strings
from csmd.text.ages import when
from csmd.text.display import cut
from csmd.vocabulary import Gate

Json = dict[str, Any]
T = TypeVar("T")

#: Rows of one page of a list.
PAGE_ROWS = 50
#: Turns of one page of a conversation.
PAGE_TURNS = 60
#: Hits that a search shows first.
FIRST_HITS = 20
#: Hits that a search shows at most.
MAX_HITS = 100
#: Bytes that the rows of a page may take in HTML; with other markup it stays below 300 KB.
MAX_PAGE_BYTES = 170_000
#: Bytes of markup that each row adds.
ROW_MARKUP_BYTES = 1_500
#: Characters of a text in a list.
MAX_LINE_CHARACTERS = 600
#: Characters of a turn in its conversation.
MAX_TURN_CHARACTERS = 6_000
#: Characters of one part of a turn on its own page.
PART_CHARACTERS = 30_000
#: Characters of a tool's output.
MAX_OUTPUT_CHARACTERS = 1_500
#: Characters of a file's diff.
MAX_DIFF_CHARACTERS = 8_000
#: Characters of a search.
MAX_QUERY_CHARACTERS = 300
#: Sources and links of a memory that are shown.
MAX_SOURCES = 20
#: Gate -> what a memory of it is, in a word or two.
GATE_LABELS: Mapping[str, str] = {
    "correction": "Correction", "behavioral": "Preference", "epistemic": "Fact or decision", "relational": "Project",
    "promissory": "Plan",
}  # fmt: skip
assert set(GATE_LABELS) == set(get_args(Gate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request: how the daemon is asked, what the address and a form say, and the id in the path."""

    ask: Callable[..., Any]
    work: Callable[..., Any]
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    id: str = ""

    def read_number(self, name: str) -> int:
        """Returns a number from the address, 0 where it has none."""
        value = self.query.get(name, "")
        return int(value) if value.isdecimal() and len(value) < 10 else 0


@dataclass(frozen=True, slots=True)
class Page:
    """A template and its values."""

    template: str
    values: Mapping[str, Any]


def show_overview(visit: Visit) -> Page:
    """Returns the overview: whether csmd works, what is known, and what happened last."""
    state = visit.ask("csm_runtime_status")
    return Page("overview.html", {
        "state": state, "health": describe_health(state), "dream": summarize_dreaming(state["dream"]) if state.get("dream") else "",
        "waiting": visit.ask("csm_review_list", limit=1)["total"],
        "sessions": visit.ask("csm_session_list", limit=6)["sessions"],
        "memories": _shorten(visit.ask("csm_memory_list", limit=6, state="active")["memories"]),
    })  # fmt: skip


def describe_health(state: Mapping[str, Any]) -> tuple[str, str]:
    """Returns (good, warning or bad; a sentence on whether csmd works) from the daemon's state."""
    counts = state["counts"]
    amounts = f"{many(counts['memories'], 'memory')} from {many(counts['sessions'], 'session')}"
    if state["alarms"]:
        return "bad", f"Not recording: {state['alarms'][0]['what']}. Try: {state['alarms'][0]['do']}."
    if state.get("paused"):
        until = f"until {when(state['paused']['until'])}" if state["paused"].get("until") else "until you resume it"
        return "warning", f"Paused {until}: nothing is recorded, and no session is told anything. {amounts} are kept."
    live = describe_recording(state)
    if state["degraded"]:
        return "warning", f"Working with limits: {live}; {state['degraded'][0]}."
    return "good", f"Healthy: {live}."


def describe_source(memory: Mapping[str, Any]) -> str:
    """Describes the speaker of a memory."""
    if memory["origin"] in ("inferred", "model_saved"):
        by = "imported from another program" if memory["authority"] == "external" else "saved by the assistant"
        return "inferred from sessions" if memory["origin"] == "inferred" else by
    if memory["author"]:
        return f"said by {memory['author']}"
    authority = {"user": "you", "assistant": "the assistant", "external": "another source"}[memory["authority"]]
    return f"said by {authority}"


def summarize_dreaming(state: Mapping[str, Any]) -> str:
    """Whether a dream is due, under way, or why none is."""
    verdict = describe_dream(dict(state))
    return f"N{verdict[1:]}" if verdict.startswith("next ") else f"Dream: {verdict}"


def show_day(visit: Visit) -> Page:
    """Returns the changes, decisions and open matters of a day, over all projects; today's by default."""
    report = visit.ask("csm_today", date=visit.query.get("date", ""), walls=True, by_person=True)
    day = date.fromisoformat(report["date"])
    before, after = ((day + timedelta(days=step)).isoformat() for step in (-1, 1))
    values = {"projects": report["projects"], "before": before, "after": after}
    return Page("day.html", {"day": f"{day:%A}, {day}", **values})


def list_sessions(visit: Visit) -> Page:
    """Returns the timeline of sessions over the projects."""
    offset, where = visit.read_number("offset"), _project_filter(visit)
    page = visit.ask("csm_session_list", **where, limit=PAGE_ROWS + 1, offset=offset)["sessions"]
    rows = fit_page(page[:PAGE_ROWS])
    return Page("sessions.html", {
        "rows": rows, "days": _group_by_day(rows, "last_at"), "projects": _list_projects(visit), "more": len(page) > len(rows),
        "offset": offset,
    })  # fmt: skip


def show_session(visit: Visit) -> Page:
    """Returns a session as a conversation, with what became memories marked in it."""
    offset = visit.read_number("offset")
    about = visit.ask("csm_session_transcript", id=visit.id, limit=PAGE_TURNS + 1, offset=offset)
    turns = [
        {
            **turn,
            "text": cut(
                turn["text"], MAX_TURN_CHARACTERS if turn["kind"] in ("user", "assistant") else MAX_OUTPUT_CHARACTERS
            ),
            "size": len(turn["text"]),
        }
        for turn in about.pop("conversation")
    ]  # fmt: skip
    rows = fit_page(turns[:PAGE_TURNS])
    return Page("session.html", {"session": about, "rows": rows, "more": len(turns) > len(rows), "offset": offset})


def show_turn(visit: Visit) -> Page:
    """Returns one turn in full, in parts where it is very long."""
    turn, start = visit.ask("csm_turn_show", id=visit.id), visit.read_number("offset")
    part, size = turn["text"][start : start + PART_CHARACTERS], len(turn["text"])
    return Page("turn.html", {"turn": {**turn, "text": part}, "offset": start, "part": len(part), "size": size})


def list_memories(visit: Visit) -> Page:
    """Returns the memories by project, kind and time, with what replaced what."""
    offset = visit.read_number("offset")
    gate, state, since = (visit.query.get(name, "") for name in ("kind", "state", "since"))
    if gate and gate not in GATE_LABELS:
        raise BadInput(f"there is no kind of memories {gate!r}", hint="choose one from the list")
    limits = {"gate": gate, "state": state, "since": since}
    page = visit.ask("csm_memory_list", **_project_filter(visit), **limits, limit=PAGE_ROWS, offset=offset)
    rows = fit_page(_shorten(page["memories"]))
    return Page("memories.html", {
        "rows": rows, "days": _group_by_day(rows, "confirmed_at"), "projects": _list_projects(visit), "kinds": GATE_LABELS,
        "total": page["total"], "offset": offset, "more": offset + len(rows) < page["total"],
    })  # fmt: skip


def show_memory(visit: Visit) -> Page:
    """Returns one memory: where it was said, how sure it is, what it replaced, who was shown it."""
    memory = visit.ask("csm_memory_show", id=visit.id, start=bool(visit.read_number("start")))
    hidden = {name: max(len(memory[name]) - MAX_SOURCES, 0) for name in ("sources", "links", "changes")}
    shown = {**memory, **{name: memory[name][:MAX_SOURCES] for name in hidden}}
    return Page("memory.html", {
        "memory": shown, "hidden": hidden, "fades": show.describe_fading(memory) if memory["start"] else "",
        "relation_of": show.describe_relation,
    })  # fmt: skip


def show_fading(visit: Visit) -> Page:
    """Returns how long a memory is shown, for the script: this compares it with all other memories."""
    memory = visit.ask("csm_memory_show", id=visit.id, only_fading=True)
    return Page("fading.html", {"fades": show.describe_fading(memory)})


def show_search(visit: Visit) -> Page:
    """Returns the hits of a search."""
    return Page("search.html", _find_hits(visit))


def show_search_hits(visit: Visit) -> Page:
    """Returns the hits alone, for the script that searches as one types."""
    return Page("hits.html", _find_hits(visit))


def _find_hits(visit: Visit) -> Json:
    query = visit.query.get("q", "").strip()[:MAX_QUERY_CHARACTERS]
    limit = min(max(visit.read_number("most"), FIRST_HITS), MAX_HITS)
    if not any(map(str.isalnum, query)):
        return {"q": query, "hits": [], "found": None, "most": limit, "more": False, "projects": _list_projects(visit)}
    kind = visit.query.get("kind", "") or "all"
    answer = visit.ask("csm_memory_search", query=query, **_project_filter(visit), kind=kind, limit=limit)
    hits = fit_page([{**hit, "text": cut(hit["text"], MAX_LINE_CHARACTERS)} for hit in answer["hits"]])
    is_full = len(answer["hits"]) == limit < MAX_HITS
    result = {"q": query, "hits": hits, "found": answer, "most": limit, "more": is_full}
    return {**result, "projects": _list_projects(visit)}


def list_receipts(visit: Visit) -> Page:
    """Returns the notes that sessions were shown, with time, reason and use."""
    offset, session = visit.read_number("offset"), visit.query.get("session", "")
    limits = {"limit": PAGE_ROWS // 2 + 1, "offset": offset}
    page = visit.ask("csm_receipts", **_project_filter(visit), session=session, details=True, **limits)

    def shorten_items(row: Json) -> Json:
        return {**row, "items": _shorten(row["items"])}

    shortened = list(map(shorten_items, page["receipts"]))
    rows = fit_page(shortened[: PAGE_ROWS // 2])
    return Page("told.html", {
        "rows": rows, "days": _group_by_day(rows, "at"), "week": page["week"], "projects": _list_projects(visit),
        "offset": offset,
        "more": len(shortened) > len(rows), "events": injections.EVENT_LABELS, "reason": injections.describe_reason,
        "use": injections.describe_use, "hint": injections.describe_state, "states": injections.STATES,
    })  # fmt: skip


def list_dreams(visit: Visit) -> Page:
    """Returns the dreams, and whether one is due."""
    offset = visit.read_number("offset")
    page = visit.ask("csm_dream_history", limit=PAGE_ROWS + 1, offset=offset)["dreams"]
    return Page("dreams.html", {
        "rows": page[:PAGE_ROWS], "state": summarize_dreaming(visit.ask("csm_dream_status")), "offset": offset,
        "more": len(page) > PAGE_ROWS, "summary": dreams.summarize_dream,
    })  # fmt: skip


def show_dream(visit: Visit) -> Page:
    """Returns the changes of a dream, before and after."""
    offset = visit.read_number("offset")
    diff = visit.ask("csm_dream_diff", id=visit.id, by_person=True, limit=PAGE_ROWS + 1, offset=offset)
    changes = [
        {
            **change,
            "files": [
                {**file, "diff": cut(file["diff"], MAX_DIFF_CHARACTERS).splitlines()[2:]} for file in change["files"]
            ],
        }
        for change in diff["did"]
    ]  # fmt: skip
    rows = fit_page(changes[:PAGE_ROWS])
    return Page("dream.html", {
        "dream": diff["dream"], "rows": rows, "offset": offset, "more": len(changes) > len(rows),
        "kinds": dreams.KINDS, "states": dreams.STATES, "summary": dreams.summarize_dream,
    })  # fmt: skip


def list_review(visit: Visit) -> Page:
    """Returns the items of the review, each with the keys that answer it."""
    waiting = visit.ask("csm_review_list", **_project_filter(visit), limit=PAGE_ROWS // 2)
    for item in waiting["items"]:
        shown = {item["text"], *(memory["text"] for memory in item["memories"])}
        item["evidence"] = [piece for piece in item["evidence"] if (piece["sentence"] or piece["text"]) not in shown]
    return Page("review.html", {
        "rows": fit_page(waiting["items"]), "total": waiting["total"], "imports": waiting["imports"],
        "projects": _list_projects(visit), "at": visit.read_number("at"),
    })  # fmt: skip


def _project_filter(visit: Visit) -> dict[str, str]:
    return {"project": visit.query.get("project", "")}


def _list_projects(visit: Visit) -> list[Json]:
    """Returns the projects that a list can be limited to, those with memories first, for the choice above it."""
    rows = [row for row in visit.ask("csm_project_list")["projects"] if row["root"]]
    return sorted(rows, key=lambda row: (not row["memories"], row["name"], row["root"]))[: 4 * PAGE_ROWS]


def _shorten(rows: Sequence[Json]) -> list[Json]:
    return [{**row, "text": cut(row["text"], MAX_LINE_CHARACTERS)} for row in rows]


def _group_by_day(rows: Sequence[Json], name: str) -> list[tuple[str, list[Json]]]:
    """Returns the rows by the local day of one of their times, in their order."""
    days: dict[str, list[Json]] = {}
    for row in rows:
        days.setdefault(when(row[name])[:10], []).append(row)
    return list(days.items())


def fit_page(rows: Sequence[T]) -> list[T]:
    """Returns the first rows that fit into the room of one page, at least one."""
    bytes_left = MAX_PAGE_BYTES
    shown: list[T] = []
    for row in rows:
        sizes = (len(escape(text).encode("utf-8", "replace")) for text in iter_strings(row))
        bytes_left -= ROW_MARKUP_BYTES + sum(sizes)
        if bytes_left < 0 and shown:
            break
        shown.append(row)
    return shown


#: Path -> the page there, in the order of the navigation.
PAGES: Mapping[str, Callable[[Visit], Page]] = {
    "/": show_overview, "/today": show_day, "/sessions": list_sessions, "/session/{id:path}": show_session,
    "/turn/{id:path}": show_turn, "/memories": list_memories, "/memory/{id}": show_memory,
    "/memory/{id}/fading": show_fading, "/search": show_search, "/search/hits": show_search_hits,
    "/told": list_receipts, "/dreams": list_dreams, "/dream/{id}": show_dream, "/review": list_review,
}  # fmt: skip
#: Path of a page -> its name in the navigation.
NAVIGATION: Mapping[str, str] = {
    "/": "Overview", "/today": "Today", "/sessions": "Sessions", "/memories": "Memories", "/search": "Search",
    "/told": "Told", "/dreams": "Dreams", "/review": "Review",
}  # fmt: skip
