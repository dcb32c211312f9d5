"""The client's session: getting in, staying in, coming back, and being sent away."""

from __future__ import annotations

from typing import Any

import pytest

from answered import Answered
from holdfast.client.effect import Away, Ended, Ready
from holdfast.client.input import Leave, Open
from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.message import Message
from holdfast.messages.overlay import Ready as OverlayReady
from holdfast.messages.overlay import Relay, Told, Trail
from holdfast.messages.publications import Accepted, Batch, Deliveries, Publications, Publish, Rejected
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.subscriptions import Confirmed, Lore, Refused, Subscribe, Unsubscribe, Withdrawn
from holdfast.overlay.transport import Close, Connect, Connected, ConnectFailed, Disconnected, Received, Wake


def test_it_dials_introduces_itself_and_is_ready_when_welcomed() -> None:
    world = Answered()
    [dial] = world.step(Open())
    assert dial == Connect("", "b:1")
    world.connected()
    [hello] = world.said
    assert isinstance(hello, Hello)
    assert (hello.node, hello.kind, hello.incarnation, hello.session) == ("peer", Kind.CLIENT, 1, 1)
    assert not world.core.is_ready
    assert world.welcome(last_number=7)[0] == Ready("b", 7)
    assert world.core.is_ready


@pytest.mark.parametrize(
    "fields",
    [{"kind": Kind.CLIENT}, {"version": 2}, {"session": 9}, {"heartbeat_ns": 2**62}, {"heartbeat_ns": 0}],
)
def test_a_welcome_that_is_none_is_not_believed(fields: dict[str, Any]) -> None:
    world = Answered()
    world.step(Open())
    world.connected()
    world.welcome(**fields)
    assert isinstance(world.said[-1], Goodbye)
    assert world.connection == 0
    assert world.told(Ready) == []


# Coming back


def test_pauses_between_attempts_grow_to_a_maximum() -> None:
    world = Answered(backoff_min_ns=100 * MILLISECOND, backoff_max_ns=SECOND)
    world.step(Open())
    pauses = []
    for _ in range(12):
        begun = world.now
        world.step(ConnectFailed("", "refused"))
        world.wait_for(Connect)
        pauses.append(world.now - begun)
    for attempt, pause in enumerate(pauses):
        longest = min(100 * MILLISECOND * 2**attempt, SECOND)
        assert longest // 2 <= pause <= longest


def test_two_clients_do_not_come_back_at_the_same_moment() -> None:
    moments = set()
    for name in "abcdefgh":
        world = Answered(name=name)
        world.step(Open())
        world.step(ConnectFailed("", "refused"))
        moments.add(world.core.next_deadline())
    assert len(moments) == 8


def test_a_welcome_makes_the_pauses_short_again() -> None:
    world = Answered(backoff_min_ns=100 * MILLISECOND, backoff_max_ns=10 * SECOND)
    world.step(Open())
    for _ in range(8):
        world.step(ConnectFailed("", "refused"))
        world.wait_for(Connect)
    world.connected()
    world.welcome()
    world.lose()
    begun = world.now
    world.wait_for(Connect)
    assert world.now - begun <= 100 * MILLISECOND


def test_a_broken_session_is_announced_once_and_counted_on() -> None:
    world = Answered()
    world.open()
    assert [type(effect) for effect in world.lose()] == [Away]
    world.reconnect()
    assert isinstance(world.said[0], Hello)
    assert world.said[0].session == 2


def test_a_connection_that_breaks_before_the_welcome_is_not_announced() -> None:
    world = Answered()
    world.step(Open())
    world.connected()
    assert world.lose() == []
    world.wait_for(Connect)


def test_who_takes_the_connection_is_a_stranger_until_he_answers_as_a_broker() -> None:
    world = Answered()
    world.step(Open())
    world.connected()
    assert world.core.stranger == "b:1"
    world.lose()
    assert world.core.stranger == "b:1"
    world.wait_for(Connect)
    world.step(ConnectFailed("", "refused"))
    assert world.core.stranger is None
    world.wait_for(Connect)
    world.connected()
    world.say(Goodbye(Farewell.SILENT, "not now"))
    assert world.core.stranger is None
    world.wait_for(Connect)
    world.connected()
    world.welcome()
    assert world.core.stranger is None


def test_news_of_an_old_connection_changes_nothing() -> None:
    world = Answered()
    world.open()
    world.lose()
    world.reconnect()
    assert world.step(Disconnected(1, "late news")) == []
    assert world.step(Received(1, [Goodbye(Farewell.TAKEN_OVER, "late news")])) == []
    assert world.core.is_ready


# Silence


def test_a_silent_broker_is_given_up() -> None:
    world = Answered(detect_after_ns=5 * SECOND, heartbeat_ns=SECOND)
    world.open()
    world.wait_for(Away)
    assert world.now == 5 * SECOND
    assert sum(isinstance(message, Heartbeat) for message in world.said) == 4
    assert world.said[-1] == Goodbye(Farewell.SILENT, "nothing heard from the broker")


def test_a_broker_that_promises_little_is_given_three_of_its_heartbeats() -> None:
    world = Answered(detect_after_ns=SECOND)
    world.step(Open())
    world.connected()
    world.welcome(heartbeat_ns=2 * SECOND)
    world.wait_for(Away)
    assert world.now == 6 * SECOND


def test_a_broker_that_never_welcomes_is_given_up() -> None:
    world = Answered(detect_after_ns=5 * SECOND)
    world.step(Open())
    world.connected()
    world.wait_for(Close)
    assert world.now == 5 * SECOND
    world.wait_for(Connect)


def test_a_broker_that_is_heard_is_kept() -> None:
    world = Answered()
    world.open()
    for _ in range(20):
        world.now += SECOND
        world.step(Wake())
        world.say(Heartbeat())
    assert world.told(Away) == []


def test_a_heartbeat_may_overtake_the_welcome() -> None:
    world = Answered()
    world.step(Open())
    world.connected()
    assert world.say(Heartbeat()) == []
    world.welcome()
    assert world.core.is_ready


# Being sent away


@pytest.mark.parametrize("farewell", list(Farewell))
@pytest.mark.parametrize("is_welcomed", [False, True])
def test_some_farewells_are_final_and_after_the_others_it_comes_back(
    farewell: Farewell, is_welcomed: bool
) -> None:
    world = Answered()
    world.step(Open())
    world.connected()
    if is_welcomed:
        world.welcome()
    world.say(Goodbye(farewell, "so it is"))
    assert world.connection == 0
    final = {Farewell.TAKEN_OVER, Farewell.UNKNOWN, Farewell.VERSION, Farewell.PROTOCOL}
    if farewell in final:
        assert world.effects[-1] == Ended(farewell, "so it is")
        assert world.core.next_deadline() is None
        assert world.step(Wake()) == []
    else:
        assert world.told(Ended) == []
        world.wait_for(Connect)


def test_what_comes_after_a_goodbye_in_the_same_batch_is_not_heard() -> None:
    world = Answered()
    world.open()
    effects = world.say(
        Goodbye(Farewell.STOPPING, "bye"), Accepted(1), Welcome("x", Kind.BROKER, 1, 1, SECOND)
    )
    assert [type(effect) for effect in effects] == [Close, Away]


def test_leaving_says_goodbye_and_ends() -> None:
    world = Answered()
    world.open()
    effects = world.step(Leave())
    assert world.said[-1] == Goodbye(Farewell.LEAVING, "the client leaves")
    assert isinstance(effects[-1], Ended)
    assert world.core.next_deadline() is None


def test_leaving_while_away_ends_too() -> None:
    world = Answered()
    world.step(Open())
    assert world.step(Leave()) == [Ended(Farewell.LEAVING, "left")]


def test_a_connection_that_comes_after_leaving_is_closed() -> None:
    world = Answered()
    world.step(Open())
    world.step(Leave())
    [close] = world.core.step(Connected(5, ""), 0)
    assert isinstance(close, Close)
    assert close.connection == 5


NEVER_SAID_BY_A_BROKER: list[Message] = [
    Hello("b", Kind.BROKER, 1, 1, "broker", SECOND),
    Subscribe(Answered().id(1), "#", ()),
    Unsubscribe(Answered().id(1)),
    Lore(),
    Told(),
    OverlayReady(),
    Relay("default", Batch([]), [], Trail((), [])),
    Publish(Batch([])),
    Publications("default", Batch([]), []),
]
SAID_IN_A_SESSION: list[Message] = [
    Deliveries("default", Batch([]), [], []),
    Accepted(1),
    Rejected(1, "no"),
    Confirmed(Answered().id(1)),
    Refused(Answered().id(1), "no"),
    Withdrawn(Answered().id(1)),
]


@pytest.mark.parametrize(
    "message", NEVER_SAID_BY_A_BROKER + SAID_IN_A_SESSION, ids=lambda m: type(m).__name__
)
def test_nothing_but_a_welcome_begins_a_session(message: Message) -> None:
    world = Answered()
    world.step(Open())
    world.connected()
    world.say(message)
    assert world.connection == 0
    world.wait_for(Connect)


@pytest.mark.parametrize(
    "message",
    [*NEVER_SAID_BY_A_BROKER, Welcome("b", Kind.BROKER, 1, 1, SECOND)],
    ids=lambda m: type(m).__name__,
)
def test_what_no_broker_says_ends_the_session_and_it_comes_back(message: Message) -> None:
    world = Answered()
    world.open()
    world.say(message)
    last = world.said[-1]
    assert isinstance(last, Goodbye)
    assert last.farewell is Farewell.PROTOCOL
    world.reconnect()


@pytest.mark.parametrize("message", SAID_IN_A_SESSION, ids=lambda m: type(m).__name__)
def test_answers_nobody_asked_for_are_ignored(message: Message) -> None:
    world = Answered()
    world.open()
    assert world.say(message) == []
    assert world.core.is_ready
