"""Carries out one request to the team's server.

python -m csmd.team.exchange

Reads a request from standard input, connects, carries it out and prints the reply. It is a separate process because
the daemon may not use a network. csmd.team.sharing composes requests and stores replies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from csmd import wire
from csmd.errors import CsmdError
from csmd.team import postgres, shared_rows
from csmd.team.postgres import ServerRows

Json = dict[str, Any]
#: Most changes of colleagues that one exchange receives.
MAX_RECEIVED = 200


def _join_team(rows: ServerRows, _: Mapping[str, Any]) -> Json:
    return {"is_new": postgres.prepare(rows)}


def _leave_team(rows: ServerRows, _: Mapping[str, Any]) -> Json:
    """Deletes everything that this role stored on the server."""
    with rows.transaction(write=True):
        return {"removed": postgres.delete_all(rows)}


def _exchange_changes(rows: ServerRows, request: Mapping[str, Any]) -> Json:
    """Sends this home's changes, then receives those on the server; refuses any server but the joined one."""
    if request["epoch"] != postgres.read_epoch(rows):
        return {"is_other": True, "sent": False, "projects": [], "changed": []}
    author = postgres.read_author(rows)
    with rows.transaction(write=True):
        rows.narrow(author)
        projects = shared_rows.put_projects(rows, request["shares"], request["gone"]["project"])
        for memory_id in request["gone"]["memory"]:
            postgres.delete_memory(rows, memory_id)
        for session_id in request["gone"]["digest"]:
            postgres.delete_session(rows, session_id)
        if request["memories"]:
            shared_rows.put_memories(rows, request["memories"], projects)
        for digest in request["digests"]:
            shared_rows.put_digest(rows, digest, projects)
    with rows.transaction(write=False):
        visible = shared_rows.list_visible_projects(rows)
        changed: list[Json] = []
        for project in visible:
            if project["name"] in request["names"] and len(changed) < MAX_RECEIVED:
                xid, item = request["reached"].get(str(project["seq"]), (0, 0))
                rows.narrow(project["author"])
                limit = MAX_RECEIVED - len(changed)
                changes = shared_rows.list_changes_since(rows, project["seq"], xid=xid, item=item, limit=limit)
                changed += [{"place": project["seq"], **change} for change in changes]
    answer = {"is_other": False, "sent": True, "projects": visible, "changed": changed}
    return {**answer, "more": len(changed) >= MAX_RECEIVED}


def _search_server(rows: ServerRows, request: Mapping[str, Any]) -> Json:
    with rows.transaction(write=True):  # a setting applies until the end of its transaction
        vector = bytes.fromhex(request["vector"])
        names = {"workspace": request["wall"], "model": request["model"], "limit": request["limit"]}
        hits = shared_rows.search(rows, request["words"], vector=vector, **names)
        return {"hits": hits}


#: `do` of a request -> the function that carries it out.
COMMANDS: Mapping[str, Callable[[ServerRows, Mapping[str, Any]], Json]] = {
    "join": _join_team, "leave": _leave_team, "exchange": _exchange_changes, "search": _search_server,
}  # fmt: skip


def find_password(url: str) -> str:
    """Returns the password of a URL in the keyring; "" leaves it to libpq: ~/.pgpass, a certificate, the role
    itself."""
    try:
        import keyring

        return keyring.get_password("csmd", url) or ""
    except Exception:  # noqa: BLE001 - each backend has errors of its own; without a keyring libpq looks elsewhere
        return ""


def carry_out_request(request: Mapping[str, Any]) -> Json:
    """Carries out a request; raises StoreError if the server cannot be reached or refuses."""
    with postgres.open_connection(request["url"], password=find_password(request["url"])) as rows:
        answer = COMMANDS[request["do"]](rows, request)
        return {**answer, "author": postgres.read_author(rows), "epoch": postgres.read_epoch(rows)}


def main() -> None:
    """Carries out the request on standard input."""
    try:
        answer = carry_out_request(wire.loads(sys.stdin.buffer.read()))
    except CsmdError as error:
        answer = {"failure": error.what, "hint": error.hint}
    sys.stdout.buffer.write(wire.dumps(answer).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
