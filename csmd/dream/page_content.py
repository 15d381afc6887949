"""Chooses the content of each page: user, projects, themes, index."""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import accumulate, islice

from csmd.dream import actions, narrator, page_format
from csmd.dream.actions import Fact
from csmd.dream.page_format import Item, Page, Read, Section
from csmd.dream.themes import Theme
from csmd.extraction import statement_context
from csmd.knowledge import Memory
from csmd.memory import review_answers
from csmd.recall import compose, evidence, visibility
from csmd.text import display, markdown, prose, similarity, tokens
from csmd.text.markdown import PROJECTS, TOPICS, USER, project_page
from csmd.text.sentence import states_something
from csmd.vocabulary import INDEX, INDEX_LINES, INDEX_UNITS, Category, Gate

#: Most lines of memories on a page, and most of them under one heading.
PAGE_LINES, SECTION_LINES = 100, 16
#: Days of a project's life for which what a session left to be done stands under "Still open".
OPEN_DAYS = 14
#: So many times as many memories as have room, the surest, are considered for a page.
CONSIDERED = 2.5
#: Least confidence of an assistant's statement on a page: that of what no person is asked about.
LEAST_SURE = review_answers.LOW
#: A line repeats another one where, of at least so many words, at most this share is its own, and no number.
LEAST_INSIDE, INSIDE = 5, 0.8
#: Two statements of one session with so many words each, this share in common and no other number, are one line.
LEAST_RETOLD, RETOLD = 12, 0.6
SHOWN_CHARACTERS = 160
#: Most characters of a page's description, and most themes of a project in it.
ABOUT_CHARACTERS, ABOUT_THEMES = 200, 3
#: Most projects that a theme's description names; of more, or of two with one name, it says how many.
NAMED = 3
#: A page on which nobody has written anything.
NOBODYS = Read()
COUNTED, LISTED = "Counted over sessions", "Pages"
#: Heading of statements about code that was edited since.
EDITED = "Said before its code was edited"
REVIEWS = "Remarks of reviews"
EVERYWHERE = "Everywhere"
GO_ON = (
    "Change a line, and your wording takes its place; add one, and it is remembered; remove one, and `csmd review` asks.",
)


_BEGIN = ("Nothing is known yet that holds in every project. A line that you add below is remembered for all of them.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A heading of a page, which memories belong under it, and the gate and category of a line that a person adds there."""

    heading: str
    fits: Callable[[Memory], bool]
    gate: Gate
    category: Category


#: A name from one project's code: a wish about it is no way to work.
_CODE = re.compile(
    r"\w-*+\.[A-Za-z]{1,4}:\d|\w\(\)|[a-z][A-Z]++[a-z]\w*?[A-Z][a-z]|\b[a-z]\w++\.[A-Z][a-z]\w|\b[a-z]++_[a-z]++_\w"
)
#: What a scene quotes.
_QUOTED = re.compile(r'"([^"]{1,400})"')
# fmt: off
#: In the order in which they are shown; the first that fits takes a memory.
KINDS: tuple[Kind, ...] = (
    Kind(heading=EDITED, fits=lambda memory: memory.is_edited and not memory.pinned, gate="epistemic", category="pattern"),
    Kind(heading="Corrections", fits=lambda memory: memory.gate == "correction", gate="correction", category="preference"),
    Kind(heading="How the user works", fits=lambda memory: memory.gate == "behavioral" and (memory.origin == "inferred" or (memory.category == "preference" and not _CODE.search(memory.text))),
         gate="behavioral", category="preference"),
    Kind(heading=REVIEWS, fits=lambda memory: memory.scene.startswith(statement_context.REVIEW) and not memory.pinned, gate="epistemic", category="pattern"),
    Kind(heading="People", fits=lambda memory: memory.gate == "relational", gate="relational", category="person"),
    Kind(heading="Still open", fits=lambda memory: memory.gate == "promissory", gate="promissory", category="plan"),
    Kind(heading="Known gotchas", fits=lambda memory: memory.category == "gotcha", gate="epistemic", category="gotcha"),
    Kind(heading="Decisions and conventions", fits=lambda memory: memory.category in ("decision", "constraint", "convention", "procedure") or memory.gate == "behavioral",
         gate="epistemic", category="decision"),
    Kind(heading="Facts", fits=lambda memory: bool(memory.text), gate="epistemic", category="fact"),
)
ORDER = ("Corrections", "How the user works", "Decisions and conventions", "Known gotchas", "Facts", "People", "Still open", REVIEWS, EDITED)
# fmt: on
#: Headings that csmd gives; those of a theme's page link to a project's.
OURS = frozenset({*ORDER, COUNTED, LISTED})
#: Gate and category of a line under any other heading.
OTHERWISE: tuple[Gate, Category] = ("epistemic", "fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project, or what holds everywhere in a workspace; `walled` keeps it off the common pages.

    `title` is its name with the directory around it where another project has the same name, else "".
    """

    seq: int
    key: str
    name: str
    root: str
    walled: bool = False
    title: str = ""

    @property
    def is_everywhere(self) -> bool:
        """Whether its statements hold in more than one project."""
        return not self.seq or self.key.startswith("workspace:")

    @property
    def path(self) -> str:
        """Its page."""
        return project_page(self.name, self.key) if self.seq else USER


def may_stand(memory: Memory) -> bool:
    """Whether a memory may stand on a page: csmd would inject it, and it lasts longer than its session."""
    if memory.author or not visibility.is_injectable(memory) or memory.tier in ("archive", "session"):
        return False  # what a colleague said is not the user's to edit
    if memory.type == "episodic" and memory.authority != "user" and not memory.pinned:
        return False  # what an assistant did that day stands in the day's file
    if memory.scope != "project" and memory.session_id:  # what is told in every project is chosen as a start's brief is
        return evidence.rate(memory, sessions_since=0).value > 0
    return memory.authority == "user" or memory.pinned or memory.confidence >= LEAST_SURE


def drop_old_plans(memories: Iterable[Memory]) -> list[Memory]:
    """The memories without plans that were last stated long before the project's last session.

    What a person writes on a page is no session.
    """
    every = list(memories)
    last = max((memory.confirmed_at for memory in every if memory.session_id), default="")

    def is_current(plan: Memory) -> bool:
        days = date.fromisoformat(last[:10]) - date.fromisoformat(plan.confirmed_at[:10])
        return plan.pinned or days.days <= OPEN_DAYS

    return [memory for memory in every if memory.gate != "promissory" or not memory.session_id or is_current(memory)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """The notes beside memories, by id: symptoms of a gotcha, wordings that wait for an answer.

    `new` are waiting lines (heading, text) that would be memories of their own. With `edits` the lines say that their
    code was edited since, not a heading.
    """

    shows: Mapping[str, Sequence[str]] = field(default_factory=dict)
    waits: Mapping[str, Sequence[str]] = field(default_factory=dict)
    new: Sequence[tuple[str, str]] = ()
    edits: bool = False


NOTHING = Annotations()


def build_item(memory: Memory, annotations: Annotations = NOTHING) -> Item:
    """A memory as a line of a page."""

    def is_symptom(text: str) -> bool:
        """Whether a person's words describe a failure: every sentence states something."""
        return all(map(states_something, prose.sentences(display.squeeze(text))))

    symptoms = filter(is_symptom, annotations.shows.get(memory.id, ()))
    shows = [display.cut(display.squeeze(symptom), SHOWN_CHARACTERS) for symptom in symptoms]
    scene = [f"said {memory.scene}"] if memory.scene else []
    scene += ["its code edited since"] if memory.is_edited and annotations.edits else []
    return Item(
        text=_balance_emphasis(compose.durable_text(memory)), id=memory.id, scene=", ".join(scene), shows=tuple(shows[:1]),
        waits=tuple(annotations.waits.get(memory.id, ())),
    )  # fmt: skip


def _balance_emphasis(text: str) -> str:
    """A text cut out of Markdown, without marks of emphasis where one lacks its other."""
    return display.squeeze(text.replace("**", "")) if text.count("**") % 2 else text


def _repeats(memory: Memory, other: Memory) -> bool:
    """Whether another line says nearly the same as a memory, or that and more: it represents both until they are merged."""
    mine, others = similarity.gist(memory.text), similarity.gist(other.text)
    if mine.turns != others.turns:
        return False
    if similarity.is_twin(mine, others):
        return True
    own, differing = mine.stems - others.stems, mine.stems ^ others.stems
    is_inside = len(mine.stems) >= LEAST_INSIDE and similarity.share(mine.stems, others.stems) >= INSIDE
    if is_inside and not any(map(str.isdigit, "".join(own))):
        return True
    shorter, longer = sorted((mine.stems, others.stems), key=len)
    is_same_session = memory.session_id == other.session_id != "" and "correction" not in (memory.gate, other.gate)
    is_retold = len(shorter) >= LEAST_RETOLD and similarity.share(shorter, longer) >= RETOLD
    return is_retold and is_same_session and not any(map(str.isdigit, "".join(differing)))


def sureness(memory: Memory) -> tuple[object, ...]:
    """The order in which the memories of a page are considered: pinned, the user's, the surest, the latest."""
    return memory.pinned, memory.authority == "user", memory.confidence, memory.times, memory.confirmed_at, memory.id


def has_text(memory: Memory) -> bool:
    """Whether a memory says something that lasts, to a reader who was not there."""
    return bool(compose.standalone_text(memory)) and not evidence.find_transience(memory)


def build_sections(
    memories: Sequence[Memory], heading_for: Callable[[Memory], str], order: Sequence[str],
    annotations: Annotations = NOTHING, room: int = PAGE_LINES, may_show: Callable[[Memory], bool] = has_text,
) -> tuple[Section, ...]:  # fmt: skip
    """The surest memories under their headings, in each the pinned ones first, then the newest."""
    considered = heapq.nlargest(round(CONSIDERED * room), memories, key=sureness)
    total = Counter(map(heading_for, memories))
    total.subtract(heading_for(memory) for memory in considered if not compose.durable_text(memory))

    usable = list(filter(may_show, considered))
    quoted = {
        (memory.project_seq, tokens.normalise(quote)) for memory in usable for quote in _QUOTED.findall(memory.scene)
    }
    chosen: dict[str, list[Memory]] = defaultdict(list)
    lines: dict[int, list[Memory]] = defaultdict(list)
    for memory in sorted(usable, key=lambda memory: (not memory.pinned, memory.is_edited)):  # else the surest first
        # What another line's scene quotes stands there already; what is pinned or corrects has a line of its own.
        is_quoted = (memory.project_seq, tokens.normalise(memory.text.replace('"', "'"))) in quoted
        is_quoted = is_quoted and not memory.pinned and memory.gate != "correction"
        section, there = chosen[heading_for(memory)], lines[memory.project_seq]
        if (
            room
            and len(section) < SECTION_LINES
            and not is_quoted
            and not any(_repeats(memory, other) for other in there)
        ):
            section.append(memory)
            there.append(memory)
            room -= 1
    sections = []
    for heading in filter(total.__getitem__, order):
        shown = sorted(
            chosen[heading], key=lambda memory: (memory.pinned, memory.confirmed_at, memory.id), reverse=True
        )
        items = tuple(build_item(memory, annotations) for memory in shown)
        sections.append(Section(heading=heading, items=items, more=total[heading] - len(items)))
    return tuple(sections)


def find_heading(memory: Memory) -> str:
    """The heading of a memory on its own page."""
    return next(kind.heading for kind in KINDS if kind.fits(memory))


def heading_of(gate: Gate, category: Category) -> str:
    """The heading for a line that is no memory yet."""
    kinds = (kind for kind in KINDS if kind.heading not in (EDITED, REVIEWS))
    return next((kind.heading for kind in kinds if (kind.gate, kind.category) == (gate, category)), KINDS[-1].heading)


def classify_heading(heading: str) -> tuple[Gate, Category]:
    """The gate and category of a line that a person adds under a heading."""
    return next(((kind.gate, kind.category) for kind in KINDS if kind.heading == heading), OTHERWISE)


_NUMBER = re.compile(r"\d[\d,.]*")


def counted_kind(text: str) -> str:
    """A counted sentence without its figures: with other counts it is the same."""
    return tokens.normalise(_NUMBER.sub("#", text))


def counted_hash(text: str, key: bytes) -> str:
    """The hash by which a counted sentence is known that a person took off a page."""
    return tokens.keyed_hash(counted_kind(text), key)[:16]


# --- pages


def is_ours(heading: str) -> bool:
    """Whether csmd gives such a heading; any other one is a person's."""
    return heading in OURS or bool(find_linked_page(heading))


def build_page(
    place: Place, memories: Sequence[Memory], *, facts: Sequence[Fact] = (), themes: Sequence[str] = (),
    annotations: Annotations = NOTHING, was: Read = NOBODYS, may_show: Callable[[Memory], bool] = has_text,
) -> Page | None:  # fmt: skip
    """The page of a place, None where nothing is known of a project; the user's page is there from the beginning.

    `facts` get a line each where no memory says them; `themes` are those of the memories, the most common first.
    """
    moved = _find_moved(memories, annotations, was)
    lasting = drop_old_plans(memories) if place.seq else memories
    own = [memory for memory in lasting if memory.id not in moved]
    sections = build_sections(own, find_heading, ORDER, annotations, may_show=may_show)
    texts = [item.text for section in sections for item in section.items] + [item.text for item in moved.values()]
    counted = [fact for fact in facts if not (narrator.is_covered(fact, texts) or actions.core(fact) in texts)]
    if counted:
        items = tuple(Item(text=fact.text) for fact in counted[:SECTION_LINES])
        sections = (*sections, Section(heading=COUNTED, items=items, more=len(counted) - len(items)))
    by_heading = {section.heading: section for section in sections}
    for heading, text in annotations.new:
        section = by_heading.get(heading, Section(heading=heading))
        by_heading[heading] = replace(section, waits=(*section.waits, text))
    sections = tuple(by_heading[heading] for heading in (*ORDER, COUNTED) if heading in by_heading)
    if not (sections or moved or not place.seq):
        return None
    number = count_notes(sections, moved)
    if place.seq:
        title, about = place.title or place.name, (*((f"`{place.root}`",) if place.root else ()), *GO_ON)
        topics = f", mostly on {display.join_names(themes[:ABOUT_THEMES])}" if themes else ""
        head = build_head(place.name, f"{place.root or place.name}: {number}{topics}", "project")
    else:
        title, about = "The user", GO_ON if memories else _BEGIN
        head = build_head("user", f"What holds in every project: {number if memories else 'nothing yet'}", "user")
        sections = sections or (Section(heading="How the user works"),)
    page = Page(path=place.path, head=head, title=title, about=about, sections=sections)
    return page_format.keep_own_words(page, was, moved, is_ours)


def _find_moved(memories: Sequence[Memory], annotations: Annotations, was: Read) -> dict[str, Item]:
    """Memory (id) -> its line, of those that a person put under headings of their own."""
    if all(is_ours(section.heading) for section in was.sections):
        return {}
    items = {memory.id: build_item(memory, annotations) for memory in memories if compose.durable_text(memory)}
    moved = page_format.find_placed(was, items, is_ours)
    return {ident: item for ident, item in items.items() if ident in moved}


def link_to(place: Place) -> str:
    """A project as a heading of a theme's page."""
    return f"[{link_text(place.root or place.name)}](../{place.path})" if place.seq else f"[{EVERYWHERE}](../{USER})"


def find_linked_page(heading: str) -> str:
    """The page that a heading of a theme's page links to; "" for none."""
    link = re.search(r"\]\(\.\./([^)\s]+\.md)\)\s*$", heading)
    return link[1] if link else ""


def build_head(name: str, about: str, page_type: str) -> dict[str, str]:
    """A page's head, as in the host's own memory files."""
    about = display.cut(display.squeeze(about), ABOUT_CHARACTERS)
    return {"name": display.squeeze(name), "description": about, "type": page_type}


def count_notes(sections: Iterable[Section], moved: Collection[object] = ()) -> str:
    """How many notes there are in words, those without room among them."""
    return display.amount(sum(len(section.items) + section.more for section in sections) + len(moved), "note")


def link_text(name: str) -> str:
    """A name as it may stand in a link."""
    return display.squeeze(re.sub(r"[\[\]()<>`]", "", name)) or "unnamed"


#: Most lines of a theme's page.
LINES = 40


def build_theme_page(
    theme: Theme, path: str, memories: Sequence[Memory], places: Mapping[int, Place], listed: Collection[str] = (),
    *, annotations: Annotations = NOTHING, was: Read = NOBODYS, may_show: Callable[[Memory], bool] = has_text,
) -> Page:  # fmt: skip
    """What is known of a theme, project by project; of a single project only what its own page does not list (`listed`)."""
    headings = {seq: link_to(place) for seq, place in places.items()}
    order = [headings[seq] for seq in sorted(places, key=lambda seq: (places[seq].name, places[seq].key))]
    annotations = Annotations(waits=annotations.waits, edits=True)
    moved = _find_moved(memories, annotations, was)
    on_own_page = [memory for memory in memories if len(places) == 1 and memory.id in listed and memory.id not in moved]
    own = [memory for memory in memories if memory.id not in moved and memory not in on_own_page]
    sections = build_sections(own, lambda memory: headings[memory.project_seq], order, annotations, LINES, may_show)
    also = f" (also {display.join_names(theme.also)})" if theme.also else ""
    names = [(places[seq].title or places[seq].name) if seq else EVERYWHERE.lower() for seq in sorted(places)]
    of = (
        display.join_names(names)
        if 0 < len(set(names)) == len(names) <= NAMED
        else display.amount(len(names), "project")
    )
    elsewhere, pointer = "", tuple[str, ...]()
    if number := len(on_own_page):
        elsewhere = f", beside {number} on its own page"
        verb, link = "stands" if number == 1 else "stand", link_to(places[on_own_page[0].project_seq])
        pointer = (f"{number} more on it {verb} on {link}.",)
    about = f"{theme.name}{also}: {count_notes(sections, moved)} of {of}{elsewhere}"
    head = {**build_head(theme.name, about, "reference"), "topics": theme.topics}
    page = Page(path=path, head=head, title=theme.name, about=(*pointer, *GO_ON), sections=sections)
    return page_format.keep_own_words(page, was, moved, is_ours)


# --- the index

#: Lines and bytes that are left free: a list begins and ends with empty lines.
SPARE_LINES, SPARE_BYTES = 4, 100


def build_index(pages: Sequence[Page], was: Read = NOBODYS) -> Page:
    """One line for each of the common pages, within the host's limits; what a person wrote there stays."""
    items = [
        Item(text=f"[{link_text(page.title)}]({page.path}): {page.head['description'].removeprefix(f'{page.title}: ')}")
        for page in pages
    ]

    def build(shown: int) -> Page:
        left = len(items) - shown
        about = (f"{display.amount(left, 'more page')} below {PROJECTS} and {TOPICS}",) if left else ()
        section = Section(heading=LISTED, items=tuple(items[:shown]))
        page = Page(path=INDEX, title="What csmd remembers", about=about, sections=(section,))
        return page_format.keep_own_words(page, was, {}, is_ours)

    around = page_format.render_page(build(0))
    lines = INDEX_LINES - around.count("\n") - SPARE_LINES
    units = INDEX_UNITS - len(around.encode()) - SPARE_BYTES
    sizes = accumulate(len(f"- {markdown.to_line(item.text)}\n".encode()) for item in items)
    return build(sum(size <= units for size in islice(sizes, max(0, lines))))
