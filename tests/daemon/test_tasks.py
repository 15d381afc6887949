"""A purge leaves nothing of a text in the daemon's own memory either."""

from __future__ import annotations

from typing import Any

from csmd.recall import ranking


def test_a_purge_empties_what_functions_keep_of_texts(parts: Any) -> None:
    said = "the vault opens on Mondays"
    first = ranking.stems(said)
    assert ranking.stems(said) is first, "kept"
    job = parts.call("csm_privacy_purge", what="vault opens", kind="text", by_person=True)["job"]
    for _ in range(200):
        parts.background.step(1000.0)
        if parts.background.context.tasks[job].state in ("done", "failed"):
            break
    assert parts.background.context.tasks[job].state == "done", parts.background.context.tasks[job]
    assert ranking.stems(said) == first and ranking.stems(said) is not first
