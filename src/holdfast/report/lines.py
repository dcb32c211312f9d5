"""A chart of lines, each with its name beside it, as SVG.

Lines differ in colour, dash and name, so that nobody needs to tell colours apart. What a paper says are single points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from holdfast.report.markup import Markup, element
from holdfast.report.scale import Scale, scale_over, short

__all__ = ["LineChart", "Series"]

WIDTH, HEIGHT = 460, 290
LEFT, TOP, BOTTOM = 54, 40, 44
CHARACTER = 7.6  #: how wide one is, about
LABEL_APART = 16
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or the points that a paper states. Its name stands at its end, or where it is highest."""

    name: str
    points: Sequence[Point]
    named: Literal["end", "peak"] = "end"
    is_papers: bool = False
    colour: int | None = None  #: by its place in the chart unless told


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines over one axis; ``marks`` are moments on it that have a name."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    marks: Sequence[tuple[float, str]] = ()
    is_log_x: bool = False
    is_log_y: bool = False
    x_ticks: Sequence[float] | None = field(default=None)

    def svg(self) -> Markup:
        """Drawn."""
        ends = [len(s.name) for s in self.series if s.named == "end"]
        right = WIDTH - 10 - (CHARACTER * max(ends) + 6 if ends else 0)
        points = [point for series in self.series for point in series.points]
        across = [*(x for x, _ in points), *(at for at, _ in self.marks)]
        x = scale_over(across, LEFT, right, is_log=self.is_log_x, is_tight=True)
        y = scale_over([p[1] for p in points], HEIGHT - BOTTOM, TOP, is_log=self.is_log_y)
        return element(
            "svg",
            element("title", self.title),
            *self._axes(x, y),
            *self._marks(x, y),
            *(self._drawn(i, series, x, y) for i, series in enumerate(self.series)),
            *self._names(x, y),
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            class_="chart",
        )

    def _axes(self, x: Scale, y: Scale) -> list[Markup]:
        parts: list[Markup] = []
        for value in y.ticks(5):
            at = y(value)
            parts.append(element("line", class_="grid", x1=x.begin, x2=x.end, y1=at, y2=at))
            parts.append(
                element("text", short(value), class_="tick", x=LEFT - 6, y=at + 4, text_anchor="end")
            )
        for value in x.ticks() if self.x_ticks is None else self.x_ticks:
            at = x(value)
            parts.append(element("line", class_="axis", x1=at, x2=at, y1=y.begin, y2=y.begin + 4))
            parts.append(
                element("text", short(value), class_="tick", x=at, y=y.begin + 18, text_anchor="middle")
            )
        parts.append(element("line", class_="axis", x1=x.begin, x2=x.end, y1=y.begin, y2=y.begin))
        parts.append(element("text", self.y_label, class_="unit", x=4, y=14))
        middle = (x.begin + x.end) / 2
        parts.append(
            element("text", self.x_label, class_="unit", x=middle, y=HEIGHT - 6, text_anchor="middle")
        )
        return parts

    def _marks(self, x: Scale, y: Scale) -> list[Markup]:
        parts: list[Markup] = []
        for value, name in self.marks:
            at = x(value)
            parts.append(element("line", class_="mark", x1=at, x2=at, y1=y.begin, y2=TOP - 14))
            is_late = at + CHARACTER * len(name) > x.end
            place, anchor = (at - 4, "end") if is_late else (at + 4, None)
            parts.append(element("text", name, class_="marked", x=place, y=TOP - 4, text_anchor=anchor))
        return parts

    def _drawn(self, i: int, series: Series, x: Scale, y: Scale) -> Markup:
        placed = [(x(a), y(b)) for a, b in series.points]
        if series.is_papers:
            shapes = [
                element("path", d=f"M{a} {b - 6}L{a + 6} {b}L{a} {b + 6}L{a - 6} {b}Z", class_="papers")
                for a, b in placed
            ]
            return element("g", *shapes)
        line = "M" + "L".join(f"{a} {b}" for a, b in placed)
        shapes = [element("path", d=line, class_=f"line c{self._colour(i)}")]
        if len(placed) <= 12:
            shapes += [
                element("circle", cx=a, cy=b, r=3, class_=f"dot c{self._colour(i)}") for a, b in placed
            ]
        return element("g", *shapes)

    def _colour(self, i: int) -> int:
        chosen = self.series[i].colour
        return (i if chosen is None else chosen) % 4

    def _names(self, x: Scale, y: Scale) -> list[Markup]:
        parts: list[Markup] = []
        ends: list[tuple[float, float, int]] = []
        for i, series in enumerate(self.series):
            if series.named == "end":
                ends.append((y(series.points[-1][1]), x(series.points[-1][0]), i))
                continue
            a, b = max(series.points, key=lambda point: point[1])
            parts.append(self._name(i, x(a) + 8, y(b) + 4))
        below = float(TOP) - LABEL_APART - 8
        for at, after, i in sorted(ends):  # from top to bottom, so far apart that all can be read
            below = max(at, below + LABEL_APART)
            parts.append(self._name(i, after + 8, below + 4))
        return parts

    def _name(self, i: int, x: float, y: float) -> Markup:
        series = self.series[i]
        kind = "papers" if series.is_papers else f"c{self._colour(i)}"
        return element("text", series.name, class_=f"name {kind}", x=round(x, 2), y=round(y, 2))
