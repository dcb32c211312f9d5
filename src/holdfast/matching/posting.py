"""What the index keeps of a subscription: where it is found, and what is left to check when it is.

Every subscription is filed in a few *buckets* (usually one), under the most selective thing it asks for; an event
opens the buckets its values lead to. Each entry found there carries the *tests* for everything else it asks.

A test is ``lo <= vector[lane] < hi``: before any bucket is opened the event has been laid out as a vector of floats,
one lane per attribute and type family, NaN where there is no such value, which fails every test. Strings stand in
their lane as the number the column gave them. Whatever that cannot say exactly (an integer bound that is no
float, an interval of strings, IS NULL, computed values, XPath) is a ``WideTest``, whose bounds are NaN so that the
quick check fails, and which is then asked in full.

Removal is lazy: a removed entry asks for what never holds, and a bucket throws out its dead when they are half.
"""

from __future__ import annotations

from typing import ClassVar, Final

from holdfast.filters.region import Region

__all__ = ["CONSTANT", "NAN", "ONCE", "Branch", "Bucket", "Entry", "Extra", "Source", "Test", "WideTest"]

NAN: Final = float("nan")


class Test:
    """``lo <= vector[lane] < hi``."""

    __slots__ = ("hi", "lane", "lo")

    is_shared: ClassVar[bool] = False  #: whether the object is more than its three numbers

    def __init__(self, lane: int, lo: float, hi: float) -> None:
        self.lane = lane
        self.lo = lo
        self.hi = hi

    def alone(self) -> tuple[Test, ...]:
        """What an entry must keep of its only test, beside the three numbers."""
        return NO_TESTS


class WideTest(Test):
    """Membership of a column's value in a region, asked in full."""

    __slots__ = ("region", "source")

    is_shared: ClassVar[bool] = True

    def __init__(self, source: Source, region: Region) -> None:
        super().__init__(0, NAN, NAN)
        self.source = source
        self.region = region

    def alone(self) -> tuple[Test, ...]:
        """Itself: there are no numbers."""
        return (self,)


class Source:
    """Where a value comes from that tests are about; the index knows the kinds."""

    __slots__ = ("uses",)

    def __init__(self) -> None:
        self.uses = 0  #: tests and buckets that need it


NO_TESTS: Final[tuple[Test, ...]] = ()
ALWAYS_LO: Final = 0.0  # lane 0 holds CONSTANT in every event
ALWAYS_HI: Final = 1.0
CONSTANT: Final = 0.5


class Branch:
    """A part of a condition that is not a plain conjunction: ALL or ANY of tests and further branches."""

    __slots__ = ("branches", "conjunctive", "tests")

    def __init__(self, conjunctive: bool, tests: tuple[Test, ...], branches: tuple[Branch, ...]) -> None:
        self.conjunctive = conjunctive
        self.tests = tests
        self.branches = branches


class Extra:
    """What few entries have: a topic to verify, branches, more than one bucket."""

    __slots__ = ("branches", "buckets", "stamp", "topic")

    def __init__(
        self, topic: Bucket | None, branches: tuple[Branch, ...], buckets: tuple[Bucket, ...], stamp: int
    ) -> None:
        self.topic = topic
        self.branches = branches
        self.buckets = buckets  #: all of them, if there are several
        self.stamp = stamp  #: the last event it was found for, or ONCE if no event can find it twice


ONCE: Final = -1


class Entry:
    """One subscription in the index.

    The numbers of its first test are written into the entry itself (``lane``, ``lo``, ``hi``, at its head), so that
    most candidates are turned away without another look at memory. ``more`` holds the other tests, and the first one
    too if it is more than three numbers.
    """

    __slots__ = ("bucket", "extra", "hi", "lane", "lo", "more", "subscription")

    def __init__(self, subscription: int) -> None:
        self.lane = 0
        self.lo = ALWAYS_LO
        self.hi = ALWAYS_HI
        self.subscription = subscription
        self.more: tuple[Test, ...] = NO_TESTS
        self.extra: Extra | None = None
        self.bucket: Bucket | None = None

    def ask(self, tests: list[Test]) -> None:
        """Ask these tests of every event that finds the entry."""
        if not tests:
            return
        first = tests[0]
        self.lane, self.lo, self.hi = first.lane, first.lo, first.hi
        if len(tests) == 1:
            self.more = first.alone()
        else:
            self.more = tuple(tests if first.is_shared else tests[1:])

    def tests(self) -> list[Test]:
        """The tests it asks; a plain first test is made anew."""
        if self.lane == 0 and not self.more:
            return []
        if self.more and self.more[0].is_shared and self.more[0].lane == self.lane:
            return list(self.more)
        return [Test(self.lane, self.lo, self.hi), *self.more]

    def buckets(self) -> tuple[Bucket, ...]:
        """Every bucket it is filed in."""
        if self.extra is not None and self.extra.buckets:
            return self.extra.buckets
        return () if self.bucket is None else (self.bucket,)

    def die(self) -> None:
        """From now on nothing matches; the buckets forget it when they are tidied."""
        self.lane = 0
        self.lo, self.hi = ALWAYS_HI, ALWAYS_LO
        self.more = NO_TESTS
        self.extra = None
        self.bucket = None


class Bucket:
    """Entries that one value, one cell of a grid, one bound or one topic pattern leads to."""

    __slots__ = ("dead", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.dead = 0

    def __len__(self) -> int:
        return len(self.entries) - self.dead

    def file(self, entry: Entry) -> None:
        """Add an entry."""
        if self.entries:
            self.entries.append(entry)
        else:
            self.entries = [entry]  # most stay alone, and append() would make room for four

    def bury(self) -> bool:
        """One of the entries has died. Returns whether the bucket is empty now."""
        self.dead += 1
        if self.dead * 2 > len(self.entries):
            self.entries = [entry for entry in self.entries if entry.bucket is not None]
            self.dead = 0
        return not self.entries
