"""Latencies by size: percentiles within 4.5 per cent, however they were counted together."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.latencies import Latencies, latency_text


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=50), st.integers(1, 100))
def test_a_percentile_is_that_of_the_sorted_values(values: list[int], percent: int) -> None:
    one, other = Latencies(), Latencies()
    for i, value in enumerate(values):
        (one if i % 2 else other).add(value)
    one.merge(Latencies(other.as_json()))
    exact = sorted(values)[ceil(percent / 100 * len(values)) - 1]
    assert one.percentile(percent / 100) == pytest.approx(exact, rel=0.045)


def test_of_nothing_there_is_no_percentile() -> None:
    assert Latencies().percentile(0.5) is None


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (None, "-"),
        (900, "1 µs"),
        (850_000, "850 µs"),
        (1_234_567, "1.2 ms"),
        (123e6, "123 ms"),
        (2.5e9, "2.5 s"),
    ],
)
def test_latencies_are_short(nanoseconds: float | None, text: str) -> None:
    assert latency_text(nanoseconds) == text
