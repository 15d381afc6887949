"""Tells whether a text is a secret by its shape: predicates that the rules of `secret_rules` name; pure."""

from __future__ import annotations

import base64
import itertools
import re

from csmd.privacy import secret_words
from csmd.privacy.secret_words import is_quoted_phrase

UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)")
_DIGIT = re.compile(r"[0-9]")
PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@-]++){2,}+|[\w-]++(?:[./][\w-]++)*\.[a-z]{1,4}[0-9]?", re.ASCII)
_SIGN = re.compile(r"(?<=[A-Za-z])[!@$%^&*](?=[A-Za-z])")
#: A sign that no word and no name contains, in at least eight characters with a digit.
_SIGNED = re.compile(r"(?=.{8})(?=[^0-9]{0,60}[0-9])[^!@#$%^&*?]{0,60}[!@#$%^&*?]")
#: A capitalised word, or several, with a number at the end or inside.
_NUMBERED = re.compile(
    r"(?=.{8})(?=[^A-Z]{0,60}[A-Z])(?=[^a-z]{0,60}[a-z])(?:[A-Za-z0-9]{2,40}"
    r"|(?:[A-Z][a-z]{1,15}-){2,4})[0-9]{2}[a-z]{0,12}[.?!:]?"
)
#: A word that ends with a number of three or more digits.
_ENDING = re.compile(r"[A-Za-z]{4,30}(?:-[a-z]{4,20})?-?[0-9]{3,6}[.?!:]?")
#: A word with too many digits for a name: two, or one among letters of both cases.
_SPRINKLED = re.compile(
    r"(?=.{8})(?:(?=[^0-9]{1,60}[0-9][^0-9]{0,60}[0-9])"
    r"|(?=[^A-Z]{0,60}[A-Z])(?=[^0-9]{0,60}[a-z][0-9][a-z]))[A-Za-z0-9]{2,60}[.?!:]?"
)
#: Names and numbers with slashes between them.
_SLASHED = re.compile(r"[^A-Z]*|[^0-9]*|[/~].*|(?:[A-Za-z_-]+[0-9]*/)+[A-Za-z_-]+[0-9]*\W?")
#: Words about a password that are not one: how it is hashed, how long it is, which program stores it.
_SAID_OF_ONE = re.compile(
    r"\w{0,8}crypt(?:$|[-_\d\W])|(?:argon|pbkdf|sha|md|aes|base|utf|rsa|oauth|iso|rfc)[-_]?\d|hmac-|1password|0x|a-z|"
    r"(?:at|min|max|level|step|type|option|version|section|phase|chapter|field|column|line)-?\d{1,2}\W?$|"
    r"\d+-(?:character|char|digit|letter|word|byte|bit|minute|hour|day|week|month|year|step|factor)",
    re.IGNORECASE,
)
#: Words of sentences about a passphrase and of examples; no real passphrase contains them.
_OF_SENTENCES = re.compile(
    r"[a-z]{0,20}(?:ed|ing|ly|able|ible|less|wide|side|based|only|time|text|word|phrase|level|safe|free)|"
    r"the|this|that|these|those|your|you|our|their|its|his|her|one|two|all|any|each|not|never|always|also|too|still"
    r"|just|"
    r"and|but|for|from|with|when|then|than|where|what|which|who|how|out|over|into|onto|until|before|after|about|only"
    r"|same|"
    r"must|should|can|could|will|would|may|has|have|had|was|were|are|does|did|been|being|empty|none|null|set|wrong"
    r"|right|"
    r"here|there|now|yet|more|less|than|some|every|very|new|old|default|example|change|changeme|secret|user|users"
    r"|admin|"
    r"kept|sent|held|given|taken|shown|hidden|written|read|known|made|part|place|holder|key|keys|token|value|string"
    r"|file|stdin|"
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
    """Whether a text contains a digit, as no word does."""
    return _DIGIT.search(secret) is not None


def is_chosen(secret: str) -> bool:
    """Whether a text is a password that a person made up, not a placeholder."""
    return has_digit(secret) and is_filled_in(secret)


def is_mixed(secret: str) -> bool:
    """Whether letters and digits are mixed as in no word; not for a version, a path or a call."""
    letters = sum(char.isalpha() for char in secret)
    return (
        letters >= 3
        and has_digit(secret)
        and is_filled_in(secret)
        and not PATH.fullmatch(secret)
        and "." not in secret[1:-1]
    )


def is_spoken_password(secret: str) -> bool:
    """Whether a text is a password as people write them: letters with digits or a sign inside.

    No name, path, option or hash.
    """
    letters = sum(char.isalpha() for char in secret)
    return (
        letters >= 3
        and (has_digit(secret) or _SIGN.search(secret) is not None or is_generated(secret))
        and is_filled_in(secret)
        and not secret.startswith(("-", ".", "#", "@", "[redacted"))
        and max(secret) < "\u2e80"  # these scripts have no blanks within a sentence
        and not any(sign in secret[:-1] for sign in ".=")
        and not ("/" in secret[:-1] and _SLASHED.fullmatch(secret))
        and is_no_name(secret)
    )


def is_no_name(secret: str) -> bool:
    """Whether a text is neither a name in a program nor a word about passwords."""
    return _SAID_OF_ONE.match(secret) is None and _JOINED.fullmatch(secret) is None


def is_labelled_secret(secret: str) -> bool:
    """Whether a text that directly follows a word for a secret is one: mixed letters and digits."""
    return is_mixed(secret) and is_no_name(secret)


def is_unlabelled_password(secret: str) -> bool:
    """Whether a text is recognisable as a password after nothing but a blank: `Sommer2024!`, `Blaubeer77`."""
    if not is_spoken_password(secret) or _is_code(secret):
        return False
    return (
        is_generated(secret)
        or (_SIGNED.search(secret) or _NUMBERED.fullmatch(secret) or _ENDING.fullmatch(secret)) is not None
    )


def is_account_password(secret: str) -> bool:
    """Whether a text is a password after an ambiguous word: `hunter22x` after `pass:`, `Sup3rSecret` after `admin:`."""
    if not is_spoken_password(secret):
        return False
    if is_generated(secret) and not _is_code(secret):
        return True
    chosen = _SIGNED.search(secret) or _NUMBERED.fullmatch(secret) or _SPRINKLED.fullmatch(secret)
    return chosen is not None and not _is_code(secret)


def _is_code(secret: str) -> bool:
    """Whether a text is a name in a program: its words are longer than the runs of generated text."""
    return _CODE.fullmatch(secret) is not None and 2 * sum(map(str.isalpha, secret)) >= 5 * len(_RUNS.findall(secret))


def is_known_alone(secret: str) -> bool:
    """Whether a secret is recognisable wherever it occurs again: long, and no word, name, path or placeholder."""
    return (
        8 <= len(secret) <= 512
        and not any(map(str.isspace, secret))
        and "[redacted" not in secret
        and PATH.fullmatch(secret) is None
        and re.fullmatch(UUID, secret) is None
        and (is_token(secret) or is_unlabelled_password(secret))
    )


def is_piece(piece: str, secret: str) -> bool:
    """Whether the beginning or end of a secret gives it away: mixed throughout, or nearly the whole."""
    long_parts = (part for part in re.split("[_-]", piece) if len(part) >= MIN_PART)
    is_dense = (_is_dense(piece) and is_no_name(piece)) or any(map(_is_dense, long_parts))
    is_known = is_known_alone(piece) and is_unusual(piece)
    return is_dense or (is_known and (4 * len(piece) >= 3 * len(secret) or not has_digit(piece)))


#: A mixed part of a piece, between `_` or `-`, gives it away if it has at least this many characters.
MIN_PART = 6


def _is_dense(text: str) -> bool:
    """Whether digits and letters alternate throughout a text."""
    return has_digit(text) and _turns(text) >= max(3, len(text) / 4)


def is_unusual(piece: str) -> bool:
    """Whether a text is neither one word nor several common ones."""
    words = _WORDS_IN.findall(piece)
    return len(piece) > max(map(len, words), default=0) and not all(map(secret_words.is_common, words))


_RUNS = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
#: The words in a name, separated by a sign, a digit or a change of case.
_WORDS_IN = re.compile(r"[^\W\d_A-Z]{2,}|[A-Z][^\W\d_A-Z]+|[A-Z]{2,}(?![^\W\d_A-Z])")


def is_signed(secret: str) -> bool:
    """Whether a text has a sign that no name contains: `Lemon#4482`, but not `Chrome120?`."""
    return is_spoken_password(secret) and _SIGNED.search(secret.rstrip(".,:?")) is not None


def is_entry(secret: str) -> bool:
    """Whether a text next to an account's name is a password, and not a program with its version."""
    if not is_unlabelled_password(secret) or re.fullmatch(r"[A-Z][a-z]+[0-9]+[.,:?]?", secret):
        return False
    return is_signed(secret) or is_generated(secret) or not all(map(secret_words.is_common, _WORDS_IN.findall(secret)))


def is_phrase(secret: str) -> bool:
    """Whether words are a passphrase: they make no sentence."""
    words = re.split(r"[- ]", secret)
    return (
        sum(map(len, words)) >= 14
        and not any(_OF_SENTENCES.fullmatch(word) for word in words)
        and not all(_OF_EXAMPLES.fullmatch(word) for word in words)
    )


def is_part(secret: str) -> bool:
    """Whether a text is one part of a secret given in parts: mixed as no word is, or with a sign and a digit inside."""
    return (
        len(secret) >= 5
        and has_digit(secret)
        and not secret.startswith(("-", "[redacted"))
        and not any(sign in secret[:-1] for sign in "./=<>&\\")
        and _HEX.fullmatch(secret) is None
        and (
            _turns(secret) >= 3
            or re.search(r"[0-9].*[!@#$%^&*?]|[!@#$%^&*?].*[0-9]", secret.rstrip(".,:?!")) is not None
        )
        and is_filled_in(secret)
        and is_no_name(secret)
        and not PATH.fullmatch(secret)
        and not _is_code(secret)
    )


def is_uncommon(secret: str) -> bool:
    """Whether a text is a single word that is neither used to talk about secrets nor a name in a program."""
    return secret_words.is_uncommon(secret) and is_no_name(secret) and is_filled_in(secret)


def is_joined_words(secret: str) -> bool:
    """Whether a text is words joined by signs that are not used to talk about secrets."""
    return secret_words.is_joined_words(secret) and _SAID_OF_ONE.match(secret) is None


def is_labelled_token(secret: str) -> bool:
    """Whether a text directly after a word for a token is one: also lower-case letters with few digits."""
    inside = re.fullmatch(r"(?=.{0,60}?[a-z][0-9]+[a-z])[a-z0-9]{20,64}", secret)
    return is_token(secret) or (inside is not None and _HEX.fullmatch(secret) is None)


def is_part_or_words(secret: str) -> bool:
    """Whether a text is mixed as no name is, or words joined by signs that are not used to talk about secrets."""
    return is_unlabelled_password(secret) or is_joined_words(secret) or (is_part(secret) and len(secret) >= 8)


def is_seed(secret: str) -> bool:
    """Whether words are a seed phrase: none belongs to a sentence, and half are uncommon."""
    words = re.findall("[A-Za-z]+", secret)
    uncommon = [word for word in words if not secret_words.is_common(word)]
    return not any(word in secret_words.STOP for word in words) and 2 * len(uncommon) >= len(words)


def is_grouped(secret: str) -> bool:
    """Whether a text is groups of one length, as keys are printed for typing."""
    groups = re.split(r"[ -]", secret)
    if len({len(group) for group in groups[:-1]}) > 1 or len(groups[-1]) > len(groups[0]):
        return False
    mixed = [group for group in groups if has_digit(group) or group.isupper()]
    return len(mixed) * 2 >= len(groups) or (
        len(groups) == 4 and len(groups[0]) == 4 and not any(map(secret_words.is_common, groups))
    )


def is_codes(secret: str) -> bool:
    """Whether a text is a list of codes: at least six characters, an eighth of them digits."""
    characters = [char for char in secret if char.isalnum()]
    return len(characters) >= 6 and 8 * sum(map(str.isdigit, characters)) >= len(characters)


def is_filled_in(secret: str) -> bool:
    """Whether a text is not a placeholder; `changeme` counts as a password, because many are in use."""
    return _PLACEHOLDER.fullmatch(secret) is None


_RANDOM_RUN = re.compile(r"(?=[A-Za-z]{0,40}+[0-9])(?=[0-9]{0,40}+[A-Za-z])[A-Za-z0-9+/]{8}")
_NAME = re.compile(r"[A-Za-z_]\w{0,23}(?:\.[A-Za-z_]\w{0,23})*+|[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++", re.ASCII)


def looks_random(secret: str) -> bool:
    """Whether letters and digits are mixed in one run; not for a name in a program or a path."""
    return bool(_RANDOM_RUN.search(secret)) and not _NAME.fullmatch(secret) and not PATH.fullmatch(secret)


def is_generated(secret: str) -> bool:
    """Whether a text changes kind at least every four characters (`x7Kd2mQpW9`), or is long hexadecimal."""
    least = 6 if len(secret) >= 32 and _HEX.fullmatch(secret) else max(4, len(secret) / 4)
    return len(secret) >= 10 and _turns(secret) >= least


def _turns(text: str) -> int:
    """Counts the changes between digit and letter, and from a lower-case letter to a capital."""
    kinds = [0 if char.isdigit() else 2 if char.isupper() else 1 for char in text if char.isalnum()]
    return sum((left == 0) != (other == 0) or (left, other) == (1, 2) for left, other in itertools.pairwise(kinds))


def is_given(secret: str) -> bool:
    """Whether a value whose syntax marks it as a secret is one: with a digit, a sign, generated letters or a phrase.

    No placeholder.
    """
    if " " in secret:
        return is_filled_in(secret) and is_quoted_phrase(secret)
    return (
        (has_digit(secret) or _SIGN.search(secret) is not None or is_generated(secret) or is_phrase(secret))
        and is_filled_in(secret)
        and not all(_OF_EXAMPLES.fullmatch(part) for part in re.split(r"[-_]", secret))
        and "[redacted" not in secret
    )


def is_handed(secret: str) -> bool:
    """Whether the input of a program that asks for a password is one: also uncommon words."""
    return is_given(secret) or is_uncommon(secret.replace("_", "-"))


def is_own_line(secret: str) -> bool:
    """Whether a line of its own, below one that names a secret, is one: generated, or as people write passwords."""
    return is_token(secret) or (is_unlabelled_password(secret) and not PATH.fullmatch(secret))


def is_input(secret: str) -> bool:
    """Whether a program's input is a password or token, and not a checksum."""
    return is_own_line(secret) and not _HEX.fullmatch(secret)


def is_url_password(secret: str) -> bool:
    """Whether the text before the last `@` of an address is a password, and not a port or a path."""
    return (
        secret.lower() not in ("password", "pass", "secret")
        and is_filled_in(secret)
        and re.match(r"\d{1,5}(?:[/?#]|$)", secret) is None
        and "://" not in secret
    )


def is_credential(secret: str) -> bool:
    """Whether a header's value grants access: letters and digits, neither a placeholder nor a path."""
    return has_digit(secret) and _turns(secret) >= 3 and not PATH.fullmatch(secret) and not _DOTTED.fullmatch(secret)


#: Words followed by a hash, as caches name files.
_HASHED_NAME = re.compile(r"([\w.]+(?:-[\w.]+)+)[-_.][0-9a-f]{32,64}\Z")


def is_token(secret: str) -> bool:
    """Whether a text is generated: 16 characters, letters and digits mixed throughout.

    No path, UUID or name with a hash.
    """
    names = _HASHED_NAME.match(secret)
    if names is not None and not is_generated(names[1]):
        return False
    return (
        len(secret) >= 16
        and has_digit(secret)
        and is_generated(secret)
        and secret.count(".") < 3
        and not PATH.fullmatch(secret)
        and not re.fullmatch(UUID, secret)
        and (len(secret) >= 24 or not _HEX.fullmatch(secret))
    )


def holds_private_key(secret: str) -> bool:
    """Whether a text is the base64 of a private key in PEM, and not of a certificate."""
    head = re.sub(r"\\[rn]|\s", "", secret[:120])
    return b"PRIVATE KEY" in base64.b64decode(head[: len(head) // 4 * 4])


def is_card_number(secret: str) -> bool:
    """Whether a number has the check digit of a payment card."""
    digits = [int(char) for char in secret if char.isdigit()]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return 13 <= len(digits) <= 19 and len(set(digits)) > 2 and (doubled + sum(digits[-1::-2])) % 10 == 0


def is_session_cookie(secret: str) -> bool:
    """Whether one of a cookie's values is long and mixed enough to grant access."""
    values = [pair.partition("=")[2] for pair in secret.split(";")]
    return any(len(value) >= 16 and _RANDOM_RUN.search(value) for value in values)
