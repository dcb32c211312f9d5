"""Attribute values: five types, each with a range that every language, disk format and Spark column can hold.

bool, 64-bit int, finite float, text without lone surrogates (so that it has a UTF-8 form), bytes. There is no
null: an attribute without a value is absent.
"""

from __future__ import annotations

from math import isfinite
from typing import Final, TypeAlias

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "Value",
    "canonical_text",
    "exact_value",
    "kind_of",
    "lone_surrogate",
    "shown",
    "value_bytes",
    "value_problem",
]

Value: TypeAlias = bool | int | float | str | bytes

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1

_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "a bool",
    int: "an int",
    float: "a float",
    str: "text",
    bytes: "bytes",
    dict: "an object",
    list: "an array",
    tuple: "an array",
}
_EXACT: Final = frozenset((bool, int, float, str, bytes))
_SHOWN_MAX: Final = 60


def value_problem(value: object) -> str | None:
    """Why this cannot be an attribute's value, or None if it can."""
    if isinstance(value, str):
        at = lone_surrogate(value)
        return None if at is None else f"contains a lone surrogate at character {at + 1}"
    if isinstance(value, bytes):
        return None
    if isinstance(value, int):  # a bool is one, and in range
        return None if INT_MIN <= value <= INT_MAX else "is outside the 64-bit range"
    if isinstance(value, float):
        return None if isfinite(value) else f"is not a finite number ({float(value)!r})"
    if isinstance(value, (dict, list, tuple)):
        return f"is {kind_of(value)}; nested values are refused"
    return f"is {kind_of(value)}; a value is a bool, int, float, str or bytes"


def exact_value(value: Value) -> Value:
    """The same value as one of the five built-in types themselves.

    Subclasses (an ``IntEnum``, a ``numpy.float64``) carry behaviour of their own into comparisons and text.
    """
    if type(value) in _EXACT:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return bytes.__bytes__(value)


def value_bytes(value: Value) -> int:
    """How large a legal value is: its UTF-8 or its bytes, and 8 for everything else."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    return len(value) if isinstance(value, bytes) else 8


def canonical_text(value: bool | int | float | str) -> str:
    """The one text of a value that every node and every engine agrees on; ``SHARD`` hashes it.

    It tells no types apart: ``1`` and ``'1'`` share a text, ``1`` and ``1.0`` do not.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return repr(value)


def lone_surrogate(text: str) -> int | None:
    """Where the first half of a surrogate pair stands that has no other half, so that UTF-8 cannot write it."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def kind_of(thing: object) -> str:
    """What something is, with its article, for an error's text."""
    name = _KINDS.get(type(thing))
    return name if name is not None else f"a {type(thing).__name__}"


def shown(name: str) -> str:
    """Somebody else's name as it may stand in an error's text: short, and nothing in it moves a terminal."""
    if not name:
        return "''"
    cut = name if len(name) <= _SHOWN_MAX else name[: _SHOWN_MAX - 1] + "…"
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")
