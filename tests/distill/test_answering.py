"""What a user answers, corrects or adds to is put in front where the words before say it, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.distill import answering, extract, units
from csmd.text import content_words
from tests.distill.test_extract import turn

QUESTIONS = (
    "I looked at both. Before I begin:\n\n1. **Retention**: How long are the mails kept? A year?\n"
    "2. Which hosts may send?\n3. Should we sign them?\n"
)


def check(said: str, *, prompt: str, before: str, wanted: str = "") -> None:
    """What is told of a sentence of a prompt; itself where nothing is wanted."""
    assert answering.understood(said, said=said, prompt=prompt, before=before) == (wanted or said)


@pytest.mark.parametrize(
    ("said", "prompt", "wanted"),
    [
        ("we keep them for five years", "1. {}\n2. any", "Retention: we keep them for five years"),
        ("only the two relays in Oslo", "1. no\n2. {}\n3. yes", "Which hosts may send? only the two relays in Oslo"),
        ("only the two relays in Oslo", "1) no\n2) {}\n", "Which hosts may send? only the two relays in Oslo"),
        # A list of one's own, a number that nobody asked about, and one answer to several.
        ("only the two relays in Oslo", "my wishes are these:\n1. no\n2. {}", ""),
        ("only the two relays in Oslo", "1. no\n2. {}\n7. the last", ""),
        ("only the two relays in Oslo; and sign them with the new key", ("1. no\n2. only the two relays in Oslo\n"
         "3. and sign them with the new key"), ""),
        ("never commit generated files", "1. fix the parser\n2. {}", ""),
        # What is quoted, when it is one line that is short.
        ("the relays in Oslo", "> Which hosts may send?\n\n{}", "Which hosts may send? the relays in Oslo"),
        ("the relays in Oslo", "> Which hosts may send\n{}", "Which hosts may send: the relays in Oslo"),
        ("the relays in Oslo", "> It is long\n> Which hosts may send?\n{}", ""),
        ("the relays in Oslo", f"> {'Which hosts may send the mails ' * 4}?\n{{}}", ""),
    ],
)  # fmt: skip
def test_an_answer_is_told_with_what_was_asked(said: str, prompt: str, wanted: str) -> None:
    check(said, prompt=prompt.format(said), before=QUESTIONS, wanted=wanted)


def test_numbers_of_a_list_that_does_not_ask_are_no_questions() -> None:
    said = "only the two relays in Oslo"
    steps = "What I did:\n1. Read the settings\n2. Moved the relays. Right?\n"
    check(said, prompt=f"1. no\n2. {said}", before=steps)
    check(said, prompt=f"1. no\n2. {said}", before=QUESTIONS + "\nThe steps:\n" + steps)


@pytest.mark.parametrize(
    ("said", "before", "wanted"),
    [
        # The name that the message begins with.
        ("we have no mailbox anymore so this is obsolete", "The `mail show` command displays one mailbox.\n\nIt reads it.",
         "`mail show`: we have no mailbox anymore so this is obsolete"),
        ("it must also look at the archives", "Done.\n\n`Sweeper` reads all archives.\n\n- the archives of a year\n",
         "`Sweeper`: it must also look at the archives"),
        # What the one sentence that says the same word is about.
        ("not as a mail, but as a document of the folder", "`Sweeper` is done. The working documentation is at the wiki.",
         "The working documentation: not as a mail, but as a document of the folder"),
        ("add another option to leave it alone", ("All is green.\n\n1. Updated the warning in `hooks.py` to the new options\n"
         "2. Removed `Old`"), "the warning in `hooks.py`: add another option to leave it alone"),
        # Nothing in common, two names, a message of many things, a part of the text.
        ("it's far too small on that slide", "The `Sweeper` command reads the archive.", ""),
        ("it must also look at the archives", "`Sweeper` and `Reader` read the archives, and the archives are big.", ""),
        ("it must also look at the archives", "`Sweeper` reads all archives. The archives.\n\n" + "And more. " * 1_000, ""),
        ("it must also look at the archives", "The files are in the archives.", ""),
        # A sentence that names what it is about.
        ("the archives must be read at night", "The `Sweeper` command reads the archives.", ""),
    ],
)  # fmt: skip
def test_a_correction_is_told_with_the_one_thing_it_can_mean(said: str, before: str, wanted: str) -> None:
    check(said, prompt=said, before=before, wanted=wanted)


def test_what_is_said_of_a_paragraph_of_the_same_prompt_is_told_with_its_subject() -> None:
    paragraph = "The suffix approach solves this: the second session would create a branch."
    said = "this is not quite true, it only creates a branch when files change"
    check(said, prompt=f"{paragraph}\n\n{said}", before="", wanted=f"The suffix approach: {said}")
    check("we only create branches when files change",
          prompt=f"{paragraph}\n\nwe only create branches when files change", before="")  # fmt: skip


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("But we must keep in mind that users rename", ("We could compare the files at the start. But we must keep in mind"
         " that users rename")),
        ("But the engine must be LuaLaTeX", ""),
        ("we must keep in mind that users rename", ""),
        ("Could we compare the files at the start, ultrathink? But we must keep in mind that users rename", ""),
    ],
)  # fmt: skip
def test_a_caution_is_told_with_what_it_restricts(said: str, wanted: str) -> None:
    text = said.removeprefix("But ")
    prompt = f"We could compare the files at the start. {said}"
    assert answering.understood(text, said=said, prompt=prompt, before="") == (wanted or text)


def test_a_file_that_is_brought_along_is_what_a_prompt_is_about() -> None:
    said = "it must also look at the archives"
    check(said, prompt=f"{said}\n@src/mail/reader.py:12-30", before="The `Sweeper` command reads the archives.")


def test_an_answer_is_remembered_with_its_question_and_without_the_other_answers() -> None:
    said = "we always keep the invoices for five years, because the tax office asks for them"
    found = extract.statements(turn(f"1. {said}\n2. the relays in Oslo"), before=QUESTIONS)
    assert f"Retention: {said}" in [one.text for one in found]


PARTS = st.sampled_from([
    "1. ", "2. ", "> ", "\n", "\n\n", "- ", "The `Sweeper` command reads the archives.", "it must look at archives",
    "**Label**: which hosts may send?", "Updated the warning to the archives", "But keep in mind", "`", "***", "? ", "```", "not as a",
])  # fmt: skip


@given(st.lists(PARTS, max_size=30).map("".join), st.lists(PARTS, max_size=30).map("".join))
def test_whatever_stands_before_nothing_is_rewritten_and_the_limits_hold(prompt: str, before: str) -> None:
    for unit in units.units(units.pieces(prompt, "user")):
        told = answering.understood(unit.text, said=unit.text, prompt=prompt, before=before)
        assert told.endswith(unit.text)
        assert told == unit.text or len(content_words(told)) <= units.MAX_CONTENT_WORDS
