"""The overview that `csmd` alone prints, and the help topics of `csmd help`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from csmd.cli import render, status, verb
from csmd.cli.render import Line, Screen, bold, dim, many
from csmd.cli.verb_table import ADVANCED_VERBS, find_similar
from csmd.config import default_paths, user_home
from csmd.errors import CsmdError, DaemonUnreachable
from csmd.installer import service
from csmd.text.ages import ago

#: The verbs of this module.
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
#: Topic -> (subject, text).
TOPICS: dict[str, tuple[str, str]] = {
    "start": (
        "from installation to the first memory",
        """
`csmd install` puts hooks into the assistant's settings, starts a user service and imports past sessions. From then
on nothing has to be typed: sessions are recorded, and the next one starts with what matters.

`csmd doctor` sends a turn through the hooks and says what is wrong. `csmd brief` shows what the next session in
this directory is told. `csmd model fetch` adds search by meaning (90 MB, once).
""",
    ),
    "correct": (
        "wrong, stale or missing memories",
        """
`csmd memories` lists what is remembered here, `csmd show ID` where it comes from. `csmd edit ID` puts your wording
in its place, `csmd forget ID` removes it for good, `csmd pin ID` keeps it from fading. `csmd remember "..."` states
something new; what it contradicts is replaced.

`csmd review` asks about what csmd could not settle itself. `csmd done` lists what is open (goals, promises, what
sessions left to do) and closes it, `csmd undo` takes back what you did last. The same can be done in the Markdown
pages below `memory/`.
""",
    ),
    "privacy": (
        "exclusions, and how to remove text",
        """
Tokens, keys and what a word calls a secret are removed before anything is stored. `<private>...</private>` in a
prompt is not kept. A file `.csmd-off` in a directory, or `privacy.exclude` in config.yaml, leaves a project out;
`csmd project lens NAME PATH --wall` puts a wall around a client's projects; `csmd pause --for 2h` stops capture for
a while.

`csmd forget --purge` removes a text, a session or a project with every trace. `csmd scan` looks for secrets that
older rules let through.
""",
    ),
    "dreams": (
        "consolidation in the background",
        """
Once a day, while the machine is idle, csmd merges duplicates, archives what has faded and rewrites the pages. `csmd
dream status` says when the next one is due, `csmd dream history` and `csmd dream diff ID` what it changed; `csmd
dream undo ID` reverts it as a whole.
""",
    ),
    "models": (
        "the search model, and language models",
        """
Search by meaning needs an embedding model: `csmd model fetch` downloads one, `csmd model add DIR` takes one that is
on this machine. A language model is never asked unless you add one with `csmd provider add`; `csmd ledger` shows
every token that it cost.
""",
    ),
    "pipeline": (
        "how statements become memories, step by step",
        """
`csmd pipeline` has the commands that look into the machinery: what waits to become a memory (promote), what is
believed and why (beliefs), what says the same (duplicates, merge), and what faded (archive). Nobody needs them from
day to day.
""",
    ),
    "completion": (
        "completion in bash, zsh and fish",
        """
`csmd completion bash > ~/.local/share/bash-completion/completions/csmd`

For zsh: `csmd completion zsh > ~/.zfunc/_csmd`; for fish: `csmd completion fish >
~/.config/fish/completions/csmd.fish`.
""",
    ),
}
#: The topic that lists ADVANCED_VERBS.
MORE = "more"


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
    """The state in a sentence, and the number of memories in the project of this directory."""
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
    if topic in TOPICS:
        subject, text = TOPICS[topic]
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
        near = find_similar(topic, [*TOPICS, *group.list_commands(context)])
        hint = f"did you mean `csmd help {near}`?" if near else "`csmd help` lists the topics"
        raise CsmdError(f"no topic or command {topic!r}", hint=hint)
    else:
        topics = {name: subject for name, (subject, _) in TOPICS.items()} | {MORE: "commands that few people need"}
        render.show(Line(subject, head=f"  {name:<12}") for name, subject in topics.items())
        render.show([dim("csmd help TOPIC explains one, csmd help COMMAND its options.", gap=True)])
