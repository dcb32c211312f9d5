"""A reliable network: whatever fails, within delta, nothing is lost, nothing comes twice, nothing out of order.

A story runs in virtual time: a publisher at b4, a subscriber at b3 and one at b5, and one broker or link after another
that fails and comes back [R0.3, R0.8, I1, I2].

    b1 ── b2 ── b4 (p)
     │     └─── b5 (t)
     └─── b3 (s)
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from examples import examples
from holdfast import memory
from in_memory import until
from scenario import run_scenario, scenario

BROKERS = ("b1", "b2", "b3", "b4", "b5")
LINKS = (("b1", "b2"), ("b1", "b3"), ("b2", "b4"), ("b2", "b5"), ("p", "b4"), ("s", "b3"), ("t", "b5"))

#: Who fails, how, for how long, and how long everything is whole after it.
FAULTS = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.sampled_from(["crash", "freeze"]), st.sampled_from(BROKERS)),
            st.tuples(st.just("cut"), st.sampled_from(LINKS)),
        ),
        st.floats(0.05, 4.0),
    ),
    max_size=4,
)


class Story:
    """Publishes an event every 50 ms while things fail, and collects what the subscribers get."""

    def __init__(self, net: memory.Network) -> None:
        self.net = net
        self.published = 0
        self.items: dict[str, list[holdfast.Item]] = {"s": [], "t": []}

    async def live(self, out: holdfast.Publisher, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds / 0.05)):
            self.published += 1
            await self.net.in_time(out.send("a", n=self.published))
            self.net.advance(0.05)
            await asyncio.sleep(0)

    async def collect(self, name: str, items: holdfast.Subscription) -> None:
        async for batch in items.batches():
            self.items[name] += batch

    async def fail(self, out: holdfast.Publisher, fault: Any, seconds: float) -> None:
        """One fault, and the end of it."""
        match fault:
            case "crash", broker:
                self.net.crash(broker)
                await self.live(out, seconds)
                self.net.restart(broker)
            case "freeze", broker:
                self.net.freeze(broker)
                await self.live(out, seconds)
                self.net.unfreeze(broker)
            case "cut", (a, b):
                self.net.cut(a, b)
                await self.live(out, seconds)
                self.net.heal(a, b)
        await self.live(out, 5.0)


async def tell(faults: list[Any], **options: Any) -> Story:
    async with AsyncExitStack() as stack:
        net = stack.enter_context(memory.Network("reliable", brokers=5, delta=1, stepped=True, **options))
        story = Story(net)
        clients = {
            name: await stack.enter_async_context(holdfast.connect(net.url, broker=broker, name=name))
            for name, broker in {"p": "b4", "s": "b3", "t": "b5"}.items()
        }
        out = clients["p"].publisher(window=10_000)
        for name in ("s", "t"):
            items = await stack.enter_async_context(clients[name].subscribe("#"))
            assert items.partial == ()
            stack.callback(asyncio.create_task(story.collect(name, items)).cancel)
        await story.live(out, 0.5)
        for fault, seconds in faults:
            await story.fail(out, fault, seconds)
        await net.in_time(out.flush())
        await net.in_time(
            until(lambda: all(len(each) >= story.published for each in story.items.values())), 30
        )
        return story


def check(story: Story) -> None:
    for items in story.items.values():
        assert [getattr(item, "n", item) for item in items] == list(range(1, story.published + 1))


@examples(6)
@given(FAULTS)
def test_one_failure_at_a_time_is_not_seen_by_anybody(faults: list[Any]) -> None:
    async def run() -> None:
        check(await tell(faults))

    run_scenario(run())


@pytest.mark.parametrize("broker", BROKERS)
@scenario
async def test_every_broker_may_die_the_clients_own_among_them(broker: str) -> None:
    check(await tell([(("crash", broker), 2.0)]))


@scenario
async def test_best_effort_would_not_have_passed() -> None:
    """The same story in a network that promises nothing: the check can fail."""
    with pytest.raises((AssertionError, holdfast.TimedOut)):
        check(await tell([(("crash", "b3"), 2.0)], streams={"default": ("#", "best-effort")}))
