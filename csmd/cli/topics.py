"""The verbs of the graph: topics, tags and links by hand."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli import show_memory
from csmd.cli.ask import ask, here, json_option, looking, out, person_is_there, project_options
from csmd.cli.lines import many
from csmd.cli.show import console, print_text, shorten, table

#: Topics that are listed of one project, of each of several.
MOST_HERE, MOST_ANYWHERE = 30, 8


@click.command()
@click.argument("name", metavar="[NAME]", required=False, default="")
@project_options
@click.option("--all", "everything", is_flag=True, help="List every one.")
@json_option
def topics(name: str, project: str | None, all_projects: bool, everything: bool, as_json: bool) -> None:
    """List what is remembered here by what it is about.

    With NAME the memories that are about it.
    """
    place = looking(project, all_projects)
    if name:
        out(ask("csm_memory_by_topic", topic=name, **place), as_json, lambda value: _one(value, everything=everything))
    else:
        out(ask("csm_memory_topics", **place), as_json, lambda value: _listed(value["topics"], everything=everything))


@click.command()
@click.argument("ident", metavar="ID")
@click.argument("topic", metavar="TOPIC")
@click.option("--undo", is_flag=True, help="Take the topic off; csmd does not put it back by itself.")
@json_option
def tag(ident: str, topic: str, undo: bool, as_json: bool) -> None:
    """Say that memory ID is about TOPIC."""
    tool = "csm_memory_untag" if undo else "csm_memory_tag"
    found = ask(tool, id=ident, topic=topic, asking=here(None), by_person=person_is_there())
    out(found, as_json, _tagged)


@click.command()
@click.argument("origin", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--as", "relationship", metavar="WORD", default="relates_to", show_default=True, help="depends_on, contradicts, caused ...")  # fmt: skip
@click.option("--weight", default="1", show_default=True, metavar="NUMBER", help="Above 0 and at most 1.")
@click.option("--undo", is_flag=True, help="Take the link away.")
@json_option
def link(origin: str, target: str, relationship: str, weight: str, undo: bool, as_json: bool) -> None:
    """Link memory FROM to memory TO."""
    params: dict[str, Any] = {
        "from": origin, "to": target, "relationship": relationship, "weight": weight, "undo": undo,
        "asking": here(None), "by_person": person_is_there(),
    }  # fmt: skip
    out(ask("csm_memory_link", **params), as_json, _linked)


def _listed(rows: list[dict[str, Any]], *, everything: bool) -> None:
    screen = console()
    if not rows:
        print_text(screen, "no topics yet: they are found where several memories of a project are about the same")
        return
    places = sorted({row["project"] for row in rows})
    most = MOST_HERE if len(places) == 1 else MOST_ANYWHERE
    left = 0
    for number, place in enumerate(places):
        if len(places) > 1:
            if number:
                screen.print()
            print_text(screen, shorten(place, screen.width) or "everywhere", style="bold")
        found = [row for row in rows if row["project"] == place]
        shown = found if everything else found[:most]
        left += len(found) - len(shown)
        table(
            screen,
            [("topic", "left"), ("memories", "right"), ("last said", "left")],
            [[row["name"], f"{row['memories']:,}", row["last_at"][:10]] for row in shown],
        )
    screen.print()
    more = f"; {left:,} not shown (--all)" if left else ""
    print_text(screen, f"{many(len(rows), 'topic')}{more}; `csmd topics NAME` lists the memories of one", style="dim")


def _one(value: dict[str, Any], *, everything: bool) -> None:
    rows = value["memories"]
    if not rows:
        print_text(console(), f"nothing here is about {value['topic']!r}; `csmd topics` lists what something is about")
        return
    holds = [row for row in rows if not row["superseded_by"]]
    most = len(rows) if everything else show_memory.MOST_OF_TOPIC
    show_memory.listed({"memories": holds, "known": len(rows), "superseded": len(rows) - len(holds)}, most=most)


def _tagged(value: dict[str, Any]) -> None:
    screen = console()
    print_text(screen, f"{value['id']}: {value['text']}", most=3)
    said = ", ".join(one["name"] for one in value["topics"]) or "nothing that is shared"
    print_text(screen, f"it is about {said}", style="dim")
    if value["superseded_by"] and any(one["name"] == value["topic"] for one in value["topics"]):
        new = value["superseded_by"]
        print_text(
            screen, f"it holds no longer, so `csmd topics` does not list it; {new} took its place: csmd tag {new} TOPIC"
        )


def _linked(value: dict[str, Any]) -> None:
    screen = console()
    done = "no longer linked" if value["undone"] else "linked"
    words = show_memory.RELATIONS.get(value["relationship"], (value["relationship"].replace("_", " "),))[0]
    print_text(screen, f"{done}: {value['from']['id']} {words} {value['to']['id']}")
    for one in (value["from"], value["to"]):
        print_text(screen, one["text"], head=f"  {one['id']}  ", most=2, style="dim")


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (topics, tag, link)
