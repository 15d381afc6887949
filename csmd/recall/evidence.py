"""Rates a user's statement for a session's start by the evidence that it lasts; pure.

Only statements that the user made, picked or accepted are shown unasked. EVIDENCE lists the kinds of evidence, their worth,
and over how many sessions of the project it fades.
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
from csmd.text.corrections import read_claim
from csmd.text.decisions import explains, gives_reading, proposes_state, split_cause
from csmd.text.display import ARROW
from csmd.text.sentence import (
    RULES,
    Lasting,
    Sentence,
    ends_with_question,
    find_request,
    has,
    is_imperative,
    is_polite_ban,
    opens,
    parse,
    refers_back,
    says_again,
    without_opening,
)
from csmd.text.sentence_words import UNSPACED, WORDS, phrase_size, split_words
from csmd.text.similarity import compare, gist, is_twin, share
from csmd.text.switches import changes_mind
from csmd.text.tokens import content_words
from csmd.text.trimming import (
    allows_only,
    dislikes_kind,
    is_about_errand,
    is_task,
    opens_with_dislike,
    trim_courtesy,
)
from csmd.vocabulary import Authority, Gate


class Evidence(NamedTuple):
    """A reason to show a user's statement: its worth, the sessions until that halves, the most shown in a brief, its test."""

    why: str
    worth: float
    halves: float
    most: int
    shows: Callable[[Memory], bool]


class Worth(NamedTuple):
    """The worth of a statement, 0 if it is not shown; `why` is the evidence for it or the reason against it.

    At most `most` are shown by that evidence at one start; unused, the worth lasts `left` more sessions of the project.
    """

    value: float
    why: str
    most: int = 0
    left: float = 0.0


#: The worth of a promise for a day, until that day.
PROMISED = Worth(0.8, "promised for a day to come", 3, math.inf)
#: The reason if there is neither evidence for a statement nor a reason against it.
PLAIN = "nothing says that it lasts"
#: Statements of less worth are not shown.
MIN_WORTH = 0.3
#: A longer sentence is an explanation, not a rule; one with its cause may be longer.
MAX_RULE_CHARACTERS = 160
MAX_REASON_CHARACTERS = 220
#: A question of fewer content words does not name its subject.
MIN_QUESTION_WORDS = 2
#: A statement of fewer words is unclear by itself; one without a strict word needs more to lay something down.
MIN_WORDS = 3
MIN_RULE_WORDS = 5
#: Content words at the beginning of an alternative that name it.
MAX_NAMING_WORDS = 4
#: Words at the end of a rule in which "always" and the like count.
ENDING_WORDS = 3
#: Least number of sessions in which a repeated statement was made.
MIN_REPEATED_SESSIONS = 2
#: Lasting kinds that need no strict word: who is in charge of something, and what somebody likes.
_STRICT: frozenset[Lasting] = frozenset({"role", "taste"})
_I = frozenset({"i", "ich"})
_CONTRACTIONS_OF_I = frozenset({"i'd", "i'm", "i've", "i'll"})
#: A colon that leads to something, and none of a path or a time.
_COLON = re.compile(r":(?=[\s\"]|$)")
#: An option of a list that is not quoted.
_OPTION = re.compile(r"\boption (?:[a-e]|\d)\b", re.IGNORECASE)
#: Words that open an order for the moment, or a complaint.
_MOMENTARY = frozenset({"only", "still"})
#: Words of a report of how something went.
_PAST = frozenset({"was", "were"})
_DENYING = frozenset("no not nobody nothing none cannot without".split())
_CLAUSE_END = re.compile(r"[,;:.]\s")
_CLAUSE_MARKS = frozenset(",;:.")
_NUMBER = re.compile(r"\d[\d.,]*\b")
_REFUSING_OPENERS = frozenset("not keep leave".split())
_QUESTION_MARK = re.compile(r"[?？؟]")


def is_pick(memory: Memory) -> bool:
    """Whether a memory is the user's answer to a question, or choice from a list or proposal, of the assistant."""
    return memory.is_personal and ARROW in memory.text


def was_asked_to_remember(memory: Memory) -> bool:
    """Whether a statement that is not a rule lasts because its speaker asked to remember it.

    A statement of several sessions is durable for that alone.
    """
    is_rule = any(parse(text).lasting in RULES for text in (*prose.split_sentences(memory.text), memory.text))
    is_explicit = memory.tier == "durable" and len(memory.sessions) < MIN_REPEATED_SESSIONS
    return memory.decay == "permanent" or (is_explicit and not is_rule and memory.gate != "correction")


def _is_choice(memory: Memory) -> bool:
    """Whether an answer decides something, and is not permission for an errand.

    A mere yes decides the proposal in its question.
    """
    question, _, answer = memory.text.rpartition(ARROW)
    if not is_pick(memory):
        return False
    reply = parse(answer)
    is_nod = not any(map(str.isalnum, answer))
    if (is_nod or reply.kind == "assents") and proposes_state(split_words(question)):
        return True
    if not (ends_with_question(question) or question.endswith(":")):  # or the lead-in of a list
        return _takes_alternative(question, answer)
    last = parse(prose.split_sentences(question)[-1], "assistant")
    if opens("offers", "en", last.text) and (reply.refutes or not _REFUSING_OPENERS.isdisjoint(reply.words[:1])):
        return True  # acceptance.py keeps only refusals that hold for a while
    is_offer = opens("offers", "en", last.text) and not ("or" in last.words and opens("wish_asked", "en", last.text))
    if is_offer or reply.kind == "assents":
        return _lays_down(memory, strictly=False)
    is_own = last.kind in ("narrates", "reports") or is_about_errand(last) or has("asks_fact", "en", last.text)
    return len(content_words(question)) >= MIN_QUESTION_WORDS and not is_own


def _takes_alternative(alternative: str, answer: str) -> bool:
    """Whether an answer takes an alternative by the name with which this begins, and is no mere yes."""
    names = set(content_words(_CLAUSE_END.split(answer)[0])) - WORDS["keeping"]
    is_named = bool(names) and names.issubset(content_words(alternative)[:MAX_NAMING_WORDS])
    return is_named and parse(answer).kind == "states"


def _lays_down(memory: Memory, *, strictly: bool) -> bool:
    """Whether a sentence lays down something from now on; `strictly`: without exception, or who is in charge.

    A liking counts only if it holds in all projects, says "I prefer" or dislikes things of a kind: in the middle of work
    others are momentary.
    """
    sentences = _parse_sentences(memory)

    def is_passing(read: Sentence) -> bool:
        return (
            read.is_of_moment
            or gives_reading(read.words)
            or (read.kind == "orders" and not read.lasting and not strictly)
        )

    def is_rule(read: Sentence) -> bool:
        if not read.lasting or len(read.text) > MAX_RULE_CHARACTERS or not _is_about_things(read):
            return False
        is_liking = read.lasting == "taste" or read.words[:1] == ("i",)
        is_of_kind = read.words[:2] == ("i", "prefer") or dislikes_kind(read)
        if is_liking and not is_of_kind and (memory.scope == "project" or opens_with_dislike(read)):
            return False
        if strictly:
            return read.lasting in _STRICT or _is_strict(read) or (read.lasting in RULES and says_again(read))
        return not is_task(read) and len(read.words) >= MIN_RULE_WORDS

    return not any(map(is_passing, sentences)) and any(map(is_rule, sentences))


def _is_for_always(memory: Memory) -> bool:
    """Whether a rule for people says that it always holds; "the ref is never deleted" is no rule but a fact."""
    return _lays_down(memory, strictly=True) and any(
        read.lasting in RULES
        and has("at_all_times", "en", read.core)
        and (is_imperative(read) or opens("for_people", "en", read.core) or _says_always(read))
        for read in _parse_sentences(memory)
    )


def _says_always(read: Sentence) -> bool:
    """Whether a sentence begins or ends with "always" or the like."""
    ending = " ".join(read.core.split()[-ENDING_WORDS:])
    return opens("at_all_times", "en", read.core) or has("at_all_times", "en", ending)


def _is_decision(memory: Memory) -> bool:
    """Whether a sentence states a decision: a choice, or a switch from one thing to another."""
    reads = _parse_sentences(memory)
    settles = any(read.lasting == "choice" and has("settled", "en", read.core) for read in reads)
    is_settled = memory.category == "decision" and settles and _lays_down(memory, strictly=False)
    # Two sentences together may state a switch from one thing to another.
    whole = parse(compose.durable_text(memory) if reads else "")
    return is_settled or any(
        (read.settles or _amends(read)) and len(read.text) <= MAX_RULE_CHARACTERS and _is_about_things(read)
        for read in (*reads, whole)
    )


def _amends(read: Sentence) -> bool:
    """Whether a sentence corrects an earlier one, and does not order or ask for something now."""
    if not opens("amends", "en", read.text):
        return False
    correction = parse(without_opening("amends", "en", read.text))
    return correction.kind == "states" and not correction.is_of_moment


def lasting_part(text: str) -> str:
    """Returns the sentences of a long statement that last, and those that go on about them; whole if none does."""
    sentences = prose.split_sentences(text)
    kept: list[str] = []
    is_kept = False
    for sentence in sentences if len(text) > MAX_RULE_CHARACTERS else ():
        sentence = trim_courtesy(sentence)
        read = parse(sentence)
        lasts = read.lasting or read.settles or (read.language == "en" and explains(read.words))
        is_kept = bool(lasts and _is_about_things(read) and not is_task(read)) or (
            is_kept and read.is_continuation and read.kind == "states"
        )
        kept += [sentence] * is_kept
    return " ".join(kept) or text


def _denies(read: Sentence) -> bool:
    return not _DENYING.isdisjoint(read.words) or any(word.endswith("n't") for word in read.words)


def _is_explained(memory: Memory) -> bool:
    """Whether a sentence states a limit, a wish, a strict rule or a negation with its cause: it holds as long as that."""
    return any(
        read.language == "en"
        and len(read.text) <= MAX_REASON_CHARACTERS
        and (
            read.lasting == "taste"
            or _is_strict(read)
            or _denies(read)
            or any(map(str.isdigit, read.core))
            or allows_only(read)
        )
        and _is_about_things(read, split_cause(read.words)[0])
        and explains(read.words[read.lasting == "taste" and read.words[:1] == ("i",) :])
        for read in _parse_sentences(memory)
    )


def _parse_sentences(memory: Memory) -> list[Sentence]:
    """Parses the sentences of a statement, with the corrected value if it has one.

    [] for a pick, whose words are the assistant's, unless the user assents to them.

    A rule before the arrow is no pick: "never rename A -> B".
    """
    if (claim := read_claim(memory.text)) != memory.text:
        return [parse(claim)]
    question, _, answer = memory.text.rpartition(ARROW)
    if is_pick(memory) and parse(answer).kind != "assents" and not parse(question).lasting:
        return []
    return [parse(trim_courtesy(sentence)) for sentence in prose.split_sentences(compose.durable_text(memory))]


def _is_about_things(read: Sentence, main: Sequence[str] = ()) -> bool:
    """Whether a sentence states how things are, not an opinion or an order for the current work.

    What is over is looked for in the words of its `main` clause, if given.
    """
    words = read.body.casefold().split()
    is_routine = opens("routine", "en", read.core) and not _is_strict(read)
    is_momentary = "just" in words or not _MOMENTARY.isdisjoint(words[:2])
    is_at_hand = is_routine or (is_momentary and not (dislikes_kind(read) or allows_only(read)))
    is_plain = read.kind in ("states", "orders") and not (read.is_of_moment or read.is_musing)
    refers = (
        _first_word(read) == "it"
        or refers_back(read)
        or (read.language in ("en", "de") and opens("in_context", read.language, read.body))
        or _OPTION.search(read.text) is not None
        or read.text.rstrip().endswith(":")
    )
    wonders = has("wonder", "en", read.core) and not changes_mind(read.text)
    asks = wonders or _QUESTION_MARK.search(read.text) is not None
    of_reply = read.language == "en" and opens("of_reply", "en", read.core)
    # A sentence that settles something may also tell what was before, what failed and who changed it.
    if read.settles:
        return is_plain and not (is_at_hand or refers or asks or of_reply)
    if read.lasting == "ban" and is_polite_ban(read.words):  # a request, and no question
        return is_plain and not refers
    is_over = not _PAST.isdisjoint(main or read.words)
    is_in_doubt = has("hedge", "en", read.core) or (has("failure", "en", read.core) and read.lasting not in RULES)
    is_amiss = read.language != "en" and not _is_strict(read) and has("trouble", read.language, read.core)
    return is_plain and not (
        is_over or is_at_hand or refers or is_in_doubt or is_amiss or _is_opinion(read) or asks or of_reply
    )


def _first_word(read: Sentence) -> str:
    """Returns the first word without its contraction: "it" of "it's"."""
    return read.words[0].partition("'")[0] if read.words else ""


def _is_opinion(read: Sentence) -> bool:
    """Whether a sentence reports its speaker's thoughts, acts or wishes, and no liking or rule."""
    first = read.words[0] if read.words else ""
    is_of_self = _first_word(read) in _I and read.lasting not in _STRICT and not _is_strict(read)
    return first in _CONTRACTIONS_OF_I or is_of_self or has("musing", "en", read.core)


def _is_strict(read: Sentence) -> bool:
    """Whether a rule allows no exception; in a language without words for that all known rules do not.

    German forbids by a negation at the beginning of a clause: "keine Emojis", and not "die Karte ist nicht da".
    """
    if f"unfailing.{read.language}" not in WORDS:
        return read.lasting in ("ban", "rule")
    is_unfailing = _forbids(read) or has("unfailing", read.language, read.core)
    return read.lasting in RULES and (is_unfailing or is_polite_ban(read.words))


def _forbids(read: Sentence) -> bool:
    """Whether a clause of a sentence begins with a negation that forbids."""
    negations = WORDS.get(f"forbids.{read.language}", frozenset())
    nothing = WORDS.get(f"nothing.{read.language}", frozenset())
    return any(
        phrase_size(negations, read.words[index : index + 2])
        and (index == 0 or read.words[index - 1] in _CLAUSE_MARKS)
        and nothing.isdisjoint(read.words[index + 1 : index + 2])
        for index in range(len(read.words))
    )


#: In order of precedence: the first that a statement shows counts.
EVIDENCE: tuple[Evidence, ...] = (
    Evidence("pinned", 2.0, math.inf, 20, lambda memory: memory.pinned),
    Evidence("judged worth telling", 1.5, 12.0, 16, lambda memory: memory.tell == "starts" and memory.decay != "session"),
    Evidence("judged worth telling for days", 1.0, 3.0, 5, lambda memory: memory.tell == "starts"),
    Evidence("asked to remember", 1.6, math.inf, 20, was_asked_to_remember),
    Evidence("picked", 1.0, 6.0, 5, _is_choice),
    Evidence("said again", 1.5, math.inf, 10,
             lambda memory: len(memory.sessions) >= MIN_REPEATED_SESSIONS and _lays_down(memory, strictly=False)),
    Evidence("said for always", 1.2, math.inf, 16, lambda memory: _is_for_always(memory)),
    Evidence("a rule without exception", 1.2, 12.0, 16, lambda memory: _lays_down(memory, strictly=True)),
    Evidence("decided", 1.0, math.inf, 12, _is_decision),
    Evidence("stated with its cause", 0.8, 12.0, 4, _is_explained),
    Evidence("lays something down", 0.7, 6.0, 3, lambda memory: _lays_down(memory, strictly=False)),
)  # fmt: skip
#: A statement that replaced an earlier one.
REPLACES = Evidence("replaces what was said before", 1.0, math.inf, 8, lambda _: True)
#: Evidence of statements that a later remark may have changed.
FIRM = frozenset({"pinned", "asked to remember", "said again", "said for always", "a rule without exception"})


def rate(memory: Memory, *, sessions_since: int, replaces: bool = False) -> Worth:
    """Rates a memory `sessions_since` it was last stated or used in its project; `replaces`: it replaced an earlier one."""
    if against := _find_objection(memory):
        return Worth(0.0, against)
    evidence = next((row for row in EVIDENCE if row.shows(memory)), REPLACES if replaces else None)
    if evidence is None:
        states = any(read.kind == "states" and not _is_opinion(read) for read in _parse_sentences(memory))
        return Worth(0.0, PLAIN if states else "of the matter at hand")
    left = evidence.halves * math.log2(evidence.worth / MIN_WORTH) - sessions_since
    if left < 0:
        return Worth(0.0, "faded")
    return Worth(evidence.worth * 0.5 ** (sessions_since / evidence.halves), evidence.why, evidence.most, left)


#: Evidence that does not suffice if a model read the session and did not judge the statement.
WEAK = frozenset({"lays something down"})
#: Judgement -> why the statement is not shown at a start.
JUDGED: Mapping[str, str] = {
    "tasks": "judged worth telling where a task needs it",
    "never": "judged not worth telling",
    "noted": "a note is told in its place",
}


def _find_objection(memory: Memory) -> str:
    if memory.tell and not memory.pinned:
        return JUDGED.get(memory.tell, "")
    if not (memory.is_personal or memory.pinned):
        return "an assistant said it"
    if memory.scene.startswith(statement_context.REVIEW) and not memory.pinned:
        return "a review said it"
    if not (memory.pinned or is_pick(memory)) and any(map(_hands_on, (memory.text, memory.scene))):
        return "somebody else said it"
    text = compose.standalone_text(memory)
    is_clear = len(text.split()) >= MIN_WORDS or (bool(text) and parse(text).language in UNSPACED)
    if not (memory.pinned or is_pick(memory) or is_clear):
        return "tells nothing by itself"
    return find_transience(memory)


def names_promise(memory: Memory) -> bool:
    """Whether a promise says what is promised: no question, and not "I'll send her something on Friday"."""
    sentences = [parse(sentence) for sentence in prose.split_sentences(memory.text)]
    return not refers_back(parse(memory.text)) and any(
        read.kind in ("states", "orders") and not has("unnamed", read.language, read.core) for read in sentences
    )


def _hands_on(text: str) -> bool:
    """Whether a text or a scene hands on another's words after a colon, or is a finding with its severity."""
    head, *behind = _COLON.split(text, maxsplit=1)
    lead = prose.split_sentences(head)[-1] if head.strip() else ""
    is_received = any(has("received", language, lead) and has("handed_on", language, lead) for language in ("en", "de"))
    return bool(behind) and (is_received or (len(lead.split()) == 1 and opens("severity", "en", lead)))


# --- overtaken statements

#: A question with its object in front: "which port should the gateway use" is about the port that the gateway uses.
_ASKED_FOR = re.compile(
    r"(?:which|what|how|where|who|when)\b.*?\b(?:should|shall|do|does|will|would|can|is|are) (.+)", re.IGNORECASE
)
_REMARK = re.compile(r"\s*\([^()]*\)")
#: The beginning of the subject of a fixing commit, also in the form of Conventional Commits.
_FIXES = re.compile(
    r"(?:bug|hot)?fix(?:es|ed)?(?:\([^)]*\))?!?:?\s+|(?:resolve|mend|repair|correct)[sd]?\s+", re.IGNORECASE
)
#: Least words of a question that identify it.
MIN_TWIN_WORDS = 2
#: Least share and number of a commit's words that name what it fixes.
MIN_FIXED_SHARE = 0.6
MIN_FIXED_WORDS = 2


def is_overtaken(memory: Memory, later: Sequence[tuple[str, str]], commits: Sequence[tuple[str, str]]) -> bool:
    """Whether a later statement or commit ended a pick, or a later commit fixed the problem that a statement reports.

    `later` are (time, statement) of the user, `commits` are (time, subject); those before the memory are ignored.
    """
    if memory.pinned:
        return False
    subjects = [subject for at, subject in commits if at > memory.confirmed_at]
    if not is_pick(memory):
        return any(_fixes(memory, subject) for subject in subjects)
    statements = [text for at, text in later if at > memory.confirmed_at]
    return any(_rejects(text, memory.text) for text in (*statements, *subjects)) or any(
        _changes_value(text, memory.text) for text in statements
    )


def answers_same(answer: str, other: str) -> bool:
    """Whether two answers are to the same question."""
    questions = [gist(text.rpartition(ARROW)[0]) for text in (answer, other) if ARROW in text]
    return len(questions) == 2 and len(questions[0].stems) >= MIN_TWIN_WORDS and is_twin(*questions)


def _rejects(later: str, pick: str) -> bool:
    """Whether a later statement contradicts a pick, certainly or perhaps."""
    question, _, answer = pick.rpartition(ARROW)
    answer = next(iter(prose.split_sentences(_REMARK.sub("", answer))), "")
    if ARROW in later or gist(answer).stems.isdisjoint(gist(later).stems):
        return False
    question = question.rstrip("?？ ")
    asked_for = _ASKED_FOR.match(question)
    claims = (pick, f"{asked_for[1] if asked_for else question + ':'} {answer}", f"we use {answer}")
    return any(compare(claim, later).contradicts for claim in claims)


def _changes_value(later: str, pick: str) -> bool:
    """Whether a later change of mind gives another number for what a pick has one for."""
    question, _, answer = pick.rpartition(ARROW)
    value, other = (set(_NUMBER.findall(text)) for text in (answer, later))
    is_changed = bool(value) and bool(other) and value.isdisjoint(other)
    return is_changed and changes_mind(later) and not gist(question).stems.isdisjoint(gist(later).stems)


def _fixes(memory: Memory, subject: str) -> bool:
    """Whether a commit fixes the problem that a statement reports; a rule continues to hold."""
    fixed, stems = _FIXES.match(subject), gist(memory.text).stems
    if fixed is None or any(parse(part).lasting for part in prose.split_sentences(memory.text)):
        return False
    named = gist(subject[fixed.end() :]).stems
    return len(named & stems) >= MIN_FIXED_WORDS and share(named, stems) >= MIN_FIXED_SHARE


# --- passing statements


class Transience(NamedTuple):
    """A reason why a statement does not last: its speaker ("": anybody), the test of a sentence, its gates (none: all)."""

    why: str
    by: Authority | Literal[""]
    shows: Callable[[str], bool]
    gates: frozenset[Gate] = frozenset()


#: The only reason that counts against a correction.
DOUBTED = "doubted"
#: Practices of other projects that an assistant studied.
_OF_OTHERS = re.compile(
    r"\b(?:across|among|in|of) (?:the |all |many |most |other |popular |\d{1,3} )*(?:projects|repos|repositories|tools)\b (?:that|which|studied|i looked)|\bmost (?:common|popular) [\w -]{1,40} (?:across|among|in)\b",
    re.IGNORECASE,
)


def _is_report(text: str) -> bool:
    """Whether a sentence reports an action of its speaker."""
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
    """Returns why a memory does not last, "" if it does."""
    if memory.pinned or memory.origin in compose.SELF_CONTAINED_ORIGINS or not memory.session_id:
        return ""
    reasons = [
        rule
        for rule in TRANSIENT
        if (rule.why == DOUBTED or memory.gate != "correction")
        and rule.by in ("", memory.authority)
        and (not rule.gates or memory.gate in rule.gates)
    ]
    # A sentence that is a rule lasts, whatever else it says.
    passing = [sentence for sentence in prose.split_sentences(memory.text) if not has("strict", "en", sentence)]
    return next((reason.why for reason in reasons if any(map(reason.shows, passing))), "")
