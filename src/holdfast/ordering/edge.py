"""From the name of an order to the edge that keeps it."""

from __future__ import annotations

from holdfast.messages.streams import Order
from holdfast.ordering.fifo import Fifo
from holdfast.ordering.order import Edge
from holdfast.ordering.unordered import Unordered

__all__ = ["new_edge"]


def new_edge(order: Order) -> Edge:
    """An edge past which nothing has gone yet."""
    return Fifo() if order is Order.FIFO else Unordered()
