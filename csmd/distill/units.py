"""Text to units: the sentences that could stand alone, and the runs of neighbours that could stand together; pure.

A unit is at most two sentences, or a sentence that leads into a list with its first items, of at most 45 content
words. What is looked at is bounded before any other work, so that a megabyte costs what a page costs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from csmd import quotations
from csmd.distill import refused, standing
from csmd.distill.refused import Speaker
from csmd.text import content_of, rows_of_prose, sentences, squeeze, without_code, words

MAX_CONTENT_WORDS = 45
MAX_CHARACTERS = 600
#: How much of a turn is looked at: its beginning and its end, in characters; then rows of prose.
HEAD, TAIL, MAX_LINE, MAX_ROWS = 14_000, 6_000, 2_000, 200
#: Pieces in a unit; and sentences, where items of a list that do not end in a full stop count as one.
MAX_PIECES, MAX_SENTENCES = 3, 2

#: What programs put around or into a user's words, and csmd's own injections.
_FENCE = re.compile(
    r"<(/?)(system-reminder|system_instruction|ide_[a-z_]{1,40}|csmd-[a-z-]{1,40})\b[^<>]{0,300}>", re.I
)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.{1,200})$", re.MULTILINE)
#: Sections that carry a document's point, and sections that carry none.
GOOD_SECTION = re.compile(
    r"\b(?:context|root cause|cause|problem|decisions?|why|background|summary|finding|goal|rationale"
    r"|key|constraint|fix)",
    re.I,
)
POOR_SECTION = re.compile(
    r"\b(?:verification|test(?:s|ing)?( plan)?|files|steps|checklist|todo|next|usage|example|implementation)", re.I
)
#: Marks of emphasis around words, and those whose other half the end of a sentence has cut off. Code, patterns of files and
#: names like __init__ hold the same marks and mean them.
_EMPHASIS = re.compile(
    r"(`[^`\n]*`)|(?<![\w/.*])(\*{1,3}|~~)(?=[\w\"'`(\[])([^*\n]{1,400}?)(?<=[\w\"'`)\].,:;!?%])\2(?![\w/.*])"
    r"|(?<!\w)__(?=\w)([^_\n]{1,200} [^_\n]{1,200})__(?!\w)"
)
_HALF = re.compile(r"(`[^`\n]*`)|^\*{2,3}(?=[\w\"'`(])|(?<=[\w.:;!?)\"'`%])\*{2,3}(?=[ ,;:.]|$)")
_MARKS = re.compile(r"^(?:[✅✓✔❌⚠🔴🟡🔵🟢🎉⏺►→•]️?\s*){1,3}(?=\S)")

#: One of the characters of either.
_MARKED = re.compile(r"[*_~✅✓✔❌⚠🔴🟡🔵🟢🎉⏺►→•]")

_CODE_LINE = re.compile(
    r"[{};]\s*$|^[\w.,\[\] ]{1,60} :?= \S{1,80}\(|^from [\w.]{1,80} import |^import [\w.]{1,80}$"
    r"|^[\w.]{1,80}\([^)]{0,200}\)$"
)
_WORDY = re.compile(r"[^\W\d_]{2,}|\bI\b|(?<=\bI['’])m\b")

#: What ends a sentence, behind which the next may follow without a mark.
_ENDS = re.compile(r"[.!?:…。！？][\"')`*\]]*$")
#: What stands under a label of its own.
LABELLED = re.compile(r"(?!(?:This|That|These|Those)\b)\w[^.:;!?\n]{2,80}: ")
#: What a list comes to, in the row behind it.
CONCLUDES = re.compile(r"(?:This|These|That|Those|So|Therefore|Thus|Hence|All of (?:this|these|them))\b", re.I)


class Piece(NamedTuple):
    """One sentence of a text: its words without markup, as it was written, its row, and what section it stands in.

    `item` is how far an item of a list is moved in, -1 for what is none. `section` is -1, 0 or 1 for what it carries, `part` counts the headings before it. A piece `stands` when it could
    stand alone, `leads` when it only leads into what follows, and a unit may begin with it when it `begins`. `words`
    counts its words, `said` those with content.
    """

    text: str
    written: str
    row: int
    item: int
    part: int
    section: int
    stands: bool
    leads: bool
    begins: bool
    words: int
    said: int
    content: frozenset[str]


class Unit(NamedTuple):
    """Neighbouring pieces from `first` to `last` as one text, with its distinct content words and how many words it has."""

    first: int
    last: int
    text: str
    content: frozenset[str]
    words: int

    def meets(self, other: Unit) -> bool:
        """Whether two units of one text share a piece."""
        return self.first <= other.last and other.first <= self.last


def pieces(text: str, speaker: Speaker) -> list[Piece]:
    """The sentences of what `speaker` said, in order, those that cannot stand included."""
    rows = _rows(_bounded(text, own_words=speaker == "user"))
    found: list[Piece] = []
    detail = False
    for number, (row, item, part, section) in enumerate(rows):
        for sentence in sentences(row):
            said = _plain(sentence)
            opens = said.endswith(":") and len(said) <= MAX_LINE
            leads = opens and not refused.refusal(said, speaker, leads=True)
            stands = not opens and _acceptable(said, speaker)
            before = found[-1] if found and found[-1].part == part and speaker == "user" else None
            detail = before is not None and standing.is_detail(said, behind=before.text, of_detail=detail)
            begins = not detail and not refused.is_headless(said)
            every = words(said) if stands or leads else []
            content = content_of(every)
            found.append(
                Piece(
                    text=said,
                    written=sentence,
                    row=number,
                    item=item,
                    part=part,
                    section=section,
                    stands=stands,
                    leads=leads,
                    begins=begins,
                    words=len(every),
                    said=len(content),
                    content=frozenset(content),
                )
            )
    return found


def units(found: Sequence[Piece]) -> list[Unit]:
    """Every run of at most MAX_PIECES pieces that stand, or are led into, within the limits.

    A row that leads into something begins a unit: behind another row it would end what is said before it. What begins with
    an item of a list stays in that list, but for what concludes it: what comes next is about something else.
    """
    return [unit for start in range(len(found)) for unit in _from(found, start)]


def _from(found: Sequence[Piece], start: int) -> list[Unit]:
    """The units that begin with one piece."""
    runs: list[Unit] = []
    if not found[start].begins:
        return runs
    text, content, ended, count, said = "", frozenset[str](), 0, 0, 0
    for last in range(start, min(start + MAX_PIECES, len(found))):
        piece = found[last]
        if not (piece.stands or piece.leads) or piece.part != found[start].part:
            break
        if piece.leads and last > start and piece.row != found[last - 1].row:
            break
        if piece.item < found[start].item and (piece.leads or LABELLED.match(piece.text)):
            break
        text = _joined(text, piece, new_row=last > start and found[last - 1].row != piece.row)
        content |= piece.content
        if len(content) > MAX_CONTENT_WORDS or len(text) > MAX_CHARACTERS or ended >= MAX_SENTENCES:
            break
        ended += bool(_ENDS.search(piece.text)) and not piece.leads
        count, said = count + piece.words, said + piece.said
        if piece.stands and said <= MAX_CONTENT_WORDS:
            runs.append(Unit(start, last, text, content, count))
    return runs


def _joined(text: str, piece: Piece, *, new_row: bool) -> str:
    if not text:
        return piece.text
    return f"{text}{'; ' if new_row and not _ENDS.search(text) else ' '}{piece.text}"


def _bounded(text: str, *, own_words: bool) -> str:
    """The head and tail of `text`, lines cut, without fenced insertions."""
    text = quotations.own_words(text) if own_words else text
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]}\n\n{text[-TAIL:]}"
    text = "\n".join(line[:MAX_LINE] for line in text.splitlines())
    kept: list[str] = []
    at = depth = 0
    for fence in _FENCE.finditer(text):
        if depth == 0:
            kept.append(text[at : fence.start()])
        depth = max(0, depth - 1) if fence[1] else depth + 1
        at = fence.end()
    if depth == 0:
        kept.append(text[at:])
    return "\n".join(kept)


def _rows(text: str) -> list[tuple[str, int, int, int]]:
    """The rows of prose of `text` without headings, each with its part and its section."""
    parts = _HEADING.split(without_code(text))
    rows: list[tuple[str, int, int, int]] = []
    for part, (heading, body) in enumerate([("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]):
        section = bool(GOOD_SECTION.search(heading)) - bool(POOR_SECTION.search(heading))
        rows.extend((*row, part, section) for row in rows_of_prose(body))
    return rows if len(rows) <= MAX_ROWS else rows[: MAX_ROWS * 3 // 4] + rows[-(MAX_ROWS // 4) :]


def _plain(sentence: str) -> str:
    if _MARKED.search(sentence):
        sentence = _EMPHASIS.sub(lambda found: found[1] or found[3] or found[4], _MARKS.sub("", sentence))
        sentence = _HALF.sub(lambda found: found[1] or "", sentence)
    return squeeze(sentence)


def _acceptable(said: str, speaker: Speaker) -> bool:
    """Whether a sentence could stand alone: prose, and none of what refused.REFUSED names."""
    if len(said) > MAX_LINE or len(_WORDY.findall(said)) < 3 or _CODE_LINE.search(said):
        return False
    return not refused.refusal(said, speaker)
