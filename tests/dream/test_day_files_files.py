"""Days and live sessions over a real store and real files: written once, kept where they are, and gone where they must."""

from __future__ import annotations

import itertools
import stat
from collections.abc import Callable, Generator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from session_writer import Talk, go_through

from csmd.conversation import Event, Project
from csmd.dream import day_files
from csmd.extraction import digest
from csmd.knowledge import Memory, Provenance, Statement
from csmd.memory import remember
from csmd.privacy import redaction
from csmd.privacy.fingerprints import Needle
from csmd.store import (
    dreams,
    events,
    forget,
    journal,
    memories,
    projects,
    purge,
    purge_files,
    stored_days,
    tombstones,
    workspaces,
)
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import similarity

LATER = "2026-03-01T13:00:00.000Z"
#: After everything that is said.
LAST = "2026-03-09T13:00:00.000Z"
MARK = "Zanzibar quokka"
PURGED_FIRST = "please keep the prices of the till in cents"


def here(at: str, *, hours: int = 0) -> datetime:
    return datetime.fromisoformat(at).astimezone(timezone(timedelta(hours=hours)))


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def talk(store: Store, session: str = "s1", *, project: str = "till", day: int = 1, goal: str = PURGED_FIRST) -> Talk:
    """A session from 10:01 on: a prompt, an edit, a check, an answer, a correction."""
    one = Talk(store, session, project=project, day=day)
    one.say("user", goal)
    one.mend(f"/p/{project}/price.py")
    one.run("pytest -q", "5 passed")
    one.say("assistant", "The till counts prices in cents now, because a float loses a cent in a thousand.")
    return one


def settle(store: Store, memory: Path, *, now: str = LATER, hours: int = 0) -> int:
    """Distils, digests and writes what is due; how many steps of writing did something."""
    go_through(store)
    while digest.step(store):
        pass
    done = 0
    while day_files.update_files(store, memory, now=now, to_local=lambda at: here(at, hours=hours)):
        done += 1
        assert done < 50, "it comes to an end"
    return done


def close(store: Store, session: str, at: str = "2026-03-01T10:20:00.000Z") -> None:
    event = Event(id=f"end-{session}-{at}", host="claude", name="session_end", session_id=session, at=at)
    store.write(lambda rows: events.record_event(rows, event, text_hash="", payload_hash=""))


def files(memory: Path) -> list[str]:
    return sorted(str(path.relative_to(memory)) for path in memory.rglob("*") if path.is_file())


def day(memory: Path, name: str = "2026-03-01") -> str:
    return (memory / "daily" / f"{name}.md").read_text()


def test_a_session_that_has_ended_is_told_on_its_day_as_text_and_as_data(store: Store, memory: Path) -> None:
    talk(store)
    assert settle(store, memory, now="2026-03-01T11:00:00.000Z") and files(memory) == ["sessions/s1.yaml"]
    assert settle(store, memory) and files(memory) == ["daily/2026-03-01.md", "daily/2026-03-01.yaml"]
    assert "## till · 10:01 to 10:06 · keep the prices of the till in cents\n" in day(memory)
    assert "- Uncommitted: `price.py`\n" in day(memory)
    told = yaml.safe_load((memory / "daily/2026-03-01.yaml").read_text())
    assert told["sessions"][0]["outcome"] == "checked" and told["sessions"][0]["files"] == [
        {"path": "price.py", "changes": 1}
    ]
    assert settle(store, memory) == 0, "and nothing is left"
    for path in [memory, *memory.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_the_hosts_word_ends_a_session_at_once_and_its_live_file_goes(store: Store, memory: Path) -> None:
    talk(store)
    soon = "2026-03-01T10:21:00.000Z"
    settle(store, memory, now=soon)
    live = yaml.safe_load((memory / "sessions/s1.yaml").read_text())
    assert live["outcome_so_far"] == "checked" and live["goal"] == PURGED_FIRST
    (memory / "sessions/mine.yaml").write_text("mine: true\n")
    close(store, "s1")
    settle(store, memory, now=soon)
    assert files(memory) == ["daily/2026-03-01.md", "daily/2026-03-01.yaml", "sessions/mine.yaml"]


def test_what_older_rules_let_through_is_written_into_no_file_any_more(store: Store, memory: Path) -> None:
    talk(store, goal="please keep the prices of Nightjar in cents")
    redaction.choose_words(["Nightjar"])
    try:
        settle(store, memory, now="2026-03-01T10:21:00.000Z")
        live = yaml.safe_load((memory / "sessions/s1.yaml").read_text())
        assert live["goal"] == "please keep the prices of [redacted:chosen-word] in cents"
        settle(store, memory)
    finally:
        redaction.choose_words([])
    assert files(memory) == ["daily/2026-03-01.md", "daily/2026-03-01.yaml"]
    assert not any("Nightjar" in path.read_text() for path in memory.rglob("*.*"))


def test_a_session_that_goes_on_is_told_anew_in_its_part_and_on_another_day_in_that_days_file(
    store: Store, memory: Path
) -> None:
    one = talk(store)
    talk(store, "s2", goal="please name the till's journal by its day")
    settle(store, memory)
    first = day(memory)
    one.say("user", "and now the receipts: they show whole cents too")
    one.say("assistant", "The receipts show whole cents too.")
    settle(store, memory)
    assert day(memory).count("<!-- csmd: session") == 2 and "10:01 to 10:08" in day(memory)
    assert day(memory).index("session s1") < day(memory).index("session s2")
    assert first.partition("<!-- csmd: session s2")[2] in day(memory), "the other one is as it was"
    kept = day(memory)
    one.day = 3
    one.say("user", "good morning: the vouchers come next")
    one.say("assistant", "The vouchers are in cents now.")
    settle(store, memory, now="2026-03-03T19:00:00.000Z")
    assert day(memory) == kept, "a day that is over stays as it ended"
    assert "## till · 2026-03-01 10:01 to 10:10 · keep" in day(memory, "2026-03-03")


@pytest.mark.invariant(
    "What is forgotten leaves all that csmd wrote by the line: pages, whole pages beside them, days, live sessions, the journal"
)
@pytest.mark.parametrize("edited", [False, True])
def test_what_is_forgotten_leaves_the_days_and_the_live_files_by_the_line_and_comes_back_by_no_digest(
    store: Store, memory: Path, edited: bool
) -> None:
    rule = "No, always round the vouchers up to whole cents."
    one, live = talk(store), talk(store, "s2", day=2)
    for session in (one, live):
        session.say("user", rule)
        session.say("assistant", "The vouchers are rounded up now.")
    settle(store, memory, now="2026-03-02T10:30:00.000Z")
    go_through(store)
    assert files(memory) == ["daily/2026-03-01.md", "daily/2026-03-01.yaml", "sessions/s2.yaml"]
    assert all("round the vouchers" in (memory / name).read_text() for name in files(memory))
    if edited:
        (memory / "daily/2026-03-01.md").write_text(day(memory).replace("10:01 to", "ten o'clock to"))
    before = day(memory)

    def forget(rows: Rows) -> int:
        found = [
            one
            for one in memories.list_memories(rows, projects=None)
            if "vouchers" in one.text and one.authority == "user"
        ]
        for said in found:
            remember.forget(rows, said, key=store.hash_key, now=LAST, by_person=True)
        return len(found)

    assert store.write(forget) == 1
    while day_files.remove_withdrawn(store, memory, now="2026-03-02T10:31:00.000Z", to_local=here):
        pass
    assert not any("round the vouchers" in (memory / name).read_text() for name in files(memory))
    gone = set(before.splitlines()) - set(day(memory).splitlines())
    assert len([row for row in gone if not row.startswith("<!--")]) == 1, "its line and no other"
    assert yaml.safe_load((memory / "daily/2026-03-01.yaml").read_text())["sessions"][0]["goal"] == PURGED_FIRST
    kept = day(memory)
    one.say("user", "and now the receipts: they show whole cents too")
    one.say("assistant", "The receipts show whole cents too.")
    settle(store, memory, now="2026-03-02T10:32:00.000Z")
    assert (day(memory) == kept) is edited and "round the vouchers" not in day(memory)


def forgetting(store: Store, words: str) -> int:
    """Forgets the memories that say something; how many."""

    def forget(rows: Rows) -> int:
        found = [one for one in memories.list_memories(rows, projects=None) if words in one.text]
        for one in found:
            remember.forget(rows, one, key=store.hash_key, now=LAST, by_person=True)
        return len(found)

    return store.write(forget)


def withdraw(store: Store, memory: Path) -> None:
    while day_files.remove_withdrawn(store, memory, now=LATER, to_local=here):
        pass


def meanwhile(monkeypatch: pytest.MonkeyPatch, name: str, happens: Callable[[], object], *, call: int = 1) -> None:
    """Has something happen once in the midst of a step, as on another thread: after a call of one of its functions."""
    real, calls = getattr(day_files, name), itertools.count(1)

    def then(*given: Any, **named: Any) -> Any:
        done = real(*given, **named)
        if next(calls) == call:
            happens()
        return done

    monkeypatch.setattr(day_files, name, then)


@pytest.mark.invariant(
    "What is forgotten leaves all that csmd wrote by the line: pages, whole pages beside them, days, live sessions, the journal"
)
def test_what_is_forgotten_while_a_days_file_is_looked_through_or_written_leaves_it_too(
    store: Store, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = talk(store)
    for said in (
        "round the vouchers up to whole cents",
        "print the receipts upright",
        "name the tills by their street",
    ):
        one.say("user", f"No, always {said}.")
        one.say("assistant", "Done so from now on.")
    go_through(store)
    meanwhile(monkeypatch, "_write_session", lambda: forgetting(store, "name the tills"))
    settle(store, memory)
    withdraw(store, memory)
    assert "name the tills" not in day(memory) and "vouchers" in day(memory) and "receipts" in day(memory)
    assert forgetting(store, "vouchers") > 0
    told = (memory / "daily/2026-03-01.md", memory / "daily/2026-03-01.yaml")
    # The first file is written already, the second is about to be read.
    meanwhile(monkeypatch, "_find_day_file", lambda: forgetting(store, "receipts"), call=2)
    withdraw(store, memory)
    assert not any(word in path.read_text() for path in told for word in ("vouchers", "receipts"))


@pytest.mark.invariant(
    "What is forgotten leaves all that csmd wrote by the line: pages, whole pages beside them, days, live sessions, the journal"
)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("No, deployments need approvals from reviewers.", "No, deployment needs approval from reviewer."),
        ("No, always keep the café's vouchers in whole cents.", "No, always keep the CAFÉ's voucher in whole cents."),
        ("No, we always keep ваучеры в центах.", "No, we always keep ВАУЧЕРЫ В ЦЕНТАХ."),
    ],
)
def test_what_says_a_forgotten_thing_in_another_form_leaves_the_days_and_no_other_day_is_looked_through(
    store: Store, memory: Path, one: str, other: str
) -> None:
    assert similarity.repeats(one, other)
    for session, project, said in (
        ("s1", "till", one),
        ("s2", "till", other),
        ("s3", "quay", "No, never moor at night."),
    ):
        talking = talk(store, session, project=project)
        talking.say("user", said)
        talking.say("assistant", "It is done so from now on.")
    settle(store, memory)
    said = [row for row in day(memory).splitlines() if row.startswith("- Decided: ")]
    assert len([row for row in said if rarer(one) & rarer(row)]) == 2, said

    def forget(rows: Rows) -> None:
        known = stated(rows, one.removeprefix("No, "), key=store.hash_key)
        remember.forget(rows, known, key=store.hash_key, now=LAST, by_person=True)

    store.write(forget)
    assert {part.id for part in store.read(lambda rows: stored_days.days_due(rows, "again", limit=9))} == {
        "s1",
        "s2",
    }
    withdraw(store, memory)
    assert not [row for row in day(memory).splitlines() if rarer(one) & rarer(row)]
    assert "never moor at night" in day(memory)


def stated(rows: Rows, said: str, *, key: bytes) -> Memory:
    """A memory that a person states by itself."""
    source = Provenance(uuid=f"u-{said}", session_id="apart", at=LATER)
    told = Statement(text=said, gate="epistemic", category="preference", confidence=0.9, authority="user")
    project = projects.ensure(rows, Project(key="till", root="/p/till", name="till", kind="path"), now=LATER)
    ident, _ = remember.remember(rows, told, source, project=project, origin="stated", key=key)
    known = memories.by_id(rows, ident)
    assert known is not None
    return known


@pytest.mark.invariant(
    "What tells a memory that is forgotten is looked for before the write, in steps; what came meanwhile is found in it"
)
def test_a_memory_of_a_common_word_has_only_days_looked_through_that_say_hardly_more(
    store: Store, memory: Path
) -> None:
    for number in range(4):
        talk(store, f"s{number}", day=number + 1)
    talk(store, "s5", day=5, goal="please, cents!")
    for number in range(1, 6):
        settle(store, memory, now=f"2026-03-0{number}T13:00:00.000Z")

    def forget(rows: Rows) -> None:
        known = stated(rows, "Cents, please", key=store.hash_key)
        remember.forget(rows, known, key=store.hash_key, now=LAST, by_person=True)

    store.write(forget)
    assert {part.id for part in store.read(lambda rows: stored_days.days_due(rows, "again", limit=9))} == {"s5"}


@pytest.mark.invariant(
    "What tells a memory that is forgotten is looked for before the write, in steps; what came meanwhile is found in it"
)
def test_what_is_to_be_forgotten_is_looked_for_in_steps_and_what_came_meanwhile_is_found_in_the_write(
    store: Store, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table, source in list(forget._SOURCES.items()):
        monkeypatch.setitem(forget._SOURCES, table, source._replace(step=1))  # type: ignore[index]
    said = "keep the prices of the till in cents"
    talk(store, "s1")
    settle(store, memory)
    known = store.write(lambda rows: stated(rows, f"{said.capitalize()}.", key=store.hash_key))
    looking = forget.find_traces
    steps = store.read(lambda rows: list_of(looking(rows, known)))
    assert len(steps[0]) > 2, "a row a step"
    talk(store, "s2", day=2)
    settle(store, memory, now="2026-03-02T13:00:00.000Z")
    store.write(
        lambda rows: remember.forget(rows, known, key=store.hash_key, now=LAST, by_person=True, quoted_in=steps[1])
    )
    withdraw(store, memory)
    assert said not in day(memory).lower() and said not in day(memory, "2026-03-02").lower()


def list_of(steps: Generator[None, None, forget.Traces]) -> tuple[list[None], forget.Traces]:
    """(the steps of long work, what it comes to)."""
    found: list[None] = []
    while True:
        try:
            found.append(next(steps))
        except StopIteration as end:
            return found, end.value


def test_a_forgotten_gotcha_leaves_the_data_of_a_day_and_another_stays(store: Store, memory: Path) -> None:
    for session, said in (
        ("s1", ("Careful: the exporter of the vouchers silently drops every row whose tax code is empty, because the reader of the "
        "tax table treats an empty code as the end of the file, closes the stream of vouchers, and never reports that "
        "anything was lost between the nightly run and the morning report that accounting prints for the auditors.")),
        ("s2", ("Careful: the spooler of the receipts silently loses each page that is queued while somebody unplugs a printer, "
        "because its driver acknowledges a page as soon as it arrives, throws its whole buffer away when the cable is out, "
        "and never reports that any paper is missing between the shop's till and the drawer under the counter.")),
    ):  # fmt: skip
        talk(store, session).say("assistant", said)
    settle(store, memory)
    data = memory / "daily/2026-03-01.yaml"
    assert data.read_text().count("gotchas:") == 2
    assert forgetting(store, "vouchers") == 1
    withdraw(store, memory)
    assert "vouchers" not in data.read_text() and "spooler of the receipts" in data.read_text()


def test_a_session_in_which_nothing_changed_has_no_part_until_something_does(store: Store, memory: Path) -> None:
    one = Talk(store, "s1", project="till", day=1)
    one.say("user", "why does the till round down?")
    one.say("assistant", "The till rounds down because it counts in whole cents.")
    settle(store, memory)
    assert files(memory) == []
    one.mend("/p/till/price.py")
    one.say("assistant", "The till rounds half up now.")
    settle(store, memory)
    assert "- Uncommitted: `price.py`\n" in day(memory)


def rarer(said: str) -> frozenset[str]:
    """The rarer words of a sentence."""
    return frozenset(stem for stem in similarity.gist(said).stems if len(stem) > 5)


def test_an_edited_part_and_what_people_wrote_stay_and_a_part_that_was_taken_out_does_not_come_back(
    store: Store, memory: Path
) -> None:
    one, other, third = talk(store), talk(store, "s2"), talk(store, "s3")
    settle(store, memory)
    parts = day(memory).split("<!-- csmd: session ")
    mine = "# 2026-03-01\n\nA good day.\n\n<!-- csmd: session " + parts[1].replace("price.py", "price.py, at last")
    mine += "<!-- csmd: session " + parts[3] + "\nTo do: write to Ann.\n"
    (memory / "daily/2026-03-01.md").write_text(mine)
    for session in (one, other):
        session.say("user", "and the receipts too")
        session.say("assistant", "The receipts show whole cents too.")
    settle(store, memory)
    assert day(memory) == mine
    third.say("user", "and the vouchers too")
    third.say("assistant", "The vouchers show whole cents too.")
    settle(store, memory)
    assert day(memory).startswith(mine.partition("<!-- csmd: session s3")[0])
    assert "10:01 to 10:08" in day(memory) and day(memory).endswith("\nTo do: write to Ann.\n")


@pytest.mark.invariant(
    "A session stands in the file of the local date of its last turn; what people wrote there stays byte for byte"
)
@pytest.mark.parametrize(("hours", "name"), [(0, "2026-03-01"), (14, "2026-03-02"), (-11, "2026-02-28")])
def test_a_session_belongs_to_the_local_date_of_its_last_turn_and_keeps_it(
    store: Store, memory: Path, hours: int, name: str
) -> None:
    talk(store)
    settle(store, memory, hours=hours)
    assert files(memory) == [f"daily/{name}.md", f"daily/{name}.yaml"]
    store.write(lambda rows: rows.run("delete from digests") and rows.run("delete from cursors where stage = 'digest'"))
    settle(store, memory, hours=-hours)
    assert store.read(lambda rows: rows.value("select digest_seq from told_days")) > 1, "it was told anew"
    assert files(memory) == [f"daily/{name}.md", f"daily/{name}.yaml"], "whatever zone holds later"


def test_what_ended_before_thirty_days_gets_no_file(store: Store, memory: Path) -> None:
    talk(store)
    settle(store, memory, now="2026-04-01T13:00:00.000Z")
    assert files(memory) == []
    talk(store, "s2", day=2)
    settle(store, memory, now="2026-04-01T13:00:00.000Z")
    assert files(memory) == ["daily/2026-03-02.md", "daily/2026-03-02.yaml"]


def test_killed_between_file_and_row_the_next_step_writes_the_same(store: Store, memory: Path) -> None:
    talk(store)
    talk(store, "s2")
    settle(store, memory)
    before = {name: (memory / name).read_bytes() for name in files(memory)}
    store.write(lambda rows: (rows.run("delete from told_days"), rows.run("delete from cursors where stage = 'daily'")))
    settle(store, memory)
    assert {name: (memory / name).read_bytes() for name in files(memory)} == before


# --- walls


def wall(store: Store, project: str, name: str = "Acme & Co") -> None:
    def write(rows):  # type: ignore[no-untyped-def]
        place = projects.ensure(rows, Project(key=project, root=f"/p/{project}", name=project, kind="path"), now=LATER)
        workspaces.join(rows, workspaces.ensure(rows, name, now=LATER), place)

    store.write(write)


@pytest.mark.invariant("What is behind a wall stands on pages and in daily files of its own")
def test_behind_a_wall_everything_stands_in_files_of_its_own(store: Store, memory: Path) -> None:
    talk(store, "s1", project="till")
    talk(store, "s2", project="secret", goal="please rebuild the wing in secret")
    settle(store, memory)
    assert "secret" in day(memory)
    wall(store, "secret")
    settle(store, memory)
    (own,) = (memory / "workspaces").iterdir()
    assert own.name.startswith("acme-co-") and "rebuild the wing" in day(own)
    assert "secret" not in day(memory) and "secret" not in (memory / "daily/2026-03-01.yaml").read_text()
    talk(store, "s3", project="secret", day=2, goal="please rebuild the tail in secret")
    settle(store, memory, now="2026-03-02T11:00:00.000Z")
    assert "workspaces" in str(next(memory.rglob("s3.yaml"))) and "tail" in next(memory.rglob("s3.yaml")).read_text()
    settle(store, memory, now="2026-03-02T19:00:00.000Z")
    assert files(memory) == sorted(
        [*(f"daily/2026-03-01.{end}" for end in ("md", "yaml")),
         *(f"workspaces/{own.name}/daily/2026-03-0{number}.{end}" for number in (1, 2) for end in ("md", "yaml"))]
    )  # fmt: skip
    store.write(
        lambda rows: workspaces.leave(
            rows, int(rows.value("select seq from projects where key = 'secret'")), key=store.hash_key
        )
    )
    settle(store, memory, now="2026-03-02T19:00:00.000Z")
    assert files(memory) == sorted(f"daily/2026-03-0{number}.{end}" for number in (1, 2) for end in ("md", "yaml"))


# --- what was purged


def purge_now(store: Store, memory: Path, text: str = "", session: str = "") -> None:
    """As the purge job does: tombstones, what they forbid, files, and what was told."""
    key = store.hash_key

    def lay(rows):  # type: ignore[no-untyped-def]
        purge.record_begin(rows, now=LATER)
        if text:
            tombstones.purge_text(rows, text, key=key, now=LATER)
        if session:
            tombstones.purge_names(rows, "session", [session], key=key, now=LATER)
        purge.apply_tombstones(rows, key)

    store.write(lay)
    marks = store.read(lambda rows: tombstones.purged_marks(rows, key))
    needles = [Needle(text)] if text else []
    purge_files.purge(memory.parent, memory.parent / "log", marks, needles, everything=True)
    while day_files.remove_withdrawn(store, memory, now=LATER, to_local=here):
        pass


def test_a_purged_text_leaves_every_file_and_does_not_come_back(store: Store, memory: Path) -> None:
    one = talk(store, goal=f"please keep the {MARK} in cents")
    talk(store, "s2", day=1, goal=f"the {MARK} again, but live")
    close(store, "s1")
    settle(store, memory, now="2026-03-01T10:30:00.000Z")
    (memory / "daily/2026-03-01.md").write_text(day(memory) + f"\nMy note on the {MARK}.\n")
    assert "sessions/s2.yaml" in files(memory) and all(MARK in (memory / name).read_text() for name in files(memory))
    purge_now(store, memory, text=MARK)
    assert not any(MARK in (memory / name).read_text() for name in files(memory))
    one.say("user", "and the receipts too")
    one.say("assistant", "The receipts show whole cents too.")
    settle(store, memory)
    assert files(memory) and not any(MARK in (memory / name).read_text() for name in files(memory))
    assert "\nMy note on the [purged].\n" in day(memory), "what people wrote stays but for it"


def test_a_purged_session_leaves_the_files_edited_or_not_and_what_could_bring_it_back(
    store: Store, memory: Path
) -> None:
    talk(store, goal=f"please keep the {MARK} in cents")
    talk(store, "s2", goal="please name the journal by its day")
    settle(store, memory)
    (memory / "daily/2026-03-01.md").write_text(day(memory).replace("price.py", "price.py, at last"))
    path = "memory/daily/2026-03-01.md"

    def noted(rows):  # type: ignore[no-untyped-def]
        dream = dreams.begin(rows, why="time", sessions=1, now=LATER)
        for name in (path, "memory/archive/daily/2026-03-01.md", "memory/user.md"):
            journal.record_file(rows, dream.seq, reason="x", path=name, before="", after=day(memory), now=LATER)

    store.write(noted)
    purge_now(store, memory, session="s1")
    assert MARK not in day(memory) and "name the journal" in day(memory)
    assert MARK not in (memory / "daily/2026-03-01.yaml").read_text()
    left = store.read(lambda rows: rows.all("select path from changed_files"))
    assert not [path for (path,) in left if "daily" in path], "an undo cannot bring it back"
    settle(store, memory)
    assert "session s1" not in day(memory)
    purge_now(store, memory, session="s2")
    assert "daily/2026-03-01.yaml" not in files(memory), "a file in which nothing is left is gone"


# --- the archive


def test_the_days_over_thirty_days_ago_move_to_the_archive_and_the_journal_knows(store: Store, memory: Path) -> None:
    talk(store)
    settle(store, memory)
    talk(store, "s2", day=20)
    settle(store, memory, now="2026-03-20T19:00:00.000Z")
    (memory / "daily/notes.md").write_text("mine\n")
    was, now = day(memory), "2026-04-05T10:00:00.000Z"

    (memory / "daily/2026-03-02.md").write_bytes(b"mine, in Latin-1: \xe9\n")
    dream = store.write(lambda rows: dreams.begin(rows, why="time", sessions=1, now=now))

    def move() -> list[str]:
        return list(day_files.archive_days(store, memory.parent, memory, dream.seq, now=now, to_local=here))

    first = next(day_files.archive_days(store, memory.parent, memory, dream.seq, now=now, to_local=here))
    assert first == "memory/daily/2026-03-01.md"
    (memory / "daily/2026-03-01.md").write_text(was)  # as where it was killed before the file was gone
    assert move() == ["memory/daily/2026-03-01.md", "memory/daily/2026-03-01.yaml"]
    (memory / "daily/2026-03-02.md").unlink()  # what is no text stays where it is
    assert files(memory) == ["archive/daily/2026-03-01.md", "archive/daily/2026-03-01.yaml", "daily/2026-03-20.md",
                             "daily/2026-03-20.yaml", "daily/notes.md"]  # fmt: skip
    assert (memory / "archive/daily/2026-03-01.md").read_text() == was
    noted = store.read(
        lambda rows: rows.all("select path, before, after, was_there, is_there from changed_files order by seq")
    )
    assert noted[:2] == [
        ("memory/archive/daily/2026-03-01.md", "", was, 0, 1),
        ("memory/daily/2026-03-01.md", was, "", 1, 0),
    ]
    assert move() == [], "nothing is left to be moved"
    (memory / "daily/2026-03-01.md").write_text("come back\n")
    assert move() == [] and (memory / "archive/daily/2026-03-01.md").read_text() == was
    (memory / "daily/2026-03-01.md").unlink()
    purge_now(store, memory, session="s1")
    assert files(memory)[0] == "daily/2026-03-20.md", "a purge reaches the archive"


def test_the_digest_of_a_session_that_goes_on_tells_of_sub_agents_and_traps(store: Store, memory: Path) -> None:
    one = talk(store)
    agent = Talk(store, "s1", project="till")
    agent.number = 50
    agent.say("user", "look at the vouchers", agent_id="a1")
    agent.say("assistant", "The vouchers are fine.", agent_id="a1")
    one.say("assistant", "Watch out: `round` rounds half to even, so 0.5 cents fail silently on every second price.")
    settle(store, memory)
    (told,) = yaml.safe_load((memory / "daily/2026-03-01.yaml").read_text())["sessions"]
    assert told["agents"] == [{"id": "a1", "turns": 2, "outcome": "answered"}]


def test_what_an_assistant_repeats_in_a_session_after_the_forgetting_is_told_on_no_day(store: Store) -> None:
    said = "Use Postgres for the job queue"

    def story(rows: Rows) -> list[bool]:
        alpha, beta = (
            projects.ensure(rows, Project(key=name, root=f"/p/{name}", name=name, kind="path"), now=LATER)
            for name in ("alpha", "beta")
        )
        rows.run(
            "insert into sessions (id, host, project_seq, started_at, last_at) values ('s9', 'claude', :p, :at, :at)",
            p=alpha, at=LAST,
        )  # fmt: skip
        found = []
        for place in (beta, alpha):
            tombstones.forget(rows, said, correction=False, by="user", key=store.hash_key, now=LATER, scope=place)
            found.append(stored_days.make_forgotten_test(rows, "s9", key=store.hash_key)(said))
        return found

    assert store.write(story) == [False, True]
