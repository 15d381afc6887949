"""What a user's statement is worth at a session's start, by the evidence that it lasts; pure.

Only what the user said, picked or accepted is told unasked. A table names the evidence, what it is worth, and over how
many sessions of its project it fades; whatever tells a statement, and whatever says when it is told, asks here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from csmd.extraction import statement_context
from csmd.knowledge import Memory
from csmd.recall import compose
from csmd.text import prose
from csmd.text.decisions import explains
from csmd.text.display import ARROW
from csmd.text.orders import is_about_errand, is_task
from csmd.text.sentence import (
    RULES,
    Lasting,
    Sentence,
    ends_with_question,
    find_request,
    has,
    is_imperative,
    opens,
    parse,
    refers_back,
    without_opening,
)
from csmd.text.sentence_words import UNSPACED
from csmd.text.similarity import compare, gist, is_twin, share
from csmd.text.tokens import content_words
from csmd.vocabulary import Authority, Gate


class Evidence(NamedTuple):
    """A reason to tell a user's statement: its worth, after how many sessions of its project half of it, and most in a brief."""

    why: str
    worth: float
    halves: float
    most: int
    shows: Callable[[Memory], bool]


class Worth(NamedTuple):
    """What a statement is worth now, 0 if it is not shown; `why` is the evidence for it, or the reason against it.

    At most `most` are shown by that evidence at one start; unused, it stays for `left` more sessions of its project.
    """

    value: float
    why: str
    most: int = 0
    left: float = 0.0


#: What a promise for a day is worth until then.
PROMISED = Worth(0.8, "promised for a day to come", 3, math.inf)
#: Why a statement is not told for which there is no evidence, and nothing against it.
PLAIN = "nothing says that it lasts"
#: What is worth less is not told.
MIN_WORTH = 0.3
#: A longer sentence is an explanation, and no rule; with its cause it may be longer.
LONGEST_RULE, LONGEST_REASON = 160, 220
#: A question of fewer content words does not say what it is about.
MIN_ASKED = 2
#: Fewer words tell nothing by themselves, and lay nothing down without a strict word.
MIN_WORDS, MIN_LAID_DOWN = 3, 5
#: The words that make a rule one for always may be among this number of words at its end.
ENDING_WORDS = 3
#: In so many sessions something was said again.
SAID_AGAIN = 2
#: What needs no strict word: who is in charge of something, and what somebody likes.
_STRICT: frozenset[Lasting] = frozenset({"role", "taste"})
_WOULD = frozenset({"i'd", "i'm", "i've", "i'll"})
#: What opens an order for the moment, or a complaint.
_AT_HAND = frozenset({"only", "still"})
#: What was so tells how something went.
_PAST = frozenset({"was", "were"})
_DENYING = frozenset("no not nobody nothing none cannot without".split())
_ASKS = re.compile(r"[?？؟]")


def is_pick(memory: Memory) -> bool:
    """Whether it is what the user answered to a question, or took of a list or a proposal, of the assistant's."""
    return memory.is_personal and ARROW in memory.text


def was_asked_to_remember(memory: Memory) -> bool:
    """Whether a statement counts as lasting though it is no rule: its speaker asked to keep it in mind.

    What was said in several sessions is durable for that alone.
    """
    is_rule = any(parse(text).lasting in RULES for text in (*prose.split_sentences(memory.text), memory.text))
    is_explicit = memory.tier == "durable" and len(memory.sessions) < SAID_AGAIN
    return memory.decay == "permanent" or (is_explicit and not is_rule and memory.gate != "correction")


def _is_choice(memory: Memory) -> bool:
    """Whether an answer decides something: permission for an errand, or the like, is soon done.

    A mere yes decides what its question proposes.
    """
    question, _, answer = memory.text.rpartition(ARROW)
    if not is_pick(memory) or not ends_with_question(question):
        return False
    last = parse(prose.split_sentences(question)[-1], "assistant")
    is_offer = opens("offers", "en", last.text) and not ("or" in last.words and opens("wish_asked", "en", last.text))
    if is_offer or parse(answer).kind == "assents":
        return _lays_down(memory, strictly=False)
    is_own = last.kind in ("narrates", "reports") or is_about_errand(last)
    return len(content_words(question)) >= MIN_ASKED and not is_own


def _lays_down(memory: Memory, *, strictly: bool) -> bool:
    """Whether a sentence says that something is so from now on: `strictly` in words that allow no exception, or who is in charge.

    A liking counts only where it is of the user, wherever they are: in the middle of work it is one of the moment.
    """
    is_everywhere, reads = memory.scope != "project", _sentences(memory)
    is_passing = any(
        read.is_of_moment or (read.kind == "orders" and not read.lasting and not strictly) for read in reads
    )
    return not is_passing and any(
        read.lasting
        and len(read.text) <= LONGEST_RULE
        and (
            is_everywhere
            or read.words[:2] == ("i", "prefer")
            or not (read.lasting == "taste" or read.words[:1] == ("i",))
        )
        and _is_said_of_things(read)
        and (strictly or not is_task(read))
        and (read.lasting in _STRICT or _is_strict(read) if strictly else len(read.words) >= MIN_LAID_DOWN)
        for read in reads
    )


def _is_for_always(memory: Memory) -> bool:
    """Whether a rule for people says itself that it holds at all times; "the ref is never deleted" says how something is."""
    return _lays_down(memory, strictly=True) and any(
        read.lasting in RULES
        and has("at_all_times", "en", read.core)
        and (is_imperative(read) or opens("for_people", "en", read.core) or _says_always(read))
        for read in _sentences(memory)
    )


def _says_always(read: Sentence) -> bool:
    """Whether a sentence begins or ends with words that say that it holds at all times."""
    ending = " ".join(read.core.split()[-ENDING_WORDS:])
    return opens("at_all_times", "en", read.core) or has("at_all_times", "en", ending)


def _is_decision(memory: Memory) -> bool:
    """Whether a sentence says that something was decided, as a choice or as a switch from one thing to another."""
    reads = _sentences(memory)
    settles = any(read.lasting == "choice" and has("settled", "en", read.core) for read in reads)
    is_settled = memory.category == "decision" and settles and _lays_down(memory, strictly=False)
    whole = parse(
        compose.durable_text(memory) if reads else ""
    )  # two sentences may say together that one thing is left for another
    return is_settled or any(
        (read.settles or _amends(read)) and len(read.text) <= LONGEST_RULE and _is_said_of_things(read)
        for read in (*reads, whole)
    )


def _amends(read: Sentence) -> bool:
    """Whether a sentence corrects what was said, and does not order or ask for something at hand."""
    amended = parse(without_opening("amends", "en", read.text)) if opens("amends", "en", read.text) else read
    return amended is not read and amended.kind == "states" and not amended.is_of_moment


def _denies(read: Sentence) -> bool:
    return not _DENYING.isdisjoint(read.words) or any(word.endswith("n't") for word in read.words)


def _is_explained(memory: Memory) -> bool:
    """Whether a sentence states a limit, what is always so or what is not, and why: it holds as long as its cause."""
    return len(memory.text) <= LONGEST_REASON and any(
        read.language == "en"
        and (_is_strict(read) or _denies(read) or any(map(str.isdigit, read.core)))
        and _is_said_of_things(read)
        and explains(read.words)
        for read in _sentences(memory)
    )


def _sentences(memory: Memory) -> list[Sentence]:
    """The sentences of a statement; [] of a pick, whose words the assistant chose, except a mere yes.

    What lays something down before its arrow is no pick: "never rename A -> B".
    """
    question, _, answer = memory.text.rpartition(ARROW)
    if is_pick(memory) and parse(answer).kind != "assents" and not parse(question).lasting:
        return []
    return [parse(sentence) for sentence in prose.split_sentences(compose.durable_text(memory))]


def _is_said_of_things(read: Sentence) -> bool:
    """Whether a sentence says how things are, and not what its speaker thinks of or orders for the matter at hand."""
    words = read.body.casefold().split()
    is_routine = opens("routine", "en", read.core) and not _is_strict(read)
    is_at_hand = "just" in words or not _AT_HAND.isdisjoint(words[:2]) or is_routine
    is_plain = read.kind in ("states", "orders") and not (read.is_of_moment or read.is_musing)
    refers = _first_word(read) == "it" or refers_back(read) or _announces(read.text)
    if read.settles:  # what was so, what went wrong with it and who changed it belong to what is so now
        return is_plain and not (is_at_hand or refers or _ASKS.search(read.text))
    is_over = not _PAST.isdisjoint(read.words)
    is_in_doubt = has("hedge", "en", read.core) or (has("failure", "en", read.core) and read.lasting not in RULES)
    return is_plain and not (is_over or is_at_hand or refers or is_in_doubt or _thinks(read) or _ASKS.search(read.text))


def _announces(text: str) -> bool:
    """Whether what a text is about comes only behind it."""
    return text.rstrip().endswith(":")


def _first_word(read: Sentence) -> str:
    """What a sentence begins with: "it" of "it's"."""
    return read.words[0].partition("'")[0] if read.words else ""


def _thinks(read: Sentence) -> bool:
    """Whether a sentence tells what its speaker thinks, did or would like, and no liking or rule of theirs."""
    first = read.words[0] if read.words else ""
    is_of_self = _first_word(read) == "i" and read.lasting not in _STRICT and not _is_strict(read)
    return first in _WOULD or is_of_self or has("musing", "en", read.core)


def _is_strict(read: Sentence) -> bool:
    """Whether a rule allows no exception; of other languages only words are known that allow none."""
    if read.language != "en":
        return read.lasting in ("ban", "rule")
    return read.lasting in RULES and has("unfailing", "en", read.core)


#: In the order in which evidence is looked for: the first that a statement shows is its own.
EVIDENCE: tuple[Evidence, ...] = (
    Evidence("pinned", 2.0, math.inf, 20, lambda memory: memory.pinned),
    Evidence("judged worth telling", 1.5, 12.0, 16, lambda memory: memory.tell == "starts" and memory.decay != "session"),
    Evidence("judged worth telling for days", 1.0, 3.0, 5, lambda memory: memory.tell == "starts"),
    Evidence("asked to remember", 1.6, math.inf, 20, was_asked_to_remember),
    Evidence("picked", 1.0, 6.0, 5, _is_choice),
    Evidence("said again", 1.5, math.inf, 10,
             lambda memory: len(memory.sessions) >= SAID_AGAIN and _lays_down(memory, strictly=False)),
    Evidence("said for always", 1.2, math.inf, 16, lambda memory: _is_for_always(memory)),
    Evidence("a rule without exception", 1.2, 12.0, 16, lambda memory: _lays_down(memory, strictly=True)),
    Evidence("decided", 1.0, math.inf, 12, _is_decision),
    Evidence("stated with its cause", 0.8, 12.0, 4, _is_explained),
    Evidence("lays something down", 0.7, 6.0, 3, lambda memory: _lays_down(memory, strictly=False)),
)  # fmt: skip
#: What is so instead of something that was said before, in whatever words.
REPLACES = Evidence("replaces what was said before", 1.0, math.inf, 8, lambda _: True)
#: What a later word in passing may have changed.
FIRM = frozenset({"pinned", "asked to remember", "said again", "said for always", "a rule without exception"})


def rate(memory: Memory, *, sessions_since: int, replaces: bool = False) -> Worth:
    """What a memory is worth, `sessions_since` it was last said or used in its project; `replaces`: another one, said before."""
    if against := _why_not(memory):
        return Worth(0.0, against)
    evidence = next((row for row in EVIDENCE if row.shows(memory)), REPLACES if replaces else None)
    if evidence is None:
        states = any(read.kind == "states" and not _thinks(read) for read in _sentences(memory))
        return Worth(0.0, PLAIN if states else "of the matter at hand")
    left = evidence.halves * math.log2(evidence.worth / MIN_WORTH) - sessions_since
    if left < 0:
        return Worth(0.0, "faded")
    return Worth(evidence.worth * 0.5 ** (sessions_since / evidence.halves), evidence.why, evidence.most, left)


#: What is not told where a model reads the sessions, and has not judged it.
WEAK = frozenset({"lays something down"})
#: Judgement -> why a start is not told it.
JUDGED: Mapping[str, str] = {
    "tasks": "judged worth telling where a task needs it",
    "never": "judged not worth telling",
    "noted": "a note is told in its place",
}


def _why_not(memory: Memory) -> str:
    if memory.tell and not memory.pinned:
        return JUDGED.get(memory.tell, "")
    if not (memory.is_personal or memory.pinned):
        return "an assistant said it"
    if memory.scene.startswith(statement_context.REVIEW) and not memory.pinned:
        return "a review said it"
    text = compose.standalone_text(memory)
    tells = len(text.split()) >= MIN_WORDS or (bool(text) and parse(text).language in UNSPACED)
    if not (memory.pinned or is_pick(memory) or tells):
        return "tells nothing by itself"
    return find_transience(memory)


# --- what was overtaken

#: A question with what it asks for in front: "which port should the gateway use" is about what the gateway uses.
_ASKED_FOR = re.compile(
    r"(?:which|what|how|where|who|when)\b.*?\b(?:should|shall|do|does|will|would|can|is|are) (.+)", re.IGNORECASE
)
_REMARK = re.compile(r"\s*\([^()]*\)")
#: How the subject of a commit begins that mends something, in its body or as Conventional Commits write it.
_FIXES = re.compile(
    r"(?:bug|hot)?fix(?:es|ed)?(?:\([^)]*\))?!?:?\s+|(?:resolve|mend|repair|correct)[sd]?\s+", re.IGNORECASE
)
#: Least words of a question that tell what it is about; least share of a commit's words that name what it mends, and how many.
MIN_TWIN, MENDED_SHARE, MIN_MENDED = 2, 0.6, 2


def is_overtaken(memory: Memory, later: Sequence[tuple[str, str]], commits: Sequence[tuple[str, str]]) -> bool:
    """Whether what the user said or committed since ended a pick, or a commit mended what a statement complains of.

    `later` are the user's statements and `commits` the subjects of commits, with their times; older ones say nothing.
    """
    if memory.pinned:
        return False
    statements, done = ([text for at, text in texts if at > memory.confirmed_at] for texts in (later, commits))
    if is_pick(memory):
        return any(_turns_down(memory.text, text) for text in (*statements, *done))
    return any(_mends(memory, subject) for subject in done)


def answers_same(answer: str, other: str) -> bool:
    """Whether two answers are to one question."""
    questions = [gist(text.rpartition(ARROW)[0]) for text in (answer, other) if ARROW in text]
    return len(questions) == 2 and len(questions[0].stems) >= MIN_TWIN and is_twin(*questions)


def _turns_down(pick: str, later: str) -> bool:
    """Whether a later statement certainly or perhaps ends what a pick says."""
    question, _, answer = pick.rpartition(ARROW)
    answer = next(iter(prose.split_sentences(_REMARK.sub("", answer))), "")
    if ARROW in later or gist(answer).stems.isdisjoint(gist(later).stems):
        return False
    question = question.rstrip("?？ ")
    asked_for = _ASKED_FOR.match(question)
    claims = (pick, f"{asked_for[1] if asked_for else question + ':'} {answer}", f"we use {answer}")
    return any(compare(claim, later).contradicts for claim in claims)


def _mends(memory: Memory, subject: str) -> bool:
    """Whether a commit mends what a statement complains of; a rule holds on."""
    fixed, stems = _FIXES.match(subject), gist(memory.text).stems
    if fixed is None or any(parse(part).lasting for part in prose.split_sentences(memory.text)):
        return False
    named = gist(subject[fixed.end() :]).stems
    return len(named & stems) >= MIN_MENDED and share(named, stems) >= MENDED_SHARE


# --- what is soon over


class Transience(NamedTuple):
    """Why a statement is soon over: how a sentence shows it, whose it is ("" for anybody's), and in which gates (none: in all)."""

    why: str
    by: Authority | Literal[""]
    shows: Callable[[str], bool]
    gates: frozenset[Gate] = frozenset()


#: The only reason that leaves a correction out.
DOUBTED = "doubted"
#: What other projects do, which an assistant looked at.
_OF_OTHERS = re.compile(
    r"\b(?:across|among|in|of) (?:the |all |many |most |other |popular |\d{1,3} )*(?:projects|repos|repositories|tools)\b (?:that|which|studied|i looked)|\bmost (?:common|popular) [\w -]{1,40} (?:across|among|in)\b",
    re.IGNORECASE,
)


def _is_report(text: str) -> bool:
    """Whether a sentence tells what its speaker did, and nothing that is so by it."""
    read = parse(text, "assistant")
    is_own = read.kind == "reports" and opens("first_person", "en", read.core)
    return is_own or opens("reported", "en", read.core) or has("landed", "en", text)


def _is_of_the_present(text: str) -> bool:
    return has("present", "en", text) or opens("opens_present", "en", text)


def _is_asked_for(text: str) -> bool:
    return bool(find_request(text)) and not parse(text).settles


TRANSIENT: tuple[Transience, ...] = (
    Transience("about to change", "user", lambda text: _is_of_the_present(text) or has("mends", "en", text)),
    Transience("about to change", "assistant", _is_of_the_present),
    Transience(DOUBTED, "user", lambda text: has("doubt", "en", text)),
    Transience("done at once", "user", _is_asked_for, frozenset({"promissory"})),
    Transience("of other projects", "assistant", lambda text: _OF_OTHERS.search(text) is not None),
    Transience("a report", "assistant", _is_report),
)


def find_transience(memory: Memory) -> str:
    """Why a memory does not last, "" where it does."""
    if memory.pinned or memory.origin in compose.WHOLE or not memory.session_id:
        return ""
    reasons = [
        rule
        for rule in TRANSIENT
        if (rule.why == DOUBTED or memory.gate != "correction")
        and rule.by in ("", memory.authority)
        and (not rule.gates or memory.gate in rule.gates)
    ]
    # What a sentence says that is a rule lasts, whatever else it says.
    passing = [sentence for sentence in prose.split_sentences(memory.text) if not has("strict", "en", sentence)]
    return next((reason.why for reason in reasons if any(map(reason.shows, passing))), "")
