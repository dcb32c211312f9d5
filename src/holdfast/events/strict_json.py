"""JSON read strictly: one object, no key twice, no NaN, no number or nesting that would raise anything else.

What is wrong is an ``InvalidEvent`` that names the member, or the field read and the character in it, from 1.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from holdfast.errors import InvalidEvent
from holdfast.events.value import INT_MAX, kind_of, lone_surrogate, shown

__all__ = [
    "Place",
    "base64_text",
    "bytes_from_base64",
    "bytes_from_text",
    "decode_utf8",
    "dump_json",
    "object_member",
    "places",
    "read_object",
]


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
        column = error.pos + 1
        raise InvalidEvent(field, f"is not JSON: {problem}, character {column}", column=column) from None
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
class Place(NamedTuple):
    """A member of an object as it stands in the text: its name, and offsets of the name and of the value."""

    name: str
    start: int
    value: int
    end: int


def places(text: str, at: int | None = None) -> Iterator[Place]:
    """The members of an object that ``read_object`` has read: the whole one, or that which begins at ``at``."""
    decoder = json.JSONDecoder(parse_int=str)  # as it stands: Python refuses to convert very long numbers
    at = _skip_space(text, (text.index("{") if at is None else at) + 1)
    while text[at] != "}":
        start = at
        name, at = decoder.raw_decode(text, at)
        value = _skip_space(text, text.index(":", at) + 1)
        _, end = decoder.raw_decode(text, value)
        yield Place(name, start, value, end)
        at = _skip_space(text, end)
        if text[at] == ",":
            at = _skip_space(text, at + 1)


def _skip_space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


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


def base64_text(data: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode("ascii")
