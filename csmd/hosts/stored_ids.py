"""Ids of sessions and turns as they are stored: an assistant's own, with its name before them, save Claude Code's; pure."""

from __future__ import annotations

from typing import Any

from csmd.hosts.labels import label

#: Enough of an id to be one.
LONGEST_ID = 200


def session_id(host: str, ident: str) -> str:
    """The id under which a session is stored; "" for none."""
    return f"{host}:{ident}" if ident else ""


def uuid_in(host: str, value: dict[str, Any], key: str) -> str:
    """The id of a turn by the one that its line has under `key`; "" for none."""
    return session_id(host, label(value, key, LONGEST_ID))


def stream(session: str, agent: str) -> str:
    """The conversation of a session, or of a sub-agent in it."""
    return f"{session}/{agent}" if agent else session
