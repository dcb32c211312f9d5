"""A chart of lying bars, each with its name before it and its value behind it, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.report.markup import Markup, element
from holdfast.report.scale import number_text

__all__ = ["Bar", "BarChart"]

WIDTH = 460
TOP, ROW, GROUP = 26, 26, 24
CHARACTER = 7.6
LABEL_MAX = 18  #: characters; longer names stand above their bars
ABOVE = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """One value; those of a group stand together under its name."""

    name: str
    value: float
    group: str = ""
    colour: int = 0
    is_papers: bool = False


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars on one scale, which begins at 0."""

    title: str
    unit: str
    bars: Sequence[Bar]

    def svg(self) -> Markup:
        """Drawn."""
        widest = max(len(bar.name) for bar in self.bars)
        begin = 4 if widest > LABEL_MAX else 12 + CHARACTER * widest
        longest = CHARACTER * max(len(number_text(bar.value)) for bar in self.bars) + 12
        most = max(*(bar.value for bar in self.bars), 0.0) or 1.0
        parts: list[Markup] = [element("text", self.unit, class_="unit", x=4, y=14)]
        at, group = float(TOP), ""
        for bar in self.bars:
            if bar.group and bar.group != group:
                group = bar.group
                parts.append(element("text", group, class_="group", x=4, y=at + 15))
                at += GROUP
            width = round((WIDTH - begin - longest) * bar.value / most, 2)
            if widest > LABEL_MAX:
                parts.append(element("text", bar.name, class_="label", x=begin, y=at + 15))
                at += ABOVE
            else:
                name = element("text", bar.name, class_="label", x=begin - 8, y=at + 15, text_anchor="end")
                parts.append(name)
            parts += self._bar(bar, begin, at, width)
            at += ROW
        return element(
            "svg",
            element("title", self.title),
            *parts,
            viewBox=f"0 0 {WIDTH} {at + 6:g}",
            role="img",
            class_="chart",
        )

    def _bar(self, bar: Bar, begin: float, at: float, width: float) -> list[Markup]:
        kind = "bar papers" if bar.is_papers else f"bar c{bar.colour % 4}"
        return [
            element("rect", x=begin, y=at + 2, width=max(width, 1), height=ROW - 8, class_=kind),
            element("text", number_text(bar.value), class_="value", x=begin + max(width, 1) + 6, y=at + 15),
        ]
