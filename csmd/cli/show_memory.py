"""What people see of memories: the list, one in full, a turn, a candidate; values in, text on a console.

The sentence that a memory rests on is marked with `>` in its passage, so that it is seen without colours, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd import text as texts
from csmd.cli.lines import many
from csmd.cli.show import MIN_WIDTH, console, labelled, print_text, shorten, when
from csmd.model import AUTHORITY_RANK, GATE_PRIORITY

if TYPE_CHECKING:
    from rich.console import Console

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
#: What stands against a memory, by relationship and end: (relationship, whether the memory is its beginning).
AGAINST = {("superseded_by", True), ("contradicts", False), ("contradicts", True), ("refuted_by", True)}
EVENTS = {"session_start": "at its start", "prompt": "with a prompt", "tool_failure": "when a tool failed"}
#: Confirmations and links that are shown; --json has all.
MOST = 6
#: Memories of a gate that are listed of one topic.
MOST_OF_TOPIC = 12
#: Characters of a turn that stands beside the one that matters.
BESIDE = 150


def listed(value: dict[str, Any], *, most: int = 2**31) -> None:
    """Memories by project and gate, in each what a person said and what is surest first, at most so many of a gate."""
    out = console()
    rows = value["memories"]
    if not rows:
        known = value.get("known", 0)
        nothing = "no memories yet; they come from sessions, `csmd import` and `csmd remember`"
        print_text(out, f"none of {many(known, 'memory', 'memories')} is such" if known else nothing)
        return
    places = sorted({row["project"] for row in rows})
    shown = 0
    for number, place in enumerate(places):
        if len(places) > 1:
            if number:
                out.print()
            print_text(out, shorten(place, out.width) or "everywhere", style="bold")
        shown += _gates(out, [row for row in rows if row["project"] == place], most)
    left, gone = len(rows) - shown, value.get("superseded", 0)
    told = [many(len(rows), "memory", "memories")]
    told += [f"{left:,} not shown (--all)"] if left else []
    told += [f"{gone:,} superseded (--superseded)"] if gone else []
    out.print()
    print_text(out, "; ".join(told), style="dim")


def _gates(out: Console, rows: list[dict[str, Any]], most: int) -> int:
    """Prints the memories of one project; how many."""
    shown = 0
    for gate in sorted(GATE_PRIORITY, key=lambda name: -GATE_PRIORITY[name]):
        found = sorted((row for row in rows if row["gate"] == gate), key=_wanted, reverse=True)
        if not found:
            continue
        some = found if len(found) <= most + 1 else found[:most]  # nobody wants to be told that one is left out
        many_of = f"{len(some)} of {len(found):,}" if len(some) < len(found) else f"{len(found):,}"
        out.print(f"{gate}, {many_of}", style="dim")
        for row in some:
            print_text(out, " ".join(row["text"].split()), indent=2, most=4)
            print_text(out, "  ".join(_about(row)), indent=6, style="dim")
        shown += len(some)
    return shown


def _wanted(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a person wants first: what is pinned, what they said, what is sure, what is new."""
    rank = AUTHORITY_RANK[row["authority"]]
    return row["pinned"], row["origin"] != "model_saved", rank, round(row["confidence"], 1), row["confirmed_at"]


def _about(row: dict[str, Any]) -> list[str]:
    marks = ["pinned"] * row["pinned"] + [f"said {row['times']} times"] * (row["times"] > 1)
    marks += [f"by the {row['authority']}"] * (row["authority"] != "user")
    marks += ["unsaid"] * (row["origin"] == "model_saved") + ["cold"] * (row["attention"] == "COLD")
    marks += [f"superseded by {row['superseded_by']}"] * bool(row["superseded_by"])
    marks += ["refuted"] * row["is_refuted"] + ["its code edited since"] * row["is_edited"]
    sure = f"{row['confidence'] * 100:.0f} %"
    return [row["id"], row["confirmed_at"][:10], f"{sure:>5}", row["category"], *([", ".join(marks)] if marks else [])]


# --- one memory


def memory(value: dict[str, Any]) -> None:
    """One memory: what it says, how sure it is and why, where it was said, what stands for and against it."""
    out = console()
    print_text(out, value["text"], most=20, style="bold")
    out.print()
    pinned = ", pinned" if value["pinned"] else ""
    labelled(out, "id", f"{value['id']}: {value['category']} ({value['gate']}), {value['tier']}{pinned}")
    labelled(out, "holds", value["project"] or "everywhere")
    first = when(value["created_at"])
    again = "" if value["confirmed_at"] == value["created_at"] else f", last said {when(value['confirmed_at'])}"
    origin = "" if value["origin"] == "stated" else f" ({value['origin'].replace('_', ' ')})"
    labelled(out, "said", f"by the {value['authority']}{origin}, {first}{again}")
    if value["scene"]:
        labelled(out, "scene", value["scene"])
    _sure(out, value["sure"])
    for one in value["refuted"]:
        labelled(out, "against", f"{one['reason']} ({when(one['at'])})")
    for one in value["symptoms"][:3]:
        labelled(out, "reported", one["text"])
    if value["topics"]:
        labelled(out, "topics", ", ".join(one["name"] for one in value["topics"]))
    labelled(out, "fades", _fades(value))
    labelled(out, "told", _told(value["told"]))
    _sources(out, value["sources"])
    _links(out, value)
    _beside_it(out, value["beside"])
    if value["changes"]:
        _head(out, "What was done to it")
    for change in value["changes"]:
        taken = ", taken back" if change["undone_at"] else ""
        before, after = change["sure_before"], change["sure_after"]
        sure = "" if before is None or after is None else f": {before * 100:.0f} to {after * 100:.0f} %"
        new = f" by {change['superseded_by']}" if change["change"] == "superseded" else ""
        by = f" (by {change['by']})" if change["reason"] == "told" or change["by"] == "rule" else ""
        about = f"{change['change']}{new}{sure}, {change['reason']}{by}{taken}"
        print_text(out, about, head=f"  {when(change['at'])}  ")


def _sure(out: Console, sure: dict[str, Any]) -> None:
    labelled(out, "sure", f"{sure['today'] * 100:.0f} % today")
    for factor in sure["factors"]:
        effect = f"{factor['effect'] * 100:+.0f} %" if factor["effect"] and factor["name"] != "base" else ""
        effect = f"{factor['effect'] * 100:.0f} %" if factor["name"] == "base" else effect
        print_text(out, factor["why"], head=f"{'':<9}{effect:>6}  ", style="dim")


def _fades(value: dict[str, Any]) -> str:
    """When it cools, in words: days are active ones, on which its project had a session."""
    cools = value["cools"]
    if value["superseded_by"]:
        return f"superseded by {value['superseded_by']}: no session is told it"
    if value["is_refuted"]:
        return "refuted: no session is told it until it is said anew or kept in `csmd review`"
    today, hot, warm = cools["today"], cools["hot_until"], cools["warm_until"]
    if hot is None:
        return "never: told at a session's start for good"
    found = []
    if hot >= today:
        found.append(f"told at a session's start for {_days(hot - today)}")
    if warm is None:
        return ", ".join(
            [*found, "then when a prompt matches, for good" if found else "told when a prompt matches, for good"]
        )
    if warm >= today:
        found.append(f"{'then ' if found else 'told '}when a prompt matches, for {_days(warm - max(today, hot))}")
    return ", ".join([*found, "then found by search only" if found else "it has: found by search only"])


def _days(number: int) -> str:
    return f"{number} more active day{'s' if number != 1 else ''}" if number else "today"


def _told(told: dict[str, Any]) -> str:
    if not told["times"]:
        return "no session was told it yet"
    said = f"{told['times']} time{'s' if told['times'] != 1 else ''}"
    for one in told["last"][:1]:
        event = EVENTS.get(one["event"], one["event"])
        said += f", last {when(one['at'])} to session {one['session_id'][:8]} {event} (csmd why --receipt {one['receipt'][:9]})"
    return said


def _sources(out: Console, sources: list[dict[str, Any]]) -> None:
    _head(out, "Where it was said")
    for source in sources[:1]:
        near = source.get("around", {"before": [], "after": []})
        for turn in near["before"]:
            _beside(out, turn)
        _spoken(out, source, "states")
        for turn in near["after"]:
            _beside(out, turn)
    again = sources[1:]
    if again:
        _head(out, f"Said again in {many(len(again), 'turn')}")
    for source in again[:MOST]:
        _spoken(out, source, source["role"], most=4)
    if len(again) > MOST:
        print_text(out, f"... and {len(again) - MOST} more (--json)", indent=2, style="dim")


def _spoken(out: Console, source: dict[str, Any], role: str, *, most: int = 12) -> None:
    where = f", session {source['session_id'][:8]}" if source["session_id"] else ""
    typed = "an edited page" if source["uuid"].startswith("cli:page-") else "command line"
    speaker = source["speaker"] or (typed if source["uuid"].startswith("cli:") else "a turn that is gone")
    turn = f", {source['uuid'][:13]}" if source["speaker"] else ""
    print_text(out, f"{role}: {speaker}, {when(source['at'])}{where}{turn}", head="  ")
    short = role != "states" and source["sentence"]  # of a repetition the sentence is enough
    marked(out, source["sentence"] if short else source["text"], source["sentence"], indent=4, most=most)


def marked(out: Console, passage: str, sentence: str, *, indent: int, most: int) -> None:
    """A passage with one sentence of it marked."""
    before, found, after = passage.partition(sentence) if sentence else (passage, "", "")
    room = max(2, most // 3)
    if before.strip():
        print_text(out, before.strip()[-400:], indent=indent, most=room if found else most, style="dim")
    if found:
        print_text(out, " ".join(found.split()), head=" " * (indent - 2) + "> ", most=most)
    if after.strip():
        print_text(out, after.strip(), indent=indent, most=room, style="dim")


def _beside(out: Console, turn: dict[str, Any]) -> None:
    print_text(out, texts.cut(turn["text"], BESIDE), head=f"  {turn['speaker']}: ", style="dim")


def _links(out: Console, value: dict[str, Any]) -> None:
    """What stands against it, then what it is otherwise linked with."""
    against = [link for link in value["links"] if (link["relationship"], link["from_id"] == value["id"]) in AGAINST]
    others = [link for link in value["links"] if link not in against]
    for title, links in (("Against it", against), ("Linked", others)):
        if links:
            _head(out, title)
        for link in links[:MOST]:
            other = link["other"]
            words = RELATIONS.get(link["relationship"], (link["relationship"].replace("_", " "),) * 2)
            relation = words[0] if link["from_id"] == value["id"] else words[1]
            print_text(out, f"{relation} {other['id']}, said by the {other['authority']} {when(other['at'])}", indent=2)
            print_text(out, other["text"], indent=4, most=3, style="dim")
        if len(links) > MOST:
            print_text(out, f"... and {len(links) - MOST} more (--json)", indent=2, style="dim")


def _beside_it(out: Console, beside: list[dict[str, Any]]) -> None:
    """What shares its topics, a line each."""
    if beside:
        _head(out, "About the same")
    for one in beside:
        head = f"  {one['id']}  "
        print_text(
            out, texts.cut(texts.squeeze(one["text"]), max(out.width - len(head), MIN_WIDTH)), head=head, style="dim"
        )


def _head(out: Console, title: str) -> None:
    out.print()
    print_text(out, title, style="bold")


# --- the others


def turn(value: dict[str, Any]) -> None:
    """One turn with where it stands, the turns around it and the memories that rest on it."""
    out = console()
    print_text(out, value["text"] or "(nothing is kept of its text)", most=40)
    out.print()
    for name, text in (
        ("turn", f"{value['id']}, {value['kind'].replace('_', ' ')}"),
        ("said", f"{when(value['at'])} in {value['project'] or 'no project'}"),
        ("session", f"csmd session transcript {value['session_id']}"),
    ):
        labelled(out, name, text)
    near = value.get("around", {"before": [], "after": []})
    for title, turns in (("Before it", near["before"]), ("After it", near["after"])):
        if turns:
            _head(out, title)
        for one in turns:
            _beside(out, one)
    if value.get("memories"):
        _head(out, "Memories that rest on it")
    for one in value.get("memories", []):
        print_text(out, one["text"], head=f"  {one['id']}  ", most=3)


def candidate(value: dict[str, Any]) -> None:
    """What may become a memory, or be done to memories, with what speaks for and against it."""
    out = console()
    print_text(out, value["text"], most=20, style="bold")
    out.print()
    for name, text in (
        ("id", f"{value['id']}: {value['kind'].replace('_', ' ')}, {value['status'].replace('_', ' ')}"),
        ("why", value["reason"]),
        ("holds", value["project"] or "everywhere"),
        ("sure", f"{value['confidence'] * 100:.0f} %, seen {many(value['reinforcement'], 'time')}"),
    ):
        labelled(out, name, text)
    about(out, value["memories"])
    evidence(out, value["evidence"], most=MOST)
    if value["status"] in ("open", "needs_review"):
        out.print()
        verbs = "--keep | --edit TEXT | --drop | --supersede ID"
        print_text(out, f"csmd review {value['id']} {verbs}", style="dim")


def about(out: Console, memories: list[dict[str, Any]], *, besides: str = "") -> None:
    """The memories that a candidate is about; the text `besides` is not said once more."""
    for number, one in enumerate(memories, 1):
        sure = f"{one['confidence'] * 100:.0f} %"
        gone = f", superseded by {one['superseded_by']}" if one["superseded_by"] else ""
        place = f"{number}. " if len(memories) > 1 else ""
        out.print()
        if one["text"] != besides:
            print_text(out, one["text"], head=f"  {place}", most=4)
        said = f"{one['id']}, said by the {one['authority']} {when(one['at'])}, {sure}{gone}"
        print_text(out, said, indent=2 + len(place), style="dim")


def evidence(out: Console, found: list[dict[str, Any]], *, most: int) -> None:
    """The turns that speak for or against something, each with its sentence."""
    if found:
        out.print()
    for one in found[:most]:
        role = "against" if one["against"] else one.get("role") or "for"
        _spoken(out, one, role, most=4)
    if len(found) > most:
        print_text(out, f"... and {len(found) - most} more (--json)", indent=2, style="dim")
