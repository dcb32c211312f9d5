"""Small steps of tests in a ``memory://`` network whose time is stepped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import holdfast
from holdfast import memory

__all__ = ["number", "rest", "taken", "until"]


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition; in ``net.in_time``, since nothing else lets time pass."""
    while not holds():
        await asyncio.sleep(0)


async def rest(net: memory.Network, seconds: float) -> None:
    """Let time pass in small steps, so that clients have their turns."""
    end = net.now + seconds
    await net.in_time(until(lambda: net.now >= end), seconds + 1)


async def taken(items: holdfast.Subscription) -> list[holdfast.Item]:
    """What has arrived."""
    try:
        return await items.get_batch(timeout=0)
    except holdfast.TimedOut:
        return []


def number(item: holdfast.Item) -> int:
    """The number of an event, which this must be."""
    assert isinstance(item, holdfast.Event), item
    return item.n
