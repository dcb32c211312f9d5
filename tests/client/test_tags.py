"""Events from behind a partition show their tags [KJ §7, R0.56]."""

from __future__ import annotations

import pytest

import holdfast
from answered import numbered
from bare_port import BarePort
from holdfast.client.effect import Delivered, Upgraded
from holdfast.messages.publications import Copy, Tag
from holdfast.messages.subscriptions import Partition
from scenario import scenario

TAG = Tag("b1", 3, 7, False)
PARTITION = Partition("b1", 3, 7, ("b2", "b3"))


@scenario
async def test_a_tagged_event_is_an_event_with_tags() -> None:
    port = BarePort()
    async with port.connect() as network, network.subscribe("#") as items:
        first, second = numbered(1, 2, publisher="p")
        port.say(Delivered(1, [first, second], [Copy(tags=(TAG,)), None]))
        tagged, plain = await items.get_batch()
        assert isinstance(tagged, holdfast.TaggedEvent)
        assert isinstance(tagged, holdfast.Event)
        assert (tagged.tags, tagged.n, tagged.topic) == ((TAG,), 1, "a")
        assert type(plain) is holdfast.Event


@scenario
async def test_tags_and_gaps_stand_beside_each_other() -> None:
    port = BarePort()
    async with port.connect() as network, network.subscribe("#", on_gap="raise") as items:
        [event] = numbered(3, publisher="p")
        gap = holdfast.Gap("p", 1, 2, "disconnected")
        port.say(Delivered(1, [gap, event], [None, Copy(tags=(TAG,))]))
        with pytest.raises(holdfast.GapFound) as found:
            await items.get()
        assert found.value.gap == gap
        taken = await items.get()
        assert isinstance(taken, holdfast.TaggedEvent)
        assert taken.n == 3


@scenario
async def test_an_upgrade_is_told_and_what_is_left_can_be_seen() -> None:
    port = BarePort()
    upgrades = []
    async with (
        port.connect() as network,
        network.subscribe("#", on_upgrade=lambda *parts: upgrades.append(parts)) as items,
    ):
        port.say(Upgraded(1, (PARTITION,), ()))
        assert upgrades == [((PARTITION,), ())]
        assert items.partial == ()
        port.say(Upgraded(9, (PARTITION,), ()))  # of a subscription that has ended
        assert len(upgrades) == 1
