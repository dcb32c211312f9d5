"""Rows as events: what a task makes of the record batches it is given, before it stages them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.errors import InvalidEvent
from holdfast.events.event import Limits, make_event
from holdfast.events.packed import pack
from holdfast.events.value import Value
from holdfast.pipeline.errors import BadRow
from holdfast.pipeline.sink_options import SinkOptions
from holdfast.pipeline.variant_reading import attributes_in

__all__ = ["Rows"]


@dataclass(frozen=True, slots=True)
class Rows:
    """How rows become events; ``limits`` are the network's."""

    options: SinkOptions
    limits: Limits

    def packed(self, batch: Any, time: int) -> list[bytes]:
        """The events of a record batch, published at this time.

        :raises BadRow: if one of them cannot be an event; it is shown.
        """
        return [self._packed(*row, time) for row in self._rows(batch)]

    def _rows(self, batch: Any) -> Iterator[tuple[Any, Any, Any]]:
        count, options = batch.num_rows, self.options

        def column(name: str | None, constant: Any = None) -> Any:
            return [constant] * count if name is None else batch.column(name).to_pylist()

        topics = column(options.topic_column, options.topic)
        return zip(topics, column(options.attributes_column), column(options.payload_column), strict=True)

    def _packed(self, topic: Any, attributes: Any, payload: Any, time: int) -> bytes:
        if topic is None:
            raise BadRow(f"a row whose {self.options.topic_column} is NULL has no topic")
        data = payload.encode() if isinstance(payload, str) else payload or b""
        try:
            return pack(make_event(topic, _attributes(attributes), data, time=time, limits=self.limits))
        except InvalidEvent as error:
            raise BadRow(f"a row with the topic {topic[:200]!r}: {error}") from error


def _attributes(given: Any) -> Mapping[str, Value | None] | None:
    """Of a STRUCT, a MAP, which comes as pairs, or a VARIANT, which comes as its two byte strings."""
    if given is None:
        return None
    if isinstance(given, list):
        return dict(given)
    if given.keys() == {"value", "metadata"} and isinstance(given["metadata"], bytes):
        return attributes_in(given["value"], given["metadata"])
    found: Mapping[str, Value | None] = given
    return found
