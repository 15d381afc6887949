"""The pages that change something: each asks first, then calls the same tool as the command line, as a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from csmd.errors import BadInput
from csmd.web.pages import MAX_QUERY_CHARACTERS, Json, Page, Visit

#: Change -> the sentence on the next page. The address carries the word, never a text.
DONE_SENTENCES: Mapping[str, str] = {
    "forget": "Forgotten.", "pin": "Pinned: it does not fade.", "unpin": "Unpinned: it fades as others do.",
    "edit": "Your wording replaced it.", "supersede": "Replaced.", "restore": "Active again.", "undo": "Undone.",
    "keep": "Kept.", "drop": "Dropped.", "dream": "The dream was undone.", "same": "Nothing had to be changed.",
}  # fmt: skip
#: Changes of a memory that have a page with a question.
CONFIRMED_CHANGES = ("forget", "pin", "unpin", "edit", "supersede", "restore")
#: Memories offered as replacement.
MAX_REPLACEMENTS = 8
REVIEW_VERBS = ("keep", "edit", "drop", "supersede")


def build_address(path: str, **query: str) -> str:
    """Returns a path below the viewer's base with a query; empty values are left out."""
    filled = {name: value for name, value in query.items() if value}
    return f"{quote(path)}{'?' + urlencode(filled) if filled else ''}"


def ask_about_memory(visit: Visit) -> Page:
    """Asks whether a memory is to be changed."""
    change = _check_word(visit.query.get("do", ""), CONFIRMED_CHANGES)
    memory = visit.ask("csm_memory_show", id=visit.id, start=False)
    new = visit.query.get("new", "") if change == "supersede" else ""
    other = visit.ask("csm_memory_show", id=new, start=False) if new else None
    similar = _find_replacements(visit, memory) if change == "supersede" and not new else []
    return Page("change.html", {"memory": memory, "change": change, "other": other, "near": similar})


def _find_replacements(visit: Visit, memory: Mapping[str, Any]) -> list[Json]:
    """Returns memories that may replace one: found by the person's words, else by the memory's."""
    words = visit.query.get("q", "").strip() or memory["text"]
    params = {"query": words[:MAX_QUERY_CHARACTERS], "kind": "memory", "limit": MAX_REPLACEMENTS + 1}
    hits = visit.ask("csm_memory_search", **params)["hits"]
    return [hit for hit in hits if hit["id"] != memory["id"] and not hit["superseded_by"]][:MAX_REPLACEMENTS]


def change_memory(visit: Visit) -> str:
    """Changes a memory; returns the address of the next page."""
    change, person = _check_word(visit.form.get("do", ""), CONFIRMED_CHANGES), {"id": visit.id, "by_person": True}
    if change == "forget":
        visit.ask("csm_memory_delete", **person)
        return build_address("memories", did="forget")
    if change in ("pin", "unpin"):
        answer = visit.ask("csm_memory_pin", **person, undo=change == "unpin")
    elif change == "edit":
        version, text = visit.form.get("version", ""), visit.form.get("text", "")
        answer = visit.ask("csm_memory_edit", **person, text=text, version=int(version) if version.isdecimal() else 0)
    else:
        new = visit.form.get("new", "")
        answer = visit.ask("csm_memory_supersede", old=visit.id, new=new, undo=change == "restore", by_person=True)
        return build_address(f"memory/{answer['id']}", did=change)
    if not answer["changed"]:
        return build_address(f"memory/{answer['id']}", did="same")
    return build_address(f"memory/{answer['made'] or answer['id']}", did=change, undo=answer["answer"])


def answer_review(visit: Visit) -> str:
    """Carries out an answer in the review; returns the address of the next question."""
    form = visit.form
    verb, version = _check_word(form.get("do", ""), REVIEW_VERBS), form.get("version", "")
    other = form.get("other", "").strip() or form.get("near", "")
    answer = visit.ask(
        "csm_review_answer", id=visit.id, verb=verb, text=form.get("text", "") if verb == "edit" else "",
        other=other if verb == "supersede" else "", version=int(version) if version.isdecimal() else 0, by_person=True,
    )  # fmt: skip
    place = {"project": form.get("project", ""), "at": form.get("at", "")}
    return build_address("review", did=verb, undo=answer["answer"], **place)


def answer_import(visit: Visit) -> str:
    """Keeps or drops all that waits of an import; returns the address of the rest."""
    verb = _check_word(visit.form.get("do", ""), ("keep", "drop"))
    answer = visit.ask("csm_review_import", id=visit.id, verb=verb, by_person=True)
    return build_address("review", did=verb, undo=answer["answer"], project=visit.form.get("project", ""))


def undo_answer(visit: Visit) -> str:
    """Undoes an answer, an edit or a pin."""
    answer = visit.ask("csm_review_undo", id=visit.form.get("answer", ""), by_person=True)
    if visit.form.get("back") == "review":
        return build_address("review", did="undo", project=visit.form.get("project", ""), at=visit.form.get("at", ""))
    return build_address(f"memory/{answer['id']}" if answer["id"].startswith("m") else "review", did="undo")


def ask_about_dream(visit: Visit) -> Page:
    """Asks whether a dream, and with it every newer one, is to be undone."""
    return Page("undo.html", {"dreams": visit.ask("csm_dream_undo", id=visit.id, dry_run=True)["dreams"]})


def undo_dream(visit: Visit) -> str:
    """Undoes a dream and every newer one, and waits for it."""
    visit.work("csm_dream_undo", id=visit.id, dry_run=False)
    return build_address(f"dream/{visit.id}", did="dream")


def _check_word(word: str, words: tuple[str, ...]) -> str:
    if word not in words:
        raise BadInput(f"there is no change {word!r}", hint="use the buttons of the page")
    return word


#: Path -> the page that asks.
QUESTION_PAGES: Mapping[str, Callable[[Visit], Page]] = {
    "/memory/{id}/change": ask_about_memory,
    "/dream/{id}/undo": ask_about_dream,
}
#: Path -> the function for its form.
FORMS: Mapping[str, Callable[[Visit], str]] = {
    "/memory/{id}/change": change_memory, "/review/{id}": answer_review, "/review/import/{id}": answer_import,
    "/undo": undo_answer, "/dream/{id}/undo": undo_dream,
}  # fmt: skip
