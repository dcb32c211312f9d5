"""The figures of [XNET §5] and [SESDAD §4]."""

from __future__ import annotations

from holdfast.bench.result import Result
from holdfast.report.bars import Bar, BarChart
from holdfast.report.lines import LineChart, Series

__all__ = ["link_charts", "router_charts"]


def router_charts(result: Result) -> list[LineChart]:
    """Fig 7: the work of one router, for each engine there is."""
    charts: list[LineChart] = []
    for engine in dict.fromkeys(result.column("engine")):
        rows = [row for row in result.data_rows() if row["engine"] == engine]
        lines = [
            Series(name, [(float(row["subscriptions"]), float(row[f"{name} µs"])) for row in rows])
            for name in ("route", "register", "cancel")
        ]
        title = f"One router, {engine} engine"
        charts.append(LineChart(title, "subscriptions", "µs", lines, (), True, True))
    return charts


def link_charts(result: Result) -> list[BarChart]:
    """Copies between brokers, filtering beside flooding, for each order."""
    words = {"NO": "no order", "FIFO": "FIFO order", "TOTAL": "total order"}
    orders = dict.fromkeys(row["order"] for row in result.summary_rows())
    bars = [
        Bar(
            str(row["routing"]),
            float(row["copies between brokers"]),
            words.get(str(order), str(order)),
            0 if row["routing"] == "filter" else 1,
        )
        for order in orders
        for row in result.summary_rows()
        if row["order"] == order
    ]
    return [BarChart("Copies of events that went from broker to broker", "copies", bars)]
