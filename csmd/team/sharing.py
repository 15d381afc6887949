"""Sends shared memories and digests to the team's server and stores what colleagues share.

A request is composed in one read and a reply stored in one write. An interrupted exchange is repeated; repeating it is
harmless. Everything is redacted right before it is sent.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from csmd import wire
from csmd.config import started_by
from csmd.curator.process import build_command
from csmd.errors import BadInput, StoreError
from csmd.knowledge import Statement
from csmd.memory import remember, supersession
from csmd.memory_export import record_schema
from csmd.privacy.redaction import redact
from csmd.store import core, digests, exports, memories, team, tombstones, vectors
from csmd.store.sqlite import Rows
from csmd.store.team import DIGEST, MEMORY, PROJECT, Place, TeamRow, Waiting
from csmd.text import tokens

Json = dict[str, Any]
#: Most memories, digests and projects that one exchange sends.
MAX_SENT = 200
#: Seconds that an exchange may take.
LIMIT_S = 120.0
#: The variable with which libpq finds a password.
PASSWORD_FILE = "PGPASSFILE"  # noqa: S105
#: The origin of a colleague's memory.
TEAM_ORIGIN = "team"
#: The fields of a digest's version that are sent (csmd/store/digests.py).
_VERSION_FIELDS = ("version", "why", "upto", "at", "text", "outcome", "prompts", "calls", "tokens")
_LOCAL_HOST = re.compile(r"localhost|127(?:\.\d+){3}|::1|/.*|")


# --- the server


def run_exchange(request: Mapping[str, Any], *, limit_s: float = LIMIT_S) -> Json:
    """Runs one request in a separate process and returns the reply; raises StoreError if there is none."""
    command, environment = build_command(
        "csmd.team.exchange", is_managed=started_by() == "systemd", key_from=PASSWORD_FILE, limit_s=limit_s,
    )  # fmt: skip
    try:
        process = subprocess.run(
            command, env=environment, input=wire.dumps(request).encode("utf-8", "replace"), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=limit_s, check=False,
        )  # fmt: skip
        answer = wire.loads(process.stdout)
    except subprocess.TimeoutExpired as error:
        raise StoreError(f"the team's server did not answer within {limit_s:g} s") from error
    except (OSError, BadInput) as error:
        hint = "install csmd with psycopg: pip install 'csmd[team]'"
        raise StoreError("could not start csmd.team.exchange", hint=hint) from error
    if "failure" in answer:
        raise StoreError(str(answer["failure"]), hint=str(answer["hint"]))
    return dict(answer)


def check_url(url: str) -> str:
    """Returns the URL of a server; raises BadInput if it is invalid or contains a password.

    Over a network the connection is encrypted, unless the URL says otherwise.
    """
    hint = "write e.g. postgresql://ann@db.example.org/team"
    try:
        parts, is_url = urlsplit(url), url.isprintable()
    except ValueError as error:
        raise BadInput("not a URL of a database", hint=hint) from error
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/") or not is_url:
        raise BadInput(f"{redact(url, Counter())!r} is not a URL of a database", hint=hint)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if parts.password is not None or "password" in options:
        hint = "put it in ~/.pgpass, or in the keyring: keyring set csmd URL (without the password)"
        raise BadInput("the URL must not contain a password (shell history would keep it)", hint=hint)
    if _LOCAL_HOST.fullmatch(options.get("host", parts.hostname or "")) or "sslmode" in options:
        return url
    return f"{url}{'&' if parts.query else '?'}sslmode=require"


# --- sending


def compose_order(rows: Rows, membership: TeamRow) -> tuple[Json, list[Waiting]]:
    """Returns the next request, and the rows of the queue that its reply settles."""
    waiting = team.list_waiting(rows, limit=MAX_SENT)
    shares = {share.project_seq: share for share in team.list_shares(rows)}
    withdrawn: dict[str, list[str]] = {kind: [] for kind in (MEMORY, DIGEST, PROJECT)}
    sent: dict[str, list[Json]] = {MEMORY: [], DIGEST: []}
    for entry in waiting:
        if entry.kind == PROJECT:
            if entry.id not in {share.name for share in shares.values()}:
                withdrawn[PROJECT].append(entry.id)
            continue
        make_record = _shared_memory_record if entry.kind == MEMORY else _shared_digest_record
        shared = make_record(rows, entry.id)
        if shared is not None:
            project, item = shared
            sent[entry.kind].append({**item, "share": shares[project].name})
        elif not (entry.kind == MEMORY and team.is_colleagues(rows, entry.id)):
            withdrawn[entry.kind].append(entry.id)
    order = {
        "do": "exchange", "url": membership.url, "epoch": membership.epoch, "gone": withdrawn, "memories": sent[MEMORY],
        "digests": sent[DIGEST],
        "shares": [{"name": row.name, "workspace": row.workspace, "readers": row.roles} for row in shares.values()],
        "names": sorted(team.list_names_for_team(rows)),
        "reached": {str(place.seq): (place.xid, place.item) for place in team.list_places(rows)},
    }  # fmt: skip
    return order, waiting


def _shared_memory_record(rows: Rows, memory_id: str) -> tuple[int, Json] | None:
    """Returns (row key of the project, redacted record) of a shared memory; None if it is not shared."""
    memory = team.find_shared_memory(rows, memory_id)
    if memory is None:
        return None
    seq, project = memory
    record = record_schema.redact_record(exports.make_memory_record(rows, seq), redact, Counter())
    model_vectors = [(*part, vector.hex()) for *part, vector in vectors.read_parts_of_row(rows, "memory", seq)]
    return project, {
        **{name: value for name, value in record.items() if name not in ("project", "links")},
        "edges": exports.list_memory_edges(rows, seq), "vectors": model_vectors,
    }  # fmt: skip


def _shared_digest_record(rows: Rows, session_id: str) -> tuple[int, Json] | None:
    """Returns (row key of the project, redacted record) of a shared session's digests; None if there are none."""
    session = team.find_shared_session(rows, session_id)
    if session is None:
        return None
    seq, project, parent, host, last_at = session
    versions = [
        {
            **{name: getattr(version, name) for name in _VERSION_FIELDS},
            "text": redact(version.text, Counter()),
            "items": [
                (kind, redact(text, Counter()), *rest)
                for kind, text, *rest in digests.list_items(rows, version.seq)
                if kind != "word"
            ],
        }
        for version in digests.of_session(rows, seq)
    ]  # fmt: skip
    if not versions:
        return None
    return project, {"id": session_id, "parent": parent, "host": host, "last_at": last_at, "versions": versions}


# --- receiving


def record_exchange(rows: Rows, answer: Mapping[str, Any], sent: Sequence[Waiting], *, now: str) -> list[Json]:
    """Removes the sent rows from the queue, records the received projects, and returns the changes in them."""
    team.record_reached(rows, epoch=str(answer["epoch"]), at=now)
    if not answer["sent"]:
        return []
    team.remove_sent(rows, sent)
    previous = {place.seq: place for place in team.list_places(rows)}
    current: dict[int, Place] = {}
    for project in answer["projects"]:
        seq = team.find_project(rows, project["name"], workspace=project["workspace"])
        if seq is not None and team.ROLE.fullmatch(project["author"]):
            place = Place(project["seq"], project["author"], seq, 0, 0)
            earlier = previous.get(place.seq)
            is_continued = earlier and (earlier.project_seq, earlier.author) == (place.project_seq, place.author)
            current[place.seq] = earlier if earlier and is_continued else place
    for place in previous.values():
        if place.seq not in current:  # no longer shared with this home, or no project of it
            team.delete_place(rows, place)
    for place in current.values():
        if previous.get(place.seq) != place:
            team.save_place(rows, place)
    return [change for change in answer["changed"] if change["place"] in current]


def receive(rows: Rows, changes: Sequence[Json], *, key: bytes, now: str) -> int:
    """Stores as many changes as fit into one short write, saves the position reached, and returns their number."""
    places = {place.seq: place for place in team.list_places(rows)}
    received = 0
    for change in core.within_short_write(changes):
        place = places.get(change["place"])
        if place is not None:
            _apply_change(rows, place, change, key=key, now=now)
            places[place.seq] = place._replace(xid=change["xid"], item=change["item"])
            team.save_place(rows, places[place.seq])
        received += 1
    return received


def _apply_change(rows: Rows, place: Place, change: Mapping[str, Any], *, key: bytes, now: str) -> None:
    """Stores, updates or deletes one memory of a colleague."""
    remote = str(change["id"])
    item = _accepted_record(rows, place, change["record"], key)
    seq = team.find_memory(rows, place, remote)
    if item and seq is not None:
        memory = memories.by_seqs(rows, [seq])[seq]
        if memory.text == item["text"]:
            updated = {name: item[name] for name in ("gate", "category", "confidence", "confirmed_at")}
            if any(getattr(memory, name) != value for name, value in updated.items()):
                rows.revise("memories", seq, **updated)
            return
    team.delete_memory(rows, place, remote)
    if item is None:
        return
    memory_id = remote
    if memories.by_id(rows, remote) is not None:
        memory_id = supersession.free_identity(rows, place.project_seq, item["text"])
    text_hash = tokens.keyed_hash(item["text"], key)
    memory_seq = exports.insert_memory(rows, memory_id, item, project=place.project_seq, text_hash=text_hash)
    team.record_author(rows, place, memory_seq, remote)
    exports.add_annotations(rows, memory_seq, memory_id, item, renamed={})
    exports.record_import(rows, memory_id, reason=f"{place.author} said it", now=now)


def _accepted_record(rows: Rows, place: Place, record: Any, key: bytes) -> Json | None:
    """Returns a received record, redacted; None if it was withdrawn, is invalid, or was forgotten in this home."""
    try:
        checked = record_schema.check_record({**record, "project": {}}, 0) if record else None
    except BadInput:  # one invalid record must not block the rest
        return None
    if checked is None:
        return None
    purged = tombstones.purged_marks(rows, key)
    redacted = record_schema.redact_record(_to_colleague_record(checked), redact, Counter())
    item = record_schema.drop_purged(redacted, lambda text: bool(purged.spans(text)))
    statement = Statement(**{name: item[name] for name in record_schema.STATEMENT_FIELDS})
    is_forgotten = remember.is_forgotten(rows, statement, project=place.project_seq, at=item["created_at"], key=key)
    return None if is_forgotten else item


def _to_colleague_record(record: Mapping[str, Any]) -> Json:
    """Marks a record as a colleague's: external authority, ids prefixed with `team:`."""
    overrides = {
        "sources": [(f"team:{uuid}", f"team:{session}", at, role) for uuid, session, at, role in record["sources"]],
        "symptoms": [(f"team:{uuid}", *rest) for uuid, *rest in record["symptoms"]],
        "refutations": [(f"team:{uuid}", *rest) for uuid, *rest in record["refutations"]],
        "session_id": f"team:{record['session_id']}", "superseded_by": "", "links": [],
    }  # fmt: skip
    return {**record_schema.lower_record(record), **overrides, "authority": "external", "origin": TEAM_ORIGIN}


# --- searching


def search_order(membership: TeamRow, query: str, *, wall: str, model: str, vector: bytes, limit: int) -> Json:
    """Composes the request of a search from a workspace ("" for none); the query is redacted first."""
    words = tokens.content_words(redact(query, Counter()))
    order = {"do": "search", "url": membership.url, "words": words, "wall": wall, "model": model}
    return {**order, "vector": vector.hex(), "limit": limit}
