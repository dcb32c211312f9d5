"""A broker with reliable and durable streams at once: who its clients are, what they are answered, what they are sent.

Decision 0015: beside a durable stream every client is a plain one, whatever it says; one window and one session for
all streams, each of which keeps its promise.
"""

from __future__ import annotations

import pytest
from durable_desk import Desk

from by_hand import a_publication, hello, publish
from holdfast.broker.settings import Stream
from holdfast.messages.durable import Logged
from holdfast.messages.overlay import DepthAck, Holding, Role
from holdfast.messages.publications import Accepted, Batch, Deliveries, Publish
from holdfast.messages.session import MEMBER, Farewell, Goodbye, Hello, Kind, Overlay, Welcome
from holdfast.messages.streams import Guarantee
from holdfast.streams.storing import AppendEvents

HINTS = Stream("hints", ("hints/#",))
ALARMS = Stream("alarms", ("alarms/#",), guarantee=Guarantee.RELIABLE)
ORDERS = Stream("orders", ("orders/#",), guarantee=Guarantee.DURABLE)
STREAMS = (HINTS, ALARMS, ORDERS)


def desk_beside(*filters: str) -> tuple[Desk, int]:
    """A broker whose neighbour wants these: what is reliable is safe when the neighbour says that it has it."""
    desk = Desk(["left"], STREAMS, delta=1)
    return desk, desk.meet("left", filters=filters)


def one_window(*topics: str) -> Publish:
    """Events of ``p`` on these topics in turn, numbered from 1, in one message."""
    return Publish(Batch([a_publication("p", n, topic) for n, topic in enumerate(topics, 1)]))


def has_alarms(desk: Desk, neighbour: int, upto: int) -> None:
    """The neighbour has so many of the broker's reliable events."""
    life = desk.broker.settings.incarnation
    desk.say(neighbour, DepthAck((Holding("left", 1, "b", life, upto, upto),)))


def delivered(desk: Desk, connection: int) -> list[tuple[int, tuple[int, ...]]]:
    """The numbers of the events that are not logged, each with the subscriptions it is for."""
    return [
        (message.batch.publications[i].n, numbers)
        for message in desk.said(connection, Deliveries)
        for i, numbers in zip(message.at, message.subscriptions, strict=True)
    ]


# Who they are


def test_a_client_that_could_be_a_member_is_not_invited() -> None:
    desk = Desk(streams=STREAMS)
    [welcome] = desk.say(desk.connect(), hello("u", features=(MEMBER,)))
    assert isinstance(welcome, Welcome)
    assert welcome.invitation is None
    assert [each.guarantee for each in welcome.streams] == [each.guarantee for each in STREAMS]


@pytest.mark.parametrize("streams", [STREAMS, (ORDERS,), (HINTS, ORDERS)])
@pytest.mark.parametrize(
    "said",
    [
        hello("u", overlay=Overlay(Role.SUBSCRIBER, 0, is_recovering=False, home="b")),
        hello("u", overlay=Overlay(Role.PUBLISHER, 0, is_recovering=False, home="b")),
        hello("u", Kind.BROKER, overlay=Overlay(Role.SUBSCRIBER, 0, is_recovering=False, home="b")),
    ],
)
def test_a_client_that_says_it_is_a_member_is_refused_for_good(
    streams: tuple[Stream, ...], said: Hello
) -> None:
    desk = Desk(streams=streams)
    connection = desk.connect()
    [goodbye] = desk.say(connection, said)
    assert isinstance(goodbye, Goodbye)
    assert goodbye.farewell is Farewell.UNKNOWN
    assert "the stream orders is durable" in goodbye.reason
    assert connection in desk.closed
    assert desk.broker.node.topology.get("u") is None


# What they are answered


def test_receipts_come_in_order_whatever_the_streams() -> None:
    """One window over all three: nothing is acknowledged behind what is on no disk, or at no other broker, yet."""
    desk, left = desk_beside("alarms/#")
    desk.publisher("first", 1, topic="orders/a")  # so that the pubend is there
    publisher = desk.client("p")
    desk.hold(AppendEvents)
    topics = ("hints/a", "orders/a", "alarms/a", "orders/a", "alarms/a", "hints/a")
    assert desk.say(publisher, one_window(*topics)) == []
    has_alarms(desk, left, 1)
    assert [each.upto for each in desk.said(publisher, Accepted)] == [1], "2 is on no disk"
    desk.hold()
    assert [each.upto for each in desk.said(publisher, Accepted)] == [1, 3, 4], "5 is at no other broker"
    logged = [run for each in desk.said(publisher, Logged) for run in each.runs]
    assert [run.n for run in logged] == [2, 4]
    has_alarms(desk, left, 2)
    assert [each.upto for each in desk.said(publisher, Accepted)] == [1, 3, 4, 6]


@pytest.mark.parametrize("topic", ["alarms/a", "orders/a"])
def test_who_comes_again_is_not_told_that_what_was_not_safe_is_accepted(topic: str) -> None:
    """A session that breaks changes nothing of what other brokers have, or the disk."""
    desk, left = desk_beside("alarms/#")
    desk.publisher("first", 1, topic="orders/a")
    publisher = desk.client("p")
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 1, topic=topic))
    desk.lose(publisher)
    again = desk.client("p")
    assert desk.say(again, publish("p", 1, topic=topic)) == []
    has_alarms(desk, left, 1)
    desk.hold()
    assert desk.said(again, Accepted)[-1].upto == 1


# What they are sent


def test_an_event_that_is_not_logged_comes_once_for_all_subscriptions_of_a_client() -> None:
    """A client turns away what comes twice: a durable subscription beside another one would have none of it."""
    desk = Desk(streams=STREAMS)
    reader = desk.reader("u", "#")
    desk.subscribe(reader, "u", "#", number=2, durable="stays")
    desk.subscribe(reader, "u", "+/a", number=3, durable="too")
    publisher = desk.client("p")
    desk.say(publisher, one_window("hints/a", "alarms/a"))
    assert [(n, set(numbers)) for n, numbers in delivered(desk, reader)] == [(1, {1, 2, 3}), (2, {1, 2, 3})]


def test_who_reads_a_durable_subscription_gets_what_is_not_logged_and_nobody_else_does() -> None:
    desk = Desk(streams=STREAMS)
    first = desk.reader("u", "#", durable="stays")
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 1, topic="alarms/a"))
    second = desk.reader("v", "#", number=7, durable="stays")
    desk.say(publisher, publish("p", 2, topic="alarms/a"))
    desk.lose(second)
    desk.say(publisher, publish("p", 3, topic="alarms/a"))
    assert (delivered(desk, first), delivered(desk, second)) == ([(1, (1,))], [(2, (7,))])


def test_so_it_does_at_a_broker_that_was_started_again() -> None:
    """Its client may be there before the network knows the subscription again."""
    desk, _ = desk_beside()
    desk.reader("u", "#", durable="stays")
    desk.confirms = False
    desk.restart()
    left = desk.meet("left")
    reader = desk.client("u")
    desk.subscribe(reader, "u", "#", durable="stays", token={})
    desk.confirms = True
    desk.lose(left)
    desk.meet("left", incarnation=2)
    publisher = desk.client("p")
    desk.say(publisher, publish("p", 1, topic="alarms/a"))
    assert delivered(desk, reader) == [(1, (1,))]
