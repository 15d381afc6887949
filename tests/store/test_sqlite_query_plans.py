"""What runs for every prompt, answer and step finds its rows by an index: its time does not grow with the store.

The plans are SQLite's own, asked for every statement that the functions really run.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from csmd.store import (
    activity,
    activity_feed,
    belief_changes,
    checkpoints,
    cursors,
    dream_scopes,
    dreams,
    events,
    failure_link_rows,
    failures,
    fulltext,
    goals,
    instruction_rows,
    journal,
    memories,
    memory_deletion,
    memory_links,
    memory_scenes,
    memory_snapshots,
    memory_upkeep,
    passages,
    probes,
    projects,
    provisional_turns,
    receipts,
    search,
    session_contents,
    session_context,
    sessions,
    statement_rows,
    stored_days,
    telemetry_rows,
    text_retention,
    token_usage,
    tombstones,
    topics,
    turns,
    vectors,
)
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.store.token_usage import MessageTokens

Given = Any
#: A scan of these is of a handful of rows (`u`: of the notes on unheard sessions; `n`: of receipts not judged yet; `own`, `held`: of what a statement has
#: limited itself to before), of what the full-text index found, or of what a statement within this one found (its own
#: steps are looked at).
SMALL = re.compile(
    r"SCAN (?:CONSTANT ROW|\(subquery-\d+\)|vector_models(?: USING COVERING INDEX \S+)?|sessions USING INDEX sessions_of_probes|u(?: USING INDEX \S+)?|own|held|n USING INDEX injections_unjudged"
    r"|\w+ VIRTUAL TABLE INDEX .*)"
)


class Watching(Rows):
    """Rows that remember what was run, with its values."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.ran: list[tuple[str, dict[str, Any]]] = []

    def all(self, sql: str, **values: Any) -> Any:
        self.ran.append((sql, values))
        return super().all(sql, **values)


def scans(rows: Rows, ran: list[tuple[str, dict[str, Any]]]) -> set[str]:
    """The steps of these statements' plans that read a whole table or index."""
    found = set()
    for sql, values in ran:
        for *_, step in rows.all(f"explain query plan {sql}", **values):
            if step.startswith("SCAN ") and not SMALL.fullmatch(step):
                found.add(f"{step}: {sql}")
    return found


def story(rows: Rows, given: Given) -> int:
    """A project, a line and a hook's turn, so that every function comes to its last statement."""
    project = projects.ensure(rows, given.project(), now=given.now)
    for uuid, said, kind, second in (("l1", "yes", "notification", 0), ("l2", "later", "user", 200)):
        turn = given.turn(uuid, said, kind=kind, second=second)
        turns.add_turn(rows, turn, text_hash=given.hash(said), host="claude", project=project, path="")
    for ident, said in (("e1", "yes"), ("e2", "only here")):
        event = given.event(ident, said, second=60)
        events.record_event(rows, event, text_hash=given.hash(said), payload_hash=ident)
        provisional_turns.add_provisional(
            rows, given.turn(f"hook:{ident}", said, second=60), event="prompt", text_hash=given.hash(said),
            host="claude", project=project, path="",
        )  # fmt: skip
    memories.insert(rows, given.memory("m1", "use tabs", project=project), text_hash="h")
    model = vectors.ensure_model(rows, "m", 4, now="")
    vectors.add_vectors(rows, "memory", model, [(1, project, 0, 1, b"abcd")], reached=0)
    vectors.add_vectors(rows, "passage", model, [(1, project, 0, 1, b"abcd")], reached=0)
    return project


def _add_turn(rows: Rows, given: Given) -> None:
    for uuid, said in (("l3", "only here"), ("l4", "new"), ("l4", "new")):
        turn = given.turn(uuid, said, second=300)
        turns.add_turn(rows, turn, text_hash=given.hash(said), host="claude", project=1, path="/t")


def _add_provisional(rows: Rows, given: Given) -> None:
    events.record_event(rows, given.event("e9", "yes", second=300), text_hash=given.hash("yes"), payload_hash="e1")
    events.record_event(rows, given.event("e8", "yes", second=301), text_hash=given.hash("yes"), payload_hash="e1")
    provisional_turns.add_provisional(
        rows, given.turn("hook:e9", "yes", second=300), event="prompt", text_hash=given.hash("yes"), host="claude",
        project=1, path="",
    )  # fmt: skip


def _receipt(rows: Rows, given: Given) -> None:
    receipts.add_receipt(
        rows, receipt_id="r1", session_id="s1", event="prompt", project=1, at=given.at(300), tokens=1, text_hash="h",
        items=[],
    )  # fmt: skip


def _keeps_out(rows: Rows, given: Given) -> None:
    tombstones.forget(rows, "use tabs in this code", correction=False, by="user", key=b"k", now="", scope=1)
    tombstones.is_statement_forgotten(
        rows, "use tabs in this code", correction=False, authority="user", project=1, at="", key=b"k"
    )


def _purged_names(rows: Rows, given: Given) -> None:
    tombstones.purge_names(rows, "session", ["s1"], key=b"k", now="")
    tombstones.purged_names(rows, "session", ["s1", "s2"], key=b"k")


def _unheard(rows: Rows, given: Given) -> None:
    events.mark_unreported(rows, ["s1"], at=given.now)
    events.list_unreported_sessions(rows)
    events.list_sessions_without_events(
        rows, began=given.at(0), lively=given.at(0), answered=given.at(400), now=given.at(400)
    )
    events.list_latest_events(rows, "claude")
    events.drop_unreported(rows, ["s1"])


def _gotchas(rows: Rows, given: Given) -> None:
    cursors.move_cursor(rows, "distill", "1", 2)
    cursors.sessions_behind(rows, "gotchas", after="distill")
    turns.read_stream_turns(rows, 1, after=0, until=9, written=True)
    failure_link_rows.find_progress(rows, "s1")
    failure_link_rows.read_project(rows, 1)
    failure_link_rows.list_memories_after(rows, 0, limit=9)
    failure_link_rows.list_stated_memories(rows, 1, "s1")
    failure_link_rows.is_stated_in(rows, 1, 1)
    failure_link_rows.is_listed(rows, 1, 1)
    failures.add_error(
        rows, fingerprint="f", command="go test", exit_code=1, message="m", turn=1, session=1, at=given.now
    )
    failures.add_fix(rows, error=1, turn=2, session=1, uuid="l2", at=given.now, files=["a.go"], text="t")
    failures.list_failures(rows, 1)
    failures.find_last_fix_ordinal(rows, 1, 1)
    failures.list_failed_commands(rows, 1)
    failures.read_message(rows, 1)
    failures.find_same_message(rows, "m", other_than="g", projects=[1])
    failures.add_symptom(rows, 1, uuid="l1", at=given.now, text="tabs are red", fingerprint="f")
    failures.list_symptoms(rows, [1])
    fulltext.text_hits(rows, "symptom", ["red"], projects=[1], limit=9)
    failures.add_refutation(rows, 1, uuid="l2", at=given.now, reason="r", lowered=0.2)
    failures.read_confidence_loss(rows, 1)
    failures.list_refutations(rows, 1)
    failures.find_error(rows, "f", [1])
    failures.find_error(rows, "f", [1], already_in=failures.PresentContext("s1", given.now))
    failures.find_error_by_id(rows, failures.format_error_id("f"), None)
    failures.find_others_with_message(rows, "m", other_than="g", projects=[1], limit=5)
    turns.list_last_tool_inputs(rows, "s1", {"Edit"}, back=100, limit=20)
    memory_scenes.set_scene(rows, 1, uuid="l1", text="at a.py")
    memory_scenes.set_scene(rows, 2, uuid="l1", text="")
    memory_scenes.map_scenes_of_session(rows, "s1")
    memory_scenes.list_prompts(rows, 1, until=9)
    statement_rows.list_personal_turns(rows, 1)
    memory_scenes.find_scene_directories(rows, 1)
    memory_scenes.list_stated_by_session(rows, 1, "s1", until=9)
    memory_scenes.list_file_changes(rows, 1, until=9, limit=9, characters=9)
    failures.delete_turn(rows, 1, "l1")


def _uses(rows: Rows, given: Given) -> None:
    _receipt(rows, given)
    late = given.at(900)
    assert receipts.list_waiting(rows, answered_before=late, idle_before=late, start_idle_before=late, limit=9)
    receipts.read_item_texts(rows, 1)
    receipts.find_ordinal_at(rows, 1, late)
    receipts.record_use(rows, 1, {"m1": (True, "words")})
    receipts.sum_usage_since(rows, given.at(0))
    receipts.sum_usage_since(rows, given.at(0), projects=[1])


def _usage(rows: Rows) -> None:
    token_usage.record_usage(rows, [MessageTokens("s1", "m1", 1, 1, 1, 1)])
    token_usage.sum_usage(rows, 1)
    token_usage.sum_usage_of_agents(rows, "s1")
    token_usage.sum_tokens_injected(rows, "s1")


def _noted(rows: Rows, given: Given) -> None:
    one = telemetry_rows.Composition(
        at="", session_id="s1", event="prompt", chosen=0, cut=0, tokens=0, degraded=0, ms=0
    )
    asked = telemetry_rows.Lookup(at="", kind="search", query_hash="h", results=0, top=0, ms=0)
    telemetry_rows.add_records(rows, [one, asked], before=given.at(0), key=b"k")
    telemetry_rows.read_since(rows, telemetry_rows.Composition, given.at(0))
    telemetry_rows.read_since(rows, telemetry_rows.Lookup, given.at(0))
    rows.run("delete from context_log where session_id = :id", id="s1")


def _checkpoints(rows: Rows, given: Given) -> None:
    session = rows.value("select min(seq) from sessions")
    row = checkpoints.CheckpointRow(
        0, "k1", session, "s1", 1, "compaction", "", given.now, 1, given.now, "1:0", "", "", ""
    )
    checkpoints.save_checkpoint(rows, row, [("goal", "t", "l1", "", 1)], [("l1", "user", "", given.now, "yes")])
    checkpoints.mark_restored(rows, 1, at=given.now, session_id="")
    events.read_session_events(rows, ("pre_compact",), after=0, limit=9)
    checkpoints.list_summaries(rows, after=0, limit=9)
    checkpoints.is_summarised(rows, session, since=given.now)
    checkpoints.list_incomplete(rows)
    checkpoints.read_session_state(rows, session)
    checkpoints.find_session_state(rows, "s1")
    checkpoints.read_last_turns(rows, session, until=9)
    checkpoints.count_turns_after(rows, session, until_ordinal=0, until=given.at(400))
    checkpoints.find_by_summary(rows, session, "l1")
    checkpoints.find_pending(rows, session)
    checkpoints.find_latest(rows, "s1")
    checkpoints.find_restored(rows, project=1, session_id="s1")
    checkpoints.list_items(rows, 1)
    checkpoints.list_captures(rows, 1)
    goals.add_goal(rows, project=1, session_id="s1", text="t", authority="user", now=given.now)
    goals.list_open_goals(rows, projects=[0, 1], session_id="s1")
    checkpoints.delete_turn(rows, 1)
    goals.delete_session_goals(rows, "s1")
    checkpoints.delete_of_session(rows, session)


def _dream(rows: Rows, given: Given) -> None:
    begun = dreams.begin(rows, why="asked", sessions=1, now=given.now)
    journal.record_action(
        rows, lambda: belief_changes.record_change(rows, "m1", "archive", "", "", "", "dream", given.now),
        dream=begun.seq, kind="archive", project=1, reason="", evidence=["u1"], items=["m1"], now=given.now,
    )  # fmt: skip
    journal.record_file(rows, begun.seq, reason="", path="memory/user.md", before=None, after="one", now=given.now)
    for seq in journal.list_actions(rows, begun.seq):
        changed = journal.changed_rows(rows, seq)
        memory_snapshots.restore(rows, [(row.was, row.then) for row in changed], at=given.now)
        journal.mark_rows(rows, journal.read_change_set(rows, seq), changed, {}, now=given.now)
    belief_changes.list_represented_ids(rows, "m1")
    place = dream_scopes.DreamScope(seq=1, everywhere=0)
    dream_scopes.record_compared_digest(rows, place, "d1")
    dream_scopes.read_compared_digest(rows, place)
    dream_scopes.read_vector_state(rows, place)
    journal.count_actions(rows, begun.seq)
    dreams.update_page_row(rows, "memory/user.md", "one", now=given.now)


def _topics(rows: Rows, given: Given) -> None:
    memories.insert(rows, given.memory("m2", "tabs again", project=1), text_hash="h2")
    topics.tag_memory(rows, 1, "tabs", by=topics.PERSON)
    topics.replace_tags(rows, 1, topics.find_changed_tags(rows, 1, [(2, "tabs", 0.5)]))
    topics.replace_tags(rows, 1, [(1, "spaces", None)])
    topics.mark_computed(rows, topics.DueProject(project_seq=1, changes=9, memories=2))
    topics.list_newest_memories(rows, 1, limit=9)
    topics.topics_of_memories(rows, [1, 2])
    topics.list_members(rows, "tabs", [1])
    topics.move_tags(rows, 2, 0)
    memory_links.list_edges(rows, [1, 2], projects=[1])
    memory_links.list_shared(rows, [1, 2], projects=[1], widest_topic=9, widest_session=9)


def _told_days(rows: Rows, given: Given) -> None:
    one = stored_days.Ending(1, 1, "s1", 1, "", 0, "", "", given.now, "", "", False, 0, "", "")
    stored_days.note_day(rows, one, day="2026-03-01", as_of=(0, ""))
    stored_days.list_endings_after(rows, after=0, limit=9)
    stored_days.list_live_endings(rows, since=given.at(0), limit=9)
    session_contents.list_turn_times(rows, 1)
    session_contents.list_gotchas(rows, 1, limit=9)
    session_contents.list_agents(rows, "s1")
    stored_days.days_due(rows, "move", limit=9)
    stored_days.mark_days_moved(rows, 1)
    stored_days.move_days(rows, stored_days.days_due(rows, "move", limit=9))
    stored_days.days_due(rows, "leave", limit=9)
    stored_days.drop_days(rows, [stored_days.DayPart(1, "s1", "2026-03-01", "", "", 0)])


LIMITED = search.SearchFilter(since="2026", session="s1")
INSTRUCTED = [instruction_rows.Instruction(path="/p/CLAUDE.md", kind="Project", root="/p", text="t", text_hash="h")]
#: What runs for every hook, step of the background thread, brief, search and forgetting.
HOT: dict[str, Any] = {
    "record_event and add_provisional": _add_provisional,
    "add_turn": _add_turn,
    "settle": lambda rows, given: provisional_turns.record_settled(rows, "s1", at=given.at(400)),
    "set_title": lambda rows, _: turns.set_title(rows, "s1", "t", first=True),
    "over": lambda rows, given: provisional_turns.list_expired_provisional(
        rows, before=given.at(400), after=provisional_turns.START, limit=9
    ),
    "positions_written_since": lambda rows, _: cursors.file_positions(rows, since=1, limit=9),
    "close_provisional": lambda rows, given: provisional_turns.close_provisional(
        rows,
        provisional_turns.list_expired_provisional(
            rows, before=given.at(400), after=provisional_turns.START, limit=1000
        )[0],
    ),
    "stream_turns": lambda rows, _: turns.read_stream_turns(rows, 1, after=0, kinds=("user", "assistant")),
    "calls that say something": lambda rows, _: turns.list_tool_calls(
        rows, 1, after=0, tools=("Bash", "Task"), holding={"Bash": "git"}
    ),
    "settle a place": lambda rows, given: projects.ensure_with_directory(rows, given.project(), now=""),
    "a place that is new": lambda rows, given: projects.recognise(rows, given.project("new")),
    "wall_around": lambda rows, _: projects.find_workspace_around(rows, "/home/me/shop"),
    "visible": lambda rows, _: projects.list_visible_projects(rows, inside=0),
    "active_day": lambda rows, _: projects.active_day(rows, 1),
    "fresh_since": lambda rows, _: session_context.find_context_start(rows, "s1"),
    "said_since": lambda rows, _: session_context.find_conversation_start(rows, "s1"),
    "told": lambda rows, _: session_context.ids_in_context(rows, "s1"),
    "injected": lambda rows, _: session_context.sum_injections(rows, "s1"),
    "was_told": lambda rows, _: session_context.is_injected(rows, "s1", "m1"),
    "add_receipt": _receipt,
    "receipts to judge": lambda rows, given: _uses(rows, given),
    "what a session took": lambda rows, _: _usage(rows),
    "what was noted": lambda rows, given: _noted(rows, given),
    "near": lambda rows, _: session_context.recent_sessions(rows, [0, 1], "s1"),
    "kind_of": lambda rows, _: search.find_kind(rows, "l1"),
    "upkeep of new memories": lambda rows, _: (
        memory_upkeep.list_memories_after(rows, 0, limit=9),
        memory_upkeep.list_dropped(rows),
    ),
    "upkeep of one": lambda rows, _: (
        memory_upkeep.list_candidates_about(rows, "m1"),
        belief_changes.is_merged(rows, memories.by_seqs(rows, [1])[1]),
    ),
    "superseded": lambda rows, _: belief_changes.list_superseded_seqs(rows, [1], limit=9),
    "changes_of": lambda rows, _: belief_changes.list_changes(rows, "m1"),
    "instructions of a brief": lambda rows, _: instruction_rows.list_instruction_texts(rows, [1], "claude"),
    "instructions read again": lambda rows, given: instruction_rows.replace_instructions(
        rows, 1, INSTRUCTED, now=given.now
    ),
    "instructions known": lambda rows, _: instruction_rows.list_instruction_hashes(rows, 1),
    "listing": lambda rows, _: memories.list_memories(rows, projects=[0, 1], limit=9),
    "by_hash": lambda rows, _: memories.by_hash(rows, "h", project=1),
    "by_seqs": lambda rows, _: memories.by_seqs(rows, [1]),
    "statements_after": lambda rows, _: statement_rows.list_statements_after(rows, 0, limit=9),
    "keeps_out": _keeps_out,
    "marks": lambda rows, _: tombstones.purged_marks(rows, b"k"),
    "purged_names": _purged_names,
    "delete": lambda rows, given: memory_deletion.delete_memory(rows, given.memory("m1", "x")),
    "memories_with": lambda rows, _: search.count_memories_with(rows, "tabs"),
    "text_hits": lambda rows, _: fulltext.text_hits(rows, "passage", ["later"], projects=[1], limit=9),
    "passages": lambda rows, _: (
        fulltext.text_hits(rows, "passage", ["later"], projects=[1], limit=9),
        passages.by_seqs(rows, [1, 2]),
        passages.find_neighbours(rows, [1, 2]),
        passages.passages_of_turns(rows, [1, 2]),
        vectors.compute_distances(rows, "passage", 1, b"abcd", [1, 2]),
    ),
    "vectors to be made": lambda rows, _: vectors.has_waiting(rows, 1),
    "turns_by_seq": lambda rows, _: search.turns_by_seq(rows, [1, 2]),
    "turns_of_uuids": lambda rows, _: search.turns_of_uuids(rows, ["l1"]),
    "beside": lambda rows, _: search.map_turn_neighbours(rows, [1, 2], projects=[1]),
    "turns that state": lambda rows, _: search.list_stating_turns(rows, [1], projects=[1]),
    "asked_between": lambda rows, given: search.list_user_turns_between(
        rows, given.at(0), given.at(400), projects=[1], limit=9
    ),
    "asked_between of all": lambda rows, given: search.list_user_turns_between(
        rows, given.at(0), "", projects=None, limit=9
    ),
    "narrowed": lambda rows, _: (
        search.filter_rows(rows, "turn", [1], LIMITED),
        search.filter_rows(rows, "memory", [1], LIMITED),
    ),
    "left": lambda rows, _: (vectors.count_waiting(rows, None), vectors.count_waiting(rows, 1)),
    "backlog": lambda rows, _: (
        vectors.read_backlog(rows, "passage", 1, limit=9),
        vectors.read_backlog(rows, "memory", 1, limit=9),
    ),
    "delete_for": lambda rows, _: vectors.delete_of_row(rows, "memory", 1),
    "move_to": lambda rows, _: vectors.move_passages(rows, 1, 0),
    "sessions_behind": lambda rows, _: cursors.sessions_behind(rows, "distill"),
    "conversation": lambda rows, _: session_contents.read_conversation(rows, 1, projects=None),
    "new sessions": lambda rows, given: dreams.count_sessions_since(rows, given.at(0)),
    "last dream": lambda rows, _: dreams.find_latest(rows),
    "dream": lambda rows, given: _dream(rows, given),
    "sessions listing": lambda rows, _: sessions.list_sessions(rows, projects=[1], limit=9),
    "withdraw": lambda rows, _: sessions.withdraw_turn(rows, "/t", "l1"),
    "drop_old": lambda rows, given: text_retention.drop_old_output(rows, before=given.at(400), days=90, limit=9),
    "drop_oldest": lambda rows, _: text_retention.drop_oldest_output(rows, limit=9),
    "is_any_left": lambda rows, _: text_retention.has_output(rows),
    "file_state": lambda rows, _: cursors.find_file_state(rows, "/t"),
    "unheard sessions": _unheard,
    "count": lambda rows, _: activity.increment_counters(rows, [("bad lines", 1)]),
    "last_event": lambda rows, _: activity.list_last_event_times(rows),
    "last_read": lambda rows, _: activity.find_last_read_time(rows),
    "sessions for the days' files": _told_days,
    "typed prompts": lambda rows, given: sessions.count_typed(rows, latest=10),
    "live sessions": lambda rows, given: sessions.list_live_sessions(rows, since=given.at(0), limit=5),
    "probes": lambda rows, given: probes.remove_probe(rows, before=given.at(0)),
    "read_among": lambda rows, _: sessions.count_with_transcript(rows, [1, 2]),
    "stream positions": lambda rows, _: activity_feed.read_feed_positions(rows),
    "stream": lambda rows, _: [
        activity_feed.read_feed(rows, kind, projects=[1], limit=9) for kind in activity_feed.KINDS
    ],
    "gotchas": _gotchas,
    "checkpoints": _checkpoints,
    "topics": _topics,
    "stream of all": lambda rows, _: [
        activity_feed.read_feed(rows, kind, projects=None, limit=9, is_latest=True) for kind in activity_feed.KINDS
    ],
}


@pytest.mark.parametrize("name", HOT)
def test_no_hot_statement_scans(store: Store, given: Given, name: str) -> None:
    def look(rows: Rows) -> set[str]:
        story(rows, given)
        watching = Watching(rows.connection)
        HOT[name](watching, given)
        assert watching.ran
        return scans(rows, watching.ran)

    assert store.write(look) == set()


@pytest.mark.invariant(
    "What a word costs does not grow with the texts it stands in: whose its rows are is read from an index, each count once"
)
@pytest.mark.parametrize("name", ["asked_between", "asked_between of all", "turns that state"])
def test_few_sessions_or_memories_lead_to_their_turns_and_not_all_that_is_searched_to_them(
    store: Store, given: Given, name: str
) -> None:
    def look(rows: Rows) -> list[str]:
        story(rows, given)
        watching = Watching(rows.connection)
        HOT[name](watching, given)
        return [
            str(step[-1]) for sql, values in watching.ran for step in rows.all(f"explain query plan {sql}", **values)
        ]

    steps = store.write(look)
    assert steps and not any("turns_searchable" in step or "turns_of_projects" in step for step in steps)


@pytest.mark.parametrize("name", ["provisional", "hook_only", "sessions"])
def test_what_status_counts_of_a_few_rows_is_counted_by_an_index(store: Store, name: str) -> None:
    assert store.read(lambda rows: scans(rows, [(dict(activity.COUNT_QUERIES)[name], {})])) == set()


@pytest.mark.invariant("Status counts no long table")
def test_what_status_counts_of_long_tables_is_read_from_their_tallies(store: Store, given: Given) -> None:
    """A memory is a thousandth of what is stored; the other scans are of tallies, sizes and projects."""

    def look(rows: Rows) -> set[str]:
        story(rows, given)
        watching = Watching(rows.connection)
        activity.read_tallies(watching)
        activity.count_by_gate_and_tier(watching)
        activity.list_sizes(watching)
        return {step.partition(":")[0] for step in scans(rows, watching.ran)}

    found = store.write(look)
    assert found and not any(re.search(rf"\b{table}\b", step) for step in found for table in activity.TALLIED_COUNTS)
    assert {step.split()[1] for step in found} <= {"tallies", "memories", "projects", "sessions", "sizes"}, found


def test_what_is_deleted_with_a_row_is_found_by_an_index(store: Store) -> None:
    """A cascade has no plan of its own to ask for: its columns must be the first of an index."""

    def look(rows: Rows) -> list[str]:
        missing = []
        for (table,) in rows.all("select name from sqlite_schema where type = 'table' and sql like '%references%'"):
            leading = {
                rows.all(f"pragma index_info({index[1]})")[0][2] for index in rows.all(f"pragma index_list({table})")
            }
            for _, _, _, column, _, _, on_delete, _ in rows.all(f"pragma foreign_key_list({table})"):
                if on_delete == "CASCADE" and column not in leading:
                    missing.append(f"{table}.{column}")
        return missing

    assert store.read(look) == []


@pytest.mark.parametrize("name", ["record_event and add_provisional", "close_provisional"])
def test_what_was_said_before_is_looked_up_by_its_text_and_not_among_all_turns_of_the_session(
    store: Store, given: Given, name: str
) -> None:
    def look(rows: Rows) -> list[str]:
        story(rows, given)
        watching = Watching(rows.connection)
        HOT[name](watching, given)
        return [
            rows.all(f"explain query plan {sql}", **values)[0][3]
            for sql, values in watching.ran
            if "cross join session_turn" in sql
        ]

    first_steps = store.write(look)
    assert first_steps and all(step.startswith("SEARCH t USING INDEX turns_by_hash") for step in first_steps)


def test_turns_that_state_memories_are_looked_up_from_these_and_not_among_all_that_is_searchable(store: Store) -> None:
    def look(rows: Rows) -> list[str]:
        watching = Watching(rows.connection)
        search.list_stating_turns(watching, range(100), projects=range(7))
        return [str(rows.all(f"explain query plan {sql}", **values)[0][3]) for sql, values in watching.ran]

    first_steps = store.read(look)
    assert first_steps and all(step.startswith("SEARCH p USING PRIMARY KEY") for step in first_steps)


def test_a_scan_is_caught(store: Store) -> None:
    queries = ("select count(*) from turns where kind = 'user'", "select t.seq from turns t where t.text = 'x'")
    assert len(store.read(lambda rows: scans(rows, [(sql, {}) for sql in queries]))) == 2
