"""The figures of [KJ §10], from what the simulator counted."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.bench.result import Cell, Result
from holdfast.report.bars import Bar, BarChart
from holdfast.report.lines import LineChart, Series

__all__ = [
    "acks_charts",
    "delay_charts",
    "load_charts",
    "locality_charts",
    "recovery_charts",
    "rows_where",
    "vector_charts",
]


def rows_where(result: Result, **cells: Cell) -> list[dict[str, Cell]]:
    """Rows of the data as dictionaries, those with these cells; ``_`` in a name is a space."""
    wanted = {name.replace("_", " "): cell for name, cell in cells.items()}
    for name in wanted:
        result.column(name)  # it is there
    return [row for row in result.data_rows() if all(row[name] == cell for name, cell in wanted.items())]


def _points(rows: Sequence[dict[str, Cell]], x: str, y: str) -> list[tuple[float, float]]:
    return [(float(row[x]), float(row[y])) for row in rows]


def _distinct(result: Result, column: str) -> list[Cell]:
    return list(dict.fromkeys(result.column(column)))


def load_charts(result: Result) -> list[LineChart]:
    """Fig 14: input and output of each core node, averaged over some seconds."""
    nodes = _distinct(result, "node")
    lives = {node: _lived(result, node) for node in nodes}
    last = max(result.numbers("second"))
    window = 5 if last > 100 else 1
    charts: list[LineChart] = []
    for node in nodes:
        rows = [row for row in rows_where(result, node=node) if float(row["second"]) < lives[node]]
        failures = [
            (end, f"{name} fails") for name, end in lives.items() if end < last and end <= lives[node]
        ]
        lines = [
            Series(name, _averaged(_points(rows, "second", f"copies {name}"), window), colour=colour)
            for name, colour in (("out", 1), ("in", 0))
        ]
        title = f"{node}: copies of events it receives and sends"
        unit = "copies a second" + (f", mean of {window} s" if window > 1 else "")
        charts.append(LineChart(title, "seconds", unit, lines, failures))
    return charts


def _averaged(points: Sequence[tuple[float, float]], window: int) -> list[tuple[float, float]]:
    """Means over whole windows, each in the middle of its own."""
    parts = [points[at : at + window] for at in range(0, len(points) - window + 1, window)]
    return [(sum(x for x, _ in part) / window, sum(y for _, y in part) / window) for part in parts]


def _lived(result: Result, node: Cell) -> float:
    """The last second in which a node sent anything."""
    return max(float(row["second"]) for row in rows_where(result, node=node) if row["copies out"])


def delay_charts(result: Result) -> list[LineChart]:
    """Fig 15: the longest delay of a second, by how many fail and how."""
    words = {
        "hang": "Brokers hang: they accept a connection and say nothing",
        "crash": "Brokers crash: they refuse at once",
    }
    counts = _distinct(result, "nodes")
    charts: list[LineChart] = []
    for manner in _distinct(result, "manner"):
        lines = {nodes: _seconds(rows_where(result, manner=manner, nodes=nodes)) for nodes in counts}
        peaks = {nodes: max(y for _, y in points) for nodes, points in lines.items()}
        if max(peaks.values()) < 1.05 * min(peaks.values()):  # they lie on one another: one line says it
            name = f"{counts[0]} to {counts[-1]} brokers: {max(peaks.values()):.1f} s"
            drawn = [Series(name, lines[counts[-1]], named="peak")]
        else:
            drawn = [
                Series(f"{nodes} broker{'s'[: nodes != 1]}: {peaks[nodes]:.1f} s", points, named="peak")
                for nodes, points in lines.items()
            ]
        charts.append(LineChart(words.get(str(manner), str(manner)), "seconds", "longest delay, s", drawn))
    return charts


def _seconds(rows: Sequence[dict[str, Cell]]) -> list[tuple[float, float]]:
    return [(x, y / 1_000) for x, y in _points(rows, "second", "longest delay ms")]


def acks_charts(result: Result) -> list[LineChart]:
    """Fig 16: acknowledging frames and bytes over a ramp of rates."""
    names = {"conf": "confirmed", "dack": "dack"}
    charts: list[LineChart] = []
    for column, unit in (("control frames/s", "frames a second"), ("control B/s", "bytes a second")):
        lines = [
            Series(
                names.get(str(mode), str(mode)), _points(rows_where(result, mode=mode), "events/s", column)
            )
            for mode in _distinct(result, "mode")
        ]
        title = f"Acknowledgements that pass one broker, {unit.split()[0]}"
        charts.append(LineChart(title, "events published a second", unit, lines, (), True, True))
    return charts


def recovery_charts(result: Result) -> list[LineChart | BarChart]:
    """Fig 17: (a) by nodes and rate, (b) by timeout and distance."""
    several = rows_where(result, part="a")
    lines = [
        Series(
            f"{nodes} at once",
            _points([row for row in several if row["nodes"] == nodes], "events/s", "knows all, s"),
        )
        for nodes in dict.fromkeys(row["nodes"] for row in several)
    ]
    bars = [
        Bar(
            f"{row['hops']} hop{'s'[: row['hops'] != 1]} away",
            float(row["knows all, s"]),
            f"timeout {row['timeout ms']} ms",
        )
        for row in rows_where(result, part="b")
    ]
    return [
        LineChart(
            "(a) One, two or three brokers restart at once",
            "events published a second",
            "seconds until it knows all",
            lines,
        ),
        BarChart("(b) The nearest neighbour that answers is farther off", "seconds until it knows all", bars),
    ]


def locality_charts(result: Result) -> list[BarChart]:
    """Queues on the way to a dead subscriber."""
    distinct = dict.fromkeys(row["δ"] for row in result.summary_rows())
    return [
        BarChart(
            f"δ = {delta}: events queued for a dead subscriber",
            "events queued, by hops from it",
            [
                Bar(f"{row['distance']}: {row['node']}", float(row["queued"]))
                for row in result.summary_rows()
                if row["δ"] == delta
            ],
        )
        for delta in distinct
    ]


def vector_charts(result: Result) -> list[LineChart]:
    """Bytes of a vector by δ and by how many travel together."""
    lines = [
        Series(
            "alone" if batch == 1 else f"{batch} together",
            _points(rows_where(result, events_together=batch), "δ", "vector bytes per event"),
        )
        for batch in _distinct(result, "events together")
    ]
    ticks = sorted(dict.fromkeys(result.numbers("δ")))
    return [LineChart("Bytes of a sequence vector, for each event", "δ", "bytes", lines, x_ticks=ticks)]
