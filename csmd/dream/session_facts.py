"""Counts facts about a project over its packets, failures and digests."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import PurePosixPath
from typing import NamedTuple

from csmd.dream.actions import Fact, FactKind
from csmd.extraction import shell_commands
from csmd.knowledge import Packet
from csmd.memory import habits
from csmd.store import failures, packet_rows, turns
from csmd.store.sqlite import Rows
from csmd.store.turns import FailureTurn, WorkItem
from csmd.text.display import amount, cut, join_names, squeeze

#: Fewest names that show a form.
MIN_FORM_NAMES = 4
#: Least share (0-1) of all names that must have it.
MIN_FORM_SHARE = 0.8

#: Commit subjects that tools write.
_TOOL_SUBJECT = re.compile(r"^(?:Merge|Revert) |^(?:fixup|squash)! ")
_COMMON_BRANCH = re.compile(r"^(?:main|master|trunk|develop|dev|HEAD|gh-pages|detached.*)$")
_TYPES = "feat|fix|chore|docs|refactor|test|tests|perf|build|ci|style|revert"
#: Form of commit subjects -> (pattern, sentence); the first that nearly all have counts.
SUBJECT_FORMS: dict[str, tuple[re.Pattern[str], str]] = {
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
#: Forms of test file names in languages that allow several.
_TEST_FORMS: dict[str, re.Pattern[str]] = {
    "*.test.*": re.compile(r"\.test\.(?:[cm]?[jt]s|[jt]sx)$"),
    "*.spec.*": re.compile(r"\.spec\.(?:[cm]?[jt]s|[jt]sx)$"),
    "test_*.py": re.compile(r"(?:^|/)test_[^/]+\.py$"),
    "*_test.py": re.compile(r"_test\.py$"),
    "*Test": re.compile(r"Test\.(?:java|kt|php|cs)$"),
    "*Tests": re.compile(r"Tests\.(?:java|kt|cs|swift)$"),
}
_TEST_FOLDERS = ("tests", "test", "__tests__", "spec", "specs", "e2e")

#: Most turns that a fact cites.
MAX_EVIDENCE_TURNS = 8
#: Fewest milestones that show a procedure.
MIN_MILESTONES = 3
#: Least share of a purpose's runs of the usual command.
MIN_USUAL_SHARE = 0.5
#: Least share of a purpose's runs of another command in the fact.
MIN_OTHER_SHARE = 0.1
#: Purpose of a command -> the beginning of a sentence about it.
PURPOSES = {
    "test": "Tests run with", "lint": "Linting is done with", "format": "Code is formatted with",
    "check types": "Types are checked with", "build": "It is built with",
}  # fmt: skip
#: Fewest sessions that broke the most broken rule of a check.
MIN_FIRST_RULE_SESSIONS = 3
#: Fewest sessions that broke each further rule.
MIN_RULE_SESSIONS = 2
#: Most rules in a fact.
MAX_RULES = 4
#: A rule's name at the end of a checker's message, or its code.
_RULE = re.compile(
    r"\(([a-z][a-z0-9]+(?:[-/][a-z0-9]+)*)\)$|\[([a-z][a-z0-9]+(?:-[a-z0-9]+)*)\]$|\b([A-Z]{1,4}\d{3,4})\b"
)
#: Most characters of an error's message.
MAX_MESSAGE_CHARACTERS = 120
#: Most characters of the sentence about the fix.
MAX_FIX_CHARACTERS = 200
_PLACEHOLDER = re.compile(r"\s*\((?:line|n|id|hash|path)?<[a-z]+>\)")
#: Fewest sessions in which two files changed together.
MIN_PAIR_SESSIONS = 3
#: Least share of the rarer file's sessions in which the other one changed too.
MIN_PAIR_SHARE = 0.75
#: A file that changed in a larger share of all sessions says nothing about its companions.
MAX_FILE_SHARE = 0.25
#: With fewer sessions MAX_FILE_SHARE is not applied.
FEW_SESSIONS = 12
#: Factor of the confidence of a fact from fewer sessions.
FEW_SESSIONS_FACTOR = 0.9
#: Most changed files of a session whose pairs count.
MAX_CHANGED_FILES = 20
#: Most files named as changing together with one.
MAX_COMPANIONS = 4
#: Most facts about files.
MAX_FILE_FACTS = 10
_TEST_NAME = re.compile(r"^(?:test_|spec_)|(?:_test|_spec|\.test|\.spec|Tests?|IT)$")
#: The mark of something purged or redacted; a text with it is not quoted.
_REMOVED_TEXT = re.compile(r"\[(?:purged\]|redacted:)")
#: The latest packets that are counted.
MAX_PACKETS = 10_000
#: The latest sessions whose digests are read.
MAX_SESSIONS = 300
#: Most errors that are read.
MAX_ERRORS = 200
#: Most turns of an error that are read.
MAX_TURNS = 100


def find_commit_form(subjects: Sequence[WorkItem], project: int) -> Fact | None:
    """Returns the form of commit subjects; None if no form is common to nearly all."""
    chosen = _drop_repeated([item for item in subjects if not _TOOL_SUBJECT.match(item.text)])
    for name, (pattern, text) in SUBJECT_FORMS.items():
        fitting = [item for item in chosen if pattern.match(item.text)]
        if fact := _make_form(f"commit:{name}", text, fitting, len(chosen), project):
            return fact
    return None


def find_branch_form(names: Sequence[WorkItem], project: int) -> Fact | None:
    """Returns the form of branch names (a prefix, a ticket, a date); None if nearly all have no common one."""
    chosen = _drop_repeated([item for item in names if not _COMMON_BRANCH.match(item.text)])
    shapes = {item.text: _find_shape(item.text) for item in chosen}
    common = Counter(shape for shape in shapes.values() if shape)
    if not common:
        return None
    shape = min(common, key=lambda form: (-common[form], form))
    fitting = [item for item in chosen if shapes[item.text] == shape]
    return _make_form(
        f"branch:{shape}", f"Branches are named `{shape}`", fitting, len(chosen), project, min_names=MIN_FORM_NAMES - 1
    )


def _find_shape(name: str) -> str:
    """Returns the part of a branch's name that others could share; "" if it has no form."""
    before, slash, rest = name.rpartition("/")
    ticket, day = _TICKET.match(rest), _DAY.match(rest)
    if not (slash or ticket or day):
        return ""
    if not (prefix := ticket or day):
        return f"{before}/<what>"
    shape = f"{ticket[1]}-<number>" if ticket else "<day>"
    return f"{before}{slash}{shape}" + "-<what>" * (len(rest) > prefix.end())


def find_test_form(paths: Sequence[WorkItem], project: int) -> Fact | None:
    """Returns the form of test file names, in languages that allow several, and their place; None if there is none."""
    by_form: dict[str, list[WorkItem]] = defaultdict(list)
    for path in _drop_repeated(paths):
        if form := next((form for form, pattern in _TEST_FORMS.items() if pattern.search(path.text)), ""):
            by_form[form].append(path)
    if not by_form:
        return None
    name, fitting = _find_largest(by_form)
    by_folder: dict[str, list[WorkItem]] = defaultdict(list)
    for path in fitting:
        by_folder[next((part for part in PurePosixPath(path.text).parts[:-1] if part in _TEST_FOLDERS), "")].append(
            path
        )
    folder, in_folder = _find_largest(by_folder)
    suffix = ""
    if len(in_folder) >= MIN_FORM_SHARE * len(fitting):
        fitting, suffix = in_folder, f", below `{folder}/`" if folder else ", beside what they test"
    total = sum(map(len, by_form.values()))
    return _make_form(f"tests:{name}", f"Test files are named `{name}`{suffix}", fitting, total, project)


def _find_largest(groups: Mapping[str, list[WorkItem]]) -> tuple[str, list[WorkItem]]:
    return min(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def _make_form(
    name: str, text: str, fitting: Sequence[WorkItem], total: int, project: int, *, min_names: int = MIN_FORM_NAMES
) -> Fact | None:
    """Returns a convention that `fitting` of `total` names follow; None if these are not nearly all."""
    if len(fitting) < max(min_names, MIN_FORM_SHARE * total):
        return None
    sources = [(item.session_id, item.uuid) for item in fitting]
    return _make_fact("convention", f"convention:{name}", f"{text}: {len(fitting)} of {total}.", project,
                      seen=len(fitting), total=total, sources=sources)  # fmt: skip


def _drop_repeated(items: Sequence[WorkItem]) -> list[WorkItem]:
    """Returns the first item of each name."""
    first: dict[str, WorkItem] = {}
    for item in items:
        first.setdefault(item.text, item)
    return list(first.values())


class FailedCommand(NamedTuple):
    """An error with the turns that show it and those that fixed it, in order."""

    fingerprint: str
    command: str
    message: str
    turns: Sequence[FailureTurn]

    def sources(self, *, mended: bool) -> list[tuple[str, str]]:
        """Returns (session, uuid) of the turns that fixed the error, or of those that show it."""
        return [(turn.session_id, turn.uuid) for turn in self.turns if turn.mended == mended]


def sort_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Sorts facts by kind, the surest first, in a stable order."""
    kinds = ("command", "procedure", "fix", "files", "convention")
    return sorted(facts, key=lambda fact: (kinds.index(fact.kind), -fact.confidence, fact.fingerprint))


def is_covered(fact: Fact, lines: Iterable[str]) -> bool:
    """Whether one of these lines names all the commands that a fact counts."""
    commands = re.findall(r"`[^`]+`", fact.text)
    return fact.kind == "command" and any(all(command in line for command in commands) for line in lines)


def choose_evidence(sources: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Returns at most EVIDENCE uuids of (session, uuid), one of each session before a second one of any."""
    ranks: Counter[str] = Counter()
    ranked: list[tuple[int, str]] = []
    for session, uuid in dict.fromkeys(sources):
        ranked.append((ranks[session], uuid))
        ranks[session] += 1
    return tuple(dict.fromkeys(uuid for _, uuid in sorted(ranked, key=lambda entry: entry[0])))[:MAX_EVIDENCE_TURNS]


def _count_sessions(sources: Iterable[tuple[str, str]]) -> int:
    """Returns the number of sessions in some (session, uuid)."""
    return len({session for session, _ in sources})


def _make_fact(
    kind: FactKind, fingerprint: str, text: str, project: int,
    *, seen: int, total: int, sources: Sequence[tuple[str, str]],
) -> Fact | None:  # fmt: skip
    """Returns a fact with the confidence of its counts; None if too few sessions or turns show it."""
    sessions, evidence = _count_sessions(sources), choose_evidence(sources)
    if sessions < habits.MIN_SESSIONS or len(evidence) < habits.MIN_SESSIONS or _REMOVED_TEXT.search(text):
        return None
    return Fact(
        kind=kind, fingerprint=fingerprint, text=text, project_seq=project, seen=seen, total=total, sessions=sessions,
        confidence=habits.estimate_confidence(sessions, fit=seen / total, against=0), evidence=evidence,
    )  # fmt: skip


# --- commands and procedures


def count_commands(packets: Sequence[Packet], project: int) -> list[Fact]:
    """Returns the usual command of each purpose, and the usual steps before a milestone."""
    runs: dict[str, dict[str, list[Packet]]] = defaultdict(lambda: defaultdict(list))
    for packet in packets:
        if packet.kind == "tool" and (purpose := shell_commands.find_purpose(packet.subject)):
            runs[purpose][packet.subject].append(packet)
    facts = [_count_usual_command(purpose, commands, project) for purpose, commands in sorted(runs.items())]
    for habit in habits.find_habits(packets):
        counts = re.match(r"(\d+) of (\d+) ", habit.count)
        if habit.category == "procedure" and counts and int(counts[2]) >= MIN_MILESTONES:
            sources = [(packet.session_id, packet.uuid) for packet in habits.sort_by_typicality(habit.seen)]
            facts.append(Fact(
                kind="procedure", fingerprint=habit.fingerprint, text=habit.text, project_seq=project,
                seen=int(counts[1]), total=int(counts[2]), sessions=habit.sessions, confidence=habit.confidence,
                evidence=choose_evidence(sources),
            ))  # fmt: skip
    return [fact for fact in facts if fact is not None]


def _count_usual_command(purpose: str, commands: dict[str, list[Packet]], project: int) -> Fact | None:
    """Returns the command that serves a purpose most often; variants of it (`test:ci` of `test`) count as the same."""
    ranked = sorted(commands.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    command, runs = ranked[0]
    is_variant = re.compile(rf"{re.escape(command)}[:-]").match
    total = sum(len(packets) for name, packets in ranked if not is_variant(name))
    if len({packet.session_id for packet in runs}) < habits.MIN_SESSIONS or len(runs) < MIN_USUAL_SHARE * total:
        return None
    others = [
        name for name, packets in ranked[1:] if len({packet.session_id for packet in packets}) >= habits.MIN_SESSIONS
    ]
    besides = [
        f"`{name}`" for name in others if not is_variant(name) and len(commands[name]) >= MIN_OTHER_SHARE * total
    ]
    variants = [f"`{name}`" for name in others if is_variant(name)]
    text = f"{PURPOSES[purpose]} `{command}`, {len(runs)} of {total} times"
    text += f", else with {join_names(besides)}" if besides else ""
    text += f"; there {'are' if len(variants) > 1 else 'is'} also {join_names(variants)}" if variants else ""
    sources = [(packet.session_id, packet.uuid) for packet in habits.sort_by_typicality(runs)]
    return _make_fact(
        "command", f"command:{purpose}", f"{text}.", project, seen=len(runs), total=total, sources=sources
    )


# --- failures


def count_failures(errors: Sequence[FailedCommand], project: int) -> list[Fact]:
    """Returns the errors of several sessions with their fixes, and the rules that a check reports most."""
    facts = [_count_fix(error, project) for error in errors]
    rules: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    failing: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for error in errors:
        if shell_commands.find_purpose(error.command) in ("lint", "check types"):
            failing[error.command] += error.sources(mended=False)
            if rule := _RULE.search(error.message):
                rules[error.command][rule[1] or rule[2] or rule[3]] += error.sources(mended=False)
    for command, shown in sorted(rules.items()):
        facts.append(_count_broken_rules(command, shown, _count_sessions(failing[command]), project))
    return [fact for fact in facts if fact is not None]


def _count_fix(error: FailedCommand, project: int) -> Fact | None:
    """Returns an error of several sessions with its fix: in words, or the file that was changed every time."""
    shown, mending = error.sources(mended=False), [turn for turn in error.turns if turn.mended]
    sessions = _count_sessions(shown)
    if not error.command or not mending or sessions < habits.MIN_SESSIONS:
        return None
    texts = (turn.text for turn in reversed(mending) if turn.text.strip() and not _REMOVED_TEXT.search(turn.text))
    words = squeeze(next(texts, ""))
    files = [set(turn.files.split("\n")) for turn in mending if turn.files]
    common = sorted(set.intersection(*files)) if files else []
    if words:
        mended = f'what mended it: "{cut(words, MAX_FIX_CHARACTERS)}"'
    elif common and len(mending) >= habits.MIN_SESSIONS:
        mended = f"mended {len(mending)} times in {join_names([f'`{name}`' for name in common[:2]])}"
    else:
        return None
    message = cut(_PLACEHOLDER.sub("", squeeze(error.message)), MAX_MESSAGE_CHARACTERS).replace("`", "'")
    times = f"{amount(len(shown), 'time')} in {sessions} sessions"
    end = "" if mended.endswith(('."', '!"', '…"')) else "."
    text = f"`{error.command}` failed with `{message}` ({times}); {mended}{end}"
    return _make_fact(
        "fix", f"fix:{error.fingerprint}", text, project, seen=min(len(mending), len(shown)), total=len(shown),
        sources=[*shown, *error.sources(mended=True)],
    )  # fmt: skip


def _count_broken_rules(
    command: str, rules: Mapping[str, list[tuple[str, str]]], failing: int, project: int
) -> Fact | None:
    """Returns the rules that a check reports in most sessions, of the `failing` ones in which it failed."""
    often = [(rule, shown) for rule, shown in rules.items() if _count_sessions(shown) >= MIN_RULE_SESSIONS]
    often = sorted(often, key=lambda entry: (-_count_sessions(entry[1]), entry[0]))[:MAX_RULES]
    if not often or _count_sessions(often[0][1]) < MIN_FIRST_RULE_SESSIONS:
        return None
    counts = [f"`{rule}` ({_count_sessions(shown)})" for rule, shown in often]
    counts[0] = f"{counts[0][:-1]} of {failing} sessions)"
    sources = [source for _, shown in often for source in shown]
    text = f"`{command}` fails most often for {join_names(counts)}."
    return _make_fact(
        "command", f"fails:{command}", text, project, seen=_count_sessions(sources), total=failing, sources=sources
    )


# --- files


def make_project_path(path: str, *, cwd: str, root: str) -> str:
    """Returns a digest's path (relative to `cwd`, or absolute) relative to the project's root; "" if it is outside."""
    if not path or path.startswith(("/", "~", "..")) or _REMOVED_TEXT.search(path) or re.match(r"[A-Za-z]:[\\/]", path):
        return ""
    if root and cwd.startswith(root.rstrip("/") + "/"):
        below = f"{cwd.removeprefix(root.rstrip('/') + '/').rstrip('/')}/"
        below = re.sub(r"^(?:\.claude/)?\.?worktrees/[^/]+/", "", below)  # a worktree inside the project
        return f"{below}{path}"
    return path


def count_file_pairs(changes: Sequence[WorkItem], project: int) -> list[Fact]:
    """Returns which files change together, except with everything or as a file and its test."""
    sessions: dict[str, dict[str, str]] = defaultdict(dict)
    for change in changes:
        sessions[change.session_id][change.text] = change.uuid
    changed = Counter(path for paths in sessions.values() for path in paths)
    often = MAX_FILE_SHARE * len(sessions) if len(sessions) >= FEW_SESSIONS else float("inf")
    together: dict[tuple[str, str], list[str]] = defaultdict(list)
    for session, paths in sessions.items():
        if len(paths) <= MAX_CHANGED_FILES:
            for pair in combinations(sorted(p for p in paths if MIN_PAIR_SESSIONS <= changed[p] <= often), 2):
                together[pair].append(session)
    companions: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for pair, shared in sorted(together.items()):
        rarer, wider = sorted(pair, key=lambda name: (changed[name], name))
        if len(shared) >= max(MIN_PAIR_SESSIONS, MIN_PAIR_SHARE * changed[rarer]) and not _is_test_of(*pair):
            companions[rarer][wider] = shared
    # One sentence for each file with all its companions; a pair is named in one sentence only.
    facts, reported = [], set[frozenset[str]]()
    for path, others in sorted(companions.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        names = sorted(others, key=lambda name: (-len(others[name]), name))[:MAX_COMPANIONS]
        shared = [session for session in others[names[0]] if all(session in others[name] for name in names)]
        if all(frozenset((path, name)) in reported for name in names):
            continue
        reported.update(map(frozenset, combinations([path, *names], 2)))
        verb, listed = "do" if len(names) > 1 else "does", join_names([f"`{name}`" for name in names])
        text = f"When `{path}` changes, so {verb} {listed}: in {len(shared)} of {changed[path]} sessions."
        sources = [(session, sessions[session][name]) for session in shared for name in (path, names[0])]
        fact = _make_fact(
            "files", f"files:{path}", text, project, seen=len(shared), total=changed[path], sources=sources
        )
        factor = 1.0 if len(sessions) >= FEW_SESSIONS else FEW_SESSIONS_FACTOR
        facts += [replace(fact, confidence=round(fact.confidence * factor, 4))] if fact else []
    return sorted(facts, key=lambda fact: (-fact.confidence, fact.fingerprint))[:MAX_FILE_FACTS]


def _is_test_of(path: str, other: str) -> bool:
    """Whether one of two files is the other's test, by their names."""
    stems = []
    for name in (path, other):
        parts = 2 if ".test." in name or ".spec." in name else 1
        stems.append(".".join(PurePosixPath(name).name.split(".")[:parts]))
    bare = {_TEST_NAME.sub("", stem) for stem in stems}
    return len(bare) == 1 and stems[0] != stems[1]


# --- counting over the store


def count_facts(rows: Rows, project: int) -> list[Fact]:
    """Returns the facts about a project, in a stable order; they do not depend on the time."""
    facts = count_commands(packet_rows.latest_packets(rows, projects=[project], limit=MAX_PACKETS), project)
    errors = [
        FailedCommand(error.fingerprint, error.command, error.message,
               turns.list_failure_turns(rows, error.error_seq, project, limit=MAX_TURNS))
        for error in failures.list_errors(rows, [project], limit=MAX_ERRORS)
        if error.command
    ]  # fmt: skip
    facts += count_failures(errors, project)
    items: dict[str, list[WorkItem]] = defaultdict(list)
    for work in turns.list_work(rows, project, sessions=MAX_SESSIONS):
        if work.kind == "commit":
            work = work._replace(text=work.text.partition(" ")[2])
        elif work.kind == "file":
            work = work._replace(text=make_project_path(work.text, cwd=work.cwd, root=work.root))
        if work.text or work.kind != "file":
            items[work.kind].append(work)
    forms = (
        find_commit_form(items["commit"], project),
        find_branch_form(items["branch"], project),
        find_test_form(items["file"], project),
    )
    return sort_facts([*facts, *count_file_pairs(items["file"], project), *filter(None, forms)])
