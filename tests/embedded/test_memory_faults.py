"""Whatever happens to a subscriber's broker or link: what is missing is announced, nothing comes twice, order holds.

Of a break between two brokers a best-effort stream tells nobody; so those stay whole here, unless one crashes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from examples import examples
from holdfast import Event, Gap, Item, memory
from scenario import run_scenario, scenario

STEPS = st.lists(
    st.one_of(
        st.sampled_from(["publish", "publish", "crash", "restart", "cut", "heal", "take"]),
        st.floats(0.01, 8.0),
    ),
    max_size=25,
)


class Story:
    """A publisher at b2 that is never disturbed, and a subscriber at b3 that is."""

    def __init__(
        self, net: memory.Network, publisher: holdfast.Network, items: holdfast.Subscription
    ) -> None:
        self.items: list[Item] = []
        self.published = 0
        self._net = net
        self._publisher = publisher
        self._subscription = items
        self._is_up = True

    async def do(self, step: str | float) -> None:
        net = self._net
        match step:
            case "publish":
                self.published += 1
                await self._publisher.publish("a", n=self.published)
            case "crash" if self._is_up:
                net.crash("b3")
                self._is_up = False
            case "restart" if not self._is_up:
                net.restart("b3")
                self._is_up = True
            case "cut":
                net.cut("s", "b3")
            case "heal":
                net.heal("s", "b3")
            case "take":
                await self.take()
            case float(seconds):
                net.advance(seconds)
                await asyncio.sleep(0)

    async def take(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        try:
            while True:
                self.items += await self._subscription.get_batch(timeout=0)
        except holdfast.TimedOut:
            return

    async def end_well(self) -> None:
        """Everything is mended; then the next event arrives."""
        for step in ("restart", "heal", 30.0, "publish", "take"):
            await self.do(step)


async def tell(steps: list[str | float]) -> Story:
    with memory.Network("story", brokers=3, stepped=True) as net:
        async with (
            holdfast.connect(net.url, broker="b2", name="p") as publisher,
            holdfast.connect(net.url, broker="b3", name="s") as subscriber,
            subscriber.subscribe("a") as items,
        ):
            story = Story(net, publisher, items)
            for step in ["publish", "take", *steps]:
                await story.do(step)
            await story.end_well()
            return story


def check(story: Story) -> None:
    upto = 0
    for item in story.items:
        first, last = (item.n, item.n) if isinstance(item, Event) else (item.after + 1, item.upto)
        assert first == upto + 1, story.items
        upto = last
    assert upto == story.published, story.items
    assert isinstance(story.items[-1], Event)


@examples(60)
@given(STEPS)
def test_every_event_is_delivered_once_in_order_or_lies_in_a_gap(steps: list[str | float]) -> None:
    async def run() -> None:
        check(await tell(steps))

    run_scenario(run())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda items: [item for item in items if not isinstance(item, Gap)],
        lambda items: [item for item in items for _ in range(2)],
        lambda items: items[::-1],
    ],
    ids=["gaps swallowed", "events twice", "order turned round"],
)
@scenario
async def test_a_client_spoiled_on_purpose_is_caught(spoil: Callable[[list[Any]], list[Any]]) -> None:
    story = await tell(["crash", 10.0, "publish", "restart", 10.0, "publish"])
    check(story)
    story.items = spoil(story.items)
    with pytest.raises(AssertionError):
        check(story)
