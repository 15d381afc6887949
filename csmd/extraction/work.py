"""Harvests the work of a session: files, commands, commits, decisions, open ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from csmd.extraction import shell_commands
from csmd.hosts import tool_calls
from csmd.text import clauses, quotations, sentence
from csmd.text.display import cut, squeeze
from csmd.text.prose import read_prose_lines, split_sentences
from csmd.text.sentence import parse
from csmd.text.tokens import content_words, stem, words_of

MAX_COMMAND_CHARACTERS = 100
#: Characters of an output's beginning that are searched for a failure that a pipe hid.
HEAD_CHARACTERS = 500
#: Characters of its end.
TAIL_CHARACTERS = 1500


class Entry(NamedTuple):
    """One entry of a conversation as it is stored; `ordinal` is its place."""

    ordinal: int
    uuid: str
    kind: str
    text: str
    at: str
    tool: str
    tool_id: str
    tokens: int


@dataclass(slots=True)
class Ran:
    """A command: how often it ran and failed, how it ended, where it was seen last, the error it ended with."""

    command: str
    uuid: str = ""
    at: int = 0
    runs: int = 0
    failures: int = 0
    passed: bool = True
    error: str = ""
    error_uuid: str = ""

    @property
    def state(self) -> str:
        """passed, mended (it failed before) or failed, by its last run."""
        return "failed" if not self.passed else "mended" if self.failures else "passed"


class Commit(NamedTuple):
    """A commit that was made: its branch and short hash ("" if nothing printed them), its subject, and why it was
    made."""

    branch: str
    hash: str
    subject: str
    uuid: str
    ordinal: int
    reason: str = ""


@dataclass(slots=True)
class Work:
    """The work of a session, in order of first touch; an ordinal of 0 means never."""

    files: dict[str, list[str]] = field(default_factory=dict)
    """Path -> the uuids of the calls that changed it."""
    read: dict[str, list[str]] = field(default_factory=dict)
    """Path -> the uuids of the calls that read it."""
    ran: dict[str, Ran] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    plans: list[tuple[str, str]] = field(default_factory=list)
    """(plan, uuid) of the plans that the user did not turn down."""
    branches: dict[str, str] = field(default_factory=dict)
    """Branches that were begun here -> uuid."""
    pulls: dict[str, str] = field(default_factory=dict)
    """Pull requests that were opened ("#12 title") -> uuid."""
    todo: list[tuple[str, tool_calls.Progress, str]] = field(default_factory=list)
    """(entry, progress, uuid) of the last to-do list and of the tasks."""
    calls: int = 0
    rejections: list[str] = field(default_factory=list)
    changed_at: int = 0
    turned_down: list[int] = field(default_factory=list)
    """Ordinals at which a person rejected a change."""

    @property
    def open(self) -> list[tuple[str, str]]:
        """(entry, uuid) of the to-dos that are not done."""
        return [(body, uuid) for body, progress, uuid in self.todo if progress != "done"]


#: The mark that replaces quoted text in a shell line.
_HIDDEN = re.compile(r"\0(\d+)\0")
_COMMIT = re.compile(r"^\[([^\s\]]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.M)
#: Output of git if it made no commit.
_NO_COMMIT = re.compile(
    r"\bnothing (?:added )?to commit\b|\bno changes added\b|\b(?:fatal|error): |\bidentity unknown\b|\bFailed\b|\bexit code: [1-9]"
)
#: The number in the address of a new pull request or merge request.
_PULL = re.compile(r"https://[\w.-]+/[\w./-]+/(?:pull|merge_requests)/(\d+)\b")
_TITLE = re.compile(r"--title[ =]\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')")
#: Words with which a message tells how it was before the commit.
_BEFORE = frozenset("was were had did didn't previously".split())
#: Between the paragraphs of a message, whose lines are wrapped, and before an entry of a list in it.
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)")
#: A repository of its own, or another directory than the session's.
_OTHER_DIRECTORY = re.compile(r"\bgit init\b|\bcd ['\"]?(/[^\s;&'\"]*)")
_BRANCH = re.compile(r"\bgit (?:checkout -[bB]|switch (?:-c|-C|--create)) +['\"]?([\w./-]+)")
#: Purpose of a command -> the name of its check.
_CHECK_NAMES = {"test": "tests", "format": "format", "check types": "lint", "lint": "lint", "build": "build"}
#: The names of all checks.
CHECKS = frozenset(_CHECK_NAMES.values())
#: The output of a check that failed while a pipe hid its exit code.
_SAYS_FAILED = re.compile(
    r"^(?:--- FAIL|FAIL\b|FAILED\b|ERROR\b|Error: |E\s{3}|error(?:\[\w+\])?: |make: \*\*\*|npm ERR!|panic: )"
    r"|\bexit (?:status|code) [1-9]|\b[1-9]\d* (?:failed|errors?)\b(?! handling)|\bfailed with exit|task failed", re.M
)  # fmt: skip
_ERROR_LINE = re.compile(
    r"^.{0,200}?(?:\w*error\b|\bfail(?:ed|ure)?\b|\bpanic\b|\w*exception|undefined|cannot|not found|no such|fatal|denied).{0,200}$",
    re.I | re.M,
)
_VARIABLE_PART = re.compile(
    r"0x[0-9a-f]+|\b[0-9a-f]{7,40}\b|\d+(?:\.\d+)*(?:ms|s)?|(?<![\w.])(?:/[\w.@-]+){2,}/|['\"`][^'\"`]{60,}['\"`]", re.I
)


def find_check(command: str) -> str:
    """Returns the check that a command is (tests, format, lint, build); "" for another command."""
    return _CHECK_NAMES.get(shell_commands.find_purpose(command), "")


def split_commands(line: str) -> list[str]:
    """Splits a shell line into its commands, without redirections, assignments, `cd` and commands that only look."""
    kept: list[str] = []
    quotes: list[str] = []

    def hide(match: re.Match[str]) -> str:
        quotes.append(match[0])
        return f"\0{len(quotes) - 1}\0"

    bare = shell_commands.QUOTED.sub(hide, shell_commands.HEREDOC.sub("<<", line.replace("\\\n", " ")))
    for words in shell_commands.split_parts(bare):
        if shell_commands.looks_only(words):
            continue
        shown = _HIDDEN.sub(lambda match: quotes[int(match[1])], shell_commands.without_assignments(words))
        shown_command = cut(squeeze(shown), MAX_COMMAND_CHARACTERS)
        if shown_command not in kept:
            kept.append(shown_command)
    return kept


def is_notable(ran: Ran) -> bool:
    """Whether a command is worth keeping: a known program or check, or a failure."""
    is_failure = bool(ran.error) and not ran.passed
    return is_failure or shell_commands.is_of_work(ran.command) or bool(find_check(ran.command))


def find_error(text: str) -> str:
    """The first line that reports an error, with numbers, hashes and paths masked; "" for none."""
    body = text.partition("\n")[2] if text.startswith("Exit code") else text
    match = _ERROR_LINE.search(body[:4000])
    return cut(squeeze(_VARIABLE_PART.sub("N", match[0])).strip(), 160) if match else ""


def _cut_output(text: str) -> str:
    """The beginning and the end of an output, where a check reports its result."""
    is_short = len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS
    return text if is_short else f"{text[:HEAD_CHARACTERS]}\n{text[-TAIL_CHARACTERS:]}"


def summarise(entries: Sequence[Entry], *, cwd: str = "") -> Work:
    """Sums up the work in a conversation's entries; commits outside `cwd` do not count."""
    work = Work()
    results = {entry.tool_id: entry for entry in entries if entry.kind == "tool_result" and entry.tool_id}
    tasks: dict[str, tuple[str, tool_calls.Progress, str]] = {}
    todo: list[tuple[str, tool_calls.Progress, str]] = []
    for entry in entries:
        if entry.kind != "tool_call":
            continue
        work.calls += 1
        done = tool_calls.read_deed(entry.tool, entry.text)
        answer = results.get(entry.tool_id)
        if answer is None or done is None:
            continue
        how = tool_calls.classify_result(answer.text)
        if done.kind == "look":
            if how == "passed":
                work.read.setdefault(done.subject, []).append(entry.uuid)
        elif how == "rejected":
            work.rejections.append(entry.uuid)
            if done.kind == "change":
                work.turned_down.append(answer.ordinal)
        elif done.kind == "run":
            _record_run(work, entry, answer, done.subject, failed=how == "failed", cwd=cwd)
        elif how == "passed" and done.kind == "change":
            work.files.setdefault(done.subject, []).append(entry.uuid)
            work.changed_at = answer.ordinal
        elif how == "passed" and done.kind == "todo":
            todo = [(body, progress, entry.uuid) for body, progress in done.items]
        elif how == "passed" and done.kind == "task":
            tasks[tool_calls.read_task_number(answer.text) or str(len(tasks) + 1)] = (done.subject, "open", entry.uuid)
        elif how == "passed" and done.kind == "task_state" and done.subject in tasks:
            body, was, uuid = tasks[done.subject]
            tasks[done.subject] = (body, done.items[0][1] or was, uuid)
        elif how == "passed" and done.kind == "plan":
            work.plans.append((done.subject, entry.uuid))
    work.todo = [*todo, *tasks.values()]
    return work


def _record_run(work: Work, entry: Entry, answer: Entry, line: str, *, failed: bool, cwd: str) -> None:
    commands_run = split_commands(line)
    piped = "|" in line or "; " in line
    for command in commands_run:
        ran = work.ran.setdefault(command, Ran(command))
        # Which of several commands joined by && failed is unknown: the last is the likeliest.
        blamed = failed and command == commands_run[-1]
        bad = blamed or (piped and bool(find_check(command)) and bool(_SAYS_FAILED.search(_cut_output(answer.text))))
        ran.runs += 1
        ran.failures += bad
        ran.passed, ran.uuid, ran.at = not bad, entry.uuid, answer.ordinal
        if bad:
            ran.error, ran.error_uuid = find_error(answer.text), answer.uuid
    gone = _OTHER_DIRECTORY.search(line)
    if failed or (gone and not (gone[1] or "init").startswith(cwd or "/")):
        return
    if "git " in line:
        work.commits += _find_commits(entry, answer, line)
        for begun in _BRANCH.finditer(line):
            work.branches.setdefault(begun[1], entry.uuid)
    if "pull request" in _find_milestones(line) and (opened := _PULL.findall(answer.text)):
        title = _TITLE.search(line)
        named = (title[1] or title[2] or "").replace('\\"', '"') if title else ""
        work.pulls[f"#{opened[-1]} {squeeze('' if '$' in named else named)}".strip()] = entry.uuid


def _find_milestones(line: str) -> set[str]:
    """The milestones that the commands of a shell line reach."""
    return set(map(shell_commands.find_milestone, shell_commands.list_commands(line)))


def _find_commits(entry: Entry, answer: Entry, line: str) -> list[Commit]:
    """The commits that a call made: as git printed them or, if its output is missing, by their message."""
    subject, _, body = tool_calls.read_commit(entry.text, answer.text).partition("\n")
    made = [
        Commit(match[1], match[2], squeeze(match[3]), entry.uuid, answer.ordinal)
        for match in _COMMIT.finditer(answer.text)
    ]
    subject = squeeze(subject).rstrip(".")
    is_run = "--dry-run" not in line and "commit" in _find_milestones(line)
    if not made and subject and is_run and not (subject.startswith("-") or _NO_COMMIT.search(answer.text)):
        made = [Commit("", "", subject, entry.uuid, answer.ordinal)]
    # With several commits in one call the message that was read is of the one that has its subject.
    return [
        commit._replace(reason=_find_reason(body)) if commit.subject.endswith(subject) else commit for commit in made
    ]


def _find_reason(body: str) -> str:
    """The first sentence of a commit's message that says why, and not how it was before; "" for none."""
    paragraphs = [squeeze(part) for part in _PARAGRAPH.split(body)]
    stated = [
        text for paragraph in paragraphs for line in read_prose_lines(paragraph) for text in split_sentences(line)
    ]
    reasons = (
        text for text in stated if clauses.read_statement(text).reasons or sentence.has("sure_cause", "en", text)
    )
    return next((text for text in reasons if _BEFORE.isdisjoint(words_of(text))), "")


ItemKind = Literal[
    "goal", "word", "decision", "correction", "file", "command", "error", "commit", "reason", "pull", "branch", "plan",
    "plan_given", "transcript", "names", "continued", "open", "last",
]  # fmt: skip

#: Most characters of a harvested sentence.
MAX_SENTENCE_CHARACTERS = 170
#: Most characters of a goal.
MAX_GOAL_CHARACTERS = 220
#: Most characters of an entry of a list.
MAX_ENTRY_CHARACTERS = 90
#: Characters of a commit's reason.
MAX_REASON_CHARACTERS = 240
#: Fewest content words of a self-contained sentence.
MIN_CLEAR_WORDS = 4
#: Most words by which a goal is compared.
MAX_SEARCH_WORDS = 24
#: Characters of the user's words that are searched for them.
MAX_SEARCHED_CHARACTERS = 600
#: A commit named in a prompt: a word for it, then a hash with letters and digits.
_NAMED_COMMIT = re.compile(
    r"\b(?:commits?|revert(?:ed|ing)?|cherry[- ]?pick(?:ed)?|rebased? (?:on|onto)|sha|git (?:show|revert|cherry-pick|reset"
    r"|diff))\b[\s:`'\"(]{1,3}(?:--?\w+ ){0,2}((?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40})\b"
)
#: A longer prompt is a paste, in which no commit is looked for.
MAX_TYPED_CHARACTERS = 700


class Stated(NamedTuple):
    """A statement that was chosen from a turn of the session."""

    ordinal: int
    text: str
    gate: str
    category: str
    authority: str
    confidence: float
    uuid: str


class Item(NamedTuple):
    """One item of a digest with its turn; `state` is how a command or an error ended, `amount` how often it
    occurred."""

    kind: ItemKind
    text: str
    uuid: str
    state: str = ""
    amount: int = 1


def list_goal_items(prompts: Sequence[Entry], title: str, answers: Sequence[Entry] = ()) -> list[Item]:
    """The goal of a session: the first meaningful prompt, a plan's heading, or the host's title; with its search words.

    What a prompt quotes, or a program printed, says nothing; where every prompt is such a paste the first answer does.
    """
    texts = [prompt.text for prompt in prompts]
    at, goal = _find_goal(texts, least=3)
    if not goal and not title:
        summed = find_last_item(answers[:1])
        goal = summed.text if summed else ""
    text, uuid = cut(squeeze(title or goal), MAX_GOAL_CHARACTERS), prompts[at].uuid if prompts else ""
    openings = [Item("goal", text, uuid)] if title or goal else []
    words: dict[str, str] = {}
    for number, prompt in enumerate(prompts):
        if number > at and len(words) >= MAX_SEARCH_WORDS:
            break
        plan, _ = tool_calls.parse_plan_prompt(prompt.text)
        for word in content_words((plan or prompt.text)[:MAX_SEARCHED_CHARACTERS]):
            if len(word) > 2 and not word.isdigit():
                words.setdefault(stem(word), prompt.uuid)
    return [*openings, *(Item("word", word, uuid) for word, uuid in list(words.items())[:MAX_SEARCH_WORDS])]


def find_goal(prompts: Sequence[str]) -> str:
    """Returns the first meaningful text of some prompts on one line; "" if there is none."""
    return squeeze(_find_goal(prompts, least=1)[1])


def _find_goal(prompts: Sequence[str], *, least: int) -> tuple[int, str]:
    """The first prompt with a line of at least `least` content words, and its text; else the first with any, or ""."""
    first = 0, ""
    for number, prompt in enumerate(prompts):
        plan, _ = tool_calls.parse_plan_prompt(prompt)
        rows = read_prose_lines(plan[:4000]) if plan else _read_typed_rows(prompt)
        whole = " ".join(rows)
        if not plan and all(word.isdigit() or word in sentence.DIALOGUE for word in content_words(whole)):
            continue
        if rows and (plan or len(content_words(rows[0])) >= least):
            return number, rows[0]
        if len(content_words(whole)) >= 5:
            return number, " ".join(rows[:3])
        first = first if first[1] else (number, whole)
    return first


def _read_typed_rows(prompt: str) -> list[str]:
    """The lines of a prompt without quotations and program output."""
    rows = read_prose_lines(quotations.blank_quotations(prompt)[:4000])
    return [row for row in rows if parse(row).kind != "printed"]


def list_decision_items(stated: Sequence[Stated], goal: str) -> list[Item]:
    """Corrections and decisions, the user's and the surest first, each once, and without the goal itself."""
    item_of: dict[str, Item] = {}
    for statement in sorted(stated, key=lambda each: (each.authority != "user", -each.confidence, each.ordinal)):
        text = squeeze(statement.text)
        corrects = statement.gate == "correction" and statement.authority == "user"
        decides = statement.category in ("decision", "constraint", "convention", "preference")
        if (corrects or decides) and text[:MAX_ENTRY_CHARACTERS] not in goal:
            item_of.setdefault(statement.text, Item("correction" if corrects else "decision", text, statement.uuid))
    return list(item_of.values())


def list_done_items(work: Work, cwd: str) -> list[Item]:
    items: list[Item] = []
    root = cwd.rstrip("/") + "/"
    for path, uuids in sorted(work.files.items(), key=lambda item: -len(item[1])):
        short = path.removeprefix(root) if cwd else path
        items.append(Item("file", cut(short, 200), uuids[-1], amount=len(uuids)))
    notable = [ran for ran in work.ran.values() if is_notable(ran)]
    for ran in sorted(notable, key=lambda line: (line.state == "passed", line.at)):
        items.append(Item("command", ran.command, ran.uuid, ran.state, ran.failures or ran.runs))
        if ran.error:
            text = f"{find_check(ran.command) or ran.command}: {ran.error}"
            items.append(Item("error", text, ran.error_uuid, ran.state))
    commits = [(f"{each.hash} {cut(each.subject, MAX_ENTRY_CHARACTERS)}", each.uuid) for each in work.commits]
    items += [Item("commit", text, uuid) for text, uuid in commits]
    reasoned = [each for each in work.commits if each.reason]
    reasons = [(f"{each.subject}: {cut(each.reason, MAX_REASON_CHARACTERS)}", each.uuid) for each in reasoned]
    items += [Item("reason", text, uuid) for text, uuid in reasons]
    items += [Item("pull", cut(pull, MAX_ENTRY_CHARACTERS), uuid) for pull, uuid in work.pulls.items()]
    begun = {**work.branches, **{commit.branch: commit.uuid for commit in work.commits if commit.branch}}
    items += [Item("branch", name, uuid) for name, uuid in begun.items()]
    items += [Item("plan", cut(squeeze(plan), 400), uuid) for plan, uuid in work.plans]
    return items


def list_reference_items(entries: Sequence[Entry], prompts: Sequence[Entry]) -> list[Item]:
    """What the session refers to: a plan, a transcript, a commit, an earlier conversation."""
    items: list[Item] = []
    for prompt in prompts:
        plan, transcript = tool_calls.parse_plan_prompt(prompt.text)
        if plan:
            items.append(Item("plan_given", cut(squeeze(plan), 400), prompt.uuid))
        if transcript:
            items.append(Item("transcript", transcript, prompt.uuid))
        if len(prompt.text) <= MAX_TYPED_CHARACTERS:
            items += [Item("names", name[1], prompt.uuid) for name in _NAMED_COMMIT.finditer(prompt.text)]
            if all(sentence.has(name, "en", prompt.text) for name in ("earlier", "first_person")):
                items.append(Item("continued", cut(squeeze(prompt.text), MAX_SENTENCE_CHARACTERS), prompt.uuid))
    first = next((entry for entry in entries if entry.kind in ("user", "summary", "assistant")), None)
    if first is not None and first.kind == "summary" and tool_calls.is_continued(first.text):
        items.append(Item("continued", "a summary of an earlier conversation", first.uuid))
    return list(dict.fromkeys(items))


def list_open_items(
    work: Work, prompts: Sequence[Entry], answers: Sequence[Entry], *, is_over: bool = False
) -> list[Item]:
    """To-dos of the last list, what the last message leaves for later, its question, a prompt without an answer.

    Once a session is over, what was changed behind its last prompt has answered that.
    """
    items = [Item("open", cut(squeeze(body), MAX_ENTRY_CHARACTERS), uuid) for body, uuid in work.open]
    if prompts and (not answers or answers[-1].ordinal < prompts[-1].ordinal):
        if is_over and work.changed_at > prompts[-1].ordinal:
            return items
        unanswered = f"asked and not answered: {cut(squeeze(prompts[-1].text), MAX_ENTRY_CHARACTERS)}"
        return [*items, Item("open", unanswered, prompts[-1].uuid)]
    if answers:
        sentences = _split_prose(answers[-1].text)
        left = [line for line in sentences if _leaves_work(line)]
        questions = [line for line in sentences[-2:] if sentence.ends_with_question(line)]
        items += [
            Item("open", cut(line, MAX_SENTENCE_CHARACTERS), answers[-1].uuid) for line in [*left[:2], *questions[-1:]]
        ]
    return items


def _leaves_work(line: str) -> bool:
    """Whether a line says that something is left to do; "not yet known: ..." names a case, and how something behaves in
    it."""
    if sentence.ends_with_question(line) or (":" in line and sentence.opens("moment", "en", line)):
        return False
    is_later = parse(line, "assistant").kind == "narrates" and sentence.has("later", "en", line)
    return is_later or sentence.has("left", "en", line) or _NOT_YET.search(line) is not None


#: "Not handled in old exports yet".
_NOT_YET = re.compile(r"(?:\bnot|n['’]t)(?: [\w-]+){1,4} yet\b", re.IGNORECASE)


def find_last_item(answers: Sequence[Entry]) -> Item | None:
    """The first self-contained sentence of the last message, else its last sentence."""
    for answer in reversed(answers[-3:]):
        sentences = [line for line in _split_prose(answer.text) if not sentence.ends_with_question(line)]
        lasting = [line for line in sentences if not (sentence.is_passing(line, "assistant") or line.endswith(":"))]
        clear = [line for line in lasting if len(content_words(line)) >= MIN_CLEAR_WORDS]
        complete = [line for line in clear if line.endswith((".", "!")) and line[:1].isalpha()]
        if sentences:
            return Item("last", cut((complete or clear or sentences[-1:])[0], MAX_SENTENCE_CHARACTERS), answer.uuid)
    return None


def _split_prose(body: str) -> list[str]:
    return [squeeze(line.replace("**", "")) for row in read_prose_lines(body[-6000:]) for line in split_sentences(row)]
