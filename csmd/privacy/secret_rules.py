"""The table of secrets, read from data/secret_rules.txt, with its macros, and the names of secret fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from csmd import data
from csmd.privacy import secret_shapes
from csmd.privacy.secret_shapes import has_digit
from csmd.privacy.secret_words import (
    CHARACTER_NAMES,
    is_prompted_passphrase,
    is_spelled_out,
    is_uncommon_passphrase,
    is_unquoted_passphrase,
    may_be_spelled_out,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret; the prefilter searches for the `literals`."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = bool
    needs: str = ""
    """The test in NEEDS that the line must pass; "" for none."""
    back: int = 0
    """The offset of the literal in the match, in characters."""
    paired: bool = False
    """The pattern is a tag (group 1 is the slash of a closing one); the text between two tags is removed too."""
    behind: bool = False
    """The secret is the word before the match."""
    column: bool = False
    """The pattern is a cell in the head of a table; the secrets are in the column below."""
    words: bool = False
    """Each word of the match is tested by itself."""
    tail: bool = False
    """The pattern ends a block of base64 whose beginning is missing; the lines before it are removed too."""

    @property
    def ignores_case(self) -> bool:
        return bool(self.pattern.flags & re.IGNORECASE)


def _any_of(words: Collection[str]) -> str:
    """Returns a pattern for any of these words, grouped by first letter: a flat alternation is tried word by word."""
    rests: dict[str, list[str]] = {}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(endings)})" for first, endings in sorted(rests.items()))


#: The beginning of a word; `\b` would miss a key after an underscore.
AT = r"(?<![A-Za-z0-9])"
END = r"(?![A-Za-z0-9])"
#: A quote, also as escaped in JSON within JSON.
Q = r"(?:\\{0,3}[\"'`])"
#: Between a name and its value.
IS = rf"{Q}?\s{{0,3}}(?:=>|:=|=|:)\s{{0,3}}{Q}?"
#: The text between a vendor's name and the value in a configuration file: the rest of the key, quotes, a sign.
NEAR = r"[\w.\- ]{0,30}[\"'`\\\s:=>]{1,8}"
#: Base64 over several lines, real or escaped.
WRAPPED = r"[A-Za-z0-9+/]{24,}+(?:(?:\\[rn]|\s){1,24}+[A-Za-z0-9+/]{24,}+)*+(?:(?:(?:\\[rn]|\s){1,24}+)?[A-Za-z0-9+/]{0,80}={1,2})?"
#: The purpose of a password: "for the test user", "of me@example.com", "on the staging host".
FOR = r"(?:[*_]{0,2}[ \t]{1,2}(?:for|of|on|in|at|to|f\u00fcr|von|zum)(?:[ \t]{1,2}[\w'@./-]{1,40}){1,5}?)?(?:[ \t]\([\w .-]{1,30}\))?"
#: The text before a password in a sentence, with the stars of Markdown.
TOLD = r"[*_`]{0,2}(?:[ \t]{0,2}(?:[:=]|->|\u2192)|(?:'s|[ \t]{1,2}(?:is|was|ist|war|(?:should|will|would|must)[ ]be))(?:[ \t](?:now|still|just|jetzt))?:?(?=[\s*`\"']))[*_]{0,2}[ \t]{0,3}[*\"'`]{0,3}"
#: A password, and what ends it.
WORD = r"([!#$%&*+./0-9:=?@A-Z^_a-z~\u00a1-\u024f\u0370-\u052f-]{6,64}+|[!#$%&*+./0-9:=?@A-Z^_a-z~-]{2,40}+[(\[{][A-Za-z0-9]{1,20}[)\]}][!#$%&*+/0-9:=?@A-Z^_a-z~-]{1,40}+)(?=[\"'`\s,;\\)|\u2e80-\uffef]|\Z)"
#: The name that an account often has, alone before the colon.
ACCOUNT = r"(?<![A-Za-z0-9_$./:@-])(?:admin|administrator|root|user|test|guest|demo|deploy|postgres|ubuntu|dev|service)"


#: Words for a password, and for a token or key, in the languages that people write in.
PW = (
    r"(?:passwor[dt](?:et|e?n?s?)|passwd|passphrase|passcode|kennwort|wachtwoord|mots? de passe|contrase[ñn]as?|clave"
    r"|senha|has[lł]o|"
    r"[Пп]арол(?:ь|я|ем|е|ю)|密[码碼]|口令|パスワード|비밀번호|l[öo]senord(?:et)?|parola(?: d'ordine)?|[şs]ifre(?:si)?|heslo"
    r"|adgangskode|passord(?:et)?|암호|كلمة (?:المرور|السر)|pass (?:code|phrase)|"
    r"(?<![A-Za-z0-9$./-])(?:pwd?|mdp)|(?<![A-Za-z0-9])psk)"
)
KEYS = (
    r"(?:credentials?|token(?:s|et)?|secret|api[ _-]?(?:key|schlüssel)|(?:access|auth|client|license|encryption"
    r"|signing|master|private)[ _-]?key|jeton|secreto|geheimnis|sekret|"
    r"[Тт]окен(?:а|ом)?|[Сс]екрет|令牌|トークン|토큰|密[钥鑰]|秘密鍵|APIキー|schlüssel|schluessel|sleutel|klucz(?: API)?"
    r"|[Кк]люч(?: API)?|cl[ée](?: API)?|"
    r"clave(?: de la API| API)?|chave|chiave|nyckel|anahtar|キー|키|مفتاح|رمز"
    r"|(?<![A-Za-z])(?<!public[ _-])(?<!gpg[ _-])(?<!cache[ _-])(?<!host[ _-])key(?!chain|board|word|frame|stroke"
    r"|[ ]fingerprint))"
)
#: The purpose of a password or token, in any language: "for the test user", "von staging", "от базы".
WHOSE = (
    r"(?:[*_]{0,2}[ \t]{1,2}(?:for|of|on|in|at|to|from|für|von|zum|zur|pour|de|du|para|del|per|van|voor|do|od|от|для"
    r"|к|til|till|för)"
    r"(?:[ \t]{1,2}[^\s:=,;.|\"'`]{1,40}){1,5}?)?(?:[ \t]\([\w .-]{1,30}\))?"
)
#: Words between the name and the value: "de acesso de homologação", "dla stagingu", "for it".
WORDS = r"(?:[ \t]{1,2}[^\s:=,;.|\"`「?]{1,24}){0,9}?(?:[ \t]\([^()\n]{1,80}\))?"
#: The opening of a quotation.
OPEN = r"[*\"'`「『«“]{0,3}[ \t\u00a0]?"
#: The text before a value that is assigned or stated.
BE = (
    r"(?:[*_`\"']{0,2}[ \t]{0,12}(?:=>|:=|=|:|：|->|→|\?)|[ \t]{1,2}(?:is|was|are|ist|war|lautet|heißt|heisst|est"
    r"|c'est|es|è|é|är|er|to|jest|это|такой:|este|on|olarak|[-–—])"
    r"(?:[ \t](?:now|still|just|jetzt))?:?(?=[\s*`\"'])|[ \t]{0,2}(?:[已被更新换改设變变設換還还就]{0,5}[是为為成]了?|は(?:こちら|これ)?[:→]?"
    r"|を|には?|が|：|가|는|은|를|을))[*_]{0,2}[ \t]{0,3}[*\"'`「『«“]{0,3}[ \u00a0]?"
)
#: A value in a shell or a configuration file: bare, or everything between quotes.
GIVEN = (
    r"(?:\\{0,3}[\"'])?((?:(?<=\")|(?<=\"pass:))"
    r"[^\"\n\\]{4,200}+(?=\\{0,3}\")|(?:(?<=')|(?<='pass:))[^'\n\\]{4,200}+(?=\\{0,3}')|"
    r"[^\s\"'`<>{}()\[\],;\\|]{2,100}+\([A-Za-z0-9]{1,20}\)[A-Za-z0-9][^\s\"'`<>{}()\[\],;\\|]{0,60}+"
    r"|[^\s\"'`<>{}()\[\],;\\|]{4,200}+)"
)
#: The text between a program and one of its options.
ARGS = r"[ \t](?:[^\n|;&]{0,160}?[ \t])?"
#: Letters, digits and what joins them, as generators write tokens.
RANDOM = r"([A-Za-z0-9_\-+/=.~]{16,512}+)(?![A-Za-z0-9_\-+/=.!@#%^&*~(\[])"

#: Names of short codes that open something, and what they open.
PINS = (
    r"(?:(?<![A-Za-z0-9])pin(?:[ -]?(?:code|kode?n?|nummer))?(?:en)?(?![A-Za-z])|code pin|[Пп]ин(?:-?код)?|暗証番号"
    r"|passcode|(?:safe|lock) combination|"
    r"(?:door|gate|access|alarm|unlock|security|safe|entry|garage|recovery|tür)[ -]?(?:code|pin)"
    r"|code for the [a-z ]{3,20})"
)
#: The text before a value in a sentence.
TELLS = (
    r"(?:[*_`\"']{0,2}[ \t]{1,2}(?:is|was|reads|it's|ist|war|lautet|heißt|est|es|è|é|är|er|jest|je|это|такой:?|este"
    r"|da|هي|هو)"
    r"(?:[ \t](?:now|still|just|jetzt))?:?(?=[\s*`\"'„“«])|[ \t]?(?:是|为|為|は|는|은|가))[*_]{0,2}[ \t]{0,3}"
)
#: The end of a clause: a mark, the end of a line, or a word that continues it.
CLAUSE = (
    r"(?=[*_]{0,2}(?:[.!?]{0,2}(?:\s{0,3}\Z|\s{0,3}\n|[.!][ \t])|[;,)][ \t\n]|[ \t]{1,2}(?:and|but|by|btw|for|on|if"
    r"|so|in|und|für|aber|et|pour|mais|y|para|pero|e|en|i|и|а|но|です|"
    r"[-–—(#]|//)(?![A-Za-z])))"
)
#: An opening quote, a closing quote, and the text between them.
QUOTE = r"(?:\\{0,3}[\"'`„“«「『”])[ \u00a0]?"
UNQUOTE = r"[ \u00a0]?(?:\\{0,3}[\"'`“”»」』])"
QUOTED = r"((?:[^\"'`„“”«»「」『』\n\\]|(?<=[a-z])'(?=[a-z])){6,160})"
#: The names of letters, digits and signs in a secret that is spelled out.
SPELT = (
    "(?:" + _any_of(CHARACTER_NAMES) + r"|[A-Za-zА-я0-9]|[0-9]{2})"
    r"(?![A-Za-z0-9\u00c0-\u024f\u0400-\u04ff])"
)

#: Words that announce a secret in parts.
PARTS = r"[ ](?:half|halves|parts?|rest|then|starts? with|begins? with|ends? (?:with|in)|first|followed by|joined|concat\w{0,8}|together|puis|danach|Hälfte|zweite|moitié|suivi|mitad|luego|metade|depois|половин|затем|потом)"

#: Words in braces in csmd/data/secret_rules.txt.
MACROS = {name: pattern for name, pattern in globals().items() if name.isupper() and isinstance(pattern, str)}
MACROS["UUID"] = secret_shapes.UUID
#: Predicate -> the function that a rule's option of that name calls.
TESTS: dict[str, Callable[[str], bool]] = {
    name: test for name, test in vars(secret_shapes).items() if name.startswith(("is_", "has_", "looks_", "holds_"))
} | {
    test.__name__: test
    for test in (is_prompted_passphrase, is_spelled_out, is_uncommon_passphrase, is_unquoted_passphrase)
}


# Some rules need a property of the line, tested once before any of them is tried. Each test begins with something rare
# in ordinary text, so that most lines fail it fast.
_DIGIT_OR_SIGN = r"0-9\u00b2\u00b3\u00b9!@$%^&*"
_CAPITAL = r"A-Z\u00c0-\u00de\u0100-\u024f\u0370-\u03ab\u0400-\u042f\u0460-\u052f"
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
    "long": lambda line: has_digit(line) and _LONG.search(line),
    "parts": lambda line: has_digit(line) and _PARTS.search(line),
    "number": re.compile("[0-9]{4}").search,
    "quote": re.compile("[\"'`\u201e\u201c\u201d\u00ab\u00bb\u300c\u300e]").search,
    "uuid": re.compile("-[0-9A-Fa-f]{4}-").search,
    "hyphens": re.compile("-[A-Za-z]{4}").search,
    "joined": re.compile("[-_.+][A-Za-z0-9\u00df-\u024f]").search,
    "changed": re.compile("[ ](?:[Tt][Oo]|[Aa][Uu][Ff])[ ]").search,
    "groups": lambda line: (
        (has_digit(line) and _TWO_GROUPS.search(line) and _THREE_GROUPS.search(line)) or _LETTER_GROUPS.search(line)
    ),
    "spelt": may_be_spelled_out,
}


def read_rules(lines: list[str]) -> tuple[Rule, ...]:
    """Reads the rows of csmd/data/secret_rules.txt: a kind with its options, its literals, its pattern."""
    rows = [line for line in lines if line]
    return tuple(map(_parse_rule, rows[::3], rows[1::3], rows[2::3]))


def _parse_rule(head: str, literals: str, pattern: str) -> Rule:
    kind, *options = head.split()
    settings = dict(option.split("=") for option in options if "=" in option)
    need = settings.get("needs", "")
    if need and (need not in NEEDS or not {"paired", "column", "tail", "s"}.isdisjoint(options)):
        raise ValueError(
            f"csmd/data/secret_rules.txt: needs={need} names no test, or is in a row that reads beyond its line"
        )
    flags = re.ASCII  # a letter of another script before a key does not hide it
    flags |= re.IGNORECASE if "i" in options else 0
    flags |= re.DOTALL if "s" in options else 0
    expanded = re.sub(r"\{([A-Z]+)\}", lambda macro: MACROS[macro[1]], pattern.strip())
    return Rule(
        kind,
        literals=tuple(literal.replace("␠", " ") for literal in literals.strip().split("  ")),
        pattern=re.compile(expanded, flags),
        accepts=next((TESTS[option] for option in options if option in TESTS), bool),
        needs=need,
        back=int(settings.get("back", 0)),
        **{flag: flag in options for flag in ("paired", "behind", "column", "words", "tail")},
    )


RULES = read_rules(data.lines("secret_rules.txt"))

#: Kinds of replacement outside of the table: by the name of a field, or because the user chose the word.
OTHER_KINDS: tuple[str, ...] = ("secret-field", "chosen-word")

#: A field of this name (lower case, words joined by `_`) contains a secret whatever its value looks like.
SECRET_KEY = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|secret|secret_?key|api_?key|access_?token|refresh_?token|auth_?token|"
    r"id_?token|session_?token|bot_?token|private_?key|client_?key_?data|credentials?|authorization|set_?cookie|cookie|"
    r"connection_?string|account_?key|seed_?phrase|mnemonic)$"
)
#: A field of this name contains a secret if its value also looks like one.
MAYBE_SECRET_KEY = re.compile(r"(?:^|_)(?:token|pwd|pass|passcode|sas)$")
#: Values of secret fields that are no secret: nothing, a placeholder, the name of a type.
HARMLESS_VALUE = re.compile(
    r"|true|false|null|none|\*+|x{3,}|<[^>]*>|\$\{?\w+\}?|\{\{?[^{}]*\}?\}|\[redacted:[a-z-]+\]|"
    r"str|string|text|number|int|integer|bool|boolean|object|array|any|unknown|optional|required|yes|no",
    re.IGNORECASE,
)
