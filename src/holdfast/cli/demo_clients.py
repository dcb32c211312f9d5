"""The demo's clients: a process of publishers and one of subscribers, which report by lines of JSON.

Publishers count, by the plain twin of the matching engine, what every subscriber is owed; subscribers count what they
got, and look at every number for repetitions and wrong order. Latency is from just before ``send`` in the one process
to the application in the other; both read the same clock of this machine.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from holdfast.cli.children import hold_leash
from holdfast.cli.demo_plan import Plan
from holdfast.cli.latencies import Latencies
from holdfast.client.aio import connect
from holdfast.client.item import Gap, Item
from holdfast.clock import SECOND
from holdfast.events.event import Event, make_event
from holdfast.filters.parse import parse_filter
from holdfast.matching.naive import NaiveIndex
from holdfast.scenarios.commands import Publish, Subscribe
from holdfast.scenarios.workload import draws

__all__ = ["Tally", "due_events"]

REPORT_EVERY_S: Final = 0.25
TURN_S: Final = 0.01
BUFFER: Final = 10_000
#: How long publishers wait in the end to hear of what they have sent.
LAST_RECEIPTS_S: Final = 10.0
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

    def take(self, item: Item, now: int) -> None:
        """Count one item."""
        if not isinstance(item, Event):
            self.gaps += isinstance(item, Gap)
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


class Due(NamedTuple):
    """An event, and when it is to be published, from the start."""

    at_ns: int
    event: Event


def due_events(commands: Sequence[Publish], seed: int) -> Iterator[Due]:
    """What one publisher publishes, in the order of time: the same events as in any run of the scenario."""

    def flow(command: Publish) -> Iterator[Due]:
        for i, (attributes, payload, content_type) in enumerate(draws(command, seed)):
            yield Due(i * command.interval_ns, make_event(command.topic, attributes, payload, content_type))

    return heapq.merge(*map(flow, commands), key=lambda due: due.at_ns)


async def _subscribe_all(plan: Plan, told_to_stop: asyncio.Event) -> None:
    wanted = plan.subscribing()
    tallies = {one.subscriber: Tally() for one in wanted}
    subscribed = {one.subscriber: asyncio.Event() for one in wanted}

    async def subscribe(one: Subscribe) -> None:
        name = one.subscriber
        async with (
            connect(plan.broker_of(name), name=name) as network,
            network.subscribe(one.text, buffer=BUFFER) as items,
        ):
            subscribed[name].set()
            async for batch in items.batches():
                now = time.monotonic_ns()
                for item in batch:
                    tallies[name].take(item, now)

    async def report() -> None:
        for event in subscribed.values():
            await event.wait()
        _say({"subscribed": len(subscribed)})
        await _report_often(
            lambda: {"subscribers": {name: tally.report() for name, tally in tallies.items()}}
        )

    await _run_until(told_to_stop, [*map(subscribe, wanted), report()])
    _say({"subscribers": {name: tally.report() for name, tally in tallies.items()}, "final": True})


async def _publish_all(plan: Plan, told_to_stop: asyncio.Event) -> None:
    index = NaiveIndex()
    names = {index.add(parse_filter(one.text)): one.subscriber for one in plan.subscribing()}
    expected = dict.fromkeys(names.values(), 0)
    flows = plan.publishing()
    published = dict.fromkeys(flows, 0)

    async def publish(name: str, commands: list[Publish]) -> None:
        async with (
            connect(plan.broker_of(name), name=name) as network,
            network.publisher(timeout=LAST_RECEIPTS_S) as out,
        ):
            started = time.monotonic()
            for at_ns, event in due_events(commands, plan.configuration.seed):
                while (
                    early := started + at_ns / SECOND - time.monotonic()
                ) > 0 and not told_to_stop.is_set():
                    await asyncio.sleep(min(early, TURN_S))
                if told_to_stop.is_set():
                    break
                attributes = {**event.attributes, "sent": time.monotonic_ns()}
                await out.send(event.topic, attributes, event.payload, content_type=event.content_type)
                published[name] += 1
                for matched in index.match([event])[0]:
                    expected[names[matched]] += 1

    def figures() -> dict[str, Any]:
        return {"published": published, "expected": expected}

    reporting = asyncio.create_task(_report_often(figures))
    async with asyncio.TaskGroup() as group:
        for name, commands in flows.items():
            group.create_task(publish(name, commands))
    reporting.cancel()
    _say({**figures(), "final": True})
    await told_to_stop.wait()


async def _report_often(figures: Callable[[], dict[str, Any]]) -> None:
    """At the same instants in both processes, so that what one has counted can be held against the other's count."""
    tick = 0
    while True:
        tick = max(tick, int(time.monotonic() / REPORT_EVERY_S)) + 1
        await asyncio.sleep(tick * REPORT_EVERY_S - time.monotonic())
        _say({**figures(), "tick": tick})


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
