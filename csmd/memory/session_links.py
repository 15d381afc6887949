"""Finds the earlier sessions that a session builds on, and gaps: those that were not captured; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import log
from typing import Literal, NamedTuple

LinkKind = Literal["direct", "inferred", "gap"]

#: Two sessions are compared by their work if the project was active on at most this many days in between.
MAX_DAYS_BETWEEN = 14
#: A session is compared by its work with at most this many earlier ones.
MAX_COMPARED = 40
#: Only the strongest inferred links of a session are kept.
MAX_INFERRED = 3
#: Least score of "same work": the rarity of the files that both sessions changed, times that of the words of both
#: goals, divided by 1 + FADE_PER_DAY for each active day in between.
MIN_SCORE = 12.0
FADE_PER_DAY = 0.1
#: Rarity is measured among the neighbouring sessions, counted as at least this many.
MIN_BACKGROUND = 20
#: A single shared file counts only if at most this part of the sessions changed it.
MAX_FILE_SHARE = 0.08
#: A shared word counts only if at most this part of the goals use it.
MAX_WORD_SHARE = 0.15
#: Stems that are common in every goal.
COMMON_STEMS = frozenset(
    "claud cod fil work right need want tak mak chang look check updat mayb let' don't doesn't current instead".split()
)
#: Branches that all sessions share: a common one is no link.
TRUNK_BRANCHES = frozenset({"main", "master", "develop", "dev", "trunk", "HEAD"})
#: An error is recognised in another session only by a name in it: a path, an identifier, a call.
_NAME = re.compile(r"[a-z][A-Z]|\w_\w|\w\.\w+:|\w\(|::")


class Rule(NamedTuple):
    """A kind of link between two sessions, with its weight (0-1) and its reason in words."""

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
class SessionFacts:
    """The facts of a session by which it is compared.

    `day` is the project's active day on which it began; sessions that began before `since` are too old to compare.
    """

    seq: int
    id: str
    started_at: str
    last_at: str
    day: int
    since: str = ""
    things: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Kind of a digest's item -> its text -> the uuid of its turn; commits by their hash."""
    errors: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Error -> (how the command ended, uuid)."""
    shares: Mapping[int, str] = field(default_factory=dict)
    """Session -> the first turn that both contain."""

    def of(self, kind: str) -> Mapping[str, str]:
        """Returns the things of one kind."""
        return self.things.get(kind, {})

    @property
    def continued(self) -> str:
        """The uuid of the turn that says it continues an earlier conversation, or ""."""
        return next(iter(self.of("continued").values()), "")

    @property
    def order(self) -> tuple[str, str, str]:
        """Sort key of sessions: start, then end, because a fork starts when its trunk did."""
        return self.started_at, self.last_at, self.id


class Link(NamedTuple):
    """One session builds on another; `from_seq` is 0 for a gap, `about` the file, commit or error that ties them."""

    from_seq: int
    to_seq: int
    rule: str
    about: str
    weight: float
    evidence: tuple[str, ...]


def find_links(
    later: SessionFacts, around: Sequence[SessionFacts], *, captured: frozenset[str] = frozenset()
) -> list[Link]:
    """Finds the sessions that a session builds on among those `around` it in its project, in a fixed order.

    `captured` are ids of stored sessions of any project: a link to one of them is no gap.
    """
    others = (facts for facts in around if facts.seq != later.seq and facts.started_at >= later.since)
    earlier = sorted((facts for facts in others if facts.order < later.order), key=lambda facts: facts.order)
    direct = [link for facts in earlier if (link := next(_find_direct_links(later, facts), None)) is not None]
    linked = {link.from_seq for link in direct}
    near = [facts for facts in earlier[-MAX_COMPARED:] if later.day - facts.day <= MAX_DAYS_BETWEEN]
    rarity = _Rarity([*earlier, later])
    inferred: dict[int, Link] = {}
    unlinked = (facts for facts in near if facts.seq not in linked)
    candidates = chain.from_iterable(_find_inferred_links(later, facts, rarity) for facts in unlinked)
    for link in sorted(candidates, key=lambda link: (-link.weight, -link.from_seq, link.rule)):
        inferred.setdefault(link.from_seq, link)
    return [*direct, *list(inferred.values())[:MAX_INFERRED], *_find_gaps(later, earlier, captured)]


def describe_link(rule: str, about: str) -> str:
    """Returns a link's reason in words."""
    return RULES[rule].reason.format(about=about) if rule in RULES else rule


def _make_link(from_seq: int, later: SessionFacts, rule: str, about: str, *evidence: str, weight: float = 0.0) -> Link:
    uuids = tuple(dict.fromkeys(uuid for uuid in evidence if uuid))
    return Link(from_seq, later.seq, rule, about, weight or RULES[rule].weight, uuids[:6])


def _find_direct_links(later: SessionFacts, earlier: SessionFacts) -> Iterator[Link]:
    """Yields the links by which a session states that it builds on an earlier one, the surest first."""
    link = partial(_make_link, earlier.seq, later)
    if earlier.seq in later.shares:
        yield link("same turns", "", later.shares[earlier.seq])
    if earlier.id in later.of("transcript"):
        yield link("transcript", "", later.of("transcript")[earlier.id])
    for plan, uuid in later.of("plan_given").items():
        if plan in earlier.of("plan"):
            yield link("plan", "", uuid, earlier.of("plan")[plan])
    for name, uuid in later.of("names").items():
        commit = next((commit for commit in earlier.of("commit") if _is_same_commit(name, commit)), "")
        if commit and commit not in later.of("commit"):
            yield link("commit", commit, uuid, earlier.of("commit")[commit])
    for branch in sorted(later.of("branch").keys() & earlier.of("branch").keys() - TRUNK_BRANCHES):
        yield link("branch", branch, later.of("branch")[branch], earlier.of("branch")[branch])
    files = sorted(later.of("file").keys() & earlier.of("file").keys())
    if later.continued and files and later.day - earlier.day <= 1:
        yield link("said so", files[0], later.continued, earlier.of("file")[files[0]])


def _is_same_commit(left: str, right: str) -> bool:
    """Whether two hashes, either of them perhaps shortened, name one commit."""
    return right.startswith(left) or left.startswith(right)


class _Rarity:
    """The rarity of files and words among sessions."""

    def __init__(self, sessions: Sequence[SessionFacts]) -> None:
        self._total = max(len(sessions), MIN_BACKGROUND)
        self._files = Counter(name for session in sessions for name in session.of("file"))
        self._words = Counter(word for session in sessions for word in session.of("word"))

    def _score(self, shared: Sequence[str], uses: Counter[str]) -> float:
        return sum(log((self._total + 1) / uses[name]) for name in shared)

    def files(self, left: SessionFacts, right: SessionFacts) -> tuple[list[str], float]:
        """Returns (files that both changed, the rarest first; their score); a single file that many change scores 0."""
        shared = sorted(left.of("file").keys() & right.of("file").keys(), key=lambda name: (self._files[name], name))
        if len(shared) == 1 and self._files[shared[0]] > max(2, MAX_FILE_SHARE * self._total):
            return [], 0.0
        return shared, self._score(shared, self._files)

    def words(self, left: SessionFacts, right: SessionFacts) -> tuple[list[str], float]:
        """Returns (rare words of both goals, their score); a single word scores 0."""
        max_uses = max(3, MAX_WORD_SHARE * self._total)
        common = left.of("word").keys() & right.of("word").keys() - COMMON_STEMS
        shared = sorted(word for word in common if self._words[word] <= max_uses)
        return shared, self._score(shared, self._words) if len(shared) > 1 else 0.0


def _find_inferred_links(later: SessionFacts, earlier: SessionFacts, rarity: _Rarity) -> Iterator[Link]:
    """Yields the links that the work of two sessions suggests."""
    link = partial(_make_link, earlier.seq, later)
    for error in sorted(later.errors.keys() & earlier.errors.keys()):
        (before, failed_in), (after, fixed_in) = earlier.errors[error], later.errors[error]
        if before == "failed" and after == "mended" and _NAME.search(error):
            yield link("error mended", error, failed_in, fixed_in)
    files, by_files = rarity.files(later, earlier)
    words, by_words = rarity.words(later, earlier) if files else ([], 0.0)
    score = by_files * by_words / (1 + FADE_PER_DAY * (later.day - earlier.day))
    if score >= MIN_SCORE:
        weight = round(min(0.75, RULES["same work"].weight * (0.7 + score / 100)), 3)
        shared = (("file", files[0]), ("word", words[0]))
        evidence = [session.of(kind)[name] for kind, name in shared for session in (later, earlier)]
        yield link("same work", ", ".join(files[:3]), *evidence, weight=weight)


def _find_gaps(later: SessionFacts, earlier: Sequence[SessionFacts], captured: frozenset[str]) -> list[Link]:
    """Finds the transcripts, commits and continued conversations that no captured session has."""
    link = partial(_make_link, 0, later)
    available = captured | {facts.id for facts in earlier}
    commits = [commit for facts in (*earlier, later) for commit in facts.of("commit")]
    transcripts, names = sorted(later.of("transcript").items()), sorted(later.of("names").items())
    gaps = [link("unseen transcript", session, uuid) for session, uuid in transcripts if session not in available]
    for name, uuid in names:
        if not any(_is_same_commit(name, commit) for commit in commits):
            gaps.append(link("unseen commit", name, uuid))
    is_near = any(later.day - facts.day <= 1 for facts in earlier)
    if later.continued and not later.shares and not later.of("transcript") and not is_near:
        gaps.append(link("unseen conversation", "", later.continued))
    return gaps
