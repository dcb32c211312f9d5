"""Attributes as Variant bytes, against PySpark's own reading of them [contracts.md §7: typed, lossless]."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.events.value import INT_MAX, INT_MIN, Value
from holdfast.pipeline.variant import VariantEncoder, encoded

types = pytest.importorskip("pyspark.sql.types", reason="PySpark is not installed")

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.sampled_from(
    ["price", "qty", "sym", "é", "\uffee", "\U0001f600"]
)
VALUES = st.one_of(
    st.booleans(),
    st.integers(INT_MIN, INT_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=90),
    st.binary(max_size=90),
)


def read_back(value: bytes, metadata: bytes) -> object:
    return types.VariantVal(value, metadata).toPython()


def typed(attributes: dict[str, Value]) -> dict[str, tuple[type, str]]:
    """With types, and told from zero a zero below it."""
    return {name: (type(value), repr(value)) for name, value in attributes.items()}


@given(st.dictionaries(NAMES, VALUES, max_size=12))
@example({})
@example({"s": "x" * 63, "t": "x" * 64, "u": "é" * 32, "z": -0.0, "i": INT_MIN, "j": INT_MAX, "b": b""})
@example({f"a{i}": i for i in range(300)})
@example({"big": "x" * 70_000, "small": 1})
@example({"x" * 300: True, "y" * 300: False})
def test_what_pyspark_reads_is_what_was_published(attributes: dict[str, Value]) -> None:
    found = read_back(*encoded(attributes))
    assert isinstance(found, dict)
    assert typed(found) == typed(attributes)


def test_it_is_what_pyspark_would_write_but_for_the_size_of_numbers() -> None:
    ours = encoded({"flag": True, "name": "x", "none": "y" * 100})
    theirs = types.VariantVal.parseJson('{"flag": true, "name": "x", "none": "' + "y" * 100 + '"}')
    assert ours.value == theirs.value
    assert ours.metadata[1:] == theirs.metadata[1:]  # theirs does not say that its names ascend


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES), max_size=8))
def test_an_encoder_that_has_seen_others_says_the_same(events: list[dict[str, Value]]) -> None:
    encoder = VariantEncoder()
    for attributes in events:
        assert encoder.encode(attributes) == encoded(attributes)


def test_names_seen_once_are_kept_and_too_many_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.pipeline.variant.KEPT_MAX", 2)
    encoder = VariantEncoder()
    first = encoder.encode({"a": 1}).metadata
    assert encoder.encode({"a": 2}).metadata is first
    for name in ("b", "c"):
        assert read_back(*encoder.encode({name: 1})) == {name: 1}
    assert encoder.encode({"a": 3}).metadata is not first
