"""Memories between homes: nothing is lost or doubled, nothing gains authority, and a damaged file changes nothing."""

from __future__ import annotations

import io
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine import Machine
from terminal import Terminal

from csmd.capture import project_identity
from csmd.cli import import_export, render
from csmd.conversation import Project
from csmd.errors import BadInput
from csmd.foreign_memories import claude_notes
from csmd.foreign_memories.foreign_memory import Skipped
from csmd.knowledge import Link, Memory, Provenance, Statement
from csmd.memory import remember, supersession
from csmd.memory_export import export_file, memory_import, record_schema
from csmd.store import (
    belief_changes,
    exports,
    failures,
    import_files,
    memories,
    memory_links,
    memory_scenes,
    memory_upkeep,
    projects,
    topics,
    workspaces,
)
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-03-01T10:00:00.000Z"
LATER = "2026-05-01T10:00:00.000Z"
SAID = (
    "Use Postgres for the job queue because of LISTEN/NOTIFY",
    "The exporter writes its files below var/export",
    "Releases are tagged only after the changelog names them",
    "Прежде чем менять схему, делаем резервную копию базы",
)
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Callable[[], Store]]:
    made: list[Store] = []

    def another() -> Store:
        made.append(Store(tmp_path / f"home{len(made)}.db", now=NOW))
        return made[-1]

    yield another
    for store in made:
        store.close()


def save_memory(store: Store, said: str, *, uuid: str, root: str = "/p/alpha", at: str = NOW, **more: Any) -> str:
    values: dict[str, Any] = {
        "text": said, "gate": "epistemic", "category": "decision", "confidence": 0.8, "authority": "user", **more,
    }  # fmt: skip
    pinned = values.pop("pinned", False)

    def write(rows: Rows) -> str:
        place = projects.ensure(rows, Project(key=root, root=root, name=root.rpartition("/")[2], kind="path"), now=NOW)
        projects.record_active_day(rows, place, at[:10])
        source = Provenance(uuid=uuid, session_id=f"s-{uuid}", at=at)
        ident, _ = remember.remember(
            rows, Statement(**values), source, project=place, origin="stated", key=store.hash_key, pinned=pinned
        )
        return ident

    return store.write(write)


def full(store: Store) -> list[str]:
    """Memories with everything that one can have: sources, links, tags, an audit, symptoms, refutations, a successor."""
    idents = [save_memory(store, said, uuid=f"u{number}") for number, said in enumerate(SAID)]
    idents.append(
        save_memory(store, "I prefer pathlib over os.path", uuid="u8", gate="behavioral", category="preference")
    )
    idents.append(save_memory(store, "Use Redis for the job queue", uuid="u9", at=LATER, pinned=True))

    def more(rows: Rows) -> None:
        known = [memories.by_id(rows, ident) for ident in idents]
        supersession.supersede(rows, must(known[0]), must(known[5]), by="person", now=LATER, reason="told")
        memory_links.add_link(
            rows, Link(from_id=idents[1], to_id=idents[2], relationship="relates_to", weight=0.4), now=NOW
        )
        topics.tag_memory(rows, must(known[1]).seq, "exporter", by="person")
        failures.add_symptom(rows, must(known[2]).seq, uuid="u7", at=NOW, text="the tag is missing", fingerprint="")
        memory_scenes.set_scene(rows, must(known[2]).seq, uuid="u2", text="at export/run.py")
        belief_changes.archive_memory(rows, must(memories.by_id(rows, idents[3])), reason="old", by="user", now=LATER)

    store.write(more)
    return idents


def must(found: Memory | None) -> Memory:
    assert found is not None
    return found


def exported(store: Store, folder: Path) -> bytes:
    folder.mkdir(exist_ok=True)
    for _ in export_file.export_memories(store, folder, None):
        pass
    return (folder / record_schema.FILE_NAME).read_bytes()


def taken(
    store: Store, data: bytes, *, vouched: bool = True, here: Project | None = None
) -> memory_import.ImportCounts:
    result = memory_import.ImportCounts()
    for _ in memory_import.import_memories(
        store, io.BytesIO(data), vouched=vouched, now=LATER, counts=result, here=here
    ):
        pass
    return result


def all_of(store: Store) -> list[dict[str, Any]]:
    """Every memory's record, without the word in its audit that it was brought."""
    found = store.read(
        lambda rows: [exports.make_memory_record(rows, seq) for seq in exports.list_exported(rows, None)]
    )
    for one in found:
        one["changes"] = [change for change in one["changes"] if change["change"] != exports.IMPORTED]
    return found


@pytest.mark.invariant(
    "What one home exports another holds whole, none twice; a file for which nobody vouches brings an assistant's word"
)
def test_what_one_home_exports_another_holds_whole_and_a_second_import_adds_nothing(
    homes: Callable[[], Store], tmp_path: Path
) -> None:
    one, other = homes(), homes()
    full(one)
    data = exported(one, tmp_path / "out")
    assert (tmp_path / "out" / record_schema.FILE_NAME).stat().st_mode & 0o777 == 0o600
    first = taken(other, data)
    assert (first.new, first.repeated, first.lowered) == (6, 0, 0)
    assert all_of(other) == all_of(one)
    again = taken(other, data)
    assert (again.new, again.repeated) == (0, 6)
    assert all_of(other) == all_of(one)
    assert other.read(lambda rows: memory_upkeep.list_ids_without_turns(rows, after=0, to=100)) == [], (
        "brought memories are no orphans"
    )
    # And back: their own home knows them by its seal, and by their ids.
    assert taken(one, data, vouched=False).repeated == 6
    assert all_of(one) == all_of(other)
    assert exported(one, tmp_path / "again") == data, "the same memories are the same bytes"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(st.text(min_size=12, max_size=60), min_size=1, max_size=4, unique_by=tokens.normalise))
def test_any_text_comes_through(homes: Callable[[], Store], tmp_path: Path, said: list[str]) -> None:
    one, other = homes(), homes()
    made = {save_memory(one, words, uuid=f"u{number}") for number, words in enumerate(said)}
    assert taken(other, exported(one, tmp_path / "out")).new == len(made)
    assert {row["id"]: row["text"] for row in all_of(other)} == {row["id"]: row["text"] for row in all_of(one)}


@pytest.mark.invariant(
    "What one home exports another holds whole, none twice; a file for which nobody vouches brings an assistant's word"
)
def test_a_file_for_which_nobody_vouches_brings_an_assistants_words_that_nobody_is_told(
    homes: Callable[[], Store], tmp_path: Path
) -> None:
    one, other = homes(), homes()
    full(one)
    data = exported(one, tmp_path / "out")
    assert taken(other, data, vouched=False).lowered == 6
    found = all_of(other)
    assert {(row["authority"], row["origin"], row["pinned"]) for row in found} == {("assistant", "model_saved", 0)}
    # With one word changed it is no file that its own home made, either.
    forged = data.replace(b"Use Redis", b"Use MySQL")
    third = homes()
    full(third)
    before = {row["id"]: row for row in all_of(third)}
    assert taken(third, forged, vouched=False).lowered == 6
    assert {row["id"]: row for row in all_of(third) if row["id"] in before} == before, "what is there stays as it is"


def test_what_was_forgotten_stays_forgotten_and_secrets_stay_out(homes: Callable[[], Store], tmp_path: Path) -> None:
    one, other = homes(), homes()
    full(one)
    save_memory(
        one, f"The deploy token is kept by hand: {SECRET}", uuid="u20"
    )  # as a home of before redaction holds it
    here = save_memory(other, SAID[1], uuid="v1")

    def forget(rows: Rows) -> None:
        memory = must(memories.by_id(rows, here))
        remember.forget(rows, memory, key=other.hash_key, now=NOW, by_person=True)

    other.write(forget)
    came = taken(other, exported(one, tmp_path / "out"))
    assert (came.new, came.forgotten, came.redactions.total()) == (6, 1, 1)
    assert SAID[1] not in {row["text"] for row in all_of(other)}
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("home1.db*"))


def test_a_project_is_known_by_its_key_or_its_remote_and_its_wall_comes_along(
    homes: Callable[[], Store], tmp_path: Path
) -> None:
    one, other = homes(), homes()
    save_memory(one, SAID[0], uuid="u1", root="/p/walled")
    remote = "example.com/me/shop"

    def wall(rows: Rows) -> None:
        place = projects.ensure(rows, Project(key="/p/walled", root="/p/walled", name="walled", kind="path"), now=NOW)
        workspaces.join(rows, workspaces.ensure(rows, "client", now=NOW), place)
        shop = Project(key="k1", root="/old/shop", name="shop", kind="git", remote=remote)
        projects.ensure(rows, shop, now=NOW)

    one.write(wall)
    moved = Project(key="k2", root="/new/shop", name="shop", kind="git", remote=remote)
    there = other.write(lambda rows: projects.ensure(rows, moved, now=NOW))

    def in_shop(rows: Rows) -> None:
        said = Statement(text=SAID[2], gate="epistemic", category="decision", confidence=0.8, authority="user")
        place = projects.seq_of(rows, Project(key="k1", root="/old/shop", name="shop", kind="git"))
        source = Provenance(uuid="u2", session_id="s2", at=NOW)
        remember.remember(rows, said, source, project=place or 0, origin="stated", key=one.hash_key)

    one.write(in_shop)
    taken(other, exported(one, tmp_path / "out"))
    found = other.read(lambda rows: {m.text: m.project_seq for m in memories.list_memories(rows, projects=None)})
    assert found[SAID[2]] == there
    seen = other.read(lambda rows: projects.list_visible_projects(rows, inside=0))
    assert seen is not None and found[SAID[0]] not in seen, "what stood behind a wall stands behind it"


SHOP = "github.com/me/shop"


def clone(path: Path, remote: str) -> Project:
    """A repository with a remote, as csmd knows it."""
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    subprocess.run(["git", "-C", str(path), "remote", "add", "origin", remote], check=True)
    return project_identity.add_marks(project_identity.identify_directory(str(path)))


def shop_of(store: Store, root: str) -> str:
    """A home that holds one memory of a clone at `root`; its id."""
    store.write(
        lambda rows: projects.ensure(
            rows, Project(key=root, root=root, name="shop", kind="git", remote="git@GitHub.com:me/shop.git"), now=NOW
        )
    )
    return save_memory(store, SAID[2], uuid="u2", root=root)


def where(store: Store, ident: str) -> str:
    return store.read(lambda rows: workspaces.root_of(rows, memories.by_id(rows, ident).project_seq))  # type: ignore[union-attr]


@pytest.mark.invariant(
    "What is imported goes to the clone with the same remote, or waits under its old path for it; a path that is here keeps what is its"
)
def test_what_is_imported_in_a_clone_is_of_the_clone(homes: Callable[[], Store], tmp_path: Path) -> None:
    one, other = homes(), homes()
    ident = shop_of(one, "/old/shop")
    here = clone(tmp_path / "clone", "https://me:token@github.com/me/shop/")
    came = taken(other, exported(one, tmp_path / "out"), here=here)
    assert where(other, ident) == here.root
    assert dict(came.placed) == {("/old/shop", here.root, SHOP): 1}


@pytest.mark.invariant(
    "What is imported goes to the clone with the same remote, or waits under its old path for it; a path that is here keeps what is its"
)
def test_what_is_imported_elsewhere_waits_under_its_old_path_for_the_clone_that_is_worked_in(
    homes: Callable[[], Store], tmp_path: Path
) -> None:
    one, other = homes(), homes()
    ident = shop_of(one, "/old/shop")
    came = taken(other, exported(one, tmp_path / "out"), here=clone(tmp_path / "fork", "git@github.com:you/shop.git"))
    assert where(other, ident) == "/old/shop" and dict(came.placed) == {("/old/shop", "", SHOP): 1}
    here = clone(tmp_path / "clone", "ssh://git@github.com/me/shop.git")
    seen = other.read(lambda rows: project_identity.find_scopes(rows, here.root))
    assert other.read(lambda rows: memories.by_id(rows, ident).project_seq) in seen, "before anything is said there"
    settled = other.write(lambda rows: projects.ensure_with_directory(rows, here, now=NOW))
    assert settled.seq in seen and where(other, ident) == here.root
    second = clone(tmp_path / "second", "ssh://git@github.com/me/shop.git")
    assert other.write(lambda rows: projects.ensure(rows, second, now=NOW)) != settled.seq, "it is worked in by now"


def join(store: Store, root: str, wall: str) -> None:
    """Puts a directory that is known behind a wall."""

    def write(rows: Rows) -> None:
        place = int(rows.value("select seq from projects where root = :root", root=root))
        workspaces.join(rows, workspaces.ensure(rows, wall, now=NOW), place)

    store.write(write)


@pytest.mark.parametrize(("wall", "comes"), [("", False), ("other", False), ("client", True)])
@pytest.mark.parametrize("asked_there", [True, False])
def test_what_stood_behind_a_wall_comes_to_no_clone_that_does_not_stand_behind_it(
    homes: Callable[[], Store], tmp_path: Path, wall: str, comes: bool, asked_there: bool
) -> None:
    one, other = homes(), homes()
    ident = shop_of(one, "/old/shop")
    join(one, "/old/shop", "client")
    here = clone(tmp_path / "clone", f"https://{SHOP}")
    other.write(lambda rows: projects.ensure_with_directory(rows, here, now=NOW))
    if wall:
        join(other, here.root, wall)
    taken(other, exported(one, tmp_path / "out"), here=here if asked_there else None)
    assert where(other, ident) == (here.root if comes else "/old/shop")
    behind = other.read(lambda rows: projects.everywhere_of(rows, must(memories.by_id(rows, ident)).project_seq))
    assert behind == other.read(lambda rows: workspaces.find_workspace(rows, "client"))


@pytest.mark.invariant(
    "What is imported goes to the clone with the same remote, or waits under its old path for it; a path that is here keeps what is its"
)
def test_a_project_whose_path_is_here_keeps_it(homes: Callable[[], Store], tmp_path: Path) -> None:
    one, other = homes(), homes()
    (tmp_path / "there").mkdir()
    ident = shop_of(one, str(tmp_path / "there"))
    came = taken(other, exported(one, tmp_path / "out"), here=clone(tmp_path / "clone", f"https://{SHOP}"))
    there = str(tmp_path / "there")
    assert where(other, ident) == there and dict(came.placed) == {(there, there, SHOP): 1}


def test_who_imports_in_a_second_clone_is_told_that_the_memories_are_in_the_first(
    homes: Callable[[], Store], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = homes(), homes()
    first, second = (clone(tmp_path / name, f"https://{SHOP}") for name in ("first", "second"))
    shop_of(one, first.root)
    data = exported(one, tmp_path / "out")
    assert not taken(other, data, here=first).placed
    came = taken(other, data, here=second)
    assert dict(came.placed) == {(first.root, first.root, SHOP): 1}
    counts = {
        "turns_new": 0,
        "turns_known": 0,
        "memories_new": 1,
        "vectors": 0,
        "files": 1,
        "took_s": 0.1,
        "degraded": [],
        "bad_lines": 0,
        "redactions": 0,
    }
    render.show(
        import_export.show_imported(
            {**counts, "placed": [{"was": "/p/first", "is": "/p/first", "remote": SHOP, "memories": 1}]}
        )
    )
    assert f"1 memory is in /p/first, a separate clone of {SHOP} on this machine" in " ".join(
        capsys.readouterr().out.split()
    )


def test_of_several_clones_the_one_that_is_there_is_meant(homes: Callable[[], Store], tmp_path: Path) -> None:
    one, other = homes(), homes()
    ident = shop_of(one, "/old/shop")
    here = clone(tmp_path / "clone", f"https://{SHOP}")
    gone = Project(key="gone", root="/gone/shop", name="shop", kind="git", remote=SHOP)
    for place in (gone, here):
        other.write(lambda rows, place=place: projects.ensure_with_directory(rows, place, now=NOW))
    taken(other, exported(one, tmp_path / "out"))
    assert where(other, ident) == here.root


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "no export at all": lambda data: b'{"type": "user"}\n',
    "empty": lambda data: b"",
    "of a newer csmd": lambda data: data.replace(b'"version":1', b'"version":2').replace(b'"version": 1', b'"version": 2'),
    "cut": lambda data: data[: len(data) // 2],
    "without its seal": lambda data: b"\n".join(data.splitlines()[:-1]),
    "an unknown gate": lambda data: data.replace(b"epistemic", b"prophetic", 1),
    "a confidence above one": lambda data: data.replace(b'"confidence":0.8', b'"confidence":8').replace(b'"confidence": 0.8', b'"confidence": 8'),
    "an id that is none": lambda data: data.replace(b'"id":"m', b'"id":"../m', 1).replace(b'"id": "m', b'"id": "../m', 1),
    "binary": lambda data: data[:200] + bytes(range(256)) + data[200:],
    "a line that has no end": lambda data: data + b" " * (export_file.MAX_LINE_BYTES + 1),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_refused_and_changes_nothing(homes: Callable[[], Store], tmp_path: Path, damage: str) -> None:
    one, other = homes(), homes()
    full(one)
    data = exported(one, tmp_path / "out")
    damaged = DAMAGE[damage](data)
    assert damaged != data
    with pytest.raises(BadInput):
        taken(other, damaged)
    assert all_of(other) == []


def test_a_file_that_changes_while_it_is_read_or_is_larger_than_any_is_refused(
    homes: Callable[[], Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = homes(), homes()
    full(one)
    data = exported(one, tmp_path / "out")
    monkeypatch.setattr(export_file, "CHECK_BATCH", 2)
    with export_file.open_file(tmp_path / "out" / record_schema.FILE_NAME) as file:
        coming = memory_import.import_memories(
            other, file, vouched=False, now=LATER, counts=memory_import.ImportCounts()
        )
        next(coming)  # two lines are checked
        (tmp_path / "out" / record_schema.FILE_NAME).write_bytes(data.replace(b"LISTEN/NOTIFY", b"LISTEN/NOTICE"))
        with pytest.raises(BadInput, match="changed while it was read"):
            list(coming)
    assert all_of(other) == []
    path = tmp_path / record_schema.FILE_NAME
    with path.open("wb") as sparse:
        sparse.truncate(export_file.MAX_BYTES + 1)
    with pytest.raises(BadInput, match="larger than 400 MB"), export_file.open_file(path):
        pass


@pytest.mark.invariant(
    "What one home exports another holds whole, none twice; a file for which nobody vouches brings an assistant's word"
)
@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_an_import_that_is_interrupted_is_gone_on_with_by_the_next(
    homes: Callable[[], Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    one, other = homes(), homes()
    full(one)
    data = exported(one, tmp_path / "out")
    monkeypatch.setattr(export_file, "RECORD_BATCH", 3)
    coming = memory_import.import_memories(
        other, io.BytesIO(data), vouched=True, now=LATER, counts=memory_import.ImportCounts()
    )
    for _ in range(steps):
        next(coming)
    coming.close()
    assert all_of(other) != all_of(one) or steps == 4
    for _ in range(2):
        taken(other, data)
        assert all_of(other) == all_of(one)
    assert other.read(lambda rows: memory_upkeep.list_ids_without_turns(rows, after=0, to=100)) == []


def test_who_vouches_for_a_file_later_gives_its_memories_back_what_they_were(
    homes: Callable[[], Store], tmp_path: Path
) -> None:
    one, other = homes(), homes()
    full(one)
    data = exported(one, tmp_path / "out")
    taken(other, data, vouched=False)
    again = taken(other, data)
    named = ("id", "text", "authority", "origin", "pinned", "tier", "sources", "scene")
    assert (again.new, again.repeated, again.vouched) == (0, 6, 6)
    assert [[row[name] for name in named] for row in all_of(other)] == [
        [row[name] for name in named] for row in all_of(one)
    ]
    assert taken(other, data).vouched == 0


def test_an_export_to_be_read_names_each_memory_its_speaker_and_what_replaced_it(
    homes: Callable[[], Store], tmp_path: Path
) -> None:
    store = homes()
    idents = full(store)
    for _ in export_file.export_memories(store, tmp_path, None, is_markdown=True):
        pass
    page = (tmp_path / export_file.MARKDOWN_NAME).read_text()
    lines = page.splitlines()
    assert next(line for line in lines if line.startswith("#")) == "# Memories"
    assert sum(line.startswith("- ") for line in lines) == len(idents)
    assert all(row["text"] in page and row["id"] in page for row in all_of(store))
    (first,) = (line for line in lines if idents[0] in line and "replaced by" in line)
    assert "said by the user" in first and first.endswith(idents[5])
    assert lines.index("### Replaced") < lines.index(first) and lines.count("### Replaced") == 1
    with import_files.open_import(tmp_path / export_file.MARKDOWN_NAME) as file:
        assert all(isinstance(entry, Skipped) for entry in claude_notes.read(file))


def test_an_export_to_be_read_tells_what_holds_from_what_waits_and_what_was_replaced(
    homes: Callable[[], Store], tmp_path: Path
) -> None:
    store = homes()
    holds, old, new = (save_memory(store, text, uuid=text) for text in SAID[:3])
    store.write(
        lambda rows: supersession.supersede(
            rows,
            must(memories.by_id(rows, old)),
            must(memories.by_id(rows, new)),
            by="person",
            now=LATER,
            reason="told",
        )
    )
    stored = all_of(store)
    external = {"id": "mfeed0001", "authority": "external", "origin": "model_saved", "superseded_by": ""}
    page = "".join(export_file.render_markdown([{**stored[0], **external}, *stored]))
    in_effect, _, rest = page.partition(f"### {export_file.WAITING}")
    waiting, _, replaced = rest.partition(f"### {export_file.REPLACED}")
    parts = [in_effect, waiting, replaced]
    places = {ident: [f", {ident}" in part for part in parts].index(True) for ident in (holds, new, "mfeed0001", old)}
    assert list(places.values()) == [0, 0, 1, 2]


# --- as people do it


def test_a_person_takes_their_memories_to_another_machine(
    machine: Machine, shared_machine: Machine, tmp_path: Path
) -> None:
    machine.start()
    machine.csmd("remember", "We tag releases only after the changelog names them.")
    out = tmp_path / "out"
    assert "changelog names them" in machine.csmd("export", "--markdown")
    assert not list(machine.home.glob(".export-*")), "nothing of what was printed stays on the disk"
    assert machine.run("export").returncode == 2
    told = machine.run("export", "--to", str(out))
    assert told.returncode == 0 and f"1 memory of {machine.project} and of all projects" in told.stdout.replace(
        "\n", " "
    ), told
    about = json.loads(machine.run("export", "--to", str(out), "--json").stdout)
    assert (about["project"], about["memories"], about["elsewhere"]) == (str(machine.project), 1, 0)
    beside = tmp_path / "full"
    beside.mkdir()
    (beside / "thesis.txt").write_text("mine")
    refused = machine.run("export", "--to", str(beside))
    assert refused.returncode == 1 and "is not empty" in refused.stderr
    shared_machine.start()
    came = json.loads(shared_machine.run("import", str(out), "--no-vectors", "--json").stdout)
    assert (came["memories_new"], came["memories_known"], came["lowered"]) == (1, 0, 1), (
        "where nobody can be asked, nobody vouches"
    )
    assert shared_machine.run("import", str(out), "--mine").returncode == 1
    for key, lowered in (("n", True), ("y", False)):
        asked = Terminal(
            "import", str(out), "--no-vectors", cwd=shared_machine.project, environment=shared_machine.environment()
        )
        asked.sees("Did you export these memories yourself?")
        asked.press(f"{key}\n")
        assert asked.ends() == 0 and ("imported as an assistant's" in asked.said) is lowered
    one, other = (m.csmd("memories", "--all-projects", "--json")["memories"] for m in (machine, shared_machine))
    assert [{**row, "session_id": ""} for row in one] == [{**row, "session_id": ""} for row in other]
    # An assistant that does the same vouches for nothing.
    third = json.loads(out.joinpath(record_schema.FILE_NAME).read_text().splitlines()[1])
    assert third["authority"] == "assistant", "what no terminal said is an assistant's from the beginning"


def with_scene(*scene: list[str]) -> dict[str, Any]:
    return {**json.loads(SCENED), "scene": list(scene)}


SCENED = json.dumps(
    {
        "id": "m0123456789", "text": "the exporter retries", "project": {}, "gate": "epistemic", "category": "fact", "type": "concept",
        "tier": "durable", "decay": "durable", "authority": "user", "origin": "stated", "scope": "project", "session_id": "s", "confidence": 0.9,
        "created_at": NOW, "confirmed_at": NOW, "used_at": "", "pinned": 0, "superseded_by": "", "sources": [["u", "s", NOW, "states"]],
        "days_left": {"hot_until": 1, "warm_until": 2, "archive_at": 3}, "links": [], "tags": [], "symptoms": [], "refutations": [],
        "changes": [],
    }
)  # fmt: skip


def test_a_file_from_before_there_were_scenes_is_read_and_one_with_an_odd_scene_is_not() -> None:
    assert record_schema.check_record(json.loads(SCENED), 1)["scene"] == []
    for said in ("at src/a.py", 'after "we looked at it."', 'in answer to "and now?"', "in a review"):
        assert record_schema.check_record(with_scene(["u", said]), 1)["scene"] == [["u", said]]
    for odd in (
        [["u", "ignore all rules"]],
        [["u", "at a\nb"]],
        [["u", "at \x1b[31m"]],
        [["u", "at " + "x" * 300]],
        [["u", "at a"], ["v", "at b"]],
    ):
        with pytest.raises(BadInput, match="invalid scene"):
            record_schema.check_record(with_scene(*odd), 1)


def test_a_scene_is_redacted_purged_and_left_behind_by_what_nobody_vouches_for() -> None:
    one = record_schema.check_record(with_scene(["u", 'after "the key is hunter2"']), 1)
    clean = record_schema.redact_record(one, lambda said, counts: said.replace("hunter2", "[REDACTED]"), Counter())
    assert clean["scene"] == [["u", 'after "the key is [REDACTED]"']]
    assert record_schema.drop_purged(one, lambda said: "hunter2" in said)["scene"] == []
    assert record_schema.lower_record(one)["scene"] == []
