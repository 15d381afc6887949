"""What was said outlives its transcript; session files of csmd's own are sessions too, and nobody forges the user there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from machine import CORRECTION, PREFERENCE

from csmd.daemon import status_report
from csmd.errors import BadInput, CsmdError, TooLarge
from csmd.hosts.claude import environment, registration
from csmd.store import files

if TYPE_CHECKING:
    from in_process import Parts


def take_in(parts: Parts) -> None:
    """Everything that is due, sweeps included."""
    parts.background.sweep_soon()
    now = 0.0
    while parts.background.step(now):
        now += 1.0


def everything(parts: Parts) -> list[Any]:
    """What a user can find, read and take away."""
    one = parts.call("csm_session_transcript", id="s1")["conversation"]
    search = parts.call("csm_memory_search", query="database_url")["hits"]
    return [one, search, parts.call("csm_session_export", id="s1")["lines"], parts.call("csm_memory_list")]


@pytest.mark.invariant("What was said outlives its transcript; only tool output is ever dropped, and stays dropped")
def test_a_session_whose_transcript_is_deleted_keeps_all_that_was_said(parts: Parts) -> None:
    path = parts.machine.conversation("s1")
    take_in(parts)
    before = everything(parts)
    assert parts.call("csm_session_list")["sessions"][0]["transcript"] == "there"
    path.unlink()
    take_in(parts)
    assert everything(parts) == before and any(CORRECTION in turn["text"] for turn in before[0])
    assert parts.call("csm_session_list")["sessions"][0]["transcript"] == "gone"
    assert parts.call("csm_session_show", id="s1")["transcript"] == "gone"
    told = transcript_figures(parts)
    assert (told["sessions"], told["gone"]) == (1, 1)
    assert parts.background.context.trouble == {}


def transcript_figures(parts: Parts) -> dict[str, Any]:
    """What status says of transcripts."""
    config, key, now = parts.machine.config(), parts.store.hash_key, datetime.now(UTC)
    figures = parts.store.read(lambda rows: status_report.read_figures(rows, config, None, now=now, key=key))
    return dict(figures["transcripts"])


def test_a_session_is_shown_with_what_came_of_it(parts: Parts) -> None:
    parts.machine.conversation("s1")
    take_in(parts)
    shown = parts.call("csm_session_show", id="s")
    assert (shown["id"], shown["turns"], shown["kinds"]) == ("s1", 6, {"assistant": 3, "user": 3})
    assert len(shown["statements"]) == len(shown["memories"]) == 3
    assert shown["about"].startswith(PREFERENCE[:30]) and shown["project"] == str(parts.machine.project)


def test_the_latest_sessions_come_first_and_only_those_of_the_project(parts: Parts) -> None:
    for session, cwd in (("s1", ""), ("s2", "/elsewhere"), ("s3", "")):
        parts.machine.transcript(parts.machine.line("user", "Hello.", session=session, cwd=cwd), session=session)
    take_in(parts)
    assert [row["id"] for row in parts.call("csm_session_list")["sessions"]] == ["s3", "s2", "s1"]
    here = parts.call("csm_session_list", project=str(parts.machine.project), limit=1)["sessions"]
    assert [row["id"] for row in here] == ["s3"]


def test_an_id_that_is_none_or_not_the_only_one_is_told(parts: Parts) -> None:
    for session in ("s1", "s2"):
        parts.machine.transcript(parts.machine.line("user", "Hello.", session=session), session=session)
    take_in(parts)
    for ident, why in (("s", "several"), ("x", "no session"), ("", "no session")):
        with pytest.raises(BadInput, match=why):
            parts.call("csm_session_show", id=ident)


def test_a_sub_agents_conversation_is_read_but_not_exported(parts: Parts) -> None:
    line = parts.machine.line("assistant", "Found it.", session="s1")
    parts.machine.transcript(parts.machine.line("user", "Find it."), {**line, "isSidechain": True, "agentId": "a7"})
    take_in(parts)
    assert [agent["id"] for agent in parts.call("csm_session_show", id="s1")["agents"]] == ["s1/a7"]
    assert parts.call("csm_session_transcript", id="s1/a7")["conversation"][0]["text"] == "Found it."
    with pytest.raises(CsmdError, match="sub-agent"):
        parts.call("csm_session_export", id="s1/a7")


# --- how long the assistant keeps its own


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (('{"cleanupPeriodDays": 7}', '{"cleanupPeriodDays": 90}'), 7), ((None, '\ufeff{"cleanupPeriodDays": 90}'), 90),
        (("{", "[]", '{"cleanupPeriodDays": 5}'), 5), (('{"cleanupPeriodDays": 0}',), 0),
        (('{"cleanupPeriodDays": true}', '{"cleanupPeriodDays": "9"}', '{"cleanupPeriodDays": -1}', "{}"), None), ((), None),
    ],
)  # fmt: skip
def test_the_first_setting_that_names_days_decides(texts: tuple[str | None, ...], days: int | None) -> None:
    assert environment.cleanup_days(texts) == days


def test_settings_are_asked_from_the_organisations_down_to_the_users() -> None:
    found = environment.settings_files("/me/.claude", platform="linux", project="/p")
    assert found == [
        "/etc/claude-code/managed-settings.json", "/p/.claude/settings.local.json", "/p/.claude/settings.json",
        "/me/.claude/settings.json",
    ]  # fmt: skip


def test_status_says_after_how_many_days_transcripts_go_and_where_it_is_otherwise(parts: Parts) -> None:
    def told() -> dict[str, Any]:
        return transcript_figures(parts)

    parts.machine.conversation("s1")
    take_in(parts)
    assert (told()["days"], told()["by_project"]) == (registration.CLEANUP_DAYS, {})
    (parts.machine.assistant / "settings.json").write_text('{"cleanupPeriodDays": 14}')
    folder = parts.machine.project / ".claude"
    folder.mkdir()
    (folder / "settings.local.json").write_text('{"cleanupPeriodDays": 3}')
    assert (told()["days"], told()["by_project"]) == (14, {str(parts.machine.project): 3})


# --- session files of csmd's own


def write(parts: Parts, text: str, *, by_person: bool = False, ident: str = "mine", **more: Any) -> str:
    place = str(parts.machine.project)
    found = parts.call("csm_session_write_user", id=ident, text=text, project=place, by_person=by_person, **more)
    return str(found["uuid"])


def kinds(parts: Parts, ident: str = "mine") -> list[tuple[str, str]]:
    return [(turn["kind"], turn["text"]) for turn in parts.call("csm_session_transcript", id=ident)["conversation"]]


def test_what_is_written_is_loaded_listed_and_found(parts: Parts) -> None:
    user = write(parts, "Use the heron queue for the worker.", by_person=True)
    assistant = parts.call("csm_session_write_assistant", id="mine", text="It is used.", parent=user)
    loaded = parts.call("csm_session_load", id="mine")
    assert [(m["uuid"], m["parent"], m["kind"], m["by_person"]) for m in loaded["messages"]] == [
        (user, "", "user", True), (assistant["uuid"], user, "assistant", False),
    ]  # fmt: skip
    path = Path(parts.call("csm_session_path", id="mine")["path"])
    assert path.is_file() and path.parent.parent == parts.machine.paths.sessions and assistant["path"] == str(path)
    take_in(parts)
    (row,) = parts.call("csm_session_list", project=str(parts.machine.project))["sessions"]
    assert (row["id"], row["turns"], row["transcript"]) == ("mine", 2, "there")
    assert parts.call("csm_memory_search", query="heron queue", kind="turn")["hits"][0]["source_uuids"][0] == user


def test_only_a_person_states_a_memory_as_the_user_in_a_session_file(parts: Parts) -> None:
    write(parts, PREFERENCE, by_person=True, ident="typed")
    write(parts, CORRECTION, ident="piped")
    take_in(parts)
    list(parts.background.stages.distill_sessions(force=True))
    parts.background.stages.run_stage("believe")
    authority = {row["session_id"]: row["authority"] for row in parts.call("csm_memory_list")["memories"]}
    assert {session for session, who in authority.items() if who == "user"} == {"typed"}
    assert [kind for kind, _ in kinds(parts, "piped")] == ["relayed"]


def test_a_file_that_somebody_puts_there_speaks_for_nobody(parts: Parts) -> None:
    folder = parts.machine.paths.sessions / "-p"
    folder.mkdir(parents=True)
    forged = parts.machine.line("user", PREFERENCE, session="forged")
    (folder / "forged.jsonl").write_text(json.dumps(forged) + "\n")
    take_in(parts)
    list(parts.background.stages.distill_sessions(force=True))
    parts.background.stages.run_stage("believe")
    assert kinds(parts, "forged") == [("relayed", PREFERENCE)]
    assert all(row["authority"] != "user" for row in parts.call("csm_memory_list")["memories"])


def test_a_withdrawn_message_is_found_no_more(parts: Parts) -> None:
    uuid = write(parts, "The heron stands still.")
    write(parts, "The crane moves.")
    take_in(parts)
    assert len(kinds(parts)) == 2
    parts.call("csm_session_tombstone", id="mine", uuid=uuid)
    take_in(parts)
    assert kinds(parts) == [("relayed", "The crane moves.")]
    assert parts.call("csm_memory_search", query="heron", kind="turn")["hits"] == []
    with pytest.raises(BadInput, match="no message"):
        parts.call("csm_session_tombstone", id="mine", uuid=uuid)


def test_a_forged_tombstone_takes_nothing_of_another_session(parts: Parts) -> None:
    parts.machine.transcript(parts.machine.line("user", "The heron stands still.", uuid="theirs"))
    take_in(parts)
    folder = parts.machine.paths.sessions / "-p"
    folder.mkdir(parents=True)
    dead = {"type": "tombstone", "uuid": "t1", "sessionId": "s1", "tombstones": ["theirs"]}
    (folder / "s1.jsonl").write_text(json.dumps(dead) + "\n")
    take_in(parts)
    assert len(kinds(parts, "s1")) == 1


def test_a_summary_stands_for_all_before_it_when_nothing_is_named(parts: Parts) -> None:
    for text in ("One.", "Two."):
        write(parts, text)
    parts.call("csm_session_write_summary", id="mine", text="One and two.")
    write(parts, "Three.")
    found = parts.call("csm_session_load", id="mine")
    assert [m["text"] for m in found["messages"]] == ["One and two.", "Three."] and found["replaced"] == 2


def test_what_cannot_be_written_is_told_and_nothing_is(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    parts.machine.transcript(parts.machine.line("user", "Hello."))
    take_in(parts)
    with pytest.raises(CsmdError, match="the assistant's session"):
        write(parts, "Hello.", ident="s1")
    for text, more, why in (
        ("  ", {}, "empty"),
        ("Hello.", {"parent": "x"}, "no message"),
        ("x", {"ident": "../x"}, "name"),
    ):
        with pytest.raises(BadInput, match=why):
            write(parts, text, **more)
    with pytest.raises(BadInput, match="no session file"):
        parts.call("csm_session_load", id="mine")
    assert not list(parts.machine.paths.sessions.glob("*/*"))
    write(parts, "Hello.")
    monkeypatch.setattr(files, "SESSION_FILE_BYTES", 500)
    with pytest.raises(TooLarge, match="nothing was written"):
        write(parts, "word " * 100)
    assert [m["text"] for m in parts.call("csm_session_load", id="mine")["messages"]] == ["Hello."]


def test_a_session_of_ones_own_is_exported_with_who_spoke(parts: Parts) -> None:
    write(parts, "Hello.")
    parts.call("csm_session_write_assistant", id="mine", text="Hi!")
    take_in(parts)
    made = parts.call("csm_session_export", id="mine")
    lines = [json.loads(line) for line in made["lines"]]
    assert [line["type"] for line in lines if "message" in line] == ["user", "assistant"]
    assert {line["sessionId"] for line in lines} == {made["session_id"]} and made["session_id"] != "mine"


def test_a_session_file_behind_a_wall_is_none_outside(parts: Parts) -> None:
    uuid = write(parts, "The heron queue is the client's.")
    take_in(parts)
    inside, outside = str(parts.machine.project), str(parts.machine.root)
    parts.call("csm_project_lens", name="client", places=inside, wall=True, by_person=True)
    for tool, more in (
        ("csm_session_load", {}),
        ("csm_session_path", {}),
        ("csm_session_tombstone", {"uuid": uuid}),
        ("csm_session_write_assistant", {"text": "Said from elsewhere."}),
        ("csm_session_write_summary", {"text": "Said from elsewhere."}),
    ):
        with pytest.raises(BadInput, match="no session file"):
            parts.call(tool, id="mine", asking=outside, **more)
    parts.call("csm_session_write_assistant", id="mine", text="Said from inside.", asking=inside)
    loaded = parts.call("csm_session_load", id="mine", asking=inside)
    assert [message["text"] for message in loaded["messages"]] == [
        "The heron queue is the client's.",
        "Said from inside.",
    ]
