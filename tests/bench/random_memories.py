"""A store of memories of random words, for benches; no test."""

from __future__ import annotations

import random

from csmd.store import projects
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"


def fill(rows: Rows, memories: int, number: int) -> None:
    """Adds memories of random words to a store, by turns in each of `number` projects, with a turn as the source of each.

    Of 5,000 words some are common; one memory in twenty repeats an earlier one of its project with a word more.
    """
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(4, 9))) for _ in range(5000)]
    weights = [1 / (rank + 5) for rank in range(len(words))]
    rows.many(
        "insert into projects (seq, key, root, name, kind, created_at) values (:seq, :key, :key, :key, 'path', '')",
        [{"seq": seq, "key": f"p{seq}"} for seq in range(1, number + 1)],
    )
    for seq in range(1, number + 1):
        projects.record_active_day(rows, seq, NOW)
    rows.run(
        "insert into sessions (seq, id, host, project_seq, started_at, last_at) values (1, 's1', 'claude', 1, '', '')"
    )
    texts: dict[int, str] = {}
    added = []
    for seq in range(1, memories + 1):
        repeated = texts.get(seq - 20 * number) if seq % 20 == 0 else None
        texts[seq] = (
            f"{repeated} {chance.choice(words)}" if repeated else " ".join(chance.choices(words, weights, k=14))
        )
        added.append(
            {
                "seq": seq,
                "id": f"m{seq:08x}",
                "text": texts[seq],
                "project": seq % number + 1,
                "uuid": f"u{seq}",
                "now": NOW,
            }
        )
    rows.many(
        "insert into turns (seq, uuid, session_seq, project_seq, kind, text, text_hash, at, source) values "
        "(:seq, :uuid, 1, :project, 'user', '', :uuid, :now, 'transcript')",
        added,
    )
    rows.many(
        "insert into memories (seq, id, text, text_hash, gate, category, type, tier, decay, authority, origin, confidence, "
        "scope, project_seq, session_id, created_at, confirmed_at, hot_until, warm_until, archive_at) values (:seq, :id, "
        ":text, :id, 'epistemic', 'decision', 'concept', 'durable', 'durable', 'user', 'stated', 0.8, 'project', :project, "
        "'s1', :now, :now, 10, 80, 170)",
        added,
    )
    rows.many(
        "insert into provenance (memory_seq, uuid, session_id, at, role) values (:seq, :uuid, 's1', :now, 'states')",
        added,
    )
