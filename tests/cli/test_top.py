"""The screen of `csmd top`, headless, with a real daemon behind it: what each pane shows and what each key does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from machine import Machine

from csmd import client
from csmd.cli.top import PANES, matching
from csmd.errors import DaemonUnreachable

WIDTH, HEIGHT = 80, 24


@pytest.fixture(scope="module")
def busy(shared_machine: Machine) -> Machine:
    """A daemon that has heard one conversation and one prompt."""
    shared_machine.conversation("s1")
    shared_machine.start()
    shared_machine.sync()
    shared_machine.event("SessionStart", "now", source="startup")
    shared_machine.event("UserPromptSubmit", "now", prompt="Which [bold]database[/bold] do we use?")
    return shared_machine


def screen_text(app: Any) -> list[str]:
    """What stands on the terminal, line by line."""
    return ["".join(segment.text for segment in strip).rstrip() for strip in app.screen._compositor.render_strips()]


def drive(machine: Machine, story: Callable[[Any, Any], Awaitable[None]], *, ask: Any = None) -> None:
    """Runs the screen without a terminal and lets `story(app, pilot)` use it."""
    from csmd.cli.top import Top

    def plain_ask(tool: str, **params: Any) -> Any:
        return client.call(machine.paths, tool, params)

    async def run() -> None:
        app = Top(ask or plain_ask, {"project": "", "asking": ""})
        async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
            await story(app, pilot)

    asyncio.run(run())


async def until(pilot: Any, app: Any, words: str) -> list[str]:
    """Waits until these words stand on the screen."""
    for _ in range(1000):
        lines = screen_text(app)
        if words in "\n".join(lines):
            return lines
        await pilot.pause(0.03)
    raise AssertionError(f"{words!r} never came:\n" + "\n".join(screen_text(app)))


def test_each_pane_shows_its_rows_each_row_its_page_and_all_of_it_fits(busy: Machine) -> None:
    async def story(app: Any, pilot: Any) -> None:
        await until(pilot, app, "Clean up tools/export.py")
        lines = await until(pilot, app, "2 sessions, 3 memories")
        assert lines[0].strip().startswith("csmd ") and "2 sessions, 3 memories" in lines[0]
        assert any("1 sessions" in line and "4 dreams" in line for line in lines)
        for key, rows, page in PAGES:
            await pilot.press(key)
            assert all(len(line) <= WIDTH for line in await until(pilot, app, rows))
            await pilot.press("enter")
            assert all(len(line) <= WIDTH for line in await until(pilot, app, page))
            await pilot.press("escape")
            assert len(app.screen_stack) == 1
        assert "[bold]database[/bold]" in "\n".join(screen_text(app)), "brackets are text"
        await pilot.press("4", "enter")
        await until(pilot, app, "no dream has run yet")

    drive(busy, story)


#: A pane's key, words of a row, words of the page of its first row.
PAGES = (("1", "Clean up", "transcript"), ("2", "pathlib over", "Where it was said"), ("3", "session start", '"kind":'))


def test_keys_go_round_filter_and_end_it(busy: Machine) -> None:
    async def story(app: Any, pilot: Any) -> None:
        seen = []
        for _ in PANES:
            seen.append(app.pane.name)
            await pilot.press("tab")
        assert seen == [pane.name for pane in PANES] and app.pane.name == seen[0]
        await pilot.press("2")
        await until(pilot, app, "correction")
        await pilot.press("slash", *"url")
        lines = await until(pilot, app, "database_url, not")
        assert not any("pathlib" in line for line in lines)
        await pilot.press(*"zz")
        await until(pilot, app, "no row holds these words")
        await pilot.press("escape")
        await until(pilot, app, "pathlib")
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running

    drive(busy, story)


def test_what_is_new_appears_the_cursor_stays_and_a_daemon_that_goes_away_is_told(busy: Machine) -> None:
    gone = False

    def ask(tool: str, **params: Any) -> Any:
        if gone:
            raise DaemonUnreachable("no csmd daemon is running")
        return client.call(busy.paths, tool, params)

    async def story(app: Any, pilot: Any) -> None:
        nonlocal gone
        await pilot.press("2")
        await until(pilot, app, "correction")
        await pilot.press("down")
        at = app._current(app.pane)["id"]
        busy.call("csm_memory_save", text="We always deploy from the main branch.", by_person=True)
        app.refresh_pane()
        await until(pilot, app, "deploy from the main branch")
        assert app._current(app.pane)["id"] == at
        gone = True
        app.refresh_pane()
        lines = await until(pilot, app, "no csmd daemon is running")
        assert any("deploy from the main" in line for line in lines)

    drive(busy, story, ask=ask)


def test_words_of_a_filter_are_all_wanted_whatever_their_case() -> None:
    items, rows = [{"n": 1}, {"n": 2}], [("Ab", "cd"), ("ab", "ef")]
    assert [item["n"] for item, _ in matching(items, rows, "AB CD")] == [1]
    assert len(matching(items, rows, "")) == 2


def test_neither_the_command_line_nor_its_help_imports_textual() -> None:
    code = (
        "import sys; from csmd.cli import main; assert not {'textual', 'rich.console'} & set(sys.modules), sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_without_a_terminal_or_a_daemon_it_is_refused(busy: Machine) -> None:
    done = busy.run("top")
    assert (done.returncode, "needs a terminal" in done.stderr) == (2, True)
    done = busy.run("top", CSMD_HOME=str(busy.root / "nothing"))
    assert done.returncode == 3
