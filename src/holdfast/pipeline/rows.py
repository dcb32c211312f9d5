"""Rows of a stream as Arrow record batches: events, gaps and silences of one pubend, in the order of their ticks.

Every row covers (after, tick]. Those of a range follow each other without overlap: an event's row covers the silence
before it as well, a gap's just what is lost. So only silence before a gap, and behind the last event, needs rows of its
own, for whoever wants them.

Rows are gathered in columns, and only the columns that are wanted are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from holdfast.events.packed import PackedEvent
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Tick
from holdfast.pipeline.columns import KINDS, REST, Shape, arrow_schema, arrow_type
from holdfast.pipeline.exact import rest_of
from holdfast.pipeline.variant import VariantEncoder

__all__ = ["EVENT", "GAP", "SILENCE", "RowBuilder", "typed_value"]

EVENT: Final = "event"
GAP: Final = "gap"
SILENCE: Final = "silence"

#: Reckoned for a row besides what its event holds.
ROW_BYTES: Final = 100


def typed_value(value: object, spark: str) -> object:
    """A value as it stands in ``a``: one of another type is NULL there, and a bool is no int."""
    return value if type(value) is KINDS[spark] else None


class RowBuilder:
    """Gathers rows of one pubend, and makes batches of them."""

    def __init__(self, shape: Shape, stream: str, pubend: str, incarnation: int) -> None:
        self._shape = shape
        self.schema = arrow_schema(shape)
        self._variants = VariantEncoder()
        self._constant = {
            "stream": pa.scalar(stream, pa.string()),
            "pubend": pa.scalar(pubend, pa.string()),
            "incarnation": pa.scalar(incarnation, pa.int32()),
        }
        self._column: dict[str, Callable[[], Any]] = {
            "kind": lambda: self._others or [EVENT] * len(self),
            "after": lambda: self._after,
            "tick": lambda: self._ticks,
            "accepted": lambda: [None if e is None else t for e, t in self._with_ticks()],
            "topic": lambda: [None if e is None else e.topic for e in self._events],
            "publisher": lambda: [None if p is None else p.publisher for p in self._publications],
            "n": lambda: [None if p is None else p.n for p in self._publications],
            "time": lambda: [None if e is None or e.time is None else e.time // 1_000 for e in self._events],
            "content_type": lambda: [None if e is None else e.content_type or None for e in self._events],
            "payload": lambda: [None if e is None else e.payload for e in self._events],
            "tags": lambda: [[]] * len(self),  # those of reliable streams: a log holds none
            "reason": lambda: self._reasons or [None] * len(self),
            REST: self._rests,
        }
        self._begin()

    def _begin(self) -> None:
        self._after: list[Tick] = []
        self._ticks: list[Tick] = []
        self._publications: list[Publication | None] = []
        self._events: list[PackedEvent | None] = []
        self._others: list[str] = []  #: kinds of all rows; empty while all are events
        self._reasons: list[str | None] = []
        self.bytes = 0  #: about so many are gathered

    def __len__(self) -> int:
        return len(self._ticks)

    def add_event(self, after: Tick, tick: Tick, publication: Publication, event: PackedEvent) -> None:
        """An event, and the silence before it."""
        if self._others:
            self._others.append(EVENT)
            self._reasons.append(None)
        self._after.append(after)
        self._ticks.append(tick)
        self._publications.append(publication)
        self._events.append(event)
        self.bytes += len(publication.event) + ROW_BYTES

    def add_other(self, kind: str, after: Tick, upto: Tick, reason: str | None = None) -> None:
        """A gap, or a silence."""
        if not self._others:
            self._others = [EVENT] * len(self)
            self._reasons = [None] * len(self)
        self._others.append(kind)
        self._reasons.append(reason)
        self._after.append(after)
        self._ticks.append(upto)
        self._publications.append(None)
        self._events.append(None)
        self.bytes += ROW_BYTES

    def batch(self) -> Any:
        """What was gathered, as a record batch; then nothing is."""
        arrays = [self._array(name) for name in self._shape.columns]
        self._begin()
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _array(self, name: str) -> Any:
        if name in self._constant:
            return pa.repeat(self._constant[name], len(self))
        if name == "attributes":
            return self._attributes()
        if name == "a":
            return self._declared()
        return pa.array(self._column[name](), arrow_type(name, self._shape))

    def _with_ticks(self) -> Any:
        return zip(self._events, self._ticks, strict=True)

    def _rests(self) -> list[bytes | None]:
        rows = zip(self._ticks, self._publications, self._events, strict=True)
        return [None if p is None or e is None else rest_of(tick, p, e) for tick, p, e in rows]

    def _attributes(self) -> Any:
        encode = self._variants.encode
        found = [(b"", b"") if e is None else encode(e.attributes) for e in self._events]
        values, metadata = [each[0] for each in found], [each[1] for each in found]
        kind = arrow_type("attributes", self._shape)
        children = [pa.array(values, pa.binary()), pa.array(metadata, pa.binary())]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=self._no_event())

    def _declared(self) -> Any:
        kind = arrow_type("a", self._shape)
        children = [
            pa.array(self._values(name, KINDS[spark]), field.type)
            for (name, spark), field in zip(self._shape.attributes.items(), kind, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=self._no_event())

    def _values(self, name: str, kind: type) -> Sequence[object]:
        """Of one attribute; a value of another type is NULL, and a bool is no int."""
        if kind is bytes:
            return [None if e is None else e.binary.get(name) for e in self._events]
        found = [None if e is None else e.scalars.get(name) for e in self._events]
        return [value if type(value) is kind else None for value in found]

    def _no_event(self) -> Any:
        return pa.array([event is None for event in self._events], pa.bool_()) if self._others else None
