"""The trained model: what it rests on, and that without it the tables decide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from csmd.distill import worth
from csmd.distill.cues import CUES

MOST_BYTES = 1_000_000


def test_the_model_is_readable_small_and_knows_no_words_of_any_project() -> None:
    held = json.loads(worth.WEIGHTS.read_text())
    assert worth.WEIGHTS.stat().st_size < MOST_BYTES
    known = worth.shipped()
    assert known.model == held["name"]
    assert len(known.weights) < 150
    assert not {cue.reason for cue in CUES} & set(known.weights)


def test_a_longer_sentence_of_the_prompts_own_words_is_worth_more() -> None:
    model = worth.shipped()
    short = {"any": 1.0, "reply": 1.0, "to 8 words": 0.5, "reply to 8 words": 0.5}
    long = short | {"to 8 words": 1.0, "reply to 8 words": 1.0, "to 16 words": 1.0, "reply to 16 words": 1.0}
    assert 0 < model.of(short) < model.of(long) < 1


@pytest.mark.parametrize(
    "held", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "weights": {"a": "x"}, "bars": {}}', "\0"]
)
def test_a_file_that_is_no_model_leaves_it_to_the_tables(tmp_path: Path, held: str) -> None:
    path = tmp_path / "worth.json"
    assert worth.load(path) is worth.TABLES
    path.write_text(held)
    assert worth.load(path) is worth.TABLES


def test_a_bar_that_is_missing_leaves_it_to_the_tables(tmp_path: Path) -> None:
    held = json.loads(worth.WEIGHTS.read_text())
    del held["bars"]["prompt"]
    path = tmp_path / "worth.json"
    path.write_text(json.dumps(held))
    assert worth.load(path) is worth.TABLES
