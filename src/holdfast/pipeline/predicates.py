"""Comparisons of a column with a value, which Spark hands down so that fewer rows have to travel.

They only leave out: Spark compares whatever it gets once more. So each must be true wherever Spark's own comparison is;
what Spark might see otherwise, it is not handed down. Gaps and silences are never left out here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from holdfast.events.packed import PackedEvent
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Tick
from holdfast.pipeline.columns import KINDS
from holdfast.pipeline.errors import BadRequest

__all__ = ["OPERATORS", "Predicate", "Test", "compiled"]

#: Whether the row of an event is wanted.
Test = Callable[[Tick, Publication, PackedEvent], bool]

Operand = bool | int | float | str


class Predicate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``column operator value``; a column is such as ``topic`` or ``a.price``."""

    column: str
    operator: str
    value: Operand | list[Operand] | None = None


OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, of: value in of,
    "starts": lambda value, of: value.startswith(of),
    "ends": lambda value, of: value.endswith(of),
    "contains": lambda value, of: of in value,
}
NOT_NULL: Final = "not null"

_COLUMNS: Final[dict[str, tuple[type, Callable[[Tick, Publication, PackedEvent], Any]]]] = {
    "tick": (int, lambda tick, publication, event: tick),
    "n": (int, lambda tick, publication, event: publication.n),
    "publisher": (str, lambda tick, publication, event: publication.publisher),
    "topic": (str, lambda tick, publication, event: event.topic),
}


def compiled(predicates: Sequence[Predicate], attributes: dict[str, str]) -> list[Test]:
    """Tests that all have to be passed; ``attributes`` are those that are declared.

    :raises BadRequest: if one makes no sense.
    """
    return [_compiled(each, attributes) for each in predicates]


def _compiled(predicate: Predicate, attributes: dict[str, str]) -> Test:
    kind, value_of = _operand(predicate.column, attributes)
    if predicate.operator == NOT_NULL:
        return lambda tick, publication, event: value_of(tick, publication, event) is not None
    compare, against = OPERATORS.get(predicate.operator), predicate.value
    if compare is None:
        raise BadRequest(
            f"the operator {predicate.operator!r}; expected {', '.join(OPERATORS)} or {NOT_NULL}"
        )
    of_list = predicate.operator == "in"
    values = against if isinstance(against, list) and of_list else [against]
    is_text_only = predicate.operator in ("starts", "ends", "contains")
    if isinstance(against, list) is not of_list or any(type(each) is not kind for each in values):
        raise BadRequest(f"{predicate.column} {predicate.operator} {against!r}: expected {kind.__name__}")
    if is_text_only and kind is not str:
        raise BadRequest(f"{predicate.column} {predicate.operator} {against!r}: expected text")

    def test(tick: Tick, publication: Publication, event: PackedEvent) -> bool:
        value = value_of(tick, publication, event)
        return value is not None and compare(value, against)

    return test


def _operand(column: str, attributes: dict[str, str]) -> tuple[type, Callable[..., Any]]:
    """A column's type, and how its value is had."""
    if column in _COLUMNS:
        return _COLUMNS[column]
    top, _, name = column.partition(".")
    kind = KINDS.get(attributes.get(name, "")) if top == "a" else None
    if kind is None or kind is bytes:
        raise BadRequest(f"nothing can be compared with {column!r} here")

    def value_of(tick: Tick, publication: Publication, event: PackedEvent) -> Any:
        value = event.scalars.get(name)
        return value if type(value) is kind else None

    return kind, value_of
