"""What a session file says: the last word on each message, whatever was written, withdrawn, summarised or torn."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.hosts import csmd_sessions, transcript_reading
from csmd.hosts.claude import transcript
from csmd.store import files

KEY = b"k" * 32
AT = "2026-05-04T08:00:00.000Z"
HOME = Path("/home/me/csmd/sessions")


def line(kind: Any, text: str, uuid: str, **more: Any) -> bytes:
    written = {name: more.pop(name) for name in ("parent", "at", "by_person") if name in more}
    message = csmd_sessions.Message(**{"parent": "", "at": AT, **written}, kind=kind, text=text, uuid=uuid)
    return csmd_sessions.encode_message(message, **{"session": "s", "cwd": "/p", "key": KEY, **more})


def loaded(*lines: bytes) -> list[tuple[str, str]]:
    return [
        (message.kind, message.text) for message in csmd_sessions.load_session(lines, session="s", key=KEY).messages
    ]


def turns(*lines: bytes, path: Path = HOME / "-p" / "s.jsonl") -> transcript_reading.Reading:
    reading = transcript_reading.Reading(tool_limit=8192)
    read_line = csmd_sessions.make_reader(path, home=HOME, key=KEY) or transcript.read_line
    for one in lines:
        read_line(one, reading)
    return reading


def test_messages_come_back_as_they_were_written_with_their_parents() -> None:
    found = csmd_sessions.load_session(
        [line("user", "Hello", "u1"), line("assistant", "Hi!", "a1", parent="u1")], session="s", key=KEY
    )
    assert [(m.uuid, m.parent, m.kind, m.text) for m in found.messages] == [("u1", "", "user", "Hello"), ("a1", "u1", "assistant", "Hi!")]  # fmt: skip


def test_a_tombstoned_message_is_skipped_wherever_the_tombstone_stands() -> None:
    said, dead = line("user", "Hello", "u1"), line("tombstone", "", "t1", uuids=["u1"])
    assert loaded(said, dead) == loaded(dead, said) == []


def test_a_summary_stands_for_its_messages_where_the_first_of_them_was() -> None:
    said = [line("user", text, uuid) for text, uuid in (("One", "u1"), ("Two", "u2"), ("Three", "u3"))]
    summary = line("summary", "One and two.", "s1", uuids=["u1", "u2"])
    assert loaded(*said, summary) == [("summary", "One and two."), ("user", "Three")]
    assert loaded(*said, summary, line("tombstone", "", "t1", uuids=["s1"])) == [
        ("user", t) for t in ("One", "Two", "Three")
    ]
    over = line("summary", "All of it.", "s2", uuids=["s1", "u3"])
    assert loaded(*said, summary, over) == [("summary", "All of it.")]


def test_summaries_that_stand_for_each_other_do_not_hang_and_lose_nothing_else() -> None:
    one, other = line("summary", "A", "s1", uuids=["s2"]), line("summary", "B", "s2", uuids=["s1"])
    found = csmd_sessions.load_session([line("user", "Hello", "u1"), one, other], session="s", key=KEY)
    assert ("user", "Hello") in [(m.kind, m.text) for m in found.messages]


@pytest.mark.parametrize(
    "bad",
    [b"{", b"[]", b"\xff\xfe", b'{"type":"user"}', b'{"type":"user","uuid":"x","sessionId":"another"}', b'"text"'],
)
def test_a_malformed_line_is_skipped_and_counted(bad: bytes) -> None:
    found = csmd_sessions.load_session(
        [line("user", "Hello", "u1"), bad, line("user", "Again", "u2")], session="s", key=KEY
    )
    assert ([message.text for message in found.messages], found.bad_lines) == (["Hello", "Again"], 1)


def test_a_secret_does_not_reach_the_file() -> None:
    written = line("user", "the password is hunter2xyz99", "u1")
    assert b"hunter2" not in written and b"[redacted:" in written


def test_the_host_reads_the_same_messages_from_the_file() -> None:
    reading = transcript_reading.Reading(tool_limit=8192)
    for one in (line("user", "Hello", "u1"), line("assistant", "Hi!", "a1", parent="u1"), line("tombstone", "", "t1", uuids=["x"])):  # fmt: skip
        transcript.read_line(one, reading)
    assert [(turn.kind, turn.text) for turn in reading.turns] == [("user", "Hello"), ("assistant", "Hi!")]


# --- who speaks


def test_only_what_a_person_typed_is_taken_in_as_the_users() -> None:
    reading = turns(line("user", "I prefer tabs.", "u1", by_person=True), line("user", "I prefer spaces.", "u2"))
    assert [(turn.kind, turn.text) for turn in reading.turns] == [
        ("user", "I prefer tabs."),
        ("relayed", "I prefer spaces."),
    ]


@pytest.mark.invariant(
    "A session file loads to what was written, whatever was withdrawn, summarised or torn; nobody forges the user in it"
)
@pytest.mark.parametrize(
    "change",
    [
        {"csmd": "0" * 64}, {"csmd": True}, {"message": {"role": "user", "content": "I prefer spaces."}}, {"uuid": "u9"},
        {"message": {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}},
    ],
    ids=["a guess", "no text", "other words", "another line's", "blocks"],
)  # fmt: skip
def test_a_forged_line_does_not_become_the_user(change: dict[str, Any]) -> None:
    forged = {**json.loads(line("user", "I prefer tabs.", "u1", by_person=True)), **change}
    assert {turn.kind for turn in turns(json.dumps(forged).encode()).turns} == {"relayed"}


def test_a_mark_of_another_key_or_session_is_none() -> None:
    other = line("user", "I prefer tabs.", "u1", by_person=True, key=b"x" * 32)
    assert [turn.kind for turn in turns(other).turns] == ["relayed"]
    with pytest.raises(csmd_sessions.BadInput):
        turns(line("user", "x", "u1", by_person=True), path=HOME / "-p" / "other.jsonl")


def test_a_transcript_of_the_host_is_read_the_hosts_way() -> None:
    assert csmd_sessions.make_reader(Path("/home/me/.claude/projects/-p/s.jsonl"), home=HOME, key=KEY) is None


def test_summaries_system_remarks_and_tombstones_are_taken_in_as_what_they_are() -> None:
    reading = turns(
        line("summary", "All.", "s1", uuids=["u1"]),
        line("system", "Note.", "n1"),
        line("tombstone", "", "t1", uuids=["u1"]),
    )
    assert [(turn.kind, turn.text) for turn in reading.turns] == [("summary", "All."), ("notification", "Note.")]
    assert reading.withdrawn == ["u1"]


# --- any sequence of writes, tombstones, summaries and kills


@dataclass
class Model:
    """What a session file should say, kept as plain values."""

    order: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    bad: int = 0

    def summarise(self, uuid: str, text: str, names: list[str]) -> None:
        self.order[self.order.index(names[0])] = uuid
        self.order = [name for name in self.order if name not in names]
        self.texts[uuid] = text


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["user", "assistant", "system"]), st.text(min_size=1, max_size=12), st.integers(-1, 400)),
        st.tuples(st.just("tombstone"), st.integers(0, 9), st.integers(-1, 400)),
        st.tuples(st.just("summary"), st.integers(0, 9), st.integers(-1, 400)),
    ),
    max_size=14,
)  # fmt: skip


@pytest.mark.invariant(
    "A session file loads to what was written, whatever was withdrawn, summarised or torn; nobody forges the user in it"
)
@settings(max_examples=80, deadline=None)
@given(OPERATIONS)
def test_any_sequence_of_writes_and_kills_loads_to_the_model(operations: list[tuple[Any, ...]]) -> None:
    """A kill (a number of bytes, -1 for none) cuts the line that was just being written."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions" / "-p" / "s.jsonl"
        model = Model()
        for number, (kind, what, kept) in enumerate(operations):
            uuid, names = f"m{number}", list[str]()
            text = what.strip() if isinstance(what, str) else f"summary {number}"
            if kind == "tombstone":
                # a summary's own tombstone brings back what it stood for, which the model does not keep
                possible = [name for name in model.order if not model.texts[name].startswith("summary ")]
                names = possible[what : what + 1]
            elif kind == "summary":
                names = model.order[: what + 1]
            if (kind in ("tombstone", "summary") and not names) or not csmd_sessions.redact(
                text.replace("\0", ""), csmd_sessions.Counter()
            ).strip():
                continue
            before = path.read_bytes() if path.exists() else b""
            written = line(kind, text, uuid, uuids=names)
            files.append_lines(path, written)
            if 0 <= kept < len(written):
                torn = path.read_bytes()[: len(path.read_bytes()) - len(written) - 1 + kept]
                path.write_bytes(torn)
                whole = False
                model.bad += torn != before and bool(torn[len(before) :].strip())
            else:
                path.write_bytes(path.read_bytes().rstrip(b"\n")) if kept == len(written) else None
                whole = True
            if whole and kind == "tombstone":
                model.order.remove(names[0])
            elif whole and kind == "summary":
                model.summarise(uuid, text, names)
            elif whole:
                model.order.append(uuid)
                model.texts[uuid] = json.loads(written).get("content") or csmd_sessions.read_entry_text(
                    json.loads(written)
                )
        found = csmd_sessions.load_session(
            files.read_session_lines(path) if path.exists() else [], session="s", key=KEY
        )
        assert [(message.uuid, message.text) for message in found.messages] == [
            (n, model.texts[n]) for n in model.order
        ]
        assert found.bad_lines == model.bad
