"""Commands about beliefs: duplicates, merges, candidates, review, the self model."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple, get_args

import click

from csmd.cli import render, verb
from csmd.cli.memories import evidence_for, memories_about, show_injection
from csmd.cli.render import Line, Screen, block, bold, dim, join, many, pair, percent, warning
from csmd.errors import CsmdError, DaemonUnreachable
from csmd.text.ages import when
from csmd.text.display import amount, squeeze
from csmd.vocabulary import REVIEW_ALL, REVIEW_KEYS, REVIEW_LATER, REVIEW_QUIT, REVIEW_UNDO, PacketKind

#: The verbs of this module.
VERBS = verb.Verbs()

# --- what is held

HEADINGS = {"preference": "Preferences", "opinion": "Opinions", "worldview": "Worldviews"}
#: Lines of a memory's text that are shown.
LINES = 3


@VERBS.tool("beliefs", "csm_belief_knowledge", *verb.PROJECTS, verb.limit(10, about="How many of each kind."))
def show_beliefs(value: dict[str, Any]) -> Screen:
    """Show what is held here, by subject, with its evidence.

    Preferences, opinions and worldviews.
    """
    if not value["beliefs"]:
        yield "nothing is held here yet: what you state, and what is told more than once, comes here"
    for kind, heading in HEADINGS.items():
        rows = [row for row in value["beliefs"] if row["kind"] == kind]
        if rows:
            yield bold(heading, gap=rows[0] is not value["beliefs"][0])
        for row in rows:
            sessions = f"told {row['told']} times in {amount(row['sessions'], 'session')}"
            others = row["also"]
            alike = f", {others[0]}" if len(others) == 1 else f", {len(others)} more like it" if others else ""
            subject = f"{row['subject']}: " if row["subject"] else ""
            told = f"{subject}{'told once' if row['told'] == 1 else sessions}{_by(row, ' ')}"
            yield Line(squeeze(row["text"]), head=f"{row['confidence'] * 100:>3.0f} %  ", most=LINES)
            yield dim(f"{told}, {row['id']}{alike}", indent=7)
        if rows and kind in value["more"]:
            yield dim(f"and {value['more'][kind]} more: --limit {value['more'][kind] + len(rows)}")


def _by(row: dict[str, Any], before: str) -> str:
    """Who said it, where that was not the user."""
    by = {"user": "", "assistant": f"{before}by the assistant", "external": f"{before}from another program"}
    return by[row["authority"]]


@VERBS.tool("duplicates", "csm_memory_dedup_detect", *verb.PROJECTS)
@render.if_empty("duplicates", "no two memories here say the same, or nearly so")
def show_duplicates(value: dict[str, Any]) -> Screen:
    """List memories that say the same as another one, or nearly so."""
    for number, row in enumerate(value["duplicates"]):
        stays, goes = row["memories"]
        near = f"nearly the same: {percent(row['confidence'])} of their words"
        yield bold("the same" if row["kind"] == "duplicate" else near, gap=number > 0)
        for name, memory in (("stays", stays), ("goes", goes)):
            about = f"{memory['id']}, {percent(memory['confidence'])}, {memory['confirmed_at'][:10]}{_by(memory, ', ')}"
            yield dim(about, head=f"{name:<7}")
            yield Line(squeeze(memory["text"]), indent=7, most=2 * LINES)
        yield dim(f"csmd pipeline merge {goes['id']} {stays['id']}", indent=7)
    exact = sum(row["kind"] == "duplicate" for row in value["duplicates"])
    counts = f"{exact} say the same, {len(value['duplicates']) - exact} nearly"
    yield dim(f"{counts}; `csmd pipeline merge` merges the first, `csmd pipeline merge --near` all", gap=True)


#: Kind of an action -> its verb when done and when planned.
DONE_TO_BELIEFS = {
    "merge": ("merged", "would merge"),
    "archive": ("archived", "would archive"),
    "embed": ("waits for its vector", "would embed"),
}


@VERBS.tool("archive", "csm_memory_archive", *verb.PROJECTS, verb.DRY_RUN, sends_by_person=True)
def show_mended(value: dict[str, Any]) -> Screen:
    """Archive faded memories; they stay searchable.

    `csmd pipeline merge --undo ID` brings one back.
    """
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
        yield dim("`csmd pipeline merge --undo ID` takes one back")


@VERBS.action(
    "merge", verb.optional("id", "[ID"), verb.optional("into", "INTO]"),
    verb.flag("--near", help="Of all duplicates also those that only nearly say the same."),
    verb.text("--undo", "ID", "Take back that a memory was merged or archived."), *verb.PROJECTS, verb.DRY_RUN,
)  # fmt: skip
def merge(**options: Any) -> None:
    """Merge memory ID into INTO, or all duplicates here."""
    if options["undo"] and (options["id"] or options["near"]):
        raise click.UsageError("--undo goes with one ID and nothing else")
    if options["near"] and options["id"]:
        raise click.UsageError("--near is for all duplicates, not for two that are named")
    if options["id"] or options["undo"]:  # then no project is meant
        del options["project"], options["all_projects"]
    verb.reply("csm_memory_merge", show_undone if options["undo"] else show_mended, options, sends_by_person=True)


def show_undone(value: dict[str, Any]) -> Screen:
    """The memory that is no longer merged or archived."""
    stands = "would stand" if value["dry_run"] else "stands"
    origin = f", apart from {value['from']}" if value["from"] else ""
    yield Line(f"{value['undone']} {stands} by itself again{origin}: {squeeze(value['text'])}", most=LINES)


@VERBS.action("governance")
def governance(as_json: bool) -> None:
    """Show whether the rules of what may be believed hold.

    The exit code is 1 where one is broken.
    """
    value = verb.ask("csm_memory_governance_report")
    verb.print_answer(value, as_json, show_governance)
    if not value["holds"]:
        raise SystemExit(1)


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
    yield Line(f"{amount(len(value['rules']), 'rule')}: {state}", gap=True)


@VERBS.action(
    "supersede", verb.argument("old", "OLD"), verb.optional("new", "NEW"),
    verb.flag("--undo", help="Restore OLD; csmd does not replace it with the same memory again."),
)  # fmt: skip
def supersede(**options: Any) -> None:
    """Replace memory OLD with NEW (--undo restores OLD)."""
    if not options["new"] and not options["undo"]:
        raise click.UsageError("name the memory that holds now, or give --undo")
    verb.reply("csm_memory_supersede", show_superseded, options, sends_by_person=True)


def show_superseded(value: dict[str, Any]) -> Screen:
    """The memory that was replaced, or restored."""
    if value["undone"]:
        stays = f"{percent(value['confidence'])} sure; {value['was_superseded_by']} stays"
        yield from render.done(f"{value['id']} holds again: {value['text']}", stays)
        return
    yield f"Replaced {value['id']} with {value['superseded_by']}: {value['text']}"
    if value["rest"]:
        yield Line(f"Still active from it: {value['rest']['id']}: {value['rest']['text']}", most=4)
    yield dim("Undo: csmd undo")


def show_pinned(value: dict[str, Any]) -> Screen:
    """Whether a memory is pinned now."""
    is_pin = value["verb"] == "pin"
    if not value["changed"]:
        return [f"Nothing to do: {value['id']} is {'' if is_pin else 'not '}pinned"]
    change = f"{'Pinned' if is_pin else 'Unpinned'} {value['id']}: {value['text']}"
    return render.done(change, "Undo: csmd undo")


VERBS.row(
    "pin", "csm_memory_pin", show_pinned, "Pin a memory: it never fades and stays as sure as it is.", verb.ID,
    sends_by_person=True, fixed={"undo": False},
)  # fmt: skip
VERBS.row(
    "unpin", "csm_memory_pin", show_pinned, "Unpin a memory: it fades from now on as others do.", verb.ID,
    sends_by_person=True, fixed={"undo": True},
)  # fmt: skip


# --- what may become a memory

#: Step of a plan -> its words when planned and when done.
STEPS = {
    "promote": ("becomes a memory", "became a memory"),
    "known": ("known already", "known already"),
    "review": ("a person has to say", "a person has to say"),
    "wait": ("waits", "waits"),
}


@VERBS.tool(
    "packets", "csm_memory_packets", *verb.PROJECTS, verb.limit(30), verb.text("--session", "ID", "Only of this session."),
    verb.option("--kind", type=click.Choice(get_args(PacketKind)), help="Only of this kind."),
    verb.text("--since", "DAY", "Only what was observed since: 2026-05-04, 30d."),
)  # fmt: skip
@render.if_empty("packets", "nothing was observed here yet")
def show_packets(value: dict[str, Any]) -> Screen:
    """List what was observed in sessions."""
    for day, packets in groupby(value["packets"], key=lambda packet: when(packet["at"])[:10]):
        yield bold(day)
        for packet in packets:
            state = packet["state"]
            mood = [state["stance"]] if state["stance"] != "unknown" else []
            mood += [
                f"{name} {state[name] * 100:.0f}" for name in ("frustration", "urgency") if (state[name] or 0) >= 0.2
            ]
            ended = "" if packet["outcome"] in ("", "ok", "asked") else f" ({packet['outcome']})"
            about = f"   {', '.join(mood)}" if packet["kind"] in ("order", "scope") and mood else ""
            head = f"{when(packet['at'])[11:16]}  {packet['kind']:<9}  "
            yield Line(f"{packet['subject']}{ended}{about}", head=head, most=2)


@VERBS.tool("candidates", "csm_memory_candidate_report", *verb.PROJECTS)
def show_candidates(value: dict[str, Any]) -> Screen:
    """List what waits to become a memory, and what it waits for."""
    for kind, counts in value["counts"].items():
        by_status = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
        yield Line(by_status, head=f"{kind.replace('_', ' '):<18}")
    if not value["candidates"]:
        yield "nothing waits here" if value["counts"] else "there are no candidates here yet"
        return
    yield ""
    for candidate in value["candidates"]:
        reasons = "; ".join(candidate["why"] or [candidate["reason"]])
        yield Line(candidate["text"])
        yield Line(f"{candidate['status'].replace('_', ' ')}: {reasons}", indent=2)
        yield from _rests_on(candidate)
    yield dim("`csmd pipeline promote --dry-run` shows what would become a memory")


def _rests_on(candidate: dict[str, Any]) -> Screen:
    """The line below a candidate: its id, kind, confidence, reason and project."""
    kind, sure = candidate["kind"].replace("_", " "), f"confidence {candidate['confidence'] * 100:.0f}"
    about = join(kind, sure, candidate["reason"], candidate["project"] and f"in {candidate['project']}")
    return [dim(f"{candidate['id']}  {about}", indent=2), ""]


@VERBS.tool(
    "promote", "csm_belief_promote", *verb.PROJECTS,
    verb.flag("--dry-run", "apply", help="Only show the plan.", flag_value=False, default=True),
    verb.flag(
        "--relaxed", "profile", flag_value="relaxed", default="default",
        help="Lower thresholds: what a small history would give. For trying out.",
    ),
    sends_by_person=True,
)  # fmt: skip
@render.if_empty("actions", "nothing waits here")
def show_promoted(value: dict[str, Any]) -> Screen:
    """Make memories of candidates that are sure enough."""
    promoted = [action for action in value["actions"] if action["step"] == "promote"]
    for action in value["actions"]:
        ident = f" {action['memory_id']}" if action["memory_id"] and action in promoted else ""
        reasons = f": {'; '.join(action['reasons'])}" if action["reasons"] else ""
        yield bold(action["candidate"]["text"])
        yield Line(f"{STEPS[action['step']][value['applied']]}{ident}{reasons}", indent=2)
        yield from _rests_on(action["candidate"])
    would = f"{amount(len(promoted), 'candidate')} would become a memory"
    yield bold(amount(len(promoted), "new memory") if value["applied"] else would)


@VERBS.action("advisory", verb.PROJECT, verb.flag("--debug", help="Show every line, and why it is in or not."))
def advisory(debug: bool, **options: Any) -> None:
    """Preview tentative observations from recent sessions."""
    tool = "csm_living_state_debug" if debug else "csm_living_state_preview"
    verb.reply(tool, show_advisory_lines if debug else show_advisory, options)


def show_advisory(value: dict[str, Any]) -> Screen:
    """The text as a session would get it, and whether sessions do."""
    yield from show_injection(value, nothing="nothing: there is nothing unsettled about this project")
    yield _switch(value)


def show_advisory_lines(value: dict[str, Any]) -> Screen:
    """Every line by part, those that are left out with the reason."""
    for part, lines in groupby(value["lines"], key=lambda line: line["part"]):
        yield bold(part)
        for line in lines:
            text = f"{line['text']} ({line['tail']})"
            yield Line(text, head="  + ") if line["told"] else dim(f"{text}; left out: {line['why']}", head="  - ")
    if not value["lines"]:
        yield "nothing: no session here was looked at yet"
    count = f"{sum(line['told'] for line in value['lines'])} of {amount(len(value['lines']), 'line')}"
    room = f"{value['tokens']} of {value['max_tokens']} tokens"
    yield dim(f"{count}, {room}; trimmed in this order: {', '.join(value['trimmed'])}", gap=True)
    yield _switch(value)


def _switch(value: dict[str, Any]) -> Line:
    """Whether briefs hold the preview, and how to switch it on."""
    off = "no brief holds it; `csmd config set stages.advisory true` lets them"
    return dim(f"{value['note']}; {'briefs hold it' if value['enabled'] else off}")


# --- the self model

#: Fewer sessions than that give no figure.
FEW = 3
#: Models and clients that are shown, the latest.
SHOWN = 6


@VERBS.tool("self", "csm_self_model", *verb.PROJECTS)
def show_self(value: dict[str, Any]) -> Screen:
    """Show success rates by kind of work."""
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
    if links := ", ".join(f"{count} {kind}" for kind, count in value["links"].items()):
        yield dim(f"links between sessions: {links}; `csmd session digest ID` shows those of one", gap=True)


def _figure(work: dict[str, Any]) -> str:
    """How often one kind of work ended well, with its confidence in percent."""
    if not work["decided"]:
        return f" -  {amount(work['sessions'], 'session')}, none of which showed how it ended"
    figure = f"{work['confidence'] * 100:>3.0f}" if work["decided"] >= FEW else "few"
    return f"{figure}  {work['well']} of {amount(work['decided'], 'session')} ended well"


# --- review

#: Key -> answer; with the former key of `keep`, which the viewer moves by.
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
    verb.limit(50, about="How many at most."), verb.yes("Do not ask before all of an import is kept or dropped."),
)  # fmt: skip
def review(
    id: str, undo: bool, project: str | None, all_projects: bool, limit: int, yes: bool, as_json: bool, **answers: Any,  # noqa: A002
) -> None:  # fmt: skip
    """Answer what waits for you, one key each.

    ID is that of a memory, of a question, or of an import: all that waits of it is kept or dropped at once. An import is
    also named by its program or its path.
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
    """Has the daemon carry an answer out; `options` are its text, the other memory and the version that was seen."""
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
    """The import that was typed, of which something waits; None where a memory or a question was, or nothing waits of it."""
    if what not in ("keep", "drop") or re.fullmatch("[mc][0-9a-f]{6,}", typed):
        return None
    imports = verb.ask("csm_review_list", project="", asking=verb.resolve_project(None), limit=1)["imports"]
    named = [row for row in imports if row["id"].startswith(typed) or typed in (row["source"], row["path"])]
    if len(named) > 1:
        raise CsmdError(
            f"{typed} names {len(named)} imports", hint=f"give the id of one: {', '.join(row['id'] for row in named)}"
        )
    return next(iter(named), None)


def _answer_import(ident: str, what: str) -> Any:
    """Has the daemon keep or drop all that waits of an import."""
    asking = verb.resolve_project(None)
    return verb.ask(
        "csm_review_import", id=ident, verb=what, project="", asking=asking, by_person=verb.is_interactive()
    )


def _undo_answer(ident: str) -> Any:
    """Has the daemon undo an answer; the last one for ""."""
    return verb.ask("csm_review_undo", id=ident, asking=verb.resolve_project(None), by_person=verb.is_interactive())


class Answered(NamedTuple):
    """An answer: the place of its item, its id, its verb, how many memories it was about, and the items that it took away."""

    at: int
    id: str
    verb: str
    amount: int = 1
    gone: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True, kw_only=True)
class Sitting:
    """One review at the terminal: the items, the current place, and the answers, so that the last can be undone."""

    items: list[dict[str, Any]]
    total: int
    keys: verb.Keys
    at: int = 0
    imports: dict[str, dict[str, Any]]
    #: The answers that were not undone, the last one last.
    answered: list[Answered] = field(default_factory=list)

    def run(self) -> None:
        """Asks about each item until the last one or `q`."""
        while self.at < len(self.items):
            item = self.items[self.at]
            waiting = self.imports.get(item.get("import", ""))
            number = 1 + self.at + sum(answer.amount for answer in self.answered if answer.gone)
            render.show(show_item(item, number=number, total=self.total, undo=bool(self.answered), waiting=waiting))
            while not self._pressed(item, self.keys.press()):
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

    def _pressed(self, item: dict[str, Any], key: str) -> bool:
        """Acts on a key; False for one that means nothing here, or whose answer was abandoned."""
        key = key.lower()
        try:
            if key in (REVIEW_QUIT.key, verb.END):
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
            with self.keys.lines():
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
        render.show(
            [
                f"  all {many(waiting['waiting'], 'memory')} from {waiting['source']}: {keep} keep   {drop} drop   any other key: neither"
            ]
        )
        what = {keep: "keep", drop: "drop"}.get(self.keys.press().lower())
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
    """The text that a person rewords: of the memory that it is about where there is one."""
    memories = item["memories"] if item["about"] in ("memory", "pair", "change") else []
    return str(memories[0]["text"] if memories else item["text"])


def _is_pair(item: dict[str, Any]) -> bool:
    """Whether an item names both the memory that is replaced and the one that replaces it."""
    return item["about"] in ("pair", "change") or (item["about"] == "belief" and bool(item["memories"]))


#: What an item asks about -> what its two memories are called, in their order; each is then shown instead of a text of both.
NAMES_OF_TWO = {"pair": ("1. ", "2. "), "change": ("older: ", "newer: ")}


def _names_of_two(item: dict[str, Any]) -> tuple[str, ...]:
    """What the two memories are called that an item asks about; () where it asks about something else, or one is gone."""
    return NAMES_OF_TWO.get(item["about"], ()) if len(item["memories"]) == 2 else ()


def _ask_for_other(item: dict[str, Any]) -> str:
    """The id of the memory that a person names: one of those shown by its number, or any by its id; "" for none."""
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
    """One item as it is asked about; `waiting` is the import that it is of, if more waits of that."""
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
    """The list with the commands that answer it, for an output on which no key can be pressed."""
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

    That is an answer in `csmd review`, an edit, a pin, a replacement, what you had csmd remember, or what you called done.
    ID names another one, by itself or by its memory, or a dream. What was forgotten stays out until you say it anew.
    """
    if id.startswith("d"):
        dream = context.find_root().command.get_command(context, "dream")  # type: ignore[attr-defined]
        context.invoke(dream.commands["undo"], id=id, yes=yes, dry_run=False, as_json=as_json)
    else:
        verb.print_answer(_undo_answer(id), as_json, show_answer_undone)
