"""When a network was at rest, and who then had asked for what: the times at which traffic can be judged [I32].

A subscription takes its time to travel, and what is broken makes detours. So links are judged only while nothing had
been asked for or broken for ``QUIET_SECONDS``, and nothing was broken still.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final, NamedTuple

from holdfast.pipeline.audit.chronicle import Chronicle
from holdfast.pipeline.audit.plan import Plan
from holdfast.pipeline.audit.troubles import MASTER

__all__ = ["QUIET_SECONDS", "Wanted", "wanted_on"]

#: More than the simulated networks of the swarms need, after whatever they were put through.
QUIET_SECONDS: Final = 8.0


class Wanted(NamedTuple):
    """From ``begin`` on, and before ``end``, a link was at rest, and these filters were asked for beyond it."""

    source: str
    to: str
    begin: float
    end: float
    filters: frozenset[str]


def wanted_on(plan: Plan, links: Iterable[tuple[str, str]]) -> list[Wanted]:
    """What may pass each link, and when that is certain; nothing where everything is sent everywhere."""
    if not plan.is_filtered:
        return []
    subscribers = sorted({subscriber for subscriber, _ in plan.chronicle.asking})
    moved = _moved(plan)
    beyond = {
        link: {name for name in subscribers if name in moved or link[1] in plan.tree.way(link[0], name)}
        for link in sorted(set(links))
    }
    return [
        Wanted(*link, begin, end, frozenset(filter for who, filter in asked if who in names))
        for begin, end in _at_rest(plan)
        for asked in [list(_standing(plan.chronicle, begin))]
        for link, names in beyond.items()
    ]


def _moved(plan: Plan) -> set[str]:
    """Who has been reconnected by the script: on logged streams that may be anywhere, and the trace does not say."""
    lines = [line for line in plan.chronicle.faults if line.node == MASTER and line.kind == "reconnect"]
    return {node for line in lines for node in line.nodes or ()} if plan.is_logged else set()


def _at_rest(plan: Plan) -> Iterator[tuple[float, float]]:
    """The times between two changes, less what comes too soon after one, and less those when something was broken."""
    chronicle = plan.chronicle
    asking = [
        line.t
        for table in (chronicle.asking, chronicle.upgraded)
        for lines in table.values()
        for line in lines
    ]
    changes = sorted({*asking, *(line.t for line in chronicle.faults)})
    for last, following in zip([-inf, *changes], [*changes, inf], strict=True):
        begin = last + QUIET_SECONDS
        # Nothing begins or ends between two changes: it was broken all the time, or not at all.
        is_broken = any(each.begin <= begin < each.end for each in plan.troubles)
        if begin < following and not is_broken:
            yield begin, following


def _standing(chronicle: Chronicle, at: float) -> Iterator[tuple[str, str]]:
    """Who asks for what, from ``subscribe`` to ``unsubscribed``."""
    for (subscriber, _), lines in chronicle.asking.items():
        before = [line for line in lines if line.t <= at]
        if before and before[-1].kind != "unsubscribed":
            yield subscriber, before[-1].filter or ""
