"""Pages as last written or read back."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, NamedTuple

from csmd.store import candidates, memories, tombstones
from csmd.store.sqlite import Rows, column_values, columns, in_keys
from csmd.store.tombstones import LOOKED_AT
from csmd.text import markdown, similarity, tokens
from csmd.text.markdown import BULLET, ID, line_words
from csmd.values import Candidate, Memory

#: How many calls of tools are looked at for who wrote a page, the latest.
MOST_CALLS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """One page; `also` is what its file may say besides and be no edit, `held` the file beside it that holds it whole."""

    path: str
    text: str
    at: str
    also: str = ""
    held: str = ""
    problem: str = ""
    left_out: tuple[str, ...] = ()

    def is_unedited(self, text: str) -> bool:
        """Whether a file that says this has no edit in it."""
        return text != "" and text in (self.text, self.also)


class Call(NamedTuple):
    """A call of a tool, as it is stored: who wrote a page is told by it."""

    uuid: str
    session_id: str
    at: str
    tool: str
    text: str
    cwd: str


def pages(rows: Rows) -> dict[str, PageRow]:
    """Every page by its path below the memory directory."""
    page_rows = rows.read(PageRow, f"select {columns(PageRow, 'p')} from pages p order by p.path")  # noqa: S608
    return {page.path: page for page in page_rows}


def put_page(rows: Rows, page: PageRow) -> None:
    """Records the present state of a page."""
    rows.upsert("pages", "path", **column_values(page))


def remove_page(rows: Rows, path: str) -> None:
    """Forgets a page whose file is no longer csmd's."""
    rows.delete("pages", path=path)


# --- what stands on pages


def page_places(rows: Rows) -> list[tuple[int, str, str, str, bool]]:
    """(row, key, name, root, whether it is behind a wall) of what may have a page: everywhere, projects, workspaces."""
    return rows.all(
        "select seq, key, name, root, workspace_seq > 0 or kind = 'workspace' from projects where merged_into = 0 order by seq"
    )


def active_memories(rows: Rows) -> list[Memory]:
    """The memories that nothing has replaced or put aside, in the order of their rows."""
    return memories.where(rows, "m.superseded_by = '' and m.twin_of = 0 and m.tier <> 'archive' order by m.seq")


def projects_of(rows: Rows, idents: Iterable[str]) -> frozenset[int]:
    """The projects of some memories."""
    seqs = (rows.column("select project_seq from memories where id = :id", id=ident) for ident in idents)
    return frozenset(seq for of_memory in seqs for seq in of_memory)


def questioned_lines(rows: Rows, projects: Sequence[int] | None = None) -> list[tuple[str, str]]:
    """(memory, page) of the lines that were removed from pages and that a person is asked about, in order."""
    fingerprints = rows.column(
        "select t.fingerprint from candidates t where t.source = 'page' and t.kind = 'stale' "  # noqa: S608
        f"and t.status in ('open', 'needs_review') and {in_keys('t.project_seq', projects)} order by t.seq"
    )
    return [(ident, path) for ident, _, path in (fingerprint.partition(" ") for fingerprint in fingerprints)]


def waiting_calls(rows: Rows) -> list[Candidate]:
    """The wordings from pages that a person has yet to answer for, in the order in which they came."""
    items = candidates.waiting(rows, projects=None)
    return sorted(
        (item for item in items if item.source == candidates.PAGE and item.kind == "belief"), key=lambda item: item.seq
    )


# --- who wrote a page


def calls_naming(rows: Rows, names: Iterable[str], *, inside: str, since: str) -> list[Call]:
    """The calls of tools since a time whose input has one of these words, or that were made `inside` a directory, the latest first."""
    sql = (
        "select t.uuid, s.id, t.at, t.tool_name, t.text, coalesce(d.path, s.cwd) from turns t "
        "join sessions s on s.seq = t.session_seq left join directories d on d.seq = t.directory_seq "
        "where t.kind in ('tool_call', 'tool_result') and t.gone = 0 and t.kind = 'tool_call' and t.at > :since "
        "and (t.text like '%' || cast(:name as text) || '%' or coalesce(d.path, s.cwd) like cast(:inside as text) || '%') "
        "order by t.at desc limit :most"
    )
    calls = [
        call for name in names for call in rows.read(Call, sql, since=since, name=name, inside=inside, most=MOST_CALLS)
    ]
    return sorted({call.uuid: call for call in calls}.values(), key=lambda call: call.at, reverse=True)


def stamp(rows: Rows) -> tuple[object, ...]:
    """What is other when anything changed that pages are made of: memories and what is beside them, walls, questions."""
    return (
        rows.one("select count(*), coalesce(max(seq), 0), coalesce(sum(version), 0) from memories"),
        rows.value("select count(*) from tombstones"),
        rows.all("select seq, name, root, workspace_seq, merged_into from projects order by seq"),
        rows.one(
            "select count(*), coalesce(sum(memory_seq * topic_seq), 0), coalesce(sum(memory_seq * weight), 0) "
            "from memory_topics"
        ),
        rows.one("select count(*), coalesce(max(seq), 0) from symptoms"),
        rows.all(
            "select status, count(*), max(seq), sum(version) from candidates where source = :page group by status "
            "order by status",
            page=candidates.PAGE,
        ),
    )


_ENDS = re.compile(ID.pattern + r"\s*$")
#: What ends the line of a list that is broken into several.
_OTHER = re.compile(r"\s*$|\s*#{1,6}\s|\s*(?:`{3}|~{3})|.*<!-- csmd -->\s*$")
#: Those of some memories' ids that no memory has any more.
Missing = Callable[[Sequence[str]], Collection[str]]
#: Whether words were forgotten, of a line that names no memory.
Unsaid = Callable[[str], bool]


def without_lines(page: str, missing: Missing, unsaid: Unsaid = frozenset().__contains__) -> tuple[str, int]:
    """A page without the lines of memories that are no more, and how many there were; the very same text for none."""
    whole = page.split("\n")
    items = [*_items(whole)]
    gone = missing([*dict.fromkeys(ident for _, _, ident in items if ident)])
    out: set[int] = set()
    count = 0
    for start, end, ident in items:
        upto = end if ident in gone else 0 if ident else _forgotten_upto(whole, start, end, unsaid)
        if upto:
            count += 1
            while upto < len(whole) and whole[upto][:1] in (" ", "\t") and not ID.search(whole[upto]):
                upto += 1
            out.update(range(start, upto))
    return ("\n".join(line for at, line in enumerate(whole) if at not in out) if out else page), count


#: A line of a page's head whose value YAML would not take for a text with `[purged]` in it.
_UNQUOTED = re.compile(r"^(\s*[\w-]+:[ ]+)([^'\"\s|>].*\[purged\].*|\[purged\].*)$")


def quote_purged(page: str) -> str:
    """A page whose head is still one: `[purged]` would begin a list where no quotes are around it."""
    whole = page.split("\n")
    if whole[0] != "---" or "---" not in whole[1:]:
        return page
    end = whole.index("---", 1)
    for at in range(1, end):
        if line := _UNQUOTED.match(whole[at]):
            value = line[2].replace("'", "''")
            whole[at] = f"{line[1]}'{value}'"
    return "\n".join(whole)


def _items(whole: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """(first line, the line after the last, id or "") of what may stand for a memory: lines of lists, broken ones whole."""
    at = 0
    while at < len(whole):
        end = at + 1
        if BULLET.match(whole[at]):
            while not ID.search(whole[end - 1]) and end < len(whole) and _goes_on(whole[end]):
                end += 1
            idents = ID.findall(whole[end - 1])
            yield at, end, idents[-1] if idents else ""
        elif idents := _ENDS.findall(whole[at]):  # it has lost its bullet
            yield at, end, idents[-1]
        at = end


def _goes_on(line: str) -> bool:
    return not BULLET.match(line) and not _OTHER.match(line)


def _forgotten_upto(whole: Sequence[str], start: int, end: int, unsaid: Unsaid) -> int:
    """Up to which line an item that names no memory says what was forgotten; 0 for none that does."""
    return next((upto for upto in range(start + 1, end + 1) if unsaid(line_words(" ".join(whole[start:upto])))), 0)


def missing_lines(rows: Rows, ids: Sequence[str]) -> frozenset[str]:
    """Those of these ids that no memory has."""
    return frozenset(item for item in ids if not rows.exists("select 1 from memories where id = :id", id=item))


def place_of(rows: Rows, path: str) -> int | None:
    """The row of the project or workspace that a page is of, or that what lies beside it is of, 0 for everywhere.

    None for a page of several, as a theme's is.
    """
    if markdown.is_user_page(path):
        return 0
    short = markdown.project_hash(path)
    seqs = [
        seq for seq, key in rows.all("select seq, key from projects") if short and markdown.short_hash(key) == short
    ]
    return seqs[0] if len(seqs) == 1 else None


def is_forgotten(rows: Rows, words: str, *, place: int | None, key: bytes) -> bool:
    """Whether words were forgotten, by whomever, where a page is of (None: anywhere), and no memory says them there."""
    if not words or not tombstones.is_forgotten(rows, words, authority="assistant", project=place, key=key):
        return False
    scopes = None if place is None else tombstones.applicable_places(rows, place)
    among = "" if scopes is None else f"and project_seq in ({', '.join(str(item) for item in sorted(scopes))})"
    text = f"select 1 from memories where text_hash = :hash {among}"  # noqa: S608
    return not rows.exists(text, hash=tokens.keyed_hash(words, key))


def without_forgotten(rows: Rows, page: str, *, path: str, key: bytes) -> tuple[str, int]:
    """The text of a page's file without what was forgotten (by its ids or by its words), and how many lines were removed."""
    place = place_of(rows, path)
    return without_lines(
        page, lambda ids: missing_lines(rows, ids), lambda words: is_forgotten(rows, words, place=place, key=key)
    )


def purge_pages(rows: Rows, key: bytes, after: int) -> tuple[int | None, int]:
    """A pass of a purge over what csmd wrote last of each page."""
    del key
    stored = rows.all(
        "select seq, text, also from pages where seq > :after order by seq limit :limit", after=after, limit=LOOKED_AT
    )
    total = 0
    for seq, *words in stored:
        (text, item), (also, other) = (without_lines(str(page), lambda ids: missing_lines(rows, ids)) for page in words)
        if item or other:
            rows.update("pages", seq, text=text, also=also)
            total += item + other
    return (int(stored[-1][0]) if stored else None), total


# --- which sessions a day's file tells
#
# A session is told by the digest that it had when its file was written, once for each day on which it ended. What is
# taken back (a purge, a transcript that proves nothing) is marked, and the files are brought to say the same.

_CLOSED = "exists (select 1 from events e where e.session_id = s.id and e.name = 'session_end' and e.at >= s.last_at)"
_SESSION = (
    "s.seq, s.id, p.seq, p.name, p.workspace_seq, case when p.workspace_seq = 0 then '' else "
    "(select w.name from projects w where w.seq = p.workspace_seq) end, s.started_at, s.last_at, s.cwd, p.root"
)


class Ending(NamedTuple):
    """A session that a day's file may tell: `wall` is the workspace it is behind ("" for none), `closed` what the host said.

    `told` is the row of the digest that was told last (0 for none), `day` its file's day and `told_at` up to when it went
    ("" for none).
    """

    digest_seq: int
    session_seq: int
    id: str
    project_seq: int
    project: str
    workspace_seq: int
    wall: str
    started_at: str
    last_at: str
    cwd: str
    root: str
    closed: bool
    told: int
    day: str
    told_at: str


class DayPart(NamedTuple):
    """A part of a day's file: its row, its session's id, where it is and where it belongs."""

    seq: int
    id: str
    day: str
    wall: str
    wall_now: str
    workspace_now: int


class Agent(NamedTuple):
    """A sub-agent of a session, and whether the last thing in its transcript is its answer."""

    id: str
    turns: int
    answered: bool


def days_waiting(rows: Rows, *, after: int, limit: int) -> list[Ending]:
    """The sessions whose last digest was made past a row key, in the order of these; also those that are told already."""
    sql = (
        f"select d.seq, {_SESSION}, {_CLOSED}, coalesce(t.digest_seq, 0), coalesce(t.day, ''), coalesce(t.last_at, '') "  # noqa: S608
        "from digests d join sessions s on s.seq = d.session_seq join projects p on p.seq = s.project_seq "
        "left join told_days t on t.session_seq = s.seq "
        "and t.seq = (select max(o.seq) from told_days o where o.session_seq = s.seq) "
        "where d.seq > :after and d.version = (select max(x.version) from digests x where x.session_seq = s.seq) "
        "order by d.seq limit :limit"
    )
    return rows.read(Ending, sql, after=after, limit=limit)


#: People's sessions with their last digest, of which nothing is told yet.
_ENDINGS = (
    "select coalesce((select d.seq from digests d where d.session_seq = s.seq order by d.version desc limit 1), 0), "  # noqa: S608
    f"{_SESSION}, 0, 0, '', '' from sessions s join projects p on p.seq = s.project_seq where s.parent = '' "
    "and s.host <> 'probe' "
)


def live_endings(rows: Rows, *, since: str, limit: int) -> list[Ending]:
    """People's sessions with a turn since a time that the host has not ended; `digest_seq` is 0 for one without."""
    sql = f"{_ENDINGS}and s.last_at > :since and not {_CLOSED} order by s.last_at desc, s.seq limit :limit"
    return rows.read(Ending, sql, since=since, limit=limit)


def endings_between(rows: Rows, *, since: str, until: str, projects: Sequence[int] | None) -> list[Ending]:
    """People's sessions in some projects (None: in all) that were under way between two times, in the order of their ends."""
    sql = (
        f"{_ENDINGS}and s.last_at >= :since and s.started_at < :until and {in_keys('s.project_seq', projects)} "
        "order by s.last_at, s.seq"
    )
    return rows.read(Ending, sql, since=since, until=until)


def note_day(rows: Rows, item: Ending, *, day: str, as_of: tuple[int, str]) -> None:
    """Notes that a day's file tells a session as its digest has it; one that was read before the last forgetting is due again.

    A session of which nothing came is noted with the day "": it is not read again until it has another digest.
    """
    values = {"digest_seq": item.digest_seq, "last_at": item.last_at, "workspace_seq": item.workspace_seq}
    due = "" if tombstones.forgetting_state(rows) == as_of else "again"
    rows.upsert("told_days", "session_seq, day", session_seq=item.session_seq, day=day, due=due, **values)


def days_due(rows: Rows, what: Literal["move", "leave", "again"], *, limit: int) -> list[DayPart]:
    """What is due of days: to move behind another wall, to leave its file, to be looked through for what was forgotten."""
    sql = (
        "select t.seq, s.id, t.day, coalesce(a.name, ''), coalesce(b.name, ''), p.workspace_seq "
        "from told_days t join sessions s on s.seq = t.session_seq join projects p on p.seq = s.project_seq "
        "left join projects a on a.seq = t.workspace_seq and a.seq > 0 "
        "left join projects b on b.seq = p.workspace_seq and b.seq > 0 "
        "where t.due = :what and t.due <> '' order by t.seq limit :limit"
    )
    return rows.read(DayPart, sql, what=what, limit=limit)


def mark_days_due(rows: Rows, uuids: Iterable[str], sessions: Iterable[int]) -> None:
    """Marks the day files' parts on the sessions of some turns, and on some sessions: they may hold what was forgotten."""
    listing = "select st.session_seq from session_turn st join turns t on t.seq = st.turn_seq where t.uuid = :uuid"
    for session in {*sessions, *(seq for uuid in uuids for seq in rows.column(listing, uuid=uuid))}:
        rows.run("update told_days set due = 'again' where due = '' and session_seq = :session", session=session)


def note_days_read(rows: Rows, parts: Sequence[DayPart], changed: Collection[str], *, as_of: tuple[int, str]) -> None:
    """Records that parts hold nothing forgotten any more; files of the days in `changed` are dropped from the journal.

    A part that may hold what was forgotten during the search stays due.
    """
    for part in parts if tombstones.forgetting_state(rows) == as_of else ():
        rows.run("update told_days set due = '' where seq = :seq and due = 'again'", seq=part.seq)
    for day in changed:
        _without_images(rows, day)


def session_is_out(rows: Rows, ident: str, *, key: bytes) -> Callable[[str], bool]:
    """Whether a sentence of a session was forgotten where any of it was said: as an assistant's, unless the user says it.

    Nothing tells when an assistant said it there, so it counts as its first.
    """
    began = rows.text("select started_at from sessions where id = :id", id=ident)
    places = rows.column(
        "select project_seq from sessions where id = :id union select t.project_seq from sessions s "
        "join session_turn st on st.session_seq = s.seq join turns t on t.seq = st.turn_seq where s.id = :id",
        id=ident,
    ) or [0]
    own = rows.all(
        "select distinct m.text, m.project_seq, m.at from sessions s join session_turn st on st.session_seq = s.seq "
        "join statements m on m.turn_seq = st.turn_seq where s.id = :id and m.authority = 'user'",
        id=ident,
    )

    def is_out(text: str) -> bool:
        is_forgotten_here = partial(tombstones.is_forgotten, rows, text, key=key)
        if not any(is_forgotten_here(authority="assistant", project=place, at=began) for place in places):
            return False
        return not any(
            similarity.repeats(words, text) and not is_forgotten_here(authority="user", project=project, at=at)
            for words, project, at in own
        )

    return cache(is_out)


def digest_texts(rows: Rows, ident: str) -> list[str]:
    """The texts of a session's digests, of every version, that are in a person's words."""
    return rows.column(
        "select distinct i.text from sessions s join digests d on d.session_seq = s.seq join digest_items i on i.digest_seq = d.seq "
        "where s.id = :id and i.kind in ('goal', 'open')",
        id=ident,
    )


def move_days(rows: Rows, parts: Sequence[DayPart]) -> None:
    """Notes that parts stand behind the walls now that their projects are behind; whatever was forgotten since may be in them."""
    for part in parts:
        rows.update("told_days", part.seq, workspace_seq=part.workspace_now, due="again")


def drop_days(rows: Rows, parts: Sequence[DayPart]) -> None:
    """Notes that parts have left their files."""
    for part in parts:
        rows.delete("told_days", seq=part.seq)


def take_back_days(rows: Rows, turn_seq: int) -> None:
    """Marks what was told of the sessions that list a turn, and drops what could bring it back into a file."""
    for session in rows.column("select session_seq from session_turn where turn_seq = :turn", turn=turn_seq):
        clear_days(rows, session)


def clear_days(rows: Rows, session_seq: int) -> None:
    """Marks what was told of one session."""
    for day in rows.column(
        "update told_days set due = 'leave' where session_seq = :session and due <> 'leave' returning day",
        session=session_seq,
    ):
        _without_images(rows, day)


def _without_images(rows: Rows, day: str) -> None:
    sql = "delete from changed_files where path like :markdown or path like :data"
    rows.run(sql, markdown=f"memory/%daily/{day}.md", data=f"memory/%daily/{day}.yaml")


def mark_days_moved(rows: Rows, project: int) -> None:
    """Marks what was told of a project's sessions: it is behind another wall now, and looked through again there."""
    rows.run(
        "update told_days set due = 'move' where due in ('', 'again') and session_seq in "
        "(select s.seq from sessions s where s.project_seq = :project)",
        project=project,
    )


def gotchas_of(rows: Rows, session_seq: int, *, limit: int) -> list[str]:
    """What was found out to be a trap in a session, the surest first."""
    sql = (
        "select m.text from session_turn st join statements m on m.turn_seq = st.turn_seq "
        "where st.session_seq = :session and st.rewound = 0 and m.category = 'gotcha' order by m.confidence desc, st.ordinal, m.seq limit :limit"
    )
    return rows.column(sql, session=session_seq, limit=limit)


def turn_times(rows: Rows, session_seq: int) -> list[str]:
    """When something was said or done in a session, in order."""
    return rows.column(
        "select t.at from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "
        "order by st.ordinal",
        session=session_seq,
    )


def corrections_of(rows: Rows, session_seq: int) -> list[tuple[str, str]]:
    """(sentence, time) of what the user corrected in a session, in order."""
    return rows.all(
        "select m.text, m.at from session_turn st join statements m on m.turn_seq = st.turn_seq where st.session_seq = :session "
        "and st.rewound = 0 and m.gate = 'correction' and m.authority = 'user' order by st.ordinal, m.seq",
        session=session_seq,
    )


def tool_traffic(rows: Rows, session_seq: int, *, characters: int) -> list[tuple[str, str, str, str, str]]:
    """(kind, tool, call, beginning, time) of the calls and results of a session, in order; a result names no tool."""
    return rows.all(
        "select t.kind, t.tool_name, t.tool_id, substr(t.text, 1, :characters), t.at from session_turn st "
        "join turns t on t.seq = st.turn_seq where st.session_seq = :session and t.kind in ('tool_call', 'tool_result') order by st.ordinal",
        session=session_seq, characters=characters,
    )  # fmt: skip


def prompts_left_behind(rows: Rows, session_seq: int) -> list[str]:
    """When each prompt of a session was given that a rewind left behind."""
    return rows.column(
        "select t.at from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "
        "and st.rewound = 1 and t.kind in ('user', 'relayed') order by st.ordinal",
        session=session_seq,
    )


def modes_of(rows: Rows, session_seq: int) -> list[tuple[str, str]]:
    """(time, mode) of the prompts of a session of which the mode is known, in order."""
    return rows.all(
        "select t.at, t.mode from session_turn st join turns t on t.seq = st.turn_seq where st.session_seq = :session "
        "and st.rewound = 0 and t.mode <> '' order by st.ordinal",
        session=session_seq,
    )


def agents_of(rows: Rows, ident: str) -> list[Agent]:
    """The sub-agents of a session, in the order in which they began."""
    agents = rows.read(
        Agent,
        "select s.id, s.turns, coalesce((select t.kind from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = s.seq order by st.ordinal desc limit 1), '') = 'assistant' from sessions s "
        "where s.parent = :id order by s.started_at, s.id",
        id=ident,
    )
    return [agent._replace(id=agent.id.rpartition("/")[2]) for agent in agents]
