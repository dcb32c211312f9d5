"""Receipts of streams that are logged: where an event is, in the order things become known."""

from __future__ import annotations

import pytest
from logged_port import PUBEND, LoggedPort, turns

from holdfast.client import effect as effects
from holdfast.client.aio import Receipt
from holdfast.client.errors import Unknown
from holdfast.messages.durable import Run
from scenario import scenario


@scenario
async def test_a_receipt_says_where_the_event_is_logged() -> None:
    port = LoggedPort()
    port.accepts = False
    async with port.connect() as network, network.publisher() as out:
        sent = [await out.send("a", n=n) for n in (1, 2, 3, 4, 9)]
        await turns()
        port.say(effects.Placed(PUBEND, 1, (Run(1, 500, 2),), (Run(3, 400, 1),)))
        assert all(each.outcome is None for each in sent), "accepted is what is acknowledged"
        port.say(effects.Placed("other", 1, (), (Run(9, 0, 1),)))
        port.say(effects.Acknowledged(4, ()))
        assert [each.outcome for each in sent] == [
            Receipt(PUBEND, 500, duplicate=False),
            Receipt(PUBEND, 501, duplicate=False),
            Receipt(PUBEND, 400, duplicate=True),
            Receipt("me", 4, duplicate=False),
            None,
        ]
        port.say(effects.Acknowledged(9, ()))
        assert sent[4].outcome == Receipt("other", 0, duplicate=True)


@scenario
async def test_an_event_that_was_sent_again_is_no_duplicate_of_itself() -> None:
    """Logged was heard, the session broke before Accepted, and the repetition is answered as one."""
    port = LoggedPort()
    port.accepts = False
    async with port.connect() as network, network.publisher() as out:
        sent = await out.send("a", n=1)
        await turns()
        port.say(effects.Placed(PUBEND, 1, (Run(1, 500, 1),), ()))
        port.say(effects.Placed(PUBEND, 1, (), (Run(1, 500, 1),)))
        port.say(effects.Acknowledged(1, (1,)))
        assert await sent == Receipt(PUBEND, 500, duplicate=False)


@scenario
async def test_who_asks_again_is_told_the_same_place() -> None:
    port = LoggedPort()
    port.accepts = False
    async with port.connect() as network:
        with pytest.raises(Unknown):
            await network.publish("a", n=1, timeout=0.01)
        port.say(effects.Placed(PUBEND, 1, (Run(1, 500, 1),), ()))
        port.say(effects.Acknowledged(1, ()))
        assert await network.publish("a", n=1) == Receipt(PUBEND, 500, duplicate=True)


@scenario
async def test_places_nobody_waits_for_are_not_kept() -> None:
    port = LoggedPort()
    port.accepts = False
    async with port.connect() as network, network.publisher() as out:
        port.say(effects.Placed(PUBEND, 1, (Run(1, 500, 10_000),), ()))
        sent = await out.send("a", n=20_000)
        await turns()
        port.say(effects.Placed(PUBEND, 1, (Run(1, 500, 10_000),), ()))
        port.say(effects.Acknowledged(20_000, ()))
        assert await sent == Receipt("me", 20_000, duplicate=False)
        assert not network._outbox._placed
