"""Events as bytes: what travels inside frames and lies in logs, opaque to whoever only passes it on.

A packed event is a MessagePack array of topic, attributes, content type, payload and time. The publisher and the
number travel beside it, since they are read at every hop. Attributes whose values are bytes stand in a map of their
own: text and bytes then never share a place, and the types of everything else are checked by the decoder itself, in
C.

Reading checks types and sizes, so that bytes from a stranger are safe to match; sizes of text are counted in
characters here, in bytes of UTF-8 where an event is made (``event.make_event``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from holdfast.errors import InvalidEvent, MalformedEvent
from holdfast.events.event import DEFAULT_LIMITS, Event, Limits, make_event
from holdfast.events.topic import canonical_topic, topic_levels
from holdfast.events.value import INT_MAX, INT_MIN, Value, value_bytes

__all__ = ["PackedEvent", "PackedReader", "pack", "unpack", "unpack_all"]

CONTENT_TYPE: Final = re.compile(r"([!-~]([ -~]*[!-~])?)?")
FLOAT_MAX: Final = 1.7976931348623157e308


class PackedEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event read from its bytes; it answers whatever a filter asks.

    A Struct, not a dataclass: thousands a second are made, by the decoder. ``gc=False``: none can be part of a cycle.
    """

    topic: str
    scalars: dict[str, bool | int | float | str]
    binary: dict[str, bytes]
    content_type: str
    payload: bytes
    time: int | None

    @property
    def attributes(self) -> dict[str, Any]:
        """All attributes; the common case, no bytes among them, costs nothing."""
        return {**self.scalars, **self.binary} if self.binary else self.scalars

    def event(self, publisher: str, n: int) -> Event:
        """The same as an ``Event``."""
        return Event(self.topic, self.attributes, self.payload, self.content_type, publisher, n, self.time)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(PackedEvent).decode


def pack(event: Event) -> bytes:
    """The bytes of an event that obeys the rules."""
    scalars: dict[str, Value] = {}
    binary: dict[str, bytes] = {}
    for name, value in event.attributes.items():
        if isinstance(value, bytes):
            binary[name] = value
        else:
            scalars[name] = value
    return _encode((event.topic, scalars, binary, event.content_type, event.payload, event.time))


def unpack(data: bytes) -> PackedEvent:
    """Read bytes that were checked where they entered the network.

    :raises MalformedEvent: if they are not those of an event after all.
    """
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent(str(error)) from error


def unpack_all(data: Iterable[bytes]) -> list[PackedEvent]:
    """The same of many.

    :raises MalformedEvent: if one of them is no event.
    """
    try:
        return list(map(_decode, data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent(str(error)) from error


class PackedReader:
    """Reads events from strangers, and refuses whatever breaks a rule or a limit."""

    #: Topics, names of attributes and content types seen to be good, so that each is looked at once; of each kind all
    #: are forgotten when there are this many. Left to the decoder these checks would cost half of its time: a name
    #: with a limit is made anew for every event, and a pattern is a call into ``re``.
    SEEN_MAX: Final = 10_000

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._topics: set[str] = set()
        self._names: set[str] = set()
        self._content_types: set[str] = set()
        # A number counts for 8 bytes and may be packed in 1, so from here on the attributes can be too large at all.
        self._large = limits.attributes_bytes - 8 * limits.attributes
        name = Annotated[str, Meta(min_length=1, max_length=limits.attribute_name_bytes)]
        text = Annotated[str, Meta(max_length=limits.value_bytes)]
        number = Annotated[int, Meta(ge=INT_MIN, le=INT_MAX)]
        real = Annotated[float, Meta(ge=-FLOAT_MAX, le=FLOAT_MAX)]
        scalars = Annotated[dict[str, bool | number | real | text], Meta(max_length=limits.attributes)]
        octets = Annotated[bytes, Meta(max_length=limits.value_bytes)]
        checked = msgspec.defstruct(
            "CheckedEvent",
            [
                ("topic", Annotated[str, Meta(min_length=1, max_length=limits.topic_bytes)]),
                ("scalars", scalars),
                ("binary", Annotated[dict[name, octets], Meta(max_length=limits.attributes)]),
                ("content_type", str),
                ("payload", Annotated[bytes, Meta(max_length=limits.payload_bytes)]),
                ("time", number | None),
            ],
            bases=(PackedEvent,),
            frozen=True,
            array_like=True,
            gc=False,
            forbid_unknown_fields=True,
        )
        self._decode: Callable[[bytes], PackedEvent] = msgspec.msgpack.Decoder(checked).decode  # type: ignore[assignment]

    def read(self, data: bytes) -> PackedEvent:
        """One event.

        :raises MalformedEvent: naming what is wrong with it.
        """
        try:
            packed = self._decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedEvent(self._problem(data) or str(error)) from error
        if packed.topic not in self._topics:
            self._check_topic(packed.topic)
        if not self._names.issuperset(packed.scalars):
            self._check_names(packed, data)
        if packed.content_type not in self._content_types:
            self._check_content_type(packed.content_type, data)
        if packed.binary:
            self._check_binary(packed)
        if len(data) > self._large:
            self._check_attributes_bytes(packed)
        return packed

    def read_all(self, data: Sequence[bytes]) -> list[PackedEvent] | None:
        """Events of the common kind, at once; None if one of them has to be looked at by itself (``read``)."""
        try:
            events = list(map(self._decode, data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        is_common = (
            self._topics.issuperset({event.topic for event in events})
            and self._content_types.issuperset({event.content_type for event in events})
            and self._names.issuperset(set[str]().union(*[event.scalars for event in events]))
            and not any(event.binary for event in events)
            and max(map(len, data)) <= self._large
        )
        return events if is_common else None

    def _problem(self, data: bytes) -> str | None:
        """What is wrong in the words of ``make_event``, which names the part and the limit; None if it cannot tell."""
        try:
            packed = unpack(data)
            attributes = packed.attributes
            make_event(packed.topic, attributes, packed.payload, packed.content_type, limits=self._limits)
        except InvalidEvent as error:
            return str(error)
        except MalformedEvent:
            pass
        return None

    def _check_binary(self, packed: PackedEvent) -> None:
        clash = packed.binary.keys() & packed.scalars.keys()
        if clash:
            raise MalformedEvent(f"two values for the attribute {min(clash)!r}")
        if len(packed.binary) + len(packed.scalars) > self._limits.attributes:
            raise MalformedEvent(f"more than {self._limits.attributes} attributes")

    def _check_attributes_bytes(self, packed: PackedEvent) -> None:
        size = sum(value_bytes(name) + value_bytes(value) for name, value in packed.attributes.items())
        if size > self._limits.attributes_bytes:
            raise MalformedEvent(f"attributes of {size} bytes, more than {self._limits.attributes_bytes}")

    def _check_topic(self, topic: str) -> None:
        if canonical_topic(topic) != topic:
            raise MalformedEvent("the topic is not in its canonical form")
        for forbidden in "+#\0":
            if forbidden in topic:
                raise MalformedEvent(f"the topic contains {forbidden!r}")
        if len(topic_levels(topic)) > self._limits.topic_levels:
            raise MalformedEvent(f"the topic has more than {self._limits.topic_levels} levels")
        self._remember(self._topics, topic)

    def _check_names(self, packed: PackedEvent, data: bytes) -> None:
        for name in packed.scalars:
            if not 1 <= value_bytes(name) <= self._limits.attribute_name_bytes:
                raise MalformedEvent(self._problem(data) or f"the attribute {name[:64]!r} has no proper name")
            self._remember(self._names, name)

    def _check_content_type(self, content_type: str, data: bytes) -> None:
        if not CONTENT_TYPE.fullmatch(content_type) or len(content_type) > self._limits.content_type_bytes:
            raise MalformedEvent(self._problem(data) or "the content type is no media type")
        self._remember(self._content_types, content_type)

    def _remember(self, seen: set[str], text: str) -> None:
        if len(seen) >= self.SEEN_MAX:
            seen.clear()
        seen.add(text)
