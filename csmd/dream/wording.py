"""Whether two statements say the same, in which words they differ, and which is told."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from csmd import text
from csmd.cache import cached
from csmd.memory import contradiction

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
LIMITS = text.TURNING_WORDS | frozenset(
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
    plain = text.squeeze(said.replace("’", "'"))
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
    return text.squeeze(HERE.sub(" ", said)) or said


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
    if not word.isalpha() or text.turns_round(word):
        return word
    root = contradiction.stem(word)
    doubled = root != word and len(root) > 3 and root[-1] == root[-2] and root[-1] in "bgmnprt"
    return root[:-1] if doubled else root


#: So many words that say something make a statement that another one can hold.
LEAST = 3
#: A passage of so many words that stands in another text as it is; words of the heading before it.
QUOTED, HEADING = 10, 6


def same(one: str, other: str) -> bool:
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
    if same(one, other) or _quotes(one, other):
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
    whole, part = (text.squeeze(said.replace("’", "'")).casefold().rstrip(" .;") for said in (one, other))
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
