"""The JSON form of an event, one object on one line: what ``pub`` and ``match`` read and ``sub --json`` writes.

    topic              text, the only member that must be there
    attributes         names to true, false, 1 (an int), 1.0 (a float) or text
    attributes_base64  names to base64: the attributes of type bytes
    payload            the payload as text, or
    payload_base64     the payload in base64; not both; neither is an empty payload
    content_type       text
    publisher, n       text, a number from 1
    time               RFC 3339 text to the nanosecond: "2026-01-31T12:00:00.25Z", "…+01:00"

``null`` means absent, anywhere. Members that other output of Holdfast carries beside these (``tick``, ``tags`` …)
are passed over, so that what ``sub --json`` wrote can be published again; any other name is refused, for it is
likely a slip of the pen. A ``time`` that is a number is refused: some count seconds and some milliseconds, and
a guess would be wrong by decades. Every legal event has a JSON form that reads back as the same event.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, cast

from holdfast.errors import InvalidEvent
from holdfast.events.event import DEFAULT_LIMITS, Event, Limits, make_event
from holdfast.events.strict_json import (
    base64_text,
    bytes_from_base64,
    bytes_from_text,
    dump_json,
    object_member,
    read_object,
)
from holdfast.events.timestamp import time_from_text, time_to_text
from holdfast.events.value import Value, kind_of, shown

__all__ = ["event_from_json", "event_to_json"]

_MEMBERS: Final = (
    "topic",
    "attributes",
    "attributes_base64",
    "payload",
    "payload_base64",
    "content_type",
    "publisher",
    "n",
    "time",
)
#: What Spark rows (contracts §7) and traces (§5) say beside that is about the item, not about the event.
_OF_ROWS: Final = ("kind", "stream", "pubend", "incarnation", "after", "tick", "accepted", "tags", "reason")
_OF_TRACES: Final = ("subscription", "subscriber")
_KNOWN: Final = frozenset((*_MEMBERS, *_OF_ROWS, *_OF_TRACES))


def event_from_json(text: str | bytes, limits: Limits = DEFAULT_LIMITS) -> Event:
    """The event that one line of JSON Lines holds.

    :raises InvalidEvent: naming the member, or ``json`` and the character (from 1) where it is no JSON object.
    """
    members = read_object(text)
    for name in members:
        if name not in _KNOWN:
            raise InvalidEvent(shown(name), f"is not a member of an event{_hint(name)}")
    return make_event(
        _required_topic(members),
        cast("dict[str, Value | None]", _attributes(members)),  # make_event checks what they are
        _payload(members),
        _absent_as(members, "content_type", ""),
        publisher=_absent_as(members, "publisher", ""),
        n=_number(members),
        time=_time(members),
        limits=limits,
    )


def event_to_json(event: Event) -> str:
    """The event on one line, without the newline; empty and absent members are left out, but not the payload."""
    members: dict[str, object] = {"topic": event.topic}
    members["attributes"] = {k: v for k, v in event.attributes.items() if not isinstance(v, bytes)}
    binary = {k: base64_text(v) for k, v in event.attributes.items() if isinstance(v, bytes)}
    if binary:
        members["attributes_base64"] = binary
    try:
        members["payload"] = event.payload.decode()
    except UnicodeDecodeError:
        members["payload_base64"] = base64_text(event.payload)
    for name, value in (("content_type", event.content_type), ("publisher", event.publisher), ("n", event.n)):
        if value:
            members[name] = value
    if event.time is not None:
        members["time"] = time_to_text(event.time)
    return dump_json(members)


def _hint(name: str) -> str:
    close = get_close_matches(name.lower(), _MEMBERS, n=1, cutoff=0.7)  # 'price' is not far from 'topic'
    return f"; did you mean '{close[0]}'?" if close else "; its attributes stand in 'attributes'"


def _required_topic(members: Mapping[str, object]) -> str:
    if members.get("topic") is None:
        raise InvalidEvent("topic", "is missing")
    return _text_member(members, "topic")


def _absent_as(members: Mapping[str, object], name: str, default: str) -> str:
    return default if members.get(name) is None else _text_member(members, name)


def _text_member(members: Mapping[str, object], name: str) -> str:
    value = members[name]
    if not isinstance(value, str):
        raise InvalidEvent(name, f"must be text, not {kind_of(value)}")
    return value


def _attributes(members: Mapping[str, object]) -> dict[str, object]:
    attributes = object_member("attributes", members.get("attributes"))
    for name, value in object_member("attributes_base64", members.get("attributes_base64")).items():
        if value is None:
            continue
        place = f"attributes_base64.{shown(name)}"
        if attributes.get(name) is not None:
            raise InvalidEvent(place, "is also among the attributes")
        attributes[name] = bytes_from_base64(place, value)
    return attributes


def _payload(members: Mapping[str, object]) -> bytes:
    text, encoded = members.get("payload"), members.get("payload_base64")
    if text is None:
        return b"" if encoded is None else bytes_from_base64("payload_base64", encoded)
    if encoded is not None:
        raise InvalidEvent("payload_base64", "stands beside payload; give one of them")
    return bytes_from_text("payload", text)


def _number(members: Mapping[str, object]) -> int:
    n = members.get("n")
    if n is None:
        return 0
    if not isinstance(n, int) or isinstance(n, bool):
        raise InvalidEvent("n", f"must be an int, not {kind_of(n)}")
    if n == 0:
        raise InvalidEvent("n", "is 0; numbers count from 1")
    return n


def _time(members: Mapping[str, object]) -> int | None:
    text = members.get("time")
    return None if text is None else time_from_text("time", text)
