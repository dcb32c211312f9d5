"""Events as CloudEvents 1.0, in structured mode (one JSON object) and binary mode (HTTP headers and a body).

    publisher     source            as it is where it is a URI-reference, else ``holdfast:`` and percent-encoded
    n             id                in decimal; an id that is not a number from 1 is refused: ours are compared
    topic         subject           required on the way in
    content_type  datacontenttype
    time          time
    payload       data or data_base64, or the body
    attributes    extensions, where name and type fit CloudEvents; all others in ``holdfastattributes``

The way out and back is lossless for every event that has an id; one without is refused, since CloudEvents
requires ``source`` and ``id`` and their pair to be unique. Where CloudEvents is narrower than an event:

- ``holdfastattributes`` is compact JSON, names to values grouped by type: ``{"float":{"price":1.5}}`` with the
  groups bool, int, float, str, and bytes (in base64).
- Headers have no types. So in binary mode a Boolean or Integer (and an empty text, which proxies drop) travels
  twice, as its header for others and typed for us; if somebody changed one of the two, the event is refused.
- A topic with characters that a CloudEvents String may not hold goes, as JSON, into ``holdfasttopic``.
- In binary mode the content type ``application/cloudevents…`` would announce structured mode; it goes into
  ``holdfastcontenttype``.

``type`` is ``holdfast.event``, unless the event has an attribute ``type`` that can stand there; in the same way
``dataschema``. So what a foreign event says there becomes an attribute, can be filtered on, and goes out again.

JSON data is carried as the text that was written, digit for digit; parsing and writing it anew would change
numbers. ``data`` without ``datacontenttype`` is JSON and becomes ``application/json`` (JSON format §3.1.2);
``data_base64`` or a body without it stays without a content type.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeAlias, cast
from urllib.parse import quote, unquote

from holdfast.errors import InvalidEvent
from holdfast.events.cloudevents_data import (
    is_json_type,
    json_data,
    raw_data,
    refuse_foreign_charset,
    text_or_base64,
)
from holdfast.events.event import DEFAULT_LIMITS, Event, Limits, make_event
from holdfast.events.strict_json import (
    bytes_from_base64,
    bytes_from_text,
    decode_utf8,
    dump_json,
    object_member,
    read_object,
)
from holdfast.events.timestamp import time_from_text, time_to_text
from holdfast.events.value import INT_MAX, Value, kind_of, shown

__all__ = [
    "EVENT_TYPE",
    "STRUCTURED_CONTENT_TYPE",
    "from_binary",
    "from_structured",
    "to_binary",
    "to_structured",
]

EVENT_TYPE: Final = "holdfast.event"
STRUCTURED_CONTENT_TYPE: Final = "application/cloudevents+json"

Attribute: TypeAlias = bool | int | str  # of CloudEvents: Boolean, Integer, and all that are written as text

_CONTEXT: Final = frozenset(
    ("specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data")
)
_NAME: Final = re.compile("[a-z0-9]+")
_NAME_MAX: Final = 20  # "SHOULD NOT exceed 20 characters": we obey, and accept longer ones
_OUR_SCHEME: Final = "holdfast:"

#: Spec 1.0.2, "String": no control characters, noncharacters or surrogates.
_STRING: Final = re.compile(
    "[^\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
    + "]*"
)
#: RFC 3986: a scheme, or a first segment without a colon; then authority, path, query, fragment.
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_PCHAR: Final = r"[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2}"
_AUTHORITY: Final = rf"//(?:{_PCHAR}|[\[\]])*(?![^/?\#])"
_AFTER_SCHEME: Final = rf"(?:{_AUTHORITY})?(?:{_PCHAR}|/)*(?:\?(?:{_PCHAR}|[/?])*)?(?:\#(?:{_PCHAR}|[/?])*)?"
_URI: Final = re.compile(_SCHEME + _AFTER_SCHEME)
_URI_REFERENCE: Final = re.compile(rf"(?:{_SCHEME}|(?![^/?\#]*:)){_AFTER_SCHEME}")
#: HTTP binding §3.1.3.2: all printable ASCII but space, double quote and percent.
_HEADER_SAFE: Final = "".join(c for c in map(chr, range(0x21, 0x7F)) if c not in '"%')
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')


def to_structured(event: Event) -> bytes:
    """The event in the JSON format, on one line; its media type is ``STRUCTURED_CONTENT_TYPE``.

    :raises InvalidEvent: if the event has no id.
    """
    context, typed = _split(event)
    members: dict[str, object] = {**context}
    if typed:
        members["holdfastattributes"] = _typed_text(typed)
    raw = json_data(event)
    if raw is not None:
        return f'{dump_json(members)[:-1]},"data":{raw}}}'.encode()
    if event.payload:
        members.update(text_or_base64(event))
    return dump_json(members).encode()


def from_structured(text: str | bytes, limits: Limits = DEFAULT_LIMITS) -> Event:
    """The event in a JSON object of the JSON format.

    :raises InvalidEvent: naming the CloudEvents attribute, or ``json`` and the place where it is no JSON object.
    """
    decoded = decode_utf8("json", text)
    members = read_object(decoded)
    has_data = "data" in members
    data, encoded = members.pop("data", None), members.pop("data_base64", None)
    context = {name: value for name, value in members.items() if value is not None}
    if encoded is not None:
        if data is not None:
            raise InvalidEvent("data_base64", "stands beside data; give one of them")
        payload = bytes_from_base64("data_base64", encoded)
    elif has_data and is_json_type(context.setdefault("datacontenttype", "application/json")):
        payload = bytes_from_text("data", raw_data(decoded))
    elif data is not None:
        refuse_foreign_charset(context["datacontenttype"])
        payload = bytes_from_text("data", data)
    else:
        payload = b""
    return _event(context, payload, limits)


def to_binary(event: Event) -> tuple[dict[str, str], bytes]:
    """The event as HTTP headers, names in lower case, and a body.

    :raises InvalidEvent: if the event has no id.
    """
    context, typed = _split(event)
    for name, value in event.attributes.items():
        if name in context and name not in typed and not (isinstance(value, str) and value):
            typed[name] = value
    if typed:
        context["holdfastattributes"] = _typed_text(typed)
    content_type = str(context.pop("datacontenttype", ""))
    if _announces_structured(content_type):
        context["holdfastcontenttype"] = content_type
        content_type = "application/octet-stream"
    headers = {
        f"ce-{name}": quote(_attribute_text(value), safe=_HEADER_SAFE) for name, value in context.items()
    }
    if content_type:
        headers["content-type"] = content_type
    return headers, event.payload


def from_binary(headers: Mapping[str, str], body: bytes, limits: Limits = DEFAULT_LIMITS) -> Event:
    """The event in the headers of a message, whatever the case of their names, and its body.

    Headers that are neither ``ce-…`` nor ``content-type`` are passed over.

    :raises InvalidEvent: naming the CloudEvents attribute.
    """
    context: dict[str, object] = {}
    for header, value in headers.items():
        lowered = header.lower()
        name = "datacontenttype" if lowered == "content-type" else lowered.removeprefix("ce-")
        if name == lowered:
            continue
        if lowered == "ce-datacontenttype":
            raise InvalidEvent(name, "travels as the header content-type, not as ce-datacontenttype")
        if name in context:
            raise InvalidEvent(shown(name), "appears twice")
        context[name] = value.strip() if lowered == "content-type" else _from_header(name, value)
    if _announces_structured(str(context.get("datacontenttype", ""))):
        raise InvalidEvent("datacontenttype", f"is {shown(str(context['datacontenttype']))}: not binary mode")
    return _event(context, body, limits)


# --- the context attributes -------------------------------------------------------------------------------------


def _split(event: Event) -> tuple[dict[str, Attribute], dict[str, Value]]:
    """What CloudEvents can say with its own names and types, and the attributes that it cannot."""
    if event.id is None:
        raise InvalidEvent("id", "is missing; a CloudEvent needs a publisher and a number")
    context: dict[str, Attribute] = {
        "specversion": "1.0",
        "id": str(event.n),
        "source": _source_of(event.publisher),
        "type": EVENT_TYPE,
    }
    if _STRING.fullmatch(event.topic):
        context["subject"] = event.topic
    else:
        context["holdfasttopic"] = _ascii_json(event.topic)
    if event.content_type:
        context["datacontenttype"] = event.content_type
    if event.time is not None:
        context["time"] = time_to_text(event.time)
    typed: dict[str, Value] = {}
    for name, value in event.attributes.items():
        if isinstance(value, bool | int | str) and _fits(name, value):
            context[name] = value
        else:
            typed[name] = value
    return context, typed


def _fits(name: str, value: Attribute) -> bool:
    """Whether an attribute can travel under its own name, and be told from everything else there on its return."""
    if isinstance(value, str) and not _STRING.fullmatch(value):
        return False
    if name == "type":
        return isinstance(value, str) and value not in ("", EVENT_TYPE)
    if name == "dataschema":
        return isinstance(value, str) and _URI.fullmatch(value) is not None
    if len(name) > _NAME_MAX or not _NAME.fullmatch(name):
        return False
    if name in _CONTEXT or name.startswith("holdfast"):
        return False
    return not isinstance(value, int) or -(2**31) <= value < 2**31


def _event(context: dict[str, object], payload: bytes, limits: Limits) -> Event:
    """The event of all attributes present, extensions included; it takes the dictionary over."""
    for name in context:
        if name == "data" or not _NAME.fullmatch(name):
            raise InvalidEvent(shown(name), "cannot be an attribute; a name is lower-case letters and digits")
    version = _required_text(context, "specversion")
    if version != "1.0":
        raise InvalidEvent("specversion", f"is '{shown(version)}', not 1.0")
    n = _number_of(_required_text(context, "id"))
    publisher = _publisher_of(_required_text(context, "source"))
    kind = _required_text(context, "type")
    topic = _topic_of(context)
    content_type = _text(context, "datacontenttype") or ""
    content_type = _text(context, "holdfastcontenttype") or content_type
    time = context.pop("time", None)
    typed = _text(context, "holdfastattributes")
    schema = _text(context, "dataschema")
    attributes = context if kind == EVENT_TYPE else {**context, "type": kind}
    if schema is not None:
        attributes["dataschema"] = schema
    if typed is not None:
        _merge(attributes, _typed_values(typed))
    with _cloudevents_names():
        return make_event(
            topic,
            cast("dict[str, Value | None]", attributes),  # make_event checks what they are
            payload,
            content_type,
            publisher=publisher,
            n=n,
            time=None if time is None else time_from_text("time", time),
            limits=limits,
        )


def _text(context: dict[str, object], name: str) -> str | None:
    value = context.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise InvalidEvent(name, f"must be text, not {kind_of(value)}")
    return value


def _required_text(context: dict[str, object], name: str) -> str:
    value = _text(context, name)
    if not value:
        raise InvalidEvent(name, "is missing" if value is None else "is empty")
    return value


def _number_of(text: str) -> int:
    digits = text.isascii() and text.isdigit() and not text.startswith("0")
    if not digits or len(text) > 19 or int(text) > INT_MAX:
        raise InvalidEvent("id", f"'{shown(text)}' is not a number from 1 to {INT_MAX}")
    return int(text)


def _source_of(publisher: str) -> str:
    if _URI_REFERENCE.fullmatch(publisher) and not publisher.startswith(_OUR_SCHEME):
        return publisher
    return _OUR_SCHEME + quote(publisher, safe="")


def _publisher_of(source: str) -> str:
    if not source.startswith(_OUR_SCHEME):
        return source
    publisher = _percent_decoded("source", source.removeprefix(_OUR_SCHEME))
    if not publisher:
        raise InvalidEvent("source", "names no publisher")
    return publisher


def _topic_of(context: dict[str, object]) -> str:
    escaped = _text(context, "holdfasttopic")
    if escaped is None:
        return _required_text(context, "subject")
    if "subject" in context:
        raise InvalidEvent("holdfasttopic", "stands beside subject")
    # An object around it lets one strict reader serve for both.
    topic = read_object(f'{{"topic":{escaped}}}', "holdfasttopic").get("topic")
    if not isinstance(topic, str):
        raise InvalidEvent("holdfasttopic", f"must be a JSON string, not {kind_of(topic)}")
    return topic


#: Errors speak of the names that stand in the message.
_CLOUDEVENTS_NAMES: Final = {
    "topic": "subject",
    "publisher": "source",
    "n": "id",
    "content_type": "datacontenttype",
    "payload": "data",
}


@contextmanager
def _cloudevents_names() -> Iterator[None]:
    try:
        yield
    except InvalidEvent as error:
        name = _CLOUDEVENTS_NAMES.get(error.field, error.field.removeprefix("attributes."))
        raise InvalidEvent(name, error.problem, limit=error.limit) from None


# --- attributes beyond CloudEvents' types -----------------------------------------------------------------------

_TYPES: Final[dict[str, type]] = {"bool": bool, "int": int, "float": float, "str": str, "bytes": bytes}


def _typed_text(attributes: Mapping[str, Value]) -> str:
    groups: dict[str, dict[str, Value]] = {}
    for name, value in attributes.items():
        written = base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value
        groups.setdefault(type(value).__name__, {})[name] = written
    return _ascii_json(groups)


def _ascii_json(value: object) -> str:
    # json leaves DEL alone, which is ASCII, and which a CloudEvents String may not hold.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("\x7f", "\\u007f")


def _typed_values(text: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for group, members in read_object(text, "holdfastattributes").items():
        place = f"holdfastattributes.{shown(group)}"
        if group not in _TYPES:
            raise InvalidEvent(place, f"is not a type; expected {', '.join(_TYPES)}")
        for name, value in object_member(place, members).items():
            if name in values:
                raise InvalidEvent(f"{place}.{shown(name)}", "appears twice")
            values[name] = _typed_value(f"{place}.{shown(name)}", group, value)
    return values


def _typed_value(place: str, group: str, value: object) -> Value:
    if group == "bytes":
        return bytes_from_base64(place, value)
    if type(value) is not _TYPES[group]:
        raise InvalidEvent(place, f"is {kind_of(value)}, not of type {group}")
    return cast("Value", value)


def _merge(attributes: dict[str, object], typed: Mapping[str, Value]) -> None:
    """Let the typed value stand for the text of the same extension, provided that the two agree."""
    for name, value in typed.items():
        plain = attributes.get(name)
        if plain is not None and _attribute_text(plain) != _attribute_text(value):
            raise InvalidEvent(shown(name), "differs from its value in holdfastattributes")
        attributes[name] = value


def _attribute_text(value: object) -> str:
    """The canonical text of CloudEvents ("Type System"): true, false, decimal digits, text as it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# --- headers ----------------------------------------------------------------------------------------------------


def _from_header(name: str, value: str) -> str:
    unquoted = _QUOTED.sub(lambda found: re.sub(r"\\(.)", r"\1", found[1]), value.strip(" \t"))
    return _percent_decoded(shown(name), unquoted)


def _percent_decoded(field: str, text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidEvent(field, "is percent-encoded, but not UTF-8") from None


def _announces_structured(content_type: str) -> bool:
    return content_type.lower().startswith("application/cloudevents")
