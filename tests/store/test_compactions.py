"""What is left out of turns is noted with its bytes and tokens, and recounted from the turns themselves."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.conversation import Turn
from csmd.store import compactions, text_retention, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display

LIMIT = 8192
OUTPUT = "".join(f"line {number}: the heron stands in the reeds\n" for number in range(900))


def add(rows: Rows, given: Any, turn: Turn, *, room: int = turns.UNLIMITED_BYTES) -> int:
    project = rows.value("select seq from projects where key = 'key-shop'")
    if project is None:
        rows.run(
            "insert into projects (key, root, name, kind, created_at) values ('key-shop', '/p', 'shop', 'path', '')"
        )
        project = rows.value("select seq from projects where key = 'key-shop'")
    turns.add_turn(
        rows, turn, text_hash=given.hash(turn.text), host="claude", project=int(project), path="/t/s1.jsonl", room=room
    )
    return int(rows.value("select seq from turns where uuid = :uuid", uuid=turn.uuid))


def output(given: Any, uuid: str, said: str, *, kind: str = "tool_result", **more: Any) -> Turn:
    trimmed: Turn = given.turn(uuid, display.cut_middle(said, limit=LIMIT, of=f"turn {uuid}"), kind=kind, **more)
    return trimmed


def audit(rows: Rows) -> list[str]:
    return [row.problem for row in compactions.recount(rows, after=0, projects=None) if row.problem]


@pytest.mark.invariant(
    "What is left out of a turn is noted when it is stored, and the notes are recounted from the turns"
)
def test_a_turn_that_was_trimmed_has_the_bytes_that_it_lost_and_its_tokens_before_and_after(
    store: Store, given: Any
) -> None:
    def write(rows: Rows) -> None:
        seq = add(rows, given, output(given, "long", OUTPUT))
        add(rows, given, output(given, "short", "ok"))
        assert rows.value("select dropped from turns where seq = :seq", seq=seq) == len(OUTPUT) - LIMIT
        assert rows.value("select dropped from turns where uuid = 'short'") is None
        (total,) = compactions.sum_outcomes(rows, projects=None)
        assert total[:6] == (
            "compressed",
            "size",
            1,
            0,
            len(OUTPUT),
            LIMIT + len("\n[csmd: 33598 bytes left out of turn long]\n"),
        )
        assert 0.9 < total.tokens_before / (total.tokens_after * len(OUTPUT) / LIMIT) < 1.1
        assert compactions.count_within_budget(rows, projects=None) == 1
        assert compactions.sum_tokens_saved(rows) == total.tokens_before - total.tokens_after
        assert audit(rows) == []

    store.write(write)


def test_what_a_session_has_no_room_for_is_a_compaction_that_failed_and_saves_nothing(store: Store, given: Any) -> None:
    def write(rows: Rows) -> None:
        add(rows, given, output(given, "long", OUTPUT), room=100)
        # A mark that is longer than what it stands for.
        add(rows, given, output(given, "hardly", "x" * (LIMIT + 5)))
        add(rows, given, given.turn("said", "A prompt for which there is no room. " * 9), room=50)
        failed = compactions.sum_outcomes(rows, projects=None)
        assert [(row.outcome, row.cause, row.turns) for row in failed] == [
            ("failed", "session", 2),
            ("failed", "size", 1),
        ]
        assert compactions.sum_tokens_saved(rows) == 0 and audit(rows) == []
        assert sum(row.tokens_saved for row in compactions.list_latest(rows, projects=None, limit=9)) == 0

    store.write(write)


def test_what_is_dropped_for_its_age_is_counted_with_what_was_trimmed_before(store: Store, given: Any) -> None:
    def write(rows: Rows) -> None:
        for uuid, said in (("long", OUTPUT), ("short", "it passed")):
            add(rows, given, output(given, uuid, said))
        before = compactions.list_latest(rows, projects=None, limit=1)[0].tokens_before
        assert text_retention.drop_old_output(rows, before="2027-01-01", days=90, limit=9) == 2
        assert text_retention.drop_old_output(rows, before="2027-01-01", days=90, limit=9) == 0
        kept = {row.uuid: row for row in compactions.list_latest(rows, projects=None, limit=9)}
        assert {row.cause for row in kept.values()} == {"age"}
        assert (kept["short"].outcome, kept["short"].tokens_saved) == ("failed", 0), "what says so is longer"
        assert (kept["long"].bytes_before, kept["long"].tokens_before) == (len(OUTPUT), before)
        assert turns.read_text(rows, "long") == f"[tool output of {len(OUTPUT)} bytes dropped after 90 days]"
        assert audit(rows) == []

    store.write(write)


def test_a_line_that_is_rewritten_is_accounted_for_as_it_is_now(store: Store, given: Any) -> None:
    def write(rows: Rows) -> None:
        add(rows, given, output(given, "long", OUTPUT))
        add(rows, given, output(given, "long", "short now"))
        assert compactions.sum_outcomes(rows, projects=None) == [] and audit(rows) == []
        assert rows.value("select dropped from turns where uuid = 'long'") is None
        add(rows, given, output(given, "long", OUTPUT * 2))
        assert compactions.sum_outcomes(rows, projects=None)[0].bytes_before == 2 * len(OUTPUT) and audit(rows) == []

    store.write(write)


WRONG: dict[str, str] = {
    "are recorded": "update compactions set bytes_after = bytes_after - 7",
    "recorded as failed": "update compactions set outcome = 'failed'",
    "bytes originally": "update compactions set bytes_before = bytes_before + 9",
    "recorded as left out": "update turns set dropped = dropped - 1 where uuid = 'long'",
    "no compaction is recorded": "delete from compactions",
    "recorded as compressed": "update compactions set tokens_after = tokens_before + 1",
    "some text is stored": "update compactions set cause = 'age'",
}


@pytest.mark.invariant(
    "What is left out of a turn is noted when it is stored, and the notes are recounted from the turns"
)
@pytest.mark.parametrize("said", WRONG)
def test_a_figure_that_the_turn_does_not_bear_out_is_found_by_the_recount(store: Store, given: Any, said: str) -> None:
    def write(rows: Rows) -> None:
        add(rows, given, output(given, "long", OUTPUT))
        rows.run(WRONG[said])
        (problem,) = audit(rows)
        assert said in problem

    store.write(write)


def test_a_turn_from_which_something_was_purged_cannot_be_recounted_and_is_no_mistake(store: Store, given: Any) -> None:
    def write(rows: Rows) -> None:
        seq = add(rows, given, output(given, "long", OUTPUT))
        rows.update(
            "turns", seq, text=turns.read_text(rows, "long").replace("line 3: the heron", "line 3: the [purged]")
        )
        (row,) = compactions.recount(rows, after=0, projects=None)
        assert row.is_changed and not row.problem

    store.write(write)


def test_a_mark_of_another_turn_in_an_output_is_no_cut_of_this_one(store: Store, given: Any) -> None:
    said = display.cut_middle(OUTPUT, limit=200, of="turn other")
    store.write(lambda rows: add(rows, given, output(given, "this", said)))
    assert store.read(lambda rows: compactions.sum_outcomes(rows, projects=None)) == []
