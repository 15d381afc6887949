"""What stands on which page: user, projects, themes, index."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from csmd.dream import actions, narrator, page_format
from csmd.dream.actions import Fact
from csmd.dream.page_format import Item, Page, Read, Section
from csmd.extraction import statement_context
from csmd.hosts.claude.environment import INDEX, INDEX_LINES, INDEX_UNITS
from csmd.memory import review_answers
from csmd.model import Category, Gate, Memory
from csmd.recall import brief, compose, visibility
from csmd.recall.brief import TWIN_OVERLAP
from csmd.text import display, page_lines, prose, similarity, tokens
from csmd.text.page_lines import PROJECTS, TOPICS, USER, of_project

#: A page is read by people: so many lines of memories, the surest, and of them so many under one heading.
PAGE_LINES, SECTION_LINES = 100, 16
#: What a session left to be done stands under "Still open" so many days of its project's life.
OPEN_DAYS = 14
#: So many times as many memories, the surest, are looked at for a page.
CONSIDERED = 2.5
#: Of what a line replaced so many are told below it, the latest first.
BEFORE = 2
#: An assistant's word on a page: as sure as what no person is asked about.
LEAST_SURE = review_answers.LOW
#: A line is said by another one, whatever else that says, where of so many words this share is its own, and no number.
LEAST_INSIDE, OWN = 5, 0.2
#: What one session tells at such length, and again with so many of its words and no other number, it tells once.
LEAST_RETOLD, RETOLD = 12, 0.6
SHOWN_CHARACTERS = 160
#: What an index says of a page, in characters, and of how many themes of a project.
ABOUT_CHARACTERS, ABOUT_THEMES = 200, 3
#: So many projects a theme's description names; of more, or of two that are called the same, it says how many.
NAMED = 3
#: A page on which nobody has written anything.
NOBODYS = Read()
COUNTED, LISTED = "Counted over sessions", "Pages"
#: What was said of code and then dealt with, as far as edits tell.
EDITED = "Said before its code was edited"
REVIEWS = "Remarks of reviews"
EVERYWHERE = "Everywhere"
GO_ON = (
    "Change a line, and your wording takes its place; add one, and it is remembered; remove one, and `csmd review` asks.",
)


_BEGIN = ("Nothing is known yet that holds in every project. A line that you add below is remembered for all of them.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A heading of a page, what belongs under it, and what a line is that a person adds there."""

    heading: str
    fits: Callable[[Memory], bool]
    gate: Gate
    category: Category


#: A name that stands in one project's code alone: what is wanted of it is no way to work.
_CODE = re.compile(
    r"\w-*+\.[A-Za-z]{1,4}:\d|\w\(\)|[a-z][A-Z]++[a-z]\w*?[A-Z][a-z]|\b[a-z]\w++\.[A-Z][a-z]\w|\b[a-z]++_[a-z]++_\w"
)
#: What a scene quotes.
_QUOTED = re.compile(r'"([^"]{1,400})"')
# fmt: off
#: In the order in which they are shown; the first that fits takes a memory.
KINDS: tuple[Kind, ...] = (
    Kind(heading=EDITED, fits=lambda one: one.is_edited and not one.pinned, gate="epistemic", category="pattern"),
    Kind(heading="Corrections", fits=lambda one: one.gate == "correction", gate="correction", category="preference"),
    Kind(heading="How the user works", fits=lambda one: one.gate == "behavioral" and (one.origin == "inferred" or (one.category == "preference" and not _CODE.search(one.text))),
         gate="behavioral", category="preference"),
    Kind(heading=REVIEWS, fits=lambda one: one.scene.startswith(statement_context.REVIEW) and not one.pinned, gate="epistemic", category="pattern"),
    Kind(heading="People", fits=lambda one: one.gate == "relational", gate="relational", category="person"),
    Kind(heading="Still open", fits=lambda one: one.gate == "promissory", gate="promissory", category="plan"),
    Kind(heading="Known gotchas", fits=lambda one: one.category == "gotcha", gate="epistemic", category="gotcha"),
    Kind(heading="Decisions and conventions", fits=lambda one: one.category in ("decision", "constraint", "convention", "procedure") or one.gate == "behavioral",
         gate="epistemic", category="decision"),
    Kind(heading="Facts", fits=lambda one: bool(one.text), gate="epistemic", category="fact"),
)
ORDER = ("Corrections", "How the user works", "Decisions and conventions", "Known gotchas", "Facts", "People", "Still open", REVIEWS, EDITED)
# fmt: on
#: Headings that csmd gives; those of a theme's page link to a project's.
OURS = frozenset({*ORDER, COUNTED, LISTED})
#: What a line under any other heading is.
OTHERWISE: tuple[Gate, Category] = ("epistemic", "fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project (or what holds everywhere in a workspace) that has a page; `walled` keeps it out of the common ones.

    `title` is what people tell it by: its name, with the directory around it where another project has the same.
    """

    seq: int
    key: str
    name: str
    root: str
    walled: bool = False
    title: str = ""

    @property
    def is_everywhere(self) -> bool:
        """Whether what stands there holds in more than one project."""
        return not self.seq or self.key.startswith("workspace:")

    @property
    def path(self) -> str:
        """Its page."""
        return of_project(self.name, self.key) if self.seq else USER


def may_stand(memory: Memory) -> bool:
    """Whether a memory has a place on a page, if it says something: what csmd would tell, that lasts longer than its session."""
    if not visibility.is_injectable(memory) or memory.tier in ("archive", "session"):
        return False
    if memory.type == "episodic" and memory.authority != "user" and not memory.pinned:
        return False  # what an assistant did that day: the day's file tells it
    return memory.authority == "user" or memory.pinned or memory.confidence >= LEAST_SURE


def drop_old_plans(memories: Iterable[Memory]) -> list[Memory]:
    """Without what was to be done long before a project's last session: one said so, and nobody since.

    What a person writes on a page is no session.
    """
    known = list(memories)
    last = max((one.confirmed_at for one in known if one.session_id), default="")
    return [one for one in known if one.gate != "promissory" or one.pinned or not one.session_id or _days(one.confirmed_at, last) <= OPEN_DAYS]  # fmt: skip


def _days(since: str, until: str) -> int:
    return (date.fromisoformat(until[:10]) - date.fromisoformat(since[:10])).days


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What stands beside memories, by their ids: how a gotcha shows itself, the memories that one replaced, and wordings
    that wait for a person's answer.

    `new` are lines (heading, text) that wait and would be memories of their own; `edits`: no heading tells what was
    edited since, the lines do.
    """

    shows: Mapping[str, Sequence[str]] = field(default_factory=dict)
    waits: Mapping[str, Sequence[str]] = field(default_factory=dict)
    before: Mapping[str, Sequence[Memory]] = field(default_factory=dict)
    new: Sequence[tuple[str, str]] = ()
    edits: bool = False


NOTHING = Beside()


def build_item(memory: Memory, beside: Beside = NOTHING) -> Item:
    """A memory as it stands on a page."""
    shown = [
        display.cut(display.squeeze(one), SHOWN_CHARACTERS) for one in beside.shows.get(memory.id, ()) if _reports(one)
    ]
    waits = tuple(beside.waits.get(memory.id, ()))
    said = [f"said {memory.scene}"] if memory.scene else []
    since = ["its code edited since"] if memory.is_edited and beside.edits else []
    return Item(
        text=_as_note(compose.lasting_text(memory)),
        id=memory.id,
        scene=", ".join((*said, *since)),
        shows=tuple(shown[:1]),
        before=tuple(
            (one.confirmed_at[:10], _as_note(one.text), one.id) for one in beside.before.get(memory.id, ())[:BEFORE]
        ),
        waits=waits,
    )


def _as_note(said: str) -> str:
    """What was cut out of markdown as a line of its own: no mark of emphasis without its other."""
    return display.squeeze(said.replace("**", "")) if said.count("**") % 2 else said


def _reports(said: str) -> bool:
    """Whether somebody's words tell how a failure looks, and ask or order nothing."""
    return all(compose.states_something(sentence) for sentence in prose.sentences(display.squeeze(said)))


def _is_said(one: Memory, there: Memory) -> bool:
    """Whether one that stands already says nearly the same, or that and more: it stands for both until they are merged."""
    said, more = similarity.gist(one.text), similarity.gist(there.text)
    own = said.stems - more.stems
    inside = said.turns == more.turns and len(said.stems) >= LEAST_INSIDE and len(own) <= OWN * len(said.stems)
    if similarity.alike(said, more, share=TWIN_OVERLAP) or (inside and not any(map(str.isdigit, "".join(own)))):
        return True
    least = min(len(said.stems), len(more.stems))
    retold = least >= LEAST_RETOLD and len(said.stems & more.stems) >= RETOLD * least
    numbers = any(map(str.isdigit, "".join(said.stems ^ more.stems)))
    together = one.session_id == there.session_id != "" and "correction" not in (one.gate, there.gate)
    return retold and together and said.turns == more.turns and not numbers


def find_replaced(memories: Iterable[Memory], replaced: Mapping[str, str], was: Read) -> dict[str, tuple[Memory, ...]]:
    """Memory (id) -> those whose place it took, the latest first, where it has a line; what a person pinned or moved stays."""
    known = {one.id: one for one in memories}
    moved = {item.id for section in was.sections if not is_ours(section.heading) for item in section.items}
    stays = {one.id for one in known.values() if one.pinned or one.id in moved}
    found: dict[str, list[Memory]] = {}
    for old in sorted(replaced.keys() & known.keys() - stays, key=lambda ident: (known[ident].confirmed_at, ident)):
        new = replaced[old]
        while new in replaced and new not in stays:
            new = replaced[new]
        if new in known and compose.lasting_text(known[new]) and not brief.find_transience(known[new]):
            found.setdefault(new, []).insert(0, known[old])
    return {new: tuple(olds) for new, olds in found.items()}


def sureness(memory: Memory) -> tuple[object, ...]:
    """By what the memories of a page are looked at when there are very many: pinned, the user's, the surest, the latest."""
    return memory.pinned, memory.authority == "user", memory.confidence, memory.times, memory.confirmed_at, memory.id


def build_sections(
    memories: Sequence[Memory],
    kind_of: Callable[[Memory], str],
    order: Sequence[str],
    beside: Beside = NOTHING,
    room: int = PAGE_LINES,
) -> tuple[Section, ...]:
    """The surest of these memories under their headings, in each what is pinned first, then the newest."""
    chosen: dict[str, list[Memory]] = {}
    total = Counter(kind_of(memory) for memory in memories)
    looked_at = heapq.nlargest(round(CONSIDERED * room), memories, key=sureness)
    said = [
        memory
        for memory in looked_at
        if (compose.lasting_text(memory) if memory.id in beside.before else compose.standalone_text(memory))
        and not brief.find_transience(memory)
    ]
    total.subtract(kind_of(memory) for memory in looked_at if not compose.lasting_text(memory))
    stands: dict[int, list[Memory]] = {}
    quoted = frozenset(
        (one.project_seq, tokens.normalise(quote)) for one in said for quote in _QUOTED.findall(one.scene)
    )
    for memory in sorted(said, key=lambda one: (not one.pinned, one.is_edited)):  # else as sure as they are
        under, there = chosen.setdefault(kind_of(memory), []), stands.setdefault(memory.project_seq, [])
        # Beside another line, which goes on; what is pinned or corrects has one of its own.
        is_quoted = (memory.project_seq, tokens.normalise(memory.text.replace('"', "'"))) in quoted
        is_quoted = is_quoted and not memory.pinned and memory.gate != "correction"
        if room and len(under) < SECTION_LINES and not is_quoted and not any(_is_said(memory, one) for one in there):
            under.append(memory)
            there.append(memory)
            room -= 1
    made = []
    for heading in order:
        if total[heading]:
            shown = sorted(
                chosen.get(heading, ()), key=lambda one: (one.pinned, one.confirmed_at, one.id), reverse=True
            )
            items = tuple(build_item(one, beside) for one in shown)
            made.append(Section(heading=heading, items=items, more=total[heading] - len(items)))
    return tuple(made)


def find_heading(memory: Memory) -> str:
    """The heading under which a memory stands on its own page."""
    return next(one.heading for one in KINDS if one.fits(memory))


def heading_of(gate: Gate, category: Category) -> str:
    """The heading for which a line is that is a memory's not yet."""
    own = (one for one in KINDS if one.heading not in (EDITED, REVIEWS))
    return next((one.heading for one in own if (one.gate, one.category) == (gate, category)), KINDS[-1].heading)


def said_under(heading: str) -> tuple[Gate, Category]:
    """What a line is that a person adds under a heading."""
    return next(((one.gate, one.category) for one in KINDS if one.heading == heading), OTHERWISE)


_NUMBER = re.compile(r"\d[\d,.]*")


def counted_kind(text: str) -> str:
    """A counted sentence without its figures: with other counts it is the same."""
    return tokens.normalise(_NUMBER.sub("#", text))


def counted_hash(text: str, key: bytes) -> str:
    """What a counted sentence is known by that a person took off a page."""
    return tokens.keyed_hash(counted_kind(text), key)[:16]


# --- pages


def is_ours(heading: str) -> bool:
    """Whether csmd gives such a heading; any other one is a person's."""
    return heading in OURS or bool(find_linked_page(heading))


def build_page(
    place: Place, memories: Sequence[Memory], *, facts: Sequence[Fact] = (), themes: Sequence[str] = (),
    left_out: Callable[[str], bool] = frozenset[str]().__contains__, beside: Beside = NOTHING, was: Read = NOBODYS,
) -> Page | None:  # fmt: skip
    """The page of a project, None where nothing is known of it; or the user's, which is there before there is anything to say.

    `themes` are those of its memories, the most common first; a counted sentence for which `left_out` holds has no line.
    """
    theirs = placed(memories, beside, was)
    lasting = drop_old_plans(memories) if place.seq else memories
    found = build_sections([one for one in lasting if one.id not in theirs], find_heading, ORDER, beside)
    said = [item.text for section in found for item in section.items] + [item.text for item in theirs.values()]
    counted = tuple(
        Item(text=one.text)
        for one in facts
        if not (left_out(one.text) or narrator.is_told(one, said) or actions.core(one) in said)
    )
    if counted:
        more = max(0, len(counted) - SECTION_LINES)
        found = (*found, Section(heading=COUNTED, items=counted[:SECTION_LINES], more=more))
    found = _with_waiting(found, beside.new)
    if not (found or theirs or not place.seq):
        return None
    if place.seq:
        title, about = place.title or place.name, (*((f"`{place.root}`",) if place.root else ()), *GO_ON)
        topics = f", mostly on {display.listed(themes[:ABOUT_THEMES])}" if themes else ""
        head = build_head(place.name, f"{place.root or place.name}: {count_notes(found, theirs)}{topics}", "project")
    else:
        title, about = "The user", GO_ON if memories else _BEGIN
        number = count_notes(found, theirs) if memories else "nothing yet"
        head = build_head("user", f"What holds in every project: {number}", "user")
        found = found or (Section(heading="How the user works"),)
    page = Page(path=place.path, head=head, title=title, about=about, sections=found)
    return page_format.keep_own_words(page, was, theirs, is_ours)


def placed(memories: Sequence[Memory], beside: Beside, was: Read) -> dict[str, Item]:
    """The lines of the memories that a person put under headings of their own, by id."""
    if all(is_ours(section.heading) for section in was.sections):
        return {}
    standing = {one.id: build_item(one, beside) for one in memories if compose.lasting_text(one)}
    there = page_format.find_placed(was, standing, is_ours)
    return {ident: item for ident, item in standing.items() if ident in there}


def _with_waiting(found: Sequence[Section], new: Sequence[tuple[str, str]]) -> tuple[Section, ...]:
    """Sections with the lines that wait for a person's answer under the headings that they are for."""
    made = {section.heading: section for section in found}
    for heading, said in new:
        section = made.get(heading) or Section(heading=heading)
        made[heading] = replace(section, waits=(*section.waits, said))
    return tuple(made[heading] for heading in (*ORDER, COUNTED) if heading in made)


def link_to(place: Place) -> str:
    """A project as a heading of a theme's page."""
    return f"[{link_text(place.root or place.name)}](../{place.path})" if place.seq else f"[{EVERYWHERE}](../{USER})"


def find_linked_page(heading: str) -> str:
    """The page that a heading of a theme's page names; "" for none."""
    found = re.search(r"\]\(\.\./([^)\s]+\.md)\)\s*$", heading)
    return found[1] if found else ""


def build_head(name: str, about: str, kind_of_page: str) -> dict[str, str]:
    """A page's head, as the host's own memory files have one."""
    return {
        "name": display.squeeze(name),
        "description": display.cut(display.squeeze(about), ABOUT_CHARACTERS),
        "type": kind_of_page,
    }


def count_notes(found: Iterable[Section], theirs: Collection[object] = ()) -> str:
    """How many notes there are, those that are not shown among them."""
    return display.amount(sum(len(one.items) + one.more for one in found) + len(theirs), "note")


def link_text(name: str) -> str:
    """A name as it may stand in a link."""
    return display.squeeze(re.sub(r"[\[\]()<>`]", "", name)) or "unnamed"


#: So many lines has a theme's page.
LINES = 40


def build_theme_page(
    theme: Theme, path: str, memories: Sequence[Memory], places: Mapping[int, Place], listed: Collection[str] = (),
    *, beside: Beside = NOTHING, was: Read = NOBODYS,
) -> Page:  # fmt: skip
    """What is known of a theme, project by project; of a single project what its own page does not list (`listed`)."""
    named = {seq: link_to(place) for seq, place in places.items()}
    order = [named[seq] for seq in sorted(places, key=lambda seq: (places[seq].name, places[seq].key))]
    waits = Beside(waits=beside.waits, before=beside.before, edits=True)
    theirs = placed(memories, waits, was)
    told_there = [one for one in memories if len(places) == 1 and one.id in listed and one.id not in theirs]
    mine = [one for one in memories if one.id not in theirs and one not in told_there]
    found = build_sections(mine, lambda one: named[one.project_seq], order, waits, LINES)
    also = f" (also {display.listed(theme.also)})" if theme.also else ""
    names = [(places[seq].title or places[seq].name) if seq else EVERYWHERE.lower() for seq in sorted(places)]
    of = display.listed(names) if 0 < len(set(names)) == len(names) <= NAMED else display.amount(len(names), "project")
    beside_it = f", beside {len(told_there)} on its own page" if told_there else ""
    about = f"{theme.name}{also}: {count_notes(found, theirs)} of {of}{beside_it}"
    head = {**build_head(theme.name, about, "reference"), "topics": theme.topics}
    page = Page(path=path, head=head, title=theme.name, about=(*_pointer(told_there, places), *GO_ON), sections=found)
    return page_format.keep_own_words(page, was, theirs, is_ours)


def _pointer(told_there: Sequence[Memory], places: Mapping[int, Place]) -> tuple[str, ...]:
    if not told_there:
        return ()
    more = f"{len(told_there)} more on it {'stands' if len(told_there) == 1 else 'stand'}"
    return (f"{more} on {link_to(places[told_there[0].project_seq])}.",)


#: Created: so many memories in two projects or more, or so many in one of which so many stand nowhere else.
LEAST_SHARED, LEAST_ALONE, LEAST_UNLISTED = 4, 10, 5
#: Retired: fewer than so many; in one project also where fewer than so many stand nowhere else.
LEAST_TO_STAY = 2
#: Merged: such a share of the memories of both, or of the smaller one's; and such shares keep what was merged together.
OVERLAP, CONTAINED = 0.5, 0.8
STILL_OVERLAP, STILL_CONTAINED = 0.35, 0.6
#: Split: more than so many, where another topic of theirs takes a part of at least LEAST_ALONE and not nearly all. What was
#: split stays so above so many, and each part from half as many on.
MOST, STILL_MANY, NEARLY_ALL = 40, 30, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """A theme with a page; `also` are the topics that went into it, `members` the ids of its memories."""

    name: str
    members: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    part: str = ""
    """The other topic by which it was split off."""

    @property
    def topics(self) -> list[str]:
        """The topics that its memories are tagged with."""
        return [*filter(None, (self.name.removesuffix(f": {self.part}"), self.part)), *self.also]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What themes are made of: topic -> memories, memory -> project, those with a page, and memories that stand elsewhere."""

    tagged: Mapping[str, Collection[str]]
    project_of: Mapping[str, int]
    paged: Mapping[str, Theme] = field(default_factory=dict)
    listed: Collection[str] = frozenset()

    def theme(self, name: str) -> Theme:
        """The memories of a topic; of projects in which it is not found any more those that stand on its page."""
        found = frozenset(self.tagged.get(name, ()))
        held = [ident for ident in (self.paged[name].members if name in self.paged else ()) if ident in self.project_of]
        spoken = Counter(self.project_of[ident] for ident in found)
        kept = {ident for ident in held if spoken[self.project_of[ident]] < LEAST_TO_STAY}
        return Theme(name=name, members=found | kept)

    def is_shared(self, theme: Theme) -> bool:
        """Whether it is of two projects or more."""
        return len({self.project_of[ident] for ident in theme.members}) > 1

    def recurs(self, theme: Theme) -> bool:
        """Whether a topic is large enough for a theme, whatever its page would say."""
        least = LEAST_SHARED if self.is_shared(theme) else LEAST_ALONE
        return len(theme.members) >= (LEAST_TO_STAY if theme.name in self.paged else least)

    def deserves_page(self, theme: Theme) -> bool:
        """Whether a theme's page says what no other does, or goes on to."""
        unlisted = sum(ident not in self.listed for ident in theme.members)
        return self.is_shared(theme) or unlisted >= (LEAST_TO_STAY if theme.name in self.paged else LEAST_UNLISTED)

    def parts_of(self, name: str) -> set[str]:
        """The topics by which a theme has been split: pages of parts are called `theme: part`."""
        return {paged.removeprefix(f"{name}: ") for paged in self.paged if paged.startswith(f"{name}: ")}

    def split(self, theme: Theme) -> list[Theme]:
        """A theme that is too broad, as parts by the other topics of its memories; what has none stays under its name."""
        rest, parts, before = theme.members, list[Theme](), self.parts_of(theme.name)
        while len(rest) > (STILL_MANY if before else MOST):
            inside = {name: rest & set(members) for name, members in self.tagged.items() if name != theme.name}
            sizes = {name: len(members) for name, members in inside.items()}
            fit = [
                name
                for name, size in sizes.items()
                if (LEAST_ALONE // 2 if name in before else LEAST_ALONE) <= size <= NEARLY_ALL * len(rest)
            ]
            if not fit:
                break
            name = min(fit, key=lambda name: (name not in before, -sizes[name], name))
            parts.append(Theme(name=f"{theme.name}: {name}", members=inside[name], part=name))
            rest -= inside[name]
        return [replace(theme, members=rest), *parts]


def choose_themes(known: Known) -> list[Theme]:
    """The themes that have a page, by name: those that are mostly one merged, those that are too broad split.

    What is merged has the name of the one that has a page, else of the larger.
    """
    names = {*known.tagged, *(name for name in known.paged if ": " not in name)}
    found = [
        theme
        for theme in map(known.theme, sorted(names))
        if known.recurs(theme) or (known.parts_of(theme.name) and len(theme.members) >= LEAST_TO_STAY)
    ]
    kept: list[Theme] = []
    for theme in sorted(found, key=lambda one: (one.name not in known.paged, -len(one.members), one.name)):
        for place, other in enumerate(kept):
            together = other.name in known.paged and theme.name in known.paged[other.name].also
            overlap, contained = (STILL_OVERLAP, STILL_CONTAINED) if together else (OVERLAP, CONTAINED)
            shared = len(theme.members & other.members)
            if shared >= overlap * len(theme.members | other.members) or shared >= contained * len(theme.members):
                members = other.members | theme.members
                kept[place] = Theme(name=other.name, members=members, also=(*other.also, theme.name))
                break
        else:
            kept.append(theme)
    split = [part for theme in kept for part in known.split(theme)]
    return sorted(filter(known.deserves_page, filter(known.recurs, split)), key=lambda theme: theme.name)


#: Lines and bytes that are left free: a list begins and ends with empty lines.
SPARE_LINES, SPARE_BYTES = 4, 100


def build_index(pages: Sequence[Page], was: Read = NOBODYS) -> Page:
    """One line for each of the common pages, within the host's limits; what a person wrote there stays."""
    rows = [
        Item(text=f"[{link_text(page.title)}]({page.path}): {page.head['description'].removeprefix(f'{page.title}: ')}")
        for page in pages
    ]

    def made(shown: int) -> Page:
        left = len(rows) - shown
        about = (f"{display.amount(left, 'more page')} below {PROJECTS} and {TOPICS}",) if left else ()
        section = Section(heading=LISTED, items=tuple(rows[:shown]))
        return page_format.keep_own_words(
            Page(path=INDEX, title="What csmd remembers", about=about, sections=(section,)), was, {}, is_ours
        )

    around = page_format.render_page(made(0))
    room = INDEX_LINES - around.count("\n") - SPARE_LINES
    units, shown = INDEX_UNITS - len(around.encode()) - SPARE_BYTES, 0
    for row in rows:
        units -= len(f"- {page_lines.plain(row.text)}\n".encode())
        if shown >= room or units < 0:
            break
        shown += 1
    return made(shown)
