"""The hands of the narrator: packets, failures and digests of one project to facts; nothing is written.

What is looked at is bounded: the latest packets and sessions of the project, the errors of the most sessions.
"""

from __future__ import annotations

from collections.abc import Iterable

from csmd.dream import conventions, narrator
from csmd.dream.actions import Fact
from csmd.dream.conventions import Form, Named
from csmd.dream.narrator import Change, Failed
from csmd.store import candidates, failures
from csmd.store import turns as counted
from csmd.store.sqlite import Rows

#: The latest packets, and the sessions whose digests are looked at; errors, and the turns of each.
MOST_PACKETS, MOST_SESSIONS, MOST_ERRORS, MOST_TURNS = 10_000, 300, 200, 100


def facts(rows: Rows, project: int, *, now: str) -> list[Fact]:
    """What is counted of a project, in a stable order; nothing of it depends on the time it is asked for."""
    del now
    found = narrator.told_of_packets(candidates.latest_packets(rows, projects=[project], limit=MOST_PACKETS), project)
    found += narrator.told_of_failures(_failed(rows, project), project)
    done = counted.work_done(rows, project, sessions=MOST_SESSIONS)
    changes = [
        Change(session_id=one.session_id, path=path, uuid=one.uuid)
        for one in done
        if one.kind == "file" and (path := narrator.inside(one.text, cwd=one.cwd, root=one.root))
    ]
    found += narrator.told_of_files(changes, project)
    commits = [
        Named(session_id=one.session_id, name=one.text.partition(" ")[2], uuid=one.uuid)
        for one in done
        if one.kind == "commit"
    ]
    branches = [Named(session_id=one.session_id, name=one.text, uuid=one.uuid) for one in done if one.kind == "branch"]
    tests = [Named(session_id=one.session_id, name=one.path, uuid=one.uuid) for one in changes]
    found += _forms(
        (conventions.of_commits(commits), conventions.of_branches(branches), conventions.of_tests(tests)), project
    )
    return narrator.ordered(found)


def _failed(rows: Rows, project: int) -> list[Failed]:
    found = []
    for error in failures.listing(rows, [project], limit=MOST_ERRORS):
        if not error.command:
            continue
        turns = counted.failures_shown(rows, error.error_seq, project, limit=MOST_TURNS)
        mended = [one for one in turns if one.mended]
        found.append(
            Failed(
                fingerprint=error.fingerprint, command=error.command, message=error.message,
                shown=tuple((one.session_id, one.uuid) for one in turns if not one.mended),
                mended=tuple((one.session_id, one.uuid) for one in mended),
                said=tuple((one.text, one.uuid) for one in reversed(mended)),
                files=tuple(tuple(one.files.split("\n")) for one in mended if one.files),
            )
        )  # fmt: skip
    return found


def _forms(forms: Iterable[Form | None], project: int) -> list[Fact]:
    told = (narrator.told_of_form(one, project) for one in forms if one is not None)
    return [fact for fact in told if fact is not None]
