"""What is shown of an id."""

from __future__ import annotations

import pytest

from csmd.text import display


@pytest.mark.parametrize(
    ("ident", "shown"),
    [
        ("2f0c9a7e-51d2-4c55-9d0e-0e8f7a6b5c4d", "2f0c9a7e"), ("s1", "s1"), ("", ""), ("codex:s1", "codex:s1"),
        ("codex:019cb000-0a1b-7000-8000-000000000001", "codex:019cb000-0a1b"),
        ("opencode:ses_df714cd0cffepw5rcYZfnu2PEi", "opencode:ses_df714cd0cffe"),
    ],
)  # fmt: skip
def test_a_sessions_short_id_names_its_host_and_finds_it_again(ident: str, shown: str) -> None:
    assert display.shorten_session_id(ident) == shown and ident.startswith(shown)
