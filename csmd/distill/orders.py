"""What a user's turn asks for, in the user's own words, and which remarks of a reviewer it hands on; pure.

A habit is in no single turn: it is an order given again in session after session, counted by what its wordings share
(csmd/believe/habits.py). So an order is kept as it was said, without courtesies. Long turns are plans, reports and
pasted text, in which the same words are about something else: of those only what asks for something is looked at.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from csmd import text
from csmd.distill import halves, refusals
from csmd.patterns import at_first_use

#: A turn of at most so many words is looked at whole, of a longer one only sentences that ask for something.
SHORT_WORDS, SENTENCE_WORDS = 40, 30
#: Orders of a turn that are kept, and words of an order.
MOST_ORDERS, ORDER_WORDS, ORDER_CHARACTERS = 4, 8, 60
#: What nothing asks for in so many words is an order when it is short: so many words, and nothing but words.
BARE_WORDS = 7
#: A remark of a reviewer has so many words: a longer text is a document or a plan.
REVIEW_WORDS = range(20, 181)
REVIEW_CHARACTERS = 4_000


class Order(NamedTuple):
    """What a user asks for, or asks to leave (`against`), in small letters and without punctuation."""

    words: str
    against: bool


#: Words before an order that say nothing of it, and words with which somebody asks for something.
_LEAD = at_first_use(
    r"\W*(?:(?:yes|yeah|ok|okay|sure|great|fine|perfect|now|then|and|also|but|so|please|pls|just|maybe|first|next|again|let['’]?s|let us"
    r"|(?:can|could|would|should|shall) (?:you|we|i)|i(?:['’]d| would) like (?:you )?to|i want (?:you )?to|(?:we|you) (?:should|need to|want to)"
    r"|make sure(?: that| to)?|go ahead and)\b[\s,.:!]{0,8}){1,8}",
    re.IGNORECASE,
)
_ASKS = at_first_use(
    r"\b(?:(?:can|could|would|should|shall) (?:you|we|i)|let['’]?s|please|pls|make sure|i(?:['’]d| would) like|i want|we (?:should|need|want))\b",
    re.IGNORECASE,
)
#: How a question begins, or what somebody tells: no order.
_NO_ORDER = at_first_use(
    r"(?:why|what|how|where|when|which|who|is|are|does|do (?:we|you|i|it|this|that|so)|did|was|were|has|have|i|we|you|he|she|they|it|this|that|there|the|an?|my"
    r"|our|no|not|if|in|on|at|for|to|with|but|or|as|because|same|more|all|both|never ?mind|continue|go on|looks?|sounds?|works?|thanks?|good|nice|hi|hello|hey)\b",
    re.IGNORECASE,
)
#: Asks to leave what follows; what only waits is left for now and no more.
_AGAINST = at_first_use(r"(?:don['’]?t|do not|never|no need (?:to|for)|without|stop|skip|no more)\b\s*", re.IGNORECASE)
_WAITS = at_first_use(r"\b(?:yet|for now|until|unless|before|right now|already)\b", re.IGNORECASE)
_BETWEEN = at_first_use(r"[,;]\s+|\s+(?:and )?then\s+")
#: What says in a remark what is wrong.
_FAULT = at_first_use(
    r"\b(?:(?:does|do|is|are|was|were|has|have|can|could|will|would)n['’]t|(?:does|do|is|are|was|were|will|would|can) (?:not|also|never)|cannot|lacks?|missing|incorrect(?:ly)?"
    r"|inaccurate|silently|unconditionally|duplicat\w+|fails?|breaks?|hangs?|(?:may|might|could|can|will) (?:\w+ )?(?:break|fail|hang|cause|lead|split|leak|expose|crash|drop)"
    r"|consider \w+ing|(?:high|medium|low|critical) severity|nit)\b|\w\.\w{1,4}:\d",
    re.IGNORECASE,
)
#: A reviewer's words: advice in nobody's first person.
_ADVICE = at_first_use(
    r"\b(?:consider|should|instead|lacks?|missing|never|incorrect(?:ly)?|inaccurate|duplicat\w+|without|could|may|can (?:cause|lead|break|hang)|unconditionally|silently)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = at_first_use(r"\b(?:I|I'm|I'd|I've|we|we're|my|our|us|let's|me)\b", re.IGNORECASE)
#: What somebody quotes, so long that it can be a remark; and what leads in to a pasted one.
_QUOTED_AT_LENGTH = at_first_use(r'(?<!\w)["“]([^"“”]{100,2000})["”](?!\w)')
LEAD_WORDS = 15


def orders(said: str) -> list[Order]:
    """The first things that a user's turn asks for, each once; a remark that it hands on asks nothing of its own."""
    if remarks(said) == [said]:
        return []
    is_short = len(said.split()) <= SHORT_WORDS
    found: dict[Order, None] = {}
    for sentence in (one for line in text.lines_of_prose(said) for one in text.sentences(line)):
        asks = _ASKS.search(sentence)
        if len(sentence.split()) > SENTENCE_WORDS or not (asks or (is_short and not sentence.endswith("?"))):
            continue
        for piece in _BETWEEN.split(sentence[asks.start() :] if asks else sentence):
            if (order := _order(piece, asked=asks is not None)) is not None:
                found[order] = None
    return list(found)[:MOST_ORDERS]


def _order(piece: str, *, asked: bool) -> Order | None:
    lead = _LEAD.match(piece)
    bare = piece[lead.end() if lead else 0 :].strip()
    against = _AGAINST.match(bare)
    bare = bare[against.end() if against else 0 :]
    if _NO_ORDER.match(bare) or (against and _WAITS.search(bare)):
        return None
    words = text.words(bare)
    if not asked and (len(words) > BARE_WORDS or not all(map(str.isalpha, words))):
        return None
    told = " ".join(words[:ORDER_WORDS])
    if len(told) > ORDER_CHARACTERS or not text.content_words(told) or not words[0].isalpha():
        return None
    return Order(told, against is not None)


def remarks(said: str) -> list[str]:
    """The remarks of a reviewer that a turn hands on: all of it, or what it quotes that is advice in nobody's first person."""
    if len(said) > REVIEW_CHARACTERS:
        return []
    lead, colon, rest = said.partition(":\n")
    body = rest if colon and len(lead.split()) <= LEAD_WORDS else said
    if is_finding(body) and _ADVICE.search(body) and not (refusals.ORDER.match(body) or refusals.refusal(body, "user")):
        return [said]
    quoted = [found[1] for found in _QUOTED_AT_LENGTH.finditer(said)] if halves.names(said) else []
    return [one for one in quoted if _ADVICE.search(one) and not _FIRST_PERSON.search(one)]


def finds_fault(said: str) -> bool:
    """Whether a remark says what is wrong, and does not only say how something should be."""
    return _FAULT.search(said) is not None


def is_finding(said: str) -> bool:
    """Whether a turn tells at some length of named code, and of nobody: whoever found that."""
    if len(said) > REVIEW_CHARACTERS or len(said.split()) not in REVIEW_WORDS:
        return False
    return bool(halves.names(said)) and not _FIRST_PERSON.search(said)
