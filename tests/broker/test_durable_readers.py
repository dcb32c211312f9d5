"""Who reads streams that are logged, at its broker: confirmed where it begins, and one reader to a name [R1.6]."""

from __future__ import annotations

from dataclasses import replace

import pytest
from durable_desk import ORDERS, OWN, Desk, shop

from by_hand import publish
from holdfast.broker.durable.records import PLACES, READERS
from holdfast.broker.input import ClockSet
from holdfast.clock import SECOND
from holdfast.messages.durable import Detach, Ousted, Portion
from holdfast.messages.subscriptions import Confirmed, Refused, Unsubscribe, Withdrawn
from holdfast.streams.storing import ForgetMatches, ReadMatches, Save

# Confirming


def test_a_durable_subscription_is_confirmed_when_it_is_on_disk() -> None:
    """R1.6: with a start point for every pubend there is."""
    desk = Desk()
    desk.publisher("p", 1)
    desk.hold(Save)
    reader = desk.reader(durable="mine")
    assert desk.said(reader, Confirmed) == []
    desk.hold()
    assert desk.place(reader) == desk.own.core.stable
    assert desk.rows(READERS) == ["mine"]
    assert len(desk.rows(PLACES)) == 1


def test_a_new_subscription_begins_now_and_is_current_at_once() -> None:
    """R1.22."""
    desk, publisher, reader = shop(1, 2)
    desk.say(publisher, publish("p", 3))
    assert desk.got(reader) == [3]
    assert desk.done_of(ReadMatches) == [], "it need not catch up"


@pytest.mark.parametrize("durable", ["mine", None])
def test_a_subscription_may_begin_earlier_as_far_as_the_log_goes(durable: str | None) -> None:
    desk, _, reader = shop(1, 2, durable=durable, start=1)
    assert desk.got(reader) == [1, 2]
    assert desk.gaps(reader) == []


def test_what_does_not_match_is_not_delivered_and_is_told_as_silence_after_a_while() -> None:
    """R1.7, R1.20: so that its token does not lag."""
    desk, publisher, reader = shop(1, filter="b", durable="mine")
    desk.say(publisher, publish("p", 2, topic="a"))
    desk.wait(2 * SECOND)
    assert desk.got(reader) == []
    assert desk.said(reader, Portion)[-1].upto >= desk.own.core.stable


def test_who_comes_back_to_a_pubend_at_rest_is_told_that_there_was_nothing() -> None:
    """R1.20, I35: nothing will be said of the pubend later (seed 3001054 of the swarm)."""
    desk, publisher, reader = shop(1, filter="b", durable="mine")
    stands = desk.place(reader)
    desk.lose(reader)
    desk.say(publisher, publish("p", 2, topic="a"))
    desk.wait(60 * SECOND)
    again = desk.reader("u", "b", incarnation=2, durable="mine", token={OWN: stands})
    assert desk.place(again) == stands
    assert desk.said(again, Portion)[-1].upto >= desk.own.core.stable


@pytest.mark.parametrize("seconds", [-10, 10])
def test_a_clock_that_is_set_keeps_nobody_from_being_told_that_there_was_nothing(seconds: int) -> None:
    """R1.20: the pubend comes to rest before it has told anything behind its last event (seed 3001225)."""
    desk, publisher, reader = shop(1, filter="b", durable="mine")
    before, behind = (seconds, seconds) if seconds < 0 else (0, seconds)
    desk.step(ClockSet(desk.wall + before * SECOND))
    desk.say(publisher, publish("p", 2, topic="a"))
    desk.step(ClockSet(desk.wall + behind * SECOND))
    desk.wait(20 * SECOND)
    assert max(each.upto for each in desk.said(reader, Portion)) >= desk.own.core.stable


def test_where_little_is_retained_silence_is_told_before_any_of_it_is_given_up() -> None:
    """Who goes elsewhere with its token has been told of all that went meanwhile (seed 21127 of the swarm)."""
    stream = replace(ORDERS, retain_ns=SECOND)
    desk = Desk(streams=(stream,))
    publisher = desk.publisher("p", 1)
    reader = desk.reader("u", "b", durable="mine")
    told = desk.place(reader)
    for n in range(2, 22):
        desk.say(publisher, publish("p", n))
        desk.wait(SECOND // 10)
        told = max([told, *(each.upto for each in desk.said(reader, Portion))])
        assert desk.clock - told <= SECOND // 2_000


def test_a_durable_name_with_another_filter_is_refused_and_its_reader_goes_on() -> None:
    desk, publisher, reader = shop(durable="mine")
    other = desk.client("v")
    [refused] = desk.subscribe(other, "v", "b", durable="mine")
    assert isinstance(refused, Refused)
    assert refused.code == "durable"
    assert "mine" in refused.problem
    desk.say(publisher, publish("p", 2))
    assert desk.got(reader) == [2]
    assert desk.said(reader, Ousted) == []


def test_a_token_from_the_future_is_refused() -> None:
    desk = Desk()
    reader = desk.client("u")
    hour = 3_600 * SECOND // 1_000
    [refused] = desk.subscribe(reader, "u", durable="mine", token={OWN: desk.clock + hour})
    assert isinstance(refused, Refused)
    assert refused.code == "token-ahead"
    assert desk.rows(READERS) == []


@pytest.mark.parametrize("durable", ["mine", None])
def test_a_start_by_a_clock_that_is_ahead_is_now_and_no_sign_of_a_log_that_was_restored(
    durable: str | None,
) -> None:
    """Whoever subscribed so made the pubend's ticks jump, and everybody was told that something is missing."""
    desk, publisher, other = shop(1, durable="other")
    edge = desk.own.core.stable
    reader = desk.reader("v", durable=durable, start=desk.clock + 5_000_000)
    desk.say(publisher, publish("p", 2))
    for each in (reader, other):
        assert desk.got(each)[-1:] == [2]
        assert desk.gaps(each) == []
    assert desk.own.core.stable - edge < 5_000_000
    late = desk.reader("w", durable=durable and "late", start=desk.clock + 61_000_000)
    [refused] = desk.said(late, Refused)
    assert "a time that has not come yet" in refused.problem


def test_a_subscription_no_durable_stream_could_match_is_refused() -> None:
    desk = Desk(streams=[replace(ORDERS, topics=("orders/#",))])
    reader = desk.client("u")
    [refused] = desk.subscribe(reader, "u", "news", durable="mine")
    assert isinstance(refused, Refused)


# One name, one reader


def test_whoever_presents_the_name_reads_and_who_read_before_is_ousted_and_told() -> None:
    desk, publisher, first = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    second = desk.reader("v", durable="mine")
    assert [each.subscription for each in desk.said(first, Ousted)] == [1]
    desk.say(publisher, publish("p", 3))
    assert desk.got(first) == [2]
    assert desk.got(second) == [2, 3], "2 was not acknowledged"


def test_the_same_client_may_present_the_name_again_without_ousting_itself() -> None:
    desk, publisher, reader = shop(durable="mine")
    desk.subscribe(reader, "u", durable="mine")
    assert desk.said(reader, Ousted) == []
    desk.say(publisher, publish("p", 2))
    assert desk.got(reader) == [2]


def test_who_lets_a_subscription_be_may_come_back_to_it_and_who_ends_it_may_not() -> None:
    desk, publisher, reader = shop(durable="mine")
    subscription = desk.said(reader, Confirmed)[0].subscription
    desk.say(reader, Detach(1))
    assert desk.said(reader, Withdrawn) == [Withdrawn(subscription)]
    desk.say(publisher, publish("p", 2))
    assert desk.got(reader) == []
    desk.subscribe(reader, "u", durable="mine")
    assert desk.got(reader) == [2]
    desk.say(reader, Unsubscribe(subscription))
    assert desk.said(reader, Withdrawn) == [Withdrawn(subscription)] * 2
    assert (desk.rows(READERS), desk.rows(PLACES)) == ([], [])
    assert len(desk.done_of(ForgetMatches)) == 1
