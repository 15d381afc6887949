"""The table of secrets, read from data/secret_rules.txt, and the names of secret fields."""

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

#: Options of a row of the table that are flags of its rule.
RULE_FLAGS = ("paired", "behind", "column", "words", "tail")
#: All options that are flags: those of the rule, and those of its pattern (ignore case; let a dot match a newline).
FLAGS = (*RULE_FLAGS, "i", "s")
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
        """Whether the pattern matches in any case."""
        return bool(self.pattern.flags & re.IGNORECASE)


def _any_of(words: Collection[str]) -> str:
    """Returns a pattern for any of these words, grouped by first letter: a flat alternation is tried word by word."""
    rests: dict[str, list[str]] = {}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(endings)})" for first, endings in sorted(rests.items()))


def _expand(pattern: str) -> str:
    """Replaces names in braces by their patterns."""
    return re.sub(r"\{([A-Z]+)\}", lambda name: PATTERNS[name[1]], pattern)


#: Name in braces in csmd/data/secret_rules.txt -> pattern.
PATTERNS = {
    "UUID": secret_shapes.UUID,
    # The name of a letter, digit or sign in a secret that is spelled out.
    "CHARACTER": f"(?:{_any_of(CHARACTER_NAMES)}|[A-Za-zА-я0-9]|[0-9]{{2}})(?![A-Za-z0-9\\u00c0-\\u024f\\u0400-\\u04ff])",
}
for line in data.lines("secret_patterns.txt"):
    name, _, part = line.partition(": ")
    PATTERNS[name] = PATTERNS.get(name, "") + _expand(part)

#: Predicate -> the function that a rule's option of that name calls.
TESTS: dict[str, Callable[[str], bool]] = {
    name: test for name, test in vars(secret_shapes).items() if name.startswith(("is_", "has_", "looks_", "holds_"))
} | {
    test.__name__: test
    for test in (is_prompted_passphrase, is_spelled_out, is_uncommon_passphrase, is_unquoted_passphrase)
}


# Some rules need a property of the line, tested once before any of them is tried. Each test begins with something rare
# in ordinary text, so that most lines fail it fast.
_PARTS = re.compile(PATTERNS["PARTS"], re.IGNORECASE)
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
    tests = [TESTS[option] for option in options if option in TESTS]
    unknown = [option for option in options if option not in TESTS and option not in FLAGS and "=" not in option]
    if unknown or len(tests) > 1 or not settings.keys() <= {"needs", "back"}:
        raise ValueError(f"csmd/data/secret_rules.txt: {head!r} has an unknown option, or two tests")
    flags = re.ASCII  # a letter of another script before a key does not hide it
    flags |= re.IGNORECASE if "i" in options else 0
    flags |= re.DOTALL if "s" in options else 0
    return Rule(
        kind,
        literals=tuple(literal.replace("␠", " ") for literal in literals.strip().split("  ")),
        pattern=re.compile(_expand(pattern.strip()), flags),
        accepts=tests[0] if tests else bool,
        needs=need,
        back=int(settings.get("back", 0)),
        **{flag: flag in options for flag in RULE_FLAGS},
    )


RULES = read_rules(data.lines("secret_rules.txt"))
