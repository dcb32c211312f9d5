"""Lists of subscribers as rows of bits, one for each tick; and as columns, one for each subscriber.

Whoever matches remembers its answers, so the same lists come again and again: each is made a row once. Rows are turned
into columns all at once, as one large number, in squares of eight by eight bits [Warren, Hacker's Delight §7-3]: that
takes a few operations for all matches together, and none for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, cast

__all__ = ["Rows"]

ROWS_MAX: Final = 4_096  #: that are remembered
BITS_MAX: Final = 8_192  #: subscribers; of more a row would be wide, and mostly empty

#: A square is eight bytes, its rows. What is swapped, by how many bits it moves: single bits, squares of two, of four.
_SWAPPED: Final = {
    7: bytes.fromhex("aa00aa00aa00aa00"),
    14: bytes.fromhex("cccc0000cccc0000"),
    28: bytes.fromhex("f0f0f0f000000000"),
}


class Rows:
    """The rows of one filtering log. A list that was handed in must not change afterwards."""

    def __init__(self) -> None:
        self._bits: dict[int, int] = {}  #: by subscriber its own bit, in the order of the bits
        self._width = 0  #: of a row, in bytes
        self._rows: dict[int, bytes] = {}  #: by the id of a list
        self._lists: dict[int, Sequence[int]] = {}  #: those: while they live, nothing else has their ids

    def columns(self, lists: Sequence[Sequence[int]], bytes_max: int) -> Mapping[int, bytes] | None:
        """By subscriber, ascending: which of the lists name it, a bit for each, the first lowest in the first byte.

        None if that would be more than so many bytes, or if too many were named.
        """
        size = (len(lists) + 7) // 8
        if len(self._bits) * size > bytes_max or len(self._bits) > BITS_MAX:
            return None
        rows = list(map(self._rows.get, map(id, lists)))
        if None in rows:
            self._learn(lists)
            if len(self._bits) > BITS_MAX:
                return None
            rows = list(map(self._rows.get, map(id, lists)))
        columns = _turned(cast(list[bytes], rows), self._width)
        nobody = bytes(size)
        found = {each: column for each, column in zip(self._bits, columns, strict=False) if column != nobody}
        return dict(sorted(found.items())) if len(found) * size <= bytes_max else None

    def forget(self) -> None:
        """Begin anew: of those that have bits somebody is gone."""
        self._bits.clear()
        self._width = 0
        self._forget_lists()

    def _forget_lists(self) -> None:
        self._rows.clear()
        self._lists.clear()

    def _learn(self, lists: Sequence[Sequence[int]]) -> None:
        """Make rows of those that have none, unless they name too many."""
        new = {id(each): each for each in lists}
        if len(self._rows) <= ROWS_MAX:
            new = {key: each for key, each in new.items() if key not in self._rows}
        else:
            self._forget_lists()
        rows = {}
        for key, each in new.items():
            rows[key] = self._row(each)
            if len(self._bits) > BITS_MAX:
                self._forget_lists()  # for good: nobody asks for them any more
                return
        width = (len(self._bits) + 7) // 8
        if width > self._width:
            self._rows = {key: row.ljust(width, b"\0") for key, row in self._rows.items()}
            self._width = width
        self._rows |= {key: row.to_bytes(self._width, "little") for key, row in rows.items()}
        self._lists |= new

    def _row(self, subscribers: Sequence[int]) -> int:
        bits = self._bits
        try:
            row = sum(map(bits.__getitem__, subscribers))
        except KeyError:
            for each in subscribers[: BITS_MAX + 1]:
                bits.setdefault(each, 1 << len(bits))
            if len(bits) > BITS_MAX:
                return 0
            row = sum(map(bits.__getitem__, subscribers))
        assert row.bit_count() == len(subscribers), "each is named once"
        return row


def _turned(rows: list[bytes], width: int) -> Iterator[bytes]:
    """The columns of rows of so many bytes, that of the lowest bits first."""
    count = (len(rows) + 7) // 8 * 8
    flat = b"".join(rows).ljust(width * count, b"\0")
    squares = b"".join([flat[place::width] for place in range(width)])
    bits = int.from_bytes(squares, "little")
    for distance, swapped in _SWAPPED.items():
        moved = (bits ^ bits >> distance) & _repeated(swapped, len(squares) // 8)
        bits ^= moved ^ moved << distance
    turned = bits.to_bytes(len(squares), "little")
    for place in range(0, len(squares), count):
        for bit in range(8):
            yield turned[place + bit : place + count : 8]


@lru_cache(maxsize=64)
def _repeated(pattern: bytes, times: int) -> int:
    return int.from_bytes(pattern * times, "little")
