"""What a user's statement is worth at a start: by the evidence that it lasts, how long it stays, and what is soon over."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from recall_fixtures import memory

from csmd.dream import page_content
from csmd.knowledge import Memory, Provenance
from csmd.recall import evidence

#: Name -> (what the user said, the evidence or the reason against it).
SAID: dict[str, tuple[str, str]] = {
    "a ban": ("never write to the archive bucket from a worker", "said for always"),
    "a rule behind a reason": ("the vendor bills by call, so always batch the lookups", "a rule without exception"),
    "a ban with its always at the end": ("don't hand-edit the tariff tables, ever", "said for always"),
    "a rule that allows nothing else": ("rates come from the treasury, no exceptions", "said for always"),
    "a duty": ("invoices must carry the order number", "a rule without exception"),
    "a preference": ("i prefer one assertion a test", "a rule without exception"),
    "all that is allowed, with its cause": (
        "only drawn labels, because the plotter has no fonts",
        "stated with its cause",
    ),
    "all that is allowed of a thing": (
        "Rust, only stable features, since the clerks build offline",
        "stated with its cause",
    ),
    "what is allowed of the things at hand": ("only the first ledger, because the rest is late", evidence.PLAIN),
    "what happened and why": ("only two labels came, because the roll was short", evidence.PLAIN),
    "what is ruled out by a state": ("No plotter fonts, the firmware has no room to spare", "stated with its cause"),
    "what is missing": ("no entry in the ledger, so the till is idle", evidence.PLAIN),
    "what did not come": ("No labels came out, the roll was empty", evidence.PLAIN),
    "no luck": ("no luck, the plotter is still offline", evidence.PLAIN),
    "a choice for a standing reason": (
        "we print with Skia, not Cairo, because the clerks already know it",
        "decided",
    ),
    "a choice until another day": ("we print with Skia, not Cairo, at the moment", evidence.PLAIN),
    "what somebody met": ("we saw gaps, not lines, because the pen was dry", evidence.PLAIN),
    "a dislike of a kind": ("I don't like labels without a border", "a rule without exception"),
    "a dislike of a habit": ("I hate it when a label runs over two pages", "a rule without exception"),
    "a dislike of a thing at hand": ("I don't like the second label", evidence.PLAIN),
    "a dislike of how it looks": ("I hate how slow this plotter is", evidence.PLAIN),
    "a state of the moment": ("the roll has 90 labels now", evidence.PLAIN),
    "a liking of the moment": ("i like the second layout", evidence.PLAIN),
    "who is in charge": ("mira owns the billing adapter", "a rule without exception"),
    "a choice": ("we use bazel here, not make", "lays something down"),
    "what was decided": ("we agreed to render invoices with Cairo, because the printers are old", "decided"),
    "a switch": ("we moved to Cairo for invoices, because the old renderer has no maintainer", "decided"),
    "a switch in passing": ("let's retire Cairo, invoices get Skia from here on", "said for always"),
    "a switch by halves": ("we're moving invoices from Cairo to Skia", "decided"),
    "what will be so": ("we'll keep tariffs as fractions", "decided"),
    "what is not wanted at all": ("I don't want Cairo in this repo", "decided"),
    "what is wanted of everything": ("I'd like all renderers to be pure", "decided"),
    "a value that is set": ("cap the render queue at 40 jobs", "decided"),
    "a look that is set": ("set the gutter to 12px", "tells nothing by itself"),
    "what is done next": ("we'll write the export tomorrow", evidence.PLAIN),
    "what is so, with its cause": (
        "the clerks have no network, so ledgers are copied at night",
        "stated with its cause",
    ),
    "a state of the day, with its cause": ("the clerks are late because the ferry is slow today", evidence.PLAIN),
    "a correction that orders something at hand": ("correction, print the second ledger", evidence.PLAIN),
    "a rule with an arrow": ("Never rename the till -> desk in a ledger.", "said for always"),
    "a figure of the moment, with its cause": (
        "the ledger has only 40 pages this week because the plotter is being repaired",
        evidence.PLAIN,
    ),
    "what went wrong, with its cause": ("the ledger is blank because the plotter has no paper", evidence.PLAIN),
    "a task of the day": ("we need to rewrite the ledger", evidence.PLAIN),
    "a task with a limit": ("add a ledger of at most 40 rows", "decided"),
    "a correction": ("correction: ledgers are copied by the clerks", "decided"),
    "a word of a correction": ("one correction though, the ledgers look narrow", evidence.PLAIN),
    "a change of mind": ("I changed my mind about the plotter. labels get a page each", "decided"),
    "a pick of alternatives": ("Should I keep the sums in the table or compute them? -> compute", "picked"),
    "a pick of errands": ("Should I commit the ledger or run the tests? -> commit", "of the matter at hand"),
    "a pick that nobody asked for": ("The review has two findings -> never close the till", "of the matter at hand"),
    "what something needs": ("the importer needs two gigabytes of memory at least", "lays something down"),
    "a pick": ("Which queue should the mailer use? -> the one in Postgres", "picked"),
    "an answer to what the user saw": ("Where did the till stop printing? -> behind the lid", "of the matter at hand"),
    "a yes to an errand": ("Shall I push the branch now? -> yes", "of the matter at hand"),
    "a yes to what lays something down": ("Retries are always capped at three. -> yes", "a rule without exception"),
    "an opinion on the matter at hand": ("I'd always go with the second one here", "of the matter at hand"),
    "an order for the moment": ("only touch the parser in this commit", evidence.PLAIN),
    "a guess": ("maybe we should never cache that", evidence.PLAIN),
    "a rule in doubt": ("the cache must never grow, it seems", evidence.PLAIN),
    "what is wrong": ("the counter in the footer is broken and needs a second look", evidence.PLAIN),
    "what leads to a quotation": ("the table is never drawn like this:", evidence.PLAIN),
    "what was named before": ("it's never written twice", evidence.PLAIN),
    "a yes to what is not quoted": ("I'd go about it like this: -> yes", "of the matter at hand"),
    "a fact by itself": ("the parser is written by hand", "nothing says that it lasts"),
    "what is so now": ("the list currently lacks an index and needs one", "about to change"),
    "a ban in German": ("Nie direkt auf main pushen", "a rule without exception"),
    "a ban that opens with a negation in German": ("Keine Bons ohne Datum drucken", "a rule without exception"),
    "a German negation of nothing": ("Kein Problem, wir drucken die Bons mit Skia", "lays something down"),
    "a negation that forbids nothing in German": ("die Bons vom Montag fehlen nicht alle", "lays something down"),
    "a negation at the beginning of a clause in German": (
        "Bons: keine Nummern mehr drucken",
        "a rule without exception",
    ),
    "what another did before a rule": ("Ines wrote the bons. So: bons are never blank", "said for always"),
    "a state of the speaker in German": ("ich habe nur zwei Bons gesehen", "of the matter at hand"),
    "a failure in German": ("die Kasse ist kaputt und zeigt nur Nullen", evidence.PLAIN),
    "a rule behind a courtesy": (
        "It might be useful to know that the plotter is always off at night, as the guard insists.",
        "a rule without exception",
    ),
    "a wish with its cause": (
        "I think I would rather we stamped the bons, because bare ones got us into a dispute before.",
        "stated with its cause",
    ),
    "a rule behind what refers back": (
        "That was Ines. I told her that bons must carry a stamp of the till.",
        "a rule without exception",
    ),
    "an alternative taken by its name": ("Paper bons need a second printer -> paper", "picked"),
    "a yes to an account": ("Paper bons have a second printer -> yes", evidence.PLAIN),
    "what another said": ("I got this remark on the till: bons must never be blank", "somebody else said it"),
    "a finding with its severity": ("Medium: bons are never checked for a stamp", "somebody else said it"),
    "what only its context makes clear": ("in that case every bon gets a stamp", evidence.PLAIN),
    "an option that is not quoted": ("let's go with option b for the bons", "of the matter at hand"),
    "a thing that is wanted": ("we need a way to stamp bons for each till", "lays something down"),
    "a thing that is wanted once": ("we need a second stamp", evidence.PLAIN),
    "what the assistant is told of its answer": ("You indicate the bons went up from 3 to 5", evidence.PLAIN),
    "a change that is only wondered about": ("some thoughts on moving the bons from paper to cards", evidence.PLAIN),
    "a ban in Chinese": ("千万不要直接推送到主分支", "a rule without exception"),
}


def said_by_user(text: str, **changes: object) -> Memory:
    return memory(text, tier="daily", origin="stated", **changes)


def check(name: str) -> None:
    text, why = SAID[name]
    assert evidence.rate(said_by_user(text), sessions_since=0).why == why


@pytest.mark.parametrize("name", SAID)
def test_a_statement_is_told_by_the_evidence_that_it_lasts(name: str) -> None:
    check(name)


ACCOUNT = (
    "I looked at the bons of the last week and at the two tills of the shop, and the clerks had sorted them by hand"
    " this time, which took them until the evening."
)
#: Name -> (a long statement, the part of it that lasts).
LASTING_PARTS: dict[str, tuple[str, str]] = {
    "a rule in an account": (f"{ACCOUNT} Never sort bons by hand. I went home.", "Never sort bons by hand."),
    "a rule with what follows from it": (
        f"{ACCOUNT} Bons are always stamped. So they need no second stamp.",
        "Bons are always stamped. So they need no second stamp.",
    ),
    "a short one": ("I looked at the bons. Never sort bons by hand.", "I looked at the bons. Never sort bons by hand."),
    "nothing that lasts": ("I looked at bons. " * 12, "I looked at bons. " * 12),
}


@pytest.mark.parametrize("name", LASTING_PARTS)
def test_of_a_long_statement_only_what_lasts_is_shown(name: str) -> None:
    text, part = LASTING_PARTS[name]
    assert evidence.lasting_part(text) == part


@pytest.mark.parametrize(
    ("promise", "is_named"),
    [
        ("I promised Ines the bons by the 12th", True),
        ("I promised Ines something to print by the 12th", False),
        ("is the printer broken on Monday?", False),
        ("that is due on Monday", False),
    ],
)
def test_a_promise_is_shown_that_says_what_is_promised(promise: str, is_named: bool) -> None:
    assert evidence.names_promise(said_by_user(promise)) is is_named


def test_what_is_durable_for_having_been_said_twice_was_not_asked_for() -> None:
    known = replace(said_by_user("the parser is written by hand"), tier="durable")
    again = Provenance(uuid="u9", session_id="another", at=known.created_at, role="confirms")
    assert evidence.was_asked_to_remember(known)
    assert not evidence.was_asked_to_remember(replace(known, provenance=(*known.provenance, again)))


QUEUE, UPLOADS = (
    "Which queue should the mailer use? -> RabbitMQ (Recommended)",
    "Where do the uploads live? -> In Minio",
)
#: Name -> (what the user picked or said, what was said or committed later, whether that ends it).
OVERTAKEN: dict[str, tuple[str, str, bool]] = {
    "another one instead": (QUEUE, "We decided to use Kafka instead of RabbitMQ for the mailer.", True),
    "not that one": (QUEUE, "Use Kafka for the mailer queue, not RabbitMQ.", True),
    "dropped": (QUEUE, "We dropped RabbitMQ, the mailer uses Kafka now.", True),
    "no longer": (UPLOADS, "The uploads no longer live in Minio, they are on disk.", True),
    "refused": (QUEUE, "No, don't use RabbitMQ, use Kafka for the mailer queue.", True),
    "worked against": (QUEUE, "Replace RabbitMQ with Kafka in the mailer", True),
    "another value after second thoughts": (
        "How many bons should a till keep? -> 40", "Second thoughts on the bons. The tills are small. 25.", True,
    ),
    "another value of something else": (
        "How many bons should a till keep? -> 40", "Second thoughts on the lids. They get 25.", False,
    ),
    "a value without second thoughts": ("How many bons should a till keep? -> 40", "The tills print 25 bons an hour.", False),
    "a rule on what was picked": (QUEUE, "Never restart RabbitMQ by hand.", False),
    "a limit of what was picked": (QUEUE, "The mailer must not open more than two RabbitMQ channels.", False),
    "another matter": (QUEUE, "The web app uses Redis.", False),
    "work on what was picked": (QUEUE, "Add a dead letter queue to RabbitMQ", False),
    "the same, once more": (QUEUE, "The mailer uses RabbitMQ.", False),
    "a complaint that was mended": ("The importer loses the time zone of events", "Fix importer losing the time zone", True),
    "mended as Conventional Commits say it": (
        "the date picker closes when the month changes", "fix(ui): date picker closes on month change", True,
    ),
    "another thing mended": ("The importer loses the time zone of events", "Fix the width of the sidebar", False),
    "work that mends nothing": ("The importer loses the time zone of events", "Show the time zone in the importer", False),
    "a rule that is mended": ("The importer must always keep the time zone", "Fix importer losing the time zone", False),
}  # fmt: skip


@pytest.mark.parametrize("name", OVERTAKEN)
def test_what_was_turned_down_or_mended_later_is_overtaken(name: str) -> None:
    text, later, ends = OVERTAKEN[name]
    one = said_by_user(text)
    after, before = ("2999-01-01T00:00:00.000Z", later), ("1999-01-01T00:00:00.000Z", later)
    is_commit = later[-1] != "."
    said, commits = ([], [after]) if is_commit else ([after], [])
    assert evidence.is_overtaken(one, said, commits) is ends
    assert not evidence.is_overtaken(one, [before], [before]), "what was said before ends nothing"
    assert not evidence.is_overtaken(replace(one, pinned=True), said, commits)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (QUEUE, "Which queue should the mailer use? -> Kafka", True),
        (QUEUE, "Which queue shall the mailer use -> Kafka", True),
        (QUEUE, "Which log should the mailer use? -> stdout", False),
        (QUEUE, UPLOADS, False),
        ("Shall I? -> yes", "Shall I? -> no", False),
        (QUEUE, "The mailer uses Kafka.", False),
    ],
)
def test_of_a_question_that_is_answered_again_the_later_answer_is_told(one: str, other: str, same: bool) -> None:
    assert evidence.answers_same(one, other) is same is evidence.answers_same(other, one)


RULE = "never write to the archive bucket from a worker"


def test_nobody_but_the_user_is_told_at_a_start_unless_somebody_pinned_it() -> None:
    for changes, why in (
        ({"authority": "assistant"}, "an assistant said it"),
        ({"scene": 'in a review, after "the bucket"'}, "a review said it"),
    ):
        one = replace(said_by_user(RULE), **changes)
        assert evidence.rate(one, sessions_since=0) == evidence.Worth(0.0, why)
        assert evidence.rate(replace(one, pinned=True), sessions_since=10_000).why == "pinned"


def test_what_the_user_says_fades_over_sessions_and_said_again_it_does_not() -> None:
    for text in ("the archive bucket must be read-only", "we use bazel here, not make"):
        one = said_by_user(text)
        worths = [evidence.rate(one, sessions_since=passed).value for passed in range(120)]
        assert worths == sorted(worths, reverse=True) and worths[0] > evidence.MIN_WORTH and worths[-1] == 0.0
        left = evidence.rate(one, sessions_since=0).left
        assert worths[math.floor(left)] > 0.0 == worths[math.floor(left) + 1]
        again = replace(one, provenance=tuple(Provenance(uuid=f"u{n}", session_id=f"s{n}", at="") for n in (1, 2)))
        assert evidence.rate(again, sessions_since=10_000).why == "said again"


# --- What was about to change, was doubted or done at once does not last on a page; all else does, and what a person wrote.


TRANSIENT = {
    "a state that somebody is about to leave": ("Right now the build fakes both binaries", "user", "about to change"),
    "one that starts with when": ("now when I rerun enable it writes the local settings", "user", "about to change"),
    "one that is asked to change": (
        "the importer writes its log beside the data. We should change it to a folder of its own",
        "user",
        "about to change",
    ),
    "a doubt": ("we can drop the wrapper. But I'm not convinced it helps", "user", "doubted"),
    "a doubt in other words": ("I might be wrong, but read-only sessions make no commit", "user", "doubted"),
    "an assistant's report": ("I've set up a script that lets you switch between both", "assistant", "a report"),
    "an assistant's report with a word before it": ("Perfect! I have added the settings", "assistant", "a report"),
    "an assistant's list of edits": ("Changes made to `harness.sh`: ids are proper ones now", "assistant", "a report"),
    "an assistant's report of one edit": (
        "The test looked for go run. Updated it to look for the wrapper",
        "assistant",
        "a report",
    ),
    "what a plan sets out to change": ("The importer currently reads each file twice", "assistant", "about to change"),
    "a rule beside what is so now": (
        "Every table has an owner. The orders table is currently without one",
        "user",
        "about to change",
    ),
    "a report of a commit": ("Both files are now committed as 1f2e3d4, the hook passed", "assistant", "a report"),
    "a commit of another kind": ("A commit needs two reviews in this repository", "assistant", ""),
    "what always holds, whatever stands beside it": ("the list currently always opens at the top", "user", ""),
    "what others do": (
        "The most common third template across projects that have one is a form for documents",
        "assistant",
        "of other projects",
    ),
    "what all of ours do": (
        "All projects of the workspace share one linter, because the pipeline runs it",
        "assistant",
        "",
    ),
    "a rule": ("Tests live beside the code they try", "user", ""),
    "what is so now": ("the exporter currently writes one file a day", "user", "about to change"),
    "what there is now": ("The current table sorts rows by name", "user", "about to change"),
    "a current of another kind": ("Alternating current needs a transformer here", "user", ""),
    "an assistant's finding": ("Right now the cache is never emptied, because nobody calls flush", "assistant", ""),
    "a decision of several": ("let's completely remove the legacy importer", "user", ""),
}


def said(text: str, by: str) -> Memory:
    return replace(memory(text, authority=by), session_id="s1", origin="stated")


def check_transient(name: str) -> None:
    text, by, why = TRANSIENT[name]
    assert evidence.find_transience(said(text, by)) == why


@pytest.mark.invariant(
    "A session's start and a page leave out what was about to change, was doubted or done at once, what one session told twice, and neither a rule, nor a correction that nobody doubts, nor what a person pinned or wrote there"
)
@pytest.mark.parametrize("name", TRANSIENT)
def test_what_is_soon_over_says_why(name: str) -> None:
    check_transient(name)


def test_an_order_for_the_moment_is_no_plan_that_is_open() -> None:
    order = said("It says work in progress; Let's replace that with Preview", "user")
    assert evidence.find_transience(order) == ""
    assert evidence.find_transience(replace(order, gate="promissory")) == "done at once"


@pytest.mark.invariant(
    "A session's start and a page leave out what was about to change, was doubted or done at once, what one session told twice, and neither a rule, nor a correction that nobody doubts, nor what a person pinned or wrote there"
)
def test_a_correction_or_a_rule_lasts_whatever_stands_beside_it() -> None:
    for body in (
        "no, can you change this: we use uv here",
        "Currently we support Python 3.11 only, so newer syntax must not be used",
        "At the moment of a crash the journal is flushed",
        "Ship 2.0 in May: please keep the old endpoint alive until then",
    ):
        for gate in ("correction", "promissory"):
            one = replace(said(body, "user"), gate=gate)
            assert evidence.find_transience(one) == "" or (gate, body[:6]) == ("promissory", "no, ca")


def test_what_a_person_pinned_or_wrote_there_stays_and_all_else_of_it_is_counted_and_not_listed() -> None:
    one = replace(said(TRANSIENT["a doubt"][0], "user"), tier="durable")
    listed = {}
    for name, memory_ in {
        "said": one,
        "pinned": replace(one, pinned=True),
        "written": replace(one, session_id=""),
    }.items():
        (section,) = page_content.build_sections([memory_], page_content.find_heading, page_content.HEADING_ORDER)
        listed[name] = (len(section.items), section.more)
    assert listed == {"said": (0, 1), "pinned": (1, 0), "written": (1, 0)}


def test_a_decision_outlasts_a_choice_in_passing() -> None:
    decision, choice = (said_by_user(SAID[name][0]) for name in ("what was decided", "a choice"))
    assert evidence.rate(choice, sessions_since=10).value == 0.0 < evidence.rate(decision, sessions_since=10).value
