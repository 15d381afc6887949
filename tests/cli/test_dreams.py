"""`csmd dream` as people see it: what would be done, what was done, how it is taken back, at 80 columns; exit codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from machine import Machine
from rich.cells import cell_len
from terminal import Terminal

from csmd.cli import dreams, render
from csmd.store.sqlite import open_rows

ACTION: dict[str, Any] = {
    "phase": "consolidate", "do": "merge", "project": "/home/me/shop", "id": "m000000001a", "version": 3,
    "text": "The config key is database_url", "other": "m000000002b", "reason": "m000000001a says the same as m000000002b",
    "other_text": "the config key is database_url, not db_url, in every environment that the deployment reads its settings from",
    "evidence": ["m000000002b"], "confidence": 0.8, "confidence_was": 0.7, "tier": "durable", "tier_was": "daily",
}  # fmt: skip
PLAN: dict[str, Any] = {
    "verdict": "next dream after 2 more sessions and 19 h", "did": {"merge": 1, "raise": 1, "archive": 13}, "hidden": 2,
    "actions": [
        {**ACTION, "project": "", "do": "raise", "id": "", "text": "Tests run with `mise run test`, 41 of 43 times", "other": "",
         "other_text": "", "reason": "seen in 12 sessions", "confidence_was": None, "tier": "", "tier_was": ""},
        ACTION,
        *({**ACTION, "phase": "prune", "do": "archive", "other": "", "other_text": "", "confidence": None, "tier": "archive"},) * 13,
    ],
    "projects": [{"project": "/home/me/shop", "tiers": {"daily": 88, "durable": 320}, "duplicates": 12, "staleness": {"daily": 0.5}}],
    "files": [{"path": "projects/shop-0123ab.md", "do": "write", "reason": "2 lines gone, 1 line in other words"}, {"path": "user.md", "do": "begin", "reason": "0 lines"}],
}  # fmt: skip
DONE: dict[str, Any] = {
    "id": "d0123456789", "why": "by itself", "state": "done", "begun_at": "2026-05-04T07:00:00.000Z", "ended_at": "",
    "undone_at": "", "sessions": 7, "error": "", "did": {"merge": 3, "strengthen": 2, "page": 4},
}  # fmt: skip
SIDE: dict[str, Any] = {
    "text": ACTION["text"],
    "confidence": 0.7,
    "tier": "daily",
    "superseded_by": "",
    "sources": 1,
    "links": [],
}
DIFF: dict[str, Any] = {
    "dream": DONE, "hidden": 0,
    "did": [
        {"kind": "merge", "project": "shop", "reason": "says the same", "evidence": [], "at": "", "undone_at": "", "files": [],
         "purged": False,
         "touched": [{"item": "m000000001a", "before": SIDE, "kept": "its wording changed since",
                      "after": {**SIDE, "tier": "archive", "superseded_by": "m000000002b"}},
                     {"item": "m000000002b", "before": SIDE, "kept": "",
                      "after": {**SIDE, "text": "the config key is database_url", "confidence": 0.8, "sources": 2}}]},
        {"kind": "raise", "project": "shop", "reason": "", "evidence": [], "at": "", "undone_at": "", "files": [], "touched": [],
         "purged": True},
        {"kind": "page", "project": "", "reason": "a memory changed", "evidence": [], "at": "", "undone_at": "now", "touched": [],
         "purged": False,
         "files": [{"path": "memory/user.md", "kept": "", "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-Old line\n+New line <!-- m:m1 -->"}]},
    ],
}  # fmt: skip
STATUS: dict[str, Any] = {
    "due": False, "verdict": PLAN["verdict"], "running": None, "last": DONE,
    "latest": {**DONE, "id": "d9876543210", "state": "failed", "error": "the disk is full", "did": {}},
    "gates": [{"gate": "time", "open": False, "reason": "after 19 h"}, {"gate": "lock", "open": True, "reason": "free"}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("HOME", "/home/me")


@pytest.mark.parametrize(
    ("show", "value", "told"),
    [
        (dreams.show_status, STATUS, ["dream: next dream after 2 more sessions and 19 h", "time      shut  after 19 h", "failed: the disk is full",
                                     "done      d0123456789"]),
        (dreams.show_status, {**STATUS, "last": None, "latest": None, "running": {"id": "d1", "step": "consolidating"}},
         ["dream: under way: consolidating", "no dream has run yet"]),
        (dreams.show_plan, PLAN, ["everywhere", "    learn, 80 % sure", "~/shop",
                                 "408 memories: 88 daily, 320 durable; 12 duplicates; 11 % stale",
                                 "    merge m000000001a into m000000002b, daily -> durable, 70 % sure -> 80 %", "      stays: the config key",
                                 "15 changes would be made: 1 merged, 1 learnt, 13 archived; 2 not shown (--all)", "2 changes in projects",
                                 "files in memory/", "  write   projects/shop-0123ab.md\n          2 lines gone"]),
        (dreams.show_plan, {**PLAN, "actions": [], "did": {}, "projects": [], "hidden": 0}, ["no memory would change, 2 files would\n"]),
        (dreams.show_ran, {"id": "d0123456789", "done": DONE["did"], "changes": 9, "took_s": 1.21},
         ["dream d0123456789: 3 merged, 2 strengthened, 4 files written, 1.2 s", "Undo: csmd dream undo d0123456789"]),
        (dreams.show_ran, {"id": "d0123456789", "done": {}, "changes": 0, "took_s": 0.1}, ["Dream d0123456789: nothing to do."]),
        (dreams.show_history, {"dreams": [STATUS["latest"], DONE, {**DONE, "state": "undone"}, {**DONE, "did": {}}]},
         ["d9876543210  2026-05-04", "failed: the disk is full", "3 merged, 2 strengthened, 4 files", " undone\n",
          "nothing to do"]),
        (dreams.show_history, {"dreams": []}, ["no dream has run yet"]),
        (dreams.show_diff, DIFF, ["merged m000000001a: daily -> archive, by m000000002b", "not undone: its wording changed since",
                                 "with it m000000002b: 70 % sure -> 80 %, 1 -> 2 sources", "- The config", "+ the config",
                                 "learnt: deleted by a purge", "memory/user.md (undone)", "    +New line <!-- m:m1 -->"]),
        (dreams.show_diff, {"dream": DONE, "did": [], "hidden": 0}, ["it changed nothing, or its journal was deleted"]),
        (dreams.show_undoing, {"dreams": [{**DONE, "id": "d2"}, DONE]}, ["would be undone: d0123456789, with 1 newer dream"]),
        (dreams.show_undone, {"dreams": [DONE], "items": ["m1", "m2"], "files": ["memory/user.md"],
                             "kept": [{"item": "m3", "why": "it was forgotten or purged since"}]},
         ["restored: 2 memories and candidates and 1 file", "not restored: m3, it was forgotten or purged since"]),
    ],
)  # fmt: skip
def test_what_is_shown_fits_and_says_what_it_is_about(
    show: Callable[[Any], render.Screen], value: dict[str, Any], told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    render.show(show(value))
    said = capsys.readouterr().out
    for words in told:
        assert words in said, said
    assert all(cell_len(line) <= 80 and line == line.rstrip() for line in said.splitlines())


def test_it_is_refused_forced_shown_and_taken_back_by_the_command(machine: Machine) -> None:
    machine.conversation("s1")
    machine.start()
    machine.sync()
    refused = machine.run("dream", "run")
    assert refused.returncode == 1 and "no dream now; next dream after 4 more sessions" in refused.stderr
    assert "csmd dream run --force" in refused.stderr
    _double(machine)
    assert "1 merged" in machine.csmd("dream", "run", "--force")
    assert not machine.paths.dream_lock.exists()
    with_question = Terminal("dream", "undo", "last", cwd=machine.project, environment=machine.environment())
    with_question.sees("Undo it? [y/N]")
    with_question.press("y\n")
    with_question.sees("restored: ")
    assert with_question.ends() == 0
    assert [one["state"] for one in machine.call("csm_dream_history")["dreams"]] == ["undone"]
    status = machine.status()["dream"]
    assert status["running"] is None and status["latest"]["state"] == "undone" and not status["due"]


def _double(machine: Machine) -> None:
    """Two memories that say the same: as one hears them, the second would have confirmed the first."""
    said = "Releases are cut from main and tags are signed"
    for text in (said, "The worker pool has four threads on every host"):
        saved = machine.call("csm_memory_save", text=text, project=str(machine.project), by_person=True)
    with open_rows(machine.paths.database, readonly=False) as rows:
        rows.run("update memories set text = :text where id = :id", text=f"the {said.lower()}", id=saved["id"])
