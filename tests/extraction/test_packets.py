"""A session's state within its bounds, and the packets of its turns: by fixed names, with how each ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.conversation import ObservedTurn
from csmd.extraction import packets, shell_commands
from csmd.extraction.packets import Moment
from csmd.knowledge import State
from csmd.vocabulary import TurnKind

OK, FAILED = True, False
#: (moment, the nine measures in the order of the weights, stance)
GOLDEN: list[tuple[Moment, tuple[float, ...], str]] = [
    (Moment(), (0, 0, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(outcomes=(OK, OK)), (0, 0, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(outcomes=(FAILED, OK)), (0.5, 0, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(outcomes=(OK, FAILED, FAILED, FAILED)), (0.75, 1, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(outcomes=(FAILED,) * 9 + (OK,) * 6), (0, 0, 0, 0, 0, 0, 0, 0, 0), "silent"),
    (Moment(prompt="Fix it.", earlier=("x", "fix it")), (0, 0, 1, 0, 0, 0, 0, 2 / 60, 0), "orders"),
    (Moment(prompt="no, that is wrong"), (0, 0, 0, 1, 0, 0, 0, 4 / 60, 0), "objects"),
    (Moment(prompt="great, works now"), (0, 0, 0, 0, 1, 0, 0, 3 / 60, 0), "unknown"),
    (Moment(prompt="it is still wrong, great?!"), (0, 0, 0, 1, 0, 0, 0, 5 / 60, 0), "objects"),
    (Moment(prompt="asap please"), (0, 0, 0, 0, 0, 1, 0, 2 / 60, 0), "orders"),
    (Moment(prompt="why?", gap_s=0), (0, 0, 0, 0, 0, 0, 1, 1 / 60, 0), "asks"),
    (Moment(prompt="ok", gap_s=330), (0, 0, 0, 0, 0, 0, 0.5, 1 / 60, 0), "approves"),
    (Moment(prompt="can you add tests", gap_s=9_000), (0, 0, 0, 0, 0, 0, 0, 4 / 60, 0), "orders"),
    (Moment(prompt="word " * 120, ordinal=500), (0, 0, 0, 0, 0, 0, 0, 1, 0.25), "unknown"),
    (Moment(ordinal=99_999), (0, 0, 0, 0, 0, 0, 0, 0, 1), "silent"),
]


@pytest.mark.parametrize(("moment", "measures", "stance"), GOLDEN, ids=range(len(GOLDEN)))
def test_the_ten_functions_measure_what_the_golden_table_says(
    moment: Moment, measures: tuple[float, ...], stance: str
) -> None:
    assert list(packets.measure_signs(moment).values()) == pytest.approx(list(measures))
    assert packets.find_stance(moment) == stance


#: What a user types, how it stands to the work, and whether it is plainly (content, an objection, a hurry).
TYPED: list[tuple[str, str, tuple[bool, bool, bool]]] = [
    ("what is the plan for today", "asks", (False, False, False)),
    ("hmm, ok", "approves", (False, False, False)),
    ("no problem", "unknown", (False, False, False)),
    ("run it right now in the worker", "orders", (False, False, False)),
    ("the parser reads wrong paths first", "unknown", (False, False, False)),
    ("explain how the importer works", "orders", (False, False, False)),
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
    found = packets.estimate_state(Moment(prompt=said, gap_s=0, outcomes=(FAILED, OK)))
    content, objects, presses = plainly
    assert found.stance == stance
    assert (found.frustration is not None) == (content or objects)
    assert (found.energy is not None) == (content or presses)
    assert (found.urgency is not None) == presses


@pytest.mark.parametrize(
    ("moment", "wanted"),
    [
        (Moment(), State(frustration=None, energy=None, stance="silent", urgency=None)),
        (Moment(prompt="it is wrong, urgently", outcomes=(FAILED,) * 3), State(frustration=0.9, energy=0.413, stance="objects", urgency=0.7)),
        (Moment(prompt="thanks, great", outcomes=(FAILED,)), State(frustration=0.0, energy=0.573, stance="approves", urgency=None)),
        (Moment(prompt="commit", earlier=("commit",)), State(frustration=None, energy=None, stance="orders", urgency=None)),
    ],
)  # fmt: skip
def test_together_they_give_frustration_energy_stance_and_urgency(moment: Moment, wanted: State) -> None:
    assert packets.estimate_state(moment) == wanted


def test_every_sign_has_its_weights() -> None:
    assert list(packets.measure_signs(Moment())) == list(packets.WEIGHTS)


@given(
    st.builds(
        Moment, prompt=st.text(max_size=80), earlier=st.tuples(st.text(max_size=20)), outcomes=st.lists(st.booleans()).map(tuple),
        gap_s=st.floats(-1, 1e9), ordinal=st.integers(0, 10**9),
    )
)  # fmt: skip
def test_every_figure_stays_within_its_bounds(moment: Moment) -> None:
    found = packets.estimate_state(moment)
    assert all(figure is None or 0 <= figure <= 1 for figure in (found.frustration, found.energy, found.urgency))


# --- Packets of turns: by fixed names, with how it ended; the same however many turns come at a time.


def heard(ordinal: int, kind: TurnKind, text: str, tool: str = "", tool_id: str = "") -> ObservedTurn:
    return ObservedTurn(
        uuid=f"u{ordinal}", session_id="s1", project_seq=1, kind=kind, text=text, ordinal=ordinal, tool_name=tool,
        tool_id=tool_id, at=f"2026-03-01T{ordinal // 3600:02}:{ordinal // 60 % 60:02}:{ordinal % 60:02}.000Z",
    )  # fmt: skip


def ran(ordinal: int, line: str, result: str = "ok") -> list[ObservedTurn]:
    call = heard(ordinal, "tool_call", f'{{"command":"{line}"}}', "Bash", f"t{ordinal}")
    return [call, heard(ordinal + 1, "tool_result", result, tool_id=f"t{ordinal}")]


def told(turns: list[ObservedTurn], after: int = 0) -> list[tuple[str, str, str, str]]:
    return [(one.kind, one.subject, one.outcome, one.uuid) for one in packets.make_packets(turns, after=after)]


STORY = [
    heard(1, "user", "can you write a test that covers it?"),
    *ran(2, "mise run test", "Exit code 1\\nFAIL"),
    heard(4, "tool_call", '{"file_path":"/p/CHANGELOG.md"}', "Edit", "t4"),
    heard(5, "tool_result", "done", tool_id="t4"),
    heard(6, "user", "commit"),
    *ran(7, "git commit -m x"),
    heard(9, "user", "please deploy to staging"),
    *ran(10, "ls"),
]


def test_what_was_asked_and_done_is_named_with_how_it_ended() -> None:
    assert told(STORY) == [
        ("session", "begin", "", "u1"),
        ("order", "write a test that covers it", "asked", "u1"),
        ("tool", "mise run test", "failed", "u2"),
        ("error", "mise run test", "failed", "u2"),
        ("tool", "CHANGELOG.md", "ok", "u4"),
        ("order", "commit", "asked", "u6"),
        ("milestone", "git commit", "ok", "u7"),
        ("order", "deploy to staging", "asked", "u9"),
    ]


def test_a_call_is_a_packet_when_its_result_is_there_and_what_an_agent_was_told_is_no_order() -> None:
    assert told(STORY[:2]) == told(STORY[:1])
    assert told([replace(turn, agent=True) for turn in STORY if turn.kind == "user"]) == []
    assert told([replace(turn, kind="relayed") for turn in STORY if turn.kind == "user"]) == []


@given(st.lists(st.integers(0, 60), max_size=6))
def test_the_same_turns_give_the_same_packets_however_many_come_at_a_time(cuts: list[int]) -> None:
    turns = [
        one
        for number in range(6)
        for at in [number * 10]
        for one in (heard(at + 1, "user", "commit" if number % 2 else "no, add tests"), *ran(at + 2, "make lint", "Exit code 2"))
    ]  # fmt: skip
    whole = packets.make_packets(turns, after=0)
    pieces, reached = [], 0
    for cut in sorted({*cuts, 60}):
        given_ = [turn for turn in turns if reached - packets.WINDOW_TURNS < turn.ordinal <= cut]
        pieces += packets.make_packets(given_, after=reached)
        reached = cut
    assert pieces == whole


# --- Orders are kept in their own words; commands are known without their arguments: golden cases.


ADVICE = (
    "The parseDate helper silently drops the time zone when the input has no offset. Consider returning an error instead, "
    "because callers could store wrong timestamps without noticing."
)
PLAN = "Implement the following plan: " + "the step adds tests to the module and then you commit this; " * 10

#: What a user says -> what it asks for, "|" between; "!" before what it asks to leave.
ORDERS = [
    ("could you draw a diagram of this?", "draw a diagram of this"),
    ("and make sure to draw the diagram", "draw the diagram"),
    ("Please deploy to staging now", "deploy to staging now"),
    ("ok great, clean the tank, then close the door", "clean the tank|close the door"),
    ("please don't water the plants", "!water the plants"),
    ("no need to lock the door for now", ""),
    ("don't lock it yet", ""),
    ("where are the keys?", ""),
    ("is it deployed to staging?", ""),
    ("the door is open", ""),
    ("yes", ""),
    ("go on", ""),
    ("ENT-98", ""),
    ("one two three four five six seven eight nine", ""),
    ("We moved house last year. Can you forward the mail?", "forward the mail"),
    (ADVICE, ""),
    (PLAN, ""),
    ("", ""),
]


@pytest.mark.parametrize(("said", "wanted"), ORDERS, ids=[said[:40] for said, _ in ORDERS])
def test_an_order_is_kept_in_its_own_words_without_courtesies(said: str, wanted: str) -> None:
    assert "|".join(f"{'!' * one.against}{one.words}" for one in packets.find_orders(said)) == wanted


@pytest.mark.parametrize(
    ("said", "is_remark"),
    [
        (ADVICE, True),
        (f"I got this feedback for the changes:\n\n{ADVICE}", True),
        ("I think " + ADVICE, False),
        ("Create a helper for it. " + ADVICE, False),
        (ADVICE * 7, False),
        (PLAN, False),
    ],
)
def test_a_reviewers_remark_is_known_by_its_length_its_names_and_that_nobody_speaks_in_it(
    said: str, is_remark: bool
) -> None:
    assert packets.find_remarks(said) == [said] * is_remark


@given(st.text(max_size=300))
def test_whatever_is_said_orders_are_few_and_short(said: str) -> None:
    found = packets.find_orders(said)
    assert len(set(found)) == len(found) <= packets.MAX_ORDERS
    assert all(0 < len(one.words) <= packets.MAX_ORDER_CHARACTERS for one in found)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("cd x && mise run test 2>&1 | tail -20", ["mise run test"]),
        ("mise run fmt && mise run lint", ["mise run fmt", "mise run lint"]),
        ("CI=1 timeout 60 npm run test:ci -- --watch", ["npm run test:ci"]),
        ("uv run pytest -q tests/a.py", ["uv run pytest"]),
        ("ruff format . ; ruff check .", ["ruff format", "ruff check"]),
        ("git status; ls | grep test", []),
        ("echo 'npm run test' > notes", []),
        ("git commit -m \"$(cat <<'EOF'\nnpm run lint\nEOF\n)\"", ["git commit"]),
        ("git -C /p push origin v1", ["git push"]),
        ("git tag -a v1.2.0 -m x && git push --tags", ["git tag", "git push"]),
        ("git tag -l", []),
        ("go build ./...", ["go build"]),
        ("gh pr create --fill", ["gh pr create"]),
        ("latest --run test", []),
        ("", []),
    ],
)
def test_a_command_is_known_without_its_arguments(line: str, wanted: list[str]) -> None:
    assert shell_commands.significant_commands(line) == wanted
    assert all(bool(shell_commands.find_purpose(name)) != bool(shell_commands.find_milestone(name)) for name in wanted)


def test_a_parameter_is_read_from_a_call_also_when_it_was_trimmed() -> None:
    assert shell_commands.read_text_parameter(r'{"command":"echo \"a\"\nls","x":1}', "command") == 'echo "a"\nls'
    assert shell_commands.read_text_parameter('{"command":"mise run te', "command") == "mise run te"
    assert shell_commands.read_text_parameter("{}", "command") == ""
    assert [shell_commands.find_notable_name(path) for path in ("/p/CHANGELOG.md", "/p/sub/package.json", "/p/main.py")] == [
        "CHANGELOG.md", "package.json", "",
    ]  # fmt: skip
