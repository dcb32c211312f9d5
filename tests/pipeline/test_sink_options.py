"""The options of the sink, and how rows become events: what does not fit is refused by name [contracts.md §7]."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from examples import examples
from holdfast.errors import InvalidEvent
from holdfast.events.event import Limits
from holdfast.events.packed import unpack
from holdfast.pipeline.errors import BadOption, BadRow
from holdfast.pipeline.sink_options import BATCH_SINK, STREAM_SINK, SinkOptions, read_sink_options
from holdfast.pipeline.sink_rows import Rows
from holdfast.pipeline.variant import VariantEncoder
from holdfast.pipeline.variant_reading import attributes_in

SCHEMA = (
    StructType()
    .add("topic", StringType())
    .add("payload", BinaryType())
    .add("i", IntegerType())
    .add("a", StructType().add("x", DoubleType()).add("s", StringType()))
    .add("bad", StructType().add("d", DateType()))
    .add("m", MapType(StringType(), LongType()))
    .add("im", MapType(IntegerType(), LongType()))
    .add("nested", MapType(StringType(), ArrayType(IntegerType())))
    .add("v", VariantType())
)
LEAST: dict[str, Any] = {"network": "network.toml", "stream": "s", "topic": "t"}


def options(*, allowed: tuple[str, ...] = BATCH_SINK, overwrite: bool = False, **given: Any) -> SinkOptions:
    return read_sink_options(given, allowed, SCHEMA, overwrite=overwrite)


def test_options_are_read_whatever_their_capitals_and_sparks_own_are_passed_over() -> None:
    found = options(
        Network="n", STREAM="s", topiccolumn="topic", attributesColumn="a", payloadColumn="payload",
        txnAppId="app", txnVersion="7", checkpointLocation="somewhere", queryName="q",
    )  # fmt: skip
    assert (found.topic, found.topic_column, found.app, found.version) == (None, "topic", "app", 7)
    assert options(**LEAST, allowed=STREAM_SINK).version is None


@pytest.mark.parametrize(
    ("given", "option", "problem"),
    [
        ({"stream": None}, "stream", "is missing"),
        ({"network": None}, "network", "is missing"),
        ({"topic": None}, "topic", "is missing"),
        ({"topicColumn": "topic"}, "topic", "both are given"),
        ({"attributeColumn": "a"}, "attributeColumn", "did you mean attributesColumn"),
        ({"zzz": "a"}, "zzz", "expected one of network"),
        ({"topic": None, "topicColumn": "none"}, "topicColumn", "expected one of the columns topic"),
        ({"topic": None, "topicColumn": "i"}, "topicColumn", "is a INT; expected a STRING"),
        ({"payloadColumn": "i"}, "payloadColumn", "expected a BINARY"),
        ({"attributesColumn": "topic"}, "attributesColumn", "expected a VARIANT"),
        ({"attributesColumn": "bad"}, "attributesColumn", "d has the type DATE"),
        ({"attributesColumn": "nested"}, "attributesColumn", "ARRAY"),
        ({"attributesColumn": "im"}, "attributesColumn", "no STRINGs"),
        ({"txnAppId": "a"}, "txnVersion", "go together"),
        ({"txnVersion": "1"}, "txnAppId", "go together"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "txnVersion", "whole number"),
        ({"txnAppId": "a", "txnVersion": str(2**41)}, "txnVersion", "whole number"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(given: dict[str, Any], option: str, problem: str) -> None:
    chosen = {key: text for key, text in {**LEAST, **given}.items() if text is not None}
    with pytest.raises(BadOption, match=problem) as refused:
        options(**chosen)
    assert refused.value.option == option


def test_a_stream_has_no_versions_of_its_own_and_nothing_is_overwritten() -> None:
    with pytest.raises(BadOption, match="is for batches"):
        options(**LEAST, txnAppId="a", txnVersion="1", allowed=STREAM_SINK)
    with pytest.raises(BadOption, match="append"):
        options(**LEAST, overwrite=True)


# Rows


def events(table: dict[str, Any], **given: str) -> list[Any]:
    chosen = {**LEAST, **given}
    if "topicColumn" in given:
        del chosen["topic"]
    rows = Rows(options(**chosen), Limits())
    batch = pa.RecordBatch.from_pydict(table)
    return [unpack(each) for each in rows.packed(batch, 5)]


def test_structs_and_maps_are_attributes_null_is_absent_and_text_is_a_payload() -> None:
    table = {"topic": ["a", "b"], "a": [{"x": 1.5, "s": None}, None], "payload": [b"p", None]}
    first, second = events(table, topicColumn="topic", attributesColumn="a", payloadColumn="payload")
    assert (first.topic, first.attributes, first.payload, first.time) == ("a", {"x": 1.5}, b"p", 5)
    assert (second.topic, second.attributes, second.payload) == ("b", {}, b"")
    maps = pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64()))
    assert [each.attributes for each in events({"m": maps}, attributesColumn="m")] == [{"k": 1}, {}]


def test_a_row_that_cannot_be_an_event_is_shown() -> None:
    with pytest.raises(BadRow, match="whose topic is NULL"):
        events({"topic": [None]}, topicColumn="topic")
    with pytest.raises(BadRow, match=r"topic 'a/\+'"):
        events({"topic": ["a/+"]}, topicColumn="topic")


VALUES = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=80), st.binary(max_size=80),
)  # fmt: skip


@given(st.dictionaries(st.text(min_size=1, max_size=10), VALUES, max_size=300))
@examples(100)
def test_a_variant_that_we_write_is_read_back_as_it_was(attributes: dict[str, Any]) -> None:
    value, metadata = VariantEncoder().encode(attributes)
    found = attributes_in(value, metadata)
    assert found == attributes
    assert [type(found[name]) for name in attributes] == [type(each) for each in attributes.values()]


@pytest.mark.parametrize("value", [b"", b"\x0c\x01", b"\x02\x05", b"\x02\x01\x00\x00\x01\x2c\x00"])
def test_a_variant_that_is_no_object_of_plain_values_is_refused(value: bytes) -> None:
    """Nothing, a number, a part of an object, and an object with a date."""
    with pytest.raises(InvalidEvent):
        attributes_in(value, b"\x01\x01\x00\x01a")
