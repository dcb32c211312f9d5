"""A publisher that knows two brokers, of which first its home is killed and then the other: every event once, in order.

    root ── near (its home), far

B1.4, I18, R1.2. While its home is down nothing is accepted and nothing is logged elsewhere; when it is back, what the
publisher has handed to the other broker meanwhile is logged, and what had been before is known.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, patiently
from raw_peer import wait_until

PARENTS = {"root": None, "near": "root", "far": "root"}


class Publishing:
    """Events one after the other, until told to stop, and their receipts."""

    def __init__(self, network: holdfast.Network) -> None:
        self._network = network
        self._is_over = asyncio.Event()
        self.receipts: list[holdfast.Receipt] = []

    async def run(self) -> None:
        async with self._network.publisher(window=200, timeout=PATIENCE_S) as publisher:
            sent: list[holdfast.Sent] = []
            while not self._is_over.is_set():
                sent.append(await publisher.send("t", {"i": len(sent)}, bytes(200), timeout=PATIENCE_S))
                self._take(sent)
                await asyncio.sleep(0.001)  # its rate, not a wait: what is asserted does not depend on it
        self._take(sent)

    def _take(self, sent: list[holdfast.Sent]) -> None:
        while len(self.receipts) < len(sent) and isinstance(
            receipt := sent[len(self.receipts)].outcome, holdfast.Receipt
        ):
            self.receipts.append(receipt)

    async def wait_more(self) -> None:
        """Until there are receipts of what is sent from now on."""
        upto = len(self.receipts) + 300
        await wait_until(lambda: len(self.receipts) >= upto, PATIENCE_S)

    def stop(self) -> None:
        self._is_over.set()


async def killed(brokers: Brokers, network: holdfast.Network, name: str, other: str) -> None:
    """Kill the broker a client is at, let it find the other one, and start the first again."""
    assert network.broker == name
    brokers.kill(name)
    await wait_until(lambda: network.is_ready and network.broker == other, PATIENCE_S)
    await brokers.start(name)


@patiently
async def test_the_home_of_a_publisher_is_killed_and_then_where_it_went(tmp_path: Path) -> None:
    with brokers_in(tmp_path, PARENTS) as brokers:
        await brokers.start(*PARENTS)
        urls = [brokers.url("near"), brokers.url("far")]
        async with (
            holdfast.connect(brokers.url("root"), name="u", timeout=PATIENCE_S) as reader,
            reader.subscribe("#", durable="u", buffer=100_000, timeout=PATIENCE_S) as items,
            holdfast.connect(urls, name="p", timeout=PATIENCE_S) as network,
        ):
            publishing = Publishing(network)
            task = asyncio.create_task(publishing.run())
            await publishing.wait_more()
            await killed(brokers, network, "near", "far")
            await publishing.wait_more()
            assert (network.broker, network.home) == ("far", "near")
            await killed(brokers, network, "far", "near")
            await publishing.wait_more()
            publishing.stop()
            await task
            count = len(publishing.receipts)
            given = [await items.get(PATIENCE_S) for _ in range(count)]
        events = [item for item in given if isinstance(item, holdfast.LoggedEvent)]
        assert [event.attributes["i"] for event in events] == list(range(count))
        places = [(event.pubend, event.tick) for event in events]
        assert places == [(receipt.pubend, receipt.tick) for receipt in publishing.receipts]
        assert {pubend for pubend, _ in places} == {"all@near/0"}
        assert [path.name for name in PARENTS for path in brokers.logs(name) if "events" in path.name] == [
            brokers.logs("near")[0].name
        ]
