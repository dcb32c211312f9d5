"""From what a stream promises to the edge that keeps it."""

from __future__ import annotations

from holdfast.messages.streams import Guarantee, Order
from holdfast.ordering.fifo import Fifo
from holdfast.ordering.order import Edge
from holdfast.ordering.unordered import Unordered
from holdfast.ordering.watchful import Watchful

__all__ = ["new_edge"]


def new_edge(order: Order, guarantee: Guarantee = Guarantee.BEST_EFFORT) -> Edge:
    """An edge past which nothing has gone yet."""
    if order is not Order.FIFO:
        return Unordered()
    return Watchful() if guarantee is Guarantee.RELIABLE else Fifo()
