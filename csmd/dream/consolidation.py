"""Whether two statements say the same, in which words they differ, and which is told."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

from csmd.cache import cached
from csmd.dream import actions
from csmd.dream.actions import (
    UNSAID,
    Action,
    DreamPlan,
    Snapshot,
    Tally,
    Working,
    alive,
    confirmed,
    confirming,
    is_sure,
    order,
    sessions,
)
from csmd.memory import confidence, contradiction, kinds, upkeep_plan
from csmd.model import AUTHORITY_RANK, NEVER, Decay, Memory, Tier
from csmd.text import display, similarity, tokens

#: Frames at the beginning of a sentence -> what stands in their place.
OPENINGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), instead)
    for pattern, instead in (
        (r"^(?:as|like) (?:i|we|you)(?:'ve)? (?:said|mentioned|told you|wrote|agreed)(?: before| earlier| already| last time)?[,:]? ", ""),
        (r"^(?:again|to repeat|once more|reminder|remember|note|nb|fyi|important|decision|decided|rule|convention|preference|agreed)(?: again)?[:,] ", ""),
        (r"^(?:please )?(?:also )?(?:note|remember|keep in mind|be aware|bear in mind|don't forget|do not forget|make sure|ensure|be sure)(?:,| that| to)? ", ""),
        (r"^(?:(?:we|i|they|you)(?:'ve| have)? (?:all )?|it (?:was|has been|is) )(?:decided|agreed|settled|concluded)(?: that| to|(?= not to)) ?", ""),
        (r"^(?:you|i|the user|user) (?:told|asked|want|wants|would like|'d like) (?:me|you|us|claude|the assistant) (?=not )", ""),
        (r"^(?:you|i|the user|user) (?:told|asked|want|wants|would like|'d like) (?:me|you|us|claude|the assistant) to ", ""),
        (r"^(?:(?:i|we)(?: really)? want|(?:i|we)(?:'d| would) like|(?:the )?user (?:wants|would like)) (?!to |you |us |me )", "use "),
        (r"^(?:the )?user (?=(?:always |never |really )?(?:prefer|like|dislike|hate|love)s\b)", "i "),
    )
)  # fmt: skip
#: Where what is said holds anyway: in the project that it is said in.
HERE = re.compile(
    r"\b(?:in|for|within|of) (?:this|our|the) (?:repo|repository|project|codebase|code base)\b,?", re.IGNORECASE
)
#: Behind these stands why, not what; not where "just" stands before it, which takes the rest back.
REASON = re.compile(
    r"[,;:.(]?\s*(?<!just )(?<!only )(?<!simply )(?<!merely )(?<!not )\b(?:because|since(?! \d| v\d| version| the \d)|so that|due to|in order to|to (?:avoid|prevent|keep from)|as otherwise|otherwise)\b",
    re.IGNORECASE,
)
#: What a reason may not hold: there is more in it than why.
NO_REASON = frozenset("unless except but only if when until however although though".split())

#: Words without which a sentence says the same. Tense, number, negation and "may" are none of them.
EMPTY = frozenset(
    "a an the that please ok okay well we you i our your us it them its note this these those do does".split()
)
#: Words without which it does where nothing is denied: "not always" and "not all" tell something.
WEIGHT = frozenset("really very also so then always now currently actually basically simply all every each".split())
#: Before one of these "every" and "all" tell how often, or how many.
COUNTS = frozenset(
    "second other third fourth few two three four five six seven eight nine ten dozen hundred half".split()
)
COPULA = frozenset("is are be being been get gets".split())
#: What may stand between a copula and what is done.
BETWEEN = frozenset("not never always only be been being all now then".split())
#: Who has to: without "must" it says the same where it is an order, or where something is done by whomever.
DUTY = frozenset("must should shall".split())
ORDERED = frozenset("you please".split())
NEGATIONS = frozenset("not no nor none cannot without".split())
#: Openers of a part of a clause -> those that open the same kind of part.
OPENERS = {
    **{word: word for word in "in on at to for from of with as by before after during per under over against between across".split()},
    **{word: word for word in "if when while unless until except whenever where wherever although though than".split()},
    "within": "in", "inside": "in", "into": "to", "onto": "to", "via": "by", "through": "through", "using": "with",
    "without": "without", "prior": "before",
}  # fmt: skip
#: What these open tells more of a positive statement and limits nothing: by what means, as what.
MEANS = frozenset(("by", "as", "through"))
#: What these open is a condition, to the end of its clause.
CONDITIONS = frozenset("if when while unless until except whenever where wherever although though".split())
JOINS = {"and": "", "or": "or", "but": "but", "nor": "nor"}
#: A clause with one of these may take back what was said before it, or limit it.
LIMITS = similarity.TURNING_WORDS | frozenset(
    """if when whenever while where wherever unless until except but however although though only maybe perhaps might
    may could should would was were had formerly previously usually mostly sometimes rather instead else otherwise
    whether wrong false untrue doubt ask asks asked think thinks thought always yet ever anymore longer true sure
    necessarily soon long far""".split()
)
#: By these what is not so stands against what is: "from the main loop, never from an interrupt".
AGAINST = frozenset(("from", "to", "by", "with", "through", "as"))
DETERMINERS = frozenset("the a an our all each every".split())
#: Behind a fronted part the sentence itself begins with one of these.
BEGINS = frozenset(
    "the a an our we you i it all each every always never do don't please use run keep must should no not".split()
)
#: One word for those that say the same of code and of where things are.
SAME_AS = {
    "docs": "documentation", "config": "configuration", "db": "database", "prod": "production", "env": "environment",
    "dir": "directory", "folder": "directory", "folders": "directory", "repo": "repository", "repos": "repository",
    "k8s": "kubernetes", "color": "colour", "colors": "colour", "keep": "store", "keeps": "store", "kept": "store",
    "keeping": "store", "lives": "sit", "live": "sit", "resides": "sit", "reside": "sit", "lies": "sit",
    "located": "sit", "execute": "run", "executes": "run", "executed": "run", "executing": "run",
}  # fmt: skip
IRREGULAR_PAST = frozenset("kept stored wrote sent built ran made took held came put went said told gave".split())
PARTICIPLES = frozenset(
    "kept written sent built rebuilt made taken held set put read cut run done drawn chosen found left fed hidden shown "
    "given told known split spread shut sold bought brought thrown frozen".split()
)
#: Words that end like adverbs and are none.
NO_ADVERBS = frozenset(
    "reply apply supply family assembly only italy july early anomaly multiply rely comply imply".split()
)


_OUTER = re.compile(r"^[,;:?\"'`()\[\]{}“”‘’]+|[.,;:?!\"'`()\[\]{}“”‘’]+$")
_ENDS_CLAUSE = re.compile(r"[,;:.!?][\"'`”’)\]]*$|^[-–—]+$")
_SENTENCE = re.compile(r"(?<=[.;])\s+|\s+(?=[-–—]+\s)")
_DASH = re.compile(r"^[-–—]+$")
DENIED = re.compile(r"(?:n't|n’t)$")

#: A part of a clause: what opens it ("" for the adverbs), and its words.
Part = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Clause:
    """What one clause says: how it is joined to the one before it, its words in order, and its parts in any order.

    `plain` are its words as they stand there.
    """

    join: str
    words: tuple[str, ...]
    parts: tuple[Part, ...]
    plain: frozenset[str]

    @property
    def denies(self) -> bool:
        """Whether something in it is denied."""
        inside = (*self.words, *(word for _, words in self.parts for word in words))
        return any(word in ("not", "never", "no", "none", "cannot", "nor") for word in inside) or any(
            opener == "without" for opener, _ in self.parts
        )

    def says(self, other: Clause) -> bool:
        """Whether it says the same as another one."""
        return (self.join, self.words) == (other.join, other.words) and Counter(self.parts) == Counter(other.parts)


@dataclass(frozen=True, slots=True)
class Told:
    """A text taken apart: its clauses, the reasons it gives (as words), and whether it asks."""

    clauses: tuple[Clause, ...]
    reasons: tuple[tuple[str, ...], ...]
    asks: bool

    @property
    def size(self) -> int:
        """How many words say something."""
        return sum(len(one.words) + sum(len(words) for _, words in one.parts) for one in self.clauses)


@cached(4096)
def told(said: str) -> Told:
    """A text taken apart."""
    plain = display.squeeze(said.replace("’", "'"))
    asks = plain.rstrip(" \"'`)").endswith("?")
    core, reasons = _reasons(_unframed(plain))
    return Told(clauses=tuple(_clauses(core)), reasons=tuple(map(_bare, reasons)), asks=asks)


@cached(4096)
def content(said: str) -> frozenset[str]:
    """The words that another text must have to say all of this one: of its clauses, without its reasons."""
    return frozenset(
        word for one in told(said).clauses for words in (one.words, *(w for _, w in one.parts)) for word in words
    )


def _unframed(said: str) -> str:
    """A text without the frames around it, and without the place where it holds anyway."""
    said = said.strip(" \"'")
    again = True
    while again:
        again = False
        for pattern, instead in OPENINGS:
            shorter = pattern.sub(instead, said, count=1)
            again = again or shorter not in (said, "")
            said = shorter or said
    return display.squeeze(HERE.sub(" ", said)) or said


def _reasons(said: str) -> tuple[str, list[str]]:
    """(what is said, why): from where a reason begins to the end of its sentence."""
    core: list[str] = []
    found: list[str] = []
    for sentence in _SENTENCE.split(said):
        match = REASON.search(sentence)
        cut = match is not None and match.start() > 0 and not set(_bare(sentence[match.end() :])) & NO_REASON
        core.append(sentence[: match.start()] + "." if match and cut else sentence)
        found += [sentence[match.end() :]] if match and cut else []
    return " ".join(core), found


def _bare(said: str) -> tuple[str, ...]:
    return tuple(_root(word) for token in said.split() if (word := word_of(token)) and word not in EMPTY)


def word_of(token: str) -> str:
    return "" if _DASH.match(token) else _OUTER.sub("", token).casefold()


def _clauses(said: str) -> list[Clause]:
    """The clauses of a text; one that is a fronted part only belongs to the next."""
    denies = any(
        word in NEGATIONS or word in ("never", "only") or DENIED.search(word) for word in map(word_of, said.split())
    )
    empty = EMPTY if denies else EMPTY | WEIGHT
    found: list[Clause] = []
    waiting: list[str] = []
    join = ""
    fronted: list[str] = []
    for token in [*said.split(), "."]:
        word = word_of(token)
        ends = bool(_ENDS_CLAUSE.search(token))
        if word in JOINS and waiting and not _is_condition(waiting):
            found += _clause(join, fronted, waiting, empty)
            fronted, waiting, join = [], [], JOINS[word]
            continue
        if word:
            waiting.append(word)
        if ends and waiting:
            if not found and not fronted and waiting[0] in OPENERS and token.rstrip("\"'`)").endswith(","):
                fronted, waiting = waiting, []
                continue
            found += _clause(join, fronted, waiting, empty)
            fronted, waiting, join = [], [], ""
    if fronted:
        found += _clause(join, [], fronted, empty)
    return found


def _is_condition(words: list[str]) -> bool:
    return any(word in CONDITIONS for word in words)


def _clause(join: str, fronted: list[str], words: list[str], empty: frozenset[str]) -> list[Clause]:
    if not fronted and words[0] in OPENERS:
        fronted, words = _split(words)
    main, parts = _parted(words, empty)
    parts = [*parts, *(_parted(fronted, empty)[1] if fronted else [])]
    return [Clause(join, main, tuple(parts), frozenset((*fronted, *words)))] if main or parts else []


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """A clause that begins with a part, cut where the sentence itself begins; ([], all) where nobody can tell."""
    if words[0] in CONDITIONS:
        return [], words
    for at in range(2, len(words)):
        of_part = words[at - 1] in OPENERS or all(word in DETERMINERS for word in words[1:at])
        if words[at] in BEGINS and not of_part:
            return words[:at], words[at:]
    return [], words


def _parted(words: list[str], empty: frozenset[str]) -> tuple[tuple[str, ...], list[Part]]:
    """(the words of a clause itself, its parts)."""
    main: list[str] = []
    behind: list[str] = []
    adverbs: list[str] = []
    parts: list[tuple[str, list[str]]] = []
    inside: list[str] | None = None
    is_passive = False
    for at, word in enumerate(words):
        # A condition goes to the end of its clause, another part to the verb.
        conditional = bool(parts) and parts[-1][0] in CONDITIONS
        if word in OPENERS and not conditional:
            if not _belongs_to_verb(words, at):
                parts.append((OPENERS[word], []))
                inside = parts[-1][1]
            continue
        if word in (COPULA | DUTY) and not conditional:
            inside = None
            is_passive = is_passive or (word in COPULA and _is_participle(_next(words, at)))
        if word in COPULA or _is_silent(words, at, empty):
            continue
        root = _root(_negation(words, at))
        if word.endswith("ly") and len(word) > 5 and word not in NO_ADVERBS:
            adverbs.append(root)
        elif inside is not None:
            inside.append(root)
        elif is_passive:
            behind.append(root)
        else:
            main.append(f"{root} did" if _is_past(words, at) else root)
    found: list[Part] = [(opener, tuple(told)) for opener, told in parts]
    found += [("", (word,)) for word in sorted(adverbs)]
    return tuple(_in_order(main, behind)), found


def _belongs_to_verb(words: list[str], at: int) -> bool:
    """Whether a word that could open a part belongs to the one before it: "not to", "all of"."""
    before = words[at - 1] if at else ""
    return before in {"to": ("not", "need", "have", "has"), "of": ("all", "each", "free")}.get(words[at], ())


def _is_silent(words: list[str], at: int, empty: frozenset[str]) -> bool:
    """Whether a clause says the same without a word: an empty one, or that somebody must where it is an order anyway."""
    word, behind = words[at], words[at + 1 :]
    if word in ("every", "each", "all") and behind and (behind[0] in COUNTS or behind[0][:1].isdigit()):
        return False  # how often, or how many
    if word not in DUTY:
        return word in empty
    rest = [one for one in behind if one not in ("not", "never", "always", "only")]
    is_done = rest[:1] == ["be"] and _is_participle("".join(rest[1:2])) and word != "should"
    return is_done or (at > 0 and words[at - 1] in ORDERED) or behind[:1] in (["not"], ["never"])


def _in_order(main: list[str], behind: list[str]) -> list[str]:
    """What is done, and to what: "secrets are stored" as "store secrets"; a denial stands first."""
    first = 2 if behind[:1] in (["not"], ["never"], ["only"]) else 1
    words = [*behind[:first], *main, *behind[first:]]
    denials = [word for word in words if word in ("not", "never")]
    return [*denials, *(word for word in words if word not in ("not", "never"))]


def _negation(words: list[str], at: int) -> str:
    """What a word denies: "never" what is never to be, "not" what only is not; any other word is itself."""
    word, before = words[at], words[at - 1] if at else ""
    if DENIED.search(word) and word not in ("can't", "won't"):
        word = "not"
    if word not in ("not", "never"):
        return word
    ordered = at < 2 or words[0] in ORDERED or words[0] in NEGATIONS
    forbids = word == "never" or at == 0 or before in DUTY or (before == "do" and ordered)
    return "never" if forbids else "not"


def _next(words: list[str], at: int) -> str:
    """The next word that says what is done."""
    behind = (word for word in words[at + 1 :] if word not in BETWEEN and not word.endswith("ly"))
    return next(behind, "")


def _is_participle(word: str) -> bool:
    return word in PARTICIPLES or _ends_as_past(word)


def _is_past(words: list[str], at: int) -> bool:
    """Whether a word tells what was done, where no copula stands before it: "the worker used Kafka"."""
    past = words[at] in IRREGULAR_PAST or _ends_as_past(words[at])
    return past and at > 0 and not any(one in COPULA for one in words[:at]) and words[at - 1] not in ("the", "a", "an")


def _ends_as_past(word: str) -> bool:
    return word.endswith("ed") and not word.endswith("eed") and len(word) > 4


def _root(word: str) -> str:
    """The stem of a word, with the letter once that an ending has doubled: committing, commit."""
    word = SAME_AS.get(word, word)
    if not word.isalpha() or similarity.turns_round(word):
        return word
    root = contradiction.stem(word)
    doubled = root != word and len(root) > 3 and root[-1] == root[-2] and root[-1] in "bgmnprt"
    return root[:-1] if doubled else root


#: So many words that say something make a statement that another one can hold.
LEAST = 3
#: A passage of so many words that stands in another text as it is; words of the heading before it.
QUOTED, HEADING = 10, 6


def same_wording(one: str, other: str) -> bool:
    """Whether two texts say the same: in the same words but for frames, voice, order of parts and empty words."""
    left, right = told(one), told(other)
    return (
        bool(left.clauses)
        and left.asks == right.asks
        and left.reasons == right.reasons
        and len(left.clauses) == len(right.clauses)
        and all(map(Clause.says, left.clauses, right.clauses))
    )


def says_all(one: str, other: str) -> bool:
    """Whether one text says everything that the other says: the same, or the same and more that limits nothing."""
    if same_wording(one, other) or _quotes(one, other):
        return True
    long, short = told(one), told(other)
    size = len(short.clauses)
    if short.size < LEAST or long.asks or short.asks or len(long.clauses) < size:
        return False
    if not set(short.reasons) <= set(long.reasons):
        return False
    kept, more = long.clauses[:size], long.clauses[size:]
    if not all(map(Clause.says, kept[:-1], short.clauses[:-1])):
        return False
    if not kept[-1].says(short.clauses[-1]) and (more or not _tells_how(kept[-1], short.clauses[-1])):
        return False
    return all(_adds(clause, kept) for clause in more)


# --- what may be more


def _quotes(one: str, other: str) -> bool:
    """Whether one text is another one with a heading before it, or with that as a sentence of its own among others."""
    whole, part = (display.squeeze(said.replace("’", "'")).casefold().rstrip(" .;") for said in (one, other))
    at = whole.find(part)
    if at < 0 or len(part.split()) < QUOTED or part.endswith("?"):
        return False
    before, behind = whole[:at].rstrip(), whole[at + len(part) :].lstrip()
    heads = not before or (before.endswith((":", ".")) and len(before.split()) <= HEADING)
    if before.split()[:1] and word_of(before.split()[0]) in OPENERS:
        return False
    limits = {word for word in map(word_of, f"{before} {behind}".split()) if word in LIMITS or DENIED.search(word)}
    return heads and (not behind or behind[0] in ".;") and not limits and not whole.endswith("?")


def _tells_how(one: Clause, other: Clause) -> bool:
    """Whether a clause is another one with the means besides, at its end."""
    if one.denies or (one.join, one.words) != (other.join, other.words):
        return False
    more = one.parts[len(other.parts) :]
    return (
        one.parts[: len(other.parts)] == other.parts
        and all(opener in MEANS for opener, _ in more)
        and not (one.plain - other.plain) & LIMITS
    )


def _adds(one: Clause, base: tuple[Clause, ...]) -> bool:
    """Whether a further clause limits nothing that those before it say."""
    if one.join or not one.words or base[-1].denies or {opener for opener, _ in one.parts} & CONDITIONS:
        return False
    contrast = one.words[:1] in (("never",), ("not",))
    denials = frozenset(("not", "never")) if contrast and _contrasts(one, base[-1]) else frozenset()
    return not {word for word in one.plain if word in LIMITS or DENIED.search(word)} - denials


def _contrasts(one: Clause, base: Clause) -> bool:
    """Whether "never from an interrupt" stands against what the clause before it says with the same opener."""
    if base.denies:
        return False
    openers = {opener for opener, _ in base.parts}
    if one.parts:
        return len(one.words) == 1 and {opener for opener, _ in one.parts} <= openers & AGAINST
    return 1 < len(one.words) <= 4


def tally(snapshot: Snapshot, gathered: Gathered) -> Tally:
    """How many memories a project has by tier, how many of them say what another one says, and how stale they are."""
    own = [memory for memory in snapshot.own if alive(memory)]
    ages: dict[str, list[float]] = defaultdict(list)
    for memory in own:
        ages[memory.tier].append(staleness(snapshot, memory))
    return Tally(
        project_seq=snapshot.project_seq,
        tiers={tier: len(found) for tier, found in sorted(ages.items())},
        duplicates=sum(memory.id in gathered.doubles for memory in own),
        staleness={tier: round(sum(found) / len(found), 4) for tier, found in sorted(ages.items())},
    )


def staleness(snapshot: Snapshot, memory: Memory) -> float:
    """How far a memory is on its way to the archive: 0 just told or used, or never to go; 1 when it is due."""
    if memory.pinned or memory.archive_at >= NEVER:
        return 0.0
    begun = snapshot.day(memory.project_seq, memory.fresh_at[:10])
    way = memory.archive_at - begun
    return min(1.0, max(0.0, (snapshot.day(memory.project_seq) - begun) / way)) if way > 0 else 1.0


#: Of a group's memories each is compared with so many of those that share most words with it.
LIKEST = 12
#: So many words must be the same where only a topic joins two memories.
SHARED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Memories that may belong together: of one topic ("" for none), gate and authority; ids in order of what they say."""

    topic: str
    gate: str
    authority: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What may belong together: groups, and pairs of ids in the order of what they say, whose words or vectors are near."""

    groups: tuple[Group, ...]
    told: tuple[tuple[str, str], ...]
    """Pairs of which one says all of the other, whichever it is."""
    alike: tuple[tuple[str, str], ...]
    near: tuple[tuple[str, str], ...]
    doubles: frozenset[str]
    """Of those that say the same, each but the first."""
    renames: Mapping[str, str]
    """Names that changed -> those they have now, as the memories say."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a phase looks at, as ids, and what it says of each: an action, or that nothing is to be done."""

    over: Callable[[Snapshot, Gathered], Iterable[tuple[str, ...]]]
    look: Callable[..., Action | None]


def gathering(snapshot: Snapshot) -> Generator[None, None, Gathered]:
    """The groups and pairs of the memories that are alive, in an order that depends on what they say alone.

    A step looks at one memory: thousands take seconds, and others are let pass in between.
    """
    every = sorted((one for one in snapshot.memories.values() if alive(one)), key=order)
    pairs: list[upkeep_plan.Pair] = []
    for found in upkeep_plan.comparing(every, everywhere={snapshot.project_seq: snapshot.everywhere}):
        pairs += found
        yield
    words = {(every[pair.one].id, every[pair.other].id) for pair in pairs}
    groups = tuple(_groups(snapshot, every))
    place = {memory.id: at for at, memory in enumerate(every)}
    own = {memory.id for memory in every if memory.project_seq == snapshot.project_seq}

    def ordered(pairs: set[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        sides = {
            (min(pair, key=place.__getitem__), max(pair, key=place.__getitem__)) for pair in pairs if set(pair) & own
        }
        return tuple(sorted(sides, key=lambda pair: (place[pair[0]], place[pair[1]])))

    close = {pair for pair in snapshot.near if set(pair) <= place.keys()}
    for group in groups:
        for ident, others in _sharing(group, snapshot):
            close.update((ident, other) for other in others)
            yield
    for opposed in _against(every):
        close.update(opposed)
        yield
    said = sorted(snapshot.memories.values(), key=lambda one: (snapshot.stated_at(one), order(one)))
    yield
    renaming: list[str] = []
    for memory in said:
        if contradiction.renames(memory.text):
            renaming.append(memory.text)
        yield
    repeated: set[tuple[str, str]] = set()
    same: set[tuple[str, str]] = set()
    for parts in telling(every):
        repeated.update(parts)
        same.update(pair for pair in parts if same_wording(*(snapshot.memories[ident].text for ident in pair)))
        yield
    told = ordered(repeated)
    return Gathered(
        groups=groups, told=told, alike=ordered(words), near=ordered(close - words), renames=contradiction.table(renaming),
        doubles=frozenset(other for one, other in told if {(one, other), (other, one)} & same),
    )  # fmt: skip


def _against(every: list[Memory]) -> Iterator[list[tuple[str, str]]]:
    """Of each memory the pairs with the newest that name something it speaks against."""
    newest = sorted(every, key=lambda memory: (memory.confirmed_at, order(memory)), reverse=True)
    folded = [(memory, memory.text.casefold()) for memory in newest]
    for memory in every:
        found: list[tuple[str, str]] = []
        if not contradiction.SPEAKS_AGAINST.search(memory.text):
            yield found  # taking a text apart is dear
            continue
        said = contradiction.read(memory.text)
        ended = [against.what for against in said.instead]
        for what in (*ended, *said.gone, *(liked_less for _, liked_less in said.prefers)):
            stem = max(what, key=lambda one: (len(one), one))
            naming = (one for one, plain in folded if stem in plain and one.id != memory.id)
            beside = (one for one in naming if stem in contradiction.read(one.text).stems)
            found += ((memory.id, one.id) for one in islice(beside, LIKEST))
        yield found


def telling(every: list[Memory]) -> Iterator[list[tuple[str, str]]]:
    """Of each memory (it, one that says all of it), by id: that has all of its words, the rarest of them, too."""
    words = [content(memory.text) for memory in every]
    having: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(words):
        for word in found:
            having[word].append(place)
    for place, found in enumerate(words):
        rarest = min(found, key=lambda word: (len(having[word]), word), default="")
        yield [
            (every[place].id, every[other].id)
            for other in having.get(rarest, ())
            if other != place and found <= words[other] and says_all(every[other].text, every[place].text)
        ]


def _groups(snapshot: Snapshot, every: list[Memory]) -> Iterator[Group]:
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for memory in every:
        for topic in snapshot.topics.get(memory.id, frozenset()):
            found[topic, memory.gate, memory.authority].append(memory.id)
    for (topic, gate, authority), members in sorted(found.items()):
        if len(members) > 1:
            yield Group(topic=topic, gate=gate, authority=authority, members=tuple(members))


def _sharing(group: Group, snapshot: Snapshot) -> Iterator[tuple[str, list[str]]]:
    """Each memory of a group beside those that share words with it, of them those that share most."""
    stems = [similarity.gist(snapshot.memories[ident].text).stems for ident in group.members]
    having: dict[str, list[int]] = defaultdict(list)
    for at, held in enumerate(stems):
        for stem in held:
            having[stem].append(at)
    for at, ident in enumerate(group.members):
        shared: Counter[int] = Counter()
        for stem in stems[at]:
            shared.update(having[stem])
        del shared[at]
        # The members stand in the order of what they say: the first of those that share as much.
        found = sorted((-number, other) for other, number in shared.items() if number >= SHARED)
        yield ident, [group.members[other] for _, other in found[:LIKEST]]


#: What outlasts what: a memory may only go into one that ages no faster.
_TIERS: dict[Tier, int] = {"archive": 0, "session": 1, "daily": 2, "durable": 3}
_DECAYS: dict[Decay, int] = {"ephemeral": 0, "session": 1, "durable": 2, "permanent": 3}
#: The findings by which a person may have said that two memories are two.
PAIRS = ("duplicate", "near_duplicate")


# --- merge


def _pairs(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """Two memories of which one says all of the other."""
    del snapshot
    yield from gathered.told


def _merge(snapshot: Snapshot, gathered: Gathered, one_id: str, other_id: str) -> Action | None:
    """Of two that say the same the best evidenced wording stays, of two of which one says more that one."""
    del gathered
    one, other = snapshot.memories.get(one_id), snapshot.memories.get(other_id)
    if one is None or other is None or not (alive(one) and alive(other)):
        return None
    best, rest = sorted((one, other), key=_evidenced)
    for keeper, goes in ((best, rest), (rest, best)):
        if may_merge(snapshot, goes, keeper):
            more = confirming(snapshot, keeper, goes)
            sure = confirmed(keeper, more)
            return Action(
                kind="merge", project_seq=snapshot.project_seq, memory=goes, other=keeper,
                reason=_merged(goes, keeper), evidence=(keeper.id, *(source.uuid for source in more)),
                confidence=sure.confidence, tier=sure.tier if _TIERS[sure.tier] >= _TIERS[goes.tier] else goes.tier,
            )  # fmt: skip
    return None


def _evidenced(memory: Memory) -> tuple[object, ...]:
    """Which wording stays, the least first: pinned, by authority, sureness, evidence; then the plainest, the oldest."""
    return upkeep_plan.rank(memory)[:4], len(memory.text), order(memory)


def _merged(goes: Memory, keeper: Memory) -> str:
    if tokens.normalise(keeper.text) == tokens.normalise(goes.text):
        said = "says the same in the same words as"
    elif same_wording(keeper.text, goes.text):
        said = "says the same in other words as"
    else:
        said = "is said in full, and with more, by"
    return f"{goes.id} {said} {keeper.id}"


def may_merge(snapshot: Snapshot, goes: Memory, keeper: Memory) -> bool:
    """Whether nothing is lost when one memory goes into another: no word, no weight, no place where it holds."""
    return (
        goes.project_seq == snapshot.project_seq
        and upkeep_plan.stands_for(keeper, goes, everywhere={snapshot.project_seq: snapshot.everywhere})
        and upkeep_plan.may_go(goes, keeper)
        and (goes.gate == "correction") == (keeper.gate == "correction")
        and outlasts(keeper, goes)
        # What csmd worked out follows its counts, and what an assistant saved by itself is nobody's statement.
        and keeper.origin == goes.origin != "inferred"
        and not are_two(snapshot, goes, keeper)
        and says_all(keeper.text, goes.text)
    )


def outlasts(keeper: Memory, other: Memory) -> bool:
    """Whether a memory ages no faster than another one; the longer of their tiers is the one that stays has."""
    lasting = [confidence.is_lasting(one.gate, one.category, stated=one.authority == "user") for one in (keeper, other)]
    return _DECAYS[keeper.decay] >= _DECAYS[other.decay] and lasting[0] >= lasting[1]


def are_two(snapshot: Snapshot, one: Memory, other: Memory) -> bool:
    """Whether somebody said that two memories are two: by taking their merge back, or by dropping what was found."""
    if other.id in _kept_from(snapshot, one.id):
        return True
    fingerprint = " ".join(sorted((one.id, other.id)))
    places = (one.project_seq, other.project_seq)
    return any((place, kind, fingerprint) in snapshot.dropped for place in places for kind in PAIRS)


def _kept_from(snapshot: Snapshot, ident: str) -> set[str]:
    """What a memory is kept from by merges that were taken back: of one into a second, and of that into a third."""
    found = {ident} if snapshot.apart else set()
    grown = bool(found)
    while grown:
        beside = {name for pair in snapshot.apart if found & set(pair) for name in pair}
        grown, found = not beside <= found, found | beside
    return found


# --- strengthen


def _both_ways(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A memory, and one that may say the same."""
    for one, other in _pairs(snapshot, gathered):
        yield one, other
        yield other, one


def _strengthen(snapshot: Snapshot, gathered: Gathered, ident: str, teller_id: str) -> Action | None:
    """What another session says in full is surer for it, where the two have to stay two."""
    del gathered
    memory, teller = snapshot.memories.get(ident), snapshot.memories.get(teller_id)
    if memory is None or teller is None or not (alive(memory) and alive(teller)):
        return None
    here = snapshot.project_seq
    if memory.project_seq != here or teller.project_seq != here or memory.origin in UNSAID or memory.pinned:
        return None
    if ("strengthen", ident) in snapshot.undone:
        return None
    if (memory.gate == "correction") != (teller.gate == "correction"):
        return None
    if are_two(snapshot, memory, teller):
        return None
    more = [one for one in confirming(snapshot, memory, teller) if one.session_id not in sessions(memory)]
    if not more or not says_all(teller.text, memory.text):
        return None
    sure = confirmed(memory, more)
    told = display.amount(len({one.session_id for one in more}), "more session")
    return Action(
        kind="strengthen", project_seq=here, memory=memory, other=teller,
        reason=f"{teller.id} says in {told} what {memory.id} says",
        evidence=(teller.id, *(one.uuid for one in more)), confidence=sure.confidence, tier=sure.tier,
    )  # fmt: skip


# --- contradictions


def _beside(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A memory, and all that may belong together with it."""
    beside: dict[str, list[str]] = defaultdict(list)
    for one, other in (*gathered.alike, *gathered.near):
        beside[one].append(other)
        beside[other].append(one)
    for memory in snapshot.own:
        if memory.id in beside:
            yield memory.id, *beside[memory.id]


def _supersede(snapshot: Snapshot, gathered: Gathered, ident: str, *beside: str) -> Action | None:
    """Of two that contradict each other the older gives way; of several that overturn one, to the newest."""
    old = snapshot.memories.get(ident)
    if old is None or not alive(old) or old.pinned or ident in snapshot.settled:
        return None
    refused, stated = snapshot.refused.get(ident, frozenset()), _stands_since(snapshot, old)
    others = (snapshot.memories.get(other) for other in beside if other not in refused)
    newer = [
        one
        for one in others
        if one is not None and alive(one) and _since(snapshot, old, one) > stated and _may_overturn(old, one)
    ]
    for new in sorted(newer, key=lambda one: (snapshot.stated_at(one), order(one)), reverse=True):
        found = contradiction.amendment(old.text, new.text, gathered.renames)
        if found is not None:
            return Action(
                kind="supersede", project_seq=snapshot.project_seq, memory=old, other=new,
                reason=f"{new.id} says otherwise since {snapshot.stated_at(new)[:10]}: {', '.join(found.reasons)}",
                evidence=(new.id, *(one.uuid for one in new.provenance[:1])),
                confidence=round(max(contradiction.LEAST_LEFT, old.confidence - found.lowers), 4),
            )  # fmt: skip
    return None


def _stands_since(snapshot: Snapshot, old: Memory) -> str:
    """What was said up to then does not end a memory: it was said anew, or somebody has let it stand."""
    return max(snapshot.stated_at(old), snapshot.let_stand.get(old.id, ""))


def _since(snapshot: Snapshot, old: Memory, new: Memory) -> str:
    """From when one memory may speak against another (as in `believe.stage_supersede`)."""
    return new.created_at if old.scope == "project" and new.scope != "project" else snapshot.stated_at(new)


def _may_overturn(old: Memory, new: Memory) -> bool:
    """Whether one memory may supersede another unasked (as in `believe.stage_supersede`)."""
    if new.origin in UNSAID or new.authority == "external":
        return False
    if old.scope != "project" and new.project_seq != old.project_seq:
        return False
    return AUTHORITY_RANK[new.authority] >= AUTHORITY_RANK[old.authority]


def _ask(snapshot: Snapshot, gathered: Gathered, ident: str, *beside: str) -> Action | None:
    """What speaks against a memory where no rule may end it, or nobody can tell whether it does, a person is asked."""
    old = snapshot.memories.get(ident)
    if old is None or not alive(old) or ident in snapshot.settled:
        return None
    refused = snapshot.refused.get(ident, frozenset())
    for other in sorted(
        beside, key=lambda one: order(snapshot.memories[one]) if one in snapshot.memories else ("",) * 4
    ):
        new = snapshot.memories.get(other)
        if new is None or not alive(new) or other in refused or f"{ident}:{other}" in snapshot.asked:
            continue
        if (
            new.authority == "external"
            or new.origin in UNSAID
            or _since(snapshot, old, new) <= _stands_since(snapshot, old)
        ):
            continue
        may = _may_overturn(old, new) and not old.pinned
        found = (contradiction.doubt if may else contradiction.amendment)(old.text, new.text, gathered.renames)
        if found is not None:
            why = "of what use it speaks is not said" if may else contradiction.stands(pinned=old.pinned)
            return Action(
                kind="ask", project_seq=snapshot.project_seq, memory=old, other=new, sure=found.confidence,
                reason=f"{new.id} {'may speak' if may else 'speaks'} against {ident} ({', '.join(found.reasons)}), which stands: {why}",
                evidence=(new.id, ident, *(one.uuid for one in new.provenance[:1])),
            )  # fmt: skip
    return None


# --- promote


def _for_a_while(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A memory of a short tier."""
    del gathered
    yield from ((memory.id,) for memory in snapshot.own if memory.tier in ("session", "daily"))


def _promote(snapshot: Snapshot, gathered: Gathered, ident: str) -> Action | None:
    """What is sure and was told in two sessions is no longer for a day."""
    del gathered
    memory = snapshot.memories.get(ident)
    if memory is None or not alive(memory) or memory.tier == "durable" or memory.origin in UNSAID:
        return None
    if ("promote", ident) in snapshot.undone:
        return None
    told = sessions(memory)
    if not is_sure(memory, memory.confidence):
        return None
    first = {one.session_id: one.uuid for one in reversed(memory.provenance) if one.role != "beside"}
    return Action(
        kind="promote", project_seq=snapshot.project_seq, memory=memory,
        reason=f"{memory.id} is sure ({memory.confidence * 100:.0f}) and was told in {len(told)} sessions",
        evidence=tuple(sorted(first.values())[:4]), tier="durable",
    )  # fmt: skip


# --- raise


def _facts(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A fact that recurs and that no habit tells."""
    del gathered
    yield from ((fact.fingerprint,) for fact in snapshot.facts if actions.recurs(fact))


def _raise(snapshot: Snapshot, gathered: Gathered, fingerprint: str) -> Action | None:
    """What recurs waits as a pattern, a convention or a gotcha, and is remembered where it passes the thresholds."""
    del gathered
    fact = next(one for one in snapshot.facts if one.fingerprint == fingerprint)
    wanted, known = actions.candidate(fact), snapshot.raised.get(fact.fingerprint)
    if known is not None and (known.status == "dropped" or actions.says(known) == wanted):
        return None
    if ("raise", fingerprint) in snapshot.undone:
        return None
    return Action(
        kind="raise", project_seq=snapshot.project_seq, fact=fact, confidence=wanted.confidence,
        reason=f"{wanted.reason}: {wanted.text}", evidence=fact.evidence,
    )  # fmt: skip


CONSOLIDATING: tuple[Step, ...] = (
    Step(_pairs, _merge),
    Step(_both_ways, _strengthen),
    Step(_beside, _supersede),
    Step(_beside, _ask),
    Step(_for_a_while, _promote),
    Step(_facts, _raise),
)


#: In so many projects the user has to have asked for it.
PROJECTS = 3


def may_hold_everywhere(memory: Memory, *, project_name: str) -> bool:
    """Whether a project's memory is how the user works, in words that would mean the same elsewhere."""
    return (
        alive(memory)
        and memory.scope == "project"
        and memory.authority == "user"
        and memory.origin not in UNSAID
        and not memory.pinned
        and (memory.gate == "behavioral" or memory.category == "preference")
        and not confidence.is_of_a_place(memory.text, project_name=project_name)
    )


def lifted(memory: Memory, *, everywhere: int, since: str) -> Memory:
    """The memory that says everywhere what a project's one says; it was first said `since`."""
    return replace(
        memory, id=kinds.of(everywhere, memory.text), scope="user" if memory.gate == "behavioral" else "global",
        project_seq=everywhere, created_at=since, seq=0, version=1,
    )  # fmt: skip


def _abroad(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A statement of some project's, and all that it says in full; those told in most projects first."""
    del gathered
    every = sorted(snapshot.abroad.values(), key=lambda one: (upkeep_plan.rank(one)[:5], order(one)))
    told: dict[str, list[str]] = {one.id: [one.id] for one in every}
    for part, whole in chain.from_iterable(telling(every)):
        if (snapshot.abroad[part].gate == "correction") == (snapshot.abroad[whole].gate == "correction"):
            told[whole].append(part)
    yield from sorted(
        map(tuple, told.values()), key=lambda group: -len({snapshot.abroad[ident].project_seq for ident in group})
    )


def _lift(snapshot: Snapshot, gathered: Gathered, ident: str, *others: str) -> Action | None:
    """What was asked for in projects enough, and is not said everywhere yet, is said everywhere from then on."""
    del gathered
    best = snapshot.abroad[ident]
    if len({snapshot.abroad[one].project_seq for one in (ident, *others)}) < PROJECTS:
        return None
    around = [one for one in snapshot.memories.values() if alive(one)]
    if any(says_all(one.text, best.text) or _speaks_against(one, best) for one in around):
        return None
    # What is said everywhere already asks for nothing more.
    unsaid = (snapshot.abroad[one] for one in others)
    group = [best, *(one for one in unsaid if not any(says_all(wide.text, one.text) for wide in around))]
    told = {one.project_seq for one in group}
    against = {one.project_seq for one in snapshot.abroad.values() if _speaks_against(one, best)}
    if len(told) < PROJECTS or len(told) <= len(against):
        return None
    made = lifted(best, everywhere=snapshot.project_seq, since=min(one.created_at for one in group))
    if made.id in snapshot.memories or ("lift", made.id) in snapshot.undone:
        return None
    return Action(
        kind="lift", project_seq=snapshot.project_seq, memory=best,
        reason=f"the user asked for it in {len(told)} projects: it holds everywhere",
        evidence=tuple(one.id for one in group), made=snapshot.aged(made),
    )  # fmt: skip


def _speaks_against(one: Memory, other: Memory) -> bool:
    return bool(contradiction.amendment(one.text, other.text) or contradiction.amendment(other.text, one.text))


LIFTING = (Step(_abroad, _lift),)


#: Active days for which what was superseded still stands behind what replaced it.
SUPERSEDED_DAYS = 30


def _own(snapshot: Snapshot, gathered: Gathered) -> Iterator[tuple[str, ...]]:
    """A memory of the project."""
    del gathered
    yield from ((memory.id,) for memory in snapshot.own)


def _archive(snapshot: Snapshot, gathered: Gathered, ident: str) -> Action | None:
    """What has decayed, was superseded a while ago, or was for a day only goes to the archive."""
    del gathered
    memory = snapshot.memories.get(ident)
    if memory is None or memory.tier == "archive" or memory.pinned:
        return None
    back = snapshot.brought_back.get(ident)
    due = is_due(snapshot, memory)
    if (back is not None and memory.fresh_at <= back) or (is_the_users(memory) and not due):
        return None
    why = next((reason for rule in WHEN if (reason := rule(snapshot, memory))), "")
    if not why:
        return None
    last = max(memory.provenance, key=lambda one: (one.at, one.uuid))
    evidence = (memory.superseded_by,) if memory.superseded_by else (last.uuid,)
    return Action(
        kind="archive", project_seq=snapshot.project_seq, memory=memory, reason=f"{ident} {why}", evidence=evidence,
        tier="archive",
    )  # fmt: skip


def is_due(snapshot: Snapshot, memory: Memory) -> bool:
    """Whether the active day that is stored for a memory has passed."""
    return memory.archive_at < snapshot.day(memory.project_seq)


def is_the_users(memory: Memory) -> bool:
    """Whether the user stated a memory, and for good."""
    return memory.authority == "user" and memory.tier == "durable"


def _superseded(snapshot: Snapshot, memory: Memory) -> str:
    if not memory.superseded_by:
        return ""
    since = snapshot.superseded_at.get(memory.id, memory.fresh_at)[:10]
    passed = snapshot.day(memory.project_seq) - snapshot.day(memory.project_seq, since)
    return f"was superseded on {since}, {passed} active days ago" if passed > SUPERSEDED_DAYS else ""


def _for_a_day(snapshot: Snapshot, memory: Memory) -> str:
    passed = snapshot.day(memory.project_seq) - snapshot.day(memory.project_seq, memory.fresh_at[:10])
    lasting = confidence.is_lasting(memory.gate, memory.category, stated=memory.authority == "user")
    if memory.tier != "daily" or passed <= confidence.DAILY_DAYS or lasting or not is_due(snapshot, memory):
        return ""
    return f"is a daily memory, neither told nor used for {passed} active days"


def _decayed(snapshot: Snapshot, memory: Memory) -> str:
    if not is_due(snapshot, memory) or memory.tier == "daily":
        return ""
    return f"has faded: neither told nor used since {memory.fresh_at[:10]}"


WHEN: tuple[Callable[[Snapshot, Memory], str], ...] = (_superseded, _for_a_day, _decayed)
PRUNING = (Step(_own, _archive),)


STEPS = (*CONSOLIDATING, *PRUNING)


def planning(snapshot: Snapshot) -> Generator[None, None, tuple[DreamPlan, Snapshot]]:
    """What a dream does in one project, and the snapshot that it leaves; a look at a time."""
    gathered = yield from gathering(snapshot)
    found = tally(snapshot, gathered)
    left = Working.of(snapshot)
    done = yield from _through(LIFTING, left, gathered)
    if done:  # what is new belongs together with others, too
        gathered = yield from gathering(left)
    while True:
        more = yield from _through(STEPS, left, gathered)
        if not more:
            return DreamPlan(actions=tuple(done), tallies=(found,)), left
        done += more


def _through(steps: tuple[Step, ...], left: Working, gathered: Gathered) -> Generator[None, None, list[Action]]:
    """What some steps say is to be done, each after those before it; `left` follows."""
    done: list[Action] = []
    for step in steps:
        for subject in step.over(left, gathered):
            action = step.look(left, gathered, *subject)
            if action is not None:
                left.follow(action)
                done.append(action)
            yield
    return done


def joined(plans: list[DreamPlan]) -> DreamPlan:
    """The plans of several projects as one."""
    return DreamPlan(
        actions=tuple(action for one in plans for action in one.actions),
        tallies=tuple(found for one in plans for found in one.tallies),
    )
