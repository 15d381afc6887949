"""A store with a few memories and all that can stand beside one, what a dream may do to them, and a dump of everything."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memory_factory import project_in, state

from csmd.briefs import BriefItem
from csmd.dream import dream_undo
from csmd.knowledge import Candidate, Evidence, Link, Memory
from csmd.memory import duplicates, supersession, upkeep
from csmd.memory.duplicates import Finding, Likeness
from csmd.store import (
    belief_changes,
    candidates,
    dreams,
    fulltext,
    journal,
    memories,
    memory_invariants,
    memory_links,
    memory_scenes,
    projects,
    receipts,
    topics,
)
from csmd.store.core import Store, run_to_end
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows

NOW, LATER, LAST = (f"2026-03-{day:02}T10:00:00.000Z" for day in (1, 2, 3))
SAID = (
    "The order cache keeps its entries for the checkout page in Redis, keyed by cart",
    "Redis holds the order cache of the checkout page, with entries keyed by cart and currency",
    "Reviews go to Sarah before they go to the release branch",
    "Invoices are made at night by the billing worker, never during the day",
    "The staging database is rebuilt from a dump every Monday",
    "Migrations run before the pods are rolled",
)
#: Everything that belongs to a memory or a candidate, without row keys and with what stands of the audit.
DUMP = (
    (
        "select id, text, text_hash, gate, category, type, tier, decay, authority, origin, confidence, scope, project_seq, "
        "session_id, created_at, confirmed_at, hot_until, warm_until, archive_at, pinned, version, superseded_by, "
        "origin_seq, twin_of, used_at from memories order by id"
    ),
    "select m.id, p.uuid, p.session_id, p.at, p.role from provenance p join memories m on m.seq = p.memory_seq order by 1, 2",
    (
        "select f.id, t.id, l.relationship, l.weight, l.created_at from links l join memories f on f.seq = l.from_seq "
        "join memories t on t.seq = l.to_seq order by 1, 2, 3"
    ),
    (
        "select m.id, t.project_seq, t.name, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "
        "join memories m on m.seq = x.memory_seq order by 1, 2, 3"
    ),
    "select m.id, s.uuid, s.at, s.text, s.fingerprint from symptoms s join memories m on m.seq = s.memory_seq order by 1, 2",
    "select m.id, s.uuid, s.at, s.reason, s.lowered from refutations s join memories m on m.seq = s.memory_seq order by 1, 2",
    "select m.id, s.uuid, s.text from scenes s join memories m on m.seq = s.memory_seq order by 1",
    "select seq, memory_id, change, before, after, reason, by_whom, at from belief_changes where undone_at = '' order by 1",
    (
        "select n.id, i.memory_id, i.score, i.reason, i.used, i.used_by from injection_items i "
        "join injections n on n.seq = i.injection_seq order by 1, 2"
    ),
    (
        "select id, kind, source, project_seq, fingerprint, text, reason, gate, category, confidence, reinforcement, "
        "contradicted, status, memory_ids, created_at, updated_at, version from candidates order by id"
    ),
    (
        "select c.id, e.uuid, e.session_id, e.at, e.against from candidate_evidence e "
        "join candidates c on c.seq = e.candidate_seq order by 1, 2"
    ),
    "select m.id, v.start_at, v.end_at from vectors v join memories m on m.seq = v.row_seq where v.kind = 'memory' order by 1, 2",
    "select kind, hash, part_of from tombstones order by 1, 2, 3",
    "select path, text from pages order by path",
)


# --- what there is


def home(rows: Rows, name: str = "alpha") -> int:
    return project_in(rows, name)


def save_memory(rows: Rows, key: bytes, said: str, uuid: str, *, at: str = NOW, **changes: Any) -> str:
    projects.record_active_day(rows, home(rows), at)
    return state(rows, said, f"cli:{uuid}", session=uuid, at=at, **changes)


def believed(store: Store) -> list[str]:
    """Six memories with all that can stand beside one, and a candidate that says that two are one."""

    def write(rows: Rows) -> list[str]:
        found = [save_memory(rows, store.hash_key, said, f"u{number}") for number, said in enumerate(SAID)]
        seqs = [memory.seq for ident in found if (memory := memories.by_id(rows, ident)) is not None]
        memory_links.add_link(
            rows, Link(from_id=found[2], to_id=found[3], relationship="elaborates", weight=0.5), now=NOW
        )
        topics.tag_memory(rows, seqs[0], "redis", by=topics.PERSON)
        topics.tag_memory(rows, seqs[3], "billing", by=topics.RULE, weight=0.4)
        rows.run(
            "insert into symptoms (memory_seq, uuid, at, text) values (:seq, 'u9', :now, 'the page is slow')",
            seq=seqs[4],
            now=NOW,
        )
        rows.run(
            "insert into refutations (memory_seq, uuid, at, reason, lowered) values (:seq, 'u9', :now, 'again', 0.1)",
            seq=seqs[4],
            now=NOW,
        )
        memory_scenes.set_scene(rows, seqs[4], uuid="u9", text="at src/cart.py")
        receipts.add_receipt(
            rows, receipt_id="r1", session_id="s9", event="prompt", project=1, at=NOW, tokens=9, text_hash="",
            items=[BriefItem(id=found[0], score=0.7, reason="matches")],
        )  # fmt: skip
        candidates.put_candidate(
            rows, waiting("near_duplicate", f"{found[0]}:{found[1]}", (found[0], found[1]), home(rows))
        )
        candidates.put_candidate(rows, waiting("belief", "tests run with make", (), home(rows)))
        return found

    return store.write(write)


def waiting(kind: Any, fingerprint: str, ids: tuple[str, ...], project: int) -> Candidate:
    return Candidate(
        id=candidates.make_candidate_id(kind, project, fingerprint, NOW), kind=kind, source="test", project_seq=project,
        fingerprint=fingerprint, text="tests run with make", reason="seen often", gate="relational",
        category="convention", confidence=0.8, reinforcement=4, contradicted=0, status="open", memory_ids=ids,
        created_at=NOW, updated_at=NOW,
        evidence=tuple(Evidence(uuid=f"cli:e{number}", session_id=f"s{number}", at=NOW) for number in range(3)),
    )  # fmt: skip


def dump(store: Store) -> list[Any]:
    return [store.read(lambda rows, sql=sql: rows.all(sql)) for sql in DUMP]  # type: ignore[misc]


def without_version(row: Any) -> Any:
    """What a memory is; how often it was changed does not count where it was changed since."""
    return row and (*row[:20], *row[21:])


def found_by_words(store: Store) -> list[Any]:
    def ask(rows: Rows) -> list[Any]:
        words = [["redis", "cart"], ["sarah"], ["billing"], ["make", "tests"]]
        return [fulltext.text_hits(rows, "memory", one, projects=None, limit=9) for one in words]

    return [[round(score, 6) for _, score in hits] for hits in store.read(ask)]


def sound(store: Store) -> dict[str, Any]:
    return store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key))


def memory_of(rows: Rows, ident: str) -> Memory:
    found = memories.by_id(rows, ident)
    assert found is not None
    return found


# --- what a dream does, and what happens afterwards

Act = Callable[[Rows, bytes, str, str], None]


def alive(rows: Rows, *idents: str) -> bool:
    return all((one := memories.by_id(rows, ident)) is not None and one.is_alive for ident in idents)


def merge(rows: Rows, key: bytes, one: str, other: str) -> None:
    if one != other and alive(rows, one, other):
        found = duplicates.describe_duplicate(memory_of(rows, other), memory_of(rows, one), Likeness(1.0, exact=True))
        upkeep.apply(rows, [found], by="dream", now=LATER, key=key, by_person=True)


def archive(rows: Rows, key: bytes, one: str, other: str) -> None:
    if alive(rows, one):
        found = Finding(kind="stale", memories=(memory_of(rows, one),), reason="not used", confidence=1.0)
        upkeep.apply(rows, [found], by="dream", now=LATER, key=key)


def supersede(rows: Rows, key: bytes, one: str, other: str) -> None:
    if one != other and alive(rows, one, other):
        supersession.supersede(rows, memory_of(rows, one), memory_of(rows, other), by="dream", now=LATER)


def promote(rows: Rows, key: bytes, one: str, other: str) -> None:
    if alive(rows, one):
        memory = memory_of(rows, one)
        memories.update_belief(rows, supersession.refresh_thresholds(rows, replace(memory, tier="durable")))
        belief_changes.record_change(rows, one, "promoted", memory.tier, "durable", "two sessions", "dream", LATER)


def strengthen(rows: Rows, key: bytes, one: str, other: str) -> None:
    if alive(rows, one):
        memory = memory_of(rows, one)
        memories.update_belief(rows, supersession.refresh_thresholds(rows, replace(memory, confidence=0.85)))


def raise_(rows: Rows, key: bytes, one: str, other: str) -> None:
    """A habit becomes a memory: its candidate is promoted, and the memory supersedes nothing or something."""
    found = candidates.waiting(rows, projects=None)
    belief = next((candidate for candidate in found if candidate.kind == "belief"), None)
    if belief is None:
        return
    made = save_memory(rows, key, "Tests run with make check, as seen in three sessions", "u7", at=LATER)
    promoted = replace(belief, status="promoted", memory_ids=(made,))
    candidates.update_stored(rows, belief, promoted)


ACTS: dict[str, Act] = {
    "merge": merge, "archive": archive, "supersede": supersede, "promote": promote, "strengthen": strengthen,
    "raise": raise_,
}  # fmt: skip


def dream(store: Store, acts: Sequence[tuple[str, str, str]], *, at: str = LATER) -> Dream:
    """A dream that does these actions, in one write, and is done."""

    def write(rows: Rows) -> Dream:
        begun = dreams.begin(rows, why="asked", sessions=5, now=at)
        for kind, one, other in acts:
            _carry_out(rows, store, begun.seq, kind, one, other, at=at)
        dreams.end(rows, begun.seq, state="done", now=at)
        return begun

    return store.write(write)


def _carry_out(rows: Rows, store: Store, seq: int, kind: str, one: str, other: str, *, at: str = LATER) -> None:
    journal.record_action(
        rows, lambda: ACTS[kind](rows, store.hash_key, one, other), dream=seq, kind=kind, project=home(rows), reason="why",
        evidence=[one], items=[one, other], now=at,
    )  # fmt: skip


def undo(store: Store, ident: str) -> dream_undo.Undone:
    return run_to_end(dream_undo.undo_dreams(store, ident, home=store.path.parent, now=LAST, key=store.hash_key))


def dream_slowly(path: str) -> None:
    """Dreams in a process of its own, an action to a batch, and says `batch` after each; it never ends the dream."""
    store = Store(Path(path), now=NOW)
    idents = [str(ident) for (ident,) in store.read(lambda rows: rows.all("select id from memories order by seq"))]
    begun = store.write(lambda rows: dreams.begin(rows, why="asked", sessions=5, now=LATER))
    for number, kind in enumerate(("merge", "raise", "supersede", "archive", "strengthen", "promote")):
        one, other = idents[number % 6], idents[(number + 1) % 6]
        store.write(lambda rows, pair=(kind, one, other): _carry_out(rows, store, begun.seq, *pair))  # type: ignore[misc]
        print("batch", flush=True)
    print("done", flush=True)
    sys.stdin.read()
