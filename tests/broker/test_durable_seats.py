"""Who was interrupted goes on with a durable subscription if nobody has come under its name since.

A client comes back by itself, whenever it can. It must not take away what another one has come to read meanwhile, nor
be told that what that one has acknowledged is gone (seed 5740 of the names swarm, with faults).
"""

from __future__ import annotations

from typing import Any

import pytest
from durable_desk import EPOCH, OWN, Desk, at_left, shop

from by_hand import publish
from holdfast.clock import SECOND
from holdfast.messages.durable import Fetch, Fetched, Ousted, Stand
from holdfast.messages.subscriptions import Confirmed, Refused, Seat

SINCE = "another client has come to read mine since"


def interrupted() -> tuple[Desk, int, dict[str, Any]]:
    """The client u has read the subscription mine, and lost its connection; a publisher, and how it comes back."""
    desk, publisher, reader = shop(durable="mine")
    desk.say(publisher, publish("p", 2))
    desk.acknowledge(reader)
    [confirmed] = desk.said(reader, Confirmed)
    last = desk.own.core.stable
    desk.lose(reader)
    assert confirmed.seat.client == "u"
    places = {"token": {OWN: last}, "consumed": {OWN: last}}
    return desk, publisher, {"durable": "mine", "born": confirmed.born, "seat": confirmed.seat, **places}


def test_it_goes_on_if_nobody_has_come_as_often_as_it_is_interrupted() -> None:
    desk, publisher, back = interrupted()
    for n in (3, 4):
        reader = desk.reader(**back)
        [confirmed] = desk.said(reader, Confirmed)
        assert confirmed.seat == back["seat"], "or it would supersede itself, if it did not hear of it"
        desk.say(publisher, publish("p", n))
        assert desk.got(reader)[-1:] == [n]
        desk.lose(reader)


@pytest.mark.parametrize("has_left", [True, False])
@pytest.mark.parametrize("is_restarted", [True, False])
def test_it_does_not_if_another_client_has_come_here_though_that_has_left(
    has_left: bool, is_restarted: bool
) -> None:
    desk, publisher, back = interrupted()
    other = desk.reader("v", durable="mine")
    desk.say(publisher, publish("p", 3))
    desk.acknowledge(other)
    if has_left:
        desk.lose(other)
    if is_restarted:
        desk.restart()
    reader = desk.reader(**back)
    [ousted] = desk.said(reader, Ousted)
    assert ousted.reason == SINCE
    assert desk.said(reader, Confirmed) == []
    if not is_restarted:
        assert desk.said(other, Ousted) == []
        assert (desk.durable("mine").port is None) == has_left


def test_what_it_reads_when_it_comes_anew_is_what_nobody_has_acknowledged() -> None:
    desk, publisher, back = interrupted()
    other = desk.reader("v", durable="mine")
    desk.say(publisher, publish("p", 3))
    desk.acknowledge(other)
    desk.say(publisher, publish("p", 4))
    desk.reader(**back)
    anew = desk.reader("w", durable="mine")
    assert (desk.got(anew), desk.gaps(anew)) == ([4], [])
    assert len(desk.said(other, Ousted)) == 1


def test_another_life_of_the_same_client_is_none_that_has_come_since() -> None:
    """Clocks of brokers differ: it may have had a seat at one whose clock is ahead."""
    desk, _, back = interrupted()
    ahead = desk.durable("mine").seat.taken_on + 1
    desk.lose(desk.reader(**{**back, "seat": Seat(ahead, "u")}))
    assert desk.durable("mine").seat.taken_on == ahead
    assert desk.said(desk.reader(**back), Confirmed) != []


def test_the_broker_that_has_it_is_told_which_seat_it_had_and_says_that_another_has_come() -> None:
    desk, left, _, _ = at_left(1, 2)
    seat, later = Seat(7, "u"), Seat(8, "v")
    at = desk.own.core.stable
    reader = desk.reader(durable="mine", token={OWN: at}, consumed={OWN: at}, born=(EPOCH, "left"), seat=seat)
    assert desk.said(left, Fetch) == [Fetch("left", "b", "mine", seat)]
    desk.say(left, Fetched("b", "left", "mine", None, seat=later))
    assert [each.reason for each in desk.said(reader, Ousted)] == [SINCE]
    assert "mine" not in desk.plane.readers.durable


def test_it_takes_over_from_there_if_none_has_and_keeps_its_seat() -> None:
    desk, left, _, _ = at_left(1, 2)
    seat, at = Seat(7, "u"), desk.own.core.stable
    reader = desk.reader(durable="mine", token={OWN: at}, consumed={OWN: at}, born=(EPOCH, "left"), seat=seat)
    places = {OWN: Stand(at, at, at)}
    desk.say(left, Fetched("b", "left", "mine", places, EPOCH, EPOCH, "left", seat))
    assert [each.seat for each in desk.said(reader, Confirmed)] == [seat]
    anew = desk.reader("w", durable="mine")
    [confirmed] = desk.said(anew, Confirmed)
    assert confirmed.seat.client == "w"
    assert confirmed.seat.taken_on > seat.taken_on


@pytest.mark.parametrize("is_late", [True, False])
def test_who_reads_it_here_is_not_ousted_for_one_that_was_interrupted_before_it_came(is_late: bool) -> None:
    desk = Desk(["left"])
    left = desk.meet("left")
    desk.publisher("p", 1)
    reader = desk.reader(durable="mine")
    seat = desk.durable("mine").seat
    earlier = Seat(seat.taken_on + (-1 if is_late else 1), "v")
    desk.say(left, Fetch("b", "left", "mine", earlier))
    [answer] = desk.said(left, Fetched)
    assert answer.seat == seat
    assert (answer.places is None) == is_late
    assert len(desk.said(reader, Ousted)) == (0 if is_late else 1)
    desk.wait(SECOND)
    assert desk.durable("mine").is_held != is_late


def test_a_seat_from_times_to_come_is_refused() -> None:
    desk, _, back = interrupted()
    reader = desk.reader(**{**back, "seat": Seat(2**62, "u")})
    assert [each.code for each in desk.said(reader, Refused)] == ["token-ahead"]
    assert desk.durable("mine").port is None
