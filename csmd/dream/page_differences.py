"""What people did to the pages: the files beside what csmd wrote last, as single edits; pure.

A line is known by the memory it names, or by its words where an editor has lost the comment. One that stands under
another heading or on another page is moved, which is no edit. A page that lost too much at once was truncated, by a
sync service or a full disk: nothing of it is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from csmd.dream.page_content import COUNTED
from csmd.dream.page_format import Item, Read
from csmd.exclusions import NOT_KEPT
from csmd.text import page_lines, tokens

#: A truncation: a larger share of a page's lines gone at once, and at least so many; or the file itself.
SHARE_GONE, LEAST_GONE = 0.3, 4
#: More than anybody types into a page at once, and longer than a page.
MOST_NEW, MOST_BYTES = 100, 1_000_000
_NUMBER = re.compile(r"\d[\d,.]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line that a person wrote: under a heading, in the place of a memory's (`id`) or a new one ("")."""

    heading: str
    text: str
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What was done to one page; `gone` and `back` are memories, `uncounted` sentences that csmd counted."""

    path: str
    changed: tuple[Line, ...] = ()
    new: tuple[Line, ...] = ()
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    lost: int = 0
    had: int = 0
    blank: bool = False
    problem: str = ""

    @property
    def truncated(self) -> bool:
        """Whether the page lost too much at once for anybody to have meant it."""
        return self.had > 0 and (self.blank or (self.lost >= LEAST_GONE and self.lost > SHARE_GONE * self.had))

    @property
    def number(self) -> int:
        """How many edits there are."""
        return len(self.changed) + len(self.new) + len(self.gone) + len(self.back) + len(self.uncounted)


@dataclass(slots=True)
class _Side:
    """What stands where on one side: ids by page, and ids by the words of their lines."""

    pages: Mapping[str, Read]
    at: dict[str, set[str]] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    said: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, pages: Mapping[str, Read]) -> _Side:
        side = cls(pages)
        for path, read in sorted(pages.items()):
            for _, item in read.lines():
                if item.id:
                    side.at.setdefault(item.id, set()).add(path)
                    side.named.setdefault(page_lines.key(item.text), item.id)
                    side.said.setdefault(item.id, {})[path] = page_lines.key(item.text)
        return side


def text_of(raw: bytes) -> tuple[str, str]:
    """(what a file says, why it cannot be read: "" for nothing); line ends are made the same."""
    if len(raw) > MOST_BYTES:
        return "", f"it is larger than {MOST_BYTES // 1_000_000} MB"
    try:
        flat = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "it is not UTF-8"
    if "\x00" in flat:
        return "", "it holds bytes that no text has"
    flat = flat.replace("\r\n", "\n").replace("\r", "\n")
    return flat if not flat or flat.endswith("\n") else flat + "\n", ""


def edits(olds: Mapping[str, Read], news: Mapping[str, Read]) -> dict[str, Edits]:
    """What was done to each page of `news`, as they are now; a page that is not among `olds` was not there."""
    before = _Side.of(olds)
    # What lost its comment is known by its words, on every page.
    kept = {path: _recognised(read, before) for path, read in news.items()}
    now = {path: {ident for ident, _, _ in found} for path, found in kept.items()}
    changed_once: set[str] = set()
    return {
        path: _page(path, olds.get(path, Read()), news[path], kept[path], before, now, changed_once)
        for path in sorted(news, key=lambda path: (path.startswith("topics/"), path))
    }


#: (memory, heading, line) of a line that is known.
Known = tuple[str, str, Item]


def _recognised(read: Read, before: _Side) -> list[Known]:
    found: list[Known] = []
    for heading, item in read.lines():
        ident = item.id or before.named.get(page_lines.key(item.text), "")
        if ident:
            found.append((ident, heading, item))
    return found


def _page(
    path: str, old: Read, new: Read, known: Sequence[Known], before: _Side, now: Mapping[str, set[str]],
    changed_once: set[str],
) -> Edits:  # fmt: skip
    changed: list[Line] = []
    added: list[Line] = []
    back: list[str] = []
    for ident, heading, item in known:
        was = before.said.get(ident)
        if was is None:
            back.append(ident)  # csmd wrote it once: put back by hand, or by a copy of the store
        elif page_lines.key(item.text) not in was.values():
            twin = ident in changed_once or any(
                i == ident and page_lines.key(o.text) in was.values() for i, _, o in known
            )
            line = Line(heading=heading, text=item.text, id="" if twin else ident)
            (added if twin else changed).append(line)
            changed_once.add(ident)
    counted = {_kind(item.text): item.text for heading, item in old.lines() if not item.id}
    seen: set[str] = set()
    for heading, item in new.lines():
        if item.id or page_lines.key(item.text) in before.named or page_lines.key(item.text) in old.said:
            continue
        if _kind(item.text) in counted:
            seen.add(_kind(item.text))
        elif heading != COUNTED or path in before.pages:
            added.append(Line(heading=heading, text=item.text))
    uncounted = tuple(said for kind, said in counted.items() if kind not in seen)
    own = {item.id: heading for heading, item in old.lines() if item.id}
    # Moved to a page on which it did not stand, it is not gone.
    gone = [
        ident for ident in own
        if ident not in now[path]
        and not any(ident in found and other not in before.at[ident] for other, found in now.items())
    ]  # fmt: skip
    problem = f"{len(added)} new lines at once: csmd takes at most {MOST_NEW}" if len(added) > MOST_NEW else ""
    return Edits(
        path=path, changed=tuple(changed), new=tuple(_once(added)), gone=tuple(gone), back=tuple(dict.fromkeys(back)),
        uncounted=uncounted, lost=len(gone) + len(uncounted), had=len(own) + len(counted), blank=new == Read(),
        problem=problem,
    )  # fmt: skip


def _once(found: Sequence[Line]) -> list[Line]:
    return list({(line.heading, page_lines.key(line.text)): line for line in found}.values())


def _kind(said: str) -> str:
    """A counted sentence without its figures: with other counts it is the same."""
    return tokens.normalise(_NUMBER.sub("#", said))


def counted_hash(said: str, key: bytes) -> str:
    """What a counted sentence is known by that a person took off a page."""
    return tokens.keyed_hash(_kind(said), key)[:16]


# --- files beside the pages


#: What sync services and editors put beside a file, by the name of the file that it is a copy of.
_COPIES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<of>.+?) ?\([^)]*(?:conflict|konflikt|conflit|conflicto)[^)]*\)\.md",  # Dropbox, Nextcloud
        r"(?P<of>.+)\.sync-conflict-\d{8}-\d{6}(?:-\w+)?\.md",  # Syncthing
        r"(?P<of>.+)[ ._-]conflict(?:ed)?(?:[ ._-][^/]*)?\.md",  # Resilio, git-annex, Unison
        r"(?P<of>.+?) ?\(\d{1,3}\)\.md",  # Google Drive, browsers
        r"(?P<of>.+) \d{1,2}\.md",  # iCloud
        r"(?P<of>.+?) ?-? ?(?:copy|kopie|copie)(?: ?\(?\d{1,3}\)?)?\.md",
        r"(?P<of>.+)\.md(?:~|\.bak|\.orig|\.rej|\.old|\.save|\.tmp|\.swp|\.(?:theirs|mine|ours|r\d+))",
        r"\.?#(?P<of>.+)\.md#?",  # Emacs
        r"\.(?P<of>.+)\.md\.sw[a-p]",  # vim
        r"(?P<of>.+)-[A-Z0-9][A-Z0-9-]{5,20}\.md",  # OneDrive: the machine's name
    )
)  # fmt: skip
_RESTORED = re.compile(r"(?P<of>.+)\.restored-\d{4}-\d{2}-\d{2}(?:-\d+)?\.md")


def copies(names: Collection[str], pages: Collection[str]) -> list[str]:
    """Which of some files (below the memory directory) are copies of pages that a sync service or an editor made."""
    return sorted(name for name in names if name not in pages and _is_copy(name, pages))


def _is_copy(name: str, pages: Collection[str]) -> bool:
    folder, slash, last = name.rpartition("/")
    if _RESTORED.fullmatch(last):
        return False
    found = (pattern.fullmatch(last) for pattern in _COPIES)
    # The machine's name in OneDrive's is told from a page's by the case alone.
    return any(f"{folder}{slash}{match['of']}.md" in pages for match in found if match)


def restored_name(path: str, today: str, taken: Collection[str]) -> str:
    """The file beside a page that is to hold it whole; no file that is there has its name."""
    stem = path.removesuffix(".md")
    number, name = 1, f"{stem}.restored-{today}.md"
    while name in taken:
        number += 1
        name = f"{stem}.restored-{today}-{number}.md"
    return name


# --- who wrote a page

_READERS = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch"})
#: A shell line that only looks: no writing sign and no program that may write stands in it.
_ONLY_LOOKS = re.compile(
    r"^\W*(?:cat|head|tail|less|ls|grep|rg|wc|stat|diff|bat|find|file)\b(?!.*\s-(?:exec|ok|delete|fprint|fls))[^>|;&`$\n]*$"
)
_COMMAND = re.compile(r'"command":"((?:[^"\\]|\\.)*)')


#: What stands where the middle of a long call was left out.
CUT = " bytes left out"
#: How a line reaches every file below a folder that it names.
_SWEEPS = re.compile(r"\*|\bfind\b|\bg?rep\b.*-|\s-\w*[rR]|glob|walk|listdir")


def names_of(directory: str, path: str) -> tuple[str, ...]:
    """Words of which a call that may write a page has one: its file's name, its directories, and what says that a part is missing."""
    return (path.rpartition("/")[2], _tail(directory), f"/{_home(directory)}", NOT_KEPT, CUT)


def _tail(directory: str) -> str:
    """The directory's last two names: what stands before them is written as `~`, `$HOME`, or not at all."""
    return "/".join(directory.rstrip("/").split("/")[-2:])


def _home(directory: str) -> str:
    return _tail(directory).partition("/")[0]


def may_write(tool: str, given: str, cwd: str, *, directory: str, path: str) -> bool:
    """Whether a tool call may have written a page: it names it or its directory, and does not only look.

    A file name alone counts where it is the page's only: with "memory", or in csmd's directory, or one that no other
    file has. The directory counts by its last two names, the home where all below it is swept over. Of a shell line that
    is not kept whole nobody knows. What is only computed is not seen.
    """
    if tool in _READERS:
        return False
    command = _COMMAND.search(given)
    if tool == "Bash" and command and _ONLY_LOOKS.match(command[1]):
        return False
    if tool == "Bash" and (CUT in given or (NOT_KEPT in given and not command)):
        return True  # nobody knows what else stood there
    name = path.rpartition("/")[2]
    home = re.search(rf"/{re.escape(_home(directory))}(?=[\s\"'\\;|&)]|/?$|/\*)", given)
    inside = cwd == directory or cwd.startswith(f"{directory}/") or _tail(directory) in given
    inside = inside or (home is not None and bool(_SWEEPS.search(given)))
    if inside and (name in given or "*" in given or ".md" not in given):
        return True
    unlike_others = bool(re.search(r"-[0-9a-f]{6}\.md$", name))
    return name in given and (unlike_others or "memory" in given)
