"""Sessions are linked where one builds on the other; the self model counts how work ended, over a real store."""

from __future__ import annotations

import itertools
import json
import random
import re
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from csmd.errors import CsmdError
from csmd.extraction import digest, statements
from csmd.extraction.digest import OUTCOME_WORDS
from csmd.memory import self_model
from csmd.memory.self_model import DigestItem, Facts, StoredEnding, capabilities, drifts, endings, links
from csmd.store import (
    candidates,
    digests,
    events,
    project_merges,
    projects,
    purge,
    session_links,
    sessions,
    tampered_transcripts,
    tombstones,
    work_outcomes,
)
from csmd.store import turns as journal
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.values import Candidate, Event, Project, Turn


def facts(seq: int, day: int = 1, **known: object) -> Facts:
    """`known` are things by the plural of their kind, or other fields."""
    at = f"2026-03-{day:02d}T10:{seq:02d}:00.000Z"
    kinds = {
        "files": "file", "words": "word", "commits": "commit", "branches": "branch", "plans": "plan",
        "plan_given": "plan_given", "transcripts": "transcript", "names": "names",
    }  # fmt: skip
    things = {kinds[name]: known.pop(name) for name in list(known) if name in kinds}
    if "continued" in known:
        things["continued"] = {"goes on": known.pop("continued")}
    return Facts(seq=seq, id=f"s{seq}", started_at=at, last_at=at, day=day, things=things, **known)  # type: ignore[arg-type]


def told(later: Facts, *around: Facts) -> list[tuple[int, str]]:
    return [(link.from_seq, link.rule) for link in links(later, [*around, later])]


def test_each_rule_ties_what_it_should_and_nothing_else() -> None:
    plan = {"# Move the parser": "u1"}
    cases = {
        "same turns": (facts(1), facts(2, shares={1: "u1"})),
        "transcript": (facts(1), facts(2, transcripts={"s1": "u2"})),
        "plan": (facts(1, plans=plan), facts(2, plan_given=plan)),
        "commit": (facts(1, commits={"1a2b3c4": "u1"}), facts(2, names={"1a2b3c4d5e": "u2"})),
        "branch": (facts(1, branches={"fix/zone": "u1"}), facts(2, branches={"fix/zone": "u2"})),
        "said so": (facts(1, files={"a.py": "u1"}), facts(2, day=2, files={"a.py": "u2"}, continued="u3")),
        "error mended": (
            facts(1, errors={"tests: tz_name is not defined": ("failed", "u1")}),
            facts(2, errors={"tests: tz_name is not defined": ("mended", "u2")}),
        ),
        "same work": (
            facts(1, files={"a.py": "u1", "b.py": "u1"}, words={"zone": "u1", "parser": "u1", "exporter": "u1"}),
            facts(2, files={"a.py": "u2", "b.py": "u2"}, words={"zone": "u2", "parser": "u2", "exporter": "u2"}),
        ),
    }
    for rule, (one, later) in cases.items():
        assert told(later, one) == [(1, rule)], rule
        assert told(one, later) == [], rule
        assert all(link.evidence for link in links(later, [one, later])), rule
    assert {*cases, "unseen transcript", "unseen commit", "unseen conversation"} == set(self_model.RULES)


def test_what_everybody_touches_ties_nobody() -> None:
    both = {"files": {"a.py": "u"}, "words": {"zone": "u", "parser": "u"}}
    crowd = [facts(seq, **both) for seq in range(1, 12)]
    assert told(facts(20, **both), *crowd) == []
    assert told(facts(2, branches={"main": "u"}), facts(1, branches={"main": "u"})) == []
    assert (
        told(
            facts(2, errors={"lint: task failed": ("mended", "u")}),
            facts(1, errors={"lint: task failed": ("failed", "u")}),
        )
        == []
    )
    assert (
        told(
            facts(2, day=20, files={"a": "u", "b": "u"}, words={"zone": "u", "parser": "u"}),
            facts(1, files={"a": "u", "b": "u"}, words={"zone": "u", "parser": "u"}),
        )
        == []
    )


def test_what_no_captured_session_did_is_a_gap() -> None:
    assert told(facts(2, names={"1a2b3c4": "u"}), facts(1)) == [(0, "unseen commit")]
    assert told(facts(2, names={"1a2b3c4": "u"}, commits={"1a2b3c4": "u"}), facts(1)) == []
    assert told(facts(2, transcripts={"s9": "u"})) == [(0, "unseen transcript")]
    assert links(facts(2, transcripts={"s9": "u"}), [], captured=frozenset({"s9"})) == []
    assert told(facts(2, continued="u")) == [(0, "unseen conversation")]
    assert "not captured" in self_model.reason("unseen transcript", "s9")


def test_the_order_in_which_sessions_came_in_does_not_matter() -> None:
    both = {"files": {"a.py": "u", "b.py": "u"}, "words": {"zone": "u", "parser": "u", "exporter": "u"}}
    some = [facts(1, **both), facts(2, day=2, **both), facts(3, day=3, **both), facts(4, day=3, names={"1a2b3c4": "u"})]
    wanted = [links(one, some) for one in some]
    for order in permutations(some):
        assert [links(one, order) for one in some] == wanted


# --- Digests, links and the self model over a real store: replay and order change nothing, purge and merge are followed.


NOW = "2026-04-01T10:00:00.000Z"
MARK = "Zanzibar quokka"


def session(
    number: int, *, passes: bool = True, goal: str = "please fix the bug in the zone parser", path: str = "zone.py"
) -> list[Turn]:
    """A session of a day of its own: a prompt, an edit, a test run, an answer."""
    ident, day = f"s{number:02d}", f"2026-03-{number:02d}"
    given: list[tuple[str, str, str]] = [
        ("user", goal, ""),
        ("tool_call", json.dumps({"file_path": f"/p/alpha/{path}"}, separators=(",", ":")), "Edit"),
        ("tool_result", "The file has been updated", ""),
        ("tool_call", json.dumps({"command": "pytest -q"}, separators=(",", ":")), "Bash"),
        ("tool_result", "5 passed" if passes else "Exit code 1\nE   zone.py:9: NameError: tz_name is not defined", ""),
        ("assistant", "The parser in zone.py keeps the zone of every date now.", ""),
    ]
    return [
        Turn(
            uuid=f"{ident}-{at}", session_id=ident, kind=kind, text=body, at=f"{day}T10:{at:02d}:00.000Z",  # type: ignore[arg-type]
            cwd="/p/alpha", tool_name=tool, tool_id=f"{ident}-c{at - (kind == 'tool_result')}" if "tool" in kind else "",
            model="opus", version="2.1.0",
        )
        for at, (kind, body, tool) in enumerate(given)
    ]  # fmt: skip


def capture(store: Store, turns: list[Turn], project: str = "alpha") -> None:
    def write(rows: Rows) -> None:
        where = Project(key=project, root=f"/p/{project}", name=project, kind="path", place=f"/p/{project}")
        home = projects.ensure_with_directory(rows, where, now=NOW)
        for turn in turns:
            journal.add_turn(
                rows, turn, text_hash=tokens.keyed_hash(turn.text, store.hash_key), host="claude", project=home.seq,
                directory=home.directory, path=f"/t/{turn.session_id}.jsonl",
            )  # fmt: skip

    store.write(write)


def work_through(store: Store) -> int:
    """Distils, digests and compares all that is there; how many sessions were looked at."""
    for one in statements.behind(store):
        statements.distill(store, one, settled=True)
    steps = (lambda: digest.step(store) or self_model.step(store, now=NOW) for _ in itertools.count())
    return sum(itertools.takewhile(bool, (step() for step in steps)))


def known(store: Store) -> dict[str, Any]:
    """Everything that was made, without row keys."""

    def look(rows: Rows) -> dict[str, Any]:
        rows_of = dict(rows.all("select id, seq from sessions"))
        return {
            ident: (
                [(row.text, row.why, row.upto, digests.items(rows, row.seq)) for row in digests.of_session(rows, seq)],
                [link[1:] for link in session_links.links_of_session(rows, seq, projects=None)],
            )
            for ident, seq in sorted(rows_of.items())
        } | {
            "counted": work_outcomes.outcomes_counted(rows, projects=None),
            "continuity": work_outcomes.continuity(rows, projects=None),
            "waiting": [(one.text, one.status, one.evidence) for one in waiting(rows)],
        }

    return store.read(look)


def waiting(rows: Rows) -> list[Candidate]:
    return [one for one in candidates.waiting(rows, projects=None) if one.source == "selfmodel"]


HISTORY = [session(number, passes=number <= 12 or number == 17) for number in range(1, 21)]


def test_a_session_gets_its_digest_links_and_endings_and_looking_again_changes_nothing(store: Store) -> None:
    capture(store, session(1, goal=f"please fix the bug in the {MARK} parser of the exporter"))
    capture(store, session(2, goal=f"the {MARK} parser of the exporter is still slow"))
    assert work_through(store) > 0
    found = known(store)
    assert found["s02"][0][0][0].startswith(f"Goal: the {MARK} parser")
    (link,) = found["s02"][1]
    assert (link[0], link[1], link[2]) == ("s01", "s02", "same work")
    assert set(link[-1]) == {"s01-0", "s01-1", "s02-0", "s02-1"}
    assert found["continuity"][0] == ("model", "opus", "2026-03-01T10:00:00.000Z", "2026-03-02T10:05:00.000Z", 2)
    assert work_through(store) == 0
    capture(store, session(1, goal=f"please fix the bug in the {MARK} parser of the exporter"))
    assert work_through(store) == 0
    assert known(store) == found


@pytest.mark.invariant(
    "Digests, links and the self model do not depend on the order of sessions; a warning is rare by chance and orders nothing"
)
def test_the_order_in_which_sessions_are_captured_and_looked_at_does_not_matter(tmp_path: Path) -> None:
    made = []
    for number in range(3):
        opened = Store(tmp_path / f"{number}.db", now=NOW)
        order = list(HISTORY)
        random.Random(number).shuffle(order)
        for at, turns in enumerate(order):
            capture(opened, turns)
            if number and at % (7 * number) == 0:
                work_through(opened)
        work_through(opened)
        made.append(known(opened))
        opened.close()
    assert made[0] == made[1] == made[2]


def test_a_session_that_goes_on_is_digested_anew_and_one_that_ends_is_told_so(store: Store) -> None:
    turns = session(1)
    capture(store, turns[:3])
    work_through(store)
    assert [why for _, why, *_ in known(store)["s01"][0]] == ["settled"]
    capture(store, turns)
    work_through(store)
    ((body, why, upto, _),) = known(store)["s01"][0]
    assert ("checks passed" in body, why, upto) == (True, "settled", 6)
    event = Event(id="e1", host="claude", name="session_end", session_id="s01", at="2026-03-01T11:00:00.000Z")
    store.write(lambda rows: events.record(rows, event, text_hash="", payload_hash=""))
    work_through(store)
    assert [why for _, why, *_ in known(store)["s01"][0]] == ["end"]


def test_work_that_ends_worse_is_a_warning_until_it_ends_well_again(store: Store) -> None:
    for turns in HISTORY:
        capture(store, turns)
    work_through(store)
    (warning,) = [one for one in store.read(waiting) if one.fingerprint == "drift:tests"]
    assert (warning.kind, warning.status) == ("drift_warning", "needs_review")
    assert warning.text == "tests: 1 of the last 8 sessions ended well, 12 of 12 before 2026-03-13"
    assert {one.session_id for one in warning.evidence} == {f"s{at}" for at in (13, 14, 15, 16, 18, 19, 20)}
    for number in range(21, 29):
        capture(store, session(number))
    work_through(store)
    assert store.read(waiting) == []


@pytest.mark.invariant("What was made of a purged session or turn goes with it")
def test_purging_a_session_takes_its_digest_links_and_evidence(store: Store) -> None:
    for turns in HISTORY[:14]:
        capture(store, turns)
    capture(store, session(15, goal=f"fix the bug in the {MARK} exporter offset", path="quokka.py", passes=False))
    capture(store, session(16, goal=f"the {MARK} exporter offset has a bug", path="quokka.py"))
    work_through(store)
    assert known(store)["s16"][1]

    def forget(rows: Rows) -> None:
        purge.begin(rows, now=NOW)
        tombstones.purge_names(rows, "session", ["s15"], key=store.hash_key, now=NOW)

    store.write(forget)
    store.write(lambda rows: purge.apply_tombstones(rows, store.hash_key))
    work_through(store)
    found = known(store)
    assert (found["s15"], found["s16"][1]) == (([], []), [])
    assert "s15" not in {row[3] for row in found["counted"]}
    assert all(one.session_id != "s15" for warning in store.read(waiting) for one in warning.evidence)


def test_a_text_that_is_purged_is_in_no_digest(store: Store) -> None:
    capture(store, session(1, goal=f"fix the bug that the {MARK} parser has"))
    work_through(store)
    assert MARK in known(store)["s01"][0][0][0]
    store.write(lambda rows: tombstones.purge_text(rows, MARK, key=store.hash_key, now=NOW))
    store.write(lambda rows: purge.apply_tombstones(rows, store.hash_key))
    assert "quokka" not in str(known(store)).lower()
    work_through(store)
    found = known(store)
    assert "quokka" not in str(found).lower()
    assert found["s01"][0][0][0].startswith("Goal: ")


def test_links_follow_what_is_merged_and_split(store: Store) -> None:
    goal = "the exporter parser loses the zone offset"
    capture(store, session(1, goal=goal))
    capture(store, session(2, goal=goal), project="beta")
    work_through(store)
    assert known(store)["s02"][1] == []
    alone = known(store)
    found = dict(store.read(lambda rows: rows.all("select key, seq from projects")))
    one, other = int(found["alpha"]), int(found["beta"])
    store.write(lambda rows: project_merges.merge_projects(rows, other, one))
    work_through(store)
    assert [link[2] for link in known(store)["s02"][1]] == ["same work"]
    store.write(lambda rows: project_merges.split_projects(rows, one, other))
    work_through(store)
    assert known(store)["s02"][1] == []
    assert known(store)["s01"] == alone["s01"]


def test_a_transcript_that_a_tool_wrote_gives_no_digest(store: Store) -> None:
    capture(store, session(1))
    store.write(
        lambda rows: tampered_transcripts.note_tampered(
            rows,
            ["s01.jsonl"],
            at="2026-02-01T00:00:00.000Z",
            hashed=lambda name: tokens.keyed_hash(name, store.hash_key),
        )
    )
    work_through(store)
    assert known(store)["s01"] == ([], [])


def test_a_digest_can_be_made_before_a_session_is_settled(store: Store) -> None:
    capture(store, session(1))
    seq = store.read(lambda rows: sessions.by_id(rows, "s01")).seq  # type: ignore[union-attr]
    store.read(lambda rows: digest.digest_now(store, rows, seq))
    assert known(store)["s01"][0]
    work_through(store)
    assert len(known(store)["s01"][0]) == 1


def test_a_digest_asked_for_is_not_written_when_something_was_purged_meanwhile(store: Store) -> None:
    capture(store, session(1))
    seq = store.read(lambda rows: sessions.by_id(rows, "s01")).seq  # type: ignore[union-attr]

    def purged_meanwhile(rows: Rows) -> None:
        assert rows.value("select count(*) from turns")  # what is read from here on is as it is now
        store.write(lambda writing: tombstones.purge_text(writing, "some words", key=store.hash_key, now=NOW))
        digest.digest_now(store, rows, seq)

    with pytest.raises(CsmdError, match="purged meanwhile"):
        store.read(purged_meanwhile)
    assert known(store)["s01"][0] == []


# --- The self model counts how work ended; it warns where that got clearly worse, and seldom by chance.


@dataclass(frozen=True)
class Case:
    seen: tuple[tuple[str, str, str], ...]
    outcome: str
    wanted: dict[str, str]


CASES = (
    Case((("command", "uv run pytest -q", "mended"),), "checked", {"tests": "well"}),
    Case((("command", "pytest -k a", "failed"), ("command", "pytest", "passed")), "checked", {"tests": "well"}),
    Case((("command", "pytest", "failed"),), "failing", {"tests": "badly"}),
    Case((("command", "git rebase main", "failed"),), "unchecked", {"git": "badly"}),
    Case((("command", "git status", "passed"),), "answered", {}),
    Case((("file", "docs/usage.md", ""),), "rejected", {"documentation": "badly"}),
    Case((("file", "src/App.tsx", ""),), "committed", {"frontend": "well"}),
    Case((("file", "a.py", ""), ("word", "bug", "")), "corrected", {"debugging": "badly"}),
    Case((("word", "bug", ""),), "answered", {}),
    Case((("file", "db/migrations/2.sql", ""),), "unchecked", {"database": "undecided"}),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_was_done_and_how_it_ended_is_told_by_commands_files_and_the_goal(case: Case) -> None:
    seen = [DigestItem(kind, text, "u1", state) for kind, text, state in case.seen]
    assert {one.capability: one.outcome for one in endings(case.outcome, seen)} == case.wanted


def test_every_outcome_of_a_session_counts_in_one_way() -> None:
    assert set(self_model.ENDINGS) == set(OUTCOME_WORDS)


def ended(outcomes: str, *, name: str = "debugging", begin: int = 0) -> list[StoredEnding]:
    """`+` well, `-` badly, `?` undecided; one session each."""
    words = {"+": "well", "-": "badly", "?": "undecided"}
    return [
        StoredEnding(
            name, words[one], f"u{begin + at}", f"s{begin + at}", f"2026-03-01T{at // 60:02d}:{at % 60:02d}:00.000Z"
        )
        for at, one in enumerate(outcomes)
    ]


def test_a_confidence_is_a_share_of_decided_sessions_and_never_certain() -> None:
    (one,) = capabilities(ended("+" * 12 + "-" * 5 + "???"))
    assert (one.well, one.decided, one.sessions, one.confidence) == (12, 17, 20, 0.68)
    assert capabilities(ended("+"))[0].confidence < 1
    assert capabilities(ended("-"))[0].confidence > 0


def test_a_fork_does_not_count_twice_what_its_trunk_did() -> None:
    trunk = ended("++")
    assert capabilities([*trunk, *(one._replace(session_id="fork") for one in trunk)]) == capabilities(trunk)


def test_a_clear_fall_is_a_warning_and_a_bad_day_is_none() -> None:
    (drift,) = drifts(ended("+" * 14 + "+---+---"))
    assert (drift.recent_well, drift.recent, drift.earlier_well, drift.earlier) == (2, 8, 14, 14)
    assert len(drift.against) == 6
    assert drifts(ended("+" * 14 + "+++-+++-")) == []
    assert drifts(ended("+-" * 10)) == []
    assert drifts(ended("+" * 5 + "-" * 8)) == []


@pytest.mark.invariant(
    "Digests, links and the self model do not depend on the order of sessions; a warning is rare by chance and orders nothing"
)
def test_by_chance_alone_a_warning_is_rare() -> None:
    chance = random.Random(5)
    raised = sum(bool(drifts(ended("".join(chance.choices("+-", (3, 1), k=30))))) for _ in range(400))
    assert raised <= 400 * self_model.CHANCE


@pytest.mark.invariant(
    "Digests, links and the self model do not depend on the order of sessions; a warning is rare by chance and orders nothing"
)
def test_a_warning_says_what_was_seen_and_orders_nothing() -> None:
    text = self_model.describe_drift(drifts(ended("+" * 14 + "--------"))[0])
    assert text == "debugging: 0 of the last 8 sessions ended well, 14 of 14 before 2026-03-01"
    assert not re.search(r"\b(?:must|should|always|never|do not|stop|avoid)\b", text)
