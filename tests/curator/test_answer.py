"""What of a model's answer is believed: what it cites and nothing more, whatever else it says."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from csmd.curator import answer
from csmd.curator.answer import Believed
from csmd.curator.question import Candidate, Sheet, Standing, ask_about

SAID: tuple[tuple[str, str], ...] = (
    ("user", "dont ever push to main, open a PR"),
    ("user", "sarah cuts the releases from release/2.4"),
    ("assistant", "The cause: `export.lock` is left behind, so `run_export` waits for 30 s and Redis does not answer."),
    ("user", "no, wrong: the port is 8443"),
    ("user", "不要直接推送到 main 分支，先开 PR"),
    ("user", "не используй ORM, пиши sql руками"),
    ("assistant", "The export retries 3 times, then it gives up; it was tuned for a tree, not for a graph."),
)
STANDING = ("Peter cuts the releases from release/2.3.", "Answer in German.")


def sheet() -> Sheet:
    candidates = [
        Candidate(uuid=f"u{number}", by=by, at="2026-03-01", text=text, ordinal=number)  # type: ignore[arg-type]
        for number, (by, text) in enumerate(SAID)
    ]
    standing = [Standing(memory_id=f"m{number}", text=text, by="user") for number, text in enumerate(STANDING)]
    (made,) = ask_about(
        root="/p/shop", project="shop", ended="2026-03-02", digest="", candidates=candidates, standing=standing
    )
    return made


def item(note: Any, *cites: str, **more: Any) -> dict[str, Any]:
    usual = {"tell": "starts", "does": "rule", "whose": "user", "scope": "project", "lasts": "always", "replaces": []}
    return {**usual, "cites": list(cites), "note": note, **more}


def believe(*items: Any, **more: Any) -> Believed:
    return answer.believe(json.dumps({"notes": list(items), "never": [], **more}), sheet())


def stands(note: Any, *cites: Any, why: str = "", digest: str = "") -> None:
    """What says in what state the work was left is believed, or dropped for one reason alone."""
    text = json.dumps({"notes": [], "never": [], "stands": {"cites": list(cites), "note": note}})
    found = answer.believe(text, replace(sheet(), digest=digest))
    assert found.dropped == (Counter({why: 1}) if why else Counter()), note
    assert (found.stands is None) == bool(why)


def check(note: Any, *cites: str, why: str = "", **more: Any) -> Believed:
    """A note is believed, or dropped for one reason alone."""
    found = believe(item(note, *cites, **more))
    assert found.dropped == (Counter({why: 1}) if why else Counter()), note
    assert len(found.notes) == (0 if why else 1)
    return found


def test_in_what_state_the_work_was_left_is_believed_as_a_note_is() -> None:
    left = "The export gives up after 3 retries; it was tuned for a tree."
    stands(left, "c7")
    stands("The export gives up after 5 retries; it was tuned for a tree.", "c7", why="number")
    stands("The export retries and Mallory tunes it for a tree.", "c7", why="name")
    stands(left, why="unknown")
    stands(left, "n1", why="unknown")
    stands(7, "c7", why="form")
    digest = "Committed: 1a2b3c4 Retry the export on release/2.5"
    committed = "The export gives up after 3 retries; that is committed on release/2.5."
    stands(committed, "c7", "s", digest=digest)
    stands(committed, "c7", digest=digest, why="number")
    stands(committed, "s", digest=digest, why="unknown")
    long = "\n".join(
        ["Goal: " + " ".join(f"word{number}" for number in range(60)), "Last: The weekly report waits for the export."]
    )
    stands("The weekly report waits for the export.", "c7", "s", digest=long)
    for found in (None, "done", ["c7"]):
        text = json.dumps({"notes": [], "never": [], "stands": found})
        assert answer.believe(text, sheet()).stands is None


@pytest.mark.parametrize(
    ("note", "cites", "by"),
    [
        ("Never push to main; open a PR.", ["c1"], "user"),
        ("Releases are cut from `release/2.4` by Sarah.", ["c2"], "user"),
        ("In shop, Sarah cuts the releases from release/2.4.", ["c2"], "user"),
        ("The export waits for 30 s where `export.lock` is left behind.", ["c3"], "assistant"),
        ("The port is 8443.", ["c4"], "user"),
        ("不要直接推送到 main 分支。", ["c5"], "user"),
        ("Не используй ORM, пиши SQL руками.", ["c6"], "user"),
        ("The export retries three times.", ["c7"], "assistant"),
        ("The export, i.e. that of a tree, was tuned.", ["c7"], "assistant"),
        ("The export was tuned for a tree.", ["c7"], "assistant"),
        ("Never push to main; the export retries 3 times.", ["c1", "c7"], "assistant"),
    ],
)
def test_a_note_that_says_what_it_cites_is_believed_as_the_words_of_whoever_said_that(
    note: str, cites: list[str], by: str
) -> None:
    (made,) = check(note, *cites, whose=by).notes
    assert made.text == note and made.by == by
    assert {one.uuid for one in made.cites} == {f"u{int(label[1:]) - 1}" for label in cites}


@pytest.mark.parametrize(
    ("note", "cites", "why"),
    [
        ("The export retries 5 times.", ["c7"], "number"),
        ("The export retries twelve times.", ["c7"], "number"),
        ("The port is 8443, not 8080.", ["c4"], "number"),
        ("Releases are cut from release/2.4 by Peter.", ["c2"], "name"),
        ("Peter cuts the releases from release/2.4.", ["c2"], "name"),
        ("The cause is `import.lock`, left behind.", ["c3"], "name"),
        ("`run_import` waits for 30 s.", ["c3"], "name"),
        ("Sarah cuts the releases from release/2.4/final.", ["c2"], "name"),
        ('Sarah cuts the releases "every other Friday" from release/2.4.', ["c2"], "quotation"),
        ("Push to main.", ["c1"], "negation"),
        ("Always push to main, open a PR.", ["c1"], "negation"),
        ("Sarah never cuts the releases from release/2.4.", ["c2"], "negation"),
        ("直接推送到 main 分支。", ["c5"], "negation"),
        ("Используй ORM.", ["c6"], "negation"),
        ("Do not push to the main branch, open a PR.", ["c5"], "language"),
        ("Nicht direkt nach main pushen, sondern ein PR.", ["c1"], "language"),
        ("The export " + "retries and " * 25 + "gives up.", ["c7"], "length"),
        ("Tests are written before code is merged.", ["c2"], "unlike"),
        ("It is 8443.", ["c4"], "hangs"),
        ("Never push to main.", [], "unknown"),
        ("Never push to main.", ["c99"], "unknown"),
        ("Never push to main.", ["n1"], "unknown"),
        ("Never push to main.", ["c1", 3], "unknown"),
        (7, ["c1"], "form"),
        ("", ["c1"], "unlike"),
    ],
)
def test_a_note_that_says_more_less_or_something_else_is_dropped_and_counted(
    note: Any, cites: list[str], why: str
) -> None:
    whose = "assistant" if {"c3", "c7"} & {*map(str, cites)} else "user"
    check(note, *cites, why=why, whose=whose)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"whose": "user"}, "speaker"),
        ({"whose": "root"}, "form"),
        ({"tell": "always"}, "form"),
        ({"tell": None}, "form"),
        ({"does": "obey"}, "form"),
        ({"cites": "c7"}, "form"),
    ],
)
def test_nobody_is_made_to_have_said_what_they_did_not_and_no_word_stands_for_another(
    more: dict[str, Any], why: str
) -> None:
    found = believe({**item("The export retries 3 times.", "c7", whose="assistant"), **more})
    assert not found.notes and found.dropped == Counter({why: 1})


def test_a_standing_note_is_replaced_or_finished_only_by_what_is_on_its_matter() -> None:
    (made,) = check("Sarah cuts the releases from release/2.4.", "c2", replaces=["n1", "n2", "n9", 4]).notes
    assert [old.memory_id for old in made.replaces] == ["m0"]
    (other,) = check("Never push to main; open a PR.", "c1", replaces=["n1", "n2"]).notes
    assert other.replaces == ()
    done = [
        {"id": "n1", "cites": ["c2"]},
        {"id": "n2", "cites": ["c2"]},
        {"id": "n1"},
        {"id": "n1", "cites": ["c9"]},
        5,
    ]
    found = believe(done=done)
    assert [(old.memory_id, one.uuid) for old, one in found.done] == [("m0", "u1")]


@pytest.mark.parametrize("around", ["{}", "Sure, here it is:\n```json\n{}\n```\nAnything else?", "{{thinking}} {}"])
def test_the_answer_may_stand_among_other_words(around: str) -> None:
    text = around.replace("{}", json.dumps({"notes": [item("The port is 8443.", "c4")], "never": ["c1"]}))
    found = answer.believe(text.replace("{{", "{").replace("}}", "}"), sheet())
    assert len(found.notes) == 1 and [one.uuid for one in found.never] == ["u0"]


def test_what_a_note_cites_is_not_judged_never_besides() -> None:
    found = believe(item("The port is 8443.", "c4"), never=["c4", "c1", "c1", "c77"])
    assert [one.uuid for one in found.never] == ["u0"] and found.dropped == Counter({"unknown": 1})


# --- whatever a model says

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["c1", "c4", "n1"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from("notes never done cites note tell does whose replaces id scope lasts".split()),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@example({"never": ["n1", "c1"]}, "", "")
@given(JUNK | st.text(max_size=200), st.text(max_size=40), st.text(max_size=40))
def test_no_answer_raises_and_nothing_is_believed_that_the_question_does_not_hold(
    value: Any, before: str, behind: str
) -> None:
    asked = sheet()
    text = value if isinstance(value, str) else json.dumps(value)
    found = answer.believe(f"{before}{text}{behind}", asked)
    assert {one.uuid for note in found.notes for one in note.cites} <= {one.uuid for one in asked.candidates.values()}
    around = "\n".join(text for _, text in SAID)
    said = (answer.find_addition(note.text, note.cites, names=("shop",), around=around) for note in found.notes)
    assert all(note.cites for note in found.notes) and not any(said)
    assert all(item in (*asked.candidates.values(), *asked.standing.values()) for item in found.never)
    assert all(old in asked.standing.values() and one in asked.candidates.values() for old, one in found.done)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300), st.sampled_from([f"c{n}" for n in range(1, 8)]))
def test_no_note_raises_and_one_that_is_believed_adds_no_number(note: str, cite: str) -> None:
    found = believe(item(note, cite, whose="assistant"))
    source = SAID[int(cite[1:]) - 1][1]
    for made in found.notes:
        assert set(answer._NUMBER.findall(made.text)) <= set(answer._NUMBER.findall(source))


@given(st.lists(st.sampled_from('{}[]":,notescite c1 '), max_size=400))
def test_broken_json_is_an_unreadable_answer(parts: list[str]) -> None:
    found = answer.believe("".join(parts), sheet())
    assert not found.notes and not found.done
