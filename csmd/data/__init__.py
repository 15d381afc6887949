"""Trained weights, word lists and help texts, read at first use."""

from __future__ import annotations

from importlib import resources

from csmd.cache import cached


def lines(name: str) -> list[str]:
    """The lines of a list of words, without comments."""
    text_lines = resources.files("csmd.data").joinpath(name).read_text(encoding="utf-8").splitlines()
    return [line for line in text_lines if not line.startswith("#")]


@cached(16)
def word_table(name: str) -> dict[str, frozenset[str]]:
    """The words of each class in a file of lines `class: words`; a class may have several lines."""
    sections: dict[str, list[str]] = {}
    for line in lines(name):
        word_class, _, words = line.partition(":")
        sections.setdefault(word_class, []).extend(words.split())
    return {word_class: frozenset(words) for word_class, words in sections.items() if word_class}
