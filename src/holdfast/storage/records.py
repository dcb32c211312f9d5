"""Records as they lie in a block, one behind the other: each is cut out only when somebody asks for it.

Whoever reads many of them by columns never does; nor does who looks up one.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Self, overload

__all__ = ["Records", "column"]


def column(kind: str, data: bytes) -> array[int]:
    """Numbers as they stand in a block's table."""
    found = array(kind, data)
    if sys.byteorder == "big":
        found.byteswap()
    return found


class Records(Sequence[bytes]):
    """Some of the records in a piece of memory: from ``start`` on, so many bytes each. None of it changes."""

    __slots__ = ("_bounds", "content", "lengths", "size", "start")

    def __init__(
        self, content: bytes | memoryview, lengths: array[int], start: int = 0, *, size: int | None = None
    ) -> None:
        """``size`` is that of all of them, for who knows it."""
        self.content = content
        self.lengths = lengths
        self.start = start
        self.size = sum(lengths) if size is None else size  #: of all of them, in bytes
        self._bounds: list[int] | None = None

    @classmethod
    def of(cls, records: Sequence[bytes]) -> Records:
        """These records, one behind the other if they are not."""
        return (
            records if isinstance(records, Records) else cls(b"".join(records), array("I", map(len, records)))
        )

    @classmethod
    def joined(cls, pieces: Iterable[Records], behind: bytes = b"") -> Self:
        """All of them, and something behind them that is none."""
        contents, lengths = [], array("I")
        for piece in pieces:
            contents.append(memoryview(piece.content)[piece.start : piece.start + piece.size])
            lengths += piece.lengths
        return cls(b"".join([*contents, behind]), lengths)

    @property
    def bounds(self) -> list[int]:
        """Where they begin and, of the last, where it ends."""
        if self._bounds is None:
            self._bounds = list(accumulate(self.lengths, initial=self.start))
        return self._bounds

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, which: int) -> bytes: ...
    @overload
    def __getitem__(self, which: slice) -> Records: ...
    def __getitem__(self, which: int | slice) -> bytes | Records:
        bounds = self.bounds
        if isinstance(which, slice):
            start, _, step = which.indices(len(self))
            assert step == 1, "they lie one behind the other"
            return Records(self.content, self.lengths[which], bounds[start])
        if which < 0:
            which += len(self)
        if not 0 <= which < len(self):
            raise IndexError(which)
        return bytes(self.content[bounds[which] : bounds[which + 1]])

    def __iter__(self) -> Iterator[bytes]:
        content = self.content
        if isinstance(content, bytes):  # then a part of it is, too
            return iter([content[start:end] for start, end in pairwise(self.bounds)])
        return iter([bytes(content[start:end]) for start, end in pairwise(self.bounds)])
