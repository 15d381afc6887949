"""The pages over a real daemon: what they show, that texts stay texts, that none grows with the home."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import CORRECTION, DECISION, PREFERENCE, Machine
from viewer_process import Opens, Viewer, end_viewer, open_viewer

from csmd.web import pages

SCRIPT = "<script>alert(1)</script>"
QUOTED = "\"><img src=x onerror=alert(2)> {{ 7*7 }} ' onmouseover='alert(3)"
MAX_BYTES = 300_000
LISTS = ("", "sessions", "memories", "search?q=database", "search/hits?q=database", "told", "dreams", "review")


@pytest.fixture(scope="module")
def viewer(shared_machine: Machine) -> Iterator[Viewer]:
    """A viewer of a machine with a session, one that was told something, one full of markup, and a walled project."""
    machine = shared_machine
    machine.start()
    machine.conversation("s1")
    said = f"From now on the title of every page is {SCRIPT} and never {QUOTED}."
    machine.transcript(
        machine.line("user", said, session="markup"),
        machine.line("assistant", f"Done: {SCRIPT}", session="markup"),
        {"type": "ai-title", "sessionId": "markup", "aiTitle": f"Title {SCRIPT}"},
        session="markup",
    )
    walled = machine.root / "client<b>"
    walled.mkdir()
    secret = machine.line("user", "I prefer the blue theme for the client's invoices.", session="wall", cwd=str(walled))
    machine.transcript(secret, session="wall", folder=machine.assistant / "projects" / "-client")
    machine.sync()
    machine.call("csm_project_lens", name="client", places=str(walled), wall=True, by_person=True)
    machine.call(
        "csm_memory_save", text=f"The release notes begin with {SCRIPT} on Fridays.", project=str(machine.project)
    )
    machine.hook("SessionStart", "s2", source="startup")
    machine.work("csm_dream_run", force=True)
    opened = open_viewer(machine)
    assert opened.enter().status == 303
    yield opened
    end_viewer(opened)


def links(text: str, kind: str) -> list[str]:
    """The pages of one kind that a page links to."""
    return re.findall(rf'href="({kind}/[^"?#]+)"', text)


def test_the_overview_says_how_csmd_is_and_what_it_knows(viewer: Viewer) -> None:
    words = viewer.get("").words
    assert "Healthy: " in words and "memories from" in words
    assert "Latest sessions" in words and "Latest memories" in words and "project" in words


def test_a_session_is_read_as_a_conversation_with_its_memories_marked(viewer: Viewer) -> None:
    page = viewer.get("session/s1")
    for text in (PREFERENCE, CORRECTION, "It is done."):
        assert text in page.words.replace("&#39;", "'")
    assert "<mark>" in page.text
    memory = links(page.text, "memory")[0]
    shown = viewer.get(memory)
    assert "Where it was said" in shown.words and "for how many sessions" in shown.words
    for place in (f"{memory}/fading", f"{memory}?start=1"):
        assert re.search(r"[Ss]hown at .*session", viewer.get(place).words), place
    assert "let&#39;s go with Postgres" in page.text and "let's go" in DECISION


def test_memories_are_limited_by_project_kind_state_and_time(viewer: Viewer, shared_machine: Machine) -> None:
    def listed(query: str) -> int:
        found = re.search(r"([\d,]+) memor", viewer.get(f"memories?{query}").words)
        assert found is not None
        return int(found[1])

    every = listed("")
    assert 0 < listed(f"project={shared_machine.project}") < every
    kinds = [listed(f"kind={kind}") for kind in pages.GATE_LABELS]
    assert sum(kinds) == every and sum(1 for kind in kinds if kind) > 1
    assert listed("state=active") + listed("state=replaced") == every
    assert listed("since=2026-05-05") < every and listed("since=2200-01-01") == 0
    assert viewer.get("memories?since=soon").status == 400 and viewer.get("memories?kind=odd").status == 400


def test_what_replaced_what_is_seen_from_both_sides(viewer: Viewer, shared_machine: Machine) -> None:
    new, old = shared_machine.call("csm_memory_list", project=str(shared_machine.project))["memories"][:2]
    shared_machine.call("csm_memory_supersede", old=old["id"], new=new["id"], by_person=True)
    words = viewer.get("memories").text
    assert f'Replaced by <a href="memory/{new["id"]}">' in words and f'Replaces <a href="memory/{old["id"]}">' in words
    assert (
        "Replaced by" in viewer.get(f"memory/{old['id']}").words
        and "Replaces" in viewer.get(f"memory/{new['id']}").words
    )
    assert old["id"] in viewer.get("memories?state=replaced").text
    shared_machine.call("csm_memory_supersede", old=old["id"], undo=True, by_person=True)


def test_search_finds_by_enter_and_gives_the_script_the_hits_alone(viewer: Viewer) -> None:
    page, hits = viewer.get("search?q=database_url"), viewer.get("search/hits?q=database_url")
    assert "database_url" in hits.words and hits.text.strip() in page.text
    assert "<html" not in hits.text and "<script" not in hits.text
    assert "Nothing found" in viewer.get("search?q=zzzznothing").words
    assert viewer.get("search?q=%22%27%3B").status == 200, "signs alone are no words"


def test_what_was_told_is_shown_with_its_reason(viewer: Viewer) -> None:
    page = viewer.get("told")
    assert "at its start" in page.words and "under" in page.words and links(page.text, "memory")
    assert "Session s2" in viewer.get("told?session=s2").words
    assert "No session here was told anything" in viewer.get("told?session=s1").words


def test_a_dream_is_shown_with_its_files(viewer: Viewer) -> None:
    dream = links(viewer.get("dreams").text, "dream")[0]
    page = viewer.get(dream)
    assert "memory/user.md" in page.words and "Undo this dream" in page.words
    assert "Undo this dream?" in viewer.get(f"{dream}/undo").words


@pytest.mark.invariant("Texts that the viewer shows stay texts: no script, no markup, no template")
def test_scripts_in_titles_prompts_and_memories_stay_inert(viewer: Viewer, shared_machine: Machine) -> None:
    memories = [row["id"] for row in shared_machine.call("csm_memory_list", asking="/*")["memories"]]
    shown = [viewer.get(page) for page in (*LISTS, "session/markup", *(f"memory/{ident}" for ident in memories))]
    shown += [
        viewer.get(f"search?q={text}") for text in ("%3Cscript%3Ealert(1)%3C/script%3E%20x", "%22%3E%3Cimg%20src=x")
    ]
    shown += [
        viewer.get(f"memory/{ident}/change?do={do}") for ident in memories[:2] for do in ("edit", "forget", "supersede")
    ]
    turns = links(viewer.get(f"memory/{memories[0]}").text, "turn") or ["turn/nothing"]
    shown += [viewer.get(turns[0]), viewer.get("memory/%3Cscript%3E"), viewer.get("sessions?project=/%3Cb%3E")]
    assert any(SCRIPT.replace("<", "&lt;").replace(">", "&gt;") in page.text for page in shown)
    for page in shown:
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert re.findall(r"<script[^>]*>", page.text) in ([], ['<script src="static/keys.js" defer>'])
        assert "<img" not in page.text and "<b>client" not in page.text and "client<b>" not in page.text
        assert not re.search(r"<[^>]*\s(?:on\w+|style)\s*=", page.text) and "<style" not in page.text
        assert not re.findall(r'(?:src|href|action)="(?:https?:|//|javascript:|data:)', page.text)


def test_letters_that_turn_a_line_around_are_not_shown(viewer: Viewer, shared_machine: Machine) -> None:
    text = "The key of the cache is \u202egnp.exe\u202c in every region."
    ident = shared_machine.call("csm_memory_save", text=text, project=str(shared_machine.project))["id"]
    for page in (f"memory/{ident}", "memories", "search?q=cache+region", "review"):
        answer = viewer.get(page)
        assert "gnp.exe" in answer.text and "\u202e" not in answer.text, page


def test_the_owner_sees_what_is_behind_walls_and_nobody_else_does(viewer: Viewer, shared_machine: Machine) -> None:
    assert "blue theme" in viewer.get("memories").words and "blue theme" in viewer.get("session/wall").words
    assert "blue theme" in viewer.get("search?q=blue+theme").words
    here = shared_machine.call("csm_memory_search", query="blue theme", asking=str(shared_machine.project))
    assert here["hits"] == []
    walled = str(shared_machine.root / "client<b>")
    assert "blue theme" in viewer.get(f"memories?project={walled.replace('<', '%3C').replace('>', '%3E')}").words


def test_what_is_not_there_is_said_on_a_page(viewer: Viewer) -> None:
    for page in ("memory/m0000", "session/none", "turn/none", "dream/d0000", "nowhere", "told?session=none&offset=-3x"):
        answer = viewer.get(page)
        assert answer.status in (200, 400) and "csmd" in answer.text, page
    assert "there is no memory" in viewer.get("memory/m0000").words.lower()


def test_without_a_daemon_every_page_says_so_and_what_to_do(
    closed_viewer: Viewer, opened: Opens, machine: Machine
) -> None:
    lonely = opened(machine)
    for page in LISTS:
        answer = lonely.get(page)
        assert answer.status == 503 and "Try: csmd install" in answer.words, page


@pytest.mark.invariant("No page of the viewer grows with the home")
@pytest.mark.long
def test_no_page_grows_with_what_is_in_it(opened: Opens, machine: Machine) -> None:
    machine.start()
    huge = "<&\"'" * 60_000
    lines = [machine.line("user", f"{number}: {huge[:9_000]}") for number in range(90)]
    lines.append(machine.line("assistant", huge))
    machine.transcript(*lines)
    for number in range(70):
        machine.transcript(
            machine.line("user", f"prompt {number} {huge[:500]}", session=f"n{number}"), session=f"n{number}"
        )
    machine.sync()
    for number in range(120):
        machine.call(
            "csm_memory_save",
            text=f"Rule {number} of the parser is {'<&' * 120}",
            project=str(machine.project),
            by_person=True,
        )
    viewer = opened(machine)
    pages_seen = [
        viewer.get(page) for page in (*LISTS, "search?q=parser&most=100", "session/s1", "session/s1?offset=60")
    ]
    whole = links(viewer.get("session/s1?offset=88").text, "turn")[-1]
    pages_seen += [viewer.get(whole), viewer.get(f"{whole}?offset=30000")]
    for page in pages_seen:
        assert page.status == 200 and len(page.data) < MAX_BYTES, page.words[:200]
    seen, page = set[str](), "memories"
    while page:
        text = viewer.get(page).text
        seen |= set(links(text, "memory"))
        following = re.search(r'rel="next" href="([^"]+)"', text)
        page = following[1].replace("&amp;", "&") if following else ""
    assert len(seen) == machine.status()["counts"]["memories"], "the pages together hold every memory"


def test_a_page_takes_rows_by_what_they_weigh() -> None:
    small, large = (
        {"text": "x"},
        {"text": "<" * pages.MAX_PAGE_BYTES, "parts": ["a", {"b": "c"}], "number": 1, "none": None},
    )
    assert pages.fit_page([small] * 40) == [small] * 40
    assert pages.fit_page([large, small]) == [large] and pages.fit_page([small, large]) == [small]
    assert pages.fit_page([]) == []


def test_every_page_in_the_navigation_exists() -> None:
    assert set(pages.NAVIGATION) <= set(pages.PAGES)
    templates = {path.name for path in (Path(pages.__file__).parent / "templates").iterdir()}
    assert {"base.html", "hits.html", "problem.html"} <= templates


def test_a_day_lists_what_was_decided_and_leads_to_the_days_beside_it(viewer: Viewer, shared_machine: Machine) -> None:
    shown = viewer.get("today").text
    day = shared_machine.call("csm_today")["date"]
    assert day in shown and len(re.findall(r'href="today\?date=[0-9-]{10}"', shown)) == 2
    assert "Nothing was changed" in viewer.get("today?date=1999-01-01").text
    assert "ate must be a time" in viewer.get("today?date=x").text
