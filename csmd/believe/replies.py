"""In which language the user wants to be answered: of two such wishes the later one holds; pure.

Both must speak of the same: of answers altogether, or of the same thing ("commit messages in English"). A wish with a
condition, or for one of several places, is an exception and ends nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from csmd.believe import phrases
from csmd.believe.verdict import Verdict

_LANGUAGES = frozenset(
    "english german french spanish italian portuguese dutch polish czech russian ukrainian turkish swedish norwegian danish "
    "finnish greek hungarian romanian japanese chinese mandarin korean hindi arabic hebrew deutsch".split()
)
_VERBS = frozenset("answer reply respond speak talk write explain communicate".split())
_IN = re.compile(rf"\b(?:in|speak|talk) (?:plain |simple )?({'|'.join(sorted(_LANGUAGES))})\b", re.IGNORECASE)
_ASKS = re.compile(
    r"^\W*(?:(?:please|always|from now on|and|ok|okay|again|now|you (?:can|may|should)|let['\u2019]s|i(?:['\u2019]d| would) like you to|i want you to)\b,?\s+)*"
    rf"(?:{'|'.join(sorted(_VERBS))}|i want (?:your )?(?:answers|replies))\b",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?:if|when|whenever|unless|only|except|for|until|while|once|not|never|this time)\b|\?", re.IGNORECASE
)
#: What is said with every such wish, and names nothing that is to be in the language.
_IDLE = frozenset(
    phrases.stem(word)
    for word in "answer answers reply replies respond response speak talk write explain communicate please always again now everything "
    "thing things like want you me us from on back instead just ok okay".split()
)


def judged(older: str, newer: str) -> Verdict:
    """Whether the newer wish is for another language in the same; None where they are not two such wishes."""
    before, after = _wish(older), _wish(newer)
    if before is None or after is None:
        return None
    return "changed" if before[0] != after[0] and before[1] == after[1] else ""


def akin(said: str) -> frozenset[str]:
    """The words by which other wishes are found that a wish may end, though they share none with it."""
    return _VERBS if _wish(said) is not None else frozenset()


@lru_cache(maxsize=1024)
def _wish(said: str) -> tuple[str, frozenset[str]] | None:
    """(the language, the stems of what is to be in it: none for whatever is answered)."""
    found = _IN.findall(said)
    if len(found) != 1 or not _ASKS.search(said):
        return None
    main = re.split(r"[,;.:(\u2014]\s", said, maxsplit=1)[0]
    if _BOUND.search(said) or not _IN.search(main):
        return None
    language = found[0].casefold()
    return language, frozenset(phrases.stems_of(main)) - _IDLE - {phrases.stem(language)}
