"""Lists of rules that a user asks to keep: each item is a statement, as far as three statements hold them; pure.

"From now on:" and "Our conventions:" say of every item below that it lasts, however short it is; "Steps:" and "Please
do:" do not, and what stands below them is weighed like the rest. What leads in is a row of LEADS: one clause, nothing
else in it. Three items are a statement each, so that each can be changed by itself; more are told with neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from csmd.distill import refused, saying, standing, telling, units
from csmd.distill.resolve import ROWS
from csmd.distill.units import Piece, Unit
from csmd.text import content_words, words

#: A prompt gives so many statements (extract.py); so many items of its lists are looked at.
MOST, MAX_ITEMS = 3, 40
#: An item of fewer words says what it says only under its lead; and what leads in has so many characters.
BARE_WORDS, MAX_LEAD = 3, 120
#: A text of so many rows is something pasted: only what it begins with speaks for the user.
DOCUMENT_ROWS = 14


class Lead(NamedTuple):
    """One row of LEADS; the group `name` of its pattern is what an item may be told with.

    One that leads `alone` does so at the beginning of a prompt: behind a task it is about that. One that is a `part` of
    what its items say is told with each statement.
    """

    pattern: re.Pattern[str]
    alone: bool = False
    part: bool = False


class Item(NamedTuple):
    """An item of a list with its places in the text, what leads into it, and whether it is told with that anyway."""

    first: int
    last: int
    text: str
    lead: str
    part: bool


_PLEASE = (
    r"(?:(?:please|pls|ok|okay|also|and|so|hi|hello|hey|btw|by the way|fyi|before (?:we|you) (?:start|begin)|first|claude|now|then"
    r"|i want you to|i['’]d like you to|(?:can|could) you|let me tell you)[,!.]? ){0,3}"
)
_NOUN = (
    r"(?:rules?|conventions?|preferences?|standards?|guidelines?|principles|practices|policies|habits|setup|stack|decisions|choices"
    r"|defaults|tooling|tools|style|ways of working)"
)
#: What a name for what lasts is about: the work as a whole, or one side of it.
_KIND = (
    r"(?:(?:(?:basic|new|additional|standing|general|main|important|key|fixed|hard|simple|project|team|repo|repository|house|ground|company|coding|code|naming|style|git"
    r"|commits?|testing|tests?|review|branch(?:ing)?|release|deploy(?:ment)?|tech|technology|technical|architecture|architectural|design|engineering|personal|working"
    r"|formatting|documentation|python|typescript|javascript|go|rust|java|react|frontend|backend|api|database|workflow|agreed|non-negotiable)(?: and)? ){0,3})"
)
_WORK = r"(?:repo|repository|project|codebase|code base|code|team|app|application|service|monorepo|workspace|package|library|company|website|session|sessions|work|us|me|you)"
_OF_WORK = rf"(?:(?:this|the|our|my|all|every|any)(?: (?:whole|entire|future|new|own))? ?)?{_WORK}(?: here)?"
_IN = rf"(?:,? (?:for|in|about|on|of|across|with) {_OF_WORK})"
_LASTS = (
    r"(?:,? (?:from now on|going forward|in (?:the )?future|for (?:the )?(?:future|later|next time)|at all times|here))"
)
_FOLLOWED = (
    r"(?: (?:that |which )?(?:we|i|you|everyone|everybody)(?: all)?(?: ?['’]d like(?: you)? to| should| must| need to| have to| want(?: you)? to| like(?: you)? to| would like(?: you)? to| have)?(?: always)?"
    r" (?:follow|use|keep|keep to|stick to|like|have|live by|work by|agreed(?: on| to)?|decided(?: on)?|made|took|settled on|prefer|care about|respect|know|remember)"
    r"| (?:to|you should) (?:always )?(?:follow|remember|keep|keep in mind|know|respect|stick to))"
)
_TAIL = rf"(?:{_IN}|{_LASTS}|{_FOLLOWED}){{0,3}}"
_OURS = r"(?:our|my|the (?:project|team|repo|company|codebase)['’]s|this (?:project|repo|team|codebase)['’]s|the (?:project|team|repo|company|house|ground|coding))"
_SOME = r"(?:an?|a few|a couple of|some|the|the following|these|several|two|three|four|five|six|seven|eight|nine|ten|\d{1,2}|more|other|a few more|some more|one more|another)"
_HERE = r"(?:here(?:['’]s| is| are)|these are|this is|the following are|we have|there are) "
_THESE = rf"(?:that|this|these|the following|the below|all (?:of )?(?:this|these)|{_OURS}|{_SOME})"


def _lead(pattern: str, *, alone: bool = False, part: bool = False) -> Lead:
    """A row for a whole clause, whatever its capitals and whatever is said out of politeness before it."""
    return Lead(re.compile(rf"{_PLEASE}(?:{pattern})", re.IGNORECASE), alone, part)


_KEEP = r"(?:always )?(?:remember|keep in mind|bear in mind|memori[sz]e|take note of|make a note of|note(?: down)?|never forget|do not forget|don['’]?t forget)"
# fmt: off
LEADS: tuple[Lead, ...] = (
    # Asked for in so many words.
    _lead(rf"{_KEEP}(?: {_THESE})? {_KIND}(?:{_NOUN}|things|facts|points){_TAIL}"),
    _lead(rf"{_KEEP}(?: {_THESE})?(?:{_IN}|{_LASTS}){{1,2}}"),
    _lead(rf"keep {_THESE}(?: {_KIND}(?:{_NOUN}|things))? in mind{_TAIL}|always (?:follow|stick to|keep to|respect) {_THESE} {_KIND}{_NOUN}"),
    _lead(rf"{_KEEP}(?: {_THESE})?(?: please)?|note that|please note", alone=True),
    _lead(rf"(?:save|store|add|put|write) (?:{_THESE} )?(?:{_KIND}{_NOUN} )?(?:to|in|into) (?:your |the |csmd['’]s? )?(?:long[- ]term )?memory"),
    _lead(rf"(?:{_SOME} )?(?:things|facts|what)(?: (?:that )?(?:you|everyone) (?:should|must|need to|have to))?(?: to)?(?: always)? (?:remember|know|keep in mind){_IN}?|(?:{_SOME} )?facts{_IN}"),
    _lead(rf"(?:{_HERE})?how we (?:work|do (?:things|it)|write code|name things|collaborate){_IN}?"),
    # From when on, or always.
    _lead(rf"(?:from now on|going forward|from here on|in (?:all )?future (?:sessions|work)|for (?:all )?future sessions|in (?:the )?future){_IN}?"
          rf"(?:,? (?:please )?(?:always )?(?:(?:follow|stick to|keep to|respect|apply|observe|use|do|remember|keep in mind) )?(?:{_THESE}|{_NOUN}|{_THESE} {_KIND}(?:{_NOUN}|things))(?: apply)?|,? please|,? (?:we|you|i)(?: should| must)?)?"),
    _lead(rf"(?:in|for) {_OF_WORK}(?:,? (?:please )?(?:always )?(?:follow|stick to|keep to|respect|apply|observe) {_THESE}(?: {_KIND}(?:{_NOUN}|things))?|,? from now on|,? {_THESE} {_NOUN} apply)"),
    _lead(rf"(?:always )?(?:follow|stick to|keep to|respect|observe) {_THESE} {_KIND}{_NOUN}(?:{_IN}|{_LASTS}){{1,2}}"),
    _lead(rf"(?P<name>(?:in {_OF_WORK},? )?(?:(?:we|i|you (?:must|should)) )?(?:always|never)(?: ever)?(?: do)?)", part=True),
    # A name for what lasts, and whose it is.
    _lead(rf"(?:{_HERE})?(?P<name>{_OURS} {_KIND}{_NOUN}(?: for [a-z]+(?: and [a-z]+)?)?){_TAIL}(?: (?:is|are|now|so far|as follows|these|the following)){{0,3}}"),
    _lead(rf"(?:{_HERE})?(?:{_SOME} )?(?P<name>{_KIND}{_NOUN}(?:{_IN}|{_FOLLOWED})){_TAIL}(?: (?:is|are))?"),
    _lead(rf"(?:{_HERE})?(?:{_SOME} )?(?P<name>{_KIND}(?!tool|choices\b|setup\b|practices\b){_NOUN})(?: please)?", alone=True),
    # What we do, told of its items.
    _lead(rf"(?:(?:as a team,? )?we(?:['’]ve| have)? (?:all )?)?(?:decided|agreed|settled)(?: on| that| to)?(?: {_THESE})?{_IN}?"),
    _lead(rf"(?P<name>(?:in {_OF_WORK},? )?(?:we|i) (?:always |generally |usually )?(?:prefer|use|follow|work with)){_IN}?", part=True),
    _lead(rf"(?:in {_OF_WORK},? )?we follow {_THESE} {_KIND}{_NOUN}"),
)
# fmt: on

#: Lines without marks are a list where none has more words.
MAX_LINE_WORDS = 12
#: What is for now whatever leads into it, and what is so only with one thing that is at hand.
_NOW = re.compile(
    rf"{standing.ASKED}(?:fix|finish|continue|try|implement|investigate|look (?:at|into)|debug|rename|refactor|clean up|rewrite|start|check (?:if|whether|why|that))\b"
    rf"|{standing.ASKED}(?:{standing.ERRAND}|check|run|review|merge|push|deploy|bump|install) (?:the|this|that|these|those|it|my|our|them)\b|(?:it|they)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(standing.LASTING, re.IGNORECASE)
#: What says what to do needs no lead, however short it is.
_ORDER = re.compile(rf"(?:{standing.ORDER}|always|never|no)\b", re.IGNORECASE)
#: What goes on about something, or asks for it, and is no line of a list without marks.
_GOES_ON = re.compile(
    r"(?:it|this|that|they|these|those|please|now|then|so|but|(?:can|could|would) you|i need|i want|let['’]?s)\b",
    re.IGNORECASE,
)
#: Where the items of a list in one row begin; marks at the end of an item that others follow; ends of a row within an item.
_NUMBER = re.compile(r"(?:^|(?<=[\s;,.]))\(?\d{1,2}[.)] ")
_ENDING, _GOES_OVER = ".;, ", (",", " and", " or")
_MARKUP = re.compile(r"^[\s>#*_-]+|[*_]+")


def rules(text: str) -> list[Unit]:
    """At most MOST units of the lists in a user's text that are to be kept, in order, each as it is told."""
    if not any(_opens(line) for line in text[: units.HEAD].splitlines() if ":" in line):
        return []
    items = _items(units.pieces(text, "user"))
    return [_unit(group) for group in _grouped(items)]


def _opens(line: str) -> bool:
    """Whether a line may lead into such a list; cheap, of a text of which nothing is known yet."""
    parts = _MARKUP.sub("", line[: units.MAX_LINE]).split(":")
    last = re.split(r"[.!?] ", parts[-2])[-1] if len(parts) > 1 else ""
    return _led(parts[0], alone=True) is not None or _led(last, alone=True) is not None


def _led(said: str, *, alone: bool) -> tuple[str, bool] | None:
    """The name in what leads into a list to keep, and whether it is part of what its items say; None for another lead."""
    said = said.strip(" :*_")
    if not said or len(said) > MAX_LEAD:
        return None
    for lead in LEADS:
        if (alone or not lead.alone) and (found := lead.pattern.fullmatch(said)):
            return found.groupdict().get("name") or "", lead.part
    return None


def _items(found: Sequence[Piece]) -> list[Item]:
    """The items of all lists to keep in a text, each with the places of what was left out behind it."""
    items: list[Item] = []
    document = bool(found) and found[-1].row >= DOCUMENT_ROWS
    for at, piece in enumerate(found):
        if document and piece.row > 1:
            break
        if items and at <= items[-1].last:
            continue
        listed = list(_listed(found, at) if piece.text.endswith(":") else _in_row(found, at))
        kept = [one for one in listed if _lasts(one)]
        if not kept or 2 * len(kept) < len(listed):
            continue  # a list of tasks, whatever it is called
        if kept[0].lead and listed[-1].last + 1 < len(found) and not _led(piece.text.partition(":")[0], alone=False):
            continue  # "Rules:" with something behind them are those of what is asked for
        ends = [*(one.first for one in kept[1:]), listed[-1].last + 1]
        kept = [one._replace(last=max(end - 1, one.first)) for one, end in zip(kept, ends, strict=True)]
        items += [one._replace(first=at) if one is kept[0] else one for one in kept]
    once: dict[str, Item] = {}
    for one in items[:MAX_ITEMS]:
        once.setdefault(one.text.lower(), one)
    return list(once.values())


def _listed(found: Sequence[Piece], at: int) -> Iterator[Item]:
    """The items below a row that leads into them, each with its sentences and with what stands below it."""
    led = _led(found[at].text, alone=at == 0)
    marked = any(piece.item >= 0 for piece in found[at + 1 : at + 2])
    if led is None or found[at].item >= 0 or not (marked or _are_lines(found, at + 1)):
        return
    level, first, text = found[at + 1].item, at + 1, ""
    for place in range(at + 1, len(found)):
        piece = found[place]
        if piece.part != found[at].part or (piece.item < level and not text.endswith(_GOES_OVER)):
            break
        if piece.item == level and piece.row != found[place - 1].row:
            if text:
                yield Item(first, place - 1, text, *led)
            first, text = place, piece.text
        else:
            longer = f"{text}{_between(text, new_row=piece.row != found[place - 1].row)}{piece.text}"
            text = longer if _fits(longer) else text
    else:
        place = len(found)
    if text:
        yield Item(first, place - 1, text, *led)


def _are_lines(found: Sequence[Piece], at: int) -> bool:
    """Whether all that follows in its part of the text are short lines, as somebody lists things without marks."""
    lines = [piece for piece in found[at:] if piece.part == found[at].part]
    return len({piece.row for piece in lines}) == len(lines) > 1 and all(
        piece.item < 0
        and len(words(piece.text)) <= MAX_LINE_WORDS
        and not piece.text.endswith((":", "?"))
        and not _GOES_ON.match(piece.text)
        for piece in lines
    )


def _between(text: str, *, new_row: bool) -> str:
    """What stands between an item and what goes on about it."""
    return " " if text.endswith((":", ".", "!", "?", *_GOES_OVER)) else ", " if new_row else " "


def _in_row(found: Sequence[Piece], at: int) -> Iterator[Item]:
    """The items of a list that stands in one row with what leads into it, numbered or with semicolons between."""
    if (at and found[at].row == found[at - 1].row) or ":" not in found[at].text:
        return
    head, _, said = found[at].text.partition(":")
    led = _led(head, alone=at == 0)
    if led is None:
        return
    last = next((place for place in range(at, len(found)) if found[place].row != found[at].row), len(found)) - 1
    row = " ".join([said, *(piece.text for piece in found[at + 1 : last + 1])]).strip()
    if len(_NUMBER.findall(row)) > 1 and _NUMBER.match(row):
        parts = _NUMBER.split(row)[1:]
    elif ROWS in said:
        parts, last = said.split(ROWS), at
    else:
        return
    for part in parts:
        yield Item(at, last, part.strip(), *led)


def _lasts(item: Item) -> bool:
    """Whether an item may be kept: no question, nothing of the moment, nothing that the tables refuse."""
    said = f"{item.lead} {item.text}" if item.part else item.text
    if said.rstrip().endswith(("?", ":")) or not content_words(said) or not _fits(said):
        return False
    if _NOW.match(said) and not _LASTING.search(said):
        return False
    why = refused.refusal(said, "user")
    if why and not (why == "greeting" and _ORDER.match(said)):  # "no npm" greets nobody
        return False
    return not (standing.leaning(said, "user") or saying.otherwise(said))


def _grouped(items: list[Item]) -> list[list[Item]]:
    """Items as at most MOST groups of neighbours, as even as can be; without the last ones where not all fit."""
    for count in range(len(items), MOST, -1):
        sizes = [0]
        for item in items[:count]:
            sizes.append(sizes[-1] + len(content_words(item.text)))
        cuts = min(
            combinations(range(1, count), MOST - 1),
            key=lambda cut: sum((sizes[end] - sizes[start]) ** 2 for start, end in pairwise((0, *cut, count))),
        )
        groups = [items[start:end] for start, end in pairwise((0, *cuts, count))]
        if all(_fits(_told(group)) for group in groups):
            return groups
    return [[item] for item in items[:MOST]]


def _told(group: Sequence[Item]) -> str:
    """Items as one text, with what leads into them where they say nothing without."""
    bare = all(len(words(item.text)) < BARE_WORDS and not _ORDER.match(item.text) for item in group)
    parts: list[str] = []
    lead = ""
    for item in group:
        told = telling.told(item.text)
        told = told.rstrip(_ENDING) if len(group) > 1 else told.rstrip("; ,")
        if (item.part or bare) and item.lead and item.lead != lead:
            led = f"{item.lead}: {told}"
            told = led if _fits(led) else told
        lead = item.lead
        parts.append(told)
    return ROWS.join(parts)


def _unit(group: Sequence[Item]) -> Unit:
    """A group of items as a unit of the text."""
    text = _told(group)
    return Unit(group[0].first, group[-1].last, text, frozenset(content_words(text)), len(words(text)))


def _fits(said: str) -> bool:
    return len(said) <= units.MAX_CHARACTERS and len(content_words(said)) <= units.MAX_CONTENT_WORDS
