"""What people see of a search: each hit's passage with what was said beside it, and how its score came about.

The passage that matched is marked with `>`, so that it is seen without colours, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from csmd import terms
from csmd import text as texts
from csmd.cli.show import console, degraded, print_text

#: Characters and lines that are shown of the passage that matched, and of each one beside it.
MATCHED, BESIDE = (300, 5), (150, 2)
#: Where in a hit's text the turns beside the one that matched begin (csmd.recall.exchange).
_BESIDE = re.compile(r"\n\[(before|after)\] ")


def hits(value: dict[str, Any], *, explain: bool) -> None:
    """Search results: what was said, by whom, when and where."""
    out = console()
    if not value["hits"]:
        print_text(out, f"nothing found for {value['query']!r}")
    elif not value["close"]:
        print_text(out, "nothing close was found; the nearest:")
    asked = terms.asked(value["query"])
    places = {hit["id"]: f"number {number}" for number, hit in enumerate(value["hits"], 1)}
    for number, hit in enumerate(value["hits"], 1):
        session = f"session {hit['session_id'][:8]}" if hit["kind"] == "turn" else ""
        about = [
            hit["kind"],
            hit["gate"],
            hit["authority"],
            hit["at"][:10],
            _shown(hit),
            session,
            f"{hit['score']:.2f}",
            _overtaken(hit, places),
        ]
        print_text(out, "  ".join(part for part in about if part), head=f"{number:>2}  ", style="bold")
        matched, *beside = _BESIDE.split(hit["text"])
        print_text(out, texts.passage(matched, asked, limit=MATCHED[0]), indent=2, head="> ", most=MATCHED[1])
        for place, said in zip(beside[::2], beside[1::2], strict=True):
            passage = texts.squeeze(texts.passage(said, asked, limit=BESIDE[0]))
            print_text(out, f"{place}, {passage}", indent=4, most=BESIDE[1], style="dim")
        if explain:
            print_text(out, explained(hit["factors"], hit["score"]), indent=4, style="dim")
    degraded(out, value["degraded"])
    out.print(f"{value['took_ms']:.0f} ms", style="dim")


def _overtaken(hit: dict[str, Any], places: Mapping[str, str]) -> str:
    """Why a hit may no longer hold; "" for one of which nothing is known."""
    if hit["superseded_by"]:
        return f"superseded by {hit['superseded_by']}"
    if hit["refuted"]:
        return "refuted"
    if hit["newer"]:
        return f"replaced by {places.get(hit['newer'], hit['newer'])}"
    return "its code edited since" if hit["edited"] else ""


def _shown(hit: dict[str, Any]) -> str:
    """An id as far as it tells a hit from others: what only a hook reported has one that begins with the time."""
    ident = str(hit["id"])
    return ident if ident.startswith("hook:") else ident[: 8 if hit["kind"] == "session" else 11]


def explained(factors: Mapping[str, float], score: float) -> str:
    """What a score was made from: the features of the hit that are not 0."""
    features = ", ".join(f"{name} {value:.2f}" for name, value in factors.items() if value)
    return f"{score:.2f} from {features}" if features else f"{score:.2f}"
