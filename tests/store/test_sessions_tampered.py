"""What was made of a transcript before it came to light that a tool had written it is taken back, and nothing else."""

from __future__ import annotations

from typing import Any

from csmd.store import projects, sessions, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows

ONE = "/c/projects/-p/one.jsonl"


def stored(rows: Rows, given: Any, name: str, path: str, *, read_second: int) -> None:
    """A session with one statement, whose transcript was read at a time."""
    project = projects.ensure(rows, given.project(), now="")
    turn = given.turn(f"u-{name}", f"{name} uses tabs", session=name)
    turns.add_turn(rows, turn, text_hash=name, host="claude", project=project, path=path)
    rows.run(
        "insert into statements (turn_seq, session_seq, project_seq, text, text_hash, gate, category, confidence, "
        "authority, reasons, at) select t.seq, t.session_seq, t.project_seq, t.text, 'h', 'g', 'c', 1, 'user', '', t.at "
        "from turns t where t.uuid = :uuid",
        uuid=turn.uuid,
    )
    rows.run(
        "insert into files (path, device, inode, position, head, foot, mtime_ns, read_at) "
        "values (:path, 1, 1, 1, '', '', 1, :at)",
        path=path,
        at=given.at(read_second),
    )


def test_only_what_was_read_of_that_file_after_the_call_is_taken_back(store: Store, given: Any) -> None:
    asked: list[str] = []

    def hashed(name: str) -> str:
        asked.append(name)
        return f"hash of {name}"

    def story(rows: Rows) -> list[str]:
        stored(rows, given, "one", ONE, read_second=9)
        stored(rows, given, "same-name", "/d/projects/-q/one.jsonl", read_second=9)
        stored(rows, given, "read-before", "/e/projects/-q/one.jsonl", read_second=4)
        stored(rows, given, "longer-name", "/c/projects/-p/another-one.jsonl", read_second=9)
        stored(rows, given, "wildcards", "/c/projects/-p/onexjsonl", read_second=9)
        sessions.note_tampered(rows, ["one.jsonl"], at=given.at(5), hashed=hashed)
        assert sessions.is_tampered(rows, "hash of one.jsonl")
        return [
            str(name) for (name,) in rows.all(
                "select s.id from statements st join sessions s on s.seq = st.session_seq order by s.id"
            )
        ]  # fmt: skip

    assert store.write(story) == ["longer-name", "read-before", "wildcards"]
    assert asked == ["one.jsonl"], "what is hashed does not grow with the transcripts: the writer waits for it"
