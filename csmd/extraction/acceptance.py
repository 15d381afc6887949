"""The decision that a short answer makes of the message before it: an option that it picks, or a proposal; pure.

"2", "the second" and "yes, do that" say nothing by themselves; together with the option or the proposal they are a
decision of the user's. An offer to do something at once ("shall I run the tests?") is not a proposal, and an answer that
refuses decides nothing.
"""

from __future__ import annotations

import re

from csmd import data
from csmd.text import prose
from csmd.text.display import cut, squeeze
from csmd.text.language import language_of
from csmd.text.sentence import DIALOGUE, has, parse
from csmd.text.sentence_words import UNSPACED
from csmd.text.tokens import STOP_WORDS, content_words, turns_round

#: An answer of more words says by itself what it wants.
MAX_WORDS = 9
#: Most characters of an option or a proposal.
MAX_CHARACTERS = 300
#: Most characters of the question before it.
QUESTION_CHARACTERS = 160
#: Fewest content words of a proposal that is clear without its context.
LEAST = 3
_WORDS = data.word_table("sentence_words.txt")
_ORDINALS = {word: int(name[-1]) for name, words in _WORDS.items() if name.startswith("ordinal.") for word in words}
#: Words of an answer that name no option: of taking and assent, of dialogue, and those before what a sentence says.
_EMPTY = _WORDS["takes"] | _WORDS["interjection"] | _WORDS["connective"] | _WORDS["adverb"] | DIALOGUE
#: An option of a list, at the start of a line or in a row of them, by its number or letter.
_OPTION = re.compile(
    r"(?:^|(?<=[\s*(]))(?:\*\*)?(?:[^\W\d_]+ ?)??(\d|[a-eA-E])(?:\*{0,2} ?[.):：、]\*{0,2}|\*{0,2}\s+[–—-])\s*(?=\S)",
    re.MULTILINE,
)
#: Two ways in one or two sentences: "either A, or B", "A. Or we could B".
_EITHER = re.compile(r"[,.;?]\s+[Oo]r\s+")
_REFUSING = frozenset("no nope nah nein non нет não nee".split())
#: How what follows an answer takes it back.
_TAKEN_BACK = frozenset((word,) for word in "but wait actually no not instead hmm don't".split())
_NODS = frozenset("👍👌✅🆗✔")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*|\d️⃣")


def accepted(answer: str, before: str) -> str:
    """The decision that an answer makes of the message `before` it: "question -> option" or "proposal -> answer"; ""
    for none."""
    opening = re.split(r"[.!;\n。！]", answer.strip(), maxsplit=1)[0]
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(opening)]
    if not words and not _NODS.isdisjoint(opening):
        words = ["yes"]
    if not words or len(words) > MAX_WORDS or parse(opening).kind == "asks":
        return ""
    rest = parse(answer.strip()[len(opening) :].lstrip(".!;。！ \n"))
    if rest.refutes or rest.words[:1] in _TAKEN_BACK:
        return ""
    refuses = parse(opening).refutes or any(turns_round(word) or word in _REFUSING for word in words)
    options = _options_of(before)
    if len(options) > 1 and (picked := _picked(opening, words, options, by_name=not refuses)):
        question = _question(before)
        names_options = any(option.rstrip("?. ") in question for option in options)
        return f"{question} -> {picked}" if question and not names_options else picked
    if (
        refuses
        or not _assents(opening, words)
        or not (all(word in _EMPTY for word in words) or _is_of_assent_alone(opening))
    ):
        return ""
    proposal = _proposal_of(before)
    return f"{proposal} -> {squeeze(opening)}" if proposal else ""


def _assents(opening: str, words: list[str]) -> bool:
    """Whether one of the words of an answer assents, and none doubts it."""
    has_assent = any(word in _WORDS["assent"] for word in words) or any(
        word in opening for word in _WORDS["assent"] if not word.isascii()
    )
    return has_assent and "maybe" not in words and "👎" not in opening


def _is_of_assent_alone(opening: str) -> bool:
    """Whether nothing is left of an answer in a script without spaces when its words of assent are taken out."""
    if opening.isascii():
        return False
    for word in sorted((word for word in _EMPTY if not word.isascii()), key=len, reverse=True):
        opening = opening.replace(word, "")
    return not any(map(str.isalnum, opening))


def _options_of(message: str) -> list[str]:
    """The options that a message counts off from 1 or a, in order; [] for fewer than two."""
    marks = list(_OPTION.finditer(message))
    counted: list[re.Match[str]] = []
    for mark in marks:
        number = _ORDINALS.get(mark[1].lower(), 0)
        if number == 1:
            counted = [mark]
        elif counted and number == len(counted) + 1:
            counted.append(mark)
    if len(counted) < 2:
        return _alternatives(message)
    ends = [*(mark.start() for mark in counted[1:]), len(message)]
    return [_first_sentence(message[mark.end() : end]) for mark, end in zip(counted, ends, strict=True)]


def _alternatives(message: str) -> list[str]:
    """The two ways that the end of a message puts side by side; [] for none."""
    end = message.strip().rpartition("\n")[2]
    cuts = list(_EITHER.finditer(end))
    if len(cuts) != 1:
        return []
    before, after = end[: cuts[0].start()], end[cuts[0].end() :]
    sentences = prose.split_sentences(before)
    return [cut(squeeze(sentences[-1]), MAX_CHARACTERS), _first_sentence(after)] if sentences and after.strip() else []


def _proposal_of(message: str) -> str:
    """The last sentence of a message that proposes something which lasts; "" for none."""
    sentences = [sentence.text for sentence in prose.outline(message)]
    for sentence in reversed(sentences):
        is_proposal = has("proposes", language_of(sentence), sentence) and _says_something(sentence)
        if is_proposal and not _is_offer(sentence):
            return cut(squeeze(sentence), MAX_CHARACTERS)
    return ""


def _is_offer(sentence: str) -> bool:
    """Whether a sentence offers to do something at once: a question with an order of the day in it and no choice."""
    if parse(sentence).lasting:
        return False
    behind = re.split(r"(?i)\b(?:shall|should) (?:i|we)|\bme to\b", sentence, maxsplit=1)
    return len(behind) > 1 and parse(behind[1].strip(" ?")).kind == "orders"


def _picked(opening: str, words: list[str], options: list[str], *, by_name: bool) -> str:
    """The option that an answer picks by its number, or by a name that one option alone has; "" for none."""
    numbers = {_ORDINALS[word] for word in words if word in _ORDINALS and (word != "a" or len(words) < 3)}
    numbers |= {
        number for word, number in _ORDINALS.items() if not word.isascii() and len(word) > 2 and word in opening
    }
    if words[-2:] in (["one", "second"], ["a", "second"], ["one", "sec"]):
        return ""
    if len(options) == 2:
        numbers |= {1} if "former" in words else {2} if "latter" in words else set()
    others = [
        word
        for word in words
        if word not in _ORDINALS
        and word not in _EMPTY
        and word.isascii()
        and word not in ("former", "latter", "option", "rather")
    ]
    if len(numbers) == 1 and not others:
        number = numbers.pop()
        return options[number - 1] if number <= len(options) else ""
    names = [word for word in words if word not in _EMPTY and word not in STOP_WORDS and len(word) > 2]
    if not by_name or not names:
        return ""
    matching = [option for option in options if all(_names(name, option) for name in names)]
    return matching[0] if len(matching) == 1 and not numbers else ""


def _names(name: str, option: str) -> bool:
    """Whether an option has a word that a name is, or begins with."""
    return any(word.startswith(name) for word in _WORD.findall(option.casefold()))


def _question(message: str) -> str:
    """What a message asks about its options, or how it leads into them; "" for nothing."""
    sentences = [sentence.text for sentence in prose.outline(message)]
    questions = [sentence for sentence in sentences if parse(sentence).kind == "asks"]
    first = next(_OPTION.finditer(message), None)
    leads = prose.split_sentences(squeeze(message[: first.start()])) if first else []
    question = next((text for text in [*reversed(questions), *reversed(leads)] if _says_something(text)), "")
    return cut(squeeze(question), QUESTION_CHARACTERS).rstrip(":. ")


def _says_something(text: str) -> bool:
    """Whether a text is clear on its own: three content words, or as much in a script without spaces."""
    is_unspaced = language_of(text) in UNSPACED and len(text) >= 2 * LEAST
    return is_unspaced or len(content_words(text)) >= LEAST


def _first_sentence(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    sentences = prose.split_sentences(line.replace("**", ""))
    return cut(squeeze(sentences[0]).rstrip("., "), MAX_CHARACTERS) if sentences else ""
