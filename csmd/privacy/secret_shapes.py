"""Tells whether a text is a secret by its shape: predicates that the rules of `secret_rules` name; pure."""

from __future__ import annotations

import base64
import re
from itertools import pairwise

from csmd.privacy import secret_words
from csmd.privacy.secret_words import EXAMPLE_WORDS, SENTENCE_WORDS, STOP_WORDS, is_quoted_passphrase

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
_PASSWORD_TALK = re.compile(
    r"\w{0,8}crypt(?:$|[-_\d\W])|(?:argon|pbkdf|sha|md|aes|base|utf|rsa|oauth|iso|rfc)[-_]?\d|hmac-|1password|0x|a-z|"
    r"(?:at|min|max|level|step|type|option|version|section|phase|chapter|field|column|line)-?\d{1,2}\W?$|"
    r"\d+-(?:character|char|digit|letter|word|byte|bit|minute|hour|day|week|month|year|step|factor)",
    re.IGNORECASE,
)
#: Endings of words in sentences about a passphrase.
_SENTENCE_ENDING = re.compile(
    r"[a-z]{0,20}(?:ed|ing|ly|able|ible|less|wide|side|based|only|time|text|word|phrase|level|safe|free)",
    re.IGNORECASE,
)
#: A name in a program, an anchor of YAML, a ticket's number.
_JOINED = re.compile(
    r"_*[a-z0-9]+(?:_+[a-z0-9]+)+\W?|_*[A-Z0-9]+(?:_+[A-Z0-9]+)+\W?|[&*@][A-Za-z_]\w*|[A-Z]{2,8}-[0-9]{1,6}\W?",
    re.ASCII,
)
_PLACEHOLDER = re.compile(r"\$.*|%.*|\{.*|<.*|\*+|x+|\.{3}", re.IGNORECASE | re.DOTALL)
#: A name in a program: several words, each with a capital, and a number between two of them.
_CODE = re.compile(r"[A-Za-z][a-z]*(?:[A-Z][a-z]*)*[0-9]+(?:[A-Z][a-z]*[0-9]*)+[.?!:]?", re.ASCII)
_RUNS = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
#: The words in a name, separated by a sign, a digit or a change of case.
_WORDS_IN = re.compile(r"[^\W\d_A-Z]{2,}|[A-Z][^\W\d_A-Z]+|[A-Z]{2,}(?![^\W\d_A-Z])")
_RANDOM_RUN = re.compile(r"(?=[A-Za-z]{0,40}+[0-9])(?=[0-9]{0,40}+[A-Za-z])[A-Za-z0-9+/]{8}")
_NAME = re.compile(r"[A-Za-z_]\w{0,23}(?:\.[A-Za-z_]\w{0,23})*+|[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++", re.ASCII)
#: Words followed by a hash, as caches name files.
_HASHED_NAME = re.compile(r"([\w.]+(?:-[\w.]+)+)[-_.][0-9a-f]{32,64}\Z")
#: A part between `_` or `-` in a piece of a secret gives it away only from this many characters.
MIN_PART_CHARACTERS = 6


def has_digit(secret: str) -> bool:
    """Whether a text contains a digit, as no word does."""
    return _DIGIT.search(secret) is not None


def is_mixed(secret: str) -> bool:
    """Whether letters and digits are mixed as in no word; not for a version, a path or a call."""
    if not has_digit(secret) or sum(map(str.isalpha, secret)) < 3 or "." in secret[1:-1]:
        return False
    return is_filled_in(secret) and not PATH.fullmatch(secret)


def is_spoken_password(secret: str) -> bool:
    """Whether a text is a password as people write them: letters with digits or a sign inside.

    Rejects names, paths, options and hashes.
    """
    if sum(map(str.isalpha, secret)) < 3 or secret.startswith(("-", ".", "#", "@", "[redacted")):
        return False
    if max(secret) >= "\u2e80":  # these scripts have no blanks within a sentence
        return False
    if any(sign in secret[:-1] for sign in ".=") or ("/" in secret[:-1] and _SLASHED.fullmatch(secret)):
        return False
    is_odd = has_digit(secret) or _SIGN.search(secret) is not None or is_generated(secret)
    return is_odd and is_filled_in(secret) and not is_name(secret)


def is_name(secret: str) -> bool:
    """Whether a text is a name in a program or a word about passwords."""
    return _PASSWORD_TALK.match(secret) is not None or _JOINED.fullmatch(secret) is not None


def is_labelled_secret(secret: str) -> bool:
    """Whether a text that directly follows a word for a secret is one: mixed letters and digits."""
    return is_mixed(secret) and not is_name(secret)


def is_unlabelled_password(secret: str) -> bool:
    """Whether a text is recognisable as a password after nothing but a blank: `Sommer2024!`, `Blaubeer77`."""
    return _is_made_up(secret, _ENDING)


def is_account_password(secret: str) -> bool:
    """Whether a text is a password after an ambiguous word: `hunter22x` after `pass:`, `Sup3rSecret` after `admin:`."""
    return _is_made_up(secret, _SPRINKLED)


def _is_made_up(secret: str, shape: re.Pattern[str]) -> bool:
    """Whether a spoken password is generated, has a sign or a number, or has this shape, and is not a name in code."""
    if not is_spoken_password(secret) or _is_code(secret):
        return False
    shapes = _SIGNED.search(secret), _NUMBERED.fullmatch(secret), shape.fullmatch(secret)
    return is_generated(secret) or any(shapes)


def _is_code(secret: str) -> bool:
    """Whether a text is a name in a program: its words are longer than the runs of generated text."""
    return _CODE.fullmatch(secret) is not None and 2 * sum(map(str.isalpha, secret)) >= 5 * len(_RUNS.findall(secret))


def is_known_alone(secret: str) -> bool:
    """Whether a secret is recognisable wherever it occurs again: long, and no word, name, path or placeholder."""
    if not 8 <= len(secret) <= 512 or any(map(str.isspace, secret)) or "[redacted" in secret:
        return False
    if PATH.fullmatch(secret) or re.fullmatch(UUID, secret):
        return False
    return is_token(secret) or is_unlabelled_password(secret)


def gives_secret_away(piece: str, secret: str) -> bool:
    """Whether the beginning or end of a secret gives it away: mixed throughout, or nearly the whole."""
    long_parts = (part for part in re.split("[_-]", piece) if len(part) >= MIN_PART_CHARACTERS)
    is_dense = (_is_dense(piece) and not is_name(piece)) or any(map(_is_dense, long_parts))
    is_known = is_known_alone(piece) and is_unusual(piece)
    return is_dense or (is_known and (4 * len(piece) >= 3 * len(secret) or not has_digit(piece)))


def _is_dense(text: str) -> bool:
    """Whether digits and letters alternate throughout a text."""
    return has_digit(text) and _count_class_changes(text) >= max(3, len(text) / 4)


def is_unusual(piece: str) -> bool:
    """Whether a text is neither one word nor several common ones."""
    words = _WORDS_IN.findall(piece)
    return len(piece) > max(map(len, words), default=0) and not all(map(secret_words.is_common, words))


def is_signed(secret: str) -> bool:
    """Whether a text has a sign that no name contains: `Lemon#4482`, but not `Chrome120?`."""
    return is_spoken_password(secret) and _SIGNED.search(secret.rstrip(".,:?")) is not None


def is_account_entry(secret: str) -> bool:
    """Whether a text next to an account's name is a password, and not a program with its version."""
    if not is_unlabelled_password(secret) or re.fullmatch(r"[A-Z][a-z]+[0-9]+[.,:?]?", secret):
        return False
    return is_signed(secret) or is_generated(secret) or not all(map(secret_words.is_common, _WORDS_IN.findall(secret)))


def is_passphrase(secret: str) -> bool:
    """Whether words are a passphrase: they make no sentence."""
    words = re.split(r"[- ]", secret)
    if sum(map(len, words)) < 14 or all(map(_is_example_word, words)):
        return False
    return not any(word.lower() in SENTENCE_WORDS or _SENTENCE_ENDING.fullmatch(word) for word in words)


def _is_example_word(word: str) -> bool:
    return word.lower() in EXAMPLE_WORDS or re.fullmatch("[xX]{3,}", word) is not None


def is_part(secret: str) -> bool:
    """Whether a text is one part of a secret given in parts: mixed as no word is, or with a sign and a digit inside."""
    if len(secret) < 5 or not has_digit(secret) or secret.startswith(("-", "[redacted")):
        return False
    if any(sign in secret[:-1] for sign in "./=<>&\\") or _HEX.fullmatch(secret) or PATH.fullmatch(secret):
        return False
    has_sign = re.search(r"[0-9].*[!@#$%^&*?]|[!@#$%^&*?].*[0-9]", secret.rstrip(".,:?!"))
    is_odd = _count_class_changes(secret) >= 3 or has_sign is not None
    return is_odd and is_filled_in(secret) and not is_name(secret) and not _is_code(secret)


def is_uncommon(secret: str) -> bool:
    """Whether a text is a single word that is neither used to talk about secrets nor a name in a program."""
    return secret_words.is_uncommon(secret) and not is_name(secret) and is_filled_in(secret)


def is_joined_words(secret: str) -> bool:
    """Whether a text is words joined by signs that are not used to talk about secrets."""
    return secret_words.is_joined_words(secret) and _PASSWORD_TALK.match(secret) is None


def is_labelled_token(secret: str) -> bool:
    """Whether a text directly after a word for a token is one: also lower-case letters with few digits."""
    inside = re.fullmatch(r"(?=.{0,60}?[a-z][0-9]+[a-z])[a-z0-9]{20,64}", secret)
    return is_token(secret) or (inside is not None and _HEX.fullmatch(secret) is None)


def is_part_or_words(secret: str) -> bool:
    """Whether a text is mixed as no name is, or words joined by signs that are not used to talk about secrets."""
    return is_unlabelled_password(secret) or is_joined_words(secret) or (is_part(secret) and len(secret) >= 8)


def is_seed_phrase(secret: str) -> bool:
    """Whether words are a seed phrase: none belongs to a sentence, and half are uncommon."""
    words = re.findall("[A-Za-z]+", secret)
    uncommon = sum(not secret_words.is_common(word) for word in words)
    return STOP_WORDS["english"].isdisjoint(words) and 2 * uncommon >= len(words)


def is_grouped_key(secret: str) -> bool:
    """Whether a text is groups of one length, as keys are printed for typing."""
    groups = re.split(r"[ -]", secret)
    if len({len(group) for group in groups[:-1]}) > 1 or len(groups[-1]) > len(groups[0]):
        return False
    mixed = [group for group in groups if has_digit(group) or group.isupper()]
    return len(mixed) * 2 >= len(groups) or (
        len(groups) == 4 and len(groups[0]) == 4 and not any(map(secret_words.is_common, groups))
    )


def is_code_list(secret: str) -> bool:
    """Whether a text is a list of codes: at least six characters, an eighth of them digits."""
    characters = [char for char in secret if char.isalnum()]
    return len(characters) >= 6 and 8 * sum(map(str.isdigit, characters)) >= len(characters)


def is_filled_in(secret: str) -> bool:
    """Whether a text is not a placeholder; `changeme` counts as a password, because many are in use."""
    return _PLACEHOLDER.fullmatch(secret) is None


def looks_random(secret: str) -> bool:
    """Whether letters and digits are mixed in one run; not for a name in a program or a path."""
    return bool(_RANDOM_RUN.search(secret)) and not _NAME.fullmatch(secret) and not PATH.fullmatch(secret)


def is_generated(secret: str) -> bool:
    """Whether a text changes kind at least every four characters (`x7Kd2mQpW9`), or is long hexadecimal."""
    least = 6 if len(secret) >= 32 and _HEX.fullmatch(secret) else max(4, len(secret) / 4)
    return len(secret) >= 10 and _count_class_changes(secret) >= least


def _count_class_changes(text: str) -> int:
    """Counts the changes between digit and letter, and from a lower-case letter to a capital."""
    kinds = [0 if char.isdigit() else 2 if char.isupper() else 1 for char in text if char.isalnum()]
    return sum((kind == 0) != (later == 0) or (kind, later) == (1, 2) for kind, later in pairwise(kinds))


def is_declared_secret(secret: str) -> bool:
    """Whether a value whose syntax marks it as a secret is one: with a digit, a sign, generated letters or a phrase.

    Rejects placeholders.
    """
    if not is_filled_in(secret):
        return False
    if " " in secret:
        return is_quoted_passphrase(secret)
    if "[redacted" in secret or all(map(_is_example_word, re.split(r"[-_]", secret))):
        return False
    return has_digit(secret) or _SIGN.search(secret) is not None or is_generated(secret) or is_passphrase(secret)


def is_password_input(secret: str) -> bool:
    """Whether the input of a program that asks for a password is one: also uncommon words."""
    return is_declared_secret(secret) or is_uncommon(secret.replace("_", "-"))


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
    return (
        has_digit(secret)
        and _count_class_changes(secret) >= 3
        and not PATH.fullmatch(secret)
        and not _DOTTED.fullmatch(secret)
    )


def is_token(secret: str) -> bool:
    """Whether a text is generated: 16 characters or more, letters and digits mixed throughout.

    Rejects paths, UUIDs and names with a hash.
    """
    names = _HASHED_NAME.match(secret)
    if len(secret) < 16 or not has_digit(secret) or (names and not is_generated(names[1])):
        return False
    if secret.count(".") > 2 or PATH.fullmatch(secret) or re.fullmatch(UUID, secret):
        return False
    return is_generated(secret) and (len(secret) >= 24 or not _HEX.fullmatch(secret))


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
