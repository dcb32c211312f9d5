"""The client's core on streams that are logged: subscribing, reading, committing, leaving; through interruptions."""

from __future__ import annotations

from typing import Any

import pytest
from portions import portion, said

from answered import Answered
from holdfast.client.effect import (
    Acknowledged,
    Away,
    Committed,
    Ousted,
    Placed,
    Stretch,
    Subscribed,
    SubscriptionRefused,
    Unsubscribed,
)
from holdfast.client.input import AddSubscription, Commit, Consumed, EndSubscription, Open, Submit
from holdfast.client.item import Gap
from holdfast.messages import durable as messages
from holdfast.messages.durable import Acknowledge, Credit, Detach, Logged, Run, Saved
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted
from holdfast.messages.subscriptions import Confirmed, Refused, Resume, Subscribe, Unsubscribe, Withdrawn
from holdfast.messages.ticks import ORIGIN
from holdfast.overlay.transport import Close, Pause, Send
from holdfast.streams.checkpoint_token import Place, Token

PUBEND = "s@b/1"


def subscribed(buffer: int = 10, token: dict[str, tuple[int, int]] | None = None, **options: Any) -> Answered:
    """Subscription 1, confirmed at tick 100 of a pubend."""
    world = Answered()
    world.open()
    world.step(AddSubscription(1, "#", buffer, **options))
    world.say(Confirmed(world.id(1), (), {PUBEND: (1, 100)} if token is None else token))
    world.said.clear()
    return world


def subscribes(world: Answered) -> list[Resume | None]:
    return [message.resume for message in world.said if isinstance(message, Subscribe)]


def spoken(world: Answered, *kinds: type[Message]) -> list[Message]:
    return [message for message in world.said if isinstance(message, kinds)]


# Subscribing


def test_r1_6_a_subscription_says_how_it_reads_and_is_told_where_it_begins() -> None:
    world = Answered()
    world.open()
    world.step(AddSubscription(1, "#", 10, "d", 50))
    assert subscribes(world) == [Resume(10, "d", 50, None)]
    token = {PUBEND: (1, 100)}
    assert world.say(Confirmed(world.id(1), (), token)) == [Subscribed(1, (), Token({PUBEND: Place(1, 100)}))]


def test_r1_8_after_an_interruption_it_goes_on_where_it_stood() -> None:
    world = subscribed(durable="d")
    world.say(portion(101, 105, upto=110))
    world.lose()
    world.reconnect()
    assert subscribes(world) == [Resume(8, "d", ORIGIN, {PUBEND: (1, 110)}, {PUBEND: 100})]
    assert world.say(Confirmed(world.id(1), (), {PUBEND: (1, 110)})) == []
    world.say(portion(105, 112))
    assert [tick for tick in said(world.told(Stretch)) if isinstance(tick, int)] == [101, 105, 112]
    assert world.core.turned_away == 1


def test_one_that_was_never_confirmed_asks_again_for_what_it_asked() -> None:
    world = Answered()
    world.open()
    world.step(AddSubscription(1, "#", 10, start=50))
    world.lose()
    world.reconnect()
    assert subscribes(world) == [Resume(10, None, 50, None)]


def test_where_nothing_is_logged_there_are_no_places_to_go_on_from() -> None:
    world = Answered()
    world.open()
    world.step(AddSubscription(1, "#", 10))
    world.say(Confirmed(world.id(1)))
    world.lose()
    world.reconnect()
    assert subscribes(world) == [Resume(10, None, None, None)]


def test_a_token_that_is_given_is_where_it_begins_even_if_the_broker_says_later() -> None:
    world = Answered()
    world.open()
    given = Token({PUBEND: Place(1, 100)})
    world.step(AddSubscription(1, "#", 10, token=given))
    assert subscribes(world) == [Resume(10, None, ORIGIN, {PUBEND: (1, 100)})]
    confirmed, jump = world.say(Confirmed(world.id(1), (), {PUBEND: (1, 120), "other": (1, 7)}))
    assert confirmed == Subscribed(1, (), Token({PUBEND: Place(1, 100), "other": Place(1, 7)}))
    assert said([jump]) == [Gap(PUBEND, 100, 120, "not resumed")]


@pytest.mark.parametrize("code", ["", "filter", "durable", "token-ahead", "what nobody knows"])
def test_a_refusal_says_which_it_is(code: str) -> None:
    world = Answered()
    world.open()
    world.step(AddSubscription(1, "#", 10, "d"))
    assert world.say(Refused(world.id(1), "no", code)) == [SubscriptionRefused(1, "no", code)]
    world.lose()
    world.reconnect()
    assert subscribes(world) == []


# Credit


def test_the_broker_is_given_credit_for_what_was_consumed_and_reading_never_stops() -> None:
    world = subscribed(buffer=4)
    assert not any(isinstance(effect, Pause) for effect in world.say(portion(*range(101, 121))))
    assert world.step(Consumed(1, 0, 1)) == []
    assert world.step(Consumed(1, 0, 1)) == [Send(world.connection, [Credit(1, 2)])]


def test_credit_is_not_given_twice_over_an_interruption() -> None:
    world = subscribed(buffer=4)
    world.say(portion(101, 102, 103, 104))
    world.lose()
    assert world.step(Consumed(1, 0, 3)) == []
    world.reconnect()
    assert subscribes(world) == [Resume(3, None, ORIGIN, {PUBEND: (1, 104)})]
    world.say(Confirmed(world.id(1), (), {PUBEND: (1, 104)}))
    world.step(Consumed(1, 0, 1))
    assert spoken(world, Credit) == [], "one of four is not half"


def test_portions_for_a_subscription_that_has_ended_are_nothing() -> None:
    world = subscribed()
    world.step(EndSubscription(1))
    assert world.say(portion(101)) == []
    assert world.step(Consumed(1, 0, 1)) == []


# Committing


def test_a_commit_is_answered_when_it_is_saved() -> None:
    world = subscribed(durable="d")
    world.say(portion(101, 102))
    world.step(Commit(1, {PUBEND: 101}, 1))
    assert spoken(world, Acknowledge) == [Acknowledge(1, {PUBEND: 101}, 1)]
    world.step(Commit(1, {PUBEND: 102}, 2))
    assert world.say(Saved(1, 1)) == [
        Send(world.connection, [Acknowledge(1, {PUBEND: 102}, 2)]),
        Committed(1, 1),
    ]
    assert world.say(Saved(1, 2)) == [Committed(1, 2)]
    assert world.say(Saved(1, 2), Saved(9, 1)) == []


def test_what_has_no_answer_is_said_again_when_the_broker_knows_the_subscription_again() -> None:
    world = subscribed(durable="d")
    world.step(Commit(1, {PUBEND: 101}, 1))
    world.lose()
    assert world.step(Commit(1, {PUBEND: 102}, 2)) == []
    world.reconnect()
    world.step(Commit(1, {"other": 7}, 3))
    assert spoken(world, Acknowledge) == [], "not before that"
    world.say(Confirmed(world.id(1), (), {PUBEND: (1, 102)}))
    assert spoken(world, Acknowledge) == [Acknowledge(1, {PUBEND: 102, "other": 7}, 3)]
    assert world.say(Saved(1, 3)) == [Committed(1, 3)]


def test_a_commit_for_a_subscription_that_has_ended_is_nothing() -> None:
    world = subscribed(durable="d")
    world.step(EndSubscription(1))
    world.said.clear()
    assert world.step(Commit(1, {PUBEND: 101}, 1)) == []
    assert world.say(Saved(1, 1)) == []


# Leaving, and ending


def test_a_durable_one_that_is_left_is_kept() -> None:
    world = subscribed(durable="d")
    world.step(Commit(1, {PUBEND: 101}, 1))
    world.step(Commit(1, {PUBEND: 102}, 2))
    world.said.clear()
    world.step(EndSubscription(1, keep=True))
    assert world.said == [Acknowledge(1, {PUBEND: 102}, 2), Detach(1)], "all that was committed goes before"
    assert world.say(portion(103)) == []
    assert world.say(Withdrawn(world.id(1))) == [Unsubscribed(1)]
    world.lose()
    world.reconnect()
    assert spoken(world, Subscribe, Unsubscribe, Detach) == []


def test_a_session_that_breaks_has_left_it_too() -> None:
    world = subscribed(durable="d")
    world.step(EndSubscription(1, keep=True))
    assert world.lose() == [Away("lost"), Unsubscribed(1)]
    world.reconnect()
    assert spoken(world, Subscribe, Unsubscribe, Detach) == []


def test_leaving_while_away_needs_nobody() -> None:
    world = subscribed(durable="d")
    world.lose()
    assert world.step(EndSubscription(1, keep=True)) == [Unsubscribed(1)]
    assert world.step(EndSubscription(1, keep=True)) == []
    world.reconnect()
    assert spoken(world, Subscribe, Unsubscribe, Detach) == []


def test_ending_for_good_while_away_names_it_to_the_next_session() -> None:
    """The broker may have restarted and know only the name; so it is told who that is before that it is over."""
    world = subscribed(durable="d")
    world.lose()
    assert world.step(EndSubscription(1)) == []
    world.reconnect()
    first, second = spoken(world, Subscribe, Unsubscribe)
    assert isinstance(first, Subscribe)
    assert first.resume is not None
    assert first.resume.durable == "d"
    assert second == Unsubscribe(world.id(1))
    assert world.say(Confirmed(world.id(1), (), {PUBEND: (1, 100)}), portion(101)) == []
    assert world.say(Withdrawn(world.id(1))) == [Unsubscribed(1)]


def test_one_that_is_not_durable_is_only_ended() -> None:
    world = subscribed()
    world.lose()
    world.step(EndSubscription(1))
    world.reconnect()
    assert [type(message) for message in spoken(world, Subscribe, Unsubscribe)] == [Unsubscribe]


def test_who_is_ousted_stays_away() -> None:
    world = subscribed(durable="d")
    assert world.say(messages.Ousted(1, "read by other")) == [Ousted(1, "read by other")]
    assert world.say(messages.Ousted(1, "read by other"), portion(101)) == []
    world.lose()
    world.reconnect()
    assert subscribes(world) == []


# Publishing


def test_where_events_were_logged_is_told_before_they_are_accepted() -> None:
    world = Answered()
    world.open()
    world.submit(1, 2, 3)
    runs, repeats = (Run(1, 500, 2),), (Run(3, 400, 1),)
    assert world.say(Logged(PUBEND, 1, runs, repeats), Accepted(3, (3,))) == [
        Placed(PUBEND, 1, runs, repeats),
        Acknowledged(3, (3,)),
    ]


# Manners


@pytest.mark.parametrize(
    "message", [portion(1), Logged(PUBEND, 1, ()), Saved(1, 1), messages.Ousted(1, "no")], ids=lambda each: ""
)
def test_before_the_welcome_there_is_nothing_to_hear(message: Message) -> None:
    world = Answered()
    world.step(Open())
    world.connected()
    assert isinstance(world.say(message)[1], Close)


def test_a_submission_is_not_kept_from_going_out() -> None:
    world = subscribed(buffer=1)
    world.say(portion(101, 102))
    assert any(isinstance(effect, Send) for effect in world.step(Submit([])) + world.submit(1))
