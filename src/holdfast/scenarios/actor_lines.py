"""The trace lines of asking for subscriptions [contracts.md §5]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.messages.subscriptions import Partition
from holdfast.overlay.transport import Trace
from holdfast.scenarios.actor_commands import Wish

__all__ = ["asking", "subscribed", "upgraded"]


def asking(kind: str, subscriber: str, wish: Wish) -> Trace:
    """``subscribe``, ``unsubscribe`` or ``unsubscribed``."""
    asked = {"subscriber": subscriber, "subscription": wish.subscription}
    return Trace(kind, {**asked, "filter": wish.text, "durable": wish.durable})


def subscribed(subscriber: str, wish: Wish, partial: Sequence[Partition]) -> Trace:
    """The confirmation, with the partitions it does not reach behind."""
    line = asking("subscribed", subscriber, wish)
    return Trace(line.kind, {**line.fields, "partial": _partitions(partial)})


def upgraded(
    subscriber: str, wish: Wish, cleared: Sequence[Partition], partial: Sequence[Partition]
) -> Trace:
    """Some of them are over."""
    fields = {
        "subscriber": subscriber,
        "subscription": wish.subscription,
        "cleared": _partitions(cleared),
        "partial": _partitions(partial),
    }
    return Trace("upgraded", fields)


def _partitions(partitions: Sequence[Partition]) -> list[dict[str, Any]]:
    return [
        {
            "lead": each.lead,
            "incarnation": each.incarnation,
            "seq": each.number,
            "fragment": list(each.fragment),
        }
        for each in partitions
    ]
