"""The columns of a stream as a table [contracts.md §7], as Spark calls them and as Arrow does.

Which of them are wanted, and which attributes are declared for the struct ``a``, is the ``Shape`` of the rows.
Attributes are declared as Spark's DDL declares fields, with the five types an attribute can have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from holdfast.pipeline.errors import BadOption
from holdfast.runtime.declarations import KINDS, BadDeclaration, ddl_of, declared_in

__all__ = [
    "COLUMNS",
    "KINDS",
    "REST",
    "Shape",
    "arrow_schema",
    "arrow_type",
    "declared",
    "shape_of",
    "spark_ddl",
    "table_shape",
]

#: In their order, each with Spark's type; ``a`` has none of its own.
COLUMNS: Final[dict[str, str]] = {
    "kind": "STRING",
    "stream": "STRING",
    "pubend": "STRING",
    "incarnation": "INT",
    "after": "BIGINT",
    "tick": "BIGINT",
    "topic": "STRING",
    "publisher": "STRING",
    "n": "BIGINT",
    "time": "TIMESTAMP",
    "accepted": "TIMESTAMP",
    "content_type": "STRING",
    "payload": "BINARY",
    "attributes": "VARIANT",
    "a": "",
    "tags": "ARRAY<STRING>",
    "reason": "STRING",
}

#: What tables have besides: the bytes of an event that are in no other column (``exact``).
REST: Final = "rest"
_KINDS_OF_COLUMNS: Final = {**COLUMNS, REST: "BINARY"}

_VARIANT: Final = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
_ARROW: Final[dict[str, Any]] = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "VARIANT": _VARIANT,
    "ARRAY<STRING>": pa.list_(pa.field("element", pa.string())),
}


class Shape(NamedTuple):
    """Which columns, in which order; and the attributes of ``a``, each with Spark's name of its type."""

    columns: tuple[str, ...]
    attributes: dict[str, str]


def shape_of(columns: Sequence[str] | None = None, attributes: Mapping[str, str] | None = None) -> Shape:
    """A shape that makes sense; without ``columns`` all there are.

    :raises BadOption: if it does not.
    """
    attributes = dict(attributes or {})
    if columns is None:
        columns = [name for name in COLUMNS if name != "a" or attributes]
    if not columns:
        raise BadOption("columns", "names none; expected at least one")
    for name in columns:
        if name not in _KINDS_OF_COLUMNS:
            raise BadOption("columns", f"there is no column {name!r}; expected some of {', '.join(COLUMNS)}")
    if len(set(columns)) < len(columns):
        raise BadOption("columns", f"names a column twice: {', '.join(columns)}")
    if "a" in columns and not attributes:
        raise BadOption(
            "columns", 'has a, and no attribute is declared; expected attributes = "price DOUBLE"'
        )
    for name, kind in attributes.items():
        if kind not in KINDS:
            raise BadOption("attributes", f"{name} is {kind}; expected {', '.join(KINDS)}")
    return Shape(tuple(columns), attributes)


def table_shape(attributes: Mapping[str, str]) -> Shape:
    """That of a table of the lake: all columns, and the rest."""
    shape = shape_of(None, attributes)
    return Shape((*shape.columns, REST), shape.attributes)


def declared(ddl: str) -> dict[str, str]:
    """The attributes of a text such as ``price DOUBLE, `order id` BIGINT``.

    :raises BadOption: naming what is wrong, and where.
    """
    try:
        return declared_in(ddl)
    except BadDeclaration as error:
        raise BadOption("attributes", str(error)) from error


def spark_ddl(shape: Shape) -> str:
    """The schema as Spark reads it."""
    struct = f"STRUCT<{ddl_of(shape.attributes)}>"
    return ", ".join(f"`{name}` {_KINDS_OF_COLUMNS[name] or struct}" for name in shape.columns)


def arrow_schema(shape: Shape) -> Any:
    """The schema as Arrow has it, the one that Spark makes of ``spark_ddl``."""
    return pa.schema([pa.field(name, arrow_type(name, shape)) for name in shape.columns])


def arrow_type(column: str, shape: Shape) -> Any:
    """The type of one column."""
    if column == "a":
        return pa.struct([pa.field(name, _ARROW[kind]) for name, kind in shape.attributes.items()])
    return _ARROW[_KINDS_OF_COLUMNS[column]]
