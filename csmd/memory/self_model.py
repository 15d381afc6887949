"""How sessions ended by kind of work, links between sessions, drift warnings."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from math import comb, log
from typing import Literal, NamedTuple

from csmd.extraction.work import check_of
from csmd.store import candidates, cursors, digests, projects, session_links, work_outcomes
from csmd.store.core import Store
from csmd.store.digests import AGAIN, SELF
from csmd.store.session_links import Behind
from csmd.store.sqlite import Rows
from csmd.values import Candidate, Evidence

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
    """What a session is compared by.

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
    """Session -> the first turn that both hold."""

    def of(self, kind: str) -> Mapping[str, str]:
        """The things of one kind."""
        return self.things.get(kind, {})

    @property
    def continued(self) -> str:
        """The uuid of the turn that says it continues an earlier conversation, "" for none."""
        return next(iter(self.of("continued").values()), "")

    @property
    def order(self) -> tuple[str, str, str]:
        """By its start, then its end: a fork starts when its trunk did."""
        return self.started_at, self.last_at, self.id


class Link(NamedTuple):
    """One session builds on another: `from_seq` is 0 for a gap; `about` is what ties them."""

    from_seq: int
    to_seq: int
    rule: str
    about: str
    weight: float
    evidence: tuple[str, ...]


def links(later: Facts, around: Sequence[Facts], *, captured: frozenset[str] = frozenset()) -> list[Link]:
    """What a session builds on among its project's sessions `around` it, in a fixed order.

    `captured` are ids of stored sessions of any project: a link to one of them is no gap.
    """
    earlier = sorted(
        (
            facts
            for facts in around
            if facts.seq != later.seq and facts.order < later.order and facts.started_at >= later.since
        ),
        key=lambda facts: facts.order,
    )
    direct = [link for facts in earlier for link in _direct(later, facts)]
    tied = {link.from_seq for link in direct}
    near = [facts for facts in earlier[-BACK:] if later.day - facts.day <= WITHIN_DAYS and facts.seq not in tied]
    rarity = _Rarity([*earlier, later])
    inferred: dict[int, Link] = {}
    for link in sorted((link for facts in near for link in _inferred(later, facts, rarity)), key=_link_order):
        inferred.setdefault(link.from_seq, link)
    return [*direct, *list(inferred.values())[:MOST_INFERRED], *_gaps(later, earlier, captured)]


def _link_order(link: Link) -> tuple[float, int, str]:
    return -link.weight, -link.from_seq, link.rule


def reason(rule: str, about: str) -> str:
    """A link's reason in words."""
    return RULES[rule].reason.format(about=about) if rule in RULES else rule


def _link(rule: str, from_seq: int, later: Facts, about: str, *evidence: str, weight: float = 0.0) -> Link:
    uuids = tuple(dict.fromkeys(uuid for uuid in evidence if uuid))
    return Link(from_seq, later.seq, rule, about, weight or RULES[rule].weight, uuids[:6])


def _direct(later: Facts, earlier: Facts) -> list[Link]:
    """The surest rule by which a session builds on an earlier one, or none."""
    if earlier.seq in later.shares:
        return [_link("same turns", earlier.seq, later, "", later.shares[earlier.seq])]
    if earlier.id in later.of("transcript"):
        return [_link("transcript", earlier.seq, later, "", later.of("transcript")[earlier.id])]
    for plan, uuid in later.of("plan_given").items():
        if plan in earlier.of("plan"):
            return [_link("plan", earlier.seq, later, "", uuid, earlier.of("plan")[plan])]
    for name, uuid in later.of("names").items():
        made = next((full for full in earlier.of("commit") if _is_commit(name, full)), "")
        if made and made not in later.of("commit"):
            return [_link("commit", earlier.seq, later, made, uuid, earlier.of("commit")[made])]
    for branch in sorted(later.of("branch").keys() & earlier.of("branch").keys() - TRUNKS):
        return [_link("branch", earlier.seq, later, branch, later.of("branch")[branch], earlier.of("branch")[branch])]
    both = sorted(later.of("file").keys() & earlier.of("file").keys())
    if later.continued and both and later.day - earlier.day <= 1:
        return [_link("said so", earlier.seq, later, both[0], later.continued, earlier.of("file")[both[0]])]
    return []


def _is_commit(name: str, full: str) -> bool:
    return full.startswith(name) or name.startswith(full)


class _Rarity:
    """How rare files and words are among sessions."""

    def __init__(self, facts: Sequence[Facts]) -> None:
        self._of = max(len(facts), BACKGROUND)
        self._files = Counter(name for session in facts for name in session.of("file"))
        self._words = Counter(word for session in facts for word in session.of("word"))

    def files(self, left: Facts, right: Facts) -> tuple[list[str], float]:
        """(files that both changed, the rarest first, their score); none for a single file that many change."""
        both = sorted(left.of("file").keys() & right.of("file").keys(), key=lambda name: (self._files[name], name))
        if len(both) == 1 and self._files[both[0]] > max(2, RARE_FILE * self._of):
            return [], 0.0
        return both, sum(log((self._of + 1) / self._files[name]) for name in both)

    def words(self, left: Facts, right: Facts) -> tuple[list[str], float]:
        """(rare words of both goals, their score); a single word scores nothing."""
        most = max(3, RARE_WORD * self._of)
        both = sorted(
            word for word in left.of("word").keys() & right.of("word").keys() - EMPTY if self._words[word] <= most
        )
        return both, sum(log((self._of + 1) / self._words[word]) for word in both) if len(both) > 1 else 0.0


def _inferred(later: Facts, earlier: Facts, rarity: _Rarity) -> list[Link]:
    links_found: list[Link] = []
    for error in sorted(later.errors.keys() & earlier.errors.keys()):
        (there, seen), (here, mended) = earlier.errors[error], later.errors[error]
        if there == "failed" and here == "mended" and _NAMED.search(error):
            links_found.append(_link("error mended", earlier.seq, later, error, seen, mended))
    files, by_files = rarity.files(later, earlier)
    words, by_words = rarity.words(later, earlier) if files else ([], 0.0)
    score = by_files * by_words / (1 + FADES * (later.day - earlier.day))
    if score >= SCORE:
        weight = round(min(0.75, RULES["same work"].weight * (0.7 + score / 100)), 3)
        evidence = [
            both.of(kind)[name] for kind, name in (("file", files[0]), ("word", words[0])) for both in (later, earlier)
        ]
        links_found.append(_link("same work", earlier.seq, later, ", ".join(files[:3]), *evidence, weight=weight))
    return links_found


def _gaps(later: Facts, earlier: Sequence[Facts], captured: frozenset[str]) -> list[Link]:
    available = captured | {facts.id for facts in earlier}
    made = [commit for facts in (*earlier, later) for commit in facts.of("commit")]
    gaps = [
        _link("unseen transcript", 0, later, name, uuid)
        for name, uuid in sorted(later.of("transcript").items())
        if name not in available
    ]
    gaps += [
        _link("unseen commit", 0, later, name, uuid)
        for name, uuid in sorted(later.of("names").items())
        if not any(_is_commit(name, full) for full in made)
    ]
    near = any(later.day - facts.day <= 1 for facts in earlier)
    if later.continued and not later.shares and not later.of("transcript") and not near:
        gaps.append(_link("unseen conversation", 0, later, "", later.continued))
    return gaps


Ending = Literal["well", "badly", "undecided"]

#: How a session's outcome counts for the work that was done in it.
ENDINGS: Mapping[str, tuple[Ending, str]] = {
    "committed": ("well", "committed"),
    "checked": ("well", "checks passed in the end"),
    "failing": ("badly", "a check failed in the end"),
    "rejected": ("badly", "turned down or corrected in the end"),
    "corrected": ("badly", "corrected again and again"),
    "unchecked": ("undecided", "changed and not checked"),
    "answered": ("undecided", "nothing was changed"),
    "unanswered": ("undecided", "nothing was answered"),
}
#: Drift: the last RECENT sessions that are decided against at least EARLIER before them. A warning needs a share that
#: is lower by DROP and a difference that chance makes at most once in 1/CHANCE (Fisher's exact test, one-sided).
RECENT, EARLIER, DROP, CHANCE = 8, 8, 0.3, 0.05


#: Matches nothing.
NOTHING = re.compile(r"(?!)")


class Kind(NamedTuple):
    """A kind of work, recognised by a check, by commands, by paths of changed files, or by stems of the goal's words."""

    check: str = ""
    commands: re.Pattern[str] = NOTHING
    files: re.Pattern[str] = NOTHING
    words: frozenset[str] = frozenset()

    def is_command(self, command: str) -> bool:
        """Whether a command is work of this kind."""
        return check_of(command) == self.check if self.check else self.commands.match(command) is not None


# fmt: off
KINDS: Mapping[str, Kind] = {
    "tests": Kind(check="tests"),
    "formatting": Kind(check="format"),
    "lint": Kind(check="lint"),
    "build": Kind(check="build"),
    "git": Kind(commands=re.compile(r"git (?:-C \S+ )?(?:commit|merge|rebase|push|pull|cherry-pick|revert|reset|stash|tag|checkout|switch"
                r"|am|apply|bisect)\b")),
    "pull requests": Kind(commands=re.compile(r"(?:gh (?:pr|issue|release|run|workflow)|glab mr)\b")),
    "dependencies": Kind(
        commands=re.compile(r"(?:npm|yarn|pnpm|bun) (?:i|install|add|remove|update|upgrade)\b|pip3? install\b|uv (?:add|sync|lock|pip)\b"
        r"|poetry (?:add|update|lock)\b|cargo (?:add|update)\b|go (?:get|mod)\b|bundle (?:install|update)\b|composer \w+")),
    "database": Kind(
        commands=re.compile(r"(?:psql|mysql|sqlite3|alembic|prisma|flyway|goose)\b|\S* ?db:migrate|\S*manage\.py (?:make)?migrat"),
        files=re.compile(r"\.sql$|(?:^|/)migrations?/")),
    "containers": Kind(commands=re.compile(r"(?:docker|podman|kubectl|helm|terraform)\b"), files=re.compile(r"(?:^|/)Dockerfile|docker-compose|\.tf$")),
    "automation": Kind(files=re.compile(r"(?:^|/)\.github/(?:workflows|actions)/|\.gitlab-ci|Jenkinsfile|(?:^|/)\.circleci/")),
    "scripts": Kind(files=re.compile(r"\.(?:sh|bash|zsh|ps1)$")),
    "documentation": Kind(files=re.compile(r"\.(?:md|rst|adoc|txt)$")),
    "frontend": Kind(files=re.compile(r"\.(?:tsx|jsx|vue|svelte|css|scss|less|html)$")),
    "test code": Kind(files=re.compile(r"(?:_test|\.test|\.spec|_spec)\.\w+$|(?:^|/)tests?/|(?:^|/)test_\w+\.py$")),
    "debugging": Kind(words=frozenset("bug fix error fail broken wrong crash panic issu debug why regress flaky".split())),
    "refactoring": Kind(words=frozenset("refactor renam extract cleanup simplifi simplify dedupl duplicat mov restructur split".split())),
    "new features": Kind(words=frozenset("add implement introduc creat support featur".split())),
    "review": Kind(words=frozenset("review feedback comment suggest".split())),
}
# fmt: on


class DigestItem(NamedTuple):
    """One item of a session's digest: its kind, text, turn, and how it ended."""

    kind: str
    text: str
    uuid: str
    state: str


class WorkEnding(NamedTuple):
    """How work of a kind ended in a session, why, and the turn that shows it."""

    capability: str
    outcome: Ending
    why: str
    uuid: str


class StoredEnding(NamedTuple):
    """One session's ending of one kind of work, as it is stored."""

    capability: str
    outcome: str
    uuid: str
    session_id: str
    at: str


class Capability(NamedTuple):
    """A kind of work over sessions: confidence (0-1), how many of the decided ones ended well, the latest evidence."""

    name: str
    confidence: float
    well: int
    decided: int
    sessions: int
    since: str
    last_at: str
    evidence: tuple[str, ...]


class Drift(NamedTuple):
    """A kind of work that ends clearly worse than before: sessions earlier and recently, and the odds of chance (0-1)."""

    capability: str
    earlier_well: int
    earlier: int
    recent_well: int
    recent: int
    chance: float
    since: str
    against: tuple[StoredEnding, ...]
    """The recent sessions that ended badly."""


def endings(outcome: str, seen: Sequence[DigestItem]) -> list[WorkEnding]:
    """How each kind of work in a session ended, in the order of KINDS."""
    ending, why = ENDINGS.get(outcome, ("undecided", outcome))
    changed = [item for item in seen if item.kind == "file"]
    commands = [item for item in seen if item.kind == "command"]
    words = {item.text for item in seen if item.kind == "word"}
    work_endings: list[WorkEnding] = []
    for name, kind in KINDS.items():
        ran = [item for item in commands if kind.is_command(item.text)]
        touched = [item for item in changed if kind.files.search(item.text)]
        if ran:
            failed = [item for item in ran if item.state == "failed"]
            if kind.check and outcome != "failing" and len(failed) < len(ran):
                failed = []  # the session's outcome is that of its last check
            last = (failed or ran)[-1]
            reason = f"`{last.text}` {'failed' if failed else 'passed'} in the end"
            work_endings.append(WorkEnding(name, "badly" if failed else "well", reason, last.uuid))
        elif touched or (changed and kind.words & words):
            work_endings.append(WorkEnding(name, ending, why, (touched or changed)[0].uuid))
    return work_endings


def capabilities(counted: Sequence[StoredEnding]) -> list[Capability]:
    """Sums up each kind of work over sessions, those that ended badly most often first; a turn of two sessions counts once."""
    results = []
    for name, endings_of in _by_capability(counted).items():
        decided = [ending for ending in endings_of if ending.outcome != "undecided"]
        well = sum(ending.outcome == "well" for ending in decided)
        shown = tuple(ending.uuid for ending in reversed(decided or endings_of))[:4]
        results.append(
            Capability(
                name, confidence(well, len(decided)), well, len(decided), len(endings_of), endings_of[0].at, endings_of[-1].at, shown,
            )
        )  # fmt: skip
    return sorted(results, key=lambda kind: (kind.well - kind.decided, -kind.decided, -kind.sessions, kind.name))


def confidence(well: int, decided: int) -> float:
    """The share that ended well, drawn to the middle by two imaginary sessions (Laplace's rule): never 0 and never 1."""
    return round((well + 1) / (decided + 2), 2)


def drifts(counted: Sequence[StoredEnding]) -> list[Drift]:
    """The kinds of work that end clearly worse recently than before."""
    results = []
    for name, every in sorted(_by_capability(counted).items()):
        decided = [ending for ending in every if ending.outcome != "undecided"]
        before, lately = decided[:-RECENT], decided[-RECENT:]
        if len(before) < EARLIER:
            continue
        a, b = (sum(ending.outcome == "well" for ending in part) for part in (before, lately))
        chance = fewer_by_chance(a, len(before), b, len(lately))
        if a / len(before) - b / len(lately) >= DROP and chance <= CHANCE:
            bad = tuple(ending for ending in lately if ending.outcome == "badly")
            results.append(Drift(name, a, len(before), b, len(lately), round(chance, 4), lately[0].at, bad))
    return results


def fewer_by_chance(well: int, of: int, lately_well: int, lately: int) -> float:
    """The probability of so few recent successes, or fewer, if nothing has changed (Fisher's exact test, one-sided)."""
    total, good = of + lately, well + lately_well
    ways = sum(
        comb(good, k) * comb(total - good, lately - k) for k in range(max(0, lately - (total - good)), lately_well + 1)
    )
    return ways / comb(total, lately)


def describe_drift(drift: Drift) -> str:
    """A warning in words: what was counted, without advice."""
    return (
        f"{drift.capability}: {drift.recent_well} of the last {drift.recent} sessions ended well, "
        f"{drift.earlier_well} of {drift.earlier} before {drift.since[:10]}"
    )


def _by_capability(counted: Sequence[StoredEnding]) -> dict[str, list[StoredEnding]]:
    """Groups endings by kind of work, in order of time; the turns that a fork shares with its trunk count once."""
    by_name: dict[str, dict[str, StoredEnding]] = {}
    for ending in sorted(counted, key=lambda ending: (ending.at, ending.session_id)):
        by_name.setdefault(ending.capability, {}).setdefault(ending.uuid, ending)
    return {name: list(by_turn.values()) for name, by_turn in by_name.items()}


#: Sessions in one step, and how many days before and after them others are compared with them.
BATCH, SPAN_DAYS = 25, 120
SOURCE = "selfmodel"
#: (session, its endings, time) of new sessions, and (session, its links).
Looked = tuple[list[tuple[int, list[WorkEnding], str]], list[tuple[int, list[Link]]]]
KINDS_OF_LINK = {name: rule.kind for name, rule in RULES.items()}


def step(store: Store, *, now: str) -> int:
    """Evaluates the next digests; how many sessions, 0 when nothing waits. `now` dates warnings."""
    behind = store.read(lambda rows: session_links.sessions_to_compare(rows, limit=BATCH))
    by: dict[int, list[Behind]] = {}
    for digest in behind:
        by.setdefault(digest.project_seq, []).append(digest)
    for project, digests_of in by.items():
        looked = store.read(partial(_look, project=project, sessions_behind=digests_of))
        store.write(partial(_save, some=digests_of, looked=looked))
    # Once for a burst, when all of it is in.
    return len(behind) or _warn(store, now)


def _save(rows: Rows, some: Sequence[Behind], looked: Looked) -> None:
    ended, linked = looked
    for session, endings_of, at in ended:
        work_outcomes.replace_outcomes(rows, session, endings_of, at=at)
    for session, links_of in linked:
        session_links.replace_links(rows, session, links_of, KINDS_OF_LINK)
    for digest in some:
        cursors.move_cursor(rows, SELF, str(digest.session_seq), digest.digest_seq)
    digests.mark_endings_changed(rows)


def _look(rows: Rows, project: int, sessions_behind: Sequence[Behind]) -> Looked:
    """Computes the endings of new sessions, and the links of those and of all later ones."""
    new = {session.session_seq for session in sessions_behind}
    starts = session_links.session_starts(rows, sorted(new))
    digest_rows = session_links.digests_of_project(
        rows, project, since=_moved(min(starts), -SPAN_DAYS), until=_moved(max(starts), SPAN_DAYS)
    )
    items: dict[int, list[DigestItem]] = {}
    for digest, kind, text, uuid, state in session_links.items_of(rows, [int(row[4]) for row in digest_rows]):
        items.setdefault(int(digest), []).append(DigestItem(kind, text, uuid, state))
    days = sorted(projects.active_days(rows, project))
    facts = {
        int(row[0]): _facts(
            row, items.get(int(row[4]), []), days, session_links.sessions_sharing_turns(rows, int(row[0]))
        )
        for row in digest_rows
    }
    first = min((facts[seq].order for seq in new if seq in facts), default=None)
    ended = [
        (int(row[0]), endings(str(row[5]), items.get(int(row[4]), [])), str(row[2]))
        for row in digest_rows
        if int(row[0]) in new
    ]
    around = list(facts.values())
    named = sorted({name for session in around for name in session.of("transcript")})
    captured = session_links.stored_sessions(rows, named)
    linked = [
        (session.seq, links(session, around, captured=captured))
        for session in around
        if first is not None and (session.seq in new or session.order >= first)
    ]
    return ended, linked


def _facts(
    row: Sequence[object], seen: Sequence[DigestItem], days: Sequence[str], shares: list[tuple[int, str]]
) -> Facts:
    things: dict[str, dict[str, str]] = {}
    for item in seen:
        text = item.text.partition(" ")[0] if item.kind == "commit" else item.text
        things.setdefault(item.kind, {}).setdefault(text, item.uuid)
    start = str(row[2])
    return Facts(
        seq=int(str(row[0])), id=str(row[1]), started_at=start, last_at=str(row[3]), day=bisect_right(days, start[:10]),
        since=_moved(start, -SPAN_DAYS), things=things, shares=dict(shares),
        errors={item.text: (item.state, item.uuid) for item in seen if item.kind == "error"},
    )  # fmt: skip


def _moved(at: str, days: int) -> str:
    """The day a number of days after a time; an invalid time is returned as it is."""
    try:
        return (datetime.fromisoformat(at[:10]) + timedelta(days=days)).date().isoformat()
    except (ValueError, OverflowError):
        return at


# --- warnings


def _warn(store: Store, now: str) -> int:
    """Queues a warning for each kind of work that ends worse, and settles those that no longer hold; 1 if it looked."""
    if not store.read(lambda rows: cursors.cursor(rows, SELF, AGAIN)):
        return 0

    def read_drifts(rows: Rows) -> list[tuple[int, list[Drift]]]:
        held = work_outcomes.projects_held(rows)
        return [
            (project, drifts([StoredEnding(*row) for row in work_outcomes.outcomes_counted(rows, projects=[project])]))
            for project in sorted({*held, *work_outcomes.warned(rows)})
        ]

    def write(rows: Rows) -> None:
        for project, found_drifts in looked:
            waiting = {
                candidate.fingerprint: candidate
                for candidate in candidates.waiting(rows, projects=[project])
                if candidate.source == SOURCE
            }
            for warning in (_warning(project, drift, now) for drift in found_drifts):
                stored = waiting.pop(warning.fingerprint, None)
                is_known = stored and stored.text == warning.text and {*warning.evidence} <= {*stored.evidence}
                if not is_known:  # looking again changes nothing
                    ident = candidates.identity(warning.kind, project, warning.fingerprint, now)
                    candidates.put_candidate(rows, replace(warning, id=ident))
            for over in waiting.values():
                candidates.set_status(rows, over, "done", now=now)
        cursors.move_cursor(rows, SELF, AGAIN, 0)

    looked = store.read(read_drifts)
    store.write(write)
    return 1


def _warning(project: int, drift: Drift, now: str) -> Candidate:
    fingerprint = f"drift:{drift.capability}"
    return Candidate(
        id="", kind="drift_warning", source=SOURCE, project_seq=project, fingerprint=fingerprint, text=describe_drift(drift),
        reason=f"chance alone would make this once in {round(1 / max(drift.chance, 0.0001))} (Fisher's exact test)",
        confidence=round(1 - drift.chance, 2), created_at=now, updated_at=now, reinforcement=len(drift.against),
        status="needs_review",
        evidence=tuple(Evidence(uuid=ending.uuid, session_id=ending.session_id, at=ending.at) for ending in drift.against),
    )  # fmt: skip
