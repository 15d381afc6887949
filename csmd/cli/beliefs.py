"""Commands about beliefs: duplicates, merges, candidates, review, the self model."""

from __future__ import annotations

import sys
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.memories import evidence_for, memories_about, show_injection
from csmd.cli.render import Line, Screen, block, bold, dim, many, pair, percent, warning, when
from csmd.errors import CsmdError, DaemonUnreachable
from csmd.text.display import amount, squeeze

# --- what is held

HEADINGS = {"preference": "Preferences", "opinion": "Opinions", "worldview": "Worldviews"}
#: Lines of a memory's text that are shown.
LINES = 3


def show_beliefs(value: dict[str, Any]) -> Screen:
    """What is held, by kind and subject: how sure, how often it was told, and the best wording."""
    if not value["beliefs"]:
        yield "nothing is held here yet: what you state, and what is told more than once, comes here"
    for kind, heading in HEADINGS.items():
        rows = [row for row in value["beliefs"] if row["kind"] == kind]
        if not rows:
            continue
        if rows[0] is not value["beliefs"][0]:
            yield ""
        yield bold(heading)
        for row in rows:
            told = (
                "told once" if row["told"] == 1 else f"told {row['told']} times in {amount(row['sessions'], 'session')}"
            )
            others = row["also"]
            alike = f", {others[0]}" if len(others) == 1 else f", {len(others)} more like it" if others else ""
            subject = f"{row['subject']}: " if row["subject"] else ""
            yield Line(squeeze(row["text"]), head=f"{row['confidence'] * 100:>3.0f} %  ", most=LINES)
            yield dim(f"{subject}{told}{_by(row, ' ')}, {row['id']}{alike}", indent=7)
        if kind in value["more"]:
            yield dim(f"and {value['more'][kind]} more: --limit {value['more'][kind] + len(rows)}")


def _by(row: dict[str, Any], before: str) -> str:
    """Who said it, where that was not the user."""
    return "" if row["authority"] == "user" else f"{before}by the {row['authority']}"


def show_duplicates(value: dict[str, Any]) -> Screen:
    """Pairs of memories: the one that stays, the other below it, and how to merge them."""
    if not value["duplicates"]:
        yield "no two memories here say the same, or nearly so"
        return
    for number, row in enumerate(value["duplicates"]):
        if number:
            yield ""
        stays, goes = row["memories"]
        is_exact = row["kind"] == "duplicate"
        yield bold("the same" if is_exact else f"nearly the same: {percent(row['confidence'])} of their words")
        for name, memory in (("stays", stays), ("goes", goes)):
            about = f"{memory['id']}, {percent(memory['confidence'])}, {memory['confirmed_at'][:10]}{_by(memory, ', ')}"
            yield dim(about, head=f"{name:<7}")
            yield Line(squeeze(memory["text"]), indent=7, most=2 * LINES)
        yield dim(f"csmd merge {goes['id']} {stays['id']}", indent=7)
    exact = sum(row["kind"] == "duplicate" for row in value["duplicates"])
    near = len(value["duplicates"]) - exact
    yield ""
    yield dim(f"{exact} say the same, {near} nearly; `csmd merge` merges the first, `csmd merge --near` all")


#: Verb of an action: done, planned.
DONE_TO_BELIEFS = {
    "merge": ("merged", "would merge"),
    "archive": ("archived", "would archive"),
    "embed": ("waits for its vector", "would embed"),
}


def show_mended(value: dict[str, Any]) -> Screen:
    """What was done, or would be, and to which memories."""
    if not value["actions"] and not value["left"]:
        yield "there is nothing to do"
        return
    for row in value["actions"]:
        into = f" into {row['into']}" if row["into"] else ""
        yield bold(f"{DONE_TO_BELIEFS[row['do']][value['dry_run']]} {row['id']}{into}")
        yield Line(squeeze(row["text"]), indent=2, most=LINES)
        if row["into_text"]:
            yield Line(f"stays: {squeeze(row['into_text'])}", indent=2, most=LINES)
        yield dim(row["reason"], indent=2)
    for row in value["left"]:
        yield warning(f"left {row['id']} as it is: it has changed meanwhile")
    if not value["dry_run"] and any(row["do"] in ("merge", "archive") for row in value["actions"]):
        yield dim("`csmd merge --undo ID` takes one back")


def show_undone(value: dict[str, Any]) -> Screen:
    """Which memory stands by itself again."""
    stands = "would stand" if value["dry_run"] else "stands"
    origin = f", apart from {value['from']}" if value["from"] else ""
    yield Line(f"{value['undone']} {stands} by itself again{origin}: {squeeze(value['text'])}", most=LINES)


@verb.command(
    "merge", verb.optional("id", "[ID"), verb.optional("into", "INTO]"),
    verb.flag("--near", help="Of all duplicates also those that only nearly say the same."),
    verb.option("--undo", metavar="ID", default="", help="Take back that a memory was merged or archived."),
    *verb.PROJECTS, verb.DRY_RUN,
)  # fmt: skip
def merge(project: str | None, all_projects: bool, as_json: bool, **given: Any) -> None:
    """Merge memory ID into INTO, or all duplicates here."""
    if given["undo"] and (given["id"] or given["near"]):
        raise click.UsageError("--undo goes with one ID and nothing else")
    if given["near"] and given["id"]:
        raise click.UsageError("--near is for all duplicates, not for two that are named")
    place = {"asking": verb.here(None)} if given["id"] or given["undo"] else verb.looking(project, all_projects)
    answer = verb.ask("csm_memory_merge", **given, **place, by_person=verb.person_is_there())
    verb.out(answer, as_json, show_undone if given["undo"] else show_mended)


@verb.command("governance")
def governance(as_json: bool) -> None:
    """Show whether the rules of what may be believed hold.

    The exit code is 1 where one is broken.
    """
    value = verb.ask("csm_memory_governance_report")
    verb.out(value, as_json, show_governance)
    if not value["holds"]:
        raise SystemExit(1)  # told why


def show_governance(value: dict[str, Any]) -> Screen:
    """Each rule and whether it holds; what breaks one, and the remedy."""
    for row in value["rules"]:
        if row["holds"]:
            yield Line(row["rule"], head="ok      ")
            continue
        yield bold(row["rule"], head="BROKEN  ")
        yield Line(f"by {', '.join(row['broken_by'])}", indent=8)
        yield dim(f"try: {row['try']}", indent=8)
    broken = sum(not row["holds"] for row in value["rules"])
    state = "all of them hold" if value["holds"] else f"{broken} of them {'does' if broken == 1 else 'do'} not hold"
    yield ""
    yield f"{amount(len(value['rules']), 'rule')}: {state}"


@verb.command(
    "supersede", verb.argument("old", "OLD"), verb.optional("new", "NEW"),
    verb.flag("--undo", help="Restore OLD; csmd does not replace it with the same memory again."),
)  # fmt: skip
def supersede(old: str, new: str, undo: bool, as_json: bool) -> None:
    """Replace memory OLD with NEW (--undo restores OLD)."""
    if not new and not undo:
        raise click.UsageError("name the memory that holds now, or give --undo")
    answer = verb.ask(
        "csm_memory_supersede", old=old, new=new, undo=undo, asking=verb.here(None), by_person=verb.person_is_there()
    )
    verb.out(answer, as_json, show_superseded)


def show_superseded(value: dict[str, Any]) -> Screen:
    """Which memory was replaced, or holds again."""
    if value["undone"]:
        yield f"{value['id']} holds again: {value['text']}"
        yield dim(f"{percent(value['confidence'])} sure; {value['was_superseded_by']} stays")
        return
    yield f"Replaced {value['id']} with {value['superseded_by']}: {value['text']}"
    if value["rest"]:
        yield Line(f"Still active from it: {value['rest']['id']}: {value['rest']['text']}", most=4)
    yield dim(f"Undo: csmd supersede {value['id']} --undo")


def show_pinned(value: dict[str, Any]) -> Screen:
    """Whether a memory is pinned now."""
    is_pin = value["verb"] == "pin"
    if not value["changed"]:
        yield f"Nothing to do: {value['id']} is {'' if is_pin else 'not '}pinned"
        return
    yield f"{'Pinned' if is_pin else 'Unpinned'} {value['id']}: {value['text']}"
    yield dim(f"Undo: csmd review --undo {value['answer']}")


# --- what may become a memory

#: Plan's word -> what people read.
STEPS = {
    "promote": ("becomes a memory", "became a memory"),
    "known": ("known already", "known already"),
    "review": ("a person has to say", "a person has to say"),
    "wait": ("waits", "waits"),
}


def show_packets(value: dict[str, Any]) -> Screen:
    """What was observed, by day."""
    if not value["packets"]:
        yield "nothing was observed here yet"
    day = ""
    for packet in value["packets"]:
        stamp, state = when(packet["at"]), packet["state"]
        if stamp[:10] != day:
            day = stamp[:10]
            yield bold(day)
        mood = [state["stance"]] if state["stance"] != "unknown" else []
        mood += [f"{name} {state[name] * 100:.0f}" for name in ("frustration", "urgency") if (state[name] or 0) >= 0.2]
        ended = "" if packet["outcome"] in ("", "ok", "asked") else f" ({packet['outcome']})"
        about = f"   {', '.join(mood)}" if packet["kind"] in ("order", "scope") and mood else ""
        yield Line(f"{packet['subject']}{ended}{about}", head=f"{stamp[11:16]}  {packet['kind']:<9}  ", most=2)


def show_candidates(value: dict[str, Any]) -> Screen:
    """How many candidates of each kind there are, and what each that waits is waiting for."""
    for kind, counts in value["counts"].items():
        told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
        yield Line(told, head=f"{kind.replace('_', ' '):<18}")
    if not value["candidates"]:
        yield "nothing waits here" if value["counts"] else "there are no candidates here yet"
        return
    yield ""
    for candidate in value["candidates"]:
        yield Line(candidate["text"])
        reasons = "; ".join(candidate["why"] or [candidate["reason"]])
        yield Line(f"{candidate['status'].replace('_', ' ')}: {reasons}", indent=2)
        yield from _rests_on(candidate)
    yield dim("`csmd promote --dry-run` shows what would become a memory")


def _rests_on(candidate: dict[str, Any]) -> Screen:
    place = f", in {candidate['project']}" if candidate["project"] else ""
    kind, sure = candidate["kind"].replace("_", " "), f"confidence {candidate['confidence'] * 100:.0f}"
    yield dim(f"{candidate['id']}  {kind}, {sure}, {candidate['reason']}{place}", indent=2)
    yield ""


def show_promoted(value: dict[str, Any]) -> Screen:
    """What became of each candidate, or would."""
    if not value["actions"]:
        yield "nothing waits here"
        return
    for action in value["actions"]:
        is_new = action["step"] == "promote"
        ident = f" {action['memory_id']}" if action["memory_id"] and is_new else ""
        reasons = f": {'; '.join(action['reasons'])}" if action["reasons"] else ""
        yield bold(action["candidate"]["text"])
        yield Line(f"{STEPS[action['step']][value['applied']]}{ident}{reasons}", indent=2)
        yield from _rests_on(action["candidate"])
    count = sum(action["step"] == "promote" for action in value["actions"])
    would = f"{amount(count, 'candidate')} would become a memory"
    yield bold(amount(count, "new memory") if value["applied"] else would)


@verb.command("advisory", verb.PROJECT, verb.flag("--debug", help="Show every line, and why it is in or not."))
def advisory(project: str | None, debug: bool, as_json: bool) -> None:
    """Show what csmd makes of recent sessions before it is sure."""
    tool = "csm_living_state_debug" if debug else "csm_living_state_preview"
    verb.out(verb.ask(tool, **verb.looking(project)), as_json, show_advisory_lines if debug else show_advisory)


def show_advisory(value: dict[str, Any]) -> Screen:
    """The text as a session would get it, and whether sessions do."""
    yield from show_injection(value, nothing="nothing: there is nothing unsettled about this project")
    yield _switch(value)


def show_advisory_lines(value: dict[str, Any]) -> Screen:
    """Every line by part, those that are not told with the reason."""
    part = ""
    for line in value["lines"]:
        if line["part"] != part:
            part = line["part"]
            yield bold(part)
        if line["told"]:
            yield Line(f"{line['text']} ({line['tail']})", head="  + ")
        else:
            yield dim(f"{line['text']} ({line['tail']}); left out: {line['why']}", head="  - ")
    if not value["lines"]:
        yield "nothing: no session here was looked at yet"
    told = sum(line["told"] for line in value["lines"])
    room = f"{value['tokens']} of {value['max_tokens']} tokens"
    yield ""
    yield dim(
        f"{told} of {amount(len(value['lines']), 'line')}, {room}; trimmed in this order: {', '.join(value['trimmed'])}"
    )
    yield _switch(value)


def _switch(value: dict[str, Any]) -> Line:
    off = "no brief holds it; `csmd config set stages.advisory true` lets them"
    return dim(f"{value['note']}; {'briefs hold it' if value['enabled'] else off}")


# --- the self model

#: Below so many sessions a figure says little, and is shown as few.
FEW = 3
#: Models and clients that are shown, the latest.
SHOWN = 6


def show_self(value: dict[str, Any]) -> Screen:
    """The self model: confidence 0-100, what it rests on, warnings, models and clients."""
    if not value["sessions"]:
        yield "nothing is counted here yet; --all-projects looks everywhere"
        return
    yield dim(f"{amount(value['sessions'], 'session')}; {value['note']}")
    yield from (warning(f"{change['text']} ({change['id']})", head="worse  ") for change in value["drift"])
    yield ""
    longest = max(len(work["name"]) for work in value["capabilities"])
    yield from (f"{work['name']:<{longest}}  {_figure(work)}" for work in value["capabilities"])
    for what, heading in (("model", "models"), ("version", "clients")):
        rows = [row for row in value["continuity"] if row["what"] == what]
        lines: list[Line | str] = [
            f"{row['since'][:10]} to {row['until'][:10]}  {row['name']}, {amount(row['sessions'], 'session')}"
            for row in rows[-SHOWN:]
        ]
        lines += [dim(f"and {len(rows) - SHOWN} before; --json has all")] if len(rows) > SHOWN else []
        yield from block(heading, lines)
    links = ", ".join(f"{count} {kind}" for kind, count in value["links"].items())
    if links:
        yield ""
        yield dim(f"links between sessions: {links}; `csmd session digest ID` shows those of one")


def _figure(work: dict[str, Any]) -> str:
    if not work["decided"]:
        return f" -  {amount(work['sessions'], 'session')}, none of which showed how it ended"
    figure = f"{work['confidence'] * 100:>3.0f}" if work["decided"] >= FEW else "few"
    return f"{figure}  {work['well']} of {amount(work['decided'], 'session')} ended well"


# --- review

KEYS = {"k": "keep", "e": "edit", "d": "drop", "s": "supersede"}
LETTERS = {answer: key for key, answer in KEYS.items()}
DONE = {
    "keep": "kept",
    "edit": "worded anew",
    "drop": "dropped",
    "supersede": "superseded",
    "pin": "pinned",
    "unpin": "unpinned",
}
LATER, UNDO, QUIT = "n", "u", "q"
#: Sources of an item that are shown before somebody decides.
MOST = 3
ANSWERS = "--keep | --edit TEXT | --drop | --supersede ID"


@verb.command(
    "review", verb.optional("id", "[ID]"), verb.flag("--keep", help="It is right."),
    verb.option("--edit", metavar="TEXT", default=None, help="Your wording takes its place."),
    verb.flag("--drop", help="It goes, and does not come back."),
    verb.option("--supersede", metavar="ID", default=None, help="This memory takes its place."),
    verb.flag("--undo", help="Take the last answer back, or the answer ID."), *reversed(verb.PROJECTS),
    verb.limit(50, about="How many at most."),
)  # fmt: skip
def review(
    id: str, undo: bool, project: str | None, all_projects: bool, limit: int, as_json: bool, **answers: Any  # noqa: A002
) -> None:  # fmt: skip
    """Answer what waits for you, one key each."""
    given = [name for name in DONE if answers.get(name) not in (None, False)]
    if len(given) + undo > 1:
        raise click.UsageError("one answer at a time")
    if given and not id:
        raise click.UsageError(f"--{given[0]} of what? csmd review ID --{given[0]}")
    if undo:
        verb.out(take_back(id), as_json, show_answer_undone)
        return
    if given:
        done = answer(id, given[0], text=answers["edit"] or "", other=answers["supersede"] or "")
        verb.out(done, as_json, show_answered)
        return
    value = verb.ask("csm_review_list", id=id, **verb.looking(project, all_projects or bool(id)), limit=limit)
    if id and not value["items"]:
        raise CsmdError(f"{id} does not wait for you", hint=f"csmd show {id}")
    if as_json or not value["items"] or not (verb.person_is_there() and sys.stdout.isatty()):
        verb.out(value, as_json, show_waiting)
        return
    with verb.Keys() as keys:
        sitting = Sitting(value["items"], total=value["total"], keys=keys)
        sitting.run()
    render.show(sitting.end())


def answer(ident: str, what: str, *, text: str = "", other: str = "", version: int = 0) -> dict[str, Any]:
    """Has the daemon carry an answer out."""
    made: dict[str, Any] = verb.ask(
        "csm_review_answer", id=ident, verb=what, text=text, other=other, version=version, asking=verb.here(None),
        by_person=verb.person_is_there(),
    )  # fmt: skip
    return made


def take_back(ident: str) -> dict[str, Any]:
    """Has the daemon take an answer back; the last one for ""."""
    undone: dict[str, Any] = verb.ask(
        "csm_review_undo", id=ident, asking=verb.here(None), by_person=verb.person_is_there()
    )
    return undone


class Sitting:
    """One sitting: the items, where one is, and the answers given, so that the last can be taken back."""

    def __init__(self, items: list[dict[str, Any]], *, total: int, keys: verb.Keys) -> None:
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
            render.show(show_item(item, number=self.at + 1, total=self.total, undo=bool(self.answered)))
            while not self._pressed(item, self.keys.press()):
                pass

    def end(self) -> Screen:
        """What the sitting came to."""
        verbs = [done for _, _, done in self.answered]
        counted = [f"{verbs.count(name)} {DONE[name]}" for name in KEYS.values() if name in verbs]
        left = self.total - len(verbs)
        yield ""
        yield f"{', '.join(counted) or 'nothing was changed'}; {f'{left:,} left' if left > 0 else 'nothing is left'}"
        if counted:
            yield dim("`csmd review --undo` takes the last one back")

    def _pressed(self, item: dict[str, Any], key: str) -> bool:
        """Does what a key says; False for one that means nothing here or was thought better of."""
        key = key.lower()
        try:
            if key in (QUIT, verb.END):
                self.items = self.items[: self.at]
            elif key == LATER:
                self.at += 1
            elif key == UNDO and self.answered:
                self._undo()
            elif KEYS.get(key) in item["does"]:
                return self._answer(item, KEYS[key])
            else:
                return False
        except DaemonUnreachable:
            raise
        except CsmdError as error:
            render.show([warning(error.what), Line(error.hint, head="  try: ")])
            return key == UNDO
        return True

    def _answer(self, item: dict[str, Any], what: str) -> bool:
        text = other = ""
        unchanged = False
        if what == "edit":
            with self.keys.lines():
                text = verb.edit_text(_wording(item))
            unchanged = text in ("", _wording(item))
        elif what == "supersede" and not _is_pair(item):
            with self.keys.lines():
                other = _which(item)
            unchanged = not other
        if unchanged:
            render.show([dim("nothing was changed")])
            return False
        done = answer(item["id"], what, text=text, other=other, version=item["version"])
        render.show(show_answered(done, brief=True))
        self.answered.append((self.at, done["answer"], what))
        self.at += 1
        return True

    def _undo(self) -> None:
        at, ident, _ = self.answered[-1]
        undone = take_back(ident)
        self.answered.pop()
        self.at = at
        render.show(show_answer_undone(undone))
        # Its version is another one now.
        again = verb.ask("csm_review_list", id=self.items[at]["id"], project="", asking=verb.here(None))["items"]
        self.items[at] = next(iter(again), self.items[at])


def _wording(item: dict[str, Any]) -> str:
    """What somebody words anew: the memory that it is about where there is one."""
    memories = item["memories"] if item["about"] in ("memory", "pair", "change") else []
    return str(memories[0]["text"] if memories else item["text"])


def _is_pair(item: dict[str, Any]) -> bool:
    """Whether it is clear without asking which memory takes which one's place."""
    return item["about"] in ("pair", "change") or (item["about"] == "belief" and bool(item["memories"]))


def _which(item: dict[str, Any]) -> str:
    """The memory that somebody names: one of those shown by its number, or any by its id; "" for none."""
    render.show(
        Line(f"{memory['text']} ({memory['id']}, {when(memory['at'])[:10]})", head=f"  {number}. ", most=3)
        for number, memory in enumerate(item["near"], 1)
    )
    typed = str(click.prompt("  which one takes its place? number or id", default="", show_default=False)).strip()
    if typed.isdigit() and 1 <= int(typed) <= len(item["near"]):
        return str(item["near"][int(typed) - 1]["id"])
    return typed


def show_item(value: dict[str, Any], *, number: int, total: int, undo: bool) -> Screen:
    """One item as it is asked about."""
    columns = render.width()
    yield ""
    yield dim(f"{number} of {total} ".ljust(columns, "-"))
    sure = f"{percent(value['confidence'])} sure"
    yield dim(f"{value['title']}: {value['gate']} {value['category']}, {sure}, {value['id']}")
    yield bold(value["text"], most=12)
    yield pair("why", value["reason"])
    yield pair("holds", value["project"] or "everywhere")
    yield from memories_about(value["memories"], besides=value["text"])
    yield from evidence_for(value["evidence"], most=MOST)
    yield ""
    for name, does in value["does"].items():
        yield f"  {LETTERS[name]}  {name:<10} {does}"[:columns]
    yield dim("   ".join(["n later", *(["u undo the last"] if undo else []), "q quit"]), indent=2)


def show_waiting(value: dict[str, Any]) -> Screen:
    """The list, where nobody can press a key, with what answers it."""
    if not value["items"]:
        yield "nothing waits for you here"
        return
    for item in value["items"]:
        yield Line(item["text"], head=f"{item['id']}  ", most=4)
        yield dim(f"{item['title']}, {percent(item['confidence'])}: {item['reason']}", indent=13)
    left = value["total"] - len(value["items"])
    more = f"; ... and {left:,} more (--limit {value['total']})" if left > 0 else ""
    yield ""
    yield f"{many(value['total'], 'thing')} wait{'s' if value['total'] == 1 else ''} for you{more}"
    yield dim(f"In a terminal `csmd review` asks about each with one key, or: csmd review ID {ANSWERS}")


def show_answered(value: dict[str, Any], *, brief: bool = False) -> Screen:
    """What an answer did."""
    made = f" as {value['made']}" if value["made"] and value["made"] != value["id"] else ""
    made = f" by {value['made']}" if value["verb"] == "supersede" and made else made
    done = f"{DONE[value['verb']]}: {value['id']}{made}"
    if brief:
        yield Line(done, style="green")
    else:
        yield f"{done}: {value['text']}"
        yield dim("`csmd review --undo` takes it back")


def show_answer_undone(value: dict[str, Any]) -> Screen:
    """What was taken back."""
    yield f"taken back: {value['id']} is no longer {DONE[value['verb']]}"


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    verb.of_tool(
        "beliefs", "csm_belief_knowledge", show_beliefs,
        "Show what is held here, by subject, with its evidence.\n\nPreferences, opinions and worldviews.",
        *verb.PROJECTS, verb.limit(10, about="How many of each kind."),
    ),
    verb.of_tool(
        "duplicates", "csm_memory_dedup_detect", show_duplicates,
        "List memories that say the same as another one, or nearly so.", *verb.PROJECTS,
    ),
    merge,
    verb.of_tool(
        "archive", "csm_memory_archive", show_mended,
        "Archive faded memories; they stay searchable.\n\n`csmd merge --undo ID` brings one back.",
        *verb.PROJECTS, verb.DRY_RUN, by_person=True,
    ),
    governance,
    supersede,
    verb.of_tool(
        "pin", "csm_memory_pin", show_pinned, "Pin a memory: it never fades and stays as sure as it is.",
        verb.ID, by_person=True, undo=False,
    ),
    verb.of_tool(
        "unpin", "csm_memory_pin", show_pinned, "Unpin a memory: it fades from now on as others do.",
        verb.ID, by_person=True, undo=True,
    ),
    verb.of_tool("packets", "csm_memory_packets", show_packets, "List what was observed in sessions.", *verb.PROJECTS, verb.limit(30)),
    verb.of_tool(
        "candidates", "csm_memory_candidate_report", show_candidates,
        "List what waits to become a memory, and what it waits for.", *verb.PROJECTS,
    ),
    verb.of_tool(
        "promote", "csm_belief_promote", show_promoted, "Make memories of candidates that are sure enough.", *verb.PROJECTS,
        verb.flag("--dry-run", "apply", help="Only show the plan.", flag_value=False, default=True),
        verb.flag(
            "--relaxed", "profile", flag_value="relaxed", default="default",
            help="Lower thresholds: what a small history would give. For trying out.",
        ),
        by_person=True,
    ),
    advisory,
    verb.of_tool("self", "csm_self_model", show_self, "Show success rates by kind of work.", *verb.PROJECTS),
    review,
)  # fmt: skip
