"""Commands about topics of memories and links between them."""

from __future__ import annotations

from functools import partial
from typing import Any

from csmd.cli import render, verb
from csmd.cli.memories import TOPIC_LIMIT, by_project, project_heading, show_memories
from csmd.cli.render import Line, Screen, dim, join, many
from csmd.cli.show import describe_relation

VERBS = verb.Verbs()
#: Memories of a topic that are listed for each gate.
MAX_PER_GATE = 12
#: Topics that are listed of a single project, and of each of several.
MAX_TOPICS_ONE_PROJECT = 30
MAX_TOPICS_SEVERAL = 8


@VERBS.action("topics", verb.optional("name", "[NAME]"), *verb.PROJECTS, verb.ALL)
def topics(name: str, everything: bool, **options: Any) -> None:
    """List the topics of the memories here.

    With NAME list its memories.
    """
    if name:
        options |= {"topic": name, "limit": TOPIC_LIMIT}
        verb.reply("csm_memory_by_topic", partial(show_topic, everything=everything), options)
    else:
        verb.reply("csm_memory_topics", partial(show_topics, everything=everything), options)


@render.if_empty("topics", "no topics yet: a topic needs several memories of a project")
def show_topics(value: dict[str, Any], *, everything: bool) -> Screen:
    """Shows the topics of each project, with their numbers of memories."""
    left_out, projects = 0, by_project(value["topics"])
    max_topics = MAX_TOPICS_ONE_PROJECT if len(projects) == 1 else MAX_TOPICS_SEVERAL
    for number, (project, rows) in enumerate(projects):
        if len(projects) > 1:
            yield project_heading(project, gap=bool(number))
        visible = rows if everything else rows[:max_topics]
        left_out += len(rows) - len(visible)
        cells = [[row["name"], f"{row['memories']:,}", row["last_at"][:10]] for row in visible]
        yield from render.table("topic|memories|last said", "<><", cells)
    hint = "`csmd topics NAME` lists the memories of a topic"
    counts = many(len(value["topics"]), "topic"), left_out and f"{left_out:,} not shown (--all)"
    yield dim(join(*counts, hint, by="; "), gap=True)


def show_topic(value: dict[str, Any], *, everything: bool) -> Screen:
    """Shows the memories of one topic."""
    rows = value["memories"]
    if not rows:
        return [f"no memory here has the topic {value['topic']!r}; `csmd topics` lists the topics"]
    current = [row for row in rows if not row["superseded_by"]]
    per_gate = len(rows) if everything else MAX_PER_GATE
    return show_memories(current, total=len(rows), superseded=len(rows) - len(current), per_gate=per_gate)


@VERBS.action(
    "tag", verb.ID, verb.argument("topic", "TOPIC"),
    verb.flag("--undo", help="Remove the topic; csmd does not add it again by itself."),
)  # fmt: skip
def tag(undo: bool, **options: Any) -> None:
    """Tag memory ID with TOPIC."""
    verb.reply("csm_memory_untag" if undo else "csm_memory_tag", show_tagged, options, sends_by_person=True)


def show_tagged(value: dict[str, Any]) -> Screen:
    """Shows the topics of a memory."""
    yield Line(f"{value['id']}: {value['text']}", max_lines=3)
    names, new = [topic["name"] for topic in value["topics"]], value["superseded_by"]
    yield dim(f"topics: {', '.join(names) or 'none'}")
    if new and value["topic"] in names:
        yield f"superseded by {new}, so `csmd topics` does not list it. Tag the new one: csmd tag {new} TOPIC"


@VERBS.tool(
    "link", "csm_memory_link", verb.argument("from", "FROM"), verb.argument("to", "TO"),
    verb.option("--as", "relationship", metavar="WORD", default="relates_to", show_default=True,
    help="In a word or three: extends, depends_on, caused ..."),
    verb.option("--weight", default="1", show_default=True, metavar="NUMBER", help="Above 0 and at most 1."),
    verb.flag("--undo", help="Remove the link."), sends_by_person=True,
)  # fmt: skip
def show_linked(value: dict[str, Any]) -> Screen:
    """Link memory FROM to memory TO."""
    change = "no longer linked" if value["undone"] else "linked"
    yield f"{change}: {value['from']['id']} {describe_relation(value['relationship'])[0]} {value['to']['id']}"
    for memory in (value["from"], value["to"]):
        yield dim(memory["text"], head=f"  {memory['id']}  ", max_lines=2)
