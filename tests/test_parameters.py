"""The validation of a tool's parameters."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.errors import BadInput
from csmd.parameters import Parameter, make_schema, validate

PARAMETERS = {
    "limit": Parameter(int, 5, "Most rows", 50),
    "share": Parameter(float, 1.0, maximum=10),
    "deep": Parameter(bool, False),
}


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [("limit", "7", 7), ("limit", 50, 50), ("share", "2.5", 2.5), ("share", 3, 3.0), ("deep", "true", True)],
)
def test_numbers_and_booleans_may_be_given_as_text(name: str, typed: Any, value: Any) -> None:
    assert validate("t", PARAMETERS, {name: typed})[name] == value


@pytest.mark.parametrize(
    ("name", "typed", "problem"),
    [
        *[
            ("limit", text, "limit must be a whole number")
            for text in ("--5", "1_0", " 7", "\u00b2", "five", "", "5.0", 5.0, True, None, "9" * 5000)
        ],
        *[
            ("share", text, "share must be a number")
            for text in ("nan", "inf", float("nan"), float("-inf"), True, 10**400)
        ],
        *[("limit", number, "limit is") for number in (0, "-5", 51)],
        *[("share", number, "share is") for number in (0, 0.5, "10.5", 11)],
        ("deep", "yes", "deep must be true or false"),
    ],
)
def test_a_value_of_another_type_or_beyond_the_bounds_is_refused(name: str, typed: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        validate("t", PARAMETERS, {name: typed})


def test_the_schema_has_the_bounds_that_are_checked() -> None:
    limit = {"type": "integer", "description": "Most rows", "default": 5, "minimum": 1, "maximum": 50}
    assert make_schema(PARAMETERS)["properties"]["limit"] == limit
    assert make_schema(PARAMETERS)["properties"]["share"]["maximum"] == 10
