"""How sessions build on each other: rules over what their digests hold; pure, and the same in whatever order they came.

Precision before recall: what a session says or does with something that only another one can have made is direct;
the same files for the same purpose within days, and an error that is mended later, are inferred; what is named as done
and was captured nowhere is a gap, and said as such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

LinkKind = Literal["direct", "inferred", "gap"]

#: Active days of the project within which sessions are compared, and how many sessions back at most.
WITHIN_DAYS, BACK = 14, 40
#: Inferred links that a session gets at most, the strongest.
MOST_INFERRED = 3
#: Files and words that two sessions must share; a word that more than this share of the sessions has is nobody's.
SHARED_FILES, SHARED_WORDS, COMMON = 2, 2, 0.25
#: Branches on which everybody works say nothing.
TRUNKS = frozenset({"main", "master", "develop", "dev", "trunk", "HEAD"})
#: Words that an error must have to be known again.
ERROR_WORDS = 4


class Rule(NamedTuple):
    """What a rule makes of two sessions: the kind of link, its weight, and the reason in words."""

    kind: LinkKind
    weight: float
    reason: str


# fmt: off
RULES: Mapping[str, Rule] = {
    "same turns": Rule("direct", 1.0, "it goes on from the other's conversation: both hold its turns"),
    "transcript": Rule("direct", 1.0, "its first prompt names the other's transcript"),
    "plan": Rule("direct", 0.95, "it carries out the plan that was made there"),
    "commit": Rule("direct", 0.9, "it names commit {about}, which was made there"),
    "branch": Rule("direct", 0.8, "it commits on branch {about}, on which the other worked"),
    "said so": Rule("direct", 0.7, "it says that it goes on from the session before, and both changed {about}"),
    "error mended": Rule("inferred", 0.6, "the other ended with an error that this one met and mended: {about}"),
    "same work": Rule("inferred", 0.5, "both changed {about}, for the same purpose"),
    "unseen transcript": Rule("gap", 1.0, "its plan was made in session {about}, which was not captured"),
    "unseen commit": Rule("gap", 0.7, "it names commit {about}, which no captured session made"),
    "unseen conversation": Rule("gap", 0.8, "it goes on from a conversation that was not captured"),
}
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a session is compared by; each thing with the uuid of where it stands. `day` is the project's active day."""

    seq: int
    id: str
    started_at: str
    last_at: str
    day: int
    files: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    commits: Mapping[str, str] = field(default_factory=dict)
    branches: Mapping[str, str] = field(default_factory=dict)
    plans: Mapping[str, str] = field(default_factory=dict)
    plan_given: Mapping[str, str] = field(default_factory=dict)
    transcripts: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    continued: str = ""
    errors: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Error -> (how the command ended, uuid)."""
    shares: Mapping[int, str] = field(default_factory=dict)
    """Session -> the first turn that both hold."""


class Link(NamedTuple):
    """One session builds on another: `from_seq` is 0 for a gap; `about` is what ties them."""

    from_seq: int
    to_seq: int
    rule: str
    about: str
    weight: float
    evidence: tuple[str, ...]


def before(one: Facts, other: Facts) -> bool:
    """Whether a session comes before another: by its start, then its end, for a fork starts when its trunk did."""
    return (one.started_at, one.last_at, one.id) < (other.started_at, other.last_at, other.id)


def links(later: Facts, around: Sequence[Facts]) -> list[Link]:
    """What a session builds on, among the sessions `around` it, those of its project; in a fixed order."""
    earlier = sorted((one for one in around if one.seq != later.seq and before(one, later)), key=_order)
    found = [link for one in earlier for link in _direct(later, one)]
    tied = {link.from_seq for link in found}
    near = [one for one in earlier[-BACK:] if later.day - one.day <= WITHIN_DAYS and one.seq not in tied]
    common = _common([*near, later])
    inferred = [link for one in near for link in _inferred(later, one, common)]
    inferred.sort(key=lambda link: (-link.weight, -link.from_seq, link.rule))
    kept: dict[int, Link] = {}
    for link in inferred:
        kept.setdefault(link.from_seq, link)
    return [*found, *list(kept.values())[:MOST_INFERRED], *_gaps(later, earlier, around)]


def reason(rule: str, about: str) -> str:
    """A link's reason in words."""
    return RULES[rule].reason.format(about=about) if rule in RULES else rule


def _order(one: Facts) -> tuple[str, str, str]:
    return one.started_at, one.last_at, one.id


def _link(rule: str, one: int, later: Facts, about: str, *evidence: str, weight: float = 0.0) -> Link:
    uuids = tuple(dict.fromkeys(uuid for uuid in evidence if uuid))
    return Link(one, later.seq, rule, about, weight or RULES[rule].weight, uuids[:6])


def _direct(later: Facts, one: Facts) -> list[Link]:
    """The surest rule by which a session builds on an earlier one; at most one."""
    if one.seq in later.shares:
        return [_link("same turns", one.seq, later, "", later.shares[one.seq])]
    if one.id in later.transcripts:
        return [_link("transcript", one.seq, later, "", later.transcripts[one.id])]
    for plan in later.plan_given:
        if plan in one.plans:
            return [_link("plan", one.seq, later, "", later.plan_given[plan], one.plans[plan])]
    for name in later.names:
        made = next((full for full in one.commits if full.startswith(name) or name.startswith(full)), "")
        if made and made not in later.commits:
            return [_link("commit", one.seq, later, made, later.names[name], one.commits[made])]
    for branch in sorted(later.branches.keys() & one.branches.keys() - TRUNKS):
        return [_link("branch", one.seq, later, branch, later.branches[branch], one.branches[branch])]
    if later.continued:
        both = sorted(later.files.keys() & one.files.keys())
        if both and later.day - one.day <= 1:
            return [_link("said so", one.seq, later, both[0], later.continued, one.files[both[0]])]
    return []


def _inferred(later: Facts, one: Facts, common: frozenset[str]) -> list[Link]:
    found: list[Link] = []
    for error in sorted(later.errors.keys() & one.errors.keys()):
        (there, seen), (here, mended) = one.errors[error], later.errors[error]
        if there == "failed" and here == "mended" and len(error.split()) > ERROR_WORDS:
            found.append(_link("error mended", one.seq, later, error, seen, mended))
    files = sorted(later.files.keys() & one.files.keys())
    words = sorted(later.words.keys() & one.words.keys() - common)
    if len(files) >= SHARED_FILES and len(words) >= SHARED_WORDS:
        share = len(files) / min(len(later.files), len(one.files))
        weight = round(min(0.75, RULES["same work"].weight * (0.6 + share) * (1 - 0.02 * (later.day - one.day))), 3)
        evidence = (later.files[files[0]], one.files[files[0]], later.words[words[0]], one.words[words[0]])
        found.append(_link("same work", one.seq, later, ", ".join(files[:3]), *evidence, weight=weight))
    return found


def _common(facts: Sequence[Facts]) -> frozenset[str]:
    """The words that many of some sessions have: they tell nothing of two."""
    counts: dict[str, int] = {}
    for one in facts:
        for word in one.words:
            counts[word] = counts.get(word, 0) + 1
    most = max(3, int(COMMON * len(facts)))
    return frozenset(word for word, count in counts.items() if count > most)


def _gaps(later: Facts, earlier: Sequence[Facts], around: Sequence[Facts]) -> list[Link]:
    captured = {one.id for one in around}
    made = [commit for one in (*around, later) for commit in one.commits]
    found = [
        _link("unseen transcript", 0, later, name, uuid)
        for name, uuid in sorted(later.transcripts.items())
        if name not in captured
    ]
    for name, uuid in sorted(later.names.items()):
        if not any(full.startswith(name) or name.startswith(full) for full in made):
            found.append(_link("unseen commit", 0, later, name, uuid))
    near = any(later.day - one.day <= 1 for one in earlier)
    if later.continued and not later.shares and not later.transcripts and not near:
        found.append(_link("unseen conversation", 0, later, "", later.continued))
    return found
