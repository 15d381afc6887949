"""Plain English in csmd's source: names say what their value is, and docstrings need no second reading.

`LEFT` counts what is left of both. It only shrinks: take off its row what you mend. A folder or file without a row has none.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import csmd

PACKAGE = Path(csmd.__file__).parent
#: Names that say nothing of a value, as in `found = rows.all(...)`.
FILLERS = frozenset({"one", "told", "said", "found", "known", "beside", "asked", "given"})
PHRASE = re.compile(r"\b(?:somebody|nobody|stands|so many)\b|\bwhat\b[^.;,]{0,60}\bis told\b", re.IGNORECASE)
#: Names from the code, in a docstring.
QUOTED = re.compile(r"`[^`]*`")
#: Folder, or file beside the folders -> (names in FILLERS that it binds, phrases in its docstrings).
LEFT: dict[str, tuple[int, int]] = {
    "foreign_memories": (1, 0),
}


def fillers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each filler bound to a variable, parameter, field, function, class or import."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.alias(name=module, asname=alias):
                name = alias or module
            case _:
                continue
        if name in FILLERS:
            yield node.lineno, name


def phrases(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, phrase) of each phrase in a docstring; the line is that of the definition."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for match in PHRASE.finditer(QUOTED.sub("``", ast.get_docstring(node) or "")):
                yield getattr(node, "lineno", 1), match[0]


def test_names_say_what_their_value_is_and_docstrings_are_plain() -> None:
    names: dict[str, list[str]] = defaultdict(list)
    texts: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_share" in path.parts:  # files of others that ship with csmd
            continue
        place, tree = path.relative_to(PACKAGE), ast.parse(path.read_text(encoding="utf-8"))
        names[place.parts[0]] += [f"  csmd/{place}:{line}: name {name!r}" for line, name in fillers(tree)]
        texts[place.parts[0]] += [f"  csmd/{place}:{line}: docstring {text!r}" for line, text in phrases(tree)]
    problems = []
    for folder in sorted({*names, *LEFT}):
        now, left = (len(names[folder]), len(texts[folder])), LEFT.get(folder, (0, 0))
        if now != left:
            advice = "lower its row" if now <= left else "choose names and words that a stranger understands"
            problems += [f"{folder}: LEFT says {left}, there are {now}: {advice}", *names[folder], *texts[folder]]
    assert not problems, "\n".join(problems)
