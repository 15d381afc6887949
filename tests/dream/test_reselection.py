"""Which old memories keep their names when csmd chooses anew, by the lines that they cite and the words that they hold."""

from __future__ import annotations

from dataclasses import replace

from csmd.dream.reselection import ENOUGH, Said, plan
from csmd.model import Memory, Provenance, Statement

AT = "2026-01-01T10:00:00.000Z"


def memory(ident: str, words: str, *uuids: str) -> Memory:
    return Memory(
        id=ident, text=words, gate="epistemic", category="fact", type="repo", tier="daily", decay="durable", authority="user",
        origin="stated", confidence=0.8, scope="project", project_seq=1, session_id="s1", created_at=AT, confirmed_at=AT,
        hot_until=1, warm_until=2, archive_at=3,
        provenance=tuple(Provenance(uuid=uuid, session_id="s1", at=AT) for uuid in uuids),
    )  # fmt: skip


def said(words: str, uuid: str) -> Said:
    one = Statement(text=words, gate="epistemic", category="fact", confidence=0.8, authority="user")
    return Said(one, uuid, "s1", AT, 1)


def test_a_passage_of_the_same_line_with_most_of_the_words_keeps_the_memory() -> None:
    old = memory("m1", "The importer reads its feed at night", "u1")
    longer = said("The importer reads its feed at night, since the office line is slow by day", "u1")
    found = plan([old], [longer])
    assert (found.kept, found.made, found.archived) == (((old, longer),), (), ())


def test_other_words_or_another_line_keep_nothing() -> None:
    old = memory("m1", "The importer reads its feed at night", "u1")
    for one in (said("The exporter writes its reports by day", "u1"), said(old.text, "u2")):
        found = plan([old], [one])
        assert (found.kept, found.made, found.archived) == ((), (one,), (old,))


def test_a_line_that_merely_stands_beside_is_not_cited() -> None:
    old = memory("m1", "The importer reads its feed at night", "u1")
    beside = replace(old, provenance=(*old.provenance, Provenance(uuid="u2", session_id="s1", at=AT, role="beside")))
    assert plan([beside], [said(old.text, "u2")]).archived == (beside,)


def test_of_two_memories_that_one_passage_holds_the_better_keeps_its_name() -> None:
    passage = said("The importer reads its feed at night and retries three times", "u1")
    whole, part = (
        memory("m1", passage.statement.text, "u1"),
        memory("m2", "The importer retries three nightly times", "u1"),
    )
    found = plan([part, whole], [passage])
    assert (found.kept, found.archived) == (((whole, passage),), (part,))


def test_what_is_said_in_each_line_of_a_memory_is_no_second_one() -> None:
    old = memory("m1", "The importer reads its feed at night", "u1", "u2")
    found = plan([old], [said(old.text, "u1"), said(f"{old.text}, always", "u2")])
    assert (len(found.kept), found.made, found.archived) == (1, (), ())


def test_a_person_is_asked_where_most_would_be_archived_also_when_it_was_broken_off() -> None:
    held = [memory(f"m{number}", f"Fact {number} about pumps", f"u{number}") for number in range(ENOUGH)]
    assert plan(held, []).needs_person
    assert not plan(held[: ENOUGH - 1], []).needs_person
    told = [said(one.text, one.provenance[0].uuid) for one in held[:4]]
    assert not plan(held, told).needs_person
    assert plan(held[:8], told, before=2 * ENOUGH).needs_person
