"""Forms in which secrets stand, with values made from seeds: what a form holds, and which forms let one through.

    python tests/secret_forms.py [--look-alikes] FILE ...

A form is a line of tests/data/secrets/*.txt below its family (`== prose`); `⏎` is a line break and {p} a chosen password,
{t32} 32 letters and digits, {h64} hexadecimal, {b44} base64, {u} a UUID, {c6} digits, {w4} words; what stands between
⟦ and ⟧ is a secret as it is.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from planted import ALNUM, BASE64, DIGITS, HEX, LOWER, UPPER, drawn, uuid_like

WORDS = "otter canoe lantern meadow pepper violin harbor saddle walnut cobble ginger thistle".split()
BASE58 = "".join(char for char in ALNUM if char not in "0OIl")
ALPHABETS = {
    "t": ALNUM, "h": HEX, "b": BASE64, "c": DIGITS, "s": ALNUM + "!@#%^&*(-_=+)", "x": BASE58, "n": LOWER + DIGITS,
    "N": UPPER + DIGITS,
}  # fmt: skip
FIELD = re.compile(r"\{([a-zA-Z])(\d*)\}|⟦([^⟧]+)⟧")


class Form(NamedTuple):
    """A text with secrets in it, below the family it belongs to."""

    family: str
    form: str
    text: str
    secrets: list[str]


def password(seed: object) -> str:
    """A password as people choose one, or a generator."""
    number = int(drawn(DIGITS, 4, seed))
    word, other = WORDS[number % len(WORDS)], WORDS[number // 7 % len(WORDS)]
    return [
        f"{word.title()}{number}!",
        f"{word}{other}{number}",
        f"{word.title()}{other.title()}{10 + number % 90}",
        drawn(ALNUM, 14, seed),
        f"{drawn(ALNUM, 5, seed)}${drawn(ALNUM, 5, number)}7",
        f"{word[0].upper()}0{word[1:]}&{number}",
    ][number % 6]


def value(kind: str, length: int, seed: object) -> str:
    """A made-up secret of a class."""
    if kind == "p":
        return password(seed)
    if kind == "u":
        return uuid_like(seed)
    if kind == "w":
        return ("-" if length < 6 else " ").join(WORDS[(len(str(seed)) + 5 * i) % len(WORDS)] for i in range(length))
    made = drawn(ALPHABETS[kind], length, seed)
    return (
        made if kind == "c" or length < 6 else f"{made[:-2]}7{'K' if kind in 'tbsxN' else 'k' if kind == 'n' else 'e'}"
    )


def filled(form: str, seed: object) -> tuple[str, list[str]]:
    """A form with values in its fields, and these values."""
    secrets: list[str] = []

    def fill(field: re.Match[str]) -> str:
        secrets.append(field[3] or value(field[1], int(field[2] or 0), f"{form}{seed}{len(secrets)}"))
        return secrets[-1]

    return FIELD.sub(fill, form).replace("⏎", "\n"), secrets


def forms(path: Path, seeds: int = 4) -> Iterator[Form]:
    """Every form of a file, each with several values."""
    family = ""
    for line in path.read_text().splitlines():
        if line.startswith("== "):
            family = line[3:]
        elif line:
            for seed in range(seeds):
                yield Form(family, line, *filled(line, seed))


def look_alikes(path: Path) -> list[str]:
    """The texts of a file that hold no secret."""
    return [line.replace("⏎", "\n") for line in path.read_text().splitlines() if line and not line.startswith("== ")]


def main() -> None:
    from csmd.privacy.redaction import redact

    if sys.argv[1] == "--look-alikes":
        rows = [row for path in sys.argv[2:] for row in look_alikes(Path(path))]
        lost = [(row, shown) for row in rows if (shown := redact(row, Counter())) != row]
        print(*(f"{row}\n    {shown!r}" for row, shown in lost), f"{len(lost)} of {len(rows)} lost", sep="\n")
        return
    for path in map(Path, sys.argv[1:]):
        kept, total = Counter[str](), Counter[str]()
        missed: dict[str, str] = {}
        for form in forms(path):
            shown = redact(form.text, Counter())
            total[form.family] += 1
            if any(secret in shown for secret in form.secrets):
                missed.setdefault(form.form, shown)
            else:
                kept[form.family] += 1
        for form, shown in missed.items():
            print(f"{form}\n    {shown!r}")
        for family in total:
            print(f"{family:<14} {kept[family]:>5} of {total[family]}")
        print(
            f"{path.name}: {kept.total()} of {total.total()}, {kept.total() / total.total():.3f}; {len(missed)} forms miss"
        )


if __name__ == "__main__":
    main()
