"""The viewer in a real browser: Chromium without a window, driven by keys as a person would."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from machine import Machine
from viewer_process import Viewer, end_viewer, open_viewer

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[test]'")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on PATH")

SCRIPT = "<script>window.taken = 1</script><img src=x onerror='window.taken = 1'>"
PAGES = ("", "sessions", "memories", "search?q=database", "told", "dreams", "review", "nowhere")
#: Where a reader finds out what is wrong with a page, by axe's severity.
SEVERE = {"serious", "critical"}


@pytest.fixture(scope="module")
def viewer(shared_machine: Machine) -> Iterator[Viewer]:
    """A viewer of a machine with sessions, things to review and a dream."""
    machine = shared_machine
    machine.start()
    machine.conversation("s1")
    machine.transcript(machine.line("user", f"I prefer {SCRIPT} in titles.", session="s2"), session="s2")
    machine.sync()
    for text in (
        "The deploy waits for the release notes.",
        "The staging cluster is rebuilt on Mondays.",
        f"Say {SCRIPT} first.",
    ):
        machine.call("csm_memory_save", text=text, project=str(machine.project))
    machine.hook("SessionStart", "s3", source="startup")
    machine.work("csm_dream_run", force=True)
    opened = open_viewer(machine)
    yield opened
    end_viewer(opened)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window; what it keeps is gone with it."""
    with playwright.sync_playwright() as driver:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=[*sandbox, "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def page(browser: Any, viewer: Viewer) -> Iterator[Any]:
    """A tab that has opened the link; whatever its console complains of fails the module."""
    complaints: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=f"http://{viewer.host}")
    tab = context.new_page()
    tab.set_default_timeout(20_000)
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("dialog", lambda dialog: complaints.append(dialog.message))
    tab.goto(viewer.link)
    viewer.base = tab.url.rstrip("/")
    yield tab
    context.close()
    assert [text for text in complaints if "400" not in text] == []


def visit(page: Any, viewer: Viewer, path: str) -> Any:
    page.goto(f"{viewer.base}/{path}")
    assert page.evaluate("window.taken") is None
    return page


def test_the_link_leads_to_the_overview_and_its_token_leaves_the_address(page: Any, viewer: Viewer) -> None:
    assert page.locator(".health").inner_text().startswith("Healthy")
    assert "token" not in page.url
    assert page.request.get(viewer.link).status == 403


@pytest.mark.parametrize(("width", "scheme"), [pytest.param(1280, "light", marks=pytest.mark.long), (360, "dark")])
def test_every_page_fits_and_is_accessible(page: Any, viewer: Viewer, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    links = [
        page.locator("[data-item] a").first.get_attribute("href")
        for path in ("sessions", "memories", "dreams")
        if visit(page, viewer, path)
    ]
    asking = [f"{links[1]}/change?do={do}" for do in ("edit", "forget", "supersede")] + [f"{links[2]}/undo"]
    for path in (*PAGES, *links, "session/s1", *asking):
        visit(page, viewer, path)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is {wide} px too wide at {width}"
        found = axe.Axe().run(page).response["violations"]
        wrong = [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found if rule["impact"] in SEVERE]
        assert wrong == [], path
    back = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    is_dark = sum(map(int, re.findall(r"\d+", back)[:3])) < 3 * 128
    assert is_dark == (scheme == "dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_keys_move_open_and_search(page: Any, viewer: Viewer) -> None:
    visit(page, viewer, "memories")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("[...document.querySelectorAll('[data-item]')].indexOf(document.activeElement)") == 0
    page.keyboard.press("Enter")
    page.wait_for_url("**/memory/*")
    page.get_by_text(re.compile("shown at a session|shown at every|not shown", re.IGNORECASE)).wait_for()
    page.keyboard.press("/")
    page.keyboard.type("jjpostgres")
    assert page.locator("#find").input_value() == "jjpostgres", "letters that are typed are no keys"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")


def test_search_answers_as_one_types_and_by_enter_without_script(page: Any, viewer: Viewer, browser: Any) -> None:
    visit(page, viewer, "search")
    page.locator("#search input[type=search]").press_sequentially("LISTEN", delay=20)
    page.locator("#hits mark, #hits [data-item]").first.wait_for()
    assert "Postgres" in page.locator("#hits").inner_text() and page.url.endswith("q=LISTEN&project=&kind=")
    visit(page, viewer, "search?q=titles")
    assert page.locator("#hits img, #hits script").count() == 0 and page.locator("#hits [data-item]").count() > 0
    page.locator("#search input[type=search]").fill("onerror")
    page.wait_for_url("**q=onerror*")
    assert page.locator("#hits img, #hits script").count() == 0 and page.evaluate("window.taken") is None
    plain = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state())
    with contextlib.closing(plain.new_page()) as tab:
        tab.goto(f"{viewer.base}/search")
        tab.locator("#search input[type=search]").fill("LISTEN")
        tab.locator("#search input[type=search]").press("Enter")
        tab.locator("#hits [data-item]").first.wait_for()
        assert "Postgres" in tab.locator("#hits").inner_text()
    plain.close()


def test_the_review_takes_one_key_for_each_answer(page: Any, viewer: Viewer) -> None:
    def questions() -> int:
        return int(page.locator(".question").count())

    def answer(key: str) -> str:
        """Presses a key that answers; the notice of the page that comes, once its script listens."""
        with page.expect_navigation(wait_until="load"):
            page.keyboard.press(key)
        return str(page.locator(".notice").inner_text())

    visit(page, viewer, "review")
    before = questions()
    assert before >= 3
    assert "Kept." in answer("y") and questions() == before - 1
    assert "Undone." in answer("u") and questions() == before
    second = page.locator(".question .text").nth(1).inner_text()
    page.keyboard.press("n")
    assert "Dropped." in answer("d")
    assert second not in page.locator("main").inner_text() and questions() == before - 1
    page.keyboard.press("e")
    page.locator(".question textarea:focus").fill("The release notes come before every deploy.")
    page.locator(".question details[open] button").first.click()
    page.get_by_text("Your wording replaced it.").wait_for()
    assert questions() == before - 2


def test_a_memory_is_forgotten_only_after_the_question(page: Any, viewer: Viewer) -> None:
    visit(page, viewer, "search?q=database_url&kind=memory")
    page.locator("#hits a").first.click()
    page.get_by_role("link", name="Forget").click()
    page.get_by_role("link", name="Cancel").click()
    assert "database_url" in page.locator("h1").inner_text()
    page.get_by_role("link", name="Forget").click()
    page.get_by_role("button", name="Forget it").click()
    page.get_by_text("Forgotten.").wait_for()
    assert "database_url" not in page.locator("main").inner_text()


def test_a_dream_is_undone_after_the_question(page: Any, viewer: Viewer) -> None:
    visit(page, viewer, "dreams")
    page.locator("[data-item] a").first.click()
    page.get_by_role("link", name="Undo this dream").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("The dream was undone.").wait_for()


def test_another_sites_page_changes_and_reads_nothing(page: Any, viewer: Viewer, browser: Any) -> None:
    """A page of another origin with this browser's cookies: another port of this machine is another origin."""
    visit(page, viewer, "memories")
    link = page.locator("[data-item] a").first.get_attribute("href")
    tab = page.context.new_page()
    tab.route("http://127.0.0.1:9/*", lambda route: route.fulfill(content_type="text/html", body="<p>evil</p>"))
    tab.goto("http://127.0.0.1:9/")
    target = f"{viewer.base}/{link}/change"
    read = tab.evaluate(
        "url => fetch(url, {credentials: 'include'}).then(r => r.text()).catch(() => 'refused')",
        viewer.base + "/memories",
    )
    assert read == "refused"
    sent = """url => { const form = document.createElement("form"); form.method = "post"; form.action = url;
        form.innerHTML = "<input name=do value=forget>"; document.body.append(form); form.submit(); }"""
    with tab.expect_navigation():
        tab.evaluate(sent, target)
    assert "Another site sent this form" in tab.locator("body").inner_text()
    tab.close()
    assert visit(page, viewer, link).locator("h1").inner_text()
