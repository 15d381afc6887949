"""What a secret looks like: the table of kinds, the tests of a value, and the names of fields that hold one."""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from csmd import data
from csmd.privacy import secret_words
from csmd.privacy.secret_words import (
    is_handed_phrase,
    is_quoted_phrase,
    is_read_out,
    is_told_phrase,
    is_uncommon_phrase,
    may_be_read_out,
)

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)")
_DIGIT = re.compile(r"[0-9]")
PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@-]++){2,}+|[\w-]++(?:[./][\w-]++)*\.[a-z]{1,4}[0-9]?", re.ASCII)
_SIGN = re.compile(r"(?<=[A-Za-z])[!@$%^&*](?=[A-Za-z])")
#: A sign that no word and no name has, in what has a digit and eight characters at least.
_SIGNED = re.compile(r"(?=.{8})(?=[^0-9]{0,60}[0-9])[^!@#$%^&*?]{0,60}[!@#$%^&*?]")
#: A word with a capital and its number, at its end or inside, or several such words.
_NUMBERED = re.compile(
    r"(?=.{8})(?=[^A-Z]{0,60}[A-Z])(?=[^a-z]{0,60}[a-z])(?:[A-Za-z0-9]{2,40}|(?:[A-Z][a-z]{1,15}-){2,4})[0-9]{2}[a-z]{0,12}[.?!:]?"
)
#: A word with a number of three digits or more at its end.
_ENDING = re.compile(r"[A-Za-z]{4,30}(?:-[a-z]{4,20})?-?[0-9]{3,6}[.?!:]?")
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
    """A password that a person made up, not a placeholder for one."""
    return has_digit(secret) and is_filled_in(secret)


def is_mixed(secret: str) -> bool:
    """Letters and digits mixed as in no word; a version, a path or a call is none."""
    letters = sum(char.isalpha() for char in secret)
    return (
        letters >= 3
        and has_digit(secret)
        and is_filled_in(secret)
        and not PATH.fullmatch(secret)
        and "." not in secret[1:-1]
    )


def is_spoken_password(secret: str) -> bool:
    """A password as a person writes one: letters mixed with digits or with a sign inside; no name, path, option or hash."""
    letters = sum(char.isalpha() for char in secret)
    return (
        letters >= 3
        and (has_digit(secret) or _SIGN.search(secret) is not None or is_generated(secret))
        and is_filled_in(secret)
        and not secret.startswith(("-", ".", "#", "@", "[redacted"))
        and max(secret) < "\u2e80"  # a sentence goes on without a blank in these scripts
        and not any(sign in secret[:-1] for sign in ".=")
        and not ("/" in secret[:-1] and _SLASHED.fullmatch(secret))
        and is_no_name(secret)
    )


def is_no_name(secret: str) -> bool:
    """Neither a name in a program nor what is said of a password and is none."""
    return _SAID_OF_ONE.match(secret) is None and _JOINED.fullmatch(secret) is None


def is_labelled_secret(secret: str) -> bool:
    """Mixed, right behind the word that says what it is."""
    return is_mixed(secret) and is_no_name(secret)


def is_unlabelled_password(secret: str) -> bool:
    """One that can be known where nothing but a blank says that it comes: `Sommer2024!`, `Blaubeer77`."""
    if not is_spoken_password(secret) or _is_code(secret):
        return False
    return (
        is_generated(secret)
        or (_SIGNED.search(secret) or _NUMBERED.fullmatch(secret) or _ENDING.fullmatch(secret)) is not None
    )


def is_account_password(secret: str) -> bool:
    """One behind a word that is said of much else, too: `hunter22x` behind `pass:`, `Sup3rSecret` behind `admin:`."""
    if not is_spoken_password(secret):
        return False
    if is_generated(secret) and not _is_code(secret):
        return True
    chosen = _SIGNED.search(secret) or _NUMBERED.fullmatch(secret) or _SPRINKLED.fullmatch(secret)
    return chosen is not None and not _is_code(secret)


def _is_code(secret: str) -> bool:
    """Whether this is a name in a program: its words are longer than what a generator leaves between two changes."""
    return _CODE.fullmatch(secret) is not None and 2 * sum(map(str.isalpha, secret)) >= 5 * len(_RUNS.findall(secret))


def is_known_alone(secret: str) -> bool:
    """One that is a secret wherever else it occurs: long enough, and no word, name, path or placeholder."""
    return (
        8 <= len(secret) <= 512
        and not any(map(str.isspace, secret))
        and "[redacted" not in secret
        and PATH.fullmatch(secret) is None
        and re.fullmatch(UUID, secret) is None
        and (is_token(secret) or is_unlabelled_password(secret))
    )


def is_piece(piece: str, secret: str) -> bool:
    """A beginning or an end of a secret that is no word: mixed all through, behind a prefix or not, or nearly the whole."""
    long_parts = (part for part in re.split("[_-]", piece) if len(part) >= LEAST_PART)
    is_dense = (_is_dense(piece) and is_no_name(piece)) or any(map(_is_dense, long_parts))
    is_known = is_known_alone(piece) and is_unusual(piece)
    return is_dense or (is_known and (4 * len(piece) >= 3 * len(secret) or not has_digit(piece)))


#: Characters of a part of a piece, between signs that names have, by which alone it is known.
LEAST_PART = 6


def _is_dense(text: str) -> bool:
    """Whether digits and letters take turns all through a text."""
    return has_digit(text) and _turns(text) >= max(3, len(text) / 4)


def is_unusual(piece: str) -> bool:
    """Neither one word nor several of which each is common."""
    words = _WORDS_IN.findall(piece)
    return len(piece) > max(map(len, words), default=0) and not all(map(secret_words.is_common, words))


_RUNS = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
#: The words in a name, each behind a sign, a digit or a change of case.
_WORDS_IN = re.compile(r"[^\W\d_A-Z]{2,}|[A-Z][^\W\d_A-Z]+|[A-Z]{2,}(?![^\W\d_A-Z])")


def is_signed(secret: str) -> bool:
    """One with a sign that no name has, where names stand, too: `Lemon#4482`, but not `Chrome120?`."""
    return is_spoken_password(secret) and _SIGNED.search(secret.rstrip(".,:?")) is not None


def is_entry(secret: str) -> bool:
    """A password beside the name of an account, where a program and its version may stand, too."""
    if not is_unlabelled_password(secret) or re.fullmatch(r"[A-Z][a-z]+[0-9]+[.,:?]?", secret):
        return False
    return is_signed(secret) or is_generated(secret) or not all(map(secret_words.is_common, _WORDS_IN.findall(secret)))


def is_phrase(secret: str) -> bool:
    """Words that make no sentence, as a phrase for a password has them."""
    words = re.split(r"[- ]", secret)
    return (
        sum(map(len, words)) >= 14
        and not any(_OF_SENTENCES.fullmatch(word) for word in words)
        and not all(_OF_EXAMPLES.fullmatch(word) for word in words)
    )


def is_part(secret: str) -> bool:
    """A piece of a secret that is told in pieces: mixed as no word is, or with a sign and a digit inside."""
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
    """A single word that is not used to talk about secrets, and no name in a program."""
    return secret_words.is_uncommon(secret) and is_no_name(secret) and is_filled_in(secret)


def is_joined_words(secret: str) -> bool:
    """Words joined by signs that are not used to talk about secrets."""
    return secret_words.is_joined_words(secret) and _SAID_OF_ONE.match(secret) is None


def is_labelled_token(secret: str) -> bool:
    """A token right behind the word that says so: also one of small letters with few digits, without a blank or a dash."""
    inside = re.fullmatch(r"(?=.{0,60}?[a-z][0-9]+[a-z])[a-z0-9]{20,64}", secret)
    return is_token(secret) or (inside is not None and _HEX.fullmatch(secret) is None)


def is_part_or_words(secret: str) -> bool:
    """Mixed as no name is, or words joined by signs that are not used to talk about secrets."""
    return is_unlabelled_password(secret) or is_joined_words(secret) or (is_part(secret) and len(secret) >= 8)


def is_seed(secret: str) -> bool:
    """Words of which none belongs to a sentence, and half of them are uncommon."""
    words = re.findall("[A-Za-z]+", secret)
    uncommon = [word for word in words if not secret_words.is_common(word)]
    return not any(word in secret_words.STOP for word in words) and 2 * len(uncommon) >= len(words)


def is_grouped(secret: str) -> bool:
    """Groups of one length, as keys are printed to be typed in."""
    groups = re.split(r"[ -]", secret)
    if len({len(group) for group in groups[:-1]}) > 1 or len(groups[-1]) > len(groups[0]):
        return False
    mixed = [group for group in groups if has_digit(group) or group.isupper()]
    return len(mixed) * 2 >= len(groups) or (
        len(groups) == 4 and len(groups[0]) == 4 and not any(map(secret_words.is_common, groups))
    )


def is_codes(secret: str) -> bool:
    """A list of codes to be typed in: six characters at least, of which an eighth are digits."""
    characters = [char for char in secret if char.isalnum()]
    return len(characters) >= 6 and 8 * sum(map(str.isdigit, characters)) >= len(characters)


def is_filled_in(secret: str) -> bool:
    """No placeholder; `changeme` is none where the syntax says that it is a password: many are in use."""
    return _PLACEHOLDER.fullmatch(secret) is None


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret; `literals` are what the prefilter looks for."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = bool
    needs: str = ""
    """What of NEEDS the rest of the line has to hold."""
    back: int = 0
    """The offset of the literal in the match, in characters."""
    paired: bool = False
    """The pattern is a tag (group 1 holds the slash of a closing one); the text between two goes, too."""
    behind: bool = False
    """The secret is the word before what the pattern finds."""
    column: bool = False
    """The pattern is a cell in the head of a table; the secrets stand below it."""
    words: bool = False
    """Each word in what the pattern finds is tried by itself."""
    tail: bool = False
    """The pattern ends a block of base64 whose beginning is not there; the lines before it go, too."""

    @property
    def ignores_case(self) -> bool:
        return bool(self.pattern.flags & re.IGNORECASE)


_RANDOM_RUN = re.compile(r"(?=[A-Za-z]{0,40}+[0-9])(?=[0-9]{0,40}+[A-Za-z])[A-Za-z0-9+/]{8}")
_NAME = re.compile(r"[A-Za-z_]\w{0,23}(?:\.[A-Za-z_]\w{0,23})*+|[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++", re.ASCII)


def looks_random(secret: str) -> bool:
    """Letters and digits mixed in one run, and neither a name in a program nor a path."""
    return bool(_RANDOM_RUN.search(secret)) and not _NAME.fullmatch(secret) and not PATH.fullmatch(secret)


def is_generated(secret: str) -> bool:
    """Ten characters or more whose kind changes every four or sooner, as in no name: `x7Kd2mQpW9`; long hexadecimal, too."""
    least = 6 if len(secret) >= 32 and _HEX.fullmatch(secret) else max(4, len(secret) / 4)
    return len(secret) >= 10 and _turns(secret) >= least


def _turns(text: str) -> int:
    """How often a digit and a letter stand side by side, or a capital behind a small letter."""
    kinds = [0 if char.isdigit() else 2 if char.isupper() else 1 for char in text if char.isalnum()]
    return sum((left == 0) != (other == 0) or (left, other) == (1, 2) for left, other in itertools.pairwise(kinds))


def is_given(secret: str) -> bool:
    """The secret of a syntax: with a digit, a sign or a generator's letters, or a phrase; no placeholder."""
    if " " in secret:
        return is_filled_in(secret) and is_quoted_phrase(secret)
    return (
        (has_digit(secret) or _SIGN.search(secret) is not None or is_generated(secret) or is_phrase(secret))
        and is_filled_in(secret)
        and not all(_OF_EXAMPLES.fullmatch(part) for part in re.split(r"[-_]", secret))
        and "[redacted" not in secret
    )


def is_handed(secret: str) -> bool:
    """The input of a program that asks for a password: also words that are not used to talk about one."""
    return is_given(secret) or is_uncommon(secret.replace("_", "-"))


def is_own_line(secret: str) -> bool:
    """A line that holds nothing else, below one that names a secret: generated, or as a person writes a password."""
    return is_token(secret) or (is_unlabelled_password(secret) and not PATH.fullmatch(secret))


def is_input(secret: str) -> bool:
    """What is handed to a program's input: as a password or a token, but no checksum."""
    return is_own_line(secret) and not _HEX.fullmatch(secret)


def is_url_password(secret: str) -> bool:
    """What is before the last `@` of an address; a port and a path are none."""
    return (
        secret.lower() not in ("password", "pass", "secret")
        and is_filled_in(secret)
        and re.match(r"\d{1,5}(?:[/?#]|$)", secret) is None
        and "://" not in secret
    )


def is_credential(secret: str) -> bool:
    """What a header carries to grant access: letters and digits, neither a placeholder nor a path."""
    return has_digit(secret) and _turns(secret) >= 3 and not PATH.fullmatch(secret) and not _DOTTED.fullmatch(secret)


#: Words with a hash of what they name behind them, as caches do it.
_HASHED_NAME = re.compile(r"([\w.]+(?:-[\w.]+)+)[-_.][0-9a-f]{32,64}\Z")


def is_token(secret: str) -> bool:
    """What a generator made: 16 characters, letters and digits mixed all through; no path, no UUID, no name with a hash."""
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
    """Base64 of a PEM block of a private key; of a certificate it is none."""
    head = re.sub(r"\\[rn]|\s", "", secret[:120])
    return b"PRIVATE KEY" in base64.b64decode(head[: len(head) // 4 * 4])


def is_card_number(secret: str) -> bool:
    """A number with the check digit of a payment card."""
    digits = [int(char) for char in secret if char.isdigit()]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return 13 <= len(digits) <= 19 and len(set(digits)) > 2 and (doubled + sum(digits[-1::-2])) % 10 == 0


def is_session_cookie(secret: str) -> bool:
    """Pairs of which one is long and mixed enough to grant access."""
    values = [pair.partition("=")[2] for pair in secret.split(";")]
    return any(len(value) >= 16 and _RANDOM_RUN.search(value) for value in values)


def _any_of(words: Collection[str]) -> str:
    """A pattern for any of these words, by their first letters: an alternation of hundreds is tried one by one."""
    rests: dict[str, list[str]] = {}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(endings)})" for first, endings in sorted(rests.items()))


#: Nothing of a word stands before; `\b` would miss a key behind an underscore.
AT = r"(?<![A-Za-z0-9])"
END = r"(?![A-Za-z0-9])"
#: A quote, also as it stands in JSON that is itself a string in JSON.
Q = r"(?:\\{0,3}[\"'`])"
#: Between a name and its value.
IS = rf"{Q}?\s{{0,3}}(?:=>|:=|=|:)\s{{0,3}}{Q}?"
#: What stands in a configuration file between a vendor's name and the value: the rest of the key, quotes, a sign.
NEAR = r"[\w.\- ]{0,30}[\"'`\\\s:=>]{1,8}"
#: Base64 over several lines, real or escaped.
WRAPPED = r"[A-Za-z0-9+/]{24,}+(?:(?:\\[rn]|\s){1,24}+[A-Za-z0-9+/]{24,}+)*+(?:(?:(?:\\[rn]|\s){1,24}+)?[A-Za-z0-9+/]{0,80}={1,2})?"
#: What is for a password: "for the test user", "of me@example.com", "on the staging host".
FOR = r"(?:[*_]{0,2}[ \t]{1,2}(?:for|of|on|in|at|to|f\u00fcr|von|zum)(?:[ \t]{1,2}[\w'@./-]{1,40}){1,5}?)?(?:[ \t]\([\w .-]{1,30}\))?"
#: What comes before a password where a person tells it, with the stars of Markdown.
TOLD = r"[*_`]{0,2}(?:[ \t]{0,2}(?:[:=]|->|\u2192)|(?:'s|[ \t]{1,2}(?:is|was|ist|war|(?:should|will|would|must)[ ]be))(?:[ \t](?:now|still|just|jetzt))?:?(?=[\s*`\"']))[*_]{0,2}[ \t]{0,3}[*\"'`]{0,3}"
#: A password and where it ends.
WORD = r"([!#$%&*+./0-9:=?@A-Z^_a-z~\u00a1-\u024f\u0370-\u052f-]{6,64}+|[!#$%&*+./0-9:=?@A-Z^_a-z~-]{2,40}+[(\[{][A-Za-z0-9]{1,20}[)\]}][!#$%&*+/0-9:=?@A-Z^_a-z~-]{1,40}+)(?=[\"'`\s,;\\)|\u2e80-\uffef]|\Z)"
#: The name that an account often has, alone before the colon.
ACCOUNT = r"(?<![A-Za-z0-9_$./:@-])(?:admin|administrator|root|user|test|guest|demo|deploy|postgres|ubuntu|dev|service)"
UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"


#: Words for a password, and for a token or key, in the languages that people write in.
PW = (
    r"(?:passwor[dt](?:et|e?n?s?)|passwd|passphrase|passcode|kennwort|wachtwoord|mots? de passe|contrase[ñn]as?|clave|senha|has[lł]o|"
    r"[Пп]арол(?:ь|я|ем|е|ю)|密[码碼]|口令|パスワード|비밀번호|l[öo]senord(?:et)?|parola(?: d'ordine)?|[şs]ifre(?:si)?|heslo|adgangskode|passord(?:et)?|암호|كلمة (?:المرور|السر)|pass (?:code|phrase)|"
    r"(?<![A-Za-z0-9$./-])(?:pwd?|mdp)|(?<![A-Za-z0-9])psk)"
)
KEYS = (
    r"(?:credentials?|token(?:s|et)?|secret|api[ _-]?(?:key|schlüssel)|(?:access|auth|client|license|encryption|signing|master|private)[ _-]?key|jeton|secreto|geheimnis|sekret|"
    r"[Тт]окен(?:а|ом)?|[Сс]екрет|令牌|トークン|토큰|密[钥鑰]|秘密鍵|APIキー|schlüssel|schluessel|sleutel|klucz(?: API)?|[Кк]люч(?: API)?|cl[ée](?: API)?|"
    r"clave(?: de la API| API)?|chave|chiave|nyckel|anahtar|キー|키|مفتاح|رمز|(?<![A-Za-z])(?<!public[ _-])(?<!gpg[ _-])(?<!cache[ _-])(?<!host[ _-])key(?!chain|board|word|frame|stroke|[ ]fingerprint))"
)
#: What it is for: "for the test user", "von staging", "от базы".
WHOSE = (
    r"(?:[*_]{0,2}[ \t]{1,2}(?:for|of|on|in|at|to|from|für|von|zum|zur|pour|de|du|para|del|per|van|voor|do|od|от|для|к|til|till|för)"
    r"(?:[ \t]{1,2}[^\s:=,;.|\"'`]{1,40}){1,5}?)?(?:[ \t]\([\w .-]{1,30}\))?"
)
#: What the language puts between the word and the value: "de acesso de homologação", "dla stagingu", "for it".
WORDS = r"(?:[ \t]{1,2}[^\s:=,;.|\"`「?]{1,24}){0,9}?(?:[ \t]\([^()\n]{1,80}\))?"
#: What opens a quotation.
OPEN = r"[*\"'`「『«“]{0,3}[ \t\u00a0]?"
#: What comes before a value where it is assigned or told.
BE = (
    r"(?:[*_`\"']{0,2}[ \t]{0,12}(?:=>|:=|=|:|：|->|→|\?)|[ \t]{1,2}(?:is|was|are|ist|war|lautet|heißt|heisst|est|c'est|es|è|é|är|er|to|jest|это|такой:|este|on|olarak|[-–—])"
    r"(?:[ \t](?:now|still|just|jetzt))?:?(?=[\s*`\"'])|[ \t]{0,2}(?:[已被更新换改设變变設換還还就]{0,5}[是为為成]了?|は(?:こちら|これ)?[:→]?|を|には?|が|：|가|는|은|를|을))[*_]{0,2}[ \t]{0,3}[*\"'`「『«“]{0,3}[ \u00a0]?"
)
#: A value that a shell or a configuration file takes: bare, or all that stands in quotes.
GIVEN = (
    r"(?:\\{0,3}[\"'])?((?:(?<=\")|(?<=\"pass:))[^\"\n\\]{4,200}+(?=\\{0,3}\")|(?:(?<=')|(?<='pass:))[^'\n\\]{4,200}+(?=\\{0,3}')|"
    r"[^\s\"'`<>{}()\[\],;\\|]{2,100}+\([A-Za-z0-9]{1,20}\)[A-Za-z0-9][^\s\"'`<>{}()\[\],;\\|]{0,60}+|[^\s\"'`<>{}()\[\],;\\|]{4,200}+)"
)
#: What stands between a program and one of its options.
ARGS = r"[ \t](?:[^\n|;&]{0,160}?[ \t])?"
#: Letters, digits and what joins them, as generators write tokens.
RANDOM = r"([A-Za-z0-9_\-+/=.~]{16,512}+)(?![A-Za-z0-9_\-+/=.!@#%^&*~(\[])"

#: A short number that opens something, and what it opens.
PINS = (
    r"(?:(?<![A-Za-z0-9])pin(?:[ -]?(?:code|kode?n?|nummer))?(?:en)?(?![A-Za-z])|code pin|[Пп]ин(?:-?код)?|暗証番号|passcode|(?:safe|lock) combination|"
    r"(?:door|gate|access|alarm|unlock|security|safe|entry|garage|recovery|tür)[ -]?(?:code|pin)|code for the [a-z ]{3,20})"
)
#: What comes before a value where a sentence tells it.
TELLS = (
    r"(?:[*_`\"']{0,2}[ \t]{1,2}(?:is|was|reads|it's|ist|war|lautet|heißt|est|es|è|é|är|er|jest|je|это|такой:?|este|da|هي|هو)"
    r"(?:[ \t](?:now|still|just|jetzt))?:?(?=[\s*`\"'„“«])|[ \t]?(?:是|为|為|は|는|은|가))[*_]{0,2}[ \t]{0,3}"
)
#: Where a clause ends: at a mark, a line's end, or before a word that goes on from it.
CLAUSE = (
    r"(?=[*_]{0,2}(?:[.!?]{0,2}(?:\s{0,3}\Z|\s{0,3}\n|[.!][ \t])|[;,)][ \t\n]|[ \t]{1,2}(?:and|but|by|btw|for|on|if|so|in|und|für|aber|et|pour|mais|y|para|pero|e|en|i|и|а|но|です|"
    r"[-–—(#]|//)(?![A-Za-z])))"
)
#: Quotes, and what may stand between them.
QUOTE, UNQUOTE = r"(?:\\{0,3}[\"'`„“«「『”])[ \u00a0]?", r"[ \u00a0]?(?:\\{0,3}[\"'`“”»」』])"
QUOTED = r"((?:[^\"'`„“”«»「」『』\n\\]|(?<=[a-z])'(?=[a-z])){6,160})"
#: The letters, digits and signs of a secret that is read out.
SPELT = (
    "(?:" + _any_of(secret_words.SPELT) + r"|[A-Za-zА-я0-9]|[0-9]{2})"
    r"(?![A-Za-z0-9\u00c0-\u024f\u0400-\u04ff])"
)

#: What says that a secret is told in parts.
PARTS = r"[ ](?:half|halves|parts?|rest|then|starts? with|begins? with|ends? (?:with|in)|first|followed by|joined|concat\w{0,8}|together|puis|danach|Hälfte|zweite|moitié|suivi|mitad|luego|metade|depois|половин|затем|потом)"

#: Words in braces in csmd/data/secret_rules.txt.
MACROS = {name: pattern for name, pattern in globals().items() if name.isupper() and isinstance(pattern, str)}
TESTS: dict[str, Callable[[str], bool]] = {
    test.__name__: test
    for test in (
        has_digit, is_chosen, is_mixed, is_spoken_password, is_labelled_secret, is_unlabelled_password,
        is_account_password, is_signed, is_phrase, is_filled_in, looks_random, is_token, is_given, is_handed, is_credential, is_url_password, is_generated, is_own_line, is_input, holds_private_key, is_card_number,
        is_session_cookie, is_uncommon, is_quoted_phrase, is_told_phrase, is_uncommon_phrase, is_read_out, is_part, is_grouped, is_codes, is_entry, is_joined_words, is_labelled_token, is_part_or_words, is_handed_phrase, is_seed,
    )
}  # fmt: skip


#: By name what a line has to hold for some rules: it is looked for once, before any of them is tried. Each begins with what
#: is rare in a text, where there is such a thing: it is passed over fast.
_DIGIT_OR_SIGN, _CAPITAL = (
    r"0-9\u00b2\u00b3\u00b9!@$%^&*",
    r"A-Z\u00c0-\u00de\u0100-\u024f\u0370-\u03ab\u0400-\u042f\u0460-\u052f",
)
_OF_WORD = r"!#$%&*+./0-9:=?@A-Z^_a-z~\u00a1-\u024f\u0370-\u052f-"
_ODD = re.compile(rf"[{_DIGIT_OR_SIGN}{_CAPITAL}](?:(?<=[{_DIGIT_OR_SIGN}])|(?<=[{_OF_WORD}].))")
_ODD_WORD = re.compile(
    rf"(?<![{_OF_WORD}])(?=[{_OF_WORD}]{{6}})[{_OF_WORD}]*?"
    rf"(?:[0-9\u00b2\u00b3\u00b9]|(?<=[A-Za-z])[!@$%^&*](?=[A-Za-z])|(?<=[{_OF_WORD}])[{_CAPITAL}])"
)
_LONG = re.compile(r"[A-Za-z0-9_\-+/=.~]{16}")
_TWO_GROUPS = re.compile(
    f"[ -](?:{'|'.join(f'[A-Za-z0-9]{{{size}}}[ -][A-Za-z0-9]{{{size}}}[ -]' for size in range(4, 9))})"
)
_THREE_GROUPS = re.compile(
    f"(?<![A-Za-z0-9])(?:{'|'.join(f'(?:[A-Za-z0-9]{{{size}}}[ -]){{3}}[A-Za-z0-9]{{4}}' for size in range(4, 9))})"
)
_LETTER_GROUPS = re.compile(r"[ -][A-Za-z]{4}[ -][A-Za-z]{4}[ -][A-Za-z]{4}|[A-Z]{4}[ -][A-Z]{4,8}[ -][A-Z]{4}")
_PARTS = re.compile(PARTS, re.IGNORECASE)
NEEDS: dict[str, Callable[[str], object]] = {
    "odd": lambda line: _ODD.search(line) and _ODD_WORD.search(line),
    "long": lambda line: _DIGIT.search(line) and _LONG.search(line),
    "parts": lambda line: _DIGIT.search(line) and _PARTS.search(line),
    "number": re.compile("[0-9]{4}").search,
    "quote": re.compile("[\"'`\u201e\u201c\u201d\u00ab\u00bb\u300c\u300e]").search,
    "uuid": re.compile("-[0-9A-Fa-f]{4}-").search,
    "hyphens": re.compile("-[A-Za-z]{4}").search,
    "joined": re.compile("[-_.+][A-Za-z0-9\u00df-\u024f]").search,
    "changed": re.compile("[ ](?:[Tt][Oo]|[Aa][Uu][Ff])[ ]").search,
    "groups": lambda line: (
        (_DIGIT.search(line) and _TWO_GROUPS.search(line) and _THREE_GROUPS.search(line)) or _LETTER_GROUPS.search(line)
    ),
    "spelt": may_be_read_out,
}


def read_rules(lines: list[str]) -> tuple[Rule, ...]:
    """The rows of csmd/data/secret_rules.txt: a kind with its options, its literals, its pattern."""
    rows = [line for line in lines if line]
    return tuple(map(_rule, rows[::3], rows[1::3], rows[2::3]))


def _rule(head: str, literals: str, pattern: str) -> Rule:
    kind, *options = head.split()
    flags = re.ASCII  # a letter of another script before a key does not hide it
    flags |= re.IGNORECASE if "i" in options else 0
    flags |= re.DOTALL if "s" in options else 0
    spelt = re.sub(r"\{([A-Z]+)\}", lambda macro: MACROS[macro[1]], pattern.strip())
    return Rule(
        kind,
        tuple(literal.replace("␠", " ") for literal in literals.strip().split("  ")),
        re.compile(spelt, flags),
        next((TESTS[option] for option in options if option in TESTS), bool),
        _need(options),
        next((int(option[5:]) for option in options if option.startswith("back=")), 0),
        "paired" in options,
        "behind" in options,
        "column" in options,
        "words" in options,
        "tail" in options,
    )


def _need(options: list[str]) -> str:
    """What a line must hold for a row to be tried on it; a row that reads beyond its line needs nothing."""
    need = next((option[6:] for option in options if option.startswith("needs=")), "")
    if need and (need not in NEEDS or not {"paired", "column", "tail", "s"}.isdisjoint(options)):
        raise ValueError(
            f"csmd/data/secret_rules.txt: needs={need} names no test, or is in a row that reads beyond its line"
        )
    return need


RULES = read_rules(data.lines("secret_rules.txt"))

#: What is replaced where no rule of the table says so: by the name of its field, or because the user chose the word.
OTHER_KINDS: tuple[str, ...] = ("secret-field", "chosen-word")

#: A field of this name (lower case, words joined by `_`) holds a secret whatever its value looks like.
SECRET_KEY = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|secret|secret_?key|api_?key|access_?token|refresh_?token|auth_?token|"
    r"id_?token|session_?token|bot_?token|private_?key|client_?key_?data|credentials?|authorization|set_?cookie|cookie|"
    r"connection_?string|account_?key|seed_?phrase|mnemonic)$"
)
#: A field of this name holds one when its value also looks like one.
MAYBE_SECRET_KEY = re.compile(r"(?:^|_)(?:token|pwd|pass|passcode|sas)$")
#: What a value of a secret field may be without being one: nothing, a placeholder, the name of a type.
HARMLESS_VALUE = re.compile(
    r"|true|false|null|none|\*+|x{3,}|<[^>]*>|\$\{?\w+\}?|\{\{?[^{}]*\}?\}|\[redacted:[a-z-]+\]|"
    r"str|string|text|number|int|integer|bool|boolean|object|array|any|unknown|optional|required|yes|no",
    re.IGNORECASE,
)
