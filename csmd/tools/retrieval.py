"""Tools on retrieval: search, receipts, context log, instructions, questions in SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, get_args

from csmd.capture import claude_instructions, whole_text
from csmd.errors import BadInput, CsmdError
from csmd.hosts import adapters
from csmd.paths import is_directory
from csmd.privacy.fingerprints import PURGED
from csmd.privacy.redaction import redact
from csmd.recall import advisory, compose, hybrid_search, last_sessions, query, results, usage, visibility
from csmd.store import (
    activity,
    checkpoints,
    failures,
    memories,
    passages,
    purge,
    receipts,
    search,
    sessions,
    sql_views,
    turns,
)
from csmd.store.activity import Composition, Lookup
from csmd.store.receipts import Item, Receipt
from csmd.store.search import SearchFilter
from csmd.store.sql_views import Answer
from csmd.store.sqlite import Rows, ids_like
from csmd.store.turns import LeftOut
from csmd.text import display, tokens
from csmd.text.token_weights import weigh_tokens
from csmd.tools.present import as_json, check_words, find_memory, find_session, lines_of, roots
from csmd.tools.registry import QUERY_VECTOR_S, Json, Places, ToolContext, Tools, between, places
from csmd.values import Hit
from csmd.vocabulary import Category, Gate, MemoryType

SEARCH = Tools()
CONTEXT = Tools()
RECEIPTS = Tools()
QUESTIONS = Tools()

T = TypeVar("T")
KINDS = ("all", "memory", "turn", "session")
MOST_HITS = 200
#: What only memories have -> what it may be.
OF_MEMORIES: dict[str, tuple[str, ...]] = {
    "gate": get_args(Gate),
    "category": get_args(Category),
    "type": get_args(MemoryType),
}


@SEARCH.add("csm_memory_search")
def _search(
    ctx: ToolContext, rows: Rows, query_: str, seen: Places = None, asking: str = "", limit: int = 10, kind: str = "all",
    explain: bool = False, since: str = "", until: str = "", gate: str = "", category: str = "", type_: str = "",
    session: str = "",
) -> Json:  # fmt: skip
    """Search memories, conversations and session summaries."""
    if not any(map(str.isalnum, query_)) and not tokens.unindexed(query_):
        raise BadInput("there is nothing to search for", hint="give words to look for: csmd search retry policy")
    now, of_memories = ctx.here(ctx.now()), {"gate": gate, "category": category, "type": type_}
    kind = _kind(kind, of_memories)
    within = query.parse_limits(since, until, now=now)
    ident = find_session(rows, session, asking).id if session else ""
    embed = ctx.query_vector(deadline_s=QUERY_VECTOR_S, start=True)
    hits, degraded = results.find(
        rows, query_, projects=seen, kind=kind, limit=between(limit, MOST_HITS), now=now,
        embed=embed,
        within=SearchFilter(since=within.since, until=within.until, session=ident, **of_memories), asking=asking,
    )  # fmt: skip
    return {
        "query": query_,
        "by": "words" if embed is None or degraded else "words and meaning",
        "degraded": degraded,
        "close": results.is_close(hits, query_),
        "hits": [hit_json(hit, explain=explain) for hit in hits],
    }


def _kind(kind: str, of_memories: dict[str, str]) -> str:
    """What is looked for: memories alone where a limit names what only they have. BadInput for a word that is none."""
    if kind not in KINDS:
        raise BadInput(f"kind is memory, turn, session or all, not {kind!r}")
    check_words(of_memories, OF_MEMORIES)
    for name, value in of_memories.items():
        if value and kind in ("turn", "session"):
            raise BadInput(f"a {kind} has no {name}", hint="leave out kind, or say memory")
    return "memory" if any(of_memories.values()) else kind


def hit_json(hit: Hit, *, explain: bool) -> Json:
    """A hit as `csmd search --json` shows it (design section 8)."""
    row = {key: value for key, value in asdict(hit).items() if key not in ("factors", "answers")}
    row |= {"score": round(hit.score, 4), "source_uuids": lines_of(hit.source_uuids)}
    return {**row, "factors": hit.factors} if explain else row


#: What is told besides memories, by how its id begins; one of "" is of a checkpoint that was not stored yet.
BESIDE_MEMORIES = {"": "checkpoint", "k": "checkpoint", "g": "goal"}
#: Reasons of what a start is told that is no memory, but what a session came to.
OF_NO_MEMORY = frozenset({last_sessions.HOW_ENDED, last_sessions.WHY_CHANGED})
#: What is shown of a turn of which a passage was told.
QUOTED_CHARACTERS = 300
RECEIPTS_AT_ONCE, MOST_RECEIPTS_LISTED = 100, 1000
WEEK_S = 7 * 86_400
#: What a thing's state says where its text is not told.
UNSEEN = ("gone", "hidden")
RECEIPT = "id session_id event at tokens"


@RECEIPTS.add("csm_receipts")
def _receipts(
    ctx: ToolContext, rows: Rows, session: str = "", seen: Places = None, asking: str = "", limit: int = 20, offset: int = 0,
    details: bool = False,
) -> Json:  # fmt: skip
    """What was injected, when, into which session, and how much of it was used; with `details` each thing and why."""
    ident, visible = _session(rows, session), visibility.find_visible_places(rows, asking=asking)
    most, root_of = between(limit, MOST_RECEIPTS_LISTED), roots(rows) if details else {}
    listed_receipts = (
        receipts.list_receipts(rows, projects=seen, session_id=ident, limit=most, offset=max(offset, 0))
        if ident is not None
        else []
    )
    week = receipts.usage_since(rows, ctx.before(WEEK_S), projects=seen)
    shown: list[Json] = []
    for listed in listed_receipts:
        row = as_json(listed.receipt, RECEIPT, items=listed.items, judged=listed.judged, used=listed.used)
        if details:
            row |= _receipt(rows, listed.receipt, visible, marks={})
            row["project"] = root_of.get(listed.receipt.project_seq, "")
        shown.append(row)
    return {"receipts": shown, "week": asdict(week)}


def _session(rows: Rows, typed: str) -> str | None:
    """The session that was typed, "" for any, None for one that was told nothing."""
    if not typed:
        return ""
    matches = _only(receipts.sessions_like(rows, typed), typed, str)
    return matches[0] if matches else None


@RECEIPTS.add("csm_context_get")
def _get(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Generator[None, None, Json]:
    """The whole text of what a session was told, or of a tool's call or output that csmd trimmed or dropped.

    By the id of a memory, an error, a turn, or a receipt for all that one injection told.
    """
    ident, seen = id_.strip(), visibility.find_visible_places(rows, asking=asking)
    output = _left_out_named(rows, ident)
    if output is not None and (seen is None or output.project_seq in seen):
        return {"id": output.uuid, "items": [(yield from _whole(ctx, rows, output))]}
    content = thing(rows, ident, seen) if ident else {"state": "gone"}
    if content["state"] in BESIDE_MEMORIES.values():
        raise BadInput(f"{ident!r} is a {content['state']}", hint=f"`csmd {content['state']} list` shows them")
    if content["state"] not in UNSEEN:
        return {"id": ident, "items": [{"id": ident, **content}]}
    named = _only(receipts.by_prefix(rows, ident), ident, lambda receipt: receipt.id) if ident else []
    named = [receipt for receipt in named if seen is None or receipt.project_seq in seen]
    if not named:
        raise BadInput(
            f"nothing is kept as {ident!r}", hint="give the id of a memory, a turn or a receipt (`csmd why --list`)"
        )
    items = receipts.items(rows, named[0])
    return {
        "id": named[0].id,
        "items": [{"id": item.id, **thing(rows, item.id, seen, reason=item.reason)} for item in items],
    }


def _left_out_named(rows: Rows, ident: str) -> LeftOut | None:
    """The turn of a tool, or one of which not all is kept, by its id or the beginning of it."""
    matches = search.turns_like(rows, ident) if len(ident) >= hybrid_search.SHOWN_ID else []
    exact = [seq for seq, uuid in matches if uuid == ident] or ([matches[0][0]] if len(matches) == 1 else [])
    return next(iter(turns.left_out(rows, exact)), None)


def _whole(ctx: ToolContext, rows: Rows, turn: LeftOut) -> Generator[None, None, Json]:
    """A turn's whole text and where it was found; `state` is trimmed where only what is stored is left of it."""
    about = as_json(turn, "authority=kind said_at=at said_in=session_id tool=tool_name", id=turn.uuid)
    if turn.text == PURGED:
        raise BadInput(f"{turn.uuid} was purged", hint="`csmd forget --lift` with the same id lets it in again")
    if not turn.dropped:
        return {**about, "state": "whole", "source": "store", "left_out": 0, "text": turn.text}
    sources = whole_text.find_sources(rows, turn, key=ctx.store.hash_key)
    text = yield from whole_text.read_whole(turn, sources, excludes=ctx.excludes)
    captured = checkpoints.captured_text(rows, turn.uuid) if text is None and turn.is_gone else ""
    if text is not None:
        return {**about, "state": "whole", "source": "transcript", "left_out": 0, "text": text}
    missing = max(turn.dropped - len(captured.encode()), 0)
    state, source = ("trimmed", "store") if not captured or missing else ("whole", "checkpoint")
    return {**about, "state": state, "source": source, "left_out": missing, "text": captured or turn.text}


def _only(rows: list[T], typed: str, ident: Callable[[T], str]) -> list[T]:
    exact = [row for row in rows if ident(row) == typed]
    if len(rows) > 1 and not exact:
        raise BadInput(f"{typed!r} begins several: {', '.join(map(ident, rows))}", hint="type some more of it")
    return exact or rows


def _marks(rows: Rows, receipt: Receipt) -> dict[str, tuple[str, ...]]:
    """By which words use was told, found anew: they are not kept."""
    judged = receipts.waiting_receipt(rows, receipt.seq)
    return usage.find_use_marks(rows, judged) if judged else {}


def _receipt(rows: Rows, receipt: Receipt, seen: list[int] | None, *, marks: dict[str, tuple[str, ...]]) -> Json:
    question = receipts.answered_prompt(rows, receipt) if receipt.event == "prompt" else None
    may = question is not None and (seen is None or question[1] in seen)
    return as_json(
        receipt, RECEIPT, prompt=display.cut(display.squeeze(question[0]), 200) if question and may else "",
        items=[_item(rows, item, seen, marks.get(item.id, ())) for item in receipts.items(rows, receipt)],
    )  # fmt: skip


def _item(rows: Rows, item: Item, seen: list[int] | None, marks: tuple[str, ...]) -> Json:
    """One thing that was told, why, and whether it was used."""
    content = thing(rows, item.id, seen, reason=item.reason)
    if content["state"] == "quoted":
        content["text"] = display.cut(display.squeeze(content["text"]), QUOTED_CHARACTERS)
    visible_marks = list(marks) if item.used and content["text"] else []
    return as_json(item, "id score reason used used_by", marks=visible_marks, **content)


def thing(rows: Rows, ident: str, seen: list[int] | None, *, reason: str = "") -> Json:
    """What can be told, as it is now; `state` is gone when it was forgotten since, hidden behind a wall."""
    if ident[:1] in BESIDE_MEMORIES:
        return {"state": BESIDE_MEMORIES[ident[:1]], "text": ""}
    memory = memories.by_id(rows, ident)
    if memory is None and reason in OF_NO_MEMORY:
        return {"state": "session", "text": ""}
    if memory is None and reason.startswith(advisory.REASON):
        return {"state": "preview", "text": ""}
    if memory is None:
        return _no_memory(rows, ident, seen)
    if seen is not None and memory.project_seq not in seen:
        return {"state": "hidden", "text": ""}
    source = memory.provenance[0]
    return as_json(
        memory, "state text gate authority origin confidence scope pinned said_at said_in times", said_at=source.at,
        state="superseded" if memory.superseded_by else "there", said_in=source.session_id,
    )  # fmt: skip


def _no_memory(rows: Rows, ident: str, seen: list[int] | None) -> Json:
    """What was told that is no memory: an error, a turn, or what is gone."""
    error = failures.by_id(rows, ident, seen)
    if error is not None:
        text = f"{error.command}: {error.message}"
        return as_json(error, "state text times said_at=last_at", state="error", text=text)
    turn, _, start = ident.partition("#")
    quote = turns.quote_of(rows, _turn_of(rows, turn))
    if quote is None:
        return {"state": "gone", "text": ""}
    if seen is not None and quote.project_seq not in seen:
        return {"state": "hidden", "text": ""}
    content = as_json(quote, "state text authority=kind said_at=at said_in=session_id", state="quoted")
    return content | {"text": _passage_at(rows, quote.uuid, start) or quote.text} if start else content


def _passage_at(rows: Rows, uuid: str, start: str) -> str:
    """The words of the passage that begins at a place of a turn; "" for none, of a turn that was changed since."""
    turn_seqs = [seq for seq, full in search.turns_like(rows, uuid) if full == uuid]
    seqs = [seq for of_turn in passages.of_turns(rows, turn_seqs).values() for seq in of_turn]
    return next((passage.text for passage in passages.by_seqs(rows, seqs).values() if str(passage.start) == start), "")


def _turn_of(rows: Rows, ident: str) -> str:
    """The uuid of a turn whose beginning is given, as a prompt is told it; as it is where that names none, or several."""
    matches = search.turns_like(rows, ident) if len(ident) >= hybrid_search.SHOWN_ID else []
    return matches[0][1] if len({uuid.partition("/")[0] for _, uuid in matches}) == 1 else ident


@RECEIPTS.add("csm_receipt_show")
def _show(
    ctx: ToolContext,
    rows: Rows,
    id_: str = "",
    session: str = "",
    among: Places = None,
    asking: str = "",
    limit: int = 5,
) -> Json:
    """Show what a session was told, and why.

    With `id` one injection, those of a session, or those that told a memory, each without what else it told.
    """
    seen, most = visibility.find_visible_places(rows, asking=asking), between(limit, RECEIPTS_AT_ONCE)
    named = _only(receipts.by_prefix(rows, id_), id_, lambda receipt: receipt.id) if id_ else []
    memory = find_memory(rows, id_, asking).id if id_ and not named and ids_like(rows, "memories", id_) else ""
    typed = session or id_
    if named:
        injections = named
    elif memory:
        injections, _ = receipts.injections_of(rows, memory, limit=most)
    else:
        ident = _session(rows, typed) if typed else receipts.last_session(rows, among)
        injections = receipts.of_session(rows, ident, limit=most) if ident else []
    injections = [receipt for receipt in injections if seen is None or receipt.project_seq in seen]
    if not injections and memory:
        raise BadInput(
            f"no session was told {memory} yet", hint=f"`csmd show {memory}` says when it is told, or why not"
        )
    if not injections and typed:
        raise _untold(rows, typed, asking, is_session=bool(session))
    shown = [_receipt(rows, receipt, seen, marks=_marks(rows, receipt) if named else {}) for receipt in injections]
    if memory:
        for injection in shown:
            injection["items"] = [item for item in injection["items"] if item["id"] == memory]
    return {
        "session_id": injections[0].session_id if injections else "",
        "floor": ctx.config.settings.recall_floor,
        "injections": shown,
    }


def _untold(rows: Rows, typed: str, asking: str, *, is_session: bool) -> BadInput:
    """The error for an id with no injections: of a session that was told nothing, or of nothing that csmd knows."""
    try:
        session = find_session(rows, typed, asking)
    except BadInput as error:
        if is_session or "there is no" not in error.what:
            return error
        hint = "`csmd session list`, `csmd memories` and `csmd why --list` show their ids"
        return BadInput(f"there is no session, memory or receipt {typed!r}", hint=hint)
    return BadInput(
        f"the session {session.id} was told nothing", hint="`csmd why --list` lists what sessions were told"
    )


MOST_DAYS, MOST_NOTED = 90, 1000


@RECEIPTS.add("csm_context_log")
def _log(ctx: ToolContext, rows: Rows, days: int = 7, limit: int = 20) -> Json:
    """What was composed for sessions, and how often it came to nothing."""
    since = _since(ctx, days)
    compositions = [*_late(ctx.unwritten()[0], since), *activity.compositions_since(rows, since)]
    events = {
        event: _composed([composition for composition in compositions if composition.event == event])
        for event in sorted({composition.event for composition in compositions})
    }
    return {
        "since": since,
        "events": events,
        "log": [composition._asdict() for composition in compositions[: between(limit, MOST_NOTED)]],
    }


def _composed(compositions: Sequence[Composition]) -> Json:
    return {
        "composed": len(compositions),
        "silent": sum(1 for composition in compositions if not composition.chosen),
        "degraded": sum(1 for composition in compositions if composition.degraded),
        "cut": sum(1 for composition in compositions if composition.cut),
        "tokens": sum(composition.tokens for composition in compositions),
        **_times([composition.ms for composition in compositions]),
    }


@RECEIPTS.add("csm_recall_report")
def _report(ctx: ToolContext, rows: Rows, days: int = 7) -> Json:
    """How often something was looked for and not found."""
    since = _since(ctx, days)
    lookups = [*_late(ctx.unwritten()[1], since), *activity.lookups_since(rows, since)]
    kinds = {
        kind: _recalled([lookup for lookup in lookups if lookup.kind == kind])
        for kind in sorted({lookup.kind for lookup in lookups})
    }
    return {"since": since, "kinds": kinds}


def _recalled(lookups: Sequence[Lookup]) -> Json:
    different = len(Counter(lookup.query_hash for lookup in lookups))
    return {
        "asked": len(lookups),
        "empty": sum(1 for lookup in lookups if not lookup.results),
        "different": different,
        "asked_again": len(lookups) - different,
        "results": sum(lookup.results for lookup in lookups),
        **_times([lookup.ms for lookup in lookups]),
    }


def _times(took: Sequence[int]) -> dict[str, int]:
    ordered = sorted(took)
    return {"median_ms": ordered[len(ordered) // 2], "p95_ms": ordered[len(ordered) * 19 // 20]}


def _late(waiting: Sequence[Any], since: str) -> list[Any]:
    return [entry for entry in waiting if entry.at >= since]


def _since(ctx: ToolContext, days: int) -> str:
    return ctx.before(between(days, MOST_DAYS) * 86_400)


MOST_FILLED = 50
#: A session without a turn for this long is nobody's any more.
LIVE_S = 3600


def live_sessions(rows: Rows, *, since: str, limit: int, among: list[int] | None = None) -> list[Json]:
    """The sessions that go on, the latest first: how many tokens each has in its context, of how many, and its bracket."""
    live = []
    for session, project, model, last, taken in sessions.live_sessions(rows, since=since, limit=limit, projects=among):
        window = adapters.of_session(session).window(model, taken)
        live.append({
            "session": session, "project": project, "model": model, "last": last, "tokens": taken, "window": window,
            "bracket": compose.bracket_of(taken, window),
        })  # fmt: skip
    return live


@CONTEXT.add("csm_context_build")
def _build(ctx: ToolContext, rows: Rows, project: str, asking: str = "", mode: str = "host") -> Json:
    """The instructions a session there is given."""
    if mode not in ("host", "seed"):
        raise BadInput(f"mode is host or seed, not {mode!r}")
    place = claude_instructions.place_of(_directory(rows, project, asking), claude_instructions.user_of(ctx.config))
    loaded = claude_instructions.load_instructions(place)
    problems: list[str] = []
    if mode == "host":
        files: list[tuple[str, str, str]] = [(file.kind, file.path, file.content) for file in loaded]
        body = claude_instructions.build(loaded)
    else:
        files, problems = claude_instructions.merge_files(place)
        files += [("memory", file.path, file.content) for file in loaded if file.kind == "AutoMem"]
        body = "\n\n".join(content for *_, content in files)
    return {
        "project": place.start,
        "mode": mode,
        "text": body,
        "tokens": weigh_tokens(body),
        "files": [
            {"scope": scope.lower(), "path": path, "tokens": weigh_tokens(content)} for scope, path, content in files
        ],
        "problems": problems,
    }


@CONTEXT.add("csm_memdir_scan")
def _scan(ctx: ToolContext, rows: Rows, project: str, asking: str = "") -> Json:
    """The files of the assistant's own memory."""
    folder = _memory_folder(ctx, rows, project, asking)
    return {"folder": str(folder), "files": [asdict(memo) for memo in claude_instructions.scan_notes(folder)]}


def _memory_folder(ctx: ToolContext, rows: Rows, project: str, asking: str) -> Path:
    user = claude_instructions.user_of(ctx.config)
    return claude_instructions.memory_folder(_directory(rows, project, asking), user)


@CONTEXT.add("csm_memdir_load")
def _load(ctx: ToolContext, rows: Rows, *, project: str, asking: str = "", file: str) -> Json:
    """One file of the assistant's own memory."""
    folder = _memory_folder(ctx, rows, project, asking)
    return {"folder": str(folder), "file": file, "text": claude_instructions.read_note(folder, file)}


@CONTEXT.add("csm_context_status", lane="status")
def _filling(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """How full the contexts of live sessions are, and how much is added to each."""
    settings = ctx.config.settings
    most, begins = settings.recall_max_tokens, [0.0, *(policy.below for policy in compose.POLICY.values())]
    return {
        "sessions": [
            {**session, "recall_tokens": int(most * compose.POLICY[session["bracket"]].recall)}
            for session in live_sessions(rows, since=ctx.before(LIVE_S), limit=MOST_FILLED, among=seen)
        ],
        "brackets": [
            {
                "bracket": name, "from_percent": round(100 * begin), "recall_tokens": int(most * policy.recall),
                "restored_tokens": int(settings.brief_max_tokens * policy.restored),
            }
            for (name, policy), begin in zip(compose.POLICY.items(), begins, strict=False)
        ],
    }  # fmt: skip


def _directory(rows: Rows, project: str, asking: str) -> str:
    if not is_directory(project):
        raise BadInput(f"{project}: there is no such directory", hint="name one that is on this machine")
    places(rows, project, asking)  # a wall holds for files as well
    return project


# --- questions in SQL

#: Rows that are shown of each view, and characters of a value in them.
SAMPLE_ROWS, SAMPLE_CHARACTERS = 2, 60


@QUESTIONS.add("csm_store_schema")
def _schema(ctx: ToolContext, rows: Rows, view: str = "", asking: str = "") -> Json:
    """Describe the views that csm_store_query sees: what a row and each column mean, how they join, a sample"""
    views = [shown_view for shown_view in sql_views.VIEWS if view in ("", shown_view.name)]
    if not views:
        raise BadInput(f"there is no view {view[:60]!r}", hint=f"choose one of {', '.join(sorted(sql_views.NAMES))}")
    path, places = ctx.store.path, _visible_places(rows, asking)
    return {
        "views": [
            {
                "name": shown_view.name,
                "a row is": shown_view.about,
                "columns": dict(shown_view.columns),
                "joins": list(shown_view.joins),
                "sample": _rows_json(
                    sql_views.sample(path, shown_view, places=places, limit=SAMPLE_ROWS), SAMPLE_CHARACTERS
                ),
            }
            for shown_view in views
        ],
        "limits": {
            "rows": sql_views.MOST_ROWS,
            "seconds": sql_views.SECONDS,
            "characters of a value": sql_views.VALUE_CHARACTERS,
            "functions": sorted(sql_views.FUNCTIONS),
        },
    }


@QUESTIONS.add("csm_store_query")
def _query(ctx: ToolContext, rows: Rows, sql: str, limit: int = 50, asking: str = "") -> Json:
    """Answer one SELECT (SQLite) on the views of csm_store_schema: 100 rows, 2 seconds, 2,000 characters a value at most; it changes nothing"""
    places, most = _visible_places(rows, asking), between(limit, sql_views.MOST_ROWS)
    answer = sql_views.ask(ctx.store.path, sql, places=places, limit=most)
    return {"columns": list(answer.columns), "rows": _rows_json(answer), "more": answer.is_cut}


def _visible_places(rows: Rows, asking: str) -> Places:
    """The projects that a question may see; CsmdError while what must not be seen any more is being removed."""
    if purge.is_unfinished(rows):
        raise CsmdError("a purge is under way", hint="ask again when `csmd status` shows that it has ended")
    return visibility.find_visible_places(rows, asking=asking)


def _rows_json(answer: Answer, characters: int = sql_views.VALUE_CHARACTERS) -> list[list[Any]]:
    """The rows without what today's rules know as a secret."""
    return [
        [display.cut(redact(value, Counter()), characters) if isinstance(value, str) else value for value in row]
        for row in answer.rows
    ]
