"""Real brokers whose logs keep what is published: somebody has subscribed for good, and never comes to read."""

from __future__ import annotations

import holdfast
from durable_brokers import Brokers
from holdfast.streams.checkpoint_token import Place, Token


async def keep_everything(brokers: Brokers, name: str = "b1") -> None:
    """Have a durable subscription that pins all logs from now on."""
    async with (
        holdfast.connect(brokers.url(name), name="keeper") as network,
        network.subscribe("#", durable="keeper"),
    ):
        pass


async def publish(brokers: Brokers, name: str, numbers: range) -> Token:
    """One event each to the topics t/0 and t/1, its number in ``i``, all accepted; how far that is."""
    async with holdfast.connect(brokers.url(name), name=f"p-{name}") as network, network.publisher() as out:
        sent = [await out.send(f"t/{i % 2}", {"i": i}, b"x" * 100) for i in numbers]
        last = [await each for each in sent][-1]
    assert last.pubend is not None
    assert last.tick is not None
    return Token({last.pubend: Place(1, last.tick)})
