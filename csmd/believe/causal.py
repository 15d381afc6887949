"""How sessions build on each other: rules over what their digests hold; pure, and the same in whatever order they came.

Precision before recall: what a session says or does with something that only another one can have made is direct;
the same files for the same purpose within days, and an error that is mended later, are inferred; what is named as done
and was captured nowhere is a gap, and said as such.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Literal, NamedTuple

LinkKind = Literal["direct", "inferred", "gap"]

#: Active days of the project within which sessions are compared, and how many sessions back at most.
WITHIN_DAYS, BACK = 14, 40
#: Inferred links that a session gets at most, the strongest.
MOST_INFERRED = 3
#: "Same work": how rare the files that both changed are, times how rare the words of both goals are, fading by the
#: active day; at least so much. Rarity is that among sessions around, of which at least BACKGROUND are assumed.
SCORE, FADES, BACKGROUND = 12.0, 0.1, 20
#: A single shared file must be one that few sessions change; a shared word one that not many have.
RARE_FILE, RARE_WORD = 0.08, 0.15
#: Words of which every goal is full.
EMPTY = frozenset(
    "claud cod fil work right need want tak mak chang look check updat mayb let' don't doesn't current instead".split()
)
#: Branches on which everybody works say nothing.
TRUNKS = frozenset({"main", "master", "develop", "dev", "trunk", "HEAD"})
#: An error is known again by a name in it: a path, an identifier, a number of its own.
_NAMED = re.compile(r"[a-z][A-Z]|\w_\w|\w\.\w+:|\w\(|::")


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
    "same work": Rule("inferred", 0.5, "both changed {about}, and were asked for in much the same words"),
    "unseen transcript": Rule("gap", 1.0, "its plan was made in session {about}, which was not captured"),
    "unseen commit": Rule("gap", 0.7, "it names commit {about}, which no captured session made"),
    "unseen conversation": Rule("gap", 0.8, "it goes on from a conversation that was not captured"),
}
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a session is compared by; each thing with the uuid of where it stands.

    `day` is the project's active day on which it began, `since` the time before which sessions are too long past for it.
    """

    seq: int
    id: str
    started_at: str
    last_at: str
    day: int
    since: str = ""
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


def links(later: Facts, around: Sequence[Facts], *, captured: frozenset[str] = frozenset()) -> list[Link]:
    """What a session builds on, among the sessions `around` it, those of its project; in a fixed order.

    `captured` are ids of sessions that are stored, of whatever project: what they made is no gap.
    """
    earlier = sorted(
        (one for one in around if one.seq != later.seq and before(one, later) and one.started_at >= later.since),
        key=_order,
    )
    found = [link for one in earlier for link in _direct(later, one)]
    tied = {link.from_seq for link in found}
    near = [one for one in earlier[-BACK:] if later.day - one.day <= WITHIN_DAYS and one.seq not in tied]
    rarity = _Rarity([*earlier, later])
    inferred = [link for one in near for link in _inferred(later, one, rarity)]
    inferred.sort(key=lambda link: (-link.weight, -link.from_seq, link.rule))
    kept: dict[int, Link] = {}
    for link in inferred:
        kept.setdefault(link.from_seq, link)
    return [*found, *list(kept.values())[:MOST_INFERRED], *_gaps(later, earlier, captured)]


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


class _Rarity:
    """How rare files and words are among sessions."""

    def __init__(self, facts: Sequence[Facts]) -> None:
        self._of = max(len(facts), BACKGROUND)
        self._files = Counter(name for one in facts for name in one.files)
        self._words = Counter(word for one in facts for word in one.words)

    def files(self, one: Facts, other: Facts) -> tuple[list[str], float]:
        """(files that both changed, the rarest first, how much they say); none for a single one that many change."""
        both = sorted(one.files.keys() & other.files.keys(), key=lambda name: (self._files[name], name))
        if len(both) == 1 and self._files[both[0]] > max(2, RARE_FILE * self._of):
            return [], 0.0
        return both, sum(log((self._of + 1) / self._files[name]) for name in both)

    def words(self, one: Facts, other: Facts) -> tuple[list[str], float]:
        """(words of both goals that not many have, how much they say); none for a single one."""
        most = max(3, RARE_WORD * self._of)
        both = sorted(word for word in one.words.keys() & other.words.keys() - EMPTY if self._words[word] <= most)
        return both, sum(log((self._of + 1) / self._words[word]) for word in both) if len(both) > 1 else 0.0


def _inferred(later: Facts, one: Facts, rarity: _Rarity) -> list[Link]:
    found: list[Link] = []
    for error in sorted(later.errors.keys() & one.errors.keys()):
        (there, seen), (here, mended) = one.errors[error], later.errors[error]
        if there == "failed" and here == "mended" and _NAMED.search(error):
            found.append(_link("error mended", one.seq, later, error, seen, mended))
    files, by_files = rarity.files(later, one)
    words, by_words = rarity.words(later, one) if files else ([], 0.0)
    score = by_files * by_words / (1 + FADES * (later.day - one.day))
    if score >= SCORE:
        weight = round(min(0.75, RULES["same work"].weight * (0.7 + score / 100)), 3)
        evidence = (later.files[files[0]], one.files[files[0]], later.words[words[0]], one.words[words[0]])
        found.append(_link("same work", one.seq, later, ", ".join(files[:3]), *evidence, weight=weight))
    return found


def _gaps(later: Facts, earlier: Sequence[Facts], captured: frozenset[str]) -> list[Link]:
    made = [commit for one in (*earlier, later) for commit in one.commits]
    found = [
        _link("unseen transcript", 0, later, name, uuid)
        for name, uuid in sorted(later.transcripts.items())
        if name not in captured and name not in {one.id for one in earlier}
    ]
    for name, uuid in sorted(later.names.items()):
        if not any(full.startswith(name) or name.startswith(full) for full in made):
            found.append(_link("unseen commit", 0, later, name, uuid))
    near = any(later.day - one.day <= 1 for one in earlier)
    if later.continued and not later.shares and not later.transcripts and not near:
        found.append(_link("unseen conversation", 0, later, "", later.continued))
    return found
