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

Here too is what the CloudEvents form shares: reading one JSON object strictly, and times as text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from typing import Final, cast

from holdfast.errors import InvalidEvent
from holdfast.events.event import DEFAULT_LIMITS, Event, Limits, make_event
from holdfast.events.value import INT_MAX, Value, kind_of, lone_surrogate, shown

__all__ = [
    "bytes_from_base64",
    "bytes_from_text",
    "decode_utf8",
    "dump_json",
    "event_from_json",
    "event_to_json",
    "object_member",
    "read_object",
    "time_from_text",
    "time_to_text",
]

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
    binary = {k: _base64(v) for k, v in event.attributes.items() if isinstance(v, bytes)}
    if binary:
        members["attributes_base64"] = binary
    try:
        members["payload"] = event.payload.decode()
    except UnicodeDecodeError:
        members["payload_base64"] = _base64(event.payload)
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


# --- what the CloudEvents form shares ---------------------------------------------------------------------------


class _Repeating(dict[str, object]):
    """An object in which a key stands twice; which place that is, is known only to who asked for the object."""

    key: str


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) == len(pairs):
        return unique
    repeating = _Repeating(unique)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            repeating.key = key
            break
        seen.add(key)
    return repeating


def _integer(digits: str) -> int:
    # Python refuses to convert more than 4300 digits; beyond 20 the value is outside 64 bits whatever it is.
    return int(digits) if len(digits) <= 20 else INT_MAX + 1


def _no_constant(token: str) -> object:
    raise InvalidEvent("json", f"{token} is not JSON; a number must be finite")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_constant=_no_constant)


def read_object(text: str | bytes, field: str = "json") -> dict[str, object]:
    """One JSON object: UTF-8, no key twice at its top, no NaN, whatever the nesting.

    Integers beyond 64 bits come back as some integer beyond 64 bits.

    :raises InvalidEvent: naming ``field``, or the key that stands twice.
    """
    try:
        # RFC 8259 §8.1 lets a reader ignore a byte order mark, and editors on Windows write one.
        value = _DECODER.decode(decode_utf8(field, text).removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        problem = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
        raise InvalidEvent(field, f"is not JSON: {problem}, character {error.pos + 1}") from None
    except RecursionError:
        raise InvalidEvent(field, "is nested too deeply") from None
    if not isinstance(value, dict):
        raise InvalidEvent(field, f"must be an object, not {kind_of(value)}")
    if isinstance(value, _Repeating):
        raise InvalidEvent(shown(value.key), "appears twice")
    return value


def object_member(field: str, value: object) -> dict[str, object]:
    """An object inside one that was read by ``read_object``, with no key twice; absent is empty."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidEvent(field, f"must be an object, not {kind_of(value)}")
    if isinstance(value, _Repeating):
        raise InvalidEvent(f"{field}.{shown(value.key)}", "appears twice")
    return value


def decode_utf8(field: str, text: str | bytes) -> str:
    """The text of bytes that must be UTF-8; text as it is."""
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8: byte {error.start + 1} is {text[error.start]:#04x}"
        raise InvalidEvent(field, problem) from None


#: What some reader takes for the end of a line, or a terminal for a command, and json.dumps leaves as it is.
_CONTROL: Final = re.compile("[\x7f-\x9f\u2028\u2029]")


def dump_json(value: object) -> str:
    """Compact JSON on one line, whatever a reader thinks ends a line."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def bytes_from_text(field: str, text: object) -> bytes:
    """The UTF-8 of a JSON string."""
    if not isinstance(text, str):
        raise InvalidEvent(field, f"must be text, not {kind_of(text)}")
    at = lone_surrogate(text)
    if at is not None:
        raise InvalidEvent(field, f"contains a lone surrogate at character {at + 1}")
    return text.encode()


def bytes_from_base64(field: str, text: object) -> bytes:
    """The bytes of a JSON string in base64 (RFC 4648 §4, with its padding)."""
    if not isinstance(text, str):
        raise InvalidEvent(field, f"must be base64 text, not {kind_of(text)}")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error is one
        raise InvalidEvent(field, "is not base64") from None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_RFC_3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1)
_SECOND: Final = 10**9


def time_from_text(field: str, text: object) -> int:
    """Nanoseconds since the epoch, from RFC 3339 with ``Z`` or an offset and at most nine decimals.

    A leap second (``23:59:60``) is refused: it has no number of its own.
    """
    if not isinstance(text, str):
        raise InvalidEvent(
            field, f'must be RFC 3339 text such as "2026-01-31T12:00:00Z", not {kind_of(text)}'
        )
    found = _RFC_3339.fullmatch(text)
    try:
        if not found:
            raise ValueError
        day = date.fromisoformat(found[1]).toordinal() - _EPOCH.toordinal()
        hour, minute, second = int(found[2]), int(found[3]), int(found[4])
        offset_hours, offset_minutes = int(found[7] or 0), int(found[8] or 0)
        if max(hour, offset_hours) > 23 or max(minute, second, offset_minutes) > 59:
            raise ValueError
    except ValueError:
        example = '"2026-01-31T12:00:00.25Z"'
        raise InvalidEvent(field, f"'{shown(text)}' is not an RFC 3339 time such as {example}") from None
    offset = (offset_hours * 60 + offset_minutes) * (-60 if found[6] == "-" else 60)
    seconds = day * 86_400 + hour * 3600 + minute * 60 + second - offset
    return seconds * _SECOND + int((found[5] or "").ljust(9, "0"))


def time_to_text(time: int) -> str:
    """RFC 3339 in UTC, with no decimals or as many groups of three as it takes."""
    seconds, nanoseconds = divmod(time, _SECOND)
    text = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    decimals = f"{nanoseconds:09d}"
    while decimals.endswith("000"):
        decimals = decimals[:-3]
    return f"{text}.{decimals}Z" if decimals else f"{text}Z"
