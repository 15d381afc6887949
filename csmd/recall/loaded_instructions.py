"""Finds statements that an assistant knows already from the instruction files that it loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from csmd.cache import cached
from csmd.hosts.adapters import adapter_of_session
from csmd.store import instruction_rows, projects
from csmd.store.sqlite import Rows
from csmd.text import display, prose, similarity, tokens

#: A longer line is a paste, not an instruction.
MAX_LINE_CHARACTERS = 2000


def never(statement: str) -> bool:
    """Tests nothing: the filter for a reader without instructions."""
    del statement
    return False


def instructions_filter(rows: Rows, places: Sequence[int], session_id: str) -> Callable[[str], bool]:
    """Returns a test for statements in the instructions that a session's assistant loads in these projects.

    All merged directories of a project must state it, because the directory of the request is unknown.
    """
    indexes: list[list[SentenceIndex]] = []
    host = adapter_of_session(session_id).host
    for place in filter(None, places):
        merged = sorted(projects.find_merged_projects(rows, place))
        texts = (instruction_rows.list_instruction_texts(rows, [project], host) for project in merged)
        indexes.append([index_sentences(tuple(of_project)) for of_project in texts if of_project])
    return lambda statement: any(of_place and all(index.says(statement) for index in of_place) for of_place in indexes)


class SentenceIndex:
    """An index of sentences by their words."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sentences = sentences
        self._numbers_of_stem: dict[str, list[int]] = {}
        for number, sentence in enumerate(sentences):
            for stem in tokens.content_stems(sentence):
                self._numbers_of_stem.setdefault(stem, []).append(number)

    def says(self, statement: str) -> bool:
        """Whether the index contains each sentence of a statement, in the same words or among more."""
        sentences = prose.split_sentences(display.squeeze(statement))
        meaningful = [sentence for sentence in sentences if similarity.gist(sentence).stems]
        return bool(meaningful) and all(map(self._says_sentence, meaningful))

    def _says_sentence(self, sentence: str) -> bool:
        stems = similarity.gist(sentence).stems
        shared = Counter(number for stem in stems for number in self._numbers_of_stem.get(stem, ()))
        min_shared = similarity.MIN_SAME_SHARE * len(stems)
        candidates = (self._sentences[number] for number, count in shared.items() if count >= min_shared)
        return any(similarity.repeats(sentence, candidate, within=True) for candidate in candidates)


@cached(8)
def index_sentences(texts: tuple[str, ...]) -> SentenceIndex:
    """Indexes the sentences of some texts; the same texts are parsed once."""
    lines = [line for text in texts for line in prose.read_prose_lines(text) if len(line) <= MAX_LINE_CHARACTERS]
    return SentenceIndex(list(dict.fromkeys(sentence for line in lines for sentence in prose.split_sentences(line))))
