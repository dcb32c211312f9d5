"""Events: what is published, matched and delivered, and the rules and limits they obey.

An ``Event`` is plain data and checks nothing: brokers build thousands a second from bytes that were checked where
they entered. They enter through ``make_event``, which refuses by name whatever breaks a rule or a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from holdfast.errors import InvalidEvent
from holdfast.events.topic import canonical_topic, topic_levels
from holdfast.events.value import (
    INT_MAX,
    INT_MIN,
    Value,
    exact_value,
    kind_of,
    lone_surrogate,
    shown,
    value_bytes,
    value_problem,
)
from holdfast.identity import EventId

__all__ = ["DEFAULT_LIMITS", "Content", "Event", "Limits", "make_event"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The named maxima of an event; text is measured in UTF-8. A refusal names the field here that was hit."""

    topic_bytes: int = 1024  #: MQTT allows 65 535 and Solace 250; levels are compared one by one
    topic_levels: int = 64  #: half of Solace's 128
    attributes: int = 256  #: Google Pub/Sub allows 100
    attribute_name_bytes: int = 256  #: as Google Pub/Sub and Amazon SQS
    value_bytes: int = 65_536  #: of text or bytes; MQTT's longest string, 65 535, and one
    attributes_bytes: int = 1_048_576  #: names and values together, 8 for a bool or number; as the payload
    payload_bytes: int = 1_048_576  #: as NATS and Kafka out of the box
    content_type_bytes: int = 256  #: RFC 6838 allows 127 + 1 + 127 before any parameter
    publisher_bytes: int = 256  #: as an attribute's name


DEFAULT_LIMITS: Final = Limits()


class Content(Protocol):
    """What a filter may ask about: an ``Event``, or one read from its bytes (``packed.PackedEvent``)."""

    @property
    def topic(self) -> str:
        """In its canonical form."""

    @property
    def attributes(self) -> Mapping[str, Value]:
        """Names to values."""

    @property
    def payload(self) -> bytes:
        """Opaque, unless the content type says that it is XML."""

    @property
    def content_type(self) -> str:
        """Empty: none."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One publication. A Struct, not a dataclass: a client makes one for each it gets, and that costs a seventh.

    Invariant: every field obeys the rules of ``make_event``; whoever calls the constructor answers for that.
    """

    topic: str  #: in its canonical form, see ``canonical_topic``
    attributes: Mapping[str, Value] = msgspec.field(default_factory=dict)
    payload: bytes = b""
    content_type: str = ""  #: empty: none
    publisher: str = ""  #: empty: not known yet
    n: int = 0  #: the catenation number, from 1; 0: not numbered yet
    time: int | None = None  #: of publication, nanoseconds since 1970-01-01T00:00Z

    @property
    def id(self) -> EventId | None:
        """The identity, once the event has both a publisher and a number."""
        return EventId(self.publisher, self.n) if self.n and self.publisher else None


def make_event(
    topic: str,
    attributes: Mapping[str, Value | None] | None = None,
    payload: bytes = b"",
    content_type: str = "",
    *,
    publisher: str = "",
    n: int = 0,
    time: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Event:
    """An event that obeys the rules and is within the limits; an attribute whose value is None is left out.

    A publisher without a number, or a number without a publisher, is an event on its way to an id: the client
    fills in the other.

    :raises InvalidEvent: naming the field (``topic``, ``attributes.price`` …) and the limit, if one was hit.
    """
    return Event(
        _checked_topic(topic, limits),
        _checked_attributes(attributes, limits) if attributes is not None else {},
        _checked_payload(payload, limits),
        _checked_content_type(content_type, limits),
        _checked_text("publisher", publisher, limits.publisher_bytes, "publisher_bytes"),
        _checked_number(n),
        _checked_time(time),
    )


def _text(name: str, thing: object) -> str:
    if not isinstance(thing, str):
        raise InvalidEvent(name, f"must be text, not {kind_of(thing)}")
    at = lone_surrogate(thing)
    if at is not None:
        raise InvalidEvent(name, f"contains a lone surrogate at character {at + 1}")
    return str.__str__(thing)


def _check_size(name: str, size: int, most: int, limit: str) -> None:
    if size > most:
        raise InvalidEvent(name, f"has {size} bytes, more than {most}", limit=limit)


def _checked_text(name: str, thing: object, most: int, limit: str) -> str:
    text = _text(name, thing)
    _check_size(name, value_bytes(text), most, limit)
    return text


def _checked_topic(topic: object, limits: Limits) -> str:
    given = _text("topic", topic)
    if not given:
        raise InvalidEvent("topic", "is empty")
    for forbidden, called in (("+", "the wildcard '+'"), ("#", "the wildcard '#'"), ("\0", "NUL")):
        if forbidden in given:
            raise InvalidEvent("topic", f"contains {called} at character {given.index(forbidden) + 1}")
    canonical = canonical_topic(given)
    _check_size("topic", value_bytes(canonical), limits.topic_bytes, "topic_bytes")
    levels = len(topic_levels(canonical))
    if levels > limits.topic_levels:
        raise InvalidEvent(
            "topic", f"has {levels} levels, more than {limits.topic_levels}", limit="topic_levels"
        )
    return canonical


def _checked_attributes(attributes: object, limits: Limits) -> dict[str, Value]:
    if not isinstance(attributes, Mapping):
        raise InvalidEvent("attributes", f"must map names to values, not be {kind_of(attributes)}")
    checked: dict[str, Value] = {}
    total = 0
    for name, value in attributes.items():
        if value is None:
            continue
        exact_name = _checked_name(name, limits)
        problem = value_problem(value)
        if problem is not None:
            raise InvalidEvent(f"attributes.{shown(exact_name)}", problem)
        size = value_bytes(value)
        if size > limits.value_bytes and isinstance(value, str | bytes):
            _check_size(f"attributes.{shown(exact_name)}", size, limits.value_bytes, "value_bytes")
        total += value_bytes(exact_name) + size
        checked[exact_name] = exact_value(value)
    if len(checked) > limits.attributes:
        raise InvalidEvent(
            "attributes", f"are {len(checked)}, more than {limits.attributes}", limit="attributes"
        )
    _check_size("attributes", total, limits.attributes_bytes, "attributes_bytes")
    return checked


def _checked_name(name: object, limits: Limits) -> str:
    if not isinstance(name, str):
        raise InvalidEvent("attributes", f"a name must be text, not {kind_of(name)}")
    if not name:
        raise InvalidEvent("attributes", "a name is empty")
    if len(name) <= limits.attribute_name_bytes and name.isascii():
        return str.__str__(name)  # nothing to measure, and no text to build for an error
    most = limits.attribute_name_bytes
    return _checked_text(f"attributes.{shown(name)}", name, most, "attribute_name_bytes")


def _checked_payload(payload: object, limits: Limits) -> bytes:
    if not isinstance(payload, bytes):
        raise InvalidEvent("payload", f"must be bytes, not {kind_of(payload)}")
    _check_size("payload", len(payload), limits.payload_bytes, "payload_bytes")
    return bytes(payload)


def _checked_content_type(content_type: object, limits: Limits) -> str:
    """Printable ASCII, as a header of HTTP carries it; whether it is a registered media type is not our affair."""
    text = _checked_text("content_type", content_type, limits.content_type_bytes, "content_type_bytes")
    if not (text.isascii() and text.isprintable()):
        raise InvalidEvent("content_type", "must be printable ASCII")
    if text != text.strip():
        raise InvalidEvent("content_type", "must not begin or end with a space")
    return text


def _checked_number(n: object) -> int:
    if not isinstance(n, int) or isinstance(n, bool):
        raise InvalidEvent("n", f"must be an int, not {kind_of(n)}")
    if n < 0:
        raise InvalidEvent("n", "is negative; numbers count from 1")
    if n > INT_MAX:
        raise InvalidEvent("n", "is outside the 64-bit range")
    return int.__int__(n)


def _checked_time(time: object) -> int | None:
    """Nanoseconds in 64 bits: the years 1677 to 2262."""
    if time is None:
        return None
    if not isinstance(time, int) or isinstance(time, bool):
        raise InvalidEvent("time", f"must be an int of nanoseconds, not {kind_of(time)}")
    if not INT_MIN <= time <= INT_MAX:
        raise InvalidEvent("time", "is outside the 64-bit range of nanoseconds (years 1677 to 2262)")
    return int.__int__(time)
