"""How a sentence is put, whatever it is about: its words as classes, in their order; pure.

A class is what a word does in a sentence: it orders, asks, denies, names a time, stands for something. A word that no
table knows is told by its form (a name, a number, code, a verb's or an adverb's ending) or is a thing. What is told of a
sentence is which classes it holds, which it begins with, which stand side by side, and how long it is and ends: so that
weights learned on some sentences hold for others that share none of their words (saying.py). One pass over the words.
"""

from __future__ import annotations

import re
from itertools import pairwise

#: What is looked at of a sentence, in characters and in words.
MAX_SENTENCE, MAX_WORDS = 600, 60
#: So many classes at the beginning are told with their place.
OPENING = 3


def _classes(table: dict[str, str]) -> dict[str, str]:
    """The class of each word of a table of the words of each class."""
    return {word: name for name, members in table.items() for word in members.split()}


#: The words of each class. They are the language's, and those of the work whoever does it: none is of a project.
CLASSES = _classes(
    {
        "i": "i i'm i've i'd i'll im ive",
        "my": "my mine our ours",
        "we": "we we're we've we'd we'll us",
        "you": "you you're you've you'd you'll u your yours yourself",
        "he": "he she they he's she's they're they've they'd they'll his her their him them hers theirs somebody someone nobody who",
        "it": "it it's its itself",
        "this": "this that these those that's here there there's this's",
        "the": "the",
        "a": "a an another",
        "each": "each every any all both everything everyone everywhere anything whenever wherever whatever most",
        "no": "no none nothing nope nah neither",
        "some": "some few several many much more less other others",
        "is": "is are was were am be been being isn't aren't wasn't weren't",
        "has": "has have had hasn't haven't hadn't having got",
        "does": "does do did doing done",
        "not": "not don't dont doesn't doesnt didn't didnt isn't aren't wasn't weren't can't cant cannot won't wouldn't shouldn't"
        " couldn't mustn't haven't hasn't hadn't without",
        "must": "must should shall need needs ought shouldn't mustn't mandatory required requires require has-to supposed",
        "can": "can could would can't couldn't wouldn't may might",
        "will": "will i'll we'll won't gonna going plan plans planned intend intends owe owes promised promise promises schedule"
        " scheduled postponed milestone deadline due todo eventually waiting",
        "maybe": "maybe perhaps probably possibly theoretically theory could've might've suppose imagine hypothetically guess"
        " wonder wondering considering unsure somehow either whether depends",
        "if": "if unless",
        "when": "when while once until till before after whenever during",
        "since": "because since so otherwise therefore hence due thus as",
        "and": "and or plus",
        "but": "but however though although except",
        "than": "than instead rather over",
        "always": "always never usually generally normally everywhere default defaults strictly ever",
        "only": "only exclusively solely",
        "now": "now currently today anymore longer right-now nowadays recently lately already",
        "later": "later tomorrow tonight next soon afterwards someday weekend week weeks month months year quarter sprint"
        " monday tuesday wednesday thursday friday saturday sunday january february march april june july august"
        " september october november december spring summer autumn winter christmas q1 q2 q3 q4 holidays vacation",
        "ago": "again still yet just earlier yesterday before previous last",
        "what": "what what's whats how which where why when's where's who's whose how's",
        "please": "please pls plz kindly",
        "lets": "let's lets let",
        "ok": "ok okay yes yeah yep sure thanks thank great nice cool perfect good lgtm hello hi hey hmm hm oh ah well wait sorry"
        " alright fine interesting",
        "right": "wrong right correct incorrect mistaken mistake outdated true false confused confusing confuse misread swapped"
        " actually really instead",
        "prefer": "prefer prefers prefered preferred like likes hate dislike love want wants wanted rather favour favor insist"
        " insists avoid stick keep follow",
        "remember": "remember note memorize memorise forget mind remind reminder",
        "to": "to",
        "in": "in on at under behind inside outside within through via across into onto up",
        "of": "of for from by with about per",
        # What somebody is asked to do, and what one does with a rule: first words of orders.
        "do": "add build change check clean close commit compare continue convert copy create debug delete deploy double draft"
        " drop edit explain extend extract find finish fix generate give go have implement improve inline insert install list look"
        " make merge migrate move open paste print proceed pull push read rebase refactor reload remove rename replace rerun"
        " restart retry revert review rewrite run search see set setup show simplify sort start stash stop summarise"
        " summarize switch take tell test translate try tweak undo update upgrade verify wire write bump squash reset curl"
        " draw help investigate propose suggest describe figure apply put format clear",
        "use": "use ask answer name call log throw return treat quote prefix tag sign pin validate wrap document indent round"
        " pass declare define handle raise group limit number store mark speak target escape cap",
        "role": "owner owners owns own maintainer maintainers maintain maintains maintained manager lead leads leader reviewer"
        " reviewers approve approves on-call oncall responsible teammate teammates colleague colleagues cto ceo team teams"
        " boss designer designers developer developers dev devs engineer engineers admin admins client clients customer"
        " customers supervisor author authors contractor contractors intern interns stakeholder stakeholders people folks"
        " contact freelancer department guild office users professor student students volunteers vendor partner expert"
        " council committee agency dba staff work works working report reports belongs consultant group",
        "work": "tests test commit commits message messages pr prs branch branches comment comments docs docstring docstrings"
        " function functions method methods class classes variable variables import imports type types file files line lines"
        " naming style convention conventions rule rules code codebase changelog readme",
        "fails": "fail fails failed failing failure error errors broken breaks broke crash crashes crashed hang hangs leak leaks"
        " bug bugs issue problem race flaky timeout cause caused culprit",
        "nth": "first second third fourth last next same following above below other one ones both",
        "shown": "button buttons page pages screen dialog modal menu header footer sidebar form field column row rows icon"
        " icons chart graph tooltip layout tab tabs font colour color label heading popup checkbox dropdown section",
        "seems": "think thinks thought feel feels seems seem looks believe assume sounds mean means",
    }
)
#: Words, quotations and marks, in order.
_PARTS = re.compile(
    r"`[^`]{1,200}`|\"[^\"]{1,200}\"|“[^”]{1,200}”|[\w@#$~/.:+*=<>-]*\w[\w'@#$~/.:+*=<>()-]*|[?!]+|[,;:()]|[-–—→]+|\S"
)
_MARKS = frozenset("?!,;:()")
_CODE = re.compile(r"[`_/\\=<>@#$~{}()+*]|\w\.\w|\w:\w|[a-z][A-Z]|^--?\w")
_DATE = re.compile(r"\d{4}-\d\d-\d\d$|\d{1,2}[./]\d{1,2}[./]\d{2,4}$|\d{1,2}(?:st|nd|rd|th)$")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*(?:[a-z]{1,2}|%)?$")
_CAPITALS = re.compile(r"[A-Z][A-Z\d]+s?$")
#: The class of a word by its end, where no table knows it.
_ENDINGS = ("ing", "ed", "ly", "s")
#: How many words a sentence has: (fewer than this, what that is called).
LENGTHS = ((2, "1"), (3, "2"), (5, "3-4"), (8, "5-7"), (13, "8-12"), (21, "13-20"))


def shape(said: str) -> frozenset[str]:
    """What can be told of how a sentence is put."""
    said = said[:MAX_SENTENCE].replace("’", "'")
    found = classes(said)
    words = [name for name in found if name[0].isalpha()]
    length = next((name for limit, name in LENGTHS if len(words) < limit), "21+")
    mark = "." if said.rstrip().endswith(".") else "-"
    return frozenset(
        (
            *found,
            *(f"{one} {other}" for one, other in pairwise(found)),
            *(f"{place}:{name}" for place, name in enumerate(words[:OPENING], 1)),
            f"1-2:{' '.join(words[:2])}",
            f"words:{length}",
            f"ends:{found[-1] if found and not found[-1][0].isalpha() else mark}",
            f"begins:{'capital' if said[:1].isupper() else 'small'}",
        )
    )


def classes(said: str) -> list[str]:
    """The class of each word and mark of a sentence, in order."""
    parts = _PARTS.findall(said)[:MAX_WORDS]
    return [CLASSES.get(part.lower()) or _by_form(part, first=at == 0) for at, part in enumerate(parts)]


def _by_form(part: str, *, first: bool) -> str:
    """The class of a word that no table knows, or of a mark."""
    head = part[0]
    if head in _MARKS:
        return head
    if len(part) == 1 and not head.isalnum():
        return "-" if head in "-–—→" else "."
    if head in '"“':
        return "quoted"
    if _DATE.match(part):
        return "later"
    if _NUMBER.match(part):
        return "number"
    if _CODE.search(part) or _CAPITALS.match(part):
        return "code"
    if head.isupper() and not first:
        return "name"
    small = part.lower()
    if small.endswith("n't"):
        return "not"
    return next((end for end in _ENDINGS if small.endswith(end) and len(small) > len(end) + 2), "thing")
