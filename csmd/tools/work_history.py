"""Tools on digests, the self model, the living state and errors."""

from __future__ import annotations

from csmd.dream import day_report, day_sessions
from csmd.errors import BadInput
from csmd.extraction import digest
from csmd.memory import session_links, work_outcomes
from csmd.memory.work_outcomes import StoredEnding
from csmd.recall import advisory, query, visibility
from csmd.recall.advisory import Line
from csmd.store import candidates, digests, failures, memories, session_link_rows, sessions, work_outcome_rows
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, Places, ToolContext, Tools, clamp_limit, require_person
from csmd.tools.injections import find_session_places
from csmd.tools.present import as_json, brief_json, find_session

TOOLS = Tools()
PREVIEW_NOTE = "counted from how sessions ended; a preview, counts may change"
#: Links of a session that are shown.
MAX_LINKS = 20
DIGEST_FIELDS = "version why at outcome prompts tool_calls=calls tokens text"
MAX_ROWS = 200


@TOOLS.add("csm_today")
def _report_day(
    ctx: ToolContext,
    rows: Rows,
    date_: str = "",
    seen: Places = None,
    walls: bool = False,
    ids: bool = False,
    by_person: bool = False,
) -> Json:
    """Report changes, decisions and open work of a day (2026-01-31, yesterday, monday; default: today)."""
    if walls:
        require_person(by_person, "see other workspaces")
    now = ctx.here(ctx.now())
    day = query.parse_day(date_, now=now)
    projects = day_sessions.read_day(
        rows, day, ctx.here, project_seqs=None if walls else seen, key=ctx.store.hash_key,
        is_excluded=lambda *places: ctx.excludes.covers_directory(*places) or ctx.excludes.has_off_mark(*places), is_today=day == now.date(),
    )  # fmt: skip
    return {
        "date": day.isoformat(),
        "projects": [
            as_json(
                project_day, "project wall commits files", entries=[entry._asdict() for entry in project_day.entries]
            )
            for project_day in day_report.sort_projects(projects)
        ],
        "text": day_report.render_day(day, projects, with_ids=ids),
    }  # fmt: skip


def _links_json(rows: Rows, session_seq: int, session_id: str, seen: list[int] | None) -> list[Json]:
    """Returns the sessions that a session builds on, and those that build on it, limited to projects the caller may
    see."""
    return [
        {
            "direction": "builds_on" if link.to_id == session_id else "leads_to",
            "session": link.from_id if link.to_id == session_id else link.to_id,
            "kind": link.kind, "rule": link.rule, "reason": session_links.describe_link(link.rule, link.about),
            "weight": link.weight, "at": link.at, "evidence": list(link.evidence),
        }
        for link in session_link_rows.list_links_of_session(rows, session_seq, projects=seen)[:MAX_LINKS]
    ]  # fmt: skip


@TOOLS.add("csm_memory_distill", mutates=True)
def _distill_session(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Distill a session's tool calls and statements into its digest, now."""
    session = find_session(rows, id_, asking)
    digest.digest_now(ctx.store, rows, session.seq)
    return {"id": session.id, "made": True}


@TOOLS.add("csm_memory_distilled_view")
def _view_digests(
    ctx: ToolContext, rows: Rows, id_: str = "", seen: Places = None, asking: str = "", limit: int = 10
) -> Json:
    """View distilled summaries: of a session, or the latest of a project."""
    if id_:
        session = find_session(rows, id_, asking)
        versions = [as_json(row, DIGEST_FIELDS) for row in digests.of_session(rows, session.seq)]
        links = _links_json(rows, session.seq, session.id, visibility.find_visible_places(rows, asking=asking))
        return as_json(session, "id project", digests=versions, links=links)
    latest = digests.list_latest(rows, projects=seen, limit=clamp_limit(limit, MAX_ROWS))
    session_names = sessions.ids_by_seq(rows, [row.session_seq for row in latest])
    return {"digests": [{"session": session_names[row.session_seq], **as_json(row, DIGEST_FIELDS)} for row in latest]}


@TOOLS.add("csm_self_model")
def _view_self_model(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """View how kinds of work ended, with confidence, drift warnings and continuity."""
    endings = [StoredEnding(*row) for row in work_outcome_rows.read_outcomes(rows, projects=seen)]
    capability = "name confidence well decided sessions since last_at evidence"
    return {
        "note": PREVIEW_NOTE, "sessions": len({ending.session_id for ending in endings}),
        "capabilities": [as_json(ending, capability) for ending in work_outcomes.sum_up_capabilities(endings)],
        "drift": [
            as_json(
                warning, "id text reason since=created_at", evidence=[evidence.uuid for evidence in warning.evidence]
            )
            for warning in candidates.waiting(rows, projects=seen)
            if warning.kind == "drift_warning"
        ],
        "continuity": [
            span._asdict() | {"type": "self_continuity"} for span in sessions.list_version_spans(rows, projects=seen)
        ],
        "links": session_link_rows.count_links(rows, projects=seen),
    }  # fmt: skip


def _living_state_json(ctx: ToolContext, lines: list[Line]) -> Json:
    preview = advisory.render_advisory(advisory.make_blocks(lines), max_tokens=advisory.MAX_TOKENS)
    return {
        "note": advisory.LABEL, "enabled": ctx.config.settings.stages_advisory, "max_tokens": advisory.MAX_TOKENS,
        **brief_json(ctx, preview),
    }  # fmt: skip


@TOOLS.add("csm_living_state_preview")
def _preview_living_state(ctx: ToolContext, rows: Rows, project: str, asking: str = "") -> Json:
    """Preview the living state: recent experience, signals, how work ended, beliefs."""
    return _living_state_json(ctx, advisory.read_lines(rows, places=find_session_places(rows, project, asking)))


@TOOLS.add("csm_living_state_debug")
def _explain_living_state(ctx: ToolContext, rows: Rows, project: str, asking: str = "") -> Json:
    """Show why each line of the living state is included or not."""
    lines = advisory.read_lines(rows, places=find_session_places(rows, project, asking))
    return {
        **_living_state_json(ctx, lines),
        "trimmed": [part for part, _ in sorted(advisory.PARTS.items(), key=lambda row: row[1].weight)],
        "lines": [as_json(line, "part id text tail told why", told=line.why == "told") for line in lines],
    }


@TOOLS.add("csm_error_list")
def _list_errors(ctx: ToolContext, rows: Rows, id_: str = "", seen: Places = None, limit: int = 20) -> Json:
    """List errors, how often each occurred, and its fix."""
    if not id_:
        return {
            "errors": [
                _error_json(rows, error)
                for error in failures.list_errors(rows, seen, limit=clamp_limit(limit, MAX_ROWS))
            ]
        }  # fmt: skip
    error = failures.find_error_by_id(rows, id_, seen)
    if error is None:
        raise BadInput(f"there is no error {id_!r}", hint="`csmd errors` lists them with their ids")
    return {"errors": [_error_json(rows, error)]}


def _error_json(rows: Rows, error: failures.ErrorRecord) -> Json:
    memory = memories.by_id(rows, error.memory_id) if error.memory_id else None
    names = (
        "id fingerprint command exit_code message times sessions first_at last_at fixed_at fixed_files fixed_by fixed_uuid "
        "memory_id"
    )
    return as_json(error, names, memory=memory.text if memory else "")
