"""What texts are made of and what two of them share: words, stems, dates, sentences, gists; pure.

Other languages than English: pairs of letters stand for words in Chinese, Japanese and Korean, since nothing marks where
one ends. Russian and German: a word is asked for by its beginning, without its ending; of a German compound also by its
parts, which the index has as tails.
"""

from __future__ import annotations

import calendar
import contextlib
import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain
from typing import NamedTuple

from csmd.cache import cached

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
_RUN = re.compile(f"[{_CJK}]+")
#: What the index would take for a part of the run beside it.
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

_RUSSIAN_STOP = frozenset(
    """без более бы был была были было быть вам вас ведь весь вот все всего всех вы где да даже для до его если есть еще
    ещё же за зачем здесь из или им их как какая какие какой какую когда кто куда ли лишь мне может можно мы на над надо нам
    нас наш не него нее нет ни них но ну об однако он она они оно от очень по под после потом потому почему при про раз
    раньше сейчас сколько со так также такой там те тем теперь то тогда того тоже только том тут ты уже хотя чего чей чем через
    что чтобы эта эти это этого этой этом этот""".split()
)
_GERMAN_STOP = frozenset(
    """aber alle als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein dem den denn der des die dies
    diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines er es etwas euch für gegen gibt
    hab habe haben hat hatte hatten hier ich ihm ihn ihr ihre im in ins ist ja jede jeder jedes jetzt kann kein keine können
    man mein mich mir mit muss müssen nach nicht noch nun nur ob oder ohne schon sehr sein seine seit sich sie sind so soll
    sollen über um und uns unser unsere unter viel viele vom von vor wann war waren warum was weil welche welchem welchen
    welcher welches wenn wer werden wie wieder wieviel wir wird wo wurde wurden zu zum zur zwischen dürfen""".split()
)
#: Words of both languages, or of a shell, which tell neither.
_SHARED = frozenset(
    "in an am im so was war man die also hat hab den bin da um es du des dem vom war on ob ja wo".split()
)
_ENGLISH = frozenset(
    "the is are do does did we why how what when where which of to and for with it be not on our".split()
)
# fmt: off
_RUSSIAN_ENDINGS = tuple(sorted(
    """иями ями ами ией иям ием иях ого его ому ему ыми ими ешь ете ите ала яла ила ало ило али или ать ять еть ить ует
    уют ают яют ает яет ующ ах ях ов ев ей ой ий ый ая яя ое ее ые ие ую юю ом ем ам ям ию ия ии ет ит ут ют ат ят ал ил ел
    ть ны на но а я о е ы и у ю ь й""".split(), key=len, reverse=True))
_GERMAN_ENDINGS = tuple(sorted("ungen innen enen ern est sten ten ung en er em es et st te e n s t".split(), key=len, reverse=True))
# fmt: on


def derived(said: str) -> Iterator[str]:
    """What the index has of a text beside its words: pairs of letters, words beside them, the tails of compounds."""
    if not said.isascii():
        for run in _RUN.findall(said):
            yield from pairs(run)
        yield from _BESIDE.findall(said)
    for word in list(dict.fromkeys(_COMPOUND.findall(said)))[:MOST_COMPOUNDS]:
        yield from (word[at:] for at in range(LEAST_PART - 1, len(word) - LEAST_PART + 1))


def pairs(run: str) -> Iterator[str]:
    """Every two letters that stand beside each other; a single letter is itself."""
    return (run[at : at + 2] for at in range(max(1, len(run) - 1)))


def in_pairs(word: str) -> list[str]:
    """A word with Chinese, Japanese or Korean letters as pairs of them and what stands beside; [] for any other word."""
    if word.isascii() or not _RUN.search(word):
        return []
    return [*(pair for run in _RUN.findall(word) for pair in pairs(run)), *_BESIDE.findall(word)]


def asked_pairs(question: str, words: list[str]) -> list[str] | None:
    """The terms for a question in one of these languages in the place of its `words`; None for any other question.

    A term that ends with `*` is the beginning of a word.
    """
    german = _is_german(question)
    if not german and question.isascii():
        return None
    found: dict[str, None] = {}
    for word in words:
        if _CYRILLIC.fullmatch(word):
            if word not in _RUSSIAN_STOP:
                found.update(
                    {word: None, f"{_stem(word.removesuffix('ся').removesuffix('сь'), _RUSSIAN_ENDINGS)}*": None}
                )
        elif german and _LATIN.fullmatch(word):
            if word not in _GERMAN_STOP:
                found.update({word: None, f"{_stem(word, _GERMAN_ENDINGS)}*": None})
                found.update((part, None) for part in _parts(word))
        elif not (german and word in _GERMAN_STOP) and word not in _RUSSIAN_STOP:
            found[word] = None
    return list(found)


def _is_german(question: str) -> bool:
    words = set(re.findall(r"[a-zäöüß]+", question.lower()))
    umlauts = any(letter in "äöüß" for word in words for letter in word)
    return len((words & _GERMAN_STOP) - _SHARED) + umlauts > len(words & _ENGLISH)


def _stem(word: str, endings: tuple[str, ...]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= LEAST_STEM:
            return word[: -len(ending)]
    return word


def _parts(word: str) -> Iterator[str]:
    """What may be the parts of a compound: its beginnings as they are, its ends without their ending."""
    if len(word) < 2 * LEAST_PART:
        return
    for at in range(LEAST_PART, len(word) - LEAST_PART + 1):
        yield word[:at]
        yield f"{_stem(word[at:], _GERMAN_ENDINGS)}*" if len(word) - at > LEAST_PART + 1 else word[at:]


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
#: Who says "by Feb 16" means the next one; what would be later than so many days was one that is past.
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


def indexed(said: str, at: str) -> str:
    """What the full-text index reads of a text that was said `at` a time (ISO, "" for none): it, and what is derived."""
    more = [*_days(at[:10])]
    if _HUMP.search(said):
        more += [" ".join(_CAMEL.findall(name)) for name in dict.fromkeys(_HUMPED.findall(said))]
    more += derived(said)
    return f"{said}\n{' '.join(more)}" if more else said


def asked_terms(question: str) -> list[str]:
    """The distinct terms a question is looked for by: its words, its names whole and in parts, its days; at most 60.

    A term of several words is a phrase. Where it says nothing but stop words, these are what is looked for.
    """
    found: dict[str, None] = {}
    left: list[str] = []
    at = 0
    for named in _DATE.finditer(question):
        days = _asked_days(named)
        if days:
            found.update((day, None) for day in days)
            left.append(question[at : named.start()])
            at = named.end()
    rest = " ".join([*left, question[at:]])
    words = query_terms(rest)
    other = asked_pairs(question, words)
    found.update((term, None) for term in (words if other is None else other))
    found.update((name, None) for name in _whole_names(rest))
    if not found:
        found.update((word, None) for word in words_of(question))
    return list(found)[:MOST_TERMS]


def _days(day: str) -> Iterator[str]:
    """A day as the index has it: whole, without its year, its month with and without the year."""
    if _DAY.fullmatch(day):
        year, month, number = day.split("-")
        yield from (f"d{year}{month}{number}", f"d{month}{number}", f"m{year}{month}", f"m{month}")


def _asked_days(named: re.Match[str]) -> list[str]:
    part = named.groupdict()
    name = part["mn"] or part["dn"] or part["on"]
    month = _MONTHS[name.lower()] if name else int(part["m"])
    number = int(part["d"] or part["md"] or part["dd"] or 0)
    year = part["y"] or part["my"] or part["dy"] or part["oy"] or ""
    if not 1 <= month <= 12 or number > 31:
        return []
    if number:
        return [f"d{year}{month:02}{number:02}", *([f"{name.lower()} {number}"] if name else [])]
    return [f"m{year}{month:02}", *([name.lower()] if name and len(name) > 3 else [])]


def date_terms(said: str, since: str) -> list[tuple[int, int, str]]:
    """The days that a text names which was said on a day: (start, end, ISO day), as they stand in it.

    Of a month its last; without a year the next within half a year.
    """
    found = []
    for one in _DATE.finditer(said):
        part = one.groupdict()
        name, year = part["mn"] or part["dn"] or part["on"], part["y"] or part["my"] or part["dy"] or part["oy"]
        month, number = (
            _MONTHS[name.lower()] if name else int(part["m"]),
            int(part["d"] or part["md"] or part["dd"] or 0),
        )
        with contextlib.suppress(ValueError):  # the 31st of June, or a month that only looks like one
            begun = date.fromisoformat(since)
            years = [int(year)] if year else [begun.year, begun.year + 1]
            days = [date(in_year, month, number or calendar.monthrange(in_year, month)[1]) for in_year in years]
            named = [day for day in days if year or begun <= day <= begun + timedelta(days=HALF_A_YEAR)]
            found += [(one.start(), one.end(), day.isoformat()) for day in named]
    return found


def _whole_names(question: str) -> Iterator[str]:
    """Names of several words as phrases: whole, a path's last part, and CamelCase as its parts."""
    for found in _NAME.finditer(question):
        name = found.group().lower()
        parts = _SEPARATOR.split(name)
        if len(parts) <= MOST_PARTS and sum(len(part) > 1 and part not in STOP_WORDS for part in parts) > 1:
            yield name
            last = re.split(r"[/\\]", name)[-1]
            if last != name and _SEPARATOR.search(last):
                yield last
    for found in _HUMPED.finditer(question):
        yield " ".join(_CAMEL.findall(found.group())).lower()


#: Words that say nothing about a text's subject; dropped from queries and overlaps (facts: retrieval).
STOP_WORDS = frozenset(
    """a an and any are as at be been being but by can could did do does doing done for from get gets got had has
    have having he her here him his how i if in into is it its itself just let like may me might more most must my no
    nor not now of off on once one only or other our ours out over own per please same she should so some such than
    that the their them then there these they this those to too under up upon us use used uses using very via was we
    were what when where which while who whom why will with would yes you your yours also after again all before
    because about above against am between both below during each few further until through ok okay""".split()
)

#: Small words that turn a sentence round: two texts that differ in them do not say the same.
TURNING_WORDS = frozenset(
    "not no nor never none cannot without before after on off instead than only until unless except over under".split()
)
SAME_SHARE = 0.8
#: Texts up to this length are memories, sentences and messages, which are compared again and again.
GIST_KEPT = 600

_WORD = re.compile(r"[^\W_]+(?:[_'][^\W_]+)*", re.UNICODE)
_SPACE = re.compile(r"\s+")
#: A tag of any kind, however its bracket and slash are written.
_TAG = re.compile(r"[<＜﹤]\s{0,9}+[/／∕⁄]?\s{0,9}+\w[\w-]{0,40}+")
_TAG_HEAD = re.compile(r"^<[\s/∕⁄]*+")
#: Tags by which csmd, the assistant or a model tells who speaks, as their names begin.
_SPEAKING = ("csmd", "system", "user", "human", "assistant", "function", "tool", "antml", "task-", "command-", "local-",
             "bash-")  # fmt: skip
#: What a reader does not see, or sees elsewhere than it stands: it could hide a tag or turn a line around.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_FENCE_TAG = re.compile(r"<(/?)csmd-[a-z-]{1,40}+(?:\s[^<>]{0,400}+)?>", re.IGNORECASE)
_CODE_FENCE = re.compile(r"\s{0,12}(`{3,}|~{3,})(.*)", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])([\"')\]]*)\s+(?=[\"'(\[]?[A-Z0-9`À-ÞА-Я\u4e00-\u9fff])|(?<=[。！？])")
#: What breaks a line beside "\n": a return by itself, vertical tab, form feed, separators, next line.
_BREAK = re.compile("\r(?!\n)|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|resp|approx|no|fig|dr|mr|mrs|st)\.|\b[A-Z]\.)$", re.IGNORECASE)


def normalise(text: str) -> str:
    """`text` for comparing: NFKC, case folded, white space squeezed, outer punctuation gone."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SPACE.sub(" ", folded).strip(" \t\n.,;:!?\"'`*_-")


def keyed_hash(text: str, key: bytes) -> str:
    """A hash of the normalised text that nobody without `key` can look up; 32 hex digits."""
    return hmac.new(key, normalise(text).encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]


def words_of(text: str) -> list[str]:
    """Every word of `text`, case folded, in order; identifiers stay whole."""
    if text.isascii():  # its words are the same small, and most texts are
        return _WORD.findall(text.lower())
    return [word.casefold() for word in _WORD.findall(text)]


def content_words(text: str) -> list[str]:
    """The words that say something, in order: numbers, and words that are neither stop words nor single letters."""
    return content_of(words_of(text))


def content_of(every: Iterable[str]) -> list[str]:
    """Those of a text's words that say something."""
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
    found = [folded] if len(folded) > 1 and folded not in STOP_WORDS else []
    parts = [part.casefold() for part in _CAMEL.findall(word)]
    if len(parts) > 1:
        found += [part for part in parts if len(part) > 2 and part not in STOP_WORDS]
    return tuple(found)


_ENDINGS = ("ations", "ation", "ingly", "ings", "ing", "edly", "ies", "es", "ed", "s", "e")


@cached(8192)
def stem(word: str) -> str:
    """A word without its commonest English endings, for comparing; at least three letters stay."""
    if word.endswith(_ENDINGS):
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                return word[: -len(ending)]
    return word


@dataclass(frozen=True, slots=True)
class Gist:
    """What two texts are compared by: the stems of their content words, and the small words that turn a meaning round."""

    stems: frozenset[str]
    turns: tuple[str, ...]


def gist(text: str) -> Gist:
    """What a text is compared by; a short one, like a memory's, is compared with many and kept for the next."""
    return _gist_of_short(text) if len(text) <= GIST_KEPT else _gist(text)


def _gist(text: str) -> Gist:
    turns: list[str] = []
    others: list[str] = []
    for word in words_of(text.replace("\u2019", "'")):
        if not turns_round(word):
            others.append(word)
        else:
            turns.append("not" if word.endswith("n't") or word == "cannot" else word)
    return Gist(frozenset(map(stem, content_of(others))), tuple(sorted(turns)))


_gist_of_short = cached(2048)(_gist)


def turns_round(word: str) -> bool:
    """Whether a word turns the meaning of the others round: `not`, `before`, `off`."""
    return word in TURNING_WORDS or word.endswith("n't")


def alike(one: Gist, other: Gist, *, share: float) -> bool:
    """Whether two texts have at least `share` of their content words in common and nothing turned round."""
    if not one.stems or one.turns != other.turns:
        return False
    return len(one.stems & other.stems) >= share * len(one.stems | other.stems)


def says_the_same(one: str, other: str) -> bool:
    """Whether one text repeats the other: a word more or less, but none in another's place and nothing turned round.

    "Use two spaces" and "use four spaces" share most of their words and do not say the same.
    """
    left, right = gist(one), gist(other)
    replaced = bool(left.stems - right.stems) and bool(right.stems - left.stems)
    return not replaced and alike(left, right, share=SAME_SHARE)


def estimate_tokens(text: str) -> int:
    """An estimate of the tokens of `text`: bytes / 4, never worse than -27 % (facts: dependencies section 5)."""
    return (len(text.encode("utf-8", "replace")) + 3) // 4


def utf16_units(text: str) -> int:
    """The length of `text` as the assistant counts its limit of 10,000 (facts: claude-code section 1.7)."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def amount(number: int, one: str) -> str:
    """So many of something in words: `1 memory`, `2 memories`, `3 days`, `0 new turns`."""
    many = one[:-1] + "ies" if one.endswith("y") and one[-2:-1] not in "aeou" else one + "s"
    return f"{number} {one if number == 1 else many}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def squeeze(text: str) -> str:
    """`text` on one line with single spaces."""
    return " ".join(text.split())


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, cut at a word, with an ellipsis when something is gone."""
    if len(text) <= limit:
        return text
    if limit <= 0:
        return ""
    head = text[: limit - 1]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip() + "…"


def both_ends(text: str, *, limit: int, of: str = "") -> str:
    """`text` in about `limit` bytes of UTF-8: its beginning and end, and how much (`of` what) is left out between."""
    if len(text) <= limit // 4 or len(data := text.encode("utf-8", "replace")) <= limit:
        return text
    head, tail = data[: limit * 3 // 4], data[len(data) - limit // 4 :]
    left_out = len(data) - len(head) - len(tail)
    about = f" of {of}" if of else ""
    mark = f"[csmd: {left_out} bytes left out{about}]"
    return f"{head.decode('utf-8', 'ignore')}\n{mark}\n{tail.decode('utf-8', 'ignore')}"


def with_newlines(text: str) -> str:
    """`text` with "\n" for every other character that breaks a line: as long as before."""
    return _BREAK.sub("\n", text)


def without_code(text: str) -> str:
    """`text` without fenced code blocks; one that is not closed goes to the end.

    A block ends at a fence of its own kind that is at least as long and bare, so that one may hold another.
    """
    if "```" not in text and "~~~" not in text:
        return text
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        found = _CODE_FENCE.match(line)
        mark, rest = found.groups() if found else ("", "")
        if fence:
            if mark.startswith(fence) and not rest.strip():
                fence = ""
        elif mark and not (mark[0] == "`" and "`" in rest):
            fence = mark
        else:
            kept.append(line)
    return "\n".join(kept)


class Row(NamedTuple):
    """A paragraph, heading or item of a list on one line, its marker gone; `item` is how far an item is moved in, -1 for no item."""

    text: str
    item: int


def lines_of_prose(text: str) -> list[str]:
    """The rows of markdown `text` without what they are."""
    return [row.text for row in rows_of_prose(text)]


def rows_of_prose(text: str) -> list[Row]:
    """The paragraphs, list items and headings of markdown `text`, each on one line, markers gone.

    Hard-wrapped lines are joined; code blocks, tables, rules and quotes of code are left out.
    """
    rows: list[list[str]] = []
    items: list[int] = []
    length = 0  # of the last row, which may still grow
    open_row = False
    for line in without_code(text).splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("|", "```", "---", "===", "+--")) or line.startswith("    " * 2):
            open_row = False
            continue
        if stripped.startswith("#"):
            rows.append([stripped.lstrip("#").strip()])
            items.append(-1)
            open_row = False
            continue
        bullet = _BULLET.match(line)
        piece = line[bullet.end() :].strip() if bullet else stripped.lstrip("> ")
        if open_row and not bullet and length > 60 and not rows[-1][-1].endswith((":", ".", "!", "?")):
            rows[-1].append(piece)
            length += 1 + len(piece)
        else:
            rows.append([piece])
            items.append(len(line) - len(line.lstrip()) if bullet else -1)
            length = len(piece)
            open_row = True
    return [Row(row, item) for parts, item in zip(rows, items, strict=True) if (row := " ".join(parts))]


def sentences(line: str) -> list[str]:
    """The sentences of one line of prose; abbreviations and version numbers do not end one."""
    found: list[list[str]] = []
    at = 0
    for end in (*_SENTENCE_END.finditer(line), None):
        part = (line[at:] if end is None else line[at : max(end.start(), end.end(1))]).strip()
        at = end.end() if end else at
        if found and _ABBREVIATION.search(found[-1][-1][-12:]):
            found[-1].append(part)
        elif part:
            found.append([part])
    return [" ".join(parts) for parts in found]


def chunks(text: str, *, limit: int) -> list[tuple[int, int]]:
    """Where `text` is cut into passages of at most `limit` characters: (start, end), covering it in order.

    Cuts fall at a blank line, else a line end, else a sentence end, else a space.
    """
    spans: list[tuple[int, int]] = []
    start, size = 0, len(text)
    while size - start > limit:
        window = text[start : start + limit]
        at = -1
        for mark in ("\n\n", "\n", ". ", " "):
            at = window.rfind(mark)
            if at > limit // 3:
                at += len(mark)
                break
        end = start + (at if at > limit // 3 else limit)
        spans.append((start, end))
        start = end
    if text[start:].strip() or not spans:
        spans.append((start, size))
    return spans


def passage(text: str, terms: list[str], *, limit: int) -> str:
    """The part of `text` of at most `limit` characters that holds most of `terms`; `word*` is the beginning of one."""
    if len(text) <= limit:
        return text
    folded = text.casefold()
    if len(folded) != len(text):  # some letters fold to two: offsets must stay the text's own
        folded = "".join(one if len(one := char.casefold()) == 1 else char for char in text)
    lead = min(80, limit // 3)
    spots = sorted({match for term in terms for match in _spots(folded, term.removesuffix("*"))})
    if not spots:
        return cut(text, limit)
    best, best_count, left = 0, 0, 0
    for right, spot in enumerate(spots):
        while spot - spots[left] > max(0, limit - 120):
            left += 1
        if right - left + 1 > best_count:
            best, best_count = left, right - left + 1
    start = max(0, spots[best] - lead)
    if start:
        space = text.find(" ", start, start + lead // 2)
        start = space + 1 if space >= 0 else start
        return "…" + cut(text[start:].lstrip(), limit - 1)
    return cut(text, limit)


def _spots(folded: str, term: str) -> list[int]:
    found: list[int] = []
    at = folded.find(term)
    while at >= 0 and len(found) < 20:
        found.append(at)
        at = folded.find(term, at + len(term))
    return found


def visible(text: str) -> str:
    """`text` without what a reader does not see: control characters that steer a terminal, marks that turn a line around."""
    return _UNSEEN.sub("", text)


def defuse(text: str) -> str:
    """`text` as it may stand inside csmd's fence: no tag that csmd or its host would take for its own, nothing unseen."""
    return _TAG.sub(_defused, visible(text))


def _defused(tag: re.Match[str]) -> str:
    name = _TAG_HEAD.sub("", unicodedata.normalize("NFKC", tag.group())).casefold()
    return "‹" + tag.group()[1:] if name.startswith(_SPEAKING) else tag.group()


def strip_fenced(text: str) -> str:
    """`text` without what csmd itself has injected: memories must not feed on themselves."""
    if "csmd-" not in text.lower():
        return text
    kept: list[str] = []
    at, opened = 0, -1
    for tag in _FENCE_TAG.finditer(text):
        if not tag.group(1):
            opened = tag.start() if opened < 0 else opened
        elif opened >= 0:
            kept.append(text[at:opened])
            at, opened = tag.end(), -1
    return "".join(kept) + text[at:]


def without_spans(text: str, opening: str, closing: str) -> str:
    """`text` without what stands from each `opening` to the next `closing`, both included; unclosed stays."""
    kept: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(closing)
    return "".join(kept) + text[at:]


_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")


def version_of(said: str) -> tuple[int, int, int] | None:
    """The numbers of a version `1.2.3`, to be compared; None for anything else."""
    found = _VERSION.fullmatch(said)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))
