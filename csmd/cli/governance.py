"""The command that checks the invariants of stored memories."""

from __future__ import annotations

from typing import Any

from csmd.cli import verb
from csmd.cli.render import Line, Screen, bold, dim
from csmd.text.display import amount

VERBS = verb.Verbs()


@VERBS.action("governance")
def governance(as_json: bool) -> None:
    """Check the invariants of stored memories.

    The exit code is 1 if one is broken.
    """
    value = verb.ask("csm_memory_governance_report")
    verb.print_answer(value, as_json, show_governance)
    if not value["holds"]:
        raise SystemExit(1)


def show_governance(value: dict[str, Any]) -> Screen:
    """Shows whether each rule holds; for a broken one, its causes and the remedy."""
    for row in value["rules"]:
        if row["holds"]:
            yield Line(row["rule"], head="ok      ")
            continue
        yield bold(row["rule"], head="BROKEN  ")
        yield Line(f"by {', '.join(row['broken_by'])}", indent=8)
        yield dim(f"try: {row['try']}", indent=8)
    broken = sum(not row["holds"] for row in value["rules"])
    total = len(value["rules"])
    yield Line(f"{broken} of {total} broken" if broken else f"all {amount(total, 'rule')} hold", gap=True)
