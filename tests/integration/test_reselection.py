"""The daemon chooses the memories of an older csmd anew, once, and undoing it gives every row back."""

from __future__ import annotations

import pytest
from machine import Machine
from reselection_home import age, killed, looked_at

from csmd.daemon.dreaming import AGAIN
from csmd.store import backup


@pytest.fixture
def aged(machine: Machine) -> Machine:
    """A home with sessions, whose memories are of an older csmd; its daemon has ended."""
    age(machine)
    return machine


@pytest.mark.invariant(
    "Memories of an older csmd are chosen anew once, keep their names where they are chosen still, and undo gives every row back"
)
def test_what_is_chosen_keeps_its_id_the_rest_is_archived_and_undo_gives_every_row_back(aged: Machine) -> None:
    was = looked_at(aged)
    daemon = aged.start()
    shown = aged.call("csm_distill_again", dry_run=True)
    assert shown["kept"] and shown["archived"] and shown["new"] and shown["reworded"], shown
    assert shown["needs_yes"] is False
    backups = len(backup.list_backups(aged.paths.database))
    done = aged.work("csm_distill_again", yes=False)
    assert {"reword", "choose", "archive"} <= done["done"].keys(), done
    assert len(backup.list_backups(aged.paths.database)) == backups + 1
    again = aged.call("csm_distill_again", dry_run=True)
    assert (again["reworded"], again["coming"], again["leaving"]) == ([], [], []), [
        aged.call("csm_memory_list")["memories"]
    ]
    undone = aged.work("csm_dream_undo", id=done["id"], dry_run=False)
    assert undone["kept"] == []
    assert aged.stop(daemon) == 0
    assert looked_at(aged) == was


@pytest.mark.invariant(
    "Memories of an older csmd are chosen anew once, keep their names where they are chosen still, and undo gives every row back"
)
@pytest.mark.long
def test_killed_in_the_middle_it_goes_on_in_its_own_journal(aged: Machine) -> None:
    was = looked_at(aged)
    daemon = aged.start()
    killed(aged, daemon, 3)
    looked_at(aged)
    daemon = aged.start()
    done = aged.work("csm_distill_again")
    (one,) = [dream for dream in aged.call("csm_dream_history")["dreams"] if dream["why"] == AGAIN]
    assert (one["id"], one["state"]) == (done["id"], "done")
    aged.work("csm_dream_undo", id=done["id"], dry_run=False)
    assert aged.stop(daemon) == 0
    assert looked_at(aged) == was
