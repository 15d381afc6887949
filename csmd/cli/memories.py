"""Commands about memories: search, remember, list, show, edit, topics, links."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, get_args

import click

from csmd import wire
from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, block, bold, dim, first, join, many, pair, pairs, percent, warning
from csmd.errors import CsmdError
from csmd.hook_events import EVENTS
from csmd.installer import foreign_files
from csmd.text import display
from csmd.text.ages import when
from csmd.text.display import amount, said_by, squeeze
from csmd.vocabulary import (
    AUTHORITY_RANK,
    CATEGORIES,
    GATE_PRIORITY,
    Authority,
    Gate,
    MemdirType,
    MemoryType,
    Tier,
)  # fmt: skip

#: The verbs of this module.
VERBS = verb.Verbs()

# --- search

#: Characters and lines that are shown of the passage that matched, and of each neighbouring turn.
MATCHED, NEIGHBOUR = (300, 5), (150, 2)
#: Where in a hit's text the turns around the one that matched begin (csmd.recall.results).
_NEIGHBOUR = re.compile(r"\n\[(before|after)\] ")


@VERBS.action(
    "search", verb.argument("words", "QUERY...", nargs=-1, required=True), *verb.PROJECTS, verb.limit(10, 200),
    verb.option("--kind", type=click.Choice(["memory", "turn", "session", "all"]), default="all", show_default=True),
    verb.text("--since", "TIME", "Said since: 2026-01-31, 7d, `last week`."), verb.text("--until", "TIME", "Said until."),
    verb.text("--session", "ID", "Said in one session."), verb.one_of("gate", sorted(GATE_PRIORITY), "GATE"),
    verb.one_of("category", sorted(CATEGORIES), "CATEGORY"), verb.one_of("type", sorted(get_args(MemoryType)), "TYPE"),
    verb.flag("--explain", help="Show how each score came about."),
    verb.flag("--team", help="Ask the team's server: all that colleagues share with you."),
)  # fmt: skip
def search(words: tuple[str, ...], project: str | None, all_projects: bool, as_json: bool, **options: Any) -> None:
    """Search memories and past conversations. Several words need no quotes."""
    query, begun = " ".join(words), time.monotonic()
    if options.pop("team"):
        from csmd.cli import team  # with what its verbs need: most have none

        asked = verb.work("csm_team_search", query=query, limit=options["limit"], asking=verb.resolve_project(None))
        verb.print_answer(asked, as_json, team.show_team_hits)
        return
    params = {name: "" if value is None else value for name, value in options.items()}
    answer = verb.ask("csm_memory_search", query=query, **verb.project_params(project, all_projects), **params)
    value = {"query": query, "took_ms": round((time.monotonic() - begun) * 1000, 1), **answer}
    verb.print_answer(value, as_json, show_hits, explain=options["explain"], everywhere=all_projects)


def show_hits(value: dict[str, Any], *, explain: bool, everywhere: bool) -> Screen:
    """Search results: what was said, by whom, when and where."""
    from csmd.text import prose, tokens  # a third of what `csmd brief` and `recall` would load

    if not value["hits"]:
        elsewhere = "" if everywhere else " in this project; --all-projects looks everywhere"
        yield f"nothing found for {value['query']!r}{elsewhere}"
    elif not value["close"]:
        yield "nothing close was found; the nearest:"
    terms = tokens.question_terms(value["query"])
    numbers = {hit["id"]: f"number {number}" for number, hit in enumerate(value["hits"], 1)}
    for number, hit in enumerate(value["hits"], 1):
        session = hit["kind"] == "turn" and f"session {display.short_session(hit['session_id'])}"
        origin = (
            "memory" if hit.get("states") else hit["kind"],
            hit["gate"],
            hit.get("author") or hit["authority"],
            hit["at"][:10],
            _short_id(hit),
            session,
        )
        about = join(*origin, f"{hit['score']:.2f}", _overtaken(hit, numbers), by="  ")
        yield bold(about, head=f"{number:>2}  ")
        matched, *around = _NEIGHBOUR.split(hit["text"])
        yield Line(prose.passage(matched, terms, limit=MATCHED[0]), indent=2, head="> ", most=MATCHED[1])
        for place, text in zip(around[::2], around[1::2], strict=True):
            passage = squeeze(prose.passage(text, terms, limit=NEIGHBOUR[0]))
            yield dim(f"{place}, {passage}", indent=4, most=NEIGHBOUR[1])
        if explain:
            yield dim(explain_score(hit["factors"], hit["score"]), indent=4)
    yield from render.degraded(value["degraded"])
    yield dim(f"{value['took_ms']:.0f} ms")


def _overtaken(hit: dict[str, Any], numbers: Mapping[str, str]) -> str:
    """Why a hit may no longer hold, "" where nothing says so; `numbers` are the places of the hits by id."""
    if hit["superseded_by"]:
        place = numbers.get(hit["superseded_by"])
        since = join(hit["superseded_at"] and f"of {hit['superseded_at'][:10]}", place and f"{place} here", by=", ")
        return join(f"superseded by {hit['superseded_by']}", since, by=" ")
    if hit["refuted"]:
        return "refuted"
    return "its code edited since" if hit["edited"] else ""


def _short_id(hit: dict[str, Any]) -> str:
    """The beginning of a hit's id, or of that of the memory which it states; the whole where only a hook reported it, for such an id begins with the time."""
    ident = str(hit.get("states") or hit["id"])
    return ident if ident.startswith("hook:") else ident[: 8 if hit["kind"] == "session" else 11]


def explain_score(factors: Mapping[str, float], score: float) -> str:
    """A score and the features of the hit that are not 0."""
    features = ", ".join(f"{name} {value:.2f}" for name, value in factors.items() if value)
    return f"{score:.2f} from {features}" if features else f"{score:.2f}"


# --- remember, brief, recall, tool

ALL_TYPES = (*get_args(MemoryType), *get_args(MemdirType))
#: How a memory is related to a new one -> how it is introduced, what its command does, and how that command ends.
RELATED = {
    "replaced": ("Replaced", "Undo", "--undo"),
    "doubtful": ("May be replaced:", "Replace it", ""),
    "related": ("Related memory still active:", "Replace it", ""),
}


@VERBS.action(
    "remember", verb.argument("text"), verb.project_of("The project it holds in; this directory's by default."),
    verb.renamed_flag("--all-projects", "--everywhere", "everywhere", help="It holds in every project."), verb.flag("--pin", help="Never let it fade."),
    verb.option(
        "--type", "type_", metavar="WORD", type=click.Choice(ALL_TYPES),
        help=f"What it is, where its words do not tell: {', '.join(ALL_TYPES)}.",
    ),
    verb.yes("Keep a question, too, and do not ask."),
)  # fmt: skip
def remember(
    text: str, project: str | None, everywhere: bool, pin: bool, type_: str | None, yes: bool, as_json: bool
) -> None:
    """Remember a statement. Typed in a terminal it counts as yours. Else it is your assistant's and confirms nothing."""
    by_person, place = verb.is_interactive(), verb.project_params(project, everywhere)
    is_question = not yes and _is_question(text)
    if is_question and by_person:
        verb.ask_first("This asks something: keep it all the same?", err=as_json)
    saved = verb.ask("csm_memory_save", text=text, **place, pin=pin, type=type_ or "", by_person=by_person)
    verb.print_answer(saved, as_json, show_remembered, by_person=by_person)
    if is_question and not by_person and not as_json:
        render.show([dim(f"it asks something and is kept as a fact: csmd forget {saved['id']}")])
    _warn_of_off_mark(place["project"], as_json)


def _is_question(text: str) -> bool:
    """Whether every sentence is a question; one that answers itself states something."""
    from csmd.text import prose

    parts = prose.sentences(squeeze(text))
    return bool(parts) and all(part.rstrip(" )\"'”’»").endswith("?") for part in parts)


def show_remembered(value: dict[str, Any], *, by_person: bool) -> Screen:
    """What was remembered, and where it holds."""
    known = "confirmed" if by_person else "known already"
    workspace = f" in the workspace {value['workspace']}" if value["workspace"] else ""
    place = f"in {value['project']}" if value["project"] else f"everywhere{workspace}"
    yield f"{'remembered' if value['new'] else known} as {value['id']}: {value['text']}"
    yield dim(f"it holds {place}")
    if value["waits"]:
        yield warning(
            "typed by no person: search finds it, and no session is told of it before the user accepts it (`csmd review`)"
        )
    if value["paused"] and by_person:
        yield warning("kept, though csmd is paused: you said it yourself")
    for other in value["beside"]:
        relation, does, end = RELATED[other["is"]]
        yield Line(f"{relation} {other['id']}: {other['text']}", most=4)
        if other["rest"]:
            yield Line(f"Still active from it: {other['rest']['id']}: {other['rest']['text']}", indent=2, most=4)
        yield dim(f"{does}: csmd supersede {other['id']} {end or value['id']}", indent=2)


@VERBS.action("brief", verb.PROJECT)
def brief(project: str | None, as_json: bool) -> None:
    """Show what a session that starts here would be told."""
    nothing = "nothing yet: `csmd memories` lists what there is, also what waits in review"
    place = verb.project_params(project)
    verb.print_answer(verb.ask("csm_memory_context", **place), as_json, show_injection, nothing=nothing)
    _warn_of_off_mark(place["project"], as_json)


def _warn_of_off_mark(place: str, as_json: bool) -> None:
    """Warns that a directory is left out: sessions there are told nothing, whatever is shown."""
    mark = "" if as_json else foreign_files.off_mark(place or verb.resolve_project(None))
    if mark:
        render.show([warning(f"csmd is switched off there by {mark}: no session is captured or told anything")])


@VERBS.action(
    "recall", verb.argument("words", "[PROMPT]...", nargs=-1), verb.PROJECT,
    verb.option("--prompt", help="The same as PROMPT, in quotes."),
    verb.option("--file", metavar="PATH", help="A file that a prompt names, or that the session is at."),
)  # fmt: skip
def recall(words: tuple[str, ...], prompt: str | None, file: str | None, **options: Any) -> None:
    """Show what would be added to a prompt, or is known of a file. Several words need no quotes."""
    if [bool(words), prompt is not None, file is not None].count(True) != 1:
        raise click.UsageError("give PROMPT, --prompt TEXT or --file PATH, and only one of them")
    if file is None:
        prompt = " ".join(words) if prompt is None else prompt
        screen = partial(show_injection, nothing="Nothing would be added: no relevant memory.")
        verb.reply("csm_memory_recall", screen, {"prompt": prompt, **options})
    else:
        screen = partial(show_injection, nothing=f"nothing is known of {file}")
        verb.reply("csm_memory_file_recall", screen, {"file": file, **options})


def show_injection(value: dict[str, Any], *, nothing: str) -> Screen:
    """A brief or recall as the assistant would read it."""
    if value.get("paused"):
        yield "csmd is paused: no session is told anything until `csmd resume`"
        return
    yield from items(value["text"] or nothing)
    if value["text"]:
        yield dim(f"{amount(value['tokens'], 'token')}, {amount(len(value['items']), 'note')}", gap=True)
    yield from render.degraded(value["degraded"])


def items(text: str) -> Screen:
    """A text line by line; what continues an item of a list is indented. `--json` has the exact text."""
    for line in text.splitlines():
        head = "- " if line.startswith("- ") else ""
        yield Line(line.removeprefix(head), head=head)


@VERBS.command(
    "tool",
    params=[
        verb.argument("name"),
        verb.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="A parameter; may be given several times."),
        verb.flag("--json", "as_json", hidden=True, help="The answer is always JSON."),
    ],
)  # fmt: skip
def tool(name: str, params: tuple[str, ...], as_json: bool) -> None:
    """Ask the daemon one thing by its tool's name. `csmd tool list` names them."""
    del as_json
    values = {}
    for param in params:
        key, equals, values[key] = param.partition("=")
        if not equals:
            raise click.UsageError(f"--param {param}: expected KEY=VALUE")
    if "by_person" in values:
        raise CsmdError(
            "who speaks is told by the terminal, not by a parameter",
            hint="type `csmd remember` or `csmd forget` in a terminal",
        )
    # The directory is no parameter either: it decides what is seen of walled projects.
    values["asking"] = verb.resolve_project(None)
    click.echo(wire.pretty(verb.ask("csm_tools" if name == "list" else name, **values)))


# --- the list

#: Memories of a gate that are listed unless --limit says otherwise: of one project, of several, of one topic.
MOST_HERE, MOST_ANYWHERE, MOST_OF_TOPIC = 8, 3, 12
#: No topic has more.
ALL_OF_TOPIC = 5000
_SPAN = re.compile(r"(\d+)\s*(d|w)")
_DAYS = {"d": 1, "w": 7}


def _since(_context: click.Context, _parameter: click.Parameter, typed: str) -> str:
    """A day, or a number of days or weeks ago, as the beginning of a stored time; "" for none."""
    span = _SPAN.fullmatch(typed.strip())
    try:
        if span:
            ago = timedelta(days=int(span[1]) * _DAYS[span[2]])
            return (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S")
        return datetime.fromisoformat(typed).strftime("%Y-%m-%d") if typed else ""
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{typed!r} is no day (2026-05-04) and no span (30d, 6w)") from None


@VERBS.action(
    "memories", *verb.PROJECTS, verb.one_of("gate", get_args(Gate), "WORD"), verb.one_of("category", [*CATEGORIES], "WORD"),
    verb.one_of("type", get_args(MemoryType), "WORD"),
    verb.option("--tier", type=click.Choice(get_args(Tier)), help="Only of this tier."),
    verb.option("--authority", type=click.Choice(get_args(Authority)), help="Only what they said."),
    verb.text("--origin", "WORD", "Only what came so: stated, model_saved."),
    verb.text("--since", "DAY", "Only what was said since: 2026-05-04, 30d, 6w.", callback=_since),
    verb.text("--topic", "NAME", "Only what is about it; `csmd topics` lists them."),
    verb.text("--session", "ID", "Only what was said in this session."),
    verb.flag("--superseded", help="Only what something else has taken the place of."),
    verb.option("--limit", type=click.IntRange(1), help="How many of each gate; 8 of one project, 3 of several."),
    verb.ALL,
)  # fmt: skip
def memories(
    project: str | None, all_projects: bool, since: str, topic: str, session: str, superseded: bool, limit: int | None,
    everything: bool, as_json: bool,
    **filters: str | None,
) -> None:  # fmt: skip
    """List what is remembered here."""
    place = verb.project_params(project, all_projects)
    answer = (
        verb.ask("csm_memory_by_topic", topic=topic, limit=ALL_OF_TOPIC, **place)
        if topic
        else verb.ask("csm_memory_list", **place)
    )
    rows = [
        row
        for row in answer["memories"]
        if (row["superseded_by"] or not superseded)
        and row["confirmed_at"] >= since
        and (not session or any(ident.startswith(session) for ident in row["sessions"]))
        and all(row[name] == value for name, value in filters.items() if value)
    ]
    # Superseded memories are counted, not listed.
    shown = rows if superseded else [row for row in rows if not row["superseded_by"]]
    several = len({row["project"] for row in shown}) > 1
    most = len(shown) if everything else limit or (MOST_ANYWHERE if several else MOST_HERE)
    if as_json:
        listed = [row for _, gates in _choose(shown, most) for _, chosen, _ in gates for row in chosen]
        click.echo(wire.pretty({"memories": rows if limit is None or everything else listed}))
    else:
        render.show(show_listed(shown, known=len(answer["memories"]), superseded=len(rows) - len(shown), most=most))


def _choose(rows: list[dict[str, Any]], most: int) -> list[tuple[str, list[tuple[Gate, list[dict[str, Any]], int]]]]:
    """The projects of memories with their gates: (project, [(gate, those that are listed, how many there are)])."""
    chosen = []
    for project, in_project in by_project(rows):
        gates = []
        for gate in sorted(GATE_PRIORITY, key=lambda name: -GATE_PRIORITY[name]):
            of_gate = sorted((row for row in in_project if row["gate"] == gate), key=_order, reverse=True)
            # A single one is not worth leaving out.
            gates.append((gate, of_gate if len(of_gate) <= most + 1 else of_gate[:most], len(of_gate)))
        chosen.append((project, [one for one in gates if one[2]]))
    return chosen


def show_listed(rows: list[dict[str, Any]], *, known: int = 0, superseded: int = 0, most: int = 2**31) -> Screen:
    """Memories by project and gate, in each what a person said and what is surest first, at most `most` of a gate."""
    if not rows:
        nothing = "no memories yet; they come from sessions, `csmd import` and `csmd remember`"
        yield f"none of {many(known, 'memory')} is such" if known else nothing
        return
    shown, projects = 0, _choose(rows, most)
    for number, (project, gates) in enumerate(projects):
        if len(projects) > 1:
            yield project_heading(project, gap=bool(number))
        for gate, listed, count in gates:
            shown += len(listed)
            part = f"{len(listed)} of " if len(listed) < count else ""
            yield dim(f"{gate}, {part}{count:,}")
            for row in listed:
                yield Line(squeeze(row["text"]), indent=2, most=4)
                yield dim(_about(row), indent=6)
    left_out = shown < len(rows) and f"{len(rows) - shown:,} not shown (--all)"
    replaced = superseded and f"{superseded:,} superseded (--superseded)"
    yield dim(join(many(len(rows), "memory"), left_out, replaced, by="; "), gap=True)


def by_project(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Rows by the project that they are of, in the order of the projects' paths."""
    projects = sorted({str(row["project"]) for row in rows})
    return [(project, [row for row in rows if row["project"] == project]) for project in projects]


def project_heading(project: str, *, gap: bool) -> Line:
    """The heading of the rows of one project among several."""
    return bold(render.fitted(project, render.width(), end=True) or "everywhere", gap=gap)


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    """Sort key, the greatest first: what is pinned, what a person said, what is sure, what is new."""
    rank = AUTHORITY_RANK[row["authority"]]
    return row["pinned"], row["origin"] != "model_saved", rank, round(row["confidence"], 1), row["confirmed_at"]


def _about(row: dict[str, Any]) -> str:
    """The line below a memory in a list: its id, date, confidence, category and marks."""
    marks = join(
        row["pinned"] and "pinned",
        row["times"] > 1 and f"said {row['times']} times",
        row["authority"] == "assistant" and "by the assistant",
        row["authority"] == "external" and display.said_by("external", row.get("author", "")),
        row["origin"] == "model_saved" and "unsaid",
        row["attention"] == "COLD" and "cold",
        row.get("tier") == "archive" and "archived",
        row["superseded_by"] and f"superseded by {row['superseded_by']}",
        row["is_refuted"] and "refuted",
        row["is_edited"] and "its code edited since",
    )
    sure = f"{percent(row['confidence']):>5}"
    return join(row["id"], row["confirmed_at"][:10], sure, row["category"], marks, by="  ")


# --- one memory, turn, error or candidate

#: Relationship -> what it is from the memory it begins at, and from the one it leads to.
RELATIONS: dict[str, tuple[str, str]] = {
    "superseded_by": ("superseded by", "takes the place of"),
    "goes_on_as": ("still active from it:", "the rest of"),
    "contradicts": ("contradicts", "contradicted by"),
    "elaborates": ("adds to", "more on it"),
    "symptom_of": ("a symptom of", "shows itself as"),
    "refuted_by": ("refuted by", "refutes"),
    "renamed_to": ("now called", "was called"),
    "confirmed_by": ("confirmed by", "confirms"),
    "caused": ("caused", "caused by"),
    "depends_on": ("depends on", "needed by"),
    "relates_to": ("related to", "related to"),
    "merged_into": ("merged into", "took in"),
}
#: Links that speak against a memory: (relationship, whether the memory is its beginning).
AGAINST = {("superseded_by", True), ("contradicts", False), ("contradicts", True), ("refuted_by", True)}
#: When something was told, by the event.
WHEN_TOLD: dict[str, str] = {name: rule.label for name, rule in EVENTS.items()}
#: Confirmations, links and pieces of evidence that are shown; --json has all.
MOST_SHOWN = 6
#: Characters of a turn that is shown as context, and of what stands before a sentence in its turn.
CONTEXT_CHARACTERS, BEFORE_CHARACTERS = 150, 400
#: What is left of a word that was cut; in some languages no space ends one.
_PART_OF_WORD = re.compile(r"^\S{0,30}\s+")


def show_memory(value: dict[str, Any]) -> Screen:
    """One memory: what it says, how sure it is and why, where it was said, what speaks for and against it."""
    again = "" if value["confirmed_at"] == value["created_at"] else f", last said {when(value['confirmed_at'])}"
    origin = "" if value["origin"] == "stated" else f" ({value['origin'].replace('_', ' ')})"
    by = "in another program" if value["authority"] == "external" else f"by the {value['authority']}{origin}"
    by = f"by {value['author']}, a colleague" if value.get("author") else by
    pinned = value["pinned"] and "pinned"
    yield bold(value["text"], most=20)
    yield ""
    yield from pairs([
        ("id", join(f"{value['id']}: {value['category']} ({value['gate']})", value["tier"], pinned)),
        ("holds", value["project"] or ("perhaps everywhere" if value["origin"] == "inferred" else "everywhere")),
        ("said", f"{by}, {when(value['created_at'])}{again}"),
        ("scene", value["scene"]),
        ("sure", f"{percent(value['sure']['today'])} today"),
    ])  # fmt: skip
    for factor in value["sure"]["factors"]:
        sign = "" if factor["name"] == "base" else "+"
        effect = f"{factor['effect'] * 100:{sign}.0f} %" if factor["effect"] or not sign else ""
        yield dim(factor["why"], head=f"{'':<9}{effect:>6}  ")
    yield from (pair("against", f"{reason['reason']} ({when(reason['at'])})") for reason in value["refuted"])
    yield from (pair("reported", symptom["text"]) for symptom in value["symptoms"][:3])
    yield from pairs([
        ("topics", ", ".join(topic["name"] for topic in value["topics"])),
        ("fades", fading_words(value)),
        ("told", _times_shown(value["told"])),
    ])  # fmt: skip
    yield from _sources(value["sources"])
    yield from _links(value)
    # Memories that share its topics, a line each.
    room = render.width()
    near = [(f"  {other['id']}  ", squeeze(other["text"])) for other in value["beside"]]
    lines = [dim(display.cut(text, max(room - len(head), render.MIN_WIDTH)), head=head) for head, text in near]
    yield from block("About the same", lines, style="bold")
    changes = [Line(_change(change), head=f"  {when(change['at'])}  ") for change in value["changes"]]
    yield from block("What was done to it", changes, style="bold")


def _change(change: dict[str, Any]) -> str:
    """What was done to a memory, why, and by whom."""
    undone = ", taken back" if change["undone_at"] else ""
    before, after = change["sure_before"], change["sure_after"]
    sure = "" if before is None or after is None else f": {before * 100:.0f} to {percent(after)}"
    new = f" by {change['superseded_by']}" if change["change"] == "superseded" else ""
    by = f" (by {change['by']})" if change["reason"] == "told" or change["by"] == "rule" else ""
    return f"{change['change']}{new}{sure}, {change['reason']}{by}{undone}"


def fading_words(value: dict[str, Any]) -> str:
    """Whether a session's start is told it, and how long prompts are, in active days: those on which its project had a session."""
    cools = value["cools"]
    if value["superseded_by"]:
        return f"superseded by {value['superseded_by']}: no session is told it"
    if value["tier"] == "archive":
        return "archived: found by search only"
    if value["is_refuted"]:
        return "refuted: no session is told it until it is said anew or kept in `csmd review`"
    if value["origin"] == "model_saved" and (value["authority"] == "external" or not value["pinned"]):
        return "no session is told it until you keep it in `csmd review`"
    at_start, today, warm = value["start"], cools["today"], cools["warm_until"]
    left = at_start["sessions_left"]
    sessions = "every session's start" if left is None else f"a session's start for {amount(left, 'more session')}"
    start = f"told at {sessions} ({at_start['why']})" if at_start["told"] else ""
    start = start or f"not told at a session's start ({at_start['why']})"
    if warm is None:
        return f"{start}; when a prompt matches, for good"
    prompt = f"when a prompt matches, for {_days(warm - today)}, then " if warm >= today else ""
    return f"{start}; {prompt}found by search only"


def _days(number: int) -> str:
    return f"{number} more active day{'s' if number != 1 else ''}" if number else "today"


def _times_shown(injections: dict[str, Any]) -> str:
    """How often sessions were told it, and which one last."""
    if not injections["times"]:
        return "no session was told it yet"
    times = amount(injections["times"], "time")
    for last in injections["last"][:1]:
        event = WHEN_TOLD.get(last["event"], last["event"])
        times += f", last {when(last['at'])} to session {display.short_session(last['session_id'])} {event} (csmd why --receipt {last['receipt'][:9]})"
    return times


def _sources(sources: list[dict[str, Any]]) -> Screen:
    """Where it was said, with the turns around it, then where it was said again."""
    yield bold("Where it was said", gap=True)
    for source in sources[:1]:
        near = source.get("around", {"before": [], "after": []})
        yield from map(_context_turn, near["before"])
        yield from _spoken(source, "states")
        yield from map(_context_turn, near["after"])
    again, more = first(sources[1:], MOST_SHOWN)
    if again:
        yield bold(f"Said again in {many(len(sources) - 1, 'turn')}", gap=True)
    for source in again:
        yield from _spoken(source, source["role"], most=4)
    yield from more


#: How the id of a source begins that is no turn -> what it is; a turn's can be anything.
NO_TURN = {
    "cli:page-": "an edited page", "cli:": "command line", "foreign:": "a file of another program",
    "": "a turn that is gone",
}  # fmt: skip


def _spoken(source: dict[str, Any], role: str, *, most: int = 12) -> Screen:
    """A turn that supports or contradicts something: who, when, where, and the sentence marked in it."""
    speaker = source["speaker"]
    if not speaker:
        speaker = next(what for beginning, what in NO_TURN.items() if source["uuid"].startswith(beginning))
    session = source["session_id"] and f"session {display.short_session(source['session_id'])}"
    turn = source["speaker"] and source["uuid"][:13]
    yield Line(f"{role}: {join(speaker, when(source['at']), session, turn)}", head="  ")
    sentence = source["sentence"]
    # Of a repetition the sentence is enough.
    passage = sentence if role != "states" and sentence else source["text"]
    before, marked, after = passage.partition(sentence) if sentence else (passage, "", "")
    room = max(2, most // 3)
    if before.strip():
        yield dim(_end_of(before.strip()), indent=4, most=room if marked else most)
    if marked:
        yield Line(squeeze(marked), head="  > ", most=most)
    if after.strip():
        yield dim(after.strip(), indent=4, most=room)


def _end_of(text: str) -> str:
    """The end of a text, from a word on where one begins soon, with an ellipsis where something is gone."""
    return text if len(text) <= BEFORE_CHARACTERS else f"…{_PART_OF_WORD.sub(' ', text[-BEFORE_CHARACTERS:])}"


def _context_turn(turn: dict[str, Any]) -> Line:
    return dim(display.cut(turn["text"], CONTEXT_CHARACTERS), head=f"  {turn['speaker']}: ")


def _links(value: dict[str, Any]) -> Screen:
    """What speaks against it, then its other links."""
    against = [link for link in value["links"] if (link["relationship"], link["from_id"] == value["id"]) in AGAINST]
    others = [link for link in value["links"] if link not in against]
    for title, links in (("Against it", against), ("Linked", others)):
        lines: list[Line] = []
        shown, more = first(links, MOST_SHOWN)
        for link in shown:
            other, relation = link["other"], relation_of(link["relationship"])[link["from_id"] != value["id"]]
            about = (
                f"{relation} {other['id']}, {said_by(other['authority'], other.get('author', ''))} {when(other['at'])}"
            )
            lines += [Line(about, indent=2), dim(other["text"], indent=4, most=3)]
        yield from block(title, [*lines, *more], style="bold")


def relation_of(relationship: str) -> tuple[str, str]:
    """The words for a relationship, from its beginning and from its end."""
    return RELATIONS.get(relationship, (relationship.replace("_", " "),) * 2)


def show_turn(value: dict[str, Any]) -> Screen:
    """One turn, where it was said, the turns around it and the memories that rest on it."""
    yield Line(value["text"] or "(nothing is kept of its text)", most=40)
    yield ""
    yield pair("turn", f"{value['id']}, {value['kind'].replace('_', ' ')}")
    if value.get("dropped_bytes"):
        yield pair("left out", f"{amount(value['dropped_bytes'], 'byte')}; the whole: csmd context get {value['id']}")
    yield pair("said", f"{when(value['at'])} in {value['project'] or 'no project'}")
    yield pair("session", f"csmd session transcript {value['session_id']}")
    near = value.get("around", {"before": [], "after": []})
    yield from block("Before it", map(_context_turn, near["before"]), style="bold")
    yield from block("After it", map(_context_turn, near["after"]), style="bold")
    rest = [Line(memory["text"], head=f"  {memory['id']}  ", most=3) for memory in value.get("memories") or ()]
    yield from block("Memories that rest on it", rest, style="bold")


def show_candidate(value: dict[str, Any]) -> Screen:
    """What may become a memory, or be done to memories, with what speaks for and against it."""
    yield bold(value["text"], most=20)
    yield ""
    yield pair("id", f"{value['id']}: {value['kind'].replace('_', ' ')}, {value['status'].replace('_', ' ')}")
    yield pair("why", value["reason"])
    yield pair("holds", value["project"] or "everywhere, if it is so")
    yield pair("sure", f"{percent(value['confidence'])}, seen {many(value['reinforcement'], 'time')}")
    yield from memories_about(value["memories"])
    yield from evidence_for(value["evidence"], most=MOST_SHOWN)
    if value["status"] in ("open", "needs_review"):
        yield dim(f"csmd review {value['id']} --keep | --edit TEXT | --drop | --supersede ID", gap=True)


def memories_about(rows: list[dict[str, Any]], *, besides: str = "", names: Sequence[str] = ()) -> Screen:
    """The memories that a candidate is about, by `names` or numbers; a text that is `besides` is not repeated."""
    for number, memory in enumerate(rows, 1):
        place = names[number - 1] if names else f"{number}. " if len(rows) > 1 else ""
        yield ""
        if memory["text"] != besides:
            yield Line(memory["text"], head=f"  {place}", most=12)
        origin = f"{said_by(memory['authority'], memory.get('author', ''))} {when(memory['at'])}"
        replaced = memory["superseded_by"] and f"superseded by {memory['superseded_by']}"
        yield dim(join(memory["id"], origin, percent(memory["confidence"]), replaced), indent=2 + len(place))


def evidence_for(turns: list[dict[str, Any]], *, most: int) -> Screen:
    """The turns that speak for or against something, each with its sentence."""
    shown, more = first(turns, most)
    if turns:
        yield ""
    for turn in shown:
        yield from _spoken(turn, "against" if turn["against"] else turn.get("role") or "for", most=4)
    yield from more


# --- a person's wording


@VERBS.action(
    "edit", verb.ID, verb.optional("wording", "[TEXT]"), verb.text("--text", "TEXT", "The new wording, too."),
)  # fmt: skip
def edit(id: str, wording: str, text: str, as_json: bool) -> None:  # noqa: A002 - the tools' word
    """Put your wording in a memory's place: TEXT, or what you make of it in your editor."""
    if wording and text:
        raise click.UsageError("give the new wording once")
    if not verb.is_interactive():
        raise CsmdError("only a person at a terminal can change the wording of a memory", hint="type it in a terminal")
    memory = verb.ask("csm_memory_show", id=id, asking=verb.resolve_project(None))
    wording = wording or text or verb.edit_text(memory["text"])
    change = {"id": memory["id"], "text": wording, "version": memory["version"], "as_json": as_json}
    verb.reply("csm_memory_edit", show_rewording, change, sends_by_person=True)


def show_rewording(value: dict[str, Any]) -> Screen:
    """The new wording and the memory that it replaces."""
    if not value["changed"]:
        return [f"nothing was changed: {value['id']} stays as it is"]
    undo = f"it takes the place of {value['id']}; `csmd undo` takes that back"
    return render.done(f"{value['made']}: {value['text']}", undo)


# --- topics, tags, links

#: Topics that are listed of one project, of each of several.
TOPICS_HERE, TOPICS_ANYWHERE = 30, 8


@VERBS.action("topics", verb.optional("name", "[NAME]"), *verb.PROJECTS, verb.ALL)
def topics(name: str, everything: bool, **options: Any) -> None:
    """List what is remembered here by what it is about.

    With NAME the memories that are about it.
    """
    if name:
        verb.reply(
            "csm_memory_by_topic",
            partial(show_topic, everything=everything),
            {"topic": name, "limit": ALL_OF_TOPIC, **options},
        )
    else:
        verb.reply("csm_memory_topics", partial(show_topics, everything=everything), options)


@render.if_empty("topics", "no topics yet: they are found where several memories of a project are about the same")
def show_topics(value: dict[str, Any], *, everything: bool) -> Screen:
    """The topics of each project, with how many memories are about them."""
    left_out, projects = 0, by_project(value["topics"])
    most = TOPICS_HERE if len(projects) == 1 else TOPICS_ANYWHERE
    for number, (project, rows) in enumerate(projects):
        if len(projects) > 1:
            yield project_heading(project, gap=bool(number))
        shown = rows if everything else rows[:most]
        left_out += len(rows) - len(shown)
        cells = [[row["name"], f"{row['memories']:,}", row["last_at"][:10]] for row in shown]
        yield from render.table("topic|memories|last said", "<><", cells)
    hint = "`csmd topics NAME` lists the memories of one"
    counts = many(len(value["topics"]), "topic"), left_out and f"{left_out:,} not shown (--all)"
    yield dim(join(*counts, hint, by="; "), gap=True)


def show_topic(value: dict[str, Any], *, everything: bool) -> Screen:
    """The memories that are about one topic."""
    rows = value["memories"]
    if not rows:
        return [f"nothing here is about {value['topic']!r}; `csmd topics` lists what something is about"]
    current = [row for row in rows if not row["superseded_by"]]
    most = len(rows) if everything else MOST_OF_TOPIC
    return show_listed(current, known=len(rows), superseded=len(rows) - len(current), most=most)


@VERBS.action(
    "tag", verb.ID, verb.argument("topic", "TOPIC"),
    verb.flag("--undo", help="Take the topic off; csmd does not put it back by itself."),
)  # fmt: skip
def tag(undo: bool, **options: Any) -> None:
    """Say that memory ID is about TOPIC."""
    verb.reply("csm_memory_untag" if undo else "csm_memory_tag", show_tagged, options, sends_by_person=True)


def show_tagged(value: dict[str, Any]) -> Screen:
    """The topics that a memory has now."""
    yield Line(f"{value['id']}: {value['text']}", most=3)
    names, new = [topic["name"] for topic in value["topics"]], value["superseded_by"]
    yield dim(f"it is about {', '.join(names) or 'nothing that is shared'}")
    if new and value["topic"] in names:
        yield f"it holds no longer, so `csmd topics` does not list it; {new} took its place: csmd tag {new} TOPIC"


@VERBS.tool(
    "link", "csm_memory_link", verb.argument("from", "FROM"), verb.argument("to", "TO"),
    verb.option("--as", "relationship", metavar="WORD", default="relates_to", show_default=True, help="In a word or three: extends, depends_on, caused ..."),
    verb.option("--weight", default="1", show_default=True, metavar="NUMBER", help="Above 0 and at most 1."),
    verb.flag("--undo", help="Take the link away."), sends_by_person=True,
)  # fmt: skip
def show_linked(value: dict[str, Any]) -> Screen:
    """Link memory FROM to memory TO."""
    change = "no longer linked" if value["undone"] else "linked"
    yield f"{change}: {value['from']['id']} {relation_of(value['relationship'])[0]} {value['to']['id']}"
    for memory in (value["from"], value["to"]):
        yield dim(memory["text"], head=f"  {memory['id']}  ", most=2)


# --- what failed


@VERBS.tool("errors", "csm_error_list", *verb.PROJECTS, verb.limit(20, 200, "How many."))
@render.if_empty("errors", "nothing is known to have failed here; it is found in what commands answered")
def show_errors(value: dict[str, Any]) -> Screen:
    """List what failed here, how often, and what mended it."""
    for number, error in enumerate(value["errors"]):
        times = f"seen {amount(error['times'], 'time')} in {amount(error['sessions'], 'session')}"
        code = error["exit_code"] > 0 and f"exit code {error['exit_code']}"
        source = error["command"] and join(error["command"], code)
        title = f"{source or 'pasted'}: {times}, last on {error['last_at'][:10]} ({error['id']})"
        yield bold(title, gap=number > 0)
        yield Line(error["message"], indent=2, most=3)
        if error["fixed_at"]:
            files = error["fixed_files"]
            more = f" and {amount(len(files) - 3, 'other file')}" if len(files) > 3 else ""
            why = f": {squeeze(error['fixed_by'])}" if error["fixed_by"] else ""
            fix = f"an edit of {', '.join(files[:3])}{more} on {error['fixed_at'][:10]}{why}"
            yield dim(fix, head="  last fixed by ", most=3)
        if error["memory_id"]:
            yield dim(squeeze(error["memory"]), head=f"  {error['memory_id']}  ", most=4)
