"""Decides what to believe of a model's answer to a question about a session; pure.

An answer has one JSON object, with any text around it; invalid parts are dropped and counted. A note is believed if it
cites candidates of its question and says no more than they do: it has no number, name, identifier, path or quotation
that they lack, is negated exactly if they are, and has their language and subject. Its speaker is that of the cited
words, whatever the answer claims.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from csmd import data, wire
from csmd.curator.question import SESSION, Candidate, Sheet, Standing
from csmd.errors import BadInput
from csmd.text import display, prose, search_terms, sentence, similarity, tokens
from csmd.text.language import language_of
from csmd.text.sentence_words import UNSPACED
from csmd.vocabulary import AUTHORITY_RANK, Authority, Category, Gate

Tell = Literal["starts", "tasks", "never"]
TELLS: tuple[Tell, ...] = ("starts", "tasks")
Does = Literal["rule", "correction", "decision", "fact", "gotcha", "promise"]
#: Why a part of an answer is not believed.
Reason = Literal[
    "unreadable", "form", "unknown", "speaker", "number", "name", "quotation", "negation", "language", "length", "unlike",
    "hangs", "many",
]  # fmt: skip

#: Most words of a note.
MAX_WORDS = 40
#: Most characters of a note in a script without spaces.
MAX_UNSPACED_CHARS = 120
#: Most characters of an answer that are read.
MAX_ANSWER_CHARS = 60_000
#: The least share of a note's content words that occur in its citations.
MIN_CITED_SHARE = 0.5
#: The least share of words (of the shorter text) that a standing note and the text that replaces or ends it share.
MIN_SHARED_WORDS = 0.34
#: If an answer calls more standing notes worthless, none of these judgements is believed.
MAX_WORTHLESS = 3
#: The number of words after a denial that it denies.
DENIED_WORDS = 4
#: A note repeats a denial if it has more than this share of the denied words.
REPEATED_SHARE = 0.5
#: A comparison with this confidence says that one sentence takes back the other; below it, that a word differs.
OPPOSITE = similarity.SIGNALS["opposite"]
#: What a note does -> its gate and category.
KINDS: dict[Does, tuple[Gate, Category]] = {
    "rule": ("behavioral", "convention"), "correction": ("correction", "constraint"),
    "decision": ("epistemic", "decision"), "fact": ("epistemic", "fact"), "gotcha": ("epistemic", "gotcha"),
    "promise": ("promissory", "plan"),
}  # fmt: skip

_WORD = re.compile(r"[^\W_]+(?:[-'./_][^\W_]+)*|,")
#: A word in small letters.
_SMALL = re.compile(r"(?<![\w.`/-])[a-z]{2,}(?![\w`/])")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_QUOTED = re.compile(r"\"([^\"]{2,})\"|“([^”]{2,})”|„([^“”]{2,})[“”]|«([^»]{2,})»|「([^」]{2,})」")
#: Abbreviations such as "e.g", which are not names.
_ABBREVIATION = re.compile(r"[a-z](?:\.[a-z])+")
#: Code between backticks, each word of which is a name, and marks around a word.
_CODE = re.compile(r"`([^`]+)`")
_MARKS = "\"'`()[]{}<>,;:!?*“”„«»「」…—–"
#: Words that deny.
_DENIALS = data.word_table("similarity_words.txt")["denial"] | {"unless", "except", "instead", "rather", "neither"}
#: Stems of the words in csmd's own tables, which are not names.
_PLAIN = frozenset(
    tokens.stem(part)
    for name in ("sentence_words.txt", "similarity_words.txt", "stop_words.txt", "topic_words.txt", "word_classes.txt")
    for words in data.word_table(name).values()
    for word in words
    for part in word.split("_")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note that is believed: its text, what it was made of, and what it replaces."""

    text: str
    tell: Tell
    does: Does
    by: Authority
    is_everywhere: bool
    is_for_days: bool
    cites: tuple[Candidate, ...]
    replaces: tuple[Standing, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Believed:
    """The accepted parts of an answer; `done` pairs a standing note with the candidate that says it is finished.

    `stands` is the state in which the session left the work, shown only with the session.
    """

    notes: tuple[Note, ...] = ()
    stands: Note | None = None
    never: tuple[Candidate | Standing, ...] = ()
    done: tuple[tuple[Standing, Candidate], ...] = ()
    dropped: Counter[Reason] = field(default_factory=Counter)


class _Disbelieved(Exception):
    def __init__(self, reason: Reason) -> None:
        self.reason: Reason = reason


def believe(text: str, sheet: Sheet) -> Believed:
    """Returns what is believed of an answer; never raises."""
    dropped: Counter[Reason] = Counter()
    value = find_object(text)
    if value is None:
        return Believed(dropped=Counter({"unreadable": 1}))
    notes: list[Note] = []
    for item in _filter_objects(value.get("notes"), dropped):
        try:
            notes.append(_parse_note(item, sheet))
        except _Disbelieved as error:
            dropped[error.reason] += 1
    stands = None
    try:
        stands = _parse_state(value.get("stands"), sheet)
    except _Disbelieved as error:
        dropped[error.reason] += 1
    cited = {candidate.uuid + candidate.text for note in notes for candidate in note.cites}
    never: list[Candidate | Standing] = []
    worthless: list[Standing] = []
    for item in _resolve_labels(value.get("never"), {**sheet.candidates, **sheet.standing}, dropped):
        if isinstance(item, Standing):
            worthless.append(item)
        elif item.uuid + item.text not in cited:
            never.append(item)
    if len(worthless) <= MAX_WORTHLESS:
        never += worthless
    else:
        dropped["many"] += len(worthless)
    done = tuple(_parse_done(value, sheet, dropped))
    return Believed(notes=tuple(notes), stands=stands, never=tuple(never), done=done, dropped=dropped)


def find_object(text: str) -> dict[str, Any] | None:
    """Returns the JSON object in a text: the longest that ends at the last brace; None if there is none."""
    text, end = text[:MAX_ANSWER_CHARS], text[:MAX_ANSWER_CHARS].rfind("}") + 1
    for start in [match.start() for match in re.finditer("{", text[:end])][:20]:
        try:
            value = wire.loads(text[start:end])
        except BadInput:
            continue
        if isinstance(value, dict) and {"notes", "never"} & value.keys():
            return value
    return None


def _filter_objects(value: Any, dropped: Counter[Reason]) -> Iterator[dict[str, Any]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item
        else:
            dropped["form"] += 1


def _resolve_labels(labels: Any, meanings: dict[str, Any], dropped: Counter[Reason]) -> list[Any]:
    """Returns the meanings of the labels in a list, each once; unknown labels are counted."""
    strings = [label for label in labels if isinstance(label, str)] if isinstance(labels, list) else []
    dropped["unknown"] += sum(label not in meanings for label in strings)
    dropped += Counter()  # without zeros
    return [meanings[label] for label in dict.fromkeys(strings) if label in meanings]


def _parse_done(value: dict[str, Any], sheet: Sheet, dropped: Counter[Reason]) -> Iterator[tuple[Standing, Candidate]]:
    for item in _filter_objects(value.get("done"), dropped):
        old = _resolve_labels([item.get("id")], sheet.standing, dropped)
        cites = _resolve_labels(item.get("cites"), sheet.candidates, dropped)
        cites = [candidate for candidate in cites if old and _is_on_matter(candidate.text, old[0])]
        if old and cites:
            yield old[0], max(cites, key=lambda candidate: AUTHORITY_RANK[candidate.by])
        elif old:
            dropped["unlike"] += 1


def _parse_state(item: Any, sheet: Sheet) -> Note | None:
    """Returns the note on the final state of the work, None if the answer has none; _Disbelieved if it is not believed.

    It may also cite the session's digest, whose names and numbers then count, and whose speaker is the assistant.
    """
    if item is None:
        return None
    if not isinstance(item, dict) or not isinstance(item.get("note"), str) or not isinstance(item.get("cites"), list):
        raise _Disbelieved("form")
    labels = [label for label in item["cites"] if label != SESSION]
    text, cites = _parse_citations(item["note"], labels, sheet)
    cites_digest = len(labels) < len(item["cites"])
    _check(text, cites, sheet, *([sheet.digest] if cites_digest else []))
    return Note(
        text=text, tell="never", does="fact", by="assistant" if cites_digest else _find_speaker(cites), cites=cites,
        is_everywhere=False, is_for_days=True,
    )  # fmt: skip


def _parse_citations(note: str, labels: list[Any], sheet: Sheet) -> tuple[str, tuple[Candidate, ...]]:
    """Returns the text of a note and the candidates that it cites."""
    if not labels or any(not isinstance(label, str) or label not in sheet.candidates for label in labels):
        raise _Disbelieved("unknown")
    text = display.squeeze(display.defuse(wire.clean(note)))
    return text, tuple(sheet.candidates[label] for label in dict.fromkeys(labels))


def _find_speaker(cites: Sequence[Candidate]) -> Authority:
    """Returns the speaker of the citations: the user only if they said all of them."""
    return min((candidate.by for candidate in cites), key=AUTHORITY_RANK.__getitem__)


def _check(text: str, cites: Sequence[Candidate], sheet: Sheet, *names: str) -> None:
    """Raises _Disbelieved if a note says more than its citations; `names` are allowed besides."""
    around = "\n".join(candidate.text for candidate in sheet.candidates.values())
    if reason := find_addition(text, cites, names=(sheet.project, *names), around=around):
        raise _Disbelieved(reason)


def _parse_note(item: dict[str, Any], sheet: Sheet) -> Note:
    """Returns the note of an item; _Disbelieved if it is not believed."""
    text, labels = item.get("note"), item.get("cites")
    does = next((kind for kind in KINDS if kind == item.get("does")), None)
    tell = next((moment for moment in TELLS if moment == item.get("tell")), None)
    if not isinstance(text, str) or does is None or tell is None or not isinstance(labels, list):
        raise _Disbelieved("form")
    text, cites = _parse_citations(text, labels, sheet)
    by = _find_speaker(cites)
    claimed = item.get("whose")
    if claimed not in ("user", "assistant") or AUTHORITY_RANK[claimed] > AUTHORITY_RANK[by]:
        raise _Disbelieved("form" if claimed not in ("user", "assistant") else "speaker")
    _check(text, cites, sheet)
    replaces = _resolve_labels(item.get("replaces"), sheet.standing, Counter())
    return Note(
        text=text, tell=tell, does=does, by=by, cites=cites, is_everywhere=item.get("scope") == "everywhere",
        is_for_days=item.get("lasts") == "days", replaces=tuple(old for old in replaces if _is_on_matter(text, old)),
    )  # fmt: skip


def _is_on_matter(text: str, old: Standing) -> bool:
    """Whether a text is about the subject of a standing note."""
    words, old_words = _find_stems(text), _find_stems(old.text)
    return len(words & old_words) >= max(1.0, MIN_SHARED_WORDS * min(len(words), len(old_words)))


# --- whether a note says no more than its citations


def find_addition(
    note: str, cites: Sequence[Candidate], *, names: Sequence[str] = (), around: str = ""
) -> Reason | Literal[""]:
    """Returns the reason why a note says more than its citations, or something else; "" if it does not.

    `names` are allowed in any case; a word in small letters in the text `around` it is not a name.
    """
    cited = [candidate.text for candidate in cites]
    context = [text for candidate in cites for text in (candidate.before, candidate.scene)]
    source = "\n".join([*cited, *context, *names])
    language = language_of(note)
    spoken = language_of(" ".join(cited))
    if len(note.split()) > MAX_WORDS or (language in UNSPACED and len(note) > MAX_UNSPACED_CHARS):
        return "length"
    if language != spoken and language and spoken:
        return "language"
    if not _find_numbers(note) <= _find_numbers(source):
        return "number"
    folded = display.squeeze(source).casefold()
    quotations = (part for match in _QUOTED.finditer(note) for part in match.groups() if part)
    if any(display.squeeze(quotation).casefold() not in folded for quotation in quotations):
        return "quotation"
    plain = _PLAIN | tokens.content_stems(source) | {tokens.stem(word) for word in _SMALL.findall(around)}
    if not all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) for name in _find_names(note, plain)):
        return "name"
    if _negates_otherwise(note, cited, source):
        return "negation"
    own = _find_stems(note)
    sourced = frozenset[str]().union(*map(_find_stems, source.splitlines()))  # a text may be as long as a digest
    if not own or similarity.share(own, sourced) < MIN_CITED_SHARE or own.isdisjoint(_find_stems(" ".join(cited))):
        return "unlike"
    hangs = sentence.ends_with_question(note) or sentence.parse(note).kind in ("assents", "printed")
    return "hangs" if hangs or sentence.refers_back(sentence.parse(note)) else ""


def _find_numbers(text: str) -> frozenset[str]:
    """Returns the numbers of a text, in digits or in words, without "one"."""
    words = (
        str(_NUMBER_WORDS.index(word)) for word in tokens.words_of(text) if word in _NUMBER_WORDS and word != "one"
    )
    return frozenset(_NUMBER.findall(text)).union(words)


def _find_names(note: str, plain: frozenset[str]) -> Iterator[str]:
    """Yields the identifiers, paths, flags and names of a note, case folded.

    A sentence's first word is a name unless its stem is in `plain`.
    """
    code = {word for inside in _CODE.findall(note) for word in inside.split()}
    opens = True
    for raw in note.split():
        word = raw.lstrip(_MARKS).rstrip(_MARKS + "./").removesuffix("'s").removesuffix("’s")
        if word and not _NUMBER.fullmatch(word) and not _ABBREVIATION.fullmatch(word):
            is_marked = word in code or re.search(r"[/_.@#=\\]|^--?\w|\d", word) is not None
            is_plain = opens and all(tokens.stem(part) in plain for part in word.casefold().split("-"))
            has_inner = word[1:] != word[1:].lower() and word.isascii() and not is_plain
            if is_marked or has_inner or (word[:1].isupper() and not is_plain):
                yield word.casefold()
        opens = raw.rstrip("\"'`)*”»」")[-1:] in {*".:;!?…。"} if word else opens


def _negates_otherwise(note: str, cited: Sequence[str], source: str) -> bool:
    """Whether a note denies what no cited text denies, or affirms what its cited sentence denies."""
    denies = _denies(note)
    if denies and not _denies(source):
        return True
    own = _find_stems(note)
    parts = [part for text in cited for row in prose.read_prose_lines(text) for part in prose.split_sentences(row)]
    nearest = max(parts, key=lambda part: similarity.share(_find_stems(part), own), default="")
    nearest = sentence.parse(nearest).body or nearest  # a refusal at the beginning does not negate the rest
    if not denies and _denies(nearest):
        note_stems, denied = tokens.content_stems(note), list(_find_denied(nearest, DENIED_WORDS))
        # A denial in passing that the note does not repeat changes nothing.
        if not denied or any(similarity.share(frozenset(what), note_stems) > REPEATED_SHARE for what in denied):
            return True
    # Of two nested denials ("never ... without"), one alone says the opposite.
    twice, note_stems = list(_find_denied(nearest, DENIED_WORDS, is_twice=True)), tokens.content_stems(note)
    is_once = twice and not any(_find_denied(note, DENIED_WORDS, is_twice=True))
    if is_once and any(similarity.share(frozenset(what), note_stems) > REPEATED_SHARE for what in twice):
        return True
    # A denial must not move to something else.
    by_source = frozenset[str]().union(*_find_denied(source, 2 * DENIED_WORDS))
    if by_source and any(what[0] not in by_source for what in _find_denied(note, DENIED_WORDS)):
        return True
    comparison = similarity.compare(nearest, note)
    return comparison.replaces and comparison.confidence >= OPPOSITE


def _find_denied(text: str, limit: int, *, is_twice: bool = False) -> Iterator[list[str]]:
    """Yields the stems of at most `limit` words after each denial; nothing for a language without known denials.

    With `is_twice`, only for denials that follow another denial.
    """
    words = _WORD.findall(text.casefold().replace("’", "'"))
    for index, word in enumerate(words):
        if not _is_denial(word):
            continue
        before = " ".join(words[max(0, index - 2 * limit) : index]).rpartition(",")[2].split()
        if is_twice and not any(map(_is_denial, before)):
            continue
        after = " ".join(words[index + 1 : index + 1 + limit]).split(",")[0]
        if stems := list(map(tokens.stem, tokens.content_words(after))):
            yield stems


def _denies(text: str) -> bool:
    words = tokens.words_of(text.replace("’", "'"))
    language = language_of(text) or "en"
    return any(map(_is_denial, words)) or sentence.has("ban", language, text)


def _is_denial(word: str) -> bool:
    return word in _DENIALS or word.endswith("n't") or word == "dont"


def _find_stems(text: str) -> frozenset[str]:
    """Returns the stems by which a text is compared; pairs of letters in a script without spaces."""
    return frozenset(map(tokens.stem, search_terms.query_terms(text)))
