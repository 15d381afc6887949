"""Reads one sentence: what it does, its language, and whether it says that it lasts; pure.

The words are in data/sentence_words.txt, one class for each question and language. The rest is form: punctuation, and
the order of a few closed classes. English is read by its grammar. Of other languages only the words are known with
which people ask and order, and with which they say that something is always so, forbidden, chosen, liked, needed or
owned. A sentence in a language without a table never asks and never lasts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise, takewhile
from typing import Literal

from csmd import data
from csmd.cache import cached
from csmd.text import sentence_words
from csmd.text.decisions import decides
from csmd.text.language import ENGLISH, language_of
from csmd.text.momentary_orders import ends_habit, is_standing_wish, is_stop_order, picks_option, strip_momentary_bans
from csmd.text.printed_text import counts_tests, is_check_status, is_printed, reports_edit
from csmd.text.sentence_words import (
    MAX_READ,
    WORDS,
    begins,
    holds,
    is_verb,
    openings,
    phrase_size,
    split_words,
    tokenise,
)

#: What a sentence does. `assents` has nothing but words of dialogue: yes, thanks, go on. `narrates` is an assistant's
#: account of what it is about to do or sees, `reports` of what was done or is so at the moment.
Kind = Literal["states", "asks", "orders", "reports", "narrates", "assents", "printed"]
Speaker = Literal["user", "assistant"]
#: The kind of a lasting sentence; one of several kinds has the first in LASTING.
Lasting = Literal["", "ban", "rule", "taste", "choice", "role", "plan", "need"]

LASTING: tuple[Lasting, ...] = ("taste", "choice", "role", "ban", "rule", "plan", "need")
#: An order of these kinds is a rule.
RULES: frozenset[Lasting] = frozenset({"ban", "rule", "taste", "choice"})
#: Most words that are read to find out whether an order's verb is a noun: "commit messages are ...".
NOUN_WITHIN = 5
#: A speaker's question to themselves begins within this number of words.
PONDERED_WITHIN = 9
#: The subject of a sentence about a role is named within this number of words.
NAMED_WITHIN = 5
#: The indirect question of an order begins within this number of words after its verb: "check in the code whether".
ASKED_WITHIN = 4
#: A rule names its object within this number of words after its verb.
OBJECT_WITHIN = 3
#: An objection says within this number of words that something is wrong.
OBJECTION_WITHIN = 6
#: Most words of an order that is taken as momentary.
MAX_MOMENTARY_WORDS = 5
#: Most characters of words of dialogue that are written without spaces.
MAX_DIALOGUE_CHARACTERS = 24
#: Characters of the end of a sentence in which a question mark is looked for.
ENDING = 500
#: Fewest other meaningful words of a sentence with a secret, and of a rule with one, that say more than the secret.
MIN_BESIDE_SECRET = 5
MIN_LAID_DOWN = 3

_ASSENT = frozenset("ok okay k yes yeah yep yup".split())
_REFUSALS = WORDS["refutes"] | frozenset("no nope nah wrong".split())
#: Words with which people agree, thank and greet, in any language.
DIALOGUE = frozenset(word for line in data.lines("dialogue_words.txt") for word in line.split())
_QUESTION_MARKS = frozenset("?？؟;՞⁇⁈")
_FILLERS = WORDS["connective"] | WORDS["adverb"]
_ASKING = WORDS["wh.en"] | WORDS["when.en"] | {"whether", "if"}
_BEFORE_ORDER = frozenset("and then please you just to".split())
#: Words of a speaker's question to themselves.
_SELF = frozenset(
    "on i i'm we we're let me let's us am are still not don't can't keep to just now need should have want".split()
)
#: Beginnings of a request to someone.
_TO_ANOTHER = ("can y", "could", "would", "will ")
#: Phrases of a request anywhere in a sentence; "you can" is one only at the beginning.
_REQUESTS = frozenset(phrase for phrase in WORDS["request.en"] if not phrase.startswith("you_"))
_COPULA = frozenset("is are was were".split())
_ONCE_MORE = frozenset("still again yet already".split())
_CLAUSE_END = re.compile(r"[,;:.!?](?=\s|$)|\s[-–—]+\s")
#: The mark that replaced a secret.
_REDACTED = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")
_REMARK = re.compile(r"\s*[(（][^()（）]{0,400}[)）]\W*$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, what precedes it, what it does and whether it lasts.

    `body` is the sentence without greetings, asides and a request to remember, `core` also without adverbs such as
    "now" and "just"; both are "" if nothing else remains. `language` is an ISO 639-1 code, "" if it is unknown; `words`
    are the words and marks of the core in lower case.
    """

    text: str
    body: str
    core: str
    language: str
    words: tuple[str, ...]
    kind: Kind
    lasting: Lasting
    refutes: bool
    """Whether the words before the sentence refuse something: no, wrong."""
    remembers: bool
    """Whether it asks the assistant to remember it."""
    is_continuation: bool
    """Whether its first word continues an earlier subject."""
    opens_with_question: bool
    """Whether it begins with a word that asks, in English."""
    is_of_moment: bool
    """Whether it says that it holds only now."""
    is_musing: bool
    """Whether the speaker thinks aloud."""
    leaves_open: bool
    """Whether it says that something is needed, and not what."""
    settles: bool
    """Whether a user decides with it how things are to be from then on (decisions.py)."""


def parse(text: str, speaker: Speaker = "user") -> Sentence:
    """Reads one sentence of a user or an assistant; never raises.

    Short sentences are cached; a whole message is parsed only once, so it is not.
    """
    return _parse_short(text, speaker) if len(text) <= MAX_READ else _parse(text, speaker)


def _parse(text: str, speaker: Speaker) -> Sentence:
    head = text[:MAX_READ]
    language = language_of(head)
    is_english = language == "en"
    tokens = tokenise(head)
    all_words = [word for word, _ in tokens]
    strict, remembers = _skip_lead_in(all_words, language, WORDS["connective"])
    loose, _ = _skip_lead_in(all_words, language, _FILLERS)
    core = text_from(head, tokens, loose)
    words = tuple(dropwhile(lambda word: not _is_word(word), all_words[loose:]))
    refutes = sentence_words.contains_phrase(_REFUSALS, all_words, within=loose) or _is_refused(language, head)
    settles = is_of_moment = leaves_open = False
    if is_english:
        binding, is_of_moment = strip_momentary_bans(words, head, refutes)
        lasting = _find_english_lasting(_without_idioms(_without_aside(binding)), head, refutes)
        settles = speaker == "user" and not _ends_talk(words) and decides(head, words)
        leaves_open = not settles and lasting not in RULES and _leaves_open(words)
    else:
        lasting = _find_lasting(language, words, head)
    if settles and lasting not in RULES:
        lasting = "choice"
    elif leaves_open:
        lasting = ""
    is_stopped = lasting not in ("rule", "taste") and is_stop_order(all_words)
    is_of_moment = is_of_moment or is_stopped or holds("moment", language, words, head)
    kind = _classify_form(head, core, all_words, lasting, speaker)
    if kind is None and is_english:
        kind = _classify_english(words, head, lasting, is_of_moment=is_of_moment)
    first_word = next((word for word in all_words if word[0].isalnum()), "")
    return Sentence(
        text=text,
        body=text_from(text, tokens, strict),
        core=core,
        language=language,
        words=words,
        kind=kind or _classify_other(language, words, head, lasting, is_of_moment=is_of_moment),
        lasting=lasting,
        refutes=refutes,
        remembers=remembers,
        is_continuation=is_english and first_word.partition("'")[0] in WORDS["goes_on.en"],
        opens_with_question=is_english and _opens_with_question(words),
        is_of_moment=is_of_moment,
        is_musing=sentence_words.contains_phrase(WORDS["musing.en"], all_words, within=3),
        leaves_open=leaves_open,
        settles=settles,
    )


_parse_short = cached(4096)(_parse)


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] in "`$_"


def text_from(text: str, tokens: Sequence[tuple[str, int]], index: int) -> str:
    """Returns a text from its token `index` on, with an opening quote or bracket before it; "" if there is none."""
    if index == 0 or index >= len(tokens):
        return "" if index else text
    start = tokens[index][1]
    while start and text[start - 1] not in " \t\n,;:.!?":
        start -= 1
    return text[start:]


def has(word_class: str, language: str, text: str) -> bool:
    """Whether a text contains a phrase of a class in its language."""
    return holds(word_class, language, split_words(text), text)


# --- lead-in


def _skip_lead_in(words: Sequence[str], language: str, leads: frozenset[str]) -> tuple[int, bool]:
    """Returns the end of the lead-in (greeting, connective, request to remember), and whether it has a request."""
    index = end = 0
    remembers = False
    while index < len(words):
        if not _is_word(words[index]):
            index += 1
            continue
        ahead = words[index : index + 5]
        size = phrase_size(leads, ahead)
        request = phrase_size(WORDS["remember"], ahead)
        if request and words[index + request : index + request + 1] and words[index + request] not in WORDS["recall"]:
            size, remembers = max(size, request), True
        if not size:
            size = max(phrase_size(WORDS["interjection"], ahead), phrase_size(WORDS["refutes"], ahead))
            size = size or int(language != "en" and words[index] in DIALOGUE)
            if not size or not _stands_alone(words[index + size : index + size + 3], language, before=words[index]):
                break
        index = end = index + size
    while end and end < len(words) and words[end] in ",;:.!?-–—…()":
        end += 1
    return end, remembers


def _stands_alone(rest: Sequence[str], language: str, *, before: str) -> bool:
    """Whether an interjection is separate from the words after it: a mark, another interjection or a request follows.

    "No" and the like may belong to a noun that is also a verb ("no build artifacts"): before a verb only assent is
    separate.
    """
    if not rest or not rest[0][0].isalnum():
        return True
    names = ["interjection", "connective"]
    if language == "en":
        names += ["request.en", "subject.en", "aux.en", "wh.en", *(["order.en"] if before in _ASSENT else [])]
    return any(phrase_size(WORDS[name], rest) for name in names)


# --- what it does


def _classify_form(head: str, core: str, all_words: Sequence[str], lasting: Lasting, speaker: Speaker) -> Kind | None:
    """Returns the kind of a sentence that its form or its words of dialogue show in any language; None if neither."""
    spoken = [word for word in all_words if word[0].isalnum()]
    if not spoken or is_printed(head):
        return "printed"
    if all(map(_is_dialogue, spoken)):
        return "assents"
    is_assistant = speaker == "assistant"
    if is_assistant and phrase_size(WORDS["narrates.en"], split_words(core)[:4]):
        return "narrates"
    reports = counts_tests(spoken) or (not lasting and is_check_status(spoken))
    return "reports" if reports or (is_assistant and reports_edit(head, split_words(core))) else None


def _is_dialogue(word: str) -> bool:
    """Whether a word is one of dialogue, or in Chinese, Japanese or Korean a row of them."""
    if word in DIALOGUE or word in WORDS["interjection"]:
        return True
    if word[0] < "\u3040" or len(word) > MAX_DIALOGUE_CHARACTERS:
        return False
    return any(word[:index] in DIALOGUE and _is_dialogue(word[index:]) for index in range(len(word) - 1, 0, -1))


def ends_with_question(head: str) -> bool:
    """Whether a sentence ends with a question mark of any script, also where a remark in brackets follows it."""
    head = head[-ENDING:]
    tail = takewhile(lambda character: not character.isalnum(), reversed(head))
    if not _QUESTION_MARKS.isdisjoint(tail):
        return True
    remark = _REMARK.search(head)
    return remark is not None and head[: remark.start()].rstrip()[-1:] in _QUESTION_MARKS and remark.start() > 0


def _classify_other(language: str, words: Sequence[str], head: str, lasting: Lasting, *, is_of_moment: bool) -> Kind:
    """Returns the kind of a sentence that is not English."""
    if ends_with_question(head) or head.startswith("¿"):
        return "asks"
    is_spaced = language in sentence_words.SPACED
    if is_spaced and begins(f"asks.{language}", words):
        return "asks"
    if language in sentence_words.UNSPACED and holds("asks", language, words, head):
        return "asks"
    may_last = lasting in RULES and not holds("now", language, words, head)
    if is_spaced and not may_last and begins(f"order.{language}", words):
        return "orders"
    is_momentary_ban = lasting == "ban" and (is_of_moment or _has_now(language, words, head))
    return "orders" if is_momentary_ban else "states"


def _classify_english(words: Sequence[str], head: str, lasting: Lasting, *, is_of_moment: bool) -> Kind:
    if not words:
        return "states"
    first, second = words[0], words[1] if len(words) > 1 else ""
    if _is_request(words, lasting):
        return "orders"
    if ends_with_question(head) or begins("wonder.en", words) or _ponders(words) or _asks(first, second):
        return "asks"
    # "wait until ..." is an order, although it has a condition.
    is_bound = holds("condition", "en", words, "") and first not in WORDS["halts"]
    is_order = is_verb(words) and not _is_noun(words) and lasting not in RULES and not is_bound
    if is_of_moment and first in ("don't", "dont", "do", "never"):
        return "orders"
    is_ban = lasting == "ban" and (is_of_moment or _has_now("en", words, ""))
    is_command = first[0] == "`" and " " in first and not second[:1].isalnum()  # a command, and what it is for
    return "orders" if is_order or is_ban or is_command else "states"


def _is_request(words: Sequence[str], lasting: Lasting) -> bool:
    """Whether an English sentence begins with a request: "can you ...", and not "can we?" before a noun."""
    size = begins("request.en", words)
    if not size or (lasting == "ban" and words[size : size + 1] == ("not",)):
        return False
    return size != 2 or words[1] != "we" or is_verb(words[2:3])


def _asks(first: str, second: str) -> bool:
    """Whether the first two words of an English sentence open a question."""
    subjects = WORDS["subject.en"]
    if first in WORDS["wh.en"]:
        return first != "what" or second not in subjects
    if first in WORDS["when.en"] and second in WORDS["aux.en"]:
        return True
    if first not in WORDS["aux.en"] or not (second in subjects or second[:1] in "[`"):
        return False
    if first == "don't":
        return second in ("i", "we", "they")  # "don't you dare"
    return first != "do" or second in ("i", "you", "we", "they")


def _ponders(words: Sequence[str]) -> bool:
    """Whether the speaker asks themselves a question: "let me think about whether", "I keep wondering if"."""
    end = next((index for index, word in enumerate(words[:PONDERED_WITHIN]) if word in ("whether", "if")), 0)
    others = set(words[:end]) - WORDS["ponder.en"]
    is_pondering = not WORDS["ponder.en"].isdisjoint(words[:end])
    return is_pondering and not _SELF.isdisjoint(words[:2]) and others - WORDS["adverb"] <= _SELF


def _ends_talk(words: Sequence[str]) -> bool:
    """Whether a sentence asks to leave a subject of the conversation: "no more talk of the roadmap"."""
    if words[:1] not in (("enough",), ("stop",)) and words[:2] not in (("no", "more"), ("let's", "not")):
        return False
    return words[1:2] == ("about",) or not WORDS["talk.en"].isdisjoint(words[1:6])


def _opens_with_question(words: Sequence[str]) -> bool:
    asking = WORDS["wh.en"] | WORDS["when.en"] | WORDS["aux.en"]
    return bool(words) and (words[0] in asking or bool(phrase_size(WORDS["request.en"], words)))


def _is_noun(words: Sequence[str]) -> bool:
    """Whether the verb that a sentence begins with is a noun: a finite verb agrees with it before its clause ends."""
    if words[0] in WORDS["verb_only.en"]:
        return False
    for index, word in enumerate(words[1 : NOUN_WITHIN + 1], 1):
        if word in WORDS["finite.en"]:
            return True
        if index > 1 and word in ("to", "for", "of"):
            continue
        if word in WORDS["closed.en"] or not word[0].isalnum():
            return False
        before = words[index - 1]
        if (word.removesuffix("s") in WORDS["stative.en"]) and word.endswith("s") != before.endswith("s"):
            return True
    return False


def _has_now(language: str, words: Sequence[str], head: str) -> bool:
    """Whether a ban says that it holds only now: "don't commit again"."""
    text = " ".join(words).replace("from now on", "")
    return holds("now", language, text.split(), head)


# --- whether it lasts


def _find_english_lasting(words: Sequence[str], head: str, refutes: bool) -> Lasting:
    if _ends_talk(words) or (refutes and picks_option(words)):
        return ""
    is_of_no = words[:1] == ("no",) and len(words) > 2 and WORDS["nothing.en"].isdisjoint(words)
    is_of_no = is_of_no and words[1] not in WORDS["subject.en"]
    if ends_habit(words) or is_of_no or (words[:2] == ("nothing", "that") and words[2:3] != ("i",)):
        return "ban"
    if refutes and words and words[0] in WORDS["choose.en"] and words[1:2] != ("it",):
        return "choice"
    lasting = _find_lasting("en", words, head)
    return "taste" if lasting not in RULES and is_standing_wish(words) else lasting


def _find_lasting(language: str, words: Sequence[str], head: str) -> Lasting:
    for name in LASTING:
        is_about_program = name == "role" and is_of_program(words)
        is_account = name == "ban" and holds("tells", language, words, head)
        if holds(name, language, words, head) and not is_about_program and not is_account:
            return name
    return ""


#: Most words between the word that says that something is needed and the one that stands for it: "a better", "some".
MAX_BEFORE_UNKNOWN = 3


def _leaves_open(words: Sequence[str]) -> bool:
    """Whether an English sentence says that something is needed and not what: "we need somewhere to keep the tokens"."""
    ending = [word for word in words if _is_word(word)][-1:]
    for index in range(len(words)):
        size = phrase_size(WORDS["lacks.en"], words[index : index + 2])
        if size and ending and ending[0] in WORDS["unknown_place.en"]:
            return True
        start = index + size
        for unknown in range(start, min(start + MAX_BEFORE_UNKNOWN, len(words))) if size else ():
            if phrase_size(WORDS["unknown.en"], words[unknown : unknown + 2]):
                return not sentence_words.contains_phrase(WORDS["names_it.en"], words[unknown + 1 :], within=len(words))
            if words[unknown] in WORDS["order.en"] or words[unknown] == "to":
                break
    return False


def is_of_program(words: Sequence[str]) -> bool:
    """Whether the subject of an English sentence is a part of a program: "the Go client", and no person or team."""
    for index, word in enumerate(words[:NAMED_WITHIN]):
        if word in WORDS["finite.en"] | WORDS["role.en"]:
            return False
        if word in WORDS["program.en"] and index and WORDS["group.en"].isdisjoint(words[index + 1 : index + 2]):
            return index > 1 or word != "client"  # "our client" may be a person who pays
    return False


def _without_indirect_question(words: Sequence[str]) -> Sequence[str]:
    """Removes an indirect question: "check which database we use" does not say which one is used.

    The verb that asks opens the sentence, or follows a mark, "and" or a request.
    """
    for index, word in enumerate(words):
        opens_clause = index == 0 or not words[index - 1][0].isalnum() or words[index - 1] in _BEFORE_ORDER
        if word not in WORDS["inquire.en"] or not opens_clause:
            continue
        for start in range(index + 1, min(index + ASKED_WITHIN, len(words))):
            if words[start] in _ASKING:
                return (*words[:start], *dropwhile(lambda word: word not in ".,;:!?", words[start:]))
            if not words[start][0].isalnum():
                break
    return words


def _without_aside(words: Sequence[str]) -> Sequence[str]:
    """Returns the words of a sentence without an indirect question, and of an order for once without its purpose.

    "Add tests to verify that it must be signed" forbids and demands nothing.
    """
    words = _without_indirect_question(words)
    if not is_verb(words) or words[0] in WORDS["habit.en"] | WORDS["manner.en"]:
        return words
    purposes = (index for index in range(1, len(words)) if phrase_size(WORDS["purpose.en"], words[index : index + 3]))
    return words[: next(purposes, None)]


def _without_idioms(words: Sequence[str]) -> Sequence[str]:
    """Returns the words of a sentence without idioms with a word that lays something down: "closer to each other"."""
    if openings(WORDS["idiom.en"]).isdisjoint(words):
        return words
    kept: list[str] = []
    index = 0
    while index < len(words):
        size = phrase_size(WORDS["idiom.en"], words[index : index + 4])
        kept += () if size else words[index : index + 1]
        index += size or 1
    return tuple(kept)


def _is_refused(language: str, head: str) -> bool:
    """Whether a sentence that is not English opens with a refusal; a mark ends it in scripts with spaces."""
    folded = head.casefold()
    refusals = [word for word in WORDS.get(f"wrong.{language}", ()) if folded.startswith(word)]
    if language in sentence_words.UNSPACED:
        return bool(refusals)
    return any(folded[len(word) : len(word) + 1] in (",", ".", "!", ";") for word in refusals)


# --- properties of a sentence


def is_passing(text: str, speaker: Speaker) -> bool:
    """Whether a sentence states nothing lasting: a question, an open need, a report, narration, printed text, a user's
    short order."""
    sentence = parse(text, speaker)
    if sentence.leaves_open:
        return True
    if sentence.kind == "orders" and speaker == "user":
        is_short = sum(word[0].isalnum() for word in sentence.words) <= MAX_MOMENTARY_WORDS
        return is_short and not sentence.lasting and not decides_by_order(sentence.words)
    return sentence.kind in ("asks", "reports", "narrates", "printed")


def states_something(text: str) -> bool:
    """Whether a sentence says how something is or is done, and is no question, printed text or single order."""
    sentence = parse(text)
    if sentence.settles:
        return True
    if sentence.kind in ("asks", "printed", "assents") or find_request(text)[:5].casefold() in _TO_ANOTHER:
        return False
    if sentence.kind != "orders" or sentence.lasting in RULES:
        return True
    return decides_by_order(sentence.words) or is_rule_of_kind(sentence)


def is_of_several(sentence: Sentence) -> bool:
    """Whether speakers order something of themselves: "let's only do the first for now"."""
    return bool(phrase_size(WORDS["of_several.en"], sentence.words))


def decides_by_order(words: Sequence[str]) -> bool:
    """Whether an order decides something for good: "let's drop the importer", "use tabs"; "let's check it" does not."""
    size = phrase_size(WORDS["of_several.en"], words)
    verb, thing, *_ = (*words[size:], "", "")
    if size:
        return verb not in WORDS["tackle.en"] | {"", "also", "first"}
    return verb in WORDS["habit.en"] and thing not in WORDS["pronoun.en"]


def is_rule_of_kind(sentence: Sentence) -> bool:
    """Whether an order says how things of a kind are done: "put migrations under db/"."""
    words = sentence.words
    if not words or words[0] not in WORDS["manner.en"] or not WORDS["at_hand.en"].isdisjoint(words):
        return False
    pairs = pairwise(words[1 : OBJECT_WITHIN + 3])
    return any(word.endswith("s") and not word.endswith("ss") and after in WORDS["place.en"] for word, after in pairs)


def holds_only_redacted(text: str) -> bool:
    """Whether a sentence states only a redacted secret and its owner.

    The words before the secret do not count in a clause whose value it is: "the token is [redacted]".
    """
    if "[redacted:" not in text:
        return False
    count = 0
    for clause in _CLAUSE_END.split(text):
        parts = [[word for word in split_words(part) if word[0].isalnum()] for part in _REDACTED.split(clause)]
        if len(parts) > 1 and _COPULA.issuperset(parts[0][-1:]):
            parts = parts[1:]
        count += sum(word not in ENGLISH for part in parts for word in part)
    return count < (MIN_LAID_DOWN if parse(text).lasting else MIN_BESIDE_SECRET)


def find_request(text: str) -> str:
    """Returns the request in a sentence, from its first words on; "" if there is none."""
    if not sentence_words.openings(_REQUESTS) & set(split_words(text)):
        return ""
    tokens = tokenise(text[:MAX_READ])
    words = [word for word, _ in tokens]
    starts = (start for index, (_, start) in enumerate(tokens) if phrase_size(_REQUESTS, words[index : index + 4]))
    return next((text[start:] for start in starts), "")


def refers_back(sentence: Sentence) -> bool:
    """Whether a sentence is about something named before it, and so is unclear by itself."""
    words = sentence.words
    if words[:1] in (("the",), ("your",)) and words[1:2] and words[1] in WORDS["thing.en"]:
        words = words[1:]
    elif not words or words[0] not in WORDS["pronoun.en"]:
        return False
    verb = words[1] if len(words) > 1 else ""
    return verb in WORDS["finite.en"] or verb in WORDS["of_it.en"]


def opens(word_class: str, language: str, text: str) -> bool:
    """Whether a text of a language begins with a word of a class, after any punctuation."""
    return bool(_find_opening(_find_phrases(word_class, language), text)[1])


def without_opening(word_class: str, language: str, text: str) -> str:
    """Removes the opening words of a class and the marks after them; returns "" if the text begins with none."""
    tokens, end = _find_opening(_find_phrases(word_class, language), text)
    while 0 < end < len(tokens) and tokens[end][0] in ",;:.!-–—":
        end += 1
    return text_from(text, tokens, end) if end else ""


def _find_phrases(word_class: str, language: str) -> frozenset[str]:
    """Returns the phrases of a class in a language, or in every language if the class has no language."""
    name = f"{word_class}.{language}"
    return WORDS[name if name in WORDS else word_class]


def _find_opening(phrases: frozenset[str], text: str) -> tuple[Sequence[tuple[str, int]], int]:
    """Returns the tokens of a text, and the index after the longest of some phrases that it begins with, or 0."""
    tokens = tokenise(text[:MAX_READ])
    words = [word for word, _ in tokens]
    first = next((index for index, word in enumerate(words) if word[0].isalnum()), 0)
    size = phrase_size(phrases, words[first : first + 4])
    return tokens, first + size if size else 0


def is_imperative(sentence: Sentence) -> bool:
    """Whether a sentence has the form of an order, whether of the moment or for good."""
    if sentence.kind == "states":
        return is_verb(sentence.words) and not _is_noun(sentence.words)
    return sentence.kind == "orders"


def is_objection(text: str) -> bool:
    """Whether the speaker objects to the last action or answer: "no, ...", "the column is not right"."""
    sentence = parse(text)
    if sentence.refutes or opens("objects", "en", sentence.core):
        return True
    words = sentence.words[:OBJECTION_WITHIN]
    is_of_thing = bool(words) and (words[0] == "the" or words[0] in WORDS["pronoun.en"])
    return is_of_thing and any(
        phrase_size(WORDS["amiss.en"], words[index : index + 3])
        and (index == 1 or words[index - 1] == "still" or words[index - 1] in WORDS["finite.en"])
        for index in range(1, len(words))
    )


def complains(sentence: Sentence) -> bool:
    """Whether a sentence only complains that the current thing is failing: "it still shows two rows"."""
    is_at_hand = bool(sentence.words) and sentence.words[0].partition("'")[0] in WORDS["pronoun.en"]
    goes_wrong = not (_ONCE_MORE | WORDS["trouble.en"]).isdisjoint(sentence.words)
    return is_at_hand and goes_wrong and not sentence.lasting and sentence.kind == "states"


def tells_what_was_done(text: str) -> bool:
    """Whether the speaker reports their own action: "I fixed ...", "Moved ..."."""
    sentence = parse(text, "assistant")
    return sentence.kind == "reports" or opens("did", "en", sentence.core) or has("landed", "en", text)
