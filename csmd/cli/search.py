"""The command that searches memories and conversations."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, get_args

import click

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, bold, dim, join
from csmd.text import display
from csmd.text.display import squeeze
from csmd.vocabulary import CATEGORIES, GATE_PRIORITY, MemoryType

VERBS = verb.Verbs()
#: Most characters shown of the passage that matched.
MATCH_CHARS = 300
#: Most lines of it.
MATCH_LINES = 5
#: Most lines shown of each neighbouring turn.
NEIGHBOUR_LINES = 2
#: The beginning of a neighbouring turn in a hit's text (csmd.recall.results).
_NEIGHBOUR_HEAD = re.compile(r"\n\[(before|after)\] ")


@VERBS.action(
    "search", verb.argument("words", "QUERY...", nargs=-1, required=True), *verb.PROJECTS, verb.limit(10, 200),
    verb.option("--kind", type=click.Choice(["memory", "turn", "session", "all"]), default="all", show_default=True),
    verb.text("--since", "TIME", "Only since: 2026-01-31, 7d, `last week`."),
    verb.text("--until", "TIME", "Only until."),
    verb.text("--session", "ID", "Only in one session."), verb.one_of("gate", sorted(GATE_PRIORITY), "GATE"),
    verb.one_of("category", sorted(CATEGORIES), "CATEGORY"), verb.one_of("type", sorted(get_args(MemoryType)), "TYPE"),
    verb.flag("--explain", help="Show the factors of each score."),
    verb.flag("--team", help="Search the memories that colleagues share, on the team's server."),
)  # fmt: skip
def search(words: tuple[str, ...], project: str | None, all_projects: bool, as_json: bool, **options: Any) -> None:
    """Search memories and past conversations. Several words need no quotes."""
    query, started_at = " ".join(words), time.monotonic()
    if options.pop("team"):
        from csmd.cli import team  # imported late: most homes have no team

        answer = verb.run_job("csm_team_search", query=query, limit=options["limit"], asking=verb.resolve_project(None))
        verb.print_answer(answer, as_json, team.show_team_hits)
        return
    params = {name: "" if value is None else value for name, value in options.items()}
    answer = verb.ask("csm_memory_search", query=query, **verb.project_params(project, all_projects), **params)
    value = {"query": query, "took_ms": round((time.monotonic() - started_at) * 1000, 1), **answer}
    verb.print_answer(value, as_json, show_hits, explain=options["explain"], everywhere=all_projects)


def show_hits(value: dict[str, Any], *, explain: bool, everywhere: bool) -> Screen:
    """Search results: the text of each hit, with its speaker, day and session."""
    from csmd.text import prose, search_terms  # imported late: slow, and not needed by other commands

    if not value["hits"]:
        elsewhere = "" if everywhere else " in this project; --all-projects searches all projects"
        yield f"nothing found for {value['query']!r}{elsewhere}"
    elif not value["close"]:
        yield "no close match; the nearest:"
    terms = search_terms.question_terms(value["query"])
    numbers = {hit["id"]: f"(hit {number})" for number, hit in enumerate(value["hits"], 1)}
    for number, hit in enumerate(value["hits"], 1):
        session = hit["kind"] == "turn" and f"session {display.shorten_session_id(hit['session_id'])}"
        kind, speaker = "memory" if hit.get("states") else hit["kind"], hit.get("author") or hit["authority"]
        origin = (kind, hit["gate"], speaker, hit["at"][:10], _shorten_id(hit), session)
        score = "" if explain else f"{hit['score']:.2f}"
        details = join(*origin, score, _describe_outdated(hit, numbers), by="  ")
        yield bold(details, head=f"{number:>2}  ")
        match, *neighbours = _NEIGHBOUR_HEAD.split(hit["text"])
        yield Line(prose.excerpt(match, terms, limit=MATCH_CHARS), indent=2, head="> ", max_lines=MATCH_LINES)
        for position, text in zip(neighbours[::2], neighbours[1::2], strict=True):
            passage = squeeze(prose.excerpt(text, terms, limit=render.NEIGHBOUR_CHARS))
            yield dim(f"{position}, {passage}", indent=4, max_lines=NEIGHBOUR_LINES)
        if explain:
            yield dim(explain_score(hit["factors"], hit["score"]), indent=4)
    yield from render.degraded(value["degraded"])
    yield dim(f"{value['took_ms']:.0f} ms")


def _describe_outdated(hit: dict[str, Any], numbers: Mapping[str, str]) -> str:
    """Returns the reason why a hit may be out of date, "" if there is none; `numbers` maps ids of hits to their
    numbers."""
    if hit["superseded_by"]:
        date = hit["superseded_at"] and f"on {hit['superseded_at'][:10]}"
        return join(f"superseded by {hit['superseded_by']}", date, numbers.get(hit["superseded_by"]), by=" ")
    return "refuted" if hit["refuted"] else "its code was edited since" if hit["edited"] else ""


def _shorten_id(hit: dict[str, Any]) -> str:
    """Returns the beginning of the id of a hit, or of its memory; a hook's id is kept whole, as it begins with the
    time."""
    hit_id = str(hit.get("states") or hit["id"])
    return hit_id if hit_id.startswith("hook:") else hit_id[: 8 if hit["kind"] == "session" else 11]


def explain_score(factors: Mapping[str, float], score: float) -> str:
    """Returns a score and the features that are not 0."""
    features = ", ".join(f"{name} {value:.2f}" for name, value in factors.items() if value)
    return f"{score:.2f} from {features}" if features else f"{score:.2f}"
