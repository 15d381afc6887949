"""Exports and imports memories."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, get_args

from csmd import vocabulary, wire
from csmd.capture.project_identity import normal_remote
from csmd.conversation import Project
from csmd.errors import BadInput
from csmd.foreign_memories.claude_notes import EXPORTED
from csmd.knowledge import Memory, Statement
from csmd.memory import remember, supersession
from csmd.privacy.redaction import redact
from csmd.recall import visibility
from csmd.store import exports, files, memories, tombstones, workspaces
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display, markdown, tokens

#: The file of an export, in the directory that was exported to.
NAME = "memories.jsonl"
#: The file of an export for people, which cannot be imported.
MARKDOWN_NAME = "memories.md"
NAMES = (NAME, MARKDOWN_NAME)
#: The format and version that the first line names.
FORMAT = "csmd memories"
VERSION = 1
_BEGINNING = wire.dumps({"format": FORMAT}).removesuffix("}").encode()
#: Most characters of a memory.
MAX_CHARACTERS = 20_000
#: Most entries in each of its lists.
MAX_ENTRIES = 10_000
#: Memories read or written at once; hooks wait for a write.
BATCH = 50
#: Lines checked between two pauses.
CHECKED = 200
#: Most bytes of a file, some two hundred thousand memories.
MAX_BYTES = 400_000_000
#: Most bytes of a line.
MAX_LINE = 4_000_000

# --- the fields of a record

_ID = r"m[0-9a-f]{6,40}"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
_TEXT = rf".{{0,{MAX_CHARACTERS}}}"
_WORD = r"[\w:./@+-]{0,200}"
_PATH = ".{0,4999}"
#: A phrase that csmd writes about where something was said, on one line.
_SCENE = r"(?:at |after \"|in answer to \"|in a review)[^\x00-\x1f\x7f]{0,250}"
_PROJECT = {
    "key": ".{1,4999}", "root": _PATH, "name": _PATH, "kind": frozenset({"git", "submodule", "path", "workspace"}),
    "remote": _PATH, "workspace": _PATH,
}  # fmt: skip


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_days(value: Any) -> bool:
    return value is None or (isinstance(value, int) and abs(value) < 10**7)


def _fits(value: Any, rule: Any) -> bool:
    """Whether a JSON value fits a rule.

    A rule is a pattern, a set of words, a tuple of rules (a list with a value for each), a list of one rule (a list of
    such values), a dictionary of rules (an object with these keys), or a predicate.
    """
    match rule:
        case str():
            return isinstance(value, str) and re.fullmatch(rule, value, re.DOTALL) is not None
        case frozenset():
            return isinstance(value, str) and value in rule
        case tuple():
            return isinstance(value, list) and len(value) == len(rule) and all(map(_fits, value, rule))
        case [each]:
            return isinstance(value, list) and len(value) <= MAX_ENTRIES and all(_fits(item, each) for item in value)
        case dict():
            has_names = isinstance(value, dict) and value.keys() == rule.keys()
            return has_names and all(_fits(value[name], rule[name]) for name in rule)
    return bool(rule(value))


#: Field of a record -> the rule that its value fits.
FIELDS: dict[str, Any] = {
    "id": _ID,
    "text": rf"(?=.*\S).{{1,{MAX_CHARACTERS}}}",
    "project": lambda value: value == {} or _fits(value, _PROJECT),
    "gate": frozenset(vocabulary.GATE_PRIORITY),
    "category": frozenset(vocabulary.CATEGORIES),
    "type": frozenset(get_args(vocabulary.MemoryType)),
    "tier": frozenset(get_args(vocabulary.Tier)),
    "decay": frozenset(get_args(vocabulary.Decay)),
    "authority": frozenset(vocabulary.AUTHORITY_RANK),
    "origin": _WORD,
    "confidence": _is_share,
    "scope": frozenset(get_args(vocabulary.Scope)),
    "session_id": _WORD,
    "created_at": _TIME,
    "confirmed_at": _TIME,
    "used_at": f"(?:{_TIME})?",
    "pinned": lambda value: value in (0, 1),
    "days_left": dict.fromkeys(("hot_until", "warm_until", "archive_at"), _is_days),
    "superseded_by": f"(?:{_ID})?",
    "sources": lambda value: bool(value) and _fits(value, [(_WORD, _WORD, _TIME, "states|confirms|beside")]),
    "links": [(_ID, _WORD, _is_share, _TIME)],
    "tags": [(_TEXT, "person|assistant", _is_share)],
    "symptoms": [(_WORD, _TIME, _TEXT, _TEXT)],
    "refutations": [(_WORD, _TIME, _TEXT, _is_share)],
    "scene": lambda value: value == [] or _fits(value, ((_WORD, _SCENE),)),
    "changes": [dict.fromkeys(("change", "before", "after", "reason", "by", "at", "undone_at"), _TEXT)],
}
#: The fields of a record that make up its statement.
STATED = ("text", "gate", "category", "confidence", "authority")
#: Field with rows -> the column that has words.
WORDS = {"tags": 0, "symptoms": 2, "refutations": 2, "scene": 1}


def check_record(value: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Returns a record with exactly the fields that it must have; BadInput names a wrong field and its line."""
    value = {"scene": [], **value}  # older exports have no scenes
    for name, rule in FIELDS.items():
        if name not in value:
            raise BadInput(f"line {number} of {NAME} has no {name}", hint="export them again")
        if not _fits(value[name], rule):
            raise BadInput(f"line {number} of {NAME}: that is no {name}", hint="export them again")
    return {name: value[name] for name in FIELDS}


def lower_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record of unknown origin as an assistant's statement, not shown until a person keeps it.

    Its audit is dropped, because an undo would restore states that this store never had.
    """
    authority = min(record["authority"], "assistant", key=vocabulary.AUTHORITY_RANK.__getitem__)
    return {**record, "authority": authority, "origin": "model_saved", "pinned": 0, "changes": [], "scene": [],
            "tags": [[name, "assistant", weight] for name, _, weight in record["tags"]]}  # fmt: skip


def drop_purged(record: Mapping[str, Any], is_purged: Callable[[str], bool]) -> dict[str, Any]:
    """Returns a record without the annotations whose text was purged here."""
    return {
        **record,
        **{name: [row for row in record[name] if not is_purged(row[at])] for name, at in WORDS.items()},
        "changes": [change for change in record["changes"] if not any(map(is_purged, change.values()))],
    }


def redact_record(
    record: Mapping[str, Any], clean: Callable[[str, Counter[str]], str], counts: Counter[str]
) -> dict[str, Any]:
    """Returns a record with its text redacted by `clean`, which counts what it finds."""
    place = {name: text if name == "kind" else clean(text, counts) for name, text in record["project"].items()}
    lists = {
        name: [[*row[:at], clean(row[at], counts), *row[at + 1 :]] for row in record[name]]
        for name, at in WORDS.items()
    }
    changes = [
        {name: clean(text, counts) if name in ("before", "after", "reason") else text for name, text in change.items()}
        for change in record["changes"]
    ]
    return {**record, "text": clean(record["text"], counts), "project": place, **lists, "changes": changes}


# --- the file


def render_lines(records: Iterable[Mapping[str, Any]], *, key: bytes) -> Iterator[str]:
    """Yields the lines of a file, each with its newline: the format, one line for each memory, the seal."""
    seal = _new_seal(key)
    for value in ({"format": FORMAT, "version": VERSION}, *records):
        line = wire.dumps(dict(value)) + "\n"
        seal.update(line.encode())
        yield line
    yield wire.dumps({"seal": seal.hexdigest()}) + "\n"


def render_markdown(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the lines of an export for people: by project, each memory with category, speaker, date, id and successor.

    Replaced memories and those that wait for review follow under headings of their own.
    """
    by_project: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        project = record["project"]
        title = f"{project['name']} ({project['root']})" if project else "Everywhere"
        by_project.setdefault(title, []).append(record)
    yield f"{EXPORTED} -->\n# Memories\n"
    for title, own in sorted(by_project.items()):
        yield f"\n## {markdown.to_line(title)}\n\n"
        by_heading: dict[str, list[Mapping[str, Any]]] = {"": [], WAITING: [], REPLACED: []}
        for record in own:
            by_heading[_heading(record)].append(record)
        for heading, rows in by_heading.items():
            if heading and rows:
                yield f"\n### {heading}\n\n"
            yield from map(_markdown_entry, rows)


#: Headings of memories that no session is shown.
REPLACED = "Replaced"
WAITING = "Waiting for review"


def _heading(record: Mapping[str, Any]) -> str:
    """Returns the heading of a record, "" for one that sessions are shown."""
    if record["superseded_by"]:
        return REPLACED
    is_unsaid = record["authority"] == "external" or record["origin"] in visibility.UNSTATED
    return WAITING if is_unsaid and not record["pinned"] else ""


def _markdown_entry(record: Mapping[str, Any]) -> str:
    heir = record["superseded_by"]
    replaced = f", replaced by {heir}" if heir else ""
    about = f"{record['category']}, {display.said_by(record['authority'])}, {record['created_at'][:10]}"
    return f"- {markdown.to_line(record['text'])}  \n  {about}, {record['id']}{replaced}\n"


def _new_seal(key: bytes) -> hmac.HMAC:
    return hmac.new(key, b"parcel\n", hashlib.sha256)


def export_memories(
    store: Store, directory: Path, places: Sequence[int] | None, *, withholds: bool = False, is_markdown: bool = False
) -> Iterator[int]:
    """Writes the memories of some projects (None: all) into one file; yields how many were read after each batch.

    With `withholds` they are redacted first, because older rules may have let secrets through.
    """
    seqs = store.read(lambda rows: exports.list_exported(rows, places))
    records: list[dict[str, Any]] = []
    for start in range(0, len(seqs), BATCH):
        part = seqs[start : start + BATCH]
        records += store.read(lambda rows, part=part: [exports.memory_record(rows, seq) for seq in part])  # type: ignore[misc]
        yield len(records)
    if withholds:
        records = [redact_record(record, redact, Counter()) for record in records]
    lines = render_markdown(records) if is_markdown else render_lines(records, key=store.hash_key)
    name = MARKDOWN_NAME if is_markdown else NAME
    files.write_atomic(directory / name, "".join(lines).encode("utf-8", "replace"))


def find_file(path: Path) -> Path | None:
    """Returns the file of memories at a path, whatever its name, or in that directory; None if there is none."""
    place = path / NAME if path.is_dir() else path
    if not place.is_file():
        return None
    with place.open("rb") as file:
        return place if file.read(len(_BEGINNING)) == _BEGINNING or place.name == NAME else None


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file of memories for reading; BadInput if it is too large."""
    with files.open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise BadInput(f"{path} is larger than {MAX_BYTES // 1_000_000} MB", hint="export fewer: --project PATH")
        yield file


def _numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file from its beginning with their numbers; BadInput for one that is too long."""
    file.seek(0)
    for number, line in enumerate(iter(partial(file.readline, MAX_LINE + 1), b""), start=1):
        if len(line) > MAX_LINE:
            raise BadInput(f"line {number} of {NAME} is longer than any memory", hint="export them again")
        yield number, line


def _parse_line(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = wire.loads(line)
    except BadInput as error:
        raise BadInput(f"line {number} of {NAME} is no JSON", hint="export them again") from error
    if not isinstance(value, dict):
        raise BadInput(f"line {number} of {NAME} is no JSON object", hint="export them again")
    return value


def _check_head(value: Mapping[str, Any]) -> None:
    if value.get("format") != FORMAT:
        raise BadInput(
            "these are no memories that `csmd export` wrote", hint="name the directory it was told with --to"
        )
    if value.get("version") != VERSION:
        raise BadInput("a newer csmd has written them", hint="csmd upgrade")


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _check_file(file: BinaryIO, digests: dict[int, bytes], *, key: bytes) -> Generator[int, None, bool]:
    """Checks every line and stores the digest of each record by line number; returns whether this home wrote the file.

    BadInput names an invalid line, or says that the file is of another kind or was cut.
    """
    seal, written = _new_seal(key), None
    lines = ((number, line) for number, line in _numbered_lines(file) if line.strip())
    number, line = next(lines, (0, b"{}"))
    _check_head(_parse_line(line, number))
    seal.update(line.rstrip(b"\n") + b"\n")
    for number, line in lines:
        value = _parse_line(line, number)
        if "seal" in value and written is None:
            written = str(value["seal"])
            continue
        check_record(value, number)
        digests[number] = _digest(line)
        seal.update(line.rstrip(b"\n") + b"\n")
        if len(digests) % CHECKED == 0:
            yield 0
    if written is None:
        raise BadInput("they do not end with a seal: the file was cut", hint="export them again")
    return hmac.compare_digest(seal.hexdigest(), written)


def _read_batches(file: BinaryIO, digests: Mapping[int, bytes]) -> Iterator[dict[int, dict[str, Any]]]:
    """Yields the records on some lines of a checked file, in batches by line number.

    BadInput if the file has changed.
    """
    lines = (line for number, line in _numbered_lines(file) if number in digests)
    remaining = iter(digests.items())
    while batch := list(islice(remaining, BATCH)):
        records: dict[int, dict[str, Any]] = {}
        for number, digest in batch:
            line = next(lines, b"")
            if _digest(line) != digest:
                raise BadInput(f"{NAME} was changed while it was read", hint="import it again")
            records[number] = check_record(_parse_line(line, number), number)
        yield records


# --- storing records


@dataclass(slots=True)
class ImportCounts:
    """What an import has done so far: memories new, already stored, kept out as forgotten, lowered, vouched for.

    `placed` counts memories by (directory in the export, the one here or "", its remote), if the directory does not
    exist here or is another clone than the one in which the import was started.
    """

    new: int = 0
    repeated: int = 0
    forgotten: int = 0
    lowered: int = 0
    vouched: int = 0
    redactions: Counter[str] = field(default_factory=Counter)
    placed: Counter[tuple[str, str, str]] = field(default_factory=Counter)


def import_memories(
    store: Store, file: BinaryIO, *, vouched: bool, now: str, counts: ImportCounts, here: Project | None = None
) -> Iterator[int]:
    """Imports a file of memories; yields how many records were read after each batch. BadInput if it is damaged.

    `here` is the project in whose directory the import was started; memories with its remote are put there.

    The file is read three times, line by line: it is checked as a whole before anything is stored, links are stored
    when all memories are, and a line that has changed in between is refused. A damaged file changes nothing. After an
    interrupted import, what is stored stays, and the next import brings the rest.
    """
    digests: dict[int, bytes] = {}
    is_sealed = yield from _check_file(file, digests, key=store.hash_key)
    run = _Import(key=store.hash_key, now=now, is_trusted=vouched or is_sealed, here=here, counts=counts)
    counts.lowered = 0 if run.is_trusted else len(digests)
    incomplete: dict[int, bytes] = {}
    done = 0
    for batch in _read_batches(file, digests):
        records = {number: run.prepare(record, counts.redactions) for number, record in batch.items()}
        incomplete |= {number: digests[number] for number in store.write(partial(run.store_memories, records=records))}
        done += len(batch)
        yield done
    for batch in _read_batches(file, incomplete):
        store.write(partial(run.annotate, records=[run.prepare(record, Counter()) for record in batch.values()]))
        yield done


@dataclass(slots=True, kw_only=True)
class _Import:
    """The state shared by the batches of one import; `renamed` maps the ids of records to those of this home."""

    key: bytes
    now: str
    is_trusted: bool
    here: Project | None
    counts: ImportCounts
    renamed: dict[str, str] = field(default_factory=dict)

    def prepare(self, record: Mapping[str, Any], redactions: Counter[str]) -> dict[str, Any]:
        """Returns a record as it may be stored: redacted, and lowered if its origin is unknown."""
        return redact_record(record if self.is_trusted else lower_record(record), redact, redactions)

    def store_memories(self, rows: Rows, records: Mapping[int, dict[str, Any]]) -> list[int]:
        """Stores the memories that are new; returns the line numbers of those whose annotations are still missing."""
        incomplete: list[int] = []
        for number, record in records.items():
            text, ident = record["text"], record["id"]
            statement = Statement(**{name: record[name] for name in STATED})
            project = self._project_of(rows, record["project"])
            if remember.is_forgotten(rows, statement, project=project, at=str(record["created_at"]), key=self.key):
                self.counts.forgotten += 1
                continue
            text_hash = tokens.keyed_hash(text, self.key)
            same_id = memories.by_id(rows, ident)
            is_same = same_id is not None and same_id.text == text
            existing = same_id if is_same else memories.by_hash(rows, text_hash, project=project)
            if existing is not None:
                self.counts.repeated += 1
                self.renamed[ident] = existing.id
                if self.is_trusted:
                    exports.add_sources(rows, existing.seq, record)
                    self.counts.vouched += self._vouch(rows, existing, record)
                # Finishes an interrupted import; a file of unknown origin adds nothing to a stored memory.
                may_annotate = self.is_trusted or existing.origin == remember.MODEL_SAVED
                if may_annotate and exports.is_import_incomplete(rows, existing.id):
                    incomplete.append(number)
                continue
            made = ident if same_id is None else supersession.free_identity(rows, project, text)
            exports.insert_memory(rows, made, record, project=project, text_hash=text_hash)
            exports.record_import(rows, made, reason="it was imported", now=self.now, state=exports.INCOMPLETE)
            self.renamed[ident] = made
            self.counts.new += 1
            incomplete.append(number)
        return incomplete

    def _project_of(self, rows: Rows, origin: Mapping[str, str]) -> int:
        """Returns the row key of a record's project; counts it in `placed` if its directory differs."""
        if origin:
            origin = {**origin, "remote": normal_remote(origin["remote"])}
        here, project = self.here, exports.ensure_project(rows, origin, now=self.now, here=self.here)
        if origin and origin["kind"] != workspaces.WORKSPACE_KIND:
            root, is_gone = workspaces.root_of(rows, project), files.is_missing(origin["root"])
            if is_gone or (here is not None and here.remote == origin["remote"] != "" and here.root != root):
                root = "" if is_gone and root == origin["root"] else root
                self.counts.placed[origin["root"], root, origin["remote"]] += 1
        return project

    def _vouch(self, rows: Rows, memory: Memory, record: Mapping[str, Any]) -> bool:
        """Gives a memory that an earlier import lowered its record's authority and scene."""
        is_lowered = memory.origin == remember.MODEL_SAVED and memory.authority == "assistant"
        if not is_lowered or record["origin"] == remember.MODEL_SAVED:
            return False
        raised = {name: record[name] for name in ("authority", "origin")}
        memories.update_belief(rows, replace(memory, **raised, pinned=bool(record["pinned"])))
        exports.set_scene(rows, memory.seq, self._without_purged(rows, record))
        exports.record_import(rows, memory.id, reason="a person vouched for it", now=self.now)
        return True

    def annotate(self, rows: Rows, records: Iterable[dict[str, Any]]) -> None:
        """Adds links, tags, audit and other annotations of a memory, once all memories are stored."""
        for record in records:
            ident = self.renamed.get(record["id"], record["id"])
            memory = memories.by_id(rows, ident)
            if memory is not None and exports.is_import_incomplete(rows, ident):
                allowed = self._without_purged(rows, record)
                exports.add_annotations(rows, memory.seq, ident, allowed, renamed=self.renamed)
                exports.mark_import_complete(rows, ident)

    def _without_purged(self, rows: Rows, record: Mapping[str, Any]) -> dict[str, Any]:
        purged = tombstones.purged_marks(rows, self.key)
        return drop_purged(record, lambda text: bool(purged.spans(text)))
