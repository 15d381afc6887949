"""Claude Code's own memory: a directory of Markdown notes with a type in their head; pure."""

from __future__ import annotations

import re
from itertools import islice

from csmd.foreign_memories.foreign_memory import ForeignContent, ForeignMemory, Skipped, shorten, to_utc
from csmd.hosts.adapters import CLAUDE_MEMORY
from csmd.store.import_files import ForeignFile, MarkdownNote
from csmd.text import display
from csmd.vocabulary import INDEX

LABEL = "Claude Code's memory"
#: The beginning of a page that `csmd export --markdown` wrote, which is not a note.
EXPORTED = "<!-- csmd export"
#: Most characters of a statement.
MAX_CHARACTERS = 400
#: Most statements of a note.
MAX_STATEMENTS = 200

_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+(?=\S)")
#: What ends a paragraph: a heading, a table, a quotation, a rule.
_NO_PROSE = re.compile(r"^\s*(?:$|#{1,6}\s|\||<!--|>|[-=*_]{3,}\s*$)")
#: A line of an index: a link to a file, with or without what it is about.
_LINK = re.compile(r"^\W{0,4}\[[^\]\n]{1,200}\]\([^)\n]{1,300}\.md\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def split_blocks(body: str) -> list[str]:
    """Splits a note into paragraphs and list items, each on one line; an item includes the lines indented below it."""
    sections: list[list[str]] = [[]]
    is_fenced = False
    for line in _COMMENT.sub("", body).splitlines():
        is_fence = _FENCE.match(line) is not None
        is_fenced = is_fenced != is_fence
        is_other = is_fenced or is_fence or _NO_PROSE.match(line)
        if is_other or _ITEM.match(line):
            sections.append([])
        text = _ITEM.sub("", line).strip()
        if not (is_other or _LINK.match(text)):
            sections[-1].append(text)
    return [display.squeeze(" ".join(block)) for block in sections if block]


def recognises(file: ForeignFile) -> bool:
    """Whether it is a note, or a directory with notes in it."""
    return any(path.parent == file.path or path == file.path for path in file.note_paths)


def read(file: ForeignFile) -> ForeignContent:
    """Yields one memory for each paragraph and list item of the newest notes; the index is left out."""
    notes = [note for note in file.read_notes() if "/" not in note.name and note.name != INDEX]
    notes.sort(key=lambda note: (-note.modified, note.name))
    folder = file.path if file.path.is_dir() else file.path.parent
    project = folder.parent.name if folder.name == "memory" else folder.name
    for note in notes[: CLAUDE_MEMORY.most_files]:
        if note.data.startswith(EXPORTED.encode()):
            yield Skipped(note.name, "pages that csmd exported: import memories.jsonl")
        else:
            yield from _read_note(note, project)
    for note in notes[CLAUDE_MEMORY.most_files :]:
        yield Skipped(note.name, f"notes beyond the newest {CLAUDE_MEMORY.most_files}")


def _read_note(note: MarkdownNote, project: str) -> ForeignContent:
    modified = to_utc(note.modified)
    memo = CLAUDE_MEMORY.read_memo(note.name, note.data, modified=modified, size=len(note.data))
    for number, text in enumerate(islice(split_blocks(CLAUDE_MEMORY.body(note.data)), MAX_STATEMENTS), start=1):
        yield ForeignMemory(
            source_id=f"{note.name}, paragraph {number}", kind=memo.type or "note",
            text=shorten(text, MAX_CHARACTERS), at=modified, project=project,
        )  # fmt: skip
    if note.is_cut:
        yield Skipped(note.name, "what lies beyond the first megabyte of a note")
