"""Commands about memories: remember, list, edit, replace, pin."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import click
from click.core import ParameterSource

from csmd import wire
from csmd.cli import render, verb
from csmd.cli.injections import warn_of_off_mark
from csmd.cli.render import Line, Screen, bold, dim, join, many, percent, warning
from csmd.cli.show import describe_fading
from csmd.text import display
from csmd.text.display import squeeze
from csmd.vocabulary import AUTHORITY_RANK, CATEGORIES, GATE_PRIORITY, Authority, Gate, MemdirType, MemoryType, Tier

VERBS = verb.Verbs()
ALL_TYPES = (*get_args(MemoryType), *get_args(MemdirType))
#: Relation of a memory to a new one -> its introduction, the effect of the suggested command, and its last argument
#: ("" for the new memory).
RELATED = {
    "replaced": ("Replaced", "Undo", "--undo"),
    "doubtful": ("May be replaced:", "Replace it", ""),
    "related": ("Related memory still active:", "Replace it", ""),
}
#: Most memories of a topic that are read: more than any topic has.
TOPIC_LIMIT = 5000
#: Memories of a gate that are listed unless --limit says otherwise: of one project, and of each of several.
MAX_PER_GATE_ONE_PROJECT = 8
MAX_PER_GATE_SEVERAL = 3


@VERBS.action(
    "remember", verb.argument("text"), verb.project_option("Its project; this directory's by default."),
    verb.flag("--all-projects", "everywhere", help="Remember it for every project."),
    verb.flag("--pin", help="Never let it fade."),
    verb.option("--type", "type_", metavar="WORD", type=click.Choice(ALL_TYPES),
    help=f"Its type, if its words do not show it: {', '.join(ALL_TYPES)}."),
    verb.yes("Save a question without asking."),
)  # fmt: skip
def remember(
    text: str, project: str | None, everywhere: bool, pin: bool, type_: str | None, yes: bool, as_json: bool
) -> None:
    """Remember a statement.

    Typed in a terminal it counts as yours. Otherwise it counts as your assistant's and confirms nothing."""
    by_person, scope = verb.is_interactive(), verb.project_params(project, everywhere)
    is_question = not yes and _is_question(text)
    if is_question and by_person:
        verb.require_yes("This is a question. Save it as a fact?", err=as_json)
    saved = verb.ask("csm_memory_save", text=text, **scope, pin=pin, type=type_ or "", by_person=by_person)
    shown = {} if as_json or saved["waits"] else _ask_when_shown(saved["id"])
    verb.print_answer(saved, as_json, show_remembered, by_person=by_person, shown=shown)
    if is_question and not by_person and not as_json:
        render.show([dim(f"Saved a question as a fact. Delete: csmd forget {saved['id']}")])
    warn_of_off_mark(scope["project"], as_json)


def _ask_when_shown(ident: str) -> dict[str, Any]:
    """Asks how a memory is rated at sessions' starts, and for how long prompts are shown it."""
    memory: dict[str, Any] = verb.ask("csm_memory_show", id=ident, asking=verb.resolve_project(None), only_fading=True)
    return memory


def _is_question(text: str) -> bool:
    """Whether every sentence of a text is a question."""
    from csmd.text import prose

    parts = prose.split_sentences(squeeze(text))
    return bool(parts) and all(part.rstrip(" )\"'”’»").endswith("?") for part in parts)


def show_remembered(value: dict[str, Any], *, by_person: bool, shown: dict[str, Any]) -> Screen:
    """Shows the remembered statement, its scope, when sessions see it (`shown`), and the memories on its subject."""
    state = "remembered" if value["new"] else "confirmed" if by_person else "known already"
    workspace = f" in the workspace {value['workspace']}" if value["workspace"] else ""
    yield f"{state} as {value['id']}: {value['text']}"
    yield dim(f"applies {'in ' + value['project'] if value['project'] else 'everywhere' + workspace}")
    if shown:
        yield dim(describe_fading(shown))
    if value["waits"]:
        text = "searchable, but not shown to sessions until you accept it (csmd review)"
        yield warning(f"Not typed by a person: {text}")
    if value["paused"] and by_person:
        yield warning("saved although csmd is paused, because you typed it")
    for other in value["beside"]:
        relation, effect, argument = RELATED[other["is"]]
        yield Line(f"{relation} {other['id']}: {other['text']}", max_lines=4)
        if other["rest"]:
            yield Line(f"Still active from it: {other['rest']['id']}: {other['rest']['text']}", indent=2, max_lines=4)
        yield dim(f"{effect}: csmd supersede {other['id']} {argument or value['id']}", indent=2)


@VERBS.action(
    "memories", *verb.PROJECTS, verb.one_of("gate", get_args(Gate), "WORD"),
    verb.one_of("category", [*CATEGORIES], "WORD"), verb.one_of("type", get_args(MemoryType), "WORD"),
    verb.option("--tier", type=click.Choice(get_args(Tier)), help="Only this tier."),
    verb.option("--authority", type=click.Choice(get_args(Authority)), help="Only statements of this authority."),
    verb.text("--origin", "WORD", "Only this origin: stated, model_saved."),
    verb.text("--since", "TIME", "Only statements since: 2026-05-04, 30d, monday, `last week`."),
    verb.text("--topic", "NAME", "Only this topic; `csmd topics` lists them."),
    verb.text("--session", "ID", "Only statements of this session."),
    verb.flag("--superseded", help="Only superseded memories."),
    verb.option("--limit", type=click.IntRange(1), help="Memories of each gate; "
    f"{MAX_PER_GATE_ONE_PROJECT} of one project, {MAX_PER_GATE_SEVERAL} of several."),
    verb.ALL,
)  # fmt: skip
def memories(
    project: str | None, all_projects: bool, since: str, topic: str, session: str, superseded: bool, limit: int | None,
    everything: bool, as_json: bool, **filters: str | None,
) -> None:  # fmt: skip
    """List the memories here."""
    scope = verb.project_params(project, all_projects)
    if topic:
        answer = verb.ask("csm_memory_by_topic", **scope, topic=topic, limit=TOPIC_LIMIT)
    else:
        answer = verb.ask("csm_memory_list", **scope)
    recent = verb.ask("csm_memory_list", **scope, since=since)["memories"] if since else answer["memories"]
    recent_ids = {row["id"] for row in recent}
    rows = [
        row
        for row in answer["memories"]
        if (row["superseded_by"] or not superseded)
        and row["id"] in recent_ids
        and (not session or any(session_id.startswith(session) for session_id in row["sessions"]))
        and all(row[name] == value for name, value in filters.items() if value)
    ]
    # Superseded memories are counted, not listed.
    current = rows if superseded else [row for row in rows if not row["superseded_by"]]
    is_one_project = len({row["project"] for row in current if row["project"]}) <= 1
    per_gate = limit or (MAX_PER_GATE_ONE_PROJECT if is_one_project else MAX_PER_GATE_SEVERAL)
    per_gate = len(current) if everything else per_gate
    if as_json:
        selected = [row for _, gates in _group_by_gate(current, per_gate) for group in gates for row in group.listed]
        click.echo(wire.pretty({"memories": rows if limit is None or everything else selected}))
    else:
        count, left_out = len(answer["memories"]), len(rows) - len(current)
        render.show(show_memories(current, total=count, superseded=left_out, per_gate=per_gate))


class GateRows(NamedTuple):
    """The memories of one gate in one project: those to list, and the number of all."""

    gate: Gate
    listed: list[dict[str, Any]]
    total: int


def _group_by_gate(rows: list[dict[str, Any]], per_gate: int) -> list[tuple[str, list[GateRows]]]:
    """Groups memories by project and gate, the gate of the highest priority first."""
    groups = []
    for project, in_project in by_project(rows):
        gates = []
        for gate in sorted(GATE_PRIORITY, key=lambda name: -GATE_PRIORITY[name]):
            gate_rows = sorted((row for row in in_project if row["gate"] == gate), key=_sort_key, reverse=True)
            # Leaving out a single memory would not save a line.
            selected = gate_rows if len(gate_rows) <= per_gate + 1 else gate_rows[:per_gate]
            gates += [GateRows(gate, selected, len(gate_rows))] if gate_rows else []
        groups.append((project, gates))
    return groups


def show_memories(rows: list[dict[str, Any]], *, total: int = 0, superseded: int = 0, per_gate: int = 2**31) -> Screen:
    """Shows memories by project and gate; in each the user's and the surest first, at most `per_gate` of a gate."""
    if not rows:
        nothing = "no memories yet; they come from sessions, `csmd import` and `csmd remember`"
        yield f"No memory matches ({total:,} in all)" if total else nothing
        return
    count, projects = 0, _group_by_gate(rows, per_gate)
    for number, (project, gates) in enumerate(projects):
        if len(projects) > 1:
            yield project_heading(project, gap=bool(number))
        for gate, gate_memories, gate_total in gates:
            count += len(gate_memories)
            part = f"{len(gate_memories)} of " if len(gate_memories) < gate_total else ""
            yield dim(f"{gate}, {part}{gate_total:,}")
            for row in gate_memories:
                yield Line(squeeze(row["text"]), indent=2, max_lines=4)
                yield dim(_details(row), indent=6)
    left_out = count < len(rows) and f"{len(rows) - count:,} not shown (--all)"
    replaced = superseded and f"{superseded:,} superseded (--superseded)"
    yield dim(join(many(len(rows), "memory"), left_out, replaced, by="; "), gap=True)


def by_project(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Groups rows by project, in the order of the projects' paths."""
    projects = sorted({str(row["project"]) for row in rows})
    return [(project, [row for row in rows if row["project"] == project]) for project in projects]


def project_heading(project: str, *, gap: bool) -> Line:
    """Returns the heading of the rows of one project among several."""
    return bold(render.shorten(project, render.width(), end=True) or "everywhere", gap=gap)


def _sort_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """Sort key, greatest first: pinned, said by a person, sure, new."""
    rank = AUTHORITY_RANK[row["authority"]]
    return row["pinned"], row["origin"] != "model_saved", rank, round(row["confidence"], 1), row["confirmed_at"]


def _details(row: dict[str, Any]) -> str:
    """Returns the line below a memory in a list: its id, date, confidence, category and marks."""
    marks = join(
        row["pinned"] and "pinned", row["times"] > 1 and f"said {row['times']} times",
        row["authority"] == "assistant" and row["origin"] != "model_saved" and "by the assistant",
        row["authority"] == "external" and display.said_by("external", row.get("author", "")),
        row["origin"] == "model_saved" and "saved by the assistant", row["attention"] == "COLD" and "cold",
        row.get("tier") == "archive" and "archived", row["superseded_by"] and f"superseded by {row['superseded_by']}",
        row["is_refuted"] and "refuted", row["is_edited"] and "its code was edited since",
    )  # fmt: skip
    sure = f"{percent(row['confidence']):>5}"
    return join(row["id"], row["confirmed_at"][:10], sure, row["category"], marks, by="  ")


@VERBS.action("edit", verb.ID, verb.optional("wording", "[TEXT]"))
def edit(id: str, wording: str, as_json: bool) -> None:  # noqa: A002 - the tools' word
    """Reword a memory: as TEXT, or in your editor."""
    is_typed = click.get_current_context().get_parameter_source("wording") == ParameterSource.COMMANDLINE
    if is_typed and not wording.strip():
        raise click.UsageError("TEXT is empty; leave it out to open your editor")
    verb.require_terminal()
    memory = verb.ask("csm_memory_show", id=id, asking=verb.resolve_project(None))
    wording = wording or verb.edit_text(memory["text"])
    change = {"id": memory["id"], "text": wording, "version": memory["version"], "as_json": as_json}
    verb.reply("csm_memory_edit", show_rewording, change, sends_by_person=True)


def show_rewording(value: dict[str, Any]) -> Screen:
    """Shows the new wording and the memory that it replaces."""
    if not value["changed"]:
        return [f"Nothing to do: {value['id']} has that wording already"]
    return render.done(f"{value['made']}: {value['text']}", f"Replaced {value['id']}. Undo: csmd undo")


@VERBS.action(
    "supersede", verb.argument("old", "OLD"), verb.optional("new", "NEW"),
    verb.flag("--undo", help="Restore OLD. csmd does not replace it with the same memory again."),
)  # fmt: skip
def supersede(**options: Any) -> None:
    """Replace memory OLD with NEW (--undo restores OLD)."""
    if not options["new"] and not options["undo"]:
        raise click.UsageError("give NEW or --undo")
    verb.reply("csm_memory_supersede", show_superseded, options, sends_by_person=True)


def show_superseded(value: dict[str, Any]) -> Screen:
    """Shows the memory that was replaced, or restored."""
    if value["undone"]:
        note = f"{percent(value['confidence'])} sure; {value['was_superseded_by']} stays active"
        yield from render.done(f"Restored {value['id']}: {value['text']}", note)
        return
    yield Line(value["text"], head=f"Replaced {value['id']}: ", max_lines=4)
    yield Line(value["replacement"], head=f"by {value['superseded_by']}: ", max_lines=4)
    if value["rest"]:
        yield Line(f"Still active from it: {value['rest']['id']}: {value['rest']['text']}", max_lines=4)
    yield dim("Undo: csmd undo")


def show_pinned(value: dict[str, Any]) -> Screen:
    """Whether a memory is pinned now."""
    is_pin = value["verb"] == "pin"
    if not value["changed"]:
        return [f"Nothing to do: {value['id']} is {'' if is_pin else 'not '}pinned"]
    change = f"{'Pinned' if is_pin else 'Unpinned'} {value['id']}: {value['text']}"
    return render.done(change, "Undo: csmd undo")


VERBS.add_tool(
    "pin", "csm_memory_pin", show_pinned, "Pin a memory: it never fades and keeps its confidence.", verb.ID,
    sends_by_person=True, constants={"undo": False},
)  # fmt: skip
VERBS.add_tool(
    "unpin", "csm_memory_pin", show_pinned, "Unpin a memory: it fades like others from now on.", verb.ID,
    sends_by_person=True, constants={"undo": True},
)  # fmt: skip
