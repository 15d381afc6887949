"""Projects as a daemon keeps them: sessions that wander, folders that move, merges, splits and walls, by real files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from csmd.daemon import reading
from csmd.errors import BadInput, CsmdError

GENERAL = "I prefer short answers, always."


def repository(where: Path) -> Path:
    where.mkdir(parents=True)
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *words],
            cwd=where,
            check=True,
        )
    return where


def told(parts: Any, *said: tuple[Path | str, str], session: str = "s1") -> None:
    """A transcript in which the user says these things in these directories, taken in and believed."""
    lines = []
    for place, text in said:
        lines += [
            parts.machine.line("user", text, session=session, cwd=str(place)),
            parts.machine.line("assistant", "It is done.", session=session, cwd=str(place)),
        ]
    parts.machine.transcript(*lines, session=session)
    done(parts, "csm_sync", vectors=False)


def done(parts: Any, tool: str, **params: Any) -> Any:
    ident = parts.call(tool, **params)["job"]
    for _ in range(500):
        parts.background.step(1000.0)
        if parts.background.context.tasks[ident].state in ("done", "failed"):
            break
    job = parts.background.context.tasks[ident]
    assert job.state == "done", job
    return job.result


def listed(parts: Any) -> dict[str, Any]:
    return {row["name"]: row for row in parts.call("csm_project_list")["projects"]}


def turns(parts: Any) -> dict[str, list[str]]:
    """What was said in each project, by its name."""
    found: dict[str, list[str]] = {}
    for name, text in parts.store.read(
        lambda rows: rows.all(
            "select p.name, t.text from turns t join projects p on p.seq = t.project_seq where t.kind = 'user' order by t.seq"
        )
    ):
        found.setdefault(name, []).append(text)
    return found


@pytest.fixture
def work(parts: Any) -> Path:
    return Path(parts.machine.root) / "work"


@pytest.mark.invariant(
    "One resolver tells a directory's project, without a child process; a moved folder is its project, and nothing weak is merged"
)
def test_later_turns_follow_a_session_into_another_project_and_the_session_stays(parts: Any, work: Path) -> None:
    one, two = repository(work / "one"), repository(work / "two")
    (work / "start").mkdir()
    told(
        parts, (work / "start", "begun"), (work / "start" / "sub", "below"), (two / "src", "wandered"), (one, "further"),
        (work / "start", "back"),
    )  # fmt: skip
    assert turns(parts) == {"start": ["begun", "below", "back"], "two": ["wandered"], "one": ["further"]}
    assert {name: row["sessions"] for name, row in listed(parts).items()} == {"start": 1, "two": 0, "one": 0}


def test_a_hook_and_its_transcript_name_the_same_project(parts: Any, work: Path) -> None:
    two = repository(work / "two")
    (work / "link").symlink_to(two)
    path = parts.machine.transcript(parts.machine.line("user", "begun", cwd=str(work)))
    from csmd.capture import ingest
    from csmd.daemon.context import now_iso

    body = f'{{"session_id":"s1","cwd":"{work}/link","hook_event_name":"UserPromptSubmit","prompt":"there","transcript_path":"{path}"}}'
    event, redacted = ingest.decode_event("claude", body.encode(), name="UserPromptSubmit", event_id="e1", at=now_iso())
    assert event is not None
    parts.store.write(
        lambda rows: ingest.record_event(
            rows,
            event,
            redacted=redacted,
            key=parts.store.hash_key,
            now=now_iso(),
            place=ingest.find_event_project(rows, event),
        )
    )
    assert turns(parts) == {"two": ["there"]}
    told(parts, (work / "link", "there"))
    assert turns(parts) == {"two": ["there"], "work": ["begun"]}


@pytest.mark.invariant(
    "One resolver tells a directory's project, without a child process; a moved folder is its project, and nothing weak is merged"
)
@pytest.mark.parametrize("kind", ["git", "git without a commit", "marker"])
def test_a_folder_that_was_moved_keeps_its_memories(parts: Any, work: Path, kind: str) -> None:
    old, new = work / "old", work / "deeper" / "new"
    if kind == "git":
        repository(old)
    elif kind == "marker":
        old.mkdir(parents=True)
    else:
        subprocess.run(["git", "init", "-q", str(old)], check=True)
    (old / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    told(parts, (old, "For the worker, let's go with Postgres for the job queue because we need LISTEN/NOTIFY."))
    [before] = parts.call("csm_memory_list", project=str(old))["memories"]
    new.parent.mkdir()
    old.rename(new)
    assert "Postgres" in parts.call("csm_memory_context", project=str(new))["text"], "before anything was said there"
    told(parts, (new, "hello again"), session="s2")
    shown = listed(parts)["new"]
    assert (shown["root"], shown["gone"], shown["sessions"]) == (str(new), False, 2)
    assert shown["aliases"] == [{"path": str(old), "why": "moved"}]
    assert [row["id"] for row in parts.call("csm_memory_list", project=str(new))["memories"]] == [before["id"]]


@pytest.mark.invariant(
    "One resolver tells a directory's project, without a child process; a moved folder is its project, and nothing weak is merged"
)
def test_of_two_directories_of_one_template_neither_is_the_other_moved(parts: Any, work: Path) -> None:
    for name in ("one", "two"):
        (work / name).mkdir(parents=True)
        (work / name / "package.json").write_text('{"name": "template"}')
        told(parts, (work / name, f"this is {name}"), session=name)
        (work / name / "package.json").unlink()
        (work / name).rmdir()
        assert listed(parts)[name]["gone"]
    assert set(listed(parts)) == {"one", "two"}


def test_a_remote_is_shown_without_its_credentials_and_they_are_stored_nowhere(parts: Any, work: Path) -> None:
    one = repository(work / "one")
    subprocess.run(
        ["git", "remote", "add", "origin", "https://me:s3cr3ttok3n@host.example/a/b.git"], cwd=one, check=True
    )
    told(parts, (one, "hello"))
    assert listed(parts)["one"]["remote"] == "host.example/a/b"
    assert b"s3cr3ttok3n" not in b"".join(path.read_bytes() for path in parts.store.path.parent.glob("csmd.db*"))


def test_two_clones_are_two_projects_until_somebody_says_that_they_are_one(parts: Any, work: Path) -> None:
    one = repository(work / "one")
    subprocess.run(["git", "clone", "-q", str(one), str(work / "two")], check=True, capture_output=True)
    told(parts, (one, "We deploy with make ship."), session="a")
    told(parts, (work / "two", "We deploy with make ship."), session="b")
    assert set(listed(parts)) == {"one", "two"}
    with pytest.raises(BadInput, match="is already a project"):
        parts.call("csm_project_alias", place=str(work / "two"), other=str(one), by_person=True)
    tried = parts.call("csm_project_merge", source="two", into="one", dry_run=True, by_person=True)
    assert set(listed(parts)) == {"one", "two"}
    merged = parts.call("csm_project_merge", source="two", into="one", by_person=True)
    assert {**merged, "dry_run": True} == tried and merged["turns"] == 2
    told(parts, (work / "two", "and more"), session="c")
    assert turns(parts)["one"][-1] == "and more"
    assert listed(parts)["one"]["merged"] == [str(work / "two")]
    with pytest.raises(BadInput, match="was merged into"):
        parts.call("csm_project_merge", source="two", into="one", by_person=True)
    apart = parts.call("csm_project_split", whole="one", place=str(work / "two"), by_person=True)
    assert apart["turns"] == 4
    assert {name: row["sessions"] for name, row in listed(parts).items()} == {"one": 1, "two": 2}


def test_a_directory_of_another_machine_counts_to_the_one_here_when_the_user_says_so(parts: Any, work: Path) -> None:
    one = repository(work / "one")
    told(parts, (one, "here"))
    parts.call("csm_project_alias", place="/Users/x/one", other="one", by_person=True)
    told(parts, ("/Users/x/one", "there"), ("/Users/x/one/sub", "below"), session="s2")
    assert turns(parts) == {"one": ["here", "there", "below"]}
    assert listed(parts)["one"]["aliases"] == [{"path": "/Users/x/one", "why": "named"}]
    parts.call("csm_project_alias", place="/Users/x/one", remove=True, by_person=True)
    told(parts, ("/Users/x/one", "apart"), session="s3")
    assert {row["root"] for row in parts.call("csm_project_list")["projects"]} == {str(one), "/Users/x/one"}


def test_a_directory_in_a_project_becomes_one_of_its_own(parts: Any, work: Path) -> None:
    one = repository(work / "one")
    told(parts, (one, "all of it"), (one / "shop", "the shop"), (one / "shopping", "not the shop"))
    with pytest.raises(BadInput, match="nothing of one was said below"):
        parts.call("csm_project_split", whole="one", place=str(one / "typo"), by_person=True)
    assert set(listed(parts)) == {"one"}
    assert parts.call("csm_project_split", whole="one", place=str(one / "shop"), by_person=True)["turns"] == 2
    told(parts, (one / "shop" / "cart", "deeper"), (one, "above"), session="s2")
    assert turns(parts) == {"one": ["all of it", "not the shop", "above"], "shop": ["the shop", "deeper"]}
    assert listed(parts)["shop"]["part_of"] == "one"


CHANGES = [
    ("csm_project_alias", {"place": "/w/x", "other": "one"}),
    ("csm_project_alias", {"place": "/w/x", "remove": True}),
    ("csm_project_merge", {"source": "one", "into": "two"}),
    ("csm_project_merge", {"source": "one", "into": "two", "dry_run": True}),
    ("csm_project_split", {"whole": "one", "place": "/w/x"}),
    ("csm_project_lens", {"name": "acme", "places": "one", "wall": True}),
    ("csm_project_lens", {"name": "acme", "places": "one", "remove": True, "wall": True}),
]


@pytest.mark.invariant("A workspace is a wall, and only a person changes what is seen where")
@pytest.mark.parametrize(("tool", "params"), CHANGES)
def test_what_is_seen_where_is_changed_by_a_person_only(parts: Any, tool: str, params: dict[str, Any]) -> None:
    with pytest.raises(CsmdError, match="only a person at a terminal can change"):
        parts.call(tool, **params)


@pytest.mark.parametrize(
    ("tool", "params", "said"),
    [
        ("csm_project_alias", {"place": "x", "other": "one"}, "not an absolute path"),
        ("csm_project_alias", {"place": "/w/x"}, "the project is missing"),
        ("csm_project_alias", {"place": "/w/x", "remove": True}, "not an alias that you added"),
        ("csm_project_merge", {"source": "nothing", "into": "/w/x"}, "is not a project"),
        ("csm_project_merge", {"source": "/w/x", "into": "/w/y"}, "nothing was said in /w/x yet"),
        ("csm_project_lens", {"name": " ", "places": "/w/x", "wall": True}, "not a name for a lens"),
        ("csm_project_lens", {"name": "a\nb", "places": "/w/x", "wall": True}, "not a name for a lens"),
        ("csm_project_lens", {"name": "acme", "places": "", "wall": True}, "no project or topic"),
        ("csm_project_lens", {"name": "acme", "places": "/w/x", "remove": True, "wall": True}, "there is no lens"),
    ],
)
def test_what_cannot_be_done_to_projects_is_told(parts: Any, tool: str, params: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parts.call(tool, **params, by_person=True)


@pytest.mark.invariant("A workspace is a wall, and only a person changes what is seen where")
def test_what_a_client_said_is_nowhere_in_another_clients_project(parts: Any, work: Path) -> None:
    acme, bolt, own = (work / name for name in ("acme/shop", "bolt/app", "own"))
    for place in (acme, bolt, own):
        place.mkdir(parents=True)
    told(parts, (acme, GENERAL), (acme, "The staging cluster of acme lives behind the VPN."), session="a")
    assert parts.call("csm_memory_context", project=str(bolt))["text"], "without a wall it would be told"
    walled = parts.call("csm_project_lens", name="acme", places=str(work / "acme"), wall=True, by_person=True)
    assert walled["walled"] == [str(work / "acme"), str(acme)] and walled["moved"] == 1
    parts.call("csm_project_lens", name="bolt", places=str(work / "bolt"), wall=True, by_person=True)
    told(parts, (acme, "I prefer pathlib over os paths, always and everywhere."), session="b")
    parts.call("csm_memory_save", text="Everywhere we write British English.", asking=str(acme), by_person=True)
    inside = parts.call("csm_memory_list", project=str(work / "acme" / "never seen"))["memories"]
    assert len(inside) == 3
    for place in (bolt, own, work / "bolt" / "never seen"):
        asked = {"project": str(place), "asking": str(place)}
        assert parts.call("csm_memory_context", **asked)["text"] == ""
        assert parts.call("csm_memory_recall", **asked, prompt="short answers with pathlib, and the VPN?")["text"] == ""
        assert parts.call("csm_memory_list", **asked)["memories"] == []
        for project in (str(place), ""):
            for query in ("short answers", "VPN staging cluster acme", "pathlib", "British English"):
                found = parts.call("csm_memory_search", query=query, project=project, asking=str(place))
                assert found["hits"] == [], (place, project, query)
        assert parts.call("csm_memory_list", project="", asking=str(place))["memories"] == []
        for tool in ("csm_memory_show", "csm_memory_delete"):
            with pytest.raises(BadInput, match="there is no memory"):
                parts.call(tool, id=inside[0]["id"], asking=str(place))
        with pytest.raises(BadInput, match="in the workspace acme"):
            parts.call("csm_memory_search", query="VPN", project=str(acme), asking=str(place))
        for tool in ("csm_context_build", "csm_memdir_scan"):
            with pytest.raises(BadInput, match="in the workspace acme"):
                parts.call(tool, project=str(acme), asking=str(place))
    assert parts.call("csm_memory_search", query="VPN", project="", asking=str(acme))["hits"]
    assert "short answers" in parts.call("csm_memory_context", project=str(acme))["text"]
    for other in ("own", "app"):
        told(parts, (bolt, "hello"), (own, "hello"), session="c")
        with pytest.raises(BadInput, match="a wall is between"):
            parts.call("csm_project_merge", source="shop", into=other, by_person=True)
    parts.call("csm_project_lens", name="acme", places=str(acme), remove=True, wall=True, by_person=True)
    found = parts.call("csm_memory_search", query="VPN staging cluster", project="", asking=str(own))
    assert found["hits"], "taken out by a person"


def test_a_session_that_went_behind_a_wall_shows_nothing_of_it_outside(parts: Any) -> None:
    open_place, walled = str(parts.machine.project), parts.machine.root / "client"
    (walled / ".git").mkdir(parents=True)
    machine = parts.machine
    machine.transcript(
        machine.line("user", "I prefer herons in the open.", session="both", uuid="u1", cwd=open_place),
        machine.line("assistant", "Noted.", session="both", cwd=open_place),
        machine.line("user", "I prefer the quokka for the client.", session="both", uuid="u2", cwd=str(walled)),
        machine.line("assistant", "The quokka it is.", session="both", uuid="u3", cwd=str(walled)),
        session="both",
    )
    reading.sweep_transcripts(parts.background.context, full=True)
    while reading.read_backlog(parts.background.context):
        pass
    list(parts.background.stages.distill_sessions(force=True))
    parts.background.stages.run_stage("believe")
    parts.call("csm_project_lens", name="client", places=str(walled), wall=True, by_person=True)
    for asking, seen in ((open_place, False), (str(walled), True)):
        assert bool(parts.call("csm_memory_search", query="quokka", asking=asking)["hits"]) == seen
        for tool in ("csm_session_show", "csm_session_transcript", "csm_session_export"):
            said = json.dumps(parts.call(tool, id="both", asking=asking))
            assert "heron" in said or tool == "csm_session_show", tool
            assert ("quokka" in said) == seen, (tool, asking)


def purged(parts: Any, place: Path) -> dict[str, Any]:
    """A purge of a project that is carried out in the test's process."""
    job = parts.background.context.tasks[parts.call("csm_privacy_purge", what=str(place), by_person=True)["job"]]
    while job.state in ("waiting", "running"):
        parts.background.tasks.step()
    assert job.state == "done", job.error
    return dict(job.result)


def test_a_purge_is_of_the_project_that_a_path_is_shown_as(parts: Any, work: Path) -> None:
    whole, old, clone, into = (repository(work / name) for name in ("whole", "old", "clone", "into"))
    part = whole / "part"
    part.mkdir()
    told(parts, (whole, "I prefer herons in the whole."), session="s-whole")
    told(parts, (part, "I prefer quokkas in the part."), session="s-part1")
    told(parts, (clone, "I prefer magpies in the clone."), session="s-clone")
    told(parts, (into, "I prefer ravens in the target."), session="s-into1")
    told(parts, (old, "I prefer lorises in the old place."), session="s-old99")
    parts.call("csm_project_split", whole=str(whole), place=str(part), by_person=True)
    parts.call("csm_project_merge", source=str(clone), into=str(into), by_person=True)
    parts.call("csm_project_alias", place=str(repository(work / "new")), other=str(old), by_person=True)
    told(parts, (work / "new", "I prefer gulls in the new place."), session="s-new99")

    def left() -> set[str]:
        return {row["text"].split()[2] for row in parts.call("csm_memory_list")["memories"]}

    assert left() == {"herons", "quokkas", "magpies", "ravens", "lorises", "gulls"}
    assert purged(parts, part)["about"].startswith(f"the project {part} ")
    assert left() == {"herons", "magpies", "ravens", "lorises", "gulls"}
    with pytest.raises(BadInput, match="was merged into"):
        parts.call("csm_privacy_purge", what=str(clone), by_person=True)
    purged(parts, work / "new")
    assert left() == {"herons", "magpies", "ravens"}
    purged(parts, into)
    assert left() == {"herons"}
    assert "clone" not in str(listed(parts)) and "old" not in str(listed(parts))
    assert (
        parts.store.read(
            lambda rows: rows.all("select 1 from projects where root in (:a, :b)", a=str(clone), b=str(old))
        )
        == []
    )
