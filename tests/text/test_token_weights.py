"""Estimates of tokens against tiktoken's own count, on texts that they were not fitted on."""

from __future__ import annotations

import argparse
import ast
import asyncio.base_events
import email.message
import json
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.embedding import token_counter, worker
from csmd.text import display
from csmd.text.token_weights import weigh_tokens

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> worker.Counter:
    models = tmp_path_factory.mktemp("models")
    assert token_counter.take_installed(models), "the test extra brings them"
    counter = token_counter.load(token_counter.ranks_file(models))
    assert counter is not None
    return counter


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def language(name: str) -> list[str]:
    return ["\n".join(strings(json.loads((DATA / "languages" / f"{name}.json").read_text("utf-8"))))]


def prose() -> list[str]:
    """What the packages beside csmd say of themselves, and the words in the code of one."""
    described = [metadata.metadata(name).get_payload() for name in ("click", "pytest", "hypothesis", "rich")]
    tree = ast.parse(Path(argparse.__file__).read_text("utf-8"))
    docs = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef))]
    return [*map(str, described), *docs]


#: Kind of text -> texts, how far the estimate of all may be from the count, and whether bytes / 4 must be worse.
KINDS = {
    "prose": (prose, 0.15, False),
    "code": (
        lambda: [Path(str(module.__file__)).read_text("utf-8") for module in (argparse, asyncio.base_events, email.message)],
        0.15, False,
    ),
    "JSON lines": (lambda: [path.read_text("utf-8") for path in sorted(DATA.glob("claude/*/*.jsonl"))], 0.15, True),
    "paths": (
        lambda: [subprocess.run(["ls", "-lR", DATA], check=True, capture_output=True, text=True).stdout], 0.15, True,
    ),
    "Chinese": (lambda: language("zh"), 0.15, True),
    "Russian": (lambda: language("ru"), 0.20, False),
    "German": (lambda: language("de"), 0.20, False),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_is_near_the_count_for_each_kind_of_text(count: worker.Counter, kind: str) -> None:
    texts, least, is_better = KINDS[kind]
    samples = [text[:50_000] for text in texts() if text]
    exact = sum(map(count, samples))
    weighed, plain = (abs(sum(map(of, samples)) / exact - 1) for of in (weigh_tokens, display.estimate_tokens))
    assert exact > 500
    assert weighed <= least, f"{weighed:.2f} from {exact} tokens; bytes / 4: {plain:.2f}"
    assert not is_better or weighed < plain


@given(st.text(max_size=400), st.text(max_size=400))
def test_an_estimate_is_never_negative_and_that_of_a_text_is_no_more_than_one_a_byte_or_two(
    first: str, second: str
) -> None:
    for text in (first, second, first + second, " " * len(first)):
        assert 0 <= weigh_tokens(text) <= 2.1 * len(text.encode("utf-8", "replace"))
        assert bool(weigh_tokens(text)) == bool(text)
