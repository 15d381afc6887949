"""What marks a sentence that is worth keeping: a table of cues, one of forms, and lengths; pure.

A cue says what kind of memory a sentence would be and how plainly it says so; a form says how far the way it is put
speaks for or against keeping it. All are asked of a sentence in small letters. A case that goes wrong is mended here,
not in code; classify.py walks the tables. Gaps in the patterns are bounded, so that no text makes them slow.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from csmd.distill.refused import Speaker
from csmd.model import Category, Gate
from csmd.patterns import at_first_use


class Cue(NamedTuple):
    """One row of CUES; `speakers` holds the first letters of those it listens to."""

    reason: str
    gate: Gate
    category: Category
    clarity: float
    speakers: str
    pattern: re.Pattern[str]


class Form(NamedTuple):
    """One row of FORMS: how far this way of putting it counts for (+) or against (-) keeping a sentence."""

    speakers: str
    weight: float
    pattern: re.Pattern[str]


def _re(pattern: str) -> re.Pattern[str]:
    """A pattern for a sentence in small letters: that takes half the time of one that need not care for capitals."""
    return at_first_use(pattern)


_NOT = r"n(?:['’]t|(?<=\bn)(?:ot|ever)\b)"
_SUBJECT = r"(?:we|i|you|it|that|this|they)"
_AUX = r"(?:do|does|did|can|could|should|would|is|are|was|were|will|have|has)"

#: A part of the work at hand: what happens to it is no change of the project.
PART = (
    r"(?:functions?|methods?|class(?:es)?|helpers?|variables?|constants?|imports?|structs?|tests?|lines?|comments?|buttons?|files?"
    r"|code|cursor|fixtures?|types?|branch(?:es)?|prs?|commits?|errors?|warnings?|bugs?|issues?|problems?|builds?|ci|lint\w*"
    r"|output|screens?|pages?|fix(?:es)?|changes?|diffs?|typos?|blocks?|loops?|checks?|everything|something|nothing|all|one)"
)
#: How something is for the moment.
MOMENT = (
    r"(?:\w+ing|green|red|broken|fixed|done|ready|clean|merged|rebased|pushed|open|closed|gone|visible|hidden|empty|missing|there"
    r"|here|better|worse|ok(?:ay)?|fine|good|great|correct|right|wrong|slow\w*|fast\w*|up|down|finished|complete\w*|much|too|also"
    r"|more|less|blue|in sync|aligned|passed|failed|stuck|back|clear|what|where|how|only|even|not|on (?:the|your) (?:branch|screen))\b"
)
#: What a sentence, or a part of it, says something about: up to four words, of which the last is no part of the work.
_THING = (
    r"(?:^|[;,:] |\band )(?:(?:the|our|all|every) )?(?!(?:i|you|it|this|that|these|those|they|there|he|she|we|what|which|when"
    rf"|if|so|can|let['’]?s|please)\b)(?:[\w./`-]{{1,30}} ){{0,3}}?(?!{PART} )[\w./`-]{{2,30}}"
)
_RUNS = (
    r"(?:go|run|live|happen|come|talk|point|report|deploy|build|ship|write|read|log|speak|sit|listen|get|depend)(?:e?s)?"
    r" (?:through|via|on|over|in|at|by|from|under|against|to|with|deployed|built|published)"
)

#: Walked in order; of equally clear cues the earlier one names the gate.
# fmt: off
CUES: tuple[Cue, ...] = (
    # The user sets something right.
    Cue("wrong", "correction", "fact", 0.95, "u", _re(
        r"\b(?:(?:that|this|it|which|part|you)(?:['’]s| is| are|['’]re) (?:\w+ )?(?:wrong|incorrect"
        r"|not (?:\w+ )?(?:correct|right|true)|not how\b)"
        r"|not what i (?:meant|asked|said|wanted)|i (?:meant|said)\b|my point (?:is|was))")),
    Cue("no", "correction", "fact", 0.76, "u", _re(
        r"^\W{0,3}(?:no|nope|nah)\b(?:, | - |: | (?=(?:i|it|that|this|you|we|they|the|use|do|don['’]t|let['’]?s)\b))"
        r"(?!need\b|thanks?\b|problem|worries|idea|longer|more\b|one\b)\w+")),
    Cue("actually", "correction", "fact", 0.80, "u", _re(
        r"^(?:\W{0,3}(?:well|no|hmm|oh|wait|but),? )?(?:actually|in fact)\b|\b(?:thinking again"
        r"|on second thought|scratch that)\b")),
    Cue("why_not", "correction", "preference", 0.82, "u", _re(
        rf"\bwhy (?:{_AUX}n['’]?t|{_AUX} {_SUBJECT} (?:\w+ )?not|not|{_SUBJECT} {_AUX}n['’]?t"
        r"|are we (?:\w+ )?not)\b"
        rf"|\b(?:{_AUX})n['’]t {_SUBJECT}\b.{{0,160}}\?|\binstead\?")),
    Cue("but_right", "correction", "fact", 0.65, "u", _re(
        r"^but\b.{0,200}\bright\?|^but\b.{0,120}\b(?:is|are|was|were|does|do)(?: not|n['’]t)\b|\balready\b.{0,30}$")),
    Cue("not_but", "correction", "fact", 0.62, "u", _re(
        r",? (?:and )?not (?:in |the |a |on |as )?[`\"'\w./-]{2,60}[.!]?$"
        r"|\bnot\b.{2,60}\bbut (?:in|the|a|it|as|on|rather)\b")),
    # How to work.
    Cue("prefer", "behavioral", "preference", 0.95, "u", _re(
        r"\b(?:i|we)(?:['’]d| would| really| strongly|['’]ll)? (?:much )?prefer|\bmy preference\b"
        r"|\bi(?: really)? (?:like|hate|dislike)\b"
        r"|\bwould(?: rather| prefer)|\bi['’]d rather\b|\bplease (?:always|never)\b")),
    Cue("from_now_on", "behavioral", "convention", 0.95, "u", _re(
        r"\b(?:from now on|going forward|in (?:the )?future|every time|each time|next time|as a rule"
        r"|by convention|whenever you)\b")),
    Cue("before_after", "behavioral", "procedure", 0.70, "u", _re(
        r"\b(?:always |please )?(?:run|check|update|use|ask|commit|push|make sure)\b.{1,80}\b(?:before|after"
        r"|when|whenever) (?:(?:each|every|any|you|we) \w+|\w+ing\b)"
        r"|\b(?:before|after) (?:you |we )?(?:commit|push|merg|releas|deploy)\w*,")),
    Cue("do_not_forget", "behavioral", "procedure", 0.88, "u", _re(
        r"\b(?:do not|don['’]t|never) forget\b|\b(?:please|always) remember to\b")),
    Cue("do_not", "behavioral", "convention", 0.72, "u", _re(
        r"(?:^|[,;:.] |\b(?:please|and|but|so) )(?:do not|don['’]t|never|avoid|stop|no need to)\b (?!worry|mind\b|know"
        r"|think|you\b|we\b|forget)\w+")),
    Cue("we_use", "behavioral", "convention", 0.80, "u", _re(
        r"\bwe (?:\w+ )?(?:use|write|keep|name|call|run|follow|put|commit|deploy|build|test|ship|log)\b|\b(?:our"
        r"|the) (?:convention|standard|rule|style|practice)\b")),
    Cue("we_do_not", "behavioral", "convention", 0.75, "u", _re(
        r"\b(?:we|you) (?:do not|don['’]t|never|should not|shouldn['’]t|must not|mustn['’]t)\b (?!have (?:a"
        r"|any)\b|know|see)\w+")),
    Cue("always", "behavioral", "convention", 0.75, "u", _re(
        r"\b(?:always|never(?! ?mind\b)|must(?:n['’]t| not)?|make sure|be sure to|ensure)\b")),
    Cue("source_of_truth", "behavioral", "convention", 0.72, "ua", _re(
        r"\b(?:source of truth|consistent with|stay consistent)\b")),
    Cue("rather_than", "behavioral", "preference", 0.68, "u", _re(
        r"\b(?:instead of|rather than)\b|\b(?:nicer|cleaner|better|simpler|friendlier|easier) (?:to|if|with)\b"
        r"|\bkeep (?:it|this|the)\b")),
    # What was decided, and why.
    Cue("go_with", "epistemic", "decision", 0.88, "u", _re(
        r"\b(?:let['’]?s|we['’]ll|we will|i['’]ll|we should) (?:just |rather |only |all )?(?:go with|go for|use"
        r"|stick (?:with|to)|keep|switch to|drop)\b"
        r"|\b(?:we|i)(?:['’]ve| have)? (?:decided|chose|agreed|settled|picked)\b")),
    Cue("changed_over", "epistemic", "decision", 0.88, "u", _re(
        r"\b(?:we|i)(?:['’]ve| have)? (?:just |now |since |recently )?(?:moved|switched|migrated|changed|replaced|upgraded"
        rf"|downgraded|went)\b(?! (?:the|that|this|a|an|my|some|all|both) (?:\w+ ){{0,2}}{PART}\b)"
        r".{1,120}\b(?:to|with|by|over|back)\b (?!(?:the )?(?:end|top|bottom|next|sleep|work)\b)")),
    # What is otherwise than it was: with the project, not with the work at hand.
    Cue("dropped", "epistemic", "decision", 0.86, "u", _re(
        r"\b(?:dropp(?:ed|ing)|removed|ended|discontinued) (?:the |our |all )?support (?:for|of)\b|\bno longer support"
        r"|\bsupport for .{2,60} (?:was|is|has been|got) (?:dropped|removed|discontinued)\b"
        r"|\b(?:we|our \w{2,20}|nobody) no longer (?:need to )?(?!see|get|have (?:to|the)\b|know|think|need (?:this|that|it)\b)[a-z]{2,}"
        r"|\b(?:we|they) (?:don['’]t|do not) (?!see|get\b|have to|know|think|need (?:this|that|it)\b)[a-z]{2,}\b.{2,80}"
        r"\b(?:anymore|any more|any longer)\b")),
    Cue("is_now", "epistemic", "decision", 0.86, "u", _re(
        rf"{_THING} (?:is|are) now (?!{MOMENT})(?:an? |the |on |in |at |by |with |our )?[\w`]"
        rf"|{_THING} now {_RUNS} (?!it\b|this\b|that\b)[\w`]|{_THING} {_RUNS} [\w`][^.;?]{{1,60}} now\b"
        r"|\b(?:we|they) now (?!have (?:to|the|an?)\b|see|get\b|know|can|just|also|need (?:to|a)\b)[a-z]{2,}(?<!ing)\b \w"
        r"|\b(?:is|are) (?:the|our) (?:new )?(?:minimum|default|standard|baseline|official|canonical|primary)\b.{0,40}\bnow\b"
        r"|^\W{0,3}(?:as of|since|starting (?:with|from|in)|from) (?:v|version |release )?\d[\w.]{0,10}(?: on)?,? (?:the|we|our|all|every)\b")),
    Cue("became", "epistemic", "decision", 0.86, "u", _re(
        rf"{_THING}(?: has| have|['’]ve)? (?:just |now |since |recently )?(?:moved|switched|migrated|changed|went)(?: over| away)?"
        r" (?:from .{2,60} )?(?:to|onto) [\w`]"
        rf"|{_THING} (?:has been|have been|was|were|got|is being) (?:replaced|superseded|moved|migrated|switched|renamed|taken over)"
        r" (?:to|by|with|into|onto|over to) [\w`]")),
    Cue("lets", "epistemic", "decision", 0.62, "u", _re(
        r"\blet['’]?s (?:(?:completely|just|rather|only|also|maybe|all|not|please|always|then"
        r"|now) ){0,2}(?!(?:completely|just|rather|only|also|maybe|all|please|then|now)\b|look\b|see\b|check\b"
        r"|try\b|implement\b|commit\b|push\b|do\b|start\b|continue\b|fix\b|go\b|give\b|run\b|merge\b)\w{3,}")),
    Cue("no_longer", "epistemic", "decision", 0.66, "ua", _re(
        r"\b(?:no longer|not .{1,20} anymore|any ?more|obsolete|deprecated|gone away|replaced (?:by|with)"
        r"|superseded)\b")),
    Cue("should", "epistemic", "decision", 0.58, "u", _re(
        r"\b(?:should(?:n['’]t)?|needs? to|(?:we|i)(?:['’]d| would)? (?:need|want|like)|i['’]d (?:like|want"
        r"|expect)|would have expected|has to|have to|supposed to)\b")),
    Cue("consider", "epistemic", "decision", 0.62, "u", _re(r"\bconsider \w+ing\b|^consider\b")),
    Cue("will_change", "promissory", "plan", 0.80, "u", _re(
        r"\b(?:we|i)(?:['’]ll| will| plan to| are going to|['’]re going to) (?:switch|move|migrate|replace|drop|deprecate|rename|release"
        r"|ship|retire|introduce|upgrade|launch|sunset)\b.{8,}")),
    # What is so.
    Cue("have_to", "epistemic", "constraint", 0.80, "u", _re(
        r"\b(?:is|are) not (?:unique|stable|sorted|atomic|idempotent|thread-safe|safe|reliable|guaranteed|supported|allowed|available)\b"
        r"|, (?:so )?(?:you|we|one) (?:always )?(?:have to|must)\b")),
    Cue("only", "epistemic", "constraint", 0.66, "ua", _re(
        r"\b(?:only (?:reachable|works?|available|supports?|runs?|allowed|possible|valid|applies|happens)"
        r"|at most|at least|limited to|requires?"
        r"|does(?: not|n['’]t) (?:support|allow|work|exist|accept)|not supported|can(?:not| ?not)|can['’]t be)\b")),
    Cue("cause", "epistemic", "gotcha", 0.78, "ua", _re(
        r"\b(?:root cause|caused by|the (?:actual |real |underlying |main )?(?:issue|problem|cause|bug|culprit"
        r"|reason)\b.{0,60}\b(?:is|was|were)\b"
        r"|turn(?:s|ed) out|(?:fails?|failed|breaks?|broke|happens?|happened|lost|crash(?:es|ed)?) (?:when"
        r"|because|if|since|with|on))")),
    Cue("symptom", "epistemic", "gotcha", 0.44, "u", _re(
        r"\b(?:i (?:just |have |now )?(?:tried|tested|checked|noticed|see|get|got|lost)|still (?:not|show|fail"
        r"|see)\w*|bug|errors?|fail(?:s|ed|ing)?|broken|"
        r"does(?: not|n['’]t)|is(?: not|n['’]t)|did(?: not|n['’]t)|missing|wrong|empty|hangs?|issue)\b")),
    Cue("because", "epistemic", "decision", 0.55, "ua", _re(
        r"\b(?:because|since (?:we|it|the|they|this)|so that|otherwise|this means|which means|that['’]s why"
        r"|due to)\b")),
    Cue("lives_in", "epistemic", "fact", 0.66, "u", _re(
        r"\b(?:lives?|stored|found|located|sits?|kept|defined|reachable|deployed|hosted|runs?) (?:in|at|on|under"
        r"|over|via|behind|by|as)\b|\bis (?:called|named)\b")),
    Cue("is_so", "epistemic", "fact", 0.53, "u", _re(
        r"^\W{0,3}(?:and |but |so |also )?(?:the|our|my|all|each|every)\b[^?]{2,80}\b(?:is|are|has|have|uses?"
        r"|takes?|expects?|returns?|comes?|lives?)\b(?! (?:failing|broken|red|not|still|now|missing"
        r"|wrong)\b)[^?]{2,200}$")),
    # Who, and what is open.
    Cue("people", "relational", "person", 0.75, "u", _re(
        r"\b(?:is|are|was) (?:the |our |my )?(?:\w+ )?(?:owner|maintainer|lead|manager|reviewer|on-?call"
        r"|responsible|teammate|colleague|cto|ceo)\b"
        r"|\bmy name is\b|\bi work (?:on|in|for|with|at)\b|\b(?:owns|maintains|reviews|is in charge of"
        r"|reports to)\b|\b(?:my|our) (?:team|colleague|teammate|manager|boss|designer)\b"
        r"|\bask [a-z]\w+ (?:about|for|before)\b")),
    Cue("promise", "promissory", "plan", 0.72, "u", _re(
        r"\b(?:i|we)(?:['’]ll| will| plan to| want to| need to) (?:\w+ ){0,2}(?:follow up|later|tomorrow"
        r"|next week|come back|revisit|talk to|ask)\b"
        r"|\b(?:follow[- ]up|todo|to-do|still open|in a (?:later|separate|second) (?:pr|step|change|commit)"
        r"|next week|tomorrow|later on|for later|eventually)\b")),
    Cue("left_open", "promissory", "plan", 0.52, "a", _re(
        r"\b(?:follow[- ]ups?|left (?:open|for)|not yet (?:implemented|done|supported)|still (?:open|missing"
        r"|needs)|future (?:work|consideration|pr)|out of scope|remaining work|pre-existing (?:bug|issue"
        r"|failure))\b")),
    # An assistant's account.
    Cue("instead_of", "epistemic", "decision", 0.62, "a", _re(
        r"\b(?:instead of|rather than|in favou?r of|as opposed to)\b")),
    Cue("now", "epistemic", "decision", 0.58, "a", _re(
        r"\b(?:now|will now|are now|is now|both) (?:\w+ly )?(?:use|show|include|return|call|check|handle|write"
        r"|read|create|skip|preserve|support|run|set|contain|work|match|go|get|ha)\w*\b|\bnow when\b|\b(?:is"
        r"|are) now\b")),
    Cue("fault", "epistemic", "gotcha", 0.66, "a", _re(
        r"\b(?:was(?: not|n['’]t)|were(?: not|n['’]t)|missing|overwrit\w+|dropped|never (?:set|called|reached)"
        r"|silently|stale|race|clobber\w+|did(?: not|n['’]t)|used to)\b")),
    Cue("changed", "epistemic", "decision", 0.46, "a", _re(
        r"^\W{0,3}(?:i['’]ve |i )?(?:added|created|changed|renamed|removed|moved|replaced|extracted|increased"
        r"|fixed|refactored|switched|updated|uses?|set)\b")),
    Cue("behaviour", "epistemic", "fact", 0.48, "a", _re(
        r"\b(?:when|if|on|after|before|by default|automatically|regardless|only|each|every"
        r"|both)\b.{1,120}\b(?:is|are|will|gets?|uses?|runs?|calls?|returns?|creates?|writes?|shows?|sets?|does"
        r"|falls?|keeps?|stores?|tied)\b")),
    Cue("names", "epistemic", "pattern", 0.40, "a", _re(r"`[^`]{2,80}`")),
)
# fmt: on

#: Of these the sentence says that something is otherwise than it was.
CHANGES = frozenset({"dropped", "is_now", "became"})

#: An explicit request to keep it; the rest of the sentence names the category.
REMEMBER = re.compile(
    r"^(?:\W{0,3}(?:and|also|ok(?:ay)?|so|but|oh|please|pls|yes|no),? ){0,2}(?:please |pls )?(?:always )?"
    r"(?:remember(?! (?:when|how|what|why|if)\b)|keep in mind|bear in mind|(?:please )?note(?= that\b)"
    r"|make a note|memori[sz]e|(?:do not|don['’]t|never) forget)"
    r"(?:,|:| that\b| this:?| to\b| the fact that\b)? ?(?=\S)",
    re.IGNORECASE,
)

# fmt: off
FORMS: tuple[Form, ...] = (
    Form("u", -0.45, _re(
        r"^\W{0,3}(?:(?:can|could|would|will) you (?:please |also |again |now )?)?(?:explain|show|tell"
        r"|summari[sz]e|describe|list|generate|give)\b")),
    Form("u", -0.30, _re(
        r"^\W{0,3}(?:what|how|when|where|who|which|are there|is there|do we have|does)\b[^.!]{0,200}\?$")),
    Form("u", -0.15, _re(r"^[^.!]{0,60}\?$")),
    Form("u", -0.12, _re(r"^\W{0,3}(?:(?:please|ok|yes|and|now|also),? )?(?:can|could|would|will) (?:you|we|it)\b")),
    Form("u", -0.25, _re(
        r"^\W{0,3}(?:(?:please|ok|yes|no|and|now|also|then|looks good),? ){0,2}(?:fix|commit|push|run|continue"
        r"|proceed|implement|merge|rebase|review|look|try|do|go ahead|start|open|write|add|create|make|check)\b")),
    Form("u", 0.20, _re(
        r"^(?!(?:we|i|you|it|this|that|then|and|so)\b)(?:[\w`./-]{1,40} ){1,4}(?:should|must) (?!we\b|i\b|you\b)")),
    Form("u", 0.06, _re(_NOT)),
    Form("u", 0.05, _re(r"\([^()]{8,200}\)")),
    Form("a", 0.06, _re(r"`[^`]{2,80}`")),
    Form("a", 0.06, _re(_NOT)),
    Form("a", -0.30, _re(r"\?$|^\W{0,3}(?:want me|would you|should i|shall i|do you want|let me know)\b")),
    Form("a", -0.25, _re(
        r"\b(?:tests?|build|lint\w*|everything|all)\b.{0,40}\b(?:pass(?:es|ed|ing)?|clean|succeed\w*|green)\b")),
    Form("a", -0.15, _re(r"^\W{0,3}(?:you (?:can|could|may|might)|feel free|option [a-z0-9]|for example|e\.g\.)\b")),
)
# fmt: on

#: (fewer words than this, weight): length is the best single separator of what is kept from what is not.
LENGTH: dict[Speaker, tuple[tuple[int, float], ...]] = {
    "user": ((3, -0.52), (4, -0.22), (6, -0.07), (9, 0.02), (15, 0.08), (25, 0.18), (61, 0.28), (10_000, 0.08)),
    "assistant": ((4, -0.60), (7, -0.30), (10, -0.15), (16, 0.05), (25, 0.15), (61, 0.25), (10_000, 0.0)),
}
