"""A session's digest: goal, outcome, decisions, changes, failures, open ends.

A conversation has one version for each compaction, which covers everything before it, and a last one that is rebuilt
while the conversation goes on. Versions and their bytes depend only on what is stored. Each part has a limit, so that
the whole stays within MAX_DIGEST_CHARACTERS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

from csmd.errors import CsmdError
from csmd.extraction import work as harvest
from csmd.extraction.work import (
    MAX_SENTENCE_CHARACTERS,
    Entry,
    Item,
    Stated,
    Work,
    find_check,
    summarise,
)
from csmd.hook_events import EVENTS
from csmd.hosts import adapters
from csmd.paths import name_of_transcript
from csmd.privacy.fingerprints import PURGED
from csmd.store import cursors, digests, events, tampered_transcripts, tombstones
from csmd.store.core import Store
from csmd.store.digests import DIGEST_STAGE, DueSession
from csmd.store.sqlite import Rows
from csmd.text.display import amount, cut
from csmd.text.tokens import keyed_hash

Why = Literal["compaction", "end", "settled"]
Outcome = Literal["failing", "rejected", "corrected", "committed", "checked", "unchecked", "answered", "unanswered"]
#: Characters of a digest.
MAX_DIGEST_CHARACTERS = 1500
#: (Most parts, most characters) of a row of the digest; `items` keeps more for the stages that compare sessions.
ROW_LIMITS = {
    "correction": (2, 360), "decision": (3, 450), "file": (8, 300), "command": (3, 260), "commit": (3, 260),
    "open": (4, 300),
}  # fmt: skip
MAX_KEPT = 80
#: A session counts as corrected from this many corrections and rejected changes on.
MIN_CORRECTIONS = 3

#: What an outcome is called; the first whose rule holds, in `_find_outcome`, is it.
OUTCOME_WORDS: dict[Outcome, str] = {
    "failing": "ended with a failing check",
    "rejected": "the last change was turned down or corrected",
    "corrected": "corrected again and again",
    "committed": "committed",
    "checked": "checks passed after the last change",
    "unchecked": "changed, not checked",
    "answered": "answered, nothing changed",
    "unanswered": "the last prompt was not answered",
}


class Digest(NamedTuple):
    """One version of a session's digest, up to an ordinal, with the items by which sessions are compared."""

    why: Why
    upto: int
    at: str
    text: str
    outcome: Outcome
    prompts: int
    calls: int
    tokens: int
    items: tuple[Item, ...]


def make_versions(
    entries: Sequence[Entry], stated: Sequence[Stated], *, title: str, cwd: str, why: Why = "settled"
) -> list[Digest]:
    """Makes every version of a session's digest, in order; `why` is the reason of the last. [] for a session without words.

    A summary inside the conversation marks a compaction: what came before it has a version of its own.
    """
    ends = [entry.ordinal for entry in entries if entry.kind == "summary"]
    borders = [end for end in ends if any(entry.ordinal < end for entry in entries)]
    history: list[Digest] = []
    for last, border in enumerate([*borders, 0]):
        part = [entry for entry in entries if entry.ordinal < border] if border else list(entries)
        reason: Why = why if last == len(borders) else "compaction"
        version = _make_digest(part, stated, title=title, cwd=cwd, why=reason)
        if version is not None:
            history.append(version)
    return history


def _make_digest(
    entries: Sequence[Entry], stated: Sequence[Stated], *, title: str, cwd: str, why: Why
) -> Digest | None:
    prompts = [
        entry for entry in entries if entry.kind in ("user", "relayed") and not adapters.is_written_for_user(entry.text)
    ]
    answers = [entry for entry in entries if entry.kind == "assistant" and entry.text.strip()]
    if not prompts and not answers:
        return None
    upto = entries[-1].ordinal
    work = summarise(entries, cwd=cwd)
    stated_so_far = [statement for statement in stated if statement.ordinal <= upto]
    outcome = _find_outcome(work, stated_so_far, prompts, answers)
    goal = harvest.list_goal_items(prompts, title, answers)
    items = [
        *goal,
        *harvest.list_decision_items(stated_so_far, goal[0].text if goal else ""),
        *harvest.list_done_items(work, cwd),
        *harvest.list_reference_items(entries, prompts),
        *harvest.list_open_items(work, prompts, answers, is_over=why != "compaction"),
        *filter(None, [harvest.find_last_item(answers)]),
    ]
    calls, tokens = work.calls, sum(entry.tokens for entry in entries)
    at = max(entry.at for entry in entries)
    counted = f"{amount(len(prompts), 'prompt')}, {amount(calls, 'tool call')}, {amount(tokens, 'token')} written"
    body = _render(items, outcome, work, f"{counted}, {_format_minute(entries[0].at)} to {_format_minute(at)}")
    return Digest(why, upto, at, body, outcome, len(prompts), calls, tokens, tuple(_limit_items(items)))


def _find_outcome(work: Work, stated: Sequence[Stated], prompts: Sequence[Entry], answers: Sequence[Entry]) -> Outcome:
    checks = [ran for ran in work.ran.values() if find_check(ran.command)]
    latest: dict[str, bool] = {}
    for ran in sorted(checks, key=lambda check: check.at):
        latest[find_check(ran.command)] = ran.passed
    against = [
        statement.ordinal for statement in stated if statement.gate == "correction" and statement.authority == "user"
    ]
    last = max(work.changed_at, *(commit.ordinal for commit in work.commits), 0)
    # Only the next prompt answers the last change.
    answer = next((prompt.ordinal for prompt in prompts if prompt.ordinal > last), 0)
    answered = bool(answers) and (not prompts or answers[-1].ordinal > prompts[-1].ordinal)
    passed_at = max((ran.at for ran in checks if ran.passed), default=0)
    if not all(latest.values()):
        return "failing"
    if work.changed_at and (answer in against or max(work.turned_down, default=0) > last):
        return "rejected"
    if work.changed_at and len(against) + len(work.turned_down) >= MIN_CORRECTIONS:
        return "corrected"
    if any(commit.ordinal > work.changed_at for commit in work.commits):
        return "committed"
    if work.changed_at and passed_at > work.changed_at:
        return "checked"
    if work.changed_at:
        return "unchecked"
    return "answered" if answered else "unanswered"


# --- rendering


def _render(items: Sequence[Item], outcome: Outcome, work: Work, counted: str) -> str:
    by: dict[str, list[Item]] = {}
    for item in items:
        by.setdefault(item.kind, []).append(item)
    rows: list[str] = [f"Goal: {item.text}" for item in by.get("goal", ())]
    turned_down = f"; {amount(len(work.rejections), 'call')} turned down" if work.rejections else ""
    rows.append(f"Outcome: {OUTCOME_WORDS[outcome]}{turned_down}")
    texts = {kind: [cut(item.text, MAX_SENTENCE_CHARACTERS) for item in listed] for kind, listed in by.items()}
    rows += _render_row("Corrected", texts.get("correction", []), ROW_LIMITS["correction"])
    rows += _render_row("Decided", texts.get("decision", []), ROW_LIMITS["decision"])
    files = [f"{item.text} x{item.amount}" if item.amount > 1 else item.text for item in by.get("file", ())]
    rows += _render_row(f"Changed {amount(len(files), 'file')}", files, ROW_LIMITS["file"], between=", ")
    ends = {"mended": "passed in the end", "failed": "failed at the end"}
    failed = [
        f"`{cut(item.text, 60)}` {item.amount}x, {ends[item.state]}"
        for item in by.get("command", ())
        if item.state == "failed" or (item.state == "mended" and find_check(item.text))
    ]
    rows += _render_row("Failed", failed, ROW_LIMITS["command"])
    rows += _render_row("Commits", texts.get("commit", [])[::-1], ROW_LIMITS["commit"])
    rows += _render_row("Open", texts.get("open", []), ROW_LIMITS["open"])
    rows += [f"Last: {item.text}" for item in by.get("last", ())]
    rows.append(counted)
    while len("\n".join(rows)) > MAX_DIGEST_CHARACTERS:
        longest = max(range(len(rows)), key=lambda at: len(rows[at]))
        rows[longest] = cut(rows[longest], len(rows[longest]) * 3 // 4)
    return "\n".join(rows)


def _format_minute(at: str) -> str:
    return at[:16].replace("T", " ")


def _render_row(name: str, parts: Sequence[str], limits: tuple[int, int], *, between: str = " | ") -> list[str]:
    """Renders a row of a digest with as many parts as fit, and the number of others; [] without parts."""
    max_parts, max_characters = limits
    shown: list[str] = []
    for part in parts[:max_parts]:
        if shown and len(between.join([*shown, part])) > max_characters:
            break
        shown.append(part)
    if not shown:
        return []
    more = len(parts) - len(shown)
    return [f"{name}: {between.join(shown)}" + (f" (+{more})" if more else "")]


def _limit_items(items: Sequence[Item]) -> Iterator[Item]:
    """The first MAX_KEPT items of each kind."""
    counts = Counter[str]()
    for item in items:
        counts[item.kind] += 1
        if counts[item.kind] <= MAX_KEPT and item.text:
            yield item


#: Sessions in one step.
SESSION_BATCH = 5
#: Events looked at for sessions that have ended since.
MAX_EVENTS = 500
#: Events that end a session, and the reason that each gives for its last digest.
ENDING_EVENTS: dict[str, Why] = {name: rule.digest_reason for name, rule in EVENTS.items() if rule.digest_reason}


def step(store: Store, pace: cursors.Pace = cursors.Pace()) -> int:  # noqa: B008 - frozen
    """Digests the next sessions that are due; returns their number, 0 if none wait."""
    heard = _mark_ended_sessions(store)
    waiting = store.read(lambda rows: digests.list_due(rows, limit=SESSION_BATCH, pace=pace))
    made = [(session, _make_session_versions(store, session)) for session in waiting]

    def write(rows: Rows) -> None:
        for session, make_versions in made:
            digests.replace(rows, session.session_seq, make_versions, turns=session.turns)

    if made:
        store.write(write)
    return len(waiting) or int(heard)


def _mark_ended_sessions(store: Store) -> bool:
    """Marks sessions that ended or are about to be compacted for a new digest; whether there may be more.

    Nothing is written if none did: a write is a commit, and every prompt is an event.
    """
    after = store.read(lambda rows: cursors.read_cursor(rows, DIGEST_STAGE, "events"))
    last, looked, ended = store.read(
        lambda rows: events.read_session_events(rows, ENDING_EVENTS, after=after, limit=MAX_EVENTS)
    )
    if not ended and looked < MAX_EVENTS:
        return False

    def write(rows: Rows) -> None:
        for session in {session for session, _ in ended}:
            cursors.move_cursor(rows, DIGEST_STAGE, str(session), 0)
        cursors.move_cursor(rows, DIGEST_STAGE, "events", last)

    store.write(write)
    return looked == MAX_EVENTS


def digest_now(store: Store, rows: Rows, session_seq: int) -> None:
    """Digests an unsettled session as it is, read from `rows`; the stage digests it again later."""
    purged = tombstones.read_purge_state(rows)
    made = _prepare_versions(rows, digests.find_session(rows, session_seq), store.hash_key)()

    def write(writing: Rows) -> None:
        if tombstones.read_purge_state(writing) != purged:
            raise CsmdError("something was purged meanwhile, and the digest may quote it", hint="ask again")
        digests.replace(writing, session_seq, made, turns=0)

    store.write(write)


def _make_session_versions(store: Store, session: DueSession) -> list[Digest]:
    return store.read(lambda rows: _prepare_versions(rows, session, store.hash_key))()


def _prepare_versions(rows: Rows, session: DueSession, key: bytes) -> Callable[[], list[Digest]]:
    """Reads what a session's digests need; the returned function makes them without the store."""
    if tampered_transcripts.is_tampered(rows, keyed_hash(name_of_transcript(session.path), key)):
        return list
    entries = [Entry(*row) for row in digests.read_entries(rows, session.session_seq)]
    stated = [Stated(*row) for row in digests.read_statements(rows, session.session_seq)]
    return partial(
        make_versions,
        [entry for entry in entries if entry.ordinal <= session.turns and entry.text != PURGED],
        stated,
        title=session.title,
        cwd=session.cwd,
        why=ENDING_EVENTS.get(session.why, "settled"),
    )
