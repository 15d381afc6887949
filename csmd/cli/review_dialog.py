"""The dialog of a review at the terminal: one key answers an item; its screens, and the answers' requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import click

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, bold, dim, many, pair, percent, warning
from csmd.cli.show import show_evidence, show_related_memories
from csmd.errors import CsmdError, DaemonUnreachable
from csmd.text.ages import when
from csmd.vocabulary import REVIEW_ALL, REVIEW_KEYS, REVIEW_LATER, REVIEW_QUIT, REVIEW_UNDO

#: Key -> answer; `k` is an alias.
KEYS = {"k": "keep", **{key: answer for answer, (key, _) in REVIEW_KEYS.items()}}
#: Answer, or other change of a person -> its participle.
PARTICIPLES = {
    "keep": "kept", "edit": "reworded", "drop": "dropped", "supersede": "superseded", "pin": "pinned",
    "unpin": "unpinned", "done": "done", "remember": "remembered", "goal": "set",
}  # fmt: skip
#: Most sources shown with a question.
MAX_SOURCES = 3


def send_answer(item_id: str, answer: str, **options: Any) -> Any:
    """Sends an answer; `options` are its text, the other memory, and the version that was shown."""
    params = {"text": "", "other": "", "version": 0, **options}
    return verb.ask_here("csm_review_answer", id=item_id, verb=answer, **params)


def send_import_answer(import_id: str, answer: str) -> Any:
    """Keeps or drops all pending memories of an import."""
    return verb.ask_here("csm_review_import", id=import_id, verb=answer, project="")


def send_undo(answer_id: str) -> Any:
    """Undoes an answer; "" means the last one."""
    return verb.ask_here("csm_review_undo", id=answer_id)


class Answer(NamedTuple):
    """An answer: its item's position, its id and verb, the number of memories it covers, and the items it removed."""

    position: int
    id: str
    verb: str
    amount: int = 1
    removed: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True, kw_only=True)
class ReviewDialog:
    """A review at the terminal: the items, the current index, and the answers, so that the last can be undone."""

    items: list[dict[str, Any]]
    total: int
    keys: verb.Keys
    index: int = 0
    imports: dict[str, dict[str, Any]]
    answers: list[Answer] = field(default_factory=list)
    """The answers that were not undone, latest last."""

    def run(self) -> None:
        """Asks about each item until the last one or `q`."""
        while self.index < len(self.items):
            item = self.items[self.index]
            pending_import = self.imports.get(item.get("import", ""))
            number = 1 + self.index + sum(answer.amount for answer in self.answers if answer.removed)
            can_undo = bool(self.answers)
            render.show(show_item(item, number=number, total=self.total, undo=can_undo, waiting=pending_import))
            while not self._handle_key(item, self.keys.read()):
                pass

    def summarize(self) -> Screen:
        """Shows the numbers of answers by kind, and of items that are left."""
        verbs = [answer.verb for answer in self.answers for _ in range(answer.amount)]
        counts = [f"{verbs.count(name)} {PARTICIPLES[name]}" for name in REVIEW_KEYS if name in verbs]
        remaining = self.total - len(verbs)
        yield ""
        yield f"{', '.join(counts) or 'no change'}; {f'{remaining:,} left' if remaining > 0 else 'none left'}"
        if counts:
            yield dim("Undo the last: csmd undo")

    def _handle_key(self, item: dict[str, Any], key: str) -> bool:
        """Handles a key; returns False if the item must be asked again."""
        key = key.lower()
        try:
            if key in (REVIEW_QUIT.key, verb.END_OF_INPUT):
                self.items = self.items[: self.index]
            elif key == REVIEW_LATER.key:
                self.index += 1
            elif key == REVIEW_UNDO.key and self.answers:
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

    def _answer(self, item: dict[str, Any], answer: str) -> bool:
        """Sends an answer, after asking for its text or the other memory; False if the person types nothing."""
        options = {}
        if answer == "edit":
            with self.keys.line_mode():
                options["text"] = verb.edit_text(_find_wording(item))
        elif answer == "supersede" and not _is_pair(item):
            with self.keys.line_mode():
                options["other"] = _ask_for_other(item)
        if "" in options.values() or options.get("text") == _find_wording(item):
            render.show([dim("No change.")])
            return False
        value = send_answer(item["id"], answer, version=item["version"], **options)
        render.show(show_answered(value, brief=True))
        self.answers.append(Answer(self.index, value["answer"], answer))
        self.index += 1
        return True

    def _answer_import(self, pending_import: dict[str, Any]) -> bool:
        """Keeps or drops all pending memories of an import, by a second key; any other key cancels."""
        keep, drop = REVIEW_KEYS["keep"].key, REVIEW_KEYS["drop"].key
        label = f"all {many(pending_import['waiting'], 'memory')} from {pending_import['source']}"
        render.show([f"  {label}: {keep} keep   {drop} drop   any other key: cancel"])
        answer = {keep: "keep", drop: "drop"}.get(self.keys.read().lower())
        if answer is None:
            render.show([dim("No change.")])
            return False
        value = send_import_answer(pending_import["id"], answer)
        render.show(show_answered(value, brief=True))
        remaining = self.items[self.index :]
        removed = [item for item in remaining if item.get("import") == pending_import["id"]]
        self.items[self.index :] = [item for item in remaining if item not in removed]
        self.answers.append(Answer(self.index, value["answer"], answer, pending_import["waiting"], tuple(removed)))
        return True

    def _undo(self) -> None:
        answer = send_undo(self.answers[-1].id)
        last = self.answers.pop()
        self.index = last.position
        render.show(show_answer_undone(answer))
        if last.removed:
            self.items[self.index : self.index] = last.removed
            return
        # Undoing changed its version.
        params = {"id": self.items[self.index]["id"], "project": "", "asking": verb.resolve_project(None)}
        items = verb.ask("csm_review_list", **params)["items"]
        self.items[self.index] = next(iter(items), self.items[self.index])


def _find_wording(item: dict[str, Any]) -> str:
    """Returns the text to reword: that of the item's memory if it has one."""
    memories = item["memories"] if item["about"] in ("memory", "pair", "change") else []
    return str(memories[0]["text"] if memories else item["text"])


def _is_pair(item: dict[str, Any]) -> bool:
    """Whether an item names both the memory that is replaced and the one that replaces it."""
    return item["about"] in ("pair", "change") or (item["about"] == "belief" and bool(item["memories"]))


#: Subject of an item -> labels of its two memories, which are then shown instead of the item's text.
PAIR_LABELS = {"pair": ("1. ", "2. "), "change": ("older: ", "newer: ")}


def label_pair(item: dict[str, Any]) -> tuple[str, ...]:
    """Returns labels of the two memories of an item; () if it is not about two, or one is gone."""
    return PAIR_LABELS.get(item["about"], ()) if len(item["memories"]) == 2 else ()


def _ask_for_other(item: dict[str, Any]) -> str:
    """Asks for the replacing memory, by its number in the list or by an id; "" if none was typed."""
    for number, memory in enumerate(item["near"], 1):
        text = f"{memory['text']} ({memory['id']}, {when(memory['at'])[:10]})"
        render.show([Line(text, head=f"  {number}. ", max_lines=3)])
    word = str(click.prompt("  Replaced by (number or id)", default="", show_default=False)).strip()
    if word.isdigit() and 1 <= int(word) <= len(item["near"]):
        return str(item["near"][int(word) - 1]["id"])
    return word


def show_item(
    value: dict[str, Any], *, number: int, total: int, undo: bool, waiting: dict[str, Any] | None = None
) -> Screen:
    """Shows one item as a question; `waiting` is its import if more memories of it wait."""
    columns, sure = render.width(), f"{percent(value['confidence'])} sure"
    yield dim(f"{number} of {total} ".ljust(columns, "-"), gap=True)
    yield dim(f"{value['title']}: {value['gate']} {value['category']}, {sure}, {value['id']}")
    labels = label_pair(value)
    if not labels:
        yield bold(value["text"], max_lines=12)
    yield pair("why", value["reason"])
    yield pair("scope", value["project"] or "everywhere, if kept")
    yield from show_related_memories(value["memories"], except_text=value["text"], names=labels)
    yield from show_evidence(value["evidence"], limit=MAX_SOURCES)
    yield ""
    for name, effect in value["does"].items():
        yield f"  {REVIEW_KEYS[name].key}  {REVIEW_KEYS[name].name:<10} {effect}"[:columns]
    if waiting:
        effect = f"keep or drop all {waiting['waiting']:,} from {waiting['source']} at once"
        yield f"  {REVIEW_ALL.key}  {REVIEW_ALL.name:<10} {effect}"[:columns]
    keys = (REVIEW_LATER, REVIEW_UNDO, REVIEW_QUIT) if undo else (REVIEW_LATER, REVIEW_QUIT)
    yield dim("   ".join(map(" ".join, keys)), indent=2)


def show_answered(value: dict[str, Any], *, brief: bool = False) -> Screen:
    """Shows the effect of an answer."""
    preposition = "by" if value["verb"] == "supersede" else "as"
    memory = f" {preposition} {value['made']}" if value["made"] and value["made"] != value["id"] else ""
    change = f"{PARTICIPLES[value['verb']]}: {value['id']}{memory}"
    if brief:
        return [Line(change, style="green")]
    return render.done(f"{change}: {value['text']}", "Undo: csmd undo")


def show_answer_undone(value: dict[str, Any]) -> Screen:
    """Shows the answer that was undone."""
    text = f": {value['text']}" if value["text"] else ""
    yield Line(f"Undone: {value['id']} is no longer {PARTICIPLES[value['verb']]}{text}", max_lines=4)
