"""Facts counted over packets, failures and digests."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import PurePosixPath

from csmd.dream.actions import Fact
from csmd.extraction import shell_commands
from csmd.memory import habits
from csmd.model import Packet
from csmd.store import candidates, failures, turns
from csmd.store.sqlite import Rows
from csmd.text.display import amount, cut, listed, squeeze

#: So many of a kind at least before a form is seen in them, in this share of them.
LEAST, NEARLY_ALL = 4, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A commit's subject, a branch's name or a file's path, with its session and the last turn that it comes from."""

    session_id: str
    name: str
    uuid: str


#: Nobody chose these names: they say nothing of a form.
_NOT_CHOSEN = re.compile(r"^(?:Merge|Revert) |^(?:fixup|squash)! ")
_COMMON_BRANCH = re.compile(r"^(?:main|master|trunk|develop|dev|HEAD|gh-pages|detached.*)$")
_TYPES = "feat|fix|chore|docs|refactor|test|tests|perf|build|ci|style|revert"
#: Name of a form of commit subjects -> (pattern, how it is told); the first that nearly all have.
SUBJECTS: dict[str, tuple[re.Pattern[str], str]] = {
    "conventional": (
        re.compile(rf"(?:{_TYPES})(?:\([^)]+\))?!?: \S"),
        "Commit subjects begin with a type (`feat:`, `fix(scope):`, ...)",
    ),
    "ticket": (re.compile(r"\[?[A-Z][A-Z0-9]+-\d+\]?\b"), "Commit subjects begin with the ticket"),
    "area": (
        re.compile(rf"(?!(?:{_TYPES})\b)[\w./-]{{2,30}}: \S"),
        "Commit subjects begin with the part that they change (`part: what`)",
    ),
    "lower case": (re.compile(r"[a-z][a-z]+ "), "Commit subjects begin with a small letter and name no type"),
}
_TICKET = re.compile(r"\b([A-Za-z]{2,10})-\d+\b")
_DAY = re.compile(r"\b20\d\d-?[01]\d-?[0-3]\d\b")
#: Ending of a test file's language -> the forms of which it leaves the choice; all others are the language's own.
_TESTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("*.test.*", re.compile(r"\.test\.(?:[cm]?[jt]s|[jt]sx)$")),
    ("*.spec.*", re.compile(r"\.spec\.(?:[cm]?[jt]s|[jt]sx)$")),
    ("test_*.py", re.compile(r"(?:^|/)test_[^/]+\.py$")),
    ("*_test.py", re.compile(r"_test\.py$")),
    ("*Test", re.compile(r"Test\.(?:java|kt|php|cs)$")),
    ("*Tests", re.compile(r"Tests\.(?:java|kt|cs|swift)$")),
)
_PLACES = ("tests", "test", "__tests__", "spec", "specs", "e2e")


def find_commit_form(subjects: Sequence[Named], project: int) -> Fact | None:
    """The form of commit subjects, None for none that nearly all have."""
    chosen = _distinct([one for one in subjects if not _NOT_CHOSEN.match(one.name)])
    for name, (pattern, text) in SUBJECTS.items():
        fitting = [one for one in chosen if pattern.match(one.name)]
        if fact := _form(f"commit:{name}", text, fitting, len(chosen), project):
            return fact
    return None


def find_branch_form(names: Sequence[Named], project: int) -> Fact | None:
    """The form of branch names: what stands before the first slash, a ticket, a day; None for none."""
    chosen = _distinct([one for one in names if not _COMMON_BRANCH.match(one.name)])
    shapes = {one.name: _shape(one.name) for one in chosen}
    common = Counter(shape for shape in shapes.values() if shape)
    if not common:
        return None
    shape = min(common, key=lambda one: (-common[one], one))
    fitting = [one for one in chosen if shapes[one.name] == shape]
    return _form(f"branch:{shape}", f"Branches are named `{shape}`", fitting, len(chosen), project, least=LEAST - 1)


def _shape(name: str) -> str:
    """What of a branch's name others could have, too; "" for a name that shows no form."""
    before, slash, rest = name.rpartition("/")
    known = _TICKET.match(rest) or _DAY.match(rest)
    if not slash and not known:
        return ""
    told = "<what>"
    if known:
        told = (f"{known[1]}-<number>" if known.re is _TICKET else "<day>") + "-<what>" * (len(rest) > known.end())
    return f"{before}{slash}{told}"


def find_test_form(paths: Sequence[Named], project: int) -> Fact | None:
    """How test files are named where the language leaves a choice, and where they lie; None for none."""
    kinds = [
        (form, one) for one in _distinct(paths) if (form := next((f for f, p in _TESTS if p.search(one.name)), ""))
    ]
    if not kinds:
        return None
    common = Counter(form for form, _ in kinds)
    name = min(common, key=lambda one: (-common[one], one))
    fitting = [one for form, one in kinds if form == name]
    places = Counter(_place(one.name) for one in fitting)
    place = min(places, key=lambda one: (-places[one], one))
    if places[place] >= NEARLY_ALL * len(fitting):
        fitting = [one for one in fitting if _place(one.name) == place]
        where = f", below `{place}/`" if place else ", beside what they test"
    else:
        where = ""
    return _form(f"tests:{name}", f"Test files are named `{name}`{where}", fitting, len(kinds), project)


def _place(path: str) -> str:
    parts = PurePosixPath(path).parts[:-1]
    return next((part for part in parts if part in _PLACES), "")


def _form(name: str, text: str, seen: Sequence[Named], total: int, project: int, *, least: int = LEAST) -> Fact | None:
    """A convention that `seen` of `total` have, None where these are not nearly all."""
    if len(seen) < max(least, NEARLY_ALL * total):
        return None
    sources = [(one.session_id, one.uuid) for one in seen]
    return _fact("convention", f"convention:{name}", f"{text}: {len(seen)} of {total}.", project,
                 seen=len(seen), total=total, sources=sources)  # fmt: skip


def _distinct(named: Sequence[Named]) -> list[Named]:
    """Each name once, as it was met first."""
    return list({one.name: one for one in reversed(named)}.values())[::-1]


#: Every fact rests on so many sessions at least, and names so many turns at most.
LEAST_SESSIONS, EVIDENCE = habits.LEAST_SESSIONS, 8

#: Steps before a milestone are a procedure when so many of it were reached.
LEAST_MILESTONES = 3
#: A command is how something is done from this share of the times on; what else does it is named from the other on.
USUAL, BESIDES = 0.5, 0.1
#: Purpose of a command -> how what serves it is told.
PURPOSES = {
    "test": "Tests run with", "lint": "Linting is done with", "format": "Code is formatted with",
    "check types": "Types are checked with", "build": "It is built with",
}  # fmt: skip

#: What a check turns down is told where its first rule was broken in so many sessions: the rules of this many, so many of them.
TURNED_DOWN_OFTEN, TURNED_DOWN_SESSIONS, TURNED_DOWN = 3, 2, 4
#: A rule's name, where a checker ends its message with it or begins with its code.
_RULE = re.compile(
    r"\(([a-z][a-z0-9]+(?:[-/][a-z0-9]+)*)\)$|\[([a-z][a-z0-9]+(?:-[a-z0-9]+)*)\]$|\b([A-Z]{1,4}\d{3,4})\b"
)

#: Characters of an error's message and of the sentence that says what mended it.
MESSAGE, MENDED = 120, 200
_PLACEHOLDER = re.compile(r"\s*\((?:line|n|id|hash|path)?<[a-z]+>\)")

#: Files change together that were changed in so many sessions both, in this share of the sessions of the rarer one.
TOGETHER_SESSIONS, TOGETHER = 3, 0.75
#: A file that more than this share of the sessions changes goes with everything; too few sessions say nothing of that,
#: and what they tell is that much less sure.
EVERYWHERE, FEW_SESSIONS, FEW_SURE = 0.25, 12, 0.9
#: A session that changed more files than this moved or renamed: it says nothing of each pair.
MOST_CHANGED, MOST_BESIDE, MOST_FILES_FACTS = 20, 4, 10
_TEST_NAME = re.compile(r"^(?:test_|spec_)|(?:_test|_spec|\.test|\.spec|Tests?|IT)$")

#: Where something was taken out: what is left is not quoted.
_HOLE = re.compile(r"\[(?:purged\]|redacted:)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An error with every turn that shows it, and every one in which it was mended, as (session, uuid), in order.

    `said` is what the assistant said mended it, the latest first, with the turn's uuid.
    """

    fingerprint: str
    command: str
    message: str
    shown: tuple[tuple[str, str], ...]
    mended: tuple[tuple[str, str], ...] = ()
    said: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, ...], ...] = ()


def sort_facts(found: Iterable[Fact]) -> list[Fact]:
    """Facts as they are told: by kind, the surest first; the same facts give the same order."""
    kinds = ("command", "procedure", "fix", "files", "convention")
    return sorted(found, key=lambda one: (kinds.index(one.kind), -one.confidence, one.fingerprint))


def is_told(fact: Fact, said: Iterable[str]) -> bool:
    """Whether one of these lines names already all the commands that a count is of."""
    named = re.findall(r"`[^`]+`", fact.text)
    return fact.kind == "command" and any(all(one in line for one in named) for line in said)


def choose_evidence(sources: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Uuids of (session, uuid), one of each session before any second, at most EVIDENCE of them."""
    ranks: Counter[str] = Counter()
    ranked: list[tuple[int, str]] = []
    for session, uuid in dict.fromkeys(sources):
        ranked.append((ranks[session], uuid))
        ranks[session] += 1
    return tuple(dict.fromkeys(uuid for _, uuid in sorted(ranked, key=lambda one: one[0])))[:EVIDENCE]


# --- commands and procedures


def count_commands(packets: Sequence[Packet], project: int) -> list[Fact]:
    """What commands serve a purpose, and what stands before a milestone."""
    runs: dict[str, dict[str, list[Packet]]] = defaultdict(lambda: defaultdict(list))
    for one in packets:
        if one.kind == "tool" and (purpose := shell_commands.purpose(one.subject)):
            runs[purpose][one.subject].append(one)
    found = [_usual(purpose, ran, project) for purpose, ran in sorted(runs.items())]
    for habit in habits.habits(packets):
        counts = re.match(r"(\d+) of (\d+) ", habit.count)
        if habit.category == "procedure" and counts and int(counts[2]) >= LEAST_MILESTONES:
            sources = [(one.session_id, one.uuid) for one in habits.typical(habit.seen)]
            found.append(
                Fact(kind="procedure", fingerprint=habit.fingerprint, text=habit.text, project_seq=project,
                     seen=int(counts[1]), total=int(counts[2]), sessions=habit.sessions,
                     confidence=habit.confidence, evidence=choose_evidence(sources))
            )  # fmt: skip
    return [one for one in found if one is not None]


def _usual(purpose: str, ran: dict[str, list[Packet]], project: int) -> Fact | None:
    """The command that serves a purpose most of the times; its own variants (`test:ci` beside `test`) are no others."""
    command, seen = min(ran.items(), key=lambda one: (-len(one[1]), one[0]))
    variants = {name: runs for name, runs in ran.items() if re.match(rf"{re.escape(command)}[:-]", name)}
    total = sum(map(len, ran.values())) - sum(map(len, variants.values()))
    sessions = {one.session_id for one in seen}
    if len(sessions) < LEAST_SESSIONS or len(seen) < USUAL * total:
        return None
    others = [
        name for name, runs in sorted(ran.items(), key=lambda one: (-len(one[1]), one[0]))
        if name != command and len({one.session_id for one in runs}) >= LEAST_SESSIONS
    ]  # fmt: skip
    else_ = [name for name in others if name not in variants and len(ran[name]) >= BESIDES * total]
    text = f"{PURPOSES[purpose]} `{command}`, {len(seen)} of {total} times"
    text += f", else with {listed([f'`{name}`' for name in else_])}" if else_ else ""
    more = [name for name in others if name in variants]
    text += f"; there {'are' if len(more) > 1 else 'is'} also {listed([f'`{name}`' for name in more])}" if more else ""
    return _fact("command", f"command:{purpose}", f"{text}.", project, seen=len(seen), total=total,
                 sources=[(one.session_id, one.uuid) for one in habits.typical(seen)])  # fmt: skip


def _fact(
    kind: str, fingerprint: str, text: str, project: int, *, seen: int, total: int, sources: Sequence[tuple[str, str]]
) -> Fact | None:
    """A fact as sure as its counts, None for one of fewer sessions or turns than any may rest on."""
    sessions, evidence = len({session for session, _ in sources}), choose_evidence(sources)
    if sessions < LEAST_SESSIONS or len(evidence) < LEAST_SESSIONS or _HOLE.search(text):
        return None
    sure = habits.confidence(sessions, fit=seen / total, against=0)
    return Fact(kind=kind, fingerprint=fingerprint, text=text, project_seq=project, seen=seen, total=total,  # type: ignore[arg-type]
                sessions=sessions, confidence=sure, evidence=evidence)  # fmt: skip


# --- failures


def count_failures(errors: Sequence[Failed], project: int) -> list[Fact]:
    """What failed in several sessions and how it was mended, and what a check turns down most."""
    found = [_pair(one, project) for one in errors]
    by_command: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    failing: dict[str, set[str]] = defaultdict(set)
    for one in errors:
        if shell_commands.purpose(one.command) in ("lint", "check types"):
            failing[one.command].update(session for session, _ in one.shown)
            if rule := _RULE.search(one.message):
                by_command[one.command][rule[1] or rule[2] or rule[3]] += one.shown
    for command, rules in sorted(by_command.items()):
        found.append(_turned_down(command, rules, len(failing[command]), project))
    return [one for one in found if one is not None]


def _pair(one: Failed, project: int) -> Fact | None:
    """An error of several sessions with what mended it: in words, else by the file that was changed every time."""
    if not one.command or not one.mended or len({session for session, _ in one.shown}) < LEAST_SESSIONS:
        return None
    how = next((squeeze(said) for said, _ in one.said if said.strip() and not _HOLE.search(said)), "")
    same = sorted(set.intersection(*(set(files) for files in one.files))) if one.files else []
    if how:
        mended = f'what mended it: "{cut(how, MENDED)}"'
    elif same and len(one.mended) >= LEAST_SESSIONS:
        mended = f"mended {len(one.mended)} times in {listed([f'`{name}`' for name in same[:2]])}"
    else:
        return None
    message = cut(_PLACEHOLDER.sub("", squeeze(one.message)), MESSAGE).replace("`", "'")
    times = f"{amount(len(one.shown), 'time')} in {len({session for session, _ in one.shown})} sessions"
    end = "" if mended.endswith(('."', '!"', '…"')) else "."
    return _fact("fix", f"fix:{one.fingerprint}", f"`{one.command}` failed with `{message}` ({times}); {mended}{end}", project,
                 seen=min(len(one.mended), len(one.shown)), total=len(one.shown), sources=[*one.shown, *one.mended])  # fmt: skip


def _turned_down(command: str, rules: dict[str, list[tuple[str, str]]], failing: int, project: int) -> Fact | None:
    often = {rule: shown for rule, shown in rules.items() if len({s for s, _ in shown}) >= TURNED_DOWN_SESSIONS}
    if not often:
        return None
    most = sorted(often.items(), key=lambda one: (-len({s for s, _ in one[1]}), one[0]))[:TURNED_DOWN]
    if len({session for session, _ in most[0][1]}) < TURNED_DOWN_OFTEN:
        return None
    counts = [f"`{rule}` ({len({s for s, _ in shown})})" for rule, shown in most]
    counts[0] = f"{counts[0][:-1]} of {failing} sessions)"
    sources = [source for _, shown in most for source in shown]
    sessions = len({session for session, _ in sources})
    text = f"`{command}` fails most often for {listed(counts)}."
    return _fact("command", f"fails:{command}", text, project, seen=sessions, total=failing, sources=sources)


# --- files


def path_in_project(path: str, *, cwd: str, root: str) -> str:
    """A path as a digest tells it (below `cwd`, else whole), below the project's root; "" for one outside of it."""
    if not path or path.startswith(("/", "~", "..")) or _HOLE.search(path) or re.match(r"[A-Za-z]:[\\/]", path):
        return ""
    if root and cwd.startswith(root.rstrip("/") + "/"):
        below = f"{cwd.removeprefix(root.rstrip('/') + '/').rstrip('/')}/"
        below = re.sub(r"^(?:\.claude/)?\.?worktrees/[^/]+/", "", below)  # a checkout of the whole inside of it
        return f"{below}{path}"
    return path


def count_file_pairs(changes: Sequence[Named], project: int) -> list[Fact]:
    """Which files change with which: not those that change with everything, nor a file with its own test."""
    sessions: dict[str, dict[str, str]] = defaultdict(dict)
    for one in changes:
        sessions[one.session_id][one.name] = one.uuid
    changed = Counter(path for files in sessions.values() for path in files)
    often = EVERYWHERE * len(sessions) if len(sessions) >= FEW_SESSIONS else float("inf")
    both: dict[tuple[str, str], list[str]] = defaultdict(list)
    for session, files in sessions.items():
        if len(files) <= MOST_CHANGED:
            some = sorted(path for path in files if TOGETHER_SESSIONS <= changed[path] <= often)
            for pair in combinations(some, 2):
                both[pair].append(session)
    beside: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for (path, other), shared in sorted(both.items()):
        rarer, wider = sorted((path, other), key=lambda name: (changed[name], name))
        if len(shared) >= max(TOGETHER_SESSIONS, TOGETHER * changed[rarer]) and not _tests(path, other):
            beside[rarer][wider] = shared
    return _beside(beside, changed, sessions, project)


def _beside(
    beside: dict[str, dict[str, list[str]]], changed: Counter[str], sessions: dict[str, dict[str, str]], project: int
) -> list[Fact]:
    """One sentence for each file with all that changes beside it; a pair that another sentence tells is not told again."""
    found, told = [], set[frozenset[str]]()
    for path, others in sorted(beside.items(), key=lambda one: (-len(one[1]), one[0])):
        names = sorted(others, key=lambda name: (-len(others[name]), name))[:MOST_BESIDE]
        if all(frozenset((path, name)) in told for name in names):
            continue
        group = [path, *names]
        told.update(frozenset(pair) for pair in combinations(group, 2))
        shared = [one for one in others[names[0]] if all(one in others[name] for name in names)]
        if len(shared) < LEAST_SESSIONS:
            continue
        text = (f"When `{path}` changes, so {'do' if len(names) > 1 else 'does'} {listed([f'`{name}`' for name in names])}: "
                f"in {len(shared)} of {changed[path]} sessions.")  # fmt: skip
        sources = [(one, sessions[one][name]) for one in shared for name in (path, names[0])]
        fact = _fact("files", f"files:{path}", text, project, seen=len(shared), total=changed[path], sources=sources)
        sure = 1.0 if len(sessions) >= FEW_SESSIONS else FEW_SURE
        found += [replace(fact, confidence=round(fact.confidence * sure, 4))] if fact else []
    return sorted(found, key=lambda one: (-one.confidence, one.fingerprint))[:MOST_FILES_FACTS]


def _tests(one: str, other: str) -> bool:
    """Whether one of two files is the other's test, by their names."""
    stems = [PurePosixPath(path).name.split(".")[0] if ".test." not in path and ".spec." not in path
             else ".".join(PurePosixPath(path).name.split(".")[:2]) for path in (one, other)]  # fmt: skip
    bare = [_TEST_NAME.sub("", stem) for stem in stems]
    return bare[0] == bare[1] and stems[0] != stems[1]


#: The latest packets, and the sessions whose digests are looked at; errors, and the turns of each.
MOST_PACKETS, MOST_SESSIONS, MOST_ERRORS, MOST_TURNS = 10_000, 300, 200, 100


def count_facts(rows: Rows, project: int, *, now: str) -> list[Fact]:
    """What is counted of a project, in a stable order; nothing of it depends on the time it is asked for."""
    del now
    found = count_commands(candidates.latest_packets(rows, projects=[project], limit=MOST_PACKETS), project)
    found += count_failures(_failed(rows, project), project)
    done = turns.work_done(rows, project, sessions=MOST_SESSIONS)
    named = {
        kind: [Named(session_id=one.session_id, name=one.text, uuid=one.uuid) for one in done if one.kind == kind]
        for kind in ("commit", "branch")
    }
    changes = [
        Named(session_id=one.session_id, name=path, uuid=one.uuid)
        for one in done
        if one.kind == "file" and (path := path_in_project(one.text, cwd=one.cwd, root=one.root))
    ]
    commits = [replace(one, name=one.name.partition(" ")[2]) for one in named["commit"]]
    forms = (
        find_commit_form(commits, project),
        find_branch_form(named["branch"], project),
        find_test_form(changes, project),
    )
    return sort_facts([*found, *count_file_pairs(changes, project), *filter(None, forms)])


def _failed(rows: Rows, project: int) -> list[Failed]:
    found = []
    for error in failures.listing(rows, [project], limit=MOST_ERRORS):
        if not error.command:
            continue
        shown = turns.failure_turns(rows, error.error_seq, project, limit=MOST_TURNS)
        mended = [one for one in shown if one.mended]
        found.append(
            Failed(
                fingerprint=error.fingerprint, command=error.command, message=error.message,
                shown=tuple((one.session_id, one.uuid) for one in shown if not one.mended),
                mended=tuple((one.session_id, one.uuid) for one in mended),
                said=tuple((one.text, one.uuid) for one in reversed(mended)),
                files=tuple(tuple(one.files.split("\n")) for one in mended if one.files),
            )
        )  # fmt: skip
    return found
