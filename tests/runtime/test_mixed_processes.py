"""Three streams with three promises on real processes: a broker in the middle is killed, and the subscriber's own.

    left (publisher) ── root ── right (subscribers)         δ = 1

While root is down events go around it: nobody is told of a gap. While right is down its clients are away: then what
they missed of the reliable stream is announced, and of the durable one nothing is missing (decision 0015, R1.2).
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import holdfast
from durable_brokers import PATIENCE_S, brokers_in, patiently
from raw_peer import wait_until

PARENTS = {"root": None, "left": "root", "right": "root"}
STREAMS = """
[[stream]]
name = "hints"
topics = ["hints/#"]
guarantee = "best-effort"

[[stream]]
name = "alarms"
topics = ["alarms/#"]
guarantee = "reliable"

[[stream]]
name = "orders"
topics = ["orders/#"]
guarantee = "durable"
"""
TOPICS = ("hints/a", "alarms/a", "orders/a")


class Publishing:
    """Events on all three streams in turn, in one window, until told to stop; the numbers of each stream's."""

    def __init__(self, network: holdfast.Network) -> None:
        self._network = network
        self._is_over = asyncio.Event()
        self._sent: list[holdfast.Sent] = []
        self.numbers: dict[str, list[int]] = {topic: [] for topic in TOPICS}
        self.accepted = 0

    async def run(self) -> None:
        async with self._network.publisher(window=300, timeout=PATIENCE_S) as publisher:
            while not self._is_over.is_set() or len(self._sent) % len(TOPICS):
                topic = TOPICS[len(self._sent) % len(TOPICS)]
                self._sent.append(await publisher.send(topic, timeout=PATIENCE_S))
                self.numbers[topic].append(self._sent[-1].id.n)
                self._count()
                await asyncio.sleep(0.002)  # about 500 a second: what is asserted does not depend on it
        self._count()
        assert self.accepted == len(self._sent)

    def _count(self) -> None:
        while self.accepted < len(self._sent) and isinstance(
            self._sent[self.accepted].outcome, holdfast.Receipt
        ):
            self.accepted += 1

    async def wait_more(self) -> None:
        """Until there are receipts of what is sent from now on."""
        upto = len(self._sent) + 150
        await wait_until(lambda: self.accepted >= upto, PATIENCE_S)

    def stop(self) -> None:
        self._is_over.set()


class Taking:
    """Everything a subscription gets."""

    def __init__(self, items: holdfast.Subscription) -> None:
        self._items = items
        self.taken: list[holdfast.Item] = []

    async def run(self) -> None:
        async for item in self._items:
            self.taken.append(item)

    def numbers(self, topic: str) -> list[int]:
        """Of the events on a topic, in the order they came; each once, and rising."""
        found = [each.n for each in self.taken if isinstance(each, holdfast.Event) and each.topic == topic]
        assert all(one < other for one, other in pairwise(found)), topic
        return found

    def gaps(self) -> list[holdfast.Gap]:
        return [each for each in self.taken if isinstance(each, holdfast.Gap)]

    def is_told(self, n: int) -> bool:
        """Whether something is said of an event that is not logged: that it is there, or may be missing."""
        return any(gap.after < n <= gap.upto for gap in self.gaps()) or n in self.numbers("alarms/a")


@patiently
async def test_a_broker_on_the_way_is_killed_and_then_the_subscribers_own(tmp_path: Path) -> None:
    with brokers_in(tmp_path, PARENTS, streams=STREAMS, delta=1) as brokers:
        await brokers.start(*PARENTS)
        async with (
            holdfast.connect(brokers.url("left"), name="p", timeout=PATIENCE_S) as network,
            holdfast.connect(brokers.url("right"), name="u", timeout=PATIENCE_S) as reader,
            reader.subscribe("#", buffer=100_000, timeout=PATIENCE_S) as all_items,
            reader.subscribe("#", durable="kept", buffer=100_000, timeout=PATIENCE_S) as kept_items,
        ):
            assert not network.is_member
            publishing = Publishing(network)
            everybody = [Taking(all_items), Taking(kept_items)]
            publisher = asyncio.create_task(publishing.run())
            readers = [asyncio.create_task(each.run()) for each in everybody]
            await publishing.wait_more()

            brokers.kill("root")
            await publishing.wait_more()
            await brokers.start("root")
            await publishing.wait_more()
            upto = {topic: numbers[-1] for topic, numbers in publishing.numbers.items()}
            for taking in everybody:
                await wait_until(lambda: _have(taking, upto), PATIENCE_S)  # noqa: B023  awaited at once
                assert taking.gaps() == []
                alarms = [n for n in publishing.numbers["alarms/a"] if n <= upto["alarms/a"]]
                assert taking.numbers("alarms/a")[: len(alarms)] == alarms

            brokers.kill("right")
            await publishing.wait_more()  # though the subscribers' broker is down
            await brokers.start("right")
            await wait_until(lambda: reader.is_ready, PATIENCE_S)
            await publishing.wait_more()
            publishing.stop()
            await publisher
            upto = {topic: numbers[-1] for topic, numbers in publishing.numbers.items()}
            for taking in everybody:
                await wait_until(lambda: _have(taking, upto), PATIENCE_S)  # noqa: B023  awaited at once
                assert taking.numbers("orders/a") == publishing.numbers["orders/a"]
                assert [n for n in publishing.numbers["alarms/a"] if not taking.is_told(n)] == []
                assert {gap.reason for gap in taking.gaps()} == {"disconnected"}
                assert set(taking.numbers("hints/a")) <= set(publishing.numbers["hints/a"])
            for task in readers:
                task.cancel()


def _have(taking: Taking, upto: dict[str, int]) -> bool:
    """Whether the last of the streams that promise something have come."""
    return all(taking.numbers(topic)[-1:] >= [upto[topic]] for topic in ("alarms/a", "orders/a"))
