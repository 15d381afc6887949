"""Patterns as people write them: each is a pattern or none, never an error or a warning; golden cases, one a line."""

from __future__ import annotations

import pytest

from csmd.capture import markdown_imports


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**/*.py", "a/b.py", True),
        ("src/{a,b}/*.ts", "src/b/x.ts", True),
        ("*.[ch]", "x.c", True),
        ("*.[!ch]", "x.c", False),
        ("[[]x", "[x", True),
        ("[a||b]", "|", True),
        ("[&&~~]", "~", True),
        ("[a--b]", "a", False),
    ],
)
def test_a_pattern_fits_what_it_says(pattern: str, path: str, fits: bool) -> None:
    found = markdown_imports.whole_path(pattern)
    assert (found is not None and found.fullmatch(path) is not None) == fits
