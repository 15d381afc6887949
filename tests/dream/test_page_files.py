"""The pages as they live: written, edited, read back and written again; nothing is dropped, nothing comes back unasked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from memory_factory import memory_in

from csmd.conversation import Project, Turn
from csmd.dream import dream_undo, page_edits, page_files, page_format
from csmd.dream.actions import Fact
from csmd.knowledge import Memory, Provenance, Statement
from csmd.memory import remember, review_answers
from csmd.memory.undo import undo_answer
from csmd.pauses import Pauses
from csmd.store import (
    candidates,
    dreams,
    journal,
    memories,
    memory_deletion,
    projects,
    stored_pages,
    tombstones,
    topics,
    turns,
    workspaces,
)
from csmd.store.core import Store, run_to_end
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"
LATER = "2026-03-02T10:00:00.000Z"
LAST = "2026-03-03T10:00:00.000Z"
SAID = {
    "decision": ("We use Postgres for the job queue because of its notifications", "Releases are tagged after the changelog names them"),
    "gotcha": ("The exporter fails when its directory below var is missing", "Migrations hang while a worker holds the advisory lock"),
    "fact": ("The gull service listens on port 8400 for health checks", "Nightly builds are kept for two weeks on the artefact host"),
}  # fmt: skip


class Home:
    """A store with the pages of its memories."""

    def __init__(self, store: Store, directory: Path) -> None:
        self.store, self.directory = store, directory

    def project(self, name: str = "gull", *, wall: str = "") -> int:
        def make(rows: Rows) -> int:
            place = Project(key=f"key-{name}", root=f"/p/{name}", name=name.partition("@")[0], kind="path")
            seq = projects.ensure(rows, place, now=NOW)
            if wall:
                workspaces.join(rows, workspaces.ensure(rows, wall, now=NOW), seq)
            return seq

        return self.store.write(make)

    def say(
        self,
        said: str,
        *,
        project: int,
        scope: Any = None,
        pinned: bool = False,
        origin: str = "stated",
        **changes: Any,
    ) -> str:
        values: dict[str, Any] = {
            "gate": "epistemic",
            "category": "fact",
            "confidence": 0.85,
            "authority": "user",
            **changes,
        }
        source = Provenance(uuid=f"u {said}", session_id="s1", at=NOW)
        return self.store.write(
            lambda rows: remember.remember(
                rows, Statement(text=said, **values), source, project=project, origin=origin, key=self.store.hash_key,
                pinned=pinned, scope=scope,
            )[0]
        )  # fmt: skip

    def filled(self) -> int:
        project = self.project()
        for category, said in SAID.items():
            for one in said:
                self.say(one, project=project, category=category)
        return project

    def write(self, *, now: str = NOW, facts: list[Fact] | None = None, dream: int = 0) -> list[str]:
        return list(page_files.write_pages(self.store, self.directory, dream_seq=dream, now=now, facts=facts or []))

    def read(self, *, now: str = LATER) -> int:
        return page_edits.read_edits(self.store, self.directory, now=now, key=self.store.hash_key)

    def text(self, path: str) -> str:
        return (self.directory / path).read_text()

    def put(self, path: str, whole: str) -> None:
        (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / path).write_text(whole)

    def change(self, path: str, old: str, new: str) -> None:
        assert old in self.text(path), old
        self.put(path, self.text(path).replace(old, new))

    def line(self, path: str, words: str) -> str:
        return next(f"{one}\n" for one in self.text(path).splitlines() if words in one)

    def memory(self, ident: str) -> Memory:
        found = self.store.read(lambda rows: memories.by_id(rows, ident))
        assert found is not None, ident
        return found

    def saying(self, words: str) -> Memory:
        found = [one for one in self.store.read(memories.active_memories) if words in one.text]
        assert len(found) == 1, [one.text for one in found]
        return found[0]

    def told(self) -> dict[str, Any]:
        return self.store.read(lambda rows: page_edits.report_pages(rows, self.directory, key=self.store.hash_key))

    def waiting(self) -> list[tuple[str, str, str, tuple[str, ...]]]:
        found = self.store.read(lambda rows: candidates.waiting(rows, projects=None))
        return [(one.kind, one.source, one.text, one.memory_ids) for one in found]

    def answer(self, verb: Any) -> None:
        def write(rows: Rows) -> None:
            one = candidates.waiting(rows, projects=None)[0]
            asked = review_answers.ReviewAnswer(verb=verb, uuid="cli:1", at=LAST, key=self.store.hash_key)
            review_answers.record_candidate_answer(rows, one, asked)

        self.store.write(write)

    def call(self, tool: str, given: str, *, at: str = LATER, project: int = 1, cwd: str = "/p/gull") -> None:
        turn = Turn(uuid=f"call {given}", session_id="s9", kind="tool_call", text=given, at=at, cwd=cwd, tool_name=tool)
        self.store.write(
            lambda rows: turns.add_turn(rows, turn, text_hash="x", host="claude", project=project, path="")
        )

    def files(self) -> dict[str, str]:
        return {
            path.relative_to(self.directory).as_posix(): path.read_text()
            for path in sorted(self.directory.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield Home(opened, tmp_path / "memory")
    opened.close()


def page_of(home: Home, name: str = "gull") -> str:
    return next(path for path in home.files() if path.startswith(f"projects/{name}-") and "restored" not in path)


# --- writing


def test_a_page_says_what_is_known_under_its_headings_and_is_private(home: Home) -> None:
    project = home.filled()
    home.say(
        "Always write the tests before the code",
        project=project,
        gate="correction",
        category="preference",
        scope="project",
    )
    assert home.write() == ["user.md", page_of(home), "MEMORY.md"]
    whole = home.text(page_of(home))
    assert re.findall("^## (.*)", whole, re.MULTILINE) == [
        "Corrections",
        "Decisions and conventions",
        "Known gotchas",
        "Facts",
    ]
    assert whole.startswith("---\nname: gull\ndescription: '/p/gull: 7 notes'\ntype: project\n---\n\n# gull\n")
    one = home.saying("Postgres")
    assert f"\n- {one.text} <!-- m:{one.id} -->\n" in whole
    assert f"- [gull]({page_of(home)}): /p/gull: 7 notes\n" in home.text("MEMORY.md")
    modes = {path.stat().st_mode & 0o777 for path in home.directory.rglob("*")}
    assert modes == {0o600, 0o700}


def test_the_same_memories_are_the_same_bytes_whatever_the_clock_says(home: Home) -> None:
    home.filled()
    home.write()
    before = home.files()
    assert home.write(now=LAST) == [] and home.files() == before
    assert home.read(now=LAST) == 0


NOT_ON_A_PAGE: dict[str, dict[str, Any]] = {
    "saved by a model": {"origin": "model_saved", "authority": "assistant"},
    "an assistant's guess": {"authority": "assistant", "category": "pattern", "confidence": 0.55},
}


def test_what_waits_for_a_person_stands_on_no_page(home: Home) -> None:
    project = home.filled()
    for name, values in NOT_ON_A_PAGE.items():
        home.say(f"The heron cache is {name} and rebuilt on every start", project=project, **values)
    home.write()
    assert not any("heron" in whole for whole in home.files().values())


@pytest.mark.invariant("What is behind a wall stands on pages and in daily files of its own")
def test_what_is_behind_a_wall_stands_on_its_own_page_only(home: Home) -> None:
    home.filled()
    for name in ("inside", "within"):
        walled = home.project(name, wall="acme")
        for number in range(6):
            home.say(f"The heron module number {number}{name} is built by make target {number}", project=walled)
    for memory in home.store.read(memories.active_memories):
        home.store.write(lambda rows, seq=memory.seq: topics.tag_memory(rows, seq, "builds", by=topics.PERSON))
    home.write()
    holding = [path for path, whole in home.files().items() if "heron" in whole or "inside" in whole or "acme" in whole]
    assert holding == [page_of(home, "inside"), page_of(home, "within")]


def test_two_projects_of_one_name_have_pages_of_their_own(home: Home) -> None:
    for name in ("gull@1", "gull@2"):
        home.say(f"Only {name[-1]} has this heron directory below its root", project=home.project(name))
    home.write()
    assert len([path for path in home.files() if path.startswith("projects/gull-")]) == 2
    assert {"[p/gull@1](", "[p/gull@2]("} == set(re.findall(r"\[p/[^]]*\]\(", home.text("MEMORY.md"))), (
        "each is told by where it is"
    )


def test_a_page_is_bounded_and_says_how_many_more_there_are(home: Home) -> None:
    project = home.project()
    for word in "amber birch cedar delta ember fjord grove haven inlet jetty knoll larch maple nadir oasis prism quartz ridge slate talon".split():
        home.say(f"The {word}1 queue drains {word}2 into {word}3", project=project)
    home.write()
    assert home.text(page_of(home)).count("<!-- m:") == 16
    assert "_4 more, less sure or much the same: `csmd memories` lists them._" in home.text(page_of(home))
    assert home.read() == 0


def fact(said: str, project: int) -> Fact:
    return Fact(
        kind="command",
        fingerprint="f",
        text=said,
        project_seq=project,
        seen=41,
        total=43,
        sessions=9,
        confidence=0.9,
        evidence=("a", "b"),
    )


def test_what_was_counted_stands_without_an_id_and_stays_off_once_it_was_taken_off(home: Home) -> None:
    project = home.filled()
    said = "tests run with `mise run test`, 41 of 43 times"
    home.write(facts=[fact(said, project)])
    assert f"## Counted over sessions\n\n- {said}\n" in home.text(page_of(home))
    home.change(page_of(home), f"- {said}\n", "")
    assert home.read() == 1
    home.write(facts=[fact(said.replace("41 of 43", "50 of 52"), project)], now=LATER)
    assert "mise" not in home.text(page_of(home))


def test_a_theme_gets_a_page_and_is_put_aside_when_hardly_anything_is_left(home: Home) -> None:
    made = {name: home.project(name) for name in ("gull", "heron")}
    idents = [
        home.say(f"The {name} pipeline keeps artefact {number}{name} in bucket {number}", project=made[name])
        for name in made for number in range(3)
    ]  # fmt: skip
    for ident in idents:
        seq = home.memory(ident).seq
        home.store.write(lambda rows, seq=seq: topics.tag_memory(rows, seq, "release builds", by=topics.PERSON))
    assert "topics/release-builds.md" in home.write()
    assert home.text("topics/release-builds.md").count("<!-- m:") == 6
    assert home.text("topics/release-builds.md").count("\n## [/p/") == 2
    home.put("topics/release-builds.md", home.text("topics/release-builds.md") + "\n## Your own notes\n\nask Ann\n")
    home.read()
    for ident in idents[:5]:
        home.store.write(lambda rows, ident=ident: memory_deletion.delete_memory(rows, memory_in(rows, ident)))
    home.write(now=LATER)
    assert "topics/release-builds.md" not in home.files()
    kept = home.files()["archive/topics/release-builds.md"]
    assert kept.count("<!-- m:") == 1 and "ask Ann" in kept
    assert home.write(now=LAST) == [] and home.read(now=LAST) == 0


def test_what_a_dream_writes_is_in_its_journal(home: Home) -> None:
    home.filled()
    dream = home.store.write(lambda rows: dreams.begin(rows, why="asked", sessions=0, now=NOW))
    written = home.write(dream=dream.seq)
    noted = home.store.read(lambda rows: rows.all("select path, was_there, is_there from changed_files order by seq"))
    assert noted == [(f"memory/{path}", 0, 1) for path in written]


@pytest.mark.invariant(
    "Who lost the dream lock writes no further page, and between two pages nothing forgotten is written"
)
def test_what_is_forgotten_between_two_pages_stands_on_none(home: Home) -> None:
    home.filled()
    writing = page_files.write_pages(home.store, home.directory, dream_seq=0, now=NOW, facts=())
    assert next(writing) == "user.md"
    gone = home.saying("Postgres")
    home.store.write(lambda rows: memory_deletion.delete_memory(rows, gone))
    assert len(list(writing)) > 1
    assert gone.id not in home.text(page_of(home)) and "port 8400" in home.text(page_of(home))


@pytest.mark.invariant("What is behind a wall stands on pages and in daily files of its own")
@pytest.mark.parametrize("written", ["user.md", "MEMORY.md"], ids=["before most pages", "after all of them"])
def test_a_wall_that_is_raised_between_two_pages_holds_for_all_of_them(home: Home, written: str) -> None:
    walled, other = home.project("gull"), home.project("tern")
    for number in range(6):
        home.say(f"The heron module number {number} is built by make target {number}", project=walled)
        home.say(f"The tern reads shard number {number} every hour from host{number}", project=other)
    for memory in home.store.read(memories.active_memories):
        home.store.write(lambda rows, seq=memory.seq: topics.tag_memory(rows, seq, "builds", by=topics.PERSON))
    writing = page_files.write_pages(home.store, home.directory, dream_seq=0, now=NOW, facts=())
    for path in writing:
        if path == written:
            break
    home.store.write(lambda rows: workspaces.join(rows, workspaces.ensure(rows, "acme", now=NOW), walled))
    assert list(writing)
    told = [path for path, whole in home.files().items() if "heron" in whole or "gull" in whole]
    assert told == [page_of(home, "gull")]
    assert home.write() == []


@pytest.mark.invariant("What is behind a wall stands on pages and in daily files of its own")
def test_a_themes_page_that_is_put_aside_takes_nothing_along_that_is_behind_a_wall_by_then(home: Home) -> None:
    walled, other = home.project("gull"), home.project("tern")
    for number in range(4):
        home.say(f"The heron module number {number} is built by make target {number}", project=walled)
    for said in ("The tern reads its shards from the spool host", "Reports of tern are mailed on Mondays"):
        home.say(said, project=other)
    for memory in home.store.read(memories.active_memories):
        home.store.write(lambda rows, seq=memory.seq: topics.tag_memory(rows, seq, "builds", by=topics.PERSON))
    assert "topics/builds.md" in home.write()
    home.store.write(lambda rows: workspaces.join(rows, workspaces.ensure(rows, "acme", now=NOW), walled))
    home.write(now=LATER)
    kept = home.files()["archive/topics/builds.md"]
    assert kept.count("<!-- m:") == 2 and "heron" not in kept and "tern" in kept


@pytest.mark.invariant(
    "No step of a dream, its preview or its undo is long; its own writes wake the stages once, and no client keeps an awaited one from going on"
)
def test_what_would_be_written_is_told_a_page_a_step_and_of_which_projects_it_is(home: Home) -> None:
    one, other, third = (home.project(name) for name in ("gull", "tern", "heron"))
    for number in range(3):
        home.say(f"The gull module number {number} is built by make target {number}", project=one)
        home.say(f"The tern shard number {number} lies on the host{number}", project=other)
    for memory in home.store.read(memories.active_memories):
        home.store.write(lambda rows, seq=memory.seq: topics.tag_memory(rows, seq, "builds", by=topics.PERSON))
    home.say("Herons are counted on Mondays by the warden", project=third)
    home.say("The warden keeps his list in a blue folder", project=third)

    def preview(rows: Rows) -> tuple[int, dict[str, frozenset[int]]]:
        steps = page_files.preview_changes(rows, home.directory, facts=(), key=home.store.hash_key, after={})
        count = 0
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return count, {would.path.partition("-")[0]: on for would, on in end.value}
            count += 1

    count, found = home.store.read(preview)
    assert count == 5 + len(found), "each page is made, and then compared, in a step of its own"
    assert found == {
        "user.md": {0}, "MEMORY.md": set(), "topics/builds.md": {one, other},
        "projects/gull": {one}, "projects/tern": {other}, "projects/heron": {third},
    }  # fmt: skip
    home.write()
    for memory in home.store.read(memories.active_memories):
        home.store.write(
            lambda rows, seq=memory.seq: rows.run("delete from memory_topics where memory_seq = :seq", seq=seq)
        )
    assert home.store.read(preview)[1]["topics/builds.md"] == {one, other}, "of a page that goes, those that were on it"


@pytest.mark.invariant(
    "Who lost the dream lock writes no further page, and between two pages nothing forgotten is written"
)
def test_pages_are_planned_anew_by_whatever_they_are_made_of(home: Home) -> None:
    project = home.filled()
    gotcha = home.saying("exporter")
    changes: list[tuple[str, dict[str, Any]]] = [
        ("update projects set name = 'renamed' where seq = :seq", {"seq": project}),
        ("update projects set workspace_seq = 9 where seq = :seq", {"seq": project}),
        ("insert into symptoms (memory_seq, uuid, at, text) values (:seq, 'u9', :now, 'it fails')", {"seq": gotcha.seq, "now": NOW}),
    ]  # fmt: skip
    seen = [home.store.read(stored_pages.read_content_stamp)]
    for said, values in changes:
        home.store.write(lambda rows, said=said, values=values: rows.run(said, **values))
        seen.append(home.store.read(stored_pages.read_content_stamp))
    for weight in (1.0, 0.0):
        home.store.write(
            lambda rows, weight=weight: topics.tag_memory(rows, gotcha.seq, "x", by=topics.PERSON, weight=weight)
        )
        seen.append(home.store.read(stored_pages.read_content_stamp))
    assert len(set(map(repr, seen))) == len(seen)


@pytest.mark.invariant(
    "A page that lost too much is kept whole beside itself; no unread edit and no foreign file is written over"
)
def test_nothing_that_csmd_did_not_write_is_written_over(home: Home) -> None:
    home.filled()
    home.put("user.md", "my own\n")
    home.put("notes.md", "not csmd's\n")
    home.write()
    assert (home.text("user.md"), home.text("notes.md")) == ("my own\n", "not csmd's\n")


# --- edits


def test_a_whole_life_of_a_page(home: Home) -> None:
    project = home.filled()
    home.write()
    path = page_of(home)
    old = home.saying("Postgres")
    home.change(path, "We use Postgres for the job queue", "We use Redis streams for the job queue")
    home.change(path, "## Known gotchas\n\n", "## Known gotchas\n\n- The linter ignores generated files below gen\n")
    assert home.told()["edited"] == [path]
    assert home.write(now=LATER) == [], "an edit that nobody has read is not written over"
    assert home.read() == 2
    new, added = home.saying("Redis"), home.saying("linter")
    assert (new.authority, new.category, new.project_seq) == ("user", "decision", project)
    assert (added.authority, added.gate, added.category, added.scope) == ("user", "epistemic", "gotcha", "project")
    assert home.memory(old.id).superseded_by == new.id
    assert home.read() == 0
    home.write(now=LATER)
    assert home.write(now=LAST) == [] and home.read(now=LAST) == 0
    said = page_format.parse_page(home.text(path)).lines()
    assert {item.id for _, item in said} == {one.id for one in home.store.read(memories.active_memories)}


def test_a_new_wording_is_an_answer_that_can_be_taken_back(home: Home) -> None:
    home.filled()
    home.write()
    old = home.saying("Postgres")
    home.change(page_of(home), "We use Postgres", "We use Redis")
    home.read()
    last = home.store.read(lambda rows: journal.find_last_answer(rows, projects=None))
    assert last is not None and last.kind == "edit"
    home.store.write(lambda rows: undo_answer(rows, last, now=LAST, key=home.store.hash_key))
    assert home.saying("Postgres").id == old.id


@pytest.mark.invariant("Any edit of one line is exactly that edit; a removed line is neither dropped nor put back")
def test_a_removed_line_is_asked_about_and_neither_dropped_nor_put_back(home: Home) -> None:
    project = home.filled()
    home.write()
    path, one = page_of(home), home.saying("port 8400")
    home.change(path, home.line(path, "port 8400"), "")
    assert home.read() == 1
    assert home.waiting() == [("stale", "page", one.text, (one.id,))]
    assert home.told()["asked"] == [{"page": path, "lines": 1}]
    assert home.store.read(lambda rows: memories.list_memories(rows, projects=[project]))[0].superseded_by == ""
    home.write(now=LATER)
    assert "port 8400" not in home.text(path) and home.memory(one.id).text == one.text
    home.answer("keep")
    home.write(now=LAST)
    assert "port 8400" in home.text(path)


def test_a_removed_line_that_is_dropped_is_forgotten(home: Home) -> None:
    home.filled()
    home.write()
    path = page_of(home)
    home.change(path, home.line(path, "port 8400"), "")
    home.read()
    home.answer("drop")
    home.write(now=LAST)
    assert "port 8400" not in home.text(path)
    assert not [one for one in home.store.read(memories.active_memories) if "port 8400" in one.text]


def test_a_removed_line_that_is_put_back_is_asked_about_no_more(home: Home) -> None:
    home.filled()
    home.write()
    path = page_of(home)
    whole, line = home.text(path), home.line(page_of(home), "port 8400")
    home.change(path, line, "")
    home.read()
    home.put(path, whole)
    home.read(now=LAST)
    assert home.waiting() == [] and home.told()["asked"] == []


def test_a_line_taken_off_a_themes_page_is_of_that_theme_no_more(home: Home) -> None:
    home.filled()
    other = home.project("heron")
    home.say("The heron exporter needs its own directory below var", project=other)
    for memory in home.store.read(memories.active_memories):
        home.store.write(lambda rows, seq=memory.seq: topics.tag_memory(rows, seq, "exports", by=topics.RULE))
    home.write()
    one = home.saying("port 8400")
    home.change("topics/exports.md", home.line("topics/exports.md", "port 8400"), "")
    home.change(
        "topics/exports.md",
        home.line("topics/exports.md", "heron exporter"),
        home.line("topics/exports.md", "heron exporter") + "- Exports are signed by the build host\n",
    )
    assert home.read() == 2 and home.waiting() == []
    home.write(now=LATER)
    assert "port 8400" not in home.text("topics/exports.md") and one.text in home.text(page_of(home))
    signed = home.saying("signed")
    assert signed.project_seq == other and signed.text in home.text("topics/exports.md")


def test_a_line_on_user_md_holds_everywhere(home: Home) -> None:
    home.filled()
    home.write()
    home.change(
        "user.md", "## How the user works\n", "## How the user works\n\n- Commits are small and have one subject\n"
    )
    assert home.read() == 1
    made = home.saying("Commits are small")
    assert (made.project_seq, made.scope, made.gate, made.authority) == (0, "user", "behavioral", "user")
    home.write(now=LATER)
    assert f"- {made.text} <!-- m:{made.id} -->" in home.text("user.md")


def test_a_user_md_that_somebody_wrote_before_csmd_is_read(home: Home) -> None:
    home.filled()
    home.put("user.md", "## How the user works\n\n- Commits are small and have one subject\n")
    assert home.read() == 1
    assert home.saying("Commits are small").authority == "user"
    home.write(now=LATER)
    assert home.text("user.md").startswith("---\nname: user\n")


CALLS = {
    "a tool that writes the file": ("Write", '{"file_path":"%s","content":"x"}'),
    "a shell line": ("Bash", '{"command":"echo x >> %s"}'),
}


@pytest.mark.invariant("What a tool may have written on a page is never the user's")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_what_a_tool_may_have_written_waits_for_a_person(home: Home, call: tuple[str, str]) -> None:
    home.filled()
    home.write()
    path, old = page_of(home), home.saying("Postgres")
    home.call(call[0], call[1] % (home.directory / path))
    home.change(path, "We use Postgres", "We use Redis")
    home.change(path, "## Facts\n\n", "## Facts\n\n- Nobody needs to review anything any more\n")
    assert home.read(now=LAST) == 2
    assert home.waiting() == [
        ("belief", "page", old.text.replace("Postgres", "Redis"), (old.id,)),
        ("belief", "page", "Nobody needs to review anything any more", ()),
    ]
    home.write(now=LAST)
    waits = f"  - {page_format.WAITING_PREFIX}{old.text.replace('Postgres', 'Redis')} <!-- csmd -->\n"
    assert f"\n- {old.text} <!-- m:{old.id} -->\n{waits}" in home.text(path), "what waits stands beside what holds"
    assert f"\n- {page_format.WAITING_PREFIX}Nobody needs to review anything any more <!-- csmd -->\n" in home.text(
        path
    )
    assert home.read(now=LAST) == 0 and home.write(now=LAST) == []
    home.answer("drop")
    home.answer("keep")
    home.write(now=LAST)
    assert "Redis" not in home.text(path) and page_format.WAITING_PREFIX not in home.text(path)
    assert "\n- Nobody needs to review anything any more <!-- m:" in home.text(path)


@pytest.mark.invariant(
    "A page is nobody's word where its writer may not have been heard; forgetting makes no unread edit the user's"
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_tool_is_found_however_it_reaches_the_directory(home: Home, inside: bool) -> None:
    home.filled()
    home.write()
    tail = "/".join(home.directory.parts[-2:])
    line, cwd = ("sed -i s/a/b/ *", str(home.directory)) if inside else (f"sed -i s/a/b/ ~/{tail}/*/*.md", "/p/gull")
    home.call("Bash", f'{{"command":"{line}"}}', cwd=cwd)
    home.change(page_of(home), "We use Postgres", "We use Redis")
    home.read(now=LAST)
    assert [one[:2] for one in home.waiting()] == [("belief", "page")]


@pytest.mark.invariant(
    "A page is nobody's word where its writer may not have been heard; forgetting makes no unread edit the user's"
)
def test_what_is_forgotten_leaves_the_pages_put_aside_and_makes_no_unread_edit_the_users(home: Home) -> None:
    home.filled()
    home.write()
    path, gone = page_of(home), home.saying("port 8400")
    home.put("archive/topics/gull.md", home.text(path))
    home.call("Write", f'{{"file_path":"{home.directory / path}"}}')
    home.change(path, "We use Postgres", "We use Redis")
    home.store.write(lambda rows: memory_deletion.delete_memory(rows, gone))
    assert page_files.remove_forgotten_lines(home.store, home.directory) == 2
    for one in (path, "archive/topics/gull.md"):
        assert "port 8400" not in home.text(one) and "Releases are tagged" in home.text(one)
    home.read(now=LAST)
    assert [one[:2] for one in home.waiting()] == [("belief", "page")]


@pytest.mark.invariant(
    "What is forgotten leaves all that csmd wrote by the line: pages, whole pages beside them, days, live sessions, the journal"
)
def test_what_is_forgotten_leaves_a_line_without_its_comment_the_whole_page_beside_and_the_journal(home: Home) -> None:
    home.filled()
    dream = home.store.write(lambda rows: dreams.begin(rows, why="test", sessions=1, now=NOW))
    home.write(dream=dream.seq)
    path, postgres, released = page_of(home), home.saying("Postgres"), home.saying("Releases")
    home.put(path, home.text(path)[: len(home.text(path)) // 3])
    home.read()  # the page lost too much: it stands beside as a whole
    beside = next(name for name in home.files() if "restored" in name)
    home.put(path, home.text(beside).replace(f" <!-- m:{postgres.id} -->", ""))
    assert postgres.text in home.text(path) and postgres.text in home.text(beside)

    def forget(rows: Rows) -> None:
        remember.forget(rows, postgres, key=home.store.hash_key, now=LATER, by_person=True)

    home.store.write(forget)
    assert page_files.remove_forgotten_lines(home.store, home.directory) == 2
    held = home.store.read(
        lambda rows: [*rows.all("select before, after from changed_files"), *rows.all("select text, also from pages")]
    )
    for said in (*home.files().values(), *(str(one) for row in held for one in row)):
        assert postgres.text not in said
    assert released.text in home.text(path) and released.text in home.text(beside)
    assert any(released.text in str(after) for _, after in held), "of a page only the line goes"
    assert page_files.remove_forgotten_lines(home.store, home.directory) == 0
    assert home.read() == 0 and "Postgres" not in str(home.store.read(memories.active_memories))


@pytest.mark.invariant(
    "What is forgotten leaves all that csmd wrote by the line: pages, whole pages beside them, days, live sessions, the journal"
)
@pytest.mark.parametrize("broken", [False, True])
def test_what_is_forgotten_whose_line_was_read_without_its_comment_comes_back_by_no_undo(
    home: Home, broken: bool
) -> None:
    project = home.filled()
    home.write()
    path, postgres, released = page_of(home), home.saying("Postgres"), home.saying("Releases")
    bare = postgres.text.replace(" because", "\n  because" if broken else " because")
    home.change(path, f"{postgres.text} <!-- m:{postgres.id} -->", bare)
    home.change(path, home.line(path, "Releases"), f"{home.line(path, 'Releases')}\nMy own words.\n")
    home.read()
    dream = home.store.write(lambda rows: dreams.begin(rows, why="test", sessions=1, now=LATER))
    home.say("The tern service listens on port 8500 for metrics", project=project)
    assert path in home.write(now=LATER, dream=dream.seq)
    home.store.write(lambda rows: dreams.end(rows, dream.seq, state="done", error="", now=LATER))

    def images() -> str:
        return str(home.store.read(lambda rows: rows.all("select before, after from changed_files")))

    assert "Postgres" in images() and f"m:{postgres.id}" in images()

    def forget(rows: Rows) -> None:
        remember.forget(rows, home.memory(postgres.id), key=home.store.hash_key, now=LAST, by_person=True)

    home.store.write(forget)
    page_files.remove_forgotten_lines(home.store, home.directory)
    assert "Postgres" not in images() + str(home.files()) and "notifications" not in images() + str(home.files())
    undone = run_to_end(
        dream_undo.undo_dreams(home.store, dream.id, home=home.directory.parent, now=LAST, key=home.store.hash_key)
    )
    assert f"memory/{path}" in undone.files and "Postgres" not in str(home.files())
    assert released.text in home.text(path) and "My own words." in home.text(path)
    assert home.read(now=LAST) == 0 and "Postgres" not in str(home.store.read(memories.active_memories))


@pytest.mark.invariant(
    "What is forgotten leaves all that csmd wrote by the line: pages, whole pages beside them, days, live sessions, the journal"
)
def test_a_line_without_its_comment_whose_page_was_read_leaves_it_when_it_is_forgotten_and_those_of_others_stay(
    home: Home,
) -> None:
    home.filled()
    home.say("Releases are tagged after the changelog names them", project=home.project("tern"), category="decision")
    home.write()
    path, postgres = page_of(home), home.saying("Postgres")
    home.put(path, re.sub(r" <!-- m:m\w+ -->", "", home.text(path)))
    home.read()

    def forget(rows: Rows) -> None:
        for one in memories.active_memories(rows):
            if one.id == postgres.id or ("Releases" in one.text and one.project_seq == postgres.project_seq):
                remember.forget(rows, one, key=home.store.hash_key, now=LAST, by_person=True)

    home.store.write(forget)
    page_files.remove_forgotten_lines(home.store, home.directory)
    assert "Postgres" not in home.text(path) and "advisory lock" in home.text(path)
    assert "Releases" in str([text for name, text in home.files().items() if "tern" in name])


@pytest.mark.invariant(
    "What is forgotten in a project leaves its own pages, by whatever its lines are known, and no other one's; a drop that is taken back lifts itself only"
)
@pytest.mark.parametrize("among", ["tern", "user"])
def test_what_is_forgotten_in_a_project_takes_no_line_without_an_id_from_another_ones_page(
    home: Home, among: str
) -> None:
    home.filled()
    postgres, key = home.saying("Postgres"), home.store.hash_key
    home.say(
        "Terns must never nest on port walls", project=home.project("tern"), scope="global" if among == "user" else None
    )
    dream = home.store.write(lambda rows: dreams.begin(rows, why="test", sessions=1, now=NOW))
    home.write(dream=dream.seq)
    path, other = page_of(home), next(name for name in home.files() if re.search(rf"\b{among}\b", name))
    nest = home.line(other, "nest")
    home.change(other, nest, f"{nest}- {postgres.text}\n")
    home.put(path, home.text(path).replace(f" <!-- m:{postgres.id} -->", ""))
    stands = {name: home.text(name) for name in (path, other)}

    def forget(rows: Rows) -> None:
        for name, said in stands.items():  # as an older dream has left them
            rows.run("update changed_files set after = :said where path = :path", said=said, path=f"memory/{name}")
        remember.forget(rows, postgres, key=key, now=LATER, by_person=True)

    home.store.write(forget)
    page_files.remove_forgotten_lines(home.store, home.directory)
    kept = dict(home.store.read(lambda rows: rows.all("select path, after from changed_files")))
    back = {
        name: home.store.read(partial(stored_pages.remove_forgotten, page=said, path=f"memory/{name}", key=key))[0]
        for name, said in stands.items()
    }
    for told in (home.text(path), kept[f"memory/{path}"], back[path]):
        assert "Postgres" not in told
    for told in (home.text(other), kept[f"memory/{other}"], back[other]):
        assert told == stands[other], "nobody forgot it there"


def test_a_line_on_a_projects_page_lifts_nothing_that_was_forgotten_everywhere(home: Home) -> None:
    project, tern = home.filled(), home.project("tern")
    said = "I live in Porto"
    ident = home.say(said, project=project)
    assert home.memory(ident).project_seq == 0
    home.write()
    home.store.write(
        lambda rows: remember.forget(rows, home.memory(ident), key=home.store.hash_key, now=LATER, by_person=True)
    )
    page_files.remove_forgotten_lines(home.store, home.directory)
    path = page_of(home)
    nightly = home.line(path, "Nightly")
    home.change(path, nightly, f"{nightly}- {said}\n")
    assert home.read(now=LAST) == 1
    assert home.saying(said).project_seq == project
    old = partial(tombstones.is_forgotten, text=said, project=tern, at=NOW, key=home.store.hash_key)
    assert home.store.read(old), "turns of before it was forgotten do not bring it back in another project"


def test_a_line_that_a_tool_put_back_is_still_asked_about(home: Home) -> None:
    home.filled()
    home.write()
    path, whole = page_of(home), home.text(page_of(home))
    home.put(path, "".join(row for row in whole.splitlines(keepends=True) if "Postgres" not in row))
    home.read(now=LATER)
    asked = home.waiting()
    assert len(asked) == 1
    home.call("Write", f'{{"file_path":"{home.directory / path}"}}', at=LAST)
    home.put(path, whole)
    home.read(now=LAST)
    assert home.waiting() == asked, "only a person settles it"


@pytest.mark.parametrize("at", [LATER, "2026-02-01T10:00:00.000Z"], ids=["in a pause", "the clock was set back"])
def test_what_was_done_while_csmd_looked_away_waits_for_a_person(home: Home, at: str) -> None:
    home.filled()
    home.write()
    home.change(page_of(home), "We use Postgres", "We use Redis")
    pause = Pauses((("2026-03-01T11:00:00.000Z", "2026-03-01T12:00:00.000Z"),))
    page_edits.read_edits(home.store, home.directory, now=at, key=home.store.hash_key, pauses=pause)
    assert [one[:2] for one in home.waiting()] == [("belief", "page")]
    assert home.saying("Postgres").superseded_by == ""


def test_a_call_that_only_looked_or_came_before_csmd_wrote_makes_nobody_else_the_writer(home: Home) -> None:
    home.filled()
    home.call("Write", f'{{"file_path":"{home.directory}/user.md"}}', at="2026-02-01T10:00:00.000Z")
    home.write()
    home.call("Read", f'{{"file_path":"{home.directory / page_of(home)}"}}')
    home.change(page_of(home), "We use Postgres", "We use Redis")
    home.read(now=LAST)
    assert home.saying("Redis").authority == "user"


# --- truncations and other accidents


def halved(whole: str) -> str:
    """A page without its first four lines of memories."""
    rows = whole.splitlines(keepends=True)
    lost = [row for row in rows if "<!-- m:" in row][:4]
    return "".join(row for row in rows if row not in lost)


@pytest.mark.invariant(
    "A page that lost too much is kept whole beside itself; no unread edit and no foreign file is written over"
)
def test_a_page_that_lost_too_much_is_kept_whole_beside_and_nothing_is_asked(home: Home) -> None:
    home.filled()
    home.write()
    path, whole = page_of(home), home.text(page_of(home))
    home.put(path, halved(whole))
    home.read()
    beside = path.replace(".md", ".restored-2026-03-02.md")
    assert home.text(beside) == whole and home.waiting() == []
    assert home.told()["restored"] == [{"page": path, "whole": beside}]
    assert home.write(now=LAST) == [] and home.read(now=LAST) == 0
    # put back in its place, all is as before
    (home.directory / beside).replace(home.directory / path)
    home.read(now=LAST)
    assert home.told()["restored"] == [] and home.waiting() == [] and home.text(path) == whole
    assert home.write(now=LAST) == []


def test_who_deletes_the_restored_page_meant_it_and_is_asked_about_every_line(home: Home) -> None:
    home.filled()
    home.write()
    path = page_of(home)
    home.put(path, halved(home.text(path)))
    home.read()
    (home.directory / path.replace(".md", ".restored-2026-03-02.md")).unlink()
    assert home.read(now=LAST) == 4
    assert len(home.waiting()) == 4 and home.told()["restored"] == []


def test_a_page_that_is_gone_was_truncated(home: Home) -> None:
    home.filled()
    home.write()
    path, whole = page_of(home), home.text(page_of(home))
    for number, left in enumerate((None, "", "\n\n")):
        if left is None:
            (home.directory / path).unlink()
        else:
            home.put(path, left)
        home.read()
        beside = home.told()["restored"][0]["whole"]
        assert home.text(beside) == whole and home.waiting() == [], number
        (home.directory / beside).replace(home.directory / path)
        home.read()
        assert home.told()["restored"] == [], number


def test_a_directory_that_is_gone_is_made_anew(home: Home) -> None:
    home.filled()
    home.write()
    before = home.files()
    home.directory.rename(home.directory.with_name("elsewhere"))
    assert home.read() == 0
    home.write(now=LATER)
    assert home.files() == before and home.waiting() == []


BAD = {
    "binary": b"\x00\x01\x02" * 100, "latin": "é".encode("latin-1"), "ten megabytes": b"- x\n" * 2_600_000,
    "a head that is none": b"---\n- a\n- b\n---\n\n## Facts\n\n- x\n", "many lines": b"## Facts\n" + b"".join(b"- new line %d\n" % n for n in range(200)),
}  # fmt: skip


def test_a_file_that_cannot_be_read_is_left_alone_and_told(home: Home) -> None:
    home.filled()
    home.write()
    path, whole = page_of(home), home.text(page_of(home))
    before = [one.id for one in home.store.read(memories.active_memories)]
    for name, raw in BAD.items():
        (home.directory / path).write_bytes(raw)
        assert home.read() == 0, name
        assert [one["page"] for one in home.told()["unread"]] == [path], name
        assert home.write(now=LATER) == [] and (home.directory / path).read_bytes() == raw, name
        assert [one.id for one in home.store.read(memories.active_memories)] == before and home.waiting() == [], name
        home.put(path, whole)
        home.read(now=LAST)
        assert home.told()["unread"] == [] and home.write(now=LAST) == [], name


def test_windows_line_ends_tabs_and_a_missing_end_are_no_edit(home: Home) -> None:
    home.filled()
    home.write()
    path = page_of(home)
    home.put(path, "\ufeff" + home.text(path).rstrip("\n").replace("- ", "-\t").replace("\n", "\r\n"))
    assert home.read() == 0 and home.waiting() == []


def test_a_page_that_is_a_link_is_somebody_elses_file(home: Home) -> None:
    home.filled()
    home.write()
    path, other = page_of(home), home.directory.with_name("dotfiles.md")
    (home.directory / path).rename(other)
    (home.directory / path).symlink_to(other)
    whole = other.read_text()
    home.read()
    assert home.told()["unread"] == [{"page": path, "why": "it is a link to another file"}]
    home.say("The archive of the gull service is pruned every week", project=1)
    assert (
        home.write(now=LATER) == ["MEMORY.md"] and (home.directory / path).is_symlink() and other.read_text() == whole
    )


def test_copies_are_told_and_not_read(home: Home) -> None:
    home.filled()
    home.write()
    home.put("user (1).md", "## Facts\n\n- from another machine\n")
    home.put("notes.md", "- mine\n")
    assert home.read() == 0 and home.told()["copies"] == ["user (1).md"]


def test_what_a_person_writes_for_themselves_stays(home: Home) -> None:
    home.filled()
    home.write()
    path = page_of(home)
    home.change(path, "# gull\n", "# gull\n\nAsk Ann before a release.\n")
    home.change(path, "type: project\n", "type: note\ntags:\n- birds\n")
    home.put(path, home.text(path) + "\n```sh\nmake all\n```\n\n- ok\n")
    home.read()
    home.say("The archive of the gull service is pruned every week", project=1)
    home.write(now=LATER)
    whole = home.text(path)
    assert "\n\nAsk Ann before a release.\n\n## Decisions" in whole
    assert whole.endswith("\n\n```sh\nmake all\n```\n\n## Your own notes\n\n- ok\n")
    assert "type: project\ntags:\n- birds\n" in whole and "pruned" in whole
    assert home.read(now=LAST) == 0 and home.write(now=LAST) == []


@pytest.mark.invariant(
    "What a person writes between csmd's lines stays to the letter where it stood; only lines of lists are read"
)
def test_a_persons_headings_prose_and_the_order_of_both_stay_whatever_is_learnt_and_only_lists_are_remembered(
    home: Home,
) -> None:
    project = home.filled()
    home.write()
    path, postgres = page_of(home), home.saying("Postgres")
    line, below = home.line(path, "Postgres"), "Ann chose it after\nthe outage in May.  \n"
    home.change(path, line, f"{line}\n{below}\n")
    home.change(
        path, "## Facts\n", "## Who to ask\n\nBefore a release, always.\n\n- Ann knows the exporter best\n- Bob runs the nightly builds\n\n### Later\n\nNothing yet.\n\n## Facts\n"
    )  # fmt: skip
    before = {one.text for one in home.store.read(memories.active_memories)}
    assert home.read() == 2
    assert {one.text for one in home.store.read(memories.active_memories)} - before == {
        "Ann knows the exporter best",
        "Bob runs the nightly builds",
    }
    home.say("The gull service writes its logs to the journal", project=project)
    home.write(now=LATER)
    whole, ann, bob = home.text(path), home.saying("Ann knows"), home.saying("Bob runs")
    assert f"{line}\n{below}\n" in whole
    theirs = f"## Who to ask\n\nBefore a release, always.\n\n- {ann.text} <!-- m:{ann.id} -->\n- {bob.text} <!-- m:{bob.id} -->\n\n### Later\n\nNothing yet.\n\n## Facts\n"
    assert theirs in whole and whole.count("Ann knows") == 1 and ": 9 notes" in whole
    assert home.read(now=LAST) == 0 and home.write(now=LAST) == []

    def forget(rows: Rows) -> None:
        for one in (postgres, bob):
            remember.forget(rows, one, key=home.store.hash_key, now=LAST, by_person=True)

    home.store.write(forget)
    home.write(now=LAST)
    whole = home.text(path)
    assert "Postgres" not in whole and f"{below}\n" in whole and "## Who to ask" in whole and "Bob" not in whole


def test_a_secret_that_is_typed_into_a_page_reaches_neither_the_store_nor_the_next_page(home: Home) -> None:
    home.filled()
    home.write()
    path, secret = page_of(home), "ghp_" + "a1B2" * 9
    home.change(path, "## Facts\n\n", f"## Facts\n\n- The deploy token of the gull service is {secret} for now\n")
    home.read()
    assert secret not in home.saying("deploy token").text
    dream = home.store.write(lambda rows: dreams.begin(rows, why="asked", sessions=0, now=LATER))
    home.write(now=LATER, dream=dream.seq)
    assert secret not in home.text(path) and "deploy token" in home.text(path)
    journal_of = home.store.read(lambda rows: rows.all("select before, after from changed_files"))
    assert journal_of and not any(secret in said for row in journal_of for said in row), "undo brings it back nowhere"
    kept = home.store.read(lambda rows: rows.all("select text, also from pages"))
    assert not any(secret in said for row in kept for said in row)


@pytest.mark.parametrize("written", [True, False], ids=["written", "not written"])
def test_a_daemon_that_was_killed_while_it_wrote_has_made_no_edit(home: Home, written: bool) -> None:
    home.filled()
    home.write()
    path, before = page_of(home), home.text(page_of(home))
    home.say("The archive of the gull service is pruned every week", project=1)
    home.write(now=LATER)
    after = home.text(path)
    home.store.write(
        lambda rows: stored_pages.put_page(rows, stored_pages.PageRow(path=path, text=before, also=after, at=NOW))
    )
    home.put(path, after if written else before)
    assert home.read(now=LATER) == 0 and home.waiting() == []
    home.write(now=LAST)
    assert home.text(path) == after
    home.change(path, home.line(path, "pruned"), "")
    assert home.read(now=LAST) == 1


def test_an_index_that_somebody_writes_into_keeps_their_words_and_its_limits(home: Home) -> None:
    for number in range(3):
        home.say(f"The heron number {number} nests below the {number}rd pier", project=home.project(f"heron{number}"))
    home.write()
    home.put("MEMORY.md", home.text("MEMORY.md") + "- remember the milk\n")
    home.read()
    home.say("The gull nests on the roof of the second pier", project=home.project())
    home.write(now=LATER)
    assert "- remember the milk" in home.text("MEMORY.md") and "projects/gull-" in home.text("MEMORY.md")
    assert home.read(now=LAST) == 0
