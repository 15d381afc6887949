"""The words around what a sentence says: tables of English by which wording is compared, and nothing else.

A frame says who said it or that it is to be kept in mind; what stands in it is the same without. What is in no table is
a word like any other.
"""

from __future__ import annotations

import re

from csmd import text

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
