"""Charts: values are where the axis says, bars are as long as their values, names do not lie on one another."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from lxml import etree

from holdfast.report.bars import Bar, BarChart
from holdfast.report.lines import HEIGHT, LABEL_APART, WIDTH, LineChart, Series
from holdfast.report.markup import element
from holdfast.report.scale import Scale, number_text, scale_over, short


@pytest.mark.parametrize(
    ("values", "is_log", "ticks"),
    [
        ([3, 97], False, [0, 20, 40, 60, 80, 100]),
        ([0.07, 0.18], False, [0, 0.05, 0.1, 0.15, 0.2]),
        ([0], False, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ([5, 160], True, [1, 10, 100, 1_000]),
        ([10], True, [10, 20, 50, 100]),
    ],
)
def test_axes_are_marked_at_round_values(values: list[float], is_log: bool, ticks: list[float]) -> None:
    scale = scale_over(values, 0, 100, is_log=is_log)
    assert scale.ticks(5) == pytest.approx(ticks)
    assert all(scale.low <= value <= scale.high for value in values)


def test_places_are_in_proportion() -> None:
    assert [Scale(0, 10, 100, 200)(value) for value in (0, 5, 10)] == [100, 150, 200]
    assert [Scale(1, 100, 0, 100, True)(value) for value in (1, 10, 100)] == [0, 50, 100]
    assert Scale(0, 10, 200, 100)(10) == 100, "upwards"


@pytest.mark.parametrize(
    ("value", "on_axes", "in_tables"),
    [
        (0, "0", "0"),
        (0.05, "0.05", "0.05"),
        (1_000, "1,000", "1,000"),
        (20_000, "20K", "20,000"),
        (2e6, "2M", "2,000,000"),
    ],
)
def test_numbers_are_short_on_axes_and_whole_in_tables(value: float, on_axes: str, in_tables: str) -> None:
    assert (short(value), number_text(value)) == (on_axes, in_tables)


def test_bars_are_as_long_as_their_values() -> None:
    drawing = BarChart("t", "u", [Bar("a", 10), Bar("b", 5), Bar("c", 0)]).svg()
    widths = [float(each.get("width")) for each in etree.fromstring(drawing).iter("rect")]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)
    assert widths[2] == 1, "nothing is a hairline"


def test_long_names_stand_above_their_bars() -> None:
    long = "a name that is longer than a bar can bear beside it"
    beside, above = BarChart("t", "u", [Bar("ab", 1)]).svg(), BarChart("t", "u", [Bar(long, 1)]).svg()
    assert 'text-anchor="end"' in beside
    assert 'text-anchor="end"' not in above


def test_names_of_lines_are_apart_and_within_the_picture() -> None:
    lines = [Series(f"line {i}", [(0, 1), (1, 1 + i / 100)]) for i in range(4)]
    tree = etree.fromstring(LineChart("t", "x", "y", lines).svg())
    names = [each for each in tree.iter("text") if "name" in (each.get("class") or "")]
    heights = sorted(float(each.get("y")) for each in names)
    assert all(b - a >= LABEL_APART - 0.1 for a, b in pairwise(heights))
    assert heights[0] > 0
    assert heights[-1] < HEIGHT
    assert all(float(each.get("x")) + 7.6 * len(each.text or "") <= WIDTH for each in names)


def test_colour_is_never_alone() -> None:
    """Every line has its name beside it, and a class of its own for its dashes."""
    lines = [Series(name, [(0, i), (1, i)]) for i, name in enumerate("abcd")]
    drawing = LineChart("t", "x", "y", lines).svg()
    assert [f'class="line c{i}"' in drawing for i in range(4)] == [True] * 4
    assert sorted(re.findall(r'class="name c\d"[^>]*>(\w)<', drawing)) == list("abcd")


def test_attributes_and_text_are_escaped() -> None:
    made = element("p", "1 < 2 & 3", class_='"quoted"', title=None)
    assert made == '<p class="&quot;quoted&quot;">1 &lt; 2 &amp; 3</p>'
    assert element("div", made) == f"<div>{made}</div>", "markup stays markup"
