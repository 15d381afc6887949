"""The one queue of candidates, and the experience packets that they are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from csmd.model import Candidate, CandidateKind, CandidateStatus, Evidence, Heard, Packet, State
from csmd.store.sqlite import Rows

#: The source of what the pages bring that people edit: a line that was removed, or that an assistant wrote.
PAGE = "page"
WAITING: tuple[CandidateStatus, ...] = ("open", "needs_review")
_COLUMNS = (
    "m.id, m.kind, m.source, m.project_seq, m.fingerprint, m.text, m.reason, m.gate, m.category, m.confidence, "
    "m.reinforcement, m.contradicted, m.status, m.memory_ids, m.created_at, m.updated_at, m.version, m.seq"
)


def identity(kind: CandidateKind, project: int, fingerprint: str, created_at: str) -> str:
    """A candidate's id: `c` and ten hex digits."""
    return "c" + hashlib.sha256(f"{kind}:{project}:{fingerprint}:{created_at}".encode()).hexdigest()[:10]


def put(rows: Rows, candidate: Candidate) -> str:
    """Puts a candidate into the queue, or renews the one that waits; its id, "" where a person has dropped it.

    The waiting one keeps its id and its evidence and takes over everything else.
    """
    same = {"project": candidate.project_seq, "kind": candidate.kind, "fingerprint": candidate.fingerprint}
    dropped = rows.value(
        "select id from candidates where project_seq = :project and kind = :kind and fingerprint = :fingerprint "
        "and status = 'dropped' limit 1",
        **same,
    )
    if dropped is not None:
        return ""
    found = rows.one(
        "select seq, id from candidates where project_seq = :project and kind = :kind and fingerprint = :fingerprint "
        "and status in ('open', 'needs_review')",
        **same,
    )
    if found is None:
        seq, ident = _insert(rows, candidate)
    else:
        seq, ident = int(found[0]), str(found[1])
        _say(rows, seq, candidate)
    _cite(rows, seq, candidate.evidence)
    return ident


def _insert(rows: Rows, candidate: Candidate) -> tuple[int, str]:
    """(row key, id) of a new one; one that is over may have had its id."""
    ident, number = candidate.id, 1
    while rows.value("select 1 from candidates where id = :id", id=ident) is not None:
        moment = f"{candidate.created_at} {number}"
        ident, number = identity(candidate.kind, candidate.project_seq, candidate.fingerprint, moment), number + 1
    seq = rows.value(
        "insert into candidates (id, kind, source, project_seq, fingerprint, text, reason, gate, category, confidence, "
        "reinforcement, contradicted, status, memory_ids, created_at, updated_at) values (:id, :kind, :source, "
        ":project, :fingerprint, :text, :reason, :gate, :category, :confidence, :reinforcement, :contradicted, "
        ":status, :memories, :created, :updated) returning seq",
        id=ident, kind=candidate.kind, source=candidate.source, project=candidate.project_seq,
        fingerprint=candidate.fingerprint, text=candidate.text, reason=candidate.reason, gate=candidate.gate,
        category=candidate.category, confidence=candidate.confidence, reinforcement=candidate.reinforcement,
        contradicted=candidate.contradicted, status=candidate.status, memories=" ".join(candidate.memory_ids),
        created=candidate.created_at, updated=candidate.updated_at,
    )  # fmt: skip
    return int(seq), ident


def _say(rows: Rows, seq: int, candidate: Candidate) -> None:
    """Has a waiting one say what is known now."""
    rows.run(
        "update candidates set text = :text, reason = :reason, gate = :gate, category = :category, "
        "confidence = :confidence, reinforcement = :reinforcement, contradicted = :contradicted, status = :status, "
        "memory_ids = :memories, updated_at = :updated, version = version + 1 where seq = :seq",
        text=candidate.text, reason=candidate.reason, gate=candidate.gate, category=candidate.category,
        confidence=candidate.confidence, reinforcement=candidate.reinforcement, contradicted=candidate.contradicted,
        status=candidate.status, memories=" ".join(candidate.memory_ids), updated=candidate.updated_at, seq=seq,
    )  # fmt: skip


def _cite(rows: Rows, seq: int, evidence: Sequence[Evidence]) -> None:
    for one in evidence:
        rows.run(
            "insert into candidate_evidence (candidate_seq, uuid, session_id, at, against) "
            "values (:seq, :uuid, :session, :at, :against) on conflict (candidate_seq, uuid) do nothing",
            seq=seq,
            uuid=one.uuid,
            session=one.session_id,
            at=one.at,
            against=int(one.against),
        )


def renew(rows: Rows, known: Candidate, candidate: Candidate) -> bool:
    """Makes a stored candidate say what is known now, its evidence replaced; False, and nothing done, where it is the same.

    It keeps its id; `known` is as it was read.
    """
    if replace(candidate, id=known.id, seq=known.seq, version=known.version) == known:
        return False
    _say(rows, known.seq, candidate)
    rows.run("update candidates set created_at = :at where seq = :seq", at=candidate.created_at, seq=known.seq)
    rows.run("delete from candidate_evidence where candidate_seq = :seq", seq=known.seq)
    _cite(rows, known.seq, candidate.evidence)
    return True


def remove(rows: Rows, candidate: Candidate) -> None:
    """Takes a candidate out of the queue: nothing speaks for it any more."""
    rows.run("delete from candidates where seq = :seq", seq=candidate.seq)


def of_source(rows: Rows, source: str, *, project: int) -> list[Candidate]:
    """What one rule has put there for a project, whatever became of it, the oldest first."""
    found = rows.all(
        f"select {_COLUMNS} from candidates m where m.source = :source and m.project_seq = :project order by m.seq",  # noqa: S608
        source=source,
        project=project,
    )
    return _with_evidence(rows, found)


def settle(rows: Rows, candidate: Candidate, status: CandidateStatus, *, now: str) -> bool:
    """Gives a candidate another status; False when it has changed since it was read."""
    changed = rows.all(
        "update candidates set status = :status, updated_at = :now, version = version + 1 "
        "where id = :id and version = :version returning id",
        status=status,
        now=now,
        id=candidate.id,
        version=candidate.version,
    )
    return bool(changed)


def merge(rows: Rows, source: int, into: int) -> None:
    """Gives a project's candidates to another; of two that say the same the one there takes in what speaks for it.

    What became of one already stays with the memory that came of it.
    """
    for seq, other in rows.all(
        "select c.seq, (select o.seq from candidates o where o.project_seq = :target and o.kind = c.kind "
        "and o.fingerprint = c.fingerprint and o.status in ('open', 'needs_review', 'dropped') order by o.seq limit 1) "
        "from candidates c where c.project_seq = :source and c.status in ('open', 'needs_review') order by c.seq",
        source=source,
        target=into,
    ):
        if other is not None:
            rows.run(
                "insert into candidate_evidence (candidate_seq, uuid, session_id, at, against) "
                "select :other, uuid, session_id, at, against from candidate_evidence where candidate_seq = :seq "
                "on conflict (candidate_seq, uuid) do nothing",
                other=other,
                seq=seq,
            )
            rows.run("delete from candidates where seq = :seq", seq=seq)
    rows.run(
        "update candidates set project_seq = :target where project_seq = :source "
        "and status in ('open', 'needs_review', 'dropped')",
        target=into,
        source=source,
    )


def split(rows: Rows, source: int, part: int) -> None:
    """Gives those to a part that only its own turns speak for; run when its turns are its own."""
    rows.run(
        "update candidates set project_seq = :part where project_seq = :source and seq in ("
        "select e.candidate_seq from candidate_evidence e join turns t on t.uuid = e.uuid "
        "group by e.candidate_seq having min(t.project_seq) = :part and max(t.project_seq) = :part) "
        "and not exists (select 1 from candidates o where o.project_seq = :part and o.kind = candidates.kind "
        "and o.fingerprint = candidates.fingerprint)",
        part=part,
        source=source,
    )


def forget(rows: Rows, memory_id: str) -> None:
    """Removes the candidates that quote a memory, and the audit of its changes: the memory itself is going."""
    rows.run(
        "delete from candidates where status in ('open', 'needs_review', 'promoted', 'dropped', 'done') "
        "and kind in ('duplicate', 'near_duplicate', 'stale', 'missing_embedding', 'orphan') "
        "and ' ' || memory_ids || ' ' like '% ' || cast(:id as text) || ' %'",
        id=memory_id,
    )
    rows.run("delete from belief_changes where memory_id = :id", id=memory_id)


def is_waiting(rows: Rows, candidate: Candidate) -> bool:
    """Whether another of the same kind, project and fingerprint waits."""
    found = rows.value(
        "select 1 from candidates where project_seq = :project and kind = :kind and fingerprint = :fingerprint "
        "and status in ('open', 'needs_review') and id <> :id",
        project=candidate.project_seq,
        kind=candidate.kind,
        fingerprint=candidate.fingerprint,
        id=candidate.id,
    )
    return found is not None


def ids_like(rows: Rows, prefix: str) -> list[str]:
    """The ids that begin with `prefix`, at most ten: people type the first characters."""
    found = rows.all(
        "select id from candidates where substr(id, 1, :size) = :prefix order by id limit 10",
        size=len(prefix),
        prefix=prefix,
    )
    return [str(ident) for (ident,) in found]


def by_id(rows: Rows, ident: str) -> Candidate | None:
    """One candidate, or None."""
    found = rows.all(f"select {_COLUMNS} from candidates m where m.id = :id", id=ident)  # noqa: S608
    return _with_evidence(rows, found)[0] if found else None


def waiting(
    rows: Rows, *, projects: Sequence[int] | None, statuses: Sequence[CandidateStatus] = WAITING, limit: int = 1000
) -> list[Candidate]:
    """The candidates of some projects (None: all) with one of `statuses`, what needs review and the surest first."""
    scope = "where true" if projects is None else f"where m.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    keys = ", ".join(f"'{status}'" for status in statuses)
    found = rows.all(
        f"select {_COLUMNS} from candidates m {scope} and m.status in ({keys}) "  # noqa: S608
        "order by case m.status when 'needs_review' then 0 else 1 end, m.confidence desc, m.seq limit :limit",
        limit=limit,
    )
    return _with_evidence(rows, found)


def waiting_after(rows: Rows, seq: int, *, limit: int) -> list[Candidate]:
    """The next that wait past a row key, in order."""
    found = rows.all(
        f"select {_COLUMNS} from candidates m where m.seq > :seq and m.status in ('open', 'needs_review') "  # noqa: S608
        "order by m.seq limit :limit",
        seq=seq,
        limit=limit,
    )
    return _with_evidence(rows, found)


def waiting_of(rows: Rows, keys: Iterable[tuple[int, str, str]]) -> list[Candidate]:
    """Those that wait of some (project, kind, fingerprint), of each one at most."""
    found = [
        row
        for project, kind, fingerprint in keys
        for row in rows.all(
            f"select {_COLUMNS} from candidates m where m.project_seq = :project and m.kind = :kind "  # noqa: S608
            "and m.fingerprint = :fingerprint and m.status in ('open', 'needs_review')",
            project=project,
            kind=kind,
            fingerprint=fingerprint,
        )
    ]
    return _with_evidence(rows, found)


def counts(rows: Rows, *, projects: Sequence[int] | None = None) -> dict[str, dict[str, int]]:
    """How many there are of some projects (None: all) by kind and status."""
    scope = "" if projects is None else f"where project_seq in ({', '.join(str(int(p)) for p in projects)})"
    found: dict[str, dict[str, int]] = {}
    for kind, status, count in rows.all(
        f"select kind, status, count(*) from candidates {scope} group by kind, status order by kind, status"  # noqa: S608
    ):
        found.setdefault(str(kind), {})[str(status)] = int(count)
    return found


def _with_evidence(rows: Rows, found: Sequence[Sequence[Any]]) -> list[Candidate]:
    if not found:
        return []
    evidence: dict[int, list[Evidence]] = {}
    keys = ", ".join(str(int(row[17])) for row in found)
    for seq, uuid, session, at, against in rows.all(
        f"select candidate_seq, uuid, session_id, at, against from candidate_evidence where candidate_seq in ({keys}) "  # noqa: S608
        "order by candidate_seq, at, uuid"
    ):
        evidence.setdefault(int(seq), []).append(Evidence(uuid=uuid, session_id=session, at=at, against=bool(against)))
    return [
        Candidate(
            id=row[0], kind=row[1], source=row[2], project_seq=row[3], fingerprint=row[4], text=row[5], reason=row[6],
            gate=row[7], category=row[8], confidence=row[9], reinforcement=row[10], contradicted=row[11],
            status=row[12], memory_ids=tuple(str(row[13]).split()), created_at=row[14], updated_at=row[15],
            version=row[16], seq=row[17], evidence=tuple(evidence.get(int(row[17]), ())),
        )
        for row in found
    ]  # fmt: skip


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


def put_packets(rows: Rows, found: Iterable[Packet]) -> int:
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


def latest_packets(rows: Rows, *, projects: Sequence[int] | None, limit: int) -> list[Packet]:
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


def take_back_packets(rows: Rows, uuid: str) -> None:
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


def take_back_session_packets(rows: Rows, session_seq: int) -> None:
    """As `take_back`, of every turn of a session that something was observed of."""
    for (uuid,) in rows.all("select distinct uuid from packets where session_seq = :seq", seq=session_seq):
        take_back_packets(rows, str(uuid))


def move_packets(rows: Rows, turn_seq: int, project: int) -> None:
    """Gives what was observed of a turn to another project."""
    uuid = rows.value("select uuid from turns where seq = :seq", seq=turn_seq)
    before = {int(seq) for (seq,) in rows.all("select project_seq from packets where uuid = :uuid", uuid=uuid)}
    if before:
        rows.run("update packets set project_seq = :to where uuid = :uuid", to=project, uuid=uuid)
        _scan_again(rows, (*before, project))
