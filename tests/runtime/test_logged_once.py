"""R1.3: an event is logged once in the whole network, however many durable subscribers want it.

    phb ── shb1, shb2, shb3, shb4, each with 25 durable subscribers

What a subscriber-hosting broker keeps of it is who matched. All files of all brokers are read.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, patiently

HOSTS = ("shb1", "shb2", "shb3", "shb4")
SUBSCRIBERS = 25  #: of each
MARK = b"the only copy of this text there is"


def copies(brokers: Brokers) -> dict[str, int]:
    """By file how often the payload is in it, for all files of all brokers that have it."""
    files = (path for name in ("phb", *HOSTS) for path in brokers.data(name).rglob("*") if path.is_file())
    counts = {str(path.relative_to(brokers.folder)): path.read_bytes().count(MARK) for path in files}
    return {path: count for path, count in counts.items() if count}


async def subscribers(stack: AsyncExitStack, brokers: Brokers, host: str) -> list[holdfast.Subscription]:
    """All of one broker, from one connection."""
    connecting = holdfast.connect(brokers.url(host), name=f"at-{host}", timeout=PATIENCE_S)
    network = await stack.enter_async_context(connecting)
    wanted = [
        network.subscribe("orders/# WHERE price > 100", durable=f"{host}-{i}", timeout=PATIENCE_S)
        for i in range(SUBSCRIBERS)
    ]
    return list(await asyncio.gather(*map(stack.enter_async_context, wanted)))


async def take(items: holdfast.Subscription) -> bytes:
    """The next event's payload, committed."""
    item = await items.get(PATIENCE_S)
    assert isinstance(item, holdfast.LoggedEvent)
    await items.commit(item, timeout=PATIENCE_S)
    return item.payload


@patiently
async def test_a_hundred_durable_subscribers_share_one_copy(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"phb": None, **dict.fromkeys(HOSTS, "phb")}) as brokers:
        await brokers.start("phb", *HOSTS)
        async with AsyncExitStack() as stack:
            everybody = [each for host in HOSTS for each in await subscribers(stack, brokers, host)]
            async with holdfast.connect(brokers.url("phb"), name="p", timeout=PATIENCE_S) as network:
                await network.publish("orders/eu", {"price": 101}, MARK, timeout=PATIENCE_S)
            assert await asyncio.gather(*map(take, everybody)) == [MARK] * len(HOSTS) * SUBSCRIBERS
        before = copies(brokers)  # while they run, and again when all is written
        for name in ("phb", *HOSTS):
            brokers.stop(name)
        [(path, count)] = copies(brokers).items()
        assert before == {path: count} == {path: 1}
        assert path.startswith("data/phb/streams/events-")
