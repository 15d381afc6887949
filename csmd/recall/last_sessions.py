"""The state of a project: topics, results, open ends and reasons of its last sessions."""

from __future__ import annotations

import hashlib
import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from csmd.extraction.digest import OUTCOME_WORDS
from csmd.extraction.work import CHECKS
from csmd.memory import supersession
from csmd.recall.compose import Block, Note
from csmd.store import curations, digests, journal, session_context, sessions, tombstones
from csmd.store.sqlite import Rows
from csmd.text import display, prose
from csmd.text.pastes import SENTENCE_MARKS
from csmd.text.sentence import ends_with_question, find_request, has, is_passing, opens, parse
from csmd.text.similarity import gist, is_twin, share
from csmd.text.tokens import content_words
from csmd.text.trimming import strip_order

#: Most sessions that are shown, among the latest that are read.
MAX_SESSIONS = 3
LATEST_SESSIONS = 12
MAX_FILES = 3
MAX_COMMITS = 3
MAX_REASONS = 3
MAX_TOPIC_CHARACTERS = 110
MAX_COMMIT_CHARACTERS = 90
MAX_OPEN_CHARACTERS = 170
#: Most words of a lead-in before a colon ("what is left: ...").
MAX_LEAD_WORDS = 3
#: Fewest content words of a last sentence that names the work, and of one that gives its state.
MIN_LAST_WORDS = 4
MIN_STATE_WORDS = 3
#: Most content words of a greeting.
MAX_GREETING_WORDS = 3
#: Headings and weights of the blocks; the least weight is trimmed first.
ENDED = ("Where it stands", 7.0)
REASONED = ("Why it was changed", 5.0)
#: Reasons in receipts.
HOW_ENDED = "what the last sessions came to"
WHY_CHANGED = "why something was changed"
#: A later commit with this share of an open end's words did it.
MIN_DONE_SHARE = 0.6
#: Kinds of digest items that are statements.
STATEMENT_KINDS = frozenset({"goal", "open", "last", "reason", "stands"})
#: Kinds that csmd guesses; they are left out if a language model judged the session.
GUESSED_KINDS = frozenset({"goal", "file", "open", "last"})
#: Branches whose name says nothing about the work.
_TRUNKS = frozenset({"main", "master", "HEAD"})
#: The directory of a path, on any system.
_DIRECTORY = re.compile(r"^.*[/\\]")
_FIRST_SENTENCE = re.compile(r"^(.*?[.?!])(?:\s|$)")


class SessionSummary(NamedTuple):
    """A session as its digest's last version describes it; `items` are (kind, text)."""

    session_id: str
    at: str
    outcome: str
    items: tuple[tuple[str, str], ...]

    def texts(self, kind: str) -> list[str]:
        """Returns the texts of one kind of item, in order."""
        return [text for of_kind, text in self.items if of_kind == kind and text]

    @property
    def subjects(self) -> list[str]:
        """The subjects of its commits, the latest first."""
        return [commit.partition(" ")[2] for commit in self.texts("commit")[::-1]]

    @property
    def tail(self) -> str:
        """Its day and the session's short id."""
        return f"{display.day_of(self.at)}, session {display.shorten_session_id(self.session_id)}"


def session_notes(ended: Sequence[SessionSummary], *, every: bool = False) -> tuple[Note, ...]:
    """Makes notes of the last sessions that changed something, with `every` also of those with a topic; the latest first.

    Of nearly equal commits the latest is shown; an open end that a later commit did is left out.
    """
    notes: list[Note] = []
    later: list[str] = []
    for number, session in enumerate(ended[:LATEST_SESSIONS]):
        is_work = number == 0 and _is_given_work(session)
        note = _session_note(session, later, every=every or is_work, is_last=not notes)
        later += session.subjects
        if note is not None and len(notes) < MAX_SESSIONS:
            notes.append(note)
    return tuple(notes)


def _is_given_work(session: SessionSummary) -> bool:
    """Whether a session was given work to do, even if no file shows what it changed."""
    goal, last = (next(iter(session.texts(kind)), "") for kind in ("goal", "last"))
    is_ordered = parse(goal).kind == "orders" and not parse(goal).lasting
    return is_ordered and len(content_words(last)) >= MIN_LAST_WORDS and not is_passing(last, "assistant")


def reason_notes(ended: Sequence[SessionSummary]) -> tuple[Note, ...]:
    """Makes notes of the latest commits whose reason states an obligation, without near duplicates."""
    notes: list[Note] = []
    for session in ended[:LATEST_SESSIONS]:
        for reason in session.texts("reason")[::-1]:
            if (
                len(notes) < MAX_REASONS
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
    """Makes a note of how a session left the work: what it committed, or its last words, then what is open.

    What it was asked for at first comes last, since it may have gone elsewhere, or first if its last words are no clear
    sentence. None if it changed nothing, unless `every` one is wanted.
    """
    topic, files, stands = session_topic(session.texts("goal")), session.texts("file"), _state_left(session, later)
    subjects: list[str] = []
    for subject in session.subjects:
        if not any(is_twin_of(subject, other) for other in (*later, *subjects)):
            subjects.append(subject)
    if not (files or session.subjects or stands or (every and topic)) or (session.subjects and not subjects):
        return None
    parts: list[str] = []
    if subjects:
        quoted = [f'"{display.cut(subject, MAX_COMMIT_CHARACTERS)}"' for subject in subjects]
        branch = "".join(f" on {name}" for name in session.texts("branch")[-1:] if name not in _TRUNKS)
        parts.append("committed " + _list_names(quoted[:MAX_COMMITS], len(quoted)) + branch)
    elif files:
        parts.append("changed " + _list_names([_DIRECTORY.sub("", path) for path in files[:MAX_FILES]], len(files)))
    parts += [f"opened {pull}" for pull in session.texts("pull")[-1:]]
    if session.outcome == "failing":
        failed = [error for error in session.texts("failing") if error.partition(":")[0] in CHECKS]
        parts.append(OUTCOME_WORDS["failing"] + "".join(f" ({error})" for error in failed[-1:]))
    last = next(iter(session.texts("last")[-1:]), "")
    # What came after the commits is not in them.
    after = subjects if session.outcome == "committed" else []
    ends = open_ends(session.texts("open"), done=[*later, *subjects])[:1]
    repeats_end = any(_is_done(end, [last]) for end in ends)
    tells = is_last and not (stands or repeats_end) and _tells_state(last, after=after)
    leads = tells and not subjects and _is_clear(last)
    if leads:
        parts.insert(0, f"at its end: {last.rstrip('.。 ')}")
    parts += [f"left open: {end.rstrip('.')}" for end in ends]
    if stands:
        return Note(id=session.session_id, text="; ".join([stands, *parts]), tail=session.tail, reason=HOW_ENDED)
    if tells and not leads:
        parts.append(f"at its end: {last}")
    text = "; ".join(parts)
    if not (leads or subjects):
        text = ": ".join(filter(None, (topic, text)))
    elif leads and topic and not _is_done(topic, [text]):
        text = f"{text}; begun with: {topic}"
    return Note(id=session.session_id, text=text, tail=session.tail, reason=HOW_ENDED)


def _tells_state(last: str, *, after: Sequence[str]) -> bool:
    """Whether a session's last words give the state of the work; after commits, the part left open."""
    is_empty = is_passing(last, "assistant") or opens("now", "en", last) or len(content_words(last)) < MIN_STATE_WORDS
    return not is_empty and (not after or has("left", "en", last) or has("remains", "en", last))


def _is_clear(last: str) -> bool:
    """Whether the last words of a session are a whole sentence that is clear without those before it."""
    is_whole = last.rstrip('`*)"').endswith(SENTENCE_MARKS)
    return is_whole and len(content_words(last)) >= MIN_LAST_WORDS and not parse(last, "assistant").is_continuation


def _state_left(session: SessionSummary, later: Sequence[str]) -> str:
    """Returns the state of the work at a session's end by a model; "" without one, or if a later commit changed it."""
    standing = next(iter(session.texts("stands")), "")
    return "" if _is_done(standing, later) else standing.rstrip(".。 ")


def open_id(session_id: str, text: str) -> str:
    """Returns the id by which an open end is closed: the same for the whole text and for its shortened form."""
    shown = display.cut(display.squeeze(_drop_lead_in(text)), MAX_OPEN_CHARACTERS)
    return "o" + hashlib.sha256(f"{session_id}:{shown}".encode()).hexdigest()[:10]


def left_open(ended: Sequence[SessionSummary]) -> Iterator[tuple[SessionSummary, str, bool]]:
    """Yields (session, text, whether it is a question) of open ends that no later commit did, the latest first."""
    later: list[str] = []
    for number, session in enumerate(ended):
        left, done = session.texts("open"), [*later, *session.subjects]
        yield from ((session, end, False) for end in open_ends(left, done=done))
        if number < MAX_SESSIONS:
            questions = [text for text in left if not _is_done(text, done) and not open_ends([text], done=[])]
            yield from ((session, display.cut(display.squeeze(text), MAX_OPEN_CHARACTERS), True) for text in questions)
        later += session.subjects


def _is_done(ending: str, commits: Sequence[str]) -> bool:
    return any(share(gist(ending).stems, gist(subject).stems) >= MIN_DONE_SHARE for subject in commits)


def open_ends(endings: Sequence[str], *, done: Sequence[str]) -> list[str]:
    """Returns the open ends of a session without questions, offers and those that these commits did."""
    return [
        display.cut(display.squeeze(_drop_lead_in(text)), MAX_OPEN_CHARACTERS)
        for text in endings
        if not text.startswith("asked and not answered")
        and not ends_with_question(text)
        and not opens("offers", "en", text)
        and not _is_done(text, done)
    ]


def _drop_lead_in(text: str) -> str:
    """Drops the lead-in of an open end: "what is left: the week numbers"."""
    lead, _, rest = text.partition(": ")
    return rest if rest and len(lead.split()) <= MAX_LEAD_WORDS and opens("left", "en", lead) else text


def _drop_greeting(goal: str) -> str:
    """Drops the first sentences of a goal that greet; whole if it does nothing else."""
    sentences = prose.split_sentences(goal)
    return " ".join(itertools.dropwhile(_greets, sentences)) or goal


def _greets(sentence: str) -> bool:
    is_short = len(content_words(sentence)) <= MAX_GREETING_WORDS
    return is_short and opens("greets", "en", sentence) and not find_request(sentence)


def session_topic(goals: Sequence[str]) -> str:
    """Returns the topic of a session from its goal, without courtesies; "" for a question, which tells no result."""
    whole = _drop_greeting(display.squeeze(goals[0])) if goals else ""
    first = _FIRST_SENTENCE.match(whole)
    goal = first[1] if first and len(content_words(first[1])) >= 3 else whole
    bare = strip_order(goal, sets_out=True).rstrip(".:,; ")
    return (
        "" if bare.endswith("?") and parse(goal).kind == "asks" else display.cut(bare.rstrip("?"), MAX_TOPIC_CHARACTERS)
    )


def _list_names(names: Sequence[str], total: int) -> str:
    """Joins the names, each once, with the number of others."""
    more = f" and {total - len(names)} more" if total > len(names) else ""
    return ", ".join(dict.fromkeys(names)) + more


def session_blocks(rows: Rows, *, places: Sequence[int], session_id: str, key: bytes) -> list[Block]:
    """Makes a block of the last sessions of these places, without those in a session's context."""
    ended = read_session_summaries(rows, places=places, session_id=session_id, key=key)
    in_context = session_context.ids_in_context(rows, session_id)
    notes = tuple(note for note in session_notes(ended, every=True) if note.id not in in_context)
    return [Block(heading=ENDED[0], notes=notes, weight=2.0)] if notes else []


def read_session_summaries(rows: Rows, *, places: Sequence[int], session_id: str, key: bytes) -> list[SessionSummary]:
    """Reads the other latest sessions of these places, the latest first, without superseded or forgotten items."""
    own = [place for place in places if place]
    latest = digests.list_latest(rows, projects=own, limit=LATEST_SESSIONS + 1) if own else []
    named = sessions.ids_by_seq(rows, [row.session_seq for row in latest])
    judged = curations.judged_sessions(rows, projects=own)
    stands = curations.read_work_states(rows, [row.session_seq for row in latest])
    holds, closed = _make_current_filter(rows, own, key), journal.list_closed(rows)
    summaries: list[SessionSummary] = []
    for row in latest:
        session = named[row.session_seq]
        items = tuple(
            (kind, text)
            for kind, text, by, at in [
                *digests.list_headlines(rows, row.seq),
                *(("stands", text, "assistant", at) for text, at in [stands.get(session, ("", ""))] if text),
            ]
            # A goal that no person typed names no session. A model's judgement is in its notes.
            if (kind != "goal" or by == "user")
            and not (kind in GUESSED_KINDS and session in judged)
            and holds(kind, text, at, session)
            and not (kind in ("open", "last") and open_id(session, text) in closed)
        )
        if session != session_id:
            summaries.append(SessionSummary(session_id=session, at=row.at, outcome=row.outcome, items=items))
    return summaries


def read_commits(rows: Rows, *, places: Sequence[int]) -> list[tuple[str, str]]:
    """Returns (time, subject) of each commit of the latest sessions of these places."""
    own = [place for place in places if place]
    latest = digests.list_latest(rows, projects=own, limit=LATEST_SESSIONS + 1) if own else []
    return [
        (at or row.at, text.partition(" ")[2])
        for row in latest
        for kind, text, _, at in digests.list_headlines(rows, row.seq)
        if kind == "commit"
    ]


def _make_current_filter(rows: Rows, places: Sequence[int], key: bytes) -> Callable[[str, str, str, str], bool]:
    """Returns a predicate of (kind, text, time, session): whether it is neither forgotten nor superseded in these places."""
    replaced = supersession.read_replaced(rows, places)
    anything_forgotten = tombstones.has_kind(rows, "memory")

    def is_forgotten(text: str, at: str) -> bool:
        wordings = {text, text.partition(": ")[2], *prose.split_sentences(text)} - {""}
        return any(
            tombstones.is_forgotten(rows, wording, authority="assistant", at=at, key=key) for wording in wordings
        )

    def holds(kind: str, text: str, at: str, session: str) -> bool:
        if kind not in STATEMENT_KINDS:
            return True
        if anything_forgotten and is_forgotten(text, at):
            return False
        return supersession.find_restated(text, at=at, session=session, replaced=replaced) is None

    return holds
