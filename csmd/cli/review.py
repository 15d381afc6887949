"""`csmd review`: what waits for a person, answered with one key each; a list where nobody can press one.

Every answer is carried out at once, in one transaction; `u` takes the last one back, also in another `csmd review`.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from csmd.cli import show_review
from csmd.cli.ask import ask, here, json_option, looking, out, person_is_there
from csmd.cli.keys import END, Keys
from csmd.cli.memory import edited
from csmd.errors import CsmdError, DaemonUnreachable

KEYS = {"k": "keep", "e": "edit", "d": "drop", "s": "supersede"}
DONE = {"keep": "kept", "edit": "worded anew", "drop": "dropped", "supersede": "superseded"}
LATER, UNDO, QUIT = "n", "u", "q"


@click.command()
@click.argument("ident", metavar="[ID]", default="")
@click.option("--keep", is_flag=True, help="It is right.")
@click.option("--edit", "text", metavar="TEXT", default=None, help="Your wording takes its place.")
@click.option("--drop", is_flag=True, help="It goes, and does not come back.")
@click.option("--supersede", "other", metavar="ID", default=None, help="This memory takes its place.")
@click.option("--undo", is_flag=True, help="Take the last answer back, or the answer ID.")
@click.option("--project", metavar="PATH", help="The project to look in; this directory's by default.")
@click.option("--all-projects", is_flag=True, help="Look in every project.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000), help="How many at most.")
@json_option
def review(
    ident: str, keep: bool, text: str | None, drop: bool, other: str | None, undo: bool, project: str | None,
    all_projects: bool, limit: int, as_json: bool,
) -> None:  # fmt: skip
    """Answer what waits for you, one key each."""
    given = [
        verb
        for verb, is_given in (
            ("keep", keep),
            ("edit", text is not None),
            ("drop", drop),
            ("supersede", other is not None),
        )
        if is_given
    ]
    if len(given) + undo > 1:
        raise click.UsageError("one answer at a time")
    if given and not ident:
        raise click.UsageError(f"--{given[0]} of what? csmd review ID --{given[0]}")
    if undo:
        found = ask("csm_review_undo", id=ident, asking=here(None), by_person=person_is_there())
        out(found, as_json, show_review.undone)
        return
    if given:
        found = answer(ident, given[0], text=text or "", other=other or "")
        out(found, as_json, show_review.answered)
        return
    value = ask("csm_review_list", id=ident, **looking(project, all_projects or bool(ident)), limit=limit)
    if ident and not value["items"]:
        raise CsmdError(f"{ident} does not wait for you", hint=f"csmd show {ident}")
    if as_json or not value["items"] or not (person_is_there() and sys.stdout.isatty()):
        out(value, as_json, show_review.waiting)
        return
    with Keys() as keys:
        asked = Asking(value["items"], total=value["total"], keys=keys)
        asked.run()
    show_review.ended(asked.counted(), left=value["total"] - len(asked.answered))


def answer(ident: str, verb: str, *, text: str = "", other: str = "", version: int = 0) -> dict[str, Any]:
    """Has the daemon carry an answer out."""
    found: dict[str, Any] = ask(
        "csm_review_answer", id=ident, verb=verb, text=text, other=other, version=version, asking=here(None),
        by_person=person_is_there(),
    )  # fmt: skip
    return found


class Asking:
    """One sitting: the items, where one is, and the answers given, so that the last can be taken back."""

    def __init__(self, items: list[dict[str, Any]], *, total: int, keys: Keys) -> None:
        self.items = items
        self.keys = keys
        self.total = total
        self.at = 0
        #: (place of its item, answer, verb) of what was answered and stands, the last one last.
        self.answered: list[tuple[int, str, str]] = []

    def run(self) -> None:
        """Asks about each item until the last one or `q`."""
        while self.at < len(self.items):
            item = self.items[self.at]
            show_review.item(item, number=self.at + 1, total=self.total, undo=bool(self.answered))
            while not self._pressed(item, self.keys.press()):
                pass

    def counted(self) -> dict[str, int]:
        """How many answers of each kind stand."""
        verbs = [verb for _, _, verb in self.answered]
        return {DONE[verb]: verbs.count(verb) for verb in KEYS.values() if verb in verbs}

    def _pressed(self, item: dict[str, Any], key: str) -> bool:
        """Does what a key says; False for one that means nothing here or was thought better of."""
        key = key.lower()
        if key in (QUIT, END):
            self.items = self.items[: self.at]
        elif key == LATER:
            self.at += 1
        elif key == UNDO and self.answered:
            self._undo()
        elif KEYS.get(key) in item["does"]:
            return self._answer(item, KEYS[key])
        else:
            return False
        return True

    def _answer(self, item: dict[str, Any], verb: str) -> bool:
        text = other = ""
        try:
            if verb == "edit":
                with self.keys.lines():
                    text = edited(_wording(item))
                if not text or text == _wording(item):
                    return show_review.said("nothing was changed")
            if verb == "supersede" and not _is_known(item):
                with self.keys.lines():
                    other = _which(item)
                if not other:
                    return show_review.said("nothing was changed")
            done = answer(item["id"], verb, text=text, other=other, version=item["version"])
        except DaemonUnreachable:
            raise
        except CsmdError as error:
            show_review.refused(error.what, error.hint)
            return False
        show_review.answered(done, brief=True)
        self.answered.append((self.at, done["answer"], verb))
        self.at += 1
        return True

    def _undo(self) -> None:
        at, ident, _ = self.answered[-1]
        try:
            found = ask("csm_review_undo", id=ident, asking=here(None), by_person=person_is_there())
        except DaemonUnreachable:
            raise
        except CsmdError as error:
            show_review.refused(error.what, error.hint)
            return
        self.answered.pop()
        self.at = at
        show_review.undone(found)
        # Its version is another one now.
        again = ask("csm_review_list", id=self.items[at]["id"], project="", asking=here(None))["items"]
        self.items[at] = next(iter(again), self.items[at])


def _wording(item: dict[str, Any]) -> str:
    """What somebody words anew: the memory that it is about where there is one."""
    memories = item["memories"] if item["about"] in ("memory", "pair", "change") else []
    return str(memories[0]["text"] if memories else item["text"])


def _is_known(item: dict[str, Any]) -> bool:
    """Whether it is clear without asking which memory takes which one's place."""
    return item["about"] in ("pair", "change") or (item["about"] == "belief" and bool(item["memories"]))


def _which(item: dict[str, Any]) -> str:
    """The memory that somebody names: one of those shown by its number, or any by its id; "" for none."""
    show_review.near(item["near"])
    typed = str(click.prompt("  which one takes its place? number or id", default="", show_default=False)).strip()
    if typed.isdigit() and 1 <= int(typed) <= len(item["near"]):
        return str(item["near"][int(typed) - 1]["id"])
    return typed


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (review,)
