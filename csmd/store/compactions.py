"""What was trimmed or dropped of turns: bytes and tokens before and after, and a recount."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from csmd.privacy.fingerprints import PURGED
from csmd.store.sqlite import Rows, in_keys
from csmd.text import display
from csmd.text.token_weights import weigh_tokens

#: A turn without a row was within the budget. failed: nothing was saved, or nothing could be kept.
Outcome = Literal["compressed", "failed"]
#: Trimmed when stored, no room in its session, dropped for its age, or for room on the disk.
Cause = Literal["size", "session", "age", "room"]

_JOINED = "from compactions c join turns t on t.seq = c.turn_seq join sessions s on s.seq = t.session_seq"


class Sizes(NamedTuple):
    """Bytes and tokens of a turn as it was said and as it is stored."""

    bytes_before: int
    bytes_after: int
    tokens_before: int
    tokens_after: int


class Compaction(NamedTuple):
    """A compacted turn with its session and project."""

    uuid: str
    session_id: str
    project_seq: int
    kind: str
    tool: str
    at: str
    outcome: Outcome
    cause: Cause
    bytes_before: int
    bytes_after: int
    tokens_before: int
    tokens_after: int
    is_counted: int

    @property
    def tokens_saved(self) -> int:
        """Tokens that are no longer stored; 0 for a failed one."""
        return self.tokens_before - self.tokens_after if self.outcome == "compressed" else 0


def sizes_of(text: str, uuid: str) -> Sizes | None:
    """The sizes of a turn whose stored text was trimmed; None if nothing was.

    The missing text is taken to be of the same kind as the stored one.
    """
    cut = display.find_cut(text, f"turn {uuid}")
    if cut is None:
        return None
    kept = f"{cut.head}{cut.tail}"
    size = len(kept.encode("utf-8", "replace"))
    before = size + cut.left_out
    return Sizes(
        before, len(text.encode("utf-8", "replace")), weigh_tokens(kept) * before // max(size, 1), weigh_tokens(text)
    )


def record_trim(rows: Rows, seq: int, *, uuid: str, original: str, kept: str) -> None:
    """Records what a turn lost when it was stored: `original` is its text in the transcript, `kept` the stored one."""
    sizes = sizes_of(original, uuid)
    cause: Cause = "size"
    if kept != original:
        whole = sizes or Sizes(len(original.encode("utf-8", "replace")), 0, weigh_tokens(original), 0)
        sizes = whole._replace(bytes_after=len(kept.encode()), tokens_after=weigh_tokens(kept))
        cause = "session"
    if sizes is None:
        return
    _write(rows, seq, sizes, cause=cause)
    cut = display.find_cut(kept, f"turn {uuid}")
    rows.update("turns", seq, dropped=cut.left_out if cut else sizes.bytes_before)


def delete_record(rows: Rows, seq: int) -> None:
    """Deletes the record of a turn whose text changed."""
    if rows.delete("compactions", turn_seq=seq):
        rows.update("turns", seq, dropped=None)


def record_drop(rows: Rows, seq: int, *, text: str, name: str, why: str, cause: Cause) -> None:
    """Replaces a turn's text by `[NAME of N bytes WHY]` and records the loss."""
    sql = "select bytes_before, tokens_before, is_counted from compactions where turn_seq = :seq and bytes_before > 0"
    noted = rows.first(sql, seq=seq)
    before, tokens, is_counted = noted or (len(text.encode("utf-8", "replace")), *_tokens(rows, seq, text))
    left = f"[{name} of {before} bytes {why}]"
    _write(rows, seq, Sizes(before, len(left), tokens, weigh_tokens(left)), cause=cause, is_counted=is_counted)
    rows.update("turns", seq, text=left, dropped=before, gone=1)


def _tokens(rows: Rows, seq: int, text: str) -> tuple[int, int]:
    """The tokens of a turn's text, and whether they were counted."""
    counted = rows.find("turns", "counted", seq=seq)
    return (weigh_tokens(text), 0) if counted is None else (int(counted), 1)


# --- counting


class Uncounted(NamedTuple):
    """A stored turn whose tokens are not counted; `dropped` bytes of it are missing."""

    seq: int
    uuid: str
    text: str
    dropped: int


def list_uncounted(rows: Rows, *, limit: int, characters: int) -> list[Uncounted]:
    """Returns the next turns to count: at most `limit` turns and `characters` together, but always at least one."""
    sql = (
        "select seq, uuid, text, coalesce(dropped, 0) from turns where counted is null and gone = 0 order by seq "
        "limit :limit"
    )
    turns = rows.read(Uncounted, sql, limit=limit)
    sizes = accumulate(len(turn.text) for turn in turns)
    return [
        turn for place, (turn, size) in enumerate(zip(turns, sizes, strict=True)) if size <= characters or not place
    ]


def record_count(rows: Rows, turn: Uncounted, tokens: int, *, whole: int | None) -> None:
    """Records how many tokens a turn's stored text has, and its whole text if that was counted too."""
    noted = rows.first("select cause, bytes_before, tokens_before from compactions where turn_seq = :seq", seq=turn.seq)
    before = tokens
    if noted is not None:
        cause, size, estimated = noted
        cut = display.find_cut(turn.text, f"turn {turn.uuid}")
        before = estimated if whole is None else whole
        if whole is None and cut is not None:
            kept = len(f"{cut.head}{cut.tail}".encode("utf-8", "replace"))
            mark = weigh_tokens(turn.text[len(cut.head) : len(turn.text) - len(cut.tail)])
            before = (tokens - mark) * size // max(kept, 1)
        rows.run(
            "update compactions set tokens_before = :before, tokens_after = :after, is_counted = :counted, "
            "outcome = :outcome where turn_seq = :seq",
            before=before,
            after=tokens,
            counted=int(whole is not None),
            outcome=outcome_of(cause, before, tokens),
            seq=turn.seq,
        )
    # A text that changed meanwhile is counted again.
    sql = "update turns set counted = :tokens where seq = :seq and text = :text"
    rows.run(sql, tokens=before, seq=turn.seq, text=turn.text)


def _write(rows: Rows, seq: int, sizes: Sizes, *, cause: Cause, is_counted: int = 0) -> None:
    outcome = outcome_of(cause, sizes.tokens_before, sizes.tokens_after)
    rows.upsert(
        "compactions", "turn_seq", turn_seq=seq, outcome=outcome, cause=cause, is_counted=is_counted, **sizes._asdict()
    )


def outcome_of(cause: Cause, tokens_before: int, tokens_after: int) -> Outcome:
    """Returns `compressed` if tokens were saved; `failed` if none were, or if the turn found no room in its session."""
    return "compressed" if cause != "session" and tokens_after < tokens_before else "failed"


# --- reports


class Total(NamedTuple):
    """How many turns had an outcome by a cause, with their bytes and tokens."""

    outcome: str
    cause: str
    turns: int
    counted: int
    bytes_before: int
    bytes_after: int
    tokens_before: int
    tokens_after: int


def sum_outcomes(rows: Rows, *, projects: Sequence[int] | None, session: str = "") -> list[Total]:
    """The sums by outcome and cause, of some projects (None: all) and of one session ("": all)."""
    sql = (
        "select c.outcome, c.cause, count(*), sum(c.is_counted), sum(c.bytes_before), sum(c.bytes_after), "
        f"sum(c.tokens_before), sum(c.tokens_after) {_JOINED} where {in_keys('t.project_seq', projects)} "
        "and (cast(:session as text) = '' or s.id = :session) group by c.outcome, c.cause order by c.outcome, c.cause"
    )
    return rows.read(Total, sql, session=session)


def average_reduction(rows: Rows, *, projects: Sequence[int] | None, session: str = "") -> float:
    """By how many percent a turn was compressed on average."""
    share = rows.value(
        f"select avg((c.tokens_before - c.tokens_after) * 100.0 / c.tokens_before) {_JOINED} "
        f"where c.outcome = 'compressed' and {in_keys('t.project_seq', projects)} "
        "and (cast(:session as text) = '' or s.id = :session)",
        session=session,
    )
    return round(float(share or 0), 1)


def trimmed_turns(rows: Rows, session_seq: int) -> dict[str, int]:
    """The turns of a session that are stored only in part, by uuid, with their original bytes."""
    trimmed = rows.all(
        "select t.uuid, c.bytes_before from session_turn st join compactions c on c.turn_seq = st.turn_seq "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and c.cause = 'size'",
        session=session_seq,
    )
    return dict(trimmed)


def tokens_saved(rows: Rows) -> int:
    """The tokens that compaction saved in all."""
    return rows.number("select sum(tokens_before - tokens_after) from compactions where outcome = 'compressed'")


def count_within_budget(rows: Rows, *, projects: Sequence[int] | None, session: str = "") -> int:
    """How many tool calls and results are stored whole."""
    return rows.number(
        "select count(*) from turns t join sessions s on s.seq = t.session_seq "  # noqa: S608
        f"where t.kind in ('tool_call', 'tool_result') and {in_keys('t.project_seq', projects)} "
        "and (cast(:session as text) = '' or s.id = :session) "
        "and not exists (select 1 from compactions c where c.turn_seq = t.seq)",
        session=session,
    )


def list_latest(rows: Rows, *, projects: Sequence[int] | None, session: str = "", limit: int) -> list[Compaction]:
    """The compactions of the latest turns, the last first."""
    sql = (
        "select t.uuid, s.id, t.project_seq, t.kind, t.tool_name, t.at, c.outcome, c.cause, c.bytes_before, "
        f"c.bytes_after, c.tokens_before, c.tokens_after, c.is_counted {_JOINED} "
        f"where {in_keys('t.project_seq', projects)} and (cast(:session as text) = '' or s.id = :session) "
        "order by t.at desc, t.seq desc limit :limit"
    )
    return rows.read(Compaction, sql, session=session, limit=limit)


# --- the recount


class Recount(NamedTuple):
    """What a turn's own text says of its compaction, next to its record; `problem` is "" if both agree.

    `is_changed` if something was purged from the text since, so that its bytes cannot agree.
    """

    seq: int
    uuid: str
    outcome: str
    bytes_before: int
    bytes_after: int
    tokens_saved: int
    is_changed: bool
    problem: str


#: What replaces text that a purge or a scan for secrets removed.
REMOVAL_MARKS = (PURGED, "[redacted")
#: The row key from which a recount begins.
FIRST = 0
#: How many turns one part of a recount reads.
AUDIT_BATCH = 500


def recount(rows: Rows, *, after: int, projects: Sequence[int] | None) -> list[Recount]:
    """The next turns past a row key that were compacted, or look so, counted from their text."""
    sql = (
        "select t.seq, t.uuid, t.text, t.dropped, t.gone, c.outcome, c.cause, c.bytes_before, c.bytes_after, "  # noqa: S608
        "c.tokens_before, c.tokens_after from turns t left join compactions c on c.turn_seq = t.seq "
        f"where t.seq > :after and {in_keys('t.project_seq', projects)} "
        "and (t.dropped is not null or c.turn_seq is not null) order by t.seq limit :limit"
    )
    measured = rows.all(sql, after=after, limit=AUDIT_BATCH)
    return [_recount_turn(*row) for row in measured]


def _recount_turn(
    seq: int, uuid: str, text: str, dropped: int | None, gone: int, outcome: Outcome | None, cause: Cause | None,
    bytes_before: int | None, bytes_after: int | None, tokens_before: int | None, tokens_after: int | None,
) -> Recount:  # fmt: skip
    cut = display.find_cut(text, f"turn {uuid}")
    size = len(text.encode("utf-8", "replace"))
    whole = len(f"{cut.head}{cut.tail}".encode("utf-8", "replace")) + cut.left_out if cut else dropped or 0
    is_changed = size != bytes_after and any(hole in text for hole in REMOVAL_MARKS)
    saved = (tokens_before or 0) - (tokens_after or 0) if outcome == "compressed" else 0
    problem = ""
    if outcome is None:
        problem = f"{dropped} bytes are left out, and no compaction is noted"
    elif is_changed:
        pass
    elif size != bytes_after:
        problem = f"{size} bytes are kept, {bytes_after} are noted"
    elif whole != bytes_before:
        problem = f"its text implies {whole} bytes originally, but {bytes_before} are recorded"
    elif (cut.left_out if cut else whole) != dropped:
        problem = f"{dropped} bytes are noted as left out, its mark says {cut.left_out if cut else whole}"
    elif outcome != outcome_of(cause or "size", tokens_before or 0, tokens_after or 0):
        problem = f"noted as {outcome}, with {tokens_before} tokens before and {tokens_after} after"
    elif bool(gone) != (cause in ("age", "room")):
        problem = f"noted as compacted for {cause}, and {'none' if gone else 'some'} of it is kept"
    return Recount(seq, uuid, outcome or "", whole, size, saved, is_changed, problem)
