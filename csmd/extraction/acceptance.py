"""The decision that a short answer makes of the message before it: an option that it picks, or a proposal; pure.

"2", "the second", "the cookies then" and "yes, do that" say nothing by themselves; together with the question or the
proposal they are a decision of the user's. An offer to do something at once ("shall I run the tests?") is not a
proposal, and a refusal decides nothing. The question is a run of the message's own words, by which a purge of the
message finds the decision.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from csmd import data
from csmd.text import prose
from csmd.text.clauses import COPULA
from csmd.text.corrections import find_corrected, find_values
from csmd.text.decisions import proposes_state
from csmd.text.display import ARROW, cut, squeeze
from csmd.text.language import language_of
from csmd.text.sentence import (
    DIALOGUE,
    Sentence,
    Speaker,
    ends_with_question,
    has,
    opens,
    parse,
    refers_back,
    without_opening,
)
from csmd.text.sentence_words import UNSPACED, split_words
from csmd.text.tokens import STOP_WORDS, content_words
from csmd.text.trimming import is_about_errand

#: Most words of an answer; a longer clause says by itself what it wants.
MAX_ANSWER_WORDS = 9
#: Most words that an answer adds to the option that it picks, or names instead of all.
MAX_AMENDMENT_WORDS = 16
#: Most words of an answer with a value that nobody proposed.
MAX_VALUE_WORDS = 5
#: Most words of an answer with a number: the number and its unit.
MAX_NUMBER_WORDS = 4
#: Most characters of an option, a proposal or an answer in the user's words.
MAX_CHARACTERS = 300
#: Most characters of the question before it.
MAX_QUESTION_CHARACTERS = 240
#: Fewest content words of a proposal or a question that is clear without its context.
MIN_CLEAR_WORDS = 3
#: Fewest content words of a question that is not quoted with the sentence before it.
MIN_QUESTION_WORDS = 2
#: Most words of the name of an alternative, and of the beginning of a clause in which it is named.
MAX_NAME_WORDS = 2
MAX_SUBJECT_WORDS = 5
#: Sentences at the end of a message that may ask.
CLOSING_SENTENCES = 3
_WORDS = data.word_table("sentence_words.txt")
_ORDINALS = {word: int(name[-1]) for name, words in _WORDS.items() if name.startswith("ordinal.") for word in words}
#: Words for the position of an option; 0 is the last.
_POSITIONS = {**_ORDINALS, "former": 1, "latter": 2, "last": 0}
#: Words of an answer that name no option: of accepting, of dialogue, and those of a lead-in.
_EMPTY = _WORDS["takes"] | _WORDS["interjection"] | _WORDS["connective"] | _WORDS["adverb"] | DIALOGUE
_UNSPACED_EMPTY = sorted((word for word in _EMPTY if not word.isascii()), key=len, reverse=True)
#: Words of an answer that leaves things as they are.
_KEEPING = _WORDS["keeping"]
#: An option of a list, at the start of a line or in a row of them, by its number or letter.
_OPTION = re.compile(
    r"(?:^|(?<=[\s*(]))(?:\*\*)?(?:[^\W\d_]+ ?)??(\d|(?<![^\W\d_])[a-eA-E])"
    r"(?:\*{0,2} ?[.):：、]\*{0,2}|\*{0,2}\s+[–—-])\s*(?=\S)",
    re.MULTILINE,
)
_BULLET = re.compile(r"^[ \t]{0,3}[-*•]\s+(?=\S)", re.MULTILINE)
#: What counts a question before a colon: "Question 2 of 4:", "One last question before I start:".
_QUESTION_LEAD = re.compile(r"^[^:?]{0,80}\b(?:question|frage)\b[^:?]{0,60}:\s+(?=\S)", re.IGNORECASE)
#: Between alternatives of a sentence: "either A, or B", "A. Or we could B".
_OR = re.compile(r"[,.;?]?\s+(?:or|oder)\s+", re.IGNORECASE)
#: Behind the last alternative, where its unit looks like an abbreviation: "20 s. Which".
_NEXT_SENTENCE = re.compile(r"\.\s+(?=[^\W\d_a-z])")
#: Before the first alternative.
_LEAD = re.compile(r"^.*(?::|\beither\b)\s+", re.IGNORECASE)
#: The end of an answer's first sentence; the point of a number or a name is none.
_OPENING_END = re.compile(r"[!;\n。！]|\.(?=\s|$)")
#: Between alternatives that a sentence weighs.
_STATED_END = re.compile(r"[;:]\s")
_CLAUSE_END = re.compile(r"[,:]\s|\s[-–—(]")
#: Between a pick and what is added to it.
_AMENDMENT_START = re.compile(r"(?:,|\s[-–—(])\s*(\S)|\s((?:with|without|but|plus|except)\b)", re.IGNORECASE)
_PRONOUNS = frozenset("it them they that those these".split())
_REFUSING_ALL = frozenset("neither none no of them these those nope".split())
_REFUSING = frozenset("no nope nah not never none neither nor cannot without except nein nicht non нет não nee".split())
_UNSPACED_REFUSING = ("不", "别", "別", "だめ", "ダメ", "아니", "말고")
#: First words of a sentence that takes back the answer before it.
_RETRACTING = frozenset("but wait actually no not instead hmm don't".split())
#: Last words of an answer that asks for a moment.
_PAUSING = (["one", "second"], ["a", "second"], ["one", "sec"])
_NODS = frozenset("👍👌✅🆗✔")
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*|\d️⃣")


class _Choice(NamedTuple):
    """The question that a message asks, "" for none, and its options in order; either may be missing.

    `is_asked`: the user is asked to choose, not only shown a list. `asks`: the question is one in form, and not the lead-in
    of the list.
    """

    question: str
    options: Sequence[str]
    is_asked: bool = True
    asks: bool = True

    def answer_with(self, answer: str) -> str:
        mark = "?" if self.asks else ":" if self.is_asked else ""
        return f"{self.question}{mark}{ARROW}{answer}" if self.question else answer


_NO_CHOICE = _Choice("", ())


class Decision(NamedTuple):
    """The decision that an answer makes, "" for none, and the rest of the answer, which it does not hold."""

    text: str
    rest: str


def split_answer(answer: str, before: str) -> Decision:
    """Splits an answer to the message `before` it into the decision that it makes and the rest.

    The decision reads "question? -> option" or "proposal -> answer".
    """
    opening, after = _split_opening(answer)
    nothing = Decision("", answer)
    words = _split_words(opening)
    if not words and not _NODS.isdisjoint(opening):
        words = ["yes"]
    read = parse(opening)
    if not words or read.kind == "asks":
        return nothing
    rest = parse(after)
    if rest.refutes or not _RETRACTING.isdisjoint(rest.words[:1]) or opens("corrects", "en", rest.text):
        return nothing
    refuses = read.refutes or any(word in _REFUSING or word.endswith("n't") for word in words)
    if offer := _find_refused_offer(opening, before):
        return Decision(f"{offer}{ARROW}{squeeze(opening)}", after)
    choice = _find_choice(before)
    picked, amendment = _split_amendment(opening)
    if picked != opening and _objects(opening[len(picked) :]):
        return nothing
    if amendment and (option := _pick_option(picked, choice, refuses=False)):
        return Decision(choice.answer_with(f"{option}, {amendment}"), after)
    if own := _replace_options(opening, choice):
        return Decision(choice.answer_with(own), after)
    if option := _pick_option(opening, choice, refuses=refuses):
        is_held = len(words) == 1 or option == squeeze(opening)
        return Decision(choice.answer_with(option), after if is_held else answer)
    if (correction := corrected(answer, before, "assistant")).text:
        return correction
    if not refuses and (stated := _find_named_alternative(opening, before)):
        return Decision(f"{stated}{ARROW}{cut(squeeze(opening), MAX_CHARACTERS)}", after)
    if refuses or len(words) > MAX_ANSWER_WORDS or not _only_assents(opening, words):
        return nothing
    proposal = _find_proposal(before)
    options = choice.options if choice.question else ()
    if option := _match_option(options, content_words(proposal), least=1):
        return Decision(choice.answer_with(option), answer)
    return Decision(f"{proposal}{ARROW}{squeeze(opening)}", after) if proposal else nothing


def _split_opening(answer: str) -> tuple[str, str]:
    """Splits an answer after its first sentence."""
    whole = answer.strip()
    opening = _OPENING_END.split(whole, maxsplit=1)[0]
    return opening, whole[len(opening) :].lstrip(".!;。！ \n")


def corrected(answer: str, before: str, speaker: Speaker, *, since: str = "") -> Decision:
    """Decides "sentence -> answer" if an answer corrects the value in a sentence of an earlier message: "no, Thursday".

    "" if it does not, or if `since`, a message in between, has such a value too. What an assistant does or did with a
    value is no statement.
    """
    opening, after = _split_opening(answer)
    if not {value.kind for value in find_values(since)}.isdisjoint(value.kind for value in find_values(opening)):
        return Decision("", answer)
    sentences = [sentence.text for sentence in prose.outline(before) if not parse(sentence.text).opens_with_question]
    text = find_corrected(sentences, opening)
    read = parse(text, speaker)
    is_own = speaker == "assistant" and (read.words[:1] == ("i",) or _is_offer(text))
    is_own = is_own or read.kind in ("narrates", "reports")
    if not text or is_own or refers_back(read) or len(content_words(text)) < MIN_QUESTION_WORDS:
        return Decision("", answer)
    return Decision(f"{cut(squeeze(text), MAX_CHARACTERS).rstrip('. ')}{ARROW}{squeeze(opening)}", after)


def _split_words(text: str) -> list[str]:
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text)]


def _only_assents(opening: str, words: list[str]) -> bool:
    """Whether an answer assents without a doubt, and says nothing else."""
    assent = _WORDS["assent"]
    assents = not assent.isdisjoint(words) or any(word in opening for word in assent if not word.isascii())
    if not assents or "maybe" in words or "👎" in opening:
        return False
    if _EMPTY.issuperset(words):
        return True
    remainder = opening
    for word in _UNSPACED_EMPTY:
        remainder = remainder.replace(word, "")
    return not opening.isascii() and not any(map(str.isalnum, remainder))


# --- what an answer adds to its pick


def _split_amendment(opening: str) -> tuple[str, str]:
    """Splits an answer into a bare position and what it adds to that option: "2, but only for a week".

    Without a bare position the first is the whole answer; the second is "" if nothing is added.
    """
    end = _AMENDMENT_START.search(opening)
    if end is None:
        return opening, ""
    picked, amendment = opening[: end.start()], opening[end.end() - len(end[1] or end[2]) :].strip(" ,.")
    words = [word for word in _split_words(picked) if word not in _EMPTY - _POSITIONS.keys()]
    is_bare = bool(words) and set(words) <= _POSITIONS.keys() | {"option", "rather"}
    if not is_bare:
        return opening, ""
    return picked, amendment if _adds(amendment) else ""


def _objects(comment: str) -> bool:
    """Whether words after a pick say what is wrong with it, or ask why it is offered: "2 - too expensive"."""
    words = _split_words(comment)
    return not {"too", "why", "wrong"}.isdisjoint(words) or any(
        has(name, "en", comment) for name in ("doubt", "trouble")
    )


def _adds(amendment: str) -> bool:
    """Whether words after a pick add to it, and neither take it back nor order, ask or doubt something."""
    words = _split_words(amendment)
    bare = words[1:] if words[:1] in (["but"], ["and"], ["only"]) else words
    if not 2 <= len(words) <= MAX_AMENDMENT_WORDS or bare[0] in _RETRACTING | _REFUSING:
        return False
    if "_".join(words) in _WORDS["interjection"]:
        return False
    read = parse(" ".join(bare))
    names_option = not _POSITIONS.keys().isdisjoint(set(words) - {"a", "b", "c"}) or "one" in bare[:2]
    is_doubtful = any(has(name, "en", amendment) for name in ("doubt", "hedge"))
    is_passing = _is_step(read) or read.is_of_moment
    return not (is_passing or names_option or is_doubtful) and read.kind in ("states", "orders")


def _is_step(read: Sentence) -> bool:
    """Whether an order is one step of the work, and lays nothing down."""
    return read.kind == "orders" and not (read.lasting or read.settles or read.words[0] in _WORDS["habit.en"])


def _replace_options(opening: str, choice: _Choice) -> str:
    """Returns an answer that refuses all options and says what is to be instead: "neither, use a table"; "" for none."""
    refusal, comma, instead = opening.partition(",")
    if not choice.question or not comma or not _REFUSING_ALL.issuperset(_split_words(refusal)):
        return ""
    words = _split_words(instead)
    if not 2 <= len(words) <= MAX_AMENDMENT_WORDS or words[0] not in _WORDS["choose.en"]:
        return ""
    is_passing = any(has(name, "en", instead) for name in ("doubt", "hedge", "moment")) or _is_step(parse(instead))
    names_option = words[1] in ("it", "me", "that") or not _POSITIONS.keys().isdisjoint(set(words) - {"a"})
    return "" if is_passing or names_option else cut(squeeze(opening), MAX_CHARACTERS)


# --- the question of a message


def find_open_options(message: str) -> Sequence[str]:
    """Returns the options among which a message asks the user to choose: none of them is anybody's statement yet."""
    choice = _find_choice(message)
    asks = any(ends_with_question(sentence.text) for sentence in prose.outline(message)[-CLOSING_SENTENCES:])
    return choice.options if choice.is_asked and asks and len(choice.options) > 1 else ()


def _find_choice(message: str) -> _Choice:
    """Finds the options that a message lists, else the alternatives or the wish that its end asks for."""
    sentences = [sentence.text for sentence in prose.outline(message)]
    questions = [text for text in sentences[-CLOSING_SENTENCES:] if ends_with_question(text)]
    marks = _find_option_marks(message)
    if len(marks) < 2 and questions:
        marks = list(_BULLET.finditer(message))
    if len(marks) > 1:
        return _read_list(message, marks, questions)
    return _find_question(message, sentences) or _NO_CHOICE


def _find_option_marks(message: str) -> list[re.Match[str]]:
    """Finds the marks of the options that a message counts from 1 or a, in order."""
    runs: list[list[re.Match[str]]] = [[]]
    for mark in _OPTION.finditer(message):
        number = _ORDINALS.get(mark[1].lower(), 0)
        if number == 1:
            runs.append([mark])
        elif runs[-1] and number == len(runs[-1]) + 1:
            runs[-1].append(mark)
    return next((run for run in reversed(runs) if len(run) > 1), [])


def _read_list(message: str, marks: Sequence[re.Match[str]], closing_questions: Sequence[str]) -> _Choice:
    """Reads the options at some marks, and the question before or after them."""
    ends = [*(mark.start() for mark in marks[1:]), len(message)]
    options = [_read_option(message[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    if any(map(ends_with_question, options)):
        return _NO_CHOICE
    leads = [sentence.text for sentence in prose.outline(message[: marks[0].start()])][-CLOSING_SENTENCES:]
    questions = [text for text in leads if ends_with_question(text)]
    wishes = [text for text in closing_questions if _asks_wish(text) and text not in questions]
    announcements = [text for text in leads if has("options", language_of(text), text)]
    row = message[: marks[-1].end()].rpartition("\n")[2] + options[-1]
    rows = [row] if announcements and options[0] in row else []
    asking = [*reversed(questions), *reversed(wishes)]
    named = next(filter(_is_subject_named, asking), "")
    joined = _join_leads(leads, announcements)
    ranked = [*asking, *(text for texts in (announcements, joined, rows, leads) for text in reversed(texts))]
    clear = (text for text in ranked if _is_clear(text, ignored=_WORDS["options.en"]))
    question = named or next(clear, next((text for text in ranked if _is_clear(text)), ""))
    is_asked = bool(wishes) or question in (*questions, *announcements, *joined, *rows)
    return _Choice(_cut_question(question), options, is_asked=is_asked, asks=question in asking)


def _is_subject_named(text: str) -> bool:
    """Whether a question names what it asks about: "how should the sums be kept?", not "which one do you want?"."""
    content = content_words(text)
    named = set(content) - _EMPTY - _WORDS["options.en"] - _WORDS["wanted.en"]
    is_named = len(content) >= MIN_QUESTION_WORDS and any(len(word) > 3 for word in named)
    return is_named and not refers_back(parse(text, "assistant"))


def _join_leads(leads: Sequence[str], announcements: Sequence[str]) -> list[str]:
    """Joins a lead-in that is not clear by itself with the sentence before it."""
    return [
        f"{leads[at - 1]} {lead}"
        for at, lead in enumerate(leads)
        if at and lead in announcements and not _is_clear(lead, ignored=_WORDS["options.en"])
    ]


def _read_option(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    sentences = prose.split_sentences(line.replace("**", ""))
    return cut(squeeze(sentences[0]).rstrip("., "), MAX_CHARACTERS) if sentences else ""


def _find_question(message: str, sentences: Sequence[str]) -> _Choice | None:
    """Finds the last alternatives that the end of a message puts, if it asks anything, else the last wish."""
    closing = [(at, sentences[at]) for at in range(len(sentences))][-CLOSING_SENTENCES:]
    questions = [text for _, text in closing if ends_with_question(text)]
    wish: _Choice | None = None
    for at, text in reversed(closing):
        puts = text in questions or (questions and has("may_choose", language_of(text), text))
        options = _split_alternatives(text) if puts else []
        if options or (wish is None and text in questions and _asks_wish(text)):
            named = {word for option in options for word in _split_words(option)}
            subject = [word for word in content_words(text) if word not in named]
            needs_context = at and (not subject or len(content_words(text)) < MIN_QUESTION_WORDS)
            context = f"{sentences[at - 1]} {text}" if needs_context else text
            is_run = " ".join(_split_words(context)) in " ".join(_split_words(message))
            choice = _Choice(_cut_question(context if is_run else text), options)
            if options:
                return choice
            wish = choice
    return wish


def _asks_wish(text: str) -> bool:
    """Whether a question asks for a wish or a plan, and not whether to do something."""
    read = parse(text, "assistant")
    asks = read.opens_with_question or not {"which", "what", "how", "where", "when", "who"}.isdisjoint(read.words)
    return asks and has("wanted", read.language, text) and not is_about_errand(read)


def _cut_question(text: str) -> str:
    question = _QUESTION_LEAD.sub("", squeeze(text.replace("**", "")))
    return cut(question, MAX_QUESTION_CHARACTERS).rstrip(":.?？ ")


def _split_alternatives(text: str) -> list[str]:
    """Splits a sentence into its alternatives: "a, b or c", "either a, or b"; [] if there are none."""
    cuts = list(_OR.finditer(text))
    if not cuts:
        return []
    before, after = text[: cuts[-1].start()], text[cuts[-1].end() :]
    lead = _LEAD.match(before)
    parts = before[lead.end() :].split(", ") if lead else [before]
    last = _NEXT_SENTENCE.split(after, maxsplit=1)[0]
    return [cut(squeeze(part).rstrip("?？., "), MAX_CHARACTERS) for part in (*parts, last)]


# --- the option of an answer


def _pick_option(opening: str, choice: _Choice, *, refuses: bool) -> str:
    """Returns the option that an answer picks by its position or by a name that no other option has.

    It is the answer itself if this gives the value or the thing that the message asks for; "" if nothing is picked.
    """
    clauses = [_split_words(part) for part in _CLAUSE_END.split(opening)]
    at = next((at for at, part in enumerate(clauses) if set(part) - (_EMPTY - _POSITIONS.keys())), -1)
    words = clauses[at]
    is_doubtful = any(has(name, "en", opening) for name in ("doubt", "hedge"))
    if (
        at < 0
        or len(words) > MAX_ANSWER_WORDS
        or words[-2:] in _PAUSING
        or is_doubtful
        or _names_several(clauses, at, choice.options)
    ):
        return ""
    if position := _find_position(words, len(choice.options)):
        return choice.options[position - 1]
    if refuses or not choice.question:
        return ""
    names = [word for word in words if word not in _EMPTY and word not in STOP_WORDS]
    own = cut(squeeze(opening), MAX_CHARACTERS)
    if not _is_predicated(words) and (option := _match_option(choice.options, names, least=len(names))):
        return own if option in choice.question else option
    keeps = not (_KEEPING - COPULA - {"as"}).isdisjoint(words) and (_KEEPING | _EMPTY | STOP_WORDS).issuperset(words)
    takes = (keeps and choice.is_asked) or _is_value(opening, names, choice)
    return own if takes else ""


def _names_several(clauses: Sequence[Sequence[str]], at: int, options: Sequence[str]) -> bool:
    """Whether a clause after the first that says something takes it back or names another option."""
    later = [word for clause in clauses[at + 1 :] for word in clause]
    names = set(later) - _EMPTY - STOP_WORDS
    if not names.isdisjoint(word for option in options for word in _split_words(option)):
        return True
    return not _POSITIONS.keys().isdisjoint(later) or not (_REFUSING | _RETRACTING - {"but"}).isdisjoint(later[:1])


def _is_predicated(words: Sequence[str]) -> bool:
    """Whether an answer says how an option is and does not take it: "kafka is out", not "kafka it is"."""
    return any(word in COPULA for word in words[:-1]) or "had" in words


def _is_value(opening: str, names: Sequence[str], choice: _Choice) -> bool:
    """Whether an answer is the number, in digits, or the name ("X it is") that a question without options asks for."""
    words = _split_words(opening)
    if choice.options or not names or len(words) > MAX_VALUE_WORDS or _is_predicated(words):
        return False
    is_position = "which" in _split_words(choice.question) and not _POSITIONS.keys().isdisjoint(words)
    is_number = names[0][0].isdigit() and ":" not in opening and len(words) <= MAX_NUMBER_WORDS
    return (is_number and not is_position) or words[-2:] == ["it", "is"]


def _find_position(words: Sequence[str], among: int) -> int:
    """Returns the position, from 1, of one of `among` options that a clause names; 0 if it names none.

    Nothing else may be said of it: "the first is out" and, in a script without spaces, "not the second" pick nothing.
    """
    positions = {**_POSITIONS, "last": among}
    text = "".join(words)
    named = {positions[word] for word in words if word in positions and (word != "a" or len(words) < 3)}
    unspaced = [word for word in _ORDINALS if not word.isascii() and len(word) > 2 and word in text]
    named |= {_ORDINALS[word] for word in unspaced}
    others = [word for word in words if word not in positions and word not in _EMPTY | {"option", "rather"}]
    remainder = "".join(others)
    for word in (*unspaced, *_UNSPACED_EMPTY):
        remainder = remainder.replace(word, "")
    refuses = not _REFUSING.isdisjoint(words) or any(word in text for word in _UNSPACED_REFUSING)
    if len(named) != 1 or remainder or refuses or not COPULA.isdisjoint(words[1:-1]):
        return 0
    (position,) = named
    return position if position <= among and not (among > 2 and words[-1] in ("former", "latter")) else 0


def _match_option(options: Sequence[str], names: Sequence[str], *, least: int) -> str:
    """Returns the only option with words that begin with at least `least` of some names; "" if there is none."""
    matching = [
        option
        for option in options
        if sum(any(word.startswith(name) for word in _split_words(option)) for name in names) >= least > 0
    ]
    return matching[0] if len(matching) == 1 else ""


# --- stated alternatives


def _find_named_alternative(opening: str, message: str) -> str:
    """Returns the only one of the alternatives that a message weighs which an answer begins by naming; "" for none."""
    sentences = [sentence.text for sentence in prose.outline(message)][-CLOSING_SENTENCES:]
    clauses = [clause for text in sentences for clause in _STATED_END.split(text)]
    first = _split_words(_CLAUSE_END.split(opening)[0])
    names = [word for word in first if word not in _EMPTY | _KEEPING | STOP_WORDS]
    is_name = 0 < len(names) <= MAX_NAME_WORDS and parse(opening).kind == "states" and not _is_predicated(first)
    weighs = sum(has("weighs", "en", clause) for clause in clauses) > 1
    if not (is_name and weighs) or len(first) > MAX_VALUE_WORDS or any(map(ends_with_question, clauses)):
        return ""
    named = [clause for clause in clauses if set(names).issubset(_split_words(clause)[:MAX_SUBJECT_WORDS])]
    others = [clause for clause in clauses if clause not in named and has("weighs", "en", clause)]
    return cut(squeeze(named[0]).rstrip("., "), MAX_CHARACTERS) if len(named) == 1 and others else ""


# --- proposals


def _find_proposal(message: str) -> str:
    """Returns the last sentence of a message that proposes something which lasts; "" if there is none."""
    sentences = [sentence.text for sentence in prose.outline(message)]
    for at, text in reversed(list(enumerate(sentences))):
        is_closing = at >= len(sentences) - CLOSING_SENTENCES and ends_with_question(text)
        is_state = proposes_state(split_words(text))
        proposes = has("proposes", language_of(text), text) or (is_closing and is_state)
        is_clear = _is_clear(text) or (is_state and len(content_words(text)) >= MIN_QUESTION_WORDS)
        if proposes and is_clear and (is_state or not _is_offer(text)):
            return cut(squeeze(text), MAX_CHARACTERS)
    return ""


def _find_refused_offer(answer: str, message: str) -> str:
    """Returns the offer at the end of a message that an answer refuses for a while or for good; "" if there is none.

    The answer's pronoun is the object of the offer, so that neither says anything without the other.
    """
    sentences = prose.outline(message)
    offer = sentences[-1].text if sentences else ""
    words, read = _split_words(answer), parse(answer)
    is_refusal = read.refutes or words[:2] == ["not", "yet"] or words[:1] in (["keep"], ["leave"])
    if not (is_refusal and ends_with_question(offer) and opens("offers", "en", offer) and _PRONOUNS & set(words)):
        return ""
    is_kept = not {"keep", "leave", "hold"}.isdisjoint(words[:3]) and has("condition", "en", answer)
    holds = is_kept or read.lasting in ("ban", "rule", "need") or words[:2] == ["not", "yet"]
    is_routine = opens("routine", "en", without_opening("offers", "en", offer).removeprefix("to "))
    has_object = len(content_words(offer)) >= MIN_QUESTION_WORDS and not is_routine
    is_clear = holds and not read.is_musing and not has("doubt", "en", answer) and len(words) > MIN_CLEAR_WORDS
    return cut(squeeze(offer), MAX_QUESTION_CHARACTERS) if is_clear and has_object else ""


def _is_offer(sentence: str) -> bool:
    """Whether a sentence offers to do something at once: a question with a momentary order and without a choice."""
    if parse(sentence).lasting:
        return False
    _, *orders = re.split(r"(?i)\b(?:shall|should) (?:i|we)|\bme to\b", sentence, maxsplit=1)
    return any(parse(order.strip(" ?")).kind == "orders" for order in orders)


def _is_clear(text: str, *, ignored: frozenset[str] = frozenset()) -> bool:
    """Whether a text is clear on its own: enough content words, or as much in a script without spaces."""
    is_unspaced = language_of(text) in UNSPACED and len(text) >= 2 * MIN_CLEAR_WORDS
    return is_unspaced or sum(word not in ignored for word in content_words(text)) >= MIN_CLEAR_WORDS
