"""Rows of a stream as Arrow record batches: events, gaps and silences of one pubend, in the order of their ticks.

Every row covers (after, tick]. Those of a range follow each other without overlap: an event's row covers the silence
before it as well, a gap's just what is lost. So only silence before a gap, and behind the last event, needs rows of its
own, for whoever wants them.

Rows are made by columns, and only those that are wanted. A batch has events or what is none, not both: nothing has to
be asked of each row.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.messages.ticks import Tick
from holdfast.pipeline.columns import KINDS, Shape, arrow_schema, arrow_type
from holdfast.pipeline.event_columns import EventColumns
from holdfast.pipeline.variant import VariantEncoder

__all__ = ["EVENT", "GAP", "SILENCE", "RowBuilder", "typed_value"]

EVENT: Final = "event"
GAP: Final = "gap"
SILENCE: Final = "silence"


def typed_value(value: object, spark: str) -> object:
    """A value as it stands in ``a``: one of another type is NULL there, and a bool is no int."""
    return value if type(value) is KINDS[spark] else None


class _Other(NamedTuple):
    """A row that is no event."""

    kind: str
    after: Tick
    tick: Tick
    reason: str | None


class RowBuilder:
    """Gathers rows of one pubend, and makes batches of them."""

    def __init__(self, shape: Shape, stream: str, pubend: str, incarnation: int) -> None:
        self._shape = shape
        self.schema = arrow_schema(shape)
        self._encoder = VariantEncoder()
        self._constant = {
            "stream": pa.scalar(stream, pa.string()),
            "pubend": pa.scalar(pubend, pa.string()),
            "incarnation": pa.scalar(incarnation, pa.int32()),
        }
        self._made: list[Any] = []
        self._others: list[_Other] = []

    def add_events(self, after: Tick, events: EventColumns) -> None:
        """Events, each with the silence before it: up to ``after`` everything is told. They become a batch."""
        self._flush_others()
        arrays = [self._event_column(name, after, events) for name in self._shape.columns]
        self._made.append(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    def add_other(self, kind: str, after: Tick, upto: Tick, reason: str | None = None) -> None:
        """A gap, or a silence."""
        self._others.append(_Other(kind, after, upto, reason))

    def batches(self) -> list[Any]:
        """What was gathered, as record batches, in order; then nothing is."""
        self._flush_others()
        made, self._made = self._made, []
        return made

    def _event_column(self, name: str, after: Tick, events: EventColumns) -> Any:
        kind, count = arrow_type(name, self._shape), len(events)
        if name in self._constant:
            return pa.repeat(self._constant[name], count)
        match name:
            case "kind":
                return pa.repeat(pa.scalar(EVENT, kind), count)
            case "after":
                return pa.array(np.concatenate([[after], events.ticks[:-1]]))
            case "tick" | "accepted":
                return pa.array(events.ticks).cast(kind)
            case "attributes":
                return pa.StructArray.from_arrays(list(events.variants(self._encoder)), fields=list(kind))
            case "a":
                children = [events.declared(n, KINDS[k]) for n, k in self._shape.attributes.items()]
                return pa.StructArray.from_arrays(children, fields=list(kind))
            case "tags":
                return _no_tags(kind, count)
            case "reason":
                return pa.nulls(count, kind)
        return events.plain(name)

    def _flush_others(self) -> None:
        if self._others:
            arrays = [self._other_column(name) for name in self._shape.columns]
            self._made.append(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
            self._others = []

    def _other_column(self, name: str) -> Any:
        kind, count = arrow_type(name, self._shape), len(self._others)
        if name in self._constant:
            return pa.repeat(self._constant[name], count)
        if name in _Other._fields:
            return pa.array([getattr(other, name) for other in self._others], kind)
        if name == "attributes":  # NULL as a whole: its parts never are
            parts = [pa.repeat(pa.scalar(b"", pa.binary()), count)] * 2
            return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pa.array([True] * count))
        return _no_tags(kind, count) if name == "tags" else pa.nulls(count, kind)


def _no_tags(kind: Any, count: int) -> Any:
    """Tags are of reliable streams: a log holds none."""
    offsets = pa.repeat(pa.scalar(0, pa.int32()), count + 1)
    return pa.ListArray.from_arrays(offsets, pa.nulls(0, pa.string()), type=kind)
