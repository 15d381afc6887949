"""The decision that a short answer makes of the message before it: an option that it picks, or a proposal; pure.

"2", "the second", "the cookies then" and "yes, do that" say nothing by themselves; together with what was asked or
proposed they are a decision of the user's. An offer to do something at once ("shall I run the tests?") is not a
proposal, and an answer that refuses decides nothing. What was asked is a run of the message's own words, by which a
purge of the message finds the decision.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from csmd import data
from csmd.text import prose
from csmd.text.display import ARROW, cut, squeeze
from csmd.text.language import language_of
from csmd.text.sentence import DIALOGUE, ends_with_question, has, is_about_errand, opens, parse
from csmd.text.sentence_words import UNSPACED, is_verb
from csmd.text.tokens import STOP_WORDS, content_words

#: A longer clause says by itself what it wants.
MAX_WORDS = 9
#: Most words of a value that nobody proposed; most names of a thing that a message weighed against another.
MAX_VALUE, MAX_NAMED = 5, 2
#: Most characters of an option, a proposal or an answer in the user's words.
MAX_CHARACTERS = 300
#: Most characters of the question before it.
QUESTION_CHARACTERS = 240
#: Fewest content words of a proposal that is clear without its context.
LEAST = 3
#: Fewest content words of a question that tells what it is about.
LEAST_ASKED = 2
#: The sentences at the end of a message among which it puts alternatives or asks, and in which it weighs things.
CLOSING, WEIGHED = 3, 2
_WORDS = data.word_table("sentence_words.txt")
_ORDINALS = {word: int(name[-1]) for name, words in _WORDS.items() if name.startswith("ordinal.") for word in words}
_PLACES = {**_ORDINALS, "former": 1, "latter": 2, "last": 0}
#: Words of an answer that name no option: of taking and assent, of dialogue, and those before what a sentence says.
_EMPTY = _WORDS["takes"] | _WORDS["interjection"] | _WORDS["connective"] | _WORDS["adverb"] | DIALOGUE
#: Words of an answer that leaves things as they are.
_KEEPING = _WORDS["keeping"]
#: An option of a list, at the start of a line or in a row of them, by its number, letter or bullet.
_OPTION = re.compile(
    r"(?:^|(?<=[\s*(]))(?:\*\*)?(?:[^\W\d_]+ ?)??(\d|(?<![^\W\d_])[a-eA-E])(?:\*{0,2} ?[.):：、]\*{0,2}|\*{0,2}\s+[–—-])\s*(?=\S)",
    re.MULTILINE,
)
_BULLET = re.compile(r"^[ \t]{0,3}[-*•]\s+(?=\S)", re.MULTILINE)
#: Between alternatives of a sentence: "either A, or B", "A. Or we could B"; and what comes before the first.
_OR = re.compile(r"[,.;?]?\s+(?:or|oder)\s+", re.IGNORECASE)
_LEAD = re.compile(r"^.*(?::|\beither\b)\s+", re.IGNORECASE)
_CLAUSE = re.compile(r"[,:]\s|\s[-–—(]")
_REFUSING = frozenset("no nope nah not never none neither nor cannot without except nein nicht non нет não nee".split())
#: How what follows an answer takes it back.
_TAKEN_BACK = frozenset((word,) for word in "but wait actually no not instead hmm don't".split())
_NODS = frozenset("👍👌✅🆗✔")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*|\d️⃣")


class _Choice(NamedTuple):
    """What a message asks to choose among: its words for it, and the options in order; either may be missing.

    `is_asked`: the user is asked to choose, and not only shown a list. `is_weighed`: the message only weighs one thing
    against another, and an answer may name one of them.
    """

    question: str
    options: list[str]
    is_asked: bool = True
    is_weighed: bool = False

    def answered(self, answer: str) -> str:
        """The question with its answer."""
        mark = "?" if self.is_asked else ""
        return f"{self.question}{mark}{ARROW}{answer}" if self.question else answer


def accepted(answer: str, before: str) -> str:
    """The decision that an answer makes of the message `before` it: "question? -> option" or "proposal -> answer"; ""
    for none."""
    opening = re.split(r"[.!;\n。！]", answer.strip(), maxsplit=1)[0]
    words = _words_of(opening)
    if not words and not _NODS.isdisjoint(opening):
        words = ["yes"]
    if not words or parse(opening).kind == "asks":
        return ""
    rest = parse(answer.strip()[len(opening) :].lstrip(".!;。！ \n"))
    if rest.refutes or rest.words[:1] in _TAKEN_BACK:
        return ""
    refuses = parse(opening).refutes or any(word in _REFUSING or word.endswith("n't") for word in words)
    choice = _choice_in(before)
    if picked := _picked(opening, choice, refuses=refuses):
        return choice.answered(picked)
    if refuses or len(words) > MAX_WORDS or not _assents(opening, words):
        return ""
    if not (all(word in _EMPTY for word in words) or _is_of_assent_alone(opening)):
        return ""
    proposal = _proposal_of(before)
    if (
        not choice.is_weighed
        and choice.question
        and (proposed := _matching(choice.options, content_words(proposal), least=1))
    ):
        return choice.answered(proposed)
    return f"{proposal}{ARROW}{squeeze(opening)}" if proposal else ""


def _words_of(text: str) -> list[str]:
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text)]


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


# --- what a message asks


def _choice_in(message: str) -> _Choice:
    """The options that a message lists, else the alternatives or the wish that its end asks for."""
    sentences = [sentence.text for sentence in prose.outline(message)]
    closing_questions = [text for text in sentences[-CLOSING:] if ends_with_question(text)]
    marks = _counted(message)
    if len(marks) < 2 and closing_questions:
        marks = list(_BULLET.finditer(message))
    if len(marks) > 1:
        ends = [*(mark.start() for mark in marks[1:]), len(message)]
        options = [_first_sentence(message[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
        if any(map(ends_with_question, options)):
            return _Choice("", [])
        leads = [sentence.text for sentence in prose.outline(message[: marks[0].start()])][-CLOSING:]
        leading = list(filter(ends_with_question, leads))
        asking = [text for text in closing_questions if _asks_wish(text) and text not in leading]
        announcing = [text for text in leads if has("options", language_of(text), text)]
        row = message[: marks[-1].end()].rpartition("\n")[2] + options[-1]
        inline = [row] if announcing and row.count(options[0]) else []
        ranked = (text for texts in (leading, asking, announcing, inline, leads) for text in reversed(texts))
        question = next((text for text in ranked if _says_something(text, besides=_WORDS["options.en"])), "")
        return _Choice(
            _as_question(question), options, is_asked=bool(asking) or question in leading + announcing + inline
        )
    for at in range(len(sentences) - 1, max(-1, len(sentences) - 1 - CLOSING), -1):
        text = sentences[at]
        options = _alternatives(text) if ends_with_question(text) or has("may_choose", "en", text) else []
        if options or (text in closing_questions and _asks_wish(text)):
            context = f"{sentences[at - 1]} {text}" if at and len(content_words(text)) < LEAST_ASKED else text
            is_run = " ".join(_words_of(context)) in " ".join(_words_of(message))
            return _Choice(_as_question(context if is_run else text), options)
    closing = message.strip().rpartition("\n")[2]
    weighed = prose.split_sentences(closing)[-WEIGHED:]
    is_weighed = any(has("contrast", language_of(text), text) for text in weighed)
    is_weighed = is_weighed and len(" ".join(weighed)) <= QUESTION_CHARACTERS
    return _Choice(_as_question(" ".join(weighed)), weighed, is_weighed=True) if is_weighed else _Choice("", [])


def _asks_wish(text: str) -> bool:
    """Whether a question asks for a wish or a plan, and not whether to do something."""
    read = parse(text, "assistant")
    asks = read.opens_with_question or not {"which", "what", "how", "where", "when", "who"}.isdisjoint(read.words)
    return asks and has("wanted", read.language, text) and not is_about_errand(read)


def _as_question(text: str) -> str:
    return cut(squeeze(text.replace("**", "")), QUESTION_CHARACTERS).rstrip(":.?？ ")


def _counted(message: str) -> list[re.Match[str]]:
    """The marks of the options that a message counts off from 1 or a, in order."""
    runs: list[list[re.Match[str]]] = [[]]
    for mark in _OPTION.finditer(message):
        number = _ORDINALS.get(mark[1].lower(), 0)
        if number == 1:
            runs.append([mark])
        elif runs[-1] and number == len(runs[-1]) + 1:
            runs[-1].append(mark)
    return next((run for run in reversed(runs) if len(run) > 1), [])


def _alternatives(text: str) -> list[str]:
    """What a sentence puts side by side: "a, b or c", "either a, or b"; [] for nothing."""
    cuts = list(_OR.finditer(text))
    if not cuts:
        return []
    before, after = text[: cuts[-1].start()], text[cuts[-1].end() :]
    lead = _LEAD.match(before)
    parts = before[lead.end() :].split(", ") if lead else [before]
    return [cut(squeeze(part).rstrip("?？., "), MAX_CHARACTERS) for part in (*parts, after)]


# --- what an answer picks


def _picked(opening: str, choice: _Choice, *, refuses: bool) -> str:
    """The option that an answer picks by its number, or by a name that one option alone has, or the answer itself where
    it says what is asked; "" for nothing."""
    clause = next((part for part in _CLAUSE.split(opening) if set(_words_of(part)) - (_EMPTY - _PLACES.keys())), "")
    words = _words_of(clause)
    if not words or len(words) > MAX_WORDS or words[-2:] in (["one", "second"], ["a", "second"], ["one", "sec"]):
        return ""
    if not choice.is_weighed and (number := _number_in(clause, words, len(choice.options))):
        return choice.options[number - 1]
    names = [word for word in words if word not in _EMPTY and word not in STOP_WORDS]
    if refuses or not choice.question:
        return ""
    own = cut(squeeze(opening), MAX_CHARACTERS)
    if choice.is_weighed:
        is_named = 0 < len(names) <= MAX_NAMED >= len(words) - MAX_NAMED and set(names) <= set(
            _words_of(choice.question)
        )
        return own if is_named and parse(clause).kind == "states" and not is_verb(words) else ""
    if option := _matching(choice.options, names, least=len(names)):
        return own if option in choice.question else option
    keeps = not _KEEPING.isdisjoint(words) and all(word in _KEEPING | _EMPTY | STOP_WORDS for word in words)
    is_option = "which" in _words_of(choice.question) and not _PLACES.keys().isdisjoint(words)
    is_value = not (choice.options or is_option) and parse(clause).kind == "states" and len(words) <= MAX_VALUE
    is_value = is_value and not (opens("first_person", "en", clause) or has("doubt", "en", clause))
    return own if (keeps and choice.is_asked) or is_value else ""


def _number_in(clause: str, words: list[str], among: int) -> int:
    """Which of several options a clause names by its place; 0 for none."""
    places = {**_PLACES, "last": among}
    numbers = {places[word] for word in words if word in places and (word != "a" or len(words) < 3)}
    numbers |= {number for word, number in _ORDINALS.items() if not word.isascii() and len(word) > 2 and word in clause}
    others = [
        word for word in words if word not in places and word not in _EMPTY | {"option", "rather"} and word.isascii()
    ]
    number = numbers.pop() if len(numbers) == 1 and not others else 0
    return number if number <= among and not (among > 2 and words[-1] in ("former", "latter")) else 0


def _matching(options: list[str], names: list[str], *, least: int) -> str:
    """The only option with words that at least `least` of some names are, or begin with; "" for none."""
    matching = [
        option
        for option in options
        if sum(any(word.startswith(name) for word in _words_of(option)) for name in names) >= least > 0
    ]
    return matching[0] if len(matching) == 1 else ""


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


def _says_something(text: str, *, besides: frozenset[str] = frozenset()) -> bool:
    """Whether a text is clear on its own: three content words, or as much in a script without spaces."""
    is_unspaced = language_of(text) in UNSPACED and len(text) >= 2 * LEAST
    return is_unspaced or sum(word not in besides for word in content_words(text)) >= LEAST


def _first_sentence(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    sentences = prose.split_sentences(line.replace("**", ""))
    return cut(squeeze(sentences[0]).rstrip("., "), MAX_CHARACTERS) if sentences else ""
