"""Reads the sessions of a day for its file and for `csmd today`, without forgotten sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import groupby, pairwise
from pathlib import PurePath

from csmd.dream import day_report, project_facts
from csmd.dream.day_report import ProjectDay, Session
from csmd.extraction import work
from csmd.hosts import tool_calls
from csmd.memory import open_matters
from csmd.recall import last_sessions, visibility
from csmd.store import digests, journal, memories, session_contents, stored_days
from csmd.store.sqlite import Rows
from csmd.store.stored_days import Ending
from csmd.text.display import amount

#: A longer pause between two turns is no work.
MAX_PAUSE_MINUTES = 15.0
#: The beginning of a result is enough to classify it.
RESULT_CHARACTERS = 200
MAX_GOTCHAS = 20
#: Time zones differ from UTC by up to 14 h, so a day more is read on both sides of a local day.
DAYS_AROUND = (-1, 2)

#: Converts a stored time to the local time zone.
ToLocal = Callable[[str], datetime]


def count_work_minutes(times: Sequence[datetime]) -> int:
    """Returns the minutes of work between the times of a session's turns, without longer pauses."""
    gaps = ((later - earlier).total_seconds() / 60 for earlier, later in pairwise(times))
    return round(sum(gap for gap in gaps if 0 < gap <= MAX_PAUSE_MINUTES))


def read_session(
    rows: Rows, ending: Ending, to_local: ToLocal, *, key: bytes, day: date | None = None, with_plan: bool = False
) -> Session:
    """Reads a session; with `day` only the results of that local day, and open ends only if it ended then.

    With `with_plan` the whole session is read for the progress of the assistant's plan.
    """

    def is_of_day(at: str) -> bool:
        return day is None or (bool(at) and to_local(at).date() == day)

    is_forgotten = stored_days.make_forgotten_test(rows, ending.id, key=key)
    versions = digests.of_session(rows, ending.session_seq)
    digest = versions[-1] if versions else None
    items = _read_items(rows, ending, digest.seq, is_of_day) if digest else {}
    kinds = ("goal", "commit", "pull", "failing", "open")
    texts = {kind: tuple(text for text, _ in items.get(kind, ()) if not is_forgotten(text)) for kind in kinds}
    stated = memories.list_stated_in_session(rows, ending.session_seq)
    stated = [item for item in stated if visibility.is_injectable(item) and is_of_day(item.created_at)]
    gotchas = session_contents.list_gotchas(rows, ending.session_seq, limit=MAX_GOTCHAS)
    make_path = partial(project_facts.make_project_path, cwd=ending.cwd, root=ending.root)
    changes = [(make_path(text), number) for text, number in items.get("file", ())]
    times = [to_local(at) for at in session_contents.list_turn_times(rows, ending.session_seq)]
    closed = journal.list_closed(rows)
    return Session(
        id=ending.id, project=ending.project, began=to_local(ending.started_at), ended=to_local(ending.last_at),
        minutes_at_work=count_work_minutes(times),
        goal=next(iter(texts["goal"]), ""), outcome=digest.outcome if digest else "",
        prompts=digest.prompts if digest else 0, tool_calls=digest.calls if digest else 0,
        tokens_written=digest.tokens if digest else 0,
        decisions=tuple(day_report.choose_decisions(stated)),
        gotchas=tuple(gotcha for gotcha in gotchas if not is_forgotten(gotcha)),
        files=tuple((path, number) for path, number in changes if path),
        commits=texts["commit"], pulls=texts["pull"], failing=texts["failing"],
        open=tuple(end for end in texts["open"] if last_sessions.open_id(ending.id, end) not in closed),
        agents=tuple(session_contents.list_agents(rows, ending.id)),
        progress=_read_progress(rows, ending) if with_plan else (0, 0),
        deviations=tuple(_read_deviations(rows, ending.session_seq, is_of_day, is_forgotten)),
        modes=tuple(_read_modes(rows, ending.session_seq, to_local, is_of_day)),
    )  # fmt: skip


def _read_items(
    rows: Rows, ending: Ending, digest_seq: int, is_of_day: Callable[[str], bool]
) -> Mapping[str, list[tuple[str, int]]]:
    """Reads the items of a digest that belong to a day, as (text, number) by kind.

    Open ends belong to the day on which the session ended; the goal belongs to each day.
    """
    items: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for kind, text, number, at in digests.list_dated_items(rows, digest_seq):
        if kind == "goal" or is_of_day(ending.last_at if kind in ("open", "failing") else at):
            items[kind].append((text, number))
    return items


def _read_progress(rows: Rows, ending: Ending) -> tuple[int, int]:
    """Returns the number of finished entries of the assistant's plan, and that of all entries."""
    entries = [work.Entry(*row) for row in digests.read_entries(rows, ending.session_seq)]
    todo = work.summarise(entries, cwd=ending.cwd).todo
    return sum(progress == "done" for _, progress, _ in todo), len(todo)


def _read_deviations(
    rows: Rows, session: int, is_of_day: Callable[[str], bool], is_forgotten: Callable[[str], bool]
) -> list[str]:
    """Returns the user's corrections, the number of rejected calls per tool, and that of rewound prompts."""
    corrections = session_contents.list_corrections(rows, session)
    deviations = [text for text, at in corrections if is_of_day(at) and not is_forgotten(text)]
    tools: dict[str, str] = {}
    rejections: Counter[str] = Counter()
    traffic = session_contents.list_tool_traffic(rows, session, characters=RESULT_CHARACTERS)
    for kind, tool, call, beginning, at in traffic:
        if kind == "tool_call":
            tools[call] = tool
        elif tool_calls.classify_result(beginning) == "rejected" and is_of_day(at):
            rejections[tools.get(call) or "a tool"] += 1
    deviations += [f"rejected: {tool}, {amount(times, 'time')}" for tool, times in rejections.items()]
    if rewound := sum(map(is_of_day, session_contents.list_rewound_prompts(rows, session))):
        deviations.append(f"rewound: {amount(rewound, 'prompt')}")
    return deviations


def _read_modes(rows: Rows, session: int, to_local: ToLocal, is_of_day: Callable[[str], bool]) -> list[str]:
    """Returns each mode of a session with the local time of its first prompt."""
    modes = groupby(session_contents.list_prompt_modes(rows, session), key=lambda row: row[1])
    changes = [next(prompts) for _, prompts in modes]
    return [f"{to_local(at):%Y-%m-%d %H:%M} {mode}" for at, mode in changes if is_of_day(at)]


def read_day(
    rows: Rows, day: date, to_local: ToLocal, *, project_seqs: Sequence[int] | None, key: bytes,
    is_excluded: Callable[[str, str], bool], is_today: bool = False,
) -> list[ProjectDay]:  # fmt: skip
    """Reads the results of a local day in some projects (None: in all), except those that `is_excluded`.

    With `is_today` also their open goals and promises. Projects with equal names are shown with their parent directory.
    """
    since, until = (f"{day + timedelta(days=days)}T00:00:00.000Z" for days in DAYS_AROUND)
    sessions_of: dict[int, list[Session]] = defaultdict(list)
    endings: dict[int, Ending] = {}
    for ending in stored_days.list_endings_between(rows, since=since, until=until, projects=project_seqs):
        is_of_day = to_local(ending.started_at).date() <= day <= to_local(ending.last_at).date()
        if is_of_day and not is_excluded(ending.root, ending.cwd):
            endings.setdefault(ending.project_seq, ending)
            sessions_of[ending.project_seq].append(read_session(rows, ending, to_local, key=key, day=day))
    names = Counter(ending.project for ending in endings.values())
    reports = []
    for project, ending in endings.items():
        name = ending.project
        if names[name] > 1 and ending.root:
            name = "/".join(PurePath(ending.root).parts[-2:])
        pending = _read_pending(rows, project) if is_today else {}
        reports.append(day_report.report_project(name, ending.wall, sessions_of[project], pending=pending))
    return reports


def _read_pending(rows: Rows, project: int) -> dict[str, str]:
    """Returns the open goals and promises of a project: text -> id."""
    matters = [*open_matters.read_goals(rows, [project]), *open_matters.read_promises(rows, [project])]
    return {matter.text: matter.id for matter in matters}
