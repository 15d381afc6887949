"""The overview that `csmd` alone prints, and the help topics of `csmd help`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import click

from csmd import data
from csmd.cli import render, status, verb
from csmd.cli.render import Line, Screen, bold, dim, many
from csmd.cli.verb_table import ADVANCED_VERBS, find_similar
from csmd.config import default_paths, user_home
from csmd.errors import CsmdError, DaemonUnreachable
from csmd.installer import service
from csmd.text.ages import ago

VERBS = verb.Verbs()

#: The most useful commands -> their purpose.
USEFUL_COMMANDS: dict[str, str] = {
    "csmd search WORDS": "find past statements and decisions",
    "csmd brief": "show the notes for the next session here",
    "csmd why": "show the notes that this session got, and why",
    "csmd remember TEXT": "save a statement",
    "csmd today": "list changes, decisions and open points",
    "csmd review": "answer open questions, one key each",
    "csmd doctor": "check that recording works",
}
#: A topic in csmd/data/help_topics.txt: its name, its subject and its text.
_TOPIC = re.compile(r"^\[(\w+)\] (.*)\n((?:(?!\[\w+\] ).*\n)*)", re.MULTILINE)
#: The topic that lists ADVANCED_VERBS.
MORE = "more"


class Topic(NamedTuple):
    """A topic of `csmd help`: its line in the list, and its text."""

    subject: str
    text: str


def read_topics() -> dict[str, Topic]:
    """Returns the help topics by name."""
    text = "\n".join(data.lines("help_topics.txt"))
    return {name: Topic(subject, body) for name, subject, body in _TOPIC.findall(f"{text}\n")}


def show_overview() -> None:
    """Prints the state, the number of memories here, and the most useful commands; works without a daemon."""
    try:
        value = status.fetch_status(default_paths())
    except DaemonUnreachable as error:
        reason = service.explain_unreachable(default_paths(), error)
        render.show([bold(reason.what), Line(reason.hint, head="try: "), ""])
    else:
        render.show(_state_lines(value))
    widest = max(map(len, USEFUL_COMMANDS))
    render.show(Line(purpose, head=f"  {name:<{widest}}  ") for name, purpose in USEFUL_COMMANDS.items())
    render.show([dim("All commands: csmd --help, csmd help more. By topic: csmd help.", gap=True)])


def _state_lines(value: dict[str, Any]) -> Screen:
    """Shows the state in a sentence, and the number of memories in the project of this directory."""
    yield bold(status.headline(value))
    directory = Path(os.path.realpath(Path()))
    projects = [row for row in value["projects"] if directory.is_relative_to(row["root"])]
    if projects:
        project = max(projects, key=lambda row: len(row["root"]))
        sessions, last = many(project["sessions"], "session"), ago(project["last"], value["at"])
        root = render.tilde(project["root"], str(user_home()))
        yield f"Here, in {root}: {many(project['memories'], 'memory')} from {sessions}, the last {last}."
    else:
        yield "No memories of this directory yet."
    yield ""


@VERBS.command("help")
@click.argument("topic", required=False, default="")
@click.pass_context
def show_help(context: click.Context, topic: str) -> None:
    """Explain TOPIC, or a command; without one list the topics."""
    group = context.find_root().command
    assert isinstance(group, click.Group)
    topics = read_topics()
    if topic in topics:
        subject, text = topics[topic]
        paragraphs = text.strip().split("\n\n")
        render.show([bold(f"{topic}: {subject}"), *(Line(" ".join(part.split()), gap=True) for part in paragraphs)])
    elif topic == MORE:
        commands = [(name, group.get_command(context, name)) for name in ADVANCED_VERBS]
        room = render.width() - 18
        widest = max(map(len, ADVANCED_VERBS))
        render.show(f"  {name:<{widest}}  {command.get_short_help_str(room)}" for name, command in commands if command)
    elif topic and (command := group.get_command(context, topic)):
        with click.Context(command, info_name=topic, parent=context.find_root()) as inner:
            click.echo(command.get_help(inner))
    elif topic:
        near = find_similar(topic, [*topics, *group.list_commands(context)])
        hint = f"did you mean `csmd help {near}`?" if near else "`csmd help` lists the topics"
        raise CsmdError(f"no topic or command {topic!r}", hint=hint)
    else:
        subjects = {name: subject for name, (subject, _) in topics.items()} | {MORE: "commands that few people need"}
        render.show(Line(subject, head=f"  {name:<12}") for name, subject in subjects.items())
        render.show([dim("csmd help TOPIC explains one, csmd help COMMAND its options.", gap=True)])
