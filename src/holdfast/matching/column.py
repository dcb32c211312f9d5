"""One column of the index: all that subscriptions ask of one value, and how an event's value finds them.

Equalities are hashed by value. A bounded interval of numbers is filed in a grid whose cells are at least as wide as
itself, so it lies in one or two of them and a value looks into one cell per grid; widths are rounded up to powers
of four, which keeps the grids few. Half-lines are sorted by their bound: every bound on the right side of the value
is a hit, none is looked at in vain. Intervals of strings are hashed by the prefix their members share.

``price`` estimates the share of events that would open the bucket a region is filed in; the index files each
subscription where that is lowest. Until events teach us better the subscriptions themselves are the sample: a
value many ask for is taken to be frequent, and an interval counts by its share of the span of all bounds seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Final

from holdfast.events.value import Value
from holdfast.filters.region import PRESENT, Cut, Region, after_prefix
from holdfast.filters.subject import Subject
from holdfast.matching.bounds import Bounds
from holdfast.matching.interval import clamp, float_bound, floor_float, is_crumbled, shared_prefix, whole
from holdfast.matching.posting import Bucket, Entry, Source, Test, WideTest

__all__ = ["Column", "Filed", "Grid", "Symbol", "SymbolTest"]

_FINEST: Final = -40  # exponent of the smallest cell

_SMOOTHING: Final = 8.0  # subscriptions before the sample is believed
_UNKNOWN_SPAN: Final = 0.25
_GRID_WASTE: Final = 2.0  # cells are wider than what is filed in them
_HALF: Final = 0.5
_PER_PREFIX_CHARACTER: Final = 0.25


class SymbolTest(Test):
    """Equality with a value that other subscriptions may ask for too; counted at its symbol."""

    __slots__ = ("_alone", "symbol")

    is_shared: ClassVar[bool] = True

    def __init__(self, lane: int, lo: float, hi: float, symbol: Symbol) -> None:
        super().__init__(lane, lo, hi)
        self.symbol = symbol
        self._alone: tuple[Test, ...] = (self,)

    def alone(self) -> tuple[Test, ...]:
        """Itself, so that it is counted; one tuple for all who hold it."""
        return self._alone


class Filed(Bucket):
    """A bucket in one of a column's structures; ``home[key]`` is this bucket."""

    __slots__ = ("column", "home", "key")

    def __init__(self, column: Column, home: Any, key: object) -> None:
        super().__init__()
        self.column = column
        self.home = home
        self.key = key


class Symbol(Filed):
    """A string that subscriptions ask for by equality: their bucket, its number in the lane, a test to share."""

    __slots__ = ("code", "test", "test_uses")

    def __init__(self, column: Column, key: str, code: float) -> None:
        super().__init__(column, column.strings, key)
        self.code = code
        self.test: SymbolTest | None = None  #: while somebody holds it
        self.test_uses = 0

    def acquire_test(self, lane: int) -> SymbolTest:
        """The test for this string, counted."""
        if self.test is None:
            self.test = SymbolTest(lane, self.code, self.code + 1.0, self)
        self.test_uses += 1
        return self.test

    def release_test(self) -> None:
        """Count one holder less."""
        self.test_uses -= 1
        if not self.test_uses:
            self.test = None


class Grid:
    """Cells of one width over the numbers; ``scale`` is one over the width."""

    __slots__ = ("cells", "scale")

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.cells: dict[int, Bucket] = {}


class Column(Source):
    """The index over one attribute or computed value.

    ``number``, ``text`` and ``truth`` are its lanes in the vector, one per type family.
    """

    __slots__ = (
        "absent",
        "booleans",
        "compute",
        "filed",
        "grids",
        "high_seen",
        "key",
        "low_seen",
        "memo",
        "name",
        "next_code",
        "number",
        "number_above",
        "number_below",
        "points",
        "prefix_lengths",
        "prefixes",
        "present",
        "stamp",
        "strings",
        "text",
        "text_above",
        "text_below",
        "truth",
    )

    def __init__(
        self, key: object, name: str, compute: Callable[[Subject], Value | None] | None, lane: int
    ) -> None:
        super().__init__()
        self.key = key
        self.name = name  #: of the attribute, or empty
        self.compute = compute  #: for anything but an attribute
        self.stamp = 0  #: the event for which ``memo`` was computed
        self.memo: Value | None = None
        self.number, self.text, self.truth = lane, lane + 1, lane + 2
        self.filed = 0
        self.points: dict[Any, Bucket] = {}
        self.strings: dict[str, Symbol] = {}
        self.next_code = 0.0
        self.booleans: dict[Any, Bucket] = {}
        self.grids: list[Grid] = []
        self.number_above = Bounds()
        self.number_below = Bounds()
        self.text_above = Bounds()
        self.text_below = Bounds()
        self.prefixes: dict[str, Bucket] = {}
        self.prefix_lengths: dict[int, int] = {}
        self.present: dict[Any, Bucket] = {}
        self.absent: dict[Any, Bucket] = {}
        self.low_seen = math.inf
        self.high_seen = -math.inf

    # An event's value

    def collect(
        self, value: Value, vector: list[float], touched: list[int], found: list[list[Entry]]
    ) -> None:
        """Lay the value out in its lane and add the entries it leads to."""
        if isinstance(value, str):
            self._collect_text(value, vector, touched, found)
        elif isinstance(value, float):
            self._collect_number(value, value, vector, touched, found)
        elif isinstance(value, bool):
            vector[self.truth] = 1.0 if value else 0.0
            touched.append(self.truth)
            if self.booleans:
                bucket = self.booleans.get(value)
                if bucket is not None:
                    found.append(bucket.entries)
        elif isinstance(value, int):
            self._collect_number(value, floor_float(value), vector, touched, found)
        if self.present:
            found.append(self.present[None].entries)

    def _collect_text(
        self, value: str, vector: list[float], touched: list[int], found: list[list[Entry]]
    ) -> None:
        symbol = self.strings.get(value)
        if symbol is not None:
            vector[self.text] = symbol.code
            touched.append(self.text)
            if symbol.entries:
                found.append(symbol.entries)
        if self.prefixes:
            for length in self.prefix_lengths:
                if length <= len(value):
                    bucket = self.prefixes.get(value[:length])
                    if bucket is not None:
                        found.append(bucket.entries)
        if len(self.text_above):
            self.text_above.collect_upto((value, 0), found)
        if len(self.text_below):
            self.text_below.collect_above((value, 0), found)

    def _collect_number(
        self, value: Value, number: float, vector: list[float], touched: list[int], found: list[list[Entry]]
    ) -> None:
        vector[self.number] = number
        touched.append(self.number)
        if self.points:
            point = self.points.get(value)
            if point is not None:
                found.append(point.entries)
        if self.grids:
            clamped = clamp(number)
            for grid in self.grids:
                bucket = grid.cells.get(int(clamped * grid.scale))
                if bucket is not None:
                    found.append(bucket.entries)
        if len(self.number_above):
            self.number_above.collect_upto((value, 0), found)
        if len(self.number_below):
            self.number_below.collect_above((value, 0), found)

    # What a region costs, where it is filed, how it is tested

    def price(self, region: Region) -> float:
        """The estimated share of events that would open the buckets of this region."""
        numbers, strings, booleans, raw = region.families
        if raw:
            return 1.0
        total = _HALF if region.absent else 0.0
        for low, high in numbers:
            total += self._price_of_numbers(low, high)
        for low, high in strings:
            total += self._price_of_strings(low, high)
        return total + _HALF * len(booleans)

    def _price_of_numbers(self, low: Cut, high: Cut) -> float:
        a, b = low[0], high[0]
        if a == b:
            return self._price_of_crowd(self.points.get(a))
        span = self.high_seen - self.low_seen
        if not span > 0.0:
            return _UNKNOWN_SPAN
        share = (min(clamp(b), self.high_seen) - max(clamp(a), self.low_seen)) / span
        if math.isinf(a) or math.isinf(b):
            return max(share, 0.0)
        return max(share * _GRID_WASTE, 0.0)

    def _price_of_strings(self, low: Cut, high: Cut) -> float:
        if low[0] == high[0]:
            return self._price_of_crowd(self.strings.get(low[0]))
        prefix = shared_prefix(low, high)
        return max(_PER_PREFIX_CHARACTER ** len(prefix), 1.0 / (self.filed + _SMOOTHING)) if prefix else _HALF

    def _price_of_crowd(self, bucket: Bucket | None) -> float:
        crowd = 0 if bucket is None else len(bucket.entries)
        return (crowd + 1) / (self.filed + _SMOOTHING)

    def place(self, region: Region, buckets: list[Bucket]) -> bool:
        """List the buckets an entry for this region belongs in.

        Returns whether whatever finds the entry there lies in the region, so that it need not be tested again.
        """
        numbers, strings, booleans, raw = region.families
        exact = True
        if raw:
            buckets.append(self._filed(self.present, None))
            exact = region.families == PRESENT.families
        else:
            exact = not is_crumbled(numbers) and not is_crumbled(strings)
            for low, high in whole(numbers):
                exact = self._file_numbers(low, high, buckets) and exact
            for low, high in whole(strings):
                exact = self._file_strings(low, high, buckets) and exact
            for low, high in booleans:
                for truth in range(low[0], high[0]):
                    buckets.append(self._filed(self.booleans, truth == 1))
        if region.absent:
            buckets.append(self._filed(self.absent, None))
        return exact

    def _filed(self, home: Any, key: object) -> Bucket:
        bucket = home.get(key)
        if bucket is None:
            bucket = home[key] = Filed(self, home, key)
        assert isinstance(bucket, Bucket)
        return bucket

    def _file_numbers(self, low: Cut, high: Cut, buckets: list[Bucket]) -> bool:
        a, b = low[0], high[0]
        if a == b:
            buckets.append(self._filed(self.points, a))
            return True
        if b == math.inf:
            buckets.append(self._filed(self.number_above, low))
            return True
        if a == -math.inf:
            buckets.append(self._filed(self.number_below, high))
            return True
        first, last = clamp(a), clamp(b)
        exponent = max(math.frexp(last - first)[1], _FINEST)
        scale = math.ldexp(1.0, -(exponent + exponent % 2))
        grid = self._grid(scale)
        for cell in range(int(first * scale), int(last * scale) + 1):
            buckets.append(self._filed(grid.cells, cell))
        return False

    def _grid(self, scale: float) -> Grid:
        for grid in self.grids:
            if grid.scale == scale:
                return grid
        grid = Grid(scale)
        self.grids.append(grid)
        return grid

    def _file_strings(self, low: Cut, high: Cut, buckets: list[Bucket]) -> bool:
        if low[0] == high[0]:
            buckets.append(self._string(low[0]))
            return True
        prefix = shared_prefix(low, high)
        if prefix:
            if prefix not in self.prefixes:
                self.prefix_lengths[len(prefix)] = self.prefix_lengths.get(len(prefix), 0) + 1
            buckets.append(self._filed(self.prefixes, prefix))
            return bool(low == (prefix, 0) and high == after_prefix(prefix))
        if low != ("", 0):
            buckets.append(self._filed(self.text_above, low))
            return not isinstance(high[0], str)
        buckets.append(self._filed(self.text_below, high))
        return True

    def _string(self, value: str) -> Symbol:
        symbol = self.strings.get(value)
        if symbol is None:
            symbol = self.strings[value] = Symbol(self, value, self.next_code)
            self.next_code += 1.0
        return symbol

    def test(self, region: Region) -> Test:
        """The test for a region; it counts as a use of the column."""
        self.uses += 1
        if self.compute is not None:
            return WideTest(self, region)  # computed when it is asked for, so its lanes may be empty
        numbers, strings, booleans, raw = region.families
        if not region.absent and not raw and len(numbers) + len(strings) + len(booleans) == 1:
            if numbers:
                low, high = numbers[0]
                self._widen(low[0], high[0])
                lo, hi = float_bound(low), float_bound(high)
                if lo == lo and hi == hi:
                    return Test(self.number, lo, hi)
            elif strings:
                low, high = strings[0]
                if low[0] == high[0]:
                    return self._string(low[0]).acquire_test(self.text)
            else:
                low, high = booleans[0]
                return Test(self.truth, float(low[0]), float(high[0]))
        return WideTest(self, region)

    def observe(self, region: Region) -> None:
        """Let a region's bounds count for the span of this column's numbers."""
        for low, high in region.families[0]:
            self._widen(low[0], high[0])

    def _widen(self, a: Any, b: Any) -> None:
        if a < self.low_seen and a != -math.inf:
            self.low_seen = clamp(a)
        if b > self.high_seen and b != math.inf:
            self.high_seen = clamp(b)

    def file(self, bucket: Filed, entry: Entry) -> None:
        """File an entry in one of this column's buckets."""
        bucket.file(entry)
        self.filed += 1
        self.uses += 1

    # Taking back

    def bury(self, bucket: Filed) -> None:
        """An entry of this bucket has died."""
        self.filed -= 1
        self.uses -= 1
        if bucket.bury():
            self._drop(bucket)

    def release(self, test: Test) -> None:
        """A test of this column is needed no more by one of its holders."""
        self.uses -= 1
        if isinstance(test, SymbolTest):
            test.symbol.release_test()
            if not test.symbol.entries:
                self._drop(test.symbol)

    def _drop(self, bucket: Filed) -> None:
        if isinstance(bucket, Symbol) and bucket.test_uses:
            return
        del bucket.home[bucket.key]
        if bucket.home is self.prefixes:
            length = len(str(bucket.key))
            self.prefix_lengths[length] -= 1
            if not self.prefix_lengths[length]:
                del self.prefix_lengths[length]
        elif bucket.home is not self.points and not bucket.home:
            self.grids = [grid for grid in self.grids if grid.cells]
