"""Variants read back: what was published, every value with its type [contracts.md §7]."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.events.value import INT_MAX, INT_MIN, Value
from holdfast.pipeline.variant import encoded
from holdfast.pipeline.variant_reading import VariantReader, names_in

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.one_of(
    st.booleans(),
    st.integers(INT_MIN, INT_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=90),
    st.binary(max_size=90),
)


def typed(attributes: dict[str, Value]) -> dict[str, tuple[type, str]]:
    return {name: (type(value), repr(value)) for name, value in attributes.items()}


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=12), max_size=4))
@example([{}])
@example([{"s": "x" * 63, "t": "x" * 64, "z": -0.0, "i": INT_MIN, "j": INT_MAX, "b": b""}])
@example([{f"a{i}": i for i in range(300)}])
@example([{"big": "x" * 70_000, "small": 1}])
@example([{"x" * 300: True, "y" * 300: False}])
def test_what_is_read_is_what_was_published(events: list[dict[str, Value]]) -> None:
    reader = VariantReader()
    for attributes in events:
        made = encoded(attributes)
        assert typed(reader.attributes(*made)) == typed(attributes)
        assert sorted(names_in(made.metadata)) == sorted(attributes)
