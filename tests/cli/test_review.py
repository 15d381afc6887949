"""What waits for a person is answered in a terminal with one key each; without one it is listed, and nothing blocks."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from machine import CORRECTION, DECISION, PREFERENCE, Machine, temporary_directory
from rich.cells import cell_len
from terminal import Terminal

from csmd.cli import render
from csmd.cli.memories import show_memories
from csmd.cli.review import show_waiting
from csmd.knowledge import Candidate, Evidence
from csmd.store import candidates
from csmd.store.core import Store

NOW = "2026-05-04T08:00:00.000Z"
BELIEF = Candidate(
    id="cbe11ef0001", kind="belief", source="scan", project_seq=0, fingerprint="release", status="needs_review",
    text="A release is made in three steps: changelog, version, tag.", reason="seen in 4 of 4 releases",
    confidence=0.8, created_at=NOW, updated_at=NOW, contradicted=1,
    evidence=(Evidence(uuid="u0-s1", session_id="s1", at=NOW), Evidence(uuid="u2-s1", session_id="s1", at=NOW, against=True)),
)  # fmt: skip
DRIFT = replace(
    BELIEF, id="cdf00000002", kind="drift_warning", fingerprint="drift", contradicted=0, text="Builds fail more often. " * 9,
    confidence=0.7, evidence=(),
)  # fmt: skip
SAVED = "The integration tests need a running Postgres on port 5433."


@pytest.fixture(scope="module")
def seeded() -> Iterator[Machine]:
    """A conversation taken in, two candidates that wait, a memory that a model saved."""
    made = Machine(root=temporary_directory())
    made.home.mkdir(mode=0o700)
    store = Store(made.paths.database, now=NOW)
    store.write(lambda rows: [candidates.put_candidate(rows, one) for one in (BELIEF, DRIFT)])
    store.close()
    made.conversation()
    made.start()
    made.sync()
    made.call("csm_memory_save", text=SAVED, project=str(made.project))
    yield made
    made.end()


def terminal(machine: Machine, *words: str, editor: str = "true") -> Terminal:
    return Terminal(*words, cwd=machine.project, environment=machine.environment(EDITOR=editor, VISUAL=editor))


def typed(machine: Machine, *words: str, editor: str = "true") -> tuple[int, str]:
    """(exit code, output) of a command that somebody types in a terminal."""
    one = terminal(machine, *words, editor=editor)
    return one.ends(), one.said


def waiting(machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = machine.call("csm_review_list", project=str(machine.project))
    return found


def memories(machine: Machine) -> dict[str, Any]:
    return {row["text"]: row for row in machine.call("csm_memory_list", project=str(machine.project))["memories"]}


def fits(text: str) -> None:
    wide = [line for line in text.splitlines() if cell_len(line) > 80]
    assert not wide, "\n".join(wide)


def test_without_a_terminal_it_is_a_list_that_says_how_and_only_a_person_answers(seeded: Machine) -> None:
    listed = seeded.csmd("review")
    fits(listed)
    assert "3 items to review" in listed and "csmd review ID --keep" in " ".join(listed.split())
    assert [line.split()[0] for line in listed.splitlines() if line[:1] in "cm" and line[11:13] == "  "] == [
        BELIEF.id, DRIFT.id, memories(seeded)[SAVED]["id"],
    ]  # fmt: skip
    before = waiting(seeded)
    assert json.loads(seeded.run("review", "--json").stdout) == before
    done = seeded.run("review", BELIEF.id, "--keep")
    assert done.returncode == 1 and "only a person at a terminal" in done.stderr
    assert waiting(seeded) == before


def test_a_sitting_answers_with_one_key_each_and_takes_back(seeded: Machine) -> None:
    sitting = terminal(seeded, "review", editor="sed -i s/three/four/")
    sitting.press("x")  # means nothing, and counts though it is typed ahead
    assert "1 of 3" in sitting.sees("q quit")
    sitting.press("e")
    sitting.sees(f"reworded: {BELIEF.id}")
    assert "2 of 3" in sitting.sees("q quit")
    sitting.press("s\x1b[A\x1bOPu")  # no answer to a warning, an arrow, a function key; what is behind them counts
    assert "1 of 3" in sitting.sees("q quit")
    sitting.press("d")
    sitting.sees(f"dropped: {BELIEF.id}")
    sitting.sees("q quit")
    sitting.press("n")
    assert "3 of 3" in sitting.sees("q quit")
    sitting.press("y")
    sitting.sees("1 dropped")
    assert sitting.ends() == 0
    fits(sitting.said)
    assert [item["id"] for item in waiting(seeded)["items"]] == [DRIFT.id]
    found = memories(seeded)
    assert not any("steps" in text for text in found), "what was taken back has left nothing"
    assert (found[SAVED]["authority"], found[SAVED]["origin"]) == ("user", "stated")
    code, said = typed(seeded, "review", "--undo")
    assert code == 0 and "is no longer kept" in said
    assert memories(seeded)[SAVED]["origin"] == "model_saved"


def test_somebody_who_leaves_has_what_they_answered(seeded: Machine) -> None:
    first = waiting(seeded)["items"][0]["id"]
    sitting = terminal(seeded, "review")
    sitting.sees("q quit")
    sitting.press("k")
    sitting.sees("q quit")
    sitting.press("\x03")
    assert sitting.ends() == 130
    assert first not in [item["id"] for item in waiting(seeded)["items"]]
    assert typed(seeded, "review", "--undo")[0] == 0


def test_a_wording_comes_from_the_command_or_the_editor_and_is_taken_back(seeded: Machine) -> None:
    ident = memories(seeded)[DECISION.partition(". ")[2]]["id"]
    code, said = typed(seeded, "edit", ident, editor="sed -i s/LISTEN/Listen/")
    new = next(row for text, row in memories(seeded).items() if "Listen/NOTIFY" in text)
    assert code == 0 and f"Replaced {ident}" in " ".join(said.split())
    assert memories(seeded)[DECISION.partition(". ")[2]]["superseded_by"] == new["id"]
    assert "Nothing to do" in typed(seeded, "edit", new["id"])[1]
    for blank in ("", "  "):
        assert "TEXT is empty" in typed(seeded, "edit", new["id"], blank)[1]
    shown = seeded.csmd("show", ident)
    assert f"superseded by {new['id']}" in shown and "Changes" in shown
    fits(shown)
    assert typed(seeded, "review", "--undo")[0] == 0
    assert not memories(seeded)[DECISION.partition(". ")[2]]["superseded_by"]
    done = seeded.run("edit", ident, "Something else entirely is used here")
    assert done.returncode == 1 and "needs a person at a terminal" in done.stderr


def test_show_says_where_it_was_said_how_sure_it_is_and_when_it_fades(seeded: Machine) -> None:
    row = next(row for text, row in memories(seeded).items() if "database_url" in text)
    shown = seeded.csmd("show", row["id"][:6])
    fits(shown)
    told = " ".join(shown.split())
    assert "no, that's wrong: > the config key is database_url, not db_url" in told
    assert f"user: {PREFERENCE}" in told and "assistant: It is done." in told, "two turns on each side"
    assert "at every session's start" in told and "when a prompt matches, for good" in told
    value = json.loads(seeded.run("show", row["id"], "--json").stdout)
    assert sum(one["effect"] for one in value["sure"]["factors"]) == pytest.approx(value["sure"]["today"], abs=1e-3)
    assert len(value["sources"][0]["around"]["before"]) == 2 and value["sources"][0]["sentence"] in CORRECTION


def test_show_takes_turns_and_candidates_by_their_beginning(seeded: Machine) -> None:
    found = seeded.csmd("show", DRIFT.id[:4])
    fits(found)
    assert "drift warning, needs review" in found and f"csmd review {DRIFT.id} --keep" in found
    turn = seeded.csmd("show", "u2-s1")
    fits(turn)
    assert "Before it" in turn and "Memories from it" in turn
    done = seeded.run("show", "c99")
    assert done.returncode == 1 and "no memory, turn, session or receipt" in done.stderr


@pytest.mark.parametrize(("about", "names"), [("change", ["older:", "newer:"]), ("pair", ["1.", "2."])])
def test_of_what_asks_about_two_memories_both_are_listed(
    about: str, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["The queue runs on Redis.", "The queue was moved to Postgres."]
    item = {
        "id": "c0000000001", "about": about, "title": "replaced?", "confidence": 0.4, "reason": "the newer one may replace it",
        "text": "both in one line", "memories": [{"text": text} for text in texts],
    }  # fmt: skip
    render.show(show_waiting({"items": [item], "total": 1}))
    said = capsys.readouterr().out
    assert "both in one line" not in said
    assert [line[13:] for line in said.splitlines()[:2]] == [
        f"{name} {text}" for name, text in zip(names, texts, strict=True)
    ]


def test_of_a_gate_so_many_are_listed_and_never_is_one_alone_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "project": "/p", "gate": "epistemic", "authority": "user", "origin": "stated", "confidence": 0.8, "pinned": False,
        "confirmed_at": NOW, "times": 1, "attention": "WARM", "superseded_by": "", "category": "fact", "is_refuted": False, "is_edited": False,
    }  # fmt: skip
    rows = [{**row, "id": f"m{number}", "text": f"Fact {number} of the shop"} for number in range(4)]
    for most, left in ((1, 3), (2, 2), (3, 0), (4, 0)):
        render.show(show_memories(rows, per_gate=most))
        said = capsys.readouterr().out
        assert ("(--all)" in said) == bool(left) and (not left or f"4 memories; {left} not shown (--all)" in said), most


def test_the_list_is_bounded_filtered_and_says_what_is_left_out(seeded: Machine) -> None:
    short = seeded.csmd("memories", "--limit", "1")
    everything = seeded.csmd("memories", "--all")
    rows = seeded.csmd("memories", "--json")["memories"]
    beside = [number - 1 for number in Counter((row["project"], row["gate"]) for row in rows).values()]
    left = sum(number for number in beside if number > 1)  # a single one is never left out
    assert (f"; {left} not shown (--all)" in short) == bool(left) and "(--all)" not in everything
    assert sum(row["id"] in everything for row in rows) == len(rows)
    for most in ("1", "2", "5"):
        shown = seeded.csmd("memories", "--limit", most)
        same = seeded.csmd("memories", "--limit", most, "--json")["memories"]
        assert {row["id"] for row in same} == {row["id"] for row in rows if f"{row['id']}  " in shown}
    for words, wanted in (
        (["--gate", "correction"], lambda row: row["gate"] == "correction"),
        (["--origin", "model_saved", "--since", "1d"], lambda row: row["text"] == SAVED),
        (["--superseded"], lambda row: bool(row["superseded_by"])),
    ):
        found = {row["id"] for row in seeded.csmd("memories", *words, "--json")["memories"]}
        assert found == {row["id"] for row in rows if wanted(row)}, words
    assert seeded.run("memories", "--since", "someday").returncode == 1


def test_where_csmd_is_switched_off_brief_and_remember_say_so(seeded: Machine) -> None:
    mark = seeded.project / ".csmd-off"
    mark.touch()
    try:
        for words in (["brief"], ["brief", "--project", str(seeded.project)]):
            told = seeded.csmd(*words)
            fits(told)
            assert f"csmd is switched off there by {mark}" in told.replace("\n", " ") or str(mark) in told.replace(
                "\n", ""
            )
        code, said = typed(seeded, "remember", "The changelog is written before the tag.")
        assert code == 0 and "switched off" in said
        assert "switched off" not in seeded.run("brief", "--json").stdout
    finally:
        mark.unlink()
    assert "switched off" not in seeded.csmd("brief")


def test_what_goes_wrong_is_wrapped_for_people_and_one_line_for_programs(seeded: Machine) -> None:
    code, said = typed(seeded, "edit", "m000000", "Something that is longer than the rest of a line")
    fits(said)
    assert code == 1 and said.startswith("csmd: there is no memory 'm000000'")
    code, said = typed(seeded, "show", "zz" * 60)
    fits(said)
    assert code == 1 and len(said.splitlines()) > 2
    assert len(seeded.run("show", "zz" * 60).stderr.splitlines()) == 2


def test_a_screen_that_is_too_high_says_what_it_leaves_out(seeded: Machine) -> None:
    one = Terminal("status", "--watch", cwd=seeded.project, environment=seeded.environment(), lines=8)
    assert "more lines: enlarge the window to see them, or csmd status" in one.sees("csmd status")
    one.child.send_signal(signal.SIGINT)
    assert one.ends() == 0


def test_a_daemon_that_is_started_before_an_install_says_what_is_missing(seeded: Machine) -> None:
    assert "`csmd install`" in seeded.csmd("start")
