"""Which half of a gotcha a sentence is, and what two texts have in common: tables of words; pure.

CAUSE and SYMPTOM say which sentence is which half. What people call by name (code, identifiers, files, flags) tells
better than words what they speak of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from csmd import text as texts
from csmd.cache import cached
from csmd.distill import refusals
from csmd.patterns import at_first_use

#: Shared identifiers or, without one, shared content words that two texts need to be about the same.
SHARED_NAMES, SHARED_WORDS = 1, 3
#: A symptom, and a diagnosis, is a few sentences in somebody's words.
MOST = 400
#: What is shorter reports nothing by itself.
SHORT = 12
#: Of a turn its beginning is looked at.
LOOKED_AT = 6_000


def _re(pattern: str) -> re.Pattern[str]:
    return at_first_use(pattern, re.IGNORECASE)


#: A sentence that names a cause or a fix.
CAUSE = _re(
    r"\b(?:root cause|caused by|the (?:actual |real |underlying |main )?(?:issue|problem|cause|bug|culprit|reason)\b.{0,60}?\b(?:is|was|were)\b"
    r"|because|turn(?:s|ed) out|due to|since (?:the|it|we|they|go|git)|(?:was|were|is|are) missing|(?:fixed|solved|resolved) (?:by|in|with)"
    r"|the fix\b|fix(?:es|ed)?:|needs? to be|silently|only (?:means|works|checks|looks)|instead of|does(?: not|n['’]t) (?:support|exist|handle|allow|include)"
    r"|was(?: not|n['’]t)|were(?: not|n['’]t)|never (?:set|called|reached|written|created)|overwrit\w+|stale|race)\b"
)
#: A sentence that reports that something is not as it should be.
SYMPTOM = _re(
    r"\b(?:i (?:just |now |still |always |also )?(?:get|got|see|saw|lost|ran into|noticed|run into)|when (?:i|running)\b"
    r"|(?:is|are|was|does|did|has|can|could|will)(?: not|n['’]t)\b|not (?:working|work|showing|there|found|created|pushed)|still (?:not|get\w*|see\w*|shows?|fail\w*|broken|the same)"
    r"|errors?|fail(?:s|ed|ing|ure)?|crash\w*|broken|breaks|bugs?|wrong|missing|lost|empty|hangs?|stuck|slow|issue with|problem with|weird|strange"
    r"|unexpected\w*|(?:properly|correctly|as expected)|(?:would|should) have (?:been|expected)|i['’]?m getting|why (?:is|are|do|does|did|was)|how did|somehow|no longer|warning|panic|exception|traceback|exit code)\b"
)
#: Beyond doubt: in an order ("can you add ...") nothing less reports anything, in a user's own statement of a cause neither.
_SURELY = _re(
    r"\b(?:bugs?|errors?|fail(?:s|ed|ing|ure)?|broken|crash\w*|not work\w*|wrong|lost|exception|panic|traceback)\b"
)
_SURE_CAUSE = _re(
    r"\b(?:root cause|caused by|turn(?:s|ed) out|the (?:actual |real |underlying )?(?:issue|problem|cause|bug|reason) (?:is|was)|because)\b"
)
_NARRATION = _re(
    r"^\W{0,3}(?:now i|i['’]ll|i will|next,|first,|good|great|perfect|all tests|we have|there)\b|\blet(?: me|['’]s)\b"
)
_FIX = _re(
    r"\b(?:fix(?:ed|es)?|chang(?:e|ed|es)|replac\w+|add(?:ed|s)?|remov\w+|modif\w+|us(?:es|ed|ing)|now|was (?:checking|computed|using|called)"
    r"|no longer|should|means?|would|only)\b"
)
_NAME = re.compile(
    r"`([^`\n]{2,80})`|\b(\w{1,60}_\w[\w]{0,60})\b|\b([a-z]{1,40}[A-Z]\w{1,60})\b|\b([A-Z][a-z]+[A-Z]\w{1,60})\b"
    r"|(?<![\w-])(--[a-z][\w-]{2,40})\b|\b([\w-]{1,60}\.(?:go|py|ts|tsx|js|jsx|rs|rb|java|md|ya?ml|json|jsonl|toml|sh|sql|c|h|cpp|kt|php))\b"
)


def is_cause(told: str, *, category: str, authority: str) -> bool:
    """Whether a statement names a cause or a fix; a user's has to say so, or it is what they report."""
    if authority == "user":
        return _SURE_CAUSE.search(told) is not None
    return category == "gotcha" or CAUSE.search(told) is not None


def answers(told: str, symptom: str) -> bool:
    """Whether what an assistant said right after a report explains or mends it: of a sure one any fix does."""
    return CAUSE.search(told) is not None or (_SURELY.search(symptom) is not None and _FIX.search(told) is not None)


def is_symptom(sentence: str) -> bool:
    """Whether a user's sentence reports that something is not as it should be."""
    return (_SURELY if refusals.ORDER.match(sentence) else SYMPTOM).search(sentence) is not None


def names(text: str) -> frozenset[str]:
    """What a text calls by name: code, identifiers, files, flags; the last part of a path, in small letters."""
    return _names(text[:8_000])


@cached(256)
def _names(text: str) -> frozenset[str]:
    found = {next(filter(None, one.groups())).strip(" ().:'\"") for one in _NAME.finditer(text)}
    return frozenset(short for one in found if len(short := one.rpartition("/")[2].casefold()) > 2)


def share(one: str, other: str) -> tuple[int, int]:
    """(names, content words) that two texts have in common."""
    left, right = texts.gist(one).stems, texts.gist(other).stems
    lower = other.casefold()
    named = names(one) & names(other) | {name for name in names(one) if len(name) > 5 and name in lower}
    return len(named), len(left & right)


def are_about_the_same(one: str, other: str) -> bool:
    """Whether two texts of one session name the same things, or have enough words in common."""
    named, words = share(one, other)
    return named >= SHARED_NAMES or words >= SHARED_WORDS


def symptom_in(said: str) -> str:
    """What a user's turn reports to be wrong, in its words; "" for nothing. Each memory of a session asks it again."""
    return _symptom_in(said[:LOOKED_AT])


@cached(128)
def _symptom_in(said: str) -> str:
    prose = [one for line in texts.lines_of_prose(said) for one in texts.sentences(line)]
    found = [one for one in prose if len(one) > SHORT and is_symptom(one)][:3]
    lines = [line.strip() for line in said.splitlines()]
    shown = [line for line in lines if SHORT < len(line) < MOST and _SURELY.search(line)][:2]
    if found and found[0].endswith(":"):  # what is pasted behind it says what it is
        at = next((place for place, line in enumerate(lines) if line.endswith(found[0][-SHORT:])), len(lines))
        shown = [line for line in lines[at + 1 :] if len(line) > SHORT][:2]
    parts = [*found, *(line for line in shown if not any(line in one or one in line for one in found))]
    return texts.cut(texts.squeeze(" ".join(parts)), MOST)


def diagnosis(passages: Iterable[tuple[str, str, bool]], *, about: str) -> tuple[str, str]:
    """(uuid, sentence) among (uuid, text, whether before the next try) that tells best why `about` failed.

    What was said afterwards sums up everything: there a sentence has to name what failed. ("", "") for none: no
    reason is better than another failure's.
    """
    best, chosen = 0, ("", "")
    for uuid, said, before in passages:
        for line in texts.lines_of_prose(said[:LOOKED_AT]):
            for sentence in texts.sentences(line):
                if not 20 < len(sentence) <= MOST or sentence.rstrip("*` ").endswith(("?", ":")):
                    continue
                if _NARRATION.search(sentence):
                    continue
                named, words = share(sentence, about)
                cause = CAUSE.search(sentence) is not None
                if not (cause and before) and not ((cause or _FIX.search(sentence)) and (named or words > 2)):
                    continue
                value = 3 * cause + 2 * min(named, 2) + min(words, 3) + 2 * before
                if value > best:
                    best, chosen = value, (uuid, texts.squeeze(sentence.replace("**", "")))
    return chosen
