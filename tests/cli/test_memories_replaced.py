"""`csmd supersede`: what superseded a memory is told, shown and taken back; not by who has no say in it."""

from __future__ import annotations

import re

from machine import Machine

OLD, NEW = "Use npm in the web client", "Use pnpm in the web client, not npm"


def test_what_superseded_a_memory_is_shown_and_taken_back_by_a_person_only(machine: Machine) -> None:
    machine.start()
    old, new = (machine.call("csm_memory_save", text=text, by_person=True)["id"] for text in (OLD, NEW))
    shown = machine.csmd("show", old, "--json")
    assert (shown["superseded_by"], shown["superseded"]["id"], shown["superseded"]["text"]) == (new, new, NEW)
    assert (shown["superseded"]["decided_by"], shown["changes"][0]["change"]) == ("rule", "superseded")
    told = " ".join(machine.csmd("show", old).split())
    assert re.search(rf"superseded by {new}: \d+ to \d+ %, says-instead[^,]* \(by rule\)", told), told
    assert OLD not in machine.csmd("brief", "--json")["text"].replace(NEW, "")
    refused = machine.run("supersede", old, "--undo")
    assert refused.returncode == 1 and "is the user's statement" in refused.stderr
    undone = machine.call("csm_memory_supersede", old=old, undo=True, by_person=True)
    assert (undone["undone"], undone["superseded_by"], undone["was_superseded_by"]) == (True, "", new)
    assert machine.csmd("show", old, "--json")["superseded"] == {}
    machine.call("csm_memory_supersede", old=new, new=old, by_person=True)
    third = machine.call("csm_memory_save", text="The web client has no lock file.")["id"]
    refused = machine.run("supersede", third, new)
    assert refused.returncode == 1 and f"{new} was itself replaced by {old}" in refused.stderr
    machine.call("csm_memory_supersede", old=new, undo=True, by_person=True)
    again = machine.call("csm_memory_supersede", old=old, new=new, by_person=True)
    assert again["superseded_by"] == new
    assert machine.csmd("show", old, "--json")["superseded"]["decided_by"] == "person"


def test_supersede_needs_the_memory_that_holds_or_an_undo(machine: Machine) -> None:
    assert machine.run("supersede", "m1").returncode == 2


def test_a_replacement_names_the_old_and_the_new_text(machine: Machine) -> None:
    machine.start()
    old, new = (
        machine.call("csm_memory_save", text=text, project=str(machine.project), by_person=True)["id"]
        for text in ("Invoices are printed on Mondays.", "The cellar floods in spring.")
    )
    machine.call("csm_memory_supersede", old=old, new=new, by_person=True)
    machine.call("csm_memory_supersede", old=old, undo=True, by_person=True)
    answer = machine.call("csm_memory_supersede", old=old, new=new, by_person=True)
    assert (answer["text"], answer["replacement"]) == (
        "Invoices are printed on Mondays.",
        "The cellar floods in spring.",
    )
