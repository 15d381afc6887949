"""Where a statement was said, and whether its code has changed since."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from csmd.cache import cached
from csmd.conversation import SessionPrompt, StatedInTurn, StatedMemory
from csmd.extraction import failure_reports, packets
from csmd.text import display, prose, similarity, tokens
from csmd.text.sentence import ends_with_question, has, opens, parse, tells_what_was_done
from csmd.text.trimming import strip_order

#: What says by itself where: a file, a path, a name of code.
_PLACE = re.compile(
    r"(?<![\w@/])(?:[\w.~-]{1,60}/){1,12}[\w.-]{1,60}|(?<![\w.])\.?(?:[\w-]{1,60}\.){1,4}(?:py|go|tsx?|jsx?|rs|md|ya?ml|json|jsonl|toml|sh|sql|java|kt|rb|php|cs|cpp|c|h|css|html|vue|swift|env)\b"
    r"|\b[a-z]{1,40}[A-Z]\w{1,60}|\b[A-Z][a-z]{1,40}[A-Z]\w{0,60}|\b\w{1,40}_\w{1,60}|\b[\w.]{2,60}\(\)|(?<!\w)\.env\b"
)
#: A file, as a turn names it: with a known ending.
_FILE = re.compile(
    r"(?<![\w@/.])((?:[\w.~-]{1,60}/){0,12}[\w.-]{1,60}\.(?:py|go|tsx?|jsx?|rs|md|ya?ml|json|toml|sh|sql|java|kt|rb|php|cs|cpp|c|h|css|html|vue|swift))(?![\w/-])"
)
#: Files that are not the work itself: plans, notes and temporary files.
_NO_WORK = re.compile(
    r"[\\/]\.claude[\\/](?:plans|projects|todos)[\\/]|^(?:/private)?/(?:var/)?tmp/|[\\/](?:Temp|scratch\w*)[\\/]"
)
#: What tries the work out counts only where nothing else was changed.
_TEST = re.compile(r"(?:^|[_.-])(?:tests?|spec)(?:[_.-]|$)|(?<!la)tests?\.(?:java|kt|cs|swift|php)$", re.IGNORECASE)
#: Characters of a turn that are searched for a file.
MAX_TURN_CHARACTERS = 4_000
#: The file at hand has this share of the changes.
MIN_MAIN_SHARE = 0.5
#: How many prompts further back an assistant may still speak of what it changed.
MAX_EXCHANGES_BACK = 3
#: How many parts of a path are shown.
MAX_PATH_PARTS = 2
_PART = re.compile(r"[\w.@+()\[\]~ -]{1,60}")
#: Most characters of a quoted question or first sentence of a turn; a longer one is left out.
MAX_QUOTED_CHARACTERS = 170
#: Fewest words with a meaning that it needs.
MIN_QUOTED_WORDS = 3
#: It is left out if the statement has this share of its words.
MAX_HELD_SHARE = 0.8
#: A sentence contains a statement if one has this share of the other's words.
MIN_CONTAINED_SHARE = 0.6
#: What asks for a look or for words; about what says the rest of the question.
_ASKING = frozenset(
    "check look explain show tell see review take give find help think know sure right possible change changes make add maybe actually"
    " implement following plan got feedback comment comments idea context thoughts branch pr".split()
)
#: The scene of a reviewer's remark that a user hands on.
REVIEW = "in a review"
#: The beginning of a scene that is a file; its path follows.
AT_FILE = "at "


class Change(NamedTuple):
    """A change by the tool call with this uuid to the file at `path` below its project, "" for one elsewhere; `anew`: it
    wrote the whole file."""

    uuid: str
    ordinal: int
    path: str
    at: str = ""
    anew: bool = False


class Scene(NamedTuple):
    """The scene as a phrase, and the turn that shows it."""

    text: str
    uuid: str


def find_scenes(
    statements: Iterable[StatedInTurn], changes: Sequence[Change], prompts: Sequence[SessionPrompt]
) -> dict[int, Scene]:
    """Maps each memory to the scene of its statement; changes and prompts are in order."""
    exchanges = _Exchanges(changes, prompts)
    scene_of = {statement.memory_seq: _find_scene(statement, exchanges) for statement in statements}
    return {key: there for key, there in scene_of.items() if there is not None}


def find_rewrites(
    statements: Iterable[StatedMemory], changes: Sequence[Change], prompts: Sequence[SessionPrompt]
) -> dict[int, Change]:
    """Maps each memory an assistant stated about its work to the later change that rewrote the file."""
    exchanges = _Exchanges(changes, prompts)
    last = {change.path: change for change in exchanges.work if change.anew}
    rewrites: dict[int, Change] = {}
    for statement in statements:
        at = exchanges.at(statement.ordinal)
        most = exchanges.most(at) if at and statement.authority != "user" else None
        again = last.get(most.path) if most is not None else None
        end = exchanges.end(at)
        if again is not None and end is not None and again.ordinal > end:
            rewrites[statement.memory_seq] = again
    return rewrites


class _Exchanges:
    """The file changes between prompts; a session's statements share these answers."""

    def __init__(self, changes: Sequence[Change], prompts: Sequence[SessionPrompt]) -> None:
        self.work = [change for change in changes if change.path and not _NO_WORK.search(change.path)]
        self._places = [change.ordinal for change in self.work]
        self._prompts = prompts
        self._typed = [prompt.ordinal for prompt in prompts]
        typed = set(self._typed)
        # What is typed one after the other is answered as one.
        self._begins = [prompt.ordinal for prompt in prompts if prompt.ordinal - 1 not in typed]
        self._most: dict[tuple[int, int | None], Change | None] = {}

    def at(self, ordinal: int) -> int:
        """The number of the exchange at an ordinal, 0 before the first."""
        return bisect_right(self._begins, ordinal)

    def end(self, at: int) -> int | None:
        """The ordinal at which an exchange ends, None for the last."""
        return self._begins[at] if at < len(self._begins) else None

    def is_idle(self, at: int) -> bool:
        """Whether nothing was changed in an exchange."""
        first, upto = self._bounds(self._begins[at - 1] if at else 0, self.end(at))
        return first == upto

    def most(self, at: int) -> Change | None:
        """The last change of the file that an exchange changed most."""
        return self.behind(self._begins[at - 1] if at else 0, self.end(at))

    def behind(self, first: int, end: int | None) -> Change | None:
        """The last change of the file that was changed most between two ordinals."""
        bounds = self._bounds(first, end)
        if bounds not in self._most:
            self._most[bounds] = _find_main_change(self.work[slice(*bounds)])
        return self._most[bounds]

    def _bounds(self, first: int, end: int | None) -> tuple[int, int]:
        return bisect_left(self._places, first), len(self._places) if end is None else bisect_left(self._places, end)

    def prompt(self, ordinal: int) -> SessionPrompt:
        """The last prompt before an ordinal."""
        return self._prompts[bisect_right(self._typed, ordinal) - 1]


def _find_scene(statement: StatedInTurn, exchanges: _Exchanges) -> Scene | None:
    at = exchanges.at(statement.ordinal)
    if statement.authority == "user":
        lead = _find_lead(statement)
        if statement.gate != "correction" and _is_remark(statement):
            return Scene(", ".join(filter(None, (REVIEW, lead))), statement.uuid)
        if has("everywhere", "en", statement.text):
            return None
        there = _find_place_scene(statement, exchanges.behind(statement.ordinal, exchanges.end(at)))
        return there or (Scene(lead, statement.uuid) if lead else None)
    if (
        at
        and exchanges.is_idle(at)
        and (question := _find_question_scene(exchanges.prompt(statement.ordinal), statement.text)) is not None
    ):
        return question
    back = next(
        (back for back in range(MAX_EXCHANGES_BACK) if at - back >= 0 and not exchanges.is_idle(at - back)), None
    )
    return _find_place_scene(statement, exchanges.most(at - back) if back is not None else None)


def _find_place_scene(statement: StatedInTurn, changed: Change | None) -> Scene | None:
    """The only file that the turn names, else the changed one; None if the statement names a place itself."""
    if _PLACE.search(statement.text):
        return None
    named = {match[1] for match in _FILE.finditer(statement.turn[:MAX_TURN_CHARACTERS])}
    if named:
        return _make_place_scene(named.pop(), statement.uuid) if len(named) == 1 else None
    return _make_place_scene(changed.path, changed.uuid) if changed is not None else None


def _find_main_change(work: Sequence[Change]) -> Change | None:
    """The last change of the file with at least half of the changes; tests count only if nothing else was changed."""
    counted = [change for change in work if not _is_test(change.path)] or work
    path, times = Counter(change.path for change in counted).most_common(1)[0] if counted else ("", 0)
    return (
        next(change for change in reversed(counted) if change.path == path)
        if path and times >= MIN_MAIN_SHARE * len(counted)
        else None
    )


@cached(4096)
def _is_test(path: str) -> bool:
    return _TEST.search(_split_path(path)[-1]) is not None


def _find_question_scene(prompt: SessionPrompt, answer: str) -> Scene | None:
    """The last question of a prompt, if it says more than its answer."""
    question = next((sentence for sentence in reversed(_sentences(prompt.text)) if ends_with_question(sentence)), "")
    is_errand = parse(question).kind == "orders" and not opens("inquire", "en", strip_order(question))
    if is_errand or not _adds_words(question, answer):
        return None
    return Scene(f"in answer to {_quote(question)}", prompt.uuid)


def _find_lead(statement: StatedInTurn) -> str:
    """The first sentence of a turn as a phrase, if the statement comes from a later one and does not repeat it."""
    lead, *behind = _sentences(statement.turn) or [""]
    while (
        behind and len(tokens.content_words(lead)) < MIN_QUOTED_WORDS
    ):  # a greeting or a heading; after a colon the text goes on
        lead = f"{lead} {behind.pop(0)}" if lead.endswith(":") else behind.pop(0)
    words = tokens.content_stems(statement.text)
    begun = tokens.content_stems(next(iter(_sentences(statement.text)), ""))
    if not begun or similarity.share(begun, tokens.content_stems(lead)) >= MIN_CONTAINED_SHARE:
        return ""  # it begins there itself
    stands = any(
        similarity.share(*sorted((own, words), key=len)) >= MIN_CONTAINED_SHARE
        for own in map(tokens.content_stems, behind)
    )
    return f"after {_quote(lead)}" if stands and _adds_words(lead, statement.text) else ""


def _is_remark(statement: StatedInTurn) -> bool:
    """Whether a statement comes from a reviewer's remark: one that is quoted, or a turn that reports a fault."""
    words = tokens.content_stems(statement.text)
    return any(
        find_remark != statement.turn or packets.reports_fault(find_remark)
        for find_remark in packets.find_remarks(statement.turn)
        if not words or similarity.share(words, tokens.content_stems(find_remark)) >= MIN_CONTAINED_SHARE
    )


def _sentences(turn: str) -> list[str]:
    rows = prose.read_prose_lines(turn[:MAX_TURN_CHARACTERS])
    return [display.squeeze(sentence) for row in rows for sentence in prose.split_sentences(row)]


def _adds_words(sentence: str, statement_text: str) -> bool:
    """Whether a sentence is short and says something that the statement does not."""
    words = frozenset(word for word in tokens.content_stems(sentence) if word not in _ASKING)
    is_held = similarity.share(words, tokens.content_stems(statement_text)) >= MAX_HELD_SHARE
    return len(sentence) <= MAX_QUOTED_CHARACTERS and len(words) >= MIN_QUOTED_WORDS and not is_held


def _quote(sentence: str) -> str:
    seen = "".join(char if char.isprintable() else " " for char in sentence.replace('"', "'"))
    return '"' + display.squeeze(display.defuse(seen)) + '"'


def _make_place_scene(path: str, uuid: str) -> Scene | None:
    if path.startswith(("~", "..")) or "/../" in path:
        return None
    parts = _split_path(path)[-MAX_PATH_PARTS:]
    return Scene(AT_FILE + "/".join(parts), uuid) if all(map(_PART.fullmatch, parts)) else None


def _split_path(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part] or [path]


#: Categories that say how something is; a wish, a decision or a promise is carried out by an edit.
CLAIM_CATEGORIES = frozenset({"fact", "gotcha", "constraint"})
DECISION_CATEGORIES = frozenset({"decision", "pattern"})
#: An edit with this many names of a claim is about the same code; so is one that removes such a name.
MIN_SAME_NAMES = 2
#: Of what is edited in answer to a remark one of its names is enough.
MIN_ANSWERED_NAMES = 1


#: A file, as it is named; and the line in it that is meant.
_NAMED_FILE = re.compile(r"\.\w{1,5}$")
_LINE = re.compile(r"(?<=\w):\d+(?:-\d+)?$")
#: What is written for people; only a statement that names it is about it.
_PROSE = re.compile(r"\.(?:md|rst|txt|adoc)$")
#: A name in code, qualified or not, with what belongs to it; and its parts.
_WORD = re.compile(r"[\w$-]+(?:[./-][\w$-]+)*")
#: An item of a list, and how many make one.
_ITEM = re.compile(r"^[ \t]{0,3}(?:[-*•]|\d{1,2}[.)])[ \t]+\S", re.MULTILINE)
MIN_LIST_ITEMS = 2
#: Shorter names occur in too many places.
MIN_NAME_CHARACTERS = 3


class Edit(NamedTuple):
    """One replacement in the file at `path`, made by the tool call with this uuid."""

    uuid: str
    at: str
    ordinal: int
    path: str
    old: str
    new: str


class Claim(NamedTuple):
    """A claim about code at an ordinal of its session; `key` identifies it.

    `around` is the remark of a reviewer that it was taken from, "" for what is no remark; what is done before the
    ordinal `answered` is done in answer to it.
    """

    key: int
    text: str
    ordinal: int
    around: str = ""
    answered: int = 0


class _Named(NamedTuple):
    """The names in a claim, and in the remark around it."""

    ordinal: int
    names: frozenset[str]
    around: frozenset[str]
    answered: int


class Place(NamedTuple):
    """The file of an edit, and how often each name occurs before and after."""

    file: str
    old: Counter[str]
    new: Counter[str]


def is_claim(text: str, category: str, *, by_assistant: bool, turn: str) -> bool:
    """Whether a statement describes code: a fact, an assistant's decision, or a reviewer's remark in the `turn`."""
    if find_remark(text, category, turn):
        return not all(map(_is_no_claim, prose.split_sentences(text)))
    claims = category in CLAIM_CATEGORIES or (by_assistant and category in DECISION_CATEGORIES)
    return claims and not _is_no_claim(text)


def _is_no_claim(text: str) -> bool:
    """Whether a sentence tells of a change, wants one, or lays something down for good."""
    is_order = parse(text).kind == "orders" and not opens("advice", "en", text)
    if is_order or tells_what_was_done(text) or has("changed", "en", text):
        return True
    return any(opens(name, "en", text) for name in ("wants", "lays_down", "supposes"))


def find_remark(text: str, category: str, turn: str) -> str:
    """The reviewer's remark or finding in a `turn` that a statement was taken from; "" for none.

    A short text is about one thing; of a list it is the item that shares the most words with the statement. What is
    only derived from such turns, as a habit is, is in none of them.
    """
    if not (packets.find_remarks(turn) or (category in CLAIM_CATEGORIES and packets.is_finding(turn))):
        return ""
    words = set(tokens.content_words(text))
    if len(words & set(tokens.content_words(turn))) <= len(words) / 2:
        return ""
    starts = [item_start.start() for item_start in _ITEM.finditer(turn)]
    if len(starts) < MIN_LIST_ITEMS:
        return turn
    items = [turn[start:end] for start, end in zip(starts, [*starts[1:], len(turn)], strict=True)]
    return max(items, key=lambda item: len(words & set(tokens.content_words(item))))


def find_edits(claims: Iterable[Claim], edits: Sequence[Edit]) -> dict[int, Edit]:
    """Maps each claim to the last later edit of the code that it describes; each edit is read once."""
    waiting = {
        claim.key: _Named(claim.ordinal, _names(claim.text), _names(claim.around), claim.answered) for claim in claims
    }
    edit_of: dict[int, Edit] = {}
    for edit in reversed(edits):
        before = [(key, named) for key, named in waiting.items() if named.ordinal < edit.ordinal]
        place = _place(edit) if before else None
        for key, named in before:
            least = MIN_ANSWERED_NAMES if edit.ordinal < named.answered else MIN_SAME_NAMES
            if place is not None and (_is_about(named.names, place) or _mends(named.around, place, least)):
                edit_of[key] = edit
                del waiting[key]
    return edit_of


def _names(text: str) -> frozenset[str]:
    """The names in a text, qualified ones by their parts; a file keeps its ending."""
    in_text = {_LINE.sub("", name) for name in failure_reports.find_names(text)}
    parts = {part for name in in_text if not _NAMED_FILE.search(name) for part in re.split(r"[.(:\s]+", name)}
    return frozenset(
        name for name in parts | set(filter(_NAMED_FILE.search, in_text)) if len(name) > MIN_NAME_CHARACTERS
    )


def _place(edit: Edit) -> Place | None:
    """The place of an edit; None for a test file."""
    file = edit.path.rpartition("/")[2].casefold()
    return None if _TEST.search(file) else Place(file, _count_names(edit.old), _count_names(edit.new))


def _is_about(named: frozenset[str], place: Place) -> bool:
    """Whether an edit removes one of the names, or its code holds several of them, or the only one.

    The name of the file counts as one of the place; if nothing else is named any edit of the file does.
    """
    if _PROSE.search(place.file) and place.file not in named:
        return False
    there = [name for name in named if name in place.old]
    if not there:
        return named == {place.file}
    held = len({*there, *(name for name in named if name in place.new)}) + (place.file in named)
    return held >= min(MIN_SAME_NAMES, len(named)) or any(place.old[name] > place.new[name] for name in there)


def _mends(named: frozenset[str], place: Place, least: int) -> bool:
    """Whether an edit's place holds at least `least` names of a remark, one of them in the code."""
    if _PROSE.search(place.file) and place.file not in named:
        return False
    there = sum(name in place.old or name in place.new for name in named)
    return there > 0 and there + (place.file in named) >= least


def _count_names(code: str) -> Counter[str]:
    """Counts the names in code, whole and by the parts of qualified ones."""
    whole = _WORD.findall(code.casefold())
    return Counter([*whole, *(part for word in whole if not word.isidentifier() for part in re.findall(r"\w+", word))])
