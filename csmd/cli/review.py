"""Commands that answer the items that wait for a person, and undo answers: review, undo."""

from __future__ import annotations

import re
import sys
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, dim, many, percent
from csmd.cli.review_dialog import (
    PARTICIPLES,
    ReviewDialog,
    label_pair,
    send_answer,
    send_import_answer,
    send_undo,
    show_answer_undone,
    show_answered,
)
from csmd.errors import CsmdError
from csmd.text.ages import when

VERBS = verb.Verbs()
ANSWERS = "--keep | --edit TEXT | --drop | --supersede ID"


@VERBS.action(
    "review", verb.optional("id", "[ID]"), verb.flag("--keep", help="Keep it as it is."),
    verb.option("--edit", metavar="TEXT", default=None, help="Replace its wording."),
    verb.flag("--drop", help="Delete it permanently."),
    verb.option("--supersede", metavar="ID", default=None, help="Replace it by this memory."),
    verb.flag("--undo", help="Undo the last answer, or the answer ID."), *reversed(verb.PROJECTS),
    verb.limit(50, description="Number of items."), verb.yes("Do not ask before an import is kept or dropped."),
)  # fmt: skip
def review(
    id: str, undo: bool, project: str | None, all_projects: bool, limit: int, yes: bool, as_json: bool, **answers: Any,  # noqa: A002
) -> None:  # fmt: skip
    """Answer the items that wait for you, one key each.

    ID is a memory's, a question's or an import's: --keep and --drop then apply to all that waits of the import. An
    import is also named by its program or its path.
    """
    answer_names = [name for name in PARTICIPLES if answers.get(name) not in (None, False)]
    if len(answer_names) + undo > 1:
        raise click.UsageError("give only one of --keep, --edit, --drop, --supersede, --undo")
    if answer_names and not id:
        raise click.UsageError(f"--{answer_names[0]} needs an ID: csmd review ID --{answer_names[0]}")
    if undo:
        verb.print_answer(send_undo(id), as_json, show_answer_undone)
    elif answer_names and (waiting := _find_import(id, answer_names[0])):
        question = f"{answer_names[0].capitalize()} all {many(waiting['waiting'], 'memory')} from {waiting['source']}?"
        verb.confirm(question, yes=yes)
        verb.print_answer(send_import_answer(waiting["id"], answer_names[0]), as_json, show_answered)
    elif answer_names:
        answer = send_answer(id, answer_names[0], text=answers["edit"] or "", other=answers["supersede"] or "")
        verb.print_answer(answer, as_json, show_answered)
    else:
        scope = verb.project_params(project, all_projects or bool(id))
        value = verb.ask("csm_review_list", id=id, **scope, limit=limit)
        if id and not value["items"]:
            raise CsmdError(f"{id} does not wait for an answer", hint=f"csmd show {id}")
        if as_json or not value["items"] or not (verb.is_interactive() and sys.stdout.isatty()):
            verb.print_answer(value, as_json, show_waiting)
            return
        with verb.Keys() as keys:
            imports = {row["id"]: row for row in value["imports"]}
            dialog = ReviewDialog(items=value["items"], total=value["total"], keys=keys, imports=imports)
            dialog.run()
        render.show(dialog.summarize())


def _find_import(word: str, answer: str) -> dict[str, Any] | None:
    """Returns the waiting import with this id, program or path; None if the text names no import."""
    if answer not in ("keep", "drop") or re.fullmatch("[mc][0-9a-f]{6,}", word):
        return None
    imports = verb.ask("csm_review_list", project="", asking=verb.resolve_project(None), limit=1)["imports"]
    matches = [row for row in imports if row["id"].startswith(word) or word in (row["source"], row["path"])]
    if len(matches) > 1:
        hint = f"give the id of one: {', '.join(row['id'] for row in matches)}"
        raise CsmdError(f"{word} names {len(matches)} imports", hint=hint)
    return next(iter(matches), None)


def show_waiting(value: dict[str, Any]) -> Screen:
    """Shows the list with the commands that answer it, for an output without a keyboard."""
    if not value["items"]:
        others = f" ({many(value['elsewhere'], 'item')} elsewhere: csmd review --all-projects)"
        yield f"Nothing to review in this project{others if value['elsewhere'] else ''}"
        return
    for item in value["items"]:
        labelled = zip(label_pair(item), item["memories"], strict=False)
        pair_texts = [f"{label}{memory['text']}" for label, memory in labelled]
        for number, text in enumerate(pair_texts or [item["text"]]):
            yield Line(text, head=" " * 13 if number else f"{item['id']}  ", max_lines=4)
        yield dim(f"{item['title']}, {percent(item['confidence'])}: {item['reason']}", indent=13)
    for row in value.get("imports", ()):
        memories = f"{many(row['waiting'], 'memory')} from {row['source']} of {when(row['at'])[:10]}"
        yield Line(memories, head=f"{row['id']}  ", gap=row is value["imports"][0])
        yield dim(f"all at once: csmd review {row['id']} --keep | --drop", indent=13)
    remaining = value["total"] - len(value["items"])
    rest = f"; ... and {remaining:,} more (--limit {value['total']})" if remaining > 0 else ""
    yield Line(f"{many(value['total'], 'item')} to review{rest}", gap=True)
    yield dim(f"In a terminal `csmd review` asks about each with one key, or: csmd review ID {ANSWERS}")


@VERBS.action("undo", verb.optional("id", "[ID]"), verb.YES)
@click.pass_context
def undo(context: click.Context, id: str, yes: bool, as_json: bool) -> None:  # noqa: A002
    """Undo your last change of a memory or an open item.

    That is an answer in `csmd review`, an edit, a pin, a replacement, a statement of `csmd remember`, `csmd goal set`,
    or `csmd done`. ID names another change, by itself or by its memory or goal, or a dream. A forgotten memory is not
    restored.
    """
    if id.startswith("d"):
        dream = context.find_root().command.get_command(context, "dream")  # type: ignore[attr-defined]
        context.invoke(dream.commands["undo"], id=id, yes=yes, dry_run=False, as_json=as_json)
    else:
        verb.print_answer(send_undo(id), as_json, show_answer_undone)
