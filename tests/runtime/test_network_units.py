"""Times and sizes in a network file."""

from __future__ import annotations

import pytest

from holdfast.clock import SECOND
from holdfast.runtime.network_units import BYTES_MAX, SPAN_NS_MAX, bytes_in, span_in


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("250ms", 0.25), ("5 min", 300), ("1.5h", 5400), ("7d", 604_800), ("2w", 1_209_600)],
)
def test_times(text: str, seconds: float) -> None:
    assert span_in(text) == seconds * SECOND


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1B", 1),
        ("2kB", 2000),
        ("500MB", 500_000_000),
        ("10GiB", 10 << 30),
        ("0.5 KiB", 512),
        ("1TiB", 1 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert bytes_in(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "7", "d", "-1d", "0s", "1e3s", "7days", "1 000s", "٣s", "1.s", "99999999999999w", "1D", " 1d"],
)
def test_what_is_none(text: str) -> None:
    assert span_in(text) is None
    assert bytes_in(text) is None


def test_the_largest() -> None:
    assert span_in("36525d") == SPAN_NS_MAX
    assert span_in("36526d") is None
    assert bytes_in(f"{BYTES_MAX}B") == BYTES_MAX
    assert bytes_in(f"{BYTES_MAX + 1}B") is None
