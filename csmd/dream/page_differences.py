"""Finds people's edits of pages: lines that differ, copies of pages, and tool calls that may have written them; pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from csmd.dream.page_content import FACTS_HEADING, strip_figures
from csmd.dream.page_format import Page
from csmd.file_lines import NOT_KEPT
from csmd.hosts.tool_calls import READERS, SHELL
from csmd.text import markdown
from csmd.text.markdown import line_key

#: A page was truncated if more than this share of its lines is gone at once.
MAX_LOST_SHARE = 0.3
#: Fewest lines that must be gone for that.
MIN_LOST_LINES = 4
#: Most new lines of a page at once; a person does not type more.
MAX_NEW_LINES = 100
#: Suffixes of copies by sync services and editors: Dropbox, Nextcloud, Syncthing, Resilio, git-annex,
#: Unison; Google Drive and browsers; iCloud; editors and version control; OneDrive with the machine's name in capitals.
_COPY_SUFFIX = re.compile(
    r"(?i:[ ._(-].*(?:conflict|konflikt|conflit).*\.md|[ -]+(?:copy|kopie|copie)(?: ?\(?\d{1,3}\)?)?\.md| ?\(\d{1,3}\)\.md"
    r"| \d{1,2}\.md|\.md(?:~|#|\.\w+)?)|-[A-Z0-9][A-Z0-9-]{5,20}\.md"
)
#: A shell command that only reads: no redirection, and no program that may write.
_ONLY_READS = re.compile(
    r"^\W*(?:cat|head|tail|less|ls|grep|rg|wc|stat|diff|bat|find|file)\b(?!.*\s-(?:exec|ok|delete|fprint|fls))[^>|;&`$\n]*$"
)
_COMMAND = re.compile(r'"command":"((?:[^"\\]|\\.)*)')
#: The mark of what was left out of a long call.
CUT_MARK = " bytes left out"
#: How a shell command reaches every file below a folder that it names.
_READS_FOLDER = re.compile(r"\*|\bfind\b|\bg?rep\b.*-|\s-\w*[rR]|glob|walk|listdir")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLine:
    """A line under a heading; `id` is that of its memory, "" for a new line."""

    heading: str
    text: str
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """The edits of one page: changed and new lines, and removed facts.

    `removed_ids` and `restored_ids` are memories whose lines were removed or put back; `lost_lines` of `old_lines` are
    gone.
    """

    path: str
    changed: tuple[PageLine, ...] = ()
    new: tuple[PageLine, ...] = ()
    removed_ids: tuple[str, ...] = ()
    restored_ids: tuple[str, ...] = ()
    removed_facts: tuple[str, ...] = ()
    lost_lines: int = 0
    old_lines: int = 0
    is_blank: bool = False
    problem: str = ""

    @property
    def is_truncated(self) -> bool:
        """Whether the page lost too much at once for a person to have meant it."""
        is_large_loss = self.lost_lines >= MIN_LOST_LINES and self.lost_lines > MAX_LOST_SHARE * self.old_lines
        return self.old_lines > 0 and (self.is_blank or is_large_loss)

    @property
    def count(self) -> int:
        """The number of edits."""
        parts = (self.changed, self.new, self.removed_ids, self.restored_ids, self.removed_facts)
        return sum(map(len, parts))


@dataclass(frozen=True, slots=True)
class _KnownLines:
    """The memories' lines on the stored pages."""

    words: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """Memory id -> the words of its line, by page."""
    ids: dict[str, str] = field(default_factory=dict)
    """Words of a line -> the memory's id."""

    def has_wording(self, line: PageLine) -> bool:
        """Whether a line has the wording of its memory on any page."""
        return line_key(line.text) in self.words.get(line.id, {}).values()

    def identify(self, page: Page) -> list[PageLine]:
        """Returns the memories' lines on a page; a line without its comment is identified by its words."""
        items = ((heading, item, item.id or self.ids.get(line_key(item.text), "")) for heading, item in page.lines())
        return [
            PageLine(heading=heading, text=item.text, id=memory_id) for heading, item, memory_id in items if memory_id
        ]


def _read_known_lines(pages: Mapping[str, Page]) -> _KnownLines:
    stored_lines = _KnownLines()
    for path, page in sorted(pages.items()):
        for _, item in page.lines():
            if item.id:
                stored_lines.words[item.id][path] = line_key(item.text)
                stored_lines.ids.setdefault(line_key(item.text), item.id)
    return stored_lines


def find_edits(olds: Mapping[str, Page], news: Mapping[str, Page]) -> dict[str, Edits]:
    """Returns the edits of each page of `news` (the present text) against `olds`; a page missing there is new."""
    stored_lines = _read_known_lines(olds)
    lines = {path: stored_lines.identify(page) for path, page in news.items()}
    # A line that moved to another page is not gone.
    words = stored_lines.words
    moved_ids = {line.id for path in lines for line in lines[path] if path not in words.get(line.id, {path: ""})}
    changed_ids: set[str] = set()
    find = partial(_find_page_edits, stored_lines=stored_lines, changed_ids=changed_ids, moved_ids=moved_ids)
    paths = sorted(news, key=lambda path: (path.startswith(markdown.TOPICS), path))
    return {path: find(path, olds.get(path), news[path], lines[path]) for path in paths}


def _find_page_edits(
    path: str, previous: Page | None, new: Page, lines: Sequence[PageLine], stored_lines: _KnownLines, changed_ids: set[str],
    moved_ids: Collection[str],
) -> Edits:  # fmt: skip
    """Returns the edits of one page; `changed_ids` collects the memories whose wording changed, over all pages."""
    old = previous or Page()
    unchanged_ids = {line.id for line in lines if stored_lines.has_wording(line)}
    changed: list[PageLine] = []
    added: list[PageLine] = []
    for line in lines:
        if line.id not in stored_lines.words or stored_lines.has_wording(line):
            continue
        # A second wording, or one next to the old wording, is a new line.
        if line.id in changed_ids or line.id in unchanged_ids:
            added.append(replace(line, id=""))
        else:
            changed.append(line)
        changed_ids.add(line.id)
    facts = {strip_figures(item.text): item.text for _, item in old.lines() if not item.id}
    removed_facts = dict(facts)
    for heading, item in new.lines():
        if item.id or line_key(item.text) in stored_lines.ids or line_key(item.text) in old.generated:
            continue
        fact = strip_figures(item.text)
        removed_facts.pop(fact, None)
        if fact not in facts and (heading != FACTS_HEADING or previous is not None):
            added.append(PageLine(heading=heading, text=item.text))
    own_ids = dict.fromkeys(item.id for _, item in old.lines() if item.id)
    present_ids = {*moved_ids, *(line.id for line in lines)}
    removed_ids = tuple(memory_id for memory_id in own_ids if memory_id not in present_ids)
    problem = ""
    if len(added) > MAX_NEW_LINES:
        problem = f"{len(added)} new lines at once: csmd takes at most {MAX_NEW_LINES}"
    return Edits(
        path=path, changed=tuple(changed), removed_ids=removed_ids, removed_facts=tuple(removed_facts.values()),
        new=tuple({(line.heading, line_key(line.text)): line for line in added}.values()),
        # Lines that csmd wrote once: put back by a person, or by a restored copy.
        restored_ids=tuple(dict.fromkeys(line.id for line in lines if line.id not in stored_lines.words)),
        lost_lines=len(removed_ids) + len(removed_facts), old_lines=len(own_ids) + len(facts), is_blank=new == Page(),
        problem=problem,
    )  # fmt: skip


# --- copies of pages


def find_copies(names: Collection[str], pages: Collection[str]) -> list[str]:
    """Returns which of some files (below the memory directory) are copies of pages by a sync service or an editor."""
    stems = [page.removesuffix(".md") for page in pages]

    def is_copy(name: str) -> bool:
        folder, slash, last = name.rpartition("/")
        bare = f"{folder}{slash}{last.lstrip('.#')}"
        return any(bare.startswith(stem) and _COPY_SUFFIX.fullmatch(bare.removeprefix(stem)) for stem in stems)

    return sorted(name for name in names if name not in pages and is_copy(name))


# --- tool calls that may have written a page


def _last_names(directory: str) -> str:
    """Returns a directory's last two names: a call may write what precedes them as `~`, `$HOME` or not at all."""
    return "/".join(directory.rstrip("/").split("/")[-2:])


def list_page_words(directory: str, path: str) -> tuple[str, ...]:
    """Returns words of which a call that may write a page has at least one: file, directories, the mark of a cut."""
    folder = _last_names(directory)
    return (path.rpartition("/")[2], folder, "/" + folder.partition("/")[0], NOT_KEPT, CUT_MARK)


def may_write(tool: str, call: str, cwd: str, *, directory: str, path: str) -> bool:
    """Whether a tool call may have written a page: it names the page or its directory, and does not only read.

    A file name alone counts only with "memory", in csmd's directory, or if no other file can have it. The directory
    counts by its last two names, the home if the command reaches all files below it. A shell command that was not
    stored whole may have written the page. A name that a command computes is not noticed.
    """
    if tool in READERS:
        return False
    command = _COMMAND.search(call)
    if tool == SHELL and command and _ONLY_READS.match(command[1]):
        return False
    if tool == SHELL and (CUT_MARK in call or (NOT_KEPT in call and not command)):
        return True
    name = path.rpartition("/")[2]
    home = re.search(rf"/{re.escape(_last_names(directory).partition('/')[0])}(?=[\s\"'\\;|&)]|/?$|/\*)", call)
    is_inside = cwd == directory or cwd.startswith(f"{directory}/") or _last_names(directory) in call
    is_inside = is_inside or (home is not None and bool(_READS_FOLDER.search(call)))
    if is_inside and (name in call or "*" in call or ".md" not in call):
        return True
    is_unique = bool(re.search(r"-[0-9a-f]{6}\.md$", name))
    return name in call and (is_unique or "memory" in call)
