"""What a home sends to its team's server, and how it stores what it receives.

An order is made in one read, an answer stored in one write; what is interrupted is sent or received again, which
changes nothing. Everything sent was redacted right before.
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
#: The origin of a memory that a colleague said.
ORIGIN = "team"
#: The columns of a digest's rows (csmd/store/digests.py).
_VERSION = ("version", "why", "upto", "at", "text", "outcome", "prompts", "calls", "tokens")


def speak(order: Mapping[str, Any], *, limit_s: float = LIMIT_S) -> Json:
    """Has a process next to the daemon carry out an order and returns its answer; raises StoreError without one."""
    command, environment = build_command(
        "csmd.team.exchange", is_managed=started_by() == "systemd", key_from=PASSWORD_FILE, limit_s=limit_s,
    )  # fmt: skip
    try:
        done = subprocess.run(
            command, env=environment, input=wire.dumps(order).encode("utf-8", "replace"), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=limit_s, check=False,
        )  # fmt: skip
        answer = wire.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise StoreError(f"the team's server: no answer within {limit_s:g} s") from error
    except (OSError, BadInput) as error:
        hint = "install psycopg beside csmd: pip install 'csmd[team]'"
        raise StoreError("the process for the team's server did not start", hint=hint) from error
    if "failure" in answer:
        raise StoreError(str(answer["failure"]), hint=str(answer["hint"]))
    return dict(answer)


_LOCAL = re.compile(r"localhost|127(?:\.\d+){3}|::1|/.*|")


def check_url(url: str) -> str:
    """Checks the URL of a server; raises BadInput if it is invalid or contains a password.

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
        hint = "write it into ~/.pgpass, or into the keyring: keyring set csmd URL (without the password)"
        raise BadInput("a password is not typed here: it would stay in the history of your shell", hint=hint)
    if _LOCAL.fullmatch(options.get("host", parts.hostname or "")) or "sslmode" in options:
        return url
    return f"{url}{'&' if parts.query else '?'}sslmode=require"


# --- sending


def compose_order(rows: Rows, joined: TeamRow) -> tuple[Json, list[Waiting]]:
    """The next exchange, and the rows of the queue that it settles."""
    waiting = team.list_waiting(rows, limit=MAX_SENT)
    shares = {share.project_seq: share for share in team.list_shares(rows)}
    gone: dict[str, list[str]] = {kind: [] for kind in (MEMORY, DIGEST, PROJECT)}
    sent: dict[str, list[Json]] = {MEMORY: [], DIGEST: []}
    for entry in waiting:
        if entry.kind == PROJECT:
            if entry.id not in {share.name for share in shares.values()}:
                gone[PROJECT].append(entry.id)
            continue
        shared = _memory(rows, entry.id) if entry.kind == MEMORY else _digest(rows, entry.id)
        if shared is not None:
            project, item = shared
            sent[entry.kind].append({**item, "share": shares[project].name})
        elif not (entry.kind == MEMORY and team.is_colleagues(rows, entry.id)):
            gone[entry.kind].append(entry.id)
    order = {
        "do": "exchange",
        "url": joined.url,
        "epoch": joined.epoch,
        "gone": gone,
        "memories": sent[MEMORY],
        "digests": sent[DIGEST],
        "shares": [
            {"name": share.name, "workspace": share.workspace, "readers": share.roles} for share in shares.values()
        ],
        "names": sorted(team.list_names_for_team(rows)),
        "reached": {str(place.seq): (place.xid, place.item) for place in team.list_places(rows)},
    }
    return order, waiting


def _memory(rows: Rows, ident: str) -> tuple[int, Json] | None:
    """A shared memory as it is sent, redacted, with its project's row; None if it is not shared."""
    memory = team.find_shared_memory(rows, ident)
    if memory is None:
        return None
    seq, project = memory
    record = record_schema.redact_record(exports.make_memory_record(rows, seq), redact, Counter())
    of_models = [(*part, vector.hex()) for *part, vector in vectors.read_parts_of_row(rows, "memory", seq)]
    return project, {
        **{name: value for name, value in record.items() if name not in ("project", "links")},
        "edges": exports.list_memory_edges(rows, seq), "vectors": of_models,
    }  # fmt: skip


def _digest(rows: Rows, ident: str) -> tuple[int, Json] | None:
    """The digests of a shared session as they are sent, redacted; None if there are none."""
    session = team.find_shared_session(rows, ident)
    if session is None:
        return None
    seq, project, parent, host, last_at = session
    versions = [
        {
            **{name: getattr(version, name) for name in _VERSION},
            "text": redact(version.text, Counter()),
            "items": [
                (kind, redact(text, Counter()), *rest)
                for kind, text, *rest in digests.list_items(rows, version.seq)
                if kind != "word"
            ],
        }
        for version in digests.of_session(rows, seq)
    ]
    return (
        (project, {"id": ident, "parent": parent, "host": host, "last_at": last_at, "versions": versions})
        if versions
        else None
    )


# --- receiving


def settle(rows: Rows, answer: Mapping[str, Any], sent: Sequence[Waiting], *, now: str) -> list[Json]:
    """Removes the sent rows from the queue, records the received projects, and returns the changes in them."""
    team.record_reached(rows, epoch=str(answer["epoch"]), at=now)
    if not answer["sent"]:
        return []
    team.remove_sent(rows, sent)
    before, here = {place.seq: place for place in team.list_places(rows)}, {}
    for project in answer["projects"]:
        seq = team.find_project(rows, project["name"], workspace=project["workspace"])
        if seq is not None and team.ROLE.fullmatch(project["author"]):
            had = before.get(project["seq"])
            at = (had.xid, had.item) if had and had.project_seq == seq and had.author == project["author"] else (0, 0)
            here[project["seq"]] = Place(project["seq"], project["author"], seq, *at)
    for place in before.values():
        if place.seq not in here:  # it is no longer shared with us, or is not a project here
            team.delete_place(rows, place)
    for place in here.values():
        if before.get(place.seq) != place:
            team.save_place(rows, place)
    return [change for change in answer["changed"] if change["place"] in here]


def receive(rows: Rows, changes: Sequence[Json], *, key: bytes, now: str) -> int:
    """Stores the first of these changes that a short write has time for, and how far was received; returns how many."""
    places, done = {place.seq: place for place in team.list_places(rows)}, 0
    for change in core.within_short_write(changes):
        place = places.get(change["place"])
        if place is not None:
            _receive(rows, place, change, key=key, now=now)
            places[place.seq] = place._replace(xid=change["xid"], item=change["item"])
            team.save_place(rows, places[place.seq])
        done += 1
    return done


def _receive(rows: Rows, place: Place, change: Mapping[str, Any], *, key: bytes, now: str) -> None:
    """Stores, updates or deletes one memory of a colleague."""
    remote, record = str(change["id"]), change["record"]
    seq = team.find_memory(rows, place, remote)
    if record is None:
        team.delete_memory(rows, place, remote)
        return
    try:
        checked = record_schema.check_record({**record, "project": {}}, 0)
    except BadInput:  # of another version, or invalid: the others are received
        team.delete_memory(rows, place, remote)
        return
    purged = tombstones.purged_marks(rows, key)
    item = record_schema.drop_purged(
        record_schema.redact_record(_as_colleagues(checked), redact, Counter()), lambda text: bool(purged.spans(text))
    )
    statement = Statement(**{name: item[name] for name in record_schema.STATEMENT_FIELDS})
    if remember.is_forgotten(rows, statement, project=place.project_seq, at=item["created_at"], key=key):
        team.delete_memory(rows, place, remote)
        return
    if seq is not None:
        memory = memories.by_seqs(rows, [seq])[seq]
        if memory.text == item["text"]:
            renewed = {name: item[name] for name in ("gate", "category", "confidence", "confirmed_at")}
            if any(getattr(memory, name) != value for name, value in renewed.items()):
                rows.revise("memories", seq, **renewed)
            return
        team.delete_memory(rows, place, remote)
    ident = (
        remote
        if memories.by_id(rows, remote) is None
        else supersession.free_identity(rows, place.project_seq, item["text"])
    )
    made = exports.insert_memory(
        rows, ident, item, project=place.project_seq, text_hash=tokens.keyed_hash(item["text"], key)
    )
    team.record_author(rows, place, made, remote)
    exports.add_annotations(rows, made, ident, item, renamed={})
    exports.record_import(rows, ident, reason=f"{place.author} said it", now=now)


def _as_colleagues(record: Mapping[str, Any]) -> Json:
    """A record as a colleague's memory is stored: not said here, without turns and sessions."""
    apart = {
        "sources": [(f"team:{uuid}", f"team:{session}", at, role) for uuid, session, at, role in record["sources"]],
        "symptoms": [(f"team:{uuid}", *rest) for uuid, *rest in record["symptoms"]],
        "refutations": [(f"team:{uuid}", *rest) for uuid, *rest in record["refutations"]],
        "session_id": f"team:{record['session_id']}", "superseded_by": "", "links": [],
    }  # fmt: skip
    return {**record_schema.lower_record(record), **apart, "authority": "external", "origin": ORIGIN}


# --- searching


def search_order(joined: TeamRow, query: str, *, wall: str, model: str, vector: bytes, limit: int) -> Json:
    """The order of a search from within a workspace ("" for none); the query is redacted first."""
    words = tokens.content_words(redact(query, Counter()))
    order = {"do": "search", "url": joined.url, "words": words, "wall": wall, "model": model}
    return {**order, "vector": vector.hex(), "limit": limit}
