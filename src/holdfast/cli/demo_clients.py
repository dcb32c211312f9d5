"""The demo's clients: a process of publishers and one of subscribers, which report by lines of JSON.

Publishers count, by the plain twin of the matching engine, what every subscriber is owed; subscribers count what they
got, and look at every number for repetitions and wrong order. Latency is from just before ``send`` in the one process
to the application in the other; both read the same clock of this machine.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from holdfast.cli.children import hold_leash
from holdfast.cli.demo_plan import TRAFFIC, Plan, Publisher, Subscriber
from holdfast.cli.latencies import Latencies
from holdfast.client.aio import connect
from holdfast.client.item import Gap
from holdfast.events.event import Event
from holdfast.filters.parse import parse_filter
from holdfast.matching.naive import NaiveIndex

__all__ = ["Tally"]

REPORT_EVERY_S: Final = 0.25
TURN_S: Final = 0.01
BUFFER: Final = 10_000
#: How long publishers wait in the end to hear of what they have sent.
LAST_RECEIPTS_S: Final = 3.0
#: Numbers of one publisher that are remembered, to tell a repetition from a late arrival.
RECENT_MAX: Final = 100_000


class Tally:
    """What one subscriber got."""

    def __init__(self) -> None:
        self.delivered = 0  #: without repetitions
        self.duplicated = 0
        self.disordered = 0
        self.gaps = 0
        self.latencies = Latencies()  #: since the last report
        self._recent: dict[str, dict[int, None]] = {}
        self._last: dict[str, int] = {}

    def take(self, item: Event | Gap, now: int) -> None:
        """Count one item."""
        if isinstance(item, Gap):
            self.gaps += 1
            return
        recent = self._recent.setdefault(item.publisher, {})
        if item.n in recent:
            self.duplicated += 1
            return
        recent[item.n] = None
        if len(recent) > RECENT_MAX:
            del recent[next(iter(recent))]
        last = self._last.get(item.publisher, 0)
        self.disordered += item.n < last
        self._last[item.publisher] = max(last, item.n)
        self.delivered += 1
        sent = item.attributes["sent"]
        assert isinstance(sent, int)
        self.latencies.add(now - sent)

    def report(self) -> dict[str, Any]:
        """Everything so far; the latencies since the last report."""
        latencies, self.latencies = self.latencies, Latencies()
        counts = {name: getattr(self, name) for name in ("delivered", "duplicated", "disordered", "gaps")}
        return {**counts, "latencies": latencies.as_json()}


async def _subscribe_all(plan: Plan, told_to_stop: asyncio.Event) -> None:
    tallies = {one.name: Tally() for one in plan.subscribers}
    subscribed = {one.name: asyncio.Event() for one in plan.subscribers}

    async def subscribe(one: Subscriber) -> None:
        async with (
            connect(plan.urls[one.broker], name=one.name) as network,
            network.subscribe(one.filter, buffer=BUFFER) as items,
        ):
            subscribed[one.name].set()
            async for batch in items.batches():
                now = time.monotonic_ns()
                for item in batch:
                    tallies[one.name].take(item, now)

    async def report() -> None:
        for event in subscribed.values():
            await event.wait()
        _say({"subscribed": len(subscribed)})
        await _report_often(
            lambda: {"subscribers": {name: tally.report() for name, tally in tallies.items()}}
        )

    await _run_until(told_to_stop, [*(subscribe(one) for one in plan.subscribers), report()])
    _say({"subscribers": {name: tally.report() for name, tally in tallies.items()}, "final": True})


async def _publish_all(plan: Plan, told_to_stop: asyncio.Event) -> None:
    index = NaiveIndex()
    names = {index.add(parse_filter(one.filter)): one.name for one in plan.subscribers}
    published = {one.name: 0 for one in plan.publishers}
    expected = {one.name: 0 for one in plan.subscribers}

    async def publish(one: Publisher) -> None:
        rng = random.Random(f"{plan.seed} {one.name}")
        make = TRAFFIC[one.traffic]
        async with (
            connect(plan.urls[one.broker], name=one.name) as network,
            network.publisher(timeout=LAST_RECEIPTS_S) as out,
        ):
            started = time.monotonic()
            while not told_to_stop.is_set() and (elapsed := time.monotonic() - started) < plan.seconds:
                for _ in range(int(elapsed * one.rate) - published[one.name]):
                    event = make(rng)
                    attributes = {**event.attributes, "sent": time.monotonic_ns()}
                    await out.send(event.topic, attributes, event.payload, content_type=event.content_type)
                    published[one.name] += 1
                    for matched in index.match([event])[0]:
                        expected[names[matched]] += 1
                await asyncio.sleep(TURN_S)

    def figures() -> dict[str, Any]:
        return {"published": published, "expected": expected}

    reporting = asyncio.create_task(_report_often(figures))
    async with asyncio.TaskGroup() as group:
        for one in plan.publishers:
            group.create_task(publish(one))
    reporting.cancel()
    _say({**figures(), "final": True})
    await told_to_stop.wait()


async def _report_often(figures: Callable[[], dict[str, Any]]) -> None:
    while True:
        await asyncio.sleep(REPORT_EVERY_S)
        _say(figures())


async def _run_until(told_to_stop: asyncio.Event, work: list[Any]) -> None:
    """Run coroutines that never end until told to stop, or until one of them fails."""
    tasks = [asyncio.ensure_future(one) for one in work]
    stopping = asyncio.ensure_future(told_to_stop.wait())
    done, _ = await asyncio.wait([stopping, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _say(report: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


async def _main(role: str, plan: Plan) -> None:
    told_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_stop.set)
    await {"publishers": _publish_all, "subscribers": _subscribe_all}[role](plan, told_to_stop)


if __name__ == "__main__":
    hold_leash(int(sys.argv[3]))
    asyncio.run(_main(sys.argv[1], Plan.from_json(sys.argv[2])))
