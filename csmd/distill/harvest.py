"""What a digest is made of: sentences as they were said, and what was done, each with its turn; pure.

Nothing is paraphrased: a sentence is cut at its room and else stands as its author wrote it. What is pasted is not taken
for what the user names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from csmd import quotations
from csmd.capture.hosts import claude_tool_calls
from csmd.distill import refusals
from csmd.distill.work import Entry, Work, check_of, is_told
from csmd.text import content_words, cut, lines_of_prose, sentences, squeeze, stem

ItemKind = Literal[
    "goal", "word", "decision", "correction", "file", "command", "error", "commit", "branch", "plan", "plan_given",
    "transcript", "names", "continued", "open", "last",
]  # fmt: skip

#: Characters of a harvested sentence, a goal, an entry of a list.
SENTENCE, GOAL, ENTRY = 170, 220, 90
#: Words that a goal is compared by, and how much of the user's words is looked at for them.
WORDS, WORDS_FROM = 24, 600
_LEFT = re.compile(
    r"\b(?:still (?:needs?|to do|open|missing|fails?)|not yet|remains? to|left to do|follow[- ]up|to-?do:|next step"
    r"|i['’]ll .{0,60}\b(?:later|next|once|after)\b|haven['’]t (?:yet|been able)|out of scope)", re.I,
)  # fmt: skip
#: A case and how something behaves in it: nothing is left to do.
_BEHAVES = re.compile(r"\W{0,6}not yet \w{1,30}\W{0,4}:", re.I)
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


def goal(prompts: Sequence[Entry], title: str, answers: Sequence[Entry] = ()) -> list[Item]:
    """The first words that say something, a plan's heading, or the host's title; and the words it is known by.

    What a prompt quotes, or a program printed, says nothing; where every prompt is such a paste the first answer does.
    """
    found: list[Item] = []
    words: dict[str, str] = {}
    for prompt in prompts:
        if found and len(words) >= WORDS:
            break
        plan, _ = claude_tool_calls.plan_given(prompt.text)
        own = plan or quotations.own_words(prompt.text)
        rows = [row for row in lines_of_prose(own[:4000]) if plan or refusals.refusal(row, "user") != "printed"]
        if not found and rows and (plan or len(content_words(rows[0])) >= 3 or len(content_words(" ".join(rows))) >= 5):
            said = rows[0] if plan or len(content_words(rows[0])) >= 3 else " ".join(rows[:3])
            found.append(Item("goal", cut(squeeze(title or said), GOAL), prompt.uuid))
        for word in content_words((plan or prompt.text)[:WORDS_FROM]):
            if len(word) > 2 and not word.isdigit():
                words.setdefault(stem(word), prompt.uuid)
    if not found and (title or prompts):
        own = _typed(prompts[0].text) if prompts else ""
        summed = last(answers[:1])
        said = title or own or (summed.text if summed else prompts[0].text)
        found.append(Item("goal", cut(squeeze(said), GOAL), prompts[0].uuid if prompts else ""))
    return [*found, *(Item("word", word, uuid) for word, uuid in list(words.items())[:WORDS])]


def _typed(prompt: str) -> str:
    """What of a prompt is neither quoted nor printed by a program."""
    rows = lines_of_prose(quotations.own_words(prompt)[:4000])
    return " ".join(row for row in rows if refusals.refusal(row, "user") != "printed")


def said(stated: Sequence[Stated], goal: str) -> list[Item]:
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


def done(work: Work, cwd: str) -> list[Item]:
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


def named(entries: Sequence[Entry], prompts: Sequence[Entry]) -> list[Item]:
    """What the session says that it builds on: a plan, a transcript, a commit, an earlier conversation."""
    found: list[Item] = []
    for prompt in prompts:
        plan, transcript = claude_tool_calls.plan_given(prompt.text)
        if plan:
            found.append(Item("plan_given", cut(squeeze(plan), 400), prompt.uuid))
        if transcript:
            found.append(Item("transcript", transcript, prompt.uuid))
        if len(prompt.text) <= TYPED:
            found += [Item("names", name[1], prompt.uuid) for name in _NAMES.finditer(prompt.text)]
            if _LAST_TIME.search(prompt.text):
                found.append(Item("continued", cut(squeeze(prompt.text), SENTENCE), prompt.uuid))
    first = next((entry for entry in entries if entry.kind in ("user", "summary", "assistant")), None)
    if first is not None and first.kind == "summary" and claude_tool_calls.is_continued(first.text):
        found.append(Item("continued", "a summary of an earlier conversation", first.uuid))
    return list(dict.fromkeys(found))


def left_open(work: Work, prompts: Sequence[Entry], answers: Sequence[Entry], *, is_over: bool = False) -> list[Item]:
    """To-dos of the last list, what the last message leaves for later, its question, a prompt without an answer.

    Once a session is over, what was changed behind its last prompt has answered that.
    """
    found = [Item("open", cut(squeeze(body), ENTRY), uuid) for body, uuid in work.open]
    if prompts and (not answers or answers[-1].ordinal < prompts[-1].ordinal):
        if is_over and work.changed_at > prompts[-1].ordinal:
            return found
        unanswered = f"asked and not answered: {cut(squeeze(prompts[-1].text), ENTRY)}"
        return [*found, Item("open", unanswered, prompts[-1].uuid)]
    if answers:
        said = _prose(answers[-1].text)
        left = [line for line in said if _LEFT.search(line) and not (_ASKS.search(line) or _BEHAVES.match(line))]
        asked = [line for line in said[-2:] if _ASKS.search(line)]
        found += [Item("open", cut(line, SENTENCE), answers[-1].uuid) for line in [*left[:2], *asked[-1:]]]
    return found


def last(answers: Sequence[Entry]) -> Item | None:
    """The first whole sentence of the last message that says something by itself, else its last one."""
    for answer in reversed(answers[-3:]):
        said = [line for line in _prose(answer.text) if not _ASKS.search(line)]
        good = [
            line
            for line in said
            if not refusals.refusal(line, "assistant") and not line.endswith(":") and len(content_words(line)) >= 4
        ]
        whole = [line for line in good if line.endswith((".", "!")) and line[:1].isalpha()]
        if good or said:
            return Item("last", cut((whole or good or said[-1:])[0], SENTENCE), answer.uuid)
    return None


def _prose(body: str) -> list[str]:
    return [squeeze(line.replace("**", "")) for row in lines_of_prose(body[-6000:]) for line in sentences(row)]
