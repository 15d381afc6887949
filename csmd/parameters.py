"""Parameters of a tool: their JSON schema, and the validation of values; pure."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from csmd.errors import BadInput

#: The default of a parameter that must be given.
REQUIRED: Any = object()
#: How a number may be typed.
_NUMBERS = {int: re.compile(r"-?[0-9]+"), float: re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")}
#: Type -> its name in messages.
TYPE_NAMES: Mapping[type, str] = {
    str: "a text", int: "a whole number", bool: "true or false", float: "a number", tuple: "a list",
}  # fmt: skip
JSON_TYPES: Mapping[type, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}


class Parameter(NamedTuple):
    """A parameter; with a `maximum` other than 0, a number is at least 1 and at most the maximum."""

    type_: type
    default: Any = REQUIRED
    description: str = ""
    maximum: int = 0


Parameters = Mapping[str, Parameter]


def make_schema(parameters: Parameters) -> dict[str, Any]:
    """Returns the JSON schema of an object with these parameters."""
    properties = {
        name: {"type": JSON_TYPES[parameter.type_]}
        | ({"description": parameter.description} if parameter.description else {})
        | ({} if parameter.default is REQUIRED else {"default": parameter.default})
        | ({"minimum": 1, "maximum": parameter.maximum} if parameter.maximum else {})
        for name, parameter in parameters.items()
    }
    required = [name for name, parameter in parameters.items() if parameter.default is REQUIRED]
    return {"type": "object", "properties": properties, "required": required}


def validate(tool: str, parameters: Parameters, values: Mapping[str, Any]) -> dict[str, Any]:
    """Validates values and adds defaults; BadInput explains an invalid one. `"5"` is 5 and `"true"` is true."""
    if unknown := sorted(set(values) - set(parameters)):
        hint = f"give one of {', '.join(parameters)}" if parameters else "give none"
        raise BadInput(f"{tool} has no parameter {unknown[0][:60]!r}", hint=hint)
    by_name = {name: values.get(name, parameter.default) for name, parameter in parameters.items()}
    return {name: _validate_value(tool, name, parameters[name], value) for name, value in by_name.items()}


def _validate_value(tool: str, name: str, parameter: Parameter, value: Any) -> Any:
    if value is REQUIRED:
        raise BadInput(f"{tool} needs the parameter {name!r}")
    if parameter.type_ is bool and value in ("true", "false"):
        value = value == "true"
    elif parameter.type_ is float and type(value) is int:
        with contextlib.suppress(OverflowError):
            value = float(value)
    elif parameter.type_ in _NUMBERS and isinstance(value, str) and _NUMBERS[parameter.type_].fullmatch(value):
        with contextlib.suppress(ValueError):  # an int of thousands of digits
            value = parameter.type_(value)
    if type(value) is not parameter.type_ or (isinstance(value, float) and not math.isfinite(value)):
        raise BadInput(f"{tool}: {name} must be {TYPE_NAMES[parameter.type_]}, not {value!r}")
    if parameter.maximum and isinstance(value, int | float) and not 1 <= value <= parameter.maximum:
        raise BadInput(f"{tool}: {name} is {value:,}", hint=f"give 1 to {parameter.maximum}")
    return value
