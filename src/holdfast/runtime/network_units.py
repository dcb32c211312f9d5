"""Times and sizes as people write them in a network file: ``"7d"``, ``"10GiB"``, and a word for no limit at all."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from holdfast.clock import MILLISECOND, SECOND

__all__ = ["BYTES_MAX", "SPAN_NS_MAX", "bytes_in", "span_in"]

_NUMBER: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([A-Za-z]+)")
_SPANS: Final = {
    "ms": MILLISECOND,
    "s": SECOND,
    "min": 60 * SECOND,
    "h": 3_600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 7 * 86_400 * SECOND,
}
_SIZES: Final = {
    "B": 1,
    **{f"{prefix}B": 1_000**i for i, prefix in enumerate(("k", "M", "G", "T"), start=1)},
    **{f"{prefix}iB": 1_024**i for i, prefix in enumerate(("K", "M", "G", "T"), start=1)},
}

#: A century; and what every reader of the file agrees on.
SPAN_NS_MAX: Final = 36_525 * _SPANS["d"]
BYTES_MAX: Final = 2**53


def span_in(text: str) -> int | None:
    """The nanoseconds of a time such as ``90s``, ``1.5h`` or ``7d``; None if it is none, or beyond a century."""
    return _measured(text, _SPANS, SPAN_NS_MAX)


def bytes_in(text: str) -> int | None:
    """The bytes of a size such as ``500MB`` or ``10GiB``; None if it is none, or beyond all disks."""
    return _measured(text, _SIZES, BYTES_MAX)


def _measured(text: str, units: dict[str, int], most: int) -> int | None:
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] not in units:
        return None
    value = int(Decimal(found[1]) * units[found[2]])
    return value if 0 < value <= most else None
