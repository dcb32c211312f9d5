"""The payload in CloudEvents' JSON format: as JSON where it is JSON, as text where it is text, else in base64.

JSON is spliced in and cut out as it stands, so that no number is written differently on the way.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from holdfast.errors import InvalidEvent
from holdfast.events.event import Event
from holdfast.events.strict_json import places, read_object
from holdfast.events.value import shown

__all__ = ["is_json_type", "json_data", "raw_data", "refuse_foreign_charset", "text_or_base64"]

_CHARSET: Final = re.compile(r';\s*charset\s*=\s*"?([^\s;"]*)', re.IGNORECASE)
_SPLICED_NESTING_MAX: Final = 64  # what lies deeper goes as base64: readers have limits of their own


def is_json_type(content_type: object) -> bool:
    """Whether data of this type is written as JSON."""
    if not isinstance(content_type, str):
        return False  # refused when the attribute is read
    subtype = content_type.partition(";")[0].strip().lower().partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


def _foreign_charset(content_type: str) -> str | None:
    found = _CHARSET.search(content_type)
    return found[1] if found and found[1].lower() not in ("utf-8", "utf8", "us-ascii") else None


def refuse_foreign_charset(content_type: object) -> None:
    """Text in the JSON format is UTF-8; what says it is not would be given back wrong."""
    charset = _foreign_charset(content_type) if isinstance(content_type, str) else None
    if charset is not None:
        raise InvalidEvent("data", f"is text in charset {shown(charset)}, not UTF-8; send data_base64")


def json_data(event: Event) -> str | None:
    """The payload as it can stand after ``"data":`` and be found there again, if it is JSON at all."""
    if not (event.payload and is_json_type(event.content_type)):
        return None
    try:
        text = event.payload.decode()
        if text != text.strip() or not text.isprintable():
            return None
        value = read_object(f'{{"data":{text}}}')
    except (UnicodeDecodeError, InvalidEvent):
        return None
    return text if len(value) == 1 and _is_shallow(value["data"]) else None


def _is_shallow(value: object) -> bool:
    level = [value]
    for _ in range(_SPLICED_NESTING_MAX):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return True
    return False


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def text_or_base64(event: Event) -> dict[str, object]:
    """Text stands for itself only where the reader will not take it for JSON or for another charset."""
    content_type = event.content_type
    if content_type and not is_json_type(content_type) and _foreign_charset(content_type) is None:
        try:
            return {"data": event.payload.decode()}
        except UnicodeDecodeError:
            pass
    return {"data_base64": base64.b64encode(event.payload).decode("ascii")}


def raw_data(text: str) -> str:
    """The text of the member ``data``, in an object that ``read_object`` has read and that has it.

    The nesting cannot be too deep here: there it was one level deeper, and so was the stack.
    """
    return next(text[place.value : place.end] for place in places(text) if place.name == "data")
