"""Derives facts about a project from its commands, failures, changed files and names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import PurePosixPath
from typing import NamedTuple

from csmd.dream import naming_conventions
from csmd.dream.actions import REMOVED_TEXT, Fact, TurnReference, choose_evidence, count_sessions, make_fact
from csmd.extraction import shell_commands
from csmd.knowledge import Packet
from csmd.memory import habits
from csmd.store import failures, packet_rows, turns
from csmd.store.sqlite import Rows
from csmd.store.turns import FailureTurn, WorkItem
from csmd.text.display import amount, cut, join_names, squeeze

# --- limits of what is read

MAX_LATEST_PACKETS = 10_000
MAX_LATEST_SESSIONS = 300
MAX_ERRORS = 200
#: Turns of one error.
MAX_ERROR_TURNS = 100

# --- commands and procedures

#: Fewest milestones that show a procedure.
MIN_MILESTONES = 3
#: Least share of a purpose's runs of the usual command.
MIN_USUAL_SHARE = 0.5
#: Least share of a purpose's runs of another command in the fact.
MIN_OTHER_SHARE = 0.1
#: Purpose of a command -> the beginning of a sentence about it.
PURPOSES = {
    "test": "Tests run with", "lint": "Linting is done with", "format": "Code is formatted with",
    "check types": "Types are checked with", "build": "The project is built with",
}  # fmt: skip

# --- failures

#: Fewest sessions that broke the most broken rule of a check.
MIN_FIRST_RULE_SESSIONS = 3
#: Fewest sessions that broke each further rule.
MIN_RULE_SESSIONS = 2
#: Most rules of a check in a fact.
MAX_RULES = 4
#: A rule's name at the end of a checker's message, or its code.
_RULE = re.compile(
    r"\(([a-z][a-z0-9]+(?:[-/][a-z0-9]+)*)\)$|\[([a-z][a-z0-9]+(?:-[a-z0-9]+)*)\]$|\b([A-Z]{1,4}\d{3,4})\b"
)
MAX_MESSAGE_CHARACTERS = 120
MAX_FIX_CHARACTERS = 200
#: Most files named as the fix of an error.
MAX_FIXED_FILES = 2
_PLACEHOLDER = re.compile(r"\s*\((?:line|n|id|hash|path)?<[a-z]+>\)")

# --- files

#: Fewest sessions in which two files changed together.
MIN_PAIR_SESSIONS = 3
#: Least share of the rarer file's sessions in which the other one changed too.
MIN_PAIR_SHARE = 0.75
#: A file that changed in a larger share of all sessions is not paired with others.
MAX_FILE_SHARE = 0.25
#: With fewer sessions MAX_FILE_SHARE is not applied, and the confidence is multiplied by FEW_SESSIONS_FACTOR.
FEW_SESSIONS = 12
FEW_SESSIONS_FACTOR = 0.9
#: A session that changed more files does not pair them.
MAX_CHANGED_FILES = 20
#: Most files in a sentence besides the one that it is about.
MAX_COMPANIONS = 4
MAX_FILE_FACTS = 10
_TEST_NAME = re.compile(r"^(?:test_|spec_)|(?:_test|_spec|\.test|\.spec|Tests?|IT)$")


class FailedCommand(NamedTuple):
    """An error with the turns that show it and those that fixed it, in order."""

    fingerprint: str
    command: str
    message: str
    turns: Sequence[FailureTurn]

    @property
    def failures(self) -> list[TurnReference]:
        """The turns that show the error."""
        return [(turn.session_id, turn.uuid) for turn in self.turns if not turn.mended]

    @property
    def fixes(self) -> list[FailureTurn]:
        """The turns that fixed the error."""
        return [turn for turn in self.turns if turn.mended]


def sort_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Sorts facts by kind, the surest first, in a stable order."""
    kinds = ("command", "procedure", "fix", "files", "convention")
    return sorted(facts, key=lambda fact: (kinds.index(fact.kind), -fact.confidence, fact.fingerprint))


def is_covered(fact: Fact, lines: Iterable[str]) -> bool:
    """Whether one of these lines names all the commands that a fact counts."""
    commands = re.findall(r"`[^`]+`", fact.text)
    return fact.kind == "command" and any(all(command in line for command in commands) for line in lines)


# --- commands and procedures


def derive_command_facts(packets: Sequence[Packet], project: int) -> list[Fact]:
    """Returns the usual command of each purpose, and the usual steps before a milestone."""
    runs = habits.group_runs(packets)
    usual = (_describe_usual_command(purpose, runs[purpose], project) for purpose in sorted(runs))
    procedures = (
        Fact(
            kind="procedure", fingerprint=habit.fingerprint, text=habit.text, project_seq=project,
            seen=len(habit.seen), total=habit.total, sessions=habit.sessions, confidence=habit.confidence,
            evidence=choose_evidence(_list_sources(habit.seen)),
        )
        for habit in habits.find_habits(packets)
        if habit.total >= MIN_MILESTONES
    )  # fmt: skip
    return [*filter(None, usual), *procedures]


def _list_sources(packets: Iterable[Packet]) -> list[TurnReference]:
    """Returns the turns of packets, the most typical first."""
    return [(packet.session_id, packet.uuid) for packet in habits.sort_by_typicality(packets)]


def _describe_usual_command(purpose: str, commands: Mapping[str, list[Packet]], project: int) -> Fact | None:
    """Returns the command that serves a purpose most often; variants of it (`test:ci` of `test`) count as the same."""
    ranked = sorted(commands, key=lambda name: (-len(commands[name]), name))
    command = ranked[0]
    runs = commands[command]
    is_variant = re.compile(rf"{re.escape(command)}[:-]").match
    total = sum(len(packets) for name, packets in commands.items() if not is_variant(name))
    if habits.count_sessions(runs) < habits.MIN_SESSIONS or len(runs) < MIN_USUAL_SHARE * total:
        return None
    others = [name for name in ranked[1:] if habits.count_sessions(commands[name]) >= habits.MIN_SESSIONS]
    variants = [f"`{name}`" for name in others if is_variant(name)]
    min_runs = MIN_OTHER_SHARE * total
    alternatives = [f"`{name}`" for name in others if not is_variant(name) and len(commands[name]) >= min_runs]
    text = f"{PURPOSES[purpose]} `{command}`, {len(runs)} of {total} times"
    if alternatives:
        text += f"; otherwise with {join_names(alternatives)}"
    if variants:
        text += f"; variants: {join_names(variants)}"
    fingerprint, seen, sources = f"command:{purpose}", len(runs), _list_sources(runs)
    return make_fact("command", fingerprint, f"{text}.", project, seen=seen, total=total, sources=sources)


# --- failures


def derive_failure_facts(errors: Sequence[FailedCommand], project: int) -> list[Fact]:
    """Returns the errors of several sessions with their fixes, and the rules that a check reports most."""
    broken: dict[str, dict[str, list[TurnReference]]] = defaultdict(lambda: defaultdict(list))
    failed: dict[str, list[TurnReference]] = defaultdict(list)
    for error in errors:
        if shell_commands.find_purpose(error.command) in ("lint", "check types"):
            failed[error.command] += error.failures
            if rule := _RULE.search(error.message):
                broken[error.command][rule[1] or rule[2] or rule[3]] += error.failures
    fixes = (_describe_fix(error, project) for error in errors)
    failed_sessions = {command: count_sessions(sources) for command, sources in failed.items()}
    rules = (_describe_broken_rules(name, broken[name], failed_sessions[name], project) for name in sorted(broken))
    return [*filter(None, fixes), *filter(None, rules)]


def _describe_fix(error: FailedCommand, project: int) -> Fact | None:
    """Returns an error of several sessions with its fix: in words, or the file that was changed every time."""
    failed_at, fixes = error.failures, error.fixes
    sessions = count_sessions(failed_at)
    if not error.command or not fixes or sessions < habits.MIN_SESSIONS:
        return None
    texts = (turn.text for turn in reversed(fixes) if turn.text.strip() and not REMOVED_TEXT.search(turn.text))
    words = squeeze(next(texts, ""))
    files = [set(turn.files.split("\n")) for turn in fixes if turn.files]
    common = sorted(set.intersection(*files)) if files else []
    if words:
        fix = f'fixed by: "{cut(words, MAX_FIX_CHARACTERS)}"'
    elif common and len(fixes) >= habits.MIN_SESSIONS:
        names = join_names([f"`{name}`" for name in common[:MAX_FIXED_FILES]])
        fix = f"fixed {len(fixes)} times by changing {names}"
    else:
        return None
    message = cut(_PLACEHOLDER.sub("", squeeze(error.message)), MAX_MESSAGE_CHARACTERS).replace("`", "'")
    times = f"{amount(len(failed_at), 'time')} in {sessions} sessions"
    end = "" if fix.endswith(('."', '!"', '…"')) else "."
    text = f"`{error.command}` failed with `{message}` ({times}); {fix}{end}"
    sources = [*failed_at, *((turn.session_id, turn.uuid) for turn in fixes)]
    seen = min(len(fixes), len(failed_at))
    return make_fact("fix", f"fix:{error.fingerprint}", text, project, seen=seen, total=len(failed_at), sources=sources)


def _describe_broken_rules(
    command: str, rules: Mapping[str, list[TurnReference]], failed_sessions: int, project: int
) -> Fact | None:
    """Returns the rules that a check reports in most of the sessions in which it failed."""
    sessions = {rule: count_sessions(sources) for rule, sources in rules.items()}
    frequent = [rule for rule in rules if sessions[rule] >= MIN_RULE_SESSIONS]
    frequent = sorted(frequent, key=lambda rule: (-sessions[rule], rule))[:MAX_RULES]
    if not frequent or sessions[frequent[0]] < MIN_FIRST_RULE_SESSIONS:
        return None
    first, *others = frequent
    counts = [f"`{first}` ({sessions[first]} of {failed_sessions} sessions)"]
    counts += [f"`{rule}` ({sessions[rule]})" for rule in others]
    sources = [source for rule in frequent for source in rules[rule]]
    text = f"`{command}` fails most often for {join_names(counts)}."
    seen = count_sessions(sources)
    return make_fact("command", f"fails:{command}", text, project, seen=seen, total=failed_sessions, sources=sources)


# --- files


def make_project_path(path: str, *, cwd: str, root: str) -> str:
    """Returns a digest's path (relative to `cwd`, or absolute) relative to the project's root; "" if it is outside."""
    if not path or path.startswith(("/", "~", "..")) or REMOVED_TEXT.search(path) or re.match(r"[A-Za-z]:[\\/]", path):
        return ""
    if root and cwd.startswith(root.rstrip("/") + "/"):
        below = f"{cwd.removeprefix(root.rstrip('/') + '/').rstrip('/')}/"
        below = re.sub(r"^(?:\.claude/)?\.?worktrees/[^/]+/", "", below)  # a worktree inside the project
        return f"{below}{path}"
    return path


def derive_file_facts(changes: Sequence[WorkItem], project: int) -> list[Fact]:
    """Returns which files change together, except those that change with everything, and a file and its test."""
    uuids: dict[str, dict[str, str]] = defaultdict(dict)
    for change in changes:
        uuids[change.session_id][change.text] = change.uuid
    changed = Counter(path for paths in uuids.values() for path in paths)
    factor = 1.0 if len(uuids) >= FEW_SESSIONS else FEW_SESSIONS_FACTOR
    companions = _find_companions({session: list(paths) for session, paths in uuids.items()}, changed)
    facts: list[Fact] = []
    reported: set[frozenset[str]] = set()
    # One sentence for each file with all its companions; a pair is named in one sentence only.
    for path, others in sorted(companions.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        names = sorted(others, key=lambda name: (-len(others[name]), name))[:MAX_COMPANIONS]
        if all(frozenset((path, name)) in reported for name in names):
            continue
        reported.update(map(frozenset, combinations([path, *names], 2)))
        shared = [session for session in others[names[0]] if all(session in others[name] for name in names)]
        verb = "do" if len(names) > 1 else "does"
        listing = join_names([f"`{name}`" for name in names])
        text = f"When `{path}` changes, so {verb} {listing}: in {len(shared)} of {changed[path]} sessions."
        sources = [(session, uuids[session][name]) for session in shared for name in (path, names[0])]
        seen = len(shared)
        fact = make_fact("files", f"files:{path}", text, project, seen=seen, total=changed[path], sources=sources)
        if fact:
            facts.append(replace(fact, confidence=round(fact.confidence * factor, 4)))
    return sorted(facts, key=lambda fact: (-fact.confidence, fact.fingerprint))[:MAX_FILE_FACTS]


def _find_companions(paths_of: Mapping[str, Sequence[str]], changed: Counter[str]) -> dict[str, dict[str, list[str]]]:
    """Maps each file to those that nearly always change with it, and these to the sessions (keys of `paths_of`)."""
    max_sessions = MAX_FILE_SHARE * len(paths_of) if len(paths_of) >= FEW_SESSIONS else float("inf")
    together: dict[tuple[str, str], list[str]] = defaultdict(list)
    for session, paths in paths_of.items():
        if len(paths) <= MAX_CHANGED_FILES:
            usual = sorted(path for path in paths if MIN_PAIR_SESSIONS <= changed[path] <= max_sessions)
            for pair in combinations(usual, 2):
                together[pair].append(session)
    companions: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for pair, shared in sorted(together.items()):
        rarer, other = sorted(pair, key=lambda name: (changed[name], name))
        if len(shared) >= max(MIN_PAIR_SESSIONS, MIN_PAIR_SHARE * changed[rarer]) and not _is_test_of(*pair):
            companions[rarer][other] = shared
    return companions


def _is_test_of(path: str, other: str) -> bool:
    """Whether one of two files is the other's test, by their names."""
    stems = []
    for name in (path, other):
        parts = 2 if ".test." in name or ".spec." in name else 1
        stems.append(".".join(PurePosixPath(name).name.split(".")[:parts]))
    bare = {_TEST_NAME.sub("", stem) for stem in stems}
    return len(bare) == 1 and stems[0] != stems[1]


# --- reading the store


def derive_facts(rows: Rows, project: int) -> list[Fact]:
    """Returns the facts about a project, in a stable order; they do not depend on the time."""
    packets = packet_rows.latest_packets(rows, projects=[project], limit=MAX_LATEST_PACKETS)
    errors = [
        FailedCommand(
            error.fingerprint, error.command, error.message,
            turns.list_failure_turns(rows, error.error_seq, project, limit=MAX_ERROR_TURNS),
        )
        for error in failures.list_errors(rows, [project], limit=MAX_ERRORS)
        if error.command
    ]  # fmt: skip
    items: dict[str, list[WorkItem]] = defaultdict(list)
    for work in turns.list_work(rows, project, sessions=MAX_LATEST_SESSIONS):
        if work.kind == "commit":
            work = work._replace(text=work.text.partition(" ")[2])
        elif work.kind == "file":
            work = work._replace(text=make_project_path(work.text, cwd=work.cwd, root=work.root))
        if work.text or work.kind != "file":
            items[work.kind].append(work)
    conventions = (
        naming_conventions.find_commit_convention(items["commit"], project),
        naming_conventions.find_branch_convention(items["branch"], project),
        naming_conventions.find_test_file_convention(items["file"], project),
    )
    return sort_facts([
        *derive_command_facts(packets, project), *derive_failure_facts(errors, project),
        *derive_file_facts(items["file"], project), *filter(None, conventions),
    ])  # fmt: skip
