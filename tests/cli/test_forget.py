"""The verbs that take something out, as they are typed: said and asked first, at 80 columns, and no terminal, no purge."""

from __future__ import annotations

import pytest
from machine import Machine
from terminal import Terminal

SAID = "I prefer pathlib, and the vault opens with Zanzibar quokka 77."


def typed(machine: Machine, *words: str, answer: str = "", asked: str = "[y/N]", code: int = 0) -> str:
    """What a command prints whose terminal answers its question."""
    terminal = Terminal(*words, cwd=machine.project, environment=machine.environment())
    if answer:
        terminal.sees(asked)
        terminal.press(answer)
    assert terminal.ends() == code, terminal.said
    return terminal.said


@pytest.fixture
def filled(machine: Machine) -> Machine:
    machine.start()
    machine.transcript(machine.line("user", SAID, uuid="u-said"), machine.line("assistant", "It is done."))
    machine.sync()
    return machine


def test_a_purge_says_what_it_will_remove_and_asks(filled: Machine) -> None:
    refused = typed(filled, "forget", "--purge", "zanzibar quokka", answer="n\n", code=1)
    assert "to be purged: this text wherever it occurs" in refused and "1  turns\n" in refused.replace("\r", "")
    assert "the assistant's own files also contain it" in refused and "s1.jsonl, line 1" in refused
    assert "until you run `csmd forget --lift`" in refused
    assert "[purged]" not in str(filled.call("csm_memory_search", query="pathlib"))
    done = typed(filled, "forget", "--purge", "zanzibar quokka", answer="y\n")
    assert "csmd's files no longer contain it" in done and "these words are stored as [purged]" in done
    assert "[purged]" in str(filled.call("csm_memory_search", query="pathlib"))
    for part in ("zanzibar", "quokk", "m0123456789"):
        nothing = typed(filled, "forget", "--yes", "--lift", part, code=1)
        assert nothing.startswith("nothing was lifted: this text wherever it occurs was not purged\n")
        assert "by the same words, whole and in order" in nothing
    assert "may be stored again" in typed(filled, "forget", "--yes", "--lift", "zanzibar quokka")
    assert filled.call("csm_privacy_lift", what="zanzibar quokka", by_person=True)["lifted"] == 0


def test_what_is_forgotten_is_said_with_its_place_and_a_purge_with_what_it_reaches_elsewhere(filled: Machine) -> None:
    said, other = "The deploys of this service go through Argo, never by hand.", filled.home / "quay"
    other.mkdir()
    here, there = (
        filled.call("csm_memory_save", text=said, project=str(place), by_person=True)["id"]
        for place in (filled.project, other)
    )
    filled.work("csm_backup_make")
    asked = typed(filled, "forget", "--purge", here, answer="n\n", code=1)
    assert "in every project where it is stored:" in asked
    assert f"1 memory in {filled.project.name}" in asked and "1 memory in quay" in asked
    assert "backups to be deleted: 1 copy of the database" in asked
    assert f"Permanently forget: {said}?" in " ".join(typed(filled, "forget", here, answer="n\n", code=1).split())
    done = typed(filled, "forget", here, "--yes")

    assert done == (
        f"forgotten: {said}\nWill not be relearned in {filled.project.name} unless you say it again\nMemories with the same sentence that stay:\n"
        f"  {there}  in quay\n"
    )


def test_a_text_can_be_typed_where_no_shell_remembers_it(filled: Machine) -> None:
    done = typed(filled, "forget", "--purge", "--yes", "-", answer="Zanzibar Quokka\n", asked="what:")
    assert "no longer contain it" in done and "Zanzibar" not in done


def test_what_is_left_is_named_and_told_by_the_exit_code(filled: Machine) -> None:
    filled.paths.install_record.write_text('{"zanzibar quokka": 1}')
    done = typed(filled, "forget", "--purge", "--yes", "zanzibar quokka", code=1)
    assert f"still in: {filled.paths.install_record}, 1 time (csmd needs it" in done


def test_what_cannot_be_done_is_explained_and_a_project_is_named_by_its_directory(filled: Machine) -> None:
    for words, says, code in (
        (["forget", "--purge", "--dry-run", "abc"], "fewer than 4 letters", 1),
        (["forget", "--dry-run", "u-said"], "go with --purge", 2),
    ):
        done = filled.run(*words)
        assert (done.returncode, done.stdout) == (code, "") and says in done.stderr
    assert f"the project {filled.project}" in filled.csmd("forget", "--purge", "--dry-run", ".")
    for there in (".", filled.project.name):
        assert f"the project {filled.project}" in filled.csmd(
            "forget", "--purge", "--dry-run", "--as", "project", there
        )
    none = filled.run("forget", "--purge", "--dry-run", "--as", "project", "devenv/cli")
    assert (none.returncode, none.stdout) == (1, "") and "neither a directory nor" in none.stderr


def test_who_has_no_terminal_is_told_that_nobody_is_told_before_the_user_accepts_it(machine: Machine) -> None:
    machine.start()
    waits = "not shown to sessions until you accept it"
    assert waits in " ".join(machine.csmd("remember", "The relay listens on port 7001.").split())
    assert "port 7001" not in machine.csmd("brief")
    shown = typed(machine, "remember", "The relay listens on port 7001.")
    assert waits not in " ".join(shown.split())
    assert waits not in " ".join(typed(machine, "remember", "The spool is on the second disk.").split())


def test_a_question_is_kept_as_a_fact_only_when_a_person_says_so(machine: Machine) -> None:
    machine.start()
    question, texts = (
        "What database do we use?",
        lambda: [r["text"] for r in machine.call("csm_memory_list")["memories"]],
    )
    refused = typed(machine, "remember", question, answer="n\n", code=1)
    assert "This is a question. Save it as a fact? [y/N]" in refused and texts() == []
    assert "remembered as m" in typed(machine, "remember", question, answer="y\n")
    assert "[y/N]" not in typed(machine, "remember", "--yes", "Who owns billing?")
    assert "[y/N]" not in typed(machine, "remember", "Which linter? We use ruff.")
    shown = machine.csmd("remember", "Where do the logs go?")
    ident = shown.removeprefix("remembered as ").split(":")[0]
    assert f"Saved a question as a fact. Delete: csmd forget {ident}" in shown
    assert "a question" not in machine.csmd("remember", "The logs go to disk.")
    assert len(texts()) == 5


def test_remember_refuses_a_secret_and_says_why_and_says_that_csmd_is_paused(machine: Machine) -> None:
    machine.start()
    shown = typed(machine, "remember", "the staging password is hunter2", code=1)
    assert "the text contains a secret (" in shown and "write where the secret is" in " ".join(shown.split())
    assert "hunter2" not in shown.removeprefix("the staging password is hunter2")
    machine.csmd("pause")
    shown = typed(machine, "remember", "The worker is called heron.")
    assert "saved although csmd is paused, because you typed it" in shown


def test_what_a_person_remembers_is_said_to_be_shown_at_starts_or_with_prompts_only(machine: Machine) -> None:
    machine.start()
    lasting = typed(machine, "remember", "Never restart the mail gateway by hand.")
    assert "shown at every session's start (said for always)" in " ".join(lasting.split())
    liking = " ".join(typed(machine, "remember", "I like mint in the lemonade.").split())
    assert "not shown at a session's start (" in liking and "; when a prompt matches, " in liking
    assert "session's start" not in machine.csmd("remember", "The warehouse scanner runs on batteries.")
