"""Commands about topics of memories and links between them."""

from __future__ import annotations

from functools import partial
from typing import Any

from csmd.cli import render, verb
from csmd.cli.memories import ALL_OF_TOPIC, by_project, project_heading, show_listed
from csmd.cli.render import Line, Screen, dim, join, many
from csmd.cli.show import relation_of

#: The verbs of this module.
VERBS = verb.Verbs()


#: Memories of a gate that are listed of one topic.
MAX_OF_TOPIC = 12
#: Topics listed of a single project.
TOPICS_HERE = 30
#: Topics listed of each of several projects.
TOPICS_ANYWHERE = 8


@VERBS.action("topics", verb.optional("name", "[NAME]"), *verb.PROJECTS, verb.ALL)
def topics(name: str, everything: bool, **options: Any) -> None:
    """List the topics of the memories here.

    With NAME list the memories about it.
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
    most = len(rows) if everything else MAX_OF_TOPIC
    return show_listed(current, in_all=len(rows), superseded=len(rows) - len(current), most=most)


@VERBS.action(
    "tag", verb.ID, verb.argument("topic", "TOPIC"),
    verb.flag("--undo", help="Take the topic off; csmd does not put it back by itself."),
)  # fmt: skip
def tag(undo: bool, **options: Any) -> None:
    """Tag memory ID with TOPIC."""
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
    verb.option("--as", "relationship", metavar="WORD", default="relates_to", show_default=True,
    help="In a word or three: extends, depends_on, caused ..."),
    verb.option("--weight", default="1", show_default=True, metavar="NUMBER", help="Above 0 and at most 1."),
    verb.flag("--undo", help="Take the link away."), sends_by_person=True,
)  # fmt: skip
def show_linked(value: dict[str, Any]) -> Screen:
    """Link memory FROM to memory TO."""
    change = "no longer linked" if value["undone"] else "linked"
    yield f"{change}: {value['from']['id']} {relation_of(value['relationship'])[0]} {value['to']['id']}"
    for memory in (value["from"], value["to"]):
        yield dim(memory["text"], head=f"  {memory['id']}  ", most=2)
