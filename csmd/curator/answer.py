"""What is believed of a model's answer to a question about a session; pure.

Around the one JSON object anything may stand; inside it, what does not fit is dropped and counted. A note is believed that
cites candidates of its question and says of them no more than they do: it has no number, name, identifier, path or
quotation that they lack, is negated where they are and nowhere else, speaks their language and is about their matter. Who
said it is who said the cited words, whatever the answer claims.
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

#: Most words of a note, and characters of one in a script without spaces; and of an answer that is read.
MOST_WORDS, MOST_UNSPACED, MOST_READ = 40, 120, 60_000
#: A note has at least this share of its content words from what it cites; a standing note is on the matter of what replaces
#: or ends it that has this share of the shorter one's.
OWN_SHARE, ON_MATTER = 0.5, 0.34
#: An answer that calls more standing notes worthless is believed about none of them: it judges too lightly, or obeys.
MOST_WORTHLESS = 3
#: So many words behind a denial are what is denied; a note tells of it that has more than this share of them.
DENIED_WORDS, TOLD = 4, 0.5
#: From this confidence on a comparison says that one sentence takes the other back; below, that a word differs.
OPPOSITE = similarity.SIGNALS["opposite"]
#: What a note does -> its gate and category.
KINDS: dict[Does, tuple[Gate, Category]] = {
    "rule": ("behavioral", "convention"),
    "correction": ("correction", "constraint"),
    "decision": ("epistemic", "decision"),
    "fact": ("epistemic", "fact"),
    "gotcha": ("epistemic", "gotcha"),
    "promise": ("promissory", "plan"),
}

_WORD = re.compile(r"[^\W_]+(?:[-'./_][^\W_]+)*|,")
#: A word in small letters.
_SMALL = re.compile(r"(?<![\w.`/-])[a-z]{2,}(?![\w`/])")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_QUOTED = re.compile(r"\"([^\"]{2,})\"|“([^”]{2,})”|„([^“”]{2,})[“”]|«([^»]{2,})»|「([^」]{2,})」")
#: "e.g", "i.e": what stands in a sentence for words, and is no name.
_ABBREVIATION = re.compile(r"[a-z](?:\.[a-z])+")
#: Code between backticks, each word of which is a name, and marks around a word.
_CODE = re.compile(r"`([^`]+)`")
_MARKS = "\"'`()[]{}<>,;:!?*“”„«»「」…—–"
#: Words by which a sentence says what is not to be, or not so.
_DENIALS = data.word_table("similarity_words.txt")["denial"] | {"unless", "except", "instead", "rather", "neither"}
#: Stems of the words that csmd's own tables hold: a word of the language, and no name.
_PLAIN = frozenset(
    tokens.stem(part)
    for name in ("sentence_words.txt", "similarity_words.txt", "stop_words.txt", "topic_words.txt", "word_classes.txt")
    for words in data.word_table(name).values()
    for word in words
    for part in word.split("_")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note that is believed: what it says, what it was made of, and what it takes the place of."""

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

    The field `stands` is the state in which the session left the work; it is shown with the session, and nowhere else.
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
    """What of an answer is believed; never raises."""
    dropped: Counter[Reason] = Counter()
    value = find_object(text)
    if value is None:
        return Believed(dropped=Counter({"unreadable": 1}))
    notes: list[Note] = []
    for item in _items(value.get("notes"), dropped):
        try:
            notes.append(_note(item, sheet))
        except _Disbelieved as why:
            dropped[why.reason] += 1
    stands = None
    try:
        stands = _stands(value.get("stands"), sheet)
    except _Disbelieved as why:
        dropped[why.reason] += 1
    cited = {candidate.uuid + candidate.text for note in notes for candidate in note.cites}
    named = _labelled(value.get("never"), {**sheet.candidates, **sheet.standing}, dropped)
    never: list[Candidate | Standing] = [
        item for item in named if isinstance(item, Candidate) and item.uuid + item.text not in cited
    ]
    worthless = [item for item in named if isinstance(item, Standing)]
    if len(worthless) <= MOST_WORTHLESS:
        never += worthless
    else:
        dropped["many"] += len(worthless)
    return Believed(
        notes=tuple(notes), stands=stands, never=tuple(never), done=tuple(_done(value, sheet, dropped)), dropped=dropped
    )


def find_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a text, whatever is around it: the longest from a brace to the last one; None for none."""
    text, end = text[:MOST_READ], text[:MOST_READ].rfind("}") + 1
    for start in [match.start() for match in re.finditer("{", text[:end])][:20]:
        try:
            value = wire.loads(text[start:end])
        except BadInput:
            continue
        if isinstance(value, dict) and {"notes", "never"} & value.keys():
            return value
    return None


def _items(value: Any, dropped: Counter[Reason]) -> Iterator[dict[str, Any]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item
        else:
            dropped["form"] += 1


def _labelled(labels: Any, meanings: dict[str, Any], dropped: Counter[Reason]) -> list[Any]:
    """What the labels of a list stand for, each once; those that stand for nothing are counted."""
    named = [label for label in labels if isinstance(label, str)] if isinstance(labels, list) else []
    dropped["unknown"] += sum(label not in meanings for label in named)
    dropped += Counter()  # without zeros
    return [meanings[label] for label in dict.fromkeys(named) if label in meanings]


def _done(value: dict[str, Any], sheet: Sheet, dropped: Counter[Reason]) -> Iterator[tuple[Standing, Candidate]]:
    for item in _items(value.get("done"), dropped):
        old = _labelled([item.get("id")], sheet.standing, dropped)
        cites = [
            candidate
            for candidate in _labelled(item.get("cites"), sheet.candidates, dropped)
            if old and _is_on(candidate.text, old[0])
        ]
        if old and cites:
            yield old[0], max(cites, key=lambda candidate: AUTHORITY_RANK[candidate.by])
        elif old:
            dropped["unlike"] += 1


def _stands(item: Any, sheet: Sheet) -> Note | None:
    """The note that says in what state the work was left, None where the answer has none; _Disbelieved says why not.

    It may cite the session's digest besides, which then counts for names and numbers, and is the assistant's.
    """
    if item is None:
        return None
    if not isinstance(item, dict) or not isinstance(item.get("note"), str) or not isinstance(item.get("cites"), list):
        raise _Disbelieved("form")
    labels = [label for label in item["cites"] if label != SESSION]
    text, cites = _cited(item["note"], labels, sheet)
    is_of_digest = len(labels) < len(item["cites"])
    _check(text, cites, sheet, *([sheet.digest] if is_of_digest else []))
    return Note(
        text=text, tell="never", does="fact", by="assistant" if is_of_digest else _speaker(cites), cites=cites,
        is_everywhere=False, is_for_days=True,
    )  # fmt: skip


def _cited(note: str, labels: list[Any], sheet: Sheet) -> tuple[str, tuple[Candidate, ...]]:
    """The words of a note as they are kept, and the candidates that it cites."""
    if not labels or any(not isinstance(label, str) or label not in sheet.candidates for label in labels):
        raise _Disbelieved("unknown")
    text = display.squeeze(display.defuse(wire.clean(note)))
    return text, tuple(sheet.candidates[label] for label in dict.fromkeys(labels))


def _speaker(cites: Sequence[Candidate]) -> Authority:
    """Who said what is cited: the user only where all of it is theirs."""
    return min((candidate.by for candidate in cites), key=AUTHORITY_RANK.__getitem__)


def _check(text: str, cites: Sequence[Candidate], sheet: Sheet, *more: str) -> None:
    """_Disbelieved where a note does not say what it cites, and what is known besides."""
    around = "\n".join(candidate.text for candidate in sheet.candidates.values())
    if reason := why_not_said(text, cites, names=(sheet.project, *more), around=around):
        raise _Disbelieved(reason)


def _note(item: dict[str, Any], sheet: Sheet) -> Note:
    """The note of an item; _Disbelieved says why there is none."""
    text, labels = item.get("note"), item.get("cites")
    does = next((kind for kind in KINDS if kind == item.get("does")), None)
    tell = next((moment for moment in TELLS if moment == item.get("tell")), None)
    if not isinstance(text, str) or does is None or tell is None or not isinstance(labels, list):
        raise _Disbelieved("form")
    text, cites = _cited(text, labels, sheet)
    by = _speaker(cites)
    claimed = item.get("whose")
    if claimed not in ("user", "assistant") or AUTHORITY_RANK[claimed] > AUTHORITY_RANK[by]:
        raise _Disbelieved("form" if claimed not in ("user", "assistant") else "speaker")
    _check(text, cites, sheet)
    replaces = _labelled(item.get("replaces"), sheet.standing, Counter())
    return Note(
        text=text, tell=tell, does=does, by=by, cites=cites, is_everywhere=item.get("scope") == "everywhere",
        is_for_days=item.get("lasts") == "days", replaces=tuple(old for old in replaces if _is_on(text, old)),
    )  # fmt: skip


def _is_on(text: str, old: Standing) -> bool:
    """Whether a text is on the matter of a standing note."""
    ours, other = _stems(text), _stems(old.text)
    return len(ours & other) >= max(1.0, ON_MATTER * min(len(ours), len(other)))


# --- whether a note says what it cites


def why_not_said(
    note: str, cites: Sequence[Candidate], *, names: Sequence[str] = (), around: str = ""
) -> Reason | Literal[""]:
    """Why a note says more, less or something else than what it cites, "" if it does not.

    `names` are known anyway; what is in small letters in the text `around` it is a word, and no name.
    """
    cited = [candidate.text for candidate in cites]
    source = "\n".join(
        [*cited, *(candidate.before for candidate in cites), *(candidate.scene for candidate in cites), *names]
    )
    language = language_of(note)
    spoken = language_of(" ".join(cited))
    if not _is_short(note, language):
        return "length"
    if language != spoken and language and spoken:
        return "language"
    if not _numbers(note) <= _numbers(source):
        return "number"
    folded = display.squeeze(source).casefold()
    if any(display.squeeze(inside).casefold() not in folded for inside in _quoted(note)):
        return "quotation"
    plain = _PLAIN | tokens.content_stems(source) | {tokens.stem(word) for word in _SMALL.findall(around)}
    if not all(_holds(folded, name) for name in _names(note, plain)):
        return "name"
    if _is_turned(note, cited, source):
        return "negation"
    own = _stems(note)
    sourced = frozenset[str]().union(
        *map(_stems, source.splitlines())
    )  # of a text as long as a digest not all are read
    if not own or similarity.share(own, sourced) < OWN_SHARE or own.isdisjoint(_stems(" ".join(cited))):
        return "unlike"
    hangs = sentence.ends_with_question(note) or sentence.parse(note).kind in ("assents", "printed")
    return "hangs" if hangs or sentence.refers_back(sentence.parse(note)) else ""


def _is_short(note: str, language: str) -> bool:
    return len(note.split()) <= MOST_WORDS and (language not in UNSPACED or len(note) <= MOST_UNSPACED)


def _numbers(text: str) -> frozenset[str]:
    """The numbers of a text, in digits or in words; "one" is none."""
    words = (
        str(_NUMBER_WORDS.index(word)) for word in tokens.words_of(text) if word in _NUMBER_WORDS and word != "one"
    )
    return frozenset(_NUMBER.findall(text)).union(words)


def _quoted(text: str) -> list[str]:
    return [part for match in _QUOTED.finditer(text) for part in match.groups() if part]


def _names(note: str, plain: frozenset[str]) -> Iterator[str]:
    """The identifiers, paths, flags and names of a note; the word that a sentence begins with is one unless it is `plain` (stems)."""
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


def _holds(folded: str, name: str) -> bool:
    """Whether a text (case folded) has a name, not as a part of a longer word."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) is not None


def _is_turned(note: str, cited: Sequence[str], source: str) -> bool:
    """Whether a note denies what nothing cited denies, or affirms what the sentence that it is made of denies."""
    denies = _denies(note)
    if denies and not _denies(source):
        return True
    own = _stems(note)
    parts = [part for text in cited for row in prose.lines_of_prose(text) for part in prose.sentences(row)]
    nearest = max(parts, key=lambda part: similarity.share(_stems(part), own), default="")
    nearest = sentence.parse(nearest).body or nearest  # what it refuses in front says nothing of what it says
    if not denies and _denies(nearest):
        noted, denied = tokens.content_stems(note), list(_denied(nearest, DENIED_WORDS))
        # What is denied in passing, and not told, turns nothing.
        if not denied or any(similarity.share(frozenset(what), noted) > TOLD for what in denied):
            return True
    # Of two denials, one inside the other ("never ... without"), one alone says the opposite.
    twice, noted = list(_denied(nearest, DENIED_WORDS, is_twice=True)), tokens.content_stems(note)
    is_once = twice and not any(_denied(note, DENIED_WORDS, is_twice=True))
    if is_once and any(similarity.share(frozenset(what), noted) > TOLD for what in twice):
        return True
    # Nor may a denial move to something else.
    by_source = frozenset[str]().union(*_denied(source, 2 * DENIED_WORDS))
    if by_source and any(what[0] not in by_source for what in _denied(note, DENIED_WORDS)):
        return True
    comparison = similarity.compare(nearest, note)
    return comparison.replaces and comparison.confidence >= OPPOSITE


def _denied(text: str, most: int, *, is_twice: bool = False) -> Iterator[list[str]]:
    """The words after each denial, at most `most`, as stems; nothing for a language without words of denial.

    With `is_twice`, only of denials that follow another denial.
    """
    words = _WORD.findall(text.casefold().replace("’", "'"))
    for at, word in enumerate(words):
        behind = " ".join(words[at + 1 : at + 1 + most]).split(",")[0] if _is_denial(word) else ""
        before = " ".join(words[max(0, at - 2 * most) : at]).rpartition(",")[2].split() if is_twice else []
        if is_twice and not any(map(_is_denial, before)):
            continue
        if stems := list(map(tokens.stem, tokens.content_words(behind))):
            yield stems


def _denies(text: str) -> bool:
    words = tokens.words_of(text.replace("’", "'"))
    language = language_of(text) or "en"
    return any(map(_is_denial, words)) or sentence.has("ban", language, text)


def _is_denial(word: str) -> bool:
    return word in _DENIALS or word.endswith("n't") or word == "dont"


def _stems(text: str) -> frozenset[str]:
    """The content words of a text by which it is compared; of a script without spaces pairs of letters."""
    return frozenset(map(tokens.stem, search_terms.query_terms(text)))
