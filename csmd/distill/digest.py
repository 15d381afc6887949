"""A session's digest: what it was for, what was decided, done, broken and left open; harvested, never paraphrased; pure.

A conversation has one version for each compaction, of everything up to it, and a last one that is made anew while it
goes on: which versions there are, and their bytes, follow from what is stored alone. Every part has its room, so that
the whole stays within LIMIT whatever was said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from csmd.capture.hosts import claude_work
from csmd.distill.work import Entry, Work, check_of, fold, is_told
from csmd.text import amount, content_words, cut, lines_of_prose, sentences, squeeze, stem

Why = Literal["compaction", "end", "settled"]
Outcome = Literal["failing", "rejected", "corrected", "committed", "checked", "unchecked", "answered", "unanswered"]
ItemKind = Literal[
    "goal", "word", "decision", "correction", "file", "command", "error", "commit", "branch", "plan", "plan_given",
    "transcript", "names", "continued", "open", "last",
]  # fmt: skip

#: Characters of a digest, and of one harvested sentence, a goal, an entry of a list.
LIMIT = 1500
SENTENCE, GOAL, ENTRY = 170, 220, 90
#: How many of each are told; `items` keeps more for the stages that compare sessions.
TOLD = {"decision": 3, "correction": 2, "file": 8, "command": 3, "commit": 3, "open": 4}
KEPT = 80
#: From so many corrections and changes turned down a session is one in which the user had to correct.
AGAIN_AND_AGAIN = 3
#: Words that a goal is compared by, and how much of the user's words is looked at for them.
WORDS, WORDS_FROM = 24, 600

#: What an outcome is called; the first whose rule holds, in `_outcome`, is it.
SAID: dict[Outcome, str] = {
    "failing": "ended with a failing check",
    "rejected": "the last change was turned down or corrected",
    "corrected": "corrected again and again",
    "committed": "committed",
    "checked": "checks passed after the last change",
    "unchecked": "changed, not checked",
    "answered": "answered, nothing changed",
    "unanswered": "the last prompt was not answered",
}
_NOT_SAID = re.compile(
    r"\s*(?:<(?:command-|local-command|bash-|task-|system)|\[Request interrupted|Caveat: |Stop hook feedback"
    r"|Operation stopped by hook|Base directory for this skill|/[\w:.-]+(?:\s|$))"
)
_OFFER = re.compile(
    r"^\W{0,3}(?:(?:would|do) you (?:like|want)|want me|should i|shall i|let me know|ready to|feel free|let me\b"
    r"|now (?:let me|i)|i['’]ll (?:now|start|check|look)|great|perfect|done[.!]?$|here['’]s|here is|here are|summary)",
    re.I,
)
_LEFT = re.compile(
    r"\b(?:still (?:needs?|to do|open|missing|fails?)|not yet|remains? to|left to do|follow[- ]up|to-?do:|next step"
    r"|i['’]ll .{0,60}\b(?:later|next|once|after)\b|haven['’]t (?:yet|been able)|out of scope)", re.I,
)  # fmt: skip
_ASKS = re.compile(r"\?[\"')*_]*$")
#: A commit that somebody names: a word for it close before, and a hash that is no number and no word.
_NAMES = re.compile(
    r"\b(?:commits?|revert(?:ed|ing)?|cherry[- ]?pick(?:ed)?|rebased? (?:on|onto)|sha|git (?:show|revert|cherry-pick|reset"
    r"|diff))\b[\s:`'\"(]{1,3}(?:--?\w+ ){0,2}((?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40})\b"
)
_LAST_TIME = re.compile(
    r"\b(?:continue|continuing|carry on|go on|pick up|resume)\b.{0,40}\b(?:where we (?:left|stopped)|(?:last|previous|earlier)"
    r" (?:session|conversation|time))|\b(?:we|i) (?:\w+ ){1,4}(?:yesterday|last (?:time|week))\b|\byesterday (?:we|i)\b|\b(?:in|from) (?:the|our|my) (?:last|previous|earlier) (?:session|conversation)\b", re.I,
)  # fmt: skip
#: A paste is not the user's to say: beyond so many characters nothing in a prompt is taken for a name.
TYPED = 700


class Stated(NamedTuple):
    """A statement that was chosen from a turn of the session."""

    ordinal: int
    text: str
    gate: str
    category: str
    authority: str
    confidence: float
    uuid: str


class Item(NamedTuple):
    """One thing in a digest with where it was said; `state` is a command's or an error's end, `amount` how often."""

    kind: ItemKind
    text: str
    uuid: str
    state: str = ""
    amount: int = 1


class Digest(NamedTuple):
    """What is told of a session up to an ordinal, and what it is compared by."""

    why: Why
    upto: int
    at: str
    text: str
    outcome: Outcome
    prompts: int
    calls: int
    tokens: int
    items: tuple[Item, ...]


def versions(
    entries: Sequence[Entry], stated: Sequence[Stated], *, title: str, cwd: str, why: Why = "settled"
) -> list[Digest]:
    """Every version of a session's digest, the first first; `why` is said of the last. None for a session without words.

    A summary inside the conversation stands where a compaction was: what came before it has a version of its own.
    """
    ends = [entry.ordinal for entry in entries if entry.kind == "summary"]
    borders = [end for end in ends if any(entry.ordinal < end for entry in entries)]
    found: list[Digest] = []
    for last, border in enumerate([*borders, 0]):
        part = [entry for entry in entries if entry.ordinal < border] if border else list(entries)
        reason: Why = why if last == len(borders) else "compaction"
        made = _digest(part, stated, title=title, cwd=cwd, why=reason)
        if made is not None:
            found.append(made)
    return found


def _digest(entries: Sequence[Entry], stated: Sequence[Stated], *, title: str, cwd: str, why: Why) -> Digest | None:
    prompts = [entry for entry in entries if entry.kind in ("user", "relayed") and not _NOT_SAID.match(entry.text)]
    answers = [entry for entry in entries if entry.kind == "assistant" and entry.text.strip()]
    if not prompts and not answers:
        return None
    upto = entries[-1].ordinal
    work = fold(entries, cwd=cwd)
    known = [one for one in stated if one.ordinal <= upto]
    outcome = _outcome(work, known, prompts, answers)
    goal = _goal(prompts, title)
    items = [
        *goal,
        *_said(known, goal[0].text if goal else ""),
        *_done(work, cwd),
        *_named(entries, prompts),
        *_left_open(work, prompts, answers),
    ]
    last = _last(answers)
    if last is not None:
        items.append(last)
    calls, tokens = work.calls, sum(entry.tokens for entry in entries)
    at = max(entry.at for entry in entries)
    body = _told(items, outcome, work, prompts=len(prompts), calls=calls, tokens=tokens, begun=entries[0].at, ended=at)
    return Digest(why, upto, at, body, outcome, len(prompts), calls, tokens, tuple(_bounded(items)))


# --- what is harvested


def _goal(prompts: Sequence[Entry], title: str) -> list[Item]:
    """The first words that say something, a plan's heading, or the host's title; and the words it is known by."""
    found: list[Item] = []
    words: dict[str, str] = {}
    for prompt in prompts:
        plan, _ = claude_work.plan_given(prompt.text)
        rows = lines_of_prose((plan or prompt.text)[:4000])
        if not found and rows and (plan or len(content_words(rows[0])) >= 3 or len(content_words(prompt.text)) >= 5):
            said = rows[0] if plan or len(content_words(rows[0])) >= 3 else " ".join(rows[:3])
            found.append(Item("goal", cut(squeeze(title or said), GOAL), prompt.uuid))
        for word in content_words((plan or prompt.text)[:WORDS_FROM]):
            if len(word) > 2 and not word.isdigit():
                words.setdefault(stem(word), prompt.uuid)
    if not found and (title or prompts):
        found.append(Item("goal", cut(squeeze(title or prompts[0].text), GOAL), prompts[0].uuid if prompts else ""))
    return [*found, *(Item("word", word, uuid) for word, uuid in list(words.items())[:WORDS])]


def _said(stated: Sequence[Stated], goal: str) -> list[Item]:
    """Corrections, and decisions: the user's and the surest first; no sentence twice, nor one that the goal is."""
    found: dict[str, Item] = {}
    for one in sorted(stated, key=lambda one: (one.authority != "user", -one.confidence, one.ordinal)):
        if squeeze(one.text)[:ENTRY] in goal:
            continue
        if one.gate == "correction" and one.authority == "user":
            found.setdefault(one.text, Item("correction", squeeze(one.text), one.uuid))
        elif one.category in ("decision", "constraint", "convention", "preference"):
            found.setdefault(one.text, Item("decision", squeeze(one.text), one.uuid))
    return list(found.values())


def _done(work: Work, cwd: str) -> list[Item]:
    found: list[Item] = []
    root = cwd.rstrip("/") + "/"
    for path, uuids in sorted(work.files.items(), key=lambda one: -len(one[1])):
        short = path.removeprefix(root) if cwd else path
        found.append(Item("file", cut(short, 200), uuids[-1], amount=len(uuids)))
    told = [ran for ran in work.ran.values() if is_told(ran)]
    for ran in sorted(told, key=lambda one: (one.state == "passed", one.at)):
        found.append(Item("command", ran.command, ran.uuid, ran.state, ran.failures or ran.runs))
        if ran.error:
            found.append(
                Item("error", f"{check_of(ran.command) or ran.command}: {ran.error}", ran.error_uuid, ran.state)
            )
    found += [Item("commit", f"{one.hash} {cut(one.subject, ENTRY)}", one.uuid) for one in work.commits]
    begun = {**work.branches, **{one.branch: one.uuid for one in work.commits}}
    found += [Item("branch", name, uuid) for name, uuid in begun.items()]
    found += [Item("plan", cut(squeeze(plan), 400), uuid) for plan, uuid in work.plans]
    return found


def _named(entries: Sequence[Entry], prompts: Sequence[Entry]) -> list[Item]:
    """What the session says that it builds on: a plan, a transcript, a commit, an earlier conversation."""
    found: list[Item] = []
    for prompt in prompts:
        plan, transcript = claude_work.plan_given(prompt.text)
        if plan:
            found.append(Item("plan_given", cut(squeeze(plan), 400), prompt.uuid))
        if transcript:
            found.append(Item("transcript", transcript, prompt.uuid))
        if len(prompt.text) <= TYPED:
            found += [Item("names", name[1], prompt.uuid) for name in _NAMES.finditer(prompt.text)]
            if _LAST_TIME.search(prompt.text):
                found.append(Item("continued", cut(squeeze(prompt.text), SENTENCE), prompt.uuid))
    first = next((entry for entry in entries if entry.kind in ("user", "summary", "assistant")), None)
    if first is not None and first.kind == "summary" and claude_work.is_continued(first.text):
        found.append(Item("continued", "a summary of an earlier conversation", first.uuid))
    return list(dict.fromkeys(found))


def _left_open(work: Work, prompts: Sequence[Entry], answers: Sequence[Entry]) -> list[Item]:
    """To-dos of the last list, what the last message leaves for later, its question, a prompt without an answer."""
    found = [Item("open", cut(squeeze(body), ENTRY), uuid) for body, uuid in work.open]
    if prompts and (not answers or answers[-1].ordinal < prompts[-1].ordinal):
        return [
            *found,
            Item("open", f"asked and not answered: {cut(squeeze(prompts[-1].text), ENTRY)}", prompts[-1].uuid),
        ]
    if answers:
        said = _prose(answers[-1].text)
        left = [line for line in said if _LEFT.search(line) and not _ASKS.search(line)]
        asked = [line for line in said[-2:] if _ASKS.search(line)]
        found += [Item("open", cut(line, SENTENCE), answers[-1].uuid) for line in [*left[:2], *asked[-1:]]]
    return found


def _last(answers: Sequence[Entry]) -> Item | None:
    """The first whole sentence of the last message that says something by itself, else its last one."""
    for answer in reversed(answers[-3:]):
        said = [line for line in _prose(answer.text) if not _ASKS.search(line)]
        good = [
            line for line in said if not _OFFER.match(line) and not line.endswith(":") and len(content_words(line)) >= 4
        ]
        whole = [line for line in good if line.endswith((".", "!")) and line[:1].isalpha()]
        if good or said:
            return Item("last", cut((whole or good or said[-1:])[0], SENTENCE), answer.uuid)
    return None


def _prose(body: str) -> list[str]:
    return [squeeze(line.replace("**", "")) for row in lines_of_prose(body[-6000:]) for line in sentences(row)]


def _outcome(work: Work, stated: Sequence[Stated], prompts: Sequence[Entry], answers: Sequence[Entry]) -> Outcome:
    checks = [ran for ran in work.ran.values() if check_of(ran.command)]
    latest: dict[str, bool] = {}
    for ran in sorted(checks, key=lambda one: one.at):
        latest[check_of(ran.command)] = ran.passed
    against = [one.ordinal for one in stated if one.gate == "correction" and one.authority == "user"]
    against += work.turned_down
    answered = bool(answers) and (not prompts or answers[-1].ordinal > prompts[-1].ordinal)
    passed_at = max((ran.at for ran in checks if ran.passed), default=0)
    if not all(latest.values()):
        return "failing"
    if work.changed_at and max(against, default=0) > max(work.changed_at, *(one.ordinal for one in work.commits), 0):
        return "rejected"
    if work.changed_at and len(against) >= AGAIN_AND_AGAIN:
        return "corrected"
    if any(one.ordinal > work.changed_at for one in work.commits):
        return "committed"
    if work.changed_at and passed_at > work.changed_at:
        return "checked"
    if work.changed_at:
        return "unchecked"
    return "answered" if answered else "unanswered"


# --- how it is told


def _told(
    items: Sequence[Item],
    outcome: Outcome,
    work: Work,
    *,
    prompts: int,
    calls: int,
    tokens: int,
    begun: str,
    ended: str,
) -> str:
    by: dict[str, list[Item]] = {}
    for item in items:
        by.setdefault(item.kind, []).append(item)
    rows: list[str] = [f"Goal: {item.text}" for item in by.get("goal", ())]
    rows.append(
        f"Outcome: {SAID[outcome]}"
        + (f"; {amount(len(work.rejections), 'call')} turned down" if work.rejections else "")
    )
    rows += _row(
        "Corrected", [cut(one.text, SENTENCE) for one in by.get("correction", ())], TOLD["correction"], ENTRY * 4
    )
    rows += _row("Decided", [cut(one.text, SENTENCE) for one in by.get("decision", ())], TOLD["decision"], ENTRY * 5)
    files = [f"{one.text} x{one.amount}" if one.amount > 1 else one.text for one in by.get("file", ())]
    rows += _row(f"Changed {amount(len(files), 'file')}", files, TOLD["file"], 300, between=", ")
    failed = [
        one for one in by.get("command", ()) if one.state != "passed" and (check_of(one.text) or one.state == "failed")
    ]
    ends = {"mended": "passed in the end", "failed": "failed at the end"}
    rows += _row(
        "Failed", [f"`{cut(one.text, 60)}` {one.amount}x, {ends[one.state]}" for one in failed], TOLD["command"], 260
    )
    rows += _row("Commits", [one.text for one in by.get("commit", ())][::-1], TOLD["commit"], 260)
    rows += _row("Open", [one.text for one in by.get("open", ())], TOLD["open"], 300)
    rows += [f"Last: {item.text}" for item in by.get("last", ())]
    counted = f"{amount(prompts, 'prompt')}, {amount(calls, 'tool call')}, {amount(tokens, 'token')} written"
    rows.append(f"{counted}, {begun[:16].replace('T', ' ')} to {ended[:16].replace('T', ' ')}")
    while len("\n".join(rows)) > LIMIT:
        longest = max(range(len(rows)), key=lambda at: len(rows[at]))
        rows[longest] = cut(rows[longest], len(rows[longest]) * 3 // 4)
    return "\n".join(rows)


def _row(name: str, parts: Sequence[str], most: int, room: int, *, between: str = " | ") -> list[str]:
    """A row of a digest with as many parts as it has room for, and how many more there are."""
    told: list[str] = []
    for part in parts[:most]:
        if told and len(between.join([*told, part])) > room:
            break
        told.append(part)
    if not told:
        return []
    more = len(parts) - len(told)
    return [f"{name}: {between.join(told)}" + (f" (+{more})" if more else "")]


def _bounded(items: Sequence[Item]) -> list[Item]:
    """As many items of each kind as are kept."""
    counts: dict[str, int] = {}
    kept: list[Item] = []
    for item in items:
        counts[item.kind] = counts.get(item.kind, 0) + 1
        if counts[item.kind] <= KEPT and item.text:
            kept.append(item)
    return kept
