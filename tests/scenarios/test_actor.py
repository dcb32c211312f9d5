"""An actor driven by hand: a broker's side of the conversation is written out."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.client.settings import Settings
from holdfast.clock import MILLISECOND
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.filters.parse import parse_filter
from holdfast.filters.text import filter_text
from holdfast.identity import SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Batch, Deliveries, Publication, Publish, Rejected
from holdfast.messages.session import Hello, Kind, Welcome
from holdfast.messages.subscriptions import Confirmed, Partition, Refused, Subscribe, Unsubscribe, Withdrawn
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    Disconnected,
    Pause,
    Received,
    Resume,
    Send,
    Trace,
    Wake,
)
from holdfast.scenarios import commands
from holdfast.scenarios.actor import BUFFER_ITEMS, Actor
from holdfast.scenarios.actor_commands import (
    DoDisconnect,
    DoLeave,
    Done,
    DoPublish,
    DoReconnect,
    DoSlow,
    DoSubscribe,
    DoUnsubscribe,
    Reserve,
    Wish,
)
from holdfast.scenarios.actor_publishing import RESERVED_BLOCK

WISH = Wish("mine", "/orders", filter_text(parse_filter("/orders")))


class Conversation:
    """An actor, the time, and what came of every step."""

    def __init__(self, *, window: int = 100, **options: Any) -> None:
        settings = Settings("u", 1, "b:1", unacknowledged_max=window)
        self.actor = Actor(settings, **options)
        self.now = 0
        self.connections = 0

    def step(self, stimulus: Any) -> list[Any]:
        return self.actor.step(stimulus, self.now)

    def connect(self) -> list[Any]:
        """Accept what was dialled, and welcome the guest."""
        self.connections += 1
        (said,) = self.step(Connected(self.connections, ""))
        hello = said.messages[0]
        assert isinstance(hello, Hello)
        return self.hear(Welcome("b", Kind.BROKER, 1, hello.session, 1000 * MILLISECOND))

    def hear(self, *messages: Message) -> list[Any]:
        return self.step(Received(self.connections, list(messages)))

    def wait(self) -> list[Any]:
        """Until the next deadline, and wake."""
        deadline = self.actor.next_deadline()
        assert deadline is not None
        self.now = max(self.now, deadline)
        return self.step(Wake())

    def deliver(self, *numbers: int) -> list[Any]:
        batch = Batch([Publication("p", n, pack(make_event("/orders", {"price": 1}))) for n in numbers])
        return self.hear(Deliveries("s", batch, range(len(numbers)), [(1,)] * len(numbers)))


@pytest.fixture
def talk() -> Conversation:
    talk = Conversation()
    assert talk.step(Wake()) == [Connect("", "b:1")]
    talk.connect()
    return talk


def lines(effects: list[Any]) -> list[tuple[str, Any]]:
    """The trace lines among effects, by kind and number or subscription."""
    return [
        (
            effect.kind,
            effect.fields.get("n", effect.fields["subscription"] if "n" not in effect.fields else 0),
        )
        for effect in effects
        if isinstance(effect, Trace)
    ]


def kinds(effects: list[Any]) -> list[str]:
    return [effect.kind if isinstance(effect, Trace) else type(effect).__name__ for effect in effects]


def publish(count: int, interval_ms: int = 10, topic: str = "/orders", line: int = 1) -> commands.Publish:
    return commands.Publish("u", count, topic, interval_ms * MILLISECOND, line=line)


def identity(number: int) -> SubscriptionId:
    return SubscriptionId("u", 1, number)


# Publishing


def test_a_line_is_written_before_the_event_it_tells_of_is_sent(talk: Conversation) -> None:
    effects = talk.step(DoPublish(publish(1), 0, ticket=7))
    assert kinds(effects) == ["Reserve", "publish", "Send", "Done"]
    assert effects[1].fields == {"publisher": "u", "n": 1, "topic": "orders", "attributes": {}}
    assert effects[3] == Done(7)


def test_one_event_is_published_per_interval(talk: Conversation) -> None:
    effects = talk.step(DoPublish(publish(3, interval_ms=10), 0, ticket=7))
    times = [talk.now]
    while Done(7) not in effects:
        effects = talk.wait()
        times += [talk.now] * len(lines(effects))
    assert times == [0, 10 * MILLISECOND, 20 * MILLISECOND]


def numbers_given(wakes_ms: list[int]) -> list[tuple[int, str]]:
    """The numbers and topics of two Publish commands side by side, woken at these times."""
    talk = Conversation()
    talk.step(Wake())
    talk.connect()
    effects = talk.step(DoPublish(publish(6, 20, "a"), 0, ticket=1))
    talk.now = 1
    effects += talk.step(DoPublish(publish(6, 30, "b", line=2), 0, ticket=2))
    for ms in wakes_ms:
        talk.now = ms * MILLISECOND
        effects += talk.step(Wake())
    return [(each.fields["n"], each.fields["topic"]) for each in effects if isinstance(each, Trace)]


def test_a_late_timer_changes_nothing_in_the_numbers() -> None:
    """What is due is numbered as the timetables have it, not as it is noticed."""
    punctual = numbers_given(list(range(1, 200)))
    assert len(punctual) == 12
    assert numbers_given([13, 47, 48, 140, 200]) == punctual


def test_without_an_interval_it_goes_as_fast_as_the_window_allows() -> None:
    talk = Conversation(window=4)
    talk.step(Wake())
    talk.connect()
    effects = talk.step(DoPublish(publish(10, interval_ms=0), 0, ticket=7))
    assert lines(effects) == [("publish", n) for n in (1, 2, 3, 4)]
    effects = talk.hear(Accepted(3))
    assert lines(effects) == [("accepted", n) for n in (1, 2, 3)] + [("publish", n) for n in (5, 6, 7)]
    assert Done(7) in talk.hear(Accepted(7))
    assert not talk.actor.quiet
    talk.hear(Accepted(10))
    assert talk.actor.quiet


def test_who_has_no_broker_publishes_until_the_window_is_full_and_sends_it_when_there_is_one() -> None:
    talk = Conversation(window=3)
    talk.step(Wake())
    effects = talk.step(DoPublish(publish(9, interval_ms=0), 0, ticket=7))
    assert kinds(effects) == ["Reserve", "publish", "publish", "publish"]
    sent = [
        message
        for effect in talk.connect()
        if isinstance(effect, Send)
        for message in effect.messages
        if isinstance(message, Publish)
    ]
    assert [publication.n for message in sent for publication in message.batch.publications] == [1, 2, 3]


def test_numbers_are_reserved_in_blocks_before_the_first_of_them_is_used() -> None:
    talk = Conversation(window=10_000, first_number=5)
    talk.step(Wake())
    effects = talk.step(DoPublish(publish(RESERVED_BLOCK + 1, interval_ms=0), 0, ticket=7))
    reserved = [(i, effect.upto) for i, effect in enumerate(effects) if isinstance(effect, Reserve)]
    assert reserved == [(0, 4 + RESERVED_BLOCK), (RESERVED_BLOCK + 1, 4 + 2 * RESERVED_BLOCK)]
    assert lines(effects)[0] == ("publish", 5)


def test_an_event_that_is_refused_is_not_waited_for(talk: Conversation) -> None:
    talk.step(DoPublish(publish(2, interval_ms=0), 0, ticket=7))
    assert lines(talk.hear(Rejected(1, "no"), Accepted(2))) == [("accepted", 2)]
    assert talk.actor.quiet


# Subscribing


def test_a_subscription_is_done_when_it_is_confirmed(talk: Conversation) -> None:
    effects = talk.step(DoSubscribe(WISH, ticket=3))
    assert kinds(effects) == ["subscribe", "Send"]
    assert effects[0].fields["filter"] == "/orders"
    said = effects[1].messages[0]
    assert isinstance(said, Subscribe)
    assert said.filter == "orders"
    assert not talk.actor.is_settled
    line, done = talk.hear(Confirmed(identity(1), (Partition("b", 1, 4, ("x", "y")),)))
    assert line.fields["partial"] == [{"lead": "b", "incarnation": 1, "seq": 4, "fragment": ["x", "y"]}]
    assert done == Done(3)
    assert talk.actor.is_settled


def test_a_refused_subscription_is_done_too(talk: Conversation) -> None:
    talk.step(DoSubscribe(WISH, ticket=3))
    assert Done(3) in talk.hear(Refused(identity(1), "no"))
    assert talk.actor.is_settled


def test_an_unsubscription_is_done_when_the_network_has_forgotten(talk: Conversation) -> None:
    talk.step(DoSubscribe(WISH, ticket=3))
    talk.hear(Confirmed(identity(1)))
    effects = talk.step(DoUnsubscribe("mine", ticket=4))
    assert kinds(effects) == ["unsubscribe", "Send"]
    assert isinstance(effects[1].messages[0], Unsubscribe)
    assert kinds(talk.hear(Withdrawn(identity(1)))) == ["unsubscribed", "Done"]


def test_unsubscribing_while_the_confirmation_is_awaited_lets_nobody_wait(talk: Conversation) -> None:
    talk.step(DoSubscribe(WISH, ticket=3))
    assert Done(3) in talk.step(DoUnsubscribe("mine", ticket=4))
    assert talk.actor.is_settled


def test_what_is_not_there_is_given_up_at_once(talk: Conversation) -> None:
    assert kinds(talk.step(DoUnsubscribe("mine", ticket=4))) == ["Log", "Done"]


def test_what_an_earlier_life_had_is_subscribed_to_again_under_its_name() -> None:
    talk = Conversation(wishes=[WISH])
    assert lines(talk.step(Wake())) == [("subscribe", "mine")]
    talk.connect()
    assert lines(talk.hear(Confirmed(identity(1)))) == [("subscribed", "mine")]


# Reading


def subscribed(talk: Conversation) -> Conversation:
    talk.step(DoSubscribe(WISH, ticket=3))
    talk.hear(Confirmed(identity(1)))
    return talk


def test_what_is_delivered_is_taken_at_once(talk: Conversation) -> None:
    effects = subscribed(talk).deliver(1, 2)
    assert lines(effects) == [("deliver", 1), ("deliver", 2)]
    assert effects[0].fields == {
        "subscriber": "u",
        "subscription": "mine",
        "publisher": "p",
        "n": 1,
        "topic": "orders",
        "pubend": "p",
        "tick": 1,
        "tags": [],
    }


def test_a_slow_application_takes_one_item_after_the_other(talk: Conversation) -> None:
    subscribed(talk).step(DoSlow(5 * MILLISECOND))
    assert lines(talk.deliver(1, 2, 3)) == [("deliver", 1)]
    assert not talk.actor.quiet
    taken = [(talk.now, *line) for _ in range(2) for line in lines(talk.wait())]
    assert taken == [(5 * MILLISECOND, "deliver", 2), (10 * MILLISECOND, "deliver", 3)]
    assert talk.actor.quiet


def test_who_is_slow_no_longer_takes_the_rest_at_once(talk: Conversation) -> None:
    subscribed(talk).step(DoSlow(5 * MILLISECOND))
    talk.deliver(1, 2, 3)
    assert lines(talk.step(DoSlow(0))) == [("deliver", 2), ("deliver", 3)]


def test_a_client_stops_reading_when_its_application_does(talk: Conversation) -> None:
    subscribed(talk).step(DoSlow(5 * MILLISECOND))
    assert Pause(1) in talk.deliver(*range(1, BUFFER_ITEMS + 2))
    assert Resume(1) in talk.step(DoSlow(0))


def test_nothing_is_taken_for_a_subscription_that_ends_and_reading_goes_on(talk: Conversation) -> None:
    subscribed(talk).step(DoSlow(5 * MILLISECOND))
    talk.deliver(*range(1, BUFFER_ITEMS + 2))
    effects = talk.step(DoUnsubscribe("mine", ticket=4))
    assert lines(effects) == [("unsubscribe", "mine")]
    assert Resume(1) in effects
    assert talk.actor.quiet


# The plug, and the end


def test_who_is_disconnected_stays_away_until_told_otherwise(talk: Conversation) -> None:
    assert Close(1, "disconnected by the script") in talk.step(DoDisconnect())
    assert not talk.actor.is_connected
    for _ in range(3):
        if talk.actor.next_deadline() is not None:
            assert not any(isinstance(effect, Connect) for effect in talk.wait())
    assert talk.step(DoReconnect(ticket=5)) == [Connect("", "b:1")]
    assert Done(5) in talk.connect()


def test_who_was_dialling_when_disconnected_does_not_come_in_by_accident() -> None:
    talk = Conversation()
    talk.step(Wake())
    talk.step(DoDisconnect())
    assert kinds(talk.step(Connected(1, "")))[0] == "Close"
    assert not talk.actor.is_connected
    talk.wait()
    talk.step(DoReconnect(ticket=5))
    talk.connections = 1
    assert Done(5) in talk.connect()


def test_reconnecting_who_is_connected_is_done_at_once(talk: Conversation) -> None:
    assert talk.step(DoReconnect(ticket=5)) == [Done(5)]


def test_a_gap_is_written_where_something_may_be_missing(talk: Conversation) -> None:
    subscribed(talk).deliver(1)
    talk.step(Disconnected(1, "gone"))
    talk.wait()
    talk.connect()
    gap, deliver = talk.deliver(4)
    assert (gap.kind, gap.fields["after"], gap.fields["upto"]) == ("gap", 1, 3)
    assert deliver.fields["n"] == 4


def test_who_leaves_says_goodbye(talk: Conversation) -> None:
    assert kinds(talk.step(DoLeave(ticket=9))) == ["Send", "Close", "Log", "Done"]
    assert talk.actor.next_deadline() is None


def test_a_publisher_leaves_when_everything_is_accepted_and_publishes_nothing_more(
    talk: Conversation,
) -> None:
    talk.step(DoPublish(publish(20), 0, ticket=7))
    assert talk.step(DoLeave(ticket=9)) == []
    assert talk.step(DoPublish(publish(20), 0, ticket=8)) == []
    assert kinds(talk.hear(Accepted(1))) == ["accepted", "Send", "Close", "Log", "Done"]
    assert talk.actor.next_deadline() is None


def test_a_publisher_that_must_leave_at_once_does_not_wait(talk: Conversation) -> None:
    talk.step(DoPublish(publish(20), 0, ticket=7))
    assert kinds(talk.step(DoLeave(ticket=9, at_once=True))) == ["Send", "Close", "Log", "Done"]


def test_the_status_is_plain_data(talk: Conversation) -> None:
    subscribed(talk)
    assert talk.actor.status() == {
        "tables": {"subscriptions": ["mine"]},
        "queues": {"unacknowledged": 0, "unread": 0},
        "connections": {"broker": True},
    }


def test_a_publish_may_be_given_its_start(talk: Conversation) -> None:
    assert talk.step(DoPublish(publish(2), 0, ticket=7, start=50 * MILLISECOND)) == []
    assert lines(talk.wait()) == [("publish", 1)]
    assert talk.now == 50 * MILLISECOND


def test_a_start_that_has_passed_is_caught_up_with(talk: Conversation) -> None:
    talk.now = 100 * MILLISECOND
    effects = talk.step(DoPublish(publish(20), 0, ticket=7, start=75 * MILLISECOND))
    assert lines(effects) == [("publish", 1), ("publish", 2), ("publish", 3)]
