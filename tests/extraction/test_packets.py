"""The ten functions of a session's state, held against a golden table; every figure stays within its bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.extraction import packets
from csmd.extraction.packets import Moment
from csmd.model import State

OK, FAILED = True, False
#: (moment, the nine measures in the order of the weights, stance)
GOLDEN: list[tuple[Moment, tuple[float, ...], str]] = [
    (Moment(), (0, 0, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(outcomes=(OK, OK)), (0, 0, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(outcomes=(FAILED, OK)), (0.5, 0, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(outcomes=(OK, FAILED, FAILED, FAILED)), (0.75, 1, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(outcomes=(FAILED,) * 9 + (OK,) * 6), (0, 0, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(said="Fix it.", earlier=("x", "fix it")), (0, 0, 1, 0, 0, 0, 0, 2 / 60, 0), "orders"),
    (Moment(said="no, that is wrong"), (0, 0, 0, 1, 0, 0, 0, 4 / 60, 0), "objects"),
    (Moment(said="great, works now"), (0, 0, 0, 0, 1, 0, 0, 3 / 60, 0), "unknown"),
    (Moment(said="it is still wrong, great?!"), (0, 0, 0, 1, 0, 0, 0, 5 / 60, 0), "objects"),
    (Moment(said="asap please"), (0, 0, 0, 0, 0, 1, 0, 2 / 60, 0), "orders"),
    (Moment(said="why?", gap_s=0), (0, 0, 0, 0, 0, 0, 1, 1 / 60, 0), "asks"),
    (Moment(said="ok", gap_s=330), (0, 0, 0, 0, 0, 0, 0.5, 1 / 60, 0), "approves"),
    (Moment(said="can you add tests", gap_s=9_000), (0, 0, 0, 0, 0, 0, 0, 4 / 60, 0), "orders"),
    (Moment(said="word " * 120, ordinal=500), (0, 0, 0, 0, 0, 0, 0, 1, 0.25), "unknown"),
    (Moment(ordinal=99_999), (0, 0, 0, 0, 0, 0, 0, 0, 1), "silent"),
]


@pytest.mark.parametrize(("moment", "measures", "stance"), GOLDEN, ids=range(len(GOLDEN)))
def test_the_ten_functions_measure_what_the_golden_table_says(
    moment: Moment, measures: tuple[float, ...], stance: str
) -> None:
    assert list(packets.measures(moment).values()) == pytest.approx(list(measures))
    assert packets.stance(moment) == stance


#: What a user types, how it stands to the work, and whether it is plainly (content, an objection, a hurry).
TYPED: list[tuple[str, str, tuple[bool, bool, bool]]] = [
    ("what is the plan for today", "unknown", (False, False, False)),
    ("hmm, ok", "unknown", (False, False, False)),
    ("no problem", "unknown", (False, False, False)),
    ("run it right now in the worker", "orders", (False, False, False)),
    ("the parser reads wrong paths first", "unknown", (False, False, False)),
    ("explain how the importer works", "unknown", (False, False, False)),
    ("I may have merged it wrong", "unknown", (False, False, False)),
    ("okay, let's rename the flag", "orders", (False, False, False)),
    ("When a job is resumed its id changes.", "unknown", (False, False, False)),
    ("is the cache shared?", "asks", (False, False, False)),
    ("sure, in the second file", "approves", (False, False, False)),
    ("no, the other table", "objects", (False, True, False)),
    ("the second column is not right", "objects", (False, True, False)),
    ("ok, that works", "approves", (True, False, False)),
    ("production is down", "unknown", (False, False, True)),
    ("no, that is wrong. " + "A report that was pasted. " * 20, "unknown", (False, False, False)),
]


@pytest.mark.parametrize(("said", "stance", "plainly"), TYPED, ids=range(len(TYPED)))
def test_a_mood_is_known_only_where_what_was_typed_plainly_says_so(
    said: str, stance: str, plainly: tuple[bool, bool, bool]
) -> None:
    found = packets.state(Moment(said=said, gap_s=0, outcomes=(FAILED, OK)))
    content, objects, presses = plainly
    assert found.stance == stance
    assert (found.frustration is not None) == (content or objects)
    assert (found.energy is not None) == (content or presses)
    assert (found.urgency is not None) == presses


@pytest.mark.parametrize(
    ("moment", "wanted"),
    [
        (Moment(), State(frustration=None, energy=None, stance="silent", urgency=None)),
        (Moment(said="it is wrong, urgently", outcomes=(FAILED,) * 3), State(frustration=0.9, energy=0.413, stance="objects", urgency=0.7)),
        (Moment(said="thanks, great", outcomes=(FAILED,)), State(frustration=0.0, energy=0.573, stance="unknown", urgency=None)),
        (Moment(said="commit", earlier=("commit",)), State(frustration=None, energy=None, stance="orders", urgency=None)),
    ],
)  # fmt: skip
def test_together_they_give_frustration_energy_stance_and_urgency(moment: Moment, wanted: State) -> None:
    assert packets.state(moment) == wanted


def test_every_sign_has_its_weights() -> None:
    assert list(packets.measures(Moment())) == list(packets.WEIGHTS)


@given(
    st.builds(
        Moment, said=st.text(max_size=80), earlier=st.tuples(st.text(max_size=20)), outcomes=st.lists(st.booleans()).map(tuple),
        gap_s=st.floats(-1, 1e9), ordinal=st.integers(0, 10**9),
    )
)  # fmt: skip
def test_every_figure_stays_within_its_bounds(moment: Moment) -> None:
    found = packets.state(moment)
    assert all(figure is None or 0 <= figure <= 1 for figure in (found.frustration, found.energy, found.urgency))
