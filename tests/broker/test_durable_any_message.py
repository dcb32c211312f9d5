"""Any message of durable streams, with any value that can be read, at any moment: nobody else feels it.

What cannot be read is refused by the wire, and never gets here.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from durable_desk import ORDERS, TOTAL, Desk, as_read

import by_hand
from by_hand import hello, publish
from holdfast.broker.settings import Stream
from holdfast.clock import SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Acknowledge, Credit, Detach
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted
from holdfast.messages.subscriptions import Subscribe
from holdfast.messages.ticks import Start
from hostile import NEIGHBOUR
from hostile_durable import DURABLE, PUBENDS, resume
from hostile_values import number


def under_fire(stream: Stream) -> tuple[Desk, int, int]:
    """A broker with a pubend, whose neighbour b2 is hostile; a publisher and a durable reader stand by."""
    desk = Desk([NEIGHBOUR], [stream], name="b1")
    desk.meet(NEIGHBOUR, "orders@b2/0", filters=["a"])
    reader = desk.reader("bystander", durable="bystander")
    return desk, desk.publisher("publisher", 1), reader


@pytest.mark.parametrize("stream", [ORDERS, replace(TOTAL, sequencer="b1")], ids=["fifo", "total"])
@pytest.mark.parametrize("seed", range(20))
def test_no_message_at_any_moment_is_felt_by_bystanders(seed: int, stream: Stream) -> None:
    draw = Random(seed)
    desk, publisher, reader = under_fire(stream)
    for n in range(2, 30):
        enemy = desk.meet(NEIGHBOUR, "orders@b2/0", filters=["a"], incarnation=n)
        desk.say(enemy, Start("orders@b2/0", 100))
        for kind in draw.choices(list(DURABLE), k=6):
            for message in as_read(DURABLE[kind](draw)):
                if enemy not in desk.closed:
                    desk.say(enemy, message)
        desk.say(publisher, publish("publisher", n))
        desk.wait(draw.choice((0, SECOND)))
        if enemy not in desk.closed:
            desk.lose(enemy)
    ours = [each.n for _, each in desk.events(reader) if each.publisher == "publisher"]
    assert ours == list(range(1, 30))
    assert not [gap for gap in desk.gaps(reader) if gap[0] == "orders@b1/0"]
    assert max(each.upto for each in desk.said(publisher, Accepted)) == 29


def wishes(draw: Random, subscription: int) -> list[Message]:
    """What a client might say of a subscription, or what it takes for one."""
    places = {draw.choice(PUBENDS): number(draw) for _ in range(draw.randrange(3))}
    said = (
        Credit(subscription, number(draw)),
        Acknowledge(subscription, places, number(draw)),
        Detach(subscription),
    )
    return draw.choices(said, k=2)


@pytest.mark.parametrize("seed", range(20))
def test_no_client_whatever_it_wants_is_felt_by_bystanders(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_hand, "WAKES_MAX", 100)  # who has little credit has many turns
    draw = Random(seed)
    desk, publisher, reader = under_fire(ORDERS)
    for n in range(2, 30):
        name = f"enemy {draw.randrange(3)}"
        enemy = desk.connect()
        desk.say(enemy, hello(name, incarnation=n))
        for i in range(1, 4):
            filter = draw.choice(("#", "a", "b"))
            wish = Subscribe(SubscriptionId(name, n, i), filter, (), None, resume(draw))
            for message in [wish, *wishes(draw, i)]:
                for read in as_read(message):
                    desk.say(enemy, read)
        desk.say(publisher, publish("publisher", n))
        desk.wait(draw.choice((0, SECOND)))
        if draw.random() < 0.5 and enemy not in desk.closed:
            desk.lose(enemy)
    assert desk.got(reader) == list(range(1, 30))
    assert not desk.gaps(reader)
