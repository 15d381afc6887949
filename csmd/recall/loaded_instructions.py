"""What an assistant knows anyway, from the instruction files that it loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from csmd.cache import cached
from csmd.hosts.adapters import adapter_of_session
from csmd.store import instruction_rows, projects
from csmd.store.sqlite import Rows
from csmd.text import display, prose, similarity, tokens

#: A longer line is a paste, not an instruction.
LONGEST_LINE = 2000


def never(statement: str) -> bool:
    """A filter for a reader who is told nothing anyway."""
    del statement
    return False


def instructions_filter(rows: Rows, places: Sequence[int], session_id: str) -> Callable[[str], bool]:
    """A function that says whether what a session's assistant loads anyway states something in these places.

    Of directories that were merged each must state it: it is unknown from which of them the request comes.
    """
    indexes: list[list[SentenceIndex]] = []
    host = adapter_of_session(session_id).host
    for place in filter(None, places):
        texts = [
            instruction_rows.list_instruction_texts(rows, [merged], host)
            for merged in sorted(projects.find_merged_projects(rows, place))
        ]
        indexes.append([index_sentences(tuple(some)) for some in texts if some])
    return lambda statement: any(of_place and all(index.says(statement) for index in of_place) for of_place in indexes)


class SentenceIndex:
    """Sentences found by their words."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sentences = sentences
        self._with: dict[str, list[int]] = {}
        for number, sentence in enumerate(sentences):
            for stem in tokens.content_stems(sentence):
                self._with.setdefault(stem, []).append(number)

    def says(self, statement: str) -> bool:
        """Whether each sentence of a statement is said here, in the same words or among more."""
        sentences = prose.split_sentences(display.squeeze(statement))
        telling = [sentence for sentence in sentences if similarity.gist(sentence).stems]
        return bool(telling) and all(map(self._says, telling))

    def _says(self, sentence: str) -> bool:
        stems = similarity.gist(sentence).stems
        shared = Counter(number for stem in stems for number in self._with.get(stem, ()))
        candidates = (
            self._sentences[at] for at, count in shared.items() if count >= similarity.MIN_SAME_SHARE * len(stems)
        )
        return any(similarity.repeats(sentence, candidate, within=True) for candidate in candidates)


@cached(8)
def index_sentences(texts: tuple[str, ...]) -> SentenceIndex:
    """An index of what these texts say; the same texts are parsed once."""
    lines = [line for text in texts for line in prose.read_prose_lines(text) if len(line) <= LONGEST_LINE]
    return SentenceIndex(list(dict.fromkeys(sentence for line in lines for sentence in prose.split_sentences(line))))
