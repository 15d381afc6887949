"""Tools on receipts: what sessions were shown, when and why, and its whole text."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import asdict
from typing import NamedTuple, TypeVar

from csmd.capture import whole_text
from csmd.errors import BadInput, NotFound
from csmd.privacy.fingerprints import PURGED
from csmd.recall import advisory, last_sessions, usage, visibility
from csmd.recall.hybrid_search import SHOWN_ID_CHARACTERS
from csmd.store import checkpoints, failures, memories, passages, receipts, search, turns
from csmd.store.receipts import Item, Receipt
from csmd.store.sqlite import Rows, ids_like
from csmd.store.turns import CutTurn
from csmd.text import display
from csmd.tools.declaration import Json, Places, ToolContext, Tools, clamp_limit
from csmd.tools.present import as_json, find_memory, find_session, read_roots, refuse_ambiguous

TOOLS = Tools()
T = TypeVar("T")
#: The id of a checkpoint that was not stored yet.
UNSTORED_ID = ""
#: First letter of an id -> the kind of item it names.
KIND_BY_ID = {UNSTORED_ID: "checkpoint", "k": "checkpoint", "g": "goal"}
#: Reasons of items that name a session instead of a memory.
SESSION_REASONS = frozenset({last_sessions.HOW_ENDED, last_sessions.WHY_CHANGED})
#: Characters shown of a quoted passage.
MAX_QUOTE_CHARACTERS = 300
#: Characters shown of the prompt that an injection answered.
MAX_PROMPT_CHARACTERS = 200
#: Most receipts that one call shows in detail.
MAX_RECEIPTS_SHOWN = 100
#: Most receipts of one page of a list.
MAX_RECEIPTS_LISTED = 1000
WEEK_S = 7 * 86_400
#: States of an item whose text is not shown.
UNSHOWN_STATES = ("gone", "hidden")
RECEIPT_FIELDS = "id session_id event at tokens"


@TOOLS.add("csm_receipts")
def _list_receipts(
    ctx: ToolContext, rows: Rows, session: str = "", places: Places = None, asking: str = "", limit: int = 20,
    offset: int = 0, details: bool = False,
) -> Json:  # fmt: skip
    """List injections: when, into which session, how much was used; with `details` each item and why."""
    session_id, visible = _find_session_id(rows, session), visibility.find_visible_places(rows, asking=asking)
    max_rows, root_of = clamp_limit(limit, MAX_RECEIPTS_LISTED), read_roots(rows) if details else {}
    listed_receipts = []
    if session_id is not None:
        limits = {"limit": max_rows, "offset": max(offset, 0)}
        listed_receipts = receipts.list_receipts(rows, projects=places, session_id=session_id, **limits)
    week = receipts.sum_usage_since(rows, ctx.before(WEEK_S), projects=places)
    values: list[Json] = []
    for row_in_page in listed_receipts:
        row = as_json(
            row_in_page.receipt, RECEIPT_FIELDS, items=row_in_page.items, judged=row_in_page.judged,
            used=row_in_page.used,
        )  # fmt: skip
        if details:
            row |= _receipt_json(rows, row_in_page.receipt, visible, marks={})
            row["project"] = root_of.get(row_in_page.receipt.project_seq, "")
        values.append(row)
    return {"receipts": values, "week": asdict(week)}


def _find_session_id(rows: Rows, word: str) -> str | None:
    """Returns the id of the typed session: "" for any session, None for one that was shown nothing."""
    if not word:
        return ""
    matches = _prefer_exact(receipts.find_sessions_by_prefix(rows, word), word, str)
    return matches[0] if matches else None


@TOOLS.add("csm_context_get")
def _show_text(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Generator[None, None, Json]:
    """Show the whole text of what a session was shown, or of a tool's call or output that csmd trimmed.

    The id is that of a memory, an error, a turn, or a receipt (for all items of one injection).
    """
    item_id, visible = id_.strip(), visibility.find_visible_places(rows, asking=asking)
    output = _find_tool_turn(rows, item_id)
    if output is not None and _is_in(output.project_seq, visible):
        return {"id": output.uuid, "items": [(yield from _whole_turn_json(ctx, rows, output))]}
    content = item_json(rows, item_id, visible) if item_id else {"state": "gone"}
    if content["state"] in KIND_BY_ID.values():
        raise BadInput(f"{item_id!r} is a {content['state']}", hint=f"`csmd {content['state']} list` shows them")
    if content["state"] not in UNSHOWN_STATES:
        return {"id": item_id, "items": [{"id": item_id, **content}]}
    matches = [receipt for receipt in _match_receipts(rows, item_id) if _is_in(receipt.project_seq, visible)]
    if not matches:
        raise NotFound(f"there is no memory, turn or receipt {item_id!r}", hint="`csmd why --list` lists receipts")
    items = receipts.list_items(rows, matches[0])
    values = [{"id": item.id, **item_json(rows, item.id, visible, reason=item.reason)} for item in items]
    return {"id": matches[0].id, "items": values}


def _match_turns(rows: Rows, prefix: str) -> list[tuple[int, str]]:
    """Returns (row, uuid) of the turns that begin with `ident`; [] if it is shorter than an id that csmd shows."""
    return search.turns_with_prefix(rows, prefix) if len(prefix) >= SHOWN_ID_CHARACTERS else []


def _match_receipts(rows: Rows, prefix: str) -> list[Receipt]:
    return _prefer_exact(receipts.find_by_prefix(rows, prefix), prefix, lambda receipt: receipt.id) if prefix else []


def _is_in(project_seq: int, places: Places) -> bool:
    """Whether a project is one of `places` (None for all)."""
    return places is None or project_seq in places


def _find_tool_turn(rows: Rows, prefix: str) -> CutTurn | None:
    """Returns a tool's turn, or a trimmed one, by its id or the beginning of it; None if there is none or several
    match."""
    matches = _match_turns(rows, prefix)
    seqs = [seq for seq, uuid in matches if uuid == prefix] or ([matches[0][0]] if len(matches) == 1 else [])
    return next(iter(turns.find_cut(rows, seqs)), None)


def _whole_turn_json(ctx: ToolContext, rows: Rows, turn: CutTurn) -> Generator[None, None, Json]:
    """Yields a turn's whole text and its source; `state` is `trimmed` if only the stored part is left."""
    about = as_json(turn, "authority=kind said_at=at said_in=session_id tool=tool_name", id=turn.uuid)
    if turn.text == PURGED:
        raise BadInput(f"{turn.uuid} was purged", hint="`csmd forget --lift` with the same id lets it in again")
    if not turn.dropped:
        return {**about, "state": "whole", "source": "store", "left_out": 0, "text": turn.text}
    sources = whole_text.find_sources(rows, turn, key=ctx.store.hash_key)
    text = yield from whole_text.read_whole(turn, sources, excludes=ctx.excludes)
    captured = checkpoints.find_captured_text(rows, turn.uuid) if text is None and turn.is_gone else ""
    if text is not None:
        return {**about, "state": "whole", "source": "transcript", "left_out": 0, "text": text}
    missing = max(turn.dropped - len(captured.encode()), 0)
    state, source = ("trimmed", "store") if not captured or missing else ("whole", "checkpoint")
    return {**about, "state": state, "source": source, "left_out": missing, "text": captured or turn.text}


def _prefer_exact(rows: list[T], word: str, id_of: Callable[[T], str]) -> list[T]:
    exact = [row for row in rows if id_of(row) == word]
    if not exact:
        refuse_ambiguous(word, [id_of(row) for row in rows])
    return exact or rows


def _find_marks(rows: Rows, receipt: Receipt) -> dict[str, tuple[str, ...]]:
    """Returns the words that showed use; recomputed, because they are not stored."""
    judged = receipts.find_waiting(rows, receipt.seq)
    return usage.find_use_marks(rows, judged) if judged else {}


def _receipt_json(rows: Rows, receipt: Receipt, visible: Places, *, marks: dict[str, tuple[str, ...]]) -> Json:
    question = receipts.find_answered_prompt(rows, receipt) if receipt.event == "prompt" else None
    prompt, project_seq = question or ("", 0)
    return as_json(
        receipt, RECEIPT_FIELDS,
        prompt=display.cut(display.squeeze(prompt), MAX_PROMPT_CHARACTERS) if _is_in(project_seq, visible) else "",
        items=[_injected_item_json(rows, item, visible, marks.get(item.id, ())) for item in receipts.list_items(rows, receipt)],
    )  # fmt: skip


def _injected_item_json(rows: Rows, item: Item, visible: Places, marks: tuple[str, ...]) -> Json:
    """Returns one item of an injection: its text, why it was shown, and whether it was used."""
    content = item_json(rows, item.id, visible, reason=item.reason)
    if content["state"] == "quoted":
        content["text"] = display.cut(display.squeeze(content["text"]), MAX_QUOTE_CHARACTERS)
    visible_marks = list(marks) if item.used and content["text"] else []
    return as_json(item, "id score reason used used_by", marks=visible_marks, **content)


def item_json(rows: Rows, item_id: str, visible: Places, *, reason: str = "") -> Json:
    """Returns an item in its present state; `state` is `gone` if it was forgotten, `hidden` if it is behind a wall."""
    if item_id[:1] in KIND_BY_ID:
        return {"state": KIND_BY_ID[item_id[:1]], "text": ""}
    memory = memories.by_id(rows, item_id)
    if memory is None and reason in SESSION_REASONS:
        return {"state": "session", "text": ""}
    if memory is None and reason.startswith(advisory.REASON_PREFIX):
        return {"state": "preview", "text": ""}
    if memory is None:
        return _other_item_json(rows, item_id, visible)
    if not _is_in(memory.project_seq, visible):
        return {"state": "hidden", "text": ""}
    source = memory.provenance[0]
    return as_json(
        memory, "state text gate authority origin confidence scope pinned said_at said_in times", said_at=source.at,
        state="superseded" if memory.superseded_by else "there", said_in=source.session_id,
    )  # fmt: skip


def _other_item_json(rows: Rows, item_id: str, visible: Places) -> Json:
    """Returns an item that is not a memory: an error, a quoted turn, or one that is gone."""
    error = failures.find_error_by_id(rows, item_id, visible)
    if error is not None:
        text = f"{error.command}: {error.message}"
        return as_json(error, "state text times said_at=last_at", state="error", text=text)
    turn, _, start = item_id.partition("#")
    quote = turns.find_quote(rows, _find_turn_uuid(rows, turn))
    if quote is None:
        return {"state": "gone", "text": ""}
    if not _is_in(quote.project_seq, visible):
        return {"state": "hidden", "text": ""}
    content = as_json(quote, "state text authority=kind said_at=at said_in=session_id", state="quoted")
    return content | {"text": _read_passage(rows, quote.uuid, start) or quote.text} if start else content


def _read_passage(rows: Rows, uuid: str, start: str) -> str:
    """Returns the text of the passage that begins at an offset of a turn; "" if the turn has changed since."""
    turn_seqs = [seq for seq, full in search.turns_with_prefix(rows, uuid) if full == uuid]
    seqs = [seq for of_turn in passages.passages_of_turns(rows, turn_seqs).values() for seq in of_turn]
    return next((passage.text for passage in passages.by_seqs(rows, seqs).values() if str(passage.start) == start), "")


def _find_turn_uuid(rows: Rows, prefix: str) -> str:
    """Returns the uuid of the turn that begins with `ident`; `ident` itself if none or several do."""
    matches = _match_turns(rows, prefix)
    return matches[0][1] if len({uuid.partition("/")[0] for _, uuid in matches}) == 1 else prefix


class _Selection(NamedTuple):
    """Receipts, latest first; the memory that was asked for ("" for another id), and whether receipts were."""

    receipts: list[Receipt]
    memory_id: str = ""
    is_by_receipt: bool = False


@TOOLS.add("csm_receipt_show")
def _show_receipts(
    ctx: ToolContext, rows: Rows, id_: str = "", session: str = "", places: Places = None, asking: str = "",
    limit: int = 5,
) -> Json:  # fmt: skip
    """Show what a session was shown, and why.

    The id names one injection, a session, or a memory: then each injection lists that memory alone.
    """
    visible = visibility.find_visible_places(rows, asking=asking)
    selection = _select_receipts(rows, id_, session, places, asking, limit=clamp_limit(limit, MAX_RECEIPTS_SHOWN))
    visible_receipts = [receipt for receipt in selection.receipts if _is_in(receipt.project_seq, visible)]
    memory_id, word = selection.memory_id, session or id_
    if not visible_receipts and memory_id:
        hint = f"`csmd show {memory_id}` explains when it is shown"
        raise BadInput(f"{memory_id} was not shown to any session yet", hint=hint)
    if not visible_receipts and word:
        raise _no_injection_error(rows, word, asking, is_session=bool(session))
    injections = []
    for receipt in visible_receipts:
        marks = _find_marks(rows, receipt) if selection.is_by_receipt else {}
        injections.append(_receipt_json(rows, receipt, visible, marks=marks))
    if memory_id:
        for injection in injections:
            injection["items"] = [item for item in injection["items"] if item["id"] == memory_id]
    return {
        "session_id": visible_receipts[0].session_id if visible_receipts else "",
        "floor": ctx.config.settings.recall_floor, "injections": injections,
    }  # fmt: skip


def _select_receipts(rows: Rows, item_id: str, session: str, places: Places, asking: str, *, limit: int) -> _Selection:
    """Selects the receipts of an id: of a receipt, a memory or a session; without an id those of the last session."""
    if matches := _match_receipts(rows, item_id):
        return _Selection(matches, is_by_receipt=True)
    if item_id and ids_like(rows, "memories", item_id):
        memory_id = find_memory(rows, item_id, asking).id
        return _Selection(receipts.list_injections_of(rows, memory_id, limit=limit)[0], memory_id)
    word = session or item_id
    session_id = _find_session_id(rows, word) if word else receipts.find_last_session(rows, places)
    return _Selection(receipts.list_of_session(rows, session_id, limit=limit) if session_id else [])


def _no_injection_error(rows: Rows, word: str, asking: str, *, is_session: bool) -> BadInput:
    """Returns the error for an id without injections: a session that was shown nothing, or an unknown id."""
    try:
        session = find_session(rows, word, asking)
    except NotFound as error:
        if is_session:
            return error
        hint = "`csmd session list`, `csmd memories` and `csmd why --list` show their ids"
        return NotFound(f"there is no session, memory or receipt {word!r}", hint=hint)
    except BadInput as error:
        return error
    return BadInput(f"session {session.id} was shown nothing", hint="`csmd why --list` lists injections")
