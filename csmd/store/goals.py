"""Declared goals of projects and sessions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from csmd.store.row_values import columns
from csmd.store.sqlite import Rows, in_keys, make_id


class Goal(NamedTuple):
    """A declared goal; `session_id` is "" for a project's, `done_at` "" while it is open."""

    seq: int
    id: str
    project_seq: int
    session_id: str
    text: str
    authority: str
    created_at: str
    done_at: str


_COLUMNS = columns(Goal, "g")


def _make_id(text: str, *, project: int, session_id: str) -> str:
    return make_id("g", project, session_id, " ".join(text.casefold().split()))


def add_goal(rows: Rows, *, project: int, session_id: str, text: str, authority: str, now: str) -> str:
    """Adds a goal and returns its id.

    A goal with the same words is reopened; it becomes the user's if the user states it.
    """
    goal_id = _make_id(text, project=project, session_id=session_id)
    goal = {"id": goal_id, "project_seq": project, "session_id": session_id, "text": text, "authority": authority}
    rows.insert(
        "goals",
        """on conflict (id) do update set done_at = '',
            authority = case when excluded.authority = 'user' then 'user' else goals.authority end""",
        created_at=now,
        **goal,
    )
    return goal_id


def _read_where(rows: Rows, condition: str, **values: Any) -> list[Goal]:
    """Returns the goals `g` that fulfil a condition, which may end with an order."""
    return rows.read(Goal, f"select {_COLUMNS} from goals g where {condition}", **values)  # noqa: S608


def list_open_goals(rows: Rows, *, projects: Sequence[int], session_id: str) -> list[Goal]:
    """Returns the goals of a session, and those that a person declared for one of these projects, the oldest first."""
    own = "g.session_id in ('', :session) and (g.session_id <> '' or g.authority = 'user')"
    condition = f"g.done_at = '' and {in_keys('g.project_seq', projects)} and {own} order by g.created_at, g.seq"
    return _read_where(rows, condition, session=session_id)


def list_goals(rows: Rows, *, projects: Sequence[int] | None, with_done: bool) -> list[Goal]:
    """Returns the goals of these projects (None: all), finished ones only on request, the latest first."""
    condition = f"(:with_done = 1 or g.done_at = '') and {in_keys('g.project_seq', projects)}"
    return _read_where(rows, f"{condition} order by g.created_at desc, g.seq desc", with_done=int(with_done))


def find_goal(rows: Rows, text: str, *, project: int, session_id: str) -> Goal | None:
    """Returns the goal of a project or a session with these words, open or done, or None."""
    goal_id = _make_id(text, project=project, session_id=session_id)
    return next(iter(_read_where(rows, "g.id = :id", id=goal_id)), None)


def read_goal(rows: Rows, goal_id: str) -> Goal:
    """Returns the goal with an id."""
    return _read_where(rows, "g.id = :id", id=goal_id)[0]


def finish_goal(rows: Rows, goal_id: str, *, now: str) -> bool:
    """Marks a goal as done; False if it was."""
    return bool(rows.run("update goals set done_at = :now where id = :id and done_at = ''", now=now, id=goal_id))


def reopen_goal(rows: Rows, goal_id: str) -> str:
    """Marks a goal as open and returns its text; "" if there is no such goal."""
    rows.run("update goals set done_at = '' where id = :id", id=goal_id)
    return str(rows.find("goals", "text", id=goal_id) or "")


def merge_goals(rows: Rows, source: int, into: int) -> None:
    """Moves a project's goals to another, with their origin."""
    sql = """update goals set origin_seq = case when origin_seq = 0 then :source else origin_seq end,
        project_seq = :target where project_seq = :source"""
    rows.run(sql, source=source, target=into)


def split_goals(rows: Rows, source: int, part: int, *, tree: Collection[int]) -> None:
    """Moves the goals that came from `part`, or from what was merged into it, back to it."""
    sql = f"""update goals set project_seq = :part, origin_seq = case when origin_seq = :part then 0
        else origin_seq end where project_seq = :source and {in_keys("origin_seq", sorted(tree))}"""  # noqa: S608
    rows.run(sql, part=part, source=source)


def delete_goals(rows: Rows, *, project: int, until: str) -> int:
    """Deletes the goals of a project up to a time and returns how many."""
    sql = "delete from goals where project_seq = :project and created_at <= :until"
    return rows.run(sql, project=project, until=until)


def delete_session_goals(rows: Rows, session_id: str) -> int:
    """Deletes the goals of a session and returns how many."""
    return rows.delete("goals", session_id=session_id)
