"""Tools on compaction: the text left out of turns, the tokens saved, and an audit of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path

from csmd.capture import whole_text
from csmd.paths import is_file
from csmd.store import compactions, search, turns
from csmd.store.compactions import Compaction, Total
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, Places, ToolContext, Tools, clamp_limit
from csmd.tools.present import as_json, find_session, read_roots

TOOLS = Tools()
MAX_ROWS = 1000
SIZE_FIELDS = ("bytes_before", "bytes_after", "tokens_before", "tokens_after")


@TOOLS.add("csm_memory_compact")
def _report_savings(
    ctx: ToolContext, rows: Rows, session: str = "", seen: Places = None, asking: str = "", limit: int = 20
) -> Json:
    """Report on compaction savings: the outcome of each trimmed or dropped turn, and tokens saved in all.

    `reduction` is the total reduction, `average_reduction` the mean over turns; both in percent.
    """
    session_id = find_session(rows, session, asking).id if session else ""
    totals = compactions.sum_outcomes(rows, projects=seen, session=session_id)
    within_budget = compactions.count_within_budget(rows, projects=seen, session=session_id)
    latest = compactions.list_latest(rows, projects=seen, session=session_id, limit=clamp_limit(limit, MAX_ROWS))
    root_of = read_roots(rows)
    return {
        "budget_bytes": ctx.config.settings.capture_tool_output_bytes,
        "outcomes": {**_count_outcomes(totals), "skipped_under_budget": within_budget},
        "causes": {cause: sum(row.turns for row in totals if row.cause == cause) for cause in sorted({row.cause for row in totals})},
        "counted": sum(row.counted for row in totals), **_sum_sizes(totals),
        "average_reduction": compactions.compute_average_reduction(rows, projects=seen, session=session_id),
        "compactions": [_compaction_json(row, root_of.get(row.project_seq, "")) for row in latest],
    }  # fmt: skip


def _count_outcomes(totals: Sequence[Total]) -> dict[str, int]:
    return {outcome: sum(row.turns for row in totals if row.outcome == outcome) for outcome in ("compressed", "failed")}


def _sum_sizes(totals: Sequence[Total]) -> Json:
    """Returns bytes and tokens before and after, and tokens saved, over all compressed turns."""
    compressed = [row for row in totals if row.outcome == "compressed"]
    sums = {name: sum(getattr(row, name) for row in compressed) for name in SIZE_FIELDS}
    saved = sums["tokens_before"] - sums["tokens_after"]
    return {**sums, "tokens_saved": saved, "reduction": round(100 * saved / max(sums["tokens_before"], 1), 1)}


def _compaction_json(row: Compaction, project: str) -> Json:
    return as_json(
        row,
        "id=uuid session_id kind tool at outcome cause bytes_before bytes_after tokens_before tokens_after tokens_saved",
        project=project, is_counted=bool(row.is_counted), get=f"csmd context get {row.uuid}",
    )  # fmt: skip


@TOOLS.add("csm_compaction_audit")
def _audit_compactions(
    ctx: ToolContext, rows: Rows, seen: Places = None, asking: str = "", limit: int = 20, verify: int = 20
) -> Generator[None, None, Json]:
    """Audit compaction telemetry: recount it from the turns, and read the last `verify` again from their transcripts.

    Lists at most `limit` problems. A transcript that is gone is not a problem.
    """
    recounted, problems = Counter[str](), list[Json]()
    after = 0
    while part := compactions.recount(rows, after=after, projects=seen):
        after = part[-1].seq
        for row in part:
            outcome = row.outcome or "unnoted"
            recounted.update({outcome: 1, "changed": int(row.is_changed), "tokens_saved": row.tokens_saved})
            if row.problem:
                problems.append({"id": row.uuid, "problem": row.problem})
        yield
    totals = compactions.sum_outcomes(rows, projects=seen)
    recorded = _count_outcomes(totals) | {"tokens_saved": _sum_sizes(totals)["tokens_saved"]}
    limit_reread = clamp_limit(verify, MAX_ROWS)
    latest = compactions.list_latest(rows, projects=seen, limit=limit_reread) if verify > 0 else []
    reread = yield from _reread_transcripts(ctx, rows, latest)
    problems += [{"id": uuid, "problem": "its transcript says something else now"} for uuid in reread.pop("changed")]
    agrees = all(recounted[name] == recorded[name] for name in ("compressed", "failed", "tokens_saved"))
    return {
        "sound": agrees and not problems,
        "noted": {**recorded, "skipped_under_budget": compactions.count_within_budget(rows, projects=seen)},
        "recounted": {name: recounted[name] for name in ("compressed", "failed", "unnoted", "changed", "tokens_saved")},
        "reread": reread, "problems": problems[: clamp_limit(limit, MAX_ROWS)], "problems_in_all": len(problems),
    }  # fmt: skip


def _reread_transcripts(ctx: ToolContext, rows: Rows, compactions: Sequence[Compaction]) -> Generator[None, None, Json]:
    """Counts turns whose transcript still has the same text or is gone; lists those whose transcript differs."""
    unchanged, changed_uuids = 0, list[str]()
    missing = 0
    for row in compactions:
        seqs = [seq for seq, uuid in search.turns_with_prefix(rows, row.uuid) if uuid == row.uuid]
        for turn in turns.find_cut(rows, seqs):
            sources = whole_text.find_sources(rows, turn, key=ctx.store.hash_key)
            is_there = any(is_file(Path(path)) for path in sources.paths)
            text = yield from whole_text.read_whole(turn, sources, excludes=ctx.excludes)
            unchanged += text is not None
            missing += not is_there
            changed_uuids += [row.uuid] * (text is None and is_there)
    return {"same": unchanged, "gone": missing, "changed": changed_uuids}
