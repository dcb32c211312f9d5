"""Variants read back as attributes: the values ``variant`` writes, and those of Spark's that an event can have.

Spark makes small ints of small numbers and floats of some; both are widened. What no attribute can be (a date, a
decimal, an array, an object within) is refused by name, as contracts.md §1 does.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, error
from typing import Final

from holdfast.errors import InvalidEvent
from holdfast.events.value import Value

__all__ = ["VariantReader", "attributes_in", "names_in"]

KEPT_MAX: Final = 10_000  #: metadata; when there are more all are forgotten

_PRIMITIVE, _SHORT, _OBJECT = 0, 1, 2
_NULL, _TRUE, _FALSE = 0, 1, 2
_BINARY, _STRING = 15, 16

_double: Final = Struct("<d").unpack_from
_float: Final = Struct("<f").unpack_from


def _int(size: int) -> Callable[[bytes, int], Value]:
    return lambda data, at: int.from_bytes(data[at : at + size], "little", signed=True)


#: By the type of a primitive how it is read.
_FIXED: Final[dict[int, Callable[[bytes, int], Value]]] = {
    3: _int(1),
    4: _int(2),
    5: _int(4),
    6: _int(8),
    7: lambda data, at: float(_double(data, at)[0]),
    14: lambda data, at: float(_float(data, at)[0]),
}


def attributes_in(value: bytes, metadata: bytes) -> dict[str, Value | None]:
    """The attributes in a Variant that is an object of plain values; None where a value is NULL.

    :raises InvalidEvent: if it is something else.
    """
    try:
        return _object(value, names_in(metadata))
    except (IndexError, error, UnicodeDecodeError) as problem:
        raise InvalidEvent("attributes", f"is no whole VARIANT: {problem}") from problem


class VariantReader:
    """Reads many that have few sets of names, as our tables do; not for several threads at a time."""

    def __init__(self) -> None:
        self._names: dict[bytes, list[str]] = {}

    def names(self, metadata: bytes) -> list[str]:
        """As ``names_in``."""
        names = self._names.get(metadata)
        if names is None:
            if len(self._names) >= KEPT_MAX:
                self._names.clear()
            names = self._names[metadata] = names_in(metadata)
        return names

    def attributes(self, value: bytes, metadata: bytes) -> dict[str, Value]:
        """The attributes of an event as ``variant`` has written them, in the event's order."""
        names = self.names(metadata)
        found = _object(value, names)
        return {name: each for name in names if (each := found.get(name)) is not None}


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def names_in(metadata: bytes) -> list[str]:
    """The names that values refer to, in the order of their numbers."""
    size = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, size)
    begin = 1 + size * (count + 2)
    offsets = [_number(metadata, 1 + size * (i + 1), size) for i in range(count + 1)]
    return [metadata[begin + offsets[i] : begin + offsets[i + 1]].decode() for i in range(count)]


def _object(data: bytes, names: list[str]) -> dict[str, Value | None]:
    kind, bits = data[0] & 3, data[0] >> 2
    if kind != _OBJECT:
        raise InvalidEvent("attributes", "is a VARIANT that is no object; expected names and values")
    offset_size, id_size, is_large = (bits & 3) + 1, (bits >> 2 & 3) + 1, bits >> 4 & 1
    count_size = 4 if is_large else 1
    count = _number(data, 1, count_size)
    ids_at = 1 + count_size
    offsets_at = ids_at + count * id_size
    values_at = offsets_at + (count + 1) * offset_size
    found: dict[str, Value | None] = {}
    for i in range(count):
        name = names[_number(data, ids_at + i * id_size, id_size)]
        found[name] = _value(name, data, values_at + _number(data, offsets_at + i * offset_size, offset_size))
    return found


def _value(name: str, data: bytes, at: int) -> Value | None:
    kind, bits = data[at] & 3, data[at] >> 2
    if kind == _SHORT:
        return data[at + 1 : at + 1 + bits].decode()
    if kind == _PRIMITIVE and bits in _FIXED:
        return _FIXED[bits](data, at + 1)
    if kind == _PRIMITIVE and bits == _NULL:
        return None
    if kind == _PRIMITIVE and bits in (_TRUE, _FALSE):
        return bits == _TRUE
    if kind == _PRIMITIVE and bits in (_BINARY, _STRING):
        content = data[at + 5 : at + 5 + _number(data, at + 1, 4)]
        return content if bits == _BINARY else content.decode()
    problem = "is no bool, int, float, text or bytes; other values must be cast, and nested ones are refused"
    raise InvalidEvent(f"attributes.{name}", problem)
