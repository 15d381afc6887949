"""Exports and imports memories, and the assistant's own notes."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, get_args

from csmd import wire
from csmd.capture.project_identity import normal_remote
from csmd.errors import BadInput
from csmd.hosts.claude import environment
from csmd.hosts.claude.environment import Memo
from csmd.memory import remember, supersession
from csmd.memory.remember import MODEL_SAVED
from csmd.model import (
    AUTHORITY_RANK,
    CATEGORIES,
    GATE_PRIORITY,
    Category,
    Decay,
    Memory,
    MemoryType,
    Project,
    Provenance,
    Scope,
    Statement,
    Tier,
)
from csmd.privacy.redaction import redact
from csmd.store import exports, files, memories, tombstones, workspaces
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display, prose, tokens

#: The file in a directory that was exported to, and what its first line says.
NAME = "memories.jsonl"
FORMAT, VERSION = "csmd memories", 1
#: Characters of a memory, and entries of each of its lists, beyond which a line is no memory.
MOST_CHARACTERS, MOST_ENTRIES = 20_000, 10_000

_KINDS = ("git", "submodule", "path", "workspace")
_ROLES = ("states", "confirms", "beside")


def render_lines(records: Iterable[Mapping[str, Any]], *, key: bytes) -> Iterator[str]:
    """The lines of a file, each ending in a newline: what it is, a memory each, the seal."""
    digest = hmac.new(key, b"parcel\n", hashlib.sha256)
    for value in ({"format": FORMAT, "version": VERSION}, *records):
        line = wire.dumps(dict(value)) + "\n"
        digest.update(line.encode())
        yield line
    yield wire.dumps({"seal": digest.hexdigest()}) + "\n"


def _head(value: Mapping[str, Any]) -> None:
    if value.get("format") != FORMAT:
        raise BadInput(
            "these are no memories that `csmd export` wrote", hint="name the directory it was told with --to"
        )
    if value.get("version") != VERSION:
        raise BadInput("a newer csmd has written them", hint="csmd upgrade")


def _json(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = wire.loads(line)
    except BadInput as error:
        raise BadInput(f"line {number} of {NAME} is no JSON", hint="export them again") from error
    if not isinstance(value, dict):
        raise BadInput(f"line {number} of {NAME} is no JSON object", hint="export them again")
    return value


# --- what a record may hold

Check = Callable[[Any], bool]


def _one_of(names: Iterable[str]) -> Check:
    known = frozenset(names)
    return lambda value: isinstance(value, str) and value in known


def _like(pattern: str) -> Check:
    compiled = re.compile(pattern, re.DOTALL)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _list_of(check: Check, most: int = MOST_ENTRIES) -> Check:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(check, value))


def _rows_of(*checks: Check, most: int = MOST_ENTRIES) -> Check:
    def is_row(row: Any) -> bool:
        is_as_long = isinstance(row, list) and len(row) == len(checks)
        return is_as_long and all(check(one) for check, one in zip(checks, row, strict=True))

    return _list_of(is_row, most)


def _fields(**checks: Check) -> Check:
    return lambda value: (
        isinstance(value, dict) and value.keys() == checks.keys() and all(checks[name](value[name]) for name in checks)
    )


def _share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _day(value: Any) -> bool:
    return value is None or (isinstance(value, int) and abs(value) < 10**7)


_ID, _TIME = r"m[0-9a-f]{6,40}", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
_text, _word, _time, _path = (
    _like(rf".{{0,{MOST_CHARACTERS}}}"),
    _like(r"[\w:./@+-]{0,200}"),
    _like(_TIME),
    _like(".{0,4999}"),
)
#: One phrase, on one line, of those that csmd makes.
_scene = _like(r"(?:at |after \"|in answer to \"|in a review)[^\x00-\x1f\x7f]{0,250}")
_place = _fields(key=_like(".{1,4999}"), root=_path, name=_path, kind=_one_of(_KINDS), remote=_path, workspace=_path)

CHECKS: dict[str, Check] = {
    "id": _like(_ID),
    "text": _like(rf"(?=.*\S).{{1,{MOST_CHARACTERS}}}"),
    "project": lambda value: value == {} or _place(value),
    "gate": _one_of(GATE_PRIORITY),
    "category": _one_of(CATEGORIES),
    "type": _one_of(get_args(MemoryType)),
    "tier": _one_of(get_args(Tier)),
    "decay": _one_of(get_args(Decay)),
    "authority": _one_of(AUTHORITY_RANK),
    "origin": _word,
    "confidence": _share,
    "scope": _one_of(get_args(Scope)),
    "session_id": _word,
    "created_at": _time,
    "confirmed_at": _time,
    "used_at": _like(f"(?:{_TIME})?"),
    "pinned": lambda value: value in (0, 1),
    "days_left": _fields(hot_until=_day, warm_until=_day, archive_at=_day),
    "superseded_by": _like(f"(?:{_ID})?"),
    "sources": lambda value: bool(value) and _rows_of(_word, _word, _time, _one_of(_ROLES))(value),
    "links": _rows_of(_like(_ID), _word, _share, _time),
    "tags": _rows_of(_text, _one_of(("person", "assistant")), _share),
    "symptoms": _rows_of(_word, _time, _text, _text),
    "refutations": _rows_of(_word, _time, _text, _share),
    "scene": _rows_of(_word, _scene, most=1),
    "changes": _list_of(
        _fields(change=_text, before=_text, after=_text, reason=_text, by=_text, at=_text, undone_at=_text)
    ),
}
#: Which column of a list holds words.
WORDS = {"tags": 0, "symptoms": 2, "refutations": 2, "scene": 1}
#: What files that were written before there was such a field stand for.
BEFORE: dict[str, Any] = {"scene": []}


def check_record(value: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A record with every field it must have and no other; BadInput names the field and its line."""
    value = {**BEFORE, **value}
    for name, check in CHECKS.items():
        if name not in value:
            raise BadInput(f"line {number} of {NAME} has no {name}", hint="export them again")
        if not check(value[name]):
            raise BadInput(f"line {number} of {NAME}: that is no {name}", hint="export them again")
    return {name: value[name] for name in CHECKS}


def lower_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record for which nobody vouches: it is evidence of an assistant's, told to nobody until a person keeps it.

    Its audit stays behind: an undo would rest on what nobody has seen.
    """
    return {**record, "authority": "assistant", "origin": "model_saved", "pinned": 0, "changes": [], "scene": [],
            "tags": [[name, "assistant", weight] for name, _, weight in record["tags"]]}  # fmt: skip


def drop_purged(record: Mapping[str, Any], is_purged: Callable[[str], bool]) -> dict[str, Any]:
    """A record without what was said of it that the user has purged here."""
    return {
        **record,
        **{name: [row for row in record[name] if not is_purged(row[at])] for name, at in WORDS.items()},
        "changes": [one for one in record["changes"] if not any(map(is_purged, one.values()))],
    }


def redact_record(
    record: Mapping[str, Any], clean: Callable[[str, Counter[str]], str], counts: Counter[str]
) -> dict[str, Any]:
    """A record whose words have gone through redaction; what was found is counted."""
    place = {name: said if name == "kind" else clean(said, counts) for name, said in record["project"].items()}
    lists = {
        name: [[*row[:at], clean(row[at], counts), *row[at + 1 :]] for row in record[name]]
        for name, at in WORDS.items()
    }
    changes = [
        {name: clean(said, counts) if name in ("before", "after", "reason") else said for name, said in one.items()}
        for one in record["changes"]
    ]
    return {**record, "text": clean(record["text"], counts), "project": place, **lists, "changes": changes}


#: Memories that one read or one write goes through: hooks wait behind it; lines that are checked at a stretch.
BATCH, CHECKED = 50, 200
#: No file is larger, nor a line: two hundred thousand memories or so.
MOST_BYTES, MOST_LINE = 400_000_000, 4_000_000


@dataclass(slots=True)
class Taken:
    """What came in: memories new and known, those that the user made csmd forget, those nobody vouched for, those that somebody does now, secrets.

    `placed` counts those of each directory that is not here, or is another clone than the one in which it is asked for:
    (what it was there, what it is here, "" for nothing yet, its remote).
    """

    new: int = 0
    known: int = 0
    forgotten: int = 0
    lowered: int = 0
    vouched: int = 0
    redactions: Counter[str] = field(default_factory=Counter)
    placed: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def export_memories(store: Store, directory: Path, places: Sequence[int] | None) -> Iterator[int]:
    """Writes the memories of some places (None: all) into `memories.jsonl`; after each batch how many were read."""
    seqs = store.read(lambda rows: exports.seqs(rows, places))
    records: list[dict[str, Any]] = []
    for start in range(0, len(seqs), BATCH):
        part = seqs[start : start + BATCH]
        records += store.read(lambda rows, part=part: [exports.record(rows, seq) for seq in part])  # type: ignore[misc]
        yield len(records)
    data = "".join(render_lines(records, key=store.hash_key)).encode()
    files.write_atomic(directory / NAME, data)


def import_memories(
    store: Store, file: BinaryIO, *, vouched: bool, now: str, taken: Taken, here: Project | None = None
) -> Iterator[int]:
    """Takes in what an export wrote; after each batch how many records were gone through. BadInput: it is damaged.

    `here` is the project in whose directory it is asked for: what has its remote is of it.

    The file is gone through three times, a line at a time: it is checked as a whole before anything is done, what leads
    to another memory comes when all are there, and a line that is another than it was is none. A damaged file changes
    nothing. Where it becomes another while it is read, or the import is interrupted, what is in by then stays, and
    the next import of it brings the rest.
    """
    records: dict[int, bytes] = {}
    sealed = yield from _verified(file, records, key=store.hash_key)
    trusted = vouched or sealed
    taken.lowered = 0 if trusted else len(records)
    renamed: dict[str, str] = {}
    fresh: set[int] = set()
    done = 0
    for part in _parts(file, records, trusted=trusted, counts=taken.redactions):
        put = partial(
            _put, part=part, renamed=renamed, taken=taken, trusted=trusted, here=here, key=store.hash_key, now=now
        )
        fresh.update(store.write(put))
        done += len(part)
        yield done
    joining = {number: digest for number, digest in records.items() if number in fresh}
    for part in _parts(file, joining, trusted=trusted, counts=Counter()):
        store.write(partial(_join, joined=part.values(), renamed=renamed, key=store.hash_key))
        yield done


def _verified(file: BinaryIO, records: dict[int, bytes], *, key: bytes) -> Generator[int, None, bool]:
    """Checks all lines of a file and notes the digest of each record; gives whether this home made the file as it is.

    BadInput names the line that is no memory, or says that the file is of another kind, or was cut.
    """
    digest = hmac.new(key, b"parcel\n", hashlib.sha256)
    seal: str | None = None
    has_head = False
    for number, line in _numbered(file):
        if not line.strip():
            continue
        value = _json(line, number)
        if not has_head:
            _head(value)
            has_head = True
        elif "seal" in value and seal is None:
            seal = str(value["seal"])
            continue
        else:
            check_record(value, number)
            records[number] = _digest(line)
            if len(records) % CHECKED == 0:
                yield 0
        digest.update(line.rstrip(b"\n") + b"\n")
    if not has_head:
        _head({})
    if seal is None:
        raise BadInput("they do not end with a seal: the file was cut", hint="export them again")
    return hmac.compare_digest(digest.hexdigest(), seal)


def _numbered(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of a file from its beginning, none longer than a memory may be."""
    file.seek(0)
    number = 0
    while line := file.readline(MOST_LINE + 1):
        number += 1
        if len(line) > MOST_LINE:
            raise BadInput(f"line {number} of {NAME} is longer than any memory", hint="export them again")
        yield number, line


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _parts(
    file: BinaryIO, records: Mapping[int, bytes], *, trusted: bool, counts: Counter[str]
) -> Iterator[dict[int, dict[str, Any]]]:
    """Some records of a file that was checked, by their lines; BadInput where it changed since."""
    lines = (line for number, line in _numbered(file) if number in records)
    left = iter(records.items())
    while some := list(islice(left, BATCH)):
        part: dict[int, dict[str, Any]] = {}
        for number, known in some:
            line = next(lines, b"")
            if _digest(line) != known:
                raise BadInput(f"{NAME} was changed while it was read", hint="import it again")
            record = check_record(_json(line, number), number)
            part[number] = redact_record(record if trusted else lower_record(record), redact, counts)
        yield part


def _put(
    rows: Rows,
    *,
    part: Mapping[int, dict[str, Any]],
    renamed: dict[str, str],
    taken: Taken,
    trusted: bool,
    here: Project | None,
    key: bytes,
    now: str,
) -> list[int]:
    """Stores what is not there yet; the lines of those of which what leads to others is yet to come."""
    fresh: list[int] = []
    for number, one in part.items():
        said = Statement(
            text=one["text"], gate=one["gate"], category=one["category"], confidence=one["confidence"],
            authority=one["authority"],
        )  # fmt: skip
        project = _placed(rows, one["project"], taken, here=here, now=now)
        if remember.is_forgotten(rows, said, project=project, at=str(one["created_at"]), key=key):
            taken.forgotten += 1
            continue
        text_hash = tokens.keyed_hash(one["text"], key)
        known = memories.by_id(rows, one["id"])
        if known is None or known.text != one["text"]:
            known = memories.by_hash(rows, text_hash, project=project)
        if known is not None:
            taken.known += 1
            renamed[one["id"]] = known.id
            if trusted:
                exports.add_sources(rows, known.seq, one)
                taken.vouched += _vouch(rows, known, one, key=key, now=now)
            # An import that was interrupted is gone on with; nobody's file says what leads from a memory of a trusted one.
            if exports.is_import_incomplete(rows, known.id) and (trusted or known.origin == remember.MODEL_SAVED):
                fresh.append(number)
            continue
        ident = (
            one["id"]
            if memories.by_id(rows, one["id"]) is None
            else supersession.free_identity(rows, project, one["text"])
        )
        exports.put(rows, ident, one, project=project, text_hash=text_hash)
        exports.note_imported(rows, ident, reason="it was imported", now=now, state=exports.INCOMPLETE)
        renamed[one["id"]] = ident
        taken.new += 1
        fresh.append(number)
    return fresh


def _placed(rows: Rows, said: Mapping[str, str], taken: Taken, *, here: Project | None, now: str) -> int:
    """Where a record's project is here, noted where that is another place than it was there, or than is asked in."""
    if said:
        said = {**said, "remote": normal_remote(said["remote"])}
    project = exports.place(rows, said, now=now, here=here)
    if said and said["kind"] != workspaces.KIND:
        root, is_gone = workspaces.root_of(rows, project), files.is_missing(said["root"])
        if is_gone or (here is not None and here.remote == said["remote"] != "" and here.root != root):
            taken.placed[said["root"], "" if is_gone and root == said["root"] else root, said["remote"]] += 1
    return project


def _vouch(rows: Rows, here: Memory, one: Mapping[str, Any], *, key: bytes, now: str) -> bool:
    """Gives a memory that came in as an assistant's the authority and the scene that its record has, now that somebody vouches for it."""
    if here.origin != remember.MODEL_SAVED or one["origin"] == remember.MODEL_SAVED or here.authority != "assistant":
        return False
    raised = replace(here, authority=one["authority"], origin=one["origin"], pinned=bool(one["pinned"]))
    memories.update_belief(rows, raised)
    exports.put_scene(rows, here.seq, _without_purged(rows, one, key=key))
    exports.note_imported(rows, here.id, reason="somebody vouched for it", now=now)
    return True


def _join(rows: Rows, *, joined: Iterable[dict[str, Any]], renamed: Mapping[str, str], key: bytes) -> None:
    for found in joined:
        one, ident = _without_purged(rows, found, key=key), renamed.get(found["id"], found["id"])
        memory = memories.by_id(rows, ident)
        if memory is not None and exports.is_import_incomplete(rows, ident):
            exports.add_annotations(rows, memory.seq, ident, one, renamed=renamed)
            exports.mark_import_complete(rows, ident)


def _without_purged(rows: Rows, one: Mapping[str, Any], *, key: bytes) -> dict[str, Any]:
    purged = tombstones.marks(rows, key)
    return drop_purged(one, lambda said: bool(purged.spans(said)))


def find_file(path: Path) -> Path | None:
    """The file of memories that is named, or lies in a directory; None where there is none."""
    place = path / NAME if path.is_dir() else path
    return place if place.name == NAME and place.is_file() else None


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """A file of memories, to be read; BadInput: it is larger than any."""
    with files.open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            raise BadInput(f"{path} is larger than {MOST_BYTES // 1_000_000} MB", hint="export fewer: --project PATH")
        yield file


#: What a file is for, as its head says -> what its statements are.
CATEGORY: dict[str, Category] = {
    "user": "preference", "feedback": "convention", "project": "fact", "reference": "fact", "": "fact",
}  # fmt: skip
#: Sureness of what an assistant wrote down on purpose, the same as of what it saves through a tool.
CONFIDENCE = 0.8
#: Characters of one statement, the fewest words of one, and statements of one file.
MOST_NOTE_CHARACTERS, LEAST_WORDS, MOST_STATEMENTS = 400, 3, 200

_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+(?=\S)")
#: What ends a paragraph and is none: a heading, a table, a quotation, a rule.
_NO_PROSE = re.compile(r"^\s*(?:$|#{1,6}\s|\||<!--|>|[-=*_]{3,}\s*$)")
#: A line of an index: a link to a file, with or without what it is about.
_LINK = re.compile(r"^\W{0,4}\[[^\]\n]{1,200}\]\([^)\n]{1,300}\.md\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def _statements(memo: Memo, body: str) -> Iterator[Statement]:
    """What a file says, paragraph by paragraph and item by item, in its order."""
    category = CATEGORY[memo.type]
    said = (_cut(block) for block in _blocks(_COMMENT.sub("", body)))
    for text in islice((one for one in said if len(tokens.content_words(one)) >= LEAST_WORDS), MOST_STATEMENTS):
        yield Statement(
            text=text, gate=CATEGORIES[category].gate, category=category, confidence=CONFIDENCE, authority="assistant",
            reasons=("memo",),
        )  # fmt: skip


def _cut(block: str) -> str:
    """A block's first sentences that are short enough for a statement."""
    whole = ""
    for sentence in [block] if len(block) <= MOST_NOTE_CHARACTERS else prose.sentences(block):
        if len(whole) + len(sentence) > MOST_NOTE_CHARACTERS:
            break
        whole = f"{whole} {sentence}".strip()
    return whole or display.cut(block, MOST_NOTE_CHARACTERS)


def _blocks(body: str) -> list[str]:
    """Paragraphs and items on one line each; an item goes on in the lines that are indented below it."""
    blocks: list[list[str]] = [[]]
    fenced = False
    for line in body.splitlines():
        is_fence = _FENCE.match(line) is not None
        fenced = fenced != is_fence
        if fenced or is_fence or _NO_PROSE.match(line) or _ITEM.match(line):
            blocks.append([])
        text = _ITEM.sub("", line).strip()
        if not (fenced or is_fence or _NO_PROSE.match(line) or _LINK.match(text)):
            blocks[-1].append(text)
    return [display.squeeze(" ".join(block)) for block in blocks if block]


def is_note(name: str) -> bool:
    """Whether a file of a memory directory is one of its notes, and not its index."""
    return name.endswith(".md") and name != environment.INDEX and not name.startswith(".")


NOTES_AT_ONCE = 5


@dataclass(slots=True)
class NotesTaken:
    """What came in: files read, statements new and known, those that the user made csmd forget, secrets."""

    files: int = 0
    new: int = 0
    known: int = 0
    forgotten: int = 0
    redactions: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def find_notes(path: Path) -> list[Path]:
    """The notes of a memory directory, or the one that is named, at most 200, the newest first; [] where it is none."""
    if path.is_file():
        return [path] if is_note(path.name) else []
    if not path.is_dir() or any(path.glob("*.jsonl")):
        return []
    found = [one for one in path.glob("*.md") if is_note(one.name) and one.is_file()]
    return sorted(found, key=lambda one: (-one.stat().st_mtime, one.name))[: environment.MOST_FILES]


def import_notes(store: Store, notes: Sequence[Path], *, project: int, now: str, taken: NotesTaken) -> Iterator[int]:
    """Takes in what notes say, for one project; after each batch how many files were read."""
    for number, path in enumerate(notes, start=1):
        said = _read(path, taken)
        for start in range(0, len(said), NOTES_AT_ONCE):
            part = said[start : start + NOTES_AT_ONCE]
            store.write(lambda rows, part=part: _memos_put(rows, part, project, taken, key=store.hash_key, now=now))  # type: ignore[misc]
            yield number - 1
        taken.files += 1
        yield number


def _read(path: Path, taken: NotesTaken) -> list[tuple[Statement, Provenance]]:
    """What a note says, redacted, with where it stands; what is odd in it is noted."""
    with files.open_regular(path) as file:
        data, info = file.read(environment.READ_BYTES), os.fstat(file.fileno())
    modified = datetime.fromtimestamp(info.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    found = environment.memo(path.name, data, modified=modified, size=info.st_size)
    taken.problems += [f"{path.name}: {problem}" for problem in found.problems]
    body = redact(environment.body(data), taken.redactions)
    said = []
    for statement in _statements(found, body):
        name = hashlib.sha256(f"{path}\n{statement.text}".encode("utf-8", "replace")).hexdigest()[:24]
        said.append((statement, Provenance(uuid=f"memo:{name}", session_id="", at=modified)))
    return said


def _memos_put(
    rows: Rows, part: Sequence[tuple[Statement, Provenance]], project: int, taken: NotesTaken, *, key: bytes, now: str
) -> None:
    for statement, source in part:
        ident, new = remember.remember(rows, statement, source, project=project, origin=MODEL_SAVED, key=key)
        taken.new += new
        taken.known += bool(ident) and not new
        taken.forgotten += not ident
        if new and memories.by_id(rows, ident) is not None:
            exports.note_imported(rows, ident, reason="from the assistant's own memory", now=now)
