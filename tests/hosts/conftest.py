"""A home for the transcripts of any assistant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from transcript_home import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """An empty store that reads transcripts."""
    made = Home(tmp_path)
    yield made
    made.store.close()
