"""Parameters of a tool: their JSON schema, and the check of values; pure."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from csmd.errors import BadInput

#: The default of a parameter that must be given.
REQUIRED: Any = object()
JSON_TYPES: Mapping[type, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}


class Parameter(NamedTuple):
    """One parameter; a number is at most `most` and at least 1 where that is not 0."""

    kind: type
    default: Any = REQUIRED
    about: str = ""
    most: int = 0


Parameters = Mapping[str, Parameter]


def schema(parameters: Parameters) -> dict[str, Any]:
    """The JSON schema of an object of these parameters."""
    properties = {
        name: {"type": JSON_TYPES[of.kind]}
        | ({"description": of.about} if of.about else {})
        | ({} if of.default is REQUIRED else {"default": of.default})
        | ({"minimum": 1, "maximum": of.most} if of.most else {})
        for name, of in parameters.items()
    }
    required = [name for name, of in parameters.items() if of.default is REQUIRED]
    return {"type": "object", "properties": properties, "required": required}


def check(tool: str, parameters: Parameters, values: Mapping[str, Any]) -> dict[str, Any]:
    """Checks values and adds defaults; BadInput says what is wrong. `"5"` is 5 and `"true"` is true."""
    if unknown := sorted(set(values) - set(parameters)):
        hint = f"give one of {', '.join(parameters)}" if parameters else "give none"
        raise BadInput(f"{tool} has no parameter {unknown[0][:60]!r}", hint=hint)
    return {name: _check_value(tool, name, of, values.get(name, of.default)) for name, of in parameters.items()}


def _check_value(tool: str, name: str, of: Parameter, value: Any) -> Any:
    if value is REQUIRED:
        raise BadInput(f"{tool} needs the parameter {name!r}")
    if of.kind is int and isinstance(value, str) and value.lstrip("-").isdigit():
        value = int(value)
    elif of.kind is bool and value in ("true", "false"):
        value = value == "true"
    elif of.kind is float and isinstance(value, int | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            value = float(value)
    if type(value) is not of.kind:
        raise BadInput(f"{tool}: {name} must be {of.kind.__name__}, not {value!r}")
    if of.most and isinstance(value, int) and not 1 <= value <= of.most:
        raise BadInput(f"{tool}: {name} is {value:,}", hint=f"give 1 to {of.most}")
    return value
