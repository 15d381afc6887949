"""What hooks reported, as hashes only: an event is known by its id, and as the same report of a second command."""

from __future__ import annotations

from csmd.model import Event
from csmd.store.sqlite import Rows


def record(rows: Rows, event: Event, *, text_hash: str, payload_hash: str) -> bool:
    """Notes a hook's event; False when it is known: by its id, or as the same report from a second command.

    A second command (a plugin's beside the settings') reports the same payload within 2 s, and
    nothing else happens in the session between the two.
    """
    if _reported_twice(rows, event, payload_hash):
        return False
    added = rows.value(
        "insert into events (id, host, name, session_id, stream, text_hash, payload_hash, source, at) values "
        "(:id, :host, :name, :session, :stream, :hash, :payload, :source, :at) "
        "on conflict (id) do nothing returning seq",
        id=event.id,
        host=event.host,
        name=event.name,
        session=event.session_id,
        stream=f"{event.session_id}/{event.agent_id}" if event.agent_id else event.session_id,
        hash=text_hash,
        payload=payload_hash,
        source=event.source,
        at=event.at,
    )
    return added is not None


def _reported_twice(rows: Rows, event: Event, payload_hash: str) -> bool:
    for (at,) in rows.all(
        "select at from events where session_id = :session and name = :name and payload_hash = :payload "
        "order by seq desc limit 5",
        session=event.session_id,
        name=event.name,
        payload=payload_hash,
    ):
        between = rows.value(
            "select count(*) from events where session_id = :session and name <> :name and at > :first and at < :last",
            session=event.session_id,
            name=event.name,
            first=min(at, event.at),
            last=max(at, event.at),
        )
        if not between and _within_2_s(at, event.at):
            return True
    return False


def _within_2_s(one: str, other: str) -> bool:
    from datetime import datetime

    return abs((datetime.fromisoformat(one) - datetime.fromisoformat(other)).total_seconds()) <= 2.0
