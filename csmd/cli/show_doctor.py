"""What `csmd doctor` prints: the verdict, then what is amiss, the worst first; values in, text on a console."""

from __future__ import annotations

from typing import Any

from csmd.cli import show
from csmd.cli.checks.scene import LEVELS

#: Level -> the word before what was found, and its colour.
WORDS = {"fail": ("broken", "red"), "warn": ("amiss", "yellow"), "note": ("note", "dim"), "ok": ("ok", "dim")}
LABEL = max(len(word) for word, _ in WORDS.values()) + 2


def examined(value: dict[str, Any], *, everything: bool) -> None:
    """The verdict, the findings with what to do about each, and how many checks passed; `everything` lists those."""
    out = show.console()
    show.print_text(out, value["verdict"], style="bold" if value["works"] else "bold red")
    found = [(one, check["id"]) for check in value["checks"] for one in check["findings"]]
    for one, ident in sorted(found, key=lambda pair: LEVELS.index(pair[0]["level"])):
        word, style = WORDS[one["level"]]
        out.print()
        show.print_text(out, f"{one['what']} ({ident})", head=f"{word:<{LABEL}}", style=style)
        show.print_text(out, one["try"], head=f"{'':<{LABEL}}try: ")
    passed = [check for check in value["checks"] if check["level"] == "ok"]
    out.print()
    hint = "" if everything or not passed else "; `csmd doctor --all` lists them"
    unasked = [check for check in value["checks"] if check["level"] == "unasked"]
    none = f", {len(unasked)} not asked: no daemon answers" if unasked else ""
    out.print(f"{len(passed)} checks passed{none}{hint}", style="dim")
    for check in passed if everything else ():
        show.print_text(out, check["question"], head=f"  {check['id']:<20}", style="dim")
    for check in unasked if everything else ():
        show.print_text(out, f"not asked: {check['question']}", head=f"  {check['id']:<20}", style="dim")
