"""Records of a log by columns, with numpy and Arrow: a few of their calls for a part of all records at once.

The same as ``alike_compiled``, which is faster, and is there if there was a C compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from holdfast.pipeline.alike import Reading
from holdfast.pipeline.cursors import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    NIL,
    ODD,
    TEXT,
    Cursors,
    Messages,
    Spans,
    Unlike,
)
from holdfast.pipeline.variant import VariantEncoder
from holdfast.pipeline.variant_columns import variants_of
from holdfast.storage.records import Records

__all__ = ["PureRecords"]

#: What arrays begin with: the record (publisher, number, event), and the event (``events.packed``).
_RECORD, _EVENT = b"\x93", b"\x96"


class PureRecords:
    """Some records; an ``Engine``."""

    def __init__(self, pieces: Sequence[Records]) -> None:
        self._messages = Messages(pieces)

    def __len__(self) -> int:
        return len(self._messages)

    def record(self, which: int) -> bytes:
        """One, by itself."""
        return self._messages.records[which]

    def read(self, which: Any) -> Reading:
        """All of them together, or how they have to be divided."""
        nobody = which[:0]
        try:
            return Reading(_read(self._messages, which), [], nobody)
        except Unlike as unlike:
            kinds = np.unique(unlike.kinds)
            if len(kinds) == 1:
                return Reading(None, [], which)
            others = [which[unlike.kinds == kind] for kind in kinds if kind != ODD]
            return Reading(None, others, which[unlike.kinds == ODD])
        except (UnicodeDecodeError, pa.ArrowInvalid):  # no UTF-8
            return Reading(None, [], which)


@dataclass(slots=True)
class PureAlike:
    """Events with the same names and types; an ``Alike``."""

    which: Any
    kinds: dict[str, type]
    times: Any | None
    _publishers: Any  #: this and what follows are arrays of Arrow, but for the spans
    _numbers: Any
    _topics: Any
    _attributes: dict[str, Any]
    _content_types: Any
    _payloads: Spans

    def publishers(self) -> Any:
        """Texts."""
        return self._publishers

    def numbers(self) -> Any:
        """Those of the publishers."""
        return self._numbers

    def topics(self) -> Any:
        """Texts."""
        return self._topics

    def content_types(self) -> Any:
        """Texts."""
        return self._content_types

    def payloads(self) -> Any:
        """Bytes."""
        return self._payloads.array()

    def attribute(self, name: str) -> Any:
        """One of those that they have."""
        return self._attributes[name]

    def variants(self, encoder: VariantEncoder) -> tuple[Any, Any] | None:
        """Values and metadata; None if a text is too long for that, or an object."""
        return variants_of(len(self.which), self.kinds, self._attributes, encoder)


def _read(messages: Messages, which: Any) -> PureAlike:
    """All of them.

    :raises Unlike: if they have to be divided.
    :raises UnicodeDecodeError, ArrowInvalid: if a text is none.
    """
    cursors = Cursors(messages, which)
    cursors.skip(_RECORD)
    publishers = _texts(cursors)
    numbers = pa.array(cursors.integers())
    cursors.enter(cursors.binaries())
    cursors.skip(_EVENT)
    topics = _texts(cursors)
    kinds: dict[str, type] = {}
    attributes: dict[str, Any] = {}
    for _ in range(cursors.size()):
        name = _new_name(cursors, kinds)
        kind = cursors.peek()
        if kind not in _SCALARS:
            cursors.refuse()
        kinds[name], column = _SCALARS[kind]
        attributes[name] = column(cursors)
    for _ in range(cursors.size()):
        name = _new_name(cursors, kinds)
        kinds[name], attributes[name] = bytes, cursors.binaries().array()
    content_types = _texts(cursors)
    payloads = cursors.binaries()
    times = None
    if cursors.peek() == NIL:
        cursors.nils()
    else:
        times = cursors.integers()
    cursors.finish()
    return PureAlike(which, kinds, times, publishers, numbers, topics, attributes, content_types, payloads)


def _new_name(cursors: Cursors, names: dict[str, type]) -> str:
    """The next name, if it did not come before: then the last value counts, or the bytes do."""
    name = cursors.name()
    if name in names:
        cursors.refuse()
    return name


def _texts(cursors: Cursors) -> Any:
    return cursors.texts().array().cast(pa.string())


_SCALARS: Final[dict[int, tuple[type, Callable[[Cursors], Any]]]] = {
    BOOLEAN: (bool, lambda cursors: pa.array(cursors.booleans())),
    INTEGER: (int, lambda cursors: pa.array(cursors.integers())),
    FLOAT: (float, lambda cursors: pa.array(cursors.floats())),
    TEXT: (str, _texts),
}
