"""Where no stream is logged there is nothing durable, and that is said, by name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import holdfast
from holdfast.client.stream_map import StreamMap
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication
from holdfast.messages.streams import Guarantee, Order, StreamOrder
from holdfast.streams.checkpoint_token import Token
from scenario import scenario

ASKED: list[dict[str, Any]] = [
    {"durable": "d"},
    {"start": "earliest"},
    {"start": Token()},
    {"start": datetime(2026, 1, 1, tzinfo=UTC)},
]


@pytest.mark.parametrize("options", ASKED, ids=str)
@pytest.mark.parametrize("delta", [None, 1])
def test_a_network_without_logs_refuses_what_needs_one(options: dict[str, Any], delta: int | None) -> None:
    @scenario
    async def ask() -> None:
        with holdfast.memory.Network("nothing-logged", delta=delta) as net:
            async with holdfast.connect(net.url) as network:
                assert network.is_member == (delta is not None)
                with pytest.raises(holdfast.Refused, match=r"no (durable )?stream"):
                    await network.subscribe("#", timeout=2, **options).__aenter__()
                async with network.subscribe("#", silence=True) as items:
                    await network.publish("a")
                    assert isinstance(await items.get(), holdfast.Event)
                    assert items.token == Token()

    ask()


def test_a_member_refuses_to_publish_on_a_durable_stream() -> None:
    streams = StreamMap([StreamOrder("orders", Order.FIFO, Guarantee.DURABLE, ("orders/#",))])
    found = streams.sort([Publication("me", 7, pack(make_event("orders/eu")))])
    assert found.refused == [
        (7, "the stream 'orders' is durable, and its events are published by plain clients only", "")
    ]
    assert not found.reliable
    assert not found.best_effort
