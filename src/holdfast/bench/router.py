"""E2.3: what one router does for a document, a new subscription and a cancelled one [XNET §5.2, Fig 7].

Read off `holdfast bench matching`, whose patterns and documents are made with the paper's parameters. Here a
subscription is added to the index that matches; the paper's routers join it with those they have, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.bench.matching import Measurement
from holdfast.bench.overlay_finding import Check, Finding

__all__ = ["router_finding"]


def router_finding(measurements: Sequence[Measurement]) -> Finding:
    """The XPath measurements of all engines there are."""
    rows = [
        (m.job.engine, m.job.size, m.matches, m.event_us, m.add_us, m.remove_us)
        for m in measurements
        if m.job.kind == "xpath" and m.add_us is not None and m.remove_us is not None
    ]
    columns = ("engine", "subscriptions", "matches", "route µs", "register µs", "cancel µs")
    return Finding(
        "router",
        "One router (E2.3)",
        columns,
        [(*row[:2], *(round(cell, 1) for cell in row[2:])) for row in rows],
        columns,
        rows,
        [_growth(engine, rows) for engine in dict.fromkeys(row[0] for row in rows)],
        "One process, medians of three runs: XPath patterns and documents of 22 elements with the paper's parameters. "
        "Routing is parsing a document and finding everybody whose pattern matches.",
    )


def _growth(engine: str, rows: Sequence[tuple[str, int, float, float, float, float]]) -> Check:
    """Whether the work for a document grows more slowly than those who may want it."""
    found = {row[1]: row[3] for row in rows if row[0] == engine}
    least, most = min(found), max(found)
    times = found[most] / found[least]
    claim = f"{engine}: routing grows less than the number of subscriptions"
    text = f"{times:.1f} times for {most / least:g} times as many"
    return Check(claim, text, most == least or times < most / least)
