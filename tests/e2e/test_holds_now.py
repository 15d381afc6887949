"""What holds now arrives where it is needed, on the real client: at a task that does not ask for the past.

One session decides something, a session in another project follows, a later one changes the decision in passing. Then
an afternoon of other work (more than a hundred imported sessions) fills the brief at a session's start with other
things; where something has to come at the prompt, the test makes sure first that the brief does not tell it. The
sessions follow each other within seconds; what is newer is decided by their order.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from bench import bench_changed
from e2e import client, scripted_api
from e2e.hosts import claude_code
from e2e.screen import converse

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.client import Client
    from e2e.conftest import Csmd, Sandbox

pytestmark = pytest.mark.e2e

#: 2.0 leaves out of a resumed conversation what hooks added to it.
NEW, FORGETFUL = claude_code.VERSIONS
#: The client compacts when a message was made from more tokens than this.
COMPACTING = ("--model", "claude-sonnet-4-5", "--autocompact", "100000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A decision, what another project does instead, the later change, a task that depends on it, and a second one."""

    name: str
    decided: str
    elsewhere: str
    changed: str
    task: str
    goes_on: str
    old: str
    """Words that only the decision has, as `foreign` those of the other project and `new` those of the change."""
    foreign: str
    new: str


POSTAGE = Changed(
    name="postage",
    decided="Start on the postage module. We round parcel weights up to the next 500 grams, the carrier bills that way.",
    elsewhere="In this shop parcel weights are rounded up to full kilograms, please change the cart accordingly.",
    changed="The footer of the label has a typo, 'Adress'. And parcel weights go up to the next 250 grams, new tariff.",
    task="Accounting complains: on invoice 4471 the carrier charged less per light parcel than we computed, always by "
    "one step. Please find the bug in the postage.",
    goes_on="Express parcels look too expensive as well, the same way. Please check how their weight is computed.",
    old="500 grams",
    foreign="full kilograms",
    new="250 grams",
)
LOGIN = Changed(
    name="login",
    decided="Write the login page. A login session ends after 40 minutes without a click, the auditor wants that.",
    elsewhere="The kiosk keeps its login session for a whole shift, please set that up.",
    changed="Tests of the avatar upload are red, have a look. Login sessions end after 90 minutes, the nurses protested.",
    task="Ticket 881: a nurse filled in a long form, went on her round for an hour, came back and was thrown out to the "
    "login. Is that a bug? Please check.",
    goes_on="And on the tablet it seems to happen to her much earlier, check the login session there.",
    old="40 minutes",
    foreign="a whole shift",
    new="90 minutes",
)
BOOKING = Changed(
    name="booking",
    decided="Build the cancellation of bookings. Guests may cancel free of charge until two days before they arrive.",
    elsewhere="Calling off a rental car is free until the hour of its pickup, say so on the page.",
    changed="The map on the start page jumps while it loads, can you fix that? Oh, and guests cancel for free until "
    "five days before arrival now, the hotels insisted.",
    task="A guest wrote to support: she called off her stay three days ahead and had to pay the first night. She says "
    "that we promised otherwise. Please look into it.",
    goes_on="Another guest was charged for a stay that she called off a week ahead. Is that the same mistake?",
    old="two days before",
    foreign="hour of its pickup",
    new="five days before",
)
CASES = (POSTAGE, LOGIN, BOOKING)

#: So many sessions in a row are asked; recall has 0.18 s, the hook's own start included.
PATIENT = 4
#: Said two months ago.
CONSTRAINT = "the importer reads line by line, what the partners send has up to 6 GB at night"
ONLY_THERE = "6 GB at night"
FEATURE = "Write the importer for the stock lists of the new partner, with a command and a first test."
GOES_ON = "The importer needs a sample file for its tests, write a script that makes one."


def live(claude: Client, csmd: Csmd) -> None:
    """Each case's sessions one and two in the project, one in another project between them, then all the others."""
    csmd("install", "--json")
    if "CSMD_TEST_MODEL" in os.environ:
        csmd("model", "add", os.environ["CSMD_TEST_MODEL"])
    elsewhere = claude.sandbox.path / "elsewhere"
    elsewhere.mkdir()
    claude_code.trust(claude.sandbox.home, elsewhere)
    for case in CASES:
        converse(claude, case.decided, "Started; the first tests pass.")
        claude.start_directory = elsewhere
        converse(claude, case.elsewhere, "Changed.")
        claude.start_directory = None
        converse(claude, case.changed, "Both are done.")
    csmd("sync", "--json")
    csmd("import", str(write_others(claude.sandbox)), "--json")
    brief = csmd("brief", "--project", str(claude.sandbox.project), "--json")["text"]
    assert brief, "the afternoon left nothing to tell"
    assert ONLY_THERE not in brief, f"a session's start tells it; the afternoon has to be longer: {brief}"


def told_at_the_prompt(
    claude: Client, prompt: str, *replies: Any, options: tuple[str, ...] = (), requests: int = 1
) -> tuple[client.Finished, str]:
    """A new session's run and what the model saw last; a hook that finds the machine busy is silent, and asked again."""
    for _ in range(PATIENT):
        run = claude.run(prompt, *replies, options=options)
        seen = seen_at_the_end(run, claude, requests)
        if added_to_prompts(scripted_api.seen_by_model(run.main[0])):
            break
    return run, seen


def write_others(sandbox: Sandbox) -> Path:
    """Transcripts of other work in the project, newer than everything that was said before, and of one old session."""
    rows = [row for row in bench_changed.read("changed_facts.jsonl") if not row["cwd"].endswith("/parcelhub")]
    now = datetime.now(UTC)
    root = sandbox.path / "others" / "projects"
    folder = root / re.sub(r"\W", "-", str(sandbox.project))
    folder.mkdir(parents=True)
    turns = [{"role": "user", "text": CONSTRAINT}, {"role": "assistant", "text": "Understood, a line at a time then."}]
    write_session(folder, sandbox.project, turns, now - timedelta(days=60))
    afternoon = [
        *bench_changed.read("ordinary_sessions.jsonl"),
        *(session for row in rows for session in row["sessions"]),
    ]
    for number, session in enumerate(afternoon):
        write_session(folder, sandbox.project, session["turns"], now + timedelta(milliseconds=10 * number))
    return root


def write_session(folder: Path, project: Path, turns: list[dict[str, str]], at: datetime) -> None:
    """The transcript of one session, a millisecond a turn."""
    name, parent, lines = str(uuid.uuid4()), None, []
    for turn in turns:
        ident = str(uuid.uuid4())
        line = bench_changed.transcript_line(turn, ident, parent, str(project), name, at)
        lines.append(json.dumps({**line, "timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"}))
        parent, at = ident, at + timedelta(milliseconds=1)
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def seen_at_the_end(run: client.Finished, claude: Client, requests: int = 1) -> str:
    """What the model saw in the last request of a run that went well."""
    return scripted_api.seen_by_model(claude_code.in_order(run, requests, claude.sandbox.home).main[-1])


def added_to_prompts(seen: str) -> list[str]:
    """What csmd added to the prompts of a conversation."""
    return re.findall(r"<csmd-recall\b.*?</csmd-recall>", seen, re.DOTALL)


def fences(seen: str) -> list[str]:
    """Everything that csmd added to a conversation."""
    return re.findall(r"<csmd-[a-z]+ .*?</csmd-[a-z]+>", seen, re.DOTALL)


def assert_no_note_twice(seen: str) -> None:
    """No line that csmd told stands in what the model sees a second time."""
    notes = [line for fence in fences(seen) for line in fence.splitlines() if line.startswith("- ")]
    assert notes, seen
    assert sorted(set(notes)) == sorted(notes), "a note is told twice"


def assert_holds_now(case: Changed, seen: str) -> None:
    """The change is told once, the decision before it at most as that, the other project's never."""
    notes = [note for fence in fences(seen) for note in bench_changed.notes_of(fence)]
    assert sum(case.new in note for note in notes) == 1, f"not told once: {notes!r}"
    assert not any(case.old in bench_changed.without_before(note) for note in notes), notes
    assert case.foreign not in seen, notes


def is_busy(csmd: Csmd, seen: str, prompt: str, words: str) -> bool:
    """Whether every hook found the machine too busy to answer; somebody with patience is told the words even then."""
    if added_to_prompts(seen):
        return False
    # What stands just at the floor of relevance is told or not; that it is known is asked of a search.
    hits = [hit["text"] for hit in csmd("search", words, "--json")["hits"]]
    assert words in "\n".join([csmd("recall", "--prompt", prompt, "--json")["text"], *hits])
    return True


@pytest.mark.timeout(800)  # a dozen conversations with the real client, each after the other
@pytest.mark.long
def test_what_holds_now_arrives_with_the_task_and_nothing_twice(claude: Client, csmd: Csmd) -> None:
    """One home for all of it: the afternoon's import takes longer than everything that is asked afterwards."""
    live(claude, csmd)
    for case in CASES:
        assert_a_bug_report_is_told_the_changed_decision_once(claude, csmd, case)
    assert_an_order_is_told_its_constraint_once_and_consent_nothing(claude, csmd)
    if claude.version == NEW:
        assert_nothing_is_told_twice_after_a_compaction(claude, csmd)


def assert_a_bug_report_is_told_the_changed_decision_once(claude: Client, csmd: Csmd, case: Changed) -> None:
    third, seen = told_at_the_prompt(claude, case.task, "I found it.")
    if is_busy(csmd, seen, case.task, case.new):
        return
    assert_holds_now(case, seen)
    assert ONLY_THERE not in "\n".join(added_to_prompts(seen)), "what was said of the importer does not bear on it"
    seen = seen_at_the_end(claude.run(case.goes_on, "Checked.", options=["--resume", third.session_id]), claude)
    if claude.version != FORGETFUL or case.new in seen:
        assert_holds_now(case, seen)
    if claude.version != FORGETFUL or fences(seen):
        assert_no_note_twice(seen)


def assert_an_order_is_told_its_constraint_once_and_consent_nothing(claude: Client, csmd: Csmd) -> None:
    third, first = told_at_the_prompt(claude, FEATURE, "Shall I begin with the command?")
    if is_busy(csmd, first, FEATURE, ONLY_THERE):
        return
    added = "\n".join(added_to_prompts(first))
    assert ONLY_THERE in added, f"not told at the prompt: {added!r}"
    assert first.count(ONLY_THERE) == 1, added_to_prompts(first)
    assert POSTAGE.new not in added and POSTAGE.old not in added, "how weights are rounded does not bear on it"
    resumed = ["--resume", third.session_id]
    consent = seen_at_the_end(claude.run("yes", "I began.", options=resumed), claude)
    assert added_to_prompts(consent) == ([] if claude.version == FORGETFUL else added_to_prompts(first))
    after = seen_at_the_end(claude.run(GOES_ON, "It is there.", options=resumed), claude)
    assert after.count(ONLY_THERE) == 1 or (after.count(ONLY_THERE), claude.version) == (0, FORGETFUL)
    if claude.version != FORGETFUL or fences(after):
        assert_no_note_twice(after)


def assert_nothing_is_told_twice_after_a_compaction(claude: Client, csmd: Csmd) -> None:
    command: dict[str, Any] = {"tool": "Bash", "input": {"command": "make check", "description": "Check"}}
    third, after = told_at_the_prompt(
        claude,
        FEATURE,
        {"text": "I will run the checks first.", **command},
        {"text": "Once more.", **command, "context": 195_000},
        f"<analysis>x</analysis>\n<summary>\nAsked: {FEATURE}\n</summary>",
        "It goes on.",
        options=COMPACTING,
        requests=4,
    )
    before = scripted_api.seen_by_model(third.main[0])
    if is_busy(csmd, before, FEATURE, ONLY_THERE):
        return
    assert before.count(ONLY_THERE) == 1, f"not told at the prompt: {added_to_prompts(before)}"
    assert after.count(ONLY_THERE) <= 1, after
    assert_no_note_twice(after)
    resumed = seen_at_the_end(claude.run(GOES_ON, "It is there.", options=["--resume", third.session_id]), claude)
    assert resumed.count(ONLY_THERE) <= 1, resumed
    assert_no_note_twice(resumed)
