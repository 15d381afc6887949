"""What a user's answer, correction or addition is about, where the words right before it say so; pure.

Whoever answers point by point does not say the questions again, and who corrects something does not name what is on the
screen. A wrong subject is worse than none: one is taken only where the numbers agree, where the words are quoted, or
where one thing in the message before can be meant. It is put in front; what was said stays as it was.
"""

from __future__ import annotations

import re

from csmd.distill import pointing, resolve, standing
from csmd.patterns import at_first_use
from csmd.text import content_words, gist, sentences, squeeze, without_code, words

#: A longer prompt answers nothing, a longer message of the assistant's is about many things; in characters.
LOOKED_AT = 8_000
#: A question, or a line that is quoted, is put in front when it has at most so many words and characters.
MOST_WORDS, MOST_CHARACTERS = 16, 120
#: Words of at least so many letters tell what is spoken of, in any of their forms.
MIN_STEM = 6
#: A form of a word may lack so many of the other's last letters.
ENDING = 2
#: By so many characters an answer is found again.
COMPARED = 20

_ITEM = re.compile(
    r"^[ \t]{0,3}(?:[-*][ \t]+)?(?:#{1,6}[ \t]+)?[*_]{0,2}\(?Q?(\d{1,2})[.):]\)?[*_]{0,2}[ \t]+(\S.*)$", re.MULTILINE
)
_LABEL = re.compile(r"\*\*([^*\n?]{2,60}?):?\*\*:?|([A-Z][^.:?!\n]{2,50}):(?= )")
_QUOTED = re.compile(r"[ \t]{0,3}>[ \t]?(.*)$")
_MARKS = re.compile(r"(?<!\w)[*_]{1,3}|[*_]{1,3}(?!\w)")
_BULLET = re.compile(r"\s*(?:[-*+•]\s+|\d{1,2}[.)]\s+)?(?:[✅✓✔❌]\s*)?")
#: Lines that are no prose: headings, tables, quotes.
_BESIDE = re.compile(r"\s*[#|>]")
#: What a user begins with who corrects or adds to something that is on the screen.
_ADDS = at_first_use(
    r"^\W{0,3}(?:(?:no|but|and|please|also|hm+|ok(?:ay)?)\b,? ){0,2}(?:not (?:as|in|on|at|with|for|to|the|an?|just|only)\b"
    r"|(?:add|include|mention|offer) (?:another|one more|an? (?:second|third))\b)",
    re.IGNORECASE,
)
#: What only an answer begins with.
_REPLY = at_first_use(
    r"\W*(?:yes|yep|yeah|no|nope|sure|agreed|both|neither|either|correct|right|exactly)\b", re.IGNORECASE
)
#: A caution about the sentence before it, which says half without that.
_MINDS = re.compile(
    r"(but|however|though|and|also)\b,? (?=(?:[\w']+ ){0,4}(?:keep in mind|bear in mind|consider|(?:be )?(?:aware|careful))\b)",
    re.IGNORECASE,
)
#: What a message opens with before it comes to what it is about; and at most so many words without a name do the same.
_ACKNOWLEDGES = re.compile(
    r"(?:All|Everything|Build|Tests?|Lint\w*|Let me|I (?:see|understand)|Now I|You['’]re)\b|(?:Done|Fixed|The (?:fix|changes?))\b.{0,12}$"
)
FEW_WORDS = 4
_CODE = r"`[^`\n]{2,60}`"
_VERB = rf"(?:{resolve.VERB}|displays|solves|lists|finds|applies|describes)"
_DID = r"(?:I(?:['’]ve| have)? )?(?i:updated|removed|renamed|added|changed|replaced|moved|created|dropped|rewrote|fixed|extended)"
#: A sentence about one name in code: it is its subject, or what something was done to.
_OF_NAMES = (
    re.compile(
        rf"(?:(?:Now|Currently|Right now|Here),? )?(?:(?:[Tt]he|[Yy]our|[Oo]ur) (?:\w+ ){{0,2}})?({_CODE})"
        rf" (?:(?!and\b|or\b)[a-z]+ ){{0,2}}?{_VERB}\b"
    ),
    re.compile(
        rf"{_DID} (?:(?:the|a|an|your|our) )?(?:(?!(?:in|of|to|for|from|at|on)\b)\w+ ){{0,2}}({_CODE})(?= |[.:]|$)"
    ),
)
#: The same of what is named by words.
_OF_WORDS = (
    re.compile(
        rf"{_DID} ((?:the|a|an|your|our) [^.,:;—–]{{3,70}}?(?: in {_CODE})?)"
        r"(?= (?:to|so|with|by|from|that|which|because|since|for|in)\b|[.,:;—–]|$)"
    ),
    re.compile(rf"((?:The|Your|Our) (?:(?!(?:of|in|to|for)\b|{_VERB}\b)[\w-]+ ){{1,3}}?)(?={_VERB}\b)"),
)


def understood(text: str, *, said: str, prompt: str, before: str) -> str:
    """`text`, told of what a user `said` in a prompt, with what it is about in front; itself where that is not clear.

    `before` is the assistant's message before the prompt.
    """
    if len(prompt) > LOOKED_AT:
        return text
    head = resolve.before_in(prompt, said)
    line = head.rpartition("\n")[2]
    if content_words(line):
        return _cautioned(text, said, sentences(squeeze(line))[-1])
    lead = _asked(prompt, head, before, said)
    if not lead and not resolve.attached(prompt) and (about := _pointed_at(text, head, before)):
        lead = "" if set(content_words(about)) <= set(content_words(text)) else f"{about}:"
    return resolve.bounded(f"{lead} {text}", text) if lead else text


def _cautioned(text: str, said: str, last: str) -> str:
    """A caution with the sentence before it, which says what it is about; a question does not say it."""
    found = _MINDS.match(said)
    if found is None or "?" in last or standing.leaning(last, "user"):
        return text
    if resolve.is_open(last) or len(content_words(last)) < resolve.MIN_BEFORE:
        return text
    return resolve.bounded(f"{last} {text if text.startswith(found[1]) else found[0] + text}", text)


def _pointed_at(text: str, head: str, before: str) -> str:
    """What a sentence at the beginning of a prompt, or behind a paragraph of it, points at."""
    if content_words(head):
        return topic(head, text) if resolve.points_out(text, this=True) else ""
    return topic(before, text) if pointing.points(text) or _ADDS.match(text) else ""


def _asked(prompt: str, head: str, before: str, said: str) -> str:
    """What is said behind `head` answers, as it is put in front: a question of its number, or the line quoted above it."""
    item = _ITEM.match(prompt[head.rfind("\n") + 1 :].partition("\n")[0])
    if item is None:
        above = head.rstrip().splitlines()[-2:]
        found = _QUOTED.match(above[-1]) if above else None
        return _short(found[1]) if found and not (len(above) > 1 and _QUOTED.match(above[0])) else ""
    answers = {int(found[1]): found[2] for found in _ITEM.finditer(prompt)}
    questions = _questions(before)
    others = [answer for number, answer in answers.items() if number != int(item[1])]
    if not _ITEM.match(prompt.lstrip()) or not answers.keys() <= questions.keys():
        return ""
    if any(squeeze(_MARKS.sub("", other))[:COMPARED] in said for other in others if len(other) > COMPARED):
        return ""  # it answers several of them
    question = questions[int(item[1])]
    if not (gist(question).stems & gist(said).stems or any(_REPLY.match(one) for one in answers.values())):
        return ""  # a list of the user's own, whose numbers are the same
    label = _LABEL.match(question)
    return f"{(label[1] or label[2]).strip()}:" if label else _short(question)


def _questions(before: str) -> dict[int, str]:
    """The last numbered list of a message by its numbers, where every item of it asks."""
    found = list(_ITEM.finditer(without_code(before[-LOOKED_AT:])))
    start = max((at for at, one in enumerate(found) if one[1] == "1"), default=len(found))
    items = [(int(one[1]), one[2]) for one in found[start:]]
    whole = len(items) > 1 and [number for number, _ in items] == list(range(1, len(items) + 1))
    return dict(items) if whole and all("?" in item for _, item in items) else {}


def _short(said: str) -> str:
    """A line as it is put in front of what is said to it; "" for one that is too long or says nothing."""
    bare = squeeze(_MARKS.sub("", said))
    if len(words(bare)) > MOST_WORDS or len(bare) > MOST_CHARACTERS or len(content_words(bare)) < 2:
        return ""
    return bare if bare[-1] in ".?!:" else f"{bare}:"


def topic(before: str, said: str) -> str:
    """The one thing in a message that a sentence `said` right behind it speaks of; "" where none is clear.

    The sentence must share a word with the message. Where that stands in one sentence only, what this one is about is
    the topic; else the name that the message begins with.
    """
    parts = _parts(before) if len(before) <= LOOKED_AT else []
    held = [_telling(part) for part in parts]
    shared = [[at for at, own in enumerate(held) if _holds(own, word)] for word in _telling(said)]
    places = {at[0] for at in shared if len(at) == 1}
    if len(places) == 1:
        return _about(parts[places.pop()], (*_OF_NAMES, *_OF_WORDS))
    opening = next((part for part in parts if not _acknowledges(part)), "")
    return _about(opening, _OF_NAMES) if any(shared) else ""


def _acknowledges(part: str) -> bool:
    return bool(_ACKNOWLEDGES.match(part)) or ("`" not in part and len(words(part)) <= FEW_WORDS)


def _parts(before: str) -> list[str]:
    """The sentences of a message's prose."""
    lines = [one for one in without_code(before).splitlines() if one.strip() and not _BESIDE.match(one)]
    return [one for line in lines for one in sentences(squeeze(_MARKS.sub("", _BULLET.sub("", line, count=1))))]


def _telling(said: str) -> set[str]:
    """The words of a sentence that tell what it speaks of."""
    return {word for word in content_words(said) if len(word) >= MIN_STEM and not word.endswith("ly")}


def _holds(own: set[str], word: str) -> bool:
    """Whether one of some words is another, in whichever form."""
    stem = word[: max(MIN_STEM, len(word) - ENDING)]
    return any(one.startswith(stem) or word.startswith(one) for one in own)


def _about(sentence: str, forms: tuple[re.Pattern[str], ...]) -> str:
    """What a sentence is about, by the first form that it has; "" where that names nothing."""
    found = next((match for form in forms if (match := form.match(sentence))), None)
    return found[1].strip() if found and not resolve.names_nothing(found[1]) else ""
