"""Attributes of many events by columns: Variants, and the struct of those that are declared, without a look at each.

Events of a stream mostly come in a few kinds, each with the same names and the same types. Events of one kind are put
into one column for each name, and what a Variant is made of (``variant``) is made for all of them at once: bytes of
numbers as matrices of numpy, texts as they lie in Arrow, joined row by row in C. The bytes are those that
``VariantEncoder`` makes of each event, which is asked where that cannot be done: long texts, large objects, and events
that have little in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.events.packed import PackedEvent
from holdfast.events.value import Value
from holdfast.pipeline.variant import (
    BINARY,
    DOUBLE,
    FALSE,
    INT64,
    OBJECT,
    SHORT_BYTES_MAX,
    TRUE,
    VariantEncoder,
)

__all__ = ["AttributeColumns"]

KINDS_MAX: Final = 16  #: in a batch; with more, each event is looked at
SMALL_BYTES_MAX: Final = 255  #: of an object whose offsets are bytes

_ARROW: Final[dict[type, Any]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
}

Row = Mapping[str, Value]


class _Alike(NamedTuple):
    """Rows with the same names and types, by columns."""

    names: tuple[str, ...]
    kinds: dict[str, type]
    columns: dict[str, Any]
    rows: int
    at: Sequence[int]  #: where they stand among all rows


class AttributeColumns:
    """The attributes of the events of one batch; nothing is done before something is asked for."""

    def __init__(self, events: Sequence[PackedEvent], encoder: VariantEncoder) -> None:
        self._events = events
        self._encoder = encoder

    @cached_property
    def _rows(self) -> list[Row]:
        return [event.attributes for event in self._events]

    @cached_property
    def _alike(self) -> list[_Alike]:
        return _divided(self._rows)

    def variants(self) -> tuple[Any, Any]:
        """Values and metadata, one of each for every event."""
        parts = [self._of(each) for each in self._alike]
        made = [part for part in parts if part is not None]
        if not made or len(made) < len(parts):
            return self._one_by_one()
        values, metadata = zip(*made, strict=True)
        return self._in_order(values), self._in_order(metadata)

    def declared(self, name: str, kind: type) -> Any:
        """One attribute of all events, as a column; a value of another type is NULL, and a bool is no int."""
        if not self._alike:
            found = [row.get(name) for row in self._rows]
            return pa.array([value if type(value) is kind else None for value in found], _ARROW[kind])
        return self._in_order(
            [
                each.columns[name] if each.kinds.get(name) is kind else pa.nulls(each.rows, _ARROW[kind])
                for each in self._alike
            ]
        )

    def _in_order(self, arrays: Sequence[Any]) -> Any:
        """What was made for each kind, as the events stand."""
        if len(arrays) == 1:
            return arrays[0]
        at = np.concatenate([each.at for each in self._alike])
        return pa.concat_arrays(arrays).take(pa.array(np.argsort(at)))

    def _of(self, alike: _Alike) -> tuple[Any, Any] | None:
        """Of events of one kind; None if they have to be looked at."""
        names = self._encoder.names(alike.names)
        small = _Objects(alike.rows, bytes((OBJECT | names.bits,)) + names.size + names.ids)
        for name in names.ordered:
            if not small.add(alike.kinds[name], alike.columns[name]):
                return None
        values = small.joined()
        return None if values is None else (values, _repeated(names.metadata, alike.rows))

    def _one_by_one(self) -> tuple[Any, Any]:
        found = [self._encoder.encode(row) for row in self._rows]
        values, metadata = [each.value for each in found], [each.metadata for each in found]
        return pa.array(values, pa.binary()), pa.array(metadata, pa.binary())


def _divided(rows: Sequence[Row]) -> list[_Alike]:
    """Rows by kinds; empty if there are too many."""
    alike = _columns(rows, range(len(rows)))
    if alike is not None:
        return [alike]
    kinds: dict[tuple[object, ...], list[int]] = {}
    for i, row in enumerate(rows):
        kinds.setdefault((*row, *map(type, row.values())), []).append(i)
        if len(kinds) > KINDS_MAX:
            return []
    divided = [_columns([rows[i] for i in at], at) for at in kinds.values()]
    return [each for each in divided if each is not None]


def _columns(rows: Sequence[Row], at: Sequence[int]) -> _Alike | None:
    """Rows by columns; None if not all have the same names, in one order, and one type for each."""
    names, *others = set(map(tuple, rows))
    if others:
        return None
    found = {name: list(map(itemgetter(name), rows)) for name in names}
    kinds: dict[str, type] = {}
    for name, values in found.items():
        types = set(map(type, values))
        if len(types) > 1:
            return None
        kinds[name] = types.pop()
    columns = {name: pa.array(values, _ARROW[kinds[name]]) for name, values in found.items()}
    return _Alike(names, kinds, columns, len(rows), at)


class _Objects:
    """Objects of a Variant, one for each row, while they are made: what they begin with, offsets, and their parts.

    What is as wide in all rows is gathered in matrices of bytes, and only the texts stand between them.
    """

    def __init__(self, count: int, head: bytes) -> None:
        self._count = count
        self._head = head
        self._end: Any = np.zeros(count, np.int64)  #: of what was added, by row
        self._ends = [self._end]
        self._fixed: list[Any] = []  #: matrices that follow each other
        self._parts: list[Any] = []  #: arrays of bytes

    def add(self, kind: type, column: Any) -> bool:
        """The next value of each row; whether that can be had."""
        if kind is bool:
            bits = np.where(column.to_numpy(zero_copy_only=False), TRUE[0], FALSE[0]).astype(np.uint8)
            self._add_fixed(bits.reshape(-1, 1))
        elif kind in (int, float):
            header = np.full((self._count, 1), INT64 if kind is int else DOUBLE, np.uint8)
            numbers = column.to_numpy().view(np.uint8).reshape(self._count, 8)
            self._add_fixed(header, numbers)
        else:
            lengths = pc.binary_length(column).to_numpy().astype(np.int64)
            if kind is bytes:
                header = np.full((self._count, 1), BINARY, np.uint8)
                self._add_fixed(header, lengths.astype("<u4").view(np.uint8).reshape(self._count, 4))
            elif lengths.max() > SHORT_BYTES_MAX:
                return False
            else:
                self._add_fixed((lengths << 2 | 1).astype(np.uint8).reshape(-1, 1))
            self._flush()
            self._parts.append(column.cast(pa.binary()))
            self._end = self._end + lengths
        self._ends.append(self._end)
        return True

    def joined(self) -> Any | None:
        """All of them; None if one is too large for offsets of a byte."""
        if self._end.max() > SMALL_BYTES_MAX:
            return None
        self._flush()
        head = np.tile(np.frombuffer(self._head, np.uint8), (self._count, 1))
        offsets = np.stack(self._ends, axis=1).astype(np.uint8)
        return pc.binary_join_element_wise(_bytes(np.concatenate([head, offsets], axis=1)), *self._parts, b"")

    def _add_fixed(self, *matrices: Any) -> None:
        self._fixed += matrices
        self._end = self._end + sum(each.shape[1] for each in matrices)

    def _flush(self) -> None:
        if self._fixed:
            self._parts.append(_bytes(np.concatenate(self._fixed, axis=1)))
            self._fixed = []


def _bytes(matrix: Any) -> Any:
    """The rows of a matrix as an array of bytes."""
    count, width = matrix.shape
    buffers = [None, pa.py_buffer(np.ascontiguousarray(matrix))]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, buffers).cast(pa.binary())


def _repeated(data: bytes, count: int) -> Any:
    return pa.repeat(pa.scalar(data, pa.binary()), count)
