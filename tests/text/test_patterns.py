"""A pattern that is compiled at its first use is the compiled one in all that is asked of it, and none is wrong."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from csmd.text import patterns


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_it_answers_as_the_compiled_one_does(flags: int) -> None:
    said, source = "Two herons, one HERON", r"(?P<bird>heron)s?"
    own, compiled = patterns.at_first_use(source, flags), re.compile(source, flags)
    assert own.pattern == compiled.pattern
    assert own.findall(said) == compiled.findall(said)
    assert [one.span() for one in own.finditer(said)] == [one.span() for one in compiled.finditer(said)]
    assert own.sub("x", said) == compiled.sub("x", said)
    assert own.split(said) == compiled.split(said)
    found = own.search(said)
    assert found and found.group("bird") == "heron"
    assert (own.match(said), own.fullmatch("herons") is not None) == (None, True)
    assert (own.flags, own.groups, dict(own.groupindex)) == (compiled.flags, 1, {"bird": 1})


def test_a_wrong_one_says_so_when_it_is_used() -> None:
    wrong = patterns.at_first_use("(")
    with pytest.raises(re.error):
        wrong.search("x")


COUNT = """
import gc, importlib, pathlib, csmd
from csmd.text import patterns
for path in (pathlib.Path(csmd.__file__).parent / "extraction").glob("*.py"):
    importlib.import_module(f"csmd.extraction.{path.stem}")
made = [one for one in gc.get_objects() if type(one) is patterns.AtFirstUse]
print(len(made), sum("flags" in vars(one) for one in made), sum(one.flags >= 0 for one in made))
"""


def test_every_pattern_of_the_tables_compiles_and_none_by_loading_them() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, check=True, text=True)
    made, before, compiled = map(int, done.stdout.split())
    assert made > 80 and (before, compiled) == (0, made)
