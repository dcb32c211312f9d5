"""Filter routing: a publication leaves by the ports behind which somebody wants it, once by each [KJ §2.2].

It never leaves by the port of the broker it came from: what lies there has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.events.event import Content
from holdfast.routing.port import Port
from holdfast.routing.table import Table

__all__ = ["gather"]


def gather(table: Table, events: Sequence[Content], arrival: Port | None) -> list[Port]:
    """Give every port its share of the batch; the ports that have one, in the order they got it.

    This is the innermost loop of fan-out: one turn per delivery.
    """
    by_slot = table.by_slot
    touched: list[Port] = []
    for i, slots in enumerate(table.match(events)):
        for slot in slots:
            entry = by_slot[slot]
            assert entry is not None
            port = entry.port
            at = port.at
            if not at:
                if port is arrival:
                    continue
                touched.append(port)
            elif at[-1] == i:
                if entry.numbers:
                    port.merge(entry.numbers)
                continue
            at.append(i)
            port.subscriptions.append(entry.numbers)
    return touched
