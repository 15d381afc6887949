"""What the dream's gates ask the rows: when a session began first, when one was at work last, which tiers are crowded."""

from __future__ import annotations

from csmd.store.sqlite import Rows

#: What lies there is where a dream puts things: however much there is, it is not crowded.
ASIDE = "archive"


def first_session(rows: Rows) -> str:
    """When the first session of a person began; "" when there is none."""
    return str(
        rows.value("select coalesce(min(started_at), '') from sessions where parent = '' and host <> 'probe'") or ""
    )


def last_turn(rows: Rows) -> str:
    """When the latest turn of any session of a person was said; "" when there is none."""
    return str(
        rows.value("select coalesce(max(last_at), '') from sessions where parent = '' and host <> 'probe'") or ""
    )


def crowded(rows: Rows, *, most: int) -> list[tuple[str, str, int]]:
    """(project's name, tier, memories) of each tier of a project that has more than `most`, the fullest first."""
    return [
        (str(name), str(tier), int(number))
        for name, tier, number in rows.all(
            "select p.name, g.tier, g.number from (select m.project_seq, m.tier, count(*) as number from memories m "
            "where m.tier <> :aside group by m.project_seq, m.tier having count(*) > :most) g "
            "join projects p on p.seq = g.project_seq order by 3 desc, 1, 2",
            aside=ASIDE,
            most=most,
        )
    ]
