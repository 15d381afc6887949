"""Recognises passphrases and spelled-out secrets by their words; pure."""

from __future__ import annotations

import re
import string

from csmd import data

_WORDS = data.word_table("secret_words.txt")
STOP_WORDS = data.word_table("stop_words.txt")
#: Words used to talk about passwords.
PASSWORD_TALK = _WORDS["about"]
_COMMON_WORDS = PASSWORD_TALK.union(_WORDS["common"], *STOP_WORDS.values())
#: Words of sentences about a passphrase; no real passphrase contains them.
SENTENCE_WORDS = _WORDS["sentence"]
#: Words of examples without a digit: `your-strong-password`, `super-fake-password`.
EXAMPLE_WORDS = _WORDS["example"]
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
#: Signs of a name in a program, and those of code that no passphrase contains.
_CODE_SIGN = re.compile(r"[=/\\()<>\[\]{}$@:|._]")
_PHRASE_CODE = re.compile(r"[={}<>\[\]$\\|%/;&]")
_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]*)+")
_FILE_ENDINGS = frozenset(
    "py js ts tsx jsx go rs md txt json yml yaml toml html css sh sql env pem key db com org net io dev local".split()
)
#: A sentence in a script without blanks.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{5,40}")
#: Words about passwords in these scripts.
_UNSPACED_TALK = frozenset(word for word in PASSWORD_TALK if word > "\u3040")
#: Names of letters, digits and signs.
CHARACTER_NAMES = _WORDS["spelt"]
#: Character names that are also common words in a sentence.
_AMBIGUOUS_NAMES = frozenset(
    "a i e o y to on en et at ti ni is two space mark case big small new point un une um uma one once due as".split()
)
_LINE_WORD = re.compile("[A-Za-z0-9\u00c0-\u024f\u0400-\u04ff]+")
#: The words of character names, and single letters and digits.
_NAME_WORDS = frozenset(
    [*(word for name in CHARACTER_NAMES for word in _LINE_WORD.findall(name)), *string.ascii_lowercase, *string.digits]
    + [f"{number:02}" for number in range(100)]
)
_CLEAR_WORDS = _NAME_WORDS - _AMBIGUOUS_NAMES
#: Most words from the first to the third of three character names that spell something.
MAX_DISTANCE = 6


def is_common(word: str) -> bool:
    """Whether a word is common in sessions, or in talk about passwords."""
    plain = word.lower().strip("'\u2019")
    if plain in _COMMON_WORDS or _DESCRIBING.fullmatch(plain):
        return True
    stem = _INFLECTED.sub("", plain)
    return stem != plain and len(stem) > 2 and stem in _COMMON_WORDS


def is_uncommon(secret: str) -> bool:
    """Whether a text is a single word that is neither common in talk about secrets nor a name in a program."""
    word = secret.strip("*_").rstrip(".!?:")
    if len(word) < 4 or sum(map(str.isalpha, word)) < 3 or not word[0].isalnum():
        return False
    if word.isupper() or _CAMEL.fullmatch(word) or _CODE_SIGN.search(word) or max(word) >= "\u2e80":
        return False
    parts = [plain for part in _PARTS.split(word) if (plain := part.rstrip("0123456789"))]
    common = sum(map(is_common, parts))
    return common < len(parts) and (len(parts) == 1 or 2 * common <= len(parts))


def is_joined_words(secret: str) -> bool:
    """Whether a text is mostly uncommon words joined by signs, as `plum_ferry_62` is and `user_id_2` is not."""
    parts = [part for part in re.split(r"[-_.+]", secret.rstrip(".,!?")) if part]
    words = [part for part in parts if part.isalpha()]
    if len(secret) < 8 or len(parts) < 2 or not secret[0].isalpha() or parts[-1] in _FILE_ENDINGS:
        return False
    if not words or len(words) == len(parts) == 2:
        return False
    if any((part.isupper() and len(part) > 1) or not part.isalnum() or len(part) > 15 for part in parts):
        return False
    return 2 * sum(len(word) > 2 and not is_common(word) for word in words) >= len(words)


def _split_phrase(phrase: str) -> list[str]:
    return [word.strip(".,;:!?()") for word in phrase.split()]


def is_quoted_passphrase(secret: str) -> bool:
    """Whether quoted words are a passphrase: three or more, or one uncommon, none about passwords."""
    words = _split_phrase(secret.lower())
    if len(words) < 2 and not _UNSPACED.fullmatch(secret):
        return False
    if any(word in secret for word in _UNSPACED_TALK) or not PASSWORD_TALK.isdisjoint(words):
        return False
    if _PHRASE_CODE.search(secret) or any(word.startswith("-") for word in words):
        return False
    uncommon = (word for word in words if word.isalpha() and not is_common(word))
    return len(words) > 2 or any(len(word) > 2 or word > "\u2e80" for word in uncommon)


def is_prompted_passphrase(secret: str) -> bool:
    """Whether quoted words passed to a passphrase prompt are a passphrase: five, or three with one uncommon."""
    words = _split_phrase(secret)
    return is_quoted_passphrase(secret) and (len(words) > 4 or (len(words) > 2 and not all(map(is_common, words))))


def is_uncommon_passphrase(secret: str) -> bool:
    """Whether quoted words after an ambiguous word are a passphrase: half of them are uncommon."""
    words = secret.split()
    return is_quoted_passphrase(secret) and 2 * sum(not is_common(word) for word in words) >= len(words)


def is_unquoted_passphrase(secret: str) -> bool:
    """Whether words without quotes are a passphrase: at least three, half of them uncommon."""
    return len(secret.split()) > 2 and is_uncommon_passphrase(secret)


# --- secrets that are spelled letter by letter


def may_be_spelled_out(line: str) -> bool:
    """Whether a line contains three character names close together."""
    words = _LINE_WORD.findall(line.lower())
    if _CLEAR_WORDS.isdisjoint(words):
        return False
    names = [(index, word) for index, word in enumerate(words) if word in _NAME_WORDS]
    for (first, name), (_, second), (last, third) in zip(names, names[1:], names[2:], strict=False):
        is_clear = not _AMBIGUOUS_NAMES.issuperset((name, second, third)) or len(name + second + third) == 3
        if last - first <= MAX_DISTANCE and is_clear:
            return True
    return False


def is_spelled_out(secret: str) -> bool:
    """Whether a text spells out letters, digits and signs by their names."""
    words = re.split(r"[\s,.\-]+", secret.lower())
    names = [word for word in words if word in CHARACTER_NAMES or len(word) == 1 or word.isdigit()]
    clear = sum(word not in _AMBIGUOUS_NAMES for word in names)
    return clear >= 3 or (len(names) > 3 and clear >= 2) or (len(names) > 4 and all(len(word) == 1 for word in names))
