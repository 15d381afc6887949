"""A store on a real file for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from curator_fixtures import NOW

from csmd.store.core import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "csmd.db", now=NOW)
    yield made
    made.close()
