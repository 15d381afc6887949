"""Which sentences are no statement whoever weighs them: one table of what they look like; pure.

What is refused says nothing that lasts: an errand or a question of the moment, what a program printed, praise, a list
of what was edited. A case that goes wrong is mended in the table. Gaps in the patterns are bounded.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from csmd.patterns import at_first_use

Speaker = Literal["user", "assistant"]

#: Text that a program wrote in the user's name: the turn says nothing.
NOT_SAID = at_first_use(
    r"\s*(?:<(?:command-|local-command|bash-|task-notification|user-memory-input|teammate-message)"
    r"|\[Request interrupted"
    r"|Caveat: |Stop hook feedback|Operation stopped by hook|Base directory for this skill"
    r"|This session is being continued|/[\w:.-]+(?:\s|$))"
)

#: What may stand before a request, and inside it.
_PLEASE = r"^\W{0,3}(?:(?:please|ok|okay|yes|and|so|now|also|then),? ){0,2}"
_SOFTLY = r"(?:(?:please|also|again|maybe|just|quickly|now|then) ){0,2}"

#: (what it is, first letters of whom it holds for, pattern): a sentence that matches any is not a statement. It is asked in
#: small letters: a pattern that need not care for capitals takes half the time.
# fmt: off
REFUSED: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("narration", "a", at_first_use(
        r"^\W{0,3}(?:(?:good|great|perfect|excellent|ok(?:ay)?|now|first|next|alright|done)[,.!: -]{1,3}){0,2}"
        r"(?:let me|let's (?:see|check|look)|i['’]ll|i will|i['’]m going to|i am going to|now i|now let"
        r"|here['’]s|here is|here are|i can see|i see)\b")),
    ("greeting", "ua", at_first_use(
        r"^\W{0,3}(?!(?:hi|hello|hey|good morning)\W{1,3}i(?:['’]?m| am) [a-z])(?:hi|hello|hey|thanks?|thank you|great|perfect|nice|cool|good morning|yes|no|ok|okay|sure"
        r"|done|you['’]re right)\b(?!,? (?:we|our|the|it['’]?s)\b)[\w ,']{0,20}[.!]*$")),
    ("counts", "ua", at_first_use(r"\b\d+ (?:tests? )?(?:pass(?:ed|ing)|failed|skipped)\b")),
    ("counts", "ua", at_first_use(
        r"^\W{0,3}(?:all )?(?:tests?|build|lint\w*|format\w*|type[- ]?check\w*)\b.{0,30}\b(?:pass(?:es|ed)?|clean|succeed\w*|no (?:new )?(?:issues|errors|warnings|problems))\b.{0,20}$")),
    ("offer", "a", at_first_use(
        r"^\W{0,3}(?:(?:would|do) you (?:like|want)|want me|should i|shall i|let me know|ready to|feel free)\b")),
    ("question", "ua", at_first_use(
        r"^\W{0,3}(?:(?:ok|and|so|but|hmm|also),? )?(?:should i|shall i|what|how|when|where|who|which|do we have"
        r"|are there|is there|does it|do i)\b.{0,300}\?$")),
    ("look", "ua", at_first_use(
        r"^\W{0,3}(?:(?:and|so|yes|ok),? )?(?:can|could) you (?:please |also |again )?(?:take a look|check|look"
        r"|have a look)[\w ]{0,24}[?.:]?$")),
    ("log", "ua", at_first_use(
        r"^(?:\W{0,3}(?:error|fatal|warning|usage|exit code|failed to [\w ]{2,40}):|❯|\$ |> |⎿|│|├|└|•\s{2,}"
        r"|\d{4}-\d\d-\d\d[t ]\d\d:)")),
    # What is asked for now and says nothing that lasts.
    ("check", "u", at_first_use(
        rf"{_PLEASE}(?:can|could|would|will) (?:you|we) {_SOFTLY}(?:(?:double|triple)[- ])?(?:check|verify|find out"
        r"|figure out|see)(?: again| too| also)? (?:if|whether|that|there|these|this|the)\b[^?]{0,300}\?(?: .{0,60})?$")),
    ("check", "u", at_first_use(
        rf"[\s,](?:can|could) you {_SOFTLY}(?:(?:double|triple)[- ])?(?:check|verify)(?: again| it| this| that)?\?$")),
    ("errand", "u", at_first_use(
        rf"{_PLEASE}(?:(?:can|could|would|will) you {_SOFTLY})?(?:(?:write|generate|give|make|create|draft|find|show"
        r"|send|tell) me|(?:write|put|save|copy|paste|move) (?:it|this|that)|do (?:some |a (?:bit of )?)?research"
        r"|fix (?:this|that|it|these|(?:the|my) (?:\w+ )?branch)|look at [^\s,]{1,200} and (?:start|begin|implement"
        r"|continue)|compare (?:the|these|both|this)|sum up|summari[sz]e)\b")),
    ("errand", "u", at_first_use(
        rf"{_PLEASE}(?:can|could) (?:we|you) {_SOFTLY}add (?:(?:a|some|more|another) )?(?:unit )?tests? for (?:this|that"
        rf"|it|each|these|those)\b|{_PLEASE}(?:can|could) (?:we|you) {_SOFTLY}(?:add|explain|mention|describe)"
        r" (?:why|how|what|where)\b[^?]{0,200}\?$")),
    ("asks", "u", at_first_use(
        r"^\W{0,3}(?:(?:ok|and|so|but|hmm|also),? )?(?:is|are|was|were|does|do|did|has|have|will) (?:this|that|it|these"
        r"|those|they|the|there|we|you|my|our)\b(?!.{0,200}(?:n['’]t|\bnot\b))[^?]{0,300}\?$")),
    ("asks", "u", at_first_use(
        r"\bor (?:is|are|was|does|do|did|will|has) (?:it|this|that|these|they|the|there|we)\b[^?]{0,200}\?$")),
    ("asks", "u", at_first_use(r"\b(?:lost|gone|messed up|broken|done|finished|running|ready)(?: now)?, right\?$")),
    ("muses", "u", at_first_use(
        r"^\W{0,3}(?:i['’]m|i am) (?:considering|wondering|thinking about|not sure) (?:if|whether)\b")),
    # What points into a list that nobody sees later.
    ("unseen list", "u", at_first_use(
        r"\b(?:address|fix|do|tackle|start with|implement|integrate|take|pick|skip|ignore|apply) (?::? ?#|: |no\.? ?|number"
        r" |point |item |option )?\d{1,2}\b(?=[.,;+&]? ?(?:[+&]|first\b|next\b|now\b|then\b|and\b|only\b|too\b|as well"
        r"\b|\W*$))")),
    ("unseen list", "u", at_first_use(
        r"^\W{0,3}for (?:#|no\.? ?|number |point )?\d{1,4},? (?:there|it|we|i|you|let['’]?s|please|can|could)\b")),
    ("unseen list", "a", at_first_use(
        r"^\W{0,3}(?:(?:my )?(?:first|second|third|next|last|final|one more|another)|\w+ \d) question\b")),
    # What a program printed.
    ("identifiers", "ua", at_first_use(
        r"[0-9a-f](?:[0-9a-f]{7}(?:-[0-9a-f]{4}){3}(?:(?<=/.{23})|(?<![`\w-].{23})-[0-9a-f]{12}(?!`))"
        r"|[0-9a-f]{39}\b(?<![`\w].{40}))")),
    ("printed", "ua", at_first_use(
        r"^(?:(?:author|date|merge|remote|origin|committer): |(?:your|current) branch\b.{1,120}\bis (?:up to date|ahead|behind)"
        r"|\d{1,5} +[+-](?=\W|\w)|[\w.-]{1,60}@[\w.-]{1,80}[ :][~/].{0,160}[>$%#] )")),
    ("printed", "ua", at_first_use(
        r"\b(?:(?:remote|fatal|stderr|stdout): |at [\w$]{1,80}(?:\.[\w$<>`]{1,80}){2,12}\()")),
    ("printed", "ua", at_first_use(r"<[^<>@\s]{1,80}@[^<>@\s]{1,80}>")),
    # Praise, and virtues as a list.
    ("praise", "ua", at_first_use(
        r"^\W{0,3}(?:excellent|strong|clean(?:er)?|better|good|great|solid|clear(?:er)?|comprehensive|thorough|robust"
        r"|improved|nice|easier|simpler|well[- ]\w+)(?: [\w-]+){1,4}(?::| [-–—]) ")),
    ("praise", "ua", at_first_use(
        r"^\W{0,3}(?:type[- ]safety|readability|maintainability|testability|extensibility|clarity|simplicity|pros"
        r"|benefits|advantages)(?::| [-–—])")),
    ("praise", "a", at_first_use(
        r"\bthis is an? (?:\w+ )?(?:solid|great|good|nice|excellent|clean|welcome)\b.{0,30}\b(?:improvement|update|change"
        r"|addition|refactor\w*|work|step)\b|\bworks? (?:perfectly|great|fine)\W*$")),
    ("praise", "a", at_first_use(r"^overall,? (?:this|it|the)\b")),
    # What was edited where, and what was done just now.
    ("inventory", "a", at_first_use(
        r"^\W{0,3}[\w./-]{1,160}\.[a-z]{1,6}`?(?::[\d, –-]{1,20})?`?(?::| [-–—]) ?(?:added|updated|removed|modified|changed"
        r"|fixed|created|renamed|moved|explains|new|wraps|tests?|verif\w+|covers)\b")),
    ("inventory", "a", at_first_use(
        r"^\W{0,3}(?:i(?:['’]ve)? )?(?:added|updated|created|wrote|extended|removed|fixed|adjusted) (?:[\w-]+ ){0,4}"
        r"(?:tests?|test cases?|imports?|type comparisons?)\b|^\W{0,3}(?:added|updated|removed|fixed|changed|modified)\b"
        r".{0,160}(?:\(lines? \d|\bon lines? \d+\W*$)|^\W{0,3}lines? \d[\d, –-]{0,30}:|^updated all (?:references|usages"
        r"|callers|imports)\b")),
    ("inventory", "a", at_first_use(
        r"^\W{0,3}(?:the )?(?:fixes|changes|edits|updates) (?:i |that i )?(?:['’]ve )?made\b|^\W{0,3}(?:summary of (?:the )?changes"
        r"|files (?:changed|modified|updated|created)|(?:pr|review) comments addressed|all green)\b")),
    ("report", "a", at_first_use(
        r"^\W{0,3}(?:committed|pushed|rebased|replied|merged) (?:as|in|and|to|on|onto|all|the|origin)\b|^\W{0,3}ready for you"
        r" to\b")),
    ("try", "ua", at_first_use(
        r"^\W{0,3}(?:(?:now|then|you can|just) )?run `[^`]{1,120}`.{0,40}\bto (?:test|verify|check|see|confirm|try)\b")),
    # Review that only misses tests.
    ("untested", "ua", at_first_use(
        r"\b(?:lack(?:s|ing)?|missing|has no|have no|without) (?:[\w-]+ ){0,3}(?:tests?|coverage)\b"
        r"|\b(?:consider|recommend|suggest) (?:adding|writing) (?:[\w-]+ ){0,3}tests?\b|\b(?:effectively|completely"
        r"|currently) untested\b|\bshould be tested\b|\btests? (?:suite )?\b.{0,60}\bshould include test cases\b")),
    ("errand", "u", at_first_use(
        rf"{_PLEASE}(?:can|could) (?:we|you) {_SOFTLY}fix:|\b(?:can|could) you {_SOFTLY}(?:do|write|create|make|build) (?:me |a |an"
        r" |another |the )(?:\w+ ){0,2}(?:scripts?|summary|list|table|diagram|overview)\b|^\W{0,3}look at [^,?.]{1,80} and (?:we"
        r"|you|do|then)\b|^\W{0,3}add (?:(?:a|some|more|another) )?(?:unit )?tests? (?:that|for|to|which|so)\b(?!.{0,80}\b(?:every|each|always|whenever)\b)|^\W{0,3}(?:add|fix"
        r"|remove|update|rename|change)\b.{0,200}\.[a-z]{1,5}:\d+(?:-\d+)?\W*$")),
    ("asks", "u", at_first_use(r", (?:is|are|was|did|does|do) (?:it|this|that|they|we|you) [\w ]{2,30}\?$")),
    ("moment", "u", at_first_use(r"^\W{0,3}it (?:somehow|still|again)\b")),
    ("narration", "a", at_first_use(
        r"^\W{0,3}(?:i (?:noticed|need to|found that you)\b|looking at\b.{0,80}, (?:i|the)\b)")),
    ("aside", "a", at_first_use(r"\b(?:few things to be aware|summary of the (?:\d+ )?(?:new )?tests)\b")),
    ("inventory", "a", at_first_use(
        r"^\W{0,3}(?:i(?:['’]ve)? )?(?:added|updated|created|wrote|extended|removed|deleted|fixed|adjusted) (?:[\w-]+ ){0,4}"
        r"(?:comments?|docstrings?|documentation)\b|^\W{0,3}(?:created|updated|deleted|removed|modified|added|edited)"
        r" `[^`\s]{0,160}[/.][^`\s]{0,80}`(?: \(|\W*$| director)|^[\w ]{1,40} on `[^`\s]{1,160}:\d+`(?::| [-–—])")),
    ("inventory", "a", at_first_use(
        r"^\W{0,3}(?:the|this|each|every|both)(?: \w+)? (?:subtests?|tests?)(?: `[^`]{1,120}`)? (?:runs?|verif\w+|creates?|checks?"
        r"|covers?|ha(?:s|ve)|uses?|asserts?)\b|^this catches\b|^\W{0,3}(?:th(?:is|e) (?:pr|pull request|commit|change)) (?:improves"
        r"|adds|brings|introduces|updates|refactors)\b")),
)
#: The same for what is known by its capitals, asked of the sentence as it was written.
REFUSED_AS_WRITTEN: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("to-do", "ua", at_first_use(r"^\W{0,3}\[[ xX]\]|^(?:☐|☑|☒|TODO:)")),
    ("diff", "ua", at_first_use(r"^(?:[+-]{1,3}\s?[\w/{}()#*]|@@|diff --git|index [0-9a-f]{6})")),
    ("trace", "ua", at_first_use(
        r"^\s{0,8}(?:at [\w$.<>]{2,80} ?\(|File \"[^\"]{1,200}\", line|Traceback|panic:|goroutine \d)")),
    ("trace", "ua", at_first_use(r"\.(?:go|py|js|ts|rs|java):\d+:\d+")),
    ("printed", "ua", at_first_use(
        r"^(?:Fetching|Pushing|Pulling|Cloning|Counting|Compressing|Receiving|Resolving|Downloading|Installing|Compiling"
        r"|Collecting|Unpacking|Writing|Reading|Waiting|Loading|Running|Building)\b.{1,200}(?:\.\.\.|…)"
        r"|^No (?:matching|such|new) .{1,80} found\b|^To \w+ this (?:notice|message|warning|hint)\b")),
    ("cut", "ua", at_first_use(
        r"\b(?:add|use|set|is|are|to|like|a|an|the|with|for|say|says|secret|key|password|token):? \W?REDACTED\b\W?"
        r"(?:\W{0,3}$| \w+\W{0,2}$)")),
    # What is left of a sentence that handed over a secret.
    ("cut", "ua", at_first_use(
        r"\[redacted\b[^\]]{0,60}\](?:\W{1,3}(?i:in case|if you|should you|just|for now|please|thanks?|(?:and )?use (?:it|them|these|those|both|that|this)|to (?:log|test|connect)|for (?:this|the|your)"
        r" (?:login|test|moment|session))\b.{0,120})?\W{0,3}$")),
    ("inventory", "a", at_first_use(
        r"[Tt]est(?:(?<=\bTest)[A-Z_]|(?<=\btest)_)\w{2,120}(?:\(\))?`?(?::| [-–—]) ?(?i:verif\w+|checks?|ensures?|tests?|kept|reduced|now"
        r"|covers|added|updated|fixed)\b")),
    ("inventory", "a", at_first_use(r"^\W{0,3}(?i:added|updated|created|fixed) `?(?:Test[A-Z_]|test_)\w+")),
    ("printed", "u", at_first_use(
        r"(?:/var/folders|/private/var|/tmp|\\Temp)[/\\][\w./\\-]{12,}|^[⨯✗✘×] ?\w|\b\w{2,20}=\w+: \w+: ")),
    ("printed", "ua", at_first_use(r"\b(?:var|const|let|val) \w{2,60} :?= ")),
    ("printed", "u", at_first_use(r"^[A-Z]\w{1,30}(?:-\w{1,30}){1,3}: \S")),
    ("praise", "a", at_first_use(
        r"^\W{0,3}(?:Excellent|Clean|Helpful|Good|Great|Comprehensive|Clear|Strong|Solid|Nice|Thorough|Well[- ]\w+)"
        r" (?:[a-z-]+ ){1,4}(?:with|that|and|for|when|across)\b")),
)
# fmt: on

#: Of these not even the sentence that leads into a list is kept, nor the list with it.
WITH_THEIR_LIST = frozenset(
    {"inventory", "unseen list", "praise", "untested", "identifiers", "report", "aside", "counts"}
)

#: A list that is led into so says nothing either; of edits the items may tell why.
WITHOUT_WORTH = frozenset({"counts", "errand", "examples", "fragment", "tests", "praise", "report", "unseen list"})


def refusal(said: str, speaker: Speaker, *, leads: bool = False) -> str:
    """What a sentence is that cannot be a statement, "" for one that can; `leads` asks of one that leads into a list."""
    small, as_written = _rows(speaker, leads=leads)
    lowered = said.lower()
    for name, pattern in small:
        if pattern.search(lowered):
            return name
    for name, pattern in as_written:
        if pattern.search(said):
            return name
    return ""


@cache
def _rows(speaker: Speaker, *, leads: bool) -> tuple[list[tuple[str, re.Pattern[str]]], ...]:
    """The rows of both tables that hold for a speaker."""
    return tuple(
        [
            (name, pattern)
            for name, speakers, pattern in table
            if speaker[0] in speakers and (not leads or name in WITH_THEIR_LIST)
        ]
        for table in (REFUSED, REFUSED_AS_WRITTEN)
    )


#: What does something without saying who: an item of a list whose beginning is not there.
_HEADLESS = at_first_use(
    r"^(?:Takes|Parses|Resolves|Compares|Returns|Reads|Writes|Creates|Checks|Shows|Prints|Runs|Calls|Sets|Documents"
    r"|Verifies|Builds|Handles|Handled|Stores|Explains|Adds|Removes|Updates|Uses|used in|Makes|Keeps|Ensures|Allows|Prevents"
    r"|Provides|Improves|Converts|Detects|Extracts|Supports)\b"
)


def is_headless(said: str) -> bool:
    """Whether a sentence lacks its subject, so that nothing may begin with it."""
    return _HEADLESS.match(said) is not None
