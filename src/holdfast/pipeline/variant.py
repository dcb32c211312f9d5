"""Attributes as a Variant: the binary form in which Spark and Parquet keep values whose types differ from row to row.

A Variant is two byte strings. The *metadata* is a dictionary of names; the *value* refers to it by numbers. Events of
one kind have the same names, so the metadata, and with it everything about an object that does not depend on the
values, is made once for each set of names and kept.

Every value keeps its type: a bool is a bool, an int 8 bytes, a float a double, text and bytes what they are. So what is
read back is what was published [contracts.md §7].
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from struct import Struct
from typing import Final, NamedTuple, TypeVar

from holdfast.events.value import Value

__all__ = [
    "BINARY",
    "DOUBLE",
    "FALSE",
    "INT64",
    "OBJECT",
    "SHORT_BYTES_MAX",
    "TRUE",
    "Names",
    "Variant",
    "VariantEncoder",
    "encoded",
]

KEPT_MAX: Final = 10_000  #: sets of names, and texts; when there are more all are forgotten
_KEPT_BYTES_MAX: Final = 32  #: longer texts seldom come twice
_VERSION: Final = 1
_SORTED: Final = 1 << 4  #: of metadata: the names ascend
TRUE, FALSE = b"\x04", b"\x08"
SHORT_BYTES_MAX: Final = 63  #: of a text whose length stands in its header
OBJECT: Final = 2
_SMALL_MAX: Final = 255  #: so many fields are counted by one byte

_HEADERS: Final = [bytes((bits,)) for bits in range(256)]

_int64: Final = Struct("<Bq").pack
_double: Final = Struct("<Bd").pack
_sized: Final = Struct("<BI").pack
INT64, DOUBLE, BINARY, _STRING = 6 << 2, 7 << 2, 15 << 2, 16 << 2


class Variant(NamedTuple):
    """One value."""

    value: bytes
    metadata: bytes


class Names(NamedTuple):
    """What objects with the same names have in common; ``ids`` refer to the dictionary.

    An object has its fields in the order of their names; the dictionary keeps the order they have in the event.
    """

    ordered: tuple[str, ...]
    metadata: bytes
    size: bytes  #: how many there are
    ids: bytes
    bits: int  #: of the object's header, but for the size of offsets


def _text(value: str) -> bytes:
    data = value.encode()
    if len(data) <= SHORT_BYTES_MAX:
        return bytes((len(data) << 2 | 1,)) + data
    return _sized(_STRING, len(data)) + data


class VariantEncoder:
    """Makes Variants; not for several threads at a time."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], Names] = {}
        self._texts: dict[str, bytes] = {}

    def encode(self, attributes: Mapping[str, Value]) -> Variant:
        """The attributes as an object."""
        names = self.names(tuple(attributes))
        texts = self._texts
        parts: list[bytes] = []
        ends = [0]
        at = 0
        for name in names.ordered:  # every event has several: what could be a call is none
            value = attributes[name]
            kind = type(value)
            if kind is float:
                part = _double(DOUBLE, value)
            elif kind is int:
                part = _int64(INT64, value)
            elif kind is str:
                part = texts.get(value) or self._text(value)  # type: ignore[arg-type]
            elif kind is bool:
                part = TRUE if value else FALSE
            else:
                part = _sized(BINARY, len(value)) + value  # type: ignore[arg-type, operator]
            parts.append(part)
            at += len(part)
            ends.append(at)
        width = _width(at)
        offsets = bytes(ends) if width == 1 else _numbers(ends, width)
        header = _HEADERS[OBJECT | (width - 1) << 2 | names.bits]
        return Variant(b"".join((header, names.size, names.ids, offsets, *parts)), names.metadata)

    def names(self, names: tuple[str, ...]) -> Names:
        """What objects with these names have in common."""
        found = self._names.get(names)
        if found is None:
            found = self._names[names] = _kept(self._names, _names(names))
        return found

    def _text(self, value: str) -> bytes:
        part = _text(value)
        if len(part) <= _KEPT_BYTES_MAX:
            self._texts[value] = _kept(self._texts, part)
        return part


_Key = TypeVar("_Key")
_Thing = TypeVar("_Thing")


def _kept(things: dict[_Key, _Thing], thing: _Thing) -> _Thing:
    """Room for one more."""
    if len(things) >= KEPT_MAX:
        things.clear()
    return thing


def encoded(attributes: Mapping[str, Value]) -> Variant:
    """One Variant, for whoever needs no more."""
    return VariantEncoder().encode(attributes)


def _names(names: tuple[str, ...]) -> Names:
    # Spark looks names up by bisection as Java compares strings, by UTF-16; code points order alike up to U+D7FF only.
    ordered = tuple(sorted(names, key=lambda name: name.encode("utf-16-be")))
    texts = [name.encode() for name in names]
    ends = list(accumulate(map(len, texts), initial=0))
    width = _width(max(ends[-1], len(texts)))
    is_sorted = _SORTED if texts == sorted(texts) else 0  # as the format has it, by bytes
    header = bytes((_VERSION | is_sorted | (width - 1) << 6,))
    metadata = b"".join((header, _numbers([len(texts)], width), _numbers(ends, width), *texts))
    is_large = len(texts) > _SMALL_MAX
    size = len(texts).to_bytes(4 if is_large else 1, "little")
    id_width = _width(max(len(texts) - 1, 0))
    return Names(
        ordered,
        metadata,
        size,
        _numbers([names.index(name) for name in ordered], id_width),
        (id_width - 1) << 4 | is_large << 6,
    )


def _width(greatest: int) -> int:
    """Bytes for a number."""
    return 1 if greatest < 1 << 8 else 2 if greatest < 1 << 16 else 3 if greatest < 1 << 24 else 4


def _numbers(numbers: list[int], width: int) -> bytes:
    if width == 1:
        return bytes(numbers)
    return b"".join([number.to_bytes(width, "little") for number in numbers])
