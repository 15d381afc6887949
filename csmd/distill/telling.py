"""How a chosen sentence is told: without what leads into it, what is said in passing, and what only asks; pure.

What is left is never rewritten, only cut at its ends; where nothing would be left, nothing is cut.
"""

from __future__ import annotations

import re

from csmd.distill.standing import is_detail
from csmd.patterns import at_first_use
from csmd.text import content_words, sentences, words

#: What is left of a statement once something is cut must still say something: words, and words with content.
LEAST_WORDS, LEAST_CONTENT = 4, 3
#: A question of more words says something itself.
MOST_ASKED = 8


def _re(pattern: str) -> re.Pattern[str]:
    return at_first_use(pattern, re.IGNORECASE)


#: What opens a sentence and says nothing once it stands alone; taken off one after the other.
LEAD_INS = _re(
    r"^\W{0,2}(?:(?:ok(?:ay)?|yes|yeah|no|nope|sorry|well|wait|again|btw|by the way|fyi|for the record"
    r"|done|great|thanks|perfect|nice|cool|right|exactly|sure)\b[,.!:;-]{1,3} "
    r"|(?:ok(?:ay)?|yeah|hmm{0,8}|ah|oh|so|and|but|also|then|actually|plus)\b,? (?!(?:called|far|that|many|much|long)\b)"
    r"|(?:that['’]s|this is|that is) (?:wrong|not (?:quite )?(?:correct|right|true)|incorrect)[:,;.!–—-]{1,2} "
    r"|(?:similarly|additionally|likewise|furthermore|moreover|in addition|on top of that), (?!(?:it|this|that|they|these|those)\b)"
    r"|(?:my point (?:is|was)|what i meant (?:is|was)|i meant):? "
    r"|(?:going )?back to [^,:;.]{2,40}[,:] |(?:for|about|regarding) (?:option|point|item|question|scenario|step|issue) ?#?\w{1,3}[,:] "
    r"|(?:stop|wait|pause|hold on|one sec\w*|one more thing|another thing|last thing|let['’]?s (?:pause|stop|wait))[^,:.]{0,16}[,:.] "
    r"|(?:can|could) (?:we|you) (?:please |also )?(?:add|mention|document|note) (?:why|that) "
    r"|looking at (?:the|these|this|your)(?: [^,:.]{2,40})?[,:] (?!it\b)|(?:i mean|i (?:think|feel like|guess)|my guess is|imo)\b,? (?!to\b)"
    r"|(?:here['’]s )?(?:(?:a |the )?(?:quick |short |brief )?(?:summary|overview|breakdown)(?: of [^:]{2,60})?|here['’]s (?:what (?:happened|changed|i found)|the (?:issue|problem|summary))|in short|tl;?dr"
    r"|changed behaviou?r|how it works|notice|note|also): "
    r"|(?:(?:can|could) you (?:please )?(?:also )?(?:check|fix|look at|address)(?: this| that)?|i got (?:this|the following) (?:feedback|comment|error)[^:.]{0,40}): )"
)
#: What only asks whether one agrees, or asks for something at the end of what is said.
TAIL = _re(
    r"(?:,? (?:or|right|correct|no|yes|ok|yeah|agreed?)\?+"
    r"|[,.;:!?]? ?[,.;!?] (?:(?:and|so|but|also) )?(?:(?:can|could|would) (?:you|we) (?:please |also |maybe |just ){0,2}(?:check|look|take a look|see|find|propose"
    r"|suggest|explain|review|help|tell|show|compare|verify|investigate|identify|confirm)\b[^.?]{0,160}"
    r"|(?:is|are|was|does|would) (?:this|it|that|there) [^.?]{2,100}|(?:(?:i['’]?m |just )?wondering|any (?:ideas?|thoughts|suggestions?))\b[^.?]{0,120})\?+)$"
)
#: A sentence in passing: at either end of what is told it says nothing that lasts.
PASSING = _re(
    r"^\W{0,3}(?:(?:and|so|but|also|ok|then|now),? )?(?:(?:can|could|would) (?:you|we) (?:please |also |maybe |just ){0,2}(?:check|look|take|see|find|propose|suggest"
    r"|explain|review|help|tell|show|compare|verify|investigate|double|identify|confirm|ultrathink)\b.{0,200}\?"
    r"|(?:is|are|was|does|do|did|will|would|should) (?:this|that|it|there|these|we|i|you)\b.{0,160}\?|(?:what|how|any|which|where|when)\b.{0,160}\?"
    r"|(?:question|sources?): .{0,300}|(?:you (?:can|may|might|should)|let me)\b.{0,200}\b(?:check|verify|run|see|know|confirm|test|before stopping|try)\b.{0,200}"
    r"|i['’]d like to (?:bring|have|get) (?:that|this|it)\b.{0,60}|(?:updated|created|wrote|committed|pushed) (?:the |a )?(?:branch|commit|`[^`]{1,80}`).{0,160}\."
    r"|(?:the |this )?(?:actual |whole |full )?(?:build|lint|tests?|code)(?: and (?:build|lint|tests?))? (?:both |all |now )?(?:pass|work|compile|succeed)\w*.{0,40}"
    r"|(?:this|it|that)(?: is|['’]s) (?:now )?(?:a )?(?:still )?(?:not working|broken|good|great|fine|better|wrong|done|fixed)\b.{0,40}|the (?:fix|pattern|difference|change)(?: is)?:)$"
)
#: What is said in passing: the statement begins behind it.
ASIDE = _re(r"^.{3,200}?[,;.–-] ?(?:and |but |also |oh )?(?:by the way|btw|fyi|for the record),? (?=\S)")
#: An explicit request to keep it.
REMEMBER = _re(
    r"^(?:please |pls )?(?:always )?(?:remember(?! (?:when|how|what|why|if)\b)|keep in mind|bear in mind"
    r"|(?:please )?note(?= that\b)|make a note|memori[sz]e|(?:do not|don['’]t|never) forget)"
    r"(?:,|:| that\b:?| this:?| to\b| the fact that\b)? ?(?=\S)"
)
#: An order put as a question: what is asked for is told.
ASKED_FOR = _re(
    r"^(?:can|could|would|will) you (?:(?:please|also|just|maybe|again|quickly) ){0,2}"
    r"(?!(?:please|also|just|maybe|again|quickly|check|explain|show|tell|see|remember|think|know|imagine|confirm|elaborate|describe)\b)(?=[a-z]{2,} )"
)

#: What goes on about the subject of the sentence before it.
_SPEAKS_ON = _re(r"(?:it|this|that|they|these|those|he|she|then|otherwise|because|since|so|and|but|basically|like)\b")
#: What says the purpose or the consequence of the sentence before it.
_FOLLOWS = _re(r"so (?:that|i|we|you|it)\b")
_SPEAKS_OF = _re(r"\b(?:it|them|they|these|those)\b")
_ABOUT = _re(r"(?:and )?(?:what|how) about (\w.{1,60})\?$")


def told(text: str) -> str:
    """`text` as it is told alone: without greetings, asides, questions around it, and the request to keep it."""
    aside = ASIDE.match(text)
    said = _opened((text[aside.end() :] if aside else text).strip())
    said = _asked(_opened(_without_passing(said)))
    if ASKED_FOR.match(said) and "?" not in said[:-1]:
        order = ASKED_FOR.sub("", said, count=1).rstrip("?! ")
        if len(words(order)) >= LEAST_WORDS and content_words(order):
            said = order
    shorter = TAIL.sub("", said)
    return shorter if len(content_words(shorter)) >= LEAST_CONTENT else said


def _opened(said: str) -> str:
    """Without what opens a sentence and says nothing."""
    for _ in range(4):
        shorter = REMEMBER.sub("", LEAD_INS.sub("", said, count=1), count=1).strip()
        if shorter == said or not content_words(shorter):
            break
        said = shorter
    return said


def _asked(said: str) -> str:
    """Without a short question before what is said, whose subject may stay."""
    parts = sentences(said)
    if len(parts) < 2 or not parts[0].endswith("?") or len(words(parts[0])) > MOST_ASKED:
        return said
    behind = said[len(parts[0]) :].strip()
    rest = LEAD_INS.sub("", behind, count=1)
    if (
        len(words(rest)) < LEAST_WORDS
        or not content_words(rest)
        or rest.endswith("?")
        or _SPEAKS_ON.match(rest)
        or _FOLLOWS.match(behind)
    ):
        return said
    if is_detail(rest, behind=parts[0], of_detail=False):
        return f"{ASKED_FOR.sub('', parts[0], count=1).rstrip(' ?!:,')}: {rest}"
    asked = _ABOUT.match(parts[0])
    return f"{asked[1].rstrip(' :;,')}: {rest}" if asked and _SPEAKS_OF.search(rest) else rest


def _without_passing(said: str) -> str:
    """Without sentences in passing at its ends."""
    every = sentences(said)
    parts = list(every)
    while len(parts) > 1 and PASSING.match(parts[-1]) and len(content_words(" ".join(parts[:-1]))) >= LEAST_CONTENT:
        parts.pop()
    while (
        len(parts) > 1
        and PASSING.match(parts[0])
        and not parts[0].endswith("?")
        and not _SPEAKS_ON.match(parts[1])
        and len(content_words(" ".join(parts[1:]))) >= LEAST_CONTENT
    ):
        parts.pop(0)
    return said if len(parts) == len(every) else " ".join(parts)
