"""Attributes by columns, against each event by itself: the same bytes, and the same struct [contracts.md §7]."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from examples import examples
from holdfast.events.packed import PackedEvent
from holdfast.events.value import INT_MAX, INT_MIN, Value

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from holdfast.pipeline.attribute_columns import KINDS_MAX, AttributeColumns
from holdfast.pipeline.variant import Variant, VariantEncoder, encoded

Row = dict[str, Value]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(["x" * 63, "é" * 32])
VALUES = st.one_of(
    st.booleans(),
    st.integers(INT_MIN, INT_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.binary(max_size=40),
)
ROWS = st.dictionaries(st.sampled_from(["price", "qty", "sym", "é", "\U0001f600"]), VALUES)
KINDS: dict[str, type] = {"price": float, "qty": int, "sym": str, "é": bool, "raw": bytes}


@st.composite
def of_few_kinds(draw: st.DrawFn) -> list[Row]:
    """Events as they mostly are: of a few kinds, the names of one kind in one order, the values of one type."""
    few = draw(st.lists(ROWS, min_size=1, max_size=4))
    rows = []
    for _ in range(draw(st.integers(1, 30))):
        like = draw(st.sampled_from(few))
        rows.append({name: draw(_of(type(value))) for name, value in like.items()})
    return rows


def _of(kind: type) -> st.SearchStrategy[Value]:
    return VALUES.filter(lambda value: type(value) is kind)


def events_of(rows: list[Row]) -> list[PackedEvent]:
    """An event has its bytes behind its other attributes, whatever their order was."""
    events = []
    for row in rows:
        binary = {name: value for name, value in row.items() if isinstance(value, bytes)}
        scalars = {name: value for name, value in row.items() if not isinstance(value, bytes)}
        events.append(PackedEvent("t", scalars, binary, "", b"", None))
    return events


def columns_of(rows: list[Row]) -> AttributeColumns:
    return AttributeColumns(events_of(rows), VariantEncoder())


def alone(rows: list[Row]) -> list[Variant]:
    return [encoded(event.attributes) for event in events_of(rows)]


@examples(100)
@given(of_few_kinds() | st.lists(ROWS, min_size=1, max_size=40))
@example([{}])
@example([{}, {"sym": "x"}, {}])
@example([{"sym": "x" * 64}, {"sym": "x"}])
@example([{"sym": "x" * 63, "é": "x" * 63, "qty": "x" * 63, "price": "x" * 63}] * 2)
@example([{"sym": "x" * 63, "é": "x" * 63, "qty": "x" * 63, "price": "x" * 60}] * 2)
@example([{"sym": "x", "qty": 1}, {"qty": 2, "sym": "y"}])
@example([{"raw": bytes(300)}])
@example([{f"a{i}": True for i in range(300)}])
@example([{f"a{i}": True} for i in range(KINDS_MAX + 1)])
def test_the_bytes_are_those_of_each_event_by_itself(rows: list[Row]) -> None:
    values, metadata = columns_of(rows).variants()
    found = list(zip(values.to_pylist(), metadata.to_pylist(), strict=True))
    assert found == alone(rows)


@examples(100)
@given(of_few_kinds() | st.lists(ROWS, min_size=1, max_size=40))
def test_a_declared_attribute_is_there_where_it_has_its_type(rows: list[Row]) -> None:
    columns = columns_of(rows)
    for name, kind in KINDS.items():
        expected = [value if type(value := row.get(name)) is kind else None for row in rows]
        assert columns.declared(name, kind).to_pylist() == expected


def test_events_of_a_few_kinds_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [{"price": 1.5, "sym": "x"} if i % 3 else {"price": i, "raw": b"y"} for i in range(50)]
    expected = alone(rows)
    monkeypatch.delattr(VariantEncoder, "encode")
    values, metadata = columns_of(rows).variants()
    assert list(zip(values.to_pylist(), metadata.to_pylist(), strict=True)) == expected
