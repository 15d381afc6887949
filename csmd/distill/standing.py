"""What a unit leans on: a table of forms that nobody can follow later, or that hold for the moment only; pure.

A sentence may be prose and still say nothing to a colleague who was not there: it points at a list on somebody's
screen, asks what only the moment answers, offers what nobody decided, tells what was edited and not why, or begins in
the middle of something. A unit that leans is no statement, however it is weighed, and what stands in for it must be
worth more (extract.py). A case that goes wrong is mended in the table. Gaps in the patterns are bounded.
"""

from __future__ import annotations

import re

from csmd.distill.refused import Speaker
from csmd.patterns import at_first_use


def _re(pattern: str) -> re.Pattern[str]:
    return at_first_use(pattern, re.IGNORECASE)


#: What is counted off, shown or pasted somewhere.
_SHOWN = (
    r"(?:options?|points?|items?|findings?|scenarios?|approach(?:es)?|alternatives?|suggestions?|questions?|comments?"
    r"|proposals?|ideas?|steps?|sections?|paragraphs?|screenshots?|lists?|drafts?|reviews?|feedback|outputs?|diffs?)"
)
#: What tells the reason of what was done, or what follows from it.
_REASON = _re(
    r"\b(?:because|since|so that|so (?:it|they|the|we|you|users?|that)\b|otherwise|instead of|rather than|in order to|due to"
    r"|to (?:avoid|prevent|ensure|make|keep|allow|match|support|preserve|handle)|which (?:means|meant|caused|was|is)"
    r"|would (?:have|be|break|fail)|no longer|bug|fix(?:es)? for|caused|always|never|only|must|risks?|needs?|behaviou?r|when|follow\w*|matches|helps?)\b"
)
_EDITED = (
    r"(?:added|updated|removed|deleted|renamed|moved|extracted|replaced|changed|simplified|refactored|consolidated"
    r"|fixed|created|reduced|eliminated|modified|adjusted|converted|introduced|dropped|merged|wired|cleaned)"
)
#: Short words that open a sentence and say nothing of its subject.
_OPENS = r"^\W{0,3}(?:(?:ok|okay|and|so|but|also|now|then|hmm|yes|no|alright),? ){0,2}"

#: Said with it, an order lasts.
LASTING = r"\b(?:always|never|every|each|whenever|any ?time|from now on|in (?:the )?future|as a rule|in general|everywhere|wherever|we|our|prefer)\b"
#: (what it is, first letters of whom it holds for, pattern): a unit that any matches leans.
# fmt: off
LEANS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    # What is pointed at is not there later.
    ("unseen list", "u", _re(
        rf"\b(?:for|with|about|on|to|do|take|like|of) (?:the )?(?:option|scenario|point|item|issue|question|step|finding) "
        rf"(?:#?\d{{1,2}}|[A-D])\b|\b(?:the|these|those|this|that|your) (?:\w+ )?{_SHOWN} (?:above|below|before(?! (?:you|we|i|it|every|each|any)\b)|earlier|from"
        rf" (?:above|before))\b|\b(?:these|those|all the) (?:\w+ )?{_SHOWN}\b|\blogic in \d\b")),
    ("unseen list", "ua", _re(r"^\W{0,3}(?:option|alternative|approach|variant) (?:#?\d|[a-d])\b")),
    ("unseen list", "a", _re(rf"\b(?:these|those) (?:\w+ )?{_SHOWN}\b|\boption (?:\d|[a-d])\b.{{1,300}}\boption (?:\d|[a-d])\b")),
    ("goes back", "u", _re(rf"{_OPENS}(?:going )?back to\b|^\W{{0,3}}(?:regarding|about) (?:the|this|that|your)\b")),
    ("unseen text", "u", _re(
        r"\b(?:in|to|of|from|into) (?:this|that) (?:section|paragraph|sentence|part|list|document|summary|text|message|draft|plan)\b"
        r"|\b(?:still )?reads? (?:like|as|for)\b|\bchange (?:it|this|that) to\b|\bbring (?:it|this|that)(?: part)? back\b"
        r"|\b(?:this|it) is now (?:repeated|duplicated)\b|\bthose (?:funcs?|functions?|methods?|files?|tests?|places?|lines?)\b")),
    ("unseen list", "u", _re(r"\byour (?:proposed|suggested|last|previous|first|second|third|other) \w+")),
    ("printed", "u", _re(r": > \w|^[\w.-]{2,40}@[\w.-]{2,60}[ :]+[~/(]|[⎿❯]|\bUsage: \w+ ")),
    # What only the moment answers.
    ("asks", "u", _re(
        r"\bis (?:this|it|that) (?:then )?really an? (?:issue|problem|concern)\b|^\W{0,3}(?:can|could) you (?:please |also )?(?:check|verify|see)\b[^:]{3,200}\?"
        r" (?:because|since|i|it)\b")),
    ("asks", "u", _re(
        r"(?:^|[.!?;,] )(?:(?:and|so|but|also|ok),? )?(?:can|could|would) you (?:(?:please|also|maybe|just|now|again|quickly) ){0,2}"
        r"(?:check|look|take a look|see|find|figure|explain|compare|review|investigate|verify|summari[sz]e|propose|suggest|describe"
        r"|help|tell|show|confirm|write|identify)\b[^?]{0,250}\?\W*$")),
    ("asks", "u", _re(
        rf"{_OPENS}(?:is|are|was|were|do|does|did|has|have|will|would|isn['’]t|aren['’]t|doesn['’]t|don['’]t|didn['’]t|wasn['’]t|should)"
        r" (?:it|this|that|they|these|those|there|we|you|i|the)\b[^.?]{0,200}\?(?: [^.]{0,150}\?)?\W*$")),
    ("asks", "u", _re(
        r"\b(?:is|are) (?:this|that|it|there) (?:then )?(?:really |actually )?(?:a|an|any|some|possible|easy)\b[^.?]{0,150}\?\W*$"
        r"|,? (?:or|right|correct|no)\?\W*$|\bultrathink\b|\b(?:i['’]?m |i am |so )?wondering\b[^.]{0,250}\W*$"
        r"|\bwhat happens\b[^?]{0,100}\?\W*$|\b(?:any|some) (?:other )?(?:ideas?|alternatives?|suggestions?)\b[^.?]{0,60}\?")),
    ("asks", "u", _re(
        rf"{_OPENS}(?:can|could|would) you (?:please |also |just |maybe ){{0,2}}(?:check|look|see|find out|figure out|estimate|tell(?: me)?|explain|think about|investigate|verify)"
        r" (?:what|how|if|whether|which|why|when|where)\b"
        r"|^\W{0,3}(?:does|do|is|are|can|could|has|have|did|was|were) [^?.!]{1,60} (?:this|that|it|these|those)\?"
        r"|^\W{0,3}(?:what|how|which|who|where|when)\b[^?.!]{2,120}\?(?: [^.!?]{0,60})?\W*$")),
    ("asks", "u", _re(r"\bplease (?:suggest|propose|recommend|advise)\b")),
    ("unseen", "u", _re(
        r"^\W{0,3}(?:the|this) (?:comment|docstring|assertion|condition|log|line) (?:here )?(?:says|claims|states|is (?:inaccurate|wrong|misleading|stale))\b")),
    ("unseen", "u", _re(
        r"^\W{0,3}(?:(?:so|and|but|also),? )?(?:we|you|i) (?:should|need to|must|have to|want to) (?:(?:somehow|also|probably|just|really) ){0,2}"
        r"(?:prevent|fix|avoid|handle|solve|address|change|stop|improve|revert|undo) (?:this|that|it|these|those)\b(?! (?:in|for|on|when|with|by|so)\b)"
        r"|^\W{0,3}(?:this|it|that)(?: is|['’]s| does)?(?: still| again)? (?:(?:not|n['’]t) (?:working|work|right|what)|broken|fails?|failing|doesn['’]t work)\b")),
    ("report", "u", _re(r"^\W{0,3}i(?:['’]ve| have)? just (?:checked|ran|run|tried|tested|looked|saw|got|lost|did|re-?ran|pulled|pushed|merged|updated|installed|restarted)\b")),
    ("moment", "u", _re(
        rf"{_OPENS}(?:let['’]?s|we (?:can|should)) (?:pause|stop|summari[sz]e|continue|wait|start|see|take)\b|^\W{{0,3}}(?:stop|wait|pause|hold on)\b"
        r"|\b(?:so far|tomorrow|for a second|this time|last time|yesterday)\b|^\W{0,3}i (?:just|was able to)\b")),
    ("proposes", "a", _re(
        r"\bwe (?:should probably|could also|can also|might want)\b|\b(?:question|suggestions?|proposal|recommendation): |\bcould be (?:integrated"
        r"|improved|extracted|simplified|moved)\b|^\W{0,3}(?:optional|minor)\b|\bminor (?:cleanup|potential|issue|nit)\b|\boverall risk\b")),
    # A nudge to what is on the screen, and tidying up.
    ("nudge", "u", _re(
        r"[\"“][^\"”]{3,120}[\"”].{0,60}\b(?:check ?marks?|ticks?|emojis?|in front|at the end|newlines?|blank lines?|icons?)\b"
        r"|\binstead of [\"“][^\"”]{2,80}[\"”],? (?:we|it|you|this) (?:should|could|can) (?:do|say|be|show|read|print)\b")),
    ("errand", "ua", _re(
        r"^\W{0,3}(?:(?:clean[- ]?up|tidy)\b[^:]{0,20}: )?(?:remove|delete|drop) (?:any |the |all )?unused\b"
        r"|^\W{0,3}(?:fix|update|add|change|remove|rewrite|correct)\b.{3,80}\(lines? \d[\d, –-]*\)")),
    ("muses", "u", _re(r"\blet['’]?s (?:just )?(?:say|assume|imagine)\b|^\W{0,3}(?:can|could) you help me\b|\bcan you (?:check|look|try) again\b")),
    ("asks", "a", _re(r"^\W{0,3}(?:(?:would|do) you (?:want|prefer|like|rather)|want me to|(?:should|shall) i)\b")),
    ("asks", "a", _re(
        r"(?:^\W{0,3}|[.:;!?] )(?:(?:so|and|or|but|also),? )?(?:(?:would|do|did|should|shall|could|can|may) (?:you|we|i)|want (?:me )?to|which (?:\w+ ){0,2}(?:would|do) you)\b[^.!]{3,250}\?\W*$")),
    # What is known everywhere.
    ("general", "a", _re(
        r"\b(?:it['’]s|it is|that['’]s|is|are|as) (?:an? |the )?(?:generally? |usual |widely accepted )?(?:good|best|common|standard|bad) (?:\w+ )?practices?\b"
        r"|^\W{0,3}(?:in )?(?:go(?:lang)?|git|python|rust|java|javascript|typescript|node(?:\.js)?|bash|sql|react|docker|css|html|http|json|yaml)(?:['’]s)?,? "
        r"(?:\w+ly )?(?:guarantees?|concatenates|promises|defines|specifies|evaluates|interprets)\b"
        r"|^\W{0,3}(?:don['’]t|never|avoid|do not|always) (?:ever )?(?:share|commit|paste|post|store|expose|hard-?code|log|trust|reuse)\b[^`/]{0,60}\b(?:secrets?|passwords?|credentials?|tokens?|keys?|input)\b")),
    ("praise", "a", _re(
        r"\b(?:is|are|was|were) (?:the|an?) (?:most )?(?:idiomatic|clean|elegant|standard|proper|correct) (?:\w+ )?(?:approach|way|code|choice|solution|pattern)\b(?! to\b)"
        r"|\bfuture (?:reviewers?|readers?|maintainers?|developers?|contributors?)(?: will| can| to|:| -| –| —)|^\W{0,3}why (?:it|this|that) (?:doesn['’]t|does not|won['’]t) matter\b")),
    ("muses", "a", _re(r"\b(?:this|it|which|that) (?:could|might|may) (?:also )?be:|\bpossible (?:causes|reasons|explanations)\b")),
    ("examples", "a", _re(
        r"^`?\w[\w.]{2,60}`?(?:\(\))? [-–—] [a-z]{2,20}s .{3,200}; `?\w[\w.]{2,60}`?(?:\(\))? [-–—] [a-z]{2,20}s ")),
    # What only the day saw.
    ("report", "a", _re(
        r"\b(?:errors?|issues?|warnings?|problems?|failures?|crash(?:es)?) should (?:now |then |all )?(?:be (?:gone|fixed|resolved|solved)|disappear|go away|no longer)\b"
        r"|^\W{0,3}you (?:can|could|may) (?:now )?(?:check|verify|confirm|see|test|try) (?:with|by|that|it|this|whether)\b"
        r"|\b(?:have|has) been (?:updated|adjusted|changed accordingly)\W*$"
        r"|^\W{0,3}(?:(?:all )?(?:merge )?conflicts? (?:are |were |have been )?resolved|(?:compiles|builds) clean(?:ly)?)\b"
        r"|^\W{0,3}(?:updated|revised|saved|created|wrote|added|drafted) (?:the |a |an |your |my |this )?(?:\w+ )?(?:plan|summary|document|docs?|branch|pr|pull request|issue|ticket|report|draft|description|notes?|list)\b"
        r"|^\W{0,3}address(?:ed|es|ing)? (?:(?:the|all|pr|code|copilot|bot|remaining|open|more) )*(?:review )?(?:feedback|comments?|findings|nits|suggestions|review)\b"
        r"|\b(?:the|your|this) (?:\w+ )?branch (?:now )?(?:includes?|contains?|is|has)\b.{0,120}\b(?:rebased|on top|up to date|ahead|behind|pushed|merged)\b")),
    # What was done to files, and not why.
    ("examples", "a", _re(
        r"^\W{0,3}(?:for example|validations?|actions?|permissions?|example|scenario|usage|locations?|files?|sources?|location|hook names|key (?:files?|functions?|differences|changes)|currently|notice|assessment"
        r"|the commit message|command registration|constants|file changes)\b[^.]{0,40}:")),
    ("tests", "a", _re(r"^\W{0,3}`?test\w{3,80}`? \(\d+ (?:\w+ )?(?:cases|tests|scenarios)")),
    ("tests", "a", _re(
        r"\b(?:the|this|each|both|all|new|existing) (?:\w+ ){0,2}(?:tests?|test cases?|subtests?)\b.{0,60}\b(?:verif\w+|covers?|ensures?|asserts?|now"
        r" (?:passes|uses|checks)|caught|catch\w*)\b|\bhelper functions?: |\btests? (?:updated|added|pass\w*)\b|\bto keep the test\b")),
    # What a session's example, or a list, leaves of itself.
    ("fragment", "ua", _re(r"^\W{0,3}session (?:\d|[a-d])\b")),
    ("examples", "a", _re(r"[;:] (?:scenario|example|usage): |^\W{0,3}(?:options|alternatives|choices): ")),
    ("fragment", "a", _re(
        r"^\W{0,3}(?:the \w+ (?:would|will) (?:then )?see\b|(?:from|in) [^\s]{2,120}: there(?:['’]s| is| are) also\b|there(?:['’]s| is| are) also\b)")),
    # What was so in the working tree, what was set up, which test it was.
    ("report", "a", _re(
        r"\b(?:remaining|other|these|those) (?:unstaged|uncommitted|untracked|modified|unrelated) (?:files?|changes)\b|\bnot included intentionally\b"
        r"|\bintentionally not (?:included|staged|committed)\b|^\W{0,3}i(?:['’]ve| have) (?:now |also |just )?(?:put|made|written|implemented|added|created|updated)\b"
        r"|\b(?:that|one|error|failure|issue|which) you (?:just |were )?(?:hit|ran into|seeing)\b|\bwas still (?:expecting|using|checking|referencing|calling)\b"
        r"|^\W{0,3}[\w./-]{3,160}\.(?:md|txt|rst)`? [-–—] ")),
    ("errand", "u", _re(
        r"\b(?:can|could) you (?:please |also |just )?(?:do|write|create|make|build) (?:me )?(?:an?|another|one more) (?:[\w-]+ ){0,2}(?:scripts?|summary|list|table|diagram|doc(?:ument)?)\b"
        r"|^\W{0,3}(?:based on|look at) [^?]{2,160},? (?:can|could) you\b|^\W{0,3}look at (?:the|this|that|my|these)\b")),
    # What is offered, praised, or told of an example, of the day's end and of one reader's case.
    ("offers", "a", _re(
        r"^\W{0,3}(?:alternatively,? |or,? )?if you(?:['’]d)? (?:want|like|prefer) (?:me )?to\b|\bif you want me to\b"
        r"|\bis (?:probably |usually )?(?:easier|better|simpler|fine)\b.{0,80}[;.] if you\b")),
    ("praise", "a", _re(
        r"^\W{0,3}(?:the )?(?:key|main|notable) (?:improvements?|benefits?|advantages?|changes?)(?: (?:were|are|is|made))?:"
        r"|^[\w -]{4,50}: (?:can|no|same|supports?|easy|works?)\b[^;]{3,200}; [\w -]{4,50}: (?:can|no|same|supports?|easy|works?)\b"
        r"|^\W{0,3}the [^:;.]{3,60} (?:correctly|properly|already): ")),
    ("examples", "a", _re(
        r"^\W{0,3}(?:even (?:worse|better)\b|now we have (?:both|two|three)\b|the (?:key )?difference:|final (?:state|result|version):|my take:|end result:"
        r"|for (?:you|me|your \w+)(?: \([^)]{1,40}\))?:|the (?:proper|correct|actual|normal|new|full) (?:flow|sequence|order) (?:is|was):)"
        r"|\((?:kept|unchanged|same|as) (?:from|as|before|earlier)\b[^)]{0,30}\):|^`?[\w-]{2,40}\.[a-z]{1,4}`?: in \w+ but not in\b")),
    ("tests", "a", _re(r"^\W{0,3}(?:the|a) comments? (?:in|on|above) (?:the|this|each) (?:\w+ )?(?:test|function|code|file)\b")),
    ("edits", "a", _re(rf"^[\w ]{{3,40}} [-–—] {_EDITED} (?:[\w-]+ ){{0,3}}(?:comments?|directives?|annotations?|imports?)\b")),
    ("fragment", "a", _re(r"^(?:resolves|parses|takes|prints|fetches|looks up|reads|walks|iterates)\b[^.:]{3,120}:")),
    ("general", "a", _re(r"^\W{0,3}(?:document|store|keep|reference|mention|use) (?:the |a |your )?[\w ]{3,40} without (?:the|its|any|real)\b")),
    # What is set right, looked into or asked for at this moment, about something that is on the screen.
    ("unseen", "u", _re(
        r"\bthis (?:\w+ )?(?:text|wording|phrasing)\b"
        r"|^\W{0,3}(?:the|this|that) (?:\w+ )?(?:regex|pattern|check|code|function|method|loop|condition|comment|call|logic|test|variable|query|type|field|string|value|line|message|handler|import) here\b")),
    ("asks", "u", _re(rf"{_OPENS}(?:can|could|may|might) it be\b|\bi guess\b[^.?]{{3,160}}\?")),
    ("errand", "u", _re(
        r"^(?!.{0,200}\b(?:every|each|always|whenever)\b)\W{0,3}(?:(?:please|also|can you|could you|can we),? ){0,2}(?:add|write) (?:(?:a|an|some|more|another) )?(?:\w+ )?tests? (?:so|that|to|which)\b")),
    ("printed", "u", _re(r"^\W{0,3}(?:type|press|hit|enter) \S.{0,40}\b(?:and|then|to) (?:you can|continue|exit|quit|proceed)\b")),
    ("errand", "u", _re(
        rf"^(?!.{{0,200}}{LASTING})\W{{0,3}}(?:(?:please|ok|now),? )?(?:commit|push|pull|rebase|stash|squash)\b,? (?:(?:and|then|it|this),? ){{0,3}}(?:commit|push|rebase|merge|open|create|respond|reply|continue)\b")),
    ("errand", "ua", _re(
        r"\bconsider (?:removing|deleting|dropping|inlining|simplifying|renaming) (?:this|these|those|the) (?:\w+ )?(?:unused|dead|redundant|duplicated?|unnecessary)\b")),
    # What the assistant ran into on its way, one line of code for another, what a test holds.
    ("report", "a", _re(rf"\b(?:when|after|once|since|because) i (?:had )?(?:{_EDITED}|ran|tried)\b")),
    ("edits", "a", _re(
        r"^\W{0,3}(?:i )?(?:changed|renamed|replaced|updated) (?:(?:the|a|an) )?(?:\w+ )?(?:variable|parameter|argument|import|literal|assertion|expectation)s?\b"
        r"|^\W{0,3}(?:i )?(?:changed|replaced) `[^`]{1,160}\([^`]{0,160}` (?:to|with|by) `[^`]{1,160}\(")),
    ("tests", "a", _re(r"^\W{0,3}[\w./-]{0,80}test[\w./-]{0,60}`? (?:tests|verifies|checks|covers|ensures|asserts|exercises)\b")),
)
# fmt: on

_FIRST_EDIT = _re(rf"^\W{{0,3}}(?:[^.;:]{{2,120}}: )?(?:i(?:['’]ve| have)? (?:also |now )?)?{_EDITED}\b")
_EDITS = _re(rf"(?:^|; |: |\. |\) - |`? - ){_EDITED}\b")
#: The items of a list that orders steps: each begins with what to do.
_STEP = _re(
    r"^\W{0,3}(?:add|build|call|change|check|commit|compare|configure|convert|copy|create|delete|detect|document|export|extract|fetch|handle|import"
    r"|initiali[sz]e|insert|keep|load|make|merge|modify|move|override|parse|print|push|read|refactor|remove|rename|replace|return|run|save|search"
    r"|set|skip|store|update|use|validate|verify|wrap|write)s?\b"
)

#: What begins an order of the moment: a thing that is to be made or changed now.
ERRAND = (
    r"(?:add|build|change|clean up|connect|continue|convert|create|delete|do(?! not\b)|draft|expose|extend|extract|finish|fix|generate|implement"
    r"|improve|integrate|introduce|make(?! sure\b)|migrate|move|port|prepare|refactor|remove|rename|replace|rewrite|set up|split|start|support"
    r"|try|update|wire|wrap|write)"
)
#: What begins any order.
ORDER = (
    rf"(?:{ERRAND}|allow|apply|avoid|base|begin|cache|call|cap|check|default|disable|don['’]t|do not|drop|emit|enable|ensure|exclude|follow"
    r"|handle|hide|ignore|include|just|keep|leave|let|limit|log|name|only|pass|pick|prefer|put|raise|read|reject|retry|return|reuse"
    r"|run|save|send|set|show|skip|sort|stay|stick|stop|store|take|test|throw|treat|use|validate|verify)"
)
#: What may stand before an order, asked or told.
ASKED = r"^\W{0,3}(?:(?:please|ok|okay|now|and|then|so|also|next|first|let['’]?s|(?:can|could|would|will) you|(?:i want|i need|i['’]d like) you to|you should),? ){0,3}"
_ERRAND = _re(rf"{ASKED}(?:just |also )?{ERRAND}\b")
_ORDER = _re(rf"{ASKED}{ORDER}\b")
_LASTING = _re(LASTING)


def is_detail(said: str, *, behind: str, of_detail: bool) -> bool:
    """Whether a user's sentence says how the errand `behind` it is to be done, or goes on from such a detail.

    "Add retries to the sender. Use exponential backoff." lays down nothing about backoff elsewhere: without the errand
    the second sentence would read like a preference.
    """
    if not (of_detail or _ERRAND.match(behind)) or _LASTING.search(said):
        return False
    return _ORDER.match(said) is not None


def leaning(said: str, speaker: Speaker) -> str:
    """What makes a unit of what `speaker` said lean on something unseen; "" for one that stands by itself."""
    for name, speakers, pattern in LEANS:
        if speaker[0] in speakers and pattern.search(said):
            return name
    if speaker == "assistant":
        edits = _FIRST_EDIT.match(said)
        if (edits or len(_EDITS.findall(said)) > 1) and not _REASON.search(said):
            return "edits"
        rows = said.split("; ")
        if len(rows) > 1 and all(_STEP.match(row) for row in rows[:2]):
            return "steps"
    return ""
