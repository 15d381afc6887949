"""A search as people see it: what matched is marked, what stands beside it is told apart, a score with its features."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.cli import memories, render

HIT: dict[str, Any] = {
    "id": "79a0968a-1234-5678", "kind": "turn", "score": 1.47, "project": "/p", "session_id": "2cfdacb8-99", "gate": "",
    "text": "assistant: The gateway listens on 8443.\n[before] user: which port does the gateway use, and why is it that one of all "
    "the ports that there are?\n[after] user: thanks", "source_uuids": ["a", "b"], "at": "2026-02-11T10:00:00.000Z", "confidence": 0.0,
    "authority": "", "superseded_by": "m1234", "newer": "x", "factors": {"words": 0.6, "meaning": 0.47, "asks": 0.0},
}  # fmt: skip


def test_what_matched_is_marked_and_what_stands_beside_it_says_where(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    render.show(
        memories.show_hits(
            {"query": "gateway port", "close": True, "hits": [HIT], "degraded": [], "took_ms": 3.0}, explain=True
        )
    )
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith(" 1  turn  2026-02-11  79a0968a-12  session 2cfdacb8  1.47  superseded by m1234")
    assert lines[1] == "  > assistant: The gateway listens on 8443."
    assert lines[2].startswith("    before, user: which port does the gateway use")
    assert "    after, user: thanks" in lines
    assert "    1.47 from words 0.60, meaning 0.47" in lines


def test_what_a_newer_hit_replaces_names_it_by_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    hits = [{**HIT, "newer": None}, {**HIT, "id": "0", "superseded_by": "", "refuted": False, "newer": HIT["id"]}]
    render.show(
        memories.show_hits({"query": "x", "close": True, "hits": hits, "degraded": [], "took_ms": 3.0}, explain=False)
    )
    heads = [line for line in capsys.readouterr().out.splitlines() if line[:2].strip()]
    assert [head.rpartition("  ")[2] for head in heads[:2]] == ["superseded by m1234", "replaced by number 1"]


def test_a_score_without_features_stands_alone() -> None:
    assert memories.explained({}, 0.6) == memories.explained({"asks": 0.0}, 0.6) == "0.60"


def test_nothing_found_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    render.show(
        memories.show_hits(
            {"query": "x", "close": False, "hits": [], "degraded": ["vectors: none"], "took_ms": 3.0}, explain=False
        )
    )
    assert capsys.readouterr().out.splitlines() == ["nothing found for 'x'", "degraded: vectors: none", "3 ms"]


def test_a_search_that_found_nothing_close_says_so_before_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    render.show(
        memories.show_hits({"query": "x", "close": False, "hits": [HIT], "degraded": [], "took_ms": 3.0}, explain=False)
    )
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "nothing close was found; the nearest:" and second.startswith(" 1  turn")
