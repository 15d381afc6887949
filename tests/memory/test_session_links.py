"""Sessions are linked where one builds on another, and what was not captured is a gap."""

from __future__ import annotations

from itertools import permutations

from csmd.memory import session_links
from csmd.memory.session_links import SessionFacts, find_links


def facts(seq: int, day: int = 1, **fields: object) -> SessionFacts:
    """`fields` are fields of the value, or things by the plural of their kind."""
    at = f"2026-03-{day:02d}T10:{seq:02d}:00.000Z"
    kinds = {
        "files": "file", "words": "word", "commits": "commit", "branches": "branch", "plans": "plan",
        "plan_given": "plan_given", "transcripts": "transcript", "names": "names",
    }  # fmt: skip
    things = {kinds[name]: fields.pop(name) for name in list(fields) if name in kinds}
    if "continued" in fields:
        things["continued"] = {"goes on": fields.pop("continued")}
    return SessionFacts(seq=seq, id=f"s{seq}", started_at=at, last_at=at, day=day, things=things, **fields)  # type: ignore[arg-type]


def rules_of(later: SessionFacts, *around: SessionFacts) -> list[tuple[int, str]]:
    return [(link.from_seq, link.rule) for link in find_links(later, [*around, later])]


def test_each_rule_ties_what_it_should_and_nothing_else() -> None:
    plan = {"# Move the parser": "u1"}
    cases = {
        "same turns": (facts(1), facts(2, shares={1: "u1"})),
        "transcript": (facts(1), facts(2, transcripts={"s1": "u2"})),
        "plan": (facts(1, plans=plan), facts(2, plan_given=plan)),
        "commit": (facts(1, commits={"1a2b3c4": "u1"}), facts(2, names={"1a2b3c4d5e": "u2"})),
        "branch": (facts(1, branches={"fix/zone": "u1"}), facts(2, branches={"fix/zone": "u2"})),
        "said so": (facts(1, files={"a.py": "u1"}), facts(2, day=2, files={"a.py": "u2"}, continued="u3")),
        "error mended": (
            facts(1, errors={"tests: tz_name is not defined": ("failed", "u1")}),
            facts(2, errors={"tests: tz_name is not defined": ("mended", "u2")}),
        ),
        "same work": (
            facts(1, files={"a.py": "u1", "b.py": "u1"}, words={"zone": "u1", "parser": "u1", "exporter": "u1"}),
            facts(2, files={"a.py": "u2", "b.py": "u2"}, words={"zone": "u2", "parser": "u2", "exporter": "u2"}),
        ),
    }
    for rule, (earlier, later) in cases.items():
        assert rules_of(later, earlier) == [(1, rule)], rule
        assert rules_of(earlier, later) == [], rule
        assert all(link.evidence for link in find_links(later, [earlier, later])), rule
    assert {*cases, "unseen transcript", "unseen commit", "unseen conversation"} == set(session_links.RULES)


def test_what_everybody_touches_ties_nobody() -> None:
    both = {"files": {"a.py": "u"}, "words": {"zone": "u", "parser": "u"}}
    crowd = [facts(seq, **both) for seq in range(1, 12)]
    assert rules_of(facts(20, **both), *crowd) == []
    assert rules_of(facts(2, branches={"main": "u"}), facts(1, branches={"main": "u"})) == []
    assert (
        rules_of(
            facts(2, errors={"lint: task failed": ("mended", "u")}),
            facts(1, errors={"lint: task failed": ("failed", "u")}),
        )
        == []
    )
    assert (
        rules_of(
            facts(2, day=20, files={"a": "u", "b": "u"}, words={"zone": "u", "parser": "u"}),
            facts(1, files={"a": "u", "b": "u"}, words={"zone": "u", "parser": "u"}),
        )
        == []
    )


def test_what_no_captured_session_did_is_a_gap() -> None:
    assert rules_of(facts(2, names={"1a2b3c4": "u"}), facts(1)) == [(0, "unseen commit")]
    assert rules_of(facts(2, names={"1a2b3c4": "u"}, commits={"1a2b3c4": "u"}), facts(1)) == []
    assert rules_of(facts(2, transcripts={"s9": "u"})) == [(0, "unseen transcript")]
    assert find_links(facts(2, transcripts={"s9": "u"}), [], captured=frozenset({"s9"})) == []
    assert rules_of(facts(2, continued="u")) == [(0, "unseen conversation")]
    assert "not captured" in session_links.describe_link("unseen transcript", "s9")


def test_the_order_in_which_sessions_came_in_does_not_matter() -> None:
    both = {"files": {"a.py": "u", "b.py": "u"}, "words": {"zone": "u", "parser": "u", "exporter": "u"}}
    some = [facts(1, **both), facts(2, day=2, **both), facts(3, day=3, **both), facts(4, day=3, names={"1a2b3c4": "u"})]
    wanted = [find_links(later, some) for later in some]
    for order in permutations(some):
        assert [find_links(later, order) for later in some] == wanted
