"""Forms in which secrets stand and texts that only look like one; tests/secret_forms.py fills and prints them."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
import secret_forms
from planted import planted
from secret_forms import Form

from csmd.privacy import redaction
from csmd.privacy.redaction import redact
from csmd.privacy.secret_rules import NEEDS, RULES, read_rules

FOLDER = Path(__file__).resolve().parent.parent / "data" / "secrets"
#: Those that the rules were made with, and those of people who had not seen them.
FILES = ("forms.txt", "forms_said.txt", "forms_by_others.txt", "forms_by_others_2.txt", "forms_by_class.txt")
FORMS = [form for name in FILES for form in secret_forms.forms(FOLDER / name)]


def stays(form: Form) -> bool:
    """Whether a secret of a filled form is still there after redaction."""
    shown = redact(form.text, Counter())
    return any(secret in shown for secret in form.secrets)


@pytest.mark.invariant("What a text says is a secret is not stored: by its shape, its syntax or the word beside it")
def test_of_the_forms_that_the_rules_were_made_with_hardly_any_lets_a_secret_through() -> None:
    left = [form for form in FORMS if stays(form)]
    assert len(FORMS) >= 6000
    assert len(left) <= 0.03 * len(FORMS), sorted({form.form for form in left})
    by_family = Counter(form.family for form in FORMS)
    for family, number in Counter(form.family for form in left).items():
        assert number <= 0.1 * by_family[family], family


def test_texts_that_only_look_like_a_secret_stay() -> None:
    rows = [row for path in FOLDER.glob("lookalikes*.txt") for row in secret_forms.look_alikes(path)]
    lost = [row for row in rows if redact(row, Counter()) != row]
    assert len(rows) >= 900
    assert len(lost) <= 0.01 * len(rows), lost


def test_every_row_of_the_table_takes_out_a_form_or_a_planted_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: defaultdict[int, int] = defaultdict(int)
    trying = redaction._apply_rule

    def counting(rule, number, text, start, spans):  # type: ignore[no-untyped-def]
        before = len(spans)
        end = trying(rule, number, text, start, spans)
        taken[number] += len(spans) - before
        return end

    monkeypatch.setattr(redaction, "_apply_rule", counting)
    for text in [form.text for form in FORMS] + [
        form.text for which in ("seen", "held_out") for form in planted(which)
    ]:
        redact(text, Counter())
    assert [(RULES[number].kind, RULES[number].literals) for number in range(len(RULES)) if not taken[number]] == []


def test_what_a_rule_needs_keeps_it_from_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [form.text for form in FORMS] + [form.text for which in ("seen", "held_out") for form in planted(which)]
    left = [redact(text, Counter()) for text in texts]
    monkeypatch.setattr(redaction, "NEEDS", dict.fromkeys(NEEDS, bool))
    assert [redact(text, Counter()) for text in texts] == left


@pytest.mark.parametrize(
    "options", ["is_tokn", "i has_digits", "paird", "need=odd", "needs=ood", "has_digit is_token", "paired needs=odd"]
)
def test_a_row_with_an_option_that_does_not_exist_is_refused(options: str) -> None:
    rows = ["service-token i has_digit back=1 needs=odd", "tok_", r"\btok_\w+"]
    assert read_rules(rows)[0].needs == "odd"
    with pytest.raises(ValueError, match=r"secret_rules\.txt"):
        read_rules([f"service-token {options}", *rows[1:]])
