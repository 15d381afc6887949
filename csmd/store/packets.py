"""Experience packets: what was observed in sessions, by project; and which projects were not scanned since.

A packet goes with its turn: purged, taken back or moved to another project, it takes the evidence of candidates along,
and a candidate without any is gone. Whatever changes the packets of a project has it scanned again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from csmd.model import Heard, Packet, State
from csmd.store.sqlite import Rows

#: The stage whose cursors say how far a project's packets were scanned.
SCAN = "scan"
#: Characters of a turn that are looked at.
MOST_CHARACTERS = 4_000


def heard(rows: Rows, session_seq: int, *, after: int, upto: int) -> list[Heard]:
    """A conversation's turns past an ordinal up to another, in order, as their transcript tells them.

    Ends before the first turn that only a hook has reported so far: its line may come yet.
    """
    found = rows.all(
        "select t.uuid, s.id, t.project_seq, t.kind, substr(t.text, 1, :most), t.at, st.ordinal, t.tool_name, t.tool_id, "
        "s.parent, t.source, t.provisional from session_turn st join turns t on t.seq = st.turn_seq "
        "join sessions s on s.seq = t.session_seq where st.session_seq = :session and st.ordinal > :after "
        "and st.ordinal <= :upto order by st.ordinal",
        session=session_seq,
        after=after,
        upto=upto,
        most=MOST_CHARACTERS,
    )
    told: list[Heard] = []
    for uuid, ident, project, kind, said, at, ordinal, tool, tool_id, parent, source, provisional in found:
        if provisional:
            break
        if source == "transcript":
            told.append(
                Heard(
                    uuid=uuid, session_id=parent or ident, project_seq=project, kind=kind, text=said, at=at,
                    ordinal=ordinal, tool_name=tool, tool_id=tool_id, agent=bool(parent),
                )
            )  # fmt: skip
    return told


def first_provisional(rows: Rows, session_seq: int, *, after: int) -> int | None:
    """The ordinal of the first turn past `after` that only a hook has reported so far, or None."""
    found = rows.value(
        "select min(st.ordinal) from session_turn st join turns t on t.seq = st.turn_seq "
        "where st.session_seq = :session and st.ordinal > :after and t.provisional = 1",
        session=session_seq,
        after=after,
    )
    return None if found is None else int(found)


#: What stands in the table for a figure that is unknown.
UNKNOWN = -1.0


def _stored(figure: float | None) -> float:
    return UNKNOWN if figure is None else figure


def _figure(stored: float) -> float | None:
    return None if stored == UNKNOWN else stored


def put(rows: Rows, found: Iterable[Packet]) -> int:
    """Stores packets; how many are new."""
    new = 0
    for packet in found:
        new += len(
            rows.all(
                "insert into packets (session_seq, project_seq, uuid, ordinal, kind, subject, outcome, at, words, "
                "frustration, energy, stance, urgency) select s.seq, :project, :uuid, :ordinal, :kind, :subject, "
                ":outcome, :at, :words, :frustration, :energy, :stance, :urgency from sessions s where s.id = :session "
                "on conflict (uuid, kind, subject) do nothing returning seq",
                session=packet.session_id,
                project=packet.project_seq,
                uuid=packet.uuid,
                ordinal=packet.ordinal,
                kind=packet.kind,
                subject=packet.subject,
                outcome=packet.outcome,
                at=packet.at,
                words=packet.words,
                frustration=_stored(packet.state.frustration),
                energy=_stored(packet.state.energy),
                stance=packet.state.stance,
                urgency=_stored(packet.state.urgency),
            )
        )
    return new


def latest(rows: Rows, *, projects: Sequence[int] | None, limit: int) -> list[Packet]:
    """The latest packets of some projects (None: all), the newest first."""
    scope = "" if projects is None else f"where p.project_seq in ({', '.join(str(int(seq)) for seq in projects)})"
    found = rows.all(
        "select p.kind, p.subject, p.outcome, p.uuid, s.id, p.project_seq, p.ordinal, p.at, p.words, p.frustration, "  # noqa: S608
        f"p.energy, p.stance, p.urgency from packets p join sessions s on s.seq = p.session_seq {scope} "
        "order by p.at desc, p.ordinal desc, p.kind, p.subject limit :limit",
        limit=limit,
    )
    return [
        Packet(
            kind=row[0], subject=row[1], outcome=row[2], uuid=row[3], session_id=row[4], project_seq=row[5],
            ordinal=row[6], at=row[7], words=row[8],
            state=State(frustration=_figure(row[9]), energy=_figure(row[10]), stance=row[11], urgency=_figure(row[12])),
        )
        for row in found
    ]  # fmt: skip


# --- which projects were not scanned since


def unscanned(rows: Rows, *, quiet_before: str = "", now: str = "") -> list[tuple[int, int]]:
    """(project, where its packets end) of the projects whose packets changed; those without any that have habits first.

    With `quiet_before` without those whose latest packet is of a time between that and `now`.
    """
    found = rows.all(
        "select p.seq, coalesce(x.top, 0) + 1 as top from projects p left join "
        "(select project_seq, max(seq) as top, max(at) as latest from packets group by project_seq) x "
        "on x.project_seq = p.seq "
        "left join cursors c on c.stage = :stage and c.subject = cast(p.seq as text) "
        "where (x.top is not null or exists (select 1 from candidates d where d.project_seq = p.seq and d.source = 'habits')) "
        "and coalesce(c.position, 0) <> coalesce(x.top, 0) + 1 "
        "and (cast(:quiet as text) = '' or x.latest is null or x.latest <= :quiet or x.latest > :now) order by top, p.seq",
        stage=SCAN,
        quiet=quiet_before,
        now=now,
    )
    return [(int(project), int(top)) for project, top in found]


def _scan_again(rows: Rows, projects: Iterable[int]) -> None:
    for project in projects:
        rows.run("delete from cursors where stage = :stage and subject = :subject", stage=SCAN, subject=str(project))


# --- with their turns


def take_back(rows: Rows, uuid: str) -> None:
    """Removes what was observed of a turn, and the evidence it was; a candidate that has none left is gone."""
    projects = {
        int(seq) for (seq,) in rows.all("delete from packets where uuid = :uuid returning project_seq", uuid=uuid)
    }
    touched = rows.all("delete from candidate_evidence where uuid = :uuid returning candidate_seq", uuid=uuid)
    for (seq,) in touched:
        rows.run(
            "delete from candidates where seq = :seq and not exists "
            "(select 1 from candidate_evidence e where e.candidate_seq = :seq)",
            seq=seq,
        )
    _scan_again(rows, projects)


def take_back_session(rows: Rows, session_seq: int) -> None:
    """As `take_back`, of every turn of a session that something was observed of."""
    for (uuid,) in rows.all("select distinct uuid from packets where session_seq = :seq", seq=session_seq):
        take_back(rows, str(uuid))


def move_to(rows: Rows, turn_seq: int, project: int) -> None:
    """Gives what was observed of a turn to another project."""
    uuid = rows.value("select uuid from turns where seq = :seq", seq=turn_seq)
    before = {int(seq) for (seq,) in rows.all("select project_seq from packets where uuid = :uuid", uuid=uuid)}
    if before:
        rows.run("update packets set project_seq = :to where uuid = :uuid", to=project, uuid=uuid)
        _scan_again(rows, (*before, project))
