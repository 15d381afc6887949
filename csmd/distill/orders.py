"""What a user's short words ask for, what they narrow the work to, and which commands serve which purpose: tables.

A habit is in no single turn: it is an order given again in session after session. So an order has a name that is the
same however it is worded ("can we add a test for this?" and "and make sure this is tested" are `add tests`). Long turns
are plans, reports and pasted text, in which the same words are about something else: of those only what the user adds
is looked at. Policy is in the tables; the code walks them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from csmd import text
from csmd.patterns import at_first_use

#: A turn of at most so many words is looked at whole, of a longer one only sentences that ask for something.
SHORT_WORDS, SENTENCE_WORDS = 40, 30
#: "commit" in a turn of more words than these is spoken of and not asked for.
BARE_WORDS = 15
#: A pasted remark of a reviewer has so many words: a longer text is a document or a plan.
REVIEW_WORDS = range(20, 181)
REVIEW_CHARACTERS = 4_000
SUBJECT_CHARACTERS = 60
#: The name of handing on what a reviewer wrote; no words ask for it.
HANDED_ON = "hand on review"


@dataclass(frozen=True, slots=True)
class Order:
    """One thing that users ask for or narrow the work to; `subject` is its name, `most_words` how long its turn may be."""

    subject: str
    kind: Literal["order", "scope"]
    said: re.Pattern[str]
    most_words: int


def _order(subject: str, *patterns: str, kind: Literal["order", "scope"] = "order", most_words: int = 10_000) -> Order:
    return Order(subject, kind, at_first_use("|".join(patterns), re.IGNORECASE), most_words)


#: What may stand before the verb of a bare order: "yes, then commit".
_LEAD = r"^\W{0,8}(?:(?:yes|yeah|ok|okay|sure|great|fine|perfect|now|then|and|also|please|just|let'?s|can (?:you|we)|could (?:you|we))[\s,.:!]+){0,4}"

ORDERS: tuple[Order, ...] = (
    _order(
        "add tests",
        r"\b(?:add|adds|write|create|include|extend|propose|have|(?<!no )need)\b[^.?!]{0,45}\b(?:test ?cases?|(?:unit|integration|regression)[- ]tests?|tests?)\b(?! (?:repo|data|skill|user|server|file|run))",
        r"\b(?:make sure|ensure)\b.{0,30}\b(?:is|are|gets?) tested\b",
        r"\bcover\b.{0,30}\bby (?:a )?tests?\b",
    ),
    _order("run the tests", r"\b(?:re-?)?run\b.{0,25}\b(?:tests|test suite|specs)\b"),
    _order("fix the tests", r"\bfix\b.{0,25}\btests?\b"),
    _order("fix lint", r"\bfix\b.{0,25}\b(?:lint\w*|type errors|warnings)\b"),
    _order(
        "double check",
        r"\b(?:double|triple|tripple)\b[ /-]*(?:triple|tripple)?[ -]*(?:check|review|verify)",
        r"\b(?:verify|validate|review)\b.{0,40}\bagain\b",
        r"\bare you (?:really )?sure\b",
    ),
    _order("explain", r"\bexplain\b", r"\bwalk me through\b", r"\bhelp me understand\b"),
    _order(
        "review the changes",
        r"\b(?:review|look at|look over|go over|check)\b.{0,30}\b(?:changes|diff|updates|commits?)\b.{0,20}\b(?:branch|pr|main|worktree)\b",
        r"\breview\b.{0,20}\b(?:changes|diff|branch|pr|pull request|merge request|commits?)\b",
    ),
    _order(
        "address review",
        r"\b(?:address|fix|handle|resolve|incorporate|look at|take a look at|have a look at|check|more)\b.{0,40}\b(?:review(?:er)?s?'?|pr|mr|open|bot|bugbot|copilot)\b.{0,15}\b(?:comments?|feedback|findings?|remarks?)\b",
        r"\baddress\b.{0,20}\b(?:comments?|feedback|findings|remarks)\b",
    ),
    _order(
        "remove completely",
        r"\b(?:completely|entirely|fully|altogether)\s+(?:remove|delete|drop|get rid)\b",
        r"\b(?:remove|delete|drop)\b.{0,40}\b(?:completel?e?y|completely|entirely|altogether)\b",
        r"\b(?:obsolete|unused|unneeded|no longer needed|not needed any ?more|dead code)\b.{0,60}\b(?:remove|delete|drop)\b",
        r"\b(?:remove|delete|drop)\b.{0,40}\b(?:obsolete|unused|unneeded|dead code|deprecated)\b",
        r"\bno need to deprecate",
    ),
    _order(
        "update the documentation",
        r"\b(?:update|adjust|extend|add|mention|document|reflect)\b.{0,40}\b(?:docs?|documentation|readme(?:\.md)?|claude\.md|architecture\.md)\b",
        r"\bdocument (?:this|that|it)\b",
    ),
    _order("update the changelog", r"\bchange-?log\b"),
    _order(
        "commit",
        _LEAD + r"commit\b(?! message)",
        r"(?:\b(?:and|then|please)|,)\s+commit\b(?! message)",
        r"(?<=n't )commit\b|(?<=not )commit\b|(?<=never )commit\b",
        r"\bcommit (?:this|it|these|all|everything|the (?:changes|merge|fix))\b",
        most_words=BARE_WORDS,
    ),
    _order("push", _LEAD + r"push\b", r"(?:\b(?:and|then|please)|,)\s+push\b(?! (?:back|notification))", r"(?<=n't )push\b|(?<=not )push\b|(?<=never )push\b", most_words=BARE_WORDS),
    _order(
        "take in the main branch",
        r"\b(?:merge|rebase|update|pull|sync)\b.{0,30}\b(?:origin|upstream|main|master|trunk)\b",
    ),
    _order("open a pull request", r"\b(?:open|create|make|raise|submit)\b.{0,15}\b(?:pr|pull request|merge request)\b(?! (?:desc|summ|body))"),
    _order(
        "release", _LEAD + r"release\b", r"\b(?:cut|make|do|create|prepare|tag|publish)\b.{0,20}\brelease\b", r"\bbump\b.{0,15}\bversion\b",
        most_words=BARE_WORDS,
    ),
    _order("plan first", r"\b(?:create|make|write|draft|do)\b.{0,15}\bplan\b", r"\bplan (?:this|it|first)\b", r"\bbrainstorm\b", r"\blet'?s discuss\b"),
    _order(
        "describe the pull request",
        r"\b(?:pr|pull request) (?:description|summary|body|text)\b",
        r"\b(?:description|summary)\b.{0,15}\b(?:pr|pull request)\b",
    ),
    _order("simplify", r"\bsimplif(?:y|ication)\b|\bsimplifier\b"),
    # "that they don't duplicate each other" asks for nothing contrary.
    _order("no duplication", r"\b(?:don'?t |do not )?(?:dedup\w*|duplicat\w+|replicat\w+)\b"),
    _order(
        "keep alike",
        r"\bdo the same (?:for|in|with)\b",
        r"\b(?:both|they|these|so it) align\b",
        r"\balign (?:it|this|them|with)\b",
        r"\bparity\b",
        r"\bconsistent with\b",
        r"\bsimilar (?:ones?|tests?) (?:to|for|in)\b",
        r"\bcompare the \w+ and (?:the )?\w+",
    ),
    _order(
        "look without changing", r"\b(?:don'?t|do not|without) chang(?:e|ing) (?:any|the code|code)", r"\bjust (?:let me know|tell me)\b",
        r"\b(?:don'?t|do not) (?:edit|modify|implement|touch)\b", r"\bread[- ]only\b", kind="scope",
    ),
    _order(
        "a small step at a time", r"\bone (?:at a time|by one|after the other)\b", r"\bsmall(?:er)? (?:commits?|steps?|changes?|prs?|diffs?)\b",
        r"\bonly\b.{0,60}\bfor now\b", kind="scope",
    ),
    _order(
        "nothing but this", r"\bonly (?:this|that|the|in)\b.{0,25}\b(?:package|file|module|folder|directory|function|branch|part|crate|component)\b",
        r"\bleave the (?:others?|rest)\b", r"\bnothing else\b", kind="scope",
    ),
    _order("choose by number", _LEAD + r"(?:i(?:'d)? (?:like|prefer)|do|fix|address|implement|take|go (?:with|for))?\s*(?:all|option|issue|number|point|#)?\s*\d\b(?:\W*(?:and|\+|&)?\W*\d\b)*\W*(?:first|only|please)?\W*$", kind="scope", most_words=BARE_WORDS),
)  # fmt: skip

#: Turns the order that follows within a few words round: "no need to commit". What waits ("not yet") is none.
_AGAINST = re.compile(
    r"\b(?:don'?t|do not|never|no need (?:to|for)|without|stop|skip|no more|not necessary to)\s+(?:\w+\s+){0,2}$", re.I
)
_NOT_YET = re.compile(r"\b(?:yet|for now|until|unless|before|right now|already)\b", re.IGNORECASE)
_ASKS = re.compile(
    r"\b(?:can|could|should|would|shall) (?:you|we|i)\b|\blet'?s\b|\bplease\b|\bi(?:'d| would) like\b|\bi want\b|\bwe (?:should|need|want)\b|\bmake sure\b|\balso\b|\bare you (?:really )?sure\b",
    re.IGNORECASE,
)
_ONLY_ASKS = re.compile(r"\W*(?:why|what|how|where|when|which|who|is|are|does|do we|did|was|were|has|have)\b", re.I)
#: A reviewer's words: advice about named code, in nobody's first person.
_ADVICE = re.compile(
    r"\b(?:consider|should|instead|lacks?|missing|never|incorrect(?:ly)?|inaccurate|duplicat\w+|without|could|may|can (?:cause|lead|break|hang)|unconditionally|silently)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"`[^`]+`|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\w\(\)|\b\w+_\w+\b|\b[\w-]+\.(?:go|py|ts|js|rs|java|rb|sh|c|cpp|yml|yaml|json)\b|\b(?:High|Medium|Low) Severity\b")  # fmt: skip
_FAULT = re.compile(
    r"\b(?:(?:does|do|is|are|was|were|has|have|can|could|will|would)n['’]t|(?:does|do|is|are|was|were|will|would|can) (?:not|also|never)|cannot|lacks?|missing|incorrect(?:ly)?"
    r"|inaccurate|silently|unconditionally|duplicat\w+|fails?|breaks?|hangs?|(?:may|might|could|can|will) (?:\w+ )?(?:break|fail|hang|cause|lead|split|leak|expose|crash|drop)"
    r"|consider \w+ing|(?:high|medium|low|critical) severity|nit)\b|\w\.\w{1,4}:\d",
    re.IGNORECASE,
)
_DOT_FILE = re.compile(r"(?<![\w.])\.[a-z]{2,20}\b")
_FIRST_PERSON = re.compile(r"\b(?:I|I'm|I'd|I've|we|we're|my|our|us|let's|me)\b", re.IGNORECASE)
#: How somebody begins who says in dense words what to do.
_OWN_ORDER = re.compile(
    r"\W*(?:please|can|could|now|also|then|add|create|write|implement|fix|update|make|change|remove|use|move|rename|build|refactor|run"
    r"|set ?up|handle|replace|extract|convert|support|generate|find|look|check|review|explain|show|given|you|your)\b",
    re.IGNORECASE,
)
_OUTPUT = re.compile(
    r"^[ \t]{0,40}(?:[$>❯✓✗#|]|---|===|Error\b|FAIL\b|\w*Exception\b|Traceback|Implement the following|Operation stopped)",
    re.M,
)
_REVIEW_LEAD = re.compile(r"^\W*(?:i (?:just )?(?:got|received)|can you (?:also )?(?:take a look at|check)|and this is for)\b[^\n]{0,90}?[:\n\"]", re.I)  # fmt: skip
#: What somebody quotes, so long that it can be a remark.
_QUOTED_AT_LENGTH = re.compile(r'(?<!\w)["“]([^"“”]{100,2000})["”](?!\w)')

#: Words before an order that say nothing of it, and short turns that are none.
_POLITE = re.compile(
    r"^\W{0,8}(?:(?:yes|yeah|ok|okay|sure|great|fine|perfect|now|then|and|also|please|just|let'?s|let us|can you|can we|could you|could we|would you|i want you to|i'?d like you to)\b[\s,.:!]{0,8}){1,8}"
    r"|[\s,]{0,8}\b(?:please|now|again|for me|too|as well|thanks|thank you)\W{0,8}$",
    re.IGNORECASE,
)
_NO_ORDER = re.compile(
    r"^(?:go (?:ahead|on)|do (?:it|that|this|so|both)|carry on|continue|try|looks?|sounds?|thank|good|nice|keep (?:going|on)|i|you|we|it|that|this"
    r"|the|there|they|not?|same|more|all|never ?mind|works?|hi|hello|hey|which|both|maybe|but|or|if|as|with|in|on|for|an?)\b|[^a-z' -]",
    re.IGNORECASE,
)
#: An order by its own words has so many of them.
OWN_WORDS = range(2, 8)
_HAND_ON = Order(HANDED_ON, "order", re.compile(r"(?!)"), 10_000)
#: The names of everything that a user may be found to have asked for.
SUBJECTS: frozenset[str] = frozenset({HANDED_ON, *(order.subject for order in ORDERS)})


def orders(said: str) -> list[tuple[Order, bool]]:
    """What a user's turn asks for, each once in the order of the table, and whether it asks for the contrary."""
    if is_pasted_review(said):
        return [(_HAND_ON, False)]
    found: list[tuple[Order, bool]] = []
    units, length = _units(said), len(said.split())
    for order in ORDERS:
        if length > order.most_words:
            continue
        match = next(((unit, hit) for unit in units if (hit := order.said.search(unit))), None)
        if match is None:
            continue
        unit, at = match
        against = bool(_AGAINST.search(unit[: at.start()]))
        if not (against and _NOT_YET.search(unit[at.start() :])):
            found.append((order, against))
    return found


def own_words(said: str) -> str:
    """What a short turn orders that the table has no name for, in its own words without courtesies; "" for none."""
    bare = text.normalise(_POLITE.sub("", _POLITE.sub("", said)))
    if len(bare.split()) not in OWN_WORDS or len(bare) > SUBJECT_CHARACTERS or len(text.content_words(bare)) < 2:
        return ""
    return (
        ""
        if _NO_ORDER.search(bare) or _ONLY_ASKS.match(bare) or (said.rstrip().endswith("?") and not _ASKS.search(said))
        else bare
    )


def _units(said: str) -> list[str]:
    """The pieces of a turn that may be an order."""
    if len(said.split()) <= SHORT_WORDS:
        whole = text.squeeze(said)
        return [whole] if _ASKS.search(whole) or not _ONLY_ASKS.match(whole) else []
    sentences = [sentence for line in text.lines_of_prose(said) for sentence in text.sentences(line)]
    asking = [one for one in sentences if len(one.split()) <= SENTENCE_WORDS and _ASKS.search(one)]
    return [one for one in asking if _FIRST_PERSON.search(one) or "you" in one.casefold().split()]


def remarks(said: str) -> list[str]:
    """The remarks of a reviewer that a turn hands on: all of it, or what it quotes that is advice in nobody's first person."""
    if len(said) > REVIEW_CHARACTERS:
        return []
    if is_pasted_review(said):
        return [said]
    quoted = [found[1] for found in _QUOTED_AT_LENGTH.finditer(said)] if _NAMED.search(said) else []
    return [one for one in quoted if _ADVICE.search(one) and not _FIRST_PERSON.search(one)]


def finds_fault(said: str) -> bool:
    """Whether a remark says what is wrong, and does not only say how something should be."""
    return _FAULT.search(said) is not None


def is_finding(said: str) -> bool:
    """Whether a turn tells at some length of named code, and of nobody: whoever found that."""
    if len(said) > REVIEW_CHARACTERS:
        return False
    named = _NAMED.search(said) or _DOT_FILE.search(said)
    return len(said.split()) in REVIEW_WORDS and named is not None and not _FIRST_PERSON.search(said)


def is_pasted_review(said: str) -> bool:
    """Whether a turn hands on a reviewer's remark: advice about named code without a word in the first person."""
    lead = _REVIEW_LEAD.match(said)
    body = said[lead.end() :] if lead else said
    if len(body.split()) not in REVIEW_WORDS or _OUTPUT.search(body) or _OWN_ORDER.match(body):
        return False
    return bool(_ADVICE.search(body) and _NAMED.search(body) and not _FIRST_PERSON.search(body))
