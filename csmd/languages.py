"""What other languages than English need to be found by their words; pure, and nothing happens to an English text.

Chinese, Japanese and Korean: pairs of letters stand for words, since nothing marks where one ends. Russian and German: a
word is asked for by its beginning, without its ending; of a German compound also by its parts, which the index has as
tails. No dictionary: what a stem changes inside (ветка, веток) is not found this way, an embedding model may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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


def asked(question: str, words: list[str]) -> list[str] | None:
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
