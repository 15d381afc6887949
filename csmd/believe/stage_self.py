"""The self model's hands: new digests become endings, links between sessions, and warnings when work ends worse.

Everything here follows from the digests of a project as they are: which session was looked at first does not matter,
and looking again changes nothing. A session that comes in late is compared with those after it, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from csmd.believe import causal, selfmodel
from csmd.believe.causal import Facts, Link
from csmd.believe.selfmodel import Counted, Drift, Ended, Seen
from csmd.model import Candidate, Evidence
from csmd.store import candidates, cursors, digests, projects
from csmd.store.core import Store
from csmd.store.digests import AGAIN, SELF, Behind
from csmd.store.sqlite import Rows

#: Sessions in one step, and how many days before and after them others are compared with them.
BATCH, SPAN_DAYS = 25, 120
SOURCE = "selfmodel"
KINDS_OF_LINK = {name: rule.kind for name, rule in causal.RULES.items()}


class Looked(NamedTuple):
    """What one step found out about a project: endings of the new sessions, links of all that they bear on."""

    ended: list[tuple[int, list[Ended], str]]
    linked: list[tuple[int, list[Link]]]


def step(store: Store, *, now: str) -> int:
    """Takes in the next digests; how many sessions were looked at, 0 when nothing waits. `now` dates warnings."""
    behind = store.read(lambda rows: digests.behind(rows, limit=BATCH))
    by: dict[int, list[Behind]] = {}
    for one in behind:
        by.setdefault(one.project_seq, []).append(one)
    for project, some in by.items():
        looked = store.read(lambda rows, project=project, some=some: _look(rows, project, some))  # type: ignore[misc]

        def write(rows: Rows, some: list[Behind] = some, looked: Looked = looked) -> None:
            for session, ended, at in looked.ended:
                digests.replace_outcomes(rows, session, ended, at=at)
            for session, links in looked.linked:
                digests.replace_links(rows, session, links, KINDS_OF_LINK)
            for one in some:
                cursors.move_cursor(rows, SELF, str(one.session_seq), one.digest_seq)
            digests.count_again(rows)

        store.write(write)
    # Once for a burst, when all of it is in.
    return len(behind) or _warn(store, now)


def _look(rows: Rows, project: int, some: Sequence[Behind]) -> Looked:
    new = {one.session_seq for one in some}
    starts = digests.starts(rows, sorted(new))
    found = digests.digests_of_project(
        rows, project, since=_moved(min(starts), -SPAN_DAYS), until=_moved(max(starts), SPAN_DAYS)
    )
    items: dict[int, list[Seen]] = {}
    for digest, kind, said, uuid, state in digests.items_of(rows, [int(row[4]) for row in found]):
        items.setdefault(int(digest), []).append(Seen(kind, said, uuid, state))
    days = sorted(projects.active_days(rows, project))
    facts = {
        int(row[0]): _facts(row, items.get(int(row[4]), []), days, digests.shared(rows, int(row[0]))) for row in found
    }
    first = min(
        (facts[seq] for seq in new if seq in facts), key=lambda one: (one.started_at, one.last_at, one.id), default=None
    )
    ended = [
        (int(row[0]), selfmodel.endings(str(row[5]), items.get(int(row[4]), [])), str(row[2]))
        for row in found
        if int(row[0]) in new
    ]
    around = list(facts.values())
    named = sorted({name for one in around for name in one.transcripts})
    captured = digests.captured(rows, named)
    linked = [
        (one.seq, causal.links(one, around, captured=captured))
        for one in around
        if first is not None and (one.seq in new or not causal.before(one, first))
    ]
    return Looked(ended, linked)


def _facts(row: Sequence[object], seen: Sequence[Seen], days: Sequence[str], shares: list[tuple[int, str]]) -> Facts:
    by: dict[str, dict[str, str]] = {}
    for one in seen:
        by.setdefault(one.kind, {}).setdefault(one.text, one.uuid)
    commits = [one for one in seen if one.kind == "commit"]
    return Facts(
        seq=int(str(row[0])),
        id=str(row[1]),
        started_at=str(row[2]),
        last_at=str(row[3]),
        day=bisect_right(days, str(row[2])[:10]),
        since=_moved(str(row[2]), -SPAN_DAYS),
        files=by.get("file", {}),
        words=by.get("word", {}),
        commits={one.text.partition(" ")[0]: one.uuid for one in commits},
        branches=by.get("branch", {}),
        plans=by.get("plan", {}),
        plan_given=by.get("plan_given", {}),
        transcripts=by.get("transcript", {}),
        names=by.get("names", {}),
        continued=next((one.uuid for one in seen if one.kind == "continued"), ""),
        errors={one.text: (one.state, one.uuid) for one in seen if one.kind == "error"},
        shares=dict(shares),
    )


def _moved(at: str, days: int) -> str:
    """A time some days away, as its day; a time that is none stays."""
    try:
        return (datetime.fromisoformat(at[:10]) + timedelta(days=days)).date().isoformat()
    except (ValueError, OverflowError):
        return at


# --- warnings


def _warn(store: Store, now: str) -> int:
    """Puts a warning for each kind of work that ends worse, and settles those that no longer hold; 1 when it looked."""
    if not store.read(lambda rows: cursors.cursor(rows, SELF, AGAIN)):
        return 0

    def look(rows: Rows) -> list[tuple[int, list[Drift]]]:
        found = digests.projects_held(rows)
        return [
            (project, selfmodel.drifts([Counted(*row) for row in digests.outcomes_counted(rows, projects=[project])]))
            for project in sorted({*found, *digests.warned(rows)})
        ]

    def write(rows: Rows) -> None:
        for project, drifts in looked:
            held = {f"drift:{one.capability}" for one in drifts}
            for one in drifts:
                _put(rows, project, one, now)
            for waiting in candidates.waiting(rows, projects=[project]):
                if waiting.source == SOURCE and waiting.fingerprint not in held:
                    candidates.settle(rows, waiting, "done", now=now)
        cursors.move_cursor(rows, SELF, AGAIN, 0)

    looked = store.read(look)
    store.write(write)
    return 1


def _put(rows: Rows, project: int, drift: Drift, now: str) -> None:
    fingerprint, text = f"drift:{drift.capability}", selfmodel.told(drift)
    waiting = [
        one
        for one in candidates.waiting(rows, projects=[project])
        if one.source == SOURCE and one.fingerprint == fingerprint
    ]
    evidence = tuple(Evidence(uuid=one.uuid, session_id=one.session_id, at=one.at) for one in drift.against)
    if (
        waiting and waiting[0].text == text and set(evidence) <= set(waiting[0].evidence)
    ):  # nothing new: looking again changes nothing
        return
    candidates.put(
        rows,
        Candidate(
            id=candidates.identity("drift_warning", project, fingerprint, now),
            kind="drift_warning",
            source=SOURCE,
            project_seq=project,
            fingerprint=fingerprint,
            text=text,
            reason=f"chance alone would make this once in {round(1 / max(drift.chance, 0.0001))} (Fisher's exact test)",
            confidence=round(1 - drift.chance, 2),
            created_at=now,
            updated_at=now,
            reinforcement=len(drift.against),
            status="needs_review",
            evidence=evidence,
        ),
    )
