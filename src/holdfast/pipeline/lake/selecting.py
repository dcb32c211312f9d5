"""Which rows of a row group are wanted: by their ticks, by the filter, and by what is to become of gaps.

Events are judged as a log reader judges them (``pages``): by the network's own language. A filter that is a topic and
nothing else is asked once for each topic there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from holdfast.events.value import Value
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.pipeline.columns import shape_of
from holdfast.pipeline.lake.parquet import ParquetRows
from holdfast.pipeline.lake.pruning import Pruner
from holdfast.pipeline.variant_reading import VariantReader

__all__ = ["Chosen"]

_TOPIC: Final = shape_of(("topic",))
_ALL: Final = shape_of(("topic", "content_type", "attributes"))
_DOCUMENT: Final = shape_of(("topic", "content_type", "attributes", "payload"))


class _Row:
    """An event as a filter sees it."""

    __slots__ = ("attributes", "content_type", "payload", "topic")

    def __init__(
        self, topic: str, attributes: Mapping[str, Value], content_type: str, payload: bytes
    ) -> None:
        self.topic = topic
        self.attributes = attributes
        self.content_type = content_type
        self.payload = payload


class Chosen:
    """What a filter chooses; None chooses every event."""

    def __init__(self, text: str | None) -> None:
        """Read the filter.

        :raises FilterError: if it is none.
        """
        self._filter: Filter | None = None
        self._matches: Callable[[Any], bool] = _always
        if text is not None and text.strip() != "#":
            self._filter = parse_filter(text)
            self._matches = compile_filter(self._filter)
            self._has_document = "XPATH" in text.upper()
        self._pruner = None if self._filter is None else Pruner(self._filter)
        self._variants = VariantReader()

    @property
    def is_all(self) -> bool:
        """Whether every event is chosen."""
        return self._filter is None

    def may_match(self, zones: Any) -> bool:
        """Whether something of these zones may be chosen."""
        return self._pruner is None or self._pruner.may_match(zones)

    def of(self, rows: ParquetRows, group: int) -> Sequence[bool]:
        """Of every row of a row group whether it is chosen, if it is an event."""
        assert self._filter is not None
        if self._filter.condition is None:
            topics = rows.read(group, _TOPIC)["topic"].dictionary_encode()
            words = topics.dictionary.to_pylist()
            answers = [self._matches(Subject(_Row(word, {}, "", b""))) for word in words]
            return [i is not None and answers[i] for i in topics.indices.to_pylist()]
        columns = rows.read(group, _DOCUMENT if self._has_document else _ALL)
        attributes = columns["attributes"]
        parts = [
            columns["topic"],
            columns["content_type"],
            attributes.field("value"),
            attributes.field("metadata"),
        ]
        lists = [each.to_pylist() for each in parts]
        payloads = columns["payload"].to_pylist() if self._has_document else [b""] * len(lists[0])
        return [
            topic is not None and self._event(topic, kind, value, metadata, payload)
            for topic, kind, value, metadata, payload in zip(*lists, payloads, strict=True)
        ]

    def _event(self, topic: str, kind: str | None, value: bytes, metadata: bytes, payload: bytes) -> bool:
        attributes = self._variants.attributes(value, metadata)
        return self._matches(Subject(_Row(topic, attributes, kind or "", payload)))


def _always(subject: object) -> bool:
    return True
