"""Chooses the content of each page: user, projects, themes, index."""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import accumulate, islice
from typing import NamedTuple

from csmd.dream import actions, page_format, project_facts
from csmd.dream.actions import Fact
from csmd.dream.page_format import Item, Page, Section
from csmd.dream.themes import Theme
from csmd.extraction import statement_context
from csmd.knowledge import Memory
from csmd.memory import review_answers
from csmd.recall import compose, evidence, visibility
from csmd.text import display, markdown, prose, similarity, tokens
from csmd.text.markdown import PROJECTS, TOPICS, USER, project_page
from csmd.text.sentence import states_something
from csmd.vocabulary import INDEX, INDEX_LINES, INDEX_UNITS, Category, Gate

#: Most lines of memories on a page.
MAX_PAGE_LINES = 100
#: Most lines of memories under one heading.
MAX_SECTION_LINES = 16
#: Days before a project's last session for which an open plan is shown under "Still open".
MAX_PLAN_DAYS = 14
#: Memories considered for a page, the surest first, as a multiple of its lines.
CONSIDERED_FACTOR = 2.5
#: Least confidence (0-1) of an assistant's statement on a page; below it a person is asked.
MIN_CONFIDENCE = review_answers.MIN_UNREVIEWED_CONFIDENCE
#: Fewest words of a line that another line can contain.
MIN_CONTAINED_WORDS = 5
#: Least share of a line's words, with all its numbers, in a line that contains it.
MIN_CONTAINED_SHARE = 0.8
#: Fewest words of two statements of one session that are shown as one line.
MIN_RETOLD_WORDS = 12
#: Least share of common words of two such statements.
MIN_RETOLD_SHARE = 0.6
#: Most characters of a symptom.
MAX_SYMPTOM_CHARACTERS = 160
#: Most characters of a page's description.
MAX_DESCRIPTION_CHARACTERS = 200
#: Most themes of a project in its description.
MAX_DESCRIPTION_THEMES = 3
#: Most projects that a theme's description names; it counts more projects, and those with equal names.
MAX_NAMED_PROJECTS = 3
#: A page without anything that a person wrote.
EMPTY_PAGE = Page()
#: Heading of counted facts.
FACTS_HEADING = "Counted over sessions"
#: Heading of the index's list.
INDEX_HEADING = "Pages"
#: Heading of statements about code that was edited since.
EDITED_HEADING = "Said before its code was edited"
REVIEWS_HEADING = "Remarks of reviews"
EVERYWHERE_HEADING = "Everywhere"
EDITING_HINT = (
    "Change a line, and your wording takes its place; add one, and it is remembered; remove one, and `csmd review` asks.",
)


_EMPTY_HINT = (
    "Nothing is known yet that holds in every project. A line that you add below is remembered for all of them.",
)


class HeadingRule(NamedTuple):
    """A heading of a page, which memories it lists, and the gate and category of a line that a person adds there."""

    heading: str
    fits: Callable[[Memory], bool]
    gate: Gate
    category: Category


#: A name from one project's code: a wish about it does not say how the user works.
_CODE = re.compile(
    r"\w-*+\.[A-Za-z]{1,4}:\d|\w\(\)|[a-z][A-Z]++[a-z]\w*?[A-Z][a-z]|\b[a-z]\w++\.[A-Z][a-z]\w|\b[a-z]++_[a-z]++_\w"
)
#: Categories of decisions and conventions.
RULE_CATEGORIES = ("decision", "constraint", "convention", "procedure")
#: A quotation in a scene.
_QUOTED = re.compile(r'"([^"]{1,400})"')


def _states_habit(memory: Memory) -> bool:
    """Whether a behavioral memory says how the user works, not how one project's code is."""
    if memory.gate != "behavioral":
        return False
    return memory.origin == "inferred" or (memory.category == "preference" and not _CODE.search(memory.text))


def _is_remark(memory: Memory) -> bool:
    return memory.scene.startswith(statement_context.REVIEW) and not memory.pinned


def _is_rule(memory: Memory) -> bool:
    return memory.category in RULE_CATEGORIES or memory.gate == "behavioral"


#: A memory is listed under the first heading that fits.
HEADING_RULES: tuple[HeadingRule, ...] = (
    HeadingRule(EDITED_HEADING, lambda memory: memory.is_edited and not memory.pinned, "epistemic", "pattern"),
    HeadingRule("Corrections", lambda memory: memory.gate == "correction", "correction", "preference"),
    HeadingRule("How the user works", _states_habit, "behavioral", "preference"),
    HeadingRule(REVIEWS_HEADING, _is_remark, "epistemic", "pattern"),
    HeadingRule("People", lambda memory: memory.gate == "relational", "relational", "person"),
    HeadingRule("Still open", lambda memory: memory.gate == "promissory", "promissory", "plan"),
    HeadingRule("Known gotchas", lambda memory: memory.category == "gotcha", "epistemic", "gotcha"),
    HeadingRule("Decisions and conventions", _is_rule, "epistemic", "decision"),
    HeadingRule("Facts", lambda memory: bool(memory.text), "epistemic", "fact"),
)
#: The order of the headings on a page.
HEADING_ORDER = (
    "Corrections", "How the user works", "Decisions and conventions", "Known gotchas", "Facts", "People", "Still open",
    REVIEWS_HEADING, EDITED_HEADING,
)  # fmt: skip
#: Headings that csmd writes, besides those of a theme's page, which link to a project's page.
CSMD_HEADINGS = frozenset({*HEADING_ORDER, FACTS_HEADING, INDEX_HEADING})
#: Gate and category of a line under any other heading.
DEFAULT_KIND: tuple[Gate, Category] = ("epistemic", "fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project, or what holds everywhere in a workspace; `walled` keeps it off the common pages.

    `title` is its name with its parent directory if another project has the same name, else "".
    """

    seq: int
    key: str
    name: str
    root: str
    walled: bool = False
    title: str = ""

    @property
    def is_everywhere(self) -> bool:
        """Whether its memories hold in more than one project."""
        return not self.seq or self.key.startswith("workspace:")

    @property
    def path(self) -> str:
        """The path of its page."""
        return project_page(self.name, self.key) if self.seq else USER


def may_be_listed(memory: Memory) -> bool:
    """Whether a memory may be on a page: csmd would inject it, and it lasts longer than its session."""
    if memory.author or not visibility.is_injectable(memory) or memory.tier in ("archive", "session"):
        return False  # what a colleague said is not the user's to edit
    if memory.type == "episodic" and memory.authority != "user" and not memory.pinned:
        return False  # the day's file has what an assistant did that day
    if memory.scope != "project" and memory.session_id:  # a general memory is chosen as for the brief at a start
        return evidence.rate(memory, sessions_since=0).value > 0
    return memory.authority == "user" or memory.pinned or memory.confidence >= MIN_CONFIDENCE


def drop_old_plans(memories: Iterable[Memory]) -> list[Memory]:
    """Returns the memories without plans last stated long before the project's last session.

    A line that a person wrote on a page belongs to no session.
    """
    every = list(memories)
    last = max((memory.confirmed_at for memory in every if memory.session_id), default="")

    def is_current(plan: Memory) -> bool:
        days = date.fromisoformat(last[:10]) - date.fromisoformat(plan.confirmed_at[:10])
        return plan.pinned or days.days <= MAX_PLAN_DAYS

    return [memory for memory in every if memory.gate != "promissory" or not memory.session_id or is_current(memory)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """Notes shown with memories, by id: symptoms of a gotcha, wordings that wait for a person's answer.

    `new` are waiting lines (heading, text) that would become memories. With `edits` a line itself says that its code
    was edited since, instead of standing under a heading that does.
    """

    symptoms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    waits: Mapping[str, Sequence[str]] = field(default_factory=dict)
    new: Sequence[tuple[str, str]] = ()
    edits: bool = False


NO_ANNOTATIONS = Annotations()


def build_item(memory: Memory, annotations: Annotations = NO_ANNOTATIONS) -> Item:
    """Returns the line of a memory."""

    def states_failure(text: str) -> bool:
        """Whether every sentence of a person's words states something."""
        return all(map(states_something, prose.split_sentences(display.squeeze(text))))

    symptom = next(filter(states_failure, annotations.symptoms.get(memory.id, ())), "")
    scene = [f"said {memory.scene}"] if memory.scene else []
    scene += ["its code edited since"] if memory.is_edited and annotations.edits else []
    return Item(
        text=_balance_emphasis(compose.durable_text(memory)), id=memory.id, scene=", ".join(scene),
        symptom=display.cut(display.squeeze(symptom), MAX_SYMPTOM_CHARACTERS),
        waits=tuple(annotations.waits.get(memory.id, ())),
    )  # fmt: skip


def _balance_emphasis(text: str) -> str:
    """Returns a text without its marks of emphasis if one of a pair is missing."""
    return display.squeeze(text.replace("**", "")) if text.count("**") % 2 else text


def _is_repeated(memory: Memory, other: Memory) -> bool:
    """Whether another line states nearly the same as a memory, or more."""
    mine, others = similarity.gist(memory.text), similarity.gist(other.text)
    if mine.turns != others.turns:
        return False
    if similarity.is_twin(mine, others):
        return True
    own, differing = mine.stems - others.stems, mine.stems ^ others.stems
    share = similarity.share(mine.stems, others.stems)
    is_inside = len(mine.stems) >= MIN_CONTAINED_WORDS and share >= MIN_CONTAINED_SHARE
    if is_inside and not any(map(str.isdigit, "".join(own))):
        return True
    shorter, longer = sorted((mine.stems, others.stems), key=len)
    is_same_session = memory.session_id == other.session_id != "" and "correction" not in (memory.gate, other.gate)
    is_retold = len(shorter) >= MIN_RETOLD_WORDS and similarity.share(shorter, longer) >= MIN_RETOLD_SHARE
    return is_retold and is_same_session and not any(map(str.isdigit, "".join(differing)))


def rank_memory(memory: Memory) -> tuple[object, ...]:
    """Returns the sort key of a page's memories: pinned, the user's, the surest, the latest."""
    return memory.pinned, memory.authority == "user", memory.confidence, memory.times, memory.confirmed_at, memory.id


def has_text(memory: Memory) -> bool:
    """Whether a memory says something lasting that can be understood without its session."""
    return bool(compose.standalone_text(memory)) and not evidence.find_transience(memory)


def build_sections(
    memories: Sequence[Memory], heading_for: Callable[[Memory], str], order: Sequence[str],
    annotations: Annotations = NO_ANNOTATIONS, lines: int = MAX_PAGE_LINES, may_show: Callable[[Memory], bool] = has_text,
) -> tuple[Section, ...]:  # fmt: skip
    """Returns the surest memories by heading; under each the pinned ones first, then the newest."""
    considered = heapq.nlargest(round(CONSIDERED_FACTOR * lines), memories, key=rank_memory)
    total = Counter(map(heading_for, memories))
    total.subtract(heading_for(memory) for memory in considered if not compose.durable_text(memory))

    usable = list(filter(may_show, considered))
    quotes = ((memory.project_seq, quote) for memory in usable for quote in _QUOTED.findall(memory.scene))
    quoted = {(project, tokens.normalise(quote)) for project, quote in quotes}
    shown_by_heading: dict[str, list[Memory]] = defaultdict(list)
    by_project: dict[int, list[Memory]] = defaultdict(list)

    def is_shown_elsewhere(memory: Memory) -> bool:
        """Whether another line's scene quotes a memory, unless it is pinned or a correction, or a line repeats it."""
        text = memory.project_seq, tokens.normalise(memory.text.replace('"', "'"))
        if text in quoted and not memory.pinned and memory.gate != "correction":
            return True
        return any(_is_repeated(memory, other) for other in by_project[memory.project_seq])

    for memory in sorted(usable, key=lambda memory: (not memory.pinned, memory.is_edited)):  # else the surest first
        section = shown_by_heading[heading_for(memory)]
        if lines and len(section) < MAX_SECTION_LINES and not is_shown_elsewhere(memory):
            section.append(memory)
            by_project[memory.project_seq].append(memory)
            lines -= 1
    sections = []
    for heading in filter(total.__getitem__, order):
        section_memories = sorted(
            shown_by_heading[heading], key=lambda item: (item.pinned, item.confirmed_at, item.id), reverse=True
        )
        items = tuple(build_item(memory, annotations) for memory in section_memories)
        sections.append(Section(heading=heading, items=items, more=total[heading] - len(items)))
    return tuple(sections)


def find_heading(memory: Memory) -> str:
    """Returns the heading of a memory on its project's page."""
    return next(rule.heading for rule in HEADING_RULES if rule.fits(memory))


def find_waiting_heading(gate: Gate, category: Category) -> str:
    """Returns the heading for a line that is not a memory yet."""
    rules = (rule for rule in HEADING_RULES if rule.heading not in (EDITED_HEADING, REVIEWS_HEADING))
    return next((rule.heading for rule in rules if (rule.gate, rule.category) == (gate, category)), "Facts")


def classify_heading(heading: str) -> tuple[Gate, Category]:
    """Returns the gate and category of a line that a person adds under a heading."""
    return next(((rule.gate, rule.category) for rule in HEADING_RULES if rule.heading == heading), DEFAULT_KIND)


_NUMBER = re.compile(r"\d[\d,.]*")


def strip_figures(text: str) -> str:
    """Returns a counted sentence without its figures, which identifies it whatever the counts."""
    return tokens.normalise(_NUMBER.sub("#", text))


def hash_counted(text: str, key: bytes) -> str:
    """Returns the hash that identifies a counted sentence which a person removed from a page."""
    return tokens.keyed_hash(strip_figures(text), key)[:16]


# --- pages


def is_csmd_heading(heading: str) -> bool:
    """Whether csmd writes such a heading; any other one is a person's."""
    return heading in CSMD_HEADINGS or bool(find_linked_page(heading))


def build_page(
    place: Place, memories: Sequence[Memory], *, facts: Sequence[Fact] = (), themes: Sequence[str] = (),
    annotations: Annotations = NO_ANNOTATIONS, previous: Page = EMPTY_PAGE, may_show: Callable[[Memory], bool] = has_text,
) -> Page | None:  # fmt: skip
    """Returns the page of a place, None for a project without memories; the user's page always exists.

    Each of `facts` that no memory says gets a line; `themes` are those of the memories, the most common first.
    """
    moved = _find_moved(memories, annotations, previous)
    lasting = drop_old_plans(memories) if place.seq else memories
    own = [memory for memory in lasting if memory.id not in moved]
    sections = build_sections(own, find_heading, HEADING_ORDER, annotations, may_show=may_show)
    texts = [item.text for section in sections for item in section.items] + [item.text for item in moved.values()]
    uncovered = (fact for fact in facts if not project_facts.is_covered(fact, texts))
    counted = [fact for fact in uncovered if actions.strip_counts(fact) not in texts]
    if counted:
        items = tuple(Item(text=fact.text) for fact in counted[:MAX_SECTION_LINES])
        sections = (*sections, Section(heading=FACTS_HEADING, items=items, more=len(counted) - len(items)))
    by_heading = {section.heading: section for section in sections}
    for heading, text in annotations.new:
        section = by_heading.get(heading, Section(heading=heading))
        by_heading[heading] = replace(section, waits=(*section.waits, text))
    sections = tuple(by_heading[heading] for heading in (*HEADING_ORDER, FACTS_HEADING) if heading in by_heading)
    if not (sections or moved or not place.seq):
        return None
    notes = count_notes(sections, moved)
    if place.seq:
        title, about = place.title or place.name, (*((f"`{place.root}`",) if place.root else ()), *EDITING_HINT)
        topics = f", mostly on {display.join_names(themes[:MAX_DESCRIPTION_THEMES])}" if themes else ""
        head = build_head(place.name, f"{place.root or place.name}: {notes}{topics}", "project")
    else:
        title, about = "The user", EDITING_HINT if memories else _EMPTY_HINT
        head = build_head("user", f"What holds in every project: {notes if memories else 'nothing yet'}", "user")
        sections = sections or (Section(heading="How the user works"),)
    page = Page(path=place.path, head=head, title=title, about=about, sections=sections)
    return page_format.keep_own_words(page, previous, moved, is_csmd_heading)


def _find_moved(memories: Sequence[Memory], annotations: Annotations, previous: Page) -> dict[str, Item]:
    """Returns the lines that a person put under headings of their own, by memory id."""
    if all(is_csmd_heading(section.heading) for section in previous.sections):
        return {}
    items = {memory.id: build_item(memory, annotations) for memory in memories if compose.durable_text(memory)}
    moved = page_format.find_moved_ids(previous, items, is_csmd_heading)
    return {memory_id: item for memory_id, item in items.items() if memory_id in moved}


def make_link(place: Place) -> str:
    """Returns the heading of a project on a theme's page: a link to its own page."""
    if not place.seq:
        return f"[{EVERYWHERE_HEADING}](../{USER})"
    return f"[{clean_link_text(place.root or place.name)}](../{place.path})"


def find_linked_page(heading: str) -> str:
    """Returns the path that a heading of a theme's page links to; "" if it is not a link."""
    link = re.search(r"\]\(\.\./([^)\s]+\.md)\)\s*$", heading)
    return link[1] if link else ""


def build_head(name: str, about: str, page_type: str) -> dict[str, str]:
    """Returns a page's head, in the form of the host's own memory files."""
    about = display.cut(display.squeeze(about), MAX_DESCRIPTION_CHARACTERS)
    return {"name": display.squeeze(name), "description": about, "type": page_type}


def count_notes(sections: Iterable[Section], moved: Collection[object] = ()) -> str:
    """Returns the number of notes in words, with those that are not shown."""
    return display.amount(sum(len(section.items) + section.more for section in sections) + len(moved), "note")


def clean_link_text(name: str) -> str:
    """Returns a name without the characters that would end a link."""
    return display.squeeze(re.sub(r"[\[\]()<>`]", "", name)) or "unnamed"


#: Most lines of a theme's page.
MAX_THEME_LINES = 40


def build_theme_page(
    theme: Theme, path: str, memories: Sequence[Memory], places: Mapping[int, Place], listed: Collection[str] = (),
    *, annotations: Annotations = NO_ANNOTATIONS, previous: Page = EMPTY_PAGE, may_show: Callable[[Memory], bool] = has_text,
) -> Page:  # fmt: skip
    """Returns the page of a theme, by project.

    Of a theme in one project only memories that its page does not list (`listed`).
    """
    headings = {seq: make_link(place) for seq, place in places.items()}
    order = [headings[seq] for seq in sorted(places, key=lambda seq: (places[seq].name, places[seq].key))]
    annotations = Annotations(waits=annotations.waits, edits=True)
    moved = _find_moved(memories, annotations, previous)
    on_own_page = [memory for memory in memories if len(places) == 1 and memory.id in listed and memory.id not in moved]
    own = [memory for memory in memories if memory.id not in moved and memory not in on_own_page]
    sections = build_sections(
        own, lambda memory: headings[memory.project_seq], order, annotations, MAX_THEME_LINES, may_show
    )
    also = f" (also {display.join_names(theme.also)})" if theme.also else ""
    names = [(places[seq].title or places[seq].name) if seq else EVERYWHERE_HEADING.lower() for seq in sorted(places)]
    are_distinct = 0 < len(set(names)) == len(names) <= MAX_NAMED_PROJECTS
    projects = display.join_names(names) if are_distinct else display.amount(len(names), "project")
    elsewhere, pointer = "", tuple[str, ...]()
    if count := len(on_own_page):
        elsewhere = f", beside {count} on its own page"
        verb, link = "stands" if count == 1 else "stand", make_link(places[on_own_page[0].project_seq])
        pointer = (f"{count} more on it {verb} on {link}.",)
    about = f"{theme.name}{also}: {count_notes(sections, moved)} of {projects}{elsewhere}"
    head = {**build_head(theme.name, about, "reference"), "topics": theme.topics}
    page = Page(path=path, head=head, title=theme.name, about=(*pointer, *EDITING_HINT), sections=sections)
    return page_format.keep_own_words(page, previous, moved, is_csmd_heading)


# --- the index

#: Lines of the index that are left free: a list begins and ends with empty lines.
SPARE_LINES = 4
#: Bytes of the index that are left free.
SPARE_BYTES = 100


def build_index(pages: Sequence[Page], previous: Page = EMPTY_PAGE) -> Page:
    """Returns the index: one line for each common page within the host's limits, and what a person wrote there."""
    links = (f"[{clean_link_text(page.title)}]({page.path})" for page in pages)
    abouts = (page.head["description"].removeprefix(f"{page.title}: ") for page in pages)
    items = [Item(text=f"{link}: {about}") for link, about in zip(links, abouts, strict=True)]

    def build(shown: int) -> Page:
        hidden = len(items) - shown
        about = (f"{display.amount(hidden, 'more page')} below {PROJECTS} and {TOPICS}",) if hidden else ()
        section = Section(heading=INDEX_HEADING, items=tuple(items[:shown]))
        page = Page(path=INDEX, title="What csmd remembers", about=about, sections=(section,))
        return page_format.keep_own_words(page, previous, {}, is_csmd_heading)

    frame = page_format.render_page(build(0))
    lines = INDEX_LINES - frame.count("\n") - SPARE_LINES
    units = INDEX_UNITS - len(frame.encode()) - SPARE_BYTES
    sizes = accumulate(len(f"- {markdown.to_line(item.text)}\n".encode()) for item in items)
    return build(sum(size <= units for size in islice(sizes, max(0, lines))))
