"""What a chosen sentence speaks of, put in its place once it stands alone; pure.

What is unclear stays as it was said: a wrong name does more harm than a missing one. "It" is replaced only where the
sentence before has one name and that name is its subject; whatever else points outside ("this means", "returns nil")
gets its subject put in front, which claims no more than where it was said. Nothing grows beyond MAX_CONTENT_WORDS.
"""

from __future__ import annotations

import re

from csmd.patterns import at_first_use
from csmd.text import content_words, sentences, squeeze, without_code, words

MAX_CONTENT_WORDS, MAX_CHARACTERS = 45, 600
#: A subject is a name or a short title.
MAX_SUBJECT_WORDS, MAX_SUBJECT = 8, 70
#: What stands between two rows of one text (units.py).
ROWS = "; "
#: What leads into a list is at most so many words long.
MAX_LEAD_WORDS = 14
#: How far back a sentence is looked for, and its subject before it, in characters.
MAX_LOOKED_AT = 20_000
#: By how many of its words a sentence is found again.
FIRST_WORDS = 8
#: A name in a title is its subject when it stands at most behind so many words.
MOST_BEFORE_NAME = 3
#: A sentence that is put in front has so many words with content.
MIN_BEFORE = 3


def _re(pattern: str) -> re.Pattern[str]:
    return at_first_use(pattern, re.IGNORECASE)


_NAME = re.compile(
    r"`([^`\n]{2,60})`|((?<![\w/])(?:[\w.-]{1,40}/){1,12}+[\w.-]{0,60}\w|\b[\w-]{1,40}\.(?:py|go|tsx?|jsx?|rs|md|ya?ml|json|toml|sh|sql|java|rb)\b)"
)
#: Words that make a sentence of what stands before them, as far as a list can tell.
VERB = (
    r"(?:is|was|are|were|has|have|had|does|do|did|will|would|should|must|can|cannot|could|may|might|needs?|isn['’]t"
    r"|wasn['’]t|doesn['’]t|didn['’]t|won['’]t|can['’]t|shouldn['’]t|aren['’]t|gets?|only|also|now|never|always|still"
    r"|already|then|returns?|runs?|uses?|fails?|works?|takes?|writes?|reads?|creates?|stores?|calls?|means|happens?"
    r"|makes?|lets?|keeps?|falls?|sets?|shows?|looks?|breaks?|causes?|fixes|prevents?|ensures?|allows?|requires?"
    r"|expects?|contains?|holds?|checks?|handles?|skips?|triggers?|matches|ignores?|overwrites?|replaces?|adds?"
    r"|removes?|supports?|defaults?|comes?|goes|depends?|exists?|includes?|tracks?|loads?|saves?|sends?|prints?)"
)
#: A sentence whose subject stands outside of it.
_POINTS_OUT = _re(rf"^(?:it|this|that|they|these|those)(?:['’](?:s|re|ll|d))?(?: {VERB}\b|(?<=['’]s) |(?<=['’]re) )")
#: A sentence that speaks of a part of something it does not name.
_PART_OF = _re(
    r"\bhere\b(?! (?:is|are)\b)|^(?:this|the) (?:function|method|file|test|field|struct|class|module|check|code|regex"
    r"|comment|helper|script|hook|handler|flag|option|parser|loop|query|endpoint|table|column|page|component)\b"
)
#: A sentence without a subject, as lists have it; an order to do something is none.
_WITHOUT = re.compile(
    r"^(?:(?:Now|Also|Only|Already|No longer|Currently) )?(?:[Rr]eturns|[Uu]ses|[Ff]alls back|[Ww]rites|[Rr]eads"
    r"|[Cc]reates|[Ss]tores|[Cc]alls|[Hh]andles|[Ss]kips|[Ss]ets|[Cc]hecks|[Ee]xtracts|[Ss]upports|[Pp]revents"
    r"|[Ee]nsures|[Pp]reserves|[Dd]etects|[Mm]igrates|[Ii]gnores|[Rr]equires|[Vv]alidates|[Cc]onverts|[Ww]raps"
    r"|[Rr]uns|[Tt]riggers|[Dd]efaults|[Pp]rovides|[Tt]akes|[Ss]hows|[Aa]dds|[Rr]emoves|[Cc]ontains)\b"
)
#: A label that names nothing before what is said.
_LABELLED = _re(
    r"^(?:when|where|why|how) (?:it|this|that|they)(?:['’]s)? \w+(?: \w+)?:|^(?:what (?:changed|happened|happens|it does)|root causes?|causes?|impact|effect|result"
    r"|solution|consequence|symptoms?|current behaviou?r|expected behaviou?r|rationale|trade-?offs?|notes?|why|problem)(?: [\w ]{1,20})?: "
)
_THAT_ONE = _re(r"^(?:that|those|these) (?!way\b|case\b|means?\b)[a-z]+s? ")
_PLURAL = _re(r"(?:they|these|those)\b")
#: "It" as the subject of what follows, in no set phrase ("it seems that", "it is not possible to").
_IT = re.compile(
    rf"^It (?={VERB}\b)(?!(?:is|was|would be|will be) (?:not )?(?:\w+ )?(?:that|to|worth|possible|important)\b)"
)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.{1,200}?)[ \t#]*$|^ {0,3}\*\*([^*\n]{2,80})\*\*:?[ \t]*$")
_LABEL = re.compile(r"^\s{0,8}(?:[-*+]|\d{1,2}[.)])?\s{0,3}(.{2,80}):\s*$")
_WORD = re.compile(r"[^\W_]+")
#: A file that is brought along in a prompt, with its lines.
_ATTACHED = re.compile(
    r"(?<![\w@])@((?:[\w.~-]{0,60}/){1,20}[\w.-]{0,80}\.\w{1,8})(?::\d[\d, –-]*|#L\d[\dL-]*)?(?=\s|[,.;:)]|$)"
)
#: The marks with which the line of a sentence begins; how far it is moved in stays.
_BEGUN = re.compile(r"((?:^|(?<=\n))[ \t]*|[ \t]*)(?:[-*+•]|\d{1,2}[.)])?[ \t*_`\"'(\[]*\Z")
_LISTED = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s|\s{2,}\S")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s")
#: What opens a lead and says nothing; and a lead that names nothing.
_OPENS = _re(r"^(?:so|and|but|now|then|also|done)\b,? ")
_NO_LEAD = _re(
    r"\b(?:following|below|above|summary|here|let me|i['’](?:ll|ve)|questions?)\b|\b(?:changes?|files?|steps?|options?|features?|tests?|points?|issues|problems"
    r"|things|reasons|ways|cases|made|modified|updated|added)(?: \w+)?$|^(?:this|it|that|which|they|these)\b"
)
_MARKS = re.compile(r"(?<!\w)[*_]{1,3}|[*_]{1,3}(?!\w)|#{1,6}")
_NUMBERED = _re(
    r"^\W{0,4}(?:\d{1,2}(?:\.\d{1,2}){0,2}[.):]?|[a-z][.)]|(?:step|phase|part|issue|problem|fix|change|bug)"
    r" \d{1,2}[:.]?)\s+"
)
#: What tells when or that something is done, and names nothing.
_NOT_NAMING = _re(
    r"\W*(?:when|if|after|before|once|while|so|then|there|something|anything|i|we|you|it|user|users|my|our|your"
    r"|creates?|shows?|returns?|prints?|calls?|adds?|sets?|runs?|uses?|builds?|writes?|reads?|checks?|makes?|examples? \w+"
    r"|changes (?:completed|done)|summary of|list of|looking|let|now|done|results? of|step|notice"
    r"|final|(?:added|removed|changed|fixed|updated)$)\b"
)
#: Titles that name a part of a text and nothing that it is about.
_NO_SUBJECT = _re(
    r"^\W*(?:(?:the |key |main |other |all |new |current |proposed |your |my |our |next |technical |implementation |high[- ]level"
    r"|design |code |test |file |required |made )*(?:root cause|cause|context|background|overview|summary|problem|issues?|solution|fix(?:es)?"
    r"|approach|plan|changes?(?: (?:made|required|needed))?|what (?:changed|was|i|we|it|this|happened|to|the)\b.*|how (?:it|to|this)\b.*|why\b.*"
    r"|results?|findings?|conclusion|notes?|details?|steps?|files?(?: (?:to|modified|changed|created)\b.*)?|verification"
    r"|testing|tests?|todo|goals?|decisions?|rationale|benefits?|trade-?offs?|options?|recommendations?|questions?"
    r"|examples?|usage|before|after|next steps?|behaviou?r|analysis|explanation|review|features?|requirements?"
    r"|considerations?|scenarios?|status|update|answer|yes|no|note|so|current state|in short|key \w+|implementation"
    r"|architecture|design|scope|pros|cons|here(?:'s| is| are)\b.*|the \w+|this \w+|.*\b(?:i|you|we|this|that|these|it|following)\b.*))\W*$"
)


def placed(text: str, *, turn: str, said: str) -> str:
    """`text`, which is told of what was `said` in `turn`, so that it can be understood alone."""
    listed = ROWS in text
    if not listed and not is_open(text):
        return text
    before = before_in(turn, said)
    alone = standalone(text, before=before)
    return led(text, turn=turn, before=before) if listed and alone == text else alone


def standalone(text: str, *, before: str = "", subject: str = "") -> str:
    """`text` so that it can be understood alone, at most 45 content words longer forms of it left as they are.

    `before` is what was said right before it, `subject` what it is about where the caller knows; else it is looked
    for in `before`. Gives `text` itself where it points at nothing outside, or where nothing clear is found.
    """
    if not is_open(text):
        return text
    name = antecedent(before) if _IT.match(text) else ""
    if name:
        return bounded(_IT.sub(lambda _: f"{name} ", text, count=1), text)
    topic = _title(subject) if subject else subject_of(before)
    one_name = _NAME.fullmatch(topic) is not None
    if not topic or (one_name and _PLURAL.match(text)) or set(content_words(topic)) <= set(content_words(text)):
        return text
    return bounded(f"{topic}: {text}", text)


def led(text: str, *, turn: str, before: str) -> str:
    """`text`, which begins with an item of a list in `turn` behind `before`, with what leads into that list put in front.

    An item says half of what it means: "Proper ids; Valid entries" are what the tool now writes. Else it is `text` itself.
    """
    begun = turn[before.rfind("\n") + 1 :].partition("\n")[0]
    if not _ITEM.match(begun) or begun.rstrip("*_ ").endswith(":"):
        return text
    lead = _lead_of(before) or subject_of(before)
    new = set(content_words(lead)) - set(content_words(text))
    return bounded(f"{lead}: {text}", text) if new else text


def behind(text: str, *, before: str) -> str:
    """`text` with the sentence right before it in front, where that is prose which names something and both fit."""
    lines = [line for line in without_code(before[-MAX_LOOKED_AT:]).splitlines() if line.strip()]
    parts = sentences(squeeze(_MARKS.sub("", _NUMBERED.sub("", lines[-1][-MAX_CHARACTERS:])))) if lines else []
    last = parts[-1].lstrip("-*+• ") if parts else ""
    if not _NAME.search(last) or last.endswith("?") or len(content_words(last)) < MIN_BEFORE:
        return text
    return bounded(f"{last} {text}", text)


def attached(turn: str) -> str:
    """The one file that a prompt brings with it ("@src/app.py:12-30"), as it is named; "" for none and for several."""
    named = {found[1].rstrip("/").rpartition("/")[2] for found in _ATTACHED.finditer(turn[:MAX_LOOKED_AT])}
    return named.pop() if len(named) == 1 else ""


def about(name: str, text: str) -> str:
    """`text` with what it is about in front, where both fit."""
    return text if name in text else bounded(f"{name}: {text}", text)


def _lead_of(before: str) -> str:
    """The line with a colon at its end that leads into the list which goes on behind `before`; "" for none that says anything."""
    inside = len(before) - len(before.rstrip(" \t"))
    for line in reversed(without_code(before[-MAX_LOOKED_AT:]).splitlines()):
        listed = _LISTED.match(line) is not None
        bare = squeeze(_MARKS.sub("", _NUMBERED.sub("", line)))
        if bare.endswith(":") and (not listed or len(line) - len(line.lstrip()) < inside):
            lead = _OPENS.sub("", sentences(bare.lstrip("-*+• "))[-1].rstrip(" :"))
            said = len(content_words(lead))
            return "" if len(words(lead)) > MAX_LEAD_WORDS or said < 2 or _NO_LEAD.search(lead) else lead
        if line.strip() and not listed:
            return ""
    return ""


def points_out(text: str, *, this: bool = False) -> bool:
    """Whether a sentence begins with a word for a thing that was named before it, or lacks its subject.

    "This" may be all that was said, and is not asked for but where it is to be found out.
    """
    if _POINTS_OUT.match(text):
        return this or text[:4].lower() not in ("this", "that")
    return bool(_WITHOUT.match(text) or (_THAT_ONE.match(text) and not _NAME.search(text)))


def is_open(text: str) -> bool:
    """Whether a sentence speaks of something that it does not name."""
    if _POINTS_OUT.match(text) or _WITHOUT.match(text) or _LABELLED.match(text):
        return True
    return bool(_PART_OF.search(text)) and not _NAME.search(text)


def antecedent(before: str) -> str:
    """The name that is the subject of the last sentence of `before`, as it stands there; "" unless it is the only one."""
    lines = [line for line in before[-MAX_LOOKED_AT:].splitlines() if line.strip()]
    parts = sentences(squeeze(lines[-1][-MAX_CHARACTERS:])) if lines else []
    if not parts:
        return ""
    last = parts[-1].lstrip("-*+• ")
    found = list(_NAME.finditer(last))
    if len({match[0] for match in found}) != 1 or len(words(last[: found[0].start()])) > 1:
        return ""
    behind = last[found[0].end() :].lstrip()
    return found[0][0] if re.match(rf"(?:\w+ )?{VERB}\b", behind) else ""


def subject_of(before: str) -> str:
    """The nearest heading, label or line of its own before a sentence that names something; "" where there is none.

    A label ends with a colon and counts while its list goes on, so does a name on a line of its own; a heading counts
    while its section does, and the titles above it when it names nothing.
    """
    broken = False
    level, inside = 7, len(before) - len(before.rstrip(" \t"))
    for line in reversed(without_code(before[-MAX_LOOKED_AT:]).splitlines()):
        indent = len(line) - len(line.lstrip())
        heading = _HEADING.match(line)
        if heading:
            depth = line.lstrip().find(" ") if heading[1] else 6
            broken = True
            if depth >= level:
                continue
            level = depth
            title = _title(heading[1] or heading[2])
        elif broken or not line.strip() or (_LISTED.match(line) and indent >= max(1, inside)):
            continue
        else:
            label = _LABEL.match(line)
            title = _title(label[1]) if label else _alone(line)
            inside = min(inside, indent)
            broken = not _LISTED.match(line)
        if title:
            return title
    return ""


def _alone(line: str) -> str:
    """The name that is all that a line says."""
    bare = line.strip().strip("*:- ")
    found = _NAME.fullmatch(bare)
    return found[0] if found else ""


def before_in(text: str, sentence: str) -> str:
    """What stands in `text` before `sentence`, whose marks may be gone; "" where it is not found."""
    wanted = _WORD.findall(sentence)[:FIRST_WORDS]
    found = list(_WORD.finditer(text[:MAX_LOOKED_AT]))
    said = [match[0] for match in found]
    for at, word in enumerate(said):
        if wanted and word == wanted[0] and said[at : at + len(wanted)] == wanted:
            start = found[at].start()
            line = text.rfind("\n", 0, start) + 1  # the marks stand on the sentence's own line
            return text[:line] + _BEGUN.sub(r"\1", text[line:start])
    return ""


def names_nothing(said: str) -> bool:
    """Whether what could be a subject is only a part of a text, or of the work."""
    return _NAME.search(said) is None and bool(_NO_SUBJECT.match(said) or _NO_LEAD.search(said.rstrip()))


def _title(said: str) -> str:
    """A heading or label as a subject; "" when it names nothing."""
    bare = squeeze(_MARKS.sub("", _NUMBERED.sub("", said))).strip(" :.-–—")
    named = list(_NAME.finditer(bare))
    if len(named) == 1 and len(words(bare[: named[0].start()])) <= MOST_BEFORE_NAME and not _NOT_NAMING.match(bare):
        return named[0][0]
    if not bare or len(bare) > MAX_SUBJECT or len(words(bare)) > MAX_SUBJECT_WORDS or bare.endswith("?"):
        return ""
    if re.search(r"[.!?] ", bare) or _NO_SUBJECT.match(bare) or _NOT_NAMING.match(bare) or not content_words(bare):
        return ""
    return bare


def bounded(longer: str, text: str) -> str:
    """The longer form of a text where it keeps within the limits, else `text` itself."""
    fits = len(longer) <= MAX_CHARACTERS and len(content_words(longer)) <= MAX_CONTENT_WORDS
    return longer if fits else text
