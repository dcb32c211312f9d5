"""Publish times as text: RFC 3339, to the nanosecond, from and to integer nanoseconds since the epoch."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Final

from holdfast.errors import InvalidEvent
from holdfast.events.value import kind_of, shown

__all__ = ["time_from_text", "time_to_text"]

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
