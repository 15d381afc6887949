"""One exchange with the team's server.

python -m csmd.team.exchange

Reads an order from standard input, connects, carries it out and prints the answer. It is a process of its own because
the daemon may not use a network. csmd.team.sharing writes orders and reads answers.
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


def _join(rows: ServerRows, _: Mapping[str, Any]) -> Json:
    return {"is_new": postgres.prepare(rows)}


def _leave(rows: ServerRows, _: Mapping[str, Any]) -> Json:
    """Deletes everything of one's own on the server."""
    with rows.transaction(write=True):
        return {"removed": postgres.delete_all(rows)}


def _exchange(rows: ServerRows, order: Mapping[str, Any]) -> Json:
    """Sends the changes here, then receives those on the server; refuses another server than the joined one."""
    if order["epoch"] != postgres.epoch_of(rows):
        return {"is_other": True, "sent": False, "projects": [], "changed": []}
    author = postgres.author_of(rows)
    with rows.transaction(write=True):
        rows.narrow(author)
        projects = shared_rows.put_projects(rows, order["shares"], order["gone"]["project"])
        for ident in order["gone"]["memory"]:
            postgres.delete_memory(rows, ident)
        for ident in order["gone"]["digest"]:
            postgres.delete_session(rows, ident)
        if order["memories"]:
            shared_rows.put_memories(rows, order["memories"], projects)
        for digest in order["digests"]:
            shared_rows.put_digest(rows, digest, projects)
    with rows.transaction(write=False):
        visible = shared_rows.visible_projects(rows)
        changed: list[Json] = []
        for project in visible:
            if project["name"] in order["names"] and len(changed) < MAX_RECEIVED:
                xid, item = order["reached"].get(str(project["seq"]), (0, 0))
                rows.narrow(project["author"])
                limit = MAX_RECEIVED - len(changed)
                changes = shared_rows.changed_since(rows, project["seq"], xid=xid, item=item, limit=limit)
                changed += [{"place": project["seq"], **change} for change in changes]
    answer = {"is_other": False, "sent": True, "projects": visible, "changed": changed}
    return {**answer, "more": len(changed) >= MAX_RECEIVED}


def _search(rows: ServerRows, order: Mapping[str, Any]) -> Json:
    with rows.transaction(write=True):  # a setting applies until the end of its transaction
        vector = bytes.fromhex(order["vector"])
        hits = shared_rows.search(
            rows, order["words"], wall=order["wall"], model=order["model"], vector=vector, limit=order["limit"]
        )
        return {"hits": hits}


#: Name -> order.
ORDERS: Mapping[str, Callable[[ServerRows, Mapping[str, Any]], Json]] = {
    "join": _join, "leave": _leave, "exchange": _exchange, "search": _search,
}  # fmt: skip


def find_password(url: str) -> str:
    """The password of a URL in the keyring; "" leaves it to libpq: ~/.pgpass, a certificate, the role itself."""
    try:
        import keyring

        return keyring.get_password("csmd", url) or ""
    except Exception:  # noqa: BLE001 - each backend has errors of its own; without a keyring libpq looks elsewhere
        return ""


def carry_out(order: Mapping[str, Any]) -> Json:
    """Carries out an order; raises StoreError if the server cannot be reached or refuses."""
    with postgres.connected(order["url"], password=find_password(order["url"])) as rows:
        answer = ORDERS[order["do"]](rows, order)
        return {**answer, "author": postgres.author_of(rows), "epoch": postgres.epoch_of(rows)}


def main() -> None:
    """Carries out the order on standard input."""
    try:
        answer = carry_out(wire.loads(sys.stdin.buffer.read()))
    except CsmdError as error:
        answer = {"failure": error.what, "hint": error.hint}
    sys.stdout.buffer.write(wire.dumps(answer).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
