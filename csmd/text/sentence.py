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
from itertools import dropwhile, takewhile
from typing import Literal

from csmd import data
from csmd.cache import cached
from csmd.text.decisions import decides
from csmd.text.language import ENGLISH, language_of
from csmd.text.momentary_orders import halts, is_standing_wish, picks_at_hand, stops_habit, without_passing_bans
from csmd.text.sentence_words import (
    MAX_READ,
    SPACED,
    UNSPACED,
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
#: What a lasting sentence lays down, the surest first: a sentence of several is of the first.
Lasting = Literal["", "ban", "rule", "taste", "choice", "role", "plan", "need"]

LASTING: tuple[Lasting, ...] = ("taste", "choice", "role", "ban", "rule", "plan", "need")
#: With these an order is a rule.
RULES: frozenset[Lasting] = frozenset({"ban", "rule", "taste", "choice"})
#: How many words are read to find out whether an order's verb is a noun: "commit messages are ...".
NOUN_WITHIN = 5

_ASSENT = frozenset("ok okay k yes yeah yep yup".split())
_REFUSALS = WORDS["refutes"] | frozenset("no nope nah wrong".split())
#: Words with which people agree, thank and greet, in any language.
DIALOGUE = frozenset(word for line in data.lines("dialogue_words.txt") for word in line.split())
_QUESTION_MARKS = frozenset("?？؟;՞⁇⁈")
#: A question tag after a comma asks only for assent: ", ok?".
_TAGGED = re.compile(r",\s*(?:\w+ ){0,1}\w+[?？]+\W*$")
_REMARK = re.compile(r"\s*[(（][^()（）]{0,400}[)）]\W*$")
#: What a program printed, or code: known by form.
_PRINTED = re.compile(
    r"^(?:\W{0,3}(?:error|fatal|warning|usage|exit code|failed to [\w ]{2,40}|author|date|merge|remote|origin): |\$ |> |@@|diff --git"
    r"|[+-]{2,3}\s?[\w/{}()#*]|[+-][\w/{}()#*]|\+\s[\w/{}()#*]|\d{4}-\d\d-\d\d[t ]\d\d:|\s{0,8}at [\w$.<>]{2,80} ?\(|File \"[^\"]{1,200}\", line|Traceback|panic:|goroutine \d"
    r"|[\w.-]{1,60}@[\w.-]{1,80}[ :][~/])|<[^<>@\s]{1,80}@[^<>@\s]{1,80}>|\.(?:go|py|js|ts|rs|java):\d+:\d+|\b(?:fatal|stderr|stdout): "
    r"|[❯⎿⏺│├└]|\[redacted\b[^\]]{0,60}\]\W{0,3}$|\bat [\w$]{1,80}(?:\.[\w$<>`]{1,80}){2,12}\(|(?:/var/folders|/private/var|\\Temp)[/\\]|\b[0-9a-f]{40}\b",
    re.IGNORECASE,
)
_EDITED = r"(?:added|updated|created|wrote|extended|removed|deleted|fixed|adjusted|changed|modified|renamed|moved|implemented|committed|set up)"
#: Data: values, a mark without which there is none, cells of a table, and text between tags.
_VALUE = re.compile(r"\"[^\"]*(?:\"|$)|'[^']*(?:'|$)|\b(?:true|false|null|none|undefined)\b|[\d.]+", re.IGNORECASE)
_DATA_MARK = re.compile(r"^\W{0,3}[\[{]|[\"']\s{0,3}:")
_CODE = re.compile(r"`[^`]*`")
_CELL_END = re.compile(r"^\s*\||\|\s*$")
_TAGS = re.compile(r"<[a-z][^<>]{0,200}>.*</[a-z][\w-]{0,40}>\W*$", re.IGNORECASE)
#: Fewest bars between the cells of a row.
MIN_BARS = 2
#: Most words of a sentence that only says how checks ended.
STATUS_WORDS = 12
#: An assistant's inventory of its edits.
_INVENTORY = re.compile(
    r"^\W{0,3}[\w./-]{1,160}\.[a-z]{1,6}`?(?::[\d, –-]{1,20})?`?(?::| [-–—]) ?(?:" + _EDITED + r"|new|tests?|covers)\b"
    r"|^\W{0,3}(?:i(?:['’]ve)? )?" + _EDITED + r" (?:[\w-]+ ){0,4}(?:tests?|test cases?|imports?|comments?|docstrings?|documentation)\b"
    r"|^\W{0,3}" + _EDITED + r"\b.{0,160}\b(?:on )?lines? \d|^\W{0,3}lines? \d[\d, –-]{0,30}:|^\W{0,3}" + _EDITED + r" `[^`\s]{0,160}[/.][^`\s]{0,80}`(?: \(|\W*$)"
    r"|^\W{0,3}(?:the )?(?:fixes|changes|edits|updates) (?:i |that i )?(?:['’]ve )?made\b|^\W{0,3}(?:summary of|files (?:changed|modified|updated|created))",
    re.IGNORECASE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, what precedes it, what it does and whether it lasts.

    `body` is the sentence without greetings, asides and a request to remember, `core` also without adverbs such as
    "now" and "just"; both "" where nothing else is there. `language` is an ISO 639-1 code, "" where it is not known;
    `words` are those of the core in small letters, marks among them.
    """

    text: str
    body: str
    core: str
    language: str
    words: tuple[str, ...]
    kind: Kind
    lasting: Lasting
    refutes: bool
    """Whether the words before it refuse something: no, wrong."""
    remembers: bool
    """Whether it asks to keep in mind what it says."""
    goes_on: bool
    """Whether it begins with a word that goes on about something before it."""
    opens_with_question: bool
    """Whether it begins with a word that asks, in English."""
    is_of_moment: bool
    """Whether it says that it holds now, and no longer."""
    is_musing: bool
    """Whether the speaker thinks aloud."""
    settles: bool
    """Whether a user decides with it how things are to be from then on, in whatever words (decisions.py)."""


def parse(text: str, speaker: Speaker = "user") -> Sentence:
    """Reads one sentence of a user or an assistant; never raises. Kept for a short one: a whole message is read
    once."""
    return _parse_short(text, speaker) if len(text) <= MAX_READ else _parse(text, speaker)


def _parse(text: str, speaker: Speaker) -> Sentence:
    head = text[:MAX_READ]
    language = language_of(head)
    tokens = tokenise(head)
    all_words = [word for word, _ in tokens]
    strict, remembers = _behind_lead(all_words, language, (WORDS["connective"],))
    loose, _ = _behind_lead(all_words, language, (WORDS["connective"], WORDS["adverb"]))
    core = _from(head, tokens, loose)
    words = tuple(all_words[loose:])
    while words and not words[0][0].isalnum() and words[0][0] not in "`$_":
        words = words[1:]
    refutes = any(
        phrase_size(_REFUSALS, all_words[at : at + 4]) for at in range(min(loose, len(all_words)))
    ) or _is_refused(language, head)
    claiming, is_of_moment = without_passing_bans(words, head, refutes) if language == "en" else (words, False)
    is_of_moment = is_of_moment or holds("moment", language, words, head)
    lasting = _lasting(language, _without_indirect_question(claiming) if language == "en" else claiming, head, refutes)
    settles = language == "en" and speaker == "user" and not _ends_talk(words) and decides(head, words)
    if settles and lasting not in RULES:
        lasting = "choice"
    is_of_moment = is_of_moment or (lasting not in ("rule", "taste") and halts(all_words))
    first = next((word for word in all_words if word[0].isalnum()), "")
    return Sentence(
        text=text, body=_from(text, tokens, strict), core=core, language=language,
        words=words, lasting=lasting,
        kind=_kind(head, core, all_words, words, language, lasting, speaker, is_of_moment=is_of_moment),
        refutes=refutes, remembers=remembers, goes_on=language == "en" and first.partition("'")[0] in WORDS["goes_on.en"],
        opens_with_question=language == "en" and _opens_with_question(words),
        is_of_moment=is_of_moment,
        is_musing=any(phrase_size(WORDS["musing.en"], all_words[at : at + 4]) for at in range(min(3, len(all_words)))),
        settles=settles,
    )  # fmt: skip


_parse_short = cached(4096)(_parse)


def _from(text: str, tokens: Sequence[tuple[str, int]], at: int) -> str:
    """A text from its token `at` on, with an opening quote or bracket before it; "" for none."""
    if at == 0 or at >= len(tokens):
        return "" if at else text
    start = tokens[at][1]
    while start and text[start - 1] not in " \t\n,;:.!?":
        start -= 1
    return text[start:]


#: An order at the end of a statement has so few words.
SHORT_TAIL = 4
_AT_HAND = frozenset("it this that them these those everything".split())


def trimmed(text: str) -> str:
    """A statement without the words that open or close it and mean nothing on their own; whole if nothing else is
    left."""
    head = text
    for _ in range(3):
        body = parse(head).body
        if body == head or _content(body) < 2:
            break
        head = body
    words = [word for word in tokenise(head[-60:]) if word[0][0].isalnum()]
    for size in (2, 1):
        if len(words) > size and "_".join(word for word, _ in words[-size:]) in (
            WORDS["closing"] | (WORDS["tag"] if _TAGGED.search(head) else frozenset())
        ):
            at = max(0, len(head) - 60) + words[-size][1]
            shorter = head[:at].rstrip(" ,;")
            head = shorter if _content(shorter) >= 2 else head
            break
    before, comma, after = head.rpartition(", ")
    if comma and _content(before) >= 2 and _is_order_at_hand(after) and parse(before).kind == "states":
        return before  # what is wrong, and what is to be done about it now
    return head


def _is_order_at_hand(text: str) -> bool:
    """Whether a text is a few words that order something done about what was just said: "fix it", "can you check"."""
    sentence = parse(text)
    plain = [word for word in sentence.words if word[0].isalnum()]
    at_hand = len(plain) == 1 or not _AT_HAND.isdisjoint(plain) or bool(begins("request.en", plain))
    return sentence.kind == "orders" and not sentence.lasting and len(plain) <= SHORT_TAIL and at_hand


def _content(text: str) -> int:
    """How many words of a text say something."""
    return sum(len(word) > 1 or not word.isascii() for word, _ in tokenise(text) if word[0].isalnum())


#: Fewest tokens of a rule that follows an order.
MIN_CLAUSE = 4


def clauses(text: str) -> list[str]:
    """Splits a sentence where an aside or a rule follows an order, a question or another statement."""
    tokens = tokenise(text[:MAX_READ])
    all_words = [word for word, _ in tokens]
    start = 0
    parts: list[str] = []
    for at in range(2, len(tokens) - 2):
        mark = all_words[at - 1]
        if mark not in ",;:-–—" and mark not in ("and", "but"):
            continue
        ahead = at + (all_words[at] in ("and", "but", "also", "oh"))
        is_aside = mark in ",;:-–—" and phrase_size(WORDS["aside"], all_words[ahead : ahead + 3])
        lays_down = phrase_size(WORDS["lays_down"], all_words[at : at + 3])
        is_joined = mark in ("and", "but", ";") or lays_down > 1
        if not is_aside and not (lays_down and is_joined and len(tokens) - at >= MIN_CLAUSE):
            continue
        before = text[tokens[start][1] : tokens[at - 1][1]].rstrip(" ,;:-–—")
        read = parse(before)
        # What gives the reason for an order that decides something belongs to it: "keep it short, I don't like essays".
        if is_aside or read.kind == "asks" or (read.kind == "orders" and not (mark == "," and _decides(read.words))):
            parts.append(before)
            start = at
    return [*parts, text[tokens[start][1] :]] if parts else [text]


def has(word_class: str, language: str, text: str) -> bool:
    """Whether a text holds a word of a class in its language."""
    return holds(word_class, language, split_words(text), text)


# --- lead-in


def _behind_lead(words: Sequence[str], language: str, leads: Sequence[frozenset[str]]) -> tuple[int, bool]:
    """Behind how many words a sentence says what it says, and whether one of them asks to remember it."""
    at = taken = 0
    behind, remembers = 0, False  # `behind`: the last word of the lead-in
    while at < len(words):
        if not words[at][0].isalnum() and words[at][0] not in "`$_":
            at += 1
            continue
        ahead = words[at : at + 5]
        taken = max(phrase_size(phrases, ahead) for phrases in leads)
        request = phrase_size(WORDS["remember"], ahead)
        if request and words[at + request : at + request + 1] and words[at + request] not in WORDS["recall"]:
            taken, remembers = max(taken, request), True
        if not taken:
            taken = max(phrase_size(WORDS["interjection"], ahead), phrase_size(WORDS["refutes"], ahead))
            if not taken and language != "en" and words[at] in DIALOGUE:
                taken = 1
            if taken and not _stands_alone(words[at + taken : at + taken + 3], language, before=words[at]):
                taken = 0
        if not taken:
            break
        at = behind = at + taken
    while behind and behind < len(words) and words[behind] in ",;:.!?-–—…()":
        behind += 1
    return behind, remembers


def _stands_alone(behind: Sequence[str], language: str, *, before: str) -> bool:
    """Whether an interjection is separate from the words after it: a mark, another interjection or a request follows.

    "No" and the like may belong to a noun that is also a verb ("no build artifacts"): before a verb only assent is
    separate.
    """
    if not behind or not behind[0][0].isalnum():
        return True
    names = ["interjection", "connective"]
    if language == "en":
        names += ["request.en", "subject.en", "aux.en", "wh.en", *(["order.en"] if before in _ASSENT else [])]
    return any(phrase_size(WORDS[name], behind) for name in names)


# --- what it does


def _kind(
    head: str,
    body: str,
    all_words: Sequence[str],
    words: Sequence[str],
    language: str,
    lasting: Lasting,
    speaker: Speaker,
    *,
    is_of_moment: bool,
) -> Kind:
    if _PRINTED.search(head) or _is_data(head):
        return "printed"
    plain = [word for word in all_words if word[0].isalnum()]
    if not plain:
        return "printed"
    if all(map(_is_dialogue, plain)):
        return "assents"
    if speaker == "assistant" and phrase_size(WORDS["narrates.en"], split_words(body)[:4]):
        return "narrates"
    if _counts_tests(plain) or (not lasting and _is_status(plain)):
        return "reports"
    if speaker == "assistant" and (_INVENTORY.search(head) or _tells_deed(split_words(body))):
        return "reports"
    marked = ends_with_question(head)
    if language != "en":
        return _kind_in(language, words, head, marked, lasting, is_of_moment=is_of_moment)
    if (kind := _asked_or_ordered(words, marked, lasting, is_of_moment=is_of_moment)) is not None:
        return kind
    return "states"


def _is_data(head: str) -> bool:
    """Whether a text is a piece of JSON, of a table or of markup: nothing in it is said outside of values and cells."""
    if _DATA_MARK.search(head) and not any(map(str.isalpha, _VALUE.sub("", head))):
        return True
    bare = _CODE.sub("x", head) if "|" in head else ""
    is_row = bool(bare) and (_CELL_END.search(bare) is not None or bare.count(" | ") >= MIN_BARS)
    return is_row or (head[:1] == "<" and _TAGS.match(head) is not None)


#: Words that follow the number in a count of tests, within COUNTED_WITHIN words.
_COUNTED = frozenset("pass passed passes passing failed failures skipped".split())
COUNTED_WITHIN = 3


def _counts_tests(plain: Sequence[str]) -> bool:
    """Whether a sentence counts tests: "14 unit tests passed"."""
    numbers = (at for at, word in enumerate(plain) if word.isdigit())
    return any(not _COUNTED.isdisjoint(plain[at + 1 : at + 1 + COUNTED_WITHIN]) for at in numbers)


def _tells_deed(words: Sequence[str]) -> bool:
    """Whether a sentence tells what its speaker has just done: "I've now added ..."."""
    is_own = words[:1] != () and words[0] in ("i", "we", "i've", "we've")
    rest = dropwhile(lambda word: word in ("have", "also", "now", "just", "then"), words[1:])
    return is_own and phrase_size(WORDS["did.en"], tuple(rest)[:3]) > 0


def _is_status(plain: Sequence[str]) -> bool:
    """Whether a sentence says nothing but that checks passed."""
    checks, passes = WORDS["checks.en"], WORDS["passes.en"]
    telling = [word for word in plain if not word.isdigit() and word not in WORDS["beside_checks.en"]]
    return (
        len(plain) <= STATUS_WORDS
        and WORDS["inquire.en"].isdisjoint(plain[:1])  # "check tests are green" asks for it
        and not passes.isdisjoint(telling)
        and all(word in checks or word in passes for word in telling)
    )


#: Most characters of words of dialogue that are written without spaces.
LONGEST_RUN = 24


def _is_dialogue(word: str) -> bool:
    """Whether a word is one of dialogue, or in Chinese, Japanese or Korean a row of them."""
    if word in DIALOGUE or word in WORDS["interjection"]:
        return True
    if word[0] < "\u3040" or len(word) > LONGEST_RUN:
        return False
    return any(word[:at] in DIALOGUE and _is_dialogue(word[at:]) for at in range(len(word) - 1, 0, -1))


#: Characters of the end of a sentence that tell whether it asks.
ENDING = 500


def ends_with_question(head: str) -> bool:
    """Whether a sentence ends with a question mark of any script, also where a remark in brackets follows it."""
    head = head[-ENDING:]
    tail = takewhile(lambda character: not character.isalnum(), reversed(head))
    if not _QUESTION_MARKS.isdisjoint(tail):
        return True
    remark = _REMARK.search(head)
    return remark is not None and head[: remark.start()].rstrip()[-1:] in _QUESTION_MARKS and remark.start() > 0


def _kind_in(
    language: str, words: Sequence[str], head: str, marked: bool, lasting: Lasting, *, is_of_moment: bool
) -> Kind:
    """The kind of a sentence that is not English."""
    if marked or head.startswith("¿"):
        return "asks"
    if language in UNSPACED and holds("asks", language, words, head):
        return "asks"
    if language in SPACED and begins(f"asks.{language}", words):
        return "asks"
    may_last = lasting in RULES and not holds("now", language, words, head)
    if language in SPACED and not may_last and begins(f"order.{language}", words):
        return "orders"
    if lasting == "ban" and (is_of_moment or _has_now(language, words, head)):
        return "orders"
    return "states"


def _asked_or_ordered(words: Sequence[str], marked: bool, lasting: Lasting, *, is_of_moment: bool) -> Kind | None:
    """Whether an English sentence asks or orders; None for neither."""
    if not words:
        return None
    first = words[0]
    second = words[1] if len(words) > 1 else ""
    requested = begins("request.en", words)
    if (
        requested
        and not (lasting == "ban" and words[requested : requested + 1] == ("not",))
        and not (requested == 2 and second == "we" and not is_verb(words[2:3]))
    ):
        return "orders"
    if marked or begins("wonder.en", words) or _ponders(words):
        return "asks"
    subjects = WORDS["subject.en"]
    if first in WORDS["wh.en"] and not (second in subjects and first == "what"):
        return "asks"
    if first in WORDS["when.en"] and second in WORDS["aux.en"]:
        return "asks"
    if (
        first in WORDS["aux.en"]
        and (second in subjects or second[:1] in "[`")
        and not (first in ("do", "don't") and second not in ("i", "you", "we", "they"))
        and not (first == "don't" and second == "you")  # "don't you dare"
    ):
        return "asks"
    is_bound = holds("condition", "en", words, "") and first not in WORDS["halts"]  # "wait until ..." is soon over
    if is_verb(words[:1]) and not _is_noun(words) and lasting not in RULES and not is_bound:
        return "orders"
    if lasting == "ban" and (is_of_moment or _has_now("en", words, "")):
        return "orders"
    if is_of_moment and first in ("don't", "dont", "do", "never"):
        return "orders"
    if first[0] == "`" and " " in first and not second[:1].isalnum():  # a command, and what it is for
        return "orders"
    return None


#: A speaker's question to themselves begins within this number of words.
PONDERED_WITHIN = 9
_SELF = frozenset(
    "on i i'm we we're let me let's us am are still not don't can't keep to just now need should have want".split()
)


def _ponders(words: Sequence[str]) -> bool:
    """Whether the speaker asks themselves a question: "let me think about whether", "I keep wondering if"."""
    at = next((at for at, word in enumerate(words[:PONDERED_WITHIN]) if word in ("whether", "if")), 0)
    pondering = [word for word in words[:at] if word in WORDS["ponder.en"]]
    others = {word for word in words[:at] if word not in WORDS["ponder.en"] and word not in WORDS["adverb"]}
    return bool(pondering) and not _SELF.isdisjoint(words[:2]) and others <= _SELF


def _ends_talk(words: Sequence[str]) -> bool:
    """Whether a sentence asks to leave a subject of the conversation: "no more talk of the roadmap"."""
    opens_so = (
        tuple(words[:2]) == ("no", "more")
        or words[:1] == ("enough",)
        or words[:1] == ("stop",)
        or words[:2] == ("let's", "not")
    )
    return opens_so and (words[1:2] == ("about",) or not WORDS["talk.en"].isdisjoint(words[1:6]))


def _opens_with_question(words: Sequence[str]) -> bool:
    asking = WORDS["wh.en"] | WORDS["when.en"] | WORDS["aux.en"]
    return bool(words) and (words[0] in asking or bool(phrase_size(WORDS["request.en"], words)))


def _is_noun(words: Sequence[str]) -> bool:
    """Whether the verb that a sentence begins with is a noun: a finite verb agrees with it before its clause ends."""
    if words[0] in WORDS["verb_only.en"]:
        return False
    for at, word in enumerate(words[1 : NOUN_WITHIN + 1], 1):
        if word in WORDS["finite.en"]:
            return True
        if at > 1 and word in ("to", "for", "of"):
            continue
        if word in WORDS["closed.en"] or not word[0].isalnum():
            return False
        before = words[at - 1]
        if (word.removesuffix("s") in WORDS["stative.en"]) and word.endswith("s") != before.endswith("s"):
            return True
    return False


def _has_now(language: str, words: Sequence[str], head: str) -> bool:
    """Whether a ban says that it holds now: "don't commit again"."""
    text = " ".join(words).replace("from now on", "")
    return holds("now", language, text.split(), head)


# --- whether it lasts


def _lasting(language: str, words: Sequence[str], head: str, refutes: bool) -> Lasting:
    if language == "en" and (_ends_talk(tuple(words)) or (refutes and picks_at_hand(words))):
        return ""
    if language == "en" and stops_habit(words):
        return "ban"
    if language == "en" and words[:1] == ("no",) and len(words) > 2 and WORDS["nothing.en"].isdisjoint(words):
        return "ban"
    if language == "en" and refutes and words and words[0] in WORDS["choose.en"] and words[1:2] != ("it",):
        return "choice"
    lasting: Lasting = next(
        (
            name
            for name in LASTING
            if holds(name, language, words, head)
            and not (name == "role" and is_of_program(words))
            and not (name == "ban" and holds("tells", language, words, head))
        ),
        "",
    )
    is_wish = lasting not in RULES and language == "en" and is_standing_wish(words)
    return "taste" if is_wish else lasting


#: The subject of a sentence about a role is named within this number of words.
NAMED_WITHIN = 5


def is_of_program(words: Sequence[str]) -> bool:
    """Whether the subject of an English sentence is a part of a program: "the Go client", and no person or team."""
    for at, word in enumerate(words[:NAMED_WITHIN]):
        if word in WORDS["finite.en"] | WORDS["role.en"]:
            return False
        if word in WORDS["program.en"] and at and WORDS["group.en"].isdisjoint(words[at + 1 : at + 2]):
            return at > 1 or word != "client"  # one who pays is "our client" as well
    return False


#: The indirect question of an order begins within this many words after its verb: "check in the code whether".
ASKED_WITHIN = 4


def _without_indirect_question(words: Sequence[str]) -> Sequence[str]:
    """The words of a sentence without an indirect question: "which database we use" says nothing about what is used.

    The verb that asks opens the sentence, or follows a mark, "and" or a request.
    """
    for at, word in enumerate(words):
        opens_clause = at == 0 or not words[at - 1][0].isalnum() or words[at - 1] in _BEFORE_ORDER
        if word not in WORDS["inquire.en"] or not opens_clause:
            continue
        for behind in range(at + 1, min(at + ASKED_WITHIN, len(words))):
            if words[behind] in _ASKING:
                end = next((end for end in range(behind, len(words)) if words[end] in ".,;:!?"), len(words))
                return (*words[:behind], *words[end:])
            if not words[behind][0].isalnum():
                break
    return words


_ASKING = WORDS["wh.en"] | WORDS["when.en"] | {"whether", "if"}
_BEFORE_ORDER = frozenset("and then please you just to".split())


def _is_refused(language: str, head: str) -> bool:
    """Whether a sentence of another language than English opens with a refusal, which a mark ends where words have
    spaces."""
    folded = head.casefold()
    refusals = [word for word in WORDS.get(f"wrong.{language}", ()) if folded.startswith(word)]
    return any(language in UNSPACED or folded[len(word) : len(word) + 1] in (",", ".", "!", ";") for word in refusals)


# --- what callers ask of a sentence

#: An order of so few words is one of the moment.
SHORT_ORDER = 5
#: A rule names its object within this many words after its verb.
OBJECT_WITHIN = 3
#: Phrases of a request, wherever they are in a sentence; "you can" is one only at the beginning.
_TO_ANOTHER = ("can y", "could", "would", "will ")
_ASKED_FOR = frozenset(phrase for phrase in WORDS["request.en"] if not phrase.startswith("you_"))


def is_passing(text: str, speaker: Speaker) -> bool:
    """Whether a sentence states nothing that lasts: a question, a report, narration, printed text, a user's short
    order."""
    sentence = parse(text, speaker)
    if sentence.kind == "orders" and speaker == "user":
        is_short = sum(word[0].isalnum() for word in sentence.words) <= SHORT_ORDER
        return is_short and not sentence.lasting and not _decides(sentence.words)
    return sentence.kind in ("asks", "reports", "narrates", "printed")


def states_something(text: str) -> bool:
    """Whether a sentence says how something is or is done; a question, printed text and an order for once do not."""
    sentence = parse(text)
    if sentence.settles:
        return True
    if sentence.kind in ("asks", "printed", "assents") or request_in(text)[:5].casefold() in _TO_ANOTHER:
        return False
    return (
        sentence.kind != "orders" or sentence.lasting in RULES or _decides(sentence.words) or is_rule_of_kind(sentence)
    )


def is_of_several(sentence: Sentence) -> bool:
    """Whether an order is one of several people to themselves: "let's only do the first for now"."""
    return bool(phrase_size(WORDS["of_several.en"], sentence.words))


def _decides(words: Sequence[str]) -> bool:
    """Whether an order decides something for good: "let's drop the importer", "use tabs"; "let's check it" does not."""
    size = phrase_size(WORDS["of_several.en"], words)
    if size:
        return (
            words[size : size + 1] != ()
            and not {"also", "first"} & {words[size]}
            and words[size] not in WORDS["tackle.en"]
        )
    return bool(words) and words[0] in WORDS["habit.en"] and not WORDS["pronoun.en"] & set(words[1:2])


def is_rule_of_kind(sentence: Sentence) -> bool:
    """Whether an order says how things of a kind are done: "put migrations under db/"."""
    if (
        not sentence.words
        or sentence.words[0] not in WORDS["manner.en"]
        or not WORDS["at_hand.en"].isdisjoint(sentence.words)
    ):
        return False
    objects = sentence.words[1 : OBJECT_WITHIN + 2]
    return any(
        word.endswith("s") and not word.endswith("ss") and behind in WORDS["place.en"]
        for word, behind in zip(objects, sentence.words[2:], strict=False)
    )


#: The end of a clause, and the mark that replaced a secret.
_CLAUSE_END = re.compile(r"[,;:.!?](?=\s|$)|\s[-–—]+\s")
_REDACTED = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")
#: A sentence with a secret says something else with this many other words that have a meaning.
MIN_BESIDE_SECRET = 5
#: A rule with a secret needs only this many.
MIN_LAID_DOWN = 3
_COPULA = frozenset("is are was were".split())


def holds_only_redacted(text: str) -> bool:
    """Whether all that a sentence says is a secret, which was redacted, and whose it is.

    A clause whose value is the secret ("the token is [redacted]") says no more than that, however many words name it.
    """
    if "[redacted:" not in text:
        return False
    count = 0
    for clause in _CLAUSE_END.split(text):
        value, *behind = _REDACTED.split(clause)
        words = [word for word, _ in tokenise(value) if word[0].isalnum()]
        is_value = bool(behind) and (not words or words[-1] in _COPULA)
        tails = [word for part in behind for word, _ in tokenise(part) if word[0].isalnum()]
        count += sum(word not in ENGLISH for word in (tails if is_value else [*words, *tails]))
    return count < (MIN_LAID_DOWN if parse(text).lasting else MIN_BESIDE_SECRET)


def request_in(text: str) -> str:
    """What a sentence asks for, from the words of the request on; "" for one that asks for nothing."""
    if not openings(_ASKED_FOR) & set(split_words(text)):
        return ""
    tokens = tokenise(text[:MAX_READ])
    words = [word for word, _ in tokens]
    return next(
        (text[start:] for at, (_, start) in enumerate(tokens) if phrase_size(_ASKED_FOR, words[at : at + 4])), ""
    )


def refers_back(sentence: Sentence) -> bool:
    """Whether a sentence is about something that was named before it: unclear to anyone who was not there."""
    words = sentence.words
    if words[:1] in (("the",), ("your",)) and words[1:2] and words[1] in WORDS["thing.en"]:
        words = words[1:]
    elif not words or words[0] not in WORDS["pronoun.en"]:
        return False
    verb = words[1] if len(words) > 1 else ""
    return verb in WORDS["finite.en"] or verb in WORDS["of_it.en"]


def opens(word_class: str, language: str, text: str) -> bool:
    """Whether a text of a language begins with a word of a class, after any punctuation."""
    return bool(_opening(_phrases(word_class, language), text)[1])


def behind(word_class: str, language: str, text: str) -> str:
    """A text without the words of a class that it begins with, and the marks after them; "" if it begins with none."""
    tokens, end = _opening(_phrases(word_class, language), text)
    while 0 < end < len(tokens) and tokens[end][0] in ",;:.!-–—":
        end += 1
    return _from(text, tokens, end) if end else ""


def _phrases(word_class: str, language: str) -> frozenset[str]:
    """The phrases of a class in a language, or in every language if the class is of none."""
    named = f"{word_class}.{language}"
    return WORDS[named if named in WORDS else word_class]


def _opening(phrases: frozenset[str], text: str) -> tuple[Sequence[tuple[str, int]], int]:
    """(tokens of a text, the index after the longest of some phrases that it begins with, 0 for none)."""
    tokens = tokenise(text[:MAX_READ])
    words = [word for word, _ in tokens]
    first = next((at for at, word in enumerate(words) if word[0].isalnum()), 0)
    size = phrase_size(phrases, words[first : first + 4])
    return tokens, first + size if size else 0


def is_imperative(sentence: Sentence) -> bool:
    """Whether a sentence has the form of an order, whether of the moment or for good."""
    return sentence.kind == "orders" or (
        sentence.kind == "states" and is_verb(sentence.words[:1]) and not _is_noun(sentence.words)
    )


#: An objection says within this many words that something is amiss.
AMISS_WITHIN = 6


def objects(text: str) -> bool:
    """Whether the speaker objects to what was just done or said: "no, ...", "why did you ...", "the column is not
    right"."""
    sentence = parse(text)
    if sentence.refutes or opens("objects", "en", sentence.core):
        return True
    words = sentence.words[:AMISS_WITHIN]
    is_of_thing = bool(words) and (words[0] == "the" or words[0] in WORDS["pronoun.en"])
    return is_of_thing and any(
        phrase_size(WORDS["amiss.en"], words[at : at + 3])
        and (at == 1 or words[at - 1] == "still" or words[at - 1] in WORDS["finite.en"])
        for at in range(1, len(words))
    )


#: Words that ask for what follows them; "we should" belongs to it.
_COURTESY = (
    WORDS["request.en"] | WORDS["insist.en"] | {phrase for phrase in WORDS["wants.en"] if phrase.endswith("_to")}
)


_ONCE_MORE = frozenset("still again yet already".split())


def complains(sentence: Sentence) -> bool:
    """Whether a sentence only says of the thing at hand that it goes wrong, or still does: "it still shows two
    rows"."""
    is_at_hand = bool(sentence.words) and sentence.words[0].partition("'")[0] in WORDS["pronoun.en"]
    goes_wrong = not (_ONCE_MORE | WORDS["trouble.en"]).isdisjoint(sentence.words)
    return is_at_hand and goes_wrong and not sentence.lasting and sentence.kind == "states"


def bare_order(text: str, *, sets_out: bool = False) -> str:
    """What is to be done, without greetings and the words of the request; whole if nothing else is there.

    With `sets_out` also without the words that only begin it: "get going on the ledger" is "the ledger".
    """
    courtesy = _COURTESY | WORDS["set_out.en"] if sets_out else _COURTESY
    head = parse(text).body or text
    tokens = tokenise(head[:MAX_READ])
    words = [word for word, _ in tokens]
    at = end = 0
    while at < len(words):
        if size := phrase_size(courtesy, words[at : at + 4]):
            end = at + size
        elif size := phrase_size(WORDS["connective"] | WORDS["adverb"], words[at : at + 4]):
            end = at + size if is_imperative(parse(_from(head, tokens, at + size).rstrip(" ?"))) else end
        elif words[at][0].isalnum() or words[at][0] in "`$_/":
            break
        at += size or 1
    while end and end < len(words) and words[end] in ",;:.!?-–—…":
        end += 1
    return _from(head, tokens, end) or text


def tells_what_was_done(text: str) -> bool:
    """Whether the speaker tells what they did: "I fixed ...", "Moved ..."."""
    sentence = parse(text, "assistant")
    return sentence.kind == "reports" or opens("did", "en", sentence.core) or has("landed", "en", text)


_MANNER = WORDS["manner.en"] - {"commit", "push"}


def is_task(sentence: Sentence) -> bool:
    """Whether a sentence orders or wants something made or changed, which is done once it is there: "add a filter".

    With a limit, an exception, a condition or for each of several it lays that down, and with a verb of habit how things are done.
    """
    if (
        sentence.language != "en"
        or sentence.words[:2] == ("do", "not")
        or has("limits", "en", sentence.core)
        or has("condition", "en", sentence.core)
    ):
        return False
    words = sentence.words if is_verb(sentence.words[:1]) else parse(bare_order(sentence.text)).words
    at = next((at for at, word in enumerate(words) if word in ("we", "i")), None)
    if not is_verb(words[:1]) and at is not None:
        words = words[at + 1 :]
        size = phrase_size(WORDS["obliges.en"], words)
        words = tuple(dropwhile(lambda word: word in ("also", "just", "then"), words[size:])) if size else ()
    is_made = is_verb(words[:1]) and words[0] not in WORDS["habit.en"] and words[:2] != ("make", "sure")
    return is_made and (words[0] not in _MANNER or words[1:2] in (("the",), ("a",), ("an",), ("up",)))


_ABOUT_TO = frozenset((lead, doer) for lead in ("should", "shall", "can", "could", "may") for doer in ("i", "we"))
_ABOUT_TO |= {("me", "to"), ("you", "to"), ("ready", "to"), ("want", "to")}


def is_about_errand(sentence: Sentence) -> bool:
    """Whether a question is about what is done once or next: "shall I run the tests or commit?", "what should I open?"."""
    words = sentence.words
    errands = WORDS["done_once.en"] if "or" in words else WORDS["done_once.en"] | WORDS["tackle.en"]
    own = [word for lead, doer, word in zip(words, words[1:], words[2:], strict=False) if (lead, doer) in _ABOUT_TO]
    return not (errands | {"do"}).isdisjoint(own) or not {"first", "next", "now"}.isdisjoint(words)


def may_be_order(text: str, *, is_asked: bool) -> bool:
    """Whether a text is an order; after the words of a request any verb begins one."""
    sentence = parse(text)
    if sentence.kind == "orders" or not is_asked:
        return sentence.kind == "orders"
    classes = ("subject.en", "wh.en", "when.en", "aux.en", "closed.en", "finite.en")
    return (
        sentence.kind == "states"
        and bool(sentence.words)
        and not any(sentence.words[0] in WORDS[name] for name in classes)
    )
