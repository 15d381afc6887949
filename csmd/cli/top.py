"""The screen of `csmd top`: sessions, memories, events and dreams.

This is the only module that knows Textual; `csmd top` imports it when it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Label, Static, TabbedContent, TabPane

from csmd import wire
from csmd.cli import dreams
from csmd.cli.memories import show_memory
from csmd.cli.render import (
    NAMES,
    Screen,
    ago,
    clock,
    fitted,
    laid_out,
    last_part,
    many,
    percent,
    plain,
    plain_text,
    today,
    words_of,
)
from csmd.cli.sessions import show_session
from csmd.errors import CsmdError

EVERY_S = 2.0
Ask = Callable[..., Any]
Item = dict[str, Any]
MOST_SESSIONS, MOST_EVENTS = 200, 200
#: Columns that a project's name takes at most.
NAME = 14
#: The part of the width that a page takes, and the columns of it that stay empty.
PAGE_PERCENT, PAGE_PADDING = 94, 6


# --- what each pane shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """One table of the screen: a list of a tool's answer, the cells of a row, and the page of an item."""

    name: str
    columns: tuple[str, ...]
    empty: str
    tool: str
    items: str
    params: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the tool takes project parameters.
    placed: bool = True
    order: Callable[[list[Item]], Iterable[Item]] = list
    cells: Callable[[Item, str], tuple[str, ...]]
    key: Callable[[Item], str] = lambda row: str(row["id"])
    #: The tool with details of an item, "" for none, and the screen of its answer.
    page_tool: str = ""
    page: Callable[[Item], Screen] = lambda item: iter(wire.pretty(item).splitlines())


@dataclass(slots=True)
class Look:
    """One refresh: the head line, the items of a pane, the daemon's time, or what went wrong."""

    head: str = ""
    now: str = ""
    items: list[Item] = field(default_factory=list)
    trouble: str = ""


def fetch_pane(ask: Ask, where: Mapping[str, str], pane: Pane) -> Look:
    """Asks the daemon for the items of a pane and the head line."""
    state = ask("csm_runtime_status")
    wrong = [alarm["what"] for alarm in state.get("alarms", [])] or state["degraded"]
    counts = state["counts"]
    numbers = (("sessions", "session"), ("memories", "memory"), ("turns", "turn"))
    head = f"csmd {state['version']}  {', '.join(many(counts[name], noun) for name, noun in numbers)}"
    items = ask(pane.tool, **pane.params, **(where if pane.placed else {}))[pane.items]
    trouble = plain(wrong[0]) if wrong else ""
    return Look(head=head, now=state.get("at", ""), items=list(pane.order(items)), trouble=trouble)


def matching(items: list[Item], rows: list[tuple[str, ...]], words: str) -> list[tuple[Item, tuple[str, ...]]]:
    """The items whose row holds each of the words, in any case."""
    wanted = words.casefold().split()
    pairs = zip(items, rows, strict=True)
    return [(item, row) for item, row in pairs if all(word in " ".join(row).casefold() for word in wanted)]


def _name(project: str) -> str:
    return fitted(plain(last_part(project)) or "everywhere", NAME)


PANES: tuple[Pane, ...] = (
    Pane(
        name="sessions",
        columns=("last turn", "project", "turns", "about"),
        empty="no session yet: the first one that begins brings it",
        tool="csm_session_list",
        items="sessions",
        params={"limit": MOST_SESSIONS},
        cells=lambda row, now: (
            ago(row["last_at"], now),
            _name(row["project"]),
            f"{row['turns']:,}",
            plain(row["about"]),
        ),
        page_tool="csm_session_show",
        page=show_session,
    ),
    Pane(
        name="memories",
        columns=("gate", "sure", "project", "text"),
        empty="no memory yet: they come from sessions, `csmd import` and `csmd remember`",
        tool="csm_memory_list",
        items="memories",
        order=lambda rows: sorted(rows, key=lambda row: str(row["confirmed_at"]), reverse=True),
        cells=lambda row, _: (row["gate"], percent(row["confidence"]), _name(row["project"]), plain(row["text"])),
        page_tool="csm_memory_show",
        page=show_memory,
    ),
    Pane(
        name="events",
        columns=("time", "project", "what", "text"),
        empty="nothing has happened yet",
        tool="csm_tail",
        items="items",
        params={"last": MOST_EVENTS},
        order=reversed,
        cells=lambda row, _: (
            clock(row["at"], today=today()),
            fitted(plain(row["name"]) or "-", NAME),
            NAMES.get(row["kind"], row["what"].replace("_", " ")),
            words_of(row),
        ),
        key=lambda row: f"{row['kind']} {row['at']} {row['session']} {row['what']} {row['text'][:80]}",
    ),
    Pane(
        name="dreams",
        columns=("when", "dream", "sessions", "what came of it"),
        empty="no dream has run yet",
        tool="csm_dream_history",
        items="dreams",
        placed=False,
        cells=lambda row, now: (
            ago(row["begun_at"], now),
            row["id"],
            f"{row['sessions']:,}",
            plain(dreams.summarize_dream(row)),
        ),
    ),
)


# --- the screen


class Rows(DataTable[Any]):
    """A pane's table, with enter named in its footer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "detail")]


class Page(ModalScreen[None]):
    """One row in full."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss(None)", "back")]

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            yield Static(self.words, markup=False, id="words")
        yield Footer()


class Top(App[None]):
    """The screen; `ask` calls a tool of the daemon, `where` holds its project parameters."""

    TITLE = "csmd top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: 1; padding: 0 1; text-style: bold; }
    #trouble { height: 1; padding: 0 1; color: $warning; }
    #trouble.-nothing, #filter.-hidden { display: none; }
    #filter { height: 1; border: none; padding: 0 1; }
    Screen { overflow: hidden; }
    TabbedContent, ContentSwitcher, TabPane { height: 1fr; }
    TabPane { padding: 0; }
    Rows { height: 1fr; scrollbar-size-horizontal: 0; }
    .empty { padding: 1 2; color: $text-muted; }
    Page { align: center middle; }
    #page { width: 94%; height: 90%; padding: 1 2; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("tab", "next_pane", "next", priority=True),
        *(Binding(str(number), f"pane('{pane.name}')", pane.name, show=False) for number, pane in enumerate(PANES, 1)),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("escape", "clear", "no filter", show=False),
    ]

    def __init__(self, ask: Ask, where: Mapping[str, str]) -> None:
        super().__init__()
        self.animation_level = "none"  # nothing moves while one reads
        self.ask, self.where = ask, where
        self.looks: dict[str, Look] = {}
        self.shown: dict[str, list[tuple[Item, tuple[str, ...]]]] = {}

    def compose(self) -> ComposeResult:
        yield Label("csmd", id="head", markup=False)
        yield Label("", id="trouble", classes="-nothing", markup=False)
        yield Input(placeholder="words that a row must hold; escape ends it", id="filter", classes="-hidden")
        with TabbedContent(initial=PANES[0].name):
            for number, pane in enumerate(PANES, 1):
                with TabPane(f"{number} {pane.name}", id=pane.name):
                    yield Static("", classes="empty", id=f"empty-{pane.name}", markup=False)
                    yield Rows(id=f"rows-{pane.name}", cursor_type="row")
        yield Footer()

    def on_mount(self) -> None:
        for pane in PANES:
            self._table(pane).add_columns(*pane.columns)
        self._table(PANES[0]).focus()
        self.set_interval(EVERY_S, self.refresh_pane)
        self.refresh_pane()

    # --- asking

    @property
    def pane(self) -> Pane:
        """The active pane."""
        return next(pane for pane in PANES if pane.name == self.query_one(TabbedContent).active)

    def refresh_pane(self) -> None:
        """Refreshes the active pane."""
        self._ask_for(self.pane)

    @work(thread=True, exclusive=True, group="look")
    def _ask_for(self, pane: Pane) -> None:
        try:
            found = fetch_pane(self.ask, self.where, pane)
        except CsmdError as error:
            before = self.looks.get(pane.name, Look())
            found = Look(head=before.head, now=before.now, items=before.items, trouble=error.what)
        self.call_from_thread(self.show_pane, pane, found)

    def show_pane(self, pane: Pane, found: Look) -> None:
        """Shows the result of a refresh."""
        self.looks[pane.name] = found
        self.query_one("#head", Label).update(found.head or "csmd")
        trouble = self.query_one("#trouble", Label)
        trouble.update(found.trouble)
        trouble.set_class(not found.trouble, "-nothing")
        self._fill(pane)

    def _fill(self, pane: Pane) -> None:
        from rich.text import Text

        found = self.looks.get(pane.name)
        if found is None:
            return
        rows = [pane.cells(item, found.now) for item in found.items]
        wanted = matching(found.items, rows, self.query_one("#filter", Input).value)
        empty = self.query_one(f"#empty-{pane.name}", Static)
        empty.update("no row holds these words" if found.items else pane.empty)
        empty.display = not wanted
        table = self._table(pane)
        table.display = bool(wanted)
        if wanted == self.shown.get(pane.name):
            return
        at = self._current(pane)
        self.shown[pane.name] = wanted
        table.clear()
        for _, row in wanted:
            table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
        keys = [pane.key(item) for item, _ in wanted]
        table.move_cursor(row=keys.index(pane.key(at)) if at is not None and pane.key(at) in keys else 0)

    def _table(self, pane: Pane) -> Rows:
        return self.query_one(f"#rows-{pane.name}", Rows)

    def _current(self, pane: Pane) -> Item | None:
        """The item under the cursor."""
        shown, at = self.shown.get(pane.name, []), self._table(pane).cursor_row
        return shown[at][0] if 0 <= at < len(shown) else None

    # --- keys

    def action_pane(self, name: str) -> None:
        self.query_one(TabbedContent).active = name

    def action_next_pane(self) -> None:
        names = [pane.name for pane in PANES]
        self.action_pane(names[(names.index(self.pane.name) + 1) % len(names)])

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.remove_class("-hidden")
        field.focus()

    def action_clear(self) -> None:
        field = self.query_one("#filter", Input)
        field.value = ""
        field.add_class("-hidden")
        self._table(self.pane).focus()

    def action_detail(self) -> None:
        pane, item = self.pane, self._current(self.pane)
        if item is not None:
            self._open(pane, item)

    @work(thread=True, exclusive=True, group="page")
    def _open(self, pane: Pane, item: Item) -> None:
        try:
            shown = self.ask(pane.page_tool, id=item["id"], asking=self.where["asking"]) if pane.page_tool else item
            lines = laid_out(pane.page(shown), self.size.width * PAGE_PERCENT // 100 - PAGE_PADDING)
            words = "\n".join(map(plain_text, lines))
        except CsmdError as error:
            words = error.what
        self.call_from_thread(self.push_screen, Page(words))

    def on_tabbed_content_tab_activated(self) -> None:
        self._table(self.pane).focus()
        self.refresh_pane()

    def on_data_table_row_selected(self) -> None:
        self.action_detail()

    def on_input_changed(self) -> None:
        self._fill(self.pane)

    def on_input_submitted(self) -> None:
        self._table(self.pane).focus()
