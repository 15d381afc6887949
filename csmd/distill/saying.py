"""What a sentence of a user's is in the prompt it stands in: a statement that holds, or an order, question or thought; pure.

Policy comes first: a row of OTHERWISE names what is nobody's statement, PLACES how sure one must be where it stands.
In between, a small linear model over how the sentence is put (shape.py) says how likely it holds beyond the moment. Its
weights stand in saying.json, written by tests/bench/train_saying.py and described in docs/model-card.md; without that
file every sentence is "open", and the tables of cues.py and the worth of units decide as they do elsewhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from csmd import wire
from csmd.distill.cues import MOMENT, PART
from csmd.distill.shape import CLASSES, MAX_SENTENCE, shape
from csmd.distill.units import Piece
from csmd.errors import BadInput

WEIGHTS = Path(__file__).with_name("saying.json")
FORMAT = 1

#: It `holds` by itself; it holds `here`, told to the assistant about what that did, and only where it names it; it is
#: `open`: others decide; it `passes` with the moment.
Saying = Literal["holds", "here", "open", "passes"]


class Place(NamedTuple):
    """How sure one must be, 0-1, of a sentence in a prompt of up to `sentences`; `own`: it must speak for its author."""

    sentences: int
    bar: float
    own: bool


#: Alone a sentence is the point of its prompt; among others it is most often a detail of what is ordered or reported.
PLACES = (Place(1, 0.60, False), Place(3, 0.77, False), Place(10_000, 0.88, True))
#: Below this a short sentence without a clear word passes with the moment; a long one is weighed as a unit.
PASSES, SHORT_WORDS = 0.31, 8
#: A sentence with one of these classes speaks for its author, or lays down a rule; but not as what only seems so.
OWN = frozenset({"my", "we", "i", "role", "name", "always", "prefer", "remember"})
SEEMS = frozenset({"seems", "maybe"})
#: Told to the assistant; with one of the others it is meant for more than what was done last.
YOU, BEYOND = "you", frozenset({"always", "each", "when", "if", "my"})
#: What begins so speaks of something that is before the eyes.
SHOWN = frozenset({"1:it", "1:this"})
#: No sentence ends with a word of these: where a row does, somebody broke a line within one.
UNENDED = frozenset({"the", "a", "my", "of", "to", "and", "must", "prefer", "use"})


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


#: A thing that is before both, and no more named than by "it".
_AT_HAND = (
    r"(?: (?:files?|ones?|things?|places?|ways?|lines?|functions?|branch(?:es)?|answers?|tables?|pages?|folders?|versions?|tests?|repos?"
    r"|director(?:y|ies)|methods?|class(?:es)?|results?|commits?|rows?|options?|parts?|half|paragraphs?|sentences?))?"
)
#: How somebody finds something.
_FELT = (
    r"(?:nice|good|great|fun|lovely|happy|glad|pleased|sad|sure|surprised|surprising|confused|confusing|nervous|scared|afraid|amazed|amazing|tired|impressed"
    r"|curious|excited|exciting|worried|lost|annoyed|annoying|interesting|satisfying|frustrating|frustrated|pleasure|relief|joy|pain|cool)"
)
#: When something is still to come, beyond the moment.
_LATER = (
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|tomorrow|next (?:week|month|sprint|quarter|year)|january|february|march|april|june|july"
    r"|august|september|october|november|december|weeks?|months?|sprints?|releases?|q[1-4]|every|always|each)\b"
)

#: To how much something is held, and the day of something, as it was written.
_LIMIT = r"(?i:at|to|under|below|within|shorter than) (?i:at most |most )?\d{1,4} (?i:columns|cols?|char(?:s|acters)|lines|words|spaces|sentences)\b"
_DAY = r"(?:(?i:january|february|march|april|may|june|july|august|september|october|november|december)|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.? \d{1,2}\b"

#: (what it is, pattern): what is no statement of its author's. Asked of a sentence in small letters.
# fmt: off
OTHERWISE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("printed", _re(
        r"^[\w.-]{1,30}: (?:\w+ ){0,2}(?:error|fatal|warning)\b|^(?:fatal|panic|error|warning)(?:\[\w{1,10}\])?:"
        r"|^\W*(?:error|warn(?:ing)?|info|debug|fatal|trace)\W{1,3}\d{4}-\d\d"
        r"|\b(?:exited|finished|failed) with (?:exit )?code \d|\bnothing to commit\b|\berror: \w{3,}")),
    ("quoted", _re(
        r"^(?:(?:the|this|that|their|an?|some|quote from the) )?(?:[\w-]{1,30} ){0,2}(?:comments?|docs?|documentation|readme|ticket|issue"
        r"|linter|compiler|logs?|article|post|blog|error|message|manual|guide|rfc|book|tutorial|forum)(?: in the code)?"
        r" (?:says?|said|reads?|claims?|wrote|writes?|complains?|states?)\b"
        r"|^(?:he|she|they|someone|somebody|people) (?:says?|said|wrote|claims?)\b|^quote\b|^according to\b")),
    ("wavers", _re(
        r"\b(?:no|any) (?:strong|particular|real|clear|fixed) (?:opinion|preference|view|rule)s?\b"
        r"|\b(?:don['’]t|do not) (?:always|particularly|necessarily|really have|have (?:a|any) (?:rule|preference|opinion|convention))\b"
        r"|^(?:maybe|perhaps|suppose|imagine|theoretically|hypothetically|in (?:theory|principle)|if (?:i|we|it) (?:were|had|could)"
        r"|i (?:guess|wonder|have a feeling|suspect|(?:would|['’]d) say)|i['’]m (?:not sure|unsure|wondering|thinking about|torn)"
        r"|could be (?:that|the|an?)|might be (?:that|the|an?))\b|\b(?:who knows|no clue|just saying|my two cents|apparently|to be honest)\b"
        r"|\bwould be (?:nice|cool|great|fun|awesome)\b"
        r"|\b(?:not sure (?:if|whether|that|yet|about)|no idea|undecided|(?:not|n['’]t) decided)\b|\bi['’]m not sure\W*$")),
    ("between people", _re(
        r"^(?:thanks|thank you|thx|wow|haha|lol|sorry|awesome|dear (?:all|team|\w+,)|(?:by the way,? )?(?:great|nice|good) (?:work|job|one))\b|\bhaha+\b|\blol\b")),
    ("elsewhere", _re(
        r"\b(?:in|at) (?:my (?:old|last|previous|former)|other) (?:job|compan(?:y|ies)|projects?|teams?)\b|^my (?:old|last|previous|former) ")),
    ("asked", _re(
        r"^(?:who (?!ever)[a-z]+s\b|(?:which|what) (?:\w+ ){0,3}(?:do|does|did|is|are|was|should|can) (?:we|you|i|it|the|this|that)\b"
        r"|(?:where|how|why) (?:do|does|is|are|was|were|can|could|should|would) |(?:do|does|is|are) (?:we|you|there|the|it|this|that|our)\b)[^?]*\W*$"
        r"|[,;] ?(?:and |but |so )?(?:why|what now|any ideas?|(?:can|could|would) you\b.{0,80})\W*$")),
    # What is set right without a word for it: nobody can follow it once the work is off the screen.
    ("wrong at hand", _re(
        rf"^(?:no\W{{1,3}})?(?:(?:that|this|it)(?:['’]?s| is| was| looks?) |you (?:took|changed|edited|opened|picked) )(?:still |just |all |totally |completely ){{0,2}}"
        rf"(?:(?:the )?(?:wrong|incorrect|same|other){_AT_HAND}|not (?:quite |really )?(?:right|correct|true|it|good|working|the(?: \w{{1,20}})?{_AT_HAND}))(?: again)?\W*$"
        r"|^(?:no\W{1,3})?(?:(?:that|this|it)(?:['’]?s| is| was) )?(?:still )?not (?:quite |at all |really )?what i (?:asked|meant|wanted|said|had in mind|need\w*)"
        r"(?: for| you)?(?: at all)?\W*$"
        r"|^(?:no\W{1,3})?i (?:only |just )?(?:said|meant|asked for|wanted|told you)(?: only| just)? (?:the |that |this |these )?"
        rf"(?:first|second|third|last|other|next|previous|left|right|top|bottom|same|one|two|three){_AT_HAND}\W*$"
        r"|^(?:it['’]?s )?still (?:broken|failing|wrong|red|the same|not \w{1,20})\b[^,;]{0,30}$"
        r"|^(?:the |my )?(?:\w{1,20} )?(?:total|sum|result|output|answer|count|balance|average|difference)s? (?:should|must|has to|have to) (?:be|say|show|read|equal) \W?\d"
        r"|\blet['’]?s (?:just )?(?:go with|go for|do|use|try|take|keep) (?:that|this|it|the (?:first|second|third|last|other))"
        r"(?: one| option)?(?: then| please| now| instead)?\W*$")),
    # "Always" and "never" that direct nobody: a sigh, a joy, a complaint, a regret.
    ("sighs", _re(
        r"^\W{0,3}(?:(?:ok|okay|oh|ah|hmm|no|sorry|well|and|but)\W{1,3})?never ?mind\b(?!.{0,200}\b(?:always|never|from now on|remember|we|prefer|must|use|instead of|(?:is|are) \S{1,30}, not)\b)"
        rf"|^\W{{0,3}}(?:(?:it|that)(?:['’]?s| is) )?always (?:(?:so|such|a|very) ){{0,2}}{_FELT}(?: (?:to|when|if|that|seeing|how)\b|\W*$)"
        r"|^\W{0,3}(?:it['’]?s |it is )?always (?:the |that |this )?same (?:old )?(?:story|thing|problem|issue|error|mess|game|song|trouble|nonsense|again)?\W*$"
        rf"|\bi(?:['’]?m| am) (?:always|never) (?:so |very |quite |really )?{_FELT}\b"
        r"|^\W{0,3}(?:(?:and|but|so|oh|man|ugh|sorry)\W{1,3})?(?:i|you) (?:just )?(?:always (?:seem to |manage to |have to )?(?:forget|get lost|wonder|struggle|confuse|mix up|mess up|screw up|break|ignore"
        r"|(?:love|enjoy|hate) (?:seeing|it when|to see))|(?:can )?never (?:seem to )?(?:remember|know|understand|listen|learn)|(?:always|never) (?:get|do|say) (?:it|this|that)(?: wrong| right| again)?(?=\W*$))\b"
        r"|^\W{0,3}(?:and |but |so )?(?:i|you)(?: have|['’]ve)? never (?:got|had|saw|seen|heard|understood|knew|known|noticed|received|thought|listened|learned|learnt)\b"
        r"|^\W{0,3}(?:and |but |so )?(?:that|this|it|nothing|something) (?:just |still )?(?:always|never) (?:works?|worked|happens?|helps?|helped|fails?|breaks?|crashes|hangs|ends|stops)"
        r"(?: (?:for me|again|anyway|here|on my machine|the first time|like (?:this|that)|to me|badly|well))?\W*$"
        r"|\bnever been (?:this|that|so|any) \w"
        r"|\b(?:i|we|you|they) should(?: never|n['’]t| not)(?: have|['’]ve) \w{2,20} (?:that|this|it|them|those)\W*$")),
    # What the author does or feels in the next minutes.
    ("aside", _re(
        rf"^(?!.{{0,300}}{_LATER})\W{{0,3}}(?:(?:ok|okay|sorry|and|so|wait)\W{{1,3}})?(?:i['’]ll|i will|i['’]m (?:just )?(?:going to|gonna)|let me|i (?:just |first )?(?:have to|need to|got to|gotta)"
        r"|i['’]ve got to) (?:just |quickly |now |first |go and ){0,2}(?:check|restart|reboot|look|ask|grab|run (?:this|that|it)|try|think|come back|be (?:right )?back|ping"
        r"|be away|have a look|take a|get (?:a|some|back)|wait|leave|eat|join|let you know|report back|sleep|call)\b"
        r"|\b(?:brb|bbl|afk)\b|(?:^|, ?)(?:just )?(?:one|a) (?:sec|second|moment|minute)(?: please)?\W*$|\bbear with me\b"
        rf"|^(?!.{{0,300}}{_LATER})\W{{0,3}}(?:sorry\W{{1,3}})?i['’]?(?:m| am) (?:still |now |currently )?(?:in (?:a|an|another|the|my)(?: \w{{1,20}})? ?(?:meeting|call|interview|workshop|train|car)"
        r"|on (?:a|the|my|another) (?:train|call|bus|plane|phone|go|way)|at (?:lunch|dinner|the (?:doctor|dentist|airport|gym)))\b"
        r"|\b(?:this|that|it)(?:['’]s| is) (?:(?:so|really|very|just|getting|all) ){0,2}(?:annoying|frustrating|ridiculous|exhausting|tiring|boring|crazy|driving me)\b"
        r"|^(?:that|this|it) (?:just |really )?took (?:forever|ages|an eternity|(?:so|too|way too|very) long|hours)\b"
        r"|\b(?:(?:is|are) (?:all )?waiting for (?:this|it|me|us|you)|(?:please|pls) hurry|hurry(?: up)?\W*$|be quick\b|no time (?:for|to)\b)"
        r"|\bmy (?:coffee|tea|lunch|dinner|head|brain|eyes?|back) (?:is|are|hurts?|burns?|aches?)\b")),
    ("moment", _re(
        rf"^(?:every|each|all)(?: [\w-]+){{1,4}} (?:has|have|just) (?:failed|crashed|stopped|timed out|finished|passed|ended|broken|broke|gone|disappeared|vanished|died|hung)\b"
        rf"|\b(?:is|are) (?:all )?{MOMENT} again\b|^(?:(?:the|your|my|our|all|this) )?(?:\w+ )?{PART} (?:is|are) now\b|\b(?:is|are)(?: now| all| still){{1,2}} (?:{MOMENT}|\w+er\b)"
        r"|\bfor now\b(?!.{0,100}\b(?:later|until|before|next|then|after|follow)\b)|\bthis (?:once|time)\b|\bfor (?:this|the) (?:run|moment|screenshot|task)\b|\bbe (?:right )?back in\b"
        r"|\b(?:at the moment|right now|for a moment|just now|since (?:this morning|yesterday|last night)|(?:till|until) (?:noon|tonight|tomorrow|later)"
        r"|for (?:this|the) (?:experiment|demo|test|screenshot)|this one (?:file|test|case))\b"
        r"|\b(?:is|are) (?:down|offline|failing|stuck|back|out|off)(?: again| today)?(?!['\w]| (?:by|on|to|of|in|at|when|if|unless|for (?:all|every)|(?:until|till|from) (?:[a-z]{3,9} \d|\d{4}|(?:the )?\d{1,2}(?:st|nd|rd|th)|next|january|february|march|april|may|june|july|august|september|october|november|december))\b)"
        r"|^here(?:['’]s| is| are) (?:the|my|a|an|what)\b")),
)
# fmt: on

#: What begins so names nothing that is ours.
_NO_THING = (
    r"(?i:the|this|that|these|those|it|they|i|you|we|he|she|there|everything|something|nothing|all|both|one|what)\b"
)

#: What states plainly, asked of a sentence that is a prompt by itself, as it was written: a rule for each of a kind, what a
#: thing of ours is by its proper name or number, what somebody must not do. The model saw too few that are so short.
STATED: tuple[re.Pattern[str], ...] = (
    _re(
        r"^(?i:every|each|all) (?:[\w./-]{1,30} ){1,4}?(?:needs?|must|gets?|requires?|has|have|belongs?)\b (?!to be\b|been\b|\w{2,20}ed\b|no\b|not\b|an? (?:bug|problem|issue|error)s?\b)\w"
    ),
    _re(
        r"^(?!(?i:the|this|that|it|i|you|we|they|there)\b)(?:[\w-]{1,30} ){1,3}must (?:not |never |always )?(?:stay|remain|be|have|use|pass|go|keep|include|follow|match)\b"
    ),
    _re(
        r"^(?i:our|the) (?!(?i:failing|broken|wrong|pr|issue|link|ticket)\b)(?:[\w-]{1,30} ){1,3}is (?:at )?https?://\S{1,200}$"
    ),
    _re(r"^(?i:our) (?:[\w-]{1,30} ){1,3}is (?:called |named )?[A-Z][\w.]{1,30}(?: [A-Z\d][\w.]{0,30}){0,2}\W{0,2}$"),
    _re(
        r"^(?i:we(?:['’]re| are)) (?:still |currently )?on (?:[A-Za-z][\w.+#-]{1,30} ){1,2}v?\d[\w.]{0,10}\b(?! (?i:of|tasks?|items?)\b)"
    ),
    _re(
        r"^(?i:this is) an? [^?]{2,60}\b(?:app|application|project|repo|repository|monorepo|library|service|package|plugin|website|codebase) (?:with|in|on|for|using|built|written)\b"
    ),
    _re(r"^(?i:i (?:don['’]?t|do not|never) want you to) (?!\w+ (?:it|this|that)\b)\w+ \w"),
    _re(r"^(?i:the|our) (?:[\w-]{1,30} ){1,4}came from [a-z]{2,30}ing\b"),
    _re(
        r"^(?i:i(?:['’]?m| am)) (?!(?:Sorry|Done|Fine|Back|Ready|Afraid|Not|Still|Going|Sure|Happy|Glad|Okay|Good|Here|Off)\b)[A-Z][a-z]{2,20}(?:[,.!]|$)"
    ),
    _re(
        r"^(?!(?i:the|this|that|these|those|it|they|i|you|we|he|she|there)\b)(?:[A-Za-z][\w-]{1,30} ){1,3}(?:needs?|requires?) (?:at least |exactly )?(?:\d|two|three|four|five|six)\w*\b"
    ),
    _re(
        r"^(?!(?i:this|that|these|those|it|they|he|she|there)\b)(?:[\w-]{2,30} ){1,4}(?:go|goes|run|runs|live|lives) (?:through|via|over|on|in|behind) (?:the )?(?!I\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)[A-Z]\w[\w.]*(?! (?i:again|now|today|then)\b)(?: [A-Z][\w.]*)*[.!]?$"
    ),
    # By what something of ours is done.
    _re(
        rf"^(?!{_NO_THING})(?:[A-Za-z][\w-]{{1,30}} ){{1,3}}(?:(?i:is|are) )?(?:run|runs|built|started|deployed) with (?:`[^`]{{2,80}}`|[a-z][\w.-]{{2,30}} -{{1,2}}[a-z][\w=-]{{0,30}})[^,;?]{{0,60}}$"
    ),
    _re(
        rf"^(?!{_NO_THING})(?:[A-Za-z][\w-]{{1,30}} ){{1,3}}(?:is|are|get|gets) (?:reported|sent|logged|shipped|published|deployed|uploaded|stored|saved|cached|tracked|mirrored|exported|hosted|managed|generated|linted|formatted|built)"
        r" (?:to|in|on|by|with|via|through|at|from) (?!I\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)[A-Z][a-zA-Z]{2,30}[.!]?$"
    ),
    _re(
        rf"^(?!{_NO_THING})[A-Za-z][\w-]{{2,30}} (?:goes|go) through (?!(?:fine|twice|again|once|now|today|it|that|this|all|the|an?)\b)`?[a-z][\w.-]{{2,30}}`?[.!]?$"
    ),
    # A day that is another one now, a ban that is lifted.
    _re(
        rf"^(?i:the|our) (?:[\w.-]{{1,30}} ){{1,3}}(?:slipped|(?:(?:was|is|has been|got) )?(?:moved|pushed|postponed|delayed|rescheduled|shifted)) (?:back |forward |out )?(?:to|until|till) (?:the )?(?:{_DAY}|\d{{4}}-\d\d-\d\d|Q[1-4]\b|(?i:next (?:month|year|quarter|sprint))\b)"
    ),
    _re(
        rf"^(?i:(?:ok|okay|and|so|now|btw)\W{{1,3}})?(?i:you|we) (?:can|may) (?:touch|edit|change|modify) (?!(?:it|that|this|them|these|those)\b)(?!(?:the |my |your )?{PART} )[^?,;]{{3,60}} again\W*$"
    ),
    # Who somebody is.
    _re(r"^(?i:i(?:['’]?m| am)? (?:live|living|based) in) (?!I\b)[A-Z][a-z]{2,}"),
    _re(
        r"^(?i:(?:(?:hi|hello|hey)\W{1,3})?i(?:['’]?m| am) an? )(?:[\w+#.-]{2,20} ){0,3}(?i:developer|engineer|designer|scientist|researcher|student|analyst|architect|teacher|admin|sysadmin|writer|programmer|biologist|physicist|beginner)\b[^,;?]{0,40}$"
    ),
    _re(
        r"^(?i:hi|hello|hey|good morning)\W{1,3}(?i:i(?:['’]?m| am)) (?!(?:Sorry|Done|Fine|Back|Ready|Stuck|Lost|New|Not|Still|Here|Sure|Happy|Glad|Good)\b)[A-Z][a-z]{2,20}[.!]?$"
    ),
)
#: What stands so has its number whatever is shown where.
SET = _re(
    r"^(?i:the |our )?(?i:max(?:imum)?|min(?:imum)?|default) (?:[\w-]{1,30} ){1,3}is \W?\d"
    r"|^(?i:(?:and |also |please |ok,? |so ){0,2}(?:keep|limit|cap|wrap|(?:make|set)(?= (?:the |our )?(?:\w+ )?(?:lines?|indent\w*) )))(?i: the| our| all| your| every)? (?i:(?:code |source |python |text )?lines?|line (?:length|width|limit)s?|indent(?:ation)?"
    rf"|(?:commit |log |error )?(?:messages?|subjects?|titles?)|docstrings?|comments?|functions?|methods?|files|modules|answers?|replies|summaries|prs?) {_LIMIT}"
    r"|^(?i:the |our |all )?(?i:(?:code |source |python |text )?lines?|line (?:length|width|limit)|indentation|indents?|commit (?:subject|title|message)s?) (?i:is|are|has|have|may have|may be) (?i:at most |up to )?\d{1,3} (?i:columns|col(?:s|umn)?|char(?:s|acters?)|spaces|wide)(?i: wide| long| now){0,2}\W*$"
    r"|^(?i:(?:and |ok,? |so |no,? ){0,2}(?:make|set) (?:it|that)) (?i:to |at )?\d{2,3} (?i:columns|cols|char(?:s|acters))(?i: now| please| instead){0,2}\W*$"
)


@dataclass(frozen=True, slots=True)
class Model:
    """How likely a sentence holds, by how it is put; `name` is "" where there is no model."""

    name: str
    weights: Mapping[str, float]

    def of(self, put: frozenset[str]) -> float:
        """How likely, 0-1, a sentence that is put so holds."""
        weights = self.weights
        # Exactly: the order of a set is another one in every process.
        total = math.fsum([weights["any"], *(weights[name] for name in put if name in weights)])
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


NONE = Model("", {})


@cache
def shipped() -> Model:
    """The model that csmd brings along, or none."""
    return load(WEIGHTS)


def load(path: Path) -> Model:
    """The model in a file; NONE where there is none, or none of this format."""
    try:
        held = wire.loads(path.read_bytes())
        weights = {str(name): float(weight) for name, weight in held["weights"].items()}
        return Model(str(held["name"]), weights) if held["format"] == FORMAT and "any" in weights else NONE
    except (OSError, BadInput, ValueError, KeyError, TypeError, AttributeError):
        return NONE


def sayings(found: Sequence[Piece], clear: Sequence[bool], model: Model | None = None) -> list[Saying]:
    """What each sentence of a prompt is; `clear` is whether the tables have a clear word for it."""
    model = model or shipped()
    count = sum(piece.stands or piece.leads for piece in found)
    place = next(place for place in PLACES if count <= place.sentences)
    # Behind the last row nothing goes on.
    broken = [_is_broken(piece.text) and at < len(found) for at, piece in enumerate(found, 1)]
    return [
        _saying(piece, place, model, clear=known) if piece.stands and piece.begins and not (ends or goes_on) else "open"
        for piece, known, ends, goes_on in zip(found, clear, broken, [False, *broken][: len(found)], strict=True)
    ]


def _is_broken(said: str) -> bool:
    """Whether a row ends within a sentence."""
    return said[-1:].isalpha() and CLASSES.get(said.rpartition(" ")[2].lower()) in UNENDED


def _saying(piece: Piece, place: Place, model: Model, *, clear: bool) -> Saying:
    if otherwise(piece.text):
        return "passes"
    if not model.name:
        return "open"
    put = shape(piece.text)
    rows = (SET,) if "shown" in put else (SET, *STATED)
    if place in PLACES[:2] and "?" not in put and any(row.search(piece.text) for row in rows):
        return "holds"
    likely = model.of(put)
    if likely < PASSES and len(piece.content) <= SHORT_WORDS and not clear:
        return "passes"
    if likely < place.bar or (place.own and (put & SEEMS or not put & OWN)):
        return "open"
    return "here" if (YOU in put and not put & BEYOND) or put & SHOWN else "holds"


def otherwise(said: str) -> str:
    """What a sentence is that is no statement of its author's; "" for one that may be."""
    lowered = said[:MAX_SENTENCE].lower()
    return next((name for name, pattern in OTHERWISE if pattern.search(lowered)), "")
