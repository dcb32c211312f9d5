"""Variants of many events at once: the same bytes that ``VariantEncoder`` makes of each, without a look at each.

Events that are alike have their attributes in one column for each name, and what a Variant is made of is made for
all of them: bytes of numbers as matrices of numpy, texts as they lie in Arrow, joined row by row in C. Not of all that
can be done: long texts and large objects are left to the encoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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

__all__ = ["matrix_rows", "variants_of"]

SMALL_BYTES_MAX: Final = 255  #: of an object whose offsets are bytes


def variants_of(
    count: int, kinds: Mapping[str, type], attributes: Mapping[str, Any], encoder: VariantEncoder
) -> tuple[Any, Any] | None:
    """Values and metadata, one of each for so many events; None if they have to be looked at."""
    names = encoder.names(tuple(kinds))
    small = _Objects(count, bytes((OBJECT | names.bits,)) + names.size + names.ids)
    for name in names.ordered:
        if not small.add(kinds[name], attributes[name]):
            return None
    values = small.joined()
    return None if values is None else (values, pa.repeat(pa.scalar(names.metadata, pa.binary()), count))


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
        return pc.binary_join_element_wise(
            matrix_rows(np.concatenate([head, offsets], axis=1)), *self._parts, b""
        )

    def _add_fixed(self, *matrices: Any) -> None:
        self._fixed += matrices
        self._end = self._end + sum(each.shape[1] for each in matrices)

    def _flush(self) -> None:
        if self._fixed:
            self._parts.append(matrix_rows(np.concatenate(self._fixed, axis=1)))
            self._fixed = []


def matrix_rows(matrix: Any) -> Any:
    """The rows of a matrix as an array of bytes."""
    count, width = matrix.shape
    buffers = [None, pa.py_buffer(np.ascontiguousarray(matrix))]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, buffers).cast(pa.binary())
