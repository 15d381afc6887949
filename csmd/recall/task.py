"""Which of a session's prompts sets what it is at: the latest one that gives something to do; pure.

Not "yes", "go on" and "commit it", not a question, not what mends or adds to what is under way: these say no new task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from csmd.capture.hosts import claude_tool_calls
from csmd.distill.work import Entry
from csmd.text import content_words, sentences, squeeze

#: Words that an order has at least which says what is to be done; so much of a prompt is looked at.
SUBSTANTIAL, LOOKED_AT = 3, 2_000
#: What adds to the task under way ("also ...", "and ...") is short; a longer one is a task of its own.
ADDED_WORDS = 5
_LEAD = r"^(?:\W*(?:yes|yeah|yep|no|ok|okay|sure|great|perfect|fine|good|cool|thanks|thank you|now|then|and|also|please|just|go ahead|let['’]?s|(?:can|could) you)\b)*\W*"
#: A part of a prompt that takes what is there further and says nothing new.
_GOES_ON = re.compile(
    rf"{_LEAD}(?:$|(?:go on|go ahead|go for it|continue|proceed|carry on|keep going|do (?:it|that|this|so)|try (?:it )?again|retry|resume|approved?|lgtm"
    r"|(?:that |this |it )?(?:looks?|sounds?|seems?|works?|is|['’]s) (?:very |really |all )?(?:good|great|fine|right|ok|okay|correct|perfect)"
    r"|works (?:now|for me)|nice|well done|commit|push|merge|rebase|stage|(?:open|create|make|update) (?:a |the )?(?:pr|pull request|merge request)"
    r"|(?:re-?)?run (?:it|them|that|(?:all )?(?:the )?(?:tests?|test suite|linter|lint|checks?|formatter|build|ci))|format|lint)\b)",
    re.IGNORECASE,
)
#: It mends what the assistant has just done or said.
_MENDS = re.compile(
    r"^\W*(?:no|nope|wrong|actually|stop|wait|undo|revert|hm+|oops|sorry|that['’]?s (?:not|wrong)|not (?:like|that|what)|i (?:said|meant)|you (?:forgot|missed|broke)|still)\b",
    re.IGNORECASE,
)
_ADDS = re.compile(r"^\W*(?:also|and(?! now)|plus|oh and|one more)\b", re.IGNORECASE)
#: What is to be done is ordered, asked for, or wanted mended; in other languages and forms a prompt sets no task by itself.
_VERBS = (
    "add fix make create write use change move put remove delete drop rename replace revert split merge port migrate convert "
    "implement build design refactor rewrite rework clean simplify extend enable disable support improve speed optimi[sz]e "
    "update upgrade bump set turn configure install wire hook test cover check verify review investigate debug find figure "
    "look show explain document describe draft prepare plan generate draw plot import export parse handle release ship deploy "
    "start stop raise lower let get give take try keep help translate compare measure profile analy[sz]e search list read"
).replace(" ", "|")
_ORDER = re.compile(rf"{_LEAD}(?:(?:next|first|finally|instead)\b\W*)?(?:{_VERBS})\b", re.IGNORECASE)
_WANTED = re.compile(
    r"\b(?:please|i(?: want| need|['’]d like| would like)|we (?:need|want|should|must)|let['’]?s|your task|the (?:next )?(?:task|goal) is|to-?do:)\b"
    r"|\b(?:fails?|failing|failed|broken|breaks|crash\w*|bug|hangs?|blank|does(?:n['’]t| not) work|is(?:n['’]t| not) working|too slow|error:)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:(?:can|could|would|will) (?:you|we)|let['\u2019]?s|please|(?:take|have) a look|i(?:['\u2019]d| would) like"
    r"|i(?: want| need) (?:you )?to)\b",
    re.IGNORECASE,
)
_PART = re.compile(r"(?<=[.!?;:]) |,? (?:and|then|and then) (?=\w)|, ")


def sets_task(said: str) -> bool:
    """Whether a prompt gives its session something new to do; a plan that is handed over does."""
    if claude_tool_calls.plan_given(said)[0]:
        return True
    body = squeeze(said[:LOOKED_AT])
    words = len(content_words(body))
    if words < SUBSTANTIAL or _MENDS.match(body) or (_ADDS.match(body) and words < ADDED_WORDS):
        return False
    parts = [part for part in _PART.split(body) if part.strip() and not _GOES_ON.match(part)]
    if any(_ORDER.match(part) and not part.rstrip().endswith("?") for part in parts) or _REQUEST.search(body):
        return bool(parts)
    only_asks = all(one.rstrip("\"')*_ ").endswith("?") for one in sentences(body))
    return bool(parts) and not only_asks and bool(_WANTED.search(body))


def tasks(prompts: Sequence[Entry]) -> list[Entry]:
    """The prompts of a session that set its task, the latest first; the first and the last that say something for none."""
    found = [one for one in prompts if sets_task(one.text)][::-1]
    return found or [one for one in prompts if len(content_words(one.text)) >= SUBSTANTIAL][::-1] or list(prompts[:1])
