"""A sheet: the record of a filtering log that says what was noted together.

One tick, as in [BZA §4.2, Fig 2]: behind it every subscriber it matched, with how many records back that one's previous
record is; 0: it has none.

::

    one tick     tick u64 · n × (subscriber u32, distance u32)                                               8 + 8n
    wide         tick u64, and ``WIDE`` · n × (subscriber u64, distance u64)                                 8 + 16n
    many ticks   u64: ``MANY``, subscribers above bit 16, ticks below · ticks u64 each
                 · subscribers u32 each, ascending · distances u32 each · how many each has, u16
                 · where they stand among the ticks, u16 each                            8 + 8 a tick + 10 a subscriber
                                                                                                        + 2 a match
    mapped       u64: ``MAPPED``, as above · ticks u64 each · subscribers u32 each, ascending · distances u32 each
                 · of each a bit for every tick, the first lowest in the first byte
                                                               8 + 8 a tick + 8 a subscriber + ticks/8 a subscriber

All are little-endian, and none takes more than the 8 + 16n bytes a tick of [BZA] (I21): one that has a number of
more than 32 bits is written tick by tick. Many ticks are noted at once under load, and each of their subscribers is
named once then, instead of once a tick; where they match more than every sixteenth, bits take less than places.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, compress, pairwise
from struct import Struct
from typing import Final, NamedTuple

from holdfast.storage.rows import Rows

__all__ = ["ListedSheet", "MappedSheet", "Noted", "Sheet", "parted", "read_sheet", "written"]

WIDE: Final = 1 << 63
MANY: Final = WIDE | 1 << 62
MAPPED: Final = MANY | 1 << 61

#: A sheet that has so many ticks, or so many matches, is followed by another.
TICKS_MAX: Final = 4_096
MATCHES_MAX: Final = 1 << 16

#: Lists that are the same are looked at once where each is there so many times.
_FEW: Final = 4

_NARROW_MAX: Final = (1 << 32) - 1
_WORD: Final = Struct("<Q")

#: What `compress` takes for a digit.
_CHOSEN: Final = bytes(byte == ord("1") for byte in range(256))

#: A tick, and whom it matched.
Noted = tuple[int, Sequence[int]]


class ListedSheet(NamedTuple):
    """What was noted together. Of each subscriber, which are ascending, the ticks stand behind those of the last."""

    ticks: Sequence[int]
    subscribers: Sequence[int]
    distances: Sequence[int]
    ends: Sequence[int]
    positions: Sequence[int]

    def of(self, subscriber: int) -> tuple[list[int], int]:
        """The ticks one of its subscribers matched, and how far back its record before this one is; 0: none."""
        i = _place(self.subscribers, subscriber)
        ticks, positions = self.ticks, self.positions
        begin, end = self.ends[i - 1] if i else 0, self.ends[i]
        return [ticks[at] for at in positions[begin:end]], self.distances[i]


class MappedSheet(NamedTuple):
    """What was noted together, by a bit for each tick and subscriber."""

    ticks: Sequence[int]
    subscribers: Sequence[int]
    distances: Sequence[int]
    maps: bytes

    def of(self, subscriber: int) -> tuple[list[int], int]:
        """The ticks one of its subscribers matched, and how far back its record before this one is; 0: none."""
        i = _place(self.subscribers, subscriber)
        count = len(self.ticks)
        size = (count + 7) // 8
        bits = int.from_bytes(self.maps[i * size : (i + 1) * size], "little")
        chosen = f"{bits:0{count}b}"[::-1].encode().translate(_CHOSEN)
        return list(compress(self.ticks, chosen)), self.distances[i]


Sheet = ListedSheet | MappedSheet


def _place(subscribers: Sequence[int], subscriber: int) -> int:
    i = bisect_left(subscribers, subscriber)
    assert subscribers[i] == subscriber, "a chain leads through its own records"
    return i


def parted(noted: Sequence[Noted]) -> Iterator[Sequence[Noted]]:
    """What was noted, in pieces that make one sheet each."""
    if len(noted) <= TICKS_MAX and sum([len(subscribers) for _, subscribers in noted]) <= MATCHES_MAX:
        yield noted
        return
    begin = matches = 0
    for i, (_, subscribers) in enumerate(noted):
        if i - begin == TICKS_MAX or (i > begin and matches + len(subscribers) > MATCHES_MAX):
            yield noted[begin:i]
            begin, matches = i, 0
        matches += len(subscribers)
    yield noted[begin:]


def written(noted: Sequence[Noted], number: int, last: dict[int, int], rows: Rows) -> list[bytes]:
    """What was noted as the records from a number on; ``last`` is where the chain of each subscriber begins."""
    if len(noted) > 1:
        lists = [subscribers for _, subscribers in noted]
        maps = rows.columns(lists, 2 * sum(map(len, lists)))
        if maps is not None and max(number, *maps) <= _NARROW_MAX:
            return [_mapped([tick for tick, _ in noted], number, last, maps)]
        found = _positions(lists)
        named = sorted(found)
        if max(named[-1], number) <= _NARROW_MAX:
            return [_many([tick for tick, _ in noted], number, last, {each: found[each] for each in named})]
    return [_one(tick, subscribers, number + i, last) for i, (tick, subscribers) in enumerate(noted)]


def _positions(lists: Sequence[Sequence[int]]) -> Mapping[int, array[int]]:
    """By subscriber the positions of the lists it is in, ascending."""
    alike = {id(each): each for each in lists}  # whoever matches remembers its answers
    at: defaultdict[int, list[int]] = defaultdict(list)
    if len(alike) * _FEW > len(lists):
        for position, subscribers in enumerate(lists):
            for subscriber in subscribers:
                at[subscriber].append(position)
        return {subscriber: array("H", positions) for subscriber, positions in at.items()}
    for position, key in enumerate(map(id, lists)):
        at[key].append(position)
    found: dict[int, array[int]] = {}
    mixed: set[int] = set()
    for key, several in at.items():
        positions = array("H", several)
        for subscriber in alike[key]:
            known = found.get(subscriber)
            if known is None:
                found[subscriber] = positions[:]
            else:
                if known[-1] > positions[0]:
                    mixed.add(subscriber)
                known += positions
    return found | {each: array("H", sorted(found[each])) for each in mixed}


def _many(
    ticks: Sequence[int], number: int, last: dict[int, int], positions: Mapping[int, array[int]]
) -> bytes:
    flat = array("H")
    for each in positions.values():
        flat += each
    counts = list(map(len, positions.values()))
    return _named(MANY, ticks, number, last, positions) + _bytes("H", counts) + _bytes("H", flat)


def _mapped(ticks: Sequence[int], number: int, last: dict[int, int], maps: Mapping[int, bytes]) -> bytes:
    return _named(MAPPED, ticks, number, last, maps) + b"".join(maps.values())


def _named(
    kind: int, ticks: Sequence[int], number: int, last: dict[int, int], subscribers: Mapping[int, object]
) -> bytes:
    """What sheets of many ticks begin with."""
    parts = [
        _WORD.pack(kind | len(subscribers) << 16 | len(ticks)),
        _bytes("Q", ticks),
        _bytes("I", list(subscribers)),
        _bytes("I", [number - last.get(subscriber, number) for subscriber in subscribers]),
    ]
    last.update(dict.fromkeys(subscribers, number))
    return b"".join(parts)


def _one(tick: int, subscribers: Sequence[int], number: int, last: dict[int, int]) -> bytes:
    pairs: list[int] = []
    for subscriber in sorted(subscribers):
        pairs += (subscriber, number - last.get(subscriber, number))
        last[subscriber] = number
    if max(pairs) <= _NARROW_MAX:
        return _WORD.pack(tick) + _numbers(len(pairs), "I").pack(*pairs)
    assert tick < 1 << 62
    return _WORD.pack(tick | WIDE) + _numbers(len(pairs), "Q").pack(*pairs)


def read_sheet(record: bytes) -> Sheet:
    """What a record says."""
    (word,) = _WORD.unpack_from(record)
    if word & MANY == MANY:
        ticks, subscribers = word & 0xFFFF, word >> 16 & _NARROW_MAX
        ends = [*accumulate((8, 8 * ticks, 4 * subscribers, 4 * subscribers))]
        noted, named, distances = [
            _array(kind, record[slice(*part)]) for kind, part in zip("QII", pairwise(ends), strict=True)
        ]
        if word & MAPPED == MAPPED:
            return MappedSheet(noted, named, distances, record[ends[-1] :])
        places = _array("H", record[ends[-1] :])
        counts, positions = places[:subscribers], places[subscribers:]
        return ListedSheet(noted, named, distances, list(accumulate(counts)), positions)
    kind, size = ("Q", 8) if word & WIDE else ("I", 4)
    pairs = _numbers((len(record) - 8) // size, kind).unpack_from(record, 8)
    count = len(pairs) // 2
    return ListedSheet((word & ~WIDE,), pairs[::2], pairs[1::2], range(1, count + 1), (0,) * count)


def _bytes(kind: str, numbers: Sequence[int]) -> bytes:
    column = array(kind, numbers)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _array(kind: str, data: bytes) -> array[int]:
    column: array[int] = array(kind, data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


@lru_cache(maxsize=1024)
def _numbers(count: int, kind: str) -> Struct:
    return Struct(f"<{count}{kind}")
