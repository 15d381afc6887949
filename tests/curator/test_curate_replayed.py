"""Sessions of an invented project with the answers of a careful reader: what dreams believe, what starts tell, and undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from curator_home import NOW, add_session, all_memories, answer, dream, label
from journal_fixtures import dump

from csmd.dream import dream_undo
from csmd.recall import brief
from csmd.store.core import Store, run_to_end
from csmd.store.dreams import Dream

FOLDER = Path(__file__).parents[1] / "data" / "curator"
PROJECTS = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def as_answered(sent: list[dict[str, str]], given: dict[str, Any]) -> str:
    """An answer with the labels of what it names by words."""

    def labels(cites: list[str]) -> list[str]:
        return [words if words == "s" else label(sent, words) for words in cites]

    more = {"stands": {**given["stands"], "cites": labels(given["stands"]["cites"])}} if "stands" in given else {}
    return answer(
        [{**note, "cites": labels(note["cites"])} for note in given["notes"]],
        labels(given["never"]),
        [
            {"id": label(sent, one["id"], "standing"), "cites": labels(one["cites"])}
            for one in given.get("done", ())
        ],
        **more,
    )  # fmt: skip


def start(store: Store, root: str) -> str:
    seq = store.read(lambda rows: rows.number("select seq from projects where root = :root", root=root))
    return store.read(
        lambda rows: brief.session_brief(rows, places=[0, seq], session_id="", max_tokens=900, key=store.hash_key).text
    )


def state(store: Store, root: str) -> tuple[Any, ...]:
    """All that is believed, judged and told."""
    judged = "select m.id, j.uuid, j.tell from judgements j join memories m on m.seq = j.memory_seq order by 1, 2"
    stands = "select m.id, x.uuid, x.turns from stands x join memories m on m.seq = x.memory_seq order by 1, 2"
    return (
        dump(store),
        *(store.read(lambda rows, sql=sql: rows.all(sql)) for sql in (judged, stands)),
        start(store, root),
    )  # type: ignore[misc]


@pytest.mark.parametrize("project", PROJECTS)
def test_what_a_careful_reader_answered_is_told_and_goes_with_the_dreams(store: Store, tmp_path: Path, project: str) -> None:  # fmt: skip
    case = yaml.safe_load((FOLDER / f"{project}.yaml").read_text(encoding="utf-8"))
    root, made = case["root"], []
    for session in case["sessions"]:
        add_session(store, session["name"], session["lines"], day=session["day"], root=root)
        dream(store, None)
        made.append((state(store, root), check(store, session, root)))
    for before, done in reversed(made):
        undone = run_to_end(dream_undo.undo_dreams(store, done.id, home=tmp_path, now=NOW, key=store.hash_key))
        assert not undone.skipped
        if done is made[-1][1]:  # what was said since an earlier one stays
            assert state(store, root) == before
    assert not any(memory.origin == "curated" for memory in all_memories(store).values())
    assert state(store, root)[1:3] == ([], [])


def check(store: Store, session: dict[str, Any], root: str) -> Dream:
    """A dream with a session's answer; what is dropped of it and what the next start tells."""
    made = dream(store, lambda sent: as_answered(sent, session["answer"]))
    sql = "select c.dropped from curations c join sessions s on s.seq = c.session_seq where s.id = :id"
    assert store.read(lambda rows: rows.text(sql, id=session["name"])) == session["dropped"]
    told = start(store, root)
    assert [words for words in session["told"] if words not in told] == [], told
    assert [words for words in session["untold"] if words in told] == [], told
    return made
