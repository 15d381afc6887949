"""The verbs of what is believed: duplicates, merging, superseding, candidates, review, the self model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from csmd.cli import render
from csmd.cli.memories import edited
from csmd.cli.render import console, print_text
from csmd.cli.verb import END, Keys, ask, here, json_option, looking, out, person_is_there, project_options
from csmd.errors import CsmdError, DaemonUnreachable
from csmd.text import display
from csmd.text.display import amount

if TYPE_CHECKING:
    from rich.console import Console


HEADINGS = {"preference": "Preferences", "opinion": "Opinions", "worldview": "Worldviews"}
#: Verb of an action: done, planned.
DONE_TO_BELIEFS = {
    "merge": ("merged", "would merge"),
    "archive": ("archived", "would archive"),
    "embed": ("waits for its vector", "would embed"),
}
LINES = 3


def show_beliefs(value: dict[str, Any]) -> None:
    """What is held, by kind and subject: how sure, how often it was told, and the best wording."""
    out = render.console()
    if not value["beliefs"]:
        render.print_text(out, "nothing is held here yet: what you state, and what is told more than once, comes here")
        return
    for kind, heading in HEADINGS.items():
        rows = [row for row in value["beliefs"] if row["kind"] == kind]
        if not rows:
            continue
        if rows[0] is not value["beliefs"][0]:
            out.print()
        out.print(heading, style="bold")
        for row in rows:
            _belief(out, row)
        if kind in value["more"]:
            render.print_text(
                out, f"and {value['more'][kind]} more: --limit {value['more'][kind] + len(rows)}", style="dim"
            )


def _belief(out: Console, row: dict[str, Any]) -> None:
    told = "told once" if row["told"] == 1 else f"told {row['told']} times in {amount(row['sessions'], 'session')}"
    by = "" if row["authority"] == "user" else f" by the {row['authority']}"
    alike = (
        f", {row['also'][0]}" if len(row["also"]) == 1 else f", {len(row['also'])} more like it" if row["also"] else ""
    )
    head = f"{row['confidence'] * 100:>3.0f} %  "
    render.print_text(out, display.squeeze(row["text"]), head=head, most=LINES)
    of = f"{row['subject']}: " if row["subject"] else ""
    about = f"{of}{told}{by}, {row['id']}{alike}"
    render.print_text(out, about, indent=len(head), style="dim")


def show_duplicates(value: dict[str, Any]) -> None:
    """Pairs of memories: the one that stays, the other below it, and how to merge them."""
    out = render.console()
    if not value["duplicates"]:
        render.print_text(out, "no two memories here say the same, or nearly so")
        return
    for number, row in enumerate(value["duplicates"]):
        if number:
            out.print()
        stays, goes = row["memories"]
        said = (
            "the same"
            if row["kind"] == "duplicate"
            else f"nearly the same: {row['confidence'] * 100:.0f} % of their words"
        )
        out.print(said, style="bold")
        for name, memory in (("stays", stays), ("goes", goes)):
            by = "" if memory["authority"] == "user" else f", by the {memory['authority']}"
            sure = f"{memory['confidence'] * 100:.0f} %, {memory['confirmed_at'][:10]}{by}"
            render.print_text(out, f"{memory['id']}, {sure}", head=f"{name:<7}", style="dim")
            render.print_text(out, display.squeeze(memory["text"]), indent=7, most=2 * LINES)
        render.print_text(out, f"csmd merge {goes['id']} {stays['id']}", indent=7, style="dim")
    exact = sum(row["kind"] == "duplicate" for row in value["duplicates"])
    out.print()
    near = len(value["duplicates"]) - exact
    render.print_text(
        out, f"{exact} say the same, {near} nearly; `csmd merge` merges the first, `csmd merge --near` all", style="dim"
    )


def show_mended(value: dict[str, Any]) -> None:
    """What was done, or would be, and to which memories."""
    out = render.console()
    if not value["actions"] and not value["left"]:
        render.print_text(out, "there is nothing to do")
        return
    for row in value["actions"]:
        verb = DONE_TO_BELIEFS[row["do"]][value["dry_run"]]
        into = f" into {row['into']}" if row["into"] else ""
        render.print_text(out, f"{verb} {row['id']}{into}", style="bold")
        render.print_text(out, display.squeeze(row["text"]), indent=2, most=LINES)
        if row["into_text"]:
            render.print_text(out, f"stays: {display.squeeze(row['into_text'])}", indent=2, most=LINES)
        render.print_text(out, row["reason"], indent=2, style="dim")
    for row in value["left"]:
        render.print_text(out, f"left {row['id']} as it is: it has changed meanwhile", style="yellow")
    if not value["dry_run"] and any(row["do"] in ("merge", "archive") for row in value["actions"]):
        render.print_text(out, "`csmd merge --undo ID` takes one back", style="dim")


def show_undone(value: dict[str, Any]) -> None:
    """Which memory stands by itself again."""
    verb = "would stand" if value["dry_run"] else "stands"
    from_ = f", apart from {value['from']}" if value["from"] else ""
    render.print_text(
        render.console(),
        f"{value['undone']} {verb} by itself again{from_}: {display.squeeze(value['text'])}",
        most=LINES,
    )


def show_governance(value: dict[str, Any]) -> None:
    """Each rule and whether it holds; what breaks one, and the remedy."""
    out = render.console()
    for row in value["rules"]:
        render.print_text(
            out, row["rule"], head="ok      " if row["holds"] else "BROKEN  ", style="" if row["holds"] else "bold"
        )
        if not row["holds"]:
            render.print_text(out, f"by {', '.join(row['broken_by'])}", indent=8)
            render.print_text(out, f"try: {row['try']}", indent=8, style="dim")
    broken = sum(not row["holds"] for row in value["rules"])
    out.print()
    said = "all of them hold" if value["holds"] else f"{broken} of them {'does' if broken == 1 else 'do'} not hold"
    render.print_text(out, f"{amount(len(value['rules']), 'rule')}: {said}")


dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")


@click.command()
@project_options
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many of each kind.")
@json_option
def beliefs(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """Show what is held here, by subject, with its evidence.

    Preferences, opinions and worldviews.
    """
    out(ask("csm_belief_knowledge", **looking(project, all_projects), limit=limit), as_json, show_beliefs)


@click.command()
@project_options
@json_option
def duplicates(project: str | None, all_projects: bool, as_json: bool) -> None:
    """List memories that say the same as another one, or nearly so."""
    out(ask("csm_memory_dedup_detect", **looking(project, all_projects)), as_json, show_duplicates)


@click.command()
@click.argument("merged", metavar="[ID", required=False, default="")
@click.argument("into", metavar="INTO]", required=False, default="")
@click.option("--near", is_flag=True, help="Of all duplicates also those that only nearly say the same.")
@click.option("--undo", metavar="ID", default="", help="Take back that a memory was merged or archived.")
@project_options
@dry_run_option
@json_option
def merge(
    merged: str, into: str, near: bool, undo: str, project: str | None, all_projects: bool, dry_run: bool, as_json: bool
) -> None:
    """Merge memory ID into INTO, or all duplicates here."""
    if undo and (merged or near):
        raise click.UsageError("--undo goes with one ID and nothing else")
    if near and merged:
        raise click.UsageError("--near is for all duplicates, not for two that are named")
    place = {"asking": here(None)} if merged or undo else looking(project, all_projects)
    found = ask(
        "csm_memory_merge", id=merged, into=into, near=near, undo=undo, **place, dry_run=dry_run,
        by_person=person_is_there(),
    )  # fmt: skip
    out(found, as_json, show_undone if undo else show_mended)


@click.command()
@project_options
@dry_run_option
@json_option
def archive(project: str | None, all_projects: bool, dry_run: bool, as_json: bool) -> None:
    """Leave memories that have faded to explicit search.

    `csmd merge --undo ID` brings one back.
    """
    params: dict[str, Any] = {**looking(project, all_projects), "dry_run": dry_run, "by_person": person_is_there()}
    out(ask("csm_memory_archive", **params), as_json, show_mended)


@click.command()
@json_option
def governance(as_json: bool) -> None:
    """Show whether the rules of what may be believed hold.

    The exit code is 1 where one is broken.
    """
    value = ask("csm_memory_governance_report")
    out(value, as_json, show_governance)
    if not value["holds"]:
        raise SystemExit(1)  # told why


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW", required=False, default="")
@click.option("--undo", is_flag=True, help="Restore OLD; csmd does not replace it with the same memory again.")
@json_option
def supersede(old: str, new: str, undo: bool, as_json: bool) -> None:
    """Replace memory OLD with NEW (--undo restores OLD)."""
    if not new and not undo:
        raise click.UsageError("name the memory that holds now, or give --undo")
    found = ask("csm_memory_supersede", old=old, new=new, undo=undo, asking=here(None), by_person=person_is_there())
    out(found, as_json, _settled)


def _settled(value: dict[str, Any]) -> None:
    screen = console()
    if value["undone"]:
        print_text(screen, f"{value['id']} holds again: {value['text']}")
        print_text(screen, f"{value['confidence'] * 100:.0f} % sure; {value['was_superseded_by']} stays", style="dim")
        return
    print_text(screen, f"Replaced {value['id']} with {value['superseded_by']}: {value['text']}")
    if value["rest"]:
        print_text(screen, f"Still active from it: {value['rest']['id']}: {value['rest']['text']}", most=4)
    print_text(screen, f"Undo: csmd supersede {value['id']} --undo", style="dim")


@click.command()
@click.argument("ident", metavar="ID")
@json_option
def pin(ident: str, as_json: bool) -> None:
    """Pin a memory: it never fades and stays as sure as it is."""
    _pin(ident, undo=False, as_json=as_json)


@click.command()
@click.argument("ident", metavar="ID")
@json_option
def unpin(ident: str, as_json: bool) -> None:
    """Unpin a memory: it fades from now on as others do."""
    _pin(ident, undo=True, as_json=as_json)


def _pin(ident: str, *, undo: bool, as_json: bool) -> None:
    found = ask("csm_memory_pin", id=ident, undo=undo, asking=here(None), by_person=person_is_there())
    out(found, as_json, _pinned)


def _pinned(value: dict[str, Any]) -> None:
    screen = console()
    done = {"pin": "Pinned", "unpin": "Unpinned"}[value["verb"]]
    if not value["changed"]:
        print_text(screen, f"Nothing to do: {value['id']} is {'' if value['verb'] == 'pin' else 'not '}pinned")
        return
    print_text(screen, f"{done} {value['id']}: {value['text']}")
    print_text(screen, f"Undo: csmd review --undo {value['answer']}", style="dim")


#: Plan's word -> what people read.
STEPS = {
    "promote": ("becomes a memory", "became a memory"),
    "known": ("known already", "known already"),
    "review": ("a person has to say", "a person has to say"),
    "wait": ("waits", "waits"),
}


@click.command()
@project_options
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1, 1000))
@json_option
def packets(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List what was observed in sessions."""
    out(ask("csm_memory_packets", **looking(project, all_projects), limit=limit), as_json, _packets)


def _packets(value: dict[str, Any]) -> None:
    console = render.console()
    if not value["packets"]:
        render.print_text(console, "nothing was observed here yet")
        return
    day = ""
    for one in value["packets"]:
        stamp = render.when(one["at"])
        if stamp[:10] != day:
            day = stamp[:10]
            render.print_text(console, day, style="bold")
        state = one["state"]
        how = [f"{name} {state[name] * 100:.0f}" for name in ("frustration", "urgency") if (state[name] or 0) >= 0.2]
        ended = "" if one["outcome"] in ("", "ok", "asked") else f" ({one['outcome']})"
        known = [state["stance"], *how] if state["stance"] != "unknown" else how
        mood = f"   {', '.join(known)}" if one["kind"] in ("order", "scope") and known else ""
        render.print_text(
            console, f"{one['subject']}{ended}{mood}", head=f"{stamp[11:16]}  {one['kind']:<9}  ", most=2
        )  # fmt: skip


@click.command()
@project_options
@json_option
def candidates(project: str | None, all_projects: bool, as_json: bool) -> None:
    """List what waits to become a memory, and what it waits for."""
    out(ask("csm_memory_candidate_report", **looking(project, all_projects)), as_json, _candidates)


def _candidates(value: dict[str, Any]) -> None:
    console = render.console()
    for kind, found in value["counts"].items():
        told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in found.items())
        render.print_text(console, told, head=f"{kind.replace('_', ' '):<18}")
    if not value["candidates"]:
        render.print_text(console, "nothing waits here" if value["counts"] else "there are no candidates here yet")
        return
    console.print()
    for one in value["candidates"]:
        _one(console, one, one["why"] or [one["reason"]])
    render.print_text(console, "`csmd promote --dry-run` shows what would become a memory", style="dim")


def _one(console: Console, one: dict[str, Any], why: list[str], head: str = "") -> None:
    render.print_text(console, one["text"], style="bold" if head else "")
    about = f"{head or one['status'].replace('_', ' ')}: {'; '.join(why)}" if why else head
    render.print_text(console, about, indent=2)
    place = f", in {one['project']}" if one["project"] else ""
    render.print_text(
        console,
        f"{one['id']}  {one['kind'].replace('_', ' ')}, confidence {one['confidence'] * 100:.0f}, {one['reason']}{place}",
        indent=2,
        style="dim",
    )
    console.print()


@click.command()
@project_options
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--relaxed", is_flag=True, help="Lower thresholds: what a small history would give. For trying out.")
@json_option
def promote(project: str | None, all_projects: bool, dry_run: bool, relaxed: bool, as_json: bool) -> None:
    """Make memories of candidates that are sure enough."""
    found = ask(
        "csm_belief_promote",
        **looking(project, all_projects),
        profile="relaxed" if relaxed else "default",
        apply=not dry_run,
        by_person=person_is_there(),
    )
    out(found, as_json, _promoted)


def _promoted(value: dict[str, Any]) -> None:
    console, done = render.console(), value["applied"]
    if not value["actions"]:
        render.print_text(console, "nothing waits here")
        return
    for action in value["actions"]:
        head = STEPS[action["step"]][done]
        ident = f" {action['memory_id']}" if action["memory_id"] and action["step"] == "promote" else ""
        _one(console, action["candidate"], action["reasons"], head=f"{head}{ident}")
    count = sum(action["step"] == "promote" for action in value["actions"])
    told = f"{amount(count, 'new memory')}" if done else f"{amount(count, 'candidate')} would become a memory"
    render.print_text(console, told, style="bold")


@click.command()
@click.option("--project", metavar="PATH", help="This directory's by default.")
@click.option("--debug", is_flag=True, help="Show every line, and why it is in or not.")
@json_option
def advisory(project: str | None, debug: bool, as_json: bool) -> None:
    """Show what csmd makes of recent sessions before it is sure."""
    tool = "csm_living_state_debug" if debug else "csm_living_state_preview"
    out(ask(tool, **looking(project)), as_json, lines if debug else preview)


def preview(value: dict[str, Any]) -> None:
    """The text as a session would get it, and whether sessions do."""
    render.injection(value, nothing="nothing: there is nothing unsettled about this project")
    _switch(value)


def lines(value: dict[str, Any]) -> None:
    """Every line by part, those that are not told with the reason."""
    console = render.console()
    part = ""
    for one in value["lines"]:
        if one["part"] != part:
            part = one["part"]
            render.print_text(console, part, style="bold")
        head, style = ("  + ", "") if one["told"] else ("  - ", "dim")
        why = "" if one["told"] else f"; left out: {one['why']}"
        render.print_text(console, f"{one['text']} ({one['tail']}){why}", head=head, style=style)
    if not value["lines"]:
        render.print_text(console, "nothing: no session here was looked at yet")
    told = sum(one["told"] for one in value["lines"])
    console.print()
    said = f"{told} of {amount(len(value['lines']), 'line')}, {value['tokens']} of {value['max_tokens']} tokens"
    render.print_text(console, f"{said}; trimmed in this order: {', '.join(value['trimmed'])}", style="dim")
    _switch(value)


def _switch(value: dict[str, Any]) -> None:
    said = (
        "briefs hold it" if value["enabled"] else "no brief holds it; `csmd config set stages.advisory true` lets them"
    )
    render.print_text(render.console(), f"{value['note']}; {said}", style="dim")


#: Below so many sessions a figure says little, and is shown as few.
FEW = 3


@click.command("self")
@project_options
@json_option
def self_(project: str | None, all_projects: bool, as_json: bool) -> None:
    """Show how kinds of work ended here, and what got worse."""
    out(ask("csm_self_model", **looking(project, all_projects)), as_json, model)


def model(value: dict[str, Any]) -> None:
    """The self model on a console: confidence 0-100, what it rests on, warnings, models and clients."""
    console = render.console()
    if not value["sessions"]:
        render.print_text(console, "nothing is counted here yet; --all-projects looks everywhere")
        return
    render.print_text(console, f"{amount(value['sessions'], 'session')}; {value['note']}", style="dim")
    for warning in value["drift"]:
        render.print_text(console, f"{warning['text']} ({warning['id']})", head="worse  ", style="yellow")
    console.print()
    width = max(len(one["name"]) for one in value["capabilities"])
    for one in value["capabilities"]:
        render.print_text(console, f"{one['name']:<{width}}  {_figure(one)}")
    for what, heading in (("model", "models"), ("version", "clients")):
        rows = [one for one in value["continuity"] if one["what"] == what]
        if rows:
            console.print()
            console.print(heading, style="dim")
        for one in rows[-SHOWN:]:
            span = f"{one['since'][:10]} to {one['until'][:10]}"
            render.print_text(console, f"{span}  {one['name']}, {amount(one['sessions'], 'session')}")
        if len(rows) > SHOWN:
            render.print_text(console, f"and {len(rows) - SHOWN} before; --json has all", style="dim")
    links = ", ".join(f"{count} {kind}" for kind, count in value["links"].items())
    if links:
        console.print()
        render.print_text(
            console, f"links between sessions: {links}; `csmd session digest ID` shows those of one", style="dim"
        )


#: Models and clients that are shown, the latest.
SHOWN = 6


def _figure(one: dict[str, Any]) -> str:
    if not one["decided"]:
        return f" -  {amount(one['sessions'], 'session')}, none of which showed how it ended"
    figure = f"{one['confidence'] * 100:>3.0f}" if one["decided"] >= FEW else "few"
    return f"{figure}  {one['well']} of {amount(one['decided'], 'session')} ended well"


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
        out(found, as_json, render.show_review_undone)
        return
    if given:
        found = answer(ident, given[0], text=text or "", other=other or "")
        out(found, as_json, render.show_review_answered)
        return
    value = ask("csm_review_list", id=ident, **looking(project, all_projects or bool(ident)), limit=limit)
    if ident and not value["items"]:
        raise CsmdError(f"{ident} does not wait for you", hint=f"csmd show {ident}")
    if as_json or not value["items"] or not (person_is_there() and sys.stdout.isatty()):
        out(value, as_json, render.show_review_waiting)
        return
    with Keys() as keys:
        asked = Asking(value["items"], total=value["total"], keys=keys)
        asked.run()
    render.show_review_ended(asked.counted(), left=value["total"] - len(asked.answered))


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
            render.show_review_item(item, number=self.at + 1, total=self.total, undo=bool(self.answered))
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
                    return render.show_review_said("nothing was changed")
            if verb == "supersede" and not _is_known(item):
                with self.keys.lines():
                    other = _which(item)
                if not other:
                    return render.show_review_said("nothing was changed")
            done = answer(item["id"], verb, text=text, other=other, version=item["version"])
        except DaemonUnreachable:
            raise
        except CsmdError as error:
            render.show_review_refused(error.what, error.hint)
            return False
        render.show_review_answered(done, brief=True)
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
            render.show_review_refused(error.what, error.hint)
            return
        self.answered.pop()
        self.at = at
        render.show_review_undone(found)
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
    render.show_review_near(item["near"])
    typed = str(click.prompt("  which one takes its place? number or id", default="", show_default=False)).strip()
    if typed.isdigit() and 1 <= int(typed) <= len(item["near"]):
        return str(item["near"][int(typed) - 1]["id"])
    return typed


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    beliefs,
    duplicates,
    merge,
    archive,
    governance,
    supersede,
    pin,
    unpin,
    packets,
    candidates,
    promote,
    advisory,
    self_,
    review,
)
