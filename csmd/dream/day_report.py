"""The results of a day's sessions: changed, decided, left open; for the day's file and for `csmd today`; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, NamedTuple

from csmd.extraction.work import CHECKS
from csmd.knowledge import Memory
from csmd.recall import brief, compose, evidence, last_sessions
from csmd.text.display import ARROW, amount, cut, squeeze

ResultKind = Literal["Opened", "Committed", "Uncommitted", "Decided", "Open"]
#: Kind of entry -> most entries of a project, the most important kind first.
MAX_ENTRIES: dict[ResultKind, int] = {"Opened": 3, "Committed": 6, "Uncommitted": 1, "Decided": 6, "Open": 4}
#: Most lines of a day.
MAX_DAY_LINES = 25
#: Lines of a project besides its entries.
FRAME_LINES = 3
#: Most characters of an entry.
MAX_ENTRY_CHARACTERS = 160
#: Most names of files in an entry.
MAX_FILE_NAMES = 5
#: Begins the subject of a commit that matters less than the others.
_MINOR = re.compile(
    r"(?:chore|docs?|ci|tests?|style|build)\b[^:]{0,30}: |(?:fixup|squash|amend)! |Merge |Bump ", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as a day's file describes it, in the order of its data; times are local.

    `files` are (path, changes), `agents` sub-agents as (id, turns, whether the transcript ends with an answer),
    `failing` the errors of checks that failed until the end. `deviations` are the user's corrections in their words,
    and the numbers of calls they turned down and prompts they took back; `modes` the permission modes with the time
    from which each applied; `progress` (done, all) counts the entries of the assistant's plan.
    """

    id: str
    project: str
    began: datetime
    ended: datetime
    minutes_at_work: int
    goal: str
    outcome: str
    prompts: int
    tool_calls: int
    tokens_written: int
    decisions: tuple[str, ...] = ()
    gotchas: tuple[str, ...] = ()
    files: tuple[tuple[str, int], ...] = ()
    commits: tuple[str, ...] = ()
    pulls: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    agents: tuple[tuple[str, int, bool], ...] = ()
    progress: tuple[int, int] = (0, 0)
    deviations: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()

    @property
    def has_news(self) -> bool:
        """Whether the session changed or decided something worth reporting."""
        return bool(self.files or self.commits or self.pulls or self.decisions)


class Entry(NamedTuple):
    """One result of a day, in a line; `id` closes an open matter, "" for other results."""

    kind: ResultKind
    text: str
    id: str = ""


class ProjectDay(NamedTuple):
    """The results of a day in a project, the most important first; `wall` is its walled workspace or ""."""

    project: str
    wall: str
    commits: int
    files: int
    entries: tuple[Entry, ...]


def choose_decisions(stated: Iterable[Memory]) -> list[str]:
    """Returns the user's lasting statements without repetitions, the surest first.

    Unlike a start's brief, a day lists all of one kind.
    """
    rated = [(memory, evidence.rate(memory, sessions_since=0)) for memory in stated]
    limited = ((memory, worth._replace(most=len(rated))) for memory, worth in rated if worth.value)
    candidates = [brief.Candidate(memory, worth, "") for memory, worth in limited]
    return [squeeze(candidate.memory.text) for candidate in brief.choose(candidates)]


def report_project(
    project: str, wall: str, sessions: Sequence[Session], *, pending: Mapping[str, str] = {}
) -> ProjectDay:
    """Sums up the sessions of a project on a day, and other open matters (`pending`: text -> id).

    Changes are named by their files, because what was asked for need not be what was done. Of commits that say nearly
    the same the latest counts. What a later session committed is listed neither as uncommitted nor as open.
    """
    entries: dict[ResultKind, list[str]] = {kind: [] for kind in MAX_ENTRIES}
    ids = dict(pending)

    def add(kind: ResultKind, text: str, *, others: Sequence[str] = ()) -> None:
        if text and not any(last_sessions.is_twin_of(text, other) for other in (*entries[kind], *others)):
            entries[kind].append(text)

    files: set[str] = set()
    uncommitted: dict[str, None] = {}
    committed: set[str] = set()
    for session in sorted(sessions, key=lambda session: (session.ended, session.id), reverse=True):
        paths = [path for path, _ in session.files]
        for pull in session.pulls:
            add("Opened", pull)
        for commit in session.commits[::-1]:
            add("Committed", squeeze(commit.partition(" ")[2] or commit))
        if session.commits:
            committed.update(paths)
        else:
            uncommitted |= dict.fromkeys(path for path in paths if path not in committed)
        for decision in session.decisions:
            add("Decided", decision)
        # A failed check is named by its kind; other failed commands say little about the work.
        failed = [error for error in session.failing if error.partition(":")[0] in CHECKS]
        if session.outcome == "failing" and failed:
            add("Open", f"failing {failed[-1]}")
        for end in last_sessions.open_ends(session.open, done=entries["Committed"]):
            add("Open", end, others=entries["Decided"])
            ids.setdefault(end, last_sessions.open_id(session.id, end))
        files.update(paths)
    for text in pending:
        add("Open", text)
    add("Uncommitted", _name_files(list(uncommitted)))
    entries["Committed"].sort(key=lambda subject: _MINOR.match(subject) is not None)
    pairs = ((kind, text) for kind, texts in entries.items() for text in texts)
    day_entries = tuple(Entry(kind, text, ids.get(text, "") if kind == "Open" else "") for kind, text in pairs)
    return ProjectDay(project, wall, len(entries["Committed"]), len(files), day_entries)


def _name_files(paths: Sequence[str]) -> str:
    """Returns the names of files, and the number of further files; "" if there are none."""
    names = ", ".join(f"`{path.rpartition('/')[2]}`" for path in paths[:MAX_FILE_NAMES])
    return f"{names} and {len(paths) - MAX_FILE_NAMES} more" if len(paths) > MAX_FILE_NAMES else names


def sort_projects(projects: Iterable[ProjectDay]) -> list[ProjectDay]:
    """Returns the projects with results, those with most first, walled ones last."""
    reported = (project for project in projects if project.entries)
    return sorted(reported, key=lambda project: (project.wall, -len(project.entries), project.project))


def render_day(day: date, projects: Iterable[ProjectDay], *, with_ids: bool = False) -> str:
    """Renders a day as Markdown, within MAX_DAY_LINES unless one entry of each kind takes more.

    With `with_ids` an open matter ends with the id that closes it.
    """
    ranked = sort_projects(projects)
    limit = max(MAX_ENTRIES.values())
    while (
        limit > 1 and sum(FRAME_LINES + len(render_entries(row.entries, limit=limit)) for row in ranked) > MAX_DAY_LINES
    ):
        limit -= 1
    parts = [f"# {day:%A}, {day}\n"]
    for project in ranked:
        nouns = {"commit": project.commits, "file": project.files}
        counts = [amount(count, noun) for noun, count in nouns.items() if count]
        walled = f" (workspace {project.wall})" if project.wall else ""
        head = " · ".join(filter(None, (f"{project.project}{walled}", ", ".join(counts))))
        entries = render_entries(project.entries, limit=limit, with_ids=with_ids)
        parts.append("\n".join((f"## {head}\n", *entries, "")))
    return "\n".join(parts)


def render_entries(
    entries: Sequence[Entry], *, limit: int = max(MAX_ENTRIES.values()), with_ids: bool = False
) -> list[str]:
    """Returns the lines of a list, at most `limit` of a kind.

    A single further entry is shown, because "1 more" takes as many lines.
    """
    lines: list[str] = []
    numbers = Counter(entry.kind for entry in entries)
    for kind, number in numbers.items():
        limit_of_kind = min(MAX_ENTRIES[kind], limit)
        limit_of_kind = number if number == limit_of_kind + 1 else limit_of_kind
        for entry in [entry for entry in entries if entry.kind == kind][:limit_of_kind]:
            suffix = f" ({entry.id})" if with_ids and entry.id else ""
            lines.append(f"- {kind}: {shorten_entry(entry.text)}{suffix}")
        if number > limit_of_kind:
            lines.append(f"- {kind}: {number - limit_of_kind} more")
    return lines


def shorten_entry(text: str) -> str:
    """Returns a text as an entry: on one line, the whole sentences that fit, and the whole answer to a question."""
    line = squeeze(text)
    question, arrow, answer = line.rpartition(ARROW)
    room = MAX_ENTRY_CHARACTERS - len(arrow) - len(answer)
    if arrow and len(line) > MAX_ENTRY_CHARACTERS and room >= MAX_ENTRY_CHARACTERS // 3:
        return f"{cut(question, room)}{arrow}{answer}"
    return compose.shorten(line, MAX_ENTRY_CHARACTERS)
