"""Which parts of a prompt are another's words; in none of them a user states anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.text import quotations

MAIL = "From: Ann Lee <ann@example.org>\nTo: team@example.org\nSubject: Queue\n\nWe moved to RabbitMQ for good.\n"
GERMAN = (
    "Von: Ann <ann@example.org>\nGesendet: Montag\nAn: Team\nBetreff: Warteschlange\n\nWir nehmen jetzt RabbitMQ.\n"
)


def lines(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.strip()]


#: What a prompt is -> (the prompt, what of it is quoted, line by line).
CASES: dict[str, tuple[str, list[str]]] = {
    "plain": ("We use tabs here.\nNever spaces.", []),
    "a comparison": ("a > b and b < c; if x <y then stop", []),
    "a quoted line": ("> Should we use tabs?\nYes, always.", ["> Should we use tabs?"]),
    "a block moved in": ("It printed\n\n    use tabs\n    always\n\nwhy?", ["    use tabs", "    always"]),
    "a block led into": ("It printed:\n    use tabs\nwhy?", ["    use tabs"]),
    "a line moved in behind a line": ("We use tabs\n    and never spaces.", []),
    "an item's lines": ("- we use tabs\n\n    and never spaces\n- and so on", []),
    "all of it moved in": ("    We use tabs here.\n    Never spaces.", []),
    "an issue in tags": ("Fix this:\n<issue id=3>\nAlways use tabs.\n</issue>\nBut we use spaces.",
                         ["<issue id=3>", "Always use tabs.", "</issue>"]),
    "tags of a line": ("<issue>Always use tabs.</issue>", ["<issue>Always use tabs.</issue>"]),
    "a tag within a tag of its name": ("<a>\n<a>x</a>\nuse tabs\n</a>\ny", ["<a>", "<a>x</a>", "use tabs", "</a>"]),
    "emphasis": ("We <b>always</b> use tabs.", []),
    "a tag that is not closed": ("Use <br> and never\n<hr> here.", []),
    "tags in code": ("Use `<b>` and\n`</b>`, always.", []),
    "tags in a fence": ("```\n<b>\n```\nWe use tabs.\n```\n</b>\n```", []),
    "a mail": (f"What about this?\n\n{MAIL}", lines(MAIL)),
    "a mail in another language": (f"Und?\n\n{GERMAN}", lines(GERMAN)),
    "a mapping": ("from: old\nto: new\nkeep the rest", []),
    "an address": ("Author: me@example.org\nWe use tabs.", []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_a_prompt_quotes_is_told_from_its_own_words(name: str) -> None:
    prompt, quoted = CASES[name]
    found = "\n".join(prompt[start:end].strip("\n") for start, end in quotations.quotations(prompt))
    assert lines(found) == quoted
    assert lines(quotations.own_words(prompt)) == [line for line in lines(prompt) if line not in quoted]


@given(st.text(alphabet="ab >\n<i/>:@.`\t-", max_size=80))
def test_own_words_stand_where_they_stood(prompt: str) -> None:
    own = quotations.own_words(prompt)
    assert len(own) == len(prompt)
    assert all(mine in (theirs, " ") for mine, theirs in zip(own, prompt, strict=True))


@given(st.text(alphabet="ab >\n<i/>:@.`\t-", max_size=80), st.sampled_from("\r\x0b\x0c\x85\u2028\u2029"))
def test_whatever_breaks_a_line_ends_a_quotation_as_a_newline_does(prompt: str, mark: str) -> None:
    assert quotations.quotations(prompt.replace("\n", mark)) == quotations.quotations(prompt)


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
def test_a_statement_is_anothers_where_only_the_quotation_says_it() -> None:
    prompt = "Please read this.\n<issue>\nAlways deploy with the blue script.\n</issue>\nWe deploy on Mondays."
    assert quotations.is_of_another("Always deploy with the blue script", prompt)
    assert not quotations.is_of_another("We deploy on Mondays", prompt)
    assert not quotations.is_of_another("Always deploy with the blue script", f"{prompt}\nDeploy with the blue script.")
    assert not quotations.is_of_another("Always deploy with the blue script", "Always deploy with the blue script.")


def test_of_a_paste_that_nobody_types_the_middle_is_a_quotation() -> None:
    prompt = "We use tabs. " * 10_000 + "\n> so\nYes."
    middle, last = quotations.quotations(prompt)
    assert middle == (quotations.TYPED_CHARACTERS // 2, len(prompt) - quotations.TYPED_CHARACTERS // 2)
    assert prompt[last.start : last.end] == "> so\n"
