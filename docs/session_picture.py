"""Draws docs/images/session.svg: what a person said in one session, and what csmd tells the next, in a real run.

    python docs/session_picture.py

A daemon of its own reads a transcript; then the hooks of a new session run as the assistant runs them. What they print
is drawn as it is, but for the fence around it and the ids of memories.
"""

from __future__ import annotations

import json
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from machine import Machine, own_machine  # noqa: E402

from csmd.cli.render import wrap  # noqa: E402

#: What the person said.
SAID = (
    "no, that's wrong: the config key is database_url, not db_url",
    "Let's go with Postgres for the job queue because we need LISTEN/NOTIFY.",
    "Never push to main without running the integration tests.",
)
COLUMNS, LINE, LETTER, EDGE = 88, 19, 8.0, 16
COLOURS = {"prompt": "#e8e8e8", "heading": "#8fb8de", "told": "#a8d8a0", "plain": "#9a9a9a"}


def told_by(printed: bytes) -> list[str]:
    """The lines of what a hook injects, without the fence and without ids."""
    text = json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed.strip() else ""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("<")]
    return [re.sub(r",? m[0-9a-f]{10}(?=\))", "", line) for line in lines]


def run(machine: Machine) -> list[tuple[str, str]]:
    """(style, line) of the picture, from a run on a machine of its own."""
    lines = []
    for said in SAID:
        lines += [machine.line("user", said), machine.line("assistant", "It is done.")]
    machine.transcript(*lines)
    machine.start()
    machine.sync()
    shown = [("heading", "A session"), *(("prompt", f"> {said}") for said in SAID), ("plain", "")]
    shown.append(("heading", "The next session: what csmd tells it at its start"))
    shown += [("told", line) for line in told_by(machine.hook("SessionStart", "s2", source="startup"))]
    return shown


def draw(shown: list[tuple[str, str]]) -> str:
    """The picture of a terminal with these lines."""
    rows = [(style, part) for style, line in shown for part in wrap(line, COLUMNS)]
    width, height = round(COLUMNS * LETTER + 2 * EDGE), LINE * len(rows) + 2 * EDGE
    texts = [
        f'<text x="{EDGE}" y="{EDGE + LINE * number + 14}" fill="{COLOURS[style]}"'
        f"{' font-weight=' + chr(34) + 'bold' + chr(34) if style == 'heading' else ''}>{escape(row)}</text>"
        for number, (style, row) in enumerate(rows)
        if row
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">'
    )
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="#1b1d23"/>'
    return "\n".join([head, ground, *texts, "</svg>", ""])


if __name__ == "__main__":
    with own_machine(Path("/tmp")) as own:  # noqa: S108
        (ROOT / "docs" / "images" / "session.svg").write_text(draw(run(own)))
