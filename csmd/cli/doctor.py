"""Commands that examine csmd: doctor, report, governance."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from csmd.cli import verb
from csmd.cli.render import Line, Screen, bold, dim, size
from csmd.config import default_paths
from csmd.doctor import examine, report
from csmd.doctor.checks import LEVELS
from csmd.text.display import amount

VERBS = verb.Verbs()
#: Level -> (label of a finding, its colour).
LABELS = {"fail": ("broken", "red"), "warn": ("warning", "yellow"), "note": ("note", "dim"), "ok": ("ok", "dim")}
LABEL_WIDTH = max(len(label) for label, _ in LABELS.values()) + 2


@VERBS.action("doctor", verb.ALL)
def doctor(everything: bool, as_json: bool) -> None:
    """Check that capture works, and name what stops it."""
    scene = examine.read_scene(default_paths(), cwd=Path(verb.resolve_project(None)), now_s=time.time())
    value = examine.diagnose(scene)
    verb.print_answer(value, as_json, show_examined, everything=everything)
    if not value["works"]:
        raise SystemExit(1)


def show_examined(value: dict[str, Any], *, everything: bool) -> Screen:
    """Shows the verdict, the findings with their remedies, and the number of passed checks; `everything` lists
    these."""
    yield Line(value["verdict"], style="bold" if value["works"] else "bold red")
    findings = [(finding, check["id"]) for check in value["checks"] for finding in check["findings"]]
    for finding, check_id in sorted(findings, key=lambda row: LEVELS.index(row[0]["level"])):
        label, style = LABELS[finding["level"]]
        yield Line(f"{finding['what']} ({check_id})", head=f"{label:<{LABEL_WIDTH}}", style=style, gap=True)
        yield Line(finding["try"], head=f"{'':<{LABEL_WIDTH}}try: ")
    passed, skipped = ([check for check in value["checks"] if check["level"] == level] for level in ("ok", "unasked"))
    hint = "" if everything or not passed else "; `csmd doctor --all` lists them"
    skipped_note = f", {len(skipped)} skipped: no daemon answers" if skipped else ""
    yield dim(f"{amount(len(passed), 'check')} passed{skipped_note}{hint}", gap=True)
    if everything:
        yield from (dim(check["question"], head=f"  {check['id']:<20}") for check in passed)
        yield from (dim(f"skipped: {check['question']}", head=f"  {check['id']:<20}") for check in skipped)


@VERBS.action(
    "report", verb.option("--to", "target", type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write; next to the log by default."),
)  # fmt: skip
def report_verb(target: Path | None, as_json: bool) -> None:
    """Write a bug report into a file; nothing is sent."""
    paths, now_s = default_paths(), time.time()
    scene = examine.read_scene(paths, cwd=Path(verb.resolve_project(None)), now_s=now_s)
    parts = report.compose(scene, examine.diagnose(scene))
    text = report.bundle(parts, datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%d %H:%M UTC"))
    path = report.write(paths, target, text)
    rows = [{"name": name, "what": about, "bytes": len(part.encode())} for name, about, part in parts]
    verb.print_answer({"path": str(path.absolute()), "bytes": len(text.encode()), "parts": rows}, as_json, show_report)


def show_report(value: dict[str, Any]) -> Screen:
    """Shows the parts of the report, and its path."""
    yield f"written to {value['path']} ({size(value['bytes'])}):"
    for part in value["parts"]:
        yield Line(f"{part['what']}, {size(part['bytes'])}", head=f"  {part['name']:<14} ")
    yield "It has no conversation, memory or project name, and nothing was sent."
    yield "Read it, then attach it to a bug report."


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
