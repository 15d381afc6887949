"""What is kept of beliefs, in a home (SQLite) and on a team's server (PostgreSQL) alike: save, search, list, delete, tag,
link, merge, chunks, by topic, stats, candidates.

A backend is `Rows` with a place for projects, and what its database says otherwise: full text, vectors, deleting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from team_server import TeamServer, add_vector

from csmd.conversation import Project
from csmd.knowledge import Candidate, Evidence, Link, Memory, Provenance
from csmd.store import (
    belief_changes,
    candidates,
    fulltext,
    memories,
    memory_deletion,
    memory_links,
    projects,
    search,
    topics,
    vectors,
)
from csmd.store.core import Store
from csmd.store.sqlite import Rows, connect
from csmd.team import postgres
from csmd.text import tokens

NOW, LATER = "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"


@dataclass(frozen=True, kw_only=True)
class Backend:
    """One database: portable statements run on `rows`."""

    rows: Rows
    project: Callable[[str], int]
    text_hits: Callable[..., list[Any]]
    add_vector: Callable[[int, int, int, bytes], None]
    vector_hits: Callable[..., list[Any]]
    delete: Callable[[str], None]


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Backend]:
    Store(tmp_path / "csmd.db", now=NOW).close()
    connection = connect(tmp_path / "csmd.db", readonly=False)
    rows = Rows(connection)
    model = vectors.ensure_model(rows, "m", 4, now=NOW)

    def project(name: str) -> int:
        return projects.ensure(rows, Project(key=name, root=f"/{name}", name=name, kind="path"), now=NOW)

    def add_vector(seq: int, start: int, end: int, vector: bytes) -> None:
        place = rows.number("select project_seq from memories where seq = :seq", seq=seq)
        vectors.add_vectors(rows, "memory", model, [(seq, place, start, end, vector)], reached=0)

    def delete(ident: str) -> None:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        memory_deletion.delete_memory(rows, memory)

    def vector_hits(vector: bytes, *, limit: int) -> list[Any]:
        nearest = {}
        for hit in vectors.find_vector_hits(rows, "memory", model, vector, projects=None, limit=4 * limit):
            nearest.setdefault(hit[0], tuple(hit))
        return list(nearest.values())[:limit]

    yield Backend(
        rows=rows, project=project, add_vector=add_vector, vector_hits=vector_hits, delete=delete,
        text_hits=lambda terms, **how: fulltext.text_hits(rows, "memory", terms, **how),
    )  # fmt: skip
    connection.close()


@pytest.fixture
def postgresql(team: TeamServer) -> Iterator[Backend]:
    with postgres.open_connection(team.url("ann")) as rows:
        postgres.prepare(rows)
        with rows.transaction(write=True):
            yield Backend(
                rows=rows,
                project=lambda name: rows.number("select seq from projects where name = :name", name=name)
                or rows.insert_keyed("projects", name=name),
                text_hits=lambda terms, **how: postgres.text_hits(rows, "memory", terms, **how),
                add_vector=lambda seq, start, end, vector: add_vector(rows, "m", seq, start, end, vector),
                vector_hits=lambda vector, limit: postgres.vector_hits(rows, "m", vector, projects=None, limit=limit),
                delete=lambda ident: [][0] if not postgres.delete_memory(rows, ident) else None,
            )  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> Backend:
    opened: Backend = request.getfixturevalue(request.param)
    return opened


def save(backend: Backend, ident: str, text: str, *, project: str = "shop", **more: Any) -> Memory:
    values: dict[str, Any] = {
        "gate": "epistemic", "category": "decision", "type": "concept", "tier": "daily", "decay": "durable",
        "authority": "user", "origin": "stated", "confidence": 0.75, "scope": "project", "session_id": "s1",
        "created_at": NOW, "confirmed_at": NOW, "hot_until": 3, "warm_until": 30, "archive_at": 90,
        "provenance": (Provenance(uuid=f"u-{ident}", session_id="s1", at=NOW),), **more,
    }  # fmt: skip
    memory = Memory(id=ident, text=text, project_seq=backend.project(project), **values)
    seq = memories.insert(backend.rows, memory, text_hash=tokens.normalise(text))
    return replace(memory, seq=seq)


def test_what_is_saved_comes_back_whole(backend: Backend) -> None:
    rows = backend.rows
    sources = (
        Provenance(uuid="a", session_id="s1", at=NOW), Provenance(uuid="b", session_id="s2", at=LATER, role="confirms"),
    )  # fmt: skip
    saved = save(
        backend, "m0001", "The queue lives in Postgres, 100 % of it: it's tested", pinned=True, provenance=sources
    )
    assert memories.by_id(rows, "m0001") == saved
    memories.update_belief(rows, replace(saved, confidence=0.9, tier="durable", confirmed_at=LATER))
    changed = memories.by_id(rows, "m0001")
    assert changed == replace(saved, confidence=0.9, tier="durable", confirmed_at=LATER, version=2)
    stored = memories.by_hash(rows, tokens.normalise(saved.text), project=saved.project_seq)
    assert stored == changed


def test_words_find_memories_of_the_projects_asked_for(backend: Backend) -> None:
    first = save(backend, "m0001", "The job_queue lives in Postgres")
    second = save(backend, "m0002", "Queues are drained nightly, and queues are watched", project="tools")
    save(backend, "m0003", "Tabs in Makefiles")
    hits = backend.text_hits(["queue", "nightly"], projects=None, limit=10)
    assert [hit[0] for hit in hits] == [second.seq, first.seq]
    assert [hit[0] for hit in backend.text_hits(["queue"], projects=[first.project_seq], limit=10)] == [first.seq]
    assert backend.text_hits(["queue"], projects=[], limit=10) == []
    assert backend.text_hits(["it's", "100 %", "a:b & !", ""], projects=None, limit=10) == []
    assert len(backend.text_hits(["queue"], projects=None, limit=1)) == 1


def test_memories_are_listed_by_page_gate_and_state(backend: Backend) -> None:
    rows, shop = backend.rows, backend.project("shop")
    for number in range(5):
        save(backend, f"m000{number}", f"statement {number}", confirmed_at=f"2026-01-0{number + 1}T00:00:00.000Z")
    save(backend, "m0009", "a promise", gate="promissory", project="tools")
    old = memories.by_id(rows, "m0000")
    assert old is not None
    memories.update_belief(rows, replace(old, superseded_by="m0004"))
    query = {"gate": "", "state": "", "since": "", "limit": 2, "offset": 1}
    page, total = memories.list_page(rows, projects=[shop], **query)
    assert ([memory.id for memory in page], total) == (["m0003", "m0002"], 5)
    assert memories.list_page(rows, projects=None, **{**query, "gate": "promissory", "offset": 0})[1] == 1
    assert memories.list_page(rows, projects=[shop], **{**query, "state": "active"})[1] == 4
    assert [memory.id for memory in memories.list_memories(rows, projects=[shop], limit=2)] == ["m0004", "m0003"]
    assert [memory.id for memory in memories.map_replaced_memories(rows, ["m0004"])["m0004"]] == ["m0000"]


def test_what_is_deleted_takes_all_with_it_that_hangs_on_it(backend: Backend) -> None:
    rows = backend.rows
    gone, stays = save(backend, "m0001", "The port is 8080"), save(backend, "m0002", "The port is 8443")
    topics.tag_memory(rows, gone.seq, "ports", by="person")
    memory_links.add_link(rows, Link(from_id="m0001", to_id="m0002", relationship="relates_to", weight=0.5), now=NOW)
    backend.add_vector(gone.seq, 0, 16, bytes([1, 2, 3, 4]))
    backend.delete("m0001")
    assert memories.by_id(rows, "m0001") is None
    assert backend.text_hits(["8080"], projects=None, limit=5) == []
    assert backend.vector_hits(bytes([1, 2, 3, 4]), limit=5) == []
    assert topics.list_members(rows, "ports", None) == {} and memory_links.list_links(rows, "m0002") == []
    assert memories.by_seqs(rows, [gone.seq, stays.seq]).keys() == {stays.seq}


def test_a_tag_says_who_gave_it_and_is_taken_off_by_a_weight_of_0(backend: Backend) -> None:
    rows, memory = backend.rows, save(backend, "m0001", "Deploy on Mondays")
    assert topics.tag_memory(rows, memory.seq, "deploy", by="assistant", weight=0.5)
    assert topics.tag_memory(rows, memory.seq, "deploy", by="person")
    assert not topics.tag_memory(rows, memory.seq, "deploy", by="assistant", weight=0.0), "a person decided about"
    topics.tag_memory(rows, memory.seq, "week", by="rule", weight=0.25)
    assert [(tag.name, tag.by_whom, tag.weight) for tag in topics.topics_of_memories(rows, [memory.seq])[memory.seq]] == [
        ("deploy", "person", 1.0), ("week", "rule", 0.25),
    ]  # fmt: skip
    topics.tag_memory(rows, memory.seq, "deploy", by="person", weight=0.0)
    assert [tag.name for tag in topics.topics_of_memories(rows, [memory.seq])[memory.seq]] == ["week"]


def test_memories_are_found_by_topic(backend: Backend) -> None:
    rows = backend.rows
    first, two = (
        save(backend, "m0001", "Deploy on Mondays"),
        save(backend, "m0002", "Never on Fridays", confirmed_at=LATER),
    )
    other = save(backend, "m0003", "Deploy nightly", project="tools")
    for memory in (first, two, other):
        topics.tag_memory(rows, memory.seq, "deploy", by="assistant", weight=0.5)
    assert topics.list_members(rows, "deploy", [first.project_seq]).keys() == {first.seq, two.seq}
    assert topics.list_topics(rows, None) == [
        (first.project_seq, "deploy", 2, LATER), (other.project_seq, "deploy", 1, NOW),
    ]  # fmt: skip
    shared = memory_links.list_shared(rows, [first.seq], projects=None, widest_topic=5, widest_session=0)
    assert [tuple(row) for row in shared] == [(first.seq, two.seq, "topic", 2)]


def test_a_link_is_an_edge_with_a_weight_from_both_of_its_ends(backend: Backend) -> None:
    rows = backend.rows
    first, two = save(backend, "m0001", "Deploy on Mondays"), save(backend, "m0002", "Never on Fridays")
    for weight in (0.5, 0.75):
        memory_links.add_link(
            rows, Link(from_id="m0001", to_id="m0002", relationship="refines", weight=weight), now=NOW
        )
    assert memory_links.list_links(rows, "m0002") == [
        Link(from_id="m0001", to_id="m0002", relationship="refines", weight=0.75)
    ]
    assert memory_links.list_edges(rows, [two.seq], projects=None) == [(two.seq, first.seq, "refines", 0.75, False)]
    memory_links.add_link(rows, Link(from_id="m0001", to_id="m9999", relationship="refines", weight=1.0), now=NOW)
    assert len(memory_links.list_links(rows, "m0001")) == 1, "there is no such memory"
    assert memory_links.remove_link(rows, first.seq, two.seq, "refines") and not memory_links.remove_link(
        rows, first.seq, two.seq, "refines"
    )


def test_a_merge_brings_the_sources_and_is_undone(backend: Backend) -> None:
    rows = backend.rows
    merged, into = save(backend, "m0001", "Deploy on Mondays"), save(backend, "m0002", "Deploy on Mondays only")
    belief_changes.merge_memories(
        rows, merged, replace(into, confidence=0.8), reason="they say the same", by="person", now=LATER
    )
    aside, kept = memories.by_id(rows, "m0001"), memories.by_id(rows, "m0002")
    assert aside is not None and kept is not None
    assert (aside.tier, aside.superseded_by, kept.times, kept.confidence) == ("archive", "m0002", 2, 0.8)
    assert belief_changes.is_merged(rows, aside) and belief_changes.find_surviving_memory(rows, aside).id == "m0002"
    done, took_in = belief_changes.find_last_merge(rows, "m0001") or (None, None)
    assert done is not None and took_in is not None and done.reason == "they say the same"
    belief_changes.undo_merge(
        rows, replace(aside, tier="daily", superseded_by=""), replace(kept, confidence=0.75), took_in, done, now=LATER
    )
    back = memories.by_id(rows, "m0002")
    assert back is not None and (back.times, back.confidence) == (1, 0.75)
    assert not belief_changes.is_merged(rows, aside) and belief_changes.find_last_merge(rows, "m0001") is None


def test_the_chunks_of_a_long_memory_are_one_hit_by_the_nearest(backend: Backend) -> None:
    long, short = save(backend, "m0001", "a long explanation " * 30), save(backend, "m0002", "a short one")
    backend.add_vector(long.seq, 0, 100, bytes([10, 0, 0, 0]))
    backend.add_vector(long.seq, 100, 200, bytes([0, 10, 0, 256 - 3]))
    backend.add_vector(short.seq, 0, 11, bytes([0, 0, 10, 0]))
    assert backend.vector_hits(bytes([0, 10, 0, 256 - 3]), limit=5) == [
        (long.seq, 100, 200, 0.0), (short.seq, 0, 11, pytest.approx(209.0)),
    ]  # fmt: skip
    assert backend.vector_hits(bytes([0, 0, 9, 0]), limit=1) == [(short.seq, 0, 11, pytest.approx(1.0))]


def test_the_stats_count_memories_topics_and_links_of_the_projects_asked_for(backend: Backend) -> None:
    rows, memory = backend.rows, save(backend, "m0001", "Deploy on Mondays")
    save(backend, "m0002", "Never on Fridays")
    save(backend, "m0003", "Deploy nightly", project="tools")
    topics.tag_memory(rows, memory.seq, "deploy", by="person")
    memory_links.add_link(rows, Link(from_id="m0001", to_id="m0002", relationship="refines", weight=1.0), now=NOW)
    counts = memory_links.count_nodes_and_edges(rows, [memory.project_seq])
    assert counts == {"memories": 2, "topics": 1, "sessions": 0, "tagged": 1, "produced": 2}
    assert memory_links.count_relationships(rows, None) == {"refines": 1} and search.count_memories(rows) == 3


def test_a_candidate_waits_once_with_its_evidence_and_is_settled(backend: Backend) -> None:
    rows, place = backend.rows, backend.project("shop")
    waiting = Candidate(
        id="c0001", kind="belief", source="habit", project_seq=place, fingerprint="pnpm", text="pnpm is used", reason="seen often",
        confidence=0.5, created_at=NOW, updated_at=NOW, evidence=(Evidence(uuid="u1", session_id="s1", at=NOW),),
    )  # fmt: skip
    assert candidates.put_candidate(rows, waiting) == "c0001"
    again = replace(waiting, id="c0002", confidence=0.7, evidence=(Evidence(uuid="u2", session_id="s2", at=LATER),))
    assert candidates.put_candidate(rows, again) == "c0001", "of one that waits there is one"
    (candidate,) = candidates.waiting(rows, projects=[place])
    assert (candidate.confidence, [source.uuid for source in candidate.evidence]) == (0.7, ["u1", "u2"])
    assert candidates.set_status(rows, candidate, "dropped", now=LATER)
    assert candidates.put_candidate(rows, waiting) == "", "a person has dropped it"
    assert candidates.counts(rows) == {"belief": {"dropped": 1}} and candidates.waiting(rows, projects=None) == []
