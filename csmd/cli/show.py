"""The command that shows a record in full by its id, and the screens of a memory, a turn and a candidate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from csmd.cli import render, verb
from csmd.cli.injections import EVENT_LABELS, show_why
from csmd.cli.render import Line, Screen, block, bold, dim, join, many, pair, pairs, percent, take_first
from csmd.cli.sessions import show_errors, show_session
from csmd.errors import CsmdError
from csmd.text import display
from csmd.text.ages import when
from csmd.text.display import amount, said_by, squeeze

VERBS = verb.Verbs()
#: Relationship -> its words, seen from the memory where it begins and from the other one.
RELATIONS: dict[str, tuple[str, str]] = {
    "superseded_by": ("superseded by", "replaces"),
    "goes_on_as": ("still active from it:", "the rest of"),
    "contradicts": ("contradicts", "contradicted by"),
    "elaborates": ("adds to", "more on it"),
    "symptom_of": ("a symptom of", "has symptom"),
    "refuted_by": ("refuted by", "refutes"),
    "renamed_to": ("now called", "was called"),
    "confirmed_by": ("confirmed by", "confirms"),
    "caused": ("caused", "caused by"),
    "depends_on": ("depends on", "needed by"),
    "relates_to": ("related to", "related to"),
    "merged_into": ("merged into", "merged from"),
}
#: Links that speak against a memory: (relationship, whether the memory is its beginning).
AGAINST = {("superseded_by", True), ("contradicts", False), ("contradicts", True), ("refuted_by", True)}
#: Confirmations, links and pieces of evidence that are shown; --json has all.
MAX_SHOWN = 6

#: Most symptoms shown of a memory.
MAX_SYMPTOMS = 3
#: Characters shown of a turn before the sentence in question.
BEFORE_CHARS = 400


def show_memory(value: dict[str, Any]) -> Screen:
    """Shows one memory: its text, its confidence with the factors, its sources, and the evidence for and against it."""
    last_stated = "" if value["confirmed_at"] == value["created_at"] else f", last said {when(value['confirmed_at'])}"
    origin = "" if value["origin"] == "stated" else f" ({value['origin'].replace('_', ' ')})"
    speaker = "in another program" if value["authority"] == "external" else f"by the {value['authority']}{origin}"
    speaker = f"by {value['author']}, a colleague" if value.get("author") else speaker
    pinned = value["pinned"] and "pinned"
    yield bold(value["text"], max_lines=20)
    yield ""
    yield from pairs([
        ("id", join(f"{value['id']}: {value['category']} ({value['gate']})", value["tier"], pinned)),
        ("scope", value["project"] or ("everywhere (inferred)" if value["origin"] == "inferred" else "everywhere")),
        ("said", f"{speaker}, {when(value['created_at'])}{last_stated}"),
        ("scene", value["scene"]),
        ("sure", f"{percent(value['sure']['today'])} today"),
    ])  # fmt: skip
    for factor in value["sure"]["factors"]:
        sign = "" if factor["name"] == "base" else "+"
        effect = f"{factor['effect'] * 100:{sign}.0f} %" if factor["effect"] or not sign else ""
        yield dim(factor["why"], head=f"{'':<9}{effect:>6}  ")
    for reason in value["refuted"]:
        yield pair("against", f"{reason['reason']} ({when(reason['at'])})")
    for symptom in value["symptoms"][:MAX_SYMPTOMS]:
        yield pair("reported", symptom["text"])
    yield from pairs([
        ("topics", ", ".join(topic["name"] for topic in value["topics"])),
        ("fades", describe_fading(value)),
        ("shown", _describe_injections(value["told"])),
    ])  # fmt: skip
    yield from _show_sources(value["sources"])
    yield from _show_links(value)
    # Memories that share its topics, a line each.
    room = render.width()
    related = [(f"  {other['id']}  ", squeeze(other["text"])) for other in value["beside"]]
    lines = [dim(display.cut(text, max(room - len(head), render.MIN_WIDTH)), head=head) for head, text in related]
    yield from block("Related", lines, style="bold")
    changes = [Line(_describe_change(change), head=f"  {when(change['at'])}  ") for change in value["changes"]]
    yield from block("Changes", changes, style="bold")


def _describe_change(change: dict[str, Any]) -> str:
    """Describes a change of a memory, its reason and its author."""
    undo_note = ", undone" if change["undone_at"] else ""
    before, after = change["sure_before"], change["sure_after"]
    sure = "" if before is None or after is None else f": {before * 100:.0f} to {percent(after)}"
    successor = f" by {change['superseded_by']}" if change["change"] == "superseded" else ""
    author = f" (by {change['by']})" if change["reason"] == "told" or change["by"] == "rule" else ""
    return f"{change['change']}{successor}{sure}, {change['reason']}{author}{undo_note}"


def describe_fading(value: dict[str, Any]) -> str:
    """Describes when a memory is still shown: at session starts, with prompts, or only by search."""
    cools = value["cools"]
    if value["superseded_by"]:
        return f"superseded by {value['superseded_by']}: not shown to sessions"
    if value["tier"] == "archive":
        return "archived: found by search only"
    if value["is_refuted"]:
        return "refuted: not shown to sessions until it is said again or kept in `csmd review`"
    if value["origin"] == "model_saved" and (value["authority"] == "external" or not value["pinned"]):
        return "not shown to sessions until you keep it in `csmd review`"
    start, today, warm_until = value["start"], cools["today"], cools["warm_until"]
    sessions_left = start["sessions_left"]
    sessions = "every session's start"
    if sessions_left is not None:
        sessions = f"a session's start for {amount(sessions_left, 'more session')}"
    at_start = f"shown at {sessions}" if start["told"] else "not shown at a session's start"
    at_start = f"{at_start} ({start['why']})"
    if warm_until is None:
        return f"{at_start}; when a prompt matches, for good"
    days = amount(warm_until - today, "more active day") if warm_until != today else "today"
    prompt = f"when a prompt matches, for {days}, then " if warm_until >= today else ""
    return f"{at_start}; {prompt}found by search only"


def _describe_injections(injections: dict[str, Any]) -> str:
    """Describes how often a memory was shown, and to which session last."""
    if not injections["times"]:
        return "to no session yet"
    times = amount(injections["times"], "time")
    if not injections["last"]:
        return times
    last = injections["last"][0]
    event = EVENT_LABELS.get(last["event"], last["event"])
    session = display.shorten_session_id(last["session_id"])
    return f"{times}, last {when(last['at'])} to session {session} {event} (csmd why --receipt {last['receipt'][:9]})"


def _show_sources(sources: list[dict[str, Any]]) -> Screen:
    """Shows the turn that states a memory, with its neighbours, then the turns that repeat it."""
    yield bold("Where it was said", gap=True)
    if sources:
        neighbours = sources[0].get("around", {"before": [], "after": []})
        yield from map(_format_neighbour, neighbours["before"])
        yield from _show_source(sources[0], "states")
        yield from map(_format_neighbour, neighbours["after"])
    repetitions, rest = take_first(sources[1:], MAX_SHOWN)
    if repetitions:
        yield bold(f"Said again in {many(len(sources) - 1, 'turn')}", gap=True)
    for source in repetitions:
        yield from _show_source(source, source["role"], max_lines=4)
    yield from rest


#: Beginning of the id of a source that is not a turn -> its description; the first that fits.
OTHER_SOURCES = {
    "cli:page-": "an edited page", "cli:": "command line", "foreign:": "a file of another program",
    "": "a turn that is gone",
}  # fmt: skip


def _show_source(source: dict[str, Any], role: str, *, max_lines: int = 12) -> Screen:
    """Shows a turn that supports or contradicts a belief: its speaker, time and session, and the sentence marked in
    it."""
    speaker = source["speaker"]
    if not speaker:
        speaker = next(words for prefix, words in OTHER_SOURCES.items() if source["uuid"].startswith(prefix))
    session = source["session_id"] and f"session {display.shorten_session_id(source['session_id'])}"
    turn = source["speaker"] and source["uuid"][:13]
    yield Line(f"{role}: {join(speaker, when(source['at']), session, turn)}", head="  ")
    sentence = source["sentence"]
    # For a repetition the sentence is enough.
    passage = sentence if role != "states" and sentence else source["text"]
    before, marked, after = passage.partition(sentence) if sentence else (passage, "", "")
    context_lines = max(2, max_lines // 3)
    if before.strip():
        yield dim(_cut_beginning(before.strip()), indent=4, max_lines=context_lines if marked else max_lines)
    if marked:
        yield Line(squeeze(marked), head="  > ", max_lines=max_lines)
    if after.strip():
        yield dim(after.strip(), indent=4, max_lines=context_lines)


def _cut_beginning(text: str) -> str:
    """Returns the end of a text, from the beginning of a word on, after an ellipsis if it was cut."""
    if len(text) <= BEFORE_CHARS:
        return text
    # The rest of a cut word goes, too; some languages put no space after words.
    return "…" + re.sub(r"^\S{0,30}\s+", " ", text[-BEFORE_CHARS:])


def _format_neighbour(turn: dict[str, Any]) -> Line:
    return dim(display.cut(turn["text"], render.NEIGHBOUR_CHARS), head=f"  {turn['speaker']}: ")


def _show_links(value: dict[str, Any]) -> Screen:
    """Shows the links that speak against a memory, then its other links."""
    against = [link for link in value["links"] if (link["relationship"], link["from_id"] == value["id"]) in AGAINST]
    others = [link for link in value["links"] if link not in against]
    for title, links in (("Against it", against), ("Linked", others)):
        lines: list[Line] = []
        visible, rest = take_first(links, MAX_SHOWN)
        for link in visible:
            other, relation = link["other"], describe_relation(link["relationship"])[link["from_id"] != value["id"]]
            origin = f"{said_by(other['authority'], other.get('author', ''))} {when(other['at'])}"
            lines += [Line(f"{relation} {other['id']}, {origin}", indent=2), dim(other["text"], indent=4, max_lines=3)]
        yield from block(title, [*lines, *rest], style="bold")


def describe_relation(relationship: str) -> tuple[str, str]:
    """Returns the words for a relationship, seen from its beginning and from its end."""
    return RELATIONS.get(relationship, (relationship.replace("_", " "),) * 2)


def show_turn(value: dict[str, Any]) -> Screen:
    """Shows one turn, the turns around it, and the memories based on it."""
    yield Line(value["text"] or "(its text is not stored)", max_lines=40)
    yield ""
    yield pair("turn", f"{value['id']}, {value['kind'].replace('_', ' ')}")
    if value.get("dropped_bytes"):
        yield pair("left out", f"{amount(value['dropped_bytes'], 'byte')}; full text: csmd context get {value['id']}")
    yield pair("said", f"{when(value['at'])} in {value['project'] or 'no project'}")
    yield pair("session", f"csmd session transcript {value['session_id']}")
    neighbours = value.get("around", {"before": [], "after": []})
    yield from block("Before it", map(_format_neighbour, neighbours["before"]), style="bold")
    yield from block("After it", map(_format_neighbour, neighbours["after"]), style="bold")
    memories = [Line(memory["text"], head=f"  {memory['id']}  ", max_lines=3) for memory in value.get("memories") or ()]
    yield from block("Memories from it", memories, style="bold")


def show_candidate(value: dict[str, Any]) -> Screen:
    """Shows a possible memory or change of memories, with the evidence for and against it."""
    yield bold(value["text"], max_lines=20)
    yield ""
    yield pair("id", f"{value['id']}: {value['kind'].replace('_', ' ')}, {value['status'].replace('_', ' ')}")
    yield pair("why", value["reason"])
    yield pair("scope", value["project"] or "everywhere, if confirmed")
    yield pair("sure", f"{percent(value['confidence'])}, seen {many(value['reinforcement'], 'time')}")
    yield from show_related_memories(value["memories"])
    yield from show_evidence(value["evidence"], limit=MAX_SHOWN)
    if value["status"] in ("open", "needs_review"):
        yield dim(f"csmd review {value['id']} --keep | --edit TEXT | --drop | --supersede ID", gap=True)


def show_related_memories(rows: list[dict[str, Any]], *, except_text: str = "", names: Sequence[str] = ()) -> Screen:
    """Shows the memories of a candidate, labelled by `names` or numbers; a text equal to `besides` is not repeated."""
    for number, memory in enumerate(rows, 1):
        label = names[number - 1] if names else f"{number}. " if len(rows) > 1 else ""
        yield ""
        if memory["text"] != except_text:
            yield Line(memory["text"], head=f"  {label}", max_lines=12)
        origin = f"{said_by(memory['authority'], memory.get('author', ''))} {when(memory['at'])}"
        replaced = memory["superseded_by"] and f"superseded by {memory['superseded_by']}"
        yield dim(join(memory["id"], origin, percent(memory["confidence"]), replaced), indent=2 + len(label))


def show_evidence(turns: list[dict[str, Any]], *, limit: int) -> Screen:
    """Shows the turns for and against a candidate, each with its sentence."""
    visible, rest = take_first(turns, limit)
    if turns:
        yield ""
    for turn in visible:
        yield from _show_source(turn, "against" if turn["against"] else turn.get("role") or "for", max_lines=4)
    yield from rest


#: (pattern of an id, the tool to ask, its screen), tried in order: a turn's or session's id may look like any other.
SCREENS = (
    (re.compile(r"m[0-9a-f]*"), "csm_memory_show", show_memory),
    (re.compile(r"c[0-9a-f]*"), "csm_candidate_show", show_candidate),
    (re.compile(r"x[0-9a-f]+"), "csm_error_list", show_errors),
    (re.compile(r"r[0-9a-f]+(?:-start)?"), "csm_receipt_show", show_why),
    (re.compile(r"(?!cli:).+"), "csm_turn_show", show_turn),
    (re.compile(r"(?!cli:).+"), "csm_session_show", show_session),
)


@VERBS.action("show", verb.ID)
def show(id: str, as_json: bool) -> None:  # noqa: A002 - the tools' word
    """Show a memory, a turn, a session, a receipt or an error in full, by its ID."""
    record_id = id.strip()
    for pattern, tool, screen in SCREENS:
        if not pattern.fullmatch(record_id):
            continue
        try:
            verb.reply(tool, screen, {"id": record_id, "as_json": as_json})
            return
        except CsmdError as error:
            if "there is no" not in error.what:
                raise
    if record_id.startswith("cli:"):
        raise CsmdError(f"{record_id} was typed in a terminal, so no session has it", hint="csmd memories")
    hint = "`csmd memories`, `csmd search` and `csmd session list` show their ids"
    raise CsmdError(f"there is no memory, turn, session or receipt {record_id!r}", hint=hint)
