"""Which events of a log a filter may match, told from their columns: most that it does not need not be looked at.

The normal form of a filter is ALL and ANY over "this value lies in that region" (``filters.normal``), and of events
that are alike a value is a column: a region is asked of all of them at once. What cannot be asked so may match, and so
may events that are packed in their own way. The filter itself then judges what may match: a sieve never changes an
answer.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.events.topic import topic_levels
from holdfast.filters import normal
from holdfast.filters.expression import Attribute, Filter
from holdfast.filters.normal import ALWAYS, Formula, Member, normalise
from holdfast.filters.region import BYTES, NUMBER, STRING, TOP, Intervals, Region
from holdfast.filters.topic import ANYTHING
from holdfast.pipeline.alike import Alike, Engine
from holdfast.pipeline.dividing import divided

__all__ = ["Passed", "Sieve"]

INTERVALS_MAX: Final = 64  #: of one region; with more, looking at each event is not slower


class Passed(NamedTuple):
    """The numbers of events that match for sure, and of those that may; both ascending."""

    sure: list[int]
    maybe: list[int]


class Sieve:
    """Of one filter."""

    def __init__(self, wanted: Filter) -> None:
        self._pattern = None if wanted.pattern == ANYTHING else wanted.pattern
        self._formula = normalise(wanted.condition)

    def passed(self, records: Engine) -> Passed:
        """Those that match, or may; of a topic alone nothing is in doubt but events that are of no kind."""
        found, left = divided(records)
        passed = [alike.which[np.flatnonzero(self._may_match(alike))] for alike in found]
        through = np.concatenate([np.empty(0, np.int64), *passed]).tolist()
        if self._formula == ALWAYS:
            return Passed(sorted(through), left)
        return Passed([], sorted([*through, *left]))

    def _may_match(self, alike: Alike) -> Any:
        """Of each of them, by a column of numpy."""
        may = np.ones(len(alike.which), bool)
        if self._pattern is not None:
            topics = alike.topics().dictionary_encode()
            answers = [self._pattern.matches(topic_levels(topic)) for topic in topics.dictionary.to_pylist()]
            may &= np.array(answers, bool)[topics.indices.to_numpy()]
        if self._formula != ALWAYS and may.any():
            may &= _may(self._formula, alike)
        return may


def _may(formula: Formula, alike: Alike) -> Any:
    """A column of numpy, or one answer for all."""
    match formula:
        case normal.All(parts):
            may: Any = True
            for part in parts:
                may = may & _may(part, alike)
                if not np.any(may):
                    break
            return may
        case normal.Any(parts):
            may = False
            for part in parts:
                may = may | _may(part, alike)
            return may
        case Member(Attribute(name), region):
            return _lies(region, name, alike)
        case _:
            return True  # what is calculated, two values that are compared, LIKE, XPATH: looked at one by one


def _lies(region: Region, name: str, alike: Alike) -> Any:
    """Whether the values of an attribute may lie in a region."""
    kind = alike.kinds.get(name)
    if kind is None:
        return region.absent
    if kind is bool:
        answers = np.array([region.contains(False), region.contains(True)])
        return answers[alike.attribute(name).to_numpy(zero_copy_only=False).astype(np.int8)]
    if kind is bytes:
        return bool(region.families[BYTES])
    intervals = region.families[STRING if kind is str else NUMBER]
    if len(intervals) > INTERVALS_MAX:
        return True
    column = alike.attribute(name)
    return _text_lies(intervals, column) if kind is str else _number_lies(intervals, column)


def _number_lies(intervals: Intervals, column: Any) -> Any:
    """Numbers are rounded as a double has them, those of the column and the bounds: then bounds belong, too."""
    numbers = column.to_numpy().astype(np.float64)
    may = np.zeros(len(numbers), bool)
    for (low, _), (high, _) in intervals:
        may |= (numbers >= float(low)) & (numbers <= float(high))
    return may


def _text_lies(intervals: Intervals, column: Any) -> Any:
    """Texts are ordered by code point, and Arrow orders their bytes, which is the same."""
    if any(not _is_text(bound) for interval in intervals for bound, _ in interval):
        return True
    points = [low for (low, _), (high, _) in intervals if low == high]
    may = pc.is_in(column, pa.array(points, pa.string())).to_numpy(zero_copy_only=False)
    for (low, _), (high, _) in intervals:
        if low != high:
            within = pc.greater_equal(column, pa.scalar(low, pa.string()))
            if high is not TOP:
                within = pc.and_(within, pc.less_equal(column, pa.scalar(high, pa.string())))
            may = may | within.to_numpy(zero_copy_only=False)
    return may


def _is_text(bound: Any) -> bool:
    """Whether Arrow can have it: what begins with a character ends before the next, which may be a surrogate."""
    return bound is TOP or not any("\ud800" <= character <= "\udfff" for character in bound)
