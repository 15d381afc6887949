"""Finds the possible topics of a text: names, files, code, and noun phrases of up to three words; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from csmd import data
from csmd.text import clauses, phrases, tokens
from csmd.text.tokens import STOP_WORDS, TURNING_WORDS

_WORDS = data.word_table("topic_words.txt")
#: Words that end a phrase.
BREAKS = (
    STOP_WORDS
    | TURNING_WORDS
    | phrases.WORDS["weak"] - {"work"}
    | _WORDS["adverb"]
    | _WORDS["verb"] - _WORDS["also_noun"]
) - _WORDS["determiner"]
#: Stems of words common in every project: they make a phrase only together with another word.
_GENERIC_STEMS = frozenset(map(tokens.stem, _WORDS["generic"] | _WORDS["verb"]))
#: Most words of a phrase.
MAX_WORDS = 3
#: Most characters of a text that are read.
MAX_CHARACTERS = 1200
#: Most phrases of a text.
MAX_PHRASES = 120

_TOKEN = re.compile(
    r"`(?P<code>[^`\n]{2,80})`|(?P<url>https?://\S+)"
    r"|(?P<file>(?:[\w.~-]*/)*[\w-]{1,60}\.(?P<ending>[A-Za-z][a-z0-9]{0,4}))(?![\w(])(?:[:#]\d[\d-]*)?"
    r"|(?P<path>(?:[\w.~@-]+/)+[\w.-]*)|(?P<number>\d[\d.,]*(?!\w))|(?P<word>--?[A-Za-z][\w-]*"
    r"|[^\W\d_][\w]*(?:['\u2019-][^\W_]+)*)|(?P<mark>[^\s\w])"
)
#: Words before or after a noun that names a thing.
_BEFORE_NOUN = (clauses.PREPOSITIONS.keys() | {"of", "about", "without"}) - {"to", "as"}
_AFTER_NOUN = clauses.COPULA | {"of", "has", "have", "must", "should"}
_SENTENCE_ENDS = phrases.SENTENCE_ENDS | {"", "*", "-"}
#: Replaces a number.
NUMBER_MARK = "#"
#: Words before or after a verb.
_BEFORE_VERB = phrases.WORDS["auxiliary"] | {NUMBER_MARK, "to", "i", "we", "you", "they", "it", "let's"}
_AFTER_VERB = _WORDS["determiner"] | {"it", "them", "up", "down", "off", "out", "back"}
#: Endings of adverbs and participles.
_NON_NOUN_ENDINGS = ("ly", "ed")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")

#: The stems of a phrase's words; a file's name is one word.
Key = tuple[str, ...]


class Phrase(NamedTuple):
    """A possible topic of a text.

    `is_led`: they follow an article or the like, or are a name. `closes`: they are in the place of a phrase's noun.
    `is_thing`: in the place of a thing, as in "in the queue" or "the queue is"; `is_deed`: in that of a verb, an amount
    or a heading, as in "to queue", "queue it", "3 queues", "Queue: ...".
    """

    key: Key
    written: str
    is_name: bool
    is_led: bool
    closes: bool
    is_thing: bool
    is_deed: bool


class Part(NamedTuple):
    """A part of a word, in lower case; whether it is written like a name, and whether it is the whole word."""

    word: str
    is_named: bool
    is_whole: bool


def find_phrases(text: str) -> list[Phrase]:
    """Finds the possible topics of a text, in order."""
    phrases: list[Phrase] = []
    run: list[Part] = []
    before, is_opening = "", True
    for token in _TOKEN.finditer(text[:MAX_CHARACTERS]):
        kind, value = token.lastgroup, token.group()
        word = value.casefold().replace("\u2019", "'")
        if kind == "word" and word not in BREAKS and word not in _WORDS["determiner"] and "'" not in word:
            is_cased = value[1:] != value[1:].lower() or (value[0].isupper() and not is_opening)
            is_named = is_cased or "_" in value or "-" in value
            parts = _split_word(value)
            run.extend(Part(part, is_named, len(parts) == 1) for part in parts)
        else:
            phrases.extend(_combine_run(run, before, word))
            run.clear()
            before = NUMBER_MARK if kind == "number" else word
        if kind in ("file", "ending") and token["ending"].casefold() in _WORDS["ending"]:
            phrases.append(_file_phrase(token["file"].rsplit("/", 1)[-1].casefold()))
        elif kind == "code":
            phrases.extend(_split_code(token["code"]))
        is_opening = kind == "mark" and value not in "(/'\""
    phrases.extend(_combine_run(run, before, ""))
    return phrases[:MAX_PHRASES]


def _file_phrase(name: str) -> Phrase:
    return Phrase((name,), name, is_name=True, is_led=True, closes=True, is_thing=True, is_deed=False)


def _split_code(code: str) -> list[Phrase]:
    """Returns the phrases of a code span: a file, a path's last part, an identifier, the beginning of a command."""
    words = code.split()
    if not words:
        return []
    last = words[0].rstrip("/,;").rsplit("/", 1)[-1]
    stem, dot, ending = last.partition(":")[0].rpartition(".")
    if len(words) == 1 and dot and ending.casefold() in _WORDS["ending"]:
        return [_file_phrase(f"{stem}.{ending}".casefold())]
    names = [word.partition("(")[0].rsplit(".", 1)[-1] for word in words[:MAX_WORDS]]
    run = [Part(part, True, len(words) == len(parts) == 1) for parts in map(_split_word, names) for part in parts]
    if len(run) == 1 and names[0].islower() and names[0].isalpha():  # an ordinary word, as in `render` or `with`
        run = [Part(word, False, True) for word, *_ in run if word not in BREAKS]
    return list(_combine_run(run, "", ""))


def _split_word(value: str) -> list[str]:
    if value.casefold() in _WORDS["one_word"]:
        return [value.casefold()]
    return [part.casefold() for part in _PART.findall(value) if len(part) > 1]


def _combine_run(run: Sequence[Part], before: str, after: str) -> Iterator[Phrase]:
    """Yields the phrases in an unbroken run of words, between the words or marks that break it."""
    stems = [tokens.stem(word) if word.isalpha() else word for word, *_ in run]
    follows_determiner = before in _WORDS["determiner"]
    # "5 minutes" is an amount, and a word before a colon a heading.
    starts_as_deed = before in _BEFORE_VERB or (after == ":" and before in _SENTENCE_ENDS)
    ends_as_deed = after in _AFTER_VERB and (len(run) > 1 or not follows_determiner)
    is_thing = (follows_determiner or before in _BEFORE_NOUN or after in _AFTER_NOUN) and not ends_as_deed
    for start in range(len(run)):
        for size in range(1, MAX_WORDS + 1):
            part = run[start : start + size]
            if len(part) < size or len({word for word, *_ in part}) < size:
                break
            words = [word for word, *_ in part]
            is_named = all(word.is_named for word in part) and (size > 1 or part[0].is_whole)
            if _is_generic(words, is_named=is_named):
                continue
            is_last = start + size == len(run)  # the last word is the noun that the others describe
            is_led = is_last and (follows_determiner or (is_named and start == 0))
            closes = is_led or (is_last and size == 1 and start > 0)
            starts_deed = starts_as_deed and start == 0
            yield Phrase(
                tuple(stems[start : start + size]), " ".join(words), is_named, is_led, closes,
                is_thing=is_last and is_thing and not starts_deed and not words[-1].endswith(_NON_NOUN_ENDINGS),
                is_deed=starts_deed or (ends_as_deed and is_last),
            )  # fmt: skip


def _is_generic(words: Sequence[str], *, is_named: bool) -> bool:
    """Whether words are too general to be a topic; several that form one name never are."""
    if words[0] in _WORDS["head"] or words[-1] in _WORDS["head"]:
        return True
    if is_named and len(words) > 1:
        return False
    return all(tokens.stem(word) in _GENERIC_STEMS or len(word) < 3 for word in words)
