"""The figures of [BZA §5]."""

from __future__ import annotations

from itertools import pairwise

from holdfast.bench.result import Result
from holdfast.report.bars import Bar, BarChart
from holdfast.report.lines import LineChart, Series
from holdfast.report.papers import library

__all__ = [
    "auto_acknowledge_charts",
    "chain_charts",
    "disconnection_charts",
    "filtering_charts",
    "outage_charts",
    "scaling_charts",
]

#: Over which a rate of advance is taken, in seconds.
WINDOW = 1.0


def chain_charts(result: Result) -> list[BarChart]:
    """Delays along the chain, in the middle and at worst."""
    bars = [
        Bar(str(row["what"]), float(row[column]), words, colour)
        for column, words, colour in (
            ("p50 ms", "half are faster than", 0),
            ("p99 ms", "99 of 100 are faster than", 1),
        )
        for row in result.summary_rows()
    ]
    return [BarChart("Delay along five brokers", "milliseconds", bars)]


def _stated(experiment: str, what: str) -> float:
    """A number of the paper."""
    found = next(each for each in library().experiment if each.id == experiment)
    return next(each.theirs for each in found.beside if each.what == what)


def scaling_charts(result: Result) -> list[LineChart]:
    """Fig 4: events a second with more brokers, by those with one."""
    brokers = [float(row["brokers"]) for row in result.summary_rows()]

    def grown(column: str) -> list[tuple[float, float]]:
        rates = [float(row[column]) for row in result.summary_rows()]
        return [(count, rate / rates[0]) for count, rate in zip(brokers, rates, strict=True)]

    theirs = _stated("E1.2", "events/s, four brokers") / _stated("E1.2", "events/s, one broker")
    lines = [
        Series("ours", grown("events/s")),
        Series("paper", [(1, 1), (4, theirs)], is_papers=True),
    ]
    title = "Events delivered in all, as multiples of what one broker delivers"
    return [LineChart(title, "subscribers' brokers", "times one broker", lines, x_ticks=brokers)]


def disconnection_charts(result: Result) -> list[LineChart | BarChart]:
    """Fig 6: how fast both ends advance; Fig 5: how long everybody needed."""
    times = result.numbers("t")
    lines = [
        Series(name, _advance(times, result.numbers(column)), named="peak" if name == "released" else "end")
        for name, column in (("released", "released ms"), ("delivered", "latestDelivered ms"))
    ]
    bars = [Bar(str(row["subscriber"]), float(row["caught up in, s"])) for row in result.summary_rows()]
    return [
        LineChart(
            "How fast the stream advances, and what may be forgotten",
            "seconds",
            "ms a second",
            lines,
        ),
        BarChart("How long each subscriber caught up after 5 s away", "seconds", bars),
    ]


def _advance(times: list[float], places: list[float]) -> list[tuple[float, float]]:
    """By how much it moved in a second, over windows one after the other."""
    kept = [(times[0], places[0])]
    for moment, place in zip(times, places, strict=True):
        if moment - kept[-1][0] >= WINDOW:
            kept.append((moment, place))
    return [(b[0], (b[1] - a[1]) / (b[0] - a[0])) for a, b in pairwise(kept)]


def filtering_charts(result: Result) -> list[BarChart]:
    """What is written, and what it takes."""
    charts: list[BarChart] = []
    for column, title, unit in (
        ("written, bytes/event", "Written to disk", "bytes for each event"),
        ("processor time, µs/event", "Processor time", "µs for each event"),
    ):
        bars = [
            Bar(str(row["way"]), float(row[column]), colour=0 if row["way"] == "filtering log" else 3)
            for row in result.summary_rows()
        ]
        charts.append(BarChart(title, unit, bars))
    return charts


def auto_acknowledge_charts(result: Result) -> list[LineChart]:
    """Commits a second by consumers, and the two that the paper states."""
    ours = [(float(row["consumers"]), float(row["commits/s"])) for row in result.summary_rows()]
    theirs = [(float(count), _stated("E1.5", f"{count} consumers")) for count in (25, 200)]
    lines = [Series("ours", ours), Series("paper", theirs, is_papers=True)]
    title = "Commits a second, all consumers together"
    return [LineChart(title, "consumers", "commits a second", lines, (), True, True)]


def outage_charts(result: Result) -> list[LineChart]:
    """Fig 7: how far both ends have come, while a broker is down and afterwards."""
    times = result.numbers("t")
    delivered, released = result.numbers("latestDelivered ms"), result.numbers("released ms")
    start = delivered[0] - 1_000 * times[0]
    lines = [
        Series(name, [(t, (place - start) / 1_000) for t, place in zip(times, places, strict=True)])
        for name, places in (("delivered", delivered), ("released", released))
    ]
    title = "How far the stream has come, and what may be forgotten"
    return [LineChart(title, "seconds", "seconds of the stream", lines)]
