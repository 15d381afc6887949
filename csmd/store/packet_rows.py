"""Observations of sessions (packets), and the turns that they are made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from csmd.conversation import ObservedTurn
from csmd.knowledge import Packet, State
from csmd.store.row_values import as_value, column_values
from csmd.store.sqlite import Rows, in_keys

#: The stage whose cursors record how far a project's packets were scanned.
SCAN_STAGE = "scan"
#: Characters of a turn that are read.
MAX_CHARACTERS = 4_000
#: An unknown figure.
UNKNOWN_FIGURE = -1.0


def read_turns_for_packets(rows: Rows, session_seq: int, *, after: int, until: int) -> list[ObservedTurn]:
    """Returns a conversation's turns past an ordinal up to another, in order, as in the transcript.

    Ends before the first turn that only a hook has reported so far, because its line may still come.
    """
    provisional = find_first_provisional(rows, session_seq, after=after)
    sql = """select t.uuid, case when s.parent = '' then s.id else s.parent end,
        t.project_seq, t.kind, substr(t.text, 1, :most), t.at, st.ordinal, t.tool_name, t.tool_id, s.parent <> ''
        from session_turn st join turns t on t.seq = st.turn_seq join sessions s on s.seq = t.session_seq
        where st.session_seq = :session and st.ordinal > :after and st.ordinal <= :until
        and t.source = 'transcript' and (st.rewound = 0 or t.kind in ('tool_call', 'tool_result')) order by st.ordinal"""
    return rows.read(
        ObservedTurn,
        sql,
        session=session_seq,
        after=after,
        until=until if provisional is None else min(until, provisional - 1),
        most=MAX_CHARACTERS,
    )


def find_first_provisional(rows: Rows, session_seq: int, *, after: int) -> int | None:
    """Returns the ordinal of the first turn past `after` that only a hook has reported so far, or None."""
    sql = """select min(st.ordinal) from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and st.ordinal > :after and t.provisional = 1"""
    return rows.key(sql, session=session_seq, after=after)


def put_packets(rows: Rows, packets: Iterable[Packet]) -> int:
    """Stores packets and returns how many are new."""
    return sum(_put_packet(rows, packet) for packet in packets)


def _put_packet(rows: Rows, packet: Packet) -> bool:
    session = rows.find("sessions", "seq", id=packet.session_id)
    if session is None:
        return False
    state = {name: UNKNOWN_FIGURE if figure is None else figure for name, figure in column_values(packet.state).items()}
    values = column_values(packet, "session_id", "state")
    return rows.insert("packets", "on conflict do nothing", session_seq=session, **values, **state)


def latest_packets(
    rows: Rows, *, projects: Sequence[int] | None, limit: int, session: str = "", kind: str = "", since: str = "",
    until: str = "",
) -> list[Packet]:  # fmt: skip
    """Returns the latest packets of some projects (None: all), of one session and kind ("": any), the newest first.

    Observed at or after `since` and before `until`.
    """
    sql = f"""select p.kind, p.subject, p.outcome, p.uuid, s.id, p.project_seq, p.ordinal, p.at,
        p.words, p.frustration, p.energy, p.stance, p.urgency from packets p join sessions s on s.seq = p.session_seq
        where {in_keys("p.project_seq", projects)} and (:session = '' or s.id = :session)
        and (:kind = '' or p.kind = :kind) and p.at >= :since and (:until = '' or p.at < :until)
        order by p.at desc, p.ordinal desc, p.kind, p.subject limit :limit"""  # noqa: S608
    packet_rows = rows.all(sql, limit=limit, session=session, kind=kind, since=since, until=until)
    return [
        as_value(
            Packet, (*row[:9], as_value(State, [None if figure == UNKNOWN_FIGURE else figure for figure in row[9:]]))
        )
        for row in packet_rows
    ]


def list_projects_to_scan(rows: Rows, *, quiet_before: str = "", now: str = "") -> list[tuple[int, int]]:
    """Returns (project, its last packet) of projects with changed packets, first those that have lost all of theirs.

    `quiet_before` leaves out those with a latest packet between that time and `now`.
    """
    sql = """select p.seq, coalesce(x.top, 0) + 1 as top from projects p
        left join (select project_seq, max(seq) as top, max(at) as latest from packets group by project_seq) x
        on x.project_seq = p.seq left join cursors c on c.stage = 'scan' and c.subject = cast(p.seq as text)
        where (x.top is not null or exists (select 1 from candidates d where d.project_seq = p.seq
        and d.source = 'habits')) and coalesce(c.position, 0) <> coalesce(x.top, 0) + 1 and (cast(:quiet as text) = ''
        or x.latest is null or x.latest <= :quiet or x.latest > :now) order by top, p.seq"""
    return rows.all(sql, quiet=quiet_before, now=now)


def _mark_unscanned(rows: Rows, projects: Iterable[int]) -> None:
    for project in projects:
        rows.delete("cursors", stage="scan", subject=str(project))


def take_back_packets(rows: Rows, uuid: str) -> None:
    """Deletes the observations of a turn, the evidence in them, and candidates without other evidence."""
    projects = rows.column("delete from packets where uuid = :uuid returning project_seq", uuid=uuid)
    touched = rows.column("delete from candidate_evidence where uuid = :uuid returning candidate_seq", uuid=uuid)
    has_evidence = "exists (select 1 from candidate_evidence e where e.candidate_seq = candidates.seq)"
    rows.run(f"delete from candidates where {in_keys('seq', touched)} and not {has_evidence}")  # noqa: S608
    _mark_unscanned(rows, {*projects})


def take_back_session_packets(rows: Rows, session_seq: int) -> None:
    """Deletes the observations of every turn of a session, with the evidence in them."""
    for uuid in rows.column("select distinct uuid from packets where session_seq = :seq", seq=session_seq):
        take_back_packets(rows, uuid)


def move_packets(rows: Rows, turn_seq: int, project: int) -> None:
    """Moves the observations of a turn to another project."""
    uuid = rows.find("turns", "uuid", seq=turn_seq)
    before = rows.column("select distinct project_seq from packets where uuid = :uuid", uuid=uuid)
    if before:
        rows.run("update packets set project_seq = :to where uuid = :uuid", to=project, uuid=uuid)
        _mark_unscanned(rows, (*before, project))
