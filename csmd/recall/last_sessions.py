"""The state of a project: what its last sessions were about, achieved and left open, and why they changed what they did."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from csmd.extraction.digest import OUTCOME_WORDS
from csmd.extraction.work import CHECKS
from csmd.memory import supersession
from csmd.recall.compose import Block, Note
from csmd.store import curations, digests, journal, receipts, sessions, tombstones
from csmd.store.sqlite import Rows
from csmd.text import display, prose
from csmd.text.orders import bare_order
from csmd.text.sentence import ends_with_question, has, is_passing, opens, parse
from csmd.text.similarity import gist, is_twin, share
from csmd.text.tokens import content_words

#: Most sessions that are shown, and how many of the latest they are looked for among.
SESSIONS, LATEST_SESSIONS = 3, 12
#: Most files, commits and reasons; characters of a session's topic, of each commit, and of what was left open.
FILES, COMMITS, REASONS, TOPIC_CHARACTERS, COMMIT_CHARACTERS, OPEN_CHARACTERS = 3, 3, 3, 110, 90, 170
#: Most words before a colon that only say that something is left.
LEAD_WORDS = 3
#: Fewest content words of a session's last sentence that say what was worked on, and how that stands.
MIN_LAST, MIN_STATE = 4, 3
#: Headings and weights of the blocks; the least weight is trimmed first.
ENDED, REASONED = ("Where it stands", 7.0), ("Why it was changed", 5.0)
#: Why they are shown, as receipts say.
HOW_ENDED, WHY_CHANGED = "what the last sessions came to", "why something was changed"
#: A later commit that has so much of an open end's words did it.
DONE_SHARE = 0.6
#: What is known by name of what failed: another error says little of how a session ended.
_CHECKS = CHECKS
#: What somebody said, of what a digest tells.
SAID = frozenset({"goal", "open", "last", "reason", "stands"})
#: What csmd tells of a session by guess: nothing of it is told of one that a language model was asked about.
GUESSED = frozenset({"goal", "file", "open", "last"})
#: Branches that say nothing of the work on them.
_TRUNKS = frozenset({"main", "master", "HEAD"})
#: What stands before a file's name, on any system.
_NAME = re.compile(r"^.*[/\\]")
_FIRST_SENTENCE = re.compile(r"^(.*?[.?!])(?:\s|$)")


class SessionSummary(NamedTuple):
    """A session as its digest's last version describes it; `items` are (kind, text)."""

    session_id: str
    at: str
    outcome: str
    items: tuple[tuple[str, str], ...]

    def texts(self, kind: str) -> list[str]:
        """The texts of one kind of item, in order."""
        return [text for of_kind, text in self.items if of_kind == kind and text]

    @property
    def subjects(self) -> list[str]:
        """The subjects of its commits, the latest first."""
        return [commit.partition(" ")[2] for commit in self.texts("commit")[::-1]]

    @property
    def tail(self) -> str:
        """When it was, and the session's short id."""
        return f"{display.day_of(self.at)}, session {display.shorten_session_id(self.session_id)}"


def session_notes(ended: Sequence[SessionSummary], *, every: bool = False) -> tuple[Note, ...]:
    """The last sessions that changed something, or with `every` those that were on something; the latest first.

    Of commits that say nearly the same the latest is shown, and nothing that a later one did is left open.
    """
    notes: list[Note] = []
    later: list[str] = []
    for number, session in enumerate(ended[:LATEST_SESSIONS]):
        is_work = number == 0 and _is_work(session)
        note = _session_note(session, later, every=every or is_work, is_last=not notes)
        later += session.subjects
        if note is not None and len(notes) < SESSIONS:
            notes.append(note)
    return tuple(notes)


def _is_work(session: SessionSummary) -> bool:
    """Whether a session was given work to do, even if no file shows what it changed."""
    goal, last = (next(iter(session.texts(kind)), "") for kind in ("goal", "last"))
    is_ordered = parse(goal).kind == "orders" and not parse(goal).lasting
    return is_ordered and len(content_words(last)) >= MIN_LAST and not is_passing(last, "assistant")


def reason_notes(ended: Sequence[SessionSummary]) -> tuple[Note, ...]:
    """The latest commits whose message says why and what must or never may be, one of each matter: other reasons explain a step."""
    notes: list[Note] = []
    for session in ended[:LATEST_SESSIONS]:
        for reason in session.texts("reason")[::-1]:
            if (
                len(notes) < REASONS
                and has("unfailing", "en", reason)
                and not any(is_twin_of(reason, note.text) for note in notes)
            ):
                ident = f"{session.session_id}#{zlib.crc32(reason.encode()):08x}"
                notes.append(Note(id=ident, text=reason, tail=session.tail, reason=WHY_CHANGED))
    return tuple(notes)


def is_twin_of(statement: str, other: str) -> bool:
    """Whether two texts say nearly the same."""
    return is_twin(gist(statement), gist(other))


def _session_note(session: SessionSummary, later: Sequence[str], *, every: bool, is_last: bool) -> Note | None:
    """What a session was on, came to and left open; None for one that changed nothing, unless `every` one is wanted."""
    topic, files, stands = session_topic(session.texts("goal")), session.texts("file"), _state_left(session, later)
    subjects: list[str] = []
    for subject in session.subjects:
        if not any(is_twin_of(subject, other) for other in (*later, *subjects)):
            subjects.append(subject)
    if not (files or session.subjects or stands or (every and topic)) or (session.subjects and not subjects):
        return None
    parts: list[str] = []
    if subjects:
        quoted = [f'"{display.cut(subject, COMMIT_CHARACTERS)}"' for subject in subjects]
        branch = "".join(f" on {name}" for name in session.texts("branch")[-1:] if name not in _TRUNKS)
        parts.append("committed " + _list_names(quoted[:COMMITS], len(quoted)) + branch)
    elif files:
        parts.append("changed " + _list_names([_NAME.sub("", path) for path in files[:FILES]], len(files)))
    parts += [f"opened {pull}" for pull in session.texts("pull")[-1:]]
    if session.outcome == "failing":
        failed = [error for error in session.texts("failing") if error.partition(":")[0] in _CHECKS]
        parts.append(OUTCOME_WORDS["failing"] + "".join(f" ({error})" for error in failed[-1:]))
    parts += [f"left open: {end.rstrip('.')}" for end in open_ends(session.texts("open"), done=[*later, *subjects])[:1]]
    if stands:
        return Note(id=session.session_id, text="; ".join([stands, *parts]), tail=session.tail, reason=HOW_ENDED)
    if is_last:
        parts += [f"at its end: {last}" for last in session.texts("last")[-1:] if _tells_state(last, after=subjects)]
    text = ": ".join(filter(None, (topic, "; ".join(parts))))
    return Note(id=session.session_id, text=text, tail=session.tail, reason=HOW_ENDED)


def _tells_state(last: str, *, after: Sequence[str]) -> bool:
    """Whether a session's last words give the state of the work; after commits, only what these left open."""
    is_empty = is_passing(last, "assistant") or opens("now", "en", last) or len(content_words(last)) < MIN_STATE
    return not is_empty and (not after or has("left", "en", last) or has("remains", "en", last))


def _state_left(session: SessionSummary, later: Sequence[str]) -> str:
    """In what state a session left the work, as a model said it; "" where no model did, or a later commit changed that."""
    standing = next(iter(session.texts("stands")), "")
    return "" if _is_done(standing, later) else standing.rstrip(".。 ")


def open_id(session_id: str, text: str) -> str:
    """The id of what a session left open, by which it is closed: the same for the whole text and for what is shown of it."""
    shown = display.cut(display.squeeze(_behind_lead(text)), OPEN_CHARACTERS)
    return "o" + hashlib.sha256(f"{session_id}:{shown}".encode()).hexdigest()[:10]


def left_open(ended: Sequence[SessionSummary]) -> Iterator[tuple[SessionSummary, str, bool]]:
    """(session, text, whether it is a question) of what sessions left open, the latest first, that no later commit did."""
    later: list[str] = []
    for number, session in enumerate(ended):
        left, done = session.texts("open"), [*later, *session.subjects]
        yield from ((session, end, False) for end in open_ends(left, done=done))
        if number < SESSIONS:
            questions = [text for text in left if not _is_done(text, done) and not open_ends([text], done=[])]
            yield from ((session, display.cut(display.squeeze(text), OPEN_CHARACTERS), True) for text in questions)
        later += session.subjects


def _is_done(ending: str, commits: Sequence[str]) -> bool:
    return any(share(gist(ending).stems, gist(subject).stems) >= DONE_SHARE for subject in commits)


def open_ends(endings: Sequence[str], *, done: Sequence[str]) -> list[str]:
    """What a session left to do, as it said it, without what was only asked and what these commits did."""
    return [
        display.cut(display.squeeze(_behind_lead(text)), OPEN_CHARACTERS)
        for text in endings
        if not text.startswith("asked and not answered")
        and not ends_with_question(text)
        and not opens("offers", "en", text)
        and not _is_done(text, done)
    ]


def _behind_lead(text: str) -> str:
    """What is left, without the words that say only that it is: "what is left: the week numbers"."""
    lead, _, rest = text.partition(": ")
    return rest if rest and len(lead.split()) <= LEAD_WORDS and opens("left", "en", lead) else text


def session_topic(goals: Sequence[str]) -> str:
    """What a session was on, without the courtesy it was asked with; "" of a question, which says nothing of what came of it."""
    whole = display.squeeze(goals[0]) if goals else ""
    first = _FIRST_SENTENCE.match(whole)
    goal = first[1] if first and len(content_words(first[1])) >= 3 else whole
    bare = bare_order(goal, sets_out=True).rstrip(".:,; ")
    return "" if bare.endswith("?") and parse(goal).kind == "asks" else display.cut(bare.rstrip("?"), TOPIC_CHARACTERS)


def _list_names(names: Sequence[str], total: int) -> str:
    """The names, each once, and how many more there are."""
    more = f" and {total - len(names)} more" if total > len(names) else ""
    return ", ".join(dict.fromkeys(names)) + more


def session_blocks(rows: Rows, *, places: Sequence[int], session_id: str, key: bytes) -> list[Block]:
    """What the last sessions of these places were on and came to, without what a session has in its context."""
    ended = read_session_summaries(rows, places=places, session_id=session_id, key=key)
    in_context = receipts.ids_in_context(rows, session_id)
    notes = tuple(note for note in session_notes(ended, every=True) if note.id not in in_context)
    return [Block(heading=ENDED[0], notes=notes, weight=2.0)] if notes else []


def read_session_summaries(rows: Rows, *, places: Sequence[int], session_id: str, key: bytes) -> list[SessionSummary]:
    """The latest sessions of these places but this one, the latest first, without what was superseded or forgotten since."""
    own = [place for place in places if place]
    latest = digests.list_latest(rows, projects=own, limit=LATEST_SESSIONS + 1) if own else []
    named = sessions.ids_by_seq(rows, [row.session_seq for row in latest])
    judged = curations.judged_sessions(rows, projects=own)
    stands = curations.work_states(rows, [row.session_seq for row in latest])
    holds, closed = _holds_still(rows, own, key), journal.list_closed(rows)
    summaries: list[SessionSummary] = []
    for row in latest:
        session = named[row.session_seq]
        items = tuple(
            (kind, text)
            for kind, text, by, at in [
                *digests.headlines(rows, row.seq),
                *(("stands", text, "assistant", at) for text, at in [stands.get(session, ("", ""))] if text),
            ]
            # A goal that no person typed is nobody's word: a session is not named by it. What a model judged is in its notes.
            if (kind != "goal" or by == "user")
            and not (kind in GUESSED and session in judged)
            and holds(kind, text, at, session)
            and not (kind in ("open", "last") and open_id(session, text) in closed)
        )
        if session != session_id:
            summaries.append(SessionSummary(session_id=session, at=row.at, outcome=row.outcome, items=items))
    return summaries


def read_commits(rows: Rows, *, places: Sequence[int]) -> list[tuple[str, str]]:
    """(time, subject) of each commit of the latest sessions of these places."""
    own = [place for place in places if place]
    latest = digests.list_latest(rows, projects=own, limit=LATEST_SESSIONS + 1) if own else []
    return [
        (at or row.at, text.partition(" ")[2])
        for row in latest
        for kind, text, _, at in digests.headlines(rows, row.seq)
        if kind == "commit"
    ]


def _holds_still(rows: Rows, places: Sequence[int], key: bytes) -> Callable[[str, str, str, str], bool]:
    """Whether a statement (kind, text, time, session) was neither forgotten nor replaced by a statement of these places."""
    replaced = supersession.read_replaced(rows, places)
    anything_forgotten = tombstones.has_kind(rows, "memory")

    def is_forgotten(text: str, at: str) -> bool:
        wordings = {text, text.partition(": ")[2], *prose.split_sentences(text)} - {""}
        return any(
            tombstones.is_forgotten(rows, wording, authority="assistant", at=at, key=key) for wording in wordings
        )

    def holds(kind: str, text: str, at: str, session: str) -> bool:
        if kind not in SAID:
            return True
        if anything_forgotten and is_forgotten(text, at):
            return False
        return supersession.find_restated(text, at=at, session=session, replaced=replaced) is None

    return holds
