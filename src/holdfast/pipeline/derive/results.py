"""Rows of a result as events: a column ``topic`` and one ``payload`` are that, and all others are attributes.

An attribute is a BOOLEAN, a whole number, a floating one, a text or bytes. Times become texts that sort as the times
do, and a window becomes two, of its start and its end. What else there is can be no attribute, and is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from holdfast.errors import InvalidEvent
from holdfast.events.event import Limits, make_event
from holdfast.pipeline.derive.errors import BadQuery
from holdfast.pipeline.sink_options import VALUE_WORDS, VALUES

__all__ = ["ATTRIBUTES", "PAYLOAD", "TOPIC", "Results", "results_of"]

TOPIC: Final = "topic"
PAYLOAD: Final = "payload"
ATTRIBUTES: Final = "attributes"

_TIMES: Final = (TimestampType, TimestampNTZType)
_TIME_TEXT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"


class Results(NamedTuple):
    """What is to be published, in the columns ``topic``, ``payload`` and ``attributes``, as far as they are there."""

    frame: DataFrame
    options: dict[str, str]  #: of the sink, that say so


def results_of(file: Path, frame: DataFrame, topic: str | None, limits: Limits) -> Results:
    """The events that the rows of a result make; ``topic`` is that of all of them, if no column is.

    :raises BadQuery: naming the column that cannot be what it would have to.
    """
    names = [each.name for each in frame.schema.fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadQuery(
            file, f"two columns of the result are called {', '.join(twice)}; expected AS and other names"
        )
    own = {name: name for name in (TOPIC, PAYLOAD) if name in names}
    if (TOPIC in own) == (topic is not None):
        problem = "and there is --topic as well" if TOPIC in own else "and no --topic is given"
        said = "has a column topic" if TOPIC in own else "has no column topic"
        raise BadQuery(file, f"the result {said}, {problem}; expected one of the two")
    kinds = {each.name: each.dataType for each in frame.schema.fields}
    if TOPIC in own and not isinstance(kinds[TOPIC], StringType):
        raise BadQuery(file, f"the column topic is {_words(kinds[TOPIC])}; expected STRING")
    if PAYLOAD in own and not isinstance(kinds[PAYLOAD], StringType | BinaryType):
        raise BadQuery(file, f"the column payload is {_words(kinds[PAYLOAD])}; expected STRING or BINARY")
    attributes = [
        (name, value)
        for each in frame.schema.fields
        if each.name not in own
        for name, value in _attributes(file, each)
    ]
    _check_names(file, [name for name, _ in attributes], limits)
    columns = [_column(name) for name in own]
    options = {f"{name}Column": name for name in own}
    if topic is not None:
        options[TOPIC] = topic
    if attributes:
        columns.append(F.struct(*(value.alias(name) for name, value in attributes)).alias(ATTRIBUTES))
        options[f"{ATTRIBUTES}Column"] = ATTRIBUTES
    return Results(frame.select(*columns), options)


def _attributes(file: Path, field: StructField) -> Iterator[tuple[str, Column]]:
    """What a column becomes."""
    kind, column = field.dataType, _column(field.name)
    if isinstance(kind, _TIMES):
        yield field.name, _time_text(column)
    elif isinstance(kind, DateType):
        yield field.name, column.cast("string")
    elif _is_window(kind):
        for part in ("start", "end"):
            yield f"{field.name}_{part}", _time_text(column[part])
    elif isinstance(kind, VALUES):
        yield field.name, column
    else:
        hint = "; CAST it AS DOUBLE" if isinstance(kind, DecimalType) else ""
        expected = f"expected {VALUE_WORDS}, TIMESTAMP, DATE or a window"
        raise BadQuery(
            file, f"the column {field.name} is {_words(kind)}, which no attribute is: {expected}{hint}"
        )


def _is_window(kind: DataType) -> bool:
    return (
        isinstance(kind, StructType)
        and kind.fieldNames() == ["start", "end"]
        and all(isinstance(each.dataType, _TIMES) for each in kind.fields)
    )


def _time_text(column: Column) -> Column:
    return F.date_format(column, _TIME_TEXT)


def _check_names(file: Path, names: list[str], limits: Limits) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadQuery(file, f"two columns of the result make the attribute {', '.join(twice)}")
    try:
        make_event(TOPIC, dict.fromkeys(names, True), limits=limits)
    except InvalidEvent as error:
        raise BadQuery(file, f"the result cannot be events: {error}") from error


def _column(name: str) -> Column:
    return F.col("`{}`".format(name.replace("`", "``")))


def _words(kind: DataType) -> str:
    return str(kind.simpleString()).upper()
