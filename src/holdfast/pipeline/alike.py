"""Events that are alike: the same names in the same order, and the same types. They are read by columns, all together.

There are two engines for that, one by numpy (``alike_pure``) and a compiled one (``alike_compiled``), with the same
answers; ``dividing`` finds out who is alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from holdfast.pipeline.variant import VariantEncoder

__all__ = ["ARROW", "Alike", "Engine", "Reading"]

ARROW: Final[dict[type, Any]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
}


class Alike(Protocol):
    """Events with the same names and types. Columns are arrays of Arrow, made when they are asked for."""

    which: Any  #: where they stand among all
    kinds: dict[str, type]  #: of the attributes, in their order

    @property
    def times(self) -> Any | None:
        """Of numpy, in nanoseconds; None if they have none."""

    def publishers(self) -> Any:
        """Texts."""

    def numbers(self) -> Any:
        """Those of the publishers."""

    def topics(self) -> Any:
        """Texts."""

    def content_types(self) -> Any:
        """Texts."""

    def payloads(self) -> Any:
        """Bytes."""

    def attribute(self, name: str) -> Any:
        """One of those that they have."""

    def variants(self, encoder: VariantEncoder) -> tuple[Any, Any] | None:
        """Values and metadata of all attributes; None if each event has to be looked at."""


class Reading(NamedTuple):
    """What became of some records."""

    alike: Alike | None
    waiting: Sequence[Any]  #: those that may be alike among themselves
    odd: Any  #: those that are packed in a way of their own


class Engine(Protocol):
    """Records that are to be read together."""

    def __len__(self) -> int:
        """How many there are."""

    def record(self, which: int) -> bytes:
        """One, by itself."""

    def read(self, which: Any) -> Reading:
        """Read some of them, whose numbers are given."""
