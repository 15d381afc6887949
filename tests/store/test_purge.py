"""After a purge nothing is left of it in any column or byte, and it does not come back; what is not meant stays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from csmd.briefs import BriefItem
from csmd.extraction import digest, work
from csmd.knowledge import Candidate, Link, Packet, Provenance, State
from csmd.memory import session_links, work_outcomes
from csmd.privacy.fingerprints import PURGED, Needle
from csmd.store import (
    activity,
    belief_changes,
    candidates,
    checkpoints,
    cursors,
    digests,
    events,
    failures,
    files,
    fulltext,
    goals,
    instruction_rows,
    journal,
    memories,
    memory_links,
    memory_scenes,
    packet_rows,
    projects,
    provisional_turns,
    purge,
    purge_files,
    purge_plans,
    receipts,
    search,
    session_link_rows,
    statement_rows,
    telemetry_rows,
    text_columns,
    token_usage,
    tombstones,
    turns,
    vectors,
    work_outcome_rows,
    workspaces,
)
from csmd.store.byte_search import count_in_bytes
from csmd.store.core import Store
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows
from csmd.store.token_usage import MessageTokens
from csmd.text import tokens

Given = Any
MARK = "Zanzibar quokka"
LATER, AFTER = "2026-02-01T00:00:00.000Z", "2026-02-01T00:00:01.000Z"


def say(rows: Rows, given: Given, uuid: str, said: str, *, name: str = "shop", **more: Any) -> int:
    """A turn with a statement, a memory that it states, and their vectors; the memory's row key."""
    project = projects.ensure(rows, given.project(name), now=given.now)
    turn = given.turn(uuid, said, cwd=f"/home/me/{name}", **more)
    turns.add_turn(
        rows,
        turn,
        text_hash=tokens.keyed_hash(said, key_of(rows)),
        host="claude",
        project=project,
        path=f"/t/{turn.session_id}.jsonl",
    )
    seq = search.turns_of_uuids(rows, [uuid])[uuid]
    stored = given.stored(seq, project, uuid=uuid)
    session = rows.value("select session_seq from turns where seq = :seq", seq=seq)
    statement_rows.add_statement(
        rows, given.statement(said), stored, session_seq=session, text_hash=tokens.keyed_hash(said, key_of(rows))
    )
    memory = given.memory(f"m-{uuid}", said, uuids=(uuid,), project=project, session_id=turn.session_id)
    memory = replace(memory, provenance=(Provenance(uuid=uuid, session_id=turn.session_id, at=given.now),))
    made = memories.insert(rows, memory, text_hash=tokens.keyed_hash(said, key_of(rows)))
    model = vectors.ensure_model(rows, "m", 4, now="")
    vectors.add_vectors(rows, "passage", model, [(seq, project, 0, 5, vector(seq))], reached=seq)
    vectors.add_vectors(rows, "memory", model, [(made, project, 0, 5, vector(made + 100))], reached=made)
    receipts.add_receipt(rows, receipt_id=f"r-{uuid}", session_id=turn.session_id, event="prompt", project=project, at=given.now,
                        tokens=1, text_hash="h", items=[BriefItem(id=memory.id, score=1.0, reason="x")])  # fmt: skip
    event = given.event(f"e-{uuid}", said, session=turn.session_id)
    events.record_event(rows, event, text_hash=tokens.keyed_hash(said, key_of(rows)), payload_hash=uuid)
    return made


def dream(rows: Rows, *, now: str) -> None:
    """A dream that changed one memory and one page."""
    named = {"now": now}
    rows.run("insert into dreams (id, why, state, begun_at) values ('d1', 'asked', 'done', :now)", **named)
    rows.run(
        "insert into change_sets (dream_seq, by_whom, kind, project_seq, reason, evidence, at) "
        "select seq, 'dream', 'merge', 0, 'why', '', :now from dreams",
        **named,
    )
    rows.run(
        "insert into changed_rows (set_seq, item, text, state, more, text_after, state_after, more_after) "
        "select seq, 'm-u00', 'text', '{}', '{}', 'text', '{}', '{}' from change_sets"
    )
    rows.run(
        "insert into changed_files (set_seq, path, before, after, was_there, is_there) "
        "select seq, 'memory/user.md', '', 'a line', 0, 1 from change_sets"
    )
    rows.run("insert into pages (path, text, at) values ('memory/user.md', 'a line', :now)", **named)


def key_of(rows: Rows) -> bytes:
    return bytes(rows.value("select value from meta where key = 'hash_key'"))


def vector(number: int) -> bytes:
    return bytes([7, number % 256, 8, 9])


@pytest.fixture
def filled(store: Store, given: Given) -> Iterator[Store]:
    """Two projects, three sessions, one of them forked; turns around the mark and others."""

    def story(rows: Rows) -> None:
        for number, (session, name) in enumerate((("s1-first", "shop"), ("s2-other", "shop"), ("s3-third", "bank"))):
            for place in range(4):
                uuid = f"u{number}{place}"
                said = f"the {session} says number {place} of {name} in words that nobody else has said {uuid}"
                say(rows, given, uuid, said, session=session, name=name, second=number * 100 + place)
            cursors.save_file(rows, state(f"/t/{session}.jsonl"), now=given.now)
            turns.set_title(rows, session, f"title of {session}")
        one = projects.ensure(rows, given.project("shop"), now=given.now)
        projects.add_alias(rows, "another", one, path="/home/me/old", why="by hand", now=given.now)
        told = [instruction_rows.Instruction(path="/p/CLAUDE.md", kind="Project", root="/p", text="t", text_hash="h")]
        instruction_rows.replace_instructions(rows, one, told, now=given.now)
        workspaces.add_topic(rows, workspaces.ensure(rows, "lens", now=given.now), "a topic")
        candidates.put_candidate(rows, CANDIDATE)
        dream(rows, now=given.now)
        row = checkpoints.CheckpointRow(0, "k1", 1, "", 0, "asked", "", given.now, 1, given.now, "", "a note", "", "")
        said = rows.value("select text from turns where uuid = 'u00'")
        checkpoints.save_checkpoint(
            rows, row, [("goal", "a goal", "u00", "", 1)], [("u00", "user", "", given.now, said)]
        )
        goals.add_goal(rows, project=one, session_id="", text="a goal", authority="user", now=given.now)
        session = int(rows.value("select max(seq) from sessions"))
        item = work.Item("goal", "a goal", "u20")
        told_of = digest.Digest("end", 4, given.now, "Goal: a goal", "answered", 1, 0, 0, (item,))
        digests.replace(rows, session, [told_of], turns=4)
        session_link_rows.replace_links(
            rows,
            session,
            [session_links.Link(0, session, "unseen commit", "1a2b3c4", 0.7, ("u20",))],
            {"unseen commit": "gap"},
        )
        work_outcome_rows.replace_outcomes(
            rows, session, [work_outcomes.WorkEnding("tests", "well", "`pytest` passed", "u20")], at=given.now
        )
        belief_changes.record_change(rows, "m-u00", "edit", "before", "after", "reason", "user", given.now)
        packet_rows.put_packets(rows, [PACKET])
        belief_changes.record_change(rows, "m-u00", "promoted", "", "", "", "csmd", given.now)
        memory = memories.by_id(rows, "m-u00")
        assert memory is not None
        pinned = replace(memory, pinned=True)
        journal.record_answer(
            rows,
            lambda: str(memories.update_belief(rows, pinned) or ""),
            kind="pin",
            item="m-u00",
            project=one,
            now=given.now,
        )
        failures.add_error(
            rows, fingerprint="f", command="c", exit_code=1, message="m", turn=1, session=1, at=given.now
        )
        failures.add_error(
            rows, fingerprint="g", command="c", exit_code=1, message="m", turn=2, session=1, at=given.now
        )
        failures.add_fix(rows, error=1, turn=1, session=1, uuid="u01", at=given.now, files=["f"], text="t")
        failures.add_symptom(rows, 1, uuid="u01", at=given.now, text="t", fingerprint="f")
        memory_scenes.set_scene(rows, 1, uuid="u01", text="at src/cart.py")
        belief_changes.record_change(
            rows, "m-before", "edited", "as it was", "as it is", "somebody edited it", "person", "2026-01-01"
        )
        memory_links.add_link(rows, Link(from_id="m-u00", to_id="m-u20", relationship="RELATES_TO"), now="")

    store.write(story)
    yield store


@pytest.mark.parametrize(
    ("table", "column", "left"),
    [("candidates", "text", ["mended"]), ("candidates", "reason", ["mended"]), ("changed_rows", "text", ["text"]),
     ("changed_rows", "more_after", ["{}"])],
)  # fmt: skip
def test_a_secret_that_is_mended_is_taken_out_of_the_queue_and_with_what_could_bring_it_back(
    filled: Store, table: str, column: str, left: list[str]
) -> None:
    def write(rows: Rows) -> Any:
        seq = rows.value(f"select max(seq) from {table}")
        purge.change_row(rows, table, column, seq, "mended", key_of(rows), in_place=True)
        return [said for (said,) in rows.all(f"select {column} from {table}")]

    assert filled.write(write) == left


CANDIDATE = Candidate(id="c1", kind="belief", source="scan", project_seq=0, fingerprint="f", text="t", reason="r", confidence=0.5,
                      created_at="2026-01-01", updated_at="2026-01-01")  # fmt: skip


PACKET = Packet(kind="order", subject="commit", outcome="asked", uuid="u00", session_id="s1-first", project_seq=1, ordinal=1,
                at="2026-01-01", words=1, state=State(frustration=0, energy=0, stance="orders", urgency=0))  # fmt: skip


def state(path: str) -> cursors.FileState:
    return cursors.FileState(path=path, device=1, inode=1, position=9, head="h")


def plan_of(store: Store, typed: str, **more: Any) -> purge_plans.Plan:
    return store.read(lambda rows: purge_plans.resolve_plan(rows, typed, key=store.hash_key, **more))


def carry_out(store: Store, plan: purge_plans.Plan, *, now: str = LATER) -> int:
    """What the daemon does with a plan, without its files."""
    needles = [Needle(said) for said in plan.texts]

    def found(rows: Rows) -> set[str]:
        said: set[str] = set()
        for table, column in text_columns.PURGE_ACTIONS:
            after: int | None = 0
            while after is not None:
                after, more = purge_plans.find_variants(rows, needles, table, column, after)
                said |= more
        return said

    said = sorted(store.read(found))
    store.write(lambda rows: purge_plans.add_tombstones(rows, plan, said, key=store.hash_key, now=now))
    changed = store.write(lambda rows: purge.apply_tombstones(rows, store.hash_key))
    assert store.cleanse()
    return changed


def left_in_bytes(path: Path, *said: str) -> int:
    return sum(count_in_bytes(file, [Needle(one) for one in said]) for file in path.parent.glob(f"{path.name}*"))


FORMS = {"as it is": MARK, "shouted": MARK.upper(), "over lines": "zanzibar\n  > *quokka*", "in JSON": '"Zanzibar\\nQuokka"',
         "glued to more": "prezanzibar quokkas"}  # fmt: skip


@pytest.mark.invariant(
    "What was purged is in no column and no byte, and does not come back: by import, hook, command line or backup"
)
@pytest.mark.parametrize("form", FORMS)
def test_no_column_and_no_byte_holds_a_purged_text(filled: Store, given: Given, path: Path, form: str) -> None:
    def plant(rows: Rows) -> None:
        # A turn takes its passages along: theirs is planted when it has been.
        for number, (table, column) in enumerate(
            sorted(text_columns.TEXT_COLUMNS, key=lambda one: (one[0] == "passages", one))
        ):
            key = "path" if table in text_columns.KEYED_BY_PATH else "seq"
            row = rows.value(f"select max({key}) from {table}")
            planted = f"before {number}. {FORMS[form]}; after {number}"
            rows.run(f"update {table} set {column} = :said where {key} = :row", said=planted, row=row)

        passage, turn = rows.first("select max(seq), max(turn_seq) from passages") or (0, 0)
        vectors.add_vectors(rows, "passage", 1, [(passage, 0, 0, 5, vector(turn))], reached=0)

    filled.write(plant)
    filled.checkpoint(truncate=True)
    assert left_in_bytes(path, MARK) >= len(text_columns.TEXT_COLUMNS) - 2
    before = filled.read(activity.counts)
    newest = filled.read(lambda rows: [rows.value(f"select max(seq) from {table}") for table in ("turns", "memories")])
    gone = [vector(newest[0]), vector(newest[1] + 100)]
    assert all(any(one in file.read_bytes() for file in path.parent.glob("csmd.db*")) for one in gone)
    # Of a row with several columns one change takes two of them at times, what mended an error goes with it, and a topic with its memory;
    # kept answers have gone before.
    assert carry_out(filled, plan_of(filled, MARK)) >= len(text_columns.TEXT_COLUMNS) - 15
    assert left_in_bytes(path, MARK) == 0
    assert not any(one in file.read_bytes() for file in path.parent.glob("csmd.db*") for one in gone)
    assert filled.write(check_database) == []
    after = filled.read(activity.counts)
    changed = {name: before[name] - after[name] for name in before if before[name] != after[name]}
    assert changed == {"statements": 1, "memories": 1, "vectors": 2}
    said = filled.read(lambda rows: rows.value("select text from turns order by seq desc limit 1"))
    assert said.startswith("before ") and PURGED in said and "; after" in said
    # Its cursor is known again by its name, which stands nowhere.
    assert filled.read(lambda rows: len(rows.all("select 1 from files where path like 'purged:%'"))) == 1


@pytest.mark.invariant(
    "Passages stand for what turns say now, on every path, and so do their full-text index and vectors"
)
def test_no_byte_of_the_index_of_passages_holds_a_purged_turns_words(filled: Store, given: Given, path: Path) -> None:
    """It keeps no texts, so it is told of a deletion by key alone: the words leave it with the next merge, at the latest here."""
    filled.write(lambda rows: say(rows, given, "u99", "first. The zanzibarian okapi sleeps.", name="shop"))
    filled.write(lambda rows: say(rows, given, "u98", "second. An okapi eats.", name="shop"))

    def holding(word: str) -> int:
        return sum(
            word.encode() in block
            for (block,) in filled.read(lambda rows: rows.all("select block from passages_fts_data"))
        )

    def hits(word: str) -> int:
        return len(filled.read(lambda rows: fulltext.text_hits(rows, "passage", [word], projects=None, limit=9)))

    assert holding("zanzibarian") and hits("okapi") == 2
    carry_out(filled, plan_of(filled, "u99"))
    assert not holding("anzibarian") and hits("okapi") == 1
    assert not any(b"anzibarian" in file.read_bytes().lower() for file in path.parent.glob("csmd.db*"))
    carry_out(filled, plan_of(filled, "An okapi eats"))
    assert not holding("kapi") and hits("okapi") == 0
    assert filled.write(check_database) == []


def test_several_places_below_one_purged_name_are_all_hidden(filled: Store, given: Given, path: Path) -> None:
    """Directories and instruction files are told apart by their paths: what takes their place must tell them apart, too."""
    folder = "/home/me/zanzibar-quokka"

    def plant(rows: Rows) -> None:
        place = replace(given.project("trip"), root=folder)
        seq = projects.ensure(rows, place, now=given.now)
        for below in ("a", "b"):
            projects.ensure_with_directory(rows, replace(place, place=f"{folder}/{below}"), now=given.now)
        told = [
            instruction_rows.Instruction(path=f"{folder}/{name}", kind="Project", root=folder, text="t", text_hash="h")
            for name in ("CLAUDE.md", ".claude/CLAUDE.md")
        ]
        instruction_rows.replace_instructions(rows, seq, told, now=given.now)

    filled.write(plant)
    carry_out(filled, plan_of(filled, MARK))
    assert left_in_bytes(path, MARK) == 0
    for table in ("directories", "instructions"):
        hidden = f"select count(*) from {table} where path like 'purged:%'"
        assert filled.read(lambda rows, hidden=hidden: rows.value(hidden)) == 2
    assert filled.write(check_database) == []


def texts_of(store: Store, where: str = "1 = 1") -> list[str]:
    return [
        said for (said,) in store.read(lambda rows: rows.all(f"select text from turns t where {where} order by seq"))
    ]


def test_a_purged_session_leaves_its_turns_listed_and_empty_and_no_other_loses_anything(
    filled: Store, given: Given, path: Path
) -> None:
    def fork(rows: Rows) -> None:
        again = given.turn("u00", texts_of_first, session="s9-forked", second=900)
        turns.add_turn(rows, again, text_hash="", host="claude", project=1, path="")
        memories.add_provenance(rows, 2, Provenance(uuid="u10", session_id="s2-other", at=given.now))
        agent = given.turn("a1", "what the agent of the first one said among its own", session="s1-first", agent_id="a")
        turns.add_turn(rows, agent, text_hash="", host="claude", project=1, path="")

        made = telemetry_rows.Composition(
            at=given.now, session_id="s1-first", event="prompt", chosen=0, cut=0, tokens=0, degraded=0, ms=0
        )
        telemetry_rows.add_records(rows, [made, made._replace(session_id="s2-other")], before="", key=key_of(rows))
        token_usage.record_usage(
            rows, [MessageTokens(one, "m", 1, 1, 1, 1) for one in ("s1-first", "s1-first/a", "s2-other")]
        )

    texts_of_first = texts_of(filled)[0]
    filled.write(fork)
    others = texts_of(filled, "t.uuid like 'u1%' or t.uuid like 'u2%'")
    plan = plan_of(filled, "s1-first"[:6])
    assert plan.what == "session" and len(plan.turns) == 5
    carry_out(filled, plan)
    assert texts_of(filled, "t.uuid like 'u0%' or t.uuid = 'a1'") == [PURGED] * 5
    assert texts_of(filled, "t.uuid like 'u1%' or t.uuid like 'u2%'") == others
    assert len(plan.probes) == 5
    assert left_in_bytes(path, *(said for said in plan.probes if "number 1" not in said)) == 0
    listed = filled.read(lambda rows: memories.list_memories(rows, projects=None))
    # The second memory was confirmed elsewhere; it stays, and names a session that is left.
    assert {memory.id for memory in listed} == {"m-u01", *(f"m-u{a}{b}" for a in (1, 2) for b in range(4))}
    assert next(memory for memory in listed if memory.id == "m-u01").session_id == "s2-other"
    for table in ("injections", "events", "context_log"):
        assert filled.read(lambda rows: rows.value(f"select count(*) from {table} where session_id = 's1-first'")) == 0  # noqa: B023
    assert filled.read(lambda rows: rows.value("select count(*) from context_log")) == 1
    left = filled.read(lambda rows: rows.all("select s.id from usage u join sessions s on s.seq = u.session_seq"))
    assert left == [("s2-other",)]
    assert filled.write(check_database) == []


def test_a_purged_project_leaves_neither_its_name_nor_what_was_said_in_it(
    filled: Store, given: Given, path: Path
) -> None:
    plan = plan_of(filled, "/home/me/bank", project_key="key-bank")
    assert (plan.what, plan.sessions, plan.files) == ("project", ["s3-third"], ["/t/s3-third.jsonl"])

    def known(rows: Rows) -> None:
        bank = replace(given.project("bank"), remote="example.org/heron-bank", fingerprint="f" * 16)
        seq = projects.ensure_with_directory(rows, bank, now=given.now).seq
        projects.add_alias(rows, "key-old-bank", seq, path="/home/me/heron-bank", why="moved", now=given.now)
        told = [
            instruction_rows.Instruction(
                path="/home/me/heron-bank/CLAUDE.md", kind="Project", root="/home/me/bank",
                text="The heron bank settles at noon", text_hash="h",
            )
        ]  # fmt: skip
        instruction_rows.replace_instructions(rows, seq, told, now=given.now)

    filled.write(known)
    carry_out(filled, plan)
    assert left_in_bytes(path, "/home/me/bank", "s3-third.jsonl", "heron-bank", "heron bank", *plan.probes) == 0
    for key in ("key-bank", "key-old-bank"):
        assert filled.read(lambda rows, key=key: projects.seq_of(rows, replace(given.project(), key=key))) is None
    assert {row[1] for row in filled.read(activity.project_counts)} == {"/home/me/shop", PURGED}
    assert filled.read(lambda rows: memory_links.list_links(rows, "m-u00")) == []
    # What begins in it later is another project.
    again = filled.write(lambda rows: projects.ensure(rows, given.project("bank"), now=AFTER))
    assert filled.write(lambda rows: purge.apply_tombstones(rows, filled.hash_key)) == 0
    assert filled.read(lambda rows: projects.name_of(rows, again)) == "bank"
    assert filled.write(check_database) == []


def test_a_purged_turn_goes_with_its_blocks(filled: Store, given: Given, path: Path) -> None:
    filled.write(
        lambda rows: say(
            rows, given, "u10/1", "the second block of a line that has two", session="s2-other", second=800
        )
    )
    plan = plan_of(filled, "u10")
    assert (plan.what, plan.turns[::2]) == ("turn", ["u10", "u10/1"])
    assert all(name.startswith("s2-other:") for name in plan.turns[1::2]), "a hook may report the words again"
    carry_out(filled, plan)
    assert texts_of(filled, "t.uuid like 'u10%'") == [PURGED, PURGED]
    assert left_in_bytes(path, *plan.probes) == 0 and len(plan.probes) == 2
    assert filled.read(lambda rows: memories.by_id(rows, "m-u10")) is None


def test_a_purged_memory_takes_the_sentences_it_came_from_out_of_their_turns(
    filled: Store, given: Given, path: Path
) -> None:
    said = "we deploy the billing service each Monday"

    def story(rows: Rows) -> None:
        seq = say(rows, given, "v1", said, session="s2-other", second=801)
        rows.run(
            "update turns set text = :said where uuid = 'v1'",
            said="Fine.\n- **We deploy** the billing\n  service each Monday\n- and",
        )
        say(
            rows,
            given,
            "v2",
            "deployment of billing happens on the first day of a week",
            session="s3-third",
            second=802,
        )
        memories.add_provenance(rows, seq, Provenance(uuid="v2", session_id="s3-third", at=given.now))

    filled.write(story)
    plan = plan_of(filled, "m-v1")
    assert (plan.what, plan.texts, plan.turns[0]) == ("memory", [said], "v2")
    carry_out(filled, plan)
    # Where it was said so the words go, where it was said otherwise the turn.
    assert texts_of(filled, "t.uuid like 'v%'") == [f"Fine.\n- **{PURGED}\n- and", PURGED]
    assert left_in_bytes(path, *plan.probes) == 0
    key = filled.hash_key
    assert filled.read(lambda rows: tombstones.is_forgotten(rows, f"{said}!", at=AFTER, key=key)), "whenever"


@pytest.mark.parametrize("typed", ["m-v2", "v1"], ids=["the memory", "the turn that proposed it"])
def test_what_was_accepted_in_a_few_words_goes_with_the_words_that_proposed_it(
    filled: Store, given: Given, path: Path, typed: str
) -> None:
    proposed = "I propose to keep the walrus ledger in a tidal vault."

    def story(rows: Rows) -> None:
        say(rows, given, "v1", f"I looked at it. {proposed}", session="s2-other", second=801, kind="assistant")
        say(rows, given, "v2", "yes, do that", session="s2-other", second=802)
        taken = f"{proposed} -> yes, do that"
        rows.run("update memories set text = :taken where id = 'm-v2'", taken=taken)
        rows.run("update statements set text = :taken where text = 'yes, do that'", taken=taken)

    filled.write(story)
    carry_out(filled, plan_of(filled, typed))
    assert left_in_bytes(path, "walrus ledger") == 0


def test_what_is_typed_is_tried_in_an_order_that_can_be_overruled(filled: Store, given: Given) -> None:
    kinds = {typed: plan_of(filled, typed, project_key=key).what
             for typed, key in (("m-u00", ""), ("u01", ""), ("s1-first", ""), ("/home/me/shop", "key-shop"), ("s1-fi", ""),
                                ("/home/me/none", "key-none"))}  # fmt: skip
    assert list(kinds.values()) == ["memory", "turn", "session", "project", "text", "text"]
    assert plan_of(filled, "s1-first", kind="text").what == "text"
    for typed, kind in (("nothing", "memory"), ("nothing", "person"), ("abc", ""), ("s", "session")):
        with pytest.raises(Exception, match=r"no such|unknown kind|fewer than"):
            plan_of(filled, typed, kind=kind)


@pytest.mark.invariant(
    "What was purged is in no column and no byte, and does not come back: by import, hook, command line or backup"
)
def test_a_backup_from_before_is_purged_by_the_tombstones_alone(filled: Store, given: Given, path: Path) -> None:
    """What `restore` does: the copy gets the tombstones, then honours them; how it was purged does not matter."""
    filled.write(lambda rows: rows.run("update turns set text = text || ' zanzibar quokka' where uuid = 'u23'"))
    filled.write(lambda rows: rows.run("update memories set text = 'prezanzibar quokkas' where id = 'm-u22'"))
    copy = path.with_name("copy.db")
    filled.checkpoint(truncate=True)
    copy.write_bytes(path.read_bytes())
    for typed, key in ((MARK, ""), ("s1-first", ""), ("u10", ""), ("/home/me/bank", "key-bank")):
        carry_out(filled, plan_of(filled, typed, project_key=key))
    forgotten = filled.read(lambda rows: memories.by_id(rows, "m-u12"))
    filled.write(
        lambda rows: tombstones.forget(
            rows, forgotten.text, correction=False, by="user", key=filled.hash_key, now=LATER
        )
    )
    laid = filled.read(lambda rows: rows.all("select * from tombstones"))
    restored = Store(copy, now=LATER)
    try:

        def take_over(rows: Rows) -> None:
            for row in laid:
                rows.run(
                    "insert into tombstones values (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j)",
                    **dict(zip("abcdefghij", row, strict=True)),
                )

        restored.write(take_over)
        changed = restored.write(lambda rows: purge.apply_tombstones(rows, restored.hash_key))
        assert changed > 10
        assert restored.write(lambda rows: purge.apply_tombstones(rows, restored.hash_key)) == 0
        assert restored.cleanse()
        assert left_in_bytes(copy, MARK, "/home/me/bank") == 0
        left = [said for said in texts_of(restored) if said != PURGED]
        assert left == [said for said in texts_of(filled) if said != PURGED] and len(left) == 3
        listed = restored.read(lambda rows: {memory.id for memory in memories.list_memories(rows, projects=None)})
        assert listed == {"m-u11", "m-u13"}
        assert restored.write(check_database) == []
    finally:
        restored.close()


def test_a_purge_that_was_broken_off_at_any_step_is_finished_by_its_tombstones(
    filled: Store, given: Given, path: Path
) -> None:
    filled.write(
        lambda rows: rows.run("update turns set text = text || ' zanzibar quokka' where uuid in ('u03', 'u23')")
    )
    filled.write(
        lambda rows: rows.run("update memories set text = text || ' zanzibar quokka' where id in ('m-u03', 'm-u23')")
    )
    key = filled.hash_key
    plan = plan_of(filled, MARK)
    filled.write(lambda rows: purge_plans.add_tombstones(rows, plan, [], key=key, now=LATER))
    assert filled.read(purge.is_unfinished)
    for one in itertools.islice(purge.PASSES, 4):  # it got this far
        filled.write(lambda rows, one=one: one(rows, key, 0))
    filled.write(lambda rows: purge.apply_tombstones(rows, key))
    filled.write(purge.record_end)
    assert filled.cleanse() and left_in_bytes(path, MARK) == 0
    assert not filled.read(purge.is_unfinished)


def test_an_event_that_was_reported_before_the_purge_still_stands_for_its_turn(filled: Store, given: Given) -> None:
    filled.write(lambda rows: say(rows, given, "w1", f"yes, {MARK}", session="s2-other", second=900))
    carry_out(filled, plan_of(filled, MARK))

    def hear(rows: Rows) -> bool:
        event = given.event("e-again", f"yes, {PURGED}", session="s2-other", second=950)
        hash_ = tokens.keyed_hash(event.text, filled.hash_key)
        assert events.record_event(rows, event, text_hash=hash_, payload_hash="p2")
        turn = given.turn("hook:e-again", event.text, session="s2-other", second=950)
        return provisional_turns.add_provisional(
            rows, turn, event="prompt", text_hash=hash_, host="claude", project=1, path=""
        )

    assert filled.write(hear)  # the second report of this text, of which one turn is stored


def test_lifting_what_was_typed_lets_in_the_longer_words_that_it_was_found_in(filled: Store, given: Given) -> None:
    key, part = filled.hash_key, MARK[: len(MARK) - 2]

    def is_out(rows: Rows) -> bool:
        return bool(tombstones.purged_marks(rows, key).spans(f"so {MARK} it is"))

    filled.write(lambda rows: say(rows, given, "w1", f"yes, {MARK}", session="s2-other", second=900))
    plan = plan_of(filled, part)
    carry_out(filled, plan)
    assert filled.read(is_out), "whole words go"
    assert filled.write(lambda rows: purge_plans.remove_tombstones(rows, plan, key=key)) >= 1
    assert not filled.read(is_out) and not filled.read(tombstones.has_purged)


def test_of_two_texts_purged_together_lifting_one_lets_in_only_what_it_alone_was_found_in(filled: Store) -> None:
    key, texts = filled.hash_key, ["zanzib", "quokk"]
    plan = replace(plan_of(filled, texts[0]), texts=texts)
    found = ["zanzibar", "quokka", "zanzibar-quokka"]

    def still_out(rows: Rows) -> list[str]:
        out = tombstones.purged_marks(rows, key)
        return [said for said in ("zanzibar", "quokka") if out.spans(f"so {said} it is")]

    filled.write(lambda rows: purge_plans.add_tombstones(rows, plan, found, key=key, now=LATER))
    assert filled.read(still_out) == ["zanzibar", "quokka"]
    for one, left in zip(texts, (["quokka"], []), strict=True):
        assert filled.write(lambda rows, one=one: tombstones.remove_text(rows, one, key=key))
        assert filled.read(still_out) == left
        both = filled.read(lambda rows: tombstones.purged_marks(rows, key)).spans("so zanzibar-quokka it is")
        assert bool(both) is bool(left), "both have found it"


def test_lifting_lets_in_again(filled: Store, given: Given) -> None:
    key = filled.hash_key
    for typed, project in ((MARK, ""), ("s1-first", ""), ("u10", ""), ("/home/me/bank", "key-bank")):
        plan = plan_of(filled, typed, project_key=project)
        carry_out(filled, plan)
        again = plan_of(filled, typed, project_key=project)
        assert filled.write(lambda rows, again=again: purge_plans.remove_tombstones(rows, again, key=key)) >= 1
    assert (
        filled.read(
            lambda rows: rows.value("select count(*) from tombstones where kind in ('text', 'session', 'project')")
        )
        == 0
    )


def test_files_of_every_kind_are_purged_in_their_way(filled: Store, given: Given, path: Path) -> None:
    home = path.parent
    log, held = home / "log", f"x {MARK.upper()} y\n"
    for name in ("spool/1.event", "spool/.tmp-1", "quarantine/a.json", "log/csmd.log", "log/csmd.log.1", "log/crash.txt",
                 "run/start.stderr", "install.json", "csmd.before-migration.db", "backups/b.tar"):  # fmt: skip
        (home / name).parent.mkdir(exist_ok=True)
        files.write_atomic(home / name, held.encode())
        files.write_atomic((home / name).with_name("other-" + (home / name).name.lstrip(".")), b"nothing")
    filled.write(lambda rows: rows.run("update turns set text = :said where uuid = 'u00'", said=held))
    filled.checkpoint(truncate=True)
    (home / "backups" / "holds.db").write_bytes(path.read_bytes())
    carry_out(filled, plan_of(filled, MARK))
    (home / "backups" / "clean.db").write_bytes(path.read_bytes())
    marks = filled.read(lambda rows: tombstones.purged_marks(rows, filled.hash_key))
    done = purge_files.purge(home, log, marks, [], everything=False)
    assert {Path(name).name for name in done.rewritten} == {"csmd.log", "csmd.log.1"}
    assert {Path(name).name for name in done.kept} == {"install.json"}
    assert {str(Path(name).relative_to(home)) for name in done.removed} == {
        "spool/1.event", "spool/.tmp-1", "quarantine/a.json", "log/crash.txt", "run/start.stderr",
        "csmd.before-migration.db", "backups/b.tar", "backups/other-b.tar", "backups/holds.db",
    }  # fmt: skip
    assert {file.name for file in (home / "backups").iterdir()} == {"clean.db"}
    assert (log / "csmd.log").read_text() == f"x {PURGED} y\n" and (home / "backups" / "clean.db").exists()
    purge_files.purge(home, log, marks, [], everything=True)
    assert not list((home / "backups").glob("*.db"))
    assert tombstones.list_turn_names("a/1", "s", "h") == ("a/1", "a", "s:h")


def test_a_plan_names_the_projects_in_which_its_text_stands_and_none_behind_a_wall(filled: Store) -> None:
    plan = plan_of(filled, "in words that nobody else has said", kind="text")
    every = filled.read(lambda rows: purge_plans.list_affected_projects(rows, plan))
    counted = filled.read(lambda rows: purge_plans.count_matches(rows, plan))
    assert [(one["project"], one["turns"]) for one in every] == [("/home/me/shop", 8), ("/home/me/bank", 4)]
    assert sum(one["turns"] for one in every) == counted["turns.text"]
    assert sum(one["memories"] for one in every) == counted.get("memories.text", 0)
    bank = filled.read(lambda rows: int(rows.value("select seq from projects where root = '/home/me/bank'")))
    assert filled.read(lambda rows: purge_plans.list_affected_projects(rows, plan, seen=[0, bank])) == every[1:]


def test_secrets_that_are_known_already_take_no_room_of_new_ones(store: Store) -> None:
    known = [f"aa-known-{number:04}-Secret" for number in range(tombstones.MAX_SECRETS - 1)]

    def note(rows: Rows, secrets: list[str]) -> bool:
        return tombstones.record_secrets(rows, "s1", secrets, key=store.hash_key, now=LATER)

    assert store.write(lambda rows: note(rows, known))
    assert store.write(lambda rows: note(rows, [*known, "zz-new-one-Secret"]))
    assert not store.write(lambda rows: note(rows, ["zz-one-too-many-Secret"])), "there is no room for more"
    assert not store.write(lambda rows: note(rows, ["zz-new-one-Secret"])), "it is known now"
