"""Rows as values of classes whose fields are columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, TypeVar

from csmd.cache import cached

T = TypeVar("T")
#: Annotation of a field -> how a column's value becomes the field's.
_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "bool": bool,
    "bool | None": lambda stored: None if stored is None else bool(stored),
    "tuple[str, ...]": lambda stored: tuple(stored.split()),
}


def columns(kind: type[Any], alias: str, **overrides: str) -> str:
    """Returns a class's fields as columns in order: `alias.name`, or the entry of `overrides` for a name."""
    return ", ".join(overrides.get(name, f"{alias}.{name}") for name in _annotations(kind))


def _annotations(kind: type[Any]) -> dict[str, str]:
    # a named tuple's annotations are ForwardRefs
    return {name: str(getattr(text, "__forward_arg__", text)) for name, text in kind.__annotations__.items()}


def column_values(value: Any, *excluded: str) -> dict[str, Any]:
    """Maps a value's fields, except those in `excluded`, to columns by name; tuples of words are joined by spaces."""
    names, word_tuples = _column_names(type(value), excluded)
    values = {name: getattr(value, name) for name in names}
    for name in word_tuples:
        values[name] = " ".join(values[name])
    return values


@cached(200)
def _column_names(kind: type[Any], excluded: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of the fields of a class that are columns, and those of them that are tuples of words."""
    annotations = {name: text for name, text in _annotations(kind).items() if name not in excluded}
    return tuple(annotations), tuple(name for name, text in annotations.items() if text == "tuple[str, ...]")


@cached(200)
def row_reader(kind: type[T]) -> Callable[[Sequence[Any]], T]:
    """Returns a function from a row, its columns a class's fields in order, to a value; last ones may be missing."""
    annotations = _annotations(kind)
    converters = [(index, _CONVERTERS[text]) for index, text in enumerate(annotations.values()) if text in _CONVERTERS]
    names = tuple(annotations)
    # A frozen class's __init__ takes three times as long as setting its slots, and a question reads hundreds of rows.
    has_slots = is_dataclass(kind) and "__slots__" in vars(kind)
    setters = [getattr(kind, name).__set__ for name in names] if has_slots else []

    def read(row: Sequence[Any]) -> T:
        values = list(row)
        for index, convert in converters:
            if index < len(values):
                values[index] = convert(values[index])
        if len(values) < len(setters) or not setters:
            return kind(**dict(zip(names, values, strict=False)))
        value = object.__new__(kind)
        for set_field, field in zip(setters, values, strict=True):
            set_field(value, field)
        return value

    return read


def as_value(kind: type[T], row: Sequence[Any]) -> T:
    """Returns a row as a value of a class whose fields are the row's columns, in order."""
    return row_reader(kind)(row)
