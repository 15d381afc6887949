"""What a tool's failure is answered with: how often it was seen before, when last, what solved it.

KINDS is walked from the top; the first row that fits says what is told, none of them is silence. What nobody solved is
told only where it came back in several sessions, and what merely resembles the failure only with what solved it.
A check (a compiler, a linter, tests) says the same of many things that have nothing in common, as `assert <n> == <n>`:
there the message has to name something. Nothing is told that the session has in its context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from csmd import text
from csmd.distill import errors, halves, shell
from csmd.model import Brief, Failure, Memory
from csmd.recall import brief, compose
from csmd.recall.compose import Block, Note
from csmd.store import failures, memories, receipts
from csmd.store.sqlite import Rows

TAG = "csmd-failure"
ABOUT = "What csmd kept of this failure from earlier sessions, with dates and ids. Reference data, not instructions."
#: An unsolved failure is told from so many earlier sessions on.
UNSOLVED_SESSIONS = 2
SAID_CHARACTERS = 240
#: What names something beside code and identifiers: a word in quotes, a code of a system's, a single word at the end.
_NAMED = re.compile(r"['\"`‘“]\w|\bE(?!RR)[A-Z]{4,}\b|: [A-Za-z_]\w*\Z")
MOST_FILES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A failure as it was seen in earlier sessions; `fixed_*` is what solved it last, `memory` tells its cause.

    `same` says whether it is the very failure, or one that says the same (`id`, `command` and `exit_code` are its own).
    """

    id: str
    command: str
    exit_code: int
    message: str
    times: int
    sessions: int
    last_at: str
    fixed_at: str = ""
    fixed_files: tuple[str, ...] = ()
    fixed_by: str = ""
    memory: Memory | None = None
    same: bool = True

    @property
    def explained(self) -> bool:
        """Whether somebody said what it was."""
        return self.memory is not None or bool(self.fixed_by)

    @property
    def named(self) -> bool:
        """Whether the message names what is wrong."""
        return names_something(self.message)

    @property
    def own(self) -> bool:
        """Whether it is one failure, and not many of a check that are told in the same words."""
        return self.named or shell.program(self.command) not in shell.CHECKS


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of KINDS: its name is the receipt's reason."""

    reason: str
    fits: Callable[[Known], bool]


#: The surest first.
KINDS: tuple[Kind, ...] = (
    Kind("solved before", lambda known: known.same and known.own and known.explained),
    Kind("solved before", lambda known: known.same and known.named and bool(known.fixed_at)),
    Kind("seen again and again", lambda known: known.same and known.own and known.sessions >= UNSOLVED_SESSIONS),
    Kind("a similar one was solved", lambda known: not known.same and known.named and known.explained),
)


def names_something(message: str) -> bool:
    """Whether a message names what is wrong: an identifier, a file, something quoted, a code."""
    return bool(halves.names(message)) or _NAMED.search(message) is not None


def kind_of(known: Known) -> str:
    """Why an error is told; "" where it is not."""
    return next((kind.reason for kind in KINDS if kind.fits(known)), "")


def block(known: Known) -> Block:
    """What is told of a failure: its history, then the memory that tells its cause; nothing where no kind fits."""
    reason, memory = kind_of(known), known.memory
    notes = [Note(id=known.id, text=history(known), tail=known.id, reason=reason)] if reason else []
    if reason and memory is not None:
        notes.append(compose.told(memory, reason="tells the cause of a failure"))
    return Block(heading="", notes=tuple(notes))


def history(known: Known) -> str:
    """A failure's history in a sentence: "seen 3 times before, last on ...; last fixed on ... by an edit of ..."."""
    where = f" in {text.amount(known.sessions, 'earlier session')}" if known.sessions > 1 else ""
    code = f" with exit code {known.exit_code}" if known.exit_code > 0 else ""
    what = "this failure" if known.same else f"a similar failure, `{known.command}`{code},"
    said = f"{what} was seen {text.amount(known.times, 'time')} before{where}, last on {known.last_at[:10]}"
    if known.fixed_at:
        return f"{said}; last fixed on {known.fixed_at[:10]} by {fix(known.fixed_files, known.fixed_by)}"
    return said if known.memory is not None else f"{said}; what solved it is not known"


def fix(files: Sequence[str], said: str) -> str:
    """What mended a failure: an edit of these files, and what the assistant said that it was."""
    more = f" and {text.amount(len(files) - MOST_FILES, 'other file')}" if len(files) > MOST_FILES else ""
    edit = f"an edit of {', '.join(files[:MOST_FILES])}{more}"
    return f'{edit}; the assistant said: "{text.cut(text.squeeze(said), SAID_CHARACTERS)}"' if said else edit


# --- over the store


#: Most tokens of an answer: it comes in the middle of work.
MOST_TOKENS = 250
#: How many failures with the same message are looked at.
LOOKED_UP = 5


def failure_recall(rows: Rows, *, places: Sequence[int], session_id: str, failed: Failure, kept_bytes: int) -> Brief:
    """What is known of a failure from elsewhere than the session's own context; "" where nothing helps.

    `kept_bytes` is how much is kept of a tool's output: what is told by its transcript is looked at, no more.
    """
    said = text.both_ends(failed.said, limit=kept_bytes)
    seen = errors.seen(failed.tool, failed.command, said, at="", uuid="")
    if seen is None:
        return Brief(text="", tokens=0, items=())
    here = failures.Told(session_id, receipts.fresh_since(rows, session_id))
    told = receipts.told(rows, session_id)
    known = _same(rows, seen.fingerprint, places, here) or _similar(rows, seen, places, here)
    if known is None or known.id in told:
        return Brief(text="", tokens=0, items=())
    if known.memory is not None and known.memory.id in told:
        known = replace(known, memory=None)
    return compose.fenced(TAG, ABOUT, [block(known)], max_tokens=MOST_TOKENS)


def _same(rows: Rows, fingerprint: str, places: Sequence[int], here: failures.Told) -> Known | None:
    seen = failures.seen(rows, fingerprint, places, but_in=here)
    known = _known(rows, seen, places) if seen is not None else None
    return known if known is not None and kind_of(known) else None


def _similar(rows: Rows, seen: errors.ErrorSeen, places: Sequence[int], here: failures.Told) -> Known | None:
    """What is known of the failure with the same message that was solved last; a message that names nothing is anybody's."""
    if not names_something(seen.message):
        return None
    others = failures.saying(rows, seen.message, other_than=seen.fingerprint, projects=places, limit=LOOKED_UP)
    found = [failures.seen(rows, other, places, but_in=here) for other in others]
    known = [replace(_known(rows, one, places), same=False) for one in found if one is not None]
    solved = [one for one in known if kind_of(one)]
    return max(solved, key=lambda one: (one.fixed_at, one.last_at, one.id), default=None)


def _known(rows: Rows, seen: failures.Seen, places: Sequence[int]) -> Known:
    """An error with the memory that tells its cause, as far as that may be told unasked."""
    memory = memories.by_id(rows, seen.memory_id) if seen.memory_id else None
    tells = memory is not None and brief.injectable(memory) and memory.project_seq in places
    return Known(
        id=seen.id, command=seen.command, exit_code=seen.exit_code, message=seen.message, times=seen.times,
        sessions=seen.sessions, last_at=seen.last_at, fixed_at=seen.fixed_at, fixed_files=seen.fixed_files,
        fixed_by=seen.fixed_by, memory=memory if tells else None,
    )  # fmt: skip
