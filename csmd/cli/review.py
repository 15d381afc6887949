"""Commands that answer what waits for a person, and take answers back: review, undo."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import click

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, bold, dim, many, pair, percent, warning
from csmd.cli.show import evidence_for, memories_about
from csmd.errors import CsmdError, DaemonUnreachable
from csmd.text.ages import when
from csmd.vocabulary import REVIEW_ALL, REVIEW_KEYS, REVIEW_LATER, REVIEW_QUIT, REVIEW_UNDO

#: The verbs of this module.
VERBS = verb.Verbs()


#: Key -> answer. `k` also keeps: `y` and `k` mean the same here.
KEYS = {"k": "keep", **{key: answer for answer, (key, _) in REVIEW_KEYS.items()}}
DONE = {"keep": "kept", "edit": "worded anew", "drop": "dropped", "supersede": "superseded"}


DONE |= {"pin": "pinned", "unpin": "unpinned", "done": "done", "remember": "remembered"}


#: Sources of an item that are shown before somebody decides.
MOST = 3
ANSWERS = "--keep | --edit TEXT | --drop | --supersede ID"


@VERBS.action(
    "review", verb.optional("id", "[ID]"), verb.flag("--keep", help="It is right."),
    verb.option("--edit", metavar="TEXT", default=None, help="Your wording takes its place."),
    verb.flag("--drop", help="It goes, and does not come back."),
    verb.option("--supersede", metavar="ID", default=None, help="This memory takes its place."),
    verb.flag("--undo", help="Take the last answer back, or the answer ID."), *reversed(verb.PROJECTS),
    verb.limit(50, description="How many at most."), verb.yes("Do not ask before all of an import is kept or dropped."),
)  # fmt: skip
def review(
    id: str, undo: bool, project: str | None, all_projects: bool, limit: int, yes: bool, as_json: bool, **answers: Any,  # noqa: A002
) -> None:  # fmt: skip
    """Answer what waits for you, one key each.

    ID is that of a memory, of a question, or of an import: all that waits of it is kept or dropped at once. An import
    is also named by its program or its path.
    """
    chosen = [name for name in DONE if answers.get(name) not in (None, False)]
    if len(chosen) + undo > 1:
        raise click.UsageError("one answer at a time")
    if chosen and not id:
        raise click.UsageError(f"--{chosen[0]} of what? csmd review ID --{chosen[0]}")
    if undo:
        verb.print_answer(_undo_answer(id), as_json, show_answer_undone)
    elif chosen and (waiting := _find_import(id, chosen[0])):
        question = f"{chosen[0].capitalize()} all {many(waiting['waiting'], 'memory')} from {waiting['source']}?"
        verb.confirm(question, yes=yes)
        verb.print_answer(_answer_import(waiting["id"], chosen[0]), as_json, show_answered)
    elif chosen:
        answer = _answer(id, chosen[0], text=answers["edit"] or "", other=answers["supersede"] or "")
        verb.print_answer(answer, as_json, show_answered)
    else:
        value = verb.ask(
            "csm_review_list", id=id, **verb.project_params(project, all_projects or bool(id)), limit=limit
        )
        if id and not value["items"]:
            raise CsmdError(f"{id} does not wait for you", hint=f"csmd show {id}")
        if as_json or not value["items"] or not (verb.is_interactive() and sys.stdout.isatty()):
            verb.print_answer(value, as_json, show_waiting)
            return
        with verb.Keys() as keys:
            imports = {row["id"]: row for row in value["imports"]}
            sitting = Sitting(items=value["items"], total=value["total"], keys=keys, imports=imports)
            sitting.run()
        render.show(sitting.end())


def _answer(ident: str, what: str, **options: Any) -> Any:
    """Sends an answer; `options` are its text, the other memory, and the version that was shown."""
    answer = {"text": "", "other": "", "version": 0, **options}
    return verb.ask(
        "csm_review_answer",
        id=ident,
        verb=what,
        **answer,
        asking=verb.resolve_project(None),
        by_person=verb.is_interactive(),
    )


def _find_import(typed: str, what: str) -> dict[str, Any] | None:
    """The waiting import with this id, program or path; None if the text names no import."""
    if what not in ("keep", "drop") or re.fullmatch("[mc][0-9a-f]{6,}", typed):
        return None
    imports = verb.ask("csm_review_list", project="", asking=verb.resolve_project(None), limit=1)["imports"]
    named = [row for row in imports if row["id"].startswith(typed) or typed in (row["source"], row["path"])]
    if len(named) > 1:
        hint = f"give the id of one: {', '.join(row['id'] for row in named)}"
        raise CsmdError(f"{typed} names {len(named)} imports", hint=hint)
    return next(iter(named), None)


def _answer_import(ident: str, what: str) -> Any:
    """Keeps or drops all that waits of an import."""
    asking = verb.resolve_project(None)
    return verb.ask(
        "csm_review_import", id=ident, verb=what, project="", asking=asking, by_person=verb.is_interactive()
    )


def _undo_answer(ident: str) -> Any:
    """Undoes an answer; "" means the last one."""
    return verb.ask("csm_review_undo", id=ident, asking=verb.resolve_project(None), by_person=verb.is_interactive())


class Answered(NamedTuple):
    """An answer: its item's index, its id and verb, how many memories it covered, and the items it removed."""

    at: int
    id: str
    verb: str
    amount: int = 1
    gone: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True, kw_only=True)
class Sitting:
    """A review at the terminal: the items, the current index, and the answers, so that the last can be undone."""

    items: list[dict[str, Any]]
    total: int
    keys: verb.Keys
    at: int = 0
    imports: dict[str, dict[str, Any]]
    #: The answers that were not undone, latest last.
    answered: list[Answered] = field(default_factory=list)

    def run(self) -> None:
        """Asks about each item until the last one or `q`."""
        while self.at < len(self.items):
            item = self.items[self.at]
            waiting = self.imports.get(item.get("import", ""))
            number = 1 + self.at + sum(answer.amount for answer in self.answered if answer.gone)
            render.show(show_item(item, number=number, total=self.total, undo=bool(self.answered), waiting=waiting))
            while not self._handle_key(item, self.keys.read()):
                pass

    def end(self) -> Screen:
        """How many items were answered in which way, and how many are left."""
        verbs = [answer.verb for answer in self.answered for _ in range(answer.amount)]
        counted = [f"{verbs.count(name)} {DONE[name]}" for name in REVIEW_KEYS if name in verbs]
        left = self.total - len(verbs)
        yield ""
        yield f"{', '.join(counted) or 'nothing was changed'}; {f'{left:,} left' if left > 0 else 'nothing is left'}"
        if counted:
            yield dim("`csmd undo` takes the last one back")

    def _handle_key(self, item: dict[str, Any], key: str) -> bool:
        """Acts on a key; False for an unknown key or an abandoned answer."""
        key = key.lower()
        try:
            if key in (REVIEW_QUIT.key, verb.END_OF_INPUT):
                self.items = self.items[: self.at]
            elif key == REVIEW_LATER.key:
                self.at += 1
            elif key == REVIEW_UNDO.key and self.answered:
                self._undo()
            elif key == REVIEW_ALL.key and item.get("import") in self.imports:
                return self._answer_import(self.imports[item["import"]])
            elif KEYS.get(key) in item["does"]:
                return self._answer(item, KEYS[key])
            else:
                return False
        except DaemonUnreachable:
            raise
        except CsmdError as error:
            render.show([warning(error.what), Line(error.hint, head="  try: ")])
            return key == REVIEW_UNDO.key
        return True

    def _answer(self, item: dict[str, Any], what: str) -> bool:
        options = {}
        if what == "edit" or (what == "supersede" and not _is_pair(item)):
            with self.keys.line_mode():
                typed = verb.edit_text(_wording(item)) if what == "edit" else _ask_for_other(item)
            if typed in ("", _wording(item)):
                render.show([dim("nothing was changed")])
                return False
            options = {"text" if what == "edit" else "other": typed}
        answer = _answer(item["id"], what, version=item["version"], **options)
        render.show(show_answered(answer, brief=True))
        self.answered.append(Answered(self.at, answer["answer"], what))
        self.at += 1
        return True

    def _answer_import(self, waiting: dict[str, Any]) -> bool:
        """Keeps or drops all that waits of an import, by a second key; anything else leaves it as it is."""
        keep, drop = REVIEW_KEYS["keep"].key, REVIEW_KEYS["drop"].key
        about = f"all {many(waiting['waiting'], 'memory')} from {waiting['source']}"
        render.show([f"  {about}: {keep} keep   {drop} drop   any other key: neither"])
        what = {keep: "keep", drop: "drop"}.get(self.keys.read().lower())
        if what is None:
            render.show([dim("nothing was changed")])
            return False
        answer = _answer_import(waiting["id"], what)
        render.show(show_answered(answer, brief=True))
        gone = [item for item in self.items[self.at :] if item.get("import") == waiting["id"]]
        self.items[self.at :] = [item for item in self.items[self.at :] if item.get("import") != waiting["id"]]
        self.answered.append(Answered(self.at, answer["answer"], what, waiting["waiting"], tuple(gone)))
        return True

    def _undo(self) -> None:
        undone = _undo_answer(self.answered[-1].id)
        last = self.answered.pop()
        self.at = last.at
        render.show(show_answer_undone(undone))
        if last.gone:
            self.items[self.at : self.at] = last.gone
            return
        # Undoing changed its version.
        again = verb.ask(
            "csm_review_list", id=self.items[self.at]["id"], project="", asking=verb.resolve_project(None)
        )["items"]
        self.items[self.at] = next(iter(again), self.items[self.at])


def _wording(item: dict[str, Any]) -> str:
    """The text to reword: that of the item's memory if it has one."""
    memories = item["memories"] if item["about"] in ("memory", "pair", "change") else []
    return str(memories[0]["text"] if memories else item["text"])


def _is_pair(item: dict[str, Any]) -> bool:
    """Whether an item names both the memory that is replaced and the one that replaces it."""
    return item["about"] in ("pair", "change") or (item["about"] == "belief" and bool(item["memories"]))


#: Subject of an item -> labels of its two memories, which are then shown instead of the item's text.
NAMES_OF_TWO = {"pair": ("1. ", "2. "), "change": ("older: ", "newer: ")}


def _names_of_two(item: dict[str, Any]) -> tuple[str, ...]:
    """Labels of the two memories of an item; () if it is not about two, or one is gone."""
    return NAMES_OF_TWO.get(item["about"], ()) if len(item["memories"]) == 2 else ()


def _ask_for_other(item: dict[str, Any]) -> str:
    """Asks for the replacing memory, by its number in the list or by an id; "" for none."""
    render.show(
        Line(f"{memory['text']} ({memory['id']}, {when(memory['at'])[:10]})", head=f"  {number}. ", most=3)
        for number, memory in enumerate(item["near"], 1)
    )
    typed = str(click.prompt("  which one takes its place? number or id", default="", show_default=False)).strip()
    if typed.isdigit() and 1 <= int(typed) <= len(item["near"]):
        return str(item["near"][int(typed) - 1]["id"])
    return typed


def show_item(
    value: dict[str, Any], *, number: int, total: int, undo: bool, waiting: dict[str, Any] | None = None
) -> Screen:
    """One item as a question; `waiting` is its import if more of that waits."""
    columns, sure = render.width(), f"{percent(value['confidence'])} sure"
    yield dim(f"{number} of {total} ".ljust(columns, "-"), gap=True)
    yield dim(f"{value['title']}: {value['gate']} {value['category']}, {sure}, {value['id']}")
    names = _names_of_two(value)
    if not names:
        yield bold(value["text"], most=12)
    yield pair("why", value["reason"])
    yield pair("holds", value["project"] or "everywhere, if you keep it")
    yield from memories_about(value["memories"], besides=value["text"], names=names)
    yield from evidence_for(value["evidence"], most=MOST)
    yield ""
    for name, effect in value["does"].items():
        yield f"  {REVIEW_KEYS[name].key}  {REVIEW_KEYS[name].name:<10} {effect}"[:columns]
    if waiting:
        effect = f"keep or drop all {waiting['waiting']:,} from {waiting['source']} at once"
        yield f"  {REVIEW_ALL.key}  {REVIEW_ALL.name:<10} {effect}"[:columns]
    yield dim("   ".join(" ".join(row) for row in (REVIEW_LATER, *[REVIEW_UNDO] * undo, REVIEW_QUIT)), indent=2)


def show_waiting(value: dict[str, Any]) -> Screen:
    """The list with the commands that answer it, for an output without a keyboard."""
    if not value["items"]:
        other = f"; {many(value['elsewhere'], 'thing')} in other projects: csmd review --all-projects"
        yield f"nothing waits for you here{other if value['elsewhere'] else ''}"
        return
    for item in value["items"]:
        both = [f"{name}{memory['text']}" for name, memory in zip(_names_of_two(item), item["memories"], strict=False)]
        for number, text in enumerate(both or [item["text"]]):
            yield Line(text, head=" " * 13 if number else f"{item['id']}  ", most=4)
        yield dim(f"{item['title']}, {percent(item['confidence'])}: {item['reason']}", indent=13)
    for row in value.get("imports", ()):
        about = f"{many(row['waiting'], 'memory')} from {row['source']} of {when(row['at'])[:10]}"
        yield Line(about, head=f"{row['id']}  ", gap=row is value["imports"][0])
        yield dim(f"all at once: csmd review {row['id']} --keep | --drop", indent=13)
    left = value["total"] - len(value["items"])
    more = f"; ... and {left:,} more (--limit {value['total']})" if left > 0 else ""
    yield Line(f"{many(value['total'], 'thing')} wait{'s' if value['total'] == 1 else ''} for you{more}", gap=True)
    yield dim(f"In a terminal `csmd review` asks about each with one key, or: csmd review ID {ANSWERS}")


def show_answered(value: dict[str, Any], *, brief: bool = False) -> Screen:
    """What an answer did."""
    preposition = "by" if value["verb"] == "supersede" else "as"
    made = f" {preposition} {value['made']}" if value["made"] and value["made"] != value["id"] else ""
    change = f"{DONE[value['verb']]}: {value['id']}{made}"
    if brief:
        return [Line(change, style="green")]
    return render.done(f"{change}: {value['text']}", "`csmd undo` takes it back")


def show_answer_undone(value: dict[str, Any]) -> Screen:
    """The answer that was undone."""
    about = f": {value['text']}" if value["text"] else ""
    yield Line(f"taken back: {value['id']} is no longer {DONE[value['verb']]}{about}", most=4)


@VERBS.action("undo", verb.optional("id", "[ID]"), verb.YES)
@click.pass_context
def undo(context: click.Context, id: str, yes: bool, as_json: bool) -> None:  # noqa: A002
    """Take back what you did last to memories, or to what is open.

    That is an answer in `csmd review`, an edit, a pin, a replacement, what you had csmd remember, or what you called
    done. ID names another one, by itself or by its memory, or a dream. What was forgotten stays out until you say it
    anew.
    """
    if id.startswith("d"):
        dream = context.find_root().command.get_command(context, "dream")  # type: ignore[attr-defined]
        context.invoke(dream.commands["undo"], id=id, yes=yes, dry_run=False, as_json=as_json)
    else:
        verb.print_answer(_undo_answer(id), as_json, show_answer_undone)
