"""Words, stems, dates and names that a text is searched by; pure.

Other languages than English: pairs of letters stand for words in Chinese, Japanese and Korean, since nothing marks where
one ends. Russian and German: a word is asked for by its beginning, without its ending; of a German compound also by its
parts, which the index has as tails.
"""

from __future__ import annotations

import calendar
import contextlib
import hmac
import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import chain

from csmd import data
from csmd.cache import cached

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
_RUN = re.compile(f"[{_CJK}]+")
#: Words that the index would join to the run next to them.
_BESIDE = re.compile(f"(?<=[{_CJK}])[A-Za-z0-9]+|[A-Za-z0-9]+(?=[{_CJK}])")
_CYRILLIC = re.compile("[\u0400-\u04ff]{4,40}")
_LATIN = re.compile("[A-Za-zÄÖÜäöüß]{4,40}")
#: A long word with a capital, as German writes its compounds.
_COMPOUND = re.compile(r"[A-ZÄÖÜ][a-zäöüß]{9,40}\b")
#: A part of a compound has so many letters, and as many come before or after it.
LEAST_PART = 5
#: Of so many different compounds in a text the tails are taken: a list of words would otherwise grow tenfold.
MOST_COMPOUNDS = 500
LEAST_STEM = 3

_WORDS = data.word_table("stop_words.txt")


def derived(text: str) -> Iterator[str]:
    """What the index holds of a text in addition to its words: pairs of letters, words next to them, the tails of compounds."""
    if not text.isascii():
        for run in _RUN.findall(text):
            yield from pairs(run)
        yield from _BESIDE.findall(text)
    for word in list(dict.fromkeys(_COMPOUND.findall(text)))[:MOST_COMPOUNDS]:
        yield from (word[at:] for at in range(LEAST_PART - 1, len(word) - LEAST_PART + 1))


def pairs(run: str) -> Iterator[str]:
    """Every two adjacent letters; a single letter yields itself."""
    return (run[at : at + 2] for at in range(max(1, len(run) - 1)))


def in_pairs(word: str) -> list[str]:
    """A word with Chinese, Japanese or Korean letters as pairs of them and the words next to them; [] for any other word."""
    if word.isascii() or not _RUN.search(word):
        return []
    return [*(pair for run in _RUN.findall(word) for pair in pairs(run)), *_BESIDE.findall(word)]


def unindexed(question: str) -> str:
    """The symbols, or the one letter of Chinese, Japanese or Korean, that a question is and no index holds; "" for others."""
    symbol = question.strip().replace("\ufe0f", "")
    is_letter = len(symbol) == 1 and _RUN.fullmatch(symbol)
    is_symbol = not any(map(str.isalnum, symbol)) and any(unicodedata.category(char) == "So" for char in symbol)
    return symbol if is_letter or is_symbol else ""


def terms_of_language(question: str, words: list[str]) -> list[str] | None:
    """The terms that replace the `words` of a question in one of these languages; None for any other question.

    A term that ends with `*` is the beginning of a word.
    """
    german = _is_german(question)
    if not german and question.isascii():
        return None
    stop_words = _WORDS["russian"] | _WORDS["german"] if german else _WORDS["russian"]
    terms: dict[str, None] = {}
    for word in words:
        if word in stop_words:
            continue
        terms[word] = None
        if _CYRILLIC.fullmatch(word):
            terms[f"{_stem_in('russian', word)}*"] = None
        elif german and _LATIN.fullmatch(word):
            stem = _stem_in("german", word)
            terms[f"{stem}*"] = None
            terms.update((part, None) for part in _parts(word, len(stem)))
    return list(terms)


def _is_german(question: str) -> bool:
    words = set(re.findall(r"[a-zäöüß]+", question.lower()))
    umlauts = any(letter in "äöüß" for word in words for letter in word)
    return len((words & _WORDS["german"]) - _WORDS["shared"]) + umlauts > len(words & _WORDS["question"])


def _stem_in(language: str, word: str) -> str:
    """The beginning of a word that is as long as its stem (which has no umlaut)."""
    import snowballstemmer  # 15 ms, and few questions need it

    return word[: max(LEAST_STEM, len(snowballstemmer.stemmer(language).stemWord(word)))]


def _parts(word: str, stem_length: int) -> Iterator[str]:
    """What may be the parts of a compound: its beginnings as they are, its ends without their ending."""
    for at in range(LEAST_PART, len(word) - LEAST_PART + 1):
        yield word[:at]
        yield f"{word[at : max(stem_length, at + LEAST_STEM)]}*" if len(word) - at > LEAST_PART + 1 else word[at:]


#: A hump in a name, and a name with one; plurals of capitals (URLs, IDs) have none.
_HUMP = re.compile(r"[A-Z](?<=[a-z].)|[A-Z]{2}[a-z]{2}")
_HUMPED = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]{4,80}(?![A-Za-z0-9]))[A-Za-z0-9]*?(?:[a-z][A-Z]|[A-Z]{2}[a-z]{2})[A-Za-z0-9]*"
)
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
#: Names of several words: paths, dotted, kebab and snake names, each with its parts.
_NAME = re.compile(r"(?<![^\W_])[^\W_]++(?:[./:\\_-]{1,3}[^\W_]++)+")
_SEPARATOR = re.compile(r"[./:\\_-]+")
MOST_PARTS = 12
MOST_TERMS = 60
#: "By Feb 16" means the next one; a date more than so many days ahead means the last one.
HALF_A_YEAR = 183

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep sept", "october oct", "november nov", "december dec"), 1
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATE = re.compile(
    r"\b(?P<y>\d{4})-(?P<m>\d{2})(?:-(?P<d>\d{2}))?\b"
    rf"|\b(?P<mn>{_MONTH})\.?\s(?P<md>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<my>\d{{4}})\b)?"
    rf"|\b(?P<dd>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s)?(?P<dn>{_MONTH})\b\.?(?:,?\s(?P<dy>\d{{4}})\b)?"
    rf"|\b(?:in|of|since|during|late|early|mid)[\s-](?P<on>{_MONTH})\b(?:,?\s(?P<oy>\d{{4}})\b)?",
    re.IGNORECASE,
)


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def indexed(text: str, at: str) -> str:
    """What the full-text index holds of a text written `at` a time (ISO, "" for none): the text and what is derived."""
    more = [*_days(at[:10])]
    if _HUMP.search(text):
        more += [" ".join(_CAMEL.findall(name)) for name in dict.fromkeys(_HUMPED.findall(text))]
    more += derived(text)
    return f"{text}\n{' '.join(more)}" if more else text


def question_terms(question: str) -> list[str]:
    """The distinct terms a question is looked for by: its words, its names whole and in parts, its days; at most 60.

    A term of several words is a phrase. Where it says nothing but stop words, these are what is looked for.
    """
    terms: dict[str, None] = {}
    left: list[str] = []
    at = 0
    for named in _DATE.finditer(question):
        days = _days_named(named)
        if days:
            terms.update((day, None) for day in days)
            left.append(question[at : named.start()])
            at = named.end()
    rest = " ".join([*left, question[at:]])
    words = query_terms(rest)
    other = terms_of_language(question, words)
    terms.update((term, None) for term in (words if other is None else other))
    terms.update((name, None) for name in _whole_names(rest))
    if not terms:
        terms.update((word, None) for word in words_of(question))
    return list(terms)[:MOST_TERMS]


def _days(day: str) -> Iterator[str]:
    """A day as the index has it: whole, without its year, its month with and without the year."""
    if _DAY.fullmatch(day):
        year, month, number = day.split("-")
        yield from (f"d{year}{month}{number}", f"d{month}{number}", f"m{year}{month}", f"m{month}")


def _named_day(match: re.Match[str]) -> tuple[str, int, int, str]:
    """(year or "", month, day or 0, the month's name or "") of a date in a text."""
    part = match.groupdict()
    name = (part["mn"] or part["dn"] or part["on"] or "").lower()
    year = part["y"] or part["my"] or part["dy"] or part["oy"] or ""
    return year, _MONTHS[name] if name else int(part["m"]), int(part["d"] or part["md"] or part["dd"] or 0), name


def _days_named(match: re.Match[str]) -> list[str]:
    year, month, number, name = _named_day(match)
    if not 1 <= month <= 12 or number > 31:
        return []
    if number:
        return [f"d{year}{month:02}{number:02}", *([f"{name} {number}"] if name else [])]
    return [f"m{year}{month:02}", *([name] if len(name) > 3 else [])]


def date_terms(text: str, since: str) -> list[tuple[int, int, str]]:
    """The days that a text from the day `since` names: (start, end, ISO day), in their order.

    Of a month or a week its last; without a year the next within half a year; a day of the week is the next such day.
    """
    spans = [
        (match.start(), match.end(), _relative_day(match, date.fromisoformat(since)).isoformat())
        for match in _RELATIVE.finditer(text)
    ]
    for match in _DATE.finditer(text):
        year, month, number, _ = _named_day(match)
        with contextlib.suppress(ValueError):  # the 31st of June, or a month that only looks like one
            begun = date.fromisoformat(since)
            years = [int(year)] if year else [begun.year, begun.year + 1]
            days = [date(in_year, month, number or calendar.monthrange(in_year, month)[1]) for in_year in years]
            named = [day for day in days if year or begun <= day <= begun + timedelta(days=HALF_A_YEAR)]
            spans += [(match.start(), match.end(), day.isoformat()) for day in named]
    return sorted(spans)


_WEEKDAYS = tuple(day.lower() for day in calendar.day_name)
_COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
#: A day named by its distance from today; not a recurring one ("every Friday") nor a possessive ("Friday's build").
_RELATIVE = re.compile(
    r"(?<!\bevery )(?<!\beach )\b(?:(?P<near>today|tonight|tomorrow|(?:the )?day after tomorrow)|(?P<end>(?:the )?end of (?:the|this|next) (?:week|month))"
    rf"|in (?P<count>\d{{1,2}}|{'|'.join(_COUNTS)}) (?P<unit>day|week)s?|next (?P<stretch>week|month)"
    rf"|(?P<next>next )?(?P<weekday>{'|'.join(_WEEKDAYS)})|the (?P<nth>[1-9]|[12]\d|3[01])(?:st|nd|rd|th)(?! of\b| [a-z]))\b(?!['’])",
    re.IGNORECASE,
)


def _relative_day(match: re.Match[str], since: date) -> date:
    """The day that is named by where it lies from the day `since`; of a week its Sunday, of a month its last day."""
    part = {name: (value or "").lower() for name, value in match.groupdict().items()}
    sunday = since + timedelta(days=6 - since.weekday())
    if part["near"]:
        return since + timedelta(days={"today": 0, "tonight": 0, "tomorrow": 1}.get(part["near"], 2))
    if part["count"]:
        count = _COUNTS.get(part["count"]) or int(part["count"])
        return since + timedelta(days=count * (7 if part["unit"] == "week" else 1))
    if part["weekday"]:
        first = sunday if part["next"] else since
        return first + timedelta(days=(_WEEKDAYS.index(part["weekday"]) - first.weekday() - 1) % 7 + 1)
    month_on = _month_on(since.replace(day=1))
    if part["nth"]:
        number = int(part["nth"])
        month = since.replace(day=1) if number >= since.day else month_on
        return month.replace(day=min(number, calendar.monthrange(month.year, month.month)[1]))
    is_next = bool(part["stretch"]) or "next" in part["end"]
    if "month" not in part["end"] + part["stretch"]:
        return sunday + timedelta(days=7 * is_next)
    month = month_on if is_next else since.replace(day=1)
    return month.replace(day=calendar.monthrange(month.year, month.month)[1])


def _month_on(first: date) -> date:
    """The first day of the month behind that of a first day."""
    return (first + timedelta(days=31)).replace(day=1)


def _whole_names(question: str) -> Iterator[str]:
    """Names of several words as phrases: whole, a path's last part, and CamelCase as its parts."""
    for match in _NAME.finditer(question):
        name = match.group().lower()
        parts = _SEPARATOR.split(name)
        if len(parts) <= MOST_PARTS and sum(len(part) > 1 and part not in STOP_WORDS for part in parts) > 1:
            yield name
            last = re.split(r"[/\\]", name)[-1]
            if last != name and _SEPARATOR.search(last):
                yield last
    for match in _HUMPED.finditer(question):
        yield " ".join(_CAMEL.findall(match.group())).lower()


#: Words that do not depend on a text's subject; dropped from queries and overlaps (facts: retrieval).
STOP_WORDS = _WORDS["english"]

_WORD = re.compile(r"[^\W_]+(?:[_'][^\W_]+)*", re.UNICODE)
_SPACE = re.compile(r"\s+")


def normalise(text: str) -> str:
    """`text` for comparing: NFKC, case folded, white space squeezed, outer punctuation gone."""
    # Of ASCII the form is the same, and small letters are what case folding makes.
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return _SPACE.sub(" ", folded).strip(" \t\n.,;:!?\"'`*_-")


def keyed_hash(text: str, key: bytes) -> str:
    """A keyed hash of the normalised text: 32 hex digits."""
    return hmac.digest(key, normalise(text).encode("utf-8", "replace"), "sha256").hex()[:32]


def words_of(text: str) -> list[str]:
    """Every word of `text`, case folded, in order; identifiers stay whole."""
    if text.isascii():  # its words are the same small, and most texts are
        return _WORD.findall(text.lower())
    return [word.casefold() for word in _WORD.findall(text)]


def content_words(text: str) -> list[str]:
    """The content words in order: numbers, and words that are neither stop words nor single letters."""
    return content_of(words_of(text))


def content_of(every: Iterable[str]) -> list[str]:
    """The content words of a text."""
    return [word for word in every if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())]


def query_terms(text: str) -> list[str]:
    """The distinct terms to search for: content words, parts of identifiers, pairs of Chinese letters; at most 40."""
    return list(dict.fromkeys(chain.from_iterable(map(_terms_of, _WORD.findall(text)))))[:40]


@cached(8192)
def _terms_of(word: str) -> tuple[str, ...]:
    """The terms of one word; most words come again and again."""
    folded = word.lower()  # as the full-text index has it: ß stays ß
    if word.isalpha() and word.isascii() and (word[1:] or word).islower():  # it has no parts
        return (folded,) if len(folded) > 1 and folded not in STOP_WORDS else ()
    if pairs := in_pairs(folded):
        return tuple(pairs)
    terms = [folded] if len(folded) > 1 and folded not in STOP_WORDS else []
    parts = [part.casefold() for part in _CAMEL.findall(word)]
    if len(parts) > 1:
        terms += [part for part in parts if len(part) > 2 and part not in STOP_WORDS]
    return tuple(terms)


_ENDINGS = ("ations", "ation", "ingly", "ings", "ing", "edly", "ies", "es", "ed", "s", "e")
#: A letter that an ending doubles: committing, planned.
_DOUBLED = ("bb", "gg", "mm", "nn", "pp", "rr", "tt")
_IRREGULAR = dict(pair.split("/") for pair in data.word_table("similarity_words.txt")["irregular"])


@cached(8192)
def stem(word: str) -> str:
    """A word without its commonest English endings, for comparing; at least three letters stay.

    An irregular form has the stem of its verb or singular: kept, keep.
    """
    word = _IRREGULAR.get(word, word)
    if word.endswith(_ENDINGS):
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word[: -len(ending)]
                word = word[:-1] if len(word) > 3 and word.endswith(_DOUBLED) else word
                break
    return word[:-1] if len(word) > 4 and word.endswith("y") else word  # retry as in retries


_SPELLINGS: dict[str, list[str]] = {}
for _form, _whole in _IRREGULAR.items():
    _SPELLINGS.setdefault(stem(_whole), []).append(_form)


def spellings(stem: str) -> tuple[str, ...]:
    """What every word with a stem begins with: the stem itself, and its irregular forms."""
    return (stem, *_SPELLINGS.get(stem, ()))


#: Small words that reverse a sentence: two texts that differ in them do not say the same.
TURNING_WORDS = frozenset(
    "not no nor never none cannot without before after on off instead than only until unless except over under".split()
)


def turns_round(word: str) -> bool:
    """Whether a word turns the meaning of the others round: `not`, `before`, `off`."""
    return word in TURNING_WORDS or word.endswith("n't")


@cached(2048)
def content_stems(text: str) -> frozenset[str]:
    """The stems of the content words of a text."""
    return frozenset(map(stem, content_words(text)))
