"""Link traffic: how many copies of events crossed each link, from the ``forward`` lines of traces, side by side.

What filtering saves over flooding [SESDAD §4, E3.2] shows link by link; the last hop to each subscriber is counted too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from holdfast.scenarios.trace import TraceLine

__all__ = ["Traffic", "link_traffic", "traffic_table"]

#: Copies by (from, to).
Traffic: TypeAlias = Mapping[tuple[str, str], int]


def link_traffic(trace: Iterable[TraceLine]) -> Traffic:
    """What crossed each link; the run must have been traced in full (``LoggingLevel full``)."""
    return Counter((line["from"], line["to"]) for line in trace if line["kind"] == "forward")


def traffic_table(columns: Mapping[str, Traffic]) -> str:
    """One row per link and direction, one column per run, and a sum below."""
    links = sorted({link for traffic in columns.values() for link in traffic})
    rows = [["link", *columns]]
    rows += [
        [f"{a} -> {b}", *(str(traffic.get((a, b), 0)) for traffic in columns.values())] for a, b in links
    ]
    rows.append(["all", *(str(sum(traffic.values())) for traffic in columns.values())])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "".join(_row(row, widths) for row in rows)


def _row(cells: list[str], widths: list[int]) -> str:
    first, *numbers = (
        cell.ljust(width) if i == 0 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *numbers]) + "\n"
