"""What a password that somebody made up looks like, and what stands in its place and is none.

Values in, truths out; capture/secrets.py says for which words before one they are asked.
"""

from __future__ import annotations

import re

_DIGIT = re.compile(r"[0-9]")
PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@-]++){2,}+|[\w-]++(?:[./][\w-]++)*\.[a-z]{1,4}[0-9]?", re.ASCII)
_SIGN = re.compile(r"(?<=[A-Za-z])[!@$%^&*](?=[A-Za-z])")
#: A sign that no word and no name has, in what has a digit and eight characters at least.
_SIGNED = re.compile(r"(?=.{8})(?=[^0-9]{0,60}[0-9])[^!@#$%^&*?]{0,60}[!@#$%^&*?]")
#: A word with a capital and its number, at its end or inside, or several such words.
_NUMBERED = re.compile(
    r"(?=.{8})(?=[^A-Z]{0,60}[A-Z])(?=[^a-z]{0,60}[a-z])(?:[A-Za-z0-9]{2,40}|(?:[A-Z][a-z]{1,15}-){2,4})[0-9]{2}[a-z]{0,12}[.?!:]?"
)
#: A word that is no name for its digits: two of them, or one among letters of both cases.
_SPRINKLED = re.compile(
    r"(?=.{8})(?:(?=[^0-9]{1,60}[0-9][^0-9]{0,60}[0-9])|(?=[^A-Z]{0,60}[A-Z])(?=[^0-9]{0,60}[a-z][0-9][a-z]))[A-Za-z0-9]{2,60}[.?!:]?"
)
#: Names and numbers with slashes between them.
_SLASHED = re.compile(r"[^A-Z]*|[^0-9]*|[/~].*|(?:[A-Za-z_-]+[0-9]*/)+[A-Za-z_-]+[0-9]*\W?")
#: What is said of a password and is none: how it is hashed, how long it is, who keeps it.
_SAID_OF_ONE = re.compile(
    r"\w{0,8}crypt(?:$|[-_\d\W])|(?:argon|pbkdf|sha|md|aes|base|utf|rsa|oauth|iso|rfc)[-_]?\d|hmac-|1password|0x|a-z|"
    r"(?:at|min|max|level|step|type|option|version|section|phase|chapter|field|column|line)-?\d{1,2}\W?$|"
    r"\d+-(?:character|char|digit|letter|word|byte|bit|minute|hour|day|week|month|year|step|factor)",
    re.IGNORECASE,
)
#: Words of sentences about a passphrase and of examples for one; none has them.
_OF_SENTENCES = re.compile(
    r"[a-z]{0,20}(?:ed|ing|ly|able|ible|less|wide|side|based|only|time|text|word|phrase|level|safe|free)|"
    r"the|this|that|these|those|your|you|our|their|its|his|her|one|two|all|any|each|not|never|always|also|too|still|just|"
    r"and|but|for|from|with|when|then|than|where|what|which|who|how|out|over|into|onto|until|before|after|about|only|same|"
    r"must|should|can|could|will|would|may|has|have|had|was|were|are|does|did|been|being|empty|none|null|set|wrong|right|"
    r"here|there|now|yet|more|less|than|some|every|very|new|old|default|example|change|changeme|secret|user|users|admin|"
    r"kept|sent|held|given|taken|shown|hidden|written|read|known|made|part|place|holder|key|keys|token|value|string|file|stdin|"
    r"environment|variable|config|server|client|characters?|prompt|login",
    re.IGNORECASE,
)
#: A name in a program, an anchor of YAML, a ticket's number.
_JOINED = re.compile(
    r"_*[a-z0-9]+(?:_+[a-z0-9]+)+\W?|_*[A-Z0-9]+(?:_+[A-Z0-9]+)+\W?|[&*@][A-Za-z_]\w*|[A-Z]{2,8}-[0-9]{1,6}\W?",
    re.ASCII,
)
_PLACEHOLDER = re.compile(r"\$.*|%.*|\{.*|<.*|\*+|x+|\.{3}", re.IGNORECASE | re.DOTALL)
#: Words of an example without a digit of its own: `your-strong-password`, `super-fake-password`.
_OF_EXAMPLES = re.compile(
    r"fake|dummy|example|sample|placeholder|change|changeme|replace|your|x{3,}|real|strong|secure|super|test|user|"
    r"database|root|admin|password|passwd|passphrase|passcode|passwort|secret|token|login|value|string|here|this|with",
    re.IGNORECASE,
)
#: A name in a program: several words, each with a capital, and a number between two of them.
_CODE = re.compile(r"[A-Za-z][a-z]*(?:[A-Z][a-z]*)*[0-9]+(?:[A-Z][a-z]*[0-9]*)+[.?!:]?", re.ASCII)


def has_digit(secret: str) -> bool:
    """A digit, which a word has not."""
    return _DIGIT.search(secret) is not None


def is_chosen(secret: str) -> bool:
    """A password that somebody made up, not the place where one would stand."""
    return has_digit(secret) and is_filled_in(secret)


def is_mixed(secret: str) -> bool:
    """Letters and digits together, as nobody writes a word; a version, a path or a call is none."""
    letters = sum(char.isalpha() for char in secret)
    return (
        letters >= 3
        and has_digit(secret)
        and is_filled_in(secret)
        and not PATH.fullmatch(secret)
        and "." not in secret[1:-1]
    )


def is_told(secret: str) -> bool:
    """A password as somebody says one: letters mixed with digits or with a sign inside; no name, path, option or hash."""
    letters = sum(char.isalpha() for char in secret)
    return (
        letters >= 3
        and (has_digit(secret) or _SIGN.search(secret) is not None)
        and is_filled_in(secret)
        and not secret.startswith(("-", ".", "#", "@", "[redacted"))
        and not any(sign in secret[:-1] for sign in ".=")
        and not ("/" in secret[:-1] and _SLASHED.fullmatch(secret))
        and is_no_name(secret)
    )


def is_no_name(secret: str) -> bool:
    """Neither a name in a program nor what is said of a password and is none."""
    return _SAID_OF_ONE.match(secret) is None and _JOINED.fullmatch(secret) is None


def is_said(secret: str) -> bool:
    """Mixed, right behind the word that says what it is."""
    return is_mixed(secret) and is_no_name(secret)


def is_told_barely(secret: str) -> bool:
    """One that can be known where nothing but a blank says that it comes: `Sommer2024!`, `Blaubeer77`."""
    return is_told(secret) and (_SIGNED.search(secret) or _NUMBERED.fullmatch(secret)) is not None


def is_told_of_account(secret: str) -> bool:
    """One behind a word that is said of much else, too: `hunter22x` behind `pass:`, `Sup3rSecret` behind `admin:`."""
    return (
        is_told(secret)
        and (_SIGNED.search(secret) or _NUMBERED.fullmatch(secret) or _SPRINKLED.fullmatch(secret)) is not None
        and _CODE.fullmatch(secret) is None
    )


def is_signed(secret: str) -> bool:
    """One with a sign that no name has, where names stand, too: `Lemon#4482`, but not `Chrome120?`."""
    return is_told(secret) and _SIGNED.search(secret.rstrip(".,:?")) is not None


def is_phrase(secret: str) -> bool:
    """Words that make no sentence, as a phrase for a password has them."""
    words = re.split(r"[- ]", secret)
    return (
        sum(map(len, words)) >= 14
        and not any(_OF_SENTENCES.fullmatch(word) for word in words)
        and not all(_OF_EXAMPLES.fullmatch(word) for word in words)
    )


def is_filled_in(secret: str) -> bool:
    """No placeholder; `changeme` is none where the syntax says that it is a password: many are in use."""
    return _PLACEHOLDER.fullmatch(secret) is None
