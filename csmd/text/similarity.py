"""Compares two statements: they are the same, one entails the other, or the newer one replaces the older; pure.

`compare` returns the full comparison with its reasons. `overlap` and `share` measure common words cheaply, `repeats`
decides whether a text repeats another. All compare words; `restatement` compares statements with near vectors.

A certain replacement gives the same slot of the same subject another value, or denies exactly the older statement. If
one of them names more of the subject (an environment, a component, one of several uses), the replacement is doubtful
and a person decides; if each names something that the other does not, they are about two things. In doubt both
statements are kept: a wrong replacement loses a statement, a missed one only leaves an old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from csmd.cache import cached, cached_short
from csmd.text import clauses, tokens
from csmd.text.claims import TURNING_OPPOSITES, Change, Claims, Denial, apply_renames, parse
from csmd.text.clauses import Slot, has_number, is_date_or_number, read_statement
from csmd.text.corrections import read_claim
from csmd.text.display import ARROW
from csmd.text.phrases import STOPS, WORDS, Word, find_opposites, root_of, roots_of_class, stems
from csmd.text.switches import Switch, find_switch, is_left

Relation = Literal["same", "entails", "replaces", "replaces part", "may replace", "overlaps", "unrelated"]

#: Signal of a replacement -> the confidence of a replacement with this signal alone, with an example.
SIGNALS: Mapping[str, float] = {
    "renamed": 0.95,  # "`cash` is now called `till`" for "The binary is called `cash`"
    "says-instead": 0.9,  # "Use pytest instead of unittest" for "Run the tests with unittest"
    "denied": 0.8,  # "Do not squash merge commits" for "Squash merge commits"
    "gone": 0.8,  # "The Redis cache was removed" for "The Redis cache holds carts"
    "left": 0.8,  # "Let's drop Bootstrap, the pages get Tailwind" for "The pages are styled with Bootstrap"
    "prefers": 0.8,  # "I prefer tabs over spaces" for "Indent with spaces"
    "changed": 0.75,  # "We moved the site to Fly.io" for "The site runs on Heroku"
    "opposite": 0.7,  # "Always enable the linter" for "Always disable the linter"
    "number": 0.7,  # "The gateway listens on port 8443" for "The gateway listens on port 8080"
    "name": 0.65,  # "Orders are stored in Postgres" for "Orders are stored in MySQL"
    "value": 0.55,  # "Deploys are done by hand" for "Deploys are done by robots"
}
#: Least confidence of a certain replacement.
MIN_SURE = 0.5
#: Confidence of a possible replacement, about which a person decides.
DOUBTFUL_CONFIDENCE = 0.4

# --- measures of common words

#: Least share of common words of two texts that say the same; no word may replace another.
MIN_SAME_SHARE = 0.8
#: Words that make word order matter, in addition to those that reverse a sentence.
ORDERING_WORDS = frozenset({"from", "to", "into", "rather", "but"})
#: Fewest words of a text that repeats a longer one; a shorter text may be contained in one on another subject.
MIN_CONTAINED_WORDS = 3
#: Least share of common words of two texts of which a reader needs only one.
MIN_TWIN_OVERLAP = 0.6
#: Longest text whose gist is cached: memories, sentences and messages, which are compared again and again.
MAX_CACHED_CHARACTERS = 600


@dataclass(frozen=True, slots=True)
class Gist:
    """The stems of a text's content words, and the small words that reverse a meaning."""

    stems: frozenset[str]
    turns: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    is_ordered: bool = False
    """Whether the order of the words matters."""


@cached_short(2048, characters=MAX_CACHED_CHARACTERS)
def gist(text: str) -> Gist:
    """Returns the gist of a text, by which it is compared."""
    words = tokens.words_of(text.replace("\u2019", "'"))
    turns = ["not" if word.endswith("n't") or word == "cannot" else word for word in words if tokens.turns_round(word)]
    order = tuple(map(tokens.stem, tokens.content_of(word for word in words if not tokens.turns_round(word))))
    return Gist(frozenset(order), tuple(sorted(turns)), order, bool(turns) or not ORDERING_WORDS.isdisjoint(words))


def overlap(first: Gist, other: Gist) -> float:
    """Returns the share of common words of two texts, 0-1; 0 if one reverses the other."""
    if not first.stems or first.turns != other.turns:
        return 0.0
    return len(first.stems & other.stems) / len(first.stems | other.stems)


def is_twin(first: Gist, other: Gist) -> bool:
    """Whether two texts have enough common words that a reader needs only one."""
    return overlap(first, other) >= MIN_TWIN_OVERLAP


def answers_another_question(first: str, other: str) -> bool:
    """Whether two texts are answers ("question -> answer") to different questions."""
    questions = [gist(text.rpartition(ARROW)[0]) for text in (first, other) if ARROW in text]
    return len(questions) == 2 and not is_twin(*questions) and questions[0] != questions[1]


def share(part: frozenset[str], whole: frozenset[str]) -> float:
    """Returns the share of some words that are among others, 0-1."""
    return len(part & whole) / len(part) if part else 0.0


def repeats(first: str, other: str, *, within: bool = False) -> bool:
    """Whether one text repeats the other: a word more or less, but none in another's place, and no reversed meaning.

    "Use two spaces" and "use four spaces" share most of their words and do not say the same. With `within`, the other
    text may also contain all its words among more, in the same order if order matters.
    """
    left, right = gist(first), gist(other)
    is_part = left.stems <= right.stems
    is_same = (is_part or right.stems <= left.stems) and overlap(left, right) >= MIN_SAME_SHARE
    is_within = within and is_part and left.turns == right.turns and len(left.stems) >= MIN_CONTAINED_WORDS
    if not within or not (is_same or is_within) or not (left.is_ordered or right.is_ordered):
        return is_same or is_within
    common = left.stems & right.stems
    shorter, longer = sorted(([stem for stem in gist.order if stem in common] for gist in (left, right)), key=len)
    rest = iter(longer)
    return all(stem in rest for stem in shorter)


# --- the whole comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The relation of a newer statement to an older one.

    `reasons` name the signals of a replacement: those of a certain one by confidence, those of a possible one in the
    order of the tests. `parts` are the parts of the older statement that it ends ("replaces", "replaces part").
    """

    relation: Relation
    confidence: float = 1.0
    reasons: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def says_all(self) -> bool:
        """Whether the newer statement says everything that the older one says."""
        return self.relation in ("same", "entails")

    @property
    def contradicts(self) -> bool:
        """Whether the newer statement may replace the older one, or a part of it."""
        return self.replaces or self.is_doubtful

    @property
    def replaces(self) -> bool:
        """Whether the newer statement replaces the older one as a whole."""
        return self.relation == "replaces"

    @property
    def is_doubtful(self) -> bool:
        """Whether a person has to decide about the older statement as a whole."""
        return self.relation in ("may replace", "replaces part")


def compare(older: str, newer: str, *, renames: Mapping[str, str] | None = None) -> Comparison:
    """Compares a newer statement with an older one; `renames` maps old names to present ones.

    "entails": the newer one says the same and more. "overlaps": they are on one subject and both hold. Of a sentence whose
    value is corrected, what it claims is compared.
    """
    if answers_another_question(older, newer):
        return _UNRELATED
    claim = read_claim(older)
    comparison = _compare_claims(claim, read_claim(newer), renames or {})
    return replace(comparison, parts=(older,)) if claim != older and comparison.parts else comparison


def _compare_claims(older: str, newer: str, renames: Mapping[str, str]) -> Comparison:
    before, after = _statement_stems(older), _statement_stems(newer)
    shared = len(before & after)
    if not shared and not renames and (before or after):
        return _UNRELATED
    # A statement that entails it lacks at most an "always" and an "every" of its words.
    if len(before) - shared <= 2 and _says_all_of(newer, older):
        return Comparison(relation="same" if _says_all_of(older, newer) else "entails")
    whole = _find_replacement(older, newer, renames or {})
    older_parts = clauses.split_parts(older)
    if whole is not None and whole.replaces:
        return replace(whole, parts=older_parts or (older,))
    ended_parts: dict[str, Comparison] = {}
    for part in older_parts if len(older_parts) > 1 else ():
        comparison = _find_replacement(part, newer, renames or {})
        if comparison is not None and comparison.replaces:
            ended_parts[part] = comparison
    if ended_parts:
        return replace(next(iter(ended_parts.values())), relation="replaces part", parts=tuple(ended_parts))
    if whole is not None:
        return whole
    # A single common word has to be half of the longer statement.
    sizes = len(before), len(after)
    size = min(sizes) if shared > 1 else max(sizes)
    return _OVERLAPS if shared and shared >= MIN_SUBJECT_SHARE * size else _UNRELATED


_UNRELATED, _OVERLAPS = Comparison(relation="unrelated"), Comparison(relation="overlaps")

# --- whether one statement entails the other

_DENIALS, _CONDITIONS, _LIMITING_WORDS = WORDS["denial"], WORDS["condition"], WORDS["limit"] | WORDS["condition"]
_OPENERS = {word: name[1:] for name, words in WORDS.items() if name.startswith("<") for word in words}
_OPENERS |= {word: word for word in WORDS["opener"]}
_OPENING_WORDS = _CONDITIONS.union(_OPENERS)
_COPULA = WORDS["copula"] | WORDS["passive"]
#: Fewest words of a statement that a longer one can entail.
_MIN_ENTAILED_WORDS = 3


class _Clause(NamedTuple):
    """A clause: its words in order, its parts in any order, and all its words in lower case.

    A part is its opener ("" for adverbs) and its words.
    """

    conjunction: str
    denials: tuple[str, ...]
    words: tuple[str, ...]
    parts: Counter[tuple[str, tuple[str, ...]]]
    plain: frozenset[str]

    def adds_means(self, other: _Clause) -> bool:
        """Whether the clause says the same as the other one, which denies nothing, and by what means."""
        added = self.parts - other.parts
        is_same = self[:3] == other[:3] and not self.denials and self.parts - added == other.parts
        are_means = all(opener in WORDS["how"] for opener, _ in added)
        return is_same and are_means and not _has_limit(self.plain - other.plain)

    def may_limit(self) -> bool:
        """Whether the clause may limit the clauses before it."""
        return bool(self.conjunction) or not self.words or _has_limit(self.plain)


def _has_limit(words: frozenset[str]) -> bool:
    return any(word in _LIMITING_WORDS or tokens.turns_round(word) for word in words)


@cached(4096)
def required_words(text: str) -> frozenset[str]:
    """Returns the words that a text needs to entail this one: those of its clauses, without its reasons."""
    required: set[str] = set()
    for clause in _read_clauses(text):
        required.update(clause.denials, clause.words, *(words for _, words in clause.parts))
    return frozenset(required)


def _says_all_of(first: str, other: str) -> bool:
    """Whether one text entails the other: it says the same, or the same and more without limiting it."""
    required = required_words(other)
    if not required <= required_words(first):
        return False
    long, short = _read_clauses(first), _read_clauses(other)
    reading, other_reading = read_statement(first), read_statement(other)
    size = len(short)
    differs = [clause[:4] != other[:4] for clause, other in zip(long, short, strict=False)]
    if not 0 < size <= len(long) or any(differs[:-1]):
        return False
    last, added = long[size - 1], long[size:]
    is_same = not differs[-1]
    if is_same and not added and reading[1:] == other_reading[1:]:
        return True
    if len(required) < _MIN_ENTAILED_WORDS or reading.asks or other_reading.asks:
        return False
    if not other_reading.reasons <= reading.reasons or not (is_same or (not added and last.adds_means(short[-1]))):
        return False
    return not (added and last.denials) and not any(map(_Clause.may_limit, added))


@cached(4096)
def _read_clauses(text: str) -> tuple[_Clause, ...]:
    """Returns the clauses of a text; one that is only a fronted part belongs to the next."""
    words = read_statement(text).words
    denies = any(word.plain in _DENIALS or word.plain == "only" or word.plain.endswith("n't") for word in words)
    empty = WORDS["empty"] if denies else WORDS["empty"] | WORDS["weight"]
    result: list[_Clause] = []
    fronted: list[Word] = []
    clause: list[Word] = []
    conjunction = ""
    for word in (*words, Word(".", ".", "")):
        has_condition = any(other.plain in _CONDITIONS for other in clause)
        joins = word.plain in ("and", "or", "but", "nor") and bool(clause) and not has_condition
        if not (joins or word.plain in STOPS):
            clause.append(word)
        if not clause or not (joins or word.plain in STOPS - {"(", ")"}):
            continue
        if not result and not fronted and clause[0].plain in _OPENING_WORDS and word.plain == ",":
            fronted, clause = clause, []
            continue
        result += _build_clause(conjunction, fronted, clause, empty)
        fronted, clause = [], []
        conjunction = word.plain if joins and word.plain != "and" else ""
    return (*result, *(_build_clause(conjunction, [], fronted, empty) if fronted else []))


def _build_clause(conjunction: str, fronted: list[Word], words: list[Word], empty: frozenset[str]) -> list[_Clause]:
    """Returns the clause of some words, [] if all of them are empty."""
    if not fronted and words[0].plain in _OPENERS:  # the sentence itself begins after a fronted part
        plain = [word.plain for word in words]

        def begins(index: int) -> bool:
            is_inside = set(plain[1:index]) <= WORDS["determiner"] or plain[index - 1] in _OPENERS
            return plain[index] in WORDS["determiner"] | WORDS["begin"] and not is_inside

        index = next(filter(begins, range(2, len(words))), 0)
        fronted, words = words[:index], words[index:]
    main, denials, parts = _split_words(words, empty)
    parts += _split_words(fronted, empty).parts
    if not (main or denials or parts):
        return []
    all_words = frozenset(word.plain for word in (*fronted, *words))
    counted = Counter((opener, tuple(inside)) for opener, inside in parts)
    return [_Clause(conjunction, tuple(denials), tuple(main), counted, all_words)]


class _SplitClause(NamedTuple):
    """The words of a clause with the verb first ("secrets are stored" as "store secrets"), its denials and its parts."""

    words: list[str]
    denials: list[str]
    parts: list[tuple[str, list[str]]]


def _split_words(words: Sequence[Word], empty: frozenset[str]) -> _SplitClause:
    """Splits the words of a clause."""
    subject: list[str] = []
    predicate: list[str] = []
    denials: list[str] = []
    parts: list[tuple[str, list[str]]] = []
    target = subject
    is_passive = False
    for index, (plain, root, *_) in enumerate(words):
        in_condition = bool(parts) and parts[-1][0] in _CONDITIONS  # a condition extends to the end of its clause
        if not in_condition and plain in _OPENING_WORDS:
            parts.append((_OPENERS.get(plain, plain), []))
            target = parts[-1][1]
        elif plain in _COPULA:
            if not in_condition:
                is_passive = True
                target = predicate
        elif not in_condition and (plain in ("not", "never") or plain.endswith("n't")):
            denials.append("never" if plain == "never" else "not")
        elif plain.endswith("ly") and len(plain) > 5:
            parts.insert(0, ("", [root]))
        elif plain not in empty or _is_frequency(words, index):
            target.append(plain if _may_be_past(plain) and index and not is_passive else root)
    return _SplitClause([*predicate[:1], *subject, *predicate[1:]], denials, parts)


def _is_frequency(words: Sequence[Word], index: int) -> bool:
    """Whether "every" or "all" is a frequency or a number."""
    if words[index].plain not in ("every", "each", "all"):
        return False
    return any(word.plain in WORDS["counts"] or word.is_number for word in words[index + 1 : index + 2])


def _may_be_past(word: str) -> bool:
    """Whether a word may be in the past tense, if no copula comes before it: "the worker used Kafka"."""
    return word in WORDS["past"] or (word.endswith("ed") and not word.endswith("eed") and len(word) > 4)


# --- whether the newer statement replaces the older one

OPPOSITES = find_opposites("opposite", root_of)
#: Words that only refer to the present project, or name the kind of a number.
_PLACE_ROOTS = roots_of_class("here")
#: Environments in which a thing runs in parallel; a statement about one environment does not concern the others.
_ENVIRONMENT_ROOTS = roots_of_class("environment")
#: Words that add nothing to a liking: "prefer tabs", "use tabs for indentation".
_LIKING_ROOTS = roots_of_class("liking")
#: Verbs whose object may change: where a thing runs or is kept, and with what; not who wrote it.
_HOLDING_ROOTS = roots_of_class("holding") | {""}
#: Words that only mark a rule.
_RULE_ROOTS = frozenset((root_of("always"), root_of("please")))

#: Least share of a statement's words that a denial of it names.
MIN_DENIED_SHARE = 0.6
#: Least share of the shorter one's words that two statements on one subject have in common.
MIN_SUBJECT_SHARE = 0.5
#: Least share of an older statement's subject that a changed thing is; a smaller one is only a part of it.
MIN_CHANGED_SHARE = 0.6
#: `X instead of Y`: least share of the words around a plain Y that the older statement has.
MIN_PLAIN_CONTEXT_SHARE = 0.4
#: `X instead of Y`: least share of the words around a Y of several words or a name.
MIN_NAMED_CONTEXT_SHARE = 0.5
#: Least share of the longer rest that two statements without their values have in common on one subject.
MIN_REST_SHARE = 0.5


def _find_replacement(older: str, newer: str, renames: Mapping[str, str]) -> Comparison | None:
    """Finds the surest replacement of `older` by `newer` or a part of it, certain or possible; None if there is none.

    If `newer` mentions only some parts of `older`, it is the first replacement, as a possible one.
    """
    newer_parts = dict.fromkeys((newer, *clauses.split_parts(newer)))
    comparisons = [*filter(None, (_find_part_replacement(older, part, renames) for part in newer_parts))]
    if comparisons and 0 < len(clauses.mentioned_parts(older, newer)) < len(clauses.split_parts(older)):
        return Comparison(relation="may replace", confidence=DOUBTFUL_CONFIDENCE, reasons=comparisons[0].reasons)
    return max(comparisons, key=lambda comparison: comparison.confidence, default=None)


def _find_part_replacement(older: str, newer: str, renames: Mapping[str, str]) -> Comparison | None:
    """Finds the replacement of the older statement by one part of a newer one; None if there is none."""
    renamed = apply_renames(older, renames)
    if _statement_stems(renamed).isdisjoint(_statement_stems(newer)):
        return None
    before, after = parse(renamed), parse(newer)
    only_before, only_after = before.stems - after.stems, after.stems - before.stems
    if before.asks or (_ENVIRONMENT_ROOTS & only_before and _ENVIRONMENT_ROOTS & only_after):
        return None
    signals = _find_signals(before, after, parse(older))
    switch = find_switch(newer)
    if switch is not None and _is_left_as_named(renamed, before, switch):
        signals["left"] = True
    certain = sorted((name for name, is_certain in signals.items() if is_certain), key=lambda name: -SIGNALS[name])
    if certain:
        return Comparison(relation="replaces", confidence=SIGNALS[certain[0]], reasons=tuple(certain))
    if not signals:
        return None
    return Comparison(relation="may replace", confidence=DOUBTFUL_CONFIDENCE, reasons=tuple(signals))


def _is_left_as_named(older: str, before: Claims, switch: Switch) -> bool:
    """Whether a switch gives up the choice of an older statement, and names something else that this one mentions."""
    named_stems = (switch.others | switch.places | switch.new) & before.stems
    return bool(named_stems) and is_left(older, switch)


@cached(4096)
def _statement_stems(text: str) -> frozenset[str]:
    """Returns the stems of a statement; two statements without a common one need not be parsed."""
    return stems(read_statement(text).words)


def _find_signals(before: Claims, after: Claims, unfollowed: Claims) -> dict[str, bool]:
    """Finds the signals of a replacement: signal -> whether the subject certainly is the same."""
    if any(old in unfollowed.named for old, _ in after.renames):
        return {"renamed": True}
    signals: dict[str, bool] = {}
    changes = [change for change in after.changes if change.thing <= before.stems]
    if any(_changes_value(change, slot, before) for change in changes for slot in before.slots):
        signals["changed"] = True
    if any(_likes_better(liked, other, before) for liked, other in after.prefers):
        signals["prefers"] = True
    for thing in after.gone:
        if thing <= before.positive:
            if before.topic == thing or 2 * len(thing) >= len(before.stems):
                signals["gone"] = True
            elif thing & before.names or any(slot.value == thing for slot in before.slots):
                signals.setdefault("gone", False)
    shared = before.stems & after.stems
    if len(shared) < MIN_SUBJECT_SHARE * min(len(before.stems), len(after.main)):
        return signals
    if any(_says_instead(claim, before) for claim in after.instead):
        signals["says-instead"] = True
    if any(_denies(claim, before) for claim in after.denied):
        signals["denied"] = True
    return signals | _find_opposite(before, after, shared) | _find_other_value(before, after)


def _changes_value(change: Change, slot: Slot, before: Claims) -> bool:
    """Whether a slot of an older statement gives the changed thing another value."""
    # A number replaces a number, in 2026-12-15 as in "port 8080"; "green" replaces none.
    numbers = is_date_or_number(slot.value - change.thing) and is_date_or_number(change.value)
    if not numbers and (slot.kind not in ("means", "place") or slot.verb not in _HOLDING_ROOTS):
        return False
    same = slot.value & change.value
    if (has_number(same) if numbers else same) or (slot.value & change.thing and not numbers):
        return False
    if slot.value & before.names and change.is_common:
        return False
    # The thing is the whole subject of the older statement: a part of it, or one of several, stays where it is.
    subject = before.positive - (slot.value - change.thing) - {slot.verb} - _PLACE_ROOTS
    return bool(slot.value & change.unused) or len(change.thing) >= MIN_CHANGED_SHARE * len(subject)


def _likes_better(liked: frozenset[str], other: frozenset[str], before: Claims) -> bool:
    """Whether an older statement only recommends the thing that is now liked less."""
    rest = before.stems - other - _LIKING_ROOTS
    is_liked = any(liked <= thing for thing, _ in before.prefers)
    return other <= before.positive and rest in (frozenset(), liked) and not is_liked


def _says_instead(claim: Denial, before: Claims) -> bool:
    """Whether an older statement has the Y of `X instead of Y`, and the words that surround it in the newer one."""
    if not claim.what <= before.positive:
        return False
    if claim.context and claim.context <= before.stems - before.positive:
        return True  # "use black, not ruff": the new choice is the one that the older statement denied
    shared = len(claim.context & before.stems)
    if not shared and len(claim.context) <= 1 and _is_all(claim.what, before):
        return True  # "use pytest instead of unittest" has no subject, and the older statement hardly another
    if shared >= 2 and shared >= MIN_PLAIN_CONTEXT_SHARE * len(claim.context):
        return True
    is_specific = len(claim.what) > 1 or bool(claim.what & before.names)
    return is_specific and 1 <= shared >= MIN_NAMED_CONTEXT_SHARE * len(claim.context)


def _is_all(what: frozenset[str], before: Claims) -> bool:
    """Whether a statement names the means or place of work ("we deploy to Fly.io") and hardly a subject."""
    rest = before.positive - what - _RULE_ROOTS
    slots = [slot for slot in before.slots if slot.value == what]
    if len(rest) <= 2 and any(slot.kind == "means" for slot in slots):
        return True
    verbs = {slot.verb for slot in slots if slot.kind == "place"} & _HOLDING_ROOTS
    return bool(verbs) and rest <= verbs and what <= before.names


def _denies(claim: Denial, before: Claims) -> bool:
    """Whether a negation denies the statement of the older one, on the same subject if it names one."""
    if claim.is_qualified or not claim.what <= before.positive:
        return False
    return claim.context <= before.stems and len(claim.what | claim.context) >= MIN_DENIED_SHARE * len(before.main)


def _find_opposite(before: Claims, after: Claims, shared: frozenset[str]) -> dict[str, bool]:
    """Finds the signal of two statements that differ only in a word and its opposite; doubtful if one says more."""
    old, new = before.stems - shared, after.stems - shared
    for old_word in sorted(old):
        for new_word in sorted(OPPOSITES.get(old_word, frozenset()) & new):
            rests = before.stems - {old_word}, after.stems - {new_word}
            if _is_one_subject(*rests):
                return {"opposite": rests[0] == rests[1]}
    alike = len(shared) >= MIN_SAME_SHARE * len(before.stems | after.stems)
    turned = any(TURNING_OPPOSITES[word] & (after.turns - before.turns) for word in before.turns - after.turns)
    return {"opposite": True} if alike and turned else {}


def _find_other_value(before: Claims, after: Claims) -> dict[str, bool]:
    """Finds the kind of a value that changed in one slot, if the rest of both statements is the same subject."""
    if after.asks or after.adds or before.positive < after.positive or after.positive < before.positive:
        return {}  # one statement says the same as the other, and more
    for old in before.slots:
        for new in after.slots:
            is_one_verb = old.verb == new.verb or not old.verb or not new.verb
            if old.kind != new.kind or not (is_one_verb or (old.verb in after.stems and new.verb in before.stems)):
                continue
            if old.value <= new.value or new.value <= old.value:
                continue
            slot = old.value | new.value | {old.verb, new.verb}
            subject, other = before.stems - slot, after.stems - slot
            kind = _classify_value(old.value - new.value, new.value - old.value, before, after)
            if kind and _is_one_subject(subject, other):
                return {kind: subject == other}
    return {}


def _classify_value(changed: frozenset[str], into: frozenset[str], before: Claims, after: Claims) -> str:
    """Returns the signal of a value that replaces another of its kind; "" if they are of different kinds."""
    numbers = has_number(changed), has_number(into)
    if all(numbers):
        return "number"
    if changed & before.names and into & after.names:
        return "name"
    return "value" if numbers[0] == numbers[1] else ""


def _is_one_subject(first: frozenset[str], other: frozenset[str]) -> bool:
    """Whether the rests of two statements are one subject; if one has more words, the other has none of its own."""
    common = first & other
    if not common or (first - other and other - first):
        return False
    return len(common) >= MIN_REST_SHARE * max(len(first), len(other))
