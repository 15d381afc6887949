"""Writes the generated parts of the documents, between `<!-- begin NAME -->` and `<!-- end NAME -->`.

    python docs/generate.py            writes them
    python docs/generate.py --check    exit code 1 where one is not what the code says

Run it in the environment of README's second command.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "csmd"


def table(heading: str, rows: list[str]) -> str:
    """A Markdown table of rows that are written already."""
    columns = heading.count("|") + 1
    return "\n".join([f"| {heading} |", f"|{' --- |' * columns}", *rows])


def first_sentence(text: str) -> str:
    """The first sentence of a help text or docstring, without its full stop."""
    flat = " ".join(text.split())
    return re.split(r"(?<=[^.][.!?])\s+(?=[A-Z`])", flat)[0].rstrip(".")


def tree() -> str:
    """Every module with the first sentence of its docstring, folder by folder."""
    lines = []
    folders = [PACKAGE, *sorted(path for path in PACKAGE.rglob("*") if path.is_dir() and path.name[0] not in "_.")]
    for folder in folders:
        if "_share" in folder.parts:
            continue
        modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
        if modules:
            about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
            name = f"{folder.relative_to(PACKAGE.parent)}/"
            lines.append(f"{name:<26} {first_sentence(about)}" if folder != PACKAGE else name)
        for path in modules:
            says = first_sentence(ast.get_docstring(ast.parse(path.read_text())) or "").replace("`", "")
            lines.append(f"  {path.name:<24} {says[:92].rstrip() + ('...' if len(says) > 92 else '')}".rstrip())
    return "\n".join(["```", *lines, "```"])


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its words: `model fetch`."""
    from csmd.cli.main import main

    def walk(group: click.Group, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from walk(command, (*words, name))
            elif command is not None and not command.hidden:
                yield " ".join((*words, name)), command

    return walk(main, ())


def command_rows() -> str:
    """Every command with its arguments, its options and the first sentence of its help."""
    rows = []
    for name, command in commands():
        arguments = " ".join(
            part.make_metavar(click.Context(command)) for part in command.params if isinstance(part, click.Argument)
        )
        options = [
            max(part.opts, key=len) for part in command.params if isinstance(part, click.Option) and not part.hidden
        ]
        arguments = arguments.replace("|", "\\|")
        shown = " ".join(f"`{option}`" for option in options if option != "--json")
        rows.append(f"| `{f'csmd {name} {arguments}'.strip()}` | {first_sentence(command.help or '')} | {shown} |")
    return table("command | does | options", rows)


def tool_rows() -> str:
    """Every tool with its summary and its parameters: required ones in bold, the others with their default."""
    from csmd.parameters import REQUIRED
    from csmd.tools.registry import TOOLS

    def shown(name: str, default: object) -> str:
        if default is REQUIRED:
            return f"**{name}**"
        return name if default in ("", None, False, 0) else f"{name} ({str(default).lower()})"

    rows = []
    for name, tool in TOOLS.items():
        parameters = ", ".join(shown(key, of.default) for key, of in tool.parameters.items() if key != "asking")
        rows.append(f"| `{name}` | {tool.summary} | {parameters} | {'yes' if tool.mutates else 'no'} |")
    return table("tool | does | parameters | changes", rows)


def setting_rows() -> str:
    """Every key of config.yaml with its default and its meaning."""
    from dataclasses import fields

    from csmd.cli.settings import describe_settings
    from csmd.config import Settings

    rows = []
    for field in fields(Settings):
        default = f"[{', '.join(field.default)}]" if isinstance(field.default, tuple) else str(field.default)
        shown = default.lower() if isinstance(field.default, bool) else default
        rows.append(f"| `{Settings.key(field.name)}` | `{shown}` | {describe_settings()[Settings.key(field.name)]} |")
    return table("key | default | meaning", rows)


def check_rows() -> str:
    """Every check of `csmd doctor`."""
    from csmd.doctor.examine import CHECKS

    return table("check | asks | try", [f"| `{check.id}` | {check.question} | {check.remedy} |" for check in CHECKS])


def number(value: float) -> str:
    """A figure as people read it: three digits, or all those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def speed() -> str:
    """The figures of speed.json, which tests/bench/run_all.py writes: what has one figure, then what is measured at sizes."""
    recorded = json.loads((DOCS / "speed.json").read_text())
    rows = list(recorded["figures"].values())
    dates = sorted({row["at"] for row in rows})
    about = (
        f"Taken {' to '.join(dict.fromkeys((dates[0], dates[-1])))} on {recorded['cores']} cores, where a million additions "
        f"take {recorded['million_additions_ms']} ms. What misses its limit is in italics."
    )

    def shown(row: dict[str, Any], text: str) -> str:
        return f"*{text}*" if row["ratio"] > 1 else text

    single = [
        f"| {row['what']} | {number(row['value'])} {row['unit']} | {number(row['limit'])} | {shown(row, number(row['ratio']))} |"
        for row in rows
        if not row["size"]
    ]
    sizes = sorted({row["size"] for row in rows if row["size"]}, key=lambda size: (int(size.partition("k")[0]), size))
    by_what: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["size"]:
            by_what.setdefault(f"{row['what']}, {row['unit']}", {})[row["size"]] = row
    sized = [
        f"| {what} | {' | '.join(shown(of[size], number(of[size]['value'])) if size in of else '' for size in sizes)} "
        f"| {number(next(iter(of.values()))['limit'])} |"
        for what, of in by_what.items()
    ]
    tables = (
        table("what | figure | limit | figure by limit", single),
        table(f"memories | {' | '.join(sizes)} | limit", sized),
    )
    return "\n\n".join((about, *tables))


def figures() -> str:
    """The table of figures.json: a row in bold for each section, with its command and date."""
    rows = []
    for title, section in json.loads((DOCS / "figures.json").read_text()).items():
        rows.append(f"| **{title}** `{section['command']}` | {section['at']} | |")
        rows += [f"| {' | '.join(row)} |" for row in section["rows"]]
    return table("what | figure | bar", rows)


def secret_kinds() -> str:
    """The kinds of secrets, in the order of their table."""
    from csmd.privacy.secret_rules import OTHER_KINDS, RULES

    kinds = dict.fromkeys([*(rule.kind for rule in RULES), *OTHER_KINDS])
    return textwrap.fill(", ".join(f"`{kind}`" for kind in kinds), 120, break_on_hyphens=False)


def host_rows() -> str:
    """Every assistant whose MCP settings csmd writes: its file, and where it documents that."""
    from csmd.mcp.server_entries import HOSTS

    rows = []
    for name, host in HOSTS.items():
        elsewhere = f" (or below `${host.variable}`)" if host.variable else ""
        rows.append(
            f"| `{name}` | [{host.name}]({host.documented}) | `~/{host.folder}/{host.file}`{elsewhere} | `{host.key}` |"
        )
    return table("HOST | documented by | file | key", rows)


def group_rows() -> str:
    """The groups of the daemon's tools that a model may be given."""
    from csmd.mcp.served_tools import GROUPS

    return table(
        "group | adds", [f"| `{name}` | {', '.join(f'`{tool}`' for tool in tools)} |" for name, tools in GROUPS.items()]
    )


def view_rows() -> str:
    """The views that questions in SQL are put to, each with the meaning of its columns and its joins."""
    from csmd.store.sql_views import VIEWS

    parts = []
    for view in VIEWS:
        joins = "".join(f"\n\nJoin: {', '.join(f'`{join}`' for join in view.joins)}." for _ in view.joins[:1])
        rows = [f"| `{name}` | {meaning} |" for name, meaning in view.columns.items()]
        parts.append(f"### {view.name}\n\n{view.about}.\n\n{table('column | meaning', rows)}{joins}")
    return "\n\n".join(parts)


BLOCKS: dict[str, Callable[[], str]] = {
    "hosts": host_rows,
    "groups": group_rows,
    "tree": tree,
    "secrets": secret_kinds,
    "commands": command_rows,
    "tools": tool_rows,
    "settings": setting_rows,
    "checks": check_rows,
    "speed": speed,
    "figures": figures,
    "views": view_rows,
}


def filled(text: str) -> str:
    """A document with its generated parts as the code has them now."""
    block = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
    return block.sub(lambda match: f"{match[1]}{BLOCKS[match[2]]()}\n{match[3]}", text)


def with_event_names(text: str) -> str:
    """A script of the hook, which imports nothing of csmd's, with names of events as the table of events has them."""
    from csmd.hook_events import EVENTS

    names = {
        "INJECTING": [rule.hook_name for rule in EVENTS.values() if rule.can_inject],
        "ONLY_ASKS": [rule.hook_name for rule in EVENTS.values() if not rule.is_stored],
    }
    constant = re.compile(rf"^({'|'.join(names)}) = .*(?=  # by docs/generate\.py$)", re.MULTILINE)
    return constant.sub(lambda found: f"{found[1]} = {tuple(names[found[1]])}".replace("'", '"'), text)


def main() -> int:
    """Writes or checks every document, and the hook's names of events; the exit code."""
    made = {path: filled(path.read_text()) for path in sorted(DOCS.glob("*.md"))}
    made |= {path: with_event_names(path.read_text()) for path in sorted((DOCS.parent / "hooks").glob("*.py"))}
    stale = {path: text for path, text in made.items() if text != path.read_text()}
    if "--check" not in sys.argv:
        for path, text in stale.items():
            path.write_text(text)
            print(f"written: {path.name}")
        return 0
    for path in stale:
        print(f"not what the code says: {path.name}; run python docs/generate.py")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
