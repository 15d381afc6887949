"""What can be seen of a sentence without knowing what it is about: cues, small words, and how it answers what was said.

A trait is a name that holds for a sentence or does not; `kind` weighs them. Nothing here knows a project: cues are
classes of words (orders, doubts, time, people, the work itself), small words are the language's own. Gaps in the
patterns are bounded and what is matched is cut at MAX_SENTENCE, so that no text makes it slow.
"""

from __future__ import annotations

import re

from csmd.patterns import at_first_use
from csmd.text import content_words, stem

#: What is looked at of a sentence, and of the end of what was said before it, in characters.
MAX_SENTENCE, MAX_BEFORE = 1200, 4000
#: From this share of its words on a sentence speaks of what was said before it, and of hardly anything else; what is long.
SHARED, MOSTLY_SHARED, LONG_BEFORE = 0.30, 0.60, 1500


def _re(pattern: str) -> re.Pattern[str]:
    return at_first_use(pattern, re.IGNORECASE)


_LEAD = (
    r"^\W{0,3}(?:(?:ok(?:ay)?|yes|yeah|no|nope|hmm{0,8}|oh|ah|well|so|and|but|also|now|then|wait|sorry|please|just"
    r"|great|thanks|nice|cool)\b[,.:! -]{1,3}){0,3}"
)
_DO = (
    r"(?:use|keep|write|add|put|run|avoid|prefer|commit|push|test|check|make|ensure|name|call|follow|log|return"
    r"|validate|wrap|move|remove|delete|replace|rename|change|update|create|show|include|exclude|document|format"
    r"|sort|group|import|export|handle|throw|raise|catch|mark|pin|bump|squash|rebase|review|ask|tell|give|answer"
    r"|leave|stick|treat|store|split|extract|prefix|translate|consider|read|print|send|start|stop|set|skip|build"
    r"|deploy|inject|pass|define|declare|comment|quote|round|escape|sign|tag|target|limit|count|state|say"
    r"|summari[sz]e|simplify|refactor|fix)"
)
_CHANGE = (
    r"(?:change|replace|move|delete|remove|rename|drop|hide|reset|send|return|show|set|get rid of|extract|merge|split"
    r"|introduce|disable|enable|switch|make|store|save|also add|add)"
)
_WORK = (
    r"(?:tests?|testing|specs?|fixtures?|mocks?|commits?|committing|prs?|pull requests?|merge requests?"
    r"|branch names?|changelogs?|docs?|documentation|docstrings?|readmes?|comments?|lint\w*|format\w*|naming|names"
    r"|conventions?|styles?|types|typed|review\w*|messages?|descriptions?|indent\w*|tabs|spaces|quotes|imports?"
    r"|type hints?|annotations?|functions|classes|methods|variables|constants|helpers?|assert\w*|duplicat\w*"
    r"|coverage|snapshots?|error strings?|table[- ]driven|literals?)"
)
_MONTH = r"(?:january|february|march|april|june|july|august|september|october|november|december|q[1-4])"
#: Capitals that are names of things and no shouting.
_ACRONYM = r"(?!(?:AND|API|CI|CLAUDE|CLI|CWD|HTTPS?|JSON|OR|OS|PR|README|SQL|TODO|UI|URL|YAML)\b)"

#: (trait, pattern), by what they tell; a sentence has every trait whose pattern it holds.
# fmt: off
CUES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # Somebody sets something right.
    ("says_wrong", _re(
        r"\b(?:wrong|incorrect(?:ly)?|mistaken|mistake|false|misread|misunder\w+|confus\w+|mixed up|outdated)\b"
        r"|\bnot (?:quite |really |entirely |actually )?(?:right|correct|true|accurate)\b")),
    ("not_what", _re(r"\bnot (?:what|how|where|why|the (?:point|one|case|same|way))\b|\bnever (?:asked|said|wanted)\b")),
    ("starts_no", _re(
        r"^\W{0,3}(?:no|nope|nah|not|never ?mind)\b(?! (?:need|more|problem|worries|idea|one)\b)")),
    ("starts_but", _re(r"^\W{0,3}(?:but|hmm{0,8}|well|wait|huh|sorry|oh)\b")),
    ("starts_that", _re(
        r"^\W{0,3}(?:that|this|it|those|these)(?:['’]s| is| was| are| were| isn['’]t| should| must| would| does\w*"
        r"| do\w*)\b")),
    ("you_did", _re(
        r"\byou(?:['’]ve| have|['’]re| are| were)? (?:just |again |also |still |only |now |all )?(?:\w{3,30}ed|put|wrote"
        r"|forgot|made|broke|did|kept|took|left|set|used|misread|went|lost|gave|\w{3,30}ing)\b")),
    ("i_said", _re(
        r"\bi (?:just |already |only |never )?(?:said|meant|mean|asked|told|wanted|wrote|was asking|was talking|thought)\b"
        r"|\bmy (?:point|question|request)\b|\bas i (?:said|wrote)\b")),
    ("actually", _re(
        r"\b(?:actually|in fact|in reality|on second thought|thinking (?:again|about it)|scratch that|come to think"
        r"|turns out)\b")),
    ("why_not", _re(
        r"\bwhy (?:do|does|did|can|could|should|would|is|are|was|were)(?:n['’]?t)?\b|\bwhy not\b")),
    ("negated_question", _re(
        r"\b(?:is|are|was|were|do|does|did|can|could|should|would|has|have)n['’]t (?:we|it|that|this|you|they|there"
        r"|the|i)\b")),
    ("tag_question", _re(r"(?:,|\)) ?(?:right|or|no|correct|isn['’]t it|ok|yes)\?{1,3}!?$|\bright\?")),
    ("not_but", _re(
        r",? (?:and )?not (?:in |the |a |an |on |as |to |for |with |by |from )?[`\"'\w./-]{1,40}"
        r"(?: [`\"'\w./-]{1,40}){0,3}[.!]?$|\bnot\b.{2,70}\bbut\b|\binstead\b[?.!]?$")),
    ("aside_no", _re(
        r"(?:,|\band\b|\bbut\b|;|\() ?not (?:on|in|at|by|to|as|for|with|the|a|an|you|from|just)\b|^\W{0,3}not as\b")),
    ("not_just", _re(r"\bnot (?:even|just|only|all)\b|\bonly\b.{0,30}\b(?:if|when|the|for)\b")),
    ("undo", _re(
        r"\b(?:undo|revert|restore|roll (?:it |that )?back|put (?:it|that|them) back|take (?:it|that) (?:out|back)"
        r"|bring back|back to)\b")),
    ("again", _re(r"\b(?:again|still|same (?:error|problem|issue|result)|already|yet|anymore|any more)\b")),
    ("like_before", _re(
        r"\b(?:like|as) (?:before|it was|we had)\b|\bas (?:is|it is)\b|\b(?:was|were) already\b"
        r"|\bshould not (?:be )?(?:chang|touch)\w*")),
    ("shouts", re.compile(rf"\b{_ACRONYM}[A-Z]{{3,}}\b(?!_)")),
    ("supposed", _re(
        r"\b(?:supposed to|intended|intentional\w*|on purpose|by design|expected|meant to)\b")),
    ("is_right", _re(
        r"\b(?:code|tests?|spec|docs?|comment|implementation|original|first|old|previous)\b.{0,20}\b(?:is|was|are|were)"
        r" (?:right|correct|wrong|fine|outdated|intentional\w*)")),
    ("doubts", _re(
        r"\b(?:unsure|i doubt|assumption|assume|a stretch|makes? (?:no |any )?sense|are you sure|i(?:['’]m| am) not"
        r"|i don['’]t (?:think|see|believe|like|understand)|feels? like|not (?:even|sure|convinced))\b"
        r"|\breally\b.{0,80}\?|\b(?:is|are) (?:this|that|it|the)\b.{0,60}\b(?:really|then|actually)\b")),
    ("issue_claim", _re(
        r"\b(?:the|an?) (?:\w+ )?(?:issue|problem|point|assumption|idea|question|goal)s? (?:is|was|here|that|with|if|of)\b"
        r"|\bhas (?:the|an) (?:issue|problem)\b")),
    ("since_they", _re(r"^\W{0,3}(?:since|because|as) (?:they|it|we|the|this|that)\b")),
    # How to work.
    ("do_not", _re(
        r"(?:^|[,;:.] |\b(?:please|and|but|so|just) )(?:do not|don['’]t|never|avoid|stop|no need to|without)\b")),
    ("order", _re(_LEAD + _DO + r"\b(?!\?)")),
    ("bare_order", _re(r"^\W{0,3}(?:please |always |never )?" + _DO + r"\b")),
    ("always", _re(
        r"\b(?:always|never|must(?:n['’]t| not)?|make sure|be sure to|ensure|wherever|as much as possible"
        r"|where possible)\b")),
    ("whenever", _re(
        r"\b(?:whenever|every time|each time|from now on|going forward|in (?:the )?future|next time|as a rule"
        r"|by default|by convention|in general|generally|usually|normally|typically)\b")),
    ("each", _re(r"\b(?:each|every|any|all|new|no)\b")),
    ("before_after", _re(
        r"\b(?:before|after|until|unless|prior to)\b.{0,20}\b(?:you|we|each|every|any|commit\w*|push\w*|merg\w*"
        r"|releas\w*|deploy\w*|\w{1,30}ing)\b")),
    ("prefers", _re(
        r"\bprefer\w*|\b(?:i|we)(?:['’]d| would)? (?:really )?(?:like|hate|love|dislike|rather|want)\b|\bwould rather\b"
        r"|\b(?:nicer|cleaner|better|friendl\w+|simpl\w+|meaning\w*|readable|clutter\w*)\b")),
    ("would_like", _re(r"\b(?:i['’]d|i would|we['’]d) (?:like|want|prefer|love)\b")),
    ("can_you", _re(_LEAD + r"(?:can|could|would|will) you\b")),
    ("can_we", _re(_LEAD + r"(?:can|could|should|shall) we\b|\bso (?:can|could) (?:we|you)\b")),
    ("we_do", _re(
        r"\bwe (?:\w{1,20}ly |always |never |only |don['’]t |do not |usually |just )?(?:use|write|keep|name|call|run|follow"
        r"|put|commit|deploy|build|test|ship|log|prefer|avoid|support|version|pin|squash|merge|review|tag|release|sort"
        r"|stick|try|store|document|return|throw)\b")),
    ("we_do_not", _re(r"\bwe (?:do not|don['’]t|never|should not|shouldn['’]t|must not|can['’]t)\b")),
    ("we_should", _re(r"\bwe (?:also |then |really )?(?:should|need to|must|have to|would need|also need)\b")),
    ("it_should", _re(r"^(?!\W{0,3}(?:we|i|you)\b).{2,80}\b(?:should|must|needs? to|has to|have to)\b")),
    ("should", _re(r"\b(?:should(?:n['’]t)?|must|ought)\b")),
    ("considers", _re(r"\bconsider(?:ing)?\b|\bsuggest\w*\b|\bit would be (?:good|nice|better)\b|\bworth \w{2,30}ing\b")),
    ("work", _re(rf"\b{_WORK}\b")),
    ("work_act", _re(
        r"\b(?:review|double[- ]check|add tests?|test|commit|push|rebase|squash|lint|document|name|comment"
        r"|summari[sz]e|import|refactor|simplify|dedup\w*|respond|cover)\b")),
    ("work_tests", _re(r"\b(?:tests?|testing|fixtures?|mocks?|asserts?|assertions?|expectations?|coverage)\b")),
    ("work_docs", _re(r"\b(?:docs?|documentation|readmes?|comments?|changelogs?|docstrings?|architecture)\b")),
    ("work_review", _re(r"\b(?:prs?|pull requests?|commits?|commit messages?|reviews?|merge|push)\b")),
    ("consistent", _re(
        r"\b(?:consisten\w+|convention\w*|source of truth|same (?:for|as|way|style|pattern)|existing|standard"
        r"|strong(?:ly)?[- ]typ\w*|idiomatic|reuse|guidelines?|style)\b")),
    ("elsewhere_too", _re(
        r"\bwherever|where (?:we|you|it is) (?:can|possible)|\bas well\b|\bthe same\b|\bsimilar\b|\bonce we add"
        r"|\bin the future|\bfor future|\bother \w{2,20}s\b|\bacross\b")),
    # What is so, and what was decided.
    ("lets_change", _re(r"\blet['’]?s (?:\w{1,20}ly |also |just |first )?" + _CHANGE + r"\b")),
    ("change_this", _re(
        _LEAD + _CHANGE + r"\b.{0,40}?(?:\bthe\b|`|\"|'|\bthis\b|\ba (?:hidden|new)\b|\b(?-i:[A-Z])\w)")),
    ("decided", _re(
        r"\b(?:we|i)(?:['’]ve| have)? (?:decided|chose|agreed|settled|picked|went with|dropped|moved to|switched)\b"
        r"|\b(?:go|going) with\b")),
    ("wants_thing", _re(
        r"\b(?:i|we)(?:['’]d)? (?:do |also |would |then ){0,3}(?:want|like|need|expect\w*)\b(?! (?:you|us)\b)")),
    ("because", _re(
        r"\b(?:because|since|so that|otherwise|due to|that['’]s why|therefore|as (?:it|we|the|they)|which means"
        r"|means)\b|, so\b")),
    ("cause", _re(
        r"\b(?:cause[ds]?|culprit|the (?:fix|bug|reason)|fixed by|solved|turned out|comes from|came from|crash\w*"
        r"|hang\w*|hung|fail\w*|timeouts?|broke\w*|leak\w*|race|expired?|corrupt\w*)\b")),
    ("claims", _re(
        r"^\W{0,3}(?:the|our|its?|this)\b[^?]{3,80}\b(?:is|are|was|requires?|only|now|remains?|creates?|returns?|strips?"
        r"|writes?|uses?|does not|doesn['’]t)\b(?! (?:wrong|not))")),
    ("is_are", _re(r"\b(?:is|are|has|have|was|were|had)\b")),
    ("third_person", _re(
        r"^\W{0,3}(?:the |our |my |a |an |each |every )?(?:[\w`./'-]{1,40} ){1,5}(?:is|are|was|were|has|have|had|takes?"
        r"|uses?|needs?|expects?|returns?|comes?|lives?|runs?|does|do|can|cannot|can['’]t|will|gets?|sends?|reads?"
        r"|writes?|keeps?|holds?|contains?|fails?|falls?|only)\b")),
    ("past", _re(r"\b(?:was|were|had|did|\w{3,30}ed|came|went|broke|took|got|gave|found|hung|lost)\b")),
    ("lives", _re(
        r"\b(?:lives?|stored|located|hosted|found in|sits? (?:in|on)|defined in|reachable|defaults? to|called|named"
        r"|limited to|supports?)\b")),
    ("if_then", _re(r"\b(?:if|when|once)\b.{3,120}(?:,|\bthen\b|\bwe\b|\bit\b)")),
    ("product", _re(
        r"\b(?:command|subcommand|flag|option|setting|users?|warning|prompt|message|default|screen|page|button|feature"
        r"|field|output)\b")),
    ("number", _re(r"\b\d+(?:[.,:]\d+)?\b")),
    ("code", re.compile(r"`[^`]{2,80}`|\b\w+\(\)|\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w*")),
    ("path", _re(
        r"(?:^|\s|`)[~.]?/[\w.-]+|\b[\w-]{1,60}/[\w./-]+|\b[\w-]{1,60}\.(?:py|go|ts|tsx|js|rs|md|ya?ml|json|toml|sh|sql"
        r"|java|rb)\b")),
    ("flag", _re(r"(?:^|\s|`)--?[a-z][\w-]+")),
    ("quoted", _re(r"[\"“][^\"”]{3,200}[\"”]")),
    ("aside", _re(r"\([^()]{5,200}\)")),
    ("question", _re(r"\?[!?)\"'’]{0,4}$")),
    # What is open, and who.
    ("later", _re(
        r"\b(?:later|tomorrow|tonight|next (?:week|month|year|sprint|release|version|quarter|milestone|step|time)"
        r"|eventually|some ?(?:day|time soon)|one day|at some point|in the long run|down the (?:line|road)|for now"
        r"|until then|future)\b")),
    ("dated", _re(
        rf"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\bby (?:{_MONTH}|the end)\b"
        rf"|\bin (?:{_MONTH}|\w{{1,12}} (?:weeks?|months?|days?))\b")),
    ("will", _re(
        r"\b(?:i|we)(?:['’]ll| are going to|['’]re going to|['’]m going to| am going to| plan to| want to| intend to"
        r"| still (?:have|need|owe)| owe)\b|\bwill\b")),
    ("still_to_do", _re(
        r"\b(?:todos?|to-do|follow[- ]?ups?|pending|still (?:open|missing|to do|need\w*|have to)"
        r"|open (?:question|issue|point)|planned?|roadmap|backlog|milestone|remaining|park this"
        r"|pick (?:this|it) up|come back to|revisit|remind me|not yet|haven['’]t)\b")),
    ("once", _re(
        r"\b(?:once|as soon as|after that|when .{3,50} (?:lands?|is (?:done|merged|released|out|ready|final|deployed)))\b")),
    ("first_then", _re(r"\bfirst\b.{2,80}")),
    ("role", _re(
        r"\b(?:owners?|owns|maintain(?:er|ers|s)?|lead|manager|reviewers?|on-?call|responsible|teammates?|colleagues?"
        r"|cto|ceo|team|boss|designer|developer|engineer|admin|client|customer|supervisor|co-author|author"
        r"|contractor|intern|stakeholder|approv\w+|people|folks|contact|freelancer|department|users are|in charge"
        r"|expert|vendor|partner|advisor|dba|accountant|committee|professor|students?|legal|volunteers?)\b")),
    ("person", re.compile(
        r"(?<=[a-z,] )(?!I\b)[A-Z][a-z]{2,}\b(?! [A-Z]{2,})|^\W{0,2}(?:Dr\.? )?[A-Z][a-z]{2,} (?:is|owns|has|works|does"
        r"|will|wants|handles|knows|runs|reviews|prefers|maintains|from|and)\b")),
    ("myself", _re(
        r"\bi(?:['’]m| am) (?:a|an|the|not a|new|in|on|from|left|colou?r|based|responsible|alone|only)\b"
        r"|\bmy (?:name|team|boss|manager|supervisor|co|colleague|background|job|role|company|wife|husband|partner)\b"
        r"|\bcall me\b|\bi (?:work|maintain|lead|own|teach|study|joined)\b")),
    ("they", _re(r"\b(?:he|she|they|his|her|their|who)\b")),
)
#: Traits that mean more together than each alone: (trait, those that must all hold).
TOGETHER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("negated question", ("negated", "question")),
    ("negated should", ("negated", "should")),
    ("negated report", ("negated", "reported")),
    ("negated code", ("negated", "code")),
    ("questions report", ("reported", "question")),
    ("asks for work", ("asks", "works")),
    ("asks for product", ("can_we", "product")),
    ("lets code", ("w:let's", "code")),
    ("should be consistent", ("should", "consistent")),
    ("should work", ("should", "work")),
    ("we should each", ("we_should", "each")),
    ("question of work", ("work", "question")),
    ("order about work", ("order", "work")),
    ("order about code", ("order", "code")),
    ("the should", ("starts_the", "should")),
    ("prose considers", ("prose", "considers")),
)
# fmt: on
_NEGATED = _re(r"n['’]t\b|\b(?:not|never|no|none|only|instead|but|wrong)\b")
_REPORTED = _re(
    r"^\W{0,6}(?:done|perfect|great|excellent|all|now|i['’]ve|fixed|summary|updated|added|the)\b"
    r"|\b(?:I['’]ve|I have) \w{2,30}ed\b|✅"
)
_PROSE = re.compile(r"^[\W_]{0,3}[A-Z].{20,}\.[\"')]?$", re.DOTALL)
_SMALL = re.compile(r"[a-z]+(?:'[a-z]+)?")
#: The small words of the language: who speaks to whom, what is denied, what is only possible.
SMALL_WORDS = frozenset(
    """the a an i we you it that this they my our your is are was were be been being do does did don't doesn't didn't
    isn't aren't can could should would will must may might not no never if when then than so but and or also only just
    still again already now as in on at to for from with by of all any each every some more most other same there here
    what why how which who let's please want need like think use i'm i'd i've we're we'd it's that's there's
    you're""".split()
)


def traits(text: str, *, before: str = "") -> frozenset[str]:
    """The names of all that can be seen of a sentence; `before` is what was said before it, "" where nobody knows."""
    said = text.strip()[:MAX_SENTENCE]
    small = _SMALL.findall(said.lower().replace("’", "'"))
    found = {name for name, pattern in CUES if pattern.search(said)}
    found |= {f"w:{word}" for word in small if word in SMALL_WORDS}
    if small and small[0] in SMALL_WORDS:
        found.add(f"first:{small[0]}")
    if _NEGATED.search(said):
        found.add("negated")
    if _PROSE.search(said):
        found.add("prose")
    if re.match(r"\W{0,3}(?:the|our|my|each|every|all|an?|some)\b", said, re.IGNORECASE):
        found.add("starts_the")
    if found & {"can_you", "can_we"}:
        found.add("asks")
    if found & {"work", "work_act"}:
        found.add("works")
    found |= relation(said, before)
    found |= {name for name, needed in TOGETHER if found.issuperset(needed)}
    return frozenset(found)


def relation(said: str, before: str) -> set[str]:
    """How a sentence answers what was said before it: whether it speaks of the same, and denies or amends it."""
    before = before.strip()[-MAX_BEFORE:]
    if not before:
        return set()
    told = {stem(word) for word in content_words(before)}
    own = [stem(word) for word in content_words(said)]
    share = sum(word in told for word in own) / len(own) if own else 0.0
    found = {"same_subject" if share >= MOSTLY_SHARED else "shares" if share >= SHARED else "new_subject"}
    if share >= SHARED and _NEGATED.search(said):
        found.add("denies")
    if before.rstrip("\"')*_ ").endswith("?"):
        found.add("answers")
    if _REPORTED.search(before):
        found.add("reported")
    if len(before) >= LONG_BEFORE:
        found.add("long_before")
    return found
