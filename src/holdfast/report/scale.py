"""From values to places on a chart, and the round values at which an axis is marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.bench.figure import shown

__all__ = ["Scale", "number_text", "scale_over", "short"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from ``low`` to ``high`` on places from ``begin`` to ``end``; logarithmic where that is said."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Where a value is."""
        low, high, at = (
            (math.log10(self.low), math.log10(self.high), math.log10(value))
            if self.is_log
            else (self.low, self.high, value)
        )
        return round(self.begin + (at - low) / (high - low) * (self.end - self.begin), 2)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values within, at most so many."""
        if self.is_log:
            found = _powers(self.low, self.high)
            return found if len(found) > 2 else _steps(self.low, self.high)
        step = _step(self.low, self.high, most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def scale_over(
    values: Sequence[float], begin: float, end: float, *, is_log: bool = False, is_tight: bool = False
) -> Scale:
    """A scale on which all the values have room; from 0 or a round value to another one, unless it is to be tight."""
    low, high = min(values), max(values)
    if is_log:
        if low <= 0:
            raise ValueError(f"{low:g} on a logarithmic scale")
        if not is_tight:
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
        return Scale(low, high if high > low else 10 * low, begin, end, True)
    if is_tight:
        return Scale(low, high if high > low else low + 1, begin, end)
    low = min(0.0, low)
    high = high if high > low else low + 1
    step = _step(low, high, 5)
    return Scale(low, step * math.ceil(high / step - 1e-9), begin, end)


def _powers(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def _steps(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each power of ten, where the powers themselves are too few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found = [step * 10.0**power for power in range(first, last + 1) for step in (1, 2, 5)]
    return [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


def _step(low: float, high: float, most: int) -> float:
    """1, 2 or 5 times a power of ten, so that at most so many fit."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    return next(s * power for s in (1, 2, 5, 10, 20) if (high - low) / (s * power) <= most)


def number_text(value: float) -> str:
    """A number as a table has it: a whole one as it is, others with as many decimals as mean something."""
    return f"{value:,.0f}" if value == int(value) else shown(value)


def short(value: float) -> str:
    """A number as an axis has it."""
    if value and abs(value) < 0.01:
        return f"{value:.0e}"
    for size, suffix in ((1e6, "M"), (1e4, "K")):
        if abs(value) >= size:
            return f"{value / (1e6 if suffix == 'M' else 1e3):g}{suffix}"
    return f"{value:,.10g}" if abs(value) >= 1_000 else f"{value:.4g}"
