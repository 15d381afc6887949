"""The ten functions of a session's state, held against a golden table; every figure stays within its bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.distill import state
from csmd.distill.state import Moment
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
    (Moment(said="great, works now"), (0, 0, 0, 0, 1, 0, 0, 3 / 60, 0), "tells"),
    (Moment(said="still not, great?!"), (0, 0, 0, 1, 0, 0, 0, 3 / 60, 0), "objects"),
    (Moment(said="asap please"), (0, 0, 0, 0, 0, 1, 0, 2 / 60, 0), "orders"),
    (Moment(said="why?", gap_s=0), (0, 0, 0, 0, 0, 0, 1, 1 / 60, 0), "asks"),
    (Moment(said="ok", gap_s=330), (0, 0, 0, 0, 0, 0, 0.5, 1 / 60, 0), "approves"),
    (Moment(said="can you add tests", gap_s=9_000), (0, 0, 0, 0, 0, 0, 0, 4 / 60, 0), "orders"),
    (Moment(said="word " * 120, ordinal=500), (0, 0, 0, 0, 0, 0, 0, 1, 0.25), "tells"),
    (Moment(ordinal=99_999), (0, 0, 0, 0, 0, 0, 0, 0, 1), "silent"),
]


@pytest.mark.parametrize(("moment", "measures", "stance"), GOLDEN, ids=range(len(GOLDEN)))
def test_the_ten_functions_measure_what_the_golden_table_says(
    moment: Moment, measures: tuple[float, ...], stance: str
) -> None:
    assert [measure(moment) for measure, *_ in state.WEIGHTS] == pytest.approx(list(measures))
    assert state.stance(moment) == stance


@pytest.mark.parametrize(
    "said",
    ["what is the plan for today", "a quick question", "wait", "hmm, ok", "no problem", "this blocks the list!!", "run it right now in the worker"],
)  # fmt: skip
def test_a_day_a_pause_and_an_exclamation_are_neither_a_hurry_nor_an_objection(said: str) -> None:
    moment = Moment(said=said)
    assert (state.pressing(moment), state.objecting(moment)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("moment", "wanted"),
    [
        (Moment(), State(frustration=0.0, energy=0.5, stance="silent", urgency=0.0)),
        (Moment(said="still broken, urgently", outcomes=(FAILED,) * 3), State(frustration=0.9, energy=0.41, stance="objects", urgency=1.0)),
        (Moment(said="thanks, great", outcomes=(FAILED,)), State(frustration=0.0, energy=0.573, stance="tells", urgency=0.167)),
    ],
)  # fmt: skip
def test_together_they_give_frustration_energy_stance_and_urgency(moment: Moment, wanted: State) -> None:
    assert state.state(moment) == wanted


def test_there_are_ten_of_them() -> None:
    assert len({measure for measure, *_ in state.WEIGHTS} | {state.stance}) == 10


@given(
    st.builds(
        Moment, said=st.text(max_size=80), earlier=st.tuples(st.text(max_size=20)), outcomes=st.lists(st.booleans()).map(tuple),
        gap_s=st.floats(-1, 1e9), ordinal=st.integers(0, 10**9),
    )
)  # fmt: skip
def test_every_figure_stays_within_its_bounds(moment: Moment) -> None:
    found = state.state(moment)
    assert all(0 <= figure <= 1 for figure in (found.frustration, found.energy, found.urgency))
