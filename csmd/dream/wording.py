"""Whether one text says all that another one says; in doubt it does not, because a lost detail is worse than a double.

One says more where it begins with all clauses of the other and goes on with a reason, a clause of its own that limits
nothing, or the means; or where it has the other as it is, as a sentence of its own. Of a denial nothing may be more:
"Never deploy on Fridays in May" allows what "Never deploy on Fridays" does not.
"""

from __future__ import annotations

from csmd import text
from csmd.dream import frames
from csmd.dream.apart import DENIED, Clause, told, word_of

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
    if before.split()[:1] and word_of(before.split()[0]) in frames.OPENERS:
        return False
    limits = {
        word for word in map(word_of, f"{before} {behind}".split()) if word in frames.LIMITS or DENIED.search(word)
    }
    return heads and (not behind or behind[0] in ".;") and not limits and not whole.endswith("?")


def _tells_how(one: Clause, other: Clause) -> bool:
    """Whether a clause is another one with the means besides, at its end."""
    if one.denies or (one.join, one.words) != (other.join, other.words):
        return False
    more = one.parts[len(other.parts) :]
    return (
        one.parts[: len(other.parts)] == other.parts
        and all(opener in frames.MEANS for opener, _ in more)
        and not (one.plain - other.plain) & frames.LIMITS
    )


def _adds(one: Clause, base: tuple[Clause, ...]) -> bool:
    """Whether a further clause limits nothing that those before it say."""
    if one.join or not one.words or base[-1].denies or {opener for opener, _ in one.parts} & frames.CONDITIONS:
        return False
    contrast = one.words[:1] in (("never",), ("not",))
    denials = frozenset(("not", "never")) if contrast and _contrasts(one, base[-1]) else frozenset()
    return not {word for word in one.plain if word in frames.LIMITS or DENIED.search(word)} - denials


def _contrasts(one: Clause, base: Clause) -> bool:
    """Whether "never from an interrupt" stands against what the clause before it says with the same opener."""
    if base.denies:
        return False
    openers = {opener for opener, _ in base.parts}
    if one.parts:
        return len(one.words) == 1 and {opener for opener, _ in one.parts} <= openers & frames.AGAINST
    return 1 < len(one.words) <= 4
