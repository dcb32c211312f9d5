"""Columns of events, out of their records: kind by kind where events are alike, one by one where they are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.events.packed import unpack_all
from holdfast.messages.ticks import Tick
from holdfast.pipeline import dividing
from holdfast.pipeline.alike import ARROW, Alike, Engine
from holdfast.pipeline.columns import REST
from holdfast.pipeline.exact import rest_of, rests_of
from holdfast.pipeline.variant import VariantEncoder
from holdfast.pipeline.variant_columns import matrix_rows
from holdfast.storage.records import Records
from holdfast.streams.records import read_records

__all__ = ["EventColumns"]

_TIME: Final = pa.timestamp("us", tz="UTC")


class _Part(Protocol):
    """Some of the events."""

    which: Any  #: where they stand among all

    def plain(self, name: str) -> Any:
        """A column of this name."""

    def variants(self, encoder: VariantEncoder) -> tuple[Any, Any]:
        """Values and metadata of their attributes."""

    def declared(self, name: str, kind: type) -> Any:
        """One attribute; a value of another type is NULL, and a bool is no int."""


class EventColumns:
    """Events of a log under their ticks, by columns."""

    def __init__(self, ticks: Any, pieces: Sequence[Records]) -> None:
        """Read them; ``ticks`` are of numpy.

        :raises DecodeError: of msgspec, if one is no record.
        :raises MalformedEvent: if one is no event.
        """
        self.ticks = ticks
        records = dividing.new_engine(pieces)
        alike, left = dividing.divided(records)
        self._parts: list[_Part] = [_AlikePart(each, self.ticks[each.which], records) for each in alike]
        if left:
            self._parts.append(_MixedPart(left, self.ticks[left].tolist(), records))

    def __len__(self) -> int:
        return len(self.ticks)

    def plain(self, name: str) -> Any:
        """The column of this name, one of those that every event has a value for, or NULL."""
        return self._in_order([part.plain(name) for part in self._parts])

    def variants(self, encoder: VariantEncoder) -> tuple[Any, Any]:
        """Of the attributes of each event the value and the metadata."""
        values, metadata = zip(*(part.variants(encoder) for part in self._parts), strict=True)
        return self._in_order(values), self._in_order(metadata)

    def declared(self, name: str, kind: type) -> Any:
        """One attribute; a value of another type is NULL, and a bool is no int."""
        return self._in_order([part.declared(name, kind) for part in self._parts])

    def _in_order(self, arrays: Sequence[Any]) -> Any:
        """What was made of each part, as the events stand."""
        return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays).take(self._places)

    @cached_property
    def _places(self) -> Any:
        return pa.array(np.argsort(np.concatenate([part.which for part in self._parts])))


class _AlikePart:
    """Events of one kind."""

    def __init__(self, alike: Alike, ticks: Any, records: Engine) -> None:
        self.which = alike.which
        self._alike = alike
        self._ticks = ticks
        self._records = records

    def plain(self, name: str) -> Any:
        match name:
            case "publisher":
                return self._alike.publishers()
            case "n":
                return self._alike.numbers()
            case "topic":
                return self._alike.topics()
            case "time":
                return self._times()
            case "content_type":
                return self._content_types()
            case "payload":
                return self._alike.payloads()
        assert name == REST
        return self._rests()

    def _times(self) -> Any:
        times = self._alike.times
        return pa.nulls(len(self.which), _TIME) if times is None else pa.array(times // 1_000).cast(_TIME)

    def _content_types(self) -> Any:
        found = self._alike.content_types()
        is_empty = pc.equal(pc.binary_length(found), 0)
        return pc.if_else(is_empty, None, found) if pc.any(is_empty).as_py() else found

    def _rests(self) -> Any:
        records = list(map(self._records.record, self.which.tolist()))
        return matrix_rows(rests_of(self._ticks, records, self._alike.times))

    def variants(self, encoder: VariantEncoder) -> tuple[Any, Any]:
        found = self._alike.variants(encoder)
        if found is None:
            found = _MixedPart(self.which, self._ticks.tolist(), self._records).variants(encoder)
        return found

    def declared(self, name: str, kind: type) -> Any:
        if self._alike.kinds.get(name) is kind:
            return self._alike.attribute(name)
        return pa.nulls(len(self.which), ARROW[kind])


class _MixedPart:
    """Events of many kinds, or packed in somebody's own way: each is read by itself."""

    def __init__(self, which: Any, ticks: Sequence[Tick], records: Engine) -> None:
        """Read them.

        :raises DecodeError, MalformedEvent: as ``EventColumns``.
        """
        self.which = which
        publications = read_records([records.record(i) for i in which])
        self._events = events = unpack_all([publication.event for publication in publications])
        self._columns: dict[str, tuple[Any, Callable[[], Sequence[object]]]] = {
            "publisher": (pa.string(), lambda: [publication.publisher for publication in publications]),
            "n": (pa.int64(), lambda: [publication.n for publication in publications]),
            "topic": (pa.string(), lambda: [event.topic for event in events]),
            "time": (_TIME, lambda: [e.time if e.time is None else e.time // 1_000 for e in events]),
            "content_type": (pa.string(), lambda: [event.content_type or None for event in events]),
            "payload": (pa.binary(), lambda: [event.payload for event in events]),
            REST: (pa.binary(), lambda: list(map(rest_of, ticks, publications, events))),
        }

    def plain(self, name: str) -> Any:
        kind, values = self._columns[name]
        return pa.array(values(), kind)

    def variants(self, encoder: VariantEncoder) -> tuple[Any, Any]:
        found = [encoder.encode(event.attributes) for event in self._events]
        values, metadata = [each.value for each in found], [each.metadata for each in found]
        return pa.array(values, pa.binary()), pa.array(metadata, pa.binary())

    def declared(self, name: str, kind: type) -> Any:
        found = [event.attributes.get(name) for event in self._events]
        return pa.array([value if type(value) is kind else None for value in found], ARROW[kind])
