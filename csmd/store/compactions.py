"""Records of turns that are stored in part, bytes and tokens before and after, and their audit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from csmd.privacy.fingerprints import PURGED
from csmd.store.sqlite import Rows, in_keys
from csmd.text import display
from csmd.text.token_weights import weigh_tokens

#: compressed: tokens were saved. failed: none were, or the session had no room. A turn within the budget has no row.
Outcome = Literal["compressed", "failed"]
#: Trimmed when stored, no room in its session, dropped for its age, or for room on the disk.
Cause = Literal["size", "session", "age", "room"]

#: Marks of text that a purge or a scan for secrets removed.
REMOVAL_MARKS = (PURGED, "[redacted")
#: Turns that one call of `recount` reads.
AUDIT_BATCH = 500
_JOINED = "from compactions c join turns t on t.seq = c.turn_seq join sessions s on s.seq = t.session_seq"
_OF_SESSION = "(cast(:session as text) = '' or s.id = :session)"


class Sizes(NamedTuple):
    """Bytes and tokens of a turn, original and stored."""

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


def measure_sizes(text: str, uuid: str) -> Sizes | None:
    """Returns the sizes of a turn whose stored text was trimmed; None if nothing was.

    The missing text is taken to be of the same kind as the stored one.
    """
    cut = display.find_cut(text, f"turn {uuid}")
    if cut is None:
        return None
    stored = f"{cut.head}{cut.tail}"
    size = display.count_bytes(stored)
    before = size + cut.left_out
    tokens_before = weigh_tokens(stored) * before // max(size, 1)
    return Sizes(before, display.count_bytes(text), tokens_before, weigh_tokens(text))


def record_trim(rows: Rows, seq: int, *, uuid: str, original: str, stored: str) -> None:
    """Records what a turn lost when it was stored: `original` is its text in the transcript, `stored` the stored one."""
    sizes = measure_sizes(original, uuid)
    cause: Cause = "size"
    if stored != original:
        original_sizes = sizes or Sizes(display.count_bytes(original), 0, weigh_tokens(original), 0)
        sizes = original_sizes._replace(bytes_after=display.count_bytes(stored), tokens_after=weigh_tokens(stored))
        cause = "session"
    if sizes is None:
        return
    _write(rows, seq, sizes, cause=cause)
    cut = display.find_cut(stored, f"turn {uuid}")
    rows.update("turns", seq, dropped=cut.left_out if cut else sizes.bytes_before)


def delete_record(rows: Rows, seq: int) -> None:
    """Deletes the record of a turn whose text changed."""
    if rows.delete("compactions", turn_seq=seq):
        rows.update("turns", seq, dropped=None)


def record_drop(rows: Rows, seq: int, *, text: str, name: str, reason: str, cause: Cause) -> None:
    """Replaces a turn's text by `[NAME of N bytes REASON]` and records the loss."""
    sql = "select bytes_before, tokens_before, is_counted from compactions where turn_seq = :seq and bytes_before > 0"
    record = rows.first(sql, seq=seq)
    before, tokens, is_counted = record or (display.count_bytes(text), *_read_tokens(rows, seq, text))
    placeholder = f"[{name} of {before} bytes {reason}]"
    sizes = Sizes(before, len(placeholder), tokens, weigh_tokens(placeholder))
    _write(rows, seq, sizes, cause=cause, is_counted=is_counted)
    rows.update("turns", seq, text=placeholder, dropped=before, gone=1)


def _read_tokens(rows: Rows, seq: int, text: str) -> tuple[int, int]:
    """Returns the tokens of a turn's text, and whether they were counted."""
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
    sql = """select seq, uuid, text, coalesce(dropped, 0)
        from turns where counted is null and gone = 0 order by seq limit :limit"""
    turns = rows.read(Uncounted, sql, limit=limit)
    sizes = accumulate(len(turn.text) for turn in turns)
    return [turn for turn, size in zip(turns, sizes, strict=True) if size <= characters] or turns[:1]


def record_count(rows: Rows, turn: Uncounted, tokens: int, *, whole: int | None) -> None:
    """Records a turn's token count; `whole` is that of its full text, None if unknown (it is then estimated)."""
    record = rows.first(
        "select cause, bytes_before, tokens_before from compactions where turn_seq = :seq", seq=turn.seq
    )
    before = tokens
    if record is not None:
        cause, size, estimated = record
        cut = display.find_cut(turn.text, f"turn {turn.uuid}")
        before = estimated if whole is None else whole
        if whole is None and cut is not None:
            stored_bytes = display.count_bytes(f"{cut.head}{cut.tail}")
            mark = weigh_tokens(turn.text[len(cut.head) : len(turn.text) - len(cut.tail)])
            before = (tokens - mark) * size // max(stored_bytes, 1)
        rows.run(
            """update compactions set tokens_before = :before,
                tokens_after = :after, is_counted = :counted, outcome = :outcome where turn_seq = :seq""",
            before=before,
            after=tokens,
            counted=int(whole is not None),
            outcome=choose_outcome(cause, before, tokens),
            seq=turn.seq,
        )
    # A text that changed since is counted again.
    sql = "update turns set counted = :tokens where seq = :seq and text = :text"
    rows.run(sql, tokens=before, seq=turn.seq, text=turn.text)


def _write(rows: Rows, seq: int, sizes: Sizes, *, cause: Cause, is_counted: int = 0) -> None:
    outcome = choose_outcome(cause, sizes.tokens_before, sizes.tokens_after)
    rows.upsert(
        "compactions", "turn_seq", turn_seq=seq, outcome=outcome, cause=cause, is_counted=is_counted, **sizes._asdict()
    )


def choose_outcome(cause: Cause, tokens_before: int, tokens_after: int) -> Outcome:
    """Returns `compressed` if tokens were saved; `failed` if none were, or if the turn found no room in its session."""
    return "compressed" if cause != "session" and tokens_after < tokens_before else "failed"


# --- reports


class Total(NamedTuple):
    """The turns with one outcome and cause, with their bytes and tokens."""

    outcome: str
    cause: str
    turns: int
    counted: int
    bytes_before: int
    bytes_after: int
    tokens_before: int
    tokens_after: int


def sum_outcomes(rows: Rows, *, projects: Sequence[int] | None, session: str = "") -> list[Total]:
    """Returns the sums by outcome and cause, of some projects (None: all) and of one session ("": all)."""
    sql = f"""select c.outcome, c.cause, count(*), sum(c.is_counted), sum(c.bytes_before), sum(c.bytes_after),
        sum(c.tokens_before), sum(c.tokens_after) {_JOINED} where {in_keys("t.project_seq", projects)}
        and {_OF_SESSION} group by c.outcome, c.cause order by c.outcome, c.cause"""
    return rows.read(Total, sql, session=session)


def compute_average_reduction(rows: Rows, *, projects: Sequence[int] | None, session: str = "") -> float:
    """Returns by how many percent compression reduces a turn's tokens on average."""
    sql = f"""select avg((c.tokens_before - c.tokens_after) * 100.0 / c.tokens_before) {_JOINED}
        where c.outcome = 'compressed' and {in_keys("t.project_seq", projects)} and {_OF_SESSION}"""
    share = rows.value(sql, session=session)
    return round(float(share or 0), 1)


def list_trimmed_turns(rows: Rows, session_seq: int) -> dict[str, int]:
    """Maps the uuid of each turn of a session that is stored in part to its original bytes."""
    sql = """select t.uuid, c.bytes_before from session_turn st join compactions c on c.turn_seq = st.turn_seq
        join turns t on t.seq = st.turn_seq where st.session_seq = :session and c.cause = 'size'"""
    trimmed = rows.all(sql, session=session_seq)
    return dict(trimmed)


def sum_tokens_saved(rows: Rows) -> int:
    """Returns the tokens that compaction saved in all."""
    return rows.number("select sum(tokens_before - tokens_after) from compactions where outcome = 'compressed'")


def count_within_budget(rows: Rows, *, projects: Sequence[int] | None, session: str = "") -> int:
    """Returns the number of tool calls and results that are stored whole."""
    sql = f"""select count(*) from turns t join sessions s on s.seq = t.session_seq
        where t.kind in ('tool_call', 'tool_result') and {in_keys("t.project_seq", projects)}
        and {_OF_SESSION} and not exists (select 1 from compactions c where c.turn_seq = t.seq)"""  # noqa: S608
    return rows.number(sql, session=session)


def list_latest(rows: Rows, *, projects: Sequence[int] | None, session: str = "", limit: int) -> list[Compaction]:
    """Returns the compactions of the latest turns, the last first."""
    sql = f"""select t.uuid, s.id, t.project_seq, t.kind, t.tool_name, t.at,
        c.outcome, c.cause, c.bytes_before, c.bytes_after, c.tokens_before, c.tokens_after, c.is_counted {_JOINED}
        where {in_keys("t.project_seq", projects)} and {_OF_SESSION} order by t.at desc, t.seq desc limit :limit"""
    return rows.read(Compaction, sql, session=session, limit=limit)


# --- the audit: sizes recomputed from the text and compared with the records


class Recount(NamedTuple):
    """A compaction recomputed from the turn's text; `problem` says how it differs from the record, "" if it agrees.

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


class _AuditRow(NamedTuple):
    """A turn with the record of its compaction; the columns of a missing record are None or 0."""

    seq: int
    uuid: str
    text: str
    dropped: int | None
    gone: int
    outcome: Outcome | None
    cause: Cause | None
    bytes_before: int | None
    bytes_after: int | None
    tokens_before: int
    tokens_after: int


def recount(rows: Rows, *, after: int = 0, projects: Sequence[int] | None) -> list[Recount]:
    """Recomputes the next turns past a row key that were compacted, by the record or by the mark in their text."""
    sql = f"""select t.seq, t.uuid, t.text, t.dropped, t.gone, c.outcome,
        c.cause, c.bytes_before, c.bytes_after, coalesce(c.tokens_before, 0), coalesce(c.tokens_after, 0) from turns t
        left join compactions c on c.turn_seq = t.seq where t.seq > :after and {in_keys("t.project_seq", projects)}
        and (t.dropped is not null or c.turn_seq is not null) order by t.seq limit :limit"""  # noqa: S608
    return [_recount_turn(row) for row in rows.read(_AuditRow, sql, after=after, limit=AUDIT_BATCH)]


def _recount_turn(row: _AuditRow) -> Recount:
    cut = display.find_cut(row.text, f"turn {row.uuid}")
    size = display.count_bytes(row.text)
    left_out = cut.left_out if cut else row.dropped or 0
    original = display.count_bytes(f"{cut.head}{cut.tail}") + left_out if cut else left_out
    is_changed = size != row.bytes_after and any(mark in row.text for mark in REMOVAL_MARKS)
    saved = row.tokens_before - row.tokens_after if row.outcome == "compressed" else 0
    problem = _find_problem(row, size, original, left_out, is_changed=is_changed)
    return Recount(row.seq, row.uuid, row.outcome or "", original, size, saved, is_changed, problem)


def _find_problem(row: _AuditRow, size: int, original: int, left_out: int, *, is_changed: bool) -> str:
    if row.outcome is None:
        return f"{row.dropped} bytes are left out, and no compaction is recorded"
    if is_changed:
        return ""
    if size != row.bytes_after:
        return f"{size} bytes are stored, {row.bytes_after} are recorded"
    if original != row.bytes_before:
        return f"the text implies {original} bytes originally, {row.bytes_before} are recorded"
    if left_out != row.dropped:
        return f"{row.dropped} bytes are recorded as left out, the mark in the text says {left_out}"
    if row.outcome != choose_outcome(row.cause or "size", row.tokens_before, row.tokens_after):
        return f"recorded as {row.outcome}, with {row.tokens_before} tokens before and {row.tokens_after} after"
    if bool(row.gone) != (row.cause in ("age", "room")):
        return f"recorded as compacted for {row.cause}, and {'no' if row.gone else 'some'} text is stored"
    return ""
