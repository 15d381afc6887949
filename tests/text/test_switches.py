"""What a change of mind leaves, in whatever words it is put, and which earlier statements it is about."""

from __future__ import annotations

import pytest

from csmd.text import switches

#: What a sentence says -> the stems that it leaves, "" where it leaves nothing for something else.
SAID: dict[str, str] = {
    "let's drop Cairo, Skia draws the invoices": "cairo",
    "Cairo is history, we draw with Skia": "cairo",
    "no more Cairo, Skia from here on": "cairo",
    "we're moving invoices from Cairo to Skia": "cairo",
    "swap Cairo for Skia": "cairo",
    "replace Cairo by Skia": "cairo",
    "Skia instead of Cairo, please": "cairo",
    "instead of Cairo we use Skia": "cairo",
    "I'd rather have Skia than Cairo": "cairo",
    "we are done with Cairo, Skia draws invoices": "cairo",
    "we no longer draw with Cairo, Skia took over": "cairo",
    "I don't want Cairo any more, use Skia": "cairo",
    "use Skia, not Cairo": "cairo",
    "Cairo was slow, so we use Skia now": "cairo",
    "Skia replaces Cairo for the labels": "cairo",
    "I want to get away from Cairo, Skia for the labels": "cairo",
    "I changed my mind about Cairo: Skia draws the invoices": "cairo",
    "Cairo had to go, Skia is faster": "cairo",
    "I changed my mind about the plotter. labels get a page each": "plotter",
    "I had second thoughts about Cairo, the invoices are plain text": "cairo",
    "I changed my mind about the plotter": "",
    "I changed my mind about Cairo, we keep Cairo": "",
    "I had second thoughts about Cairo, Skia might be better": "",
    "I rethought Cairo and it draws well": "",
    "I changed my mind about the plotter. make the labels shorter": "",
    "scrap the Cairo idea, Skia it is": "cairo",
    "Cairo keeps crashing, so I swapped it for Skia": "cairo",
    "Cairo isn't used any more, Skia draws the invoices": "cairo",
    "because of its licence we leave Cairo and draw with Skia": "cairo",
    "Skia fonts rather than Cairo ones": "cairo",
    "labels go to the plotter instead of the printer": "printer",
    # One of two halves is missing.
    "let's drop Cairo": "",
    "Skia draws the invoices now": "",
    "Cairo was slow yesterday": "",
    "Cairo was slow, it is fast now": "",
    "use the other renderer for this, not the Cairo one": "",
    "use the plotter instead of the printer for this": "",
    "Cairo isn't in the list any more, add it again": "",
    "draw no labels twice, don't test Skia, and see that it is fast": "",
    "Cairo was updated yesterday, no breaking changes": "",
    # A step at hand, a case, a question, a wording.
    "drop the second argument and use a keyword": "",
    "remove the Cairo import, then run the tests": "",
    "move the function from draw.py to skia.py": "",
    "if Cairo is gone we can use Skia": "",
    "should we drop Cairo for Skia?": "",
    'write "Skia" instead of "Cairo"': "",
    "we won't drop Cairo for Skia": "",
}


def check(said: str) -> None:
    switch = switches.find_switch(said)
    assert " ".join(sorted(switch.old if switch else ())) == SAID[said]


@pytest.mark.parametrize("said", SAID)
def test_a_sentence_that_gives_one_thing_up_for_another_says_which(said: str) -> None:
    check(said)


DROPS, MOVES = "let's drop Cairo, Skia it is", "we moved the labels from Cairo to Skia"
#: (An older statement, a switch, whether the switch gives up what the older one is for.)
OLDER = [
    ("Invoices are drawn with Cairo.", DROPS, True),
    ("We use Cairo for invoices.", DROPS, True),
    ("Cairo draws the invoices.", DROPS, True),
    ("The labels are drawn with Cairo.", MOVES, True),
    ("We draw with Cairo or Skia.", "use Skia for the labels, not Cairo", False),
    ("The invoices are drawn with Cairo.", MOVES, False),
    ("The admin page draws its charts with Cairo", "The shop page draws its charts with Skia instead of Cairo", False),
    ("Never use Cairo.", DROPS, False),
    ("The plotter is Cairo.", "the printer uses Skia instead of Cairo", False),
    ("The Cairo build takes a minute.", "swap Pango for Skia", False),
]


@pytest.mark.parametrize(("older", "said", "is_left"), OLDER)
def test_what_is_for_something_given_up_is_known_by_its_value_its_thing_and_its_place(
    older: str, said: str, is_left: bool
) -> None:
    switch = switches.find_switch(said)
    assert switch is not None and switches.is_left(older, switch) is is_left


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ("the proxy listens on 8082 now", True),
        ("labels are drawn by Skia again", True),
        ("the tests are green now", False),
        ("it listens on 8082 now", False),
        ("fix the proxy on 8082 now", False),
        ("is the proxy on 8082 now?", False),
        ("", False),
    ],
)
def test_a_name_or_number_that_holds_now_takes_the_place_of_another(said: str, holds: bool) -> None:
    assert switches.holds_now(said) is holds
