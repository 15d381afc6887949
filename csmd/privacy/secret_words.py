"""Tells words that a person chose as a secret from words that are used to talk about secrets; pure."""

from __future__ import annotations

import re
import string

from csmd import data

_WORDS = data.word_table("secret_words.txt")
COMMON = _WORDS["common"].union(*data.word_table("stop_words.txt").values())
STOP = data.word_table("stop_words.txt")["english"]
#: Words used to talk about secrets.
ABOUT = _WORDS["about"]
#: Names of letters, digits and signs.
SPELT = _WORDS["spelt"]
#: Endings, in many languages, of participles, adjectives and verbs used to talk about secrets.
_DESCRIBING = re.compile(
    r".{2,}(?:ed|ing|ly|able|ible|less|[ts]ion|ness|ment|ity|ous|ive|ful|[ae]nce|ic|[ui]al|ary|ory|ish)|"
    r"(?:ge|be|ver|er|ent|zer).{2,}(?:t|en|te|tes|ter)|.{3,}(?:lich|isch|bar|los|ig|lijk|baar)(?:e[nrs]?)?"
    r"|.{2,}(?:ée?s?|eux|aire)|"
    r".{2,}(?:[ai]d[oa]s?|[aeu]t[oa]|ível|ável)|.{3,}(?:an[eya]|on[eya]|en[eya]|n[éýá]|en[oý]|án[oy]|owe|owy)"
    r"|.{2,}(?:rat|nat|lat|sat|tat)|"
    r".{2,}(?:[ыио]й|ая|ое|ен[оаы]?|ан[оаы]?|с[яь]|ет|ит|ат|ут|ют|ть|ется|но)|.{3,}(?:[dt][ıiuü]r|l[ıiuü]|m[ıiuü]ş"
    r"|yor|[ae]cak|d[ıiuü])"
)
_INFLECTED = re.compile(r"(?:'s|s|es|d|er|est|n't|'t|e|en|n)$")
_PARTS = re.compile(r"[-_'\u2019.]+")
_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]*)+")
#: Names of letters, digits and signs that are also common words in a sentence.
_JOINING = frozenset(
    "a i e o y to on en et at ti ni is two space mark case big small new point un une um uma one once due as".split()
)


def is_common(word: str) -> bool:
    """Whether a word is common in sessions, or in talk about passwords."""
    plain = word.lower().strip("'\u2019")
    return (
        plain in COMMON
        or plain in ABOUT
        or _DESCRIBING.fullmatch(plain) is not None
        or ((stem := _INFLECTED.sub("", plain)) != plain and len(stem) > 2 and (stem in COMMON or stem in ABOUT))
    )


def is_uncommon(secret: str) -> bool:
    """Whether a text is a single word that is neither common in talk about secrets nor a name in a program."""
    word = secret.strip("*_").rstrip(".!?:")
    parts = [named for part in _PARTS.split(word) if (named := part.rstrip("0123456789"))]
    letters = sum(map(str.isalpha, word))
    return (
        len(word) >= 4
        and letters >= 3
        and not word.isupper()
        and _CAMEL.fullmatch(word) is None
        and word[0].isalnum()
        and max(word) < "\u2e80"
        and not any(sign in word for sign in "=/\\()<>[]{}$@:|")
        and "." not in word
        and "_" not in word
        and not all(map(is_common, parts))
        and not (len(parts) > 1 and sum(map(is_common, parts)) * 2 > len(parts))
    )


def is_joined_words(secret: str) -> bool:
    """Whether a text is mostly uncommon words joined by signs, as `plum_ferry_62` is and `user_id_2` is not."""
    parts = [part for part in re.split(r"[-_.+]", secret.rstrip(".,!?")) if part]
    words = [part for part in parts if part.isalpha()]
    uncommon = [word for word in words if len(word) > 2 and not is_common(word)]
    return (
        len(parts) > 1
        and len(secret) >= 8
        and secret[0].isalpha()
        and (len(words) < len(parts) or len(words) > 2)
        and 2 * len(uncommon) >= max(1, len(words))
        and len(words) > 0
        and not any(part.isupper() for part in parts if len(part) > 1)
        and all(part.isalnum() and len(part) < 16 for part in parts)
        and (parts[-1] not in _ENDINGS_OF_FILES)
    )


#: Endings of file names.
_ENDINGS_OF_FILES = frozenset(
    "py js ts tsx jsx go rs md txt json yml yaml toml html css sh sql env pem key db com org net io dev local".split()
)


def is_quoted_phrase(secret: str) -> bool:
    """Whether quoted words are a passphrase, and no message about passwords: three words, or one uncommon one."""
    words = [word.strip(".,;:!?()").lower() for word in secret.split()]
    return (
        (len(words) > 1 or _UNSPACED.fullmatch(secret) is not None)
        and not any(word in secret for word in _UNSPACED_ABOUT)
        and not any(word in ABOUT for word in words)
        and not any(sign in secret for sign in "={}<>[]$\\|%/;&")
        and not any(word.startswith("-") for word in words)
        and (
            len(words) > 2
            or any(word.isalpha() and (len(word) > 2 or word > "\u2e80") and not is_common(word) for word in words)
        )
    )


#: A sentence in a script without blanks.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{5,40}")
#: Words about passwords in these scripts.
_UNSPACED_ABOUT = frozenset(filter(lambda word: word > "\u3040", ABOUT))


def is_handed_phrase(secret: str) -> bool:
    """Whether quoted words given to a program that asks for a phrase are one: five, or three with an uncommon one."""
    words = [word.strip(".,;:!?()") for word in secret.split()]
    return is_quoted_phrase(secret) and (len(words) > 4 or (len(words) > 2 and not all(map(is_common, words))))


def is_uncommon_phrase(secret: str) -> bool:
    """Whether quoted words after an ambiguous word are a passphrase: half of them are uncommon."""
    words = secret.split()
    return is_quoted_phrase(secret) and 2 * sum(not is_common(word) for word in words) >= len(words)


def is_told_phrase(secret: str) -> bool:
    """Whether words without quotes are a passphrase: at least three, half of them uncommon."""
    return len(secret.split()) > 2 and is_uncommon_phrase(secret)


def may_be_read_out(line: str) -> bool:
    """Whether a line contains three names of letters, digits or signs close together, as in a spelled-out secret."""
    runs = _RUNS.findall(line.lower())
    if _SPELT_ALONE.isdisjoint(runs):
        return False
    words = [(at, word) for at, word in enumerate(runs) if word in _SPELT_RUNS]
    for (first, second), (_, two), (last, three) in zip(words, words[1:], words[2:], strict=False):
        if last - first <= 6 and (not _JOINING.issuperset((second, two, three)) or len(second + two + three) == 3):
            return True
    return False


#: The words of a line.
_RUNS = re.compile("[A-Za-z0-9\u00c0-\u024f\u0400-\u04ff]+")
#: The words that name a letter, a digit or a sign.
_SPELT_RUNS = frozenset(
    [*(run for name in SPELT for run in _RUNS.findall(name)), *string.ascii_lowercase, *string.digits]
    + [f"{number:02}" for number in range(100)]
)
#: Those that are not also common words.
_SPELT_ALONE = _SPELT_RUNS - _JOINING


def is_read_out(secret: str) -> bool:
    """Whether a text spells out letters, digits and signs by their names."""
    words = [
        word for word in re.split(r"[\s,.\-]+", secret.lower()) if word in SPELT or len(word) == 1 or word.isdigit()
    ]
    named = sum(word not in _JOINING for word in words)
    return named >= 3 or (len(words) > 3 and named >= 2) or (len(words) > 4 and all(len(word) == 1 for word in words))
