"""basic-memory: a folder of Markdown with observations (`- [category] text #tag (context)`) and relations; pure."""

from __future__ import annotations

import re
from itertools import islice

from csmd.foreign_memories import claude_notes
from csmd.foreign_memories.foreign_memory import ForeignContent, ForeignMemory, Skipped, add_subject, shorten, to_utc
from csmd.store.import_files import ForeignFile
from csmd.text import markdown

LABEL = "basic-memory"
#: Notes that are read to recognise a folder.
MAX_SAMPLED_NOTES = 50
#: A category; not a check box, a time or a link.
_OBSERVATION = re.compile(r"\[(?![xX\W]\]|[\d:., -]+\])([^\[\]()]+)\]\s+(.+)")
_RELATION = re.compile(r"([^\[\]]{1,100}?)\s+\[\[([^\[\]]{1,200})\]\]\s*(?:\(.*\))?")
_TAGS = re.compile(r"(?:\s+#[\w/-]+)+(?=\s*(?:\([^()]*\))?\s*$)")


def recognises(file: ForeignFile) -> bool:
    """Whether one of the notes has a permalink in its head, which basic-memory gives to each."""
    sample = islice(file.read_notes(), MAX_SAMPLED_NOTES)
    return any("permalink" in markdown.split_memo(note.data.decode("utf-8", "replace"))[0] for note in sample)


def read(file: ForeignFile) -> ForeignContent:
    """Yields one memory for each observation and relation, and for each other paragraph."""
    for note in file.read_notes():
        head, body, _ = markdown.split_memo(note.data.decode("utf-8", "replace"))
        title = str(head.get("title") or note.name.removesuffix(".md").rpartition("/")[2])
        written_at = to_utc(head.get("created") or head.get("modified")) or to_utc(note.modified)
        for number, text in enumerate(claude_notes.split_blocks(body), start=1):
            kind, statement = _parse(text)
            statement = f"{title} {statement}" if kind == "relation" else add_subject(title, statement)
            name = f"{note.name}, paragraph {number}"
            yield ForeignMemory(source_id=name, kind=kind, text=shorten(statement), at=written_at)
        if note.is_cut:
            yield Skipped(note.name, "what lies beyond the first megabyte of a note")


def _parse(text: str) -> tuple[str, str]:
    """Returns the kind of a paragraph and what it says, without tags and brackets."""
    if observation := _OBSERVATION.fullmatch(text):
        return observation.group(1).strip(), _TAGS.sub("", observation.group(2)).strip()
    if relation := _RELATION.fullmatch(text):
        return "relation", f"{relation.group(1).replace('_', ' ')} {relation.group(2)}"
    return "note", text
