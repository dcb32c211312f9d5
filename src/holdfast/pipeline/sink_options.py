"""The options of the sink [contracts.md §7], read and checked once, with the columns they name; misfits are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    VariantType,
)

from holdfast.pipeline.errors import BadOption
from holdfast.streams.epochs import VERSION_MAX

__all__ = ["BATCH_SINK", "STREAM_SINK", "VALUES", "VALUE_WORDS", "SinkOptions", "read_sink_options"]

STREAM_SINK: Final = ("network", "stream", "topic", "topicColumn", "attributesColumn", "payloadColumn")
BATCH_SINK: Final = (*STREAM_SINK, "txnAppId", "txnVersion")

#: Spark's own, which it hands to every sink.
SPARKS: Final = ("checkpointlocation", "queryname")

_INTS: Final = (ByteType, ShortType, IntegerType, LongType)
VALUES: Final = (BooleanType, *_INTS, FloatType, DoubleType, StringType, BinaryType, NullType)
VALUE_WORDS: Final = "BOOLEAN, BIGINT or smaller, DOUBLE, FLOAT, STRING or BINARY"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where rows go, and how they become events."""

    network: Path
    stream: str
    topic: str | None  #: of all rows; None: each has its own
    topic_column: str | None
    attributes_column: str | None
    payload_column: str | None
    app: str | None
    version: int | None


def read_sink_options(
    given: Mapping[str, str], allowed: tuple[str, ...], schema: StructType, *, overwrite: bool
) -> SinkOptions:
    """The options of a writer of rows of this schema, which may be those in ``allowed``.

    :raises BadOption: naming the first that will not do.
    """
    if overwrite:
        raise BadOption("mode", 'is overwrite; a stream can only be appended to: expected mode("append")')
    said = _named(given, allowed)
    for name, what in (("network", "the path of a network.toml"), ("stream", "the name of a stream in it")):
        if not said.get(name):
            raise BadOption(name, f"is missing; expected {what}")
    if ("topic" in said) == ("topicColumn" in said):
        problem = "says the same as topicColumn, and both are given" if "topic" in said else "is missing"
        raise BadOption("topic", f"{problem}; expected topic, for all rows, or topicColumn")
    if ("txnAppId" in said) != ("txnVersion" in said):
        missing = "txnVersion" if "txnAppId" in said else "txnAppId"
        raise BadOption(missing, "is missing; txnAppId and txnVersion go together")
    columns = {each.name: each.dataType for each in schema.fields}
    _check_column(said, "topicColumn", columns, (StringType,), "a STRING")
    _check_column(said, "payloadColumn", columns, (BinaryType, StringType), "a BINARY or a STRING")
    _check_attributes(said, columns)
    return SinkOptions(
        Path(said["network"]),
        said["stream"],
        said.get("topic"),
        said.get("topicColumn"),
        said.get("attributesColumn"),
        said.get("payloadColumn"),
        said.get("txnAppId"),
        _version(said.get("txnVersion")),
    )


def _named(given: Mapping[str, str], allowed: tuple[str, ...]) -> dict[str, str]:
    """The text of each option, under the name it has here; Spark does not care for capitals."""
    names = {name.lower(): name for name in BATCH_SINK}
    said: dict[str, str] = {}
    for key, text in given.items():
        name = names.get(key.lower())
        if key.lower() in SPARKS:
            continue
        if name is None:
            near = get_close_matches(key.lower(), names, n=1)
            hint = f"did you mean {names[near[0]]}?" if near else f"expected one of {', '.join(allowed)}"
            raise BadOption(key, f"is not known to the sink; {hint}")
        if name not in allowed:
            raise BadOption(name, "is for batches: a streaming query has its own id, and numbers its batches")
        said[name] = text
    return said


def _check_column(
    said: Mapping[str, str], option: str, columns: Mapping[str, DataType], kinds: Any, words: str
) -> None:
    name = said.get(option)
    if name is None:
        return
    if name not in columns:
        raise BadOption(option, f"is {name!r}; expected one of the columns {', '.join(columns)}")
    if not isinstance(columns[name], kinds):
        found = columns[name].simpleString().upper()
        raise BadOption(option, f"is {name!r}, which is a {found}; expected {words}")


def _check_attributes(said: Mapping[str, str], columns: Mapping[str, DataType]) -> None:
    words = f"a VARIANT, or a STRUCT or MAP of {VALUE_WORDS}"
    _check_column(said, "attributesColumn", columns, (StructType, MapType, VariantType), words)
    name = said.get("attributesColumn")
    kind = columns[name] if name is not None else None
    inner: dict[str, DataType] = {}
    if isinstance(kind, StructType):
        inner = {each.name: each.dataType for each in kind.fields}
    elif isinstance(kind, MapType):
        inner = {"its values": kind.valueType}
        if not isinstance(kind.keyType, StringType):
            raise BadOption("attributesColumn", f"is {name!r}, whose names are no STRINGs")
    for field, each in inner.items():
        if not isinstance(each, VALUES):
            problem = f"is {name!r}, in which {field} has the type {each.simpleString().upper()}"
            raise BadOption("attributesColumn", f"{problem}; expected {VALUE_WORDS}")


def _version(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= VERSION_MAX):
        raise BadOption("txnVersion", f"is {text!r}; expected a whole number from 0 to {VERSION_MAX}")
    return int(text)
