"""The self model: links sessions that build on each other, counts how work ended, and warns of drift."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from csmd.knowledge import Candidate, Evidence
from csmd.memory import session_links, work_outcomes
from csmd.memory.session_links import Link, SessionFacts
from csmd.memory.work_outcomes import DigestItem, Drift, StoredEnding, WorkEnding
from csmd.store import candidates, cursors, digests, projects, session_link_rows, work_outcome_rows
from csmd.store.core import Store
from csmd.store.digests import RECOUNT_SUBJECT, SELF_STAGE
from csmd.store.session_link_rows import Behind
from csmd.store.sqlite import Rows

#: Sessions that one step evaluates.
BATCH = 25
#: Sessions are compared with those up to this many days before and after them.
SPAN_DAYS = 120
SOURCE = "selfmodel"
LINK_KINDS = {name: rule.kind for name, rule in session_links.RULES.items()}


class _Evaluation(NamedTuple):
    """The endings of new sessions, and the links of those and of all later ones, by row key of the session."""

    endings: list[tuple[int, list[WorkEnding], str]]
    links: list[tuple[int, list[Link]]]


def step(store: Store, *, now: str) -> int:
    """Evaluates the next digests; returns the number of sessions, 0 if none waits. `now` dates warnings."""
    waiting = store.read(lambda rows: session_link_rows.list_sessions_to_compare(rows, limit=BATCH))
    by_project: dict[int, list[Behind]] = {}
    for session in waiting:
        by_project.setdefault(session.project_seq, []).append(session)
    for project, new in by_project.items():
        evaluation = store.read(partial(_evaluate, project=project, new=new))
        store.write(partial(_save, new=new, evaluation=evaluation))
    # Warnings are computed once, when a whole burst of sessions is in.
    return len(waiting) or _update_warnings(store, now)


def _save(rows: Rows, new: Sequence[Behind], evaluation: _Evaluation) -> None:
    for session, endings, at in evaluation.endings:
        work_outcome_rows.replace_outcomes(rows, session, endings, at=at)
    for session, links in evaluation.links:
        session_link_rows.replace_links(rows, session, links, LINK_KINDS)
    for session_behind in new:
        cursors.move_cursor(rows, SELF_STAGE, str(session_behind.session_seq), session_behind.digest_seq)
    digests.mark_endings_changed(rows)


def _evaluate(rows: Rows, project: int, new: Sequence[Behind]) -> _Evaluation:
    """Computes the endings of new sessions, and the links of those and of all later ones."""
    new_seqs = {session.session_seq for session in new}
    starts = session_link_rows.list_session_starts(rows, sorted(new_seqs))
    since, until = _shift_day(min(starts), -SPAN_DAYS), _shift_day(max(starts), SPAN_DAYS)
    sessions = session_link_rows.list_digests_of_project(rows, project, since=since, until=until)
    items: dict[int, list[DigestItem]] = {int(digest): [] for *_, digest, _ in sessions}
    for digest, *item in session_link_rows.list_items_of(rows, list(items)):
        items[int(digest)].append(DigestItem(*item))
    days = sorted(projects.active_days(rows, project))
    endings: list[tuple[int, list[WorkEnding], str]] = []
    around: list[SessionFacts] = []
    for seq, session_id, started_at, last_at, digest, outcome in sessions:
        around.append(
            SessionFacts(
                seq=seq, id=session_id, started_at=started_at, last_at=last_at, day=bisect_right(days, started_at[:10]),
                since=_shift_day(started_at, -SPAN_DAYS), things=_group_items(items[digest]),
                shares=dict(session_link_rows.list_sessions_sharing_turns(rows, seq)),
                errors={item.text: (item.state, item.uuid) for item in items[digest] if item.kind == "error"},
            )
        )  # fmt: skip
        if seq in new_seqs:
            endings.append((seq, work_outcomes.find_endings(outcome, items[digest]), started_at))
    transcripts = sorted({name for session in around for name in session.of("transcript")})
    captured = session_link_rows.filter_stored_sessions(rows, transcripts)
    first = min((session.order for session in around if session.seq in new_seqs), default=None)
    later = [session for session in around if first is not None and session.order >= first]
    links = [(session.seq, session_links.find_links(session, around, captured=captured)) for session in later]
    return _Evaluation(endings, links)


def _group_items(items: Sequence[DigestItem]) -> dict[str, dict[str, str]]:
    """Maps the kinds of items to their texts (a commit's hash), and these to the uuids of their first turns."""
    things: dict[str, dict[str, str]] = {}
    for item in items:
        text = item.text.partition(" ")[0] if item.kind == "commit" else item.text
        things.setdefault(item.kind, {}).setdefault(text, item.uuid)
    return things


def _shift_day(at: str, days: int) -> str:
    """Returns the day a number of days after a time; an invalid time is returned as it is."""
    try:
        return (datetime.fromisoformat(at[:10]) + timedelta(days=days)).date().isoformat()
    except (ValueError, OverflowError):
        return at


# --- warnings


def _update_warnings(store: Store, now: str) -> int:
    """Queues a warning for each kind of work that ends worse, and settles outdated ones; returns 1, or 0 if none is due."""
    if not store.read(lambda rows: cursors.read_cursor(rows, SELF_STAGE, RECOUNT_SUBJECT)):
        return 0
    drifts = store.read(_find_drifts)

    def write(rows: Rows) -> None:
        for project, project_drifts in drifts:
            queued = candidates.waiting(rows, projects=[project])
            waiting = {warning.fingerprint: warning for warning in queued if warning.source == SOURCE}
            for warning in (_to_candidate(project, drift, now) for drift in project_drifts):
                stored = waiting.pop(warning.fingerprint, None)
                if stored and stored.text == warning.text and {*warning.evidence} <= {*stored.evidence}:
                    continue  # the same warning waits already
                candidate_id = candidates.make_candidate_id(warning.kind, project, warning.fingerprint, now)
                candidates.put_candidate(rows, replace(warning, id=candidate_id))
            for outdated in waiting.values():
                candidates.set_status(rows, outdated, "done", now=now)
        cursors.move_cursor(rows, SELF_STAGE, RECOUNT_SUBJECT, 0)

    store.write(write)
    return 1


def _find_drifts(rows: Rows) -> list[tuple[int, list[Drift]]]:
    """Returns (project, its drifts) of each project with endings or warnings."""
    drifts = []
    for project in sorted(
        {*work_outcome_rows.list_projects_with_outcomes(rows), *candidates.list_projects_with_warning(rows)}
    ):
        endings = [StoredEnding(*row) for row in work_outcome_rows.read_outcomes(rows, projects=[project])]
        drifts.append((project, work_outcomes.find_drifts(endings)))
    return drifts


def _to_candidate(project: int, drift: Drift, now: str) -> Candidate:
    return Candidate(
        id="", kind="drift_warning", source=SOURCE, project_seq=project, fingerprint=f"drift:{drift.capability}",
        text=work_outcomes.describe_drift(drift),
        reason=f"chance alone would make this once in {round(1 / max(drift.chance, 0.0001))} (Fisher's exact test)",
        confidence=round(1 - drift.chance, 2), created_at=now, updated_at=now, reinforcement=len(drift.against),
        status="needs_review",
        evidence=tuple(Evidence(uuid=end.uuid, session_id=end.session_id, at=end.at) for end in drift.against),
    )  # fmt: skip
