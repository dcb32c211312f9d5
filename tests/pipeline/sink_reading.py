"""What an ordinary subscriber gets of what Spark has written: everything there is, in the order of each pubend."""

from __future__ import annotations

import asyncio
from itertools import count

import holdfast
from durable_brokers import PATIENCE_S, Brokers

_marks = count()


async def everything(brokers: Brokers, *names: str, topics: str = "t") -> list[holdfast.Event]:
    """All events so far of the logs of these brokers, below a topic; what is behind a mark in each log came later."""
    number = next(_marks)
    marks = {f"mark-{name}-{number}" for name in names}
    found: list[holdfast.Event] = []
    begun: set[str] = set()  #: pubends of which there was an event
    async with asyncio.timeout(PATIENCE_S):
        for name in names:
            async with holdfast.connect(brokers.url(name), name=f"mark-{name}-{number}") as network:
                await network.publish(f"{topics}/mark", {})
        async with (
            holdfast.connect(brokers.url(names[0]), name=f"reader-{number}") as network,
            network.subscribe(f"{topics}/#", start="earliest") as items,
        ):
            async for item in items:
                if isinstance(item, holdfast.Gap):  # before a log's first event: there never was anything
                    assert item.pubend not in begun, item
                    continue
                assert isinstance(item, holdfast.LoggedEvent)
                begun.add(item.pubend)
                if item.publisher in marks:
                    marks.discard(item.publisher)
                    if not marks:
                        break
                elif not item.topic.endswith("/mark"):
                    found.append(item)
    return found


def of(app: str, events: list[holdfast.Event]) -> list[holdfast.Event]:
    """Those of one application; their numbers ascend."""
    found = [each for each in events if each.publisher == app]
    assert [each.n for each in found] == sorted({each.n for each in found})
    return found
